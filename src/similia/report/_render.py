"""Render the page: templates escape every text, and matplotlib charts become SVG in the colours of the page.

A page is a single file. Its security policy allows only its own script, and forbids it to fetch anything. Charts are
reproducible byte by byte. Their colours are variables of the style sheet, so they follow the light and dark modes.
"""

from __future__ import annotations

import base64
import hashlib
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from markupsafe import Markup

from similia.report.displays import COLOURS, style_axis

_SHAPES = (  # paths of the marks of a map, around a point
    "M{l} {y}a{s} {s} 0 1 0 {d} 0a{s} {s} 0 1 0 -{d} 0z",
    "M{l} {t}h{d}v{d}h-{d}z",
    "M{x} {t}l{s} {d}h-{d}z",
    "M{x} {t}l{s} {s}l-{s} {s}l-{s} -{s}z",
    "M{l} {t}h{d}l-{s} {d}z",
    "M{x} {t}v{d}M{l} {y}h{d}",
    "M{l} {t}l{d} {d}m0 -{d}l-{d} {d}",
)
_STROKED = (5, 6)  # shapes that are lines
_INK, _SOFT, _RULE = "#1d2126", "#5b6570", "#dfe2e5"
_VARIABLES = {
    _INK: "--ink", _SOFT: "--soft", "#737373": "--soft", _RULE: "--rule",
    **{colour.lower(): f"--k{i}" for i, colour in enumerate(COLOURS)},
}  # fmt: skip
_STYLE: Any = {
    "svg.fonttype": "none", "font.size": 9, "text.color": _INK, "axes.labelcolor": _INK, "xtick.color": _SOFT,
    "ytick.color": _SOFT, "axes.edgecolor": _SOFT, "grid.color": _RULE,
}  # fmt: skip


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


class Cell(NamedTuple):
    """A table cell: text, sort key, darkness (0 to 1), CSS classes, and the number of the object drawn in it."""

    text: str
    key: float | None = None
    shade: float = 0.0
    css: str = ""
    drawn: int | None = None


@dataclass(frozen=True)
class Table:
    """A table: columns of text, then columns of numbers; the first cell of each row is the row's header."""

    caption: str
    rows: Sequence[Sequence[str | Cell]]
    head: Sequence[str] = ()
    text_columns: int = 1
    sortable: bool = True


@dataclass(frozen=True)
class Chart:
    title: str
    svg: Markup


@dataclass(frozen=True)
class Section:
    """A section of the page: anchor (`name`), heading (`title`), and contents, or why there are none (`missing`)."""

    name: str
    title: str
    missing: str = ""
    text: str = ""
    tables: Sequence[Table] = ()
    note: str = ""
    charts: Sequence[Chart] = ()
    beside: bool = True  # charts use a second column if there is room
    map: Any = None
    neighbourhoods: Sequence[Any] = ()
    details: Table | None = None
    cards: Sequence[tuple[str, str, str]] = ()  # name, value and note of numbers at the head of the page
    data: dict[str, Any] = field(default_factory=dict)  # for the script of the page


