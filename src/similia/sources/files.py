"""Read whole files of any kind as objects, labels and names, and open files of any kind as a `Source`.

Time series come as a folder with one file per series, as a long table with one row per time point, or as a ``.ts``
file. https://timeseriesclassification.com defines the ``.ts`` format, which aeon and sktime also read. Comments begin
with ``#`` or ``%``. A header of lines ``@name value`` ends with ``@data``. Each further line is a series: its
dimensions, separated by colons, then its label. The values of a dimension are separated by commas.
"""

from __future__ import annotations

import gzip
import os
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, time
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from similia.core.config import rows_per_block, settings
from similia.core.text import counted, short
from similia.core.validation import BadFile, DataError, present, read_header, rows_in_blocks
from similia.objects.graphs import read_tudataset
from similia.objects.sequences import as_strings, concatenate, take
from similia.objects.series import SeriesBatch, as_series, series_from_long
from similia.sources.source import (
    FILL,
    LEAVE,
    MISSING,
    Chunk,
    Held,
    Objects,
    Reading,
    Skips,
    Source,
    ending_of,
    is_number,
    leave_out,
    looks_numeric,
    missing_among,
    place_of,
    point_note,
    to_float,
    typed,
)
from similia.sources.streams import (
    FASTA,
    FASTQ,
    ROWS,
    STREAMED,
    TABLES,
    ObjectStream,
    choice_of,
    is_table,
    meaningless,
    table_of,
    unknown_ending,
)
from similia.sources.tables import read_columns
from similia.sources.text import (
    BOMB,
    fasta_records,
    fastq_records,
    file_errors,
    is_utf8,
    line_records,
    narrow,
    refuse_bomb,
    refuse_bombs,
)

_NAMED = 3  # maximum number of series that a sentence names
_UNEVEN = 1.5  # times of a series are uneven if the largest step is over this many times the median step
_ARRAYS, _TARGETS = ("X", "x", "data"), ("y", "label", "labels", "target")  # usual names of arrays in .npz
_WHOLE = {".ts", ".npz", ".zip"}  # endings of files that are read as a whole
AT_ONCE = 2**62, 2**26  # maximum numbers of objects and bytes per chunk of a file that is read as a whole
_FLAGS = ("@timestamps", "@univariate", "@equallength", "@classlabel", "@targetlabel")
_SIZES = ("@dimensions", "@serieslength")
_LONGEST = 300  # characters of a message about a line, which may quote a number of any length


def read_objects(path: str | os.PathLike[str], **options: Any) -> Objects:
    r"""Read a whole file or folder: objects, labels and names.

    Parameters
    ----------
    path : path
        One of

        - a file that `open_stream` reads, or a ``.ts`` file;
        - an ``.npz`` file: the objects are in the array ``X``, ``x`` or ``data``, or in the only array that does not
          hold the labels; the labels, if any, are in ``y``, ``label``, ``labels`` or ``target``;
        - a folder or zip file of graphs in the TUDataset format;
        - a folder with one file (``.csv``, ``.tsv``, ``.parquet``, ``.npy``, ``.txt``) per series. The rows of each
          file are time points, and its columns are channels; columns with the names of those of the first table are
          put into its order. If all files are in subfolders, the names of the subfolders are the labels. A file with a
          column called "label" is refused unless `values` names the channels.
    **options
        Options for reading, such as ``label="species"``: the parameters of `Reading`.

    Returns
    -------
    Objects
        Objects, labels and names. Labels stored as text (or as decimals of Parquet) become int64 or float64 if all are
        numbers, otherwise str. Text with leading zeros, such as 007, is not a number, and integers stay str if one of
        them does not fit into int64. Labels of other types, in .npz, .npy or Parquet files, keep their type.

    Raises
    ------
    ValueError, TypeError, OSError
        As for `open_stream`, or if the file is damaged or a label is missing (see ``on_error`` of `Reading`). The
        message names the line.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from similia.sources import read_objects
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "reads.csv")
    ...     _ = path.write_text("sequence;species\nACGT;a\nGG;b\n")
    ...     found = read_objects(path, sep=";", label="species")
    >>> found.kind, found.objects.tolist(), found.labels.tolist(), found.told
    ('strings', ['ACGT', 'GG'], ['a', 'b'], "the objects are the strings of column 'sequence', the only one of text")
    """
    return read_with(path, Reading(**options))


