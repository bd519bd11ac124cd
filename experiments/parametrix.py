r"""Short-time expansions of the heat kernel on a hypersphere, and their Gaussian factor, the parametrix kernel.

On the unit sphere in n dimensions, with :math:`m = (n - 2) / 2`, :math:`c = m (m - 1)` and
:math:`h(\theta) = (1 - \theta \cot\theta) / \theta^2`, the heat kernel G at angle :math:`\theta` and time t has

.. math:: G \sim (4 \pi t)^{-(n-1)/2} e^{-\theta^2 / 4t} \Big(\frac{\theta}{\sin\theta}\Big)^m (1 + a_1 t + a_2 t^2
          + \dots), \qquad a_1 = m^2 - c h, \quad
          a_2 = \tfrac12 a_1^2 - c\, \frac{\theta h' + (2m - 1)(h - \tfrac13)}{\theta^2}.

A kernel is 1 at angle 0: it is the expansion of the quotient :math:`G(\theta) / G(0)`,

.. math:: K = e^{-\theta^2 / 4t} \Big(\frac{\theta}{\sin\theta}\Big)^m (1 + b_1 t + b_2 t^2 + \dots), \qquad
          b_1 = a_1(\theta) - a_1(0), \quad b_2 = \tfrac12 b_1^2 - c\,\big(e(\theta) - e(0)\big),

where e is the fraction in a_2. Cost: a matrix product and an arcsine and an exponential for each entry.

Paper: Zhao & Song, "Exact heat kernel on a hypersphere and its applications in kernel SVM", 2018, Section 2.1.
"""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt
from scipy.special import zeta

from similia.core import functions
from similia.core.config import rows_per_block, run_in_ranges
from similia.core.validation import check_positive
from similia.kernels.hypersphere import Mapping, SphereKernel, ZeroRows

Floats = npt.NDArray[np.float64]
_ORDERS = ("gaussian", 0, 1, 2)


_BLOCK = 2**14  # entries that stay in cache from one step to the next


# h(x) = sum of _H[k] x^(2k), 2 zeta(2k + 2) / pi^(2k + 2): used up to _SERIES, where the quotients lose digits.
_SERIES = 0.75


_H = 2 * zeta(np.arange(2.0, 34.0, 2.0)) / np.pi ** np.arange(2.0, 34.0, 2.0)


