"""What the embeddings of series by convolutions and intervals share: a sum over columns, split by time."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from similia.core.estimators import Transformer
from similia.core.state import array, state
from similia.core.text import counted
from similia.objects.series import SeriesBatch, as_series

Floats = npt.NDArray[np.float64]


@state(may_lack=("length_range_",), length_range_=array("i8", 2))
class TimeShares(Transformer):
    """Base of embeddings of series whose columns are statistics over time.

    `fit` sets `length_range_`, which a model saved by an earlier version lacks.
    """

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
            What each time point of each channel adds. The sum is ``(transform(X)[0] - centre) @ weights`` up to the
            rounding of float32.

        Raises
        ------
        ValueError
            If `X` is not one series, or `weights` or `centre` are not one finite number for each column.

        Notes
        -----
        Each column is a statistic of the outputs of a convolution, or of the values of an interval. Its difference
        from the centre, times its weight, is its amount. An amount is first divided equally among outputs:

        - The share of positive outputs: among the positive ones if it is above the centre, among the others if it is
          below. The same holds for the wins of a kernel of `Hydra`, and for the longest stretch of positive outputs
          (the first, if several are as long).
        - The means of the excesses and of the places of positive outputs: among the positive outputs, or among all if
          there are none.
        - A quantile: among all values of its interval.

        What an output gets is then divided among the points of the series that it depends on. The points of a
        convolution get parts in proportion to their distances from their mean, or equal parts if all these distances
        are 0. The points of other outputs get equal parts.

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
        check_is_fitted(self)
        batch = as_series(X)
        if len(batch) != 1:
            raise ValueError(f"X has {len(batch)} series, expected one; give X[i : i + 1] for each")
        centre = np.zeros(self._n_features_out) if centre is None else centre
        return self._time_shares(batch, self._per_column(weights, "weights"), self._per_column(centre, "centre"))

    @abstractmethod
    def _time_shares(self, batch: SeriesBatch, weights: Floats, centre: Floats) -> Floats:
        """Return `time_shares` of a batch of one series."""

    def _per_column(self, values: npt.ArrayLike, name: str) -> Floats:
        """Return one number for each column, float64; raise if there are more or fewer, or if one is not finite."""
        found, width = np.asarray(values, dtype=np.float64), self._n_features_out
        if found.shape != (width,):
            raise ValueError(
                f"{name} has shape {found.shape}, expected one number for each of {counted(width, 'column')}"
            )
        if not np.isfinite(found).all():
            raise ValueError(
                f"{name} holds NaN or infinity at {int(np.argmin(np.isfinite(found)))}, expected finite numbers"
            )
        return found


def range_of(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the smallest and the largest length."""
    return np.array([lengths.min(), lengths.max()], dtype=np.int64)


def differences(x: npt.NDArray) -> npt.NDArray:
    """Return the first differences of a series (length, n_channels); those of a single point are one 0."""
    return np.diff(x, axis=0) if len(x) > 1 else np.zeros_like(x)


def of_points(amounts: Floats, length: int) -> Floats:
    """Return what each of `length` points adds if its `differences` add `amounts`: half of that of each difference."""
    if length == 1:
        return amounts
    out = np.zeros((length, amounts.shape[1]))
    out[1:] += amounts / 2
    out[:-1] += amounts / 2
    return out
