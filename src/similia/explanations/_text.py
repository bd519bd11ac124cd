"""Render an explanation as text: a table of parts, and strings with the number of a part below each letter."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from similia.core.text import counted, number
from similia.explanations._views import FEW, NOTHING, curves, one_note

if TYPE_CHECKING:
    from similia.explanations._explanation import Explanation, Part
    from similia.explanations._views import Places

_WIDTH = 80
_LONGEST_STRING = 2000
_MARKS = "123456789abcdefghijklmnopqrstuvwxyz"
_ROWS = "abcdefghijklmnopqrstuvwxyz"  # marks of stretches left out
_LEFT_OUT = {  # what happens to x, and the head of the column
    "strings": ("a stretch of x is left out", "stretch"),
    "series": ("a straight line replaces a stretch of x", "stretch"),
    "graphs": ("nodes of x are left out", "nodes"),
    "sets": ("points of x are left out", "points"),
}
_BARS = "▁▂▃▄▅▆▇█"
_MOST_RUNS = 4
_UNEXPLAINED = "not explained by parts"
MOST_GROUPS = 8  # maximum number of substructures that are listed
_LITTLE = 1 / 3  # parts without places that hold a smaller share explain little
_ROUNDING = 1e-6  # relative to the largest number: rounding errors of float32


class Row(NamedTuple):
    """A row of a table; `size` is the sum of the absolute amounts in it.

    `mark` is the sign of a part below letters, "-" for a group, and empty for rows that are neither.
    """

    name: str
    amount: float
    size: float
    in_x: str = ""
    in_y: str = ""
    mark: str = ""

    def at(self, columns: list[str]) -> list[str]:
        """Return the cells of the given columns of places, which are called "in x" and "in y"."""
        return [self.in_x if column == "in x" else self.in_y for column in columns]


class Table(NamedTuple):
    """Rows whose amounts add up to the value, except for rounding.

    Attributes
    ----------
    heading : str
        Says by what the value is split; empty if this is the only table.
    head, percentages : str
        Heads of the columns of names and of percentages.
    rows : list of Row
    whole : float
        Sum of the sizes of all rows, of which percentages are shares.
    """

    heading: str
    head: str
    percentages: str
    rows: list[Row]
    whole: float

    @property
    def places(self) -> list[str]:
        """Return the heads of the columns of places, without that of x, or of y, if no part has a place there."""
        return [column for column in ("in x", "in y") if any(any(row.at([column])) for row in self.rows)]


def tables(e: Explanation) -> list[Table]:
    """Return the tables of stretches left out, of the groups of x and of y, if these are shown, and of the parts."""
    found, made = [], []
    if e.left_out is not None and e.left_out.parts:
        rows = [_row(part, _mark(k, _ROWS)) for k, part in enumerate(e.left_out.parts)]
        kind = "" if e._x is None else e._x.kind
        how, head = _LEFT_OUT.get(kind, _LEFT_OUT["strings"])
        heading = f"by how much {e.left_out.of} falls if {how} (effects overlap, so they do not add up)"
        made.append(Table(heading, head, "", rows, 0.0))
    head = "stretch" if e._x is not None and e._x.kind == "strings" else "substructure"
    for side, of in (("in_x", "" if e._y is None else " of x"), ("in_y", " of y")):
        groups = [part for part in e._shown_groups if len(getattr(part, side))]
        few = [part.contribution for part in groups[MOST_GROUPS:]]
        left = e.value - sum(part.contribution for part in (*groups, *e._intercept))
        rows = [_row(part, "-") for part in (*groups[:MOST_GROUPS], *e._intercept)]
        rows += _left(e, len(few), "smaller piece", sum(few), sum(map(abs, few)), left, _UNEXPLAINED)
        if groups:
            found.append((f"{head}{of}", head, rows))
    if e.parts or not (made or e.left_out):
        found.append(("part", "part", [*(_row(part, _mark(k)) for k, part in enumerate(e.parts)), *rest(e)]))
    for by, name, rows in found:
        whole = sum(row.size for row in rows)
        one_sign = abs(sum(row.amount for row in rows)) >= (1 - _ROUNDING) * whole
        heading = f"the {e.kind} by {by} (each table splits all of it)" if len(found) > 1 else ""
        heading = heading or f"the {e.kind} by part" * bool(made)
        made.append(Table(heading, name, "%" if one_sign else "% of sum |adds|", rows, whole))
    return made


def _row(part: Part, mark: str) -> Row:
    return Row(part.name, part.contribution, abs(part.contribution), runs(part.in_x), runs(part.in_y), mark)


def rest(e: Explanation) -> list[Row]:
    """Return the last rows of the table of parts: parts that are not listed, and the unexplained amount."""
    size = max(abs(e.omitted), (1 - e.listed_share) * e.absolute_sum)
    return _left(e, e.n_omitted, "smaller part", e.omitted, size, e.unexplained, _UNEXPLAINED)


def _left(e: Explanation, n: int, what: str, omitted: float, size: float, left: float, name: str) -> list[Row]:
    """Return a row for `n` parts that are not listed, and one for an amount that is in none, unless it is 0."""
    rows = [Row(counted(n, what), omitted, size)] if n else []
    share = abs(left) / max(abs(e.value), *(abs(part.contribution) for part in e.parts), 1e-12)
    if share > NOTHING:
        rows.append(Row("rounding" if share <= _ROUNDING else name, left, abs(left)))
    return rows


def as_text(e: Explanation, rest_in: str = "") -> str:
    """Return the text of `Explanation.to_text`."""
    lines = [f"{visible(e.title)}: {number(e.value)}"]
    for table in tables(e):
        lines += ["", *filter(None, [table.heading]), *_lines(table)]
    lines += [*_strings(e), *_series(e)]
    if note := whole_note(e, rest_in):
        lines += ["", f"note: {visible(note)}"]
    if e.nearest is not None:
        lines += ["", as_text(e.nearest, rest_in)]
    return "\n".join(lines)


def whole_note(e: Explanation, rest_in: str = "") -> str:
    """Return the note of an explanation, with the share of the listed parts and where to see the rest if it is small.

    The share is that of the column of percentages. `rest_in` says where the rest is shown.
    """
    kind = "" if e._x is None else e._x.kind
    if e.listed_share >= FEW:
        return e.note
    table, n = tables(e)[-1], len(e.parts) - len(e._intercept)
    share = number(float(f"{100 * sum(row.size for row in table.rows[:n]) / table.whole:.2g}"))
    told = f"the {counted(n, 'listed part')} {'holds' if n == 1 else 'hold'} {share} % of the {_whole_of(table)}"
    if e.shares_x is None:
        if kind != "strings" or e.listed_share >= _LITTLE:
            return e.note
        told += (
            ", and the parts of this model have no places in x; a model with a kernel of substrings, such as "
            "MinMax(Spectrum(3)), splits its decision by stretches (similia fit DATA --kernel 'MinMax(Spectrum(3))')"
        )
    elif kind in ("strings", "graphs") or (kind == "series" and e._y is None):
        usual = "shares_x, to_html() and logo()" if kind == "strings" else "shares_x and to_html()"
        told += f"; {rest_in} shows where all of it lies" if rest_in else f"; {usual} show where all of it lies"
    else:
        return e.note
    return one_note(e.note, told)


def _whole_of(table: Table) -> str:
    return "value" if table.percentages == "%" else "sum of absolute amounts"


def _lines(table: Table) -> list[str]:
    """Return a table as lines: a mark, a name, an amount, its percentage, and places if there are any."""
    cells = [["", table.head, "adds", table.percentages, *table.places]]
    for row in table.rows:
        mark, name = row.mark.replace("-", ""), shortened(row.name, 78)
        cells.append([mark, name, number(row.amount), percent(row.size, table.whole), *row.at(table.places)])
    widths = [1, *(max(map(len, column)) for column in [*zip(*cells, strict=True)][1:])]
    return [_aligned(line, widths) for line in cells]


def _aligned(row: list[str], widths: list[int]) -> str:
    """Return the cells of a row as a line; the columns of numbers are right-aligned."""
    cells = zip(row, widths, strict=True)
    return "  ".join(f"{cell:{'>' if c in (2, 3) else '<'}{width}}" for c, (cell, width) in enumerate(cells)).rstrip()


def _strings(e: Explanation) -> list[str]:
    """Return the strings in lines; below each letter stands the mark (as in the table) of the largest part there."""
    lines: list[str] = []
    marked = False
    for name, view, side in (("x", e._x, "in_x"), ("y", e._y, "in_y")):
        if view is None or view.kind != "strings" or not view.n_places:
            continue
        marks = np.full(view.n_places, " ")
        rows = [(_mark(k), part) for k, part in enumerate(e.parts)]
        if name == "x" and e.left_out is not None:
            rows += [(_mark(k, _ROWS), part) for k, part in enumerate(e.left_out.parts)]
        for mark, part in reversed(rows):
            marks[getattr(part, side)] = mark
        text, below = visible_letters(view.text[:_LONGEST_STRING]), "".join(marks[:_LONGEST_STRING].tolist())
        lines.append("")
        for start in range(0, len(text), _WIDTH):
            row = slice(start, start + _WIDTH)
            lines += [f"{name} {start:>5}  {text[row]}", f"         {below[row]}".rstrip()]
        if len(view.text) > _LONGEST_STRING:
            lines.append(f"         ... {len(view.text) - _LONGEST_STRING} more letters")
        marked |= bool((marks != " ").any())
    return [*lines, "", "below a letter: the row of its largest listed part"] if marked else lines


def _series(e: Explanation) -> list[str]:
    """Return a row of bars for each channel of x; + or - below marks points that add more than the mean amount."""
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


def _mark(k: int, marks: str = _MARKS) -> str:
    return marks[k] if k < len(marks) else "+"


def runs(places: Places) -> str:
    """Return ascending places as text, consecutive ones joined: ``3-5, 9``."""
    found = [run for run in np.split(places, np.flatnonzero(np.diff(places) > 1) + 1) if len(run)]
    shown = [f"{run[0]}" if run[0] == run[-1] else f"{run[0]}-{run[-1]}" for run in found]
    more = len(shown) - _MOST_RUNS
    return ", ".join(shown[:_MOST_RUNS]) + (f" and {more} more" if more > 0 else "")


def percent(size: float, whole: float) -> str:
    """Return 100 size / whole as text, below 1 with one significant digit; empty if `whole` is 0."""
    share = 100 * size / whole if whole else 0.0
    return "" if not whole else f"{share:.0f}" if share >= 1 or share == 0 else f"{share:.1g}"


def shortened(text: str, most: int) -> str:
    """Return the text made `visible` and cut to at most `most` letters."""
    text = visible(text)
    return text if len(text) <= most else text[: most - 3] + "..."


def visible(text: str) -> str:
    """Replace newlines and tabs by spaces, and other unprintable characters by U+FFFD."""
    return "".join(c if c.isprintable() else " " if c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


def visible_letters(text: str) -> str:
    """Replace each unprintable character by U+FFFD, so that the length stays the same."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
