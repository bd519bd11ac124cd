"""Rows of a file that were left out because they are bad: how many, the first one, and a list of all in a file."""

from __future__ import annotations

import csv
from pathlib import Path

_HEAD = ["line", "reason"]


class Skips:
    """Rows left out while a file is read, in constant memory.

    A file may be read several times and from any row on. Each reading begins with `begin`, which forgets the rows from
    there on, so that the list is complete and free of repeats when the last reading ends.

    Parameters
    ----------
    path : path, optional
        The CSV file that lists them: the line where each begins (rows of Parquet are numbered from 0), and what is
        wrong with it. It is not there while no row is left out.

    Attributes
    ----------
    n : int
        Number of rows left out.
    first : tuple of int and str, optional
        Line of the first one, and what is wrong with it.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path, self.n = path, 0
        self.first: tuple[int, str] | None = None

    def begin(self, line: int) -> None:
        """Forget the rows from `line` on, which are read now."""
        self.n, self.first = 0, None
        if self.path is None or not self.path.exists():
            return
        with self.path.open(newline="", encoding="utf-8") as file:
            rows = csv.reader(file)
            if next(rows, None) != _HEAD:
                raise ValueError(
                    f"{self.path} is another file and would be overwritten by the list of skipped rows; rename it"
                )
            kept = [(int(place), why) for place, why in rows if int(place) < line]
        self.path.unlink()
        for place, why in kept:
            self.add(place, why)

    def sort(self) -> None:
        """Put the list in order of lines, after rows were left out for one reason and then for another."""
        if self.path is None or not self.path.exists():
            return
        with self.path.open(newline="", encoding="utf-8") as file:
            head, *rows = csv.reader(file)
        with self.path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([head, *sorted(rows, key=lambda row: int(row[0]))])

    def add(self, line: int, why: str) -> None:
        """List a row."""
        if self.first is None or line < self.first[0]:
            self.first = line, why
        self.n += 1
        if self.path is not None:
            new = not self.path.exists()
            with self.path.open("a", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows([_HEAD, [line, why]] if new else [[line, why]])
