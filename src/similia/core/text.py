"""Text for messages: suggested names, counts, numbers, and objects in one line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Any

_COMPARED, _LENGTH = 1000, 60  # limits for the number of names and the length of one


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``" (did you mean X?)"`` with the known name most similar to `name`, or an empty string.

    Examples
    --------
    >>> did_you_mean("Spectrm", ["Spectrum", "Mismatch"])
    ' (did you mean Spectrum?)'
    >>> did_you_mean("DTW", ["Spectrum", "Mismatch"])
    ''
    """
    found = nearest_name(name, known)
    return f" (did you mean {found}?)" if found else ""


def nearest_name(name: str, known: Iterable[str]) -> str:
    """Return the known name most similar to `name`, or an empty string if none is similar."""
    spelled = {other.lower(): other for other in islice(known, _COMPARED) if len(other) <= _LENGTH}
    found = get_close_matches(str(name)[:_LENGTH].lower(), spelled, n=1)
    return spelled[found[0]] if found else ""


def counted(n: int, noun: str) -> str:
    """Return a number and its noun, as in "1 channel" and "2 channels"."""
    return f"{n} {noun}{'s' * int(n != 1)}"


def number(value: float) -> str:
    """Format a number with four significant digits, or an integer below 1e9 with all digits in groups of three.

    Examples
    --------
    >>> number(1234567.0), number(0.123456), number(float("nan"))
    ('1,234,567', '0.1235', '–')
    """
    if value != value:
        return "–"
    return f"{round(value):,}" if abs(value) < 1e9 and value == round(value) else f"{value:.4g}"


def listed(names: Sequence[Any]) -> str:
    """Return names for a message: the first four and the last one.

    Examples
    --------
    >>> listed("ab"), listed(range(9))
    ("'a', 'b'", '0, 1, 2, 3 … 8')
    """
    return ", ".join(map(short, names[:4])) + (f" … {short(names[-1])}" if len(names) > 4 else "")


def short(value: Any, length: int = 40) -> str:
    """Return the repr of a value on one line, cut to `length` characters, for a message.

    Examples
    --------
    >>> short("ACGTACGT", 8), short(range(1000), 8)
    ("'ACGTA…'", 'range(0…')
    """
    try:
        text = " ".join(repr(value).split())
    except Exception:  # a broken repr must not hide the reported error
        text = f"<{type(value).__name__}>"
    if len(text) <= length:
        return text
    end = "…" + text[0] if text[0] in "'\"" else "…"  # a text keeps its closing quote
    return text[: length - len(end)] + end
