"""QUANT: quantiles of a time series, of its differences and of its spectrum, in shorter and shorter intervals.

Four sequences of numbers are cut into 1, 2, 4, ..., 2^(depth - 1) intervals: a time series of T points, its smoothed
first differences, its second differences, and the amplitudes of its Fourier transform. At levels of 2 or more
intervals, the sequences are also cut into intervals that begin half an interval later, if more than half of the first
intervals have at least two points. See `IntervalQuantiles` for the quantiles of an interval.

Cost: T log T to sort and to transform, plus T for each level. A level gives about T / divisor features.
Dempster, Schmidt & Webb (2024), "QUANT".

`TimeShares`, the base of all embeddings of series by intervals or convolutions, splits a sum of columns over time. A
feature is a statistic of the values of an interval, or of the outputs of a convolution. Its amount (see
`TimeShares.time_shares`) is first divided among these outputs. They are computed by the functions that `transform`
uses, so the same outputs are positive and the same kernels win. Features of one convolution read the same points, so
their amounts are divided among these together. Cost: linear in the number of outputs and of features. 50,000 features
of MultiRocket and 500 points take 0.3 s.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from similia.core.config import rows_per_block, run_in_ranges
from similia.core.estimators import Transformer, all_at_once, check_fitted
from similia.core.jit import njit
from similia.core.state import array, count, state
from similia.core.text import counted
from similia.core.validation import check_positive_int
from similia.embeddings.vectors import as_single, lengths_of
from similia.objects.series import SeriesBatch, as_series
from similia.sources.dask import from_parts, lazily

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.floating]
Indices = npt.NDArray[np.int64]
_READS = ((0, 1), (-2, 6), (0, 3))  # (first, number) of the points that value 0 of a derived series depends on
_DERIVED = ("points", "differences", "second differences", "frequencies")
_DEEPEST = 16  # more levels would have intervals of a point in all but the longest series
_BLOCK = 64  # maximum number of series of one length that are transformed together and stay in cache
_WORK = 20_000  # numbers in a task, which takes a few milliseconds


@state(may_lack=("length_range_",), length_range_=array("i8", 2))
class TimeShares(Transformer):
    """Base of embeddings of series whose columns are statistics over time.

    `fit` sets `n_channels_`, and `length_range_`, which a model saved by an earlier version lacks.
    """

    _takes = ("three_d_array",)
    n_channels_: int

    def time_shares(self, X: Any, weights: npt.ArrayLike, centre: npt.ArrayLike | None = None) -> Floats:
        """Split a weighted sum of columns over the time points and channels of one series.

        Parameters
        ----------
        X : collection of one series
            In any form that `transform` accepts.
        weights : array-like of shape (n_features,)
            Weight of each column, for example in a linear model.
        centre : array-like of shape (n_features,), optional
            Numbers to subtract from the columns, such as their means in training; 0 by default.

        Returns
        -------
        ndarray of float64, shape (length, n_channels)
            The part of each time point of each channel. The parts add up to
            ``(transform(X)[0] - centre) @ weights``, up to the rounding of float32.

        Raises
        ------
        ValueError
            If `X` is not one series, or `weights` or `centre` are not one finite number for each column.

        Notes
        -----
        Each column is a statistic of the outputs of a convolution, or of the values of an interval. The value of the
        column minus its centre, times its weight, is the amount to split. It is split in two steps. First, the amount
        is divided equally among some of the outputs (or values):

        - if the column is the share of positive outputs: among the positive outputs if the share is above the centre,
          otherwise among the other outputs. The same rule applies to the features of `Hydra`, with the outputs that win
          (or lose) in their group in place of the positive outputs, and to the length of the longest stretch of
          positive outputs, with the outputs in this stretch (the first, if several are longest);
        - if the column is the mean excess or the mean position of positive outputs: among the positive outputs, or
          among all outputs if none is positive;
        - if the column is a quantile: among all values of its interval.

        Second, the part of an output is divided among the points that the output depends on, in proportion to how far
        the value of each point is from the mean value of these points in its channel (equally if all values are equal).
        A Fourier coefficient is divided equally among all points. In `RandomConvolutions` and `Hydra`, a first
        difference passes half of its part to each of its points.

        Examples
        --------
        >>> import numpy as np
        >>> import similia as sm
        >>> X = [np.sin(np.arange(30) / 3), np.sin(np.arange(40) / 3) ** 2]
        >>> embedding = sm.RandomConvolutions(84, random_state=0).fit(X)
        >>> weights = np.linspace(-1, 1, 84)
        >>> shares = embedding.time_shares(X[1:], weights)
        >>> shares.shape, bool(np.isclose(shares.sum(), embedding.transform(X)[1] @ weights))
        ((40, 1), True)
        """
        check_fitted(self)
        batch = as_series(X)
        if len(batch) != 1:
            raise ValueError(f"X has {len(batch)} series, expected one; pass X[i : i + 1] for series i")
        centre = np.zeros(self._n_features_out) if centre is None else centre
        return self._time_shares(batch, self._per_column(weights, "weights"), self._per_column(centre, "centre"))

    @abstractmethod
    def _time_shares(self, batch: SeriesBatch, weights: Floats, centre: Floats) -> Floats:
        """Return `time_shares` of a batch of one series, for checked weights and centres."""

    def _example(self) -> list[npt.NDArray]:
        return [np.zeros((1, self.n_channels_), np.float32)]

    def _per_column(self, values: npt.ArrayLike, name: str) -> Floats:
        found, width = np.asarray(values, dtype=np.float64), self._n_features_out
        if found.shape != (width,):
            raise ValueError(
                f"{name} has shape {found.shape}, expected one number for each of {counted(width, 'column')}"
            )
        if not np.isfinite(found).all():
            raise ValueError(
                f"{name}[{int(np.argmin(np.isfinite(found)))}] is NaN or infinity, expected a finite number"
            )
        return found


def range_of(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.array([lengths.min(), lengths.max()], dtype=np.int64)


def differences(x: npt.NDArray) -> npt.NDArray:
    """Return the first differences of a series (length, n_channels); those of a single point are one 0."""
    return np.diff(x, axis=0) if len(x) > 1 else np.zeros_like(x)


def of_points(amounts: Floats, length: int) -> Floats:
    """Return the shares of `length` points, given the shares of their `differences`: each point of a pair gets half."""
    if length == 1:
        return amounts
    out = np.zeros((length, amounts.shape[1]))
    out[1:] += amounts / 2
    out[:-1] += amounts / 2
    return out


@njit()
def spread(amounts, x, channels, first, step, n, out):  # type: ignore[no-untyped-def]
    """Divide ``amounts[t]`` among the points that output t reads, and add the parts to `out`.

    These are the points t + first + i step (i < n) of some channels of `x`, except those outside of the series. They
    get parts in proportion to their distance from their mean in the channel, or equal parts if all distances are 0.
    `x` and `out` have shape (length, n_channels).
    """
    length = len(x)
    for t in range(len(amounts)):
        if amounts[t] == 0:
            continue
        begin = t + first
        low = 0 if begin >= 0 else (-begin + step - 1) // step
        high = min(n, (length - 1 - begin) // step + 1)
        total = 0.0
        for c in channels:
            mean = _mean(x, c, begin, step, low, high)
            for i in range(low, high):
                total += abs(x[begin + i * step, c] - mean)
        for c in channels:
            mean = _mean(x, c, begin, step, low, high)
            for i in range(low, high):
                at = begin + i * step
                share = abs(x[at, c] - mean) / total if total > 0 else 1 / (len(channels) * (high - low))
                out[at, c] += amounts[t] * share


@njit()
def _mean(x, c, begin, step, low, high):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(low, high):
        total += x[begin + i * step, c]
    return total / (high - low)


@njit()
def divide(amount, chosen, value, amounts):  # type: ignore[no-untyped-def]
    """Divide `amount` equally among the outputs whose entry in `chosen` is `value`, or among all if there are none."""
    many = 0
    for t in range(len(chosen)):
        many += chosen[t] == value
    each = amount / (many if many else len(chosen))
    for t in range(len(chosen)):
        if many == 0 or chosen[t] == value:
            amounts[t] += each


def _fits(state: dict[str, Any], sizes: dict[str, int]) -> bool:
    known = state["length_"] < 2**31 and state["depth"] <= _DEEPEST
    n_features = _n_features(state["length_"], state["depth"], state["divisor"]) if known else 0
    return known and state["_n_features_out"] == n_features * state["n_channels_"]


@state(
    fits=_fits, depth=count(least=1), divisor=count(least=1), length_=count(least=1), n_channels_=count(least=1),
    _n_features_out=count(least=1),
)  # fmt: skip
class IntervalQuantiles(TimeShares):
    r"""Embed time series by quantiles of the values in their intervals, as QUANT does.

    The quantiles of an interval have equally spaced probabilities from 0 (the smallest value) to 1 (the largest value).
    If there is only one quantile, it is the median. The mean of the interval is subtracted from the second, fourth,
    sixth, ... quantile.

    To get the classifier of the paper, combine `IntervalQuantiles` and extremely randomised trees, as in the example.

    Parameters
    ----------
    depth : int, default=6
        Number of levels, at most 16. Level i, counted from 0, cuts each derived series (see Notes) into 2^i intervals.
        From level 1 on, a level also contains shifted intervals: all of its intervals but the last, moved by half their
        length. Levels with more intervals than points are left out. If half or more of the 2^i intervals of a level
        have only one point, its shifted intervals are left out, too. Points are counted for a series of length
        `length_`.
    divisor : int, default=4
        An interval of p points gives 1 + (p - 1) // divisor quantiles. With 1, every value of the interval is a
        quantile.

    Attributes
    ----------
    length_ : int
        Median length of the series in `fit` (for an even number of series, the larger of the two middle lengths). It
        determines the levels and the number of quantiles of each interval.
    length_range_ : ndarray of int64, shape (2,)
        Smallest and largest length of the series in `fit`.
    n_channels_ : int
        Number of channels of the series in `fit`.

    Raises
    ------
    ValueError
        If the number of channels differs from that in `fit`; if a series holds NaN or infinity; or if its largest
        absolute value is neither 0 nor between 1e-30 and 1e30 (limits of float32).

    Notes
    -----
    Output is float32, with columns in the order (channel, derived series, level, interval, quantile). The derived
    series are the series itself; its first differences, smoothed by a moving average of five points (at both ends, the
    end value is repeated); its second differences, not smoothed; and the absolute values of its Fourier coefficients.

    Series may have any lengths. If a series of T points is cut into n intervals, interval j begins at point floor(j T /
    n), so it covers the same share of any series. Every series gets as many quantiles as a series of `length_` points.
    Fourier amplitudes are multiplied by `length_` / T, so the amplitude of a wave does not depend on T. The number of
    levels depends only on `depth` and `length_`, so a short series may have fewer points than the last level has
    intervals. Its points are then repeated. If a series is too short for first or second differences, a single 0
    replaces them.

    The features of a series are the same, bit for bit, whatever other series are in the call and for any number of
    threads. On another processor, quantiles of Fourier amplitudes may differ in the last bits; all other features are
    equal.

    References
    ----------
    Dempster, Schmidt & Webb, "QUANT: a minimalist interval method for time series classification", Data Mining and
    Knowledge Discovery 38, 2024.

    Examples
    --------
    >>> import numpy as np
    >>> import similia as sm
    >>> from sklearn.ensemble import ExtraTreesClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> rng = np.random.default_rng(0)
    >>> X = [np.sin(np.arange(60 + i) * (0.3 + i % 2)) + rng.normal(size=60 + i) for i in range(40)]
    >>> y = np.arange(40) % 2
    >>> trees = ExtraTreesClassifier(200, criterion="entropy", max_features=0.1, random_state=0)
    >>> make_pipeline(sm.IntervalQuantiles(), trees).fit(X[:20], y[:20]).score(X[20:], y[20:])
    1.0
    """

    _dtypes = ("float32",)

    def __init__(self, depth: int = 6, divisor: int = 4) -> None:
        self.depth = depth
        self.divisor = divisor

    @all_at_once
    @from_parts
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the number of channels and the median length of the time series `X`."""
        depth, divisor = check_positive_int(self.depth, "depth"), check_positive_int(self.divisor, "divisor")
        if depth > _DEEPEST:
            raise ValueError(f"depth must be at most {_DEEPEST}, got {depth}")
        lengths, self.n_channels_ = lengths_of(X)
        self.length_, self.length_range_ = int(np.sort(lengths)[len(lengths) // 2]), range_of(lengths)
        self._n_features_out = self.n_channels_ * _n_features(self.length_, depth, divisor)
        return self

    @lazily
    def transform(self, X: Any) -> npt.NDArray[np.float32]:
        """Return the features of n time series, shape (n, n_features)."""
        check_fitted(self)
        self._check_parameters()
        series = as_single(X, self.n_channels_)
        out = np.empty((len(series), self._n_features_out), np.float32)
        lengths = series.lengths
        order = np.argsort(lengths, kind="stable")
        starts = np.flatnonzero(np.diff(lengths[order], prepend=0))  # of each length in `order`

        def work(start: int, stop: int) -> None:
            for first, last in _runs(start, stop, starts):
                length = int(lengths[order[first]])
                step = rows_per_block(100 * length * self.n_channels_, _BLOCK)
                for i in range(first, last, step):
                    rows = order[i : min(last, i + step)]
                    out[rows] = self._features(series.values[series.offsets[rows, None] + np.arange(length)])

        run_in_ranges(work, len(series), max(1, _WORK * len(series) // series.values.size))
        return out

    def _check_parameters(self) -> None:
        """Raise if `depth` or `divisor` has been set to a number that gives other columns than in `fit`."""
        depth, divisor = check_positive_int(self.depth, "depth"), check_positive_int(self.divisor, "divisor")
        found = self.n_channels_ * _n_features(self.length_, depth, divisor)
        if found != self._n_features_out:  # the loop does not check bounds
            raise ValueError(
                f"depth={depth} and divisor={divisor} give {found} features, expected {self._n_features_out} as in "
                "fit; fit again"
            )

    def _features(self, X: Numbers) -> npt.NDArray[np.float32]:
        """Return the features of `X`, series of one length, shape (n, length, n_channels)."""
        out = np.empty((len(X), self._n_features_out), np.float32)
        column = 0
        for channel in range(X.shape[2]):
            derived = _derived(X[:, :, channel].astype(np.float64), self.length_)
            for values, reference in zip(derived, _lengths(self.length_), strict=True):
                cuts = _cuts(values.shape[1], reference, self.depth, self.divisor)
                values = values[:, cuts.points].astype(np.float32) + np.float32(0)  # one kind of zero
                stop = column + int(cuts.sizes.sum())
                order = np.argsort(values, axis=1)
                _fill_quantiles(values, order, cuts.owner, cuts.bounds, cuts.sizes, out[:, column:stop])
                column = stop
        return out

    def _time_shares(self, batch: SeriesBatch, weights: npt.NDArray, centre: npt.NDArray) -> npt.NDArray[np.float64]:
        """Share the amount of each interval equally among its values, and that of a value among the points it reads."""
        x = as_single(batch, self.n_channels_).values
        amounts, out, column = (np.asarray(self.transform(batch))[0] - centre) * weights, np.zeros(x.shape), 0
        for channel in range(x.shape[1]):
            for what, (length, reference) in enumerate(zip(_lengths(len(x)), _lengths(self.length_), strict=True)):
                cuts, values = _cuts(length, reference, self.depth, self.divisor), np.zeros(length)
                for bounds, sizes in zip(cuts.bounds, cuts.sizes, strict=True):
                    for j, size in enumerate(sizes[sizes > 0].tolist()):
                        points = cuts.points[bounds[j] : bounds[j + 1]]
                        np.add.at(values, points, amounts[column : column + size].sum() / len(points))
                        column += size
                if what < len(_READS):
                    first, n = _READS[what]
                    spread(values, x, np.array([channel]), first, 1, n, out)
                else:  # a Fourier coefficient reads all points
                    out[:, channel] += values.sum() / len(x)
        return out

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Return a name for each column, such as ``"channel 0, differences 0-13 (1/4), quantile 2 of 4"``.

        This name means: the first differences of channel 0 are cut into 4 intervals; one of these intervals holds the
        differences 0 to 13; the column is the second of four quantiles of this interval. "(1/4 later)" marks an
        interval that is shifted by half its length. In other names, "points" stands for the series itself, and
        "frequencies" for its Fourier transform, whose intervals are named by cycles per `length_` points.
        """
        check_fitted(self)
        self._check_parameters()
        names = []
        for channel in range(self.n_channels_):
            for what, reference in zip(_DERIVED, _lengths(self.length_), strict=True):
                for n, later in _levels(reference, self.depth):
                    bounds = _bounds(reference, n, later)
                    level = f"1/{n} later" if later else f"1/{n}"
                    for j, m in enumerate(_sizes(reference, n, later, self.divisor).tolist()):
                        place = f"channel {channel}, {what} {bounds[j]}-{bounds[j + 1] - 1} ({level})"
                        names += [f"{place}, quantile {q + 1} of {m}" for q in range(m)]
        return np.array(names, dtype=object)


def _runs(start: int, stop: int, starts: Indices) -> Iterator[tuple[int, int]]:
    """Yield ranges that cover ``range(start, stop)``, none with one of `starts` inside."""
    inside = starts[(starts > start) & (starts < stop)].tolist()
    yield from zip([start, *inside], [*inside, stop], strict=True)


def _lengths(length: int) -> tuple[int, int, int, int]:
    """Return the lengths of the four derived series of a series of `length` points."""
    return length, max(1, length - 1), max(1, length - 2), length // 2 + 1


def _derived(X: Numbers, reference: int) -> Iterator[Numbers]:
    """Yield the four derived series of the rows of `X` (n, T), float64."""
    length = X.shape[1]
    yield X
    difference = np.diff(X, axis=1) if length > 1 else np.zeros((len(X), 1))
    padded = np.pad(difference, ((0, 0), (2, 2)), mode="edge")
    n = difference.shape[1]
    yield (padded[:, :n] + padded[:, 1 : n + 1] + difference + padded[:, 3 : n + 3] + padded[:, 4:]) / 5
    yield np.diff(difference, axis=1) if length > 2 else np.zeros((len(X), 1))
    waves = np.fft.rfft(X, axis=1)
    yield np.sqrt(waves.real**2 + waves.imag**2) * (reference / length)  # not abs(), which has other bits elsewhere


class Cuts(NamedTuple):
    """The intervals of a series; see `_fill_quantiles`. `points` are its time points, repeated if they are too few."""

    points: Indices
    owner: npt.NDArray[np.int32]
    bounds: Indices
    sizes: Indices


def _levels(reference: int, depth: int) -> Iterator[tuple[int, bool]]:
    """Yield (number of intervals, whether they begin half an interval later) for series of `reference` points."""
    for level in range(min(depth, reference.bit_length())):
        n = 1 << level
        yield n, False
        widths = np.sort(np.diff(_bounds(reference, n, False)))
        if n > 1 and widths[(n - 1) // 2] > 1:
            yield n, True


def _bounds(length: int, n: int, later: bool) -> Indices:
    """Return the first points of the intervals of a series of `length` points, and the end of the last interval."""
    bounds = np.arange(n + 1) * length // n
    return bounds[:-1] + -(-length // (2 * n)) if later else bounds


def _sizes(reference: int, n: int, later: bool, divisor: int) -> Indices:
    return 1 + (np.diff(_bounds(reference, n, later)) - 1) // divisor


@lru_cache(64)
def _n_features(length: int, depth: int, divisor: int) -> int:
    return sum(int(_sizes(m, *level, divisor).sum()) for m in _lengths(length) for level in _levels(m, depth))


@lru_cache(64)
def _cuts(length: int, reference: int, depth: int, divisor: int) -> Cuts:
    """Return the intervals of a derived series of `length` points, as many as those of `reference` points have."""
    levels = [*_levels(reference, depth)]
    most = levels[-1][0]
    points = np.arange(max(length, most)) * length // max(length, most)
    owner = np.empty((len(levels), len(points)), np.int32)
    bounds, sizes = np.zeros((2, len(levels), most + 1), np.int64)
    for r, level in enumerate(levels):
        ends = _bounds(len(points), *level)
        bounds[r, : len(ends)] = ends
        owner[r] = len(ends) - 1
        for j in range(len(ends) - 1):
            owner[r, ends[j] : ends[j + 1]] = j
        found = _sizes(reference, *level, divisor)
        sizes[r, : len(found)] = found
    return Cuts(points, owner, bounds, sizes)


@njit()
def _fill_quantiles(values, order, owner, bounds, sizes, out):  # type: ignore[no-untyped-def]
    """Fill `out` (n, n_features) with the quantiles of the intervals of n series of T points.

    For each level, the values of a series are appended, smallest first, to the intervals that they belong to. The
    intervals are then sorted, too, so sorting a series once gives the quantiles of all intervals.

    `values` (n, T) holds the series, `order` (n, T) their time points sorted by value. ``owner[r, t]`` is the number of
    the interval of level r that contains time point t; if there is none, it is the number of intervals of the level.
    ``bounds[r]`` holds the first point of each interval, then the end of the last one; ``sizes[r]`` holds the number of
    quantiles of each interval, then 0.
    """
    n, length = values.shape
    dealt = np.empty(2 * length, values.dtype)  # values outside of all intervals come last
    place = np.empty(bounds.shape[1], np.int64)
    ranked = np.empty(length, values.dtype)
    for i in range(n):
        for rank in range(length):
            ranked[rank] = values[i, order[i, rank]]
        column = 0
        for r in range(len(bounds)):
            place[:] = bounds[r]
            for rank in range(length):
                j = owner[r, order[i, rank]]
                dealt[place[j]] = ranked[rank]
                place[j] += 1
            j = 0
            while sizes[r, j]:
                part = dealt[bounds[r, j] : bounds[r, j + 1]]
                stop = column + sizes[r, j]
                _quantiles(part, out[i, column:stop])
                column = stop
                j += 1


@njit()
def _quantiles(ranked, out):  # type: ignore[no-untyped-def]
    """Fill `out` with equidistant quantiles of sorted numbers, subtracting the mean from every second one.

    A single quantile is the median.
    """
    last, steps = len(ranked) - 1, len(out) - 1
    if steps == 0:
        out[0] = (np.float64(ranked[last // 2]) + ranked[(last + 1) // 2]) / 2
        return
    total = 0.0
    for value in ranked:
        total += value
    mean = total / (last + 1)
    for q in range(steps + 1):
        below = q * last // steps
        share = (q * last - below * steps) / steps
        low = np.float64(ranked[below])
        high = ranked[min(below + 1, last)]
        out[q] = low + (high - low) * share - (mean if q % 2 else 0.0)
