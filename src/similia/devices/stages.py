"""The stages of a quantised model after its input: numbers to bits, bits to a label, in whole numbers or in float32.

    k = input(object)            similarities or distances to landmarks, or the numbers of a vector (`inputs`)
    z = fit(A k + c, B)          `Linear`: coordinates, shifted so that the largest takes B bits
    b = [P z >= 0]               `DenseSigns` or `HadamardSigns`: the code
    score_j = m_j R_j x + c_j    `Prototypes`: x is the code as +-1; the label is the first with the largest score

A positive factor does not change the sign of P z. So the norm of an object, and a common factor of its coordinates,
need not be computed, and shifts can make the numbers fit. `quantise` chooses widths for which no sum exceeds 64 bits in
`Linear` and `Prototypes`, or 32 bits in the signs. So every sum is exact, in any order, and the loops in C give the
same results as those here. A shift to the right rounds down, also for negative numbers.

The classes `Float...` are the same stages in float32, with the operations in a fixed order: each rounds to float32, and
sums run over ascending indices. So the C of ``templates/model.c.jinja`` and these classes give the same bits on every
processor with IEEE 754, unless a compiler joins a product and a sum (FMA). Similarities that are counts, and prototypes
of 8, 4 or 1 bits, stay whole numbers.

    z_i = (((A_i1 k_1) + A_i2 k_2) + ...) + c_i        `FloatLinear`
    b = [P z >= 0]                         `FloatSigns`, or `FloatHadamard` with steps 1, 2, ..., p / 2
    score_j = ((x_1 R_j1) + x_2 R_j2 + ...) + c_j      `FloatPrototypes`: x is the code as +-1

`tables_of` lists the tables of a model on a device, each of the smallest type for its numbers; `operations_of` counts
the operations that a label takes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from similia.core.config import rows_per_block
from similia.core.products import padded
from similia.devices.inputs import (
    Curve,
    Edits,
    Features,
    FloatGaussian,
    Gaussian,
    Letters,
    Levels,
    NGrams,
    Substrings,
    Subtrees,
    Warped,
)

if TYPE_CHECKING:
    from similia.devices.quantised import Quantised

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
Codes = npt.NDArray[np.uint8]
_COORDINATE_BITS = 14  # maximum number of bits of a coordinate, without its sign
_SUM_BITS = 62  # maximum number of bits of a sum of 64 bits, without its sign and one to spare
_FACTOR_BITS = 15  # usual number of bits of a factor in `Linear.A`, without its sign
_SMALL_CHANGE = 0.01  # of the norm of the coordinates: allowed change by rounding the factors
_PER_LINE = 100  # maximum number of characters in a line of numbers


@dataclass(frozen=True)
class Linear:
    """Coordinates z = A k + c of the whole numbers k, where each row of A has a scale 2^s of its own.

    Attributes
    ----------
    A : ndarray of int64 (r, m) or (r,)
        Factors of 16 or 32 bits; with shape (r,), z_i depends on k_i only.
    c : ndarray of int64 (r,)
        Offsets, each in the scale of its row.
    shifts : ndarray of int64 (r,)
        Sum i is divided by 2^shifts[i], so that all sums have the same scale.
    guard : int
        Sums are multiplied by 2^guard before they are divided, so that the division loses little.
    n_bits : int
        Width of z, without the sign.
    """

    A: Ints
    c: Ints
    shifts: Ints
    guard: int
    n_bits: int

    @classmethod
    def of(cls, A: npt.NDArray, c: npt.NDArray, limit: int, examples: Ints | None = None) -> Linear:
        """Round the matrix (r, m), or its diagonal (r,), and the offsets (r,) for numbers k of at most `limit`.

        Factors have 16 bits, or up to 32 if 16 change the coordinates of `examples` by more than 1 %.
        """
        _check_factors(A, c)
        r = len(A)
        rows = A.reshape(r, -1)
        room = int(_SUM_BITS - 1 - np.ceil(np.log2(limit * rows.shape[1])))  # for |c| and a factor
        for width in (_FACTOR_BITS, min(2 * _FACTOR_BITS + 1, room)):
            scales = _scales(rows, c, width, room)
            factors = np.rint(np.ldexp(rows, scales[:, None]))
            if examples is None or A.ndim == 1:
                break
            exact, change = examples @ A.T + c, examples @ (np.ldexp(factors, -scales[:, None]) - A).T
            if np.median(np.linalg.norm(change, axis=1)) <= _SMALL_CHANGE * np.median(np.linalg.norm(exact, axis=1)):
                break
        offsets = np.rint(np.ldexp(c, scales)).astype(np.int64)
        most = float((np.abs(factors).sum(axis=1) * limit + np.abs(offsets)).max() + 1)
        shifts = np.minimum(scales - scales.min(), 63).astype(np.int64)  # C leaves shifts by 64 bits or more open
        guard = int(min(shifts.max(), _SUM_BITS - np.ceil(np.log2(most))))
        return cls(factors.astype(np.int64).reshape(A.shape), offsets, shifts, guard, _coordinate_bits(r))

    def __call__(self, k: Ints) -> Ints:
        sums = (k * self.A if self.A.ndim == 1 else k @ self.A.T) + self.c
        return fit_to((sums << self.guard) >> self.shifts, self.n_bits)


@dataclass(frozen=True)
class DenseSigns:
    """Signs of the products with the rows of P, int8 (n_bits, r)."""

    P: npt.NDArray[np.int8]

    @classmethod
    def of(cls, projection: npt.NDArray) -> DenseSigns:
        """Scale each row of `projection` to at most +-127 and round it; scaling keeps the signs of products."""
        largest = np.abs(projection).max(axis=1, keepdims=True).astype(np.float64)
        return cls(np.rint(projection / largest * 127).astype(np.int8))

    @property
    def n_bits(self) -> int:
        return len(self.P)

    def __call__(self, z: Ints) -> Codes:
        # products and sums are below 2^31, so float64 is exact
        return np.packbits(z.astype(np.float64) @ self.P.T.astype(np.float64) >= 0, axis=1)


@dataclass(frozen=True)
class HadamardSigns:
    """Signs of blocks of p numbers: the coordinates after three rounds of sign flips and a Hadamard product.

    Attributes
    ----------
    flips : ndarray of bool (n_blocks, 3, p)
        Whether each number changes its sign before each product.
    n_bits : int
    """

    flips: npt.NDArray[np.bool_]
    n_bits: int

    @property
    def shift(self) -> int:
        """Number of bits by which the first two products are shifted right, so that the third fits into 32 bits."""
        return (self.flips.shape[2].bit_length() - 1) // 2

    def __call__(self, z: Ints) -> Codes:
        n_blocks, _, p = self.flips.shape
        bits = np.empty((len(z), n_blocks * p), bool)
        for block in range(n_blocks):
            work = np.zeros((len(z), p), np.int64)
            work[:, : z.shape[1]] = z
            for product in range(3):
                work = hadamard(np.where(self.flips[block, product], -work, work))
                if product < 2:
                    work >>= self.shift
            bits[:, block * p : (block + 1) * p] = work >= 0
        return np.packbits(bits[:, : self.n_bits], axis=1)


@dataclass(frozen=True)
class Prototypes:
    """Scores m_j (R_j x) + c_j of the classes for a code x of +-1.

    Attributes
    ----------
    R : ndarray of int8 (n_classes, d)
        Prototypes of `bits` bits; +-1 for one bit.
    m, c : ndarray of int64 (n_classes,)
        Factors of at most 31 bits, and offsets.
    bits : int
        8, 4 or 1.
    unit : float
        Size of a score of 1 in the units of `HDClassifier.decision_function`.
    """

    R: npt.NDArray[np.int8]
    m: Ints
    c: Ints
    bits: int
    unit: float

    @classmethod
    def of(cls, R: npt.NDArray, factors: npt.NDArray, intercepts: npt.NDArray, bits: int) -> Prototypes:
        """Round the factors of R_j x and the intercepts to whole numbers of one unit."""
        largest = np.abs(factors).max()
        reach = (np.abs(factors) * np.abs(R).sum(axis=1) + np.abs(intercepts)).max()
        if not largest > 0:
            raise ValueError("all prototypes are zero, so every object has the same label; fit on other data")
        scale = int(min(np.floor(np.log2(2.0**30 / largest)), np.floor(np.log2(2.0**_SUM_BITS / reach)) - 1))
        m, c = (np.rint(np.ldexp(values, scale)).astype(np.int64) for values in (factors, intercepts))
        return cls(R.astype(np.int8), m, c, bits, 2.0**-scale)

    def __call__(self, codes: Codes) -> Ints:
        scores = np.empty((len(codes), len(self.R)), np.int64)
        for start in range(0, len(codes), step := rows_per_block(16 * self.R.shape[1])):
            x = 2.0 * np.unpackbits(codes[start : start + step], axis=1) - 1.0
            scores[start : start + step] = (x @ self.R.T.astype(np.float64)).astype(np.int64) * self.m + self.c
        return scores


@dataclass(frozen=True)
class FloatLinear:
    """Coordinates z = A k + c; `A` has the shape (r, m), or (r,) if z_i depends on k_i only."""

    A: Floats
    c: Floats

    @classmethod
    def of(cls, A: npt.NDArray, c: npt.NDArray) -> FloatLinear:
        """Scale by a power of two that brings the largest factor near 1, then round `A` and `c` to float32."""
        _check_factors(A, c)
        scale = -int(np.ceil(np.log2(np.abs(A).max())))
        return cls(np.ldexp(A, scale).astype(np.float32), np.ldexp(c, scale).astype(np.float32))

    def __call__(self, k: npt.NDArray) -> Floats:
        k = k.astype(np.float32)
        return (k * self.A if self.A.ndim == 1 else _products(k, self.A)) + self.c


@dataclass(frozen=True)
class FloatSigns:
    """Signs of the products with the rows of P, float32 (n_bits, r)."""

    P: Floats

    @property
    def n_bits(self) -> int:
        return len(self.P)

    def __call__(self, z: Floats) -> Codes:
        return np.packbits(_products(z, self.P) >= 0, axis=1)


@dataclass(frozen=True)
class FloatHadamard:
    """The same as `HadamardSigns`, but without shifts; `flips` is bool (n_blocks, 3, p)."""

    flips: npt.NDArray[np.bool_]
    n_bits: int

    def __call__(self, z: Floats) -> Codes:
        n_blocks, _, p = self.flips.shape
        bits = np.empty((len(z), n_blocks * p), bool)
        for block in range(n_blocks):
            work = np.zeros((len(z), p), np.float32)
            work[:, : z.shape[1]] = z
            for flip in self.flips[block]:
                work = hadamard(np.where(flip, -work, work))
            bits[:, block * p : (block + 1) * p] = work >= 0  # also for -0
        return np.packbits(bits[:, : self.n_bits], axis=1)


@dataclass(frozen=True)
class FloatPrototypes:
    """Scores R_j x + c_j of the classes for a code x of +-1; `R` has the shape (n_classes, n_bits)."""

    R: Floats
    c: Floats
    bits: ClassVar[int] = 32

    def __call__(self, codes: Codes) -> Floats:
        scores = np.empty((len(codes), len(self.R)), np.float32)
        for start in range(0, len(codes), step := rows_per_block(8 * self.R.shape[1])):
            x = np.float32(2) * np.unpackbits(codes[start : start + step], axis=1) - np.float32(1)
            scores[start : start + step] = _products(x, self.R) + self.c
        return scores


def _check_factors(A: npt.NDArray, c: npt.NDArray) -> None:
    """Raise if a coordinate A k + c has a factor or offset that is not finite, or if no coordinate depends on k."""
    finite = np.isfinite(A.reshape(len(A), -1)).all(axis=1) & np.isfinite(c)
    if not finite.all():
        raise ValueError(
            f"coordinate {np.argmin(finite)} has a factor or offset that is not finite; a step before the projection "
            "may scale it by a number too close to 0"
        )
    if not A.any():
        raise ValueError("all coordinates are constant, so every object has the same code; fit on other data")


def fit_to(z: Ints, n_bits: int) -> Ints:
    """Shift each row so that its largest number takes `n_bits` bits; a row of zeros stays zero."""
    length = bit_length(np.abs(z).max(axis=1, initial=0))
    shift = np.where(length > 0, length - n_bits, 0)[:, None]
    return (z << np.maximum(-shift, 0)) >> np.maximum(shift, 0)


def bit_length(values: Ints) -> Ints:
    """Return the number of binary digits of numbers >= 0; 0 for 0."""
    return (values[:, None] >= 1 << np.arange(63, dtype=np.int64)).sum(axis=1)


def hadamard(rows: npt.NDArray) -> npt.NDArray:
    """Multiply each row by the Hadamard matrix of its length p, a power of two, in steps 1, 2, ..., p / 2."""
    n, p = rows.shape
    half = 1
    while half < p:
        pairs = rows.reshape(n, -1, 2, half)
        rows = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], axis=2).reshape(n, p)
        half *= 2
    return rows


def _scales(rows: npt.NDArray, c: npt.NDArray, width: int, room: int) -> npt.NDArray[np.int32]:
    """Return s for each row: its factors times 2^s take at most `width` bits, and c 2^s at most half of a sum."""
    largest = np.abs(rows).max(axis=1)
    with np.errstate(divide="ignore"):
        scales = np.floor(np.log2((2.0**width - 1) / largest))
        scales = np.minimum(scales, np.floor(_SUM_BITS - 1 - np.log2(np.abs(c))))
    if width > room:
        raise ValueError(
            f"sums of coordinates need {_SUM_BITS + width - room} bits, but only {_SUM_BITS} are available; use fewer "
            "landmarks or shorter objects"
        )
    # a coordinate that is always 0 gets the finest scale of the others
    return np.where(np.isfinite(scales), scales, scales[largest > 0].max()).astype(np.int32)


def _coordinate_bits(r: int) -> int:
    """Return the width of r coordinates for which sums of products with int8, and of Hadamard products, fit 32 bits."""
    return min(_COORDINATE_BITS, 24 - r.bit_length(), 30 - padded(r).bit_length())


def _products(x: Floats, rows: Floats) -> Floats:
    """Return the products of the rows of x (n, m) with `rows` (r, m), added over ascending columns."""
    total = np.zeros((len(x), len(rows)), np.float32)
    columns = np.ascontiguousarray(rows.T)
    for numbers, factors in zip(x.T, columns, strict=True):
        total += numbers[:, None] * factors
    return total


@dataclass(frozen=True)
class Table:
    """A constant array in C: its name, meaning, type and numbers."""

    name: str
    meaning: str
    type: str
    values: npt.NDArray

    @property
    def n_bytes(self) -> int:
        bits = 32 if self.type == "float" else int(re.findall(r"\d+", self.type)[0])
        return int(self.values.size) * bits // 8

    def lines(self) -> str:
        """Return the numbers, separated by commas, in lines of about 100 characters."""
        numbers = [literal(value, self.type) for value in self.values.ravel()]
        lines, line = [], ""
        for number in numbers:
            if len(line) + len(number) > _PER_LINE:
                lines.append(line.rstrip())
                line = ""
            line += number + ", "
        return "\n".join([*lines, line.rstrip(", ")])


def literal(value: Any, kind: str) -> str:
    """Return a number as a literal of type `kind` in C."""
    if kind == "float":
        return re.sub(r"\.?0*p", "p", float(value).hex()) + "F"  # hexadecimal, so that no compiler rounds it
    value = int(value)
    if kind == "int64_t":
        return f"INT64_C({value})" if value > -(2**63) else "INT64_MIN"
    if kind == "uint32_t":
        return f"{value}U" if value < 2**16 else f"UINT32_C({value})"
    return str(value)


def sizes_of(small: Quantised) -> dict[str, int]:
    """Return the bytes of each table."""
    return {table.name: table.n_bytes for table in tables_of(small)}


def tables_of(small: Quantised) -> Iterator[Table]:
    """Yield the tables of a model in C."""
    yield from _input_tables(small.input)
    if isinstance(small.linear, FloatLinear):
        yield from _coordinate_tables(small.linear, "float", "float")
    elif small.linear is not None:
        kind = "int16_t" if np.abs(small.linear.A).max() < 2**15 else "int32_t"
        yield from _coordinate_tables(small.linear, kind, "int64_t")
        if small.linear.shifts.any():
            yield Table("shifts", "division of each sum by a power of two", "uint8_t", small.linear.shifts)
    if isinstance(small.signs, DenseSigns | FloatSigns):
        kind = "int8_t" if isinstance(small.signs, DenseSigns) else "float"
        yield Table("projection", "P, row by row", kind, small.signs.P)
    elif isinstance(small.signs, FloatHadamard):
        yield Table("flips", "signs before each product", "uint8_t", np.packbits(small.signs.flips))
    elif small.signs is not None:
        yield Table(
            "flips", "signs before each product, as they are read", "uint8_t", _flips(small.signs, small.linear)
        )
    if isinstance(small.prototypes, FloatPrototypes):
        yield Table("prototypes", "R, row by row", "float", small.prototypes.R)
        yield Table("intercepts", "c", "float", small.prototypes.c)
    elif small.prototypes is not None:
        yield from _prototype_tables(small.prototypes)


def _input_tables(read: Any) -> Iterator[Table]:
    if isinstance(read, Substrings):
        yield from _letter_tables(read.letters)
        yield from _feature_tables(read.features)
        letters, complements = read.tables
        if (letters != np.arange(256)).any():
            yield Table("read_as", "what a letter is read as", "uint8_t", letters)
        if len(complements):
            yield Table("complement", "of a letter as read", "uint8_t", complements)
    elif isinstance(read, Subtrees):
        yield from _feature_tables(read.features)
    elif isinstance(read, Edits):
        yield from _letter_tables(read.letters)
        yield Table("landmarks", "their letters", "uint8_t", read.landmarks.values)
        yield _smallest("first_of_landmark", "where a landmark begins", read.landmarks.offsets)
        if isinstance(read.curve, Curve):
            yield from _curve_table(read.curve)
    elif isinstance(read, Warped):
        yield Table("landmarks", "their values", "int16_t", read.landmarks.values.astype(np.int64))
        yield _smallest("first_of_landmark", "where a landmark begins", read.landmarks.offsets)
        yield from _curve_table(read.curve)
        if (widths := _half_widths(read)) is not None:
            yield _smallest("half_widths", "of the band, by the longer length", widths)
    elif isinstance(read, FloatGaussian):
        yield Table("landmarks", "their numbers", "float", read.landmarks)
    elif isinstance(read, Gaussian):
        yield Table("landmarks", "their numbers", "int16_t", read.landmarks)
        yield from _curve_table(read.curve)
    elif isinstance(read, Levels):
        yield Table("levels", "codes of the levels", "uint8_t", read.encoder.levels_)
        if read.n_channels > 1:
            yield Table("roles", "codes of the features or channels", "uint8_t", read.encoder.roles_)
        yield Table("ties", "code that decides ties", "uint8_t", read.encoder.ties_)
        yield Table("ends", "largest number of each level but the last, by feature or channel", "int16_t", read.ends)
    elif isinstance(read, NGrams):
        yield from _letter_tables(read.letters)
        yield Table("number_of", "of a known letter", "uint8_t", np.searchsorted(read.letters.known, np.arange(256)))
        yield Table("items", "codes of the letters", "uint8_t", read.items)
        yield Table("ties", "code that decides ties", "uint8_t", read.ties)


def _coordinate_tables(linear: Linear | FloatLinear, kind: str, kind_of_sums: str) -> Iterator[Table]:
    yield Table("factors", "A, row by row" if linear.A.ndim == 2 else "the diagonal of A", kind, linear.A)
    if linear.c.any():
        yield Table("offsets_of_sums", "c", kind_of_sums, linear.c)


def _feature_tables(features: Features) -> Iterator[Table]:
    yield Table("ids", "features of the landmarks", "uint32_t", features.ids)
    yield _smallest("first_of_id", "where the counts of a feature begin", features.offsets)
    yield _smallest("landmark_of", "landmark of a count", features.landmarks)
    yield _smallest("counts", "count times weight", features.counts)


def _letter_tables(letters: Letters) -> Iterator[Table]:
    yield Table("known", "a bit for each letter", "uint8_t", letters.bitmap)


def _curve_table(curve: Curve) -> Iterator[Table]:
    yield Table("curve", "function of a distance", "uint32_t", curve.values)


def _prototype_tables(prototypes: Prototypes) -> Iterator[Table]:
    meaning = {8: "R + 128, four numbers", 4: "R + 8, eight numbers", 1: "R > 0, 32 bits"}[prototypes.bits]
    yield Table("prototypes", f"{meaning} a word, class after class", "uint32_t", _words(prototypes))
    yield Table("weights", "m", "int32_t", prototypes.m)
    yield Table("intercepts", "c", "int64_t", prototypes.c)


def short_length(linear: Linear) -> int:
    """Return the size of the Hadamard matrix that the coordinates need; larger matrices repeat its product."""
    return max(8, padded(len(linear.A)))


def _flips(signs: HadamardSigns, linear: Any) -> npt.NDArray[np.uint8]:
    """Return the flips of each block in the order in which C reads them.

    First those of the first product for coordinates that exist, then all of the second product, then those of the third
    in groups of eight, p / 8 apart.
    """
    n_blocks, _, p = signs.flips.shape
    first, second, third = np.moveaxis(signs.flips, 1, 0)
    third = np.swapaxes(third.reshape(n_blocks, 8, p // 8), 1, 2).reshape(n_blocks, p)
    return np.packbits(np.concatenate([first[:, : short_length(linear)], second, third], axis=1))


def _words(prototypes: Prototypes) -> npt.NDArray[np.uint32]:
    """Return prototypes as 32-bit words, the first number in the highest bits.

    First come the words of all classes for the first byte of the code, then those for the next byte, and so on. If
    numbers have 1 bit, a word of the code takes the place of a byte; the last word ends with zeros.
    """
    n, d = prototypes.R.shape
    if prototypes.bits == 1:
        signs = np.pad(prototypes.R > 0, ((0, 0), (0, -d % 32)))
        return np.ascontiguousarray(np.packbits(signs, axis=1)).view(">u4").T.astype(np.uint32)
    half = 2 ** (prototypes.bits - 1)
    per_word = 32 // prototypes.bits
    places = np.arange(per_word - 1, -1, -1, dtype=np.uint32) * prototypes.bits
    numbers = (prototypes.R.astype(np.int64) + half).astype(np.uint32).reshape(n, d // 8, 8 // per_word, per_word)
    return np.bitwise_or.reduce(numbers << places, axis=-1).swapaxes(0, 1)


def _half_widths(read: Warped) -> npt.NDArray[np.int64] | None:
    """Return the half width of the band for each length of the longer series, or None if there is no band."""
    window = read.distance.window
    if window is None:
        return None
    most = max(read.longest, int(np.diff(read.landmarks.offsets).max()))
    if isinstance(window, int | np.integer):
        return np.full(most + 1, min(int(window), most))
    return np.array([int(float(window) * length + 1e-9) for length in range(most + 1)])


def _smallest(name: str, meaning: str, values: npt.NDArray) -> Table:
    """Return a table of whole numbers >= 0, of the smallest sufficient type."""
    kind = next(bits for bits in (8, 16, 32) if int(values.max(initial=0)) < 2**bits)
    return Table(name, meaning, f"uint{kind}_t", values)


def operations_of(small: Quantised) -> dict[str, int]:
    """Return the number of operations, by kind, that the label of the longest object takes."""
    found, floats = _operations_of_input(small.input), small.in_floats
    if small.linear is not None:
        found[f"multiplications of coordinates ({'float32' if floats else '16 x 32 bits'})"] = int(small.linear.A.size)
    if isinstance(small.signs, DenseSigns | FloatSigns):
        found[f"multiplications of signs ({'float32' if floats else '8 x 16 bits'})"] = int(small.signs.P.size)
    elif small.signs is not None:
        assert small.linear is not None
        blocks, _, p = small.signs.flips.shape
        short = p if isinstance(small.linear, FloatLinear) else short_length(small.linear)
        additions = 2 * p * (p.bit_length() - 1) + short * (short.bit_length() - 1)
        found[f"additions of signs ({'float32' if floats else '32 bits'})"] = blocks * additions
    if small.prototypes is not None:
        signs = small.prototypes.bits == 1
        kind = "float32" if isinstance(small.prototypes, FloatPrototypes) else "8 bits to 32"
        what = "bytes compared" if signs else f"additions of scores ({kind})"
        found[what] = int(small.prototypes.R.size) // (8 if signs else 1)
    return found


def _operations_of_input(read: Any) -> dict[str, int]:
    if isinstance(read, Substrings):
        return {"look-ups of features": read.n_occurrences}
    if isinstance(read, Subtrees):
        visited = int(read.features.kernel.n_iter) * read.most_arcs
        return {"look-ups of features": read.n_occurrences, "arcs visited": visited}
    if isinstance(read, Edits):
        return {"cells of edit distances": read.letters.longest * len(read.landmarks.values)}
    if isinstance(read, Warped):
        return {"cells of DTW, at most": read.longest * len(read.landmarks.values)}
    if isinstance(read, FloatGaussian):
        return {"multiplications of distances (float32)": int(read.landmarks.size)}
    if isinstance(read, Gaussian):
        return {"multiplications of distances (32 bits)": int(read.landmarks.size)}
    if isinstance(read, NGrams):
        return {"additions of bits": read.letters.longest * read.n_bits}
    if isinstance(read, Levels):
        return {"additions of bits": max(1, read.longest) * read.n_channels * read.n_bits}
    return {}
