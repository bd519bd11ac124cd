"""Tables and the chart of `experiments.specialists`: scores, time, memory; wins, ties and losses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from experiments._report import Record, Table, distinct

TITLES = {
    "strings": "Proteins",
    "dna": "DNA",
    "text": "Text",
    "series": "Series",
    "resamples": "Series, resampled",
    "graphs": "Graphs, labels of nodes or wiring only",
    "attributes": "Graphs with numbers on nodes",
    "molecules": "Molecules",
}
AGAIN = "resamples"  # a kind whose sets are among the series, too: neither in the chart nor in the counts of all
UNITS = {"accuracy": "accuracy, %", "auc": "AUC, %", "rmse": "RMSE"}
BEST_HERE, BEST_PRINTED = "the best of them, chosen afterwards", "the best in print, chosen afterwards"
WIN, TIE, LOSS, INK, OURS = "#1f9e89", "#8a8f98", "#d55e00", "#7d838c", "#3d8fd1"  # readable on white and on black


@dataclass(frozen=True)
class Mean:
    """A tool on a set: mean score over its splits, its standard error, and what it needed."""

    tool: str
    score: float
    error: float
    seconds: float
    cpu: float
    memory: float
    n_splits: int


@dataclass(frozen=True)
class Gap:
    """By how much similia is better than another tool on a set, in points (RMSE: percent of the other's)."""

    set: str
    kind: str
    ours: Mean
    theirs: Mean
    points: float
    error: float

    @property
    def verdict(self) -> str:
        """ "win", "tie" or "loss": a difference of more than two standard errors is no tie."""
        return "tie" if abs(self.points) <= 2 * self.error else "win" if self.points > 0 else "loss"

    def __str__(self) -> str:
        return f"{self.points:+.1f} ± {2 * self.error:.1f}"


def present(records: list[Record]) -> tuple[list[Table], Any]:
    """Return the tables of each kind; the counts and the chart, where the largest budget of each set stands."""
    records = [record for record in records if record["score"] != ""]
    budgets = sorted(
        (r for r in distinct(records, "tool") if r.startswith("similia")), key=lambda r: float(r.split()[1])
    )
    tables = [table for kind in TITLES for table in _of_kind(records, kind, budgets)]
    gaps: list[Gap] = []
    for name in distinct(records, "set"):
        measured = {record["tool"] for record in records if record["set"] == name}
        ours = [budget for budget in budgets if budget in measured]
        gaps += gaps_of(records, name, ours[-1]) if ours else []
    if gaps:
        tables += [_counts(gaps), _losses(gaps)]
    shown = [gap for gap in gaps if gap.theirs.tool == BEST_HERE and gap.kind != AGAIN]
    return tables, chart(shown) if shown else None


def mean_of(records: Sequence[Record], name: str, tool: str, runs: set[int] | None = None) -> Mean | None:
    """Return the mean of a tool on a set, over `runs` only if they are given, or None if it has no score there."""
    rows = [r for r in records if (r["set"], r["tool"]) == (name, tool) and (runs is None or r["run"] in runs)]
    if not rows:
        return None
    errors = np.array([row["error"] for row in rows], dtype=float)
    return Mean(
        tool,
        float(np.mean([row["score"] for row in rows])),
        float(np.sqrt(np.sum(errors**2)) / len(rows)),
        *(float(np.mean([row.get(cost) or 0 for row in rows])) for cost in ("seconds", "cpu")),
        float(max(row.get("memory") or 0 for row in rows)),
        len(rows),
    )


def gaps_of(records: Sequence[Record], name: str, ours: str) -> list[Gap]:
    """Return the gaps to each specialist and each published number on a set, and to the best of either."""
    rows = [record for record in records if record["set"] == name]
    runs = {record["run"] for record in rows if record["tool"] == ours}
    found = []
    for role, best in (("specialist", BEST_HERE), ("print", BEST_PRINTED)):
        gaps = []
        for tool in distinct([record for record in rows if record["role"] == role], "tool"):
            common = runs if role == "print" else runs & {record["run"] for record in rows if record["tool"] == tool}
            theirs = mean_of(rows, name, tool, None if role == "print" else common)
            if common and theirs is not None:
                mean = mean_of(rows, name, ours, common)
                assert mean is not None
                gaps.append(_gap(rows[0], mean, theirs))
        if gaps:
            closest = min(gaps, key=lambda gap: gap.points)
            found += [*gaps, replace(closest, theirs=replace(closest.theirs, tool=best))]
    return found


def _gap(row: Record, ours: Mean, theirs: Mean) -> Gap:
    points, error = ours.score - theirs.score, float(np.hypot(ours.error, theirs.error))
    if row["metric"] == "rmse":
        points, error = -100 * points / theirs.score, 100 * error / theirs.score
    return Gap(row["set"], row["kind"], ours, theirs, points, error)


def _of_kind(records: list[Record], kind: str, budgets: list[str]) -> list[Table]:
    """Return the scores, and the seconds and memory, of one kind of objects."""
    rows = [record for record in records if record["kind"] == kind]
    if not rows:
        return []
    tools = distinct([record for record in rows if record["role"] == "specialist"], "tool")
    ours = [budget for budget in budgets if any(record["tool"] == budget for record in rows)]
    columns = ["set", "measure", "train, test", "splits", "majority or mean", *ours, *tools]
    scores = Table(TITLES[kind], [*columns, "best in print", "similia's gap to the best tool"])
    costs = Table(f"{TITLES[kind]}: seconds, CPU seconds, peak memory in MiB", ["set", *ours, *tools])
    for name in distinct(rows, "set"):
        here = [record for record in rows if record["set"] == name]
        first = next(record for record in here if record["role"] == "baseline")
        means = [mean_of(here, name, tool) for tool in ("majority or mean", *ours, *tools)]
        gaps = {gap.theirs.tool: gap for gap in gaps_of(here, name, ours[-1])} if ours else {}
        star = "\\*" if first["looked_at"] else ""
        head = [f"{name}{star}", UNITS[first["metric"]], f"{first['n_train']}, {first['n_test']}"]
        n_splits = max((mean.n_splits for mean in means[1:] if mean), default=0)
        cells = _bold([_score(mean, first["metric"]) for mean in means], means, first["metric"])
        scores.rows.append([*head, n_splits, *cells, _best_printed(here, name), str(gaps.get(BEST_HERE, ""))])
        costs.rows.append([name, *(f"{m.seconds:.1f}, {m.cpu:.1f}, {m.memory:.0f}" if m else "" for m in means[1:])])
    return [scores, costs]


def _score(mean: Mean | None, metric: str) -> str:
    return "" if mean is None else f"{mean.score:.3g}" if metric == "rmse" else f"{mean.score:.1f}"


def _bold(cells: list[str], means: Sequence[Mean | None], metric: str) -> list[str]:
    """Return the cells with the best one bold."""
    scores = [np.nan if mean is None else -mean.score if metric == "rmse" else mean.score for mean in means]
    best = cells[int(np.nanargmax(scores))]
    return [f"**{cell}**" if cell == best else cell for cell in cells]


def _best_printed(rows: list[Record], name: str) -> str:
    tools = distinct([record for record in rows if record["role"] == "print"], "tool")
    means = [mean for tool in tools if (mean := mean_of(rows, name, tool)) is not None]
    if not means:
        return ""
    metric = rows[0]["metric"]
    best = (min if metric == "rmse" else max)(means, key=lambda mean: mean.score)
    return f"{_score(best, metric)} ({best.tool.removeprefix('in print: ')})"


def _counts(gaps: list[Gap]) -> Table:
    """Return how often similia wins, ties and loses against each tool, and the mean gap."""
    table = Table("Wins, ties and losses of similia by two standard errors", ["against", "kind", "sets"])
    table.columns = [*table.columns, "wins", "ties", "losses", "mean gap ± 2 s.e., points"]
    for best in (BEST_HERE, BEST_PRINTED):
        _count(table, best, "all", [gap for gap in gaps if gap.theirs.tool == best and gap.kind != AGAIN])
    for kind in TITLES:
        of_kind = [gap for gap in gaps if gap.kind == kind]
        for tool in dict.fromkeys(gap.theirs.tool for gap in of_kind):
            _count(table, tool, TITLES[kind], [gap for gap in of_kind if gap.theirs.tool == tool])
    return table


def _count(table: Table, tool: str, kind: str, gaps: list[Gap]) -> None:
    if gaps:
        verdicts = Counter(gap.verdict for gap in gaps)
        counts = [verdicts[verdict] for verdict in ("win", "tie", "loss")]
        mean, error = np.mean([gap.points for gap in gaps]), np.linalg.norm([gap.error for gap in gaps]) / len(gaps)
        table.rows.append([tool, kind, len(gaps), *counts, f"{mean:+.1f} ± {2 * error:.1f}"])


def _losses(gaps: list[Gap]) -> Table:
    """Return all losses, the largest first."""
    table = Table("All losses of similia", ["set", "kind", "similia", "better tool", "its score", "gap ± 2 s.e."])
    for gap in sorted(gaps, key=lambda gap: gap.points):
        if gap.verdict == "loss" and gap.theirs.tool not in (BEST_HERE, BEST_PRINTED):
            scores = f"{gap.ours.score:.3g}", f"{gap.theirs.score:.3g}"
            table.rows.append([gap.set, TITLES[gap.kind], scores[0], gap.theirs.tool, scores[1], str(gap)])
    return table


def chart(gaps: list[Gap]) -> Any:
    """Return a figure of the gap to the best specialist on each set and the seconds of both; kinds in two columns."""
    from matplotlib.figure import Figure

    kinds = [kind for kind in TITLES if any(gap.kind == kind for gap in gaps)]
    sizes = {kind: 1.5 + sum(gap.kind == kind for gap in gaps) for kind in kinds}
    columns: list[list[str]] = [[], []]
    for kind in sorted(kinds, key=lambda kind: -sizes[kind]):
        min(columns, key=lambda column: sum(sizes[one] for one in column)).append(kind)
    columns = [column for column in columns if column]
    rows = max(sum(sizes[kind] for kind in column) for column in columns)
    figure = Figure(figsize=(5.6 * len(columns), 0.9 + 0.21 * rows), layout="constrained", facecolor="none")
    reach = min(60, 1.05 * max(abs(gap.points) + 2 * gap.error for gap in gaps))
    parts = figure.subfigures(1, len(columns), squeeze=False, facecolor="none")[0]
    for part, column in zip(parts, columns, strict=True):
        heights = [sizes[kind] for kind in column]
        axes = part.subplots(len(column), 2, squeeze=False, sharey="row", height_ratios=heights, width_ratios=[1.7, 1])
        for (left, right), kind in zip(axes, column, strict=True):
            of_kind = sorted((gap for gap in gaps if gap.kind == kind), key=lambda gap: gap.points)
            _points(left, of_kind, reach)
            _seconds(right, of_kind)
            left.set_title(TITLES[kind], fontsize=8, loc="left", color=INK)
        axes[-1, 0].set_xlabel("points", fontsize=7, color=INK)
        axes[-1, 1].set_xlabel("seconds", fontsize=7, color=INK)
    counts = Counter(gap.verdict for gap in gaps)
    budget = " or ".join(sorted({gap.ours.tool.split()[1] for gap in gaps}, key=float))
    figure.suptitle(
        f"similia minus the best specialist on each set, in points: {counts['win']} wins, {counts['tie']} ties, "
        f"{counts['loss']} losses by two standard errors.\n"
        f"Seconds to fit and predict: dots for similia (budget {budget} s), rings for the specialist.",
        fontsize=9, color=INK,
    )  # fmt: skip
    return figure


def _points(axis: Any, gaps: list[Gap], reach: float) -> None:
    """Draw the gaps of one kind, the best at the top."""
    colours = {"win": WIN, "tie": TIE, "loss": LOSS}
    for place, gap in enumerate(gaps):
        colour = colours[gap.verdict]
        axis.errorbar(gap.points, place, xerr=2 * gap.error, fmt="o", markersize=4, linewidth=1.4, color=colour)
    axis.axvline(0, color=INK, linewidth=0.8)
    axis.set_xlim(-reach, reach)
    axis.set_ylim(-0.7, len(gaps) - 0.3)
    axis.set_yticks(range(len(gaps)), [gap.set for gap in gaps], fontsize=7)
    _plain(axis)


def _seconds(axis: Any, gaps: list[Gap]) -> None:
    """Draw the seconds of similia and of the best specialist, in the same order."""
    places = range(len(gaps))
    ours, theirs = (
        [max(mean.seconds, 0.03) for mean in means] for means in zip(*((g.ours, g.theirs) for g in gaps), strict=True)
    )
    axis.hlines(places, ours, theirs, color=INK, alpha=0.4, linewidth=1)
    axis.plot(ours, places, "o", markersize=4, color=OURS)
    axis.plot(theirs, places, "o", markersize=4, color=INK, markerfacecolor="none")
    axis.set_xscale("log")
    axis.set_xlim(0.03, 3000)
    axis.set_xticks([0.1, 1, 10, 100, 1000], ["0.1", "1", "10", "100", "1000"])
    axis.minorticks_off()
    axis.tick_params(axis="y", length=0)
    _plain(axis)


def _plain(axis: Any) -> None:
    """Leave only labels and a pale grid, on no background."""
    axis.tick_params(colors=INK, labelsize=7)
    axis.set_facecolor("none")
    axis.grid(axis="x", color=INK, alpha=0.25)
    for side in axis.spines.values():
        side.set_visible(False)
