"""Random features of the heat kernel: the definition, no bias, the error's rate, the range and error of the table."""

import math
import pickle
from unittest.mock import patch

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import similia as sm
from naive import heat_features as naive
from similia.core import config as _threads
from similia.embeddings import heat_features as private
from similia.embeddings.heat_features import HeatRandomFeatures
from similia.kernels import heat as _heat
from similia.kernels.heat import HypersphericalHeat

laws = settings(max_examples=20, deadline=None)
SPHERES = [(2, 1e-3), (3, 1e-3), (4, 1e-3), (2, 0.3), (3, 0.3), (10, 0.01), (10, 0.1), (100, 0.0325), (100, 0.02)]
each_sphere = pytest.mark.parametrize(("n", "t"), SPHERES)


def unit_vectors(n_rows, n, seed=0):
    X = np.random.default_rng(seed).standard_normal((n_rows, n))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def at_cosines(cosines, n):
    """A first unit vector, and one at each cosine to it."""
    X = np.zeros((len(cosines) + 1, n))
    X[0, 0] = 1
    X[1:, 0], X[1:, 1] = cosines, np.sqrt(1 - np.square(cosines))
    return X


def quadrature(n, t, n_cells=400):
    """Nodes s in (0, 1) and their weights under rho; the range of the table is whole cells."""
    x, w = np.polynomial.legendre.leggauss(30)
    edge = math.acos(math.sqrt(-math.expm1(-120 * math.log(2) / (n - 1))))
    edges = np.linspace(edge, math.pi / 2, n_cells)
    if edge > 0:
        edges = np.concatenate([np.linspace(0, edge, n_cells)[:-1], edges])
    low, width = edges[:-1, None], np.diff(edges)[:, None]
    angle = (low + width * (x + 1) / 2).ravel()
    mass = (width * w).ravel() * np.exp((n - 2) * np.log(np.sin(angle)))
    return np.cos(angle), mass / (2 * mass.sum()), angle < edge


# ---- the definition


@each_sphere
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_agrees_with_the_twin(n, t, dtype):
    X = unit_vectors(20, n, seed=1).astype(dtype)
    embedding = HeatRandomFeatures(10, t=t, mapping=None, random_state=0).fit(X)
    Z = embedding.transform(X)
    assert Z.shape == (20, 10)
    assert Z.dtype == dtype
    first, c = _heat.weights(n, t)
    degrees = range(first, first + len(c))  # the others, 2^-60 of the kernel, are 2^-30 of f
    expected = naive.heat_features(X.astype(float), embedding.directions_.astype(float), t, degrees)
    # The rounding of s = cos(angle), times the derivative, which is about l sqrt(l + n) but l^2 at s = 1.
    steepest = degrees[-1] ** 2 if n < 10 else degrees[-1] * math.sqrt(degrees[-1] + n)
    rounding = 1e-15 if dtype == np.float64 else 3e-7
    np.testing.assert_allclose(Z, expected, rtol=0, atol=1e-12 + rounding * steepest)


def test_tends_to_fourier_features():
    n, a = 10**6, 4.0
    t = _heat.time_of(a, n)
    s = np.linspace(-4, 4, 50) / math.sqrt(n)
    first, c = _heat.weights(n, t)
    real, imaginary = private.series(s, n, first, np.sqrt(c))
    np.testing.assert_allclose(real + 1j * imaginary, np.exp(1j * math.sqrt(a * n) * s), atol=1e-3)


@pytest.mark.parametrize(("n", "t"), [*SPHERES, (3, 1e-5), (30, 1e-4), (300, 0.0075), (1000, 0.0055), (1000, 0.00275)])
def test_range_and_error_of_the_table(n, t):
    s, mass, beyond = quadrature(n, t, n_cells=400 if t > 1e-4 else 2000)
    first, c = _heat.weights(n, t)
    f = private.series(s, n, first, np.sqrt(c))
    squares = (f**2).sum(axis=0)
    assert abs(2 * (squares @ mass) - 1) < 1e-13  # orthonormal
    largest = squares[~beyond].max()
    assert largest < max(16.0, 1.01 / math.sqrt(t))
    # Where f is cut: 3 (tau + M^2 p).
    assert 3 * (2 * (squares * beyond) @ mass + largest * 2.0**-60) < 1e-15
    assert 2 * mass[beyond].sum() <= 2.0**-60
    found = np.empty((1, 2 * len(s)))
    table = private.table(n, t)
    private.look_up(s[None], table.coefficients, table.start, table.per_unit, table.root, found)
    error = ((found.reshape(2, -1) - f) ** 2).sum(axis=0)
    assert math.sqrt(2 * (error * ~beyond) @ mass) < 1e-12
    # And then it is constant: no feature is large, of a vector along a direction neither.
    at_end = np.empty((1, 2))
    private.look_up(np.ones((1, 1)), table.coefficients, table.start, table.per_unit, table.root, at_end)
    assert (at_end**2).sum() <= 1.01 * largest


