"""Sparse feature counts with 64-bit ids, their exact inner products, and the kernels computed from them.

Three arrays represent the features of n objects: object i has feature ``ids[k]`` with count ``values[k]`` for k in
``offsets[i]:offsets[i + 1]``. Each id has its own column, so inner products are exact. If counts and weights are
integers and sums are below 2**53, an inner product does not depend on block sizes, threads or the order of summation.

If `Counts.least` is set, each feature adds the smaller of its two counts instead of their product (histogram
intersection). A loop over the objects that share a feature adds these minima. If counts are integers, the sum of minima
is also an inner product, of the features (f, 1), ..., (f, c) for each feature f of count c (`Counts.unary`). This inner
product is not used here: on graphs of molecules it takes as long as the loop, and on graphs of thousands of nodes four
times as long.

Columns of features that many objects share ("dense") are multiplied as a dense matrix, the others ("sparse") as a
sparse one; the split minimises the estimated time. In the loops, ``dense[c]`` is the position of column c among the
dense columns, or -1. Ids are counted and matched in hash tables, which takes a sixth of the time of sorting. A table
has 2**k slots; a slot holds the position of an id in an array, or -1 if it is free.

Most kernels of counts (`CountsKernel`, `FeatureKernel`) are inner products, and so have explicit features.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from similia.core.config import rows_per_block, run_in_ranges
from similia.core.hashing import GOLDEN, combine
from similia.core.jit import njit
from similia.core.validation import BadValue, as_second, called_by_user, check_positive_int
from similia.objects.sequences import named, named_pairs, offsets_of, resolve_pairs
from similia.similarity import Kernel, plain_parameters

Ids = npt.NDArray[np.uint64]
Indices = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_SPARSE_TO_DENSE_COST = 100  # number of dense multiply-adds (in BLAS) that take as long as a sparse one
_ROWS_PER_BLOCK = 1024  # few enough for the cache, and enough that BLAS threads seldom wait for each other
_PAIRS_OF_A_THREAD = 512
_ROWS_OF_A_THREAD = 16
_MOST = 2**31 - 1  # features of count 1 that one matrix may have
_NO_AMOUNTS = np.empty(0)
_ALL_ONES = np.uint64(2**64 - 1)
# A cache of the counts of collections, such as landmarks, that are compared with few objects at a time. It is not in
# the kernels, as they hold parameters only. One assignment replaces an entry, so threads and forks need no lock.
_SLOTS = 16
_EXACT_SQUARE = 2.0**106  # products of squared norms below this bound inner products that are exact
# Slot, from the collection's address -> (weak reference to the collection, type and parameters of the kernel, counts).
_kept: dict[int, tuple[Any, type, dict[str, Any], Counts]] = {}


@dataclass(frozen=True, eq=False)
class Counts:
    """Feature counts of n objects: nnz entries, each with an id, a count and perhaps a weight.

    Attributes
    ----------
    offsets : ndarray of int64, shape (n + 1,)
        The entries of object i are ``offsets[i]:offsets[i + 1]``.
    ids : ndarray of uint64, shape (nnz,)
        Ids of the features. The ids of an object are distinct; their order is arbitrary.
    values : ndarray of float64, shape (nnz,)
        Counts of the features.
    weights : ndarray of float64, shape (nnz,), optional
        Weights of the features in the inner product. Entries with the same id have the same weight.
    least : bool
        Whether two counts of a feature contribute the smaller count instead of their product; see `as_least`.
    """

    offsets: Indices
    ids: Ids
    values: Floats
    weights: Floats | None = None
    least: bool = False

    @classmethod
    def concatenate(cls, parts: Sequence[Counts]) -> Counts:
        """Concatenate the objects of one or more `Counts`, none of which may have weights."""
        if len(parts) == 1:
            return parts[0]
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        offsets = offsets_of(lengths)
        return cls(offsets, np.concatenate([p.ids for p in parts]), np.concatenate([p.values for p in parts]))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def weighted_values(self) -> Floats:
        """Return `values` times `weights`, or `values` if there are no weights."""
        return self.values if self.weights is None else self.values * self.weights

    @cached_property
    def squared_norms(self) -> Floats:
        """Inner product of each object with itself, shape (n,)."""
        if self.least:
            ordered = _in_order(self)
            return _sums(ordered.offsets, ordered.values)
        if self.weights is None and self._whole:
            return _sums_of_squares(self.offsets, self.values)
        products = self.values * self.weighted_values()
        return np.add.reduceat(np.append(products, 0.0), self.offsets[:-1]) * (np.diff(self.offsets) > 0)

    @cached_property
    def _largest_square(self) -> float:
        """The greatest of the `squared_norms`."""
        return float(self.squared_norms.max(initial=0.0))

    @cached_property
    def _whole(self) -> bool:
        """Whether all counts and weights are integers."""
        return all(_are_integers(x) for x in (self.values, self.weights) if x is not None)

    @property
    def _exact(self) -> bool:
        """Whether sums of the values have the same bits in any order: they are integers below 2**53."""
        return self._whole and float(self.values.sum()) < 2**53

    @cached_property
    def unary(self) -> Counts:
        """The features (f, 1), ..., (f, c), each of count 1, for each feature f of integer count c; (f, 1) has id f."""
        if (total := float(self.values.sum())) > _MOST:
            remedy = "scale them down; similia.MinHash and similia.Nystroem(Intersection(...)) make vectors, too"
            raise BadValue(None, f"has counts that add up to {total:.3g}", f"at most {_MOST}", remedy)
        offsets = np.zeros_like(self.offsets)
        ids = np.empty(int(total), np.uint64)
        _expand(self.offsets, self.ids, self.values, offsets, ids)
        return Counts(offsets, ids, np.ones(len(ids)))

    @cached_property
    def _sorted(self) -> Counts:
        """The same counts with the ids of each object in ascending order; `weights` must be None."""
        order = np.lexsort((self.ids, np.repeat(np.arange(len(self)), np.diff(self.offsets))))
        return Counts(self.offsets, self.ids[order], self.values[order], None, self.least)

    @cached_property
    def _index(self) -> tuple[npt.NDArray, ...]:
        """An index from ids to objects: (distinct ids, their hash table, and the three arrays of `_postings`)."""
        ids, columns = number_ids(self.ids)
        table = _table(len(ids))
        _enter(ids, table)
        return ids, table, *_postings(self.offsets, columns, self.values, np.full(len(ids), -1))

    def hashed(self, n_features: int) -> sp.csr_array:
        """Return values times sqrt(weights), or the `unary` values if `least`, as a sparse matrix.

        A feature goes to column ``id % n_features``.
        """
        if self.least:
            return self.unary.hashed(n_features)
        columns = (self.ids % np.uint64(n_features)).astype(np.int32)
        values = self.values.copy() if self.weights is None else self.values * np.sqrt(self.weights)
        indptr = self.offsets.astype(np.int32 if len(columns) < 2**31 else np.int64)
        matrix = sp.csr_array((values, columns, indptr), shape=(len(self), n_features))
        matrix.sum_duplicates()
        return matrix


def count(ids: Ids, offsets: Indices, amounts: Floats = _NO_AMOUNTS) -> Counts:
    """Count how often each id occurs in each object, or add the amounts of its occurrences.

    Object i has the occurrences ``ids[offsets[i]:offsets[i + 1]]``. Each adds its amount, or 1 if `amounts` is empty,
    to the count of its feature.
    """
    ids = np.ascontiguousarray(ids, dtype=np.uint64)
    offsets = np.ascontiguousarray(offsets, dtype=np.int64)
    distinct, values = np.empty_like(ids), np.empty(len(ids))
    new_offsets = np.zeros_like(offsets)
    longest = len(ids) if len(offsets) == 2 else int(np.diff(offsets).max(initial=0))
    _count(ids, offsets, amounts, _table(longest), distinct, values, new_offsets)
    distinct, values = distinct[: new_offsets[-1]], values[: new_offsets[-1]]
    if 2 * len(distinct) < len(ids):  # a copy frees the rest
        distinct, values = distinct.copy(), values.copy()
    found = Counts(new_offsets, distinct, values)
    if amounts is _NO_AMOUNTS:
        vars(found)["_whole"] = True  # they are numbers of occurrences
    return found


def number_ids(ids: Ids) -> tuple[Ids, Indices]:
    """Return the distinct ids in order of first occurrence, and the position of each given id among them."""
    ids = np.ascontiguousarray(ids, dtype=np.uint64)
    distinct, numbers = np.empty_like(ids), np.empty(len(ids), dtype=np.int64)
    n_distinct = _number(ids, _table(len(ids)), distinct, numbers)
    return distinct[:n_distinct], numbers


def inner_products(A: Counts, B: Counts) -> Floats:
    """Return the inner products of all objects of `A` with all objects of `B`, shape (len(A), len(B))."""
    if A.least:
        return _least_sums(A, B)
    n_columns, columns_a, columns_b = _columns(A, B)
    values_a, values_b = A.weighted_values(), B.values
    dense = _dense_columns(columns_a, columns_b, n_columns, len(A) * len(B))
    n_dense = int(dense.max(initial=-1)) + 1
    dtype = np.float32 if _largest_sum(A, B) < 2**24 else np.float64  # in which sums of integers are exact
    b_dense = np.zeros((len(B), n_dense), dtype)
    _scatter_dense(B.offsets, columns_b, values_b, dense, 0, b_dense)
    postings = _postings(B.offsets, columns_b, values_b, dense)
    out = np.empty((len(A), len(B)))
    step = rows_per_block(dtype().itemsize * (n_dense + len(B)), at_most=_ROWS_PER_BLOCK)
    for start in range(0, len(A), step):
        block = out[start : start + step]
        a_dense = np.zeros((len(block), n_dense), dtype)
        _scatter_dense(A.offsets, columns_a, values_a, dense, start, a_dense)
        with np.errstate(invalid="ignore"):  # BLAS may compute with numbers beyond the end of a matrix
            product = a_dense @ b_dense.T
        _add_sparse_product(A.offsets, columns_a, values_a, dense, start, *postings, product, block)
    return out


def paired_products(A: Counts, B: Counts, rows: Indices, columns: Indices) -> Floats:
    """Return the inner products of the pairs of objects ``A[rows[k]], B[columns[k]]``, shape (n_pairs,)."""
    for name, places, n in (("rows", rows, len(A)), ("columns", columns, len(B))):
        if len(places) and not 0 <= places.min() <= places.max() < n:  # the loop checks no bounds
            raise ValueError(f"{name} must be positions of {n} objects, got {places.min()} to {places.max()}")
    if A.least:
        A, B = _in_order(A, B), _in_order(B, A)
    values, out = A.weighted_values(), np.empty(len(rows))
    order = np.argsort(rows, kind="stable")
    longest = int(np.diff(A.offsets).max(initial=0))

    def fill(start: int, stop: int) -> None:
        pairs = order[start:stop]
        table = _table(longest)
        _paired(A.offsets, A.ids, values, B.offsets, B.ids, B.values, rows, columns, pairs, A.least, table, out)

    run_in_ranges(fill, len(order), grain=_PAIRS_OF_A_THREAD)
    return out


def few_products(A: Counts, B: Counts) -> Floats:
    """Return all inner products of objects of `A` and `B`; fast if `A` is small and `B` is used in many calls.

    Each feature of `A` is looked up in an index of `B`, so terms are added in another order than in `inner_products`.
    The order does not change sums that are exact integers. For any others, `inner_products` is called instead or, for
    minima, terms are sorted.
    """
    if A.least:
        A, B = _in_order(A, B), _in_order(B, A)
    elif _largest_sum(A, B) >= 2**53:
        return inner_products(A, B)
    distinct, table, *postings = B._index
    columns = np.empty(len(A.ids), dtype=np.int64)
    _look_up(np.ascontiguousarray(A.ids), distinct, table, columns)
    out = np.zeros((len(A), len(B)))
    _add_terms(A.offsets, columns, A.weighted_values(), *postings, A.least, 0, len(A), out)
    return out


def as_least(counts: Counts) -> Counts:
    """Return `counts` (all >= 0) times the roots of their weights, with `least` set and counts of 0 dropped."""
    values = counts.values if counts.weights is None else counts.values * np.sqrt(counts.weights)
    offsets, ids = counts.offsets, counts.ids
    kept = values != 0
    if not kept.all():
        offsets = offsets_of(kept)[offsets]
        ids, values = ids[kept], values[kept]
    return Counts(offsets, np.ascontiguousarray(ids), values, None, least=True)


def _in_order(counts: Counts, others: Counts | None = None) -> Counts:
    """Return `counts`, sorted unless exact, so that every loop gives sums of minima (with `others`) the same bits."""
    return counts if counts._exact and (others is None or others._exact) else counts._sorted


def _least_sums(A: Counts, B: Counts) -> Floats:
    """Return, for all objects of `A` and of `B`, the sum over features of the smaller count, shape (len(A), len(B))."""
    same = A is B
    A, B = _in_order(A, B), _in_order(B, A)
    n_columns, columns_a, columns_b = _columns(A, A if same else B)
    postings = _postings(B.offsets, columns_b, B.values, np.full(n_columns, -1))
    out = np.zeros((len(A), len(B)))

    def fill(start: int, stop: int) -> None:
        _add_terms(A.offsets, columns_a, A.values, *postings, True, start, stop, out)

    run_in_ranges(fill, len(A), grain=_ROWS_OF_A_THREAD)
    return out


@njit()
def _are_integers(values):  # type: ignore[no-untyped-def]
    for value in values:  # noqa: SIM110 (numba compiles no generator in `all`)
        if value != np.rint(value):
            return False
    return True


@njit()
def _sums_of_squares(offsets, values):  # type: ignore[no-untyped-def]
    """Return the sum of squares of each object's values."""
    out = np.zeros(len(offsets) - 1)
    for i in range(len(out)):
        for k in range(offsets[i], offsets[i + 1]):
            out[i] += values[k] * values[k]
    return out


