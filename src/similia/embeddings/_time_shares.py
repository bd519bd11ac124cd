"""How a sum of columns is split over time: the base of the embeddings of series by convolutions and intervals.

A feature is a statistic of the outputs of a convolution, or of the values of an interval. Its amount (see
`TimeShares.time_shares`) is first divided among these outputs. They are computed by the functions that `transform`
uses, so the same outputs are positive and the same kernels win. Features of one convolution read the same points, so
their amounts are divided among these together.

Cost: linear in the number of outputs and of features. 50,000 features of MultiRocket and 500 points take 0.3 s.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.estimators import Transformer, check_fitted
from similia.core.jit import njit
from similia.core.state import array, state
from similia.core.text import counted
from similia.objects.series import SeriesBatch, as_series

Floats = npt.NDArray[np.float64]


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
        Each column is a statistic of the outputs of a convolution, or of the values of an interval. The difference of
        the column from its centre, times its weight, is an amount, which is divided in two steps. First, it is divided
        equally among some of the outputs (or values):

        - if the column is the share of positive outputs: among the positive outputs if the share is above the centre,
          otherwise among the other outputs. The same holds for the outputs that win or lose in a group of `Hydra`, and
          for those in the longest stretch of positive outputs (the first, if several are longest);
        - if it is the mean excess or the mean position of positive outputs: among the positive outputs, or among all
          outputs if none is positive;
        - if it is a quantile: among all values of its interval.

        Second, the part of an output is divided among the points that the output depends on, in proportion to how far
        the value of each is from the mean of these values in its channel (equally if none differs from it). A Fourier
        coefficient is divided equally among all points. In `RandomConvolutions` and `Hydra`, a first difference passes
        half of its part to each of its points.

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
