"""Nearest neighbours by abandoned comparisons: answers are those of a comparison with all, bit for bit."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import similia as sm
from naive import series as naive
from similia import alignments
from similia.core.lanes import LANES
from similia.distances import ADTW, ERP, LCSS, MSM, TWE
from similia.learn import series_neighbors
from similia.learn.series_neighbors import nearest_by_abandoning, search_for
from similia.search import knn_graph

RNG = np.random.default_rng(0)
DISTANCES = [ERP(), ERP(gap=0.5), MSM(), MSM(c=0.1), TWE(), TWE(nu=0.1, lmbda=0.2), ADTW(), ADTW(penalty=0.1)]
WINDOWS = [None, 0, 2, 0.1, 0.5]


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


def assert_same(found: Any, expected: Any) -> None:
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.same_bits
@pytest.mark.parametrize("distance", DISTANCES, ids=repr)
@pytest.mark.parametrize("window", [None, 0.2])
@pytest.mark.parametrize("channels", [1, 2])
def test_as_a_comparison_with_all_bit_for_bit(distance: Any, window: float | None, channels: int) -> None:
    distance = clone(distance).set_params(window=window)
    X, Y = collection(12, channels), collection(90, channels)
    for k in (1, 3, len(Y)):
        assert_same(nearest_by_abandoning(distance, X, Y, k), exhaustive(distance, X, Y, k))
    for k in (1, len(Y) - 1):
        itself = nearest_by_abandoning(distance, Y, Y, k, without_self=True)
        assert_same(itself, exhaustive(distance, Y, Y, k, without_self=True))
    with sm.config(max_memory="100KB"):
        assert_same(nearest_by_abandoning(distance, X, Y, 3), exhaustive(distance, X, Y, 3))


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 2**32), n=st.integers(1, 70), p=st.integers(1, 3), longest=st.sampled_from([1, 3, 9, 40]),
    whole=st.booleans(), distance=st.sampled_from(DISTANCES), window=st.sampled_from(WINDOWS), k=st.integers(1, 40),
    scale=st.sampled_from([1.0, 1e-6, 1e6]), without_self=st.booleans(),
)  # fmt: skip
def test_search_is_sorting_all_distances(
    seed: int, n: int, p: int, longest: int, whole: bool, distance: Any, window: Any, k: int, scale: float,
    without_self: bool,
) -> None:  # fmt: skip
    random = np.random.default_rng(seed)
    n += without_self

    def some(m: int) -> list[np.ndarray]:
        walks = [random.normal(size=(length, p)).cumsum(axis=0) for length in random.integers(1, longest + 1, m)]
        return [scale * (np.round(walk) if whole else walk) for walk in walks]

    Y = some(n)
    X, k = Y if without_self else some(4), min(k, n - without_self)
    distance = clone(distance).set_params(window=window)
    found = nearest_by_abandoning(distance, X, Y, k, without_self=without_self)
    assert_same(found, exhaustive(distance, X, Y, k, without_self))


@pytest.mark.parametrize(
    ("distance", "one"),
    [
        (ERP(window=3), lambda x, y, band: naive.erp(x, y, 0.0, band)),
        (MSM(window=3), lambda x, y, band: naive.msm(x[:, 0], y[:, 0], 1.0, band)),
        (TWE(window=3), lambda x, y, band: naive.twe(x, y, 0.001, 1.0, band)),
        (ADTW(window=3), lambda x, y, band: naive.adtw(x, y, 1.0, band)),
    ],
)
def test_search_agrees_with_the_recurrences_written_out(distance: Any, one: Any) -> None:
    random = np.random.default_rng(2)
    X, Y = ([random.normal(size=(n, 1)) for n in random.integers(1, 8, size)] for size in (3, 20))
    D = np.array([[one(x, y, max(3, abs(len(x) - len(y)))) for y in Y] for x in X])
    distances, indices = nearest_by_abandoning(distance, X, Y, 4)
    order = np.argsort(D, axis=1, kind="stable")[:, :4]
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_allclose(distances, np.take_along_axis(D, order, 1), rtol=1e-12)


def test_a_group_is_abandoned_only_if_all_its_distances_exceed_the_limit() -> None:
    x, *Y = np.random.default_rng(1).standard_normal((1 + LANES, 40)).cumsum(axis=1)
    for distance in DISTANCES:
        expected = distance([x], Y)[0]
        left, right, *how, _ = distance._sides(sm.objects.as_series(x[None]), sm.objects.as_series(Y))
        stride = left.n_dims
        values, (packed, starts, lengths, order, _) = left.values.reshape(-1), alignments.grouped(right)
        sides = (values, 0, 40, packed, starts[0], 40, stride)
        lows, highs, rows = np.empty(40 * stride), np.empty(40 * stride), np.empty((3, LANES * 41))
        series_neighbors.envelope(values, 0, 40, stride, 40, 40, lows, highs)
        widths, found = np.full(LANES, 40.0), np.empty(LANES)

        def within(limit: float) -> bool:
            group = (sides, lengths.astype(float), widths, *rows[:2], (limit, lows, highs), rows[2], found)  # noqa: B023
            return bool(alignments.fill_group(*how, *group))  # noqa: B023

        least, most = expected.min(), expected.max()
        assert not within(least / 10)
        for limit in (least, (least + most) / 2, most, np.inf):
            assert within(limit)
            near = expected[order] <= limit
            np.testing.assert_array_equal(found[near], expected[order][near])
            assert (found[~near] > limit).all()


def test_estimators_use_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    Y = RNG.standard_normal((100, 70)).cumsum(axis=1)
    X, y = Y[:7] + RNG.standard_normal((7, 70)), np.arange(100) % 3
    calls = 0

    def counting(*arguments: Any, **keywords: Any) -> Any:
        nonlocal calls
        calls += 1
        return nearest_by_abandoning(*arguments, **keywords)

    monkeypatch.setattr(series_neighbors, "nearest_by_abandoning", counting)
    for distance in (ERP(window=0.2), MSM(window=30), TWE(), ADTW()):
        model = sm.KNeighborsClassifier(distance, n_neighbors=3).fit(Y, y)
        assert_same(model.kneighbors(X), exhaustive(distance, X, Y, 3))
        assert_same(model.kneighbors(), exhaustive(distance, Y, Y, 3, without_self=True))
    assert calls == 6
    graph = knn_graph(Y, MSM(), 2, method="exact", symmetric=False)
    assert calls == 7
    expected = exhaustive(MSM(), Y, Y, 2, without_self=True)[1]
    np.testing.assert_array_equal(np.sort(graph.indices.reshape(100, 2)), np.sort(expected))


def test_what_abandoning_does_not_speed_up_is_compared_with_all() -> None:
    Y = [*RNG.standard_normal((100, 120))]
    X = Y[:3]
    assert search_for(MSM(window=0.1), X, Y) is search_for(TWE(), Y, Y) is nearest_by_abandoning
    assert search_for(LCSS(), X, Y) is None
    assert search_for(TWE(), X, Y[:60]) is None  # few series
    assert search_for(TWE(window=5), X, Y) is search_for(TWE(window=0.1), Y, Y) is None  # narrow windows
    lengths = RNG.integers(20, 120, 100)
    assert search_for(TWE(window=0.1), X, [y[:n] for y, n in zip(Y, lengths, strict=True)]) is None
    assert search_for(MSM(), X, [1e200 * y for y in Y]) is search_for(ERP(gap=1e200), X, Y) is None  # they are scaled
    with patch.object(series_neighbors, "_FEWEST", 101):
        assert search_for(MSM(), X, Y) is None
