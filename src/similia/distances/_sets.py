"""Loops of the distances between point sets: nearest points of pairs of sets, merged quantiles."""

from __future__ import annotations

import math

import numpy as np

from similia.core import lanes as lane
from similia.core.jit import njit
from similia.core.lanes import LANES

MEAN_MAX, MAX_MAX, MEAN_SUM = 0, 1, 2  # how to combine the nearest distances of both directions
_SMALL = 32  # with at most this many points in a set, `_nearest_of_four` is faster than `_nearest`
_ROWS = 64  # points of a set of B compared at once: 256 KiB of float32 distances


@njit()
def _add(values, n, root, sums):  # type: ignore[no-untyped-def]
    """Add the first n values (if `root`, their square roots) to four interleaved partial sums.

    Only the last part of a sum over several parts may have a number of values that four does not divide.
    """
    a, b, c, d = sums[0], sums[1], sums[2], sums[3]
    for k in range(0, n - n % 4, 4):
        if root:
            a += math.sqrt(values[k])
            b += math.sqrt(values[k + 1])
            c += math.sqrt(values[k + 2])
            d += math.sqrt(values[k + 3])
        else:
            a += values[k]
            b += values[k + 1]
            c += values[k + 2]
            d += values[k + 3]
    for k in range(n - n % 4, n):
        a += math.sqrt(values[k]) if root else values[k]
    sums[0], sums[1], sums[2], sums[3] = a, b, c, d


@njit()
def _take(values, n, kind, root, sums, largest):  # type: ignore[no-untyped-def]
    """Add the first n values as `_add` does or, if `kind` is MAX_MAX, replace ``largest[0]`` by a larger value."""
    if kind != MAX_MAX:
        _add(values, n, root, sums)
        return
    for k in range(n):
        largest[0] = max(largest[0], values[k])


@njit()
def _summary(n, kind, root, sums, largest):  # type: ignore[no-untyped-def]
    """Return the mean (if `kind` is MAX_MAX, the maximum) of n values, or of their roots, that `_take` has taken."""
    if kind != MAX_MAX:
        return ((sums[0] + sums[1]) + (sums[2] + sums[3])) / n
    return math.sqrt(largest[0]) if root else np.float64(largest[0])


@njit()
def _nearest(bits, lane_bits, n):  # type: ignore[no-untyped-def]
    """Return the smallest of ``bits[:n]``; replace ``lane_bits[:n]`` by the elementwise minimum of both arrays."""
    nearest = bits[0]
    for c in range(n):
        value = bits[c]
        if value < nearest:
            nearest = value
        if value < lane_bits[c]:
            lane_bits[c] = value
    return nearest


@njit()
def _nearest_of_four(bits, at, width, lane_bits, start, n, row_bits, place):  # type: ignore[no-untyped-def]
    """Do `_nearest` for four rows of `bits` at once; write their four minima to ``row_bits[place:]``."""
    a, b, c, d = bits[at], bits[at + width], bits[at + 2 * width], bits[at + 3 * width]
    for i in range(n):
        p, q, r, s = bits[at + i], bits[at + width + i], bits[at + 2 * width + i], bits[at + 3 * width + i]
        a, b, c, d = min(a, p), min(b, q), min(c, r), min(d, s)
        lane_bits[start + i] = min(lane_bits[start + i], min(min(p, q), min(r, s)))
    row_bits[place], row_bits[place + 1], row_bits[place + 2], row_bits[place + 3] = a, b, c, d


@njit()
def _term(columns, at, coordinate, total, manhattan):  # type: ignore[no-untyped-def]
    difference = lane.load(columns, at) - lane.splat(coordinate)
    if manhattan:
        return total + lane.magnitude(difference)
    return lane.multiply_add(difference, difference, total)


@njit()
def _tile(columns, width, points, manhattan, out):  # type: ignore[no-untyped-def]
    """Fill `out` with the distances (squared, unless `manhattan`) of `points` to the `width` points in `columns`.

    `columns` holds coordinates in the layout of `core.products.panels`. Row r of the result begins at
    ``out[r * width]``. The terms of a distance are always added in the order of the coordinates.
    """
    n, p = points.shape
    zero = lane.splat(columns.dtype.type(0))
    for first in range(0, width, LANES):
        for r in range(0, n - n % 4, 4):
            a, b, c, d = zero, zero, zero, zero
            for k in range(p):
                at = first * p + k * LANES
                a = _term(columns, at, points[r, k], a, manhattan)
                b = _term(columns, at, points[r + 1, k], b, manhattan)
                c = _term(columns, at, points[r + 2, k], c, manhattan)
                d = _term(columns, at, points[r + 3, k], d, manhattan)
            lane.store(out, r * width + first, a)
            lane.store(out, (r + 1) * width + first, b)
            lane.store(out, (r + 2) * width + first, c)
            lane.store(out, (r + 3) * width + first, d)
        for r in range(n - n % 4, n):
            a = zero
            for k in range(p):
                a = _term(columns, first * p + k * LANES, points[r, k], a, manhattan)
            lane.store(out, r * width + first, a)


