"""Read objects and labels from files, folders and named data sets, whole or in chunks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import similia as sm
from similia import sources
from similia.cli.voice import called, note
from similia.core.errors import BadFile
from similia.core.text import did_you_mean, short
from similia.scale.stream import bounds
from similia.sources import Objects
from similia.sources.files import check_ending, read_with
from similia.sources.reading import Reading, ending_of, typed
from similia.sources.source import Held, Source
from similia.sources.streams import ObjectStream, is_table, meaningless

_SEEN = 1000  # number of strings that are looked at, to tell whether they are numbers


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
    if name not in sm.datasets.available():
        known = sm.datasets.available()
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
