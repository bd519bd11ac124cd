"""Vectors in registers: what compiled loops get from them."""

import numpy as np
import pytest
from numba import njit

from similia.core import lanes as lane
from similia.core.lanes import LANES


@njit
def turned(source, rows, at, target, start):
    lane.transpose(source, rows, at, target, start)


@njit
def least(numbers):
    return lane.smallest(lane.load(numbers, 0))


@pytest.mark.same_bits
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_series_are_turned_into_lanes(dtype):
    source = np.arange(1000, dtype=dtype)
    rows = np.random.default_rng(0).integers(900, size=LANES)
    target = np.full(3 + LANES**2 + 2, -1, dtype)
    turned(source, rows, 7, target, 3)
    expected = rows + 7 + np.arange(LANES)[:, None]
    np.testing.assert_array_equal(target[3:-2].reshape(LANES, LANES), expected)
    assert (target[[0, 1, 2, -2, -1]] == -1).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_smallest_lane(dtype):
    for place in range(LANES):
        numbers = np.full(LANES, np.inf, dtype)
        numbers[place] = -place
        assert least(numbers) == -place
