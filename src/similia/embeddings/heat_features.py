r"""Random features of the heat kernel on the hypersphere.

Let w be uniform on the unit sphere in R^n, and let K(x, y) = sum_l c_l P_l(<x, y>) be the kernel
`similia.kernels.HypersphericalHeat`. Here the c_l > 0 add up to 1, and the P_l are the Gegenbauer polynomials with
P_l(1) = 1. With d_l the number of spherical harmonics of degree l,

.. math:: f(s) = \sum_l i^l \sqrt{c_l d_l}\, P_l(s), \qquad
          K(x, y) = \mathrm{E}\, \mathrm{Re}\big[f(x^T w) \overline{f(y^T w)}\big],

since E P_l(<x, w>) P_k(<y, w>) = [l = k] P_l(<x, y>) / d_l (Funk & Hecke). The features are unbiased whatever the phase
of each degree. With the phases i^l, f tends to exp(i sqrt(a n) s) as n grows, where a is the `contrast`. This limit has
modulus 1 and gives random Fourier features of the Gaussian kernel on the sphere. Without phases, f tends to exp(sqrt(a
n) s - a), and E f^4 to exp(4 a).

Cost: n_rows n m / 2 multiplications for m features, plus 3 ns for each direction and row.

*Series.* f is summed by a recurrence for polynomials that are orthonormal under rho, the density of s for w uniform on
the unit sphere in R^n, proportional to (1 - s^2)^((n-3)/2):

.. math:: f(s) = \sum_l i^l \sqrt{c_l}\, p_l(s), \qquad p_l = \sqrt{d_l}\, P_l, \qquad
          b_{l+1} p_{l+1} = s p_l - b_l p_{l-1}, \quad b_{l+1}^2 = \frac{(l+1)(l+n-2)}{(2l+n-2)(2l+n)}.

For n = 2, b_1^2 = 1/2. Nothing overflows, since |p_l| is about rho^(-1/2) at most.

*Range.* P(|s| > r) <= p = (1 - r^2)^((n-1)/2): both sides are equal at r = 0 and r = 1, and the right side minus the
left first rises, then falls. We choose r with p = 2^-60 and replace f(s) by f(+-r) where |s| > r. This changes the mean
of Re f(s) conj f(s') by at most 3 (tau + M^2 p) (Cauchy-Schwarz), with tau = E |f(s)|^2 1{|s| > r} and M the maximum of
|f| for |s| <= r; tau < 1e-17 and M < 6 for t >= 1e-3. Without this cut, f is a polynomial that reaches 1e100 at values
of s that random directions never give. Only vectors nearly parallel to a direction would have such features, but the
fourth moment of f comes from them.

*Table.* Re f is even and Im f is odd in s. The table divides the range of a coordinate into cells of equal width, with
polynomials of degree 7. The coordinate is |s| for a narrow range and (1 - |s|)^(1/2), a smooth function of the angle,
for a wide one. The root mean square error of f under rho is below 1e-12; it changes a mean by at most twice as much. A
look-up takes 2.8 ns per entry (float32; 3.2 in float64) and gives two features.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import scipy.linalg
from sklearn.utils import Tags

from similia.core import functions
from similia.core.config import one_blas_thread, rows_per_block, run_in_ranges
from similia.core.estimators import Transformer, all_at_once, check_fitted, check_table, example_of
from similia.core.functions import fma
from similia.core.jit import njit
from similia.core.products import row_product, use_products
from similia.core.state import array, count, optional, state
from similia.core.validation import RandomState, check_positive_int, generator, part_from, wrong_width
from similia.kernels.heat import HypersphericalHeat, weights
from similia.kernels.hypersphere import Mapping, ZeroRows, as_rows, mapped_by
from similia.sources.dask import from_parts, lazily

Floats = npt.NDArray[np.floating]

DEGREE = 7  # eight float64 coefficients fill one cache line
_LANES = 64  # number of points whose series are summed together
_TAIL = 2.0**-60  # bound on the probability that |s| lies beyond the table
_NARROW = 0.5  # up to this range r, cells have equal width in |s|
_PHASE = 0.4  # width of a cell, in radians of the fastest wave of f
_MOST_STEPS = 2.0**36  # maximum number of recurrence steps for one table, about ten seconds


@state(
    fits=lambda state, sizes: (sizes["m"] + 1) // 2 == sizes["h"],
    n_features_in_=count("d", least=2), _n_features_out=count("m", least=1), t_="positive", mapping_=optional("text"),
    directions_=array("f4 f8", "d", "h"),
)  # fmt: skip
class HeatRandomFeatures(Transformer):
    r"""Random features whose inner products are unbiased estimates of the heat kernel on the hypersphere.

    Parameters
    ----------
    n_components : int, default=1024
        Number m of features. Each of m / 2 directions w (random unit vectors) gives two features of a row x: the real
        and the imaginary part of f(s), where s is the inner product of x and w. The complex function f is defined in
        the docstring of the module ``similia.embeddings.heat_features``. If m is odd, the last direction gives one
        feature: the real part if the first coordinate of the direction is >= 0, else the imaginary part. The estimate
        is unbiased in this case, too.
    contrast : float, default=4.0
        The number :math:`a = n e^{-(n - 1) t}` for rows of n columns, which sets the diffusion time t of the kernel;
        must be below n. See `similia.kernels.HypersphericalHeat`.
    t : float, optional
        Diffusion time; overrides `contrast`.
    mapping : {"auto", "sqrt", "projection", None}, default="auto"
        How rows become unit vectors; see `similia.kernels.to_hypersphere`. "auto" means "sqrt" if no entry in `fit` is
        negative, otherwise "projection".
    zero_rows : {"raise", "uniform"}, default="raise"
        How to treat rows of zeros: raise an error, or set all their columns to 1 / sqrt(n).
    orthogonal : bool or "auto", default="auto"
        Whether to draw the directions in groups of n mutually orthogonal ones, which lowers the variance; False draws
        independent directions. "auto" means True, unless X has more than 16 times as many columns as there are
        directions: the gain is then negligible. Drawing orthogonal directions allocates three float64 arrays of shape
        (n, m / 2), even if these exceed ``similia.config(max_memory=...)``.
    random_state : int, numpy Generator or None, default=None
        Seed or generator from which `fit` draws the directions.

    Attributes
    ----------
    directions_ : ndarray of float32 or float64, shape (n, ceil(m / 2))
        Each column is a unit vector, the direction w. The dtype is that of the rows seen in `fit`. With the same seed,
        a larger `n_components` keeps these columns (orthogonal directions only up to rounding) and adds more columns.
        There is one exception: with ``orthogonal="auto"``, a larger `n_components` may replace independent directions
        by orthogonal directions.
    t_ : float
        Diffusion time.
    mapping_ : {"sqrt", "projection"} or None
        The mapping used, never "auto".
    n_features_in_ : int
        Number n of columns seen in `fit`. Columns of zeros count, too: the kernel depends on n.

    Raises
    ------
    ValueError
        If an entry is negative and `mapping_` is "sqrt"; if a row is zero and `zero_rows` is "raise"; if a row is not a
        unit vector and `mapping` is None; or if t is so small that the table of f would take too long to compute.

    Notes
    -----
    Output is float32 if the rows seen in `fit` are float32, otherwise float64. The real parts come first, then the
    imaginary parts. `fit` uses only the number of columns and the dtype of `X` and, for mapping="auto", the signs of
    its entries. The features of a row are the same, bit for bit, in any block or subset and for any number of threads.

    *Bias.* Three approximations of f change the kernel. The function f is an infinite series; leaving out its terms of
    high degree changes the kernel by at most 2^-58. Treating f as constant for extreme values of s (total probability
    2^-60) changes it by less than 1e-15. Reading f from a table changes it by 2e-12 (checked by quadrature for n = 2 to
    1000 and t down to 1e-5). In float32, the rounding of s also causes a relative error of f: 1e-6 for n = 1000 and a
    contrast of 4, and 2e-4 for n = 10 and t = 1e-4.

    *Variance.* With ten columns or more and the default contrast, the variance of an estimate of the kernel of x and y
    is at most about 1 / m, and smaller if x is near y. With few columns and a small t it can be much larger: 26 / m for
    x = y, n = 3 and t = 0.001. Orthogonal directions lower the variance, above all if x is near y and there are at
    least n directions. Drawing them takes about n m min(n, m / 2) multiplications. The page "The exact heat kernel on a
    sphere" of the documentation has tables.

    References
    ----------
    Han, Zandieh & Avron, "Random Gegenbauer features for scalable kernel methods", ICML 2022 (where f is real: its
    terms lack the powers of i); Zhao & Song, "Exact heat kernel on a hypersphere and its applications in kernel SVM",
    2018.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.embeddings.heat_features import HeatRandomFeatures
    >>> from similia.kernels.heat import HypersphericalHeat
    >>> counts = np.array([[9, 0, 1, 0, 0, 0], [4, 0, 1, 0, 0, 0], [0, 2, 0, 0, 5, 3]])
    >>> Z = HeatRandomFeatures(20_000, contrast=2.0, random_state=0).fit_transform(counts)
    >>> Z.shape
    (3, 20000)
    >>> bool(abs(Z @ Z.T - HypersphericalHeat(contrast=2.0)(counts)).max() < 0.02)
    True
    """

    _takes = ("sparse",)

    def __init__(
        self,
        n_components: int = 1024,
        contrast: float = 4.0,
        t: float | None = None,
        mapping: Mapping = "auto",
        zero_rows: ZeroRows = "raise",
        orthogonal: bool | Literal["auto"] = "auto",
        random_state: RandomState = None,
    ) -> None:
        self.n_components = n_components
        self.contrast = contrast
        self.t = t
        self.mapping = mapping
        self.zero_rows = zero_rows
        self.orthogonal = orthogonal
        self.random_state = random_state

    @all_at_once
    @from_parts
    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw random directions, and set `t_` and `mapping_`; `X` is dense or sparse, of shape (n_rows, n), n >= 2."""
        m = check_positive_int(self.n_components, "n_components")
        rows = as_rows(example_of(X))
        n = rows.shape[1]
        kernel = HypersphericalHeat(self.contrast, self.t, self.mapping)
        self.t_ = kernel._time(n)
        self.mapping_ = kernel.decided(X).mapping
        table(n, self.t_)  # raises if t is too small
        if self.orthogonal not in (True, False, "auto"):
            raise ValueError(f'orthogonal must be True, False or "auto", got {self.orthogonal!r}')
        k = (m + 1) // 2
        orthogonal = n <= 16 * k if self.orthogonal == "auto" else bool(self.orthogonal)
        with one_blas_thread():  # rounding depends on the number of threads
            self.directions_ = random_directions(n, k, orthogonal, generator(self.random_state), rows.dtype)
        self._n_features_out = m
        self._learn_columns(X)
        return self

    @lazily
    def transform(self, X: Any) -> Floats:
        """Return the features of the rows of `X`, shape (n_rows, n_components), with the dtype seen in `fit`."""
        check_fitted(self, "directions_")
        check_table(self, X, reset=False)
        X = as_rows(X)
        if X.shape[1] != self.n_features_in_:
            raise wrong_width(X.shape[1], self.n_features_in_, self)
        dtype = self.directions_.dtype  # of the training rows, so that a row's features do not depend on other rows
        out = np.empty((X.shape[0], self._n_features_out), dtype)
        step = rows_per_block(4 * X.shape[1] * X.dtype.itemsize)
        for first in range(0, len(out), step):
            with part_from(first):
                part = mapped_by(self, X[first : first + step], self.mapping_)
            self._write_features(part.astype(dtype, copy=False), out[first : first + step])
        return out

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self.mapping == "sqrt"
        return tags

    def _write_features(self, X: Any, out: Floats) -> None:
        """Fill `out` with the features of the rows of `X`, which are unit vectors."""
        k, dtype = self.directions_.shape[1], X.dtype.type
        found = table(self.n_features_in_, self.t_)
        coefficients = np.asarray(found.coefficients / np.sqrt(self._n_features_out / 2), dtype=dtype)
        start, per_unit = dtype(found.start), dtype(found.per_unit)
        W = np.ascontiguousarray(self.directions_, dtype=dtype)

        def write(first: int, products: Floats) -> None:
            rows = out[first : first + len(products)]
            parts = rows if rows.shape[1] == 2 * k else np.empty((len(products), 2 * k), dtype)
            look_up(products, coefficients, start, per_unit, found.root, parts)
            if parts is not rows:
                rows[:] = np.delete(parts, 2 * k - 1 if W[0, -1] >= 0 else k - 1, axis=1)

        use_products(X, W, write)


def random_directions(n: int, k: int, orthogonal: bool, rng: np.random.Generator, dtype: Any) -> Floats:
    """Return k random unit vectors as columns (n, k); if `orthogonal`, orthogonal within each block of n columns."""
    W = rng.standard_normal((k, n)).T
    out = np.empty((n, k), dtype=dtype)
    for first in range(0, k, n):
        block = W[:, first : first + n]
        out[:, first : first + n] = _orthogonal(block) if orthogonal else block / np.linalg.norm(block, axis=0)
    return out


def _orthogonal(W: Floats) -> Floats:
    """Return Q of the decomposition W = Q R with a positive diagonal of R; if W is Gaussian, Q is uniform."""
    n, k = W.shape
    if 2 * k <= n:  # W is well conditioned, and this takes a fifth of the time
        lower = np.linalg.cholesky(W.T @ W)
        return scipy.linalg.solve_triangular(lower, W.T, lower=True, check_finite=False).T
    Q, R = np.linalg.qr(W)
    return Q * np.sign(np.diagonal(R))


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
