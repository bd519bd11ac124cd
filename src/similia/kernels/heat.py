r"""The exact heat kernel on the unit sphere in R^n, divided by its value at angle 0.

.. math:: K(x, y) = \frac{\sum_l w_l P_l(x^T y)}{\sum_l w_l}, \qquad
          w_l = \frac{2 l + n - 2}{l + n - 2} \binom{l + n - 2}{l} e^{-l (l + n - 2) t},

with :math:`P_l` the Gegenbauer polynomials of order n/2 - 1, scaled to 1 at 1, and t the time of diffusion. All w_l are
positive, so K is positive semi-definite on the whole sphere. The parameter to search is the *contrast*
:math:`a = n e^{-(n - 1) t} = w_1 / w_0`, since K is close to :math:`e^{-a (1 - x^T y)}` for n in the hundreds and more.

Cost of a block: its cosines (one matrix product), then a polynomial of degree 7 for each entry; see `_heat`.

Paper: Zhao & Song, "Exact heat kernel on a hypersphere and its applications in kernel SVM", 2018.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import zeta

from similia.core import functions
from similia.core.config import rows_per_block
from similia.core.threads import run_in_ranges
from similia.core.validation import check_positive, check_positive_int, generator, unmasked
from similia.kernels import heat_series as _heat
from similia.kernels.hypersphere import Mapping, SphereKernel, ZeroRows, as_rows, map_pair, to_hypersphere, versines

_FEW = 512  # values whose series are summed sooner than the nodes of a table
_ROUNDING = 1e-9  # by which a versine may miss [0, 2]
_LEAST_CONTRAST, _MOST_SLOPE, _NOTHING = 1e-8, 1e5, 1e-12
_SEARCHED = (0.25, 64.0)  # contrasts worth a search
Floats = npt.NDArray[np.float64]
_ORDERS = ("gaussian", 0, 1, 2)
_BLOCK = 2**14  # entries that stay in cache from one step to the next
# h(x) = sum of _H[k] x^(2k), 2 zeta(2k + 2) / pi^(2k + 2): used up to _SERIES, where the quotients lose digits.
_SERIES = 0.75
_H = 2 * zeta(np.arange(2.0, 34.0, 2.0)) / np.pi ** np.arange(2.0, 34.0, 2.0)


def heat_profile(one_minus_cos: Any, n: int, t: float) -> npt.NDArray[np.float64]:
    r"""Return the heat kernel of the sphere in R^n as a function of 1 - cos(angle).

    Parameters
    ----------
    one_minus_cos : array-like of float
        Versines 1 - cos(angle), in [0, 2]. Taking these, and not cosines, keeps the digits at small angles.
    n : int
        Number of coordinates of the vectors, at least 2.
    t : float
        Time of diffusion, above 0.

    Returns
    -------
    ndarray of float64, shape of `one_minus_cos`
        Values in [0, 1], exactly 1 at 0, within 1e-12 of the kernel (absolute) for n up to 1,000,000 and t from 1e-6
        on: up to 512 values within 2e-14 by the series, more of them within 2e-13 by a table.

    Raises
    ------
    ValueError
        If a versine is NaN or misses [0, 2] by more than 1e-9, n < 2, t is not positive, or t is so small that the
        series would need degrees above 4,194,304.

    Warns
    -----
    UserWarning
        Once for each n and t where the kernel is 1 everywhere (contrast below 1e-8), or so steep at 0 that the
        rounding of a cosine costs more than 1e-11.

    Examples
    --------
    >>> from similia.kernels.heat import heat_profile
    >>> heat_profile([0.0, 0.5, 1.0, 2.0], n=3, t=0.5).round(6)
    array([1.      , 0.638303, 0.369435, 0.054149])
    """
    n, t = check_positive_int(n, "n", minimum=2), check_positive(t, "t")
    u = _versines_in_range(one_minus_cos)
    _warn_of_extremes(n, t)
    if u.size <= _FEW:
        return np.where(u == 0, 1.0, np.clip(_heat.series(n, t).at(u.reshape(-1)).reshape(u.shape), 0, 1))[()]
    return _heat.evaluate(_heat.table(n, t), u)


def _versines_in_range(one_minus_cos: Any) -> npt.NDArray[np.float64]:
    """Return a copy in [0, 2] of versines that miss it by rounding at most, or raise."""
    u = np.array(unmasked(one_minus_cos, "one_minus_cos"), dtype=np.float64, order="C")
    least, most = u.min(initial=0.0), u.max(initial=0.0)
    if least >= 0 and most <= 2:
        return u
    wrong = ~((u >= -_ROUNDING) & (u <= 2 + _ROUNDING))
    if wrong.any():  # NaN too: numpy's least and most are then NaN
        index = tuple(int(i) for i in np.argwhere(wrong)[0])
        place = f"one_minus_cos[{', '.join(map(str, index))}]" if index else "one_minus_cos"
        raise ValueError(f"{place} is {u[index]:g}, expected 1 - cos(angle) in [0, 2]; of cosines c give 1 - c")
    return np.clip(u, 0.0, 2.0, out=u)


def _warn_of_extremes(n: int, t: float, stacklevel: int = 3) -> None:
    """Warn of a kernel without contrast or without digits; Python shows a message, here one of n and t, once."""
    contrast = _heat.contrast_of(t, n)
    if contrast < _LEAST_CONTRAST:
        message = f"is too large: the contrast is {contrast:.2g}, so the kernel is 1 for all pairs"
    elif (slope := _heat.slope(n, t)) > _MOST_SLOPE:
        message = f"is too small: at equal vectors the kernel falls by {slope:.2g} per unit of 1 - cos"
    else:
        return
    best = f"a contrast of 1 is t = {_heat.time_of(1.0, n):.4g}"
    warnings.warn(f"t = {t:.6g} for n = {n} features {message}; {best}", UserWarning, stacklevel=stacklevel)


class HypersphericalHeat(SphereKernel):
    r"""The exact heat kernel between vectors on the unit sphere, divided by its value at angle 0.

    Parameters
    ----------
    contrast : float, default=4.0
        :math:`a = n e^{-(n - 1) t}`, of n features, below n. Near 0 all vectors are alike; at large a only equal ones
        are. Worth a search: 1/4, 1/2, 1, ..., 64 as far as they are below n, or what `suggest_contrast` returns.
    t : float, optional
        Time of diffusion; sets the kernel in place of `contrast`, which is not looked at then. For few features, up to
        a dozen, it is the parameter to search: 0.01 to 1.
    mapping : {"auto", "sqrt", "projection", None}, default="auto"
        How rows become unit vectors; see `similia.kernels.hypersphere.to_hypersphere`.
    zero_rows : {"raise", "uniform"}, default="raise"
        What becomes of rows of zeros.

    Raises
    ------
    ValueError
        When called, if `contrast` is not between 0 and the number of features, `t` is not positive, or the rows cannot
        be mapped to the sphere.

    Notes
    -----
    n is the number of columns of `X`, used or not. Values are within 2e-13 of the kernel of the computed 1 - cos, also
    of float32 rows, whose result is float64. The digits of 1 - cos themselves matter more: an error there is multiplied
    by the slope of the kernel at 0, about 1 / (2 t) for small t and a for large n.

    In a call, "auto" is decided by `Y` (by `X` if there is none): one negative entry changes the map of all rows.
    Estimators that hold the kernel (`Nystroem`, `SimilaritySearch`) decide it once, by all objects they are fitted to.

    References
    ----------
    Zhao & Song, "Exact heat kernel on a hypersphere and its applications in kernel SVM", 2018.

    Examples
    --------
    >>> from similia.kernels.heat import HypersphericalHeat
    >>> counts = [[9, 0, 1, 0, 0, 0], [4, 0, 1, 0, 0, 0], [0, 2, 0, 0, 5, 3]]
    >>> HypersphericalHeat(contrast=2.0)(counts).round(4)
    array([[1.    , 0.9837, 0.1434],
           [0.9837, 1.    , 0.1434],
           [0.1434, 0.1434, 1.    ]])
    """

    def __init__(
        self,
        contrast: float = 4.0,
        t: float | None = None,
        mapping: Mapping = "auto",
        zero_rows: ZeroRows = "raise",
    ) -> None:
        self.contrast = contrast
        self.t = t
        self.mapping = mapping
        self.zero_rows = zero_rows

    def gradient(self, X: Any, Y: Any = None) -> npt.NDArray[np.float64]:
        r"""Return the derivative of the kernel with respect to t.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_x, n)
        Y : array-like or sparse array of shape (n_y, n), optional
            `X` itself if not given.

        Returns
        -------
        ndarray of float64, shape (n_x, n_y)
            dK/dt, in 1 / (unit of t). That with respect to the contrast is dK/dt / (-(n - 1) a).
            Within 1e-12 times :math:`\sum_l w_l |\lambda_l - \bar\lambda|`, of :math:`\lambda_l = l (l + n - 2)`.

        Examples
        --------
        >>> from similia.kernels.heat import HypersphericalHeat
        >>> HypersphericalHeat(t=0.5).gradient([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]).round(4)
        array([[0.    , 0.9243],
               [0.9243, 0.    ]])
        """
        A, B = map_pair(X, Y, self.mapping, self.zero_rows)
        n = A.shape[1]
        t = self._time(n)
        _warn_of_extremes(n, t)
        return _heat.evaluate(_heat.gradient_table(n, t), versines(A, B))

    def _check(self, n: int) -> None:
        self._time(n)

    def _of_versines(self, V: npt.NDArray[np.float64], n: int) -> npt.NDArray[np.float64]:
        t = self._time(n)
        _warn_of_extremes(n, t, stacklevel=4)
        K = _heat.evaluate(_heat.table(n, t), V)
        _warn_if_identity(K, n, t)
        return K

    def _time(self, n: int) -> float:
        return check_positive(self.t, "t") if self.t is not None else _time_of_contrast(self.contrast, n)


def _time_of_contrast(contrast: float, n: int) -> float:
    contrast = check_positive(contrast, "contrast")
    if contrast >= n:
        raise ValueError(
            f"contrast must be below the number of features, {n}, got {contrast:g}; take a smaller one such as "
            f"{n / 4:g}, what similia.kernels.suggest_contrast(X) returns, or a time such as t=0.1"
        )
    return _heat.time_of(contrast, n)


def _warn_if_identity(K: npt.NDArray[np.float64], n: int, t: float) -> None:
    """Warn of a Gram matrix that is the identity; the first row shows at once that most are not."""
    if len(K) < 2 or K.shape[0] != K.shape[1] or not (K.diagonal() == 1).all():
        return
    if all(np.count_nonzero(row > _NOTHING) <= 1 for row in K):
        warnings.warn(
            f"t = {t:.6g} for n = {n} features is too small for these vectors: the kernel is 0 between all of them; "
            "similia.kernels.suggest_contrast(X) takes a contrast from their cosines",
            UserWarning,
            stacklevel=4,
        )


def suggest_contrast(
    X: Any,
    mapping: Mapping = "auto",
    zero_rows: ZeroRows = "raise",
    max_objects: int = 1000,
    random_state: Any = 0,
) -> float:
    r"""Return the contrast that gives a pair of vectors with the median cosine the kernel 1 / e.

    There, at :math:`a (1 - \cos) = 1`, the value :math:`e^{-a (1 - \cos)}` of the pair reacts most to a change of
    log a, so that a search by factors of 2 around it sees the most of the data.

    Parameters
    ----------
    X : array-like or sparse array of shape (n_objects, n)
    mapping, zero_rows : str
        As in `HypersphericalHeat`.
    max_objects : int, default=1000
        Rows that are compared, drawn at random if there are more.
    random_state : int, numpy Generator or None, default=0
        Draws the rows.

    Returns
    -------
    float
        Between 1/4 and 64, and at most n / 2.

    Raises
    ------
    ValueError
        If `X` has fewer than 2 rows or cannot be mapped to the sphere.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.kernels.heat import suggest_contrast
    >>> X = np.random.default_rng(0).dirichlet(np.full(50, 0.2), size=100)
    >>> round(suggest_contrast(X), 2)
    1.7
    """
    rows = as_rows(X)
    if rows.shape[0] < 2:
        raise ValueError("X has 1 row, expected at least 2: the contrast is taken from cosines of pairs")
    unit = to_hypersphere(rows, mapping, zero_rows=zero_rows)
    if rows.shape[0] > check_positive_int(max_objects, "max_objects", minimum=2):
        unit = unit[np.sort(generator(random_state).choice(rows.shape[0], max_objects, replace=False))]
    V = versines(unit)
    median = float(np.median(V[np.triu_indices(len(V), k=1)]))
    least, most = _SEARCHED
    return min(max(1 / median if median > 0 else math.inf, least), most, rows.shape[1] / 2)


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
    >>> from similia.kernels.heat import Parametrix
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
