"""Exact nearest neighbours of series; lower bounds rule most series out, or end most comparisons early.

Bounds are lowered by the possible rounding error, so distances and ties equal those of an exhaustive search, bit for
bit.

**Dynamic time warping** (`nearest_by_warping`). For a query x, each training series y gets up to four lower bounds on
its distance, each more expensive and tighter than the one before:

1. LB_PAA. DTW matches every time point of y with a point of x within the warping band. The envelope is the range of x
   in the band, so a point of y costs at least its distance from the envelope. As distances from a range are convex,
   `WIDTH` consecutive points of y cost at least `WIDTH` times the distance of their mean from the range that covers the
   envelope at all of them. This bound is computed for all series, `LANES` at a time, one in each SIMD lane, from means
   in float32.
2. LB_Improved by segments. The points of y are moved into these ranges, and each point of x costs at least its distance
   from the envelope of the moved points. This is added to LB_PAA. The envelope is that of the least and greatest points
   in each segment of y, and `WIDTH` points of x are represented by their mean, as above.
3. LB_Keogh: the sum over all points of y of their distances from the envelope, `LANES` points at a time.
4. LB_Improved: the points of y are moved into the envelope, and each point of x costs at least its distance from the
   envelope of these moved points. The sum is added to LB_Keogh.

With a Euclidean cost over several channels, the two sums of 2 or 4 must not be added. The bound is then the larger one,
and the second sum uses the envelope of y itself. Bounds 2 and 4, and DTW, are computed for `LANES` series at a time.

DTW is computed for the series whose bounds do not exceed a limit, the k-th smallest distance so far. The search begins
with a few series of least first bounds, which give a first limit. Those whose second bounds do not exceed it follow,
nearly in the order of these bounds. A computation ends when, in all lanes, all cells in a row of the DTW table exceed
the limit.

Cost for x of length m and n series of length l with p channels: n l p for the means and ranges of segments, once for
all queries; n l p / `WIDTH` for the first bounds, and (m + l) p / `WIDTH` for each second bound; then (m + l) p or,
where bounds do not help, m l p for each series. The second and third bounds wait for memory, so the series that follow
are read ahead.

Of 100,000 standardised random walks of 128 points with a window of 10 %, the limit leaves 14 % after the first bounds,
3.4 % after the second (4.7 % if points are not moved) and 0.8 % after the last. DTW takes a tenth of the time.

Papers: Keogh & Ratanamahatana, "Exact indexing of dynamic time warping", Knowledge and Information Systems 7, 2005;
Rakthanmanon et al., "Searching and mining trillions of time series subsequences under dynamic time warping", KDD 2012;
Lemire, "Faster retrieval with a two-pass dynamic-time-warping lower bound", Pattern Recognition 42, 2009.

**Edits and amerced warping** (`nearest_by_abandoning`). Under `ERP`, `MSM`, `TWE` and `ADTW`, with or without a window,
the table of a query x and a training series y is computed only as far as it can lead to one of the k nearest (Herrmann
& Webb, "Early abandoning and pruning for elastic distances including dynamic time warping", DMKD 35, 2021):

1. The distance with a window of 0, which takes one cell for each time point if lengths are equal, is never smaller than
   that with a larger window. Series are compared in the order of these distances, `LANES` at a time, and the limit, the
   k-th smallest distance so far, begins with the k-th of them.
2. A path enters each column of the table by a match, which costs at least the distance of this point of y from the
   envelope of x, or by the deletion of the point. The sum of these costs over later columns is what a path costs at
   least after a column. A cell is dead if it exceeds, in all lanes, the limit minus this sum.
3. A row begins at the first column alive in the row before it, and ends at the first dead column after the last one
   alive there. If no column is alive, the group is abandoned.

All costs are at least 0, and rounded sums keep their order, so cells of paths within the limit have the same bits as
in the whole table. The limit is raised by the rounding error of the sums in step 2.

Cost for x of length m and n series of length l: n (m + l) for steps 1 and 2, n log n for the order, and the live cells.

The nearest of 824 to 10,000 series (ECGFiveDays, FacesUCR, SwedishLeaf, random walks of 128 points) takes, with
ERP, MSM and TWE, these shares of all cells and is found so many times as fast as by comparing with all:

- window of 10 %: 14-35, 49-58, 26-35 and 17-24 % of the cells; 1.8-3.0, 1.1-1.6, 1.7-2.0 and 2.0-2.3 times as fast
- window of 20 %: 9-32, 42-59, 17-27 and 27-35 % of the cells; 2.3-4.7, 1.6-2.0, 2.0-2.8 and 1.9-2.2 times as fast
- no window: 3.4-6.9, 2.1-3.5, 4.3-5.7 and 2.2-3.4 times as fast

With ADTW, it is 1.3 to 2.7 times as fast with these windows; for 5 neighbours, 1.0 to 3.3 times. A search for 23 series
is no faster, as the second group of lanes is the last. Comparing all pairs of a collection once takes half the time, so
there the search is only used with wide windows.

Rejected: bounds by envelopes, or first and last points, that only rule out whole series (Tan, Petitjean & Webb,
"FastEE: fast ensembles of elastic distances for time series classification", DMKD 34, 2020), which leave 58 to 100 % of
the pairs of three UCR data sets; and distances to pivots, which took 1.05 to 2.3 times as long for 256 queries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.alignments import as_series_pair, fill, fill_group, fill_pairs, half_width, window_band
from similia.core import lanes as lane
from similia.core.config import rows_per_block, run_in_ranges, track
from similia.core.jit import njit
from similia.core.lanes import LANES
from similia.distances.elastic import ADTW, DTW, ERP, MSM, TWE
from similia.distances.magnitudes import needs_scaling
from similia.objects import as_series

_FEWEST = 64  # training series, below which all are compared
_FEWEST_COLUMNS, _FEWEST_OWN_COLUMNS = 20, 64  # per row of a table, in the mean
_MORE_COLUMNS = 3  # times as many as with a window of 0
_SAMPLE = 256  # series whose lengths are compared
Index = npt.NDArray[np.int64]
_WORTH_A_RANGE = 2**20  # minimum number of table cells per thread
_FIRST = 32  # for each neighbour: series of least first bounds that are compared to find a limit for the others
_MANY = 16  # times as many: then a limit saves more than it costs
_IN_CACHE = 2**16  # numbers that are read twice
WIDTH = 4  # number of points in a segment, whose mean gives the first bound
_EPS = float(np.finfo(np.float32).eps)
MOST = 2**24  # numbers of a series, which float32 can count
_ALL = np.uint64(2**LANES - 1)  # the bits of all lanes
Floats = npt.NDArray[np.floating]


def search_for(distance: Any, X: Any, Y: Any) -> Callable[..., tuple[npt.NDArray[np.floating], Index]] | None:
    """Return `nearest_by_warping` or `nearest_by_abandoning` if one suits `distance`, X and Y; otherwise None.

    The search under `DTW` does not scale series, so it does not suit very large or very small numbers, nor does it suit
    series of more than 2**24 numbers.
    """
    if type(distance) is DTW:
        A, B = as_series_pair(X, Y)
        too_long = A.n_dims * max(A.lengths.max(), B.lengths.max()) > MOST
        return None if too_long or needs_scaling(A, B) else nearest_by_warping
    return nearest_by_abandoning if type(distance) in (ERP, MSM, TWE, ADTW) and _prunes(distance, X, Y) else None


def _prunes(distance: Any, X: Any, Y: Any) -> bool:
    """Return whether `nearest_by_abandoning` is likely to be faster than comparing all pairs, and suits their numbers.

    If X is Y, a comparison with all computes only half of the distances.
    """
    A, B = distance._read(X, Y)
    if len(B) < _FEWEST or needs_scaling(A, B, distance._unit()):
        return False
    some, others = (side.lengths[:: -(-len(side) // _SAMPLE)].astype(np.int64) for side in (A, B))
    m, n = np.meshgrid(some, others)
    steps, share = window_band(distance.window)
    apart = np.abs(m - n)
    reach = np.maximum(np.maximum(steps, share * np.maximum(m, n)), apart)
    columns, first_columns = (np.minimum(2 * width + 1, n).mean() for width in (reach, apart))
    least = _FEWEST_OWN_COLUMNS if X is Y else _FEWEST_COLUMNS
    return bool(columns >= max(least, _MORE_COLUMNS * first_columns))


def nearest_by_abandoning(distance: Any, X: Any, Y: Any, k: int, *, without_self: bool = False) -> tuple[Floats, Index]:
    """Return the distances and positions of the `k` series of `Y` nearest to each series of `X`, both (len(X), k).

    Each row is in ascending order of (distance, position). With `without_self`, `X` must be `Y`, and no series is
    its own neighbour. `search_for` must have returned this function for `X` and `Y`, which it checks.
    """
    A, B, *how, window = distance._sides(*distance._read(X, Y))
    stride, longest = B.n_dims, int(max(A.lengths.max(), B.lengths.max()))
    x, y = (np.ascontiguousarray(side.values).reshape(-1) for side in (A, B))
    values, indices = np.full((len(A), k), np.inf), np.full((len(A), k), len(B))
    numbers, row = stride * longest, LANES * (longest + 1)
    sizes = (numbers, numbers, LANES * (numbers + LANES), row, row, row, LANES, LANES, LANES)
    step = rows_per_block(3 * 8 * len(B), at_most=1024)
    for start in track(range(0, len(A), step), "neighbours", -(-len(A) // step)):
        stop = min(len(A), start + step)
        above = fill_pairs(A[np.arange(start, stop)], B, lambda *where: fill(*how, (0, 0.0), *where))
        if without_self:
            above[np.arange(stop - start), np.arange(start, stop)] = np.inf

        def search(first: int, last: int, start: int = start, above: Floats = above) -> None:
            order = np.argsort(above[first:last], axis=1, kind="stable")[:, : len(B) - without_self]
            limits = np.take_along_axis(above[first:last], order[:, k - 1 : k], axis=1)[:, 0]
            rows = slice(start + first, start + last)
            sides = (x, A.offsets[start + first :], y, B.offsets, stride)
            _abandon(*how, window, *sides, order, limits, values[rows], indices[rows], *map(np.zeros, sizes))

        run_in_ranges(search, stop - start, grain=1)
    return values, indices


@njit()
def _abandon(  # type: ignore[no-untyped-def]
    kind, parameter, p, window, x, x_offsets, y, y_offsets, stride, order, limits, best, which,
    lows, highs, group, room, before, most, lengths, widths, found,
):  # fmt: skip
    """Insert the distances and positions of the nearest training series into the rows of `best` and `which`.

    Query i is compared with the series ``order[i]``, in this order; its distances may exceed ``limits[i]`` only if they
    are not among the nearest. `x` and `y` are the numbers of all series, `stride` for each time point. The arguments
    after `which` are work arrays.
    """
    rows = np.empty(LANES, np.int64)
    for i in range(len(order)):
        at, m, limit = stride * x_offsets[i], x_offsets[i + 1] - x_offsets[i], limits[i]
        known_reach = known_length = -1
        for begin in range(0, order.shape[1], LANES):
            chosen, n = order[i, begin : begin + LANES], 0
            for k in range(LANES):
                j = chosen[min(k, len(chosen) - 1)]
                length = y_offsets[j + 1] - y_offsets[j]
                rows[k], lengths[k], n = stride * y_offsets[j], length, max(n, length)
                widths[k] = half_width(m, length, window[0], window[1])
            reach = int(widths.max())
            if reach != known_reach or n > known_length:
                envelope(x, at, m, stride, n, reach, lows, highs)
                known_reach, known_length = reach, n
            _side_by_side(y, rows, stride * n, group)
            sides, within = (x, at, m, group, 0, n, stride), (limit, lows, highs)
            if fill_group(kind, parameter, p, sides, lengths, widths, room, before, within, most, found):
                for k in range(len(chosen)):
                    insert(best[i], which[i], found[k], chosen[k])
                limit = min(limit, best[i, -1])


def nearest_by_warping(distance: DTW, X: Any, Y: Any, k: int, *, without_self: bool = False) -> tuple[Floats, Index]:
    """Return the distances and positions of the `k` series of `Y` nearest to each series of `X`, both (len(X), k).

    Each row is in ascending order of (distance, position). With `without_self`, `X` must be `Y`, and no series is
    its own neighbour. `search_for` must have returned this function for `X` and `Y`, which it checks.
    """
    A, B = as_series(X), as_series(Y)
    A = A.astype(B.values.dtype)  # of the training series, so that the result does not depend on other queries
    rooted, p = distance._rooted(), A.n_dims
    values, indices = np.empty((len(A), k), A.values.dtype), np.empty((len(A), k), np.int64)
    how = (p, rooted, distance.root, *window_band(distance.window))
    x = np.ascontiguousarray(A.values).reshape(-1)
    y = (np.ascontiguousarray(B.values).reshape(-1), B.offsets)
    columns = np.argsort(B.lengths, kind="stable")
    segments = _segments(*y, columns, p, max(_largest(x), _largest(y[0])))
    unit = segments[-1] if rooted else segments[-1] ** 2  # of the first bounds
    longest, n_groups = int(max(A.lengths.max(), B.lengths.max())), -(-len(B) // LANES)

    def search(first: int, last: int) -> None:
        bounds, minima = np.empty(LANES * n_groups, np.float32), np.empty(n_groups, np.float32)
        order, room = np.empty(len(B), np.int64), _room(p, longest, A.values.dtype)
        for i in range(first, last):
            one = (x, p * A.offsets[i], A.offsets[i + 1] - A.offsets[i])
            _bound_all(how, *one, *segments, bounds, minima, *room[:2])
            values[i], indices[i] = np.inf, len(B)
            found = (i if without_self else -1, values[i], indices[i], *room)
            limit, most = _limit_of(minima, _FIRST * k, len(B)), np.inf
            while True:
                some = order[: _tighten(how, *one, *segments, bounds, limit, most, order, *room[:2])]
                some = some[_nearly_sorted(bounds[some])]
                nearest = _search(how, *one, *y, columns, bounds, unit, some, *found)
                if limit == most:
                    break
                bounds[some] = np.nan  # at most no limit
                limit = most = nearest

    cells = len(A.values) * len(B.values)
    run_in_ranges(search, len(A), grain=max(1, _WORTH_A_RANGE * len(A) // max(1, cells)))
    return values, indices


def _largest(flat: Floats) -> float:
    """Return the largest absolute value of some numbers."""
    found: list[float] = []

    def find(first: int, last: int) -> None:
        for at in range(first, last, _IN_CACHE):
            part = flat[at : min(last, at + _IN_CACHE)]
            found.append(max(float(part.max()), -float(part.min())))

    run_in_ranges(find, len(flat), _IN_CACHE)
    return max(found)


def _limit_of(minima: npt.NDArray[np.float32], n: int, n_series: int) -> float:
    """Return a number that at least `n` bounds do not exceed, or infinity unless there are many more.

    `minima` are the least bounds of groups of series.
    """
    enough = _MANY * n < n_series and n < len(minima)
    return float(np.partition(minima, n)[n]) if enough else np.inf


def _nearly_sorted(bounds: npt.NDArray[np.float32]) -> Index:
    """Return an order of finite bounds that sorts them, but for differences below a 2^16th of the greatest."""
    keys = bounds * (65535 / max(float(bounds.max(initial=0)), 1e-30))
    return np.argsort(keys.astype(np.uint16), kind="stable")  # a radix sort


def _segments(flat: Floats, offsets: Index, columns: Index, p: int, largest: float) -> tuple[Any, ...]:
    """Return the means and the ranges of `WIDTH` points each, of series in the order of `columns`.

    The result is (means, start of each group in them, ranges, start of each series in them, lengths in this order,
    largest error of a mean, unit). Means are in groups of `LANES` series: segment s, channel c and series k of a group
    are at ``start + LANES * (p * s + c) + k``. Ranges of a series of S segments: the least number of channel c in
    segment s is at ``start + p * s + c``, the greatest p S numbers after it. All are float32, in multiples of
    `unit`, the least power of two above `largest`, which no number exceeds (1 if it is 0). The error includes the
    rounding of an end of the envelope to float32.
    """
    lengths = np.diff(offsets)[columns]
    longest = lengths[np.minimum(np.arange(LANES - 1, len(columns) + LANES - 1, LANES), len(columns) - 1)]
    sizes, room = LANES * p * -(-longest // WIDTH), 2 * p * -(-lengths // WIDTH)
    starts, begins = np.cumsum(sizes) - sizes, np.cumsum(room) - room
    means, ranges = _aligned(int(sizes.sum())), _aligned(int(room.sum()) + LANES)
    unit, out = 2.0 ** np.frexp(largest)[1], (means, starts, ranges, begins)
    run_in_ranges(lambda a, b: _segment_all(flat, offsets, columns, p, 1 / unit, *out, a, b), len(starts), 64)
    return *out, lengths, 2 * WIDTH * float(np.finfo(flat.dtype).eps) + 4 * _EPS, unit


def _aligned(n: int) -> npt.NDArray[np.float32]:
    """Return an array of `n` zeros that begins with a cache line."""
    room = np.zeros(n + LANES, np.float32)
    at = -room.ctypes.data // room.itemsize % LANES
    return room[at : at + n]


def _room(p: int, longest: int, dtype: np.dtype) -> tuple[Floats, ...]:
    """Return the last arguments of `_search`: work arrays for series of up to `longest` points in `p` channels.

    `_side_by_side` writes up to `LANES` numbers more of each series.
    """
    points, group = p * longest, LANES * (p * longest + LANES)
    sizes = (points, points, group, group, group, 4 * LANES * longest, LANES * (longest + 1), LANES, LANES)
    return tuple(np.zeros(size, dtype) for size in sizes)


@njit()
def _segment_all(  # type: ignore[no-untyped-def]
    flat, offsets, columns, p, scale, means, starts, ranges, begins, first, last
):
    """Write the means and ranges of the segments of the groups `first` to `last` - 1."""
    for g in range(first, last):
        for k in range(LANES * g, min(LANES * (g + 1), len(columns))):
            begin, n = offsets[columns[k]], offsets[columns[k] + 1] - offsets[columns[k]]
            n_segments = (n + WIDTH - 1) // WIDTH
            for s in range(n_segments):
                points = min(WIDTH, n - WIDTH * s)
                for c in range(p):
                    total = least = most = flat[p * (begin + WIDTH * s) + c]
                    for t in range(1, points):
                        value = flat[p * (begin + WIDTH * s + t) + c]
                        total += value
                        least, most = min(least, value), max(most, value)
                    means[starts[g] + LANES * (p * s + c) + k - LANES * g] = total * scale / points
                    at = begins[k] + p * s + c
                    ranges[at], ranges[at + p * n_segments] = least * scale, most * scale


@njit()
def _bound_all(  # type: ignore[no-untyped-def]
    how, values, at, m, means, starts, ranges, begins, sizes, error, unit, bounds, minima, lows, highs
):
    """Set ``bounds[i]`` to a lower bound on the distance of the query to the i-th series in ascending order of length.

    The query is the `m` points from ``values[at]`` on. `means` to `unit` come from `_segments`. Bounds are in multiples
    of `unit`, squared unless costs are rooted, and lowered by the rounding errors of their sums. `minima` receives the
    least bound of each group.
    """
    p, rooted, _, steps, share = how
    known_reach, known_length = -1, -1
    number, zero = np.float32, lane.splat(np.float32(0))
    least, most = np.empty(len(lows) // WIDTH + p, number), np.empty(len(lows) // WIDTH + p, number)
    points = np.empty(LANES, number)
    for g in range(len(starts)):
        begin, end = LANES * g, min(LANES * (g + 1), len(sizes))
        n, whole = sizes[end - 1], sizes[begin] // WIDTH  # segments of all lanes
        for k in range(LANES if whole * WIDTH < n else 0):
            points[k] = sizes[min(begin + k, end - 1)]
        reach = min(_widest(m, sizes[begin], n, steps, share), m + n)
        if reach != known_reach or n > known_length:
            envelope(values, at, m, p, n, reach, lows, highs)
            _widen(lows, highs, n, p, 1 / unit, error, least, most)
            known_reach, known_length = reach, n
        total, length, n_segments = zero, lane.load(points, 0), (n + WIDTH - 1) // WIDTH
        for s in range(n_segments):
            if s == whole:
                total = total * lane.splat(number(WIDTH))
            outside, here = zero, starts[g] + LANES * p * s
            for c in range(p):
                value = lane.load(means, here + LANES * c)
                low, high = lane.splat(least[p * s + c]), lane.splat(most[p * s + c])
                gap = value - lane.minimum(lane.maximum(value, low), high)
                outside = lane.multiply_add(gap, gap, outside)
            if rooted:
                outside = lane.square_root(outside)
            if s < whole:
                total = total + outside
                continue
            size = lane.minimum(lane.maximum(length - lane.splat(number(WIDTH * s)), zero), lane.splat(number(WIDTH)))
            total = lane.multiply_add(size, outside, total)
        if n_segments == whole:
            total = total * lane.splat(number(WIDTH))
        total = total * lane.splat(number(1 - _EPS * (n_segments + p + 8)))
        lane.store(bounds, begin, total)
        minima[g] = lane.smallest(total)
    bounds[len(sizes) :] = np.inf
    minima[-1] = bounds[len(bounds) - LANES :].min()


@njit()
def _widest(m, shortest, longest, steps, share):  # type: ignore[no-untyped-def]
    """Return the largest half width of a window for any length from `shortest` to `longest`."""
    return int(max(half_width(m, shortest, steps, share), half_width(m, longest, steps, share)))


@njit()
def _widen(lows, highs, n, p, scale, error, least, most):  # type: ignore[no-untyped-def]
    """Write the ranges of an envelope of `n` points in segments, scaled and widened by `error`, to `least` and `most`.

    Channel c of segment s is at ``p * s + c``.
    """
    for s in range((n + WIDTH - 1) // WIDTH):
        for c in range(p):
            low, high = lows[p * WIDTH * s + c], highs[p * WIDTH * s + c]
            for t in range(WIDTH * s + 1, min(WIDTH * (s + 1), n)):
                low, high = min(low, lows[p * t + c]), max(high, highs[p * t + c])
            least[p * s + c], most[p * s + c] = low * scale - error, high * scale + error


@njit()
def _tighten(  # type: ignore[no-untyped-def]
    how, values, at, m, means, starts, ranges, begins, sizes, error, unit, bounds, limit, most, order, lows, highs
):
    """Raise those of the bounds of `_bound_all` that do not exceed `limit`, by those of the segments of the query.

    Begin `order` with the positions of the series whose bounds then do not exceed `most`, and return their number. The
    ends of envelopes are widened by half of `error`, so that the first bounds hold for points moved to these ends, too.
    """
    p, rooted, _, steps, share = how
    number, apart, n_own = np.float32, rooted and p > 1, (m + WIDTH - 1) // WIDTH  # apart: sums must not be added
    stride = p * (len(lows) // p // WIDTH + 1)
    least, greatest = np.full(stride, -np.inf, number), np.full(stride, np.inf, number)
    below, above = np.empty(stride, number), np.empty(stride, number)
    _average(values[at : at + p * m], m, p, 1 / unit, error, below, above)
    bottom, top = np.empty(LANES * (stride + LANES), number), np.empty(LANES * (stride + LANES), number)
    ends, row = np.empty(4 * LANES * (stride + 1), number), np.empty(LANES * stride, number)
    lengths, sums, surely = np.empty(LANES, number), np.empty(LANES, number), number(1 - _EPS * (n_own + p + 8))
    known_reach, known_length = -1, -1
    n_near, n_chosen = _within(bounds, len(sizes), limit, order), 0
    for first in range(0, n_near, LANES):
        near = order[first : min(first + LANES, n_near)]
        n = sizes[near[-1]]
        n_segments, reach = (n + WIDTH - 1) // WIDTH, min(_widest(m, sizes[near[0]], n, steps, share), max(m, n) - 1)
        if not apart and (reach != known_reach or n > known_length):
            envelope(values, at, m, p, n, reach, lows, highs)
            _widen(lows, highs, n, p, 1 / unit, error / 2, least, greatest)
            known_reach, known_length = reach, n
        ahead = order[first + LANES : min(first + 2 * LANES, n_near)]
        _read_ranges(ranges, begins, sizes, p, near, ahead, bottom, top, lengths)
        for s in range(p * n_segments):
            low, high = lane.splat(least[s]), lane.splat(greatest[s])
            lane.store(bottom, LANES * s, lane.minimum(lane.maximum(lane.load(bottom, LANES * s), low), high))
            lane.store(top, LANES * s, lane.minimum(lane.maximum(lane.load(top, LANES * s), low), high))
        _outside(below, above, m, WIDTH, p, rooted, (reach + WIDTH - 1) // WIDTH, bottom, top, lengths, ends, row, sums)
        for k in range(len(near)):
            i, bound = near[k], sums[k] * surely
            bounds[i] = max(bounds[i], bound) if apart else bounds[i] + bound
            order[n_chosen] = i
            n_chosen += bounds[i] <= most
    return n_chosen


@njit()
def _within(bounds, n, limit, order):  # type: ignore[no-untyped-def]
    """Write the positions of those of the first `n` bounds that are at most `limit` to `order`; return their number."""
    size = 0
    for i in range(n):
        order[size] = i
        size += bounds[i] <= limit
    return size


@njit()
def _average(x, m, p, scale, error, below, above):  # type: ignore[no-untyped-def]
    """Write the means of the segments of `m` points, scaled, minus and plus `error`; channel c at ``p * s + c``."""
    for s in range((m + WIDTH - 1) // WIDTH):
        points = min(WIDTH, m - WIDTH * s)
        for c in range(p):
            total = x[p * WIDTH * s + c]
            for t in range(WIDTH * s + 1, WIDTH * s + points):
                total += x[p * t + c]
            mean = total * scale / points
            below[p * s + c], above[p * s + c] = mean - error, mean + error


@njit()
def _read_ranges(ranges, begins, sizes, p, near, ahead, bottom, top, lengths):  # type: ignore[no-untyped-def]
    """Write the ranges of the series at `near` to lanes, and their numbers of segments to `lengths`.

    The ranges of the series at `ahead` will soon be read. The last series has the most segments, and fills the lanes
    left.
    """
    rows = np.empty(LANES, np.int64)
    for i in ahead:
        for t in range(begins[i], begins[i] + 2 * p * ((sizes[i] + WIDTH - 1) // WIDTH), LANES):
            lane.prefetch(ranges, t)
    for k in range(LANES):
        i = near[min(k, len(near) - 1)]
        rows[k], lengths[k] = begins[i], (sizes[i] + WIDTH - 1) // WIDTH
    n = p * int(lengths[LANES - 1])
    _side_by_side(ranges, rows, n, bottom)
    for k in range(LANES):
        rows[k] += p * int(lengths[k])
    _side_by_side(ranges, rows, n, top)


@njit()
def _outside(  # type: ignore[no-untyped-def]
    below, above, m, width, p, rooted, reach, bottom, top, lengths, ends, row, sums
):
    """Set ``sums[k]`` to the total distance of the `m` points of the query from the windows of series k.

    Segments of `width` points are between `below` and `above`; each counts `width` times, the last as often as it has
    points. A window is the range from the least of `bottom` to the greatest of `top` at up to `reach` segments from
    one, of the ``lengths[k]`` segments of series k. `ends` and `row` are work arrays.

    Extremes of windows by van Herk's algorithm: times are divided into blocks as long as a window, so that a window is
    the end of one block, whose extremes `ends` holds, and the beginning of the next.
    """
    number, plain = bottom.dtype.type, rooted and p == 1  # the root of a tiny number's square would be another number
    zero, never = lane.splat(number(0)), lane.splat(number(-np.inf))
    length, shortest, longest = lane.load(lengths, 0), int(lengths.min()), int(lengths.max())
    total, n_own = zero, (m + width - 1) // width
    for c in range(p):
        for first in range(0, n_own, 2 * reach + 1):
            high, low = never, zero - never
            for s in range(2 * reach, -1, -1):
                high, low = _extended(high, low, bottom, top, first + s - reach, p, c, length, shortest, longest)
                lane.store(ends, 2 * LANES * s, high)
                lane.store(ends, 2 * LANES * s + LANES, low)
            high, low = never, zero - never
            for s in range(min(2 * reach + 1, n_own - first)):
                i = first + s
                if s > 0:
                    high, low = _extended(high, low, bottom, top, i + reach, p, c, length, shortest, longest)
                most = lane.maximum(high, lane.load(ends, 2 * LANES * s))
                least = lane.minimum(low, lane.load(ends, 2 * LANES * s + LANES))
                gap = lane.maximum(least - lane.splat(above[p * i + c]), lane.splat(below[p * i + c]) - most)
                gap = lane.maximum(gap, zero)
                if not plain:
                    gap = gap * gap if c == 0 else lane.multiply_add(gap, gap, lane.load(row, LANES * i))
                lane.store(row, LANES * i, gap)
    for i in range(n_own):
        gap = lane.load(row, LANES * i)
        gap = lane.square_root(gap) if rooted and not plain else gap
        total = lane.multiply_add(gap, lane.splat(number(min(width, m - width * i))), total)
    lane.store(sums, 0, total)


@njit()
def _extended(high, low, bottom, top, j, p, c, length, shortest, longest):  # type: ignore[no-untyped-def]
    """Return the extremes `high` and `low` after those of channel `c` at time `j`, in series that are so long."""
    if j < 0 or j >= longest:
        return high, low
    at = LANES * (p * j + c)
    above, below = lane.maximum(high, lane.load(top, at)), lane.minimum(low, lane.load(bottom, at))
    if j < shortest:
        return above, below
    time = lane.splat(bottom.dtype.type(j + 1))
    return lane.where_at_most(time, length, above, high), lane.where_at_most(time, length, below, low)


@njit()
def _side_by_side(source, rows, n, target):  # type: ignore[no-untyped-def]
    """Write the `n` numbers of `source` from each place of `rows` on to the lanes of `target`.

    Those of shorter series are followed by any numbers. `target` has room for `LANES` more of each.
    """
    if rows.max() + n + LANES <= len(source):
        for t in range(0, n, LANES):
            lane.transpose(source, rows, t, target, LANES * t)
        return
    for k in range(LANES):
        for t in range(min(n, len(source) - rows[k])):
            target[LANES * t + k] = source[rows[k] + t]


@njit()
def _search(  # type: ignore[no-untyped-def]
    how, values, at, m, flat, places, columns, bounds, unit, order, without, best, which,
    lows, highs, moved, inside, group, ends, row, widths, found,
):  # fmt: skip
    """Insert the distances and positions of nearer training series into `best` and `which`, which are sorted.

    The query is the `m` points from ``values[at]`` on. ``bounds[i] * unit`` is a lower bound on the distance to the
    series at position ``columns[i]``; `order` lists the series to be searched, best those of small bounds first. The
    training series at position `without` is skipped. Return the limit that the bounds of others must not exceed.
    """
    p, rooted, root, steps, share = how
    longest = (len(row) // LANES) - 1
    eps = np.finfo(flat.dtype).eps
    surely = max(0.0, 1 - 4 * eps * (m + longest + p + p * longest // LANES))  # sums and distances are rounded
    near, n_near, sums = np.empty(LANES, np.int64), 0, np.empty(LANES, flat.dtype)  # they passed the second bound
    waiting, n_waiting = np.empty(3 * LANES, np.int64), 0  # they passed the third
    rows, room = np.empty(LANES, np.int64), len(moved) // LANES
    chosen, known_reach, known_length, done = np.empty(LANES, np.int64), -1, -1, 0
    while True:
        limit = best[-1] * best[-1] * (1 + 8 * eps) if root else best[-1]
        if n_waiting >= LANES or done == len(order):
            size = min(n_waiting, LANES)
            if size == 0:
                return limit / unit * (1 + 8 * eps) / max(surely, 1e-30)
            length, _ = _half_widths(m, places, waiting[:size], steps, share, widths)
            for k in range(LANES):
                rows[k] = p * places[waiting[min(k, size - 1)]]
            _side_by_side(flat, rows, p * length, group)
            if warp_within(values, at, m, group, length, p, rooted, widths, row, limit):
                for k in range(size):
                    j = waiting[k]
                    value = row[LANES * (places[j + 1] - places[j]) + k]
                    insert(best, which, np.sqrt(value) if root else value, j)
            n_waiting -= size
            waiting[:n_waiting] = waiting[size : size + n_waiting]
            continue
        size = 0
        while size < LANES and done < len(order):
            j = columns[order[done]]
            chosen[size] = j
            size += j != without and bounds[order[done]] * unit * surely <= limit
            done += 1
        if limit == np.inf:
            waiting[n_waiting : n_waiting + size] = chosen[:size]
            n_waiting += size
            continue
        if size > 0:
            length, reach = _half_widths(m, places, chosen[:size], steps, share, widths)
            if reach != known_reach or length > known_length:
                envelope(values, at, m, p, length, reach, lows, highs)
                known_reach, known_length = reach, length
        for k in range(size):
            if done + k < len(order):  # it will soon be read
                ahead = columns[order[done + k]]
                for t in range(p * places[ahead], p * places[ahead + 1], 64 // flat.itemsize):
                    lane.prefetch(flat, t)
            j, begin = chosen[k], p * places[chosen[k]]
            n = places[j + 1] - places[j]
            sums[n_near] = _bound(flat, begin, n, p, rooted, lows, highs, moved, room * n_near)
            if sums[n_near] * surely <= limit:
                if rooted and p > 1:
                    moved[room * n_near : room * n_near + p * n] = flat[begin : begin + p * n]
                near[n_near] = j
                n_near += 1
            if n_near == LANES:
                _bound_back(how, values, at, m, moved, near, places, sums, inside, ends, row, widths, found)
                n_waiting, n_near = _kept(near, found[:n_near], surely, limit, waiting, n_waiting), 0
        if n_near > 0 and done == len(order):
            _bound_back(how, values, at, m, moved, near[:n_near], places, sums, inside, ends, row, widths, found)
            n_waiting, n_near = _kept(near, found[:n_near], surely, limit, waiting, n_waiting), 0


@njit()
def _kept(near, found, surely, limit, waiting, n_waiting):  # type: ignore[no-untyped-def]
    """Append those of the series `near` whose bounds `found` may be at most `limit` to `waiting`; return its length."""
    for k in range(len(found)):
        waiting[n_waiting] = near[k]
        n_waiting += found[k] * surely <= limit
    return n_waiting


@njit()
def _half_widths(m, places, chosen, steps, share, widths):  # type: ignore[no-untyped-def]
    """Fill `widths` with half the widths of the windows of the series at `chosen`, those left with that of the last.

    Return the largest length of a series, and the largest half width, cut to the width of the whole DTW table.
    """
    longest = reach = 0
    for k in range(LANES):
        j = chosen[min(k, len(chosen) - 1)]
        n = places[j + 1] - places[j]
        half = half_width(m, n, steps, share)
        widths[k] = half
        longest, reach = max(longest, n), max(reach, int(half))
    return longest, min(reach, max(m, longest) - 1)


@njit()
def insert(best, which, value, j):  # type: ignore[no-untyped-def]
    """Insert (value, j) into the sorted pairs (`best`, `which`) and drop the last; return its place, or -1 if none."""
    at = len(best)
    while at > 0 and (value < best[at - 1] or (value == best[at - 1] and j < which[at - 1])):
        at -= 1
        if at + 1 < len(best):
            best[at + 1], which[at + 1] = best[at], which[at]
    if at == len(best):
        return -1
    best[at], which[at] = value, j
    return at


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
def _bound(flat, begin, n, p, rooted, lows, highs, moved, at):  # type: ignore[no-untyped-def]
    """Return the total distance of `n` points, from ``flat[begin]`` on, from the ranges between `lows` and `highs`.

    `moved` receives the points moved into these ranges, from `at` on. Distances are squared unless `rooted`.
    """
    total = lane.splat(flat[:0].sum())
    whole = p * n - p * n % LANES
    for t in range(0, whole, LANES):
        value = lane.load(flat, begin + t)
        inside = lane.minimum(lane.maximum(value, lane.load(lows, t)), lane.load(highs, t))
        lane.store(moved, at + t, inside)
        total = total + _cost(value - inside, rooted)
    bound = lane.total(total)
    for t in range(whole, p * n):
        moved[at + t] = min(max(flat[begin + t], lows[t]), highs[t])
        gap = flat[begin + t] - moved[at + t]
        bound += abs(gap) if rooted else gap * gap
    return _total_apart(flat, begin, n, p, moved, at) if rooted and p > 1 else bound


@njit()
def _total_apart(flat, begin, n, p, moved, at):  # type: ignore[no-untyped-def]
    """Return the sum of the Euclidean distances between `n` points, from ``flat[begin]`` on, and the points `moved`."""
    total = flat[:0].sum()
    for t in range(0, p * n, p):
        squares = flat[:0].sum()
        for c in range(t, t + p):
            gap = flat[begin + c] - moved[at + c]
            squares += gap * gap
        total += np.sqrt(squares)
    return total


@njit()
def _cost(gap, rooted):  # type: ignore[no-untyped-def]
    return lane.magnitude(gap) if rooted else gap * gap


@njit()
def _bound_back(  # type: ignore[no-untyped-def]
    how, values, at, m, moved, near, places, sums, inside, ends, row, lengths, found
):
    """Set ``found[k]`` to a lower bound on the distance to the series ``near[k]``, from its bound ``sums[k]``.

    `moved` has its points, moved into the envelope of the query by `_bound`; those of series k begin at k times a
    `LANES`-th of the array. The distances of the points of the query from the envelope of these moved points are added.
    With Euclidean costs of several channels, `moved` has the points themselves, and the bound is the larger of the two
    sums.
    """
    p, rooted, _, steps, share = how
    _, reach = _half_widths(m, places, near, steps, share, lengths)  # only for the reach: `lengths` is filled next
    for k in range(LANES):
        j = near[min(k, len(near) - 1)]
        lengths[k] = places[j + 1] - places[j]
    _side_by_side(moved, len(moved) // LANES * np.arange(LANES), p * int(lengths.max()), inside)
    x = values[at : at + p * m]
    _outside(x, x, m, 1, p, rooted, reach, inside, inside, lengths, ends, row, found)
    for k in range(len(near)):
        found[k] = max(sums[k], found[k]) if rooted and p > 1 else sums[k] + found[k]


@njit()
def warp_within(values, at, m, packed, n, p, rooted, widths, room, limit):  # type: ignore[no-untyped-def]
    """Compute the DTW distances from a query to `LANES` series, and return True.

    Stop early and return False once it is certain that all distances exceed `limit`. `room` receives the last row of
    the DTW table. `similia.distances.elastic._warp` has the same loop without `limit`: one loop for both took 1.1 to
    1.5 times as long.
    """
    room[:LANES] = 0.0
    room[LANES : LANES * (n + 1)] = np.inf
    infinite, width, most = lane.load(room, LANES), lane.load(widths, 0), lane.splat(values.dtype.type(limit))
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
        if lane.bits_above(least, most) == _ALL:
            return False
        at += p
    return True
