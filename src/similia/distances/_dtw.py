"""Loops of dynamic time warping: one series against a group of `LANES` others, which share each instruction.

The recurrence runs row by row over one series x, for all lanes of a group (`similia.alignments.groups`) at once; a lane
that ends early is read off at its own last column, and what follows is waste (5 % for 256 lengths of 2-25).

Arithmetic for each cell, with p channels: p subtractions, p multiplications (p - 1 of them fused with an addition), a
root, two minima, an addition. Memory: p + 1 numbers read and one written, each `LANES` wide, all in the first-level
cache while (p + 1) LANES numbers for each time step of the group fit there (128 steps of 3 channels in 32 KiB).
The root is the bound: at 5 cycles for 8 single-precision roots no more than 1.6 cells end in a cycle; the rest, about
3 cycles for 8 cells, hides behind it.

Designs compared, in cells/s for each FLOP/s of sgemm, one thread, 500 series of 109-205 steps x 3 channels against 256
of 2-25, float32: 0.052 for 16 lanes and one row at a time, 0.053 for two or four rows; 0.027 for 8 lanes, one chain of
dependent additions; 0.048 for 32 lanes; 0.024 for the same loop over small arrays, without the type of `_lanes`. An
estimated root with one Newton step gains a tenth, for results that differ by processor.
"""

from __future__ import annotations

import numpy as np

from similia.alignments.groups import put, task_of
from similia.alignments.log_sums import half_width
from similia.core import lanes as lane
from similia.core.jit import njit
from similia.core.lanes import LANES


@njit()
def fill(x, y, p, rooted, window, symmetric, out, strides, first, last):  # type: ignore[no-untyped-def]
    """Write the distances of tasks first..last to `out`; the arguments are those of `_groups.fill_pairs`."""
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
    """Leave the last row of D in `room`, column j at ``LANES * (j + 1)``; the border column before it starts as 0.

    `widths` are half widths of the lanes' bands: the widest sets which columns are visited, the others mask cells.
    """
    room[:LANES] = 0.0
    room[LANES : LANES * (n + 1)] = np.inf
    infinite, width = lane.load(room, LANES), lane.load(widths, 0)
    reach, masked = int(widths.max()), widths.min() < widths.max()
    for i in range(m):
        x0 = lane.splat(values[at])  # three channels stay in registers: a third faster than reading them each time
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
