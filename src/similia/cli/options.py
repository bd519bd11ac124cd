"""What several commands take, with its help and what a shell completes it to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer


def _kernels(incomplete: str) -> list[str]:
    import similia.kernels

    return [name for name in similia.kernels.__all__ if name[0].isupper() and name.startswith(incomplete)]


def _distances(incomplete: str) -> list[str]:
    import similia.distances

    return [name for name in similia.distances.__all__ if name[0].isupper() and name.startswith(incomplete)]


def _data(incomplete: str) -> list[str]:
    """Return data sets and files that begin so."""
    from similia.datasets import available

    folder, start = Path(incomplete).parent, Path(incomplete).name if not incomplete.endswith("/") else ""
    files = folder if start else Path(incomplete or ".")
    there = files.iterdir() if files.is_dir() else []
    paths = [str(path) + "/" * path.is_dir() for path in sorted(there) if path.name.startswith(start)]
    return [name for name in available() if name.startswith(incomplete)] + paths


def scorers(incomplete: str) -> list[str]:
    """Return the scorers of scikit-learn that begin so."""
    from sklearn.metrics import get_scorer_names

    return [name for name in get_scorer_names() if name.startswith(incomplete)]


def experiments(incomplete: str) -> list[str]:
    """Return the experiments that begin so."""
    from similia.experiments import EXPERIMENTS

    return [name for name in EXPERIMENTS if name.startswith(incomplete)]


DATA_HELP = (
    "CSV, TSV or Parquet; FASTA or FASTQ; a TUDataset folder or zip; series as .ts; vectors as .npy; a name such as "
    "'splice' or 'NCI1'; or - for standard input."
)
Data = Annotated[str, typer.Argument(help=DATA_HELP, autocompletion=_data)]
Model = Annotated[Path, typer.Argument(help="A model that 'similia fit' wrote.")]
Folder = Annotated[Path, typer.Argument(help="Folder of the index.")]
Kernel = Annotated[
    str | None,
    typer.Option(
        help="A kernel of similia.kernels with its parameters, e.g. 'GappyKmers(k=4, gaps=1)'.", autocompletion=_kernels
    ),
]
Distance = Annotated[
    str | None,
    typer.Option(
        help="A distance of similia.distances instead of a kernel, e.g. 'DTW(window=0.1)'.", autocompletion=_distances
    ),
]
Bits = Annotated[int, typer.Option(help="Bits of a code, a multiple of 8.")]
Landmarks = Annotated[int, typer.Option(min=1, help="Landmarks of a kernel, or of a distance.")]
Text = Annotated[str, typer.Option(help="Column with the strings.")]
Smiles = Annotated[
    str | None,
    typer.Option("--smiles", help="Instead of --text: column with SMILES, for molecules (needs similia\\[molecules])."),
]
Label = Annotated[str, typer.Option(help="Column (or FASTA header field, as label=...) with the labels.")]
Seed = Annotated[int, typer.Option(help="Seed of everything random.")]
Table = Annotated[Path | None, typer.Option("--output", "-o", help="CSV to write; the terminal if not given.")]
Chunk = Annotated[int, typer.Option(min=1, help="Objects worked on and committed together, at most.")]
Memory = Annotated[
    str | None,
    typer.Option("--max-memory", help="Working memory, e.g. 512MiB, to which chunks are cut; results stay the same."),
]
Cluster = Annotated[
    str | None,
    typer.Option("--cluster", help="local or local:N: work in N processes of this machine (needs similia\\[dask])."),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler", help="Address of a Dask scheduler whose workers do the work, e.g. tcp://10.0.0.1:8786."
    ),
]


class SmilesColumn(str):
    """Name of a column of SMILES: goes where that of a column of strings goes, and its objects are graphs."""


def column(text: str, smiles: str | None) -> str:
    """Return the column that ``--text`` or ``--smiles`` names."""
    if smiles is None:
        return text
    if text != "text":
        raise ValueError("--text and --smiles exclude each other: one column holds the objects, strings or molecules")
    return SmilesColumn(smiles)


@contextmanager
def working(max_memory: str | None, cluster: str | None, scheduler: str | None) -> Iterator[Any]:
    """Hold the working memory that was asked for, and yield the workers."""
    from similia._config import config
    from similia.cli.inputs import parse_workers

    with config(max_memory=max_memory):
        yield parse_workers(cluster, scheduler)
