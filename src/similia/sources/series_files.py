"""Read time series: folders with one file per series, long tables with one row per time point, and ``.ts`` files.

https://timeseriesclassification.com defines the ``.ts`` format, which aeon and sktime also read. Comments begin with
``#`` or ``%``. A header of lines ``@name value`` ends with ``@data``. Each further line is a series: its dimensions,
separated by colons, then its label. The values of a dimension are separated by commas.
"""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from similia.core.errors import BadFile
from similia.core.text import counted, short
from similia.core.validation import as_path
from similia.objects.sequences import concatenate
from similia.objects.series import SeriesBatch, as_series, series_from_long
from similia.sources.source import (
    LEAVE,
    Objects,
    Reading,
    Skips,
    ending_of,
    is_number,
    leave_out,
    looks_numeric,
    place_of,
)
from similia.sources.streams import ROWS, TABLES, ObjectStream, choice_of, meaningless, table_of
from similia.sources.tables import read_columns
from similia.sources.text import file_errors, is_utf8, line_records

AT_ONCE = 2**62, 2**26  # maximum numbers of objects and bytes per chunk of a file that is read as a whole
_FLAGS = ("@timestamps", "@univariate", "@equallength", "@classlabel", "@targetlabel")
_SIZES = ("@dimensions", "@serieslength")
_LONGEST = 300  # characters of a message about a line, which may quote a number of any length


def array_of(path: Path) -> npt.NDArray:
    try:
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (ValueError, OSError, EOFError) as error:
        raise BadFile(path, f"is not an array of numbers that numpy.save wrote ({short(error, 100)})") from None


def series_folder(path: Path, reading: Reading) -> Objects:
    """Read a folder with one file per series; if all files are in subfolders, their names are the labels."""
    files = sorted(p for p in path.rglob("*") if p.is_file() and not p.name.startswith("."))
    files = [p for p in files if ending_of(p) in TABLES | ROWS | {".txt"}]
    if not files:
        raise BadFile(
            path,
            "is a folder that holds neither graphs (NAME_A.txt of the TUDataset format) nor series (one .csv, .tsv, "
            ".parquet, .npy or .txt file each)",
        )
    for option in reading.is_set("text", "smiles", "names", "label", "time", "axes"):
        raise meaningless(path, option, "")
    skips = reading.skips()
    one = Reading(values=reading.values, sep=reading.sep, encoding=reading.encoding, header=reading.header,
                  decimal=reading.decimal)  # fmt: skip
    arrays: list[npt.NDArray] = []
    kept: list[int] = []
    for i, file in enumerate(files):
        try:
            arrays.append(_points(file, one))
            if arrays[-1].shape[1] != arrays[0].shape[1]:
                expected = f"expected {arrays[0].shape[1]} as in {files[kept[0]].name}"
                raise ValueError(
                    f"{file} has {counted(arrays.pop().shape[1], 'channel')} (columns of numbers), {expected}"
                )
            kept.append(i)
        except ValueError as error:
            if skips is None:
                raise
            skips.add(i, str(error))
    if not arrays:
        raise BadFile(path, f"holds no valid series; the first: {skips.first[1] if skips and skips.first else ''}")
    parts = [files[i].relative_to(path) for i in kept]
    nested = all(len(part.parts) > 1 for part in parts)
    labels = np.array([part.parts[0] for part in parts]) if nested else None
    return Objects(
        str(path), "series", as_series(arrays), labels, [str(part.with_suffix("")) for part in parts], None, skips
    )


def _points(path: Path, reading: Reading) -> npt.NDArray:
    """Read the file of one series as an array, shape (length, n_channels)."""
    if ending_of(path) == ".npy":
        points = array_of(path)
        return _checked(path, points[:, None] if points.ndim == 1 else points)
    if ending_of(path) == ".txt" and reading.sep is None:
        lines = [text.split() for part in line_records(path, encoding=reading.encoding) for text in part.columns[0]]
        try:
            points = np.array(lines, dtype=np.float64)
        except ValueError:
            raise BadFile(path, "is not a table of numbers separated by spaces") from None
        return _checked(path, points)
    stream = ObjectStream(path, reading, *AT_ONCE, "vectors")
    return np.asarray(concatenate([chunk.objects for chunk in stream.chunks()]))


