"""Hostile input guided by coverage, where atheris installs (``pip install atheris``): bytes with new paths are kept.

    python tests/faults/coverage_guided.py read_ts -runs=100000
    python tests/faults/coverage_guided.py read_tudataset -max_total_time=60

What a reader refuses it refuses with a ValueError (or for a missing member a FileNotFoundError) of one line; anything
else ends the run, and atheris writes the input beside it. Options are libFuzzer's.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import atheris

with atheris.instrument_imports(include=["similia.objects"]):
    import similia as sm
    from similia import sources
    from similia.core.validation import BadFile, BadValue
    from similia.objects import graphs

MEMBERS = ("A", "graph_indicator", "graph_labels", "node_labels", "edge_attributes")


def one_file(read: Callable[[Path], Any], name: str) -> Callable[[bytes, Path], None]:
    """Return what writes bytes to a file of this name and reads it."""

    def run(data: bytes, folder: Path) -> None:
        (folder / name).write_bytes(data)
        read(folder / name)

    return run


def members(data: bytes, folder: Path) -> None:
    """Read a TUDataset whose files are the parts of the bytes between 0xFF."""
    parts = dict(zip(MEMBERS, data.split(b"\xff"), strict=False))
    for member in MEMBERS:
        path = folder / f"N_{member}.txt"
        path.unlink(missing_ok=True)
        if member in parts:
            path.write_bytes(parts[member])
    graphs.read_tudataset(folder)


TARGETS = {
    "read_ts": one_file(sources.read_ts, "x.ts"),
    "read_tudataset": members,
    "read_fasta": one_file(sources.read_fasta, "x.fasta"),
    "read_fastq": one_file(sources.read_fastq, "x.fastq"),
    "read_columns": one_file(lambda path: sources.read_columns(path, "text"), "x.csv"),
}


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        raise SystemExit(f"{__doc__}\nTargets: {', '.join(TARGETS)}")
    run = TARGETS[sys.argv.pop(1)]
    warnings.simplefilter("error")
    with tempfile.TemporaryDirectory() as folder:

        def one(data: bytes) -> None:
            try:
                with sm.config(max_memory="8MiB"):
                    run(data, Path(folder))
            except (ValueError, FileNotFoundError) as error:
                said = str(error)
                known = (ValueError, FileNotFoundError, BadValue, BadFile)
                if type(error) not in known or len(said) >= 500 or "\n" in said:
                    raise

        atheris.Setup(sys.argv, one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
