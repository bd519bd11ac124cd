"""Fault tolerance: accuracy against the share of flipped bits, in codes and in binary prototypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.pipeline import make_pipeline

from experiments import _paper
from experiments._figures import panels
from experiments._nyshd import code_steps
from experiments._paper import Task
from experiments._protocol import load_task, paper_split
from experiments._report import Record, Table, distinct, values
from similia.codes import flip_bits, similarity
from similia.learn import HDClassifier
from similia.objects import take

PLACES = ("codes", "prototypes", "both")
SHARES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4)
TASKS = tuple(_paper.TASKS[name] for name in ("NCI1", "ENZYMES", "MUTAG", "Promoter", "SMS", "Splice"))

TITLE = "Fault tolerance"
TEXT = """
NysHD trained on clean codes of 10,000 bits; then each bit is flipped with the probability at the head of the column:
in the test codes (real-valued prototypes), in binary prototypes (the signs of the learnt ones, clean codes), or in
both. Accuracy on the paper's split, mean over seeds of landmarks, projection and flips. Kernel settings are fixed,
not tuned.
"""


def present(records: list[Record]) -> tuple[list[Table], Any]:
    """Return the table and the picture."""
    table = Table("Accuracy against the share of flipped bits", ["set", "flipped in", *(f"{p:.0%}" for p in SHARES)])
    curves: dict[str, dict[str, list[float]]] = {}
    for name in distinct(records, "set"):
        curves[name] = {where: [_mean(records, name, where, p) for p in SHARES] for where in PLACES}
        table.rows += [[name, where, *curve] for where, curve in curves[name].items()]
    return [table], panels(curves, [100 * p for p in SHARES], "bits flipped (%)", "accuracy (%)", columns=3)


def measure(task: Task, seeds: int) -> list[Record]:
    """Train on clean codes, flip bits, score."""
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


def _mean(records: list[Record], name: str, where: str, share: float) -> float:
    return float(np.mean(values(records, "accuracy", set=name, flipped_in=where, share=share)))
