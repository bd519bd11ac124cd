"""How a quantised model reads vectors, strings and series: as whole numbers and letters, within fixed bounds.

A device has no floating point and keeps its memory from the start, so numbers become int16 multiples of steps that are
chosen once (`Units`), strings hold known letters of one byte (`Letters`), and no object is longer than the longest
allowed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.errors import BadValue
from similia.core.text import counted, short
from similia.objects import StringBatch, as_series, as_strings
from similia.objects.series import SeriesBatch

Ints = npt.NDArray[np.int64]

REACH = 2**15 - 1  # largest number of an int16
LARGER = "quantise with a larger {parameter}"


@dataclass(frozen=True)
class Units:
    """Steps of columns of numbers: a number is divided by its step and rounded to the nearest int16 (ties to even)."""

    steps: npt.NDArray[np.float64]

    @classmethod
    def of(cls, X: npt.NDArray, *, common: bool = False) -> Units:
        """Choose a step per column: 1 for whole numbers of int16, else a power of two with room for twice as much.

        If `common`, all columns have the same step.
        """
        largest = np.abs(X).max(axis=0)
        whole = (np.rint(X) == X).all(axis=0) & (largest <= REACH)
        if common:
            largest, whole = np.full_like(largest, largest.max()), np.full_like(whole, whole.all())
        steps = np.exp2(np.ceil(np.log2(np.where(largest > 0, 2 * largest, 1.0) / REACH)))
        return cls(np.where(whole, 1.0, steps).astype(np.float64))

    def read(self, X: npt.NDArray) -> Ints:
        """Return the vectors `X` in steps; raise if one does not fit into int16."""
        whole = np.rint(X / self.steps)
        wrong = np.abs(whole) > REACH
        if wrong.any():
            i, j = np.argwhere(wrong)[0]
            reach = REACH * self.steps[j]
            remedy = "quantise with X that holds such numbers"
            raise BadValue(i, f"holds {X[i, j]:g} in column {j}", f"at most {reach:g}", remedy)
        return whole.astype(np.int64)


@dataclass(frozen=True)
class Letters:
    """Strings of at most `longest` letters, each of one byte and among `known`."""

    known: npt.NDArray[np.uint8]
    longest: int

    @classmethod
    def of(cls, batches: list[StringBatch], letters: str, longest: int | None) -> Letters:
        """Allow the letters of the strings and of `letters`, and lengths up to `longest` (None: the largest)."""
        parts = [batch.values.astype(np.int64) for batch in batches]
        values = np.unique(np.concatenate([*parts, [*map(ord, letters)]]))
        if len(values) and values[-1] > 255:
            raise ValueError(
                f"the letter {short(chr(int(values[-1])))} takes more than a byte; fit the model to bytes: x.encode()"
            )
        found = max(int(np.diff(batch.offsets).max()) for batch in batches)
        return cls(values.astype(np.uint8), found if longest is None else longest)

    def read(self, X: Any) -> StringBatch:
        batch = as_strings(X)
        lengths = np.diff(batch.offsets)
        if lengths.max() > self.longest:
            i = int(np.argmax(lengths > self.longest))
            raise BadValue(i, f"has {lengths[i]} letters", f"at most {self.longest}", LARGER, parameter="max_length")
        strange = ~np.isin(batch.values, self.known)
        if strange.any():
            place = int(np.argmax(strange))
            i = int(np.searchsorted(batch.offsets, place, side="right")) - 1
            found = f"holds {short(chr(batch.values[place]))} at position {place - batch.offsets[i]}"
            known = f"letters among {short(''.join(map(chr, self.known)))}"
            raise BadValue(i, found, known, "quantise with the letter in {parameter}", parameter="letters")
        return batch

    @property
    def bitmap(self) -> npt.NDArray[np.uint8]:
        """Bit c % 8 of byte c // 8 says whether letter c is known."""
        return np.packbits(np.isin(np.arange(256), self.known), bitorder="little")


def as_whole_series(X: Any, n_channels: int, longest: int, units: Units) -> SeriesBatch:
    """Return series in steps; raise if one is too long or has another number of channels."""
    batch = as_series(X)
    lengths = np.diff(batch.offsets)
    if batch.n_dims != n_channels:
        raise BadValue(None, f"has series of {counted(batch.n_dims, 'channel')}", f"{n_channels} as in training")
    if lengths.max() > longest:
        i = int(np.argmax(lengths > longest))
        raise BadValue(i, f"has {lengths[i]} points", f"at most {longest}", LARGER, parameter="max_length")
    return in_steps(batch, units)


def in_steps(batch: SeriesBatch, units: Units) -> SeriesBatch:
    """Return series whose values are whole numbers of steps, as float64; an error names the series."""
    try:
        return SeriesBatch(units.read(batch.values.astype(np.float64)).astype(np.float64), batch.offsets)
    except BadValue as error:
        if error.index is None:
            raise
        row = int(np.searchsorted(batch.offsets, error.index, side="right")) - 1
        raise error.changed(index=row) from None
