"""Which way to learn prototypes? All updates of HDClassifier on the same codes, beside tuned machines."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import accuracy_score
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from experiments._nyshd import code_steps, kernel_steps
from experiments._paper import GRAPH_TASKS, STRING_TASKS, Task
from experiments._protocol import load_task, tuning_folds
from experiments._report import Record, Table, distinct, mean_sd, values
from similia.codes.bits import inner_products
from similia.core.progress import track
from similia.kernels import Normalized
from similia.learn import HDClassifier
from similia.objects import take

TASKS = GRAPH_TASKS + STRING_TASKS
N_BITS = 10_000
UPDATES = ("perceptron", "averaged", "margin", "ridge")
BITS = (8, 4, 1)
MAJORITY, MACHINE, KERNEL = "majority class", "linear SVM on the same bits, tuned", "SVM on the kernel, tuned"
_CS = np.logspace(-2, 2, 9)
TITLE = "NysHD: ways to learn prototypes from the same bits"
TEXT = f"""
Random stratified splits, 70 % to train; mean ± standard error over the splits. Kernel (not tuned) and landmarks are
those of the paper's tables, with {N_BITS:,} bits. All rows of `HDClassifier` and the linear SVM see the same codes;
margins and alphas are chosen inside, on training codes. The two support vector machines choose C among nine numbers by
cross-validation on at most 1000 training objects. *SVM on the kernel* compares all objects, without landmarks or bits,
by the normalised kernel. Seconds are those of the fit, without codes, in one process.

Findings. All updates but the perceptron keep what a tuned linear machine finds in the bits; what is then left to the
SVM on the kernel is lost before, in the landmarks (Protein, where 300 are too few). Prototypes of 8 and 4 bits cost
next to nothing; their signs cost more.
"""


def measure(task: Task, seeds: int) -> Iterator[Record]:
    """Score all ways to learn on each split."""
    X, y = load_task(task)
    splitter = StratifiedShuffleSplit(n_splits=seeds, test_size=0.3, random_state=0)
    for run, (train, test) in enumerate(track(splitter.split(np.zeros(len(y)), y), task.name, seeds)):
        where = {"set": task.name, "run": run, "n_train": len(train)}
        encoder = make_pipeline(*code_steps(task, None, run, N_BITS))
        codes = encoder.fit_transform(take(X, train)), encoder.transform(take(X, test))
        labels, counts = np.unique(y[train], return_counts=True)
        yield {**where, **_scored(MAJORITY, y[test], np.full(len(test), labels[np.argmax(counts)]))}
        for update in UPDATES:
            yield {**where, **_learnt(HDClassifier(update, random_state=run), update, codes, y, train, test)}
        for bits in BITS:
            model = HDClassifier("ridge", prototype_bits=bits, random_state=run)
            yield {**where, **_learnt(model, f"ridge, {bits}-bit prototypes", codes, y, train, test)}
        grams = [inner_products(part, codes[0]) / N_BITS for part in codes]
        yield {**where, **_machine(MACHINE, *grams, y, train, test)}
        yield {**where, **_machine(KERNEL, *_kernel_values(task, X, train, test), y, train, test)}


def _learnt(model: HDClassifier, name: str, codes: Sequence[Any], y: npt.NDArray, *parts: npt.NDArray) -> Record:
    train, test = parts
    start = time.perf_counter()
    model.fit(codes[0], y[train])
    return _scored(name, y[test], model.predict(codes[1]), time.perf_counter() - start)


def _machine(
    name: str, K: npt.NDArray, rest: npt.NDArray, y: npt.NDArray, train: npt.NDArray, test: npt.NDArray
) -> Record:
    """Score a support vector machine on a Gram matrix, with the C that is best on folds of the training part."""
    start, hits = time.perf_counter(), np.zeros(len(_CS))
    where = np.full(len(y), -1)
    where[train] = np.arange(len(train))
    for a, b in tuning_folds(y, train, len(_CS)):
        for i, C in enumerate(_CS):
            machine = SVC(C=C, kernel="precomputed").fit(K[np.ix_(where[a], where[a])], y[a])
            hits[i] += accuracy_score(y[b], machine.predict(K[np.ix_(where[b], where[a])]))
    machine = SVC(C=_CS[int(np.argmax(hits))], kernel="precomputed").fit(K, y[train])
    return _scored(name, y[test], machine.predict(rest), time.perf_counter() - start)


def _kernel_values(task: Task, X: Any, train: npt.NDArray, test: npt.NDArray) -> tuple[npt.NDArray, npt.NDArray]:
    """Return the normalised kernel between training objects, and between test and training objects."""
    *before, kernel = kernel_steps(task)
    known, new = take(X, train), take(X, test)
    for step in before:
        known, new = step.fit_transform(known), step.transform(new)
    kernel = Normalized(kernel)
    return kernel(known), kernel(new, known)


def _scored(name: str, y: npt.NDArray, predicted: npt.NDArray, seconds: float = 0.0) -> Record:
    return {"learner": name, "accuracy": 100 * float(np.mean(predicted == y)), "seconds": round(seconds, 4)}


def present(records: list[Record]) -> tuple[list[Table], None]:
    """Return accuracies (a row for each learner, a column for each set, then the mean) and seconds of each fit."""
    sets = distinct(records, "set")
    tables = [Table("Accuracy, %", ["learner", *sets, "mean"]), Table("Seconds", ["learner", *sets])]
    for name in distinct(records, "learner"):
        found = [values(records, "accuracy", set=one, learner=name) for one in sets]
        mean = np.mean([np.mean(scores) for scores in found])
        tables[0].rows.append([name, *map(_mean, found), f"{mean:.1f}"])
        if name in UPDATES:
            times = [np.median(values(records, "seconds", set=one, learner=name)) for one in sets]
            tables[1].rows.append([name, *(f"{value:.2f}" for value in times)])
    return tables, None


def _mean(scores: list[float]) -> str:
    error = float(np.std(scores, ddof=1)) / len(scores) ** 0.5 if len(scores) > 1 else 0.0
    return mean_sd(float(np.mean(scores)), error)
