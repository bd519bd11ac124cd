"""`Source`, the base class of objects in files, iterables or Dask collections, which are read a chunk at a time.

Also the options for reading files, the choice of columns of a table, and the list of skipped rows.
"""

from __future__ import annotations

import codecs
import csv
import hashlib
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.config import meter
from similia.core.text import counted, did_you_mean, short
from similia.core.validation import BadFile
from similia.objects.sequences import StringBatch, concatenate, take

_SEPARATORS = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}
_TEXT, _LABEL = "text", "label"  # columns that are read if no option names one
_LISTED = 8  # maximum number of columns that a message lists
LEAVE = "leave the row out (on_error='skip' or --on-error skip)"  # remedy in messages about a bad row
FILL = f"fill it in or {LEAVE}"  # remedy in messages about a missing cell
_INTEGER = r"-?\d{1,4000}"  # int() takes up to 4300 digits
MISSING = {"", "na", "nan", "n/a", "null", "none", "?"}  # cells of missing numbers, in lower case
Column = str | int
ROW, NAME = "row", "name"  # columns of results that identify objects: by position in their file, by name
_HEAD = ["line", "reason"]
_BLOCK = 10_000  # rows hashed at once
_Ints = npt.NDArray[np.int64]
_Part = tuple[npt.NDArray[np.float64], _Ints, Any, _Ints]  # random numbers, bytes, objects, positions in the source


