"""Packed bits as a matrix of signs: products with vectors in float64, by tables ("method of the four Russians").

Eight signs times eight numbers have 256 possible sums. For each byte of a row, a table holds these sums, so a product
with n rows of d signs takes n d / 8 look-ups and additions, in an order that no processor changes. The transposed
product reads the transposed bits, which are made once.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from similia.core.jit import njit
from similia.core.threads import in_threads, n_threads

Floats = npt.NDArray[np.float64]

_WORTH_THREADS = 2**20  # minimum number of bytes


class SignMatrix:
    """The signs S, +1 and -1, of packed bits, shape (n, d)."""

    def __init__(self, codes: npt.NDArray[np.uint8]) -> None:
        n, n_bytes = codes.shape
        self.shape = n, 8 * n_bytes
        self._workers = n_threads() if codes.size >= _WORTH_THREADS else 1  # asked once, as the answer takes 0.2 ms
        whole = np.pad(codes, ((0, 0), (0, -n_bytes % 8)))
        self._rows = np.ascontiguousarray(whole.view("<u8").T, np.uint64)
        self._columns = np.zeros((-(-n // 64), 8 * n_bytes), np.uint64)
        self._in_parts(lambda start, stop: transpose(whole, start, stop, self._columns), n_bytes)

    def times(self, v: Floats) -> Floats:
        """Return S v, shape (n,)."""
        return self._product(self._rows, v)

    def transposed_times(self, u: Floats) -> Floats:
        """Return S^T u, shape (d,)."""
        return self._product(self._columns, u)

    def _product(self, words: npt.NDArray[np.uint64], values: Floats) -> Floats:
        padded, out = np.zeros(64 * len(words)), np.zeros(words.shape[1])
        padded[: len(values)] = values
        self._in_parts(lambda start, stop: multiply(words, padded, start, stop, out), len(out))
        return out

    def _in_parts(self, work: Callable[[int, int], None], n: int) -> None:
        """Call ``work(start, stop)`` for two parts of ``range(n)`` in each thread, as each part makes all tables."""
        if self._workers == 1:
            work(0, n)
            return
        step = -(-n // (2 * self._workers))
        in_threads(lambda start: work(start, min(n, start + step)), range(0, n, step), self._workers)


@njit()
def transpose(codes, start, stop, words):  # type: ignore[no-untyped-def]
    """Fill ``words[:, j]`` with bit j of all rows, the first eight in the lowest byte; j is in bytes ``start:stop``."""
    n = codes.shape[0]
    for b in range(start, stop):
        for c in range(words.shape[0]):
            found = words[c, 8 * b : 8 * b + 8]
            for g in range(8):
                x = np.uint64(0)
                for s in range(8):
                    i = 64 * c + 8 * g + s
                    x = x << np.uint64(8) | (np.uint64(codes[i, b]) if i < n else np.uint64(0))
                x = _transposed(x)
                for k in range(8):
                    found[k] |= (x >> np.uint64(56 - 8 * k) & np.uint64(255)) << np.uint64(8 * g)


@njit()
def _transposed(x):  # type: ignore[no-untyped-def]
    """Return an 8 x 8 matrix of bits, one row in each byte, transposed (Warren, "Hacker's Delight", Section 7-3)."""
    t = (x ^ (x >> np.uint64(7))) & np.uint64(0x00AA00AA00AA00AA)
    x = x ^ t ^ (t << np.uint64(7))
    t = (x ^ (x >> np.uint64(14))) & np.uint64(0x0000CCCC0000CCCC)
    x = x ^ t ^ (t << np.uint64(14))
    t = (x ^ (x >> np.uint64(28))) & np.uint64(0x00000000F0F0F0F0)
    return x ^ t ^ (t << np.uint64(28))


@njit()
def multiply(words, values, start, stop, out):  # type: ignore[no-untyped-def]
    """Add the products of the signs in ``words[:, i]`` and `values` to ``out[i]``, for i in ``start:stop``."""
    sums, low = np.empty(8 * 256), np.uint64(255)
    for c in range(words.shape[0]):
        for k in range(8):
            table, v = sums[256 * k : 256 * k + 256], values[64 * c + 8 * k : 64 * c + 8 * k + 8]
            table[0] = -(((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7])))
            for bit in range(8):
                size, twice = 1 << bit, 2.0 * v[7 - bit]
                for j in range(size):
                    table[size + j] = table[j] + twice
        for i in range(start, stop):
            w = words[c, i]
            a = sums[w & low] + sums[np.uint64(256) + (w >> np.uint64(8) & low)]
            b = sums[np.uint64(512) + (w >> np.uint64(16) & low)] + sums[np.uint64(768) + (w >> np.uint64(24) & low)]
            d = sums[np.uint64(1024) + (w >> np.uint64(32) & low)] + sums[np.uint64(1280) + (w >> np.uint64(40) & low)]
            e = sums[np.uint64(1536) + (w >> np.uint64(48) & low)] + sums[np.uint64(1792) + (w >> np.uint64(56))]
            out[i] += (a + b) + (d + e)
