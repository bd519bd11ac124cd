"""The heat kernel on the sphere: reference values, the stated bounds, laws, gradient, warnings and refusals."""

import csv
import math
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from naive import heat as naive_heat
from similia.kernels import heat as _heat
from similia.kernels.heat import HypersphericalHeat, heat_profile, suggest_contrast
from similia.kernels.hypersphere import to_hypersphere, versines

REFERENCE = Path(__file__).parents[1] / "reference" / "A_heat_kernel.csv"
SERIES, TABLE = 2e-14, 2e-13  # the errors that the module states
laws = settings(max_examples=40, deadline=None)
quiet = pytest.mark.filterwarnings("ignore:t = :UserWarning")
UNIT = st.floats(0, 1)


def reference_rows(path=REFERENCE):
    """{(n, t): [(1 - cos, K), ...]}; the cosines are dyadic, so that the versines are exact."""
    rows = defaultdict(list)
    with path.open() as file:
        for row in csv.DictReader(file):
            rows[int(row["n"]), float(row["t"])].append((1 - float(row["cos_theta"]), float(row["K"])))
    return rows


def reach(n, t):
    """The versine at which the table of the kernel ends."""
    look_up = _heat.table(n, t)
    return min(2.0, len(look_up.coefficients) / look_up.per_unit)


@st.composite
def spheres(draw):
    """(n, t): any t from 1e-4 to 10, or a contrast as they are searched."""
    n = round(10 ** draw(st.floats(math.log10(2), 6)))
    if draw(st.booleans()):
        return n, 10 ** draw(st.floats(-4, 1))
    return n, _heat.time_of(min(10 ** draw(st.floats(-3, 2)), n / 1.1), n)


def counts(n, d, seed=0):
    return np.random.default_rng(seed).poisson(0.7, size=(n, d)) + np.eye(n, d)


# ---- values


@quiet
def test_reference_values_by_series_and_by_table():
    rows = reference_rows()
    assert len(rows) == 102
    for (n, t), values in rows.items():
        u, expected = np.array(values).T
        np.testing.assert_allclose(heat_profile(u, n, t), expected, rtol=0, atol=SERIES)
        many = heat_profile(np.tile(u, 600), n, t).reshape(600, -1)
        np.testing.assert_allclose(many[0], expected, rtol=0, atol=TABLE)
        np.testing.assert_array_equal(many, np.broadcast_to(many[0], many.shape))


@laws
@given(sphere=spheres(), places=st.lists(UNIT, min_size=1, max_size=3))
@example(sphere=(2, 1e-4), places=[0.5])
@example(sphere=(100_000, 1e-5), places=[0.1])
def test_kernel_and_gradient_against_their_definition(sphere, places):
    n, t = sphere
    for u in [*(2 * p for p in places), *(reach(n, t) * p for p in places)]:
        kernel, gradient, scale = naive_heat.heat_kernel_and_gradient(u, n, t)
        one = np.array([u])
        assert abs(_heat.series(n, t).at(one)[0] - kernel) <= SERIES
        assert abs(_heat.evaluate(_heat.table(n, t), one.copy())[0] - kernel) <= TABLE
        assert (
            abs(_heat.gradient_series(n, t).at(one)[0] - gradient) <= SERIES * scale + 1e-30
        )  # the twin has 48 digits
        assert abs(_heat.evaluate(_heat.gradient_table(n, t), one.copy())[0] - gradient) <= TABLE * scale + 1e-30


@quiet
@laws
@given(t=st.floats(1e-6, 1), place=UNIT)
def test_circle_is_a_wrapped_gaussian(t, place):
    for u in (2 * place, 2 * t * place):
        assert abs(heat_profile(u, 2, t) - naive_heat.circle_by_images(u, t)) <= SERIES


def test_table_keeps_its_bound_everywhere():
    for n, t in reference_rows():
        random = np.random.default_rng(0)
        u = np.concatenate([2 * random.random(100), reach(n, t) * random.random(200)])
        by_series = np.clip(_heat.series(n, t).at(u), 0, 1)
        np.testing.assert_allclose(_heat.evaluate(_heat.table(n, t), u), by_series, rtol=0, atol=1.6e-13)


def test_bound_of_derivatives_is_that_of_the_polynomials():
    series = _heat.series(3, 0.05)  # n = 3: Legendre polynomials, in numpy
    legendre = np.polynomial.Legendre(series.weights)
    x = np.linspace(-1, 1, 1001)
    for k in (1, 2, 8):
        values = legendre.deriv(k)(x)
        np.testing.assert_allclose(series.derivative(k), values[-1], rtol=1e-9)
        assert np.abs(values).max() <= series.derivative(k) * (1 + 1e-9)


