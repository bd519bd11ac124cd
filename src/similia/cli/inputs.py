"""Files, folders and names to objects and labels: what ``similia fit`` and ``similia predict`` read."""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import similia as sm

_TABLES = {".csv", ".tsv", ".parquet"}
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
        Names of FASTA and FASTQ records: the first words of their headers, or where these are not distinct the headers.
    """

    source: str
    kind: str
    objects: Any
    labels: npt.NDArray | None = None
    names: list[str] | None = None


def read_objects(data: str, *, text: str, label: str | None) -> Objects:
    """Read objects and, where there are any, labels.

    Parameters
    ----------
    data : str
        Path, or name of a data set.
    text, label : str
        Columns of a table; `label` is also the field ``label=...`` of FASTA headers. None reads no labels.

    Raises
    ------
    ValueError
        If `data` is neither a file that can be read nor a known name, or a label is missing.
    """
    path = Path(data)
    if not path.exists():
        return _named(data)
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    ending = suffixes[-1] if suffixes else ""
    if ending in _TABLES:
        return _table(path, text, label)
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


def _named(name: str) -> Objects:
    if name not in sm.datasets.available():
        raise ValueError(
            f"{name} is neither a file or folder nor a data set; sets are {', '.join(sm.datasets.available())}"
        )
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
        if label is None and "has no column" in str(error) and _holds_numbers(path):
            raise ValueError(f"{path} holds numbers only; give vectors as .npy, which numpy.save writes") from None
        raise
    for i, value in enumerate(labels[0] if labels else []):
        if value is None or value == "":
            raise ValueError(f"row {i} of {path} has no {label}; fill it in or leave the row out")
    return Objects(str(path), "strings", sm.objects.as_strings(strings), np.asarray(labels[0]) if labels else None)


def _holds_numbers(path: Path) -> bool:
    """Return whether the first rows of a text table, after one with names, are numbers."""
    if ".parquet" in path.suffixes:
        return False
    opener: Any = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8-sig") as file:
        lines = [line.strip() for line in islice(file, 4)]
    try:
        return bool([float(cell) for line in (lines[1:] or lines) for cell in re.split("[,\t]", line)])
    except ValueError:
        return False


def _vectors(path: Path) -> npt.NDArray:
    """Return a memory map of the rows of a .npy file."""
    try:
        vectors = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} is not an array that numpy.save wrote ({error})") from error
    if vectors.ndim != 2 or vectors.dtype.kind not in "fiu" or len(vectors) == 0:
        found = f"{vectors.dtype} of shape {vectors.shape}"
        raise ValueError(f"{path} holds {found}, expected numbers of shape (n, n_features)")
    return np.asarray(vectors)


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
                f"record {i} of {path} has no {label}=... in its header ({name!r}); "
                "write the label there, or use a table with a label column"
            )
        labels.append(found[1])
    return Objects(str(path), "strings", strings, np.array(labels), short)
