"""Dask collections as `Distributed` ones: parts are delayed values, global numbers follow from their lengths.

A model, or whatever else travels to the workers, is a node of the graph like any other: if the worker that holds it
dies, the scheduler sends it anew. Data scattered to workers would be lost with them.
"""

from __future__ import annotations

import multiprocessing
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import accumulate, chain, pairwise
from typing import Any, Self

import dask
import dask.array as da
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from dask.array.core import Array
from dask.delayed import Delayed, delayed
from dask.highlevelgraph import HighLevelGraph

from similia.core.config import config, part_of_more, settings
from similia.core.errors import BadPair, shifted
from similia.core.threads import limited_to, n_threads
from similia.objects import concatenate, n_objects, take
from similia.objects.sequences import Distributed, resolve_indices

Converter = Callable[[Any], Any]

_MOST_COUNTED = 1000
_counted: dict[str, list[int]] = {}  # lengths of the parts of collections, by their names in Dask's graphs


class Partitions(Distributed):
    """Objects in the partitions of a Dask collection.

    Parameters
    ----------
    parts : list of Delayed
        Each computes to a collection of objects; may be empty.
    lengths : list of int, optional
        Of the parts; counted when first needed if not given.
    converters : tuple of callables
        What each part goes through before it is used.
    meta : ndarray or sparse array, optional
        Type of the parts, where they are vectors.
    name : str, optional
        Of the collection, by which its lengths are remembered.
    """

    def __init__(
        self,
        parts: list[Delayed],
        lengths: list[int] | None = None,
        converters: tuple[Converter, ...] = (),
        meta: Any = None,
        name: str = "",
    ) -> None:
        self.parts, self.converters, self.meta, self.name = parts, converters, meta, name
        self.known_lengths = _counted.get(name) if lengths is None else lengths

    @property
    def lengths(self) -> list[int]:
        if self.known_lengths is None:
            self.known_lengths = list(dask.compute(*(delayed(_length)(part) for part in self.parts)))
            if self.name:
                _counted[self.name] = self.known_lengths
                for name in list(_counted)[:-_MOST_COUNTED]:
                    del _counted[name]
        return self.known_lengths

    def example(self) -> Any:
        if self.meta is not None and self.meta.ndim == 2:
            one = np.ones((1, self.meta.shape[1]), self.meta.dtype)
            return type(self.meta)(one) if sp.issparse(self.meta) else one
        for part in self.parts:
            here = part.compute()
            if n_objects(here):
                for convert in self.converters:
                    here = convert(here)
                return take(here, [0])
        raise ValueError("X is empty: found 0 objects, expected at least one")

    def take(self, indices: npt.ArrayLike) -> Any:
        numbers = resolve_indices(indices, len(self))
        order = np.argsort(numbers, kind="stable")
        limits = np.searchsorted(numbers[order], [0, *accumulate(self.lengths)])
        starts = self._starts()
        pieces = [
            self._task(_take, number, numbers[order[low:high]] - starts[number])
            for number, (low, high) in enumerate(pairwise(limits))
            if low < high
        ]
        if not pieces:
            raise ValueError("no objects are taken, expected at least one index")
        there = np.empty(len(order), np.int64)
        there[order] = np.arange(len(order))
        return take(concatenate(dask.compute(*pieces)), there)

    def map(
        self, function: Callable[..., Any], *args: Any, along: Sequence[npt.NDArray] = (), few: bool = False
    ) -> Iterator[Any]:
        tasks = [task for task, n in zip(self.lazy(function, *args, along=along), self.lengths, strict=True) if n]
        if not tasks:
            raise ValueError("X is empty: found 0 objects, expected at least one")
        step = 4 * _n_workers() if few else len(tasks)
        return chain.from_iterable(dask.compute(*tasks[i : i + step]) for i in range(0, len(tasks), step))

    def converted(self, convert: Converter) -> Self:
        return type(self)(self.parts, self.known_lengths, (*self.converters, convert), self.meta, self.name)

    def blocks(self, size: int) -> Self:
        n, starts = len(self), self._starts()
        expected = [min(size, n - first) for first in range(0, n, size)]
        if self.lengths == expected:
            return self
        parts = []
        for first in range(0, n, size):
            last = min(n, first + size)
            pieces = [
                _slice(part, max(first, start) - start, min(last, start + length) - start, length)
                for part, start, length in zip(self.parts, starts, self.lengths, strict=True)
                if start < last and first < start + length
            ]
            parts.append(pieces[0] if len(pieces) == 1 else delayed(_join)(pieces))
        return type(self)(parts, expected, self.converters, self.meta)

    def kept(self) -> Self:
        return type(self)(list(dask.persist(*self.parts)), self.known_lengths, self.converters, self.meta, self.name)

    def lazy(self, function: Callable[..., Any], *args: Any, along: Sequence[npt.NDArray] = ()) -> list[Delayed]:
        """Return what `map` computes, of all parts, empty ones too, as delayed values."""
        call, *shared = (delayed(value, pure=False, traverse=False) for value in (function, *args))
        if not along:
            return [self._task(call, number, *shared) for number in range(len(self.parts))]
        rows = [slice(start, start + n) for start, n in zip(self._starts(), self.lengths, strict=True)]
        slices = ([array[part] for array in along] for part in rows)
        return [self._task(call, number, *own, *shared) for number, own in enumerate(slices)]

    def _starts(self) -> list[int]:
        return [0, *accumulate(self.lengths)][:-1]

    def _task(self, function: Any, number: int, *args: Any) -> Delayed:
        start = None if self.known_lengths is None else self._starts()[number]
        here = number if start is None else start
        run = delayed(_work, pure=False, traverse=False)
        return run(function, self.parts[number], here, start is None, self.converters, settings().max_memory, *args)


