"""A Gaussian process whose mean, scale and noise are integrated numerically, from the definition of its prior."""

from __future__ import annotations

import numpy as np
from scipy.integrate import quad

MEANS = np.linspace(-30, 30, 601)
LOG_SCALES = np.linspace(-10, 14, 161)  # of s^2


def evidence(K, y, noise=None):
    """The density of y: the integral over log a of the uniform prior of the share of noise, K having ones as diagonal.

    The mean has a flat prior, and so has log s^2; or s^2 follows from the noise.
    """

    def given_share(share):
        a = share / (1 - share)
        precision = np.linalg.inv(K + a * np.eye(len(y)))
        residuals = y[:, None] - MEANS
        square = (residuals * (precision @ residuals)).sum(axis=0)
        logs = LOG_SCALES if noise is None else np.array([np.log(noise**2 / a)])
        n, logdet = len(y), np.linalg.slogdet(K + a * np.eye(len(y)))[1]
        constant = -0.5 * (n * np.log(2 * np.pi) + logdet + n * logs[:, None])
        density = np.exp(constant - 0.5 * square * np.exp(-logs[:, None])).sum(axis=0).sum()
        return density * (MEANS[1] - MEANS[0]) * (LOG_SCALES[1] - LOG_SCALES[0] if noise is None else 1.0)

    low, high = (10.0**log / (1 + 10.0**log) for log in (-6, 2))
    points = [1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.5, 0.9]
    parts = zip([low, *points], [*points, high], strict=True)
    return sum(quad(given_share, a, b, epsrel=1e-6, limit=50)[0] for a, b in parts)


def log_density(K, y, target, noise=None):
    """The log density of a further target, the last row of K, given the targets y of the others."""
    n = len(y)
    return np.log(evidence(K, np.append(y, target), noise) / evidence(K[:n, :n], y, noise))
