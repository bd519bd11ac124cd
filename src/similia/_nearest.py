"""The name that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

_COMPARED, _LENGTH = 1000, 60  # names, and letters of one, that are worth it


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``" (did you mean X?)"`` with the known name most like `name`, or nothing if none is.

    Examples
    --------
    >>> did_you_mean("Spectrm", ["Spectrum", "Mismatch"])
    ' (did you mean Spectrum?)'
    >>> did_you_mean("DTW", ["Spectrum", "Mismatch"])
    ''
    """
    spelled = {other.lower(): other for other in islice(known, _COMPARED) if len(other) <= _LENGTH}
    found = get_close_matches(str(name)[:_LENGTH].lower(), spelled, n=1)
    return f" (did you mean {spelled[found[0]]}?)" if found else ""
