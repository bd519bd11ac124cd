"""Express the decision of a pipeline for one object as a linear function of its first step's output, in parts.

Let f be the output of the first step. A last step with coefficients w decides by z . w + b. The scalers, selections
and projections in between are affine, z = A f + c, so the decision is exactly f . (A^T w) + (c . w + b).

Trees decide by the mean target in the leaves that an object reaches. Each split on the way leads from a node with one
mean target to a node with another; the column of the split gets the difference (Saabas 2014). The table in `_explain`
lists the parts for each first step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin, RegressorMixin, is_regressor
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.pipeline import FeatureUnion
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import SVC, SVR, NuSVC, NuSVR

from similia.codes import GraphHDEncoder, NGramEncoder, SequenceEncoder, SignRandomProjection
from similia.core.estimators import check_fitted
from similia.core.text import counted
from similia.embeddings import (
    D2KE,
    FeatureWeights,
    GraphletSampling,
    KernelFeatures,
    MeanMapFeatures,
    Nystroem,
    SparseScaler,
)
from similia.embeddings.vectors import FeatureScaler
from similia.explanations._comparisons import Naming, alone, feature_occurrences, is_directed, one_object, sum_parts
from similia.explanations._explanation import NOWHERE, Floats, Found, NoParts, joined
from similia.explanations._features import blocks_of, coefficients_by_column, linear_parts
from similia.explanations._series import of_times
from similia.explanations._views import Places, View, dense, described, one_note
from similia.learn import HDClassifier
from similia.learn.kernel_machines import pair_weights
from similia.objects import GraphToSets, SeriesBatch, SeriesToSets, as_graphs, as_series, as_sets, as_strings, take
from similia.pipelines import steps_of
from similia.similarity import name_of

_LEARNERS = (
    "explain takes a pipeline that ends in a linear model (LinearSVC, LogisticRegression, RidgeClassifier, "
    "SGDClassifier, Ridge, ...), in SVC or SVR, in ExtraTrees or RandomForest, in KernelSVC, KernelRidge, KernelSVR "
    "or a Gaussian process, in nearest neighbours, or in SignRandomProjection and HDClassifier"
)
_FORESTS = ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
_SCALERS = StandardScaler, RobustScaler, MinMaxScaler, MaxAbsScaler, SparseScaler
_PATHS = (
    "a column adds the changes of the mean target at the splits by this column, on the way of x through each tree; "
    "the intercept is the mean at the roots"
)
_CURVED = (
    "the model is not linear: a part is the amount that its feature adds on the way from the zero vector to x "
    "(integrated gradients), and the intercept is the decision at zero"
)
_LINEAR = 1e-3  # share of the terms by which a prediction in float32 may differ from their sum
_NODES, _EXACT = (16, 64, 256, 1024), 1e-10  # points of the numerical integration, and its tolerance
PREDICTED = "the predicted number"
_SERIES = {  # attributes that hold training series
    "objects_": "training series", "support_objects_": "support series", "landmarks_": "landmarks",
    "random_objects_": "representatives",
}  # fmt: skip
_READ = (
    (GraphletSampling | GraphToSets | GraphHDEncoder, as_graphs), (SeriesToSets | SequenceEncoder, as_series),
    (MeanMapFeatures, as_sets), (NGramEncoder, as_strings),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Decision:
    """A decision for one object, as a linear function of the output of a pipeline's first step."""

    value: float  # as the model computes it
    kind: str  # "decision" or "prediction"
    title: str  # such as "for a against b", where a and b are classes
    weights: Floats  # of the columns
    intercept: float
    centre: Floats | None = None  # mean of the columns if the model subtracts it
    note: str = ""
    amounts: Floats | None = None  # that the columns add, if not weight times value; then `weights` are not used
    classes: tuple[str, ...] = ()  # the two in the title


def decision(steps: list[Any], first: Any) -> Decision:
    """Return the decision for an object; `first` is the output of the first step for it, `steps` are all others."""
    rows = [first]
    for step in steps[:-1]:
        rows.append(step.transform(rows[-1]))
    if isinstance(steps[-1], _FORESTS):
        return _by_trees(steps, rows)
    if isinstance(steps[-1], HDClassifier):
        found, affine = _hypervectors(steps, rows), steps[:-2]
    else:
        found, affine = (_curved if _is_curved(steps[-1]) else _linear)(steps[-1], rows[-1]), steps[:-1]
    return before(affine, rows, found)


