"""Clusters of series beside rivals: rows of whole sets, kept by later sittings; the tables by hand."""

import csv
import json
import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import experiments
from experiments import _cluster_tools, clusters
from experiments._report import Section, _read_csv
from experiments.clusters import CHOSEN, TASKS, TOOLS, Task, measure, present, run_tool, scored

DOCS = Path(__file__).parents[2] / "docs"
VERSIONS = {"similia": "1.0", "scikit-learn": "1.9.1", "tslearn": "0.10.0", "aeon": "1.6.0"}


def waves(n=12):
    """Standardised series of two classes, in turns: a slow wave and a fast one."""
    X = np.sin(np.outer(1 + 2 * (np.arange(n) % 2), np.linspace(0, 6, 20)) + 0.1 * np.arange(n)[:, None])
    return (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, keepdims=True), np.array(["slow", "fast"] * (n // 2))


class Pretended:
    """Data and tools that answer at once; `calls` lists the names of sets that were loaded, and of tools."""

    def __init__(self):
        self.calls, self.killed_at = [], 1000

    def load(self, name):
        self.calls.append(name)
        return waves()

    def titled(self, tool):
        return f"{tool.library} {VERSIONS[tool.library]} {tool.method}".strip()

    def run_tool(self, name, path, cores, runs):
        """Find all clusters; a call of similia takes as many seconds as there were calls, any other takes 60."""
        if len(self.calls) >= self.killed_at:
            raise KeyboardInterrupt
        self.calls.append(name)
        seconds = float(len(self.calls)) if name == "similia" else 60.0
        found = {"labels": [0, 1] * 6, "seconds": seconds, "cpu": seconds / 2, "note": ""}
        return [{"run": run, **found} for run in range(runs)]


@pytest.fixture
def pretended(monkeypatch):
    pretended = Pretended()
    for name in ("load", "titled", "run_tool"):
        monkeypatch.setattr(clusters, name, getattr(pretended, name))
    return pretended


def rows_in(folder):
    with (folder / "reproduction" / "clusters.csv").open(newline="") as file:
        return list(csv.DictReader(file))


# ---- several sittings
def test_a_killed_run_leaves_whole_sets_and_a_later_one_goes_on(tmp_path, pretended, monkeypatch):
    run, written, real = {"only": ["Wine", "Plane", "Car"], "output": tmp_path}, [], Section.write_rows

    def noted(section, folder):
        path = real(section, folder)
        written.append(Counter(row["set"] for row in rows_in(folder)))
        return path

    monkeypatch.setattr(Section, "write_rows", noted)
    pretended.killed_at = 20  # in the second set, after some of its tools
    with pytest.raises(KeyboardInterrupt):
        experiments.run("clusters", **run)
    assert pretended.calls[12:14] == ["Wine", "similia"]
    assert written == [{"Plane": 10}]  # three rows of similia and of scikit-learn, one of each rival
    before = rows_in(tmp_path)
    pretended.calls, pretended.killed_at = [], 1000
    section = experiments.run("clusters", **run)
    assert [call for call in pretended.calls if call not in TOOLS] == ["Wine", "Car"]
    assert all(set(rows.values()) == {10} for rows in written)
    assert rows_in(tmp_path)[:10] == before
    page = section.write(tmp_path).read_text()
    assert "**3 of 20 sets" in page
    assert "`python dev.py reproduce clusters --seeds 3 --output docs`" in page


def test_the_tools_take_turns_and_ours_is_timed_around_each_rival(pretended):
    rows = measure(Task("Plane"), 10)
    assert pretended.calls == ["Plane", *(name for rival in [*TOOLS][1:] for name in ("similia", rival)), "similia"]
    assert [row["tool"] for row in rows if row["run"] == 0] == [
        *("similia 1.0", "scikit-learn 1.9.1 k-means", "tslearn 0.10.0 k-means, DTW", "tslearn 0.10.0 k-shape"),
        *("aeon 1.6.0 k-means, DTW", "aeon 1.6.0 k-shape"),
    ]
    assert {(row["set"], row["n"], row["length"], row["classes"]) for row in rows} == {("Plane", 12, 20, 2)}
    near = {row["tool"]: (row["similia_seconds"], row["similia_cpu"]) for row in rows if "similia_seconds" in row}
    assert near["scikit-learn 1.9.1 k-means"] == (3, 1.5)  # calls 2 and 4
    assert near["aeon 1.6.0 k-shape"] == (11, 5.5)  # calls 10 and 12


def test_rows_are_kept_whatever_their_version_unless_a_rival_is_missing(pretended, monkeypatch):
    rows = measure(Task("Plane"), 10)
    pretended.calls.clear()
    monkeypatch.setitem(VERSIONS, "similia", "2.0")
    assert measure(Task("Plane"), 10, rows) == rows
    assert pretended.calls == []
    lacking = [row for row in rows if row["tool"] != "aeon 1.6.0 k-means, DTW"]
    again = measure(Task("Plane"), 10, lacking)
    assert len(again) == 10
    assert {row["tool"] for row in again if row["tool"].startswith("similia")} == {"similia 2.0"}


def test_without_the_rivals_their_rows_are_not_asked_for(monkeypatch, capsys):
    monkeypatch.delenv("SIMILIA_RIVALS_PYTHON", raising=False)
    monkeypatch.setattr(clusters, "load", lambda name: waves())
    rows = measure(Task("Plane"), 2)  # by similia and scikit-learn, in processes
    assert "SIMILIA_RIVALS_PYTHON names no interpreter that has aeon" in capsys.readouterr().err
    libraries = [row["tool"].split()[0] for row in rows]
    assert libraries == ["similia", "similia", "scikit-learn", "scikit-learn"]
    assert [row["index"] for row in rows] == [1] * 4
    assert all(row["seconds"] > 0 and row["clusters"] == 2 for row in rows)
    assert measure(Task("Plane"), 2, rows) == rows


# ---- tools
def test_the_index_by_hand():
    result = {"run": 0, "labels": [0, 0, 1, 1], "seconds": 0.123456, "cpu": 12.3456, "note": ""}
    # pairs of four objects: 2 share a class, 2 a cluster, none both; expected (2 * 2) / 6
    expected = {"run": 0, "clusters": 2, "index": -0.5, "seconds": 0.1235, "cpu": 12.35, "note": ""}
    assert scored(np.array([0, 1, 0, 1]), result) == expected
    empty = dict.fromkeys(("clusters", "index", "seconds", "cpu"), "")
    assert scored(np.array([0, 1]), {"run": 0, "note": "MemoryError"}) == {"run": 0, **empty, "note": "MemoryError"}


def test_a_method_that_finds_no_clusters_has_one(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(_cluster_tools.TOOLS, "none", lambda X, k, run, cores: None)
    np.savez(tmp_path / "series.npz", X=waves()[0], k=2)
    _cluster_tools.main("none", str(tmp_path / "series.npz"), 1, [0, 1])
    first, second = json.loads(capsys.readouterr().out)
    assert first["labels"] == second["labels"] == [0] * 12
    assert set(_cluster_tools.TOOLS) - {"none"} == set(TOOLS)


def test_a_rival_that_fails_leaves_a_note_and_ours_stops(monkeypatch, tmp_path):
    np.savez(tmp_path / "series.npz", X=waves()[0], k=50)  # more clusters than series
    monkeypatch.setenv("SIMILIA_RIVALS_PYTHON", os.sys.executable)
    (failed,) = run_tool("aeon_kmeans", tmp_path / "series.npz", 1, 1)
    assert failed["run"] == 0
    assert "labels" not in failed
    assert failed["note"]
    with pytest.raises(ValueError, match=r"similia failed: .*50"):
        run_tool("similia", tmp_path / "series.npz", 1, 1)


@pytest.mark.skipif(not os.environ.get("SIMILIA_RIVALS_PYTHON"), reason="SIMILIA_RIVALS_PYTHON names no interpreter")
@pytest.mark.parametrize("name", [name for name, tool in TOOLS.items() if tool.variable])
def test_a_rival_tells_two_waves_apart(name, tmp_path):
    X, y = waves(16)
    np.savez(tmp_path / "series.npz", X=X, k=2)
    (result,) = run_tool(name, tmp_path / "series.npz", 1, 1)
    assert scored(y, result)["index"] == 1


# ---- tables
def record(name, tool, run, index, seconds, ours=""):
    cost = {"seconds": seconds, "cpu": seconds / 2} if index != "" else {"seconds": "", "cpu": ""}
    near = {"similia_seconds": ours, "similia_cpu": ours}
    about = {"set": name, "n": 60, "length": 144, "classes": 7, "cores": 1}
    return {**about, "tool": tool, "run": run, "index": index, **cost, **near}


def test_the_tables_by_hand():
    assert "Plane" in CHOSEN
    assert "Wine" not in CHOSEN
    records = [
        record("Wine", "similia 1.0", 0, 0.25, 1.0),
        record("Wine", "similia 1.0", 1, 0.75, 2.0),
        record("Wine", "similia 1.0", 2, 0.5, 9.0),
        record("Wine", "tslearn 0.10.0 k-shape", 0, 0.25, 30.0, ours=3.0),
        record("Wine", "aeon 1.6.0 k-means, DTW", 0, "", "", ours=3.0),
        record("Plane", "similia 1.1", 0, 0.9, 4.0),
        record("Plane", "tslearn 0.10.0 k-shape", 0, 1.0, 70.0, ours=2.0),
        record("Plane", "aeon 1.6.0 k-means, DTW", 0, 0.6, 8.0, ours=4.0),
    ]
    (sets, compared), figure = present(records)
    assert figure is None
    assert sets.title.startswith("2 of 20 sets")
    assert sets.columns[5:] == ["similia 1.0 or similia 1.1", "tslearn 0.10.0 k-shape", "aeon 1.6.0 k-means, DTW"]
    about = [60, 144, 7, 1]
    assert sets.rows == [
        ["Plane\\*", *about, "0.900, 4, 2", "1.000, 70, 35", "0.600, 8, 4"],
        ["Wine", *about, "0.500, 2, 1", "0.250, 30, 15", "failed"],
    ]
    assert compared.rows == [  # 100 s : 5 s, 50 s : 5 s; 30 : 3, 15 : 3; 8 : 4, 4 : 4
        ["tslearn 0.10.0 k-shape", "2", "0.700", "0.625", "1.12", "1 of 2", "20", "10"],
        ["tslearn 0.10.0 k-shape", "1 without a star", "0.500", "0.250", "2.00", "1 of 1", "10", "5"],
        ["aeon 1.6.0 k-means, DTW", "1", "0.900", "0.600", "1.50", "1 of 1", "2", "1"],
    ]


def test_the_rows_in_the_docs_are_of_whole_sets_in_the_order_of_their_cost():
    records = _read_csv(DOCS / "reproduction" / "clusters.csv")
    cells = {record["set"]: record["n"] * record["length"] ** 2 for record in records}
    order = [task.name for task in TASKS if task.name in cells]
    assert len(order) == len(cells)
    assert [cells[name] for name in order] == sorted(cells.values())
    for name in cells:
        tools = Counter(clusters._key(record["tool"]) for record in records if record["set"] == name)
        assert tools == {(tool.library, tool.method): tool.n_runs for tool in TOOLS.values()}
    assert {len(TASKS), len({task.name for task in TASKS})} == {20}
