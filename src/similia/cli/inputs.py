"""Read objects and labels from files, folders and named data sets, whole or in chunks, as models need them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import similia as sm
from similia import sources
from similia.cli.options import parse_comparison, parse_one
from similia.cli.voice import called, note
from similia.core.text import did_you_mean, listed, short
from similia.core.validation import BadFile, BadItem, DataError
from similia.objects.molecules import SmilesBatch
from similia.pipelines import parts_of
from similia.planning.forecasts import kind_of
from similia.scale.stream import bounds
from similia.similarity import evaluate, note_on_case
from similia.sources import Objects
from similia.sources.files import check_ending, read_with
from similia.sources.source import Held, Reading, Source, ending_of, missing_among, place_of, typed
from similia.sources.streams import ObjectStream, is_table, known_columns, meaningless, remembered, table_choice

_SEEN = 1000  # number of strings that are looked at, to tell whether they are numbers
_PAIRED, _SHORT = 100, 50  # number of strings that are compared in pairs, if their mean length is at most this
_APART = 0.8  # the user is told if a larger share of these pairs has nothing in common
DEFAULT_KERNEL = {
    "strings": "GappyKmers(k=4, gaps=1)",
    "graphs": "WeisfeilerLehman(n_iter=3, normalize=True)",
    "vectors": "RBF()",
}
NORMALIZED_KERNEL = DEFAULT_KERNEL | {"strings": "GappyKmers(k=4, gaps=1, normalize=True)"}  # of objects of any size
DEFAULT_DISTANCE = {"strings": "Levenshtein()", "series": "DTW()", "sets": "ModifiedHausdorff()"}
_OTHER = {
    "strings": "; --text names another column, of strings",
    "graphs": "; --smiles names another column, of molecules",
    "series": "; --values names other columns, of numbers, and --time and --id those of a long table",
}


def read_objects(data: str, *, labelled: bool = True, **table: Any) -> Objects:
    """Read a file or a named data set; print which columns similia chose and how many rows it skipped.

    `table` has the options of `similia.sources.read_objects`. If `labelled`, a missing label is an error.
    """
    reading, path = Reading(**table), Path(data)
    if not path.exists():
        return _named(data, reading)
    check_ending(path, reading)
    found = read_with(path, reading, labelled)
    if found.told:
        note(f"note: {called(data)}: {found.told}")
    note_skipped(data, found.skips)
    return found


def read_labelled(data: str, **table: Any) -> Objects:
    """Read labelled objects; raise if there are no labels, or if rows look like time points but --time is not given."""
    found = read_objects(data, **table)
    text = Reading(**table).text
    if text is not None and found.kind == "strings" and not isinstance(typed(found.objects[:_SEEN].tolist())[0], str):
        note(
            f"note: column {short(text)} holds only numbers, which are compared letter by letter; if their values "
            f"matter, use --values {text}"
        )
    if found.kind in ("vectors", "series") and has_columns(data, **table) and not table.get("time"):
        names = [name for name in found.names or [] if name]
        if len(set(names)) < len(names):
            raise BadFile(
                data,
                f"repeats names in {table['names']!r}; add --time COLUMN if each row is one time point of the series "
                "with this name, else drop --id",
            )
    if found.labels is None:
        if found.kind == "vectors" and ending_of(Path(data)) == ".npy":
            raise BadFile(data, "holds vectors without labels; write both with numpy.savez('both.npz', X=X, y=y)")
        raise BadFile(data, "has no labels; --label names their column (or their field of FASTA headers)")
    return found


def labels_for_page(read: Objects, asked: bool) -> Any:
    """Return the labels of objects; unless an option `asked` for them, None if objects lack one or have several."""
    if read.labels is None or asked:
        return read.labels
    if read.labels.ndim > 1:  # several attributes of each graph
        return None
    if missing := missing_among(read.labels.tolist()):
        lack = f"{len(missing)} of {len(read.labels)} {read.called} have none"
        note(f"note: the page shows no labels, because {lack}; --label with --on-error skip leaves these out")
        return None
    return read.labels


def note_skipped(source: str, skips: Any) -> None:
    if skips is not None and skips.first is not None:
        line, why = skips.first
        rows = "1 row was" if skips.n == 1 else f"{skips.n} rows were"
        listed = "(--skipped FILE lists all)" if skips.path is None else f"and listed in {skips.path}"
        note(f"note: {rows} left out of {called(source)} {listed}; the first, in line {line}: {why}")


def has_columns(data: str, **table: Any) -> bool:
    """Return whether `data` is a table, by its ending or because a separator is given."""
    return is_table(Path(data), Reading(**table))


def open_objects(data: str, *, chunk: int, workers: Any = None, **table: Any) -> Source:
    """Open objects as a source of chunks that fit into memory; read the first object at once, to raise errors early."""
    reading, path = Reading(**table), Path(data)
    if not path.exists():
        return Held(_named(data, reading), chunk)
    check_ending(path, reading)
    limits: dict[str, Any] = bounds(chunk, workers)
    source = sources.open_objects(path, reading, **limits)
    if isinstance(source, ObjectStream):
        sources.open_objects(path, reading, chunk=1, max_bytes=limits["max_bytes"]).take([0])
    source.source = data
    if source.told:
        note(f"note: {called(data)}: {source.told}")
    source.at_end = _print_skipped
    return source


def _print_skipped(source: Any) -> None:
    """Print the number of skipped objects. A source calls this once, after its last object."""
    source.at_end = None
    note_skipped(source.source, source.skips)


def _named(name: str, reading: Reading) -> Objects:
    known = sm.datasets.available()
    if name not in known:
        beside = [str(path) for path in Path(name).parent.iterdir()] if Path(name).parent.is_dir() else []
        meant = did_you_mean(name, [*known, *beside])
        raise ValueError(
            f"{name} is neither a file, a folder nor a data set{meant}; data sets are promoters, splice, MUTAG and "
            f"{len(known) - 3} others, listed by similia.datasets.available()"
        )
    for option in reading.is_set("text", "smiles", "values", "names", "series", "time", "axes", "sep"):
        raise meaningless(name, option, "")
    bunch = sm.datasets.fetch(name)
    kind, data = bunch.kind, bunch.data
    if kind == "molecules":
        kind, data = "graphs", sm.objects.from_smiles(data)
    elif kind == "vectors":
        data = data.reshape(len(data), -1)
    elif kind == "strings":
        data = sm.objects.as_strings(data)
    return Objects(name, kind, data, np.asarray(bunch.target), called=bunch.kind)


# ---- the columns of a table, which a model remembers
def columns_of(data: str, table: dict[str, Any]) -> dict[str, Any]:
    """Return the options that name the columns of a table with a header; {} for other data."""
    path, reading = Path(data), Reading(**table)
    if not path.is_file() or not is_table(path, reading) or not reading.header:
        return {}
    choice, header = table_choice(path, reading)
    columns, label = [header[j] for j in choice.objects], table.get("label") or "label"
    if choice.kind in ("strings", "graphs"):
        return {"text" if choice.kind == "strings" else "smiles": columns[0], "label": label}
    long = {} if reading.time is None else {"time": reading.time}
    return {"values": columns, "series": choice.kind == "series", "label": label} | long


def remember_columns(model: Any, data: str, table: dict[str, Any]) -> None:
    if columns := columns_of(data, table):
        named = table.get("names")
        model.table_columns_ = columns if named is None else columns | {"names": named}


def with_columns_of(
    model: Any,
    data: str,
    table: dict[str, Any],
    *,
    labelled: bool = False,
    named: bool = False,
    kind: str | None = None,
) -> dict[str, Any]:
    """Return `table` with the columns that the model remembers, if the file has them and no option names others.

    The objects are read as `as_compared` says; `kind` is passed to it.
    """
    compared = comparison_in(model)
    table = smiles_as_text(compared, table)
    reading, known = Reading(**table), known_columns(model)
    added = remembered(model, Path(data), reading, labelled, named)
    if "time" in known and added.keys() & {"time", "names", "values"}:
        shown = {"time": "time", "names": "id", "values": "values"}
        parts = [f"{shown[o]} {listed(np.ravel(added[o]).tolist())}" for o in shown if o in added]
        note(f"note: {called(data)} is read as a long table with {'; '.join(parts)}, as in the model's training data")
    own = known.get("values")
    if own is not None and reading.values not in (None, own) and has_columns(data, **table):
        others = f"{listed(reading.values)} (--values), but the model was trained on {listed(own)}"
        note(f"note: {called(data)}: the objects are read from {others}")
    column = added.get("text", added.get("smiles", "text"))
    if column != "text":
        note(f"note: {called(data)}: the objects are read from column {column!r}, as in the model's training data")
    return as_compared(data, compared, table | added, kind)


# ---- the similarity by which a model compares objects
def named_comparison(read: Objects, kernel: str | None, distance: str | None) -> Any:
    """Return the kernel or distance of an option, or else the default for the kind of objects, which is printed.

    Raise if it cannot compare the objects.
    """
    if (named := parse_one(kernel, distance)) is None:
        usual = NORMALIZED_KERNEL.get(read.kind) or DEFAULT_DISTANCE[read.kind]
        note(f"note: {read.called} are compared by {usual}; --kernel or --distance chooses another")
        named = parse_comparison(usual)
    print_note_on_case(read, named)
    check_comparison(named, read, read.objects)
    if kernel is None and distance is None and read.kind == "strings":
        _print_note_on_short_strings(read, named)
    return named


def _print_note_on_short_strings(read: Objects, kernel: Any) -> None:
    """Print that most pairs of short strings have nothing in common under `kernel`, if a sample says so."""
    X = read.objects
    if X.offsets[-1] > _SHORT * len(X) or len(X) < 2:
        return
    drawn = X[np.unique(np.linspace(0, len(X) - 1, _PAIRED).astype(np.int64))]
    apart = float(np.mean(evaluate(kernel, drawn)[np.triu_indices(len(drawn), 1)] == 0))
    if apart > _APART:
        note(
            f"note: {called(read.source)}: {apart:.0%} of the pairs of strings have nothing in common under this "
            'kernel; for short strings, try --kernel "Spectrum(k=2, normalize=True)" or --distance "JaroWinkler()"'
        )


def print_note_on_case(read: Objects, *compared: Any) -> None:
    if text := note_on_case(read.objects, *compared):
        note(f"note: {called(read.source)}: {text}")


def comparison_in(model: Any) -> Any:
    """Return the kernel or distance of a model (for an ensemble, of its first model), or None if it has none."""
    parts = parts_of(model)
    found = parts.comparison(fitted=False)
    function = getattr(parts.model, "similarity", None) if found is None else found.function  # clusters, outliers
    return function if hasattr(function, "as_objects") else None


def smiles_as_text(compared: Any, table: dict[str, Any]) -> dict[str, Any]:
    """Return `table`; read the column of --smiles as strings if `compared` reads SMILES itself, as `Morgan` does."""
    column = table.get("smiles")
    if column is None or table.get("text") is not None or not isinstance(_strings_in(compared), SmilesBatch):
        return table
    return {**table, "smiles": None, "text": column}


def as_compared(data: str, compared: Any, table: dict[str, Any], kind: str | None = None) -> dict[str, Any]:
    """Return `table` with what `compared` needs: SMILES as strings if it reads SMILES, rows of numbers as series.

    `kind` is that of the objects; by default, what `compared` takes. Only with `kind`, rows of a ``.npy`` are read as
    series: similarities take them as they are, and as vectors they need not fit into memory.
    """
    table = smiles_as_text(compared, table)
    path, reading = Path(data), Reading(**table)
    if not path.is_file() or reading.kind not in (None, "vectors") or (kind or kind_of(compared)) != "series":
        return table
    numbers = ending_of(path) == ".npz"
    if is_table(path, reading) or (ending_of(path) == ".npy" and kind is not None):
        numbers = ObjectStream(path, reading, 1, 2**26).kind == "vectors"
    if not numbers:
        return table
    why = "the index holds series" if compared is None else f"{compared} compares series"
    note(f"note: the rows of {called(data)} are read as series, because {why}")
    return {**table, "series": True}


def check_comparison(compared: Any, read: Objects | Source, objects: Any, fitted: bool = False) -> None:
    """Raise if a kernel or distance cannot compare `objects`; for a `fitted` model, the error names columns."""
    if compared is None:
        return
    try:
        compared.as_objects(objects)
    except (TypeError, ValueError) as error:
        if kind_of(compared) == read.kind or (read.kind == "strings" and _strings_in(compared) is not None):
            if isinstance(error, BadItem):
                raise _placed(error, read) from error
            if isinstance(error, DataError):
                raise error.changed(path=str(read.source)) from error
            raise BadFile(read.source, f"cannot be compared: {error}") from error
        advice = ""
        if (kind_of(compared), read.kind) == ("graphs", "strings"):
            advice = "; --smiles instead of --text reads SMILES as molecules"
        elif read.kind == "graphs" and has_columns(read.source) and _strings_in(compared) is not None:
            advice = "; --text instead of --smiles reads the column as strings"
        columns = ""
        if fitted:
            columns, other = _columns_for(kind_of(compared), read.columns)
            advice = advice or other
        else:
            fitting = [d[read.kind] for d in (DEFAULT_KERNEL, DEFAULT_DISTANCE) if read.kind in d]
            advice = f"; use e.g. {' or '.join(fitting)}{advice}"
        found = f"holds {read.called}{columns}, which {compared} does not compare{advice}"
        raise BadFile(read.source, found) from error


def check_kind(model: Any, read: Objects | Source, objects: Any) -> None:
    """Raise if a fitted model takes objects of another kind than `objects`, which were read from a file."""
    compared = comparison_in(model)
    if compared is not None:
        check_comparison(compared, read, objects, fitted=True)
        return
    known = getattr(model, "table_columns_", {})  # of models that compare nothing, such as ridge on numbers
    kinds = {"text": "strings", "smiles": "graphs", "values": "series" if known.get("series") else "vectors"}
    wanted = next((kind for option, kind in kinds.items() if option in known), read.kind)
    if wanted != read.kind:
        columns, advice = _columns_for(wanted, read.columns)
        found = f"holds {read.called}{columns}, and the model was fitted to {wanted}{advice}"
        raise BadFile(read.source, found)


@contextmanager
def placed_in(read: Objects | None) -> Iterator[None]:
    """Return a context that adds, to an error about an object of `read`, the file and the place of the object."""
    try:
        yield
    except BadItem as error:
        if read is None or error.collection != "X":
            raise
        raise _placed(error, read) from error


def _placed(error: BadItem, read: Objects | Source) -> BadItem:
    """Return the error with the file and the place of its object; if rows were skipped, say why not this one."""
    if error.index is None:
        return error.changed(path=str(read.source))
    only = "--on-error skip leaves out only rows that cannot be read, not those that the similarity refuses"
    remedy = error.remedy if read.skips is None else f"{error.remedy}; {only}" if error.remedy else only
    return error.changed(path=str(read.source), at=_place(error.index, read), remedy=remedy)


def _columns_for(wanted: str | None, columns: Sequence[str]) -> tuple[str, str]:
    """Return two parts of an error message: the columns that were read, and how to name others of the `wanted` kind."""
    if not columns:
        return "", f"; give a file of {wanted}" if wanted else ""
    return f" (column{'s' * (len(columns) > 1)} {listed(columns)})", _OTHER.get(str(wanted), "")


def _place(i: int, read: Objects | Source) -> str:
    lines, names = getattr(read, "lines", None), getattr(read, "names", None)
    name = None if names is None else names[i]
    return place_of(i, lines, "object") + (f", {short(name)}" if isinstance(name, str) else "")  # else a row's number


def _strings_in(compared: Any) -> Any:
    """Return a string in the layout that a kernel or distance works on, or None if it takes no strings."""
    try:
        return compared.as_objects(sm.objects.as_strings(["C"]))
    except (AttributeError, TypeError, ValueError):  # a function, or None, has no `as_objects`
        return None
