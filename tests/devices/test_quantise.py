"""Models in whole numbers: equal to Python's integers without a width, near the model before, and what is refused."""

from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from hypothesis import example as example_of
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler

import similia as sm
from devices.compiled import IN_FLOATS, MAKERS, example
from naive import floats as slow
from naive import whole_numbers as naive
from similia.devices.inputs import Curve, Decay, Units, exp_minus
from similia.devices.stages import (
    DenseSigns,
    FloatHadamard,
    FloatLinear,
    FloatPrototypes,
    FloatSigns,
    HadamardSigns,
    Linear,
    Prototypes,
    bit_length,
    fit_to,
    hadamard,
    sizes_of,
)
from similia.embeddings.vectors import FeatureScaler

pytestmark = pytest.mark.filterwarnings("ignore:.* similarity 0 to all landmarks")
IN_WHOLE = [
    name for name in MAKERS if "levels" not in name and name not in ("one level", "n-grams") and "sequences" not in name
]


def quantised(name):
    model, X = example(name)
    return sm.quantise(model, X), X


def rows_of(A):
    return np.diag(A).tolist() if A.ndim == 1 else A.tolist()


# ---- the slow twin


@pytest.mark.parametrize("name", IN_WHOLE)
def test_stages_equal_integers_without_a_width(name):
    small, X = quantised(name)
    k = small.input.numbers(small.input.read(X))[:6]
    assert np.abs(k).max() <= small.input.limit
    codes, labels = small.transform(X)[:6], small.predict(X)[:6]
    for row, code, found in zip(k, codes, labels, strict=True):
        bits = bits_by_hand(small, row.tolist())
        assert bits == np.unpackbits(code).tolist()
        R, m, c = (values.tolist() for values in (small.prototypes.R, small.prototypes.m, small.prototypes.c))
        scores, best = naive.label(R, m, c, bits)
        assert scores == small.prototypes(code[None])[0].tolist()
        assert small.classes_[best] == found


def bits_by_hand(small, k):
    linear = small.linear
    z = naive.coordinates(rows_of(linear.A), linear.c.tolist(), linear.shifts.tolist(), linear.guard, linear.n_bits, k)
    assert z == linear(np.array([k]))[0].tolist()
    if isinstance(small.signs, DenseSigns):
        return naive.dense_signs(small.signs.P.tolist(), z)
    return naive.hadamard_signs(small.signs.flips.tolist(), small.signs.shift, small.signs.n_bits, z)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.integers(1, 60), st.integers(1, 2**31 - 1), st.integers(0, 2**32), st.booleans())
@example_of(11, 21, 1, 7, True)  # small coordinates beside large factors
def test_no_sum_of_coordinates_leaves_64_bits(r, m, limit, seed, diagonal):
    random = np.random.default_rng(seed)
    A = (1 + random.random(size=(r, m))) * random.choice([-1, 1], (r, m)) * np.exp(random.normal(size=(r, 1)) * 8)
    if diagonal:
        A, m = A[:, 0], r
    c = random.normal(size=r) * np.exp(random.normal(size=r) * 8) * limit
    linear = Linear.of(A, c, limit)
    worst = np.sign(linear.A if A.ndim == 2 else np.diag(linear.A)).astype(np.int64) * limit  # each row's largest sum
    for k in (random.integers(-limit, limit + 1, m), np.zeros(m, np.int64), -worst[0], *worst[:3]):
        z = naive.coordinates(
            rows_of(linear.A), linear.c.tolist(), linear.shifts.tolist(), linear.guard, linear.n_bits, k.tolist()
        )
        assert linear(k[None])[0].tolist() == z
    # Coordinates are precise relative to the largest that any k can give; here it is reached.
    top = linear.A if A.ndim == 1 else linear.A[np.argmax(np.abs(A).sum(axis=1))]
    k = np.where(top < 0, -limit, limit)
    exact, z = (np.diag(A) if A.ndim == 1 else A) @ k + c, linear(k[None])[0]
    assert np.abs(z / np.abs(z).max() - exact / np.abs(exact).max()).max() < 2e-3


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 300), st.integers(0, 2**32), st.booleans())
def test_no_sum_of_signs_leaves_32_bits(r, seed, extreme):
    random = np.random.default_rng(seed)
    linear = Linear.of(np.ones(r), np.zeros(r), 100)
    most = 2**linear.n_bits
    z = random.choice([-most, most], r) if extreme else random.integers(-most, most + 1, r)
    P = random.choice([-127, 127], (8, r)).astype(np.int8)
    P[0] = np.where(z > 0, 127, -127)
    assert naive.dense_signs(P.tolist(), z.tolist()) == np.unpackbits(DenseSigns(P)(z[None])).tolist()
    p = max(256, 1 << (r - 1).bit_length())
    flips = random.random((1, 3, p)) < 0.5
    flips[0, 0, :r] = z < 0  # all coordinates add up in the first entry
    signs = HadamardSigns(flips, p)
    work = z.astype(object)
    work = np.where(flips[0, 0, :r], -work, work)
    assert abs(sum(work)) < 2**31
    codes = signs(z[None].astype(np.int64))
    if r <= 40:
        assert naive.hadamard_signs(flips.tolist(), signs.shift, p, z.tolist()) == np.unpackbits(codes).tolist()


