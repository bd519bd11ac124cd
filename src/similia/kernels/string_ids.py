"""Letters and feature ids of strings: complements, U read as T, case; loops that write one 64-bit id per feature.

A k-mer of letters c_1 ... c_k (code points) becomes the number Σ c_j b^(k - j) modulo 2**64; a bijection then mixes its
bits. If k <= 8 and every letter is below 256, then b = 256 and different k-mers have different ids. For other k-mers, b
is a large odd number. An id depends only on the letters, not on the collection, the process or the dtype.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.errors import BadValue
from similia.core.hashing import combine, mix
from similia.core.jit import njit
from similia.core.text import short
from similia.objects import StringBatch
from similia.objects.sequences import offsets_of

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
