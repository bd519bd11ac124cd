"""Pieces of the page: text made harmless, tables that can be sorted, line charts as SVG.

Every text goes through `escape`; what the script reads is JSON without ``<``, ``>`` and ``&``; the security policy of
the page lets only its own script run, and nothing be fetched.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

WIDTH, HEIGHT = 440, 270  # of a chart, in units that are pixels on a desk
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 14, 12, 44
_SHAPES = (  # around a point, of size 1
    "M{l} {y}a{s} {s} 0 1 0 {d} 0a{s} {s} 0 1 0 -{d} 0z",
    "M{l} {t}h{d}v{d}h-{d}z",
    "M{x} {t}l{s} {d}h-{d}z",
    "M{x} {t}l{s} {s}l-{s} {s}l-{s} -{s}z",
    "M{l} {t}h{d}l-{s} {d}z",
    "M{x} {t}v{d}M{l} {y}h{d}",
    "M{l} {t}l{d} {d}m0 -{d}l-{d} {d}",
)
STROKED = (5, 6)
N_COLOURS = 7


def escape(text: Any) -> str:
    """Return a text that is only text in HTML, in attributes too; control characters and lone surrogates as �."""
    clean = "".join(c if c >= " " or c in "\t\n" else "�" for c in str(text))
    return html.escape(clean.encode("utf-8", "replace").decode("utf-8"), quote=True)


def as_json(value: Any) -> str:
    """Return JSON that can stand in a script element: it ends none and starts no comment."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def side_by_side(*parts: str) -> str:
    """Return parts in two columns where there is room."""
    return f'<div class="pair">{"".join(f"<div>{part}</div>" for part in parts if part)}</div>'


def paragraph(text: str) -> str:
    """Return a paragraph of plain text."""
    return f"<p>{escape(text)}</p>"


def percent(share: float) -> str:
    """Return a share as percent with one digit."""
    return f"{100 * share:.1f} %"


def number(value: float) -> str:
    """Return a number with four digits that count."""
    if value != value:
        return "–"
    if float(value).is_integer() and abs(value) < 1e7:
        return f"{int(value):,}"
    return f"{value:.4g}"


def seconds(value: float) -> str:
    """Return a time in the unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def n_bytes(value: float) -> str:
    """Return a size in the unit that suits it."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.0f} bytes"


class Cell(NamedTuple):
    """A cell of a table: its text, a number to sort by, how dark it is (0 to 1), classes, an object drawn in it."""

    text: str
    key: float | None = None
    shade: float = 0.0
    css: str = ""
    drawn: int | None = None


def table(
    caption: str,
    head: Sequence[str],
    rows: Sequence[Sequence[str | Cell]],
    *,
    text_columns: int = 1,
    sortable: bool = True,
) -> str:
    """Return a table whose first columns are text and whose others are numbers, aligned.

    The first cell of a row is its header; a head of empty texts is left out.
    """
    lines = "".join(f"<tr>{''.join(_cell(cell, j, text_columns) for j, cell in enumerate(row))}</tr>" for row in rows)
    names = []
    for j, name in enumerate(head):
        kind = "" if j < text_columns else ' class="n"'
        inside = f'<button type="button">{escape(name)}</button>' if sortable else escape(name)
        names.append(f'<th scope="col"{kind}>{inside}</th>')
    headed = f"<thead><tr>{''.join(names)}</tr></thead>" if any(head) else ""
    sort = ' class="sortable"' if sortable and headed else ""
    return (
        f'<div class="scroll" role="region" aria-label="{escape(caption)}" tabindex="0"><table{sort}>'
        f"<caption>{escape(caption)}</caption>{headed}<tbody>{lines}</tbody></table></div>"
    )


def _cell(cell: str | Cell, j: int, text_columns: int) -> str:
    cell = Cell(cell) if isinstance(cell, str) else cell
    tag, scope = ("th", ' scope="row"') if j == 0 else ("td", "")
    css = " ".join(filter(None, ["" if j < text_columns else "n", cell.css]))
    shown = f' class="{css}"' if css else ""
    shown += "" if cell.key is None else f' data-v="{cell.key:.6g}"'
    shown += f' style="--w:{100 * cell.shade:.0f}%"' if cell.shade else ""
    inside = escape(cell.text)
    inside = inside if cell.drawn is None else f'<div class="object" data-i="{cell.drawn}">{inside}</div>'
    return f"<{tag}{scope}{shown}>{inside}</{tag}>"


