"""Clusters of 300,000 time series: time, and the adjusted Rand index beside that of 600 of them.

The collection is SyntheticControl: each of its 600 standardised series of 60 points occurs 500 times, with normal noise
of standard deviation 0.3. `KernelKMeans(DTW())` gets the number of classes, and all cores. SIMILIA_DATA names the
folders of data sets::

    SIMILIA_DATA=... python benchmarks/run.py large_clusters
"""

from __future__ import annotations

import time

import numpy as np
from measure import Row
from sklearn.metrics import adjusted_rand_score

from experiments.clusters import load
from similia.distances import DTW
from similia.learn import KernelKMeans

COPIES = 500


def run() -> list[Row]:
    """Return the time as a multiple of ten minutes, and the ratio of indices."""
    try:
        X, y = load("SyntheticControl")
    except FileNotFoundError as error:
        print(f"skipped: {error}")
        return []
    few = KernelKMeans(DTW(), 6, random_state=0).fit(X)
    many = np.repeat(X, COPIES, axis=0) + 0.3 * np.random.default_rng(0).normal(size=(COPIES * len(X), X.shape[1]))
    start = time.perf_counter()
    found = KernelKMeans(DTW(), 6, random_state=0).fit(many)
    seconds = time.perf_counter() - start
    what = f"clusters of {len(many)} series of {X.shape[1]}"
    agree = adjusted_rand_score(np.repeat(y, COPIES), found.labels_) / adjusted_rand_score(y, few.labels_)
    return [Row(f"{what}: time", "10 minutes", seconds / 600, at_most=1), Row(f"{what}: index", "of 600", agree)]
