"""Sequences to hypervectors: strings and time series, through their n-grams.

*Strings.* Each letter a has a random vector v(a); rho is the cyclic shift by one position. An n-gram a_0 ... a_(n-1) is
encoded as

    multiply:  v(a_0) * rho v(a_1) * ... * rho^(n-1) v(a_(n-1))            (Joshi, Halseth and Kanerva 2017)
    add:       majority of v(a_0), rho v(a_1), ..., rho^(n-1) v(a_(n-1))   (Imani et al. 2018)

and a string is encoded as the sum or bitwise majority of its n-gram vectors. Under `multiply`, distinct n-grams are
nearly orthogonal, and the inner product of two strings approximates the spectrum kernel. Under `add`, n-grams that
share letters at the same positions are similar.

Cost: with vectors of b 64-bit words, a string of m letters takes about (n + 6) m b word operations.

*Series.* Level vectors are bound by permutation: the hyperdimensional baseline for series. Each value has a level
vector (see `vectors`); rho is the cyclic shift by one position. If n is given, a series is encoded as the bundle (sum
or majority) of its n-grams of levels, wherever they occur. If n is None, it is encoded as the bundle of its values,
each bound to its position:

    n:     sum_t level(x_t) * rho level(x_(t+1)) * ... * rho^(n-1) level(x_(t+n-1))
    None:  sum_t rho^t level(x_t)

Each of several channels has a random role vector: the terms of a channel are bound to its role, and the terms of all
channels are bundled. Hence the inner product of the counts of two series x and y, divided by n_bits, is close to

    n:     sum over channels, and times s of x and t of y, of prod_j k(x_(s+j), y_(t+j)),
    None:  sum over channels and times t that both series have of k(x_t, y_t),

with k(a, b) = 1 - |a - b| / (high - low). With n-grams, the time of a pattern does not matter; without n-grams, a delay
of one series makes the two dissimilar.

Each level vector is stored twice in succession, so that every cyclic shift of it is a window of 64-bit words that
starts at some bit. A shift costs two loads, three shifts of a word and two logical operations per word, and no shifted
vectors are stored.

Cost: a series of T time steps in p channels takes about (2 n + 8) T p n_bits / 64 word operations (n = 1 for None).
Joshi, Halseth and Kanerva (2017) for n-grams; Rahimi et al. (2016) for series.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from similia.codes.hypervectors import (
    Codes,
    Counts,
    Indices,
    SeededEncoder,
    Words,
    add_eight,
    basis,
    bit_length,
    bundle_members,
    empty_output,
    finish,
    from_words,
    permute,
    tie_code,
    to_words,
)
from similia.codes.vectors import RangeEncoder
from similia.core.config import rows_per_block, run_in_ranges
from similia.core.estimators import all_at_once
from similia.core.jit import njit
from similia.core.state import count, one_of, optional, state
from similia.core.text import counted
from similia.core.validation import check_positive_int
from similia.objects import SeriesBatch
from similia.objects.sequences import offsets_of, runs
from similia.sources.dask import from_parts

_VALUES_PER_TASK = 1_000  # about a millisecond, many times the cost of starting a task


@state(n=count(least=1), binding=one_of("multiply", "add"))
class NGramEncoder(SeededEncoder):
    """Encode a string as the bitwise majority or the sum of the vectors of its n-grams.

    An n-gram is n consecutive letters. Each letter has a random vector of +1 and -1, stored as bits 1 and 0. The
    parameter `binding` says how the vectors of the letters are combined into the vector of the n-gram.

    Parameters
    ----------
    n : int, default=3
        Number of letters per n-gram. A string shorter than `n` is one n-gram of all its letters. To compare strings
        position by position, set `n` to the length of the longest string and `binding` to "add".
    n_bits : int, default=10_000
        Length of the hypervectors (long, random-looking codes), a multiple of 8.
    binding : {"multiply", "add"}, default="multiply"
        How to combine the letter vectors of an n-gram. Each vector is first shifted cyclically (as by ``numpy.roll``)
        by the position of its letter in the n-gram. "multiply" computes the elementwise product of the shifted vectors
        of ±1, so different n-grams are dissimilar. "add" computes their elementwise majority, so n-grams that share
        letters at the same positions are similar.
    output : {"bits", "counts"}, default="bits"
        What `transform` returns: the bitwise majority of the n-gram vectors, packed ("bits"), or their sum, in which
        bit 1 counts as +1 and bit 0 as -1 ("counts").
    random_state : int, Generator, RandomState or None
        Seed or generator from which `fit` draws `seed_`.

    Attributes
    ----------
    seed_ : int
        Seed of the letter vectors: `seed_` and the code point of a letter determine its vector. So letters not seen in
        `fit` are encoded like all others, and every process encodes them identically.

    Notes
    -----
    If a bit is 1 in exactly half of the vectors, there is no majority: the code then takes this bit from a random
    vector, which `seed_` determines. The empty string has no n-grams, so its counts are 0, and its code consists of the
    bits of this random vector.

    References
    ----------
    A. Joshi, J. Halseth and P. Kanerva, "Language geometry using random indexing", Quantum Interaction
    (2017). M. Imani, T. Nassar, A. Rahimi and T. Rosing, "HDNA: energy-efficient DNA sequencing using
    hyperdimensional computing", BHI (2018).

    Examples
    --------
    >>> from similia import codes
    >>> encoder = codes.NGramEncoder(n=3, random_state=0)
    >>> encoded = encoder.fit_transform(["GATTACAGATTACA", "GATTACAGATTTACA", "CCGGCGCGGCCGC"])
    >>> encoded.shape
    (3, 1250)
    >>> codes.similarity(encoded).round(1)[0]
    array([ 1. ,  0.8, -0. ])
    """

    def __init__(
        self,
        n: int = 3,
        n_bits: int = 10_000,
        binding: str = "multiply",
        output: str = "bits",
        random_state: Any = None,
    ) -> None:
        self.n = n
        self.n_bits = n_bits
        self.binding = binding
        self.output = output
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive_int(self.n, "n")
        if self.binding not in ("multiply", "add"):
            raise ValueError(f"binding must be 'multiply' or 'add', got {self.binding!r}")

    def _encode(self, X: Any) -> Codes | Counts:
        from similia.objects import as_strings

        batch = as_strings(X)
        symbols = _letters_in(batch.values)
        items = basis(self.seed_, symbols, self.n_bits)
        table = to_words(np.concatenate([permute(items, j) for j in range(self.n)]))
        ties = tie_code(self.seed_, self.n_bits)
        out = empty_output(len(batch), self.n_bits, self.output)
        for run in runs(batch.offsets, rows_per_block(8 * (2 * self.n + 6))):
            bounds = batch.offsets[run.start : run.stop + 1]
            letters = np.searchsorted(symbols, batch.values[bounds[0] : bounds[-1]])
            ngrams, offsets = _ngrams(letters, bounds - bounds[0], self.n, len(symbols))
            bundle_members(table, ngrams, offsets, ties, out[run], self.binding == "add")
        return out

    def _example(self) -> Any:
        return ["a"]


@state(n=optional(count(least=1)))
class SequenceEncoder(RangeEncoder):
    """Encode a time series as one hypervector: the majority or the sum of the vectors of its n-grams.

    Each value is represented by the random ±1 vector of its level (see `n_levels`). In an n-gram (n consecutive
    values), the vector of each value is shifted cyclically (as by ``numpy.roll``) by the position of the value in the
    n-gram. The elementwise product of the shifted vectors is the vector of the n-gram. With ``n=None``, single values
    take the place of n-grams, and their vectors are shifted by their positions in time.

    Parameters
    ----------
    n_levels : int, default=100
        Number of equidistant levels per channel, at least 2; each value is encoded as the nearest level.
    n : int or None, default=None
        Number of values per n-gram; None means single values. A series shorter than `n` is one n-gram of all its
        values.
    n_bits : int, default=10_000
        Length of the hypervectors (long, random-looking codes), a multiple of 8. Positions in time that differ by a
        multiple of `n_bits` get the same shift.
    low, high : float or array of shape (n_channels,), optional
        Values of the first and the last level; by default the smallest and the largest value of each channel in `fit`.
        Values outside this range are clipped to it.
    output : {"bits", "counts"}, default="bits"
        What `transform` returns for each series: the bitwise majority of the vectors of its n-grams, packed ("bits"),
        or their sum, in which bit 1 counts as +1 and bit 0 as -1 ("counts").
    random_state : int, Generator, RandomState or None
        Seed or generator from which `fit` draws `levels_`, `roles_` and `ties_`.

    Attributes
    ----------
    low_, high_ : ndarray of float64, shape (n_channels,)
        Values of the first and the last level of each channel.
    levels_ : ndarray of uint8, shape (n_levels, n_bits // 8)
        Packed vectors of the levels, the same for all channels.
    roles_ : ndarray of uint8, shape (n_channels, n_bits // 8)
        The role of each channel: a random vector that multiplies the vectors of all its n-grams. Unused for a single
        channel.
    ties_ : ndarray of uint8, shape (1, n_bits // 8)
        Random vector whose bits decide ties of the majority.

    Notes
    -----
    The similarity of two levels falls linearly from 1 for equal levels to 0 for the first and the last; it is never
    negative. So two series whose values stay near the middle of the range are similar, whatever their shape.

    With ``n=None``, level vectors that are shifted by different positions have small random similarities, of about
    n_bits**-0.5. In a slow series, where neighbouring values are nearly equal, these similarities add up: the
    similarity of two series of T values has a random error of about (2 T / (3 n_bits))**0.5. Keep T far below n_bits,
    or subsample the series.

    References
    ----------
    A. Rahimi, S. Benatti, P. Kanerva, L. Benini and J. Rabaey, "Hyperdimensional biosignal processing", ICRC 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from similia import codes
    >>> wave = np.sin(2 * np.pi * np.arange(65) / 20)
    >>> both = [wave[:60], wave[5:]]  # the second is a quarter of a period ahead
    >>> by_position = codes.SequenceEncoder(random_state=0).fit_transform(both)
    >>> by_shape = codes.SequenceEncoder(n=3, random_state=0).fit_transform(both)
    >>> codes.similarity(by_position)[0].round(1), codes.similarity(by_shape)[0].round(1)
    (array([1. , 0.4]), array([1. , 0.9]))
    """

    def __init__(
        self,
        n_levels: int = 100,
        n: int | None = None,
        n_bits: int = 10_000,
        low: Any = None,
        high: Any = None,
        output: str = "bits",
        random_state: Any = None,
    ) -> None:
        self.n_levels = n_levels
        self.n = n
        self.n_bits = n_bits
        self.low = low
        self.high = high
        self.output = output
        self.random_state = random_state

    @all_at_once
    @from_parts
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the range of each channel, and draw random vectors: one for each level and one for each channel.

        Levels are equidistant values from `low_` to `high_`; `transform` encodes each value as the nearest level. If
        `low` is None, `low_` is the smallest value of each channel of `X`. If `high` is None, `high_` is the largest.

        `X` holds time series in any form that `similia.objects.as_series` accepts.
        """
        self._learn(X, _finite_values, "channels")
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.n is not None:
            check_positive_int(self.n, "n")

    def _encode(self, X: Any) -> Codes | Counts:
        series = finite_series(X)
        if series.n_dims != len(self.low_):
            raise ValueError(
                f"the series have {counted(series.n_dims, 'channel')}, expected {len(self.low_)} as in fit"
            )
        spare = np.zeros((len(self.levels_), 16), dtype=np.uint8)  # reads end up to 112 bits past the second copy
        table = to_words(np.concatenate([self.levels_, self.levels_, spare], axis=1))
        roles, ties = to_words(self.roles_), to_words(self.ties_)[0]
        if len(roles) == 1:
            roles[:] = 0  # the vector of all +1
        out = empty_output(len(series), self.n_bits, self.output)
        offsets = series.offsets
        bytes_before = 64 * series.n_dims * offsets + 4 * self.n_bits * np.arange(len(offsets))
        for run in runs(bytes_before, rows_per_block(1)):
            rows = offsets[run.start : run.stop + 1]
            levels = self._level_indices(series.values[rows[0] : rows[-1]])
            _bundle_in_threads(levels, rows - rows[0], table, roles, self.n or 0, ties, out[run])
        return out

    def _example(self) -> Any:
        return [np.zeros((1, len(self.low_)))]


def _letters_in(values: npt.NDArray) -> npt.NDArray:
    """Return the sorted distinct letters, found block by block, because sorting `values` at once would copy it."""
    step = rows_per_block(4 * values.itemsize)
    parts = [np.unique(values[start : start + step]) for start in range(0, max(1, len(values)), step)]
    return np.unique(np.concatenate(parts))


def _ngrams(letters: Indices, offsets: Indices, n: int, n_symbols: int) -> tuple[Indices, Indices]:
    """Return each n-gram as n row numbers of a table of shifted letters, and the offsets of each string's n-grams.

    Letter c, shifted for position j of an n-gram, is row c + j n_symbols. An n-gram shorter than n ends with -1.
    """
    lengths = np.diff(offsets)
    n_ngrams = np.where(lengths > 0, np.maximum(lengths - n + 1, 1), 0)
    ngram_offsets = offsets_of(n_ngrams)
    starts = np.arange(ngram_offsets[-1]) + np.repeat(offsets[:-1] - ngram_offsets[:-1], n_ngrams)
    ends = np.repeat(offsets[1:], n_ngrams)
    rows = np.full((len(starts), n), -1, dtype=np.int64)
    for j in range(n):
        inside = starts + j < ends
        rows[inside, j] = letters[starts[inside] + j] + j * n_symbols
    return rows, ngram_offsets


def finite_series(X: Any) -> SeriesBatch:
    """Return `X` as a `SeriesBatch`; raise if a series is empty or not finite, as in a batch made by hand."""
    from similia.objects import as_series
    from similia.objects.vectors import check_finite

    series = as_series(X)
    series._check()  # the compiled loops do not check bounds
    check_finite(series)
    return series


def _finite_values(X: Any) -> npt.NDArray[np.floating]:
    return finite_series(X).values


def _bundle_in_threads(
    levels: Indices, offsets: Indices, table: Words, roles: Words, n: int, ties: Words, out: Codes | Counts
) -> None:
    """Fill `out` with the codes or counts of series, given as level indices; the arguments are those of `_bundle`."""
    quantised = out.dtype == np.uint8
    n_bits = out.shape[1] * (8 if quantised else 1)

    def work(start: int, stop: int) -> None:
        words = np.empty((stop - start if quantised else 0, len(ties)), dtype=np.uint64)
        sums = np.empty((0, n_bits), dtype=np.int32) if quantised else out[start:stop]
        _bundle(levels, offsets[start : stop + 1], table, roles, n, n_bits, ties, words, sums)
        if quantised:
            out[start:stop] = from_words(words, n_bits)

    values_per_series = max(1, levels.size * max(1, n) // len(out))
    run_in_ranges(work, len(out), max(1, _VALUES_PER_TASK // values_per_series))


@njit()
def _bind_shifted(vector, shift, n_bits, out):  # type: ignore[no-untyped-def]
    """XOR `vector`, shifted cyclically by `shift` bits, into `out`; `vector` holds n_bits bits twice, end to end."""
    first = (n_bits - shift % n_bits) % n_bits
    word, left = first >> 6, np.uint64(first & 63)
    right = np.uint64(63) - left
    one = np.uint64(1)
    for w in range(len(out)):
        # two right shifts, because a single shift by 64, for left = 0, would be undefined
        out[w] ^= (vector[word + w] << left) | ((vector[word + w + 1] >> one) >> right)


@njit()
def _bundle(levels, offsets, table, roles, n, n_bits, ties, words, sums):  # type: ignore[no-untyped-def]
    """Compute the majority and sum of the n-grams of each series or, if n is 0, of its values shifted by position.

    Shapes: levels (total, n_channels), offsets (n_series + 1,), table (n_levels, more than twice n_words: see
    `_bind_shifted`), roles (n_channels, n_words). The outputs are `words` (n_series, n_words), the sign bits of
    the majority, and `sums` (n_series, n_bits); an output with no rows is skipped.
    """
    n_channels = levels.shape[1]
    n_words = len(ties)
    longest = 0
    for i in range(len(offsets) - 1):
        longest = max(longest, offsets[i + 1] - offsets[i])
    planes = np.empty((max(3, bit_length(longest * n_channels)), n_words), dtype=np.uint64)
    rows = np.empty((8, n_words), dtype=np.uint64)
    for i in range(len(offsets) - 1):
        length = offsets[i + 1] - offsets[i]
        width = min(max(n, 1), length)
        n_terms = length - width + 1
        planes[:] = np.uint64(0)
        done = 0
        for c in range(n_channels):
            for t in range(n_terms):
                row = rows[done % 8]
                row[:] = roles[c]
                for j in range(width):
                    _bind_shifted(table[levels[offsets[i] + t + j, c]], j if n > 0 else t, n_bits, row)
                done += 1
                if done % 8 == 0:
                    add_eight(rows, planes, bit_length(done))
        finish(rows, planes, done, n_bits, ties, i, words, sums)
