"""Predict each object with a model that has not seen it, and score the predictions."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold
from threadpoolctl import threadpool_limits

from similia.core import intervals
from similia.core.intervals import wilson
from similia.embeddings import Nystroem
from similia.objects import take
from similia.report._model import Embedded, Parts, fitted_through, is_numeric, parts_of, transformed, unfrozen
from similia.report.bits import RobustnessDisplay

Floats = npt.NDArray[np.float64]
_NEIGHBOURS = 5
COVERAGES = (0.8, 0.9, 0.95)  # asked of conformal models


@dataclass
class Scored:
    """Predictions for unseen objects: by cross-validation, or by a model that, by the user's word, has seen none.

    Attributes
    ----------
    truth, predicted, floor, neighbours : ndarray, shape (n,)
        True targets; predictions of the model; constant predictions (the most frequent class or the mean); predictions
        by the 5 nearest neighbours (None without a training set, or if nothing says which objects are near).
    values : ndarray of float or None
        Probabilities (n, n_classes), or decision values (n,) or (n, n_classes).
    probabilities : bool
        Whether `values` are probabilities.
    how : str
        A sentence for the page that says how the predictions were made.
    n_folds : int
        Number of folds; 0 without cross-validation.
    fit_seconds : list of float
        Time of each fold's fit, per object.
    robustness : RobustnessDisplay or None
        Measured on the first fold, if the learner takes packed bits.
    conformal : dict of float to Answers or str
        For a conformal model, its answers at each of `COVERAGES`, or an error message if it gives none.
    """

    truth: npt.NDArray
    predicted: npt.NDArray
    floor: npt.NDArray
    neighbours: npt.NDArray | None
    values: Floats | None
    probabilities: bool
    how: str
    n_folds: int = 0
    fit_seconds: list[float] = field(default_factory=list)
    robustness: RobustnessDisplay | None = None
    conformal: dict[float, Answers | str] = field(default_factory=dict)


class Answers(NamedTuple):
    """Sets of labels, or intervals, of n objects: whether each one holds the truth, and its number of labels or width.

    Both are float64 arrays of shape (n,); 1.0 means that the truth is held.
    """

    held: Floats
    sizes: Floats


def cross_validated(
    recipe: Any, X: Any, y: npt.NDArray, groups: npt.NDArray, cv: int, regression: bool, seed: int = 0, vote: Any = None
) -> Scored:
    """Predict the objects of each fold by a copy of `recipe` (or of the ensemble `vote`) fitted to the other folds."""
    n = len(y)
    splits = list(_splits(y, groups, cv, regression, seed))
    kind = np.float64 if regression else y.dtype
    predicted, floor = np.empty(n, kind), np.empty(n, kind)
    neighbours: npt.NDArray | None = np.empty(n, kind)
    classes = np.zeros(0) if regression else np.unique(y)
    values: Floats | None = None
    probabilities, robustness, lowered = False, None, False
    seconds: list[float] = []
    conformal: dict[float, Answers | str] = {}
    for number, (train, test) in enumerate(splits):
        X_train, start = take(X, train), time.perf_counter()
        copy = clone(recipe)
        lowered |= _fewer_landmarks(copy, len(train))
        parts = parts_of(copy)
        inside = fitted_through(parts, X_train, y[train])
        seconds.append((time.perf_counter() - start) / len(train))
        outside = transformed(parts, take(X, test))
        learner, Z = parts.learner, outside.last
        if vote is not None:
            learner, Z = _refitted(vote, X_train, y[train]), take(X, test)
        predicted[test] = learner.predict(Z)
        floor[test] = y[train].mean() if regression else _most_frequent(y[train])
        nearest = _nearest(parts, inside, outside)
        if neighbours is None or nearest is None:
            neighbours = None
        else:
            neighbours[test] = _voted(nearest, y[train], regression)
        found, probabilities = (None, False) if regression else _values(learner, Z)
        if found is not None and np.array_equal(learner.classes_, classes):
            values = np.full((n, *found.shape[1:]), np.nan) if values is None else values
            values[test] = found
        for coverage, part in _conformal(learner, Z, y[test]).items():
            whole = conformal.setdefault(coverage, Answers(np.full(n, np.nan), np.full(n, np.nan)))
            if isinstance(part, str) or isinstance(whole, str):
                conformal[coverage] = part if isinstance(part, str) else whole
            else:
                whole.held[test], whole.sizes[test] = part
        takes_bits = inside.last is inside.codes  # no step is between the bits and the learner
        if number == 0 and not regression and takes_bits and inside.codes is not None and outside.codes is not None:
            data = (inside.codes, y[train]), (outside.codes, y[test])
            robustness = RobustnessDisplay._measured(parts.learner, *data, fitted=True)
    how = f"{len(splits)} folds: each object was predicted by a copy of the model fitted without it"
    how += " (if these objects were also used to choose the model, the scores are a little too good)"
    how += ", with as many landmarks as there were objects" if lowered else ""
    return Scored(
        y, predicted, floor, neighbours, values, probabilities, how, len(splits), seconds, robustness, conformal
    )


def _refitted(vote: Any, X: Any, y: npt.NDArray) -> Any:
    """Return a copy of an ensemble, fitted to `X` with the frozen models in it; see also `_fewer_landmarks`."""
    vote = unfrozen(vote)
    _fewer_landmarks(vote, len(y))
    return vote.fit(X, y)


def _fewer_landmarks(model: Any, n: int) -> bool:
    """Reduce the number of landmarks to `n` wherever an unfitted model has more; return whether it had."""
    found = [part for part in (model, *model.get_params().values()) if isinstance(part, Nystroem)]
    found = [part for part in found if isinstance(part.n_components, Integral) and part.n_components > n]
    for part in found:
        part.set_params(n_components=n)
    return bool(found)


def as_it_stands(model: Any, X: Any, y: npt.NDArray, regression: bool) -> Scored:
    """Predict all objects with the fitted model itself; the user states that it has seen none of them."""
    parts = parts_of(model)
    learner, last = (parts.learner, transformed(parts, X).last) if parts.vote is None else (parts.vote, X)
    floor = np.full(len(y), y.mean() if regression else _most_frequent(y))
    values, probabilities = (None, False) if regression else _values(learner, last)
    how = "all objects were predicted by the model itself; you stated that it has seen none of them"
    conformal = _conformal(learner, last, y)
    return Scored(y, learner.predict(last), floor, None, values, probabilities, how, conformal=conformal)


def _splits(y: npt.NDArray, groups: npt.NDArray, cv: int, regression: bool, seed: int) -> Iterator[tuple[Any, Any]]:
    """Yield the training and test positions of each fold; the objects of a group stay in one fold."""
    _, firsts, members = np.unique(groups, return_index=True, return_inverse=True)
    if len(firsts) < 2:
        raise ValueError("all objects are equal, so that nothing is left to fit to if one is held out")
    counts = np.unique(y[firsts], return_counts=True)[1]
    folds = min(cv, len(firsts) if regression else max(2, counts.max()))
    folder = KFold if regression else StratifiedKFold
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about classes with fewer objects than folds
        for _, test in folder(folds, shuffle=True, random_state=seed).split(firsts, y[firsts]):
            outside = np.isin(members, test)
            yield np.flatnonzero(~outside), np.flatnonzero(outside)


def _nearest(parts: Parts, inside: Embedded, outside: Embedded) -> npt.NDArray[np.int64] | None:
    """Return the positions of the (at most 5) objects of `inside` nearest to each of `outside`, nearest first.

    Return None if the model has neither vectors nor a kernel or distance for its objects.
    """
    metric = parts.metric_behind
    if metric is not None and inside.codes is None and not (inside.how and is_numeric(inside.vectors)):
        distances = metric.distances(metric.as_objects(outside.vectors), metric.as_objects(inside.vectors))
        return np.argsort(distances, axis=1, kind="stable")[:, :_NEIGHBOURS]
    if not is_numeric(inside.vectors):
        return None
    from sklearn.neighbors import NearestNeighbors

    with threadpool_limits(1):  # several threads would take longer
        found = NearestNeighbors(n_neighbors=min(_NEIGHBOURS, inside.vectors.shape[0])).fit(inside.vectors)
        return found.kneighbors(outside.vectors, return_distance=False)


def _voted(nearest: npt.NDArray[np.int64], y: npt.NDArray, regression: bool) -> npt.NDArray:
    """Return the mean target or the most frequent class among the nearest training objects of each test object."""
    if regression:
        return y[nearest].mean(axis=1)
    classes, codes = np.unique(y, return_inverse=True)
    votes = np.zeros((len(nearest), len(classes)))
    for place, column in enumerate(nearest.T):
        votes[np.arange(len(nearest)), codes[column]] += 1 - 1e-3 * place  # nearer neighbours break ties
    return classes[votes.argmax(axis=1)]


def _most_frequent(y: npt.NDArray) -> Any:
    classes, counts = np.unique(y, return_counts=True)
    return classes[np.argmax(counts)]


def _values(learner: Any, Z: Any) -> tuple[Floats | None, bool]:
    """Return (probabilities, True), or (decision values, False), or (None, False) if the learner gives neither."""
    for name, probabilities in (("predict_proba", True), ("decision_function", False)):
        if hasattr(learner, name):
            return np.asarray(getattr(learner, name)(Z), dtype=np.float64), probabilities
    return None, False


def is_conformal(model: Any) -> bool:
    """Return whether a model predicts sets of labels, or intervals, with a coverage that the caller chooses."""
    return hasattr(model, "predict_set") or hasattr(model, "predict_interval")


def _conformal(learner: Any, Z: Any, truth: npt.NDArray) -> dict[float, Answers | str]:
    """Return the answers of a conformal model at each of `COVERAGES`, or its error; {} for other models."""
    found: dict[float, Answers | str] = {}
    for coverage in COVERAGES if is_conformal(learner) else ():
        try:
            found[coverage] = _answers(learner, Z, truth, coverage)
        except ValueError as error:  # there are too few calibration objects
            found[coverage] = str(error)
    return found


def _answers(learner: Any, Z: Any, truth: npt.NDArray, coverage: float) -> Answers:
    if hasattr(learner, "predict_set"):
        sets = learner.predict_set(Z, coverage)
        held = sets & (learner.classes_ == truth[:, None])  # no set holds a label that the model does not know
        return Answers(held.any(axis=1).astype(float), sets.sum(axis=1).astype(float))
    low, high = learner.predict_interval(Z, coverage).T
    return Answers(((low <= truth) & (truth <= high)).astype(float), np.maximum(high - low, 0.0))


def balanced(truth: npt.NDArray, predicted: npt.NDArray) -> tuple[float, float, float]:
    """Return balanced accuracy and the two ends of its 95 % interval."""
    _, labels, counts = np.unique(truth, return_inverse=True, return_counts=True)
    return intervals.balanced(np.bincount(labels, predicted == truth, len(counts)), counts)


def errors(truth: Floats, predicted: Floats) -> dict[str, float]:
    """Return R squared, the mean absolute error and the root mean squared error, by name."""
    wrong, spread = truth - predicted, np.square(truth - truth.mean()).sum()
    return {
        "R²": float(1 - np.square(wrong).sum() / spread) if spread else float("nan"),
        "mean absolute error": float(np.abs(wrong).mean()),
        "root mean squared error": float(np.sqrt(np.square(wrong).mean())),
    }


def regression_scores(truth: Floats, predicted: Floats) -> dict[str, tuple[float, float, float]]:
    """Return each score of `errors` with the ends of its 95 % interval: (value, low, high), by name.

    An interval is that of a ratio of means: for R squared, the mean squared error divided by the mean squared distance
    of targets from their mean; for the other scores, the mean (squared) error divided by 1.
    """
    wrong, away = np.abs(truth - predicted), np.abs(truth - truth.mean())
    scale = float(max(wrong.max(), away.max())) or 1.0  # prevents overflow and underflow of squares
    wrong, away, ones = wrong / scale, away / scale, np.ones(len(truth))
    pairs = (wrong**2, away**2), (wrong, ones), (wrong**2, ones)
    unexplained, mean, square = (intervals.ratio(a, b, np.random.default_rng(0)) for a, b in pairs)
    ends = [
        (1 - unexplained[1], 1 - unexplained[0]),
        (scale * mean[0], scale * mean[1]),
        (scale * float(np.sqrt(square[0])), scale * float(np.sqrt(square[1]))),
    ]
    values = errors(truth, predicted)
    return {name: (value, *end) for (name, value), end in zip(values.items(), ends, strict=True)}


def lead(scored: Scored) -> Floats | None:
    """Return each object's largest value minus its second largest; None if ``scored.values`` is None or has NaN.

    With one decision value for each object, this is the absolute decision value.
    """
    values = scored.values
    if values is None or np.isnan(values).any():
        return None
    if values.ndim == 1:
        return np.abs(values)
    ordered = np.sort(values, axis=1)
    return ordered[:, -1] - ordered[:, -2]


def reliability(scored: Scored, bins: int = 10) -> tuple[Floats, Floats, npt.NDArray[np.int64], Floats] | None:
    """Group objects by confidence; return each group's mean confidence, accuracy and size, and the accuracy's interval.

    Confidence is the largest probability, in bins of equal width. Without probabilities, it is the rank of the object's
    `lead`, scaled to 0..1, in bins of equal size. Return None where `lead` returns None.
    """
    values, leads = scored.values, lead(scored)
    if values is None or leads is None:
        return None
    right = (scored.predicted == scored.truth).astype(float)
    if scored.probabilities:
        confidence = values.max(axis=1)
    else:
        confidence = (np.argsort(np.argsort(leads, kind="stable"), kind="stable") + 0.5) / len(leads)
    group = np.minimum((confidence * bins).astype(int), bins - 1)
    used = [members for g in range(bins) if (members := group == g).any()]
    sizes = np.array([members.sum() for members in used])
    means = np.array([confidence[members].mean() for members in used])
    accuracies = np.array([right[members].mean() for members in used])
    bounds = np.array([wilson(float(right[members].mean()), int(members.sum())) for members in used])
    return means, accuracies, sizes, bounds
