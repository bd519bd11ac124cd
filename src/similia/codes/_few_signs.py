"""Signs of random projections of a few vectors: one pass over the projection, without tiles and conversions."""

from __future__ import annotations

import numpy as np

from similia.core.jit import njit


@njit(reassociate=True)
def few_sign_codes(rows, projection, codes):  # type: ignore[no-untyped-def]
    """Write the packed signs of ``rows @ projection.T``: integers whose sums float32 holds exactly, in any order."""
    for i in range(len(rows)):
        row = rows[i]
        for byte in range(codes.shape[1]):
            packed = 0
            for bit in range(8):
                vector = projection[8 * byte + bit]
                total = np.float32(0.0)
                for j in range(len(row)):
                    total += row[j] * np.float32(vector[j])
                packed = 2 * packed + (total >= 0)
            codes[i, byte] = packed
