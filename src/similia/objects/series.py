"""Convert collections of time series in many forms to a `SeriesBatch`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.text import counted, short
from similia.core.validation import BadType, BadValue, check_choice
from similia.objects.sequences import at_least_one, offsets_of
from similia.objects.tables import is_missing, objects_in, wide_series
from similia.objects.vectors import VectorsBatch, check_finite, collection, numbers, read_each

_AXES = ("time, channel", "channel, time")


class SeriesBatch(VectorsBatch):
    """A collection of time series: object i is an array of shape (length, n_channels), in order of time.

    Attributes
    ----------
    values : ndarray of float32 or float64, shape (total_length, n_channels)
        All time points, one series after the other.
    offsets : ndarray of int64, shape (n + 1,)
        Series i is ``values[offsets[i]:offsets[i + 1]]``; no series is empty.
    """

    kind = "series"

    def _check(self) -> None:
        super()._check()
        if len(self) and self.lengths.min() == 0:
            raise BadValue(int(self.lengths.argmin()), "has length 0", "at least one time point", kind="series")


def as_series(X: Any, *, axes: str | None = None) -> SeriesBatch:
    """Return a collection of time series as a `SeriesBatch`.

    Parameters
    ----------
    X : sequence of n series
        One of

        - a list, tuple or object array of arrays (or lists of numbers) of shape ``(length,)`` or
          ``(length, n_channels)``, whose lengths may differ;
        - a pandas or polars Series of lists or arrays, an Arrow list array, or a data frame of one such column;
        - a 2-D array ``(n, length)`` or a wide data frame of numbers: n series of one channel. Pass a single series x
          of several channels as ``[x]``;
        - a 3-D array, which requires `axes`;
        - a `SeriesBatch`, which is returned unchanged.

        In 2-D and 3-D arrays, trailing time points that are NaN in all channels are padding and are left out.
    axes : {"time, channel", "channel, time"}, optional
        Order of the axes of one series: ``"time, channel"`` as in tslearn, or ``"channel, time"`` as in aeon and
        sktime. Required if `X` is a 3-D array, since a wrong guess would go unnoticed. If `X` is a list of 2-D arrays,
        the default is ``"time, channel"``.

    Returns
    -------
    SeriesBatch
        A batch of n series; its values are float32 if all series are float32 or float16, otherwise float64. `X` is not
        changed.

    Raises
    ------
    TypeError
        If `X` is not a sequence; if it is a single series of one channel; if it is a table of several columns, some of
        which do not hold numbers; or if a series does not hold real numbers.
    ValueError
        If `X` or a series is empty; if a series holds NaN or infinity; if the series differ in their number of
        channels; or if `axes` is invalid or missing. Also if a table of numbers has only one column, or a column such
        as "time" or "id": such a table probably has one row for each time point, and `series_from_long` reads these
        long tables. The message names the series.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.objects import as_series
    >>> batch = as_series([[1.0, 2.0, 3.0], [4.0, 5.0]])
    >>> batch, batch.lengths, batch[1]
    (<SeriesBatch of 2 objects>, array([3, 2]), array([[4.], [5.]]))
    >>> X = np.zeros((3, 6, 50), dtype=np.float32)  # three series of six channels
    >>> X[2, :, 40:] = np.nan
    >>> as_series(X, axes="channel, time").lengths
    array([50, 50, 40])
    """
    check_choice(axes, "axes", (*_AXES, None))
    if not isinstance(X, SeriesBatch):
        X = collection(wide_series(X) if axes is None else objects_in(X), "series")
        at_least_one(X)
        X = _from_array(X, axes) if isinstance(X, np.ndarray) and X.ndim > 1 else _from_each(X, axes)
        check_finite(X, "series")
    at_least_one(X)
    return X


def series_from_long(
    frame: Any, *, id: str, time: str, values: str | Sequence[str]
) -> tuple[SeriesBatch, npt.NDArray[Any]]:
    """Return the time series of a long table, which has one row for each series and time point.

    Parameters
    ----------
    frame : pandas or polars DataFrame, or Arrow table
        Rows may come in any order.
    id : str
        Name of the column (numbers, strings, categories or dates) that identifies the series of each row.
    time : str
        Name of the column (numbers or dates) by which the rows of a series are sorted. Only the order of the times
        matters.
    values : str or sequence of str
        Names of the columns with the values, one for each channel.

    Returns
    -------
    series : SeriesBatch
        One series for each id, in the order in which the ids first appear. Values are float32 if all value columns are
        float32 or float16, otherwise float64.
    ids : ndarray, shape (n,)
        The id of each series.

    Raises
    ------
    TypeError
        If `frame` is not a table, times are neither numbers nor dates, or values are not real numbers.
    ValueError
        If a column does not exist, if an id, time or value is missing, if a value is infinite, or if a series has two
        rows with the same time. The message gives the row, counted from 0.

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
    return SeriesBatch(np.column_stack(channels)[order], offsets_of(np.bincount(codes))), ids[firsts]


