"""Strings: from the collections that users have to one `StringBatch`."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

import numpy as np

from similia.core.text import _short
from similia.objects._strings import StringBatch
from similia.objects.tables import is_frame, not_a_column, objects_in


def as_strings(X: Any) -> StringBatch:
    """Return a collection of strings as a `StringBatch`.

    Parameters
    ----------
    X : sequence of str, of bytes or of Biopython sequences
        List, tuple, numpy array (object, str, bytes or `StringDType`), pandas or polars Series,
        Arrow array (plain, large, dictionary-encoded, chunked), a data frame of one column, a Biopython
        alignment (its rows, gaps included) or a `StringBatch`, which is returned as it is. Of a Biopython ``Seq`` or
        ``SeqRecord`` the letters are taken. Strings are compared by Unicode code point (no normalisation), bytes
        by byte. Empty strings are objects like any other.

    Returns
    -------
    StringBatch
        Of length n. `X` is not changed.

    Raises
    ------
    TypeError
        If `X` is one string, not a sequence, has more than one axis, or an item is missing
        (None, NaN), not a string, bytes among str, or a sequence without known letters.
    ValueError
        If `X` is empty.

    Examples
    --------
    >>> from similia.objects import as_strings
    >>> batch = as_strings(["ACGT", "", "AC"])
    >>> batch
    <StringBatch of 3 objects>
    >>> batch[0], batch.offsets
    ('ACGT', array([0, 4, 4, 6]))
    """
    if not isinstance(X, StringBatch):
        X = StringBatch.from_list(_items(X))
    if len(X) == 0:
        raise ValueError("X is empty: found 0 strings, expected at least one")
    return X


def _items(X: Any) -> list[str] | list[bytes]:
    """Return the strings as a list that holds only str or only bytes."""
    X = objects_in(X, numbers=True)
    if is_frame(X):
        raise TypeError(not_a_column(X, "strings"))
    if isinstance(X, str | bytes | bytearray) or _is_biological(X):
        raise TypeError(f"X must be a collection of strings, got one {_short(X)}; write [x]")
    if isinstance(X, Mapping | Set | range) or not hasattr(X, "__len__") or not hasattr(X, "__getitem__"):
        raise TypeError(f"X must be an ordered collection of strings, got {type(X).__name__}; use a list")
    if hasattr(X, "coordinates") and hasattr(X, "sequences"):  # an alignment of Biopython, which has a shape
        X = [X[i] for i in range(len(X))]
    if len(getattr(X, "shape", (0,))) != 1:
        found = f"{type(X).__name__} of {X.dtype} and shape" if hasattr(X, "dtype") else f"{type(X).__name__} of shape"
        raise TypeError(f"X must be one column of strings, got {found} {X.shape}; select a column")
    items = _to_list(X)
    kinds = set(map(type, items))
    if kinds <= {str} or kinds <= {bytes}:
        return items
    return _checked(items)


def _to_list(X: Any) -> list:
    for method in ("to_pylist", "to_list", "tolist"):  # Arrow, pandas and polars, numpy
        if not isinstance(X, list | tuple) and hasattr(X, method):
            return list(getattr(X, method)())
    return list(X)


def _checked(items: list) -> list:
    """Return `items` with scalars of other libraries as str or bytes, or raise naming the first bad one."""
    kind: type | None = None
    checked = []
    for i, item in enumerate(items):
        value = item.as_py() if hasattr(item, "as_py") else item
        if _is_biological(value):
            value = _letters(i, value)
        found = str if isinstance(value, str) else bytes if isinstance(value, bytes) else None
        if found is None:
            raise TypeError(_complaint(i, value))
        if kind not in (None, found):
            raise TypeError(
                f"X[{i}] is {found.__name__} among {kind.__name__}; "
                "give all strings as str (bytes.decode) or all as bytes (str.encode)"
            )
        kind = found
        checked.append(found(value))
    return checked


def _is_biological(value: Any) -> bool:
    """Return whether this is one Seq, MutableSeq or SeqRecord of Biopython."""
    return hasattr(value, "reverse_complement") and hasattr(value, "translate")


def _letters(i: int, sequence: Any) -> str:
    try:
        return str(getattr(sequence, "seq", sequence))
    except Exception as error:  # a length without letters
        raise TypeError(f"X[{i}] is {_short(sequence)}, whose letters are unknown ({error}); drop it") from None


def _complaint(i: int, value: Any) -> str:
    if value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value):
        return f"X[{i}] is missing ({value}), expected a string; drop it or replace it by ''"
    hint = "; convert numbers with str()" if isinstance(value, int | float | np.number) else ""
    return f"X[{i}] is {type(value).__name__} ({_short(value)}), expected str or bytes{hint}"
