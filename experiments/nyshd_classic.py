"""NysHD on the sets that papers on hypervectors print: MNIST, hand gestures (EMG) and spoken letters (ISOLET)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from experiments._report import Record, Table, distinct, mean_sd, values
from experiments.nyshd_learners import MACHINE, MAJORITY, UPDATES, learnt, scored, tuned_machine
from similia.codes import SignRandomProjection
from similia.codes.bits import inner_products
from similia.datasets import fetch
from similia.embeddings import Nystroem
from similia.kernels import RBF
from similia.learn import HDClassifier

Forms = dict[str, npt.NDArray[np.float64]]
Split = tuple[npt.NDArray, npt.NDArray]


@dataclass(frozen=True)
class Task:
    """A set with its stored split.

    Attributes
    ----------
    name : str
    sources : tuple of str
        Names for `similia.datasets.fetch`: of both parts in one, or of the training and the test part.
    epochs : int, optional
        Epochs of torchhd, if not its default.
    most_seeds : int, optional
        Number of seeds at most.
    """

    name: str
    sources: tuple[str, ...]
    epochs: int | None = None
    most_seeds: int | None = None


TASKS = (
    Task("MNIST", ("mnist_train", "mnist_test"), epochs=10, most_seeds=1),
    *(Task(f"EMG {i}", (f"emg_patient{i}",)) for i in (1, 2, 3)),
    Task("ISOLET", ("isolet",)),
)
N_BITS, MOST_LANDMARKS, ALL_UP_TO, TUNE_ON, FEW = 10_000, 1_000, 2_000, 5_000, 1_000
SCALES = tuple(2.0**i for i in range(-2, 5))
COSTS = (1.0, 10.0, 100.0)
RBF_SVM = "RBF SVM, tuned"
TORCHHD = (
    *("Vanilla", "AdaptHD", "CompHD", "SparseHD", "QuantHD", "LeHDC"),
    *("OnlineHD", "NeuralHD", "DistHD", "IntRVFL"),
)
PRINTED = {  # percent
    "in print: LeHDC": {"MNIST": 94.7},
    "in print: HDCC, 10,240 dimensions": {"MNIST": 82.6, "EMG 1": 99.0, "EMG 2": 99.0, "EMG 3": 99.5, "ISOLET": 84.8},
    "in print: torchhd, 10,240 dimensions": {
        **{"MNIST": 80.6, "EMG 1": 99.1, "EMG 2": 96.6, "EMG 3": 99.7, "ISOLET": 84.9}
    },
}
TITLE = "NysHD on MNIST, gestures and spoken letters, beside torchhd and tuned machines"
TEXT = f"""
The stored split of each set; mean ± standard deviation over the seeds of landmarks, bits and orders. MNIST has one
seed, 60,000 training and 10,000 test images, EMG 338 to 368 and 145 to 158 windows of each of three
persons. ISOLET is partial: 1560 of its 6238 training letters, and all 1559 test letters.

*Protocol.* NysHD is a Gaussian kernel, {MOST_LANDMARKS} landmarks (all training objects, if there are at most
{ALL_UP_TO}), {N_BITS:,} signs of random projections, and `HDClassifier` with each of its updates. Pictures are vectors
of pixels, letters the given features. A window of EMG (256 samples of 4 muscles) has two forms: all its samples, or the
mean absolute value of each muscle. The form and the width of the kernel, {len(SCALES)} multiples of the median
heuristic, are chosen by cross-validation of ridge on the training part: five folds of at most {FEW} objects, otherwise
three folds of at most {TUNE_ON} of them. The RBF SVM chooses form, width and C ({", ".join(f"{C:g}" for C in COSTS)})
on the same folds, and is then fitted to all training objects. The linear SVM on the bits chooses C among nine; MNIST
has none, since its Gram matrix would take 29 GB.

torchhd runs in the interpreter that `SIMILIA_TORCHHD_PYTHON` names, otherwise its rows are left out: {N_BITS:,}
dimensions (8192 for CompHD, which takes powers of 2 only) and batches of 12, as in torchhd's example. Each classifier
chooses form and scaling of the features ([0, 1], standardised, or unit length) on a quarter of at most 4000 training
objects. All else is torchhd's default, of 120 epochs; on MNIST there are 10, as in its example. Only the first seed is
run. Seconds are those of one thread, on a machine that other programs shared.

