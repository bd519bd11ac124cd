"""Errors that carry data: which object, parameter or file is wrong, and how. The message is made from the data.

Code that splits a collection adds the start of the part to the object's number (`part_from`). Code that compares two
collections gives errors about the second one the name Y (`as_second`). So nothing needs to parse a message. All errors
are also a `ValueError` or a `TypeError`, and can be pickled.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self, TypeVar

from similia.core.config import settings

T = TypeVar("T")

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
    """Context manager that corrects names and numbers of objects in a `BadPair`; it does nothing without `names`."""
    try:
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
        if error.collection not in ("X", "y") or error.index is None or error.other is not None:
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


def as_second(read: Callable[[Any], T], Y: Any) -> T:
    """Return ``read(Y)``, where Y is the second of two collections; errors raised by `read` name Y, not X."""
    try:
        return read(Y)
    except BadItem as error:
        if error.collection != "X":
            raise
        raise error.changed(collection="Y") from error.__cause__
