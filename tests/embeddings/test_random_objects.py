"""Random objects for D2KE: their distributions, what they learn from training objects, and what they refuse."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.base import clone

from similia.distances import DTW, Levenshtein
from similia.embeddings import D2KE, Mixture, Mosaics, RandomSeries, RandomSets, RandomStrings, Representatives
from similia.objects import SeriesBatch, SetBatch, StringBatch, as_series, as_sets, as_strings

N = 6000
NO_POINTS = SetBatch(np.empty((0, 2)), np.array([0, 0]))


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def uniform_p(values, expected):
    """p-value of the hypothesis that integers are uniform on the expected ones."""
    counts = np.array([np.sum(values == e) for e in expected])
    assert counts.sum() == len(values)  # nothing else occurs
    return stats.chisquare(counts).pvalue


@pytest.mark.parametrize(
    ("sampler", "span", "kind"),
    [
        (RandomStrings(length=(0, 6), alphabet="ab"), (0, 6), StringBatch),
        (RandomSeries(length=(2, 9), scale=1.0, mean=0.0, n_channels=2), (2, 9), SeriesBatch),
        (RandomSets(size=(3, 15), radius=1.0, n_dims=4, non_negative=False), (3, 15), SetBatch),
    ],
)
def test_lengths_are_uniform_on_the_inclusive_range(sampler, span, kind, rng):
    batch = sampler.sample(None, N, rng)
    assert type(batch) is kind
    assert len(batch) == N
    assert uniform_p(np.diff(batch.offsets), np.arange(span[0], span[1] + 1)) > 1e-3


def test_an_integer_is_a_fixed_length(rng):
    assert set(map(len, RandomStrings(length=7, alphabet="ab").sample(None, 50, rng))) == {7}
    assert set(RandomSets(size=2, radius=1.0, n_dims=2, non_negative=True).sample(None, 50, rng).lengths) == {2}


def test_letters_are_uniform_on_the_alphabet_of_the_training_strings(rng):
    strings = RandomStrings(length=(1, 9)).sample(["GATT", "ACA", "C"], N, rng)
    assert uniform_p(strings.values, np.frombuffer(b"ACGT", np.uint8)) > 1e-3


def test_very_rare_letters_are_left_out():
    common = "ACGT" * 1000
    assert RandomStrings().complete([common + "N"]).alphabet == "ACGT"
    assert RandomStrings().complete([common, "N" * 50]).alphabet == "ACGNT"


def test_letters_of_any_kind_come_back(rng):
    words = RandomStrings(length=(3, 5)).sample(["ßé", "語🙂"], 50, rng).tolist()
    assert set("".join(words)) == set("ßé語🙂")
    assert all(isinstance(word, bytes) for word in RandomStrings().sample([b"\xff\x00", b"a"], 5, rng))
    assert set(b"".join(RandomStrings().sample([b"\xff\x00", b"a"], 50, rng))) == {0xFF, 0, 97}


def test_given_letters_count_once(rng):
    assert (
        uniform_p(RandomStrings(alphabet="aab").sample(None, 1000, rng).values, np.frombuffer(b"ab", np.uint8)) > 1e-3
    )


def test_values_of_series_are_normal_with_the_given_moments(rng):
    scale, mean = np.array([1.0, 20.0]), np.array([0.0, -5.0])
    values = RandomSeries(scale=scale, mean=mean, n_channels=2).sample(None, N, rng).values
    for channel in range(2):
        assert stats.kstest(values[:, channel], "norm", (mean[channel], scale[channel])).pvalue > 1e-3
    assert abs(np.corrcoef(values.T)[0, 1]) < 4 / np.sqrt(len(values))


def test_series_learn_scale_mean_and_channels(rng):
    X = [rng.normal(size=(n, 3)) * [1, 10, 0] + [5, 0, 7] for n in (4, 9, 6)]
    learned = RandomSeries().complete(X)
    stacked = np.concatenate(X)
    np.testing.assert_allclose(learned.scale, stacked.std(axis=0))
    np.testing.assert_allclose(learned.mean, stacked.mean(axis=0))
    assert learned.n_channels == 3
    values = learned.sample(None, 100, rng).values
    np.testing.assert_allclose(values[:, 2], 7.0)  # a constant channel stays constant
    kept = RandomSeries(scale=2.0, mean=0.0).complete(X)
    assert (kept.scale, kept.mean, kept.n_channels) == (2.0, 0.0, 3)


def test_points_are_uniform_on_the_sphere(rng):
    radius = 3.0
    points = RandomSets(radius=radius, n_dims=3, non_negative=False).sample(None, N, rng).values
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), radius)
    for axis in range(3):  # Archimedes: each coordinate of a point on the sphere in 3-D is uniform
        assert stats.kstest(points[:, axis], "uniform", (-radius, 2 * radius)).pvalue > 1e-3


def test_points_without_negative_coordinates_are_uniform_on_that_part(rng):
    points = RandomSets(radius=1.0, n_dims=3, non_negative=True).sample(None, N, rng).values
    for axis in range(3):
        assert stats.kstest(points[:, axis], "uniform").pvalue > 1e-3


def test_sets_learn_radius_dimension_and_sign():
    X = [np.array([[3.0, 4.0], [0.0, 1.0]]), np.array([[6.0, 8.0]])]
    learned = RandomSets().complete(X)
    assert (learned.radius, learned.n_dims, learned.non_negative) == (pytest.approx(16 / 3), 2, True)
    assert not RandomSets().complete([np.array([[3.0, -4.0]])]).non_negative
    kept = RandomSets(radius=1.0, non_negative=False).complete(X)
    assert (kept.radius, kept.non_negative) == (1.0, False)
    assert kept.set_params(n_dims=None).complete(NO_POINTS).n_dims == 2
    for size in (1e20, 1e-25):  # squares do not fit into float32
        assert RandomSets().complete([np.full((2, 4), size, np.float32)]).radius == pytest.approx(2 * size)


@pytest.mark.parametrize("sampler", [RandomStrings(), RandomSeries(), RandomSets()])
def test_default_lengths_do_not_grow_with_the_data(sampler, rng):
    X = {
        RandomStrings: as_strings(["ab" * 5000]),
        RandomSeries: as_series([np.ones((9999, 1))]),
        RandomSets: as_sets([np.ones((9999, 2))]),
    }[type(sampler)]
    assert np.diff(sampler.sample(X, 500, rng).offsets).max() <= 50


def test_parameters_are_left_alone(rng):
    sampler = RandomSeries()
    sampler.sample([np.ones((3, 2))], 5, rng)
    assert sampler.get_params() == RandomSeries().get_params()
    learned = RandomSeries().complete([np.ones((3, 2))])
    assert repr(clone(learned)) == repr(learned)


@pytest.mark.parametrize(
    ("sampler", "X", "message"),
    [
        (
            RandomStrings(),
            None,
            r"RandomStrings takes alphabet from training .*RandomStrings\(alphabet=\.\.\.\)",
        ),
        (RandomSeries(scale=1.0), None, "takes mean and n_channels from training objects"),
        (RandomSets(), None, "takes radius and n_dims and non_negative from training objects"),
        (Representatives(), None, "give a collection of objects instead"),
        (RandomStrings(), ["", ""], "all training strings are empty"),
        (RandomSets(), NO_POINTS, r"all training sets are empty: .* write radius=\.\.\., non_negative=\.\.\."),
        (RandomSets(radius=1.0), NO_POINTS, r"found no point to take non_negative from; write non_negative=\.\.\."),
        (RandomStrings(alphabet=""), ["a"], r"RandomStrings\(alphabet=\.\.\.\) must be a str"),
        (RandomStrings(alphabet=4), ["a"], r"RandomStrings\(alphabet=\.\.\.\) must be a str"),
        (RandomStrings(length=(5, 2)), ["a"], r"length must be an integer >= 0 or a pair .* got \(5, 2\)"),
        (RandomStrings(length=2.5), ["a"], "length must be an integer"),
        (RandomStrings(length=True), ["a"], "length must be an integer"),
        (RandomStrings(length=(1, 2, 3)), ["a"], "length must be an integer"),
        (RandomSeries(length=0), [np.ones(3)], "length must be an integer >= 1"),
        (RandomSets(size=(0, 3)), [np.ones((3, 2))], "size must be an integer >= 1"),
        (RandomSeries(scale=-1.0), [np.ones(3)], "scale must be a standard deviation >= 0"),
        (RandomSeries(scale=[1.0, 2.0]), [np.ones((3, 3))], "one for each of 3 channels"),
        (RandomSeries(mean=np.nan), [np.ones((3, 3))], "mean must be one finite number"),
        (RandomSets(radius=-1), [np.ones((3, 2))], "radius must be a number >= 0"),
        (RandomSets(radius="big"), [np.ones((3, 2))], "radius must be a number >= 0"),
    ],
)
def test_bad_parameters_are_named(sampler, X, message, rng):
    with pytest.raises(ValueError, match=message):
        sampler.sample(X, 3, rng)


def test_representatives_are_not_drawn_in_blocks(rng):
    with pytest.raises(TypeError, match="all at once"):
        Representatives().sample(["a"], 3, rng)


# ---- mosaics
@given(
    lengths=st.lists(st.integers(0, 9), min_size=1, max_size=5),
    n_pieces=st.integers(1, 5),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_mosaic_takes_each_piece_from_its_place(lengths, n_pieces, seed):
    """Letter (object, place) of training object o at place p is coded as 100 o + p: pieces must be runs, in order."""
    words = ["".join(chr(100 * (o + 1) + p) for p in range(length)) for o, length in enumerate(lengths)]
    for mosaic in Mosaics(n_pieces).sample(words, 20, np.random.default_rng(seed)):
        codes = np.array([ord(letter) for letter in mosaic], dtype=int)
        members, places = codes // 100 - 1, codes % 100
        shares = [(p / lengths[m], (p + 1) / lengths[m]) for m, p in zip(members, places, strict=True)]
        assert all(end > start for (start, _), (_, end) in itertools.pairwise(shares))  # never back in share of length
        breaks = np.flatnonzero(np.diff(codes) != 1) + 1
        assert len(breaks) < n_pieces
        if n_pieces == 1:
            assert mosaic in words


def test_mosaics_of_equal_lengths_keep_the_place_of_each_letter(rng):
    words = ["abcdefgh", "ABCDEFGH"]
    mosaics = Mosaics(3).sample(words, 300, rng)
    assert all(mosaic.lower() == words[0] for mosaic in mosaics)
    assert {mosaic.swapcase() == mosaic for mosaic in mosaics} == {False}
    switches = [sum(a.islower() != b.islower() for a, b in itertools.pairwise(mosaic)) for mosaic in mosaics]
    assert max(switches) == 2


def test_windows_of_mosaics_have_the_lengths_asked_for(rng):
    X = as_series([np.arange(20.0), np.arange(100.0, 130.0), np.ones(3)])
    drawn = Mosaics(2, length=(5, 8)).sample(X, 500, rng)
    assert set(np.diff(drawn.offsets)) <= set(range(2, 9))  # mosaics shorter than asked for stay whole
    lengths = Mosaics(1, length=(5, 8)).sample(X[:2], N, rng).lengths
    assert uniform_p(lengths, range(5, 9)) > 1e-3


def test_mosaics_are_batches_of_the_kind_of_the_data(rng):
    sets = as_sets([np.zeros((0, 2)), np.ones((3, 2), np.float32)])
    drawn = Mosaics(2).sample(sets, 10, rng)
    assert (type(drawn), drawn.values.dtype) == (type(sets), sets.values.dtype)
    assert Mosaics().sample([b"ab", b"cd"], 2, rng).is_bytes


@pytest.mark.parametrize(
    ("sampler", "X", "message"),
    [
        (Mosaics(), None, "Mosaics are made of training objects, and there are none here"),
        (Mosaics(n_pieces=0), ["a"], "n_pieces must be an integer >= 1, got 0"),
        (Mosaics(length=(3, 2)), ["a"], r"length must be an integer >= 1 or a pair"),
    ],
)
def test_what_mosaics_refuse(sampler, X, message, rng):
    with pytest.raises(ValueError, match=message):
        sampler.sample(X, 3, rng)


def test_a_mixture_takes_its_kinds_in_turn():
    kinds = [RandomStrings(alphabet=letter, length=length) for letter, length in (("a", 2), ("b", 3), ("c", 4))]
    drawn = Mixture(kinds).sample(None, 8, np.random.default_rng(0))
    assert list(drawn) == ["aa", "bbb", "cccc", "aa", "bbb", "cccc", "aa", "bbb"]


def test_features_of_a_mixture_grow():
    words = ["tree", "bush", "trees", "bushes"] * 10
    mixture = Mixture([Mosaics(2), RandomStrings(length=3)])
    small, large = (D2KE(Levenshtein(), n, mixture, random_state=0).fit(words) for n in (100, 700))
    assert list(large.random_objects_[:100]) == list(small.random_objects_)
    assert all(len(word) == 3 for word in small.random_objects_[1::2])  # the learnt alphabet, the given length
    assert list(clone(small).fit(words).random_objects_) == list(small.random_objects_)


def test_a_mixture_of_series_keeps_channels():
    X = as_series([np.zeros((5, 2)), np.ones((7, 2))])
    model = D2KE(DTW(), 6, Mixture([Mosaics(2), RandomSeries(length=3)]), random_state=0).fit(X)
    assert [series.shape[1] for series in model.random_objects_] == [2] * 6
    assert [len(series) for series in model.random_objects_[1::2]] == [3] * 3


def test_a_mixture_of_series_is_for_distances_of_1_d_arrays_too():
    def gap(X, Y):
        assert {np.ndim(series) for series in (*X, *Y)} == {1}
        return np.abs(np.subtract.outer([x.sum() for x in X], [y.sum() for y in Y]))

    X = [np.arange(5.0), np.ones(7)]
    assert D2KE(gap, 6, Mixture([RandomSeries(), Mosaics(2)]), random_state=0).fit_transform(X).shape == (2, 6)


@pytest.mark.parametrize("samplers", [[], RandomStrings(), [RandomStrings(), "ab"], [RandomStrings]])
def test_a_mixture_of_something_else_is_refused(samplers):
    with pytest.raises(ValueError, match="samplers"):
        Mixture(samplers).sample(["ab"], 2, np.random.default_rng(0))


def test_series_too_large_to_square_are_refused_in_a_sentence():
    with pytest.raises(ValueError, match="too large to add; scale it down"):
        RandomSeries().complete([[1e308, -1e308], [0.0, 1.0]])
