"""Kernels on strings: inner products of counts of short substrings.

==============  ==================================================================  =========================
kernel          feature                                                             ids per letter
==============  ==================================================================  =========================
Spectrum        a k-mer, or one for each length of a range                          the number of lengths
Words           a word, or a sequence of words                                     at most number of lengths
GappyKmers      two halves of a k-mer, at most `gaps` letters apart                 gaps + 1
GappedKmers     letters of a window at some of its positions (in `gapped.py`)       C(length, informative)
Mismatch        a k-mer, counted wherever at most `mismatches` letters differ       see `Mismatch`
WeightedDegree  a k-mer at its position, k = 1 ... degree                           degree
==============  ==================================================================  =========================

A k-mer is a substring of k letters. The last column is the number of features that start at one letter; cost is linear
in it and in the total length. Counts are exact integers. A string too short for any feature has kernel 0 with all
others; with ``normalize=True`` it has kernel 1 with itself, if Y is not given. Every character is a letter, except in
Words and Mismatch; case matters unless `ignore_case` is set. When called, all kernels raise a ValueError if a parameter
is out of range, and a TypeError if an object is not a string or if text is compared with bytes that are not ASCII.

Ids: a k-mer of letters c_1 ... c_k (code points) becomes the number Σ c_j b^(k - j) modulo 2**64; a bijection then
mixes its bits. If k <= 8 and every letter is below 256, then b = 256 and different k-mers have different ids. For other
k-mers, b is a large odd number. An id depends only on the letters, not on the collection, the process or the dtype.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.config import rows_per_block
from similia.core.hashing import combine, mix
from similia.core.jit import njit
from similia.core.state import state
from similia.core.text import short
from similia.core.validation import BadParameter, BadValue, check_choice, check_positive_int
from similia.kernels.counts import Counts, FeatureKernel, count, counts_of, products_with
from similia.objects import StringBatch, as_strings
from similia.objects.sequences import check_kinds, offsets_of, runs

BYTE_BASE = np.uint64(256)
WIDE_BASE = np.uint64(0xD1342543DE82EF95)
DEGREE_SHIFT = 56  # ids of the weighted degree kernel hold the length of the k-mer in the top byte
_DEGREE_SHIFT = np.uint64(DEGREE_SHIFT)
_DEGREE_FREE = np.uint64((1 << DEGREE_SHIFT) - 1)
_WHITE_SPACE = np.array([c for c in range(0x3001) if chr(c).isspace()], dtype=np.uint32)
_LETTERS, _COMPLEMENTS = b"ATCGRYKMBVDHSWNU", b"TAGCYRMKVBHDSWNA"
_COMPLEMENT = np.zeros(256, np.uint32)  # 0: no complement
_COMPLEMENT[[*_LETTERS, *_LETTERS.lower()]] = [*_COMPLEMENTS, *_COMPLEMENTS.lower()]
_BYTES = np.arange(256, dtype=np.uint32)
_UPPER = np.array([*bytes(range(256)).upper()], np.uint32)  # bytes.upper changes ASCII letters only
_U_AS_T = np.where(ord("U") == _BYTES, ord("T"), np.where(ord("u") == _BYTES, ord("t"), _BYTES)).astype(np.uint32)
Letters = npt.NDArray[np.uint32]
Indices = npt.NDArray[np.int64]
Ids = tuple[npt.NDArray[np.uint64], Indices]  # ids, and the position of each string's first id
_BYTES_PER_ID = 32  # an id, its count and a copy of both
_MOST_NEIGHBOURS = 100_000
_ONE_STRAND = np.empty(0, dtype=np.uint32)


def letters_read(values: npt.NDArray, reverse_complement: bool, ignore_case: bool) -> npt.NDArray:
    """Return code points with a-z read as A-Z if `ignore_case`, and U read as T if `reverse_complement`."""
    if not (ignore_case or reverse_complement):
        return values
    table = _UPPER if ignore_case else _BYTES
    if reverse_complement:
        table = _U_AS_T[table]
    return np.where(values < 256, table[np.minimum(values, 255)], values).astype(values.dtype)


def complements_of(values: npt.NDArray) -> npt.NDArray:
    """Return the complement of each code point, or 0 if it has none."""
    return np.where(values < 256, _COMPLEMENT[np.minimum(values, 255)], 0).astype(values.dtype)


def check_letters(X: StringBatch) -> None:
    """Raise if a letter has no complement, and name the first such letter."""
    known = (_COMPLEMENT > 0)[np.minimum(X.values, 255)]
    if known.all():
        return
    place = int(np.argmin(known))
    i = int(np.searchsorted(X.offsets, place, side="right")) - 1
    raise BadValue(
        i,
        f"holds {short(chr(X.values[place]))} at position {place - X.offsets[i]}, which has no complement",
        remedy="reverse_complement=True takes DNA or RNA: A, C, G, T, U and the IUPAC letters R, Y, K, M, B, V, D, H, "
        "S, W, N",
    )


def runs_of(inside: npt.NDArray[np.bool_], offsets: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], ...]:
    """Return (starts, stops, firsts) of the longest runs of True in `inside` that do not cross ends of strings.

    String i has the runs from ``firsts[i]`` to ``firsts[i + 1]``.
    """
    edge = np.zeros(len(inside) + 1, bool)
    edge[offsets] = True
    starts = np.flatnonzero(inside & (edge[:-1] | ~np.append(False, inside[:-1])))
    stops = np.flatnonzero(inside & (edge[1:] | ~np.append(inside[1:], False))) + 1
    return starts, stops, np.searchsorted(starts, offsets)


def words_padded(values: npt.NDArray[np.uint32], offsets: npt.NDArray[np.int64]) -> tuple[Any, ...]:
    """Cut strings at white space and put a space on both sides of each word; return (letters, offsets, firsts, places).

    Word w is ``letters[offsets[w]:offsets[w + 1]]``; string i has the words from ``firsts[i]`` to ``firsts[i + 1]``.
    `places` has the position of each letter in `values`, or -1 for the added spaces.
    """
    inside = ~np.isin(values, _WHITE_SPACE)
    starts, stops, firsts = runs_of(inside, offsets)
    word_offsets = offsets_of(stops - starts + 2)
    places = np.zeros(word_offsets[-1], np.int64)
    places[word_offsets[:-1]] = places[word_offsets[1:] - 1] = -1
    places[places == 0] = np.flatnonzero(inside)
    letters = np.where(places < 0, np.uint32(ord(" ")), values[places]) if len(values) else values
    return letters.astype(np.uint32), word_offsets, firsts, places


@njit()
def _kmer(values, positions, start):  # type: ignore[no-untyped-def]
    """Read the letters ``values[start + positions]`` of a k-mer as the digits of a number; return it modulo 2**64."""
    number = np.uint64(0)
    narrow = len(positions) <= 8
    for position in positions:
        letter = np.uint64(values[start + position])
        narrow &= letter < BYTE_BASE
        number = number * BYTE_BASE + letter
    if narrow:
        return number
    number = np.uint64(0)
    for position in positions:
        number = number * WIDE_BASE + np.uint64(values[start + position])
    return number


@njit()
def canonical(values, complements, positions, start):  # type: ignore[no-untyped-def]
    """Return the smaller of the two numbers that `_kmer` returns for a k-mer and for its reverse complement."""
    return min(_kmer(values, positions, start), _kmer(complements, positions[::-1], start))


@njit()
def pair_ids(values, complements, offsets, positions, distinct_gaps, id_offsets, ids):  # type: ignore[no-untyped-def]
    """Fill `ids` with the ids of all k-mers with gaps, by string, then by row of `positions`, then by start.

    A row of `positions`, ascending, holds the distances of the k letters from the start. If `distinct_gaps`, the same
    letters get a different id for each row. If `complements` (of all `values`) is not empty, a k-mer and its reverse
    complement get the same id. The ids of string i begin at ``id_offsets[i]``.
    """
    both_strands = len(complements) > 0
    for i in range(len(offsets) - 1):
        end = id_offsets[i]
        for gap in range(len(positions)):
            letters = positions[gap]
            for start in range(offsets[i], offsets[i + 1] - letters[-1]):
                if both_strands:
                    number = canonical(values, complements, letters, start)
                else:
                    number = _kmer(values, letters, start)
                ids[end] = combine(number, gap) if distinct_gaps and gap > 0 else mix(number)
                end += 1


@njit()
def ngram_ids(values, complements, offsets, least, most, whole, id_offsets, ids):  # type: ignore[no-untyped-def]
    """Fill `ids` with the ids of all substrings of `least` to `most` letters, by run, then by start, then by length.

    Run i lies between ``offsets[i]`` and ``offsets[i + 1]``; its ids begin at ``id_offsets[i]``. If `whole`, a run
    shorter than `least` counts once, as a whole. `complements` is as in `pair_ids`.
    """
    both_strands, positions = len(complements) > 0, np.arange(most)
    for i in range(len(offsets) - 1):
        end, size = id_offsets[i], offsets[i + 1] - offsets[i]
        low = min(least, size) if whole else least
        for start in range(size):
            for length in range(low, min(most, size - start) + 1):
                if both_strands:
                    number = canonical(values, complements, positions[:length], offsets[i] + start)
                else:
                    number = _kmer(values, positions[:length], offsets[i] + start)
                ids[end] = combine(number, length)
                end += 1


@njit()
def word_ids(values, starts, stops, ids):  # type: ignore[no-untyped-def]
    """Fill ``ids[w]`` with the id of the word ``values[starts[w]:stops[w]]``."""
    for w in range(len(starts)):
        state = mix(stops[w] - starts[w])
        for place in range(starts[w], stops[w]):
            state = combine(state, values[place])
        ids[w] = state


@njit()
def window_ids(values, complements, offsets, subsets, weights, ids, amounts, id_offsets):  # type: ignore[no-untyped-def]
    """Fill `ids` with the ids of the distinct subsequences of each window of each string; return their number.

    A row of `subsets` holds the positions of one subsequence in the window. `weights` holds the weight of each window
    at its first letter; `amounts` receives, for each id, the weight of its window. `id_offsets` receives the position
    of the first id of each string. `complements` is as in `pair_ids`.
    """
    window, both_strands = subsets.max() + 1, len(complements) > 0
    end = 0
    id_offsets[0] = 0
    for i in range(len(offsets) - 1):
        for start in range(offsets[i], offsets[i + 1] - window + 1):
            first = end
            for s in range(len(subsets)):
                if both_strands:
                    new = mix(canonical(values, complements, subsets[s], start))
                else:
                    new = mix(_kmer(values, subsets[s], start))
                place = end
                while place > first and ids[place - 1] > new:  # insertion keeps the window's ids sorted
                    place -= 1
                if place > first and ids[place - 1] == new:
                    continue
                for later in range(end, place, -1):
                    ids[later] = ids[later - 1]
                ids[place] = new
                amounts[end] = weights[start]
                end += 1
        id_offsets[i + 1] = end
    return end


@njit()
def neighbour_ids(codes, offsets, letters, complements, powers, positions, shifts, ids, id_offsets):  # type: ignore[no-untyped-def]
    """Fill `ids` with the ids of all neighbours (k-mers with few substitutions) of each k-mer; return their number.

    Neighbour p of a k-mer differs at ``positions[p, s]``, for each s: the letter there is replaced by the one
    ``shifts[p, s]`` places later in the alphabet `letters`; 0 keeps it. `codes` are the positions of the strings'
    letters in the alphabet, or -1 for any other letter; k-mers with such a letter have no ids. If `complements` (of the
    alphabet) is not empty, a neighbour and its reverse complement get the same id.
    """
    k, both_strands = len(powers), len(complements) > 0
    end = 0
    id_offsets[0] = 0
    for i in range(len(offsets) - 1):
        known = 0  # number of consecutive letters of the alphabet that end here
        for last in range(offsets[i], offsets[i + 1]):
            known = known + 1 if codes[last] >= 0 else 0
            if known < k:
                continue
            start = last - k + 1
            number = reverse = np.uint64(0)
            for j in range(k):
                number += letters[codes[start + j]] * powers[j]
                if both_strands:
                    reverse += complements[codes[start + j]] * powers[k - 1 - j]
            for p in range(len(positions)):
                neighbour, other = number, reverse
                for s in range(positions.shape[1]):
                    j = positions[p, s]
                    code = codes[start + j]
                    moved = (code + shifts[p, s]) % len(letters)
                    neighbour += (letters[moved] - letters[code]) * powers[j]
                    if both_strands:
                        other += (complements[moved] - complements[code]) * powers[k - 1 - j]
                ids[end] = mix(min(neighbour, other) if both_strands else neighbour)
                end += 1
        id_offsets[i + 1] = end
    return end


@njit()
def positioned_ids(values, offsets, degree, id_offsets, ids):  # type: ignore[no-untyped-def]
    """Fill `ids` with an id for each pair of a position and a k-mer, k = 1 ... `degree`; the top byte of an id is k."""
    for i in range(len(offsets) - 1):
        end = id_offsets[i]
        for start in range(offsets[i], offsets[i + 1]):
            state = mix(start - offsets[i])
            for d in range(1, min(degree, offsets[i + 1] - start) + 1):
                state = combine(state, values[start + d - 1])
                ids[end] = (state & _DEGREE_FREE) | (np.uint64(d) << _DEGREE_SHIFT)
                end += 1


class StringKernel(FeatureKernel):
    """Base class of the kernels on strings; a subclass computes the feature ids of a block of strings."""

    reverse_complement = False

    def as_objects(self, X: Any) -> StringBatch:
        batch = as_strings(X)
        if self.reverse_complement:
            check_letters(batch)
        return batch

    def _check_alike(self, X: StringBatch, Y: StringBatch) -> None:
        check_kinds(X, Y)

    def _ids_per_letter(self) -> int:
        """Check the parameters; return the largest number of features that start at one letter."""
        raise NotImplementedError

    def _ids(self, values: Letters, offsets: Indices) -> Ids:
        """Return the feature ids of all occurrences, string by string, and the offset of each string's first id."""
        raise NotImplementedError

    def _counts(self, objects: StringBatch) -> Counts:
        blocks = runs(objects.offsets, rows_per_block(_BYTES_PER_ID * self._ids_per_letter()))
        return Counts.concatenate([count(*self._ids(*arrays_of(objects, rows))) for rows in blocks])

    def _for_one(self, Y: StringBatch) -> Callable[[Any], npt.NDArray[np.float64] | None] | None:
        """Return a function of a batch of one string that returns ``self(X, Y)`` fast, or None; see `Transformer`."""
        kind = type(self)
        changed = kind._counts is not StringKernel._counts or kind.as_objects is not StringKernel.as_objects
        if changed or kind._scaled is not FeatureKernel._scaled or self.reverse_complement:
            return None
        self._ids_per_letter()  # raises if a parameter is wrong
        products = products_with(counts_of(self, Y), self.normalize)
        if products is None:
            return None

        def values(X: Any) -> npt.NDArray[np.float64] | None:
            if type(X) is not StringBatch or len(X) != 1 or X.is_bytes != Y.is_bytes:
                return None
            return products(self._ids(X.values.astype(np.uint32), X.offsets)[0])

        return values


