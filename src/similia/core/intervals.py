"""95 % confidence intervals of shares, balanced accuracies and regression errors.

Wilson's interval of a share: "Probable inference, the law of succession, and statistical inference", JASA 1927.
Shares of unequal variance as one share of fewer objects: Korn & Graubard, "Confidence intervals for proportions with
small expected number of positive counts estimated from survey data", Survey Methodology 24, 1998.
Bootstrap-t: Efron & Tibshirani, "An Introduction to the Bootstrap", 1993, Section 12.5.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import stats

Floats = npt.NDArray[np.float64]
_Z = 1.959963984540054  # for 95 %
_ROUNDS = 400
_NUMBERS = 2**20  # maximum numbers resampled at once


def wilson(share: float, n: float, z: float = _Z) -> tuple[float, float]:
    """Return Wilson's interval (95 % by default) of a proportion that was observed as `share` on `n` objects."""
    if n == 0:
        return 0.0, 1.0
    middle, half = share + z * z / (2 * n), z * float(np.sqrt(share * (1 - share) / n + z * z / (4 * n * n)))
    return max(0.0, float(middle - half) / (1 + z * z / n)), min(1.0, float(middle + half) / (1 + z * z / n))


def balanced(right: npt.NDArray, n: npt.NDArray) -> tuple[float, float, float]:
    """Return (mean recall over classes, low, high); ``right[c]`` of the ``n[c]`` objects of class c are correct.

    The interval is Wilson's interval of a single proportion, with Student's quantile. The number of objects of this
    proportion is chosen so that its variance is that of the mean recall. In simulations of 2 to 10 classes with 3 to
    100 objects each, it contained the true value in 94 to 100 % of cases.
    """
    right, n = right.astype(np.float64), n.astype(np.float64)
    mean, total = float(np.mean(right / n)), n.sum()
    pooled = (mean * total + 2) / (total + 4)  # away from 0 and 1 (Agresti & Coull)
    recalls = (right + 2 * pooled) / (n + 2)
    variances = recalls * (1 - recalls) / (n * len(n) ** 2)
    effective = min(total, pooled * (1 - pooled) / variances.sum())
    freedom = variances.sum() ** 2 / np.sum(variances**2 / np.maximum(n - 1, 1))  # Satterthwaite
    return mean, *wilson(mean, effective, float(stats.t.ppf(0.975, freedom)))


def ratio(a: Floats, b: Floats, rng: np.random.Generator) -> tuple[float, float]:
    """Return a 95 % interval (low, high) of E[a] / E[b]; object i has the numbers ``a[i]`` and ``b[i]``, both >= 0.

    This is the bootstrap-t interval of the logarithm; at an end where Student's interval is wider, that end is taken.
    In simulations of mean squared errors it contained the true ratio in 93 to 97 % of cases for normal errors (n = 20
    to 200) and in 90 to 95 % for Laplace errors. If a few large errors dominate the mean, a sample may miss them; then
    the interval contained the true ratio in 77 % (n = 20) to 93 % (n = 200) of cases.
    """
    n, mean_a, mean_b = len(a), float(a.mean()), float(b.mean())
    if n < 2 or not mean_a or not mean_b:
        return (0.0, 0.0) if n > 1 and mean_b else (float("nan"), float("nan"))
    middle, spread = (float(found[0]) for found in _log_ratios(a[None], b[None]))
    steps = np.empty(0)
    at_once = max(1, _NUMBERS // n)
    for first in range(0, _ROUNDS, at_once):
        rows = rng.integers(n, size=(min(at_once, _ROUNDS - first), n))
        drawn_a, drawn_b = a[rows], b[rows]
        fit = drawn_a.any(axis=1) & drawn_b.any(axis=1)
        logs, spreads = _log_ratios(drawn_a[fit], drawn_b[fit])
        steps = np.append(steps, (logs - middle)[spreads > 0] / spreads[spreads > 0])
    student = float(stats.t.ppf(0.975, n - 1))
    low, high = np.quantile(steps, [0.025, 0.975]) if len(steps) else (-student, student)
    return float(np.exp(middle - max(high, student) * spread)), float(np.exp(middle - min(low, -student) * spread))


def _log_ratios(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return ``log(mean(a) / mean(b))`` for each row of `a` and `b`, and the standard errors of these values."""
    mean_a, mean_b = a.mean(axis=1, keepdims=True), b.mean(axis=1, keepdims=True)
    influence = a / mean_a - b / mean_b
    spread: Floats = np.sqrt(np.square(influence).mean(axis=1) / (a.shape[1] - 1))
    return np.log(mean_a / mean_b)[:, 0], spread
