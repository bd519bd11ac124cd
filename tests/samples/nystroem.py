"""Data and measures that the tests of Nystroem share."""

from __future__ import annotations

import numpy as np

STRATEGIES = ["uniform", "kmeans++", "leverage", "rpcholesky", "adaptive", "ensemble"]
SINGLE = STRATEGIES[:-1]


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def relative_error(K, Z):
    K, Z = K.astype(np.float64), Z.astype(np.float64)
    return np.linalg.norm(K - Z @ Z.T) / np.linalg.norm(K)
