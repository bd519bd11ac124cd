"""Render an explanation as an HTML fragment: inline styles, SVG drawings, no script, all text escaped."""

from __future__ import annotations

from html import escape
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from similia.core.text import number
from similia.explanations._views import (
    GREY,
    MOST_NODES,
    Table,
    View,
    curves,
    full,
    is_molecule,
    links_of,
    percent,
    positions,
    shade,
    shortened,
    sides,
    sign_of,
    svg,
    tables,
    visible,
    visible_letters,
    whole_note,
)

if TYPE_CHECKING:
    from similia.explanations._explanation import Explanation

_LONGEST_STRING = 2000
_MOST_POINTS = 2000
_MOST_LINKS = 120
_MOST_BANDS = 340  # maximum number of coloured bands behind a curve
_CELL = "padding:2px 8px;white-space:nowrap;text-align:"
_NAME = "max-width:320px;white-space:normal;overflow-wrap:anywhere;"  # so that the bars beside it stay in view


def as_html(e: Explanation) -> str:
    pieces = [f"<p style='margin:0 0 6px'><b>{_safe(e.title)}: {number(e.value)}</b></p>", _drawing(e)]
    pieces += [_table(e, table) for table in tables(e)]
    if note := whole_note(e):
        pieces.append(f"<p style='margin:6px 0 0;color:#555'>{_safe(note)}</p>")
    if e.nearest is not None:
        pieces.append(f"<div style='margin-top:14px'>{as_html(e.nearest)}</div>")
    style = "font-family:sans-serif;font-size:13px;color:#111;background:#fff;max-width:720px;overflow-x:auto"
    return f"<div class='similia-explanation' style='{style}'>{''.join(pieces)}</div>"


def _safe(text: str) -> str:
    return escape(visible(text), quote=True)


def _table(e: Explanation, table: Table) -> str:
    largest = max((row.size for row in table.rows if row.mark), default=0.0)
    heads = [table.head, "adds", table.percentages, "", *table.places]
    lines = ["".join(f"<th style='{_CELL}left;border-bottom:1px solid #999'>{head}</th>" for head in heads)]
    for row in table.rows:
        name, bar = escape(shortened(row.name, 90)), ""
        if row.mark:
            width = round(90 * row.size / largest) if largest else 0
            colour = full(sign_of(e) * row.amount)
            bar = f"<div style='width:{max(1, width)}px;height:9px;background:{colour}'></div>"
        name = f"<i>{name}</i>" if not row.mark else f"<code>{name}</code>" if row.mark != "-" else name
        cells = [(name, "left"), (number(row.amount), "right"), (percent(row.size, table.whole), "right")]
        cells += [(cell, "left") for cell in (bar, *row.at(table.places))]
        lines.append(
            "".join(
                f"<td style='{_CELL}{align};{_NAME if c == 0 else ''}'>{cell}</td>"
                for c, (cell, align) in enumerate(cells)
            )
        )
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    heading = f"<caption style='text-align:left;color:#555'>{_safe(table.heading)}</caption>" if table.heading else ""
    return f"<table style='border-collapse:collapse;font-size:12px;margin-top:6px'>{heading}{body}</table>"


def _drawing(e: Explanation) -> str:
    kinds = {view.kind for _, view, *_ in sides(e)}
    if kinds == {"strings"}:
        return "".join(_letters(name, view, strength) for name, view, _, strength in sides(e))
    if kinds == {"graphs"} and max(view.n_places for _, view, *_ in sides(e)) <= MOST_NODES:
        return "".join(_graph(*side) for side in sides(e))
    return _series(e) if kinds == {"series"} else ""


def _letters(name: str, view: View, strength: np.ndarray) -> str:
    """Return a string with coloured letters; adjacent letters of one colour share a span."""
    text = visible_letters(view.text[:_LONGEST_STRING])
    colours = [shade(s) for s in strength[: len(text)].tolist()]
    spans = []
    for colour, group in groupby(zip(colours, text, strict=True), key=lambda pair: pair[0]):
        letters = escape("".join(letter for _, letter in group), quote=True)
        spans.append(letters if colour == "#ffffff" else f"<span style='background:{colour}'>{letters}</span>")
    more = f" ... {len(view.text) - len(text)} more letters" if len(view.text) > len(text) else ""
    style = "font-family:monospace;word-break:break-all;white-space:pre-wrap;margin:2px 0;line-height:1.5"
    return f"<div style='{style}'><b>{name}</b> {''.join(spans)}{more}</div>"


