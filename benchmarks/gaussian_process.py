"""Gaussian-process regression: time and memory to fit, on all pairs and with landmarks.

SIMILIA_GPYTORCH_PYTHON names an interpreter that has gpytorch; its rows are skipped without it. gpytorch gets the
kernel matrix and takes 100 steps of Adam, as in the experiment on molecules.

    SIMILIA_GPYTORCH_PYTHON=/path/to/python python benchmarks/gaussian_process.py [n_pairs [n_many]]
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from measure import Rival, Row
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor as TheirRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from similia.kernels import RBF as Curve
from similia.learn import GaussianProcessRegressor

_GAMMA = 0.1
_TOOLS = Path(__file__).resolve().parents[1] / "experiments" / "_gpytorch_tools.py"


def run(n_pairs: int = 5000, n_many: int = 50_000) -> list[Row]:
    """Return the rows: one fit of each; all choose scale and noise by the evidence."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    rows = []
    for n in sorted({1000, n_pairs}):
        X, y = _points(n + 1000)
        kernel = ConstantKernel() * RBF(1 / np.sqrt(2 * _GAMMA), "fixed") + WhiteKernel(0.1)
        theirs, slow = _seconds(TheirRegressor(kernel, alpha=0, normalize_y=True), X[:n], y[:n])
        ours, fast = _seconds(GaussianProcessRegressor(Curve(gamma=_GAMMA)), X[:n], y[:n])
        gap = np.abs(ours.predict(X[n:]) - theirs.predict(X[n:]))  # far from all X, the estimated mean leads elsewhere
        assert np.median(gap) < 0.02
        rows.append(Row(f"{n} objects, all pairs: speed of fit", "scikit-learn, same kernel", slow / fast, at_least=1))
    rows += _beside_gpytorch(X, y, n_pairs)
    X, y = _points(n_many + 1000)
    few, fast = _seconds(_with_landmarks(), X[:n_many], y[:n_many])
    rows.append(Row(f"{n_many:,} objects, 1000 landmarks: time of fit", "5 minutes", fast / 300, at_most=1))
    errors = [np.sqrt(np.mean((model.predict(X[n_many:]) - y[n_many:]) ** 2)) for model in (few, ours)]
    rows.append(
        Row("the same: RMSE on 1000 others", f"all pairs of {n_pairs} objects", errors[0] / errors[1], at_most=1)
    )
    return [*rows, *_memory(n_many)]


def _beside_gpytorch(X: np.ndarray, y: np.ndarray, n: int) -> list[Row]:
    """Return speed and error of `fit` to n objects and `predict` for the others, from the matrix of all."""
    rival = Rival("SIMILIA_GPYTORCH_PYTHON")
    if not rival:
        return []
    K, places = Curve(gamma=_GAMMA)(X), np.arange(len(X))[:, None]
    arrays = {"K": K, "y": y, "train": np.arange(n), "test": np.arange(n, len(X))}
    found, _ = rival.run(_TOOLS.read_text(encoding="utf-8"), arrays)
    start = time.perf_counter()
    model = GaussianProcessRegressor(lambda A, B=None: K[np.ix_(A[:, 0], (A if B is None else B)[:, 0])])
    mean, _ = model.fit(places[:n], y[:n]).predict(places[n:], return_std=True)
    seconds = time.perf_counter() - start
    ours, theirs = (np.sqrt(np.mean((np.array(one) - y[n:]) ** 2)) for one in (mean, found["mean"]))
    what, name = f"{n} objects, a matrix of all pairs", "gpytorch, 100 steps of Adam"
    return [
        Row(f"{what}: speed of fit and prediction", name, found["seconds"] / seconds, at_least=1),
        Row("the same: RMSE on 1000 others", name, ours / theirs, at_most=1.005),
    ]


def _memory(n: int) -> list[Row]:
    """Return how memory grows from n / 4 objects to n / 2 and to n, beyond that of a process that fits nothing."""
    base, *taken = (_peak(size) for size in (0, n // 4, n // 2, n))
    quarter, half, whole = (peak - base for peak in taken)
    return [
        Row(f"{size:,} objects, 1000 landmarks: memory of fit", f"twice that of {size // 2:,}", ratio, at_most=1)
        for size, ratio in ((n // 2, half / (2 * quarter)), (n, whole / (2 * half)))
    ]


def _peak(n: int) -> int:
    """Return the most KiB that a process takes that fits n objects; none, if n is 0."""
    command = [sys.executable, __file__, "--memory", str(n)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def _with_landmarks() -> GaussianProcessRegressor:
    return GaussianProcessRegressor(Curve(gamma=_GAMMA), n_landmarks=1000, random_state=0)


def _points(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5))
    return X, np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2] ** 2 + 0.1 * rng.normal(size=n)


def _seconds(model: object, X: np.ndarray, y: np.ndarray) -> tuple[object, float]:
    start = time.perf_counter()
    model.fit(X, y)  # type: ignore[attr-defined]
    return model, time.perf_counter() - start


if __name__ == "__main__":
    if sys.argv[1:2] == ["--memory"]:
        if n := int(sys.argv[2]):
            _with_landmarks().fit(*_points(n))
        status = Path("/proc/self/status").read_text(encoding="ascii")  # `ru_maxrss` counts the parent before exec, too
        print(re.search(r"VmHWM:\s+(\d+)", status)[1])  # type: ignore[index]
    else:
        print(*run(*map(int, sys.argv[1:])), sep="\n")
