"""Options shared by several commands, with their help, shell completion and values.

Kernels and distances are parsed from text such as ``GappyKmers(k=4, gaps=1)``, without evaluating it.
"""

from __future__ import annotations

import ast
import importlib
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

import similia.distances
import similia.kernels
from similia.core.text import did_you_mean, short


def _classes_of(room: str) -> Callable[[str], list[str]]:
    """Return a shell completer for the names of the classes in the subpackage called `room`."""

    def complete(incomplete: str) -> list[str]:
        names = importlib.import_module(f"similia.{room}").__all__
        return [name for name in names if name[0].isupper() and name.startswith(incomplete)]

    return complete


def _data(incomplete: str) -> list[str]:
    from similia.datasets import available

    folder, start = Path(incomplete).parent, Path(incomplete).name if not incomplete.endswith("/") else ""
    files = folder if start else Path(incomplete or ".")
    there = files.iterdir() if files.is_dir() else []
    paths = [str(path) + "/" * path.is_dir() for path in sorted(there) if path.name.startswith(start)]
    return [name for name in available() if name.startswith(incomplete)] + paths


def scorers(incomplete: str) -> list[str]:
    from sklearn.metrics import get_scorer_names

    return [name for name in get_scorer_names() if name.startswith(incomplete)]


DATA_HELP = (
    "A table (CSV, TSV, Parquet); FASTA or FASTQ; lines of text (.txt); molecules (.smi, .sdf); series (.ts, or a "
    "folder with one file per series); arrays (.npy, .npz); graphs (a TUDataset folder or zip); the name of a data set "
    "such as 'splice' or 'NCI1'; or - for standard input."
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
        help="Instead of --kernel: a distance of similia.distances, e.g. 'DTW(window=0.1)'.",
        autocompletion=_classes_of("distances"),
    ),
]
Bits = Annotated[int, typer.Option(help="Number of bits of a code; a multiple of 8.")]
Landmarks = Annotated[
    int, typer.Option(min=1, help="Number of landmarks: the objects with which each object is compared.")
]
Table = dict[str, Any]  # a command with a parameter of this type gets all options of `READING`


def _option(
    kind: Any, default: Any, help: str, *flags: str, metavar: str | None = None, panel: str | None = "How data are read"
) -> tuple[Any, Any]:
    return Annotated[kind, typer.Option(*flags, help=help, metavar=metavar, rich_help_panel=panel)], default


READING: dict[str, tuple[Any, Any]] = {  # by the parameters of `similia.sources.read_objects`
    "text": _option(str | None, None, "Column with the strings. Default: 'text', or else the only column of text."),
    "smiles": _option(
        str | None, None, "Instead of --text: column with SMILES of molecules (needs similia\\[molecules]).", "--smiles"
    ),
    "values": _option(str | None, None, "Instead of --text: columns of numbers, e.g. x,y,z; each row is a vector."),
    "series": _option(bool, False, "Each row of numbers is a time series, not a vector.", "--series"),
    "label": _option(
        str | None,
        None,
        "Column with the labels; for SDF a field, for .npz an array, for FASTA the part label=... of headers. Default: "
        "'label'.",
    ),
    "names": _option(
        str | None,
        None,
        "Column with the names of the objects; results have this column, too. FASTA files have names in their headers.",
        "--id",
        metavar="COLUMN",
    ),
    "time": _option(
        str | None,
        None,
        "Column with times, if each row of the table is one time point of a series; --id then names the column that "
        "identifies the series. Only the order of times matters: gaps do not count.",
    ),
    "axes": _option(
        str | None, None, "Order of the axes within each series of a 3-D array: 'time, channel' or 'channel, time'."
    ),
    "sep": _option(
        str | None, None, "Separator of cells: a character, tab or space. Default: chosen by the ending of the file."
    ),
    "encoding": _option(str, "utf-8", "Encoding of text files, e.g. latin-1 or utf-16."),
    "no_header": _option(
        bool, False, "The table has no header line; options name columns by their numbers from 0.", "--no-header"
    ),
    "decimal": _option(str, ".", "Decimal mark of numbers: . or ,"),
    "on_error": _option(
        str,
        "stop",
        "stop: end at a bad row, empty text, bad SMILES or missing label; skip: leave such rows out, count and list "
        "them.",
    ),
    "skipped": _option(
        Path | None,
        None,
        "CSV file for the list of skipped rows. Default: OUTPUT.skipped.csv, or FOLDER.DATA.skipped.csv for an index.",
    ),
}


