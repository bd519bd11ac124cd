"""Time series: from the collections that users have to one `SeriesBatch`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.text import _short, counted
from similia.objects._vectors import SeriesBatch
from similia.objects.sequences import at_least_one
from similia.objects.series_forms import check_finite, collection, joined, read_each
from similia.objects.tables import wide_series

_AXES = ("time, channel", "channel, time")
_PLACE = "series {i}, time point {place}, channel {column}"


def as_series(X: Any, *, axes: str | None = None) -> SeriesBatch:
    """Return a collection of time series as a `SeriesBatch`.

    Parameters
    ----------
    X : sequence of n series
        One of

        - a list, tuple or object array of arrays (or lists of numbers) of shape ``(length,)`` or
          ``(length, n_channels)``, whose lengths may differ;
        - a pandas or polars Series of lists or arrays, an Arrow list array, or a data frame of one such column;
        - a 2-D array ``(n, length)``: n series of one channel. One series x of shape ``(length, n_channels)`` is
          written ``[x]``: nothing tells it from n series of one channel;
        - a wide data frame of numbers, one series of one channel in each row;
        - a 3-D array, the order of whose axes must be said by `axes`;
        - a `SeriesBatch`, which is returned as it is.

        In 2-D and 3-D arrays, NaN in all channels from some time point to the end is padding and left out.
    axes : {"time, channel", "channel, time"}, optional
        Order of the last two axes. tslearn keeps ``(n, length, n_channels)``, which is ``"time, channel"``; aeon
        and sktime keep ``(n, n_channels, length)``, which is ``"channel, time"``. A 3-D array needs it: both orders
        are common, and a wrong guess would be silent. 2-D arrays in a list are ``"time, channel"`` if it is not given.

    Returns
    -------
    SeriesBatch
        Of length n; float32 if all series are float32 (or float16), otherwise float64. `X` is not changed.

    Raises
    ------
    TypeError
        If `X` is one series, a table of anything else (for long ones there is `series_from_long`) or no sequence, or
        if an item holds no real numbers.
    ValueError
        If `X` is empty, or a table that may be long or wide; if a series has length 0, holds NaN or infinity or has
        another number of channels than the first; or if `axes` is wrong or missing. The sentence names the series.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.objects import as_series
    >>> batch = as_series([[1.0, 2.0, 3.0], [4.0, 5.0]])
    >>> batch, batch.lengths, batch[1]
    (<SeriesBatch of 2 objects>, array([3, 2]), array([[4.], [5.]]))

    Three series of six channels and at most 50 time points:

    >>> X = np.zeros((3, 6, 50), dtype=np.float32)
    >>> X[2, :, 40:] = np.nan
    >>> batch = as_series(X, axes="channel, time")
    >>> batch.lengths, batch.n_dims, batch.values.dtype
    (array([50, 50, 40]), 6, dtype('float32'))
    """
    if axes not in (None, *_AXES):
        raise ValueError(f"axes must be {_AXES[0]!r} or {_AXES[1]!r}, got {axes!r}")
    if not isinstance(X, SeriesBatch):
        X = collection(wide_series(X) if axes is None else X, "series")
        at_least_one(X)
        X = _from_array(X, axes) if isinstance(X, np.ndarray) and X.ndim > 1 else _from_each(X, axes)
        check_finite(X.values, X.offsets, _PLACE)
    at_least_one(X)
    return X


def series_from_long(
    frame: Any, *, id: str, time: str, values: str | Sequence[str]
) -> tuple[SeriesBatch, npt.NDArray[Any]]:
    """Return the time series of a long table, one row for each series and time point.

    Parameters
    ----------
    frame : pandas or polars DataFrame, or Arrow table
        Rows may come in any order.
    id : str
        Column that names the series of a row: numbers, strings, categories, dates.
    time : str
        Column by which the rows of a series are sorted: numbers or dates. Only the order counts: distances
        between time points are not used.
    values : str or sequence of str
        One column for each channel.

    Returns
    -------
    series : SeriesBatch
        One series for each id, in order of first appearance; float32 if all value columns are.
    ids : ndarray, shape (n,)
        The id of each series.

    Raises
    ------
    TypeError
        If `frame` is no table, times are neither numbers nor dates, or values are not real numbers.
    ValueError
        If the table is empty, a column does not exist, an id, time or value is missing or infinite, or a series
        has two rows at one time. The sentence names the row (counted from 0).

    Examples
    --------
    >>> import pandas as pd
    >>> from similia.objects import series_from_long
    >>> frame = pd.DataFrame({"who": ["b", "a", "b"], "t": [2, 1, 1], "x": [0.2, 0.5, 0.1]})
    >>> series, ids = series_from_long(frame, id="who", time="t", values="x")
    >>> ids, series[0].ravel()
    (array(['b', 'a'], dtype=object), array([0.1, 0.2]))
    """
    names = [values] if isinstance(values, str) else list(values)
    if not names:
        raise ValueError("values is empty, expected the name of one column for each channel")
    ids, times = (_column(frame, name) for name in (id, time))
    at_least_one(ids, "the table")
    codes, firsts = _numbered(ids, id)
    ranks = _sortable(times, time)
    channels = [_floats(_column(frame, name), name) for name in names]
    order = np.lexsort((ranks, codes))
    same = np.flatnonzero((np.diff(codes[order]) == 0) & (ranks[order][1:] == ranks[order][:-1]))
    if len(same):
        one, two = order[same[0]], order[same[0] + 1]
        raise ValueError(
            f"rows {one} and {two} are both of {id} {ids[one]} at {time} {times[one]}, expected "
            "one row for each series and time; drop or average repeated rows"
        )
    offsets = np.concatenate(([0], np.cumsum(np.bincount(codes)))).astype(np.int64)
    return SeriesBatch(np.column_stack(channels)[order], offsets), ids[firsts]


def _from_array(X: npt.NDArray, axes: str | None) -> SeriesBatch:
    """Return the series of a rectangular array, without the padding at their ends."""
    if X.ndim == 2:
        if axes is not None:
            raise ValueError(
                f"X is a 2-D array of shape {X.shape}, {len(X)} series of one channel, for which axes means nothing; "
                "leave it out, or write X[None] if X is one series of several channels"
            )
        X = X[:, :, None]
    elif X.ndim != 3:
        raise ValueError(f"X is an array of shape {X.shape}, expected 2 or 3 axes")
    elif axes is None:
        raise ValueError(
            f"X is a 3-D array of shape {X.shape}, which may be two things; write as_series(X, axes='time, channel') "
            "for (n, length, n_channels), as tslearn has it, or axes='channel, time' for (n, n_channels, length), as "
            "aeon and sktime have it"
        )
    X = X.swapaxes(1, 2) if axes == _AXES[1] else X
    if 0 in X.shape[1:]:
        raise ValueError(f"X is an array of shape {X.shape} (series, time, channel): its series are empty")
    X = X.astype(_float_type(X.dtype), copy=False)
    present = ~np.isnan(X).all(axis=2)
    lengths = X.shape[1] - np.argmax(present[:, ::-1], axis=1)
    lengths[~present.any(axis=1)] = 0
    if lengths.min() == 0:
        raise ValueError(f"series {int(lengths.argmin())} is all NaN (padding), expected at least one time point")
    values = np.ascontiguousarray(X[np.arange(X.shape[1]) < lengths[:, None]])
    return SeriesBatch(values, np.concatenate(([0], np.cumsum(lengths))).astype(np.int64))


def _from_each(X: Any, axes: str | None) -> SeriesBatch:
    """Return the series of a collection of arrays."""
    arrays = read_each(X, "series")
    for i, array in enumerate(arrays):
        if array.ndim > 2 or array.size == 0:
            what = "2-D (length, n_channels) or 1-D" if array.size else "at least one time point and one channel"
            raise ValueError(f"series {i} has shape {array.shape}, expected {what}")
        if array.ndim == 1:
            arrays[i] = array[:, None]
        elif axes == _AXES[1]:
            arrays[i] = array.T
        if arrays[i].shape[1] != arrays[0].shape[1]:
            raise ValueError(
                f"series {i} has {counted(arrays[i].shape[1], 'channel')} and series 0 has {arrays[0].shape[1]}, "
                f"expected one number of channels; arrays (n_channels, length) need as_series(X, axes={_AXES[1]!r})"
            )
    return SeriesBatch(*joined(arrays, _float_type(*{array.dtype for array in arrays})))


def _float_type(*dtypes: np.dtype) -> type[np.floating]:
    single = all(dtype.kind == "f" and dtype.itemsize <= 4 for dtype in dtypes)
    return np.float32 if single else np.float64


def _column(frame: Any, name: str) -> npt.NDArray[Any]:
    """Return a column of a table as a 1-D array."""
    names = None
    if hasattr(frame, "__len__"):  # not a lazy frame, which warns when asked for its columns
        names = getattr(frame, "column_names", getattr(frame, "columns", None))  # Arrow, the others
    if names is None:
        raise TypeError(f"expected a pandas or polars DataFrame or an Arrow table, got {type(frame).__name__}")
    if list(names).count(name) != 1:
        found = "several columns" if name in list(names) else "no column"
        known = ", ".join(map(_short, list(names)[:10]))
        raise ValueError(f"the table has {found} {_short(name)}; its columns are {known}")
    return np.asarray(frame[name])


def _is_missing(value: Any) -> bool:
    return (
        value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)
    )


def _first_missing(column: npt.NDArray[Any]) -> int | None:
    """Return the first row that holds None, NaN, NaT or NA, or None if none does."""
    missing = (
        np.array([_is_missing(value) for value in column])
        if column.dtype == object
        else column != column  # true of NaN and NaT
    )
    return int(missing.argmax()) if missing.any() else None


def _refuse_missing(column: npt.NDArray[Any], name: str, hint: str) -> None:
    row = _first_missing(column)
    if row is not None:
        raise ValueError(f"row {row} of column {name!r} is missing ({column[row]}); {hint}")


def _numbered(column: npt.NDArray[Any], name: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the number of each row's id, in order of first appearance, and the row where each id appears first."""
    _refuse_missing(column, name, "every row needs the id of its series")
    number: dict[Any, int] = {}
    codes = np.array([number.setdefault(value, len(number)) for value in column.tolist()])
    return codes, np.unique(codes, return_index=True)[1]


