"""Count, select and join objects in any kind of collection; the layout of strings, and the forms in which they come."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from similia.core.state import state
from similia.core.text import short
from similia.core.validation import BadType, BadValue
from similia.objects.tables import is_frame, is_missing, not_a_column, objects_in

_PLAIN = ({str}, {bytes})  # types in a list that needs no conversion
_PIECE = 4096  # strings joined at once
_BLOCK = 2**20  # letters counted at once
_LOOKED_AT = 1000  # strings that are looked at to tell whether they are words
_CAPITALS = np.arange(ord("A"), ord("Z") + 1)
_SEQUENCE = np.concatenate([_CAPITALS, _CAPITALS + 32, np.frombuffer(b"-.*?", np.uint8)])  # gaps, stops, unknown


def n_objects(X: Any) -> int:
    """Return the number of objects in a collection.

    Parameters
    ----------
    X : sequence of objects
        List, tuple, pandas or polars Series, Arrow array or batch (such as a `StringBatch`). Or an array, a sparse
        matrix or a data frame, whose rows are the objects. A single object (a string, a number, None) raises a
        `TypeError`.

    Examples
    --------
    >>> from similia.objects import n_objects
    >>> n_objects(["ACGT", "AC"])
    2
    """
    if isinstance(X, str | bytes):
        raise BadType(None, f"is one {type(X).__name__}, {short(X)}", "a collection of objects", "write [x]")
    shape = getattr(X, "shape", None)
    if isinstance(shape, tuple) and len(shape) > 0:
        return int(shape[0])
    if not hasattr(X, "__len__") and hasattr(X, "__array__"):
        return n_objects(np.asarray(X))
    if shape is not None or not hasattr(X, "__len__"):
        raise BadType(None, f"is {type(X).__name__} ({short(X)})", "a collection of objects", "use a list")
    return len(X)


def at_least_one(X: Any, name: str = "X") -> int:
    """Return the number of objects in `X`; raise if there are none."""
    n = n_objects(X)
    if n == 0:
        raise BadValue(None, "is empty: found 0 objects", "at least one", collection=name)
    return n


def item(X: Any, i: int) -> Any:
    """Return object `i` of a collection; of a sparse matrix, row `i` as a matrix of one row."""
    if hasattr(X, "iloc"):  # pandas
        return X.iloc[i]
    return as_csr(X)[[i]] if hasattr(X, "tocsr") else X[i]


def take(X: Any, indices: npt.ArrayLike) -> Any:
    """Return the objects at `indices`, in that order, in the same kind of collection.

    Parameters
    ----------
    X : sequence of objects
        Any kind of collection that `n_objects` accepts. A tuple becomes a list, and a sparse matrix of any format
        becomes CSR.
    indices : array-like of int, shape (n_taken,), or of bool, shape (n,)
        Positions of the objects to take, or a mask that is True at the objects to take. Negative positions count from
        the end; repeats are allowed. A position out of range raises an `IndexError`.

    Examples
    --------
    >>> from similia.objects import take
    >>> take(["a", "b", "c"], [2, 0])
    ['c', 'a']
    """
    positions = resolve_indices(indices, n_objects(X))
    if isinstance(X, Batch) or getattr(X, "elsewhere", False) is True:
        return X.take(positions)
    if hasattr(X, "iloc"):  # pandas
        return X.iloc[positions]
    if hasattr(X, "tocsr"):  # scipy sparse; not all formats take indices
        return as_csr(X)[positions]
    if isinstance(X, np.ndarray) or hasattr(X, "get_columns"):  # polars frame
        return X[positions]
    if hasattr(X, "to_pylist"):  # Arrow
        return X.take(positions)
    if hasattr(X, "gather"):  # polars Series
        return X.gather(positions)
    return [X[i] for i in positions.tolist()]


def named(X: Any, numbers: npt.ArrayLike) -> tuple[Any, npt.NDArray[np.int64]]:
    """Take each object in `numbers` once: return (objects, places); ``objects[places[k]]`` is ``X[numbers[k]]``.

    Without numbers, take object 0, since kernels and distances refuse an empty collection.
    """
    distinct, places = np.unique(np.asarray(numbers), return_inverse=True)
    return take(X, distinct if len(distinct) else [0]), places.astype(np.int64, copy=False)


def resolve_pairs(
    rows: npt.ArrayLike, columns: npt.ArrayLike, n: int, m: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Convert pairs (rows[k], columns[k]) of one of n and one of m objects to non-negative int64 positions."""
    left, right = resolve_indices(rows, n), resolve_indices(columns, m)
    if len(left) != len(right):
        raise ValueError(f"the pairs have {len(left)} rows and {len(right)} columns, expected as many of both")
    return left, right


