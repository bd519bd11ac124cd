"""Random convolutions: the definition, the published transform, the laws of the biases, short and unequal series."""

import warnings

import dask.bag as db
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import RidgeClassifierCV
from sklearn.pipeline import make_pipeline

import similia as sm
from naive import convolutions as naive
from similia.core.validation import BadParameter, BadValue
from similia.embeddings import convolutions as loops
from similia.embeddings.convolutions import DilatedKernels, RandomConvolutions, dilations_of
from similia.objects import as_series

FAMILIES = ("minirocket", "multirocket")
each_family = pytest.mark.parametrize("family", FAMILIES)
LEAST = {"minirocket": 84, "multirocket": 672}


def walks(lengths, n_channels=1, seed=0):
    """Series of whole numbers with long stretches: their outputs are exact in float32."""
    rng = np.random.default_rng(seed)
    return [rng.integers(-2, 3, (length, n_channels)).cumsum(axis=0).astype(float) for length in lengths]


def twin(model, x):
    """The features of one series by the slow twin."""
    x = x / 2.0**model.exponent_
    if model.difference_kernels_ is None:
        return naive.features(x, model.kernels_)[0]
    steps = np.diff(x, axis=0) if len(x) > 1 else np.zeros_like(x)
    parts = [naive.features(x, model.kernels_), naive.features(steps, model.difference_kernels_)]
    return np.concatenate([part.ravel() for part in parts])


# ---- the definition


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.integers(1, 140), min_size=1, max_size=4),
    st.sampled_from([1, 2, 3, 12]),
    st.integers(1, 3),
    st.integers(0, 99),
)
@example([1, 2, 8, 9, 10], 1, 2, 0)
@example([63, 64, 65, 127, 128], 1, 3, 1)
@example([9, 31, 65], 1, 9, 2)  # up to five biases for one output
def test_equals_the_twin(lengths, n_channels, per_kernel, seed):
    X = walks(lengths, n_channels, seed)
    for family in FAMILIES:
        model = RandomConvolutions(LEAST[family] * per_kernel, family, seed).fit(X)
        Z = model.transform(X)
        assert Z.dtype == np.float32
        assert Z.shape == (len(X), LEAST[family] * per_kernel)
        np.testing.assert_allclose(Z, [twin(model, x) for x in X], rtol=1e-6, atol=1e-7)


@each_family
@pytest.mark.parametrize("length", [1023, 1024, 1025, 1088, 2049, 2600])
def test_equals_the_twin_where_outputs_fill_several_tiles(family, length):
    X = [np.repeat(x, 5, axis=0)[:length] for x in walks([length, length - 1], 2, seed=length)]
    X[1][100 : length - 100] = 7 * np.abs(np.arange(length - 200) - 800)[:, None]  # two long stretches
    model = RandomConvolutions(3 * LEAST[family], family, random_state=0).fit(X)
    np.testing.assert_allclose(model.transform(X), [twin(model, x) for x in X], rtol=1e-5, atol=1e-7)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(1, 150), min_size=1, max_size=12), st.booleans())
@example([64], True)
@example([63, 1, 64], True)
@example([1, 63, 65], False)
def test_longest_stretch_of_bits(runs, first):
    bits = np.concatenate([np.full(run, (i % 2 == 0) == first) for i, run in enumerate(runs)])
    padded = np.concatenate([bits, np.zeros(-len(bits) % 64, bool)])
    stretch = run = 0
    for word in np.packbits(padded, bitorder="little").view(np.uint64):
        stretch, run = loops._longest(word, stretch, run)
    assert max(stretch, run) == max([n for i, n in enumerate(runs) if (i % 2 == 0) == first], default=0)


def kernels_of(parameters, n_channels):
    """Kernels with the parameters of aeon's transforms."""
    if len(parameters) == 3:  # MultiRocket of one channel
        alone = 84 * len(parameters[0])
        parameters = (np.ones(alone), np.zeros(alone), *parameters)
    sizes, channels, dilations, counts, biases = parameters
    limits = np.concatenate([[0], np.cumsum(sizes)])
    whole = (np.asarray(values).astype(np.int64) for values in (dilations, counts, channels, limits))
    dilations, counts, channels, limits = whole
    return DilatedKernels(n_channels, dilations, counts, biases.astype(np.float32), channels, limits)


