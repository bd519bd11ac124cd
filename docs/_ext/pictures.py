"""The pictures of the pages: the road of the first page, drawn from the bundled DNA, and the house (`house.py`)."""

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
NAMES = {"ei": "exon to intron", "ie": "intron to exon", "n": "neither"}
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
    """Draw ``house.svg``; and ``road.svg`` and ``text.png`` (of examples without one) unless newer than this file."""
    _draw_house(folder)
    path = folder / "road.svg"
    if path.exists() and path.stat().st_mtime > Path(__file__).stat().st_mtime:
        return
    import matplotlib

    matplotlib.use("agg")
    folder.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **STYLE}):
        fig = _road()
        fig.savefig(path, transparent=True, metadata={"Date": None})
        matplotlib.pyplot.close(fig)
        fig = matplotlib.pyplot.figure(figsize=(4, 2.8))
        fig.text(0.5, 0.5, ">>>", ha="center", va="center", fontsize=64, color=BLUE, family="monospace")
        fig.savefig(folder / "text.png")
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


def _road():
    import matplotlib.pyplot as plt
    import numpy as np
    from sklearn.decomposition import PCA

    import similia as sm

    X, y = sm.datasets.load_splice(return_X_y=True)
    rng = np.random.default_rng(0)
    chosen = np.concatenate([rng.choice(np.flatnonzero(y == name), 100, replace=False) for name in NAMES])
    X, y = [X[i] for i in chosen], y[chosen]
    kernel = sm.kernels.WeightedDegree(degree=5, normalize=True)
    vectors = sm.Nystroem(kernel, 150, random_state=0).fit_transform(X)
    codes = sm.SignRandomProjection(10_000, random_state=0).fit_transform(vectors)

    fig, axes = plt.subplots(1, 4, figsize=(11, 3.1), gridspec_kw={"width_ratios": [1, 1.1, 1, 1.15]})
    K = kernel(X)
    axes[0].imshow(K, cmap="Blues", vmin=0, vmax=np.quantile(K, 0.98), interpolation="nearest")
    axes[0].set(title="1  similarity of DNA", xticks=[], yticks=[], xlabel="300 stretches of 60 letters")

    flat = PCA(2).fit_transform(vectors)
    for name, colour in zip(NAMES, (BLUE, ORANGE, GREY), strict=True):
        axes[1].plot(*flat[y == name].T, ".", color=colour, ms=5, alpha=0.8, label=NAMES[name])
    low, high = np.quantile(flat, [0.01, 0.99], axis=0)
    axes[1].set(title="2  vectors", xticks=[], yticks=[], xlim=(low[0] - 0.03, high[0] + 0.03))
    axes[1].set(ylim=(low[1] - 0.03, high[1] + 0.03))
    axes[1].legend(loc="upper center", bbox_to_anchor=(0.5, -0.01), ncols=2, fontsize=8, handletextpad=0.1,
                   columnspacing=0.8)  # fmt: skip

    bits = np.unpackbits(codes[[*range(5), *range(100, 105), *range(200, 205)]], axis=1)[:, :60]
    axes[2].imshow(bits, cmap="Greys", vmin=0, vmax=1.6, aspect="auto", interpolation="nearest")
    axes[2].set(title="3  packed bits", xticks=[], yticks=[], xlabel="60 of 10,000 bits of 15 codes")

    far = sm.codes.hamming_distances(codes[:1], codes)[0] / 10_000
    order = np.argsort(far)[1:61]
    colours = np.array([dict(zip(NAMES, (BLUE, ORANGE, GREY), strict=True))[name] for name in y])
    axes[3].scatter(np.arange(len(order)), far[order], c=colours[order], s=12)
    axes[3].set(title="4  search", xticks=[], yticks=[], xlabel="the 60 nearest to one code")
    axes[3].set_ylabel("Hamming distance", fontsize=8.5)
    return fig