def _sortable(column: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    """Return numbers that sort as the times do."""
    _refuse_missing(column, name, "every row needs a time")
    if column.dtype.kind in "SUT" or (column.dtype == object and isinstance(column[0], str | bytes)):
        raise TypeError(
            f"column {name!r} holds text ({_short(column.tolist()[0])}), expected numbers or dates; convert it, "
            "since text sorts '10' before '9'"
        )
    if column.dtype != object:
        return column
    try:
        rank = {value: i for i, value in enumerate(sorted(set(column)))}
    except TypeError as error:
        raise TypeError(f"column {name!r} holds times that cannot be compared: {error}") from None
    return np.array([rank[value] for value in column])


def _floats(column: npt.NDArray[Any], name: str) -> npt.NDArray[np.floating]:
    """Return a column of finite values."""
    _refuse_missing(column, name, "drop the row or interpolate")
    if column.dtype == object:  # numbers that pandas or Arrow keep as Python objects
        column = np.array(column.tolist(), dtype=None if np.isscalar(column[0]) else object)
    if column.dtype.kind not in "fiub":
        raise TypeError(f"column {name!r} holds {_short(column.tolist()[0])}, expected real numbers")
    column = column.astype(_float_type(column.dtype), copy=False)
    if np.isinf(column).any():
        raise ValueError(
            f"row {int(np.isinf(column).argmax())} of column {name!r} is infinite, expected finite numbers"
        )
    return column
