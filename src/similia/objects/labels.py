"""Labels of any kind as 64-bit integers that are the same in every process."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

_INT64 = range(-(2**63), 2**63)


def hash_labels(labels: Iterable[Any]) -> npt.NDArray[np.int64]:
    """Return integer labels as they are and others as a 64-bit BLAKE2b hash of their text.

    Two of n different texts get the same number with probability n**2 / 2**65 (10**-9 for
    200,000 texts). A number written as text is another label than the number.
    """
    if isinstance(labels, np.ndarray) and labels.dtype.kind in "bi":
        return labels.astype(np.int64)
    return np.fromiter(map(_hash_label, labels), dtype=np.int64)


def _hash_label(label: Any) -> int:
    if isinstance(label, Integral | np.bool_) and int(label) in _INT64:
        return int(label)
    return _hash_text(str(label))


@lru_cache(maxsize=2**16)
def _hash_text(text: str) -> int:
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


_ELEMENTS = (
    "* H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr Rb Sr Y Zr Nb "
    "Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho Er Tm Yb Lu Hf Ta W Re Os Ir Pt Au "
    "Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu Am Cm Bk Cf Es Fm Md No Lr Rf Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv Ts "
    "Og"
)
# Texts that are known again by their hash, so that molecules show them; * is RDKit's atom of any kind.
SYMBOLS = {_hash_text(symbol): symbol for symbol in _ELEMENTS.split()}
BONDS = {_hash_text(bond): bond for bond in "-=#:"}
