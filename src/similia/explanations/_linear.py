"""Express a linear decision in the output of a pipeline's first step.

A last step with coefficients decides by z . w + b. The scalers, selections and projections before it are affine,
z = A f + c, so the decision is exactly f . (A^T w) + (c . w + b), for any number of steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_regressor
from sklearn.svm import SVC, SVR, NuSVC, NuSVR
from sklearn.utils.validation import check_is_fitted

from similia.codes import SignRandomProjection
from similia.embeddings.vectors import FeatureScaler
from similia.explanations._explanation import Floats
from similia.learn import HDClassifier
from similia.similarity import name_of

_LEARNERS = (
    "what can be explained is a pipeline that ends in a linear model (LinearSVC, LogisticRegression, RidgeClassifier, "
    "SGDClassifier, Ridge, ...), in SVC or SVR, in KernelSVC, KernelRidge or KernelSVR, in nearest neighbours, or in "
    "SignRandomProjection and HDClassifier"
)
ONE_VS_ONE = "the decision is that of the machine for these two classes"


@dataclass(frozen=True, eq=False)
class Decision:
    """A decision for one object, as a linear function of the first step's output.

    Attributes
    ----------
    value : float
        Decision as the model computes it.
    kind : {"decision", "prediction"}
    title : str
        The class decided for, and the class decided against.
    weights : ndarray of float64, shape (n_columns,)
    intercept : float
    centre : ndarray of float64 or None
        Mean of the columns if the model subtracts it.
    note : str
    """

    value: float
    kind: str
    title: str
    weights: Floats
    intercept: float
    centre: Floats | None = None
    note: str = ""


def decision(steps: list[Any], first: Any) -> Decision:
    """Return the decision of a model's last step for an object, in terms of the first step's output.

    Parameters
    ----------
    steps : list of estimators
        Steps after the first; at least the learner.
    first : array or sparse array of shape (1, n_columns)
        Output of the first step for the object.
    """
    rows = [first]
    for step in steps[:-1]:
        rows.append(step.transform(rows[-1]))
    found = _hypervectors(steps, rows) if isinstance(steps[-1], HDClassifier) else _learner(steps[-1], rows[-1])
    before = steps[:-2] if isinstance(steps[-1], HDClassifier) else steps[:-1]
    weights, intercept = found.weights, found.intercept
    centre: Floats | None = None
    for step, row in zip(before[::-1], rows[: len(before)][::-1], strict=True):
        weights, constant = _before(step, row, weights)
        intercept += constant
    if before and (mean := getattr(getattr(before[0], "scaler_", before[0]), "mean_", None)) is not None:
        scaler = getattr(before[0], "scaler_", before[0])
        centre = np.asarray(mean, dtype=np.float64) if getattr(scaler, "with_mean", True) else None
    return Decision(found.value, found.kind, found.title, weights, intercept, centre, found.note)


def check_learner(learner: Any) -> None:
    """Raise unless a last step decides by coefficients, a nonlinear kernel of vectors, or hypervectors."""
    if hasattr(learner, "predict"):
        check_is_fitted(learner)
    if not isinstance(learner, HDClassifier) and not is_curved(learner) and not hasattr(learner, "coef_"):
        raise TypeError(f"{name_of(learner)} has no coefficients, so that its decisions are no sums; {_LEARNERS}")


def _learner(learner: Any, row: Any) -> Decision:
    """Return the decision of a model with coefficients or a nonlinear kernel."""
    if is_curved(learner):
        return _curved(learner, row)
    coef = learner.coef_.toarray() if sp.issparse(learner.coef_) else np.atleast_2d(learner.coef_)
    coef = np.asarray(coef, dtype=np.float64)
    intercept = np.broadcast_to(np.asarray(getattr(learner, "intercept_", 0.0), dtype=np.float64).ravel(), (len(coef),))
    if is_regressor(learner):
        predicted = np.asarray(learner.predict(row), dtype=np.float64).ravel()
        if len(predicted) != 1:
            raise ValueError(
                f"{name_of(learner)} predicts {len(predicted)} numbers, expected one; fit one model for each"
            )
        return Decision(float(predicted[0]), "prediction", "the predicted number", coef[0], float(intercept[0]))
    classes = learner.classes_
    if len(classes) > 2 and isinstance(learner, SVC | NuSVC):  # one machine for each pair of classes
        winner, other, sign, pair = best_machine(learner.predict(row)[0], classes, np.ravel(row @ coef.T) + intercept)
        w, b = sign * coef[pair], sign * float(intercept[pair])
        return Decision(
            float(np.ravel(row @ w)[0]) + b, "decision", against(classes, winner, other), w, b, note=ONE_VS_ONE
        )
    scores = np.asarray(learner.decision_function(row), dtype=np.float64).ravel()
    if len(classes) == 2:
        winner = int(scores[0] > 0)
        sign, title = 2.0 * winner - 1.0, against(classes, winner, 1 - winner)
        return Decision(sign * float(scores[0]), "decision", title, sign * coef[0], sign * float(intercept[0]))
    winner, other = (int(c) for c in np.argsort(-scores, kind="stable")[:2])
    value = float(scores[winner] - scores[other])
    w, b = coef[winner] - coef[other], float(intercept[winner] - intercept[other])
    return Decision(value, "decision", against(classes, winner, other), w, b)


def _curved(learner: Any, row: Any) -> Decision:
    """Return the decision of a support-vector machine whose kernel is not linear."""
    if is_regressor(learner):
        weights, constant, _ = integrated(learner, row)
        value = float(learner.predict(row)[0])
        return Decision(value, "prediction", "the predicted number", weights, constant, note=CURVED)
    classes = learner.classes_
    winner = int(np.flatnonzero(classes == learner.predict(row)[0])[0])
    other, a, b = machine_between(learner, row, winner)
    weights, constant, value = integrated(learner, row, a, b)
    note = CURVED if len(classes) == 2 else f"{ONE_VS_ONE}; {CURVED}"
    return Decision(value, "decision", against(classes, winner, other), weights, constant, note=note)


def best_machine(predicted: Any, classes: Any, scores: Floats) -> tuple[int, int, float, int]:
    """Return (winner, other, sign, machine): the predicted class, its runner-up, and their machine.

    `scores` are those of the one-vs-one machines for the classes (0, 1), (0, 2), ..., positive for the first class.
    """
    winner = int(np.flatnonzero(classes == predicted)[0])
    margins = {}
    for other in range(len(classes)):
        if other != winner:
            pair, sign = machine_of(winner, other, len(classes))
            margins[other] = (sign * float(scores[pair]), sign, pair)
    other = min(margins, key=lambda c: margins[c][0])
    return winner, other, *margins[other][1:]


def machine_of(winner: int, other: int, n_classes: int) -> tuple[int, float]:
    """Return the one-vs-one machine of two classes, and the sign that makes it positive for `winner`."""
    low, high = sorted((winner, other))
    return low * (2 * n_classes - low - 1) // 2 + high - low - 1, 1.0 if winner == low else -1.0


def against(classes: Any, winner: int, other: int) -> str:
    return f"for {classes[winner]!s} against {classes[other]!s}"


def _hypervectors(steps: list[Any], rows: list[Any]) -> Decision:
    r"""Return the linear surrogate of a decision on signs of projections.

    Cosines to the prototypes are linear in the bits. The best linear prediction for Gaussian directions (Bussgang)
    replaces each sign: sign(p . z) by sqrt(2 / pi) p . z / (s ||z||), s^2 the mean square of the entries of p.
    """
    learner, projection = steps[-1], steps[-2] if len(steps) > 1 else None
    if not isinstance(projection, SignRandomProjection) or projection.projection_ is None:
        found = "no step" if projection is None else f"{projection!r}"
        raise TypeError(
            "HDClassifier decides by bits, which are explained where they come from "
            f"SignRandomProjection(method='gaussian'), found {found} before it"
        )
    z = np.asarray(rows[-2], dtype=np.float64).ravel()
    prototypes = learner.prototypes_
    if learner.binary_prototypes:
        prototypes = np.unpackbits(learner.prototype_codes_, axis=1, count=prototypes.shape[1]) * 2.0 - 1.0
    scores = learner._similarities(rows[-1])[0]
    winner, other = (int(c) for c in np.argsort(-scores, kind="stable")[:2])
    d = prototypes.shape[1]
    norms = np.linalg.norm(prototypes, axis=1) * np.sqrt(d)
    units = prototypes / np.where(norms > 0, norms, 1.0)[:, None]
    P = np.asarray(projection.projection_, dtype=np.float32)
    scale = float(np.sqrt(np.mean(np.square(P, dtype=np.float64)))) * float(np.linalg.norm(z))
    pulled = ((units[winner] - units[other]).astype(np.float32) @ P).astype(np.float64)
    weights = np.sqrt(2 / np.pi) / scale * pulled if scale > 0 else np.zeros(len(z))
    note = (
        "bits are no linear function of the object: the parts are those of the best linear prediction of the signs, "
        "and what they miss is left over"
    )
    value = float(scores[winner] - scores[other])
    return Decision(value, "decision", against(learner.classes_, winner, other), weights, 0.0, None, note)


def _before(step: Any, row: Any, w: Floats) -> tuple[Floats, float]:
    """Return (A^T w, c . w) of an affine step z = A f + c; `row` is the f of the object."""
    if isinstance(step, FeatureScaler):
        step = step.scaler_
    kind = type(step).__name__
    if kind in ("StandardScaler", "RobustScaler"):
        scaled = w if step.scale_ is None else w / step.scale_
        shift = step.center_ if kind == "RobustScaler" else step.mean_ if step.with_mean else None
        return scaled, 0.0 if shift is None else -float(shift @ scaled)
    if kind == "MaxAbsScaler":
        return w / step.scale_, 0.0
    if kind == "MinMaxScaler" and not step.clip:
        return w * step.scale_, float(step.min_ @ w)
    if kind == "TruncatedSVD":
        return step.components_.T @ w, 0.0
    if kind == "PCA":
        scaled = w / np.sqrt(step.explained_variance_) if step.whiten else w
        back = step.components_.T @ scaled
        return back, -float(step.mean_ @ back)
    if kind == "Normalizer":
        order = {"l1": 1, "l2": 2, "max": np.inf}[step.norm]
        size = float(np.linalg.norm(row.toarray().ravel() if sp.issparse(row) else np.ravel(row), order))
        return w / (size or 1.0), 0.0
    if hasattr(step, "get_support"):
        back = np.zeros(len(step.get_support()))
        back[step.get_support()] = w
        return back, 0.0
    raise TypeError(
        f"{kind} is a step that is not affine, so that the decision cannot be brought back through it; explained are "
        "pipelines with StandardScaler, RobustScaler, MinMaxScaler, MaxAbsScaler, Normalizer, PCA, TruncatedSVD or "
        "feature selection between the first step and the learner"
    )


KERNELS = ("rbf", "poly", "sigmoid")


CURVED = (
    "the model is not linear: a part is what its feature adds on the way from the zero vector to x (integrated "
    "gradients), and the intercept is the decision at zero"
)


_NODES = (16, 64, 256, 1024)


_EXACT = 1e-10


def is_curved(learner: Any) -> bool:
    """Return whether a learner is a support-vector machine with a nonlinear kernel that is known here."""
    return isinstance(learner, SVC | NuSVC | SVR | NuSVR) and learner.kernel in KERNELS


def dense_row(row: Any) -> Floats:
    """Return one row, dense or sparse, as a vector."""
    return np.asarray(row.toarray() if sp.issparse(row) else row, dtype=np.float64).ravel()


def machine_between(learner: Any, row: Any, winner: int) -> tuple[int, Floats, float]:
    """Return (other, dual coefficients, intercept) of the machine for `winner` and its runner-up."""
    n_classes, D = len(learner.classes_), _dual(learner)
    if n_classes == 2:
        sign = 2.0 * winner - 1.0
        return 1 - winner, sign * D[0], sign * float(learner.intercept_[0])
    values = _Kernel(learner).at(dense_row(row), np.ones(1))[0][:, 0]
    first = np.concatenate([[0], np.cumsum(learner.n_support_)])
    machines = []
    for other in (c for c in range(n_classes) if c != winner):
        i, j = sorted((winner, other))
        pair, sign = machine_of(winner, other, n_classes)
        a = np.zeros(D.shape[1])
        a[first[i] : first[i + 1]] = D[j - 1, first[i] : first[i + 1]]
        a[first[j] : first[j + 1]] = D[i, first[j] : first[j + 1]]
        machines.append((other, sign * a, sign * float(learner.intercept_[pair])))
    return min(machines, key=lambda machine: float(machine[1] @ values) + machine[2])


def integrated(learner: Any, row: Any, a: Floats | None = None, b: float | None = None) -> tuple[Floats, float, float]:
    """Return (weights, f(0), f(z)) with f(z) = weights . z + f(0) of f(z) = sum_i a_i k(s_i, z) + b."""
    z, kernel = dense_row(row), _Kernel(learner)
    a = _dual(learner)[0] if a is None else a
    b = float(learner.intercept_[0]) if b is None else b
    ends = a @ kernel.at(z, np.array([0.0, 1.0]))[0] + b
    size = _EXACT * max(1.0, *np.abs(ends).tolist())
    for n in _NODES:
        nodes, shares = np.polynomial.legendre.leggauss(n)
        t, shares = (nodes + 1) / 2, shares / 2
        _, to_support, to_z = kernel.at(z, t)
        weights = kernel.support.T @ (a * (to_support @ shares)) + z * float(a @ (to_z @ shares))
        if abs(float(weights @ z) - float(ends[1] - ends[0])) <= size:
            break
    return weights, float(ends[0]), float(ends[1])


def _dual(learner: Any) -> Floats:
    D = learner.dual_coef_
    return np.asarray(D.toarray() if sp.issparse(D) else D, dtype=np.float64)


class _Kernel:
    """Kernel values and gradients between a machine's support vectors and points t z on a line."""

    def __init__(self, learner: Any) -> None:
        S = learner.support_vectors_
        self.support = np.asarray(S.toarray() if sp.issparse(S) else S, dtype=np.float64)
        self.name, self.gamma = learner.kernel, float(learner._gamma)
        self.degree, self.coef0 = int(learner.degree), float(learner.coef0)

    def at(self, z: Floats, t: Floats) -> tuple[Floats, Floats, Floats]:
        """Return values k(s_i, t z), and the factors of s_i and of z in their gradients, each (n_support, n_nodes)."""
        products = (self.support @ z)[:, None] * t
        if self.name == "rbf":
            squares = np.square(self.support).sum(axis=1)[:, None] - 2 * products + t**2 * float(z @ z)
            values = np.exp(-self.gamma * np.maximum(squares, 0.0))
            return values, 2 * self.gamma * values, -2 * self.gamma * t * values
        inner = self.gamma * products + self.coef0
        if self.name == "poly":
            slope = self.degree * inner ** (self.degree - 1) if self.degree else np.zeros_like(inner)
            return inner**self.degree, self.gamma * slope, np.zeros_like(inner)
        values = np.tanh(inner)
        return values, self.gamma * (1 - values**2), np.zeros_like(inner)
