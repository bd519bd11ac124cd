"""`Source`, the base class of objects in files, iterables or Dask collections, which are read a chunk at a time."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.config import meter
from similia.objects.sequences import StringBatch, concatenate, take
from similia.sources.reading import Objects, Reading, Skips

_BLOCK = 10_000  # rows hashed at once


@dataclass(frozen=True)
class Chunk:
    """Consecutive objects of a source.

    Attributes
    ----------
    objects : StringBatch, ndarray or another batch of `similia.objects`
        The objects; the attribute ``kind`` of the source says what they are.
    names : list of str or of int, optional
        For FASTA and FASTQ: the first word of each header. For ``.smi`` and SDF: the names in the file. For a table:
        the column given by the option ``names``. If there are no names: None or, with ``on_error="skip"``, the
        positions of the rows in the file.
    start, stop : int
        The objects have the positions `start` to `stop` - 1 in the source, counted from 0.
    bytes_read : int
        Number of bytes of the file read so far; for ``.gz``, of the compressed file. For an iterable, approximate bytes
        of the objects so far. 0 for a Dask collection, or a file that was read as a whole.
    labels : list, optional
        Labels as stored in the file; None if it has none, or is read as a whole (as ``.ts`` and ``.npz`` are).
    lines : ndarray of int, shape (stop - start,), optional
        For a text file: number of the line in which each object begins. Lines are counted from 1, including empty ones.
    rows : ndarray of int, shape (stop - start,), optional
        Position of each object in the file, counted from 0: its row in a table, its line in a text file (empty lines do
        not count), or its molecule in a ``.smi`` or SDF file.
    """

    objects: Any
    names: list[Any] | None
    start: int
    stop: int
    bytes_read: int = 0
    labels: list[Any] | None = None
    lines: Any = None
    rows: Any = None


Chunks = Generator[Chunk, None, None]


class Source(ABC):
    """Objects that are read a chunk at a time.

    Attributes
    ----------
    kind : {"strings", "vectors", "series", "sets", "graphs", "objects"}
        What the objects are; "objects" for a Dask collection.
    called : str
        Word for the objects in messages: "molecules" for graphs read from SMILES or SDF, otherwise the kind.
    source : str
        The path as given or, for an iterable, the name of its type.
    n : int or None
        Number of objects, if it is known before they are read.
    size : int or None
        Size of the file in bytes.
    again : bool
        Whether the objects can be read a second time.
    told : str or None
        A sentence that tells the user which columns similia took as the objects. None if an option named these columns,
        or if the file has no columns.
    columns : sequence of str
        Columns of a table that hold the objects: their names, or their positions if the table has no header.
    reading : Reading
        Options with which a file is read.
    skips : Skips or None
        Rows left out with ``on_error="skip"``: ``skips.n`` is their number, and ``skips.first`` holds the line and the
        reason of the first one.
    at_end : callable or None
        Called with the source whenever it has been read to its end.
    """

    elsewhere = True  # not all objects are in memory; `similia.objects` looks for this attribute
    kind: str = "objects"
    source: str = ""
    n: int | None = None
    size: int | None = None
    again: bool = True
    told: str | None = None
    columns: Sequence[str] = ()
    reading: Reading = Reading()
    skips: Skips | None = None
    at_end: Callable[[Any], None] | None = None

    @property
    def called(self) -> str:
        return self.kind

    @abstractmethod
    def chunks(self, start: int = 0) -> Chunks:
        """Yield the objects from position `start` on, in chunks."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Return a digest of the objects, or raise ValueError if they cannot be read twice."""

    def take(self, indices: npt.ArrayLike) -> Any:
        """Return the objects at `indices` (>= 0), in this order; read only up to the largest index."""
        wanted, order = np.unique(np.asarray(indices, np.int64), return_inverse=True)
        if not len(wanted):
            raise ValueError("no objects are taken, expected at least one index")
        parts = []
        with closing(self.chunks()) as chunks:
            for chunk in chunks:
                low, high = np.searchsorted(wanted, [chunk.start, chunk.stop])
                if low < high:
                    parts.append(take(chunk.objects, wanted[low:high] - chunk.start))
                if high == len(wanted):
                    return take(concatenate(parts) if len(parts) > 1 else parts[0], order)
        raise IndexError(f"{self.source} has no object at position {wanted[-1]} (counted from 0)")


