"""Files, folders and names to objects and labels, read whole or, where files may be long, as streams."""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, fields, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import similia as sm
from similia._nearest import did_you_mean
from similia._threads import n_threads
from similia.cli.options import SmilesColumn
from similia.cli.voice import note
from similia.objects._sequences import _short
from similia.objects.streams import Chunk, ObjectStream, open_stream
from similia.scale._workers import import_dask
from similia.scale.stream import bounds

_TABLES = {".csv", ".tsv", ".parquet"}
_BLOCK = 10_000
_PER_LETTER = 2**6  # bytes of a molecule for each letter of its SMILES: an atom, a bond in both directions
_SEQUENCES = {".fa", ".fasta", ".fna", ".faa", ".fq", ".fastq"}


@dataclass(frozen=True)
class Objects:
    """What was read.

    Attributes
    ----------
    source : str
        As the user wrote it.
    kind : {"strings", "graphs", "series", "sets", "vectors"}
    objects : StringBatch, GraphBatch, SeriesBatch, SetBatch or ndarray
    labels : ndarray, shape (n,), optional
    names : list of str, optional
        Names of FASTA and FASTQ records: the first words of their headers, or where these are not distinct the headers;
        of rows of a table, those in the column that was asked for.
    """

    source: str
    kind: str
    objects: Any
    labels: npt.NDArray | None = None
    names: list[str] | None = None


def read_objects(data: str, *, text: str, label: str | None, names: str | None = None) -> Objects:
    """Read objects and, where there are any, labels.

    Parameters
    ----------
    data : str
        Path, or name of a data set.
    text, label : str
        Columns of a table, `text` as `options.column` returns it; `label` is also the field ``label=...`` of FASTA
        headers. None reads no labels.
    names : str, optional
        Column of a table that names the objects.

    Raises
    ------
    ModuleNotFoundError
        If `text` names SMILES and RDKit is not installed.
    ValueError
        If `data` is neither a file that can be read nor a known name, a label is missing, or `names` is given and there
        are no columns.
    """
    path = Path(data)
    _check_smiles(path, text)
    _check_names(data, names)
    if not path.exists():
        return _named(data)
    ending = _ending(path)
    if ending in _TABLES:
        found = _table(path, text, label)
        return found if names is None else replace(found, names=_names(path, text, names))
    if ending in _SEQUENCES:
        return _sequences(path, label, ending in (".fq", ".fastq"))
    if path.is_dir() or ending == ".zip":
        graphs, target = sm.objects.read_tudataset(path)
        return Objects(data, "graphs", graphs, target)
    if ending == ".ts":
        return Objects(data, "series", *sm.objects.read_ts(path))
    if ending == ".npy":
        return Objects(data, "vectors", _vectors(path))
    raise ValueError(
        f"{path} has an unknown ending; similia reads {', '.join(sorted(_TABLES | _SEQUENCES | {'.ts', '.npy'}))}, "
        "and folders or zips of the TUDataset format"
    )


class Molecules:
    """A stream of SMILES as one of graphs: a chunk of texts is read by RDKit when it comes."""

    kind = "graphs"

    def __init__(self, texts: ObjectStream) -> None:
        self.source, self.n, self.size, self._texts = texts.source, texts.n, texts.size, texts

    def fingerprint(self) -> str:
        """Return another digest than that of the same column as strings."""
        return hashlib.sha256(f"molecules {self._texts.fingerprint()}".encode()).hexdigest()

    def chunks(self, start: int = 0, mark: str | None = None) -> Iterator[Chunk]:
        """Yield the molecules from number `start` on."""
        with closing(self._texts.chunks(start, mark)) as chunks:  # type: ignore[type-var]
            for chunk in chunks:
                yield replace(chunk, objects=_molecules(chunk.objects, self.source, chunk.start))


class Texts:
    """A stream of strings of a table that says how many are empty, once, when it was read to its end."""

    kind = "strings"

    def __init__(self, texts: ObjectStream) -> None:
        self.source, self.n, self.size, self._texts, self._said = texts.source, texts.n, texts.size, texts, False
        self.fingerprint = texts.fingerprint

    def chunks(self, start: int = 0, mark: str | None = None) -> Iterator[Chunk]:
        """Yield the strings from number `start` on."""
        count, first = 0, -1
        with closing(self._texts.chunks(start, mark)) as chunks:  # type: ignore[type-var]
            for chunk in chunks:
                rows = _empty(chunk.objects)
                if len(rows) and not count:
                    first = chunk.start + int(rows[0])
                count += len(rows)
                yield chunk
        if not self._said:
            _note_empty(self.source, count, first)
            self._said = True


