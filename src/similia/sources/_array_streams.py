"""Rows of a .npy array of numbers, a few at a time, read and not mapped: pages of a map count as memory of the process.

The header is believed only where it agrees with the size of the file; nothing is unpickled.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.text import _short
from similia.sources._blocks import Records, record_limit
from similia.sources._skipped import Skips

_MOST_HEADER = 2**14  # bytes; numpy refuses headers above 10,000 but reads them first


class ArrayRows:
    """Rows of a 2-D array of numbers in a .npy file."""

    kind = "vectors"

    def __init__(self, path: Path, skips: Skips | None = None) -> None:
        self.path, self.skips, size = path, skips, path.stat().st_size
        shape, self.fortran, self.dtype, self.offset = _header(path)
        if len(shape) != 2 or self.dtype.kind not in "fiu" or min(shape) == 0:
            found = f"{str(self.dtype)[:60]} of shape {_short(shape)}"
            hint = ", which are pickles and never read" if self.dtype.hasobject else ""
            raise ValueError(f"{path} holds {found}{hint}, expected numbers of shape (n, n_features)")
        self.n, self.width = shape
        claimed = self.n * self.width * self.dtype.itemsize
        if claimed != size - self.offset:
            raise ValueError(
                f"{path} has {size - self.offset} bytes of data, but {_short(claimed)} by its header "
                f"(shape {_short(shape)}); is it truncated?"
            )

    def records(self, start: int, chunk: int, max_bytes: int) -> Iterator[Records]:
        """Yield rows from `start` on."""
        row = self.dtype.itemsize * self.width
        if row > record_limit():
            raise ValueError(f"{self.path}, row 0: it takes {row} bytes, more than {record_limit()}; raise max_memory")
        step = max(1, min(chunk, max_bytes // row))
        for first in range(start, self.n, step):
            stop = min(self.n, first + step)
            rows = self._rows(first, stop)
            good = np.flatnonzero(np.isfinite(rows).all(axis=1))
            for bad in np.setdiff1d(np.arange(len(rows)), good).tolist() if len(good) < len(rows) else []:
                if self.skips is None:
                    raise ValueError(f"{self.path}, row {first + bad}: it holds NaN or infinity; drop or impute it")
                self.skips.add(first + bad, "it holds NaN or infinity")
            ends = np.arange(first + 1 - start, stop + 1 - start) * row
            if len(good):
                kept = (rows,) if len(good) == len(rows) else (rows[good],)
                yield Records(kept, ends[good], position=self.offset + stop * row, rows=first + good)

    def _rows(self, start: int, stop: int) -> npt.NDArray:
        if self.fortran:  # rows lie scattered; the map is opened anew each time, so that its pages are let go
            shape = (self.n, self.width)
            rows = np.memmap(self.path, self.dtype, "r", self.offset, shape, "F")[start:stop]
        else:
            count, row = (stop - start) * self.width, self.dtype.itemsize * self.width
            rows = np.fromfile(self.path, self.dtype, count, offset=self.offset + start * row)
            if len(rows) < count:
                raise ValueError(f"{self.path}, row {start}: the file became shorter while it was read")
            rows = rows.reshape(-1, self.width)
        return np.array(rows, dtype=self.dtype.newbyteorder("="), order="C", copy=self.fortran or None)


def _header(path: Path) -> tuple[tuple[int, ...], bool, np.dtype, int]:
    """Return shape, whether columns come first, dtype, and where the data begin."""
    with open(path, "rb") as file:
        begin = io.BytesIO(file.read(_MOST_HEADER))
    read: dict[Any, Any] = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    try:
        with warnings.catch_warnings(action="ignore"):
            shape, fortran, dtype = read[np.lib.format.read_magic(begin)](begin)
            if not all(isinstance(length, int) and length >= 0 for length in shape):
                raise ValueError(f"shape {_short(shape)}")
    except Exception as error:  # numpy evaluates the header, and what that raises is no short list
        raise ValueError(f"{path} is not an array that numpy.save wrote ({_short(error, 150)})") from None
    return shape, fortran, dtype, begin.tell()