def named_pairs(
    X: Any, Y: Any, rows: npt.ArrayLike, columns: npt.ArrayLike
) -> tuple[Any, Any, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Take each object of the pairs (X[rows[k]], Y[columns[k]]) once: return (objects, objects, places, places).

    If there are no pairs, all objects are returned, since functions of objects refuse empty collections.
    """
    left, right = resolve_pairs(rows, columns, n_objects(X), n_objects(Y))
    if len(left):
        (X, left), (Y, right) = named(X, left), named(Y, right)
    return X, Y, left, right


def concatenate(collections: Sequence[Any]) -> Any:
    """Return the objects of one or more collections, one collection after another.

    Parameters
    ----------
    collections : sequence of collections
        Collections of any kind that `n_objects` accepts. If all are batches of one kind, the result is a batch of this
        kind. Likewise, arrays give an array, sparse matrices a CSR array, and pandas objects of one type a pandas
        object of this type. Arrays together with pandas data frames give an array, or a CSR array if there is also a
        sparse matrix. Anything else gives a list. Incompatible batches, such as one of str and one of bytes, raise an
        error.

    Examples
    --------
    >>> from similia.objects import concatenate
    >>> concatenate([["a", "b"], ["c"]])
    ['a', 'b', 'c']
    """
    if len(collections) == 0:
        raise ValueError("there are no collections to concatenate, expected at least one")
    kinds = {type(part) for part in collections}
    if len(kinds) > 1:  # the rows of a pandas frame, and those of a matrix beside a sparse one
        framed = [hasattr(part, "iloc") and hasattr(part, "columns") for part in collections]
        collections = [part.to_numpy() if of else part for part, of in zip(collections, framed, strict=True)]
        if any(map(sp.issparse, collections)):
            collections = [sp.csr_array(part) if isinstance(part, np.ndarray) else part for part in collections]
        kinds = {type(part) for part in collections}
    if len(kinds) == 1 and isinstance(collections[0], Batch):
        return type(collections[0]).concatenate(collections)
    if kinds == {np.ndarray}:
        return np.concatenate(collections)
    if all(map(sp.issparse, collections)):
        return as_csr(sp.vstack(collections))
    if len(kinds) == 1 and hasattr(collections[0], "iloc"):
        import pandas as pd

        return pd.concat(collections)
    collections = [part.rows() if hasattr(part, "get_columns") else part for part in collections]
    return [x for part in collections for x in part]


def as_csr(X: Any) -> sp.csr_array:
    """Return a matrix as a csr_array with sorted indices and summed duplicates; `X` itself is not changed."""
    X = sp.csr_array(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


@state()
class Batch:
    """A sequence of objects of one kind, stored together in a few arrays.

    An integer index gives an object; a slice, an index array or a boolean mask gives a batch.
    """

    kind: ClassVar[str]  # "strings", "graphs", "series" or "sets"

    def __len__(self) -> int:
        raise NotImplementedError

    def take(self, indices: npt.ArrayLike) -> Self:
        """Return the batch of the objects at `indices` (in that order, repeats allowed)."""
        raise NotImplementedError

    @classmethod
    def concatenate(cls, batches: Sequence[Self]) -> Self:
        """Return the objects of one or more batches of this kind, one batch after another."""
        raise NotImplementedError

    def _one(self, index: int) -> Any:
        raise NotImplementedError

    def _check(self) -> None:
        """Raise if the arrays are inconsistent; compiled loops trust these arrays and check no bounds."""
        raise NotImplementedError

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore and check a batch that comes from a file or another process."""
        names = {field.name for field in fields(self)}  # type: ignore[arg-type]
        if set(state) != names:
            raise ValueError(f"a stored {type(self).__name__} holds {sorted(state)}, expected {sorted(names)}")
        self.__dict__.update(state)
        self._check()

    @property
    def shape(self) -> tuple[int]:
        """Return ``(n,)``: a batch of n objects has one axis."""
        return (len(self),)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple):  # scikit-learn asks for batch[indices, ...]
            key = key[0]
        if isinstance(key, int | np.integer):
            index = int(key) + (len(self) if key < 0 else 0)
            if not 0 <= index < len(self):
                raise IndexError(f"index {int(key)} is out of range for a batch of {len(self)} objects")
            return self._one(index)
        return self.take(resolve_indices(key, len(self)))

    def __iter__(self) -> Iterator[Any]:
        return (self._one(i) for i in range(len(self)))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)} objects>"