class Held(Source):
    """Source of objects in memory: a data set, or a file that can only be read as a whole."""

    def __init__(self, read: Objects, chunk: int = 10_000) -> None:
        self.source, self.kind, self.told, self.skips = read.source, read.kind, read.told, read.skips
        self.n = len(read.objects)
        self.objects, self._read, self._chunk = read.objects, read, chunk

    @property
    def called(self) -> str:
        return self._read.called

    def chunks(self, start: int = 0) -> Chunks:
        n = len(self.objects)
        for first in range(start, n, self._chunk):
            stop = min(n, first + self._chunk)
            names, lines = (None if a is None else a[first:stop] for a in (self._read.names, self._read.lines))
            yield Chunk(take(self.objects, np.arange(first, stop)), names, first, stop, lines=lines)
        if self.at_end is not None:
            self.at_end(self)

    def fingerprint(self) -> str:
        objects, digest = self.objects, hashlib.blake2b(f"{self.kind}".encode(), digest_size=16)
        arrays = [objects] if isinstance(objects, np.ndarray) else [getattr(objects, f.name) for f in fields(objects)]
        for array in map(np.atleast_1d, arrays):  # flags and None become arrays of one entry
            digest.update(f"{array.dtype} {array.shape}".encode())
            for start in range(0, len(array), _BLOCK):
                block = array[start : start + _BLOCK]
                digest.update(str(block).encode() if block.dtype == object else np.ascontiguousarray(block).tobytes())
        return digest.hexdigest()


# ---- a sample
_Ints = npt.NDArray[np.int64]
_Part = tuple[npt.NDArray[np.float64], _Ints, Any, _Ints]  # random numbers, bytes, objects, positions in the source


def sample(source: Source, most: int, max_bytes: int, random_state: int) -> tuple[int, Objects, _Ints]:
    """Read a source once; return its number of objects, a uniform sample of them, and the positions of the sample.

    Each object gets a random number. Those with the smallest numbers are kept: `most` objects, or fewer if these take
    more than `max_bytes`. The sample does not depend on the chunks, and memory is constant.
    """
    rng, limit, n = np.random.default_rng(random_state), np.inf, 0
    parts: list[_Part] = []
    with meter("sample", 0, source.n, source.size) as update:
        for chunk in source.chunks():
            drawn = rng.random(chunk.stop - chunk.start)
            rows = np.flatnonzero(drawn < limit)
            if len(rows):
                parts.append((drawn[rows], _sizes(chunk.objects)[rows], take(chunk.objects, rows), chunk.start + rows))
            if sum(len(p[0]) for p in parts) > 2 * most or sum(p[1].sum() for p in parts) > 2 * max_bytes:
                smallest, limit = _smallest(parts, most, max_bytes)
                parts = [smallest]
            n = chunk.stop
            update(n, chunk.bytes_read)
    (_, _, objects, positions), _ = _smallest(parts, most, max_bytes)
    return n, Objects(source.source, source.kind, objects, called=source.called), positions


def _smallest(parts: list[_Part], most: int, max_bytes: int) -> tuple[_Part, float]:
    """Join parts; keep the objects with the smallest random numbers (see `sample`), in the order of the source.

    Also return the smallest random number of an object that is left out (infinity if there is none).
    """
    drawn, sizes, positions = (np.concatenate([part[i] for part in parts]) for i in (0, 1, 3))
    order = np.argsort(drawn, kind="stable")
    fit = min(most, max(1, int(np.searchsorted(np.cumsum(sizes[order]), max_bytes, side="right"))))
    limit = float(drawn[order[fit]]) if fit < len(order) else np.inf
    rows = np.sort(order[:fit])
    objects = parts[0][2] if len(parts) == 1 else concatenate([part[2] for part in parts])
    return (drawn[rows], sizes[rows], take(objects, rows), positions[rows]), limit


def _sizes(objects: Any) -> _Ints:
    """Return the size of each object: bytes of a vector, letters of a string, 0 for objects of other kinds."""
    if isinstance(objects, np.ndarray):
        return np.full(len(objects), objects[0].nbytes)
    return np.diff(objects.offsets) if isinstance(objects, StringBatch) else np.zeros(len(objects), np.int64)
