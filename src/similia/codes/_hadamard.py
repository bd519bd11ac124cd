"""Signs of structured random projections by fast Walsh-Hadamard transforms; no projection matrix exists.

    block b of p bits:   sign(H D_b3 H D_b2 H D_b1 x),   H the Hadamard matrix, D random diagonals of +-1,

with x padded by zeros to p, a power of two (Choromanski, Rowland, Weller 2017). Cost: 3 p log2 p additions for p
bits, instead of p k multiplications; memory: 3 signs for each bit.

Layout: 64 rows of X at a time as *lanes*, coordinate after coordinate (structure of arrays), so that each
butterfly is a whole vector operation without shuffles. Two radix-2 stages are fused into one radix-4 pass
that keeps its values in registers; four slices are as many as the compiler checks for overlap (radix 8 stays
scalar and runs 12 times slower). Each lane adds in the order of the radix-2 transform: bits do not depend on
blocks or threads.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from similia.core.jit import njit
from similia.core.threads import run_in_ranges

LANES = 64
IN_CACHE = 8192  # float32 values: 32 KiB


def hadamard_size(n_features: int) -> int:
    """Return the power of two that `n_features` coordinates are padded to."""
    return 1 << (n_features - 1).bit_length()


def hadamard_signs(n_bits: int, n_features: int, random: np.random.Generator) -> npt.NDArray[np.int8]:
    """Draw the diagonals D, shape (n_blocks, 3, p), values +-1."""
    p = hadamard_size(n_features)
    return random.integers(0, 2, size=(-(-n_bits // p), 3, p), dtype=np.int8) * np.int8(2) - np.int8(1)


def hadamard_codes(rows: npt.NDArray, signs: npt.NDArray[np.int8], codes: npt.NDArray[np.uint8]) -> None:
    """Write the packed signs of the structured projections of `rows` into `codes`, shape (n, n_bits // 8)."""
    p = hadamard_size(rows.shape[1])
    expected = (-(-8 * codes.shape[1] // p), 3, p)
    if signs.shape != expected:  # the loop does not look at bounds
        raise ValueError(f"signs_ has shape {signs.shape}, expected {expected} for these features and bits; fit again")
    rows = np.ascontiguousarray(rows, dtype=np.float32)
    factors = np.ascontiguousarray(signs, dtype=np.float32)
    run_in_ranges(lambda start, stop: _encode(rows, factors, codes, start, stop), len(rows), LANES)


@njit()
def _encode(rows, signs, codes, start, stop):  # type: ignore[no-untyped-def]
    """Fill ``codes[start:stop]``, `LANES` rows at a time."""
    n_blocks, _, p = signs.shape
    lanes = np.zeros(p * LANES, np.float32)
    work = np.empty(p * LANES, np.float32)
    packed = np.empty((p // 8) * LANES, np.uint8)
    for first in range(start, stop, LANES):
        count = min(LANES, stop - first)
        for lane in range(count):
            for i in range(rows.shape[1]):
                lanes[i * LANES + lane] = rows[first + lane, i]
        for block in range(n_blocks):
            work[:] = lanes
            for product in range(3):
                _flip(work, signs[block, product])
                _transform(work)
            _pack(work, packed)
            begin = block * p // 8
            for lane in range(count):
                for byte in range(min(p // 8, codes.shape[1] - begin)):
                    codes[first + lane, begin + byte] = packed[byte * LANES + lane]


@njit()
def _flip(work, signs):  # type: ignore[no-untyped-def]
    """Multiply every coordinate by its sign."""
    for i in range(len(signs)):
        sign = signs[i]
        for lane in range(i * LANES, (i + 1) * LANES):
            work[lane] *= sign


@njit()
def _transform(work):  # type: ignore[no-untyped-def]
    """Walsh-Hadamard transform of all lanes in place, natural order, not normalised."""
    span = len(work)
    while span > IN_CACHE:  # passes over everything, until pieces that stay in cache can be finished one by one
        span //= 4
        _radix4(work, span)
    for begin in range(0, len(work), span):
        _transform_piece(work[begin : begin + span])


@njit()
def _transform_piece(work):  # type: ignore[no-untyped-def]
    span = len(work)
    while span >= 4 * LANES:
        span //= 4
        _radix4(work, span)
    if span == 2 * LANES:
        _radix2(work, LANES)


@njit()
def _radix4(work, span):  # type: ignore[no-untyped-def]
    """Two stages at once on quadruples `span` apart."""
    for begin in range(0, len(work), 4 * span):
        a = work[begin : begin + span]
        b = work[begin + span : begin + 2 * span]
        c = work[begin + 2 * span : begin + 3 * span]
        d = work[begin + 3 * span : begin + 4 * span]
        for i in range(span):
            ac, bd, a_c, b_d = a[i] + c[i], b[i] + d[i], a[i] - c[i], b[i] - d[i]
            a[i], b[i], c[i], d[i] = ac + bd, ac - bd, a_c + b_d, a_c - b_d


@njit()
def _radix2(work, span):  # type: ignore[no-untyped-def]
    """One stage on pairs `span` apart."""
    for begin in range(0, len(work), 2 * span):
        a = work[begin : begin + span]
        b = work[begin + span : begin + 2 * span]
        for i in range(span):
            a[i], b[i] = a[i] + b[i], a[i] - b[i]


@njit()
def _pack(work, packed):  # type: ignore[no-untyped-def]
    """Pack the signs of 8 consecutive coordinates into a byte for each lane; the first is the highest bit."""
    for byte in range(len(packed) // LANES):
        first = byte * 8 * LANES
        for lane in range(LANES):
            value = 0
            for bit in range(8):
                value = 2 * value + (work[first + bit * LANES + lane] >= 0)
            packed[byte * LANES + lane] = value
