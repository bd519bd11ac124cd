"""Codes: rows of packed bits that stand for vectors of +-1. Packing, distances, inner products, kernel estimates.

Two codes of d bits that differ in h bits have the inner product d - 2 h. For codes of `SignRandomProjection`,
pi h / d estimates the angle between the vectors. With rho the cosine of this angle and S = pi / 2 - pi h / d,

    E S = arcsin rho,   Var S = V = ((pi/2)^2 - arcsin^2 rho) / d,   estimate of rho: (1 + V / 2) sin S.

Only d + 1 distances are possible, so estimates and standard errors are read from two tables. Comparing n codes with m
costs n m d / 64 popcounts.
"""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from similia.core.config import rows_per_block, run_in_ranges
from similia.core.hashing import popcount
from similia.core.jit import njit
from similia.core.validation import check_codes, check_n_bits, generator, unmasked

Floats = npt.NDArray[np.float64]
_TILE = 64  # this many codes of B stay in cache while codes of A are compared with them
_ROWS = 256  # codes of A converted to words at a time, so that a padded copy stays in cache too


def pack_signs(values: Any) -> npt.NDArray[np.uint8]:
    """Return the signs of numbers packed into bits, 1 for ``>= 0`` and 0 for ``< 0``, shape (n, n_bits // 8).

    Parameters
    ----------
    values : array of shape (n, n_bits)
        Numbers; `n_bits` must be a multiple of 8.

    Examples
    --------
    >>> from similia.codes import pack_signs
    >>> pack_signs([[1, -1, -1, -1, -1, -1, 0, 2.5]])
    array([[131]], dtype=uint8)
    """
    values = np.asarray(unmasked(values, "values"))
    if values.dtype.kind not in "biuf":
        raise ValueError(f"values must be real numbers, got dtype {values.dtype}")
    if values.ndim != 2:
        raise ValueError(f"values must be 2-D (n, n_bits), got shape {values.shape}; write one row v as [v]")
    check_n_bits(values.shape[1])
    missing = np.isnan(values).any(axis=1)
    if missing.any():
        raise ValueError(f"values[{np.argmax(missing)}] holds NaN, which has no sign; drop or impute it")
    return np.packbits(values >= 0, axis=1)


def unpack_signs(codes: Any, dtype: npt.DTypeLike = np.int8) -> npt.NDArray:
    """Return codes as an array of shape (n, n_bits): +1 for each bit 1 and -1 for each bit 0.

    Parameters
    ----------
    codes : uint8 array of shape (n, n_bits // 8)
        Packed bits.
    dtype : dtype, default=int8
        Type of the result.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.codes import unpack_signs
    >>> unpack_signs(np.array([[131]], dtype=np.uint8))
    array([[ 1, -1, -1, -1, -1, -1,  1,  1]], dtype=int8)
    """
    return (2 * np.unpackbits(check_codes(codes), axis=1).view(np.int8) - 1).astype(dtype, copy=False)


def hamming_distances(A: Any, B: Any = None) -> npt.NDArray[np.int32]:
    """Return the number of differing bits between each code of `A` and each code of `B`, shape (n, m).

    Parameters
    ----------
    A, B : uint8 arrays of shape (n, n_bits // 8) and (m, n_bits // 8)
        Packed bits; `B` defaults to `A`.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.codes import hamming_distances
    >>> hamming_distances(np.array([[0b0001], [0b0111]], dtype=np.uint8))
    array([[0, 2],
           [2, 0]], dtype=int32)
    """
    return hamming(*_check_pair(A, B))


def inner_products(A: Any, B: Any = None) -> npt.NDArray[np.int32]:
    """Return inner products of codes, read as ±1 vectors: ``n_bits - 2 * hamming_distances(A, B)``, shape (n, m).

    Parameters
    ----------
    A, B : uint8 arrays of shape (n, n_bits // 8) and (m, n_bits // 8)
        Packed bits; `B` defaults to `A`.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.codes import inner_products
    >>> inner_products(np.array([[0b0001], [0b0111]], dtype=np.uint8))
    array([[8, 4],
           [4, 8]], dtype=int32)
    """
    A, B = _check_pair(A, B)
    distances = hamming(A, B)
    np.multiply(distances, -2, out=distances)
    distances += 8 * A.shape[1]
    return distances


