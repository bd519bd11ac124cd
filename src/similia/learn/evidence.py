r"""The evidence of a Gaussian process, and what it says of noise, scale and mean: their average, or the best values.

The evidence is the likelihood of all targets y under the model y_i = mu + f(x_i) + e_i, where f has the covariance
s^2 k and e_i is noise of variance s^2 a. With G = (K + a I)^-1, the best mu is 1^T G y / 1^T G 1, and
S^2 = (y - mu)^T G (y - mu). After one eigendecomposition of the Gram matrix K, all of these take O(n) operations for
each value of a.

**Integrated.** The prior of mu is flat, that of s^2 is 1 / s^2, and the share of the noise in the variance of a target,
r / (1 + r) with r = a / (mean k(x, x)), is uniform between 0 and 1. The integral over mu and s^2 has a closed form,

.. math::
    p(y \mid a) = \Gamma\left(\tfrac{n-1}{2}\right) (\pi S^2)^{-(n-1)/2}\, |K + a I|^{-1/2}\, (1^T G\, 1)^{-1/2},

and a prediction, given a, is Student t with n - 1 degrees of freedom (Rasmussen & Williams 2006, Section 2.7; O'Hagan,
"Curve fitting and optimal design for prediction", JRSS B 40, 1978). What is left is a sum over a grid of log a, whose
step is smaller than the width of the posterior. Gauss quadrature then replaces the grid by at most 30 values of a with
their weights: they give the same averages of all polynomials of log a up to degree 59 (Golub & Welsch 1969).

If the noise is known, s^2 follows from a, and the predictions, given a, are normal. The grid then begins at far smaller
values of a, since s^2 may be many times the variance of the noise.

**Maximised.** The value of a with the largest likelihood, with the best mu and s^2 = S^2 / n.

With m landmarks, the Nyström approximation Q replaces K, and the lower bound of Titsias (2009) replaces the evidence.
This bound subtracts tr(K - Q) / (2 a), so that noise cannot explain what the approximation loses.

**Weights of a sum.** Let K = sum_i w_i K_i. For given a and s^2, the derivative of log p(y) by w_i is

.. math::
    \tfrac12 \left(s^{-2} \alpha^T K_i\, \alpha - \mathrm{tr}\,(G K_i) + \tau\, 1^T G K_i G\, 1\right),
    \qquad \alpha = G\,(y - \mu),

where tau = 1 / 1^T G 1 if mu is integrated out, and 0 otherwise. It is also the derivative of the evidence, averaged
over the components, up to the change of the grid of a with the mean k(x, x). As the evidence does not change if all
w_i grow by one factor, this change follows from the other derivatives. L-BFGS climbs the evidence over log w_i.

**Mixtures.** A prediction is a mixture of C components with the same number of degrees of freedom (infinite: normal).
Component c has the location l_c, the width w_c and the weight p_c. It is the distribution of l_c + w_c T, where T is a
standard t or normal variable. Quantiles are found by Newton's method inside an interval that holds them, which is
halved where the method leaves it or runs in a circle, as it can beside a narrow component.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cholesky, eigh, eigh_tridiagonal
from scipy.optimize import minimize, minimize_scalar
from scipy.special import gammaln, logsumexp, ndtr, ndtri, stdtr, stdtrit

from similia.core.config import row_blocks, rows_per_block, track
from similia.core.validation import BadParameter
from similia.embeddings.nystroem import Nystroem
from similia.objects import take
from similia.similarity import diagonal
from similia.sources.dask import Distributed

Floats = npt.NDArray[np.float64]

_LOGS = (-6.0, 2.0)  # range of the decimal logarithm of a, in units of the mean k(x, x)
_LEAST_KNOWN = -12.5  # its lower end if the noise is known
_STEP, _MOST = 0.1, 4096  # largest step of the grid of natural logarithms, and its largest number of points
_LEAST_EXPLAINED = 0.1  # smallest share of the variance of the targets that signal and noise can have together
_NODES = 30  # maximum number of values of a after quadrature
_LEFT_OUT = 64  # maximum number of values of a with which each target is predicted from the others
_NEGLIGIBLE = 1e-16  # of the largest weight: values of a with smaller weights are left out
_RANK = 1e-13  # eigenvalues of smaller size, in units of the largest, count as 0
_LEAST_SHARE, _FAINT = 1e-6, 1e-3  # of the largest share of a kernel in a sum: the least, and those that may be 0
_ALONE = 0.01  # share of all other kernels where one kernel starts almost alone
_FLAT = 1e-3  # slope of the evidence by the logarithm of a weight at which the search for weights ends
_TOO_NEGATIVE = (
    "the kernel has eigenvalues too far below 0 for a Gaussian process; take a positive semi-definite kernel, or set "
    "n_landmarks to a number: landmarks leave out such eigenvalues"
)
_STEPS = 200  # maximum number of steps to a quantile; Newton's method needs about 6
_USUAL = 12  # after so many steps, every other one halves the interval


class Terms(NamedTuple):
    """Terms of the evidence for T values of the ratio a, each of shape (T,)."""

    mean: Floats  # the best mu
    square: Floats  # S^2 = (y - mu)^T G (y - mu)
    logdet: Floats  # of K + a I
    precision: Floats  # 1^T G 1
    lost: Floats  # tr(K - Q) / (2 a)


@dataclass(frozen=True)
class Components:
    """Values of the hyperparameters and their weights, each of shape (n_components,)."""

    weights: Floats
    ratios: Floats  # a
    scales: Floats  # s^2, or the scale of its Student t
    means: Floats  # mu, for targets whose mean was subtracted before
    mean_variances: Floats  # of mu, in units of s^2: 1 / 1^T G 1, or 0 if mu is fixed
    dof: float  # degrees of freedom, infinite for normal distributions


@dataclass(frozen=True)
class Posterior:
    """The hyperparameters for one kernel, and their evidence."""

    evidence: float  # logarithm; with landmarks, its lower bound
    components: Components
    grid: Components  # the same before quadrature, for predictions of each target from the others


class Decomposition:
    """K = U diag(values) U^T for n objects, with r columns of U, and the targets y in this basis."""

    n: int
    unit: float  # mean k(x, x)
    values: Floats  # (r,)
    coordinates: Floats  # U^T [y, 1], shape (r, 2)
    basis: Floats  # (n_kept, r): k(x, Z) @ basis is U^T k_x
    kept: tuple[Any, Any] | None  # (Z, their positions), or None for all objects
    lost: Floats  # k(x, x) - q(x, x), shape (n,)
    y: Floats

    def rows(self) -> Iterator[tuple[npt.NDArray[np.int64], Floats]]:
        """Yield blocks of positions and the rows of U for them."""
        raise NotImplementedError

    def terms(self, ratios: Floats) -> Terms:
        """Return the terms of the evidence for T ratios."""
        both = np.column_stack([self.y, np.ones(self.n)])
        full = len(self.values) == self.n
        inside = self.coordinates.T @ self.coordinates
        outside = np.zeros((2, 2)) if full else both.T @ both - inside
        rounding = outside.diagonal() <= _RANK * inside.diagonal()
        outside[rounding] = outside[:, rounding] = 0.0  # else a tiny ratio would turn it into a large term
        first, second = self.coordinates.T
        products, logdet = np.empty((3, len(ratios))), np.empty(len(ratios))
        size = max(1, 2**22 // max(1, len(self.values)))
        for start in range(0, len(ratios), size):
            part = slice(start, start + size)
            shares = 1 / (self.values[:, None] + ratios[part])
            pairs = np.array([first * first, first * second, second * second])
            products[:, part] = pairs @ shares
            logdet[part] = -np.log(shares).sum(axis=0)
        products += outside[[0, 0, 1], [0, 1, 1]][:, None] / ratios
        logdet += (self.n - len(self.values)) * np.log(ratios)
        mean = products[1] / products[2]
        square = np.maximum(products[0] - mean * products[1], 0.0)
        return Terms(mean, square, logdet, products[2], self.lost.sum() / (2 * ratios))


class AllPairs(Decomposition):
    """The Gram matrix of n objects, decomposed."""

    def __init__(self, K: Floats, y: Floats) -> None:
        self.n, self.y, self.kept, self.lost = len(K), y, None, np.zeros(len(K))
        self.unit = float(np.trace(K)) / len(K) or 1.0
        values, U = eigh(K, check_finite=False)  # K may be an array that the user's kernel keeps
        large = np.abs(values) > _RANK * np.abs(values).max(initial=0.0)
        self.values, self.basis = values[large], np.ascontiguousarray(U[:, large])
        self.coordinates = self.basis.T @ np.column_stack([y, np.ones(self.n)])

    def rows(self) -> Iterator[tuple[npt.NDArray[np.int64], Floats]]:
        """Yield blocks of positions and the rows of U for them."""
        for rows in row_blocks(self.n, 8 * (len(self.values) + 6 * _LEFT_OUT), 2**11):
            yield rows, self.basis[rows]


class Landmarks(Decomposition):
    """The Nyström approximation of the Gram matrix, decomposed by sums over blocks of objects.

    The objects may be a `Distributed`: its workers compute features and their sums.
    """

    def __init__(self, embedding: Nystroem, objects: Any, y: Floats) -> None:
        self.embedding, self.objects, self.n, self.y = embedding, objects, len(y), y
        self.kept = embedding.landmarks_, embedding.landmark_indices_
        products, sums, own, lost = np.zeros((embedding.rank_, embedding.rank_)), np.zeros((embedding.rank_, 2)), [], []
        for part in self._over_blocks(_sums, embedding, along=[np.column_stack([y, np.ones(self.n)])]):
            products += part[0]
            sums += part[1]
            own.append(part[2])
            lost.append(part[3])
        self.unit = float(np.concatenate(own).mean()) or 1.0
        self.lost = np.maximum(np.concatenate(lost), 0.0)
        values, vectors = eigh(products)
        large = values > _RANK * values.max(initial=0.0)
        self.values, roots = values[large], np.sqrt(values[large])
        self._to_rows = vectors[:, large] / roots
        self.coordinates = self._to_rows.T @ sums
        self.basis = embedding.components_ @ (vectors[:, large] * roots)

    def rows(self) -> Iterator[tuple[npt.NDArray[np.int64], Floats]]:
        """Yield blocks of positions and the rows of U for them."""
        start = 0
        for U in self._over_blocks(_coordinates, self.embedding, self._to_rows):
            yield np.arange(start, start + len(U)), U
            start += len(U)

    def _over_blocks(self, function: Callable[..., Any], *args: Any, along: Sequence[Floats] = ()) -> Iterator[Any]:
        """Yield ``function(block, start, *slices, *args)`` for blocks of objects, as `Distributed.map` does."""
        size = rows_per_block(8 * (3 * len(self.embedding.components_) + 6 * _LEFT_OUT), 2**13)
        if isinstance(self.objects, Distributed):
            yield from self.objects.blocks(size).map(function, *args, along=along, few=True)
            return
        for start in range(0, self.n, size):
            rows = np.arange(start, min(start + size, self.n))
            yield function(take(self.objects, rows), start, *(array[rows] for array in along), *args)


def _sums(part: Any, start: int, both: Floats, embedding: Nystroem) -> tuple[Floats, Floats, Floats, Floats]:
    """Return F^T F and F^T [y, 1] for the features F of a block, k(x, x), and k(x, x) - q(x, x)."""
    features, own = np.asarray(embedding.transform(part), dtype=np.float64), diagonal(embedding.kernel_, part)
    return features.T @ features, features.T @ both, own, own - (features**2).sum(axis=1)


def _coordinates(part: Any, start: int, embedding: Nystroem, to_rows: Floats) -> Floats:
    """Return the rows of U for a block."""
    return np.asarray(embedding.transform(part), dtype=np.float64) @ to_rows


def most_likely(prior: Decomposition, noise: float | None) -> Posterior:
    """Return the hyperparameters of largest likelihood as the only component."""
    n, unit = prior.n, prior.unit

    def at(logs: Floats) -> tuple[Floats, Floats, Terms]:
        ratios = unit * np.exp(logs)
        terms = prior.terms(ratios)
        scales = np.maximum(terms.square / n, np.finfo(float).tiny) if noise is None else noise**2 / ratios
        value = n * np.log(2 * np.pi * scales) + terms.logdet + terms.square / scales
        return -0.5 * value - terms.lost, scales, terms

    logs, step = _grid(prior, noise)
    values = at(logs)[0]
    best = len(logs) - 1 - int(np.argmax(values[::-1]))
    if 0 < best < len(logs) - 1:
        found = minimize_scalar(
            lambda log: -at(np.array([log]))[0][0], method="bounded",
            bounds=(logs[best] - step, logs[best] + step), options={"xatol": 1e-6},
        )  # fmt: skip
        chosen = np.array([found.x if -found.fun > values[best] else logs[best]])
    else:
        chosen = logs[best : best + 1]
    evidence, scales, terms = at(chosen)
    component = Components(np.ones(1), unit * np.exp(chosen), scales, terms.mean, np.zeros(1), np.inf)
    return Posterior(float(evidence[0]), component, component)


def integrated(prior: Decomposition, noise: float | None) -> Posterior:
    """Return values of the hyperparameters with the weights that they have, given the targets."""
    n, (logs, step) = prior.n, _grid(prior, noise)
    ratios = prior.unit * np.exp(logs)
    terms = prior.terms(ratios)
    value = -0.5 * (terms.logdet + np.log(terms.precision)) - terms.lost
    if noise is None:
        value += gammaln((n - 1) / 2) - (n - 1) / 2 * np.log(np.pi * np.maximum(terms.square, np.finfo(float).tiny))
    else:
        scales = noise**2 / ratios
        value -= (n - 1) / 2 * np.log(2 * np.pi * scales) + terms.square / (2 * scales)
    value += logs - 2 * np.log1p(np.exp(logs)) + np.log(step)  # prior of log a; width of a step of the grid
    weights = np.exp(value - value.max())
    evidence = float(value.max() + np.log(weights.sum()))
    active = np.flatnonzero(weights > _NEGLIGIBLE)
    nodes, shares = gauss_rule(logs[active], weights[active] / weights.sum(), _NODES)
    few = active[:: -(-len(active) // _LEFT_OUT)]
    return Posterior(
        evidence,
        _components(prior, np.clip(nodes, logs[0], logs[-1]), shares, noise),
        _components(prior, logs[few], weights[few] / weights[few].sum(), noise),
    )


def best_weights(
    grams: Sequence[Floats], y: Floats, estimate: Callable[[Decomposition], Posterior]
) -> tuple[Floats, Posterior, AllPairs]:
    """Return weights of the sum of p Gram matrices with the largest evidence, shape (p,), and what they give.

    The search starts from equal shares in the mean k(x, x) or, if that has a larger evidence, from one matrix almost
    alone, and ends in a local maximum. Matrices whose share is then below 0.001 of the largest get the weight 0, unless
    that lowers the evidence. The mean k(x, x) of the weighted sum is 1.
    """
    units = np.array([float(np.trace(K)) / len(K) for K in grams])
    used = units > 0

    def at(shares: Floats) -> tuple[Floats, Posterior, AllPairs]:
        weights = np.divide(shares, units, out=np.zeros(len(units)), where=used) / (shares[used].sum() or 1.0)
        prior = AllPairs(sum(w * K for w, K in zip(weights, grams, strict=True)), y)
        return weights, estimate(prior), prior

    def fall(logs: Floats) -> tuple[float, Floats]:
        next(steps)
        weights, found, prior = at(np.exp(logs) * used)
        slopes = weights * weight_slopes(prior, found.components, grams)
        return -found.evidence, weights * units * slopes.sum() - slopes

    starts = [np.zeros(len(grams)), *np.log(_ALONE) * (1 - np.eye(len(grams))[used])]
    bound = -np.log(_LEAST_SHARE)
    with closing(track(count(), "weights")) as steps:
        heights = [at(np.exp(logs) * used)[1].evidence for logs in starts]
        start = starts[int(np.argmax(heights))]
        logs = minimize(
            fall, start, jac=True, method="L-BFGS-B", bounds=[(-bound, bound)] * len(grams),
            options={"ftol": 0.0, "gtol": _FLAT, "maxiter": 100},
        ).x  # fmt: skip
    shares = np.exp(logs - logs.max()) * used
    best = at(shares)
    if (shares < _FAINT).any():
        sparse = at(np.where(shares < _FAINT, 0.0, shares))
        best = sparse if sparse[1].evidence >= best[1].evidence else best
    return best


def weight_slopes(prior: AllPairs, components: Components, grams: Sequence[Floats]) -> Floats:
    """Return the derivatives of the evidence by the weights of the Gram matrices in their sum, with a fixed grid of a.

    All weights must be positive, so that no matrix has a part outside the span of the eigenvectors of the sum.
    """
    c, U = components, prior.basis
    shares = 1 / (prior.values[:, None] + c.ratios)
    ours = U @ (shares * (prior.coordinates[:, :1] - c.means * prior.coordinates[:, 1:]))
    ones = U @ (shares * prior.coordinates[:, 1:]) * np.sqrt(c.mean_variances)

    def slope(K: Floats) -> float:
        turned = K @ U
        turned *= U
        explained = (ours * (K @ ours)).sum(axis=0) / c.scales + (ones * (K @ ones)).sum(axis=0)
        return 0.5 * float(c.weights @ (explained - turned.sum(axis=0) @ shares))

    return np.array([slope(K) for K in grams])


def _components(prior: Decomposition, logs: Floats, weights: Floats, noise: float | None) -> Components:
    ratios = prior.unit * np.exp(logs)
    terms, dof = prior.terms(ratios), prior.n - 1.0 if noise is None else np.inf
    scales = np.maximum(terms.square / dof, np.finfo(float).tiny) if noise is None else noise**2 / ratios
    return Components(weights, ratios, scales, terms.mean, 1 / terms.precision, dof)


def _grid(prior: Decomposition, noise: float | None) -> tuple[Floats, float]:
    """Return the logarithms of a / unit for which K + a I is positive definite, and their step.

    The step is at most the standard deviation that n targets can leave to log a, unless the grid would have over
    `_MOST` points. Raise if the noise is so small that no a explains the variance of the targets.
    """
    low, high = np.log(10.0) * np.array([_LOGS[0] if noise is None else _LEAST_KNOWN, _LOGS[1]])
    step = max(min(_STEP, float(np.sqrt(2 / prior.n))), (high - low) / _MOST)
    logs = np.arange(low, high, step)
    logs = logs[prior.unit * np.exp(logs) > -prior.values.min(initial=0.0)]
    if not len(logs):
        raise ValueError(_TOO_NEGATIVE)
    if noise is not None and noise**2 * (1 + np.exp(-logs[0])) <= _LEAST_EXPLAINED * np.var(prior.y):
        remedy = "give a thousandth of the standard deviation of y"
        raise BadParameter("noise", "larger for this kernel and these targets", f"{noise:g}", remedy)
    return logs, step


def gauss_rule(points: Floats, weights: Floats, size: int) -> tuple[Floats, Floats]:
    """Return at most `size` points and weights with the same averages of all polynomials of degree < 2 `size`.

    Lanczos steps on the diagonal matrix of the given points, started from the square roots of the given weights, give a
    tridiagonal matrix. Its eigenvalues are the new points, and the squared first entries of its eigenvectors are their
    weights (Golub & Welsch, "Calculation of Gauss quadrature rules", 1969).
    """
    center, spread = points.mean(), float(np.ptp(points)) or 1.0
    x, vectors = (points - center) / spread, [np.sqrt(weights / weights.sum())]
    diagonals, sides = list[float](), list[float]()
    while True:
        v = x * vectors[-1]
        diagonals.append(float(v @ vectors[-1]))
        for _ in range(2):  # orthogonal to all before, to rounding
            v = v - np.array(vectors).T @ (np.array(vectors) @ v)
        norm = float(np.linalg.norm(v))
        if len(diagonals) == min(size, len(points)) or norm < 1e-10:
            break
        sides.append(norm)
        vectors.append(v / norm)
    nodes, vectors_of_nodes = eigh_tridiagonal(np.array(diagonals), np.array(sides))
    found = vectors_of_nodes[0] ** 2
    return center + spread * nodes, found / found.sum()


def left_out(prior: Decomposition, components: Components) -> tuple[Floats, Floats]:
    """Predict each target from all others; return the means and standard deviations. Targets must have mean 0.

    For each component, the residual is (P y)_i / P_ii and the variance s^2 / P_ii, where P is G or, if mu is estimated,
    G - G 1 1^T G / 1^T G 1 (Dubrule, "Cross validation of kriging in a unique neighborhood", 1983). Given all targets
    but one, the weight of a component is proportional to its weight given all targets, divided by its density at the
    missing target.
    """
    c, full = components, len(prior.values) == prior.n
    shares = 1 / (prior.values[:, None] + c.ratios)
    ours = shares * (prior.coordinates[:, :1] - c.means * prior.coordinates[:, 1:])
    ones = shares * prior.coordinates[:, 1:]
    center, std = np.empty(prior.n), np.empty(prior.n)
    for rows, U in prior.rows():
        y = prior.y[rows]
        solved, flat, precision = U @ ours, U @ ones, U**2 @ shares
        if not full:
            y_outside, one_outside = (np.column_stack([y, np.ones(len(y))]) - U @ prior.coordinates).T[:, :, None]
            solved += (y_outside - c.means * one_outside) / c.ratios
            flat += one_outside / c.ratios
            precision += np.maximum(1 - (U**2).sum(axis=1), 0.0)[:, None] / c.ratios
        precision = np.maximum(precision - c.mean_variances * flat**2, _RANK * precision)
        location, scale, dof = y[:, None] - solved / precision, np.broadcast_to(c.scales, solved.shape), c.dof
        if np.isfinite(dof):  # S^2 without this target
            dof -= 1
            scale = np.maximum(c.scales * c.dof - solved**2 / precision, _RANK * c.scales) / dof
        lost = prior.lost[rows][:, None]
        seen = StudentMixture(c.weights, location, np.sqrt(scale / precision), dof)
        logs = np.log(c.weights) + lost / (2 * c.ratios) - seen.each_log_density(y)
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        found = StudentMixture(weights, location, np.sqrt(scale * (1 / precision + lost)), dof)
        center[rows], std[rows] = found.mean(), found.std()
    return center, std


def cholesky_factor(M: Floats) -> Floats | None:
    """Return the lower Cholesky factor of `M`, which is overwritten; None if it is not positive definite."""
    try:
        return cholesky(M, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return None


@dataclass(frozen=True)
class StudentMixture:
    """m mixtures of C components each."""

    weights: Floats  # (C,), or (m, C)
    location: Floats  # (m, C)
    width: Floats  # (m, C), not negative
    dof: float  # above 2

    def mean(self) -> Floats:
        """Return the means, shape (m,)."""
        return (self.weights * self.location).sum(axis=1)

    def std(self) -> Floats:
        """Return the standard deviations; the variances within components and of the component means add up."""
        spread = self.location - self.mean()[:, None]
        return np.sqrt((self.weights * (self.width**2 * inflation(self.dof) + spread**2)).sum(axis=1))

    def log_density(self, y: Floats) -> Floats:
        """Return the logarithm of the density at `y`, one number for each mixture."""
        with np.errstate(divide="ignore"):  # components of weight 0
            logs = np.log(self.weights)
        return logsumexp(self.each_log_density(y) + logs, axis=1)

    def each_log_density(self, y: Floats) -> Floats:
        """Return the logarithm of the density of each component at `y`, (m, C)."""
        z = (y[:, None] - self.location) / self.width
        return _log_density(z, self.dof) - np.log(self.width)

    def quantiles(self, level: float) -> Floats:
        """Return the numbers below which the mixtures lie with the probability `level`, shape (m,)."""
        ends = self.location + self.width * (ndtri(level) if np.isinf(self.dof) else stdtrit(self.dof, level))
        low, high = ends.min(axis=1), ends.max(axis=1)
        x, moving = np.where(np.isfinite(low + high), (low + high) / 2, 0.0), np.flatnonzero(high > low)
        weights = np.broadcast_to(self.weights, self.location.shape)
        for number in range(_STEPS):
            if not len(moving):
                break
            at, width, p = x[moving], self.width[moving], weights[moving]
            z = (at[:, None] - self.location[moving]) / width
            excess = (p * _distribution(z, self.dof)).sum(axis=1) - level
            slope = (p * np.exp(_log_density(z, self.dof)) / width).sum(axis=1)
            low[moving], high[moving] = np.where(excess < 0, at, low[moving]), np.where(excess < 0, high[moving], at)
            step = np.divide(excess, slope, out=np.full(len(at), np.inf), where=slope > 0)
            outside = ~((at - step >= low[moving]) & (at - step <= high[moving]))
            halved = outside | (number > _USUAL and number % 2 == 0)  # where Newton's steps run in a circle
            ahead = np.where(halved, (low[moving] + high[moving]) / 2, at - step)
            x[moving] = np.where(excess == 0, at, ahead)
            tolerance = 1e-12 * (np.abs(at) + width.min(axis=1))
            moving = moving[(np.abs(x[moving] - at) > tolerance) & (excess != 0)]
        return x

    def improvement(self, best: float) -> Floats:
        """Return the mean of max(0, Y - best) for each mixture Y, shape (m,).

        For one normal component this is equation 15 of Jones, Schonlau & Welch, "Efficient global optimization of
        expensive black-box functions", 1998.
        """
        gain = self.location - best
        z = np.divide(gain, self.width, out=np.zeros_like(gain), where=self.width > 0)
        density = np.exp(_log_density(z, self.dof))
        tail = density if np.isinf(self.dof) else density * (self.dof + z**2) / (self.dof - 1)
        each = gain * _distribution(z, self.dof) + self.width * tail
        each = np.maximum(np.where(self.width > 0, each, gain), 0.0)
        return (self.weights * each).sum(axis=1)


def inflation(dof: float) -> float:
    """Return the variance of a standard Student t."""
    return 1.0 if np.isinf(dof) else dof / (dof - 2)


def _distribution(z: Floats, dof: float) -> Floats:
    return ndtr(z) if np.isinf(dof) else stdtr(dof, z)


def _log_density(z: Floats, dof: float) -> Floats:
    if np.isinf(dof):
        return -0.5 * (z**2 + np.log(2 * np.pi))
    constant = gammaln((dof + 1) / 2) - gammaln(dof / 2) - 0.5 * np.log(dof * np.pi)
    return constant - (dof + 1) / 2 * np.log1p(z**2 / dof)
