"""Clusters of time series: agreement with the classes and time, beside tslearn's and aeon's k-means and k-shape."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from joblib import cpu_count
from sklearn.metrics import adjusted_rand_score

from experiments._report import Record, Table, distinct, values
from similia.datasets import fetch


@dataclass(frozen=True)
class Task:
    """A set of the UCR archive."""

    name: str


@dataclass(frozen=True)
class Tool:
    """A function of `_cluster_tools`: library and method, how many seeds it gets, and who runs it.

    `variable` names the variable of an interpreter that has the library; empty: this one.
    """

    library: str
    method: str
    n_runs: int = 1
    variable: str = "SIMILIA_RIVALS_PYTHON"


CHOSEN = ("Plane", "SyntheticControl", "CBF", "GunPointMaleVersusFemale")  # sets on which the distance was chosen
TASKS = tuple(  # n L^2 ascends, and so do the hours of the rivals
    Task(name)
    for name in (
        *("SmoothSubspace", "SyntheticControl", "SonyAIBORobotSurface1", "SonyAIBORobotSurface2", "Plane", "Wine"),
        *("GunPointMaleVersusFemale", "FaceFour", "CBF", "ECGFiveDays", "SwedishLeaf", "OliveOil", "Herring"),
        *("FacesUCR", "Car", "FiftyWords", "WordSynonyms", "CricketY", "LargeKitchenAppliances", "ScreenType"),
    )
)
TOOLS = {
    "similia": Tool("similia", "", n_runs=3, variable=""),
    "euclidean": Tool("scikit-learn", "k-means", n_runs=3, variable=""),
    "tslearn_kmeans": Tool("tslearn", "k-means, DTW"),
    "tslearn_kshape": Tool("tslearn", "k-shape"),
    "aeon_kmeans": Tool("aeon", "k-means, DTW"),
    "aeon_kshape": Tool("aeon", "k-shape"),
}
TITLE = "Clusters of time series"
TEXT = """
Training and test part of sets of the UCR archive are joined, each series is standardised, and every tool is told the
number of classes. *Index*: the adjusted Rand index of clusters and classes, 1 if they are the same, 0 on average by
chance. `KernelKMeans(DTW())` runs with its defaults, on three seeds. DTW without a window was chosen, among five
distances, on the four sets with a star, by this index; so the comparison is also given without them.

