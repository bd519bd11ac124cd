"""Hash 64-bit words: equally in every process, and evenly spread over any number of columns; count bits."""

from __future__ import annotations

import numpy as np

from similia.core.jit import njit

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)


@njit()
def mix(x):  # type: ignore[no-untyped-def]
    """Return the next output of the generator splitmix64 in state `x`: a bijection whose output bits look random."""
    return scramble(np.uint64(x) + GOLDEN)


@njit()
def scramble(x):  # type: ignore[no-untyped-def]
    """Return the finaliser of splitmix64, a bijection of uint64; unlike `mix`, it maps 0 to 0."""
    x = (x ^ (x >> _S30)) * _M1
    x = (x ^ (x >> _S27)) * _M2
    return x ^ (x >> _S31)


@njit()
def combine(x, y):  # type: ignore[no-untyped-def]
    """Return a hash of the ordered pair (x, y) of uint64."""
    return mix(mix(np.uint64(x)) ^ (np.uint64(y) * _M1 + GOLDEN))


@njit()
def popcount(x):  # type: ignore[no-untyped-def]
    """Return the number of 1 bits of a uint64; compilers turn these parallel sums into one instruction."""
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (x * np.uint64(0x0101010101010101)) >> np.uint64(56)
