"""Split all pairs of series into tasks: one series against a group of `LANES` others, computed side by side.

A lane is a slot of a SIMD register; each lane holds another series of the group. Series are sorted by length, so that
those of a group have similar lengths, and padded to the longest of the group. With p channels, series k of group g at
time j and channel c is ``packed[starts[g] + LANES * (p * j + c) + k]``.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.errors import BadValue, as_second
from similia.core.jit import njit
from similia.core.lanes import LANES
from similia.core.text import counted
from similia.core.threads import run_in_ranges
from similia.objects import SeriesBatch
from similia.objects.series import as_series
from similia.objects.vectors import check_finite

_WORTH_A_RANGE = 2**20  # minimum number of cells for another thread: a fraction of a millisecond
_PACKED = 2**24  # bytes of the groups that `fill_chosen` packs at a time
_GAIN = 0.8  # put the longer series in lanes only if that saves a fifth of the cells, as short ones stay in cache
Indices = npt.NDArray[np.int64]
UNLIMITED = 2**40  # steps: a window that excludes nothing


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
