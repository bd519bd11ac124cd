"""NysHD, supplement Figure 1, and NysX: accuracy against the number of landmarks, for several ways to choose them.

Protocol, fixed before the run. Each of three stratified 80/20 splits has a seed of its own for landmarks and bits;
nothing is tuned. Two determinantal point processes (`experiments._dpp`) compete with the strategies of the library: one
draws from a pool of `POOL_FACTOR` times as many objects as landmarks, the other from `LARGE_POOL` objects. One of them
joins the library only if it is more accurate than uniform landmarks and than ``rpcholesky``, in the mean over sets and
numbers of landmarks, by more than two standard errors of the difference over sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments._dpp import pooled_k_dpp
from experiments._figures import panels
from experiments._nyshd import kernel_steps
from experiments._paper import FIGURE_TASKS, Task
from experiments._paper import TASKS as ALL_TASKS
from experiments._protocol import load_task, stratified_splits
from experiments._report import Record, Table, distinct, mean_sd, mean_with_error, standard_error, values
from similia.codes import SignRandomProjection
from similia.core.config import track
from similia.embeddings import Nystroem
from similia.embeddings.landmarks import STRATEGIES, PrecomputedGram
from similia.learn import HDClassifier
from similia.objects import take

COUNTS = (8, 16, 32, 64, 128, 256, 512)
N_BITS = 10_000
POOL_FACTOR, LARGE_POOL = 4, 1_000
SMALL_POOL_DPP, LARGE_POOL_DPP = f"k-DPP, pool {POOL_FACTOR} s", f"k-DPP, pool {LARGE_POOL:,}"


def _from_small_pool(K: npt.NDArray, kernel: Any, s: int, rng: np.random.Generator) -> npt.NDArray:
    return pooled_k_dpp(PrecomputedGram(K), s, rng, POOL_FACTOR * s)


def _from_large_pool(K: npt.NDArray, kernel: Any, s: int, rng: np.random.Generator) -> npt.NDArray:
    return pooled_k_dpp(PrecomputedGram(K), s, rng, LARGE_POOL)


CHOICES: dict[str, str | Callable[..., npt.NDArray]] = {
    **{name: name for name in STRATEGIES},
    SMALL_POOL_DPP: _from_small_pool,
    LARGE_POOL_DPP: _from_large_pool,
}
TASKS = (*FIGURE_TASKS, *(ALL_TASKS[name] for name in ("MUTAG", "BZR", "COX2", "D&D", "Splice")))
TITLE = "Number and choice of landmarks (supplement, Figure 1; NysX)"
TEXT = f"""
Test accuracy of NysHD, {N_BITS:,} bits and `update="ridge"`, against the number s of landmarks (never more than the
training objects). Stratified 80/20 splits, each with its own seed; mean ± standard error over splits. The kernels are
the paper's, not tuned. Landmarks: uniform (NysHD), the other strategies of `Nystroem`, and those of NysX
(arXiv:2512.08089), a determinantal point process of s objects (k-DPP) on a uniform pool of {POOL_FACTOR} s objects, or
of {LARGE_POOL:,}. The k-DPP is drawn exactly; these sizes of the pool are ours, and so are the sets, so that numbers
printed for NysX do not compare.

Differences of accuracy are in percentage points, mean ± standard error over the sets that have so many objects; in the
last column, the mean over all numbers of landmarks of each set. *Unexplained* is the share of the similarity of test
objects with themselves that the landmarks miss: 1 - sum |z(x)|² / sum k(x, x), with z the Nyström vector; mean over the
same sets.

