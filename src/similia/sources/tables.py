"""Read columns of CSV and TSV tables as objects, a block of rows at a time.

Blocks without quotes whose rows have equal numbers of cells are split with numpy if at most 8 columns are read. All
others are read with the csv module; if a quoted cell is open at the end of a block, the csv module also reads the next
block. Tests check that both ways give the same rows.

``pyarrow.csv`` reads 95 MB in a third of the time (an eighth with quotes), but takes twice the memory. It is not used
because its errors name no line, it accepts NUL bytes and letters after a closing quote, it refuses cells longer than a
block, and it does not report where rows begin and end.
"""

from __future__ import annotations

import csv
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from operator import itemgetter
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.text import counted, short
from similia.core.validation import BadFile, present
from similia.objects.sequences import StringBatch, offsets_of
from similia.objects.series import SeriesBatch
from similia.sources.rows import parquet_file
from similia.sources.source import (
    FILL,
    LEAVE,
    MISSING,
    Choice,
    Reading,
    Skips,
    is_number,
    leave_out,
    missing_among,
    point_note,
    position_of,
    typed,
)
from similia.sources.text import (
    WIDE_SHARE,
    Blocks,
    Int,
    Records,
    find_lines,
    gather,
    part_of,
    read_mol_blocks,
    refuse_bombs,
    strings,
    whole_lines,
)

_DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_MANY = 8  # for more columns, the csv module is faster than numpy, which cuts columns one by one
_LOOKED_AT = 1000  # number of rows that decide which columns hold numbers
PER_LETTER = 2**6  # bytes of a graph per letter of its SMILES: an atom, and a bond in both directions
_COLUMN = ", or name the columns of numbers (values= or --values), or this one as the labels (label= or --label)"
_SERIES = ", or read each row as a series and ignore the empty cells at its end (series=True or --series)"


