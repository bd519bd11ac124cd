r"""Dynamic time warping: the cheapest way to match two series step by step without going back in time.

.. math:: D(i, j) = c(x_i, y_j) + \min\{D(i-1, j), D(i, j-1), D(i-1, j-1)\}, \qquad d(x, y) = D(m, n),

where c is the Euclidean distance over the channels, not squared. The sum is not divided by the length of the path and
no root is taken. Cost: m n cells per pair; 16 pairs are computed at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from similia.alignments.groups import as_series_pair, fill_chosen, fill_pairs, put, task_of, window_band
from similia.alignments.log_sums import half_width
from similia.core import lanes as lane
from similia.core.jit import njit
from similia.core.lanes import LANES
from similia.core.validation import check_choice
from similia.distances.magnitudes import Array, Pairs, ScaledDistance
from similia.objects import SeriesBatch, as_series
from similia.similarity import Facts


class DTW(ScaledDistance):
    """Dynamic time warping of series of any lengths, with one or more channels.

    An alignment matches each time point of one series with one or more points of the other, in order. The distance is
    the smallest total cost of an alignment.

    Parameters
    ----------
    window : int or float, optional
        Sakoe-Chiba band: match time points i and j only if ``|i - j| <= w``. An integer >= 0 is w itself; a float in
        (0, 1] is w as a fraction of the longer length, rounded down; None means no band. If w is below the difference
        of the two lengths, it is raised to this difference, since otherwise no alignment would exist.
    local : {"euclidean", "sqeuclidean"}, default="euclidean"
        Cost of matching two time points: the Euclidean distance over the channels, or its square.
    root : bool, default=False
        Whether to take the square root of the final sum (only with ``local="sqeuclidean"``).

    Raises
    ------
    ValueError
        When called, if a parameter is out of range, `X` and `Y` differ in their number of channels, a value is NaN or
        infinite, or a distance is too large or too small for its dtype.

    Notes
    -----
    DTW is not a metric: the triangle inequality fails, and d(x, y) = 0 for series that differ only in repeated time
    points.

    A 2-D array is a collection of n series with one channel; write a single series x of several channels as ``[x]``.
    `X` is converted to the dtype of `Y`, float32 or float64, which is also the dtype of the distances. The distance
    between two series does not depend, not even in its last bit, on the other series in the call. For lengths m and n
    and p channels, its relative error is below (m + n + p + 1) 2^-24 in float32 and (m + n + p + 1) 2^-53 in float64.
    The error can be larger for nearly equal values: if a value of x and one of y differ by less than 1e-12 (float32) or
    1e-33 (float64) times the largest absolute value in both series, their difference may be inaccurate or count as 0.

    References
    ----------
    Sakoe & Chiba, "Dynamic programming algorithm optimization for spoken word recognition", IEEE TASSP 26, 1978.
    Wu, Yen, Xu, Ravikumar & Witbrock, "D2KE: from distance to kernel and embedding", 2018, Section 4.

    Examples
    --------
    >>> from similia.distances import DTW
    >>> series = [[0.0, 1.0, 2.0], [0.0, 0.0, 1.0, 2.0], [3.0]]
    >>> DTW()(series)
    array([[0., 0., 6.],
           [0., 0., 9.],
           [6., 9., 0.]])
    >>> DTW(local="sqeuclidean")(series[:2], series[2:])
    array([[14.],
           [23.]])
    """

    facts = Facts(symmetric=True, identity=True, metric=False, unequal_length=True, cost="m n")

    def __init__(self, window: float | None = None, local: str = "euclidean", root: bool = False) -> None:
        self.window = window
        self.local = local
        self.root = root

    def as_objects(self, X: Any) -> SeriesBatch:
        return as_series(X)

    def _read(self, X: Any, Y: Any) -> tuple[SeriesBatch, SeriesBatch]:
        return as_series_pair(X, Y)

    def _degree(self) -> int:
        return 2 if self.local == "sqeuclidean" and not self.root else 1

    def _find(self, A: SeriesBatch, B: SeriesBatch, pairs: Pairs | None, shift: int) -> Array:
        n_dims, window, rooted = A.n_dims, window_band(self.window), self._rooted()

        def warp(x: Any, y: Any, *where: Any) -> None:
            _fill(x, y, n_dims, rooted, window, *where)

        found = fill_pairs(A, B, warp) if pairs is None else fill_chosen(A, B, *pairs, warp)
        return np.sqrt(found, out=found) if self.root else found

    def _rooted(self) -> bool:
        """Check the parameters; return whether a match costs the Euclidean distance rather than its square."""
        check_choice(self.local, "local", ("euclidean", "sqeuclidean"))
        if self.root and self.local == "euclidean":
            raise ValueError("root=True needs sums of squares, got local='euclidean'; set local='sqeuclidean'")
        return self.local == "euclidean"


@njit()
def _fill(x, y, p, rooted, window, symmetric, out, strides, first, last):  # type: ignore[no-untyped-def]
    """Fill `out` with the distances of the tasks `first` to `last` - 1; see `fill_pairs` for tasks and arguments."""
    values, offsets, _, _ = x
    packed, starts, lengths, columns, _ = y
    room = np.empty(LANES * (lengths.max() + 1), packed.dtype)
    widths = np.empty(LANES, packed.dtype)
    for task in range(first, last):
        i, group, begin, end = task_of(task, x, y, symmetric)
        if begin >= end:
            continue
        m = offsets[i + 1] - offsets[i]
        for k in range(LANES):
            widths[k] = half_width(m, lengths[min(begin + k, end - 1)], window[0], window[1])
        _warp(values, p * offsets[i], m, packed, starts[group], lengths[end - 1], p, rooted, widths, room)
        for c in range(begin, end):
            j = columns[c]
            put(out, strides, i, j, room[LANES * lengths[c] + c - begin], symmetric)


@njit()
def _warp(values, at, m, packed, start, n, p, rooted, widths, room):  # type: ignore[no-untyped-def]
    """Compute the DTW tables of one series with LANES others; leave their last rows in `room`, side by side.

    Column j is at LANES * (j + 1). The one series has m points, the longest other n. `widths` are half widths of the
    bands; the widest determines which columns are computed, and cells outside a narrower band become infinite.
    """
    room[:LANES] = 0.0
    room[LANES : LANES * (n + 1)] = np.inf
    infinite, width = lane.load(room, LANES), lane.load(widths, 0)
    reach, masked = int(widths.max()), widths.min() < widths.max()
    for i in range(m):
        x0 = lane.splat(values[at])  # three channels stay in registers: a third faster than rereading
        x1, x2 = lane.splat(values[at + min(1, p - 1)]), lane.splat(values[at + min(2, p - 1)])
        low, high = max(0, i - reach), min(n, i + reach + 1)
        left, diagonal = infinite, lane.load(room, LANES * low)
        for j in range(low, high):
            y = start + LANES * p * j
            difference = x0 - lane.load(packed, y)
            cost = difference * difference
            if p > 1:
                difference = x1 - lane.load(packed, y + LANES)
                cost = lane.multiply_add(difference, difference, cost)
            if p > 2:
                difference = x2 - lane.load(packed, y + 2 * LANES)
                cost = lane.multiply_add(difference, difference, cost)
            for c in range(3, p):
                difference = lane.splat(values[at + c]) - lane.load(packed, y + LANES * c)
                cost = lane.multiply_add(difference, difference, cost)
            if rooted:
                cost = lane.magnitude(difference) if p == 1 else lane.square_root(cost)
            up = lane.load(room, LANES * (j + 1))
            left = cost + lane.minimum(lane.minimum(up, diagonal), left)
            if masked:
                left = lane.where_at_most(lane.splat(values.dtype.type(abs(i - j))), width, left, infinite)
            diagonal = up
            lane.store(room, LANES * (j + 1), left)
        lane.store(room, 0, infinite)
        at += p
