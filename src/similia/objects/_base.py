"""What every batch of objects shares: it is a sequence that scikit-learn can slice."""

from __future__ import annotations

from collections.abc import Iterator
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

    def _one(self, index: int) -> Any:
        raise NotImplementedError

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


def segments(offsets: npt.NDArray[np.int64], indices: npt.NDArray[np.int64]) -> tuple[npt.NDArray, npt.NDArray]:
    """Return (positions, new offsets) that gather the ragged rows `indices` of a values + offsets layout."""
    lengths = (offsets[1:] - offsets[:-1])[indices]
    new_offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    shift = np.repeat(offsets[indices] - new_offsets[:-1], lengths)
    return np.arange(new_offsets[-1], dtype=np.int64) + shift, new_offsets