def before(steps: list[Any], rows: list[Any], found: Decision) -> Decision:
    """Convert a decision that is linear in the output of affine `steps` to one that is linear in their input.

    ``rows[i]`` is the input of ``steps[i]``. The amounts of trees are the same for the input, column by column.
    """
    if found.amounts is not None:
        _check_columns_kept(steps)
        return found
    weights, intercept, centre = found.weights, found.intercept, found.centre
    for step, row in reversed([*zip(steps, rows, strict=False)]):
        weights, constant = _before(step, row, weights)
        intercept += constant
    if steps:
        centre = _centre(steps[0], rows[0])
    return replace(found, weights=weights, intercept=intercept, centre=centre)


def _of_columns(found: Decision, columns: slice, factor: float) -> Decision:
    """Return the part of a decision over `factor` times some columns as one over these columns; without intercept."""
    weights = factor * found.weights[columns]
    centre = None if found.centre is None or factor == 0 else found.centre[columns] / factor
    amounts = None if found.amounts is None else found.amounts[columns]
    return replace(found, weights=weights, intercept=0.0, centre=centre, amounts=amounts)


def _centre(step: Any, row: Any) -> Floats | None:
    """Return the input of a step, among those of the zeros of `row`, at which all its output is 0; None if unknown."""
    scaler = getattr(step, "scaler_", step)
    if isinstance(scaler, SparseScaler):
        return dense(scaler.mean_) * np.sqrt(np.maximum(dense(row).ravel(), 0))
    if getattr(scaler, "mean_", None) is not None and getattr(scaler, "with_mean", True):
        return dense(scaler.mean_)
    return None


def check_learner(learner: Any) -> None:
    """Raise `NoParts` unless a learner is linear, a kernel machine on vectors, a forest or an `HDClassifier`."""
    if hasattr(learner, "predict"):
        check_fitted(learner)
    known = isinstance(learner, (HDClassifier, *_FORESTS)) or _is_curved(learner)
    known = known or (hasattr(learner, "coef_") and (is_regressor(learner) or hasattr(learner, "classes_")))
    if isinstance(learner, ClusterMixin):
        raise NoParts(
            f"{name_of(learner)} has clusters, whose decisions are not sums; similia.explanations.explain_classes, or "
            "similia cluster --report, shows what the members of each cluster share"
        )
    if not known:
        raise NoParts(f"{name_of(learner)} has no coefficients, so its decisions are not sums; {_LEARNERS}")


class NearestCenter(LinearClassifierMixin, BaseEstimator):
    """Nearest centre as a linear classifier: |z - a|^2 - |z - b|^2 = 2 z . (b - a) + |a|^2 - |b|^2."""

    def fit(self, centers: Floats) -> NearestCenter:
        self.coef_, self.intercept_ = 2.0 * centers, -np.square(centers).sum(axis=1)
        self.classes_ = np.array([f"cluster {c}" for c in range(len(centers))])
        if len(centers) == 2:
            self.coef_, self.intercept_ = self.coef_[1:] - self.coef_[:1], self.intercept_[1:] - self.intercept_[:1]
        return self


class AgainstRest(RegressorMixin, BaseEstimator):
    """How much nearer vectors are to the centre of a cluster than to those of the others, in squared distance.

    For a vector z, it predicts sum_c n_c |z - mu_c|^2 / sum_c n_c - |z - mu|^2, where mu is the centre of the cluster
    and mu_c that of another one, with n_c objects. This is linear in z, with the coefficients 2 (mu - m), where m is
    the mean of the mu_c with these weights, and not negative if mu is the nearest centre.
    """

    def fit(self, centers: Floats, counts: Places, cluster: int) -> AgainstRest:
        others = np.arange(len(centers)) != cluster
        own, rest, weights = centers[cluster], centers[others], np.maximum(counts[others], 1)  # a cluster may be empty
        self.coef_ = 2.0 * (own - np.average(rest, axis=0, weights=weights))
        self.intercept_ = float(np.average(np.square(rest).sum(axis=1), weights=weights) - np.square(own).sum())
        self.rivals = f"cluster {cluster}", "the rest"
        return self

    def predict(self, Z: Any) -> Floats:
        return dense(Z) @ self.coef_ + self.intercept_


def several_numbers(learner: Any, n: int) -> ValueError:
    return ValueError(f"{name_of(learner)} predicts {n} numbers, expected one; fit one model for each")


