"""similia's automatic choice beside the tools that a specialist of each kind of object would pick.

Protocol, written before the first run:

- *Splits.* Where a set has published training and test parts, these; for graphs, the ten folds of Errica et al. (their
  validation part joins training). Other sets are split at random, stratified by class, by the number of the split. The
  20 series of the UCR archive are also *resampled*: as many objects to train and to test as published, at random,
  stratified, five times.
- *What is tuned where.* similia gets the training part and a budget in seconds (60 by default; the head of its column
  says how many), nothing else. Each specialist's parameters are chosen by 5-fold cross-validation on the training part
  by the measure of the table, or are its defaults (`_specialist_tools`). All tools get the same objects, targets and
  splits in the same run.
- *What is never looked at.* The targets of a test part, except to score predictions, once. No parameter in these files
  may be changed because of a score below. Sets that similia's ladder was tuned on, or was looked at on the way, have a
  star; for them the comparison is not fair to the specialists. Some got their star after a first table, where they
  were behind the numbers in print. REDDIT-BINARY: mean maps of degrees became candidates, for all graphs without labels
  and attributes, by cross-validation on the training part of its first fold. TP53 and EP300_47848: the list of
  candidates had shown that a few unknown letters kept all gapped k-mers away. The text sets got theirs when the table
  showed them behind TF-IDF. The training part of BioInfer has 2534 variants of 468 sentences, and cross-validation
  split these variants. Now near copies share a fold, which was decided on that training part, cut by sentences.
- *Errors.* A score has the standard error of its test part: binomial for accuracy (Agresti and Coull's, which is not 0
  where all is right), Hanley and McNeil's for AUC, the delta method's for RMSE. The error of a difference takes both as
  independent, and so is too large for two tools on one test part: a win or a loss is more than two standard errors,
  anything else a tie.
- *Seconds* are of fit and prediction, without the compilation of numba loops; *CPU seconds* are of all threads: where
  they are fewer than seconds, others used the machine, and a budget in seconds was worth less. *Memory* is the peak
  of the process.
"""

from __future__ import annotations

import csv
import json
import os
import pickle
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import train_test_split

from experiments._letters import letters
from experiments._report import Record
from experiments._specialist_tables import present as present
from experiments.selection import DEVELOPMENT
from similia.datasets import fetch, splits
from similia.objects import GraphBatch, SeriesBatch, as_graphs, as_strings, from_smiles

BUDGET = 60.0  # seconds for similia
LIMIT = 1800.0  # seconds for one split by any tool, then it is given up
Parts = dict[int, tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]  # number of a split: training, test indices


@dataclass(frozen=True)
class Task:
    """A data set.

    Attributes
    ----------
    name : str
        As it is published.
    kind : str
        A key of `KINDS`.
    metric : {"accuracy", "auc", "rmse"}
    source : str
        Name for `similia.datasets.fetch`, if it is not `name`.
    n_splits : int
        Number of random splits at most; 0 for the published ones.
    """

    name: str
    kind: str
    metric: Literal["accuracy", "auc", "rmse"] = "accuracy"
    source: str = ""
    n_splits: int = 0


@dataclass(frozen=True)
class Tool:
    """What a specialist types: its name in tables, and the variable that names an interpreter that has it."""

    title: str
    variable: str = ""  # empty: this interpreter


