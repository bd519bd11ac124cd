"""Nearest objects by explicit features, exactly: an inverted index of k-mers, colours of nodes, fingerprints and such.

For each feature, a list names the objects that have it. The lists of a query's features yield, for every object, the
sum of minima or products of the features of query and object, and so their distance; `_feature_index` says how most
objects are ruled out. Objects are kept in segments; small ones are merged, so that adding an object costs O(log n) on
average.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone

from similia.core.errors import BadType, BadValue
from similia.core.estimators import all_at_once, check_fitted, detached, twin_of
from similia.core.state import Check, Sizes, array, count, optional, state
from similia.core.threads import exclusively, lock_of, run_in_ranges
from similia.core.validation import check_positive_int, check_radius
from similia.kernels import Intersection, MinMax, Normalized, Sum
from similia.kernels.counts import Counts, FeatureKernel, check_alike, number_ids
from similia.objects.sequences import at_least_one, offsets_of, segments
from similia.search.metric import ragged, within_radius
from similia.search.scan import best
from similia.similarity import check_kernel, compared, decided, diagonal
from similia.sources.dask import is_lazy
from similia.storage.store import Ids, check_ids, count_on

_FAR_ID = 2**63 - 1
_QUERIES_OF_A_THREAD = 4
_EXACT = 2**24  # whole numbers up to here are exact in single precision
_OWN = np.uint64(2**64 - 1)  # id of a feature that counts in k(x, x) only; no query shares it with an object
Floats = npt.NDArray[np.float64]


class Segment(NamedTuple):
    """Objects in ascending order of size, with their inverted lists; `_feature_index` describes the arrays."""

    features: npt.NDArray[np.uint64]  # ids of the features, ascending
    starts: Ids
    rows: npt.NDArray[np.int32]
    amounts: npt.NDArray
    tops: Floats
    limits: Ids
    held: npt.NDArray[np.int32]
    counts: npt.NDArray
    sizes: Floats
    ids: Ids
    dead: npt.NDArray[np.bool_]
    whole: bool  # whether all counts are whole numbers, and all sizes below 2**24

    @classmethod
    def of(cls, counts: Counts, ids: Ids, least: bool) -> Segment:
        from similia.search import _feature_index as loops

        distinct, numbers = number_ids(counts.ids)
        by_id = np.argsort(distinct)
        place = np.empty(len(distinct), np.int32)
        place[by_id] = np.arange(len(distinct), dtype=np.int32)
        byte = counts._whole and float(counts.values.max(initial=0.0)) < 256
        values = counts.values.astype(np.uint8) if byte else counts.values
        shape = (len(counts), len(distinct))
        matrix = sp.csr_array((values, place[numbers], counts.offsets), shape=shape)
        matrix.sort_indices()
        sizes = loops.own_sums(matrix.indptr.astype(np.int64), matrix.data, least)
        order = np.argsort(sizes, kind="stable")
        matrix, sizes = matrix[order], sizes[order]
        lists = matrix.tocsc()
        starts, limits = lists.indptr.astype(np.int64), matrix.indptr.astype(np.int64)
        tops = np.maximum.reduceat(lists.data, starts[:-1]).astype(np.float64) if len(distinct) else np.empty(0)
        amounts = lists.data if byte else _rounded_up(lists.data)
        arrays = (
            distinct[by_id], starts, lists.indices.astype(np.int32), amounts, tops, limits,
            matrix.indices.astype(np.int32), matrix.data, sizes, ids[order],
        )  # fmt: skip
        for one in arrays:  # as memory maps are, so that loops are compiled for one type
            one.flags.writeable = False
        whole = counts._whole and float(sizes.max(initial=0.0)) < _EXACT
        return cls(*arrays, np.zeros(len(ids), np.bool_), whole)

    def alive(self) -> tuple[Counts, Ids]:
        """Return the features and ids of the objects that are not removed."""
        kept = np.flatnonzero(~self.dead)
        at, limits = segments(self.limits, kept)
        return Counts(limits, self.features[self.held[at]], self.counts[at].astype(np.float64)), self.ids[kept]


def _rounded_up(values: Floats) -> npt.NDArray[np.float32]:
    with np.errstate(over="ignore"):  # infinity is an upper bound, too
        single = values.astype(np.float32)
    return np.where(single < values, np.nextafter(single, np.float32(np.inf)), single)


@state(kernel="kernel", kernel_="kernel", compared_="texts", width_=optional(count()), next_id_=count())
class FeatureIndex(BaseEstimator):
    r"""Find the nearest objects by the features of a kernel, exactly, with an inverted index.

    The distance is that of the kernel k, :math:`\sqrt{k(x, x) + k(y, y) - 2 k(x, y)}`. For each feature, the index
    holds a list of the objects that have it. A query reads the lists of its own features. Lower bounds of the
    distances, computed from the features, let it skip most of the objects that are too far away. Often it also skips
    the longest lists, which belong to frequent features. The cost therefore grows with the number of objects that share
    the rarer features of the query.

    A `SimilaritySearch` can use a `FeatureIndex` as its `encoder`. The search then takes the objects nearest by their
    features as candidates, and sorts the candidates by any kernel or distance.

    Parameters
    ----------
    kernel : kernel with explicit, non-negative features
        ``MinMax(counts)`` for the generalised Jaccard similarity (`similia.kernels.MinMax`), where ``counts`` is a
        kernel that counts substructures, such as ``Spectrum(3)``. ``MinMax()`` for the Tanimoto similarity of
        fingerprints, which are rows of a matrix of 0 and 1. Other choices are ``Intersection(counts)``, or ``counts``
        itself, such as ``Spectrum(3, normalize=True)`` for the cosine.

    Attributes
    ----------
    kernel_ : kernel
        Copy of `kernel` made by `fit`. Settings that depend on the objects have the values that `fit` chose.
    ids : ndarray of int64, shape (n,)
        Ids of the objects, in the order they were added.

    See Also
    --------
    HammingIndex : Packed bits, by Hamming distance.

    Notes
    -----
    Neighbours are ordered by distance, then by id, and do not depend on the order of adding, on threads or on
    ``config(max_memory=...)``. If all features are whole numbers, distances equal those computed from the kernel, bit
    for bit. Memory: 10 bytes for each feature of each object if features are whole numbers below 256, otherwise 20.

    References
    ----------
    Turtle & Flood, "Query evaluation: strategies and optimizations", Information Processing & Management 31, 1995,
    Section 4 (MaxScore). Swamidass & Baldi, "Bounds and algorithms for fast exact searches of chemical fingerprints in
    linear and sublinear time", JCIM 47, 2007, Section 2 (bounds by size).

    Examples
    --------
    >>> import similia as sm
    >>> words = ["kitten", "mitten", "bitten", "sitting", "saturday", "sunday"]
    >>> index = sm.search.FeatureIndex(sm.kernels.MinMax(sm.kernels.Spectrum(2))).fit(words)
    >>> distances, ids = index.kneighbors(["smitten"], n_neighbors=2)
    >>> ids
    array([[1, 0]])
    """

    _segments: list[Segment]
    _ids: Ids
    next_id_: int

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel

    @exclusively
    @all_at_once
    def fit(self, X: Any, y: Any = None, *, ids: Any = None) -> Self:
        """Replace the contents of the index by these objects.

        Parameters
        ----------
        X : collection of n objects
        y : None
            Ignored.
        ids : array-like of int, shape (n,), optional
            Distinct, >= 0; by default 0 to n - 1.
        """
        return self.emptied(X)._append(self._counted(X), ids)

    @exclusively
    @all_at_once
    def add(self, X: Any, ids: Any = None) -> Self:
        """Add objects.

        Parameters
        ----------
        X : collection of n objects
        ids : array-like of int, shape (n,), optional
            Distinct, >= 0, not in the index; by default they continue after the largest id ever used.
        """
        check_fitted(self, "kernel_")
        return self._append(self._counted(X), ids)

    @exclusively
    @all_at_once
    def remove(self, ids: Any) -> Self:
        """Remove objects by their ids; every id must exist."""
        check_fitted(self, "kernel_")
        ids = check_ids(ids)
        unknown = ~np.isin(ids, self._ids)
        if unknown.any():
            raise ValueError(f"id {ids[np.argmax(unknown)]} is not in the index, so it cannot be removed")
        left = []
        for segment in self._segments:
            segment = segment._replace(dead=segment.dead | np.isin(segment.ids, ids))
            if 2 * np.count_nonzero(segment.dead) > len(segment.dead):
                counts, kept = segment.alive()
                segment = Segment.of(counts, kept, self._least)
            if len(segment.ids):
                left.append(segment)
        self._segments, self._ids = left, self._ids[~np.isin(self._ids, ids)]
        return self

    def kneighbors(self, X: Any, n_neighbors: int = 10, return_distance: bool = True) -> Any:
        """Find the nearest objects of each query, ordered by distance, then id.

        Parameters
        ----------
        X : collection of q objects
            Queries.
        n_neighbors : int, default=10
            Number k of neighbours, at most the number of objects.
        return_distance : bool, default=True
            Whether to return distances as well as ids.

        Returns
        -------
        distances : ndarray of float64, shape (q, k)
            Ascending; only if `return_distance`.
        ids : ndarray of int64, shape (q, k)
            Ascending where distances are equal.
        """
        k = check_positive_int(n_neighbors, "n_neighbors")
        queries = self._counted(X)
        with lock_of(self).reading():
            if k > len(self):
                raise ValueError(f"n_neighbors={k} is more than the {len(self)} objects in the index; ask for fewer")
            distances, found = self._nearest(queries, k)
        return (distances, found) if return_distance else found

    def radius_neighbors(self, X: Any, radius: float, return_distance: bool = True) -> Any:
        """Find all objects within a radius of each query.

        Parameters
        ----------
        X : collection of q objects
            Queries.
        radius : float
            Largest distance, >= 0.
        return_distance : bool, default=True
            Whether to return distances as well as ids.

        Returns
        -------
        distances, ids : object arrays of shape (q,)
            One array for each query, ordered as in `kneighbors`; only `ids` unless `return_distance`.
        """
        radius, queries = check_radius(radius), self._counted(X)
        with lock_of(self).reading():
            near = within_radius(
                lambda some, k: self._nearest(_of_some(queries, some), k), len(queries), len(self), radius
            )
        distances, found = map(ragged, near)
        return (distances, found) if return_distance else found

    @property
    def ids(self) -> Ids:
        """Ids of all objects, int64 (n,)."""
        check_fitted(self, "kernel_")
        return self._ids

    def __len__(self) -> int:
        return len(self._ids) if hasattr(self, "kernel_") else 0

    def __getstate__(self) -> dict[str, Any]:
        with lock_of(self).reading():
            state = {name: value for name, value in vars(self).items() if not name.startswith("_")}
            if hasattr(self, "kernel_"):
                parts = [segment.alive() for segment in self._segments]
                counts = Counts.concatenate([_no_counts(), *(part for part, _ in parts)])
                ids = np.concatenate([np.empty(0, np.int64), *(ids for _, ids in parts)])
                counts = _of_some(counts, np.argsort(ids)[np.argsort(np.argsort(self._ids))])
                state |= {"limits_": counts.offsets, "features_": counts.ids, "counts_": counts.values}
                state["ids_"] = self._ids
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        made = (*_ARRAYS, "ids_")
        self.__dict__.update({k: v for k, v in state.items() if not k.startswith("_") and k not in made})
        if "limits_" in state:
            counts = _checked(state)
            self._read()
            self._segments, self._ids = [], check_ids(state["ids_"], len(counts))
            if len(self._ids):
                self._segments = [Segment.of(counts, self._ids, self._least)]

    # ---- used by searches of objects
    def emptied(self, X: Any) -> Self:
        """Remove all objects from this index and return the index.

        `X` determines settings that depend on the objects, such as the number of columns. Its objects are not added.
        """
        check_kernel(self.kernel)
        if is_lazy(X):
            raise BadType(None, "is a Dask collection", "objects in memory", "call X.compute(), or take a sample")
        self.kernel_ = detached(decided(self.kernel, X))
        self._read()
        objects = self._features_of.as_objects(X)
        self.compared_ = compared(self.kernel_, objects)
        self.width_ = int(objects.shape[1]) if self._features_of.kernel is None else None
        self._segments, self._ids, self.next_id_ = [], np.empty(0, np.int64), 0
        return self

    def segment(self) -> Segment:
        """Return all objects of this index, which must not be empty, as one ``Segment`` (ids and inverted lists)."""
        with lock_of(self).reading():
            if len(self._segments) == 1 and not self._segments[0].dead.any():
                return self._segments[0]
            parts = [one.alive() for one in self._segments]
        counts = Counts.concatenate([Counts(part.offsets, part.ids, part.values) for part, _ in parts])
        return Segment.of(counts, np.concatenate([ids for _, ids in parts]), self._least)

    def holding(self, kept: list[tuple[Segment, Ids]], X: Any, ids: Ids, next_id: int) -> Self:
        """Return a new index that holds the objects with the given `ids`, in this order.

        The new index has the settings of this index, which must be empty. An index stores its objects in groups, each a
        ``Segment``. Each pair in the list `kept` holds a segment of another index and ids of objects in this segment;
        the new index takes over these objects. `X` holds the objects with the remaining `ids`. `next_id` is greater
        than all ids ever used.
        """
        index = twin_of(self)
        index._segments = [segment._replace(dead=~np.isin(segment.ids, alive)) for segment, alive in kept]
        index._ids = np.concatenate([np.empty(0, np.int64), *(alive for _, alive in kept)])
        index.next_id_ = next_id
        rest = ids[~np.isin(ids, index._ids)]
        if len(rest):
            index._append(index._counted(X), rest)
        index._ids = ids
        return index

    def entries(self, X: Any) -> float:
        """Return the total length of the lists of a query's features, averaged over the queries `X`."""
        counts = self._counted(X)
        limits, ids, values = _by_id(counts)
        with lock_of(self).reading():
            known = [(one, _known(one.features, limits, ids, values)[1]) for one in self._segments]
        return sum(int((one.starts[at + 1] - one.starts[at]).sum()) for one, at in known) / len(counts)

    # ---- private
    def _read(self) -> None:
        self._how, self._least, self._features_of = _reading(self.kernel_)

    def _counted(self, X: Any) -> Counts:
        """Return the features of objects."""
        check_fitted(self, "kernel_")
        at_least_one(X)
        objects = self._features_of.as_objects(X)
        check_alike(self.kernel_, compared(self.kernel_, objects), self.compared_, "X", "the objects of the index")
        if self.width_ is not None and objects.shape[1] != self.width_:
            raise BadValue(None, f"has {objects.shape[1]} columns", f"{self.width_}, as the objects of the index have")
        counts: Counts = self._features_of.counted(objects)
        kernel = self._features_of.kernel
        return counts if self._least or not _normalises(kernel) else _completed(counts, diagonal(kernel, objects))

    def _append(self, counts: Counts, ids: Any) -> Self:
        ids = count_on(self.next_id_, len(counts)) if ids is None else check_ids(ids, len(counts))
        known = np.isin(ids, self._ids) if ids.min() < self.next_id_ else np.zeros(1, bool)
        if known.any():
            raise ValueError(f"id {ids[np.argmax(known)]} is in the index already; remove it first")
        parts, left, n = [(counts, ids)], [*self._segments], len(ids)
        while left and len(left[-1].ids) <= 2 * n:
            parts.insert(0, left.pop().alive())
            n += len(parts[0][1])
        together = Counts.concatenate([Counts(part.offsets, part.ids, part.values) for part, _ in parts])
        left.append(Segment.of(together, np.concatenate([some for _, some in parts]), self._least))
        self._segments, self._ids = left, np.concatenate([self._ids, ids])
        self.next_id_ = max(self.next_id_, int(ids.max()) + 1)
        return self

    def _nearest(self, queries: Counts, k: int) -> tuple[Floats, Ids]:
        """Return the distances and ids of the `k` nearest objects of each query, both (q, k)."""
        from similia.search import _feature_index as loops

        q = len(queries)
        distances, found = np.full((q, k), np.inf), np.full((q, k), _FAR_ID)
        limits, ids, values = _by_id(queries)
        owns = loops.own_sums(limits, values, self._least)
        whole = queries._whole and float(owns.max(initial=0.0)) < _EXACT
        for segment in self._segments:
            offsets, columns, amounts = _known(segment.features, limits, ids, values)

            def search(
                first: int, last: int, segment: Any = segment, query: Any = (offsets, columns, amounts, owns)
            ) -> None:
                how = self._how, self._least, whole and segment.whole
                loops.search_segment(*query, *how, *segment[1:-1], distances, found, first, last)

            run_in_ranges(search, q, _QUERIES_OF_A_THREAD)
        return best([(distances, found)], k)


