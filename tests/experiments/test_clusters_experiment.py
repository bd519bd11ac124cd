"""Clusters of series beside rivals: rows that several sittings collect, times in one sitting, the tables by hand."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

import experiments
from experiments import _cluster_tools, clusters
from experiments._report import Section, _read_csv
from experiments.clusters import CHOSEN, TASKS, TOOLS, Task, measure, present, run_tool, scored, titled

DOCS = Path(__file__).parents[2] / "docs" / "reproduction"
SIX = [
    *("similia 1.0", "scikit-learn 1.0 k-means", "tslearn 1.0 k-means, DTW", "tslearn 1.0 k-shape"),
    *("aeon 1.0 k-means, DTW", "aeon 1.0 k-shape"),
]


def waves(n=12):
    """Return standardised series of two classes, which take turns: slow and fast waves."""
    X = np.sin(np.outer(1 + 2 * (np.arange(n) % 2), np.linspace(0, 6, 20)) + 0.1 * np.arange(n)[:, None])
    return (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, keepdims=True), np.array(["slow", "fast"] * (n // 2))


def file_of_waves(folder, k=2):
    np.savez(folder / "series.npz", X=waves()[0], k=k)
    return folder / "series.npz"


class Pretended:
    """Tools that find all clusters at once; each call of similia takes a second more than the one before."""

    def __init__(self):
        self.calls, self.killed_at, self.failing = [], "", ""

    def run_tool(self, name, path, cores, runs):
        if name == self.killed_at:
            raise KeyboardInterrupt
        if name == self.failing:
            raise RuntimeError("aeon k-means, DTW failed: MemoryError")
        self.calls.append((name, list(runs)))
        seconds = float(self.calls.count(("similia", [0, 1, 2]))) if name == "similia" else 60.0
        return [{"labels": [0, 1] * 6, "seconds": seconds, "cpu": seconds / 2}] * len(runs)


@pytest.fixture
def pretended(monkeypatch):
    pretended = Pretended()
    monkeypatch.setattr(clusters, "load", lambda name: waves())
    monkeypatch.setattr(clusters, "titled", lambda tool: f"{tool.library} 1.0 {tool.method}".strip())
    monkeypatch.setattr(clusters, "run_tool", pretended.run_tool)
    return pretended


# ---- several sittings
def test_a_killed_run_leaves_what_is_complete_and_a_later_one_measures_the_rest(tmp_path, pretended):
    run, table = {"only": ["Wine"], "output": tmp_path}, tmp_path / "reproduction" / "clusters.csv"
    pretended.killed_at = "tslearn_kshape"
    with pytest.raises(KeyboardInterrupt):
        experiments.run("clusters", **run)
    before = _read_csv(table)
    assert [row["tool"] for row in before] == [SIX[0]] * 3 + [SIX[1]] * 3 + SIX[2:3]
    pretended.calls, pretended.killed_at = [], ""
    section = experiments.run("clusters", **run)
    rivals = [call for call in pretended.calls if call[0] != "similia"]
    assert rivals == [("tslearn_kshape", [0]), ("aeon_kmeans", [0]), ("aeon_kshape", [0])]
    after = _read_csv(table)
    assert after[:7] == before
    assert [row["tool"] for row in after[7:]] == SIX[3:]
    page = section.write(tmp_path).read_text(encoding="utf-8")
    assert "`python dev.py reproduce clusters --seeds 3 --output docs`" in page
    assert "**Adjusted Rand index, 1 of 20 sets**" in page
    pretended.calls = []
    experiments.run("clusters", **run)
    assert pretended.calls == []


def test_rows_that_are_there_are_in_the_file_at_all_times(tmp_path, pretended, monkeypatch):
    run, counts, write = {"only": ["Plane", "Wine"], "output": tmp_path}, [], Section.write_rows
    pretended.killed_at = "aeon_kshape"
    with pytest.raises(KeyboardInterrupt):
        experiments.run("clusters", **run)

    def counted(section, folder):
        path = write(section, folder)
        counts.append(len(_read_csv(path)))
        return path

    monkeypatch.setattr(Section, "write_rows", counted)
    pretended.killed_at = ""
    experiments.run("clusters", **run)
    assert counts == list(range(10, 21))  # from the nine of Plane on


def test_similia_is_timed_right_before_and_after_each_rival(pretended):
    rows = list(measure(Task("Wine"), 10))
    names = [name for name, _ in pretended.calls]
    assert names == [name for rival in [*TOOLS][1:] for name in ("similia", rival)] + ["similia"]
    near = {row["tool"]: (row["similia_seconds"], row["similia_cpu"]) for row in rows if "similia_seconds" in row}
    assert list(near.values()) == [(1.5, 0.75), (2.5, 1.25), (3.5, 1.75), (4.5, 2.25), (5.5, 2.75)]
    head = {"set": "Wine", "n": 12, "length": 20, "classes": 2, "cores": clusters.cpu_count(), "clusters": 2}
    assert all(head.items() <= row.items() for row in rows)
    assert [row["run"] for row in rows] == [0, 1, 2, 0, 1, 2, 0, 0, 0, 0]


def test_another_version_is_measured_beside_the_one_before(pretended):
    known = [{"tool": title.replace("aeon 1.0", "aeon 0.9"), "run": run} for title in SIX for run in range(3)]
    rows = list(measure(Task("Wine"), 10, known))
    assert rows[: len(known)] == known
    assert [row["tool"] for row in rows[len(known) :]] == SIX[4:]


def test_a_rival_that_fails_is_left_out_and_measured_in_a_later_sitting(pretended, capsys):
    pretended.failing = "aeon_kmeans"
    rows = list(measure(Task("Wine"), 10))
    assert [title for title in SIX if title not in {row["tool"] for row in rows}] == [SIX[4]]
    assert capsys.readouterr().err == "left out on Wine: aeon k-means, DTW failed: MemoryError\n"
    pretended.failing = ""
    (again,) = list(measure(Task("Wine"), 10, rows))[len(rows) :]
    assert again["tool"] == SIX[4]


# ---- tools
def test_without_an_interpreter_the_rivals_are_left_out(monkeypatch, capsys):
    monkeypatch.setenv("SIMILIA_RIVALS_PYTHON", "")
    monkeypatch.setattr(clusters, "load", lambda name: waves())
    clusters._say.cache_clear()
    rows = list(measure(Task("Wine"), 2))  # similia and scikit-learn, in processes
    assert [row["tool"].split()[0] for row in rows] == ["similia"] * 2 + ["scikit-learn"] * 2
    assert all((row["index"], row["clusters"]) == (1, 2) and row["seconds"] > 0 and row["cpu"] > 0 for row in rows)
    assert list(measure(Task("Wine"), 2, rows)) == rows
    said = capsys.readouterr().err.splitlines()
    assert said == [
        f"left out: SIMILIA_RIVALS_PYTHON names no interpreter that has {library}" for library in ("tslearn", "aeon")
    ]


def test_an_interpreter_without_the_library_is_none_that_has_it(monkeypatch, capsys):
    monkeypatch.setenv("SIMILIA_RIVALS_PYTHON", sys.executable)
    assert titled(clusters.Tool("no-such-library", "k-shape")) == ""
    assert "that has no-such-library" in capsys.readouterr().err


def test_what_fails_says_how(tmp_path):
    with pytest.raises(RuntimeError, match=r"^similia failed: .*50"):
        run_tool("similia", file_of_waves(tmp_path, k=50), 1, [0])  # of 12 series


def test_the_tools_have_the_same_names_and_no_labels_are_one_cluster(monkeypatch, tmp_path, capsys):
    assert [*_cluster_tools.TOOLS] == [*TOOLS]
    monkeypatch.setitem(_cluster_tools.TOOLS, "empty", lambda X, k, run, cores: None)
    _cluster_tools.main("empty", str(file_of_waves(tmp_path)), 1, [0, 1])
    results = json.loads(capsys.readouterr().out)
    assert [result["labels"] for result in results] == [[0] * 12] * 2
    assert scored(waves()[1], results[0])["clusters"] == 1


@pytest.mark.skipif(not os.environ.get("SIMILIA_RIVALS_PYTHON"), reason="SIMILIA_RIVALS_PYTHON names no interpreter")
@pytest.mark.parametrize("name", [name for name, tool in TOOLS.items() if tool.variable])
def test_rivals_tell_two_waves_apart(name, tmp_path):
    (result,) = run_tool(name, file_of_waves(tmp_path), 1, [0])
    assert scored(waves()[1], result)["index"] == 1


def test_the_index_by_hand():
    result = {"labels": [0, 0, 1, 1], "seconds": 0.123456, "cpu": 12.3456}
    found = scored(np.array(["a", "b", "a", "b"]), result)  # of 6 pairs, 2 share a class, 2 a cluster, none shares both
    assert found == {"clusters": 2, "index": -0.5, "seconds": 0.1235, "cpu": 12.35}


# ---- tables
def row(name, tool, run, index, seconds, ours=""):
    about = {"set": name, "n": 60, "length": 144, "classes": 7, "cores": 1, "tool": tool, "run": run, "index": index}
    near = {"similia_seconds": ours, "similia_cpu": ours and ours / 4}
    return {**about, "seconds": seconds, "cpu": seconds / 2, **near}


def test_the_tables_by_hand():
    assert "Plane" in CHOSEN
    assert "Wine" not in CHOSEN
    records = [
        row("Wine", "tslearn 0.10 k-means, DTW", 0, 0.25, 30.0, ours=3.0),
        row("Wine", "similia 1.0", 0, 0.25, 1.0),
        row("Wine", "similia 1.0", 1, 0.75, 2.0),
        row("Car", "similia 1.0", 0, 0.1, 5.0),
        row("Plane", "similia 1.0", 0, 0.7, 4.0),
        row("Plane", "tslearn 0.10 k-means, DTW", 0, 0.95, 1270.0, ours=2.0),
        row("Plane", "tslearn 0.10 k-shape", 0, -0.1, 8.0, ours=4.0),
    ]
    (indices, times, ratios), figure = present(records)
    assert figure is None
    assert indices.title == "Adjusted Rand index, 3 of 20 sets"
    tools = ["similia 1.0", "tslearn 0.10 k-means, DTW", "tslearn 0.10 k-shape"]
    assert indices.columns == ["set", "series", "length", "classes", *tools]
    assert indices.rows == [
        ["Plane\\*", 60, 144, 7, "0.700", "**0.950**", "-0.100"],
        ["Wine", 60, 144, 7, "**0.500**", "0.250", ""],
        ["Car", 60, 144, 7, "**0.100**", "", ""],
    ]
    assert times.rows == [
        ["Plane\\*", "1", "4, 2", "1270, 635", "8, 4"],
        ["Wine", "1", "1.5, 0.75", "30, 15", ""],
        ["Car", "1", "5, 2.5", "", ""],
    ]
    two, one = "clusters of 2 of 20 UCR sets: ", "clusters of 1 of 20 UCR sets: "
    assert ratios.rows == [  # 1.2 : 1.2; 1300 s : 5 s, 30 : 3; 650 : 1.25, 15 : 0.75; 8 : 4; 4 : 1
        [f"{two}mean adjusted Rand index", tools[1], "1", "2 (1 of 16)", "at least 1", "yes"],
        [f"{two}speed", tools[1], "260", "10 (1 of 16)", "at least 20", "**no**"],
        [f"{two}speed by CPU seconds", tools[1], "520", "20 (1 of 16)", "at least 20", "yes"],
        [f"{one}mean adjusted Rand index", tools[2], "inf", "", "at least 1", "yes"],
        [f"{one}speed", tools[2], "2", "", "", ""],
        [f"{one}speed by CPU seconds", tools[2], "4", "", "", ""],
    ]


def test_the_page_of_the_documentation_is_that_of_its_rows_the_cheapest_set_first():
    records = _read_csv(DOCS / "clusters.csv")
    page = (DOCS / "clusters.md").read_text(encoding="utf-8")
    assert all(table.to_markdown() in page for table in present(records)[0])
    cells = {record["set"]: record["n"] * record["length"] ** 2 for record in records}
    order = [cells[task.name] for task in TASKS if task.name in cells]
    assert order == sorted(cells.values())
    assert len({task.name for task in TASKS}) == len(TASKS) == 20
