"""Read text files of any length in blocks of whole records, in constant memory.

A block ends where a record ends. A parser is therefore a function of the bytes of one block and has no state. A record
longer than ``max_memory // RECORD_SHARE`` bytes is refused before more of it is read or unpacked.

Lines of a block are represented by arrays of their positions. On 10^6 FASTA records of 100 letters (115 MB), a loop
over lines takes 2.4 s, ``bytes.split`` 0.45 s, a numba loop 0.36 s, and numpy, as used here, 0.31 s.
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
from similia.objects.sequences import StringBatch, offsets_of

RECORD_SHARE = 4  # a record may take a quarter of max_memory, as up to four copies exist (read, joined, decoded, mask)
WIDE_SHARE = 4  # a record that is not ASCII may take a quarter of this: a letter takes 4 bytes, in the csv module 8
_BLOCK = 2**20  # bytes read at once: few calls, and small enough for the caches
BOMB = 100  # largest allowed ratio of unpacked to packed size: usual text has 10, and deflate reaches 1000
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
        From a parser: the sequences (FASTA), the sequences and qualities (FASTQ), or the columns of a table. From
        `Converter`: the objects, then labels and names, if any.
    ends : ndarray of int64, shape (n,)
        Position just behind each record in the unpacked file; for Parquet and iterables, approximate bytes up to there.
    begins : ndarray of int64, shape (n,), optional
        Number of the line in which each record begins, counted from 1.
    rows : ndarray of int64, shape (n,), optional
        Number of each record in the file, counted from 0; only for formats in which bad records can be skipped.
    headers : list of str, optional
        Headers of FASTA and FASTQ, without ``>`` or ``@``.
    position : int, optional
        Number of bytes of the file read so far, if it differs from ``ends[-1]``, such as in a compressed file.
    """

    columns: tuple[Any, ...]
    ends: Int
    begins: Int | None = None
    rows: Int | None = None
    headers: list[str] | None = None
    position: int | None = None

    def take(self, rows: Any, columns: tuple[Any, ...] | None = None) -> Records:
        """Return the records at `rows`, a slice or indices; `columns`, if given, become their columns."""
        columns = tuple(part_of(column, rows) for column in self.columns) if columns is None else columns
        begins, numbers = (None if a is None else a[rows] for a in (self.begins, self.rows))
        headers = self.headers
        if headers is not None:
            headers = headers[rows] if isinstance(rows, slice) else [headers[i] for i in rows]
        return replace(self, columns=columns, ends=self.ends[rows], begins=begins, rows=numbers, headers=headers)


def part_of(batch: Any, rows: Any) -> Any:
    """Return ``batch[rows]``; slice a `StringBatch` without copying its letters, which takes ten times as long."""
    if not isinstance(batch, StringBatch) or not isinstance(rows, slice):
        return batch[rows]
    start, stop, _ = rows.indices(len(batch))
    offsets = batch.offsets[start : stop + 1]
    return StringBatch(batch.values[offsets[0] : offsets[-1]], offsets - offsets[0], batch.is_bytes)


