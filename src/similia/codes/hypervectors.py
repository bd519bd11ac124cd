"""The algebra of hyperdimensional computing, on packed bits.

A hypervector is a vector of ±1, stored as a row of packed bits (bit 1 is +1). Four operations::

    bind(A, B)     product by position (XNOR of bits)   unlike A and B; undone by binding B again
    bundle(A)      majority of the rows by position     like each of its members
    permute(A, s)  cyclic shift by s positions          unlike A; undone by permute(., -s)
    similarity     cosine = 1 - 2 Hamming / n_bits      0 +- n_bits**-0.5 for unrelated vectors

Cost: a few operations per 64-bit word. Bits are unpacked only for sums. P. Kanerva, "Hyperdimensional
computing", Cognitive Computation 1 (2009); multiply-add-permute as in R. Gayler (1998).

In the compiled loops, bit 1 stands for -1 and bit 0 for +1 ("sign bits"), so a product of ±1 vectors is an XOR, and the
sum of m vectors is m - 2 c, where c counts the ones at each position. Counts are bit-sliced: ``planes[p]`` holds bit p
of the count of every position, so adding a vector takes a few logical operations on whole words. A tree of carry-save
adders (Harley and Seal) adds eight vectors at a time. Adding m vectors of b words costs about 6 m b word operations.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from similia.codes.bits import inner_products, unpack_signs
from similia.core.config import rows_per_block
from similia.core.estimators import Transformer, all_at_once, check_fitted
from similia.core.jit import njit
from similia.core.state import count, one_of, state
from similia.core.validation import check_codes, check_n_bits, check_positive_int, generator
from similia.sources.dask import lazily

Codes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]
Counts = npt.NDArray[np.int32]
Indices = npt.NDArray[np.int64]

_TIES = 2**64 - 1  # index of the tie-breaking vector; no code point or rank reaches it
_ONE = np.uint64(1)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


def random(n: int, n_bits: int = 10_000, random_state: Any = None) -> Codes:
    """Return n independent, uniformly random codes (rows of packed bits, uint8), shape (n, n_bits // 8).

    The `similarity` of two such codes, 1 - 2 (number of differing bits) / n_bits, has expectation 0 and standard
    deviation ``n_bits ** -0.5``.

    Parameters
    ----------
    n : int
        Number of codes.
    n_bits : int, default=10_000
        Length of the codes, a multiple of 8.
    random_state : int, Generator, RandomState or None, default=None
        Seed or generator.

    Examples
    --------
    >>> from similia import codes
    >>> letters = codes.random(26, n_bits=10_000, random_state=0)
    >>> letters.shape
    (26, 1250)
    """
    n, n_bits = check_positive_int(n, "n"), check_n_bits(n_bits)
    return generator(random_state).integers(0, 256, size=(n, n_bits // 8), dtype=np.uint8)


def level(n: int, n_bits: int = 10_000, random_state: Any = None) -> Codes:
    """Return random codes for n levels of a quantity, shape (n, n_bits // 8); near levels have similar codes.

    The code of level 0 is random. All bit positions are put in a random order, and level i differs from level 0 in the
    first ``i * n_bits / (2 (n - 1))`` positions, rounded, in this order. The `similarity` of two codes is 1 - 2 (number
    of differing bits) / n_bits. For levels i and j, the similarity is ``1 - |i - j| / (n - 1)`` up to the rounding. For
    the first and the last level, it is exactly 0.

    Parameters
    ----------
    n : int
        Number of levels. Above ``n_bits / 2 + 1``, some neighbouring levels have equal codes.
    n_bits : int, default=10_000
        Length of the codes, a multiple of 8.
    random_state : int, Generator, RandomState or None, default=None
        Seed or generator.

    References
    ----------
    D. Widdows and T. Cohen, "Reasoning with vectors: a continuous model for fast robust inference", Logic Journal of
    the IGPL 23 (2015).

    Examples
    --------
    >>> from similia import codes
    >>> codes.similarity(codes.level(5, n_bits=1024, random_state=0))[0]
    array([1.  , 0.75, 0.5 , 0.25, 0.  ])
    """
    n, n_bits = check_positive_int(n, "n"), check_n_bits(n_bits)
    rng = generator(random_state)
    first = np.unpackbits(rng.integers(0, 256, size=n_bits // 8, dtype=np.uint8))
    flip_order = np.empty(n_bits, dtype=np.int64)
    flip_order[rng.permutation(n_bits)] = np.arange(n_bits)
    steps = max(n - 1, 1)
    out = np.empty((n, n_bits // 8), dtype=np.uint8)
    for i in range(n):
        flipped = (2 * i * (n_bits // 2) + steps) // (2 * steps)
        out[i] = np.packbits(first ^ (flip_order < flipped))
    return out


def bind(A: npt.ArrayLike, B: npt.ArrayLike) -> Codes:
    """Return the codes of the products of `A` and `B`, row by row; bits stand for ±1, so the product is their XNOR.

    Binding is commutative, associative and its own inverse: ``bind(bind(A, B), B) == A``. It preserves similarities:
    ``similarity(bind(A, C), bind(B, C)) == similarity(A, B)``. The product of two random codes is similar to neither.

    Parameters
    ----------
    A, B : ndarray of uint8, shape (n, n_bits // 8)
        If one of them has a single row, this row is bound to every row of the other.

    Examples
    --------
    >>> from similia import codes
    >>> role, filler = codes.random(2, random_state=0)[:, None]
    >>> bool((codes.bind(role, codes.bind(role, filler)) == filler).all())
    True
    """
    A = check_codes(A, "A")
    B = check_codes(B, "B", n_bits=8 * A.shape[1])
    if len(A) != len(B) and 1 not in (len(A), len(B)):
        raise ValueError(f"bind takes rows in pairs, got {len(A)} and {len(B)} rows; give equally many, or one")
    return np.invert(A ^ B)


def permute(codes: npt.ArrayLike, shift: int = 1) -> Codes:
    """Return codes with bits shifted cyclically: position i moves to ``(i + shift) % n_bits``.

    Shifts encode order: ``bind(A, permute(B))`` stands for B after A, and differs from ``bind(B, permute(A))``, which
    stands for A after B. Shifting preserves similarities. ``permute(bind(A, B))`` equals ``bind(permute(A),
    permute(B))``, and ``permute(codes, -shift)`` undoes ``permute(codes, shift)``.

    Parameters
    ----------
    codes : ndarray of uint8, shape (n, n_bits // 8)
        The codes to shift.
    shift : int, default=1
        Number of positions; a negative shift goes to the left.

    Examples
    --------
    >>> import numpy as np
    >>> from similia import codes
    >>> np.unpackbits(codes.permute(np.array([[0b10000011]], dtype=np.uint8), shift=1))
    array([1, 1, 0, 0, 0, 0, 0, 1], dtype=uint8)
    """
    codes = check_codes(codes)
    if isinstance(shift, bool) or not isinstance(shift, int | np.integer):
        raise ValueError(f"shift must be an integer number of bit positions, got {shift!r}")
    n_whole, n_rest = divmod(int(shift) % max(8 * codes.shape[1], 1), 8)
    rolled = np.roll(codes, n_whole, axis=1)
    if n_rest == 0:
        return rolled
    return (rolled >> np.uint8(n_rest)) | (np.roll(rolled, 1, axis=1) << np.uint8(8 - n_rest))


def bundle(
    codes: npt.ArrayLike, weights: npt.ArrayLike | None = None, output: str = "bits", random_state: Any = None
) -> Codes | Counts:
    """Bundle codes into one: add them as ±1 vectors, and return the sum or its signs (the majority).

    Parameters
    ----------
    codes : ndarray of uint8, shape (n, n_bits // 8)
        The codes to bundle.
    weights : array of int, shape (n,), optional
        How often to count each code, 1 by default; a negative weight subtracts the code. The absolute weights must add
        up to less than 2**31.
    output : {"bits", "counts"}, default="bits"
        What to return: the majority as a code, or the sums themselves.
    random_state : int, Generator, RandomState or None
        Seed or generator of a random code that breaks ties: positions whose sum is 0 take the bits of this code.

    Returns
    -------
    ndarray of uint8, shape (1, n_bits // 8), or of int32, shape (1, n_bits)
        The code, or with ``output="counts"`` the sums.

    Examples
    --------
    >>> from similia import codes
    >>> letters = codes.random(4, random_state=0)
    >>> set_of_three = codes.bundle(letters[:3])
    >>> codes.similarity(set_of_three, letters).round(1)
    array([[ 0.5,  0.5,  0.5, -0. ]])
    """
    codes = check_codes(codes)
    check_output(output)
    if len(codes) == 0:
        raise ValueError("codes is empty: found 0 codes, expected at least one to bundle")
    ties = random(1, 8 * codes.shape[1], random_state)
    if weights is not None:
        sums = _weighted_sum(codes, _check_weights(weights, len(codes)))
        return sums if output == "counts" else sign(sums, ties)
    members = np.arange(len(codes), dtype=np.int64)[:, None]
    offsets = np.array([0, len(codes)], dtype=np.int64)
    out = empty_output(1, 8 * codes.shape[1], output)
    bundle_members(to_words(codes), members, offsets, ties, out)
    return out


def similarity(A: npt.ArrayLike, B: npt.ArrayLike | None = None) -> npt.NDArray[np.float64]:
    """Return the cosines between the codes of `A` and the codes of `B`, read as vectors of ±1, shape (n, m).

    A cosine is 1 - 2 h / n_bits, where h is the number of bits that differ.

    Parameters
    ----------
    A : ndarray of uint8, shape (n, n_bits // 8)
        Codes, rows of packed bits.
    B : ndarray of uint8, shape (m, n_bits // 8), optional
        Codes to compare with; `A` by default.

    Examples
    --------
    >>> import numpy as np
    >>> from similia import codes
    >>> codes.similarity(np.array([[0b11110000]], np.uint8), np.array([[0b11111100], [0b00001111]], np.uint8))
    array([[ 0.5, -1. ]])
    """
    products = inner_products(A, B)
    return products / (8 * np.shape(A)[1])


def check_output(output: Any) -> None:
    if output not in ("bits", "counts"):
        raise ValueError(f"output must be 'bits' (packed codes) or 'counts' (sums of ±1), got {output!r}")


def sign(sums: npt.NDArray, ties: Codes) -> Codes:
    """Return the signs of `sums`, shape (n, n_bits), as codes; where a sum is 0, take the bit of the code in `ties`."""
    tie = np.unpackbits(ties[0]).astype(bool)
    return np.packbits((sums > 0) | ((sums == 0) & tie), axis=1)


def empty_output(n: int, n_bits: int, output: str) -> Codes | Counts:
    """Allocate an uninitialised array of n hypervectors: codes (uint8) or counts (int32)."""
    if output == "bits":
        return np.empty((n, n_bits // 8), dtype=np.uint8)
    return np.empty((n, n_bits), dtype=np.int32)


def bundle_members(
    table: Words, members: Indices, offsets: Indices, ties: Codes, out: Codes | Counts, additive: bool = False
) -> None:
    """Fill row i of `out` with the majority (if `out` is uint8) or sum (if it is int32) of the members of object i.

    The members are described by the rows ``offsets[i]:offsets[i + 1]`` of `members`. Such a row lists rows of `table`,
    up to a -1; the member is their product or, if `additive`, their majority.
    """
    n_bits, n_words = 8 * ties.shape[1], table.shape[1]
    tie_words = to_words(ties)[0]
    quantised = out.dtype == np.uint8
    step = rows_per_block(32 * n_words)  # covers the words of a block and the copies made while converting to bytes
    for start in range(0, len(out), step):
        block = out[start : start + step]
        words = np.empty((len(block) if quantised else 0, n_words), dtype=np.uint64)
        sums = np.empty((0, n_bits), dtype=np.int32) if quantised else block
        rows = offsets[start : start + step + 1]
        _bundle_rows(table, members, rows, additive, tie_words, n_bits, words, sums)
        if quantised:
            block[...] = from_words(words, n_bits)


def _check_weights(weights: npt.ArrayLike, n: int) -> npt.NDArray[np.float64]:
    weights = np.asarray(weights)
    if weights.shape != (n,) or weights.dtype.kind not in "iub":
        raise ValueError(
            f"weights must be {n} integers, one per code, got shape {weights.shape} of {weights.dtype}; "
            "scale and round other weights, e.g. numpy.rint(1000 * weights).astype(int)"
        )
    weights = weights.astype(np.float64)
    if np.abs(weights).sum() >= 2**31:
        raise ValueError("the absolute weights add up to 2**31 or more, too much for int32 sums; divide them")
    return weights


def _weighted_sum(codes: Codes, weights: npt.NDArray[np.float64]) -> npt.NDArray[np.int32]:
    """Return the sum over i of ``weights[i]`` times code i as a ±1 vector, shape (1, n_bits), without rounding."""
    n_bits = 8 * codes.shape[1]
    total = np.zeros(n_bits)
    step = rows_per_block(9 * n_bits)
    for start in range(0, len(codes), step):
        total += weights[start : start + step] @ unpack_signs(codes[start : start + step], np.float64)
    return total.astype(np.int32)[None]


@state(n_bits=count("b", 8, 8), output=one_of("bits", "counts"))
class HypervectorEncoder(Transformer):
    """Base class of encoders that turn objects into hypervectors of `n_bits` positions, as packed bits or counts."""

    n_bits: int
    output: str
    _dtypes = ()

    @lazily
    def transform(self, X: Any) -> npt.NDArray[Any]:
        """Return the hypervectors (long codes) of n objects, packed or as numbers (see `output`).

        Packed codes are uint8 of shape (n, n_bits // 8). Counts and floats have the shape (n, n_bits); counts are
        int32, or float64 if a `RecordEncoder` adds up hypervectors that are not all packed bits. The objects must be of
        the same kind as in `fit`.
        """
        check_fitted(self)
        self._check_parameters()
        drawn = self._drawn_bits()
        if drawn is not None and drawn != self.n_bits:
            raise ValueError(f"n_bits is {self.n_bits}, but fit drew vectors of {drawn} bits; fit again")
        return self._encode(X)

    def _encode(self, X: Any) -> npt.NDArray[Any]:
        raise NotImplementedError

    def _check_parameters(self) -> None:
        """Raise if a parameter that `transform` uses is invalid."""
        check_n_bits(self.n_bits)
        check_output(self.output)

    def _drawn_bits(self) -> int | None:
        """Return the value of `n_bits` for which `fit` drew vectors; None if any value suits the fitted encoder."""
        return None

    @property
    def _n_features_out(self) -> int:
        check_fitted(self)
        return self.n_bits // 8 if self.output == "bits" else self.n_bits


@state(seed_=count())
class SeededEncoder(HypervectorEncoder):
    """Base class of encoders that store no vectors: `seed_` determines the vector of each letter or rank."""

    random_state: Any

    @all_at_once
    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw `seed_`, which determines all random vectors; `X` and `y` are not read."""
        self._check_parameters()
        self.seed_ = int(generator(self.random_state).integers(2**63))
        return self


# ---- Words and random vectors.
# In words, position i of a code is bit 63 - i % 64 of word i // 64, and a bit is 1 for -1, so a product is an XOR.
# The random vectors of letters and ranks are computed, not stored: the vector of number `index` is the output of the
# counter-based generator Philox with the key (seed, index). So a new letter gets the same vector in every process.


def to_words(codes: Codes) -> Words:
    """Convert codes to 64-bit words of sign bits (1 for -1), shape (n, ceil(n_bits / 64)), padded with zero bits."""
    n, n_bytes = codes.shape
    padded = np.zeros((n, -(-n_bytes // 8) * 8), dtype=np.uint8)
    np.invert(codes, out=padded[:, :n_bytes])
    return padded.view(">u8").astype(np.uint64)


def from_words(words: Words, n_bits: int) -> Codes:
    """Convert words of sign bits, as `to_words` returns, to codes, shape (n, n_bits // 8)."""
    flipped = (~words).astype(">u8").view(np.uint8)
    return np.ascontiguousarray(flipped[:, : n_bits // 8])


def basis(seed: int, indices: Iterable[int], n_bits: int) -> Codes:
    """Return the random code that `seed` determines for each index, shape (len(indices), n_bits // 8)."""
    n_words = -(-n_bits // 64)
    rows = [np.random.Philox(key=(seed << 64) | int(index)).random_raw(n_words) for index in indices]
    words = np.array(rows, dtype=np.uint64).reshape(len(rows), n_words)
    return from_words(words, n_bits)


def tie_code(seed: int, n_bits: int) -> Codes:
    """Return the code, determined by `seed`, that breaks ties in bundles, shape (1, n_bits // 8)."""
    return basis(seed, [_TIES], n_bits)


@njit()
def bit_length(n):  # type: ignore[no-untyped-def]
    """Return the number of binary digits of n >= 0, at least 1."""
    length = 1
    while n >> length:
        length += 1
    return length


@njit()
def add_eight(rows, planes, n_planes):  # type: ignore[no-untyped-def]
    """Add the eight vectors in `rows` to the counts in `planes` (row p: bit p of each count); overwrites `rows`."""
    for w in range(rows.shape[1]):
        a, b, c, d = rows[0, w], rows[1, w], rows[2, w], rows[3, w]
        e, f, g, h = rows[4, w], rows[5, w], rows[6, w], rows[7, w]
        # seven full adders: planes[0] + a + b gives the sum s and the carry two_a, and so on
        x = planes[0, w] ^ a
        two_a = (planes[0, w] & a) | (x & b)
        s = x ^ b
        x = s ^ c
        two_b = (s & c) | (x & d)
        s = x ^ d
        x = planes[1, w] ^ two_a
        four_a = (planes[1, w] & two_a) | (x & two_b)
        twos = x ^ two_b
        x = s ^ e
        two_a = (s & e) | (x & f)
        s = x ^ f
        x = s ^ g
        two_b = (s & g) | (x & h)
        planes[0, w] = x ^ h
        x = twos ^ two_a
        four_b = (twos & two_a) | (x & two_b)
        planes[1, w] = x ^ two_b
        x = planes[2, w] ^ four_a
        rows[0, w] = (planes[2, w] & four_a) | (x & four_b)
        planes[2, w] = x ^ four_b
    _ripple(rows[0], planes, 3, n_planes)


@njit()
def _ripple(carry, planes, first, n_planes):  # type: ignore[no-untyped-def]
    """Add 2**first to the counts in `planes` (row p: bit p of each count) where `carry` has a 1; overwrites `carry`."""
    for p in range(first, n_planes):
        plane = planes[p]
        for w in range(len(carry)):
            old = plane[w]
            plane[w] = old ^ carry[w]
            carry[w] &= old


@njit()
def _majority(planes, n_planes, m, ties, out):  # type: ignore[no-untyped-def]
    """Set bits of `out` to 1 where `planes` counts more than m / 2 ones, and to those of `ties` where just m / 2."""
    half = m // 2
    for w in range(len(out)):
        above, equal = np.uint64(0), _ALL
        for p in range(n_planes - 1, -1, -1):
            plane = planes[p, w]
            if (half >> p) & 1:
                equal &= plane
            else:
                above |= equal & plane
                equal &= ~plane
        out[w] = above if m & 1 else above | (equal & ties[w])


@njit()
def _multiply(table, factors, out):  # type: ignore[no-untyped-def]
    """Fill `out` with the XOR of the rows of `table` that `factors` lists, up to a -1: the sign bits of a product."""
    out[:] = table[factors[0]]
    for j in range(1, len(factors)):
        if factors[j] < 0:
            break
        row = table[factors[j]]
        for w in range(len(out)):
            out[w] ^= row[w]


@njit()
def _add(table, factors, planes, carry, ties, out):  # type: ignore[no-untyped-def]
    """Fill `out` with the bitwise majority of the rows of `table` that `factors` lists; -1 ends the list."""
    m = 0
    while m < len(factors) and factors[m] >= 0:
        m += 1
    n_planes = bit_length(m)
    planes[:n_planes] = np.uint64(0)
    for j in range(m):
        carry[:] = table[factors[j]]
        _ripple(carry, planes, 0, bit_length(j + 1))
    _majority(planes, n_planes, m, ties, out)


@njit()
def _count_ones(planes, n_planes, n_bits, m, out):  # type: ignore[no-untyped-def]
    """Fill `out` with the sum of m vectors of ±1: m - 2 c, where c is the count of -1 at each position.

    Row p of `planes` holds bit p of each count: for position i, this is bit 63 - i % 64 of word i // 64.
    """
    sums = np.empty(64, dtype=np.int32)
    for w in range(planes.shape[1]):
        sums[:] = m
        for p in range(n_planes):
            plane = planes[p, w]
            for i in range(64):
                sums[i] -= np.int32(((plane >> np.uint64(63 - i)) & _ONE) << np.uint64(p + 1))
        first = 64 * w
        last = min(n_bits, first + 64)
        out[first:last] = sums[: last - first]


@njit()
def finish(rows, planes, m, n_bits, ties, i, words, sums):  # type: ignore[no-untyped-def]
    """Complete the counts in `planes` with the last m % 8 of m vectors, which are the first rows of `rows`.

    Then set ``words[i]`` to the majority of all m vectors, and ``sums[i]`` to their sum; an empty `words` or `sums` is
    skipped.
    """
    n_planes = bit_length(m)
    for r in range(m % 8):
        _ripple(rows[r], planes, 0, n_planes)
    if len(words):
        _majority(planes, n_planes, m, ties, words[i])
    if len(sums):
        _count_ones(planes, n_planes, n_bits, m, sums[i])


@njit()
def _bundle_rows(table, members, offsets, additive, ties, n_bits, words, sums):  # type: ignore[no-untyped-def]
    """Compute the majority and the sum of the members ``offsets[i]:offsets[i + 1]`` of each object i.

    A member is a row of `members` (int64, n_factors columns): it lists rows of `table` (sign bits, uint64, n_words
    columns) and stands for their product, or for their majority if `additive`; -1 ends a shorter list. The outputs are
    `words` (n, n_words), the sign bits of the majority, and `sums` (n, n_bits), int32. An output with no rows is
    skipped. An object without members has sums 0 and the bits of `ties`.
    """
    n_words = table.shape[1]
    longest = 0
    for i in range(len(offsets) - 1):
        longest = max(longest, offsets[i + 1] - offsets[i])
    planes = np.empty((max(3, bit_length(longest)), n_words), dtype=np.uint64)
    inner = np.empty((bit_length(members.shape[1]), n_words), dtype=np.uint64)
    carry = np.empty(n_words, dtype=np.uint64)
    rows = np.empty((8, n_words), dtype=np.uint64)
    for i in range(len(offsets) - 1):
        m = offsets[i + 1] - offsets[i]
        planes[:] = np.uint64(0)
        for k in range(m):
            factors = members[offsets[i] + k]
            if additive:
                _add(table, factors, inner, carry, ties, rows[k % 8])
            else:
                _multiply(table, factors, rows[k % 8])
            if k % 8 == 7:
                add_eight(rows, planes, bit_length(k + 1))
        finish(rows, planes, m, n_bits, ties, i, words, sums)
