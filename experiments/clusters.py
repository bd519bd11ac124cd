"""Clusters of time series: agreement with the classes and time, beside tslearn's and aeon's k-means and k-shape."""

from __future__ import annotations

import functools
import importlib.metadata
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import cpu_count
from sklearn.metrics import adjusted_rand_score

from experiments._report import Record, Table, distinct
from similia.datasets import fetch

Rows = dict[tuple[str, str], list[Record]]  # of a set and a tool


@dataclass(frozen=True)
class Task:
    """A set of the UCR archive."""

    name: str


@dataclass(frozen=True)
class Tool:
    """A function of `_cluster_tools`, with the library and the method it calls.

    Attributes
    ----------
    library, method : str
    runs : int
        Number of seeds at most.
    variable : str
        The variable that names an interpreter that has the library; empty: this interpreter.
    slower : float, optional
        How many times as long as ours it should take at least; None: no goal.
    """

    library: str
    method: str
    runs: int = 1
    variable: str = "SIMILIA_RIVALS_PYTHON"
    slower: float | None = 20.0


CHOSEN = ("Plane", "SyntheticControl", "CBF", "GunPointMaleVersusFemale")  # sets on which the distance was chosen
TASKS = tuple(  # by n L^2, the cheapest first
    Task(name)
    for name in (
        *("SmoothSubspace", "SyntheticControl", "SonyAIBORobotSurface1", "SonyAIBORobotSurface2", "Plane", "Wine"),
        *("GunPointMaleVersusFemale", "FaceFour", "CBF", "ECGFiveDays", "SwedishLeaf", "OliveOil", "Herring"),
        *("FacesUCR", "Car", "FiftyWords", "WordSynonyms", "CricketY", "LargeKitchenAppliances", "ScreenType"),
    )
)
SEEDS = 3  # of ours and of Euclidean k-means; rivals, which take minutes or hours, get one
TOOLS = {
    "similia": Tool("similia", "", SEEDS, variable="", slower=None),
    "euclidean": Tool("scikit-learn", "k-means", SEEDS, variable="", slower=None),
    "tslearn_kmeans": Tool("tslearn", "k-means, DTW"),
    "tslearn_kshape": Tool("tslearn", "k-shape", slower=None),
    "aeon_kmeans": Tool("aeon", "k-means, DTW"),
    "aeon_kshape": Tool("aeon", "k-shape"),
}
INDEX = "mean adjusted Rand index"
TITLE = "Clusters of time series: agreement with the classes and time"
TEXT = f"""
`KernelKMeans(DTW())` beside k-means and k-shape of tslearn and aeon, on {len(TASKS)} sets of the UCR archive. Training
and test part are joined, each series is standardised, and all tools get the number of classes. The adjusted Rand index
is 1 for clusters that are the classes, and 0 on average for clusters at random.

`KernelKMeans` runs with its defaults. DTW without a window was chosen, among five distances, on the four sets that have
a star; so the last table also gives the ratios without them. `KernelKMeans` makes ten starts, its default, and so do
both k-shapes (aeon's default) and scikit-learn's k-means, which is Euclidean. A round of k-means by DTW costs n L² for
n series of length L, times the number of clusters or of steps to a barycentre, so tslearn's and aeon's make one start,
their quickest, of at most 50 rounds. `KernelKMeans` and scikit-learn's k-means run with {SEEDS} seeds, and the tables
show means; the others run with one.

Each tool runs in a process of its own, on the number of cores in the table, after a small call that loads and compiles.
*CPU seconds* are those of all its threads: where seconds are more than CPU seconds divided by cores, others used the
machine. similia runs again, with all its seeds, right before and right after each rival. The median of these times
stands in the rival's row (`similia_seconds`, `similia_cpu`), and the ratios of times are made of it: both tools were
measured in one sitting.

All rivals on all sets take many hours. With `--output`, rows are written as soon as a tool is done with a set, the
cheapest set first, and rows that are there are not measured again: delete them to measure anew. So the tables hold what
was measured so far, and a ratio is made of the sets that both tools have. `SIMILIA_RIVALS_PYTHON` names an interpreter
that has tslearn and aeon. The goals: an index of at least the rival's; at least 20 times the speed of aeon and of
tslearn's k-means. A goal is met if both ratios, with and without the four sets, reach it.
"""


