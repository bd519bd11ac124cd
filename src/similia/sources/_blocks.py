"""Read text files of any length in blocks of whole records, in constant memory.

A block ends where a record ends. A parser is therefore a function of the bytes of one block and has no state. A record
longer than ``max_memory // RECORD_SHARE`` is refused before more of it is read or unpacked.

Lines of a block are arrays of positions. On 10^6 FASTA records of 100 letters (115 MB), a loop over lines took 2.4 s,
``bytes.split`` 0.45 s, a numba loop 0.36 s and positions by numpy, which are used here, 0.31 s.
"""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from similia.core.config import settings
from similia.core.errors import BadFile
from similia.core.validation import as_path
from similia.objects.strings import StringBatch

RECORD_SHARE = 4  # a record may take a quarter of max_memory: its bytes, their join, its letters and a mask
WIDE_SHARE = 4  # a quarter of that if it is not ASCII: a letter takes four bytes, and the csv module's eight
_BLOCK = 2**20  # bytes read at once: few calls, and small enough for the caches
_BOM = codecs.BOM_UTF8
_SPACE = np.zeros(256, dtype=bool)  # the ASCII characters that str.strip removes
_SPACE[[9, 10, 11, 12, 13, 28, 29, 30, 31, 32]] = True
Int = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Records:
    """Consecutive records of a file.

    Attributes
    ----------
    columns : tuple of StringBatch, arrays or other batches
        Sequences of FASTA; sequences and qualities of FASTQ; columns of a table, the first of which may hold objects.
    ends : ndarray of int64, shape (n,)
        Position behind each record in the unpacked file.
    begins : ndarray of int64, shape (n,), optional
        Line in which each record begins, from 1.
    rows : ndarray of int64, shape (n,), optional
        Number of each record in the file, from 0, if bad records can be skipped.
    headers : list of str, optional
        Headers of FASTA and FASTQ, without ``>`` or ``@``.
    position : int, optional
        Bytes of a compressed file read so far, where `ends` are positions in the unpacked one.
    """

    columns: tuple[Any, ...]
    ends: Int
    begins: Int | None = None
    rows: Int | None = None
    headers: list[str] | None = None
    position: int | None = None

    def take(self, rows: Any, columns: tuple[Any, ...] | None = None) -> Records:
        """Return the records at `rows` (a slice or indices); `columns` replace theirs."""
        columns = tuple(part_of(column, rows) for column in self.columns) if columns is None else columns
        begins, numbers = (None if a is None else a[rows] for a in (self.begins, self.rows))
        headers = self.headers
        if headers is not None:
            headers = headers[rows] if isinstance(rows, slice) else [headers[i] for i in rows]
        return replace(self, columns=columns, ends=self.ends[rows], begins=begins, rows=numbers, headers=headers)


def part_of(batch: Any, rows: Any) -> Any:
    """Return ``batch[rows]``; a slice of strings is a view, which takes a tenth of the time of a copy."""
    if not isinstance(batch, StringBatch) or not isinstance(rows, slice):
        return batch[rows]
    start, stop, _ = rows.indices(len(batch))
    offsets = batch.offsets[start : stop + 1]
    return StringBatch(batch.values[offsets[0] : offsets[-1]], offsets - offsets[0], batch.is_bytes)


