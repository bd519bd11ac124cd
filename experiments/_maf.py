"""Reader for Mutation Annotation Format files: counts of somatic mutations of each patient in each gene.

Format: text separated by tabs (plain or gzip), comments from ``#``, a line of column names, then one line for each
mutation. Read are ``Hugo_Symbol`` (gene) and ``Tumor_Sample_Barcode``, whose first twelve characters are the patient
(``TCGA-02-0003``); the kind of a mutation is ignored, as in the supplement of Zhao & Song, 2018.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

GENE, SAMPLE = "Hugo_Symbol", "Tumor_Sample_Barcode"
PATIENT = 12  # characters of a barcode


def read_maf(path: str | os.PathLike[str]) -> tuple[npt.NDArray[np.float64], list[str], list[str]]:
    """Return how many mutations each patient has in each gene.

    Parameters
    ----------
    path : path
        A ``.maf`` or ``.maf.gz`` file.

    Returns
    -------
    counts : ndarray of float64, shape (n_patients, n_genes)
    patients, genes : list of str
        Sorted. A patient without any mutation is not in such a file.

    Raises
    ------
    ValueError
        If a column is missing, a line is shorter than the line of names, or there is no mutation.
    """
    found = list(_mutations(Path(path)))
    if not found:
        raise ValueError(f"{path} holds no mutation, expected a line for each below the line of column names")
    patients, rows = np.unique([patient for patient, _ in found], return_inverse=True)
    genes, columns = np.unique([gene for _, gene in found], return_inverse=True)
    counts = np.zeros((len(patients), len(genes)))
    np.add.at(counts, (rows, columns), 1)
    return counts, patients.tolist(), genes.tolist()


def _mutations(path: Path) -> Iterator[tuple[str, str]]:
    """Yield patient and gene of each mutation."""
    places: tuple[int, int] | None = None
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            fields = line.rstrip("\r\n").split("\t")
            if line.startswith("#") or fields == [""]:
                continue
            if places is None:
                places = _places(path, number, fields)
            elif len(fields) <= max(places):
                expected = f"expected at least {max(places) + 1}, as line of column names has them"
                raise ValueError(f"{path}, line {number} has {len(fields)} columns, {expected}")
            else:
                yield fields[places[0]][:PATIENT], fields[places[1]]


def _places(path: Path, number: int, names: list[str]) -> tuple[int, int]:
    for name in (SAMPLE, GENE):
        if name not in names:
            raise ValueError(f"{path}, line {number}: there is no column {name}, found {', '.join(names[:5])} ...")
    return names.index(SAMPLE), names.index(GENE)