def check_two_classes(learner: Any) -> None:
    if len(learner.classes_) < 2:
        raise ValueError(f"{name_of(learner)} was fitted to one class, so it makes no decision to explain")


def check_one_label(learner: Any, row: Any) -> None:
    """Raise if a classifier predicts several labels for the one object in `row`: they are not rivals."""
    if np.ndim(learner.predict(row)) > 1:
        such = ", such as estimators_[0]" if hasattr(learner, "estimators_") else ""
        raise ValueError(
            f"{name_of(learner)} predicts several labels for an object; explain a model of one label{such}"
        )


def _linear(learner: Any, row: Any) -> Decision:
    coef = np.atleast_2d(dense(learner.coef_))
    intercept = np.broadcast_to(dense(getattr(learner, "intercept_", 0.0)).ravel(), (len(coef),))
    if is_regressor(learner):
        predicted = dense(learner.predict(row)).ravel()
        if len(predicted) != 1:
            raise several_numbers(learner, len(predicted))
        terms = dense(row).ravel() * coef[0]
        if abs(predicted[0] - terms.sum() - intercept[0]) > _LINEAR * (np.abs(terms).sum() + abs(intercept[0])):
            raise NoParts(f"{name_of(learner)} does not predict a linear function of its input; {_LEARNERS}")
        rivals = getattr(learner, "rivals", ())
        return Decision(float(predicted[0]), "prediction", PREDICTED, coef[0], float(intercept[0]), classes=rivals)
    classes = learner.classes_
    if len(classes) > 2 and isinstance(learner, SVC | NuSVC):
        scores = dense(row).ravel() @ coef.T + intercept
        winner, other, sign, machine = best_machine(learner.predict(row)[0], classes, scores)
        w, b = sign * coef[machine], sign * float(intercept[machine])
        return _between(classes, winner, other, float(dense(row).ravel() @ w) + b, w, b, one_vs_one(classes))
    check_one_label(learner, row)
    check_two_classes(learner)
    scores = dense(learner.decision_function(row)).ravel()
    if len(classes) == 2:
        winner = int(scores[0] > 0)
        sign = 2.0 * winner - 1.0
        w, b = sign * coef[0], sign * float(intercept[0])
        return _between(classes, winner, 1 - winner, sign * float(scores[0]), w, b)
    winner, other = best_two(scores)
    value = float(scores[winner] - scores[other])
    w, b = coef[winner] - coef[other], float(intercept[winner] - intercept[other])
    return _between(classes, winner, other, value, w, b)


def _between(
    classes: Any, winner: int, other: int, value: float, weights: Floats, intercept: float, note: str = ""
) -> Decision:
    both = str(classes[winner]), str(classes[other])
    title = against(classes, winner, other)
    return Decision(value, "decision", title, weights, intercept, note=note, classes=both)


def best_two(scores: Floats) -> tuple[int, int]:
    first, second = np.argsort(-scores, kind="stable")[:2].tolist()
    return first, second


def best_machine(predicted: Any, classes: Any, scores: Floats) -> tuple[int, int, float, int]:
    """Return (winner, other, sign, machine): predicted class, closest rival, and the machine that separates them.

    `scores` has the score of each one-vs-one machine, for the classes (0, 1), (0, 2), ...; a positive score means the
    first class. `sign` is -1 if the winner is the second class of its machine, else 1.
    """
    winner = int(np.flatnonzero(classes == predicted)[0])
    found = []
    for other in range(len(classes)):
        if other != winner:
            low, high = sorted((winner, other))
            machine = low * (2 * len(classes) - low - 1) // 2 + high - low - 1
            found.append((winner, other, 1.0 if winner == low else -1.0, machine))
    return min(found, key=lambda candidate: candidate[2] * float(scores[candidate[3]]))


def against(classes: Any, winner: int, other: int) -> str:
    return f"for {classes[winner]!s} against {classes[other]!s}"


def one_vs_one(classes: Any) -> str:
    return "" if len(classes) == 2 else "the decision is that of the machine for these two classes"