*In print*: LeHDC (DAC 2022, arXiv 2203.09680), and means over the runs in the repository pereverges/hdcc (commit
30218352dea3, folder `results`), on the stored split but for torchhd on EMG, whose splits are random, 70 % to train. The
rows for ISOLET are of all 6238 training letters, so they had four times as many as those run here.

*Caution with EMG.* Windows of one recording lie on both sides of the split, about 40 % of the windows are all zero
(rest), and the source pairs each label with the window that follows its own, which matters where a gesture ends. So
accuracies near 99 % are usual, and one window of the test part is 0.7 points.

Goals set before the run, for MNIST: at least 97 %, above each classifier of torchhd, and within 1 point of the RBF SVM.

Findings. On MNIST, `update="auto"`, which takes margin there, has 97.6 % and meets the goals, the last one barely: it
is 0.95 points below the RBF SVM, ± 0.4. Averaged has 97.7. Ridge has 96.8 and misses the first and the last goal; with
more samples than bits it is the least accurate update and the slowest. Neither bits nor landmarks alone explain the gap
to the SVM: on 50,000 training images, scored on the other 10,000, averaged has 97.2 % with 1000 landmarks and 10,000
bits, 97.3 with 20,000 bits, and 97.3 with 2000 landmarks. The share of the learner was not measured.