Findings. The rule, fixed before the run, was that a k-DPP joins the library only if, in the last column, it is above
uniform landmarks and above `rpcholesky` by more than two standard errors. Neither k-DPP is, so both stay in
this experiment. Nor is any other choice above uniform landmarks by so much; `ensemble` is worst. Protein was not run.
"""


def measure(task: Task, seeds: int) -> Iterator[Record]:
    """Fit and score with each number of landmarks, chosen in each way; each kernel value is computed once a split."""
    X, y = load_task(task)
    for split, (train, test) in enumerate(track(stratified_splits(y, seeds), task.name, seeds)):
        K = _kernel_matrix(task, X, train)
        known, new, itself = K[np.ix_(train, train)], K[np.ix_(test, train)], K.diagonal()[test]
        for strategy, landmarks in CHOICES.items():
            for count in COUNTS:
                if count > len(train):
                    continue
                embedding = Nystroem("precomputed", n_components=count, landmarks=landmarks, random_state=split)
                vectors, others = embedding.fit_transform(known), embedding.transform(new)
                bits = SignRandomProjection(N_BITS, random_state=split + 1000).fit(vectors)
                model = HDClassifier("ridge", random_state=split).fit(bits.transform(vectors), y[train])
                accuracy = 100 * float(np.mean(model.predict(bits.transform(others)) == y[test]))
                unexplained = float(1 - np.square(others).sum() / itself.sum())
                yield {"set": task.name, "landmarks": strategy, "count": count, "seed": split,
                       "accuracy": round(accuracy, 3), "unexplained": round(unexplained, 6)}  # fmt: skip


def _kernel_matrix(task: Task, X: Any, train: npt.NDArray) -> npt.NDArray:
    """Return the paper's kernel between all objects; a scaler before it sees the training part only."""
    *before, kernel = kernel_steps(task)
    for step in before:
        X = step.fit(take(X, train)).transform(X)
    return kernel(X)


def present(records: list[Record]) -> tuple[list[Table], Any]:
    """Return the tables and the picture."""
    names, sets = distinct(records, "landmarks"), distinct(records, "set")
    header = [*map(str, COUNTS), "all"]
    gains = Table("Accuracy minus that of others", ["landmarks chosen", "minus", *header])
    pairs = [(name, "uniform") for name in names if name != "uniform"]
    pairs += [(name, "rpcholesky") for name in names if name in (SMALL_POOL_DPP, LARGE_POOL_DPP)]
    for name, other in pairs:
        found = _means(records, "accuracy", name, sets) - _means(records, "accuracy", other, sets)
        gains.rows.append([name, other, *map(_over_sets, [*found.T, np.nanmean(found, axis=1)])])
    missed = Table("Unexplained, %", ["landmarks chosen", *header])
    for name in names:
        found = 100 * _means(records, "unexplained", name, sets)
        shares = [cell[np.isfinite(cell)] for cell in (*found.T, np.nanmean(found, axis=1))]
        missed.rows.append([name, *(f"{share.mean():.2f}" if len(share) else "" for share in shares)])
    table = Table("Accuracy", ["set", "landmarks chosen", *map(str, COUNTS)])
    curves: dict[str, dict[str, list[float]]] = {}
    for one in sets:
        curves[one] = {}
        for name in names:
            runs = [values(records, "accuracy", set=one, landmarks=name, count=n) for n in COUNTS]
            table.rows.append([one, name, *(mean_with_error(run) if run else "" for run in runs)])
            curves[one][name] = [float(np.mean(run)) for run in runs if run]
    x = {one: np.log2([n for n in COUNTS if values(records, "seed", set=one, count=n)]).tolist() for one in sets}
    return [gains, missed, table], panels(curves, x, "log₂ of landmarks", "accuracy (%)", columns=3)


def _means(records: list[Record], column: str, name: str, sets: list[str]) -> npt.NDArray:
    """Return the mean of `column` over splits, a row for each set and a column for each of `COUNTS`; nan for none."""
    runs = [[values(records, column, set=one, landmarks=name, count=n) for n in COUNTS] for one in sets]
    return np.array([[np.mean(run) if run else np.nan for run in row] for row in runs])


def _over_sets(cell: npt.NDArray) -> str:
    found = cell[np.isfinite(cell)]
    return mean_sd(float(found.mean()), standard_error(found)) if len(found) else ""
