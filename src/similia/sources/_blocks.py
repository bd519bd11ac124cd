"""Text files of any length as blocks of bytes that hold whole records, in constant memory.

A block ends where a record ends, so a parser is a function of the bytes of one block: it has no state, can be fast on
plain ASCII, and can start at any record of a plain file. A record longer than ``max_memory // RECORD_SHARE`` is refused
before more of it is read or unpacked.

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
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TextIO

import numpy as np
import numpy.typing as npt

from similia.core.config import settings
from similia.core.errors import BadFile
from similia.core.validation import as_path
from similia.objects.strings import StringBatch

RECORD_SHARE = 4  # a record may take a quarter of max_memory: its bytes, their join, its letters and a mask
WIDE_SHARE = 4  # a quarter of that where it is not ASCII: a letter takes four bytes, and the csv module's eight
_BLOCK = 2**20  # bytes read at once: few calls, and small enough for the caches
_BOM = b"\xef\xbb\xbf"
Int = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Records:
    """Records of one block.

    Attributes
    ----------
    columns : tuple of StringBatch
        Sequences of FASTA; sequences and qualities of FASTQ; columns of a table, of which the first may be a batch of
        other objects or an array.
    ends : ndarray of int64, shape (n,)
        Position in the (unpacked) file behind each record.
    lines : ndarray of int64, shape (n,), optional
        Number of the line there, from 1; of text files.
    begins : ndarray of int64, shape (n,), optional
        Number of the line in which each record begins, counted as editors do.
    rows : ndarray of int64, shape (n,), optional
        Number of each record in the file, from 0, where some records may be left out.
    headers : list of str, optional
        Of FASTA and FASTQ, without ``>`` or ``@``.
    position : int, optional
        Bytes of the file read so far, where `ends` are others: the file is compressed.
    """

    columns: tuple[Any, ...]
    ends: Int
    lines: Int | None = None
    headers: list[str] | None = None
    position: int | None = None
    begins: Int | None = None
    rows: Int | None = None


def record_limit() -> int:
    """Return the most bytes that one record may take."""
    return max(1, settings().max_memory // RECORD_SHARE)


class Blocks:
    """Blocks of whole records of a plain or gzip (``.gz``) file.

    Parameters
    ----------
    path : path
    offset, line : int
        Where to begin in the unpacked file, and the number of the line there.
    encoding : str
        Of the file; blocks are UTF-8, and offsets count bytes of that.
    """

    def __init__(self, path: Any, offset: int = 0, line: int = 1, encoding: str = "utf-8") -> None:
        self.path, self.offset, self.line, self.encoding = path, offset, line, encoding
        self.limit = record_limit()

    def __enter__(self) -> Blocks:
        self._raw: BinaryIO = open(as_path(self.path), "rb")
        packed = Path(self.path).suffix.lower() == ".gz"
        self._file: Any = gzip.GzipFile(fileobj=self._raw) if packed else self._raw
        if not is_utf8(self.encoding):
            self._file = _Recoded(self._file, self.encoding)
        return self

    def __exit__(self, *error: object) -> None:
        self._raw.close()

    @property
    def position(self) -> int | None:
        """Bytes of a compressed file read so far."""
        return None if self._file is self._raw else self._raw.tell()

    def split(self, cut: Callable[[bytes], int]) -> Iterator[bytes]:
        """Yield blocks; ``cut(data)`` is the length of the whole records that `data` begins with, 0 if there is none.

        While a block is in use, `offset` and `line` are where it begins.
        """
        with one_sentence(self.path, self.encoding):
            self._seek()
            few = min(_BLOCK, 1 + self.limit // (2 * WIDE_SHARE))
            rest, size = b"", few
            while data := self._file.read(min(size, self.limit + 1 - len(rest))):
                rest = rest + data if rest else data
                length = cut(rest)
                if length:
                    block, rest, size = rest[:length], rest[length:], few
                    yield self._checked(block)
                    self._pass(block)
                elif len(rest) > self.limit:
                    raise self.too_long(self.line, self.limit)
                else:
                    size = max(size, len(rest))  # doubling: a long record is searched few times
            if rest:
                yield self._checked(rest)
                self._pass(rest)

    def too_long(self, line: int, limit: int, record: str = "record") -> BadFile:
        """Return the error about the record that begins in `line`."""
        return BadFile(
            self.path,
            f"the {record} that begins here is longer than {limit} bytes; raise max_memory (similia.config or "
            f"--max-memory), of which it may take 1/{settings().max_memory // limit}, or is the file damaged?",
            at=f"line {line}",
        )

    def _seek(self) -> None:
        self._file.seek(self.offset)
        if self.offset == 0:
            begin = self._file.read(len(_BOM))
            self.offset = len(_BOM) if begin == _BOM else 0
            self._file.seek(self.offset)

    def _checked(self, block: bytes) -> bytes:
        wide = self.limit // WIDE_SHARE
        if len(block) > wide and not block.isascii():
            raise self.too_long(self.line, wide)
        nul = block.find(b"\0")
        if nul >= 0:
            line = self.line + count_lines(block[:nul])
            raise BadFile(self.path, f"a NUL byte; {_not_text(self.encoding)}", at=f"line {line}")
        return block

    def _pass(self, block: bytes) -> None:
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


def decode(raw: bytes, path: Any, line: int) -> str:
    """Return bytes as text, or raise naming the line."""
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        line += count_lines(raw[: error.start])
        raise BadFile(path, f"{_not_text('utf-8')} ({error})", at=f"line {line}") from None


def is_utf8(encoding: str) -> bool:
    """Return whether an encoding is UTF-8, with or without a byte order mark."""
    return codecs.lookup(encoding).name in ("utf-8", "utf-8-sig")


def _not_text(encoding: str) -> str:
    """Return what to do about bytes that are no text."""
    if is_utf8(encoding):
        return (
            "it is truncated or not a UTF-8 text file; name another encoding, such as latin-1 or utf-16 "
            "(encoding= or --encoding)"
        )
    return f"it is truncated or not {encoding} text; name another encoding (encoding= or --encoding)"


@contextmanager
def one_sentence(path: Any, encoding: str = "utf-8") -> Iterator[None]:
    """Turn what a damaged file raises while it is unpacked or decoded into ValueError."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise BadFile(path, f"is truncated or not a whole gzip file: {error}") from None
    except UnicodeError as error:
        raise BadFile(path, f"is not text: {_not_text(encoding)} ({error})") from None


