"""Data shared by all sections of a report: the model, the objects, and results that are computed once."""

from __future__ import annotations

import os
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import ClusterMixin, clone
from sklearn.model_selection import KFold, StratifiedKFold
from threadpoolctl import threadpool_limits

from similia.core import intervals
from similia.core.intervals import wilson
from similia.core.text import counted, short
from similia.core.validation import BadParameter, check_labels
from similia.embeddings import Nystroem
from similia.learn.targets import as_numbers
from similia.objects import GraphBatch, StringBatch, as_graphs, as_strings, n_objects, take
from similia.objects.graph_batch import BONDS, SYMBOLS
from similia.objects.identical import are_among, identical, with_groups
from similia.objects.molecules import SmilesBatch, from_smiles, has_rdkit, in_the_plane
from similia.objects.sequences import Batch, at_least_one, segments
from similia.objects.tables import is_frame
from similia.pipelines import decides_in_pairs
from similia.report import _model as models
from similia.report._model import Embedded, Parts, fitted_through, is_numeric, parts_of, taken, transformed, unfrozen
from similia.report.bits import RobustnessDisplay
from similia.selection.folds import kept_together
from similia.similarity import as_objects

Floats = npt.NDArray[np.float64]
_NEIGHBOURS = 5
COVERAGES = (0.8, 0.9, 0.95)  # asked of conformal models
_BINS = 10  # of confidence
_CLASSES = 10  # maximum number of classes in an error message
_TIMED = 500  # number of objects transformed to time a single one
_LETTERS = 280  # of a text that are shown
_POINTS = 48  # of a series or vector that are drawn; twice as many of a set
_CHANNELS = 3  # of a series that are drawn
_NODES = 48  # of a graph that are drawn
_CALLED = {"series": "time series", "sets": "point sets"}  # names of batches on the page
TEXTS = ("strings", "objects")  # kinds that are shown as text
SIZE_OF = {
    "strings": "letters", "molecules": "letters of SMILES", "graphs": "nodes", "time series": "time points",
    "point sets": "points", "vectors": "numbers other than 0",
}  # fmt: skip
Json = dict[str, Any]


@dataclass
class Scored:
    """Predictions for unseen objects."""

    truth: npt.NDArray
    predicted: npt.NDArray
    floor: npt.NDArray  # constant predictions: the most frequent class or the mean
    neighbours: npt.NDArray | None  # predictions by the 5 nearest; None without a training set or a metric
    values: Floats | None  # probabilities (n, n_classes), or decision values (n,) or (n, n_classes)
    probabilities: bool
    how: str  # a sentence for the page that says how the predictions were made
    n_folds: int = 0
    fit_seconds: list[float] = field(default_factory=list)  # of each fold, per object
    robustness: RobustnessDisplay | None = None  # on the first fold, if the learner takes packed bits
    conformal: dict[float, Answers | str] = field(default_factory=dict)  # at `COVERAGES`; str is an error message


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
    """Predict all objects with the fitted model itself."""
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
    if not is_numeric(inside.vectors) or models.has_missing(inside.vectors) or models.has_missing(outside.vectors):
        return None
    from sklearn.neighbors import NearestNeighbors

    with threadpool_limits(1):  # several threads would take longer
        found = NearestNeighbors(n_neighbors=min(_NEIGHBOURS, inside.vectors.shape[0])).fit(inside.vectors)
        return found.kneighbors(outside.vectors, return_distance=False)


def _voted(nearest: npt.NDArray[np.int64], y: npt.NDArray, regression: bool) -> npt.NDArray:
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
    """Return (probabilities, True), or (decision values, False), or (None, False) if classes have neither."""
    if hasattr(learner, "predict_proba"):
        return np.asarray(learner.predict_proba(Z), dtype=np.float64), True
    if hasattr(learner, "decision_function") and not decides_in_pairs(learner):
        return np.asarray(learner.decision_function(Z), dtype=np.float64), False
    return None, False