def record_limit() -> int:
    """Return the largest allowed size of one record in bytes."""
    return max(1, settings().max_memory // RECORD_SHARE)


class Blocks:
    """Context manager that reads a plain or gzip (``.gz``) file in blocks of whole records.

    Blocks are bytes of valid UTF-8, whatever the `encoding` of the file. While the caller of `split` works on a block,
    `offset` is the position of the block in the unpacked file, and `line` the number of its first line, from 1.
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
        """Number of bytes read so far from a file that is compressed or recoded; None for other files."""
        return None if self._file is self._raw else self._raw.tell()

    def split(self, cut: Callable[[bytes], int]) -> Iterator[bytes]:
        """Yield blocks; ``cut(data)`` must return how many of the first bytes of `data` are whole records."""
        with file_errors(self.path, self.encoding):
            self._skip_mark()
            few = min(_BLOCK, 1 + self.limit // (2 * WIDE_SHARE))
            rest, size = b"", few
            while data := self._file.read(min(size, self.limit + 1 - len(rest))):
                rest = rest + data if rest else data
                length = cut(rest)
                if length:
                    block, rest, size = rest[:length], rest[length:], few
                    yield from self._block(block, cut)
                elif len(rest) > self.limit:
                    raise self.too_long(self.line, self.limit)
                else:
                    size = max(size, len(rest))  # doubling: a long record is searched only a few times
            if rest:
                yield from self._block(rest, cut)

    def too_long(self, line: int, limit: int, record: str = "record") -> BadFile:
        """Return the error for a record that begins in line number `line` and takes more than `limit` bytes."""
        return BadFile(
            self.path,
            f"the {record} that begins here is longer than {limit} bytes (1/{settings().max_memory // limit} of "
            "max_memory); raise max_memory (similia.config or --max-memory), or is the file damaged?",
            at=f"line {line}",
        )

    def _skip_mark(self) -> None:
        """Skip a UTF-8 byte order mark; if the file has another encoding, let a `_Recoded` convert it to UTF-8."""
        ascii_alike = "a".encode(self.encoding) == b"a"  # in UTF-16, for example, the bytes of the mark are letters
        marked = ascii_alike and self._file.read(len(_BOM)) == _BOM
        self._file.seek(len(_BOM) if marked else 0)
        if is_utf8(self.encoding):
            self.offset = len(_BOM) if marked else 0
        else:
            self._file = _Recoded(self._file, self.encoding)

    def _block(self, block: bytes, cut: Callable[[bytes], int]) -> Iterator[bytes]:
        """Check that a block is text and yield its parts; after each, move `offset` and `line` to its end."""
        for part in self._parts(block, cut):
            try:
                if not part.isascii():
                    part.decode()
            except UnicodeDecodeError as error:
                line = self.line + count_lines(part[: error.start])
                raise BadFile(self.path, f"{_not_text('utf-8')} ({error})", at=f"line {line}") from None
            nul = part.find(b"\0")
            if nul >= 0:
                line = self.line + count_lines(part[:nul])
                raise BadFile(self.path, f"a NUL byte; {_not_text(self.encoding)}", at=f"line {line}")
            yield part
            self.offset += len(part)
            self.line += count_lines(part)

    def _parts(self, block: bytes, cut: Callable[[bytes], int]) -> Iterator[bytes]:
        """Split a block that is not ASCII into parts that may be decoded at once; raise if a record is too long."""
        wide = self.limit // WIDE_SHARE
        while len(block) > wide and not block.isascii():
            length = cut(block[: wide + 1])
            if not 0 < length <= wide:
                length = _first_record(block, cut)
                if length > wide and not block[:length].isascii():
                    raise self.too_long(self.line, wide)
            yield block[:length]
            block = block[length:]
        if block:
            yield block


def _first_record(block: bytes, cut: Callable[[bytes], int]) -> int:
    """Return the length of the first record of a block; see `Blocks.split` for `cut`."""
    low, high = 0, len(block)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if cut(block[:middle]) else (middle, high)
    return cut(block[:high]) or len(block)


def count_lines(block: bytes) -> int:
    r"""Return the number of line ends (\n, \r\n or \r) in a block."""
    n = block.count(b"\n")
    return n if b"\r" not in block else n + block.count(b"\r") - block.count(b"\r\n")


def whole_lines(data: bytes) -> int:
    r"""Return how many of the first bytes of `data` are whole lines."""
    end = data.rfind(b"\n") + 1
    return end or data.rfind(b"\r", 0, len(data) - 1) + 1  # the last \r may be half of a \r\n


def is_utf8(encoding: str) -> bool:
    return codecs.lookup(encoding).name in ("utf-8", "utf-8-sig")


def _not_text(encoding: str) -> str:
    """Return the end of a message about a file that cannot be decoded with `encoding`."""
    named, other = (
        ("a UTF-8 text file", ", such as latin-1 or utf-16") if is_utf8(encoding) else (f"{encoding} text", "")
    )
    return f"it is truncated or not {named}; name another encoding{other} (encoding= or --encoding)"


@contextmanager
def file_errors(path: Any, encoding: str = "utf-8") -> Iterator[None]:
    """Return a context that turns errors while a file is unpacked or decoded into `BadFile`."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise BadFile(path, f"is truncated or not a whole gzip file: {error}") from None
    except UnicodeError as error:
        raise BadFile(path, f"is not text: {_not_text(encoding)} ({error})") from None


class _Recoded:
    """Wrapper of an open text file that is not UTF-8; `read` converts the text to UTF-8."""

    def __init__(self, file: Any, encoding: str) -> None:
        self._file, self._decoder = file, codecs.getincrementaldecoder(encoding)()
        self._ready, self._done = io.BytesIO(), False

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes of UTF-8; empty bytes mean the end of the file."""
        while not (data := self._ready.read(size)) and not self._done:
            raw = self._file.read(size)
            self._done = not raw
            self._ready = io.BytesIO(self._decoder.decode(raw, final=self._done).encode())
        return data


class Lines(NamedTuple):
    """Lines of a block: line i is ``text[starts[i]:ends[i]]``; the next begins at byte ``behind[i]`` of the file."""

    buffer: Bytes
    starts: Int
    ends: Int
    behind: Int
    text: bytes  # the bytes of `buffer`


def find_lines(block: bytes, at: Blocks, strip: bool = False) -> Lines:
    """Split the block that `at` yielded last into lines without line breaks and, if `strip`, outer white space."""
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
    full = ends > starts
    return bool(_SPACE[buffer[starts[full]]].any() or _SPACE[buffer[ends[full] - 1]].any())


def gather(buffer: Bytes, starts: Int, ends: Int) -> tuple[Bytes, Int]:
    """Join the slices ``buffer[starts[i]:ends[i]]``, whose `starts` ascend; return the bytes and the slice offsets."""
    offsets = offsets_of(ends - starts)
    runs = np.empty(2 * len(starts) + 1, dtype=np.int64)  # lengths of runs of bytes, alternately left out and taken
    runs[1::2] = ends - starts
    runs[0:-1:2] = starts - np.concatenate(([0], ends[:-1]))
    runs[-1] = len(buffer) - (ends[-1] if len(ends) else 0)
    taken = np.zeros(len(runs), dtype=bool)
    taken[1::2] = True
    return buffer[np.repeat(taken, runs)], offsets


def strings(values: Bytes, offsets: Int) -> StringBatch:
    """Return a batch whose string i has the UTF-8 bytes ``values[offsets[i]:offsets[i + 1]]``."""
    if values.max(initial=0) < 128:
        return StringBatch(values, offsets)
    begins = offsets_of((values & 0xC0) != 0x80)  # a character has one byte that is not 10xxxxxx
    points = np.frombuffer(values.tobytes().decode().encode("utf-32-le"), np.uint32).copy()
    return StringBatch(points, begins[offsets])


def narrow(batch: Any) -> Any:
    """Return a `StringBatch` with one byte per letter if all letters are ASCII; return any other batch unchanged."""
    if isinstance(batch, StringBatch) and batch.values.dtype == np.uint32 and batch.values.max(initial=0) < 128:
        return StringBatch(batch.values.astype(np.uint8), batch.offsets)
    return batch


def refuse_bombs(path: Any, records: Iterator[Records]) -> Iterator[Records]:
    """Yield the records of a file; raise if they take too many bytes, see `refuse_bomb`."""
    for part in records:
        if part.position:
            refuse_bomb(path, int(part.ends[-1]), part.position)
        yield part


def refuse_bomb(path: Any, unpacked: int, packed: int) -> None:
    """Raise if the unpacked size of a file exceeds both max_memory and 100 times its packed size."""
    most = settings().max_memory
    if unpacked > max(most, BOMB * packed):
        raise BadFile(
            path,
            f"unpacks to more than max_memory ({most} bytes) and {BOMB} times its size, like a decompression bomb; "
            "if you trust it, raise similia.config(max_memory=...), or read it with similia.sources.open_stream",
        )