# ---- estimates of the kernel


@each_sphere
@pytest.mark.parametrize("orthogonal", [False, True])
def test_unbiased(n, t, orthogonal):
    cosines = np.array([1.0, 0.95, 0.5, 0.0, -0.7])
    X = at_cosines(cosines, n)
    m = 40 if n < 50 else 120
    estimates = []
    for seed in range(250):
        Z = HeatRandomFeatures(m, t=t, mapping=None, orthogonal=orthogonal, random_state=seed).fit(X).transform(X)
        estimates.append(Z[1:] @ Z[0])
    standard_error = np.std(estimates, axis=0) / math.sqrt(len(estimates))
    error = np.abs(np.mean(estimates, axis=0) - naive.heat_kernel(cosines, n, t))
    assert (error < 4 * standard_error + 1e-12).all()


def test_error_falls_as_one_over_root_m():
    X = unit_vectors(30, 20)
    K = HypersphericalHeat(contrast=4.0, mapping=None)(X)
    sizes = np.array([64, 256, 1024, 4096])
    errors = []
    for m in sizes:
        squares = []
        for seed in range(8):
            Z = HeatRandomFeatures(m, mapping=None, orthogonal=False, random_state=seed).fit_transform(X)
            squares.append(np.mean((Z @ Z.T - K) ** 2))
        errors.append(math.sqrt(np.mean(squares)))
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert -0.56 < slope < -0.44


def test_variance():
    cosines = np.array([1.0, 0.9, 0.5, 0.0])
    X = at_cosines(cosines, 100)
    variance = {}
    for orthogonal in (False, True):
        estimates = []
        for seed in range(150):
            Z = HeatRandomFeatures(200, mapping=None, orthogonal=orthogonal, random_state=seed).fit(X).transform(X)
            estimates.append(Z[1:] @ Z[0])
        variance[orthogonal] = 100 * np.var(estimates, axis=0)
    fourier = (1 + np.exp(-16 * (1 - cosines))) / 2 - np.exp(-8 * (1 - cosines))  # the limit n -> infinity
    np.testing.assert_allclose(variance[False], fourier, rtol=0.4, atol=0.01)
    assert (variance[True] < [2e-4, 0.03, 0.42, 0.65]).all()
    # The same without phases, by quadrature at cosine 1: E f^4 - 1.
    s, mass, beyond = quadrature(100, _heat.time_of(4.0, 100))
    s, mass = np.append(s, -s), np.append(mass * ~beyond, mass * ~beyond)
    assert naive.f(s, 100, _heat.time_of(4.0, 100), phase=1) ** 4 @ mass > 1e4


def test_equal_vectors_in_many_dimensions():
    X = np.random.default_rng(0).dirichlet(np.ones(1000), 20).astype(np.float32)
    Z = HeatRandomFeatures(1000, random_state=0).fit_transform(X)
    np.testing.assert_allclose((Z**2).sum(axis=1), 1, atol=0.01)
    assert abs(Z @ Z.T - HypersphericalHeat()(X)).max() < 0.15  # 4 standard errors


# ---- laws


