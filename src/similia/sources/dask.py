"""Read the partitions of a Dask collection, and apply methods of fitted models to them.

Partitions are called parts. The global position of an object follows from the lengths of the parts before it. A model
that workers need is a node of Dask's task graph: if the worker that holds it dies, the scheduler computes it again,
whereas data sent by ``client.scatter`` would be lost. Dask is imported only when a collection is passed.
"""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, chain, pairwise
from typing import Any, Self
from weakref import finalize

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from similia.core.config import collected_warnings, config, limited_to, n_threads, part_of_more, settings
from similia.core.estimators import check_fitted, computed, if_lazy, is_lazy
from similia.core.validation import BadParameter, BadType, BadValue, DataError, of_numbers
from similia.objects.sequences import concatenate, n_objects, resolve_indices, take
from similia.sources.source import Chunk, Chunks, Source

Converter = Callable[[Any], Any]
_MOST_TASKS = 1000  # number of tasks for the blocks of one collection
_counted: dict[int, Lengths] = {}  # of the collections that are alive, by their id


@dataclass
class Lengths:
    """Numbers of objects in the parts of a collection; None until they are counted."""

    known: list[int] | None = None


class Distributed(Source):
    """Objects in the partitions of a Dask collection.

    `take` fetches a few objects by their global positions; `map` applies a function to each part. Sums of floats do not
    depend on the partitions if you map over ``blocks(size)`` and add the results in order.

    Parameters
    ----------
    parts : list of dask.delayed.Delayed
        The parts. Each computes to a list, array or batch of objects, which may be empty.
    lengths : Lengths, optional
        Number of objects in each part; if not known, objects are counted when the lengths are first needed.
    converters : tuple of callables
        Functions applied, in order, to each part before it is used.
    meta : ndarray or sparse array, optional
        An empty array of the type of the parts before conversion, if they are arrays.
    """

    source, again = "Dask collection", False
    of_dask = True  # `similia.core.estimators` looks for this attribute

    def __init__(
        self, parts: list[Any], lengths: Lengths | None = None, converters: tuple[Converter, ...] = (), meta: Any = None
    ) -> None:
        self.parts, self.converters, self.meta = parts, converters, meta
        self._lengths = Lengths() if lengths is None else lengths

    def __len__(self) -> int:
        return sum(self.lengths)

    @property
    def shape(self) -> tuple[int]:
        """``(n,)`` for n objects: a collection has a single axis."""
        return (len(self),)

    @property
    def known_lengths(self) -> list[int] | None:
        return self._lengths.known

    @property
    def lengths(self) -> list[int]:
        if self._lengths.known is None:
            import dask

            self._lengths.known = list(dask.compute(*(dask.delayed(n_objects)(part) for part in self.parts)))
        return self._lengths.known

    def example(self) -> Any:
        """Return a collection of one object: a row of ones if objects are vectors, else the first object (computed)."""
        if self.meta is not None and self.meta.ndim == 2:
            one = np.ones((1, self.meta.shape[1]), self.meta.dtype)
            return _convert(type(self.meta)(one) if sp.issparse(self.meta) else one, self.converters)
        return self.first()

    def first(self) -> Any:
        """Return a collection of the first object, which is computed."""
        for part in self.parts:
            here = part.compute()
            if n_objects(here):
                return take(_convert(here, self.converters), [0])
        raise BadValue(None, "is empty: found 0 objects", "at least one")

    def chunks(self, start: int = 0) -> Chunks:
        begin = 0
        for part in self.map(whole_part, few=True):
            end = begin + n_objects(part)
            if end > start:
                first = max(begin, start)
                here = part if first == begin else _rows(part, first - begin, end - begin)
                yield Chunk(here, None, first, end)
            begin = end

    def fingerprint(self) -> str:
        raise ValueError(
            "a Dask collection has no fingerprint, because each computation may differ; write it to a file"
        )

    def take(self, indices: npt.ArrayLike) -> Any:
        """Return the objects at the global positions `indices`, in the order of `indices`."""
        import dask

        numbers = resolve_indices(indices, len(self))
        order = np.argsort(numbers, kind="stable")
        limits = np.searchsorted(numbers[order], [0, *accumulate(self.lengths)])
        starts = self._starts()
        pieces = [
            self._task(_taken, number, numbers[order[low:high]] - starts[number])
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
        """Yield ``function(part, start, *slices, *args)`` for each non-empty part, in order.

        `start` is the global position of the first object of the part. Arrays in `along` have one row per object;
        `slices` are their rows for the part. The function runs on the worker that holds the part; errors name global
        positions. With `few`, only a few results are in memory at once.
        """
        import dask

        lengths = self.lengths  # before the tasks are made, which have the positions
        tasks = [task for task, n in zip(self.lazy(function, *args, along=along), lengths, strict=True) if n]
        if not tasks:
            raise BadValue(None, "is empty: found 0 objects", "at least one")
        step = 4 * _n_workers() if few else len(tasks)
        return chain.from_iterable(dask.compute(*tasks[i : i + step]) for i in range(0, len(tasks), step))

    def of_two(self, function: Callable[..., Any], i: int, j: int, *args: Any) -> Any:
        """Return ``function(part i, start, part j, *args)`` as a delayed value; `start` is the position of part i."""
        from dask import delayed

        convert = delayed(_convert, pure=False, traverse=False)
        other = convert(self.parts[j], self.converters) if self.converters else self.parts[j]
        call, *rest = (delayed(value, pure=False, traverse=False) for value in (function, *args))
        return self._task(call, i, other, *rest)

    def converted(self, convert: Converter) -> Self:
        """Return a collection with the parts ``convert(part)``; each task that uses a part converts it first."""
        return type(self)(self.parts, self._lengths, (*self.converters, convert), self.meta)

    def blocks(self, size: int) -> Self:
        """Return the same objects in parts of `size` objects; the last part may be shorter."""
        from dask import delayed

        n, starts = len(self), self._starts()
        expected = [min(size, n - first) for first in range(0, n, size)]
        if self.lengths == expected:
            return self
        parts = []
        for first in range(0, n, size):
            last = min(n, first + size)
            pieces = []
            for part, start, length in zip(self.parts, starts, self.lengths, strict=True):
                low, high = max(first, start) - start, min(last, start + length) - start
                if low < high:
                    pieces.append(part if high - low == length else delayed(_piece)(part, start, length, low, high))
            parts.append(pieces[0] if len(pieces) == 1 else delayed(concatenate)(pieces))
        return type(self)(parts, Lengths(expected), self.converters, self.meta)

    def kept(self) -> Self:
        """Return the same objects, computed once and kept in the workers' memory for several passes over them."""
        import dask

        return type(self)(list(dask.persist(*self.parts)), self._lengths, self.converters, self.meta)

    @contextmanager
    def spooled(self) -> Iterator[npt.NDArray]:
        """Return a context manager that yields all rows as one array, mapped from a temporary file."""
        rows: npt.NDArray = np.empty(0)
        stop = 0
        with ExitStack() as files:
            for part in map(_as_numbers, self.map(whole_part, few=True)):
                if stop and part.shape[1:] != rows.shape[1:]:
                    raise BadValue(stop, f"has shape {part.shape[1:]}, but X[0] has shape {rows.shape[1:]}")
                dtype = np.result_type(rows.dtype, part.dtype) if stop else part.dtype
                if not stop or dtype != rows.dtype:
                    file = files.enter_context(tempfile.TemporaryFile())
                    wider = np.memmap(file, dtype, "w+", shape=(len(self), *part.shape[1:]))
                    if stop:
                        wider[:stop] = rows[:stop]
                    rows = wider
                rows[stop : stop + len(part)] = part
                stop += len(part)
            yield rows.view(np.ndarray)

    def lazy(self, function: Callable[..., Any], *args: Any, along: Sequence[npt.NDArray] = ()) -> list[Any]:
        """Return the results of `map` as one delayed value per part, also for empty parts.

        While lengths are unknown, `start` is the number of the part, and errors name the part.
        """
        from dask import delayed

        def named(value: Any) -> Any:  # but not (): Dask 2024.11 fails on a graph in which it has a name of its own
            return () if type(value) is tuple and not value else delayed(value, pure=False, traverse=False)

        call, *shared = map(named, (function, *args))
        if not along:
            return [self._task(call, number, *shared) for number in range(len(self.parts))]
        rows = [slice(start, start + n) for start, n in zip(self._starts(), self.lengths, strict=True)]
        slices = ([array[part] for array in along] for part in rows)
        return [self._task(call, number, *own, *shared) for number, own in enumerate(slices)]

    def _starts(self) -> list[int]:
        return [0, *accumulate(self.lengths)][:-1]

    def _task(self, function: Any, number: int, *args: Any) -> Any:
        from dask import delayed

        start, expected = number, None
        if self.known_lengths is not None:
            start, expected = self._starts()[number], self.lengths[number]
        run = delayed(_work, pure=False, traverse=False)
        return run(function, self.parts[number], start, expected, self.converters, settings().max_memory, *args)


def each_block(X: Any, size: int, function: Callable[..., Any], *args: Any) -> Iterator[Any]:
    """Yield ``function(block, start, *args)`` for consecutive blocks of `size` objects; `X` may be a `Source`.

    Blocks depend on the order of the objects alone. Adding the results in order therefore gives the same bits for a
    collection in memory, for any chunks of a source and for any partitions of a Dask collection. `start` is the
    position of the block in `X` or, if `X` is a `Distributed`, in the run of blocks that one task computes.
    """
    if isinstance(X, Distributed):
        together = size * -(-len(X) // (size * _MOST_TASKS))
        return chain.from_iterable(X.blocks(max(size, together)).map(_of_blocks, size, function, args))
    if isinstance(X, Source):
        return (function(block, start, *args) for start, block in _blocks_of(X, size))
    return iter(_of_blocks(X, 0, size, function, args))


def as_partitions(X: Any, *, anew: bool = False) -> Distributed:
    """Return a Dask bag, array, series or frame as `Distributed`, or raise for anything else.

    If objects of this very collection were counted before, they are counted again only if `anew`. Another collection of
    the same name in Dask's graph may hold other objects, such as those of a file that has grown.
    """
    if isinstance(X, Distributed):
        return X
    kind = type(X).__name__
    if kind == "Bag":
        return Distributed(X.map_partitions(list).to_delayed(), _lengths_of(X, anew))
    if kind == "Array":
        if X.ndim not in (1, 2):
            raise ValueError(f"X must be a Dask array of vectors (2-D) or objects (1-D), got shape {X.shape}")
        lengths = _lengths_of(X, anew) if np.isnan(X.shape[0]) else Lengths(list(map(int, X.chunks[0])))
        if X.ndim == 2:
            X = X.rechunk({1: -1})
        meta = X._meta
        if X.ndim == 2:  # the example array of Dask has no columns
            none = np.empty((0, X.shape[1]), X.dtype)
            meta = sp.csr_array(none) if sp.issparse(meta) else none
        return Distributed(list(X.to_delayed().ravel()), lengths, meta=meta)
    if kind in ("Series", "DataFrame"):
        return Distributed(_without_aliases(X.to_delayed()), _lengths_of(X, anew))
    raise BadType(
        None,
        f"is a Dask {kind}",
        "a bag of objects, an array of vectors or a column of a dataframe",
        "dask.bag.from_delayed makes a bag of delayed lists",
    )


def _lengths_of(X: Any, anew: bool) -> Lengths:
    """Return the lengths of the parts of a Dask collection, which are remembered while the collection lives."""
    if id(X) not in _counted:
        finalize(X, _counted.pop, id(X), None)
        anew = True
    if anew:
        _counted[id(X)] = Lengths()
    return _counted[id(X)]


def _without_aliases(parts: Sequence[Any]) -> list[Any]:
    """Return the parts of a Dask frame, with each alias (a key that stands for another key) replaced by a task.

    A frame made from delayed values has aliases, and an array made from such a frame cannot be computed: Dask 2026.8
    loses a task while it fuses chains of tasks, and reports "Missing dependency".
    """
    from dask.delayed import Delayed
    from dask.highlevelgraph import HighLevelGraph

    if not len(parts):
        return []
    found = dict(parts[0].__dask_graph__())
    tasks = {key: (_same, task.target) if type(task).__name__ == "Alias" else task for key, task in found.items()}
    name = f"parts-{parts[0].key[0] if isinstance(parts[0].key, tuple) else parts[0].key}"
    graph = HighLevelGraph.from_collections(name, tasks, dependencies=())
    return [Delayed(part.key, graph, layer=name) for part in parts]


def _n_workers() -> int:
    """Return how many tasks run at once: all threads of Dask's default client or, if there is none, of this process."""
    if "distributed" in sys.modules:
        from distributed import default_client

        with suppress(ValueError):  # there is no client
            return max(1, sum(default_client().nthreads().values()))
    return n_threads()


# ---- a fitted method over the parts
def apply(method: Callable[..., Any], X: Any, *args: Any, **kwargs: Any) -> Any:
    """Apply a method of a fitted model to each object of a Dask collection, lazily.

    The model is an estimator of similia or scikit-learn, or a pipeline of such estimators. One task per partition runs
    all steps. Methods of estimators of similia also accept a Dask collection directly, with the same result.

    Parameters
    ----------
    method : bound method of a fitted estimator
        Such as ``pipeline.predict``. Its result for an object must not depend on the other objects.
    X : dask.bag.Bag, dask.array.Array, column of a dask.dataframe
        The objects. Vectors are the rows of a 2-D array.
    *args, **kwargs
        Further arguments of the method.

    Returns
    -------
    dask.array.Array, or a tuple of them
        One row (or number, or label) per object. If the number of objects is unknown, the length of the first axis is
        NaN until ``result.compute_chunk_sizes()`` counts the objects. A method that returns a tuple, such as
        ``predict(X, return_std=True)``, gives a tuple of lazy arrays; compute them together with ``dask.compute``.

    Raises
    ------
    TypeError
        If `X` is not a supported Dask collection, or `method` is not a bound method.

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
    import dask.array as da

    model: Any = getattr(method, "__self__", None)
    if model is None:
        raise TypeError(f"expected a method of a fitted model, such as model.transform, got {method!r}")
    parts, name = as_partitions(X), method.__name__
    one = of_one(method, parts, *args, **kwargs)
    metas = [
        part[:0] if sp.issparse(part) else np.asarray(part)[:0] for part in (one if isinstance(one, tuple) else [one])
    ]
    lengths: list[Any] = parts.known_lengths or [np.nan] * len(parts.parts)
    values = parts.lazy(_call, parts.known_lengths is not None, model, name, metas, args, kwargs)

    def output(number: int, meta: Any) -> Any:
        pieces = [
            da.from_delayed(value[number], (n, *meta.shape[1:]), meta=meta)
            for value, n in zip(values, lengths, strict=True)
        ]
        result = da.concatenate(pieces, allow_unknown_chunksizes=parts.known_lengths is None)
        return _sparse_rows()(result.dask, result.name, result.chunks, meta=meta) if sp.issparse(meta) else result

    outputs = tuple(map(output, range(len(metas)), metas))
    return outputs if isinstance(one, tuple) else outputs[0]


def of_one(method: Any, X: Distributed, *args: Any, **kwargs: Any) -> Any:
    """Return what a method of a fitted model returns for one object, without the warnings about this object.

    The object is one of the model (see `Transformer._example`), or a row of ones. If the method refuses that row, as a
    kernel on unit vectors does, the first object of `X` is computed. An estimator of similia that is not fitted
    says so before; one of another library may need no fit.
    """
    model = method.__self__
    ours = any(base.__module__.startswith("similia.") for base in type(model).__mro__)
    if ours and hasattr(model, "fit"):  # kernels and distances have no fit
        check_fitted(model)
    objects = _example_like(model[0] if hasattr(model, "steps") else model, X)
    if X.meta is not None and X.meta.ndim == 2:
        with suppress(TypeError, ValueError), collected_warnings():
            return method(X.example() if objects is None else objects, *args, **kwargs)
        objects = None
    objects = X.first() if objects is None else objects
    with collected_warnings():
        return method(objects, *args, **kwargs)


def _example_like(model: Any, X: Distributed) -> Any:
    """Return the example of a model, in the dtype of `X`; None if it has none that is like the objects of `X`."""
    one: Any = None
    with suppress(AttributeError):  # the model has none, or is not fitted
        one = model._example()
    if X.meta is None:
        return one
    alike = isinstance(one, np.ndarray) and isinstance(X.meta, np.ndarray) and one.shape[1:] == X.meta.shape[1:]
    if X.meta.ndim != 2 or X.converters or not alike:
        return None
    return one.astype(X.meta.dtype) if X.meta.dtype.kind == "f" else one


@cache
def _sparse_rows() -> Any:
    from dask.array.core import Array

    class SparseRows(Array):
        """A Dask array of sparse rows that raises when numpy would convert it to a dense array."""

        __slots__ = ()

        def __array__(self, *_: Any, **__: Any) -> Any:
            raise TypeError(
                f"expected an array in memory, got sparse rows of a Dask collection, shape {self.shape}; load them "
                "with .compute(), or apply all steps of a pipeline with similia.scale.apply(pipeline.predict, X)"
            )

    return SparseRows


# ---- methods that take Dask collections
@if_lazy
def lazily(method: Callable[..., Any], self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
    """Decorate a method such as `transform` so that it is applied to each object of a Dask collection (see `apply`)."""
    if not is_lazy(X):
        return method(self, X, *args, **kwargs)
    return apply(getattr(self, method.__name__), X, *args, **kwargs)


@if_lazy
def from_parts(method: Callable[..., Any], self: Any, X: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Decorate `fit` so that a Dask collection `X` becomes a `Distributed`, and other Dask arguments are computed."""
    args, kwargs = tuple(map(computed, args)), {name: computed(value) for name, value in kwargs.items()}
    return method(self, as_parts(X, anew=True), *args, **kwargs)


def score_of(model: Any, X: Any, y: Any, sample_weight: Any) -> float:
    """Return the accuracy of a classifier, or R squared of a regressor; each argument may be a Dask collection."""
    from sklearn.base import is_classifier
    from sklearn.metrics import accuracy_score, r2_score

    metric = accuracy_score if is_classifier(model) else r2_score
    return float(metric(true_targets(y), computed(model.predict(X)), sample_weight=computed(sample_weight)))


def true_targets(y: Any) -> Any:
    """Return targets that predictions are compared with, computed and, if possible, as `of_numbers`."""
    y = computed(y)
    return of_numbers(np.asarray(y)) if getattr(y, "dtype", None) == np.dtype(object) else y


class ScoresParts:
    """Mixin of learners whose `predict` is decorated with `lazily`; it precedes the mixin of scikit-learn."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of a classifier, or R squared of a regressor, for n objects and their labels or numbers.

        Each argument may be a Dask collection.
        """
        return score_of(self, X, y, sample_weight)


def as_parts(X: Any, *, anew: bool = False) -> Any:
    """Convert a Dask collection to `Distributed`, see `as_partitions`; return anything else unchanged."""
    return as_partitions(X, anew=anew) if hasattr(X, "__dask_graph__") else X


def refuse_lazy(X: Any, needs: str) -> None:
    """Raise if `X` is a Dask collection; `needs` says why objects must be in memory, and how to pass them."""
    if is_lazy(X):
        raise BadType(None, f"is a Dask collection, and {needs}")


def check_readable(source: Source) -> None:
    """Raise if a source can be read only once."""
    if not source.again and not isinstance(source, Distributed):
        found = f"a {source.source}, which can be read only once"
        raise BadParameter("X", "objects that can be read several times", found, "write them to a file")


# ---- what workers do
@contextmanager
def inside_task(max_memory: int | None = None) -> Iterator[None]:
    """Set `max_memory` in a ``with`` block; allow one thread, or all in the main process's main thread."""
    main = threading.current_thread() is threading.main_thread() and multiprocessing.parent_process() is None
    with limited_to(None if main else 1), config(max_memory=max_memory):
        yield


def _work(
    function: Callable[..., Any], part: Any, start: int, expected: int | None, converters: tuple[Converter, ...],
    max_memory: int, *args: Any,
) -> Any:  # fmt: skip
    """Run a task on a part of `expected` objects, the first of which has the position `start`.

    If the lengths of the parts are not known, `expected` is None, and `start` is the number of the part.
    """
    try:
        with inside_task(max_memory):
            _check_count(part, start, expected)
            return function(_convert(part, converters) if n_objects(part) else part, start, *args)
    except (TypeError, ValueError) as error:
        if expected is None:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            if type(error) is kind or isinstance(error, DataError):
                raise kind(f"partition {start}: {error}") from error
        if isinstance(error, DataError):
            raise error.shifted(start) from error
        raise


def _check_count(part: Any, start: int, expected: int | None) -> None:
    """Raise if the part that begins at `start` does not hold as many objects as when they were counted."""
    if expected is not None and n_objects(part) != expected:
        found = f"has changed: the part that begins with object {start} holds {n_objects(part)} objects"
        raise BadValue(None, found, f"{expected}, as when they were counted", "make the Dask collection anew")


def _convert(part: Any, converters: tuple[Converter, ...]) -> Any:
    for convert in converters:
        part = convert(part)
    return part


def _call(
    part: Any, start: int, counted: bool, model: Any, name: str, metas: list[Any], args: Any, kwargs: Any
) -> Sequence[Any]:
    """Return what a method returns for a part, each array an item; `metas` are its arrays for no object.

    Unless the objects are `counted`, `start` is the number of the part.
    """
    n = n_objects(part)
    if n == 0:
        return metas
    with part_of_more(lazy=True, start=start if counted else None):
        found = getattr(model, name)(part, *args, **kwargs)
    outputs = found if isinstance(found, tuple) else (found,)
    for output, meta in zip(outputs, metas, strict=True):
        shape, expected = output.shape if sp.issparse(output) else np.shape(output), (n, *meta.shape[1:])
        if shape != expected:
            raise ValueError(
                f"{type(model).__name__}.{name} returned an array of shape {shape} for {n} objects, expected "
                f"{expected}; for a Dask collection, a method must treat each object apart from the others"
            )
    return outputs


def _of_blocks(X: Any, start: int, size: int, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    n = n_objects(X)
    return [function(take(X, np.arange(i, min(n, i + size))), i, *args) for i in range(0, n, size)]


def _blocks_of(source: Source, size: int) -> Iterator[tuple[int, Any]]:
    """Yield the objects of a source in blocks of `size`, and the position of the first one of each."""
    start, waiting = 0, []
    with closing(source.chunks()) as chunks:
        for chunk in chunks:
            waiting.append(chunk.objects)
            if chunk.stop - start < size:
                continue
            objects = concatenate(waiting) if len(waiting) > 1 else waiting[0]
            n = n_objects(objects)
            for first in range(0, n - n % size, size):
                yield start + first, take(objects, np.arange(first, first + size))
            start += n - n % size
            waiting = [take(objects, np.arange(n - n % size, n))] if n % size else []
    if waiting:
        yield start, concatenate(waiting) if len(waiting) > 1 else waiting[0]


def _taken(part: Any, start: int, indices: npt.NDArray[np.int64]) -> Any:
    return take(part, indices)


def _rows(part: Any, start: int, stop: int) -> Any:
    return take(part, np.arange(start, stop))


def _piece(part: Any, start: int, expected: int, first: int, stop: int) -> Any:
    """Return the objects `first` to `stop` - 1 of a part; see `_check_count`."""
    _check_count(part, start, expected)
    return _rows(part, first, stop)


def whole_part(part: Any, start: int) -> Any:
    return part


def _as_numbers(part: Any) -> npt.NDArray:
    """Return a part as an array of numbers; raise if it holds anything else."""
    rows = np.asarray(part)
    if rows.dtype.kind not in "biufc":  # object for a sparse matrix
        found = f"has a part of type {type(part).__name__} and dtype {getattr(part, 'dtype', rows.dtype)}"
        raise BadValue(None, found, "dense rows of numbers")
    return rows


def _same(part: Any) -> Any:
    return part
