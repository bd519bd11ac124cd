"""Exact nearest neighbours of series, with lower bounds that rule most series out before they are compared.

Bounds are lowered by the possible rounding error, so distances and ties equal those of an exhaustive search, bit for
bit.

**Dynamic time warping** (`nearest_by_warping`). For a query x, each training series y gets three lower bounds on its
distance, each more expensive and tighter than the one before:

1. LB_PAA. DTW matches every time point of y with a point of x within the warping band. The envelope is the range of x
   in the band, so a point of y costs at least its distance from the envelope. As distances from a range are convex,
   `WIDTH` consecutive points of y cost at least `WIDTH` times the distance of their mean from the range that covers the
   envelope at all of them. This bound is computed for all series, `LANES` at a time, one in each SIMD lane, from means
   in float32.
2. LB_Keogh: the sum over all points of y of their distances from the envelope, `LANES` points at a time.
3. LB_Improved: the points of y are moved into the envelope, and each point of x costs at least its distance from the
   envelope of these moved points. The sum is added to LB_Keogh. With a Euclidean cost over several channels, the two
   sums must not be added. The bound is then the larger one, and the second sum uses the envelope of y itself. This
   bound and DTW are computed for `LANES` series at a time.

DTW is computed for the series whose bounds do not exceed a limit, the k-th smallest distance so far. The search begins
with a few series of least first bounds, which give a first limit. Those whose first bounds do not exceed it follow,
nearly in the order of these bounds. A computation ends when, in all lanes, all cells in a row of the DTW table exceed
the limit.

Cost for x of length m and n series of length l with p channels: n l p for the means, once for all queries;
n l p / `WIDTH` for the first bounds; then (m + l) p or, where bounds do not help, m l p for each series. The second
bound waits for memory, so the series that follow are read ahead.

Papers: Keogh & Ratanamahatana, "Exact indexing of dynamic time warping", Knowledge and Information Systems 7, 2005;
Rakthanmanon et al., "Searching and mining trillions of time series subsequences under dynamic time warping", KDD 2012;
Lemire, "Faster retrieval with a two-pass dynamic-time-warping lower bound", Pattern Recognition 42, 2009.

**Elastic metrics** (`nearest_by_pivots`). `ERP`, `MSM` and `TWE` without a window are metrics: |d(x, p) - d(y, p)| <=
d(x, y) for any pivot p. So the largest such difference, over a few pivots, is a lower bound on the distance of a query
x and a training series y (LAESA; Micó, Oncina & Vidal, "A new version of the nearest-neighbour approximating and
eliminating search algorithm with linear preprocessing time and memory requirements", Pattern Recognition Letters 15,
1994). Series are compared in the order of their bounds, until the next bound exceeds the k-th smallest distance.

Cost for m queries, n series and p pivots: p (m + n) distances, p m n differences, and the distances that are not
skipped. There are at most 64 pivots, and at most m / 16. Fewer than 128 queries are compared with all series.

Rejected: bounds by envelopes, or first and last points (Tan, Petitjean & Webb, "FastEE: fast ensembles of elastic
distances for time series classification", DMKD 34, 2020) leave 58 to 100 % of the pairs of three UCR data sets with a
window of 10 %, and 98 to 100 % without a window. A distance with a window is never smaller than the metric without one,
so lower bounds on the metric, from pivots, hold for the distance, too. But they are looser, and the metric takes more
time: with windows of 10 % such a search took longer than comparing with all series, and with 20 % it saved little.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.alignments.groups import as_series_pair, window_band
from similia.alignments.log_sums import half_width
from similia.core import lanes as lane
from similia.core.config import rows_per_block
from similia.core.jit import njit
from similia.core.lanes import LANES
from similia.core.progress import track
from similia.core.threads import run_in_ranges
from similia.distances.dtw import DTW
from similia.distances.elastic import ERP, MSM, TWE
from similia.distances.magnitudes import needs_scaling
from similia.objects import n_objects, take

N_PIVOTS = 64  # at most
_SHARE = 16  # queries, and training series, for each pivot: their distances to pivots are few among all distances
_FEWEST = 8  # pivots
_FIRST_BLOCK, _MOST_IN_BLOCK = 32, 1024  # series compared with a query at once, first and later
Index = npt.NDArray[np.int64]
_WORTH_A_RANGE = 2**20  # minimum number of table cells per thread
_FIRST = 64  # for each neighbour: series of least first bounds that are compared to find a limit for the others
_MANY = 16  # times as many: then a limit saves more than it costs
WIDTH = 4  # number of points in a segment, whose mean gives the first bound
_EPS = float(np.finfo(np.float32).eps)
MOST = 2**24  # numbers of a series, which float32 can count
_ALL = np.uint64(2**LANES - 1)  # the bits of all lanes
Floats = npt.NDArray[np.floating]


def search_for(distance: Any, X: Any, Y: Any) -> Callable[..., tuple[npt.NDArray[np.floating], Index]] | None:
    """Return `nearest_by_warping` or `nearest_by_pivots` if one suits `distance`, X and Y; otherwise None.

    The search under `DTW` does not scale series, so it does not suit very large or very small numbers, nor does it suit
    series of more than 2**24 numbers.
    """
    if type(distance) is DTW:
        A, B = as_series_pair(X, Y)
        too_long = A.n_dims * max(A.lengths.max(), B.lengths.max()) > MOST
        return None if too_long or needs_scaling(A, B) else nearest_by_warping
    return nearest_by_pivots if prunes(distance, n_objects(X), n_objects(Y)) else None


def prunes(distance: Any, m: int, n: int) -> bool:
    """Return whether `nearest_by_pivots` searches n series for m queries faster than a comparison of all does."""
    return type(distance) in (ERP, MSM, TWE) and distance.window is None and min(m, n) >= _FEWEST * _SHARE


def nearest_by_pivots(distance: Any, X: Any, Y: Any, k: int, *, without_self: bool = False) -> tuple[Floats, Index]:
    """Return the distances and positions of the `k` series of `Y` nearest to each series of `X`, both (len(X), k).

    Each row is in ascending order of (distance, position). With `without_self`, `X` must be `Y`, and no series is
    its own neighbour.
    """
    A, B = distance.as_objects(X), distance.as_objects(Y)
    n = len(B)
    n_pivots = int(np.clip(min(len(A), n) // _SHARE, 1, N_PIVOTS))
    pivots = np.unique(np.linspace(0, n - 1, n_pivots).astype(np.int64))
    known = np.asarray(distance(B, take(B, pivots)), np.float64)
    own = known if without_self else np.asarray(distance(A, take(B, pivots)), np.float64)
    longest = int(np.diff(A.offsets).max() + np.diff(B.offsets).max())
    error = 8 * np.finfo(np.float64).eps * longest * (A.n_dims + 4)
    values, indices = np.empty((len(A), k)), np.empty((len(A), k), np.int64)
    step = rows_per_block(32 * n, at_most=256)
    for start in track(range(0, len(A), step), "neighbours", -(-len(A) // step)):
        rows = np.arange(start, min(len(A), start + step))
        bounds = _bounds(own[rows], known, error)
        if without_self:
            bounds[np.arange(len(rows)), rows] = np.inf
        values[rows], indices[rows] = _compared(distance, A, B, rows, bounds, k, n - without_self)
    return values, indices


def _bounds(own: Floats, known: Floats, error: float) -> Floats:
    """Return lower bounds on the distances of objects from their distances to pivots, (len(own), len(known))."""
    bounds = np.empty((len(own), len(known)))
    run_in_ranges(lambda first, last: _bound_by_pivots(own, known, error, bounds, first, last), len(own), 1)
    return bounds


def _compared(
    distance: Any, A: Any, B: Any, rows: Index, bounds: Floats, k: int, n: int
) -> tuple[Floats, Index]:  # fmt: skip
    """Compare each query of `rows` with series in the order of their bounds, as long as these can be among the nearest.

    The last series in this order is left out if `n` is one less than their number.
    """
    order = np.argsort(bounds, axis=1, kind="stable")
    bounds = np.take_along_axis(bounds, order, axis=1)
    best, which = np.full((len(rows), k), np.inf), np.full((len(rows), k), len(B), np.int64)
    done, size = 0, max(_FIRST_BLOCK, k)
    active = np.arange(len(rows))
    while done < n and len(active):
        stop = min(n, done + size)
        near = bounds[active, done:stop] <= best[active, -1:]
        active, near = active[near.any(axis=1)], near[near.any(axis=1)]
        if not len(active):
            break
        at, place = np.nonzero(near)
        columns = order[active[at], done + place]
        found = np.full(near.shape, np.inf)
        found[at, place] = distance.paired(A, B, rows[active[at]], columns)
        both = np.concatenate([best[active], found], axis=1)
        ids = np.concatenate([which[active], np.where(near, order[active, done:stop], len(B))], axis=1)
        by = np.lexsort((ids, both), axis=1)[:, :k]
        best[active], which[active] = np.take_along_axis(both, by, axis=1), np.take_along_axis(ids, by, axis=1)
        done, size = stop, int(np.clip(stop // 4, _FIRST_BLOCK, _MOST_IN_BLOCK))
    return best, which


def nearest_by_warping(distance: DTW, X: Any, Y: Any, k: int, *, without_self: bool = False) -> tuple[Floats, Index]:
    """Return the distances and positions of the `k` series of `Y` nearest to each series of `X`, both (len(X), k).

    Each row is in ascending order of (distance, position). With `without_self`, `X` must be `Y`, and no series is
    its own neighbour. No pair may need scaling (`similia.distances.magnitudes.needs_scaling`), and no series may have
    more than `MOST` numbers, which float32 can count.
    """
    A, B = as_series_pair(X, Y)
    A = A.astype(B.values.dtype)  # of the training series, so that the result does not depend on other queries
    rooted, p = distance._rooted(), A.n_dims
    values, indices = np.empty((len(A), k), A.values.dtype), np.empty((len(A), k), np.int64)
    how = (p, rooted, distance.root, *window_band(distance.window))
    x = np.ascontiguousarray(A.values).reshape(-1)
    y = (np.ascontiguousarray(B.values).reshape(-1), B.offsets)
    columns = np.argsort(B.lengths, kind="stable")
    segments = _segments(*y, columns, p, float(max(x.max(), -x.min(), y[0].max(), -y[0].min())))
    unit = segments[-1] if rooted else segments[-1] ** 2  # of the first bounds
    longest = int(max(A.lengths.max(), B.lengths.max()))

    def search(first: int, last: int) -> None:
        bounds, room = np.empty(len(B), np.float32), _room(p, longest, A.values.dtype)
        for i in range(first, last):
            one = (x, p * A.offsets[i], A.offsets[i + 1] - A.offsets[i])
            _bound_all(how, *one, *segments, bounds, *room)
            values[i], indices[i] = np.inf, len(B)
            found = (i if without_self else -1, values[i], indices[i], *room)
            some = _least(bounds, _FIRST * k)
            limit = _search(how, *one, *y, columns, bounds, unit, some, *found)
            if len(some) < len(bounds):
                bounds[some] = np.inf
                rest = np.flatnonzero(bounds <= limit)
                _search(how, *one, *y, columns, bounds, unit, rest[_nearly_sorted(bounds[rest])], *found)

    cells = len(A.values) * len(B.values)
    run_in_ranges(search, len(A), grain=max(1, _WORTH_A_RANGE * len(A) // max(1, cells)))
    return values, indices


def _least(bounds: npt.NDArray[np.float32], n: int) -> Index:
    """Return the positions of at least `n` least bounds, or of all unless there are many more, by ascending bound."""
    if _MANY * n >= len(bounds):
        return np.argsort(bounds)
    some = np.flatnonzero(bounds <= np.partition(bounds, n)[n])
    return some[np.argsort(bounds[some])]


def _nearly_sorted(bounds: npt.NDArray[np.float32]) -> Index:
    """Return an order of finite bounds that sorts them, but for differences below a 2^16th of the greatest."""
    keys = bounds * (65535 / max(float(bounds.max(initial=0)), 1e-30))
    return np.argsort(keys.astype(np.uint16), kind="stable")  # a radix sort


def _segments(flat: Floats, offsets: Index, columns: Index, p: int, largest: float) -> tuple[Any, ...]:
    """Return the means of `WIDTH` points each, in groups of `LANES` series in the order of `columns`.

    The result is (means, start of each group in them, lengths in this order, largest error of a mean, unit). Segment s,
    channel c and series k of a group are at ``start + LANES * (p * s + c) + k``. Means are float32, in multiples of
    `unit`, the least power of two above `largest`, which no number exceeds (1 if it is 0). The error includes the
    rounding of an end of the envelope to float32.
    """
    lengths = np.diff(offsets)[columns]
    longest = lengths[np.minimum(np.arange(LANES - 1, len(columns) + LANES - 1, LANES), len(columns) - 1)]
    sizes = LANES * p * -(-longest // WIDTH)
    starts = np.cumsum(sizes) - sizes
    means, unit = np.zeros(int(sizes.sum()), np.float32), 2.0 ** np.frexp(largest)[1]
    run_in_ranges(lambda a, b: _mean_all(flat, offsets, columns, p, starts, 1 / unit, means, a, b), len(starts), 64)
    return means, starts, lengths, 2 * WIDTH * float(np.finfo(flat.dtype).eps) + 4 * _EPS, unit


def _room(p: int, longest: int, dtype: np.dtype) -> tuple[Floats, ...]:
    """Return the last arguments of `_search`: work arrays for series of up to `longest` points in `p` channels."""
    points, group = p * longest, LANES * p * longest
    sizes = (points, points, points, group, group, 4 * LANES * longest, LANES * (longest + 1), LANES, LANES)
    return tuple(np.zeros(size, dtype) for size in sizes)


@njit()
def _mean_all(flat, offsets, columns, p, starts, scale, means, first, last):  # type: ignore[no-untyped-def]
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
                    means[starts[g] + LANES * (p * s + c) + k - LANES * g] = total * scale / points


@njit()
def _bound_all(  # type: ignore[no-untyped-def]
    how, values, at, m, means, starts, sizes, error, unit, bounds,
    lows, highs, moved, inside, group, ends, row, widths, found,
):  # fmt: skip
    """Set ``bounds[i]`` to a lower bound on the distance of the query to the i-th series in ascending order of length.

    The query is the `m` points from ``values[at]`` on. `means` to `unit` come from `_segments`. Bounds are in multiples
    of `unit`, squared unless costs are rooted, and lowered by the rounding errors of their sums.
    """
    p, rooted, _, steps, share = how
    known_reach, known_length = -1, -1
    number, zero = np.float32, lane.splat(np.float32(0))
    least, most = np.empty(len(lows) // WIDTH + p, number), np.empty(len(lows) // WIDTH + p, number)
    points, totals = np.empty(LANES, number), np.empty(LANES, number)
    for g in range(len(starts)):
        begin, end = LANES * g, min(LANES * (g + 1), len(sizes))
        n, reach = sizes[end - 1], 0
        for place in range(begin, end):
            reach = max(reach, int(half_width(m, sizes[place], steps, share)))
            points[place - begin] = sizes[place]
        points[end - begin :] = n
        reach = min(reach, m + n)
        if reach != known_reach or n > known_length:
            envelope(values, at, m, p, n, reach, lows, highs)
            _widen(lows, highs, n, p, 1 / unit, error, least, most)
            known_reach, known_length = reach, n
        total, length, n_segments = zero, lane.load(points, 0), (n + WIDTH - 1) // WIDTH
        for s in range(n_segments):
            outside, here = zero, starts[g] + LANES * p * s
            for c in range(p):
                value = lane.load(means, here + LANES * c)
                low, high = lane.splat(least[p * s + c]), lane.splat(most[p * s + c])
                gap = value - lane.minimum(lane.maximum(value, low), high)
                outside = lane.multiply_add(gap, gap, outside)
            if rooted:
                outside = lane.square_root(outside)
            size = lane.minimum(lane.maximum(length - lane.splat(number(WIDTH * s)), zero), lane.splat(number(WIDTH)))
            total = lane.multiply_add(size, outside, total)
        lane.store(totals, 0, total * lane.splat(number(1 - _EPS * (n_segments + p + 8))))
        bounds[begin:end] = totals[: end - begin]


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
    surely = max(0.0, 1 - 4 * eps * (m + longest + p + p * longest // LANES))
    near, n_near, sums = np.empty(LANES, np.int64), 0, np.empty(LANES, flat.dtype)  # they passed the second bound
    waiting, n_waiting = np.empty(3 * LANES, np.int64), 0  # they passed the third
    chosen, known_reach, known_length, done = np.empty(LANES, np.int64), -1, -1, 0
    while True:
        limit = best[-1] * best[-1] * (1 + 8 * eps) if root else best[-1]
        if n_waiting >= LANES or done == len(order):
            size = min(n_waiting, LANES)
            if size == 0:
                return limit / unit * (1 + 8 * eps)
            length, _ = _half_widths(m, places, waiting[:size], steps, share, widths)
            _gather(flat, places, p, waiting[:size], group)
            if warp_within(values, at, m, group, length, p, rooted, widths, row, limit):
                for k in range(size):
                    j = waiting[k]
                    value = row[LANES * (places[j + 1] - places[j]) + k]
                    _insert(best, which, np.sqrt(value) if root else value, j)
            n_waiting -= size
            waiting[:n_waiting] = waiting[size : size + n_waiting]
            continue
        size = 0
        while size < LANES and done < len(order):
            j = columns[order[done]]
            chosen[size] = j
            size += j != without and bounds[order[done]] * unit <= limit
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
            sums[n_near] = _bound(flat, begin, n, p, rooted, lows, highs, moved)
            if sums[n_near] * surely <= limit:
                for t in range(p * n):
                    inside[LANES * t + n_near] = moved[t] if p == 1 or not rooted else flat[begin + t]
                near[n_near] = j
                n_near += 1
            if n_near == LANES:
                _bound_back(how, values, at, m, inside, near, places, sums, ends, row, widths, found)
                n_waiting, n_near = _kept(near, found[:n_near], surely, limit, waiting, n_waiting), 0
        if n_near > 0 and done == len(order):
            _bound_back(how, values, at, m, inside, near[:n_near], places, sums, ends, row, widths, found)
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
def _gather(flat, places, p, chosen, group):  # type: ignore[no-untyped-def]
    """Write the series at `chosen` to the lanes of `group`, the last to all lanes left."""
    for k in range(LANES):
        j = chosen[min(k, len(chosen) - 1)]
        begin = p * places[j]
        for t in range(p * (places[j + 1] - places[j])):
            group[LANES * t + k] = flat[begin + t]


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
def _bound(flat, begin, n, p, rooted, lows, highs, moved):  # type: ignore[no-untyped-def]
    """Return the total distance of `n` points, from ``flat[begin]`` on, from the ranges between `lows` and `highs`.

    `moved` receives the points moved into these ranges. Distances are squared unless `rooted`.
    """
    total = lane.splat(flat[:0].sum())
    whole = p * n - p * n % LANES
    for t in range(0, whole, LANES):
        value = lane.load(flat, begin + t)
        inside = lane.minimum(lane.maximum(value, lane.load(lows, t)), lane.load(highs, t))
        lane.store(moved, t, inside)
        total = total + _cost(value - inside, rooted)
    bound = lane.total(total)
    for t in range(whole, p * n):
        moved[t] = min(max(flat[begin + t], lows[t]), highs[t])
        gap = flat[begin + t] - moved[t]
        bound += abs(gap) if rooted else gap * gap
    return _total_apart(flat, begin, n, p, moved) if rooted and p > 1 else bound


@njit()
def _total_apart(flat, begin, n, p, moved):  # type: ignore[no-untyped-def]
    """Return the sum of the Euclidean distances between `n` points, from ``flat[begin]`` on, and the points `moved`."""
    total = flat[:0].sum()
    for t in range(0, p * n, p):
        squares = flat[:0].sum()
        for c in range(t, t + p):
            gap = flat[begin + c] - moved[c]
            squares += gap * gap
        total += np.sqrt(squares)
    return total


@njit()
def _cost(gap, rooted):  # type: ignore[no-untyped-def]
    return lane.magnitude(gap) if rooted else gap * gap


@njit()
def _bound_back(  # type: ignore[no-untyped-def]
    how, values, at, m, inside, near, places, sums, ends, row, lengths, found
):
    """Set ``found[k]`` to a lower bound on the distance to the series ``near[k]``, from its second bound ``sums[k]``.

    Lane k of `inside` has its points, moved into the envelope of the query by `_bound`. The distances of the points of
    the query from the envelope of these moved points are added. With Euclidean costs of several channels, `inside` has
    the points themselves, and the bound is the larger of the two sums.

    Extremes of windows by van Herk's algorithm: times are divided into blocks as long as a window, so that a window is
    the end of one block, whose extremes `ends` holds, and the beginning of the next.
    """
    p, rooted, _, steps, share = how
    plain = rooted and p == 1  # the root of the square of a tiny number would be another number
    _, reach = _half_widths(m, places, near, steps, share, lengths)  # only for the reach: `lengths` is filled next
    for k in range(LANES):
        j = near[min(k, len(near) - 1)]
        lengths[k] = places[j + 1] - places[j]
    number = inside.dtype.type
    zero, never = lane.splat(number(0)), lane.splat(number(-np.inf))
    length, shortest, longest = lane.load(lengths, 0), int(lengths.min()), int(lengths.max())
    for i in range(m):
        lane.store(row, LANES * i, zero)
    for c in range(p):
        for first in range(0, m, 2 * reach + 1):
            high, low = never, zero - never
            for s in range(2 * reach, -1, -1):
                high, low = _extended(high, low, inside, first + s - reach, p, c, length, shortest, longest)
                lane.store(ends, 2 * LANES * s, high)
                lane.store(ends, 2 * LANES * s + LANES, low)
            high, low = never, zero - never
            for s in range(min(2 * reach + 1, m - first)):
                if s > 0:
                    high, low = _extended(high, low, inside, first + s + reach, p, c, length, shortest, longest)
                top, floor = lane.load(ends, 2 * LANES * s), lane.load(ends, 2 * LANES * s + LANES)
                value = lane.splat(values[at + p * (first + s) + c])
                moved = lane.minimum(lane.maximum(value, lane.minimum(low, floor)), lane.maximum(high, top))
                place, gap = LANES * (first + s), value - moved
                if plain:
                    lane.store(row, place, lane.magnitude(gap))
                else:
                    lane.store(row, place, lane.multiply_add(gap, gap, lane.load(row, place)))
    total, before = zero, lane.load(sums, 0)
    for i in range(m):
        outside = lane.load(row, LANES * i)
        total = total + (lane.square_root(outside) if rooted and not plain else outside)
    lane.store(found, 0, before + total if plain or not rooted else lane.maximum(before, total))


@njit()
def _extended(high, low, inside, j, p, c, length, shortest, longest):  # type: ignore[no-untyped-def]
    """Return the extremes `high` and `low` after the numbers of channel `c` at time `j`, in series that are so long."""
    if j < 0 or j >= longest:
        return high, low
    value = lane.load(inside, LANES * (p * j + c))
    if j < shortest:
        return lane.maximum(high, value), lane.minimum(low, value)
    time = lane.splat(inside.dtype.type(j + 1))
    above, below = lane.maximum(high, value), lane.minimum(low, value)
    return lane.where_at_most(time, length, above, high), lane.where_at_most(time, length, below, low)


@njit()
def warp_within(values, at, m, packed, n, p, rooted, widths, room, limit):  # type: ignore[no-untyped-def]
    """Compute the DTW distances from a query to `LANES` series, and return True.

    Stop early and return False once it is certain that all distances exceed `limit`. `room` receives the last row of
    the DTW table. `similia.distances.dtw._warp` has the same loop without `limit`: one loop for both took 1.1 to 1.5
    times as long.
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


@njit()
def _bound_by_pivots(own, known, error, bounds, first, last):  # type: ignore[no-untyped-def]
    """Set ``bounds[i, j]`` to a lower bound on the distance of objects whose distances to pivots are given."""
    for i in range(first, last):
        for j in range(len(known)):
            largest = 0.0
            for p in range(known.shape[1]):
                a, b = own[i, p], known[j, p]
                largest = max(largest, abs(a - b) - error * (a + b))
            bounds[i, j] = largest