def reading(arguments: dict[str, Any]) -> Table:
    """Remove the options `READING` from the arguments of a command; return them as parameters of `Reading`."""
    how = {name: arguments.pop(name) for name in READING}
    how["header"] = not how.pop("no_header")
    if how["on_error"] == "stop" and how["skipped"] is not None:
        raise ValueError(
            "--skipped lists the rows that --on-error skip leaves out; add --on-error skip, or drop --skipped"
        )
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


Seed = Annotated[int, typer.Option(help="Seed of the random numbers.")]
Page = Annotated[Path, typer.Option("--output", "-o", help="The HTML page to write.")]
Title = Annotated[str | None, typer.Option(help="Title of the page.")]
CsvOut = Annotated[
    Path | None, typer.Option("--output", "-o", help="CSV file to write. Default: print to the terminal.")
]
Chunk = Annotated[
    int, typer.Option(min=1, help="Maximum number of objects per chunk. Results are saved after each chunk.")
]
Workers = Any  # a command with a parameter `workers` gets all options of `WORKING`
WORKING: dict[str, tuple[Any, Any]] = {
    "max_memory": _option(
        str | None,
        None,
        "Limit of working memory, e.g. 512MiB. It makes chunks smaller, and never changes results.",
        panel=None,
    ),
    "cluster": _option(
        str | None,
        None,
        "local:N starts N processes on this machine, local one per thread (needs similia\\[dask]).",
        panel=None,
    ),
    "scheduler": _option(
        str | None, None, "Address of a Dask scheduler whose workers do the work, e.g. tcp://10.0.0.1:8786.", panel=None
    ),
}


@contextmanager
def working(arguments: dict[str, Any]) -> Iterator[Any]:
    """Remove the options `WORKING` from `arguments`; return a context that limits memory and yields the workers."""
    from similia.core.config import config

    max_memory, cluster, scheduler = (arguments.pop(name) for name in WORKING)
    with config(max_memory=max_memory):
        yield parse_workers(cluster, scheduler)


def parse_workers(cluster: str | None, scheduler: str | None) -> Any:
    """Return the number of processes to start if `cluster` is "local" or "local:N", else `scheduler` (or None)."""
    from similia.core.config import n_threads
    from similia.scale.workers import import_dask

    if cluster is not None and scheduler is not None:
        raise ValueError("--cluster starts workers and --scheduler uses running ones; drop one of them")
    if cluster is not None or scheduler is not None:
        import_dask()
    if cluster is None:
        return scheduler
    found = re.fullmatch(r"local(?::([1-9][0-9]*))?", cluster)
    if found is None:
        raise ValueError(
            f"--cluster must be local or local:N, such as local:4, got {cluster}; --scheduler names workers elsewhere"
        )
    return int(found[1]) if found[1] else n_threads()


def first_given(options: dict[str, Any]) -> str:
    """Return the name of the first option that is not None, or "" if all are."""
    return next((name for name, value in options.items() if value is not None), "")


# ---- kernels and distances, parsed from text
@dataclass(frozen=True)
class _Room:
    """A package whose classes an option can name, except `bases`."""

    noun: str
    package: ModuleType
    example: str
    bases: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        return [name for name in sorted(dir(self.package)) if name[0].isupper() and name not in self.bases]


_KERNELS = _Room("kernel", similia.kernels, "GappyKmers(k=4, gaps=1)", ("Kernel", "FeatureKernel"))
_DISTANCES = _Room(
    "distance", similia.distances, "DTW(window=0.1)", ("Distance", "Facts", "FromFunction", "TwoSampleResult")
)


def parse_kernel(text: str) -> Any:
    """Return the kernel of `similia.kernels` that `text` describes; arguments are literals, kernels or distances.

    Examples
    --------
    >>> parse_kernel("Normalized(Spectrum(k=3))")
    Normalized(kernel=Spectrum())
    >>> parse_kernel("__import__('os').remove('x')")
    Traceback (most recent call last):
        ...
    ValueError: ...
    """
    return _Parser(text, (_KERNELS,)).parse()