def from_aeon(X: Any) -> SeriesBatch:
    """Convert time series from the formats of the library aeon, which put channels before time points.

    Parameters
    ----------
    X : array or sequence of n series
        One of

        - "numpy3D": an array ``(n, n_channels, length)``;
        - "np-list": a list of arrays ``(n_channels, length)``, not padded;
        - "df-list": a list of pandas frames ``(n_channels, length)``, not padded;
        - "numpy2D" and "pd-wide": an array or a frame ``(n, length)`` of one channel;
        - any other format that `from_sktime` reads.

    Returns
    -------
    SeriesBatch
        Series without padding: trailing time points that are NaN in all channels are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.objects.series import from_aeon
    >>> batch = from_aeon([np.zeros((2, 50)), np.zeros((2, 40))])
    >>> batch.lengths, batch.n_dims
    (array([50, 40]), 2)
    """
    if _is_frames(X):
        return as_series([_table(i, frame) for i, frame in enumerate(X)], axes="channel, time")
    if hasattr(X, "columns"):
        return from_sktime(X)
    if isinstance(X, np.ndarray) and X.ndim == 2:
        return as_series(X)
    return as_series(X, axes="channel, time")


def from_sktime(X: Any) -> SeriesBatch:
    """Convert time series from the formats of the library sktime for panels (collections of series).

    Parameters
    ----------
    X : panel of n series
        One of

        - "nested_univ": a pandas frame of n rows whose cells are series, one column for each channel;
        - "pd-multiindex": a pandas frame with an index (instance, time), one column for each channel;
        - "df-list": a list of pandas frames ``(length, n_channels)``;
        - "numpy3D": an array ``(n, n_channels, length)``;
        - "numpyflat" and "pd-wide": an array or a frame of numbers ``(n, length)``, one channel.

    Returns
    -------
    SeriesBatch
        Series in the order of `X`; for "pd-multiindex", in the order in which the instances first appear.

    Examples
    --------
    >>> import pandas as pd
    >>> from similia.objects.series import from_sktime
    >>> nested = pd.DataFrame({"pulse": [pd.Series([1.0, 2.0, 3.0]), pd.Series([4.0, 5.0])]})
    >>> from_sktime(nested).lengths
    array([3, 2])
    """
    if _is_frames(X):
        return as_series([_table(i, frame) for i, frame in enumerate(X)])
    if not hasattr(X, "columns"):
        return from_aeon(X)
    if not hasattr(X, "index"):
        raise BadType(None, f"is {type(X).__name__} of {type(X).__module__}", "a pandas frame", "use .to_pandas()")
    at_least_one(X)
    levels = getattr(X.index, "nlevels", 1)
    if levels == 2:
        names = [f"column {i}" for i in range(X.shape[1])]
        frame = X.set_axis(names, axis=1).reset_index(names=["instance", "time"])
        return series_from_long(frame, id="instance", time="time", values=names)[0]
    if levels > 2:
        raise BadType(None, f"has an index of {levels} levels", "two: instance and time")
    if X.shape[1] and {dtype.kind for dtype in X.dtypes} == {"O"}:
        return as_series([_row(i, cells) for i, cells in enumerate(X.itertuples(index=False, name=None))])
    return as_series(np.asarray(X))


