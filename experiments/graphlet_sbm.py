"""GSA-phi on graphs of a stochastic block model: accuracy against size, samples and features."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments._figures import panels
from experiments._graphlets import DEGREE, P_INSIDE, RATIO, block_model, tuned_predictions
from experiments._report import Record, Table, summary, values
from similia.embeddings import GraphletSampling

N_GRAPHS, N_TRAIN = 300, 240
SIZE, N_SAMPLES, N_FEATURES = 6, 2000, 2000
BANDWIDTHS = (1.0, 2.0)


@dataclass(frozen=True)
class Sweep:
    """One axis of the experiment: the parameter of `GraphletSampling`, its values, and who takes part."""

    name: str
    parameter: str
    values: tuple[int, ...]
    methods: tuple[str, ...]


RANDOM_MAPS = ("gaussian", "gaussian_eig", "optical")
METHODS = ("match", "match_iso", *RANDOM_MAPS, "optical, exact")
TASKS = (
    Sweep("size", "size", (3, 4, 5, 6, 7), METHODS),
    Sweep("samples", "n_samples", (50, 200, 500, 2000, 5000), METHODS),
    Sweep("features", "n_components", (20, 100, 500, 2000, 5000), RANDOM_MAPS),
)
TITLE = "GSA-phi on a stochastic block model"
TEXT = f"""
{N_GRAPHS} graphs of 60 nodes in six communities of ten, two classes; within a community two nodes are joined with
probability {P_INSIDE} in one class and {P_INSIDE * RATIO:g} in the other, and the probability between communities
is such that the expected degree is {DEGREE} in both: what tells them apart is structure. Graphlets come from
random walks; unless it is the axis, size is {SIZE}, samples are {N_SAMPLES} a graph and features {N_FEATURES}. A
linear SVM is trained on {N_TRAIN} graphs, its C (and the bandwidth of the Gaussian maps, 1 or 2) chosen by five
folds of these. Mean ± standard deviation over seeds, which draw graphs, split, samples and features. Seconds are
those of the embedding of all graphs, sampling included. The paper's text at hand prints no numbers for this
experiment.
"""


def measure(task: Sweep, seeds: int) -> list[Record]:
    """Score every method at every value of the axis, with every seed."""
    records = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        graphs, y = block_model(N_GRAPHS, rng)
        order = rng.permutation(N_GRAPHS)
        train, test = order[:N_TRAIN], order[N_TRAIN:]
        for method in task.methods:
            for value in task.values:
                start = time.perf_counter()
                embeddings = [Z.fit_transform(graphs) for Z in _embeddings(method, {task.parameter: value}, seed)]
                seconds = (time.perf_counter() - start) / len(embeddings)
                found = [_score(Z, y, train, test) for Z in embeddings]
                accuracy = max(found)[1]  # that of the bandwidth with the best cross-validation
                records.append(
                    {
                        "set": task.name, "method": method, "value": value, "seed": seed,
                        "accuracy": round(100 * accuracy, 3), "seconds": round(seconds, 4),
                    }
                )  # fmt: skip
    return records


def _embeddings(method: str, axis: dict[str, int], seed: int) -> list[GraphletSampling]:
    """Return the embeddings of a method, one for each bandwidth that is tried."""
    common: dict[str, Any] = {"size": SIZE, "n_samples": N_SAMPLES, "n_components": N_FEATURES, "random_state": seed}
    common |= axis
    if method == "optical, exact":
        return [GraphletSampling(**{**common, "n_components": None})]
    if not method.startswith("gaussian"):
        return [GraphletSampling(features=method, **common)]
    return [GraphletSampling(features=method, bandwidth=bandwidth, **common) for bandwidth in BANDWIDTHS]


def _score(Z: Any, y: Any, train: Any, test: Any) -> tuple[float, float]:
    """Return the cross-validated and the test accuracy."""
    predicted, chosen = tuned_predictions(Z[train], y[train], Z[test])
    return chosen["cross_validated"], float(np.mean(predicted == y[test]))


def present(records: list[Record]) -> tuple[list[Table], Any]:
    """Return one table and one panel for each axis."""
    tables: list[Table] = []
    curves: dict[str, dict[str, list[float]]] = {}
    axes: dict[str, list[float]] = {}
    for task in TASKS:
        if not values(records, "accuracy", set=task.name):
            continue
        accuracy = Table(f"Accuracy against {task.name}", ["map", *map(str, task.values)])
        seconds = Table(f"Seconds of the embedding against {task.name}", ["map", *map(str, task.values)])
        title = f"accuracy against {task.name}"
        axes[title] = list(task.values)
        for method in task.methods:
            where = {"set": task.name, "method": method}
            runs = [values(records, "accuracy", value=value, **where) for value in task.values]
            times = [values(records, "seconds", value=value, **where) for value in task.values]
            accuracy.rows.append([method, *map(summary, runs)])
            seconds.rows.append([method, *(f"{np.median(t):.2f}" for t in times)])
            curves.setdefault(title, {})[method] = [float(np.mean(run)) for run in runs]
        tables += [accuracy, seconds]
    return tables, panels(curves, axes, "", "accuracy (%)", columns=3)
