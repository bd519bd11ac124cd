"""Run all benchmarks and write docs/benchmarks.md.

    SIMILIA_DATA=... SIMILIA_GRAKEL_PYTHON=... SIMILIA_TORCHHD_PYTHON=... SIMILIA_RIVALS_PYTHON=... \\
        SIMILIA_CHEM_PYTHON=... SIMILIA_EMLEARN_PYTHON=... SIMILIA_HDCC=... SIMILIA_UMAP_PYTHON=... \\
        SIMILIA_GPYTORCH_PYTHON=... python benchmarks/run.py --output docs/benchmarks.md

Without the variables, the rows that need them are skipped. Names of benchmarks run only these.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
from pathlib import Path
from typing import Any

import numpy as np
from measure import Row

MODULES = (
    *("startup", "encoding", "hd_classifier", "graph_kernels", "nystroem", "minhash", "hypervectors", "gapped_kmers"),
    *("dtw", "series_search", "convolutions", "set_distances", "mean_maps", "edit_distances", "graphlets"),
    *("hashing_pca", "hashing_itq", "hamming_search", "fingerprints", "similarity_search", "one_query"),
    *("vector_search", "neighbour_graphs", "duplicates"),
    *("heat", "heat_features", "series_embeddings"),
    *("streaming", "plan", "devices"),
    *("report", "drop_ins", "molecules", "gaussian_process", "large_clusters", "maps", "service"),
)

_HEAD = """# Benchmarks

How fast is similia, and against whom? Each row compares it with a rival, or with a limit, on the same work in the
same run.

- A row of **speed** says how many times as fast as the rival similia is; rows of recall, accuracy and "less" are read
  in the same way: above 1 is better.
- A row of **time**, memory, bytes, instructions or error gives similia's cost in units of the rival's: below 1 is
  better.
- A ratio compares the median times of calls that take turns on a shared machine with {cores} cores ({machine}, numpy
  {numpy}). Seconds are not given: they would hold for that machine only.
- Some rows have a goal; rows that miss it are marked **no**. A rival called "scaled" ran on a part of the work, and
  its time was extrapolated to all of it.

[How to run them](#how-to-run-the-benchmarks) stands at the end.
"""

_TAIL = """## How to run the benchmarks

`{command}` runs all benchmarks, one after the other. `SIMILIA_DATA` names the folder of data sets. The rivals run in
interpreters of their own, which these variables name; rows whose rival is missing are skipped:

| variable | has |
|---|---|
| `SIMILIA_GRAKEL_PYTHON` | `grakel` |
| `SIMILIA_TORCHHD_PYTHON` | `torch`, `torch-hd` |
| `SIMILIA_RIVALS_PYTHON` | `aeon`, `tslearn`, `dtaidistance`, `torch` |
| `SIMILIA_STUMPY_PYTHON` | `stumpy` |
| `SIMILIA_CHEM_PYTHON` | `datasketch`, `rensa` |
| `SIMILIA_TEXT_DEDUP_PYTHON` | `text-dedup` |
| `SIMILIA_EMLEARN_PYTHON` | `emlearn` |
| `SIMILIA_HDCC` | a folder, not an interpreter: `pereverges/hdcc` at commit 0d8e57c |
| `SIMILIA_PYNNDESCENT_PYTHON` | `pynndescent` |
| `SIMILIA_UMAP_PYTHON` | `umap-learn` |
| `SIMILIA_GPYTORCH_PYTHON` | `gpytorch` |
"""


def load(name: str) -> Any:
    """Return the module of a benchmark; some share data with the experiments of the repository."""
    root = str(Path(__file__).resolve().parents[1])
    if root not in sys.path:
        sys.path.append(root)
    return importlib.import_module(name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"any of {', '.join(MODULES)}")
    parser.add_argument("--output", type=Path, help="Markdown file to write")
    arguments = parser.parse_args()
    sections = []
    for name in arguments.names or MODULES:
        module = load(name)
        print(f"\n== {name}", flush=True)
        rows: list[Row] = module.run()
        for row in rows:
            print(row, flush=True)
        sections.append((module.__doc__.splitlines()[0], rows))
    if arguments.output:
        arguments.output.write_text(_page(sections), encoding="utf-8")
        print(f"wrote {arguments.output}")


def _page(sections: list[tuple[str, list[Row]]]) -> str:
    lines = [_HEAD.format(cores=os.cpu_count(), machine=platform.machine(), numpy=np.__version__)]
    for title, rows in sections:
        lines += [f"## {title}", "", "| what | rival or limit | ratio | goal | met |", "|---|---|---|---|---|"]
        lines += [f"| {r.what} | {r.rival} | {r.ratio:.3g} | {r.goal} | {r.met} |" for r in rows]
        lines.append("")
    lines.append(_TAIL.format(command="python benchmarks/run.py --output docs/benchmarks.md"))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