def parse_distance(text: str) -> Any:
    """Return the distance of `similia.distances` that `text` describes, in the syntax of `parse_kernel`."""
    return _Parser(text, (_DISTANCES,)).parse()


def parse_comparison(text: str) -> Any:
    """Return the kernel or distance that `text` describes, in the syntax of `parse_kernel`."""
    return _Parser(text, (_KERNELS, _DISTANCES)).parse()


def parse_one(kernel: str | None, distance: str | None) -> Any:
    """Return the kernel of --kernel or the distance of --distance, or None without them; raise if both are given."""
    if kernel and distance:
        raise ValueError("--kernel and --distance exclude each other: each says how objects are compared; drop one")
    return parse_kernel(kernel) if kernel else parse_distance(distance) if distance else None


def check_bits(bits: int) -> int:
    if bits < 8 or bits % 8:
        raise ValueError(f"--bits must be a multiple of 8 and at least 8, got {bits}")
    return bits


@dataclass(frozen=True)
class _Parser:
    text: str
    rooms: tuple[_Room, ...]

    def parse(self) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Python warns about "1if" and "\\d"
                tree = ast.parse(self.text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last three: NUL, surrogates, deep nesting
            raise self._malformed() from None
        return self._build(tree, self.rooms)

    def _malformed(self) -> ValueError:
        nouns, examples = (" or ".join(parts) for parts in zip(*((r.noun, r.example) for r in self.rooms), strict=True))
        return ValueError(f"{short(self.text, 60)} is not a {nouns}; write e.g. '{examples}'")

    def _build(self, node: ast.expr, rooms: tuple[_Room, ...]) -> Any:
        """Return an instance of the class in `rooms` that a syntax node names, with the arguments of the node."""
        name = node if isinstance(node, ast.Name) else getattr(node, "func", None)
        if not isinstance(name, ast.Name):
            raise self._malformed()
        room = next((room for room in rooms if name.id in room.names), None)
        if room is None:
            self._check_other_room(name.id, rooms)
            known = (
                ", ".join(rooms[0].names) if len(rooms) == 1 else "the classes of similia.kernels and similia.distances"
            )
            nouns = " or ".join(room.noun for room in rooms)
            meant = did_you_mean(name.id, [known for room in rooms for known in room.names])
            raise ValueError(f"no {nouns} is called {short(name.id)}{meant}; known are {known}")
        cls = getattr(room.package, name.id)
        call = node if isinstance(node, ast.Call) else ast.Call(name, [], [])
        arguments = [self._value(argument) for argument in call.args]
        keywords = {str(keyword.arg): self._value(keyword.value) for keyword in call.keywords}
        if len(keywords) < len(call.keywords):
            raise ValueError(f"{short(self.text, 60)}: {name.id} gets a parameter twice; give it once")
        try:
            return cls(*arguments, **keywords)
        except TypeError as error:
            taken = cls._get_param_names()
            unknown = next((keyword for keyword in keywords if keyword not in taken), None)
            meant = "" if unknown is None else did_you_mean(unknown, taken)
            problem = short(str(error), 100)[1:-1]
            known = ", ".join(taken) or "no parameters"
            raise ValueError(f"{short(self.text, 60)}: {problem}{meant}; {name.id} takes {known}") from None

    def _check_other_room(self, name: str, rooms: tuple[_Room, ...]) -> None:
        other = next((room for room in (_KERNELS, _DISTANCES) if room not in rooms and name in room.names), None)
        if other is not None:
            own = rooms[0].noun
            raise ValueError(
                f"{name} is a {other.noun}, not a {own}; write --{other.noun} '{short(self.text, 60)[1:-1]}' instead "
                f"of --{own}"
            )

    def _value(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Call):
            return self._build(node, (_KERNELS, _DISTANCES))
        if isinstance(node, ast.List | ast.Tuple):
            values = [self._value(element) for element in node.elts]
            return values if isinstance(node, ast.List) else tuple(values)
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):  # a set in a set, deep nesting
            found = short(ast.get_source_segment(self.text.strip(), node))
            raise ValueError(f"{short(self.text, 60)}: {found} is neither a number, a text nor a kernel") from None
