"""What all sections of a report draw on: the model, the objects it is reported on, and what was found once for all."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from similia.core.text import _short
from similia.core.validation import check_labels
from similia.learn.targets import as_numbers
from similia.objects import n_objects
from similia.objects.identical import are_among, with_groups
from similia.objects.sequences import at_least_one
from similia.report import _measures as scores
from similia.report._model import (
    Embedded,
    Parts,
    as_recipe,
    embedded,
    fitted,
    parts_of,
    sampled,
    taken,
    task_of,
    vectors_only,
)
from similia.report._objects import Seen, look_at

_TIMED = 500  # objects transformed to see how long one takes


@dataclass
class Context:
    """The matter of a report.

    Attributes
    ----------
    parts : Parts
        Of the fitted model.
    recipe : estimator
        An unfitted copy; `tuned` says whether a search chose its parameters.
    X, y, names : the objects on the page, their targets and names
    n_all : int
        Objects that were given.
    scored : Scored or None
        Predictions; `unscored` is the sentence that says why there are none.
    refitted : bool
        Whether the model came unfitted and was fitted to these objects.
    """

    parts: Parts
    recipe: Any
    tuned: bool
    X: Any
    y: npt.NDArray | None
    names: list[str]
    n_all: int
    seen: Seen
    task: str | None
    seed: int
    refitted: bool
    scored: scores.Scored | None = None
    unscored: str = ""
    transform_seconds: float = 0.0
    vectors: Embedded | None = None
    no_vectors: str = ""

    @cached_property
    def known(self) -> npt.NDArray[np.bool_]:
        """Which objects are landmarks of the model."""
        landmarks = None if self.parts.nystroem is None else self.parts.nystroem.landmarks_
        if landmarks is None or type(landmarks) is not type(self.seen.batch):
            return np.zeros(self.n, dtype=bool)
        return are_among(self.seen.batch, landmarks)

    @property
    def n(self) -> int:
        """Number of objects on the page."""
        return len(self.names)

    @property
    def is_regression(self) -> bool:
        """Whether targets are numbers."""
        return self.task == "regression"


def gather(
    model: Any, X: Any, y: Any, names: Any, unseen: bool, cv: int, max_objects: int, seed: int, groups: Any = None
) -> Context:  # fmt: skip
    """Check what was given, draw objects if there are too many, fit and score."""
    n_all = at_least_one(X)
    labels = None if y is None else check_labels(y, n_all)
    if names is not None and n_objects(names) != n_all:
        raise ValueError(f"names has {n_objects(names)} entries for {n_all} objects; give one name per object")
    if unseen and not fitted(model):
        raise ValueError("unseen=True says that a fitted model has not seen X, but this model is not fitted")
    _refuse_precomputed(model)
    chosen = sampled(X, max_objects, np.random.default_rng(seed))
    X = taken(X, chosen)
    labels = None if labels is None else targets_for(model, _as_targets(labels[chosen]))
    called = [str(i) if names is None else str(names[i]) for i in chosen.tolist()]
    called = [f"object {name}" if names is None else name for name in called]
    recipe, tuned = as_recipe(model)
    refitted = not fitted(model)
    if refitted:
        model = _quietly(clone(model).fit, X, *([] if labels is None else [labels]))
    parts = parts_of(model)
    context = Context(
        parts, recipe, tuned, X, labels, called, n_all, look_at(X, parts), task_of(parts), seed, refitted
    )  # fmt: skip
    together = context.seen.groups
    if groups is not None:
        together = with_groups(together, np.asarray(groups)[chosen] if np.shape(groups) == (n_all,) else groups)
    _score(context, unseen, cv, together)
    _embed(context)
    return context


def _as_targets(y: npt.NDArray) -> npt.NDArray:
    """Return labels of one type: texts where an object array mixes several."""
    if y.dtype != object:
        return y
    kinds = {type(value) for value in y.tolist()}
    return np.array(y.tolist()) if len(kinds) == 1 else np.array([str(value) for value in y.tolist()])


def targets_for(model: Any, y: npt.NDArray) -> npt.NDArray:
    """Return labels as the model has them: numbers for a regressor, text or numbers as its classes are."""
    parts = parts_of(model)
    if task_of(parts) == "regression":
        numbers = as_numbers(y)
        if numbers is None:
            other = next(value for value in y.tolist() if as_numbers([value]) is None)
            raise ValueError(
                f"the model predicts numbers, and {_short(other)} among the targets is none; give the targets it was "
                "fitted for"
            )
        return numbers
    classes = getattr(parts.whole, "classes_", None)
    if not isinstance(classes, np.ndarray):
        return y
    if classes.dtype.kind == "U" and y.dtype.kind in "iubf":
        return y.astype(str)
    numbers = as_numbers(y) if classes.dtype.kind in "iuf" and y.dtype.kind == "U" else None
    return y if numbers is None else numbers.astype(classes.dtype)


def _refuse_precomputed(model: Any) -> None:
    first = parts_of(model).transformers or [parts_of(model).learner]
    if "precomputed" in (getattr(first[0], name, None) for name in ("kernel", "metric")):
        raise ValueError("the kernel is precomputed, and a report looks at objects; give the model with its kernel")


def _score(context: Context, unseen: bool, cv: int, groups: npt.NDArray[np.int64]) -> None:
    y, regression = context.y, context.is_regression
    if y is None:
        context.unscored = "No targets were given, so there is nothing to hold predictions against."
    elif context.task is None:
        context.unscored = f"The model ({context.parts}) makes no predictions: it ends in vectors or bits."
    elif not regression and len(np.unique(y)) < 2:
        context.unscored = f"All objects are of one class, {y[0]}: nothing can be told apart."
    elif len(y) < 4:
        context.unscored = f"{len(y)} objects are too few to hold some of them out."
    else:
        try:
            if unseen:
                context.scored = _quietly(scores.as_it_stands, context.parts.whole, context.X, y, regression)
            else:
                arguments = (context.recipe, context.X, y, groups, cv, regression, context.seed, context.parts.vote)
                context.scored = _quietly(scores.cross_validated, *arguments)
        except (ValueError, TypeError) as error:
            context.unscored = f"Scoring stopped: {error}"


def _embed(context: Context) -> None:
    few = taken(context.X, np.arange(min(context.n, _TIMED)))
    try:
        context.vectors = _quietly(vectors_only, context.parts, context.X, context.seed)
        start = time.perf_counter()
        _quietly(embedded, context.parts, few, context.seed)
        context.transform_seconds = (time.perf_counter() - start) / n_objects(few)
    except (ValueError, TypeError) as error:
        context.no_vectors = str(error)


def _quietly(function: Any, *arguments: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # such as indefinite kernels, which the page reports itself
        return function(*arguments)
