"""The look of the pictures, and those drawn when the pages are built: the house (`house.py`), and ``text.png``."""

import warnings
from pathlib import Path

BLUE, ORANGE, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#9aa0a6"  # told apart by the colour-blind, too
STYLE = {
    "figure.figsize": (6.4, 3.6),
    "figure.dpi": 90,
    "savefig.dpi": 90,
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.prop_cycle": f"cycler('color', ['{BLUE}', '{ORANGE}', '{GREEN}', '#cc79a7', '#56b4e9', '#e69f00'])",
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
    "svg.hashsalt": "similia",
}
_FILTERS: list[warnings.catch_warnings] = []  # of an example that runs: puts those of the build back


def around_example(gallery_conf, fname, when):
    """Give each example of the gallery the same plain look; a warning in one is an error, as in the tests."""
    import matplotlib

    while _FILTERS:
        _FILTERS.pop().__exit__(None, None, None)
    if when == "after" or Path(fname or ".").is_dir():  # a folder of examples is entered, and never left
        return

    matplotlib.use("agg")
    matplotlib.rcParams.update({**matplotlib.rcParamsDefault, **STYLE})
    _FILTERS.append(warnings.catch_warnings())
    _FILTERS[0].__enter__()
    warnings.simplefilter("error")


def write(folder: Path):
    """Draw ``house.svg`` and, unless newer than this file, ``text.png``, which stands for examples without one."""
    _draw_house(folder)
    path = folder / "text.png"
    if path.exists() and path.stat().st_mtime > Path(__file__).stat().st_mtime:
        return
    import matplotlib

    matplotlib.use("agg")
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **STYLE}):
        fig = matplotlib.pyplot.figure(figsize=(4, 2.8))
        fig.text(0.5, 0.5, ">>>", ha="center", va="center", fontsize=64, color=BLUE, family="monospace")
        fig.savefig(path)
        matplotlib.pyplot.close(fig)


def _draw_house(folder):
    import matplotlib

    matplotlib.use("agg")
    import house

    folder.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **STYLE, "figure.constrained_layout.use": False}):
        fig = house.draw()
        fig.savefig(folder / "house.svg", transparent=True, bbox_inches="tight", metadata={"Date": None})
        matplotlib.pyplot.close(fig)
