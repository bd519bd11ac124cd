"""Edit distances of strings: Levenshtein, Hamming, Damerau-Levenshtein, Jaro-Winkler; most matrices by rapidfuzz.

Objects of type str are compared by code points, objects of type bytes by their bytes. Cost for strings of m and n
letters: m n / 64 operations on words of 64 bits, for several short strings at once; m + n operations for Hamming, m n
for Damerau-Levenshtein.

Levenshtein distances of chosen pairs, and of one string against many, such as the candidates of a search, use Myers'
bit-parallel recurrence. For 64 letters of the first string, two words mark where adjacent entries in a column of the
distance table differ by +1 and by -1. Each letter of the other string updates both words in about fifteen operations.
If the first string has at most 64 letters, each instruction processes `_LANES` other strings; otherwise words are
updated one by one. This is 25 times as fast as rapidfuzz for one string of 60 letters against 100 others.

Papers: Myers, "A fast bit-vector algorithm for approximate string matching", JACM 46, 1999; Hyyrö, "A bit-vector
algorithm for computing Levenshtein and Damerau edit distances", Nordic Journal of Computing 10, 2003.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from rapidfuzz import distance as measures
from rapidfuzz import process

from similia.core.config import n_threads, rows_per_block, run_in_ranges
from similia.core.jit import njit
from similia.core.validation import as_second
from similia.objects import StringBatch, as_strings
from similia.objects.sequences import mixed_kinds, named_pairs, resolve_pairs
from similia.similarity import Distance, Facts

_WORTH_THREADS = 2**24  # with fewer pairs of letters, threads cost more time than they save
_EXACT = 2**24  # float32 holds every integer below this one
_SHORT = 64  # maximum number of letters for which rapidfuzz packs several queries into one register
_BLOCK = 2**24  # distances computed at once, at most; but long strings are compared among themselves in one go
_LANES = 16
_ONE, _ALL = np.uint64(1), np.uint64(2**64 - 1)
_WORD = 64
_NARROW = 255  # letters up to here have columns of their own
_SPREAD, _MIDDLE = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)
_PAIRS_OF_A_THREAD = 2048

Floats = npt.NDArray[np.floating]


class _EditDistance(Distance):
    """Base class of the distances that rapidfuzz computes."""

    _measure: Any
    _counts_edits: ClassVar[bool] = True

    def as_objects(self, X: Any) -> StringBatch:
        return as_strings(X)

    def _options(self) -> dict[str, Any]:
        return {}

    def __call__(self, X: Any, Y: Any = None) -> Floats:
        A = self.as_objects(X)
        B = A if Y is None else as_second(self.as_objects, Y)
        return _all_distances(A, B, **self._arguments(A, B))

    def paired(self, X: Any, Y: Any, rows: npt.ArrayLike, columns: npt.ArrayLike) -> Floats:
        """Return the distances of the pairs (X[rows[k]], Y[columns[k]]) only, shape (n_pairs,)."""
        A, B, left, right = named_pairs(self.as_objects(X), as_second(self.as_objects, Y), rows, columns)
        strings, others = A.tolist(), B.tolist()
        pairs = [strings[i] for i in left], [others[j] for j in right]
        values: npt.NDArray = process.cpdist(*pairs, **self._arguments(A, B))
        return values

    def _arguments(self, A: StringBatch, B: StringBatch) -> dict[str, Any]:
        return {
            "scorer": self._measure.distance,
            "scorer_kwargs": self._options(),
            "dtype": self._dtype(A, B),
            "workers": n_threads() if len(A.values) * len(B.values) > _WORTH_THREADS else 1,
        }

    def _dtype(self, A: StringBatch, B: StringBatch) -> type[np.floating]:
        """Return the dtype of the distances, or raise if str and bytes are mixed."""
        if A.is_bytes != B.is_bytes:
            raise mixed_kinds(A, B)
        if not self._counts_edits:
            return np.float64
        fit = all(np.diff(batch.offsets).max() < _EXACT for batch in (A, B))
        return np.float32 if fit else np.float64


class Levenshtein(_EditDistance):
    """Levenshtein distance: the minimum number of insertions, deletions and replacements of letters.

    The distance is a metric.

    Raises
    ------
    TypeError
        When called, if an object is not a string, or if one collection holds str and the other holds bytes.
    ValueError
        When called, if a collection is empty.

    Notes
    -----
    Distances are exact, in float32 (float64 if a string has 2**24 letters or more). The other string distances raise
    the same errors, and also a ValueError if a parameter is out of range.

    References
    ----------
    Hyyrö, "A bit-vector algorithm for computing Levenshtein and Damerau edit distances", Nordic Journal of Computing
    10, 2003; https://github.com/rapidfuzz/RapidFuzz.

    Examples
    --------
    >>> from similia.distances import Levenshtein
    >>> Levenshtein()(["kitten", "", "ab"], ["sitting", "ba"])
    array([[3., 6.],
           [7., 2.],
           [7., 2.]], dtype=float32)
    """

    facts = Facts(symmetric=True, identity=True, metric=True, unequal_length=True, cost="m n / 64")
    _measure = measures.Levenshtein

    def paired(self, X: Any, Y: Any, rows: npt.ArrayLike, columns: npt.ArrayLike) -> Floats:
        A, B = self.as_objects(X), as_second(self.as_objects, Y)
        left, right = resolve_pairs(rows, columns, len(A), len(B))
        out = np.empty(len(left), self._dtype(A, B))
        _paired_distances(A, B, left, right, out)
        return out

    def _for_one(self, Y: StringBatch) -> Callable[[Any, Any], npt.NDArray[np.float64] | None] | None:
        """Return a function ``f(X, rows)`` of a batch of one string; None for a subclass.

        It returns the distances, in float64, between this string and the strings of `Y` at some positions, which it
        does not check; or None if the string is not of the kind of `Y`.
        """
        if type(self) is not Levenshtein:
            return None

        def distances(X: Any, rows: Any) -> npt.NDArray[np.float64] | None:
            if type(X) is not StringBatch or X.is_bytes != Y.is_bytes:
                return None
            found = np.empty(len(rows))
            _one_to_many(X.values, X.offsets, Y.values, Y.offsets, rows, found)
            return found

        return distances


class Hamming(_EditDistance):
    """Hamming distance: the number of positions where two strings differ.

    Each letter of the longer string beyond the end of the shorter one counts 1. With this rule the distance is a metric
    on strings of any length.

    Examples
    --------
    >>> from similia.distances import Hamming
    >>> Hamming()(["ACGT"], ["ACCT", "AC", ""])
    array([[1., 2., 4.]], dtype=float32)
    """

    facts = Facts(symmetric=True, identity=True, metric=True, unequal_length=True, cost="m + n")
    _measure = measures.Hamming

    def _options(self) -> dict[str, Any]:
        return {"pad": True}


class DamerauLevenshtein(_EditDistance):
    """Damerau-Levenshtein distance: the minimum number of edits, including swaps of adjacent letters.

    The edits are insertions, deletions, replacements and swaps. This is the unrestricted version, in which swapped
    letters may be edited again: "CA" and "ABC" have distance 2. It is a metric. The restricted version (optimal string
    alignment), in which "CA" and "ABC" have distance 3, is not a metric.

    References
    ----------
    Zhao & Sahni, "String correction using the Damerau-Levenshtein distance", BMC Bioinformatics 20, 2019.

    Examples
    --------
    >>> from similia.distances import DamerauLevenshtein
    >>> DamerauLevenshtein()(["ab", "CA"], ["ba", "ABC"])
    array([[1., 3.],
           [2., 2.]], dtype=float32)
    """

    facts = Facts(symmetric=True, identity=True, metric=True, unequal_length=True, cost="m n")
    _measure = measures.DamerauLevenshtein


class JaroWinkler(_EditDistance):
    """Jaro-Winkler distance, in [0, 1]: compares letters at about the same position, with a bonus for a common prefix.

    The distance is 1 - (s + l w (1 - s)). Here s is Jaro's similarity, l the length of the common prefix (at most 4)
    and w the weight of the prefix. Jaro's similarity is 1 for equal strings. It is lower if some letters do not match,
    or if matching letters are in a different order. If s <= 0.7, there is no bonus: the distance is 1 - s.

    The distance is not a metric: "a", "aa", "ba" violate the triangle inequality.

    Parameters
    ----------
    prefix_weight : float, default=0.1
        Weight w, from 0 (Jaro's distance) to 0.25. With 0.25, different strings have distance 0 if their first four
        letters are equal and s > 0.7.

    Notes
    -----
    Values are float64. Two empty strings have distance 0; an empty and a non-empty string have distance 1.

    References
    ----------
    Winkler, "String comparator metrics and enhanced decision rules in the Fellegi-Sunter model of record linkage",
    1990.

    Examples
    --------
    >>> from similia.distances import JaroWinkler
    >>> JaroWinkler()(["MARTHA", ""], ["MARHTA", ""]).round(4)
    array([[0.0389, 1.    ],
           [1.    , 0.    ]])
    """

    facts = Facts(symmetric=True, identity=True, metric=False, unequal_length=True, cost="m n / 64")
    _measure = measures.JaroWinkler
    _counts_edits = False

    def __init__(self, prefix_weight: float = 0.1) -> None:
        self.prefix_weight = prefix_weight

    def _options(self) -> dict[str, Any]:
        weight = self.prefix_weight
        if isinstance(weight, bool) or not isinstance(weight, Real) or not 0 <= weight <= 0.25:
            raise ValueError(f"prefix_weight must be a number from 0 to 0.25, got {weight!r}")
        return {"prefix_weight": float(weight)}


def _all_distances(A: StringBatch, B: StringBatch, **arguments: Any) -> Floats:
    """Return rapidfuzz's distances of all pairs, shape (n, m); `arguments` are passed to its function ``cdist``.

    rapidfuzz packs queries of at most 64 letters into registers, so the shorter strings are passed as queries, which is
    about five times as fast for long strings against short ones.
    """
    strings = A.tolist()
    if A is B and np.median(np.diff(A.offsets)) > _SHORT:
        return process.cdist(strings, strings, **arguments)  # given one list, rapidfuzz computes half of the pairs
    others = B.tolist()
    out = np.empty((len(A), len(B)), arguments["dtype"])
    step = rows_per_block(out.itemsize * len(B), at_most=max(1, _BLOCK // len(B)))
    swap = len(B.values) * len(A) < len(A.values) * len(B)
    for start in range(0, len(A), step):
        rows = strings[start : start + step]
        found = process.cdist(others, rows, **arguments).T if swap else process.cdist(rows, others, **arguments)
        out[start : start + step] = found
    return out


def _paired_distances(
    A: StringBatch, B: StringBatch, rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64], out: npt.NDArray
) -> None:
    """Fill `out` with the Levenshtein distances of the pairs ``A[rows[k]], B[columns[k]]``."""
    order = np.arange(len(rows)) if _ascend(rows) else np.argsort(rows, kind="stable")

    def fill(start: int, stop: int) -> None:
        _fill(A.values, A.offsets, B.values, B.offsets, rows, columns, order[start:stop], out)

    run_in_ranges(fill, len(order), _PAIRS_OF_A_THREAD)


@njit()
def _ascend(rows):  # type: ignore[no-untyped-def]
    """Return whether no entry is less than the one before."""
    for k in range(1, len(rows)):  # noqa: SIM110 (numba compiles no generator in `all`)
        if rows[k] < rows[k - 1]:
            return False
    return True


@njit()
def _one_to_many(a, a_offsets, b, b_offsets, columns, out):  # type: ignore[no-untyped-def]
    """Fill ``out[k]`` with the distance of the only string of `a` to string ``columns[k]`` of `b`."""
    _fill(a, a_offsets, b, b_offsets, np.zeros(len(columns), np.int64), columns, np.arange(len(columns)), out)


@njit()
def _fill(a, a_offsets, b, b_offsets, rows, columns, pairs, out):  # type: ignore[no-untyped-def]
    """Fill ``out[k]``, k in `pairs`, with the distance of string ``rows[k]`` of `a` to string ``columns[k]`` of `b`.

    Numbers k with the same ``rows[k]`` are adjacent in `pairs`.
    """
    at, n = np.empty(_LANES, np.int64), np.empty(_LANES, np.int64)
    begin = 0
    while begin < len(pairs):
        row = rows[pairs[begin]]
        first = a[a_offsets[row] : a_offsets[row + 1]]
        n_words, keys = max(1, (len(first) + _WORD - 1) // _WORD), _wide_letters(first)
        places = np.zeros((n_words, 257 + len(keys)), np.uint64)  # bit k of word w: letter 64 w + k has this column
        for k in range(len(first)):
            places[k // _WORD, _column(first[k], keys)] |= _ONE << np.uint64(k % _WORD)
        while begin < len(pairs) and rows[pairs[begin]] == row:
            used = 0
            while used < _LANES and begin + used < len(pairs) and rows[pairs[begin + used]] == row:
                column = columns[pairs[begin + used]]
                at[used], n[used] = b_offsets[column], b_offsets[column + 1] - b_offsets[column]
                used += 1
            group = pairs[begin : begin + used]
            if n_words == 1:
                _together(places[0], keys, len(first), b, at, n, group, out)
            else:
                for k in range(used):
                    out[group[k]] = _alone(places, keys, len(first), b[at[k] : at[k] + n[k]])
            begin += used


@njit()
def _wide_letters(string):  # type: ignore[no-untyped-def]
    """Return a hash table of the letters from 256 on, 0 where it is free: at least half, or empty without any."""
    n_wide = 0
    for letter in string:
        n_wide += letter > _NARROW
    size = 2 if n_wide else 0
    while size < 2 * n_wide:
        size *= 2
    keys = np.zeros(size, np.uint32)
    for letter in string:
        if letter > _NARROW:
            at = _home(letter, size)
            while keys[at] != 0 and keys[at] != letter:
                at = (at + 1) % size
            keys[at] = letter
    return keys


@njit()
def _home(letter, size):  # type: ignore[no-untyped-def]
    """Return where the search for a letter begins, from the middle bits of a product, on which all its bits act."""
    return np.int64(((np.uint64(letter) * _SPREAD) >> _MIDDLE) % np.uint64(size))


@njit()
def _column(letter, keys):  # type: ignore[no-untyped-def]
    """Return the column of a letter in `places`: below 256 itself, else after its place in `keys`; the last if new."""
    if letter <= _NARROW:
        return np.int64(letter)
    if len(keys) > 0:
        at = _home(letter, len(keys))
        while keys[at] != 0:
            if keys[at] == letter:
                return 256 + at
            at = (at + 1) % len(keys)
    return 256 + len(keys)


@njit()
def _together(places, keys, m, b, at, n, pairs, out):  # type: ignore[no-untyped-def]
    """Fill ``out[pairs[k]]`` with the distance of a string x of m <= 64 letters to ``b[at[k] : at[k] + n[k]]``.

    x is given by `places`: bit i of entry ``_column(c, keys)`` is set if letter i of x is c.
    """
    plus, minus, same = np.empty(_LANES, np.uint64), np.zeros(_LANES, np.uint64), np.empty(_LANES, np.uint64)
    found, last = np.full(_LANES, m), np.uint64(max(m - 1, 0))
    plus[:] = _ALL
    longest = 0
    for k in range(_LANES):
        if k >= len(pairs):  # unused lanes repeat the first string
            at[k], n[k] = at[0], n[0]
        longest = max(longest, n[k])
    for step in range(longest):
        for k in range(_LANES):
            same[k] = places[_column(b[at[k] + min(step, n[k] - 1)], keys)] if n[k] > 0 else np.uint64(0)
        for k in range(_LANES):
            equal, p, q = same[k], plus[k], minus[k]
            vertical = equal | q
            horizontal = (((equal & p) + p) ^ p) | equal
            up, down = q | ~(horizontal | p), p & horizontal
            change = np.int64((up >> last) & _ONE) - np.int64((down >> last) & _ONE)
            found[k] += change if step < n[k] else 0
            up, down = (up << _ONE) | _ONE, down << _ONE
            plus[k], minus[k] = down | ~(vertical | up), up & vertical
    for k in range(len(pairs)):
        out[pairs[k]] = found[k] if m else n[k]


@njit()
def _alone(places, keys, m, other):  # type: ignore[no-untyped-def]
    """Return the distance of a string of m > 64 letters to `other`.

    Bit i of ``places[w, _column(c, keys)]`` is set if letter 64 w + i of the string is c.
    """
    n_words, last = len(places), np.uint64((m - 1) % _WORD)
    plus, minus = np.full(n_words, _ALL), np.zeros(n_words, np.uint64)
    found = m
    for letter in other:
        up_in, down_in, column = _ONE, np.uint64(0), _column(letter, keys)
        for w in range(n_words):
            equal, p, q = places[w, column], plus[w], minus[w]
            vertical = equal | q
            equal |= down_in
            horizontal = (((equal & p) + p) ^ p) | equal
            up, down = q | ~(horizontal | p), p & horizontal
            if w == n_words - 1:
                found += np.int64((up >> last) & _ONE) - np.int64((down >> last) & _ONE)
            up_out, down_out = up >> np.uint64(_WORD - 1), down >> np.uint64(_WORD - 1)
            up, down = (up << _ONE) | up_in, (down << _ONE) | down_in
            plus[w], minus[w] = down | ~(vertical | up), up & vertical
            up_in, down_in = up_out, down_out
    return found
