"""Check what comes in, and complain: errors that carry data, warnings, and checks of arguments.

Each error message is one sentence, made from the data: which object, parameter or file is wrong, how, what was expected
and what to do. Code that splits a collection adds the start of the part to the object's number (`part_from`). Code that
compares two collections gives errors about the second one the name Y (`as_second`). So nothing needs to parse a
message. All errors are also a `ValueError` or a `TypeError`, and can be pickled.

`read_header` checks the header of an untrusted .npy file. `numpy.load` allocates the size that the header claims before
it looks at the data, and lets any error of its parser through.
"""

from __future__ import annotations

import inspect
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from numbers import Integral, Real
from pathlib import Path
from types import FrameType
from typing import IO, Any, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from similia.core.config import settings
from similia.core.text import short

T = TypeVar("T")
Ids = npt.NDArray[np.int64]
RandomState = int | np.random.Generator | np.random.RandomState | None

MAX_ID = 2**63 - 1
_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_OURS = ("similia", "sklearn", "joblib", "dask")  # warnings skip the lines of these packages
_NAMELESS = "the pair ({}, {})", "X[{}] and Y[{}]"


class DataError(Exception):
    """Base of errors that carry data, from which the message is made.

    Attributes
    ----------
    path : str
        Path or name of the file with the bad object; empty if the object is not from a file.
    at : str
        Place in the file, such as "line 3" or "row 2 (counted from 0)"; empty for the whole file.
    """

    path = at = ""

    def changed(self, **attributes: Any) -> Self:
        error = _restored(type(self), {**vars(self), **attributes})
        error.__cause__ = self.__cause__
        return error

    def shifted(self, start: int) -> Self:
        """Return a copy with positions in the whole of X, for an error about the part that begins at `start`."""
        return self

    def _file(self) -> str:
        """Return the start of the message: the file and the place in it, or nothing without a file."""
        return ", ".join(filter(None, (self.path, self.at))) + ": " * bool(self.path)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), vars(self))


def _restored(kind: Any, attributes: dict[str, Any]) -> Any:
    error = kind.__new__(kind)
    vars(error).update(attributes)
    return error


def _sentence(subject: str, found: str, expected: str = "", remedy: str = "") -> str:
    return f"{subject} {found}" + (f", expected {expected}" if expected else "") + (f"; {remedy}" if remedy else "")


class BadItem(DataError):
    """A collection, or one object of it, is invalid. Raised as `BadValue` or `BadType`.

    Attributes
    ----------
    index : int or None
        Position of the object; None if the collection as a whole is invalid.
    found : str
        What is wrong, beginning with a verb: "is missing (None)". ``{other}`` stands for the name of another object.
    expected, remedy : str
        What was expected, and what to do; may be empty. ``{parameter}`` in `remedy` stands for `parameter`.
    collection : str
        Name of the collection, such as "X", "Y" or "y".
    kind : str
        How messages name an object, such as "graph" in "graph 12"; empty for "X[12]".
    place : str
        Place in the object, such as "time point 3, channel 0"; may be empty.
    other : int or None
        Position of the object with which this one is compared.
    parameter : str
        Name of the parameter that `remedy` is about; the command line puts its option here.
    """

    def __init__(
        self,
        index: Any,
        found: str,
        expected: str = "",
        remedy: str = "",
        *,
        collection: str = "X",
        kind: str = "",
        place: str = "",
        other: int | None = None,
        parameter: str = "",
    ) -> None:
        super().__init__(index, found)
        self.index, self.other = (None if number is None else int(number) for number in (index, other))
        self.found, self.expected, self.remedy = found, expected, remedy
        self.collection, self.kind, self.place, self.parameter = collection, kind, place, parameter

    def __str__(self) -> str:
        if not self.path:
            return self.about(self._name(self.index))
        if self.index is None and not self.at and not self.place:
            return self.about(self.path)
        place = ", ".join(filter(None, (self.path, self.at, self.place)))
        return f"{place}: {self.changed(place='').about('it')}"

    def about(self, subject: str) -> str:
        """Return the message with `subject` as the name of the object."""
        found = self.found if self.other is None else self.found.replace("{other}", self._name(self.other))
        remedy = self.remedy.replace("{parameter}", self.parameter)
        return _sentence(f"{subject}, {self.place}" if self.place else subject, found, self.expected, remedy)

    def _name(self, index: int | None) -> str:
        if index is None:
            return self.collection
        if not self.kind:
            return f"{self.collection}[{index}]"
        return f"{self.kind} {index}" if self.collection == "X" else f"{self.collection}, {self.kind} {index}"

    def shifted(self, start: int) -> Self:
        if self.collection != "X" or self.index is None:
            return self
        return self.changed(index=self.index + start, other=None if self.other is None else self.other + start)


