r"""Compare pairs of objects by a similarity and keep those that pass a threshold; propose pairs with equal keys.

`near_duplicates` hashes objects by a plan of bands and features, or by signs of random projections.

**Plan.** Hashes in a band, bands, and the features that are hashed. It has the least estimated time among those by
which a pair at the threshold agrees in a band and in enough hashes with a probability of at least the recall, averaged
over such pairs; see `similia.search.duplicates`.

**Signs** of random projections of their features hash objects whose similarity is a cosine (SimHash). Signs of x and y
agree with probability 1 - theta / pi, theta = arccos k(x, y) (Charikar, "Similarity estimation techniques from rounding
algorithms", STOC 2002). Directions are Gaussian. For rows with zeros, features share 2**14 of them, so two features may
have one direction, with random signs; this moves a cosine of m features each by about m / 2**14 at most, and only
candidates depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.special import bdtr, bdtrc

from similia.codes.minhash import MinHash, key_of_nothing
from similia.codes.sign_projection import SignRandomProjection
from similia.core.config import in_threads, limited_to, n_threads, rows_per_block, run_in_ranges, settings, track
from similia.core.hashing import mix
from similia.core.intervals import wilson
from similia.core.jit import njit
from similia.core.validation import BadPair, BadValue, generator, part_from, warn_user
from similia.distances.edit import Levenshtein
from similia.kernels import MinMax, Spectrum
from similia.kernels.combine import Normalized, Sum
from similia.kernels.counts import FeatureKernel
from similia.kernels.hypersphere import Cosine, mapped_by
from similia.kernels.minmax import Intersection
from similia.objects import n_objects, take
from similia.objects.sequences import StringBatch
from similia.search.hamming_index import Part
from similia.search.neighbour_graph import N_BITS, default_encoder
from similia.search.scan import nearest
from similia.similarity import Floats, Index, Metric, note_on_case

_BLOCK = 2**12  # pairs that a thread compares at once
_PER_BYTE, _OF_DISTANCE = 64, 8  # about the bytes that a kernel's features, or a distance, need per byte of an object
_MOST_PAIRS = 2**27  # pairs returned
_SLACK = 1 + 1e-9  # a number of edits that rounding made too small would miss pairs at the threshold
_SAMPLE, _PER_SIDE = 400, 200  # objects from which a plan is made, and pairs made by edits
_KS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16)  # lengths of k-mers that are tried
_MOST_EDITS = 4  # for each letter of the longest string; more edits leave as good as no k-mer
_MOST_ROWS, _MOST_SIGNS, _MOST_HASHES = 16, 64, 1024
_HASH, _BAND = 7, 150  # estimated ns: n hashes of an object take n log n times the first, a key of a band the second
_SIGN = 20  # estimated ns: a sign of a projection
_CHECK, _COMPARE = 300, 5000  # estimated ns per pair of which hashes are compared, per pair that is compared itself
_LOST = 0.1  # of the share of pairs that may be missed, the part that may have too few equal hashes
_ESTIMATED = 2**12  # pairs from which the recall of edits is estimated
_SLOTS = 2**14  # directions that the features of sparse rows share
_GRAIN = 64  # objects worth a call in a thread
NEAR, FIT_ON = 100, 1024  # objects with the nearest codes that are compared, and objects to which an encoder is fitted
CHECKED = 100  # objects that are compared with all others to measure the recall of bits
_IN_GROUPS = 200  # pairs within groups for each object, at most
QUERIES, _CODES = 2**12, 2**14  # codes whose nearest are found, and codes copied, at once
_SIZES = ("letters", "<i8"), ("bytes", "<i8")  # of an object


class Checked(NamedTuple):
    """Which near-duplicates of a sample of objects were found; see `Duplicates.check`.

    Attributes
    ----------
    recall : float
        ``n_found / n_true``, or NaN if the objects have no near-duplicates.
    low, high : float
        Ends of the 95 % interval of the recall, by Wilson's formula. Because the pairs of one object are often found or
        missed together, each object that has near-duplicates counts as one observation.
    n_found : int
        Number of near-duplicates of the objects that were found.
    n_true : int
        Number of all near-duplicates of the objects.
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
        per_byte = _PER_BYTE if self.metric.is_kernel else _OF_DISTANCE
        at_once = settings().max_memory // (2 * per_byte * n_threads() * (1 + bytes_of(self.X) // self.n))
        size = int(np.clip(at_once, 16, _BLOCK))
        blocks = [order[start : start + size] for start in range(0, len(order), size)]

        def compare(block: Index) -> tuple[Index, Index, Floats]:
            chosen, places = np.unique(np.concatenate([left[block], right[block]]), return_inverse=True)
            rows, columns = places[: len(block)], places[len(block) :]
            by_row = np.argsort(rows, kind="stable")
            with limited_to(1), pairs_among(chosen, chosen):
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
            with pairs_among(block, columns):
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


