"""The same seed in other settings: threads, memory, chunks, processes, processor features.

python reliability/run.py determinism
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

TITLE = "Determinism"
TEXT = """
All five systems, the n-gram encoder and the Hamming index, each in a process of its own for each setting, beside a
first run: numbers of packed codes (rows), labels and nearest neighbours (id and distance) compared, how many of them
differ, and the largest relative difference of embeddings (to the largest entry). Among the objects are equal ones,
ones that differ in one letter, and vectors of opposite sign. *Anew*: everything is fitted in the setting; *saved*: the
models of the first run are loaded. The last settings imitate other machines: OpenBLAS and numba use the instructions of
older processors. With models fitted anew there, eigenvectors come from other sums: floats differ in their last bits,
and bits of codes could.
"""
INPUTS = 1  # seeds
MUST_BE_ZERO = ("codes differ", "labels differ", "neighbours differ")

_OLD = {"OPENBLAS_CORETYPE": "Sandybridge", "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
_SETTINGS: dict[str, dict[str, str]] = {
    "one thread": {"LOKY_MAX_CPU_COUNT": "1", "OPENBLAS_NUM_THREADS": "1"},
    "four BLAS threads": {"OPENBLAS_NUM_THREADS": "4"},
    "8 MiB of working memory": {"MEMORY": "8MiB"},
    "one object at a time": {"CHUNK": "1"},
    "7 objects at a time": {"CHUNK": "7"},
    "another hash seed": {"PYTHONHASHSEED": "12345"},
    "Dask, 5 parts, threads": {"PARTS": "5", "SCHEDULER": "threads"},
    "Dask, 3 parts, processes": {"PARTS": "3", "SCHEDULER": "processes"},
    "older processor (Sandy Bridge BLAS, generic numba)": _OLD,
    "newer processor (Skylake BLAS)": {"OPENBLAS_CORETYPE": "SkylakeX"},
}


def run(n: int, seed: int) -> list[dict[str, Any]]:
    """Return a row for each setting and way to a model."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        first = _results(folder, "anew", {}, "--keep")
        for name, environment in _SETTINGS.items():
            for how in ("saved", "anew"):
                rows.append({"setting": name, "models": how, **_compared(first, _results(folder, how, environment))})
                print(rows[-1], flush=True)
    return rows


def _results(folder: str, how: str, environment: dict[str, str], *options: str) -> dict[str, np.ndarray]:
    command = [sys.executable, str(Path(__file__).with_name("_jobs.py")), folder, how, *options]
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("OPENBLAS", "NUMBA", "OMP"))}
    with tempfile.TemporaryDirectory() as cache:  # compiled code of another processor must not be used
        own = {"NUMBA_CACHE_DIR": cache} if "NUMBA_CPU_NAME" in environment else {}
        found = subprocess.run(command, env=plain | own | environment, stdout=subprocess.PIPE, check=True)
    return dict(np.load(io.BytesIO(found.stdout)))


def _compared(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return how many rows of each kind there are and differ, and by how much floats do."""
    kinds = {"codes": ("codes",), "labels": ("labels",), "neighbours": ("ids", "distances")}
    row: dict[str, Any] = {}
    for kind, names in kinds.items():
        pairs = [(first[key], second[key]) for key in first if key.split("|")[1] in names]
        row[kind] = sum(len(a) for a, _ in pairs)
        row[f"{kind} differ"] = sum(int(np.any(np.atleast_2d((a != b).T), axis=0).sum()) for a, b in pairs)
    floats = [(first[key], second[key]) for key in first if key.endswith("|floats")]
    row["floats differ by"] = max(float(np.abs(a - b).max() / np.abs(a).max()) for a, b in floats)
    return row
