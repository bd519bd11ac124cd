"""Time series in the containers of aeon, sktime and tslearn, none of which is needed.

The three disagree in the order of axes, and an array does not tell: hence a function for each, which says what it
assumes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.text import _short
from similia.objects._vectors import SeriesBatch
from similia.objects.sequences import at_least_one
from similia.objects.series import as_series, series_from_long

_INSTANCE, _TIME = "instance", "time"


def from_aeon(X: Any) -> SeriesBatch:
    """Return time series as aeon keeps them: channels first.

    Parameters
    ----------
    X : array or sequence of n series
        One of aeon's collection types

        - "numpy3D": an array ``(n, n_channels, length)``;
        - "np-list": a list of arrays ``(n_channels, length)`` of any lengths; 1-D arrays have one channel;
        - "numpy2D" and "pd-wide": an array or frame ``(n, length)``, one channel;
        - "df-list", "nested_univ" and "pd-multiindex", which are sktime's: see `from_sktime`.

    Returns
    -------
    SeriesBatch
        Time points at the end of an array that are NaN in all channels are taken for padding and left out.

    Raises
    ------
    TypeError, ValueError
        As `as_series` does; the sentence names the series.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.objects.containers import from_aeon
    >>> batch = from_aeon(np.zeros((3, 2, 50)))
    >>> batch, batch.lengths, batch.n_dims
    (<SeriesBatch of 3 objects>, array([50, 50, 50]), 2)
    >>> from_aeon([np.zeros((2, 50)), np.zeros((2, 40))]).lengths
    array([50, 40])
    """
    if hasattr(X, "columns") or _is_frames(X):
        return from_sktime(X)
    if isinstance(X, np.ndarray) and X.ndim == 2:
        return as_series(X)
    return as_series(X, axes="channel, time")


def from_sktime(X: Any) -> SeriesBatch:
    """Return time series as sktime keeps them: a panel.

    Parameters
    ----------
    X : panel of n series
        One of sktime's types

        - "nested_univ": a pandas frame of n rows whose cells are series, one column for each channel;
        - "pd-multiindex": a pandas frame with an index of two levels, instance and time, one column for each channel;
        - "df-list": a list of frames ``(length, n_channels)``;
        - "numpy3D": an array ``(n, n_channels, length)``, channels first;
        - "numpyflat" and "pd-wide": an array or a frame of numbers ``(n, length)``, one channel.

    Returns
    -------
    SeriesBatch
        In the order of the rows, or of the first appearance of an instance.

    Raises
    ------
    TypeError
        If `X` is none of these, or holds no numbers.
    ValueError
        If `X` is empty, the channels of a row have different lengths, or a value is missing; the sentence names it.

    Examples
    --------
    >>> import pandas as pd
    >>> from similia.objects.containers import from_sktime
    >>> nested = pd.DataFrame({"pulse": [pd.Series([1.0, 2.0, 3.0]), pd.Series([4.0, 5.0])]})
    >>> from_sktime(nested).lengths
    array([3, 2])
    >>> index = pd.MultiIndex.from_tuples([("a", 0), ("a", 1), ("b", 0)])
    >>> from_sktime(pd.DataFrame({"pulse": [1.0, 2.0, 4.0]}, index=index)).lengths
    array([2, 1])
    """
    if not hasattr(X, "columns"):
        if _is_frames(X):
            return as_series([_table(i, frame) for i, frame in enumerate(X)])
        return as_series(X) if isinstance(X, np.ndarray) and X.ndim == 2 else as_series(X, axes="channel, time")
    if not hasattr(X, "index"):
        raise TypeError(f"X is {type(X).__name__} of {type(X).__module__}, expected a pandas frame; use .to_pandas()")
    at_least_one(X)
    levels = getattr(X.index, "nlevels", 1)
    if levels == 2:
        names = [f"column {i}" for i in range(X.shape[1])]
        frame = X.set_axis(names, axis=1).reset_index(names=[_INSTANCE, _TIME])
        return series_from_long(frame, id=_INSTANCE, time=_TIME, values=names)[0]
    if levels > 2:
        raise TypeError(f"X has an index of {levels} levels, expected two: instance and time")
    if X.shape[1] and {dtype.kind for dtype in X.dtypes} == {"O"}:
        return as_series([_row(i, cells) for i, cells in enumerate(X.itertuples(index=False, name=None))])
    return as_series(np.asarray(X))


def from_tslearn(X: Any) -> SeriesBatch:
    """Return time series as tslearn keeps them: time first, padded with NaN.

    Parameters
    ----------
    X : array or sequence of n series
        What ``tslearn.utils.to_time_series_dataset`` makes, an array ``(n, longest length, n_channels)``; an array
        ``(n, length)`` of one channel; or a list of arrays ``(length, n_channels)``, padded or not.

    Returns
    -------
    SeriesBatch
        Without the padding: time points at the end that are NaN in all channels.

    Raises
    ------
    TypeError, ValueError
        As `as_series` does; the sentence names the series.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.objects.containers import from_tslearn
    >>> X = np.array([[[1.0], [2.0], [3.0]], [[4.0], [5.0], [np.nan]]])
    >>> batch = from_tslearn(X)
    >>> batch.lengths, batch[1].ravel()
    (array([3, 2]), array([4., 5.]))
    """
    if isinstance(X, np.ndarray) and X.ndim != 1:
        return as_series(X, axes="time, channel" if X.ndim == 3 else None)
    if isinstance(X, list | tuple) or (isinstance(X, np.ndarray) and X.dtype == object):
        X = [_unpadded(x) for x in X]
    return as_series(X)


def _is_frames(X: Any) -> bool:
    return isinstance(X, list | tuple) and len(X) > 0 and hasattr(X[0], "columns")


def _table(i: int, frame: Any) -> npt.NDArray[Any]:
    if not hasattr(frame, "columns"):
        raise TypeError(f"X[{i}] is {type(frame).__name__} ({_short(frame)}) among frames, expected a frame")
    return np.asarray(frame)


def _row(i: int, cells: tuple[Any, ...]) -> npt.NDArray[Any]:
    """Return the series of one row of a nested frame, shape (length, n_channels)."""
    channels = [np.asarray(cell) for cell in cells]
    for c, channel in enumerate(channels):
        if channel.ndim != 1:
            raise TypeError(f"row {i}, column {c} holds {_short(cells[c])}, expected a series (a nested frame)")
        if len(channel) != len(channels[0]):
            raise ValueError(
                f"row {i} has {len(channel)} time points in column {c} and {len(channels[0])} in column 0, expected "
                "one length; resample its channels"
            )
    return np.column_stack(channels)


def _unpadded(x: Any) -> Any:
    """Return a series without the time points at its end that are NaN in all channels."""
    array = np.asarray(x)
    if array.dtype.kind != "f" or array.ndim not in (1, 2):
        return x
    present = np.flatnonzero(~np.isnan(array.reshape(len(array), -1)).all(axis=1))
    return array[: present[-1] + 1] if len(present) else array
