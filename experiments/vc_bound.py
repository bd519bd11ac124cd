r"""The bound on the VC dimension of a support-vector machine by its margin, and the effective sample size from it.

.. math:: h \le R^2 \|w\|^2, \qquad \|w\|^2 = \sum_{ij} \alpha_i y_i K_{ij} y_j \alpha_j, \qquad
          R^2 = \max_{\beta \ge 0,\, \sum \beta = 1} \sum_i \beta_i K_{ii} - \sum_{ij} \beta_i K_{ij} \beta_j,

where 1 / ||w|| is the margin and R the radius of the smallest ball that holds the objects in the feature space of the
kernel, written as the dual of that problem. Cost: one fit of libsvm, then O(n) for each step of the ball, in which two
weights change, until the duality gap proves R^2 to within 1e-6 of itself.

Sources: Vapnik, "Statistical Learning Theory", 1998, Theorem 10.3; Zhao & Song, "Exact heat kernel on a hypersphere and
its applications in kernel SVM", 2018, Section 3.2.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from similia.core.config import one_blas_thread
from similia.core.validation import check_labels, check_positive

Floats = npt.NDArray[np.float64]
_GAP = 1e-6  # of the squared radius


class VCBound(NamedTuple):
    """What `vc_effective_sample_size` returns, each number a mean over pairs of classes if there are more than two.

    Attributes
    ----------
    margin : float
        1 / ||w||, half the width of the strip between the classes, in units of sqrt(K).
    radius : float
        R, of the smallest ball around the objects, in the same units.
    vc_bound : float
        R^2 ||w||^2, which has no unit.
    effective_sample_size : float
        n / (R^2 ||w||^2), with n the objects of both classes.
    """

    margin: float
    radius: float
    vc_bound: float
    effective_sample_size: float


def vc_effective_sample_size(K: Any, y: Any, C: float) -> VCBound:
    r"""Return how many objects there are for each unit of the VC dimension that a support-vector machine may have.

    Parameters
    ----------
    K : array-like of float, shape (n, n)
        Gram matrix, symmetric and positive semi-definite.
    y : array-like of n labels
        At least two classes. More are compared one against one, on the objects of the two, and means are returned.
    C : float
        Inverse regularisation of the machine, above 0, as in scikit-learn's SVC.

    Returns
    -------
    VCBound
        ``(margin, radius, vc_bound, effective_sample_size)``: 1 / ||w||, the radius R of the smallest ball around the
        objects, R^2 ||w||^2, and n / (R^2 ||w||^2).

    Raises
    ------
    ValueError
        If K is not square, not symmetric, holds NaN, or has other than n rows; if there is one class, or all objects
        of a pair of classes are the same to the kernel; if C is not above 0.

    Notes
    -----
    The numbers do not change with the scale of the kernel, if C is divided by what K is multiplied by. With few
    errors allowed (large C) the machine is that of hard margins, for which the bound was derived; for soft ones it is
    the paper's measure. The squared radius is right to 1e-6 of itself, the squared norm to about 1e-4.

    The effective sample size of a random half of the objects need not be half as large: the margin grows too.

    References
    ----------
    Zhao & Song, "Exact heat kernel on a hypersphere and its applications in kernel SVM", 2018, Figure 3.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.vc_bound import vc_effective_sample_size
    >>> x = np.array([-1.5, -1.0, 1.0, 1.5])
    >>> margin, radius, vc_bound, size = vc_effective_sample_size(np.outer(x, x), [0, 0, 1, 1], C=10.0)
    >>> round(margin, 4), round(radius, 4), round(vc_bound, 4), round(size, 4)
    (1.0, 1.5, 2.25, 1.7778)
    """
    C = check_positive(C, "C")
    K = _checked_gram(K)
    classes, codes = np.unique(check_labels(y, len(K)), return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y holds one class, {classes.tolist()[0]!r}, expected at least two classes to tell apart")
    of_pairs = []
    for i, j in combinations(range(len(classes)), 2):
        rows = np.flatnonzero((codes == i) | (codes == j))
        block = K if len(rows) == len(K) else K[np.ix_(rows, rows)]
        radius = enclosing_radius(block)
        if radius == 0:
            names = " and ".join(repr(label) for label in classes[[i, j]].tolist())
            raise ValueError(
                f"all objects of the classes {names} are the same to the kernel, which then has no margin between "
                "them, or K is not positive semi-definite; take a kernel that tells them apart"
            )
        of_pairs.append(_bound(block, codes[rows] == j, C, radius))
    return VCBound(*np.mean(of_pairs, axis=0).tolist())


@one_blas_thread()  # more of them round otherwise
def _bound(K: Floats, y: npt.NDArray[np.bool_], C: float, radius: float) -> tuple[float, float, float, float]:
    from sklearn.svm import SVC

    svc = SVC(kernel="precomputed", C=C, tol=1e-5).fit(K, y)
    coefficients = svc.dual_coef_[0]
    norm2 = max(float(coefficients @ K[np.ix_(svc.support_, svc.support_)] @ coefficients), 0.0)
    vc_bound = radius**2 * norm2
    if vc_bound == 0:
        return math.inf, radius, 0.0, math.inf
    return 1 / math.sqrt(norm2), radius, vc_bound, len(K) / vc_bound


@one_blas_thread()
def enclosing_radius(K: Floats) -> float:
    """Return the radius of the smallest ball that holds the objects of a positive semi-definite Gram matrix.

    Weights of two objects change in each step: the one farthest from the centre gains, and of those with weight the
    one loses whose loss raises the dual objective most, until the objective, which R^2 is never below, proves it.
    """
    diagonal = K.diagonal()
    rounding = 1e-14 * float(np.abs(diagonal).max())
    beta = np.full(len(K), 1 / len(K))
    while True:
        slopes = diagonal - 2 * (K @ beta)  # of the objective; anew from time to time, so that roundings do not add up
        for _ in range(10 * len(K)):
            gain = int(slopes.argmax())
            mean = float(beta @ slopes)
            objective = (mean + float(beta @ diagonal)) / 2
            # No object is farther from the centre than the square root of objective + slopes[gain] - mean.
            if slopes[gain] - mean <= max(_GAP * objective, rounding):
                return math.sqrt(objective) if objective > 10 * rounding else 0.0
            rise = slopes[gain] - slopes
            curvature = np.maximum(diagonal[gain] + diagonal - 2 * K[gain], rounding)
            step = np.minimum(rise / (2 * curvature), beta)
            loss = int((step * (rise - step * curvature)).argmax())
            beta[gain] += step[loss]
            beta[loss] -= step[loss]
            slopes -= 2 * step[loss] * (K[gain] - K[loss])


def _checked_gram(K: Any) -> Floats:
    """Return a finite symmetric float64 matrix, or raise."""
    K = np.asarray(K, dtype=np.float64)
    if K.ndim != 2 or K.shape[0] != K.shape[1] or len(K) == 0:
        raise ValueError(f"K must be a square Gram matrix (n, n), got shape {K.shape}; call kernel(X)")
    finite = np.isfinite(K).all(axis=1)
    if not finite.all():
        raise ValueError(f"K[{int(np.argmin(finite))}] holds NaN or infinity, expected finite numbers")
    apart = np.abs(K - K.T)
    if apart.max() > 1e-8 * np.abs(K).max():
        i, j = (int(index) for index in np.unravel_index(apart.argmax(), K.shape))
        raise ValueError(
            f"K must be symmetric, got {K[i, j]:.6g} at [{i}, {j}] and {K[j, i]:.6g} at [{j}, {i}]; give (K + K.T) / 2 "
            "if the difference is noise"
        )
    return K