def _table(n_ids: int) -> Indices:
    """Return an empty hash table (all slots -1), of which `n_ids` ids fill less than half."""
    return np.full(2 ** max(1, (2 * n_ids).bit_length()), -1, dtype=np.int64)


def _columns(A: Counts, B: Counts) -> tuple[int, Indices, Indices]:
    """Give each id in B a column; return (number of columns, columns of A's ids or -1, columns of B's ids)."""
    distinct, columns_b = number_ids(B.ids)
    if A is B:
        return len(distinct), columns_b, columns_b
    columns_a, table = np.empty(len(A.ids), dtype=np.int64), _table(len(distinct))
    _enter(distinct, table)
    _look_up(np.ascontiguousarray(A.ids), distinct, table, columns_a)
    return len(distinct), columns_a, columns_b


def _dense_columns(columns_a: Indices, columns_b: Indices, n_columns: int, n_pairs: int) -> Indices:
    """Return each column's position in the dense matrix; -1 if it has few entries, so a sparse product is faster."""
    in_a = np.bincount(columns_a + 1, minlength=n_columns + 1)[1:]
    in_b = np.bincount(columns_b, minlength=n_columns)
    dense = in_a * in_b * _SPARSE_TO_DENSE_COST > n_pairs
    return np.where(dense, np.cumsum(dense) - 1, -1)