class Parametrix(SphereKernel):
    r"""The parametrix kernel :math:`e^{-\theta^2 / 4t}` of the angle, or the short-time expansion of the heat kernel.

    Neither is a heat kernel; `similia.kernels.HypersphericalHeat` is. They are here to be compared with it.

    Parameters
    ----------
    t : float, optional
        Time of diffusion; sets the kernel in place of `contrast`.
    contrast : float, default=4.0
        Slope of the kernel at equal vectors, per unit of 1 - cos: :math:`t = 1 / (2 a)`. A heat kernel of this contrast
        has about the same slope if n is large, at another time: at equal times the two are different kernels.
    order : {"gaussian", 0, 1, 2}, default="gaussian"
        "gaussian": :math:`e^{-\theta^2 / 4t}`, the kernel of Lafferty and Lebanon. 0: times
        :math:`(\theta / \sin\theta)^{(n - 2) / 2}`. 1 and 2: times a polynomial of that degree in t.
    mapping : {"auto", "sqrt", "projection", None}, default="auto"
        How rows become unit vectors; see `similia.kernels.hypersphere.to_hypersphere`.
    zero_rows : {"raise", "uniform"}, default="raise"
        What becomes of rows of zeros.

    Raises
    ------
    ValueError
        When called, if a parameter is out of range, a row cannot be mapped to the sphere, or, for orders 0 to 2, a
        value is infinite: of opposite vectors (n > 2), or, where n is large, of vectors that are merely far apart.

    Warns
    -----
    UserWarning
        For orders 0 to 2, if :math:`t \ge 3 / (n - 2)`: vectors nearby are then more alike than equal ones.

    Notes
    -----
    The kernel is not positive semi-definite. For "gaussian", the weight of some harmonic is negative for every t that
    was tried, on the circle (least weight -5e-6 at t = 0.3, -2.5e-3 at t = 1) and on the sphere (-1.2e-5, -6.2e-3).
    Vectors without negative entries do not cure it: of samples of 300 Dirichlet points at t = 1 the least eigenvalue
    was -4e-5 and -2.2e-4 (n = 3), -3.6e-5 (n = 10).

    The polynomial is the expansion of the quotient G(theta) / G(0), not a quotient of two expansions. At n = 50 and
    t = 1e-3, angles to 4 sqrt(2 t), the largest relative error was 4.0e-4, 1.8e-6 and 3.4e-9 of orders 0, 1 and 2;
    of the quotients it was 1.1e-4 and 2.1e-5, and 0.12 of "gaussian".

    References
    ----------
    Lafferty & Lebanon, "Diffusion kernels on statistical manifolds", JMLR 2005; Zhao & Song, "Exact heat kernel on a
    hypersphere and its applications in kernel SVM", 2018, Section 2.1.

    Examples
    --------
    >>> from experiments.parametrix import Parametrix
    >>> X = [[1.0, 0.0, 0.0, 0.0, 0.0], [1.0, 0.5, 0.0, 0.0, 0.0]]
    >>> for order in ("gaussian", 0, 1, 2):
    ...     print(order, Parametrix(t=0.1, order=order, mapping="projection")(X)[0, 1].round(5))
    gaussian 0.58425
    0 0.61675
    1 0.61653
    2 0.61651
    >>> from similia.kernels.heat import HypersphericalHeat
    >>> print(HypersphericalHeat(t=0.1, mapping="projection")(X)[0, 1].round(5))
    0.61651
    """

    def __init__(
        self,
        t: float | None = None,
        contrast: float = 4.0,
        order: str | int = "gaussian",
        mapping: Mapping = "auto",
        zero_rows: ZeroRows = "raise",
    ) -> None:
        self.t = t
        self.contrast = contrast
        self.order = order
        self.mapping = mapping
        self.zero_rows = zero_rows

    def _check(self, n: int) -> None:
        if isinstance(self.order, bool) or self.order not in _ORDERS:
            raise ValueError(f'order must be "gaussian", 0, 1 or 2, got {self.order!r}')
        self._time()

    def _time(self) -> float:
        return check_positive(self.t, "t") if self.t is not None else 0.5 / check_positive(self.contrast, "contrast")

    def _of_versines(self, V: Floats, n: int) -> Floats:
        t = self._time()
        order = -1 if self.order == "gaussian" else int(self.order)
        if order >= 0 and (n - 2) * t >= 3:
            warnings.warn(
                f"t = {t:.4g} is not below 3 / (n - 2) = {3 / (n - 2):.4g} for n = {n} features: vectors nearby are "
                "more alike than equal ones; use HypersphericalHeat, or a smaller t",
                UserWarning,
                stacklevel=3,
            )
        step = rows_per_block(64 * V.shape[1], at_most=max(1, _BLOCK // V.shape[1]))

        def rows(start: int, stop: int) -> None:
            for first in range(start, stop, step):
                block = V[first : min(stop, first + step)]
                block[:] = _expansion(block, n, t, order)

        run_in_ranges(rows, len(V), step)
        if order >= 0:
            _check_finite(V, n, t)
        return V


def _expansion(V: Floats, n: int, t: float, order: int) -> Floats:
    """Return the kernel of versines; order -1 is its Gaussian factor."""
    theta = 2 * np.arcsin(np.sqrt(0.5 * V))
    exponent = np.square(theta) / (-4 * t)
    if order < 0 or n == 2:  # the circle is flat: all other terms vanish
        return functions.exp(exponent)
    m = (n - 2) / 2
    # sin(theta) from the versine: it is exactly 0 at opposite vectors, where that of a rounded pi is not.
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        sine = np.sqrt(V * (2 - V))
        exponent += m * functions.log(np.where(theta > 0, theta, 1.0) / np.where(theta > 0, sine, 1.0))
        K = functions.exp(exponent)
        if order > 0:
            b1, b2 = quotient_terms(theta, n)
            K *= 1 + t * b1 if order == 1 else 1 + t * (b1 + t * b2)
    return K


def quotient_terms(theta: Floats, n: int) -> tuple[Floats, Floats]:
    """Return the coefficients b_1 and b_2 of t and t^2 in the expansion of G(theta) / G(0)."""
    m = (n - 2) / 2
    c = m * (m - 1)
    x2 = np.square(theta)
    k = np.arange(1, len(_H))
    with np.errstate(divide="ignore", invalid="ignore"):
        h = (1 - theta / np.tan(theta)) / x2
        slope = 1 / np.square(np.sin(theta)) - 1 / (theta * np.tan(theta)) - 2 * h  # theta h'
        rise = h - _H[0]
        bend = (slope + (2 * m - 1) * rise) / x2 - (2 * m + 1) * _H[1]
    near = theta < _SERIES
    rise[near] = np.polynomial.polynomial.polyval(x2[near], np.append(0.0, _H[1:]))
    bend[near] = np.polynomial.polynomial.polyval(x2[near], np.append(0.0, (_H[1:] * (2 * k + 2 * m - 1))[1:]))
    b1 = -c * rise
    return b1, 0.5 * np.square(b1) - c * bend


def _check_finite(K: Floats, n: int, t: float) -> None:
    for i, row in enumerate(K):
        if not np.isfinite(row).all():
            j = int(np.argmin(np.isfinite(row)))
            raise ValueError(
                f"the expansion of X[{i}] against row {j} is infinite (n = {n}, t = {t:.4g}): it diverges at opposite "
                "vectors and overflows where n is large; use HypersphericalHeat, or order='gaussian'"
            )