def is_conformal(model: Any) -> bool:
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
    _, labels, counts = np.unique(truth, return_inverse=True, return_counts=True)
    return intervals.balanced(np.bincount(labels, predicted == truth, len(counts)), counts)


def errors(truth: Floats, predicted: Floats) -> dict[str, float]:
    wrong, spread = truth - predicted, np.square(truth - truth.mean()).sum()
    return {
        "R²": float(1 - np.square(wrong).sum() / spread) if spread else float("nan"),
        "mean absolute error": float(np.abs(wrong).mean()),
        "root mean squared error": float(np.sqrt(np.square(wrong).mean())),
    }


def regression_scores(truth: Floats, predicted: Floats) -> dict[str, tuple[float, float, float]]:
    """Return each score of `errors` with the ends of its 95 % interval: (value, low, high), by name.

    An interval is that of a ratio of means: for R squared, the mean squared error divided by the mean squared distance
    of targets from their mean.
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


def reliability(scored: Scored) -> tuple[Floats, Floats, npt.NDArray[np.int64], Floats] | None:
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
    group = np.minimum((confidence * _BINS).astype(int), _BINS - 1)
    used = [members for g in range(_BINS) if (members := group == g).any()]
    sizes = np.array([members.sum() for members in used])
    means = np.array([confidence[members].mean() for members in used])
    accuracies = np.array([right[members].mean() for members in used])
    bounds = np.array([wilson(float(right[members].mean()), int(members.sum())) for members in used])
    return means, accuracies, sizes, bounds


@dataclass
class Context:
    """Data shared by the sections of a report: the model, the n objects on the page, and results about them."""

    parts: Parts  # of the fitted model
    recipe: Any  # an unfitted copy of the model
    tuned: bool  # whether a search chose the parameters of the recipe
    X: Any
    y: npt.NDArray | None
    names: list[str]
    n_all: int  # number of given objects; those on the page are a sample of them
    seen: Seen
    task: str | None
    seed: int
    refitted: bool  # whether the given model was not fitted, and has been fitted to these objects
    scored: Scored | None = None
    unscored: str = ""  # the reason, as a sentence, if there are no scores
    transform_seconds: float = 0.0  # of one object
    vectors: models.Embedded | None = None
    no_vectors: str = ""  # the reason if there are no vectors
    near_copies: bool = False  # whether there are near copies of texts, which are in the same fold

    @cached_property
    def known(self) -> npt.NDArray[np.bool_]:
        """Boolean mask of the objects that equal a landmark as the model compares them; all False without landmarks."""
        nystroem, X = self.parts.nystroem, self.X
        if nystroem is None or self.vectors is None:
            return np.zeros(self.n, dtype=bool)
        for step in self.parts.transformers[: self.parts.transformers.index(nystroem)]:
            X = quietly(step.transform, X)
        X = as_objects(nystroem.kernel_, X)
        alike = type(X) is type(nystroem.landmarks_) and not is_frame(X)
        return are_among(X, nystroem.landmarks_) if alike else np.zeros(self.n, bool)

    @property
    def n(self) -> int:
        return len(self.names)

    @property
    def is_regression(self) -> bool:
        return self.task == "regression"


def gather(
    model: Any, X: Any, y: Any, names: Any, unseen: bool, cv: int, max_objects: int, seed: int, groups: Any = None
) -> Context:  # fmt: skip
    """Return the data of a report: check the input, sample at most `max_objects` objects, fit, score and embed."""
    n_all = at_least_one(X)
    labels = None if y is None else check_labels(y, n_all)
    names = checked_names(names, n_all)
    refitted = not models.fitted(model)
    if unseen and refitted:
        raise ValueError("unseen=True is for a fitted model, and this model is not fitted; fit it, or drop unseen")
    _refuse_precomputed(model)
    chosen = models.sampled(X, max_objects, np.random.default_rng(seed))
    X = taken(X, chosen)
    labels = None if labels is None else targets_for(model, _as_targets(labels[chosen]))
    if labels is not None and not refitted:
        _check_known(parts_of(model), labels)
    recipe, tuned = models.as_recipe(model)
    if refitted:
        model = quietly(clone(model).fit, X, *([] if labels is None else [labels]))
    parts = parts_of(model)
    seen, task = look_at(X, parts), models.task_of(parts)
    context = Context(parts, recipe, tuned, X, labels, named(names, chosen), n_all, seen, task, seed, refitted)
    sharing = seen.groups
    if groups is None and labels is not None and task is not None and isinstance(seen.batch, StringBatch):
        sharing, notes = kept_together(seen.batch, sharing, labels, cv, task == "classification")
        context.near_copies = bool(notes)
    elif groups is not None:
        sharing = with_groups(sharing, np.asarray(groups)[chosen] if np.shape(groups) == (n_all,) else groups)
    _score(context, unseen, cv, sharing)
    _embed(context)
    return context


def _as_targets(y: npt.NDArray) -> npt.NDArray:
    """Return `y` as an array of one type; labels of mixed types all become strings."""
    if y.dtype != object:
        return y
    kinds = {type(value) for value in y.tolist()}
    return np.array(y.tolist()) if len(kinds) == 1 else np.array([str(value) for value in y.tolist()])


def targets_for(model: Any, y: npt.NDArray) -> npt.NDArray:
    """Return `y` as numbers for a regressor; for a classifier, in the type of its classes, if possible."""
    parts = parts_of(model)
    if models.task_of(parts) == "regression":
        numbers = as_numbers(y)
        if numbers is None:
            other = next(value for value in y.tolist() if as_numbers([value]) is None)
            raise ValueError(
                f"the model predicts numbers, but the target {short(other)} is not a number; give targets like those "
                "to which the model was fitted"
            )
        return numbers
    classes = getattr(parts.whole, "classes_", None)
    if not isinstance(classes, np.ndarray):
        return y
    if classes.dtype.kind == "U" and y.dtype.kind in "iubf":
        return y.astype(str)
    numbers = as_numbers(y) if classes.dtype.kind in "iuf" and y.dtype.kind == "U" else None
    return y if numbers is None else numbers.astype(classes.dtype)


def _check_known(parts: Parts, y: npt.NDArray) -> None:
    """Raise if no label in `y` is a class of a fitted classifier: they are probably not the labels that it predicts."""
    classes = getattr(parts.whole, "classes_", None)
    if models.task_of(parts) != "classification" or not isinstance(classes, np.ndarray) or np.isin(y, classes).any():
        return
    known = ", ".join(map(str, classes[:_CLASSES].tolist())) + (", ..." if len(classes) > _CLASSES else "")
    these = "the label" if len(y) == 1 else f"none of these {len(y)} labels, such as {short(y[0].item())},"
    raise ValueError(
        f"{these} is {'no' if len(y) == 1 else 'a'} class of the model ({known}); give the labels that it predicts"
    )


def _refuse_precomputed(model: Any) -> None:
    first = parts_of(model).transformers or [parts_of(model).learner]
    if "precomputed" in (getattr(first[0], name, None) for name in ("kernel", "metric")):
        raise ValueError("a report shows objects, but the kernel is precomputed; give a model with the kernel itself")


def _score(context: Context, unseen: bool, cv: int, groups: npt.NDArray[np.int64]) -> None:
    y, regression = context.y, context.is_regression
    if y is None:
        context.unscored = "No targets were given, so predictions cannot be compared with the truth."
    elif isinstance(context.parts.learner, ClusterMixin):
        context.unscored = (
            f"The model ({context.parts}) predicts clusters, which are no classes; similia.report.write_clusters, or "
            "similia cluster --report, writes the page of clusters."
        )
    elif context.task is None:
        context.unscored = f"The model ({context.parts}) makes no predictions: it ends in vectors or bits."
    elif not regression and len(np.unique(y)) < 2:
        context.unscored = f"All objects have the same class, {y[0]}, so there is nothing to distinguish."
    elif len(y) < 4:
        context.unscored = f"{len(y)} objects are too few to hold some of them out."
    else:
        try:
            if unseen:
                context.scored = quietly(as_it_stands, context.parts.whole, context.X, y, regression)
            else:
                arguments = (context.recipe, context.X, y, groups, cv, regression, context.seed, context.parts.vote)
                context.scored = quietly(cross_validated, *arguments)
        except (ValueError, TypeError) as error:
            context.unscored = f"Scoring stopped: {error}"


def _embed(context: Context) -> None:
    few = taken(context.X, np.arange(min(context.n, _TIMED)))
    try:
        context.vectors = quietly(models.vectors_only, context.parts, context.X, context.seed)
        start = time.perf_counter()
        quietly(models.embedded, context.parts, few, context.seed)
        context.transform_seconds = (time.perf_counter() - start) / n_objects(few)
    except (ValueError, TypeError) as error:
        context.no_vectors = str(error)


def quietly(function: Any, *arguments: Any, **options: Any) -> Any:
    """Return ``function(*arguments, **options)`` and hide its `UserWarning`s."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # such as indefinite kernels; the page reports them
        return function(*arguments, **options)


