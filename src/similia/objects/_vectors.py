"""Series and point sets as values + offsets: the vectors of all objects one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from similia.objects.batches import Batch, check_array, check_offsets, joined, resolve_indices, segments


@dataclass(frozen=True, eq=False, repr=False)
class _VectorsBatch(Batch):
    """A collection of objects each of which is a run of vectors of one dimension.

    Attributes
    ----------
    values : ndarray of float32 or float64, shape (total_length, p)
        Vectors of all objects, one object after the other.
    offsets : ndarray of int64, shape (n + 1,)
        Object i is ``values[offsets[i]:offsets[i + 1]]``.
    """

    values: npt.NDArray[np.floating]
    offsets: npt.NDArray[np.int64]

    @classmethod
    def from_arrays(cls, arrays: Iterable[npt.NDArray]) -> Self:
        """Make a batch from (length, p) float arrays of one dtype (unchecked; `as_series` and `as_sets` check)."""
        arrays = list(arrays)
        offsets = np.zeros(len(arrays) + 1, dtype=np.int64)
        np.cumsum([len(array) for array in arrays], out=offsets[1:])
        return cls(np.ascontiguousarray(np.concatenate(arrays)), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Number of vectors of each object, shape (n,)."""
        return np.diff(self.offsets)

    @property
    def n_dims(self) -> int:
        """Dimension p of the vectors."""
        return int(self.values.shape[1])

    def take(self, indices: npt.ArrayLike) -> Self:
        """Return the batch of the objects at `indices` (in that order, repeats allowed)."""
        positions, offsets = segments(self.offsets, resolve_indices(indices, len(self)))
        return type(self)(self.values[positions], offsets)

    @classmethod
    def concatenate(cls, batches: Sequence[Self]) -> Self:
        """Return the objects of one or more batches, one batch after another; raises if their dimensions differ."""
        dimensions = sorted({batch.n_dims for batch in batches})
        if len(dimensions) > 1:
            raise ValueError(f"the batches have vectors of {dimensions} dimensions, expected one dimension")
        return cls(np.concatenate([batch.values for batch in batches]), joined([batch.offsets for batch in batches]))

    def astype(self, dtype: npt.DTypeLike) -> Self:
        """Return the batch with its values in float32 or float64."""
        return self if self.values.dtype == dtype else type(self)(self.values.astype(dtype), self.offsets)

    def _check(self) -> None:
        single = getattr(self.values, "dtype", None) == np.float32
        check_array(self.values, "values", np.float32 if single else np.float64, ndim=2)
        check_array(self.offsets, "offsets", np.int64)
        if check_offsets(self.offsets, "offsets")[-1] != len(self.values):
            raise ValueError(f"offsets end at {self.offsets[-1]}, but there are {len(self.values)} vectors")

    def _one(self, index: int) -> Any:
        return self.values[self.offsets[index] : self.offsets[index + 1]]


class SeriesBatch(_VectorsBatch):
    """A collection of time series: object i is a (length, n_channels) array, in order of time.

    Attributes
    ----------
    values : ndarray of float32 or float64, shape (total_length, n_channels)
        All time points, one series after the other.
    offsets : ndarray of int64, shape (n + 1,)
        Series i is ``values[offsets[i]:offsets[i + 1]]``; none is empty.
    """

    def _check(self) -> None:
        super()._check()
        if len(self) and self.lengths.min() == 0:
            raise ValueError(f"series {int(self.lengths.argmin())} has length 0, expected at least one time point")


class SetBatch(_VectorsBatch):
    """A collection of point sets: object i is a (size, n_dims) array whose order means nothing.

    Attributes
    ----------
    values : ndarray of float32 or float64, shape (total_size, n_dims)
        All points, one set after the other.
    offsets : ndarray of int64, shape (n + 1,)
        Set i is ``values[offsets[i]:offsets[i + 1]]``; it may be empty.
    """