def test_three_products_of_the_worst_coordinates_fit_32_bits():
    for r in (1, 256, 257, 1024, 5000):
        B = Linear.of(np.ones(r), np.zeros(r), 100).n_bits
        p = max(256, 1 << (r - 1).bit_length())
        shift = HadamardSigns(np.zeros((1, 3, p), bool), p).shift
        # |H v| <= |v| sqrt(p) in the Euclidean norm, which bounds the largest entry; rounding adds at most sqrt(p).
        norm = 2.0**B * r**0.5
        for _ in range(2):
            assert norm * p**0.5 < 2**31
            norm = norm * p**0.5 / 2**shift + p**0.5
        assert norm * p**0.5 < 2**31


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(-(2**61), 2**61), min_size=1, max_size=20), st.integers(1, 14))
def test_fit_to_rounds_down_and_fills_its_bits(values, n_bits):
    z = fit_to(np.array([values], np.int64), n_bits)[0].tolist()
    length = max(map(abs, values)).bit_length()
    assert z == [v * 2**n_bits // 2**length if length else 0 for v in values]


def test_bit_length_and_hadamard():
    values = [0, 1, 2, 3, 4, 2**31 - 1, 2**31, 2**62 - 1, 2**62]
    assert bit_length(np.array(values)).tolist() == [v.bit_length() for v in values]
    expected = [[(-1) ** (i & j).bit_count() for j in range(8)] for i in range(8)]
    assert hadamard(np.eye(8, dtype=np.int64)).tolist() == expected


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 2**40), st.floats(1e-9, 10), st.lists(st.integers(0, 2**41), min_size=1, max_size=20))
def test_a_curve_is_the_function(largest, gamma, distances):
    curve = Curve.of(lambda d: np.exp(-gamma * d), largest)
    d = np.minimum(np.array(distances), largest)
    found = curve(d)
    assert found.tolist() == [naive.on_curve(curve.values.tolist(), curve.shift, v) for v in d.tolist()]
    assert np.abs(found / (2**24 - 1) - np.exp(-gamma * d)).max() < 1e-6
    assert found.min() >= 0


def test_units_keep_whole_numbers_and_leave_room_for_others():
    X = np.array([[1.0, 0.5, 40000.0], [-7.0, -2.0, 3.0]])
    units = Units.of(X)
    assert units.steps[0] == 1
    assert (2 * np.abs(X).max(axis=0) / units.steps)[1:].max() <= 2**15
    assert (2 * np.abs(X).max(axis=0) / units.steps)[1:].min() > 2**13
    np.testing.assert_allclose(units.read(X) * units.steps, X, atol=units.steps.max() / 2)
    with pytest.raises(ValueError, match=r"X\[1\] holds 40000 in column 0, expected at most 32767; quantise with X"):
        units.read(np.array([[0.0, 0, 0], [40000, 0, 0]]))


# ---- float32


