"""Read text files of any length in blocks of whole records, in constant memory: lines, SDF, FASTA and FASTQ.

A block ends where a record ends. A parser is therefore a function of the bytes of one block and has no state. A record
longer than ``max_memory // RECORD_SHARE`` bytes is refused before more of it is read or unpacked.

Lines of a block are represented by arrays of their positions. On 10^6 FASTA records of 100 letters (115 MB), a loop
over lines takes 2.4 s, ``bytes.split`` 0.45 s, a numba loop 0.36 s, and numpy, as used here, 0.31 s. Tests compare
these parsers with slow ones that read line by line (``tests/naive/streams.py``).
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from similia.core.config import settings
from similia.core.text import short
from similia.core.validation import BadFile, present
from similia.objects.sequences import StringBatch, offsets_of
from similia.sources.source import Reading

RECORD_SHARE = 4  # a record may take a quarter of max_memory, as up to four copies exist (read, joined, decoded, mask)
WIDE_SHARE = 4  # a record that is not ASCII may take a quarter of this: a letter takes 4 bytes, in the csv module 8
_BLOCK = 2**20  # bytes read at once: few calls, and small enough for the caches
BOMB = 100  # largest allowed ratio of unpacked to packed size: usual text has 10, and deflate reaches 1000
_BOM = codecs.BOM_UTF8
_SPACE = np.zeros(256, dtype=bool)  # the ASCII characters that str.strip removes
_SPACE[[9, 10, 11, 12, 13, 28, 29, 30, 31, 32]] = True
Int = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
_END = "$$$$"  # last line of a molecule in SDF
_FIELD = re.compile(r"^>.*<([^<>]+)>")
_TITLES = {"smiles", "canonical_smiles", "smi"}  # first word of a .smi file whose first line is a title
# Matches data that may be FASTA: blank lines and comments, then ">" or anything but a printable ASCII character.
_FASTA_BEGIN = re.compile(rb"(?:[\s\x1c-\x1f]+|;[^\r\n]*+)*+(?![!-:<=?-~])")
_BEFORE_INDENTED = re.compile(rb"\n(?=[\t\x0b\x0c\x1c-\x1f ]+>)")


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
        self._raw: BinaryIO = open(present(self.path), "rb")
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


_Parser = Callable[[bytes, Blocks], Records]


def _records(
    path: Any, cut: Callable[[bytes], int], parse: _Parser, empty: str, encoding: str = "utf-8"
) -> Iterator[Records]:
    """Yield the records ``parse(block, blocks)`` of each block; number them, unless they have headers.

    `cut` is the argument of `Blocks.split`; `empty` is the message for a file without records.
    """
    row = 0
    with Blocks(path, encoding) as blocks:
        for block in blocks.split(cut):
            records = parse(block, blocks)
            n = len(records.ends)
            if n:
                yield replace(records, rows=row + np.arange(n)) if records.headers is None else records
            row += n
    if not row:
        raise BadFile(path, empty)


# ---- lines
def line_records(path: Any, encoding: str = "utf-8") -> Iterator[Records]:
    """Yield the non-empty lines of a text file."""
    return _records(path, whole_lines, _lines, "holds no lines", encoding)


def _lines(block: bytes, at: Blocks) -> Records:
    buffer, starts, ends, behind, _ = find_lines(block, at)
    full = np.flatnonzero(ends > starts)
    batch = strings(*gather(buffer, starts[full], ends[full]))
    return Records((batch,), behind[full], at.line + full, position=at.position)


def smi_records(path: Any, encoding: str = "utf-8") -> Iterator[Records]:
    """Yield two columns of a ``.smi`` file: SMILES (the first word of each line) and names (the rest of the line)."""
    row = -1  # of the next molecule; -1 before the first line, which may be a title
    for part in line_records(path, encoding):
        words = [(*text.split(None, 1), "", "")[:2] for text in part.columns[0].tolist()]
        if row < 0:
            row, words = 0, words[words[0][0].lower() in _TITLES :]
        columns = tuple(StringBatch.from_list([word[j] for word in words]) for j in (0, 1))
        if words:
            yield replace(part.take(slice(-len(words), None), columns), rows=row + np.arange(len(words)))
            row += len(words)
    if row <= 0:
        raise BadFile(path, "holds a title but no molecules")


def smi_has_names(path: Any, encoding: str) -> bool:
    """Return whether a molecule of the first block of a ``.smi`` file has a name."""
    return bool(np.diff(next(smi_records(path, encoding)).columns[1].offsets).any())


# ---- SDF
def sdf_records(path: Any, reading: Reading) -> Iterator[Records]:
    """Yield three columns of an SDF as text: molecules, labels (a data field), names (a data field or title lines)."""

    def parse(block: bytes, at: Blocks) -> Records:
        molecules, ends, begins = _molecules(block, at)
        fields = list(map(_fields, molecules))
        labels = [field.get(str(reading.label), "") for field in fields]
        if reading.names is None:
            names = list(map(_title, molecules))
        else:
            names = [field.get(str(reading.names), "") for field in fields]
        columns = tuple(map(StringBatch.from_list, (["\n".join(lines) for lines in molecules], labels, names)))
        return Records(columns, ends, begins, position=at.position)

    empty = f"holds no molecules, expected blocks that end in a line {_END}"
    return _records(path, _cut_sdf, parse, empty, reading.encoding)


def sdf_begin(path: Any, encoding: str) -> tuple[bool, set[str]]:
    """Return whether a molecule of the first block of an SDF has a title, and the names of the data fields of all."""
    with Blocks(path, encoding) as blocks:
        block = next(blocks.split(_cut_sdf), b"")
        molecules = _molecules(block, blocks)[0]
        return any(map(_title, molecules)), {name for lines in molecules for name in _fields(lines)}


def read_mol_blocks(texts: StringBatch, bad: Callable[[int, str], None]) -> Any:
    """Return the valid SDF molecules as graphs (None if there are none); call ``bad(i, why)`` for the others."""
    from similia.objects.graph_batch import Names, read_graph
    from similia.objects.graphs import join_parts
    from similia.objects.molecules import import_rdkit

    Chem, rdBase = import_rdkit()
    parts = []
    with rdBase.BlockLogs():
        for i, text in enumerate(texts):
            molecule = Chem.MolFromMolBlock(text)
            if molecule is None:
                title = str(text).split("\n", 1)[0]
                bad(i, f"the molecule that begins here ({short(title)}) cannot be read by RDKit")
            else:
                parts.append(read_graph(molecule, Names()))
    return join_parts(parts) if parts else None


def _cut_sdf(data: bytes) -> int:
    """Return how many of the first bytes of `data` are whole molecules."""
    end = data.rfind(_END.encode())
    while end > 0 and data[end - 1 : end] not in (b"\n", b"\r"):
        end = data.rfind(_END.encode(), 0, end)
    return data.find(b"\n", end) + 1 if end >= 0 else 0


def _molecules(block: bytes, at: Blocks) -> tuple[list[list[str]], Int, Int]:
    """Return, for each molecule of a block, its lines, the position of its end, and the number of its first line."""
    molecules: list[list[str]] = []
    ends, begins = list[int](), list[int]()
    position, line, lines = at.offset, at.line, list[str]()
    begin = line
    for raw in block.splitlines(keepends=True):
        position, line = position + len(raw), line + count_lines(raw)
        lines.append(raw.decode().rstrip("\r\n"))
        if lines[-1].startswith(_END) or (position == at.offset + len(block) and any(map(str.strip, lines))):
            molecules.append(lines[:-1] if lines[-1].startswith(_END) else lines)
            ends.append(position)
            begins.append(begin)
            lines, begin = [], line
    return molecules, np.array(ends, np.int64), np.array(begins, np.int64)


def _title(lines: list[str]) -> str:
    return lines[0].strip() if lines else ""


def _fields(lines: list[str]) -> dict[str, str]:
    """Return the data fields of a molecule as {name: value}; of a value with several lines, only the first."""
    return {found[1]: lines[i + 1].strip() for i, text in enumerate(lines[:-1]) if (found := _FIELD.match(text))}


# ---- FASTA and FASTQ
def fasta_records(path: Any, encoding: str = "utf-8") -> Iterator[Records]:
    """Yield the sequences of a FASTA file, with their headers."""
    empty = "holds no sequences, expected lines '>name' followed by sequence lines"
    return _records(path, _cut_fasta, _fasta, empty, encoding)


def fastq_records(path: Any, encoding: str = "utf-8") -> Iterator[Records]:
    """Yield two columns of a FASTQ file, sequences and qualities, with their headers."""
    empty = "holds no records, expected '@name', sequence, '+', qualities"
    return _records(path, _cut_fastq, _fastq, empty, encoding)


def _headers(text: bytes, starts: Int, ends: Int) -> list[str]:
    """Return the lines of headers, each without its first character (``>`` or ``@``)."""
    return [text[start + 1 : end].decode() for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


def _cut_fasta(data: bytes) -> int:
    """Return how many of the first bytes of `data` are whole records."""
    if not _FASTA_BEGIN.match(data):
        return len(data)  # not FASTA: the parser raises before more is read
    end = data.rfind(b"\n>") + 1 or data.rfind(b"\r>") + 1
    if not end:
        for match in _BEFORE_INDENTED.finditer(data):
            end = match.end()
    return end


def _fasta(block: bytes, at: Blocks) -> Records:
    buffer, starts, ends, behind, text = find_lines(block, at, strip=True)
    full = np.flatnonzero(ends > starts)
    first = buffer[starts[full]]
    comments = first == ord(";")
    if comments.any():
        full, first = full[~comments], first[~comments]
    is_header = first == ord(">")
    if len(full) and not is_header[0]:
        raise BadFile(at.path, "expected '>name' before any sequence; is it FASTA?", at=f"line {at.line + full[0]}")
    heads, lines = full[is_header], full[~is_header]
    values, offsets = _without_blanks(*gather(buffer, starts[lines], ends[lines]), at, lines)
    first_lines = np.flatnonzero(is_header) - np.arange(len(heads))  # indices into `lines`
    batch = strings(values, np.append(offsets[first_lines], offsets[-1]))
    headers = [header.strip() for header in _headers(text, starts[heads], ends[heads])]
    record_ends = np.append(behind[heads[1:] - 1], behind[-1])[: len(heads)]
    return Records((batch,), record_ends, headers=headers, position=at.position)


def _without_blanks(values: Bytes, offsets: Int, at: Blocks, lines: Int) -> tuple[Bytes, Int]:
    """Drop blanks inside the sequence lines whose numbers in the block are `lines`; refuse positions between letters.

    Line i is ``values[offsets[i]:offsets[i + 1]]``. GenBank's files count letters: ``61 acgtacgtac gtacgtacgt``.
    """
    if values.min(initial=255) > ord(" "):
        return values, offsets
    blank = _SPACE[values]
    digit = (values >= ord("0")) & (values <= ord("9"))
    blanks, digits = (np.searchsorted(np.flatnonzero(mask), offsets) for mask in (blank, digit))  # before each line
    for i in np.flatnonzero((np.diff(blanks) > 0) & (np.diff(digits) > 0)).tolist():
        line = slice(offsets[i], offsets[i + 1])
        words = np.where(blank[line], ord(" "), values[line]).astype(np.uint8).tobytes().split()
        numbers = [word for word in words if word.isdigit()]
        if 0 < len(numbers) < len(words):
            found = f"holds the number {short(numbers[0].decode())} beside letters; remove positions from the sequences"
            raise BadFile(at.path, found, at=f"line {at.line + lines[i]}")
    return values[~blank], offsets - blanks


def _cut_fastq(data: bytes) -> int:
    """Return how many of the first bytes of `data` are whole records of four lines each."""
    end = whole_lines(data)
    if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
        lines = data[:end].splitlines(keepends=True)
        return sum(map(len, lines[: len(lines) // 4 * 4]))
    for _ in range(data.count(b"\n", 0, end) % 4):
        end = data.rfind(b"\n", 0, end - 1) + 1
    return end


def _fastq(block: bytes, at: Blocks) -> Records:
    lines = find_lines(block, at)
    n = len(lines.starts)
    while n % 4 and lines.starts[n - 1] == lines.ends[n - 1]:  # an empty sequence is a blank line, too
        n -= 1
    whole = n - n % 4
    starts, ends, behind = (a[:whole].reshape(-1, 4) for a in lines[1:4])
    names, pluses = (lines.buffer.take(starts[:, j], mode="clip") for j in (0, 2))  # the last line may be empty
    marked = (names == ord("@")) & (pluses == ord("+"))
    sequences, qualities = (strings(*gather(lines.buffer, starts[:, j], ends[:, j])) for j in (1, 3))
    n_letters, n_qualities = np.diff(sequences.offsets), np.diff(qualities.offsets)
    bad = ~marked | (n_letters != n_qualities)
    if bad.any():
        i = int(bad.argmax())
        line, found = 4 * i, "expected '@name', sequence, '+', qualities; is it FASTQ?"
        if marked[i]:
            line, found = 4 * i + 3, f"{n_qualities[i]} qualities for {n_letters[i]} letters; truncated?"
        raise BadFile(at.path, found, at=f"line {at.line + line}")
    if n > whole:
        found = f"the last record has {n % 4} of 4 lines; is it truncated?"
        raise BadFile(at.path, found, at=f"line {at.line + whole}")
    headers = _headers(lines.text, starts[:, 0], ends[:, 0])
    return Records((sequences, qualities), behind[:, 3], headers=headers, position=at.position)


def read_fasta(path: str | os.PathLike[str], encoding: str = "utf-8") -> tuple[list[str], list[str]]:
    """Read the sequences of a FASTA file.

    Parameters
    ----------
    path : path
        Plain or gzip (``.gz``). A record is a line ``>name``, followed by any number of sequence lines, which are
        joined without the blanks in them. Blank lines and lines that begin with ``;`` are skipped.
    encoding : str, default="utf-8"
        Encoding of the file.

    Returns
    -------
    names : list of str
        Each header without ``>``.
    sequences : list of str
        As written in the file, without blanks; ``""`` for a record without a sequence.

    Raises
    ------
    ValueError
        If the file is empty, truncated or not a FASTA file, or if a line holds a number beside letters, such as the
        position in ``61 acgt acgt``. The message names the line.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from similia.sources import read_fasta
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "two.fasta")
    ...     _ = path.write_text(">first\\nACGT\\nAC\\n>second\\nGG\\n")
    ...     read_fasta(path)
    (['first', 'second'], ['ACGTAC', 'GG'])
    """
    names, sequences = _as_lists(path, fasta_records(path, encoding))
    return names, sequences


def read_fastq(path: str | os.PathLike[str], encoding: str = "utf-8") -> tuple[list[str], list[str], list[str]]:
    """Read the sequences of a FASTQ file.

    Parameters
    ----------
    path : path
        Plain or gzip (``.gz``), with four lines per record: ``@name``, sequence, ``+``, qualities.
    encoding : str, default="utf-8"
        Encoding of the file.

    Returns
    -------
    names : list of str
        Each header without ``@``.
    sequences : list of str
        As written in the file.
    qualities : list of str
        As written in the file: one character per letter of the sequence.

    Raises
    ------
    ValueError
        If the file is empty, truncated or not a FASTQ file. The message names the line.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from similia.sources import read_fastq
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "one.fastq")
    ...     _ = path.write_text("@read\\nACGT\\n+\\nIIII\\n")
    ...     read_fastq(path)
    (['read'], ['ACGT'], ['IIII'])
    """
    names, sequences, qualities = _as_lists(path, fastq_records(path, encoding))
    return names, sequences, qualities


def _as_lists(path: Any, records: Iterator[Records]) -> list[list[str]]:
    """Return lists: the headers of all records, then the values of each column."""
    parts = list(refuse_bombs(path, records))
    columns = ([x for part in parts for x in part.columns[j].tolist()] for j in range(len(parts[0].columns)))
    return [[name for part in parts for name in part.headers or []], *columns]