def _empty(strings: Any) -> npt.NDArray[np.intp]:
    return np.flatnonzero(np.diff(strings.offsets) == 0)


def _note_empty(source: str, count: int, first: int) -> None:
    """Say that strings are empty, if any are: they are compared as such, and may be what was never filled in."""
    if count:
        rows = "1 row" if count == 1 else f"{count} rows"
        have = "has an empty sequence" if count == 1 else "have empty sequences"
        note(f"note: {rows} of {source} {have}, e.g. row {first} (from 0)")


def _molecules(texts: Any, source: str, start: int = 0) -> Any:
    """Return SMILES as graphs; the first is in row `start`."""
    from similia.objects.molecules import read_smiles

    texts = sm.objects.as_strings(texts)
    empty = _empty(texts)
    if len(empty):
        raise ValueError(f"row {start + empty[0]} (from 0) of {source} has no SMILES; fill it in or leave the row out")
    return read_smiles(texts, place=lambda i: f"row {start + i} (from 0) of {source} holds")


def _check_smiles(path: Path, text: str) -> None:
    """Raise at once if the column holds SMILES that nothing reads, or that the data do not have."""
    if not isinstance(text, SmilesColumn):
        return
    if _ending(path) not in _TABLES or not path.is_file():
        raise ValueError(f"--smiles names a column of a CSV, TSV or Parquet file, which {path} is not")
    from similia.objects.molecules import import_rdkit

    import_rdkit()


def is_table(data: str) -> bool:
    """Return whether `data` is a file whose columns could name its objects."""
    return _ending(Path(data)) in _TABLES


def _check_names(data: str, names: str | None) -> None:
    """Raise if a column is to name the objects of data that have no columns."""
    ending = _ending(Path(data))
    if names is not None and ending not in _TABLES:
        has = (
            "names of its records, which are taken"
            if ending in _SEQUENCES
            else "no columns that could name its objects"
        )
        raise ValueError(f"--id is for CSV, TSV and Parquet; {data} has {has}; drop --id")


def _names(path: Path, text: str, names: str) -> list[str]:
    """Return a column of a table as text."""
    try:
        return [name for chunk in open_stream(path, text=text, names=names).chunks() for name in chunk.names or ()]
    except ValueError as error:
        raise _no_column(error, path, text, names) from None


class Collection:
    """Objects that are in memory as a stream: data sets by name, TUDataset folders, files of series."""

    size = None

    def __init__(self, read: Objects, chunk: int) -> None:
        self.source, self.kind, self.n = read.source, read.kind, len(read.objects)
        self._read, self._chunk = read, chunk

    def chunks(self, start: int = 0, mark: str | None = None) -> Iterator[Chunk]:
        """Yield the objects from number `start` on."""
        for first in range(start, self.n, self._chunk):
            stop = min(self.n, first + self._chunk)
            names = None if self._read.names is None else self._read.names[first:stop]
            yield Chunk(sm.objects.take(self._read.objects, np.arange(first, stop)), names, first, stop, "", 0)

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


