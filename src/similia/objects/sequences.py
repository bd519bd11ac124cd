"""Counting and picking objects, whatever kind of collection the user keeps them in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from similia.core.text import _short
from similia.objects.batches import Batch, resolve_indices
from similia.objects.distributed import Distributed

T = TypeVar("T")


def n_objects(X: Any) -> int:
    """Return the number of objects in a collection.

    Parameters
    ----------
    X : sequence of objects
        List, tuple, array (its rows), sparse matrix (its rows), pandas or polars Series or
        frame (its rows), Arrow array, `StringBatch` or `GraphBatch`.

    Raises
    ------
    TypeError
        If `X` is a single object (a string, a number, None) or has no length.

    Examples
    --------
    >>> from similia.objects import n_objects
    >>> n_objects(["ACGT", "AC"])
    2
    """
    if isinstance(X, str | bytes):
        raise TypeError(f"expected a collection of objects, got one {type(X).__name__}: {_short(X)}; write [x]")
    shape = getattr(X, "shape", None)
    if isinstance(shape, tuple) and len(shape) > 0:
        return int(shape[0])
    if not hasattr(X, "__len__") and hasattr(X, "__array__"):
        return n_objects(np.asarray(X))
    if shape is not None or not hasattr(X, "__len__"):
        raise TypeError(f"expected a collection of objects, got {type(X).__name__}: {_short(X)}; use a list")
    return len(X)


def at_least_one(X: Any, name: str = "X") -> int:
    """Return the number of objects, or raise if there are none."""
    n = n_objects(X)
    if n == 0:
        raise ValueError(f"{name} is empty: found 0 objects, expected at least one")
    return n


def take(X: Any, indices: npt.ArrayLike) -> Any:
    """Return the objects at `indices`, in that order, in the kind of collection they came in.

    Parameters
    ----------
    X : sequence of objects
        As for `n_objects`. Arrays, sparse matrices, frames and batches give their own kind
        back; any other sequence gives a list.
    indices : array-like of int, or mask of bool, shape (n_taken,) or (n,)
        Positions; negative ones count from the end, repeats are allowed.

    Raises
    ------
    TypeError
        If `X` is not a collection.
    IndexError
        If an index is out of range or a mask has another length.

    Examples
    --------
    >>> from similia.objects import take
    >>> take(["a", "b", "c"], [2, 0])
    ['c', 'a']
    """
    positions = resolve_indices(indices, n_objects(X))
    if isinstance(X, Batch | Distributed):
        return X.take(positions)
    if hasattr(X, "iloc"):  # pandas
        return X.iloc[positions]
    if hasattr(X, "tocsr"):  # scipy sparse; not all formats take indices
        return as_csr(X)[positions]
    if isinstance(X, np.ndarray):
        return X[positions]
    if not isinstance(X, list | tuple) and hasattr(X, "to_pylist"):  # Arrow
        return X.take(positions)
    if not isinstance(X, list | tuple) and hasattr(X, "gather"):  # polars Series
        return X.gather(positions)
    if hasattr(X, "get_columns"):  # polars frame
        return X[positions]
    return [X[i] for i in positions.tolist()]


def named(X: Any, numbers: npt.ArrayLike) -> tuple[Any, npt.NDArray[np.int64]]:
    """Return the objects that are named by their positions, each once, and the place of each number among them."""
    met, places = np.unique(np.asarray(numbers), return_inverse=True)
    return take(X, met), places.astype(np.int64, copy=False)


def concatenate(collections: Sequence[Any]) -> Any:
    """Return the objects of one or more collections, one collection after another.

    Parameters
    ----------
    collections : sequence of collections
        As for `n_objects`. Batches, arrays, sparse matrices (as CSR) and pandas objects of one kind give that
        kind back; anything else gives a list.

    Raises
    ------
    ValueError, TypeError
        If there is no collection, or batches do not fit together (vectors of another dimension, str and bytes).

    Examples
    --------
    >>> from similia.objects import concatenate
    >>> concatenate([["a", "b"], ["c"]])
    ['a', 'b', 'c']
    """
    if len(collections) == 0:
        raise ValueError("there are no collections to concatenate, expected at least one")
    kinds = {type(part) for part in collections}
    if len(kinds) == 1 and isinstance(collections[0], Batch):
        return type(collections[0]).concatenate(collections)
    if kinds == {np.ndarray}:
        return np.concatenate(collections)
    if all(map(sp.issparse, collections)):
        return as_csr(sp.vstack(collections))
    if len(kinds) == 1 and hasattr(collections[0], "iloc"):
        import pandas as pd

        return pd.concat(collections)
    collections = [part.rows() if hasattr(part, "get_columns") else part for part in collections]
    return [x for part in collections for x in part]


def as_csr(X: Any) -> sp.csr_array:
    """Return a matrix as csr_array with sorted indices, entries at one place summed; `X` is not changed."""
    X = sp.csr_array(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def as_second(read: Callable[[Any], T], Y: Any) -> T:
    """Return ``read(Y)`` for the second of two collections; what it raises names Y, not X."""
    try:
        return read(Y)
    except (TypeError, ValueError) as error:
        if type(error) not in (TypeError, ValueError):
            raise
        text = str(error)
        raise type(error)(f"Y{text[1:]}" if text.startswith(("X ", "X[")) else f"Y, {text}") from None
