"""Graphs with numbers on their nodes as sets of nodes and edges: mean maps beside the plain ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import similia as sm
from experiments._figures import bars
from experiments._letters import letters
from experiments._report import Record, Table, distinct, summary, values
from similia.objects import AttributeScaler, GraphToSets, as_graphs, take

N_FEATURES, WIDTHS, CS = 1024, (0.25, 0.5, 1.0), (1.0, 10.0, 100.0)
Candidates = Iterator[tuple[str, npt.NDArray, npt.NDArray]]


@dataclass(frozen=True)
class MapTask:
    """A set of graphs; `scales` are the factors of gamma that tuning may choose from."""

    name: str
    scales: tuple[float, ...]
    published: str = ""


TASKS = (
    MapTask("letters", (1.0, 2.0, 4.0, 8.0)),
    MapTask("ENZYMES", (1.0, 4.0, 8.0, 16.0, 32.0), "59.6 (GIN), 65.2 (sets of nodes), 73.3 (WWL, other folds)"),
)
TITLE = "Mean maps of graphs with attributes"
TEXT = f"""
*letters*: 15 x 105 drawings of capital letters, distorted (`experiments/_letters.py`); stratified splits 70/30, one for
each seed. *ENZYMES*: its 18 node attributes, and the ten folds of Errica et al. (ICLR 2020); seeds change the random
features. *plain mean map*: the mean of random Fourier features of the nodes, and of the coordinates of both ends of
each edge, with the median bandwidth; in the next column the bandwidth is tuned. *mean or sum, tuned*: the choice is
also between this and sums, with the degrees of nodes as a coordinate. *WL on labels*: the Weisfeiler-Lehman kernel
without the attributes. There are {N_FEATURES} features for each kind of set. The learner is a support-vector machine
with an RBF kernel of the features. Whatever is chosen (also its width and C) is chosen by five folds of the training
part, which also scales the attributes.
"""


def measure(task: MapTask, seeds: int) -> list[Record]:
    """Score every method on every split."""
    graphs, y = _data(task)
    records = []
    for seed in range(seeds):
        for fold, (train, test) in enumerate(_splits(task, y, seed)):
            majority = 100 * np.mean(y[test] == _most_common(y[train]))
            for method, candidates in _methods(task, graphs).items():
                start = time.perf_counter()
                predicted, chosen = _tuned(candidates(take(graphs, train), take(graphs, test), seed), y[train])
                records.append(
                    {
                        "set": task.name, "method": method, "seed": seed, "fold": fold, "chosen": chosen,
                        "accuracy": round(100 * float(np.mean(predicted == y[test])), 3),
                        "majority": round(float(majority), 3), "seconds": round(time.perf_counter() - start, 2),
                    }
                )  # fmt: skip
    return records


def _data(task: MapTask) -> tuple[Any, npt.NDArray]:
    if task.name == "letters":
        graphs, y = letters()
        return as_graphs(graphs), y
    bunch = sm.datasets.fetch(task.name)
    return as_graphs(bunch.data), np.asarray(bunch.target)


def _splits(task: MapTask, y: npt.NDArray, seed: int) -> Any:
    if task.name == "letters":
        return StratifiedShuffleSplit(1, test_size=0.3, random_state=seed).split(y, y)
    return sm.datasets.splits(task.name)


def _most_common(y: npt.NDArray) -> Any:
    names, counts = np.unique(y, return_counts=True)
    return names[counts.argmax()]


def _methods(task: MapTask, graphs: Any) -> dict[str, Callable[[Any, Any, int], Candidates]]:
    """Return by name functions that yield candidates: (name, squared distances within train, and of test to train)."""
    found: dict[str, Callable[[Any, Any, int], Candidates]] = {}
    if graphs.node_labels is not None:
        found["WL on labels"] = _weisfeiler_lehman
    plain = [("mean", 2, False)]
    grid = [*plain, ("sum", 2, True)]
    found["plain mean map"] = lambda train, test, seed: _maps(train, test, seed, plain, (1.0,))
    found["plain, bandwidth tuned"] = lambda train, test, seed: _maps(train, test, seed, plain, task.scales)
    found["mean or sum, tuned"] = lambda train, test, seed: _maps(train, test, seed, grid, task.scales)
    return found


def _weisfeiler_lehman(train: Any, test: Any, seed: int) -> Candidates:
    for n_iter in range(1, 6):
        kernel = sm.kernels.WeisfeilerLehman(n_iter, normalize=True)
        yield f"n_iter={n_iter}", 2 - 2 * kernel(train), 2 - 2 * kernel(test, train)


def _maps(train: Any, test: Any, seed: int, grid: Any, scales: Any) -> Candidates:
    """Yield squared distances of features of nodes (1 kind of sets), or of nodes and of the ends of edges (2)."""
    for scale in scales:
        grams: dict[tuple[str, int, bool], Any] = {}
        for reduce, n_kinds, degrees in grid:
            for length in range(n_kinds):
                if (reduce, length, degrees) not in grams:
                    grams |= _grams(train, test, length, degrees, scale, seed)
            K, L, own = (sum(grams[reduce, length, degrees][i] for length in range(n_kinds)) for i in range(3))
            squared = K.diagonal()[:, None] + K.diagonal() - 2 * K, own[:, None] + K.diagonal() - 2 * L
            yield f"{reduce}, {n_kinds} kinds{', degrees' * degrees}, scale {scale:g}", *squared


def _grams(train: Any, test: Any, length: int, degrees: bool, scale: float, seed: int) -> dict[Any, Any]:
    """Return inner products for one kind of sets: of means and of sums, scaled to mean 1 on the diagonal."""
    to_sets = make_pipeline(AttributeScaler(), GraphToSets(length, use="attributes", degrees=degrees)).fit(train)
    sets = [to_sets.transform(graphs) for graphs in (train, test)]
    embedding = sm.MeanMapFeatures(N_FEATURES, scales=scale, random_state=seed).fit(sets[0])
    means = [embedding.transform(each) for each in sets]
    found = {}
    for reduce, factors in {"mean": (1, 1), "sum": [each.lengths for each in sets]}.items():
        A, B = (Z * np.reshape(factor, (-1, 1)) for Z, factor in zip(means, factors, strict=True))
        unit = np.mean(np.sum(A**2, axis=1))
        found[reduce, length, degrees] = A @ A.T / unit, B @ A.T / unit, np.sum(B**2, axis=1) / unit
    return found


def _tuned(candidates: Candidates, y: npt.NDArray) -> tuple[npt.NDArray, str]:
    """Return the predictions and the names of what was best in five folds of the training part.

    First the candidate is chosen, with the middle width and C; then width and C.
    """
    folds = [*StratifiedKFold(5, shuffle=True, random_state=0).split(y, y)]

    def score(squared: npt.NDArray, width: float, C: float) -> float:
        K, machine = _rbf(squared, squared, width), SVC(kernel="precomputed", C=C)
        return float(np.mean([machine.fit(K[np.ix_(a, a)], y[a]).score(K[np.ix_(b, a)], y[b]) for a, b in folds]))

    name, squared, of_test = max(candidates, key=lambda found: score(found[1], WIDTHS[1], CS[1]))
    width, C = max(product(WIDTHS, CS), key=lambda machine: score(squared, *machine))
    machine = SVC(kernel="precomputed", C=C).fit(_rbf(squared, squared, width), y)
    return machine.predict(_rbf(of_test, squared, width)), f"{name}, width {width:g}, C {C:g}"


def _rbf(squared: npt.NDArray, of_train: npt.NDArray, width: float) -> npt.NDArray:
    return np.asarray(np.exp(-width * squared / np.median(of_train)))


def present(records: list[Record]) -> tuple[list[Table], Any]:
    """Return the accuracies beside published ones, and a picture."""
    methods = distinct(records, "method")
    table = Table("Accuracy", ["set", "majority", *methods, "published"])
    heights: dict[str, dict[str, float]] = {}
    for task in [task for task in TASKS if task.name in distinct(records, "set")]:
        found = {m: values(records, "accuracy", set=task.name, method=m) for m in methods}
        heights[task.name] = {m: float(np.mean(v)) for m, v in found.items() if v}
        majority = f"{np.mean(values(records, 'majority', set=task.name)):.1f}"
        table.rows.append([task.name, majority, *(summary(v) if v else "" for v in found.values()), task.published])
    return [table], bars(heights, "accuracy (%)")
