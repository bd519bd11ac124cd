"""The loops behind `sequence`: products of cyclically shifted level vectors, bundled.

A vector is kept twice in a row, so that any cyclic shift of it is a window of 64-bit words that starts at some
bit: a shift costs two loads and three logical operations per word, and no table of shifted vectors is needed.
Bits are 1 for -1, counts are bit-sliced, as in `_hypervectors`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from similia.codes import _words
from similia.codes._hypervectors import add_eight, bit_length, count_ones, majority, ripple
from similia.codes.hypervectors import Codes, Counts
from similia.core.jit import njit
from similia.core.threads import run_in_ranges

_VALUES_PER_TASK = 1_000  # about a millisecond, many times what it costs to hand it to a thread


class SequenceBundle:
    """Level vectors, roles and ties as words, ready to encode series of level numbers.

    Parameters
    ----------
    levels, roles, ties : packed codes of n_levels, n_channels and one vector
    n : int or None
        Levels in an n-gram, or each at its place in time.
    """

    def __init__(self, levels: Codes, roles: Codes, ties: Codes, n: int | None) -> None:
        self.n_bits = 8 * ties.shape[1]
        spare = np.zeros((len(levels), 16), dtype=np.uint8)  # windows end up to 119 bits past the second copy
        self.table = _words.to_words(np.concatenate([levels, levels, spare], axis=1))
        self.roles = _words.to_words(roles)
        if len(roles) == 1:
            self.roles[:] = 0  # the vector of all +1
        self.ties = _words.to_words(ties)[0]
        self.n = 0 if n is None else n

    def write(self, levels: npt.NDArray[np.int64], offsets: npt.NDArray[np.int64], out: Codes | Counts) -> None:
        """Write to `out` the codes, or sums, of series of level numbers, shape (total, n_channels)."""
        quantised = out.dtype == np.uint8

        def work(start: int, stop: int) -> None:
            words = np.empty((stop - start if quantised else 0, len(self.ties)), dtype=np.uint64)
            sums = np.empty((0, self.n_bits), dtype=np.int32) if quantised else out[start:stop]
            rows = offsets[start : stop + 1]
            _bundle(levels, rows, self.table, self.roles, self.n, self.n_bits, self.ties, words, sums)
            if quantised:
                out[start:stop] = _words.from_words(words, self.n_bits)

        values_per_series = max(1, levels.size * max(1, self.n) // len(out))
        run_in_ranges(work, len(out), max(1, _VALUES_PER_TASK // values_per_series))


@njit()
def _bind_shifted(vector, shift, n_bits, out):  # type: ignore[no-untyped-def]
    """Multiply `out` by rho^shift of a vector that is kept twice."""
    first = (n_bits - shift % n_bits) % n_bits
    word, left = first >> 6, np.uint64(first & 63)
    right = np.uint64(63) - left
    one = np.uint64(1)
    for w in range(len(out)):
        # two shifts to the right: one by 64, for left = 0, would be undefined
        out[w] ^= (vector[word + w] << left) | ((vector[word + w + 1] >> one) >> right)


@njit()
def _bundle(levels, offsets, table, roles, n, n_bits, ties, words, sums):  # type: ignore[no-untyped-def]
    """Bundle the n-grams (n > 0) or the placed values (n = 0) of each series.

    levels : int64 (total, n_channels); offsets : int64 (n_series + 1,); table : uint64 (n_levels, more than twice
    n_words); roles : uint64 (n_channels, n_words). Written, where they have rows: words, the sign bits of the
    majority, uint64 (n_series, n_words), and sums, int32 (n_series, n_bits).
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
        for r in range(done % 8):
            ripple(rows[r], planes, 0, bit_length(done))
        if len(words):
            majority(planes, bit_length(done), done, ties, words[i])
        if len(sums):
            count_ones(planes, bit_length(done), n_bits, done, sums[i])