@dataclass(frozen=True)
class Reading:
    """Options for reading files; `open_stream` and `read_objects` take them as keyword arguments.

    Parameters
    ----------
    text : str or int, optional
        Name or position of the column of a table that holds the strings. If `text`, `smiles` and `values` are all None,
        the column called "text" is read or, if there is none, the only column that holds text. If no column holds text,
        the columns of numbers are read, and each row is a vector.
    smiles : str or int, optional
        Column of SMILES, if the objects are molecules (needs RDKit).
    values : str or sequence of columns, optional
        Columns of numbers, such as ``"x,y,z"``, if each row is a vector. For an ``.npz``: name of the array of objects.
    series : bool, default=False
        Whether rows of numbers are time series rather than vectors. Empty cells at the end of a series are ignored.
    label : str or int, optional
        Where the labels are: a column of a table, a field of SDF, an array of an ``.npz``, or a field ``name=value`` of
        FASTA headers. The default is "label" (for an ``.npz`` also "y", "labels" or "target"), if the file has a
        column, field or array of this name.
    names : str or int, optional
        Column of a table, or field of SDF, that holds the names of the objects (``--id`` on the command line).
    time : str or int, optional
        Column of times of a long table, in which each row is one time point of one series. The column `names`
        identifies the series, and the columns `values` hold its channels. Rows are sorted by time; only their order
        matters, so gaps do not count: resample series first if they should. Only for `read_objects`.
    axes : {"time, channel", "channel, time"}, optional
        Order of the last two axes of a 3-D array of series; see `similia.objects.as_series`. Only for `read_objects`.
    sep : str, optional
        Separator of the cells of a text table: a character, "tab" or "space". By default, the ending of the file name
        determines the separator.
    encoding : str, default="utf-8"
        Encoding of text files, such as "latin-1" or "utf-16".
    header : bool, default=True
        Whether the first line of a text table holds the names of its columns. If not, give columns by position.
    decimal : {".", ","}, default="."
        Decimal mark of numbers in text tables. With ",", a point is none: 1.234 is refused, since it may mean 1234.
    on_error : {"stop", "skip"}, default="stop"
        What to do with bad rows: those with a wrong number of cells, an empty text, invalid SMILES or molecules, or
        missing numbers; in `read_objects` also those without a label. "stop" raises an error; "skip" leaves these rows
        out and counts them. Series of a long table become shorter by such rows, without gaps.
    skipped : path, optional
        CSV file to write: for each skipped row, its line number (in a binary file, its row number) and the reason.

    Examples
    --------
    >>> from similia.sources import Reading
    >>> Reading(values="x, y", sep="tab")
    Reading(text=None, smiles=None, values=['x', 'y'], series=False, ... sep='\\t', ...)
    """

    text: Column | None = None
    smiles: Column | None = None
    values: str | Sequence[Column] | None = None
    series: bool = False
    label: Column | None = None
    names: Column | None = None
    time: Column | None = None
    axes: str | None = None
    sep: str | None = None
    encoding: str = "utf-8"
    header: bool = True
    decimal: str = "."
    on_error: str = "stop"
    skipped: Any = None

    def __post_init__(self) -> None:
        """Check and normalise the options, as far as this is possible without a file."""
        given = [name for name in ("text", "smiles", "values") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(
                f"{given[0]} and {given[1]} exclude each other: the objects are strings (text), molecules (smiles) or "
                "numbers (values)"
            )
        numeric = [name for name in ("series", "time", "axes") if getattr(self, name)]
        if numeric and given and given != ["values"]:
            raise ValueError(f"{numeric[0]} is for numbers, and {given[0]} names a column of text; drop one of them")
        self._set("sep", None if self.sep is None else _separator(self.sep))
        try:
            codecs.lookup(self.encoding)
            "".encode(self.encoding)
        except (LookupError, TypeError):
            raise ValueError(
                f"encoding {short(self.encoding)} is unknown; some are utf-8, latin-1, cp1252 and utf-16"
            ) from None
        if self.decimal not in (".", ","):
            raise ValueError(f"decimal must be '.' or ',', got {short(self.decimal)}")
        if self.on_error not in ("stop", "skip"):
            raise ValueError(f"on_error must be 'stop' or 'skip', got {short(self.on_error)}")
        for name in ("text", "smiles", "label", "names", "time"):
            self._set(name, self._column(getattr(self, name)))
        if isinstance(self.values, str):
            self._set("values", [name.strip() for name in self.values.split(",")])
        if self.values is not None:
            self._set("values", [self._column(name) for name in self.values])

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _column(self, column: Any) -> Any:
        """Return the name or position of a column; in tables without a header, "2" becomes the position 2."""
        if not self.header and isinstance(column, str) and re.fullmatch(r"-?\d+", column):
            return int(column)
        return column

    @property
    def kind(self) -> str | None:
        """Kind of objects that the options imply, such as "strings", or None if they leave the kind to the file."""
        if self.series or self.time is not None or self.axes is not None:
            return "series"
        named = {"text": "strings", "smiles": "graphs", "values": "vectors"}
        return next((kind for name, kind in named.items() if getattr(self, name) is not None), None)

    def is_set(self, *names: str) -> list[str]:
        """Return the names, among `names`, of all options whose values differ from their defaults."""
        usual = {field.name: field.default for field in fields(self)}
        return [name for name in names if getattr(self, name) != usual[name]]

    def skips(self, begin: bool = True) -> Skips | None:
        """Return a new, empty record of skipped rows, or None if `on_error` is "stop".

        If `begin` is True, the CSV file of an earlier record at the path `skipped` is deleted.
        """
        if self.on_error == "stop":
            return None
        skips = Skips(None if self.skipped is None else Path(self.skipped))
        if begin:
            skips.begin()
        return skips


@dataclass(frozen=True)
class Objects:
    """Objects of a file with their labels and names, as `read_objects` returns them.

    Attributes
    ----------
    source : str
        The path as the user wrote it.
    kind : {"strings", "graphs", "series", "sets", "vectors"}
        What the objects are.
    objects : StringBatch, GraphBatch, SeriesBatch, SetBatch or ndarray
        The objects.
    labels : ndarray, shape (n,), optional
        The label of each object, if the file has labels.
    names : list of str or of int, optional
        For FASTA and FASTQ: the first word of each header if all these words are distinct, otherwise the whole headers.
        For ``.smi`` and SDF: the names in the file. For a table: the column given by the option ``names``. If there are
        no names: None or, with ``on_error="skip"``, the positions of the rows in the file (int).
    told : str, optional
        A sentence for the user that names the columns in which similia found the objects. None if nothing had to
        be guessed: an option names these columns, a column is called "text", or the file has no columns. For a long
        table: which series are shorter because rows were left out, and whether, within a series, the largest step of
        time is more than 1.5 times the median step, as after a gap.
    skips : Skips, optional
        Skipped rows: ``skips.n`` is their number, and ``skips.first`` holds the line and the reason of the first one.
    lines : ndarray of int, shape (n,), optional
        For a text file: number of the line in which each object begins. Lines are counted from 1, including empty ones.
    called : str
        Word for the objects in messages: "molecules" for graphs read from SMILES or SDF, otherwise the kind.
    columns : sequence of str
        Columns of a table that hold the objects: their names, or their positions if the table has no header.
    rows : ndarray of int, shape (n,), optional
        Position of each object in the file, counted from 0. The count is over the rows of a table or an ``.npz``,
        the non-empty lines of a text file, or the molecules of a ``.smi`` or SDF file.
    """

    source: str
    kind: str
    objects: Any
    labels: npt.NDArray | None = None
    names: list[Any] | None = None
    told: str | None = None
    skips: Any = None
    lines: Any = None
    called: str = ""
    columns: Sequence[str] = ()
    rows: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "called", self.called or self.kind)

    @property
    def named(self) -> bool:
        """Whether the objects have names, not only positions in the file."""
        return self.names is not None and not isinstance(self.names[0], int)


