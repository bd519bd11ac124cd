"""Read the header of an untrusted .npy file.

`numpy.load` allocates the size that the header claims before it looks at the data, and lets any error of its parser
through.
"""

from __future__ import annotations

import math
import warnings
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy

_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


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
