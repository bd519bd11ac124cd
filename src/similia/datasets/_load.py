"""From the file of a data set to objects and labels, held against what the registry knows."""

from __future__ import annotations

import gzip
import hashlib
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from similia.datasets._registry import Entry
from similia.datasets._tsv import parse_tsv

# what the standard library raises for archives that are cut or altered
_DAMAGE = (
    zipfile.BadZipFile,
    gzip.BadGzipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    KeyError,
    UnicodeDecodeError,
)


def load(path: Path, entry: Entry, *, checksums: bool) -> tuple[Any, Any]:
    """Return ``(data, target)``, or raise ValueError if the file does not hold what it should."""
    try:
        if checksums:
            _check_sha256(path, entry)
        data, target = _graphs(path, entry) if entry.kind == "graphs" else _strings(path)
    except FileNotFoundError as error:  # a file inside the archive
        raise ValueError(str(error)) from None
    except _DAMAGE as error:
        raise ValueError(f"{path} is damaged or of another kind: {error}") from None
    labels, counts = np.unique(target, return_counts=True)
    found = dict(zip(labels.tolist(), counts.tolist(), strict=True))
    if found != entry.classes:
        raise ValueError(f"{path} holds classes {found}, expected {entry.classes}; it is damaged or another version")
    return data, target


def _check_sha256(path: Path, entry: Entry) -> None:
    """Hold the files inside an archive against their checksums."""
    with zipfile.ZipFile(path) as archive:
        members = {Path(member).name: member for member in archive.namelist()}
        for file, expected in entry.sha256.items():
            if file not in members:
                raise ValueError(f"{path} has no file {file}")
            found = hashlib.sha256(archive.read(members[file])).hexdigest()
            if found != expected:
                raise ValueError(f"{path}: {file} has sha256 {found}, expected {expected}")


def _graphs(path: Path, entry: Entry) -> tuple[Any, Any]:
    from similia.objects import read_tudataset

    graphs, y = read_tudataset(path)
    for what, found, expected in (
        ("nodes", graphs.n_nodes, entry.n_nodes),
        ("arcs", len(graphs.indices), entry.n_arcs),
    ):
        if found != expected:
            raise ValueError(f"{path} holds {found} {what}, expected {expected}; it is damaged or another version")
    return graphs, y


def _strings(path: Path) -> tuple[list[str], Any]:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            text = archive.read("SMSSpamCollection")
    else:
        text = gzip.decompress(path.read_bytes())
    labels, strings = parse_tsv(text.decode("utf-8"), str(path))
    return strings, labels
