"""Clusters of time series by one tool, run in a process and an environment of its own.

    python -P _cluster_tools.py TOOL SERIES.npz CORES RUN [RUN ...]

The file holds series of one length, ``X``, and the number of clusters, ``k``; a run is the seed of one call. After
a small call, which loads and compiles, each run is timed. A line of JSON goes to standard output: for each run, labels,
seconds, and CPU seconds of this process and those it has started. Nothing here imports a tool before its function is
called.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable

import numpy as np


def similia(X: np.ndarray, k: int, run: int, cores: int) -> np.ndarray:
    """Cluster by kernel k-means on DTW, with its defaults."""
    from similia.distances import DTW
    from similia.learn import KernelKMeans

    return KernelKMeans(DTW(), k, random_state=run).fit(X).labels_


def euclidean(X: np.ndarray, k: int, run: int, cores: int) -> np.ndarray:
    """Cluster by scikit-learn's k-means with ten starts, as we make."""
    from sklearn.cluster import KMeans

    return KMeans(k, n_init=10, random_state=run).fit(X).labels_


def tslearn_kmeans(X: np.ndarray, k: int, run: int, cores: int) -> np.ndarray:
    """Cluster by tslearn's k-means on DTW with one start, its default."""
    from tslearn.clustering import TimeSeriesKMeans

    return TimeSeriesKMeans(k, metric="dtw", random_state=run, n_jobs=cores).fit(X[:, :, None]).labels_


def tslearn_kshape(X: np.ndarray, k: int, run: int, cores: int) -> np.ndarray | None:
    """Cluster by tslearn's k-shape with ten starts; it gives no labels if a cluster was empty at each attempt."""
    from tslearn.clustering import KShape

    return getattr(KShape(k, n_init=10, random_state=run).fit(X[:, :, None]), "labels_", None)


def aeon_kmeans(X: np.ndarray, k: int, run: int, cores: int) -> np.ndarray:
    """Cluster by aeon's k-means on DTW with one start and tslearn's number of rounds."""
    from aeon.clustering import TimeSeriesKMeans

    options = {"distance": "dtw", "averaging_method": "ba", "n_init": 1, "max_iter": 50, "n_jobs": cores}
    return TimeSeriesKMeans(k, **options, random_state=run).fit(X[:, None]).labels_


def aeon_kshape(X: np.ndarray, k: int, run: int, cores: int) -> np.ndarray:
    """Cluster by aeon's k-shape with ten starts, its default."""
    from aeon.clustering import KShape

    return KShape(k, n_init=10, n_jobs=cores, random_state=run).fit(X[:, None]).labels_


TOOLS: dict[str, Callable[[np.ndarray, int, int, int], np.ndarray | None]] = {
    function.__name__: function
    for function in (similia, euclidean, tslearn_kmeans, tslearn_kshape, aeon_kmeans, aeon_kshape)
}


def _cpu() -> float:
    """Return the CPU seconds of this process and of those it has started that have ended."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def main(tool: str, path: str, cores: int, runs: list[int]) -> None:
    """Cluster the series of a file by a tool, once for each run, and print what was found."""
    arrays = np.load(path)
    X, k = arrays["X"], int(arrays["k"])
    TOOLS[tool](np.ascontiguousarray(X[:6, :12]), 2, 0, cores)
    results = []
    for run in runs:
        start, before = time.perf_counter(), _cpu()
        labels = TOOLS[tool](X, k, run, cores)
        seconds, cpu = time.perf_counter() - start, _cpu() - before
        labels = np.zeros(len(X), int) if labels is None else labels
        results.append({"labels": np.asarray(labels).tolist(), "seconds": seconds, "cpu": cpu})
    print(json.dumps(results))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), [int(run) for run in sys.argv[4:]])
