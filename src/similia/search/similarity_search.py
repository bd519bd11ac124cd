"""Nearest objects of any kind: compare binary codes first, then rerank the best candidates.

The cost of a query among n objects is that of encoding it, of ``n * n_bits / 64`` operations on words (with an index of
``kind="exact"``), and of `n_candidates` evaluations of the kernel or distance. The procedure follows Yun, Kim & Choi,
"Hashing with generalized Nyström approximation", ICDM 2012, Section IV (100 candidates, sorted by the distances of
their projected vectors).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from similia.core.config import exclusively, rows_per_block
from similia.core.estimators import all_at_once, check_columns, check_fitted, is_lazy, present, twin_of
from similia.core.state import Sizes, array, made, objects, optional, state
from similia.core.validation import BadType, as_ids, check_encoder, check_ids, check_positive_int, check_radius
from similia.objects import concatenate, n_objects, take
from similia.objects.sequences import at_least_one
from similia.pipelines import as_metric, function_of
from similia.search._queries import (
    Known,
    OneQuery,
    by_angle,
    encoded,
    fitted_codes,
    fitted_vectors,
    in_blocks,
    order_of,
    parsed,
    positions,
    unit,
    vectors_index,
)
from similia.search.answers import ragged, shares_found, sorted_candidates
from similia.search.automatic import chosen
from similia.search.feature_index import FeatureIndex
from similia.search.hamming_index import HammingIndex
from similia.similarity import Floats, Index, Metric, check_direction

_CACHED = ("_known", "_order", "_plan")  # attributes that hold what queries share


def _ids_fit(state: dict[str, Any], sizes: Sizes) -> bool:
    if "index_" not in state:  # a search in a folder stores its index separately
        return sizes["n"] == 0
    index = state["index_"]
    return np.array_equal(np.sort(state["ids_"]), np.sort(index.ids if len(index) else np.zeros(0, np.int64)))


def _makes_candidates(value: Any, sizes: Sizes) -> bool:
    indexed = isinstance(value, FeatureIndex) or vectors_index(value) is not None
    return indexed or hasattr(value, "transform") or (isinstance(value, str) and value == "auto")


def _are_trials(value: Any, sizes: Sizes) -> bool:
    kinds = {"candidates": str, "n_candidates": int, "recall": float, "operations": float}
    return isinstance(value, list) and all(
        isinstance(one, dict) and {name: type(found) for name, found in one.items()} == kinds for one in value
    )


@state(
    fits=_ids_fit, may_lack=("index_", "trials_"), encoder=_makes_candidates, encoder_=_makes_candidates,
    index=optional(made("HammingIndex")), index_=made("HammingIndex", "FeatureIndex", "VectorIndex"),
    ids_=array("i8", "n"),
    objects_=optional(objects("n")), vectors_=optional(array("f4", "n", None)),
    trials_=_are_trials,
)  # fmt: skip
class SimilaritySearch(BaseEstimator):
    """Find the objects most similar to a query: find candidates by their codes, then compare the candidates exactly.

    Parameters
    ----------
    encoder : transformer, pipeline, FeatureIndex or "auto"
        How candidates are found; `fit` fits a clone of it. (To use an encoder that is already fitted, wrap it in
        ``sklearn.frozen.FrozenEstimator``.)

        - A transformer turns each object into a code, a row of packed bits. The candidates are the objects with the
          nearest codes. Usually the transformer is a pipeline, such as
          ``make_pipeline(Nystroem(kernel, 256), SignRandomProjection(256))``.
        - If the last step of a pipeline is a `similia.search.VectorIndex`, the vectors that enter this step are
          compared. The candidates are the objects with the nearest vectors.
        - A `similia.search.FeatureIndex` has a kernel k of its own. The candidates are the objects x with the smallest
          distances ``sqrt(k(x, x) + k(y, y) - 2 k(x, y))`` to the query y.
        - "auto" tries codes, vectors and features on a sample of the objects. For strings, the features are substrings
          of k letters, for three values of k. For other objects, they are the explicit features of the kernel, if it
          has any. Recall is the share of the true neighbours that are among the candidates. "auto" keeps the cheapest
          method (the one with the fewest operations) whose recall is at most one standard error below the highest.
          "auto" requires a kernel or distance as `rerank`, and warns if the recall is below 0.9. It takes no
          `random_state`: its sample and the encoders that it tries have fixed seeds, so equal objects give equal
          searches.
    rerank : None, "projected", "kernel", or a kernel or distance of similia, default=None
        How to compare candidates with the query. None: not at all; the neighbours are the objects with the nearest
        codes, vectors or features. "projected": by the distance between the vectors that enter the last step of the
        pipeline, scaled to length 1; the search keeps these vectors. "kernel": by the kernel or distance of the
        encoder's first step. You can also give another kernel or distance; wrap a function of your own that compares
        two objects: a distance in `similia.distances.FromFunction`, a similarity in `similia.pairwise`. The search
        keeps the objects if it compares them by a kernel or distance, or if `encoder` is a `FeatureIndex`. A kernel k
        defines the distance ``sqrt(k(x, x) + k(y, y) - 2 k(x, y))``.
    n_candidates : int, default=100
        Number of candidates that are compared with a query; not used if `rerank` is None.
    index : HammingIndex or None, default=None
        Index with as many bits as the codes. A clone of it searches the codes; None means exact search.

    Attributes
    ----------
    encoder_ : transformer
        The fitted encoder.
    index_ : HammingIndex, VectorIndex or FeatureIndex
        The index of the codes, of the vectors or of the objects' features.
    trials_ : list of dict
        Only for ``encoder="auto"``: one dict for each method of finding candidates and each number of candidates that
        was tried. Its keys are ``candidates`` (name of the method), ``n_candidates``, ``recall`` (mean share of the
        true neighbours that are among the candidates) and ``operations`` (estimated number of operations that find the
        candidates of a query among all objects). Empty for up to 10 objects: nothing is measured then.
    ids_ : ndarray of int64, shape (n,)
        Ids of the objects, in the order they were added.
    objects_ : collection of n objects, or None
        The objects in the order of `ids_`; the method `objects` returns them by id. None if `rerank` is None or
        "projected", unless `encoder` is a `FeatureIndex`.
    vectors_ : ndarray of float32, shape (n, n_features), or None
        The vectors that ``rerank="projected"`` compares, scaled to length 1; None for any other `rerank`.

    Examples
    --------
    >>> import similia as sm
    >>> from sklearn.pipeline import make_pipeline
    >>> words = ["kitten", "mitten", "bitten", "sitting", "knitting", "fitting", "saturday", "sunday"]
    >>> encoder = make_pipeline(
    ...     sm.Nystroem(sm.kernels.Spectrum(k=2), n_components=8, random_state=0),
    ...     sm.SignRandomProjection(64, random_state=0),
    ... )
    >>> search = sm.SimilaritySearch(encoder, rerank=sm.distances.Levenshtein(), n_candidates=5).fit(words)
    >>> distances, ids = search.kneighbors(["smitten", "sundry"], n_neighbors=1)
    >>> search.objects(ids[:, 0]).tolist(), distances[:, 0]
    (['mitten', 'sunday'], array([1., 1.]))
    """

    _known: Known | None = None
    _order: Index | int | None = None  # sorts `ids_`, or the first of consecutive ids; None if this is not known
    _plan: OneQuery | None = None

    def __init__(
        self, encoder: Any, rerank: Any = None, *, n_candidates: int = 100, index: HammingIndex | None = None
    ) -> None:
        self.encoder = encoder
        self.rerank = rerank
        self.n_candidates = n_candidates
        self.index = index

    @all_at_once
    def fit(self, X: Any, y: Any = None, *, ids: Any = None) -> Self:
        """Fit the encoder, and replace all objects of the search with the objects of `X`.

        Parameters
        ----------
        X : collection of n objects
        y : array-like, optional
            Passed to the encoder.
        ids : array-like of int, shape (n,), optional
            Ids of the objects: distinct; by default 0 to n - 1.
        """
        metric = self._check()
        if is_lazy(X):
            remedy = "encode it with encoder.fit(X).transform(X), and search the codes with similia.scale.ShardedIndex"
            raise BadType(None, "is a Dask collection", "objects in memory", remedy)
        at_least_one(X)
        X, objects = parsed(function_of(self.encoder)[0], metric, X)
        if metric is not None:
            check_direction(metric.function, metric.is_kernel, objects, "rerank")
        if self._automatic:
            assert metric is not None  # `_check` holds this
            self.encoder_, self.trials_ = chosen(objects, metric, self.n_candidates)
        else:
            self.encoder_ = clone(self.encoder)
            self.__dict__.pop("trials_", None)
        if isinstance(self.encoder_, FeatureIndex):
            self.index_ = self.encoder_.emptied(X)
            return self._emptied()._append(X, None, objects, ids)
        if (index := vectors_index(self.encoder_)) is not None:
            V = fitted_vectors(self.encoder_, X, y)
            self.index_ = index.unfilled() if isinstance(self.encoder_, FrozenEstimator) else index.emptied(V)
            return self._emptied()._append(V, unit(V) if self._projected else None, objects, ids)
        codes, vectors = fitted_codes(self.encoder_, X, y, self._projected)
        n_bits = 8 * codes.shape[1]
        self.index_ = HammingIndex(n_bits) if self.index is None else clone(self.index)
        if self.index_.n_bits != n_bits:
            raise ValueError(
                f"index has n_bits={self.index_.n_bits}, but the encoder makes codes of {n_bits} bits; use "
                f"HammingIndex({n_bits})"
            )
        return self._emptied()._append(codes, vectors, objects, ids)

    def _emptied(self) -> Self:
        self.ids_ = np.zeros(0, np.int64)
        self.objects_: Any = None
        self.vectors_: Any = None
        return self

    def add(self, X: Any, ids: Any = None) -> Self:
        """Add objects without refitting the encoder.

        Parameters
        ----------
        X : collection of n objects
        ids : array-like of int, shape (n,), optional
            Ids of the objects: distinct and not yet in use. By default, they continue after the largest id ever used.
        """
        self._check_ready()
        at_least_one(X)
        X, objects = self._parsed(X)
        return self._append(*self._encode(X), objects, ids)

    @exclusively
    @all_at_once
    def remove(self, ids: Any) -> Self:
        """Remove objects by their ids; every id must exist."""
        check_fitted(self, "encoder_")
        ids = check_ids(ids)
        self.index_ = twin_of(self.index_).remove(ids)
        kept = np.flatnonzero(~np.isin(self.ids_, ids))
        self.ids_ = self.ids_[kept]
        self.objects_ = None if self.objects_ is None else take(self.objects_, kept)
        self.vectors_ = None if self.vectors_ is None else self.vectors_[kept]
        self._known = self._order = self._plan = None
        return self

    def objects(self, ids: Any) -> Any:
        """Return objects by their ids.

        Parameters
        ----------
        ids : array-like of int, shape (m,)
            Ids of objects, such as a row of ids from `kneighbors`; an id may occur more than once.
        """
        check_fitted(self, "encoder_")
        ids = as_ids(ids)
        if self.objects_ is None:
            raise ValueError(
                f"the search keeps no objects, since rerank={self.rerank!r} needs none; look the ids up in your data"
            )
        now = present(self)
        wanted = ids.astype(np.int64)  # uint64 would be compared as float64; what is too large becomes negative
        unknown = ~np.isin(wanted, now.ids_)
        if unknown.any():
            raise ValueError(f"there is no object with the id {ids[np.argmax(unknown)]}")
        return take(now.objects_, now._rows(wanted))

    def kneighbors(
        self, X: Any, n_neighbors: int = 10, return_distance: bool = True, *, return_similarity: bool = False
    ) -> Any:
        """Find the nearest objects of each query.

        Parameters
        ----------
        X : collection of q objects
            Queries.
        n_neighbors : int, default=10
            Number of neighbours: at most the number of objects and, unless `rerank` is None, at most `n_candidates`.
        return_distance : bool, default=True
            Whether to return distances as well as ids.
        return_similarity : bool, default=False
            Whether to return kernel values (cosines for ``rerank="projected"``) instead of distances; the ids stay the
            same. Raises ValueError if `rerank` is None or a distance.

        Returns
        -------
        distances : ndarray of float64, shape (q, n_neighbors)
            Ascending: the distances that `rerank` defines or, if it is None, those of `index_`, such as Hamming
            distances between codes. With `return_similarity`, similarities take their place. With neither
            `return_distance` nor `return_similarity`, only `ids` is returned.
        ids : ndarray of int64, shape (q, n_neighbors)
            Ids of the neighbours, ascending where distances are equal.
        """
        now = present(self)
        plan = now._held_plan()
        metric = now._check_ready(return_similarity) if plan is None or return_similarity else plan.metric
        k = now._check_k(n_neighbors)

        def nearest(block: Any) -> tuple[Any, Index]:
            distances, similarities, ids = now._nearest(block, k, metric, plan)
            return similarities if return_similarity else distances, ids

        return in_blocks(X, nearest, return_distance or return_similarity)

    def radius_neighbors(
        self, X: Any, radius: float, return_distance: bool = True, *, return_similarity: bool = False
    ) -> Any:
        """Find the objects within a radius of each query.

        Unless `rerank` is None, only the `n_candidates` candidates of a query are compared; other objects within the
        radius are missed.

        Parameters
        ----------
        X : collection of q objects
            Queries.
        radius : float
            Largest distance, >= 0.
        return_distance, return_similarity : bool
            As in `kneighbors`.

        Returns
        -------
        distances, ids : object arrays of shape (q,)
            One array for each query, ordered as in `kneighbors`; all are empty if the search has no objects. With
            `return_similarity`, similarities replace distances; with neither option, only `ids` is returned.
        """
        now = present(self)
        plan, metric = now._held_plan(), now._check_ready(return_similarity)
        check_radius(radius)

        def within(block: Any) -> tuple[Any, Any]:
            if not len(now.ids_):
                n = n_objects(block)
                return ragged([np.empty(0)] * n), ragged([np.empty(0, np.int64)] * n)
            if now.rerank is None:
                return now.index_.radius_neighbors(now._encode(block)[0], radius)
            distances, similarities, ids = now._nearest(block, min(now.n_candidates, len(now.ids_)), metric, plan)
            ends = [int(np.searchsorted(row, radius, "right")) for row in distances]
            return ragged(similarities if return_similarity else distances, ends), ragged(ids, ends)

        return in_blocks(X, within, return_distance or return_similarity)

    def recall(self, X: Any, n_neighbors: int = 10, *, metric: Any = "kernel", objects: Any = None) -> Recall:
        """Measure the share of true neighbours that the search finds, and the time per query.

        Parameters
        ----------
        X : collection of q objects
            Queries. With a hundred queries, the standard error of the recall is a few percent.
        n_neighbors : int, default=10
            Number k of neighbours.
        metric : "kernel", "projected", or a kernel or distance of similia, default="kernel"
            What defines the true neighbours. "kernel": the kernel or distance of `rerank` or, if `rerank` has none, of
            the encoder's first step. "projected": the distance between the vectors kept for ``rerank="projected"``. If
            the first step has no kernel or distance, as is usual for vectors, pass
            ``similia.kernels.Cosine("projection")`` or ``similia.distances.FromFunction(scipy.spatial.distance.cdist,
            pairwise=True)``.
        objects : collection of n objects, optional
            The objects in the order they were added; required if the search keeps no objects (`objects_` is None).

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
            Numbers of candidates to try; numbers below `n_neighbors` are left out.

        Returns
        -------
        dict of int to Recall
            For each number of candidates, the recall of the search and the times that `recall` measures.
        """
        check_fitted(self, "encoder_")
        if self.rerank is None:
            raise ValueError("rerank=None compares no candidates, so there is no curve; use recall")
        counts = [check_positive_int(c, "n_candidates") for c in n_candidates if c >= n_neighbors]
        if not counts:
            raise ValueError(f"n_candidates={n_candidates!r} has no number of at least n_neighbors={n_neighbors}")
        return dict(zip(counts, measured_recall(self, X, n_neighbors, metric, objects, counts), strict=True))

    def save(self, folder: str | os.PathLike[str], overwrite: bool = False) -> Path:
        """Write the search with its objects to a folder and return the path.

        The command ``similia index`` can open the folder, too.

        Parameters
        ----------
        folder : str or path
            A new or empty folder; with `overwrite`, also a folder that holds a search.
        overwrite : bool, default=False
            Whether to replace an existing search; if writing fails, the old one stays. Two kinds of search are never
            replaced: a search made by the command ``similia index``, because the record of the files that were added
            would be lost; and a search to which `similia.search.SearchFolder` added objects with names, because
            these names would be lost.
        """
        from similia.search.on_disk import save_search

        check_fitted(self, "encoder_")
        return save_search(self, folder, overwrite)

    @classmethod
    def load(cls, folder: str | os.PathLike[str], mmap: bool = False) -> SimilaritySearch:
        """Read a search that `save` or the command ``similia index`` wrote.

        If `mmap` is True, codes stay on disk and are read only when a query needs them.
        """
        from similia.search.on_disk import SearchFolder

        return SearchFolder.open(folder).load(mmap)

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the table that `fit` saw; exists only if `fit` saw a table."""
        check_fitted(self, "encoder_")
        return int(self.encoder_.n_features_in_)

    @property
    def feature_names_in_(self) -> npt.NDArray[Any]:
        """Names of the columns of the table that `fit` saw; exists only if all of these names are strings."""
        check_fitted(self, "encoder_")
        names: npt.NDArray[Any] = self.encoder_.feature_names_in_
        return names

    def __len__(self) -> int:
        return len(self.ids_) if hasattr(self, "ids_") else 0

    def __getstate__(self) -> dict[str, Any]:
        return _for_copies(super().__getstate__())

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(_for_copies(state))

    # ---- private
    @property
    def _projected(self) -> bool:
        return isinstance(self.rerank, str) and self.rerank == "projected"

    @property
    def _automatic(self) -> bool:
        return isinstance(self.encoder, str) and self.encoder == "auto"

    @property
    def _keeps_objects(self) -> bool:
        return self._metric() is not None or isinstance(self.encoder_, FeatureIndex)

    def _metric(self) -> Metric | None:
        """Return the kernel or distance that reranks candidates; None if `rerank` is None or "projected"."""
        return None if self.rerank is None or self._projected else as_metric(self.rerank, self.encoder, "rerank")

    def _check(self) -> Metric | None:
        """Raise if a parameter is invalid or contradicts another; return the result of `_metric`."""
        if self._automatic and (self.rerank is None or isinstance(self.rerank, str)):
            raise ValueError(
                f"encoder='auto' needs the kernel or distance that compares objects, got rerank={self.rerank!r}; give "
                "it, such as rerank=similia.distances.Levenshtein()"
            )
        indexed = isinstance(self.encoder, FeatureIndex) or vectors_index(self.encoder) is not None
        if not self._automatic and not indexed:
            check_encoder(self.encoder)
        elif self.index is not None:
            how = "ends with an index of its own" if indexed else "is 'auto', which makes one"
            raise ValueError(f"index searches packed bits, but the encoder {how}; leave index out")
        check_positive_int(self.n_candidates, "n_candidates")
        if self.index is not None and not isinstance(self.index, HammingIndex):
            raise TypeError(f"index must be a HammingIndex, got {self.index!r}")
        if self._projected and not (isinstance(self.encoder, Pipeline) and len(self.encoder) > 1):
            raise ValueError(
                f"rerank='projected' compares the vectors before the last step of a pipeline, got {self.encoder!r}"
            )
        return self._metric()

    def _check_ready(self, similarity: bool = False) -> Metric | None:
        """Raise if the search is not fitted, lacks what `rerank` compares, or cannot give a requested `similarity`.

        Return the result of `_metric`.
        """
        check_fitted(self, "encoder_")
        metric = self._check()
        missing = "vectors" if self._projected and self.vectors_ is None else ""
        missing = "objects" if metric is not None and self.objects_ is None else missing
        if missing and len(self.ids_):
            raise ValueError(f"rerank is now {self.rerank!r}, which compares {missing} that were not kept; fit again")
        if similarity and not (self._projected if metric is None else metric.is_kernel):
            raise ValueError(
                f"return_similarity needs rerank='projected' or a kernel, but rerank={self.rerank!r} gives distances"
            )
        return metric

    def _check_k(self, n_neighbors: int) -> int:
        k = check_positive_int(n_neighbors, "n_neighbors")
        if k > len(self.ids_):
            raise ValueError(f"n_neighbors={k} is more than the {len(self.ids_)} objects; ask for fewer, or add more")
        if self.rerank is not None and k > self.n_candidates:
            raise ValueError(
                f"n_neighbors={k} is more than the n_candidates={self.n_candidates} that rerank compares; use "
                f"set_params(n_candidates={10 * k}), which needs no new fit"
            )
        return k

    def _check_columns(self, X: Any, metric: Metric | None) -> None:
        """Raise if `metric` would compare a data frame with a table of other columns, or in another order."""
        if metric is not None and hasattr(X, "columns") and hasattr(self, "feature_names_in_"):
            check_columns(self, X, reset=False)

    def _parsed(self, X: Any) -> tuple[Any, Any]:
        metric = self._metric()
        self._check_columns(X, metric)
        return parsed(function_of(self.encoder)[0], metric, X)

    @exclusively
    @all_at_once
    def _append(self, codes: Any, vectors: Any, objects: Any, ids: Any) -> Self:
        objects = objects if self._keeps_objects else None
        if objects is not None and self.objects_ is not None:
            objects = concatenate([self.objects_, objects])  # raises for incompatible objects, before codes are added
        if vectors is not None and self.vectors_ is not None:
            vectors = np.concatenate([self.vectors_, vectors])
        self.index_ = twin_of(self.index_).add(codes, ids)
        self.ids_ = np.concatenate([self.ids_, self.index_.ids[len(self.ids_) :]])
        self.objects_, self.vectors_ = objects, vectors
        self._known = self._order = None
        self._plan = OneQuery(self, self._metric())
        return self

    def _encode(self, X: Any) -> tuple[Any, npt.NDArray[np.float32] | None]:
        return encoded(self.encoder_, X, self._projected)

    def _held_plan(self) -> OneQuery | None:
        plan = self._plan
        return plan if plan is not None and plan.holds(self) else None

    def _nearest(
        self, X: Any, k: int, metric: Metric | None, plan: OneQuery | None = None
    ) -> tuple[Floats, Floats | None, Index]:
        """Return distances, similarities (or None) and ids of the `k` nearest objects, compared as `rerank` says."""
        if n_objects(X) == 1:
            if plan is None:
                plan = self._plan = OneQuery(self, metric)
            return plan.nearest(self, X, k)
        X, objects = self._parsed(X)
        codes, vectors = self._encode(X)
        if self.rerank is None:
            distances, ids = self.index_.kneighbors(codes, k)
            return distances.astype(np.float64), None, ids
        _, ids = self.index_.kneighbors(codes, min(self.n_candidates, len(self.ids_)))
        rows = self._rows(ids)
        values, similarities = (
            by_angle(vectors, self.vectors_, rows) if metric is None else self._compared(metric, objects, rows)
        )
        order = sorted_candidates(values, ids)[:, :k]
        place = np.arange(len(order))[:, None], order  # faster than `numpy.take_along_axis`
        return values[place], None if similarities is None else similarities[place], ids[place]

    def _compared(self, metric: Metric, X: Any, rows: Index) -> tuple[Floats, Floats | None]:
        """Return the distances and the kernel values (None for a distance) between queries and candidates.

        Row i of `rows` holds the positions of query i's candidates.
        """
        known = self._known
        if known is None or not known.fits(metric):
            known = self._known = Known(metric, self.objects_)
        return known.compared(X, self.objects_, rows)

    def _rows(self, ids: Index) -> Index:
        order = self._order
        if order is None:
            order = self._order = order_of(self.ids_)
        return ids - order if isinstance(order, int) else positions(ids, self.ids_, order)


def _for_copies(state: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in state.items() if name not in (*_CACHED, "_lock")}


class Recall(NamedTuple):
    """Recall and speed of a search, as `SimilaritySearch.recall` returns them.

    Attributes
    ----------
    recall : float
        Share of the k results of a query that are correct, averaged over the queries. A result is correct if it is no
        farther from the query than the true k-th nearest neighbour, so ties count as correct.
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
    search: Any, X: Any, n_neighbors: int, metric: Any, objects: Any, n_candidates: Sequence[int] = ()
) -> list[Recall]:
    """Return the recall and speed of a search at each number of candidates, as `SimilaritySearch.recall` documents."""
    projected = isinstance(metric, str) and metric == "projected"
    between = _by_vectors(search, X) if projected else _by_metric(search, X, metric, objects)
    answers, seconds = [], []
    for c in n_candidates or (search.n_candidates,):
        one = twin_of(search)
        one.n_candidates = c
        one.kneighbors(take(X, [0, min(1, n_objects(X) - 1)]), n_neighbors)  # compile before timing
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