@state(k="lengths")
class Spectrum(StringKernel):
    r"""Spectrum kernel: inner product of k-mer counts.

    .. math:: K(x, y) = \sum_a c_a(x) \, c_a(y),

    where c_a(x) counts the occurrences in x of the k-mer a, a substring of k letters.

    Parameters
    ----------
    k : int or pair of ints, default=3
        Length of the substrings. A pair such as ``(1, 5)`` counts substrings of all lengths from 1 to 5.
    normalize : bool, default=False
        Divide K(x, y) by sqrt(K(x, x) K(y, y)).
    reverse_complement : bool, default=False
        Whether to count a k-mer and its reverse complement as one feature, for DNA or RNA of unknown strand. Replacing
        x or y by its reverse complement then does not change K(x, y). A pairs with T, C with G, and an ambiguous IUPAC
        letter with its complement (R-Y, K-M, B-V, D-H; S, W and N with themselves); U is read as T. Other letters raise
        an error. When k-mers are compared, N matches only another N.
    ignore_case : bool, default=False
        Whether to ignore case, for a to z only (not for accented or other letters).
    boundaries : {"words"}, optional
        Borders that substrings do not cross; by default there are none. With ``"words"``, a string is cut at white
        space, each word gets a space before and after it, and each substring lies within one of these words. A word
        that is shorter than k even with its two spaces counts once, as a whole. This option cannot be combined with
        `reverse_complement`.

    See Also
    --------
    Words : Count words and sequences of words.
    similia.FeatureWeights : Weight features by their rarity, as TF-IDF does.

    Notes
    -----
    With ``k=(1, 5)``, the features are those of scikit-learn's ``CountVectorizer`` with ``ngram_range=(1, 5)``,
    ``lowercase=False`` and ``analyzer="char"``. With ``boundaries="words"`` as well, they are the features with
    ``analyzer="char_wb"``. But ``analyzer="char"`` first replaces two or more white-space characters in a row by one
    space. This kernel does not replace them.

    K-mers are compared by 64-bit ids. Different k-mers have different ids if k is a single number <= 8, all code points
    are below 256 and `boundaries` is None. Otherwise, the probability that at least two of v different k-mers share an
    id is about v**2 / 2**65.

    References
    ----------
    Leslie, Eskin & Noble, "The spectrum kernel", PSB 2002.

    Examples
    --------
    >>> from similia.kernels import Spectrum
    >>> Spectrum(k=2)(["GATTACA", "ATTA"])
    array([[6., 3.],
           [3., 3.]])

    TGTAATC is the reverse complement of GATTACA:

    >>> Spectrum(k=3, normalize=True, reverse_complement=True)(["GATTACA", "TGTAATC"])
    array([[1., 1.],
           [1., 1.]])

    Count letters and pairs of letters within words. Each word gets a space before and after it, so " a" is a pair, too:

    >>> Spectrum(k=(1, 2), boundaries="words")(["a b"], ["b a", "ab"])
    array([[22., 12.]])
    """

    def __init__(
        self,
        k: int | tuple[int, int] = 3,
        normalize: bool = False,
        reverse_complement: bool = False,
        ignore_case: bool = False,
        boundaries: str | None = None,
    ) -> None:
        self.k = k
        self.normalize = normalize
        self.reverse_complement = reverse_complement
        self.ignore_case = ignore_case
        self.boundaries = boundaries

    def _ids_per_letter(self) -> int:
        least, most = self._lengths()
        check_choice(self.boundaries, "boundaries", (None, "words"))
        if self.boundaries and self.reverse_complement:
            raise ValueError("boundaries='words' is for text and reverse_complement=True for DNA; use only one of them")
        return (most - least + 1) * (3 if self.boundaries else 1)

    def _lengths(self) -> tuple[int, int]:
        return check_lengths(self.k, "k")

    def _is_plain(self) -> bool:
        return not self.boundaries and not isinstance(self.k, tuple | list)

    def _ids(self, values: Letters, offsets: Indices) -> Ids:
        values = letters_read(values, self.reverse_complement, self.ignore_case)
        complements = complements_of(values) if self.reverse_complement else _ONE_STRAND
        if self._is_plain():
            k: Any = self.k  # `_ids_per_letter` has checked it
            return ids_at(values, offsets, np.arange(_shortened(int(k), offsets))[None], False, complements)
        runs, firsts = offsets, np.arange(len(offsets))
        if self.boundaries:
            values, runs, firsts, _ = words_padded(values, offsets)
        ids, id_offsets = ngrams(values, runs, self._lengths(), bool(self.boundaries), complements)
        return ids, id_offsets[firsts]


