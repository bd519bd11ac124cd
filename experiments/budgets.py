"""Is a minute enough? `similia.AutoClassifier` with 60 seconds beside itself with 600, on the same splits."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np
from sklearn.model_selection import train_test_split

from experiments import selection
from experiments._report import Record, Table, distinct, mean_sd, standard_error
from experiments.selection import MOST, TEST_SHARE, Task, load
from similia.objects import take
from similia.selection import AutoClassifier

SHORT, LONG = 60.0, 600.0  # seconds
WITHIN = 1.0  # points of accuracy
TASKS = tuple(task for task in selection.TASKS if task.name != "basic_motions")  # where every choice has no error
TITLE = "The automatic choice with a minute beside itself with ten"
TEXT = f"""
`similia.AutoClassifier` is given 70 % of a set (stratified; of at most {MOST} objects), once with {SHORT:.0f} seconds
and once with {LONG:.0f}, and both choices are scored on the others. No set below is one that the ladder was tuned on
(see `selection`). *Difference*: accuracy with {SHORT:.0f} seconds less accuracy with {LONG:.0f}, in points, and its
standard error over the test objects and splits. *Seconds*: of the choice and the fit, without the nested estimate,
which only uses what is left of the time; below the budget where the ladder was at its end.
"""


def measure(task: Task, seeds: int, budget: float = LONG, known: Sequence[Record] = ()) -> Iterator[Record]:
    """Choose with `SHORT` and with `budget` seconds on the training part of each split, and score both choices."""
    yield from known
    for run in set(range(seeds)) - {int(record["run"]) for record in known}:
        X, y = load(task, run)
        train, test = train_test_split(np.arange(len(y)), test_size=TEST_SHARE, random_state=run, stratify=y)
        record: Record = {"set": task.name, "kind": task.kind, "run": run, "n": len(train)}
        right = []
        for name, seconds in (("short", SHORT), ("long", budget)):
            start = time.perf_counter()
            found = AutoClassifier(seconds, random_state=run, nested=False).fit(take(X, train), y[train])
            record |= {f"{name}_seconds": round(time.perf_counter() - start, 1), f"{name}_chosen": found.best_name_}
            right.append(100.0 * (np.asarray(found.predict(take(X, test))) == y[test]))
            record[name] = round(float(right[-1].mean()), 2)
        yield {**record, "error": round(standard_error(right[0] - right[1]), 3)}


def present(records: list[Record]) -> tuple[list[Table], None]:
    """Return both accuracies of each set and their difference, and on how many sets a minute was enough."""
    table = Table(
        "Accuracy on held-out objects, %",
        ["set", "objects to train", "splits", f"{SHORT:.0f} s", f"{LONG:.0f} s", "difference", "seconds of each"],
    )
    which = Table("What was chosen on the first split", ["set", f"{SHORT:.0f} s", f"{LONG:.0f} s"])
    gaps = []
    for name in distinct(records, "set"):
        rows = [record for record in records if record["set"] == name]
        short, long, error = (np.array([row[key] for row in rows]) for key in ("short", "long", "error"))
        gaps.append(float(np.mean(short - long)))
        seconds = ", ".join(f"{np.median([row[f'{key}_seconds'] for row in rows]):.0f}" for key in ("short", "long"))
        gap = mean_sd(gaps[-1], float(np.sqrt(np.sum(np.square(error)))) / len(rows))
        table.rows.append([name, rows[0]["n"], len(rows), float(short.mean()), float(long.mean()), gap, seconds])
        which.rows.append([name, rows[0]["short_chosen"], rows[0]["long_chosen"]])
    kept = Table("Promise", ["", "sets", "of"])
    kept.rows.append([f"at most {WITHIN:g} point below", sum(gap >= -WITHIN for gap in gaps), len(gaps)])
    return [table, kept, which], None
