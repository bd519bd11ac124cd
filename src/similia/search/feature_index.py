"""Nearest objects by explicit features, exactly: an inverted index of k-mers, colours of nodes, fingerprints and such.

The lists of a query's features yield, for every object, the sum of minima or products of the features of query and
object, and so their distance. Objects are kept in segments; small ones are merged, so that adding an object costs
O(log n) on average.

A segment holds rows in ascending order of size, k(x, x) of the features. The list of feature f is the entries
``starts[f]`` to ``starts[f + 1]`` of `rows` (ascending) and `amounts`. Row r has the features (ascending) and counts
``limits[r]`` to ``limits[r + 1]`` of `held` and `counts`.

Blocks of rows are visited outwards from the query's own size, until the sizes alone rule out every row beyond
(`_nearest_at_size`). Within a block, the lists of the query add to one number for each row, and only rows that reach
the `_needed` sum are compared. The longest lists are left out as long as their features together add at most a share
of the needed sum (MaxScore): a row that they alone hold cannot reach it, and the few that may are summed from their own
features. That share shrinks if such sums take longer than the lists, and grows otherwise; it has no effect on results.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone

from similia.core.config import exclusively, lock_of, run_in_ranges
from similia.core.estimators import all_at_once, check_fitted, detached, is_lazy, twin_of
from similia.core.jit import njit
from similia.core.state import Check, Sizes, array, count, state
from similia.core.validation import BadType, Ids, check_ids, check_positive_int, check_radius, count_on
from similia.kernels import Intersection, MinMax, Normalized, Sum
from similia.kernels.counts import Counts, FeatureKernel, check_alike, number_ids
from similia.objects.sequences import at_least_one, offsets_of, segments
from similia.search.answers import ragged, within_radius
from similia.search.scan import best, replace_last
from similia.similarity import check_kernel, compared, decided, diagonal, read_objects

MINMAX, COSINE, PLAIN = 0, 1, 2  # how a sum of minima or products becomes a kernel value
_BLOCK, _CHUNK = 2**13, 64  # rows in a block, whose sums fit the cache, and rows whose greatest sum is tested first
_SHARE = 0.2  # of the needed sum that features of left-out lists may add, at first
_SLACK = 1e-9  # relative: for the rounding of bounds
_LEAST = 2.0**-1022  # smaller products lose digits
_ROUNDED = 2.0**-22  # relative: for the rounding of one single-precision sum
_FAR_ID = 2**63 - 1
_QUERIES_OF_A_THREAD = 4
_EXACT = 2**24  # whole numbers up to here are exact in single precision
_OWN = np.uint64(2**64 - 1)  # id of a feature that counts in k(x, x) only; no query shares it with an object
Floats = npt.NDArray[np.float64]
_ARRAYS: dict[str, Check] = {
    "limits_": array("i8", None), "features_": array("u8", "n"), "counts_": array("f8", "n"),
}  # fmt: skip


@njit()
def ascend(offsets, places):  # type: ignore[no-untyped-def]
    """Return whether ``places[offsets[i] : offsets[i + 1]]`` ascend for each i, without equal ones."""
    for i in range(len(offsets) - 1):
        for t in range(offsets[i] + 1, offsets[i + 1]):
            if places[t] <= places[t - 1]:
                return False
    return True


@njit()
def own_sums(offsets, values, least):  # type: ignore[no-untyped-def]
    """Return each object's sum of minima (`least`) or products with itself, added in the order of its entries."""
    sums = np.zeros(len(offsets) - 1)
    for i in range(len(sums)):
        for t in range(offsets[i], offsets[i + 1]):
            value = np.float64(values[t])
            sums[i] += value if least else value * value
    return sums


@njit()
def _geometric_mean(a, b):  # type: ignore[no-untyped-def]
    """Return the square root of a b, where the product may be too large or too small for float64."""
    product = a * b
    return math.sqrt(product) if _LEAST < product < np.inf else math.sqrt(a) * math.sqrt(b)