def _graph(name: str, view: View, shares: np.ndarray | None, strength: np.ndarray) -> str:
    if is_molecule(view):
        adds = [""] * view.n_places if shares is None else [f" adds {number(float(s))}" for s in shares]
        tips = [_safe(f"atom {v}, {atom}{add}") for v, (atom, add) in enumerate(zip(view.names, adds, strict=True))]
        drawn = svg(view, strength, tips)
        if drawn is not None:
            style = "display:inline-block;margin-right:12px;vertical-align:top"
            return f"<figure style='{style};margin-left:0'><figcaption><b>{name}</b></figcaption>{drawn}</figure>"
    size, pad = 260, 18
    P = pad + (size - 2 * pad) * positions(view.n_places, view.arcs)
    P[:, 1] += 2 * pad - P[:, 1].min(initial=size)
    height = round(P[:, 1].max(initial=pad) + pad)
    edges = sorted({(min(u, v), max(u, v)) for u, v in view.arcs.T.tolist() if u != v})
    lines = "".join(
        f"<line x1='{P[u, 0]:.1f}' y1='{P[u, 1]:.1f}' x2='{P[v, 0]:.1f}' y2='{P[v, 1]:.1f}'/>" for u, v in edges
    )
    radius = 9 if view.n_places <= 40 else 5 if view.n_places <= 120 else 3
    nodes = []
    for v, label in enumerate(view.names):
        text = ""
        if radius == 9 and label:
            style = "stroke='none' font-size='10' text-anchor='middle' fill='#111'"
            text = f"<text {style} x='{P[v, 0]:.1f}' y='{P[v, 1] + 3.5:.1f}'>{_safe(shortened(label, 4))}</text>"
        dot = f"<circle cx='{P[v, 0]:.1f}' cy='{P[v, 1]:.1f}' r='{radius}' fill='{shade(float(strength[v]))}'>"
        nodes.append(f"{dot}<title>{_safe(shortened(f'node {v} {label}', 40))}</title></circle>{text}")
    return (
        f"<svg width='{size}' height='{height}' viewBox='0 0 {size} {height}' role='img' aria-label='graph {name}' "
        "style='margin-right:8px;vertical-align:top'>"
        f"<text x='4' y='14' font-size='13' font-weight='bold'>{name}</text>"
        f"<g stroke='{GREY}' stroke-width='1.5'>{lines}</g>"
        f"<g stroke='#444' stroke-width='1'>{''.join(nodes)}</g></svg>"
    )


def _series(e: Explanation) -> str:
    """Draw the channels of one series, or two series, one above the other, with lines between matched time points."""
    alone = curves(e)
    rows = alone or [(name, view.values[:, 0], np.zeros(view.n_places)) for name, view, *_ in sides(e)]
    width, each = 680, 110 if len(rows) <= 2 else 64
    height = each * len(rows)
    longest = max(len(values) for _, values, _ in rows)
    ends = [(float(values.min()), float(values.max())) for _, values, _ in rows]
    if not alone:  # one scale for two series that are compared
        ends = [(min(low for low, _ in ends), max(high for _, high in ends))] * len(rows)
    placed, drawn = [], []
    for row, ((name, values, strengths), (low, high)) in enumerate(zip(rows, ends, strict=True)):
        n = len(values)
        x = 10 + (width - 20) * np.arange(n) / max(1, longest - 1)
        y = each * (row + 1) - 10 - (each - 30) * (values - low) / (high - low or 1.0)
        placed.append((x, y))
        drawn.append(_bands(strengths, (width - 20) / max(1, longest - 1), each * row + 16, each - 20))
        step = max(1, n // _MOST_POINTS)
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x[::step], y[::step], strict=True))
        drawn.append(f"<polyline points='{points}' fill='none' stroke='#111' stroke-width='1.5'/>")
        drawn.append(f"<text x='2' y='{each * row + 14}' font-size='13' font-weight='bold'>{name}</text>")
    links, largest = links_of(e)
    lines = []
    for i, j, value in links[:: max(1, len(links) // _MOST_LINKS)]:
        (ax, ay), (bx, by) = ((float(c[0][k]), float(c[1][k])) for c, k in zip(placed, (i, j), strict=True))
        opacity = 0.15 + 0.85 * abs(value) / largest
        lines.append(f"<line x1='{ax:.1f}' y1='{ay:.1f}' x2='{bx:.1f}' y2='{by:.1f}' stroke-opacity='{opacity:.2f}'/>")
    return (
        f"<svg width='{width}' height='{height}' viewBox='0 0 {width} {height}' role='img' aria-label='series' "
        f"style='max-width:100%'><g stroke='{full(sign_of(e))}' stroke-width='1'>{''.join(lines)}</g>"
        f"{''.join(drawn)}</svg>"
    )


def _bands(strengths: np.ndarray, gap: float, top: float, height: float) -> str:
    """Return a background for a curve, whose time points are `gap` pixels apart."""
    n = len(strengths)
    step = -(-n // _MOST_BANDS)
    if not strengths.any():
        return ""
    bands = []
    for start in range(0, n, step):
        some = strengths[start : start + step]
        left, right = max(0.0, 10 + gap * (start - 0.5)), 10 + gap * (start + len(some) - 0.5)
        place = f"x='{left:.1f}' y='{top}' width='{right - left:.1f}' height='{height}'"
        bands.append(f"<rect {place} fill='{shade(float(some.mean()))}'/>")
    return "".join(bands)
