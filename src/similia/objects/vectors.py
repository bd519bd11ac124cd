"""The memory layout of series and point sets: one array of the vectors of all objects, and offsets into it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from numbers import Number
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from similia.core.errors import BadType, BadValue
from similia.core.text import short
from similia.objects.sequences import Batch, Ragged, check_array, offsets_of


@dataclass(frozen=True, eq=False, repr=False)
class VectorsBatch(Ragged):
    """A collection of objects, each a sequence of vectors; all vectors have the same dimension p.

    Attributes
    ----------
    values : ndarray of float32 or float64, shape (total_length, p)
        Vectors of all objects, one object after the other.
    offsets : ndarray of int64, shape (n + 1,)
        Object i is ``values[offsets[i]:offsets[i + 1]]``.
    """

    @classmethod
    def from_arrays(cls, arrays: Iterable[npt.NDArray], dtype: npt.DTypeLike | None = None) -> Self:
        """Make a batch from (length, p) arrays without checks, converted to `dtype` if given."""
        arrays = list(arrays)
        values = np.concatenate(arrays, dtype=dtype, casting="unsafe")
        return cls(np.ascontiguousarray(values), offsets_of([len(array) for array in arrays]))

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Number of vectors of each object, shape (n,)."""
        return np.diff(self.offsets)

    @property
    def n_dims(self) -> int:
        """Dimension p of the vectors."""
        return int(self.values.shape[1])

    @classmethod
    def concatenate(cls, batches: Sequence[Self]) -> Self:
        """Return the objects of one or more batches, one batch after another; raise if batches differ in dimension."""
        dimensions = sorted({batch.n_dims for batch in batches})
        if len(dimensions) > 1:
            raise ValueError(f"the batches have vectors of {dimensions} dimensions, expected the same dimension in all")
        return super().concatenate(batches)

    def astype(self, dtype: npt.DTypeLike) -> Self:
        """Return the batch with values converted to float32 or float64."""
        return self if self.values.dtype == dtype else type(self)(self.values.astype(dtype), self.offsets)

    def _check(self) -> None:
        single = getattr(self.values, "dtype", None) == np.float32
        check_array(self.values, "values", np.float32 if single else np.float64, ndim=2)
        super()._check()


def collection(X: Any, noun: str) -> Any:
    """Return `X`, as an array of numbers if it has several axes; raise if it is a table or has no order."""
    many = {"series": "series", "set": "sets"}[noun]
    if isinstance(X, Batch):
        raise BadType(None, f"is a {type(X).__name__}", many, "list(X) is a list of its objects")
    if hasattr(X, "columns"):
        hint = " (similia.objects.series_from_long reads a long table, from_sktime a nested or multi-indexed one)"
        raise BadType(
            None,
            f"is a table ({type(X).__name__}) of {X.shape[1]} columns",
            f"a collection of {many}",
            f"select one column of {many}, as in X[[name]]{hint if noun == 'series' else ''}",
        )
    ordered = hasattr(X, "__len__") and hasattr(X, "__getitem__") and not isinstance(X, Mapping | Set | range)
    if not ordered or isinstance(X, str | bytes | bytearray) or hasattr(X, "toarray") or getattr(X, "ndim", 1) == 0:
        raise BadType(None, f"is {type(X).__name__} ({short(X)})", f"an ordered collection of {many}", "use a list")
    if hasattr(getattr(X, "dtype", None), "pyarrow_dtype"):  # pandas gives Python floats, Arrow keeps float32
        return X.array.__arrow_array__()
    if getattr(X, "ndim", 1) > 1:
        return numbers(X, None, "")
    return X


def endless(item: Any) -> bool:
    """Return whether `item` is a range of more than 2**28 numbers, too long to convert to an array."""
    return isinstance(item, range) and bool(item[2**28 :])


def numbers(item: Any, i: int | None, noun: str) -> npt.NDArray:
    """Return `item` as an array of numbers of its own dtype; errors name it by `noun` and its position `i`."""
    if hasattr(item, "as_py"):  # an Arrow list: keep its values, which as_py would turn into Python floats
        item = item.values if hasattr(item, "values") else item.as_py()
    readable = hasattr(item, "__array__") or hasattr(item, "__array_interface__") or isinstance(item, Sequence | Number)
    if not readable or isinstance(item, str | bytes):  # numpy would take the keys of a dict, set or graph
        raise BadType(i, f"is {short(item)}", "an array of numbers", kind=noun)
    if endless(item):
        raise BadValue(i, f"is {short(item)}, more numbers than fit into memory", kind=noun)
    try:
        array = np.asarray(_unmasked(item))
        if array.ndim > 1 and isinstance(item, Sequence) and any(map(np.ma.isMaskedArray, item)):
            array = np.asarray([_unmasked(row) for row in item])
        if array.dtype == object:  # rows that are arrays, as in nested Arrow and polars lists
            array = np.array(array.tolist())
    except ValueError:
        raise BadValue(i, "has rows of different lengths", "an array", kind=noun) from None
    except MemoryError:
        raise BadValue(i, f"is {short(item)}, more numbers than fit into memory", kind=noun) from None
    if array.dtype.kind not in "fiub":
        found = f"holds {short(array.ravel()[:1].tolist())} of dtype {array.dtype}"
        raise BadType(i, found, "real numbers", kind=noun)
    return array


def _unmasked(item: Any) -> Any:
    """Return a masked array with NaN in place of what is masked, and anything else unchanged."""
    if not np.ma.isMaskedArray(item):
        return item
    return np.ma.filled(item.astype(np.result_type(item, np.float32)), np.nan)


def read_each(items: Iterable[Any], noun: str) -> list[npt.NDArray]:
    """Return each object as an array of numbers, or raise an error that names the first invalid one."""
    arrays = []
    for i, item in enumerate(items):
        array = numbers(item, i, noun)
        if array.ndim == 0:
            raise BadType(i, f"is one number ({array})", "an array", f"write a single {noun} x as [x]", kind=noun)
        arrays.append(array)
    return arrays


def check_finite(batch: VectorsBatch, noun: str = "", collection: str = "X") -> None:
    """Raise if a value is NaN or infinite.

    The message calls object 3 "set 3" if `noun` is "set", and "X[3]" if `noun` is empty and `collection` is "X".
    """
    finite = np.isfinite(batch.values)
    if not finite.all():
        row, column = divmod(int(finite.argmin()), batch.values.shape[1])
        i = int(np.searchsorted(batch.offsets, row, side="right")) - 1
        at = {"series": "time point {}, channel {}", "sets": "point {}, coordinate {}"}[batch.kind]
        place = at.format(row - batch.offsets[i], column)
        raise BadValue(
            i, f"is {batch.values[row, column]}", "a finite number", "drop or impute it",
            kind=noun, collection=collection, place=place,
        )  # fmt: skip
