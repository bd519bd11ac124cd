"""Small transformers of vectors: standardise columns, and turn series of equal length into rows.

Means and variances are the same, bit for bit, for any partitioning of the objects: each block of `BLOCK` consecutive
objects is summed, and the block sums are added in order. The variance takes a second pass over differences from the
mean, so it stays accurate if the mean is large. For up to 1e8 vectors, its relative difference from numpy's ``var`` is
at most 1e-12.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.preprocessing import StandardScaler

from similia.core.config import collected_warnings
from similia.core.estimators import Transformer, all_at_once, check_fitted, check_table, example_of
from similia.core.state import count, state
from similia.core.text import counted
from similia.core.validation import (
    BadValue,
    ObjectsWarning,
    WarningData,
    part_from,
    warn_of_objects,
    warn_once,
    warning_of_part,
)
from similia.objects.series import SeriesBatch, as_series
from similia.objects.vectors import check_finite
from similia.sources.dask import Distributed, each_block, from_parts, lazily, refuse_lazy

Floats = npt.NDArray[np.float64]
BLOCK = 256
_DIGITS = 2.0**-20  # smallest range of a series, relative to its level, that float32 (24 bits) still represents well
_REACH = 1e30  # the largest magnitude in a series, unless 0, must be between 1 / _REACH and _REACH, for float32
_SMALLEST = 1e-145  # smallest difference whose square keeps full precision


@state()
class FeatureScaler(Transformer):
    """Scale columns to standard deviation 1 and, if the data are dense, shift them to mean 0.

    Attributes
    ----------
    scaler_ : sklearn.preprocessing.StandardScaler
        The fitted scaler.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from similia.embeddings.vectors import FeatureScaler
    >>> X = [[0.0, 2.0], [2.0, 6.0]]
    >>> FeatureScaler().fit_transform(X)
    array([[-1., -1.],
           [ 1.,  1.]])
    >>> FeatureScaler().fit_transform(csr_array(X)).toarray()
    array([[0., 1.],
           [2., 3.]])
    """

    _takes = ("sparse",)

    @all_at_once
    @from_parts
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the means and deviations of the columns of `X`, shape (n, n_features), dense or sparse."""
        like = example_of(X)
        X = X if hasattr(X, "shape") else np.asarray(X)
        scaler = StandardScaler(with_mean=not issparse(like)).fit(like)  # learns names and number of the columns
        n, mean, variance = moments(X, _rows)
        eps = np.finfo(np.float64).eps
        constant = variance <= n * eps * variance + (n * mean * eps) ** 2  # as scikit-learn sees it
        scaler.n_samples_seen_, scaler.mean_, scaler.var_ = n, mean, variance
        scaler.scale_ = np.where(constant, 1.0, np.sqrt(variance))
        self.scaler_ = scaler
        self._learn_columns(like)
        return self

    @lazily
    def transform(self, X: Any) -> Any:
        """Return the scaled vectors, dense or sparse like `X`, shape (n, n_features)."""
        check_fitted(self)
        check_table(self, X, reset=False)
        scaled = self.scaler_.transform(X)
        if not np.isfinite(scaled.data if issparse(scaled) else np.asarray(scaled)).all():
            _rows(scaled, 0)
        return scaled

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Return the names of the columns, unchanged."""
        check_fitted(self)
        return self.scaler_.get_feature_names_out(input_features)


@state(length_=count(least=1), n_channels_=count(least=1), _n_features_out=count(least=1))
class SeriesVectors(Transformer):
    """Turn time series of equal length into vectors: all channels of the first time point, then of the second, ...

    Attributes
    ----------
    length_ : int
        Number of time points in a series.
    n_channels_ : int
        Number of channels.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.embeddings import SeriesVectors
    >>> SeriesVectors().fit_transform([np.array([1.0, 2.0]), np.array([3.0, 4.0])])
    array([[1., 2.],
           [3., 4.]])
    """

    _takes = ("three_d_array",)

    @all_at_once
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the length and number of channels of the series `X`; raise ValueError if the lengths differ."""
        refuse_lazy(X, "the lengths of all series are compared; fit to some of the series")
        batch = as_series(X)
        self.length_, self.n_channels_ = int(batch.lengths[0]), batch.n_dims
        self._check(batch)
        self._n_features_out = self.length_ * self.n_channels_
        return self

    @lazily
    def transform(self, X: Any) -> npt.NDArray[np.floating]:
        """Return the series as vectors, shape (n, `length_` * `n_channels_`); raise ValueError for other shapes."""
        check_fitted(self)
        batch = as_series(X)
        self._check(batch)
        return batch.values.reshape(len(batch), -1).copy()

    def _check(self, batch: SeriesBatch) -> None:
        other = batch.lengths != self.length_
        if other.any() or batch.n_dims != self.n_channels_:
            i = int(np.argmax(other))
            found = f"has {counted(batch.lengths[i], 'time point')} and {counted(batch.n_dims, 'channel')}"
            expected = f"{self.length_} and {self.n_channels_} as in fit"
            raise BadValue(i, found, expected, "series of different lengths are for similia.D2KE with DTW()")


