"""Errors that know which objects they are about, and what shifts those numbers where a collection is cut into parts."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# How sentences name an object of X by its number; what is said of a second collection begins with "Y, ".
_NAMED = re.compile(r"(?<!Y, )\b(X\[|series |set |graph )(\d+)\b")
_OURS = ("similia", "sklearn", "joblib", "dask")  # whose lines a warning does not name
_NAMELESS = "the pair ({}, {})", "X[{}] and Y[{}]"


class BadPair(Exception):
    """Two objects that a similarity or distance fails on; `BadPairValue` and `BadPairType` are raised.

    Attributes
    ----------
    found, expected : str
        The sentence before and after the names of the two objects.
    index : tuple of two int
        Numbers of the objects in their collections.
    names : str
        How the objects are named, with two braces for the numbers.
    """

    def __init__(self, found: str, index: tuple[int, int], expected: str, names: str = "the pair ({}, {})") -> None:
        super().__init__(found, index, expected, names)
        self.found, self.index, self.expected, self.names = found, index, expected, names

    def __str__(self) -> str:
        return f"{self.found} {self.names.format(*self.index)}{self.expected}"

    def renamed(self, rows: Any, columns: Any, names: str) -> BadPair:
        """Return the error of a block, with numbers and names of the whole; what has a name keeps it."""
        i, j = self.index
        if self.names not in _NAMELESS:
            return type(self)(self.found, (int(rows[i]), j), self.expected, self.names)
        return type(self)(self.found, (int(rows[i]), int(columns[j])), self.expected, names)

    def shifted(self, start: int) -> BadPair:
        """Return the error of a part of X that begins at object `start`."""
        i, j = self.index
        both = self.names.count("X[") == 2
        return type(self)(self.found, (i + start, j + start if both else j), self.expected, self.names)


class BadPairValue(BadPair, ValueError):
    """Two objects whose value is wrong."""


class BadPairType(BadPair, TypeError):
    """Two objects whose value is of a wrong type."""


@contextmanager
def pairs_named(rows: Any, columns: Any, names: str | None) -> Iterator[None]:
    """Have a `BadPair` that is raised inside name ``rows[i]`` and ``columns[j]`` in the words of `names`, if given."""
    try:
        yield
    except BadPair as error:
        if names is None:
            raise
        raise error.renamed(rows, columns, names) from error.__cause__


def shifted_text(text: str, start: int, n: int | None = None) -> str:
    """Return a sentence about a part of X that begins at object `start` with the numbers of the whole.

    Numbers that are not below `n`, the size of the part, are those of something else and stay.
    """

    def shift(found: re.Match[str]) -> str:
        number = int(found[2])
        return f"{found[1]}{number + start}" if n is None or number < n else found[0]

    return _NAMED.sub(shift, text)


def names_object(text: str, n: int) -> bool:
    """Return whether a sentence names one of the first `n` objects of X."""
    return any(int(found[2]) < n for found in _NAMED.finditer(text))


@contextmanager
def part_from(start: int) -> Iterator[None]:
    """Have errors about a part of X that begins at object `start` name objects by their numbers in X."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise shifted(error, start) from error.__cause__


def shifted(error: Exception, start: int) -> Exception:
    """Return an error of a part of X that begins at object `start` with the numbers of the whole."""
    if isinstance(error, BadPair):
        return error.shifted(start)
    return type(error)(shifted_text(str(error), start)) if type(error) in (TypeError, ValueError) else error


def warn_user(message: str) -> None:
    """Warn, naming the nearest line outside of similia and of what calls it: scikit-learn, joblib, Dask."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in _OURS:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, UserWarning, stacklevel=level)
