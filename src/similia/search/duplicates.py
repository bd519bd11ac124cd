"""Near-duplicates: all pairs of objects above a similarity or below a distance, in time near-linear in their number.

``method="hashes"`` finds candidates by locality-sensitive hashing and compares each of them exactly:

1. `similia.MinHash` gives each object one key for each of b bands of r hashes. Objects whose min-max kernel is J have
   the same key of a band with probability J**r, and of at least one band with p(J) = 1 - (1 - J**r)**b.
2. Objects with equal keys of a band are candidates. A pair counts in the first band in which its keys are equal, so no
   table of pairs is needed. The share of all equal hashes estimates J; candidates are left out if it is more than four
   standard errors below the J of pairs at the threshold.
3. The similarity itself decides. So every pair returned is right; pairs may only be missing.

For `MinMax`, J is the similarity. Strings within an edit distance share k-mers, so J is the min-max kernel of k-mers;
strings shorter than k are compared with all strings of similar length.

**Plan.** r and b (and k) are chosen to minimise the estimated time among those for which p, averaged over pairs at the
threshold, is at least `recall`. For edit distances, such pairs are made by random edits of strings of the collection.
The number of candidates is estimated from the values of J among a sample of objects.

**Recall.** Each pair found has a known probability p(J) of being found. So the sum of 1 / p(J) over the pairs found is
an unbiased estimate of the number of all pairs that share a feature (Horvitz & Thompson 1952).

Papers: Broder, "On the resemblance and containment of documents", 1997; Indyk & Motwani, "Approximate nearest
neighbors", STOC 1998; Horvitz & Thompson, "A generalization of sampling without replacement", JASA 1952.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from similia.codes.minhash import MinHash, key_of_nothing
from similia.core.config import rows_per_block
from similia.core.errors import BadParameter, BadType, BadValue, warn_user
from similia.core.progress import logger_of, track
from similia.core.threads import in_threads, limited_to, n_threads
from similia.core.validation import generator, spawn_seeds
from similia.distances.edit import Levenshtein
from similia.kernels import MinMax, Spectrum
from similia.objects import n_objects, take
from similia.objects.sequences import at_least_one
from similia.objects.strings import StringBatch
from similia.search.metric import Floats, Index, Metric, metric_from
from similia.search.neighbour_graph import knn_graph
from similia.sources.dask import is_lazy

_EXACT = 2_000  # objects up to which method="auto" compares all pairs
_SAMPLE, _PER_SIDE = 400, 200  # objects from which a plan is made, and pairs made by edits
_KS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16)  # lengths of k-mers that are tried
_MOST_ROWS, _MOST_HASHES = 16, 1024
_HASH, _BAND = 7, 150  # estimated ns: n hashes of an object take n log n times the first, a key of a band the second
_CHECK, _COMPARE = 300, 5000  # estimated ns per pair of which hashes are compared, per pair that is compared itself
_BUFFER = 2**22  # candidates that are collected before they are compared
_BLOCK = 2**12  # pairs that a thread compares at once
_SORTED = 4  # bands sorted at once
_MOST_PAIRS = 2**27  # pairs returned
_NEIGHBOURS = 20  # of the graph whose edges are candidates of method="neighbours"
_CHECKED = 100  # objects that are compared with all others to measure its recall
_LOGGER = logger_of(__name__)


@dataclass(frozen=True, eq=False)
class Duplicates:
    """Pairs of near-duplicates among n objects, and the groups that they form.

    Attributes
    ----------
    pairs : ndarray of int64, shape (m, 2)
        Positions of two objects, the smaller first; in ascending order.
    values : ndarray of float64, shape (m,)
        The similarity (or distance) of each pair.
    groups : ndarray of int64, shape (n,)
        For each object, the smallest position in its group. Two objects are in one group if a chain of pairs connects
        them; an object without near-duplicates is a group of its own.
    recall : float
        Estimated share of all pairs that were found; 1.0 if all pairs were compared, NaN if it cannot be estimated
        because no pair was found.
    """

    pairs: Index
    values: Floats
    groups: Index
    recall: float

    @property
    def kept(self) -> Index:
        """Positions of the first object of each group, ascending: the collection without its near-duplicates."""
        return np.unique(self.groups)


class _Plan(NamedTuple):
    """How candidates are found: kernel with the features, hashes in a band, bands, and least number of equal hashes."""

    kernel: Any
    rows: int
    bands: int
    least: int


def near_duplicates(
    X: Any,
    similarity: Any,
    threshold: float,
    *,
    relative: bool = False,
    method: str = "auto",
    recall: float = 0.98,
    random_state: Any = None,
) -> Duplicates:
    """Return all pairs of objects that are at least as similar, or at most as far apart, as a threshold.

    Parameters
    ----------
    X : collection of n objects
    similarity : kernel or distance of similia
        ``MinMax(kernel)`` (Jaccard, Tanimoto) and `similia.distances.Levenshtein` have the fast method "hashes".
    threshold : float
        The least value of a kernel, or the largest of a distance, of the pairs to return.
    relative : bool, default=False
        For `Levenshtein`: whether the threshold is a share of the length of the longer string, such as 0.1 for one
        edit in ten letters.
    method : {"auto", "exact", "hashes", "neighbours"}, default="auto"
        "exact" compares all pairs. "hashes" compares objects that agree in a key of `similia.MinHash`. "neighbours"
        compares each object with its 20 nearest ones (`similia.search.knn_graph`), for any similarity; of an object
        with more near-duplicates, only these are found. "auto" takes "exact" for up to 2,000 objects, otherwise
        "hashes" if the similarity has this method, else "neighbours".
    recall : float, default=0.98
        Share of the pairs at the threshold that "hashes" is planned to find, below 1. More similar pairs are found
        with a higher probability.
    random_state : int, numpy generator or None, default=None
        Source of randomness. An integer makes results the same for any number of threads and any
        ``config(max_memory=...)``.

    Returns
    -------
    Duplicates
        ``pairs``, ``values``, ``groups``, the positions ``kept`` and the estimated ``recall``. The values are exact: no
        pair is returned that is not a near-duplicate.

    Raises
    ------
    ValueError
        If a parameter is out of range, or there are more than 2**27 pairs.

    Warns
    -----
    UserWarning
        If no plan reaches `recall`; "hashes" then finds as many pairs as it can.

    Examples
    --------
    >>> import similia as sm
    >>> texts = ["the cat sat on the mat", "the cat sat on a mat", "a dog", "the cat sat on the mat!"]
    >>> found = sm.search.near_duplicates(texts, sm.kernels.MinMax(sm.kernels.Spectrum(3)), 0.7)
    >>> found.pairs, found.values.round(2)
    (array([[0, 3]]), array([0.95]))
    >>> found.kept
    array([0, 1, 2])
    """
    if is_lazy(X):
        raise BadType(None, "is a Dask collection", "objects in memory", "call X.compute(), or take a part of it")
    metric = metric_from(similarity, "similarity")
    _check(metric, threshold, relative, method, recall)
    objects = metric.as_objects(X)
    n = at_least_one(objects)
    metric = metric.decided(objects)
    join = _Join(metric, objects, float(threshold), relative)
    hashable = type(metric.function) is MinMax or type(metric.function) is Levenshtein
    if method == "hashes" and not hashable:
        words = f"'auto', 'exact' or 'neighbours' for {type(metric.function).__name__}"
        raise BadParameter("method", words, repr(method), "MinMax and Levenshtein have 'hashes'")
    if method == "exact" or (method == "auto" and n <= _EXACT) or n < 3:
        share = 1.0
        join.all_pairs(np.arange(n), np.arange(n))
    elif method == "hashes" or (method == "auto" and hashable):
        share = _by_hashes(join, recall, random_state)
    else:
        share = _by_neighbours(join, random_state)
    pairs, values = join.found()
    _, label = connected_components(_graph(pairs, n), directed=False)
    first = np.full(n, n)
    np.minimum.at(first, label, np.arange(n))
    _LOGGER.info("near_duplicates: %d pairs, estimated recall %.3f", len(pairs), share)
    return Duplicates(pairs, values, first[label], share)


def _check(metric: Metric, threshold: Any, relative: bool, method: str, recall: Any) -> None:
    """Raise if a parameter is out of range."""
    if not _is_number(threshold):
        raise BadParameter("threshold", "a finite number", repr(threshold))
    if not metric.is_kernel and threshold < 0:
        raise BadParameter("threshold", "a distance >= 0", repr(threshold))
    if type(metric.function) is MinMax and not 0 < threshold <= 1:
        raise BadParameter("threshold", "above 0 and at most 1 for MinMax", repr(threshold))
    if relative and (type(metric.function) is not Levenshtein or threshold >= 1):
        raise BadParameter("relative", "True only for Levenshtein with a threshold below 1", repr(relative))
    if method not in ("auto", "exact", "hashes", "neighbours"):
        raise BadParameter("method", "'auto', 'exact', 'hashes' or 'neighbours'", repr(method))
    if not _is_number(recall) or not 0 < recall < 1:
        raise BadParameter("recall", "a number above 0 and below 1", repr(recall), "method='exact' finds all pairs")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and bool(np.isfinite(float(value)))


class _Join:
    """Compares candidates and collects the pairs that pass the threshold."""

    def __init__(self, metric: Metric, X: Any, threshold: float, relative: bool) -> None:
        self.metric, self.X, self.n = metric, X, n_objects(X)
        self.threshold = threshold
        self.lengths = np.diff(X.offsets) if relative else None
        self._parts: list[tuple[Index, Index, Floats]] = []
        self._n_found = 0

    def passes(self, values: Any, left: Index, right: Index) -> npt.NDArray[np.bool_]:
        """Return which values of the pairs of objects `left` and `right` pass the threshold."""
        if self.metric.is_kernel:
            return np.asarray(values >= self.threshold)
        limit: Any = self.threshold
        if self.lengths is not None:
            limit = limit * np.maximum(self.lengths[left], self.lengths[right])
        return np.asarray(values <= limit)

    def compare(self, left: Index, right: Index) -> None:
        """Compare the pairs ``left[t], right[t]``, with left < right, and keep those that pass.

        Pairs of one connected component are compared together, so the features of an object are counted once.
        """
        if len(left) == 0:
            return
        _, label = connected_components(_graph(np.stack([left, right], axis=1), self.n), directed=False)
        order = np.lexsort((right, left, label[left]))
        blocks = [order[start : start + _BLOCK] for start in range(0, len(order), _BLOCK)]

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
        good = self.passes(values, left, right)
        self._parts.append((left[good], right[good], values[good]))
        self._n_found += int(np.count_nonzero(good))
        if self._n_found > _MOST_PAIRS:
            found = f"has more than {_MOST_PAIRS} pairs that pass threshold={self.threshold:g}"
            raise BadValue(None, found, "fewer", "take a stricter threshold, or drop equal objects first")

    def found(self) -> tuple[Index, Floats]:
        """Return the pairs, each once and in ascending order, and their values."""
        if not self._parts:
            return np.empty((0, 2), np.int64), np.empty(0)
        left, right, values = (np.concatenate(arrays) for arrays in zip(*self._parts, strict=True))
        _, first = np.unique(left * self.n + right, return_index=True)
        return np.stack([left, right], axis=1)[first].astype(np.int64), values[first]


def _graph(pairs: Index, n: int) -> sp.coo_array:
    return sp.coo_array((np.ones(len(pairs), np.int8), (pairs[:, 0], pairs[:, 1])), shape=(n, n))


# ---- by hashes
def _by_hashes(join: _Join, recall: float, random_state: Any) -> float:
    """Compare the objects that agree in a key; return the estimated recall."""
    seeds = spawn_seeds(random_state, 2)
    rng = generator(seeds[0])
    if type(join.metric.function) is MinMax:
        plan = _planned(_of_kernel(join, rng), join.n, recall)
    else:
        plan = _planned(_of_edits(join, rng), join.n, recall)
    if plan is None:
        join.all_pairs(np.arange(join.n), np.arange(join.n))
        return 1.0
    _LOGGER.info("near_duplicates: %d bands of %d hashes of %r", plan.bands, plan.rows, plan.kernel)
    hashing = MinHash(plan.kernel, plan.rows * plan.bands, output="onehot", random_state=seeds[1]).fit(join.X)
    keys, hashes = hashing.bands(join.X, plan.rows)
    no_features = (keys == key_of_nothing(plan.rows)).all(axis=1)
    for left, right in _with_equal_keys(keys, hashes, plan.least, np.flatnonzero(~no_features)):
        join.compare(left, right)
    if type(join.metric.function) is Levenshtein and no_features.any():
        lengths = np.diff(join.X.offsets)
        longest = int(lengths[no_features].max())
        near = np.flatnonzero(lengths <= longest + _edits(join, longest))
        join.all_pairs(near, near)
    return _estimated(join, plan)


def _of_kernel(join: _Join, rng: np.random.Generator) -> Iterator[tuple[Any, Floats, Floats]]:
    """Yield the kernel whose features are hashed, the values of J at the threshold, and those of unrelated objects."""
    K = join.metric.between(*2 * (take(join.X, _some(join.n, rng)),))
    others = K[np.triu_indices(len(K), 1)]
    yield join.metric.function.kernel, np.array([join.threshold]), others[others < join.threshold]


def _of_edits(join: _Join, rng: np.random.Generator) -> Iterator[tuple[Any, Floats, Floats]]:
    """Yield the same for k-mers of several lengths; pairs at the threshold are made by random edits."""
    some = take(join.X, _some(join.n, rng))
    alphabet = np.unique(some.values)
    edited, lengths = [], np.diff(some.offsets)
    for i, n_letters in enumerate(lengths[:_PER_SIDE]):
        letters = some.values[some.offsets[i] : some.offsets[i] + n_letters].tolist()
        edited.append(_with_edits(letters, _edits(join, n_letters), alphabet, rng))
    some_edited = StringBatch(
        np.concatenate([np.array(letters, some.values.dtype) for letters in edited] or [some.values[:0]]),
        np.concatenate([[0], np.cumsum([len(letters) for letters in edited])]).astype(np.int64),
        some.is_bytes,
    )
    rows = np.arange(len(edited))
    for k in _KS:
        kernel = Spectrum(k)
        long = (lengths[: len(edited)] >= k) & (np.diff(some_edited.offsets) >= k)
        if np.count_nonzero(long) < 0.9 * len(edited):
            return
        shared = MinMax(kernel)
        at = np.asarray(shared.paired(some, some_edited, rows[long], rows[long]))
        K = shared(some)
        yield kernel, at, K[np.triu_indices(len(K), 1)]


def _edits(join: _Join, n_letters: Any) -> int:
    """Return the largest number of edits between a string of so many letters and a longer one."""
    if join.lengths is None:
        return int(join.threshold)
    return int(join.threshold * np.floor(n_letters / (1 - join.threshold)))


def _with_edits(letters: list[int], n_edits: int, alphabet: npt.NDArray, rng: np.random.Generator) -> list[int]:
    """Return the letters after insertions, deletions and replacements at random places."""
    for what in rng.integers(3, size=n_edits):
        at, letter = int(rng.integers(len(letters) + 1)), int(rng.choice(alphabet)) if len(alphabet) else 0
        if what == 0 or not letters:
            letters.insert(at, letter)
        elif what == 1:
            del letters[min(at, len(letters) - 1)]
        else:
            letters[min(at, len(letters) - 1)] = letter
    return letters


def _planned(choices: Iterator[tuple[Any, Floats, Floats]], n: int, recall: float) -> _Plan | None:
    """Return the plan of least estimated time that reaches the recall; warn if there is none.

    Return None if there is no choice, as all strings are shorter than the least k.
    """
    best, lowest, poor, most = None, np.inf, None, -1.0
    for kernel, at, others in choices:
        for rows in range(1, _MOST_ROWS + 1):
            bands = _n_bands(at**rows, recall, _MOST_HASHES // rows)
            reached = float(np.mean(_p(at, rows, bands)))
            n_hashes, J = rows * bands, float(at.min())
            least_J = J - 4 * np.sqrt(J * (1 - J) / n_hashes)
            cost = n * (n_hashes * np.log(n_hashes + 1) * _HASH + bands * _BAND)
            if len(others):
                per_pair = others**rows * (_CHECK + _COMPARE * (others >= least_J))
                cost += n * n / 2 * bands * float(np.mean(per_pair))
            plan = _Plan(kernel, rows, bands, int(np.ceil(max(0.0, least_J) * n_hashes)))
            if reached >= recall and cost < lowest:
                best, lowest = plan, cost
            if reached > most:
                poor, most = plan, reached
    if best is not None:
        return best
    if poor is None:
        return None
    warn_user(f"hashes find about {most:.0%} of the pairs at the threshold; method='exact' finds all")
    return poor


def _n_bands(agree: Floats, recall: float, most: int) -> int:
    """Return the least number of bands, at most `most`, that finds the share `recall` of pairs on average."""
    low, high = 1, max(1, most)
    while low < high:
        middle = (low + high) // 2
        if np.mean(1 - (1 - agree) ** middle) >= recall:
            high = middle
        else:
            low = middle + 1
    return low


def _p(J: Floats, rows: int, bands: int) -> Floats:
    """Return the probability that two objects agree in the key of a band."""
    return -np.expm1(bands * np.log1p(-np.minimum(J**rows, 1 - 1e-16)))


def _some(n: int, rng: np.random.Generator) -> Index:
    return np.sort(rng.choice(n, min(n, _SAMPLE), replace=False))


def _with_equal_keys(
    keys: npt.NDArray[np.uint64], hashes: npt.NDArray[np.uint8], least: int, rows: Index
) -> Iterator[tuple[Index, Index]]:
    """Yield pairs of `rows` that agree in a column of `keys` and `least` columns of `hashes`; each once, sorted."""
    from similia.search import _duplicates as loops

    size = max(_BUFFER, len(keys))
    left, right = np.empty(size, np.int64), np.empty(size, np.int64)
    used = 0
    for first in track(range(0, keys.shape[1], _SORTED), "candidates", -(-keys.shape[1] // _SORTED)):
        bands = range(first, min(keys.shape[1], first + _SORTED))
        orders = in_threads(lambda band: rows[np.argsort(keys[rows, band], kind="stable")], bands)
        for band, order in zip(bands, orders, strict=True):
            at = 0
            while at < len(order):
                at, used = loops.propose_equal(keys, hashes, least, order, band, at, used, left, right)
                if at < len(order):
                    yield left[:used].copy(), right[:used].copy()
                    used = 0
    yield left[:used].copy(), right[:used].copy()


def _estimated(join: _Join, plan: _Plan) -> float:
    """Return the estimated share of pairs that were found; see the head of this module."""
    pairs, values = join.found()
    if type(join.metric.function) is not MinMax:
        rows = np.sort(generator(0).choice(len(pairs), min(len(pairs), _BLOCK), replace=False))
        pairs = pairs[rows]
        values = MinMax(plan.kernel).paired(join.X, join.X, pairs[:, 0], pairs[:, 1]) if len(rows) else values
    values = values[values > 0]  # others are pairs of strings shorter than k, all of which are compared
    return len(values) / float(np.sum(1 / _p(values, plan.rows, plan.bands))) if len(values) else float("nan")


# ---- by neighbours
def _by_neighbours(join: _Join, random_state: Any) -> float:
    """Compare each object with its nearest neighbours; return the recall measured on a sample."""
    seeds = spawn_seeds(random_state, 2)
    graph = knn_graph(join.X, join.metric.function, min(_NEIGHBOURS, join.n - 1), method="bits", random_state=seeds[0])
    edges = graph.tocoo()
    pairs = np.stack([np.minimum(edges.row, edges.col), np.maximum(edges.row, edges.col)], axis=1).astype(np.int64)
    pairs = np.unique(pairs, axis=0)
    join.compare(pairs[:, 0], pairs[:, 1])
    found = join.found()[0]
    known = set((found[:, 0] * join.n + found[:, 1]).tolist())
    sample, everyone = generator(seeds[1]).choice(join.n, min(join.n, _CHECKED), replace=False), np.arange(join.n)
    n_true = n_known = 0
    for i in sample.tolist():
        values = np.asarray(join.metric.between(take(join.X, [i]), join.X), np.float64)[0]
        near = np.flatnonzero(join.passes(values, np.full(join.n, i), everyone) & (everyone != i))
        n_true += len(near)
        n_known += sum(min(i, j) * join.n + max(i, j) in known for j in near.tolist())
    return n_known / n_true if n_true else float("nan")