@pytest.mark.parametrize("t", [1e-3, 0.02, 0.3, 2.0])
@pytest.mark.parametrize(
    ("n", "dimension"), [(2, lambda l: 2 - (l == 0)), (3, lambda l: 2 * l + 1), (4, lambda l: (l + 1) ** 2)]
)
def test_weights_of_low_dimensions(n, dimension, t):
    first, w = _heat.weights(n, t)
    l = np.arange(first, first + len(w))
    expected = dimension(l) * np.exp(-l * (l + n - 2) * t)
    np.testing.assert_allclose(w, expected / expected.sum(), rtol=1e-12)
    assert first == 0
    beyond = first + len(w)
    assert dimension(beyond) * np.exp(-beyond * (beyond + n - 2) * t) < 2.0**-58 * expected.sum()


@pytest.mark.parametrize("n", [2, 7, 1312, 100_000])
def test_contrast_is_the_ratio_of_the_first_two_weights(n):
    for contrast in (0.25, 1.0, 1.9):
        first, w = _heat.weights(n, _heat.time_of(contrast, n))
        assert first == 0
        assert w[1] / w[0] == pytest.approx(contrast, rel=1e-12)
        assert _heat.contrast_of(_heat.time_of(contrast, n), n) == pytest.approx(contrast, rel=1e-10)


@quiet
@laws
@given(sphere=spheres())
def test_profile_falls_from_one_and_stays_in_zero_to_one(sphere):
    u = np.sort(np.concatenate([np.linspace(0, 2, 700), reach(*sphere) * np.linspace(0, 1, 700)]))
    K = heat_profile(u, *sphere)
    assert K[0] == 1.0
    assert K.min() >= 0
    assert K.max() <= 1
    assert np.diff(K).max() <= 2 * TABLE


def test_values_do_not_depend_on_where_they_stand():
    u = 2 * np.random.default_rng(0).random(200_000)
    look_up = _heat.table(50, 0.02)
    together = _heat.evaluate(look_up, u.copy())  # in threads
    for start, stop in ((0, 1), (1, 8), (13, 1000), (65_535, 65_539), (100_001, 200_000)):
        np.testing.assert_array_equal(_heat.evaluate(look_up, u[start:stop].copy()), together[start:stop])
    nodes = _heat.series(50, 0.02).at(u[:1000])
    np.testing.assert_array_equal(
        np.concatenate([_heat.series(50, 0.02).at(u[i : i + 1]) for i in range(100)]), nodes[:100]
    )


def test_sums_are_compensated():
    series = _heat.series(100_000, 1e-6)
    assert len(series.weights) > 9000
    assert abs(series.at(np.zeros(1))[0] - 1) <= 2.3e-16


def test_table_ends_clips_and_leaves_other_layouts():
    look_up = _heat.Table(np.array([[0.5, -1.0, *[0.0] * 6], [2.0, *[0.0] * 7]]), per_unit=1.0, least=0.0, most=1.0)
    u = np.array([0.0, 0.25, 0.75, 1.0, 2.0, -1e-17])
    np.testing.assert_array_equal(_heat.evaluate(look_up, u), [0.5, 0.25, 0.0, 1.0, 1.0, 0.5])
    V = np.asfortranarray(2 * np.random.default_rng(0).random((5, 3)))
    look_up = _heat.table(5, 0.2)
    np.testing.assert_array_equal(
        _heat.evaluate(look_up, V.copy(order="F")), _heat.evaluate(look_up, V.copy(order="C"))
    )


def test_profile_keeps_shape_and_input():
    u = np.linspace(0, 2, 6, dtype=np.float32).reshape(2, 3)
    before = u.copy()
    K = heat_profile(u, 5, 0.2)
    assert K.shape == (2, 3)
    assert K.dtype == np.float64
    np.testing.assert_array_equal(u, before)
    assert heat_profile(0.5, 5, 0.2).shape == ()
    assert heat_profile([], 5, 0.2).shape == (0,)
    assert heat_profile(0.0, 1_000_000, 7e-6) == 1.0  # the series: 1 - 1e-16
    before = 2 * np.random.default_rng(0).random((40, 40))
    for order in "CF":
        u = before.copy(order=order)
        np.testing.assert_allclose(heat_profile(u, 5, 0.2)[3], heat_profile(u[3], 5, 0.2), rtol=0, atol=TABLE)
        np.testing.assert_array_equal(u, before)
    np.testing.assert_array_equal(heat_profile([-1e-12, 2 + 1e-12], 5, 0.2), heat_profile([0.0, 2.0], 5, 0.2))


# ---- the kernel


