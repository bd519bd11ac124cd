"""Strings as values + offsets: one array of code points for a whole collection."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
import numpy.typing as npt

from similia.objects.batches import Batch, check_array, check_offsets, joined, resolve_indices, segments


@dataclass(frozen=True, eq=False, repr=False)
class StringBatch(Batch):
    """A collection of strings.

    Attributes
    ----------
    values : ndarray of uint8 or uint32, shape (total_length,)
        Code points of all strings, one after the other; uint8 where all are below 128 or the
        strings were bytes.
    offsets : ndarray of int64, shape (n + 1,)
        String i is ``values[offsets[i]:offsets[i + 1]]``.
    is_bytes : bool
        Whether the strings were bytes: items are given back as bytes.

    Examples
    --------
    >>> from similia.objects import StringBatch
    >>> batch = StringBatch.from_list(["ACGT", "", "AC"])
    >>> batch[-1], batch[[0, 1]].tolist()
    ('AC', ['ACGT', ''])
    """

    values: npt.NDArray[np.uint8] | npt.NDArray[np.uint32]
    offsets: npt.NDArray[np.int64]
    is_bytes: bool = False

    @classmethod
    def from_list(cls, strings: list[str] | list[bytes]) -> Self:
        """Make a batch from a list that holds only str or only bytes (unchecked; `as_strings` checks)."""
        offsets = np.zeros(len(strings) + 1, dtype=np.int64)
        np.cumsum(np.fromiter(map(len, strings), np.int64, len(strings)), out=offsets[1:])
        if strings and isinstance(strings[0], bytes):
            return cls(_array(b"".join(strings), np.uint8), offsets, True)
        joined = "".join(strings)  # type: ignore[arg-type]
        if joined.isascii():
            return cls(_array(joined.encode("ascii"), np.uint8), offsets)
        return cls(_array(joined.encode("utf-32-le", "surrogatepass"), np.uint32), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def take(self, indices: npt.ArrayLike) -> Self:
        """Return the batch of the strings at `indices` (in that order, repeats allowed)."""
        positions, offsets = segments(self.offsets, resolve_indices(indices, len(self)))
        return type(self)(self.values[positions], offsets, self.is_bytes)

    @classmethod
    def concatenate(cls, batches: Sequence[Self]) -> Self:
        """Return the strings of one or more batches, one batch after another; raises if str meet bytes."""
        if len({batch.is_bytes for batch in batches}) > 1:
            raise TypeError("some batches hold str and others bytes, expected one kind; use bytes.decode or str.encode")
        values = np.concatenate([batch.values for batch in batches])
        return cls(values, joined([batch.offsets for batch in batches]), batches[0].is_bytes)

    def tolist(self) -> list[str] | list[bytes]:
        """Return the strings as a list."""
        data, segments = self.values.tobytes(), pairwise(self.offsets.tolist())
        if self.is_bytes:
            return [data[start:end] for start, end in segments]
        text = data.decode(self._encoding, "surrogatepass")
        return [text[start:end] for start, end in segments]

    def _check(self) -> None:
        wide = getattr(self.values, "dtype", None) == np.uint32 and not self.is_bytes
        check_array(self.values, "values", np.uint32 if wide else np.uint8)
        check_array(self.offsets, "offsets", np.int64)
        limit = sys.maxunicode if wide else 255 if self.is_bytes else 127
        if self.values.max(initial=0) > limit:
            raise ValueError(f"values reach {self.values.max()}, expected code points of at most {limit}")
        if check_offsets(self.offsets, "offsets")[-1] != len(self.values):
            raise ValueError(f"offsets end at {self.offsets[-1]}, but there are {len(self.values)} values")

    def _one(self, index: int) -> str | bytes:
        data = self.values[self.offsets[index] : self.offsets[index + 1]].tobytes()
        if self.is_bytes:
            return data
        return data.decode(self._encoding, "surrogatepass")

    @property
    def _encoding(self) -> str:
        return "ascii" if self.values.dtype == np.uint8 else "utf-32-le"


def _array(data: bytes, dtype: type[np.uint8] | type[np.uint32]) -> npt.NDArray:
    """Return a writable copy: numba compiles once more for read-only arrays."""
    return np.frombuffer(data, dtype).copy()
