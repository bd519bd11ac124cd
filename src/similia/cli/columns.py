"""Store the columns of a table with the model fitted to it, and read them again unless options name others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from similia.cli.voice import called, note
from similia.sources.reading import Reading
from similia.sources.rows import parquet_file
from similia.sources.streams import ObjectStream, is_table, table_of

_NAMING = ("text", "smiles", "values", "series", "time", "axes")  # options that say what the objects are


def columns_of(data: str, table: dict[str, Any]) -> dict[str, Any]:
    """Return the options that name the columns read as objects and labels; none for other files."""
    path, reading = Path(data), Reading(**table)
    if not path.is_file() or not is_table(path, reading) or reading.time or not reading.header:
        return {}
    stream = ObjectStream(path, reading, 1, 2**26)
    label = table.get("label") or "label"
    if stream.kind in ("strings", "graphs"):
        return {"text" if stream.kind == "strings" else "smiles": stream.columns[0], "label": label}
    return {"values": stream.columns, "series": stream.kind == "series", "label": label}


def with_columns_of(model: Any, data: str, table: dict[str, Any], *, labelled: bool = False) -> dict[str, Any]:
    """Return how to read a table for a model: by the model's columns, if the table has them and no option differs."""
    known = getattr(model, "table_columns_", {})
    path, reading = Path(data), Reading(**table)
    if not known or not path.is_file() or not is_table(path, reading) or not reading.header:
        return table
    names = {*_names(path, reading)}
    objects = {option: value for option, value in known.items() if option != "label"}
    column = next(iter(objects.values()))
    there = names.issuperset([column] if isinstance(column, str) else column)
    added = objects if there and not any(table.get(option) for option in _NAMING) else {}
    usual = not added or column == "text" or not isinstance(column, str)
    if labelled and table.get("label") is None and known["label"] in names:
        added = added | {"label": known["label"]}
    if not usual:
        note(f"note: {called(data)}: the objects are in column {column!r}, as the model was fitted")
    return table | added


def _names(path: Path, reading: Reading) -> list[str]:
    if path.suffix == ".parquet":
        with parquet_file(path) as file:
            return list(file.schema_arrow.names)
    return list(table_of(path, reading).first)