@dataclass(frozen=True)
class Choice:
    """Positions of the columns to read from a table.

    `objects` holds one position for strings or SMILES, and one per column for rows of numbers. `told` is a sentence for
    the user that names these columns, if no option did.
    """

    kind: str
    objects: list[int]
    label: int | None = None
    names: int | None = None
    told: str | None = None

    @property
    def positions(self) -> list[int]:
        return [*self.objects, *(j for j in (self.label, self.names) if j is not None)]


def choose(
    path: Any,
    header: list[str],
    reading: Reading,
    holds: Callable[[int], str | None],
    kind: str | None = None,
    left_out: Collection[int] = (),
) -> Choice:
    """Choose the columns to read from a table.

    `header` holds a text for each column, its name if it has one. ``holds(j)`` returns "numbers", "text" or None (for
    anything else in column j). `kind` is the kind of the objects, unless `reading` implies one. Columns in `left_out`
    are chosen only by name or by an option.
    """
    kind = reading.kind or kind
    _check_columns(path, header)

    def at(column: Column) -> int:
        return position_of(path, column, header, reading.header) % len(header)

    def called(j: int) -> str:
        return short(header[j]) if reading.header else f"number {j} (counted from 0)"

    label = reading.label if reading.label is not None else _LABEL if reading.header and _LABEL in header else None
    extra: dict[str, Any] = {
        name: None if c is None else at(c) for name, c in (("label", label), ("names", reading.names))
    }
    taken = {*extra.values(), None if reading.time is None else at(reading.time)}
    free = [j for j in range(len(header)) if j not in taken and j not in left_out]
    for column, named in ((reading.text, "strings"), (reading.smiles, "graphs")):
        if column is not None:
            return Choice(named, [at(column)], **extra)
    numeric = free if kind == "series" else [j for j in free if holds(j) == "numbers"]
    numeric = numeric if reading.values is None else list(map(at, reading.values))
    if kind in ("vectors", "series"):
        _check_numeric(path, numeric, header, reading)
        return Choice(kind, numeric, **extra)
    if reading.header and _TEXT in header:
        return Choice("strings", [at(_TEXT)], **extra)
    texts = [j for j in free if holds(j) == "text"]
    if len(texts) == 1:
        if reading.header:
            at(header[texts[0]])  # raises if two columns have this name
        told = f"the objects are the strings of column {called(texts[0])}, the only one of text"
        told += ", read as SMILES with --smiles" if header[texts[0]].lower() == "smiles" else ""
        return Choice("strings", texts, **extra, told=told)
    if not texts and numeric:
        _check_numeric(path, numeric, header, reading)
        shown = ", ".join(map(called, numeric[:4])) + (f" … {called(numeric[-1])}" if len(numeric) > 4 else "")
        return Choice("vectors", numeric, **extra, told=f"the objects are vectors of {len(numeric)} numbers: {shown}")
    if texts:
        some = ", ".join(map(called, texts[:8])) + (" and more" if len(texts) > 8 else "")
        none = f"has no column {_TEXT!r}" if reading.header else "has no names of columns"
        remedy = "name the one with the objects (text= or --text)"
        remedy += ", or the columns of numbers that are the objects (values= or --values)" if numeric else ""
        raise BadFile(path, f"{none} and {len(texts)} columns of text: {some}; {remedy}")
    raise _no_column(path, _TEXT, header, reading.header)


