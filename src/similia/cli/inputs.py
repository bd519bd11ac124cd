"""Files, folders and names to objects and labels, read whole or, where files may be long, as streams."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import similia as sm
from similia.cli.voice import note
from similia.core.text import did_you_mean
from similia.core.threads import n_threads
from similia.scale.stream import bounds
from similia.scale.workers import import_dask
from similia.sources import Objects
from similia.sources.files import read_with
from similia.sources.reading import Reading, ending_of
from similia.sources.streams import STREAMED, Chunk, ObjectStream, is_table, meaningless, unknown_ending

_BLOCK = 10_000
_WHOLE = {".ts", ".npz", ".zip"}  # endings of files that are read as a whole


def read_objects(data: str, *, labelled: bool = True, **table: Any) -> Objects:
    """Read objects and, where there are any, labels; say what was chosen and what was left out.

    Parameters
    ----------
    data : str
        Path, or name of a data set.
    labelled : bool
        Whether labels are used, so that a missing one is an error.
    **table
        How a file is read; see `similia.sources.read_objects`.

    Raises
    ------
    ModuleNotFoundError
        If molecules are read and RDKit is not installed.
    ValueError
        If `data` is neither a file that can be read nor a known name, or as `similia.sources.read_objects`.
    """
    reading, path = Reading(**table), Path(data)
    if not path.exists():
        return _named(data, reading)
    _check_ending(path, reading)
    found = read_with(path, reading, labelled)
    if found.told:
        note(f"note: {data}: {found.told}")
    if found.kind == "strings" and is_table(path, reading):
        empty = _empty(found.objects)
        _note_empty(data, len(empty), _place(found.lines, empty, 0))
    note_skipped(data, found.skips)
    return found


def read_labelled(data: str, **table: Any) -> Objects:
    """Read objects and labels, or raise if there are no labels, or if rows are time points and nothing says so."""
    found = read_objects(data, **table)
    if found.kind in ("vectors", "series") and has_columns(data, **table) and not table.get("time"):
        names = [name for name in found.names or [] if name]
        if len(set(names)) < len(names):
            raise ValueError(
                f"{data}: names in {table['names']!r} repeat; add --time COLUMN if each row is a time point of the "
                "series that it names, else drop --id"
            )
    if found.labels is None:
        if found.kind == "vectors" and ending_of(Path(data)) == ".npy":
            raise ValueError(f"{data} holds vectors without labels; numpy.savez('both.npz', X=X, y=y) writes both")
        raise ValueError(f"{data} has no labels; --label names the column (or the field of FASTA headers) with them")
    return found


class Told:
    """A stream that says what is empty and what was left out, once, when it was read to its end."""

    def __init__(self, stream: ObjectStream, tells_empty: bool) -> None:
        self.source, self.kind, self.n, self.size = stream.source, stream.kind, stream.n, stream.size
        self.called, self.columns = stream.called, stream.columns
        self._stream, self._said, self._tells_empty = stream, False, tells_empty
        self.fingerprint, self.reading = stream.fingerprint, stream.reading

    def chunks(self, start: int = 0, mark: str | None = None) -> Iterator[Chunk]:
        """Yield the objects from number `start` on."""
        count, first = 0, ""
        with closing(self._stream.chunks(start, mark)) as chunks:  # type: ignore[type-var]
            for chunk in chunks:
                rows = _empty(chunk.objects) if self._tells_empty else np.zeros(0, np.intp)
                if len(rows) and not count:
                    first = _place(chunk.lines, rows, chunk.start)
                count += len(rows)
                yield chunk
        if not self._said:
            _note_empty(self.source, count, first)
            note_skipped(self.source, self._stream.skips)
            self._said = True


def _empty(strings: Any) -> npt.NDArray[np.intp]:
    return np.flatnonzero(np.diff(strings.offsets) == 0)


def _place(lines: Any, rows: Any, start: int) -> str:
    """Return where the first of some rows is, for a sentence."""
    if not len(rows):
        return ""
    return f"row {start + int(rows[0])} (from 0)" if lines is None else f"line {lines[rows[0]]}"


def _note_empty(source: str, count: int, first: str) -> None:
    """Say that strings are empty, if any are: they are compared as such, and may be what was never filled in."""
    if count:
        rows = "1 row" if count == 1 else f"{count} rows"
        have = "has an empty sequence" if count == 1 else "have empty sequences"
        note(f"note: {rows} of {source} {have}, e.g. {first}")


def note_skipped(source: str, skips: Any) -> None:
    """Say how many rows were left out, and where they are listed."""
    if skips is not None and skips.first is not None:
        line, why = skips.first
        rows = "1 row was" if skips.n == 1 else f"{skips.n} rows were"
        listed = "(--skipped FILE lists all)" if skips.path is None else f"and listed in {skips.path}"
        note(f"note: {rows} left out of {source} {listed}; the first, in line {line}: {why}")


def has_columns(data: str, **table: Any) -> bool:
    """Return whether `data` is a table, by its ending or because it is said what separates its cells."""
    return is_table(Path(data), Reading(**table))


class Collection:
    """Objects that are in memory as a stream: data sets by name, TUDataset folders, files of series."""

    size = None

    def __init__(self, read: Objects, chunk: int) -> None:
        self.columns: list[str] = []
        self.source, self.kind, self.n, self.called = read.source, read.kind, len(read.objects), read.called
        self.objects, self._read, self._chunk = read.objects, read, chunk

    def chunks(self, start: int = 0, mark: str | None = None) -> Iterator[Chunk]:
        """Yield the objects from number `start` on."""
        for first in range(start, self.n, self._chunk):
            stop = min(self.n, first + self._chunk)
            names = None if self._read.names is None else self._read.names[first:stop]
            lines = None if self._read.lines is None else self._read.lines[first:stop]
            objects = sm.objects.take(self._read.objects, np.arange(first, stop))
            yield Chunk(objects, names, first, stop, "", 0, lines=lines)

    def fingerprint(self) -> str:
        """Return a digest of the objects."""
        objects, digest = self._read.objects, hashlib.blake2b(f"{self.kind}".encode(), digest_size=16)
        arrays = [objects] if isinstance(objects, np.ndarray) else [getattr(objects, f.name) for f in fields(objects)]
        for array in map(np.atleast_1d, arrays):  # flags and what is None as arrays of one
            digest.update(f"{array.dtype} {array.shape}".encode())
            for start in range(0, len(array), _BLOCK):
                block = array[start : start + _BLOCK]
                digest.update(str(block).encode() if block.dtype == object else np.ascontiguousarray(block).tobytes())
        return digest.hexdigest()


def open_objects(data: str, *, chunk: int, workers: Any = None, **table: Any) -> ObjectStream:
    """Open objects as a stream whose chunks fit into memory; its first object is looked at.

    Raises
    ------
    ValueError
        As `read_objects`, for what the first rows of a file show.
    """
    path, reading = Path(data), Reading(**table)
    streamed = ending_of(path) in STREAMED or is_table(path, reading)
    if not path.is_file() or not streamed or reading.time is not None or reading.axes is not None:
        return Collection(read_objects(data, labelled=False, **table), chunk)  # type: ignore[return-value]
    if ending_of(path) == ".npy" and reading.series:
        return Collection(read_objects(data, labelled=False, **table), chunk)  # type: ignore[return-value]
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty")
    limits: dict[str, Any] = bounds(chunk, workers)
    first_of(ObjectStream(path, reading, 1, limits["max_bytes"]))
    stream = ObjectStream(path, reading, **limits)
    stream.source = data
    if stream.told:
        note(f"note: {data}: {stream.told}")
    return Told(stream, stream.kind == "strings" and is_table(path, reading))  # type: ignore[return-value]


def first_of(stream: ObjectStream) -> Any:
    """Return a collection of the first object of a file."""
    with closing(stream.chunks()) as chunks:  # type: ignore[type-var]
        return sm.objects.take(next(chunks).objects, [0])


def parse_workers(cluster: str | None, scheduler: str | None) -> Any:
    """Return what ``--cluster local[:N]`` or ``--scheduler ADDRESS`` ask for, as `similia.scale.stream` takes it."""
    if cluster is not None and scheduler is not None:
        raise ValueError("--cluster and --scheduler exclude each other: the first starts workers, the second has some")
    if cluster is not None or scheduler is not None:
        import_dask()
    if cluster is None:
        return scheduler
    found = re.fullmatch(r"local(?::([1-9][0-9]*))?", cluster)
    if found is None:
        raise ValueError(f"--cluster must be local or local:N, such as local:4, got {cluster}; others by --scheduler")
    return int(found[1]) if found[1] else n_threads()


def _check_ending(path: Path, reading: Reading) -> None:
    """Raise if nothing reads such a file."""
    if path.is_dir() or is_table(path, reading) or ending_of(path) in STREAMED | _WHOLE:
        return
    raise ValueError(unknown_ending(path, _WHOLE))


def _named(name: str, reading: Reading) -> Objects:
    """Return a data set by its name."""
    if name not in sm.datasets.available():
        known = sm.datasets.available()
        beside = [str(path) for path in Path(name).parent.iterdir()] if Path(name).parent.is_dir() else []
        meant = did_you_mean(name, [*known, *beside])
        raise ValueError(f"{name} is neither a file or folder nor a data set{meant}; sets are {', '.join(known)}")
    for option in reading.is_set("text", "smiles", "values", "names", "series", "time", "axes", "sep"):
        raise ValueError(meaningless(name, option, ""))
    bunch = sm.datasets.fetch(name)
    kinds = {sm.objects.GraphBatch: "graphs", sm.objects.SeriesBatch: "series", sm.objects.SetBatch: "sets"}
    if type(bunch.data) in kinds:
        return Objects(name, kinds[type(bunch.data)], bunch.data, np.asarray(bunch.target))
    if isinstance(bunch.data, np.ndarray):
        return Objects(name, "vectors", bunch.data.reshape(len(bunch.data), -1), np.asarray(bunch.target))
    return Objects(name, "strings", sm.objects.as_strings(bunch.data), np.asarray(bunch.target))
