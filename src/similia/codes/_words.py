"""Codes as 64-bit words of sign bits, and basis vectors that any process draws alike.

Position i of a code is bit 63 - i % 64 of word i // 64, and a bit is 1 for -1 (a product of ±1 is then an
XOR). Basis vector `index` is the stream of the counter-based generator Philox with key (seed, index):
no table is kept, so a letter or a rank never met before has its vector at once, the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.validation import generator

Words = npt.NDArray[np.uint64]
Codes = npt.NDArray[np.uint8]

TIES = 2**64 - 1  # index of the vector that settles ties; no code point and no rank reaches it


def to_words(codes: Codes) -> Words:
    """Return codes as sign bits, shape (n, ceil(n_bits / 64)); the bits after the last are +1."""
    n, n_bytes = codes.shape
    padded = np.zeros((n, -(-n_bytes // 8) * 8), dtype=np.uint8)
    np.invert(codes, out=padded[:, :n_bytes])
    return padded.view(">u8").astype(np.uint64)


def from_words(words: Words, n_bits: int) -> Codes:
    """Return the codes of sign bits, shape (n, n_bits // 8)."""
    flipped = (~words).astype(">u8").view(np.uint8)
    return np.ascontiguousarray(flipped[:, : n_bits // 8])


def draw_seed(random_state: Any) -> int:
    """Return a 63-bit seed to store."""
    return int(generator(random_state).integers(2**63))


def basis(seed: int, indices: Iterable[int], n_bits: int) -> Codes:
    """Return the basis vectors `indices` of the family `seed` as codes, shape (len(indices), n_bits // 8)."""
    n_words = -(-n_bits // 64)
    rows = [np.random.Philox(key=(seed << 64) | int(index)).random_raw(n_words) for index in indices]
    words = np.array(rows, dtype=np.uint64).reshape(len(rows), n_words)
    return from_words(words, n_bits)


def ties(seed: int, n_bits: int) -> Codes:
    """Return the code that settles ties in the bundles of the family `seed`, shape (1, n_bits // 8)."""
    return basis(seed, [TIES], n_bits)
