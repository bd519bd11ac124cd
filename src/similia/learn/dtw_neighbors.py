"""Exact nearest neighbours under dynamic time warping (DTW); lower bounds skip most of the work.

For a query x, each training series y gets a lower bound on its distance. Every time point of y is matched with a point
of x within the warping band, so it costs at least its distance from the envelope (the range of x in the band) there:
LB_Keogh. The same holds with x and y exchanged; the range of all values of y then replaces the envelope. The search
computes DTW for `LANES` series at a time, one in each SIMD lane, in ascending order of bounds, until a bound exceeds
the k-th smallest distance so far. It abandons such a group once every cell in a row of the DTW table, in all lanes,
exceeds that distance. Bounds are lowered by the possible rounding error, so distances and ties equal those of an
exhaustive search, bit for bit.

The gain over an exhaustive search with the same lanes is largest without a window; with a narrow window, envelopes take
a third of the time (``benchmarks/drop_ins.py``).

Cost for x of length m and n series of length l with p channels: n (m + l) p for the bounds, then n m l p at most.

Papers: Keogh & Ratanamahatana, "Exact indexing of dynamic time warping", Knowledge and Information Systems 7, 2005;
Rakthanmanon et al., "Searching and mining trillions of time series subsequences under dynamic time warping", KDD 2012.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from similia.alignments.groups import as_series_pair, grouped, window_band
from similia.alignments.log_sums import half_width
from similia.core import lanes as lane
from similia.core.jit import njit
from similia.core.lanes import LANES
from similia.core.threads import run_in_ranges
from similia.distances.dtw import DTW

_WORTH_A_RANGE = 2**20  # minimum number of table cells per thread
Floats = npt.NDArray[np.floating]
Index = npt.NDArray[np.int64]


def nearest(distance: DTW, X: Any, Y: Any, k: int, *, without_self: bool = False) -> tuple[Floats, Index]:
    """Return the distances and positions of the `k` series of `Y` nearest to each series of `X`, both (len(X), k).

    Each row is in ascending order of (distance, position). With `without_self`, `X` must be `Y`, and no series is
    its own neighbour.
    """
    A, B = as_series_pair(X, Y)
    with np.errstate(over="ignore"):  # infinite distances raise below
        A = A.astype(B.values.dtype)  # the dtype of the fitted series, so that queries do not affect each other
    rooted, p = distance._rooted(), A.n_dims
    values, indices = np.empty((len(A), k), A.values.dtype), np.empty((len(A), k), np.int64)
    how = (p, rooted, distance.root, *window_band(distance.window))
    x = (np.ascontiguousarray(A.values).reshape(-1),)
    y = (np.ascontiguousarray(B.values).reshape(-1), B.offsets, *grouped(B)[:4])
    ends = _ranges(B.values, B.offsets, y[5])

    def search(first: int, last: int) -> None:
        room = _room(p, y[4].max(), A.values.dtype)
        bounds = np.empty(len(B), A.values.dtype)
        for i in range(first, last):
            one = (x[0], p * A.offsets[i], A.offsets[i + 1] - A.offsets[i])
            _bound_all(how, *one, y, ends, bounds, *room)
            order = np.argsort(bounds)  # in numpy, since numba's argsort takes seconds to compile
            _search(how, *one, y, bounds, order, i if without_self else -1, values[i], indices[i], *room)

    cells = len(A.values) * len(B.values)
    run_in_ranges(search, len(A), grain=max(1, _WORTH_A_RANGE * len(A) // max(1, cells)))
    far = np.isinf(values).any(axis=1)
    if far.any():
        raise ValueError(
            f"the distance of X[{int(far.argmax())}] to its nearest series exceeds the largest {values.dtype}; "
            f"scale the series{' or give them as float64' if values.dtype == np.float32 else ''}"
        )
    return values, indices


def _ranges(values: Floats, offsets: Index, columns: Index) -> Floats:
    """Return the smallest and largest value of each series and channel, in groups of `LANES` series.

    `columns` lists the series in the order of groups. The result is (n_groups, 2, n_channels, LANES), flattened.
    """
    ends = np.stack([np.minimum.reduceat(values, offsets[:-1]), np.maximum.reduceat(values, offsets[:-1])])
    n_groups = -(-len(columns) // LANES)
    places = columns[np.minimum(np.arange(n_groups * LANES), len(columns) - 1)]
    return np.ascontiguousarray(ends[:, places].reshape(2, n_groups, LANES, -1).transpose(1, 0, 3, 2)).reshape(-1)


def _room(p: int, longest: int, dtype: np.dtype) -> tuple[Floats, ...]:
    """Return the last six arguments of `_search`: work arrays for series of up to `longest` points in `p` channels."""
    sizes = (p * longest, p * longest, LANES * p * longest, LANES * (longest + 1), LANES, LANES)
    return tuple(np.zeros(size, dtype) for size in sizes)


@njit()
def _search(  # type: ignore[no-untyped-def]
    how, values, at, m, y, bounds, order, without, best, which, lows, highs, group, room, widths, found
):
    """Fill `best` and `which` with the distances and positions of the training series nearest to the query.

    The query is the `m` points from ``values[at]`` on. `bounds` holds a lower bound on each distance, and `order` sorts
    `bounds`. The training series at position `without` is skipped.
    """
    p, rooted, root, steps, share = how
    flat, places, packed, _, lengths, columns = y
    n, longest = len(columns), lengths.max()
    eps = np.finfo(packed.dtype).eps
    surely = 1 - 4 * eps * (m + longest + p)
    best[:] = np.inf
    which[:] = n
    limit, done = best[0], 0
    while done < n and bounds[order[done]] * surely <= limit:
        size = reach = 0
        for place in range(done, min(n, done + LANES)):
            j = columns[order[place]]
            length = places[j + 1] - places[j]
            reach = max(reach, length)
            widths[size] = half_width(m, length, steps, share)
            for t in range(p * length):
                group[LANES * t + size] = flat[p * places[j] + t]
            size += 1
        widths[size:] = widths[size - 1]
        if warp_within(values, at, m, group, reach, p, rooted, widths, room, limit, found):
            for k in range(size):
                j = columns[order[done + k]]
                value = room[LANES * (places[j + 1] - places[j]) + k]
                if j != without:
                    _insert(best, which, np.sqrt(value) if root else value, j)
            limit = best[-1] * best[-1] * (1 + 8 * eps) if root else best[-1]
        done += size


@njit()
def _insert(best, which, value, j):  # type: ignore[no-untyped-def]
    """Insert (value, j) into the sorted pairs (`best`, `which`) and drop the last, unless (value, j) follows it."""
    at = len(best)
    while at > 0 and (value < best[at - 1] or (value == best[at - 1] and j < which[at - 1])):
        at -= 1
        if at + 1 < len(best):
            best[at + 1], which[at + 1] = best[at], which[at]
    if at < len(best):
        best[at], which[at] = value, j


@njit()
def _bound_all(  # type: ignore[no-untyped-def]
    how, values, at, m, y, ends, bounds, lows, highs, group, room, widths, found
):
    """Set ``bounds[i]`` to a lower bound on the distance of the query to training series number ``y[5][i]``."""
    p, rooted, _, steps, share = how
    _, _, packed, starts, lengths, columns = y
    known_reach, known_length = -1, -1
    for g in range(len(starts)):
        begin, end = LANES * g, min(LANES * (g + 1), len(columns))
        n, reach = lengths[end - 1], 0
        for place in range(begin, end):
            reach = max(reach, int(half_width(m, lengths[place], steps, share)))
        reach = min(reach, m + n)
        if reach != known_reach or n > known_length:
            envelope(values, at, m, p, n, reach, lows, highs)
            known_reach, known_length = reach, n
        _bound(packed, starts[g], n, lengths[begin], p, rooted, lows, highs, lengths[begin:end], found)
        bounds[begin:end] = found[: end - begin]
        _bound_by_range(values, at, m, p, rooted, ends, 2 * p * LANES * g, found)
        for place in range(begin, end):
            bounds[place] = max(bounds[place], found[place - begin])


@njit()
def envelope(values, at, m, p, n, reach, lows, highs):  # type: ignore[no-untyped-def]
    """Fill `lows` and `highs`, for each time below `n`, with the extremes of the query within `reach` steps of it."""
    for c in range(p):
        low = high = -1  # positions of the smallest and largest value in the window
        for j in range(n):
            begin, end = max(0, min(m - 1, j - reach)), min(m, j + reach + 1)
            if low < begin or high < begin:  # the smallest or largest value has left the window
                low = high = begin
                for i in range(begin, end):
                    value = values[at + p * i + c]
                    low = i if value <= values[at + p * low + c] else low
                    high = i if value >= values[at + p * high + c] else high
            elif j + reach < m:
                value = values[at + p * (end - 1) + c]
                low = end - 1 if value <= values[at + p * low + c] else low
                high = end - 1 if value >= values[at + p * high + c] else high
            lows[p * j + c], highs[p * j + c] = values[at + p * low + c], values[at + p * high + c]


@njit()
def _bound(packed, start, n, shortest, p, rooted, lows, highs, lengths, found):  # type: ignore[no-untyped-def]
    """Set ``found[k]`` to the total distance of the points of series k from the range between `lows` and `highs`.

    The group of series 0 to LANES - 1 begins at ``packed[start]``. Distances are squared unless `rooted`.
    """
    zero = lane.splat(packed[:0].sum())
    total = zero
    found[:] = lengths[-1]
    for k in range(len(lengths)):
        found[k] = lengths[k]
    length = lane.load(found, 0)
    for j in range(n):
        y, outside = start + LANES * p * j, zero
        for c in range(p):
            value = lane.load(packed, y + LANES * c)
            below, above = lane.splat(lows[p * j + c]) - value, value - lane.splat(highs[p * j + c])
            gap = lane.maximum(lane.maximum(below, above), zero)
            outside = lane.multiply_add(gap, gap, outside)
        if rooted:
            outside = lane.square_root(outside)
        if j >= shortest:
            outside = lane.where_at_most(lane.splat(packed.dtype.type(j + 1)), length, outside, zero)
        total = total + outside
    lane.store(found, 0, total)


@njit()
def _bound_by_range(values, at, m, p, rooted, ends, start, found):  # type: ignore[no-untyped-def]
    """Set ``found[k]`` to the total distance of the points of the query from the range of all values of series k.

    The ranges of series 0 to LANES - 1 begin at ``ends[start]``. Distances are squared unless `rooted`.
    """
    zero = lane.splat(found[:0].sum())
    total = zero
    for i in range(m):
        outside = zero
        for c in range(p):
            value = lane.splat(values[at + p * i + c])
            below = lane.load(ends, start + LANES * c) - value
            above = value - lane.load(ends, start + LANES * (p + c))
            gap = lane.maximum(lane.maximum(below, above), zero)
            outside = lane.multiply_add(gap, gap, outside)
        if rooted:
            outside = lane.square_root(outside)
        total = total + outside
    lane.store(found, 0, total)


@njit()
def warp_within(values, at, m, packed, n, p, rooted, widths, room, limit, found):  # type: ignore[no-untyped-def]
    """Compute the DTW distances from a query to `LANES` series, and return True.

    If all distances must exceed `limit`, stop early and return False. `room` receives the last row of the DTW table.
    `similia.distances.dtw._warp` has the same loop without `limit`: a shared loop takes 1.1 to 1.5 times as long.
    """
    room[:LANES] = 0.0
    room[LANES : LANES * (n + 1)] = np.inf
    infinite, width = lane.load(room, LANES), lane.load(widths, 0)
    reach, masked = int(widths.max()), widths.min() < widths.max()
    for i in range(m):
        x0 = lane.splat(values[at])
        low, high = max(0, i - reach), min(n, i + reach + 1)
        left, diagonal, least = infinite, lane.load(room, LANES * low), infinite
        for j in range(low, high):
            y = LANES * p * j
            difference = x0 - lane.load(packed, y)
            cost = difference * difference
            for c in range(1, p):
                difference = lane.splat(values[at + c]) - lane.load(packed, y + LANES * c)
                cost = lane.multiply_add(difference, difference, cost)
            if rooted:
                cost = lane.magnitude(difference) if p == 1 else lane.square_root(cost)
            up = lane.load(room, LANES * (j + 1))
            left = cost + lane.minimum(lane.minimum(up, diagonal), left)
            if masked:
                left = lane.where_at_most(lane.splat(values.dtype.type(abs(i - j))), width, left, infinite)
            diagonal = up
            least = lane.minimum(least, left)
            lane.store(room, LANES * (j + 1), left)
        lane.store(room, 0, infinite)
        if limit < np.inf:
            lane.store(found, 0, least)
            if found.min() > limit:
                return False
        at += p
    return True
