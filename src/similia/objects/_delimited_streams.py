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
    """Yield columns of a table from the row on that begins at `offset`, a line numbered `line`."""
    names, resumed = None, offset > 0
    if header:
        with Blocks(path) as blocks:
            row = _Rows(blocks, delimiter).header()
        names = row[0]
        if offset == 0:
            _, offset, line = row
    positions = [position_of(path, column, names) for column in columns]
    with Blocks(path, offset, line) as blocks:
        found = resumed
        for records in _Rows(blocks, delimiter).records(positions):
            if len(records.ends):
                found = True
                yield records
    if not found:
        raise ValueError(f"{path} holds no rows")


def position_of(path: Any, column: str | int, names: list[str] | None) -> int:
    """Return the position of a column, or raise."""
    if isinstance(column, int):
        return column
    if names is None:
        raise ValueError(f"{path} has no names of columns (header=False); give positions instead of {_short(column)}")
    if column not in names:
        known = ", ".join(map(_short, names[:_LISTED]))
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        meant = did_you_mean(column, names)
        raise ValueError(f"{path} has no column {_short(column)}{meant}; it has {known or 'none'}{more}")
    return names.index(column)


class _Rows:
    """Rows of a table, block by block."""

    def __init__(self, blocks: Blocks, delimiter: str) -> None:
        self.at, self.path = blocks, blocks.path
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
        width = 1 + len(marks) // max(1, len(full))
        if not len(full) or len(marks) != (width - 1) * len(full):
            return None
        edges = np.column_stack([starts - 1, marks.reshape(len(full), -1), ends])
        inside = (edges[:, 1:-1] >= starts[:, None]).all() and (edges[:, 1:-1] < ends[:, None]).all()
        if not inside or not all(-width <= position < width for position in positions):
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
        row: list[str] = []
        try:
            with _long_fields():
                for row in reader:
                    self._done = reader.line_num
                    if row:
                        fields.append(pick(row))
                        lines.append(self._done)
                        if len(lines) == most:
                            break
        except (csv.Error, IndexError) as error:
            short = f"{len(row)} fields, expected more than {max(positions, default=0)}"
            text = short if isinstance(error, IndexError) else str(error)
            raise ValueError(f"{self.path}, line {line + reader.line_num - 1}: {text}; is it truncated?") from None
        return fields, lines

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