def _checked(path: Path, points: npt.NDArray) -> npt.NDArray:
    """Return the time points of one series if they are an array of finite numbers, (length, n_channels); else raise."""
    if points.dtype.kind not in "fiub" or points.ndim != 2 or points.size == 0:
        found = f"holds {points.dtype} of shape {points.shape}"
        raise BadFile(path, f"{found}, expected numbers of shape (length,) or (length, n_channels)")
    finite = np.isfinite(points).all(axis=1)
    if not finite.all():
        raise BadFile(path, "it holds NaN or infinity; drop or impute it", at=place_of(int(finite.argmin())))
    return points


class _Frame:
    """A dict of columns with the methods of a data frame that `series_from_long` calls."""

    def __init__(self, columns: dict[str, npt.NDArray]) -> None:
        self.columns, self._columns = list(columns), columns

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __getitem__(self, name: str) -> npt.NDArray:
        return self._columns[name]


def long_table(path: Path, reading: Reading) -> Objects:
    """Read series from a table in which each row is one time point of one series."""
    if reading.names is None:
        raise BadFile(path, "is read as a long table (--time); add the column that names the series (names= or --id)")
    skips = reading.skips()
    cells, lines, header, choice = _columns_of(path, reading, skips)
    times, ids, labels, *values = cells
    numbers = np.column_stack([_number_column(column, reading.decimal) for column in values])
    finite = np.isfinite(numbers)
    stamps, what = _times(times, reading.decimal)
    good: list[int] = []
    met: dict[tuple[Any, Any], int] = {}  # first row of each series at each time
    for i, (one, stamp) in enumerate(zip(ids, stamps, strict=True)):
        if _is_missing(one):
            why = "the id of the series is missing"
        elif stamp is None:
            why = f"the time {short(times[i])} is not a {what}"
        elif not finite[i].all():
            j = int(finite[i].argmin())
            why = f"column {short(header[choice[j]])} holds {short(values[j][i])}, expected a finite number"
        elif met.setdefault((one, stamp), i) != i:
            first = place_of(met[one, stamp], lines)
            why = f"series {short(one)} has another row at time {short(times[i])} ({first})"
        else:
            good.append(i)
            continue
        leave_out(path, skips, why, i, lines, f"correct it or {LEAVE}")
    if not good:
        raise BadFile(path, "holds no valid row")
    if skips is not None:
        skips.sort()
    columns = {"id": np.array(ids, dtype=object)[good], "time": np.array(stamps, dtype=object)[good]}
    frame = _Frame(columns | {f"values {j}": column for j, column in enumerate(numbers[good].T)})
    series, found = series_from_long(frame, id="id", time="time", values=frame.columns[2:])
    firsts = {ids[i]: i for i in reversed(good)}
    first_lines = None if lines is None else np.array([lines[firsts[one]] for one in found.tolist()])
    y = None if labels is None else _labels_of(path, ids, labels, good, found, lines)
    return Objects(str(path), "series", series, y, [str(one) for one in found.tolist()], None, skips, first_lines)


def _columns_of(path: Path, reading: Reading, skips: Skips | None) -> tuple[list[Any], Any, list[str], list[int]]:
    """Return the cells, lines, header and value columns of a long table.

    Cells are one list per column: times, ids of series, labels (None without this column), then the values. Lines are
    the numbers of the lines in which rows begin (None for Parquet). Value columns are given by position.
    """
    if ending_of(path) == ".parquet":
        from similia.sources.rows import ParquetTable

        rows = ParquetTable(path, reading)
        header, choice, lines = rows.header, rows.choice, None
        wanted = [reading.time, reading.names, *([] if choice.label is None else [choice.label]), *choice.objects]
        cells: list[Any] = list(
            read_columns(path, *(column for column in wanted if column is not None), keep_missing=True)
        )
    else:
        table = table_of(path, reading, skips)
        choice, header = choice_of(table, reading)
        at = [table.position_of(column) for column in (reading.time, reading.names) if column is not None]
        at += [*([] if choice.label is None else [choice.label]), *choice.objects]
        parts = list(table.records(at))
        cells = [[cell for part in parts for cell in part.columns[j].tolist()] for j in range(len(at))]
        lines = np.concatenate([part.begins for part in parts if part.begins is not None])
    if choice.label is None:
        cells.insert(2, None)
    return cells, lines, header, choice.objects


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value) or value == ""


