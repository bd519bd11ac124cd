"""Letters of DNA and RNA: which one pairs with which, and what case says.

Pairs are those of IUPAC's letters: A-T, C-G, and the ambiguous ones R-Y, K-M, B-V, D-H, S-S, W-W, N-N, in both cases.
U is read as T: a strand of RNA has the words of its DNA, and the reverse complement undoes itself.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from similia.core.text import _short
from similia.objects import StringBatch

_PAIRS = ("AT", "TA", "CG", "GC", "RY", "YR", "KM", "MK", "BV", "VB", "DH", "HD", "SS", "WW", "NN", "UA")

_COMPLEMENT = np.zeros(256, np.uint32)  # 0: the letter has none
_CASELESS = np.arange(256, dtype=np.uint32)
_CASELESS[ord("a") : ord("z") + 1] -= ord("a") - ord("A")
for _pair in _PAIRS:
    _COMPLEMENT[ord(_pair[0])] = ord(_pair[1])
    _COMPLEMENT[ord(_pair[0].lower())] = ord(_pair[1].lower())
_DNA = np.arange(256, dtype=np.uint32)
_DNA[[ord("U"), ord("u")]] = ord("T"), ord("t")


def letters_read(values: npt.NDArray, reverse_complement: bool, ignore_case: bool) -> npt.NDArray:
    """Return code points as a kernel counts them: a-z as A-Z if case is ignored, U as T if strands pair."""
    table = np.arange(256, dtype=np.uint32)
    if ignore_case:
        table = _CASELESS[table]
    if reverse_complement:
        table = _DNA[table]
    if not (ignore_case or reverse_complement):
        return values
    return np.where(values < 256, table[np.minimum(values, 255)], values).astype(values.dtype)


def complements_of(values: npt.NDArray) -> npt.NDArray:
    """Return the complement of each code point, 0 for what has none."""
    return np.where(values < 256, _COMPLEMENT[np.minimum(values, 255)], 0).astype(values.dtype)


def check_letters(X: StringBatch) -> None:
    """Raise at the first letter that has no complement."""
    known = (_COMPLEMENT > 0)[np.minimum(X.values, 255)]
    if known.all():
        return
    place = int(np.argmin(known))
    i = int(np.searchsorted(X.offsets, place, side="right")) - 1
    raise ValueError(
        f"X[{i}] holds {_short(chr(X.values[place]))} at position {place - X.offsets[i]}, which has no complement; "
        "reverse_complement=True takes DNA or RNA: A, C, G, T, U and the IUPAC letters R, Y, K, M, B, V, D, H, S, W, N"
    )
