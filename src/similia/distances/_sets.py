"""Loops of the distances between point sets: nearest points of pairs of sets, merged quantiles."""

from __future__ import annotations

import math

import numpy as np

from similia._jit import njit

MEAN_MAX, MAX_MAX, MEAN_SUM = 0, 1, 2  # how the nearest distances of both directions become one number
_SIXTEENTH = 1 / 16


@njit(reassociate=True)
def _mean(values, n, root):  # type: ignore[no-untyped-def]
    """Return the mean of the first n values, or of their roots."""
    total = 0.0
    for k in range(n):
        total += math.sqrt(values[k]) if root else values[k]
    return total / n


@njit()
def _largest(values, n, root):  # type: ignore[no-untyped-def]
    """Return the largest of the first n values, or its root."""
    most = values[0]
    for k in range(n):
        most = max(most, values[k])
    return math.sqrt(most) if root else most


@njit()
def _join(a, n_a, b, n_b, kind, root):  # type: ignore[no-untyped-def]
    """Return the distance of two sets from the distances of their points to the nearest one of the other set."""
    if kind == MAX_MAX:
        return max(_largest(a, n_a, root), _largest(b, n_b, root))
    if kind == MEAN_MAX:
        return max(_mean(a, n_a, root), _mean(b, n_b, root))
    return _mean(a, n_a, root) + _mean(b, n_b, root)


@njit(reassociate=True)
def _settle(nearest, squares, points, others):  # type: ignore[no-untyped-def]
    """Clip squared distances at 0, and compute anew, from differences, those that cancellation has spoilt.

    |u|^2 + |v|^2 - 2 u.v is off by some rounding units of |u|^2 + |v|^2: where the result is far below |u|^2
    few digits are left, and none for equal points.
    """
    for k in range(len(points)):
        if nearest[k] < squares[k] * _SIXTEENTH:
            best = np.inf
            for other in others:
                total = 0.0
                for c in range(len(other)):
                    difference = points[k, c] - other[c]
                    total += difference * difference
                best = min(best, total)
            nearest[k] = best


@njit()
def _nearest(bits, lane_bits, n):  # type: ignore[no-untyped-def]
    """Return the smallest of n numbers, and keep in `lane_bits` the smallest of each lane."""
    nearest = bits[0]
    for c in range(n):
        value = bits[c]
        if value < nearest:
            nearest = value
        if value < lane_bits[c]:
            lane_bits[c] = value
    return nearest


@njit()
def join_tile(  # type: ignore[no-untyped-def]
    products, bits, A, a_offsets, a_squares, B, b_offsets, b_squares, a_sets, b_sets, kind, root, same, out
):
    """Write the distances of the sets `a_sets` to the sets `b_sets` from the squared distances of their points.

    ``products[r, c]`` is the squared distance of point r of B's run of sets to point c of A's; `bits` is the
    same memory as integers of that width. Numbers >= 0 are ordered as their bits, and integers are compared in
    vectors, which floats, with their NaN, are not; numbers < 0, which are rounding noise of 0, come out first.
    """
    a_start, b_start = a_offsets[a_sets[0]], b_offsets[b_sets[0]]
    lanes, rows = np.empty(products.shape[1], A.dtype), np.empty(products.shape[0], A.dtype)
    lane_bits, row_bits = lanes.view(bits.dtype), rows.view(bits.dtype)
    for b in range(b_sets[0], b_sets[1]):
        r0, r1 = b_offsets[b] - b_start, b_offsets[b + 1] - b_start
        for a in range(a_sets[0], a_sets[1]):
            if same and b < a:
                continue
            c0, n = a_offsets[a] - a_start, a_offsets[a + 1] - a_offsets[a]
            lane_bits[:n] = bits[r0, c0 : c0 + n]
            for r in range(r0, r1):
                row_bits[r - r0] = _nearest(bits[r, c0 : c0 + n], lane_bits, n)
            a_points, b_points = A[a_start + c0 : a_start + c0 + n], B[b_start + r0 : b_start + r1]
            _settle(lanes, a_squares[c0 : c0 + n], a_points, b_points)
            _settle(rows, b_squares[b_start + r0 : b_start + r1], b_points, a_points)
            out[a, b] = _join(lanes, n, rows, r1 - r0, kind, root)
            if same:
                out[b, a] = out[a, b]


@njit()
def join_directly(  # type: ignore[no-untyped-def]
    A, bits, a_offsets, B, b_offsets, start, stop, kind, manhattan, root, same, out
):
    """Write the distances of the sets start..stop of A to all of B from differences of coordinates.

    The points of a set of A are the lanes. `bits` is any array of integers of the width of the numbers, which
    are compared as in `join_tile`.
    """
    most = np.diff(a_offsets[start : stop + 1]).max()
    lanes, total, columns = np.empty(most, A.dtype), np.empty(most, A.dtype), np.empty((A.shape[1], most), A.dtype)
    rows = np.empty(np.diff(b_offsets).max(), A.dtype)
    lane_bits, total_bits, row_bits = lanes.view(bits.dtype), total.view(bits.dtype), rows.view(bits.dtype)
    for a in range(start, stop):
        n = a_offsets[a + 1] - a_offsets[a]
        columns[:, :n] = A[a_offsets[a] : a_offsets[a + 1]].T
        for b in range(a if same else 0, len(b_offsets) - 1):
            lanes[:n] = np.inf
            for r in range(b_offsets[b], b_offsets[b + 1]):
                total[:n] = 0
                for k in range(len(columns)):
                    coordinate = B[r, k]
                    if manhattan:
                        for c in range(n):
                            total[c] += abs(columns[k, c] - coordinate)
                    else:
                        for c in range(n):
                            total[c] += (columns[k, c] - coordinate) ** 2
                row_bits[r - b_offsets[b]] = _nearest(total_bits, lane_bits, n)
            out[a, b] = _join(lanes, n, rows, b_offsets[b + 1] - b_offsets[b], kind, root)
            if same:
                out[b, a] = out[a, b]


@njit(reassociate=True)
def wasserstein(A, a_offsets, B, b_offsets, start, stop, power, same, out):  # type: ignore[no-untyped-def]
    """Write the sliced distances of the sets start..stop of A to all of B from sorted projections.

    ``A[i, l]`` is the i-th smallest projection on direction l. Quantile functions of m and n equal masses
    are steps, m n / gcd apart in units of 1 / (m n): where they change depends on m and n only, so that the
    directions are the lanes.
    """
    n_directions = A.shape[1]
    cost = np.empty(n_directions)
    for a in range(start, stop):
        m = a_offsets[a + 1] - a_offsets[a]
        for b in range(a if same else 0, len(b_offsets) - 1):
            n = b_offsets[b + 1] - b_offsets[b]
            cost[:] = 0.0
            i = j = mass = 0
            while mass < m * n:
                until = min((i + 1) * n, (j + 1) * m)
                weight = (until - mass) / (m * n)
                x, y = A[a_offsets[a] + i], B[b_offsets[b] + j]
                for l in range(n_directions):
                    difference = abs(x[l] - y[l])
                    cost[l] += weight * (difference if power == 1 else difference * difference)
                mass = until
                i, j = mass // n, mass // m
            mean = cost.sum() / n_directions
            out[a, b] = mean if power == 1 else math.sqrt(mean)
            if same:
                out[b, a] = out[a, b]
