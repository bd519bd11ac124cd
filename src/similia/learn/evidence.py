"""The evidence of a Gaussian process, and the scale, noise and mean that maximise it.

The evidence is the likelihood of all targets y under the model y_i = mu + f(x_i) + e_i, where f has the covariance
s^2 k and e_i is noise of variance s^2 a. For each a, the best mu is 1^T G y / 1^T G 1 with G = (K + a I)^-1, and the
best s^2 is (y - mu)^T G (y - mu) / n. So the search has one dimension: about 16 values of a, in threads.

With m landmarks, Q, the Nyström approximation of K, takes its place, and the bound of Titsias (2009) that of the
evidence: it subtracts tr(K - Q) / (2 a), so that noise may not explain what the approximation loses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_solve, cholesky, eigh, solve_triangular

from similia.core.threads import in_threads
from similia.embeddings.gram import row_blocks
from similia.embeddings.nystroem import Nystroem
from similia.objects import n_objects, take
from similia.similarity import diagonal

Floats = npt.NDArray[np.float64]

_COARSE = np.arange(-6.0, 3.0)  # decimal logarithms of a, in units of the mean k(x, x)
_FINE = np.array([-0.75, -0.5, -0.25, 0.25, 0.5, 0.75])  # steps from the best of these


@dataclass(frozen=True)
class Fit:
    """Scale, noise and mean for one kernel, and their evidence."""

    evidence: float  # logarithm; with landmarks, its lower bound
    scale: float  # s^2
    ratio: float  # a, the variance of the noise in units of s^2
    mean: float  # mu, for targets whose mean was subtracted before


class Evidence(NamedTuple):
    """Terms of the logarithm of the evidence for one ratio a."""

    mean: float  # mu
    square: float  # (y - mu)^T G (y - mu)
    logdet: float  # of K + a I
    lost: float  # tr(K - Q) / (2 a)


class AllPairs:
    """Exact inference from the Gram matrix of n objects."""

    def __init__(self, K: Floats) -> None:
        self.K = K
        self.unit = float(np.trace(K)) / len(K) or 1.0

    def evidence(self, y: Floats, ratio: float) -> Evidence | None:
        """Return the terms of the evidence; None if K + a I is not positive definite."""
        factor = self._factor(ratio)
        if factor is None:
            return None
        white = solve_triangular(factor, np.column_stack([y, np.ones(len(y))]), lower=True)
        return Evidence(*_best_mean(white.T @ white), 2 * float(np.log(factor.diagonal()).sum()), 0.0)

    def posterior(self, ratio: float, y: Floats) -> tuple[None, Floats, Floats, tuple[Floats, Floats]]:
        """Return (None, w, A, (mean, variance / s^2 of each target given the others))."""
        factor = self._factor(ratio)
        assert factor is not None  # it was for the evidence
        whitening = np.ascontiguousarray(solve_triangular(factor, np.eye(len(y)), lower=True, overwrite_b=True).T)
        coefficients = cho_solve((factor, True), y)
        precision = (whitening**2).sum(axis=1)  # the diagonal of G
        return None, coefficients, whitening, (y - coefficients / precision, 1 / precision)

    def _factor(self, ratio: float) -> Floats | None:
        M = self.K.copy()
        M[np.diag_indices_from(M)] += ratio
        return cholesky_factor(M)


class Landmarks:
    """Inference with the Nyström approximation of the kernel, from sums over blocks of objects."""

    def __init__(self, embedding: Nystroem, objects: Any) -> None:
        self.embedding, self.objects = embedding, objects
        self.diagonal = diagonal(embedding.kernel_, objects)
        self.unit = float(self.diagonal.mean()) or 1.0
        products, lost = np.zeros((embedding.rank_, embedding.rank_)), []
        for _, features in self._blocks():
            products += features.T @ features
            lost.append((features**2).sum(axis=1))
        self.lost = np.maximum(self.diagonal - np.concatenate(lost), 0.0)  # k(x, x) - q(x, x)
        values, self.vectors = eigh(products)
        self.values = np.maximum(values, 0.0)
        self.sums: tuple[Floats, Floats] | None = None  # targets, and their result of `_projected`

    def evidence(self, y: Floats, ratio: float) -> Evidence:
        """Return the terms of the bound of the evidence."""
        b, values = self._projected(y), self.values
        both = np.column_stack([y, np.ones(len(y))])
        products = (both.T @ both - (b / (values + ratio)[:, None]).T @ b) / ratio
        logdet = float(np.log(values + ratio).sum()) + (len(y) - len(values)) * float(np.log(ratio))
        return Evidence(*_best_mean(products), logdet, float(self.lost.sum()) / (2 * ratio))

    def posterior(self, ratio: float, y: Floats) -> tuple[Any, Floats, Floats, tuple[Floats, Floats]]:
        """Return ((landmarks, their positions), w, A, (mean, variance / s^2 of each target given the others))."""
        shares = 1 / (self.values + ratio)
        weights = self.vectors @ (self._projected(y)[:, 0] * shares)
        fitted, leverage = np.empty(len(y)), np.empty(len(y))
        for rows, features in self._blocks():
            fitted[rows] = features @ weights
            leverage[rows] = (features @ self.vectors) ** 2 @ shares
        unfitted = 1 - leverage  # residual of the fit = (1 - leverage) x residual if the object is left out
        components = self.embedding.components_
        whitening = components @ (self.vectors * np.sqrt(self.values * shares))
        loo = y - (y - fitted) / unfitted, ratio / unfitted + self.lost
        kept = self.embedding.landmarks_, self.embedding.landmark_indices_
        return kept, components @ weights, whitening, loo

    def _projected(self, y: Floats) -> Floats:
        """Return the products of features with targets and with ones, (rank, 2), in the basis of eigenvectors."""
        if self.sums is None or self.sums[0] is not y:
            total = np.zeros((len(self.values), 2))
            for rows, features in self._blocks():
                total += features.T @ np.column_stack([y[rows], np.ones(len(rows))])
            self.sums = y, self.vectors.T @ total
        return self.sums[1]

    def _blocks(self) -> Any:
        for rows in row_blocks(n_objects(self.objects), 8 * 3 * len(self.embedding.components_), 2**13):
            yield rows, np.asarray(self.embedding.transform(take(self.objects, rows)), dtype=np.float64)


def _best_mean(products: Floats) -> tuple[float, float]:
    """Return (mu, (y - mu)^T G (y - mu)) from the matrix of y^T G y, y^T G 1 and 1^T G 1."""
    mean = float(products[0, 1] / products[1, 1])
    return mean, max(float(products[0, 0]) - mean * float(products[0, 1]), 0.0)


def most_likely(prior: Any, y: Floats, noise: float | None) -> Fit:
    """Return the fit of largest evidence: the best a of a grid, of a finer grid about it, then of a parabola."""
    n, logs = len(y), dict[float, Fit | None]()

    def tried(log: float) -> Fit | None:
        ratio = prior.unit * 10.0**log
        found = prior.evidence(y, ratio)
        if found is None:
            return None
        scale = max(found.square / n, np.finfo(float).tiny) if noise is None else noise**2 / ratio
        value = n * np.log(2 * np.pi * scale) + found.logdet + found.square / scale
        return Fit(-0.5 * float(value) - found.lost, scale, ratio, found.mean)

    def try_all(points: npt.NDArray) -> float:
        points = np.array([point for point in points if point not in logs])
        logs.update(zip(points.tolist(), in_threads(tried, points.tolist()), strict=True))
        known = {log: fit.evidence for log, fit in logs.items() if fit is not None}
        if not known:
            raise ValueError(
                "the kernel has eigenvalues too far below 0 for a Gaussian process; take a positive semi-definite "
                "kernel, or set n_landmarks to a number: landmarks leave out such eigenvalues"
            )
        return max(known, key=lambda log: (known[log], log))

    prior.evidence(y, prior.unit)  # so that Landmarks stores its sums before the threads need them
    best = try_all(_COARSE)
    best = try_all(best + _FINE)
    sides = [logs.get(best + step) for step in (-0.25, 0.25)]
    if all(side is not None for side in sides):
        left, middle, right = sides[0].evidence, logs[best].evidence, sides[1].evidence  # type: ignore[union-attr]
        bend = left - 2 * middle + right
        if bend < 0:
            best = try_all(np.array([best + 0.125 * (left - right) / bend]))
    found = logs[best]
    assert found is not None
    return found


def cholesky_factor(M: Floats) -> Floats | None:
    """Return the lower Cholesky factor of `M`, which is overwritten; None if it is not positive definite."""
    try:
        return cholesky(M, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return None
