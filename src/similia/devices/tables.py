"""Tables of a model on a device, each of the smallest type for its numbers, and operations that a label takes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

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
from similia.devices.stages import (
    DenseSigns,
    FloatHadamard,
    FloatLinear,
    FloatPrototypes,
    FloatSigns,
    HadamardSigns,
    Linear,
    Prototypes,
)

if TYPE_CHECKING:
    from similia.devices.quantised import Quantised

_PER_LINE = 100  # maximum number of characters in a line of numbers


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
        yield Table("per_step", "levels in a step, times 2^16", "int32_t", read.m)
        yield Table("at_zero", "level of 0, times 2^16", "int64_t", read.c)
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
