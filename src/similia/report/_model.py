"""What a model is made of: its steps, its learner, what it compares objects by, the vectors and bits between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from similia import similarity
from similia.core.text import short
from similia.embeddings import D2KE, Nystroem
from similia.embeddings.random_objects import Representatives
from similia.objects import n_objects, take
from similia.objects.transformers import FromColumn
from similia.similarity import Comparison, chosen, comparison_of, decided, refuse_class

_FALLBACK = 300  # landmarks, or objects compared with, where a model has no vectors of its own
_UNPACKED = 2048  # bits that stand for a code where vectors are needed


@dataclass(frozen=True, repr=False)
class Parts(similarity.Parts):
    """A model taken apart, without the step that takes a column of a table."""

    @property
    def metric(self) -> Comparison | None:
        """The kernel or distance that objects are compared by, if their first step has one."""
        return comparison_of(self.steps[0]) if self.steps else None

    @property
    def vote(self) -> Any:
        """What predicts if that is not `model` alone: a vote, a calibration, a threshold or a map of the targets."""
        return None if self.whole is self.model else self.whole

    @property
    def nystroem(self) -> Nystroem | None:
        """The Nyström step, if the objects go through one first."""
        first = self.transformers[0] if self.transformers else None
        return first if isinstance(first, Nystroem) else None


@dataclass(frozen=True)
class Embedded:
    """Objects after the transformers: vectors (dense or sparse), codes if there are any, and where they come from."""

    vectors: Any
    codes: npt.NDArray[np.uint8] | None
    how: str
    last: Any = None  # what the learner is given


def parts_of(model: Any) -> Parts:
    """Take a model apart."""
    parts = similarity.parts_of(model)
    steps = [step for step in parts.transformers if not isinstance(step, FromColumn)]
    return Parts(parts.whole, parts.model, steps, parts.learner)


def as_recipe(model: Any) -> tuple[Any, bool]:
    """Return an unfitted copy with what a search chose kept, and whether something was chosen."""
    found = parts_of(model).model
    recipe = clone(found)
    searched = chosen(model) is not model or isinstance(getattr(model, "voters", None), list)
    tuned = searched and type(model).__name__ != "FrozenEstimator"
    if hasattr(found, "contrast_") and hasattr(found, "C_"):  # HeatSVC
        tuned = tuned or isinstance(found.contrast, str) or np.ndim(found.contrast) > 0
        recipe.set_params(contrast=found.contrast_, C=found.C_)
    return recipe, tuned


def fitted(model: Any) -> bool:
    """Whether a model was fitted."""
    try:
        check_is_fitted(parts_of(model).model)
    except (NotFittedError, TypeError):
        return False
    return True


def check_model(model: Any) -> None:
    """Raise unless `model` is an estimator."""
    refuse_class(model, "the model")
    if not hasattr(model, "fit"):
        raise TypeError(f"the model is {short(model)}, expected an estimator or a pipeline")


def fitted_parts(model: Any) -> Parts:
    """Take a fitted model apart, of a search its encoder, or raise."""
    check_model(model)
    check_is_fitted(parts_of(model).model)
    is_search = hasattr(model, "encoder_") and not hasattr(model, "transform")
    return parts_of(model.encoder_ if is_search else model)


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
    before = replace(parts, transformers=parts.transformers[:bits_at])
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


def _compared(metric: Comparison, X: Any, random_state: int) -> tuple[npt.NDArray, None, str]:
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
