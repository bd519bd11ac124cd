"""Objects from files of any length and from generators, a chunk at a time in constant memory.

FASTA, FASTQ, CSV and TSV (plain or ``.gz``), Parquet, ``.npy`` arrays, and any iterable. Memory is a chunk and a block
of the file. 10^6 strings of 100 letters take 0.6 s of one core from FASTA, 0.3 s from CSV (1.3 s where it has quotes)
and 0.4 s from Parquet.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from similia._validation import check_positive_int
from similia.objects._array_streams import ArrayRows
from similia.objects._blocks import Records
from similia.objects._delimited_streams import delimited_records, delimiter_of
from similia.objects._iterable_streams import Items
from similia.objects._lines import narrow
from similia.objects._parquet_streams import ParquetRows
from similia.objects._sequence_files import fasta_records, fastq_records
from similia.objects._sequences import _short, concatenate
from similia.objects._strings import StringBatch

_FASTA = {".fa", ".fasta", ".fna", ".faa"}
_FASTQ = {".fq", ".fastq"}
_TABLES = {".csv", ".tsv", ".tab"}
_ROWS = {".parquet", ".npy"}


@dataclass(frozen=True)
class Chunk:
    """Consecutive objects of a stream.

    Attributes
    ----------
    objects : StringBatch, ndarray or another batch
        As the kind of the stream says.
    names : list of str, optional
        Of FASTA and FASTQ: the first word of each header; of a table what `open_stream` was told.
    start, stop : int
        Numbers of the objects in the stream, from 0, `stop` excluded.
    mark : str
        Where the next chunk begins; see `ObjectStream.chunks`.
    bytes_read : int
        Position in the file, of compressed bytes for ``.gz``.
    """

    objects: Any
    names: list[str] | None
    start: int
    stop: int
    mark: str
    bytes_read: int


class ObjectStream:
    """Objects of a file or an iterable; `open_stream` makes it.

    Attributes
    ----------
    kind : {"strings", "vectors", "series", "sets", "graphs"}
    source : str
        The path as it was given, or the type of the iterable.
    n : int or None
        Number of objects, where it is known before they are read (.npy, Parquet, lists).
    size : int or None
        Bytes of the file.
    """

    def __init__(
        self, source: Any, text: str | int, chunk: int, max_bytes: int, names: str | int | None = None
    ) -> None:
        self._text, self._names, self._chunk, self._max_bytes = text, names, chunk, max_bytes
        self._path: Path | None = None
        self._rows: Any = None
        self.kind, self.n, self.size = "strings", None, None
        if isinstance(source, str | os.PathLike):
            self._path, self.source = Path(source), str(source)
            self.size = self._path.stat().st_size
            suffixes = [suffix.lower() for suffix in self._path.suffixes if suffix.lower() != ".gz"]
            self._ending = suffixes[-1] if suffixes else ""
            self._rows = self._rows_of(self._path)
        else:
            self.source, self._rows = type(source).__name__, Items(source)
        if names is not None and (self._path is None or self._ending not in _TABLES | {".parquet"}):
            has = "records with names" if self._path and self._ending in _FASTA | _FASTQ else "no columns"
            raise ValueError(f"{self.source} has {has}; a column with names is one of a CSV, TSV or Parquet table")
        if self._rows is not None:
            self.kind, self.n = self._rows.kind, self._rows.n

    def _rows_of(self, path: Path) -> Any:
        """Return the reader of a file whose objects have numbers, None for one that is text."""
        if self._ending not in _FASTA | _FASTQ | _TABLES | _ROWS:
            endings = ", ".join(sorted(_FASTA | _FASTQ | _TABLES | _ROWS))
            raise ValueError(f"{path} has an unknown ending; streams are read from {endings} and iterables")
        if self._ending in _ROWS and path.suffix.lower() == ".gz":
            raise ValueError(f"{path} is compressed as a whole, which cannot be read by rows; gunzip it first")
        if self._ending == ".parquet":
            return ParquetRows(path, self._text, self._names)
        return ArrayRows(path) if self._ending == ".npy" else None

    def fingerprint(self) -> str:
        """Return a digest of the bytes of the file and of the columns that are read.

        The file is read once, in constant memory, at about 1 GB a second.

        Raises
        ------
        ValueError
            For an iterable, whose objects are gone once they are read.
        """
        if self._path is None:
            raise ValueError(f"a {self.source} has no fingerprint, for it may not be read twice; write it to a file")
        with open(self._path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256")  # twice as fast as blake2b where the processor knows it
        if self._ending in _TABLES | {".parquet"}:
            digest.update(f"\0{self._text!r}".encode())
        if self._names is not None:
            digest.update(f"\0{self._names!r}".encode())
        return digest.hexdigest()

    def chunks(self, start: int = 0, mark: str | None = None) -> Iterator[Chunk]:
        """Yield the chunks of the objects from number `start` on.

        Parameters
        ----------
        start : int
            Number of the first object.
        mark : str, optional
            `Chunk.mark` of the chunk that ended at `start`: plain files are then read from there on. Without it, and
            in compressed files, what stands before is read and passed over.

        Raises
        ------
        ValueError
            If `start` is behind the end, `mark` is of another place, the file is damaged, or a record takes more than
            a quarter of ``max_memory`` (a row of a table with quotes a sixteenth); the sentence names the line, or
            the row or item from 0.
        TypeError
            If an object is of another kind, such as a number among strings.
        """
        check_positive_int(start, "start", minimum=0)
        offset, line = self._place(start, mark)
        if self.n is not None and start > self.n:
            raise ValueError(f"{self.source} holds {self.n} objects, so none is number {start}")
        if self._rows is not None:
            return self._cut(self._rows.records(start, self._chunk, self._max_bytes), start, 0, 0)
        return self._cut(self._records(offset, line), start, 0 if mark else start, offset)

    def _place(self, start: int, mark: str | None) -> tuple[int, int]:
        """Return the position and the number of the line that a mark names."""
        if not mark:
            return 0, 1
        try:
            number, *place = map(int, mark.split(":"))
            offset, line = place or (0, 1)
        except (ValueError, AttributeError):
            number, offset, line = -1, 0, 1
        too_far = self._path is not None and self._path.suffix.lower() != ".gz" and offset > (self.size or 0)
        if number != start or min(offset, line) < 0 or too_far:
            raise ValueError(f"mark {_short(mark)} is not where object {start} of {self.source} begins")
        return offset, line

    def _records(self, offset: int, line: int) -> Iterator[Records]:
        if self._ending in _TABLES:
            columns = (self._text,) if self._names is None else (self._text, self._names)
            return delimited_records(self._path, columns, delimiter_of(self._path), True, offset, line)
        return (fasta_records if self._ending in _FASTA else fastq_records)(self._path, offset, line)

    def _cut(self, records: Iterator[Records], start: int, skip: int, behind: int) -> Iterator[Chunk]:
        """Yield records as chunks that begin at object `start`, after `skip` objects; `behind` is where those end."""
        pieces: list[tuple[Records, int, int]] = []
        n = passed = begin = 0
        for part in records:
            stop = len(part.ends)
            a = min(skip - passed, stop) if passed < skip else 0
            passed += stop
            while a < stop:
                if n == 0:
                    begin = int(part.ends[a - 1]) if a else behind
                fit = int(np.searchsorted(part.ends, begin + self._max_bytes, "right"))
                b = min(stop, a + self._chunk - n, max(fit, a + (n == 0)))
                if b > a:
                    pieces.append((part, a, b))
                    n += b - a
                if n == self._chunk or b < stop:
                    yield _chunk(pieces, start, n, self._names is not None)
                    pieces, start, n = [], start + n, 0
                a = b
            behind = int(part.ends[-1])
        if n:
            yield _chunk(pieces, start, n, self._names is not None)
        if passed < skip:
            raise ValueError(f"{self.source} holds {passed} objects, so none is number {skip}")


def _chunk(pieces: list[tuple[Records, int, int]], start: int, n: int, named: bool) -> Chunk:
    """Return pieces of records as a chunk, `named` by their second column."""
    objects = [_slice(part.columns[0], a, b) for part, a, b in pieces]
    names: list[str] = []
    for part, a, b in pieces:
        names += [(header.split(None, 1) or [""])[0] for header in (part.headers or [])[a:b]]
        names += part.columns[1][a:b].tolist() if named else []
    last, _, stop = pieces[-1]
    end = int(last.ends[stop - 1])
    place = "" if last.lines is None else f":{end}:{int(last.lines[stop - 1])}"
    return Chunk(
        narrow(objects[0] if len(objects) == 1 else concatenate(objects)),
        names if named or last.headers is not None else None,
        start,
        start + n,
        f"{start + n}{place}",
        end if last.position is None else last.position,
    )


def _slice(batch: Any, start: int, stop: int) -> Any:
    """Return ``batch[start:stop]``; of strings a view, which costs a tenth of picking them one by one."""
    if not isinstance(batch, StringBatch):
        return batch[start:stop]
    offsets = batch.offsets[start : stop + 1]
    return StringBatch(batch.values[offsets[0] : offsets[-1]], offsets - offsets[0], batch.is_bytes)


def open_stream(
    source: str | os.PathLike[str] | Iterable[Any],
    *,
    text: str | int = "text",
    chunk: int = 10_000,
    max_bytes: int = 2**26,
    names: str | int | None = None,
) -> ObjectStream:
    r"""Open a file or an iterable to be read a chunk of objects at a time.

    Parameters
    ----------
    source : path or iterable
        FASTA (``.fa``, ``.fasta``, ``.fna``, ``.faa``), FASTQ (``.fq``, ``.fastq``) or a table with a line of names
        (``.csv``, ``.tsv``, ``.tab``), all also with ``.gz``; ``.parquet``; ``.npy`` of numbers, shape (n,
        n_features). Or an iterable of strings, series (arrays), graphs or batches of objects, of which a generator
        is read once; a 2-D array gives its rows.
    text : str or int
        Name or position of the column of a table.
    chunk : int
        Most objects in a chunk.
    max_bytes : int
        About the most bytes of input in a chunk, which holds one object at least.
    names : str or int, optional
        Name or position of another column of a table, which names the objects: `Chunk.names`, as text.

    Returns
    -------
    ObjectStream
        Where chunks are cut has no influence on the objects.

    Raises
    ------
    ValueError
        If the file has an unknown ending, or is not what its ending says.
    TypeError
        If the column holds no strings, or `source` is neither a path nor an ordered iterable.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from similia.objects.streams import open_stream
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "three.fasta")
    ...     _ = path.write_text(">a 1\nACGT\nAC\n>b\nGG\n>c\nT\n")
    ...     stream = open_stream(path, chunk=2)
    ...     for part in stream.chunks():
    ...         print(part.start, part.names, part.objects.tolist(), part.bytes_read)
    ...     first = next(stream.chunks())
    ...     [last] = stream.chunks(first.stop, first.mark)  # a file that is not compressed is read from there on
    ...     last.objects.tolist()
    0 ['a', 'b'] ['ACGTAC', 'GG'] 19
    2 ['c'] ['T'] 24
    ['T']
    >>> [part.objects.tolist() for part in open_stream((word for word in ["x", "yy", "z"]), chunk=2).chunks()]
    [['x', 'yy'], ['z']]
    """
    check_positive_int(chunk, "chunk")
    check_positive_int(max_bytes, "max_bytes")
    return ObjectStream(source, text, chunk, max_bytes, names)
