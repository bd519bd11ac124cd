"""Edit distances of strings, mostly computed by rapidfuzz: Levenshtein, Hamming, Damerau-Levenshtein, Jaro-Winkler.

Objects of type str are compared by code points, objects of type bytes by their bytes. Cost for strings of m and n
letters: m n / 64 operations on words of 64 bits, for several short strings at once; m + n operations for Hamming, m n
for Damerau-Levenshtein.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from rapidfuzz import distance as measures
from rapidfuzz import process

from similia.core.config import rows_per_block
from similia.core.errors import as_second
from similia.core.threads import n_threads
from similia.distances._edit import one_to_many, paired_distances
from similia.objects import StringBatch, as_strings
from similia.objects.sequences import named_pairs, resolve_pairs
from similia.objects.strings import mixed_kinds
from similia.similarity import Distance, Facts

_WORTH_THREADS = 2**24  # with fewer pairs of letters, threads cost more time than they save
_EXACT = 2**24  # float32 holds every integer below this one
_LANE = 64  # maximum number of letters for which rapidfuzz packs several queries into one register
_BLOCK = 2**24  # distances computed at once, at most; but long strings are compared among themselves in one go

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

    It is a metric.

    Raises
    ------
    TypeError
        When called, if an object is not a string, or one collection holds str and the other bytes.
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
        if A.values.dtype != np.uint8 or B.values.dtype != np.uint8:
            return super().paired(A, B, rows, columns)
        left, right = resolve_pairs(rows, columns, len(A), len(B))
        out = np.empty(len(left), self._dtype(A, B))
        paired_distances(A, B, left, right, out)
        return out

    def _for_one(self, Y: StringBatch) -> Callable[[Any, Any], npt.NDArray[np.float64] | None] | None:
        """Return a function ``f(X, rows)`` of a batch of one string, or None if letters of `Y` need more than a byte.

        It returns the distances, in float64, between this string and the strings of `Y` at some positions, which it
        does not check; or None if the string is not of the kind of `Y`.
        """
        if type(self) is not Levenshtein or Y.values.dtype != np.uint8:
            return None

        def distances(X: Any, rows: Any) -> npt.NDArray[np.float64] | None:
            if type(X) is not StringBatch or X.values.dtype != np.uint8 or X.is_bytes != Y.is_bytes:
                return None
            found = np.empty(len(rows))
            one_to_many(X.values, X.offsets, Y.values, Y.offsets, rows, found)
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
    alignment), in which "CA" and "ABC" have distance 3, is not.

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
    and w its weight. If s <= 0.7, there is no bonus: the distance is 1 - s. It is not a metric: "a", "aa", "ba" violate
    the triangle inequality.

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
    if A is B and np.median(np.diff(A.offsets)) > _LANE:
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
