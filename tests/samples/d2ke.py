"""Objects, labels and a distance that counts its calls, for the tests of D2KE."""

import numpy as np

from similia.distances import Distance, Levenshtein
from similia.objects import as_strings

rng = np.random.default_rng(0)
WORDS = ["".join(rng.choice(list("abcd"), size=n)) for n in rng.integers(0, 9, size=40)]
LABELS = np.array([word.count("a") > 1 for word in WORDS])
SERIES = [rng.normal(size=(n, 2)).astype(np.float32) for n in rng.integers(3, 9, size=20)]
SETS = [rng.random((n, 3)) for n in rng.integers(1, 6, size=20)]


class Calls(list):
    """A list of calls that a digest of a function takes for nothing: the function is the same after a call."""

    def __reduce__(self):
        return Calls, ()


CALLS = Calls()


class Counted(Distance):
    """Levenshtein that notes how many distances it was asked for."""

    def as_objects(self, X):
        return as_strings(X)

    def __call__(self, X, Y=None):
        Y = X if Y is None else Y
        CALLS.append(len(X) * len(Y))
        return Levenshtein()(X, Y)