@njit()
def join(columns, bits, a_offsets, B, b_offsets, chosen, kind, manhattan, root, out):  # type: ignore[no-untyped-def]
    """Fill ``out[a, k]`` with the distance of set a of A, a group of sets, to set ``chosen[k]`` of `B`.

    `columns` holds the points of A, as in `_tile`; set a begins at point ``a_offsets[a]``, and ``a_offsets[0]`` is 0.
    `kind` and `root` are those of `_take`. Minima are taken of the bits of distances, read as integers: these have
    the same order, since distances are not negative, and vector instructions compare integers without a check for NaN.
    `bits` only gives the dtype of these integers.
    """
    width, n_sets = len(columns) // B.shape[1], len(a_offsets) - 1
    lanes, tile = np.empty(width, B.dtype), np.empty(_ROWS * width, B.dtype)
    rows, sums, largest = np.empty(_ROWS, B.dtype), np.empty((n_sets + 1, 4)), np.empty((n_sets + 1, 1), B.dtype)
    lane_bits, tile_bits, row_bits = lanes.view(bits.dtype), tile.view(bits.dtype), rows.view(bits.dtype)
    for place in range(len(chosen)):
        start, stop = b_offsets[chosen[place]], b_offsets[chosen[place] + 1]
        lanes[:] = np.inf
        sums[:], largest[:] = 0.0, 0
        for first in range(start, stop, _ROWS):
            last = min(stop, first + _ROWS)
            _tile(columns, width, B[first:last], manhattan, tile)
            for a in range(n_sets):
                c, n = a_offsets[a], a_offsets[a + 1] - a_offsets[a]
                whole = last - first - (last - first) % 4 if n <= _SMALL else 0
                for r in range(0, whole, 4):
                    _nearest_of_four(tile_bits, r * width + c, width, lane_bits, c, n, row_bits, r)
                for r in range(whole, last - first):
                    at = r * width + c
                    row_bits[r] = _nearest(tile_bits[at : at + n], lane_bits[c : c + n], n)
                _take(rows, last - first, kind, root, sums[a], largest[a])
        for a in range(n_sets):
            c, n = a_offsets[a], a_offsets[a + 1] - a_offsets[a]
            sums[n_sets], largest[n_sets] = 0.0, 0
            _take(lanes[c : c + n], n, kind, root, sums[n_sets], largest[n_sets])
            x = _summary(n, kind, root, sums[n_sets], largest[n_sets])
            y = _summary(stop - start, kind, root, sums[a], largest[a])
            out[a, place] = x + y if kind == MEAN_SUM else max(x, y)


@njit()
def wasserstein(A, a_offsets, B, b_offsets, left, right, power, out):  # type: ignore[no-untyped-def]
    """Fill ``out[k]`` with the sliced Wasserstein distance of set ``left[k]`` of A to set ``right[k]`` of B.

    Column l of A and of B holds the projections on direction l, in ascending order within each set. The quantile
    functions of sets of m and n points have their steps at the same places for all directions, so one pass over the
    steps serves all directions. `power` is the order, 1 or 2. The variable `mass` is a probability times m n.
    """
    n_directions = A.shape[1]
    cost, sums = np.empty(n_directions), np.empty(4)
    for k in range(len(left)):
        a, b = left[k], right[k]
        m, n = a_offsets[a + 1] - a_offsets[a], b_offsets[b + 1] - b_offsets[b]
        cost[:] = 0.0
        i = j = mass = 0
        while mass < m * n:
            until = min((i + 1) * n, (j + 1) * m)
            weight = (until - mass) / (m * n)
            x, y = A[a_offsets[a] + i], B[b_offsets[b] + j]
            for l in range(n_directions):
                difference = abs(np.float64(x[l]) - np.float64(y[l]))
                cost[l] += weight * (difference if power == 1 else difference * difference)
            mass = until
            i, j = mass // n, mass // m
        sums[:] = 0.0
        _add(cost, n_directions, False, sums)
        mean = ((sums[0] + sums[1]) + (sums[2] + sums[3])) / n_directions
        out[k] = mean if power == 1 else math.sqrt(mean)
