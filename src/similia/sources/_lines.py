r"""Lines of a block of text as arrays of positions, and pieces of it as strings, without a Python object for each.

Three designs were measured on 10^6 FASTA records of 100 letters (115 MB): a loop over lines 2.4 s, ``bytes.split``
0.45 s, positions found by numpy 0.31 s (a numba loop over bytes: 0.36 s).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from similia.objects._strings import StringBatch

Int = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

SPACE = np.zeros(256, dtype=bool)  # what str.strip takes away, of ASCII
SPACE[[9, 10, 11, 12, 13, 28, 29, 30, 31, 32]] = True


class Lines(NamedTuple):
    """Line i of a block is ``buffer[starts[i]:ends[i]]``, its end not included."""

    buffer: Bytes
    starts: Int
    ends: Int


def find_lines(block: bytes) -> Lines | None:
    r"""Return the lines of a block, or None if some end in \r alone."""
    buffer = np.frombuffer(block, np.uint8)
    breaks = np.flatnonzero(buffer == ord("\n"))
    starts = np.concatenate(([0], breaks + 1))
    ends = np.append(breaks, len(buffer))
    if starts[-1] == len(buffer):
        starts, ends = starts[:-1], ends[:-1]
    if b"\r" in block:
        if block.count(b"\r") != block.count(b"\r\n"):
            return None
        ends = ends - ((ends > starts) & (buffer[ends - 1] == ord("\r")))
    return Lines(buffer, starts, ends)


def gather(buffer: Bytes, starts: Int, ends: Int) -> tuple[Bytes, Int]:
    """Return the pieces ``buffer[starts[i]:ends[i]]``, which follow one another, as values and offsets."""
    offsets = np.concatenate(([0], np.cumsum(ends - starts)))
    runs = np.empty(2 * len(starts) + 1, dtype=np.int64)  # of bytes to leave out and to take, in turn
    runs[1::2] = ends - starts
    runs[0:-1:2] = starts - np.concatenate(([0], ends[:-1]))
    runs[-1] = len(buffer) - (ends[-1] if len(ends) else 0)
    taken = np.zeros(len(runs), dtype=bool)
    taken[1::2] = True
    return buffer[np.repeat(taken, runs)], offsets


def strings(values: Bytes, offsets: Int) -> StringBatch:
    """Return strings of UTF-8, each of them valid, as a batch."""
    if values.max(initial=0) < 128:
        return StringBatch(values, offsets)
    begins = np.concatenate(([0], np.cumsum((values & 0xC0) != 0x80)))  # a character has one byte that is not 10xxxxxx
    points = np.frombuffer(values.tobytes().decode().encode("utf-32-le"), np.uint32).copy()
    return StringBatch(points, begins[offsets])


def narrow(batch: Any) -> Any:
    """Return a batch of strings in one byte for each letter where all are ASCII."""
    if isinstance(batch, StringBatch) and batch.values.dtype == np.uint32 and batch.values.max(initial=0) < 128:
        return StringBatch(batch.values.astype(np.uint8), batch.offsets)
    return batch