@pytest.mark.parametrize("name", IN_FLOATS)
def test_stages_in_float32_equal_loops_over_single_numbers(name):
    model, X = example(name)
    small = sm.quantise(model, X, numbers="float")
    objects = small.input.read(X)
    k, codes = small.input.numbers(objects)[:4], small.codes(objects)[:4]
    for i, (row, code) in enumerate(zip(k, codes, strict=True)):
        if name == "Gaussian":
            gamma = np.float32(small.input.curve.gamma)
            distances = [slow.squared_distance(objects[i], landmark) for landmark in small.input.landmarks]
            assert row.tolist() == [slow.exp_minus(gamma * d) for d in distances]
        z = slow.coordinates(small.linear.A, small.linear.c, row)
        assert np.array(z).dtype == np.float32
        assert z == small.linear(row[None])[0].tolist()
        if isinstance(small.signs, FloatHadamard):
            bits = slow.hadamard_signs(small.signs.flips, small.n_bits, z)
        else:
            bits = slow.dense_signs(small.signs.P, z)
        assert bits == np.unpackbits(code).tolist()
        if isinstance(small.prototypes, FloatPrototypes):
            found = slow.scores(small.prototypes.R, small.prototypes.c, bits)
            assert found == small.prototypes(code[None])[0].tolist()
            assert small.predict(X)[i] == small.classes_[found.index(max(found))]


@settings(max_examples=300, deadline=None)
@given(st.floats(0, 100, width=32))
@example_of(0.0)
@example_of(float(np.nextafter(np.float32(86), np.float32(0))))
@example_of(86.0)
def test_exp_in_float32_is_exp(t):
    t = np.float32(t)
    found = exp_minus(np.array([t]))[0]
    assert found.dtype == np.float32
    assert found == slow.exp_minus(t)
    assert found == 0 if t >= 86 else abs(found / np.exp(-np.float64(t)) - 1) < 5e-7


def test_decay_is_a_function_of_the_distance_or_its_square():
    d = np.arange(30)
    np.testing.assert_allclose(Decay(0.1)(d), np.exp(-0.1 * d), rtol=1e-6)
    np.testing.assert_allclose(Decay(0.1, square=True)(d), np.exp(-0.1 * d**2) * (d**2 < 860), rtol=1e-5)
    np.testing.assert_allclose(Decay(0.1, square=True).exact(d), np.exp(-0.1 * d**2), rtol=1e-12)


@pytest.mark.parametrize("name", IN_FLOATS)
def test_in_float32_nearly_nothing_changes(name):
    model, X = example(name)
    small = sm.quantise(model, X, numbers="float")
    loss = small.loss(X, model.predict(X))
    assert loss.bits > 0.998
    assert loss.labels == 1
    assert small.in_floats


def test_signs_of_numbers_of_all_sizes_are_those_of_single_operations():
    random = np.random.default_rng(0)
    z = (random.normal(size=(3, 40)) * np.exp(random.normal(size=(3, 40)) * 8)).astype(np.float32)
    z[:, 1::2] = -z[:, ::2] * random.choice([1, 1 + 1e-6], (3, 20)).astype(np.float32)  # sums that nearly vanish
    signs = FloatHadamard(random.random((2, 3, 64)) < 0.5, 120)
    dense = FloatSigns(random.choice([-1, 1], (128, 40)).astype(np.float32))
    for row in z:
        found = slow.hadamard_signs(signs.flips, 120, list(row))
        assert np.unpackbits(signs(row[None])).tolist() == found
        assert np.unpackbits(dense(row[None])).tolist() == slow.dense_signs(dense.P, row)


def test_minus_zero_is_not_negative():
    signs = FloatHadamard(np.ones((1, 3, 256), bool), 256)
    assert np.unpackbits(signs(np.zeros((1, 4), np.float32))).all()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("DTW", r"the distance DTW\(\) cannot be in float32, Levenshtein can; take numbers='whole'"),
        ("D2KE, scaled", r"the distance DTW\(\) cannot be in float32"),
        ("n-grams", r"NGramEncoder\(.*\) computes nothing in float32; take numbers='whole'"),
    ],
)
def test_what_cannot_be_in_float32_is_named(name, message):
    model, X = example(name)
    with pytest.raises(TypeError, match=message):
        sm.quantise(model, X, numbers="float")


