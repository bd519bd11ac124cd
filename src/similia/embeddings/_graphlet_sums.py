"""Weighted sums of feature rows, each graph's in the order of its patterns."""

from __future__ import annotations

from similia.core.jit import njit


@njit()
def add_shares(offsets, places, weights, features, start, stop, out):  # type: ignore[no-untyped-def]
    """Add ``weights[e] * features[places[e]]`` for its entries e, one by one, to the rows of graphs start..stop."""
    for g in range(start, stop):
        row = out[g]
        for e in range(offsets[g], offsets[g + 1]):
            weight, feature = weights[e], features[places[e]]
            for j in range(len(row)):
                row[j] += weight * feature[j]
