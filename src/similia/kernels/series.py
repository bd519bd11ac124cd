"""Global alignment kernel: series are similar if many of their alignments are good, not only the best one.

Cost: O(m n p) for series of m and n time points with p channels, O(n) memory per pair. Mantissas and exponents are
stored separately, since k(x, x) of a constant series is a Delannoy number, about 5.8^m.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import pdist

from similia.alignments import UNLIMITED, How, as_series_pair, in_units, log_sums, self_log_sums
from similia.core import functions
from similia.core.validation import RandomState, as_second, check_positive, check_positive_int, generator
from similia.objects import SeriesBatch, as_series
from similia.objects.sequences import named_pairs
from similia.similarity import Kernel

Array = npt.NDArray[np.float64]

_LARGEST_LOG = float(np.log(np.finfo(np.float64).max))


class GlobalAlignment(Kernel):
    r"""Global alignment kernel of univariate or multivariate time series of any lengths.

    .. math:: k(x, y) = \sum_{\pi \in A(m, n)} \prod_{(i, j) \in \pi} \kappa(x_i, y_j), \qquad
              -\log \kappa(u, v) = \frac{\|u - v\|^2}{2 s^2} + \log\big(2 - e^{-\|u - v\|^2 / 2 s^2}\big)

    where A(m, n) is the set of all alignments :math:`\pi` of the m time points of x with the n time points of y, and s
    is the bandwidth. The kernel is positive definite.

    Parameters
    ----------
    bandwidth : float, default=1.0
        Bandwidth s, in the units of the series. The default rarely fits: call `suggest_bandwidth` with the training
        series, and try 0.5, 1 and 2 times the result (see Notes).
    triangular : int, default=0
        Parameter T of the triangular kernel (Cuturi, 2011). 0 allows all alignments. With T > 0, an alignment counts
        only if all its pairs have :math:`|i - j| < T`. The larger :math:`|i - j|` is, the less weight a pair has: the
        local similarity :math:`\kappa` is replaced by :math:`\omega\kappa' / (2 - \omega\kappa')`. Here
        :math:`\omega = \max(0, 1 - |i - j| / T)` is the weight, and :math:`\kappa' = e^{-\|u - v\|^2 / 2 s^2}` is a
        Gaussian. Series whose lengths differ by T or more have similarity 0. The cost is O(T max(m, n)) instead of
        O(m n).
    normalize : bool, default=True
        Divide k(x, y) by sqrt(k(x, x) k(y, y)).

    Notes
    -----
    With `normalize`, k(x, x) is 1. If x and y differ, log k(x, y) decreases in proportion to their lengths. So at a
    small bandwidth, the Gram matrix of long series is close to the identity. `suggest_bandwidth` counters this effect:
    its result grows with the square root of the length. On seven data sets, a support vector machine had
    cross-validated accuracies of 0.07 to 0.98 at bandwidth 1.0, and of 0.87 to 1.00 at the suggested bandwidth.

    Values are computed in float64 for series of any dtype. k(x, y) and k(y, x) are equal to the last bit. Similarities
    below exp(-745) are returned as 0; use `log_values` for them. Without `normalize`, a value above the largest float64
    raises a ValueError.

    References
    ----------
    Cuturi, Vert, Birkenes & Matsui, "A kernel for time series based on global alignments", ICASSP 2007. Cuturi, "Fast
    global alignment kernels", ICML 2011, Sections 3 and 4.

    Examples
    --------
    >>> from similia.kernels import GlobalAlignment
    >>> series = [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 0.0], [5.0, 5.0]]
    >>> GlobalAlignment(bandwidth=1.0)(series).round(3)
    array([[1.   , 0.747, 0.   ],
           [0.747, 1.   , 0.   ],
           [0.   , 0.   , 1.   ]])
    >>> from similia.kernels.series import suggest_bandwidth
    >>> GlobalAlignment(bandwidth=suggest_bandwidth(series)).log_values(series).round(3)
    array([[  0.   ,  -0.197, -13.914],
           [ -0.197,   0.   , -19.116],
           [-13.914, -19.116,   0.   ]])
    """

    def __init__(self, bandwidth: float = 1.0, triangular: int = 0, normalize: bool = True) -> None:
        self.bandwidth = bandwidth
        self.triangular = triangular
        self.normalize = normalize

    def as_objects(self, X: Any) -> SeriesBatch:
        return as_series(X)

    def __call__(self, X: Any, Y: Any = None) -> Array:
        logs = self.log_values(X, Y)
        _check_exponents(logs, "k(X[{}], Y[{}])")
        return functions.exp(logs, out=logs)

    def log_values(self, X: Any, Y: Any = None) -> Array:
        """Return the logarithms of the kernel values, shape (n, m); -inf if `triangular` forbids all alignments."""
        A, B = as_series_pair(X, Y)
        how, half = self._how()
        left = in_units(A, half, "bandwidth")
        right = left if A is B else in_units(B, half, "bandwidth", "Y")
        logs = log_sums(left, right, how, same=A is B, centre=self.normalize)
        return np.minimum(logs, 0.0, out=logs) if self.normalize else logs  # values above 0 are rounding errors

    def paired(self, X: Any, Y: Any, rows: npt.ArrayLike, columns: npt.ArrayLike) -> Array:
        """Return the kernel values of the pairs (X[rows[k]], Y[columns[k]]) only, shape (n_pairs,)."""
        A, B, left, right = named_pairs(as_series(X), as_second(as_series, Y), rows, columns)
        A, B = as_series_pair(A, B)
        how, half = self._how()
        A, B = in_units(A, half, "bandwidth"), in_units(B, half, "bandwidth", "Y")
        logs = log_sums(A, B, how, same=False, centre=self.normalize, pairs=(left, right))
        np.minimum(logs, 0.0 if self.normalize else np.inf, out=logs)
        _check_exponents(logs, "k of pair {}")
        return functions.exp(logs, out=logs)

    def diag(self, X: Any) -> Array:
        A = as_series_pair(X, None)[0]
        if self.normalize:
            return np.ones(len(A))
        how, half = self._how()
        logs = self_log_sums(in_units(A, half, "bandwidth"), how)
        _check_exponents(logs, "k(X[{0}], X[{0}])")
        return functions.exp(logs)

    def _how(self) -> tuple[How, int]:
        """Return (options of `log_sums`, e); its series must be divided by 2**e, a power close to the bandwidth."""
        s = check_positive(self.bandwidth, "bandwidth", hint="; similia.kernels.suggest_bandwidth(X) gives one")
        s, exponent = np.frexp(s)
        T = check_positive_int(self.triangular, "triangular", minimum=0)
        return (float(0.5 / s**2), True, T, T - 1 if T else UNLIMITED, 0.0), int(exponent)


def suggest_bandwidth(X: Any, n_points: int = 1000, random_state: RandomState = 0) -> float:
    """Suggest a bandwidth for `GlobalAlignment`: the median distance between time points times sqrt(median length).

    Parameters
    ----------
    X : sequence of series
    n_points : int, default=1000
        Maximum number of time points to compare. If all series together have more, a random subset of this size is
        compared. The median is taken over the Euclidean distances between the values of all pairs of these points; if
        it is 0, over the positive distances.
    random_state : int, numpy Generator or None, default=0
        Seed or generator for drawing the time points.

    Returns
    -------
    float
        The bandwidth s.

    References
    ----------
    Cuturi, "Fast global alignment kernels", ICML 2011, Section 5.

    Examples
    --------
    >>> from similia.kernels.series import suggest_bandwidth
    >>> suggest_bandwidth([[0.0, 3.0, 0.0, 3.0], [6.0, 9.0, 6.0, 9.0]])
    6.0
    """
    series = as_series(X).astype(np.float64)
    rng, points = generator(random_state), series.values
    check_positive_int(n_points, "n_points", minimum=2)
    if len(points) > n_points:
        points = points[rng.choice(len(points), n_points, replace=False)]
    exponent = np.frexp(np.abs(points).max())[1]  # squares of scaled points are neither 0 nor infinite
    with np.errstate(under="ignore"):
        distances = pdist(np.ldexp(points, -exponent))
    if not distances.any():
        raise ValueError("all distances of time points are 0, expected series that vary; choose the bandwidth yourself")
    median = np.median(distances) or np.median(distances[distances > 0])
    bandwidth = float(np.ldexp(median * np.sqrt(np.median(series.lengths)), exponent))
    if not 0 < bandwidth < np.inf:
        raise ValueError(f"the bandwidth would be {bandwidth}, expected a positive float64; scale the series")
    return bandwidth


def _check_exponents(logs: Array, which: str) -> None:
    """Raise if exp(logs) exceeds float64; the error names the largest value by `which`, such as "k(X[{}], Y[{}])"."""
    if len(logs) and logs.max() > _LARGEST_LOG:
        where = np.unravel_index(int(np.argmax(logs)), logs.shape)
        raise ValueError(
            f"{which.format(*where)} = exp({logs[where]:.6g}) exceeds the largest float64; use "
            "GlobalAlignment(normalize=True), or call log_values(X, Y) for the logarithms"
        )
