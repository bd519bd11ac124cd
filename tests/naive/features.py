"""Search by features as a loop over all pairs of dictionaries of counts."""

import math
from collections import Counter


def kmers(string, k):
    """Return how often each k-mer occurs."""
    return Counter(string[i : i + k] for i in range(len(string) - k + 1))


def value(x, y, how):
    """Return the kernel of two dictionaries of features: "minmax", "intersection", "cosine" or "product"."""
    if how == "product":
        return sum(x[f] * y[f] for f in x if f in y)
    if how == "cosine":
        norm = math.sqrt(value(x, x, "product") * value(y, y, "product"))
        return value(x, y, "product") / norm if norm else float(x is y)
    least = sum(min(x[f], y[f]) for f in x if f in y)
    if how == "intersection":
        return least
    most = sum(x.values()) + sum(y.values()) - least
    return least / most if most else float(x is y)


def distance(x, y, how):
    """Return sqrt(k(x, x) + k(y, y) - 2 k(x, y))."""
    return math.sqrt(max(value(x, x, how) + value(y, y, how) - 2 * value(x, y, how), 0.0))


def nearest(queries, objects, ids, k, how):
    """Return the k least pairs (distance, id) of each query."""
    return [sorted((distance(x, y, how), i) for y, i in zip(objects, ids, strict=True))[:k] for x in queries]