def test_numbers_are_whole_or_float(tmp_path):
    model, X = example("vectors")
    with pytest.raises(ValueError, match="numbers must be 'whole' or 'float', got 'double'"):
        sm.quantise(model, X, numbers="double")
    with pytest.raises(ValueError, match="model must be a pipeline, or quantised with numbers='float', got a model of"):
        sm.export_c(sm.quantise(model, X), tmp_path, X, numbers="float")
    floats = sm.quantise(model, numbers="float")
    with pytest.raises(TypeError, match="the core has no floating point; quantise the model with numbers='whole'"):
        sm.export_verilog(floats, tmp_path, X)
    assert not [*tmp_path.iterdir()]
    with pytest.raises(ValueError, match=r"X\[1\] holds 1e\+39 in column 3, expected numbers of float32; scale"):
        floats.predict(np.where(np.arange(24).reshape(2, 12) == 15, 1e39, 0))
    with pytest.raises(
        ValueError, match=r"products of counts may reach \d+, above 32 bits; quantise with smaller objects"
    ):
        sm.quantise(example("gappy k-mers")[0], max_length=2**31 - 1, numbers="float")


# ---- near the model before


@pytest.mark.parametrize("name", MAKERS)
def test_codes_and_labels_are_near_those_of_the_model(name):
    small, X = quantised(name)
    model, _ = example(name)
    loss = small.loss(X, model.predict(X))
    assert loss.bits > 0.985
    assert loss.labels >= 0.9
    assert loss.before == 1
    assert loss.after == loss.labels
    assert "of the bits and" in str(loss)
    assert small.transform(X).shape == (len(X), small.n_bits // 8)


@pytest.mark.parametrize("bits", [8, 4, 1])
def test_scores_are_those_of_the_classifier_in_whole_units(bits):
    codes = np.random.default_rng(0).integers(0, 256, (50, 32), np.uint8)
    y = np.arange(50) % 3
    model = sm.HDClassifier("ridge", prototype_bits=bits).fit(codes, y)
    R, factors, intercepts, found = model.in_integers()
    assert found == bits
    assert np.abs(R).max() == {8: 127, 4: 7, 1: 1}[bits]
    scores = (2.0 * np.unpackbits(codes, axis=1) - 1) / 16 @ (R * factors[:, None]).T + intercepts
    np.testing.assert_allclose(scores, model.decision_function(codes), atol=1e-12)
    prototypes = Prototypes.of(R, factors / 16, intercepts, bits)
    np.testing.assert_allclose(prototypes(codes) * prototypes.unit, scores, atol=1e-6)


@pytest.mark.parametrize(
    "steps",
    [[StandardScaler()], [StandardScaler(with_mean=False)], [MinMaxScaler()], [MaxAbsScaler()], [PCA(4)],
     [StandardScaler(), PCA(4, whiten=True)], [FeatureScaler()], []],
    ids=str,
)  # fmt: skip
def test_steps_before_the_projection_are_part_of_the_coordinates(steps):
    X = np.random.default_rng(0).normal(size=(80, 6)) * [1, 10, 100, 1, 1, 1] + 5
    y = (X[:, 0] > 5).astype(int)
    names = [(str(i), step) for i, step in enumerate(steps)]
    model = sm.Pipeline([*names, ("signs", sm.SignRandomProjection(400, random_state=0)), ("c", sm.HDClassifier())])
    assert sm.quantise(model.fit(X, y), X).loss(X).bits > 0.99


@pytest.mark.parametrize("numbers", ["whole", "float"])
def test_whitened_coordinates_without_variance_are_zero(numbers):
    X = np.random.default_rng(0).normal(size=(40, 3)) * [3, 0, 1]
    model = make_pipeline(PCA(whiten=True), sm.SignRandomProjection(400, random_state=0)).fit(X)
    assert sm.quantise(model, X, numbers=numbers).loss(X).bits > 0.99


def test_factors_are_finite_and_shifts_stay_below_64():
    linear = Linear.of(np.array([[1.0], [2.0**-70]]), np.zeros(2), 100)
    assert linear.shifts.tolist() == [0, 63]
    for make in (lambda A, c: Linear.of(A, c, 100), FloatLinear.of):
        for A, c in (([[1.0], [np.inf]], [0.0, 0.0]), ([1.0, 2.0], [0.0, np.nan])):
            with pytest.raises(ValueError, match="coordinate 1 has a factor or offset that is not finite"):
                make(np.array(A), np.array(c))


def test_small_eigenvalues_get_wider_factors():
    X = np.random.default_rng(0).normal(size=(300, 3))
    model = sm.recipes.nyshd(sm.kernels.RBF(0.1), 120, 400, random_state=0).fit(X, X[:, 0] > 0)
    small = sm.quantise(model, X)
    assert np.abs(small.linear.A).max() > 2**15
    assert small.loss(X).bits > 0.99


def test_without_a_classifier_there_are_codes_only():
    X = np.random.default_rng(0).normal(size=(30, 5))
    small = sm.quantise(sm.Pipeline([("signs", sm.SignRandomProjection(80, random_state=0))]).fit(X), X)
    assert small.loss(X).labels is None
    assert "codes only" in repr(small)
    with pytest.raises(AttributeError, match="ends with codes and has no classes"):
        small.predict(X)


def test_hadamard_needs_no_projection_matrix():
    dense, light = (quantised(name)[0] for name in ("gappy k-mers", "spectrum, hadamard"))
    assert sizes_of(light)["flips"] == 2 * (32 + 2 * 256) // 8  # two blocks; the first product has 30 coordinates
    assert sizes_of(dense)["projection"] == 264 * len(dense.linear.A)
    assert dense.n_bytes == sum(sizes_of(dense).values())


# ---- what is refused


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nystroem__kernel": sm.kernels.Mismatch(3)}, "the kernel Mismatch.* cannot be quantised; Spectrum, Gap"),
        ({"nystroem__kernel": sm.kernels.Spectrum(3, boundaries="words")}, "the kernel Spectrum.* cannot be quantised"),
        ({"nystroem__kernel": sm.kernels.DistanceRBF(sm.distances.Hamming())}, "the distance Hamming.* cannot be"),
        ({"classifier": RidgeClassifier()}, "makes codes or labels by RidgeClassifier.* cannot be quantised, exp"),
    ],
)  # fmt: skip
def test_what_cannot_be_quantised_is_named(change, message):
    X = ["ACGT", "AACC", "GGTT", "TTAA", "ACAC", "GTGT"] * 2
    model = sm.recipes.nyshd(sm.kernels.Spectrum(2), 6, 80, random_state=0).set_params(**change)
    with pytest.raises(TypeError, match=message):
        sm.quantise(model.fit(X, [0, 1] * 6))


