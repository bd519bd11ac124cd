"""Do conformal sets and intervals hold the truth as often as asked, and how large are they? Beside MAPIE."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_diabetes, load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, LeaveOneOut, StratifiedKFold
from sklearn.preprocessing import StandardScaler

import similia as sm
from experiments._report import Record, Table, distinct, standard_error, values
from similia.core.config import track
from similia.datasets import fetch
from similia.distances import DTW
from similia.kernels import RBF, MinMax, Spectrum, WeightedDegree, WeisfeilerLehman
from similia.objects import from_smiles, take

COVERAGE, ALPHA, C = 0.9, 0.1, 10.0
S, MOST = 100, 1500  # landmarks or random objects, and objects of a set
JACKKNIFE, ASKED_OF_IT = 100, 200  # training and test objects of the jackknife+
SEEN = 100  # letters of a protein that the model sees
ASKED = f"{100 * COVERAGE:.0f} %"
LABELS, NUMBERS = "Sets of labels", "Intervals of numbers"
TWINS = {method: f"MAPIE, {method}" for method in ("split", "split, aps", "cross", "jackknife+")}


@dataclass(frozen=True)
class Task:
    """A set of objects with classes or numbers, by its name for `similia.datasets.fetch` ("digits": scikit-learn's)."""

    name: str
    kind: str
    of: str = LABELS


TASKS = (
    Task("splice", "strings"),
    Task("sms_spam", "strings"),
    Task("character_trajectories", "series"),
    Task("ENZYMES", "graphs"),
    Task("BBBP", "molecules"),
    Task("digits", "vectors"),
    Task("hydropathy", "strings", NUMBERS),
    Task("italy_power_demand", "series", NUMBERS),
    Task("node lengths", "graphs", NUMBERS),
    Task("ESOL", "molecules", NUMBERS),
    Task("diabetes", "vectors", NUMBERS),
)
TITLE = "Conformal sets and intervals: coverage and size"
TEXT = f"""
Coverage asked for: {ASKED}, on 200 splits (the seeds of the command) of sets of five kinds of objects. The goals, set
before the runs: *split* covers {ASKED} ± 1 %; *cross*, *jackknife+* and *by class* cover 89 % or more, *by class* also
within each class; no set or interval is larger than MAPIE's by more than two standard errors.

Each set (at most {MOST} objects, drawn once) is turned into {S} features once, without its targets: `Nystroem` with
k-mers up to 5 at each position (splice), min-max of 1- to 4-mers (other strings; within words, for texts), min-max of
Weisfeiler-Lehman counts (graphs, molecules) or a Gaussian kernel (vectors), and `D2KE` with DTW and a window of 10 %
(series). In each split, a random half of the objects is for training and calibration, the other half for tests. The
model is logistic regression (C={C:g}), or ridge regression (alpha={ALPHA:g}) of numbers of variance 1; nothing is
tuned. similia and MAPIE get the same rows of features and the same model.

Three sets have numbers that are a part of the object and hidden from the model: the mean hydropathy (Kyte and
Doolittle) of a protein of multiloc_proteins after its first {SEEN} letters, which the model sees; the last value of a
series of italy_power_demand, from its first half; the mean length of the nodes of a graph of ENZYMES, in amino acids,
from edges and labels. ESOL and diabetes come with numbers.

- *split*: half of the training objects fit the model, the others calibrate it; score "auto", which is "lac".
  *split, aps*: with the score "aps" (MAPIE's "randomized"; it refuses two classes). *by class* (Mondrian; MAPIE has no
  such sets): each class calibrates itself.
- *cross*: five folds of all training objects. MAPIE's twins are its cross-conformal sets with the score "lac" and
  `agg_scores="crossval"`, and its method "plus". It draws its own folds. *MAPIE, cross, mean* is its default
  `agg_scores="mean"`, which compares the mean of the models' scores with all calibration scores.
- *jackknife+* (`cv="loo"`): {JACKKNIFE} of the training objects, each left out of one model; at most {ASKED_OF_IT} test
  objects.

*coverage*: mean over the splits ± its standard error, in percent. The splits share their objects, so the means of
the sets scatter more than this. *worst class*: the lowest coverage within a class, of all splits together. *size*: mean
number of labels in a set, or mean width of an interval. *less MAPIE's*: mean difference ± its standard error over the
splits. *larger*: of how many sets it is more than two such errors above zero.

One cross set is larger than MAPIE's, by a thousandth of a label: that of character_trajectories. With the same folds,
the sets are equal if n, the number of training objects, is a multiple of ten, as in the other sets. Here n is 714. A
label is in a cross-conformal set if more than (n + 1) / 10 - 1 = 70.5 objects are at least as strange (Romano, Sesia &
Candès, 2020, Algorithm 2), so 71 suffice; MAPIE 1.6 asks for (n - 1) / 10 = 71.3, so 72.

MAPIE's default, the mean of the scores, makes smaller sets than both on splice (by 3 %) and ENZYMES (by 1.5 %), and
covers {ASKED} there too; the theorem for cross sets does not hold for it.
"""


def load(task: Task) -> tuple[npt.NDArray, npt.NDArray]:
    """Return the features of the objects of a set, and their classes or numbers."""
    X, y, similarity = _objects(task.name)
    if len(y) > MOST:
        rows = np.sort(np.random.default_rng(0).permutation(len(y))[:MOST])
        X, y = take(X, rows), y[rows]
    embedding = sm.D2KE if task.kind == "series" else sm.Nystroem
    features = np.asarray(embedding(similarity, S, random_state=0).fit_transform(X), dtype=np.float64)
    if task.kind == "series":
        features = StandardScaler().fit_transform(features) / S**0.5  # of the size of those of a kernel
    return features, (y - y.mean()) / y.std() if task.of == NUMBERS else y


def _objects(name: str) -> tuple[Any, npt.NDArray, Any]:
    """Return all objects of a set, their classes or numbers, and their similarity."""
    if name in ("digits", "diabetes"):
        return *(load_digits if name == "digits" else load_diabetes)(return_X_y=True), RBF()
    bunch = fetch({"hydropathy": "multiloc_proteins", "node lengths": "ENZYMES"}.get(name, name))
    X, y = bunch.data, np.asarray(bunch.target)
    if name == "splice":
        return X, y, WeightedDegree(degree=5)
    if name == "sms_spam":
        return X, y, MinMax(Spectrum(k=(1, 4), boundaries="words", ignore_case=True))
    if name == "hydropathy":
        long = [x for x in X if len(x) >= 2 * SEEN]
        return [x[:SEEN] for x in long], np.array([_hydropathy(x[SEEN:]) for x in long]), MinMax(Spectrum(k=(1, 4)))
    if name == "italy_power_demand":
        series = np.array([np.ravel(x) for x in X])
        return series[:, : series.shape[1] // 2], series[:, -1], DTW(window=0.1)
    if name == "node lengths":
        lengths = X.node_attributes[:, 0]
        return X, np.add.reduceat(lengths, X.node_offsets[:-1]) / np.diff(X.node_offsets), _graphs(4)
    if name in ("ESOL", "BBBP"):
        return from_smiles(X), y.astype(float) if name == "ESOL" else y, _graphs(2)
    return X, y, DTW(window=0.1) if name == "character_trajectories" else _graphs(4)


def _graphs(n_iter: int) -> Any:
    return MinMax(WeisfeilerLehman(n_iter=n_iter))


def _hydropathy(protein: str) -> float:
    """Return the mean hydropathy of the letters (Kyte & Doolittle, 1982); letters of no one amino acid do not count."""
    values_of = dict(zip("IVLFCMAGTSWYPHEQDNKR", KYTE_DOOLITTLE, strict=True))
    return float(np.mean([values_of[letter] for letter in protein if letter in values_of]))


KYTE_DOOLITTLE = (4.5, 4.2, 3.8, 2.8, 2.5, 1.9, 1.8, -0.4, -0.7, -0.8, -0.9, -1.3, -1.6, -3.2, *[-3.5] * 4, -3.9, -4.5)


def measure(task: Task, seeds: int) -> Iterator[Record]:
    """Measure coverage and size on each split, for each method."""
    X, y = load(task)
    methods = _intervals if task.of == NUMBERS else _sets
    for run in track(range(seeds), task.name, seeds):
        train, test = np.split(np.random.default_rng(run).permutation(len(y)), [len(y) // 2])
        for method, answer in methods(X[train], y[train], X[test], run):
            found = _scores(answer, y[test][: len(answer)], np.unique(y) if task.of == LABELS else None)
            if method in TWINS.values():
                found["by class"] = ""
            yield {"set": task.name, "run": run, "method": method, **found}


def _sets(X: npt.NDArray, y: npt.NDArray, new: npt.NDArray, seed: int) -> Iterator[tuple[str, npt.NDArray[np.bool_]]]:
    """Yield (method, whether each label is in the set of each new object)."""
    model, half = LogisticRegression(C=C, max_iter=1000), len(y) // 2
    fitted = FrozenEstimator(model.fit(X[:half], y[:half]))
    options = {"split": {}, "by class": {"by_class": True}, "split, aps": {"conformity_score": "aps"}}
    for method, option in options.items():
        split = sm.ConformalClassifier(fitted, random_state=seed, **option).fit(X[half:], y[half:])
        yield method, split.predict_set(new, COVERAGE)
    cross = sm.ConformalClassifier(LogisticRegression(C=C, max_iter=1000), "cross", random_state=seed)
    yield "cross", cross.fit(X, y).predict_set(new, COVERAGE)
    if importlib.util.find_spec("mapie") is None:
        return
    from mapie.classification import CrossConformalClassifier, SplitConformalClassifier

    for score, method in (("lac", "split"), ("aps", "split, aps")):
        if score == "aps" and len(fitted.classes_) == 2:
            continue
        theirs = SplitConformalClassifier(model, COVERAGE, conformity_score=score, prefit=True, random_state=seed)
        option = {"conformity_score_params": {"include_last_label": "randomized"}} if score == "aps" else {}
        yield TWINS[method], theirs.conformalize(X[half:], y[half:]).predict_set(new, **option)[1][..., 0]
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    theirs = CrossConformalClassifier(LogisticRegression(C=C, max_iter=1000), COVERAGE, cv=folds)
    theirs.fit_conformalize(X, y)
    yield TWINS["cross"], theirs.predict_set(new, agg_scores="crossval")[1][..., 0]
    yield "MAPIE, cross, mean", theirs.predict_set(new, agg_scores="mean")[1][..., 0]


def _intervals(X: npt.NDArray, y: npt.NDArray, new: npt.NDArray, seed: int) -> Iterator[tuple[str, npt.NDArray]]:
    """Yield (method, ends of the intervals of the new objects)."""
    ridge, half = Ridge(ALPHA), len(y) // 2
    model = Ridge(ALPHA).fit(X[:half], y[:half])
    split = sm.ConformalRegressor(FrozenEstimator(model)).fit(X[half:], y[half:])
    yield "split", split.predict_interval(new, COVERAGE)
    several = (("cross", 5, X, y, new), ("jackknife+", "loo", X[:JACKKNIFE], y[:JACKKNIFE], new[:ASKED_OF_IT]))
    for method, folds, some, of, asked in several:
        cross = sm.ConformalRegressor(ridge, "cross", cv=folds, random_state=seed).fit(some, of)
        yield method, cross.predict_interval(asked, COVERAGE)
    if importlib.util.find_spec("mapie") is None:
        return
    from mapie.regression import CrossConformalRegressor, SplitConformalRegressor

    theirs = SplitConformalRegressor(model, COVERAGE, prefit=True).conformalize(X[half:], y[half:])
    yield TWINS["split"], theirs.predict_interval(new)[1][..., 0]
    for method, folds, some, of, asked in several:
        cv = LeaveOneOut() if folds == "loo" else KFold(5, shuffle=True, random_state=seed)
        theirs = CrossConformalRegressor(ridge, COVERAGE, method="plus", cv=cv).fit_conformalize(some, of)
        yield TWINS[method], theirs.predict_interval(asked)[1][..., 0]


def _scores(answer: npt.NDArray, truth: npt.NDArray, classes: npt.NDArray | None) -> Record:
    """Return coverage and size, and of sets the coverage of each class as a text, in the order of the classes."""
    if classes is None:
        held, size, of = (answer[:, 0] <= truth) & (truth <= answer[:, 1]), np.ptp(answer, axis=1).mean(), ""
    else:
        held, size = answer[np.arange(len(truth)), np.searchsorted(classes, truth)], answer.sum(axis=1).mean()
        of = " ".join(f"{held[truth == c].sum()}/{(truth == c).sum()}" for c in classes)
    return {"coverage": round(float(held.mean()), 5), "size": round(float(size), 4), "by class": of}


def present(records: list[Record]) -> tuple[list[Table], None]:
    """Return the extremes of each method; then sets and intervals, by set and method, with MAPIE's twin beside each."""
    columns = ["set", "kind", "method", "coverage", "worst class", "size", "MAPIE: coverage", "MAPIE: size"]
    extremes = Table(
        "All sets of objects", ["method", "sets", "lowest coverage", "highest", "lowest of a class", "larger"]
    )
    tables = [extremes]
    tasks = [task for task in TASKS if task.name in distinct(records, "set")]
    for caption in dict.fromkeys(task.of for task in tasks):
        table = Table(f"{caption}, coverage {ASKED}", [*columns, "less MAPIE's"])
        for task in (task for task in tasks if task.of == caption):
            those = [record for record in records if record["set"] == task.name]
            for method in distinct(those, "method"):
                if method not in TWINS.values():
                    table.rows.append([task.name, task.kind, method, *_cells(those, method)])
        for method in dict.fromkeys(row[2] for row in table.rows):
            extremes.rows.append(_extremes(caption, method, [row for row in table.rows if row[2] == method]))
        if caption == NUMBERS:
            at = columns.index("worst class")
            table.columns = [*columns[:at], *columns[at + 1 :], "less MAPIE's"]
            table.rows = [[*row[:at], *row[at + 1 :]] for row in table.rows]
        tables.append(table)
    return tables, None


def _extremes(caption: str, method: str, rows: list[Sequence[str]]) -> list[str]:
    """Return lowest and highest coverage of a method, the lowest in a class, and how many are larger than MAPIE's."""
    covered = [float(row[3].split()[0]) for row in rows]
    worst = [float(row[4]) for row in rows if row[4] != "–"]
    less = [[float(part) for part in row[-1].split(" ± ")] for row in rows if row[-1] != "–"]
    larger = f"{sum(mean > 2 * error for mean, error in less)} of {len(less)}" if less else "–"
    lowest = f"{min(worst):.1f}" if worst else "–"
    return [
        f"{method} ({caption.split()[0].lower()})",
        str(len(rows)),
        str(min(covered)),
        str(max(covered)),
        lowest,
        larger,
    ]


def _cells(records: list[Record], method: str) -> list[str]:
    """Return coverage, worst class and size of a method, then coverage and size of MAPIE's twin, and the difference."""

    def percent(of: str) -> str:
        covered = 100 * np.array(values(records, "coverage", method=of))
        return f"{covered.mean():.1f} ± {standard_error(covered):.1f}"

    counts = [text.split() for text in values(records, "by class", method=method) if text]
    pairs = np.array([[list(map(int, pair.split("/"))) for pair in row] for row in counts])
    worst = f"{100 * (pairs[..., 0].sum(axis=0) / pairs[..., 1].sum(axis=0)).min():.1f}" if counts else "–"
    ours, theirs = (np.array(values(records, "size", method=one)) for one in (method, TWINS.get(method, "")))
    cells = [percent(method), worst, f"{ours.mean():.3f}"]
    if len(theirs) == 0:
        return [*cells, "–", "–", "–"]
    less = ours - theirs
    return [*cells, percent(TWINS[method]), f"{theirs.mean():.3f}", f"{less.mean():+.4f} ± {standard_error(less):.4f}"]