def _largest_sum(A: Counts, B: Counts) -> float:
    """Return an upper bound on the inner products (Cauchy-Schwarz), or infinity if a count or weight is no integer."""
    if not (A._whole and B._whole):
        return math.inf
    return math.sqrt(A._largest_square * B._largest_square)


def _postings(offsets: Indices, columns: Indices, values: Floats, dense: Indices) -> tuple[Indices, Indices, Floats]:
    """Sort entries by column: (starts, rows, values), with column c at ``starts[c]:starts[c + 1]``, empty if dense."""
    length = np.bincount(columns[dense[columns] < 0], minlength=len(dense))
    starts = offsets_of(length)
    rows, data = np.empty(starts[-1], dtype=np.int64), np.empty(starts[-1])
    _fill_postings(offsets, columns, values, dense, starts[:-1].copy(), rows, data)
    return starts, rows, data


@njit()
def _place(x, ids, table, shift):  # type: ignore[no-untyped-def]
    """Find the slot of `table` that holds the position of the id `x` in `ids`; if there is none, return a free slot."""
    slot = np.int64((x * GOLDEN) >> shift)
    while table[slot] >= 0 and ids[table[slot]] != x:
        slot = (slot + 1) & np.int64(_ALL_ONES >> shift)
    return slot


@njit()
def _shift_for(n_slots):  # type: ignore[no-untyped-def]
    """Return s such that ``x >> s`` is below `n_slots`, a power of two, for every 64-bit x."""
    shift = 64
    while n_slots > 1:
        n_slots >>= 1
        shift -= 1
    return np.uint64(shift)