def marker(i: int, x: float, y: float, size: float) -> str:
    """Return the path of mark number i (colour and shape count alike, as in the displays) around a point."""
    shape = _SHAPES[(i + i // N_COLOURS) % len(_SHAPES)]
    found = {"x": x, "y": y, "l": x - size, "t": y - size, "s": size, "d": 2 * size}
    return shape.format(**{key: f"{value:.4g}" for key, value in found.items()})


def mark_class(i: int, ordered: bool = False) -> str:
    """Return the classes of mark number i: its colour (of a scale if `ordered`), and whether it is drawn by strokes."""
    return f"{'q' if ordered else 'k'}{i % N_COLOURS}" + (
        " st" if (i + i // N_COLOURS) % len(_SHAPES) in STROKED else ""
    )


def key(i: int, label: str, button: bool = False, ordered: bool = False) -> str:
    """Return an entry of a legend; as a button it hides and shows what it stands for."""
    tag = f'button type="button" aria-pressed="true" data-key="{i}"' if button else "span"
    return (
        f'<{tag} class="key"><svg viewBox="0 0 14 14" aria-hidden="true"><path class="{mark_class(i, ordered)}" '
        f'd="{marker(i, 7, 7, 4.5)}"/></svg>{escape(label)}</{tag.split()[0]}>'
    )


@dataclass(frozen=True)
class Curve:
    """A curve of a chart; `low` and `high` are an interval around it, `titles` what its points say on hover."""

    label: str
    x: npt.NDArray
    y: npt.NDArray
    low: npt.NDArray | None = None
    high: npt.NDArray | None = None
    line: bool = True
    titles: Sequence[str] | None = None
    size: float = 3.5
    style: int = 0


@dataclass(frozen=True)
class Axis:
    """An axis from `low` to `high`, with ticks in round numbers; `log` is 2 or 10 where it is logarithmic."""

    label: str
    low: float
    high: float
    log: int = 0
    share: bool = False  # ticks in percent

    def at(self, values: Any) -> npt.NDArray[np.float64]:
        """Return places from 0 to 1."""
        values = np.asarray(values, dtype=np.float64)
        if self.log:
            low, high = np.log(self.low), np.log(self.high)
            return np.asarray((np.log(np.maximum(values, self.low)) - low) / max(high - low, 1e-12))
        return np.asarray((values - self.low) / max(self.high - self.low, 1e-300))

    def ticks(self) -> list[tuple[float, str]]:
        """Return at most about seven values and their texts."""
        if self.log:
            return self._powers()
        step = 10 ** np.floor(np.log10(max((self.high - self.low) / 4, 1e-300)))
        step *= next((f for f in (1, 2, 5, 10) if (self.high - self.low) / (step * f) <= 6), 10)
        found = np.arange(np.ceil(self.low / step - 1e-9), np.floor(self.high / step + 1e-9) + 1) * step
        return [(float(v), f"{100 * v:.4g}" if self.share else f"{v:.4g}") for v in found + 0.0]

    def _powers(self) -> list[tuple[float, str]]:
        base = self.log
        low, high = np.log(self.low) / np.log(base), np.log(self.high) / np.log(base)
        exponents = np.arange(np.ceil(low - 1e-9), np.floor(high + 1e-9) + 1)
        exponents = exponents[:: max(1, -(-len(exponents) // 7))]
        values = base**exponents
        if base == 10 and len(values) < 3:
            values = np.array([m * 10.0**e for e in np.arange(np.floor(low), high + 1) for m in (1, 2, 5)])
            values = values[(values >= self.low * 0.999) & (values <= self.high * 1.001)]
        return [(float(v), _short(float(v))) for v in values]


def _short(value: float) -> str:
    """Return a tick of a logarithmic axis; far from 1 as a power of ten."""
    if 1e-3 <= value < 1e5:
        return f"{value:,.0f}" if value >= 1 else f"{value:.4g}"
    digits, exponent = f"{value:.0e}".split("e")
    power = "10" + str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return power if digits == "1" else f"{digits}·{power}"


def chart(title: str, x: Axis, y: Axis, curves: Sequence[Curve], extra: str = "", diagonal: bool = False) -> str:
    """Return a chart with its title, a legend where there are several curves, and its numbers as a table."""
    inner_w, inner_h = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM

    def places(values_x: Any, values_y: Any) -> list[tuple[float, float]]:
        px, py = _LEFT + inner_w * x.at(values_x), _TOP + inner_h * (1 - y.at(values_y))
        return [(round(float(a), 1), round(float(b), 1)) for a, b in zip(px, py, strict=True)]

    parts = []
    for value, text in y.ticks():
        ((_, top),) = places([x.low], [value])
        parts.append(f'<path class="grid" d="M{_LEFT} {top}H{WIDTH - _RIGHT}"/>')
        parts.append(f'<text class="e" x="{_LEFT - 7}" y="{top + 4}">{escape(text)}</text>')
    for value, text in x.ticks():
        ((left, _),) = places([value], [y.low])
        parts.append(f'<path class="tick" d="M{left} {HEIGHT - _BOTTOM}v4"/>')
        parts.append(f'<text class="m" x="{left}" y="{HEIGHT - _BOTTOM + 17}">{escape(text)}</text>')
    parts.append(f'<path class="axis" d="M{_LEFT} {HEIGHT - _BOTTOM}H{WIDTH - _RIGHT}"/>')
    parts.append(f'<text class="m name" x="{_LEFT + inner_w / 2}" y="{HEIGHT - 8}">{escape(x.label)}</text>')
    middle = _TOP + inner_h / 2
    parts.append(
        f'<text class="m name" transform="rotate(-90 13 {middle})" x="13" y="{middle}">{escape(y.label)}</text>'
    )
    if diagonal:
        ends = places([max(x.low, y.low), min(x.high, y.high)], [max(x.low, y.low), min(x.high, y.high)])
        parts.append(f'<path class="guide" d="M{ends[0][0]} {ends[0][1]}L{ends[1][0]} {ends[1][1]}"/>')
    parts += [_drawn(curve, places) for curve in curves]
    legend = "".join(key(curve.style, curve.label) for curve in curves) if len(curves) > 1 else ""
    svg = (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"><title>{escape(title)}</title>'
        f"{''.join(parts)}{extra}</svg>"
    )
    return f"<figure>{svg}<figcaption>{escape(title)}{legend and f'<div>{legend}</div>'}</figcaption></figure>"


def _drawn(curve: Curve, places: Any) -> str:
    parts, points = [], places(curve.x, curve.y)
    css = mark_class(curve.style)
    if curve.low is not None and curve.high is not None:
        around = [*places(curve.x, curve.low), *places(curve.x, curve.high)[::-1]]
        parts.append(f'<path class="band k{curve.style}" d="M{"L".join(f"{a} {b}" for a, b in around)}z"/>')
    if curve.line and len(points) > 1:
        dash = ' stroke-dasharray="6 4"' if curve.style % 2 else ""
        parts.append(f'<path class="line k{curve.style}"{dash} d="M{"L".join(f"{a} {b}" for a, b in points)}"/>')
    if curve.titles is None:
        parts.append(f'<path class="{css}" d="{"".join(marker(curve.style, a, b, curve.size) for a, b in points)}"/>')
    else:
        for (a, b), title in zip(points, curve.titles, strict=True):
            mark = marker(curve.style, a, b, curve.size)
            parts.append(f'<path class="{css}" d="{mark}"><title>{escape(title)}</title></path>')
    return "".join(parts)


def vertical(x: Axis, value: float, text: str) -> str:
    """Return a line at a value of the horizontal axis, with a word beside it."""
    left = round(_LEFT + (WIDTH - _LEFT - _RIGHT) * float(x.at([value])[0]), 1)
    side, place = ("e", left - 6) if left > WIDTH / 2 else ("", left + 6)
    return (
        f'<path class="guide" d="M{left} {_TOP}V{HEIGHT - _BOTTOM}"/>'
        f'<text class="{side}" x="{place}" y="{_TOP + 12}">{escape(text)}</text>'
    )


@dataclass(frozen=True)
class Section:
    """A part of the page: its anchor, its heading and what it holds, or why it holds nothing."""

    name: str
    title: str
    body: str = ""
    missing: str = ""


def page(
    title: str, lead: str, beside: str, cards: Sequence[tuple[str, str, str]], sections: Sequence[Section], data: Any
) -> str:
    """Return the whole page; all but `beside` and the bodies of sections is escaped here."""
    style, script = (
        resources.files("similia.report").joinpath(name).read_text("utf-8") for name in ("page.css", "page.js")
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
    links = "".join(f'<li><a href="#{s.name}">{escape(s.title)}</a></li>' for s in sections)
    shown = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}<small>{escape(note)}</small></dd></div>"
        for name, value, note in cards
    )
    body = "".join(
        f'<section id="{s.name}"><h2>{escape(s.title)}</h2>'
        + (s.body if not s.missing else f'<p class="missing">{escape(s.missing)}</p>')
        + "</section>"
        for s in sections
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
        f"<style>{style}</style></head>\n<body><header><h1>{escape(title)}</h1><p>{escape(lead)}</p>{beside}"
        f'<dl class="cards">{shown}</dl><nav aria-label="Sections"><ul>{links}</ul></nav></header>\n'
        f'<main>{body}</main>\n<script type="application/json" id="payload">{as_json(data)}</script>\n'
        f"<script>{script}</script></body></html>\n"
    )


def frame() -> tuple[int, int, int, int]:
    """Return left, top, width and height of the inside of a chart."""
    return _LEFT, _TOP, WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM
