"""What the graphlet experiments share: graphs from a stochastic block model, and a tuned support vector machine."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from similia.objects import GraphBatch, as_graphs

N_NODES, N_COMMUNITIES, DEGREE = 60, 6, 10
P_INSIDE, RATIO = 0.3, 1.5
TUNE_ON = 1_000
C_GRID = {"linear": (0.01, 0.1, 1.0, 10.0, 100.0), "rbf": (1.0, 10.0, 100.0)}
WIDTHS = (0.1, 0.3, 1.0, 3.0)  # of the Gaussian kernel: gamma in units of 1 / mean squared distance


def block_model(n: int, rng: np.random.Generator, ratio: float = RATIO) -> tuple[GraphBatch, npt.NDArray[np.int64]]:
    """Return n graphs of six equal communities, of two classes in turn.

    In class 0 two nodes of one community are joined with probability `P_INSIDE`, in class 1 with `ratio` times that;
    the probability between communities is such that the expected degree is `DEGREE` in both.
    """
    size = N_NODES // N_COMMUNITIES
    community = np.arange(N_NODES) // size
    i, j = np.triu_indices(N_NODES, 1)
    inside = community[i] == community[j]
    y = np.arange(n) % 2
    graphs = []
    for label in y:
        p = P_INSIDE * (ratio if label else 1.0)
        q = (DEGREE - (size - 1) * p) / (N_NODES - size)
        joined = rng.random(len(i)) < np.where(inside, p, q)
        graphs.append((np.array([np.r_[i[joined], j[joined]], np.r_[j[joined], i[joined]]]), N_NODES))
    return as_graphs(graphs), y


def tuned_predictions(
    A: Any, y: npt.NDArray, B: Any, kernel: Literal["linear", "rbf"] = "linear"
) -> tuple[npt.NDArray, dict[str, float]]:
    """Return predictions for the rows of `B`, and the C and width that five folds of (at most 1000 of) `A` chose."""
    if not issparse(A):
        scaler = StandardScaler().fit(A)
        A, B = scaler.transform(A).astype(np.float64), scaler.transform(B).astype(np.float64)
    products, cross = _dense(A @ A.T), _dense(B @ A.T)
    widths: Sequence[float] = (0.0,)
    if kernel == "rbf":
        own, other = np.diag(products), np.asarray(B.multiply(B).sum(axis=1) if issparse(B) else (B * B).sum(axis=1))
        cross = np.maximum(other.reshape(-1, 1) + own - 2 * cross, 0)
        products = np.maximum(own[:, None] + own - 2 * products, 0)
        widths = WIDTHS
    unit = products.mean() if kernel == "rbf" else np.trace(products) / len(products)
    products, cross = products / unit, cross / unit

    def shape(values: npt.NDArray, width: float) -> npt.NDArray:
        return np.exp(-width * values) if width else values

    sample = np.arange(len(y))
    if len(sample) > TUNE_ON:
        sample = next(StratifiedShuffleSplit(1, train_size=TUNE_ON, random_state=0).split(products, y))[0]
    folds = [*StratifiedKFold(5, shuffle=True, random_state=0).split(sample, y[sample])]
    best = (-1.0, 0.0, 0.0)
    for width, C in product(widths, C_GRID[kernel]):
        K = shape(products[np.ix_(sample, sample)], width)
        hits = 0.0
        for a, b in folds:
            model = SVC(kernel="precomputed", C=C).fit(K[np.ix_(a, a)], y[sample[a]])
            hits += np.mean(model.predict(K[np.ix_(b, a)]) == y[sample[b]]) / len(folds)
        best = max(best, (hits, -C, width))  # of equals the smallest C
    hits, C, width = best[0], -best[1], best[2]
    model = SVC(kernel="precomputed", C=C).fit(shape(products, width), y)
    return model.predict(shape(cross, width)), {"C": C, "width": width, "cross_validated": round(hits, 4)}


def _dense(values: Any) -> npt.NDArray[np.float64]:
    return np.asarray(values.toarray() if issparse(values) else values, dtype=np.float64)
