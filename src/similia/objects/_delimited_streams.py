"""Columns of CSV and TSV tables, a block of rows at a time.

Blocks without quotes whose rows have equally many fields are cut by numpy, all others by the csv module, which
reads on from block to block while a quoted field goes on. Tests hold the two equal.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from similia._nearest import did_you_mean
from similia.objects._blocks import WIDE_SHARE, Blocks, Records, decode, whole_lines
from similia.objects._lines import find_lines, gather, strings
from similia.objects._sequences import _short
from similia.objects._strings import StringBatch

_DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_LISTED = 8  # names of columns in a sentence


def delimiter_of(path: Any) -> str:
    """Return the delimiter that the ending of a file means, or raise."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes if suffix.lower() in _DELIMITERS]
    if not suffixes:
        raise ValueError(f"{path} ends neither in .csv, .tsv, .tab nor .parquet; give delimiter=',' or '\\t'")
    return _DELIMITERS[suffixes[-1]]


def delimited_records(
    path: Any, columns: tuple[str | int, ...], delimiter: str, header: bool = True, offset: int = 0, line: int = 1
) -> Iterator[Records]:
    """Yield columns of a table from the row on that begins at `offset`, a line numbered `line`.

    A row with more or fewer cells than the first one is refused: what it holds may stand in other columns.
    """
    found = offset > 0
    with Blocks(path) as blocks:
        first, *second = _Rows(blocks, delimiter).header()
    if header and offset == 0:
        offset, line = second
    positions = [position_of(path, column, first, header) for column in columns]
    width = len(first or ())
    with Blocks(path, offset, line) as blocks:
        for records in _Rows(blocks, delimiter, width, "the header" if header else "the first row").records(positions):
            if len(records.ends):
                found = True
                yield records
    if not found:
        raise ValueError(f"{path} holds no rows")


def position_of(path: Any, column: str | int, names: list[str] | None, header: bool = True) -> int:
    """Return the position of a column, or raise; `names` are the cells of the first row."""
    if isinstance(column, int):
        if names and not -len(names) <= column < len(names):
            raise ValueError(f"{path} has {len(names)} columns, none at position {column} (the first one is 0)")
        return column
    if names is None or not header:
        raise ValueError(f"{path} has no names of columns (header=False); give positions instead of {_short(column)}")
    if column not in names:
        known = ", ".join(map(_short, names[:_LISTED]))
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        meant = did_you_mean(column, names)
        raise ValueError(f"{path} has no column {_short(column)}{meant}; it has {known or 'none'}{more}")
    return names.index(column)