@njit()
def _emptied(table, n_ids):  # type: ignore[no-untyped-def]
    """Empty the first slots of `table`, enough for `n_ids` ids; return `_shift_for` the number of these slots."""
    n_slots = 2
    while n_slots < 2 * n_ids:
        n_slots *= 2
    table[:n_slots] = -1
    return _shift_for(n_slots)


@njit()
def _count(ids, offsets, amounts, table, distinct, values, new_offsets):  # type: ignore[no-untyped-def]
    """Fill `distinct`, `values` and `new_offsets` with the ids, counts and offsets that `count` returns."""
    end = 0
    for i in range(len(offsets) - 1):
        shift = _emptied(table, offsets[i + 1] - offsets[i])
        for k in range(offsets[i], offsets[i + 1]):
            slot = _place(ids[k], distinct, table, shift)
            if table[slot] < 0:
                table[slot] = end
                distinct[end] = ids[k]
                values[end] = 0.0
                end += 1
            values[table[slot]] += amounts[k] if len(amounts) else 1.0
        new_offsets[i + 1] = end


@njit()
def _number(ids, table, distinct, numbers):  # type: ignore[no-untyped-def]
    """Fill `distinct` and `numbers` as `number_ids` returns them; return the number of distinct ids."""
    end = 0
    shift = _shift_for(len(table))
    for k in range(len(ids)):
        slot = _place(ids[k], distinct, table, shift)
        if table[slot] < 0:
            table[slot] = end
            distinct[end] = ids[k]
            end += 1
        numbers[k] = table[slot]
    return end


