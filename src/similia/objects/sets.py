"""Convert collections of point sets in many forms to a `SetBatch`."""

from __future__ import annotations

from typing import Any

import numpy as np

from similia.core.errors import BadType, BadValue
from similia.objects.sequences import at_least_one
from similia.objects.tables import objects_in
from similia.objects.vectors import VectorsBatch, check_finite, collection, read_each


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
        - a 3-D array ``(n, size, p)``: n sets of one size;
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
        lists, or if a set holds NaN, infinity, or points whose dimension differs from that of the other sets.

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
