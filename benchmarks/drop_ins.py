"""Nearest neighbours under dynamic time warping: our classifier against aeon's and tslearn's, and against all pairs.

SIMILIA_RIVALS_PYTHON names an interpreter that has aeon and tslearn; their rows are skipped without it. All get the
same series of 150 time points (made to look like those of GunPoint: a raised and lowered hand, with or without a dip),
500 to fit and 150 to predict; the rivals get every tenth of the 150, whose time is scaled. Their cost is the squared
difference, and so is ours here::

    SIMILIA_RIVALS_PYTHON=/path/to/python python benchmarks/drop_ins.py
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from joblib import cpu_count
from measure import Rival, Row, in_turns

from similia.distances import DTW
from similia.learn.neighbors import KNeighborsClassifier

N_FIT, N_PREDICT, LENGTH, SHARE = 500, 150, 150, 10
WINDOWS = {"no window": None, "window 0.1": 0.1}

RIVAL = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import aeon, numpy as np, tslearn
from aeon.classification.distance_based import KNeighborsTimeSeriesClassifier as Aeon
from tslearn.neighbors import KNeighborsTimeSeriesClassifier as Tslearn
data, n_jobs, window = np.load(sys.argv[1]), int(sys.argv[3]), float(sys.argv[4])
X, y, Q = data["X"], data["y"], data["Q"]
radius = {"global_constraint": "sakoe_chiba", "sakoe_chiba_radius": int(window * X.shape[1])}
models = {
    "aeon": (Aeon("dtw", distance_params={"window": window} if window else None, n_jobs=n_jobs), 1),
    "tslearn": (Tslearn(1, metric="dtw", metric_params=radius if window else None, n_jobs=n_jobs), 2),
}
seconds, predicted = {}, {}
for name, (model, axis) in models.items():
    model.fit(np.expand_dims(X, axis), y)
    model.predict(np.expand_dims(Q[:2], axis))
    start = time.perf_counter()
    predicted[name] = model.predict(np.expand_dims(Q, axis))
    seconds[name] = time.perf_counter() - start
np.savez(sys.argv[2], **predicted)
print(json.dumps(seconds | {"aeon_version": aeon.__version__, "tslearn_version": tslearn.__version__}))
"""


def run() -> list[Row]:
    """Return speeds against both rivals and against all distances, with and without a window."""
    random = np.random.default_rng(0)
    (X, y), (Q, _) = _hands(random, N_FIT), _hands(random, N_PREDICT)
    rival = Rival("SIMILIA_RIVALS_PYTHON")
    rows = []
    for name, window in WINDOWS.items():
        distance = DTW(window, local="sqeuclidean")
        model = KNeighborsClassifier(distance).fit(X, y)
        ours, pairs = in_turns(lambda m=model: m.predict(Q), lambda d=distance: d(Q, X).argmin(axis=1), rounds=5)
        shape = f"1-NN with DTW, {name}, {N_FIT} series of {LENGTH} to fit: speed"
        rows.append(Row(shape, "all distances of similia", pairs / ours, at_least=1))
        if rival:
            seconds, predicted = rival.run(RIVAL, {"X": X, "y": y, "Q": Q[::SHARE]}, cpu_count(), window or 0)
            for library in ("aeon", "tslearn"):
                agree = np.mean(predicted[library] == model.predict(Q[::SHARE]))
                print(f"{library}: {seconds[library] * SHARE:.3g} s, similia {ours:.3g} s; {agree:.0%} agree")
                title = f"{library} {seconds[f'{library}_version']}, n_jobs={cpu_count()}, on 1/{SHARE}, scaled"
                rows.append(Row(shape, title, seconds[library] * SHARE / ours, at_least=20))
    return rows


def _hands(random: np.random.Generator, n: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return n standardised series of two classes: a plateau with smooth sides, and the same with a dip after it."""
    t, y = np.linspace(0, 1, LENGTH), np.arange(n) % 2
    up, down = random.uniform(0.2, 0.35, (n, 1)), random.uniform(0.65, 0.8, (n, 1))
    steep = random.uniform(30, 60, (n, 1))
    X = 1 / (1 + np.exp(steep * (up - t))) - 1 / (1 + np.exp(steep * (down - t)))
    X -= 0.15 * y[:, None] * np.exp(-(((t - down - 0.08) / 0.03) ** 2))
    X += random.normal(0, 0.02, X.shape)
    return (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, keepdims=True), y


if __name__ == "__main__":
    print(*run(), sep="\n")