_ARRAYS: dict[str, Check] = {
    "limits_": array("i8", None), "features_": array("u8", "n"), "counts_": array("f8", "n"),
}  # fmt: skip


def _checked(state: dict[str, Any]) -> Counts:
    """Return the features in the state of an index; raise if they do not fit each other."""
    sizes: Sizes = {}
    fits = all(check(state.get(name), sizes) for name, check in _ARRAYS.items())
    if fits:
        limits, counts = state["limits_"], state["counts_"]
        fits = len(limits) > 0 and limits[0] == 0 and limits[-1] == len(counts)
        fits = fits and bool((np.diff(limits) >= 0).all() and (counts > 0).all())
    if not fits:
        raise ValueError("a FeatureIndex holds features that do not fit each other")
    return Counts(limits, state["features_"], counts)


def _reading(kernel: Any) -> tuple[int, bool, MinMax]:
    """Return how sums of features become distances, whether they are of minima, and a `MinMax` that reads features."""
    from similia.search import _feature_index as loops

    if isinstance(kernel, MinMax):
        return loops.MINMAX, True, kernel
    how = loops.COSINE if getattr(kernel, "normalize", False) or isinstance(kernel, Normalized) else loops.PLAIN
    if isinstance(kernel, Intersection):
        return how, True, MinMax(kernel.kernel)
    if isinstance(kernel, Normalized):
        return how, False, MinMax(kernel.kernel)
    if isinstance(kernel, FeatureKernel):
        return how, False, MinMax(clone(kernel).set_params(normalize=False))
    return loops.PLAIN, False, MinMax(kernel)


