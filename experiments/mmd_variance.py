"""The variance of the unbiased MMD^2 of samples of two laws: exact, to hold measured errors against."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from similia.core.config import one_blas_thread
from similia.core.validation import check_positive_int

Array = npt.NDArray[np.float64]


@one_blas_thread()  # more of them round otherwise
def mmd2_variance(K: npt.ArrayLike, p: npt.ArrayLike, q: npt.ArrayLike, n: int, m: int | None = None) -> float:
    r"""Return the variance of the unbiased MMD^2 of n samples of a law p and m samples of a law q.

    Parameters
    ----------
    K : array-like of shape (r, r)
        Kernel of the r different objects that the laws are on.
    p, q : array-like of shape (r,)
        Probability of each object.
    n : int
        Samples of p, at least 2.
    m : int, optional
        Samples of q; as many as of p if not given.

    Returns
    -------
    float
        Exact for every n and m.

    Raises
    ------
    ValueError
        If the shapes do not fit, p or q is no law, or n or m is below 2.

    Notes
    -----
    With :math:`f(x) = \mathrm{E}\,k(x, x')` and :math:`g(x) = \mathrm{E}\,k(x, y)` the means under p and under q, the
    three parts of the statistic are U-statistics, whose pairs of terms are correlated where they share a sample:

    .. math::
        \mathrm{Var}\,U_{xx} &= \frac{4 (n - 2) \mathrm{Var} f(x) + 2\,\mathrm{Var}\,k(x, x')}{n (n - 1)}, \\
        \mathrm{Var}\,V_{xy} &= \frac{(m - 1) \mathrm{Var}\,g(x) + (n - 1) \mathrm{Var} f(y)
        + \mathrm{Var}\,k(x, y)}{n m}, \\
        \mathrm{Cov}(U_{xx}, V_{xy}) &= \frac{2}{n} \mathrm{Cov}(f(x), g(x)),

    likewise for :math:`U_{yy}`, and Var = Var U_xx + Var U_yy + 4 Var V_xy - 4 Cov(U_xx, V_xy) - 4 Cov(U_yy, V_xy). For
    :math:`p \ne q` it falls as 1 / n, for p = q as 1 / n^2. With the objects of two collections as the support, p and q
    uniform on either, it estimates the squared standard error of `mmd2` (too high for few objects).

    References
    ----------
    Hoeffding, "A class of statistics with asymptotically normal distribution", 1948, Section 5; Gretton et al.,
    "A kernel two-sample test", JMLR 13, 2012, Appendix B (its leading term).

    Examples
    --------
    A coin of 1/2 and one of 1/4, told apart by the kernel k(x, y) = [x = y]:

    >>> import numpy as np
    >>> from experiments.mmd_variance import mmd2_variance
    >>> round(mmd2_variance(np.eye(2), [0.5, 0.5], [0.25, 0.75], n=100), 5)
    0.00453
    """
    K, p, q = (np.asarray(values, dtype=np.float64) for values in (K, p, q))
    if K.ndim != 2 or p.shape != (len(K),) or q.shape != p.shape or K.shape != (len(K), len(K)):
        raise ValueError(f"expected K of shape (r, r), p and q of shape (r,), got {K.shape}, {p.shape} and {q.shape}")
    for name, law in (("p", p), ("q", q)):
        if not (law >= 0).all() or abs(law.sum() - 1) > 1e-6:
            raise ValueError(f"{name} must be probabilities that sum to 1, got a least of {law.min()}, sum {law.sum()}")
    n = check_positive_int(n, "n", minimum=2)
    m = n if m is None else check_positive_int(m, "m", minimum=2)
    K = K - p @ K @ q  # the statistic is blind to a constant
    f, g = K @ p, K @ q

    def within(law: Array, mean: Array, size: int) -> float:
        pairs = law @ np.square(K) @ law - (law @ mean) ** 2
        return float((4 * (size - 2) * _covariance(law, mean, mean) + 2 * pairs) / (size * (size - 1)))

    pairs = p @ np.square(K) @ q - (p @ g) ** 2
    across = ((m - 1) * _covariance(p, g, g) + (n - 1) * _covariance(q, f, f) + pairs) / (n * m)
    shared = 2 / n * _covariance(p, f, g) + 2 / m * _covariance(q, f, g)
    return float(within(p, f, n) + within(q, g, m) + 4 * across - 4 * shared)


def _covariance(law: Array, f: Array, g: Array) -> float:
    return float(law @ ((f - law @ f) * (g - law @ g)))
