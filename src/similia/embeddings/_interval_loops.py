"""The loop of `IntervalQuantiles`: quantiles of all intervals from one sorting of a series.

The time points of a series, in the order of their values, are dealt out to the intervals of a level, which are then
sorted too. So a level costs one pass, and no interval is sorted on its own.
"""

from __future__ import annotations

import numpy as np

from similia.core.jit import njit


@njit()
def fill_quantiles(values, order, owner, bounds, sizes, out):  # type: ignore[no-untyped-def]
    """Fill `out` (n, n_features) with the quantiles of the intervals of n series of T points.

    `values` and `order`, both (n, T), hold the series and the time points sorted by value. ``owner[r, t]`` is the
    interval of level r with time point t, or the number of intervals there, if none has it. ``bounds[r]`` holds the
    first points of intervals and the end of the last one; ``sizes[r]`` the number of quantiles of each interval, then
    0.
    """
    n, length = values.shape
    dealt = np.empty(2 * length, values.dtype)  # the points of no interval come behind the others
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
    """Fill `out` with equidistant quantiles of sorted numbers, every second one minus the mean; one is the median."""
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
