"""What a model is made of: its steps, its learner, what it compares objects by, the vectors and bits between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from similia.core.text import _short
from similia.embeddings import D2KE, Nystroem
from similia.embeddings.random_objects import Representatives
from similia.learn.vote import VoteClassifier, VoteRegressor
from similia.objects import n_objects, take
from similia.objects.transformers import FromColumn
from similia.search.metric import Metric
from similia.similarity import Distance, decided, refuse_class

_CHOSEN = ("best_", "best_estimator_", "pipeline_")  # where searches keep the model they chose
_FALLBACK = 300  # landmarks, or objects compared with, where a model has no vectors of its own
_UNPACKED = 2048  # bits that stand for a code where vectors are needed


@dataclass(frozen=True)
class Parts:
    """A model taken apart.

    Attributes
    ----------
    model : estimator
        What predicts or transforms, without a search around it.
    transformers : list of estimators
        All steps before the learner, pipelines inside pipelines laid open.
    learner : estimator or None
        The step that predicts.
    metric : Metric or None
        The kernel or distance that objects are compared by.
    vote : estimator or None
        What predicts, if this is the first of some models that vote, or inside of what transforms targets or makes
        probabilities.
    """

    model: Any
    transformers: list[Any]
    learner: Any
    metric: Metric | None
    vote: Any = None

    @property
    def whole(self) -> Any:
        """What predicts: the model, or the vote that it is the first of."""
        return self.model if self.vote is None else self.vote

    @property
    def nystroem(self) -> Nystroem | None:
        """The Nyström step, if the objects go through one first."""
        first = self.transformers[0] if self.transformers else None
        return first if isinstance(first, Nystroem) else None

    def __repr__(self) -> str:
        steps = " → ".join(type(step).__name__ for step in [*self.transformers, self.learner] if step is not None)
        if self.vote is None:
            return steps
        if isinstance(self.vote, VoteClassifier | VoteRegressor):
            return f"{steps} (the first of {len(self.vote.estimators)} that vote)"
        return f"{steps} (inside of {type(self.vote).__name__})"


@dataclass(frozen=True)
class Embedded:
    """Objects after the transformers: vectors (dense or sparse), codes if there are any, and where they come from."""

    vectors: Any
    codes: npt.NDArray[np.uint8] | None
    how: str
    last: Any = None  # what the learner is given


def unwrapped(model: Any) -> Any:
    """Return what a fitted search chose, what is frozen, wrapped or the first that votes; else the model itself."""
    if voters := voters_of(model):
        return unwrapped(voters[0])
    for name in _CHOSEN:
        if hasattr(model, name):
            return unwrapped(getattr(model, name))
    return unwrapped(model.estimator) if type(model).__name__ == "FrozenEstimator" else model


def voters_of(model: Any) -> list[Any]:
    """Return the models that vote or are wrapped, fitted if `model` is; an empty list for others."""
    if isinstance(model, VoteClassifier | VoteRegressor):
        return list(getattr(model, "estimators_", model.estimators))
    if isinstance(model, CalibratedClassifierCV):
        calibrated = getattr(model, "calibrated_classifiers_", None)
        return [model.estimator] if calibrated is None else [one.estimator for one in calibrated]
    if isinstance(model, TransformedTargetRegressor):
        inside = getattr(model, "regressor_", model.regressor)
        return [] if inside is None else [inside]
    return []


def vote_in(model: Any) -> Any:
    """Return the models that vote or are wrapped, inside of what chose them; None if there are none."""
    while not voters_of(model) and (names := [name for name in _CHOSEN if hasattr(model, name)]):
        model = getattr(model, names[0])
    return model if voters_of(model) else None


def as_recipe(model: Any) -> tuple[Any, bool]:
    """Return an unfitted copy with what a search chose kept, and whether something was chosen."""
    found = unwrapped(model)
    recipe = clone(found)
    chosen = isinstance(model, VoteClassifier | VoteRegressor) or not voters_of(model)
    tuned = found is not model and chosen and type(model).__name__ != "FrozenEstimator"
    if hasattr(found, "contrast_") and hasattr(found, "C_"):  # HeatSVC
        tuned = tuned or isinstance(found.contrast, str) or np.ndim(found.contrast) > 0
        recipe.set_params(contrast=found.contrast_, C=found.C_)
    return recipe, tuned


def fitted(model: Any) -> bool:
    """Whether a model was fitted."""
    try:
        check_is_fitted(unwrapped(model))
    except (NotFittedError, TypeError):
        return False
    return True


def parts_of(model: Any) -> Parts:
    """Take a model apart."""
    vote = vote_in(model)
    model = unwrapped(model)
    steps = [step for step in _steps(model) if step is not None and not isinstance(step, str)]
    learner = steps.pop() if hasattr(steps[-1], "predict") else None
    first = steps[0] if steps else learner
    metric = None
    for name, is_kernel in (("kernel_", True), ("kernel", True), ("distance", False), ("metric", False)):
        function = getattr(first, name, None)
        if callable(function) and not isinstance(function, type):
            metric = Metric(function, is_kernel and not isinstance(function, Distance))
            break
    return Parts(model, steps, learner, metric, vote)


def check_model(model: Any) -> None:
    """Raise unless `model` is an estimator."""
    refuse_class(model, "the model")
    if not hasattr(model, "fit"):
        raise TypeError(f"the model is {_short(model)}, expected an estimator or a pipeline")


def fitted_parts(model: Any) -> Parts:
    """Take a fitted model apart, of a search its encoder, or raise."""
    check_model(model)
    check_is_fitted(unwrapped(model))
    is_search = hasattr(model, "encoder_") and not hasattr(model, "transform")
    return parts_of(model.encoder_ if is_search else model)


def _steps(model: Any) -> list[Any]:
    if not isinstance(model, Pipeline):
        return [] if isinstance(model, FromColumn) else [model]
    return [part for _, step in model.steps for part in _steps(step)]


def embedded(parts: Parts, X: Any, random_state: int = 0) -> Embedded:
    """Return the vectors the learner or the bits are made of, and the bits, of a fitted model.

    Where objects become bits at once, their first 2048 bits as ±1 are the vectors; where a learner compares objects
    itself, its kernel or distance to a few of them gives the vectors.
    """
    return _followed(parts, X, lambda step, out: step.transform(out), random_state)


def fitted_through(parts: Parts, X: Any, y: Any) -> Embedded:
    """Fit all steps, as a pipeline does, and return what the objects become on the way: it is needed once only."""
    if not parts.transformers:
        parts.learner.fit(X, y)
        return Embedded(X, None, "", X)
    found = _followed(parts, X, lambda step, out: step.fit_transform(out, y), 0)
    if parts.learner is not None:
        parts.learner.fit(found.last, y)
    return found


def vectors_only(parts: Parts, X: Any, random_state: int = 0) -> Embedded:
    """Return `embedded` without making bits of the vectors; one object is followed to the end to see where they are."""
    bits_at = len(parts.transformers)
    out = taken(X, np.arange(1))
    for i, step in enumerate(parts.transformers):
        out = step.transform(out)
        if _is_packed(out):
            bits_at = i
            break
    if bits_at == 0 and not _is_numeric(X):
        return embedded(parts, X, random_state)
    before = Parts(parts.model, parts.transformers[:bits_at], None, parts.metric)
    return replace(embedded(before, X, random_state), codes=out if _is_packed(out) and parts.transformers else None)


def _followed(parts: Parts, X: Any, through: Callable[[Any, Any], Any], random_state: int) -> Embedded:
    vectors, codes, how, out = X, None, "", X
    for step in parts.transformers:
        out = through(step, out)
        if codes is None and _is_packed(out):
            codes = out
        elif codes is None:
            vectors, how = out, type(step).__name__
    if not how and codes is not None and not _is_numeric(X):
        how = f"the bits of {type(parts.transformers[0]).__name__}"
        return Embedded(np.unpackbits(codes[:, : _UNPACKED // 8], axis=1) * np.float32(2) - 1, codes, how, out)
    if not how and parts.metric is not None:
        return Embedded(*_compared(parts.metric, X, random_state), last=out)
    if not how and not _is_numeric(X):
        raise ValueError(f"{parts.model!r} makes no vectors of its objects, and has no kernel or distance")
    vectors = vectors if sp.issparse(vectors) else np.asarray(vectors)
    return Embedded(vectors, codes, how or "the vectors as they are", out)


def _is_packed(out: Any) -> bool:
    return isinstance(out, np.ndarray) and out.dtype == np.uint8 and out.ndim == 2


def _compared(metric: Metric, X: Any, random_state: int) -> tuple[npt.NDArray, None, str]:
    n = min(_FALLBACK, n_objects(X))
    if metric.is_kernel:
        landmarks = Nystroem(decided(metric.function, X), n, random_state=random_state)
        return landmarks.fit_transform(X), None, f"Nystroem of the kernel, {n} landmarks"
    embedding = D2KE(metric.function, n, Representatives(), random_state=random_state)
    return embedding.fit_transform(X), None, f"D2KE of the distance, {n} representatives"


def _is_numeric(X: Any) -> bool:
    return sp.issparse(X) or (getattr(X, "ndim", 0) == 2 and np.asarray(X).dtype.kind in "biuf")


def coded(parts: Parts, X: Any) -> npt.NDArray[np.uint8] | None:
    """Return the packed bits the learner is given, or None if it is given none."""
    out = X
    for step in parts.transformers:
        out = step.transform(out)
    return out if _is_packed(out) and parts.transformers else None


def task_of(parts: Parts) -> str | None:
    """Return "classification", "regression", or None for what makes no predictions."""
    if parts.learner is None:
        return None
    if is_regressor(parts.learner):
        return "regression"
    return "classification" if is_classifier(parts.learner) or hasattr(parts.learner, "classes_") else None


def sampled(X: Any, most: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return positions of at most so many objects, in order."""
    n = n_objects(X)
    return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))


def taken(X: Any, positions: npt.NDArray[np.int64]) -> Any:
    """Return the objects at positions, `X` itself where these are all."""
    return (
        X if len(positions) == n_objects(X) and (positions == np.arange(len(positions))).all() else take(X, positions)
    )