def _hypervectors(steps: list[Any], rows: list[Any]) -> Decision:
    r"""Return a linear approximation of a decision of `HDClassifier` on signs of random projections.

    Scores are linear in the signs. With z the input of the projection, each sign(p . z) is replaced
    by its best linear prediction for Gaussian directions p (Bussgang): sqrt(2 / pi) p . z / (s ||z||), where s^2 is the
    mean square of the entries of p.
    """
    learner, projection = steps[-1], steps[-2] if len(steps) > 1 else None
    if not isinstance(projection, SignRandomProjection) or projection.projection_ is None:
        found = "no step" if projection is None else f"{projection!r}"
        raise NoParts(
            "the decisions of HDClassifier are sums only if SignRandomProjection(method='gaussian') makes the bits, "
            f"found {found} before it"
        )
    z = np.asarray(rows[-2], dtype=np.float64).ravel()
    directions, _ = learner.in_floats()
    scores = learner._scores(rows[-1])[0]
    winner, other = best_two(scores)
    units = directions / np.sqrt(directions.shape[1])
    P = np.asarray(projection.projection_, dtype=np.float32)
    scale = float(np.sqrt(np.mean(np.square(P, dtype=np.float64)))) * float(np.linalg.norm(z))
    pulled = ((units[winner] - units[other]).astype(np.float32) @ P).astype(np.float64)
    weights = np.sqrt(2 / np.pi) / scale * pulled if scale > 0 else np.zeros(len(z))
    note = (
        "bits are not a linear function of the object: the parts are those of the best linear prediction of the bits, "
        "and its error is not explained by parts"
    )
    intercept = float(learner.intercept_[winner] - learner.intercept_[other])
    value = float(scores[winner] - scores[other])
    return _between(learner.classes_, winner, other, value, weights, intercept, note)


def _by_trees(steps: list[Any], rows: list[Any]) -> Decision:
    """Return the decision of a forest as a sum over the columns of the splits on the way to the leaves."""
    learner, row = steps[-1], np.asarray(dense(rows[-1]), dtype=np.float32)
    _check_columns_kept(steps[:-1])
    if learner.n_outputs_ != 1:
        raise several_numbers(learner, learner.n_outputs_)
    if is_regressor(learner):
        kind, title, direction = "prediction", PREDICTED, np.ones(1)
    else:
        check_two_classes(learner)
        winner, other = best_two(learner.predict_proba(rows[-1])[0])
        kind, title = "decision", against(learner.classes_, winner, other)
        direction = (np.arange(len(learner.classes_)) == winner) * 1.0 - (np.arange(len(learner.classes_)) == other)
    amounts, roots = np.zeros(row.shape[1]), 0.0
    for tree in (estimator.tree_ for estimator in learner.estimators_):
        targets = tree.value[:, 0, :]
        if not is_regressor(learner):
            targets = targets / targets.sum(axis=1, keepdims=True)
        means, way = targets @ direction, tree.decision_path(row).indices  # a child has a larger number than its parent
        np.add.at(amounts, tree.feature[way[:-1]], np.diff(means[way]) / len(learner.estimators_))
        roots += float(means[0]) / len(learner.estimators_)
    value = float(amounts.sum()) + roots
    return Decision(value, kind, title, np.zeros(len(amounts)), roots, note=_PATHS, amounts=amounts)


def _check_columns_kept(steps: list[Any]) -> None:
    """Raise `NoParts` if a step before trees is not a scaler, which maps each column to itself."""
    for step in steps:
        if not isinstance(getattr(step, "scaler_", step), _SCALERS):
            raise NoParts(
                f"{type(step).__name__} mixes columns before the trees split by them; leave it out, or use a scaler"
            )


