r"""Random features of vectors: intensities of light scattered by a random medium.

.. math:: \phi(x) = \frac{1}{\sqrt m} |W x + b|^2, \qquad \phi(x)^T \phi(y) \to
          \varsigma^4 \big[(\|x\|^2 + q)(\|y\|^2 + q) + (x^T y + q)^2\big], \quad q = \tau^2 / \varsigma^2,

for a vector x and complex Gaussian W and b, with m independent rows of W, E|W_ij|^2 = :math:`\varsigma^2` (`scale`) and
E|b_j|^2 = :math:`\tau^2` (`bias`). The limit for large m is the kernel `similia.kernels.Optical`. An optical processing
unit computes such features at a cost that does not depend on m. In `OpticalRandomFeatures`, n vectors of d numbers take
2 n m d multiplications, or 6 n m log2 d additions with ``structured=True``.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from similia.core.config import rows_per_block, run_in_ranges
from similia.core.estimators import Transformer, all_at_once, example_of
from similia.core.jit import njit
from similia.core.products import hadamard, padded, use_products
from similia.core.state import Sizes, array, count, optional, state
from similia.core.validation import (
    BadValue,
    RandomState,
    check_positive,
    check_positive_int,
    check_vectors,
    generator,
    not_real,
    too_narrow,
    wrong_width,
)
from similia.objects import n_objects, take
from similia.objects.sequences import as_csr
from similia.sources.dask import Distributed, from_parts, lazily

_MIN_PADDED = 64  # with fewer coordinates, Hadamard products would be biased by more than 2.5e-4
_LANES = 32  # number of rows that are transformed together
_EXPOSURE_ROWS = 1024  # maximum number of training vectors used to find the brightest feature

Floats = npt.NDArray[np.floating]


def _state_fits(state: dict[str, Any], sizes: Sizes) -> bool:
    turns = state["turns_"]
    if (state["step_"] is None) != (state["top_level_"] is None):
        return False
    if turns is None:
        return state["weights_"] is not None and state["bias_"] is not None
    return bool(sizes["m"] <= turns.shape[0] * turns.shape[2])


@state(
    fits=_state_fits, n_features_in_=count("d", least=1), _n_features_out=count("m", least=1), scale="positive",
    bias="number", weights_=optional(array("c8 c16", "d", "m")), bias_=optional(array("c8 c16", "m")),
    turns_=optional(array("i1", None, 3, None)), step_=optional("positive"),
    top_level_=optional(count(least=1)), binary_input="flag",
)  # fmt: skip
class OpticalRandomFeatures(Transformer):
    r"""Optical random features of vectors, :math:`\phi(x) = m^{-1/2} |W x + b|^2`.

    W is a random complex matrix of m rows and b a random complex vector; squares are taken entry by entry. Inner
    products of features are estimates of the kernel `similia.kernels.Optical` with the same `scale`
    :math:`\varsigma` and `bias`, unbiased unless `structured` or `quantize` is set. Without `structured`, `quantize`
    and bias, an estimate has variance :math:`\varsigma^8 \|x\|^4 \|y\|^4 (3 + 14 r + 3 r^2) / m`, where r is the
    squared cosine of the angle between x and y.

    Parameters
    ----------
    n_components : int, default=2000
        Number m of features.
    random_state : int, numpy Generator or None, default=None
        Seed or generator from which `fit` draws W and b.
    scale : float, default=1.0
        Standard deviation :math:`\varsigma` of an entry of W: E|W_ij|^2 = scale^2, half of it from the real and half
        from the imaginary part. Without bias, the features are proportional to scale^2.
    bias : float, default=0.0
        Standard deviation :math:`\tau` of an entry of b: E|b_j|^2 = bias^2. In an optical processing unit (OPU), which
        these features model, b is a reference beam. With a bias of 0, x and -x have equal features.
    structured : bool, default=False
        Whether to take the rows of W from products of Hadamard and random diagonal matrices, so that W need not be
        stored; see Notes.
    binary_input : bool, default=False
        Whether to accept only vectors of 0 and 1, as the mirrors of an OPU do, and raise an error for other vectors.
    quantize : int or None, default=None
        Number of bits of a feature, 1 to 16 (an OPU has a camera of 8 bits). Features are rounded to multiples of
        `step_` and clipped at 2^quantize - 1 times `step_`. None means no rounding.

    Attributes
    ----------
    weights_ : ndarray of complex64 or complex128, shape (n_features, m), or None
        W transposed; None if structured. Column j depends only on the seed and j, so a larger `n_components` only adds
        columns.
    bias_ : ndarray of complex64 or complex128, shape (m,), or None
        The vector b. None if structured: a constant coordinate is then appended to x, and b is this constant times the
        column of W for that coordinate.
    turns_ : ndarray of int8, shape (n_blocks, 3, p), or None
        Exponents of the imaginary unit on the diagonals of D_1, D_2 and D_3 (see Notes); None if not structured.
    step_ : float or None
        Difference between neighbouring levels of quantised features. The highest level is the largest feature among the
        training vectors, or among 1024 of them, drawn at random, if there are more. None without quantisation.
    top_level_ : int or None
        Number of the highest level, 2^quantize - 1. None without quantisation.
    n_features_in_ : int
        Number d of features seen in `fit`.

    Notes
    -----
    Output is float32 for float32 input, else float64. Quantised features are floats too, since this library reads uint8
    arrays as packed bits; for features Z, ``rint(Z / step_)`` gives the level numbers. Features above the highest level
    (see `step_`) are clipped to it. Features are roughly exponentially distributed, so the largest of two million of
    them (1024 rows of 2000) is about 15 times the mean: with 8 bits, the mean is only near level 17 of 255. Still,
    rounding adds less than 0.1 % to the variance of a feature.

    *Structured.* Vectors are padded to p coordinates (a power of two, 64 or more). Each block of p rows of W is c U,
    where c is the constant given below and U = H D_3 H D_2 H D_1 p^(-3/2) is unitary. H is the Hadamard matrix, and
    D_1, D_2, D_3 are diagonal matrices of random powers of the imaginary unit. The expectation of an estimate over
    these random powers is exactly

    .. math:: \mathrm{E}\,\phi(x)^T \phi(y) = K(x, y) - \frac{\varsigma^4}{p^2 - p + 1} \sum_i x_i^2 y_i^2,

    with :math:`c^4 = \varsigma^4 p^2 / (1 - 1/p + 1/p^2)`. With a bias, x and y get one more coordinate,
    :math:`\tau/\varsigma`. On average, an estimate is too small by less than K(x, y) / p^2, which is at most 0.025 % of
    K(x, y). If m is a multiple of p, the variance of an estimate is about 0.3 times the variance with independent rows
    (0.27 to 0.34 in measurements with 15 to 300 coordinates, 0/1 or Gaussian).

    Standardise the columns before a linear model: features are positive, so all vectors share a large common part.

    Sparse input is multiplied as it is; only ``structured=True`` makes its rows dense, block by block. The features are
    dense in any case.

    The features of a vector are the same, bit for bit, in any block or subset and for any number of threads.

    References
    ----------
    Saade et al., "Random projections through multiple optical scattering", ICASSP 2016; Ohana et al., "Kernel
    computations from large-scale random features obtained by optical processing units", ICASSP 2020; Ghanem, Keriven &
    Tremblay, "Fast graph kernel with optical random features", ICASSP 2021, Eq. 3.11 (where W and b are real).

    Examples
    --------
    >>> import numpy as np
    >>> import similia as sm
    >>> from similia.embeddings.random_features import OpticalRandomFeatures
    >>> from similia.kernels.vectors import Optical
    >>> X = np.array([[1.0, 0.0, 1.0, 1.0], [1.0, 1.0, 0.0, 1.0]])
    >>> Z = OpticalRandomFeatures(n_components=100_000, random_state=0).fit_transform(X)
    >>> bool(abs(Z @ Z.T - Optical()(X)).max() < 0.5)
    True
    """

    _takes = ("sparse",)

    weights_: Any
    bias_: Any
    turns_: Any
    step_: Any
    top_level_: Any

    def __init__(
        self,
        n_components: int = 2000,
        random_state: RandomState = None,
        *,
        scale: float = 1.0,
        bias: float = 0.0,
        structured: bool = False,
        binary_input: bool = False,
        quantize: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.random_state = random_state
        self.scale = scale
        self.bias = bias
        self.structured = structured
        self.binary_input = binary_input
        self.quantize = quantize

    @all_at_once
    @from_parts
    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the random matrix W and the random vector b of the features ``|W x + b|^2`` for rows x of `X`.

        With `quantize`, also compute `step_`, the unit to which features are rounded, from rows of `X`, shape (n, d).
        """
        m = check_positive_int(self.n_components, "n_components")
        scale, bias = check_positive(self.scale, "scale"), check_positive(self.bias, "bias", zero=True)
        top_level = self._top_level()
        given = example_of(X)
        X = X.converted(self._check) if isinstance(X, Distributed) else self._check(X)
        like = example_of(X)
        self._learn_columns(given)
        d = self.n_features_in_
        self._n_features_out = m
        rng = generator(self.random_state)
        self.weights_ = self.bias_ = self.turns_ = self.step_ = None
        if self.structured:
            self.turns_ = rng.integers(0, 4, size=self._shape_of_turns(), dtype=np.int8)
        else:
            medium = rng.standard_normal((m, d + 1, 2)).view(np.complex128)[:, :, 0] / np.sqrt(2)
            dtype = np.complex64 if like.dtype == np.float32 else np.complex128
            self.weights_ = np.ascontiguousarray(scale * medium[:, :d].T, dtype=dtype)
            self.bias_ = np.ascontiguousarray(bias * medium[:, d], dtype=dtype)
        self.top_level_ = top_level
        if top_level is not None:
            some = np.sort(rng.permutation(n_objects(X))[:_EXPOSURE_ROWS])
            brightest = float(self._intensities(take(X, some)).max())
            self.step_ = (brightest or 1.0) / top_level
        return self

    @lazily
    def transform(self, X: Any) -> Floats:
        """Return the features of the rows of `X`, shape (n, n_components): float32 if `X` is float32, else float64."""
        self._check_columns(X)
        Z = self._intensities(self._check(X, self.n_features_in_))
        if self.step_ is not None:
            Z /= Z.dtype.type(self.step_)
            np.rint(Z, out=Z)
            np.minimum(Z, Z.dtype.type(self.top_level_), out=Z)
            Z *= Z.dtype.type(self.step_)
        return Z

    def _top_level(self) -> int | None:
        """Return the number of the highest level, 2^quantize - 1, or None without quantisation."""
        if self.quantize is None:
            return None
        bits = check_positive_int(self.quantize, "quantize")
        if bits > 16:
            raise ValueError(f"quantize is a number of bits from 1 to 16, or None, got {bits}")
        return 2**bits - 1

    def _check(self, X: Any, n_features: int | None = None) -> Any:
        """Return `X` as a float array or csr_array; raise if an entry is not finite or (`binary_input`) not 0 or 1."""
        X = _check_sparse(X, n_features, self) if sp.issparse(X) else check_vectors(X, "X", n_features, self)
        self._check_magnitude(X)
        if self.binary_input:
            values = X.data if sp.issparse(X) else X
            bad = (values != 0) & (values != 1)
            if bad.any():
                place = np.argwhere(bad)[0]
                row = int(np.searchsorted(X.indptr, place[0], side="right")) - 1 if sp.issparse(X) else int(place[0])
                found = f"holds {values[tuple(place)]:.6g}, but binary_input=True takes 0 and 1 only"
                remedy = "sklearn.preprocessing.Binarizer(threshold=...) makes them, or set binary_input=False"
                raise BadValue(row, found, remedy=remedy)
        return X

    def _check_magnitude(self, X: Any) -> None:
        """Raise if the square of the norm of a row, hence its features, could overflow or underflow."""
        least, most = (1e-17, 1e17) if X.dtype == np.float32 else (1e-145, 1e145)
        most /= np.sqrt(X.shape[1])
        reach = abs(X).max(axis=1)
        reach = (reach.toarray().ravel() if sp.issparse(reach) else reach).astype(np.float64) * float(self.scale)
        bad = (reach > most) | ((reach > 0) & (reach < least) & (self.bias == 0))  # with a bias no row is too small
        if bad.any():
            row = int(np.argmax(bad))
            found = f"holds numbers up to {reach[row]:.3g} / scale, too large or too small to square in {X.dtype}"
            raise BadValue(row, found, remedy=f"scale X so that they are between {least:g} and {most:g}")

    def _intensities(self, X: Any) -> Floats:
        """Return m^(-1/2) |W x + b|^2 for each row x of `X`."""
        out = np.empty((X.shape[0], self._n_features_out), dtype=X.dtype)
        write = self._multiply if self.turns_ is None else self._transform_structured
        write(X, out)
        return out

    def _multiply(self, X: Any, out: Floats) -> None:
        # View complex rows as pairs of real numbers: one real product gives real and imaginary parts side by side.
        complex_type = np.complex64 if X.dtype == np.float32 else np.complex128
        W, b = (np.ascontiguousarray(part, complex_type).view(X.dtype) for part in (self.weights_, self.bias_))

        def write(start: int, amplitudes: Floats) -> None:
            amplitudes += b
            np.square(amplitudes, out=amplitudes)
            rows = out[start : start + len(amplitudes)]
            np.add(amplitudes[:, ::2], amplitudes[:, 1::2], out=rows)
            rows /= X.dtype.type(np.sqrt(out.shape[1]))

        use_products(X, W, write)

    def _shape_of_turns(self) -> tuple[int, int, int]:
        """Return the shape (n_blocks, 3, p) of `turns_`; p is the length of a vector after padding."""
        p = max(_MIN_PADDED, padded(self.n_features_in_ + (self.bias > 0)))
        return -(-self._n_features_out // p), 3, p

    def _transform_structured(self, X: Any, out: Floats) -> None:
        scale, bias = float(self.scale), float(self.bias)
        if self.turns_.shape != self._shape_of_turns():  # the loop does not check bounds
            found, expected = self.turns_.shape, self._shape_of_turns()
            raise ValueError(f"turns_ has shape {found}, expected {expected} for such vectors; fit again")
        m, p = out.shape[1], self.turns_.shape[2]
        # Vectors are multiplied by a power of two near scale / p, lest squares overflow; this changes no other bits.
        significand, exponent = np.frexp(scale)
        unit = float(np.ldexp(1 / p, exponent))
        factor = significand**2 / np.sqrt(m * (1 - 1 / p + 1 / p**2))
        dtype = X.dtype
        reference, factor = dtype.type(bias / scale * unit), dtype.type(factor)

        def rows(start: int, stop: int) -> None:
            step = rows_per_block(2 * X.shape[1] * dtype.itemsize)
            for first in range(start, stop, step):
                part = X[first : min(stop, first + step)]
                part = np.ascontiguousarray(part.toarray() if sp.issparse(part) else part)
                _write_structured(part, unit, reference, self.turns_, factor, out[first : first + len(part)])

        run_in_ranges(rows, len(out), _LANES)


def _check_sparse(X: Any, n_features: int | None, by: Any) -> Any:
    X = as_csr(X)
    if X.dtype.kind == "c":
        raise not_real()
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    if X.shape[0] == 0:
        raise BadValue(None, "is empty: found 0 vectors", "at least one")
    if X.shape[1] == 0:
        raise too_narrow("X", X.shape)
    if n_features is not None and X.shape[1] != n_features:
        raise wrong_width(X.shape[1], n_features, by)
    finite = np.isfinite(X.data)
    if not finite.all():
        row = int(np.searchsorted(X.indptr, np.argmin(finite), side="right")) - 1
        raise BadValue(row, "holds NaN or infinity", "finite numbers", "drop or impute that row")
    return X


@njit()
def _write_structured(rows, unit, reference, turns, factor, out):  # type: ignore[no-untyped-def]
    """Fill row j of `out` with ``factor * |H D3 H D2 H D1 x|^2`` for x = unit * rows[j], p numbers for each block.

    H is the Hadamard matrix with p rows. `turns`, int8 of shape (n_blocks, 3, p), holds for each block the exponents of
    i on the diagonals of D1, D2, D3. A `reference` above 0 is appended to x as a coordinate; zeros fill x up to p.
    `rows` (n, d) is float32 or float64, `out` is (n, m) with m at most n_blocks * p.
    """
    n_blocks, _, p = turns.shape
    d = rows.shape[1]
    lanes = np.zeros(p * _LANES, rows.dtype)
    re, im = np.empty_like(lanes), np.empty_like(lanes)
    for first in range(0, len(rows), _LANES):
        count = min(_LANES, len(rows) - first)
        for lane in range(count):
            for i in range(d):
                lanes[i * _LANES + lane] = rows[first + lane, i] * unit
        if reference > 0:
            lanes[d * _LANES : (d + 1) * _LANES] = reference
        for block in range(n_blocks):
            re[:] = lanes
            im[:] = 0
            for product in range(3):
                _turn(re, im, turns[block, product])
                hadamard(re, _LANES)
                hadamard(im, _LANES)
            begin = block * p
            for lane in range(count):
                for j in range(min(p, out.shape[1] - begin)):
                    x, y = re[j * _LANES + lane], im[j * _LANES + lane]
                    out[first + lane, begin + j] = (x * x + y * y) * factor


@njit()
def _turn(re, im, turns):  # type: ignore[no-untyped-def]
    """Multiply coordinate j of the complex vectors (re, im), in place, by the imaginary unit to the power turns[j]."""
    for i in range(len(turns)):
        here = slice(i * _LANES, (i + 1) * _LANES)
        x, y, turn = re[here], im[here], turns[i]
        if turn == 1:
            for lane in range(_LANES):
                x[lane], y[lane] = -y[lane], x[lane]
        elif turn == 2:
            for lane in range(_LANES):
                x[lane], y[lane] = -x[lane], -y[lane]
        elif turn == 3:
            for lane in range(_LANES):
                x[lane], y[lane] = y[lane], -x[lane]
