"""Nystroem against its rivals: error in float32, the order-free product against BLAS, landmark strategies.

Run ``python benchmarks/nystroem.py``; each row is measured in this run, times as medians of alternating runs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import sklearn.kernel_approximation
from measure import Row, in_turns
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

import similia as sm
from similia.core.products import row_product


def run() -> list[Row]:
    """Return one row for each measurement."""
    return [*float32_rows(), *product_rows(), *landmark_rows()]


def float32_rows() -> list[Row]:
    """Relative error of the approximation with all objects as landmarks, on kernels of low rank."""
    rows = []
    for name, repeats in (("digits, n = 200", 1), ("digits, n = 200 twice", 2)):
        X = np.tile(load_digits().data[:200], (repeats, 1)).astype(np.float32)
        ours = sm.Nystroem(linear_kernel, len(X), random_state=0).fit_transform(X)
        theirs = sklearn.kernel_approximation.Nystroem(kernel="linear", n_components=len(X), random_state=0)
        what = f"Nystroem in float32, linear kernel, {name}: relative error"
        error = _relative_error(X, ours)
        rows.append(Row(what, "1e-4", error / 1e-4, at_most=1))
        rows.append(
            Row(what, "scikit-learn's Nystroem", error / _relative_error(X, theirs.fit_transform(X)), at_most=1)
        )
    return rows


def product_rows() -> list[Row]:
    """Time of the product with a fixed order of sums, relative to BLAS in float64 on the same shape."""
    rng = np.random.default_rng(0)
    rows = []
    for n, s in ((4110, 300), (4110, 1000)):
        C, W = rng.normal(size=(n, s)), rng.normal(size=(s, s))
        ours, blas = in_turns(lambda C=C, W=W: row_product(C, W), lambda C=C, W=W: C @ W)
        rows.append(Row(f"order-free product, {n} x {s} x {s}: time", "BLAS, float64", ours / blas))
    return rows


def landmark_rows() -> list[Row]:
    """Error of each strategy relative to uniform sampling, mean of five seeds."""
    rng = np.random.default_rng(0)
    far = [rng.normal(size=10) * 5 + rng.normal(size=(5, 10)) * 0.2 for _ in range(30)]
    skewed = np.concatenate([rng.normal(size=(2000, 10)) * 0.2, *far])
    rows = []
    for name, X, gamma, s in (
        ("one dense, 30 small clusters", skewed, 0.1, 60),
        ("digits", load_digits().data, 1e-3, 200),
    ):
        kernel = partial(rbf_kernel, gamma=gamma)
        uniform = _mean_error(kernel, X, s, "uniform")
        for strategy in ("kmeans++", "leverage", "rpcholesky", "adaptive", "ensemble"):
            what = f"landmarks={strategy!r}, {s} of {len(X)}, {name}: error"
            rows.append(Row(what, "uniform landmarks", _mean_error(kernel, X, s, strategy) / uniform))
    return rows


def _relative_error(X: np.ndarray, Z: np.ndarray) -> float:
    X, Z = X.astype(np.float64), Z.astype(np.float64)
    return float(np.linalg.norm(X @ X.T - Z @ Z.T) / np.linalg.norm(X @ X.T))


def _mean_error(kernel: Callable, X: np.ndarray, s: int, landmarks: str) -> float:
    fits = (sm.Nystroem(kernel, s, landmarks, random_state=seed).fit(X) for seed in range(5))
    return float(np.mean([fit.approximation_error(X, n_samples=None) for fit in fits]))


if __name__ == "__main__":
    print(*run(), sep="\n")
