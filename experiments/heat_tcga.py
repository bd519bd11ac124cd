"""Hyperspherical heat kernel, Table 3: is a gene mutated? From the numbers of mutations in other genes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments._heat_svm import (
    KERNELS,
    N_FOLDS,
    PAPER_ORDER,
    PROTOCOL,
    Floats,
    accuracy_tables,
    choice_table,
    data_file,
    score,
    significance_table,
    tag,
)
from experiments._maf import read_maf
from experiments._report import Record, Table
from experiments.heat_webkb import N_CLUSTERINGS, Index, representatives

FILES = ("tcga_gbm.maf", "tcga_gbm.maf.gz")
LEAST = 0.1  # mutations of a gene for each patient


@dataclass(frozen=True)
class Gene:
    """A gene of Table 3, and the paper's accuracies (lin, rbf, cos, prx, ext)."""

    name: str
    printed: tuple[float, ...]


TASKS = (
    Gene("ZMYM4", (82.9, 84.0, 83.6, 84.1, 85.1)),
    Gene("ADGRB3", (75.7, 81.0, 78.0, 79.5, 79.3)),
    Gene("NFX1", (73.0, 81.2, 80.9, 82.7, 82.5)),
    Gene("P2RX7", (79.2, 84.1, 85.0, 84.0, 85.0)),
    Gene("COL1A2", (68.4, 70.5, 72.9, 73.9, 74.2)),
)
TITLE = "Hyperspherical heat kernel: mutations (Table 3)"
TEXT = f"""
Mutant or wild type of one gene in glioblastoma (TCGA-GBM), from counts of mutations in the others. **The data could
not be had**: rows marked *missing* are the paper's numbers alone. With the file "TCGA-GBM Aggregated Somatic Mutation"
of the GDC portal in the folder of SIMILIA_DATA, as `vectors/{FILES[0]}` or `vectors/{FILES[1]}`, the same
command fills them in. Genes with fewer mutations than a tenth of the patients are left out (the paper's share is lost
in the text at hand), and patients without a mutation in the others. As many of the larger class as the smaller one has
are taken: the representatives of k-means, as for web pages. {PROTOCOL.strip()}
"""


def balanced(counts: Floats, genes: list[str], target: str, seed: int) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Return counts in the other frequent genes, of as many patients with the target gene mutated as without."""
    if target not in genes:
        raise ValueError(f"there is no mutation of {target} in the file, expected a MAF file of glioblastoma patients")
    column = genes.index(target)
    mutant = counts[:, column] > 0
    others = np.delete(counts, column, axis=1)
    others = others[:, others.sum(axis=0) >= LEAST * len(others)]
    some = others.any(axis=1)
    others, mutant = others[some], mutant[some]
    larger = bool(mutant.mean() > 0.5)
    few, many = (np.flatnonzero(mutant != larger), np.flatnonzero(mutant == larger))
    if len(few) < N_FOLDS:
        raise ValueError(
            f"{target} splits the patients into {len(few)} and {len(many)}, expected {N_FOLDS} or more each"
        )
    chosen: Index = representatives(others[many], len(few), N_CLUSTERINGS, np.random.default_rng(seed))
    rows = np.concatenate([few, many[chosen]])
    return others[rows], mutant[rows]


def measure(task: Gene, seeds: int) -> list[Record]:
    """Score the six kernels on one gene, or say that there is no file."""
    path: Path | None = data_file(*FILES)
    if path is None:
        return [{"set": task.name, "seed": 0, "missing": "yes"}]
    counts, _, genes = read_maf(path)
    records = []
    for seed in range(seeds):
        X, mutant = balanced(counts, genes, task.name, seed)
        records += tag(score(X, mutant, seed, "sqrt"), set=task.name, missing="")
    return records


def present(records: list[Record]) -> tuple[list[Table], Any]:
    """Return the tables; of genes without data the paper's row."""
    printed = {task.name: task.printed for task in TASKS}
    measured = [record for record in records if not record["missing"]]
    tables = []
    if measured:
        tables += accuracy_tables(measured, "gene", printed)
        tables += [significance_table(measured), choice_table(measured, "gene")]
    missing = Table("Accuracy (%), data missing; below, the paper's", ["gene", *KERNELS])
    for record in records:
        if record["missing"]:
            paper = dict(zip(PAPER_ORDER, printed[record["set"]], strict=True))
            missing.rows += [
                [record["set"], *["missing"] * len(KERNELS)],
                ["paper", *(paper.get(k, "") for k in KERNELS)],
            ]
    return [*tables, *([missing] if missing.rows else [])], None