def lengths_of(X: Any) -> tuple[npt.NDArray[np.int64], int]:
    """Return the lengths (n,) of time series, which may be a `Distributed`, and their number of channels."""
    if not isinstance(X, Distributed):
        batch = as_single(X)
        return batch.lengths, batch.n_dims
    n_channels = as_series(example_of(X)).n_dims
    n, parts, known = 0, [], set()  # type: ignore[var-annotated]
    for lengths, said in each_block(X, BLOCK, _lengths, n_channels):
        for category, message in said:
            warn_once((category, message.shifted(n) if isinstance(message, ObjectsWarning) else message), known)
        n += len(lengths)
        parts.append(lengths)
    return np.concatenate(parts), n_channels


def _lengths(X: Any, start: int, n_channels: int) -> tuple[npt.NDArray[np.int64], list[WarningData]]:
    """Return the lengths of a block of series, and the warnings about them."""
    with collected_warnings() as caught, part_from(start):
        lengths = as_single(X, n_channels).lengths
    return lengths, [warning_of_part(warning, 0) for warning in caught]


def as_single(X: Any, n_channels: int | None = None) -> SeriesBatch:
    """Return time series as a batch of float32.

    Raise if a number is NaN or infinite, or if the largest magnitude in a series is out of range. If `n_channels` is
    given, also raise if the series have another number of channels.
    """
    batch = as_series(X)
    if n_channels is not None and batch.n_dims != n_channels:
        raise BadValue(None, f"has {counted(batch.n_dims, 'channel')}", f"{n_channels} as in fit")
    check_finite(batch)
    reach = np.maximum.reduceat(np.abs(batch.values).max(axis=1), batch.offsets[:-1])
    bad = (reach > _REACH) | ((reach > 0) & (reach < 1 / _REACH))
    if bad.any():
        i = int(np.argmax(bad))
        found = f"holds numbers up to {reach[i]:.3g}"
        raise BadValue(i, found, f"between {1 / _REACH:g} and {_REACH:g}", "scale the series", kind="series")
    warn_of_levels(batch)
    with np.errstate(under="ignore"):
        return batch.astype(np.float32)


def warn_of_levels(batch: SeriesBatch, numbers: npt.NDArray[np.int64] | None = None) -> None:
    """Warn if a series varies so little around a large number that float32 loses most digits of the variation.

    If `numbers` is given, the warning names series i by ``numbers[i]``.
    """
    if batch.values.dtype == np.float32:
        return
    low, high = (end.reduceat(batch.values, batch.offsets[:-1]) for end in (np.minimum, np.maximum))
    span, level = high - low, np.maximum(np.abs(low), np.abs(high))
    lost = ((span > 0) & (span < level * _DIGITS)).any(axis=1)
    if lost.any():
        i = int(np.argmax(lost))
        found = "vary so little around a large number that float32 keeps few digits of this variation"
        index = i if numbers is None else numbers[i]
        warn_of_objects(ObjectsWarning(int(lost.sum()), len(batch), found, index, "subtract the mean of each series"))


def _rows(X: Any, start: int) -> npt.NDArray[np.floating]:
    """Return `X` as a dense array; if a row holds NaN or infinity, raise with its number, counted from `start`."""
    rows = np.ascontiguousarray(X.toarray() if issparse(X) else X)
    if rows.dtype.kind == "O":  # as in a data frame whose columns differ in type
        rows = rows.astype(np.float64)
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        row = start + int(np.argmin(finite))
        raise BadValue(row, "holds NaN or infinity", "finite numbers", "drop or impute that row")
    return rows


def moments(X: Any, vectors: Callable[[Any, int], npt.NDArray]) -> tuple[int, Floats, Floats]:
    """Return the number, the mean (p,) and the variance (p,) of the vectors of all objects.

    ``vectors(block, start)`` returns the vectors of a block of objects, shape (n_vectors, p); `start` is the position
    of the block in `X`. `vectors` must be a module-level function, since it may run on another machine.
    """
    n, total = 0, np.zeros(1)
    for n_more, sums in each_block(X, BLOCK, _sums, vectors):
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            n, total = n + n_more, total + sums
    mean = total / n
    squares, rest, largest = np.zeros(1), np.zeros(1), 0.0
    for of_squares, of_rest, most in each_block(X, BLOCK, _squares, vectors, mean):
        squares, rest, largest = squares + of_squares, rest + of_rest, max(largest, most)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        variance = np.maximum((squares - rest**2 / n) / n, 0)  # rounding can make it negative
    if not np.isfinite(variance).all():
        raise BadValue(None, "holds numbers whose squares are too large to add", remedy="scale it down")
    if 0 < largest < _SMALLEST:
        raise ValueError(f"the numbers of X differ by {largest:.3g} at most, which is too small to square; scale X up")
    return n, mean, variance


def _sums(block: Any, start: int, vectors: Callable[[Any, int], npt.NDArray]) -> tuple[int, Floats]:
    values = vectors(block, start)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return len(values), values.sum(axis=0, dtype=np.float64)


def _squares(
    block: Any, start: int, vectors: Callable[[Any, int], npt.NDArray], mean: Floats
) -> tuple[Floats, Floats, float]:
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        differences = vectors(block, start) - mean
        largest = float(np.abs(differences).max(initial=0.0))
        return np.square(differences).sum(axis=0), differences.sum(axis=0), largest