class BadValue(BadItem, ValueError):
    """A collection or an object with an invalid value."""


class BadType(BadItem, TypeError):
    """A collection or an object of a wrong type."""


class BadPair(DataError):
    """A similarity or distance fails on two objects. Raised as `BadPairValue` or `BadPairType`.

    Attributes
    ----------
    found, expected : str
        The start and the end of the message; `names` stands between them.
    index : tuple of two int
        Positions of the objects in their collections.
    names : str
        How the message names the two objects: a text with ``{}`` twice, for their positions.
    """

    def __init__(self, found: str, index: tuple[int, int], expected: str, names: str = "the pair ({}, {})") -> None:
        super().__init__(found, index, expected, names)
        self.found, self.index, self.expected, self.names = found, index, expected, names

    def __str__(self) -> str:
        return f"{self._file()}{self.found} {self.names.format(*self.index)}{self.expected}"

    def renamed(self, rows: Any, columns: Any, names: str) -> Self:
        """Return the error with `names` and with its pair (i, j) renumbered to (``rows[i]``, ``columns[j]``).

        If the error has names other than the defaults, these stay, and only i is renumbered.
        """
        i, j = self.index
        if not (0 <= i < len(rows) and 0 <= j < len(columns)):  # of objects that a kernel has made itself
            return self
        if self.names not in _NAMELESS:
            return self.changed(index=(int(rows[i]), j))
        return self.changed(index=(int(rows[i]), int(columns[j])), names=names)

    def shifted(self, start: int) -> Self:
        i, j = self.index
        return self.changed(index=(i + start, j + start if self.names.count("X[") == 2 else j))


class BadPairValue(BadPair, ValueError):
    """Two objects whose similarity or distance is invalid or cannot be computed."""


class BadPairType(BadPair, TypeError):
    """Two objects whose similarity or distance has a wrong type."""


class BadParameter(DataError, ValueError):
    """A parameter with an invalid value.

    Attributes
    ----------
    name : str
        Name of the parameter.
    expected : str
        What it must be, such as "an integer >= 1"; empty if `found` says so.
    found : str
        Its value, as printed.
    remedy : str
        What to do; may be empty.
    """

    def __init__(self, name: str, expected: str, found: str, remedy: str = "") -> None:
        super().__init__(name, expected, found, remedy)
        self.name, self.expected, self.found, self.remedy = name, expected, found, remedy

    def __str__(self) -> str:
        if not self.expected:
            return f"{self.name}={self.found}" + (f"; {self.remedy}" if self.remedy else "")
        return _sentence(self.name, f"must be {self.expected}, got {self.found}", remedy=self.remedy)


class BadFile(DataError, ValueError):
    """A file, or a place in it, is invalid.

    Attributes
    ----------
    path, at : str
        The file and the place in it; see `DataError`.
    found : str
        What is wrong and what to do. If `at` is empty, this begins with a verb: "holds no rows".
    """

    def __init__(self, path: Any, found: str, *, at: str = "") -> None:
        super().__init__(str(path), found)
        self.path, self.found, self.at = str(path), found, at

    def __str__(self) -> str:
        return f"{self._file()}{self.found}" if self.at else f"{self.path} {self.found}"


