"""NysHD, supplement Figure 1: accuracy against the number of landmarks, for several ways to choose them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline

from experiments._figures import panels
from experiments._nyshd import N_BITS, kernel_steps
from experiments._paper import FIGURE_TASKS, Task
from experiments._protocol import Method, Params, fit_and_score, load_task, paper_split
from experiments._report import Record, Table, distinct, summary, values
from similia.codes import SignRandomProjection
from similia.embeddings import Nystroem
from similia.learn import HDClassifier

COUNTS = (10, 30, 100, 300, 600)
STRATEGIES = ("uniform", "kmeans++", "leverage", "rpcholesky", "adaptive", "ensemble")

TASKS = FIGURE_TASKS
TITLE = "Number and choice of landmarks (supplement, Figure 1)"
TEXT = """
Test accuracy on the paper's split against the number of landmarks (never more than the training objects), for uniform
landmarks (the paper's) and for the strategies that it names as future work. Kernel settings are fixed, not tuned.
"""


def present(records: list[Record]) -> tuple[list[Table], Any]:
    """Return the table and the picture."""
    table = Table("Accuracy", ["set", "landmarks chosen", *map(str, COUNTS)])
    curves: dict[str, dict[str, list[float]]] = {}
    counts: dict[str, list[int]] = {}
    for name in distinct(records, "set"):
        counts[name] = [n for n in COUNTS if values(records, "seed", set=name, count=n)]
        curves[name] = {}
        for strategy in STRATEGIES:
            runs = [values(records, "accuracy", set=name, landmarks=strategy, count=n) for n in COUNTS]
            table.rows.append([name, strategy, *map(summary, runs)])
            curves[name][strategy] = [float(np.mean(accuracies)) for accuracies in runs if accuracies]
    return [table], panels(curves, counts, "landmarks", "accuracy (%)")


def measure(task: Task, seeds: int) -> list[Record]:
    """Fit and score with each number of landmarks, chosen in each way."""
    X, y = load_task(task)
    train, test = paper_split(len(y))
    rows = []
    for strategy in STRATEGIES:
        for count in COUNTS:
            if count > len(train):
                continue
            method = _method(task, strategy, count)
            for seed in range(seeds):
                scores = fit_and_score(method, {}, X, y, train, test, seed)
                rows.append(
                    {
                        "set": task.name,
                        "landmarks": strategy,
                        "count": count,
                        "seed": seed,
                        "accuracy": round(scores.accuracy[0], 3),
                        "fit_seconds": round(scores.seconds[0], 4),
                    }
                )
    return rows


def _method(task: Task, strategy: str, count: int) -> Method:
    def encoder(params: Params, seed: int) -> Any:
        *before, kernel = kernel_steps(task)
        embedding = Nystroem(kernel, n_components=count, landmarks=strategy, random_state=seed)
        return make_pipeline(*before, embedding, SignRandomProjection(N_BITS, random_state=seed + 1000))

    return Method(strategy, encoder, lambda params, seed: HDClassifier(random_state=seed))
