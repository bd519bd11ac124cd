"""The objects that `cpus.py` computes with: odd numbers of them, equal ones, near ones, tiny ones, both precisions."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import similia as sm

N_STRINGS, N_GRAPHS, N_SERIES, N_SETS, N_VECTORS, N_CODES = 233, 83, 67, 151, 777, 997


def data() -> dict[str, Any]:
    """Return collections by name, and labels (`classes`, `numbers`) as long as the longest of them.

    The first run saves them for the others: even random numbers pass through functions that depend on the processor.
    """
    rng = np.random.default_rng(0)
    strings, string_classes = _strings()
    graphs = _graphs(rng)
    series = _series(rng)
    sets = _sets(rng, n_dims=3, dtype=np.float64)
    vectors, digit_classes = _vectors(rng)
    codes = rng.integers(0, 256, (N_CODES, 32), dtype=np.uint8)
    codes[-60:] = codes[:60]  # equal codes
    codes[-90:-60, 0] ^= codes[:30, 0] & 1  # near ones
    objects = {
        "strings": strings,
        "graphs": graphs,
        "series": series,
        "series, float32": [np.asarray(np.c_[x, -x[::-1]], np.float32) for x in series],
        "series, one length": np.stack([np.resize(x, 24) for x in series]),
        "sets": sets,
        "sets, float32": _sets(rng, n_dims=9, dtype=np.float32),
        "sets, unit norm": [x / np.linalg.norm(x, axis=1, keepdims=True) for x in _sets(rng, 8, np.float32)],
        "vectors": vectors,
        "vectors, float32": vectors.astype(np.float32),
        "signed vectors": _signed(rng),
        "signed vectors, float32": _signed(rng).astype(np.float32),
        "frequencies": np.abs(vectors[:301]) + np.finfo(float).eps,
        "sign vectors": (vectors[:, :33] > vectors[:, :33].mean()).astype(np.float32),
        "numbers": np.concatenate([rng.normal(size=301), [0.0, 1e-300, -1e-300, 1e9, 0.0]]),
        "records": [(text, float(number)) for text, number in zip(strings, rng.normal(size=len(strings)), strict=True)],
        "codes": codes,
    }
    labels = {"strings": string_classes, "records": string_classes, "vectors": digit_classes}
    labels["vectors, float32"] = labels["frequencies"] = digit_classes
    return {
        "objects": objects,
        "labels": {name: labels.get(name, np.arange(len(X)) % 3) for name, X in objects.items()},
    }


def _strings() -> tuple[list[str], np.ndarray]:
    """Return bundled splice sites, some of them twice, some with one letter changed, some cut short, one empty."""
    found = sm.datasets.load_splice()
    X, y = list(found.data[:N_STRINGS]), np.unique(found.target[:N_STRINGS], return_inverse=True)[1]
    near = [("A" if x[0] != "A" else "C") + x[1:] for x in X[:31]]
    cut = [x[: 3 + i] for i, x in enumerate(X[31:48])]
    return [*X, *X[:29], *near, *cut, ""], np.concatenate([y, y[:29], y[:31], y[31:48], y[:1]])


def _graphs(rng: np.random.Generator) -> list[Any]:
    """Return labelled graphs of two densities, with attributes and labels of edges, the first ones twice."""
    found = []
    for i in range(N_GRAPHS):
        n = 5 + i % 13
        upper = np.triu(rng.random((n, n)) < (0.25 if i % 2 else 0.5), 1)
        arcs = np.array(np.nonzero(upper))
        edges = np.concatenate([arcs, arcs[::-1]], axis=1)
        kinds = rng.integers(0, 2, arcs.shape[1])
        attributes = rng.normal(size=(n, 2)) * (1e-7 if i % 5 == 0 else 1.0)
        found.append(
            {
                "edge_index": edges,
                "n_nodes": n,
                "node_labels": rng.integers(0, 3, n),
                "node_attributes": attributes,
                "edge_labels": np.concatenate([kinds, kinds]),
            }
        )
    return [*found, *found[:8]]


def _series(rng: np.random.Generator) -> list[np.ndarray]:
    """Return random walks of odd lengths: plain, tiny, far from zero, equal, and different in the last bits."""
    found = [np.cumsum(rng.normal(size=17 + i % 15)) for i in range(N_SERIES)]
    found[3] = found[3] * 1e-7
    found[4] = found[4] + 1e4
    return [*found, found[0].copy(), found[1] * (1 + 1e-9), np.nextafter(found[2], np.inf), np.zeros(19)]


def _sets(rng: np.random.Generator, n_dims: int, dtype: Any) -> list[np.ndarray]:
    """Return point sets of 3 to 21 points: plain, tiny, far from zero, equal, and different in the last bits."""
    found = [np.asarray(rng.normal(size=(3 + i % 19, n_dims)), dtype) for i in range(N_SETS)]
    found[3] = found[3] * dtype(1e-5)
    found[4] = found[4] + dtype(100)
    return [*found, *[x.copy() for x in found[:9]], np.nextafter(found[9], dtype(9))]


def _vectors(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return images of digits with a column beside, some rows twice, near to others, or tiny: no negative numbers."""
    X, y = load_digits(return_X_y=True)
    X, y = np.c_[X[:N_VECTORS], rng.random(N_VECTORS)], y[:N_VECTORS]
    X[-40:-20], y[-40:-20] = X[:20], y[:20]
    X[-20:-10] = X[20:30] * (1 + 1e-9)
    X[-10:] *= 1e-14
    return X, y


def _signed(rng: np.random.Generator) -> np.ndarray:
    """Return normal vectors: equal, opposite, near and tiny ones among them, columns of three scales."""
    X = rng.normal(size=(N_VECTORS, 203)) * np.resize([1.0, 1e-3, 30.0], 203)
    X[-40:-20] = -X[:20]
    X[-20:-10] = np.nextafter(X[20:30], 0)
    X[-10:-2] *= 1e-14
    X[-2:] = X[:2]
    return X
