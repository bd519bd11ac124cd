"""Time series of one length as vectors: the values of all time points and channels, one after the other."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from similia.core.fitting import all_at_once
from similia.core.text import counted
from similia.core.transformers import Transformer
from similia.objects.series import SeriesBatch, as_series
from similia.sources.lazily import lazily, refuse_lazy


class SeriesVectors(Transformer):
    """Turn time series that are all of one length into vectors.

    Attributes
    ----------
    length_ : int
        Time points of a series.
    n_channels_ : int

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
        """Learn the length and number of channels; `y` is ignored.

        Parameters
        ----------
        X : collection of n series of one length
        y : ignored

        Returns
        -------
        SeriesVectors
            The fitted estimator itself.

        Raises
        ------
        ValueError
            If series have different lengths.
        """
        refuse_lazy(X, "lengths are compared; fit to some of the series")
        batch = as_series(X)
        self.length_, self.n_channels_ = int(batch.lengths[0]), batch.n_dims
        self._check(batch)
        self._n_features_out = self.length_ * self.n_channels_
        return self

    @lazily
    def transform(self, X: Any) -> npt.NDArray[np.floating]:
        """Return the series as vectors, shape (n, `length_` * `n_channels_`); raises for another length."""
        check_is_fitted(self)
        batch = as_series(X)
        self._check(batch)
        return batch.values.reshape(len(batch), -1)

    def _check(self, batch: SeriesBatch) -> None:
        other = batch.lengths != self.length_
        if other.any() or batch.n_dims != self.n_channels_:
            i = int(np.argmax(other))
            raise ValueError(
                f"X[{i}] has {counted(batch.lengths[i], 'time point')} and {counted(batch.n_dims, 'channel')}, "
                f"expected {self.length_} and "
                f"{self.n_channels_} as in fit; series of different lengths are for similia.D2KE with DTW()"
            )
