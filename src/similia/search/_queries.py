"""How a search answers queries: it encodes objects and compares them, in blocks, with their candidates.

**One query.** Reading, encoding, scanning and reranking one object take a fraction of a millisecond, of which checks
and small calls of numpy would be more than half. A plan (`OneQuery`) asks the steps of the encoder and the distance
once for functions of one object (their methods ``_for_one``), which hold contiguous arrays of known types and enter
compiled loops directly. Where there is no such function, or it returns None because something is to be reported, the
plan calls what a batch of queries calls. So results and errors are those of a batch, bit for bit.

A plan never changes, so that threads share it without a lock. A search makes it when it is fitted or objects are added,
and anew, at its next call with one query, after anything was replaced that it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import sklearn.pipeline
from sklearn import get_config
from sklearn.frozen import FrozenEstimator

from similia.core.config import run_in_ranges, track
from similia.core.estimators import Transformer
from similia.core.hashing import digest_of
from similia.core.jit import njit, read_only
from similia.core.products import chosen_products, multiply_chosen
from similia.core.validation import check_codes, is_table, part_from
from similia.objects import n_objects, take
from similia.objects.sequences import Batch, StringBatch, at_least_one, fullest
from similia.pipelines import Pipeline, function_of, transformed, transformed_in_two
from similia.search.feature_index import FeatureIndex
from similia.search.hamming_index import HammingIndex
from similia.search.scan import _fill_smallest, nearest_to_one, smallest
from similia.search.vector_index import VectorIndex
from similia.similarity import Floats, Index, Metric, as_objects, diagonal, feature_distances, plain_parameters

if TYPE_CHECKING:
    from similia.search.similarity_search import SimilaritySearch

_QUERIES = 512  # queries answered together
_GRAIN = 2**12  # vectors that are worth a thread
_PIPELINES = (Pipeline, sklearn.pipeline.Pipeline)
_held = attrgetter("__dict__")


def parsed(first: Any, metric: Metric | None, X: Any) -> tuple[Any, Any]:
    """Return objects as the encoder and as `metric` compare them; `first` is what the encoder's first step compares by.

    Strings, and objects for the kernel or distance of the encoder itself, are read once. Others are read twice: of two
    batches of one kind, both get the one with more attributes, and a function of the user gets objects as they are.
    The encoder sees a data frame itself, for the names of its columns, unless its only column holds the objects.
    """
    if first is None or hasattr(X, "columns"):
        objects = X if metric is None else metric.as_objects(X)
        entire = isinstance(objects, Batch) or (hasattr(X, "columns") and is_table(objects))
        return X if entire and not isinstance(objects, StringBatch) else objects, objects
    batch = as_objects(first, X)
    batch = batch if isinstance(batch, Batch) else X
    if metric is None:
        return batch, batch
    if first is metric.function or isinstance(batch, StringBatch):
        return batch, metric.as_objects(batch)
    objects = metric.as_objects(X)
    if isinstance(objects, Batch) and type(objects) is type(batch):
        batch = objects = fullest(batch, objects)
    return batch, objects


# ---- codes and vectors
def _has_steps(encoder: Any) -> bool:
    """Return whether an encoder is a pipeline of several steps."""
    return len(getattr(encoder, "steps", ())) > 1  # of a frozen pipeline, too


def vectors_index(encoder: Any) -> VectorIndex | None:
    """Return the `VectorIndex` that is an encoder or its last step, or None."""
    last = encoder.steps[-1][1] if getattr(encoder, "steps", None) else encoder
    return last if isinstance(last, VectorIndex) else None


def fitted_vectors(encoder: Any, X: Any, y: Any) -> Any:
    """Fit the steps of an encoder before the last, a `VectorIndex`, as `fitted_codes` does; return the vectors.

    A frozen pipeline stays as it is.
    """
    if isinstance(encoder, FrozenEstimator):
        return encoded(encoder, X, projected=False)[0]
    for _, step in encoder.steps[:-1] if isinstance(encoder, sklearn.pipeline.Pipeline) else ():
        X = X if step is None or step == "passthrough" else step.fit(X, y).transform(X)
    return X


def fitted_codes(encoder: Any, X: Any, y: Any, projected: bool) -> tuple[npt.NDArray[np.uint8], Any]:
    """Fit an encoder; return the codes of `X` and, if `projected`, the unit vectors that enter its last step.

    The steps of a pipeline are fitted and applied one by one, so each transforms the objects once. Each step receives
    the result of the previous ``transform``, as in later searches; ``fit_transform`` may differ in the last bits.
    """
    if not isinstance(encoder, sklearn.pipeline.Pipeline) or encoder.memory is not None:
        encoder.fit(X, y)
        V = np.asarray(encoder[:-1].transform(X)) if projected else None
        codes = encoder.transform(X) if V is None else encoder[-1].transform(V)
        return check_codes(codes, "the encoder's output"), None if V is None else unit(V)
    V = X
    for _, step in encoder.steps:
        last = V
        V = last if step is None or step == "passthrough" else step.fit(last, y).transform(last)
    return check_codes(V, "the encoder's output"), unit(np.asarray(last)) if projected else None


def encoded(encoder: Any, X: Any, projected: bool) -> tuple[Any, npt.NDArray[np.float32] | None]:
    """Return what the index takes, codes, vectors or `X` itself, and the unit vectors that enter the last step.

    The vectors are None unless `projected`.
    """
    if isinstance(encoder, FeatureIndex):
        return X, None
    if vectors_index(encoder) is not None:
        V = np.asarray(transformed(encoder[:-1], X)) if _has_steps(encoder) else X
        return V, unit(V) if projected else None
    if not projected:
        return check_codes(transformed(encoder, X), "the encoder's output"), None
    V, codes = transformed_in_two(encoder, X)
    return check_codes(codes, "the encoder's output"), unit(V)


def unit(V: npt.NDArray) -> npt.NDArray[np.float32]:
    """Return the rows of `V` divided by their lengths; a zero row stays zero."""
    V = V if V.dtype in (np.float32, np.float64) else V.astype(np.float64)
    V, found = read_only(np.ascontiguousarray(V)), np.empty(V.shape, np.float32)
    run_in_ranges(lambda start, stop: _divide_by_lengths(V, found, start, stop), len(V), _GRAIN)
    return found


@njit()
def _divide_by_lengths(V, found, start, stop):  # type: ignore[no-untyped-def]
    for i in range(start, stop):
        largest = 0.0
        for value in V[i]:
            largest = max(largest, abs(np.float64(value)))
        square = 0.0
        for value in V[i]:
            square += (value / largest) ** 2 if largest > 0 else 0.0
        root = np.sqrt(square)
        for j in range(V.shape[1]):
            found[i, j] = np.float64(V[i, j]) / largest / root if largest > 0 else 0.0


# ---- comparisons of queries with candidates
def by_angle(vectors: Any, kept: Any, rows: Index) -> tuple[Floats, Floats]:
    """Return the distances and cosines between ``vectors[i]`` and the vectors ``kept[rows[i]]``, for each i."""
    if vectors.shape[1:] != kept.shape[1:]:
        raise ValueError(
            f"the encoder makes vectors of shape {vectors.shape}, but vectors_ has {kept.shape}; fit again"
        )
    cosines = chosen_products(kept, rows, vectors).astype(np.float64)
    return np.sqrt(np.maximum(2.0 - 2.0 * cosines, 0.0)), cosines


def parameters_of(function: Any) -> Any:
    """Return a value that is equal (``==``) for two kernels or distances only if their parameters are equal."""
    plain = plain_parameters(function)
    return digest_of(function) if plain is None else (type(function), plain)


class Known:
    """A kernel or distance with its data-dependent parameters set from all objects, and what its searches share.

    The features of all objects are cached as soon as the number of compared candidates reaches the number of objects.
    Copies and saved files of a search do not contain them.
    """

    def __init__(self, metric: Metric, objects: Any) -> None:
        self.parameters = parameters_of(metric.function)
        self.metric = metric.decided(objects)
        self.n_compared = 0
        self.features: dict[str, Any] | None = None  # of all objects
        self.norms: Floats | None = None  # k(y, y) of all objects

    def fits(self, metric: Metric) -> bool:
        """Return whether `metric` still has the parameters of the metric given; set_params may change them any time."""
        return bool(self.parameters == parameters_of(metric.function))

    def compared(self, X: Any, objects: Any, rows: Index) -> tuple[Floats, Floats | None]:
        """Return distances and kernel values (None for a distance) between ``X[i]`` and the objects at ``rows[i]``."""
        self.n_compared += rows.size
        if self.features is None and self.n_compared >= n_objects(objects):
            self.features, self.norms = self.metric.kept(objects), self.metric.norms(objects)
        values = self.metric.of_candidates(X, objects, rows, self.features)
        if not self.metric.is_kernel:
            return values, None
        own = diagonal(self.metric.function, X)[:, None]
        return feature_distances(values, own, self._norms_at(objects, rows)), values

    def _norms_at(self, objects: Any, rows: Index) -> Floats:
        """Return k(y, y), for the kernel k, of the objects y at the positions `rows`, in the shape of `rows`."""
        if self.norms is not None:
            return self.norms[rows]
        unique, place = np.unique(rows, return_inverse=True)
        return diagonal(self.metric.function, take(objects, unique))[place].reshape(rows.shape)


# ---- queries and ids
def in_blocks(X: Any, answer: Callable[[Any], tuple[Any, Any]], both: bool) -> Any:
    """Return the (values, ids) that `answer` gives for blocks of queries, joined; only ids if `both` is false."""
    q = at_least_one(X)
    if q <= _QUERIES:
        values, ids = answer(X)
        return (values, ids) if both else ids
    starts, found = range(0, q, _QUERIES), []
    for start in track(starts, "queries", len(starts)):
        with part_from(start):
            found.append(answer(take(X, np.arange(start, min(q, start + _QUERIES)))))
    values, ids = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return (values, ids) if both else ids


def order_of(ids: Index) -> Index | int:
    """Return what `positions` needs: the first id if the ids are consecutive, otherwise the order that sorts them."""
    steps = np.diff(ids)
    if len(ids) and (steps == 1).all():
        return int(ids[0])
    return np.arange(len(ids)) if (steps > 0).all() else np.argsort(ids, kind="stable")


def positions(some: Index, ids: Index, order: Index) -> Index:
    """Return the positions in `ids` of the ids `some`; `order` sorts `ids`."""
    return order[np.searchsorted(ids, some.ravel(), sorter=order)].reshape(some.shape)


# ---- one query
class OneQuery:
    """The plan of a `SimilaritySearch` for one query; `metric` is the kernel or distance that reranks, or None."""

    def __init__(self, search: SimilaritySearch, metric: Metric | None) -> None:
        self.metric, self.held = metric, _parts(search)
        self.first, _ = function_of(search.encoder)
        steps = [*_steps(search.encoder_)]
        self.encoders = _functions(steps) if isinstance(search.index_, HammingIndex) else None
        function = None if metric is None else metric.function
        distances = None if metric is None or metric.is_kernel else getattr(function, "_for_one", None)
        self.distances = None if distances is None or search.objects_ is None else distances(search.objects_)
        self.vectors = None if search.vectors_ is None else read_only(np.ascontiguousarray(search.vectors_))
        compared = [*_steps(search.encoder)] if isinstance(search.rerank, str) else []  # "kernel" is that of the first
        watched = [*_watched([search.encoder_, *steps, function, search.encoder, *compared])]
        self.models = [one for one in watched if type(one) is not list]
        self.steps = [one for one in watched if type(one) is list]
        self.seen = [tuple(vars(model).values()) for model in self.models], [*map(tuple, self.steps)]

    def holds(self, search: SimilaritySearch) -> bool:
        """Return whether nothing was replaced since the plan was made; if so, the parameters need no other check."""
        if not _same(_parts(search), self.held):
            return False
        models, steps = self.seen  # a fit may give a model another __dict__
        return all(map(_same, map(dict.values, map(_held, self.models)), models)) and all(map(_same, self.steps, steps))

    def nearest(self, search: SimilaritySearch, X: Any, k: int) -> tuple[Floats, Floats | None, Index]:
        """Return what ``search._nearest`` returns, for a collection of one object."""
        search._check_columns(X, self.metric)
        X, objects = parsed(self.first, self.metric, X)
        codes, vectors = self._encoded(X, search._projected) or search._encode(X)
        if search.rerank is None:
            distances, ids = _candidates(search.index_, codes, k)
            return distances.astype(np.float64), None, ids
        _, ids = _candidates(search.index_, codes, min(search.n_candidates, len(search.ids_)), ordered=False)
        rows, similarities = search._rows(ids), None
        if search._projected and self.vectors is not None:
            found = _nearest_by_angle(self.vectors, rows, vectors, ids, k)
            if found is not None:
                return found
        row = None if self.distances is None else self.distances(objects, rows[0])
        if row is not None:
            values = row[None]
        elif self.metric is not None:
            values, similarities = search._compared(self.metric, objects, rows)
        else:
            values, similarities = by_angle(vectors, search.vectors_, rows)
        order = smallest(values[0], ids[0], k)
        return values[:, order], None if similarities is None else similarities[:, order], ids[:, order]

    def _encoded(self, X: Any, projected: bool) -> tuple[npt.NDArray[np.uint8], Any] | None:
        """Return the code of one object and, if `projected`, its unit vector; None if `SimilaritySearch` must do it."""
        if self.encoders is None or get_config()["transform_output"] != "default":
            return None
        last = X
        for encode in self.encoders:
            last, X = X, encode(X)
            if X is None:
                return None
        return X, unit(last) if projected else None


def _candidates(index: Any, codes: Any, k: int, ordered: bool = True) -> tuple[Any, Index]:
    """Return ``index.kneighbors(codes, k)`` for one row of `codes`, in any order unless `ordered`.

    `k` is at most the number of rows of the index.
    """
    exact = type(index) is HammingIndex and index.kind == "exact" and index.metric == "hamming"
    if exact and codes.shape[1] == index._rows.width and codes.shape[1] % 8 == 0:
        found = nearest_to_one(index._rows, codes.view(np.uint64), k, ordered)
        if found is not None:
            return found
    distances, ids = index.kneighbors(codes, k)
    return distances, ids


def _nearest_by_angle(
    kept: npt.NDArray, rows: Index, vectors: Any, ids: Index, k: int
) -> tuple[Floats, Floats, Index] | None:
    """Return the distances, cosines and ids, each (1, k), of the rows of `kept` nearest to one vector by `by_angle`.

    Return None if the vectors do not fit together.
    """
    if vectors.shape[1:] != kept.shape[1:] or vectors.dtype != kept.dtype:
        return None
    distances, cosines, found = np.empty((1, k)), np.empty((1, k)), np.empty((1, k), np.int64)
    filled = _fill_by_angle(kept, rows, np.ascontiguousarray(vectors), ids[0], distances, cosines, found)
    return (distances, cosines, found) if filled else None


@njit()
def _fill_by_angle(kept, rows, vectors, ids, distances, cosines, found):  # type: ignore[no-untyped-def]
    for row in rows[0]:
        if not 0 <= row < len(kept):  # the products do not look at bounds
            return False
    products, values, at = np.empty(rows.shape, kept.dtype), np.empty(len(ids)), np.empty(found.shape[1], np.int64)
    multiply_chosen(kept, rows, vectors, products)
    for j in range(len(ids)):
        values[j] = np.sqrt(max(2.0 - 2.0 * np.float64(products[0, j]), 0.0))
    _fill_smallest(values, ids, distances, found, at)
    for i in range(len(at)):
        cosines[0, i] = products[0, at[i]]
    return True


def _steps(model: Any) -> Iterator[Any]:
    """Yield the steps of a fitted encoder, with nested pipelines flattened and passthrough steps left out."""
    if type(model) in _PIPELINES:
        for _, step in model.steps:
            if step not in (None, "passthrough"):
                yield from _steps(step)
    elif type(model) is FrozenEstimator:
        yield from _steps(model.estimator)
    else:
        yield model


def _functions(steps: list[Any]) -> list[Callable[[Any], Any]] | None:
    """Return the functions of one object of the steps; None if a step has none, or makes data frames."""
    ours = [isinstance(step, Transformer) and type(step).__module__.startswith("similia.") for step in steps]
    if not all(ours) or any(hasattr(step, "_sklearn_output_config") for step in steps):
        return None
    found = [step._for_one() for step in steps]
    return None if None in found else found


def _watched(models: Iterable[Any]) -> Iterator[Any]:
    """Yield models, their kernels, and the lists of steps of pipelines: all whose contents may change."""
    for model in models:
        if hasattr(model, "__dict__"):
            yield model
            if type(model) in _PIPELINES:
                yield model.steps
                yield from _watched(step for _, step in model.steps if type(step) in (*_PIPELINES, FrozenEstimator))
            elif type(model) is FrozenEstimator:
                yield from _watched([model.estimator])
            yield from _watched([vars(model)["kernel_"]] if "kernel_" in vars(model) else [])


def _parts(search: SimilaritySearch) -> tuple[Any, ...]:
    """Return the parameters and attributes of a search that decide what it answers."""
    given = search.encoder, search.rerank, search.n_candidates, search.index
    return *given, search.encoder_, search.index_, search.objects_, search.vectors_


def _same(now: Any, before: tuple[Any, ...]) -> bool:
    """Return whether a collection still holds the very objects it held before."""
    return len(now) == len(before) and all(map(is_, now, before))
