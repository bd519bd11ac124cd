"""Find texts that are nearly copies of each other, such as one sentence with two names exchanged.

Texts x and y are near copies if their words overlap by at least 80 %. The overlap is the sum over all words of the
smaller of the counts in x and y, divided by the sum of the larger (`similia.kernels.MinMax` of word counts). Texts that
a chain of near copies connects are in one group.

A text whose near copy is in the training part is easy: the words that no other text has give its label away. So a score
on folds that separate near copies tells how well a model remembers texts, not how it does on new ones.

Cost: that of `similia.search.near_duplicates`. If there are many texts, two of them are compared only if they share a
key of locality-sensitive hashing, so up to 2 % of the pairs just above the threshold may be missed.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from similia.kernels import MinMax, Words
from similia.objects import StringBatch, take
from similia.objects.identical import with_groups
from similia.search import near_duplicates

Index = npt.NDArray[np.int64]
SHARE = 0.8  # of words in common; on sentences with several names replaced, 0.5 to 0.9 find nearly the same groups
_FEW = 500  # number of texts up to which all pairs are compared


def near_copies(X: StringBatch) -> Index:
    """Return a number per text, shape (n,), which near copies share; a text without words shares it with none."""
    method = "exact" if len(X) <= _FEW else "hashes"
    words = MinMax(Words(n=1, min_letters=1))
    return near_duplicates(X, words, SHARE, method=method, random_state=0).groups


def kept_together(X: StringBatch, groups: Index, y: npt.NDArray, folds: int, classify: bool) -> tuple[Index, list[str]]:
    """Join near copies to the `groups` of identical texts; return the new groups and notes for the user.

    The groups stay as they are if X is not text (words separated by spaces), if one group would hold more than ``1 /
    folds`` of the texts, or if a class would be in fewer groups than before, and fewer than `folds`.
    """
    if not (X.values == ord(" ")).any():
        return groups, []
    n = len(X)
    some = np.arange(min(n, _FEW))
    if _largest(near_copies(take(X, some))) > len(some) / folds:  # before time goes into all pairs of a large group
        return groups, []
    together = with_groups(groups, near_copies(X))
    if len(np.unique(together)) == len(np.unique(groups)) or _largest(together) > n / folds:
        return groups, []
    if classify:
        for label in np.unique(y):
            of_class = y == label
            if len(np.unique(together[of_class])) < min(folds, len(np.unique(groups[of_class]))):
                return groups, []
    more = n - len(np.unique(together))
    return together, [
        f"{more} of {n} texts are near copies of others (at least {100 * SHARE:g} % of their words are the same); all "
        "near copies are kept on one side of a fold, so that scores are those of new texts; groups=range(len(X)) keeps "
        "only identical texts together"
    ]


def _largest(groups: Index) -> int:
    return int(np.unique(groups, return_counts=True)[1].max())
