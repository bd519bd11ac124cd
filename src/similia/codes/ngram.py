"""Strings to hypervectors through their n-grams.

Each letter a has a random vector v(a); rho is the cyclic shift by one position. An n-gram a_0 ... a_(n-1) is encoded as

    multiply:  v(a_0) * rho v(a_1) * ... * rho^(n-1) v(a_(n-1))            (Joshi, Halseth and Kanerva 2017)
    add:       majority of v(a_0), rho v(a_1), ..., rho^(n-1) v(a_(n-1))   (Imani et al. 2018)

and a string is encoded as the sum or bitwise majority of its n-gram vectors. Under `multiply`, distinct n-grams are
nearly orthogonal, and the inner product of two strings approximates the spectrum kernel. Under `add`, n-grams that
share letters at the same positions are similar.

Cost: with vectors of b 64-bit words, a string of m letters takes about (n + 6) m b word operations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from similia.codes.hypervectors import (
    Codes,
    Counts,
    Indices,
    SeededEncoder,
    basis,
    bundle_members,
    empty_output,
    permute,
    tie_code,
    to_words,
)
from similia.core.config import rows_per_block
from similia.core.state import count, one_of, state
from similia.core.validation import check_positive_int
from similia.objects.sequences import offsets_of, runs


@state(n=count(least=1), binding=one_of("multiply", "add"))
class NGramEncoder(SeededEncoder):
    """Encode a string as the bitwise majority or the sum of the vectors of its n-grams.

    An n-gram is n consecutive letters. Each letter has a random vector, and `binding` says how the vector of an n-gram
    is made from those of its letters.

    Parameters
    ----------
    n : int, default=3
        Letters per n-gram. A string shorter than `n` is one n-gram of all its letters. To compare strings position by
        position, set `n` to the length of the longest string and `binding` to "add".
    n_bits : int, default=10_000
        Length of the hypervectors (long, random-looking codes), a multiple of 8.
    binding : {"multiply", "add"}, default="multiply"
        How to combine the letter vectors of an n-gram, each shifted by the letter's position in the n-gram: "multiply"
        takes their product, so different n-grams are dissimilar; "add" takes their bitwise majority, so n-grams that
        share letters at the same positions are similar.
    output : {"bits", "counts"}, default="bits"
        What `transform` returns: the bitwise majority of the n-gram vectors, packed ("bits"), or the sum of these
        vectors, with entries of ±1 ("counts").
    random_state : int, Generator, RandomState or None
        Seed or generator from which `fit` draws `seed_`.

    Attributes
    ----------
    seed_ : int
        Seed of the letter vectors: `seed_` and the code point of a letter determine its vector. So letters not seen in
        `fit` are encoded like all others, and every process encodes them identically.

    Notes
    -----
    Where a majority is tied, it takes the bit of a random vector, which `seed_` determines. The empty string has no
    n-grams, so its counts are 0 and its bits are those of this random vector.

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