def from_tslearn(X: Any) -> SeriesBatch:
    """Convert time series from the format of the library tslearn: time before channels, padded with NaN.

    Parameters
    ----------
    X : array or sequence of n series
        An array ``(n, longest length, n_channels)``, as from ``tslearn.utils.to_time_series_dataset``; an array
        ``(n, length)`` of one channel; or a list of arrays ``(length, n_channels)``, padded or not.

    Returns
    -------
    SeriesBatch
        Series without padding: trailing time points that are NaN in all channels are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.objects.series import from_tslearn
    >>> X = np.array([[[1.0], [2.0], [3.0]], [[4.0], [5.0], [np.nan]]])
    >>> from_tslearn(X).lengths
    array([3, 2])
    """
    if isinstance(X, np.ndarray) and X.ndim != 1:
        return as_series(X, axes="time, channel" if X.ndim == 3 else None)
    if isinstance(X, list | tuple) or (isinstance(X, np.ndarray) and X.dtype == object):
        X = [_unpadded(numbers(x, i, "series")) for i, x in enumerate(X)]
    return as_series(X)


def _from_array(X: npt.NDArray, axes: str | None) -> SeriesBatch:
    if X.ndim == 2:
        if axes is not None:
            raise BadValue(
                None,
                f"is a 2-D array of shape {X.shape}, that is {len(X)} series of one channel, so axes does not apply",
                remedy="leave axes out, or write X[None] if X is one series of several channels",
            )
        X = X[:, :, None]
    elif X.ndim != 3:
        raise BadValue(None, f"is an array of shape {X.shape}", "2 or 3 axes")
    elif axes is None:
        raise BadValue(
            None,
            f"is a 3-D array of shape {X.shape}, whose axes have two common orders",
            remedy="write as_series(X, axes='time, channel') for (n, length, n_channels), as in tslearn, or "
            "axes='channel, time' for (n, n_channels, length), as in aeon and sktime",
        )
    X = X.swapaxes(1, 2) if axes == _AXES[1] else X
    if 0 in X.shape[1:]:
        raise BadValue(None, f"is an array of shape {X.shape} (series, time, channel): its series are empty")
    X = X.astype(_float_type(X.dtype), copy=False)
    present = ~np.isnan(X).all(axis=2)
    lengths = X.shape[1] - np.argmax(present[:, ::-1], axis=1)
    lengths[~present.any(axis=1)] = 0
    if lengths.min() == 0:
        raise BadValue(int(lengths.argmin()), "is all NaN (padding)", "at least one time point", kind="series")
    values = np.ascontiguousarray(X[np.arange(X.shape[1]) < lengths[:, None]])
    return SeriesBatch(values, offsets_of(lengths))


def _from_each(X: Any, axes: str | None) -> SeriesBatch:
    arrays = read_each(X, "series")
    for i, array in enumerate(arrays):
        if array.ndim > 2 or array.size == 0:
            what = "2-D (length, n_channels) or 1-D" if array.size else "at least one time point and one channel"
            raise BadValue(i, f"has shape {array.shape}", what, kind="series")
        if array.ndim == 1:
            arrays[i] = array[:, None]
        elif axes == _AXES[1]:
            arrays[i] = array.T
        if arrays[i].shape[1] != arrays[0].shape[1]:
            raise BadValue(
                i,
                f"has {counted(arrays[i].shape[1], 'channel')} and {{other}} has {arrays[0].shape[1]}",
                "the same number of channels in all series",
                f"arrays (n_channels, length) need as_series(X, axes={_AXES[1]!r})",
                kind="series",
                other=0,
            )
    return SeriesBatch.from_arrays(arrays, _float_type(*{array.dtype for array in arrays}))