def refuse_path(y: Any, name: str) -> None:
    """Raise if the labels `y`, called `name`, are a path: that of the page comes after them."""
    if isinstance(y, str | os.PathLike):
        where = f"to write the page there, give path={str(y)!r}"
        raise BadParameter(name, "one label per object, or None", short(str(y)), where)


def checked_names(names: Any, n: int) -> Any:
    """Return names as a list, but a mapping or None as it is; raise unless there is one for each of `n` objects."""
    if names is not None and n_objects(names) != n:
        raise ValueError(f"names has {n_objects(names)} entries for {n} objects; give one name per object")
    return names if names is None or isinstance(names, Mapping) else list(names)


def named(names: Any, rows: npt.NDArray[np.int64]) -> list[str]:
    return [f"object {i}" if names is None else str(names[i]) for i in rows.tolist()]


# ---- the objects
@dataclass(frozen=True)
class Seen:
    """A collection of n objects whose kind has been recognised."""

    kind: str  # a key of `SIZE_OF`, or "objects"
    batch: Any  # the objects in the layout of the kind
    sizes: npt.NDArray[np.int64] | None  # shape (n,)
    groups: npt.NDArray[np.int64]  # shape (n,), equal for identical objects

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def duplicates(self) -> int:
        return len(self) - len(np.unique(self.groups))


