"""A bit for each column of sparse features: whether training met it, and the rows whose columns are new."""

from __future__ import annotations

import numpy as np

from similia.core.jit import njit


@njit()
def mark(columns, met):  # type: ignore[no-untyped-def]
    """Set the bits of columns, which are in any order."""
    for column in columns:
        met[column >> 3] |= np.uint8(1 << (column & 7))


@njit()
def strangers(offsets, columns, met, chance):  # type: ignore[no-untyped-def]
    """Return the rows that have columns, and of these no more that were met than a share `chance` explains.

    Other features may be folded into the same columns, so that a row of nothing but new ones meets some: of k columns
    as many as k draws hit, by three standard deviations and a twentieth of the others, as rows have features in common.
    Of fewer than eight none may be met.
    """
    found = np.empty(len(offsets) - 1, np.int64)
    n = 0
    for i in range(len(offsets) - 1):
        k = offsets[i + 1] - offsets[i]
        hit = chance * k + 3 * np.sqrt(chance * (1 - chance) * k) + 0.05 * (1 - chance) * k
        left = 0 if k < 8 else np.int64(min(hit, k - 1))
        for j in range(offsets[i], offsets[i + 1]):
            if met[columns[j] >> 3] >> (columns[j] & 7) & 1:
                left -= 1
                if left < 0:
                    break
        if k > 0 and left >= 0:
            found[n] = i
            n += 1
    return found[:n].copy()
