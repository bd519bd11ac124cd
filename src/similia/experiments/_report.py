"""Results as a terminal table, CSV and Markdown; ``reproduction.md`` is put together from the sections."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_HEAD = """# Reproduction of the published tables

Every section below was written by the command that stands in it. Accuracies are percent, mean ± standard
deviation; the paper's numbers are quoted, all others were measured by that command.
"""


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

    def print(self) -> None:
        """Draw the table on the terminal."""
        from rich.console import Console
        from rich.table import Table as RichTable

        table = RichTable(*self.columns, title=self.title, title_justify="left")
        for row in self.rows:
            table.add_row(*map(_cell, row))
        Console().print(table)


@dataclass
class Section:
    """What one experiment reports.

    Attributes
    ----------
    name : str
        Name of the experiment, as in ``similia reproduce NAME``.
    title, text : str
        Heading and explanation (protocol, findings that do not depend on the numbers).
    command : str
        What wrote it.
    tables : list of Table
    records : list of dict
        Every single result, for the CSV file.
    figure : matplotlib figure, optional
    """

    name: str
    title: str
    text: str
    command: str
    tables: list[Table] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)
    figure: Any = None

    def write(self, folder: str | os.PathLike[str]) -> Path:
        """Write ``reproduction/NAME.md``, ``.csv`` and ``.svg``, and put ``reproduction.md`` together anew."""
        parts = Path(folder) / "reproduction"
        parts.mkdir(parents=True, exist_ok=True)
        lines = [f"## {self.title}", "", f"`{self.command}`", "", self.text.strip(), ""]
        for table in self.tables:
            lines += [table.to_markdown(), ""]
        if self.figure is not None:
            _save_svg(self.figure, parts / f"{self.name}.svg")
            lines += [f"![{self.title}](reproduction/{self.name}.svg)", ""]
        if self.records:
            _write_csv(self.records, parts / f"{self.name}.csv")
            lines += [f"All single results: [{self.name}.csv](reproduction/{self.name}.csv).", ""]
        _write_text(parts / f"{self.name}.md", "\n".join(lines))
        sections = [path.read_text(encoding="utf-8") for path in sorted(parts.glob("*.md"))]
        page = Path(folder) / "reproduction.md"
        _write_text(page, "\n".join([_HEAD, *sections]))
        return page


def mean_sd(mean: float, sd: float) -> str:
    """Return ``mean ± sd`` with one decimal."""
    return f"{mean:.1f} ± {sd:.1f}"


def _cell(value: Any) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def _write_text(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)


def _write_csv(records: list[dict[str, Any]], path: Path) -> None:
    columns = list(dict.fromkeys(key for record in records for key in record))
    temporary = path.with_name(f".{path.name}.part")
    with temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(records)
    os.replace(temporary, path)


def _save_svg(figure: Any, path: Path) -> None:
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "similia", "svg.fonttype": "none"}):
        figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")
