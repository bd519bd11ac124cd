"""Clusters of time series: agreement with the classes (adjusted Rand index) and time, beside tslearn's and aeon's.

SIMILIA_DATA names the folders of data sets, one of which has `series`; SIMILIA_RIVALS_PYTHON an interpreter that has
aeon and tslearn. Training and test part are joined, each series is standardised, and all get the number of classes.
`KernelKMeans(DTW())` runs with its defaults. DTW without a window was chosen, among five distances, on the four sets of
`CHOSEN`; so the index is also given for the other 16. `KernelKMeans` makes ten starts, its default, and so do the two
k-shapes (aeon's default) and scikit-learn's k-means. Everyone gets all cores, and calls are warm.

A round of the rivals' k-means by DTW costs n L^2 for n series of length L, times the number of clusters or of steps to
a barycentre, so they make one start, their quickest. aeon and tslearn run on the 12 sets for which n L^2 is at most 20
million, which takes about an hour on one core; the others would take many. A line is printed as soon as a set is done,
the cheapest first::

    SIMILIA_DATA=... SIMILIA_RIVALS_PYTHON=/path/to/python python benchmarks/clusters.py
    SIMILIA_DATA=... SIMILIA_RIVALS_PYTHON=/path/to/python python benchmarks/clusters.py SmoothSubspace Wine
"""

from __future__ import annotations

import os
import sys
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

CHOSEN = ("Plane", "SyntheticControl", "CBF", "GunPointMaleVersusFemale")  # sets on which the distance was chosen
SETS = (
    *("SmoothSubspace", "Wine", "FaceFour", "SonyAIBORobotSurface1", "OliveOil", "Car", "CricketY", "ECGFiveDays"),
    *("FacesUCR", "FiftyWords", "Herring", "LargeKitchenAppliances", "ScreenType", "SonyAIBORobotSurface2"),
    *("SwedishLeaf", "WordSynonyms", *CHOSEN),
)
MOST_CELLS = 20_000_000  # n L^2 of the largest set on which aeon and tslearn run
SEEDS = 3  # of ours and of Euclidean k-means; rivals, which take minutes, get one

RIVAL = """
import json, sys, time
import aeon, numpy as np, tslearn
from aeon.clustering import KShape as AeonKShape, TimeSeriesKMeans as AeonKMeans
from tslearn.clustering import KShape, TimeSeriesKMeans
data, n_jobs = np.load(sys.argv[1]), int(sys.argv[3])
X, k = data["X"], int(data["k"])
makers = {
    "tslearn k-means, DTW": lambda k: TimeSeriesKMeans(k, metric="dtw", random_state=0, n_jobs=n_jobs),
    "tslearn k-shape": lambda k: KShape(k, n_init=10, random_state=0),
    "aeon k-means, DTW": lambda k: AeonKMeans(
        k, distance="dtw", n_init=1, max_iter=50, averaging_method="ba", random_state=0
    ),
    "aeon k-shape": lambda k: AeonKShape(k, n_init=10, n_jobs=n_jobs, random_state=0),
}
labels, seconds = {}, {}
for maker, make in makers.items():
    shaped = X[:, None] if maker.startswith("aeon") else X[:, :, None]
    make(2).fit(shaped[:6, :, :12] if maker.startswith("aeon") else shaped[:6, :12])
    start = time.perf_counter()
    model = make(k).fit(shaped)
    seconds[maker] = time.perf_counter() - start
    found = getattr(model, "labels_", None)  # None if a cluster was empty at each attempt
    labels[maker] = np.zeros(len(X)) if found is None else np.asarray(found)
np.savez(sys.argv[2], **labels)
print(json.dumps({"seconds": seconds, "versions": {"tslearn": tslearn.__version__, "aeon": aeon.__version__}}))
"""


def run(names: tuple[str, ...] = SETS) -> list[Row]:
    """Return the ratio of mean adjusted Rand indices and of total times to each rival."""
    data, rival = sets(names), Rival("SIMILIA_RIVALS_PYTHON")
    if not data:
        return []
    ours: dict[str, float] = {}
    seconds: dict[str, float] = {}
    found: dict[str, dict[str, float]] = {"scikit-learn k-means": {}}
    taken: dict[str, dict[str, float]] = {}
    KernelKMeans(DTW(), 2, random_state=0).fit(next(iter(data.values()))[0][:6])
    for name, (X, y) in sorted(data.items(), key=lambda item: item[1][0].size * item[1][0].shape[1]):
        k, start = len(np.unique(y)), time.perf_counter()
        ours[name] = _index(y, [KernelKMeans(DTW(), k, random_state=seed).fit(X).labels_ for seed in range(SEEDS)])
        seconds[name] = (time.perf_counter() - start) / SEEDS
        flat = [KMeans(k, n_init=10, random_state=seed).fit(X).labels_ for seed in range(SEEDS)]
        found["scikit-learn k-means"][name] = _index(y, flat)
        theirs = _rivals(rival, X, y) if rival and X.size * X.shape[1] <= MOST_CELLS else {}
        for maker, (index, time_taken) in theirs.items():
            found.setdefault(maker, {})[name] = index
            taken.setdefault(maker, {})[name] = time_taken
        others = "; ".join(
            f"{maker} {index:.3f} in {time_taken:.3g} s" for maker, (index, time_taken) in theirs.items()
        )
        marked = f"{name} (chose the distance)" if name in CHOSEN else name
        print(f"{marked}, {len(X)} of {X.shape[1]}: {ours[name]:.3f} in {seconds[name]:.2g} s;", end=" ")
        print(f"Euclidean {found['scikit-learn k-means'][name]:.3f}; {others}", flush=True)
    rows = []
    for maker, indices in found.items():
        rows += _compared(maker, ours, indices)
        if maker in taken:
            ratio = sum(taken[maker].values()) / sum(seconds[name] for name in taken[maker])
            goal = None if maker.startswith("tslearn") and maker.endswith("k-shape") else 20
            rows.append(Row(f"clusters of {len(indices)} UCR sets: speed", maker, ratio, at_least=goal))
    return rows


def _rivals(rival: Rival, X: npt.NDArray, y: npt.NDArray) -> dict[str, tuple[float, float]]:
    """Return each rival's index, and its seconds for a set."""
    told, labels = rival.run(RIVAL, {"X": X, "k": np.array(len(np.unique(y)))}, cpu_count())
    found = {}
    for maker, seconds in told["seconds"].items():
        library, _, method = maker.partition(" ")
        titled = f"{library} {told['versions'][library]} {method}"
        found[titled] = _index(y, [labels[maker]]), seconds
    return found


def _compared(titled: str, ours: dict[str, float], theirs: dict[str, float]) -> list[Row]:
    """Return the ratio of mean indices on all sets, and on those on which the distance was not chosen."""
    others = [name for name in theirs if name not in CHOSEN]
    rows = []
    for names, which in ((list(theirs), ""), (others, ", without those that chose the distance")):
        if names and (not which or len(names) < len(theirs)):
            ratio = np.mean([ours[name] for name in names]) / np.mean([theirs[name] for name in names])
            what = f"clusters of {len(names)} UCR sets{which}: mean adjusted Rand index"
            rows.append(Row(what, titled, float(ratio), at_least=1))
    return rows


def _index(y: npt.NDArray, labels: list[npt.NDArray]) -> float:
    return float(np.mean([adjusted_rand_score(y, found) for found in labels]))


def sets(names: tuple[str, ...]) -> dict[str, tuple[npt.NDArray, npt.NDArray]]:
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
    print(*run(tuple(sys.argv[1:]) or SETS), sep="\n")
