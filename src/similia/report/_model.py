"""Split a model into steps, learner and kernel or distance; compute the vectors and bits between the steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from similia import pipelines
from similia.core.estimators import Transformer, check_fitted
from similia.core.text import short
from similia.core.validation import BadParameter
from similia.embeddings import D2KE, Nystroem
from similia.embeddings.d2ke import Representatives
from similia.learn.d2ke_search import D2KESearch
from similia.objects import n_objects, take
from similia.objects.transformers import FromColumn
from similia.pipelines import chosen, steps_of
from similia.similarity import Metric, decided, refuse_class

_FALLBACK = 300  # number of landmarks, or of objects to compare with, for a model without vectors
_UNPACKED = 2048  # number of bits that represent a code as a vector


@dataclass(frozen=True, repr=False)
class Parts(pipelines.Parts):
    """The transformers and the learner of a model, without a step that selects a column of a table."""

    @property
    def metric(self) -> Metric | None:
        """The kernel or distance of the first step, or None."""
        found = next(self.comparisons(), None)
        return None if found is None else Metric(found.function, found.is_kernel)

    @property
    def metric_behind(self) -> Metric | None:
        """The kernel or distance of the learner, which compares what the transformers return, or None."""
        return replace(self, transformers=[]).metric

    @property
    def vote(self) -> Any:
        """The wrapper around `model` that predicts (a vote, calibration, ...); None if `model` itself predicts."""
        return None if self.whole is self.model else self.whole

    @property
    def nystroem(self) -> Nystroem | None:
        return next((step for step in self.transformers if isinstance(step, Nystroem)), None)


@dataclass(frozen=True)
class Embedded:
    """The output of the transformers: vectors (dense or sparse) and, if there are any, codes (packed bits)."""

    vectors: Any  # in the result of `transformed` and `fitted_through`, other objects if no step makes vectors
    codes: npt.NDArray[np.uint8] | None
    how: str  # name of the step that made the vectors
    last: Any = None  # input of the learner


def parts_of(model: Any) -> Parts:
    parts = pipelines.parts_of(model)
    steps = [step for step in parts.transformers if not isinstance(step, FromColumn)]
    return Parts(parts.whole, parts.model, steps, parts.learner)


def as_recipe(model: Any) -> tuple[Any, bool]:
    """Return an unfitted copy of a model, with the parameters that a search chose, and whether there was a search."""
    found = parts_of(model).model
    recipe = unfrozen(found)
    searched = chosen(model) is not model or isinstance(getattr(model, "voters", None), list)
    tuned = searched and type(model).__name__ != "FrozenEstimator" and getattr(model, "best_params_", None) != {}
    if hasattr(found, "contrast_") and hasattr(found, "C_"):  # HeatSVC
        tuned = tuned or isinstance(found.contrast, str) or np.ndim(found.contrast) > 0
        recipe.set_params(contrast=found.contrast_, C=found.C_)
    return recipe, tuned


def unfrozen(model: Any) -> Any:
    """Return an unfitted copy of a model and of each frozen estimator in it, which `clone` would leave fitted.

    Of a frozen search, the copy is that of the model it chose.
    """
    if isinstance(model, FrozenEstimator):
        found = chosen(model)
        return unfrozen(model.estimator if found is model else found)
    copy = clone(model)
    frozen = {name: part for name, part in copy.get_params().items() if isinstance(part, FrozenEstimator)}
    for name, part in frozen.items():
        if not any(name.startswith(f"{outer}__") for outer in frozen):
            copy.set_params(**{name: unfrozen(part)})
    first = copy[0] if isinstance(copy, Pipeline) else None
    if isinstance(first, D2KE) and isinstance(first.objects, Representatives) and first.objects.hold_out:
        return D2KESearch(copy)  # takes the representatives out of training, as no pipeline can
    return copy


def fitted(model: Any) -> bool:
    try:
        check_fitted(parts_of(model).model)
    except (NotFittedError, TypeError):
        return False
    return True


def ending_in(model: Any, *kinds: type) -> list[Any]:
    """Return the steps of a model or pipeline; raise unless the last step is of one of the `kinds`."""
    steps = steps_of(model)
    if not steps or not isinstance(steps[-1], kinds):
        expected = " or ".join(f"similia.{kind.__name__}" for kind in kinds)
        got = " → ".join(type(step).__name__ for step in steps) or "a pipeline without steps"
        raise BadParameter("model", f"a {expected}, or a pipeline that ends in one", got)
    return steps


def check_model(model: Any) -> None:
    refuse_class(model, "the model")
    if not hasattr(model, "fit"):
        raise TypeError(f"the model is {short(model)}, expected an estimator or a pipeline")


def fitted_parts(model: Any) -> Parts:
    """Split a fitted model, or the encoder of a similarity search, into parts; raise if it is not fitted."""
    check_model(model)
    check_fitted(parts_of(model).model)
    is_search = hasattr(model, "encoder_") and not hasattr(model, "transform")
    return parts_of(model.encoder_ if is_search else model)


def embedded(parts: Parts, X: Any, random_state: int = 0) -> Embedded:
    """Return the bits that a fitted model makes of `X`, and the vectors from which it makes bits or predictions.

    If a step turns objects into bits, the vectors are the first 2048 bits as ±1. If the learner itself compares
    objects, `Nystroem` or `D2KE` makes vectors with the kernel or distance of the learner.
    """
    found = transformed(parts, X)
    metric = parts.metric_behind if found.how else parts.metric
    if metric is not None and not (found.how and is_numeric(found.vectors)):
        vectors, how = _compared(metric, found.vectors, random_state)
        return Embedded(vectors, None, how, found.last)
    if not is_numeric(found.vectors):
        raise ValueError(f"{parts.model!r} makes no vectors and has no kernel or distance")
    vectors = found.vectors if sp.issparse(found.vectors) else np.asarray(found.vectors)
    if has_missing(vectors):
        raise ValueError("some numbers of the vectors are missing (NaN)")
    return replace(found, vectors=vectors, how=found.how or "the vectors as they are")


def transformed(parts: Parts, X: Any) -> Embedded:
    """Return what the fitted transformers make of `X`; without transformers, `X` itself."""
    return _followed(parts, X, lambda step, out: step.transform(out))


def fitted_through(parts: Parts, X: Any, y: Any) -> Embedded:
    """Fit the steps in order, as a pipeline does, and return what `transformed` would return."""
    found = _followed(parts, X, lambda step, out: step.fit_transform(out, y))
    if parts.learner is not None:
        parts.learner.fit(found.last, y)
    return found


def vectors_only(parts: Parts, X: Any, random_state: int = 0) -> Embedded:
    """Return the vectors of all objects, but only the codes of the first one, because encoding all of them is slow."""
    out = taken(X, np.arange(1))
    for i, step in enumerate(parts.transformers):
        vectors, out = out, unframed(step, step.transform(out))
        if is_packed(out):
            if not is_numeric(vectors):
                return embedded(parts, X, random_state)
            before = replace(parts, transformers=parts.transformers[:i], learner=None)  # the learner compares bits
            return replace(embedded(before, X, random_state), codes=out)
    return embedded(parts, X, random_state)


def _followed(parts: Parts, X: Any, through: Callable[[Any, Any], Any]) -> Embedded:
    """Pass `X` from step to step by ``through(step, X)``; return the first packed bits and the vectors before them."""
    vectors, codes, how, out = X, None, "", X
    for step in parts.transformers:
        out = unframed(step, through(step, out))
        if codes is None and is_packed(out):
            codes = out
            if not is_numeric(vectors):
                vectors = np.unpackbits(codes[:, : _UNPACKED // 8], axis=1) * np.float32(2) - 1
                how = f"the bits of {type(step).__name__}"
        elif codes is None:
            vectors, how = out, type(step).__name__
    return Embedded(vectors, codes, how, out)


def unframed(step: Any, out: Any) -> Any:
    """Return the output of a step; packed bits in a data frame (scikit-learn's ``set_output``) become an array.

    Only transformers of similia pack bits; a column of bytes that another one makes holds numbers.
    """
    array = np.asarray(out) if hasattr(out, "columns") and isinstance(step, Transformer) else out
    return array if is_packed(array) else out


def is_packed(out: Any) -> bool:
    return isinstance(out, np.ndarray) and out.dtype == np.uint8 and out.ndim == 2


def _compared(metric: Metric, X: Any, random_state: int) -> tuple[npt.NDArray, str]:
    """Return vectors made by `Nystroem` from a kernel or by `D2KE` from a distance, and a description of the method."""
    n = min(_FALLBACK, n_objects(X))
    if metric.is_kernel:
        landmarks = Nystroem(decided(metric.function, X), n, random_state=random_state)
        return np.asarray(landmarks.fit_transform(X)), f"Nystroem of the kernel, {n} landmarks"
    embedding = D2KE(metric.function, n, Representatives(), random_state=random_state)
    return np.asarray(embedding.fit_transform(X)), f"D2KE of the distance, {n} representatives"


def is_numeric(X: Any) -> bool:
    return sp.issparse(X) or (getattr(X, "ndim", 0) == 2 and np.asarray(X).dtype.kind in "biuf")


def has_missing(vectors: Any) -> bool:
    return bool(np.isnan(vectors.tocsr().data if sp.issparse(vectors) else np.asarray(vectors)).any())


def coded(parts: Parts, X: Any) -> npt.NDArray[np.uint8] | None:
    out = X
    for step in parts.transformers:
        out = unframed(step, step.transform(out))
    return out if is_packed(out) and parts.transformers else None


def task_of(parts: Parts) -> str | None:
    if parts.learner is None:
        return None
    if is_regressor(parts.learner):
        return "regression"
    return "classification" if is_classifier(parts.learner) or hasattr(parts.learner, "classes_") else None


def sampled(X: Any, most: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return the sorted positions of `most` objects drawn at random, or of all objects if there are fewer."""
    n = n_objects(X)
    return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))


def taken(X: Any, positions: npt.NDArray[np.int64]) -> Any:
    """Return the objects at `positions`; return `X` itself if `positions` are 0 to n - 1."""
    return X if np.array_equal(positions, np.arange(n_objects(X))) else take(X, positions)