@pytest.mark.ecosystem
@pytest.mark.parametrize(("n_channels", "length"), [(1, 9), (1, 130), (3, 77), (12, 200)])
def test_equals_aeon(n_channels, length):
    rocket = pytest.importorskip("aeon.transformations.collection.convolution_based", reason="aeon is not installed")
    X = np.random.default_rng(0).standard_normal((12, n_channels, length)).cumsum(axis=2).astype(np.float32)
    series = list(X.transpose(0, 2, 1))
    theirs = rocket.MiniRocket(n_kernels=840, random_state=1).fit(X)
    ours = RandomConvolutions(840, random_state=0).fit(series)
    np.testing.assert_array_equal(ours.kernels_.dilations, theirs.parameters[2])
    np.testing.assert_array_equal(ours.kernels_.counts, theirs.parameters[3])
    ours.kernels_, ours.exponent_ = kernels_of(theirs.parameters, n_channels), 0
    np.testing.assert_allclose(ours.transform(series), theirs.transform(X), rtol=0, atol=1e-6)
    if length < 20:
        return  # MultiRocket needs the differences to hold a kernel
    # Shares of the series' own convolutions, and of those of differences: series whose differences are X.
    theirs = rocket.MultiRocket(n_kernels=500, random_state=1).fit(X)
    sums = [np.concatenate([np.zeros_like(x[:1]), x.cumsum(axis=0, dtype=np.float64)]) for x in series]
    ours = RandomConvolutions(3360, "multirocket", random_state=0).fit(sums)
    ours.kernels_ = ours.difference_kernels_ = kernels_of(theirs.parameter, n_channels)
    n = len(ours.kernels_.biases)
    ours._n_features_out, ours.exponent_ = 8 * n, 0
    shares, stretches, excesses, places = theirs.transform(X)[:, : 4 * n].reshape(-1, 4, n).transpose(1, 0, 2)
    whole = [np.float64(x) for x in series]
    found = ours.transform(whole).reshape(-1, 2, 4, n)[:, 0].transpose(1, 0, 2)
    np.testing.assert_allclose(found[0], shares, rtol=0, atol=1e-6)
    positive = shares > 0
    expected = np.where(positive, excesses - 2 * ours.kernels_.biases, 0)  # they add the bias
    np.testing.assert_allclose(found[1], expected, rtol=1e-4, atol=1e-4)
    size = np.round((places + 1)[positive] / found[2][positive])  # of each output
    assert (np.isin(size, length - 8 * ours.kernels_.dilations) | (size == length)).all()
    assert np.abs(found[3][positive] * size - stretches[positive]).max() <= 1.01  # they count the value that ends one
    of_sums = ours.transform(sums).reshape(-1, 2, 4, n)[:, 1, 0]
    np.testing.assert_allclose(of_sums, shares, rtol=0, atol=2 / length)  # differences of rounded sums are rounded


# ---- what fit draws


@pytest.mark.parametrize("length", [1, 2, 8, 9, 17, 24, 64, 65, 150, 500, 513, 10_000])
@pytest.mark.parametrize(("per_kernel", "most"), [(1, 32), (3, 32), (31, 32), (32, 32), (119, 32), (119, 5), (5, 1)])
def test_dilations(length, per_kernel, most):
    dilations, counts = dilations_of(length, per_kernel, most)
    assert dilations[0] == 1
    assert (np.diff(dilations) > 0).all()
    assert counts.sum() == per_kernel
    assert (counts > 0).all()
    assert len(dilations) <= most
    if length >= 9:
        assert 8 * dilations[-1] < length  # the kernel fits
        assert min(per_kernel, most) == 1 or 8 * (dilations[-1] + 1) >= length  # and no larger one does


