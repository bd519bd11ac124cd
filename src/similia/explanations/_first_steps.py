"""The parts of a decision that is linear in the output of a model's first step; the table in `_explain` lists them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import FeatureUnion

from similia.codes import GraphHDEncoder, NGramEncoder, SequenceEncoder
from similia.core.text import counted
from similia.embeddings import D2KE, GraphletSampling, KernelFeatures, MeanMapFeatures, Nystroem
from similia.explanations import _linear as linear
from similia.explanations._explanation import NOWHERE, Floats, Found, NoParts, joined
from similia.explanations._features import blocks_of, coefficients_by_column, linear_parts
from similia.explanations._pairs import alone, one_object
from similia.explanations._series import of_times
from similia.explanations._sums import Naming, feature_occurrences, is_directed, sum_parts
from similia.explanations._views import Places, View, dense, described
from similia.objects import GraphToSets, SeriesBatch, SeriesToSets, as_graphs, as_series, as_sets, as_strings, take
from similia.pipelines import steps_of
from similia.similarity import name_of

_SERIES = {  # attributes that hold training series
    "objects_": "training series", "support_objects_": "support series", "landmarks_": "landmarks",
    "random_objects_": "representatives",
}  # fmt: skip
_READ = (
    (GraphletSampling | GraphToSets | GraphHDEncoder, as_graphs), (SeriesToSets | SequenceEncoder, as_series),
    (MeanMapFeatures, as_sets), (NGramEncoder, as_strings),
)  # fmt: skip


def collection(first: Any, x: Any) -> Any:
    """Return a collection that holds only the object `x`, in the form that `first`, a model's first step, takes."""
    for step in _inside(first):
        if hasattr(step, "time_shares"):
            return as_series(_alone(x))
        for takes, read in _READ:
            if isinstance(step, takes):
                return read(_alone(x))
    names = [name for name in ("kernel_", "kernel", "distance_", "distance") if hasattr(first, name)]
    compared = getattr(first, names[0]) if names else None
    return one_object(compared, x, "x") if callable(compared) else _alone(x)


def _alone(x: Any) -> Any:
    """Return a collection that holds only the object `x`; a row of a matrix is one already."""
    return x if len(getattr(x, "shape", ())) == 2 and x.shape[0] == 1 else alone(x, "x")


def called(first: Any) -> str:
    """Return the name of a model's first step; of a union, those of the first steps inside."""
    return " + ".join(map(name_of, _inside(first)))


def _inside(first: Any) -> list[Any]:
    """Return a model's first step in a list; if it is a union, the first step of each of its transformers."""
    if not isinstance(first, FeatureUnion):
        return [first]
    return [step for _, branch, _ in _branches(first) for step in _inside((steps_of(branch) or [branch])[0])]


def _branches(union: FeatureUnion) -> list[tuple[str, Any, float]]:
    """Return (name, transformer, factor) for each part of a union that is not left out."""
    factors = union.transformer_weights or {}
    return [(name, part, factors.get(name, 1.0)) for name, part in union.transformer_list if part != "drop"]


def note_of_length(steps: list[Any], view: View | None) -> str:
    """Return a note if a series is shorter or longer than all training series of a model; empty otherwise."""
    if view is None or view.kind != "series":
        return ""
    for step in (*_inside(steps[0]), steps[-1]):
        what, low, high = _lengths_in(step)
        if what and not low <= view.n_places <= high:
            have = f"{low}" if low == high else f"{low} to {high}"
            return f"x has {counted(view.n_places, 'time point')}; the {what} have {have}"
    return ""


def _lengths_in(step: Any) -> tuple[str, int, int]:
    """Return the name of the training series that an estimator keeps, their least and largest length; or "", 0, 0."""
    if getattr(step, "length_range_", None) is not None:
        return "training series", *step.length_range_.tolist()
    for name, what in _SERIES.items():
        series = getattr(step, name, None)
        drawn = isinstance(step, D2KE) and not len(step.representative_indices_)
        if isinstance(series, SeriesBatch) and len(series) and not drawn:
            return what, int(series.lengths.min()), int(series.lengths.max())
    return "", 0, 0