Of torchhd, OnlineHD is closest on MNIST. With more epochs it would be closer: on 3000 training images, scored on 1000
others, it has 89.2 % after 10 epochs and 91.2 after 120; margin has 94.6. Nor is the width of its sinusoids tuned, as
that of NysHD's kernel is. On EMG the best learners make one mistake or none, so their differences mean nothing; LeHDC
makes none for person 1, and NysHD one. On ISOLET ridge is above all of torchhd and as good as the RBF SVM; a linear SVM
on the same bits is 0.8 points better.
"""


def load(task: Task) -> tuple[Forms, npt.NDArray, Split]:
    """Return all forms of the objects, their labels 0 to c - 1, and the positions of both parts."""
    parts = [fetch(source) for source in task.sources]
    if len(parts) == 2:
        split = np.repeat([0, 1], [len(part.target) for part in parts])
    else:
        split = np.asarray(parts[0].split)
    y = np.unique(np.concatenate([part.target for part in parts]), return_inverse=True)[1]
    if task.name.startswith("EMG"):
        windows = parts[0].data.values.astype(np.float64).reshape(len(y), -1, 4)
        forms = {"samples": windows.reshape(len(y), -1), "means": np.abs(windows).mean(axis=1)}
    else:
        rows = np.concatenate([part.data for part in parts]).astype(np.float64)
        forms = {"features": rows.reshape(len(y), -1) / (255 if task.name == "MNIST" else 1)}
    return forms, y, (np.flatnonzero(split == 0), np.flatnonzero(split == 1))


def measure(task: Task, seeds: int, known: Sequence[Record] = ()) -> Iterator[Record]:
    """Yield the rows that are `known`, then those of all other learners and seeds."""
    yield from known
    done = {(record["learner"], record["run"]) for record in known}
    forms, y, (train, test) = load(task)
    where = {"set": task.name, "n_train": len(train), "n_test": len(test)}
    blank = {"run": 0, "code_seconds": 0.0, "chosen": ""}
    if (MAJORITY, 0) not in done:
        yield {**where, **blank, **scored(MAJORITY, y[test], np.full(len(test), np.bincount(y[train]).argmax()))}
    for record in _on_bits(forms, y, train, test, range(seeds)[: task.most_seeds], done):
        yield {**where, **record}
    if (RBF_SVM, 0) not in done:
        yield {**where, **blank, **_rbf_machine(forms, y, train, test)}
    names = [name for name in TORCHHD if (_of_torchhd(name), 0) not in done]
    for record in _torchhd(forms, y, train, test, names, task.epochs):
        yield {**where, "code_seconds": 0.0, **record}


def folds(y: npt.NDArray, train: npt.NDArray) -> list[Split]:
    """Return the folds of a training part on which settings are compared: five if it is small, otherwise three."""
    if len(train) > TUNE_ON:
        train = train_test_split(train, train_size=TUNE_ON, stratify=y[train], random_state=0)[0]
    splitter = StratifiedKFold(5 if len(train) <= FEW else 3, shuffle=True, random_state=0)
    return [(train[a], train[b]) for a, b in splitter.split(train, y[train])]


def encoder(gamma: float, n: int, seed: int) -> Any:
    """Return the steps from `n` training vectors to bits."""
    landmarks = n if n <= ALL_UP_TO else MOST_LANDMARKS
    bits = SignRandomProjection(N_BITS, random_state=seed + 1000)
    return make_pipeline(Nystroem(RBF(gamma), n_components=landmarks, random_state=seed), bits)


def _widths(forms: Forms, train: npt.NDArray) -> dict[tuple[str, float], float]:
    """Return the widths to try: (form, multiple of the median heuristic) to gamma."""
    base = {form: RBF().decided(X[train]).gamma for form, X in forms.items()}
    return {(form, scale): scale * base[form] for form, scale in product(forms, SCALES)}


def _on_bits(
    forms: Forms, y: npt.NDArray, train: npt.NDArray, test: npt.NDArray, runs: range, done: set[tuple[str, int]]
) -> Iterator[Record]:
    """Score all updates of HDClassifier, and the linear machine, on the same bits."""
    names = [*UPDATES, *([MACHINE] if len(train) <= ALL_UP_TO else [])]
    if all((name, run) in done for name in names for run in runs):
        return
    widths = _widths(forms, train)
    hits = dict.fromkeys(widths, 0.0)
    for (form, scale), gamma in widths.items():
        for a, b in folds(y, train):
            codes = encoder(gamma, len(a), 0).fit(forms[form][a])
            model = HDClassifier("ridge").fit(codes.transform(forms[form][a]), y[a])
            hits[form, scale] += model.score(codes.transform(forms[form][b]), y[b])
    form, scale = max(hits, key=hits.__getitem__)
    X, note = forms[form], f"{form}, {scale:g} x median heuristic"
    for run in runs:
        if all((name, run) in done for name in names):
            continue
        start = time.perf_counter()
        steps = encoder(widths[form, scale], len(train), run).fit(X[train])
        codes = [steps.transform(X[train])]
        row = {"run": run, "code_seconds": round(time.perf_counter() - start, 3), "chosen": note}
        codes.append(steps.transform(X[test]))
        for name in names:
            if (name, run) in done:
                continue
            if name == MACHINE:
                grams = [inner_products(part, codes[0]) / N_BITS for part in codes]
                yield {**row, **tuned_machine(name, *grams, y, train, test)}
            else:
                yield {**row, **learnt(HDClassifier(name, random_state=run), name, codes, y, train, test)}


def _rbf_machine(forms: Forms, y: npt.NDArray, train: npt.NDArray, test: npt.NDArray) -> Record:
    widths = _widths(forms, train)
    hits = dict.fromkeys(product(widths, COSTS), 0.0)
    for ((form, scale), cost), (a, b) in product(hits, folds(y, train)):
        machine = SVC(C=cost, gamma=widths[form, scale]).fit(forms[form][a], y[a])
        hits[(form, scale), cost] += machine.score(forms[form][b], y[b])
    (form, scale), cost = max(hits, key=hits.__getitem__)
    start = time.perf_counter()
    machine = SVC(C=cost, gamma=widths[form, scale], cache_size=2000).fit(forms[form][train], y[train])
    seconds = time.perf_counter() - start
    note = f"{form}, {scale:g} x median heuristic, C = {cost:g}"
    return {**scored(RBF_SVM, y[test], machine.predict(forms[form][test]), seconds), "chosen": note}


def _of_torchhd(name: str) -> str:
    return f"torchhd {name}"


def _torchhd(
    forms: Forms, y: npt.NDArray, train: npt.NDArray, test: npt.NDArray, names: Sequence[str], epochs: int | None
) -> Iterator[Record]:
    """Run classifiers of torchhd in an interpreter of its own; without one, say so and yield nothing."""
    interpreter = os.environ.get("SIMILIA_TORCHHD_PYTHON")
    if not interpreter:
        print("left out: SIMILIA_TORCHHD_PYTHON names no interpreter that has torchhd", file=sys.stderr)
    if not interpreter or not names:
        return
    parts = {"train": train, "test": test}
    arrays = {f"{part}_{form}": X[rows] for part, rows in parts.items() for form, X in forms.items()}
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder) / "objects.npz", allow_pickle=False, y_train=y[train], y_test=y[test], **arrays)
        options = json.dumps({"runs": [(name, 0) for name in names], "epochs": epochs})
        (Path(folder) / "options.json").write_text(options, encoding="utf-8")
        command = [interpreter, "-P", str(Path(__file__).with_name("_torchhd_tools.py")), folder]
        with (
            (Path(folder) / "errors").open("w+", encoding="utf-8") as errors,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
        ):
            for line in process.stdout or ():
                if line.startswith("RESULT "):
                    found = json.loads(line.removeprefix("RESULT "))
                    yield {**found, "learner": _of_torchhd(found["learner"]), "seconds": round(found["seconds"], 3)}
            process.wait()
            errors.seek(0)
            if process.returncode:
                raise RuntimeError(f"torchhd failed: {errors.read().strip().splitlines()[-1]}")


def present(records: list[Record]) -> tuple[list[Table], None]:
    """Return accuracies, the automatic choice beside its rivals, seconds, and what was chosen."""
    sets = [task.name for task in TASKS if task.name in distinct(records, "set")]
    learners = [MAJORITY, *UPDATES, MACHINE, RBF_SVM, *map(_of_torchhd, TORCHHD)]
    learners = [name for name in learners if name in distinct(records, "learner")]
    accuracy, seconds = (Table(title, ["learner", *sets]) for title in ("Accuracy, %", "Seconds to fit"))
    chosen = Table("Chosen on the training part", ["learner", *sets])
    codes = [values(records, "code_seconds", set=one, learner=UPDATES[0]) for one in sets]
    seconds.rows.append(["codes of NysHD", *(f"{np.median(times):.1f}" if times else "" for times in codes)])
    for name in learners:
        label = f"NysHD, {name}" if name in UPDATES else name
        accuracy.rows.append([label, *(_cell(values(records, "accuracy", set=one, learner=name)) for one in sets)])
        times = [values(records, "seconds", set=one, learner=name) for one in sets]
        if name != MAJORITY:
            seconds.rows.append([label, *(f"{np.median(found):.1f}" if found else "" for found in times)])
        notes = [values(records, "chosen", set=one, learner=name)[:1] for one in sets]
        if name not in (MAJORITY, MACHINE, *UPDATES[1:]):
            label = "NysHD" if name in UPDATES else name
            chosen.rows.append([label, *(str(note[0]) if note else "" for note in notes)])
    for source, printed in PRINTED.items():
        accuracy.rows.append([source, *(f"{printed[one]:.1f}" if one in printed else "" for one in sets)])
    return [accuracy, _automatic(records, sets), seconds, chosen], None


def _automatic(records: list[Record], sets: Sequence[str]) -> Table:
    """Return NysHD with the update that ``update="auto"`` takes beside the best of torchhd and the RBF SVM."""
    title = 'NysHD with update="auto", minus others, ± two standard errors of the test parts'
    table = Table(title, ["set", "update", "accuracy", "minus the best of torchhd", "minus the RBF SVM"])
    for one in sets:
        rows = [record for record in records if record["set"] == one]
        n, update = rows[0]["n_test"], "ridge" if rows[0]["n_train"] < N_BITS else "margin"
        means = {name: float(np.mean(values(rows, "accuracy", learner=name))) for name in distinct(rows, "learner")}
        theirs = {name: means[name] for name in map(_of_torchhd, TORCHHD) if name in means}
        best = max(theirs, key=theirs.__getitem__) if theirs else ""
        cells = [f"{_gap(means[update], means[best], n)} ({best})" if best else ""]
        cells.append(_gap(means[update], means[RBF_SVM], n) if RBF_SVM in means else "")
        table.rows.append([one, update, f"{means[update]:.2f}", *cells])
    return table


def _gap(a: float, b: float, n: int) -> str:
    """Return a - b, two percentages of `n` objects, ± two standard errors, as if the objects were not the same."""
    spread = sum((share + 2 / n) * (1 - share + 2 / n) / n for share in (a / 100, b / 100))
    return f"{a - b:+.2f} ± {200 * spread**0.5:.2f}"


def _cell(scores: Sequence[float]) -> str:
    if len(scores) < 2:
        return f"{scores[0]:.1f}" if scores else ""
    return mean_sd(float(np.mean(scores)), float(np.std(scores, ddof=1)))