@njit()
def _look_up(ids, distinct, table, numbers):  # type: ignore[no-untyped-def]
    """Fill `numbers` with the position of each of `ids` in `distinct`, or -1; `table` is the hash table of these."""
    shift = _shift_for(len(table))
    for k in range(len(ids)):
        numbers[k] = table[_place(ids[k], distinct, table, shift)]


@njit()
def _enter(distinct, table):  # type: ignore[no-untyped-def]
    """Fill the empty hash table `table` with the position of each id in `distinct`."""
    shift = _shift_for(len(table))
    for k in range(len(distinct)):
        table[_place(distinct[k], distinct, table, shift)] = k


@njit()
def _paired(a_offsets, a_ids, a_values, b_offsets, b_ids, b_values, rows, columns, pairs, least, table, out):  # type: ignore[no-untyped-def]
    """Fill ``out[pairs]`` with inner products, or with sums of minima if `least`.

    This is fastest if `pairs` are sorted by row, as `table` holds one row.
    """
    filled, shift = -1, np.uint64(63)
    for pair in pairs:
        i, j = rows[pair], columns[pair]
        start, n = a_offsets[i], a_offsets[i + 1] - a_offsets[i]
        if i != filled:
            shift, filled = _emptied(table, n), i
            for k in range(start, start + n):
                table[_place(a_ids[k], a_ids, table, shift)] = k
        total = 0.0
        for k in range(b_offsets[j], b_offsets[j + 1] if n else b_offsets[j]):
            position = table[_place(b_ids[k], a_ids, table, shift)]
            if position >= 0:
                a, b = a_values[position], b_values[k]
                total += min(a, b) if least else a * b
        out[pair] = total


@njit()
def _add_terms(offsets, columns, values, starts, rows, data, least, start, stop, out):  # type: ignore[no-untyped-def]
    """Add to rows `start` to `stop` of `out` the inner products of objects and postings (`starts`, `rows`, `data`).

    If `least`, add sums of minima instead.
    """
    for i in range(start, stop):
        row = out[i]
        for k in range(offsets[i], offsets[i + 1]):
            column, value = columns[k], values[k]
            if column >= 0:
                for p in range(starts[column], starts[column + 1]):
                    row[rows[p]] += min(value, data[p]) if least else value * data[p]


