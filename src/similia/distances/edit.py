"""Edit distances of strings, computed by rapidfuzz: Levenshtein, Hamming, Damerau-Levenshtein, Jaro-Winkler.

Strings are compared code point by code point, bytes byte by byte. Cost for strings of m and n letters: m n / 64
operations on words (several short strings share a vector register); Hamming m + n; Damerau-Levenshtein m n. Counts of
edits are float32, exact below 2**24, which halves the memory of the distances; Jaro-Winkler is float64.

Sources: Levenshtein, "Binary codes capable of correcting deletions, insertions and reversals", 1966; Hyyrö, "A
bit-vector algorithm for computing Levenshtein and Damerau edit distances", 2003; Zhao & Sahni, "String correction
using the Damerau-Levenshtein distance", 2019; Winkler, "String comparator metrics and enhanced decision rules in the
Fellegi-Sunter model of record linkage", 1990; https://github.com/rapidfuzz/RapidFuzz.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.config import rows_per_block
from similia.core.errors import BadType, as_second
from similia.objects import StringBatch, as_strings
from similia.objects.sequences import named, resolve_indices
from similia.similarity import Distance, Facts

_WORTH_THREADS = 2**24  # pairs of letters below which threads do not pay
_LANE = 64  # maximum number of letters for which rapidfuzz packs several queries into one register
_BLOCK = 2**24  # distances computed at once


class _EditDistance(Distance):
    """Base class of the distances that rapidfuzz computes."""

    _whole: bool = True  # values are counts of edits

    def as_objects(self, X: Any) -> StringBatch:
        """Return `X` as a `StringBatch`."""
        return as_strings(X)

    def _scorer(self) -> tuple[Any, dict[str, Any]]:
        """Return rapidfuzz's function and its options."""
        raise NotImplementedError

    def __call__(self, X: Any, Y: Any = None) -> npt.NDArray[np.floating]:
        """Return the distances of the strings `X` to the strings `Y`.

        Parameters
        ----------
        X : sequence of n str or n bytes
            Anything that `similia.objects.as_strings` reads.
        Y : sequence of m of the same kind, optional
            `X` itself if not given.

        Returns
        -------
        ndarray of float32 or float64, shape (n, m)
        """
        scorer, options = self._scorer()
        A = self.as_objects(X)
        B = A if Y is None else as_second(self.as_objects, Y)
        return _cdist(A, B, scorer=scorer, scorer_kwargs=options, dtype=self._dtype(A, B))

    def paired(self, X: Any, Y: Any, rows: npt.ArrayLike, columns: npt.ArrayLike) -> npt.NDArray[np.floating]:
        """Return the distances of some pairs: ``self(X, Y)[rows, columns]`` without the others.

        Parameters
        ----------
        X, Y : sequences of str or bytes
        rows, columns : array-like of int, shape (n_pairs,)
            Positions in `X` and `Y`.

        Returns
        -------
        ndarray of float32 or float64, shape (n_pairs,)
        """
        from rapidfuzz.process import cpdist

        scorer, options = self._scorer()
        parts, pairs = [], []
        for read, numbers in ((self.as_objects(X), rows), (as_second(self.as_objects, Y), columns)):
            part, places = named(read, numbers)
            strings = part.tolist()
            parts.append(part)
            pairs.append([strings[i] for i in places.tolist()])
        how = {"scorer": scorer, "scorer_kwargs": options, "dtype": self._dtype(*parts), "workers": _workers(*parts)}
        values: npt.NDArray = cpdist(*pairs, **how)
        return values

    def _dtype(self, A: StringBatch, B: StringBatch) -> type[np.floating]:
        """Return the dtype of the distances, or raise if str and bytes are mixed."""
        if A.is_bytes != B.is_bytes:
            kinds = ["bytes" if batch.is_bytes else "str" for batch in (A, B)]
            raise BadType(None, f"holds {kinds[0]} and Y {kinds[1]}", "one kind", "use bytes.decode or str.encode")
        longest = max(np.diff(batch.offsets).max() for batch in (A, B))
        return np.float32 if self._whole and longest < 2**24 else np.float64  # a narrow integer would overflow


class Levenshtein(_EditDistance):
    """Levenshtein distance: the minimum number of insertions, deletions and replacements of letters.

    It is a metric.

    Raises
    ------
    TypeError
        When called, if an object is not a string, or `X` holds str and `Y` bytes.
    ValueError
        When called, if a collection is empty.

    Notes
    -----
    Values are exact, in float32 (float64 if a string has 2**24 letters or more). Empty strings are allowed.

    Examples
    --------
    >>> from similia.distances import Levenshtein
    >>> Levenshtein()(["kitten", "", "ab"], ["sitting", "ba"])
    array([[3., 6.],
           [7., 2.],
           [7., 2.]], dtype=float32)
    """

    facts = Facts(symmetric=True, identity=True, metric=True, unequal_length=True, cost="m n / 64")

    def _scorer(self) -> tuple[Any, dict[str, Any]]:
        from rapidfuzz.distance import Levenshtein as rapidfuzz

        return rapidfuzz.distance, {}

    def paired(self, X: Any, Y: Any, rows: npt.ArrayLike, columns: npt.ArrayLike) -> npt.NDArray[np.floating]:
        """Return the distances of some pairs: ``self(X, Y)[rows, columns]`` without the others.

        Parameters
        ----------
        X, Y : sequences of str or bytes
            Bytes and ASCII strings are faster.
        rows, columns : array-like of int, shape (n_pairs,)
            Positions in `X` and `Y`.

        Returns
        -------
        ndarray of float32 or float64, shape (n_pairs,)
        """
        A, B = self.as_objects(X), as_second(self.as_objects, Y)
        if A.values.dtype != np.uint8 or B.values.dtype != np.uint8:
            return super().paired(A, B, rows, columns)
        from similia.distances._edit import paired_distances

        left, right = (resolve_indices(numbers, len(batch)) for batch, numbers in ((A, rows), (B, columns)))
        out = np.empty(len(left), self._dtype(A, B))
        paired_distances(A, B, left, right, out)
        return out


