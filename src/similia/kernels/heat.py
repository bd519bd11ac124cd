r"""The exact heat kernel on the unit sphere in R^n, divided by its value at angle 0.

.. math:: K(x, y) = \frac{\sum_l w_l P_l(x^T y)}{\sum_l w_l}, \qquad
          w_l = \frac{2 l + n - 2}{l + n - 2} \binom{l + n - 2}{l} e^{-l (l + n - 2) t},

where :math:`P_l` are the Gegenbauer polynomials of order n/2 - 1, scaled so that :math:`P_l(1) = 1`, and t is the
diffusion time. All w_l are positive, so K is positive semi-definite on the whole sphere. The parameter to tune is the
*contrast* :math:`a = n e^{-(n - 1) t} = w_1 / w_0`, since K is close to :math:`e^{-a (1 - x^T y)}` for n in the
hundreds and more.

Cost of a block: one matrix product for the cosines, then a polynomial of degree 7 per entry; see *The table* below.

As a function of the versine u = 1 - x^T y, K(u) is the sum of the w_l P_l(1 - u), with the w_l divided by their sum.

*The weights* are computed from the largest one outwards, by the ratios of adjacent weights. The ratios decrease, so a
geometric series bounds the sum of the omitted weights (2^-60 on each side). *The series* takes its terms from Reinsch's
recurrence for the differences P_(l+1) - P_l, which is precise near u = 0, and adds them by compensated summation. The
error is below 2e-14 for n <= 1e6 and t >= 1e-6.

*The table* holds polynomials of degree 7 on cells of equal width h in u. All derivatives of P_l are largest at u = 0,
so max |K^(k)| is exactly the sum of w_l P_l^(k)(1). With nodes at the extrema of a Chebyshev polynomial,

    error of interpolation <= 4 (h / 4)^8 / 8! max |K^(8)| = 1e-13 by the choice of h;
    + 2.5 (Lebesgue's constant) times the error of the series; + 1e-14, since K is set to 0 below 1e-14;

in total, the error is 1.6e-13. Since K falls roughly exponentially with u, about 100 cells of 64 bytes cover the values
of K from 1 to 1e-14 for any n and t. Cost: the series is summed at 800 points to fill the table; each value then takes
one multiplication, one truncation and seven fused multiply-adds.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from similia.core import functions
from similia.core.config import run_in_ranges
from similia.core.functions import exp_of, fma, log_of
from similia.core.jit import njit
from similia.core.products import row_product
from similia.core.validation import BadValue, check_positive, check_positive_int, generator, unmasked, warn_user
from similia.kernels.hypersphere import Mapping, SphereKernel, ZeroRows, as_rows, map_pair, to_hypersphere, versines

_FEW = 512  # up to so many values, summing the series is faster than building a table
_ROUNDING = 1e-9  # by how much a versine may lie outside [0, 2]
_LEAST_CONTRAST, _MOST_SLOPE = 1e-8, 1e5  # with a smaller contrast or a larger slope, the kernel is useless
_NOTHING = 1e-12  # kernel values up to this one count as 0
_SEARCHED = (0.25, 64.0)  # contrasts worth trying
DEGREE = 7  # eight coefficients fill a cache line
LANES = 64  # number of points at which a series is summed together
MOST_DEGREES = 2**22  # its table takes seconds; at so small a t, rounding errors make equal vectors differ
_INTERPOLATION = 1e-13
_CUT = 1e-14  # smaller kernel values are set to 0
_TAIL = 2.0**-60  # bound on the sum of the omitted weights on each side
_GRAIN = 2**16  # minimum number of entries per thread

Floats = npt.NDArray[np.float64]


def heat_profile(one_minus_cos: Any, n: int, t: float) -> npt.NDArray[np.float64]:
    r"""Return the heat kernel of the sphere in R^n as a function of 1 - cos(angle).

    Heat starts at one point of the sphere and spreads for a time t; the kernel is the temperature at another point. It
    depends only on the angle between the two points. `HypersphericalHeat` is this kernel as a function of two vectors.

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
        return np.where(u == 0, 1.0, np.clip(series(n, t).at(u.reshape(-1)).reshape(u.shape), 0, 1))[()]
    return evaluate(table(n, t), u)


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
    contrast = contrast_of(t, n)
    if contrast < _LEAST_CONTRAST:
        message = f"is too large: the contrast is {contrast:.2g}, so the kernel is 1 for all pairs"
    elif (steepest := slope(n, t)) > _MOST_SLOPE:
        message = f"is too small: at equal vectors the kernel falls by {steepest:.2g} per unit of 1 - cos"
    else:
        return
    best = f"a contrast of 1 is t = {time_of(1.0, n):.4g}"
    warn_user(f"t = {t:.6g} for n = {n} features {message}; {best}")