@njit()
def _expand(offsets, ids, values, new_offsets, new_ids):  # type: ignore[no-untyped-def]
    """Fill `new_offsets` and `new_ids` with the offsets and ids of `Counts.unary`."""
    end = 0
    for i in range(len(offsets) - 1):
        for k in range(offsets[i], offsets[i + 1]):
            for t in range(np.int64(values[k])):
                new_ids[end] = combine(ids[k], np.uint64(t)) if t else ids[k]
                end += 1
        new_offsets[i + 1] = end


@njit()
def _sums(offsets, values):  # type: ignore[no-untyped-def]
    """Return the sum of the values of each object, added in the order of its ids."""
    sums = np.zeros(len(offsets) - 1)
    for i in range(len(sums)):
        for k in range(offsets[i], offsets[i + 1]):
            sums[i] += values[k]
    return sums


@njit()
def _scatter_dense(offsets, columns, values, dense, start, out):  # type: ignore[no-untyped-def]
    """Copy the values of object ``start + i`` in dense columns to row i of `out`, which must be 0 before."""
    for i in range(len(out)):
        for k in range(offsets[start + i], offsets[start + i + 1]):
            if columns[k] >= 0 and dense[columns[k]] >= 0:
                out[i, dense[columns[k]]] = values[k]


@njit()
def _fill_postings(offsets, columns, values, dense, ends, rows, data):  # type: ignore[no-untyped-def]
    for i in range(len(offsets) - 1):
        for k in range(offsets[i], offsets[i + 1]):
            column = columns[k]
            if dense[column] < 0:
                rows[ends[column]] = i
                data[ends[column]] = values[k]
                ends[column] += 1


@njit()
def _add_sparse_product(offsets, columns, values, dense, start, starts, rows, data, product, out):  # type: ignore[no-untyped-def]
    """Fill `out` with inner products: `product`, the part from dense columns, plus the part from sparse columns."""
    for i in range(len(out)):
        for j in range(out.shape[1]):
            out[i, j] = product[i, j]
        row = out[i]
        for k in range(offsets[start + i], offsets[start + i + 1]):
            column, value = columns[k], values[k]
            if column >= 0 and dense[column] < 0:
                for p in range(starts[column], starts[column + 1]):
                    row[rows[p]] += value * data[p]


class CountsKernel(Kernel):
    """Base class of kernels that are computed from feature counts.

    Subclasses implement `_counts`, and `_scaled` if the kernel is a function of inner products of counts.
    """

    reuses_counts = True  # whether `paired` is faster with the feature counts of Y from an earlier call

    def _counts(self, objects: Any) -> Counts:
        """Return the feature counts of objects that `as_objects` returned."""
        raise NotImplementedError(f"{type(self).__name__} needs a method _counts(objects) that returns feature counts")

    def _check_alike(self, X: Any, Y: Any) -> None:
        """Raise if objects of the two collections cannot be compared."""

    def _scaled(self, K: Floats, kxx: Floats, kyy: Floats, *, same: bool = False) -> Floats:
        """Return kernel values from the inner products K of the counts; may change K.

        K is a matrix, and `kxx` and `kyy` are the inner products of the objects of its rows and columns with
        themselves. If `same`, rows and columns are the same objects. Or K, `kxx` and `kyy` hold one number for each
        pair.
        """
        return K

    def __call__(self, X: Any, Y: Any = None) -> Floats:
        objects = self.as_objects(X)
        A = B = self._counts(objects)
        if Y is not None and Y is not X:
            others = as_second(self.as_objects, Y)
            self._check_alike(objects, others)
            B = as_second(self._counts, others)
        return self._scaled(inner_products(A, B), A.squared_norms, B.squared_norms, same=Y is None)

    def _self_values(self, X: Any) -> Floats:
        squares = self._counts(self.as_objects(X)).squared_norms
        return self._scaled(squares.copy(), squares, squares)

    def paired(
        self, X: Any, Y: Any, rows: npt.ArrayLike, columns: npt.ArrayLike, *, counts: Counts | None = None
    ) -> Floats:
        """Return the kernel values of the pairs (X[rows[k]], Y[columns[k]]) only, shape (n_pairs,).

        `counts` is the result of ``counted(Y)``; by default it is computed.
        """
        if counts is not None and X is Y:
            left, right = resolve_pairs(rows, columns, len(counts), len(counts))
            A = B = counts
        elif counts is not None:
            X, Y = self.as_objects(X), as_second(self.as_objects, Y)
            left, right = resolve_pairs(rows, columns, len(X), len(counts))
            X, left = named(X, left)
            self._check_alike(X, Y)
            A, B = self._counts(X), counts
        else:
            X, Y, left, right = named_pairs(self.as_objects(X), as_second(self.as_objects, Y), rows, columns)
            self._check_alike(X, Y)
            A, B = self._counts(X), as_second(self._counts, Y)
        return self._scaled(paired_products(A, B, left, right), A.squared_norms[left], B.squared_norms[right])

    def counted(self, Y: Any) -> Counts:
        """Return the feature counts of `Y`, to reuse in many calls of `paired`."""
        return self._counts(self.as_objects(Y))

    def against(self, X: Any, Y: Any) -> Floats:
        """Return ``self(X, Y)``; fast if the same `Y` is compared with few objects in each of many calls.

        `Y` is a batch that `as_objects` returned; its feature counts are cached for the next call if all parameters are
        numbers, strings, bools or None.
        """
        X = self.as_objects(X)
        self._check_alike(X, Y)
        A, B = self._counts(X), counts_of(self, Y)
        return self._scaled(few_products(A, B), A.squared_norms, B.squared_norms)