def fullest(*batches: Batch) -> Batch:
    """Return the batch with the most attributes, of batches of the same objects that different kernels have read."""
    return max(batches, key=lambda batch: sum(value is not None for value in vars(batch).values()))


@dataclass(frozen=True, eq=False, repr=False)
class Ragged(Batch):
    """A batch whose object i is ``values[offsets[i]:offsets[i + 1]]``."""

    values: npt.NDArray[Any]
    offsets: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def take(self, indices: npt.ArrayLike) -> Self:
        rows = resolve_indices(indices, len(self))
        if len(rows) and (np.diff(rows) == 1).all():  # consecutive rows: a block of values
            bounds = self.offsets[rows[0] : rows[-1] + 2]
            return replace(self, values=self.values[bounds[0] : bounds[-1]].copy(), offsets=bounds - bounds[0])
        positions, offsets = segments(self.offsets, rows)
        return replace(self, values=self.values[positions], offsets=offsets)

    @classmethod
    def concatenate(cls, batches: Sequence[Self]) -> Self:
        values = np.concatenate([batch.values for batch in batches])
        return replace(batches[0], values=values, offsets=joined([batch.offsets for batch in batches]))

    def _check(self) -> None:
        check_array(self.offsets, "offsets", np.int64)
        if check_offsets(self.offsets, "offsets")[-1] != len(self.values):
            raise ValueError(f"offsets end at {self.offsets[-1]}, but there are {len(self.values)} values")

    def _one(self, index: int) -> Any:
        return self.values[self.offsets[index] : self.offsets[index + 1]]


def resolve_indices(key: Any, n: int) -> npt.NDArray[np.int64]:
    """Convert a slice, an index array or a boolean mask over n objects to non-negative int64 positions."""
    if isinstance(key, slice):
        return np.arange(n, dtype=np.int64)[key]
    key = np.asarray(key)
    if key.dtype == bool:
        if key.shape != (n,):
            raise IndexError(f"a mask for a batch of {n} objects must have shape ({n},), got {key.shape}")
        return np.flatnonzero(key)
    if key.size == 0:
        return np.zeros(0, dtype=np.int64)
    if key.ndim != 1 or key.dtype.kind not in "iu":
        raise IndexError(f"a batch takes a 1-D array of integers or a mask, got shape {key.shape} of {key.dtype}")
    if key.min() >= 0 and key.max() < n:
        return np.array(key, np.int64)
    bad = (key < -n) | (key >= n)
    if bad.any():
        raise IndexError(f"index {int(key[bad][0])} is out of range for a batch of {n} objects")
    return np.where(key < 0, key + n, key).astype(np.int64)