@contextmanager
def pairs_among(rows: Index, columns: Index) -> Iterator[None]:
    """Context manager that turns the pair (i, j), in errors raised inside, into (``rows[i]``, ``columns[j]``)."""
    try:
        yield
    except BadPair as error:
        i, j = error.index
        raise error.changed(index=(int(rows[i]), int(columns[j])), names="X[{}] and X[{}]") from error.__cause__


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


def groups_of(root: Index) -> Iterator[Index]:
    """Yield the positions of each group with at least 3 of n objects, small groups first, at most 200 n pairs."""
    order = np.argsort(root, kind="stable")
    groups, left_over = np.split(order, np.flatnonzero(np.diff(root[order])) + 1), _IN_GROUPS * len(root)
    for group in sorted((group for group in groups if len(group) > 2), key=len):
        left_over -= len(group) * (len(group) - 1) // 2
        if left_over < 0:
            return
        yield group


def warn_if_below(share: float, recall: float) -> None:
    """Warn if the share of pairs that bits found is below the required recall."""
    if share < recall:
        words = f"near_duplicates found about {share:.0%} of the pairs, below recall={recall:g}; groups are probably "
        warn_user(words + 'right; method="exact" finds all pairs')


def warn_of_case(objects: Any, function: Any) -> None:
    """Warn if sequences are written partly in capitals, partly in small letters, which `function` tells apart."""
    if note := note_on_case(objects, function):
        warn_user(note)


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


class Plan(NamedTuple):
    """How candidates are found: kernel with the features, hashes in a band, bands, and least number of equal hashes."""

    kernel: Any
    rows: int
    bands: int
    least: int
    signs: bool = False

    def p(self, values: Floats) -> Floats:
        """Return the probability that objects with these min-max kernels, or cosines, agree in the key of a band."""
        return agreement(agreement_of_signs(values) if self.signs else values, self.rows, self.bands)

    def hashing(self, random_state: Any) -> Signs | MinHash:
        """Return what hashes objects, unfitted."""
        n_hashes = self.rows * self.bands
        if self.signs:
            return Signs(self.kernel, n_hashes, random_state)
        return MinHash(self.kernel, n_hashes, output="onehot", random_state=random_state)

    @property
    def row(self) -> np.dtype:
        """Return the dtype of what is kept of each object."""
        keys, hashes = ("keys", "<u8", (self.bands,)), ("hashes", "u1", (self.rows * self.bands,))
        return np.dtype([keys, hashes, *_SIZES, ("nothing", "?")])

    def sign(self, hashing: Any, X: Any, found: npt.NDArray) -> None:
        """Fill the fields of `found` with the keys and hashes of objects."""
        found["keys"], found["hashes"], found["nothing"] = self.hashed(hashing, X)

    def hashed(self, hashing: Any, X: Any) -> tuple[Any, Any, Any]:
        """Return the keys, the hashes, and which objects have no features; `hashing` is fitted."""
        if self.signs:
            return hashing.bands(X, self.rows)
        keys, hashes = hashing.bands(X, self.rows)
        return keys, hashes, (keys == key_of_nothing(self.rows)).all(axis=1)


