"""Gapped k-mers: the letters of a window at some of its positions, for all choices of these positions.

A feature is a choice of k = `informative` positions in a window of l = `length` letters, with the letters there, so a
window has C(l, k) features. There are three ways to compute the same kernel values, which are integers:

- *features*: each window's C(l, k) ids. Time n L C(l, k) for n strings of L letters.
- *mask by mask*: for each choice of positions in turn, a hash table finds the windows with equal letters there (GaKCo
  and FastSK sort instead), and no features are stored. Time n L C(l, k), plus one addition for each feature that two
  strings share. Used for large Gram matrices.
- *pair by pair*: the mismatches of all pairs of windows are counted, along the diagonals of the matrix of these pairs.
  Time L**2 for each pair of strings. Used for few pairs.

A mask is a set of positions in a window. The letters c_j of a window at the positions j of a mask become the number
sum_j (c_j + 1) r_j modulo 2**64, with a random odd r_j for each position. Each mask differs from the one before it by
one position, so the number of a window changes by two products from mask to mask. A window is identified by the
position of its first letter in the concatenated strings. A window that crosses the end of its string has weight 0.
`complements` holds the complement of each letter, or is empty for one strand.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from math import comb
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from similia.core.config import in_threads, n_threads, rows_per_block, run_in_ranges
from similia.core.hashing import GOLDEN, mix
from similia.core.jit import njit
from similia.core.text import short
from similia.core.validation import BadParameter, as_second, check_choice, check_positive_int
from similia.kernels import strings as _strings
from similia.kernels.counts import Counts, checked_width, count, divide_by_norms
from similia.kernels.strings import Indices, StringKernel, arrays_of, complements_of, letters_read, windows_of
from similia.objects import StringBatch
from similia.objects.sequences import named_pairs, offsets_of, runs

Floats = npt.NDArray[np.float64]
Side = tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64], Indices, Floats]
_MOST_MASKS, _LONGEST = 5_000, 500
_BYTES_PER_ID = 40  # an id, its weight, its count and their copies
_BYTES_PER_LETTER = 64  # its code, its complement's and the weight of the window that begins there, and copies
_BYTES_PER_WINDOW = 128  # the numbers and buckets of a window, mask by mask
_STRINGS_OF_A_THREAD, _PAIRS_OF_A_THREAD = 16, 64
_IDS_PER_PAIR = 4  # an id of a window takes as long, mask by mask, as this number of pairs of windows, pair by pair
_NO_LETTERS = np.empty(0, np.uint64)


class GappedKmers(StringKernel):
    r"""Gapped k-mer kernel: inner product of the counts of gapped k-mers, as in gkm-SVM.

    .. math:: K(x, y) = \sum_{u, v} w_u w_v \binom{l - d(u, v)}{k},

    over all windows u of x and v of y. A window is a substring of l letters, and a gapped k-mer consists of the letters
    at k positions of a window. The windows u and v differ at d(u, v) positions, so they share one gapped k-mer for each
    choice of k of the other l - d(u, v) positions. The weights w are 1 unless `center_weight` is given. The formula is
    for ``positions="kept"`` without `reverse_complement`.

    Parameters
    ----------
    length : int, default=10
        Number l of letters of a window. A string shorter than this has no features.
    informative : int, default=6
        Number k of letters of a gapped k-mer; the other positions of the window are gaps. The number of gapped k-mers
        of a window, C(length, informative), must be at most 5000.
    positions : {"kept", "forgotten"}, default="kept"
        ``"kept"``: a feature is k letters and their positions in the window. ``"forgotten"``: a feature is only the k
        letters in their order; a window that contains them at several places counts once (the gappy kernel of Leslie &
        Kuang, without a penalty for gaps).
    reverse_complement : bool, default=False
        Whether to count a gapped k-mer and its reverse complement as one feature, for DNA or RNA of unknown strand; see
        `Spectrum`.
    center_weight : int, optional
        Weight w of windows in the middle of a string, at most 255. As in LS-GKM, which uses 50, weights decay towards
        both ends: a window d letters from the middle has weight min(center_weight, floor(center_weight 2**(-d /
        half_life) + 1)). By default, all windows have weight 1.
    half_life : float, default=50
        Distance from the middle, in letters, at which the weight is about halved; only used with `center_weight`.
    normalize : bool, default=False
        Divide K(x, y) by sqrt(K(x, x) K(y, y)).
    ignore_case : bool, default=False
        Whether to ignore case, for a to z only (not for accented or other letters).

    Raises
    ------
    ValueError
        When called, if a parameter is out of range; if `informative` exceeds `length`; if a window has more than 5000
        features; or if `reverse_complement` is True and a letter has no complement.

    Notes
    -----
    Values are exact integers before normalisation. Features are compared by 64-bit ids; among v distinct features, at
    least two share an id with probability about v**2 / 2**60.

    With ``positions="kept"``, positions count from the start of the window: A at 0 with C at 1 is one feature, and A at
    1 with C at 2 is another feature. Windows overlap, so one pattern lies at different positions in several windows and
    gives several features.

    In DNA, N is a letter like any other: it matches only another N. A gapped k-mer that has a gap in place of the N is
    not affected.

    References
    ----------
    Ghandi, Lee, Mohammad-Noori & Beer, "Enhanced regulatory sequence prediction using gapped k-mer features", PLoS
    Computational Biology 2014. Lee, "LS-GKM: a new gkm-SVM for large-scale datasets", Bioinformatics 2016. Leslie &
    Kuang, "Fast string kernels using inexact matching for protein sequences", JMLR 2004, Section 3. Blakely et al.,
    "FastSK: fast sequence analysis with gapped string kernels", Bioinformatics 2020.

    Examples
    --------
    GATTA and GACTA differ at one position, so they share C(4, 3) = 4 gapped k-mers, one for each choice of three of the
    other four positions:

    >>> from similia.kernels import GappedKmers
    >>> GappedKmers(length=5, informative=3)(["GATTA", "GACTA"])
    array([[10.,  4.],
           [ 4., 10.]])
    >>> GappedKmers(length=5, informative=3, reverse_complement=True)(["GATTA"], ["TAATC"])
    array([[10.]])
    """

    reuses_counts = False  # counts take C(length, informative) ids a letter; `paired` compares the strings themselves

    def __init__(
        self,
        length: int = 10,
        informative: int = 6,
        positions: str = "kept",
        reverse_complement: bool = False,
        center_weight: int | None = None,
        half_life: float = 50,
        normalize: bool = False,
        ignore_case: bool = False,
    ) -> None:
        self.length = length
        self.informative = informative
        self.positions = positions
        self.reverse_complement = reverse_complement
        self.center_weight = center_weight
        self.half_life = half_life
        self.normalize = normalize
        self.ignore_case = ignore_case

    def _ids_per_letter(self) -> int:
        length = check_positive_int(self.length, "length")
        informative = check_positive_int(self.informative, "informative")
        if length > _LONGEST:
            raise BadParameter("length", f"at most {_LONGEST}", str(length))
        if informative > length:
            raise ValueError(f"informative must be at most length={length}, got {informative}")
        check_choice(self.positions, "positions", ("kept", "forgotten"))
        if self.center_weight is not None and check_positive_int(self.center_weight, "center_weight") > 255:
            raise BadParameter("center_weight", "at most 255", short(self.center_weight))
        if not isinstance(self.half_life, Real) or not self.half_life > 0:
            raise BadParameter("half_life", "a positive number", short(self.half_life))
        n_masks = comb(length, informative)
        if n_masks > _MOST_MASKS:
            raise ValueError(
                f"length={length}, informative={informative} gives each window {n_masks} features, expected at most "
                f"{_MOST_MASKS}; use a shorter length or fewer gaps"
            )
        return n_masks

    def _counts(self, objects: StringBatch) -> Counts:
        n_masks = self._ids_per_letter()
        blocks = runs(objects.offsets, rows_per_block(_BYTES_PER_ID * n_masks))
        return Counts.concatenate([count(*self._ids_and_weights(objects, rows)) for rows in blocks])

    def _ids_and_weights(self, objects: StringBatch, rows: slice) -> tuple[Any, Any, Any]:
        """Return (id of each occurrence of a feature, offset of each string's first id, weight of each occurrence)."""
        if self.positions == "kept":
            side = self._side(objects, rows)
            ids, id_offsets = self._kept_ids(side)
            if self.center_weight is None:
                return ids, id_offsets, np.empty(0)
            _, _, offsets, weights = side
            n_masks, n_windows = self._ids_per_letter(), windows_of(offsets, self.length)
            parts = [np.tile(weights[s : s + n], n_masks) for s, n in zip(offsets[:-1], n_windows, strict=True)]
            return ids, id_offsets, np.concatenate(parts)
        values, offsets = arrays_of(objects, rows)
        values, weights = letters_read(values, self.reverse_complement, self.ignore_case), self._weights(offsets)
        subsets = masks(self.length, self.informative)
        ids = np.empty(windows_of(offsets, self.length).sum() * len(subsets), dtype=np.uint64)
        amounts, id_offsets = np.empty(len(ids)), np.empty_like(offsets)
        complements = complements_of(values) if self.reverse_complement else np.empty(0, np.uint32)
        end = _strings.window_ids(values, complements, offsets, subsets, weights, ids, amounts, id_offsets)
        return ids[:end], id_offsets, amounts[:end]

    def _kept_ids(self, side: Side) -> tuple[npt.NDArray[np.uint64], Indices]:
        """Return the ids of the gapped k-mers of strings, mask by mask in each string, and the strings' offsets."""
        swaps, letters, complements, offsets = swaps_of(self.length, self.informative), *side[:3]
        id_offsets = offsets_of(windows_of(offsets, self.length) * len(swaps))
        ids = np.empty(id_offsets[-1], np.uint64)

        def fill(start: int, stop: int) -> None:
            _gapped_ids(
                letters, complements, offsets[start : stop + 1], _factors(self.length), swaps, self.informative,
                id_offsets[start : stop + 1], ids,
            )  # fmt: skip

        run_in_ranges(fill, len(offsets) - 1, grain=_STRINGS_OF_A_THREAD)
        return ids, id_offsets

    def _weights(self, offsets: Indices) -> Floats:
        """Return the weight of the window that begins at each letter; 0 where no window begins."""
        lengths = np.diff(offsets)
        place = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
        n_windows = np.repeat(windows_of(offsets, self.length), lengths)
        weights = (place < n_windows).astype(float)
        if self.center_weight is not None:
            twice = np.abs(2 * place - n_windows + 1)  # the distance from the middle; whole powers of 2 are exact
            powers = np.array([2.0 ** (-d / 2 / self.half_life) for d in range(twice.max(initial=0) + 1)])
            weights *= np.minimum(self.center_weight, np.floor(self.center_weight * powers + 1))[twice]
        return weights

    def _side(self, objects: StringBatch, rows: slice) -> Side:
        """Return (letters + 1, complements + 1, offsets, weights of windows) of the strings `rows`."""
        values, offsets = arrays_of(objects, rows)
        values = letters_read(values, self.reverse_complement, self.ignore_case)
        letters = values.astype(np.uint64) + np.uint64(1)
        complements = _NO_LETTERS
        if self.reverse_complement:
            complements = complements_of(values).astype(np.uint64) + np.uint64(1)
        return letters, complements, offsets, self._weights(offsets)

    # ---- the matrix, mask by mask or pair by pair
    def __call__(self, X: Any, Y: Any = None) -> Floats:
        if self.positions != "kept":
            return super().__call__(X, Y)
        objects = others = self.as_objects(X)
        if Y is not None and Y is not X:
            others = as_second(self.as_objects, Y)
            self._check_alike(objects, others)
        n_masks = self._ids_per_letter()
        n_x, n_y = (float(windows_of(side.offsets, self.length).sum()) for side in (objects, others))
        if n_x * n_y * (1 + self.reverse_complement) < _IDS_PER_PAIR * n_masks * (n_x + n_y):
            rows = np.repeat(np.arange(len(objects)), len(others))
            K = self._of_pairs(objects, others, rows, np.tile(np.arange(len(others)), len(objects)))
            K = K.reshape(len(objects), len(others))
        else:
            K = self._by_masks(objects, others)
        if self.normalize:
            kxx = self._squared_norms(objects)
            return self._scaled(K, kxx, kxx if others is objects else self._squared_norms(others), same=Y is None)
        return K

    def _by_masks(self, X: StringBatch, Y: StringBatch) -> Floats:
        """Return the kernel matrix, not normalised, from the windows that meet mask by mask."""
        K = np.zeros((len(X), len(Y)))
        most = rows_per_block(_BYTES_PER_WINDOW * 2 * n_threads())
        y_blocks = runs(Y.offsets, most)
        for columns in y_blocks:
            y = self._side(Y, columns)
            for rows in y_blocks if X is Y else runs(X.offsets, most):
                if X is not Y or rows.start < columns.start:
                    self._add_block(self._side(X, rows), y, K[rows, columns], same=False)
                elif rows.start == columns.start:
                    self._add_block(y, y, K[rows, columns], same=True)
        if X is Y:
            _mirror(K)
        return K

    def _add_block(self, x: Side, y: Side, out: Floats, same: bool) -> None:
        """Add a block of the kernel matrix to `out`; each thread takes rows with about the same number of entries."""
        swaps, factors = swaps_of(self.length, self.informative), _factors(self.length)
        strands = _strands(self.length, self.informative) if self.reverse_complement else np.ones(len(swaps), np.int64)
        workers = min(n_threads(), len(out))
        shares = np.arange(workers + 1) / workers
        bounds = np.rint(len(out) * (1 - np.sqrt(1 - shares) if same else shares)).astype(int)

        def fill(t: int) -> None:
            start, stop = bounds[t], bounds[t + 1]
            _products_by_mask(x, y, factors, swaps, strands, self.informative, start, stop, same, out)

        in_threads(fill, range(workers), workers)

    def _of_pairs(self, X: StringBatch, Y: StringBatch, rows: Indices, columns: Indices) -> Floats:
        """Return the kernel values, not normalised, of the pairs (X[rows[p]], Y[columns[p]])."""
        x = self._side(X, slice(0, len(X)))
        y = x if X is Y else self._side(Y, slice(0, len(Y)))
        worth, palindromes = _worth(self.length, self.informative)
        out, pairs = np.zeros(len(rows)), np.arange(len(rows))

        def fill(start: int, stop: int) -> None:
            _products_by_pair(x, y, pairs[start:stop], rows, columns, worth, palindromes, self.length, out)

        run_in_ranges(fill, len(rows), grain=_PAIRS_OF_A_THREAD)
        return out

    def _squared_norms(self, objects: StringBatch) -> Floats:
        """Return k(x, x), not normalised, of each string: short ones by pairs of windows, others by counts."""
        n_windows = windows_of(objects.offsets, self.length)
        short_ones = n_windows < _IDS_PER_PAIR * self._ids_per_letter()
        if self.positions != "kept" or not short_ones.all():
            return np.concatenate([self._counts(objects[i : i + 1]).squared_norms for i in range(len(objects))])
        every = np.arange(len(objects))
        return self._of_pairs(objects, objects, every, every)

    def diag(self, X: Any) -> Floats:
        self._ids_per_letter()
        objects = self.as_objects(X)
        return np.ones(len(objects)) if self.normalize else self._squared_norms(objects)

    def _self_values(self, X: Any) -> Floats:
        self._ids_per_letter()  # raises if parameters are invalid
        if self.positions != "kept":
            return super()._self_values(X)
        objects = self.as_objects(X)
        if self.normalize:
            return (windows_of(objects.offsets, self.length) > 0).astype(np.float64)
        return self._squared_norms(objects)

    def against(self, X: Any, Y: Any) -> Floats:
        return self(X, Y) if self.positions == "kept" else super().against(X, Y)

    def paired(
        self, X: Any, Y: Any, rows: npt.ArrayLike, columns: npt.ArrayLike, *, counts: Counts | None = None
    ) -> Floats:
        if self.positions != "kept":
            return super().paired(X, Y, rows, columns, counts=counts)
        self._ids_per_letter()
        X, Y, left, right = named_pairs(self.as_objects(X), as_second(self.as_objects, Y), rows, columns)
        self._check_alike(X, Y)
        values = self._of_pairs(X, Y, left, right)
        if self.normalize:
            return self._scaled(values, self._squared_norms(X)[left], self._squared_norms(Y)[right])
        return values

    # ---- explicit features
    def features(self, X: Any, n_features: int = 2**20) -> sp.csr_array:
        if self.positions != "kept":
            return super().features(X, n_features)
        n_features = checked_width(n_features)
        n_masks, objects = self._ids_per_letter(), self.as_objects(X)
        most = int(windows_of(objects.offsets, self.length).sum()) * n_masks
        columns, data, lengths = np.empty(most, np.int32), np.empty(most), np.zeros(len(objects), np.int64)
        end = 0
        for rows in runs(objects.offsets, rows_per_block(_BYTES_PER_LETTER)):
            end = self._fill(self._side(objects, rows), n_features, columns, data, lengths[rows], end)
        indptr = offsets_of(lengths).astype(np.int32 if end < 2**31 else np.int64)
        features = sp.csr_array((data[:end], columns[:end], indptr), shape=(len(objects), n_features))
        features.has_canonical_format = True
        if self.normalize:
            divide_by_norms(features, self._squared_norms(objects))
        return features

    def _fill(
        self, side: Side, n_features: int, columns: npt.NDArray, data: npt.NDArray, lengths: npt.NDArray, end: int
    ) -> int:
        """Write the features of strings from the entry `end` on; return the new end.

        Threads first write where their strings would begin if all features were different.
        """
        arguments = _factors(self.length), swaps_of(self.length, self.informative), self.informative, n_features
        firsts = end + offsets_of(windows_of(side[2], self.length) * len(arguments[1]))
        filled: list[tuple[int, int]] = []

        def fill(start: int, stop: int) -> None:
            _feature_rows(side, *arguments, start, stop, firsts[start], columns, data, lengths)
            filled.append((start, stop))

        run_in_ranges(fill, len(lengths), grain=_STRINGS_OF_A_THREAD)
        for start, stop in sorted(filled):
            n = int(lengths[start:stop].sum())
            if end != firsts[start]:
                _move(columns, data, firsts[start], end, n)
            end += n
        return end


# ---- masks: which positions of a window are chosen
@lru_cache(maxsize=64)
def masks(length: int, informative: int) -> Indices:
    """Return all choices of `informative` of `length` positions, each row ascending.

    Each row has exactly one position that the row before it lacks (revolving-door order). The first row is 0, 1, 2, ...
    """
    if informative in (0, length):
        table = np.arange(informative, dtype=np.int64)[None]
    else:
        without, with_last = masks(length - 1, informative), masks(length - 1, informative - 1)[::-1]
        last = np.full((len(with_last), 1), length - 1, np.int64)
        table = np.concatenate((without, np.hstack((with_last, last))))
    table.flags.writeable = False  # it is shared by all callers
    return table


@lru_cache(maxsize=64)
def swaps_of(length: int, informative: int) -> Indices:
    """Return, for each of `masks`, the position that leaves the mask before it and the one that enters: (old, new)."""
    rows = masks(length, informative).tolist()
    found = [((set(a) - set(b)).pop(), (set(b) - set(a)).pop()) for a, b in pairwise(rows)]
    return np.array([(0, 0), *found], dtype=np.int64)


@lru_cache(maxsize=64)
def _strands(length: int, informative: int) -> Indices:
    """Return the number of strands of each of `masks`: 1 if it is its own mirror image, else 2 and 0 for the other."""
    rows = [(tuple(row), tuple(length - 1 - j for j in reversed(row))) for row in masks(length, informative).tolist()]
    return np.array([1 if row == other else 2 * (row < other) for row, other in rows], dtype=np.int64)


@lru_cache(maxsize=64)
def _factors(length: int) -> npt.NDArray[np.uint64]:
    """Return the odd factor of each position in the numbers of windows; the same in every process."""
    return np.array([int(mix(np.uint64(j))) | 1 for j in range(length)], dtype=np.uint64)


@lru_cache(maxsize=64)
def _worth(length: int, informative: int) -> tuple[Floats, Floats]:
    """Return tables of what two windows share: features (by mismatches) and palindromes (by pairs, see below).

    A palindrome is a feature that is its own reverse complement. Its positions are mirrored pairs, and, if their number
    is odd, the centre of the window. The second table has the indices (whether the centres are equal, number of equal
    mirrored pairs).
    """
    worth = [comb(length - m, informative) for m in range(length + 1)]
    pairs, odd = informative // 2, informative % 2
    palindromes = np.zeros((2, length // 2 + 1))
    for middle in (0, 1):
        for n in range(length // 2 + 1):
            palindromes[middle, n] = comb(n, pairs) if not odd or (length % 2 and middle) else 0
    return np.array(worth, dtype=float), palindromes


@njit()
def _start(letters, factors, first, informative, numbers):  # type: ignore[no-untyped-def]
    """Fill `numbers` with the numbers of the windows under the mask of `informative` positions from `first` on."""
    numbers[:] = np.uint64(0)
    for j in range(first, first + informative):
        factor = factors[j]
        for w in range(len(numbers)):
            numbers[w] += letters[w + j] * factor


@njit()
def _swap(letters, factors, leaving, coming, numbers):  # type: ignore[no-untyped-def]
    """Change the numbers of all windows to the mask that has the position `coming` in place of `leaving`."""
    new, old = factors[coming], factors[leaving]
    for w in range(len(numbers)):
        numbers[w] += letters[w + coming] * new - letters[w + leaving] * old


@njit()
def _next_mask(m, letters, complements, factors, swaps, informative, mirrored, numbers):  # type: ignore[no-untyped-def]
    """Change `numbers`, of shape (strands, windows), from mask m - 1 to mask m.

    The numbers of the second strand are those of the reverse complements of the features of this mask. If `mirrored`,
    they are those of the reverse complements of the windows under this mask.
    """
    last = len(factors) - 1
    if m == 0:
        _start(letters, factors, 0, informative, numbers[0])
        if len(numbers) > 1:
            _start(complements, factors[::-1], last + 1 - informative if mirrored else 0, informative, numbers[1])
        return
    leaving, coming = swaps[m]
    _swap(letters, factors, leaving, coming, numbers[0])
    if len(numbers) > 1:
        if mirrored:
            leaving, coming = last - leaving, last - coming
        _swap(complements, factors[::-1], leaving, coming, numbers[1])


@njit()
def _gapped_ids(letters, complements, offsets, factors, swaps, informative, id_offsets, ids):  # type: ignore[no-untyped-def]
    """Fill `ids` with the ids of all strings: string by string, then mask by mask, then window by window."""
    for i in range(len(offsets) - 1):
        here = ids[id_offsets[i] : id_offsets[i + 1]]
        _ids_of_string(letters, complements, offsets[i], offsets[i + 1], factors, swaps, informative, here)


@njit()
def _ids_of_string(letters, complements, start, stop, factors, swaps, informative, ids):  # type: ignore[no-untyped-def]
    """Fill `ids` with the ids of one string, whose letters are ``letters[start:stop]``."""
    n, both = len(ids) // len(swaps), len(complements) > 0
    letters = letters[start:stop]
    complements = complements[start:stop] if both else complements
    numbers = np.empty((2 if both else 1, n), np.uint64)
    for m in range(len(swaps)):
        _next_mask(m, letters, complements, factors, swaps, informative, False, numbers)
        part, here, there = ids[m * n : m * n + n], numbers[0], numbers[-1]
        for w in range(n):
            part[w] = mix(min(here[w], there[w]))


# ---- explicit features
@njit()
def _feature_rows(x, factors, swaps, informative, n_features, start, stop, first, columns, data, lengths):  # type: ignore[no-untyped-def]
    """Write the features of strings `start` to `stop` to `columns` and `data`, one after the other from `first` on.

    Row i has ``lengths[i]`` entries: its columns, ascending, and the sums of the weights of their windows.
    """
    letters, complements, offsets, weights = x
    longest = 0
    for i in range(start, stop):
        longest = max(longest, offsets[i + 1] - offsets[i] - len(factors) + 1)
    keys, spare = np.empty(longest * len(swaps), np.uint64), np.empty(longest * len(swaps), np.uint64)
    is_power, n_bits, last = n_features & (n_features - 1) == 0, 0, np.uint64(n_features - 1)
    while 1 << n_bits < n_features:
        n_bits += 1
    for i in range(start, stop):
        n = max(0, offsets[i + 1] - offsets[i] - len(factors) + 1)
        ids = keys[: n * len(swaps)]
        if n > 0:
            _ids_of_string(letters, complements, offsets[i], offsets[i + 1], factors, swaps, informative, ids)
        for m in range(len(swaps)):
            for w in range(n):
                number = ids[m * n + w]
                column = number & last if is_power else number % np.uint64(n_features)
                ids[m * n + w] = column << np.uint64(8) | np.uint64(weights[offsets[i] + w])
        lengths[i] = _merge(_radix_sort(keys, spare, len(ids), n_bits), len(ids), columns[first:], data[first:])
        first += lengths[i]


@njit()
def _move(columns, data, source, target, n):  # type: ignore[no-untyped-def]
    """Move n entries from `source` back to `target`; the two may overlap."""
    for k in range(n):
        columns[target + k], data[target + k] = columns[source + k], data[source + k]


@njit()
def _radix_sort(keys, spare, n, n_bits):  # type: ignore[no-untyped-def]
    """Return the first n keys sorted by the `n_bits` bits above the lowest 8, in `keys` or in `spare`."""
    step = np.uint64(10 if n_bits <= 20 else 11)
    ends = np.empty(2048, np.int64)
    mask = np.uint64((1 << step) - 1)
    for low in range(0, n_bits, step):
        shift = np.uint64(low + 8)
        ends[:] = 0
        for k in range(n):
            ends[keys[k] >> shift & mask] += 1
        total = 0
        for b in range(len(ends)):
            total, ends[b] = total + ends[b], total
        for k in range(n):
            b = keys[k] >> shift & mask
            spare[ends[b]] = keys[k]
            ends[b] += 1
        keys, spare = spare, keys
    return keys


@njit()
def _merge(keys, n, columns, data):  # type: ignore[no-untyped-def]
    """Write the columns of n sorted keys, each once, and the sums of their weights; return the number of columns."""
    end = -1
    for k in range(n):
        column, weight = np.int64(keys[k] >> np.uint64(8)), np.float64(keys[k] & np.uint64(255))
        if end < 0 or columns[end] != column:
            end += 1
            columns[end] = column
            data[end] = weight
        else:
            data[end] += weight
    return end + 1


# ---- sums over pairs of windows, mask by mask
@njit()
def _products_by_mask(x, y, factors, swaps, strands, informative, start, stop, same, out):  # type: ignore[no-untyped-def]
    """Add to rows `start` to `stop` of `out` the products of the feature counts of strings x and strings y.

    x and y are tuples (letters, complements, offsets, weights). For each mask, the windows of y are put into buckets by
    their number, and each window of x looks up its bucket. ``strands[m]`` is the number of keys of a window under mask
    m. With two strands, a mask and its mirror image have the same features, so one of the two masks has two keys, one
    for each strand, and the other has none. A mask that is its own mirror image has one key, the smaller of the two. If
    `same`, x is y, and only columns j >= i of row i are filled.
    """
    letters, complements, offsets, weights = x
    both = len(complements) > 0
    begin, end = offsets[start], offsets[stop]
    letters, weights, offsets = letters[begin:end], weights[begin:end], offsets[start : stop + 1] - begin
    complements = complements[begin:end] if both else complements
    n_strands, n_x, n_y = (
        2 if both else 1,
        max(0, len(letters) - len(factors) + 1),
        max(0, len(y[0]) - len(factors) + 1),
    )
    numbers, y_numbers = np.empty((n_strands, n_x), np.uint64), np.empty((n_strands, n_y), np.uint64)
    most = n_strands * n_y
    n_slots, shift = 2, np.uint64(63)
    while n_slots < 2 * most:
        n_slots, shift = 2 * n_slots, shift - np.uint64(1)
    table, known, bucket_of = (
        np.empty(n_slots, np.int32),
        np.empty(most, np.uint64),
        np.empty((n_strands, n_y), np.int32),
    )
    starts, ends, rows = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int32)
    amounts, sums, met = np.empty(most), np.zeros(most), np.empty(most, np.int32)
    for m in range(len(swaps)):
        _next_mask(m, letters, complements, factors, swaps, informative, True, numbers)
        _next_mask(m, y[0], y[1], factors, swaps, informative, True, y_numbers)
        if strands[m] == 0:
            continue
        keys, y_keys = numbers, y_numbers
        if both and strands[m] == 1:
            keys, y_keys = _smaller(numbers), _smaller(y_numbers)
        _put_into_buckets(y_keys, y[3], y[2], table, shift, known, bucket_of, starts, ends, rows, amounts)
        for i in range(len(offsets) - 1):
            n_met = 0
            for s in range(len(keys)):
                for w in range(offsets[i], min(offsets[i + 1], n_x)):
                    b = table[_slot(keys[s, w], known, table, shift)] if weights[w] > 0 else -1
                    if b >= 0:
                        if sums[b] == 0:
                            met[n_met] = b
                            n_met += 1
                        sums[b] += weights[w]
            row = out[start + i]
            for b in met[:n_met]:
                amount, sums[b] = sums[b], 0.0
                if same:
                    while starts[b] < ends[b] and rows[starts[b]] < start + i:
                        starts[b] += 1
                for p in range(starts[b], ends[b]):
                    row[rows[p]] += amount * amounts[p]


@njit()
def _smaller(numbers):  # type: ignore[no-untyped-def]
    return np.minimum(numbers[:1], numbers[1:])


@njit()
def _slot(key, known, table, shift):  # type: ignore[no-untyped-def]
    """Return the slot of `table` that holds the bucket of `key`, or else the free slot where it belongs."""
    slot = np.int64((key * GOLDEN) >> shift)
    while table[slot] >= 0 and known[table[slot]] != key:
        slot = (slot + 1) & (len(table) - 1)
    return slot


@njit()
def _put_into_buckets(keys, weights, offsets, table, shift, known, bucket_of, starts, ends, rows, amounts):  # type: ignore[no-untyped-def]
    """Sort windows by key: bucket b has entries ``starts[b]`` to ``ends[b]``, one for each string that has its key.

    An entry is the row of the string and the sum of the weights of its windows; rows ascend in a bucket.
    """
    table[:] = -1
    n_buckets = 0
    for i in range(len(offsets) - 1):
        for s in range(len(keys)):
            for w in range(offsets[i], min(offsets[i + 1], keys.shape[1])):
                if weights[w] > 0:
                    slot = _slot(keys[s, w], known, table, shift)
                    b = table[slot]
                    if b < 0:
                        b = table[slot] = n_buckets
                        known[b], starts[b], ends[b] = keys[s, w], 0, -1
                        n_buckets += 1
                    if ends[b] != i:
                        ends[b] = i
                        starts[b] += 1
                    bucket_of[s, w] = b
    total = 0
    for b in range(n_buckets):
        size = starts[b]
        starts[b] = ends[b] = total
        total += size
    for i in range(len(offsets) - 1):
        for s in range(len(keys)):
            for w in range(offsets[i], min(offsets[i + 1], keys.shape[1])):
                if weights[w] > 0:
                    b = bucket_of[s, w]
                    if ends[b] > starts[b] and rows[ends[b] - 1] == i:
                        amounts[ends[b] - 1] += weights[w]
                    else:
                        rows[ends[b]], amounts[ends[b]] = i, weights[w]
                        ends[b] += 1


@njit()
def _mirror(K):  # type: ignore[no-untyped-def]
    """Copy the entries above the diagonal of K to those below."""
    for i in range(len(K)):
        for j in range(i):
            K[i, j] = K[j, i]


# ---- sums over pairs of windows, pair by pair
@njit()
def _products_by_pair(x, y, pairs, rows, columns, worth, palindromes, length, out):  # type: ignore[no-untyped-def]
    """Fill ``out[p]``, for p in `pairs`, with the kernel of strings ``rows[p]`` of x and ``columns[p]`` of y.

    Two windows with m mismatches add ``worth[m]`` = C(length - m, informative). With two strands, a palindrome (a
    feature that is its own reverse complement) would count twice, so `_palindromic` is subtracted.
    """
    both = len(y[1]) > 0
    for p in pairs:
        i, j = rows[p], columns[p]
        left, right = x[2][i], y[2][j]
        a, u = x[0][left : x[2][i + 1]], x[3][left : x[2][i + 1]]
        b, v = y[0][right : y[2][j + 1]], y[3][right : y[2][j + 1]]
        total = _windows(a, b, u, v[: max(0, len(b) - length + 1)], worth, length)
        if both:
            c = y[1][right : y[2][j + 1]]
            total += _windows(a, c[::-1], u, v[: max(0, len(b) - length + 1)][::-1], worth, length)
            total -= _palindromic(a, b, c, u, v, palindromes, length)
        out[p] = total


@njit()
def _windows(a, b, u, v, worth, length):  # type: ignore[no-untyped-def]
    """Return the sum over windows i of a and j of b of ``u[i] * v[j] * worth[mismatches]``, along the diagonals."""
    n, m, total = len(a) - length + 1, len(b) - length + 1, 0.0
    if n <= 0 or m <= 0:  # the diagonals below would leave the strings
        return total
    for shift in range(1 - n, m):
        i = max(0, -shift)
        mismatches = 0
        for q in range(length - 1):
            mismatches += a[i + q] != b[i + shift + q]
        for w in range(i, min(n, m - shift)):
            mismatches += a[w + length - 1] != b[w + shift + length - 1]
            total += u[w] * v[w + shift] * worth[mismatches]
            mismatches -= a[w] != b[w + shift]
    return total


@njit()
def _palindromic(a, b, c, u, v, palindromes, length):  # type: ignore[no-untyped-def]
    """Return the weighted number of palindromes that windows of a and b share; c holds the complements of b."""
    total = 0.0
    least = 0  # number of mirrored pairs of positions in such a feature
    while least < palindromes.shape[1] and palindromes[:, least].max() == 0:
        least += 1
    for j in range(len(b) - length + 1):
        own = 0
        for p in range(length // 2):
            own += b[j + p] == c[j + length - 1 - p]
        if own < least:
            continue
        for i in range(len(a) - length + 1):
            n_pairs, middle = 0, 0
            for p in range(length // 2):
                q = length - 1 - p
                n_pairs += a[i + p] == b[j + p] and a[i + q] == b[j + q] and b[j + p] == c[j + q]
            if length % 2:
                p = length // 2
                middle = np.int64(a[i + p] == b[j + p] and b[j + p] == c[j + p])
            total += u[i] * v[j] * palindromes[middle, n_pairs]
    return total