def check_array(array: Any, name: str, dtype: npt.DTypeLike, ndim: int = 1) -> None:
    if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != ndim:
        found = f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
        raise ValueError(f"{name} must be a {ndim}-D array of {np.dtype(dtype)}, got {found}")


def check_offsets(offsets: npt.ArrayLike, name: str) -> npt.NDArray[np.int64]:
    """Return `offsets` as a new int64 array; raise unless they start at 0 and never decrease."""
    array = np.array(offsets)
    if array.ndim == 1 and len(array) and np.issubdtype(array.dtype, np.integer):
        array = array.astype(np.int64)
        if array[0] == 0 and (array[1:] >= array[:-1]).all():
            return array
    raise ValueError(f"{name} must be a 1-D array of integers that starts at 0 and never decreases")


def offsets_of(lengths: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return the n + 1 offsets of n consecutive rows of these lengths: 0 and the running sums."""
    lengths = np.asarray(lengths)
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def segments(offsets: npt.NDArray[np.int64], indices: npt.NDArray[np.int64]) -> tuple[npt.NDArray, npt.NDArray]:
    """Return (positions, new_offsets) to gather the rows numbered `indices`.

    The values of the k-th of these rows are at ``positions[new_offsets[k]:new_offsets[k + 1]]``.
    """
    lengths = (offsets[1:] - offsets[:-1])[indices]
    new_offsets = offsets_of(lengths)
    shift = np.repeat(offsets[indices] - new_offsets[:-1], lengths)
    return np.arange(new_offsets[-1], dtype=np.int64) + shift, new_offsets


def joined(offsets: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    return offsets_of(np.concatenate([np.diff(part) for part in offsets]))


def runs(offsets: npt.NDArray[np.int64], most: int) -> list[slice]:
    """Return consecutive slices of rows, each of at most `most` values; a row with more is a slice of its own."""
    start, n, slices = 0, len(offsets) - 1, []
    if n and offsets[n] - offsets[0] <= most:
        return [slice(0, n)]
    while start < n:
        stop = max(start + 1, int(np.searchsorted(offsets, offsets[start] + most, side="right")) - 1)
        slices.append(slice(start, stop))
        start = stop
    return slices


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
        """Return the strings of one or more batches, in order; raise an error if both str and bytes occur."""
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


def in_both_cases(strings: StringBatch) -> bool:
    """Return whether sequences of letters are written partly in capitals, partly in small letters of the same alphabet.

    Nine in ten letters of the rarer case must be letters that occur in the other case, too. Strings with anything but
    ASCII letters, gaps and stops are not such sequences; neither are words, most of which are capital in front only.
    """
    counts = np.zeros(256, np.int64)
    for start in range(0, len(strings.values), _BLOCK):
        block = strings.values[start : start + _BLOCK]
        if block.max() > 127:
            return False
        counts += np.bincount(block, minlength=256)
        if counts.sum() > counts[_SEQUENCE].sum():
            return False
    capital, small = counts[_CAPITALS], counts[_CAPITALS + 32]
    rarer, other = sorted((capital, small), key=np.sum)
    if np.count_nonzero(rarer) < 2 or rarer[other > 0].sum() < 0.9 * rarer.sum():
        return False
    n = len(strings)
    some = strings.take(np.linspace(0, n - 1, min(n, _LOOKED_AT)).astype(np.int64))
    texts = [text.decode() if isinstance(text, bytes) else text for text in some]
    with_capitals = [text for text in texts if not text.islower() and len(text) > 1]
    return 2 * sum(text == text.capitalize() for text in with_capitals) <= len(with_capitals)


def _checked(items: list) -> list:
    """Convert strings of other libraries to str or bytes."""
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
    """Return all letters of the strings, converted in pieces that fit into the cache."""
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
