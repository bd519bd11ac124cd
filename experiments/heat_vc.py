"""Hyperspherical heat kernel, Figures 2 and 3: accuracy against class size and against the effective sample size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from experiments import heat_sp500, heat_webkb
from experiments._heat_svm import COSINE, CS, EXACT, LINEAR, RBF, Floats, families, stratified
from experiments._report import Record, Table, distinct, values
from similia.core.config import track

KERNELS = (LINEAR, COSINE, RBF, EXACT)
N_WORDS = 393
MEASURES, BOUNDS = ("effective", "effective, hard"), ("bound", "bound, hard")
_COLUMNS = [f"{C}{where}" for where in ("", ", within a size") for C in ("chosen C", f"C = {CS[-1]:g}")]


@dataclass(frozen=True)
class Subsamples:
    """Two classes, and how many objects of each are drawn."""

    data: str
    pair: tuple[str, str] | int
    sizes: tuple[int, ...]

    @property
    def name(self) -> str:
        """Name of the task."""
        return f"{self.data}, {self.pair} returns" if isinstance(self.pair, int) else " against ".join(self.pair)


WEB, STOCKS = "WebKB", "S&P 500"
TASKS = (
    *(
        Subsamples(WEB, pair, (25, 50, 100, 200, 400))
        for pair in combinations(("course", "faculty", "project", "student"), 2)
    ),
    Subsamples(STOCKS, 475, (10, 20, 40, 60)),
    Subsamples(STOCKS, 95, (10, 20, 40, 60)),
)
TITLE = "Hyperspherical heat kernel: accuracy and effective sample size (Figures 2 and 3)"
TEXT = f"""
Two classes at a time, as many objects of each drawn at random: pairs of classes of WebKB ({N_WORDS} words), sectors of
stocks (475 or 95 returns); the paper has genes instead (see Table 3). Accuracy is the best mean of 5-fold
cross-validation over the grids of the tables. The effective sample size is n / (R²‖w‖²), with R the radius of the
smallest ball around all n objects and 1/‖w‖ the margin of the machine trained on all of them
(`experiments.vc_bound.vc_effective_sample_size`), once with the chosen C, once with C = {CS[-1]:g}, which allows few
errors.
The bound was derived for hard margins; with the chosen C it also falls with every error allowed.

Correlations are Spearman's, over pairs, sizes and seeds; of WebKB also within a size (mean over sizes), since both
numbers grow with the size, which alone makes a correlation.
"""


def load(task: Subsamples) -> tuple[Floats, npt.NDArray, str]:
    """Return objects of the two classes, labels and the map to the sphere."""
    if isinstance(task.pair, int):
        return *heat_sp500.load(task.pair), "projection"
    X, y, _ = heat_webkb.load(N_WORDS)
    rows = np.isin(y, task.pair)
    return X[rows], y[rows], "sqrt"


def measure(task: Subsamples, seeds: int) -> list[Record]:
    """Score the four kernels on each draw of each size."""
    X, y, mapping = load(task)
    records = []
    draws = [(size, seed) for size in task.sizes for seed in range(seeds)]
    for size, seed in track(draws, task.name, len(draws)):
        random = np.random.default_rng([seed, size])
        rows = np.concatenate([random.choice(np.flatnonzero(y == c), size, replace=False) for c in np.unique(y)])
        where = {"set": task.name, "data": task.data, "size": size, "seed": seed}
        records += [{**where, **found} for found in _score(X[rows], y[rows], seed, mapping)]
    return records


def _score(X: Floats, y: npt.NDArray, seed: int, mapping: str) -> list[Record]:
    from experiments.vc_bound import vc_effective_sample_size
    from similia.learn.kernel_machines import best_of, precomputed_scores

    folds, found = stratified(y, seed), families(X, mapping)
    records = []
    for kernel in KERNELS:
        family = found[kernel]
        means = precomputed_scores(family.gram_of, family.parameters, CS, y, folds).mean(axis=2)
        i, j = best_of(means)
        K = family.gram_of(family.parameters[i])
        chosen, hard = (vc_effective_sample_size(K, y, C) for C in (CS[j], CS[-1]))
        records.append(
            {
                "kernel": kernel,
                "accuracy": round(100 * float(means[i, j]), 4),
                "parameter": float(family.parameters[i]),
                "C": CS[j],
                "margin": chosen.margin,
                "radius": chosen.radius,
                "bound": chosen.vc_bound,
                "bound, hard": hard.vc_bound,
                "effective": chosen.effective_sample_size,
                "effective, hard": hard.effective_sample_size,
            }
        )
    return records


def present(records: list[Record]) -> tuple[list[Table], Any]:
    """Return tables of means and of correlations, and the picture."""
    return [_means(records), _correlations(records), _correlations_of_ratios(records)], _figure(records)


def _means(records: Sequence[Record]) -> Table:
    table = Table(
        f"Means over pairs and seeds: accuracy (%); R²‖w‖² with the chosen C, and with C = {CS[-1]:g}",
        ["data", "of each class", *KERNELS, "exact / RBF"],
    )
    for data in distinct(records, "data"):
        for size in distinct([r for r in records if r["data"] == data], "size"):
            rows = [r for r in records if (r["data"], r["size"]) == (data, size)]
            means = [{c: np.mean(values(rows, c, kernel=k)) for c in ("accuracy", *BOUNDS)} for k in KERNELS]
            cells = [f"{m['accuracy']:.1f}; {m[BOUNDS[0]]:.3g}; {m[BOUNDS[1]]:.3g}" for m in means]
            table.rows.append([data, size, *cells, f"{np.mean(_ratio(rows, 'accuracy')):.3f}"])
    return table


def _correlations(records: Sequence[Record]) -> Table:
    table = Table(
        "Spearman correlation of the accuracy with the class size, and with the effective sample size n / R²‖w‖²",
        ["data", "kernel", "class size", *_COLUMNS],
    )
    for data in distinct(records, "data"):
        for kernel in KERNELS:
            own = [r for r in records if (r["data"], r["kernel"]) == (data, kernel)]
            accuracy, sizes = values(own, "accuracy"), values(own, "size")
            found = _against(accuracy, [values(own, m) for m in MEASURES], sizes)
            table.rows.append([data, kernel, _two_decimals(_spearman(accuracy, sizes)), *found])
    return table


def _correlations_of_ratios(records: Sequence[Record]) -> Table:
    table = Table(
        "Spearman correlation of the ratio of accuracies, exact / RBF, with the ratio of effective sample sizes",
        ["data", *_COLUMNS],
    )
    for data in distinct(records, "data"):
        here = [r for r in records if r["data"] == data]
        sizes = values(here, "size", kernel=EXACT)
        table.rows.append([data, *_against(_ratio(here, "accuracy"), [_ratio(here, m) for m in MEASURES], sizes)])
    return table


def _against(accuracy: Sequence[float], measures: Sequence[Sequence[float]], sizes: Sequence[int]) -> list[str]:
    """Return the correlation with each measure, then those within a size."""
    found = [_spearman(accuracy, measure) for measure in measures]
    return [_two_decimals(r) for r in [*found, *(_within(accuracy, measure, sizes) for measure in measures)]]


def _ratio(records: Sequence[Record], column: str) -> list[float]:
    """Return exact / RBF of a column, draw by draw."""
    above, below = values(records, column, kernel=EXACT), values(records, column, kernel=RBF)
    return [a / b for a, b in zip(above, below, strict=True)]


def _spearman(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the rank correlation; NaN if one of both is constant."""
    ranks = [stats.rankdata(values) for values in (a, b)]
    if min(np.ptp(r) for r in ranks) == 0:
        return float("nan")
    return float(np.corrcoef(ranks)[0, 1])