def _check_numeric(path: Any, columns: list[int], header: list[str], reading: Reading) -> None:
    """Raise if `columns` is empty, or if the name of one of them occurs twice in the header."""
    if not columns:
        raise BadFile(
            path, "has no column of numbers besides labels and names; name a column of text (text= or --text)"
        )
    for j in columns if reading.header else []:
        position_of(path, header[j], header)


def key_column(names: Column | None, named: bool, results: Collection[str] = ()) -> str:
    """Return the name of the column that identifies objects in a table of results.

    It is that of the column `names`, if this has one; else "name" for objects that are `named`, and "row" for
    positions. Raise if the table has another column of this name, one of `results`.
    """
    if isinstance(names, str) and names in results:
        raise ValueError(
            f"the results have a column {names!r}, too; rename it in the data, or name another column (names= or --id)"
        )
    return names if isinstance(names, str) else NAME if named or names is not None else ROW


def place_of(row: int, lines: Any = None, noun: str = "row") -> str:
    """Return the place of a row in its file: its line if `lines` are known, else `noun` followed by its number."""
    return f"{noun} {row} (counted from 0)" if lines is None else f"line {lines[row]}"


def missing_among(cells: Sequence[Any]) -> list[int]:
    """Return the positions of missing cells: None, NaN, "" and, if all other cells are numbers, texts such as NA."""
    found = [i for i, cell in enumerate(cells) if cell is None or cell != cell or _may_be_missing(cell)]
    if not found:
        return found
    missing = set(found)
    others = [cell for i, cell in enumerate(cells) if i not in missing]
    if all(isinstance(cell, str) for cell in others) and looks_numeric(others):
        return found
    return [i for i in found if not isinstance(cells[i], str) or not cells[i]]


def _may_be_missing(cell: Any) -> bool:
    return isinstance(cell, str) and (cell in MISSING or cell.strip().lower() in MISSING)


def leave_out(path: Any, skips: Skips | None, why: str, i: int, lines: Any = None, remedy: str = LEAVE) -> None:
    """Add row `i` to the skipped rows, or raise if `skips` is None; `lines` holds the line of each row."""
    if skips is None:
        raise BadFile(path, f"{why}; {remedy}", at=place_of(i, lines))
    skips.add(i if lines is None else int(lines[i]), why)


def looks_numeric(cells: list[str], decimal: str = ".", share: float = 1.0) -> bool | None:
    """Return whether at least the fraction `share` of the non-missing cells are numbers; None if all are missing.

    A number with a point counts, too, so that it is refused as one (see `point_note`) and does not become text.
    """
    full = [cell.replace(decimal, ".") for cell in map(str.strip, cells) if cell.lower() not in MISSING]
    return sum(map(is_number, full)) >= share * len(full) if full else None


