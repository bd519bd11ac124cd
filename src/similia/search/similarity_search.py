"""Search of any objects: an encoder makes bits of them, the nearest codes are a shortlist, which is sorted once more.

Cost of a query among n objects: its code, n n_bits / 64 operations on words (``kind="exact"``), and
`n_candidates` values of the kernel or distance. Source of the protocol: Yun, Kim & Choi, "Hashing with generalized
Nyström approximation", ICDM 2012, Section IV (100 candidates, sorted by their projected vectors).
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import joblib
import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from similia.core.config import rows_per_block
from similia.core.errors import part_from
from similia.core.fitting import all_at_once, twin_of
from similia.core.locks import exclusively, lock_of
from similia.core.products import chosen_products
from similia.core.progress import track
from similia.core.threads import heard
from similia.core.validation import check_codes, check_encoder, check_positive_int
from similia.objects import concatenate, n_objects, take
from similia.objects.sequences import at_least_one
from similia.search.hamming_index import HammingIndex
from similia.search.metric import Index, Metric, as_metric, shares_found, sorted_candidates
from similia.sources.lazily import is_lazy

_QUERIES = 512  # answered together


class Recall(NamedTuple):
    """How much of the true neighbourhood a search finds, and what that took.

    Attributes
    ----------
    recall : float
        Mean share of the k answers that are no farther than the true k-th neighbour.
    standard_error : float
        Of the mean over queries.
    seconds : float
        For one query, of `SimilaritySearch.search`.
    brute_force_seconds : float
        For one query, of comparing it with all objects.
    """

    recall: float
    standard_error: float
    seconds: float
    brute_force_seconds: float


@dataclass
class _Known:
    """What is kept between searches for speed; copies and files leave it out."""

    function: str  # hash of the kernel or distance
    metric: Metric  # with what it leaves to the data decided by all objects
    n_asked: int = 0  # candidates so far
    features: dict[str, Any] | None = None  # of all objects


class SimilaritySearch(BaseEstimator):
    """Find the objects most like a query: encode, compare bits, sort the best candidates once more.

    Parameters
    ----------
    encoder : transformer of objects to packed bits
        Usually a pipeline such as ``make_pipeline(Nystroem(kernel, 256), SignRandomProjection(256))``. `fit` fits
        a clone; one that is fitted already stays as it is inside ``sklearn.frozen.FrozenEstimator``.
    rerank : None, "projected", "kernel", or a kernel or distance of similia, default=None
        How the candidates are sorted: by their Hamming distances alone; by the cosine between the vectors that
        the last step of the pipeline makes bits of (kept for each object; the objects are not needed); by the
        kernel or distance of the encoder's first step, or a given one (the objects are kept). By a kernel whose values
        grow with the size of objects the largest are the nearest of many; ``Normalized(kernel)`` compares regardless
        of size.
    n_candidates : int, default=100
        Objects with the nearest codes that are sorted once more, if `rerank`.
    index : HammingIndex or None, default=None
        How codes are searched, with the `n_bits` of the encoder's codes; None is an exact `HammingIndex`. A clone is
        used.

    Attributes
    ----------
    encoder_ : fitted encoder
    index_ : HammingIndex
    ids_ : ndarray of int64, shape (n,)
        Of the objects, in the order they were added.
    objects_ : collection of n objects, or None
        In the order of `ids_`, which is not that of ids once some were removed: `objects` looks ids up. Kept where a
        kernel or distance sorts the candidates.
    vectors_ : ndarray of float32, shape (n, n_features), or None
        Of length 1, kept for ``rerank="projected"``.
    higher_is_better : bool
        Whether scores are similarities (cosines, kernel values) or distances.

    Raises
    ------
    TypeError
        In `fit`, if the encoder has no ``transform``, as classifiers and kernels have none.
    ValueError
        In `fit`, if the encoder makes no packed bits or bits of another number than `index`, or `rerank` names what the
        encoder does not have; in `search`, if fewer than k objects were added, or `rerank` was changed after `fit` to
        what needs objects or vectors that were not kept.

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
    >>> ids, distances = search.search(["smitten", "sundry"], k=1)
    >>> search.objects(ids[:, 0]).tolist(), distances[:, 0]
    (['mitten', 'sunday'], array([1., 1.]))
    """

    _known: _Known | None = None

    def __init__(
        self,
        encoder: Any,
        rerank: Any = None,
        *,
        n_candidates: int = 100,
        index: HammingIndex | None = None,
    ) -> None:
        self.encoder = encoder
        self.rerank = rerank
        self.n_candidates = n_candidates
        self.index = index

    @all_at_once
    def fit(self, X: Any, y: Any = None, *, ids: Any = None) -> Self:
        """Fit the encoder to objects and add them.

        Parameters
        ----------
        X : collection of n objects
        y : array-like, optional
            Passed to the encoder.
        ids : array-like of int, shape (n,), optional
            Distinct; 0, 1, 2, ... if not given.

        Returns
        -------
        SimilaritySearch
            Itself.
        """
        self._check()
        if is_lazy(X):
            raise TypeError(
                "X is a Dask collection, expected objects that are here; encoder.fit(X).transform(X) makes codes, "
                "which similia.scale.ShardedIndex searches"
            )
        at_least_one(X)
        encoder = clone(self.encoder).fit(X, y)
        n_bits = code_length(encoder, X)
        index = HammingIndex(n_bits) if self.index is None else clone(self.index)
        if index.n_bits != n_bits:
            raise ValueError(
                f"index has n_bits={index.n_bits}, but the encoder makes codes of {n_bits} bits; give it that number"
            )
        self.encoder_, self.index_ = encoder, index
        self.ids_ = np.zeros(0, np.int64)
        self.objects_: Any = None
        self.vectors_: Any = None
        return self._add(X, ids)

    def add(self, X: Any, ids: Any = None) -> Self:
        """Add objects; the encoder stays as it is.

        Parameters
        ----------
        X : collection of n objects
        ids : array-like of int, shape (n,), optional
            Distinct, and not in use; counted on from the largest if not given.

        Returns
        -------
        SimilaritySearch
            Itself.
        """
        check_is_fitted(self, "encoder_")
        at_least_one(X)
        return self._add(X, ids)

    @exclusively
    @all_at_once
    def remove(self, ids: Any) -> Self:
        """Remove objects by their ids, all of which must be there.

        Returns
        -------
        SimilaritySearch
            Itself.
        """
        check_is_fitted(self, "encoder_")
        self.index_ = twin_of(self.index_).remove(ids)
        kept = np.flatnonzero(~np.isin(self.ids_, ids))
        self.ids_ = self.ids_[kept]
        self.objects_ = None if self.objects_ is None else take(self.objects_, kept)
        self.vectors_ = None if self.vectors_ is None else self.vectors_[kept]
        self._known = None
        return self

    def objects(self, ids: Any) -> Any:
        """Return objects by their ids.

        Parameters
        ----------
        ids : array-like of int, shape (m,)
            Ids of objects, such as a row of what `search` returns; one may come twice.

        Returns
        -------
        collection of m objects

        Raises
        ------
        ValueError
            If an id is unknown, or the objects are not kept (`objects_` is None).
        """
        check_is_fitted(self, "encoder_")
        ids = np.asarray(ids)
        if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
            raise ValueError(f"ids must be a 1-D array of integers, got dtype {ids.dtype} and shape {ids.shape}")
        if self.objects_ is None:
            raise ValueError(
                f"the objects were not kept, since rerank={self.rerank!r} needs none; look ids up among your own"
            )
        with lock_of(self).reading():
            unknown = ~np.isin(ids, self.ids_)
            if unknown.any():
                raise ValueError(f"there is no object with the id {ids[np.argmax(unknown)]}")
            return take(self.objects_, self._rows(ids.astype(np.int64)))

    def search(self, X: Any, k: int = 10) -> tuple[Index, npt.NDArray[np.float64]]:
        """Return the objects most like each query, best first; the smaller id first among equals.

        Ids come first, then scores; `HammingIndex.kneighbors`, as in scikit-learn, returns distances first.

        Parameters
        ----------
        X : collection of q objects
        k : int, default=10

        Returns
        -------
        ids : ndarray of int64, shape (q, k)
        scores : ndarray of float64, shape (q, k)
            What they were sorted by: Hamming distances (``rerank=None``), cosines, kernel values or distances.
        """
        check_is_fitted(self, "encoder_")
        self._check_kept()
        k = self._check_k(k)
        q = at_least_one(X)
        ids, scores = np.empty((q, k), np.int64), np.empty((q, k))
        starts = range(0, q, _QUERIES)
        for start in track(starts, "queries", len(starts)):
            rows = slice(start, min(q, start + _QUERIES))
            block = X if len(starts) == 1 else take(X, np.arange(rows.start, rows.stop))
            with part_from(start):
                ids[rows], scores[rows] = self._answer(block, k)
        return ids, scores

    def recall(self, X: Any, k: int = 10, *, metric: Any = "kernel", objects: Any = None) -> Recall:
        """Measure recall against comparing each query with all objects.

        Parameters
        ----------
        X : collection of q objects
            Queries, a hundred or more for a standard error of a few percent.
        k : int, default=10
        metric : "kernel", or a kernel or distance of similia, default="kernel"
            What true neighbours are the nearest by; "kernel" is what `rerank` names, else that of the encoder's first
            step. An encoder of vectors has none: give ``similia.kernels.Cosine("projection")``, or
            ``similia.distances.FromFunction(scipy.spatial.distance.cdist, pairwise=True)``.
        objects : collection of n objects, optional
            The objects in the order they were added; needed where they are not kept (`objects_` is None).

        Returns
        -------
        Recall
            A named tuple: ``recall``, the mean share of the k answers that are no farther than the true k-th neighbour
            (ties are not held against them); ``standard_error`` of that mean; ``seconds`` for one query of
            `search`; ``brute_force_seconds`` for comparing one query with all objects.

        Raises
        ------
        ValueError
            If there is nothing to compare by, or the objects are neither kept nor given.
        """
        check_is_fitted(self, "encoder_")
        kept = self.objects_ if objects is None else objects
        if kept is None or n_objects(kept) != len(self.ids_):
            found = "none are kept" if kept is None else f"{n_objects(kept)} are given"
            raise ValueError(f"recall compares queries with all {len(self.ids_)} objects, but {found}; give objects=")
        own = self._metric() if isinstance(metric, str) and metric == "kernel" else None
        true = own or as_metric(metric, self.encoder, "metric")
        self.search(take(X, [0]), k)  # what is compiled at first use
        start = time.perf_counter()
        rows = self._rows(self.search(X, k)[0])
        between = time.perf_counter()
        shares = _measured_shares(true, X, kept, rows)
        end = time.perf_counter()
        q = len(rows)
        error = float(shares.std(ddof=1) / np.sqrt(q)) if q > 1 else float("nan")
        return Recall(float(shares.mean()), error, (between - start) / q, (end - between) / q)

    def save(self, folder: str | os.PathLike[str], overwrite: bool = False) -> Path:
        """Write the search with its objects to a folder, which ``similia index`` opens too.

        Parameters
        ----------
        folder : str or path
            New or empty, or that of a search if `overwrite`.
        overwrite : bool, default=False
            Whether to replace the search that is there. The new one is written beside it first, so that the old one
            stays if writing fails. A folder with names of objects, or one that ``similia index`` made, is refused: a
            search has neither the names nor the record of the files that were added.

        Returns
        -------
        pathlib.Path
            `folder`.

        Raises
        ------
        ValueError
            If the folder holds a search and `overwrite` is False, if it holds anything else, if overwriting
            would lose names or the record of files, or if the encoder holds what a file may not contain (see
            `similia.save`).
        """
        from similia.search.on_disk import save_search

        check_is_fitted(self, "encoder_")
        return save_search(self, folder, overwrite)

    @classmethod
    def load(cls, folder: str | os.PathLike[str], mmap: bool = False) -> SimilaritySearch:
        """Read what `save` or ``similia index`` wrote; codes are left on disk and mapped if `mmap`."""
        from similia.search.on_disk import SearchFolder

        return SearchFolder.open(folder).load(mmap)

    @property
    def higher_is_better(self) -> bool:
        """Whether scores are similarities, not distances."""
        metric = self._metric()
        return self._projected if metric is None else metric.is_kernel

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the table seen in `fit`; there is none for other objects."""
        check_is_fitted(self, "encoder_")
        return int(self.encoder_.n_features_in_)

    @property
    def feature_names_in_(self) -> npt.NDArray[Any]:
        """Names of these columns; there are none unless all are text."""
        check_is_fitted(self, "encoder_")
        names: npt.NDArray[Any] = self.encoder_.feature_names_in_
        return names

    def __len__(self) -> int:
        return len(self.ids_) if hasattr(self, "ids_") else 0

    def __getstate__(self) -> dict[str, Any]:
        return _for_copies(super().__getstate__())

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(_for_copies(state))

    # ---- parts
    @property
    def _projected(self) -> bool:
        return isinstance(self.rerank, str) and self.rerank == "projected"

    def _metric(self) -> Metric | None:
        """Return the kernel or distance that candidates are sorted by, if one is."""
        return None if self.rerank is None or self._projected else as_metric(self.rerank, self.encoder, "rerank")

    def _check(self) -> None:
        """Raise if parameters do not fit together, before work is done."""
        check_encoder(self.encoder)
        check_positive_int(self.n_candidates, "n_candidates")
        if self.index is not None and not isinstance(self.index, HammingIndex):
            raise TypeError(f"index must be a HammingIndex, got {self.index!r}")
        if self._projected and not (isinstance(self.encoder, Pipeline) and len(self.encoder) > 1):
            raise ValueError(
                f"rerank='projected' sorts by the vectors before the last step of a pipeline, got {self.encoder!r}"
            )
        self._metric()

    def _check_kept(self) -> None:
        """Raise if `rerank` was changed after `fit` to what needs something that was not kept."""
        self._check()
        missing = "vectors" if self._projected and self.vectors_ is None else ""
        missing = "objects" if self._metric() is not None and self.objects_ is None else missing
        if missing and len(self.ids_):
            raise ValueError(f"rerank is now {self.rerank!r}: fit again, the {missing} that it compares were not kept")

    def _add(self, X: Any, ids: Any) -> Self:
        self._check_kept()
        metric = self._metric()
        X = X if metric is None else metric.as_objects(X)
        codes, vectors = self._encode(X)
        objects = None if metric is None else X
        return self._append(codes, vectors, objects, ids)

    @exclusively
    @all_at_once
    def _append(self, codes: Any, vectors: Any, objects: Any, ids: Any) -> Self:
        if objects is not None and self.objects_ is not None:
            objects = concatenate([self.objects_, objects])  # before codes are added: it raises if they do not fit
        if vectors is not None and self.vectors_ is not None:
            vectors = np.concatenate([self.vectors_, vectors])
        self.index_ = twin_of(self.index_).add(codes, ids)
        self.ids_ = np.concatenate([self.ids_, self.index_.ids[len(self.ids_) :]])
        self.objects_, self.vectors_ = objects, vectors
        self._known = None
        return self

    def _encode(self, X: Any) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.float32] | None]:
        """Return packed codes and, if these are sorted by, the vectors they are made of, scaled to length 1."""
        if not self._projected:
            return check_codes(self.encoder_.transform(X), "the encoder's output"), None
        V = np.asarray(self.encoder_[:-1].transform(X))
        norms = np.linalg.norm(V, axis=1, keepdims=True)
        unit = (V / np.where(norms > 0, norms, 1.0)).astype(np.float32)
        return check_codes(self.encoder_[-1].transform(V), "the encoder's output"), unit

    def _check_k(self, k: int) -> int:
        k = check_positive_int(k, "k")
        if k > len(self.ids_):
            raise ValueError(f"k is {k}, but there are {len(self.ids_)} objects; ask for fewer, or add more")
        if self.rerank is not None and k > self.n_candidates:
            raise ValueError(
                f"k is {k}, more than the n_candidates={self.n_candidates} that are sorted once more; "
                f"set_params(n_candidates={10 * k}) takes effect at once"
            )
        return k

    def _answer(self, X: Any, k: int) -> tuple[Index, npt.NDArray[Any]]:
        metric = self._metric()
        X = X if metric is None else metric.as_objects(X)
        codes, vectors = self._encode(X)
        with lock_of(self).reading():
            return self._sorted(metric, X, codes, vectors, k)

    def _sorted(self, metric: Metric | None, X: Any, codes: Any, vectors: Any, k: int) -> tuple[Index, Any]:
        """Return ids and scores of the best k candidates of each query."""
        if self.rerank is None:
            distances, ids = self.index_.kneighbors(codes, k)
            return ids, distances
        _, ids = self.index_.kneighbors(codes, min(self.n_candidates, len(self.ids_)))
        rows = self._rows(ids)
        if metric is not None:
            values = self._of_candidates(metric, X, rows)
        else:
            if vectors is None or vectors.shape[1:] != self.vectors_.shape[1:]:
                raise ValueError(f"vectors_ has shape {self.vectors_.shape}, but not the encoder's vectors; fit again")
            values = chosen_products(self.vectors_, rows, vectors)
        order = sorted_candidates(values, ids, self.higher_is_better)[:, :k]
        return np.take_along_axis(ids, order, axis=1), np.take_along_axis(values, order, axis=1)

    def _of_candidates(self, metric: Metric, X: Any, rows: Index) -> npt.NDArray[np.floating]:
        """Return the values of queries and their candidates; what the metric leaves to the data all objects decide.

        Features of objects are counted once, as soon as as many candidates were asked for as there are objects.
        """
        function = joblib.hash(metric.function)  # set_params may name another one at any time
        known = self._known
        if known is None or known.function != function:
            known = self._known = _Known(function, metric.decided(self.objects_))
        known.n_asked += rows.size
        if known.features is None and known.n_asked >= len(self.ids_):
            known.features = known.metric.kept(self.objects_)
        return known.metric.of_candidates(X, self.objects_, rows, known.features)

    def _rows(self, ids: Index) -> Index:
        """Return the positions of ids among the objects."""
        if (self.ids_[1:] > self.ids_[:-1]).all():  # unless ids were given in another order
            return np.searchsorted(self.ids_, ids)
        order = np.argsort(self.ids_, kind="stable")
        return order[np.searchsorted(self.ids_, ids.ravel(), sorter=order)].reshape(ids.shape)


def _for_copies(state: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in state.items() if name not in ("_known", "_lock")}


def code_length(encoder: Any, X: Any) -> int:
    """Return the number of bits that a fitted encoder makes of an object, or raise if it makes none."""
    with heard():  # what is said of one object will be said of all
        codes = encoder.transform(take(X, [0]))
    return 8 * check_codes(codes, "the encoder's output").shape[1]


def _measured_shares(metric: Metric, X: Any, objects: Any, rows: Index) -> npt.NDArray[np.float64]:
    """Return `shares_found` of answers, all distances being computed in blocks of queries."""
    queries, objects = metric.as_objects(X), metric.as_objects(objects)
    shares, sign = np.empty(len(rows)), -1.0 if metric.is_kernel else 1.0
    step = rows_per_block(16 * n_objects(objects), at_most=64)
    for start in range(0, len(rows), step):
        block = np.arange(start, min(len(rows), start + step))
        shares[block] = shares_found(sign * metric.between(take(queries, block), objects), rows[block])
    return shares