@laws
@given(
    seed=st.integers(0, 2**32 - 1),
    d=st.integers(3, 40),
    contrast=st.sampled_from([0.25, 1.0, 2.5]),
    signed=st.booleans(),
)
def test_kernel_laws(seed, d, contrast, signed):
    random = np.random.default_rng(seed)
    X = random.standard_normal((12, d)) if signed else random.gamma(0.3, size=(12, d)) + 1e-3
    X[1] = X[0]
    before = X.copy()
    kernel = HypersphericalHeat(contrast)
    K = kernel(X)
    U = X / np.linalg.norm(X, axis=1)[:, None] if signed else np.sqrt(X / X.sum(axis=1)[:, None])
    expected = heat_profile(np.clip(1 - U @ U.T, 0, 2), d, math.log(d / contrast) / (d - 1))
    np.testing.assert_allclose(K, expected, rtol=0, atol=2e-13 + 64 * 1e-15)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(K.diagonal(), 1.0)
    assert K[0, 1] == 1.0
    np.testing.assert_array_equal(kernel.diag(X), np.ones(12))
    assert np.linalg.eigvalsh(K).min() >= -12 * TABLE
    np.testing.assert_allclose(kernel(X[:5], X), K[:5], rtol=0, atol=1e-13)
    np.testing.assert_array_equal(X, before)


def test_time_goes_before_contrast_and_parameters_are_found():
    X = counts(6, 9)
    by_time = HypersphericalHeat(contrast=100, t=_heat.time_of(3.0, 9))
    np.testing.assert_array_equal(by_time(X), HypersphericalHeat(contrast=3.0)(X))
    assert clone(HypersphericalHeat(contrast=2.0)).get_params() == {
        **{"contrast": 2.0, "t": None, "mapping": "auto", "zero_rows": "raise"}
    }


@pytest.mark.parametrize("mapping", ["sqrt", "projection"])
def test_sparse_and_float32_rows(mapping):
    X = counts(30, 300).astype(np.float32)
    X[3] = X[4] * (1 + 1e-4)
    kernel = HypersphericalHeat(contrast=8.0, mapping=mapping)
    exact = kernel(X.astype(np.float64))
    assert kernel(X).dtype == np.float64
    np.testing.assert_allclose(kernel(X), exact, rtol=0, atol=8 * 1e-6)  # slope times rounding of float32 cosines
    np.testing.assert_allclose(kernel(sp.csr_array(X.astype(np.float64))), exact, rtol=0, atol=1e-12)


def test_features_that_nobody_uses_count():
    X = counts(5, 6)
    padded = np.hstack([X, np.zeros((5, 6))])
    t = 0.2
    assert np.abs(HypersphericalHeat(t=t)(X) - HypersphericalHeat(t=t)(padded)).max() > 0.01


def test_gradient():
    X, t, step = counts(9, 7), 0.15, 1e-5
    kernel = HypersphericalHeat(t=t)
    G = kernel.gradient(X)
    V = versines(to_hypersphere(X))
    for i, j in ((0, 1), (2, 5), (3, 3)):
        expected = naive_heat.heat_kernel_and_gradient(V[i, j], 7, t)[1]
        assert G[i, j] == pytest.approx(expected, rel=1e-11, abs=1e-12)
    np.testing.assert_array_equal(G.diagonal(), 0.0)
    difference = (HypersphericalHeat(t=t + step)(X) - HypersphericalHeat(t=t - step)(X)) / (2 * step)
    np.testing.assert_allclose(G, difference, rtol=0, atol=1e-7)
    np.testing.assert_allclose(kernel.gradient(X[:4], X), G[:4], rtol=0, atol=1e-11)


# ---- choosing the contrast


def test_suggested_contrast_puts_the_median_pair_at_one_over_e():
    X = counts(60, 200)
    V = versines(to_hypersphere(X))
    median = np.median([V[i, j] for i in range(60) for j in range(i)])
    contrast = suggest_contrast(X)
    assert math.exp(-contrast * median) == pytest.approx(1 / math.e)
    assert suggest_contrast(sp.csr_array(X)) == pytest.approx(contrast)
    some = [suggest_contrast(X, max_objects=20, random_state=seed) for seed in (0, 0, 1)]
    assert some[0] == some[1] != some[2]
    assert some == pytest.approx([contrast] * 3, rel=0.2)


def test_suggested_contrast_stays_in_the_range_of_a_search():
    assert suggest_contrast(np.ones((5, 1000))) == 64
    assert suggest_contrast(np.ones((5, 10))) == 5
    assert suggest_contrast([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]) <= 1
    X = np.vstack([np.ones(50), -np.ones(50)])
    assert suggest_contrast(X) == 0.5
    with pytest.raises(ValueError, match="X has 1 row, expected at least 2"):
        suggest_contrast([[1.0, 2.0]])


