"""Addresses, checksums and expected contents of the data sets that `similia.datasets.fetch` can get.

Checksums are those of the files inside an archive, so a re-packed archive passes. For every data set, the numbers of
nodes and arcs (directed edges) and the class sizes are also checked. Files whose published bytes are unknown (the
edges of DD, all of REDDIT-BINARY) have no checksum, so only these counts are checked.
"""

from __future__ import annotations

import tomllib
import zipfile
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from similia.core.errors import BadFile


@dataclass(frozen=True)
class Entry:
    """One downloadable data set: its address, description and expected contents."""

    kind: str  # "graphs" or "strings"; also the name of its folder below SIMILIA_DATA
    description: str
    classes: dict[Any, int]  # number of objects with each label
    url: str | None = None
    n_nodes: int | None = None
    n_arcs: int | None = None  # directed edges, after merging repeated lines
    sha256: dict[str, str] = field(default_factory=dict)  # of files inside the archive, by name
    file: str | None = None  # name of the file without ending, if it is not the name of the set


@dataclass(frozen=True)
class Archive:
    """A data set that is only read from the folder ``SIMILIA_DATA``: its description and expected contents."""

    kind: str  # "series", "sets" or "vectors"; also the name of its folder below SIMILIA_DATA
    description: str
    n: int
    n_classes: int
    n_values: int  # total number of time points (series), points (sets) or vectors
    target: str = "y"
    file: str | None = None  # name of the file without ending, if it is not the name of the set


def _entry(table: dict[str, Any]) -> Entry:
    """Convert a table of the TOML file to an `Entry`; labels of graphs become integers, which TOML keys cannot be."""
    if table["kind"] == "graphs":
        table["classes"] = {int(label): n for label, n in table["classes"].items()}
    return Entry(**table)


_SETS = tomllib.loads(files("similia.datasets").joinpath("data", "registry.toml").read_text(encoding="utf-8"))
BUNDLED = {name: table["description"] for name, table in _SETS["bundled"].items()}
REGISTRY = {name: _entry(table) for name, table in _SETS["downloads"].items()}
ARCHIVES = {name: Archive(**table) for name, table in _SETS["archives"].items()}


def load_archive(path: Path, archive: Archive) -> dict[str, Any]:
    """Return a dict of ``data``, ``target`` and other columns of a file; raise ValueError for unexpected contents.

    Points stored as bytes (SIFT descriptors) become float32. In a column ``split``, 0 means training and 1 test.
    """
    from similia.objects import SeriesBatch, SetBatch

    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            columns = {name: file[name] for name in file.files}
        values = columns.pop("x") if archive.kind == "vectors" else columns.pop("values")
        target = columns.pop(archive.target)
        target = target.astype(np.int64) if target.dtype.kind in "iu" else target
        lengths = None if archive.kind == "vectors" else columns.pop("lengths")
    except (zipfile.BadZipFile, OSError, EOFError, KeyError, ValueError) as error:
        raise BadFile(path, f"is damaged or of another kind: {error}") from error
    found = (len(target), len(np.unique(target)), len(values))
    if found != (archive.n, archive.n_classes, archive.n_values) or (lengths is not None and lengths.sum() != found[2]):
        raise BadFile(
            path,
            f"holds {found[0]} objects of {found[1]} classes and {found[2]} values, expected {archive.n}, "
            f"{archive.n_classes} and {archive.n_values}; it is damaged or another version",
        )
    if lengths is None:
        return {"data": values, "target": target, **columns}
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    batch = (SeriesBatch if archive.kind == "series" else SetBatch)(values.astype(np.float32, copy=False), offsets)
    return {"data": batch, "target": target, **{name: c for name, c in columns.items() if len(c) == archive.n}}