def delimiter_of(path: Any) -> str:
    """Return the delimiter of cells that the ending of a file implies; raise for unknown endings."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes if suffix.lower() in _DELIMITERS]
    if not suffixes:
        raise BadFile(
            path,
            "ends neither in .csv, .tsv, .tab nor .parquet; give the separator of its cells, e.g. sep=',' or --sep tab",
        )
    return _DELIMITERS[suffixes[-1]]


class Table:
    """A CSV or TSV table; `first` holds the cells of its first row.

    With `header`, the first row holds the names of the columns. With `pad`, shorter rows get empty cells at the end.
    Other rows with too many or too few cells are listed in `skips` or, if it is None, raise an error.
    """

    def __init__(
        self, path: Any, sep: str, header: bool = True, encoding: str = "utf-8", skips: Skips | None = None,
        pad: bool = False,
    ) -> None:  # fmt: skip
        self.path, self.sep, self.header, self.encoding, self.skips, self.pad = path, sep, header, encoding, skips, pad
        self.first = next(iter(self._begin(1)), [])

    def head(self) -> list[list[str]]:
        """Return some rows from the start of the table, without the header and without rows of a wrong width."""
        rows = self._begin(self.header + _LOOKED_AT)[self.header :]
        return [row for row in rows if len(row) == len(self.first)]

    def _begin(self, most: int) -> list[list[str]]:
        """Return rows from the start of the table, header included: about one block of them, and at most `most`."""
        found: list[list[str]] = []
        with Blocks(self.path, self.encoding) as blocks:
            rows = _Rows(blocks, self)
            for block in rows.blocks:
                found += rows.read(block, slice(None), most=most)[0]
                if len(found) > self.header or len(found) >= most:
                    break
        return found

    def position_of(self, column: str | int) -> int:
        return position_of(self.path, column, self.first, self.header)

    def records(self, positions: list[int]) -> Iterator[Records]:
        found = False
        with Blocks(self.path, self.encoding) as blocks:
            rows = _Rows(blocks, self, len(self.first))
            for block in rows.blocks:
                records = rows.records(block, positions)
                if records.rows is not None and -1 in records.rows[:1]:
                    records = records.take(slice(1, None))  # the header
                if len(records.ends):
                    found = True
                    yield records
        if not found:
            raise BadFile(self.path, "holds no rows")


class _Rows:
    """Read the rows of a table block by block.

    `width` is the required number of cells per row (0 accepts any). `row` counts the rows read, without the header.
    """

    def __init__(self, blocks: Blocks, table: Table, width: int = 0) -> None:
        self.at, self.path, self.table, self.width = blocks, blocks.path, table, width
        self.row = -1 if table.header else 0
        self.delimiter, self.quotes = table.sep, table.sep != "\t"
        self.limit = max(1, blocks.limit // WIDE_SHARE)
        self.blocks = blocks.split(whole_lines)
        self._ends: list[int] = []  # ends of the lines of the block that the csv module has received
        self._done = 0  # how many of these lines belong to complete rows

    def records(self, block: bytes, positions: list[int]) -> Records:
        plain = self._plain(block, positions) if len(positions) <= _MANY else None
        return plain or self._general(block, positions)

    def _plain(self, block: bytes, positions: list[int]) -> Records | None:
        """Split a block with numpy, or return None if it has quotes or rows of different numbers of cells."""
        if (self.quotes and b'"' in block) or not self.delimiter.isascii():
            return None
        buffer, starts, ends, behind, _ = find_lines(block, self.at)
        full = np.flatnonzero(ends > starts)  # blank lines are not rows
        starts, ends = starts[full], ends[full]
        marks = np.flatnonzero(buffer == ord(self.delimiter))
        width = self.width
        if not len(full) or len(marks) != (width - 1) * len(full):
            return None
        edges = np.column_stack([starts - 1, marks.reshape(len(full), -1), ends])
        if (edges[:, 1:-1] < starts[:, None]).any() or (edges[:, 1:-1] >= ends[:, None]).any():
            return None
        columns = tuple(
            strings(*gather(buffer, edges[:, position % width] + 1, edges[:, position % width + 1]))
            for position in positions
        )
        rows = self.row + np.arange(len(full))
        self.row += len(full)
        return Records(columns, behind[full], self.at.line + full, rows, position=self.at.position)

    def _general(self, block: bytes, positions: list[int]) -> Records:
        """Read any block with the csv module."""
        line = self.at.line
        fields, (begins, lines, rows) = self.read(block, *positions)
        columns = [fields] if len(positions) == 1 else zip(*fields, strict=True) if fields else [()] * len(positions)
        batches = tuple(StringBatch.from_list(list(column)) for column in columns)
        return Records(batches, np.array(self._ends)[lines - 1], line + begins, rows, position=self.at.position)

    def read(self, block: bytes, *positions: Any, most: int | None = None) -> tuple[list[Any], Int]:
        """Return the cells at `positions` of at most `most` rows of a block, and three numbers for each row.

        The numbers, an array (3, n_rows), are the number of lines of the block before the row, the number of lines up
        to its end, and the position of the row in the table. Only the cells at `positions` are kept, because thousands
        of lists of cells would trigger the garbage collector.
        """
        quoting = csv.QUOTE_MINIMAL if self.quotes else csv.QUOTE_NONE
        line, self._ends, self._done = self.at.line, [], 0
        fields: list[Any] = []
        places: list[int] = []
        pick = itemgetter(*positions)
        reader = csv.reader(self._lines(block), delimiter=self.delimiter, quoting=quoting, strict=True)  # type: ignore[arg-type]
        try:
            with _long_fields():
                for row in reader:
                    begin, self._done = self._done, reader.line_num
                    if row:
                        self.row += 1
                        if self.width and len(row) != self.width and not self._accepts(row, line + begin):
                            continue
                        fields.append(pick(row))
                        places += begin, self._done, self.row - 1
                        if len(fields) == most:
                            break
        except csv.Error as error:
            raise BadFile(
                self.path,
                f"the row that begins here cannot be read ({error}); is a "
                "quotation mark missing, or the file truncated?",
                at=f"line {line + self._done}",
            ) from None
        return fields, np.array(places, np.int64).reshape(-1, 3).T

    def _accepts(self, row: list[str], line: int) -> bool:
        """Pad a row of a wrong width and return True, or skip it and return False, or raise if neither is allowed."""
        if self.table.pad and len(row) < self.width:
            row += [""] * (self.width - len(row))
            return True
        like = "the header" if self.table.header else "the first row"
        found = f"found {counted(len(row), 'cell')}, expected {self.width} as in {like}"
        if self.table.skips is not None:
            self.table.skips.add(line, found)
            return False
        quote = f"a cell that contains {self.delimiter!r} must be quoted"
        more = quote if self.quotes else "is there a tab within a cell?"
        why = more if len(row) > self.width else "is a cell missing, or the file truncated?"
        raise BadFile(self.path, f"{found}; {why}", at=f"line {line}")

    def _lines(self, block: bytes) -> Iterator[str]:
        """Yield the lines of a block and, while a quoted cell is open at its end, the lines of the next blocks."""
        begin, first = self.at.offset, self.at.line
        while True:
            raws = block.splitlines(keepends=True)
            lengths = list(map(len, raws))
            if max(lengths) > self.limit:
                line = self.at.line + next(i for i, length in enumerate(lengths) if length > self.limit)
                raise self.at.too_long(line, self.limit, "row")
            self._ends += (self.at.offset + np.cumsum(lengths)).tolist()
            yield from [raw.decode() for raw in raws]
            if self._done == len(self._ends):
                return
            if self._ends[-1] - (self._ends[self._done - 1] if self._done else begin) > self.limit:
                raise self.at.too_long(first + self._done, self.limit, "row")
            next_block = next(self.blocks, None)
            if next_block is None:
                return
            block = next_block


class _Readers:
    """Shared by all threads: the number `n` of active csv readers, and the `limit` of cells to restore after them."""

    lock = Lock()
    n = limit = 0


@contextmanager
def _long_fields() -> Iterator[None]:
    """Return a context without the limit of the csv module on cells; the last thread to leave restores the limit."""
    with _Readers.lock:
        if _Readers.n == 0:
            _Readers.limit = csv.field_size_limit(2 ** (8 * struct.calcsize("l") - 1) - 1)  # a C long
        _Readers.n += 1
    try:
        yield
    finally:
        with _Readers.lock:
            _Readers.n -= 1
            if _Readers.n == 0:
                csv.field_size_limit(_Readers.limit)


class Converter:
    """Turn the columns of a table or of a file of molecules into objects.

    `header` holds the names of the columns, for messages. Bad rows are listed in `skips` or, if it is None, raise an
    error. With `sdf`, molecules are blocks of an SDF rather than SMILES.
    """

    def __init__(
        self, path: Any, choice: Choice, header: list[str], decimal: str = ".", skips: Skips | None = None,
        sdf: bool = False,
    ) -> None:  # fmt: skip
        self.path, self.choice, self.header, self.decimal, self.skips, self.sdf = (
            path, choice, header, decimal, skips, sdf
        )  # fmt: skip

    def records(self, records: Iterator[Records], max_bytes: int) -> Iterator[Records]:
        """Yield the good records, with objects as the first column, in pieces of about `max_bytes`."""
        if self.choice.kind == "strings":
            yield from self._texts(records)
            return
        convert = self._molecules if self.choice.kind == "graphs" else self._numbers
        for part in records:
            for piece in _pieces(part, max_bytes // PER_LETTER if self.choice.kind == "graphs" else max_bytes):
                objects, kept = convert(piece)
                if len(kept):
                    rest = tuple(part_of(column, kept) for column in piece.columns[len(self.choice.objects) :])
                    yield piece.take(kept, (objects, *rest))

    def _texts(self, records: Iterator[Records]) -> Iterator[Records]:
        """Yield the records whose text is not empty; pass the other rows to `_refuse`."""
        for part in records:
            full = np.diff(part.columns[0].offsets) > 0
            for i in np.flatnonzero(~full).tolist():
                name = short(self.header[self.choice.objects[0]])
                self._refuse(part, i, f"the text (column {name}) is empty", FILL)
            if full.all():
                yield part
            elif full.any():
                yield part.take(np.flatnonzero(full))

    def _molecules(self, part: Records) -> tuple[Any, Int]:
        """Return the valid molecules as graphs, and the indices of their rows; pass the other rows to `_refuse`."""
        from similia.objects.molecules import read_smiles

        full = [i for i, text in enumerate(part.columns[0]) if text or self.sdf]
        empty = set(range(len(part.ends))) - set(full)
        bad = dict.fromkeys(empty, ("the cell with the SMILES is empty", "fill it in or " + LEAVE))

        def refuse(i: int, why: str) -> None:
            remedy = LEAVE.replace("the row", "it") if self.sdf else LEAVE
            bad[full[i]] = (why if self.sdf else f"found {why}", "correct it or " + remedy)

        texts = part.columns[0].take(full)
        graphs = None
        if full:
            graphs = read_mol_blocks(texts, refuse) if self.sdf else read_smiles(texts, bad=refuse)
        for i in sorted(bad):
            self._refuse(part, i, *bad[i])
        return graphs, np.array([i for i in full if i not in bad], np.int64)

    def _numbers(self, part: Records) -> tuple[Any, Int]:
        """Return valid rows of numbers as vectors or series, and their indices; pass the other rows to `_refuse`."""
        width = len(self.choice.objects)
        columns = part.columns[:width]
        rows = np.column_stack([self._floats(column) for column in columns])
        present = ~np.isnan(rows)
        lengths = np.where(present.any(axis=1), width - np.argmax(present[:, ::-1], axis=1), 0)
        if self.choice.kind != "series":
            lengths[:] = width
        needed = np.arange(width) < lengths[:, None]
        good, words = np.isfinite(rows) | ~needed, (rows == np.inf).all(axis=0)
        kept = np.flatnonzero(good.all(axis=1) & (lengths > 0))
        for i in np.setdiff1d(np.arange(len(rows)), kept).tolist():
            if lengths[i] == 0:
                self._refuse(part, i, "the row holds no numbers", LEAVE)
                continue
            j = int(good[i].argmin())
            cell = columns[j][i] if not isinstance(columns[j], np.ndarray) else columns[j][i].item()
            cut = self.choice.kind == "vectors" and present[i].any() and not present[i, j:].any()
            more = _SERIES if cut else _COLUMN if words[j] else ""
            self._refuse(part, i, self._problem(j, cell), "correct it or " + LEAVE + more)
        if self.choice.kind == "vectors":
            return rows[kept], kept
        offsets = offsets_of(lengths[kept])
        return SeriesBatch(rows[kept][needed[kept]][:, None], offsets), kept

    def _problem(self, j: int, cell: Any) -> str:
        name = short(self.header[self.choice.objects[j]])
        if isinstance(cell, str) and cell.strip().lower() in MISSING | {"inf", "-inf", "infinity"}:
            return f"the number in column {name} is missing or infinite"
        found = f"column {name} holds {short(cell)}, expected a finite number{point_note(cell, self.decimal)}"
        if isinstance(cell, str) and self.decimal == "." and is_number(cell, ","):
            return f"{found} (if the comma is a decimal mark: decimal=',' or --decimal ,)"
        return found

    def _floats(self, column: Any) -> npt.NDArray[np.float64]:
        """Return a column as floats: NaN for a missing number, infinity for a cell that is not a number."""
        if isinstance(column, np.ndarray):
            return column
        cells, decimal = column.tolist(), self.decimal
        text = "".join(cells)
        if "_" not in text and not point_note(text, decimal):  # as in `is_number`
            with suppress(ValueError):
                plain = cells if decimal == "." else [cell.replace(decimal, ".") for cell in cells]
                return np.array(plain, dtype=np.float64)
        return np.array([_number(cell, decimal) for cell in cells])

    def _refuse(self, part: Records, i: int, why: str, remedy: str) -> None:
        """Add row i of `part` to the list of skipped rows, or raise if there is no such list."""
        if part.begins is None and part.rows is not None:  # binary files have no lines
            leave_out(self.path, self.skips, why, int(part.rows[i]), remedy=remedy)
        else:
            leave_out(self.path, self.skips, why, i, part.begins, remedy)


def _number(cell: str, decimal: str) -> float:
    if cell.strip().lower() in MISSING:
        return np.nan
    return float(cell.replace(decimal, ".")) if is_number(cell, decimal) else np.inf


def _pieces(part: Records, max_bytes: int) -> Iterator[Records]:
    """Split records into consecutive pieces of about `max_bytes` of the file, with at least one record each."""
    start, n = 0, len(part.ends)
    begin = int(part.ends[0]) - int(np.diff(part.ends[:2]).sum()) if n else 0
    while start < n:
        stop = max(start + 1, int(np.searchsorted(part.ends, begin + max_bytes, "right")))
        yield part.take(slice(start, stop))
        begin, start = int(part.ends[stop - 1]), stop


def read_columns(
    path: str | os.PathLike[str],
    *columns: str | int,
    sep: str | None = None,
    encoding: str = "utf-8",
    header: bool = True,
    on_error: str = "stop",
    skipped: str | os.PathLike[str] | None = None,
    keep_missing: bool = False,
) -> tuple[list[Any], ...]:
    r"""Read columns of a CSV, TSV or Parquet table.

    Parameters
    ----------
    path : path
        ``.csv``, ``.tsv``, ``.tab`` (also with ``.gz``) or ``.parquet``. Cells may be quoted as in RFC 4180, except in
        tables separated by tabs.
    *columns : str or int
        Names of columns, or positions from 0; at least one.
    sep : str, optional
        Separator of the cells of text files: a character, "tab" or "space". By default, the ending of the file name
        determines the separator.
    encoding : str, default="utf-8"
        Encoding of text files.
    header : bool, default=True
        Whether the first line of a text file holds the names of the columns. If not, give `columns` by position.
    on_error : {"stop", "skip"}, default="stop"
        What to do with rows in which the value of one of `columns` is missing, and with rows of a text file that have
        more or fewer cells than the first row. "stop" raises an error; "skip" leaves these rows out. Missing values are
        empty cells, nulls of Parquet and, in a column of numbers, texts such as NA.
    skipped : path, optional
        CSV file to write, with the line number of each skipped row (for Parquet, the row number), and the reason.
    keep_missing : bool, default=False
        Whether to keep rows with missing values, whatever the value of `on_error`. The cells of these rows are returned
        as they are in the file; nulls of Parquet become None.

    Returns
    -------
    tuple of lists, one for each of `columns`
        From text files: int or float if all cells of a column are finite numbers without leading zeros; otherwise str.
        From Parquet: the values as stored.

    Raises
    ------
    ValueError
        If a column does not exist; if the file is empty or damaged; or if a row has a missing value or a wrong number
        of cells (see `on_error`). The attribute `at` of the error holds the place, such as "line 6".
    TypeError
        If one of `columns` is neither str nor int, such as a list of names.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from similia.sources import read_columns
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "table.csv")
    ...     _ = path.write_text("text,label\n\"one, two\",1\nthree,2\n")
    ...     read_columns(path, "text", "label")
    (['one, two', 'three'], [1, 2])
    """
    if not columns:
        raise ValueError("read_columns needs the name or position of at least one column")
    for column in columns:
        if not isinstance(column, str | int):
            raise TypeError(
                f"a column must be a name or a position, got {type(column).__name__} ({short(column)}); "
                "write read_columns(path, 'a', 'b')"
            )
    place = present(path)
    reading = Reading(sep=sep, encoding=encoding, header=header, on_error=on_error, skipped=skipped)
    if place.is_file() and place.stat().st_size == 0:
        raise BadFile(path, "is empty")
    skips = reading.skips()
    if place.suffix.lower() == ".parquet":
        with parquet_file(path) as file:
            names = file.schema_arrow.names
            wanted = [names[position_of(path, column, names)] for column in columns]
            arrow = file.read(columns=wanted)
            cells: list[list[Any]] = [arrow.column(name).to_pylist() for name in wanted]
        return tuple(cells if keep_missing else _without_missing(path, wanted, cells, None, skips))
    table = Table(path, reading.sep or delimiter_of(path), header, encoding, skips)
    positions = [table.position_of(column) for column in columns]
    cells = [[] for _ in columns]
    begins: list[Any] = []
    for records in refuse_bombs(path, table.records(positions)):
        for values, column in zip(cells, records.columns, strict=True):
            values += column.tolist()
        begins.append(records.begins)
    if not keep_missing:
        shown = [table.first[position] if header else str(position) for position in positions]
        cells = _without_missing(path, shown, cells, np.concatenate(begins), skips)
    return tuple(map(typed, cells))


def _without_missing(path: Any, names: list[str], cells: list[list[Any]], lines: Any, skips: Skips | None) -> list[Any]:
    """Leave out, or refuse, the rows in which a column has no value; `lines` are None for a file without lines."""
    why: dict[int, str] = {}
    for name, column in zip(names, cells, strict=True):
        for i in missing_among(column):
            why.setdefault(i, f"the value in column {short(name)} is missing")
    for i in sorted(why):
        leave_out(path, skips, why[i], i, lines, FILL)
    if not why:
        return cells
    if len(why) == len(cells[0]):
        raise BadFile(path, "has no row with a value in each column that is read")
    if skips is not None:
        skips.sort()
    return [[cell for i, cell in enumerate(column) if i not in why] for column in cells]