def is_number(cell: str, decimal: str = ".") -> bool:
    try:
        to_float(cell.replace(decimal, "."))
    except ValueError:
        return False
    return not point_note(cell, decimal)


def to_float(cell: str) -> float:
    """Return a cell as a float, or raise ValueError; Python alone would read 1_000, which is a name in a table."""
    return float("" if "_" in cell else cell)


def point_note(cell: Any, decimal: str) -> str:
    """Return, for the message about a cell that is no number, that its point is the reason; "" if it is not."""
    if decimal == "." or not isinstance(cell, str) or "." not in cell:
        return ""
    return " (with the decimal mark ',', a point is none: write 1,5 for 1.5 and 1234 for 1.234)"


def typed(cells: list[str]) -> list[Any]:
    """Convert cells to int or float if all are finite numbers without leading zeros (as in 007); else return them."""
    stripped = list(map(str.strip, cells))
    if not all(map(is_number, stripped)) or any(re.match(r"[+-]?0\d", cell) for cell in stripped):
        return cells
    if all(re.fullmatch(_INTEGER, cell) for cell in stripped):
        return list(map(int, stripped))
    numbers = list(map(float, stripped))
    return numbers if all(map(math.isfinite, numbers)) else cells


def _separator(text: Any) -> str:
    """Return the character that separates cells; `text` is that character or a name such as "tab"."""
    sep = _SEPARATORS.get(text, text)
    if not isinstance(sep, str) or len(sep) != 1 or sep in '"\r\n':
        raise ValueError(
            f"sep must be one character (no quotation mark or line break) or one of {', '.join(_SEPARATORS)}, got "
            f"{short(text)}"
        )
    return sep


