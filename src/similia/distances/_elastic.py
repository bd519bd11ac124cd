"""Loops of the elastic distances that are minima over alignments or edits.

All recurrences keep one row of their table. Cells with |i - j| > band are infinitely far (LCSS: never match). An
edit of x costs what the same edit of y costs and a minimum has no order: exchanging x and y changes no bit.
"""

from __future__ import annotations

import math

import numpy as np

from similia._jit import njit
from similia.kernels._series import half_width

ERP, MSM, TWE, LCSS = range(4)


@njit()
def _least(a, b):  # type: ignore[no-untyped-def]
    """Return the smaller number: one instruction, where `min` also looks for NaN."""
    return b if b < a else a


@njit()
def _ground(x, i, y, first, stop, out):  # type: ignore[no-untyped-def]
    """Write the Euclidean distances of x[i] to y[first:stop] to out[first:stop]: apart from the recurrence, in SIMD."""
    for j in range(first, stop):
        out[j] = abs(x[i, 0] - y[j, 0])
    if x.shape[1] == 1:
        return
    for j in range(first, stop):
        out[j] *= out[j]
    for k in range(1, x.shape[1]):
        for j in range(first, stop):
            out[j] += (x[i, k] - y[j, k]) ** 2
    for j in range(first, stop):
        out[j] = math.sqrt(out[j])


@njit()
def _erp(x, y, gap_x, gap_y, band, row, ground):  # type: ignore[no-untyped-def]
    row[0] = 0.0
    for j in range(1, len(y) + 1):
        row[j] = row[j - 1] + gap_y[j - 1] if j <= band else np.inf
    for i in range(1, len(x) + 1):
        first = max(1, i - band)
        diagonal = row[first - 1]
        left = row[0] + gap_x[i - 1] if i <= band else np.inf
        row[first - 1] = left
        _ground(x, i - 1, y, first - 1, min(len(y), i + band), ground)
        for j in range(first, min(len(y), i + band) + 1):
            match = diagonal + ground[j - 1]
            diagonal = row[j]
            left = _least(_least(match, diagonal + gap_x[i - 1]), left + gap_y[j - 1])
            row[j] = left
    return row[len(y)]


@njit()
def _twe(x, y, delete_x, delete_y, nu, band, row, ground, before):  # type: ignore[no-untyped-def]
    """`before` has the ground distances of the row before."""
    row[: len(y)] = np.inf
    before[: len(y)] = 0.0  # read in the first row, where infinity is added to it
    for i in range(len(x)):
        first = max(0, i - band)
        diagonal, match_before = (row[first - 1], before[first - 1]) if first > 0 else (np.inf, 0.0)
        if i == 0:
            diagonal = 0.0
        left = np.inf
        _ground(x, i, y, first, min(len(y), i + band + 1), ground)
        for j in range(first, min(len(y), i + band + 1)):
            match = diagonal + (ground[j] + match_before) + 2.0 * nu * abs(i - j)
            diagonal, match_before = row[j], before[j]
            left = _least(_least(match, diagonal + delete_x[i]), left + delete_y[j])
            row[j] = left
        ground, before = before, ground
    return row[len(y) - 1]


@njit()
def _split(new, old, other, c):  # type: ignore[no-untyped-def]
    """Return what it costs to split `new` off its neighbour `old` (or to merge it) against `other`."""
    if min(old, other) <= new <= max(old, other):
        return c
    return c + min(abs(new - old), abs(new - other))


@njit()
def _msm(x, y, k, c, band, row):  # type: ignore[no-untyped-def]
    """Of channel k."""
    row[: len(y)] = np.inf
    for i in range(len(x)):
        first = max(0, i - band)
        diagonal = row[first - 1] if first > 0 else np.inf
        if i == 0:
            diagonal = 0.0
        left = np.inf
        for j in range(first, min(len(y), i + band + 1)):
            best = diagonal + abs(x[i, k] - y[j, k])
            diagonal = row[j]
            if i > 0:
                best = _least(best, diagonal + _split(x[i, k], x[i - 1, k], y[j, k], c))
            if j > 0:
                best = _least(best, left + _split(y[j, k], y[j - 1, k], x[i, k], c))
            left = row[j] = best
    return row[len(y) - 1]


@njit()
def _lcss(x, y, epsilon, band, row, ground):  # type: ignore[no-untyped-def]
    row[: len(y) + 1] = 0.0
    for i in range(1, len(x) + 1):
        first = max(1, i - band)
        diagonal = row[first - 1]
        left = 0.0
        _ground(x, i - 1, y, first - 1, min(len(y), i + band), ground)
        for j in range(first, min(len(y), i + band) + 1):
            # The diagonal too: with a band of 0 the cells above and to the left lie outside it.
            match = 1.0 if ground[j - 1] <= epsilon else 0.0
            best = max(diagonal + match, max(row[j], left))
            diagonal = row[j]
            left = row[j] = best
    return 1.0 - row[len(y)] / min(len(x), len(y))


@njit()
def fill(  # type: ignore[no-untyped-def]
    kind, parameter, steps, share, X, X_offsets, X_edits, Y, Y_offsets, Y_edits, mirror, start, stop, out
):
    """Write distances to rows start..stop of `out`; if `mirror`, the upper triangle and its mirror image.

    `kind` is one of the numbers above, `parameter` the c of MSM, the nu of TWE, the epsilon of LCSS. `X_edits` is
    what it costs to delete each time point (ERP, TWE; else anything). `steps` and `share` are those of `half_width`.
    """
    row, ground, before = np.empty(len(Y) + 1), np.empty(len(Y)), np.empty(len(Y))
    for i in range(start, stop):
        x = X[X_offsets[i] : X_offsets[i + 1]]
        edits_x = X_edits[X_offsets[i] : X_offsets[i + 1]]
        for j in range(i if mirror else 0, len(Y_offsets) - 1):
            y = Y[Y_offsets[j] : Y_offsets[j + 1]]
            edits_y = Y_edits[Y_offsets[j] : Y_offsets[j + 1]]
            band = half_width(len(x), len(y), steps, share)
            if kind == ERP:
                value = _erp(x, y, edits_x, edits_y, band, row, ground)
            elif kind == TWE:
                value = _twe(x, y, edits_x, edits_y, parameter, band, row, ground, before)
            elif kind == LCSS:
                value = _lcss(x, y, parameter, band, row, ground)
            else:
                value = 0.0
                for k in range(X.shape[1]):
                    value += _msm(x, y, k, parameter, band, row)
            out[i, j] = value
            if mirror:
                out[j, i] = value
