"""One query: what a search computes for it, with all that does not depend on the query looked up beforehand.

Reading, encoding, scanning and reranking one object take a fraction of a millisecond, of which checks and small calls
of numpy would be more than half. A plan asks the steps of the encoder and the distance once for functions of one object
(their methods ``_for_one``), which hold contiguous arrays of known types and enter compiled loops directly. Where there
is no such function, or it returns None because something is to be reported, the plan calls what a batch of queries
calls. So results and errors are those of a batch, bit for bit.

A plan never changes, so that threads share it without a lock. A search makes it at its first call with one query,
and anew after anything was replaced that it holds.
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

from similia.core.estimators import Transformer
from similia.pipelines import Pipeline
from similia.search._candidates import by_angle, parsed, unit
from similia.search.hamming_index import HammingIndex
from similia.search.metric import Floats, Index, Metric, function_of, sorted_candidates
from similia.search.scan import nearest_to_one, smallest

if TYPE_CHECKING:
    from similia.search.similarity_search import SimilaritySearch

_PIPELINES = (Pipeline, sklearn.pipeline.Pipeline)
_held = attrgetter("__dict__")


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
        X, objects = parsed(self.first, self.metric, X)
        codes, vectors = self._encoded(X, search._projected) or search._encode(X)
        if search.rerank is None:
            distances, ids = _candidates(search.index_, codes, k)
            return distances.astype(np.float64), None, ids
        _, ids = _candidates(search.index_, codes, min(search.n_candidates, len(search.ids_)))
        rows = search._rows(ids)
        if self.distances is not None and (row := self.distances(objects, rows[0])) is not None:
            nearest, ids = smallest(row, ids[0], k)
            return nearest, None, ids
        by_metric = None if self.metric is None else search._compared(self.metric, objects, rows)
        values, similarities = by_metric or by_angle(vectors, search.vectors_, rows)
        order = sorted_candidates(values, ids)[0, :k]
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


def _candidates(index: Any, codes: Any, k: int) -> tuple[Any, Index]:
    """Return ``index.kneighbors(codes, k)`` for one row of `codes`; `k` is at most the number of rows of the index."""
    exact = type(index) is HammingIndex and index.kind == "exact" and index.metric == "hamming"
    if exact and codes.shape[1] == index._rows.width and codes.shape[1] % 8 == 0:
        found = nearest_to_one(index._rows, codes.view(np.uint64), k)
        if found is not None:
            return found
    distances, ids = index.kneighbors(codes, k)
    return distances, ids


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
