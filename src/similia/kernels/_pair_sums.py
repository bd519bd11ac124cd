"""The loop behind the mean map kernel: sums of the entries of each block of a matrix."""

from __future__ import annotations

import numpy as np

from similia.core.jit import njit


@njit()
def pair_sums(k, rows, columns):  # type: ignore[no-untyped-def]
    """Return the sum of ``k[rows[i] : rows[i + 1], columns[j] : columns[j + 1]]`` for all i and j.

    It is the mean of two sums, one row by row, one column by column: the transpose of `k` gives the same bits.
    """
    out = np.empty((len(rows) - 1, len(columns) - 1))
    for i in range(len(rows) - 1):
        for j in range(len(columns) - 1):
            by_rows, by_columns = 0.0, 0.0
            for r in range(rows[i], rows[i + 1]):
                total = 0.0
                for c in range(columns[j], columns[j + 1]):
                    total += k[r, c]
                by_rows += total
            for c in range(columns[j], columns[j + 1]):
                total = 0.0
                for r in range(rows[i], rows[i + 1]):
                    total += k[r, c]
                by_columns += total
            out[i, j] = 0.5 * by_rows + 0.5 * by_columns
    return out
