"""Gaussian-process regression: time to fit on all pairs, and with landmarks, beside scikit-learn's."""

from __future__ import annotations

import time
import warnings

import numpy as np
from measure import Row
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor as TheirRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from similia.kernels import RBF as Curve
from similia.learn import GaussianProcessRegressor

_GAMMA = 0.1


def run() -> list[Row]:
    """Return the rows: one fit of each; both choose scale and noise by the evidence."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    rows = []
    for n in (1000, 5000):
        X, y = _points(n + 1000)
        kernel = ConstantKernel() * RBF(1 / np.sqrt(2 * _GAMMA), "fixed") + WhiteKernel(0.1)
        theirs, slow = _seconds(TheirRegressor(kernel, alpha=0, normalize_y=True), X[:n], y[:n])
        ours, fast = _seconds(GaussianProcessRegressor(Curve(gamma=_GAMMA)), X[:n], y[:n])
        np.testing.assert_allclose(ours.predict(X[n:]), theirs.predict(X[n:]), atol=0.02)
        rows.append(Row(f"{n} objects, all pairs: speed of fit", "scikit-learn, same kernel", slow / fast, at_least=1))
    X, y = _points(51_000)
    few, fast = _seconds(
        GaussianProcessRegressor(Curve(gamma=_GAMMA), n_landmarks=1000, random_state=0), X[:50_000], y[:50_000]
    )
    rows.append(Row("50,000 objects, 1000 landmarks: time of fit", "5 minutes", fast / 300, at_most=1))
    errors = [np.sqrt(np.mean((model.predict(X[50_000:]) - y[50_000:]) ** 2)) for model in (few, ours)]
    rows.append(Row("the same: RMSE on 1000 others", "all pairs of 5000 objects", errors[0] / errors[1], at_most=1))
    return rows


def _points(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5))
    return X, np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2] ** 2 + 0.1 * rng.normal(size=n)


def _seconds(model: object, X: np.ndarray, y: np.ndarray) -> tuple[object, float]:
    start = time.perf_counter()
    model.fit(X, y)  # type: ignore[attr-defined]
    return model, time.perf_counter() - start


if __name__ == "__main__":
    print(*run(), sep="\n")