def _within(a: Sequence[float], b: Sequence[float], groups: Sequence[int]) -> float:
    """Return the mean over groups of the rank correlation within; groups where one of both is constant have none."""
    A, B, of = np.array(a), np.array(b), np.array(groups)
    found = [_spearman(A[of == group], B[of == group]) for group in np.unique(of)]
    found = [r for r in found if not np.isnan(r)]
    return float(np.mean(found)) if found else float("nan")


def _two_decimals(correlation: float) -> str:
    return "none" if np.isnan(correlation) else f"{correlation:+.2f}"


def _figure(records: Sequence[Record]) -> Any:
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter

    from experiments._figures import _COLOURS, _MARKS

    kinds = distinct(records, "data")
    bound, size = BOUNDS[1], MEASURES[1]  # of few errors, for which the bound was derived
    figure = Figure(figsize=(10, 3 * len(kinds) + 0.4), layout="constrained")
    for row, data in zip(figure.subplots(len(kinds), 3, squeeze=False), kinds, strict=True):
        here = [record for record in records if record["data"] == data]
        for kernel, colour, mark in zip(KERNELS, _COLOURS, _MARKS, strict=False):
            own = [r for r in here if r["kernel"] == kernel]
            style = {"color": colour, "marker": mark, "label": kernel}
            sizes = sorted(distinct(own, "size"))
            row[0].plot(sizes, [np.mean(values(own, bound, size=s)) for s in sizes], markersize=4, **style)
            row[1].scatter(values(own, size), values(own, "accuracy"), s=9, alpha=0.6, **style)
        row[2].scatter(_ratio(here, size), _ratio(here, "accuracy"), s=9, color="black", alpha=0.6)
        row[2].axhline(1, color="grey", linewidth=0.8)
        labels = ("objects of each class", "R²‖w‖²"), ("n / R²‖w‖²", "accuracy (%)"), ("its ratio", "exact / RBF")
        for axis, (x, y) in zip(row, labels, strict=True):
            axis.set_xscale("log")
            axis.xaxis.set_minor_formatter(NullFormatter())
            axis.set_xlabel(x, fontsize=8)
            axis.set_ylabel(y, fontsize=8)
            axis.set_title(f"{data}, C = {CS[-1]:g}", fontsize=9)
            axis.tick_params(labelsize=8)
            axis.grid(alpha=0.25)
        row[0].set_yscale("log")
        row[0].set_xticks(sizes, [str(s) for s in sizes])
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), fontsize=8, frameon=False)
    return figure