@state(n="lengths")
class Words(StringKernel):
    """Word kernel: inner product of the counts of words, or of sequences of n consecutive words.

    A word is a maximal run of letters, digits and underscores; everything else separates words. The cost is linear in
    the total length of the texts. In addition, forming a sequence of n words takes n steps: ``n=(1, 3)`` needs 1 + 2 +
    3 steps for each word.

    Parameters
    ----------
    n : int or pair of ints, default=1
        Number of words in a feature. A pair such as ``(1, 3)`` stands for all numbers from 1 to 3: words, pairs and
        triples of words.
    min_letters : int, default=2
        Minimum number of characters of a word; shorter words are dropped before sequences are formed.
    normalize : bool, default=False
        Divide K(x, y) by sqrt(K(x, x) K(y, y)).
    ignore_case : bool, default=False
        Whether to ignore case, for a to z only (not for accented or other letters).

    See Also
    --------
    Spectrum : Count substrings, also within words.
    similia.FeatureWeights : Weight features by their rarity, as TF-IDF does.

    Notes
    -----
    With ``n=(a, b)``, the features are those of scikit-learn's ``CountVectorizer(ngram_range=(a, b),
    lowercase=False)``. Words are compared by 64-bit hashes, so two different words may, very rarely, count as one.

    Examples
    --------
    >>> from similia.kernels import Words
    >>> Words(n=(1, 2))(["to be or not to be"], ["not to be", "be to or"])
    array([[8., 5.]])
    """

    def __init__(
        self, n: int | tuple[int, int] = 1, min_letters: int = 2, normalize: bool = False, ignore_case: bool = False
    ) -> None:
        self.n = n
        self.min_letters = min_letters
        self.normalize = normalize
        self.ignore_case = ignore_case

    def _ids_per_letter(self) -> int:
        check_positive_int(self.min_letters, "min_letters")
        least, most = self._lengths()
        return most - least + 1

    def _ids(self, values: Letters, offsets: Indices) -> Ids:
        starts, stops, firsts = self._words(values, offsets)
        words = np.empty(len(starts), np.uint64)
        word_ids(letters_read(values, False, self.ignore_case), starts, stops, words)
        return ngrams(words, firsts, self._lengths())

    def _lengths(self) -> tuple[int, int]:
        return check_lengths(self.n, "n")

    def _words(self, values: Letters, offsets: Indices) -> tuple[Indices, Indices, Indices]:
        """Return (starts, stops, firsts) of the words that count; string i has those from ``firsts[i]`` on."""
        points, places = np.unique(values, return_inverse=True)
        in_words = np.array([chr(c).isalnum() or c == ord("_") for c in points.tolist()], dtype=bool)  # \w of `re`
        starts, stops, firsts = runs_of(in_words[places], offsets)
        long = stops - starts >= self.min_letters
        return starts[long], stops[long], offsets_of(long)[firsts]


