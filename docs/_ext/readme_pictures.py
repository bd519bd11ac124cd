"""Pictures of the README and the gallery, from bundled data and from the tables of `docs`: ``python dev.py pictures``.

Text is grey on no background, to be read on a light and on a dark page.
"""

import functools
import re
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path

import matplotlib
import numpy as np

sys.path.append(str(Path(__file__).parent))
from pictures import BLUE, GREY, ORANGE, STYLE

NAMES = {"ei": "exon to intron", "ie": "intron to exon", "n": "neither"}
DOCS = Path(__file__).resolve().parents[1]
RATIOS = ("benchmarks.md", "reproduction/clusters.md")  # pages of docs
TEXT = "#7a828a"
COLOURS = ("text.color", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color", "axes.edgecolor")
# by chart: what the bar is called, and how its row of a page of `RATIOS` begins: what, rival
SPEED = {
    "models": {
        "graphlet kernel (GraKeL)": ("Gram matrix of 2000 graphlets (k = 5) of each graph, MUTAG", "GraKeL"),
        "optimal assignment kernel (GraKeL)": ("Gram matrix of the optimal assignment kernel", "GraKeL"),
        "DTW to short series (tslearn)": ("DTW, 500 series to 256 short ones: speed", "tslearn"),
        "DTW to short series (aeon)": ("DTW, 500 series to 256 short ones: speed", "aeon 1.6.0, n_jobs=2"),
        "HD classifier (torchhd)": ("20 epochs of HDClassifier", "torchhd"),
        "clusters of series (tslearn)": ("clusters of ", "tslearn 0.10.0 k-means"),
        "learnt bits (faiss ITQ)": ("generalized Nyström PCA + ITQ, 60,000 x 1584, 64 bits", "faiss"),
        "Gaussian process, 5000 objects (scikit-learn)": ("5000 objects, all pairs: speed", "scikit-learn"),
        "MiniRocket features (aeon)": ("500 series of 500 points, 9996 features of MiniRocket", "aeon"),
    },
    "search": {
        "strings by edits (rapidfuzz extract)": ("DNA, 15% mutated: speed", "rapidfuzz extract"),
        "1-NN, DTW (aeon)": ("1-NN with DTW, window 0.1", "aeon"),
        "pattern in a long series (dtaidistance)": ("pattern of 128 in 10000000 points, DTW", "dtaidistance"),
        "near-duplicate texts (datasketch)": ("1000000 texts", "datasketch"),
        "neighbour graph of strings (pynndescent)": ("100,000 strings: speed", "pynndescent"),
        "vectors in 4 bits a number (faiss)": ("50,000 x 256 numbers, 4 bits, 200 queries", "faiss"),
        "near-duplicate DNA (cd-hit)": ("200000 stretches of DNA", "cd-hit"),
        "min-hashes of words (rensa, rho sketch)": ("1024 min-hashes of 100000 sets", "rensa 0.5.0 RMinHash, rho"),
    },
}


def road():
    """Return the road from similarities to vectors, bits and a search, on the bundled DNA."""
    import matplotlib.pyplot as plt
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


def ratios(chart):
    """Return the ratio of each bar of a chart, from the pages of `RATIOS`."""
    lines = [line for page in RATIOS for line in (DOCS / page).read_text(encoding="utf-8").split("\n")]
    rows = [[cell.strip() for cell in line.split("|")[1:4]] for line in lines if line.startswith("| ")]
    ratios = {}
    for name, (what, rival) in SPEED[chart].items():
        found = [row[2] for row in rows if row[0].startswith(what) and row[1].startswith(rival)
                 and row[0].endswith((": speed", ": speed of fit"))]  # fmt: skip
        if len(found) != 1:
            raise ValueError(f"{' and '.join(RATIOS)} have {len(found)} rows for {name}, expected one")
        ratios[name] = float(found[0])
    return dict(sorted(ratios.items(), key=lambda item: item[1]))


def shown(ratio):
    """Return a ratio as text."""
    return f"{ratio:.2g}" if ratio < 10 else f"{ratio:,.0f}"


def speed(chart):
    """Return the bars of a chart."""
    bars = ratios(chart)
    fig, axis = matplotlib.pyplot.subplots(figsize=(7.6, 0.9 + 0.22 * len(bars)))
    values = [*bars.values()]
    axis.barh([*bars], values, left=1e-12, color=[ORANGE if value < 1 else BLUE for value in values], height=0.7)
    for at, value in enumerate(values):
        axis.text(value * 1.1, at, shown(value), va="center", fontsize=8)
    axis.axvline(1, color=TEXT, lw=1)
    axis.set(xscale="log", xlim=(0.2, 6000), xlabel="times as fast as the rival, on the same work in one run")
    axis.tick_params(axis="y", labelsize=8.5, length=0)
    return fig


def dna():
    """Return the letters of a promoter that speak for its class."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    import similia as sm

    X, y = sm.datasets.load_promoters(return_X_y=True)
    gapped = sm.kernels.GappedKmers(6, 4, normalize=True)
    model = make_pipeline(sm.KernelFeatures(gapped, 2**14), LogisticRegression(C=100.0)).fit(X[1:], y[1:])
    fig, axis = matplotlib.pyplot.subplots(figsize=(7.6, 1.9))
    sm.explain(model, X[0]).logo(axis)
    axis.set_title("what makes this stretch of DNA a promoter: letters up speak for it, down against it", fontsize=9)
    return fig


def molecules():
    """Return which atoms make two drugs alike."""
    import similia as sm

    aspirin, salicylic = sm.objects.from_smiles(["CC(=O)Oc1ccccc1C(=O)O", "O=C(O)c1ccccc1O"])
    fig, axis = matplotlib.pyplot.subplots(figsize=(5.2, 2.6))
    sm.explain(sm.kernels.WeisfeilerLehman(n_iter=2, normalize=True), aspirin, salicylic).plot(axis)
    axis.set_title("")
    fig.suptitle("which atoms make aspirin and salicylic acid alike", fontsize=9, x=0.02, ha="left")
    return fig


def series():
    """Return which stretch makes a series belong to its class."""
    from sklearn.linear_model import RidgeClassifierCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    import similia as sm

    rng, t = np.random.default_rng(0), np.arange(150)
    X, y = rng.normal(size=(60, 150)) / 4 + np.sin(t / 12), np.repeat([0, 1], 30)
    for x in X[30:]:
        x += 1.2 * np.exp(-(((t - rng.integers(85, 100)) / 4) ** 2))  # a short bump, not always in the same place
    model = make_pipeline(sm.RandomConvolutions(random_state=0), StandardScaler(), RidgeClassifierCV())
    fig, axis = matplotlib.pyplot.subplots(figsize=(7.6, 2))
    sm.explain(model.fit(X[:-1], y[:-1]), X[-1]).plot(axis)
    axis.set_title("which stretch of a series speaks for its class (here, a bump was added to it)", fontsize=9)
    return fig


def map_of_dna():
    """Return a map of the bundled DNA."""
    import similia as sm

    X, y = sm.datasets.load_splice(return_X_y=True)
    kernel = sm.kernels.WeightedDegree(degree=5, normalize=True)
    points = sm.SimilarityMap(kernel, n_landmarks=300, random_state=0).fit_transform(X)
    fig, axis = matplotlib.pyplot.subplots(figsize=(5.2, 3.6))
    for name, colour in zip(NAMES, (BLUE, ORANGE, GREY), strict=True):
        axis.plot(*points[y == name].T, ".", color=colour, ms=2.5, label=NAMES[name], rasterized=True)
    axis.legend(fontsize=8, markerscale=4, labelcolor=TEXT)
    axis.set(xticks=[], yticks=[])
    axis.set_title("a map of 3186 stretches of DNA", fontsize=9)
    return fig


def terminal():
    """Return an animation of `similia fit`, `report` and `explain` on the bundled DNA, run now."""
    from terminal import animated, run

    import similia as sm

    X, y = sm.datasets.load_splice(return_X_y=True)
    commands = (
        'similia fit dna.csv --label site --kernel "WeightedDegree(degree=5)" -o splice.similia',
        "similia report splice.similia new.csv --label site --unseen -o report.html",
        "similia explain splice.similia new.csv --object 0 --top 3",
    )
    with tempfile.TemporaryDirectory() as folder:
        for name, part in (("dna.csv", slice(0, 2600)), ("new.csv", slice(2600, None))):
            lines = [f"{x},{label}\n" for x, label in zip(X[part], y[part], strict=True)]
            Path(folder, name).write_text("".join(["sequence,site\n", *lines]), encoding="ascii")
        return animated([(command, run(command, Path(folder))) for command in commands])


def report():
    """Return a picture (PNG) of the report on a model of the bundled DNA, as Chromium shows it."""
    from playwright.sync_api import sync_playwright

    import similia as sm

    X, y = sm.datasets.load_splice(return_X_y=True)
    model = sm.recipes.nyshd(sm.kernels.WeightedDegree(degree=5), random_state=0).fit(X[::2], y[::2])
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        page = sm.report.write_report(model, X[1::2], y[1::2], Path(folder, "report.html"), title="Splice sites")
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        tab = browser.new_page(viewport={"width": 720, "height": 504}, color_scheme="light")
        tab.goto(page.as_uri())
        try:
            return tab.screenshot()
        finally:
            browser.close()


def badge(name, text):
    """Return a badge (SVG): white letters on grey and on blue."""
    left, right = (7 * len(word) + 12 for word in (name, text))
    style = 'font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" fill="#fff" text-anchor="middle"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img">'
        f"<title>{name}: {text}</title>"
        f'<rect width="{left}" height="20" fill="#4a5058"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="#0068a3"/><g {style}>'
        f'<text x="{left / 2}" y="14">{name}</text><text x="{left + right / 2}" y="14">{text}</text></g></svg>\n'
    )


def badges():
    """Return what the badges say, from pyproject.toml."""
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    return {"python": f"{versions[0]} to {versions[-1]}", "licence": project["license"]}


DRAWN = {"road": road, "dna": dna, "molecules": molecules, "series": series, "map": map_of_dna}
WRITTEN = {"terminal.svg": terminal, "report.png": report}
WRITTEN |= {f"{name}.svg": functools.partial(badge, name, text) for name, text in badges().items()}
DRAWN |= {f"speed_{chart}": functools.partial(speed, chart) for chart in SPEED}


def main():
    folder = DOCS / "pictures"
    folder.mkdir(exist_ok=True)
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    style = {**matplotlib.rcParamsDefault, **STYLE, **dict.fromkeys(COLOURS, TEXT), "svg.fonttype": "none"}
    with matplotlib.rc_context(style | {"font.family": "sans-serif"}):
        for name in sys.argv[1:] or [*(f"{name}.svg" for name in DRAWN), *WRITTEN]:
            file = folder / name
            if name in WRITTEN:
                found = WRITTEN[name]()
                file.write_bytes(found if isinstance(found, bytes) else found.encode())
            else:
                fig = DRAWN[file.stem]()
                fig.savefig(file, transparent=True, metadata={"Date": None})
                plt.close(fig)
            print(f"wrote docs/pictures/{file.name}, {file.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