class ObjectsWarning(UserWarning):
    """Some objects of a collection are suspicious.

    Attributes
    ----------
    count, n : int
        Number of suspicious objects, and of all objects.
    found : str
        What is suspicious about them, beginning with a verb.
    index : int
        Position of one of them.
    remedy : str
        What to check or to do.
    start : int or None
        Position of the first object of the part that `n` counts; None if the warning is about a whole collection.
    """

    def __init__(self, count: int, n: int, found: str, index: int, remedy: str, start: int | None = None) -> None:
        super().__init__(count, n, found, index, remedy, start)
        self.count, self.n, self.found, self.index, self.remedy, self.start = count, n, found, int(index), remedy, start

    def __str__(self) -> str:
        return self.about(f"X[{self.index}]")

    def about(self, example: str) -> str:
        """Return the message with `example` as the name of the object at `index`."""
        of = f"{self.n} objects" if self.start is None else f"the objects {self.start} to {self.start + self.n - 1}"
        return f"{self.count} of {of} {self.found}, e.g. {example}; {self.remedy}"

    def shifted(self, start: int) -> ObjectsWarning:
        """Return a copy with positions in the whole of X, for a warning about the part that begins at `start`."""
        return type(self)(self.count, self.n, self.found, self.index + start, self.remedy, start + (self.start or 0))


WarningData = tuple[type[Warning], "ObjectsWarning | str"]


def warning_of_part(caught: warnings.WarningMessage, start: int) -> WarningData:
    """Return a warning about a part of X as (category, message), picklable; add `start` to its object numbers."""
    message = caught.message
    return caught.category, message.shifted(start) if isinstance(message, ObjectsWarning) else str(message)


def warn_once(said: WarningData, known: set[tuple[Any, str]]) -> None:
    """Emit the warning `said` unless `known` has its kind; add the kind to `known`.

    The kind is the category with the text or, of an `ObjectsWarning`, with the text without numbers.
    """
    category, message = said
    kind = category, message.found if isinstance(message, ObjectsWarning) else message
    if kind not in known:
        known.add(kind)
        warn_user(message, category)


@contextmanager
def pairs_named(rows: Any, columns: Any, names: str | None) -> Iterator[None]:
    """Context manager that corrects names, if given, and numbers of pairs, and numbers of objects like `numbered`."""
    try:
        with numbered(rows):
            yield
    except BadPair as error:
        if names is None:
            raise
        raise error.renamed(rows, columns, names) from error.__cause__


@contextmanager
def part_from(start: int) -> Iterator[None]:
    """Context manager that adds `start`, where a part of X begins, to the object numbers in errors raised inside."""
    try:
        yield
    except DataError as error:
        raise error.shifted(start) from error.__cause__


@contextmanager
def numbered(rows: Any) -> Iterator[None]:
    """Context manager that turns the number i of an object or target, in errors raised inside, into ``rows[i]``."""
    try:
        yield
    except BadItem as error:
        if error.collection not in ("X", "y") or error.index not in range(len(rows)) or error.other is not None:
            raise
        raise error.changed(index=int(rows[error.index])) from error.__cause__