def charts(draw: Callable[..., Any], *titles: str) -> list[Chart]:
    """Return one chart per title; ``draw(*axes)`` draws them, with one axes object per chart."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_STYLE):
        figures = [Figure(figsize=(4.6, 2.8)) for _ in titles]
        axes = [figure.add_axes((0.15, 0.17, 0.83, 0.8)) for figure in figures]
        for figure, axis in zip(figures, axes, strict=True):
            figure.set_layout_engine("none")  # despite the settings of the process
            style_axis(axis)
        draw(*axes)
        return [Chart(title, _as_svg(figure, title)) for figure, title in zip(figures, titles, strict=True)]


def _as_svg(figure: Any, title: str) -> Markup:
    """Return a figure as a compact SVG element, without backgrounds, clipping, ids, fonts or excess digits."""
    from matplotlib import rc_context

    figure.patch.set_visible(False)
    for axis in figure.axes:
        axis.set_title("")
        axis.patch.set_visible(False)
    out = io.StringIO()
    with rc_context({"svg.hashsalt": title}):
        figure.savefig(out, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    box, inside = re.search(r'viewBox="([^"]*)".*?</defs>(.*)</svg>', out.getvalue(), re.S).groups()  # type: ignore[union-attr]
    inside = re.sub(r"<!--.*?-->|<defs>\s*<clipPath.*?</defs>", "", inside, flags=re.S)
    styles = dict(re.findall(r'<path id="([^"]*)"[^>]*? style="([^"]*)"', inside))  # of marks, repeated at each use
    again = re.compile(r'(<use [^>]*#([^"]*)"[^>]*?) style="([^"]*)"')
    inside = again.sub(lambda m: m[1] if styles.get(m[2]) == m[3] else m[0], inside)
    inside = re.sub(r'(?<=<g) id="[^"]*"| clip-path="[^"]*"', "", inside)
    inside = re.sub(r"font: ([\d.]+px)[^;\"]*", r"font-size: \1", re.sub(r"; font-family: [^;\"]*", "", inside))
    inside = re.sub(r'(?<= d| x| y|rm)="[^"]*"', lambda m: re.sub(r"\d+\.\d\d+", _rounded, m[0]), inside)
    inside = re.sub(r"#[0-9a-f]{6}\b", lambda m: f"var({_VARIABLES[m[0]]})" if m[0] in _VARIABLES else m[0], inside)
    inside = re.sub(r"\s*\n\s*", " ", inside)
    return Markup('<svg class="chart" viewBox="{}" role="img"><title>{}</title>{}</svg>').format(
        box, title, Markup(inside)
    )


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.1f}".removesuffix(".0")


def marker(i: int, x: float, y: float, size: float) -> str:
    """Return the SVG path of mark number `i` around the point (x, y), in the same shape as `displays.mark`."""
    shape = _SHAPES[(i + i // len(COLOURS)) % len(_SHAPES)]
    found = {"x": x, "y": y, "l": x - size, "t": y - size, "s": size, "d": 2 * size}
    return shape.format(**{key: f"{value:.4g}" for key, value in found.items()})


def mark_class(i: int, ordered: bool = False) -> str:
    """Return the CSS classes of mark number `i`: a colour (on a scale if `ordered`), and ``st`` if it is lines only."""
    stroked = (i + i // len(COLOURS)) % len(_SHAPES) in _STROKED
    return f"{'q' if ordered else 'k'}{i % len(COLOURS)}{' st' if stroked else ''}"


def legible(value: Any) -> Any:
    """Replace characters that HTML cannot hold (control characters, lone surrogates) by �; leave `Markup` as it is."""
    if isinstance(value, Markup):
        return value
    clean = "".join(c if c >= " " or c in "\t\n" else "�" for c in str(value))
    return clean.encode("utf-8", "replace").decode("utf-8")


@cache
def templates() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    found = Environment(
        loader=PackageLoader("similia.report"), autoescape=True, finalize=legible, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    found.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return found


def page(name: str, *, data: dict[str, Any], sections: Sequence[Section] = (), script: str = "", **values: Any) -> str:
    """Return a whole page as HTML; `values` are the variables of the template `name`: "page", "map" or "duplicates".

    All pages share a style sheet and the script that draws objects; other pages than "page" add a style sheet of
    their own. The data of `sections` are added to `data`. `script` is the name of the script of the page, by default
    `name`.
    """
    files = resources.files("similia.report")
    drawing, own = (files.joinpath(f"{part}.js").read_text("utf-8") for part in ("draw", script or name))
    styles = [files.joinpath(f"{style}.css").read_text("utf-8") for style in dict.fromkeys(("page", name))]
    text = f'"use strict";\n(() => {{\n{drawing}\n{own}}})();\n'
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    parts = {"style": Markup("".join(styles)), "script": Markup(text), "digest": digest}
    for section in sections:
        data = data | section.data
    return templates().get_template(f"{name}.html.jinja").render(**parts, **values, sections=sections, data=data)
