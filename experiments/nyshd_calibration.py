"""Are the probabilities of HDClassifier true? Its own calibration beside scikit-learn's, on the same codes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline

from experiments._nyshd import code_steps
from experiments._paper import TASKS as ALL_TASKS
from experiments._paper import Task
from experiments._protocol import load_task
from experiments._report import Record, Table, distinct, mean_sd, values
from experiments.nyshd_learners import N_BITS, standard_error
from similia.core.config import track
from similia.learn import HDClassifier
from similia.objects import take

TASKS = tuple(ALL_TASKS[name] for name in ("NCI1", "SMS", "Splice", "Promoter"))
LEARNERS: dict[str, dict[str, Any]] = {
    "perceptron": {"update": "perceptron"},
    "averaged": {"update": "averaged"},
    "margin": {"update": "margin"},
    "ridge": {"update": "ridge"},
    "ridge, 1-bit prototypes": {"update": "ridge", "prototype_bits": 1},
}
OURS, SIGMOID, TEMPERATURE, NONE = "ours", "sigmoid", "temperature", "softmax of the scores"
BINS = 15
TITLE = "NysHD: probabilities"
TEXT = f"""
Random stratified splits, 70 % to train; mean ± standard error over the splits. The codes are those of `nyshd-learners`,
{N_BITS:,} bits. *ours* is `predict_proba` of `HDClassifier(probability=True)`. *sigmoid* and *temperature* are
scikit-learn's `CalibratedClassifierCV(HDClassifier(...), ensemble=False)` with these methods: five folds, then a fit to
all. The *softmax of the scores* is not calibrated. All calibrations see training codes only. Log loss is in nats; the
expected calibration error (ECE) is the mean distance between the largest probability and the share of right predictions
in {BINS} bins of equal width. Times are in units of a fit without `probability=True`; "margin" and "ridge" do the same
work with and without it.

Findings. One factor on the scores is enough: the log losses of *ours* are within 0.015 of those of *temperature*, which
takes twice to ten times as long, except where *temperature* loses more. *sigmoid* fits two numbers for each class, so
it can move the border between classes. This helps where classes are unbalanced (SMS), most with 1-bit prototypes. With
three classes (Splice), it harms all updates but ridge; with margin, it predicts the largest class for all objects.
"""


def measure(task: Task, seeds: int) -> Iterator[Record]:
    """Score the probabilities of all learners on each split."""
    X, y = load_task(task)
    splitter = StratifiedShuffleSplit(n_splits=seeds, test_size=0.3, random_state=0)
    for run, (train, test) in enumerate(track(splitter.split(np.zeros(len(y)), y), task.name, seeds)):
        encoder = make_pipeline(*code_steps(task, None, run, N_BITS))
        codes, new = encoder.fit_transform(take(X, train)), encoder.transform(take(X, test))
        for name, parameters in LEARNERS.items():
            plain = HDClassifier(**parameters, random_state=run).fit(codes, y[train])  # so that no fit begins cold
            machines = {
                NONE: plain,
                OURS: HDClassifier(**parameters, probability=True, random_state=run),
                **{how: CalibratedClassifierCV(plain, method=how, ensemble=False) for how in (SIGMOID, TEMPERATURE)},
            }
            for how, machine in machines.items():
                start = time.perf_counter()
                machine.fit(codes, y[train])
                seconds = time.perf_counter() - start
                p = _uncalibrated(machine, new) if how == NONE else machine.predict_proba(new)
                yield {
                    **{"set": task.name, "run": run, "learner": name, "calibration": how},
                    **{"log_loss": log_loss(y[test], p, labels=machine.classes_)},
                    **{"ece": calibration_error(p, np.searchsorted(machine.classes_, y[test]))},
                    **{"accuracy": 100 * float(np.mean(machine.classes_[p.argmax(axis=1)] == y[test]))},
                    **{"seconds": round(seconds, 4)},
                }


def _uncalibrated(machine: HDClassifier, codes: npt.NDArray) -> npt.NDArray:
    scores = machine.decision_function(codes)
    return softmax(scores if scores.ndim == 2 else np.column_stack([np.zeros(len(scores)), scores]), axis=1)


def calibration_error(p: npt.NDArray, y: npt.NDArray) -> float:
    """Return the expected calibration error of probabilities (n, n_classes) of the classes `y`, 0 to n_classes - 1."""
    largest, right = p.max(axis=1), p.argmax(axis=1) == y
    bins = np.minimum((largest * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, weights=largest - right, minlength=BINS)
    return float(np.abs(gaps).sum() / len(y))


def present(records: list[Record]) -> tuple[list[Table], None]:
    """Return log losses, calibration errors, accuracies and times: rows are learners, columns sets."""
    sets = distinct(records, "set")
    tables = []
    for title, column, form in (
        ("Log loss", "log_loss", ".3f"),
        ("ECE", "ece", ".3f"),
        ("Accuracy, %", "accuracy", ""),
    ):
        table = Table(title, ["learner", "calibration", *sets])
        for name in distinct(records, "learner"):
            for how in (OURS, SIGMOID, TEMPERATURE, NONE):
                found = [values(records, column, set=one, learner=name, calibration=how) for one in sets]
                table.rows.append([name, how, *(_cell(scores, form) for scores in found)])
        tables.append(table)
    times = Table("Time of the fit over that without probabilities", ["learner", "calibration", *sets])
    for name in distinct(records, "learner"):
        for how in (OURS, SIGMOID):
            ratios = [_seconds(records, one, name, how) / _seconds(records, one, name, NONE) for one in sets]
            times.rows.append([name, how, *(f"{ratio:.1f}" for ratio in ratios)])
    return [*tables, times], None


def _cell(scores: list[float], form: str) -> str:
    mean, error = float(np.mean(scores)), standard_error(scores)
    return f"{mean:{form}} ± {error:{form}}" if form else mean_sd(mean, error)


def _seconds(records: list[Record], one: str, name: str, how: str) -> float:
    return float(np.sum(values(records, "seconds", set=one, learner=name, calibration=how)))
