"""Vectors to packed bits by the signs of random projections: bits of x and y agree with probability 1 - angle / pi.

A bit of the code of x is sign(p . x), with sign(0) = +1, for a random direction p (Charikar 2002). The recipe NysHD
classifies such codes; `codes.kernel_from_codes` estimates cosines from them.

**Dense directions.** A sum of floats depends on the order of its terms. BLAS changes this order with the shape of a
block and the number of threads, so a value near 0 could change its sign and flip a bit. To prevent this, each row and
each direction is rounded to integers q and p with

    |q| |p| < 2^24,   so that by Cauchy-Schwarz every partial sum of q . p is an integer below 2^24:

float32 holds such sums exactly, so sgemm returns the exact integer whatever its order. The 24 bits are shared equally:
|p| ~ |q| ~ 2^12. Rounding x to q rotates it by sqrt(k / 12) / |q| radian (1e-3 for k = 300 features), which lowers
cosines by a relative 1e-6. The distribution of p stays symmetric; its entries have steps of 1/118 of their standard
deviation for k = 300, and of at most 1/8 for any k. Both errors are far below the noise of the projection. All entries
of p are odd and each q has an odd sum, so q . p is odd: there are no ties, code(-x) is the complement of code(x), and
sign(0) = +1 applies only to zero rows. Cost: one sgemm of n x k x n_bits, in tiles whose product stays in cache until
its signs are packed.

**Structured directions** (Choromanski, Rowland and Weller 2017). Here p is the padded length of x, not a direction. The
b-th block of p bits is

    sign(H D_b3 H D_b2 H D_b1 x),   H the Hadamard matrix, D random diagonals of +-1,

where x is padded with zeros to length p, a power of two. There is no projection matrix. Cost: 3 p log2 p additions for
p bits, instead of p k multiplications; memory: 3 signs per bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.config import one_blas_thread, rows_per_block, run_blas_tasks, run_in_ranges
from similia.core.estimators import Transformer, all_at_once, example_of
from similia.core.jit import njit
from similia.core.products import hadamard, padded
from similia.core.state import Sizes, array, count, optional, state
from similia.core.validation import BadValue, check_n_bits, check_vectors, generator
from similia.sources.dask import from_parts, lazily

_METHODS = ("gaussian", "structured", "hadamard")
_MIN_HADAMARD = 256  # below this padded size, three Hadamard products have a bias above 0.02
_MAX_FEATURES = 2**18  # for more features, 24 bits are too few for |q| and |p|
_EXACT = 2**24  # float32 holds every integer up to this one
_TILE_ROWS, _TILE_BITS = 512, 512  # a float32 tile of 1 MiB stays in cache until it is packed
_FEW_ROWS = 4  # up to this many rows, converting the projection to floats would take longer than the product
_ROUND_ROWS = 128  # rows rounded at a time, so that the float64 steps also stay in cache (3 times faster)
_LANES = 64  # rows transformed together by the Hadamard products
IntRows = npt.NDArray[np.int16]
Codes = npt.NDArray[np.uint8]


class SignEncoder(Transformer):
    """Base class of transformers from vectors to packed signs; a subclass implements `_encode`."""

    _dtypes = ()

    @lazily
    def transform(self, X: Any) -> Codes:
        """Return the codes of finite vectors of shape (n, n_features), packed into a uint8 array (n, n_bits // 8).

        A bit of 1 stands for +1 and a bit of 0 for -1; the bit order is that of `numpy.packbits`. Equal numbers of
        different dtypes give the same bits.
        """
        self._check_columns(X)
        return self._encode(X)

    def _encode(self, X: Any) -> Codes:
        raise NotImplementedError


def _state_fits(state: dict[str, Any], sizes: Sizes) -> bool:
    dense, signs = state["projection_"], state["signs_"]
    if signs is None:
        return dense is not None and state["row_length_"] is not None and len(dense) == 8 * sizes["b"]
    return dense is None and bool(8 * sizes["b"] <= signs.shape[0] * signs.shape[2])


@state(
    fits=_state_fits, n_features_in_=count("d", least=1), _n_features_out=count("b", least=1),
    signs_=optional(array("i1", None, 3, None)), projection_=optional(array("i2", None, "d")),
    row_length_=optional("positive"),
)  # fmt: skip
class SignRandomProjection(SignEncoder):
    """Encode vectors as packed bits (codes); the larger the cosine of two vectors, the more bits their codes share.

    The parameter `method` decides speed, memory and noise:

    - "structured" suits vectors of more than 128 features. For such vectors, it is about five times faster than
      "gaussian", it stores no projection matrix, and its codes estimate cosines with less noise.
    - "hadamard" suits small devices (`similia.quantise`), because it never stores a matrix. For more than 128 features,
      it is the same as "structured".
    - "gaussian", the default, is the method of the NysHD paper (see `similia.recipes.nyshd`). Use it also for very
      sparse rows, for which the other methods have a bias of about 0.01.

    Let d be `n_bits`, phi_x the code of x as a vector of +-1 times sqrt(pi / (2 d)), and rho the cosine of x and y. The
    inner product <phi_x, phi_y> estimates arcsin rho; `similia.codes.kernel_from_codes` turns it into an estimate of
    rho. The table gives bias and variance of <phi_x, phi_y>, with V = ((pi/2)^2 - arcsin^2 rho) / d. The numbers for
    "structured" are measured.

    ==================== ======================================= ===================================================
    method               largest bias of <phi_x, phi_y>          variance of <phi_x, phi_y>
    ==================== ======================================= ===================================================
    gaussian             0 (0.002 for rows with two non-zeros    V
                         among 2048 features)
    structured, hadamard 0.001 for dense rows, 0.012 for rows    0.4 V to 0.9 V for abs(rho) <= 0.7, then closer to
                         with two non-zeros. "structured" with   V as abs(rho) grows
                         at most 128 features: 0 for all rows
    ==================== ======================================= ===================================================

    The bits of a row depend only on that row and the fitted projection, not on other rows, block size, number of
    threads or float type. Multiplying a row by a power of two does not change its bits.

    Parameters
    ----------
    n_bits : int, default=10_000
        Length of the codes, a multiple of 8.
    method : {"gaussian", "structured", "hadamard"}, default="gaussian"
        How directions are drawn:

        - "gaussian": independent Gaussian directions. For n vectors, this takes n * n_features * n_bits
          multiplications by BLAS.
        - "structured": directions that are orthogonal within blocks. For at most 128 features, a block is a random
          orthogonal (Haar) matrix of n_features rows. For more features, vectors are padded with zeros to length p, the
          next power of two, and multiplied three times by random signs and a Hadamard matrix. This takes
          3 n * n_bits * log2(p) additions and keeps three random signs for each bit instead of a matrix.
        - "hadamard": padding, random signs and Hadamard matrices as in "structured" with more than 128 features, but
          for any number of features. Here p is at least 256.
    random_state : int, numpy generator or None, default=None
        Seed or generator from which `fit` draws the directions.

    Attributes
    ----------
    n_features_in_ : int
        Number of features seen in `fit`.
    projection_ : int16 array of shape (n_bits, n_features) or None
        Dense directions, scaled and rounded to odd integers; None if `signs_` replaces them.
    row_length_ : float or None
        Euclidean length to which `transform` scales each row before it rounds the row to integers. This length is small
        enough for float32 to hold all sums of products exactly. None if `signs_` is used.
    signs_ : int8 array of shape (n_blocks, 3, p) or None
        Random signs that precede the Hadamard products; None if there is a `projection_`.

    Notes
    -----
    After ``set_output(transform="pandas")``, `transform` returns a data frame whose columns are bytes:
    signrandomprojection0 holds bits 0 to 7. If a frame has only such columns, later steps of a pipeline read it as
    packed bits. If a ``ColumnTransformer`` joins them with columns of another type, later steps read the bytes as
    numbers instead; use `similia.codes.RecordEncoder` to join codes.

    In the code of a zero row, all bits are 1. The estimated cosine of a zero row with any other row is 0 on average.

    If directions are dense (`projection_`), rows are rounded to integers. The rounding rotates each row by a small
    angle. If the number of features k is at most 65,536, the angle is about sqrt(k / 12) / 2^12 radians (1e-3 for 300
    features). This is far less than the noise of the estimates for any practical number of bits. For more features, the
    angle is up to 2.3 times as large as this formula gives.

    References
    ----------
    Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002. Yu et al., "Orthogonal
    random features", NeurIPS 2016. Choromanski, Rowland and Weller, "The unreasonable effectiveness of
    structured random orthogonal embeddings", NeurIPS 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.codes import SignRandomProjection, kernel_from_codes
    >>> X = np.array([[1.0, 0.0], [1.0, 1.0], [-1.0, 0.0]])
    >>> codes = SignRandomProjection(n_bits=8000, random_state=0).fit_transform(X)
    >>> codes.dtype, codes.shape
    (dtype('uint8'), (3, 1000))
    >>> bool(np.all(codes[2] == ~codes[0]))
    True
    >>> bool(abs(kernel_from_codes(codes)[0, 1] - np.sqrt(0.5)) < 0.05)
    True
    """

    projection_: Any
    row_length_: Any
    signs_: Any

    def __init__(self, n_bits: int = 10_000, method: str = "gaussian", random_state: Any = None) -> None:
        self.n_bits = n_bits
        self.method = method
        self.random_state = random_state

    @all_at_once
    @from_parts
    def fit(self, X: Any, y: Any = None) -> SignRandomProjection:
        """Draw the random directions onto which `transform` projects vectors.

        The directions depend only on the number of features of `X`, finite numbers of shape (n, n_features).
        """
        n_bits = check_n_bits(self.n_bits)
        if self.method not in _METHODS:
            raise ValueError(f"method must be one of {', '.join(map(repr, _METHODS))}, got {self.method!r}")
        n_features = check_vectors(example_of(X)).shape[1]
        hadamard = self.method == "hadamard" or (self.method == "structured" and n_features > _MIN_HADAMARD // 2)
        if not hadamard and n_features > _MAX_FEATURES:
            raise BadValue(
                None,
                f"has {n_features} features, but method='gaussian' is exact up to {_MAX_FEATURES}",
                remedy="use method='structured' or reduce the vectors first",
            )
        self.n_features_in_ = n_features
        self._learn_columns(X)
        self._n_features_out = n_bits // 8
        self.projection_ = self.row_length_ = self.signs_ = None
        random = generator(self.random_state)
        if hadamard:
            p = hadamard_length(n_features)
            self.signs_ = random.integers(0, 2, size=(-(-n_bits // p), 3, p), dtype=np.int8) * np.int8(2) - np.int8(1)
        else:
            draw = gaussian_projection if self.method == "gaussian" else orthogonal_projection
            self.projection_ = draw(n_bits, n_features, random)
            self.row_length_ = exact_length(self.projection_)
        return self

    def _encode(self, X: Any) -> Codes:
        X = check_vectors(X, n_features=self.n_features_in_, by=self)
        if self.signs_ is None:
            expected = (8 * self._n_features_out, self.n_features_in_)
            if np.shape(self.projection_) != expected:
                raise ValueError(f"projection_ has shape {np.shape(self.projection_)}, expected {expected}; fit again")
            return sign_codes(X, self.projection_, self.row_length_)
        codes = np.empty((len(X), self._n_features_out), np.uint8)
        step = rows_per_block(24 * X.shape[1], at_most=2**14)
        for start in range(0, len(X), step):
            block = slice(start, start + step)
            _hadamard_codes(_unit_rows(X[block]), self.signs_, codes[block])
        return codes

    def _for_one(self) -> Callable[[Any], Codes | None] | None:
        projection, length = self.projection_, self.row_length_
        shape = 8 * self._n_features_out, self.n_features_in_
        if projection is None or projection.dtype != np.int16 or projection.shape != shape:
            return None
        projection, length = np.ascontiguousarray(projection), float(length)

        def encode(X: Any) -> Codes | None:
            if type(X) is not np.ndarray or X.shape != (1, shape[1]) or not X.flags.c_contiguous:
                return None
            if X.dtype.char not in "fd" or not X.dtype.isnative:
                return None
            codes = np.empty((1, shape[0] // 8), np.uint8)
            return codes if _one_sign_code(X, length, projection, codes) else None

        return encode


def gaussian_projection(n_bits: int, n_features: int, random: np.random.Generator) -> IntRows:
    """Draw independent Gaussian projection vectors, rounded to odd integers, shape (n_bits, n_features)."""
    projection = np.empty((n_bits, n_features), np.int16)
    step = rows_per_block(16 * n_features, at_most=1024)
    for start in range(0, n_bits, step):
        block = projection[start : start + step]
        block[:] = _odd(random.standard_normal(block.shape, dtype=np.float32) * _spread(n_features))
    return projection


def orthogonal_projection(n_bits: int, n_features: int, random: np.random.Generator) -> IntRows:
    """Draw random orthogonal (Haar) matrices, one below the other, as odd integers, shape (n_bits, n_features)."""
    n_blocks = -(-n_bits // n_features)
    gaussian = random.standard_normal((n_blocks, n_features, n_features))
    with one_blas_thread():  # several threads would round differently
        q, r = np.linalg.qr(gaussian)
    haar = q * np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None, :]  # without it, QR favours some directions
    length = np.sqrt(n_features) * _spread(n_features)
    return _odd(haar.transpose(0, 2, 1).reshape(-1, n_features)[:n_bits] * length)


def _unit_rows(X: npt.NDArray) -> npt.NDArray[np.float64]:
    """Divide each row by its largest magnitude, in float64; a zero row stays zero."""
    largest = np.abs(X).max(axis=1, initial=0.0).astype(np.float64)[:, None]
    return X / np.where(largest > 0, largest, 1.0)


def integer_rows(X: npt.NDArray, length: float) -> npt.NDArray[np.float32]:
    """Scale each row of `X` to Euclidean length `length` and round it to integers with an odd sum.

    Every step is in float64 and in a fixed order, so a row's integers depend only on that row. A zero row stays zero.
    """
    rows = np.empty(X.shape, np.float32)
    _round_rows(np.ascontiguousarray(X), float(length), rows)
    return rows


def exact_length(projection: IntRows) -> float:
    """Return a length for which ``integer_rows(X, length) @ projection.T`` is exact in float32 for every X."""
    longest = np.sqrt(np.einsum("ij,ij->i", projection, projection, dtype=np.int64).max())
    return (_EXACT - 1) / longest - np.sqrt(projection.shape[1]) / 2 - 1


def sign_codes(X: npt.NDArray, projection: IntRows, length: float) -> Codes:
    """Return the packed signs of ``integer_rows(X, length) @ projection.T``, shape (n, n_bits // 8)."""
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
    """Fill `codes` with the packed signs of ``rows @ projection.T``; tiles of bits are spread over threads."""
    if len(rows) <= _FEW_ROWS:
        _few_sign_codes(rows, projection, codes)
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
    """Return the standard deviation that the entries of a projection have before they are rounded to odd integers."""
    return max(16.0, 4096 / np.sqrt(n_features))


def _odd(values: npt.NDArray) -> IntRows:
    return (2 * np.floor(values / 2) + 1).astype(np.int16)


@njit()
def _round_rows(X, length, out):  # type: ignore[no-untyped-def]
    """Fill `out` with the rows that `integer_rows` returns.

    Squares are summed by repeatedly adding the second half of a row to the first, an order that vectorises and that no
    processor changes.
    """
    width = X.shape[1]
    row, squares = np.empty(width), np.empty(width)
    for i in range(len(X)):
        largest = 0.0
        for j in range(width):
            row[j] = X[i, j]
            largest = max(largest, abs(row[j]))
        if largest == 0.0:
            out[i] = 0.0
            continue
        for j in range(width):
            row[j] /= largest
            squares[j] = row[j] * row[j]
        n = width
        while n > 1:
            half = (n + 1) // 2
            for j in range(n - half):
                squares[j] += squares[half + j]
            n = half
        factor, total, at = length / np.sqrt(squares[0]), 0, 0
        for j in range(width):
            row[j] = np.rint(row[j] * factor)
            total += np.int64(row[j])
        if total % 2 == 0:
            for j in range(width):
                at = j if abs(row[j]) > abs(row[at]) else at
            row[at] -= np.sign(row[at])
        for j in range(width):
            out[i, j] = row[j]


@njit(reassociate=True)
def _few_sign_codes(rows, projection, codes):  # type: ignore[no-untyped-def]
    """Fill `codes` with the packed signs of ``rows @ projection.T`` for few rows; float32 sums are exact integers."""
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


@njit()
def _one_sign_code(X, length, projection, codes):  # type: ignore[no-untyped-def]
    """Fill `codes`, (1, n_bits // 8), as `sign_codes` does for the one row of `X`; return whether it is finite."""
    for value in X[0]:
        if not np.isfinite(value):
            return False
    row = np.empty(X.shape, np.float32)
    _round_rows(X, length, row)
    _few_sign_codes(row, projection, codes)
    return True


# ---- structured directions
def hadamard_length(n_features: int) -> int:
    """Return the length p to which vectors of `n_features` numbers are padded; a block of the code has p bits."""
    return padded(max(n_features, _MIN_HADAMARD))


def _hadamard_codes(rows: npt.NDArray, signs: npt.NDArray[np.int8], codes: Codes) -> None:
    """Fill `codes`, shape (n, n_bits // 8), with the packed signs of the structured projections of `rows`."""
    p = hadamard_length(rows.shape[1])
    expected = (-(-8 * codes.shape[1] // p), 3, p)
    if signs.shape != expected:  # the loop does not check bounds
        raise ValueError(f"signs_ has shape {signs.shape}, expected {expected} for these features and bits; fit again")
    rows = np.ascontiguousarray(rows, dtype=np.float32)
    factors = np.ascontiguousarray(signs, dtype=np.float32)
    run_in_ranges(lambda start, stop: _encode(rows, factors, codes, start, stop), len(rows), _LANES)


@njit()
def _encode(rows, signs, codes, start, stop):  # type: ignore[no-untyped-def]
    n_blocks, _, p = signs.shape
    lanes = np.zeros(p * _LANES, np.float32)
    work = np.empty(p * _LANES, np.float32)
    packed = np.empty((p // 8) * _LANES, np.uint8)
    for first in range(start, stop, _LANES):
        count = min(_LANES, stop - first)
        for lane in range(count):
            for i in range(rows.shape[1]):
                lanes[i * _LANES + lane] = rows[first + lane, i]
        for block in range(n_blocks):
            work[:] = lanes
            for product in range(3):
                _flip(work, signs[block, product])
                hadamard(work, _LANES)
            _pack(work, packed)
            begin = block * p // 8
            for lane in range(count):
                for byte in range(min(p // 8, codes.shape[1] - begin)):
                    codes[first + lane, begin + byte] = packed[byte * _LANES + lane]


@njit()
def _flip(work, signs):  # type: ignore[no-untyped-def]
    """Multiply coordinate i of each of the `_LANES` rows that `work` holds by ``signs[i]``."""
    for i in range(len(signs)):
        sign = signs[i]
        for lane in range(i * _LANES, (i + 1) * _LANES):
            work[lane] *= sign


@njit()
def _pack(work, packed):  # type: ignore[no-untyped-def]
    """Pack the signs of each 8 consecutive coordinates of a row into one byte, the first as the highest bit."""
    for byte in range(len(packed) // _LANES):
        first = byte * 8 * _LANES
        for lane in range(_LANES):
            value = 0
            for bit in range(8):
                value = 2 * value + (work[first + bit * _LANES + lane] >= 0)
            packed[byte * _LANES + lane] = value
