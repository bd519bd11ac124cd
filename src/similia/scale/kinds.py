"""The kind of arrays that a fitted model reads: series, sets of points or vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from similia.objects import SeriesBatch, SetBatch
from similia.objects.columns import ObjectsOut

_HELD = ("landmarks_", "objects_", "support_objects_")  # objects that models keep, beside what `_example` gives
_INSIDE = (
    "best_", "best_estimator_", "pipeline_", "encoder_", "estimators_", "calibrated_classifiers_", "regressor_",
    "estimator_", "estimator",
)  # fmt: skip


def kind_of_arrays(model: Any) -> str | None:
    """Return "series", "sets" or "vectors", by what a fitted model was fitted on; None if it does not tell."""
    steps = getattr(model, "steps", None)
    if steps is not None:
        same = ("passthrough", None)
        return next((kind_of_arrays(s) for _, s in steps if s not in same and not isinstance(s, ObjectsOut)), None)
    held = model._example() if hasattr(model, "_example") else None
    for objects in (held, *(getattr(model, name, None) for name in _HELD)):
        if isinstance(objects, SeriesBatch | SetBatch):
            return "series" if isinstance(objects, SeriesBatch) else "sets"
        if (isinstance(objects, np.ndarray) and objects.ndim == 2) or sp.issparse(objects):
            return "vectors"
    for name in _INSIDE:
        inside = getattr(model, name, None)
        first = inside[0] if isinstance(inside, list) and inside else inside
        if hasattr(first, "get_params") or hasattr(first, "estimator"):
            return kind_of_arrays(first)
    return "vectors" if hasattr(model, "n_features_in_") else None