@overload
def kernel_from_codes(A: Any, B: Any = ..., correct: bool = ..., return_std: Literal[False] = ...) -> Floats: ...
@overload
def kernel_from_codes(
    A: Any, B: Any = ..., correct: bool = ..., *, return_std: Literal[True]
) -> tuple[Floats, Floats]: ...
def kernel_from_codes(
    A: Any, B: Any = None, correct: bool = True, return_std: bool = False
) -> Floats | tuple[Floats, Floats]:
    """Estimate the cosines of vectors from the codes that `SignRandomProjection` made of them.

    Let rho be the cosine of two vectors, and h the number of bits in which their codes differ. Then
    ``S = pi / 2 - pi h / n_bits`` estimates arcsin(rho), with a variance of about
    ``V = ((pi / 2) ** 2 - S ** 2) / n_bits``, and so ``sin S`` estimates rho. For vectors whose inner products
    approximate a kernel, such as those of `Nystroem`, the cosines approximate the normalised kernel.

    Parameters
    ----------
    A, B : uint8 arrays of shape (n, n_bits // 8) and (m, n_bits // 8)
        Codes from the same fitted `SignRandomProjection`; `B` defaults to `A`.
    correct : bool, default=True
        Whether to multiply the estimate ``sin S`` by ``1 + V / 2``. This reduces its bias from about ``-rho V / 2`` to
        the order of ``n_bits ** -2``.
    return_std : bool, default=False
        Whether to return standard errors too.

    Returns
    -------
    kernel : float64 array of shape (n, m)
        Estimates of rho, between -1 and 1; equal codes give 1.
    std : float64 array of shape (n, m)
        Only if `return_std`: the standard error ``cos(S) sqrt(V)`` (delta method). This formula holds for codes of
        ``SignRandomProjection(method="gaussian")``; with ``"structured"`` and ``"hadamard"``, the true error is
        smaller. `std` is 0 for equal codes and for opposite codes, although rho may then differ from +-1 by about
        ``(pi / n_bits) ** 2``.

    References
    ----------
    Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.codes import kernel_from_codes
    >>> codes = np.array([[0b11111111], [0b00001111]], dtype=np.uint8)
    >>> kernel_from_codes(codes).round(6)
    array([[1., 0.],
           [0., 1.]])
    """
    A, B = _check_pair(A, B)
    values, errors = _tables(8 * A.shape[1], correct)
    kernel = np.empty((len(A), len(B)))
    std = np.empty_like(kernel) if return_std else None
    step = rows_per_block(4 * len(B), at_most=max(1, len(A)))
    for start in range(0, len(A), step):
        distances = hamming(A[start : start + step], B)
        np.take(values, distances, out=kernel[start : start + step], mode="clip")
        if std is not None:
            np.take(errors, distances, out=std[start : start + step], mode="clip")
    return kernel if std is None else (kernel, std)


def _tables(n_bits: int, correct: bool) -> tuple[Floats, Floats]:
    """Return the estimates of the cosine rho and their standard errors for the Hamming distances 0 to `n_bits`."""
    angles = np.pi * np.arange(n_bits + 1) / n_bits
    variances = angles * angles[::-1] / n_bits  # (pi/2)^2 - S^2 = angle (pi - angle)
    values = np.cos(angles) * (1 + variances / 2 if correct else 1)
    values[n_bits // 2] = 0.0  # cos(pi / 2) is 6e-17 in floats
    return values, np.sin(angles) * np.sqrt(variances)


def _check_pair(A: Any, B: Any) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    A = check_codes(A, "A")
    if A.shape[1] == 0:
        raise ValueError(f"A has codes of 0 bits (shape {A.shape}), expected at least one byte for each code")
    return A, A if B is None else check_codes(B, "B", 8 * A.shape[1])


def flip_bits(codes: Any, share: float, random_state: Any = None) -> npt.NDArray[np.uint8]:
    """Return a copy of packed codes in which each bit is flipped with probability `share`.

    Parameters
    ----------
    codes : ndarray of uint8, shape (n, n_bits // 8)
        Packed bits.
    share : float
        Probability between 0 and 1.
    random_state : int, numpy Generator or None, default=None
        Seed or generator.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.codes import flip_bits
    >>> flip_bits(np.array([[0b00001111]], dtype=np.uint8), 1.0)
    array([[240]], dtype=uint8)
    """
    codes = check_codes(codes)
    if not 0 <= share <= 1:
        raise ValueError(f"share must be between 0 and 1, got {share!r}")
    rng = generator(random_state)
    # float32 draws are multiples of 2**-24, too coarse for a share near 0 or 1
    dtype: Any = np.float64 if 0 < min(share, 1 - share) < 1e-3 else np.float32
    flips = [np.packbits(rng.random(8 * codes.shape[1], dtype=dtype) < share) for _ in range(len(codes))]
    return codes ^ np.array(flips, dtype=np.uint8).reshape(codes.shape)


def hamming(A: npt.NDArray[np.uint8], B: npt.NDArray[np.uint8]) -> npt.NDArray[np.int32]:
    """Return the number of differing bits between each row of `A` and each row of `B`, shape (n, m)."""
    words = as_words(B)
    distances = np.empty((len(A), len(B)), np.int32)

    def fill(start: int, stop: int) -> None:
        for first in range(start, stop, _ROWS):
            rows = slice(first, min(stop, first + _ROWS))
            _hamming(as_words(A[rows]), words, distances, first, 0)

    def fill_half(low: int, high: int) -> None:
        for first in [i for k in range(low, high) for i in {k, last - k}]:  # short rows with long ones
            start, after = first * _ROWS, (first + 1) * _ROWS
            _hamming(words[start:after], words[start:], distances, start, start)
            distances[after:, start:after] = distances[start:after, after:].T

    last = -(-len(A) // _ROWS) - 1
    if A is B:
        run_in_ranges(fill_half, last // 2 + 1, 1)
    else:
        run_in_ranges(fill, len(A), _TILE)
    return distances


def as_words(codes: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    """Return codes as 64-bit words: a view, or a copy if the codes must be aligned or padded with zero bits."""
    codes = np.ascontiguousarray(codes)
    if not are_words(codes):
        codes = np.pad(codes, ((0, 0), (0, -codes.shape[1] % 8)))
    return codes.view(np.uint64)


def are_words(codes: npt.NDArray[np.uint8]) -> bool:
    """Return whether the rows of a C-contiguous array are whole, aligned 64-bit words."""
    return codes.shape[1] % 8 == 0 and codes.view(np.uint64).flags.aligned


@njit()
def _hamming(A, B, distances, row, column):  # type: ignore[no-untyped-def]
    out = distances[row : row + len(A), column : column + len(B)]  # indices below are never negative
    for first in range(0, len(B), _TILE):
        for i in range(len(A)):
            for j in range(first, min(len(B), first + _TILE)):
                count = np.uint64(0)
                for word in range(A.shape[1]):
                    count += popcount(A[i, word] ^ B[j, word])
                out[i, j] = count
