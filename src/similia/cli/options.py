"""Options shared by several commands, with their help and shell completion."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer


def _classes_of(room: str) -> Callable[[str], list[str]]:
    """Return a shell completer for the names of the classes in the subpackage called `room`."""

    def complete(incomplete: str) -> list[str]:
        names = importlib.import_module(f"similia.{room}").__all__
        return [name for name in names if name[0].isupper() and name.startswith(incomplete)]

    return complete


def _data(incomplete: str) -> list[str]:
    """Return the names of data sets and the paths of files that begin with `incomplete`."""
    from similia.datasets import available

    folder, start = Path(incomplete).parent, Path(incomplete).name if not incomplete.endswith("/") else ""
    files = folder if start else Path(incomplete or ".")
    there = files.iterdir() if files.is_dir() else []
    paths = [str(path) + "/" * path.is_dir() for path in sorted(there) if path.name.startswith(start)]
    return [name for name in available() if name.startswith(incomplete)] + paths


def scorers(incomplete: str) -> list[str]:
    """Return the names of scikit-learn's scorers that begin with `incomplete`."""
    from sklearn.metrics import get_scorer_names

    return [name for name in get_scorer_names() if name.startswith(incomplete)]


DATA_HELP = (
    "A table (CSV, TSV, Parquet); FASTA or FASTQ; lines of text (.txt); molecules (.smi, .sdf); series (.ts, a folder "
    "with a file for each); arrays (.npy, .npz); graphs (a TUDataset folder or zip); a name such as 'splice' or "
    "'NCI1'; or - for standard input."
)
Data = Annotated[str, typer.Argument(help=DATA_HELP, autocompletion=_data)]
Model = Annotated[Path, typer.Argument(help="A model that 'similia fit' wrote.")]
Folder = Annotated[Path, typer.Argument(help="Folder of the index.")]
Kernel = Annotated[
    str | None,
    typer.Option(
        help="A kernel of similia.kernels with its parameters, e.g. 'GappyKmers(k=4, gaps=1)'.",
        autocompletion=_classes_of("kernels"),
    ),
]
Distance = Annotated[
    str | None,
    typer.Option(
        help="A distance of similia.distances instead of a kernel, e.g. 'DTW(window=0.1)'.",
        autocompletion=_classes_of("distances"),
    ),
]
Bits = Annotated[int, typer.Option(help="Bits of a code, a multiple of 8.")]
Landmarks = Annotated[int, typer.Option(min=1, help="Number of landmarks of the kernel or distance.")]
Table = dict[str, Any]  # how data are read: each command that reads any has all options of `READING`


def _option(
    kind: Any, default: Any, help: str, *flags: str, metavar: str | None = None, panel: str | None = "How data are read"
) -> tuple[Any, Any]:
    """Return the annotation and the default value of a command-line option."""
    return Annotated[kind, typer.Option(*flags, help=help, metavar=metavar, rich_help_panel=panel)], default


READING: dict[str, tuple[Any, Any]] = {  # by the parameters of `similia.sources.read_objects`
    "text": _option(str | None, None, "Column with the strings; 'text', or the only one of text, if not given."),
    "smiles": _option(
        str | None, None, "Instead: column with SMILES, for molecules (needs similia\\[molecules]).", "--smiles"
    ),
    "values": _option(str | None, None, "Instead: columns of numbers, e.g. x,y,z; each row is a vector."),
    "series": _option(bool, False, "Each row of numbers is a time series.", "--series"),
    "label": _option(
        str | None,
        None,
        "Column with the labels (field of SDF, array of .npz, label=... of FASTA headers); 'label' by default.",
    ),
    "names": _option(
        str | None, None, "Column with the names of the objects; FASTA has its own.", "--id", metavar="COLUMN"
    ),
    "time": _option(
        str | None, None, "The table is long: a row is one time point, at this time, of the series that --id names."
    ),
    "axes": _option(str | None, None, "Of a 3-D array of series: 'time, channel' or 'channel, time'."),
    "sep": _option(
        str | None, None, "What separates cells: a character, tab or space; by the ending of the file if not given."
    ),
    "encoding": _option(str, "utf-8", "Of text files, e.g. latin-1 or utf-16."),
    "no_header": _option(bool, False, "The table has no line of names; columns are numbers from 0.", "--no-header"),
    "decimal": _option(str, ".", "What stands before decimals: . or ,"),
    "on_error": _option(
        str, "stop", "stop or skip: bad rows, bad SMILES and missing labels are left out, counted and listed."
    ),
    "skipped": _option(
        Path | None,
        None,
        "CSV file for the list of skipped rows; by default OUTPUT.skipped.csv, for an index FOLDER.DATA.skipped.csv.",
    ),
}