TOOLS = {  # functions of `_specialist_tools`
    "similia": Tool("similia"),
    "letters": Tool("TF-IDF of letters, SVM"),
    "words": Tool("TF-IDF of words, SVM"),
    "minirocket": Tool("MiniRocket", "SIMILIA_RIVALS_PYTHON"),
    "multirocket_hydra": Tool("MultiRocket-Hydra", "SIMILIA_RIVALS_PYTHON"),
    "quant": Tool("QUANT", "SIMILIA_RIVALS_PYTHON"),
    "wl": Tool("WL, SVM", "SIMILIA_GRAKEL_PYTHON"),
    "wl_oa": Tool("WL-OA, SVM", "SIMILIA_GRAKEL_PYTHON"),
    "mean_map": Tool("plain mean map, SVM"),
    "ecfp_forest": Tool("count ECFP, forest", "SIMILIA_MOLECULES_PYTHON"),
    "ecfp_minmax": Tool("count ECFP, min-max", "SIMILIA_MOLECULES_PYTHON"),
}
KINDS = {  # the tools for each
    "strings": ("letters",),
    "dna": ("letters",),
    "text": ("letters", "words"),
    "series": ("minirocket", "multirocket_hydra", "quant"),
    "resamples": ("multirocket_hydra",),
    "graphs": ("wl", "wl_oa"),
    "attributes": ("mean_map", "wl"),
    "molecules": ("ecfp_forest", "ecfp_minmax"),
}
_UCR = (
    *("CBF", "Car", "CricketY", "ECGFiveDays", "FaceFour", "FacesUCR", "FiftyWords", "GunPointMaleVersusFemale"),
    *("Herring", "LargeKitchenAppliances", "OliveOil", "Plane", "ScreenType", "SmoothSubspace"),
    *("SonyAIBORobotSurface1", "SonyAIBORobotSurface2", "SwedishLeaf", "SyntheticControl", "Wine", "WordSynonyms"),
)
_SMALL_SERIES = {
    **{"Coffee": "coffee", "GunPoint": "gunpoint", "ItalyPowerDemand": "italy_power_demand"},
    **{"BasicMotions": "basic_motions", "JapaneseVowels": "japanese_vowels", "Libras": "libras"},
}
TASKS = (
    Task("MultiLoc", "strings", source="multiloc_proteins", n_splits=3),
    *(Task(f"scop_{family}", "strings", "auc") for family in ("1_1", "2_19", "2_31", "3_19", "3_33")),
    *(Task(name, "dna", "auc") for name in ("CTCF", "EP300", "EP300_47848", "JUND", "TP53")),
    *(Task(name, "dna", n_splits=splits) for name, splits in (("promoters", 10), ("splice", 3))),
    *(Task(name, "text") for name in ("BioInfer", "CC1-LLL", "CC2-IEPA", "CC3-HPRD50")),
    Task("SMS", "text", source="sms_spam", n_splits=3),
    *(Task(name, "series") for name in _UCR),
    *(Task(name, "series", source=source) for name, source in _SMALL_SERIES.items()),
    *(Task(f"{name} resampled", "resamples", source=name, n_splits=5) for name in _UCR),
    *(Task(name, "graphs") for name in ("NCI1", "DD", "REDDIT-BINARY")),
    Task("ENZYMES-labels", "graphs", source="ENZYMES"),
    Task("ENZYMES", "attributes"),
    Task("letters", "attributes", n_splits=3),
    Task("ESOL", "molecules", "rmse", n_splits=20),
    Task("Photoswitch", "molecules", "rmse", n_splits=20),
    Task("BBBP", "molecules", "auc", n_splits=20),
)
N_DRAWINGS = 105  # of each of fifteen letters
TITLE = "The automatic choice beside the tools that a specialist would pick"
TEXT = f"""
{__doc__.partition(chr(10))[2].strip()}

An environment of its own runs each specialist: TF-IDF and the plain mean map are of this one's scikit-learn,
`SIMILIA_RIVALS_PYTHON` names an interpreter that has aeon (MiniRocket, MultiRocket-Hydra, QUANT),
`SIMILIA_GRAKEL_PYTHON` one that has GraKeL (WL, WL-OA), `SIMILIA_MOLECULES_PYTHON` one that has scikit-fingerprints;
tools without one are left out. Numbers in print are read from the folder `reference` beside those of `SIMILIA_DATA`;
they are for the same split (series, strings), the same ten folds (graphs), or random splits of the same shares
(molecules), and the best of several was chosen by its score. The scores of SCOP rest on 7 to 9 positive test objects
each. CC1 to CC3 train on texts of one source and test on another, which no cross-validation of a training part
foresees. The column *splits* says how many of a set were measured so far; on graphs, WL, WL-OA and the plain mean map
had the first only, in a run of their own, and gaps are of common splits. The series had `--budget 120`. The resamples
of a set overlap, so the standard error of their mean, which takes them as independent, is too small. They are neither
in the chart nor in the counts of all sets. Other work of the lowest priority ran beside them, so their seconds are too
long, for both tools. On nearly all splits, the choice is ridge regression on MultiRocket and Hydra features (the column
*note* of the file with all results), so ties are no surprise.
On proteins, DNA and texts, similia was measured once more, on a faster machine, after two kernels on counts of k-mers
(`Intersection` and `MinMax` of `Spectrum`) had become candidates. They were chosen by cross-validation on peptides,
glycans and words of twelve languages, which are not in these tables, and on the training parts of MultiLoc, scop_2_19,
SMS and BioInfer. Proteins were then measured again, after gapped k-mers had become candidates for strings without
spaces, by cross-validation on peptides, glycans and the training parts of MultiLoc, scop_2_19 and scop_2_31, with
similar sequences on one side of a fold. Of the five sets of SCOP, four gained and scop_2_19 lost. With `--output`,
rows are written as they come, and rows that are there are not measured again: delete them to measure anew.
"""