class HypersphericalHeat(SphereKernel):
    r"""The exact heat kernel between vectors on the unit sphere, divided by its value at angle 0.

    Heat starts at x and spreads over the sphere for a time t; the kernel is the temperature at y divided by the
    temperature at x.

    Parameters
    ----------
    contrast : float, default=4.0
        The number :math:`a = n e^{-(n - 1) t}` for n columns and time t; must be below n. If a is near 0, all kernel
        values are near 1; if a is large, only nearly equal vectors have kernel values near 1. Use `suggest_contrast`,
        or try all powers of 2 from 1/4 to 64 that are below n.
    t : float, optional
        Diffusion time. If given, `contrast` is ignored. With up to a dozen features, search over t, from 0.01 to 1,
        rather than over the contrast.
    mapping : {"auto", "sqrt", "projection", None}, default="auto"
        How rows become unit vectors. "sqrt": divide each row by its sum, then take square roots. "projection": divide
        each row by its Euclidean norm. "auto": "sqrt" if no entry is negative, otherwise "projection". None: the rows
        are unit vectors already.
    zero_rows : {"raise", "uniform"}, default="raise"
        How to treat rows of zeros: raise an error, or set all their columns to 1 / sqrt(n).

    Notes
    -----
    The number n includes columns that hold only zeros. The result is always float64. Its error is at most 2e-13 plus s
    times the rounding error of u = 1 - cos(angle). The factor s is -dK/du at u = 0: about 1 / (2 t) if t is small, and
    about the contrast a if n is large.

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
        r"""Return the derivative dK/dt of the kernel values with respect to the diffusion time t, shape (n_x, n_y).

        For n columns, divide the result by -(n - 1) a to get the derivative with respect to the contrast a. The error
        of the returned values is below 1e-12 S, where S is an upper bound of :math:`|dK/dt|`. To compute S, write K as
        a series of Gegenbauer polynomials in cos(angle). The polynomial of degree l, scaled to 1 at angle 0, has the
        weight :math:`w_l`; the weights sum to 1. Then :math:`S = \sum_l w_l |\lambda_l - \bar\lambda|`, where
        :math:`\lambda_l = l (l + n - 2)` and :math:`\bar\lambda = \sum_l w_l \lambda_l`.

        Examples
        --------
        >>> from similia.kernels.heat import HypersphericalHeat
        >>> HypersphericalHeat(t=0.5).gradient([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]).round(4)
        array([[0.    , 0.9243],
               [0.9243, 0.    ]])
        """
        A, B = map_pair(X, Y, self)
        n = A.shape[1]
        t = self._time(n)
        _warn_of_extremes(n, t)
        return evaluate(gradient_table(n, t), versines(A, B))

    def _check(self, n: int) -> None:
        self._time(n)

    def _of_versines(self, V: npt.NDArray[np.float64], n: int) -> npt.NDArray[np.float64]:
        t = self._time(n)
        _warn_of_extremes(n, t)
        K = evaluate(table(n, t), V)
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
        return time_of(contrast, n)


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

    With this contrast, two rows with 1 - cos(angle) = m have a kernel value of about 1 / e. Kernel values near 1 / e
    change most if the contrast is made a little larger or smaller; values near 0 or 1 hardly change. To tune the
    contrast, multiply and divide the suggested value by powers of 2.

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
        A contrast between 1/4 and 64, and at most n / 2.

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


def time_of(contrast: float, n: int) -> float:
    """Return the time t at which n exp(-(n - 1) t), the contrast of the heat kernel in R^n, equals `contrast`."""
    return float(log_of(n / contrast)) / (n - 1)


def contrast_of(t: float, n: int) -> float:
    """Return the contrast n exp(-(n - 1) t): the weight of degree 1 in the heat kernel divided by that of degree 0."""
    return n * float(exp_of(-(n - 1) * t))


class Series(NamedTuple):
    """A sum of w_l P_l over degrees l, with P_l the Gegenbauer polynomial of order n/2 - 1 scaled to 1 at versine 0.

    `weights` (read-only) holds w_l for l = `first`, `first` + 1, ...; all other weights are 0.
    """

    n: int
    first: int
    weights: Floats

    def derivative(self, k: int) -> float:
        """Return the sum of |w_l| P_l^(k)(1), a bound on the absolute k-th derivative of the series at any point."""
        l = np.arange(self.first, self.first + len(self.weights), dtype=np.float64)
        products = np.abs(self.weights)
        with np.errstate(under="ignore"):  # weights far from the largest one
            for i in range(k):
                products *= (l - i) * (l + (self.n - 2 + i)) / (self.n - 1 + 2 * i)
        return math.fsum(products)

    def at(self, u: Floats) -> Floats:
        """Return the sum of the series at each versine in `u`, a 1-D array."""
        out = np.empty(len(u))
        u = np.ascontiguousarray(u)

        def work(start: int, stop: int) -> None:
            _sum_series(u[start:stop], float(self.n), self.first, self.weights, out[start:stop])

        run_in_ranges(work, len(u), LANES)
        return out


def _ratios(l: Floats, n: int, t: float) -> Floats:
    """Return the weight of degree l + 1 divided by that of degree l, for each degree in `l`; it decreases with l."""
    with np.errstate(under="ignore"):  # far beyond what is kept
        decay = functions.exp(-(2 * l + (n - 1)) * t)
        if n == 2:
            return np.where(l == 0, 2.0, 1.0) * decay
        return (1 + 2 / (2 * l + (n - 2))) * ((l + (n - 2)) / (l + 1)) * decay


def _peak(n: int, t: float) -> int:
    """Return the degree of the largest weight: the first degree whose successor has no larger weight."""
    degrees = range(MOST_DEGREES + 1)
    peak = bisect_left(degrees, True, key=lambda l: bool(_ratios(np.array([float(l)]), n, t)[0] <= 1))
    if peak > MOST_DEGREES:
        raise ValueError(_too_small(n, t))
    return peak


def _too_small(n: int, t: float) -> str:
    return (
        f"t = {t:g} is too small for n = {n} features: the series needs degrees above {MOST_DEGREES}, and the kernel "
        f"of different vectors is 0; use a t near log(n) / (n - 1) = {time_of(1.0, n):.4g}"
    )


def _outwards(n: int, t: float, peak: int, step: int) -> Floats:
    """Return the weights of the degrees above `peak` (`step` 1) or below it (`step` -1), nearest first.

    Each weight is divided by that of degree `peak`; a tiny tail is left out.
    """
    size = 256
    while peak + size <= 2 * MOST_DEGREES:
        if step > 0:
            ratios = _ratios(np.arange(peak, peak + size, dtype=np.float64), n, t)
        else:
            ratios = np.reciprocal(_ratios(np.arange(peak - 1, max(peak - 1 - size, -1), -1, dtype=np.float64), n, t))
        with np.errstate(under="ignore"):  # far beyond what is kept
            w = np.multiply.accumulate(ratios)
        # The tail is relative to the first of these weights, which dominates dK/dt if the peak is far above them.
        enough = (ratios < 1) & (w <= _TAIL * w[:1] * (1 - ratios))
        if enough.any():
            return w[: int(np.argmax(enough))]
        if step < 0 and size >= peak:
            return w
        size *= 2
    raise ValueError(_too_small(n, t))


@lru_cache(maxsize=32)
def series(n: int, t: float) -> Series:
    """Return the series of the heat kernel at time `t` on the unit sphere in R^n; its weights sum to 1."""
    peak = _peak(n, t)
    down, up = _outwards(n, t, peak, -1), _outwards(n, t, peak, 1)
    w = np.concatenate([down[::-1], [1.0], up])
    w /= math.fsum(w)
    w.flags.writeable = False
    return Series(n, peak - len(down), w)


def weights(n: int, t: float) -> tuple[int, Floats]:
    """Return (first degree, read-only weights from that degree on) of the heat kernel; the weights sum to 1."""
    return series(n, t)[1:]


@lru_cache(maxsize=32)
def gradient_series(n: int, t: float) -> Series:
    """Return the series of dK/dt, with weights w_l (m - l (l + n - 2)).

    w_l are the weights of `series`, and m is the mean of l (l + n - 2) with these weights.
    """
    first, w = weights(n, t)
    l = np.arange(first, first + len(w), dtype=np.float64)
    eigenvalues = l * (l + (n - 2))
    with np.errstate(under="ignore"):
        g = w * (math.fsum(w * eigenvalues) - eigenvalues)
    g.flags.writeable = False
    return Series(n, first, g)


@lru_cache(maxsize=32)
def slope(n: int, t: float) -> float:
    """Return -dK/du at versine u = 0: the error in the heat kernel K divided by the error in a small u."""
    return series(n, t).derivative(1)


class Table(NamedTuple):
    """A piecewise polynomial in the versine: cells of equal width, with a variable that runs from 0 to 1 in each."""

    coefficients: Floats  # (cells, DEGREE + 1), lowest degree first; the last row also applies to all larger u
    per_unit: float  # number of cells per unit of the versine
    least: float  # results are clipped to least and most
    most: float


@lru_cache(maxsize=32)
def table(n: int, t: float) -> Table:
    """Return a table of the heat kernel; the error of its values is below 2e-13."""
    return Table(*_interpolate(series(n, t), scale=1.0, at_zero=1.0), least=0.0, most=1.0)


@lru_cache(maxsize=32)
def gradient_table(n: int, t: float) -> Table:
    """Return a table of dK/dt; the error is below 1e-12 times the sum of the absolute weights of `gradient_series`."""
    values, kernel = gradient_series(n, t), table(n, t)
    reach = len(kernel.coefficients) / kernel.per_unit
    scale = math.fsum(np.abs(values.weights))
    # dK/dt <= K (constant + 4 log(1/K)) / t (Hamilton): small where K is small, up to some digits.
    return Table(*_interpolate(values, scale, at_zero=0.0, reach=reach), least=-math.inf, most=math.inf)


def _interpolate(values: Series, scale: float, at_zero: float, reach: float = 0.0) -> tuple[Floats, float]:
    """Tabulate the series `values`: return (coefficients, cells per unit of the versine), fields of a `Table`.

    Errors are relative to `scale`; `at_zero` is the exact value at versine 0. The table ends where the values become
    negligible, but not before versine `reach`.
    """
    order = DEGREE + 1
    bound = values.derivative(order)
    width = 4 * (_INTERPOLATION * math.factorial(order) / 4 * (scale / bound)) ** (1 / order) if bound > 0 else 2.0
    n_cells = math.ceil(2 / width)
    nodes = (1 - functions.cos(np.pi * np.arange(DEGREE) / DEGREE)) / 2
    rows = []
    for start in range(0, n_cells, LANES):
        cells = np.arange(start, min(start + LANES, n_cells))
        u = (2 / n_cells) * np.append((cells[:, None] + nodes).ravel(), cells[-1] + 1)
        f = values.at(np.minimum(u, 2.0))
        if start == 0:
            f[0] = at_zero  # so that equal vectors have similarity exactly 1
        rows.append(_monomials(np.column_stack([f[:-1].reshape(-1, DEGREE), f[DEGREE::DEGREE]])))
        small = (np.abs(f[:-1:DEGREE]) < _CUT * scale) & (u[:-1:DEGREE] >= reach)
        if small.any():
            rows[-1] = np.vstack([rows[-1][: int(np.argmax(small))], np.zeros((1, order))])
            break
    coefficients = np.concatenate(rows)
    coefficients.flags.writeable = False
    return coefficients, n_cells / 2


def _monomials(f: Floats) -> Floats:
    """Return polynomial coefficients, lowest first, for each row of `f`: values at (1 - cos(pi j / DEGREE)) / 2."""
    j = np.arange(DEGREE + 1)
    halves = np.where((j == 0) | (j == DEGREE), 0.5, 1.0)
    cosines = functions.cos(np.pi * (np.outer(j, DEGREE - j) % (2 * DEGREE)) / DEGREE)
    chebyshev = row_product(f * halves, cosines.T) * halves * (2 / DEGREE)
    # Integer coefficients of T_m(2 s - 1). They cost no precision, since the Chebyshev coefficients decay fast.
    to_powers = np.zeros((DEGREE + 1, DEGREE + 1))
    to_powers[0, 0], to_powers[1, :2] = 1, (-1, 2)
    for m in range(2, DEGREE + 1):
        to_powers[m] = -2 * to_powers[m - 1] - to_powers[m - 2]
        to_powers[m, 1:] += 4 * to_powers[m - 1, :-1]
    coefficients: Floats = row_product(chebyshev, to_powers)
    coefficients[:, 0] = f[:, 0]
    return coefficients


def evaluate(look_up: Table, V: Floats) -> Floats:
    """Return the values of the table `look_up` at the versines `V`; a C-contiguous `V` is overwritten."""
    flat = V.reshape(-1)
    run_in_ranges(lambda start, stop: _evaluate(*look_up, flat[start:stop]), len(flat), _GRAIN)
    return flat.reshape(V.shape)


@njit()
def _evaluate(coefficients, per_unit, least, most, values):  # type: ignore[no-untyped-def]
    last = len(coefficients) - 1
    for i in range(len(values)):
        x = values[i] * per_unit
        cell = max(min(int(x), last), 0)
        s = x - cell
        c = coefficients[cell]
        y = c[7]
        y = fma(y, s, c[6])
        y = fma(y, s, c[5])
        y = fma(y, s, c[4])
        y = fma(y, s, c[3])
        y = fma(y, s, c[2])
        y = fma(y, s, c[1])
        y = fma(y, s, c[0])
        y = least if y < least else y
        values[i] = most if y > most else y


@njit()
def _sum_series(u, n, first, weights, out):  # type: ignore[no-untyped-def]
    """Fill `out` with the sums of the series at the versines `u`, LANES points at a time.

    A versine u above 1 is replaced by 2 - u, where the terms of odd degree change sign.
    """
    near, p, step = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    high, low = np.empty(LANES), np.empty(LANES)  # p in two parts: near u = 0 its increments are below its last bit
    sums, rests = np.empty((2, LANES)), np.empty((2, LANES))  # for even and odd degrees
    for start in range(0, len(u), LANES):
        m = min(LANES, len(u) - start)
        sums[:], rests[:] = 0.0, 0.0
        for j in range(LANES):
            v = u[start + min(j, m - 1)]
            near[j] = min(v, 2.0 - v)
            p[j], high[j], low[j], step[j] = 1.0, 1.0, 0.0, -near[j]
        for l in range(first + len(weights)):
            if l >= first:
                _add(weights[l - first], p, sums[l % 2], rests[l % 2])
            a = (l + 1) / (l + n - 1)
            for j in range(LANES):
                total = high[j] + step[j]
                back = total - high[j]
                low[j] += (high[j] - (total - back)) + (step[j] - back)
                high[j] = total
                p[j] = total + low[j]
                q = near[j] * p[j]
                step[j] = a * (step[j] - q) - q
        for j in range(m):
            sign = 1.0 if u[start + j] <= 1.0 else -1.0
            out[start + j] = (sums[0, j] + sign * sums[1, j]) + (rests[0, j] + sign * rests[1, j])


@njit()
def _add(w, p, sums, rests):  # type: ignore[no-untyped-def]
    """Add ``w * p`` to `sums`, and the rounding errors of these additions to `rests`, by Knuth's two-sum."""
    for j in range(LANES):
        term = w * p[j]
        total = sums[j] + term
        back = total - sums[j]
        rests[j] += (sums[j] - (total - back)) + (term - back)
        sums[j] = total