def read_with(path: str | os.PathLike[str], reading: Reading, labelled: bool = True) -> Objects:
    """Read a file as `read_objects` does; unless `labelled`, labels may be missing and stay as in the file."""
    place = present(path)
    source, ending = str(path), ending_of(place)
    if not place.is_dir() and is_table(place, reading):
        found = long_table(place, reading) if reading.time is not None else _streamed(place, reading)
    elif place.is_dir() and not any(place.rglob("*_A.txt")):
        found = series_folder(place, reading)
    elif place.is_dir() or ending in (".zip", ".ts"):
        for option in reading.is_set("text", "smiles", "names", "values", "time", "sep"):
            raise meaningless(path, option, ending)
        if ending == ".ts" and not place.is_dir():
            found = Objects(source, "series", *read_ts(place, reading.encoding))
        else:
            found = Objects(source, "graphs", *read_tudataset(place))
    elif ending == ".npz":
        found = _npz(place, reading)
    elif ending == ".npy" and reading.kind == "series":
        X = array_of(place)
        if X.dtype.kind not in "fiub" or X.ndim not in (2, 3):
            raise BadFile(path, f"holds {X.dtype} of shape {X.shape}, expected numbers, a row for each series")
        found = _of_array(place, X, None, reading)
    elif ending in FASTA | FASTQ:
        found = _sequences(place, reading, labelled)
    else:
        found = _streamed(place, reading)
    return _with_labels(found, reading) if labelled and found.labels is not None else found


def open_objects(
    source: Any, reading: Reading | None = None, *, chunk: int = 10_000, max_bytes: int = 2**26,
    kind: str | None = None, **options: Any,
) -> Source:  # fmt: skip
    """Open a file, a folder, an iterable or a Dask collection, to read its objects in chunks.

    Some sources are first read into memory as a whole: folders, and files that only `read_objects` can read, such as
    ``.ts`` and ``.npz``.

    Parameters
    ----------
    source : path, iterable, Dask collection or Source
        A `Source` is returned unchanged.
    reading : Reading, optional
        Options for reading a file; not allowed if `source` is a `Source` or a Dask collection.
    chunk, max_bytes : int
        Maximum number of objects and approximate number of bytes per chunk; see `open_stream`.
    kind : {"series", "sets", "vectors"}, optional
        How to interpret each array of an iterable: as a time series (the default), a set of points or a vector.
    **options
        In place of `reading`: the parameters of `Reading`, such as ``series=True``.

    Returns
    -------
    Source
        Its method ``chunks()`` yields the objects in chunks.

    Examples
    --------
    >>> from similia.sources import open_objects
    >>> source = open_objects(word for word in ["ACGT", "CCGT", "ACCA"])
    >>> source.kind
    'strings'
    """
    if reading is not None and options:
        raise TypeError(f"give options in reading or by name, not in both: {', '.join(options)}")
    reading = Reading(**options) if reading is None else reading
    if isinstance(source, Source) or hasattr(source, "__dask_graph__"):
        for option in reading.is_set(*vars(reading)):
            raise ValueError(
                f"{option} is for files; give it to similia.sources.open_stream, which opens one, or drop it"
            )
        if isinstance(source, Source):
            return source
        from similia.sources.dask import as_partitions

        return as_partitions(source)
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if _is_whole(path, reading):
            return Held(read_with(source, reading, labelled=False), chunk)
        if path.is_file() and path.stat().st_size == 0:
            raise BadFile(path, "is empty")
    return ObjectStream(source, reading, chunk, max_bytes, kind)


