"""Render an explanation as text: a table of parts, and strings with the strongest part below each letter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from similia.core.text import number
from similia.explanations._views import View

if TYPE_CHECKING:
    from similia.explanations._explanation import Explanation, Part, Places

_WIDTH = 80
_LONGEST_STRING = 2000
_MARKS = "123456789abcdefghijklmnopqrstuvwxyz"
_MOST_RUNS = 4
MOST_GROUPS = 8  # maximum number of substructures listed
_NOTHING, _ROUNDING = 1e-12, 1e-6  # relative to the largest number: for float64, and for float32 values


def as_text(explanation: Explanation) -> str:
    """Return the lines of `Explanation.to_text`."""
    e = explanation
    lines = [f"{visible(e.title)}: {number(e.value)}", ""]
    if groups := e.groups[:MOST_GROUPS]:
        lines += [*_rows(e, "substructure", groups, marks=False), ""]
    lines += _rows(e, "part", e.parts)
    lines += _strings(e)
    if e.note:
        lines += ["", f"note: {visible(e.note)}"]
    return "\n".join(lines)


def _rows(e: Explanation, head: str, parts: Sequence[Part], marks: bool = True) -> list[str]:
    """Return the lines of a table of parts; with `marks`, the table of all parts, which ends with the residual."""
    with_y = e._y is not None
    heads = ["", head, "adds", "%", "in x", "in y"][: 6 if with_y else 5]
    rows = []
    for k, part in enumerate(parts):
        row = [_mark(k) if marks else "", shortened(part.name, 78)]
        row += [number(part.contribution), percent(part.contribution, e.value)]
        rows.append(row + [runs(part.in_x), runs(part.in_y)][: 2 if with_y else 1])
    if not any(any(row[4:]) for row in rows):
        heads, rows = heads[:4], [row[:4] for row in rows]
    for name, value in rest(e) if marks else []:
        rows.append(["", name, number(value), percent(value, e.value)])
    widths = [max(len(row[c]) for row in [heads, *rows] if c < len(row)) for c in range(len(heads))]
    widths[0] = 1
    right = {2, 3}
    made = []
    for row in [heads, *rows]:
        cells = [
            cell.rjust(w) if c in right else cell.ljust(w) for c, (cell, w) in enumerate(zip(row, widths, strict=False))
        ]
        made.append("  ".join(cells).rstrip())
    return made


def rest(e: Explanation) -> list[tuple[str, float]]:
    """Return the last lines of a table: parts not listed, and what no part explains beyond rounding."""
    lines = []
    if e.n_omitted:
        lines.append((f"{e.n_omitted} smaller part{'s' if e.n_omitted > 1 else ''}", e.omitted))
    share = abs(e.unexplained) / max(abs(e.value), *(abs(part.contribution) for part in e.parts), 1e-12)
    if share > _NOTHING:
        lines.append(("rounding" if share <= _ROUNDING else "not explained by parts", e.unexplained))
    return lines


def _strings(e: Explanation) -> list[str]:
    lines: list[str] = []
    for name, view, side in (("x", e._x, 0), ("y", e._y, 1)):
        if view is None or view.kind != "strings" or not view.n_places:
            continue
        marks = _marked(e, view, side)
        text, below = visible_letters(view.text[:_LONGEST_STRING]), marks[:_LONGEST_STRING]
        lines.append("")
        for start in range(0, len(text), _WIDTH):
            row = slice(start, start + _WIDTH)
            lines += [f"{name} {start:>5}  {text[row]}", f"         {below[row]}".rstrip()]
        if len(view.text) > _LONGEST_STRING:
            lines.append(f"         ... {len(view.text) - _LONGEST_STRING} more letters")
    return lines


def _marked(e: Explanation, view: View, side: int) -> str:
    """Return the mark of the strongest part at each letter, or a space if there is none."""
    marks = np.full(view.n_places, " ")
    for k in reversed(range(len(e.parts))):
        marks[e.parts[k].in_y if side else e.parts[k].in_x] = _mark(k)
    return "".join(marks.tolist())


def _mark(k: int) -> str:
    return _MARKS[k] if k < len(_MARKS) else "+"


def runs(places: Places) -> str:
    """Return ascending places as runs: ``3-5, 9``."""
    if len(places) == 0:
        return ""
    breaks = np.flatnonzero(np.diff(places) > 1)
    starts = places[np.concatenate(([0], breaks + 1))].tolist()
    ends = places[np.concatenate((breaks, [len(places) - 1]))].tolist()
    shown = [str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True)]
    more = len(shown) - _MOST_RUNS
    return ", ".join(shown[:_MOST_RUNS]) + (f" and {more} more" if more > 0 else "")


def percent(part: float, whole: float) -> str:
    """Return a part in percent of the whole, or nothing if the whole is 0."""
    share = round(100 * part / abs(whole)) if whole and abs(part / whole) < 1e4 else None
    return "" if share is None else str(share)


def shortened(text: str, most: int) -> str:
    """Return visible text of at most `most` letters."""
    text = visible(text)
    return text if len(text) <= most else text[: most - 3] + "..."


def visible(text: str) -> str:
    """Remove control characters and invalid text; turn line breaks into spaces."""
    return "".join(c if c.isprintable() else " " if c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


def visible_letters(text: str) -> str:
    """Replace letters that cannot be shown; keep the length."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