def _float_type(*dtypes: np.dtype) -> type[np.floating]:
    single = all(dtype.kind == "f" and dtype.itemsize <= 4 for dtype in dtypes)
    return np.float32 if single else np.float64


def _column(frame: Any, name: str) -> npt.NDArray[Any]:
    names = None
    if hasattr(frame, "__len__"):  # lazy frames warn when asked for their columns
        names = getattr(frame, "columns", None)
        if not hasattr(frame, "iloc"):  # a pandas frame may have a column "column_names"
            names = getattr(frame, "column_names", names)  # of Arrow
    if names is None:
        raise TypeError(f"expected a pandas or polars DataFrame or an Arrow table, got {type(frame).__name__}")
    if list(names).count(name) != 1:
        found = "several columns" if name in list(names) else "no column"
        known = ", ".join(map(short, list(names)[:10]))
        raise ValueError(f"the table has {found} {short(name)}; its columns are {known}")
    return np.asarray(frame[name])


def _refuse_missing(column: npt.NDArray[Any], name: str, hint: str) -> None:
    missing = np.array([is_missing(value) for value in column]) if column.dtype == object else column != column
    if missing.any():
        row = int(missing.argmax())
        raise ValueError(f"row {row} of column {name!r} is missing ({column[row]}); {hint}")


def _numbered(column: npt.NDArray[Any], name: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Number the ids in order of first appearance; return (number of each row's id, first row of each id)."""
    _refuse_missing(column, name, "every row needs the id of its series")
    number: dict[Any, int] = {}
    codes = np.array([number.setdefault(value, len(number)) for value in column.tolist()])
    return codes, np.unique(codes, return_index=True)[1]


def _sortable(column: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    """Return a column of times, or the ranks of its values if they are Python objects; raise if they are text."""
    _refuse_missing(column, name, "every row needs a time")
    if column.dtype.kind in "SUT" or (column.dtype == object and isinstance(column[0], str | bytes)):
        raise TypeError(
            f"column {name!r} holds text ({short(column.tolist()[0])}), expected numbers or dates; convert it, "
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
    _refuse_missing(column, name, "drop the row or interpolate")
    if column.dtype == object:  # pandas and Arrow may store numbers as Python objects
        column = np.array(column.tolist(), dtype=None if np.isscalar(column[0]) else object)
    if column.dtype.kind not in "fiub":
        raise TypeError(f"column {name!r} holds {short(column.tolist()[0])}, expected real numbers")
    column = column.astype(_float_type(column.dtype), copy=False)
    if np.isinf(column).any():
        raise ValueError(
            f"row {int(np.isinf(column).argmax())} of column {name!r} is infinite, expected finite numbers"
        )
    return column


def _is_frames(X: Any) -> bool:
    return isinstance(X, list | tuple) and len(X) > 0 and hasattr(X[0], "columns")


def _table(i: int, frame: Any) -> npt.NDArray[Any]:
    if not hasattr(frame, "columns"):
        raise BadType(i, f"is {type(frame).__name__} ({short(frame)}) among frames", "a frame")
    return np.asarray(frame)


def _row(i: int, cells: tuple[Any, ...]) -> npt.NDArray[Any]:
    """Return row i of a nested frame as a series, shape (length, n_channels); each cell is a channel."""
    channels = [np.asarray(cell) for cell in cells]
    for c, channel in enumerate(channels):
        if channel.ndim != 1:
            raise BadType(i, f"holds {short(cells[c])}", "a series in each cell", kind="row", place=f"column {c}")
        if len(channel) != len(channels[0]):
            found = f"has {len(channel)} time points in column {c} and {len(channels[0])} in column 0"
            raise BadValue(i, found, "one length", "resample its channels", kind="row")
    return np.column_stack(channels)


def _unpadded(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if array.dtype.kind != "f" or array.ndim not in (1, 2) or array.size == 0:
        return array
    present = np.flatnonzero(~np.isnan(array.reshape(len(array), -1)).all(axis=1))
    return array[: present[-1] + 1] if len(present) else array
