"""Clusters of time series: agreement with the classes (adjusted Rand index) and time, beside tslearn's and aeon's.

SIMILIA_DATA names the folders of data sets, one of which has `series`; SIMILIA_RIVALS_PYTHON an interpreter that has
aeon and tslearn. Training and test part are joined, each series is standardised, and all get the number of classes.
`KernelKMeans(DTW())` runs with its defaults. DTW without a window was chosen, among five distances, on Plane,
SyntheticControl, CBF and GunPointMaleVersusFemale; the sets here are five others, small ones, as barycentres of longer
series take many minutes. `KernelKMeans` makes ten starts, its default; the rivals make one, tslearn's default, as each
start costs them the same again. Everyone gets all cores, and calls are warm. The large collection is SyntheticControl,
each of whose 600 series occurs 500 times with normal noise of standard deviation 0.3::

    SIMILIA_DATA=... SIMILIA_RIVALS_PYTHON=/path/to/python python benchmarks/clusters.py
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
from joblib import cpu_count
from measure import Rival, Row
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from similia.distances import DTW
from similia.learn import KernelKMeans

SETS = ("SmoothSubspace", "Wine", "FaceFour", "SonyAIBORobotSurface1", "OliveOil")
COPIES = 500
SEEDS = 3  # of ours and of Euclidean k-means; rivals, which take minutes, get one

RIVAL = """
import json, sys, time
import aeon, numpy as np, tslearn
from aeon.clustering import TimeSeriesKMeans as AeonKMeans
from tslearn.clustering import KShape, TimeSeriesKMeans
data, n_jobs = np.load(sys.argv[1]), int(sys.argv[3])
names = [name for name in data.files if not name.endswith("_k")]
makers = {
    "tslearn k-means, DTW": lambda k: TimeSeriesKMeans(k, metric="dtw", random_state=0, n_jobs=n_jobs),
    "tslearn k-shape": lambda k: KShape(k, random_state=0),
    "aeon k-means, DTW": lambda k: AeonKMeans(
        k, distance="dtw", n_init=1, max_iter=50, averaging_method="ba", random_state=0
    ),
}
labels, seconds = {}, {}
for maker, make in makers.items():
    def shaped(X):
        return X[:, None] if maker.startswith("aeon") else X[:, :, None]

    make(2).fit(shaped(data[names[0]][:6, :12]))
    for name in names:
        X, k = data[name], int(data[name + "_k"])
        start = time.perf_counter()
        model = make(k).fit(shaped(X))
        key = f"{maker}/{name}"
        seconds[key], labels[key] = time.perf_counter() - start, np.asarray(model.labels_)
        print(key, round(seconds[key], 2), file=sys.stderr, flush=True)
np.savez(sys.argv[2], **labels)
print(json.dumps(seconds | {"tslearn": tslearn.__version__, "aeon": aeon.__version__}))
"""


def run() -> list[Row]:
    """Return the ratio of mean adjusted Rand indices and of total times to each rival."""
    data, rival = _data(), Rival("SIMILIA_RIVALS_PYTHON")
    if not data:
        return []
    ours, flat, seconds = {}, {}, {}
    KernelKMeans(DTW(), 2, random_state=0).fit(data["OliveOil"][0][:6])
    for name, (X, y) in data.items():
        k, start = len(np.unique(y)), time.perf_counter()
        ours[name] = _index(y, [KernelKMeans(DTW(), k, random_state=seed).fit(X).labels_ for seed in range(SEEDS)])
        seconds[name] = (time.perf_counter() - start) / SEEDS
        flat[name] = _index(y, [KMeans(k, n_init=10, random_state=seed).fit(X).labels_ for seed in range(SEEDS)])
        print(f"{name}: {ours[name]:.3f} in {seconds[name]:.2g} s; Euclidean {flat[name]:.3f}")
    what, mean = f"clusters of {len(data)} UCR sets", np.mean([*ours.values()])
    index = f"{what}: mean adjusted Rand index"
    rows = [Row(index, "scikit-learn k-means", mean / np.mean([*flat.values()]), at_least=1), *_many()]
    if not rival:
        return rows
    arrays = {name: X for name, (X, _) in data.items()}
    theirs, labels = rival.run(
        RIVAL, arrays | {f"{name}_k": np.unique(y).size for name, (_, y) in data.items()}, cpu_count()
    )
    for maker in dict.fromkeys(key.partition("/")[0] for key in labels):
        found = {name: _index(y, [labels[f"{maker}/{name}"]]) for name, (_, y) in data.items()}
        taken = [theirs[f"{maker}/{name}"] for name in data]
        print(maker, {name: f"{value:.3f}" for name, value in found.items()}, f"{sum(taken):.3g} s")
        library, _, method = maker.partition(" ")
        titled = f"{library} {theirs[library]} {method}"
        rows.append(Row(index, titled, mean / np.mean([*found.values()]), at_least=1))
        rows.append(
            Row(f"{what}: speed", titled, sum(taken) / sum(seconds.values()), at_least=20 if "DTW" in maker else None)
        )
    return rows


def _many() -> list[Row]:
    """Return time and agreement of the clusters of 300,000 series."""
    ((X, y),) = _data(("SyntheticControl",)).values()
    few = KernelKMeans(DTW(), 6, random_state=0).fit(X)
    many = np.repeat(X, COPIES, axis=0) + 0.3 * np.random.default_rng(0).normal(size=(COPIES * len(X), X.shape[1]))
    start = time.perf_counter()
    found = KernelKMeans(DTW(), 6, random_state=0).fit(many)
    seconds = time.perf_counter() - start
    what = f"clusters of {len(many)} series of {X.shape[1]}"
    agree = adjusted_rand_score(np.repeat(y, COPIES), found.labels_) / adjusted_rand_score(y, few.labels_)
    return [Row(f"{what}: time", "10 minutes", seconds / 600, at_most=1), Row(f"{what}: index", "of 600", agree)]


def _index(y: npt.NDArray, labels: list[npt.NDArray]) -> float:
    return float(np.mean([adjusted_rand_score(y, found) for found in labels]))


def _data(names: tuple[str, ...] = SETS) -> dict[str, tuple[npt.NDArray, npt.NDArray]]:
    """Return standardised series and classes of each set that a folder of SIMILIA_DATA has, or nothing, saying so."""
    folders = [Path(folder) / "series" for folder in os.environ.get("SIMILIA_DATA", "").split(os.pathsep)]
    found = {}
    for name in names:
        path = next((folder / f"{name}.npz" for folder in folders if (folder / f"{name}.npz").exists()), None)
        if path is None:
            print(f"skipped: SIMILIA_DATA names no folder with series/{name}.npz")
            return {}
        with np.load(path) as file:
            X = file["values"].reshape(len(file["lengths"]), -1).astype(np.float64)
            found[name] = (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, keepdims=True), file["y"]
    return found


if __name__ == "__main__":
    print(*run(), sep="\n")