def warn_user(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Emit a warning that points to the nearest calling line outside of similia, scikit-learn, joblib and Dask."""
    warnings.warn(message, category, stacklevel=2 + sum(1 for _ in _our_frames(sys._getframe(1))))


def warn_of_objects(warning: ObjectsWarning) -> None:
    """Emit a warning about objects of a collection or, if `part_of_more` says where it begins, of a part of one."""
    start = settings().start
    warn_user(warning if start is None else warning.shifted(start))


def called_by_user(inside: Any) -> Any:
    """Return the estimator, kernel or distance that the user called, or `inside` if none is found.

    Some of the running calls of similia, scikit-learn, joblib and Dask have an estimator, kernel or distance as first
    argument. The first argument of the outermost of these calls is returned.
    """
    for frame in _our_frames(sys._getframe(1)):
        names = frame.f_code.co_varnames[: frame.f_code.co_argcount]
        first = frame.f_locals.get(names[0]) if names else None
        if hasattr(first, "get_params") and not isinstance(first, type):
            inside = first
    return inside


def _our_frames(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame and those that called it, up to the first outside of similia, scikit-learn, joblib and Dask."""
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in _OURS:
        yield frame
        frame = frame.f_back


def as_second(read: Callable[[Any], T], Y: Any, name: str = "Y") -> T:
    """Return ``read(Y)``, where Y is the second of two collections; errors raised by `read` name it, not X."""
    try:
        return read(Y)
    except BadItem as error:
        if error.collection != "X":
            raise
        raise error.changed(collection=name) from error.__cause__


# ---- checks of arguments
def as_path(path: Any, what: str = "file") -> Path:
    """Return `path`, a str or path object, as a Path; raise if it is anything else, such as an open file."""
    if isinstance(path, str | os.PathLike):
        return Path(path)
    raise TypeError(f"expected the name of a {what} (a str or a path), got {type(path).__name__}")


def present(path: Any) -> Path:
    """Return the path of a file or folder that exists, or raise."""
    place = as_path(path)
    if not place.exists():
        raise FileNotFoundError(f"{path}: no such file or directory")
    return place


def generator(random_state: Any) -> np.random.Generator:
    """Return a `numpy.random.Generator` for a seed, a generator, a RandomState or None."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**32, size=4, dtype=np.uint32))
    if random_state is None or (isinstance(random_state, Integral) and int(random_state) >= 0):
        return np.random.default_rng(None if random_state is None else int(random_state))
    raise BadParameter("random_state", "None, an integer >= 0 or a numpy generator", short(random_state, 80))


def spawn_seeds(random_state: Any, n: int) -> list[int | None]:
    """Return `n` seeds for the parts of a model, drawn from `random_state`; all are None if `random_state` is None."""
    if random_state is None:
        return [None] * n
    rng = generator(random_state)  # raises if it is invalid
    if isinstance(random_state, Integral):
        return [int(seed) for seed in np.random.SeedSequence(int(random_state)).generate_state(n)]
    return [int(seed) for seed in rng.integers(2**32, size=n)]


def check_positive_int(value: Any, name: str, minimum: int = 1) -> int:
    """Return `value` as int, or raise if it is not an integer >= `minimum`."""
    if type(value) is int and value >= minimum:
        return value
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        raise BadParameter(name, f"an integer >= {minimum}", short(value, 80))
    return int(value)


def check_flags(owner: Any) -> None:
    """Raise if a parameter whose default is True or False has any other value."""
    for name in _flags(type(owner)):  # type: ignore[arg-type]  # a class is hashable
        value = getattr(owner, name, True)  # other classes may keep it under another name
        if not is_true_or_false(value):
            raise BadParameter(name, "True or False", short(value, 80))


@cache
def _flags(cls: Any) -> tuple[str, ...]:
    parameters = inspect.signature(cls).parameters.values()
    return tuple(parameter.name for parameter in parameters if isinstance(parameter.default, bool))


def is_true_or_false(value: Any) -> bool:
    """Return whether `value` is True or False, of Python or numpy, or 1 or 0."""
    return isinstance(value, bool | np.bool_) or (isinstance(value, Integral) and int(value) in (0, 1))


def check_choice(value: Any, name: str, choices: Sequence[Any]) -> None:
    """Raise if `value` is none of the `choices`."""
    if value not in choices:
        *others, last = map(repr, choices)
        raise BadParameter(name, f"{', '.join(others)} or {last}", short(value))


def at_most(value: int, n: int, name: str, of: str = "training objects") -> int:
    """Return `value`, but at most `n`, the number of objects described by `of`; warn if `value` is larger."""
    if value > n:
        warn_user(f"{name}={value} is more than the {n} {of}: all {n} are used")
    return min(value, n)


def is_finite(value: Any) -> bool:
    """Return whether `value` is a finite number, and no bool, that fits into float64."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # an integer of 309 digits or more
        return False


def check_positive(value: Any, name: str, zero: bool = False, hint: str = "", also: str = "") -> float:
    """Return `value` as float, or raise if it is not a finite number above 0 (or equal to 0, if `zero`).

    In the error message, `also` extends what is expected (such as ``' or "auto"'``), and `hint` is appended at the end.
    """
    if not is_finite(value) or value < 0 or (value == 0 and not zero):
        expected = "a number >= 0" if zero else "a positive number"
        raise BadParameter(name, f"{expected}{also}", f"{short(value, 80)}{hint}")
    return float(value)


def check_n_bits(n_bits: Any) -> int:
    """Return `n_bits` as int, or raise if it is not a positive multiple of 8."""
    n_bits = check_positive_int(n_bits, "n_bits")
    if n_bits % 8:
        remedy = f"use n_bits={n_bits + 8 - n_bits % 8}"
        raise BadParameter("n_bits", "a multiple of 8 (codes are packed into bytes)", f"{n_bits}", remedy)
    return n_bits


def check_codes(codes: Any, name: str = "codes", n_bits: int | None = None) -> npt.NDArray[np.uint8]:
    """Return packed bits in C order; raise if they are not a uint8 array of shape (n, n_bits // 8)."""
    codes = as_array(codes, name)
    if codes.dtype != np.uint8 or codes.ndim != 2:
        remedy = "similia.SignRandomProjection makes them from vectors, numpy.packbits from bits"
        if codes.dtype == np.uint8 and codes.ndim == 1:
            remedy = "write one code as codes[:1]"
        raise ValueError(
            f"{name} must be packed bits, a uint8 array of shape (n, n_bits // 8), got dtype {codes.dtype} "
            f"and shape {codes.shape}; {remedy}"
        )
    if n_bits is not None and codes.shape[1] * 8 != n_bits:
        found = f"{name} have {codes.shape[1] * 8} bits, expected {n_bits}"
        raise ValueError(f"{found}; codes to compare must come from one encoder")
    return np.ascontiguousarray(codes)


def count_on(next_id: int, n: int) -> Ids:
    """Return the `n` ids from `next_id` on; raise if an id would exceed 2**63 - 1."""
    if next_id + n > MAX_ID + 1:
        raise ValueError(f"ids after {next_id} would exceed 2**63 - 1; pass ids")
    return np.arange(next_id, next_id + n, dtype=np.int64) if n else np.empty(0, np.int64)


def as_ids(ids: Any) -> npt.NDArray[Any]:
    """Return ids as an array; raise if they are no 1-D array of integers."""
    ids = np.asarray(ids)
    if ids.ndim == 0 and ids.dtype.kind in "iu":
        raise ValueError(f"ids must be a list or a 1-D array of integers, got {ids}; for one id, write [{ids}]")
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
        remedy = "; pass ids.ravel()" if ids.ndim > 1 else ""
        raise ValueError(f"ids must be a 1-D array of integers, got dtype {ids.dtype} and shape {ids.shape}{remedy}")
    return ids


def check_ids(ids: Any, n: int | None = None) -> Ids:
    """Return ids as int64; raise if one is negative or occurs twice, or if their number is not `n` (if given)."""
    ids = as_ids(ids)
    if n is not None and len(ids) != n:
        raise ValueError(f"ids has {len(ids)} entries for {n} codes; give one id per code")
    if ids.dtype == np.uint64 and ids.size and ids.max() > MAX_ID:
        raise ValueError(f"ids[{ids.argmax()}] is {ids.max()}, expected at most 2**63 - 1")
    ids = ids.astype(np.int64)
    if ids.size and ids.min() < 0:
        raise ValueError(f"ids[{ids.argmin()}] is {ids.min()}, expected ids >= 0")
    if ids.size > 1 and not (ids[1:] > ids[:-1]).all():
        order = np.argsort(ids, kind="stable")
        same = ids[order[1:]] == ids[order[:-1]]
        if same.any():
            i = int(np.argmax(same))
            raise ValueError(f"ids[{order[i]}] and ids[{order[i + 1]}] are both {ids[order[i]]}; ids must be unique")
    return ids


def unmasked(X: Any, name: str = "X") -> Any:
    """Return `X`; raise if it is an array with masked entries, or a list that contains such an array.

    `numpy.asarray` would drop the mask and treat the masked values as data.
    """
    rows = X if isinstance(X, list | tuple) else [X]
    for i, row in enumerate(rows):
        if isinstance(row, np.ma.MaskedArray) and np.ma.is_masked(row):
            place = [*([i] if rows is X else []), *np.argwhere(np.ma.getmaskarray(row))[0].tolist()]
            first, *others = place
            entry = f"entry {', '.join(map(str, others))}" if others else ""
            remedy = "fill masked values (X.filled(value)) or drop them"
            raise BadValue(first, "is masked", "data without gaps", remedy, collection=name, place=entry)
    return X


def refuse_dates(X: Any, name: str = "X") -> None:
    """Raise if `X` is a polars frame with a column of dates or times, which numpy would read as numbers."""
    for j, dtype in enumerate(X.dtypes if hasattr(X, "dtypes") and is_table(X) else ()):
        if hasattr(dtype, "is_temporal") and dtype.is_temporal() and len(X):
            raise _not_a_number(X[:, [j]], np.array(X[:, [j]].rows(), dtype=object), name)


def as_array(X: Any, name: str = "X") -> npt.NDArray:
    """Return `X` as an array; raise if it holds masked entries, dates beside numbers, or rows of different shapes."""
    X = unmasked(X, name)
    refuse_dates(X, name)
    try:
        return np.asarray(X)
    except ValueError:
        if not isinstance(X, list | tuple):
            raise
        shapes = [np.shape(row) for row in X if not isinstance(row, list) or not any(map(np.iterable, row))]
        i = next((i for i, shape in enumerate(shapes) if shape != shapes[0]), None)
        if len(shapes) < len(X) or i is None:
            raise BadValue(None, "has rows of different lengths", "an array of numbers", collection=name) from None
        found = f"has the shape {shapes[i]}, unlike {{other}} of shape {shapes[0]}"
        remedy = "sets and series of different lengths have distances of their own, such as DTW"
        raise BadValue(i, found, "vectors of one length", remedy, collection=name, other=0) from None


def check_vectors(X: Any, name: str = "X", n_features: int | None = None, by: Any = None) -> npt.NDArray[np.floating]:
    """Return a finite 2-D float32 or float64 array in C order, or raise an error that names the first bad row.

    The layout is fixed, because numpy adds the numbers of a row in an order that depends on the layout, and each order
    rounds differently. `n_features` is the number of columns in `fit`; `by` is the fitted estimator, which errors name.
    """
    if hasattr(X, "toarray"):
        found = f"is a sparse matrix of shape {X.shape}"
        raise BadValue(None, found, "a dense array", "call .toarray()", collection=name)
    given, X = X, as_array(X, name)
    if np.iscomplexobj(X):
        raise not_real(name)
    if X.dtype.kind in "mM":
        raise not_dates(X.dtype, name)
    if X.dtype not in (np.float32, np.float64):
        try:
            X = X.astype(np.float64)
        except OverflowError as error:  # an integer of 309 digits or more
            rows = np.atleast_1d(X)
            row = next(i for i, row in enumerate(rows) if not all(map(_is_number, np.ravel(row).tolist())))
            raise BadValue(row, "holds a number too large for float64", "finite numbers", collection=name) from error
        except (TypeError, ValueError) as error:
            if hasattr(given, "columns") and X.ndim == 2:
                raise _not_a_number(given, X, name) from error
            if isinstance(error, TypeError):  # scikit-learn's checks want it unchanged
                raise
            found = next((value for value in X.ravel().tolist() if not _is_number(value)), X.dtype)
            remedy = "similia.Nystroem, KernelFeatures or D2KE turn objects such as strings into vectors"
            raise BadValue(None, f"holds {short(found, 80)}", "numbers", remedy, collection=name) from error
    if X.ndim != 2:
        raise not_2d(name, X.shape, given)
    if X.shape[0] == 0:
        raise BadValue(None, "is empty: found 0 vectors", "at least one", collection=name)
    if X.shape[1] == 0:
        raise too_narrow(name, X.shape)
    if n_features is not None and X.shape[1] != n_features:
        raise wrong_width(X.shape[1], n_features, by, name)
    finite = np.isfinite(X).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        raise not_finite(row, name, _column(given, int(np.argmin(np.isfinite(X[row])))))
    return np.ascontiguousarray(X)


def _column(X: Any, j: int) -> str:
    """Return the name of a column of a pandas, polars or Arrow frame for errors; of other vectors, an empty text."""
    return f"column {short(str(column_names(X)[j]), 40)}" if hasattr(X, "columns") else ""


def column_names(X: Any) -> list[Any]:
    """Return the names of the columns of a pandas, polars, Arrow or Dask frame."""
    return list(X.columns if hasattr(X, "iloc") else getattr(X, "column_names", X.columns))  # Arrow has column_names


def _not_a_number(frame: Any, X: npt.NDArray[Any], name: str) -> BadValue:
    """Return an error that names the first entry of a data frame that is no number; `X` is its values."""
    row, column = next((i, j) for j in range(X.shape[1]) for i in range(len(X)) if not _is_number(X[i, j]))
    place, value = _column(frame, column), X[row, column]
    if value is None or str(value) in ("<NA>", "NaT"):
        return BadValue(row, "is missing", "numbers", "drop or impute that row", collection=name, place=place)
    remedy = "drop the column, or encode it, for example with scikit-learn's OneHotEncoder in a ColumnTransformer"
    return BadValue(row, f"holds {short(str(value), 80)}", "numbers", remedy, collection=name, place=place)


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def rows_in_blocks(X: Any, step: int, read: Callable[[Any], Any]) -> Iterator[tuple[int, Any]]:
    """Yield ``(start, read(block))`` per block of `step` rows of an array or frame; errors give row numbers of `X`.

    Any other input is read as one block.
    """
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if not 1 <= len(shape) <= 2 or shape[0] <= step or hasattr(X, "toarray"):
        yield 0, read(X)
        return
    rows = X.iloc if hasattr(X, "iloc") else X
    for start in range(0, shape[0], step):
        with part_from(start):
            block = read(rows[start : start + step])
        yield start, block


def check_labels(y: Any, n: int, *, hint: str = "", what: str = "label") -> npt.NDArray:
    """Return the labels `y` as a 1-D array; warn if the shape is (n, 1), and raise if `y` is not `n` single labels.

    `hint` ends the error message for several labels per object; `what` is the name of a label in messages.
    """
    if y is None:
        missing = "this estimator requires y to be passed, but the target y is None"
        raise ValueError(f"{missing}; give one {what} per object")
    unmasked(y, "y")
    try:
        y = np.asarray(y)
    except ValueError:  # rows of different lengths
        found = "sequences of different lengths"
        raise ValueError(f"y must be one {what} per object, shape ({n},), got {found}{hint}") from None
    if y.ndim == 2 and y.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        warn_user(
            f"A column-vector y was passed when a 1d array was expected: y has shape {y.shape}; give y.ravel()",
            DataConversionWarning,
        )
        y = y.ravel()
    if y.ndim != 1:
        raise ValueError(f"y must be one {what} per object, shape ({n},), got shape {y.shape}{hint}")
    if len(y) != n:
        raise ValueError(f"y has {len(y)} {what}s for {n} objects; give one {what} per object")
    return y


def of_numbers(y: npt.NDArray) -> npt.NDArray:
    """Return labels of dtype object, such as those of a pandas column, as numbers or booleans if all are; else `y`."""
    if y.dtype != object or not all(isinstance(label, Real | np.bool_) for label in y.tolist()):
        return y
    numbers = np.array(y.tolist())
    return numbers if numbers.tolist() == y.tolist() else y  # integers beyond 64 bits stay what they are


def refuse_fractions(y: Any) -> None:
    """Raise if all labels of a classifier are finite numbers and some are fractional."""
    values = np.asarray(y, dtype=object).ravel().tolist()
    finite = all(isinstance(value, int | float) and math.isfinite(value) for value in values)
    if finite and any(value != int(value) for value in values):
        raise ValueError(
            "y holds fractions (a continuous target), which are no labels of a classifier; round or bin them into "
            'classes, or use a regressor, such as sm.KernelRidge or sm.recipes.d2ke(..., task="regression")'
        )


def check_encoder(encoder: Any) -> None:
    """Raise if `encoder` has no ``transform``, for example because it is a classifier, kernel or distance."""
    if hasattr(encoder, "transform"):
        return
    if hasattr(encoder, "predict"):
        steps = hasattr(encoder, "steps")
        hint = "pass model[:-1], its steps before the last" if steps else "pass a transformer, such as sm.Nystroem"
        raise TypeError(f"the encoder predicts and does not encode ({type(encoder).__name__} has no transform); {hint}")
    raise TypeError(
        f"the encoder is {short(encoder, 80)}, expected an encoder of objects with a transform, such as "
        "make_pipeline(sm.Nystroem(kernel, 256), sm.SignRandomProjection(256))"
    )


# ---- tables; errors are worded as scikit-learn's estimator checks expect
def not_real(name: str = "X") -> BadValue:
    expected = "real ones (Complex data not supported)"
    return BadValue(None, "holds complex numbers", expected, "make two columns of each", collection=name)


def not_dates(dtype: np.dtype, name: str = "X") -> BadValue:
    remedy = "convert them, for example to days since the first"
    return BadValue(None, f"holds dates or times ({dtype})", "numbers", remedy, collection=name)


def not_2d(name: str, shape: tuple[int, ...], X: Any = None) -> BadValue:
    """Return an error about the shape; if `X` is a pandas Series, the remedy is for a row or a column of a frame."""
    remedy = "write one vector v as [v], one row of an array as array[:1], one column as array[:, [0]]"
    if hasattr(X, "iloc"):
        remedy = "write one row of a frame as frame.iloc[[0]], one column as frame[[name]]"
    found = f"must be a 2-D array (n, n_features), got shape {shape}"
    return BadValue(None, found, remedy=f"Reshape your data: {remedy}", collection=name)


def too_narrow(name: str, shape: tuple[int, ...], least: int = 1) -> BadValue:
    found = f"has {shape[1]} feature(s) (shape={shape}) while a minimum of {least} is required."
    return BadValue(None, found, collection=name)


def wrong_width(found: int, expected: int, by: Any = None, name: str = "X", remedy: str = "") -> BadValue:
    who = "it" if by is None else type(by).__name__
    what = f"has {found} features, but {who} is expecting {expected} features as input, as in fit"
    return BadValue(None, what, remedy=remedy, collection=name)


def not_finite(row: int, name: str = "X", place: str = "") -> BadValue:
    """Return an error about a row, and about the column that `place` names."""
    remedy = "drop or impute that row"
    return BadValue(row, "holds NaN or infinity", "finite numbers", remedy, collection=name, place=place)


def is_table(X: Any) -> bool:
    """Return whether `X` is a 2-D array, a sparse matrix or a data frame: its rows are vectors of one length."""
    table = hasattr(X, "columns") or getattr(getattr(X, "dtype", None), "kind", "O") in "biufc"
    return table and len(getattr(X, "shape", ())) == 2


def check_radius(radius: Any) -> float:
    """Return the radius as a float, or raise if it is not a number >= 0."""
    if isinstance(radius, bool) or not isinstance(radius, Real) or not float(radius) >= 0:
        raise ValueError(f"radius must be a number >= 0, got {radius!r}")
    return float(radius)


class Header(NamedTuple):
    """Shape and type of an array, the number of bytes of its data, and whether it is in Fortran order."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    n_bytes: int
    fortran: bool


def read_header(stream: IO[bytes]) -> Header:
    """Return the header of a .npy file and leave the stream where the data begin; raise ValueError if it is invalid."""
    try:
        with warnings.catch_warnings(action="ignore"):  # about code in the header, which is parsed, not run
            shape, fortran, dtype = _READERS[npy.read_magic(stream)](stream)
    except (Exception, RecursionError, MemoryError) as error:
        raise ValueError(f"it has no header that numpy.save writes ({type(error).__name__})") from None
    if dtype.hasobject:
        raise ValueError("it holds Python objects, which could run code when they are read")
    if not all(type(size) is int and 0 <= size < 2**62 for size in shape):
        raise ValueError("it claims a shape that no array has")
    return Header(shape, dtype, math.prod(shape) * dtype.itemsize, fortran)
