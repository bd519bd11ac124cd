"""Series in many files (a folder) and in long tables, whose rows are one time point each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.text import _short, counted
from similia.objects.sequences import concatenate
from similia.objects.series import as_series, series_from_long
from similia.sources._line_streams import line_records
from similia.sources.readers import read_columns
from similia.sources.reading import Objects, Reading, choose, ending_of, is_number, looks_numeric
from similia.sources.streams import ROWS, TABLES, ObjectStream, meaningless, table_of

_CHUNK, _BYTES = 2**62, 2**26


def array_of(path: Path) -> npt.NDArray:
    """Return a memory map of an array in a .npy file."""
    try:
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"{path} is not an array of numbers that numpy.save wrote ({_short(error, 100)})") from None


def series_folder(path: Path, reading: Reading) -> Objects:
    """Return a folder of series, a file for each; subfolders are classes."""
    files = sorted(p for p in path.rglob("*") if p.is_file() and not p.name.startswith("."))
    files = [p for p in files if ending_of(p) in TABLES | ROWS | {".txt"}]
    if not files:
        raise ValueError(
            f"{path} is a folder without graphs (NAME_A.txt of the TUDataset format) and without series (a .csv, .tsv, "
            ".parquet, .npy or .txt file for each)"
        )
    for option in reading.is_set("text", "smiles", "names", "label", "time", "axes"):
        raise ValueError(meaningless(path, option, ""))
    skips = reading.skips()
    if skips is not None:
        skips.begin(0)
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
        raise ValueError(
            f"{path} holds no series that can be read; the first: {skips.first[1] if skips and skips.first else ''}"
        )
    parts = [files[i].relative_to(path) for i in kept]
    nested = all(len(part.parts) > 1 for part in parts)
    labels = np.array([part.parts[0] for part in parts]) if nested else None
    return Objects(
        str(path), "series", as_series(arrays), labels, [str(part.with_suffix("")) for part in parts], None, skips
    )


def _points(path: Path, reading: Reading) -> npt.NDArray:
    """Return the time points of one series, shape (length, n_channels)."""
    if ending_of(path) == ".npy":
        points = array_of(path)
        return points[:, None] if points.ndim == 1 else points
    if ending_of(path) == ".txt" and reading.sep is None:
        lines = [text.split() for part in line_records(path, encoding=reading.encoding) for text in part.columns[0]]
        try:
            return np.array(lines, dtype=np.float64)
        except ValueError:
            raise ValueError(f"{path} holds other than a table of numbers separated by spaces") from None
    stream = ObjectStream(path, reading, _CHUNK, _BYTES, "vectors")
    return np.asarray(concatenate([chunk.objects for chunk in stream.chunks()]))


class _Frame:
    """Columns by name, as `series_from_long` takes them."""

    def __init__(self, columns: dict[str, npt.NDArray]) -> None:
        self.columns, self._columns = list(columns), columns

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __getitem__(self, name: str) -> npt.NDArray:
        return self._columns[name]


def long_table(path: Path, reading: Reading) -> Objects:
    """Return the series of a long table: a row is one time point of one series."""
    if reading.names is None:
        raise ValueError(
            f"{path} is read as a long table (--time): name the column of the series, too (names= or --id)"
        )
    cells, lines, header, choice = _columns_of(path, reading)
    skips = reading.skips()
    if skips is not None:
        skips.begin(0)
    times, ids, labels, *values = cells
    names = [header[j] for j in choice]
    numbers = [_number_column(column, reading.decimal) for column in values]
    stamps, what = _times(times, reading.decimal)
    bad: dict[int, str] = {}
    for i in range(len(ids)):
        if _is_missing(ids[i]):
            bad[i] = "the id of the series is missing"
        elif stamps[i] is None:
            bad[i] = f"the time {_short(times[i])} is no {what}"
        else:
            wrong = next((j for j, column in enumerate(numbers) if not np.isfinite(column[i])), None)
            if wrong is not None:
                bad[i] = f"column {_short(names[wrong])} holds {_short(values[wrong][i])}, expected a finite number"
    place = "row {} (from 0)" if lines is None else "line {}"
    met: dict[tuple[Any, Any], int] = {}
    for i in range(len(ids)):
        if i not in bad and met.setdefault((ids[i], stamps[i]), i) != i:
            first = place.format(met[ids[i], stamps[i]] if lines is None else int(lines[met[ids[i], stamps[i]]]))
            bad[i] = f"series {_short(ids[i])} has another row at time {_short(times[i])} ({first})"
    for i, why in sorted(bad.items()):
        line = i if lines is None else int(lines[i])
        if skips is None:
            raise ValueError(f"{path}, {place.format(line)}: {why}; correct it or leave the row out (--on-error skip)")
        skips.add(line, why)
    good = np.array([i for i in range(len(ids)) if i not in bad], np.int64)
    if not len(good):
        raise ValueError(f"{path} holds no good row")
    frame = _Frame(
        {"id": np.array(ids, dtype=object)[good], "time": np.array(stamps, dtype=object)[good]}
        | {f"values {j}": column[good] for j, column in enumerate(numbers)}
    )
    series, found = series_from_long(frame, id="id", time="time", values=frame.columns[2:])
    firsts: dict[Any, int] = {}
    for i in good[::-1].tolist():
        firsts[ids[i]] = i
    first_lines = None if lines is None else np.array([lines[firsts[one]] for one in found.tolist()])
    y = None if labels is None else _labels_of(path, ids, labels, good, found, lines)
    return Objects(str(path), "series", series, y, [str(one) for one in found.tolist()], None, skips, first_lines)


def _columns_of(path: Path, reading: Reading) -> tuple[list[Any], Any, list[str], list[int]]:
    """Return time, id, label (or None) and values of a long table as lists, the line of each row, and the header."""
    if ending_of(path) == ".parquet":
        from similia.sources._parquet_streams import ParquetRows

        rows = ParquetRows(path, reading)
        header, choice, lines = rows.header, rows.choice, None
        wanted = [reading.time, reading.names, *([] if choice.label is None else [choice.label]), *choice.objects]
        cells: list[Any] = list(read_columns(path, *(column for column in wanted if column is not None)))
    else:
        table = table_of(path, reading)
        header = table.first if reading.header else [str(j) for j in range(len(table.first))]
        head = table.head()

        def holds(j: int) -> str | None:
            numeric = looks_numeric([row[j] for row in head], reading.decimal, 0.5)
            return None if numeric is None else "numbers" if numeric else "text"

        choice = choose(path, header, reading, holds)
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
    """Return numbers; NaN where a cell holds none."""

    def number(cell: Any) -> float:
        if isinstance(cell, str):
            return float(cell.replace(decimal, ".")) if is_number(cell, decimal) else np.nan
        return np.nan if cell is None else float(cell)

    return np.array([number(cell) for cell in cells])


def _times(cells: list[Any], decimal: str) -> tuple[list[Any], str]:
    """Return times that can be sorted, None for those that are none, and what they are."""
    if not all(isinstance(cell, str) for cell in cells):
        return [None if _is_missing(cell) else cell for cell in cells], "time"
    if looks_numeric(cells, decimal):
        numbers = _number_column(cells, decimal).tolist()
        return [number if np.isfinite(number) else None for number in numbers], "number"
    stamps: list[Any] = []
    for cell in cells:
        try:
            stamp = np.datetime64(cell.strip().replace("Z", ""), "ns")
        except ValueError:
            stamp = np.datetime64("NaT")
        stamps.append(None if np.isnat(stamp) else int(stamp.astype(np.int64)))
    return stamps, "number or date such as 2024-12-31T23:59"


def _labels_of(
    path: Path, ids: list[Any], labels: list[Any], good: npt.NDArray[np.int64], found: npt.NDArray, lines: Any
) -> npt.NDArray:
    """Return the label of each series, which all of its rows that have one must share."""
    label: dict[Any, Any] = {}
    for i in good.tolist():
        if _is_missing(labels[i]):
            continue
        if label.setdefault(ids[i], labels[i]) != labels[i]:
            place = f"row {i} (from 0)" if lines is None else f"line {lines[i]}"
            raise ValueError(
                f"{path}, {place}: series {_short(ids[i])} has the label {_short(labels[i])} here and "
                f"{_short(label[ids[i]])} before, expected one label for each series"
            )
    y = np.empty(len(found), dtype=object)
    y[:] = [label.get(one, "") for one in found.tolist()]
    return y