def load(task: Task) -> tuple[Any, npt.NDArray]:
    """Return the objects of a task and their targets: numbers, or the numbers of classes in order."""
    if task.name == "letters":
        drawings, target = letters(N_DRAWINGS)
        X = as_graphs(drawings)
    else:
        bunch = fetch(task.source or task.name)
        X, target = from_smiles(bunch.data) if bunch.kind == "molecules" else bunch.data, bunch.target
    if isinstance(X, GraphBatch) and task.kind == "graphs":
        X = GraphBatch(X.node_offsets, X.indptr, X.indices, node_labels=X.node_labels, edge_labels=X.edge_labels)
    if isinstance(X, list):
        X = as_strings(X)
    return X, target if task.metric == "rmse" else np.unique(target, return_inverse=True)[1]


def parts_of(task: Task, y: npt.NDArray, seeds: int) -> Parts:
    """Return at most `seeds` splits of a task."""
    published = [] if task.n_splits and task.kind != "resamples" else splits(task.source or task.name)
    if not task.n_splits:
        return dict(enumerate(published[:seeds]))
    share = len(published[0][1]) if published else 0.2 if task.kind == "molecules" else 0.3
    classes = None if task.metric == "rmse" else y
    return {
        run: tuple(
            map(np.sort, train_test_split(np.arange(len(y)), test_size=share, random_state=run, stratify=classes))
        )
        for run in range(min(seeds, task.n_splits))
    }


def measure(
    task: Task, seeds: int, budget: float = BUDGET, known: Sequence[Record] = (), tools: Sequence[str] = ()
) -> Iterator[Record]:
    """Yield the rows that are `known`, then a row for each other tool and split; all tools of the kind by default."""
    yield from known
    done = {(record["tool"], record["run"]) for record in known}
    X, y = load(task)
    parts = parts_of(task, y, seeds)
    head = {"set": task.name, "kind": task.kind, "metric": task.metric, "looked_at": int(_looked_at(task))}
    for record in [*constant(task, y, parts), *printed(task, y, parts)]:
        if (record["tool"], record["run"]) not in done:
            yield {**head, **record}
    with tempfile.TemporaryDirectory() as folder:
        write_objects(Path(folder), task, X, y, parts)
        for name in tools or ("similia", *KINDS[task.kind]):
            title = f"similia, {budget:g} s" if name == "similia" else TOOLS[name].title
            runs = [run for run in parts if (title, run) not in done]
            for result in run_tool(name, Path(folder), {"metric": task.metric, "budget": budget, "runs": runs}):
                train, test = parts[result["run"]]
                role = "similia" if name == "similia" else "specialist"
                row = {"tool": title, "role": role, "run": result["run"], "n_train": len(train), "n_test": len(test)}
                yield {**head, **row, **scored(task.metric, y[test], result), "note": result["note"]}