def _is_whole(path: Path, reading: Reading) -> bool:
    if is_table(path, reading) and not path.is_dir():
        return reading.time is not None
    series = ending_of(path) == ".npy" and reading.kind == "series"
    return path.is_dir() or ending_of(path) in _WHOLE or series


def check_ending(path: Path, reading: Reading) -> None:
    """Raise if the library cannot read files with the ending of `path`."""
    if not (path.is_dir() or is_table(path, reading) or ending_of(path) in STREAMED | _WHOLE):
        raise unknown_ending(path, _WHOLE)


# ---- labels
def _with_labels(found: Objects, reading: Reading) -> Objects:
    """Drop objects without a label, or raise if ``found.skips`` is None; turn labels into numbers if possible."""
    y = found.labels
    assert y is not None
    given = y.tolist()
    if y.dtype == object or y.dtype.kind in "UT":
        y = _as_numbers(y, reading.decimal)
    missing = missing_among(["" if isinstance(label, str) and label.isspace() else label for label in y.tolist()])
    kept = np.setdiff1d(np.arange(len(y)), missing)
    skips = found.skips
    name = short(reading.label if reading.label is not None else "label")
    for i in missing:
        row = i if found.rows is None or found.lines is not None else int(found.rows[i])  # binary files have no lines
        point = point_note(given[i], reading.decimal)
        why = f"the label (column {name}) is {f'{short(given[i])}, expected a number{point}' if point else 'missing'}"
        leave_out(found.source, skips, why, row, found.lines, f"correct it or {LEAVE}" if point else FILL)
    if len(kept) == 0:
        raise BadFile(found.source, f"has no label in column {name}")
    if len(kept) < len(y):
        skips.sort()
        y = y[kept]
        names = None if found.names is None else [found.names[i] for i in kept.tolist()]
        lines = None if found.lines is None else found.lines[kept]
        rows = kept if found.rows is None else found.rows[kept]
        found = replace(found, objects=take(found.objects, kept), names=names, lines=lines, rows=rows)
    if y.dtype == object:
        known = _without_decimals(y.tolist())
        large = any(type(label) is int and label >= 2**63 for label in known)  # beside others, numpy rounds it
        y = np.asarray(known, np.uint64 if large else None)
    if y.dtype.kind in "UT":
        numbers = typed(y.tolist())
        if all(not isinstance(number, int) or -(2**63) <= number < 2**63 for number in numbers):
            y = np.asarray(numbers)
    return replace(found, labels=y)


def _without_decimals(labels: list[Any]) -> list[Any]:
    """Return labels with decimal numbers (of Parquet) as text, as integers if all are whole; other labels unchanged."""
    if not all(isinstance(label, Decimal) for label in labels):
        return labels
    whole = all(label == label.to_integral_value() for label in labels)
    return [str(int(label)) if whole else str(label) for label in labels]


def _as_numbers(y: npt.NDArray, decimal: str) -> npt.NDArray:
    """Return labels with "." as decimal mark if all are texts of numbers, else `y`; "" stands for what is no label."""
    cells = y.tolist()
    if not all(isinstance(cell, str) for cell in cells) or not looks_numeric(cells, decimal):
        return y
    none = {cell for cell in set(cells) if cell.strip().lower() in MISSING or point_note(cell, decimal)}
    return np.array(["" if cell in none else cell.replace(decimal, ".") for cell in cells])


