"""Weighted sums of feature rows, each graph's in the order of its patterns."""

from __future__ import annotations

from similia._jit import njit


@njit()
def add_shares(offsets, places, weights, features, out):  # type: ignore[no-untyped-def]
    """Add ``weights[e] * features[places[e]]`` for its entries e, one by one, to each graph's row of `out`."""
    for g in range(len(out)):
        for e in range(offsets[g], offsets[g + 1]):
            for j in range(out.shape[1]):
                out[g, j] += weights[e] * features[places[e], j]
