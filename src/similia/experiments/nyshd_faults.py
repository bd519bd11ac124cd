"""Fault tolerance: accuracy against the share of flipped bits, in codes and in binary prototypes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.pipeline import make_pipeline

from similia._progress import track
from similia.codes import flip_bits, similarity
from similia.experiments._nyshd import code_steps
from similia.experiments._paper import TASKS, Task, choose
from similia.experiments._protocol import load_task, paper_split
from similia.experiments._report import Section, Table
from similia.learn import HDClassifier
from similia.objects import take

SHARES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4)
FAULT_TASKS = tuple(TASKS[name] for name in ("NCI1", "ENZYMES", "MUTAG", "Promoter", "SMS", "Splice"))

_TEXT = """
NysHD trained on clean codes of 10,000 bits; then each bit is flipped with the probability at the head of the column:
in the test codes (real-valued prototypes), in binary prototypes (the signs of the learnt ones, clean codes), or in
both. Accuracy on the paper's split, mean over seeds of landmarks, projection and flips. Kernel settings are fixed,
not tuned.
"""


def run(only: Sequence[str] | None = None, seeds: int = 10) -> Section:
    """Run the experiment."""
    tasks = choose(FAULT_TASKS, only)
    records: list[dict[str, Any]] = []
    for task in track(tasks, "nyshd-faults", len(tasks)):
        records += _accuracies(task, seeds)
    table = Table("Accuracy against the share of flipped bits", ["set", "flipped in", *(f"{p:.0%}" for p in SHARES)])
    for task in tasks:
        for where in ("codes", "prototypes", "both"):
            table.rows.append([task.name, where, *(_mean(records, task.name, where, p) for p in SHARES)])
    return Section(
        "nyshd-faults",
        "Fault tolerance",
        _TEXT,
        f"similia reproduce nyshd-faults --seeds {seeds}",
        [table],
        records,
        _figure([task.name for task in tasks], records),
    )


def _accuracies(task: Task, seeds: int) -> list[dict[str, Any]]:
    X, y = load_task(task)
    train, test = paper_split(len(y))
    rows = []
    for seed in range(seeds):
        encoder = make_pipeline(*code_steps(task, None, seed))
        classifier = HDClassifier(random_state=seed).fit(encoder.fit_transform(take(X, train)), y[train])
        codes = encoder.transform(take(X, test))
        prototypes = np.packbits(classifier.prototypes_ >= 0, axis=1)
        for share in SHARES:
            flipped = flip_bits(codes, share, random_state=seed)
            flipped_prototypes = flip_bits(prototypes, share, random_state=seed + 500)
            predictions = {
                "codes": classifier.predict(flipped),
                "prototypes": _nearest(codes, flipped_prototypes, classifier.classes_),
                "both": _nearest(flipped, flipped_prototypes, classifier.classes_),
            }
            for where, predicted in predictions.items():
                accuracy = 100 * float(np.mean(predicted == y[test]))
                rows.append({"set": task.name, "flipped_in": where, "share": share, "seed": seed, "accuracy": accuracy})
    return rows


def _nearest(codes: npt.NDArray, prototypes: npt.NDArray, classes: npt.NDArray) -> npt.NDArray:
    return classes[np.argmax(similarity(codes, prototypes), axis=1)]


def _mean(records: list[dict[str, Any]], name: str, where: str, share: float) -> float:
    wanted = (name, where, share)
    return float(np.mean([r["accuracy"] for r in records if (r["set"], r["flipped_in"], r["share"]) == wanted]))


def _figure(names: list[str], records: list[dict[str, Any]]) -> Any:
    from similia.experiments._figures import panels

    curves = {
        name: {where: [_mean(records, name, where, p) for p in SHARES] for where in ("codes", "prototypes", "both")}
        for name in names
    }
    return panels(curves, [100 * p for p in SHARES], "bits flipped (%)", "accuracy (%)", columns=3)