def test_biases_are_quantiles_of_outputs():
    """Of one training series, a share of 1 - q of the outputs is above the quantile q, if they all differ."""
    x = np.random.default_rng(0).standard_normal((301, 1))
    model = RandomConvolutions(84 * 20, random_state=0).fit([x])
    shares = model.transform([x])[0]
    quantiles = np.arange(1, 84 * 20 + 1) * ((1 + 5**0.5) / 2) % 1
    padded = np.repeat((np.arange(84)[None] + np.arange(len(model.kernels_.counts))[:, None]) % 2 == 0, 1, axis=0)
    of_padded = np.repeat(padded.ravel(), np.repeat(model.kernels_.counts, 84))
    assert of_padded.mean() == 0.5
    np.testing.assert_allclose(shares[of_padded], (1 - quantiles)[of_padded], rtol=0, atol=1.01 / 301)


def test_biases_come_from_all_training_series():
    """Of zeros, all biases are 0; of a straight line, those of convolutions with a slope are not."""
    X = [np.zeros((40, 1)), np.arange(1.0, 41.0)[:, None]]
    zero = (RandomConvolutions(84 * 10, random_state=0).fit(X).kernels_.biases == 0).reshape(84, -1)
    assert 0.3 < zero.mean() < 0.7


def test_channels_of_kernels():
    X = walks([50] * 3, n_channels=20)
    kernels = RandomConvolutions(84 * 10, random_state=0).fit(X).kernels_
    lists = np.split(kernels.channels, kernels.limits[1:-1])
    assert len(lists) == 84 * len(kernels.dilations)
    assert {len(own) for own in lists} == set(range(1, 10))
    assert all(len(set(own)) == len(own) for own in lists)
    assert set(kernels.channels) == set(range(20))
    sizes = np.bincount([len(own) for own in lists])
    assert sizes[1] > sizes[2] > sizes[4] > sizes[9] > 0


def test_length_is_the_lower_median():
    assert RandomConvolutions(84, random_state=0).fit(walks([30, 10, 20, 40])).length_ == 20
    assert RandomConvolutions(84, random_state=0).fit(walks([50])).length_ == 50


def test_only_some_series_of_many_are_used(monkeypatch):
    X = walks([12] * 40)
    monkeypatch.setattr("similia.embeddings.convolutions._SAMPLE", 8)
    models = [RandomConvolutions(420, random_state=seed).fit(X) for seed in (0, 0, 1)]
    used = [set(model.kernels_.biases) for model in models]
    assert used[0] == used[1]
    assert used[0] != used[2]


# ---- laws


@each_family
def test_checks(family):
    X = walks([30, 9, 64, 5, 100], n_channels=2)
    sm.checks.check_embedding(RandomConvolutions(LEAST[family] * 2, family), X, tolerance=0.0)


@each_family
def test_forms_of_series_do_not_matter(family):
    X = np.array(walks([40] * 6))
    model = RandomConvolutions(LEAST[family], family, random_state=0).fit(X[:, :, 0])
    expected = model.transform(X[:, :, 0])
    for form in (list(X), as_series(list(X)), as_series(list(X)).astype(np.float32), X[:, :, 0].astype(np.float32)):
        np.testing.assert_array_equal(model.transform(form), expected)
        again = RandomConvolutions(LEAST[family], family, random_state=0).fit(form)
        np.testing.assert_array_equal(again.transform(form), expected)


def test_a_constant_changes_only_the_ends():
    X = walks([100] * 4)
    model = RandomConvolutions(84 * 4, random_state=0).fit(X)
    same = model.transform(X) == model.transform([x + 1000 for x in X])
    inside = np.repeat((np.arange(84) + np.arange(len(model.kernels_.counts))[:, None]).ravel() % 2 == 1,
                       np.repeat(model.kernels_.counts, 84))  # fmt: skip
    assert same[:, inside].all()
    assert not same[:, ~inside].all()


@each_family
def test_features_do_not_depend_on_the_unit(family):
    X = walks([60] * 5)
    Z = [
        RandomConvolutions(LEAST[family] * 2, family, random_state=0).fit_transform([x * unit for x in X])
        for unit in (1.0, 2.0**-1000, 2.0**900)
    ]
    np.testing.assert_array_equal(Z[1], Z[0])
    np.testing.assert_array_equal(Z[2], Z[0])


