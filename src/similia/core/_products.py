"""The loops of products whose entries have one order of terms."""

from __future__ import annotations

import numpy as np

from similia.core import lanes as lane
from similia.core.jit import njit
from similia.core.lanes import LANES


@njit()
def multiply(X, values, step, copied, start, stop, out):  # type: ignore[no-untyped-def]
    """Write the panels of columns ``start:stop`` of X W to `out`; the panels are those of `products.Panels`."""
    n, K = X.shape
    m = out.shape[1]
    flat, room = out.reshape(-1), np.empty(6 * LANES, out.dtype)
    zero = lane.splat(out.dtype.type(0))
    for first in range(start * LANES, min(m, stop * LANES), LANES):
        column = first if copied else min(first, m - LANES)
        base, skip, width = first * K if copied else column, first - column, min(LANES, m - column)
        for i in range(0, n - n % 6, 6):
            a, b, c, d, e, f = zero, zero, zero, zero, zero, zero
            at = base
            for k in range(K):
                w = lane.load(values, at)
                a = lane.multiply_add(lane.splat(X[i, k]), w, a)
                b = lane.multiply_add(lane.splat(X[i + 1, k]), w, b)
                c = lane.multiply_add(lane.splat(X[i + 2, k]), w, c)
                d = lane.multiply_add(lane.splat(X[i + 3, k]), w, d)
                e = lane.multiply_add(lane.splat(X[i + 4, k]), w, e)
                f = lane.multiply_add(lane.splat(X[i + 5, k]), w, f)
                at += step
            lane.store(room, 0, a)
            lane.store(room, LANES, b)
            lane.store(room, 2 * LANES, c)
            lane.store(room, 3 * LANES, d)
            lane.store(room, 4 * LANES, e)
            lane.store(room, 5 * LANES, f)
            for row in range(6):
                for j in range(skip, width):
                    flat[(i + row) * m + column + j] = room[row * LANES + j]
        for i in range(n - n % 6, n):
            a = zero
            at = base
            for k in range(K):
                a = lane.multiply_add(lane.splat(X[i, k]), lane.load(values, at), a)
                at += step
            lane.store(room, 0, a)
            for j in range(skip, width):
                flat[i * m + column + j] = room[j]


@njit()
def multiply_chosen(vectors, rows, queries, out):  # type: ignore[no-untyped-def]
    """Write the products of query i with the vectors ``rows[i]``; all are of one type and C-contiguous."""
    n = vectors.shape[1]
    whole = n - n % LANES
    x, y = vectors.reshape(-1), queries.reshape(-1)
    room, x_rest, y_rest = np.empty(LANES, out.dtype), np.zeros(LANES, out.dtype), np.zeros(LANES, out.dtype)
    for i in range(len(rows)):
        y_rest[: n - whole] = y[i * n + whole : (i + 1) * n]
        for j in range(rows.shape[1]):
            at = rows[i, j] * n
            total = lane.splat(out.dtype.type(0))
            for k in range(0, whole, LANES):
                total = lane.multiply_add(lane.load(x, at + k), lane.load(y, i * n + k), total)
            if whole < n:
                x_rest[: n - whole] = x[at + whole : at + n]
                total = lane.multiply_add(lane.load(x_rest, 0), lane.load(y_rest, 0), total)
            lane.store(room, 0, total)
            half = LANES // 2
            while half:
                for k in range(half):
                    room[k] += room[half + k]
                half //= 2
            out[i, j] = room[0]
