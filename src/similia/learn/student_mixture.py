"""Mixtures of Student's t or normal distributions: means, densities, quantiles and expected improvements.

A mixture has C components of the same number of degrees of freedom (infinite: normal). Component c has the location
l_c, the width w_c and the weight p_c. It is the distribution of l_c + w_c T, where T is a standard t or normal
variable. Quantiles are found by Newton's method inside an interval that holds them, which is halved where the method
leaves it or runs in a circle, as it can beside a narrow component.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, logsumexp, ndtr, ndtri, stdtr, stdtrit

Floats = npt.NDArray[np.float64]

_STEPS = 200  # maximum number of steps to a quantile; Newton's method needs about 6
_USUAL = 12  # after so many steps, every other one halves the interval


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
