"""Structured optical features: complex sign-Hadamard products, without a matrix.

    block b of p features:   |H D_b3 H D_b2 H D_b1 x|^2,

where H is the Hadamard matrix, the D are diagonal matrices of powers of i, and x is padded by zeros to p coordinates, a
power of two. Cost: 6 p log2 p additions for p features. Memory: three powers of i per feature.

`similia.core.hadamard` transforms `LANES` rows at a time, real and imaginary parts separately.
"""

from __future__ import annotations

import numpy as np

from similia.core.hadamard import transform
from similia.core.jit import njit

LANES = 32


@njit()
def intensities(rows, reference, turns, factor, out):  # type: ignore[no-untyped-def]
    """Fill row j of `out` with ``factor * |H D3 H D2 H D1 x|^2`` for x = rows[j]: p numbers from each block in order.

    H is the Hadamard matrix with p rows. `turns`, int8 of shape (n_blocks, 3, p), holds for each block the exponents of
    i on the diagonals of D1, D2, D3. A `reference` above 0 is appended to x as a coordinate; zeros fill x up to p.
    `rows` (n, d) is float32 or float64, `out` is (n, m) with m at most n_blocks * p.
    """
    n_blocks, _, p = turns.shape
    d = rows.shape[1]
    lanes = np.zeros(p * LANES, rows.dtype)
    re, im = np.empty_like(lanes), np.empty_like(lanes)
    for first in range(0, len(rows), LANES):
        count = min(LANES, len(rows) - first)
        for lane in range(count):
            for i in range(d):
                lanes[i * LANES + lane] = rows[first + lane, i]
        if reference > 0:
            lanes[d * LANES : (d + 1) * LANES] = reference
        for block in range(n_blocks):
            re[:] = lanes
            im[:] = 0
            for product in range(3):
                _turn(re, im, turns[block, product])
                transform(re, LANES)
                transform(im, LANES)
            begin = block * p
            for lane in range(count):
                for j in range(min(p, out.shape[1] - begin)):
                    x, y = re[j * LANES + lane], im[j * LANES + lane]
                    out[first + lane, begin + j] = (x * x + y * y) * factor


@njit()
def _turn(re, im, turns):  # type: ignore[no-untyped-def]
    """Multiply coordinate j of the complex vectors (re, im), in place, by the imaginary unit to the power turns[j]."""
    for i in range(len(turns)):
        here = slice(i * LANES, (i + 1) * LANES)
        x, y, turn = re[here], im[here], turns[i]
        if turn == 1:
            for lane in range(LANES):
                x[lane], y[lane] = -y[lane], x[lane]
        elif turn == 2:
            for lane in range(LANES):
                x[lane], y[lane] = -x[lane], -y[lane]
        elif turn == 3:
            for lane in range(LANES):
                x[lane], y[lane] = y[lane], -x[lane]
