r"""The function f of s = <x, w> behind random features of the heat kernel: its series, its table, and the look-up loop.

.. math:: f(s) = \sum_l i^l \sqrt{c_l}\, p_l(s), \qquad p_l = \sqrt{d_l}\, P_l, \qquad
          b_{l+1} p_{l+1} = s p_l - b_l p_{l-1}, \quad b_{l+1}^2 = \frac{(l+1)(l+n-2)}{(2l+n-2)(2l+n)},

where c_l, d_l and P_l are as in `similia.embeddings.heat_features`, and the p_l are orthonormal under rho, the density
of s for w uniform on the unit sphere in R^n, proportional to (1 - s^2)^((n-3)/2). For n = 2, b_1^2 = 1/2. Nothing
overflows, since |p_l| is about rho^(-1/2) at most.

*Range.* P(|s| > r) <= p = (1 - r^2)^((n-1)/2): both sides are equal at r = 0 and r = 1, and the right side minus the
left first rises, then falls. We choose r with p = 2^-60 and replace f(s) by f(+-r) where |s| > r. This changes the mean
of Re f(s) conj f(s') by at most 3 (tau + M^2 p) (Cauchy-Schwarz), with tau = E |f(s)|^2 1{|s| > r} and M the maximum of
|f| for |s| <= r; tau < 1e-17 and M < 6 for t >= 1e-3. Without this cut, f is a polynomial that reaches 1e100 at values
of s that random directions never give. Only vectors nearly parallel to a direction would have such features, but the
fourth moment of f comes from them.

*Table.* Re f is even and Im f is odd in s. The table divides the range of a coordinate into cells of equal width, with
polynomials of degree 7. The coordinate is |s| for a narrow range and (1 - |s|)^(1/2), a smooth function of the angle,
for a wide one. The root mean square error of f under rho is below 1e-12; it changes a mean by at most twice as much. A
look-up takes 2.8 ns per entry (float32; 3.2 in float64) and gives two features. Rejected: Horner's rule in one loop,
7 ns; gathers, 7.5 (4.6 in float64); Clenshaw's sum of 16 terms, 23.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from similia.core import functions
from similia.core.jit import njit
from similia.core.products import row_product
from similia.core.scalars import fma
from similia.core.threads import run_in_ranges
from similia.kernels.heat import weights

Floats = npt.NDArray[np.floating]

DEGREE = 7  # eight float64 coefficients fill one cache line
_LANES = 64  # number of points whose series are summed together
_TAIL = 2.0**-60  # bound on the probability that |s| lies beyond the table
_NARROW = 0.5  # up to this range r, cells have equal width in |s|
_PHASE = 0.4  # width of a cell, in radians of the fastest wave of f
_MOST_STEPS = 2.0**36  # maximum number of recurrence steps for one table, about ten seconds


class Table(NamedTuple):
    """A table of the function f(s) of the module docstring: one polynomial for each cell of s.

    s lies in cell ``floor((x - start) * per_unit)``. The coordinate x of s is sqrt(1 - |s|) if `root`, otherwise |s|.
    """

    coefficients: Floats  # (cells, 2, DEGREE + 1): real and imaginary parts for s >= 0, lowest degree first
    start: float
    per_unit: float
    root: bool  # whether x is sqrt(1 - |s|)


@lru_cache(maxsize=8)
def table(n: int, t: float) -> Table:
    """Return the table of f for the heat kernel on vectors of `n` features at diffusion time `t`."""
    first, c = weights(n, t)
    last = first + len(c) - 1
    # Round to float32, so that the last bits of the C library's functions do not move the cells.
    reach = float(np.float32(math.sqrt(-math.expm1(2 * math.log(_TAIL) / (n - 1)))))
    root = reach > _NARROW
    nearest = float(np.float32(math.sqrt(_TAIL ** (2 / (n - 1)) / (1 + reach))))
    start, stop = (nearest, 1.0) if root else (0.0, reach)
    fastest = math.sqrt(last * (last + n - 2)) * (2 if root else 1 / math.sqrt(1 - _NARROW**2))
    n_cells = math.ceil(fastest * (stop - start) / _PHASE) + 8
    if float(DEGREE + 1) * n_cells * last > _MOST_STEPS:
        raise ValueError(
            f"t = {t:.3g} is too small for random features of {n} numbers: they need {last} degrees and {n_cells} "
            "cells, and the kernel is 0 between vectors that are not nearly equal; take a larger t"
        )
    return _interpolate(n, first, np.sqrt(c), start, stop, root, n_cells)


def place(x: Floats, root: bool) -> Floats:
    """Return the s >= 0 whose coordinate in a `Table` is `x`: 1 - x^2 if `root`, otherwise x."""
    return 1 - x * x if root else x


def series(s: Floats, n: int, first: int, roots: Floats) -> npt.NDArray[np.float64]:
    """Return the real and imaginary parts of f at points `s`, (2, len(s)); `roots` holds sqrt(c_l) for l >= `first`.

    f and c_l are defined in the module docstring.
    """
    out = np.empty((2, len(s)))
    b = steps(n, first + len(roots))

    def work(start: int, stop: int) -> None:
        _sum_series(s[start:stop], b, first, roots, out[:, start:stop])

    run_in_ranges(work, len(s), _LANES)
    return out


def steps(n: int, size: int) -> npt.NDArray[np.float64]:
    """Return b_1 to b_size, the coefficients of the recurrence in the module docstring, for dimension `n`."""
    l = np.arange(1, size, dtype=np.float64)
    return np.append(n**-0.5, np.sqrt((l + 1) * (l + (n - 2)) / ((2 * l + (n - 2)) * (2 * l + n))))


def _interpolate(n: int, first: int, roots: Floats, start: float, stop: float, root: bool, n_cells: int) -> Table:
    order = DEGREE + 1
    within = (1 - functions.cos((np.arange(order) + 0.5) * np.pi / order)) / 2  # zeros of a Chebyshev polynomial
    x = start + (np.arange(n_cells)[:, None] + within) * ((stop - start) / n_cells)
    f = series(np.ascontiguousarray(place(x.ravel(), root)), n, first, roots).reshape(2, n_cells, order)
    chebyshev, powers = _transforms()
    # Two products: powers of r have large coefficients, which cancel only if they are exact integers.
    products = row_product(row_product(f.reshape(-1, order), chebyshev), powers).reshape(f.shape)
    coefficients = np.ascontiguousarray(products.transpose(1, 0, 2))
    return Table(coefficients, start, n_cells / (stop - start), root)


def _transforms() -> tuple[Floats, Floats]:
    """Return (A, B): for values v at Chebyshev nodes, v A are the coefficients of T_m(2 r - 1), v A B those of r^m."""
    order = DEGREE + 1
    angles = (np.arange(order)[::-1] + 0.5) * np.pi / order
    chebyshev = functions.cos(np.outer(angles, np.arange(order))) * (2 / order)
    chebyshev[:, 0] /= 2
    powers = np.zeros((order, order))
    powers[0, 0], powers[1, :2] = 1, (-1, 2)
    for m in range(2, order):
        powers[m] = -2 * powers[m - 1] - powers[m - 2]
        powers[m, 1:] += 4 * powers[m - 1, :-1]
    return chebyshev, powers


@njit()
def _sum_series(s, b, first, roots, out):  # type: ignore[no-untyped-def]
    """Fill `out` (2, len(s)) with the real and imaginary parts of f at the points `s`; see `series`."""
    x, p, before = np.empty(_LANES), np.empty(_LANES), np.empty(_LANES)
    sums = np.empty((2, _LANES))
    for start in range(0, len(s), _LANES):
        m = min(_LANES, len(s) - start)
        for j in range(_LANES):
            x[j] = s[start + min(j, m - 1)]
            p[j], before[j] = 1.0, 0.0
        sums[:] = 0.0
        for l in range(first + len(roots)):
            if l >= first:
                term = roots[l - first] if l % 4 < 2 else -roots[l - first]
                total = sums[l % 2]
                for j in range(_LANES):
                    total[j] += term * p[j]
            down = b[l - 1] if l > 0 else 0.0
            up = 1 / b[l]
            for j in range(_LANES):
                following = (x[j] * p[j] - down * before[j]) * up
                before[j] = p[j]
                p[j] = following
        for j in range(m):
            out[0, start + j] = sums[0, j]
            out[1, start + j] = sums[1, j]


@njit()
def look_up(s, coefficients, start, per_unit, root, out):  # type: ignore[no-untyped-def]
    """Fill `out` (n_rows, 2 k) with f of the products `s` (n_rows, k): first k real parts, then k imaginary parts.

    The other arguments are the fields of a `Table`. All numbers are float32, or all are float64.
    """
    k = s.shape[1]
    last = len(coefficients) - 1
    most = s.dtype.type(last + 1)
    zero, one = s.dtype.type(0), s.dtype.type(1)
    cells, places = np.empty(k, np.int32), np.empty(k, s.dtype)
    for i in range(len(s)):
        for j in range(k):  # a separate loop, so that it is vectorised
            x = abs(s[i, j])
            if root:
                x = np.sqrt(max(one - x, zero))
            x = min(max((x - start) * per_unit, zero), most)
            cells[j] = min(np.int32(x), np.int32(last))
            places[j] = x - s.dtype.type(cells[j])
        for j in range(k):
            e, o = coefficients[cells[j], 0], coefficients[cells[j], 1]
            r = places[j]
            r2 = r * r
            r4 = r2 * r2
            even = fma(r2, fma(e[3], r, e[2]), fma(e[1], r, e[0]))
            even = fma(r4, fma(r2, fma(e[7], r, e[6]), fma(e[5], r, e[4])), even)
            odd = fma(r2, fma(o[3], r, o[2]), fma(o[1], r, o[0]))
            odd = fma(r4, fma(r2, fma(o[7], r, o[6]), fma(o[5], r, o[4])), odd)
            out[i, j] = even
            out[i, k + j] = odd if s[i, j] >= zero else -odd