# ---- files
def _streamed(path: Path, reading: Reading) -> Objects:
    if path.stat().st_size == 0:
        raise BadFile(path, "is empty")
    stream = ObjectStream(path, reading, *AT_ONCE)  # raises if the header of an array is damaged
    if ending_of(path) == ".npy" and _all_finite(X := array_of(path)):
        return Objects(str(path), "vectors", X)  # mapped, not read
    chunks: list[Chunk] = []
    total = 0
    for chunk in stream.chunks():
        chunks.append(chunk)
        total += getattr(getattr(chunk.objects, "values", chunk.objects), "nbytes", 0)
        refuse_bomb(path, total, path.stat().st_size)
    if not chunks:
        raise BadFile(path, "holds no objects")
    first = chunks[0]
    y = None
    if first.labels is not None:
        y = np.empty(chunks[-1].stop, dtype=object)
        y[:] = [label for chunk in chunks for label in chunk.labels or []]
    names = None if first.names is None else [name for chunk in chunks for name in chunk.names or []]
    lines, rows = (
        None if getattr(first, name) is None else np.concatenate([getattr(chunk, name) for chunk in chunks])
        for name in ("lines", "rows")
    )
    objects = concatenate([chunk.objects for chunk in chunks]) if len(chunks) > 1 else first.objects
    about = (stream.told, stream.skips, lines, stream.called, stream.columns, rows)
    return Objects(str(path), stream.kind, objects, y, names, *about)


def _all_finite(X: npt.NDArray) -> bool:
    return all(np.isfinite(rows).all() for _, rows in rows_in_blocks(X, rows_per_block(X.shape[1]), np.asarray))


def _sequences(path: Path, reading: Reading, labelled: bool) -> Objects:
    """Read FASTA or FASTQ; if `labelled`, labels are fields ``label=...`` (or with another name) of the headers."""
    ObjectStream(path, reading, *AT_ONCE)  # raises if an option does not apply to FASTA and FASTQ
    headers: list[str] = []
    parts = []
    read = fastq_records if ending_of(path) in FASTQ else fasta_records
    for records in refuse_bombs(path, read(path, reading.encoding)):
        headers += records.headers or []
        parts.append(records.columns[0])
    first = [name.split()[0] if name.split() else "" for name in headers]
    names = first if len(set(first)) == len(headers) else headers
    objects = narrow(concatenate(parts))
    skips = reading.skips()
    result = Objects(str(path), "strings", objects, None, names, None, skips)
    if not labelled:
        return result
    field = "label" if reading.label is None else str(reading.label)
    found = [re.search(rf"(?<![\w.-]){re.escape(field)}=(\S+)", name) for name in headers]
    if reading.label is None and not all(found):
        return result
    for i, name in enumerate(headers):
        if found[i] is None and skips is None:
            raise BadFile(
                path,
                f"there is no {field}=... in the header ({short(name, 60)}); add the label there, or use a table with "
                "a column of labels",
                at=f"record {i}",
            )
    y = np.array(["" if match is None else match[1] for match in found], dtype=object)
    return replace(result, labels=y)