class Bits:
    """How candidates are found by codes of bits: each object is compared with those whose codes are nearest to its own.

    The plan of objects whose similarity has no hashes.
    """

    row = np.dtype([("code", "u1", (N_BITS // 8,)), *_SIZES])

    @staticmethod
    def encoder(metric: Metric, some: Any, seed: Any) -> Any:
        """Return an encoder of objects to codes; `some` are the objects of `fitted_to`."""
        return default_encoder(metric, some, seed)

    @staticmethod
    def sign(encoder: Any, X: Any, found: npt.NDArray) -> None:
        """Fill the field of `found` with the codes of objects."""
        found["code"] = encoder.transform(X)

    @staticmethod
    def near(codes: npt.NDArray[np.uint8], first: int, stop: int) -> tuple[Index, Index]:
        """Return the pairs, smaller position first, of the objects `first` to `stop` - 1 and those with nearest codes.

        `codes` may be a field of records in a memory map: a block of them is copied at a time.
        """
        n = len(codes)
        ids, dead = np.arange(n), np.zeros(n, np.bool_)
        blocks = [slice(start, start + _CODES) for start in range(0, n, _CODES)]
        parts = [Part(codes[block], ids[block], dead[block]) for block in blocks]
        others = nearest(parts, np.ascontiguousarray(codes[first:stop]), min(NEAR + 1, n))[1]
        own = np.broadcast_to(np.arange(first, stop)[:, None], others.shape)
        apart = own != others  # the object itself may be missing, if the codes of others are equal to its own
        left, right = own[apart], others[apart]
        return np.minimum(left, right), np.maximum(left, right)


def fitted_to(n: int, seed: Any) -> Index:
    """Return the positions of the objects to which the encoder of `Bits` is fitted."""
    return np.sort(generator(seed).choice(n, min(n, FIT_ON), replace=False))


def sample_of(n: int, rng: np.random.Generator) -> Index:
    """Return the positions of the objects from which a plan is made."""
    return np.sort(rng.choice(n, min(n, _SAMPLE), replace=False))


def plan(limit: Limit, some: Any, n: int, recall: float, rng: np.random.Generator) -> Plan | None:
    """Return the plan of least estimated time that reaches the recall among n objects; warn if there is none.

    `some` are the objects of `sample_of`. Return None if no string has the letters of the least k, or edits make more
    than a tenth of those that have them shorter.
    """
    choices = _of_edits(limit, some, rng) if limit.is_edits else _of_kernel(limit, some)
    lost = (1 - recall) * _LOST
    signs, best, lowest, poor, most = limit.is_cosine, None, np.inf, None, -1.0
    for kernel, at, others in choices:
        for rows in range(1, (_MOST_SIGNS if signs else _MOST_ROWS) + 1):
            bands = _n_bands(at**rows, recall / (1 - lost), _MOST_HASHES // rows)
            n_hashes = rows * bands
            fewer = bdtr(np.arange(n_hashes), n_hashes, at.min())  # at most 0, 1, ... hashes are equal
            least = int(np.searchsorted(fewer, lost, side="right"))
            # To agree in a band and to have enough equal hashes make each other more probable.
            reached = float(np.mean(agreement(at, rows, bands) * bdtrc(least - 1, n_hashes, np.minimum(at, 1))))
            hashing = n_hashes * (_SIGN if signs else np.log(n_hashes + 1) * _HASH)
            cost = float(n * (hashing + bands * _BAND))
            if len(others):
                per_pair = others**rows * (_CHECK + _COMPARE * (others * n_hashes >= least))
                cost += n * n / 2 * bands * float(np.mean(per_pair))
            found = Plan(kernel, rows, bands, least, signs)
            if reached >= recall and cost < lowest:
                best, lowest = found, cost
            if reached > most:
                poor, most = found, reached
    if best is not None:
        return best
    if poor is None:
        return None
    warn_user(f"hashes find about {most:.0%} of the pairs at the threshold; method='exact' finds all")
    return poor


def _of_kernel(limit: Limit, some: Any) -> Iterator[tuple[Any, Floats, Floats]]:
    """Yield the kernel that is hashed, the share J of hashes that agree at the threshold, and of unrelated objects."""
    K, function = limit.metric.between(some, some), limit.metric.function
    others, at = K[np.triu_indices(len(K), 1)], np.array([limit.threshold])
    others = others[others < limit.threshold]
    if limit.is_cosine:
        yield function, agreement_of_signs(at), agreement_of_signs(others)
    else:
        yield function.kernel, at, others


def _of_edits(limit: Limit, some: Any, rng: np.random.Generator) -> Iterator[tuple[Any, Floats, Floats]]:
    """Yield the same for k-mers of several lengths; pairs at the threshold are made by random edits."""
    alphabet = np.unique(some.values)
    lengths = np.diff(some.offsets)
    rows = np.arange(0, len(lengths), max(1, len(lengths) // _PER_SIDE))  # evenly: strings may be sorted by length
    edited, most = [], _MOST_EDITS * int(lengths.max(initial=1))
    for i, n_letters in zip(rows, lengths[rows], strict=True):
        letters = some.values[some.offsets[i] : some.offsets[i] + n_letters].tolist()
        edited.append(_with_edits(letters, min(most, limit.edits(n_letters)), alphabet, rng))
    some_edited = StringBatch(
        np.concatenate([np.array(letters, some.values.dtype) for letters in edited] or [some.values[:0]]),
        np.concatenate([[0], np.cumsum([len(letters) for letters in edited])]).astype(np.int64),
        some.is_bytes,
    )
    lengths = lengths[rows]
    for k in _KS:
        kernel = Spectrum(k)
        long = (lengths >= k) & (np.diff(some_edited.offsets) >= k)
        if np.count_nonzero(long) < 0.9 * np.count_nonzero(lengths >= _KS[0]) or not long.any():
            return  # shorter strings are compared with all of similar length
        shared = MinMax(kernel)
        at = np.asarray(shared.paired(some, some_edited, rows[long], np.flatnonzero(long)))
        K = shared(some)
        yield kernel, at, K[np.triu_indices(len(K), 1)]


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


def agreement(J: Floats, rows: int, bands: int) -> Floats:
    """Return the probability that two objects agree in all `rows` hashes of one of the bands."""
    return -np.expm1(bands * np.log1p(-np.minimum(J**rows, 1 - 1e-16)))


def pairs_to_estimate(n_pairs: int) -> Index:
    """Return the numbers of the pairs from whose features the recall of edits is estimated."""
    return np.sort(generator(0).choice(n_pairs, min(n_pairs, _ESTIMATED), replace=False))


def estimated_recall(values: Floats, found: Plan) -> float:
    """Return the estimated share of all pairs that were found, from the values of J among those found.

    Pairs without a common feature are left out: all strings shorter than k are compared.
    """
    values = values[values > 0]
    return len(values) / float(np.sum(1 / found.p(values))) if len(values) else float("nan")


def n_letters_compared(limit: Limit, longest: int) -> int:
    """Return the largest length of a string within the limit of one of `longest` letters."""
    return longest + limit.edits(longest)


def agreement_of_signs(cosines: Floats) -> Floats:
    """Return the probability that the signs of a projection of two vectors agree."""
    return 1 - np.arccos(np.clip(cosines, -1.0, 1.0)) / np.pi


class Signs:
    """Turns objects into signs of random projections, as hashes of one bit each."""

    def __init__(self, function: Any, n_hashes: int, random_state: Any) -> None:
        self.function, self.n_hashes = function, n_hashes
        self._random = generator(random_state)

    def fit(self, X: Any) -> Signs:
        """Draw the directions."""
        rows = self._rows(take(X, [0]))
        self._dense: SignRandomProjection | None = None
        if not sp.issparse(rows):
            n_bits = -(-self.n_hashes // 8) * 8
            self._dense = SignRandomProjection(n_bits, random_state=self._random).fit(rows)
            return self
        self._seed = np.uint64(self._random.integers(2**63))
        self._directions = self._random.standard_normal((_SLOTS, self.n_hashes), dtype=np.float32)
        return self

    def bands(self, X: Any, rows: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
        """Return a key for each band of `rows` hashes, the hashes (0 or 1), and which objects have no features."""
        n, bands = n_objects(X), self.n_hashes // rows
        keys, hashes = np.empty((n, bands), np.uint64), np.empty((n, self.n_hashes), np.uint8)
        empty = np.zeros(n, np.bool_)
        step = rows_per_block(64 * self.n_hashes, at_most=4096)
        for start in range(0, n, step):
            stop = min(n, start + step)
            with part_from(start):
                features = self._rows(take(X, np.arange(start, stop)))
            hashes[start:stop] = self._hashes(features)
            if sp.issparse(features):
                empty[start:stop] = np.diff(features.indptr) == 0
            words = np.zeros((stop - start, bands, 64), np.uint8)
            words[:, :, :rows] = hashes[start:stop].reshape(stop - start, bands, rows)
            keys[start:stop] = np.packbits(words, axis=2).view(np.uint64)[:, :, 0]
        return keys, hashes, empty

    def _rows(self, X: Any) -> Any:
        if isinstance(self.function, Cosine):
            return mapped_by(self.function, X, self.function.mapping)
        return self.function.features(X)

    def _hashes(self, features: Any) -> npt.NDArray[np.uint8]:
        if self._dense is not None:
            return np.unpackbits(self._dense.transform(features), axis=1)[:, : self.n_hashes]
        out = np.empty((features.shape[0], self.n_hashes), np.uint8)
        columns, values = features.indices.astype(np.int64), features.data.astype(np.float64)

        def fill(first: int, last: int) -> None:
            _signs(features.indptr, columns, values, self._seed, self._directions, out, first, last)

        run_in_ranges(fill, len(out), _GRAIN)
        return out


@njit()
def _signs(bounds, columns, values, seed, directions, out, first, last):  # type: ignore[no-untyped-def]
    """Fill row i of `out` with the signs (0 or 1) of the projections of row i of a sparse matrix."""
    n_slots, n = directions.shape
    sums = np.empty(n, np.float64)
    for i in range(first, last):
        sums[:] = 0.0
        for k in range(bounds[i], bounds[i + 1]):
            word = mix(np.uint64(columns[k]) ^ seed)
            slot = np.int64(word % np.uint64(n_slots))
            value = values[k] if word >> np.uint64(63) else -values[k]
            for h in range(n):
                sums[h] += value * directions[slot, h]
        for h in range(n):
            out[i, h] = np.uint8(sums[h] >= 0)
