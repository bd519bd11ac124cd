"""Cells of a table to objects: SMILES to molecules, columns of numbers to vectors or series, a few rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.text import _short
from similia.objects._vectors import SeriesBatch
from similia.sources._blocks import Records
from similia.sources._skipped import Skips
from similia.sources.reading import MISSING, Choice, is_number

PER_LETTER = 2**6  # bytes of a molecule for each letter of its SMILES: an atom, a bond in both directions
_LEAVE = "leave the row out (on_error='skip' or --on-error skip)"

_SERIES = ", or read each row as a series, without the empty cells at its end (series=True or --series)"


class Converter:
    """What makes objects of the records of a table or a file of lines.

    Parameters
    ----------
    path : path
    choice : Choice
    header : list of str
        Names of the columns, for sentences.
    decimal : str
    skips : Skips, optional
        Where bad rows are listed; if not given, they raise.
    """

    def __init__(
        self, path: Any, choice: Choice, header: list[str], decimal: str = ".", skips: Skips | None = None
    ) -> None:
        self.path, self.choice, self.header, self.decimal, self.skips = path, choice, header, decimal, skips

    def records(self, records: Iterator[Records], max_bytes: int) -> Iterator[Records]:
        """Yield records whose first column holds objects, without those that are bad."""
        if self.choice.kind == "strings":
            yield from records
            return
        convert = self._molecules if self.choice.kind == "graphs" else self._numbers
        for part in records:
            for piece in _pieces(part, max_bytes // PER_LETTER if self.choice.kind == "graphs" else max_bytes):
                objects, kept = convert(piece)
                if len(kept):
                    rest = tuple(column.take(kept) for column in piece.columns[len(self.choice.objects) :])
                    yield _kept(piece, (objects, *rest), kept)

    def _molecules(self, part: Records) -> tuple[Any, npt.NDArray[np.int64]]:
        """Return SMILES as graphs, and which of the rows they are."""
        from similia.objects.molecules import read_smiles

        full = [i for i, text in enumerate(part.columns[0]) if text]
        empty = set(range(len(part.ends))) - set(full)
        bad = dict.fromkeys(empty, ("the cell with the SMILES is empty", "fill it in or " + _LEAVE))

        def refuse(i: int, why: str) -> None:
            bad[full[i]] = (f"found {why}", "correct it or " + _LEAVE)

        graphs = read_smiles(part.columns[0].take(full), bad=refuse) if full else None
        for i in sorted(bad):
            self._refuse(part, i, *bad[i])
        return graphs, np.array([i for i in full if i not in bad], np.int64)

    def _numbers(self, part: Records) -> tuple[Any, npt.NDArray[np.int64]]:
        """Return columns of numbers as vectors or series, and which of the rows they are."""
        width = len(self.choice.objects)
        columns = part.columns[:width]
        rows = np.column_stack([self._floats(column) for column in columns])
        present = ~np.isnan(rows)
        lengths = np.where(present.any(axis=1), width - np.argmax(present[:, ::-1], axis=1), 0)
        if self.choice.kind != "series":
            lengths[:] = width
        needed = np.arange(width) < lengths[:, None]
        good = np.isfinite(rows) | ~needed
        kept = np.flatnonzero(good.all(axis=1) & (lengths > 0))
        for i in np.setdiff1d(np.arange(len(rows)), kept).tolist():
            if lengths[i] == 0:
                self._refuse(part, i, "the row holds no numbers", _LEAVE)
                continue
            j = int(good[i].argmin())
            cell = columns[j][i] if not isinstance(columns[j], np.ndarray) else columns[j][i].item()
            cut = self.choice.kind == "vectors" and present[i].any() and not present[i, j:].any()
            self._refuse(part, i, self._problem(j, cell), "correct it or " + _LEAVE + (_SERIES if cut else ""))
        if self.choice.kind == "vectors":
            return rows[kept], kept
        offsets = np.concatenate(([0], np.cumsum(lengths[kept]))).astype(np.int64)
        return SeriesBatch(rows[kept][needed[kept]][:, None], offsets), kept

    def _problem(self, j: int, cell: Any) -> str:
        name = _short(self.header[self.choice.objects[j]])
        if isinstance(cell, str) and cell.strip().lower() in MISSING | {"inf", "-inf", "infinity"}:
            return f"the number in column {name} is missing or infinite"
        found = f"column {name} holds {_short(cell)}, expected a finite number"
        if isinstance(cell, str) and self.decimal == "." and is_number(cell, ","):
            return f"{found} (if that is a decimal comma: decimal=',' or --decimal ,)"
        return found

    def _floats(self, column: Any) -> npt.NDArray[np.float64]:
        """Return numbers; NaN where one is missing, infinity where there is something else."""
        if isinstance(column, np.ndarray):
            return column
        cells = column.tolist()
        if self.decimal != ".":
            cells = [cell.replace(self.decimal, ".") for cell in cells]
        try:
            values = np.array(cells, dtype=np.float64)
        except ValueError:
            values = np.array([_number(cell) for cell in cells])
        return values

    def _refuse(self, part: Records, i: int, why: str, remedy: str) -> None:
        """List row i as left out, or raise."""
        number = int(part.rows[i]) if part.begins is None and part.rows is not None else 0
        place = f"row {number} (from 0)" if part.begins is None else f"line {part.begins[i]}"
        if self.skips is None:
            raise ValueError(f"{self.path}, {place}: {why}; {remedy}")
        self.skips.add(number if part.begins is None else int(part.begins[i]), why)


def _number(cell: str) -> float:
    if cell.strip().lower() in MISSING:
        return np.nan
    return float(cell) if is_number(cell) else np.inf


def _pieces(part: Records, max_bytes: int) -> Iterator[Records]:
    """Yield runs of records that take at most about so many bytes of the file, one record at least."""
    start, n = 0, len(part.ends)
    begin = int(part.ends[0]) - int(np.diff(part.ends[:2]).sum()) if n else 0
    while start < n:
        stop = max(start + 1, int(np.searchsorted(part.ends, begin + max_bytes, "right")))
        rows = np.arange(start, stop)
        yield part if stop - start == n else _kept(part, tuple(column[start:stop] for column in part.columns), rows)
        begin, start = int(part.ends[stop - 1]), stop


def _kept(part: Records, columns: tuple[Any, ...], rows: npt.NDArray[np.int64]) -> Records:
    """Return the records at `rows`, with other columns."""
    lines, begins, numbers = ((None if a is None else a[rows]) for a in (part.lines, part.begins, part.rows))
    headers = None if part.headers is None else [part.headers[i] for i in rows.tolist()]
    return Records(columns, part.ends[rows], lines, headers, part.position, begins, numbers)