def test_sets_of_labels_stay_behind():
    X = ["ACGT", "AACC", "GGTT", "TTAA", "ACAC", "GTGT"] * 4
    model = sm.ConformalClassifier(sm.recipes.nyshd(sm.kernels.Spectrum(2), 6, 80, random_state=0), random_state=0)
    with pytest.raises(
        TypeError, match=r"sets of labels, which cannot be quantised; give model\.estimator_, .*or fit without"
    ):
        sm.quantise(model.fit(X, [0, 1] * 12))
    np.testing.assert_array_equal(sm.quantise(model.estimator_).predict(X), model.predict(X))


def test_a_step_that_is_not_linear_is_named():
    X = np.random.default_rng(0).normal(size=(30, 5))
    model = sm.Pipeline([("n", Normalizer()), ("signs", sm.SignRandomProjection(80))]).fit(X)
    with pytest.raises(TypeError, match=r"the step Normalizer\(\) cannot be quantised; StandardScaler"):
        sm.quantise(model, X)
    with pytest.raises(ValueError, match="X must be objects such as the training objects, since"):
        sm.quantise(sm.Pipeline([("signs", sm.SignRandomProjection(80))]).fit(X))


def test_an_unfitted_model_is_named():
    for model, name in (
        (sm.recipes.nyshd(sm.kernels.Spectrum(2)), "Nystroem -> SignRandomProjection -> HDClassifier"),
        (sm.AutoClassifier(), "AutoClassifier"),
    ):
        with pytest.raises(NotFittedError) as raised:
            sm.quantise(model)
        assert str(raised.value) == f"model ({name}) is not fitted; fit it first: model.fit(X, y)"


