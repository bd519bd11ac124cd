"""Write the results of commands, and report progress."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.cli.voice import console, note, tell_stopped, voice, written
from similia.core.config import config
from similia.scale.stream import Progress, of
from similia.sources.source import ROW, Chunk, Objects, Reading, ending_of, key_column
from similia.sources.streams import FASTA, FASTQ, LINES, ROWS, TABLES
from similia.storage.disk import replacing, write_atomically
from similia.storage.models import written_by

_DATA = TABLES | ROWS | LINES | FASTA | FASTQ | {".npz", ".ts", ".zip"}


def check_output(output: Path | None, *inputs: str | Path | None) -> None:
    """Raise early if `output` is a folder or one of the inputs, or if its own folder does not exist."""
    if output is None:
        return
    if not output.parent.is_dir():
        raise ValueError(f"the folder {output.parent} does not exist; make it first")
    if output.is_dir():
        raise ValueError(f"{output} is a folder; name a file to write")
    for given in inputs:
        if given is not None and output.exists() and Path(given).exists() and output.samefile(given):
            raise ValueError(f"{output} is an input of this command and would be overwritten; name another output")


def check_model(output: Path | None, *inputs: str | Path | None) -> None:
    """Raise as `check_output` does, or if `output` is a file of data, by its ending, that a model would replace."""
    check_output(output, *inputs)
    if output is not None and output.is_file() and ending_of(output) in _DATA:
        with output.open("rb") as file:
            if written_by(file) is None:
                raise ValueError(f"{output} is a file of data, which the model would replace; name another output")


def check_table(output: Path | None, *inputs: str | Path | None) -> None:
    """Raise as `check_output` does, or if `output` ends neither in .csv nor in .parquet."""
    check_output(output, *inputs)
    if output is not None and output.suffix.lower() not in (".csv", ".parquet"):
        raise ValueError(f"tables are written as CSV or Parquet; give {output} the ending .csv or .parquet")


def check_page(output: Path | None, *inputs: str | Path | None) -> None:
    """Raise as `check_output` does, or if `output` ends neither in .html nor in .htm."""
    check_output(output, *inputs)
    if output is not None and output.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"the output is an HTML page; end {output} in .html")


def check_id(table: dict[str, Any], *results: str) -> None:
    """Raise if the column of --id is called like one of `results`, the other columns of a table that is written."""
    key_column(Reading(**table).names, True, (ROW, *results))


def name_column(table: dict[str, Any], named: bool) -> str | None:
    """Return what the column of names is called in results: like the column of --id; None for objects without names."""
    return key_column(Reading(**table).names, named) if named else None


def keys_of(found: Objects | Chunk, column: str | None) -> dict[str, Any]:
    """Return the first columns of a table of results: the position of each object in its file, and its name if any.

    `column`, from `name_column`, is what the column of names is called.
    """
    rows = positions_of(found)
    return {ROW: rows} if column is None else {ROW: rows, column: list(found.names or [])}


def positions_of(found: Objects | Chunk) -> npt.NDArray[np.int64]:
    """Return the position of each object in its file, counted from 0; rows that were left out count."""
    first = found.start if isinstance(found, Chunk) else 0
    return first + np.arange(len(found.objects)) if found.rows is None else found.rows


@contextmanager
def stoppable(done: Callable[[], int] | None = None, n: int | None = None) -> Iterator[None]:
    """If Ctrl-C stops the block, print how to resume and, with `done`, how many objects are done."""
    try:
        yield
    except KeyboardInterrupt as stop:
        so_far = "" if done is None else f" after {of(done(), n)}"
        tell_stopped(stop, f"{so_far}; run the same command again to resume")
        raise


def size_of(n_bytes: int) -> str:
    """Return a size for messages, such as "45 kB" or "7.0 MB"."""
    if n_bytes < 1000:
        return f"{n_bytes} bytes"
    return f"{n_bytes / 1e3:.0f} kB" if n_bytes < 1e5 else f"{n_bytes / 1e6:.1f} MB"


class Spoken(Progress):
    def resumed(self, text: str) -> None:
        console().print(text)

    def restarted(self, text: str) -> None:
        note(f"note: {text}")

    def damaged(self, text: str) -> None:
        note(f"warning: {text}")


def print_written(output: Path, about: str = "", page: Path | None = None) -> None:
    opened = "" if page is None else f"; open {'it' if page == output else page} in a browser"
    console(highlight=False).print(f"wrote {written(output)}{about}{opened}")


def bars() -> Any:
    how = voice()
    return config(progress=not how.quiet and (how.verbose or sys.stderr.isatty()))


def meters() -> Any:
    return config(progress=not voice().quiet)


def write_csv(rows: list[dict[str, Any]], column: str, output: Path | None) -> None:
    """Write rows as CSV, the numbers of `column` with six digits: to a file or, without --json, to the terminal."""
    if output is None and voice().json:
        return
    rows = [{**row, column: f"{row[column]:.6g}"} for row in rows]
    cells = [list(rows[0]), *(list(row.values()) for row in rows)]
    if output is None:
        csv.writer(sys.stdout, lineterminator="\n").writerows(cells)
        return
    lines = io.StringIO(newline="")
    csv.writer(lines).writerows(cells)
    write_atomically(output, lines.getvalue().encode())


def write_blocks(blocks: Iterable[dict[str, Any]], path: Path) -> None:
    """Write a table as CSV or Parquet, completely or not at all; `blocks`, at least one, hold columns of some rows."""
    with replacing(path) as file:
        if path.suffix.lower() == ".csv":
            text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
            writer = csv.writer(text)
            for number, columns in enumerate(blocks):
                lists = [column if isinstance(column, list) else column.tolist() for column in columns.values()]
                writer.writerows([list(columns)] if number == 0 else [])
                writer.writerows(zip(*lists, strict=True))
            text.detach()
            return
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError:
            raise ValueError("Parquet needs pyarrow: pip install pyarrow, or end the output in .csv") from None
        rest = iter(blocks)
        first = pyarrow.table(next(rest))
        with parquet.ParquetWriter(file, first.schema) as writer:
            writer.write_table(first)
            for columns in rest:
                writer.write_table(pyarrow.table(columns, schema=first.schema))
