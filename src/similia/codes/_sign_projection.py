"""Signs of dense random projections in order-free arithmetic: the same bits whatever the blocks or threads.

A sum of floats depends on the order of its terms, and BLAS changes that order with the shape of a
block and the number of threads: now and then a value next to 0 changes its sign, and a bit flips. Here each
row and each projection vector becomes integers q and p with

    |q| |p| < 2^24,   so that by Cauchy-Schwarz every partial sum of q . p is an integer below 2^24:

float32 holds it exactly, and sgemm returns the exact integer in any order. The budget of 24 bits is shared
as |p| ~ |q| ~ 2^12. Moving x to q turns it by sqrt(k / 12) / |q| radian (1e-3 for k = 300 features), which
lowers cosines by a share of 1e-6; rounding p keeps its law symmetric, and sparse rows see steps of 1/118 of its
standard deviation. Both are far below the projection's own noise.

No tie is left: all entries of p are odd and each q has an odd sum, so q . p is odd. Hence code(-x) is the
complement of code(x), and only a zero row meets the rule sign(0) = +1.

Cost: one sgemm of n x k x s, in tiles whose product stays in cache until its signs are packed.
Paper: NysHD (hypervectors from the Nystroem embedding by P_rp); Charikar 2002 for the law of the signs.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from similia.core.config import rows_per_block
from similia.core.threads import one_blas_thread, run_blas_tasks

MAX_FEATURES = 2**18  # above it 24 bits are too few for |q| and |p|
_EXACT = 2**24  # float32 holds every integer up to here
_TILE_ROWS, _TILE_BITS = 512, 512  # a float32 tile of 1 MiB: stays in cache until it is packed
_FEW_ROWS = 4  # for which turning tiles of the projection to floats costs more than the product
_ROUND_ROWS = 128  # rows rounded at a time, so that the float64 steps stay in cache too (3 times faster)

IntRows = npt.NDArray[np.int16]
Codes = npt.NDArray[np.uint8]


def gaussian_projection(n_bits: int, n_features: int, random: np.random.Generator) -> IntRows:
    """Draw independent Gaussian projection vectors, rounded to odd integers, shape (n_bits, n_features)."""
    projection = np.empty((n_bits, n_features), np.int16)
    step = rows_per_block(16 * n_features, at_most=1024)
    for start in range(0, n_bits, step):
        block = projection[start : start + step]
        block[:] = _odd(random.standard_normal(block.shape, dtype=np.float32) * _spread(n_features))
    return projection


def orthogonal_projection(n_bits: int, n_features: int, random: np.random.Generator) -> IntRows:
    """Draw blocks of `n_features` orthogonal vectors (Haar), rounded to odd integers; shape as above."""
    n_blocks = -(-n_bits // n_features)
    gaussian = random.standard_normal((n_blocks, n_features, n_features))
    with one_blas_thread():  # more of them round otherwise
        q, r = np.linalg.qr(gaussian)
    haar = q * np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None, :]  # without it, QR favours some directions
    length = np.sqrt(n_features) * _spread(n_features)
    return _odd(haar.transpose(0, 2, 1).reshape(-1, n_features)[:n_bits] * length)


def unit_rows(X: npt.NDArray) -> npt.NDArray[np.float64]:
    """Divide each row by its largest magnitude (a zero row stays), in float64."""
    largest = np.abs(X).max(axis=1, initial=0.0).astype(np.float64)[:, None]
    return X / np.where(largest > 0, largest, 1.0)


def integer_rows(X: npt.NDArray, length: float) -> npt.NDArray[np.float32]:
    """Scale each row of `X` to Euclidean length `length` and round it to integers with an odd sum.

    Every step is elementwise and in float64, so a row's integers depend on that row alone. A zero row stays.
    """
    rows = unit_rows(X)
    norms = np.sqrt(_row_sums(rows * rows))
    rows *= (length / np.where(norms > 0, norms, 1.0))[:, None]
    np.rint(rows, out=rows)
    even = np.flatnonzero(rows.sum(axis=1) % 2 == 0)  # sums of integers: exact in any order
    largest = np.abs(rows[even]).argmax(axis=1)
    rows[even, largest] -= np.sign(rows[even, largest])
    return rows.astype(np.float32)


def exact_length(projection: IntRows) -> float:
    """Return the row length up to which products with `projection` are exact after rounding."""
    longest = np.sqrt(np.einsum("ij,ij->i", projection, projection, dtype=np.int64).max())
    return (_EXACT - 1) / longest - np.sqrt(projection.shape[1]) / 2 - 1


def sign_codes(X: npt.NDArray, projection: IntRows, length: float) -> Codes:
    """Return the packed signs of ``X @ projection.T``, shape (n, n_bits // 8); `length` from `exact_length`."""
    codes = np.empty((len(X), len(projection) // 8), np.uint8)
    step = rows_per_block(32 * X.shape[1], at_most=2**14)
    for start in range(0, len(X), step):
        vectors = X[start : start + step]
        rows = np.empty(vectors.shape, np.float32)
        for row in range(0, len(rows), _ROUND_ROWS):
            rows[row : row + _ROUND_ROWS] = integer_rows(vectors[row : row + _ROUND_ROWS], length)
        _multiply_and_pack(rows, projection, codes[start : start + step])
    return codes


def _multiply_and_pack(rows: npt.NDArray[np.float32], projection: IntRows, codes: Codes) -> None:
    """Fill `codes`; each thread takes tile after tile of bits and needs no other (one BLAS thread each)."""
    if len(rows) <= _FEW_ROWS:
        from similia.codes._few_signs import few_sign_codes

        few_sign_codes(rows, projection, codes)
        return

    def fill(bit: int) -> None:
        tile = projection[bit : bit + _TILE_BITS].astype(np.float32).T
        buffer = np.empty((min(_TILE_ROWS, len(rows)), tile.shape[1]), np.float32)
        for row in range(0, len(rows), _TILE_ROWS):
            block = rows[row : row + _TILE_ROWS]
            product = np.matmul(block, tile, out=buffer[: len(block)])
            packed = np.packbits(product >= 0, axis=1)
            codes[row : row + _TILE_ROWS, bit // 8 : (bit + _TILE_BITS) // 8] = packed

    run_blas_tasks(fill, range(0, len(projection), _TILE_BITS), work=rows.size * len(projection))


def _spread(n_features: int) -> float:
    """Standard deviation of the integer entries of p."""
    return max(16.0, 4096 / np.sqrt(n_features))


def _odd(values: npt.NDArray) -> IntRows:
    """Round to the nearest odd integer."""
    return (2 * np.floor(values / 2) + 1).astype(np.int16)


def _row_sums(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Sum each row by folding its second half on its first (overwrites `values`).

    `numpy.sum` may choose its order by layout or instruction set; elementwise addition cannot.
    """
    width = values.shape[1]
    while width > 1:
        half = (width + 1) // 2
        values[:, : width - half] += values[:, half:width]
        width = half
    return values[:, 0]