class _Rows:
    """Rows of a table, block by block."""

    def __init__(self, blocks: Blocks, delimiter: str, width: int = 0, like: str = "") -> None:
        self.at, self.path = blocks, blocks.path
        self.width, self.like = width, like  # cells of a row (0: any number), and what has as many
        self.delimiter, self.quotes = delimiter, delimiter != "\t"
        self.limit = max(1, blocks.limit // WIDE_SHARE)
        self._blocks = blocks.split(whole_lines)
        self._ends: list[int] = []  # of the lines that the csv module was given, from the block's first on
        self._done = 0  # lines of whole rows

    def header(self) -> tuple[list[str] | None, int, int]:
        """Return the fields of the first row, and where the second begins."""
        for block in self._blocks:
            line = self.at.line
            rows, lines = self._read(block, slice(None), most=1)
            if rows:
                return rows[0], self._ends[lines[0] - 1], line + lines[0]
        return None, self.at.offset, self.at.line

    def records(self, positions: list[int]) -> Iterator[Records]:
        """Yield the columns at `positions`."""
        for block in self._blocks:
            yield self._plain(block, positions) or self._general(block, positions)

    def _plain(self, block: bytes, positions: list[int]) -> Records | None:
        """Return the rows of a block that has no quotes and as many fields in each row, or None."""
        if (self.quotes and b'"' in block) or not self.delimiter.isascii() or not _is_utf8(block):
            return None
        found = find_lines(block)
        if found is None:
            return None
        full = np.flatnonzero(found.ends > found.starts)  # blank lines are not rows
        buffer, starts, ends = found.buffer, found.starts[full], found.ends[full]
        marks = np.flatnonzero(buffer == ord(self.delimiter))
        width = self.width
        if not len(full) or len(marks) != (width - 1) * len(full):
            return None
        edges = np.column_stack([starts - 1, marks.reshape(len(full), -1), ends])
        inside = (edges[:, 1:-1] >= starts[:, None]).all() and (edges[:, 1:-1] < ends[:, None]).all()
        if not inside:
            return None
        columns = tuple(
            strings(*gather(buffer, edges[:, position % width] + 1, edges[:, position % width + 1]))
            for position in positions
        )
        behind = self.at.offset + np.append(found.starts, len(block))[full + 1]
        return Records(columns, behind, self.at.line + full + 1, None, self.at.position)

    def _general(self, block: bytes, positions: list[int]) -> Records:
        line = self.at.line
        fields, lines = self._read(block, *positions)
        columns = [fields] if len(positions) == 1 else zip(*fields, strict=True) if fields else [()] * len(positions)
        last = np.array(lines, np.int64)
        batches = tuple(StringBatch.from_list(list(column)) for column in columns)
        return Records(batches, np.array(self._ends, np.int64)[last - 1], line + last, None, self.at.position)

    def _read(self, block: bytes, *positions: Any, most: int | None = None) -> tuple[list[Any], list[int]]:
        """Return fields of the rows of a block (at most `most`), and the number of its lines up to the end of each.

        Rows themselves are not kept: lists by the thousand set off the garbage collector.
        """
        quoting = csv.QUOTE_MINIMAL if self.quotes else csv.QUOTE_NONE
        line, self._ends, self._done = self.at.line, [], 0
        fields: list[Any] = []
        lines: list[int] = []
        pick = itemgetter(*positions)
        reader = csv.reader(self._lines(block), delimiter=self.delimiter, quoting=quoting, strict=True)  # type: ignore[arg-type]
        try:
            with _long_fields():
                for row in reader:
                    self._done = reader.line_num
                    if row:
                        if self.width and len(row) != self.width:
                            raise ValueError(self._ragged(len(row), line + self._done - 1))
                        fields.append(pick(row))
                        lines.append(self._done)
                        if len(lines) == most:
                            break
        except csv.Error as error:
            raise ValueError(f"{self.path}, line {line + reader.line_num - 1}: {error}; is it truncated?") from None
        return fields, lines

    def _ragged(self, cells: int, line: int) -> str:
        quote = f"a cell that holds {self.delimiter!r} must be quoted"
        more = quote if self.quotes else "is there a tab within a cell?"
        why = more if cells > self.width else "is a cell missing, or the file truncated?"
        return f"{self.path}, line {line}: found {cells} cells, expected {self.width} as in {self.like}; {why}"

    def _lines(self, block: bytes) -> Iterator[str]:
        """Yield the lines of a block, and of the next ones while a row goes on."""
        begin, first = self.at.offset, self.at.line
        while True:
            raws = block.splitlines(keepends=True)
            lengths = list(map(len, raws))
            if max(lengths) > self.limit:
                line = self.at.line + next(i for i, length in enumerate(lengths) if length > self.limit)
                raise ValueError(self.at.too_long(line, self.limit, "row"))
            self._ends += (self.at.offset + np.cumsum(lengths)).tolist()
            yield from [decode(raw, self.path, self.at.line + i) for i, raw in enumerate(raws)]
            if self._done == len(self._ends):
                return
            if self._ends[-1] - (self._ends[self._done - 1] if self._done else begin) > self.limit:
                raise ValueError(self.at.too_long(first + self._done, self.limit, "row"))
            next_block = next(self._blocks, None)
            if next_block is None:
                return
            block = next_block


def _is_utf8(block: bytes) -> bool:
    try:
        return block.isascii() or bool(block.decode())
    except UnicodeDecodeError:
        return False


class _Readers:
    """Calls of the csv module that are under way: its limit on fields is one for all threads."""

    lock = Lock()
    n = limit = 0


@contextmanager
def _long_fields() -> Iterator[None]:
    """Let fields of the csv module be as long as a chromosome; the last of several threads puts the limit back."""
    with _Readers.lock:
        if _Readers.n == 0:
            _Readers.limit = csv.field_size_limit(sys.maxsize)
        _Readers.n += 1
    try:
        yield
    finally:
        with _Readers.lock:
            _Readers.n -= 1
            if _Readers.n == 0:
                csv.field_size_limit(_Readers.limit)
