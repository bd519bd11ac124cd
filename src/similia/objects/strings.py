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
from similia.objects.sequences import Batch, check_array, check_offsets, joined, resolve_indices, segments
from similia.objects.tables import is_frame, is_missing, not_a_column, objects_in


@dataclass(frozen=True, eq=False, repr=False)
class StringBatch(Batch):
    """A collection of strings.

    Attributes
    ----------
    values : ndarray of uint8 or uint32, shape (total_length,)
        Code points of all strings, one after the other; uint8 if all are below 128 or the strings were bytes.
    offsets : ndarray of int64, shape (n + 1,)
        String i is ``values[offsets[i]:offsets[i + 1]]``.
    is_bytes : bool
        Whether the strings were bytes; if so, items are returned as bytes.

    Examples
    --------
    >>> from similia.objects import StringBatch
    >>> batch = StringBatch.from_list(["ACGT", "", "AC"])
    >>> batch[-1], batch[[0, 1]].tolist()
    ('AC', ['ACGT', ''])
    """

    kind = "strings"

    values: npt.NDArray[np.uint8] | npt.NDArray[np.uint32]
    offsets: npt.NDArray[np.int64]
    is_bytes: bool = False

    @classmethod
    def from_list(cls, strings: list[str] | list[bytes]) -> Self:
        """Make a batch from a list that holds only str or only bytes (unchecked; `as_strings` checks)."""
        offsets = np.zeros(len(strings) + 1, dtype=np.int64)
        np.cumsum(np.fromiter(map(len, strings), np.int64, len(strings)), out=offsets[1:])
        if strings and isinstance(strings[0], bytes):
            return cls(_array(b"".join(strings), np.uint8), offsets, True)
        joined = "".join(strings)  # type: ignore[arg-type]
        if joined.isascii():
            return cls(_array(joined.encode("ascii"), np.uint8), offsets)
        return cls(_array(joined.encode("utf-32-le", "surrogatepass"), np.uint32), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def take(self, indices: npt.ArrayLike) -> Self:
        """Return the batch of the strings at `indices` (in that order, repeats allowed)."""
        positions, offsets = segments(self.offsets, resolve_indices(indices, len(self)))
        return type(self)(self.values[positions], offsets, self.is_bytes)

    @classmethod
    def concatenate(cls, batches: Sequence[Self]) -> Self:
        """Return the strings of one or more batches, one batch after another; raise if str meet bytes."""
        if len({batch.is_bytes for batch in batches}) > 1:
            raise TypeError("some batches hold str and others bytes, expected one kind; use bytes.decode or str.encode")
        values = np.concatenate([batch.values for batch in batches])
        return cls(values, joined([batch.offsets for batch in batches]), batches[0].is_bytes)

    def tolist(self) -> list[str] | list[bytes]:
        """Return the strings as a list."""
        data, segments = self.values.tobytes(), pairwise(self.offsets.tolist())
        if self.is_bytes:
            return [data[start:end] for start, end in segments]
        text = data.decode(self._encoding, "surrogatepass")
        return [text[start:end] for start, end in segments]

    def _check(self) -> None:
        wide = getattr(self.values, "dtype", None) == np.uint32 and not self.is_bytes
        check_array(self.values, "values", np.uint32 if wide else np.uint8)
        check_array(self.offsets, "offsets", np.int64)
        limit = sys.maxunicode if wide else 255 if self.is_bytes else 127
        if self.values.max(initial=0) > limit:
            raise ValueError(f"values reach {self.values.max()}, expected code points of at most {limit}")
        if check_offsets(self.offsets, "offsets")[-1] != len(self.values):
            raise ValueError(f"offsets end at {self.offsets[-1]}, but there are {len(self.values)} values")

    def _one(self, index: int) -> str | bytes:
        data = self.values[self.offsets[index] : self.offsets[index + 1]].tobytes()
        if self.is_bytes:
            return data
        return data.decode(self._encoding, "surrogatepass")

    @property
    def _encoding(self) -> str:
        return "ascii" if self.values.dtype == np.uint8 else "utf-32-le"


def as_strings(X: Any) -> StringBatch:
    """Return a collection of strings as a `StringBatch`.

    Parameters
    ----------
    X : sequence of str, of bytes or of Biopython sequences
        List, tuple, numpy array (object, str, bytes or `StringDType`), pandas or polars Series,
        Arrow array (plain, large, dictionary-encoded, chunked), a data frame of one column, a Biopython
        alignment (its rows, gaps included) or a `StringBatch`, which is returned unchanged. A Biopython ``Seq`` or
        ``SeqRecord`` counts as its letters. Strings are compared by Unicode code point (no normalisation), bytes by
        byte. Empty strings are allowed.

    Returns
    -------
    StringBatch
        Of length n. `X` is not changed.

    Raises
    ------
    TypeError
        If `X` is a single string, not a sequence or has more than one axis, or if an item is missing (None, NaN), not a
        string, bytes among str, or a sequence without known letters.
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
        raise BadValue(None, "is empty: found 0 strings", "at least one")
    return X


def _items(X: Any) -> list[str] | list[bytes]:
    """Return the strings as a list that holds only str or only bytes."""
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
    if kinds <= {str} or kinds <= {bytes}:
        return items
    return _checked(items)


def _to_list(X: Any) -> list:
    for method in ("to_pylist", "to_list", "tolist"):  # Arrow, pandas and polars, numpy
        if not isinstance(X, list | tuple) and hasattr(X, method):
            return list(getattr(X, method)())
    return list(X)


def _checked(items: list) -> list:
    """Convert scalars of other libraries to str or bytes, or raise an error that names the first bad item."""
    kind: type | None = None
    checked = []
    for i, item in enumerate(items):
        value = item.as_py() if hasattr(item, "as_py") else item
        if _is_biological(value):
            value = _letters(i, value)
        found = str if isinstance(value, str) else bytes if isinstance(value, bytes) else None
        if found is None:
            raise _no_string(i, value)
        if kind is not None and kind is not found:
            remedy = "give all strings as str (bytes.decode) or all as bytes (str.encode)"
            raise BadType(i, f"is {found.__name__} among {kind.__name__}", remedy=remedy)
        kind = found
        checked.append(found(value))
    return checked


def _is_biological(value: Any) -> bool:
    """Return whether a value is a Seq, MutableSeq or SeqRecord of Biopython."""
    return hasattr(value, "reverse_complement") and hasattr(value, "translate")


def _letters(i: int, sequence: Any) -> str:
    try:
        return str(getattr(sequence, "seq", sequence))
    except Exception as error:  # a sequence of known length without letters
        raise BadType(i, f"is {short(sequence)}, whose letters are unknown ({error})", remedy="drop it") from None


def _no_string(i: int, value: Any) -> BadType:
    if is_missing(value):
        return BadType(i, f"is missing ({value})", "a string", "drop it or replace it by ''")
    remedy = "convert numbers with str()" if isinstance(value, int | float | np.number) else ""
    return BadType(i, f"is {type(value).__name__} ({short(value)})", "str or bytes", remedy)


def _array(data: bytes, dtype: type[np.uint8] | type[np.uint32]) -> npt.NDArray:
    """Return a writable copy; numba would compile again for read-only arrays."""
    return np.frombuffer(data, dtype).copy()
