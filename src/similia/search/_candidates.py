"""How a search encodes objects and compares queries, in blocks, with their candidates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from similia.core.errors import part_from
from similia.core.products import chosen_products
from similia.core.progress import track
from similia.core.validation import check_codes
from similia.objects import n_objects, take
from similia.objects.sequences import Batch, at_least_one, fullest
from similia.objects.strings import StringBatch
from similia.pipelines import transformed, transformed_in_two
from similia.search.feature_index import FeatureIndex
from similia.search.metric import Floats, Index, Metric, feature_distances, parameters_of
from similia.search.vector_index import vectors_index
from similia.similarity import as_objects, diagonal

_QUERIES = 512  # queries answered together
_ASCENDING = np.zeros(0, np.int64)  # stands for the order of ids that ascend


def parsed(first: Any, metric: Metric | None, X: Any) -> tuple[Any, Any]:
    """Return objects as the encoder and as `metric` compare them; `first` is what the encoder's first step compares by.

    Strings, and objects for the kernel or distance of the encoder itself, are read once. Others are read twice: of two
    batches of one kind, both get the one with more attributes, and a function of the user gets objects as they are.
    """
    if first is None or hasattr(X, "columns"):
        objects = X if metric is None else metric.as_objects(X)
        return X if isinstance(objects, Batch) and not isinstance(objects, StringBatch) else objects, objects
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


def fitted_vectors(encoder: Any, X: Any, y: Any) -> Any:
    """Fit the steps of an encoder before the last, a `VectorIndex`, as `fitted_codes` does; return the vectors.

    A frozen pipeline stays as it is.
    """
    if isinstance(encoder, FrozenEstimator):
        return encoded(encoder, X, projected=False)[0]
    for _, step in encoder.steps[:-1] if isinstance(encoder, Pipeline) else ():
        X = X if step is None or step == "passthrough" else step.fit(X, y).transform(X)
    return X


def fitted_codes(encoder: Any, X: Any, y: Any, projected: bool) -> tuple[npt.NDArray[np.uint8], Any]:
    """Fit an encoder; return the codes of `X` and, if `projected`, the unit vectors that enter its last step.

    The steps of a pipeline are fitted and applied one by one, so each transforms the objects once. Each step receives
    the result of the previous ``transform``, as in later searches; ``fit_transform`` may differ in the last bits.
    """
    if not isinstance(encoder, Pipeline) or encoder.memory is not None:
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
    with np.errstate(over="ignore", under="ignore"):
        norms = np.linalg.norm(V, axis=1, keepdims=True)
        found = np.asarray(V / np.where(norms > 0, norms, 1.0), np.float32)
    ordinary = (norms > (1e-140 if norms.dtype == np.float64 else 1e-15)) & (norms < np.inf)
    if not ordinary.all():  # squares lose digits or overflow
        extreme = np.flatnonzero(~ordinary)
        some = V[extreme].astype(np.float64)
        some /= np.maximum(np.abs(some).max(axis=1, keepdims=True), 5e-324)
        found[extreme] = some / np.maximum(np.linalg.norm(some, axis=1, keepdims=True), 1.0)
    return found


# ---- comparisons of queries with candidates
def by_angle(vectors: Any, kept: Any, rows: Index) -> tuple[Floats, Floats]:
    """Return the distances and cosines between ``vectors[i]`` and the vectors ``kept[rows[i]]``, for each i."""
    if vectors.shape[1:] != kept.shape[1:]:
        raise ValueError(
            f"the encoder makes vectors of shape {vectors.shape}, but vectors_ has {kept.shape}; fit again"
        )
    cosines = chosen_products(kept, rows, vectors).astype(np.float64)
    return feature_distances(cosines, 1.0, 1.0), cosines


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


def order_of(ids: Index) -> Index:
    """Return what `positions` needs: the order that sorts `ids`, or a constant if they ascend."""
    ascending = bool((ids[1:] > ids[:-1]).all())  # false only if ids were given in another order
    return _ASCENDING if ascending else np.argsort(ids, kind="stable")


def positions(some: Index, ids: Index, order: Index) -> Index:
    """Return the positions in `ids` of the ids `some`; `order` is ``order_of(ids)``."""
    if order is _ASCENDING:
        consecutive = len(ids) > 0 and ids[-1] - ids[0] == len(ids) - 1
        return some - ids[0] if consecutive else np.searchsorted(ids, some)
    return order[np.searchsorted(ids, some.ravel(), sorter=order)].reshape(some.shape)
