"""What displays share: colours and marks that the colour-blind tell apart, axes, a picture in HTML."""

from __future__ import annotations

import base64
import io
import sys
from typing import Any, Self

# Okabe & Ito, "Color universal design", 2008; the yellow is left out, which is hard to see on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKS = ("o", "s", "^", "D", "v", "P", "X")
LINES = ("-", "--", "-.", ":")


class Display:
    """Base of displays: `plot` draws on given axes, or on those of a new figure of pyplot, as scikit-learn's do."""

    ax_: Any
    figure_: Any

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw; see the classes."""
        raise NotImplementedError

    def _axes(self, ax: Any, n: int = 1) -> list[Any]:
        """Return n axes and keep them: those given, or of a new figure."""
        if ax is None:
            import matplotlib.pyplot as plt

            size = (5.6 if n == 1 else 4.6 * n, 3.8)
            axes = list(plt.subplots(1, n, squeeze=False, figsize=size, layout="constrained")[1][0])
        else:
            axes = [ax] if n == 1 else list(ax) if hasattr(ax, "__len__") else [ax]
            if len(axes) != n:
                raise ValueError(f"ax must be {n} axes, got {len(axes)}; plt.subplots(1, {n})[1] makes them")
        for axis in axes:
            axis.grid(alpha=0.25)
            axis.set_axisbelow(True)
            axis.spines[["top", "right"]].set_visible(False)
        self.figure_ = axes[0].get_figure()
        self.ax_ = axes[0] if n == 1 else axes
        return axes

    def _repr_html_(self) -> str | None:
        """Show the picture where notebooks and documentation ask for HTML, unless pyplot is about to show it."""
        if not hasattr(self, "figure_"):
            self.plot()
        if _is_open(self.figure_):
            return None
        out = io.BytesIO()
        self.figure_.savefig(out, format="png", dpi=110)
        data = base64.b64encode(out.getvalue()).decode()
        return f'<img alt="{type(self).__name__}" style="max-width:100%" src="data:image/png;base64,{data}">'


def _is_open(figure: Any) -> bool:
    """Return whether a figure is one of pyplot's that was not closed; without pyplot there is none."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    return pyplot is not None and pyplot.fignum_exists(getattr(figure, "number", -1))


def mark(i: int) -> dict[str, Any]:
    """Return colour and marker of series number i: 49 that differ in one or the other."""
    return {"color": COLOURS[i % len(COLOURS)], "marker": MARKS[(i + i // len(COLOURS)) % len(MARKS)]}


def line(i: int) -> dict[str, Any]:
    """Return colour, marker and line style of curve number i."""
    return {**mark(i), "linestyle": LINES[i % len(LINES)], "markersize": 5, "linewidth": 1.6}
