r"""The exact heat kernel on the unit sphere in R^n, divided by its value at angle 0.

.. math:: K(x, y) = \frac{\sum_l w_l P_l(x^T y)}{\sum_l w_l}, \qquad
          w_l = \frac{2 l + n - 2}{l + n - 2} \binom{l + n - 2}{l} e^{-l (l + n - 2) t},

where :math:`P_l` are the Gegenbauer polynomials of order n/2 - 1, scaled so that :math:`P_l(1) = 1`, and t is the
diffusion time. All w_l are positive, so K is positive semi-definite on the whole sphere. The parameter to tune is the
*contrast* :math:`a = n e^{-(n - 1) t} = w_1 / w_0`, since K is close to :math:`e^{-a (1 - x^T y)}` for n in the
hundreds and more.

Cost of a block: one matrix product for the cosines, then a polynomial of degree 7 per entry; see `heat_series`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.errors import BadValue, warn_user
from similia.core.validation import check_positive, check_positive_int, generator, unmasked
from similia.kernels import heat_series as _heat
from similia.kernels.hypersphere import Mapping, SphereKernel, ZeroRows, as_rows, map_pair, to_hypersphere, versines

_FEW = 512  # up to so many values, summing the series is faster than building a table
_ROUNDING = 1e-9  # by how much a versine may lie outside [0, 2]
_LEAST_CONTRAST, _MOST_SLOPE = 1e-8, 1e5  # with a smaller contrast or a larger slope, the kernel is useless
_NOTHING = 1e-12  # kernel values up to this one count as 0
_SEARCHED = (0.25, 64.0)  # contrasts worth trying

Floats = npt.NDArray[np.float64]


def heat_profile(one_minus_cos: Any, n: int, t: float) -> npt.NDArray[np.float64]:
    r"""Return the heat kernel of the sphere in R^n as a function of 1 - cos(angle).

    Parameters
    ----------
    one_minus_cos : array-like of float
        Versines 1 - cos(angle), in [0, 2]. Unlike cosines, they keep their precision at small angles.
    n : int
        Number of coordinates of the vectors, at least 2.
    t : float
        Diffusion time, above 0.

    Returns
    -------
    ndarray of float64, shape of `one_minus_cos`
        Values divided by the value at angle 0: in [0, 1], and exactly 1 at angle 0. The absolute error is below 2e-13
        for n up to 1,000,000 and t >= 1e-6.

    Warns
    -----
    UserWarning
        If t is so large that the kernel is nearly 1 everywhere (n exp(-(n - 1) t) below 1e-8), or so small that the
        rounding error of a cosine changes the kernel by more than 1e-11.

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
    """Return a new array of the versines, clipped to [0, 2]; raise if one lies outside by more than rounding."""
    u = np.array(unmasked(one_minus_cos, "one_minus_cos"), dtype=np.float64, order="C")
    least, most = u.min(initial=0.0), u.max(initial=0.0)
    if least >= 0 and most <= 2:
        return u
    wrong = ~((u >= -_ROUNDING) & (u <= 2 + _ROUNDING))
    if wrong.any():  # includes NaN, which numpy's min and max return
        index = tuple(int(i) for i in np.argwhere(wrong)[0])
        place = f"one_minus_cos[{', '.join(map(str, index))}]" if index else "one_minus_cos"
        raise ValueError(f"{place} is {u[index]:g}, expected 1 - cos(angle) in [0, 2]; for cosines c, pass 1 - c")
    return np.clip(u, 0.0, 2.0, out=u)


def _warn_of_extremes(n: int, t: float) -> None:
    """Warn if the kernel is constant or too steep for float64."""
    contrast = _heat.contrast_of(t, n)
    if contrast < _LEAST_CONTRAST:
        message = f"is too large: the contrast is {contrast:.2g}, so the kernel is 1 for all pairs"
    elif (slope := _heat.slope(n, t)) > _MOST_SLOPE:
        message = f"is too small: at equal vectors the kernel falls by {slope:.2g} per unit of 1 - cos"
    else:
        return
    best = f"a contrast of 1 is t = {_heat.time_of(1.0, n):.4g}"
    warn_user(f"t = {t:.6g} for n = {n} features {message}; {best}")