def _before(step: Any, row: Any, w: Floats) -> tuple[Floats, float]:
    """Convert weights `w` on the output of an affine step to (weights, constant) on the step's input, `row`."""
    if isinstance(step, FeatureScaler):
        step = step.scaler_
    kind = type(step).__name__
    if kind in ("StandardScaler", "RobustScaler"):
        scaled = w if step.scale_ is None else w / step.scale_
        shift = step.center_ if kind == "RobustScaler" else step.mean_ if step.with_mean else None
        return scaled, 0.0 if shift is None else -float(shift @ scaled)
    if kind == "MaxAbsScaler" and not getattr(step, "clip", False):
        return w / step.scale_, 0.0
    if kind == "MinMaxScaler" and not step.clip:
        return w * step.scale_, float(step.min_ @ w)
    if kind == "TruncatedSVD":
        return step.components_.T @ w, 0.0
    if kind == "PCA":
        roots = np.sqrt(step.explained_variance_)  # not below the machine precision, as in scikit-learn
        scaled = w / np.maximum(roots, np.finfo(roots.dtype).eps) if step.whiten else w
        back = step.components_.T @ scaled
        return back, -float(step.mean_ @ back)
    if isinstance(step, FeatureWeights):  # as for a Normalizer below, norm and logarithms of this row are factors
        before, after = dense(row).ravel(), dense(step.transform(row)).ravel()
        return w * np.divide(after, before, out=np.zeros_like(after), where=before != 0), 0.0
    if kind == "Normalizer":
        order = {"l1": 1, "l2": 2, "max": np.inf}[step.norm]
        return w / (float(np.linalg.norm(dense(row).ravel(), order)) or 1.0), 0.0
    if isinstance(step, SparseScaler):  # the square root of a column x is x / sqrt(x)
        roots = np.sqrt(np.maximum(dense(row).ravel(), 0))
        scaled = np.where(roots > 0, w / step.scale_, 0.0)
        return np.divide(scaled, roots, out=np.zeros_like(roots), where=roots > 0), -float(step.mean_ @ scaled)
    if hasattr(step, "get_support"):
        back = np.zeros(len(step.get_support()))
        back[step.get_support()] = w
        return back, 0.0
    raise NoParts(
        f"{kind} is not affine, so the decision is not a sum over its input; before the learner, use "
        "FeatureWeights, SparseScaler, StandardScaler, RobustScaler, MinMaxScaler, MaxAbsScaler, Normalizer, PCA, "
        "TruncatedSVD or feature selection"
    )


def _is_curved(learner: Any) -> bool:
    return isinstance(learner, SVC | NuSVC | SVR | NuSVR) and learner.kernel in ("rbf", "poly", "sigmoid")


def _curved(learner: Any, row: Any) -> Decision:
    z, support = dense(row).ravel(), dense(learner.support_vectors_)
    predicted = learner.predict(row)[0]
    if is_regressor(learner):
        weights, constant, _ = _integrated(learner, support, dense(learner.dual_coef_)[0], learner.intercept_[0], z)
        return Decision(float(predicted), "prediction", PREDICTED, weights, constant, note=_CURVED)
    a, b = pair_weights(learner)
    classes = learner.classes_
    values = _kernel(learner, support, z, np.ones(1))[0][:, 0]
    scores = np.array([float(coefficients @ values) for coefficients in a]) + b
    winner, other, sign, machine = best_machine(predicted, classes, scores)
    weights, constant, value = _integrated(learner, support, sign * a[machine], sign * float(b[machine]), z)
    note = one_note(one_vs_one(classes), _CURVED)
    return Decision(value, "decision", against(classes, winner, other), weights, constant, note=note)


def _integrated(learner: Any, support: Floats, a: Floats, b: float, z: Floats) -> tuple[Floats, float, float]:
    """Return (mean gradient of f from 0 to z, f(0), f(z)) for f(z) = b + sum_i a[i] k(support[i], z)."""
    ends = a @ _kernel(learner, support, z, np.array([0.0, 1.0]))[0] + b
    size = _EXACT * max(1.0, *np.abs(ends).tolist())
    for n in _NODES:
        nodes, shares = np.polynomial.legendre.leggauss(n)
        t, shares = (nodes + 1) / 2, shares / 2
        _, to_support, to_z = _kernel(learner, support, z, t)
        weights = support.T @ (a * (to_support @ shares)) + z * float(a @ (to_z @ shares))
        if abs(float(weights @ z) - float(ends[1] - ends[0])) <= size:
            break
    return weights, float(ends[0]), float(ends[1])


def _kernel(learner: Any, support: Floats, z: Floats, t: Floats) -> tuple[Floats, Floats, Floats]:
    """Return k(s, u) for each s in `support` and each u = t z, and the coefficients of s and z in the gradient by u."""
    gamma, degree = float(learner._gamma), int(learner.degree)
    products = (support @ z)[:, None] * t
    if learner.kernel == "rbf":
        squares = np.square(support).sum(axis=1)[:, None] - 2 * products + t**2 * float(z @ z)
        values = np.exp(-gamma * np.maximum(squares, 0.0))
        return values, 2 * gamma * values, -2 * gamma * t * values
    inner = gamma * products + float(learner.coef0)
    if learner.kernel == "poly":
        slope = degree * inner ** (degree - 1) if degree else np.zeros_like(inner)
        return inner**degree, gamma * slope, np.zeros_like(inner)
    values = np.tanh(inner)
    return values, gamma * (1 - values**2), np.zeros_like(inner)


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
    if callable(compared):
        return one_object(compared, x, "x")
    is_vector = isinstance(x, np.ndarray) and x.ndim == 1 and x.dtype.kind in "biuf"
    return x[None] if is_vector else _alone(x)  # a matrix, not a list: a step may take columns of it


