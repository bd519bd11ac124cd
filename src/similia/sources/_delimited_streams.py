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

from similia.core.text import _short, counted, did_you_mean
from similia.objects._strings import StringBatch
from similia.sources._blocks import WIDE_SHARE, Blocks, Records, decode, whole_lines
from similia.sources._lines import find_lines, gather, strings
from similia.sources._skipped import Skips

_DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_LISTED = 8  # names of columns in a sentence
_MANY = 8  # columns from which on the csv module picks them faster than numpy, one by one
_LOOKED_AT = 1000  # rows that show what the columns hold


def delimiter_of(path: Any) -> str:
    """Return the delimiter that the ending of a file means, or raise."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes if suffix.lower() in _DELIMITERS]
    if not suffixes:
        raise ValueError(
            f"{path} ends neither in .csv, .tsv, .tab nor .parquet; say what separates its cells, e.g. sep=',' or "
            "--sep tab"
        )
    return _DELIMITERS[suffixes[-1]]


class Table:
    """A CSV or TSV table: its first rows are read at once, all of them by `records`.

    Parameters
    ----------
    path : path
    sep : str
        What separates cells, one character.
    header : bool
        Whether the first row holds the names of the columns.
    encoding : str
    skips : Skips, optional
        Where rows are listed that have too many or too few cells; if not given, such a row raises.
    pad : bool
        Whether rows may have fewer cells than the first: the others are empty.

    Attributes
    ----------
    first : list of str
        Cells of the first row.
    """

    def __init__(
        self, path: Any, sep: str, header: bool = True, encoding: str = "utf-8", skips: Skips | None = None,
        pad: bool = False,
    ) -> None:  # fmt: skip
        self.path, self.sep, self.header, self.encoding, self.skips, self.pad = path, sep, header, encoding, skips, pad
        with Blocks(path, encoding=encoding) as blocks:
            first, *self._second = _Rows(blocks, self).header()
        self.first = first or []

    def head(self) -> list[list[str]]:
        """Return the first rows below the names; those that are cut or have other numbers of cells are left out."""
        offset, line = self._second if self.header else (0, 1)
        with Blocks(self.path, offset, line, self.encoding) as blocks:
            rows = _Rows(blocks, self)
            for block in rows._blocks:
                found, _ = rows._read(block, slice(None), most=_LOOKED_AT)
                return [row for row in found if len(row) == len(self.first)]
        return []

    def position_of(self, column: str | int) -> int:
        """Return the position of a column, or raise."""
        return position_of(self.path, column, self.first, self.header)

    def records(self, positions: list[int], offset: int = 0, line: int = 1, row: int = 0) -> Iterator[Records]:
        """Yield columns from the row on that begins at `offset`, a line numbered `line`; `row` rows stand before it."""
        found = offset > 0
        if self.header and offset == 0:
            offset, line = self._second
        with Blocks(self.path, offset, line, self.encoding) as blocks:
            for records in _Rows(blocks, self, len(self.first), row).records(positions):
                if len(records.ends):
                    found = True
                    yield records
        if not found:
            raise ValueError(f"{self.path} holds no rows")


def delimited_records(
    path: Any, columns: tuple[str | int, ...], delimiter: str, header: bool = True, offset: int = 0, line: int = 1
) -> Iterator[Records]:
    """Yield columns of a table from the row on that begins at `offset`, a line numbered `line`.

    A row with more or fewer cells than the first one is refused: what it holds may stand in other columns.
    """
    table = Table(path, delimiter, header)
    return table.records([table.position_of(column) for column in columns], offset, line)


def position_of(path: Any, column: str | int, names: list[str] | None, header: bool = True) -> int:
    """Return the position of a column, or raise; `names` are the cells of the first row."""
    if isinstance(column, int):
        if names and not -len(names) <= column < len(names):
            raise ValueError(
                f"{path} has {counted(len(names), 'column')}, none at position {column} (the first one is 0)"
            )
        return column
    if names is None or not header:
        raise ValueError(
            f"{path} is read without names of columns, so {_short(column)} means none; give positions, the first is 0"
        )
    if column not in names:
        known = ", ".join(map(_short, names[:_LISTED]))
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        meant = did_you_mean(column, names)
        raise ValueError(f"{path} has no column {_short(column)}{meant}; it has {known or 'none'}{more}")
    if names.count(column) > 1:
        places = " and ".join(str(i) for i, name in enumerate(names) if name == column)
        raise ValueError(
            f"{path} has {names.count(column)} columns named {_short(column)}, at positions {places} (from 0); rename "
            "all but one"
        )
    return names.index(column)


class _Rows:
    """Rows of a table, block by block."""

    def __init__(self, blocks: Blocks, table: Table, width: int = 0, row: int = 0) -> None:
        self.at, self.path, self.table = blocks, blocks.path, table
        self.width, self.row = width, row  # cells of a row (0: any number), and rows before the block
        self.delimiter, self.quotes = table.sep, table.sep != "\t"
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
            plain = self._plain(block, positions) if len(positions) <= _MANY else None
            yield plain or self._general(block, positions)

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
        lines, rows = self.at.line + full, self.row + np.arange(len(full))
        self.row += len(full)
        return Records(columns, behind, lines + 1, None, self.at.position, lines, rows)

    def _general(self, block: bytes, positions: list[int]) -> Records:
        line = self.at.line
        fields, lines = self._read(block, *positions)
        columns = [fields] if len(positions) == 1 else zip(*fields, strict=True) if fields else [()] * len(positions)
        last = np.array(lines, np.int64)
        batches = tuple(StringBatch.from_list(list(column)) for column in columns)
        ends, begins = np.array(self._ends, np.int64)[last - 1], line + np.array(self._begins, np.int64)
        return Records(
            batches, ends, line + last, None, self.at.position, begins, np.array(self._numbers, np.int64)
        )  # fmt: skip

    def _read(self, block: bytes, *positions: Any, most: int | None = None) -> tuple[list[Any], list[int]]:
        """Return fields of the rows of a block (at most `most`), and the number of its lines up to the end of each.

        Rows themselves are not kept: lists by the thousand set off the garbage collector.
        """
        quoting = csv.QUOTE_MINIMAL if self.quotes else csv.QUOTE_NONE
        line, self._ends, self._done = self.at.line, [], 0
        self._begins: list[int] = []  # of each row, its first line
        self._numbers: list[int] = []  # and its number among all rows of the table
        fields: list[Any] = []
        lines: list[int] = []
        pick = itemgetter(*positions)
        reader = csv.reader(self._lines(block), delimiter=self.delimiter, quoting=quoting, strict=True)  # type: ignore[arg-type]
        try:
            with _long_fields():
                for row in reader:
                    begin, self._done = self._done, reader.line_num
                    if row:
                        self.row += 1
                        if self.width and len(row) != self.width and not self._mended(row, line + begin):
                            continue
                        fields.append(pick(row))
                        lines.append(self._done)
                        self._begins.append(begin)
                        self._numbers.append(self.row - 1)
                        if len(lines) == most:
                            break
        except csv.Error as error:
            raise ValueError(
                f"{self.path}, line {line + self._done}: the row that begins here cannot be read ({error}); is a "
                "quotation mark missing, or the file truncated?"
            ) from None
        return fields, lines

    def _mended(self, row: list[str], line: int) -> bool:
        """Make a row as long as the first, or list it as skipped, or raise; return whether it is to be used."""
        if self.table.pad and len(row) < self.width:
            row += [""] * (self.width - len(row))
            return True
        like = "the header" if self.table.header else "the first row"
        found = f"found {counted(len(row), 'cell')}, expected {self.width} as in {like}"
        if self.table.skips is not None:
            self.table.skips.add(line, found)
            return False
        quote = f"a cell that holds {self.delimiter!r} must be quoted"
        more = quote if self.quotes else "is there a tab within a cell?"
        why = more if len(row) > self.width else "is a cell missing, or the file truncated?"
        raise ValueError(f"{self.path}, line {line}: {found}; {why}")

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