def _npz(path: Path, reading: Reading) -> Objects:
    """Read objects and, if there are any, labels from the arrays of an ``.npz`` file."""
    for option in reading.is_set("text", "smiles", "names", "time"):
        raise meaningless(path, option, ".npz")
    place = ""
    try:
        with zipfile.ZipFile(path) as packed:
            size = sum(info.file_size for info in packed.infolist())
            if size > max(settings().max_memory, BOMB * path.stat().st_size):
                raise ValueError("it unpacks to more than max_memory, like a decompression bomb")
            for member in packed.namelist():
                place = f"{short(member.removesuffix('.npy'))}: "
                with packed.open(member) as stream:
                    read_header(stream)
        place = ""
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (ValueError, OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        why = place + (str(error)[:100] or type(error).__name__)
        raise BadFile(
            path,
            f"is not an archive of plain arrays that numpy.savez wrote ({why}); save numbers or text, series of "
            "several lengths padded with NaN at their ends",
        ) from None
    label = reading.label if reading.label is not None else next((name for name in _TARGETS if name in arrays), None)
    wanted = reading.values[0] if reading.values is not None else next((n for n in _ARRAYS if n in arrays), None)
    others = [name for name in arrays if name != label]
    wanted = others[0] if wanted is None and len(others) == 1 else wanted
    named = [("X" if wanted is None else wanted, "the objects (values= or --values)")]
    named += [] if label is None else [(label, "the labels (label= or --label)")]
    for name, what in named:
        if name not in arrays:
            known = ", ".join(map(short, arrays)) or "none"
            raise BadFile(path, f"has no array {short(name)} for {what}; it has {known}")
    X, y = arrays[str(wanted)], None if label is None else arrays[str(label)]
    if y is not None and y.shape != X.shape[:1]:
        raise BadFile(path, f"holds labels ({short(label)}) of shape {y.shape} for objects of shape {X.shape}")
    if not (X.dtype.kind in "UST" and X.ndim == 1) and (X.dtype.kind not in "fiub" or X.ndim not in (2, 3)):
        raise BadFile(path, f"expected rows of numbers or text, found {X.dtype} of shape {X.shape}", at=short(wanted))
    return _of_array(path, X, y, reading)


def _of_array(path: Path, X: npt.NDArray, y: npt.NDArray | None, reading: Reading) -> Objects:
    """Return the rows of an array of texts or numbers as objects; leave out, or refuse, rows with NaN or infinity."""
    _check_axes(path, X, reading)
    series = X.ndim == 3 or reading.kind == "series"
    kind = "strings" if X.ndim == 1 else "series" if series else "vectors"
    skips, good = reading.skips(), np.ones(len(X), np.bool_)
    if kind == "vectors":
        good = np.isfinite(X).all(axis=1)
    elif kind == "series" and skips is not None:  # otherwise, `as_series` refuses them
        good = _finite_series(X, reading.axes)
    for row in np.flatnonzero(~good).tolist():
        leave_out(path, skips, "it holds NaN or infinity", row, remedy=f"impute it or {LEAVE}")
    if not good.any():
        raise BadFile(path, "holds no valid row")
    if not good.all():
        X, y = X[good], None if y is None else y[good]
    objects = X if kind == "vectors" else as_strings(X) if kind == "strings" else _series(path, X, reading)
    rows = np.flatnonzero(good)
    return Objects(str(path), kind, objects, y, None if skips is None else rows.tolist(), None, skips, rows=rows)


def _finite_series(X: npt.NDArray, axes: str | None) -> npt.NDArray[np.bool_]:
    """Return whether each series of an array has time points and, but for the padding at its end, finite numbers."""
    X = X[:, :, None] if X.ndim == 2 else X.swapaxes(1, 2) if axes == "channel, time" else X
    present = ~np.isnan(X).all(axis=2)
    inside = np.logical_or.accumulate(present[:, ::-1], axis=1)[:, ::-1]
    return inside.any(axis=1) & (np.isfinite(X).all(axis=2) | ~inside).all(axis=1)


def _check_axes(path: Path, X: npt.NDArray, reading: Reading) -> None:
    """Raise if an array is 3-D and no option says in which order its axes are."""
    if X.ndim == 3 and reading.axes is None:
        found = f"holds an array of shape {X.shape}; add axes='time, channel' or axes='channel, time' (--axes)"
        raise BadFile(path, found)


def _series(path: Path, X: npt.NDArray, reading: Reading) -> SeriesBatch:
    _check_axes(path, X, reading)
    try:
        return as_series(X, axes=reading.axes)
    except DataError as error:
        row = getattr(error, "index", None)
        raise error.changed(path=str(path), at="" if row is None else place_of(row)) from None


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
    names: list[str] = []  # of the channels, as in the first table
    for i, file in enumerate(files):
        try:
            arrays.append(_points(file, one, names))
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


def _points(path: Path, reading: Reading, names: list[str]) -> npt.NDArray:
    """Read the file of one series as an array, shape (length, n_channels).

    Columns that have the `names` of those of the first table are put into its order; the first table fills `names`.
    """
    if ending_of(path) == ".npy":
        points = array_of(path)
        return _checked(path, points[:, None] if points.ndim == 1 else points)
    if ending_of(path) == ".txt" and reading.sep is None:
        lines = [text.split() for part in line_records(path, encoding=reading.encoding) for text in part.columns[0]]
        try:
            points = np.array([list(map(to_float, cells)) for cells in lines])
        except ValueError:
            raise BadFile(path, "is not a table of numbers separated by spaces") from None
        return _checked(path, points)
    stream = ObjectStream(path, reading, *AT_ONCE, "vectors")
    chunks = list(stream.chunks())
    if chunks and chunks[0].labels is not None and reading.values is None:
        found = "has a column 'label', but the labels of series in a folder are the names of its subfolders"
        raise BadFile(path, f"{found}; name the columns that are channels (values= or --values)")
    names[:] = names or stream.columns
    order = [stream.columns.index(name) for name in names] if sorted(names) == sorted(stream.columns) else slice(None)
    return np.asarray(concatenate([chunk.objects for chunk in chunks]))[:, order]


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
            point = point_note(times[i], reading.decimal) if what == "number" else ""
            why = f"the time {short(times[i])} is not a {what}{point}"
        elif not finite[i].all():
            j = int(finite[i].argmin())
            cell, point = values[j][i], point_note(values[j][i], reading.decimal)
            why = f"column {short(header[choice[j]])} holds {short(cell)}, expected a finite number{point}"
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
    told = "; ".join(filter(None, (_shorter(ids, stamps, good), _uneven(ids, stamps)))) or None
    return Objects(str(path), "series", series, y, [str(one) for one in found.tolist()], told, skips, first_lines,
                   columns=[header[j] for j in choice])  # fmt: skip


def _shorter(ids: list[Any], stamps: list[Any], good: list[int]) -> str | None:
    """Return a sentence about the series of which only some rows are in `good`, or None if there are none.

    Two rows of a series with the same time count as one point.
    """
    kept = Counter(ids[i] for i in good)
    points = dict.fromkeys(
        (one, stamp is None, i if stamp is None else stamp)
        for i, (one, stamp) in enumerate(zip(ids, stamps, strict=True)) if not _is_missing(one)
    )  # fmt: skip
    there = Counter(one for one, *_ in points)
    lost = [f"{short(one)} has {kept[one]} of {counted(n, 'point')}" for one, n in there.items() if kept[one] < n]
    if not lost:
        return None
    more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
    return f"left-out rows make {len(lost)} series shorter, and leave no gaps: {', '.join(lost[:_NAMED])}{more}"


def _uneven(ids: list[Any], stamps: list[Any]) -> str | None:
    """Return a sentence about series with a step of time far above their median step, or None if there are none."""
    times: dict[Any, set[Any]] = {}
    for one, stamp in zip(ids, stamps, strict=True):
        if stamp is not None and not _is_missing(one):
            times.setdefault(one, set()).add(stamp)
    ratios = {one: _largest_step(sorted(map(_subtractable, own))) for one, own in times.items()}
    uneven = sum(ratio > _UNEVEN for ratio in ratios.values())
    if not uneven:
        return None
    worst = max(ratios, key=lambda one: ratios[one])
    found = f"times of {uneven} of {len(times)} series are uneven (the largest step of {short(worst)} is "
    return f"{found}{ratios[worst]:.3g} times its median step), but only the order of times counts"


def _subtractable(stamp: Any) -> Any:
    """Return a time of day as a date on which it occurs, any other time unchanged."""
    return datetime.combine(datetime.min, stamp) if isinstance(stamp, time) else stamp


def _largest_step(times: list[Any]) -> float:
    """Return the largest of the steps between sorted numbers or dates, divided by their median; 1 without steps."""
    steps = sorted(b - a for a, b in pairwise(times))
    if not steps:
        return 1.0
    n = len(steps)
    return float(steps[-1] / ((steps[(n - 1) // 2] + steps[n // 2]) / 2))


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
    return value is None or value != value or (isinstance(value, str) and not value.strip())


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
        If the file is truncated or not a ``.ts`` file; if a value is missing (``?``, NaN); if values have time stamps;
        or if the data contradict the header. The message names the line.

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
    opener: Any = gzip.open if present(path).suffix.lower() == ".gz" else open
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
        values = np.array(list(map(to_float, words)))
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