def as_partitions(X: Any) -> Partitions:
    """Return a Dask bag, array, series or frame as `Partitions`, or raise."""
    if isinstance(X, Partitions):
        return X
    kind = type(X).__name__
    if kind == "Bag":
        return Partitions(X.map_partitions(list).to_delayed(), name=X.name)
    if kind == "Array":
        if X.ndim not in (1, 2):
            raise ValueError(f"X must be a Dask array of vectors (2-D) or objects (1-D), got shape {X.shape}")
        if X.ndim == 2:
            X = X.rechunk({1: -1})
        meta = X._meta
        if X.ndim == 2:  # Dask keeps a type without a width
            none = np.empty((0, X.shape[1]), X.dtype)
            meta = sp.csr_array(none) if sp.issparse(meta) else none
        lengths = None if np.isnan(X.shape[0]) else list(map(int, X.chunks[0]))
        return Partitions(list(X.to_delayed().ravel()), lengths, meta=meta, name=X.name)
    if kind in ("Series", "DataFrame"):
        return Partitions(_without_aliases(X.to_delayed()), name=getattr(X, "_name", ""))
    raise TypeError(
        f"X is a Dask {kind}, expected a bag of objects, an array of vectors or a column of a dataframe; "
        "dask.bag.from_delayed makes a bag of delayed lists"
    )


def _without_aliases(parts: Sequence[Delayed]) -> list[Delayed]:
    """Return the parts of a frame with names that stand for others as tasks.

    Frames made of delayed ones are names of names, of which an array cannot be computed (dask 2026.8, "Missing
    dependency": it fuses chains of tasks and loses one).
    """
    if not len(parts):
        return []
    found = dict(parts[0].__dask_graph__())
    tasks = {key: (_same, task.target) if type(task).__name__ == "Alias" else task for key, task in found.items()}
    name = f"parts-{parts[0].key[0] if isinstance(parts[0].key, tuple) else parts[0].key}"
    graph = HighLevelGraph.from_collections(name, tasks, dependencies=())
    return [Delayed(part.key, graph, layer=name) for part in parts]


def _same(part: Any) -> Any:
    return part


@contextmanager
def inside_task(max_memory: int | None = None) -> Iterator[None]:
    """Hold the settings of who sent the task, and one thread unless this is the only task of its process."""
    main = threading.current_thread() is threading.main_thread() and multiprocessing.parent_process() is None
    with limited_to(None if main else 1), config(max_memory=max_memory):
        yield


def _work(
    function: Callable[..., Any],
    part: Any,
    start: int,
    of_part: bool,
    converters: tuple[Converter, ...],
    max_memory: int,
    *args: Any,
) -> Any:
    """Run a task; `start` is the number of the part, not of its first object, if `of_part`."""
    try:
        with inside_task(max_memory):
            if n_objects(part) == 0 and converters:
                converters = ()
            for convert in converters:
                part = convert(part)
            return function(part, start, *args)
    except (TypeError, ValueError) as error:
        if of_part:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            if type(error) is kind or isinstance(error, BadPair):
                raise kind(f"partition {start}: {error}") from error
        raise shifted(error, start) from error


def _n_workers() -> int:
    """Return how many tasks run at once."""
    if "distributed" in sys.modules:
        from distributed import default_client

        with suppress(ValueError):  # there is no client
            return max(1, sum(default_client().nthreads().values()))
    return n_threads()


def _take(part: Any, start: int, indices: npt.NDArray[np.int64]) -> Any:
    return take(part, indices)


def _length(part: Any) -> int:
    return n_objects(part)


def _slice(part: Delayed, start: int, stop: int, length: int) -> Delayed:
    return part if stop - start == length else delayed(_rows)(part, start, stop)


def _rows(part: Any, start: int, stop: int) -> Any:
    return take(part, np.arange(start, stop))


def _join(parts: list[Any]) -> Any:
    return concatenate(parts)


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
    example = first._example() if hasattr(first, "_example") and parts.meta is None else None
    result = getattr(model, name)(parts.example() if example is None else example, *args, **kwargs)
    return result[:0] if sp.issparse(result) else np.asarray(result)[:0]
