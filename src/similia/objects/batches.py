"""What every batch of objects shares: it is a sequence that scikit-learn can slice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt


class Batch:
    """A sequence of objects in one memory layout.

    Indexing by an integer gives one object; by a slice, an index array or a boolean mask, a batch.
    """

    def __len__(self) -> int:
        raise NotImplementedError

    def take(self, indices: npt.ArrayLike) -> Self:
        """Return the batch of the objects at `indices` (in that order, repeats allowed)."""
        raise NotImplementedError

    @classmethod
    def concatenate(cls, batches: Sequence[Self]) -> Self:
        """Return the objects of one or more batches of this kind, one batch after another."""
        raise NotImplementedError

    def _one(self, index: int) -> Any:
        raise NotImplementedError

    def _check(self) -> None:
        """Raise if the arrays do not fit together: compiled loops read them without looking at bounds."""
        raise NotImplementedError

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a batch from a file or another process, neither of which is trusted."""
        names = {field.name for field in fields(self)}  # type: ignore[arg-type]
        if set(state) != names:
            raise ValueError(f"a stored {type(self).__name__} holds {sorted(state)}, expected {sorted(names)}")
        self.__dict__.update(state)
        self._check()

    @property
    def shape(self) -> tuple[int]:
        """``(n,)``: a batch has one axis, its objects."""
        return (len(self),)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple):  # scikit-learn asks for batch[indices, ...]
            key = key[0]
        if isinstance(key, int | np.integer):
            index = int(key) + (len(self) if key < 0 else 0)
            if not 0 <= index < len(self):
                raise IndexError(f"index {int(key)} is out of range for a batch of {len(self)} objects")
            return self._one(index)
        return self.take(resolve_indices(key, len(self)))

    def __iter__(self) -> Iterator[Any]:
        return (self._one(i) for i in range(len(self)))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)} objects>"


def resolve_indices(key: Any, n: int) -> npt.NDArray[np.int64]:
    """Return non-negative int64 positions for a slice, an index array or a boolean mask."""
    if isinstance(key, slice):
        return np.arange(n, dtype=np.int64)[key]
    key = np.asarray(key)
    if key.dtype == bool:
        if key.shape != (n,):
            raise IndexError(f"a mask for a batch of {n} objects must have shape ({n},), got {key.shape}")
        return np.flatnonzero(key)
    if key.size == 0:
        return np.zeros(0, dtype=np.int64)
    if key.ndim != 1 or not np.issubdtype(key.dtype, np.integer):
        raise IndexError(f"a batch takes a 1-D array of integers or a mask, got shape {key.shape} of {key.dtype}")
    bad = (key < -n) | (key >= n)
    if bad.any():
        raise IndexError(f"index {int(key[bad][0])} is out of range for a batch of {n} objects")
    return np.where(key < 0, key + n, key).astype(np.int64)


def check_array(array: Any, name: str, dtype: npt.DTypeLike, ndim: int = 1) -> None:
    """Raise unless `array` is a numpy array of that dtype and number of axes."""
    if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != ndim:
        found = f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
        raise ValueError(f"{name} must be a {ndim}-D array of {np.dtype(dtype)}, got {found}")


def check_offsets(offsets: npt.ArrayLike, name: str) -> npt.NDArray[np.int64]:
    """Return offsets as a new int64 array, or raise if they do not start at 0 or decrease somewhere."""
    array = np.array(offsets)
    if array.ndim == 1 and len(array) and np.issubdtype(array.dtype, np.integer):
        array = array.astype(np.int64)
        if array[0] == 0 and (array[1:] >= array[:-1]).all():
            return array
    raise ValueError(f"{name} must be a 1-D array of integers that starts at 0 and never decreases")


def segments(offsets: npt.NDArray[np.int64], indices: npt.NDArray[np.int64]) -> tuple[npt.NDArray, npt.NDArray]:
    """Return (positions, new offsets) that gather the ragged rows `indices` of a values + offsets layout."""
    lengths = (offsets[1:] - offsets[:-1])[indices]
    new_offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    shift = np.repeat(offsets[indices] - new_offsets[:-1], lengths)
    return np.arange(new_offsets[-1], dtype=np.int64) + shift, new_offsets


def joined(offsets: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """Return the offsets of ragged rows laid one collection after another."""
    lengths = np.concatenate([np.diff(part) for part in offsets])
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)


def runs(offsets: npt.NDArray[np.int64], most: int) -> Iterator[slice]:
    """Yield runs of ragged rows that hold at most `most` values together (one row at least), in order."""
    start, n = 0, len(offsets) - 1
    while start < n:
        stop = max(start + 1, int(np.searchsorted(offsets, offsets[start] + most, side="right")) - 1)
        yield slice(start, stop)
        start = stop
