r"""Random features of the heat kernel on the hypersphere.

Let w be uniform on the unit sphere in R^n, and let K(x, y) = sum_l c_l P_l(<x, y>) be the kernel
`similia.kernels.heat.HypersphericalHeat`. Here the c_l > 0 add up to 1, and the P_l are the Gegenbauer polynomials with
P_l(1) = 1. With d_l the number of spherical harmonics of degree l,

.. math:: f(s) = \sum_l i^l \sqrt{c_l d_l}\, P_l(s), \qquad
          K(x, y) = \mathrm{E}\, \mathrm{Re}\big[f(x^T w) \overline{f(y^T w)}\big],

since E P_l(<x, w>) P_k(<y, w>) = [l = k] P_l(<x, y>) / d_l (Funk & Hecke). The features are unbiased whatever the phase
of each degree. With the phases i^l, f tends to exp(i sqrt(a n) s) as n grows, where a is the `contrast`. This limit has
modulus 1 and gives random Fourier features of the Gaussian kernel on the sphere. Without phases, f tends to exp(sqrt(a
n) s - a), and E f^4 to exp(4 a).

Cost: n_rows n m / 2 multiplications for m features, plus 3 ns for each direction and row. One direction per feature
would take twice as many multiplications.
"""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import scipy.linalg
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from similia.core.config import rows_per_block
from similia.core.errors import part_from
from similia.core.estimators import Transformer, all_at_once, check_table, example_of
from similia.core.products import use_products
from similia.core.state import array, count, optional, state
from similia.core.threads import one_blas_thread
from similia.core.validation import RandomState, check_positive_int, generator, wrong_width
from similia.embeddings._heat_features import look_up, table
from similia.kernels.heat import HypersphericalHeat
from similia.kernels.hypersphere import Mapping, ZeroRows, as_rows, to_hypersphere
from similia.sources.dask import from_parts, lazily

Floats = npt.NDArray[np.floating]


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
        must be below n. See `similia.kernels.heat.HypersphericalHeat`.
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
        Unit columns, of the dtype of the rows seen in `fit`. A larger `n_components` only adds columns (up to rounding,
        if they are orthogonal), unless "auto" then chooses orthogonal directions instead of independent ones.
    t_ : float
        Diffusion time.
    mapping_ : {"sqrt", "projection"} or None
        The mapping used, never "auto".
    n_features_in_ : int
        Number n of columns seen in `fit`. The kernel depends on n, even if some columns are all zero.

    Raises
    ------
    ValueError
        If an entry is negative and `mapping_` is "sqrt"; if a row is zero and `zero_rows` is "raise"; if a row is not a
        unit vector and `mapping` is None; or if t is so small that the table of f would take too long to compute.

    Notes
    -----
    Output is float32 if the rows seen in `fit` are, else float64. The real parts come first, then the imaginary parts.
    `fit` uses only the number of columns and the dtype of `X` and, for mapping="auto", the signs of its entries. The
    features of a row are the same, bit for bit, in any block or subset and for any number of threads.

    *Bias.* Three approximations of f change the kernel. Leaving out the high degrees of the series of f changes the
    kernel by at most 2^-58. Treating f as constant for extreme values of s (total probability 2^-60) changes it by less
    than 1e-15. Reading f from a table changes it by 2e-12 (checked by quadrature for n = 2 to 1000 and t down to 1e-5).
    In float32, the rounding of s also causes a relative error of f: 1e-6 for n = 1000 and a contrast of 4, and 2e-4 for
    n = 10 and t = 1e-4.

    *Variance.* With ten columns or more and the default contrast, the variance of an estimate of the kernel of x and y
    is at most about 1 / m, and smaller if x is near y. With few columns and a small t it can be much larger: 26 / m for
    x = y, n = 3 and t = 0.001. Orthogonal directions lower the variance, above all if x is near y and there are at
    least n directions. Drawing them takes about n m^2 / 2 multiplications. The page "The exact heat kernel on a sphere"
    of the documentation has tables.

    References
    ----------
    Han, Zandieh & Avron, "Random Gegenbauer features for scalable kernel methods", ICML 2022 (where f has no factors
    i^l); Zhao & Song, "Exact heat kernel on a hypersphere and its applications in kernel SVM", 2018.

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
        """Draw the directions for the n >= 2 columns of `X`, a dense or sparse array of shape (n_rows, n)."""
        m = check_positive_int(self.n_components, "n_components")
        rows = as_rows(example_of(X))
        n = rows.shape[1]
        kernel = HypersphericalHeat(self.contrast, self.t, self.mapping)
        self.t_ = kernel._time(n)
        self.mapping_ = kernel.decided(X).mapping
        table(n, self.t_)  # raises if t is too small
        if self.orthogonal not in (True, False, "auto"):
            raise ValueError(f'orthogonal must be True, False or "auto", got {self.orthogonal!r}')
        orthogonal = n <= 8 * m if self.orthogonal == "auto" else bool(self.orthogonal)
        with one_blas_thread():  # rounding depends on the number of threads
            self.directions_ = random_directions(n, (m + 1) // 2, orthogonal, generator(self.random_state), rows.dtype)
        self._n_features_out = m
        self._learn_columns(X)
        return self

    @lazily
    def transform(self, X: Any) -> Floats:
        """Return the features of the rows of `X`, shape (n_rows, m), in the dtype of the rows seen in `fit`."""
        check_is_fitted(self, "directions_")
        check_table(self, X, reset=False)
        X = as_rows(X)
        if X.shape[1] != self.n_features_in_:
            raise wrong_width(X.shape[1], self.n_features_in_, self)
        dtype = self.directions_.dtype  # of the training rows, so that a row's features do not depend on other rows
        out = np.empty((X.shape[0], self._n_features_out), dtype)
        step = rows_per_block(4 * X.shape[1] * X.dtype.itemsize)
        for first in range(0, len(out), step):
            with part_from(first):
                part = to_hypersphere(X[first : first + step], self.mapping_, zero_rows=self.zero_rows)
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
