"""Render an explanation as text: a table of parts, and strings with the number of a part below each letter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from similia.core.text import counted, number
from similia.explanations._drawing import curves

if TYPE_CHECKING:
    from similia.explanations._explanation import Explanation, Part
    from similia.explanations._views import Places

_WIDTH = 80
_LONGEST_STRING = 2000
_MARKS = "123456789abcdefghijklmnopqrstuvwxyz"
_BARS = "▁▂▃▄▅▆▇█"
_MOST_RUNS = 4
MOST_GROUPS = 8  # maximum number of substructures that are listed
_NOTHING, _ROUNDING = 1e-12, 1e-6  # relative to the largest number: rounding errors of float64, and of float32


def as_text(e: Explanation) -> str:
    """Return the text of `Explanation.to_text`."""
    lines = [f"{visible(e.title)}: {number(e.value)}", ""]
    if groups := e.groups[:MOST_GROUPS]:
        lines += [*_rows(e, "substructure", groups, whole=False), ""]
    lines += [*_rows(e, "part", e.parts), *_strings(e), *_series(e)]
    if e.note:
        lines += ["", f"note: {visible(e.note)}"]
    return "\n".join(lines)


def _rows(e: Explanation, head: str, parts: Sequence[Part], whole: bool = True) -> list[str]:
    """Return a table of parts as lines; if `whole`, parts have marks, and the rest of the value comes last."""
    table = [["", head, "adds", "%", "in x", "in y"]]
    for k, part in enumerate(parts):
        numbers = number(part.contribution), percent(part.contribution, e.value)
        mark = _mark(k) if whole else ""
        table.append([mark, shortened(part.name, 78), *numbers, runs(part.in_x), runs(part.in_y)])
    n_columns = 5 if e._y is None else 6
    if not any(any(row[4:n_columns]) for row in table[1:]):
        n_columns = 4
    for name, value in rest(e) if whole else []:
        table.append(["", name, number(value), percent(value, e.value), "", ""])
    table = [row[:n_columns] for row in table]
    widths = [1, *(max(map(len, column)) for column in [*zip(*table, strict=True)][1:])]
    return [_aligned(row, widths) for row in table]


def _aligned(row: list[str], widths: list[int]) -> str:
    """Return the cells of a row as a line; the columns of numbers are right-aligned."""
    cells = zip(row, widths, strict=True)
    return "  ".join(f"{cell:{'>' if c in (2, 3) else '<'}{width}}" for c, (cell, width) in enumerate(cells)).rstrip()


def rest(e: Explanation) -> list[tuple[str, float]]:
    """Return (name, amount) for the last lines of a table: parts not listed, and what no part explains."""
    lines = []
    if e.n_omitted:
        lines.append((counted(e.n_omitted, "smaller part"), e.omitted))
    share = abs(e.unexplained) / max(abs(e.value), *(abs(part.contribution) for part in e.parts), 1e-12)
    if share > _NOTHING:
        lines.append(("rounding" if share <= _ROUNDING else "not explained by parts", e.unexplained))
    return lines


def _strings(e: Explanation) -> list[str]:
    """Return the strings in lines; below each letter stands the mark (as in the table) of the largest part there."""
    lines: list[str] = []
    for name, view, side in (("x", e._x, "in_x"), ("y", e._y, "in_y")):
        if view is None or view.kind != "strings" or not view.n_places:
            continue
        marks = np.full(view.n_places, " ")
        for k in reversed(range(len(e.parts))):
            marks[getattr(e.parts[k], side)] = _mark(k)
        text, below = visible_letters(view.text[:_LONGEST_STRING]), "".join(marks[:_LONGEST_STRING].tolist())
        lines.append("")
        for start in range(0, len(text), _WIDTH):
            row = slice(start, start + _WIDTH)
            lines += [f"{name} {start:>5}  {text[row]}", f"         {below[row]}".rstrip()]
        if len(view.text) > _LONGEST_STRING:
            lines.append(f"         ... {len(view.text) - _LONGEST_STRING} more letters")
    return lines


def _series(e: Explanation) -> list[str]:
    """Return a row of bars for each channel of x; signs below mark what adds more than the mean amount, + or -."""
    lines: list[str] = []
    for name, values, strengths in curves(e):
        if not strengths.any():
            return []
        n = len(values)
        bounds = np.linspace(0, n, min(n, _WIDTH) + 1).astype(np.int64)
        height, strength = (np.add.reduceat(a, bounds[:-1]) / np.diff(bounds) for a in (values, strengths))
        bars = (height - height.min()) / (float(np.ptp(height)) or 1.0) * (len(_BARS) - 1)
        strong = np.abs(strengths).mean()
        signs = "".join("+" if s > strong else "-" if s < -strong else " " for s in strength.tolist())
        lines += ["", f"{name:<9}{''.join(_BARS[round(bar)] for bar in bars.tolist())}", f"{'':9}{signs}".rstrip()]
    return lines


def _mark(k: int) -> str:
    return _MARKS[k] if k < len(_MARKS) else "+"


def runs(places: Places) -> str:
    """Return ascending places as text, consecutive ones joined: ``3-5, 9``."""
    found = [run for run in np.split(places, np.flatnonzero(np.diff(places) > 1) + 1) if len(run)]
    shown = [f"{run[0]}" if run[0] == run[-1] else f"{run[0]}-{run[-1]}" for run in found]
    more = len(shown) - _MOST_RUNS
    return ", ".join(shown[:_MOST_RUNS]) + (f" and {more} more" if more > 0 else "")


def percent(part: float, whole: float) -> str:
    """Return 100 part / |whole| as text, empty if `whole` is 0 or less than 1e-4 of the part."""
    share = round(100 * part / abs(whole)) if whole and abs(part / whole) < 1e4 else None
    return "" if share is None else str(share)


def shortened(text: str, most: int) -> str:
    """Return the text made `visible` and cut to at most `most` letters."""
    text = visible(text)
    return text if len(text) <= most else text[: most - 3] + "..."


def visible(text: str) -> str:
    """Replace line breaks and tabs by spaces, and other unprintable characters by U+FFFD."""
    return "".join(c if c.isprintable() else " " if c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


def visible_letters(text: str) -> str:
    """Replace each unprintable character by U+FFFD, so that the length stays the same."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