@laws
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.sampled_from([2, 3, 17, 64]),
    m=st.sampled_from([2, 6, 40, 60, 200]),
    orthogonal=st.booleans(),
)
def test_directions(seed, n, m, orthogonal):
    X = unit_vectors(3, n, seed)
    W = HeatRandomFeatures(m, contrast=1.0, orthogonal=orthogonal, random_state=seed).fit(X).directions_
    np.testing.assert_allclose(np.linalg.norm(W, axis=0), 1, rtol=1e-12)
    if orthogonal:
        for first in range(0, m // 2, n):
            block = W[:, first : first + n]
            np.testing.assert_allclose(block.T @ block, np.eye(block.shape[1]), atol=1e-12)
    more = HeatRandomFeatures(m + 10, contrast=1.0, orthogonal=orthogonal, random_state=seed).fit(X).directions_
    np.testing.assert_allclose(more[:, : m // 2], W, atol=1e-9)


@laws
@given(seed=st.integers(0, 2**32 - 1), dtype=st.sampled_from([np.float32, np.float64]), signed=st.booleans())
def test_sparse_equals_dense(seed, dtype, signed):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((15, 40)) * (rng.random((15, 40)) < 0.2)).astype(dtype)
    X[:, 0] += 3
    X = X if signed else np.abs(X)
    embedding = HeatRandomFeatures(30, random_state=seed).fit(X)
    assert embedding.mapping_ == ("projection" if (X < 0).any() else "sqrt")
    before = X.copy()
    Z = embedding.transform(X)
    np.testing.assert_array_equal(X, before)
    sparse = embedding.transform(sp.csr_array(X))
    assert sparse.dtype == Z.dtype == dtype
    np.testing.assert_allclose(sparse, Z, atol=1e-13 if dtype == np.float64 else 1e-5)
    np.testing.assert_allclose(embedding.transform(X.astype(np.float32)), Z, atol=1e-5)


@pytest.mark.same_bits
def test_blocks_and_threads():
    X = np.random.default_rng(0).random((3000, 50))
    embedding = HeatRandomFeatures(4000, random_state=0).fit(X)
    Z = embedding.transform(X)
    with sm.config(max_memory="100KiB"):
        np.testing.assert_allclose(embedding.transform(X[:300]), Z[:300], atol=1e-13)
    with patch.object(_threads, "_WORTH_THREADS", 2**60):
        np.testing.assert_allclose(embedding.transform(X), Z, atol=1e-13)
    np.testing.assert_allclose(embedding.transform(X[7:8]), Z[7:8], atol=1e-13)
    again = HeatRandomFeatures(4000, random_state=0).fit(2 * X[:2])  # only the width and the signs are read
    np.testing.assert_allclose(again.transform(X), Z, atol=1e-13)


def test_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.poisson(np.where(np.arange(120)[:, None] % 2, [1, 2, 3, 4, 5], [5, 4, 3, 2, 1])) + 1
    y = np.arange(120) % 2
    model = make_pipeline(HeatRandomFeatures(100, contrast=2.0, random_state=0), LogisticRegression())
    assert clone(model).fit(X, y).score(X, y) > 0.9
    embedding = clone(model[0]).fit(X)
    assert list(embedding.get_feature_names_out()[:2]) == ["heatrandomfeatures0", "heatrandomfeatures1"]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(embedding)).transform(X), embedding.transform(X))
    assert embedding.t_ == pytest.approx(math.log(5 / 2) / 4)


# ---- input that is refused


def test_refuses_bad_parameters():
    X = np.ones((3, 10))
    for parameters, message in [
        ({"n_components": 0}, "n_components must be an integer >= 1, got 0"),
        ({"contrast": -1}, "contrast must be a positive number, got -1"),
        ({"contrast": 10}, "contrast must be below the number of features"),
        ({"t": 0}, "t must be a positive number, got 0"),
        ({"t": 1e-9}, "t = 1e-09 is too small for random features of 10 numbers.* take a larger t"),
        ({"mapping": "cube"}, "mapping must be"),
        ({"random_state": -1}, "random_state must be"),
    ]:
        with pytest.raises(ValueError, match=message):
            HeatRandomFeatures(**parameters).fit(X)


def test_refuses_bad_rows():
    X = np.ones((3, 10))
    embedding = HeatRandomFeatures(8, random_state=0).fit(X)
    negative, zero = X.copy(), X.copy()
    negative[1, 2], zero[2] = -1, 0
    with pytest.raises(ValueError, match=r'X\[1\], column 2 is -1.0, but the map is "sqrt"'):
        embedding.transform(negative)
    with pytest.raises(ValueError, match=r"X\[2\] is zero"):
        embedding.transform(zero)
    with sm.config(max_memory=1), pytest.raises(ValueError, match=r"X\[2\] is zero"):
        embedding.transform(zero)
    with pytest.raises(ValueError, match=r"X has 9 features, but \w+ is expecting 10 features"):
        embedding.transform(X[:, 1:])
    with pytest.raises(ValueError, match=r"X\[0\], column 0 is nan"):
        HeatRandomFeatures(8).fit(np.full((2, 3), np.nan))
    with pytest.raises(ValueError, match="norm"):
        HeatRandomFeatures(8, mapping=None).fit(X).transform(X)
    uniform = HeatRandomFeatures(8, zero_rows="uniform", random_state=0).fit(X)
    np.testing.assert_allclose(uniform.transform(zero), uniform.transform(X), atol=1e-14)


def test_orthogonal_where_it_pays():
    X = np.eye(2, 64)
    for m, orthogonal in ((8, True), (7, True), (6, False)):  # 4, 4 and 3 directions for 64 columns
        found, expected = (
            HeatRandomFeatures(m, 1.0, mapping="projection", orthogonal=choice, random_state=0).fit(X).directions_
            for choice in ("auto", orthogonal)
        )
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(ValueError, match="orthogonal must be True, False or \"auto\", got 'yes'"):
        HeatRandomFeatures(orthogonal="yes").fit(X)