def _looked_at(task: Task) -> bool:
    return task.kind == "text" or (task.source or task.name) in (*DEVELOPMENT, "REDDIT-BINARY", "TP53", "EP300_47848")


def write_objects(folder: Path, task: Task, X: Any, y: npt.NDArray, parts: Parts) -> None:
    """Write the objects for similia, and as plain arrays for the others."""
    (folder / "objects.pickle").write_bytes(pickle.dumps(X))
    arrays = {
        f"{part}_{run}": rows for run, pair in parts.items() for part, rows in zip(("train", "test"), pair, strict=True)
    }
    if isinstance(X, SeriesBatch):
        arrays |= {"values": X.values, "offsets": X.offsets}
    elif task.kind in ("graphs", "attributes"):
        names = ("node_offsets", "indptr", "indices", "node_labels", "node_attributes")
        arrays |= {name: column for name in names if (column := getattr(X, name)) is not None}
    else:
        texts = fetch(task.source or task.name).data if task.kind == "molecules" else list(X)
        encoded = [text.encode() for text in texts]
        arrays["letters"] = np.frombuffer(b"".join(encoded), np.uint8)
        arrays["offsets"] = np.concatenate([[0], np.cumsum([len(text) for text in encoded])])
    np.savez(folder / "objects.npz", allow_pickle=False, y=y, **arrays)


