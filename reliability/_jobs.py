"""What `determinism.py` runs in each setting: fits and transforms of all five systems, their results as arrays.

    python reliability/_jobs.py FOLDER anew        # fits everything, saves models and results to the folder
    python reliability/_jobs.py FOLDER saved       # loads the models that are in the folder, results to standard output

Settings come from the environment: of this module CHUNK (objects at a time), MEMORY and PARTS (of a Dask
collection, computed by its SCHEDULER); the others (threads, processor features) are those of the libraries.
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.pipeline import Pipeline, make_pipeline

import similia as sm

N_STRINGS, N_GRAPHS, N_DIGITS = 300, 80, 500


def strings() -> tuple[list[str], np.ndarray]:
    """Return bundled splice sites, some of them twice and some with one letter changed: exact and near ties."""
    data = sm.datasets.load_splice()
    X, y = list(data.data[:N_STRINGS]), np.asarray(data.target[:N_STRINGS])
    near = [("A" if x[0] != "A" else "C") + x[1:] for x in X[:40]]
    return [*X, *X[:40], *near], np.concatenate([y, y[:40], y[:40]])


def graphs() -> tuple[list[np.ndarray], np.ndarray]:
    """Return adjacency matrices of random graphs of two densities."""
    rng, found = np.random.default_rng(0), []
    for i in range(N_GRAPHS):
        upper = np.triu(rng.random((14, 14)) < (0.2 if i % 2 else 0.3), 1)
        found.append((upper | upper.T).astype(float))
    return found, np.arange(N_GRAPHS) % 2


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Return images of digits, some of them mirrored about the origin: codes of opposite signs."""
    X, y = load_digits(return_X_y=True)
    return np.concatenate([X[:N_DIGITS], -X[:50]]), np.concatenate([y[:N_DIGITS], y[:50]])


def jobs() -> dict[str, tuple[Callable[[], tuple[Any, np.ndarray]], Callable[[], Pipeline]]]:
    """Return data and models by name; each model ends in bits or in a classifier of bits."""
    signs, learner = sm.SignRandomProjection(512, random_state=0), sm.HDClassifier(random_state=0)
    return {
        "NysHD": (strings, lambda: sm.recipes.nyshd(sm.kernels.GappyKmers(k=4, gaps=1), 60, 512, random_state=0)),
        "NysHD, pivoted landmarks": (
            strings,
            lambda: make_pipeline(
                sm.Nystroem(sm.kernels.Spectrum(k=3), 60, "rpcholesky", random_state=0), signs, learner
            ),
        ),
        "NysHD, graphs": (
            graphs,
            lambda: sm.recipes.nyshd(sm.kernels.WeisfeilerLehman(n_iter=2), 30, 512, random_state=0),
        ),
        "D2KE": (
            strings,
            lambda: make_pipeline(sm.D2KE(sm.distances.Levenshtein(), 64, random_state=0), signs, learner),
        ),
        "GSA-phi": (
            graphs,
            lambda: make_pipeline(sm.GraphletSampling(5, 500, n_components=128, random_state=0), signs, learner),
        ),
        "PCA + ITQ": (digits, lambda: sm.recipes.pca_itq(16, 0.5, 0.8, random_state=0)),
        "heat kernel": (
            digits,
            lambda: make_pipeline(sm.HeatRandomFeatures(256, mapping="projection", random_state=0), signs, learner),
        ),
        "n-grams": (strings, lambda: make_pipeline(sm.NGramEncoder(3, 512, random_state=0), learner)),
        "nearest codes": (digits, lambda: make_pipeline(sm.SignRandomProjection(64, random_state=0))),
    }


def results(model: Pipeline, X: Any) -> dict[str, np.ndarray]:
    """Return floats, codes, labels and margins of objects, and nearest codes where nothing is learnt of labels."""
    found: dict[str, np.ndarray] = {}
    if len(model) > 1 and not hasattr(model[0], "prototypes_"):
        found["floats"] = transformed(model[0].transform, X)
    encoder = model if hasattr(model[-1], "transform") else model[:-1]
    found["codes"] = transformed(encoder.transform, X)
    if hasattr(model[-1], "predict"):
        found["labels"] = transformed(model.predict, X)
        return found
    index = sm.HammingIndex(8 * found["codes"].shape[1]).fit(found["codes"])
    distances, ids = index.kneighbors(found["codes"], 20)
    return found | {"distances": distances, "ids": ids}


def transformed(method: Callable[[Any], Any], X: Any) -> np.ndarray:
    """Return ``method(X)``: at once, in chunks, or of a Dask collection, as the environment says."""
    n = len(X)
    if parts := int(os.environ.get("PARTS", 0)):
        limits = np.linspace(0, n, parts + 1).astype(int)
        later = sm.scale.apply(method, collection([X[a:b] for a, b in pairwise(limits)]))
        return later.compute(scheduler=os.environ["SCHEDULER"])
    size = int(os.environ.get("CHUNK", n))
    return np.concatenate([method(X[i : i + size]) for i in range(0, n, size)])


def collection(pieces: list[Any]) -> Any:
    """Return a Dask array of vectors, or a bag of other objects, in these pieces."""
    import dask.array as da
    import dask.bag as db
    from dask.delayed import delayed

    if isinstance(pieces[0], np.ndarray):
        return da.concatenate([da.from_array(piece) for piece in pieces])
    return db.from_delayed([delayed(piece, traverse=False) for piece in pieces])


@contextlib.contextmanager
def memory() -> Iterator[None]:
    with sm.config(max_memory=os.environ.get("MEMORY", "1GiB")):
        yield


def main(folder: Path, how: str) -> None:
    arrays = {}
    for number, (name, (data, make)) in enumerate(jobs().items()):
        X, y = data()
        path = folder / f"{number}.similia"
        with memory(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = make().fit(X, y) if how == "anew" else sm.load(path)
            arrays |= {f"{name}|{what}": array for what, array in results(model, X).items()}
        if how == "anew" and "--keep" in sys.argv:
            sm.save(model, path)
    np.savez(sys.stdout.buffer, **arrays)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