class FeatureKernel(CountsKernel):
    """Base class of kernels that are inner products of feature counts.

    A subclass has a parameter `normalize` and two methods. ``as_objects(X)`` converts a collection, for example to a
    `similia.objects.StringBatch`. ``_counts(objects)`` returns the feature counts of the converted objects.
    """

    normalize: bool

    def _scaled(self, K: Floats, kxx: Floats, kyy: Floats, *, same: bool = False) -> Floats:
        if not self.normalize:
            return K
        if K.ndim == 1:
            (kxx, a), (kyy, b) = _mantissas(kxx), _mantissas(kyy)  # products may overflow
            norms = np.sqrt(kxx * kyy)
            return np.ldexp(K, -(a + b)) / np.where(norms > 0, norms, 1.0)
        scale_by_norms(K, kxx, kyy, same=same)
        return K

    def diag(self, X: Any) -> Floats:
        counts = self._counts(self.as_objects(X))
        return np.ones(len(counts)) if self.normalize else counts.squared_norms

    def features(self, X: Any, n_features: int = 2**20) -> sp.csr_array:
        """Return explicit features whose inner products are the kernel.

        Parameters
        ----------
        X : sequence of n objects
        n_features : int, default=2**20
            Number of columns. Each feature has a 64-bit id; the feature with id i goes to column ``i % n_features``.
            Unlike Python's ``hash``, ids do not change from one process to the next. Among v distinct features, about
            v**2 / (2 n_features) pairs share a column; each such pair adds an error to the kernel.

        Returns
        -------
        scipy.sparse.csr_array of float64, shape (n, n_features)
            The indices are int32.
        """
        n_features = checked_width(n_features)
        counts = self._counts(self.as_objects(X))
        features = counts.hashed(n_features)
        if self.normalize:
            divide_by_norms(features, counts.squared_norms)
        return features


def checked_width(n_features: Any) -> int:
    """Return the number of columns as an int, or raise if it is not a positive integer below 2**31."""
    n_features = check_positive_int(n_features, "n_features")
    if n_features > 2**31 - 1:
        raise ValueError(f"n_features must be below 2**31 (columns are int32), got {n_features}")
    return n_features


def check_alike(kernel: Any, left: dict[str, str], right: dict[str, str], X: str, Y: str) -> None:
    """Raise if the kernel would compare different properties of `X` and `Y`, such as labels with degrees.

    `left` and `right` map parts of objects, such as "nodes", to the property compared; `X` and `Y` name the
    collections.
    """
    for part in left.keys() & right.keys():
        if left[part] != right[part]:
            what = called_by_user(kernel)
            Y = "the training objects" if hasattr(what, "fit") and Y == "Y" else Y
            raise ValueError(
                f"{type(what).__name__} would compare {left[part]} of {X} with {right[part]} of {Y}; "
                f"give both the same kind of labels or attributes"
            )