@each_family
def test_dask_and_files(family, tmp_path):
    X = walks([30, 9, 64, 5, 100, 40, 41], n_channels=2)
    model = RandomConvolutions(LEAST[family] * 2, family, random_state=0).fit(X)
    expected = model.transform(X)
    far = db.from_sequence(X, npartitions=3)
    np.testing.assert_array_equal(model.transform(far).compute(), expected)
    there = RandomConvolutions(LEAST[family] * 2, family, random_state=0).fit(far)
    np.testing.assert_array_equal(there.transform(X), expected)
    path = sm.save(model, tmp_path / "model")
    np.testing.assert_array_equal(sm.load(path).transform(X), expected)
    np.testing.assert_array_equal(sm.Pipeline([("it", model)]).transform(X), expected)


@each_family
def test_tells_frequencies_apart(family):
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    lengths = rng.integers(40, 90, 80)
    X = [np.sin(rng.uniform(0, 6) + np.arange(n) * (0.5 + 0.2 * label)) for n, label in zip(lengths, y, strict=True)]
    X = [x + rng.normal(size=len(x)) for x in X]
    model = make_pipeline(RandomConvolutions(2000, family, random_state=0), RidgeClassifierCV())
    assert model.fit(X[:40], y[:40]).score(X[40:], y[40:]) >= 0.85


# ---- wrong input


def test_wrong_input():
    X = walks([30, 40])
    with pytest.raises(BadParameter, match="family must be 'minirocket' or 'multirocket', got 'rocket'"):
        RandomConvolutions(family="rocket").fit(X)
    with pytest.raises(BadParameter, match="n_features must be an integer >= 84, got 83"):
        RandomConvolutions(83).fit(X)
    with pytest.raises(BadParameter, match="n_features must be an integer >= 672, got 671"):
        RandomConvolutions(671, "multirocket").fit(X)
    with pytest.raises(BadParameter, match="max_dilations must be an integer >= 1, got 0"):
        RandomConvolutions(84, max_dilations=0).fit(X)
    model = RandomConvolutions(84, random_state=0).fit(X)
    with pytest.raises(BadValue, match="series 0 has 2 channels, expected 1 as in fit"):
        model.transform(walks([30], 2))
    with pytest.raises(BadValue, match="time point 3, channel 0 is nan"):
        model.transform([X[0], [0.0, 1.0, 2.0, np.nan]])
    with pytest.raises(BadValue, match=r"series 1 holds numbers up to 1e\+37, expected at most 1e\+30 times"):
        model.transform([X[0], [0.0, 1e37]])
    assert not model.transform([[0.0, 1e-300]])[:, model.kernels_.biases >= 0].any()


@pytest.mark.parametrize("embedding", [RandomConvolutions(84), sm.embeddings.Hydra(2), sm.IntervalQuantiles(2)])
def test_series_that_hardly_vary_around_a_large_number_are_warned_of(embedding):
    t = np.arange(40.0)
    X = [np.sin(t), 1e8 + np.sin(t), np.full(40, 1e8)]
    said = r"^1 of 3 objects vary so little around a large number .*, e.g. X\[1\]; subtract the mean of each series$"
    for call in (embedding.fit, embedding.transform):
        with pytest.warns(UserWarning, match=said) as caught:
            call(X)
        assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        embedding.fit(X[::2]).transform(X[::2])


@pytest.mark.parametrize("embedding", [RandomConvolutions(84, random_state=0), sm.embeddings.Hydra(2)])
def test_the_warning_names_the_series_by_its_number_in_the_whole(embedding):
    X = np.tile(np.sin(np.arange(40.0)), (1200, 1))
    X[range(1000, 1200)] += 1e8  # more than RandomConvolutions can leave out of its sample
    with pytest.warns(UserWarning, match="vary so little") as caught:
        embedding.fit(X)
    [warning] = caught
    assert warning.message.index >= 1000
