"""Slow, obvious twins of the random features of the heat kernel: the definitions, term by term."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import eval_gegenbauer


def harmonics(l, n):
    """The number of spherical harmonics of degree l in n dimensions."""
    return math.comb(l + n - 1, n - 1) - (math.comb(l + n - 3, n - 1) if l >= 2 else 0)


def gegenbauer(l, n, s):
    """P_l(s), which is 1 at s = 1."""
    if n == 2:
        return np.cos(l * np.arccos(np.clip(s, -1, 1)))
    return eval_gegenbauer(l, n / 2 - 1, s) / eval_gegenbauer(l, n / 2 - 1, 1.0)


def coefficients(n, t):
    """c_0, c_1, ... of the kernel, of sum 1."""
    w = [math.exp(math.log(harmonics(l, n)) - l * (l + n - 2) * t) for l in range(400)]
    return np.array([x for x in w if x > 1e-25 * max(w)]) / math.fsum(w)  # small l are never small in these tests


def heat_kernel(cosines, n, t):
    return sum(c * gegenbauer(l, n, cosines) for l, c in enumerate(coefficients(n, t)))


def f(s, n, t, phase=1j, degrees=None):
    c = coefficients(n, t)
    return sum(phase**l * math.sqrt(c[l] * harmonics(l, n)) * gegenbauer(l, n, s) for l in (degrees or range(len(c))))


def heat_features(X, directions, t, degrees=None):
    values = f(X @ directions, len(directions), t, degrees=degrees) / math.sqrt(directions.shape[1])
    return np.hstack([values.real, values.imag])
