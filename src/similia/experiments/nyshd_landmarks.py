"""NysHD, supplement Figure 1: accuracy against the number of landmarks, for several ways to choose them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline

from similia._progress import track
from similia.codes import SignRandomProjection
from similia.embeddings import Nystroem
from similia.experiments._nyshd import N_BITS, kernel_steps
from similia.experiments._paper import FIGURE_TASKS, Task, choose
from similia.experiments._protocol import Method, Params, fit_and_score, load_task, paper_split
from similia.experiments._report import Section, Table, mean_sd
from similia.learn import HDClassifier

COUNTS = (10, 30, 100, 300, 600)
STRATEGIES = ("uniform", "kmeans++", "leverage", "rpcholesky", "adaptive", "ensemble")

_TEXT = """
Test accuracy on the paper's split against the number of landmarks (never more than the training objects), for uniform
landmarks (the paper's) and for the strategies that it names as future work. Kernel settings are fixed, not tuned.
"""


def run(only: Sequence[str] | None = None, seeds: int = 10) -> Section:
    """Run the figure."""
    tasks = choose(FIGURE_TASKS, only)
    records: list[dict[str, Any]] = []
    for task in track(tasks, "nyshd-landmarks", len(tasks)):
        records += _accuracies(task, seeds)
    table = Table("Accuracy", ["set", "landmarks chosen", *map(str, COUNTS)])
    for task in tasks:
        for strategy in STRATEGIES:
            table.rows.append([task.name, strategy, *(_cell(records, task.name, strategy, n) for n in COUNTS)])
    return Section(
        "nyshd-landmarks",
        "Number and choice of landmarks (supplement, Figure 1)",
        _TEXT,
        f"similia reproduce nyshd-landmarks --seeds {seeds}",
        [table],
        records,
        _figure([task.name for task in tasks], records),
    )


def _accuracies(task: Task, seeds: int) -> list[dict[str, Any]]:
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


def _values(records: list[dict[str, Any]], name: str, strategy: str, count: int) -> list[float]:
    wanted = (name, strategy, count)
    return [r["accuracy"] for r in records if (r["set"], r["landmarks"], r["count"]) == wanted]


def _cell(records: list[dict[str, Any]], name: str, strategy: str, count: int) -> str:
    values = _values(records, name, strategy, count)
    return mean_sd(float(np.mean(values)), float(np.std(values, ddof=len(values) > 1))) if values else ""


def _figure(names: list[str], records: list[dict[str, Any]]) -> Any:
    from similia.experiments._figures import panels

    counts = {name: [n for n in COUNTS if _values(records, name, STRATEGIES[0], n)] for name in names}
    curves = {
        name: {s: [float(np.mean(_values(records, name, s, n))) for n in counts[name]] for s in STRATEGIES}
        for name in names
    }
    return panels(curves, counts, "landmarks", "accuracy (%)")