def look_at(X: Any, parts: Parts | None = None) -> Seen:
    """Recognise the kind of the objects in `X`: the kind that the model compares, or else the first one that fits."""
    batch = _layout(X, parts)
    if isinstance(batch, SmilesBatch):
        kind = "molecules"
    elif isinstance(batch, Batch):
        kind = _CALLED.get(batch.kind, batch.kind)
    else:
        kind = "vectors" if sp.issparse(batch) or isinstance(batch, np.ndarray) else "objects"
    sizes: Any = None
    if isinstance(batch, GraphBatch):
        sizes = np.diff(batch.node_offsets)
    elif kind in ("strings", "molecules", "time series", "point sets"):
        sizes = np.diff(batch.offsets)
    elif kind == "vectors":
        sizes = np.asarray((batch != 0).sum(axis=1)).ravel()
    return Seen(kind, batch, sizes, identical(batch))


def _layout(X: Any, parts: Parts | None) -> Any:
    """Return the objects as a `Batch` (such as strings or graphs), else as a matrix of numbers, else as a list."""
    if parts is not None and parts.metric is not None:
        X = parts.metric.as_objects(X)
    if isinstance(X, Batch):
        return X
    if sp.issparse(X):
        return X.tocsr()
    if getattr(X, "ndim", 0) == 2:
        array = np.asarray(X)
        if array.dtype.kind in "biuf":
            return array
    for read in (as_strings, as_graphs):
        try:
            return read(X)
        except (TypeError, ValueError, AttributeError):
            continue
    return [X[i] for i in range(n_objects(X))] if not hasattr(X, "iloc") else X.to_numpy().tolist()