def scale_by_norms(K: Floats, kxx: Floats, kyy: Floats, *, same: bool) -> None:
    """Divide K in place by sqrt(k(x, x) k(y, y)); `kxx` has k(x, x) of the rows, `kyy` k(y, y) of the columns.

    An object with k(x, x) = 0 gets similarity 0 to all others and, if rows and columns are the `same` objects, 1 to
    itself.
    """
    step = rows_per_block(8 * len(kyy), at_most=256)
    extreme = any(((k > 0) & ((k < 1e-150) | (k > 1e150))).any() for k in (kxx, kyy))  # products may overflow
    if extreme:
        (kxx, a), (kyy, b) = _mantissas(kxx), _mantissas(kyy)
    for start in range(0, len(kxx), step):
        rows = slice(start, start + step)
        # The root of the product, so that K stays symmetric and equal objects have similarity exactly 1.
        norms = np.sqrt(np.outer(kxx[rows], kyy))
        norms[norms == 0] = np.inf  # so that K becomes 0, also for a kernel that is not positive semi-definite
        if extreme:
            K[rows] = np.ldexp(K[rows], -np.add.outer(a[rows], b))
        K[rows] /= norms
    if same:
        np.fill_diagonal(K, 1.0)


def _mantissas(values: Floats) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Return an array m of numbers in [1/2, 2) or 0, and an array e of integers, such that values = m 4**e."""
    mantissas, exponents = np.frexp(values)
    return np.ldexp(mantissas, exponents % 2), (exponents // 2).astype(np.int64)


def divide_by_norms(features: sp.csr_array, kxx: Floats) -> None:
    """Divide each object's row of features, in place, by sqrt(k(x, x)); a row with k(x, x) = 0 stays unchanged."""
    norms = np.sqrt(kxx)
    features.data /= np.repeat(np.where(norms > 0, norms, 1.0), np.diff(features.indptr))


def counts_of(kernel: CountsKernel, Y: Any) -> Counts:
    """Return ``kernel.counted(Y)``, from the cache if an equal kernel counted the same collection before."""
    slot, parameters = (id(Y) // 64) % _SLOTS, plain_parameters(kernel)
    entry = _kept.get(slot)
    if entry is not None and entry[0]() is Y and entry[1] is type(kernel) and entry[2] == parameters:
        return entry[3]
    counts = kernel.counted(Y)
    if parameters is not None:
        _kept[slot] = weakref.ref(Y), type(kernel), parameters, counts
    return counts


def products_with(B: Counts, normalize: bool) -> Callable[[Any], Floats | None] | None:
    """Return a function of one object's feature ids (each as often as it occurs) that is fast in many calls.

    The function returns the kernel values of this object with the n objects of `B`, shape (1, n), as a `FeatureKernel`
    does, or None if sums of products might not be exact. Instead of a function, None is returned if `B` has weights,
    counts that are not integers, or `least` set.
    """
    if B.least or B.weights is not None or not B._whole:
        return None
    index, norms, largest = B._index, B.squared_norms, max(1.0, B._largest_square)

    def products(ids: Any) -> Floats | None:
        out = np.empty((1, len(norms)))
        own = _products_of_one(ids, *index, norms, normalize, out[0])
        return out if own * largest < _EXACT_SQUARE else None

    return products


@njit()
def _products_of_one(ids, distinct, table, starts, rows, data, norms, normalize, out):  # type: ignore[no-untyped-def]
    """Fill `out` with the kernel values of the object with the features `ids`; return its squared norm.

    `distinct` to `data` are the index of the objects of `out`, and `norms` their squared norms.
    """
    own_table = np.full(4 * max(1, len(ids)), -1)
    own_ids, values, bounds = np.empty_like(ids), np.empty(len(ids)), np.zeros(2, np.int64)
    _count(ids, np.array([0, len(ids)]), np.empty(0), own_table, own_ids, values, bounds)
    shift, own = _shift_for(len(table)), 0.0
    out[:] = 0.0
    for k in range(bounds[1]):
        own += values[k] * values[k]
        column = table[_place(own_ids[k], distinct, table, shift)]
        if column >= 0:
            for p in range(starts[column], starts[column + 1]):
                out[rows[p]] += values[k] * data[p]
    if normalize:
        for j in range(len(out)):
            norm = np.sqrt(own * norms[j])
            out[j] /= norm if norm > 0 else 1.0
    return own
