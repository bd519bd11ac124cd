"""Convert collections of strings in many forms to a `StringBatch`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from similia.core.errors import BadType, BadValue
from similia.core.text import short
from similia.objects.sequences import Ragged, check_array, offsets_of
from similia.objects.tables import is_frame, is_missing, not_a_column, objects_in

_PLAIN = ({str}, {bytes})  # types in a list that needs no conversion
_PIECE = 4096  # strings joined at once


@dataclass(frozen=True, eq=False, repr=False)
class StringBatch(Ragged):
    """A collection of strings.

    Attributes
    ----------
    values : ndarray of uint8 or uint32, shape (total_length,)
        Unicode code points (or byte values) of all strings, one string after the other. The dtype is uint8 if the
        strings were bytes or all code points were below 128. A part such as ``batch[:10]`` keeps the dtype.
    offsets : ndarray of int64, shape (n + 1,)
        String i is ``values[offsets[i]:offsets[i + 1]]``.
    is_bytes : bool
        Whether the strings were bytes; if so, items are returned as bytes.
    """

    kind = "strings"

    is_bytes: bool = False

    @classmethod
    def from_list(cls, strings: list[str] | list[bytes]) -> Self:
        """Make a batch from a list of only str or only bytes; items are not checked (`as_strings` checks them)."""
        if len(strings) == 1:  # such as a query
            offsets = np.array([0, len(strings[0])], np.int64)
        else:
            offsets = offsets_of(np.fromiter(map(len, strings), np.int64, len(strings)))
        # Copies are writable; for read-only arrays, numba would compile loops again.
        if strings and isinstance(strings[0], bytes):
            return cls(np.frombuffer(b"".join(strings), np.uint8).copy(), offsets, True)
        if all(map(str.isascii, strings)):  # type: ignore[arg-type]
            return cls(np.frombuffer("".join(strings).encode("ascii"), np.uint8).copy(), offsets)  # type: ignore[arg-type]
        return cls(_code_points(strings, offsets[-1]), offsets)  # type: ignore[arg-type]

    @classmethod
    def concatenate(cls, batches: Sequence[Self]) -> Self:
        """Return the strings of one or more batches, one batch after another; raise if both str and bytes occur."""
        if len({batch.is_bytes for batch in batches}) > 1:
            raise TypeError("some batches hold str and others bytes, expected one kind; use bytes.decode or str.encode")
        return super().concatenate(batches)

    def tolist(self) -> list[str] | list[bytes]:
        """Return the strings as a list."""
        data, bounds = self.values.tobytes(), pairwise(self.offsets.tolist())
        if self.is_bytes:
            return [data[start:end] for start, end in bounds]
        text = data.decode(self._encoding, "surrogatepass")
        return [text[start:end] for start, end in bounds]

    def _check(self) -> None:
        wide = getattr(self.values, "dtype", None) == np.uint32 and not self.is_bytes
        check_array(self.values, "values", np.uint32 if wide else np.uint8)
        super()._check()
        limit = sys.maxunicode if wide else 255 if self.is_bytes else 127
        if self.values.max(initial=0) > limit:
            raise ValueError(f"values reach {self.values.max()}, expected code points of at most {limit}")

    def _one(self, index: int) -> str | bytes:
        data: bytes = super()._one(index).tobytes()
        return data if self.is_bytes else data.decode(self._encoding, "surrogatepass")

    @property
    def _encoding(self) -> str:
        return "ascii" if self.values.dtype == np.uint8 else "utf-32-le"


def as_strings(X: Any) -> StringBatch:
    """Return a collection of strings as a `StringBatch`.

    Parameters
    ----------
    X : sequence of n str, n bytes or n Biopython sequences
        List, tuple, numpy array, pandas or polars Series, Arrow array, data frame of one column, Biopython alignment
        (its rows, gaps included) or `StringBatch`, which is returned unchanged. A Biopython ``Seq`` or ``SeqRecord``
        is read as its letters. Text is stored as Unicode code points, not normalised. Empty strings are allowed.

    Returns
    -------
    StringBatch
        A batch of n strings. `X` is not changed.

    Raises
    ------
    TypeError
        If `X` is a single string or not a sequence, if an item is missing (None, NaN) or not a string, or if `X` mixes
        str and bytes.
    ValueError
        If `X` is empty.

    Examples
    --------
    >>> from similia.objects import as_strings
    >>> batch = as_strings(["ACGT", "", "AC"])
    >>> batch, batch[0], batch.offsets
    (<StringBatch of 3 objects>, 'ACGT', array([0, 4, 4, 6]))
    """
    if not isinstance(X, StringBatch):
        plain = type(X) is list and set(map(type, X)) in _PLAIN
        X = StringBatch.from_list(X if plain else _items(X))
    if len(X) == 0:
        raise BadValue(None, "is empty: found 0 strings", "at least one")
    return X


def check_kinds(X: StringBatch, Y: StringBatch) -> None:
    """Raise if one collection holds str and the other bytes, unless all letters are ASCII and so mean the same."""
    if X.is_bytes != Y.is_bytes and max(X.values.max(initial=0), Y.values.max(initial=0)) > 127:
        raise mixed_kinds(X, Y)


def mixed_kinds(X: StringBatch, Y: StringBatch) -> BadType:
    """Return the error for a collection of str and one of bytes that cannot be compared."""
    kinds = ["bytes" if batch.is_bytes else "str" for batch in (X, Y)]
    return BadType(None, f"holds {kinds[0]} and Y {kinds[1]}", "one kind", "use bytes.decode or str.encode")


def _items(X: Any) -> list[str] | list[bytes]:
    """Return the strings of a collection as a list of only str or only bytes; raise if that is impossible."""
    X = objects_in(X, numbers=True)
    if is_frame(X):
        raise not_a_column(X, "strings")
    if isinstance(X, str | bytes | bytearray) or _is_biological(X):
        raise BadType(None, f"is one string, {short(X)}", "a collection of strings", "write [x]")
    if isinstance(X, Mapping | Set | range) or not hasattr(X, "__len__") or not hasattr(X, "__getitem__"):
        raise BadType(None, f"is {type(X).__name__}", "an ordered collection of strings", "use a list")
    if hasattr(X, "coordinates") and hasattr(X, "sequences"):  # a Biopython alignment
        X = [X[i] for i in range(len(X))]
    if len(getattr(X, "shape", (0,))) != 1:
        found = f"{type(X).__name__} of {X.dtype} and shape" if hasattr(X, "dtype") else f"{type(X).__name__} of shape"
        raise BadType(None, f"is {found} {X.shape}", "one column of strings", "select a column")
    items = _to_list(X)
    kinds = set(map(type, items))
    return items if kinds <= {str} or kinds <= {bytes} else _checked(items)


def _to_list(X: Any) -> list:
    for method in ("to_pylist", "to_list", "tolist"):  # Arrow, pandas and polars, numpy
        if hasattr(X, method):
            return list(getattr(X, method)())
    return list(X)


def _checked(items: list) -> list:
    """Convert strings of other libraries to str or bytes; the error for a bad item names its position."""
    checked: list[Any] = []
    for i, item in enumerate(items):
        value = item.as_py() if hasattr(item, "as_py") else item
        if _is_biological(value):
            value = _letters(i, value)
        if not isinstance(value, str | bytes):
            if is_missing(value):
                raise BadType(i, f"is missing ({value})", "a string", "drop it or replace it by ''")
            remedy = "convert numbers with str()" if isinstance(value, int | float | np.number) else ""
            raise BadType(i, f"is {type(value).__name__} ({short(value)})", "str or bytes", remedy)
        checked.append(str.__str__(value) if isinstance(value, str) else bytes(value))
        found, first = type(checked[i]), type(checked[0])
        if found is not first:
            remedy = "give all strings as str (bytes.decode) or all as bytes (str.encode)"
            raise BadType(i, f"is {found.__name__} among {first.__name__}", remedy=remedy)
    return checked


def _is_biological(value: Any) -> bool:
    """Return whether a value is a Seq, MutableSeq or SeqRecord of Biopython."""
    return hasattr(value, "reverse_complement") and hasattr(value, "translate")


def _letters(i: int, sequence: Any) -> str:
    try:
        return str(getattr(sequence, "seq", sequence))
    except Exception as error:  # a sequence of known length without letters
        raise BadType(i, f"is {short(sequence)}, whose letters are unknown ({error})", remedy="drop it") from None


def _code_points(strings: list[str], total: int) -> npt.NDArray[np.uint32]:
    """Return all letters of the strings; pieces that fit into the cache take a third of the time of one long string."""
    values, end = np.empty(total, np.uint32), 0
    for start in range(0, len(strings), _PIECE):
        text = "".join(strings[start : start + _PIECE])
        try:
            letters: npt.NDArray = np.frombuffer(text.encode("latin-1"), np.uint8)
        except UnicodeEncodeError:
            letters = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
        values[end : end + len(letters)] = letters
        end += len(letters)
    return values
