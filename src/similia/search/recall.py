"""Compare the neighbours that a search finds with those that brute force finds."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from similia.core.config import rows_per_block
from similia.core.estimators import check_fitted, twin_of
from similia.core.validation import check_positive_int
from similia.objects import n_objects, take
from similia.search._queries import by_angle, encoded
from similia.search.metric import Floats, Index, Metric, as_metric, shares_found


class Recall(NamedTuple):
    """Recall and speed of a search, as `SimilaritySearch.recall` returns them.

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


class MeasuresRecall:
    """The methods of a search that measure its recall."""

    rerank: Any

    def recall(self, X: Any, n_neighbors: int = 10, *, metric: Any = "kernel", objects: Any = None) -> Recall:
        """Measure the share of true neighbours that the search finds, and the time that it takes.

        Parameters
        ----------
        X : collection of q objects
            Queries. With a hundred of them, the standard error of the recall is a few percent.
        n_neighbors : int, default=10
            Number k of neighbours.
        metric : "kernel", "projected", or a kernel or distance of similia, default="kernel"
            What defines the true neighbours. "kernel": the kernel or distance of `rerank` or, if `rerank` has none, of
            the encoder's first step. "projected": the distance between the vectors kept for ``rerank="projected"``. If
            the first step has no kernel or distance, as is usual for vectors, pass
            ``similia.kernels.Cosine("projection")`` or ``similia.distances.FromFunction(scipy.spatial.distance.cdist,
            pairwise=True)``.
        objects : collection of n objects, optional
            The objects in the order they were added; required if the search keeps none (`objects_` is None).

        Returns
        -------
        Recall
            A named tuple: `recall`, its `standard_error`, the `seconds` that this search takes per query, and the
            `brute_force_seconds` that a comparison with all objects takes per query.
        """
        check_fitted(self, "encoder_")
        return measured_recall(self, X, n_neighbors, metric, objects)[0]

    def recall_curve(
        self,
        X: Any,
        n_neighbors: int = 10,
        *,
        n_candidates: Sequence[int] = (10, 20, 50, 100, 200, 400),
        metric: Any = "kernel",
        objects: Any = None,
    ) -> dict[int, Recall]:
        """Measure recall and time at several numbers of candidates; see `recall`.

        Parameters
        ----------
        X, n_neighbors, metric, objects
            As for `recall`.
        n_candidates : sequence of int, default=(10, 20, 50, 100, 200, 400)
            Numbers of candidates to try; those below `n_neighbors` are left out.

        Returns
        -------
        dict of int to Recall
            What `recall` returns with each number of candidates.
        """
        check_fitted(self, "encoder_")
        if self.rerank is None:
            raise ValueError("rerank=None compares no candidates, so there is no curve; use recall")
        counts = [check_positive_int(c, "n_candidates") for c in n_candidates if c >= n_neighbors]
        if not counts:
            raise ValueError(f"n_candidates={n_candidates!r} has no number of at least n_neighbors={n_neighbors}")
        return dict(zip(counts, measured_recall(self, X, n_neighbors, metric, objects, counts), strict=True))


def measured_recall(
    search: Any, X: Any, n_neighbors: int, metric: Any, objects: Any, n_candidates: Sequence[int] = ()
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
    q, brute = len(answers[0]), 0.0
    shares, step = np.empty((len(answers), q)), rows_per_block(16 * len(search.ids_), at_most=64)
    for first in range(0, q, step):
        block = np.arange(first, min(q, first + step))
        start = time.perf_counter()
        distances = between(block)
        brute += time.perf_counter() - start
        for row, found in zip(shares, answers, strict=True):
            row[block] = shares_found(distances, found[block])
    error = [float(row.std(ddof=1) / np.sqrt(q)) if q > 1 else float("nan") for row in shares]
    return [Recall(float(row.mean()), e, s / q, brute / q) for row, e, s in zip(shares, error, seconds, strict=True)]


def true_metric(search: Any, metric: Any, objects: Any) -> Metric:
    """Return what defines true neighbours, as `SimilaritySearch.recall` documents, decided from all `objects`."""
    own = search._metric() if isinstance(metric, str) and metric == "kernel" else None
    true = own or as_metric(metric, search.encoder, "metric")
    return true.decided(true.as_objects(objects))


def _by_vectors(search: Any, X: Any) -> Callable[[Index], Floats]:
    """Return a function that maps positions in `X` to the distances from these vectors to all vectors searched."""
    if search.vectors_ is None:
        raise ValueError("metric='projected' compares the vectors that only rerank='projected' keeps; name another")
    vectors: Any = encoded(search.encoder_, X, projected=True)[1]  # `rerank` may have been changed since the fit
    everyone = np.arange(len(search.ids_))
    return lambda rows: by_angle(vectors[rows], search.vectors_, np.tile(everyone, (len(rows), 1)))[0]


def _by_metric(search: Any, X: Any, metric: Any, objects: Any) -> Callable[[Index], Floats]:
    """Return a function that maps positions in `X` to the distances from these objects to all objects searched."""
    kept = search.objects_ if objects is None else objects
    if kept is None or n_objects(kept) != len(search.ids_):
        found = "the search keeps none" if kept is None else f"{n_objects(kept)} are given"
        raise ValueError(f"recall compares queries with all {len(search.ids_)} objects, but {found}; give objects=")
    true = true_metric(search, metric, kept)
    queries, all_objects = true.as_objects(X), true.as_objects(kept)
    norms = true.norms(all_objects)
    return lambda rows: true.distances(take(queries, rows), all_objects, norms)
