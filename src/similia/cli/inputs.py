"""Files, folders and names to objects and labels: what ``similia fit`` and ``similia predict`` read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import similia as sm

_TABLES = {".csv", ".tsv", ".parquet"}
_SEQUENCES = {".fa", ".fasta", ".fna", ".faa", ".fq", ".fastq"}


def read_objects(data: str, *, text: str, label: str | None) -> tuple[Any, npt.NDArray | None, str]:
    """Read objects and, where there are any, labels.

    Parameters
    ----------
    data : str
        Path, or name of a data set.
    text, label : str
        Columns of a table; `label` is also the field ``label=...`` of FASTA headers. None reads no labels.

    Returns
    -------
    objects : StringBatch or GraphBatch
    labels : ndarray, shape (n,), or None
    kind : {"strings", "graphs"}

    Raises
    ------
    ValueError
        If `data` is neither a file that can be read nor a known name.
    """
    path = Path(data)
    if not path.exists():
        return _named(data)
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    kind = suffixes[-1] if suffixes else ""
    if kind in _TABLES:
        return _table(path, text, label)
    if kind in _SEQUENCES:
        return _sequences(path, label)
    if path.is_dir() or kind == ".zip":
        graphs, target = sm.objects.read_tudataset(path)
        return graphs, target, "graphs"
    raise ValueError(
        f"{path} has an unknown ending; similia reads {', '.join(sorted(_TABLES | _SEQUENCES))}, "
        "and folders or zips of the TUDataset format"
    )


def _named(name: str) -> tuple[Any, npt.NDArray, str]:
    bundled = {"promoters": sm.datasets.load_promoters, "splice": sm.datasets.load_splice}
    bunch = bundled[name]() if name in bundled else sm.datasets.fetch(name)
    graphs = isinstance(bunch.data, sm.objects.GraphBatch)
    objects = bunch.data if graphs else sm.objects.as_strings(bunch.data)
    return objects, np.asarray(bunch.target), "graphs" if graphs else "strings"


def _table(path: Path, text: str, label: str | None) -> tuple[Any, npt.NDArray | None, str]:
    strings, *labels = sm.objects.read_columns(path, *([text] if label is None else [text, label]))
    return sm.objects.as_strings(strings), np.asarray(labels[0]) if labels else None, "strings"


def _sequences(path: Path, label: str | None) -> tuple[Any, npt.NDArray | None, str]:
    fastq = ".fastq" in path.suffixes or ".fq" in path.suffixes
    names, sequences, *_ = sm.objects.read_fastq(path) if fastq else sm.objects.read_fasta(path)
    if label is None:
        return sm.objects.as_strings(sequences), None, "strings"
    found = [re.search(rf"\b{re.escape(label)}=(\S+)", name) for name in names]
    for i, match in enumerate(found):
        if match is None:
            raise ValueError(
                f"record {i} of {path} has no {label}=... in its header ({names[i]!r}); "
                "write the label there, or use a table with a label column"
            )
    labels = np.array([match[1] for match in found if match is not None])
    return sm.objects.as_strings(sequences), labels, "strings"
