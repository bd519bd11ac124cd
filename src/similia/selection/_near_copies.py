"""Find texts that are nearly copies of each other, such as one sentence with two names exchanged.

Texts x and y are near copies if their words overlap by at least 80 %: the sum over words of the smaller count in x and
y, divided by the sum of the larger (`similia.kernels.MinMax` of word counts). Near copies of near copies are in one
group.

A text whose near copy is in the training part is easy: the words that no other text has give its label away. So a score
on folds that separate near copies tells how well a model remembers texts, not how it does on new ones.

Cost: each pair of the n texts is compared once. n is at most the number of objects of a search (3000), and long texts
are left alone: on 3000 texts of 30 words it takes about half a second.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from similia.kernels import MinMax, Words
from similia.objects import StringBatch, take
from similia.objects.identical import with_groups
from similia.similarity import evaluate

Index = npt.NDArray[np.int64]
SHARE = 0.8  # of words in common; on sentences with several names replaced, 0.5 to 0.9 find nearly the same groups
_LONG = 100  # mean number of spaces above which near copies are not looked for: it would take too much of a budget
_BLOCK = 500  # texts compared with all others at a time


def near_copies(X: StringBatch) -> Index:
    """Number the groups of near copies from 0; return the group of each text, shape (n,).

    A text without words has no near copies.
    """
    kernel, n = MinMax(Words(n=1, min_letters=1)), len(X)
    links = []
    for start in range(0, n, _BLOCK):
        block = take(X, np.arange(start, min(start + _BLOCK, n)))
        links.append(sp.csr_array(evaluate(kernel, block, X) >= SHARE))
    found: Index = connected_components(sp.vstack(links), directed=False)[1].astype(np.int64)
    return found


def kept_together(X: StringBatch, groups: Index, y: npt.NDArray, folds: int, classify: bool) -> tuple[Index, list[str]]:
    """Join near copies to the `groups` of identical texts; return the new groups and notes for the user.

    The groups stay as they are if X is not text (words separated by spaces) or has long texts, if one group would hold
    more than one in `folds` texts, or if a class would be in fewer than `folds` groups.
    """
    n, n_spaces = len(X), np.count_nonzero(X.values == ord(" "))
    if not 0 < n_spaces <= _LONG * n:
        return groups, []
    together = with_groups(groups, near_copies(X))
    if len(np.unique(together)) == len(np.unique(groups)) or np.bincount(together).max() > n / folds:
        return groups, []
    if classify:
        for label in np.unique(y):
            of_class = y == label
            if len(np.unique(together[of_class])) < min(folds, len(np.unique(groups[of_class]))):
                return groups, []
    more = n - len(np.unique(together))
    return together, [
        f"{more} of {n} texts are near copies of others (at least {SHARE:.0%} of their words are the same); all near "
        "copies are kept on one side of a fold, so that scores are those of new texts; groups=range(len(X)) keeps only "
        "identical texts together"
    ]