def open_objects(
    data: str, *, text: str, chunk: int, workers: Any = None, names: str | None = None
) -> ObjectStream:  # fmt: skip
    """Open objects as a stream whose chunks fit into memory; its first object is looked at.

    `names` is the column of a table that names them.

    Raises
    ------
    ValueError
        As `read_objects`, for what the first rows of a file show.
    """
    path = Path(data)
    _check_smiles(path, text)
    _check_names(data, names)
    if not path.is_file() or _ending(path) not in _TABLES | _SEQUENCES | {".npy"}:
        return Collection(read_objects(data, text=text, label=None), chunk)  # type: ignore[return-value]
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty")
    try:
        first_of(open_stream(path, text=text, names=names, chunk=1))
    except ValueError as error:
        raise _no_column(error, path, text, names) from None
    limits = bounds(chunk, workers)
    if not isinstance(text, SmilesColumn):
        stream = open_stream(path, text=text, names=names, **limits)
        return Texts(stream) if _ending(path) in _TABLES else stream  # type: ignore[return-value]
    limits["max_bytes"] = max(1, limits["max_bytes"] // _PER_LETTER)
    return Molecules(open_stream(path, text=text, names=names, **limits))  # type: ignore[return-value]


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


def _ending(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    return suffixes[-1] if suffixes else ""


def _named(name: str) -> Objects:
    if name not in sm.datasets.available():
        known = sm.datasets.available()
        beside = [str(path) for path in Path(name).parent.iterdir()] if Path(name).parent.is_dir() else []
        meant = did_you_mean(name, [*known, *beside])
        raise ValueError(f"{name} is neither a file or folder nor a data set{meant}; sets are {', '.join(known)}")
    bunch = sm.datasets.fetch(name)
    kinds = {sm.objects.GraphBatch: "graphs", sm.objects.SeriesBatch: "series", sm.objects.SetBatch: "sets"}
    if type(bunch.data) in kinds:
        return Objects(name, kinds[type(bunch.data)], bunch.data, np.asarray(bunch.target))
    if isinstance(bunch.data, np.ndarray):
        return Objects(name, "vectors", bunch.data.reshape(len(bunch.data), -1), np.asarray(bunch.target))
    return Objects(name, "strings", sm.objects.as_strings(bunch.data), np.asarray(bunch.target))


def _table(path: Path, text: str, label: str | None) -> Objects:
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty")
    try:
        strings, *labels = sm.objects.read_columns(path, *([text] if label is None else [text, label]))
    except ValueError as error:
        raise _no_column(error, path, text) from None
    for i, value in enumerate(labels[0] if labels else []):
        if value is None or value == "":
            raise ValueError(f"row {i} of {path} has no {label}; fill it in or leave the row out")
    target = np.asarray(labels[0]) if labels else None
    if isinstance(text, SmilesColumn):
        return Objects(str(path), "graphs", _molecules(strings, str(path)), target)
    batch = sm.objects.as_strings(strings)
    empty = _empty(batch)
    _note_empty(str(path), len(empty), int(empty[0]) if len(empty) else -1)
    return Objects(str(path), "strings", batch, target)


def _no_column(error: ValueError, path: Path, text: str, names: str | None = None) -> ValueError:
    """Return a sentence that leads on: for a table of vectors, which has no column of strings, or of other columns."""
    if "has no column" not in str(error):
        return error
    other = _other_separator(path)
    if other is not None:
        return ValueError(f"{path} is separated by {other}")
    if names is not None and f"has no column {_short(names)}" in str(error):
        return error
    if _holds_numbers(path):
        return ValueError(f"{path} holds numbers only; give vectors as .npy, which numpy.save writes")
    option, what = ("--smiles", "SMILES") if isinstance(text, SmilesColumn) else ("--text", "strings")
    return ValueError(f"{error}; {option} names the one with the {what}, and --label that with the labels")


def _first_lines(path: Path) -> list[str]:
    """Return the first lines of a text table, or raise a ValueError if they are no text."""
    opener: Any = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8-sig") as file:
        return [line.strip("\r\n") for line in islice(file, 4)]


def _other_separator(path: Path) -> str | None:
    """Return what separates the cells of a table whose name says another thing, and what to do; or None."""
    ending = _ending(path)
    if ending == ".parquet":
        return None
    try:
        header = (_first_lines(path) or [""])[0]
    except ValueError:
        return None
    if ("," if ending == ".csv" else "\t") in header:
        return None
    if ending == ".csv" and "\t" in header:
        return "tabs, not commas; name it .tsv"
    if ending == ".tsv" and "," in header:
        return "commas, not tabs; name it .csv"
    if ";" in header:
        how = "pandas.read_csv(old, sep=';').to_csv(new, index=False)"
        return f"';', not {'commas' if ending == '.csv' else 'tabs'}; write it as CSV with commas, e.g. {how}"
    return None


def _holds_numbers(path: Path) -> bool:
    """Return whether the first rows of a text table, after one with names, are numbers."""
    if ".parquet" in path.suffixes:
        return False
    try:
        lines = [line.strip() for line in _first_lines(path)]
        return bool([float(cell) for line in (lines[1:] or lines) for cell in re.split("[,\t]", line)])
    except ValueError:
        return False


def _vectors(path: Path) -> npt.NDArray:
    """Return a memory map of the rows of a .npy file."""
    open_stream(path)  # which raises if the header is damaged or lies
    return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))


def _sequences(path: Path, label: str | None, fastq: bool) -> Objects:
    names, sequences, *_ = sm.objects.read_fastq(path) if fastq else sm.objects.read_fasta(path)
    strings = sm.objects.as_strings(sequences)
    first = [name.split()[0] if name.split() else "" for name in names]
    short = first if len(set(first)) == len(names) else names
    if label is None:
        return Objects(str(path), "strings", strings, None, short)
    labels = []
    for i, name in enumerate(names):
        found = re.search(rf"\b{re.escape(label)}=(\S+)", name)
        if found is None:
            raise ValueError(
                f"record {i} of {path} has no {label}=... in its header ({_short(name, 60)}); "
                "write the label there, or use a table with a label column"
            )
        labels.append(found[1])
    return Objects(str(path), "strings", strings, np.array(labels), short)