class GappyKmers(StringKernel):
    """Gappy k-mer kernel: inner product of the counts of pairs of substrings, with a gap between the two.

    A feature is a pair of substrings u and v of k / 2 letters, where v starts 0 to `gaps` letters after the end of u.
    The NysHD paper uses this kernel (see `similia.recipes.nyshd`). With ``gaps=0`` it is the spectrum kernel. In
    `GappedKmers`, gaps may be anywhere.

    Parameters
    ----------
    k : int, default=4
        Number of letters of a feature, without gaps; must be even.
    gaps : int, default=1
        Maximum number of letters between u and v.
    merge : bool, default=True
        If True, u and v are one feature, whatever the gap between them. If False, each size of the gap gives a feature
        of its own.
    normalize : bool, default=False
        Divide K(x, y) by sqrt(K(x, x) K(y, y)).

    Examples
    --------
    GATTACA has four features without a gap and three with a gap of one letter, all different:

    >>> from similia.kernels import GappyKmers
    >>> GappyKmers(k=4, gaps=1)(["GATTACA", "GATTTACA"])
    array([[ 7.,  7.],
           [ 7., 13.]])
    """

    def __init__(self, k: int = 4, gaps: int = 1, merge: bool = True, normalize: bool = False) -> None:
        self.k = k
        self.gaps = gaps
        self.merge = merge
        self.normalize = normalize

    def _ids_per_letter(self) -> int:
        k = check_positive_int(self.k, "k")
        gaps = check_positive_int(self.gaps, "gaps", minimum=0)
        if k % 2:
            raise ValueError(f"k must be even (two halves), got {k}; use k={k + 1} or GappedKmers")
        return gaps + 1

    def _ids(self, values: Letters, offsets: Indices) -> Ids:
        longest = int(np.diff(offsets).max(initial=0))
        letters = np.arange(min(self.k, longest + 1))
        gaps = np.arange(min(self.gaps, max(0, longest - len(letters))) + 1)  # larger ones fit into no string
        positions = letters + gaps[:, None] * (letters >= self.k // 2)
        return ids_at(values, offsets, positions, distinct_gaps=not self.merge)


class Mismatch(StringKernel):
    """Mismatch kernel: a `Spectrum` kernel in which each k-mer (k letters) also counts for all similar k-mers.

    A string has one feature for each k-mer u over the alphabet: the number of its substrings of length k that differ
    from u in at most `mismatches` letters.

    Parameters
    ----------
    k : int, default=4
        Length of the substrings.
    mismatches : int, default=1
        Maximum number of letters that may differ; 0 gives the spectrum kernel over the alphabet.
    alphabet : str or bytes, default="ACGT"
        The letters. Substrings with any other character (N in DNA) are skipped. Use ``"acgt"`` for lower-case DNA.
    normalize : bool, default=False
        Divide K(x, y) by sqrt(K(x, x) K(y, y)).
    reverse_complement : bool, default=False
        Whether to count a k-mer and its reverse complement as one feature, as in `Spectrum`. The alphabet must contain
        the complement of each letter.
    ignore_case : bool, default=False
        Whether to ignore case, for a to z only, in the strings and in the alphabet.

    Raises
    ------
    ValueError
        When called, if a parameter is out of range; if a k-mer has more than 100,000 similar k-mers; or if
        `ignore_case` is False, and a string has no letter of the alphabet but would have some if case were ignored
        (such as "acgt" with the alphabet "ACGT").

    Notes
    -----
    The number of k-mers that are similar to a k-mer is the sum of C(k, t) (len(alphabet) - 1)**t over t = 0, ...,
    `mismatches`. Time and memory are proportional to this number.

    References
    ----------
    Leslie, Eskin, Cohen, Weston & Noble, "Mismatch string kernels for discriminative protein classification",
    Bioinformatics 2004.

    Examples
    --------
    Each 4-mer counts for itself and for the twelve 4-mers that differ from it in one letter:

    >>> from similia.kernels import Mismatch
    >>> Mismatch(k=4, mismatches=1)(["GATTACA", "GATTTACA"])
    array([[52., 53.],
           [53., 81.]])
    """

    def __init__(
        self,
        k: int = 4,
        mismatches: int = 1,
        alphabet: str | bytes = "ACGT",
        normalize: bool = False,
        reverse_complement: bool = False,
        ignore_case: bool = False,
    ) -> None:
        self.k = k
        self.mismatches = mismatches
        self.alphabet = alphabet
        self.normalize = normalize
        self.reverse_complement = reverse_complement
        self.ignore_case = ignore_case

    def _ids_per_letter(self) -> int:
        k = check_positive_int(self.k, "k")
        m = check_positive_int(self.mismatches, "mismatches", minimum=0)
        if m > k:
            raise ValueError(f"mismatches must be at most k={k}, got {m}")
        n_letters = len(self._letters())
        neighbours = sum(comb(k, t) * (n_letters - 1) ** t for t in range(m + 1))
        if neighbours > _MOST_NEIGHBOURS:
            raise ValueError(
                f"k={k}, mismatches={m} over {n_letters} letters gives each k-mer {neighbours} neighbours, "
                f"expected at most {_MOST_NEIGHBOURS}; use fewer mismatches or GappyKmers"
            )
        return neighbours

    def as_objects(self, X: Any) -> StringBatch:
        batch = as_strings(X)
        if not self.ignore_case:
            _check_case(batch, self.alphabet)
        return batch

    def _letters(self) -> npt.NDArray[np.uint64]:
        """Return the letters of the alphabet as ascending code points, converted by `letters_read`.

        Raise if a letter occurs twice or, with `reverse_complement`, if its complement is missing.
        """
        letters = letters_read(_code_points(self.alphabet), self.reverse_complement, self.ignore_case)
        if len(np.unique(letters)) < len(letters):
            raise ValueError(
                f"Mismatch(alphabet=...) must hold each letter once, got {self.alphabet!r}; with ignore_case, 'a' is "
                "the letter 'A', and with reverse_complement, 'U' is 'T'"
            )
        if self.reverse_complement:
            alone = letters[~np.isin(complements_of(letters), letters)]
            if len(alone):
                raise ValueError(
                    f"Mismatch(alphabet={self.alphabet!r}) holds {chr(alone[0])!r} without its complement; "
                    "reverse_complement=True needs alphabets such as 'ACGT'"
                )
        return np.sort(letters)

    def _ids(self, values: Letters, offsets: Indices) -> Ids:
        letters, values = self._letters(), letters_read(values, self.reverse_complement, self.ignore_case)
        complements = complements_of(letters) if self.reverse_complement else _ONE_STRAND.astype(np.uint64)
        codes = np.searchsorted(letters, values)
        codes[letters[np.minimum(codes, len(letters) - 1)] != values] = -1
        k = _shortened(self.k, offsets)
        exact = k <= 8 and letters[-1] < 256
        base = int(BYTE_BASE if exact else WIDE_BASE)
        powers = np.array([pow(base, k - 1 - j, 2**64) for j in range(k)], dtype=np.uint64)
        positions, shifts = substitutions(k, self.mismatches, len(letters))
        ids = np.empty(windows_of(offsets, k).sum() * len(positions), dtype=np.uint64)
        id_offsets = np.empty_like(offsets)
        end = neighbour_ids(codes, offsets, letters, complements, powers, positions, shifts, ids, id_offsets)
        return ids[:end], id_offsets


class WeightedDegree(StringKernel):
    r"""Weighted degree kernel: counts the substrings that two strings share at the same position.

    .. math:: K(x, y) = \sum_{d=1}^{D} (D - d + 1) \, \#\{i : x[i:i+d] = y[i:i+d]\},

    with D = `degree`. Rätsch & Sonnenburg divide the sum by D (D + 1) / 2. This kernel does not, so its values are
    exact integers if `normalize` is False.

    Parameters
    ----------
    degree : int, default=5
        Length of the longest substring, at most 255.
    normalize : bool, default=False
        Divide K(x, y) by sqrt(K(x, x) K(y, y)).

    Notes
    -----
    Use this kernel for aligned strings, such as DNA around splice sites. Positions count from the start of each string;
    strings of unequal length are compared over the length of the shorter one. Substrings are compared by ids: 8 bits
    for the length, and a hash of 56 bits made from position and letters. The probability that at least two of v
    different pairs (position, substring) share an id is at most about v**2 / 2**57.

    References
    ----------
    Rätsch & Sonnenburg, "Accurate splice site detection for Caenorhabditis elegans", in Kernel Methods in Computational
    Biology, 2004.

    Examples
    --------
    >>> from similia.kernels import WeightedDegree
    >>> WeightedDegree(degree=2)(["ACGT", "ACCT"])
    array([[11.,  7.],
           [ 7., 11.]])
    """

    def __init__(self, degree: int = 5, normalize: bool = False) -> None:
        self.degree = degree
        self.normalize = normalize

    def _ids_per_letter(self) -> int:
        degree = check_positive_int(self.degree, "degree")
        if degree > 255:
            raise ValueError(f"degree must be at most 255, got {degree}")
        return degree

    def _counts(self, objects: StringBatch) -> Counts:
        counts = super()._counts(objects)
        lengths = (counts.ids >> np.uint64(DEGREE_SHIFT)).astype(np.float64)
        return replace(counts, weights=self.degree + 1 - lengths)

    def _ids(self, values: Letters, offsets: Indices) -> Ids:
        per_string = sum(windows_of(offsets, d) for d in range(1, self.degree + 1))
        id_offsets = offsets_of(per_string)
        ids = np.empty(id_offsets[-1], dtype=np.uint64)
        positioned_ids(values, offsets, self.degree, id_offsets, ids)
        return ids, id_offsets


def ids_at(
    values: Letters, offsets: Indices, positions: Indices, distinct_gaps: bool, complements: Letters = _ONE_STRAND
) -> Ids:
    """Return (ids, offsets) of all k-mers with gaps, as `pair_ids` computes them from the same arguments."""
    if len(offsets) == 2:  # one string, such as a query
        n = int(offsets[1] - offsets[0])
        id_offsets = np.array([0, sum(max(0, n - last) for last in positions[:, -1].tolist())])
    else:
        id_offsets = offsets_of(sum(windows_of(offsets, last + 1) for last in positions[:, -1]))
    ids = np.empty(id_offsets[-1], dtype=np.uint64)
    pair_ids(values, complements, offsets, positions, distinct_gaps, id_offsets, ids)
    return ids, id_offsets


def check_lengths(value: Any, name: str) -> tuple[int, int]:
    """Return (least, largest) length, given one length or a pair; raise if one is not positive or they descend."""
    if not isinstance(value, tuple | list):
        return (check_positive_int(value, name),) * 2
    if len(value) != 2:
        raise BadParameter(name, "a length or a pair (least, largest)", short(value))
    least, most = (check_positive_int(length, name) for length in value)
    if least > most:
        raise BadParameter(name, "a pair (least, largest) that ascends", short(value))
    return least, most


def ngrams(
    values: npt.NDArray, offsets: Indices, lengths: tuple[int, int], whole: bool = False, complements: Any = _ONE_STRAND
) -> Ids:
    """Return (ids, offsets) of all substrings from the least to the largest length, as `ngram_ids` orders them."""
    sizes = np.diff(offsets)
    least, most = (_shortened(length, offsets) for length in lengths)
    per_run = np.zeros(len(sizes), np.int64)
    for length in range(least, most + 1):
        per_run += windows_of(offsets, length)
    if whole:
        per_run[(sizes > 0) & (sizes < least)] = 1
    id_offsets = offsets_of(per_run)
    ids = np.empty(id_offsets[-1], dtype=np.uint64)
    ngram_ids(values, complements, offsets, least, most, whole, id_offsets, ids)
    return ids, id_offsets


def _shortened(length: int, offsets: Indices) -> int:
    """Return `length` or, if this is less, the least length that no string has."""
    return min(length, int(np.diff(offsets).max(initial=0)) + 1)


def windows_of(offsets: Indices, length: int) -> Indices:
    """Return the number of windows of `length` letters in each string, shape (n,)."""
    return np.maximum(np.diff(offsets) - length + 1, 0)


def arrays_of(batch: StringBatch, rows: slice) -> tuple[Letters, Indices]:
    """Return (code points, offsets) of the strings `rows`; always uint32 and int64, so that loops are compiled once."""
    offsets = batch.offsets[rows.start : rows.stop + 1]
    return batch.values[offsets[0] : offsets[-1]].astype(np.uint32), offsets - offsets[0]


def _code_points(alphabet: str | bytes) -> npt.NDArray[np.uint64]:
    """Return the code points of an alphabet; raise if it is empty or not a string."""
    if not isinstance(alphabet, str | bytes) or len(alphabet) == 0:
        raise ValueError(f"Mismatch(alphabet=...) must be a string of letters such as 'ACGT', got {alphabet!r}")
    return np.array([*alphabet] if isinstance(alphabet, bytes) else [*map(ord, alphabet)], dtype=np.uint64)


def substitutions(k: int, mismatches: int, n_letters: int) -> tuple[Indices, Indices]:
    """Return all ways to change at most `mismatches` of k letters: (positions, shifts), each (n_ways, mismatches)."""
    rows = [
        (chosen + (0,) * (mismatches - t), moved + (0,) * (mismatches - t))
        for t in range(mismatches + 1)
        for chosen in itertools.combinations(range(k), t)
        for moved in itertools.product(range(1, n_letters), repeat=t)
    ]
    table = np.array(rows, dtype=np.int64).reshape(len(rows), 2, mismatches)
    return np.ascontiguousarray(table[:, 0]), np.ascontiguousarray(table[:, 1])


def _check_case(batch: StringBatch, alphabet: str | bytes) -> None:
    """Raise if a string has no letter of the alphabet, but has letters of the alphabet in the other case."""
    letters = _code_points(alphabet)
    in_other_case = np.isin(batch.values, np.setdiff1d(_code_points(alphabet.swapcase()), letters))
    if not in_other_case.any():
        return
    n_known = np.diff(np.append(0, np.cumsum(np.isin(batch.values, letters)))[batch.offsets])
    n_other = np.diff(np.append(0, np.cumsum(in_other_case))[batch.offsets])
    wrong = (n_known == 0) & (n_other > 0)
    if wrong.any():
        raise BadValue(
            np.argmax(wrong),
            f"has no letter of Mismatch(alphabet={alphabet!r}), but such letters in the other case",
            remedy=f"use Mismatch(alphabet={alphabet.swapcase()!r}) or Mismatch(ignore_case=True)",
        )