def test_a_chosen_pipeline_is_refused_with_a_model_to_take_instead():
    class Chosen(BaseEstimator):
        def fit(self, X, y):
            self.best_estimator_ = sm.Pipeline(
                [("n", sm.Nystroem(sm.kernels.Spectrum(2), 4)), ("s", RidgeClassifier())]
            )
            self.best_estimator_.fit(X, y)
            return self

    with pytest.raises(TypeError, match=r"labels by RidgeClassifier\(\).*; similia\.recipes\.nyshd\(kernel\)\.fit"):
        sm.quantise(Chosen().fit(["ACGT", "AACC", "GGTT", "TTAA"] * 3, [0, 1, 0, 1] * 3))


def test_a_normalised_kernel_and_a_scaler_exclude_each_other():
    X = ["ACGT", "AACC", "GGTT", "TTAA", "ACAC", "GTGT"] * 2
    steps = [("n", sm.Nystroem(sm.kernels.Spectrum(2, normalize=True), 6)), ("s", StandardScaler())]
    model = sm.Pipeline([*steps, ("signs", sm.SignRandomProjection(80))]).fit(X)
    with pytest.raises(TypeError, match=r"StandardScaler\(\) after a kernel with normalize=True cannot be quantised"):
        sm.quantise(model)


@pytest.mark.parametrize(
    ("name", "bad", "message"),
    [
        ("gappy k-mers", ["ACGT", "ACGT" * 40], r"X\[1\] has 160 letters, expected at most 39; quantise with a "),
        ("gappy k-mers", ["ACXT"], r"X\[0\] holds 'X' at position 2, expected letters among 'ACGT'; quant"),
        ("edit distances", ["ACXT"], r"X\[0\] holds 'X'"),
        ("DTW", [np.ones((30, 1))], r"X\[0\] has 30 points, expected at most 24"),
        ("DTW", [np.ones((3, 2))], "X has series of 2 channels, expected 1 as in training"),
        ("DTW", [[1.0], [1.0, 1e9]], r"X\[1\] holds 1e\+09"),
        ("vectors", np.ones((2, 5)), "5"),
        ("vectors", np.full((1, 12), 1e9), r"X\[0\] holds 1e\+09 in column 0"),
        ("graphs", [(np.zeros((2, 0), int), 4)], "X has no node_labels"),
    ],
)  # fmt: skip
def test_objects_beyond_the_bounds_are_named(name, bad, message):
    small, _ = quantised(name)
    with pytest.raises(ValueError, match=message):
        small.predict(bad)


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("gappy k-mers", "letters"),
        ("edit distances", "letters"),
        ("n-grams", "letters"),
        ("DTW", "points"),
        ("D2KE, scaled", "points"),
        ("sequences", "points"),
        ("graphs", "nodes"),
    ],
)
def test_a_bound_below_the_longest_object_is_refused(name, unit):
    model, X = example(name)
    lengths = np.diff(X.node_offsets) if unit == "nodes" else np.array([len(x) for x in X])
    most = int(lengths.max())
    assert sm.quantise(model, X, max_length=most).predict(X).shape == (len(lengths),)
    first = int(np.argmax(lengths == most))
    with pytest.raises(ValueError) as raised:
        sm.quantise(model, X, max_length=most - 1)
    expected = f"X[{first}] has {most} {unit}, expected at most {most - 1}; quantise with a larger max_length"
    assert str(raised.value) == expected
    if not isinstance(model[0], sm.NGramEncoder | sm.SequenceEncoder):
        with pytest.raises(ValueError, match=rf"landmarks\[\d+\] has \d+ {unit}, expected at most 1; "):
            sm.quantise(model, max_length=1)


def test_the_distance_is_that_of_fit():
    model, X = example("D2KE, scaled")
    model = deepcopy(model)
    before = sm.quantise(model, X).transform(X)
    np.testing.assert_array_equal(sm.quantise(model.set_params(d2ke__distance__window=0), X).transform(X), before)


@pytest.mark.parametrize("name", ["vectors", "Gaussian", "levels", "DTW"])
def test_bounds_that_objects_do_not_have_are_refused(name):
    model, X = example(name)
    with pytest.raises(ValueError, match="letters must be left out for objects that are not strings, got 'N'"):
        sm.quantise(model, X, letters="N")
    if name != "DTW":
        with pytest.raises(ValueError, match="max_length must be left out for vectors, which have one length, got 9"):
            sm.quantise(model, X, max_length=9)


