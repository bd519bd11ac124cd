"""Results as a terminal table, a page in Markdown, CSV and a picture."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.storage.disk import write_atomically

Record = dict[str, Any]


@dataclass
class Table:
    """A titled table; cells are shown as they are, floats with one decimal."""

    title: str
    columns: Sequence[str]
    rows: list[Sequence[Any]] = field(default_factory=list)

    def to_markdown(self) -> str:
        """Return the table in Markdown, under its title in bold."""
        lines = [f"**{self.title}**", "", "| " + " | ".join(self.columns) + " |", "|---" * len(self.columns) + "|"]
        lines += ["| " + " | ".join(map(_cell, row)) + " |" for row in self.rows]
        return "\n".join(lines)

    def print(self, console: Any = None) -> None:
        """Draw the table on the terminal, or on a console of rich."""
        from rich.console import Console
        from rich.table import Table as RichTable

        table = RichTable(*self.columns, title=self.title, title_justify="left")
        for row in self.rows:
            table.add_row(*map(_cell, row))
        (console or Console()).print(table)


@dataclass
class Section:
    """What one experiment reports: single results, and how tables and a picture are made of them.

    Attributes
    ----------
    name : str
        Name of the experiment, as in ``python dev.py reproduce NAME``.
    title, text : str
        Heading and explanation (protocol, findings that do not depend on the numbers).
    records : list of dict
        Single results, each with a ``"set"``.
    present : callable
        records -> (tables, matplotlib figure or None).
    """

    name: str
    title: str
    text: str
    records: list[Record]
    present: Callable[[list[Record]], tuple[list[Table], Any]]

    @property
    def tables(self) -> list[Table]:
        """The tables of these results."""
        return self.present(self.records)[0]

    def known(self, folder: str | os.PathLike[str]) -> list[Record]:
        """Return the single results in ``reproduction/NAME.csv``; none if there is no such file."""
        table = Path(folder) / "reproduction" / f"{self.name}.csv"
        return _read_csv(table) if table.exists() else []

    def write_rows(self, folder: str | os.PathLike[str]) -> Path:
        """Write ``reproduction/NAME.csv`` and return its path; results of other data sets in the file are kept."""
        table = Path(folder) / "reproduction" / f"{self.name}.csv"
        table.parent.mkdir(parents=True, exist_ok=True)
        measured = {record["set"] for record in self.records}
        _write_csv([*(record for record in self.known(folder) if record["set"] not in measured), *self.records], table)
        return table

    def write(self, folder: str | os.PathLike[str]) -> Path:
        """Write ``reproduction/NAME.csv``, ``.md`` and ``.svg``; return the path of the page.

        Results of data sets that the CSV file holds and this run did not measure are kept, so that an
        experiment can be run set by set.
        """
        table = self.write_rows(folder)
        parts = table.parent
        tables, figure = self.present(_read_csv(table))
        seeds = 1 + max(record["run" if "run" in record else "seed"] for record in _read_csv(table))
        command = f"python dev.py reproduce {self.name} --seeds {seeds} --output docs"
        lines = [f"# {self.title}", "", f"`{command}`", "", self.text.strip(), ""]
        for shown in tables:
            lines += [shown.to_markdown(), ""]
        if figure is not None:
            _save_svg(figure, parts / f"{self.name}.svg")
            lines += [f"![{self.title}]({self.name}.svg)", ""]
        lines += [f"All single results: [{self.name}.csv]({self.name}.csv).", ""]
        page = parts / f"{self.name}.md"
        write_atomically(page, "\n".join(lines).encode())
        return page


def values(records: Sequence[Record], column: str, **where: Any) -> list[Any]:
    """Return `column` of the records in which every column named in `where` has that value."""
    return [r[column] for r in records if all(r[key] == wanted for key, wanted in where.items())]


def distinct(records: Sequence[Record], column: str) -> list[Any]:
    """Return the distinct values of `column` in the order they first occur."""
    return list(dict.fromkeys(record[column] for record in records))


def summary(accuracies: Sequence[float]) -> str:
    """Return mean ± standard deviation (n - 1) of accuracies; an empty text for none."""
    if not accuracies:
        return ""
    return mean_sd(float(np.mean(accuracies)), float(np.std(accuracies, ddof=1)) if len(accuracies) > 1 else 0.0)


def standard_error(scores: Sequence[float] | npt.NDArray) -> float:
    """Return the standard error of the mean; 0 for one score."""
    return float(np.std(scores, ddof=1)) / len(scores) ** 0.5 if len(scores) > 1 else 0.0


def mean_with_error(scores: Sequence[float]) -> str:
    """Return mean ± standard error of scores."""
    return mean_sd(float(np.mean(scores)), standard_error(scores))


def mean_sd(mean: float, sd: float) -> str:
    """Return ``mean ± sd`` with one decimal."""
    return f"{mean:.1f} ± {sd:.1f}"


def _cell(value: Any) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def _write_csv(records: list[Record], path: Path) -> None:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(dict.fromkeys(key for record in records for key in record)))
    writer.writeheader()
    writer.writerows(records)
    write_atomically(path, text.getvalue().encode())


def _read_csv(path: Path) -> list[Record]:
    with path.open(newline="", encoding="utf-8") as file:
        return [{key: _number(text) for key, text in row.items()} for row in csv.DictReader(file)]


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _save_svg(figure: Any, path: Path) -> None:
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "similia", "svg.fonttype": "none"}):
        figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")
