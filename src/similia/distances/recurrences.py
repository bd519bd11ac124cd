"""Loops of the elastic distances that minimise over alignments or edits: one series against `LANES` others.

Each recurrence keeps one row of its table, for `LANES` pairs at once (see `similia.alignments.groups`). Handling the
pairs together is 5 to 16 times as fast as one pair at a time. Cells with |i - j| > band are infinite (LCSS: never
match). Editing x costs the same as editing y, and a minimum does not depend on order, so d(x, y) and d(y, x) have the
same bits.
"""

from __future__ import annotations

import numpy as np

from similia.alignments.groups import put, task_of
from similia.alignments.log_sums import half_width
from similia.core import lanes as lane
from similia.core.jit import njit
from similia.core.lanes import LANES

ERP, MSM, TWE, LCSS, ADTW = range(5)


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
        found[:] = 0.0
        for channel in range(p if kind == MSM else 1):
            if kind == ERP:
                _erp(sides, p, widths, room)
            elif kind == TWE:
                _twe(sides, p, parameter, widths, room, before)
            elif kind == LCSS:
                _lcss(sides, p, parameter, widths, room)
            elif kind == ADTW:
                _adtw(sides, p, parameter, widths, room)
            else:
                _msm(sides, channel, parameter, widths, room)
            for k in range(end - begin):
                found[k] += room[LANES * lengths[begin + k] + k]
        for k in range(end - begin):
            j = columns[begin + k]
            distance = 1.0 + found[k] / min(m, lengths[begin + k]) if kind == LCSS else found[k]
            put(out, strides, i, j, distance, symmetric)


@njit()
def _ground(values, at, packed, y, p):  # type: ignore[no-untyped-def]
    """Return Euclidean distances, over p channels, of the point at ``values[at]`` to LANES points at ``packed[y]``."""
    if p == 1:
        return lane.magnitude(lane.splat(values[at]) - lane.load(packed, y))
    return lane.square_root(_square(values, at, packed, y, p))


@njit()
def _square(values, at, packed, y, p):  # type: ignore[no-untyped-def]
    """Return the squares of the distances of `_ground`."""
    difference = lane.splat(values[at]) - lane.load(packed, y)
    square = difference * difference
    for c in range(1, p):
        difference = lane.splat(values[at + c]) - lane.load(packed, y + LANES * c)
        square = lane.multiply_add(difference, difference, square)
    return square


@njit()
def _erp(sides, p, widths, room):  # type: ignore[no-untyped-def]
    """Compute the ERP tables of x with LANES series y; leave their last rows in `room`, column j at ``LANES * j``.

    `sides` is a tuple of 7: values, position and length of x; packed values, position and length of y; the stride
    between time points. `widths` are half widths of the bands, in steps. Column 0 is the border.
    """
    values, at, m, packed, start, n, stride = sides
    infinite, width = lane.splat(np.inf), lane.load(widths, 0)
    reach, masked = int(widths.max()), widths.min() < widths.max()
    left = lane.splat(0.0)
    lane.store(room, 0, left)
    for j in range(1, n + 1):
        left = left + lane.load(packed, start + LANES * (stride * (j - 1) + p))
        left = lane.where_at_most(lane.splat(float(j)), width, left, infinite)
        lane.store(room, LANES * j, left)
    for i in range(1, m + 1):
        delete_x = lane.splat(values[at + p])
        low, high = max(1, i - reach), min(n, i + reach)
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
        at += stride


@njit()
def _twe(sides, p, nu, widths, room, before):  # type: ignore[no-untyped-def]
    """Compute the table of TWE; leave its last row in `room`, as `_erp` does. `before` has room for one more row."""
    values, at, m, packed, start, n, stride = sides
    room[:LANES] = 0.0
    room[LANES : LANES * (n + 1)] = np.inf
    before[: LANES * n] = 0.0  # any finite value: the first row adds infinity to it
    infinite, width = lane.splat(np.inf), lane.load(widths, 0)
    reach, masked = int(widths.max()), widths.min() < widths.max()
    for i in range(m):
        delete_x = lane.splat(values[at + p])
        low, high = max(0, i - reach), min(n, i + reach + 1)
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
        lane.store(room, 0, infinite)
        at += stride


@njit()
def _split(new, old, other, c):  # type: ignore[no-untyped-def]
    """Return the cost in MSM of splitting `new` off its neighbour `old`, or of merging the two.

    The cost is c plus the distance of `new` to the interval between `old` and `other`, a value of the other series.
    """
    nearest = lane.maximum(lane.minimum(old, other), lane.minimum(lane.maximum(old, other), new))
    return c + lane.magnitude(new - nearest)


@njit()
def _msm(sides, channel, c, widths, room):  # type: ignore[no-untyped-def]
    """Compute the table of MSM for one channel; leave its last row in `room`, as `_erp` does."""
    values, at, m, packed, start, n, p = sides
    room[:LANES] = 0.0
    room[LANES : LANES * (n + 1)] = np.inf
    infinite, width, price = lane.splat(np.inf), lane.load(widths, 0), lane.splat(c)
    reach, masked = int(widths.max()), widths.min() < widths.max()
    x_before = lane.splat(values[at + channel])  # any value would do: in the first row, splits cost infinity
    for i in range(m):
        x = lane.splat(values[at + channel])
        low, high = max(0, i - reach), min(n, i + reach + 1)
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
        lane.store(room, 0, infinite)
        x_before = x
        at += p


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


@njit()
def _adtw(sides, p, penalty, widths, room):  # type: ignore[no-untyped-def]
    """Compute the table of ADTW; leave its last row in `room`, as `_erp` does."""
    values, at, m, packed, start, n, _ = sides
    room[:LANES] = 0.0
    room[LANES : LANES * (n + 1)] = np.inf
    infinite, width, price = lane.splat(np.inf), lane.load(widths, 0), lane.splat(penalty)
    reach, masked = int(widths.max()), widths.min() < widths.max()
    for i in range(m):
        low, high = max(0, i - reach), min(n, i + reach + 1)
        diagonal, left = lane.load(room, LANES * low), infinite
        for j in range(low, high):
            cost = _square(values, at, packed, start + LANES * p * j, p)
            up = lane.load(room, LANES * (j + 1))
            left = cost + lane.minimum(diagonal, lane.minimum(up, left) + price)
            if masked:
                left = lane.where_at_most(lane.splat(float(abs(i - j))), width, left, infinite)
            diagonal = up
            lane.store(room, LANES * (j + 1), left)
        lane.store(room, 0, infinite)
        at += p
