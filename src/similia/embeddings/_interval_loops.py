"""The loop of `IntervalQuantiles`: sorting a series once gives the quantiles of all its intervals.

For each level, the values of the series are appended, smallest first, to the intervals that they belong to. The
intervals are then sorted, too, so a level takes one pass.
"""

from __future__ import annotations

import numpy as np

from similia.core.jit import njit


@njit()
def fill_quantiles(values, order, owner, bounds, sizes, out):  # type: ignore[no-untyped-def]
    """Fill `out` (n, n_features) with the quantiles of the intervals of n series of T points.

    `values` (n, T) holds the series, `order` (n, T) their time points sorted by value. ``owner[r, t]`` is the number of
    the interval of level r that contains time point t; if there is none, it is the number of intervals of the level.
    ``bounds[r]`` holds the first point of each interval, then the end of the last one; ``sizes[r]`` holds the number of
    quantiles of each interval, then 0.
    """
    n, length = values.shape
    dealt = np.empty(2 * length, values.dtype)  # values outside of all intervals come last
    place = np.empty(bounds.shape[1], np.int64)
    ranked = np.empty(length, values.dtype)
    for i in range(n):
        for rank in range(length):
            ranked[rank] = values[i, order[i, rank]]
        column = 0
        for r in range(len(bounds)):
            place[:] = bounds[r]
            for rank in range(length):
                j = owner[r, order[i, rank]]
                dealt[place[j]] = ranked[rank]
                place[j] += 1
            j = 0
            while sizes[r, j]:
                part = dealt[bounds[r, j] : bounds[r, j + 1]]
                stop = column + sizes[r, j]
                _quantiles(part, out[i, column:stop])
                column = stop
                j += 1


@njit()
def _quantiles(ranked, out):  # type: ignore[no-untyped-def]
    """Fill `out` with equidistant quantiles of sorted numbers, subtracting the mean from every second one.

    A single quantile is the median.
    """
    last, steps = len(ranked) - 1, len(out) - 1
    if steps == 0:
        out[0] = (np.float64(ranked[last // 2]) + ranked[(last + 1) // 2]) / 2
        return
    total = 0.0
    for value in ranked:
        total += value
    mean = total / (last + 1)
    for q in range(steps + 1):
        below = q * last // steps
        share = (q * last - below * steps) / steps
        low = np.float64(ranked[below])
        high = ranked[min(below + 1, last)]
        out[q] = low + (high - low) * share - (mean if q % 2 else 0.0)
