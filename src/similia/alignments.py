r"""Loops over pairs of series, shared by kernels and distances: SIMD lanes of pairs, and sums over all alignments.

One series is compared with a group of `LANES` others, side by side (see `fill_pairs`); a lane is a slot of a SIMD
register. Series are sorted by length and padded to the longest of their group. With p channels, series k of group g at
time j and channel c is ``packed[starts[g] + LANES * (p * j + c) + k]``.

The global alignment kernel and soft-DTW are sums over all alignments, computed by a recurrence over pairs of time
points:

.. math:: M(i, j) = \kappa(x_i, y_j)\,\big(M(i-1, j-1) + M(i-1, j) + M(i, j-1)\big), \qquad M(0, 0) = 1,

where kappa is the local similarity of two time points. M exceeds the range of float64 after a few hundred time points,
and so does the ratio of two cells in the same row or anti-diagonal. Therefore each cell is stored as a float64 in [1,
2) and an exponent of two, which is another float64. Terms are scaled by exact powers of two before they are added, and
only the last cell takes a logarithm. A power 2^-z is computed as 2^w times a Taylor polynomial of 2^r, where w is the
integer nearest to -z, and r = -z - w lies in [-1/2, 1/2].

Most elastic distances minimise over alignments or edits (`fill`). Each recurrence keeps one row of its table. Cells
with |i - j| > band are infinite (LCSS: never match). Editing x costs the same as editing y, and a minimum does not
depend on order, so d(x, y) and d(y, x) have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial, gcd, log
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core import lanes as lane
from similia.core.config import run_in_ranges
from similia.core.functions import log_of
from similia.core.jit import njit
from similia.core.lanes import LANES
from similia.core.text import counted
from similia.core.validation import BadValue, as_second
from similia.objects import SeriesBatch
from similia.objects.series import as_series
from similia.objects.vectors import check_finite

_WORTH_A_RANGE = 2**20  # minimum number of cells for another thread: a fraction of a millisecond
_PACKED = 2**24  # bytes of the groups that `fill_chosen` packs at a time
_GAIN = 0.8  # put the longer series in lanes only if that saves a fifth of the cells, as short ones stay in cache
Indices = npt.NDArray[np.int64]
UNLIMITED = 2**40  # steps: a window that excludes nothing
_ZERO = -1e300  # exponent that represents 0
_FARTHEST = 1e295  # largest -log2 of a local similarity; sums over 10,000 time points stay above _ZERO
_MOST_UNITS = 1e145  # largest value of a time point; squares of differences stay below _FARTHEST
_LOWEST = -1023.0  # a summand with a smaller exponent does not change a sum of 1 or more
_LOG_2 = log(2.0)
_EPS = float(np.finfo(np.float64).eps)
_ALL = np.uint64(2**LANES - 1)  # the bits of all lanes
How = tuple[float, bool, int, int, float]
ERP, MSM, TWE, LCSS, ADTW = range(5)


def fill_pairs(X: SeriesBatch, Y: SeriesBatch, loop: Callable[..., None]) -> npt.NDArray[Any]:
    """Return a value for each pair of a series in X and a series in Y, shape (n, m).

    A task compares one series, called its row, with a group of series, each in a SIMD lane. Rows are series of X and
    groups consist of series of Y, or vice versa if that leaves fewer lanes idle. ``loop(x, y, symmetric, out, strides,
    first, last)`` computes tasks `first` to `last` - 1, with x = (values, offsets, rows, turns) for the rows and y =
    (packed, starts, lengths, columns, turns) for the groups. `rows` and `columns` are indices of series in ascending
    order of length; `turns` is the order in which rows or groups are processed. The value of series i of x and series j
    of y goes to ``out[i * strides[0] + j * strides[1]]``. If `symmetric`, x and y are the same series; the loop
    computes each pair once, with the longer series as the row, and writes the value for (i, j) and (j, i).
    """
    out = np.empty((len(X), len(Y)), X.values.dtype)
    strides = (len(Y), 1)
    if _cells(Y, X) < _GAIN * _cells(X, Y):
        X, Y, strides = Y, X, (1, len(Y))
    rows = np.argsort(X.lengths, kind="stable")
    x = (np.ascontiguousarray(X.values).reshape(-1), X.offsets, rows, _turns(len(X)))
    y = grouped(Y)

    def fill(first: int, last: int) -> None:
        loop(x, y, X is Y, out.reshape(-1), strides, first, last)

    n_tasks = len(X) * len(y[1])
    run_in_ranges(fill, n_tasks, grain=max(1, _WORTH_A_RANGE * n_tasks // max(1, _cells(X, Y))))
    return out


def fill_chosen(
    X: SeriesBatch, Y: SeriesBatch, rows: Indices, columns: Indices, loop: Callable[..., None]
) -> npt.NDArray[Any]:
    """Return the values of the pairs ``X[rows[k]], Y[columns[k]]``, shape (n_pairs,); `loop` is as in `fill_pairs`.

    All pairs of a group have the same series of X. If there are fewer pairs than lanes, the last pair is repeated.
    """
    out = np.empty(len(rows), X.values.dtype)
    order = np.lexsort((Y.lengths[columns], rows))
    first = np.flatnonzero(np.diff(rows[order], prepend=-1))
    sizes = np.diff(np.append(first, len(order)))
    padded = -(-sizes // LANES) * LANES  # filled with the last pair
    steps = np.arange(padded.sum()) - np.repeat(np.cumsum(padded) - padded, padded)
    order = order[np.repeat(first, padded) + np.minimum(steps, np.repeat(sizes - 1, padded))]
    room = LANES * Y.n_dims * Y.values.itemsize * _longest(Y.lengths[columns[order]])
    blocks = np.flatnonzero(np.diff((np.cumsum(room) - room) // _PACKED, prepend=-1))
    for begin, end in zip(blocks, np.append(blocks, len(room))[1:], strict=True):
        pairs = order[LANES * begin : LANES * end]
        packed, starts, lengths, _, turns = grouped(Y, columns[pairs])
        x = (np.ascontiguousarray(X.values).reshape(-1), X.offsets, rows[pairs[::LANES]], turns[:0])
        y = (packed, starts, lengths, pairs, turns)
        cells = int((X.lengths[x[2]] * room[begin:end]).sum()) // (Y.n_dims * Y.values.itemsize)

        def fill(start: int, stop: int, x: Any = x, y: Any = y) -> None:
            loop(x, y, False, out, (0, 1), start, stop)

        run_in_ranges(fill, len(starts), grain=max(1, _WORTH_A_RANGE * len(starts) // max(1, cells)))
    return out


@njit()
def task_of(number, x, y, symmetric):  # type: ignore[no-untyped-def]
    """Return task `number` as (series of the row, group, begin, end); the group has the series ``columns[begin:end]``.

    `fill_pairs` explains `x`, `y` and `symmetric`. If the turns of `x` are empty (in `fill_chosen`), each group is one
    task, ``rows[group]`` is the series of its row, and `columns` holds indices of pairs instead of series.
    """
    _, _, rows, row_turns = x
    _, starts, _, columns, group_turns = y
    if len(row_turns) == 0:
        group = group_turns[number]
        return rows[group], group, LANES * group, LANES * (group + 1)
    row, group = row_turns[number // len(starts)], group_turns[number % len(starts)]
    begin = LANES * group
    return rows[row], group, begin, min(begin + LANES, row + 1 if symmetric else len(columns))


@njit()
def put(out, strides, i, j, value, symmetric):  # type: ignore[no-untyped-def]
    """Write the value of the pair (i, j) to `out`, and also to the place of (j, i) if `symmetric`."""
    out[i * strides[0] + j * strides[1]] = value
    if symmetric:
        out[j * strides[0] + i * strides[1]] = value


def grouped(Y: SeriesBatch, columns: Indices | None = None) -> tuple[Any, ...]:
    """Return (packed groups, start of each group, lengths and indices of the series, turns), as in `fill_pairs`.

    `columns` are the indices of the series, in ascending order of length in each group; by default, all series.
    """
    columns = np.argsort(Y.lengths, kind="stable") if columns is None else columns
    lengths = Y.lengths[columns]
    sizes = LANES * Y.n_dims * _longest(lengths)
    starts = np.cumsum(sizes) - sizes
    packed = np.zeros(int(sizes.sum()), Y.values.dtype)
    flat = np.ascontiguousarray(Y.values).reshape(-1)
    _pack(flat, Y.n_dims * Y.offsets[columns], Y.n_dims * lengths, starts, packed)
    return packed, starts, lengths, columns, _turns(len(starts))


@njit()
def _pack(flat, begins, sizes, starts, packed):  # type: ignore[no-untyped-def]
    """Write runs of numbers side by side, `LANES` at a time: run k of a group at ``start + LANES * t + k``."""
    for g in range(len(starts)):
        for k in range(LANES * g, min(LANES * (g + 1), len(begins))):
            for t in range(sizes[k]):
                packed[starts[g] + LANES * (t - g) + k] = flat[begins[k] + t]


def _longest(lengths: Indices) -> Indices:
    """Return the largest length in each group of `LANES` entries; lengths must ascend within each group."""
    return lengths[np.minimum(np.arange(LANES - 1, len(lengths) + LANES - 1, LANES), len(lengths) - 1)]


def _cells(X: SeriesBatch, Y: SeriesBatch) -> int:
    """Return the number of cells (pairs of time points) to compute with `Y` in lanes, idle lanes included."""
    return len(X.values) * LANES * int(_longest(np.sort(Y.lengths)).sum())


def _turns(n: int) -> Indices:
    """Return 0..n-1 reordered so that any run of entries is spread over the range: threads get equal work."""
    step = round(0.618 * n)
    while gcd(step, n) > 1:
        step += 1
    return np.arange(n) * step % n


def as_series_pair(X: Any, Y: Any) -> tuple[SeriesBatch, SeriesBatch]:
    """Return X and Y (X if Y is None) as batches; raise if series are empty, not finite or of unequal `n_dims`."""
    A = as_series(X)
    B = A if Y is None else as_second(as_series, Y)
    for name, batch in (("X", A), ("Y", B)):
        if batch.lengths.min() == 0:
            shortest = int(batch.lengths.argmin())
            raise BadValue(shortest, "has length 0", "at least one time point", "drop it", collection=name)
        check_finite(batch, collection=name)
    if A.n_dims != B.n_dims:
        raise ValueError(
            f"the series of X have {counted(A.n_dims, 'channel')} and those of Y have {B.n_dims}, expected as many in "
            "both; write a single series x as [x], or set as_series(X, axes=...) if time and channels are exchanged"
        )
    return A, B


def window_band(window: Any) -> tuple[int, float]:
    """Return a window as (steps, share of the longer length), of which at least one is 0; raise if it is invalid."""
    if window is None:
        return UNLIMITED, 0.0
    if isinstance(window, Integral) and not isinstance(window, bool) and int(window) >= 0:
        return min(int(window), UNLIMITED), 0.0
    if isinstance(window, Real) and not isinstance(window, Integral) and 0 < float(window) <= 1:
        return 0, float(window)
    raise ValueError(
        "window must be None, an integer >= 0 (steps) or a float in (0, 1] (share of the longer series), "
        f"got {window!r}"
    )


_POWERS = tuple(_LOG_2**k / factorial(k) for k in range(12, -1, -1))  # coefficients of 2^r, error below 2e-16


def in_units(X: SeriesBatch, exponent: int, unit: str, name: str = "X") -> SeriesBatch:
    """Return the series in float64, divided by 2**exponent; raise if squares of the quotients could overflow.

    In the error, `unit` names the divisor and `name` the collection of series.
    """
    with np.errstate(over="ignore", under="ignore"):
        values = np.ldexp(X.values.astype(np.float64), -exponent)
    large = ~(np.abs(values).max(axis=1) < _MOST_UNITS)
    if large.any():
        i = int(np.searchsorted(X.offsets, np.argmax(large), side="right")) - 1
        raise BadValue(
            i,
            f"holds numbers above {_MOST_UNITS:.0e} times the {unit}, whose squares are too large",
            remedy=f"scale the series or use a larger {unit}",
            collection=name,
        )
    return SeriesBatch(values, X.offsets)


def log_sums(
    X: SeriesBatch, Y: SeriesBatch, how: How, *, same: bool, centre: bool, pairs: tuple[Indices, Indices] | None = None
) -> npt.NDArray[np.float64]:
    """Return log_sum(x, y), the logarithm of a sum over alignments, for pairs of a series x of X and a series y of Y.

    An alignment is a path through cells (i, j), which are pairs of time points. It contributes the product of the local
    similarities of its cells to the sum. If `centre`, the mean of log_sum(x, x) and log_sum(y, y) is subtracted.

    `how` is (rate, divisible, triangular, steps, share). With e = exp(-rate ||x_i - y_j||^2), the local similarity is e
    (soft-DTW), or w e / (2 - w e) if `divisible`, where w = 1 - |i - j| / triangular, or 1 if `triangular` is 0. Paths
    stay in a band. If `divisible`, it is |i - j| <= steps, which may exclude all paths. Otherwise it is |i - j| <=
    `half_width` of x and y; this band also holds for log_sum(x, x) and log_sum(y, y).

    `same` is True if Y is X. `pairs` holds the positions of the wanted pairs in X and in Y; by default, all pairs are
    computed. Exchanging x and y leaves the result the same, bit for bit.
    """
    own_band = centre and not how[1] and (how[3] < max(X.lengths.max(), Y.lengths.max()) or how[4] > 0)

    def fill(*where):  # type: ignore[no-untyped-def]
        _fill(X.n_dims, how, own_band, *where)

    out = fill_pairs(X, X if same else Y, fill) if pairs is None else fill_chosen(X, Y, *pairs, fill)
    if centre and not own_band:
        own = self_log_sums(X, how)
        others = own if same else self_log_sums(Y, how)
        out -= (own[:, None] + others if pairs is None else own[pairs[0]] + others[pairs[1]]) / 2
    return out


def self_log_sums(X: SeriesBatch, how: How) -> npt.NDArray[np.float64]:
    """Return log_sum(x, x) of each series, shape (n,); see `log_sums`."""
    out = np.empty(len(X))
    packed, starts, lengths, columns, _ = grouped(X)
    run_in_ranges(
        lambda first, last: _fill_selves(X.n_dims, how, packed, starts, lengths, columns, out, first, last),
        len(starts),
        grain=1,
    )
    return out


@njit()
def half_width(m, n, steps, share):  # type: ignore[no-untyped-def]
    """Return the largest |i - j| in a window, for lengths m and n: the larger of `steps` and `share` * max(m, n).

    The result is at least |m - n|, since otherwise no path would reach the end.
    """
    return max(max(steps, int(share * max(m, n) + 1e-9)), abs(m - n))


@njit()
def _fill(p, how, centred, x, y, symmetric, out, strides, first, last):  # type: ignore[no-untyped-def]
    """Write log_sum of the pairs of tasks `first` to `last` - 1 to `out`; `fill_pairs` explains arguments from `x` on.

    If `centred`, subtract the mean of log_sum(x, x) and log_sum(y, y), computed in the band of the pair.
    The series have `p` channels; `how` is that of `log_sums`.
    """
    values, offsets, _, _ = x
    packed, starts, lengths, columns, _ = y
    most = max(lengths.max(), np.diff(offsets).max())
    copies, room = np.empty(LANES * p * most), np.empty((2, LANES * (most + 1)))
    widths, m_lanes, n_lanes = np.empty(LANES), np.empty(LANES, np.int64), np.empty(LANES, np.int64)
    found = np.zeros((3, LANES))
    for task in range(first, last):
        i, group, begin, end = task_of(task, x, y, symmetric)
        if begin >= end:
            continue
        m_lanes[:] = offsets[i + 1] - offsets[i]
        for k in range(LANES):
            n_lanes[k] = lengths[min(begin + k, end - 1)]
            widths[k] = how[3] if how[1] else half_width(m_lanes[0], n_lanes[k], how[3], how[4])
        for step in range(p * m_lanes[0]):
            copies[LANES * step : LANES * (step + 1)] = values[p * offsets[i] + step]
        mine, others = (copies, 0, m_lanes), (packed, starts[group], n_lanes)
        for turn in range(3 if centred else 1):  # a single call in the code, since each takes seconds to compile
            left, right = others if turn == 2 else mine, mine if turn == 1 else others
            _log_sum(left, right, p, how, widths, room, found[turn])
        for k in range(end - begin):
            j = columns[begin + k]
            value = found[0, k] - (found[1, k] + found[2, k]) / 2
            put(out, strides, i, j, value, symmetric)


@njit()
def _fill_selves(p, how, packed, starts, lengths, columns, out, first, last):  # type: ignore[no-untyped-def]
    """Write log_sum(x, x) to `out` for each series x of groups `first` to `last` - 1."""
    room, found, widths = np.empty((2, LANES * (lengths.max() + 1))), np.empty(LANES), np.empty(LANES)
    own_lengths = np.empty(LANES, np.int64)
    for group in range(first, last):
        begin, end = LANES * group, min(LANES * group + LANES, len(columns))
        for k in range(LANES):
            own_lengths[k] = lengths[min(begin + k, end - 1)]
            widths[k] = how[3] if how[1] else half_width(own_lengths[k], own_lengths[k], how[3], how[4])
        side = (packed, starts[group], own_lengths)
        _log_sum(side, side, p, how, widths, room, found)
        for k in range(end - begin):
            out[columns[begin + k]] = found[k]


@njit()
def _log_sum(x, y, p, how, widths, room, found):  # type: ignore[no-untyped-def]
    """Write log_sum of the pair in each lane to `found`; x and y are (packed values, start, length in each lane).

    `widths` is the largest |i - j| in each lane. `room` has space for one row of partial sums: ``room[0]`` for numbers
    in [1, 2), ``room[1]`` for their exponents of two, both with time point j of y at ``LANES * (j + 1)``.
    """
    xs, x_start, ms = x
    ys, y_start, ns = y
    rate, divisible, triangular = how[0] / _LOG_2, how[1], how[2]
    parts, exponents = room[0], room[1]
    n, m = ns.max(), ms.max()
    parts[: LANES * (n + 1)] = 1.0
    exponents[:LANES] = 0.0
    exponents[LANES : LANES * (n + 1)] = _ZERO
    nothing, one, two, lowest = lane.splat(_ZERO), lane.splat(1.0), lane.splat(2.0), lane.splat(_LOWEST)
    farthest, minus_rate, width = lane.splat(-_FARTHEST), lane.splat(-rate), lane.load(widths, 0)
    reach, masked = min(int(widths.max()), m + n), widths.min() < widths.max()
    for i in range(m):
        low, high = max(0, i - reach), min(n, i + reach + 1)
        left, left_exponent = one, nothing
        diagonal, diagonal_exponent = lane.load(parts, LANES * low), lane.load(exponents, LANES * low)
        at = x_start + LANES * p * i
        for j in range(low, high):
            to = y_start + LANES * p * j
            difference = lane.load(xs, at) - lane.load(ys, to)
            square = difference * difference
            for c in range(1, p):
                difference = lane.load(xs, at + LANES * c) - lane.load(ys, to + LANES * c)
                square = lane.multiply_add(difference, difference, square)
            log_similarity = lane.maximum(minus_rate * square, farthest)
            whole = lane.nearest_integer(log_similarity)
            similarity = _small_power(log_similarity - whole)  # times 2^whole
            if divisible:
                if triangular > 0:
                    similarity = similarity * lane.splat(1.0 - abs(i - j) / triangular)
                similarity = similarity / (two - similarity * lane.power_of_two(lane.maximum(whole, lowest)))
            up, up_exponent = lane.load(parts, LANES * (j + 1)), lane.load(exponents, LANES * (j + 1))
            largest = lane.maximum(diagonal_exponent, lane.maximum(up_exponent, left_exponent))
            total = diagonal * lane.power_of_two(lane.maximum(diagonal_exponent - largest, lowest)) + (
                up * lane.power_of_two(lane.maximum(up_exponent - largest, lowest))
                + left * lane.power_of_two(lane.maximum(left_exponent - largest, lowest))
            )
            total = total * similarity
            left, left_exponent = lane.mantissa(total), lane.exponent(total) + (largest + whole)
            if masked:
                left_exponent = lane.where_at_most(lane.splat(float(abs(i - j))), width, left_exponent, nothing)
            diagonal, diagonal_exponent = up, up_exponent
            lane.store(parts, LANES * (j + 1), left)
            lane.store(exponents, LANES * (j + 1), left_exponent)
        lane.store(exponents, 0, nothing)
        for k in range(LANES):
            if ms[k] == i + 1:
                end = LANES * ns[k] + k
                reached = exponents[end] > _ZERO / 2 and abs(ms[k] - ns[k]) <= widths[k]
                found[k] = log_of(parts[end]) + _LOG_2 * exponents[end] if reached else -np.inf


@njit()
def _small_power(r):  # type: ignore[no-untyped-def]
    """Return 2^r for the r of each lane, |r| <= 1/2."""
    value = lane.splat(_POWERS[0])
    for coefficient in _POWERS[1:]:
        value = lane.multiply_add(value, r, lane.splat(coefficient))
    return value


@njit()
def fill(kind, parameter, p, window, x, y, symmetric, out, strides, first, last):  # type: ignore[no-untyped-def]
    """Fill `out` with the distances of the tasks `first` to `last` - 1; see `fill_pairs` for the arguments from `x` on.

    `kind` is one of the constants above; `parameter` is the c of MSM, nu of TWE, epsilon of LCSS or penalty of ADTW.
    Series have `p` channels and, for ERP and TWE, one more that holds the cost of deleting each time point.
    """
    values, offsets, _, _ = x
    packed, starts, lengths, columns, _ = y
    width = p + 1 if kind in (ERP, TWE) else p
    room = np.empty(LANES * (lengths.max() + 1))
    before = np.empty(LANES * lengths.max())
    widths, found = np.empty(LANES), np.empty(LANES)
    for task in range(first, last):
        i, group, begin, end = task_of(task, x, y, symmetric)
        if begin >= end:
            continue
        m, n = offsets[i + 1] - offsets[i], lengths[end - 1]
        for k in range(LANES):
            widths[k] = half_width(m, lengths[min(begin + k, end - 1)], window[0], window[1])
        sides = (values, width * offsets[i], m, packed, starts[group], n, width)
        fill_group(kind, parameter, p, sides, lengths[begin:end], widths, room, before, None, None, found)
        for k in range(end - begin):
            j = columns[begin + k]
            distance = 1.0 + found[k] / min(m, lengths[begin + k]) if kind == LCSS else found[k]
            put(out, strides, i, j, distance, symmetric)


@njit()
def fill_group(  # type: ignore[no-untyped-def]
    kind, parameter, p, sides, lengths, widths, room, before, within, limits, found
):
    """Set ``found[k]`` to the distance of x to series k of a group of y, and return True.

    `lengths` are those of the series of y; `room` and `before` have room for a row of their tables, and `fill` and
    `_erp` explain the other arguments. `within` and `limits` may be None. Otherwise `within` is (limit, lows, highs),
    where `lows` and `highs` are the envelope of x for the widest of the windows, and `limits` has as much room as
    `room`. Then distances that exceed the limit may be replaced by other numbers that exceed it, and False is returned
    as soon as it is certain that all do. This is not for LCSS, whose costs are negative.
    """
    found[:] = 0.0
    for channel in range(p if kind == MSM else 1):
        if limits is not None and not _limit(kind, parameter, p, channel, sides, lengths, within, limits, found):
            return False
        if kind == ERP:
            done = _erp(sides, p, widths, room, limits)
        elif kind == TWE:
            done = _twe(sides, p, parameter, widths, room, before, limits)
        elif kind == LCSS:
            done = _lcss(sides, p, parameter, widths, room)
        elif kind == ADTW:
            done = _adtw(sides, p, parameter, widths, room, limits)
        else:
            done = _msm(sides, channel, parameter, widths, room, limits)
        if not done:
            return False
        for k in range(len(lengths)):
            found[k] += room[LANES * int(lengths[k]) + k]
    return True


@njit()
def _limit(kind, parameter, p, channel, sides, lengths, within, limits, found):  # type: ignore[no-untyped-def]
    """Fill `limits` with what a path may cost up to each column; return whether there can be a path in any lane.

    A path enters each later column by a match, which costs at least the distance of y from the envelope of x, or by a
    deletion. `fill_group` explains `within` and `limits`; `found` are the sums of the distances in the channels before.
    """
    limit, lows, highs = within
    _, _, m, packed, start, n, stride = sides
    zero, never, length = lane.splat(0.0), lane.splat(-np.inf), lane.load(lengths, 0)
    rest = lane.splat(limit * (1 + 8 * _EPS * (m + n + p))) - lane.load(found, 0)  # sums are rounded
    gap = _gap(kind, p, channel, packed, start, stride, n - 1, lows, highs)
    for j in range(n, 0, -1):
        now = lane.splat(float(j))
        lane.store(limits, LANES * j, lane.where_at_most(now, length, rest, never))
        gap_before = _gap(kind, p, channel, packed, start, stride, j - 2, lows, highs) if j > 1 else zero
        if kind == ADTW:
            cost = gap * gap
        elif kind == MSM:
            cost = lane.minimum(gap, lane.splat(parameter))
        else:
            delete = lane.load(packed, start + LANES * (stride * (j - 1) + p))
            cost = lane.minimum(gap + gap_before if kind == TWE else gap, delete)
        rest = lane.where_at_most(now, length, rest - cost, rest)
        gap = gap_before
    lane.store(limits, 0, rest)
    return lane.bits_above(zero, rest) != _ALL


@njit()
def _gap(kind, p, channel, packed, start, stride, j, lows, highs):  # type: ignore[no-untyped-def]
    """Return the distances of the points of y at time `j` from the envelope of x; those of MSM, in one channel."""
    total = lane.splat(0.0)
    for c in range(channel, channel + 1 if kind == MSM else p):
        y, at = lane.load(packed, start + LANES * (stride * j + c)), stride * j + c
        gap = lane.maximum(lane.maximum(lane.splat(lows[at]) - y, y - lane.splat(highs[at])), lane.splat(0.0))
        if kind == MSM or p == 1:
            return gap
        total = lane.multiply_add(gap, gap, total)
    return lane.square_root(total)


@njit()
def _ends(room, low, begin, end, high, limits):  # type: ignore[no-untyped-def]
    """Prepare the next row of a table whose cells are compared with limits: return its first and last live column.

    A cell is dead if it exceeds its limit in all lanes: no path through it is short enough. Columns `low` to `end` - 1
    of a row have been computed and are at ``LANES * (j + begin)`` of `room`; all others below `high` are dead, and are
    set to infinity. If all columns are dead, the last is less than the first.
    """
    infinite = lane.splat(np.inf)
    for j in range(end, high):
        lane.store(room, LANES * (j + begin), infinite)
    last = end - 1
    while last >= low and _dead(room, limits, last + begin):
        last -= 1
    while low <= last and _dead(room, limits, low + begin):
        low += 1
    return low, last


@njit()
def _dead(room, limits, column):  # type: ignore[no-untyped-def]
    return lane.bits_above(lane.load(room, LANES * column), lane.load(limits, LANES * column)) == _ALL


@njit()
def _ground(values, at, packed, y, p):  # type: ignore[no-untyped-def]
    """Return Euclidean distances, over p channels, of the point at ``values[at]`` to LANES points at ``packed[y]``."""
    if p == 1:
        return lane.magnitude(lane.splat(values[at]) - lane.load(packed, y))
    return lane.square_root(_square(values, at, packed, y, p))


@njit()
def _square(values, at, packed, y, p):  # type: ignore[no-untyped-def]
    difference = lane.splat(values[at]) - lane.load(packed, y)
    square = difference * difference
    for c in range(1, p):
        difference = lane.splat(values[at + c]) - lane.load(packed, y + LANES * c)
        square = lane.multiply_add(difference, difference, square)
    return square


@njit()
def _erp(sides, p, widths, room, limits):  # type: ignore[no-untyped-def]
    """Compute the ERP tables of x with LANES series y; leave their last rows in `room`, column j at ``LANES * j``.

    `sides` is a tuple of 7: values, position and length of x; packed values, position and length of y; the stride
    between time points. `widths` are half widths of the bands, in steps. Column 0 is the border. If `limits`, from
    `_limit`, are not None, cells that exceed them in all lanes are left out where possible. The return value is False
    if a row has no other cells, and True if the table is complete.
    """
    values, at, m, packed, start, n, stride = sides
    infinite, width = lane.splat(np.inf), lane.load(widths, 0)
    reach, masked = int(widths.max()), widths.min() < widths.max()
    left = lane.splat(0.0)
    lane.store(room, 0, left)
    first, last = 0, n
    for j in range(1, n + 1):
        left = left + lane.load(packed, start + LANES * (stride * (j - 1) + p))
        left = lane.where_at_most(lane.splat(float(j)), width, left, infinite)
        lane.store(room, LANES * j, left)
    for i in range(1, m + 1):
        delete_x = lane.splat(values[at + p])
        low, high = max(1, first, i - reach), min(n, i + reach)
        diagonal, left = lane.load(room, LANES * (low - 1)), infinite
        if low == 1:
            left = lane.where_at_most(lane.splat(float(i)), width, diagonal + delete_x, infinite)
            lane.store(room, 0, left)
        for j in range(low, high + 1):
            y = start + LANES * stride * (j - 1)
            match = diagonal + _ground(values, at, packed, y, p)
            diagonal = lane.load(room, LANES * j)
            left = lane.minimum(lane.minimum(match, diagonal + delete_x), left + lane.load(packed, y + LANES * p))
            if masked:
                left = lane.where_at_most(lane.splat(float(abs(i - j))), width, left, infinite)
            lane.store(room, LANES * j, left)
            if limits is not None and j > last and _dead(room, limits, j):
                break
        if limits is not None:
            first, last = _ends(room, low if low > 1 else 0, 0, j + 1, high + 1, limits)
            if first > last:
                return False
        at += stride
    return True


@njit()
def _twe(sides, p, nu, widths, room, before, limits):  # type: ignore[no-untyped-def]
    """Compute the table of TWE; leave its last row in `room`, as `_erp` does. `before` has room for one more row."""
    values, at, m, packed, start, n, stride = sides
    room[:LANES] = 0.0
    room[LANES : LANES * (n + 1)] = np.inf
    before[: LANES * n] = 0.0  # any finite value: the first row adds infinity to it
    infinite, width = lane.splat(np.inf), lane.load(widths, 0)
    reach, masked = int(widths.max()), widths.min() < widths.max()
    first, last = 0, 0
    for i in range(m):
        delete_x = lane.splat(values[at + p])
        low, high = max(first, i - reach), min(n, i + reach + 1)
        diagonal, left, ground_before = lane.load(room, LANES * low), infinite, lane.splat(0.0)
        if low > 0:
            ground_before = lane.load(before, LANES * (low - 1))
        for j in range(low, high):
            y = start + LANES * stride * j
            ground = _ground(values, at, packed, y, p)
            match = diagonal + (ground + ground_before) + lane.splat(2.0 * nu * abs(i - j))
            ground_before = lane.load(before, LANES * j)
            lane.store(before, LANES * j, ground)
            diagonal = lane.load(room, LANES * (j + 1))
            left = lane.minimum(lane.minimum(match, diagonal + delete_x), left + lane.load(packed, y + LANES * p))
            if masked:
                left = lane.where_at_most(lane.splat(float(abs(i - j))), width, left, infinite)
            lane.store(room, LANES * (j + 1), left)
            if limits is not None and j > last and _dead(room, limits, j + 1):
                break
        lane.store(room, 0, infinite)
        if limits is not None:
            first, last = _ends(room, low, 1, j + 1, high, limits)
            if first > last:
                return False
        at += stride
    return True


@njit()
def _split(new, old, other, c):  # type: ignore[no-untyped-def]
    """Return the cost in MSM of splitting `new` off its neighbour `old`, or of merging the two.

    The cost is c plus the distance of `new` to the interval between `old` and `other`, a value of the other series.
    """
    nearest = lane.maximum(lane.minimum(old, other), lane.minimum(lane.maximum(old, other), new))
    return c + lane.magnitude(new - nearest)


@njit()
def _msm(sides, channel, c, widths, room, limits):  # type: ignore[no-untyped-def]
    """Compute the table of MSM for one channel; leave its last row in `room`, as `_erp` does."""
    values, at, m, packed, start, n, p = sides
    room[:LANES] = 0.0
    room[LANES : LANES * (n + 1)] = np.inf
    infinite, width, price = lane.splat(np.inf), lane.load(widths, 0), lane.splat(c)
    reach, masked = int(widths.max()), widths.min() < widths.max()
    x_before = lane.splat(values[at + channel])  # any value would do: in the first row, splits cost infinity
    first, last = 0, 0
    for i in range(m):
        x = lane.splat(values[at + channel])
        low, high = max(first, i - reach), min(n, i + reach + 1)
        diagonal, left = lane.load(room, LANES * low), infinite
        y_before = lane.load(packed, start + LANES * (p * max(0, low - 1) + channel))
        for j in range(low, high):
            y = lane.load(packed, start + LANES * (p * j + channel))
            match = diagonal + lane.magnitude(x - y)
            diagonal = lane.load(room, LANES * (j + 1))
            merged = diagonal + _split(x, x_before, y, price)
            left = lane.minimum(lane.minimum(match, merged), left + _split(y, y_before, x, price))
            if masked:
                left = lane.where_at_most(lane.splat(float(abs(i - j))), width, left, infinite)
            lane.store(room, LANES * (j + 1), left)
            y_before = y
            if limits is not None and j > last and _dead(room, limits, j + 1):
                break
        lane.store(room, 0, infinite)
        if limits is not None:
            first, last = _ends(room, low, 1, j + 1, high, limits)
            if first > last:
                return False
        x_before = x
        at += p
    return True


@njit()
def _lcss(sides, p, epsilon, widths, room):  # type: ignore[no-untyped-def]
    """Compute the table of negated LCSS lengths; leave its last row in `room`, as `_erp` does."""
    values, at, m, packed, start, n, p = sides
    room[: LANES * (n + 1)] = 0.0
    none, one, limit, width = lane.splat(0.0), lane.splat(-1.0), lane.splat(epsilon), lane.load(widths, 0)
    reach, masked = int(widths.max()), widths.min() < widths.max()
    for i in range(m):
        low, high = max(0, i - reach), min(n, i + reach + 1)
        diagonal, left = lane.load(room, LANES * low), none
        for j in range(low, high):
            match = lane.where_at_most(_ground(values, at, packed, start + LANES * p * j, p), limit, one, none)
            if masked:
                match = lane.where_at_most(lane.splat(float(abs(i - j))), width, match, none)
            # Include the diagonal: with a band of 0, the cells above and to the left are outside.
            match = diagonal + match
            diagonal = lane.load(room, LANES * (j + 1))
            left = lane.minimum(match, lane.minimum(diagonal, left))
            lane.store(room, LANES * (j + 1), left)
        at += p
    return True


@njit()
def _adtw(sides, p, penalty, widths, room, limits):  # type: ignore[no-untyped-def]
    """Compute the table of ADTW; leave its last row in `room`, as `_erp` does."""
    values, at, m, packed, start, n, _ = sides
    room[:LANES] = 0.0
    room[LANES : LANES * (n + 1)] = np.inf
    infinite, width, price = lane.splat(np.inf), lane.load(widths, 0), lane.splat(penalty)
    reach, masked = int(widths.max()), widths.min() < widths.max()
    first, last = 0, 0
    for i in range(m):
        low, high = max(first, i - reach), min(n, i + reach + 1)
        diagonal, left = lane.load(room, LANES * low), infinite
        for j in range(low, high):
            cost = _square(values, at, packed, start + LANES * p * j, p)
            up = lane.load(room, LANES * (j + 1))
            left = cost + lane.minimum(diagonal, lane.minimum(up, left) + price)
            if masked:
                left = lane.where_at_most(lane.splat(float(abs(i - j))), width, left, infinite)
            diagonal = up
            lane.store(room, LANES * (j + 1), left)
            if limits is not None and j > last and _dead(room, limits, j + 1):
                break
        lane.store(room, 0, infinite)
        if limits is not None:
            first, last = _ends(room, low, 1, j + 1, high, limits)
            if first > last:
                return False
        at += p
    return True
