"""Embeddings of time series, Hydra and interval quantiles, against aeon's on torch.

SIMILIA_RIVALS_PYTHON names an interpreter that has aeon and torch. Both get the same 500 series of 500 points, as many
threads as there are cores, and Hydra the same kernels; calls are warm::

    SIMILIA_RIVALS_PYTHON=/path/to/python python benchmarks/series_embeddings.py
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
from joblib import cpu_count
from measure import Rival, Row

from similia.embeddings import Hydra, IntervalQuantiles
from similia.objects import as_series

N, LENGTH, ROUNDS = 500, 500, 5

RIVAL = """
import json, sys, time
import aeon, numpy as np, torch
from aeon.transformations.collection.convolution_based._hydra import _HydraInternal
from aeon.transformations.collection.interval_based import QUANTTransformer
data, n_threads, rounds = np.load(sys.argv[1]), int(sys.argv[3]), int(sys.argv[4])
torch.set_num_threads(n_threads)
X, weights = data["X"][:, None], data["weights"]
d, g, k = weights.shape[:3]
hydra = _HydraInternal(X.shape[2], 1, k=k, g=g)
hydra.W = torch.tensor(weights.reshape(d, 2, g // 2 * k, 1, 9))
quantiles = QUANTTransformer().fit(X)


def convolved():
    with torch.no_grad():
        Z = hydra.batch(torch.tensor(X)).numpy()
    return Z.reshape(len(X), d, 2, 2, g // 2, k).transpose(0, 1, 2, 4, 3, 5).reshape(len(X), -1)


seconds, results = {}, {}
for name, call in {"Hydra": convolved, "IntervalQuantiles": lambda: quantiles.transform(X)}.items():
    results[name], taken = call(), []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    seconds[name] = sorted(taken)[rounds // 2]
np.savez(sys.argv[2], **results)
print(json.dumps(seconds | {"version": aeon.__version__}))
"""


def run() -> list[Row]:
    """Return speeds and the largest difference of features, relative to the largest feature."""
    rival = Rival("SIMILIA_RIVALS_PYTHON")
    if not rival:
        return []
    X = np.random.default_rng(0).normal(size=(N, LENGTH)).cumsum(axis=1).astype(np.float32)
    X = (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, keepdims=True)
    series = as_series(X)
    models = {"Hydra": Hydra(random_state=0).fit(series), "IntervalQuantiles": IntervalQuantiles().fit(series)}
    seconds, theirs = rival.run(RIVAL, {"X": X, "weights": models["Hydra"].weights_}, cpu_count(), ROUNDS)
    rows = []
    for name, model in models.items():
        found = model.transform(series)
        taken = _median_time(lambda model=model: model.transform(series))  # type: ignore[misc]
        print(f"{name}: {taken:.3g} s, aeon {seconds[name]:.3g} s")
        other, what = f"aeon {seconds['version']}, {cpu_count()} threads", f"{name}, {N} series of {LENGTH} points"
        rows.append(Row(f"{what}: speed", other, seconds[name] / taken, at_least=5))
        error = float(np.abs(found - theirs[name]).max() / np.abs(found).max())
        rows.append(Row(f"{what}: difference", other, error, at_most=1e-5))
    return rows


def _median_time(call: Callable[[], object]) -> float:
    taken = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


if __name__ == "__main__":
    print(*run(), sep="\n")