@njit()
def distance_of(how, total, own, other):  # type: ignore[no-untyped-def]
    """Return the distance of two objects, given the sum of their features and that of each with itself."""
    if how == PLAIN:
        return math.sqrt(max(own + other - 2 * total, 0.0))
    scale = own + other - total if how == MINMAX else _geometric_mean(own, other)
    return math.sqrt(max(2.0 - 2 * (total / scale if scale > 0 else total), 0.0))


@njit()
def _needed(how, worst, own, low):  # type: ignore[no-untyped-def]
    """Return a lower bound on the sum that makes a row of size `low` or more no farther than `worst`."""
    if worst == np.inf:
        return -1.0
    if how == PLAIN:
        return (own + low - worst * worst) / 2 - _SLACK * (own + low)
    value = 1 - worst * worst / 2
    if value <= _SLACK:
        return 0.0
    return (1 - _SLACK) * value * ((own + low) / (1 + value) if how == MINMAX else _geometric_mean(own, low))


@njit()
def _nearest_at_size(how, least, own, low, high):  # type: ignore[no-untyped-def]
    """Return a lower bound on the distance of any row of a size from `low` to `high`."""
    other = min(max(own, low), high)
    if least:
        return (1 - _SLACK) * distance_of(how, min(own, other), own, other) - _SLACK
    return (1 - _SLACK) * abs(math.sqrt(own) - math.sqrt(other)) if how == PLAIN else 0.0


@njit()
def _total(columns, values, first, last, held, counts, start, stop, least):  # type: ignore[no-untyped-def]
    """Return the sum of minima or products of a query's features `first` to `last` - 1 and a row's own features."""
    total = 0.0
    while first < last and start < stop:
        if columns[first] < held[start]:
            first += 1
        elif columns[first] > held[start]:
            start += 1
        else:
            value = np.float64(counts[start])
            total += min(values[first], value) if least else values[first] * value
            first += 1
            start += 1
    return total


@njit()
def _first_at_least(rows, low, high, row):  # type: ignore[no-untyped-def]
    """Return the first position from `low` to `high` whose row is `row` or more; rows ascend."""
    while low < high:
        middle = (low + high) // 2
        if rows[middle] < row:
            low = middle + 1
        else:
            high = middle
    return low


@njit()
def search_segment(  # type: ignore[no-untyped-def]
    offsets, columns, values, owns, how, least, whole, starts, rows, amounts, tops, limits, held, counts, sizes, ids,
    dead, distances, found, first_query, last_query,
):  # fmt: skip
    """Replace entries of the heaps ``distances[i], found[i]`` by nearer rows of a segment, for some queries i.

    Query i has the features ``offsets[i]`` to ``offsets[i + 1]`` of `columns` and `values`, and the size ``owns[i]``.
    `whole` says that all sums are whole numbers that single precision holds.
    """
    sums = np.zeros(_BLOCK + 1, np.float32)
    for i in range(first_query, last_query):
        _search(
            columns[offsets[i] : offsets[i + 1]], values[offsets[i] : offsets[i + 1]], owns[i], how, least, whole,
            starts, rows, amounts, tops, limits, held, counts, sizes, ids, dead, distances[i], found[i], sums,
        )  # fmt: skip


