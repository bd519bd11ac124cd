"""Does `similia.select` choose as well as a person who sees the test part? Beside nearest neighbours."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import train_test_split

from similia.datasets import fetch
from similia.experiments._report import Record, Table, distinct, summary, values
from similia.objects import take
from similia.selection import select
from similia.selection._kinds import recognised

DEVELOPMENT = (
    "promoters",
    "splice",
    "MUTAG",
    "gunpoint",
    "flowers_sift",
    "mnist_test",
)  # what the ladder was tuned on; no task below
BUDGET = 600.0  # seconds
TEST_SHARE, MOST, WITHIN = 0.3, 6000, 1.0  # MOST: objects of a set; WITHIN: points of accuracy


@dataclass(frozen=True)
class Task:
    """A data set, by its name for `similia.datasets.fetch`."""

    name: str
    kind: str


_NAMES = {
    "strings": ("sms_spam", "multiloc_proteins"),
    "graphs": ("BZR", "COX2", "ENZYMES", "DD", "NCI1", "NCI109", "Mutagenicity", "REDDIT-BINARY"),
    "series": ("coffee", "basic_motions", "italy_power_demand", "japanese_vowels", "libras", "character_trajectories"),
    "sets": ("style_sift",),
}
TASKS = tuple(Task(name, kind) for kind, names in _NAMES.items() for name in names)
TITLE = "The automatic choice beside the best recipe chosen afterwards"
TEXT = f"""
`similia.select` with {BUDGET:.0f} seconds is given 70 % of a set (stratified; of at most {MOST} objects), and what it
chose is scored on the others. *Best recipe*: each embedding of the same ladder, its learner chosen by the same
cross-validation, is fitted to the same part and scored on the test part, and the best of these scores is taken: what a
person would have had who tried all and looked at the test part. It is the highest of many noisy numbers, so that the
difference is below zero even for a perfect choice (recipes that the choice had no time for count with each learner);
beside it stands the standard error of the difference on the test
objects. *Nearest neighbours*: those that cross-validation found best. *Nested*: the estimate that `select` gives
without the test part, with its interval. Accuracies in percent. The ladder was tuned on {", ".join(DEVELOPMENT)} only.
"""


def load(task: Task, seed: int) -> tuple[Any, npt.NDArray]:
    """Return at most `MOST` objects of a task, drawn by `seed`, and their labels."""
    bunch = fetch(task.name)
    X = bunch.data.reshape(len(bunch.data), -1) if isinstance(bunch.data, np.ndarray) else bunch.data
    _, X = recognised(X)
    some = np.random.default_rng(seed).permutation(len(X))[:MOST]
    return take(X, some), np.asarray(bunch.target)[some]


def measure(task: Task, seeds: int, budget: float = BUDGET) -> list[Record]:
    """Choose on the training part of each split, and score the choice, all recipes and nearest neighbours."""
    records = []
    for seed in range(seeds):
        X, y = load(task, seed)
        train, test = train_test_split(np.arange(len(y)), test_size=TEST_SHARE, random_state=seed, stratify=y)
        record = compare(take(X, train), y[train], take(X, test), y[test], budget, seed)
        records.append({"set": task.name, "run": seed, "n": len(train), **record})
    return records


def compare(X: Any, y: npt.NDArray, Z: Any, z: npt.NDArray, budget: float, seed: int) -> Record:
    """Return the accuracies (percent) on objects `Z` with labels `z` of what is chosen and fitted on `X`, `y`."""
    start = time.perf_counter()
    found = select(X, y, budget=budget, random_state=seed)
    seconds = time.perf_counter() - start
    hits = {found.name_: found.predict(Z) == z}
    for row in recipes(found.table_):
        if row["name"] not in hits:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                hits[row["name"]] = row["pipeline"].fit(X, y).predict(Z) == z
    best = max(hits, key=lambda name: hits[name].mean())
    nearest = next((row["name"] for row in recipes(found.table_) if row["name"].endswith("nearest")), found.name_)
    gap = hits[found.name_].astype(float) - hits[best]
    low, high = found.score_interval_
    return {
        "select": _percent(hits[found.name_].mean()),
        "chosen": found.name_,
        "best recipe": _percent(hits[best].mean()),
        "which": best,
        "neighbours": _percent(hits[nearest].mean()),
        "error": _percent(gap.std() / np.sqrt(len(gap))),
        "nested": _percent(found.score_),
        "low": _percent(low),
        "high": _percent(high),
        "seconds": round(seconds, 1),
    }


def recipes(table: list[Record]) -> list[Record]:
    """Return the best candidate of each embedding with a kind of learner, and all that there was no time to try."""
    found: dict[str, Record] = {}
    for row in table:  # best first
        embedding, _, learner = row["name"].rpartition(" · ")
        family = f"{embedding} · {learner.split('(')[0] if '(' in learner else learner.split(' ')[-1]}"
        if row["n_objects"]:
            found.setdefault(family, row)
        elif not row["state"].startswith(("failed", "too large")):
            found[row["name"]] = row
    return [*found.values()]


def _percent(share: float) -> float:
    return round(100 * float(share), 2)


def present(records: list[Record]) -> tuple[list[Table], None]:
    """Return the comparison, and on how many sets the promise holds."""
    table = Table(
        "Accuracy on held-out objects",
        ["set", "select", "best recipe", "difference", "s.e.", "neighbours", "nested", "seconds"],
    )
    chosen = Table("What was chosen on the first split, and what was best", ["set", "chosen", "best recipe afterwards"])
    gaps, gains = [], []
    for name in distinct(records, "set"):
        column = {key: values(records, key, set=name) for key in records[0]}
        gap = float(np.mean(column["select"]) - np.mean(column["best recipe"]))
        gaps.append(gap)
        gains.append(float(np.mean(column["select"]) - np.mean(column["neighbours"])))
        error = float(np.sqrt(np.mean(np.square(column["error"])) / len(column["error"])))
        cells = [summary(column[key]) for key in ("select", "best recipe")]
        rest = [summary(column[key]) for key in ("neighbours", "nested")]
        table.rows.append([name, *cells, f"{gap:+.1f}", error, *rest, float(np.median(column["seconds"]))])
        chosen.rows.append([name, column["chosen"][0], column["which"][0]])
    kept = Table("Promises", ["", "sets", "of"])
    kept.rows.append([f"within {WITHIN:g} point of the best recipe", sum(gap >= -WITHIN for gap in gaps), len(gaps)])
    kept.rows.append(["not below nearest neighbours", sum(gain >= 0 for gain in gains), len(gains)])
    return [table, kept, chosen], None
