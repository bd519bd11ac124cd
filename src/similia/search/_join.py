"""Compare pairs of objects by a similarity and keep those that pass a threshold; propose pairs with equal keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from similia.core.config import rows_per_block, settings, track
from similia.core.errors import BadValue
from similia.core.intervals import wilson
from similia.core.jit import njit
from similia.core.threads import in_threads, limited_to, n_threads
from similia.distances.edit import Levenshtein
from similia.kernels import MinMax
from similia.kernels.combine import Normalized, Sum
from similia.kernels.counts import FeatureKernel
from similia.kernels.hypersphere import Cosine
from similia.kernels.minmax import Intersection
from similia.objects import n_objects, take
from similia.search.metric import Floats, Index, Metric

_BLOCK = 2**12  # pairs that a thread compares at once
_PER_BYTE = 64  # about the bytes of features for each byte of an object
_MOST_PAIRS = 2**27  # pairs returned
_SLACK = 1 + 1e-9  # a number of edits that rounding made too small would miss pairs at the threshold


class Checked(NamedTuple):
    """Which near-duplicates of a sample of objects were found; see `Duplicates.check`.

    Attributes
    ----------
    recall : float
        ``n_found / n_true``, or NaN if the objects have no near-duplicates.
    low, high : float
        Ends of the 95 % interval of the recall: Wilson's, for as many independent pairs as objects have near-duplicates
        (the pairs of one object are found or missed together).
    n_found, n_true : int
        Near-duplicates of the objects that were found, and all of them.
    n_checked : int
        Number of objects that were compared with all others.
    """

    recall: float
    low: float
    high: float
    n_found: int
    n_true: int
    n_checked: int


@dataclass(frozen=True)
class Limit:
    """What makes a pair near-duplicates: a similarity or distance, and the threshold that its value must pass."""

    metric: Metric
    threshold: float
    relative: bool = False

    @property
    def is_min_max(self) -> bool:
        return type(self.metric.function) is MinMax

    @property
    def is_edits(self) -> bool:
        return type(self.metric.function) is Levenshtein

    @property
    def is_cosine(self) -> bool:
        return is_cosine(self.metric.function)

    def edits(self, n_letters: Any) -> int:
        """Return the largest number of edits between a string of so many letters and a longer one."""
        if not self.relative:
            return int(self.threshold)
        return int(n_letters * self.threshold / (1 - self.threshold) * _SLACK)

    def passes(self, values: Any, longer: Any) -> npt.NDArray[np.bool_]:
        """Return which values pass; `longer` is the length of the longer string of each pair, if `relative`."""
        if self.metric.is_kernel:
            return np.asarray(values >= self.threshold)
        return np.asarray((values / np.maximum(longer, 1) if self.relative else values) <= self.threshold)

    def lengths(self, X: Any) -> Any:
        """Return the length of each string if `relative`, else None."""
        return np.diff(X.offsets) if self.relative else None


class Join:
    """Compares pairs of the objects `X` and collects those that pass."""

    def __init__(self, limit: Limit, X: Any) -> None:
        self.limit, self.metric, self.X, self.n = limit, limit.metric, X, n_objects(X)
        self.lengths = limit.lengths(X)
        self._parts: list[tuple[Index, Index, Floats]] = []
        self._n_found = 0

    def compare(self, left: Index, right: Index) -> None:
        """Compare the pairs ``left[t], right[t]``, with left < right, and keep those that pass.

        Pairs of one connected component are compared together, so the features of an object are counted once.
        """
        if len(left) == 0:
            return
        _, label = connected_components(graph_of(np.stack([left, right], axis=1), self.n), directed=False)
        order = np.lexsort((right, left, label[left]))
        at_once = settings().max_memory // (2 * _PER_BYTE * n_threads() * (1 + bytes_of(self.X) // self.n))
        size = int(np.clip(at_once, 16, _BLOCK))
        blocks = [order[start : start + size] for start in range(0, len(order), size)]

        def compare(block: Index) -> tuple[Index, Index, Floats]:
            chosen, places = np.unique(np.concatenate([left[block], right[block]]), return_inverse=True)
            rows, columns = places[: len(block)], places[len(block) :]
            by_row = np.argsort(rows, kind="stable")
            with limited_to(1):
                objects = take(self.X, chosen)
                found = self.metric.pairs(objects, rows[by_row], columns[by_row], self.metric.kept(objects))
            return chosen[rows[by_row]], chosen[columns[by_row]], np.asarray(found, np.float64)

        step = 4 * n_threads()
        for start in track(range(0, len(blocks), step), "pairs compared", -(-len(blocks) // step)):
            for compared in in_threads(compare, blocks[start : start + step]):
                self._keep(*compared)

    def all_pairs(self, rows: Index, columns: Index) -> None:
        """Compare each object of `rows` with those of `columns` behind it."""
        others = take(self.X, columns)
        step = rows_per_block(32 * len(columns), at_most=1024)
        for start in track(range(0, len(rows), step), "pairs compared", -(-len(rows) // step)):
            block = rows[start : start + step]
            values = np.asarray(self.metric.between(take(self.X, block), others), np.float64)
            left, right = (grid.ravel() for grid in np.meshgrid(block, columns, indexing="ij"))
            later = left < right
            self._keep(left[later], right[later], values.ravel()[later])

    def _keep(self, left: Index, right: Index, values: Floats) -> None:
        longer = None if self.lengths is None else np.maximum(self.lengths[left], self.lengths[right])
        good = self.limit.passes(values, longer)
        self._parts.append((left[good], right[good], values[good]))
        self._n_found += int(np.count_nonzero(good))
        check_number(self._n_found, self.limit)

    def found(self) -> tuple[Index, Floats]:
        """Return the pairs, each once and in ascending order, and their values."""
        if not self._parts:
            return np.empty((0, 2), np.int64), np.empty(0)
        left, right, values = (np.concatenate(arrays) for arrays in zip(*self._parts, strict=True))
        return once(np.stack([left, right], axis=1), values, self.n)


def checked(limit: Limit, pairs: Index, n: int, sample: Index, queries: Any, parts: Iterable[Any]) -> Checked:
    """Return how many of the near-duplicates of the objects `queries` are among the sorted `pairs` of n objects.

    `sample` are the positions of the queries, and `parts` all objects, in order.
    """
    known, start, lengths = pairs[:, 0] * n + pairs[:, 1], 0, limit.lengths(queries)
    n_true = np.zeros(len(sample), np.int64)
    n_found = 0
    for objects in parts:
        stop = start + n_objects(objects)
        values = np.asarray(limit.metric.between(queries, objects), np.float64)
        if not limit.metric.symmetric:  # of a pair, the distance from the earlier object to the later one counts
            back = np.asarray(limit.metric.between(objects, queries), np.float64).T
            values = np.where(np.arange(start, stop) < sample[:, None], back, values)
        longer = None if lengths is None else np.maximum(lengths[:, None], limit.lengths(objects))
        rows, columns = np.nonzero(limit.passes(values, longer) & (np.arange(start, stop) != sample[:, None]))
        n_true += np.bincount(rows, minlength=len(sample))
        i, j = sample[rows], start + columns
        n_found += int(np.isin(np.minimum(i, j) * n + np.maximum(i, j), known).sum())
        start = stop
    total = int(n_true.sum())
    share = n_found / total if total else float("nan")
    low, high = wilson(share if total else 0.0, int((n_true > 0).sum()))
    return Checked(share, low, high, n_found, total, len(sample))


def parts_of(X: Any, n: int, n_queries: int) -> Iterator[Any]:
    """Yield a collection of n objects in parts that can be compared with `n_queries` objects at once."""
    step = rows_per_block(64 * n_queries)
    for start in range(0, n, step):
        yield take(X, np.arange(start, min(n, start + step)))


def check_number(n_pairs: int, limit: Limit) -> None:
    """Raise if there are more than 2**27 pairs."""
    if n_pairs > _MOST_PAIRS:
        found = f"has more than {_MOST_PAIRS} pairs that pass threshold={limit.threshold:g}"
        raise BadValue(None, found, "fewer", "take a stricter threshold, or drop equal objects first")


def once(pairs: Index, values: Floats, n: int) -> tuple[Index, Floats]:
    """Return pairs of n objects, each once and in ascending order, and their values."""
    _, first = np.unique(pairs[:, 0] * n + pairs[:, 1], return_index=True)
    return pairs[first].astype(np.int64), values[first]


def graph_of(pairs: Index, n: int) -> sp.coo_array:
    """Return the graph of n objects whose edges are the pairs."""
    return sp.coo_array((np.ones(len(pairs), np.int8), (pairs[:, 0], pairs[:, 1])), shape=(n, n))


def components(parts: Iterable[tuple[Index, Index]], n: int) -> Index:
    """Return, for each of n objects, the smallest position in its component; edges come in parts."""
    root = np.arange(n)
    for left, right in parts:
        unite(root, np.ascontiguousarray(left), np.ascontiguousarray(right))
    flatten(root)
    return root


def bytes_of(X: Any) -> int:
    """Return the number of bytes of the arrays that hold a collection of objects."""
    if sp.issparse(X):
        return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    arrays = [X] if isinstance(X, np.ndarray) else vars(X).values() if hasattr(X, "__dict__") else []
    return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))


def is_cosine(function: Any) -> bool:
    """Return whether a similarity is the cosine of the angle between explicit features."""
    if isinstance(function, Normalized):
        return _has_features(function.kernel)
    return type(function) is Cosine or (_has_features(function) and getattr(function, "normalize", False) is True)


def _has_features(kernel: Any) -> bool:
    """Return whether a kernel has explicit features, as far as its type says; those of `Intersection` are of counts."""
    if isinstance(kernel, Sum | Normalized):
        return all(map(_has_features, kernel._parts() if isinstance(kernel, Sum) else [kernel.kernel]))
    return hasattr(kernel, "features") and (not isinstance(kernel, Intersection) or _counts_whole(kernel.kernel))


def _counts_whole(kernel: Any) -> bool:
    """Return whether the features of a kernel are whole numbers, as far as its type says."""
    if isinstance(kernel, Sum):
        return kernel.weights is None and all(map(_counts_whole, kernel._parts()))
    return isinstance(kernel, FeatureKernel) and kernel.normalize is False


@njit()
def propose_equal(keys, hashes, least, order, own, band, start, left, right):  # type: ignore[no-untyped-def]
    """Write pairs of rows with equal keys in column `band`, but in no column before it, to `left` and `right`.

    `order` sorts the rows by this column, and rows with equal keys by position; `own` is the sorted column. Pairs of
    which fewer than `least` of the `hashes` are equal are left out. Begin at the place `start` of `order`. Return the
    place to go on from (its length at the end), and the number of pairs. There must be room for ``len(order)`` pairs.
    """
    n, used = len(order), 0
    for a in range(start, n):
        i, stop = order[a], a + 1
        while stop < n and own[stop] == own[a]:
            stop += 1
        if used + stop - a - 1 > len(left):
            return a, used
        for b in range(a + 1, stop):
            j, known = order[b], False
            for c in range(band):
                if keys[i, c] == keys[j, c]:
                    known = True
                    break
            if known:
                continue
            equal = 0
            for h in range(hashes.shape[1]):
                equal += hashes[i, h] == hashes[j, h]
            if equal >= least:
                left[used], right[used] = i, j
                used += 1
    return n, used


@njit()
def unite(root, left, right):  # type: ignore[no-untyped-def]
    """Join the sets of ``left[t]`` and ``right[t]`` in a forest in which each root is the smallest of its tree."""
    for t in range(len(left)):
        a, b = left[t], right[t]
        while root[a] != a:
            root[a] = root[root[a]]
            a = root[a]
        while root[b] != b:
            root[b] = root[root[b]]
            b = root[b]
        if a < b:
            root[b] = a
        else:
            root[a] = b


@njit()
def flatten(root):  # type: ignore[no-untyped-def]
    """Let each entry name the root of its tree; an entry is never below its root."""
    for i in range(len(root)):
        root[i] = root[root[i]]