# ---- warnings and refusals


def test_extreme_times_are_said_once():
    X = counts(4, 500)
    X[1] = X[0]
    for t, what in ((0.1, "too large: the contrast is 1.1e-19"), (1e-6, r"too small: .* 5e\+05 per unit")):
        with pytest.warns(
            UserWarning, match=f"t = {t:g} for n = 500 features is {what}.*a contrast of 1 is t = 0.01245"
        ):
            heat_profile([0.5], 500, t)
        with pytest.warns(UserWarning, match=f"t = {t:g} for n = 500 features is {what}") as caught:
            HypersphericalHeat(t=t)(X)
        assert all(warning.filename == __file__ for warning in caught)
        with pytest.warns(UserWarning, match=f"t = {t:g} for n = 500 features is {what}") as caught:
            HypersphericalHeat(t=t).gradient(X)
        assert caught[0].filename == __file__
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for t in (0.2, 0.2, 0.3):
            heat_profile([0.5], 500, t)
    assert len(caught) == 2


def test_gram_matrix_that_is_the_identity_is_said():
    X = np.eye(5, 200)
    with pytest.warns(UserWarning, match="the kernel is 0 between all of them") as caught:
        HypersphericalHeat(contrast=60.0)(X)
    assert caught[0].filename == __file__
    X[1, 0] = 1
    HypersphericalHeat(contrast=60.0)(X)
    HypersphericalHeat(contrast=60.0)(np.eye(4, 200)[:2], np.eye(4, 200)[2:])  # of two sets it is no surprise


def test_profile_refuses_what_is_no_versine():
    with pytest.raises(ValueError, match=r"one_minus_cos\[1, 0\] is -0.5, expected 1 - cos\(angle\) in \[0, 2\]"):
        heat_profile([[0.0], [-0.5]], 3, 0.1)
    with pytest.raises(ValueError, match=r"one_minus_cos is 2\.1, expected"):
        heat_profile(2.1, 3, 0.1)
    with pytest.raises(ValueError, match=r"one_minus_cos\[0\] is nan"):
        heat_profile([np.nan], 3, 0.1)
    with pytest.raises(ValueError, match="n must be an integer >= 2, got 1"):
        heat_profile([0.5], 1, 0.1)
    for t in (0, -1.0, np.inf, np.nan, "1"):
        with pytest.raises(ValueError, match="t must be a positive number, got"):
            heat_profile([0.5], 3, t)
    for n, t in ((2, 1e-14), (3, 1e-300), (1_000_000, 1e-8)):
        with pytest.raises(ValueError, match=f"t = {t:g} is too small for n = {n} features: the series needs degrees"):
            heat_profile([0.5], n, t)


def test_kernel_refuses_contrasts_without_a_time():
    X = counts(3, 4)
    with pytest.raises(
        ValueError, match=r"contrast must be below the number of features, 4, got 4; use .* such as 1, .* t=0.1"
    ):
        HypersphericalHeat()(X)
    with pytest.raises(ValueError, match="contrast must be a positive number, got 0"):
        HypersphericalHeat(contrast=0)(X)
    with pytest.raises(ValueError, match="t must be a positive number, got -1"):
        HypersphericalHeat(t=-1).gradient(X)


@pytest.mark.parametrize(
    ("n", "t", "u", "expected"),  # 1 - K by mpmath, 40 digits, from the ratios of the weights and the recurrence of P_l
    [
        (770_929, 1.25e-6, 1e-16, 2.8053975218474995e-11),
        (770_929, 1.25e-6, 1e-17, 2.805397521882916e-12),
        (770_929, 1.25e-6, 1e-13, 2.805397482535615e-08),
        (100_000, 1e-5, 1e-16, 3.455270897470261e-12),
        (100_000, 1e-5, 1e-15, 3.455270897416537e-11),
        (100_000, 1e-5, 1e-9, 3.4552112041667506e-05),
        (1_000_000, 1e-6, 3e-16, 1.036574194444543e-10),
        (10, 1e-5, 1e-16, 4.9998666671875056e-12),
        (2, 1e-4, 1e-15, 4.999999999987501e-12),
    ],
)
def test_the_smallest_versines(n, t, u, expected):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so steep at 0 that the rounding of a cosine counts, which is not asked here
        found = heat_profile([u], n, t)[0]
        together = heat_profile([0.0, 1.9, u, 1e-3], n, t)[2]
    assert abs((1 - found) - expected) <= 1e-15
    assert together == found