def _number_column(cells: list[Any], decimal: str) -> npt.NDArray[np.float64]:
    """Return cells as numbers, with NaN for cells that are not numbers."""

    def number(cell: Any) -> float:
        if isinstance(cell, str):
            return float(cell.replace(decimal, ".")) if is_number(cell, decimal) else np.nan
        return np.nan if cell is None else float(cell)

    return np.array([number(cell) for cell in cells])


def _times(cells: list[Any], decimal: str) -> tuple[list[Any], str]:
    """Return times as sortable values (None if invalid), and what messages call a valid time."""
    if not all(isinstance(cell, str) for cell in cells):
        return [None if _is_missing(cell) else cell for cell in cells], "time"
    if looks_numeric(cells, decimal):
        numbers = _number_column(cells, decimal).tolist()
        return [number if np.isfinite(number) else None for number in numbers], "number"
    return list(map(_date, cells)), "number or date such as 2024-12-31T23:59"


def _date(cell: str) -> int | None:
    """Return a date as a number that sorts like it, without bounds on the year or loss of digits; None if invalid."""
    text = cell.strip().replace("Z", "")
    try:
        second, year = (np.datetime64(text, unit) for unit in ("s", "Y"))
    except ValueError:
        return None
    if not re.match(r"[+-]?\d", text) or second.astype("M8[Y]") != year:  # such as "now", or year 10^12
        return None
    fraction = re.search(r"\.(\d+)", text)
    return int(second.astype(np.int64)) * 10**18 + int(fraction[1].ljust(18, "0") if fraction else 0)


def _labels_of(
    path: Path, ids: list[Any], labels: list[Any], good: list[int], found: npt.NDArray, lines: Any
) -> npt.NDArray:
    """Return the label of each id in `found` ("" without one), from the rows `good`; raise if an id has two labels."""
    label: dict[Any, Any] = {}
    for i in good:
        if _is_missing(labels[i]):
            continue
        if label.setdefault(ids[i], labels[i]) != labels[i]:
            found_here = (
                f"series {short(ids[i])} has the label {short(labels[i])} here and {short(label[ids[i]])} before"
            )
            raise BadFile(path, f"{found_here}, expected one label per series", at=place_of(i, lines))
    y = np.empty(len(found), dtype=object)
    y[:] = [label.get(one, "") for one in found.tolist()]
    return y


def read_ts(path: str | os.PathLike[str], encoding: str = "utf-8") -> tuple[SeriesBatch, npt.NDArray[Any] | None]:
    """Read a file of time series in ``.ts`` format.

    Parameters
    ----------
    path : path
        Plain or gzip (``.gz``). The data are checked against the header fields ``@timeStamps``, ``@univariate``,
        ``@dimensions``, ``@equalLength``, ``@seriesLength``, ``@classLabel`` (with its list of labels, if any) and
        ``@targetLabel``, in upper or lower case.
    encoding : str, default="utf-8"
        Encoding of the file.

    Returns
    -------
    series : SeriesBatch
        Series of float64; the dimensions of the file are their channels.
    y : ndarray, shape (n,), or None
        Labels as written (str); with ``@targetLabel true``, numbers (float64); with ``@classLabel false``, None.

    Raises
    ------
    ValueError
        If the file is truncated or not a ``.ts`` file, a value is missing (``?``, NaN), values have time stamps, or
        the data contradict the header. The message names the line.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from similia.sources import read_ts
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "two.ts")
    ...     _ = path.write_text("@dimensions 2\\n@classLabel true up down\\n@data\\n1,2,3:4,5,6:up\\n2,1:0,0:down\\n")
    ...     series, y = read_ts(path)
    >>> series.lengths, series.n_dims, y
    (array([3, 2]), 2, array(['up', 'down'], dtype='<U4'))
    """
    arrays: list[npt.NDArray[np.float64]] = []
    labels: list[Any] = []
    opener: Any = gzip.open if as_path(path).suffix.lower() == ".gz" else open
    codec = "utf-8-sig" if is_utf8(encoding) else encoding
    with file_errors(path, encoding), opener(path, "rt", encoding=codec) as file:
        lines = _Lines(file)
        try:
            header = _read_header(lines)
            label_type = _label_type(header)
            known = header["@classlabel"].split()[1:] if label_type is str else []
            for line in lines:
                dimensions = line.split(":")
                if label_type is not None:
                    labels.append(_read_label(dimensions.pop(), label_type, known))
                arrays.append(_read_series(dimensions, header, arrays))
            if not arrays:
                raise ValueError("no series after '@data'; is the file truncated?")
        except UnicodeDecodeError:
            raise
        except ValueError as error:
            problem = str(error) if len(str(error)) < _LONGEST else f"{str(error)[:_LONGEST]}…"
            raise BadFile(path, problem, at=f"line {lines.number}") from None
    return SeriesBatch.from_arrays(arrays), np.array(labels) if labels else None