def described(seen: Seen, i: int) -> str:
    size = 0 if seen.sizes is None else int(seen.sizes[i])
    if seen.kind in ("strings", "molecules"):
        return _text(seen.batch[i])
    if seen.kind == "graphs":
        graph = seen.batch[i]
        n_edges = len(np.unique(np.sort(graph.edge_index, axis=0), axis=1).T)
        return f"graph of {size} nodes{_formula(graph)} and {n_edges} edges"
    if seen.kind == "time series":
        return f"series of {size} time points, {counted(seen.batch.n_dims, 'channel')}"
    if seen.kind == "point sets":
        return f"{size} points of dimension {seen.batch.n_dims}"
    if seen.kind == "vectors":
        return f"vector of {seen.batch.shape[1]} numbers, {size} of them not 0"
    return short(seen.batch[i], _LETTERS)


def on_page(seen: Seen, i: int, name: str) -> Json:
    return {"i": i, "name": name, "text": described(seen, i), "is_text": seen.kind in TEXTS}


def _symbols(graph: GraphBatch) -> list[str]:
    labels = [] if graph.node_labels is None else graph.node_labels.tolist()
    return [SYMBOLS[label] for label in labels] if all(label in SYMBOLS for label in labels) else []


def _formula(graph: GraphBatch) -> str:
    """Return the molecular formula in parentheses, carbon first; "" if the graph is not a molecule."""
    numbers = sorted(Counter(_symbols(graph)).items(), key=lambda item: (item[0] != "C", item[0]))
    text = " ".join(f"{symbol}{n}" if n > 1 else symbol for symbol, n in numbers)
    return f" ({text})" if text else ""


def _text(value: str | bytes) -> str:
    text = value.decode("latin-1") if isinstance(value, bytes) else value
    text = text.encode("utf-8", "replace").decode("utf-8")  # lone surrogates cannot be written
    if text == "":
        return "(empty)"
    return text if len(text) <= _LETTERS else f"{text[:_LETTERS]}… ({len(text):,} letters)"


def for_page(seen: Seen, chosen: npt.NDArray[np.bool_] | None = None) -> list[Json]:
    """Return a dict per object: its description ``t`` and, if `chosen`, its curves ``c``, points ``p`` or graph ``g``.

    By default, all objects are chosen.
    """
    if chosen is None:
        chosen = np.ones(len(seen), dtype=bool)
    if seen.kind in ("graphs", "molecules"):
        return _graphs(seen, chosen)
    drawn: list[Json] = []
    low, spread = _bounds(seen)
    for i in range(len(seen)):
        shown: Json = {"t": described(seen, i)}
        kind = seen.kind if chosen[i] else ""
        if kind == "time series":
            shown["c"] = [_curve(channel) for channel in np.asarray(seen.batch[i], dtype=np.float64).T[:_CHANNELS]]
        elif kind == "vectors":
            row = seen.batch[[i]].toarray() if sp.issparse(seen.batch) else seen.batch[i]
            shown["c"] = [_curve(np.asarray(row, dtype=np.float64).ravel())]
        elif kind == "point sets":
            points = (seen.batch[i][: 2 * _POINTS, :2] - low) / spread * 100
            points = np.column_stack([points, np.full(len(points), 50)]) if points.shape[1] == 1 else points
            shown["p"] = points.round().astype(int).ravel().tolist()
        drawn.append(shown)
    return drawn


def _curve(values: npt.NDArray[np.float64]) -> list[int]:
    """Shorten a curve to at most 48 means of consecutive values, and scale these to integers from 0 to 100.

    Missing values are left out.
    """
    values = values[~np.isnan(values)]
    if len(values) > _POINTS:
        edges = np.linspace(0, len(values), _POINTS + 1).astype(int)
        values = np.add.reduceat(values, edges[:-1]) / np.diff(edges)
    low, high = (values.min(), values.max()) if len(values) else (0.0, 0.0)
    scaled = (values - low) / (high - low) * 100 if high > low else np.full(len(values), 50.0)
    return scaled.round().astype(int).tolist()