def load(name: str) -> tuple[npt.NDArray, npt.NDArray]:
    """Return all series of a set, each standardised, and their classes."""
    bunch = fetch(name)
    X = bunch.data.values.reshape(len(bunch.data), -1).astype(np.float64)
    return (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, keepdims=True), bunch.target


def measure(task: Task, seeds: int, known: Sequence[Record] = ()) -> Iterator[Record]:
    """Yield the rows that are `known`, then a row for each other tool and run.

    similia is timed right before and right after each rival; the median stands in the rival's row.
    """
    yield from known
    missing = {}
    for name, tool in TOOLS.items():
        title = titled(tool)
        done = {record["run"] for record in known if record["tool"] == title}
        runs = [run for run in range(min(seeds, tool.runs)) if run not in done]
        if title and runs:
            missing[name] = title, runs
    if not missing:
        return
    X, y = load(task.name)
    cores, classes = cpu_count(), len(np.unique(y))
    head = {"set": task.name, "n": len(X), "length": X.shape[1], "classes": classes, "cores": cores}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "series.npz"
        np.savez(path, allow_pickle=False, X=X, k=np.array(classes))
        seeds_of_ours = range(min(seeds, SEEDS))
        before = run_tool("similia", path, cores, seeds_of_ours)
        title, runs = missing.pop("similia", ("", []))
        for run in runs:
            yield {**head, "tool": title, "run": run, **scored(y, before[run])}
        for name, (title, runs) in missing.items():
            try:
                results = run_tool(name, path, cores, runs)
            except RuntimeError as error:
                print(f"left out on {task.name}: {error}", file=sys.stderr)
                continue
            after = run_tool("similia", path, cores, seeds_of_ours)
            ours = {
                f"similia_{cost}": _short(np.median([result[cost] for result in (*before, *after)]))
                for cost in ("seconds", "cpu")
            }
            for run, result in zip(runs, results, strict=True):
                yield {**head, "tool": title, "run": run, **scored(y, result), **ours}
            before = after


def titled(tool: Tool) -> str:
    """Return library, version and method, or an empty text, saying so, where no interpreter has the library."""
    version = _version(_interpreter(tool), tool.library) if tool.variable else importlib.metadata.version(tool.library)
    if not version:
        _say(f"left out: {tool.variable} names no interpreter that has {tool.library}")
    return version and f"{tool.library} {version} {tool.method}".strip()


def _interpreter(tool: Tool) -> str:
    return os.environ.get(tool.variable, "") if tool.variable else sys.executable


@functools.cache
def _version(interpreter: str, library: str) -> str:
    """Return the version of a library, or an empty text if the interpreter does not have it."""
    script = f"from importlib.metadata import version; print(version({library!r}))"
    asked = [interpreter, "-c", script]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip() if interpreter else ""


@functools.cache
def _say(sentence: str) -> None:
    """Print a sentence once, on standard error."""
    print(sentence, file=sys.stderr)


def run_tool(name: str, path: Path, cores: int, runs: Sequence[int]) -> list[dict[str, Any]]:
    """Return labels, seconds and CPU seconds of each run of a tool, measured in a process of its own."""
    tool = TOOLS[name]
    script = str(Path(__file__).with_name("_cluster_tools.py"))
    command = [_interpreter(tool), "-P", script, name, str(path), str(cores), *map(str, runs)]
    threads = {"OMP_NUM_THREADS": str(cores), "NUMBA_NUM_THREADS": str(cores)}
    finished = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **threads})
    if finished.returncode:
        last = (finished.stderr.strip().splitlines() or [f"exit code {finished.returncode}"])[-1]
        raise RuntimeError(f"{tool.library} {tool.method}".strip() + f" failed: {last}")
    return json.loads(finished.stdout.splitlines()[-1])


def scored(y: npt.NDArray, result: dict[str, Any]) -> Record:
    """Return the adjusted Rand index of what a tool has found, the number of its clusters, and its time."""
    labels = result["labels"]
    index = round(float(adjusted_rand_score(y, labels)), 6)
    times = {cost: _short(result[cost]) for cost in ("seconds", "cpu")}
    return {"clusters": len(set(labels)), "index": index, **times}


