"""Wasserstein: a linear programme, an assignment and scipy as witnesses; laws, equal bits, refusals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from scipy.stats import wasserstein_distance

import similia as sm
from naive import similarities as naive
from similia.checks import check_distance
from similia.distances import Wasserstein
from similia.distances import sets as module

laws = settings(max_examples=25, deadline=None)
SIZES = st.lists(st.integers(1, 9), min_size=1, max_size=4)


def some_sets(seed, sizes, p=2, whole=False):
    rng = np.random.default_rng(seed)
    draw = (lambda size: rng.integers(-2, 3, size).astype(float)) if whole else (lambda size: rng.normal(size=size))
    return [draw((size, p)) for size in sizes]


@laws
@given(SIZES, SIZES, st.integers(0, 999), st.sampled_from([1, 2]), st.booleans(), st.booleans())
def test_agrees_with_a_linear_programme(sizes, others, seed, p, manhattan, whole):
    X, Y = some_sets(seed, sizes, whole=whole), some_sets(seed + 1, others, whole=whole)
    distance = Wasserstein(p, "manhattan" if manhattan else "euclidean")
    expected = [[naive.transported(x, y, p, "cityblock" if manhattan else "euclidean") for y in Y] for x in X]
    np.testing.assert_allclose(distance(X, Y), expected, rtol=1e-9, atol=1e-7 if p == 2 else 1e-12)


@laws
@given(st.integers(1, 40), st.integers(1, 5), st.integers(0, 999), st.sampled_from([1, 2]))
def test_sets_of_one_size_are_an_assignment(size, n_dims, seed, p):
    x, y = some_sets(seed, [size, size], n_dims)
    costs = cdist(x, y) ** p
    expected = costs[linear_sum_assignment(costs)].mean() ** (1 / p)
    assert Wasserstein(p)([x], [y])[0, 0] == pytest.approx(expected, rel=1e-12)


@laws
@given(st.integers(1, 30), st.integers(1, 30), st.integers(0, 999))
def test_agrees_with_scipy_on_a_line(m, n, seed):
    x, y = some_sets(seed, [m, n], 1)
    assert Wasserstein()([x], [y])[0, 0] == pytest.approx(wasserstein_distance(x[:, 0], y[:, 0]), rel=1e-12)
    assert Wasserstein(2)([x], [y])[0, 0] == pytest.approx(naive.wasserstein(x[:, 0], y[:, 0], 2) ** 0.5, rel=1e-12)


@pytest.mark.ecosystem
def test_agrees_with_pot():
    pytest.importorskip("ot", reason="POT is not installed")
    X = some_sets(0, [3, 7, 12, 30])
    np.testing.assert_allclose(Wasserstein()(X), sm.adapters.from_pot("emd2")(X), rtol=1e-9, atol=1e-12)
    squares = sm.adapters.from_pot("emd2", metric="sqeuclidean", root=True)
    np.testing.assert_allclose(Wasserstein(2)(X), squares(X), rtol=1e-9, atol=1e-7)


@pytest.mark.parametrize("distance", [Wasserstein(), Wasserstein(2), Wasserstein(2, "manhattan")], ids=str)
def test_is_a_metric_of_distributions(distance):
    X = some_sets(1, [1, 2, 3, 5, 6, 0, 4], whole=True)
    check_distance(distance, X)
    D = distance(X)
    assert (D[:, None, :] <= D[:, :, None] + D[None, :, :] + 1e-9).all()
    repeated = [np.repeat(x, 3, axis=0) for x in X]
    np.testing.assert_allclose(distance(X, repeated), D, rtol=1e-12, atol=1e-12)


@laws
@given(st.integers(1, 8), st.integers(1, 8), st.integers(0, 99), st.sampled_from([1, 2]))
def test_a_plan_moves_all_mass_at_the_cost_of_the_distance(m, n, seed, p):
    x, y = some_sets(seed, [m, n])
    plan = Wasserstein(p).plan(x, y)
    assert (plan >= 0).all()
    np.testing.assert_allclose(plan.sum(axis=1), 1 / m)
    np.testing.assert_allclose(plan.sum(axis=0), 1 / n)
    cost = np.sum(plan * cdist(x, y) ** p) ** (1 / p)
    assert cost == pytest.approx(Wasserstein(p)([x], [y])[0, 0], rel=1e-12)


def test_an_empty_set_is_the_origin():
    x = np.array([[3.0, 4.0], [0.0, 1.0]])
    assert Wasserstein()([x], [np.zeros((0, 2))])[0, 0] == 3.0
    assert Wasserstein(2, "manhattan")([x], [np.zeros((0, 2))])[0, 0] == 5.0


@pytest.mark.same_bits
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_distance_depends_on_its_two_sets_only(dtype, monkeypatch):
    X = [x.astype(dtype) for x in some_sets(2, [4, 9, 30, 31, 30, 1], p=3)]
    distance = Wasserstein()
    D = distance(X)
    assert D.dtype == dtype
    np.testing.assert_array_equal(D, D.T)
    rng = np.random.default_rng(0)
    shuffled = [rng.permutation(x) for x in X]
    np.testing.assert_array_equal(distance(shuffled, X), D)
    for i, j in np.ndindex(D.shape):
        assert distance(X[i : i + 1], X[j : j + 1])[0, 0] == D[i, j]
    left, right = rng.integers(6, size=(2, 20))
    np.testing.assert_array_equal(distance.paired(X, X, left, right), D[left, right])
    monkeypatch.setattr(module, "_WORK_OF_PLANS", 1)
    np.testing.assert_array_equal(distance(X), D)
    np.testing.assert_array_equal(distance.paired(X, X, left, right), D[left, right])


def test_many_steps_back():
    """Points whose cheapest columns are full: mass is taken back over chains of all rows."""
    x, y = np.arange(20.0)[:, None], np.arange(1.0, 22.0)[:, None] - 1e-3
    assert Wasserstein()([x], [y])[0, 0] == pytest.approx(wasserstein_distance(x[:, 0], y[:, 0]), rel=1e-12)


def test_refusals():
    X = some_sets(3, [2, 3])
    with pytest.raises(ValueError, match="p must be 1 or 2, got 3"):
        Wasserstein(3)(X)
    with pytest.raises(ValueError, match="ground must be 'euclidean' or 'manhattan', got 'cosine'"):
        Wasserstein(ground="cosine")(X)
    with pytest.raises(ValueError, match="X holds points of dimension 2 and Y of dimension 3, expected one dimension"):
        Wasserstein()(X, some_sets(0, [2], 3))


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
@pytest.mark.parametrize("p", [1, 2])
def test_a_plan_does_not_depend_on_the_unit_of_length(scale, p):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(4, 2)), rng.normal(size=(3, 2))
    np.testing.assert_array_equal(Wasserstein(p).plan(scale * x, scale * y), Wasserstein(p).plan(x, y))
    np.testing.assert_array_equal(Wasserstein(p).plan([[0.0]], [[0.0], [0.0]]), [[0.5, 0.5]])
