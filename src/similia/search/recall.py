"""Compare the neighbours that a search finds with those that brute force finds."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from similia.core.config import rows_per_block
from similia.core.estimators import twin_of
from similia.objects import n_objects, take
from similia.search.metric import Floats, Index, as_metric, shares_found

if TYPE_CHECKING:
    from similia.search.similarity_search import SimilaritySearch


class Recall(NamedTuple):
    """Recall and speed of a search.

    Attributes
    ----------
    recall : float
        Share of the k objects found that are no farther than the true k-th neighbour (so ties count as found), averaged
        over the queries.
    standard_error : float
        Standard error of `recall`.
    seconds : float
        Seconds that `SimilaritySearch.kneighbors` takes per query.
    brute_force_seconds : float
        Seconds that it takes to compare one query with all objects.
    """

    recall: float
    standard_error: float
    seconds: float
    brute_force_seconds: float


def measured_recall(
    search: SimilaritySearch, X: Any, n_neighbors: int, metric: Any, objects: Any, n_candidates: Sequence[int] = ()
) -> list[Recall]:
    """Return the recall and speed of a search at each number of candidates, as `SimilaritySearch.recall` documents."""
    projected = isinstance(metric, str) and metric == "projected"
    between = _by_vectors(search, X) if projected else _by_metric(search, X, metric, objects)
    answers, seconds = [], []
    for c in n_candidates or (search.n_candidates,):
        one = twin_of(search)
        one.n_candidates = c
        one.kneighbors(take(X, [0]), n_neighbors)  # compile before timing
        start = time.perf_counter()
        answers.append(search._rows(one.kneighbors(X, n_neighbors)[1]))
        seconds.append(time.perf_counter() - start)
    q, start = len(answers[0]), time.perf_counter()
    shares, step = np.empty((len(answers), q)), rows_per_block(16 * len(search.ids_), at_most=64)
    for first in range(0, q, step):
        block = np.arange(first, min(q, first + step))
        distances = between(block)
        for row, found in zip(shares, answers, strict=True):
            row[block] = shares_found(distances, found[block])
    brute = (time.perf_counter() - start) / q
    error = [float(row.std(ddof=1) / np.sqrt(q)) if q > 1 else float("nan") for row in shares]
    return [Recall(float(row.mean()), e, s / q, brute) for row, e, s in zip(shares, error, seconds, strict=True)]


def _by_vectors(search: SimilaritySearch, X: Any) -> Callable[[Index], Floats]:
    """Return a function that maps positions in `X` to the distances from these vectors to all vectors searched."""
    if search.vectors_ is None:
        raise ValueError("metric='projected' compares the vectors that only rerank='projected' keeps; name another")
    vectors: Any = search._encode(X)[1]
    everyone = np.arange(len(search.ids_))
    return lambda rows: search._by_angle(vectors[rows], np.tile(everyone, (len(rows), 1)))[0]


def _by_metric(search: SimilaritySearch, X: Any, metric: Any, objects: Any) -> Callable[[Index], Floats]:
    """Return a function that maps positions in `X` to the distances from these objects to all objects searched."""
    kept = search.objects_ if objects is None else objects
    if kept is None or n_objects(kept) != len(search.ids_):
        found = "the search keeps none" if kept is None else f"{n_objects(kept)} are given"
        raise ValueError(f"recall compares queries with all {len(search.ids_)} objects, but {found}; give objects=")
    own = search._metric() if isinstance(metric, str) and metric == "kernel" else None
    true = own or as_metric(metric, search.encoder, "metric")
    queries, all_objects = true.as_objects(X), true.as_objects(kept)
    norms = true.norms(all_objects)
    return lambda rows: true.distances(take(queries, rows), all_objects, norms)
