r"""The function of <x, w> behind random features of the heat kernel: its series, its table, and the loop over entries.

.. math:: f(s) = \sum_l i^l \sqrt{c_l}\, p_l(s), \qquad p_l = \sqrt{d_l}\, P_l, \qquad
          b_{l+1} p_{l+1} = s p_l - b_l p_{l-1}, \quad b_{l+1}^2 = \frac{(l+1)(l+n-2)}{(2l+n-2)(2l+n)},

where the p_l are orthonormal for rho, the density of s = <x, w> with w uniform on the sphere, proportional to
(1 - s^2)^((n-3)/2). For n = 2, b_1^2 = 1/2. Nothing overflows, since |p_l| is about rho^(-1/2) at most.

*Range.* P(|s| > r) <= p = (1 - r^2)^((n-1)/2): both sides are equal at r = 0 and r = 1, and their difference first
rises, then falls. We choose r with p = 2^-60 and replace f by f(+-r) beyond it. This moves the mean of
Re f(s) conj f(s') by 3 (tau + M^2 p) at most (Cauchy-Schwarz), with tau = E |f(s)|^2 1{|s| > r} and M = max |f| up to
r: tau < 1e-17, M < 6 for t >= 1e-3. Without the cut, f is a polynomial that reaches 1e100 at values of s never drawn
by chance. A vector along a direction would have such features, and the fourth moment comes from there.

*Table.* Re f is even and Im f odd in s. The table holds polynomials of degree 7 in cells of equal width, in |s| for
narrow ranges and in (1 - |s|)^(1/2), which is smooth in the angle, for wide ones. Their root mean square error under
rho is below 1e-12, and moves a mean by twice that at most. A look-up takes 2.8 ns per entry (float32; 3.2 in float64)
and gives two features. Rejected: Horner's rule in one loop, 7 ns; gathers, 7.5 (4.6); Clenshaw's sum of 16 terms, 23.
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
from similia.kernels.heat_series import weights

Floats = npt.NDArray[np.floating]

DEGREE = 7  # eight coefficients of float64 are one line of cache
_LANES = 64  # points whose series are summed together
_TAIL = 2.0**-60  # bound on the probability of |s| beyond the table
_NARROW = 0.5  # up to this range, cells have equal width in |s|
_PHASE = 0.4  # radians of the fastest wave per cell
_MOST_STEPS = 2.0**36  # maximum number of recurrence steps for one table, about ten seconds


class Table(NamedTuple):
    """Polynomials for f; the position of s is ``(x - start) * per_unit`` cells, x = |s| or sqrt(1 - |s|)."""

    coefficients: Floats  # (cells, 2, DEGREE + 1): real and imaginary parts for s >= 0, lowest degree first
    start: float
    per_unit: float
    root: bool  # x = sqrt(1 - |s|)


@lru_cache(maxsize=8)
def table(n: int, t: float) -> Table:
    """Return the table of f for vectors of `n` features and time `t`."""
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
    """Return s >= 0 of the table's coordinate x."""
    return 1 - x * x if root else x


def series(s: Floats, n: int, first: int, roots: Floats) -> npt.NDArray[np.float64]:
    """Return the real and imaginary parts of f at points `s`, (2, len(s)); `roots` are sqrt(c_l), l >= `first`."""
    out = np.empty((2, len(s)))
    b = steps(n, first + len(roots))

    def work(start: int, stop: int) -> None:
        _sum_series(s[start:stop], b, first, roots, out[:, start:stop])

    run_in_ranges(work, len(s), _LANES)
    return out


def steps(n: int, size: int) -> npt.NDArray[np.float64]:
    """Return b_1 ... b_size."""
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
    """Return the matrices from values at the nodes to coefficients of T_m(2 r - 1), and from these to powers of r."""
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
    """Write the real and imaginary parts of f at `s` to `out` (2, len(s)), LANES points at a time."""
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
    """Write f of products `s` (rows, k): real parts to the first k columns of `out`, imaginary parts to the others.

    `s`, `coefficients`, `start`, `per_unit` and `out` are all float32 or all float64.
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
