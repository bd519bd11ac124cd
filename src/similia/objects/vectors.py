"""The memory layout of series and point sets: one array of the vectors of all objects, and offsets into it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from numbers import Number
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from similia.core.text import short
from similia.core.validation import BadType, BadValue
from similia.objects.sequences import Batch, Ragged, at_least_one, check_array, offsets_of
from similia.objects.tables import objects_in


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
            found = " and ".join(map(str, dimensions))
            raise ValueError(f"found objects of {found} dimensions (channels of series), expected as many in all")
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
        remedy = "similia.sources.read_objects reads a file" if isinstance(X, str) else "use a list"
        raise BadType(None, f"is {type(X).__name__} ({short(X)})", f"an ordered collection of {many}", remedy)
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


class SetBatch(VectorsBatch):
    """A collection of point sets: object i is an array of shape (size, n_dims); the order of its rows has no meaning.

    Attributes
    ----------
    values : ndarray of float32 or float64, shape (total_size, n_dims)
        All points, one set after the other.
    offsets : ndarray of int64, shape (n + 1,)
        Set i is ``values[offsets[i]:offsets[i + 1]]``; a set may be empty.
    """

    kind = "sets"


def as_sets(X: Any) -> SetBatch:
    """Return a collection of point sets as a `SetBatch`.

    Parameters
    ----------
    X : sequence of n sets
        One of

        - a list, tuple or object array of arrays (or lists of points) of shape ``(size, p)``, that is, ``size`` points
          of dimension p; sizes may differ, p may not;
        - a pandas or polars Series, Arrow array or one-column data frame, in which each cell is a list of points;
        - a 3-D array ``(n, size, p)``: n sets of equal size;
        - a `SetBatch`, which is returned unchanged.

        An empty set is an array of shape ``(0, p)``; it may be an empty list if another set has a known dimension p.
        The order of points does not matter; a point may occur more than once.

    Returns
    -------
    SetBatch
        A batch of n sets. Values are float32 if all non-empty sets are float32, float16, Booleans or integers of 8 or
        16 bits, otherwise float64. Exception: values are float64 if some sets are uint16, some are signed integers, and
        none are floats. `X` is not changed.

    Raises
    ------
    TypeError
        If `X` is not a sequence, if it is a single set given as an array, if it is a table of several columns, or if a
        set does not hold real numbers.
    ValueError
        If `X` is empty, if an item is not 2-D (as in a single set given as a list of points), if all sets are empty
        lists, or if a set holds NaN, infinity, or points whose dimension differs from the dimension of the other sets.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.objects import as_sets
    >>> batch = as_sets([[[0.0, 1.0], [2.0, 3.0]], [], [[4.0, 5.0]]])
    >>> batch, batch.lengths, batch[1].shape
    (<SetBatch of 3 objects>, array([2, 0, 1]), (0, 2))
    >>> as_sets([np.zeros((3, 128), np.uint8)]).values.dtype
    dtype('float32')
    """
    if not isinstance(X, SetBatch):
        X = collection(objects_in(X, numbers=True), "set")
        if isinstance(X, np.ndarray) and X.ndim == 2:
            raise BadType(None, f"is one array of shape {X.shape}", "a collection of sets", "write one set as [X]")
        at_least_one(X)
        X = _from_each(X)
        check_finite(X, "set")
    at_least_one(X)
    return X


def _from_each(X: Any) -> SetBatch:
    arrays = read_each(X, "set")
    for i, array in enumerate(arrays):
        if array.ndim != 2 and array.shape != (0,):
            remedy = "write points on a line as x[:, None] and one point as [x]; as_series reads time series"
            raise BadValue(i, f"has shape {array.shape}", "(size, p)", remedy, kind="set")
    known = [(i, array.shape[1]) for i, array in enumerate(arrays) if array.ndim == 2]
    if not known:
        raise BadValue(
            None,
            "holds empty lists only: the dimension of the points is unknown",
            remedy="for points of the plane, write np.zeros((0, 2)) instead of []",
        )
    first, p = known[0]
    for i, dimension in known:
        if dimension != p or p == 0:
            found = f"holds points of dimension {dimension}" + (f", but {{other}} of dimension {p}" if p else "")
            raise BadValue(i, found, "the same dimension in all sets" if p else "at least 1", kind="set", other=first)
    # Ignore the dtype of empty sets: numpy makes float64 of [].
    dtypes = {array.dtype for array in arrays if array.size} or {array.dtype for array in arrays}
    dtype = np.float32 if np.can_cast(np.result_type(*dtypes), np.float32) else np.float64
    return SetBatch.from_arrays([array.reshape(-1, p) for array in arrays], dtype)