def _alone(x: Any) -> Any:
    """Return a collection of the object `x`; a row of a matrix is one already."""
    return x if len(getattr(x, "shape", ())) == 2 and x.shape[0] == 1 else alone(x, "x")


def called(first: Any) -> str:
    return " + ".join(map(name_of, _inside(first)))


def _inside(first: Any) -> list[Any]:
    """Return the first step in a list; of a union, the first step of each transformer."""
    if not isinstance(first, FeatureUnion):
        return [first]
    return [step for _, branch, _ in _branches(first) for step in _inside((steps_of(branch) or [branch])[0])]


def _branches(union: FeatureUnion) -> list[tuple[str, Any, float]]:
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


def parts_of_decision(first: Any, X: Any, rows: Any, found: Decision, naming: Naming) -> tuple[Found, float]:
    """Return the parts of a decision, and the amount that is the same for every object."""
    if isinstance(first, FeatureUnion):
        return _of_union(first, X, found, naming)
    if hasattr(first, "time_shares"):
        amounts, intercept = _by_time(first, X, rows, found)
        return of_times(amounts, X.values), intercept
    by_weights = found.amounts is None
    if by_weights and isinstance(first, KernelFeatures) and (blocks := blocks_of(first._learnt_kernel)) is not None:
        parts = []
        for block, column in blocks:
            x = feature_occurrences(block.kernel, block.as_objects(X), naming, is_directed(X))
            coefficients = coefficients_by_column(block, column, x, first.n_features, found.weights)
            parts.append(linear_parts(x, block.scale(X)[0] * coefficients).times(1.0, block.prefix))
        return joined(parts), found.intercept
    if by_weights and isinstance(first, Nystroem) and not first._fitted_to_matrix:
        alpha, numbers = first.components_ @ found.weights, first.landmark_indices_
        return sum_parts(first.kernel_, X, first.landmarks_, alpha, naming, "landmark", numbers), found.intercept
    row, named, intercept = dense(rows).ravel(), naming.after([first] if first is not None else []), found.intercept
    values = row
    if by_weights and found.centre is not None:
        values = row - found.centre
        intercept += float(found.centre @ found.weights)

    def describe(k: int) -> tuple[str, Places, Places]:
        near = found.classes[int(found.weights[k] < 0)] if found.classes else ""
        return _column_name(first, k, row[k], named, near), NOWHERE, NOWHERE

    return Found(values * found.weights if found.amounts is None else found.amounts, describe), intercept


def _of_union(union: FeatureUnion, X: Any, found: Decision, naming: Naming) -> tuple[Found, float]:
    """Return the parts of the transformers of a union, and the intercept; amounts of the same times are added."""
    parts, times, intercept, start = [], [], found.intercept, 0
    for name, branch, factor in _branches(union):
        steps = steps_of(branch) or [branch]
        rows = [X]
        for step in steps:
            rows.append(step.transform(rows[-1]))
        stop = start + rows[-1].shape[1]
        own, start = _of_columns(found, slice(start, stop), factor), stop
        try:
            first, row, own = steps[0], rows[1], before(steps[1:], rows[1:], own)
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


def _by_time(first: Any, X: Any, rows: Any, found: Decision) -> tuple[Floats, float]:
    """Return what each time point of each channel of a series adds to a decision, and the intercept."""
    row, weights, centre, intercept = dense(rows).ravel(), found.weights, found.centre, found.intercept
    if found.amounts is not None:  # weights times columns; where a column is 0, it counts as 1 at all times
        weights, centre = found.amounts / np.where(row == 0, 1.0, row), np.where(row == 0, -1.0, 0.0)
    elif centre is not None:
        intercept += float(centre @ weights)
    return first.time_shares(X, weights, centre), intercept


def _column_name(first: Any, k: int, value: float, naming: Naming, near: str = "") -> str:
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
    return naming.column(k) + f" = {value:.4g}" * naming.valued
