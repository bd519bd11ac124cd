r"""Vectors to hypervectors by fractional power encoding: random phases that grow linearly with the vector.

For random frequencies w_j ~ N(0, I / bandwidth^2) and phases b_j ~ U[0, 2 pi), position j of the complex
hypervector of x is exp(i (w_j . x + b_j)): the random vector exp(i w_j) raised to the power x. There are two outputs:

    floats   the real and imaginary parts, scaled: random Fourier features, whose inner products estimate
             the Gaussian kernel exp(-s^2 / 2), s = |x - y| / bandwidth
    bits     the signs of the real and the imaginary part: two bits tell in which quarter of the circle the phase
             lies, and adjacent quarters differ in one bit.

If a is uniform, the product of the signs of cos(a) and cos(a + d) has the expectation 1 - 2 |d| / pi for |d| <= pi: a
triangle wave (8 / pi^2) sum_{k odd} cos(k d) / k^2. With d ~ N(0, s^2) the expected similarity of codes is

    K(s) = (8 / pi^2) sum_{k = 1, 3, 5, ...} exp(-k^2 s^2 / 2) / k^2,

a positive definite kernel, about 1 - (2 / pi)^(3/2) s for small s and (8 / pi^2) exp(-s^2 / 2) for large s. With
m = n_bits / 2 pairs of bits, the variance of the similarity is (E|1 - 2 |d| / pi| - K^2) / m (d wrapped to [-pi, pi]),
which is 0.80 to 1 times the variance (1 - K^2) / n_bits of independent bits.

Phases are measured in quarter turns, so that the quarter is the integer part modulo 4. `core.products` adds the terms
of a phase in a fixed order, so block size and number of threads never flip a bit of a phase at the edge of a quarter.

Cost: n n_features n_bits / 2 multiplications, as two bits share a frequency. Papers: see `FractionalPowerEncoder`; the
series is in Raginsky and Lazebnik (2009).
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils import Tags

from similia.codes.hypervectors import HypervectorEncoder
from similia.core import functions
from similia.core.config import rows_per_block
from similia.core.errors import BadValue
from similia.core.estimators import all_at_once, check_columns, example_of
from similia.core.functions import cos_sin_of_quarters
from similia.core.jit import njit
from similia.core.products import panels, row_product
from similia.core.state import array, count, one_of, state
from similia.core.threads import run_in_ranges
from similia.core.validation import (
    check_n_bits,
    check_positive,
    check_vectors,
    generator,
    rows_in_blocks,
)
from similia.sources.dask import from_parts

Floats = npt.NDArray[np.float64]

_LARGEST = 2.0**40  # up to this many bandwidths from 0, a phase keeps at least 3 digits of a quarter turn
_TILE_ROWS, _TILE_COLUMNS = 64, 512  # a float64 tile of 256 KiB stays in cache until it is packed


@state(
    fits=lambda state, sizes: sizes["h"] == 4 * sizes["b"],
    n_features_in_=count("d", least=1), phases_=array("f8", "h"), frequencies_=array("f8", "d", "h"),
    bandwidth="positive", output=one_of("bits", "floats"),
)  # fmt: skip
class FractionalPowerEncoder(HypervectorEncoder):
    """Turn vectors into hypervectors whose similarity is a known function of the distance between them.

    Parameters
    ----------
    bandwidth : float, default=1.0
        The distance between two vectors at which their similarity is about 0.49 (0.61 for ``output="floats"``). Scale
        features to a common unit first, for example with StandardScaler. Distances between standardised vectors grow
        like the square root of the number of features, so choose a larger bandwidth for more features.
    n_bits : int, default=10_000
        Length of the hypervectors (long, random-looking codes), a multiple of 8.
    output : {"bits", "floats"}, default="bits"
        What `transform` returns: random Fourier features ("floats"), which are vectors of norm 1, or only the signs of
        these features, packed into uint8 ("bits"). Floats are float32 for float32 input, otherwise float64.
    random_state : int, Generator, RandomState or None
        Seed or generator from which `fit` draws frequencies and phases.

    Attributes
    ----------
    n_features_in_ : int
        Number of features seen in `fit`.
    frequencies_ : ndarray of float64, shape (n_features, n_bits // 2)
        The random frequencies: column j maps a vector to an angle, in quarter turns.
    phases_ : ndarray of float64, shape (n_bits // 2,)
        Random angles in [0, 4), in quarter turns, that are added to the angles of `frequencies_`.

    Notes
    -----
    Positions 2 j and 2 j + 1 of a hypervector are the cosine and the sine of angle j, ``x @ frequencies_[:, j] +
    phases_[j]``, or their signs. The hypervector of a row, bits or floats, depends only on that row and the fitted
    model, not on other rows, blocks or threads.

    Similarity depends only on differences between vectors, so data need no centring. `transform` raises an error if an
    entry of a row is 2**40 bandwidths or more from 0, because angles that large lose most of their digits.

    References
    ----------
    T. Plate, "Holographic reduced representations", IEEE Trans. Neural Networks 6 (1995). E. P. Frady, D. Kleyko and
    F. Sommer, "Computing on functions using randomized vector representations", NICE 2022. A. Rahimi and B. Recht,
    "Random features for large-scale kernel machines", NIPS 2007. M. Raginsky and S. Lazebnik, "Locality-sensitive
    binary codes from shift-invariant kernels", NIPS 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from similia import codes
    >>> X = np.array([[0.0, 0.0], [0.5, 0.0], [3.0, 4.0]])
    >>> encoder = codes.FractionalPowerEncoder(bandwidth=1.0, random_state=0)
    >>> codes.similarity(encoder.fit_transform(X)).round(1)[0]
    array([1. , 0.7, 0. ])
    >>> encoder.kernel(X).round(3)[0]
    array([1.   , 0.746, 0.   ])
    """

    def __init__(
        self, bandwidth: float = 1.0, n_bits: int = 10_000, output: str = "bits", random_state: Any = None
    ) -> None:
        self.bandwidth = bandwidth
        self.n_bits = n_bits
        self.output = output
        self.random_state = random_state

    @all_at_once
    @from_parts
    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw random frequencies and phases; `X` holds finite vectors, shape (n, n_features)."""
        self._check_parameters()
        self.n_features_in_ = check_vectors(example_of(X)).shape[1]
        self._learn_columns(X)
        rng = generator(self.random_state)
        self.phases_ = rng.uniform(0.0, 4.0, self.n_bits // 2)
        shape = (self.n_features_in_, self.n_bits // 2)
        self.frequencies_ = rng.standard_normal(shape) * (2 / np.pi / float(self.bandwidth))
        return self

    def _drawn_bits(self) -> int:
        return 2 * len(self.phases_)

    def _encode(self, X: Any) -> npt.NDArray[Any]:
        check_columns(self, X, reset=False)
        X = X if hasattr(X, "shape") and np.ndim(X) == 2 else check_vectors(X)
        n, n_bits, bits = X.shape[0], 2 * len(self.phases_), self.output == "bits"
        out: npt.NDArray[Any] = np.empty((n, n_bits // 8) if bits else (0, 0), np.uint8)
        step = rows_per_block(32 * self.n_features_in_, at_most=2**14)
        for start, rows in rows_in_blocks(X, step, self._phased):
            if start == 0 and not bits:
                out = np.empty((n, n_bits), rows.dtype)
            rows = np.ascontiguousarray(rows, dtype=np.float64)
            _write_codes(rows, self.frequencies_, self.phases_, out[start : start + len(rows)])
        return out

    def _phased(self, X: Any) -> npt.NDArray[np.floating]:
        """Return checked vectors; raise if one is so far from 0 that its phases would lose most of their digits."""
        X = check_vectors(X, n_features=self.n_features_in_, by=self)
        largest = np.abs(X).max(axis=1) / float(self.bandwidth)
        if (largest >= _LARGEST).any():
            i = int(np.argmax(largest >= _LARGEST))
            expected = "less than 2**40, beyond which phases lose their digits"
            raise BadValue(i, f"is {largest[i]:.3g} bandwidths from 0", expected, "scale or centre the features")
        return X

    def _example(self) -> Any:
        return np.zeros((1, self.n_features_in_)) if self.output == "bits" else None  # floats have the type of the data

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = [] if self.output == "bits" else ["float64", "float32"]
        return tags

    def kernel(self, X: Any, Y: Any = None) -> npt.NDArray[np.float64]:
        """Return the expected similarity of the hypervectors of each x in `X` and y in `Y`; works without `fit`.

        The expectation is over the random draws of `fit`. For ``output="bits"``, it is the mean of
        `similia.codes.similarity`; for ``output="floats"``, it is the mean inner product, which is the Gaussian kernel.

        Parameters
        ----------
        X, Y : arrays of shape (n, n_features) and (m, n_features)
            Vectors; `Y` defaults to `X`.

        Returns
        -------
        ndarray of float64, shape (n, m)
            Accurate to 1e-14.
        """
        from scipy.spatial.distance import cdist

        self._check_parameters()
        X = check_vectors(X)
        Y = X if Y is None else check_vectors(Y, "Y")
        if Y.shape[1] != X.shape[1]:
            raise BadValue(None, f"has {Y.shape[1]} features", f"{X.shape[1]} as in X", collection="Y")
        out = np.empty((len(X), len(Y)))
        for start in range(0, len(X), step := rows_per_block(64 * len(Y))):
            s = cdist(X[start : start + step], Y) / float(self.bandwidth)
            found = functions.exp(-(s**2) / 2) if self.output == "floats" else _expected_agreement(s)
            out[start : start + step] = found
        return out

    def _check_parameters(self) -> None:
        check_n_bits(self.n_bits)
        if self.output not in ("bits", "floats"):
            raise ValueError(
                f"output must be 'bits' (packed codes) or 'floats' (Fourier features), got {self.output!r}"
            )
        check_positive(self.bandwidth, "bandwidth")


def _expected_agreement(s: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return K(s), the expected similarity of codes of vectors at distance s (in bandwidths).

    The difference d of two phases is normal with standard deviation s. Below s = 0.4, |d| > pi lies more than 7.8
    deviations out and is negligible, so K(s) is the mean of 1 - 2 |d| / pi. Above, K(s) is a series over odd k, cut off
    after k = 21: later terms are less than 1e-17.
    """
    first = functions.exp(-(s**2) / 2)
    ratio = first**8  # the exponents k^2 = 1, 9, 25, ... differ by 8, 16, 24, ...
    term, factor = first, ratio
    total = first.copy()
    for k in range(3, 23, 2):
        term = term * factor
        factor = factor * ratio
        total += term / k**2
    return np.where(s < 0.4, 1 - (2 / np.pi) ** 1.5 * s, 8 / np.pi**2 * total)


def _write_codes(rows: Floats, frequencies: Floats, phases: Floats, out: npt.NDArray) -> None:
    """Fill `out`, from ``rows @ frequencies + phases``, with packed bits if it is uint8, else with Fourier features."""

    def work(start: int, stop: int) -> None:
        buffer = np.empty((_TILE_ROWS, _TILE_COLUMNS))
        for column in range(0, len(phases), _TILE_COLUMNS):
            tile = panels(frequencies[:, column : column + _TILE_COLUMNS], stop - start)
            offsets = phases[column : column + _TILE_COLUMNS]
            for row in range(start, stop, _TILE_ROWS):
                last = min(stop, row + _TILE_ROWS)
                turned = buffer.reshape(-1)[: (last - row) * len(offsets)].reshape(last - row, len(offsets))
                row_product(rows[row:last], tile, turned, threads=False)
                turned += offsets
                if out.dtype == np.uint8:
                    _pack_quarters(turned, out[row:last, column // 4 :])
                else:
                    _waves(turned, out[row:last, 2 * column :], len(phases))

    run_in_ranges(work, len(rows), _TILE_ROWS)


def _waves(turned: Floats, out: npt.NDArray, n_phases: int) -> None:
    """Fill `out` with the cosine and sine of each phase in `turned` (quarter turns), times ``n_phases ** -0.5``."""
    cosines, sines = cos_sin_of_quarters(turned, out.dtype)
    scale = out.dtype.type(n_phases**-0.5)
    width = 2 * turned.shape[1]
    out[:, 0:width:2] = scale * cosines
    out[:, 1:width:2] = scale * sines


@njit()
def _pack_quarters(turned, out):  # type: ignore[no-untyped-def]
    """Pack the signs of cosine and sine of each phase in `turned`, two bits: 11, 01, 00, 10 for quarters 0, 1, 2, 3."""
    for i in range(turned.shape[0]):
        for byte in range(turned.shape[1] // 4):
            packed = 0
            for j in range(4 * byte, 4 * byte + 4):
                quarter = np.int64(np.floor(turned[i, j]))
                cosine = 1 ^ (((quarter + 1) >> 1) & 1)
                sine = 1 ^ ((quarter >> 1) & 1)
                packed = (packed << 2) | (cosine << 1) | sine
            out[i, byte] = packed
