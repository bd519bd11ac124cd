"""Kernels computed from feature counts; most are inner products of counts, and so have explicit features."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from similia.core.config import rows_per_block
from similia.core.errors import as_second, called_by_user
from similia.core.jit import njit
from similia.core.validation import check_positive_int
from similia.kernels.counts import (
    Counts,
    _count,
    _place,
    _shift_for,
    few_products,
    inner_products,
    paired_products,
)
from similia.objects.sequences import named, named_pairs, resolve_pairs
from similia.similarity import Kernel, plain_parameters

Floats = npt.NDArray[np.float64]

# A cache of the counts of collections, such as landmarks, that are compared with few objects at a time. It is not in
# the kernels, as they hold parameters only. One assignment replaces an entry, so threads and forks need no lock.
_SLOTS = 16
_EXACT_SQUARE = 2.0**106  # products of squared norms below this bound inner products that are exact
# Slot, from the collection's address -> (weak reference to the collection, type and parameters of the kernel, counts).
_kept: dict[int, tuple[Any, type, dict[str, Any], Counts]] = {}


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
            Number of columns. The feature with the 64-bit id i goes to column ``i % n_features``. Unlike Python's
            ``hash``, ids do not change from one process to the next. Among v distinct features, about v**2 / (2
            n_features) pairs share a column; each such pair adds an error to the kernel.

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
    counts that are not whole, or `least` set.
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
