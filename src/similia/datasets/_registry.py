"""Addresses, checksums and expected contents of the data sets of `similia.datasets.fetch`.

Checksums are those of the files inside an archive, so a re-packed archive passes. The class sizes of every data set are
also checked, and of graphs the numbers of nodes and arcs (directed edges). Files whose published bytes are unknown (the
edges of DD, all of REDDIT-BINARY) have no checksum, so only these counts are checked.
"""

from __future__ import annotations

import json
import tomllib
import zipfile
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.errors import BadFile
from similia.objects.sequences import offsets_of


@dataclass(frozen=True)
class Entry:
    """One downloadable data set: its address, description and expected contents."""

    kind: str  # "graphs" or "strings"; also the name of its folder below those of SIMILIA_DATA
    description: str
    classes: dict[Any, int]  # number of objects with each label
    url: str | None = None
    n_nodes: int | None = None
    n_arcs: int | None = None  # directed edges, after merging repeated lines
    sha256: dict[str, str] = field(default_factory=dict)  # of files inside the archive, by name
    file: str | None = None  # name of the file without ending, if it is not the name of the set

    def files(self, name: str) -> list[str]:
        """Return the path of the file of the set `name` below a folder of ``SIMILIA_DATA``."""
        return [f"{self.kind}/{self.file or name}{'.zip' if self.kind == 'graphs' else '.tsv.gz'}"]


@dataclass(frozen=True)
class Archive:
    """A data set that is only read from the folders of ``SIMILIA_DATA``: its description and expected contents."""

    kind: str  # "series", "sets", "vectors", "strings" or "molecules"; also the name of its folder, without `folder`
    description: str
    n: int
    n_classes: int  # number of distinct targets
    n_values: int  # total number of time points (series), points (sets), vectors or characters (strings, molecules)
    target: str = "y"
    file: str | None = None  # name of the file without ending, if it is not the name of the set
    folder: str | None = None  # name of the folder, if it is not the kind
    n_train: int | None = None  # strings in two files: number of those for training

    def files(self, name: str) -> list[str]:
        """Return the paths of the files of the set `name` below a folder of ``SIMILIA_DATA``."""
        text = self.kind in ("strings", "molecules")
        endings = (".train.tsv.gz", ".test.tsv.gz") if self.n_train else (".tsv.gz" if text else ".npz",)
        return [f"{self.folder or self.kind}/{self.file or name}{ending}" for ending in endings]


def _entry(table: dict[str, Any]) -> Entry:
    """Convert a table of the TOML file to an `Entry`; labels of graphs become integers, which TOML keys cannot be."""
    if table["kind"] == "graphs":
        table["classes"] = {int(label): n for label, n in table["classes"].items()}
    return Entry(**table)


_SETS = tomllib.loads(files("similia.datasets").joinpath("data", "registry.toml").read_text(encoding="utf-8"))
BUNDLED: dict[str, dict[str, str]] = _SETS["bundled"]  # for each name its "kind" and "description"
REGISTRY = {name: _entry(table) for name, table in _SETS["downloads"].items()}
ARCHIVES = {name: Archive(**table) for name, table in _SETS["archives"].items()}
FOLDS = {"NCI1": "features", "DD": "features", "ENZYMES": "features", "REDDIT-BINARY": "degree"}  # names of splits


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
    check_contents(path, archive, target, len(values))
    if lengths is None:
        return {"data": values, "target": target, **{name: c for name, c in columns.items() if c.ndim}}
    check_contents(path, archive, target, int(lengths.sum()))
    columns = {name: column for name, column in columns.items() if column.shape[:1] == (archive.n,)}
    kind = SeriesBatch if archive.kind == "series" else SetBatch
    try:
        batch = kind(values.astype(np.float32, copy=False), offsets_of(lengths))
        batch._check()
    except (TypeError, ValueError) as error:
        raise BadFile(path, f"is damaged or of another kind: {error}") from error
    if len(batch) != archive.n:
        raise BadFile(path, f"holds {len(batch)} lengths, expected {archive.n}; it is damaged or another version")
    return {"data": batch, "target": target, **columns}


def check_contents(path: Path, archive: Archive, target: npt.NDArray, n_values: int) -> None:
    """Raise unless a file holds the expected numbers of objects, distinct targets and values."""
    found = (len(target), len(np.unique(target)), n_values)
    if found != (archive.n, archive.n_classes, archive.n_values):
        raise BadFile(
            path,
            f"holds {found[0]} objects of {found[1]} classes and {found[2]} values, expected {archive.n}, "
            f"{archive.n_classes} and {archive.n_values}; it is damaged or another version",
        )


def load_folds(path: Path, variant: str, n: int) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Return (training and validation, test) indices of each fold of `n` objects in a JSON file."""
    try:
        folds = json.loads(path.read_text(encoding="utf-8"))["variants"][variant]["folds"]
        pairs = [(np.sort(fold["train"] + fold["validation"]), np.sort(fold["test"])) for fold in folds]
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise BadFile(path, f"is damaged or of another kind: {error}") from error
    for number, (train, test) in enumerate(pairs):
        if not np.array_equal(np.sort(np.concatenate([train, test])), np.arange(n)):
            raise BadFile(path, f"does not hold each of {n} objects once; it is damaged", at=f"fold {number}")
    return pairs
