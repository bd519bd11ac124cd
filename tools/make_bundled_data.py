"""Make ``src/similia/datasets/data/{promoters,splice}.tsv`` from the R packages that carry the data.

Needs ``pyreadr`` and the two data files ``promotergene.rda`` (R package kernlab) and ``DNA.rda``
(R package mlbench); in Debian they are inside ``r-cran-kernlab`` and ``r-cran-mlbench``
(``apt-get download``, then ``dpkg -x``)::

    python tools/make_bundled_data.py .../kernlab/data/promotergene.rda .../mlbench/data/DNA.rda

Each line of the result is ``label<TAB>sequence``. Only labels and letters are taken, which are facts
published by the UCI repository under CC BY 4.0; the packages' own code and text stay out.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyreadr

DATA = Path(__file__).parents[1] / "src" / "similia" / "datasets" / "data"
BASES = {"000": "T", "100": "A", "010": "C", "001": "G"}  # mlbench: three indicator columns a base


def promoters(path: str) -> list[tuple[str, str]]:
    """Class, then one column for each of 57 bases."""
    rows = pyreadr.read_r(path)["promotergene"].astype(str).itertuples(index=False)
    return [(row[0], "".join(row[1:])) for row in rows]


def splice(path: str) -> list[tuple[str, str]]:
    """180 indicator columns for 60 bases, then the class."""
    rows = pyreadr.read_r(path)["DNA"].astype(str).itertuples(index=False)
    return [(row[-1], "".join(BASES["".join(row[i : i + 3])] for i in range(0, 180, 3))) for row in rows]


def write(name: str, rows: list[tuple[str, str]], shape: tuple[int, int]) -> None:
    """Write a file after checking its shape."""
    assert len(rows) == shape[0], len(rows)
    assert {len(sequence) for _, sequence in rows} == {shape[1]}
    lines = [f"{label}\t{sequence}\n" for label, sequence in rows]
    (DATA / name).write_text("".join(lines), encoding="ascii", newline="\n")


if __name__ == "__main__":
    write("promoters.tsv", promoters(sys.argv[1]), (106, 57))
    write("splice.tsv", splice(sys.argv[2]), (3186, 60))
