"""Letters of DNA and RNA: complements, U read as T, and case, by tables of all 256 bytes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from similia.core.errors import BadValue
from similia.core.text import short
from similia.objects import StringBatch

_LETTERS, _COMPLEMENTS = b"ATCGRYKMBVDHSWNU", b"TAGCYRMKVBHDSWNA"
_COMPLEMENT = np.zeros(256, np.uint32)  # 0: no complement
_COMPLEMENT[[*_LETTERS, *_LETTERS.lower()]] = [*_COMPLEMENTS, *_COMPLEMENTS.lower()]
_BYTES = np.arange(256, dtype=np.uint32)
_UPPER = np.array([*bytes(range(256)).upper()], np.uint32)  # bytes.upper changes ASCII letters only
_U_AS_T = np.where(ord("U") == _BYTES, ord("T"), np.where(ord("u") == _BYTES, ord("t"), _BYTES)).astype(np.uint32)


def letters_read(values: npt.NDArray, reverse_complement: bool, ignore_case: bool) -> npt.NDArray:
    """Return code points with a-z read as A-Z if `ignore_case`, and U read as T if `reverse_complement`."""
    if not (ignore_case or reverse_complement):
        return values
    table = _UPPER if ignore_case else _BYTES
    if reverse_complement:
        table = _U_AS_T[table]
    return np.where(values < 256, table[np.minimum(values, 255)], values).astype(values.dtype)


def complements_of(values: npt.NDArray) -> npt.NDArray:
    """Return the complement of each code point, or 0 if it has none."""
    return np.where(values < 256, _COMPLEMENT[np.minimum(values, 255)], 0).astype(values.dtype)


def check_letters(X: StringBatch) -> None:
    """Raise if a letter has no complement, and name the first such letter."""
    known = (_COMPLEMENT > 0)[np.minimum(X.values, 255)]
    if known.all():
        return
    place = int(np.argmin(known))
    i = int(np.searchsorted(X.offsets, place, side="right")) - 1
    raise BadValue(
        i,
        f"holds {short(chr(X.values[place]))} at position {place - X.offsets[i]}, which has no complement",
        remedy="reverse_complement=True takes DNA or RNA: A, C, G, T, U and the IUPAC letters R, Y, K, M, B, V, D, H, "
        "S, W, N",
    )
