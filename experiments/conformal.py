"""Do conformal sets and intervals hold the truth as often as asked, and how large are they? Beside MAPIE."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV
from sklearn.model_selection import KFold, LeaveOneOut, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import similia as sm
from experiments._report import Record, Table, distinct, values
from similia.core.config import track
from similia.datasets import fetch
from similia.kernels import MinMax, Spectrum, WeightedDegree, WeisfeilerLehman
from similia.objects import from_smiles, take

COVERAGE, ALPHA, C = 0.9, 0.03, 10.0
JACKKNIFE = 200  # training and test objects of the jackknife+, which fits a model for each training object
ASKED = f"{100 * COVERAGE:.0f} %"


@dataclass(frozen=True)
class Task:
    """A set of objects, by its name for `similia.datasets.fetch` ("digits" is scikit-learn's)."""

    name: str
    kind: str


TASKS = (
    Task("splice", "strings"),
    Task("sms_spam", "strings"),
    Task("ENZYMES", "graphs"),
    Task("character_trajectories", "series"),
    Task("digits", "vectors"),
    Task("ESOL", "molecules"),
)
TITLE = "Conformal sets and intervals: coverage and size"
TEXT = f"""
Coverage asked for: {ASKED}. One model is fitted to half of the objects; the other half is split 200 times
(the seeds of the command) at random into calibration and test objects of equal number. *coverage*: mean over the
splits ± its standard error, in percent (the splits share their objects, so the means of the sets scatter more than
this). *worst class*: the lowest coverage within a class, of all splits together. *size*: mean number of labels in a
set, or mean width of an interval in the unit of the target. *split*: score "auto", that is "lac", or "margin" where
the model has no probabilities; *by class* is Mondrian. *cross* (graphs and molecules) fits models of five folds to a
random half of all objects for each split, and is tested on the other half: cross-conformal sets by "margin", and CV+
intervals. *jackknife+* (`cv="loo"`; molecules) leaves each of {JACKKNIFE} objects of that half out of one model, and is
tested on {JACKKNIFE} of the other half. *MAPIE* (where it is installed) is its split method: it gets the same
predictions of the same model and the same splits. *MAPIE, cross* and *MAPIE, jackknife+* are its method "plus" with the
same estimator and the same objects. MAPIE draws its own five folds; those of the jackknife+ are the same for both.
"""


class Looked(BaseEstimator):
    """A fitted model whose objects are their positions: the values of all were computed once."""

    def __init__(self, model: Any, X: Any, y: npt.NDArray) -> None:
        self._predicted = model.predict(X)
        for name in ("predict_proba", "decision_function"):
            if hasattr(model, name):
                found = np.asarray(getattr(model, name)(X))
                setattr(self, name, lambda rows, found=found: found[np.ravel(rows)])
                break
        if is_classifier(model):
            self.classes_ = model.classes_
        self.fitted_ = True

    def fit(self, X: Any, y: Any) -> Looked:
        raise NotImplementedError("its values are known for the objects it was made with only")

    def predict(self, rows: Any) -> npt.NDArray:
        """Return the predictions for the objects at the positions `rows`."""
        return self._predicted[np.ravel(rows)]


class LookedClassifier(ClassifierMixin, Looked):
    """The values of a classifier."""


class LookedRegressor(RegressorMixin, Looked):
    """The values of a regressor."""


def load(name: str) -> tuple[Any, npt.NDArray, Any]:
    """Return the objects of a set, their targets, and the model; its parameters are not tuned."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return X, y, make_pipeline(MinMaxScaler(), LogisticRegression(max_iter=1000))
    bunch = fetch(name)
    X, y = bunch.data, np.asarray(bunch.target)
    if name == "ESOL":
        return from_smiles(X), y.astype(float) - float(np.mean(y.astype(float))), sm.KernelRidge(_kernel(name), ALPHA)
    if name == "ENZYMES":
        return X, y, sm.KernelSVC(_kernel(name), C, probability=True)
    if name == "splice":
        return X, y, sm.recipes.nyshd(WeightedDegree(degree=5), update="ridge", random_state=0)
    if name == "sms_spam":
        letters = Spectrum(k=(1, 4), boundaries="words", ignore_case=True)
        return X, y, make_pipeline(sm.KernelFeatures(letters), sm.FeatureWeights(), LogisticRegression(C=C))
    ridge = RidgeClassifierCV(np.logspace(-3, 3, 10))
    return X, y, make_pipeline(sm.RandomConvolutions(random_state=0), StandardScaler(), ridge)


def _kernel(name: str) -> Any:
    return MinMax(WeisfeilerLehman(n_iter=2 if name == "ESOL" else 4))


def measure(task: Task, seeds: int) -> Iterator[Record]:
    """Measure coverage and size on each split, for each method."""
    X, y, model = load(task.name)
    classes = None if task.name == "ESOL" else y
    train, rest = train_test_split(np.arange(len(y)), test_size=0.5, random_state=0, stratify=classes)
    model.fit(take(X, train), y[train])
    looked = (LookedRegressor if classes is None else LookedClassifier)(model, take(X, rest), y[rest])
    gram = None
    if task.name in ("ENZYMES", "ESOL"):
        kernel = _kernel(task.name)
        gram = kernel(kernel.as_objects(X))
    for run in track(range(seeds), task.name, seeds):
        rng = np.random.default_rng(run)
        rows = rng.permutation(len(rest))
        calibration, test = rows[: len(rows) // 2], rows[len(rows) // 2 :]
        found = dict(_of_split(looked, y[rest], calibration, test, run))
        if gram is not None:
            half, other = np.split(rng.permutation(len(y)), [len(y) // 2])
            found |= _of_cross(gram, y, half, other, run)
        for method, (answer, truth) in found.items():
            yield {"set": task.name, "run": run, "method": method, **_scores(answer, truth, classes)}


def _of_split(looked: Any, y: npt.NDArray, fit: npt.NDArray, test: npt.NDArray, seed: int) -> Iterator[tuple[str, Any]]:
    """Yield (method, (sets or intervals, truth)) for methods that calibrate one model."""
    frozen, rows = FrozenEstimator(looked), test[:, None]
    if not is_classifier(looked):
        yield (
            "split",
            (sm.ConformalRegressor(frozen).fit(fit[:, None], y[fit]).predict_interval(rows, COVERAGE), y[test]),
        )
    else:
        options: dict[str, dict[str, Any]] = {"split": {}, "by class": {"by_class": True}}
        if hasattr(looked, "predict_proba"):
            options["split, aps"] = {"conformity_score": "aps", "random_state": seed}
        for method, option in options.items():
            model = sm.ConformalClassifier(frozen, **option).fit(fit[:, None], y[fit])
            yield method, (model.predict_set(rows, COVERAGE), y[test])
    if importlib.util.find_spec("mapie") is None:
        return
    from mapie.classification import SplitConformalClassifier
    from mapie.regression import SplitConformalRegressor

    if not is_classifier(looked):
        theirs = SplitConformalRegressor(looked, confidence_level=COVERAGE, prefit=True)
        yield "MAPIE", (theirs.conformalize(fit[:, None], y[fit]).predict_interval(rows)[1][..., 0], y[test])
    elif hasattr(looked, "predict_proba"):
        theirs = SplitConformalClassifier(looked, confidence_level=COVERAGE, prefit=True)
        yield "MAPIE", (theirs.conformalize(fit[:, None], y[fit]).predict_set(rows)[1][..., 0], y[test])


def _of_cross(
    gram: npt.NDArray, y: npt.NDArray, train: npt.NDArray, test: npt.NDArray, seed: int
) -> Iterator[tuple[str, Any]]:
    """Yield (method, (sets or intervals, truth)) for methods that fit a model for each fold of the objects `train`."""

    def kernel(X: Any, Y: Any = None) -> npt.NDArray:
        return gram[np.ix_(np.ravel(X).astype(int), np.ravel(X if Y is None else Y).astype(int))]

    def as_rows(positions: npt.NDArray) -> npt.NDArray:
        return positions[:, None].astype(float)

    if y.dtype.kind != "f":
        sets = sm.ConformalClassifier(sm.KernelSVC(kernel, C), "cross", random_state=seed)
        yield "cross", (sets.fit(as_rows(train), y[train]).predict_set(as_rows(test), COVERAGE), y[test])
        return
    ridge = sm.KernelRidge(kernel, ALPHA)
    for method, folds, n in (("cross", 5, len(y)), ("jackknife+", "loo", JACKKNIFE)):
        fit, new = train[:n], test[:n]
        ours = sm.ConformalRegressor(ridge, "cross", cv=folds, random_state=seed).fit(as_rows(fit), y[fit])
        yield method, (ours.predict_interval(as_rows(new), COVERAGE), y[new])
        if importlib.util.find_spec("mapie") is not None:
            from mapie.regression import CrossConformalRegressor

            cv = LeaveOneOut() if folds == "loo" else KFold(folds, shuffle=True, random_state=seed)
            theirs = CrossConformalRegressor(ridge, confidence_level=COVERAGE, method="plus", cv=cv)
            theirs.fit_conformalize(as_rows(fit), y[fit])
            yield f"MAPIE, {method}", (theirs.predict_interval(as_rows(new))[1][..., 0], y[new])


def _scores(answer: npt.NDArray, truth: npt.NDArray, classes: npt.NDArray | None) -> Record:
    """Return coverage and size, and of sets the coverage of each class as a text, in the order of the classes."""
    if classes is None:
        held = (answer[:, 0] <= truth) & (truth <= answer[:, 1])
        return {
            "coverage": round(float(held.mean()), 5),
            "size": round(float(np.ptp(answer, axis=1).mean()), 4),
            "of": "",
        }
    known = np.unique(classes)
    held = answer[np.arange(len(truth)), np.searchsorted(known, truth)]
    of = [f"{held[truth == c].sum()}/{(truth == c).sum()}" for c in known]
    size = float(answer.sum(axis=1).mean())
    return {"coverage": round(float(held.mean()), 5), "size": round(size, 4), "of": " ".join(of)}


def present(records: list[Record]) -> tuple[list[Table], None]:
    """Return one table: a row for each set and method."""
    table = Table(f"Coverage {ASKED}", ["set", "method", "coverage", "worst class", "size"])
    for name in distinct(records, "set"):
        for method in distinct([record for record in records if record["set"] == name], "method"):
            covered = np.array(values(records, "coverage", set=name, method=method)) * 100
            error = covered.std(ddof=1) / len(covered) ** 0.5 if len(covered) > 1 else 0.0
            counts = [text.split() for text in values(records, "of", set=name, method=method) if text]
            pairs = np.array([[list(map(int, pair.split("/"))) for pair in row] for row in counts])
            worst = f"{100 * (pairs[..., 0].sum(axis=0) / pairs[..., 1].sum(axis=0)).min():.1f}" if counts else "–"
            size = f"{np.mean(values(records, 'size', set=name, method=method)):.2f}"
            table.rows.append([name, method, f"{covered.mean():.1f} ± {error:.1f}", worst, size])
    return [table], None