class _Recoded:
    """A file in another encoding, read as UTF-8; going back reads it anew from its beginning."""

    def __init__(self, file: Any, encoding: str) -> None:
        self._file, self._encoding = file, encoding
        self._start()

    def _start(self) -> None:
        self._file.seek(0)
        if "a".encode(self._encoding) != b"a" or self._file.read(len(_BOM)) != _BOM:  # a mark is no letter
            self._file.seek(0)
        self._decoder = codecs.getincrementaldecoder(self._encoding)()
        self._ready, self._at, self._done = io.BytesIO(), 0, False

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes of UTF-8, none at the end of the file."""
        while not (data := self._ready.read(size)) and not self._done:
            raw = self._file.read(size)
            self._done = not raw
            self._ready = io.BytesIO(self._decoder.decode(raw, final=self._done).encode())
        self._at += len(data)
        return data

    def seek(self, offset: int) -> None:
        """Go to a position in the UTF-8."""
        if offset < self._at:
            self._start()
        while self._at < offset and self.read(min(_BLOCK, offset - self._at)):
            pass


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


_BOMB = 100  # times that a gzip file may grow: text grows tenfold, deflate at most a thousandfold


def not_a_bomb(path: Any, records: Iterator[Records]) -> Iterator[Records]:
    """Yield records for a list of them all, which a small file that unpacks to a huge one must not fill."""
    most = settings().max_memory
    for part in records:
        if part.position and part.ends[-1] > max(most, _BOMB * part.position):
            raise BadFile(
                path,
                f"unpacks to more than max_memory ({most} bytes) and {_BOMB} times its size, as a bomb does; "
                "raise similia.config(max_memory=...) or read it with similia.sources.open_stream",
            )
        yield part


@contextmanager
def open_text(path: Any) -> Iterator[TextIO]:
    """Open a plain or gzip text file; a file that is cut or not text raises ValueError."""
    opener: Any = gzip.open if as_path(path).suffix.lower() == ".gz" else open
    with one_sentence(path), opener(path, "rt", encoding="utf-8-sig") as file:
        yield file
