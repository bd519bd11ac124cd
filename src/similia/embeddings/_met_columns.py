"""A bit for each column of sparse features: whether training met it, and the rows all of whose columns are new."""

from __future__ import annotations

import numpy as np

from similia._jit import njit


@njit()
def mark(columns, met):  # type: ignore[no-untyped-def]
    """Set the bits of columns, which are in any order."""
    for column in columns:
        met[column >> 3] |= np.uint8(1 << (column & 7))


@njit()
def strangers(offsets, columns, met):  # type: ignore[no-untyped-def]
    """Return the rows that have columns and of these none that was met."""
    found = np.empty(len(offsets) - 1, np.int64)
    n = 0
    for i in range(len(offsets) - 1):
        new = offsets[i] < offsets[i + 1]
        for k in range(offsets[i], offsets[i + 1]):
            if met[columns[k] >> 3] >> (columns[k] & 7) & 1:
                new = False
                break
        if new:
            found[n] = i
            n += 1
    return found[:n].copy()