def parts_of_decision(first: Any, X: Any, rows: Any, found: linear.Decision, naming: Naming) -> tuple[Found, float]:
    """Return the parts of a decision, and the amount that is the same for every object."""
    if isinstance(first, FeatureUnion):
        return _of_union(first, X, found, naming)
    if hasattr(first, "time_shares"):
        amounts, intercept = _by_time(first, X, rows, found)
        return of_times(amounts, X.values), intercept
    if found.amounts is not None:
        row = dense(rows).ravel()
        return Found(found.amounts, lambda k: (_column_name(first, k, row[k]), NOWHERE, NOWHERE)), found.intercept
    if isinstance(first, KernelFeatures) and (blocks := blocks_of(first._learnt_kernel)) is not None:
        parts = []
        for block, column in blocks:
            x = feature_occurrences(block.kernel, block.as_objects(X), naming, is_directed(X))
            coefficients = coefficients_by_column(block, column, x, first.n_features, found.weights)
            parts.append(linear_parts(x, block.scale(X)[0] * coefficients).times(1.0, block.prefix))
        return joined(parts), found.intercept
    if isinstance(first, Nystroem) and not first._fitted_to_matrix:
        alpha, numbers = first.components_ @ found.weights, first.landmark_indices_
        return sum_parts(first.kernel_, X, first.landmarks_, alpha, naming, "landmark", numbers), found.intercept
    row, intercept = dense(rows).ravel(), found.intercept
    values = row
    if found.centre is not None:
        values = row - found.centre
        intercept += float(found.centre @ found.weights)

    def describe(k: int) -> tuple[str, Places, Places]:
        near = found.classes[int(found.weights[k] < 0)] if found.classes else ""
        return _column_name(first, k, row[k], near), NOWHERE, NOWHERE

    return Found(values * found.weights, describe), intercept


def _of_union(union: FeatureUnion, X: Any, found: linear.Decision, naming: Naming) -> tuple[Found, float]:
    """Return the parts of the transformers of a union, and the intercept; amounts of the same times are added."""
    parts, times, intercept, start = [], [], found.intercept, 0
    for name, branch, factor in _branches(union):
        steps = steps_of(branch) or [branch]
        rows = [X]
        for step in steps:
            rows.append(step.transform(rows[-1]))
        stop = start + rows[-1].shape[1]
        own, start = linear.of_columns(found, slice(start, stop), factor), stop
        try:
            first, row, own = steps[0], rows[1], linear.before(steps[1:], rows[1:], own)
        except NoParts:  # a step is not affine: the columns of the transformer are the parts
            first, row = branch, rows[-1]
        if hasattr(first, "time_shares"):
            amounts, constant = _by_time(first, X, row, own)
            times.append(amounts)
        else:
            part, constant = parts_of_decision(first, X, row, own, naming)
            parts.append(part.times(1.0, f"{name}: "))
        intercept += constant
    if times:
        parts.append(of_times(np.sum(times, axis=0), X.values))
    return joined(parts), intercept


def _by_time(first: Any, X: Any, rows: Any, found: linear.Decision) -> tuple[Floats, float]:
    """Return what each time point of each channel of a series adds to a decision, and the intercept."""
    row, weights, centre, intercept = dense(rows).ravel(), found.weights, found.centre, found.intercept
    if found.amounts is not None:  # weights times columns; where a column is 0, it counts as 1 at all times
        weights, centre = found.amounts / np.where(row == 0, 1.0, row), np.where(row == 0, -1.0, 0.0)
    elif centre is not None:
        intercept += float(centre @ weights)
    return first.time_shares(X, weights, centre), intercept


def _column_name(first: Any, k: int, value: float, near: str = "") -> str:
    """Describe column k of the output of a model's first step; `near` is the class for which a small distance counts.

    Positions of the objects of `D2KE` are shown if they were taken from the training objects.
    """
    if isinstance(first, D2KE):
        scaled = -np.log(value) if value > 0 else np.inf  # a feature is exp(-gamma d) / sqrt(R), perhaps in float32
        distance = abs(np.round(scaled - np.log(len(first.random_objects_)) / 2, 5)) / first.gamma_
        known, thing = first.representative_indices_, described(take(first.random_objects_, [k]), k)
        what = f"training object {known[k]}" if len(known) else "random object"
        what += f" (near: {near})" if near else ""
        thing = thing.removeprefix(f"no. {k}").strip() if len(known) else thing
        return f"distance {distance:.3g} to {what} {thing}".rstrip()
    try:
        name = str(first.get_feature_names_out()[k])
    except (AttributeError, ValueError, NotImplementedError):
        name = f"column {k}"
    return f"{name} = {value:.4g}"
