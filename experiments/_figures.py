"""Small multiples of lines, and groups of bars: the same colours and marks in all (safe for the colour-blind)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# Okabe & Ito
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "d")


def panels(
    curves: Mapping[str, Mapping[str, Sequence[float]]],
    x: Sequence[float] | Mapping[str, Sequence[float]],
    x_label: str,
    y_label: str,
    columns: int = 4,
    log: bool = False,
) -> Any:
    """Return a matplotlib figure with one panel for each entry of `curves`.

    Parameters
    ----------
    curves : mapping of panel title to mapping of line label to values
    x : sequence of float, or one for each panel title
    x_label, y_label : str
    columns : int, default=4
        Panels in a row.
    log : bool, default=False
        Whether both axes are logarithmic.
    """
    from matplotlib.figure import Figure

    columns = min(columns, len(curves))
    rows = -(-len(curves) // columns)
    figure = Figure(figsize=(3.1 * columns, 2.6 * rows + 0.4), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis in axes.flat[len(curves) :]:
        axis.set_axis_off()
    for axis, (title, lines) in zip(axes.flat, curves.items(), strict=False):
        values = x[title] if isinstance(x, Mapping) else x
        for i, (label, line) in enumerate(lines.items()):
            axis.plot(values, line, color=_COLOURS[i], marker=_MARKS[i], markersize=4, linewidth=1.4, label=label)
        if log:
            axis.set_xscale("log")
            axis.set_yscale("log")
        axis.set_title(title, fontsize=10)
        axis.set_xlabel(x_label, fontsize=8)
        axis.tick_params(labelsize=8)
        axis.grid(alpha=0.25)
    for axis in axes[:, 0]:
        axis.set_ylabel(y_label, fontsize=8)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8, frameon=False)
    return figure


def bars(groups: Mapping[str, Mapping[str, float]], y_label: str) -> Any:
    """Return a matplotlib figure with a group of bars for each entry of `groups`, from label to height."""
    from matplotlib.figure import Figure

    labels = list(dict.fromkeys(label for heights in groups.values() for label in heights))
    figure = Figure(figsize=(1.2 + 1.1 * len(groups), 3.0), layout="constrained")
    axis = figure.subplots()
    for i, label in enumerate(labels):
        places = [g + (i + 0.5) / (len(labels) + 1) for g in range(len(groups))]
        heights = [heights.get(label, float("nan")) for heights in groups.values()]
        axis.bar(places, heights, width=0.9 / (len(labels) + 1), color=_COLOURS[i], label=label)
    axis.set_xticks([g + 0.5 * len(labels) / (len(labels) + 1) for g in range(len(groups))], list(groups))
    axis.set_ylabel(y_label, fontsize=8)
    axis.tick_params(labelsize=8)
    axis.grid(axis="y", alpha=0.25)
    figure.legend(loc="outside lower center", ncols=len(labels), fontsize=8, frameon=False)
    return figure