`KernelKMeans` makes ten starts, its default, and so do the two k-shapes (aeon's default) and scikit-learn's k-means,
which takes the series for vectors (three seeds). A round of k-means by DTW costs tslearn and aeon n L^2 for n series of
length L, times the number of clusters or of steps to a barycentre. So it makes one start, its quickest, of at most 50
rounds. The rivals have one seed.

Each tool runs in a process of its own with the same number of cores (a column of the table), and a small call comes
first, which loads and compiles. similia is timed three times right before and three times right after each rival, and
the ratio of times takes the median of the six. *CPU seconds* are of all threads: where they are fewer than seconds,
others used the machine.

The rivals take hours on the largest sets. The sets come in the order of n L^2, and with `--output`, all rows of a set
are written when it is done. Rows that are there are not measured again: delete them to measure anew.
`SIMILIA_RIVALS_PYTHON` names an interpreter that has aeon and tslearn; without it, they are left out.
"""


def load(name: str) -> tuple[npt.NDArray, npt.NDArray]:
    """Return all series of a set, each standardised, and their classes."""
    bunch = fetch(name)
    X = bunch.data.values.reshape(len(bunch.data), -1).astype(np.float64)
    return (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, keepdims=True), bunch.target


def measure(task: Task, seeds: int, known: Sequence[Record] = ()) -> list[Record]:
    """Return the rows of a set: those that are `known`, unless a tool is missing there, or all measured anew.

    similia is timed right before and right after each rival; the median stands in the rival's row.
    """
    titles = {name: title for name, tool in TOOLS.items() if (title := titled(tool))}
    if {_key(title) for title in titles.values()} <= {_key(record["tool"]) for record in known}:
        return list(known)
    X, y = load(task.name)
    n, length = X.shape
    head = {"set": task.name, "n": n, "length": length, "classes": len(np.unique(y)), "cores": cpu_count()}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "series.npz")
        np.savez(path, allow_pickle=False, X=X, k=np.array(head["classes"]))

        def results(name: str) -> list[Record]:
            return run_tool(name, path, head["cores"], min(seeds, TOOLS[name].n_runs))

        before = results("similia")
        rows = [{"tool": titles["similia"], **scored(y, result)} for result in before]
        for name in list(titles)[1:]:
            theirs, after = results(name), results("similia")
            near = {f"similia_{what}": _median(before + after, what) for what in ("seconds", "cpu")}
            rows += [{"tool": titles[name], **scored(y, result), **near} for result in theirs]
            before = after
    return [{**head, **row} for row in rows]


def titled(tool: Tool) -> str:
    """Return library, version and method, or an empty text, saying so, where no interpreter has the library."""
    interpreter = _interpreter(tool)
    if interpreter:
        asked = f"from importlib.metadata import version; print(version({tool.library!r}))"
        done = subprocess.run([interpreter, "-c", asked], capture_output=True, text=True, check=False)
        if not done.returncode:
            return f"{tool.library} {done.stdout.strip()} {tool.method}".strip()
    print(f"left out: {tool.variable or sys.executable} names no interpreter that has {tool.library}", file=sys.stderr)
    return ""


def _interpreter(tool: Tool) -> str:
    return os.environ.get(tool.variable, "") if tool.variable else sys.executable


def _key(title: str) -> tuple[str, str]:
    """Return library and method of a title, without the version."""
    library, _, method = f"{title} ".split(" ", 2)
    return library, method.strip()


def run_tool(name: str, path: Path, cores: int, runs: int) -> list[Record]:
    """Return labels, seconds and CPU seconds of each run of a tool, in a process of its own; or one note of failure."""
    script = str(Path(__file__).with_name("_cluster_tools.py"))
    command = [_interpreter(TOOLS[name]), "-P", script, name, str(path), str(cores), *map(str, range(runs))]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), str(cores))
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **threads})
    if done.returncode:
        note = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        if not TOOLS[name].variable:
            raise ValueError(f"{TOOLS[name].library} failed: {note}")
        return [{"run": 0, "note": note}]
    return [{"run": run, **result, "note": ""} for run, result in enumerate(json.loads(done.stdout.splitlines()[-1]))]


def scored(y: npt.NDArray, result: Record) -> Record:
    """Return the adjusted Rand index of what a tool has found, the number of its clusters, and its time."""
    labels, row = result.get("labels"), {"run": result["run"]}
    if labels is None:
        return {**row, "clusters": "", "index": "", "seconds": "", "cpu": "", "note": result["note"]}
    index, taken = round(float(adjusted_rand_score(y, labels)), 6), {w: _short(result[w]) for w in ("seconds", "cpu")}
    return {**row, "clusters": len(set(labels)), "index": index, **taken, "note": result["note"]}


def _short(seconds: float) -> float:
    return float(f"{seconds:.4g}")


def _median(results: Sequence[Record], what: str) -> float:
    return _short(float(np.median([result[what] for result in results])))


def present(records: list[Record]) -> tuple[list[Table], None]:
    """Return a table with a row for each set, and one that compares similia with each rival."""
    names = [task.name for task in TASKS if any(record["set"] == task.name for record in records)]
    tools = [_key(f"{tool.library} version {tool.method}") for tool in TOOLS.values()]
    found = [rows for tool in tools if (rows := [record for record in records if _key(record["tool"]) == tool])]
    columns = ["set", "series", "length", "classes", "cores", *map(_versions, found)]
    table = Table(f"{len(names)} of {len(TASKS)} sets: index, seconds, CPU seconds", columns)
    for name in names:
        first = next(record for record in records if record["set"] == name)
        about = [first[what] for what in ("n", "length", "classes", "cores")]
        table.rows.append([f"{name}\\*" if name in CHOSEN else name, *about, *(_cell(rows, name) for rows in found)])
    return [table, _compared(*found)], None


def _versions(rows: Sequence[Record]) -> str:
    """Return the title of a tool; all of them, if rows are of several versions."""
    return " or ".join(distinct(rows, "tool"))


def _cell(rows: list[Record], name: str) -> str:
    """Return index, seconds and CPU seconds of a tool on a set."""
    here = [record for record in rows if record["set"] == name]
    if not here or here[0]["index"] == "":
        return "failed" if here else ""
    return f"{_mean(rows, name):.3f}, {_typical(rows, name, 'seconds'):.3g}, {_typical(rows, name, 'cpu'):.3g}"


def _mean(rows: list[Record], name: str) -> float:
    return float(np.mean(values(rows, "index", set=name)))


def _typical(rows: list[Record], name: str, what: str) -> float:
    return float(np.median(values(rows, what, set=name)))


def _compared(ours: list[Record], *rivals: list[Record]) -> Table:
    """Return mean indices and ratios of total times, on the sets that both have."""
    columns = ["rival", "sets", "similia's mean index", "the rival's", "ratio", "similia's is higher on"]
    table = Table("similia beside each rival", [*columns, "times as fast", "times less CPU seconds"])
    for rows in rivals:
        both = distinct([record for record in rows if record["index"] != ""], "set")
        others = [name for name in both if name not in CHOSEN]
        for names, which in ((both, ""), (others, " without a star")):
            if names and (not which or len(names) < len(both)):
                pairs = np.array([(_mean(ours, name), _mean(rows, name)) for name in names])
                mean, theirs = pairs.mean(axis=0)
                wins = f"{np.sum(pairs[:, 0] > pairs[:, 1])} of {len(names)}"
                faster = (
                    sum(_typical(rows, name, what) for name in names)
                    / sum(_typical(rows, name, f"similia_{what}") for name in names)
                    for what in ("seconds", "cpu")
                )
                cells = [f"{mean:.3f}", f"{theirs:.3f}", f"{mean / theirs:.2f}", wins, *(f"{f:.3g}" for f in faster)]
                table.rows.append([_versions(rows), f"{len(names)}{which}", *cells])
    return table
