"""A fitted method over the parts of a collection, as a Dask array that is computed when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask.array.core import Array

from similia.core.config import part_of_more
from similia.objects import n_objects
from similia.sources.partitions import Partitions, as_partitions


def apply(method: Callable[..., Any], X: Any, *args: Any, **kwargs: Any) -> Array:
    """Return what a fitted model's method gives for each object of a Dask collection, lazily.

    Any estimator will do, of similia or of scikit-learn, and whole pipelines of them: each part of the collection goes
    through all their steps in one task. Methods of similia's own estimators do this by themselves when they are
    given a Dask collection.

    Parameters
    ----------
    method : bound method of a fitted estimator
        Such as ``pipeline.predict``; must treat each object by itself.
    X : dask.bag.Bag, dask.array.Array, column of a dask.dataframe
        Objects; vectors as a 2-D array.
    *args, **kwargs
        Handed on to the method.

    Returns
    -------
    dask.array.Array
        One row (or number, or label) an object. The first axis is known where that of `X` is; of others,
        ``result.compute_chunk_sizes()`` counts.

    Raises
    ------
    TypeError
        If `X` is no Dask collection that can be cut into parts, or `method` is no bound method.

    Examples
    --------
    >>> import dask.bag
    >>> import numpy as np
    >>> import similia as sm
    >>> words = ["ACGT", "AACC", "GGTT", "GATT", "TACA", "CCGT"]
    >>> model = sm.recipes.nyshd(sm.kernels.Spectrum(k=2), n_landmarks=4, n_bits=64, random_state=0)
    >>> model = model.fit(words, [0, 0, 1, 1, 0, 1])
    >>> later = sm.scale.apply(model.predict, dask.bag.from_sequence(words, npartitions=2))
    >>> np.array_equal(later.compute(), model.predict(words))
    True
    """
    model = getattr(method, "__self__", None)
    if model is None:
        raise TypeError(f"expected a method of a fitted model, such as model.transform, got {method!r}")
    parts, name = as_partitions(X), method.__name__
    meta = _meta(model, name, parts, args, kwargs)
    lengths = np.full(len(parts.parts), np.nan) if parts.known_lengths is None else np.array(parts.known_lengths)
    values = parts.lazy(_call, model, name, meta, args, kwargs)
    columns = meta.shape[1:]
    arrays = [da.from_delayed(v, (n, *columns), meta=meta) for v, n in zip(values, lengths.tolist(), strict=True)]
    result = da.concatenate(arrays, allow_unknown_chunksizes=parts.known_lengths is None)
    return SparseRows(result.dask, result.name, result.chunks, meta=meta) if sp.issparse(meta) else result


class SparseRows(Array):
    """A Dask array of sparse rows, which numpy would turn into dense ones."""

    __slots__ = ()

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(
            f"these are sparse rows of a Dask collection, shape {self.shape}, expected an array that is here; "
            "similia.scale.apply(pipeline.predict, X) sends the objects through all steps, .compute() brings them here"
        )


def _call(part: Any, start: int, model: Any, name: str, meta: Any, args: Any, kwargs: Any) -> Any:
    if n_objects(part) == 0:
        return meta
    with part_of_more(lazy=True):
        return getattr(model, name)(part, *args, **kwargs)


def _meta(model: Any, name: str, parts: Partitions, args: Any, kwargs: Any) -> Any:
    """Return a result of no rows: what the method gives for one object that the model itself holds."""
    first = model[0] if hasattr(model, "steps") else model
    of_model = hasattr(first, "_example") and parts.meta is None
    example = first._example() if of_model else parts.example()
    result = getattr(model, name)(example, *args, **kwargs)
    return result[:0] if sp.issparse(result) else np.asarray(result)[:0]