class _Lines:
    """Iterator over the lines of a file, except empty ones and comments; `number` counts all lines, from 1."""

    def __init__(self, file: TextIO) -> None:
        self.file, self.number = file, 0

    def __iter__(self) -> Iterator[str]:
        for line in self.file:
            self.number += 1
            if (line := line.strip()) and line[0] not in "#%":
                yield line


def _read_header(lines: _Lines) -> dict[str, str]:
    """Read the header up to ``@data``; return {``@name`` in lower case: text after it}."""
    header: dict[str, str] = {}
    for line in lines:
        name, *words = line.split()
        name = name.lower()
        if name == "@data":
            return header
        if name[0] != "@":
            raise ValueError(f"expected '@data' before the first series, got {short(line)}; is it a .ts file?")
        words[:1] = [words[0].lower()] if words else [""]
        header[name] = " ".join(words)
        if name in _FLAGS and words[0] not in ("true", "false"):
            raise ValueError(f"{name} must be true or false, got {short(words[0])}")
        if name in _SIZES and not (words[0].isdecimal() and int(words[0])):
            raise ValueError(f"{name} must be a number of at least 1, got {short(words[0])}")
        if name == "@timestamps" and words[0] == "true":
            raise ValueError("@timeStamps true: values with time stamps are not supported; write the values alone")
    raise ValueError("the file ends before '@data'; is it a whole .ts file?")


def _label_type(header: dict[str, str]) -> type[str] | type[float] | None:
    if not {"@classlabel", "@targetlabel"} & set(header):
        raise ValueError("the header does not mention labels; add '@classLabel false' if the series have none")
    if header.get("@targetlabel") == "true":
        return float
    return str if header.get("@classlabel", "").startswith("true") else None


def _read_label(text: str, label_type: type[str] | type[float], known: list[str]) -> str | float:
    """Return the label of a series; raise if the header lists labels (`known`) without this one."""
    if label_type is float:
        target = _ts_numbers(text, "the target")
        if len(target) > 1:
            raise ValueError(f"the target after the last ':' must be one number, got {short(text)}")
        return float(target[0])
    label = text.strip()
    if not label:
        raise ValueError("the label after the last ':' is missing")
    if known and label not in known:
        raise ValueError(f"unknown label {short(label)}, expected one of {short(known)} as @classLabel lists them")
    return label


def _read_series(
    dimensions: list[str], header: dict[str, str], before: list[npt.NDArray[np.float64]]
) -> npt.NDArray[np.float64]:
    """Return a series, shape (length, n_dimensions); raise if the header or the series `before` imply another shape."""
    expected = int(header.get("@dimensions", before[0].shape[1] if before else len(dimensions)))
    expected = 1 if header.get("@univariate") == "true" else expected
    if len(dimensions) != expected or not dimensions:
        raise ValueError(f"found {counted(len(dimensions), 'dimension')} before the label, expected {max(expected, 1)}")
    channels = [_ts_numbers(text, f"dimension {j}") for j, text in enumerate(dimensions)]
    for j, channel in enumerate(channels):
        if len(channel) != len(channels[0]):
            raise ValueError(
                f"dimension {j} has {counted(len(channel), 'value')} and dimension 0 has {len(channels[0])}"
            )
    if header.get("@equallength") == "true":
        length = int(header.get("@serieslength", len(before[0] if before else channels[0])))
        if len(channels[0]) != length:
            raise ValueError(f"found length {len(channels[0])}, expected {length}: the header says @equalLength true")
    return np.column_stack(channels)


def _ts_numbers(text: str, name: str) -> npt.NDArray[np.float64]:
    """Parse finite numbers separated by commas; messages call them `name`."""
    words = text.split(",")
    try:
        values = np.array([float(word) for word in words])
    except ValueError:
        values = np.array([float(word) if is_number(word) else np.nan for word in words])
    finite = np.isfinite(values)
    if not finite.all():
        t = int(finite.argmin())
        raise ValueError(
            f"value {t} of {name} is {short(words[t].strip())}, expected a finite number; "
            "missing values are not supported, fill them in first"
        )
    return values
