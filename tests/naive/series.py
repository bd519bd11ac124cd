"""Slow, obvious twins of elastic distances and sums over alignments."""

from __future__ import annotations

import itertools

import numpy as np


# ---- distances: elastic; kernels: global alignment (series are (length, p) arrays; `band` bounds |i - j|)
def euclidean(u, v):
    return float(np.sqrt(np.sum((np.asarray(u, float) - np.asarray(v, float)) ** 2)))


def erp(x, y, gap, band):
    def d(i, j):
        if abs(i - j) > band or min(i, j) < 0:
            return np.inf
        if i == j == 0:
            return 0.0
        delete_x = d(i - 1, j) + euclidean(x[i - 1], gap) if i else np.inf
        delete_y = d(i, j - 1) + euclidean(y[j - 1], gap) if j else np.inf
        match = d(i - 1, j - 1) + euclidean(x[i - 1], y[j - 1]) if i and j else np.inf
        return min(delete_x, delete_y, match)

    return d(len(x), len(y))


def adtw(x, y, penalty, band):
    def d(i, j):
        if abs(i - j) > band or min(i, j) < 0:
            return np.inf
        cost = euclidean(x[i], y[j]) ** 2
        if i == j == 0:
            return cost
        return cost + min(d(i - 1, j - 1), d(i - 1, j) + penalty, d(i, j - 1) + penalty)

    return d(len(x) - 1, len(y) - 1)


def twe(x, y, nu, lmbda, band):
    """With the time point 0 at time 0 before each series, and no edits there."""
    x, y = np.vstack([0 * x[:1], x]), np.vstack([0 * y[:1], y])

    def d(i, j):
        if i == j == 0:
            return 0.0
        if abs(i - j) > band or min(i, j) <= 0:
            return np.inf
        stamps = abs(i - j) + abs((i - 1) - (j - 1))
        return min(
            d(i - 1, j) + euclidean(x[i], x[i - 1]) + nu + lmbda,
            d(i, j - 1) + euclidean(y[j], y[j - 1]) + nu + lmbda,
            d(i - 1, j - 1) + euclidean(x[i], y[j]) + euclidean(x[i - 1], y[j - 1]) + nu * stamps,
        )

    return d(len(x) - 1, len(y) - 1)


def msm(x, y, c, band):
    """Of one channel: x and y are sequences of numbers."""

    def split(new, old, other):
        between = old <= new <= other or other <= new <= old
        return c if between else c + min(abs(new - old), abs(new - other))

    def d(i, j):
        if abs(i - j) > band or min(i, j) < 0:
            return np.inf
        if i == j == 0:
            return abs(x[0] - y[0])
        options = [d(i - 1, j - 1) + abs(x[i] - y[j])]
        options += [d(i - 1, j) + split(x[i], x[i - 1], y[j])] if i else []
        options += [d(i, j - 1) + split(y[j], y[j - 1], x[i])] if j else []
        return min(options)

    return d(len(x) - 1, len(y) - 1)


def lcss(x, y, epsilon, band):
    """1 - lcss / min(m, n), by the longest run of rising pairs among those that match."""
    pairs = itertools.product(range(len(x)), range(len(y)))
    pairs = [(i, j) for i, j in pairs if abs(i - j) <= band and euclidean(x[i], y[j]) <= epsilon]
    longest = {}
    for i, j in pairs:
        longest[i, j] = 1 + max((n for (k, l), n in longest.items() if k < i and l < j), default=0)
    return 1 - max(longest.values(), default=0) / min(len(x), len(y))


def alignments(m, n):
    """All lists of pairs from (0, 0) to (m - 1, n - 1) by steps (1, 0), (0, 1) and (1, 1)."""
    if m < 1 or n < 1:
        return []
    if m == n == 1:
        return [[(0, 0)]]
    shorter = alignments(m - 1, n) + alignments(m, n - 1) + alignments(m - 1, n - 1)
    return [[*path, (m - 1, n - 1)] for path in shorter]


def alignment_sum(x, y, local, band=np.inf):
    """Sum over alignments within the band of the product of local(i, j, squared distance)."""
    paths = [path for path in alignments(len(x), len(y)) if all(abs(i - j) <= band for i, j in path)]
    return sum(np.prod([local(i, j, euclidean(x[i], y[j]) ** 2) for i, j in path]) for path in paths)


def soft_dtw(x, y, gamma, band):
    return -gamma * np.log(alignment_sum(x, y, lambda i, j, d2: np.exp(-d2 / gamma), band))


def global_alignment(x, y, bandwidth, triangular=0):
    def local(i, j, d2):
        weight = max(0.0, 1 - abs(i - j) / triangular) if triangular else 1.0
        half = weight * np.exp(-d2 / (2 * bandwidth**2)) / 2
        return half / (1 - half)

    return alignment_sum(x, y, local)


# ---- kernels: sums over alignments of long series, in logarithms
def log_alignment_sum(x, y, rate, divisible, triangular, band):
    """As `alignment_sum`, by its recurrence, of e = exp(-rate d2), or w e / (2 - w e) if `divisible`."""
    M = np.full((len(x) + 1, len(y) + 1), -np.inf)
    M[0, 0] = 0.0
    for i, j in itertools.product(range(len(x)), range(len(y))):
        w = 1 - abs(i - j) / triangular if triangular else 1.0
        if abs(i - j) <= band and w > 0:
            z = rate * float(np.sum((x[i] - y[j]) ** 2))
            here = np.log(w) - z - np.log(2 - w * np.exp(-z)) if divisible else -z
            M[i + 1, j + 1] = here + np.logaddexp.reduce([M[i, j], M[i, j + 1], M[i + 1, j]])
    return M[-1, -1]


def dtw_path(x, y):
    """Return the pairs (i, j) on the path with the least sum of absolute differences; ties prefer the diagonal."""
    best = {(-1, -1): (0.0, [])}
    for i in range(len(x)):
        for j in range(len(y)):
            before = [best[cell] for cell in ((i - 1, j - 1), (i - 1, j), (i, j - 1)) if cell in best]
            cost, path = min(before, key=lambda found: found[0])
            best[i, j] = cost + abs(x[i] - y[j]), [*path, (i, j)]
    return best[len(x) - 1, len(y) - 1][1]
