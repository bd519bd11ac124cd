"""How well a model predicts: each object by a copy of the model that was fitted without it, and floors beside it.

Identical objects share a fold, so that no object is predicted by a model that knows its twin.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold

from similia.core import intervals
from similia.core.intervals import wilson
from similia.objects import take
from similia.report import _measures as measures
from similia.report._model import Embedded, Parts, embedded, fitted_through, parts_of, voters_of

Floats = npt.NDArray[np.float64]
_NEIGHBOURS = 5


@dataclass
class Scored:
    """Predictions of objects that the models predicting them had not seen (or that the user says so of).

    Attributes
    ----------
    truth, predicted, floor, neighbours : ndarray, shape (n,)
        True targets; predictions; those that know no object (the most frequent class, the mean); those of the 5 nearest
        neighbours (None where there was nothing to be near to).
    rows : ndarray of int, shape (n,)
        Which objects were predicted.
    values : ndarray of float or None
        Probabilities (n, n_classes), or decision values (n,) or (n, n_classes).
    probabilities : bool
        What `values` are.
    classes : ndarray
        Columns of `values`.
    how : str
        Who predicted, for the page.
    """

    truth: npt.NDArray
    predicted: npt.NDArray
    floor: npt.NDArray
    neighbours: npt.NDArray | None
    rows: npt.NDArray[np.int64]
    values: Floats | None
    probabilities: bool
    classes: npt.NDArray
    how: str
    n_folds: int = 0
    fit_seconds: list[float] = field(default_factory=list)  # for one object
    robustness: measures.Robustness | None = None


def cross_validated(
    recipe: Any, X: Any, y: npt.NDArray, groups: npt.NDArray, cv: int, regression: bool, seed: int = 0, vote: Any = None
) -> Scored:
    """Predict each object by a copy of a recipe fitted to the other folds, or of the vote of which it is the first."""
    n = len(y)
    splits = list(_splits(y, groups, cv, regression, seed))
    kind = np.float64 if regression else y.dtype
    predicted, floor, neighbours = np.empty(n, kind), np.empty(n, kind), np.empty(n, kind)
    classes = np.zeros(0) if regression else np.unique(y)
    values: Floats | None = None
    probabilities, robust, lowered = False, None, False
    seconds: list[float] = []
    for number, (train, test) in enumerate(splits):
        X_train, start = take(X, train), time.perf_counter()
        parts = parts_of(clone(recipe))
        lowered |= _fewer_landmarks(parts, len(train))
        inside = fitted_through(parts, X_train, y[train])
        seconds.append((time.perf_counter() - start) / len(train))
        outside = _inside(parts, take(X, test))
        learner, Z = parts.learner, outside.last
        if vote is not None:
            learner, Z = _refitted(vote, X_train, y[train]), take(X, test)
        predicted[test] = learner.predict(Z)
        floor[test] = y[train].mean() if regression else _most_frequent(y[train])
        neighbours[test] = _voted(_nearest(parts, inside, outside), y[train], regression)
        found, probabilities = (None, False) if regression else _values(learner, Z)
        if found is not None and np.array_equal(learner.classes_, classes):
            values = np.full((n, *found.shape[1:]), np.nan) if values is None else values
            values[test] = found
        codes = inside.codes, outside.codes
        bits_last = inside.last is codes[0]  # nothing comes between them and the learner
        if number == 0 and not regression and bits_last and codes[0] is not None and codes[1] is not None:
            robust = measures.robustness(parts.learner, (codes[0], y[train]), (codes[1], y[test]), fitted=True)
    how = f"{len(splits)} folds: each object was predicted by a copy of the model fitted without it"
    how += " (if the model was chosen among others by these same objects, what is found here is a little too good)"
    how += ", with as many landmarks as there were objects" if lowered else ""
    rows = np.arange(n)
    scored = Scored(y, predicted, floor, neighbours, rows, values, probabilities, classes, how, len(splits), seconds)
    scored.robustness = robust
    return scored


def _refitted(vote: Any, X: Any, y: npt.NDArray) -> Any:
    """Return a copy of models that vote, fitted to objects."""
    vote = clone(vote)
    for voter in voters_of(vote):
        _fewer_landmarks(parts_of(voter), len(y))
    return vote.fit(X, y)


def _fewer_landmarks(parts: Parts, n: int) -> bool:
    """Lower a number of landmarks that is above that of the objects, and return whether it was."""
    first = parts.nystroem
    if first is None or not isinstance(first.n_components, Integral) or first.n_components <= n:
        return False
    first.set_params(n_components=n)
    return True


def as_it_stands(model: Any, X: Any, y: npt.NDArray, regression: bool) -> Scored:
    """Predict all objects by a fitted model that its owner says has seen none of them."""
    parts = parts_of(model)
    learner, last = (parts.learner, _inside(parts, X).last) if parts.vote is None else (parts.vote, X)
    predicted = learner.predict(last)
    floor = np.full(len(y), y.mean() if regression else _most_frequent(y))
    values, probabilities = (None, False) if regression else _values(learner, last)
    classes = np.zeros(0) if regression else learner.classes_
    how = "all objects were predicted by the model as it is, which by your word has seen none of them"
    return Scored(y, predicted, floor, None, np.arange(len(y)), values, probabilities, classes, how)


def _splits(y: npt.NDArray, groups: npt.NDArray, cv: int, regression: bool, seed: int) -> Iterator[tuple[Any, Any]]:
    """Yield training and test positions; of identical objects the first decides the fold."""
    _, firsts, members = np.unique(groups, return_index=True, return_inverse=True)
    if len(firsts) < 2:
        raise ValueError("all objects are the same, which leaves nothing to fit to when one is held out")
    counts = np.unique(y[firsts], return_counts=True)[1]
    folds = min(cv, len(firsts) if regression else max(2, counts.max()))
    folder = KFold if regression else StratifiedKFold
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of classes with fewer objects than folds
        for _, test in folder(folds, shuffle=True, random_state=seed).split(firsts, y[firsts]):
            held_out = np.zeros(len(firsts), dtype=bool)
            held_out[test] = True
            outside = held_out[members]
            yield np.flatnonzero(~outside), np.flatnonzero(outside)


def _inside(parts: Parts, X: Any) -> Embedded:
    """Return objects after the transformers; where there are none, as they are."""
    return embedded(parts, X) if parts.transformers else Embedded(X, None, "", X)


def _nearest(parts: Parts, inside: Embedded, outside: Embedded) -> npt.NDArray[np.int64]:
    """Return the positions of the nearest training objects, nearest first."""
    if not parts.transformers and parts.metric is not None:
        values = parts.metric.between(parts.metric.as_objects(outside.last), parts.metric.as_objects(inside.last))
        values = -values if parts.metric.is_kernel else values
        return np.argsort(values, axis=1, kind="stable")[:, :_NEIGHBOURS]
    from sklearn.neighbors import NearestNeighbors

    found = NearestNeighbors(n_neighbors=min(_NEIGHBOURS, inside.vectors.shape[0])).fit(inside.vectors)
    return found.kneighbors(outside.vectors, return_distance=False)


def _voted(nearest: npt.NDArray[np.int64], y: npt.NDArray, regression: bool) -> npt.NDArray:
    if regression:
        return y[nearest].mean(axis=1)
    classes, codes = np.unique(y, return_inverse=True)
    votes = np.zeros((len(nearest), len(classes)))
    for place, column in enumerate(nearest.T):
        votes[np.arange(len(nearest)), codes[column]] += 1 - 1e-3 * place  # the nearer ones break ties
    return classes[votes.argmax(axis=1)]


def _most_frequent(y: npt.NDArray) -> Any:
    classes, counts = np.unique(y, return_counts=True)
    return classes[np.argmax(counts)]


def _values(learner: Any, Z: Any) -> tuple[Floats | None, bool]:
    for name, probabilities in (("predict_proba", True), ("decision_function", False)):
        if hasattr(learner, name):
            found = np.asarray(getattr(learner, name)(Z), dtype=np.float64)
            return found, probabilities
    return None, False


def balanced(truth: npt.NDArray, predicted: npt.NDArray) -> tuple[float, float, float]:
    """Return balanced accuracy and its 95 % interval."""
    _, labels, counts = np.unique(truth, return_inverse=True, return_counts=True)
    return intervals.balanced(np.bincount(labels, predicted == truth, len(counts)), counts)


def errors(truth: Floats, predicted: Floats) -> dict[str, float]:
    """Return R squared, mean absolute and root mean squared errors."""
    measured = {"R²": _r2, "mean absolute error": _mae, "root mean squared error": _rmse}
    return {name: measure(truth, predicted) for name, measure in measured.items()}


def regression_scores(truth: Floats, predicted: Floats) -> dict[str, tuple[float, float, float]]:
    """Return what `errors` does, with 95 % intervals.

    All three are functions of ratios of means: of squared or absolute errors, to squared distances from the mean, or 1.
    """
    wrong, away = np.abs(truth - predicted), np.abs(truth - truth.mean())
    scale = float(max(wrong.max(), away.max())) or 1.0  # so that squares neither overflow nor vanish
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


def _r2(truth: Floats, predicted: Floats) -> float:
    spread = np.square(truth - truth.mean()).sum()
    return float(1 - np.square(truth - predicted).sum() / spread) if spread else float("nan")


def _mae(truth: Floats, predicted: Floats) -> float:
    return float(np.abs(truth - predicted).mean())


def _rmse(truth: Floats, predicted: Floats) -> float:
    return float(np.sqrt(np.square(truth - predicted).mean()))


def reliability(scored: Scored, bins: int = 10) -> tuple[Floats, Floats, npt.NDArray[np.int64], Floats] | None:
    """Return, for groups of objects alike in confidence: mean confidence, accuracy, size, and intervals (groups, 2).

    Confidence is the largest probability, in ten steps of equal width; or the lead of the winning decision value, in
    ten groups of equal size, as a quantile. None where there is neither, or a fold lacked a class.
    """
    values = scored.values
    if values is None or np.isnan(values).any():
        return None
    right = (scored.predicted == scored.truth).astype(float)
    if scored.probabilities:
        confidence = values.max(axis=1)
        group = np.minimum((confidence * bins).astype(int), bins - 1)
    else:
        ordered = np.sort(values, axis=1) if values.ndim == 2 else None
        lead = np.abs(values) if ordered is None else ordered[:, -1] - ordered[:, -2]
        confidence = (np.argsort(np.argsort(lead, kind="stable"), kind="stable") + 0.5) / len(lead)
        group = np.minimum((confidence * bins).astype(int), bins - 1)
    used = [members for g in range(bins) if (members := group == g).any()]
    sizes = np.array([members.sum() for members in used])
    means = np.array([confidence[members].mean() for members in used])
    accuracies = np.array([right[members].mean() for members in used])
    bounds = np.array([wilson(float(right[members].mean()), int(members.sum())) for members in used])
    return means, accuracies, sizes, bounds