def _bounds(seen: Seen) -> tuple[npt.NDArray, Any]:
    """Return the minima of the first two coordinates over all point sets, and the larger of the two ranges."""
    if seen.kind != "point sets" or not len(seen.batch.values):
        return np.zeros(2), 1.0
    values = seen.batch.values[:, :2]
    low = values.min(axis=0)
    return low, max(float((values.max(axis=0) - low).max()), np.finfo(float).tiny)


def _placed(symbols: list[str], bonds: list[tuple[int, int, str]]) -> Json:
    """Return RDKit's 2-D atom positions times 100 (``xy``) and a sign for each bond (``b``); {} if a bond has none."""
    if not all(bond for *_, bond in bonds):
        return {}
    conformer = in_the_plane(symbols, bonds).GetConformer()
    places = np.array([list(conformer.GetAtomPosition(v))[:2] for v in range(len(symbols))])
    return {"xy": (places * [100, -100]).round().astype(int).ravel().tolist(), "b": "".join(bond for *_, bond in bonds)}


def _graphs(seen: Seen, chosen: npt.NDArray[np.bool_]) -> list[Json]:
    drawn: list[Json] = [{"t": described(seen, i)} for i in range(len(seen))]
    rows = np.flatnonzero(chosen)
    if not len(rows):
        return drawn
    graphs = seen.batch.take(rows)
    graphs = from_smiles(graphs, details=False) if isinstance(graphs, SmilesBatch) else graphs
    for i, drawing in zip(rows.tolist(), _drawings(graphs), strict=True):
        more = f", of which {_NODES} are drawn" if seen.kind == "graphs" and seen.sizes[i] > _NODES else ""  # type: ignore[index]
        drawn[i] = {"t": drawn[i]["t"] + more, **drawing}
    return drawn


def _drawings(batch: GraphBatch) -> Iterator[Json]:
    """Yield a dict per graph, from which the page draws at most its first 48 nodes.

    ``g`` holds the number of drawn nodes, then the edges as pairs of nodes; ``l`` holds the rank of each node's label
    by frequency (0 is the most frequent; 6 stands for all further ranks); ``s`` holds the symbols of atoms. If RDKit is
    installed, molecules also have ``xy`` and ``b``, see `_placed`.
    """
    ranks = None
    if batch.node_labels is not None:
        _, inverse, counts = np.unique(batch.node_labels, return_inverse=True, return_counts=True)
        ranks = np.argsort(np.argsort(-counts, kind="stable"))[inverse]
    for g in range(len(batch)):
        first, last = (int(v) for v in batch.node_offsets[g : g + 2])
        n = min(last - first, _NODES)
        positions, offsets = segments(batch.indptr, np.arange(first, first + n))
        source, target = np.repeat(np.arange(n), np.diff(offsets)), batch.indices[positions] - first
        kept = (target < n) & (source != target)
        low, high = np.minimum(source, target)[kept], np.maximum(source, target)[kept]
        edges = np.unique(low * _NODES + high)
        shown: Json = {"g": [n, *np.column_stack(divmod(edges, _NODES)).ravel().tolist()]}
        if ranks is not None:
            shown["l"] = np.minimum(ranks[first : first + n], 6).tolist()
        symbols = _symbols(batch[g])[:n]
        if symbols:
            shown["s"] = " ".join(symbols)
        if symbols and batch.edge_labels is not None and has_rdkit():
            marks = [BONDS.get(label, "")[:1] for label in batch.edge_labels[positions][kept].tolist()]
            orders = dict(zip((low * _NODES + high).tolist(), marks, strict=True))
            shown |= _placed(symbols, [(*divmod(edge, _NODES), orders[edge]) for edge in edges.tolist()])
        yield shown