def run_tool(name: str, folder: Path, options: dict[str, Any]) -> Iterator[Record]:
    """Run a tool on the splits ``options["runs"]`` in a process of its own, and yield what it prints about each.

    A split that fails, or takes longer than `LIMIT`, has no ``"predictions"``, and a ``"note"`` that says why.
    """
    variable = TOOLS[name].variable
    interpreter = os.environ.get(variable) if variable else sys.executable
    if not interpreter:
        print(f"left out: {variable} names no interpreter that has {TOOLS[name].title}", file=sys.stderr)
        return
    runs = list(options["runs"])
    if not runs:
        return
    (folder / "options.json").write_text(json.dumps(options), encoding="utf-8")
    script = str(Path(__file__).with_name("_specialist_tools.py"))
    late = threading.Event()
    command = [interpreter, "-P", script, name, str(folder)]
    with (
        (folder / "errors").open("w+", encoding="utf-8") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        timer = _alarm(process, late)
        try:
            for line in process.stdout or ():
                if line.startswith("RESULT "):
                    timer.cancel()
                    result = json.loads(line.removeprefix("RESULT "))
                    runs.remove(result["run"])
                    yield result
                    timer = _alarm(process, late)
        finally:
            timer.cancel()
            if runs:  # stopped early: nobody waits for the rest
                process.kill()
        errors.seek(0)
        last = (errors.read().strip().splitlines() or ["ended without a word"])[-1]
    for run in runs:
        yield {"run": run, "note": f"out of time after {LIMIT:g} s" if late.is_set() else last}


def _alarm(process: subprocess.Popen, late: threading.Event) -> threading.Timer:
    """Start a timer that ends a process after `LIMIT` seconds."""

    def end() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(LIMIT, end)
    timer.start()
    return timer


def scored(metric: str, y: npt.NDArray, result: Record) -> Record:
    """Return score and standard error (percent, or the unit of the target), and what the tool needed."""
    if "predictions" not in result:
        return {"score": "", "error": "", "macro": "", "seconds": "", "cpu": "", "memory": ""}
    predictions = np.asarray(result["predictions"])
    cost = {"seconds": round(result["seconds"], 2), "cpu": round(result["cpu"], 2), "memory": round(result["memory"])}
    if metric == "rmse":
        squares = (predictions - y) ** 2
        score = float(np.sqrt(squares.mean()))
        error = float(squares.std() / np.sqrt(len(y)) / (2 * score)) if score else 0.0
        return {"score": round(score, 4), "error": round(error, 4), "macro": "", **cost}
    if metric == "auc":
        scores = predictions if result["scores"] is None else result["scores"]
        score = float(roc_auc_score(y, scores))
        error = auc_error(score, int(np.sum(y == 1)), int(np.sum(y == 0)))
    else:
        score = float(np.mean(predictions == y))
        error = share_error(score, len(y))
    macro = balanced_accuracy_score(y, predictions)
    return {"score": _percent(score), "error": _percent(error), "macro": _percent(macro), **cost}


def _percent(share: float) -> float:
    return round(100 * float(share), 3)


def share_error(share: float, n: int) -> float:
    """Return the standard error of a share of `n`, with two hits and two misses added (Agresti and Coull 1998)."""
    share, n = (share * n + 2) / (n + 4), n + 4
    return float(np.sqrt(share * (1 - share) / n))


def auc_error(auc: float, n_positive: int, n_negative: int) -> float:
    """Return the standard error of an area under the curve (Hanley and McNeil 1982)."""
    one, two = auc / (2 - auc), 2 * auc**2 / (1 + auc)
    variance = auc * (1 - auc) + (n_positive - 1) * (one - auc**2) + (n_negative - 1) * (two - auc**2)
    return float(np.sqrt(max(variance, 0) / (n_positive * n_negative)))


def constant(task: Task, y: npt.NDArray, parts: Parts) -> Iterator[Record]:
    """Yield the score of the majority class, or the mean, of each training part."""
    for run, (train, test) in parts.items():
        guess = y[train].mean() if task.metric == "rmse" else np.bincount(y[train]).argmax()
        result = {"predictions": np.full(len(test), guess), "scores": None, "seconds": 0, "cpu": 0, "memory": 0}
        row = {"tool": "majority or mean", "role": "baseline", "run": run, "n_train": len(train), "n_test": len(test)}
        yield {**row, **scored(task.metric, y[test], result)}


def printed(task: Task, y: npt.NDArray, parts: Parts) -> Iterator[Record]:
    """Yield the published scores of a task, where the files of these are."""
    test = y[parts[0][1]]
    for name, score, error in _in_print(task, test):
        row = {"tool": f"in print: {name}", "role": "print", "run": 0, "n_test": len(test)}
        yield {**row, "score": score, "error": error}


def _in_print(task: Task, test: npt.NDArray) -> Iterator[tuple[str, float, float]]:
    """Yield name, score and standard error of each published result."""
    if task.kind == "resamples":
        return
    if task.kind == "series":
        for row in _reference("ucr_accuracy.csv", task):
            share = float(row["accuracy_default_split"])
            yield row["classifier"], _percent(share), _percent(share_error(share, len(test)))
    elif task.kind in ("strings", "dna", "text"):
        for row in _reference("strings_auc.csv", task):
            share = float(row[task.metric] or "nan")
            if task.metric == "auc":
                yield row["method"], _percent(share), _percent(auc_error(share, int(test.sum()), int((1 - test).sum())))
            elif share >= 0:
                yield row["method"], _percent(share), _percent(share_error(share, len(test)))
    elif task.kind in ("graphs", "attributes"):
        for row in _reference("graphs_errica.csv", task):
            yield row["method"], float(row["accuracy_mean"]), float(row["accuracy_std"]) / 10**0.5
    else:
        for row in _reference("molecules.csv", task):
            if "random 80/20" in row["protocol"] and row["metric"] == "RMSE":
                yield f"{row['model']}, {row['representation']}", float(row["value"]), float(row["spread"] or 0)


def _reference(file: str, task: Task) -> list[dict[str, str]]:
    """Return the rows about a task of a file of published numbers beside the folders of SIMILIA_DATA."""
    folders = [Path(folder).parent / "reference" for folder in os.environ.get("SIMILIA_DATA", "").split(os.pathsep)]
    path = next((folder / file for folder in folders if (folder / file).exists()), None)
    if path is None:
        return []
    with path.open(newline="", encoding="utf-8") as stream:
        return [row for row in csv.DictReader(stream) if row["dataset"] == task.name]