class Hamming(_EditDistance):
    """Hamming distance: the number of positions where two strings differ.

    Each letter of the longer string beyond the end of the shorter one counts 1. With this rule the distance is a metric
    on strings of any length.

    Raises
    ------
    TypeError, ValueError
        As for `Levenshtein`.

    Notes
    -----
    Values are exact, in float32 (float64 if a string has 2**24 letters or more).

    Examples
    --------
    >>> from similia.distances import Hamming
    >>> Hamming()(["ACGT"], ["ACCT", "AC", ""])
    array([[1., 2., 4.]], dtype=float32)
    """

    facts = Facts(symmetric=True, identity=True, metric=True, unequal_length=True, cost="m + n")

    def _scorer(self) -> tuple[Any, dict[str, Any]]:
        from rapidfuzz.distance import Hamming as rapidfuzz

        return rapidfuzz.distance, {"pad": True}


class DamerauLevenshtein(_EditDistance):
    """Damerau-Levenshtein distance: the minimum number of edits, including swaps of adjacent letters.

    The edits are insertions, deletions, replacements and swaps. This is the unrestricted version: swapped letters may
    be edited again, so "CA" to "ABC" costs 2. Unlike the restricted version (optimal string alignment, which gives 3),
    it is a metric.

    Raises
    ------
    TypeError, ValueError
        As for `Levenshtein`.

    Notes
    -----
    Values are exact, in float32 (float64 if a string has 2**24 letters or more).

    Examples
    --------
    >>> from similia.distances import DamerauLevenshtein
    >>> DamerauLevenshtein()(["ab", "CA"], ["ba", "ABC"])
    array([[1., 3.],
           [2., 2.]], dtype=float32)
    """

    facts = Facts(symmetric=True, identity=True, metric=True, unequal_length=True, cost="m n")

    def _scorer(self) -> tuple[Any, dict[str, Any]]:
        from rapidfuzz.distance import DamerauLevenshtein as rapidfuzz

        return rapidfuzz.distance, {}


class JaroWinkler(_EditDistance):
    """Jaro-Winkler distance, in [0, 1]: compares letters at about the same position, with a bonus for a common prefix.

    It is 1 minus the similarity s + l w (1 - s), where s is Jaro's similarity, l the length of the common prefix (at
    most 4) and w its weight. There is no bonus if s <= 0.7. It is not a metric: "a", "aa", "ba" violate the triangle
    inequality.

    Parameters
    ----------
    prefix_weight : float, default=0.1
        Weight w, from 0 (Jaro's distance) to 0.25.

    Raises
    ------
    TypeError
        As for `Levenshtein`.
    ValueError
        When called, if a collection is empty or `prefix_weight` is out of range.

    Notes
    -----
    Values are float64. Two empty strings have distance 0; an empty and a non-empty string have distance 1.

    Examples
    --------
    >>> from similia.distances import JaroWinkler
    >>> JaroWinkler()(["MARTHA", ""], ["MARHTA", ""]).round(4)
    array([[0.0389, 1.    ],
           [1.    , 0.    ]])
    """

    facts = Facts(symmetric=True, identity=True, metric=False, unequal_length=True, cost="m n / 64")
    _whole = False

    def __init__(self, prefix_weight: float = 0.1) -> None:
        self.prefix_weight = prefix_weight

    def _scorer(self) -> tuple[Any, dict[str, Any]]:
        from rapidfuzz.distance import JaroWinkler as rapidfuzz

        weight = self.prefix_weight
        if isinstance(weight, bool) or not isinstance(weight, Real) or not 0 <= weight <= 0.25:
            raise ValueError(f"prefix_weight must be a number from 0 to 0.25, got {weight!r}")
        return rapidfuzz.distance, {"prefix_weight": float(weight)}


def _cdist(A: StringBatch, B: StringBatch, **options: Any) -> npt.NDArray[np.floating]:
    """Return the values of a rapidfuzz function for all pairs, in the memory order of its queries.

    rapidfuzz packs queries of at most 64 letters into registers, so the shorter strings are the queries. For long
    strings against short ones this is about five times faster.
    """
    from rapidfuzz.process import cdist

    options["workers"] = _workers(A, B)
    strings = A.tolist()
    if A is B and np.median(np.diff(A.offsets)) > _LANE:
        return cdist(strings, strings, **options)  # one list: half the pairs, but one at a time
    others = B.tolist()
    out = np.empty((len(A), len(B)), options["dtype"])
    step = rows_per_block(out.itemsize * len(B), at_most=max(1, _BLOCK // len(B)))
    swap = len(B.values) * len(A) < len(A.values) * len(B)
    for start in range(0, len(A), step):
        rows = strings[start : start + step]
        out[start : start + step] = cdist(others, rows, **options).T if swap else cdist(rows, others, **options)
    return out


def _workers(A: StringBatch, B: StringBatch) -> int:
    """Return the number of threads for all pairs."""
    from similia.core.threads import n_threads

    return n_threads() if len(A.values) * len(B.values) > _WORTH_THREADS else 1
