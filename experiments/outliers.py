"""Are objects of a rare class found among others? `OutlierDetector` beside an isolation forest and LOF."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits
from sklearn.ensemble import IsolationForest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor

import similia as sm
from experiments._report import Record, Table, distinct, mean_sd, standard_error, values
from similia.core.progress import track
from similia.datasets import fetch
from similia.distances import DTW
from similia.kernels import RBF, MinMax, Spectrum, VertexHistogram, WeightedDegree, WeisfeilerLehman
from similia.objects import take

USUAL, S = 400, 100  # objects of the other classes, landmarks or random objects
RARE = (5, 20)  # objects of the rare class: fewer and more than the neighbours that `OutlierDetector` counts
OURS, FOREST, LOF = "OutlierDetector", "isolation forest", "LOF"


@dataclass(frozen=True)
class Task:
    """A set of objects, by its name for `similia.datasets.fetch` ("digits" is scikit-learn's)."""

    name: str
    similarity: Callable[[], Any]
    raw: str  # the raw features


TASKS = (
    Task("splice", lambda: WeightedDegree(degree=5), "letters at each position"),
    Task("sms_spam", lambda: MinMax(Spectrum(k=(1, 4), boundaries="words", ignore_case=True)), "TF-IDF of words"),
    Task("ENZYMES", lambda: MinMax(WeisfeilerLehman(n_iter=4)), "counts of labels"),
    Task("character_trajectories", lambda: DTW(window=0.1), "32 points of each channel"),
    Task("digits", RBF, "pixels"),
)
TITLE = "Odd ones out: objects of a rare class"
TEXT = f"""
In run r, class r modulo the number of classes is rare: a collection has {RARE[0]} or {RARE[1]} of its objects, and
{USUAL} objects drawn from all other classes. Every detector sees the collection without labels and ranks its objects;
the tables hold the area under the ROC curve, in percent ± its standard error over the runs. A ranking at random has 50.
Nothing is tuned: `OutlierDetector` has its defaults (the 10th neighbour; {S} landmarks); LOF and the method "density",
which is LOF on the similarity itself, have 20 neighbours, as in scikit-learn. *the same vectors*: `Nystroem` with {S}
landmarks of the same kernel, or `D2KE` with {S} random objects of the same distance. *raw features*: letters at each
position (splice), TF-IDF of words (sms_spam), counts of the labels of nodes (ENZYMES), 32 points of each channel
(trajectories), pixels (digits). A class that is rare need not lie apart from the others: areas near 50 say that by this
similarity it does not. {RARE[1]} rare objects that are alike are one another's neighbours, so the 10th neighbour of
each is near.
"""


def load(name: str) -> tuple[Any, npt.NDArray]:
    """Return the objects of a set and their classes."""
    if name == "digits":
        return load_digits(return_X_y=True)
    bunch = fetch(name)
    return bunch.data, np.asarray(bunch.target)


def measure(task: Task, seeds: int) -> Iterator[Record]:
    """Rank the objects of a new collection for each run, by each detector."""
    X, y = load(task.name)
    for run in track(range(seeds), task.name, seeds):
        for n_rare in RARE:
            rows, rare = collection(y, run, n_rare)
            for detector, of, scores in _scores(task, take(X, rows), run):
                auc = 100 * float(roc_auc_score(rare, scores))
                where = {"set": task.name, "rare": n_rare, "run": run, "detector": detector, "of": of}
                yield {**where, "auc": round(auc, 3)}


def collection(y: npt.NDArray, run: int, n_rare: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return the positions of a collection's objects, and which of them are of the rare class."""
    classes, rng = np.unique(y), np.random.default_rng(run)
    is_rare = y == classes[run % len(classes)]
    usual = rng.permutation(np.flatnonzero(~is_rare))[:USUAL]
    rare = rng.permutation(np.flatnonzero(is_rare))[:n_rare]
    rows = rng.permutation(np.concatenate([usual, rare]))
    return rows, is_rare[rows]


def _scores(task: Task, X: Any, seed: int) -> Iterator[tuple[str, str, npt.NDArray]]:
    """Yield (detector, what it sees, how strange each object is)."""
    similarity = task.similarity()
    is_kernel = isinstance(similarity, sm.kernels.Kernel)
    for method in ("neighbors", "density", "reconstruction") if is_kernel else ("neighbors", "density"):
        k = 20 if method == "density" else 10
        detector = sm.OutlierDetector(similarity, method, n_neighbors=k, n_components=S, random_state=seed)
        yield f"{OURS}, {method}", "the similarity", -detector.fit(X).train_scores_
    embedding = sm.Nystroem if is_kernel else sm.D2KE
    vectors = embedding(similarity, S, random_state=seed).fit_transform(X)
    for of, Z in (("the same vectors", vectors), ("raw features", raw_features(task.name, X))):
        yield FOREST, of, -IsolationForest(random_state=seed).fit(Z).score_samples(Z)
        yield LOF, of, -LocalOutlierFactor().fit(Z).negative_outlier_factor_


def raw_features(name: str, X: Any) -> Any:
    """Return the features that need no similarity, with a row an object."""
    if name == "splice":
        letters = np.array([list(x) for x in X])
        return (letters[:, :, None] == np.unique(letters)).reshape(len(letters), -1).astype(float)
    if name == "sms_spam":
        return TfidfVectorizer().fit_transform(list(X))
    if name == "ENZYMES":
        counts = sm.KernelFeatures(VertexHistogram()).fit_transform(X)
        return counts[:, np.unique(counts.indices)].toarray()
    if name == "character_trajectories":
        return np.array([_points(np.asarray(x)) for x in X])
    return np.asarray(X)


def _points(x: npt.NDArray, n: int = 32) -> npt.NDArray:
    """Return `n` points of each channel of a series, (n_points, n_channels), by linear interpolation."""
    times = np.linspace(0, len(x) - 1, n)
    return np.concatenate([np.interp(times, np.arange(len(x)), channel) for channel in x.reshape(len(x), -1).T])


def present(records: list[Record]) -> tuple[list[Table], None]:
    """Return a table for each number of rare objects: detectors and what they see by sets, and the mean of the sets."""
    sets, tables = distinct(records, "set"), []
    for n_rare in distinct(records, "rare"):
        table = Table(f"Area under the ROC curve, %: {n_rare} rare objects", ["detector", "of", *sets, "mean"])
        for detector in distinct(records, "detector"):
            for of in distinct([record for record in records if record["detector"] == detector], "of"):
                found = [values(records, "auc", set=one, rare=n_rare, detector=detector, of=of) for one in sets]
                cells = [mean_sd(float(np.mean(v)), standard_error(v)) if v else "–" for v in found]
                mean = f"{np.mean([np.mean(v) for v in found]):.1f}" if all(found) else "–"
                table.rows.append([detector, of, *cells, mean])
        tables.append(table)
    return tables, None