@njit()
def _search(  # type: ignore[no-untyped-def]
    columns, values, own, how, least, whole, starts, rows, amounts, tops, limits, held, counts, sizes, ids, dead,
    distances, found, sums,
):  # fmt: skip
    n, m = len(sizes), len(columns)
    most, length = np.empty(m), np.empty(m, np.int64)  # of each list: what it adds at most, and its entries
    for t in range(m):
        top = tops[columns[t]]
        most[t] = min(values[t], top) if least else values[t] * top
        length[t] = starts[columns[t] + 1] - starts[columns[t]]
    order = np.argsort(-length)
    n_blocks = (n + _BLOCK - 1) // _BLOCK
    up = min(np.searchsorted(sizes, own) // _BLOCK, n_blocks - 1)
    down = up - 1
    above, below = np.empty(m, np.int64), np.empty(m, np.int64)  # places in the lists
    for t in range(m):
        above[t] = _first_at_least(rows, starts[columns[t]], starts[columns[t] + 1], up * _BLOCK)
        below[t] = above[t]
    share, mean_length = _SHARE, (len(held) // max(1, n)) + m
    while True:
        near_up = near_down = np.inf
        if up < n_blocks:
            near_up = _nearest_at_size(how, least, own, sizes[up * _BLOCK], sizes[min(n, (up + 1) * _BLOCK) - 1])
        if down >= 0:
            near_down = _nearest_at_size(how, least, own, sizes[down * _BLOCK], sizes[(down + 1) * _BLOCK - 1])
        upward = near_up <= near_down and up < n_blocks
        if min(near_up, near_down) > distances[0] or (up >= n_blocks and down < 0):
            return
        block = up if upward else down
        if upward:
            up += 1
        else:
            down -= 1
        first, last = block * _BLOCK, min(n, (block + 1) * _BLOCK)
        need = _needed(how, distances[0], own, sizes[first])
        if need > most.sum():
            continue
        skipped, left_out = _left_out(order, most, share * need)
        saved = _add_lists(
            order, skipped, columns, values, least, starts, rows, amounts, above if upward else below, upward, first,
            last, sums, whole,
        )  # fmt: skip
        exact = whole and skipped == 0
        compared = _compare_rows(
            columns, values, own, how, least, exact, left_out, m, limits, held, counts, sizes, ids, dead, distances,
            found, sums, first, last,
        )  # fmt: skip
        if skipped:
            spent, saved = compared * mean_length, saved * (last - first) // n
            if 2 * spent > saved:
                share /= 2
            elif 8 * spent < saved:
                share = min(0.9, 1.25 * share)


@njit()
def _left_out(order, most, limit):  # type: ignore[no-untyped-def]
    """Return how many of the first lists in `order` add at most `limit` together, and what they add."""
    skipped, total = 0, 0.0
    while skipped < len(order) and total + most[order[skipped]] <= limit:
        total += most[order[skipped]]
        skipped += 1
    return skipped, total


@njit()
def _add_lists(  # type: ignore[no-untyped-def]
    order, skipped, columns, values, least, starts, rows, amounts, places, upward, first, last, sums, whole
):  # fmt: skip
    """Add the lists to the sums of the rows `first` to `last` - 1, but for the first ones in `order`.

    Return the number of entries in the lists left out.
    """
    saved = 0
    for s in range(len(order)):
        t = order[s]
        start, stop = starts[columns[t]], starts[columns[t] + 1]
        if s < skipped:
            saved += stop - start
            continue
        value = np.float32(values[t])
        if np.float64(value) < values[t]:
            value = np.nextafter(value, np.float32(np.inf))
        begin, end = _entries_of_block(rows, start, stop, places[t], upward, first, last)
        places[t] = end if upward else begin
        _add(sums, rows[begin:end], amounts[begin:end], value, least, whole, np.uint64(first))
    return saved


@njit()
def _entries_of_block(rows, start, stop, at, upward, first, last):  # type: ignore[no-untyped-def]
    """Return the first and the last + 1 of the entries of a list with rows from `first` to `last` - 1.

    The list is ``rows[start:stop]``, walked `upward` or downwards from the place `at`. It may have been left out of the
    blocks before; then the walk jumps to this one.
    """
    if upward:
        if at < stop and rows[at] < first:
            at = _first_at_least(rows, at, stop, first)
        return at, _end_of_block(rows, at, stop, last)
    if at > start and rows[at - 1] >= last:
        at = _first_at_least(rows, start, at, last)
    return _first_at_least(rows, start, at, first), at


@njit()
def _end_of_block(rows, low, high, row):  # type: ignore[no-untyped-def]
    """Return the first position from `low` to `high` whose row is `row` or more, which is near `low`."""
    step = 1
    while low + step < high and rows[low + step] < row:
        low += step
        step *= 2
    return _first_at_least(rows, low, min(low + step, high), row)


@njit()
def _add(sums, rows, amounts, value, least, whole, first):  # type: ignore[no-untyped-def]
    """Add a list to the sums; unsigned positions spare a test of their sign."""
    if least and whole and value <= 1:  # no count is less
        for at in range(len(rows)):
            sums[np.uint64(rows[at]) - first] += value
    elif least:
        for at in range(len(rows)):
            sums[np.uint64(rows[at]) - first] += min(value, np.float32(amounts[at]))
    else:
        for at in range(len(rows)):
            sums[np.uint64(rows[at]) - first] += value * np.float32(amounts[at])


@njit()
def _compare_rows(  # type: ignore[no-untyped-def]
    columns, values, own, how, least, exact, left_out, m, limits, held, counts, sizes, ids, dead, distances, found,
    sums, first, last,
):  # fmt: skip
    """Compare the rows whose sums may suffice, set all sums to 0, and return how many were summed again."""
    bits = sums.view(np.int32)  # sums are no less than 0, so these numbers have the same order
    rounding = 1.0 if exact else 1 - (m + 2) * _ROUNDED
    again = 0
    need = _needed(how, distances[0], own, sizes[first])
    cut = _as_bits(sums, (need - left_out) * rounding)
    for begin in range(0, last - first, _CHUNK):
        end = min(begin + _CHUNK, last - first)
        greatest = bits[begin]
        for j in range(begin, end):
            greatest = max(greatest, bits[j])
        if greatest >= cut:
            for j in range(begin, end):
                row = first + j
                if bits[j] < cut or dead[row]:
                    continue
                total = np.float64(sums[j])
                if not exact:
                    total = _total(columns, values, 0, m, held, counts, limits[row], limits[row + 1], least)
                    again += 1
                distance = distance_of(how, total, own, sizes[row])
                if distance < distances[0] or (distance == distances[0] and ids[row] < found[0]):
                    replace_last(distances, found, distance, ids[row])
                    need = _needed(how, distances[0], own, sizes[first])
                    cut = _as_bits(sums, (need - left_out) * rounding)
        sums[begin:end] = 0
    return again


@njit()
def _as_bits(sums, value):  # type: ignore[no-untyped-def]
    """Return the bits of `value` in single precision, rounded down, or 0 if it is negative; the last sum is scratch."""
    single = np.float32(value)
    if np.float64(single) > value:
        single = np.nextafter(single, np.float32(-np.inf))
    sums[-1] = max(single, np.float32(0.0))
    return sums.view(np.int32)[-1]


class Segment(NamedTuple):
    """Objects in ascending order of size, with their inverted lists; the head of this file describes the arrays."""

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
        distinct, numbers = number_ids(counts.ids)
        by_id = np.argsort(distinct)
        place = np.empty(len(distinct), np.int32)
        place[by_id] = np.arange(len(distinct), dtype=np.int32)
        byte = counts._whole and float(counts.values.max(initial=0.0)) < 256
        values = counts.values.astype(np.uint8) if byte else counts.values
        shape = (len(counts), len(distinct))
        matrix = sp.csr_array((values, place[numbers], counts.offsets), shape=shape)
        matrix.sort_indices()
        sizes = own_sums(matrix.indptr.astype(np.int64), matrix.data, least)
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

    @classmethod
    def merged(cls, parts: list[tuple[Counts, Ids]], least: bool) -> Segment:
        counts = Counts.concatenate([Counts(part.offsets, part.ids, part.values) for part, _ in parts])
        return cls.of(counts, np.concatenate([ids for _, ids in parts]), least)

    def alive(self) -> tuple[Counts, Ids]:
        """Return the features and ids of the objects that are not removed."""
        kept = np.flatnonzero(~self.dead)
        at, limits = segments(self.limits, kept)
        return Counts(limits, self.features[self.held[at]], self.counts[at].astype(np.float64)), self.ids[kept]


def _rounded_up(values: Floats) -> npt.NDArray[np.float32]:
    with np.errstate(over="ignore"):  # infinity is an upper bound, too
        single = values.astype(np.float32)
    return np.where(single < values, np.nextafter(single, np.float32(np.inf)), single)


@state(
    may_lack=["n_features_in_"], kernel="kernel", kernel_="kernel", compared_="texts", next_id_=count(),
    n_features_in_=count(least=1),
)  # fmt: skip
class FeatureIndex(BaseEstimator):
    r"""Find the nearest objects exactly, with an inverted index of the features of a kernel, such as substrings.

    The distance between objects x and y is defined by the kernel k: :math:`\sqrt{k(x, x) + k(y, y) - 2 k(x, y)}`. For
    each feature, the index holds a list of the objects that have it. A query reads the lists of its own features. The
    index computes lower bounds of the distances from the features, and so skips most of the objects that are too far
    away. Often it also skips the longest lists, which belong to frequent features. The cost therefore grows with the
    number of objects that share the rarer features of the query.

    A `SimilaritySearch` can use a `FeatureIndex` as its `encoder`. The candidates of the search are then the objects
    with the nearest features; any kernel or distance can sort these candidates.

    Parameters
    ----------
    kernel : kernel with explicit, non-negative features
        ``MinMax(counts)`` is the generalised Jaccard similarity (`similia.kernels.MinMax`), where ``counts`` is a
        kernel that counts substructures, such as ``Spectrum(3)``. ``MinMax()`` is the Tanimoto similarity of
        fingerprints, which are rows of a matrix of 0 and 1. Other choices are ``Intersection(counts)`` and ``counts``
        itself; for example, ``Spectrum(3, normalize=True)`` is the cosine of the counts.

    Attributes
    ----------
    kernel_ : kernel
        Copy of `kernel` made by `fit`. Settings that depend on the objects have the values that `fit` chose.
    ids : ndarray of int64, shape (n,)
        Ids of the objects, in the order they were added.
    n_features_in_ : int
        Number of columns; set only for tables of numbers.
    feature_names_in_ : ndarray of str
        Names of the columns; set only for data frames of numbers whose column names are all strings.

    See Also
    --------
    HammingIndex : Nearest packed bits by Hamming or Jaccard distance.

    Notes
    -----
    Neighbours are ordered by distance, then by id. They do not depend on the order in which objects were added, on
    threads or on ``config(max_memory=...)``. If all features are integers, the distances equal, bit for bit, the
    distances computed from the kernel. Memory: 10 bytes for each feature of each object if features are integers below
    256, otherwise 20 bytes.

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
        """Replace the contents of the index with the objects of `X`.

        Parameters
        ----------
        X : collection of n objects
        y : None
            Ignored.
        ids : array-like of int, shape (n,), optional
            Ids of the objects: distinct and >= 0; by default 0 to n - 1.
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
            Ids of the objects: distinct, >= 0, and not yet in the index. By default, they continue after the largest id
            ever used.
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
            One array for each query, in ascending order of (distance, id). Without `return_distance`, only `ids` is
            returned.
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
                none = Counts(np.zeros(1, np.int64), np.empty(0, np.uint64), np.empty(0))
                counts = Counts.concatenate([none, *(part for part, _ in parts)])
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
        self.compared_ = compared(self.kernel_, read_objects(self, self._features_of, X, reset=True))
        self._segments, self._ids, self.next_id_ = [], np.empty(0, np.int64), 0
        return self

    def segment(self) -> Segment:
        """Return all objects of this index as one ``Segment``; the index must not be empty."""
        with lock_of(self).reading():
            if len(self._segments) == 1 and not self._segments[0].dead.any():
                return self._segments[0]
            parts = [one.alive() for one in self._segments]
        return Segment.merged(parts, self._least)

    def holding(self, kept: list[tuple[Segment, Ids]], X: Any, ids: Ids, next_id: int) -> Self:
        """Return a new index that holds the objects with the given `ids`, in this order.

        The new index has the settings of this index, which must be empty. Each pair in `kept` is a segment of another
        index and the ids of some of its objects, which the new index takes over. `X` holds the objects with the
        remaining `ids`. `next_id` is greater than all ids ever used.
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
        """Return the mean total length of the lists of a query's features, which estimates the cost of a query."""
        counts = self._counted(X)
        limits, ids, values = _by_id(counts)
        with lock_of(self).reading():
            known = [(one, _known(one.features, limits, ids, values)[1]) for one in self._segments]
        return sum(int((one.starts[at + 1] - one.starts[at]).sum()) for one, at in known) / len(counts)

    # ---- private
    def _read(self) -> None:
        self._how, self._least, self._features_of = _reading(self.kernel_)

    def _counted(self, X: Any) -> Counts:
        check_fitted(self, "kernel_")
        at_least_one(X)
        objects = read_objects(self, self._features_of, X, reset=False)
        check_alike(self.kernel_, compared(self.kernel_, objects), self.compared_, "X", "the objects of the index")
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
        left.append(Segment.merged(parts, self._least))
        self._segments, self._ids = left, np.concatenate([self._ids, ids])
        self.next_id_ = max(self.next_id_, int(ids.max()) + 1)
        return self

    def _nearest(self, queries: Counts, k: int) -> tuple[Floats, Ids]:
        """Return the distances and ids of the `k` nearest objects of each query, both (q, k)."""
        q = len(queries)
        distances, found = np.full((q, k), np.inf), np.full((q, k), _FAR_ID)
        limits, ids, values = _by_id(queries)
        owns = own_sums(limits, values, self._least)
        whole = queries._whole and float(owns.max(initial=0.0)) < _EXACT
        for segment in self._segments:
            offsets, columns, amounts = _known(segment.features, limits, ids, values)

            def search(
                first: int, last: int, segment: Any = segment, query: Any = (offsets, columns, amounts, owns)
            ) -> None:
                how = self._how, self._least, whole and segment.whole
                search_segment(*query, *how, *segment[1:-1], distances, found, first, last)

            run_in_ranges(search, q, _QUERIES_OF_A_THREAD)
        return best([(distances, found)], k)


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
    if isinstance(kernel, MinMax):
        return MINMAX, True, kernel
    how = COSINE if getattr(kernel, "normalize", False) or isinstance(kernel, Normalized) else PLAIN
    if isinstance(kernel, Intersection):
        return how, True, MinMax(kernel.kernel)
    if isinstance(kernel, Normalized):
        return how, False, MinMax(kernel.kernel)
    if isinstance(kernel, FeatureKernel):
        return how, False, MinMax(clone(kernel).set_params(normalize=False))
    return PLAIN, False, MinMax(kernel)


def _normalises(kernel: Any) -> bool:
    """Return whether a kernel or a part of it is normalised, so that k(x, x) is 1 also if x has no features."""
    parts = kernel.get_params().values() if isinstance(kernel, Sum | Normalized) else ()
    return any(isinstance(part, Normalized) or getattr(part, "normalize", False) for part in (kernel, *parts))


def _completed(counts: Counts, own: Floats) -> Counts:
    """Return features whose products add up to `own`, k(x, x): objects that lack some get the feature `_OWN`."""
    rest = own - own_sums(counts.offsets, counts.values, False)
    lacking = rest > 1e-6 * own  # not by rounding, of float32 at the worst
    ends, values = counts.offsets[1:][lacking], np.sqrt(rest[lacking])
    offsets = offsets_of(np.diff(counts.offsets) + lacking)
    return Counts(offsets, np.insert(counts.ids, ends, _OWN), np.insert(counts.values, ends, values))


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
    at, limits = segments(counts.offsets, objects)
    return Counts(limits, counts.ids[at], counts.values[at])
