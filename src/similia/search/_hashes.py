r"""How `near_duplicates` hashes objects: the plan of bands and features, and signs of random projections.

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

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.special import bdtr, bdtrc

from similia.codes.minhash import MinHash, key_of_nothing
from similia.codes.sign_projection import SignRandomProjection
from similia.core.config import rows_per_block
from similia.core.errors import part_from, warn_user
from similia.core.hashing import mix
from similia.core.jit import njit
from similia.core.threads import run_in_ranges
from similia.core.validation import generator
from similia.kernels import MinMax, Spectrum
from similia.kernels.hypersphere import Cosine, to_hypersphere
from similia.objects import n_objects, take
from similia.objects.sequences import StringBatch
from similia.search._join import Limit
from similia.search.metric import Floats, Index

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

    def hashed(self, hashing: Any, X: Any) -> tuple[Any, Any, Any]:
        """Return the keys, the hashes, and which objects have no features; `hashing` is fitted."""
        if self.signs:
            return hashing.bands(X, self.rows)
        keys, hashes = hashing.bands(X, self.rows)
        return keys, hashes, (keys == key_of_nothing(self.rows)).all(axis=1)


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
            return to_hypersphere(X, self.function.mapping, zero_rows=self.function.zero_rows)
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
