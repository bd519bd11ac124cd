"""`find` against comparing every stretch, standardised by numpy; laws; what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import similia as sm
from similia.core.config import config
from similia.distances import DTW
from similia.search import find

RNG = np.random.default_rng(0)


def standardised(x: np.ndarray) -> np.ndarray:
    mean, deviation = x.mean(axis=0), x.std(axis=0)
    constant = deviation <= len(x) * np.finfo(float).eps * abs(mean)
    return (x - mean) / np.where(constant, np.inf, deviation)


def all_distances(pattern: Any, series: Any, distance: DTW, normalize: bool = True) -> np.ndarray:
    pattern, series = np.asarray(pattern, float), np.asarray(series, float)
    change = standardised if normalize else np.asarray
    stretches = [change(series[i : i + len(pattern)]) for i in range(len(series) - len(pattern) + 1)]
    return distance([change(pattern)], stretches)[0]


def spaced(values: np.ndarray, k: int, apart: int) -> list[int]:
    """Return what `find` promises: the nearest, then the nearest that is far enough from all before."""
    found: list[int] = []
    for i in np.argsort(values, kind="stable").tolist():
        if len(found) < k and all(abs(i - j) >= apart for j in found):
            found.append(i)
    return found


@pytest.mark.parametrize("n_channels", [1, 2, 3])
@pytest.mark.parametrize("window", [0, 2, 0.1, None])
@pytest.mark.parametrize(("local", "root"), [("euclidean", False), ("sqeuclidean", False), ("sqeuclidean", True)])
@pytest.mark.parametrize("normalize", [True, False])
def test_equals_comparing_all(n_channels: int, window: Any, local: str, root: bool, normalize: bool) -> None:
    distance = DTW(window=window, local=local, root=root)
    for m, n, k, exclude in ((4, 4, 1, 0.5), (3, 40, 4, 0.0), (9, 200, 5, 0.5), (17, 700, 3, 1.0), (30, 60, 9, 0.3)):
        pattern, series = (RNG.normal(size=(size, n_channels)).cumsum(axis=0) for size in (m, n))
        distances, starts = find(pattern, series, k, distance, normalize=normalize, exclude=exclude)
        values = all_distances(pattern, series, distance, normalize)
        assert starts.tolist() == spaced(values, k, max(1, math.ceil(exclude * m - 1e-9)))
        assert_allclose(distances, values[starts], rtol=1e-9, atol=1e-12)


@given(
    st.lists(st.integers(-2, 2), min_size=2, max_size=8), st.lists(st.integers(-2, 2), min_size=8, max_size=60),
    st.integers(1, 6), st.sampled_from([0, 1, None]), st.floats(0, 1), st.booleans(),
)  # fmt: skip
@settings(deadline=None, max_examples=150)
def test_distances_and_gaps_are_right_where_many_are_equal(pattern, series, k, window, exclude, normalize):
    distance = DTW(window=window)
    distances, starts = find(pattern, series, k, distance, normalize=normalize, exclude=exclude)
    values = all_distances(pattern, series, distance, normalize)
    apart = max(1, math.ceil(exclude * len(pattern) - 1e-9))
    assert_allclose(distances, values[starts], rtol=1e-9, atol=1e-9)
    assert (np.diff(distances) >= 0).all()
    assert all(abs(i - j) >= apart for n, i in enumerate(starts) for j in starts[:n])
    left = values.copy()
    for at, value in zip(starts, distances, strict=True):  # each was the nearest of what was left
        assert value <= left.min() + 1e-9
        left[max(0, at - apart + 1) : at + apart] = np.inf
    assert len(starts) == k or np.isinf(left).all()


def test_a_nearer_stretch_that_keeps_two_others_off() -> None:
    """The second distance grows once the nearest is known; what was given up by then must get its turn again."""
    series = np.array([0.0, 9, 0, 5, 9, 5, 0, 9, 0, 9, 9, 9, 1, 9])
    pattern = [5.0, 9, 5]
    for k in range(1, 6):
        distances, starts = find(pattern, series, k, DTW(window=0), normalize=False, exclude=1.0)
        values = all_distances(pattern, series, DTW(window=0), normalize=False)
        assert starts.tolist() == spaced(values, k, 3)
        assert_array_equal(distances, values[starts])


def test_the_same_whatever_the_threads_and_the_scale() -> None:
    pattern, series = RNG.normal(size=64).cumsum(), RNG.normal(size=40_000).cumsum()
    distances, starts = find(pattern, series, 8)
    with config(n_jobs=1):
        again = find(pattern, series, 8)
    assert_array_equal(again[0], distances)
    assert_array_equal(again[1], starts)
    other = find(3.0 * pattern - 7.0, 1e-3 * series + 50.0, 8)
    assert_array_equal(other[1], starts)
    assert_allclose(other[0], distances, rtol=1e-6)


def test_a_warped_copy_is_found() -> None:
    t = np.linspace(0, 1, 100)
    series = RNG.normal(size=5000).cumsum()
    series[3210:3310] = 40 * np.sin(2 * np.pi * 2 * t**1.1) + series[3210]
    (distance, *_), (start, *_) = find(np.sin(2 * np.pi * 2 * t), series, 3)
    assert abs(start - 3210) <= 3
    assert distance < find(np.sin(2 * np.pi * 2 * t), series, 1, DTW(window=0))[0][0]


def test_constant_stretches_become_zeros() -> None:
    series = np.full(50, 1e9 / 3)
    distances, starts = find([0.0, 1.0, 0.0], series, 2)
    assert_allclose(distances, np.abs(standardised(np.array([0.0, 1.0, 0.0]))).sum())
    assert starts.tolist() == [0, 2]
    assert find(np.full(3, 0.1), series)[0].tolist() == [0.0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([1.0, 2.0], [1.0, np.nan, 2.0]), "series, time point 1, channel 0 is nan"),
        (([1.0, np.inf], [1.0, 2.0, 2.0]), "pattern, time point 1, channel 0 is inf"),
        (([1.0], [1.0, 2.0]), "pattern has 1 points, expected at least 2 and at most 2"),
        (([1.0, 2.0, 3.0], [1.0, 2.0]), "pattern has 3 points, expected at least 2 and at most 2"),
        ((np.zeros((3, 2)), np.zeros(9)), "pattern has 2 channels and series 1"),
        ((np.zeros((3, 2, 2)), np.zeros(9)), r"pattern has shape \(3, 2, 2\)"),
        (([1.0, 2.0], np.ma.masked_equal([5.0, 5.0, 1.0], 1.0)), "series, time point 2, channel 0 is nan"),
        (([1.0, 2.0], np.zeros(9), 0), "k must be"),
        (([1.0, 2.0], np.zeros(9), 1, sm.distances.Levenshtein()), "distance must be a similia.distances.DTW"),
        (([1.0, 2.0], np.zeros(9), 1, DTW(window=-1)), "window"),
        (([0.0, 1e308], np.array([1e308, -1e308, 1e308]), 1, DTW(local="sqeuclidean")), None),
    ],
)
def test_what_is_wrong_is_said(arguments: tuple[Any, ...], words: str | None) -> None:
    if words is None:
        with np.errstate(over="ignore"), pytest.raises(ValueError, match="exceeds the largest"):
            find(*arguments, normalize=False)
        return
    with pytest.raises(ValueError, match=words):
        find(*arguments)


@pytest.mark.parametrize("series", [["1", "2", "3"], np.array([1.0, 2.0, 3.0j]), 3.0, [[1.0, 2.0], [None, 3.0]]])
def test_what_is_no_series_of_real_numbers_is_refused(series: Any) -> None:
    with pytest.raises(TypeError, match=r"^series (holds|is)"):
        find([1.0, 2.0], series)


def test_numbers_may_be_as_large_or_small_as_float64_allows() -> None:
    series = np.zeros(10)
    series[5] = 1.0
    for size, other in ((1e200, 1e200), (1e-200, 1e-200), (1e300, 1e-300)):
        distances, starts = find(np.array([0.0, other, 0.0]), series * size)
        assert (distances.tolist(), starts.tolist()) == ([0.0], [4])
    channels = np.column_stack([np.zeros(10), series * 1e-200])
    channels[7, 0] = 1.0
    assert find(channels[4:7], channels)[1].tolist() == [4]
    constant = find([0.0, 1.0, 0.0], np.full(50, 1e308))
    assert_array_equal(constant[0], find([0.0, 1.0, 0.0], np.zeros(50))[0])
    squares = DTW(local="sqeuclidean", root=True)
    distances, starts = find([0.0, 1e200, 0.0], [0.0, 2e200, 0.0, 0.0], distance=squares, normalize=False)
    assert (distances.tolist(), starts.tolist()) == ([1e200], [0])
    with pytest.raises(ValueError, match="a distance is below the smallest float64"):
        find([0.0, 1e-200], np.full(9, 1e-200), distance=DTW(local="sqeuclidean"), normalize=False)


def test_bounds_of_differences_whose_squares_are_subnormal() -> None:
    tiny = 0.75 * 2.0**-537
    series = np.tile([0.5, 0.0, -0.2 * tiny, 0.0], 400)
    series[4 * 398 + 2] = 0.0
    _, starts = find([0.5, 0.0, tiny, 0.0], series, 1, DTW(1), normalize=False)
    assert starts.tolist() == [4 * 398]


def test_a_share_is_rounded_up_as_in_decimal_numbers() -> None:
    series = np.concatenate([np.zeros(100), np.ones(55)])
    assert find(np.zeros(100), series, 2, DTW(window=0), normalize=False, exclude=0.55)[1].tolist() == [0, 55]


@pytest.mark.parametrize("exclude", [-0.1, 1.5, "half", True])
def test_exclude_is_a_share(exclude: Any) -> None:
    with pytest.raises(ValueError, match="exclude must be a number from 0 to 1"):
        find([1.0, 2.0], np.zeros(9), exclude=exclude)
