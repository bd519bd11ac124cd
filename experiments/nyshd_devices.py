"""How small does a model get? The sizes that `compress` chooses, in whole numbers, beside 10,000 bits."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit

import similia as sm
from experiments._paper import GRAPH_TASKS, STRING_TASKS, Task
from experiments._protocol import load_task
from experiments._report import Record, Table, distinct, mean_with_error, values
from similia.core.config import track
from similia.kernels import GappyKmers, WeisfeilerLehman
from similia.objects import take

TASKS = STRING_TASKS + GRAPH_TASKS
N_BITS = 10_000
MAJORITY, LARGE, SMALL, WHOLE = "majority class", "10,000 bits", "compressed", "compressed, whole numbers"
TITLE = "NysHD on small devices: how small for the same accuracy"
TEXT = f"""
Random stratified splits, 70 % to train; mean ± standard error over the splits. Strings are compared by gappy 4-mers,
graphs by the Weisfeiler-Lehman kernel of three rounds on their labels (attributes are not used), since the propagation
kernel of the paper cannot be exported. *{LARGE}*: `recipes.nyshd` as it is, with the paper's number of landmarks.
*{SMALL}*: the size that `devices.compress` chooses on the training part (the smallest within a percentage point of the
best in cross-validation, from the same numbers of landmarks and bits), fitted to the training part. *{WHOLE}*: the same
after `quantise`; this is what exported C computes. Bytes are those of all tables; those of 10,000 bits count the model
in whole numbers, with its projection matrix.

Findings. On the six sets measured, the chosen sizes take 13 to 62 times fewer bytes for a point of accuracy in the
mean, and whole numbers change nearly nothing. On a few hundred objects cross-validation cannot tell sizes apart, so
a size may lose more on the test part, or gain. The large sets were not run.
"""


def measure(task: Task, seeds: int) -> Iterator[Record]:
    """Compress on each training part, and score before and after."""
    X, y = load_task(task)
    if task.kind == "strings":
        X = [x.encode() for x in X]  # one SMS has letters of more than a byte
    splitter = StratifiedShuffleSplit(n_splits=seeds, test_size=0.3, random_state=0)
    for run, (train, test) in enumerate(track(splitter.split(np.zeros(len(y)), y), task.name, seeds)):
        known, new, start = take(X, train), take(X, test), time.perf_counter()
        where = {"set": task.name, "run": run, "n_train": len(train)}
        labels, counts = np.unique(y[train], return_counts=True)
        hits = float(np.mean(y[test] == labels[np.argmax(counts)]))
        yield {**where, "model": MAJORITY, "accuracy": 100 * hits}
        kernel = GappyKmers(k=4, gaps=1) if task.kind == "strings" else WeisfeilerLehman(3)
        large = sm.recipes.nyshd(kernel, "auto", N_BITS, random_state=run)
        found = sm.devices.compress(large, known, y[train], random_state=run)
        small, whole = sm.quantise(found.model, X), sm.quantise(large.fit(known, y[train]), X)
        loss, before = small.loss(new, y[test]), whole.loss(new, y[test])
        yield {**where, "model": LARGE, "accuracy": 100 * float(before.before or 0), "bytes": whole.n_bytes}
        size = {"landmarks": found.chosen.n_landmarks, "bits": found.chosen.n_bits}
        size |= {"prototype_bits": found.chosen.prototype_bits, "bytes": small.n_bytes}
        yield {**where, "model": SMALL, "accuracy": 100 * float(loss.before or 0), **size}
        seconds = round(time.perf_counter() - start, 1)
        shares = {"equal_bits": 100 * loss.bits, "equal_labels": 100 * float(loss.labels or 0)}
        yield {**where, "model": WHOLE, "accuracy": 100 * float(loss.after or 0), **size, **shares, "seconds": seconds}


def present(records: list[Record]) -> tuple[list[Table], None]:
    """Return accuracies, a row for each set, and the chosen sizes."""
    models = [MAJORITY, LARGE, SMALL, WHOLE]
    tables = [
        Table("Accuracy, %", ["set", *models]),
        Table("Sizes (medians)", ["set", "landmarks", "bits", "bits of prototypes", "bytes", "bytes of 10,000 bits",
                                  "equal bits, %", "equal labels, %"]),
    ]  # fmt: skip
    for one in distinct(records, "set"):
        runs = [values(records, "accuracy", set=one, model=name) for name in models]
        tables[0].rows.append([one, *map(mean_with_error, runs)])
        sizes = [np.median(values(records, name, set=one, model=WHOLE)) for name in ("landmarks", "bits")]
        sizes += [np.median(values(records, name, set=one, model=WHOLE)) for name in ("prototype_bits", "bytes")]
        sizes.append(np.median(values(records, "bytes", set=one, model=LARGE)))
        shares = [np.mean(values(records, name, set=one, model=WHOLE)) for name in ("equal_bits", "equal_labels")]
        tables[1].rows.append([one, *(f"{size:,.0f}" for size in sizes), *(f"{share:.2f}" for share in shares)])
    means = [np.mean([np.mean(values(records, "accuracy", set=one, model=name)) for one in distinct(records, "set")])
             for name in models]  # fmt: skip
    tables[0].rows.append(["mean", *(f"{mean:.1f}" for mean in means)])
    return tables, None
