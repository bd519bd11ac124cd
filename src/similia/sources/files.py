"""Read whole files of any kind as objects, labels and names, and open files of any kind as a `Source`."""

from __future__ import annotations

import os
import re
import zipfile
import zlib
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.config import rows_per_block, settings
from similia.core.errors import BadFile, DataError
from similia.core.text import short
from similia.core.validation import as_path, rows_in_blocks
from similia.objects.sequences import as_strings, concatenate, take
from similia.objects.series import SeriesBatch, as_series
from similia.objects.tudataset import read_tudataset
from similia.sources.series_files import AT_ONCE, array_of, long_table, read_ts, series_folder
from similia.sources.source import (
    FILL,
    LEAVE,
    MISSING,
    Chunk,
    Held,
    Objects,
    Reading,
    Source,
    ending_of,
    leave_out,
    looks_numeric,
    missing_among,
    typed,
)
from similia.sources.streams import FASTA, FASTQ, STREAMED, ObjectStream, is_table, meaningless, unknown_ending
from similia.sources.text import BOMB, fasta_records, fastq_records, narrow, refuse_bomb, refuse_bombs

_ARRAYS, _TARGETS = ("X", "x", "data"), ("y", "label", "labels", "target")  # usual names of arrays in .npz


def read_objects(path: str | os.PathLike[str], **options: Any) -> Objects:
    r"""Read a whole file or folder: objects, labels and names.

    Parameters
    ----------
    path : path
        One of

        - a file that `open_stream` reads, or a ``.ts`` file;
        - an ``.npz`` file: the objects are in the array ``X``, ``x`` or ``data``, or in the only array that does not
          hold the labels; the labels, if any, are in ``y``, ``label``, ``labels`` or ``target``;
        - a folder or zip in the TUDataset format;
        - a folder with one file (``.csv``, ``.tsv``, ``.parquet``, ``.npy``, ``.txt``) per series, whose rows are time
          points and whose columns are channels. If all files are in subfolders, the names of the subfolders are the
          labels.
    **options
        Options for reading, such as ``label="species"``: the parameters of `Reading`.

    Returns
    -------
    Objects
        Objects, labels and names. Labels stored as text (or as decimals of Parquet) become int64 or float64 if all are
        numbers, otherwise str. A text with leading zeros, such as 007, is not a number, and integers stay str if one of
        them does not fit into int64. Other labels of a binary file keep their type.

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
    place = as_path(path)
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


_WHOLE = {".ts", ".npz", ".zip"}  # endings of files that are read as a whole


def open_objects(
    source: Any, reading: Reading | None = None, *, chunk: int = 10_000, max_bytes: int = 2**26, kind: str | None = None
) -> Source:
    """Open a file, a folder, an iterable or a Dask collection to be read in chunks of objects.

    Folders, and files such as ``.ts`` and ``.npz`` that `read_objects` reads but `open_stream` does not, are first read
    into memory as a whole.

    Parameters
    ----------
    source : path, iterable, Dask collection or Source
        A `Source` is returned unchanged.
    reading : Reading, optional
        Options for reading a file; not allowed if `source` is a `Source` or a Dask collection.
    chunk, max_bytes : int
        Maximum number of objects and approximate number of bytes per chunk; see `open_stream`.
    kind : {"series", "sets", "vectors"}, optional
        What each array of an iterable is: a time series (the default), a set of points or a vector.

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
    reading = Reading() if reading is None else reading
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
    if y.dtype == object or y.dtype.kind in "UT":
        y = _as_numbers(y, reading.decimal)
    missing = missing_among(y.tolist())
    kept = np.setdiff1d(np.arange(len(y)), missing)
    skips = found.skips
    name = short(reading.label if reading.label is not None else "label")
    why = f"the label (column {name}) is missing"
    for i in missing:
        row = i if found.rows is None or found.lines is not None else int(found.rows[i])  # binary files have no lines
        leave_out(found.source, skips, why, row, found.lines, FILL)
    if len(kept) == 0:
        raise BadFile(found.source, f"has no label in column {name}")
    if len(kept) < len(y):
        skips.sort()
        y = y[kept]
        names = None if found.names is None else [found.names[i] for i in kept.tolist()]
        lines, rows = (None if a is None else a[kept] for a in (found.lines, found.rows))
        found = replace(found, objects=take(found.objects, kept), names=names, lines=lines, rows=rows)
    if y.dtype == object:
        y = np.asarray(_without_decimals(y.tolist()))
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
    """Return labels with "." as decimal mark and "" for missing ones if all are texts of numbers; else return `y`."""
    cells = y.tolist()
    if not all(isinstance(cell, str) for cell in cells) or not looks_numeric(cells, decimal):
        return y
    return np.array(["" if cell.strip().lower() in MISSING else cell.replace(decimal, ".") for cell in cells])


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
    found = [re.search(rf"\b{re.escape(field)}=(\S+)", name) for name in headers]
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
    try:
        with zipfile.ZipFile(path) as packed:
            size = sum(info.file_size for info in packed.infolist())
        if size > max(settings().max_memory, BOMB * path.stat().st_size):
            raise ValueError("it unpacks to more than max_memory, like a decompression bomb")
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        if any(not isinstance(array, np.ndarray) for array in arrays.values()):
            raise ValueError("it holds other files")
    except (ValueError, OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise BadFile(
            path,
            f"is not an archive of plain arrays that numpy.savez wrote ({short(error, 100)}); pad series of "
            "several lengths with NaN at their ends",
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
        raise error.changed(path=str(path)) from None