def record_limit() -> int:
    """Return the maximum number of bytes of one record."""
    return max(1, settings().max_memory // RECORD_SHARE)


class Blocks:
    """Read a plain or gzip (``.gz``) file in blocks of whole records; a context manager.

    Blocks are valid UTF-8, whatever the `encoding` of the file. While a block is in use, `offset` and `line` are the
    position and the line (from 1) where it begins.
    """

    def __init__(self, path: Any, encoding: str = "utf-8") -> None:
        self.path, self.encoding, self.offset, self.line = path, encoding, 0, 1
        self.limit = record_limit()

    def __enter__(self) -> Blocks:
        self._raw: BinaryIO = open(as_path(self.path), "rb")
        packed = Path(self.path).suffix.lower() == ".gz"
        self._file: Any = gzip.GzipFile(fileobj=self._raw) if packed else self._raw
        return self

    def __exit__(self, *error: object) -> None:
        self._raw.close()

    @property
    def position(self) -> int | None:
        """Bytes of a compressed file read so far."""
        return None if self._file is self._raw else self._raw.tell()

    def split(self, cut: Callable[[bytes], int]) -> Iterator[bytes]:
        """Yield blocks; ``cut(data)`` returns the length of the whole records that `data` begins with, or 0."""
        with file_errors(self.path, self.encoding):
            self._skip_mark()
            few = min(_BLOCK, 1 + self.limit // (2 * WIDE_SHARE))
            rest, size = b"", few
            while data := self._file.read(min(size, self.limit + 1 - len(rest))):
                rest = rest + data if rest else data
                length = cut(rest)
                if length:
                    block, rest, size = rest[:length], rest[length:], few
                    yield from self._block(block)
                elif len(rest) > self.limit:
                    raise self.too_long(self.line, self.limit)
                else:
                    size = max(size, len(rest))  # doubling: a long record is searched only a few times
            if rest:
                yield from self._block(rest)

    def too_long(self, line: int, limit: int, record: str = "record") -> BadFile:
        """Return the error about the record that begins in `line`."""
        return BadFile(
            self.path,
            f"the {record} that begins here is longer than {limit} bytes; raise max_memory (similia.config or "
            f"--max-memory), of which it may take 1/{settings().max_memory // limit}, or is the file damaged?",
            at=f"line {line}",
        )

    def _skip_mark(self) -> None:
        """Skip a byte order mark of UTF-8, and read other encodings as UTF-8."""
        ascii_alike = "a".encode(self.encoding) == b"a"  # elsewhere, such as in UTF-16, these bytes are letters
        marked = ascii_alike and self._file.read(len(_BOM)) == _BOM
        self._file.seek(len(_BOM) if marked else 0)
        if is_utf8(self.encoding):
            self.offset = len(_BOM) if marked else 0
        else:
            self._file = _Recoded(self._file, self.encoding)

    def _block(self, block: bytes) -> Iterator[bytes]:
        """Check and yield a block, then move `offset` and `line` behind it."""
        if not block.isascii():
            wide = self.limit // WIDE_SHARE
            if len(block) > wide:
                raise self.too_long(self.line, wide)
            try:
                block.decode()
            except UnicodeDecodeError as error:
                line = self.line + count_lines(block[: error.start])
                raise BadFile(self.path, f"{_not_text('utf-8')} ({error})", at=f"line {line}") from None
        nul = block.find(b"\0")
        if nul >= 0:
            line = self.line + count_lines(block[:nul])
            raise BadFile(self.path, f"a NUL byte; {_not_text(self.encoding)}", at=f"line {line}")
        yield block
        self.offset += len(block)
        self.line += count_lines(block)


def count_lines(block: bytes) -> int:
    r"""Return the number of line ends (\n, \r\n or \r)."""
    n = block.count(b"\n")
    return n if b"\r" not in block else n + block.count(b"\r") - block.count(b"\r\n")


def whole_lines(data: bytes) -> int:
    r"""Return the length of the whole lines that `data` begins with."""
    end = data.rfind(b"\n") + 1
    return end or data.rfind(b"\r", 0, len(data) - 1) + 1  # the last \r may be half of a \r\n


def is_utf8(encoding: str) -> bool:
    """Return whether an encoding is UTF-8, with or without a byte order mark."""
    return codecs.lookup(encoding).name in ("utf-8", "utf-8-sig")


def _not_text(encoding: str) -> str:
    """Return the message about bytes that are not text of this encoding."""
    named, other = (
        ("a UTF-8 text file", ", such as latin-1 or utf-16") if is_utf8(encoding) else (f"{encoding} text", "")
    )
    return f"it is truncated or not {named}; name another encoding{other} (encoding= or --encoding)"


@contextmanager
def file_errors(path: Any, encoding: str = "utf-8") -> Iterator[None]:
    """Convert errors about a file that cannot be unpacked or decoded to `BadFile`."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise BadFile(path, f"is truncated or not a whole gzip file: {error}") from None
    except UnicodeError as error:
        raise BadFile(path, f"is not text: {_not_text(encoding)} ({error})") from None


class _Recoded:
    """A file in another encoding, read as UTF-8 from its position on."""

    def __init__(self, file: Any, encoding: str) -> None:
        self._file, self._decoder = file, codecs.getincrementaldecoder(encoding)()
        self._ready, self._done = io.BytesIO(), False

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes of UTF-8, none at the end of the file."""
        while not (data := self._ready.read(size)) and not self._done:
            raw = self._file.read(size)
            self._done = not raw
            self._ready = io.BytesIO(self._decoder.decode(raw, final=self._done).encode())
        return data


class Lines(NamedTuple):
    """Line i of a block is ``text[starts[i]:ends[i]]``, and ends at position ``behind[i]`` of the file."""

    buffer: Bytes
    starts: Int
    ends: Int
    behind: Int
    text: bytes  # same as `buffer`


def find_lines(block: bytes, at: Blocks, strip: bool = False) -> Lines:
    r"""Return the lines of a block, which end in \n, \r\n or \r; with `strip`, without white space around them."""
    if b"\r" not in block or block.count(b"\r") == block.count(b"\r\n"):
        buffer = np.frombuffer(block, np.uint8)
        behind = np.flatnonzero(buffer == ord("\n")) + 1
        ends = behind - 1
        if not len(behind) or behind[-1] < len(buffer):
            behind, ends = np.append(behind, len(buffer)), np.append(ends, len(buffer))
        starts = np.concatenate(([0], behind[:-1]))
        if b"\r" in block:
            ends = ends - ((ends > starts) & (buffer[ends - 1] == ord("\r")))
        if not strip or (block.isascii() and not _has_margins(buffer, starts, ends)):
            return Lines(buffer, starts, ends, at.offset + behind, block)
    raws = block.splitlines(keepends=True)
    texts = [raw.decode().strip().encode() if strip else raw.rstrip(b"\r\n") for raw in raws]
    ends = np.cumsum([len(text) + 1 for text in texts], dtype=np.int64) - 1
    starts = np.concatenate(([0], ends[:-1] + 1))
    behind = at.offset + np.cumsum([len(raw) for raw in raws], dtype=np.int64)
    text = b"\n".join(texts)
    return Lines(np.frombuffer(text, np.uint8), starts, ends, behind, text)


def _has_margins(buffer: Bytes, starts: Int, ends: Int) -> bool:
    """Return whether a line begins or ends with white space."""
    full = ends > starts
    return bool(_SPACE[buffer[starts[full]]].any() or _SPACE[buffer[ends[full] - 1]].any())


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
    """Return valid UTF-8 strings as a batch."""
    if values.max(initial=0) < 128:
        return StringBatch(values, offsets)
    begins = np.concatenate(([0], np.cumsum((values & 0xC0) != 0x80)))  # a character has one byte that is not 10xxxxxx
    points = np.frombuffer(values.tobytes().decode().encode("utf-32-le"), np.uint32).copy()
    return StringBatch(points, begins[offsets])


def narrow(batch: Any) -> Any:
    """Return a batch of strings with one byte per letter if all letters are ASCII."""
    if isinstance(batch, StringBatch) and batch.values.dtype == np.uint32 and batch.values.max(initial=0) < 128:
        return StringBatch(batch.values.astype(np.uint8), batch.offsets)
    return batch


_BOMB = 100  # how many times larger an unpacked file may be: text grows tenfold, deflate at most a thousandfold


def refuse_bombs(path: Any, records: Iterator[Records]) -> Iterator[Records]:
    """Yield records; raise if a small file unpacks to a huge one, before a list of all records fills the memory."""
    most = settings().max_memory
    for part in records:
        if part.position and part.ends[-1] > max(most, _BOMB * part.position):
            raise BadFile(
                path,
                f"unpacks to more than max_memory ({most} bytes) and {_BOMB} times its size, as a bomb does; "
                "raise similia.config(max_memory=...) or read it with similia.sources.open_stream",
            )
        yield part