def ending_of(path: Path) -> str:
    """Return the ending of a file name in lower case, such as ``.csv``, disregarding a final ``.gz``."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    return suffixes[-1] if suffixes else ""


def position_of(path: Any, column: str | int, names: list[str] | None, header: bool = True) -> int:
    """Return the position of a column, or raise if it does not exist; `names` is the first row, header or not."""
    if isinstance(column, int):
        if names and not -len(names) <= column < len(names):
            raise BadFile(path, f"has {counted(len(names), 'column')}, none at position {column} (the first one is 0)")
        return column
    if names is None or not header or column not in names:
        raise _no_column(path, column, names, header)
    if names.count(column) > 1:
        places = " and ".join(str(i) for i, name in enumerate(names) if name == column)
        raise BadFile(
            path,
            f"has {names.count(column)} columns named {short(column)}, at positions {places} (counted from 0); rename "
            "all but one",
        )
    return names.index(column)


def _check_columns(path: Any, names: list[str]) -> None:
    if not names:
        raise BadFile(path, "has no columns: its first line is empty, or there is none")


def _no_column(path: Any, column: str, names: list[str] | None, header: bool) -> BadFile:
    """Return the error for a name that no column has; the arguments are those of `position_of`."""
    if names is None or not header:
        return BadFile(
            path, f"is read without column names, so there is no {short(column)}; give positions, the first is 0"
        )
    _check_columns(path, names)
    known = ", ".join(map(short, names[:_LISTED]))
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return BadFile(path, f"has no column {short(column)}{did_you_mean(column, names)}; it has {known}{more}")


class Skips:
    """The skipped rows of a file, of which only the number and the first one are kept in memory.

    Parameters
    ----------
    path : path, optional
        CSV file to write, with the line where each skipped row begins (for Parquet, the row number) and the reason. It
        is created only if rows are skipped.

    Attributes
    ----------
    n : int
        Number of skipped rows.
    first : tuple of int and str, optional
        Line of the first skipped row, and the reason.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path, self.n = path, 0
        self.first: tuple[int, str] | None = None

    def begin(self) -> None:
        """Clear the list and delete its CSV file, before a source is read from its beginning."""
        self.n, self.first = 0, None
        if self.path is None or not self.path.exists():
            return
        with self.path.open(newline="", encoding="utf-8") as file:
            if next(csv.reader(file), None) != _HEAD:
                raise BadFile(self.path, "is not a list of skipped rows, and would be overwritten by one; rename it")
        self.path.unlink()

    def sort(self) -> None:
        """Sort the CSV file by line, since rows without a label were added last."""
        if self.path is None or not self.path.exists():
            return
        with self.path.open(newline="", encoding="utf-8") as file:
            head, *rows = csv.reader(file)
        with self.path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([head, *sorted(rows, key=lambda row: int(row[0]))])

    def add(self, line: int, why: str) -> None:
        if self.first is None or line < self.first[0]:
            self.first = line, why
        self.n += 1
        if self.path is not None:
            new = not self.path.exists()
            with self.path.open("a", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows([_HEAD, [line, why]] if new else [[line, why]])


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
        Number of bytes of the file read so far; for ``.gz``, of the compressed file. For an iterable, the approximate
        number of bytes of the objects so far. 0 for a Dask collection, and for a file that was read as a whole.
    labels : list, optional
        Labels as stored in the file. None if the file has no labels, or if its format is read into memory as a whole,
        as ``.ts`` and ``.npz`` are.
    lines : ndarray of int, shape (stop - start,), optional
        For a text file: number of the line in which each object begins. Lines are counted from 1, including empty ones.
    rows : ndarray of int, shape (stop - start,), optional
        Position of each object in the file, counted from 0. The count is over the rows of a table, the non-empty
        lines of a text file, or the molecules of a ``.smi`` or SDF file.
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
    named : bool
        Whether the objects have names, not only positions in the file.
    told : str or None
        A sentence for the user that names the columns in which similia found the objects. None if nothing had to
        be guessed: an option names these columns, a column is called "text", or the file has no columns.
    columns : sequence of str
        Columns of a table that hold the objects: their names, or their positions if the table has no header.
    reading : Reading
        Options with which a file is read.
    skips : Skips or None
        Rows left out with ``on_error="skip"``: ``skips.n`` is their number, and ``skips.first`` holds the line and the
        reason of the first one.
    at_end : callable or None
        Function that is called, with the source as its argument, whenever the source has been read to its end.
    """

    elsewhere = True  # not all objects are in memory; `similia.objects` looks for this attribute
    kind: str = "objects"
    source: str = ""
    n: int | None = None
    size: int | None = None
    again: bool = True
    named: bool = False
    told: str | None = None
    columns: Sequence[str] = ()
    reading: Reading = Reading()
    skips: Skips | None = None
    at_end: Callable[[Any], None] | None = None

    @property
    def called(self) -> str:
        """The word for its objects in messages, such as "strings"."""
        return self.kind

    @abstractmethod
    def chunks(self, start: int = 0) -> Chunks:
        """Yield the objects from position `start` on, in chunks."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Return a hash (str) that identifies the objects; raise ValueError if the objects cannot be read twice."""

    def take(self, indices: npt.ArrayLike) -> Any:
        """Return the objects at the positions `indices` (>= 0), in the order of `indices`.

        Objects after the largest of these positions are not read.
        """
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
        self.n, self.named, self.columns = len(read.objects), read.named, read.columns
        self.objects, self._read, self._chunk = read.objects, read, chunk

    @property
    def called(self) -> str:
        return self._read.called

    def chunks(self, start: int = 0) -> Chunks:
        n = len(self.objects)
        for first in range(start, n, self._chunk):
            stop = min(n, first + self._chunk)
            about = (self._read.names, self._read.lines, self._read.rows)
            names, lines, rows = (None if a is None else a[first:stop] for a in about)
            yield Chunk(take(self.objects, np.arange(first, stop)), names, first, stop, lines=lines, rows=rows)
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