def _short(seconds: float) -> float:
    return float(f"{seconds:.4g}")


def present(records: list[Record]) -> tuple[list[Table], None]:
    """Return the index of each tool on each set, the seconds, and the ratios on the sets that both tools have."""
    titles = distinct(records, "tool")
    tools = [title for tool in TOOLS.values() for title in titles if _is(tool, title)]
    names = [task.name for task in TASKS if task.name in distinct(records, "set")]
    rows: Rows = {(name, tool): [] for name in names for tool in tools}
    for record in records:
        rows[record["set"], record["tool"]].append(record)
    found = f"{len(names)} of {len(TASKS)} sets"
    indices = Table(f"Adjusted Rand index, {found}", ["set", "series", "length", "classes", *tools])
    times = Table(f"Seconds, CPU seconds, {found}", ["set", "cores", *tools])
    for name in names:
        here = [rows[name, tool] for tool in tools]
        every = [record for of_tool in here for record in of_tool]
        shown = f"{name}\\*" if name in CHOSEN else name
        means = [_mean(of_tool, "index") if of_tool else -math.inf for of_tool in here]
        cells = [f"{mean:.3f}" if of_tool else "" for mean, of_tool in zip(means, here, strict=True)]
        best = cells[means.index(max(means))]
        bold = [f"**{cell}**" if cell == best else cell for cell in cells]
        indices.rows.append([shown, every[0]["n"], every[0]["length"], every[0]["classes"], *bold])
        times.rows.append([shown, ", ".join(map(str, distinct(every, "cores"))), *map(_costs, here)])
    return [indices, times, _ratios(rows, names, tools)], None


def _is(tool: Tool, title: str) -> bool:
    return title.startswith(f"{tool.library} ") and title.endswith(tool.method)


def _mean(records: Sequence[Record], column: str) -> float:
    return float(np.mean([record[column] for record in records]))


def _costs(records: Sequence[Record]) -> str:
    """Return mean seconds and CPU seconds with three digits."""
    means = [_mean(records, cost) for cost in ("seconds", "cpu")] if records else []
    return ", ".join(f"{mean:.3g}" if mean < 100 else f"{mean:.0f}" for mean in means)


def _ratios(rows: Rows, names: Sequence[str], tools: Sequence[str]) -> Table:
    """Return the ratio of mean indices and of total times to each rival, with and without the sets of `CHOSEN`."""
    columns = ["what", "rival", "ratio", f"without the {len(CHOSEN)} that chose the distance", "goal", "met"]
    table = Table("Ratios on the sets that both tools have; above 1 is better", columns)
    ours = [title for title in tools if _is(TOOLS["similia"], title)][-1]  # the newest
    for theirs in tools:
        tool = next(tool for tool in TOOLS.values() if _is(tool, theirs))
        both = [name for name in names if tool.library != "similia" and rows[name, ours] and rows[name, theirs]]
        others = [name for name in both if name not in CHOSEN]
        compared = _compared(rows, both, ours, theirs), _compared(rows, others, ours, theirs)
        for (what, of_all), (_, of_others) in zip(*compared, strict=True) if both else ():
            goal = 1.0 if what == INDEX else tool.slower
            met = "" if goal is None else "yes" if min(of_all, of_others) >= goal else "**no**"
            cells = f"{of_all:.3g}", f"{of_others:.3g} ({len(others)} of {len(TASKS) - len(CHOSEN)})" if others else ""
            title = f"clusters of {len(both)} of {len(TASKS)} UCR sets: {what}"
            table.rows.append([title, theirs, *cells, "" if goal is None else f"at least {goal:g}", met])
    return table


def _compared(rows: Rows, names: Sequence[str], ours: str, theirs: str) -> Iterator[tuple[str, float]]:
    """Yield each measure and its ratio on some sets; infinite if there is none, or the rival's index is not above 0."""
    index, other = (sum(_mean(rows[name, tool], "index") for name in names) for tool in (ours, theirs))
    yield INDEX, index / other if other > 0 else math.inf
    for what, cost in (("speed", "seconds"), ("speed by CPU seconds", "cpu")):
        taken, by_ours = (sum(_mean(rows[n, theirs], column) for n in names) for column in (cost, f"similia_{cost}"))
        yield what, taken / by_ours if names else math.inf
