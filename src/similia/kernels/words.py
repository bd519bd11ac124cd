"""Words: inner products of counts of words and of sequences of words (bags of words, n-grams)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from similia.core.state import state
from similia.core.validation import check_positive_int
from similia.kernels import string_ids as _strings
from similia.kernels.dna import letters_read
from similia.kernels.strings import Ids, StringKernel, check_lengths, ngrams
from similia.objects.sequences import offsets_of

Table = npt.NDArray[np.int64]


@state(n="lengths")
class Words(StringKernel):
    """Word kernel: inner product of the counts of words, or of sequences of n consecutive words.

    A word is a maximal run of letters, digits and underscores; everything else separates words. The cost is linear in
    the total length of the texts and in the sum of all n, such as 1 + 2 + 3 for ``n=(1, 3)``.

    Parameters
    ----------
    n : int or pair of ints, default=1
        Number of words in a feature. A pair such as ``(1, 3)`` stands for all numbers from 1 to 3: words, pairs and
        triples of words.
    min_letters : int, default=2
        Minimum number of characters of a word; shorter words are dropped before sequences are formed.
    normalize : bool, default=False
        Divide by sqrt(K(x, x) K(y, y)).
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

    def _ids(self, values: npt.NDArray[np.uint32], offsets: npt.NDArray[np.int64]) -> Ids:
        starts, stops, firsts = self._words(values, offsets)
        words = np.empty(len(starts), np.uint64)
        _strings.word_ids(letters_read(values, False, self.ignore_case), starts, stops, words)
        return ngrams(words, firsts, self._lengths())

    def _lengths(self) -> tuple[int, int]:
        return check_lengths(self.n, "n")

    def _words(self, values: npt.NDArray[np.uint32], offsets: Table) -> tuple[Table, Table, Table]:
        """Return (starts, stops, firsts) of the words that count; string i has those from ``firsts[i]`` on."""
        points, places = np.unique(values, return_inverse=True)
        in_words = np.array([chr(c).isalnum() or c == ord("_") for c in points.tolist()], dtype=bool)  # \w of `re`
        starts, stops, firsts = _strings.runs_of(in_words[places], offsets)
        long = stops - starts >= self.min_letters
        return starts[long], stops[long], offsets_of(long)[firsts]
