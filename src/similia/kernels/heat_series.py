r"""Weights, series and tables of the heat kernel on the unit sphere in R^n, as a function of the versine u = 1 - cos.

.. math:: K(u) = \sum_l w_l P_l(1 - u), \qquad w_l \propto d_l e^{-l (l + n - 2) t}, \quad \sum_l w_l = 1,

where :math:`P_l` is the Gegenbauer polynomial of order n/2 - 1 that is 1 at u = 0, and :math:`d_l` is the number of
harmonics of degree l.

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
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from similia.core import functions
from similia.core.jit import njit
from similia.core.products import row_product
from similia.core.scalars import exp, fma, log
from similia.core.threads import run_in_ranges

Floats = npt.NDArray[np.float64]

DEGREE = 7  # eight coefficients fill a cache line
LANES = 64  # number of points at which a series is summed together
MOST_DEGREES = 2**22  # its table takes seconds; at so small a t, rounding errors make equal vectors differ
_INTERPOLATION = 1e-13
_CUT = 1e-14  # smaller kernel values are set to 0
_TAIL = 2.0**-60  # bound on the sum of the omitted weights on each side
_GRAIN = 2**16  # minimum number of entries per thread


def time_of(contrast: float, n: int) -> float:
    """Return the time t at which n exp(-(n - 1) t), the contrast of the heat kernel in R^n, equals `contrast`."""
    return float(log(n / contrast)) / (n - 1)


def contrast_of(t: float, n: int) -> float:
    """Return the contrast n exp(-(n - 1) t): the weight of degree 1 in the heat kernel divided by that of degree 0."""
    return n * float(exp(-(n - 1) * t))


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
