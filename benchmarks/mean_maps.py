"""Mean map features and Wasserstein distances of sets of points, against numpy and scipy.

Features: 2000 sets of 20 points in 18 dimensions, 1024 features. The rival multiplies all points by the same
frequencies with BLAS, takes numpy's cosines and sines, and adds them up with ``np.add.reduceat``.

Distances: 30 sets of 25 to 35 points. The rival solves each linear programme by ``scipy.optimize.linprog`` (HiGHS), for
a tenth of the pairs; its time is multiplied::

    python benchmarks/mean_maps.py
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from measure import Row, in_turns
from scipy.optimize import linprog
from scipy.spatial.distance import cdist

import similia as sm
from similia.distances import Wasserstein
from similia.objects import SetBatch

PART = 10


def run() -> list[Row]:
    """Return how much faster features and distances are than their rivals."""
    rng = np.random.default_rng(0)
    sets = SetBatch(rng.normal(size=(40_000, 18)), np.arange(0, 40_001, 20))
    embedding = sm.MeanMapFeatures(1024, random_state=0).fit(sets)
    frequencies = embedding.frequencies_ * (np.pi / 2)

    def numpy_features() -> np.ndarray:
        phases = sets.values @ frequencies
        waves = np.concatenate([np.cos(phases), np.sin(phases)], axis=1)
        return np.add.reduceat(waves, sets.offsets[:-1], axis=0) / (20 * np.sqrt(512))

    ours, theirs = in_turns(lambda: embedding.transform(sets), numpy_features, rounds=5)
    error = np.abs(embedding.transform(sets) - numpy_features()).max()
    print(f"features: similia {ours:.3f} s, numpy {theirs:.3f} s; largest difference {error:.1e}")

    small = [rng.normal(size=(size, 3)) for size in rng.integers(25, 36, 30)]
    left, right = np.triu_indices(len(small), 1)
    some = slice(None, None, PART)

    def programmes() -> np.ndarray:
        return np.array([_programme(small[i], small[j]) for i, j in zip(left[some], right[some], strict=True)])

    distance = Wasserstein()
    fast, slow = in_turns(lambda: distance(small), programmes, rounds=3)
    error = np.abs(distance(small)[left, right][some] - programmes()).max()
    print(f"distances: similia {fast:.3f} s, linprog {PART * slow:.2f} s; largest difference {error:.1e}")
    return [
        Row("MeanMapFeatures, 40,000 points, 1024 features: speed", "numpy and BLAS", theirs / ours, at_least=3),
        Row(
            "Wasserstein, sets of 25 to 35 points: speed",
            "scipy's linprog, a pair a call",
            PART * slow / fast,
            at_least=20,
        ),
    ]


def _programme(x: np.ndarray, y: np.ndarray) -> float:
    m, n = len(x), len(y)
    margins = sp.vstack([sp.kron(np.eye(m), np.ones((1, n))), sp.kron(np.ones((1, m)), np.eye(n))])
    masses = np.repeat([1 / m, 1 / n], [m, n])
    return float(linprog(cdist(x, y).ravel(), A_eq=margins, b_eq=masses, method="highs").fun)


if __name__ == "__main__":
    for row in run():
        print(row)
