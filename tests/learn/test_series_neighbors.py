"""Nearest neighbours by pivots: bounds never exceed distances, and answers are those of a comparison with all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import similia as sm
from similia.distances import ERP, MSM, TWE
from similia.learn import series_neighbors
from similia.learn.series_neighbors import nearest_by_pivots, prunes
from similia.search import knn_graph

RNG = np.random.default_rng(0)
DISTANCES = [ERP(), ERP(gap=0.5), MSM(), MSM(c=0.1), TWE(), TWE(nu=0.1, lmbda=0.2)]
whole = st.integers(-3, 3).map(float) | st.floats(-4, 4, width=32)
one = st.lists(whole, min_size=1, max_size=9)


def exhaustive(distance: Any, X: Any, Y: Any, k: int, without_self: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Compare all pairs and sort them."""
    D = np.asarray(distance(X, Y))
    found = []
    for i, row in enumerate(D):
        pairs = sorted((value, j) for j, value in enumerate(row) if not (without_self and i == j))
        found.append(pairs[:k])
    return np.array([[v for v, _ in row] for row in found]), np.array([[j for _, j in row] for row in found])


def collection(n: int, channels: int = 1) -> list[np.ndarray]:
    """Return series of several lengths around a few shapes, some of them equal."""
    shapes = RNG.standard_normal((6, 30, channels))
    series = [shapes[i % 6][: 20 + i % 9] + RNG.choice([0, 0.1, 1.0]) * RNG.standard_normal(1) for i in range(n)]
    return [*series, *series[:5]]


@pytest.mark.same_bits
@pytest.mark.parametrize("distance", DISTANCES, ids=repr)
@pytest.mark.parametrize("channels", [1, 2])
def test_as_a_comparison_with_all_bit_for_bit(distance: Any, channels: int) -> None:
    X, Y = collection(12, channels), collection(150, channels)
    assert prunes(distance, len(Y), len(Y))
    for k in (1, 3, len(Y)):
        for found, expected in zip(nearest_by_pivots(distance, X, Y, k), exhaustive(distance, X, Y, k), strict=True):
            np.testing.assert_array_equal(found, expected)
    for k in (1, len(Y) - 1):
        itself = nearest_by_pivots(distance, Y, Y, k, without_self=True)
        for found, expected in zip(itself, exhaustive(distance, Y, Y, k, without_self=True), strict=True):
            np.testing.assert_array_equal(found, expected)
    with sm.config(max_memory="100KB"):
        np.testing.assert_array_equal(nearest_by_pivots(distance, X, Y, 3)[1], exhaustive(distance, X, Y, 3)[1])


@given(st.lists(one, min_size=3, max_size=7), st.sampled_from(DISTANCES), st.sampled_from([1e-3, 1.0, 1e6]))
@settings(deadline=None, max_examples=80)
def test_bounds_never_exceed_distances(series: list[list[float]], distance: Any, scale: float) -> None:
    X = [np.array(x) * scale for x in series]
    known = np.asarray(distance(X))
    bounds = np.empty(known.shape)
    error = 8 * np.finfo(np.float64).eps * 18 * 5
    series_neighbors._bound_by_pivots(known[:, :2], known[:, :2], error, bounds, 0, len(X))
    assert (bounds <= known).all()


def test_series_are_skipped_and_estimators_use_it(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = np.cumsum(RNG.standard_normal((20, 40)), axis=1)
    Y = np.repeat(shapes, 30, axis=0) + 0.1 * RNG.standard_normal((600, 40))
    X, y = Y[::4] + 0.1 * RNG.standard_normal((150, 40)), np.repeat(np.arange(20), 30)
    compared = 0
    paired = MSM.paired

    def counting(self: Any, A: Any, B: Any, rows: Any, columns: Any) -> Any:
        nonlocal compared
        compared += len(rows)
        return paired(self, A, B, rows, columns)

    monkeypatch.setattr(MSM, "paired", counting)
    model = sm.KNeighborsClassifier(MSM(), n_neighbors=3).fit(Y, y)
    distances, indices = model.kneighbors(X)
    assert 3 * len(X) <= compared < 0.3 * len(X) * len(Y)
    expected = exhaustive(MSM(), X, Y, 3)
    np.testing.assert_array_equal(indices, expected[1])
    np.testing.assert_array_equal(distances, expected[0])
    np.testing.assert_array_equal(model.predict(X), y[::4])
    few = Y[:150]
    graph = knn_graph(few, MSM(), 2, method="exact", symmetric=False)
    np.testing.assert_array_equal(np.sort(graph.indices.reshape(150, 2)), np.sort(
        exhaustive(MSM(), few, few, 2, without_self=True)[1]
    ))  # fmt: skip


def test_what_is_no_metric_is_compared_with_all() -> None:
    assert not prunes(MSM(window=0.1), 1000, 1000)
    assert not prunes(sm.distances.LCSS(), 1000, 1000)
    assert not prunes(TWE(), 3, 1000)
