"""Exact nearest neighbours under dynamic time warping (DTW), with lower bounds that rule out most series.

For a query x, each training series y gets three lower bounds on its distance, each more expensive and tighter than the
one before:

1. LB_PAA. DTW matches every time point of y with a point of x within the warping band. The envelope is the range of x
   in the band, so a point of y costs at least its distance from the envelope. As distances from a range are convex,
   `WIDTH` consecutive points of y cost at least `WIDTH` times the distance of their mean from the range that covers the
   envelope at all of them. This bound is computed for all series.
2. LB_Keogh: the sum over all points of y of their distances from the envelope. It is computed for the series in
   ascending order of the first bound, `LANES` series at a time, one in each SIMD lane.
3. LB_Improved: the points of y are moved into the envelope, and each point of x costs at least its distance from the
   envelope of these moved points. The sum is added to LB_Keogh. With a Euclidean cost over several channels, the two
   sums must not be added. The bound is then the larger one, and the second sum uses the envelope of y itself.

DTW is computed for the series whose bounds do not exceed a limit, the k-th smallest distance so far. The search ends
when the first bound of the next series exceeds the limit. A computation ends when, in all lanes, all cells in a row of
the DTW table exceed it. Bounds are lowered by the possible rounding error, so distances and ties equal those of an
exhaustive search, bit for bit.

Cost for x of length m and n series of length l with p channels: n l p for the means, once for all queries;
n l p / `WIDTH` for the first bounds; then (m + l) p or, where bounds do not help, m l p for each series.

Papers: Keogh & Ratanamahatana, "Exact indexing of dynamic time warping", Knowledge and Information Systems 7, 2005;
Rakthanmanon et al., "Searching and mining trillions of time series subsequences under dynamic time warping", KDD 2012;
Lemire, "Faster retrieval with a two-pass dynamic-time-warping lower bound", Pattern Recognition 42, 2009.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from similia.alignments.groups import as_series_pair, window_band
from similia.alignments.log_sums import half_width
from similia.core import lanes as lane
from similia.core.jit import njit
from similia.core.lanes import LANES
from similia.core.threads import run_in_ranges
from similia.distances.dtw import DTW

_WORTH_A_RANGE = 2**20  # minimum number of table cells per thread
WIDTH = 8  # number of points in a segment, whose mean gives the first bound
Floats = npt.NDArray[np.floating]
Index = npt.NDArray[np.int64]


def nearest(distance: DTW, X: Any, Y: Any, k: int, *, without_self: bool = False) -> tuple[Floats, Index]:
    """Return the distances and positions of the `k` series of `Y` nearest to each series of `X`, both (len(X), k).

    Each row is in ascending order of (distance, position). With `without_self`, `X` must be `Y`, and no series is
    its own neighbour. No pair may need scaling (`similia.distances.magnitudes.needs_scaling`).
    """
    A, B = as_series_pair(X, Y)
    A = A.astype(B.values.dtype)  # of the training series, so that the result does not depend on other queries
    rooted, p = distance._rooted(), A.n_dims
    values, indices = np.empty((len(A), k), A.values.dtype), np.empty((len(A), k), np.int64)
    how = (p, rooted, distance.root, *window_band(distance.window))
    x = np.ascontiguousarray(A.values).reshape(-1)
    y = (np.ascontiguousarray(B.values).reshape(-1), B.offsets)
    columns = np.argsort(B.lengths, kind="stable")
    segments = _segments(*y, columns, p)
    longest = int(max(A.lengths.max(), B.lengths.max()))

    def search(first: int, last: int) -> None:
        bounds, room = np.empty(len(B), A.values.dtype), _room(p, longest, A.values.dtype)
        for i in range(first, last):
            one = (x, p * A.offsets[i], A.offsets[i + 1] - A.offsets[i])
            _bound_all(how, *one, *segments, bounds, *room)
            order = np.argsort(bounds)  # in numpy, since numba's argsort takes seconds to compile
            _search(how, *one, *y, columns, bounds, order, i if without_self else -1, values[i], indices[i], *room)

    cells = len(A.values) * len(B.values)
    run_in_ranges(search, len(A), grain=max(1, _WORTH_A_RANGE * len(A) // max(1, cells)))
    return values, indices


def _segments(flat: Floats, offsets: Index, columns: Index, p: int) -> tuple[Floats, Index, Index, float]:
    """Return the means of `WIDTH` points each, in groups of `LANES` series in the order of `columns`.

    The result is (means, start of each group in them, lengths in this order, largest error of a mean). Segment s,
    channel c and series k of a group are at ``start + LANES * (p * s + c) + k``.
    """
    lengths = np.diff(offsets)[columns]
    longest = lengths[np.minimum(np.arange(LANES - 1, len(columns) + LANES - 1, LANES), len(columns) - 1)]
    sizes = LANES * p * -(-longest // WIDTH)
    starts = np.cumsum(sizes) - sizes
    means = np.zeros(int(sizes.sum()), flat.dtype)
    run_in_ranges(lambda a, b: _mean_all(flat, offsets, columns, p, starts, means, a, b), len(starts), 64)
    error = 2 * WIDTH * float(np.finfo(flat.dtype).eps) * float(max(flat.max(), -flat.min()))
    return means, starts, lengths, error


def _room(p: int, longest: int, dtype: np.dtype) -> tuple[Floats, ...]:
    """Return the last arguments of `_search`: work arrays for series of up to `longest` points in `p` channels."""
    ranges, rows = p * longest, LANES * p * longest
    sizes = (ranges, ranges, rows, rows, 3 * LANES * longest, 3 * LANES * longest, LANES * (longest + 1), LANES, LANES)
    return tuple(np.zeros(size, dtype) for size in sizes)


@njit()
def _mean_all(flat, offsets, columns, p, starts, means, first, last):  # type: ignore[no-untyped-def]
    """Write the means of the segments of the groups `first` to `last` - 1."""
    for g in range(first, last):
        for k in range(LANES * g, min(LANES * (g + 1), len(columns))):
            begin, n = offsets[columns[k]], offsets[columns[k] + 1] - offsets[columns[k]]
            for s in range((n + WIDTH - 1) // WIDTH):
                points = min(WIDTH, n - WIDTH * s)
                for c in range(p):
                    total = flat[p * (begin + WIDTH * s) + c]
                    for t in range(1, points):
                        total += flat[p * (begin + WIDTH * s + t) + c]
                    means[starts[g] + LANES * (p * s + c) + k - LANES * g] = total / points


@njit()
def _bound_all(  # type: ignore[no-untyped-def]
    how, values, at, m, means, starts, sizes, error, bounds, lows, highs, one, other, ups, downs, row, widths, found
):
    """Set ``bounds[i]`` to a lower bound on the distance of the query to the i-th series in ascending order of length.

    The query is the `m` points from ``values[at]`` on. `means`, `starts`, `sizes` and `error` come from `_segments`.
    """
    p, rooted, _, steps, share = how
    known_reach, known_length = -1, -1
    zero = lane.splat(means[:0].sum())
    for g in range(len(starts)):
        begin, end = LANES * g, min(LANES * (g + 1), len(sizes))
        n, reach = sizes[end - 1], 0
        for place in range(begin, end):
            reach = max(reach, int(half_width(m, sizes[place], steps, share)))
            widths[place - begin] = sizes[place]
        widths[end - begin :] = n
        reach = min(reach, m + n)
        if reach != known_reach or n > known_length:
            envelope(values, at, m, p, n, reach, lows, highs)
            _widen(lows, highs, n, p, means.dtype.type(error))
            known_reach, known_length = reach, n
        total, length = zero, lane.load(widths, 0)
        for s in range((n + WIDTH - 1) // WIDTH):
            outside, here = zero, starts[g] + LANES * p * s
            for c in range(p):
                value = lane.load(means, here + LANES * c)
                below, above = lane.splat(lows[p * s + c]) - value, value - lane.splat(highs[p * s + c])
                gap = lane.maximum(lane.maximum(below, above), zero)
                outside = lane.multiply_add(gap, gap, outside)
            if rooted:
                outside = lane.square_root(outside)
            points = lane.maximum(length - lane.splat(means.dtype.type(WIDTH * s)), zero)
            total = lane.multiply_add(lane.minimum(points, lane.splat(means.dtype.type(WIDTH))), outside, total)
        lane.store(found, 0, total)
        bounds[begin:end] = found[: end - begin]


@njit()
def _widen(lows, highs, n, p, error):  # type: ignore[no-untyped-def]
    """Replace an envelope of `n` points by its range in each segment, widened by `error`; segment s is at ``p * s``."""
    for s in range((n + WIDTH - 1) // WIDTH):
        for c in range(p):
            low, high = lows[p * WIDTH * s + c], highs[p * WIDTH * s + c]
            for t in range(WIDTH * s + 1, min(WIDTH * (s + 1), n)):
                low, high = min(low, lows[p * t + c]), max(high, highs[p * t + c])
            lows[p * s + c], highs[p * s + c] = low - error, high + error


@njit()
def _search(  # type: ignore[no-untyped-def]
    how, values, at, m, flat, places, columns, bounds, order, without, best, which,
    lows, highs, group, projected, ups, downs, row, widths, found,
):  # fmt: skip
    """Fill `best` and `which` with the distances and positions of the training series nearest to the query.

    The query is the `m` points from ``values[at]`` on. ``bounds[i]`` is a lower bound on the distance to the series
    at position ``columns[i]``, and `order` sorts `bounds`. The training series at position `without` is skipped.
    """
    p, rooted, root, steps, share = how
    n = len(columns)
    longest = (len(row) // LANES) - 1
    eps = np.finfo(flat.dtype).eps
    surely = 1 - 4 * eps * (m + longest + p)
    best[:] = np.inf
    which[:] = n
    waiting, n_waiting = np.empty(2 * LANES, np.int64), 0
    known_reach, known_length = -1, -1
    limit, done = best[0], 0
    while True:
        more = done < n and bounds[order[done]] * surely <= limit
        if n_waiting >= LANES or not more:
            size = min(n_waiting, LANES)
            if size == 0:
                return
            reach = _gather(flat, places, p, waiting[:size], group, row)
            for k in range(LANES):
                j = waiting[min(k, size - 1)]
                widths[k] = half_width(m, places[j + 1] - places[j], steps, share)
            if warp_within(values, at, m, group, reach, p, rooted, widths, row, limit, found):
                for k in range(size):
                    j = waiting[k]
                    value = row[LANES * (places[j + 1] - places[j]) + k]
                    _insert(best, which, np.sqrt(value) if root else value, j)
                limit = best[-1] * best[-1] * (1 + 8 * eps) if root else best[-1]
            n_waiting -= size
            waiting[:n_waiting] = waiting[size : size + n_waiting]
            continue
        size = min(LANES, n - done)
        chosen = waiting[n_waiting : n_waiting + size]  # a view: series that pass the bounds are written over it
        reach = 0
        for k in range(size):
            chosen[k] = columns[order[done + k]]
            reach = max(reach, int(half_width(m, places[chosen[k] + 1] - places[chosen[k]], steps, share)))
        done += size
        if limit == np.inf:
            kept = size
        else:
            length = _gather(flat, places, p, chosen, group, widths)
            reach = min(reach, m + length)
            if reach != known_reach or length > known_length:
                envelope(values, at, m, p, length, reach, lows, highs)
                known_reach, known_length = reach, length
            _bound(group, length, p, rooted, lows, highs, widths, projected, found)
            if found[:size].min() * surely <= limit:
                _bound_back(values, at, m, length, reach, p, rooted, projected, ups, downs, row, widths, found)
            kept = 0
            for k in range(size):
                if found[k] * surely <= limit:
                    chosen[kept] = chosen[k]
                    kept += 1
        first, kept_now = n_waiting, 0
        for k in range(kept):
            if chosen[k] != without:
                waiting[first + kept_now] = chosen[k]
                kept_now += 1
        n_waiting += kept_now


@njit()
def _gather(flat, places, p, chosen, group, lengths):  # type: ignore[no-untyped-def]
    """Write the series at `chosen` to the lanes of `group`, the last to all lanes left; return the largest length."""
    longest = 0
    for k in range(LANES):
        j = chosen[min(k, len(chosen) - 1)]
        begin, length = p * places[j], places[j + 1] - places[j]
        for t in range(p * length):
            group[LANES * t + k] = flat[begin + t]
        lengths[k] = length
        longest = max(longest, length)
    return longest


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
def _bound(group, n, p, rooted, lows, highs, lengths, projected, found):  # type: ignore[no-untyped-def]
    """Set ``found[k]`` to the total distance of the points of series k from the range between `lows` and `highs`.

    `projected` receives the points moved into that range or, with Euclidean costs of several channels, unchanged.
    Distances are squared unless `rooted`.
    """
    zero = lane.splat(group[:0].sum())
    total, length, shortest = zero, lane.load(lengths, 0), lengths.min()
    for j in range(n):
        outside = zero
        for c in range(p):
            value = lane.load(group, LANES * (p * j + c))
            low, high = lane.splat(lows[p * j + c]), lane.splat(highs[p * j + c])
            gap = lane.maximum(lane.maximum(low - value, value - high), zero)
            outside = lane.multiply_add(gap, gap, outside)
            if p == 1 or not rooted:
                value = lane.minimum(lane.maximum(value, low), high)
            lane.store(projected, LANES * (p * j + c), value)
        if rooted:
            outside = lane.square_root(outside)
        if j >= shortest:
            outside = lane.where_at_most(lane.splat(group.dtype.type(j + 1)), length, outside, zero)
        total = total + outside
    lane.store(found, 0, total)


@njit()
def _bound_back(  # type: ignore[no-untyped-def]
    values, at, m, n, reach, p, rooted, projected, ups, downs, row, lengths, found
):
    """Add to ``found[k]`` the total distance of the points of the query from the envelope of the `projected` series k.

    With Euclidean costs of several channels, ``found[k]`` becomes the larger of the two instead.
    """
    zero = lane.splat(projected[:0].sum())
    for i in range(m):
        lane.store(row, LANES * i, zero)
    for c in range(p):
        for sign in (1, -1):
            _add_beyond(values, at, m, projected, n, p, c, sign, min(reach, max(m, n)), lengths, ups, downs, row)
    total = zero
    for i in range(m):
        outside = lane.load(row, LANES * i)
        total = total + (lane.square_root(outside) if rooted else outside)
    before = lane.load(found, 0)
    lane.store(found, 0, before + total if p == 1 or not rooted else lane.maximum(before, total))


@njit()
def _add_beyond(  # type: ignore[no-untyped-def]
    values, at, m, projected, n, p, c, sign, reach, lengths, ups, downs, row
):
    """Add to `row` the squared distance of each point of the query above (or, for `sign` -1, below) the envelope.

    Maxima of windows by van Herk's algorithm: in blocks as long as a window, `ups` holds the maximum from the beginning
    of the block to each place, and `downs` from each place to the end of the block.
    """
    number = projected.dtype.type
    wide, end, shortest = 2 * reach + 1, max(m, n) + 2 * reach, lengths.min()
    zero, never = lane.splat(number(0)), lane.splat(number(-np.inf))
    length, signs = lane.load(lengths, 0), lane.splat(number(sign))
    whole = reach >= max(m, n) - 1  # then each window is the whole series
    largest = never
    for t in range(end):
        if whole and not reach <= t < reach + n:
            continue
        value = never
        if reach <= t < reach + n:
            value = lane.load(projected, LANES * (p * (t - reach) + c)) * signs
            if t - reach >= shortest:
                value = lane.where_at_most(lane.splat(number(t - reach + 1)), length, value, never)
        largest = lane.maximum(largest, value) if t % wide else value
        if not whole:
            lane.store(downs, LANES * t, value)
            lane.store(ups, LANES * t, largest)
    high, largest = largest, never
    for t in range(end - 1, -1 if not whole else end - 1, -1):
        value = lane.load(downs, LANES * t)
        largest = lane.maximum(largest, value) if (t + 1) % wide else value
        lane.store(downs, LANES * t, largest)
    for i in range(m):
        if not whole:
            high = lane.maximum(lane.load(downs, LANES * i), lane.load(ups, LANES * (i + 2 * reach)))
        gap = lane.maximum(lane.splat(number(sign * values[at + p * i + c])) - high, zero)
        lane.store(row, LANES * i, lane.multiply_add(gap, gap, lane.load(row, LANES * i)))


@njit()
def warp_within(values, at, m, packed, n, p, rooted, widths, room, limit, found):  # type: ignore[no-untyped-def]
    """Compute the DTW distances from a query to `LANES` series, and return True.

    Stop early and return False once it is certain that all distances exceed `limit`. `room` receives the last row of
    the DTW table. `similia.distances.dtw._warp` has the same loop without `limit`: one loop for both took 1.1 to 1.5
    times as long.
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
