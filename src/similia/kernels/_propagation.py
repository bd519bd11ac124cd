"""Loops of the propagation kernel: random draws by hash, means over neighbours, hashes of bins."""

from __future__ import annotations

import math

import numpy as np

from similia.core.hashing import combine
from similia.core.jit import njit
from similia.core.scalars import cos_sin, log

_S11 = np.uint64(11)
_FEW = 32  # neighbours that are sorted by exchanges, n (n - 1) / 2 of them


@njit()
def _uniform(key):  # type: ignore[no-untyped-def]
    """Return a number of (0, 1) made from a hash."""
    return (float(key >> _S11) + 0.5) * 2.0**-53


@njit()
def draw(seed, names, n_terms, cauchy):  # type: ignore[no-untyped-def]
    """Return u, shape (n_terms, len(names)): a Cauchy or normal number for each (seed, term, name).

    Stateless: a name gets the same number in any process and any batch, seen before or not.
    """
    u = np.empty((n_terms, len(names)))
    for t in range(n_terms):
        term = combine(seed, np.uint64(2 * t))
        for k in range(len(names)):
            key = combine(term, names[k])
            if cauchy:
                cosine, sine = cos_sin(2.0 * (_uniform(key) - 0.5))
                u[t, k] = sine / cosine
            else:
                radius = math.sqrt(-2.0 * log(_uniform(key)))
                u[t, k] = radius * cos_sin(4.0 * _uniform(combine(key, np.uint64(1))))[0]
    return u


@njit()
def draw_offsets(seed, n_terms, n_dimensions):  # type: ignore[no-untyped-def]
    """Return numbers uniform on (0, 1), shape (n_terms, n_dimensions)."""
    beta = np.empty((n_terms, n_dimensions))
    for t in range(n_terms):
        term = combine(seed, np.uint64(2 * t + 1))
        for k in range(n_dimensions):
            beta[t, k] = _uniform(combine(term, np.uint64(k)))
    return beta


@njit()
def project(X, u):  # type: ignore[no-untyped-def]
    """Return X @ u.T; each sum runs in the order of the columns, whatever else is in the batch."""
    Z = np.zeros((len(X), len(u)))
    for v in range(len(X)):
        for k in range(X.shape[1]):
            for t in range(len(u)):
                Z[v, t] += X[v, k] * u[t, k]
    return Z


@njit()
def total_weights(indptr, weights):  # type: ignore[no-untyped-def]
    """Return the sum of the weights of each node's arcs, taken in ascending order."""
    totals = np.zeros(len(indptr) - 1)
    for v in range(len(totals)):
        totals[v] = np.sort(weights[indptr[v] : indptr[v + 1]]).sum()
    return totals


@njit()
def neighbour_means(Z, first, indptr, indices, weights, totals, room, out):  # type: ignore[no-untyped-def]
    """Write the mean of Z over the neighbours of each node to `out`, columns from `first` on.

    Terms are summed in ascending order, so that the order of neighbours does not matter; a node of
    total weight 0 keeps its values. `weights` is empty where all are 1, `room` is (most neighbours,
    n_columns). Sorting is what costs: up to three terms need no loop, and up to `_FEW` are sorted by
    exchanges of whole rows; without branches on values this took a third of an insertion sort's time.
    """
    n_columns = Z.shape[1]
    for v in range(len(indptr) - 1):
        start = indptr[v]
        degree = indptr[v + 1] - start
        if totals[v] == 0.0 or (degree == 1 and len(weights) == 0):
            only = v if totals[v] == 0.0 else indices[start]
            for c in range(first, n_columns):
                out[v, c] = Z[only, c]
        elif degree == 2 and len(weights) == 0:
            a, b = indices[start], indices[start + 1]
            for c in range(first, n_columns):
                out[v, c] = (Z[a, c] + Z[b, c]) / 2.0
        elif degree == 3 and len(weights) == 0:
            a, b, d = indices[start], indices[start + 1], indices[start + 2]
            for c in range(first, n_columns):
                low, high, z = min(Z[a, c], Z[b, c]), max(Z[a, c], Z[b, c]), Z[d, c]
                out[v, c] = ((min(low, z) + max(low, min(high, z))) + max(high, z)) / 3.0
        else:
            for k in range(degree):
                u, weight = indices[start + k], weights[start + k] if len(weights) else 1.0
                for c in range(first, n_columns):
                    room[k, c] = weight * Z[u, c]
            _sort_columns(room, degree, first)
            for c in range(first, n_columns):
                total = room[0, c]
                for k in range(1, degree):
                    total += room[k, c]
                out[v, c] = total / totals[v]


@njit()
def _sort_columns(room, n, first):  # type: ignore[no-untyped-def]
    """Sort the first n rows of each column from `first` on."""
    if n > _FEW:
        for c in range(first, room.shape[1]):
            room[:n, c] = np.sort(room[:n, c])
        return
    for i in range(1, n):
        for j in range(i, 0, -1):
            for c in range(first, room.shape[1]):
                x, y = room[j - 1, c], room[j, c]
                room[j - 1, c] = min(x, y)
                room[j, c] = max(x, y)


@njit()
def hash_bins(bits, n_terms):  # type: ignore[no-untyped-def]
    """Return one id for each (node, term) from the bit patterns of its bins.

    `bits` has shape (n_nodes, n_terms * d), uint64: term t owns d neighbouring columns.
    """
    n_dimensions = bits.shape[1] // n_terms
    ids = np.empty((len(bits), n_terms), dtype=np.uint64)
    for v in range(len(bits)):
        for t in range(n_terms):
            key = np.uint64(t)
            for k in range(n_dimensions):
                key = combine(key, bits[v, t * n_dimensions + k])
            ids[v, t] = key
    return ids