def reading(arguments: dict[str, Any]) -> Table:
    """Remove the options of `READING` from a command's arguments; return them as parameters of `Reading`."""
    how = {name: arguments.pop(name) for name in READING}
    how["header"] = not how.pop("no_header")
    if how["on_error"] == "stop" and how["skipped"] is not None:
        raise ValueError("--skipped lists what --on-error skip leaves out; add --on-error skip, or drop --skipped")
    if how["on_error"] == "skip" and how["skipped"] is None:
        how["skipped"] = _list_beside(arguments)
    return how


def _list_beside(arguments: dict[str, Any]) -> Path | None:
    """Return the default path for the list of skipped rows, next to the command's output; None if it has no output."""
    target, ending = arguments.get("output"), ".skipped.csv"
    if target is None and "folder" in arguments and "queries" not in arguments:  # files are added to an index
        target, data = arguments["folder"], str(arguments["data"])
        ending = f".{'stdin' if data == '-' else Path(data).name}{ending}"
    if target is None or Path(target) == Path("-"):
        return None
    path = Path(target) if Path(target).name not in ("", "..") else Path(target).resolve()
    return path.with_name(path.name + ending)


Seed = Annotated[int, typer.Option(help="Seed of everything random.")]
CsvOut = Annotated[Path | None, typer.Option("--output", "-o", help="CSV to write; the terminal if not given.")]
Chunk = Annotated[
    int, typer.Option(min=1, help="Maximum number of objects per chunk; each chunk is saved when it is done.")
]
Workers = Any  # who works: each command with a parameter of this name has all options of `WORKING`
WORKING: dict[str, tuple[Any, Any]] = {
    "max_memory": _option(str | None, None, "Working memory, e.g. 512MiB; smaller chunks, same results.", panel=None),
    "cluster": _option(
        str | None, None, "local or local:N: work in N processes of this machine (needs similia\\[dask]).", panel=None
    ),
    "scheduler": _option(
        str | None, None, "Address of a Dask scheduler whose workers do the work, e.g. tcp://10.0.0.1:8786.", panel=None
    ),
}


@contextmanager
def working(arguments: dict[str, Any]) -> Iterator[Any]:
    """Remove the options of `WORKING` from `arguments`; return a context that limits memory and yields the workers."""
    from similia.core.config import config

    max_memory, cluster, scheduler = (arguments.pop(name) for name in WORKING)
    with config(max_memory=max_memory):
        yield parse_workers(cluster, scheduler)


def parse_workers(cluster: str | None, scheduler: str | None) -> Any:
    """Return the number of processes to start if `cluster` is "local" or "local:N", else `scheduler` (or None)."""
    from similia.core.threads import n_threads
    from similia.scale.workers import import_dask

    if cluster is not None and scheduler is not None:
        raise ValueError("--cluster and --scheduler exclude each other: the first starts workers, the second uses some")
    if cluster is not None or scheduler is not None:
        import_dask()
    if cluster is None:
        return scheduler
    found = re.fullmatch(r"local(?::([1-9][0-9]*))?", cluster)
    if found is None:
        raise ValueError(f"--cluster must be local or local:N, such as local:4, got {cluster}; others by --scheduler")
    return int(found[1]) if found[1] else n_threads()
