r"""Support-vector machines with a curved kernel on vectors: a decision as a sum over columns.

f(z) = sum_i a_i k(s_i, z) + b is not linear, but it is the integral of its slope along the line from 0 to z:

.. math:: f(z) - f(0) = \sum_j z_j \int_0^1 \frac{\partial f}{\partial z_j}(t z)\, dt.

These integrated gradients weigh the columns of z as the coefficients of a linear model do, and their sum is exact.

Cost: as many kernel values as support vectors, for each of 16 to 1,024 nodes of a Gauss-Legendre rule, which is refined
until the sum is right to 1e-10.

Paper: Sundararajan, Taly & Yan, "Axiomatic attribution for deep networks", ICML 2017, section 3.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.svm import SVC, SVR, NuSVC, NuSVR

from similia.explanations._found import Floats

KERNELS = ("rbf", "poly", "sigmoid")
NOTE = (
    "the model is not linear: a part is what its feature adds on the way from the zero vector to x (integrated "
    "gradients), and the intercept is the decision at zero"
)
_NODES = (16, 64, 256, 1024)
_EXACT = 1e-10


def is_curved(learner: Any) -> bool:
    """Whether a learner is a support-vector machine with a curved kernel that is known here."""
    return isinstance(learner, SVC | NuSVC | SVR | NuSVR) and learner.kernel in KERNELS


def dense_row(row: Any) -> Floats:
    """Return one row, dense or sparse, as a vector."""
    return np.asarray(row.toarray() if sp.issparse(row) else row, dtype=np.float64).ravel()


def machine_between(learner: Any, row: Any, winner: int) -> tuple[int, Floats, float]:
    """Return (other, dual coefficients, intercept) of the machine for `winner` and the class nearest to winning."""
    n_classes, D = len(learner.classes_), _dual(learner)
    if n_classes == 2:
        sign = 2.0 * winner - 1.0
        return 1 - winner, sign * D[0], sign * float(learner.intercept_[0])
    values = _Kernel(learner).at(dense_row(row), np.ones(1))[0][:, 0]
    first = np.concatenate([[0], np.cumsum(learner.n_support_)])
    machines = []
    for other in (c for c in range(n_classes) if c != winner):
        i, j = sorted((winner, other))
        pair, sign = i * (2 * n_classes - i - 1) // 2 + j - i - 1, 1.0 if winner == i else -1.0
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
    """Values and slopes of the kernel of a machine between its support vectors and points t z of a line."""

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