@pytest.mark.parametrize("name", MAKERS)
def test_only_models_without_objects_need_some(name):
    model, _ = example(name)
    if any(isinstance(step, sm.Nystroem | sm.D2KE) for _, step in model.steps):
        landmarks = getattr(model[0], "landmarks_", getattr(model[0], "random_objects_", None))
        assert len(sm.quantise(model).predict(landmarks)) == len(landmarks)
    else:
        with pytest.raises(ValueError, match="X must be objects such as the training objects"):
            sm.quantise(model)


@pytest.mark.parametrize("numbers", ["whole", "float"])
@pytest.mark.parametrize("scalers", [[], [StandardScaler()]])
def test_vectors_of_another_length_are_refused(numbers, scalers):
    X = np.random.default_rng(0).normal(size=(30, 10))
    model = make_pipeline(*scalers, sm.SignRandomProjection(64, random_state=0)).fit(X)
    with pytest.raises(ValueError, match=r"X has 5 features, but .* expect.* 10"):
        sm.quantise(model, X[:, :5], numbers=numbers)


def test_labels_of_another_number_are_refused():
    small, X = quantised("gappy k-mers")
    with pytest.raises(ValueError, match="y has 3 labels for 60 objects; give one label per object"):
        small.loss(X, [0, 1, 0])
    assert small.loss(X, small.predict(X)).after == 1


@pytest.mark.parametrize("numbers", ["whole", "float"])
@pytest.mark.parametrize("name", ["gappy k-mers", "edit distances", "Gaussian", "vectors"])
def test_the_hint_is_true(name, numbers):
    model, X = example(name)
    directions = next(step for step, of in model.steps if isinstance(of, sm.SignRandomProjection))
    small = sm.quantise(model, X, numbers=numbers)
    other = clone(model).set_params(**{f"{directions}__method": "hadamard"}).fit(X, small.predict(X))
    hadamard_too = sm.quantise(other, X, numbers=numbers)
    saved = sizes_of(small)["projection"] - sizes_of(hadamard_too)["flips"]
    assert hadamard_too.hint == ""
    assert saved > 0
    assert f" {saved} bytes less " in small.hint


def test_the_hint_is_empty_if_a_matrix_is_smaller():
    X = np.random.default_rng(0).normal(size=(30, 5))
    for n_bits, more in ((8, False), (256, True)):  # Hadamard products make 256 bits at least
        small = sm.quantise(sm.Pipeline([("signs", sm.SignRandomProjection(n_bits, random_state=0))]).fit(X), X)
        assert bool(small.hint) == more


def test_graphs_that_are_too_large_are_named():
    small, X = quantised("graphs without labels")
    large = (np.array([[0, 1], [1, 0]]), 40)
    with pytest.raises(ValueError, match="has 40 nodes, expected at most 11"):
        small.predict([large])
    model, _ = example("graphs without labels")
    assert sm.quantise(model, X, max_length=40).predict([large]).shape == (1,)


def test_a_smaller_graph_may_have_more_arcs_per_node():
    paths = [(np.array([[*range(n - 1), *range(1, n)], [*range(1, n), *range(n - 1)]]), n) for n in (8, 9, 10, 10)]
    model = sm.recipes.nyshd(sm.kernels.WeisfeilerLehman(), 3, 64, random_state=0).fit(paths, [0, 1, 0, 1])
    complete = (np.argwhere(~np.eye(5, dtype=bool)).T, 5)
    assert sm.quantise(model, [complete], max_length=5).predict([complete]).shape == (1,)


def test_an_encoder_is_copied_and_its_output_is_an_array():
    X = np.random.default_rng(0).normal(size=(30, 3))
    encoder = sm.LevelEncoder(n_bits=64, random_state=0).set_output(transform="pandas").fit(X)
    small = sm.quantise(make_pipeline(encoder), X)
    before = small.transform(X)
    assert small.loss(X).bits == 1
    encoder.set_params(random_state=1).fit(X)
    np.testing.assert_array_equal(small.transform(X), before)
    assert type(before) is np.ndarray


def test_numbers_in_one_dimension_are_one_column():
    x = np.random.default_rng(0).normal(size=40)
    model = make_pipeline(sm.LevelEncoder(n_bits=64, random_state=0)).fit(x)
    small = sm.quantise(model, x)
    np.testing.assert_array_equal(small.transform(x), small.transform(x[:, None]))
    assert small.loss(x).bits == small.loss(x[:, None]).bits > 0.99


