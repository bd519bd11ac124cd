"""Gaussian processes by their definitions: the joint normal distribution of all targets, conditioned by a solve."""

from __future__ import annotations

import numpy as np
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import multivariate_normal


def evidence(K, y, mean, noise):
    """The logarithm of the density of the targets."""
    return multivariate_normal(np.full(len(y), mean), K + noise**2 * np.eye(len(y))).logpdf(y)


def conditioned(K, known, asked, y, mean, noise):
    """Mean and covariance of f at the rows `asked`, given the targets `y` of the rows `known`."""
    G = np.linalg.inv(K[np.ix_(known, known)] + noise**2 * np.eye(len(known)))
    across = K[np.ix_(asked, known)]
    return mean + across @ G @ (y - mean), K[np.ix_(asked, asked)] - across @ G @ across.T


def averaged_logistic(mean, variance):
    """The mean of the logistic function of a normal variable, by adaptive quadrature."""
    std = np.sqrt(variance)

    def integrand(z):
        return np.exp(-z * z / 2) / np.sqrt(2 * np.pi) * expit(mean + std * z)

    step = float(np.clip(-mean / std, -13, 13))
    parts = [(-14, step - 0.2), (step - 0.2, step + 0.2), (step + 0.2, 14)]
    return sum(quad(integrand, a, b, limit=2000, epsabs=1e-13)[0] for a, b in parts)
