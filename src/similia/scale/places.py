"""Where in its file a bad object of a stream is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from similia.core.errors import BadPair
from similia.core.text import _short
from similia.sources.streams import ObjectStream

_OBJECT = re.compile(r"(?:X\[|series |set |graph )(\d+)\b\]?(:?) ")


@contextmanager
def places_named(stream: Any, start: int = 0, mark: str | None = None, numbers: Any = None) -> Iterator[None]:
    """Have errors about an object of a file or data set name it, and the line.

    It is then read once more from object `start` on, where `mark` says that it begins; `numbers` are those of the
    objects, where the error is about some of them.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        iterable = isinstance(stream, ObjectStream) and stream.size is None  # gone once it is read
        said = None if iterable else _located(error, stream, start, mark, numbers)
        if said is None:
            raise
        raise (TypeError if isinstance(error, TypeError) else ValueError)(said) from error


def _located(error: Exception, stream: Any, start: int, mark: str | None, numbers: Any) -> str | None:
    """Return the sentence of an error with the place of the object it is about, None if it is about none."""
    text = str(error)
    found = _OBJECT.match(text)
    number = error.index[0] if isinstance(error, BadPair) else int(found[1]) if found else None
    if number is None or (numbers is not None and number >= len(numbers)):
        return None
    number = number if numbers is None else int(numbers[number])
    with closing(stream.chunks(start, mark)) as chunks:
        chunk = next((chunk for chunk in chunks if chunk.stop > number), None)
    if chunk is None:
        return None
    i = number - chunk.start
    place = f"object {number} (from 0)" if chunk.lines is None else f"line {chunk.lines[i]}"
    place += f", {_short(chunk.names[i])}" if chunk.names is not None and isinstance(chunk.names[i], str) else ""
    said = text if found is None else text[found.end() :] if found[2] else f"it {text[found.end() :]}"
    return f"{stream.source}, {place}: {said}"
