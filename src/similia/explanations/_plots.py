"""Draw an explanation with matplotlib: coloured letters and nodes, aligned series, matched points, bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from similia.core.text import number
from similia.explanations._views import (
    GREY,
    MOST_GROUPS,
    MOST_NODES,
    curves,
    full,
    is_molecule,
    links_of,
    picture,
    positions,
    rest,
    shade,
    shortened,
    sides,
    sign_of,
    visible_letters,
)

if TYPE_CHECKING:
    from similia.explanations._explanation import Explanation

_PER_ROW = 60
_LONGEST_STRING = 1200
_MOST_LINKS = 150
_BASES = {"A": "#109648", "C": "#255C99", "G": "#E39B12", "T": "#D62839", "U": "#D62839"}  # as usual in logos


def plot(e: Explanation, ax: Any = None) -> Any:
    draw = _drawer(e)
    title = _plain(f"{e.title}: {number(e.value)}", 110)
    if ax is not None:
        (draw or _bars)(e, ax)
        ax.set_title(title, fontsize=9)
        return ax
    import matplotlib.pyplot as plt

    height = max(2.6, 0.30 * (len(e.parts) + len(e._shown_groups[:MOST_GROUPS])) + 1.6)
    if draw is None:
        return plot(e, plt.subplots(figsize=(7, height), layout="constrained")[1])
    figure, (ax, bars) = plt.subplots(
        1, 2, figsize=(12, max(height, 3.6)), layout="constrained", gridspec_kw={"width_ratios": [1.5, 1]}
    )
    draw(e, ax)
    _bars(e, bars)
    figure.suptitle(title, fontsize=10)
    return ax


def logo(e: Explanation, ax: Any = None) -> Any:
    shown = [(name, view.text, shares) for name, view, shares, _ in sides(e) if view.kind == "strings"]
    if not shown or any(shares is None for _, _, shares in shown):
        raise ValueError(
            "a logo shows the contribution of each letter of a string, but this explanation has no such contributions"
        )
    axes = [ax]
    if ax is None:
        import matplotlib.pyplot as plt

        width = min(max(4.0, 0.2 * max(len(text) for _, text, _ in shown)), 30.0)
        size = (width, 1.8 * len(shown) + 0.6)
        figure, rows = plt.subplots(len(shown), figsize=size, layout="constrained", squeeze=False)
        figure.suptitle(_plain(f"{e.title}: {number(e.value)}", 110), fontsize=10)
        axes = list(rows[:, 0])
    for one, (name, text, shares) in zip(axes, shown, strict=False):
        _logo(one, text, np.asarray(shares))
        one.set_ylabel(f"adds ({name})" if len(shown) > 1 else "adds to the value")
    return axes[0]


def _logo(ax: Any, text: str, heights: Any) -> None:
    """Draw the letters of a text, letter i from x = i to i + 1 and from 0 up (or down) to ``heights[i]``."""
    from matplotlib.collections import PatchCollection
    from matplotlib.font_manager import FontProperties
    from matplotlib.patches import PathPatch
    from matplotlib.textpath import TextPath
    from matplotlib.transforms import Affine2D

    font = FontProperties(family="monospace", weight="bold")
    shapes = {letter: TextPath((0, 0), letter, size=1, prop=font) for letter in set(visible_letters(text))}
    patches = []
    for i, (letter, height) in enumerate(zip(visible_letters(text), heights.tolist(), strict=True)):
        shape = shapes[letter]
        if height and len(shape.vertices):
            box = shape.get_extents()
            place = Affine2D().translate(-box.x0, -box.y0).scale(0.9 / box.width, height / box.height)
            path = shape.transformed(place.translate(i + 0.05, 0))
            patches.append(PathPatch(path, facecolor=_BASES.get(letter.upper(), "#555"), linewidth=0))
    ax.add_collection(PatchCollection(patches, match_original=True))
    reach = [min(0.0, *heights.tolist()), max(0.0, *heights.tolist())] if len(heights) else [0.0, 1.0]
    ax.set(
        xlim=(0, max(1, len(heights))),
        ylim=(1.05 * reach[0], 1.05 * reach[1] if any(reach) else 1.0),
        xlabel="position",
    )
    ax.axhline(0, color="#111", linewidth=0.8)
    ax.spines[["top", "right"]].set_visible(False)


def _drawer(e: Explanation) -> Any:
    views = [view for _, view, *_ in sides(e)]
    if len({view.kind for view in views}) != 1 or max(view.n_places for view in views) == 0:
        return None
    kind = views[0].kind
    if kind == "graphs":
        return _graphs if max(view.n_places for view in views) <= MOST_NODES else None
    if kind == "sets":
        drawn = _sets if len(views) == 2 else _points
        return drawn if all(view.values.shape[1] >= 2 for view in views) else None
    return {"strings": _strings, "series": _series}.get(kind)


def _plain(text: str, most: int) -> str:
    """Return text cut to `most` letters, with ``$`` escaped so that matplotlib draws it literally."""
    return shortened(text, most).replace("$", r"\$")


def _bars(e: Explanation, ax: Any) -> None:
    """Draw a bar for each substructure of molecules and each part, and grey bars for the rest of the value."""
    groups = e._shown_groups[:MOST_GROUPS]
    where = ["" if e._y is None else " of x" if len(part.in_x) else " of y" for part in groups]
    named = [(f"{_plain(part.name, 40)}{of}", part) for part, of in zip(groups, where, strict=True)]
    named += [(_plain(part.name, 44), part) for part in e.parts]
    rows = [(name, part.contribution, full(sign_of(e) * part.contribution)) for name, part in named]
    rows += [(row.name, row.amount, GREY) for row in rest(e) if row.name != "rounding"]
    names, values, colours = zip(*rows[::-1], strict=True) if rows else ((), (), ())
    ax.barh(range(len(rows)), values, color=colours)
    ax.set_yticks(range(len(rows)), names, fontsize=8)
    ax.axvline(0, color="#111", linewidth=0.8)
    if groups:  # whole substructures above, the parts of the kernel below
        ax.axhline(len(rows) - len(groups) - 0.5, color=GREY, linewidth=0.8, linestyle=":")
    ax.set_xlabel("adds to the value")
    ax.spines[["top", "right"]].set_visible(False)


def _strings(e: Explanation, ax: Any) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    row, patches = 0.0, []
    places: dict[str, list[tuple[float, float]]] = {}
    for name, view, _, strength in sides(e):
        text = visible_letters(view.text[:_LONGEST_STRING])
        for start in range(0, max(1, len(text)), _PER_ROW):
            label = name if start == 0 else ""
            ax.text(-1.5, -row, f"{label} {start}".strip(), ha="right", va="center", fontsize=8)
            for c, letter in enumerate(text[start : start + _PER_ROW]):
                places.setdefault(letter, []).append((c, -row))
                if s := float(strength[start + c]):
                    patches.append(Rectangle((c - 0.5, -row - 0.45), 1, 0.9, facecolor=shade(s), linewidth=0))
            row += 1
        if len(view.text) > len(text):
            ax.text(0, -row, f"... {len(view.text) - len(text)} more letters", va="center", fontsize=8)
            row += 1
        row += 0.6
    ax.add_collection(PatchCollection(patches, match_original=True), autolim=False)
    _letters(ax, places)
    ax.set_xlim(-6, _PER_ROW)
    ax.set_ylim(-row + 0.4, 1)
    ax.set_aspect(2.2)  # letters are taller than they are wide
    ax.axis("off")


def _letters(ax: Any, places: dict[str, list[tuple[float, float]]]) -> None:
    """Draw each letter at all its `places`, as one collection: ten times as fast as one matplotlib text per place."""
    from matplotlib.collections import PathCollection
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath
    from matplotlib.transforms import Affine2D

    font = FontProperties(family="monospace")
    for letter, where in places.items():
        shape = TextPath((-2.4, -2.6), letter, size=8, prop=font)
        drawn = PathCollection([shape], offsets=where, offset_transform=ax.transData, facecolor="#111", linewidth=0)
        drawn.set_transform(Affine2D().scale(1 / 72) + ax.figure.dpi_scale_trans)
        drawn.set_in_layout(False)
        ax.add_collection(drawn, autolim=False)


def _molecules(e: Explanation, ax: Any) -> bool:
    """Draw molecules side by side; return False if RDKit is not installed, otherwise True."""
    left, space, starts = 0.0, 60.0, []
    for name, view, _, strength in sides(e):
        shown = picture(view, strength)
        if shown is None:
            return False
        height, width = shown.shape[:2]
        ax.imshow(shown, extent=(left, left + width, -height / 2, height / 2), interpolation="antialiased")
        starts.append((name, left))
        left += width + space
    tallest = max(image.get_extent()[3] for image in ax.images)
    for name, start in starts if e._y is not None else []:
        ax.text(start, tallest, name, fontweight="bold", va="bottom")
    ax.set(xlim=(0, left - space), ylim=(-tallest, tallest))
    return True


def _graphs(e: Explanation, ax: Any) -> None:
    ax.set_aspect("equal")
    ax.axis("off")
    if all(is_molecule(view) for _, view, *_ in sides(e)) and _molecules(e, ax):
        return
    for column, (name, view, _, strength) in enumerate(sides(e)):
        P = positions(view.n_places, view.arcs) * [1, -1] + [1.2 * column, 1]
        for u, v in view.arcs.T.tolist():
            if u < v:
                ax.plot(*P[[u, v]].T, color=GREY, linewidth=1.4, zorder=1)
            elif u == v or not np.any((view.arcs[0] == v) & (view.arcs[1] == u)):
                ax.annotate("", P[v], P[u], arrowprops={"arrowstyle": "->", "color": GREY}, zorder=1)
        few = view.n_places <= 60
        size = 230 if few else 40
        ax.scatter(*P.T, s=size, c=[shade(float(s)) for s in strength], edgecolors="#444", linewidths=0.8, zorder=2)
        for v, label in enumerate(view.names if few else []):
            ax.text(*P[v], _plain(label, 4), ha="center", va="center", fontsize=8, zorder=3).set_in_layout(False)
        if e._y is not None:
            ax.text(1.2 * column, P[:, 1].max(initial=0.5) + 0.08, name, fontweight="bold", clip_on=False)
    ax.margins(0.08)


def _series(e: Explanation, ax: Any) -> None:
    if rows := curves(e):
        _channels(rows, ax)
        return
    drawn = sides(e)
    values = [view.values for _, view, *_ in drawn]
    span = max(float(v.max() - v.min()) for v in values) or 1.0
    lifts = [1.5 * span - values[0].min(), -values[1].min()]
    links, largest = links_of(e)
    for i, j, value in links[:: max(1, len(links) // _MOST_LINKS)]:
        ends = [values[0][i, 0] + lifts[0], values[1][j, 0] + lifts[1]]
        ax.plot([i, j], ends, color=full(sign_of(e)), alpha=0.12 + 0.88 * abs(value) / largest, linewidth=0.8, zorder=1)
    for (name, view, *_), series, lift in zip(drawn, values, lifts, strict=True):
        for channel in range(series.shape[1]):
            ax.plot(
                series[:, channel] + lift, color="#111", linewidth=1.4, alpha=1.0 if channel == 0 else 0.3, zorder=2
            )
        ax.text(-0.02 * view.n_places, series[0, 0] + lift, name, ha="right", va="center", fontweight="bold")
    ax.set_xlabel("time point")
    ax.set_yticks([])
    ax.spines[["top", "right"]].set_visible(False)


def _channels(rows: list[tuple[str, Any, Any]], ax: Any) -> None:
    from matplotlib.colors import to_rgb

    for row, (name, values, strengths) in enumerate(rows):
        low, span = float(values.min()), float(np.ptp(values)) or 1.0
        bottom, top = (low - 0.1 * span, low + 1.1 * span) if len(rows) == 1 else (-1.3 * row, 1.2 - 1.3 * row)
        if strengths.any():
            colours = np.array([[to_rgb(shade(s)) for s in strengths.tolist()]])
            ax.imshow(colours, extent=(-0.5, len(values) - 0.5, bottom, top), aspect="auto", zorder=0)
        height = values if len(rows) == 1 else bottom + 0.1 + (values - low) / span
        ax.plot(height, color="#111", linewidth=1.4, zorder=2)
        if len(rows) > 1:
            ax.text(-0.02 * len(values), (bottom + top) / 2, name, ha="right", va="center", fontweight="bold")
    ax.set_ylim(bottom, top if len(rows) == 1 else 1.2)
    ax.set_xlabel("time point")
    if len(rows) > 1:
        ax.set_yticks([])
    ax.spines[["top", "right"]].set_visible(False)


def _points(e: Explanation, ax: Any) -> None:
    ((_, view, _, strength),) = sides(e)
    colours = [shade(float(s)) for s in strength]
    ax.scatter(*view.values[:, :2].T, s=60, c=colours, edgecolors="#444", linewidths=0.8)
    ax.set_xlabel("coordinate 0")
    ax.set_ylabel("coordinate 1")
    ax.spines[["top", "right"]].set_visible(False)


def _sets(e: Explanation, ax: Any) -> None:
    A, B = (view.values for _, view, *_ in sides(e))
    links, largest = links_of(e)
    for i, j, value in sorted(links, key=lambda link: -abs(link[2]))[:_MOST_LINKS]:
        ends = np.array([A[i, :2], B[j, :2]])
        ax.plot(*ends.T, color=GREY, alpha=0.12 + 0.88 * abs(value) / largest, linewidth=1.2, zorder=1)
    ax.scatter(*A[:, :2].T, marker="o", color=full(1.0), label="x", zorder=2)
    ax.scatter(*B[:, :2].T, marker="^", color=full(-1.0), label="y", zorder=2)
    ax.legend(frameon=False)
    ax.set_xlabel("coordinate 0")
    ax.set_ylabel("coordinate 1")
    ax.spines[["top", "right"]].set_visible(False)
