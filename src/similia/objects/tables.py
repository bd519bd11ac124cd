"""Read objects from data frames: one column holds the objects, or each row of a wide frame of numbers is a series.

This supports pandas, polars and Arrow without importing them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.text import short
from similia.core.validation import BadType, BadValue, column_names

_NUMBERS = "biufcmM"  # kinds of numpy: numbers and times
_ARROW_NUMBERS = ("int", "uint", "float", "double", "halffloat", "bool", "decimal", "date", "time", "duration")
_OF_LONG_TABLES = {"id", "ids", "time", "times", "t", "date", "datetime", "timestamp", "instance", "case", "series"}


def is_frame(X: Any) -> bool:
    """Return whether `X` is an Arrow table or a pandas or polars data frame; lazy and Dask frames do not count."""
    return hasattr(X, "columns") and len(getattr(X, "shape", ())) == 2 and not hasattr(X, "__dask_graph__")


def objects_in(X: Any, *, numbers: bool = False) -> Any:
    """If `X` is a one-column frame, or a one-column array of objects or texts, return the column; else return `X`.

    A frame with one column of numbers is a table of vectors and is returned as it is, unless `numbers` is true.
    """
    if isinstance(X, np.ndarray):
        return X[:, 0] if X.ndim == 2 and X.shape[1] == 1 and X.dtype.kind in "OSUT" else X
    if not is_frame(X) or X.shape[1] != 1:
        return X
    column = _columns(X)[0]
    return column if numbers or not _holds_numbers(column) else X


def without_none(X: Any, name: str = "X") -> Any:
    """Return `X`; raise if it is a list, tuple or object array that contains None."""
    if isinstance(X, list | tuple) or (isinstance(X, np.ndarray) and X.dtype.kind == "O"):
        for i, value in enumerate(X):
            if value is None:
                raise BadValue(i, "is missing (None)", remedy="drop what is missing", collection=name)
    return X


def wide_series(X: Any) -> Any:
    """If `X` is a data frame of numbers, return an array with one series in each row; otherwise ``objects_in(X)``.

    Raise if it may be a long table.
    """
    X = objects_in(X)
    if not is_frame(X) or getattr(getattr(X, "index", None), "nlevels", 1) > 1:
        return X
    if not holds_numbers(X):
        return X
    n, width = X.shape
    if width == 1:
        raise BadValue(
            None,
            f"is a table of one column of {n} numbers, which may be one series or {n} of one time point",
            remedy=f"write [X.to_numpy().ravel()] for one series, X.to_numpy() for {n}",
        )
    long = [name for name in map(str, column_names(X)) if name.lower() in _OF_LONG_TABLES]
    if long:
        raise BadValue(
            None,
            f"is a table with a column {long[0]!r}: it may have a row for each time point (a long table) or for each "
            "series",
            remedy="similia.objects.series_from_long reads a long table; otherwise drop the column",
        )
    return to_array(X)


def holds_numbers(X: Any) -> bool:
    return all(map(_holds_real_numbers, _columns(X)))


def to_array(X: Any) -> npt.NDArray[Any]:
    columns = _columns(X)
    if not columns:
        raise BadValue(None, "is a table without columns", "a column of objects, or columns of numbers")
    for name, column in zip(map(str, column_names(X)), columns, strict=True):
        if not _holds_real_numbers(column):
            raise BadType(
                None,
                f"is a table of {len(columns)} columns, and column {name!r} holds no numbers",
                remedy="select one column of objects, as in X[[name]], or columns of numbers "
                "(similia.objects.from_sktime takes nested tables)",
            )
    return np.column_stack([np.asarray(column) for column in columns])


def _columns(X: Any) -> list[Any]:
    if hasattr(X, "iloc"):
        return [X.iloc[:, i] for i in range(X.shape[1])]
    if hasattr(X, "get_columns"):  # polars
        return list(X.get_columns())
    return list(X.columns)  # Arrow


def _holds_numbers(column: Any) -> bool:
    """Return whether a column holds numbers, booleans or times."""
    dtype = getattr(column, "dtype", None)
    if dtype is None:
        return str(column.type).startswith(_ARROW_NUMBERS)
    if hasattr(dtype, "is_numeric"):  # polars
        return bool(dtype.is_numeric() or dtype.is_temporal() or str(dtype) == "Boolean")
    return getattr(dtype, "kind", "O") in _NUMBERS


def _holds_real_numbers(column: Any) -> bool:
    return _holds_numbers(column) and np.asarray(column).dtype.kind in "biuf"


def not_a_column(X: Any, what: str) -> BadType:
    names = list(map(str, column_names(X)))
    shown = ", ".join([*map(short, names[:3]), *(["..."] if len(names) > 3 else [])]) or "none"
    found = f"is a table of {len(names)} columns ({shown})"
    return BadType(None, found, f"one column of {what}", "select it, as in X[[name]]")


def is_missing(value: Any) -> bool:
    """Return whether a value is None, a float NaN, or the NaT or NA of pandas."""
    if isinstance(value, float | np.floating):
        return bool(value != value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")
