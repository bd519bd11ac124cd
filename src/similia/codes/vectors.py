r"""Vectors to hypervectors: through the levels of their numbers, or by fractional power encoding.

*Levels.* The closer two numbers, the more positions their vectors share. The range of a feature is divided into L
levels; the similarity of level vectors falls with their distance (`hypervectors.level`). Each feature j has a random
role vector r_j, and the code of a row is the bundle of its numbers, each bound to (multiplied by) the role of its
feature:

    code(x) = sign( sum_j r_j * level(x_j) ),    similarity(level a, level b) = 1 - |a - b| / (L - 1).

With a single feature, the code is the level vector itself, without role and bundle.

Cost: about 8 operations per feature and 64-bit word of a vector. Level vectors: Widdows and Cohen (2015); records:
P. Kanerva, "Hyperdimensional computing", Cognitive Computation 1 (2009).

*Fractional powers.* Random phases grow linearly with the vector. For random frequencies w_j ~ N(0, I / bandwidth^2) and
phases b_j ~ U[0, 2 pi), position j of the complex hypervector of x is exp(i (w_j . x + b_j)): the random vector exp(i
w_j) raised to the power x. There are two outputs:

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

import functools
from collections.abc import Callable
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils import Tags

from similia.codes.hypervectors import (
    Codes,
    Counts,
    HypervectorEncoder,
    Indices,
    bundle_members,
    empty_output,
    level,
    random,
    to_words,
)
from similia.core import functions
from similia.core.config import rows_per_block, run_in_ranges
from similia.core.estimators import all_at_once, check_columns, example_of
from similia.core.functions import cos_sin_of_quarters
from similia.core.jit import njit
from similia.core.products import panels, row_product
from similia.core.state import Sizes, array, count, one_of, state
from similia.core.validation import (
    BadItem,
    BadType,
    BadValue,
    check_n_bits,
    check_positive,
    check_positive_int,
    check_vectors,
    generator,
    not_2d,
    not_dates,
    not_real,
    refuse_dates,
    rows_in_blocks,
    unmasked,
)
from similia.sources.dask import Distributed, from_parts

Floats = npt.NDArray[np.float64]

_GRAIN = 256  # minimum number of rows per call to compiled code
_LARGEST = 2.0**40  # up to this many bandwidths from 0, a phase keeps at least 3 digits of a quarter turn
_TILE_ROWS, _TILE_COLUMNS = 64, 512  # a float64 tile of 256 KiB stays in cache until it is packed


def _are_levels(state: dict[str, Any], sizes: Sizes) -> bool:
    """Return whether each number has a level: `_level_indices` gives compiled loops numbers of rows of `levels_`."""
    with np.errstate(over="ignore"):
        span = state["high_"] - state["low_"]
    return bool((span >= 0).all() and np.isfinite(span).all()) and len(state["levels_"]) > 0


@state(
    fits=_are_levels,
    low_=array("f8", "d", most=np.inf), high_=array("f8", "d", most=np.inf),  # they are compared, never squared
    levels_=array("u1", None, "b"), ties_=array("u1", 1, "b"), roles_=array("u1", "d", "b"),
)  # fmt: skip
class RangeEncoder(HypervectorEncoder):
    """Base class of encoders of numeric columns: a vector for each level, a random factor (role) for each column."""

    n_levels: int
    low: Any
    high: Any
    random_state: Any

    def _learn(self, X: Any, read: Callable[[Any], npt.NDArray[np.floating]], columns: str) -> None:
        """Learn the range of each column of ``read(X)``; draw levels and roles. Errors call the columns `columns`."""
        check_positive_int(self.n_levels, "n_levels", minimum=2)
        self._check_parameters()
        ends = _column_ends(X, read)
        self.low_, self.high_ = _range(ends, self.low, self.high, columns)
        rng = generator(self.random_state)
        self.levels_ = level(self.n_levels, self.n_bits, rng)
        self.ties_ = random(1, self.n_bits, rng)
        self.roles_ = random(ends.shape[1], self.n_bits, rng)  # last, so that more columns leave the rest unchanged

    def _drawn_bits(self) -> int:
        return int(8 * self.levels_.shape[1])

    def _level_indices(self, values: npt.NDArray[np.floating]) -> Indices:
        """Return the index of the level nearest to each number: 0 at or below `low_`, the last at or above `high_`."""
        span = np.where(self.high_ > self.low_, self.high_ - self.low_, 1.0)
        scaled = (np.clip(values.astype(np.float64), self.low_, self.high_) - self.low_) / span
        return np.rint(scaled * (len(self.levels_) - 1)).astype(np.int64)


@state(n_features_in_=count("d", least=1))
class LevelEncoder(RangeEncoder):
    """Encode numbers, or rows of several numbers, as hypervectors; close numbers have similar hypervectors.

    Parameters
    ----------
    n_levels : int, default=100
        Number of equidistant levels per feature, at least 2; each number is encoded as the nearest level.
    n_bits : int, default=10_000
        Length of the hypervectors (long, random-looking codes), a multiple of 8.
    low, high : float or array of shape (n_features,), optional
        Range of each feature: the values that the first and the last level stand for. By default, these are the
        smallest and the largest value of the feature in `fit`. Numbers outside this range are clipped to it.
    output : {"bits", "counts"}, default="bits"
        How `transform` combines the vectors of the numbers in a row: "bits" returns their bitwise majority, packed, and
        "counts" returns their sum, n_bits integers. Each level and each feature has a random vector of ±1 (bit 1 is +1,
        bit 0 is -1). The vector of a number is the product of the vector of its level and the vector of its feature. If
        there is only one feature, the vector of a number is the vector of its level.
    random_state : int, Generator, RandomState or None
        Seed or generator from which `fit` draws `levels_`, `roles_` and `ties_`.

    Attributes
    ----------
    n_features_in_ : int
        Number of features seen in `fit`.
    low_, high_ : ndarray of float64, shape (n_features,)
        The values that the first and the last level of each feature stand for.
    levels_ : ndarray of uint8, shape (n_levels, n_bits // 8)
        Packed vectors of the levels, the same for all features.
    roles_ : ndarray of uint8, shape (n_features, n_bits // 8)
        The role of each feature: a random vector by which the level vectors of its numbers are multiplied. Unused for a
        single feature.
    ties_ : ndarray of uint8, shape (1, n_bits // 8)
        Random vector whose bits decide ties of the majority.

    Notes
    -----
    With ``output="counts"``, the vectors of rows x and y have the inner product ``n_bits * sum_j (1 - |l(x_j) - l(y_j)|
    / (n_levels - 1))``, where l(x_j) is the index, from 0, of the level of x_j. With several features, this is
    approximate, because random roles are slightly similar; with one feature, it is exact up to the rounding of
    `similia.codes.level`. With ``output="bits"``, ties distort similarities: with two features, every position where
    the vectors of the two numbers differ is a tie; with four features, about three positions in eight are ties.

    Without `low` and `high`, a feature that is constant in `fit` carries no information later: all its numbers get the
    first level.

    Examples
    --------
    >>> from similia import codes
    >>> encoder = codes.LevelEncoder(n_levels=11, low=0, high=100, random_state=0)
    >>> temperatures = encoder.fit_transform([0.0, 20.0, 50.0, 100.0, 250.0])
    >>> codes.similarity(temperatures)[0]
    array([1. , 0.8, 0.5, 0. , 0. ])
    """

    def __init__(
        self,
        n_levels: int = 100,
        n_bits: int = 10_000,
        low: Any = None,
        high: Any = None,
        output: str = "bits",
        random_state: Any = None,
    ) -> None:
        self.n_levels = n_levels
        self.n_bits = n_bits
        self.low = low
        self.high = high
        self.output = output
        self.random_state = random_state

    @all_at_once
    @from_parts
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the range of each feature, and draw random vectors: one for each level and one for each feature.

        Levels are equidistant numbers from `low_` to `high_`; `transform` encodes each number as the nearest level. If
        `low` is None, `low_` is the smallest number of each feature of `X`. If `high` is None, `high_` is the largest.

        `X` holds finite numbers, in the shape (n,) or (n, n_features).
        """
        self._learn(X, read_numbers, "features")
        self._learn_columns(X)
        self.n_features_in_ = len(self.low_)
        return self

    def _encode(self, X: Any) -> Codes | Counts:
        check_columns(self, X, reset=False)
        n_features = self.n_features_in_
        cut = hasattr(X, "shape") and (np.ndim(X) == 2 or (np.ndim(X) == 1 and n_features == 1))
        X = X if cut else read_numbers(X, n_features, self)
        n = X.shape[0]
        table = to_words(np.concatenate([self.levels_, self.roles_]))
        out = empty_output(n, self.n_bits, self.output)
        read = functools.partial(read_numbers, n_features=n_features, by=self)
        for start, block in rows_in_blocks(X, rows_per_block(80 * n_features), read):
            encoded = out[start : start + len(block)]
            factors = self._level_indices(block)[:, :, None]
            if n_features > 1:
                roles = np.broadcast_to(len(self.levels_) + np.arange(n_features)[:, None], factors.shape)
                factors = np.concatenate([factors, roles], axis=2)
            self._bundle(table, factors, encoded)
        return out

    def _example(self) -> Any:
        return np.zeros((1, self.n_features_in_))

    def _bundle(self, table: npt.NDArray[np.uint64], factors: Indices, out: Codes | Counts) -> None:
        """Fill ``out[i]`` with the bundle, over j, of the products of the rows ``factors[i, j]`` of `table`."""

        def work(start: int, stop: int) -> None:
            members = factors[start:stop].reshape(-1, factors.shape[2])
            offsets = factors.shape[1] * np.arange(stop - start + 1)
            bundle_members(table, members, offsets, self.ties_, out[start:stop])

        run_in_ranges(work, len(factors), _GRAIN)


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
    Angle j of a vector x is ``x @ frequencies_[:, j] + phases_[j]``. Positions 2 j and 2 j + 1 of the hypervector hold
    the cosine and the sine of this angle: their signs as bits, or their values times ``sqrt(2 / n_bits)`` as floats.
    The hypervector of a row depends only on that row and the fitted model, not on other rows, blocks or threads.

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
        """Draw the random frequencies and phases that map vectors to angles.

        The draws depend only on the number of features of `X`, finite vectors of shape (n, n_features).
        """
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


def _column_ends(X: Any, read: Callable[[Any], npt.NDArray[np.floating]]) -> npt.NDArray[np.floating]:
    """Return the minimum and maximum of each column of ``read(X)``, shape (2, n_columns)."""
    if isinstance(X, Distributed):
        parts = X.map(_ends_of_part, read)
    else:
        shape: tuple[int, ...] = getattr(X, "shape", ())
        step = rows_per_block(80 * shape[1]) if len(shape) == 2 and shape[1] else 2**62  # else all at once
        parts = (_ends(values) for _, values in rows_in_blocks(X, step, read))
    return _ends(np.concatenate([*parts]))


def _ends(values: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    return np.stack([values.min(axis=0), values.max(axis=0)])


def _ends_of_part(part: Any, start: int, read: Callable[[Any], npt.NDArray[np.floating]]) -> npt.NDArray[np.floating]:
    return _ends(read(part))


def _range(found: npt.NDArray[np.floating], low: Any, high: Any, columns: str) -> tuple[Floats, Floats]:
    """Return the lower and upper end of each column: `low` and `high` where given, else the two rows of `found`."""
    n = found.shape[1]
    ends = []
    for name, given, extreme in (("low", low, found[0]), ("high", high, found[1])):
        end = np.asarray(extreme if given is None else given)
        if end.shape not in ((), (n,)) or end.dtype.kind not in "iuf" or not np.isfinite(end).all():
            raise ValueError(
                f"{name} must be a finite number or {n} of them, one for each of the {columns}, got {given!r}"
            )
        ends.append(np.array(np.broadcast_to(end, n), dtype=np.float64))
    with np.errstate(over="ignore"):
        span = ends[1] - ends[0]
    given = low is not None or high is not None
    wrong = ~np.isfinite(span) | (span <= 0 if given else span < 0)
    if wrong.any():
        j = int(np.argmax(wrong))
        raise ValueError(
            f"low must be below high, by a number that fits into float64, got {ends[0][j]:.6g} and {ends[1][j]:.6g} "
            f"for number {j} of the {columns}; change low and high, or rescale the data"
        )
    return ends[0], ends[1]


def read_numbers(X: Any, n_features: int | None = None, by: Any = None) -> Floats:
    """Return `X` as a 2-D float64 array, a 1-D array as one column; raise if an entry is not a finite number."""
    if hasattr(X, "toarray"):
        check_vectors(X)
    try:
        refuse_dates(X)
        values = np.asarray(unmasked(X))
        if values.dtype.kind == "c":
            raise not_real()
        if values.dtype.kind in "mM":
            raise not_dates(values.dtype)
        values = values.astype(np.float64)
    except BadItem:
        raise
    except (TypeError, ValueError) as error:
        kind = BadType if isinstance(error, TypeError) else BadValue
        raise kind(None, f"must hold numbers ({error})", remedy="encode strings with NGramEncoder") from None
    if values.ndim == 1 and n_features is not None and n_features > 1:
        raise not_2d("X", values.shape, X)
    columns = check_vectors(values[:, None] if values.ndim == 1 else values, n_features=n_features, by=by)
    return columns.astype(np.float64, copy=False)


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