class HypersphericalHeat(SphereKernel):
    r"""The exact heat kernel between vectors on the unit sphere, divided by its value at angle 0.

    Heat starts at x and spreads over the sphere for a time t; the kernel is the temperature at y relative to that at x.

    Parameters
    ----------
    contrast : float, default=4.0
        The number :math:`a = n e^{-(n - 1) t}` for n columns and time t; must be below n. If a is near 0, all vectors
        have kernel values near 1; if a is large, only nearly equal vectors do. Use `suggest_contrast`, or try
        all powers of 2 from 1/4 to 64 that are below n.
    t : float, optional
        Diffusion time. If given, `contrast` is ignored. With up to a dozen features, search t from 0.01 to 1 instead of
        the contrast.
    mapping : {"auto", "sqrt", "projection", None}, default="auto"
        How rows become unit vectors. "sqrt": divide each row by its sum, then take square roots. "projection": divide
        each row by its Euclidean norm. "auto": "sqrt" if no entry is negative, otherwise "projection". None: the rows
        are unit vectors already.
    zero_rows : {"raise", "uniform"}, default="raise"
        How to treat rows of zeros: raise an error, or set all their columns to 1 / sqrt(n).

    Notes
    -----
    Columns of zeros count in n. The result is always float64. Its error is at most 2e-13 plus s times the rounding
    error of u = 1 - cos(angle). The factor s is -dK/du at u = 0: about 1 / (2 t) if t is small, and about the contrast
    a if n is large.

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
        self, contrast: float = 4.0, t: float | None = None, mapping: Mapping = "auto", zero_rows: ZeroRows = "raise"
    ) -> None:
        self.contrast = contrast
        self.t = t
        self.mapping = mapping
        self.zero_rows = zero_rows

    def gradient(self, X: Any, Y: Any = None) -> npt.NDArray[np.float64]:
        r"""Return the derivative dK/dt of the kernel, shape (n_x, n_y).

        For n columns, the derivative with respect to the contrast a is dK/dt / (-(n - 1) a). K is a series of
        Gegenbauer polynomials in cos(angle). The polynomial of degree l, scaled to 1 at angle 0, has the weight
        :math:`w_l`; the weights have the sum 1. The error of dK/dt is below 1e-12 times :math:`\sum_l w_l |\lambda_l -
        \bar\lambda|`, an upper bound of its size, where :math:`\lambda_l = l (l + n - 2)` and :math:`\bar\lambda =
        \sum_l w_l \lambda_l`.

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
        _warn_of_extremes(n, t)
        K = _heat.evaluate(_heat.table(n, t), V)
        _warn_if_identity(K, n, t)
        return K

    def _time(self, n: int) -> float:
        if self.t is not None:
            return check_positive(self.t, "t")
        contrast = check_positive(self.contrast, "contrast")
        if contrast >= n:
            raise ValueError(
                f"contrast must be below the number of features, {n}, got {contrast:g}; use a smaller one such as "
                f"{n / 4:g}, or the result of similia.kernels.suggest_contrast(X), or set a time such as t=0.1"
            )
        return _heat.time_of(contrast, n)


def _warn_if_identity(K: npt.NDArray[np.float64], n: int, t: float) -> None:
    """Warn that t is too small if K, the kernel of vectors with themselves, is 0 between any two of them."""
    if len(K) < 2 or K.shape[0] != K.shape[1] or not (K.diagonal() == 1).all():
        return
    if all(np.count_nonzero(row > _NOTHING) <= 1 for row in K):
        warn_user(
            f"t = {t:.6g} for n = {n} features is too small for these vectors: the kernel is 0 between all of them; "
            "similia.kernels.suggest_contrast(X) computes a contrast from their cosines"
        )


def suggest_contrast(
    X: Any, mapping: Mapping = "auto", zero_rows: ZeroRows = "raise", max_objects: int = 1000, random_state: Any = 0
) -> float:
    r"""Suggest a contrast for `HypersphericalHeat`: 1 / m, where m is the median of 1 - cos(angle) over pairs of rows.

    Two rows with 1 - cos(angle) = m then have a kernel value of about 1 / e; there, the kernel changes fastest with
    log(contrast). To tune the contrast, multiply and divide the suggested one by powers of 2.

    Parameters
    ----------
    X : array-like or sparse array of shape (n_objects, n)
    mapping, zero_rows : str
        As in `HypersphericalHeat`.
    max_objects : int, default=1000
        Maximum number of rows to compare; a random sample is drawn if `X` has more.
    random_state : int, numpy Generator or None, default=0
        Seed or generator for drawing the rows.

    Returns
    -------
    float
        Between 1/4 and 64, and at most n / 2.

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
        raise BadValue(None, "has 1 row", "at least 2: the contrast is computed from cosines of pairs")
    unit = to_hypersphere(rows, mapping, zero_rows=zero_rows)
    if rows.shape[0] > check_positive_int(max_objects, "max_objects", minimum=2):
        unit = unit[np.sort(generator(random_state).choice(rows.shape[0], max_objects, replace=False))]
    V = versines(unit)
    median = float(np.median(V[np.triu_indices(len(V), k=1)]))
    least, most = _SEARCHED
    return min(max(1 / median if median > 0 else math.inf, least), most, rows.shape[1] / 2)