def _normalises(kernel: Any) -> bool:
    """Return whether a kernel or a part of it is normalised, so that k(x, x) is 1 also if x has no features."""
    parts = kernel.get_params().values() if isinstance(kernel, Sum | Normalized) else ()
    return any(isinstance(part, Normalized) or getattr(part, "normalize", False) for part in (kernel, *parts))


def _completed(counts: Counts, own: Floats) -> Counts:
    """Return features whose products add up to `own`, k(x, x): objects that lack some get the feature `_OWN`."""
    from similia.search import _feature_index as loops

    rest = own - loops.own_sums(counts.offsets, counts.values, False)
    lacking = rest > 1e-6 * own  # not by rounding, of float32 at the worst
    ends, values = counts.offsets[1:][lacking], np.sqrt(rest[lacking])
    offsets = offsets_of(np.diff(counts.offsets) + lacking)
    return Counts(offsets, np.insert(counts.ids, ends, _OWN), np.insert(counts.values, ends, values))


def _no_counts() -> Counts:
    return Counts(np.zeros(1, np.int64), np.empty(0, np.uint64), np.empty(0))


def _by_id(counts: Counts) -> tuple[Ids, npt.NDArray[np.uint64], Floats]:
    """Return the offsets, ids and values of features, those of an object in ascending order of ids."""
    order = np.lexsort((counts.ids, np.repeat(np.arange(len(counts)), np.diff(counts.offsets))))
    return counts.offsets, counts.ids[order], counts.values[order]


def _known(features: npt.NDArray[np.uint64], limits: Ids, ids: Any, values: Floats) -> tuple[Ids, Ids, Floats]:
    """Return offsets, positions among `features` and values of those features of queries that a segment has."""
    place = np.minimum(np.searchsorted(features, ids), max(0, len(features) - 1))
    known = (features[place] == ids) & (ids != _OWN) if len(features) else np.zeros(len(ids), np.bool_)
    return offsets_of(known)[limits], place[known], values[known]


def _of_some(counts: Counts, objects: Ids) -> Counts:
    """Return the features of the objects at some positions."""
    at, limits = segments(counts.offsets, objects)
    return Counts(limits, counts.ids[at], counts.values[at])