@pytest.mark.parametrize("n_levels", [2, 3, 6, 11, 51])
@pytest.mark.parametrize("most", [2, 7, 10, 30, 100])
def test_whole_numbers_have_the_codes_of_the_encoder(n_levels, most):
    X = np.random.default_rng(0).integers(-3, most - 2, (40, 3, 2))
    for encoder, objects in (
        (sm.LevelEncoder(n_levels, 64, random_state=0), X[:, 0]),
        (sm.SequenceEncoder(n_levels, 2, 64, random_state=0), list(X)),
    ):
        small = sm.quantise(make_pipeline(encoder).fit(objects), objects)
        np.testing.assert_array_equal(small.transform(objects), encoder.transform(objects))


def test_columns_in_another_order_are_refused():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=list("abc"))
    other = frame[["c", "b", "a"]]
    for model, numbers in (
        (make_pipeline(sm.LevelEncoder(9, 64, random_state=0)), "whole"),
        (make_pipeline(StandardScaler(), sm.SignRandomProjection(64, random_state=0)), "whole"),
        (make_pipeline(sm.SignRandomProjection(64, random_state=0)), "float"),
        (make_pipeline(sm.Nystroem(sm.kernels.RBF(), 8), sm.SignRandomProjection(64, random_state=0)), "whole"),
    ):
        small = sm.quantise(model.fit(frame), frame, numbers=numbers)
        assert small.loss(frame).bits > 0.97
        for refuse in (model.transform, small.transform, lambda X, of=model, n=numbers: sm.quantise(of, X, numbers=n)):
            with pytest.raises(ValueError, match=r"in another order|in the same order"):
                refuse(other)


@pytest.mark.parametrize("name", ["DTW", "sequences"])
def test_series_that_are_not_finite_are_named(name):
    small, _ = quantised(name)
    bad = sm.objects.SeriesBatch(np.full((5, small.input.n_channels), np.nan), np.array([0, 2, 5]))
    for refuse in (small.model.predict, small.predict, lambda X: sm.quantise(small.model, X)):
        with pytest.raises(ValueError, match=r"X\[0\], time point 0, channel 0 is nan, expected a finite number"):
            refuse(bad)


@pytest.mark.parametrize("shift", [1e5, 1e6])
@pytest.mark.parametrize("after", [[], [PCA()]], ids=str)
def test_a_column_that_rounding_hides_is_left_out(shift, after):
    X = np.random.default_rng(0).normal(size=(300, 5)) + np.array([0, 0, shift, 0, 0])
    steps = [StandardScaler(), *after, sm.SignRandomProjection(400, random_state=0)]
    assert sm.quantise(make_pipeline(*steps).fit(X), X).loss(X).bits > 0.84  # four columns are left


def test_a_column_that_is_whitened_from_almost_nothing_is_left_out():
    X = np.c_[np.random.default_rng(0).normal(size=(300, 4)), np.full(300, 7.1)]
    model = make_pipeline(PCA(whiten=True), sm.SignRandomProjection(400, random_state=0)).fit(X)
    assert model[0].explained_variance_[-1] > 0
    assert sm.quantise(model, X).loss(X).bits > 0.99


def test_a_column_of_zeros_is_kept():
    X = np.c_[np.random.default_rng(0).normal(size=(40, 3)), np.zeros(40)]
    small = sm.quantise(make_pipeline(sm.SignRandomProjection(64, random_state=0)).fit(X), X)
    assert small.linear.A.all()


def test_letters_without_complement_are_refused():
    model, X = example("spectrum, both strands")
    with pytest.raises(ValueError, match="letters holds 'X' at position 1, which has no complement; reverse_comp"):
        sm.quantise(model, X, letters="NX")


def test_letters_and_lengths_may_be_given():
    model, X = example("gappy k-mers")
    small = sm.quantise(model, max_length=500, letters="NX")
    assert small.predict(["ACGTNX" * 80]).shape == (1,)
    with pytest.raises(ValueError, match="takes more than a byte"):
        sm.quantise(model, X, letters="\u4e00")
