"""similia beside specialists: errors and counts by hand, tools that never see test targets, and a run that goes on."""

from __future__ import annotations

import csv
import os
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import experiments
from experiments import _specialist_tools, specialists
from experiments._letters import letters
from experiments._paper import choose
from experiments._report import _read_csv
from experiments._specialist_tables import BEST_HERE, BEST_PRINTED, gaps_of, mean_of, present
from experiments.specialists import KINDS, TASKS, TOOLS, Task, auc_error, run_tool, scored, share_error
from similia.objects import as_graphs, as_strings, take

RIVALS = {tool.variable for tool in TOOLS.values()} - {""}


# ---- scores and their errors
def test_error_of_an_area_of_one_half_is_that_of_the_rank_sum():
    m, n = 7, 12  # the variance of Mann and Whitney's U / (m n) where both classes have one distribution
    assert auc_error(0.5, m, n) == pytest.approx(np.sqrt((m + n + 1) / (12 * m * n)))
    assert auc_error(1.0, m, n) == 0


def test_scores_by_hand():
    y = np.array([0, 1, 1, 1])
    cost = {"seconds": 1.234, "cpu": 2.0, "memory": 99.6}
    found = scored("accuracy", y, {"predictions": [0, 1, 0, 1], "scores": None, **cost})
    assert (found["score"], found["macro"], found["seconds"], found["memory"]) == (75, round(100 * 5 / 6, 3), 1.23, 100)
    assert found["error"] == round(100 * np.sqrt(5 / 8 * 3 / 8 / 8), 3)  # 3 + 2 of 4 + 4
    assert share_error(1.0, 4) == pytest.approx(np.sqrt(6 / 8 * 2 / 8 / 8))
    found = scored("auc", y, {"predictions": [0, 0, 0, 0], "scores": [0.5, 0.1, 0.6, 0.7], **cost})
    assert found["score"] == round(200 / 3, 3)  # two of three pairs in order
    found = scored("rmse", np.zeros(2), {"predictions": [3.0, 4.0], "scores": None, **cost})
    assert found["score"] == pytest.approx(np.sqrt(12.5), abs=1e-4)
    assert found["error"] == pytest.approx(3.5 / np.sqrt(2) / (2 * np.sqrt(12.5)), abs=1e-4)
    assert scored("rmse", y, {"note": "failed"})["score"] == ""


def test_resamples_have_the_published_sizes_and_the_classes_of_all_objects(monkeypatch):
    y = np.repeat([0, 1], [40, 20])
    monkeypatch.setattr(specialists, "splits", lambda name: [(np.arange(24), np.arange(24, 60))])
    parts = specialists.parts_of(Task("CBF resampled", "resamples", source="CBF", n_splits=5), y, seeds=3)
    assert list(parts) == [0, 1, 2]
    for train, test in parts.values():
        assert np.array_equal(np.sort(np.r_[train, test]), np.arange(60))
        assert np.bincount(y[train]).tolist() == [16, 8]
        assert np.bincount(y[test]).tolist() == [24, 12]
    assert len({tuple(train) for train, _ in parts.values()}) == 3


def row(tool, role, score, error=1.0, run=0, set="one", metric="accuracy", kind="dna"):
    numbers = {"seconds": 2.0, "memory": 50, "n_train": 10, "n_test": 5}
    head = {"set": set, "kind": kind, "metric": metric, "looked_at": int(set == "two")}
    return {**head, "tool": tool, "role": role, "score": score, "error": error, "run": run, **numbers}


OURS = "similia, 60 s"


def test_only_splits_that_both_have_are_compared():
    records = [row(OURS, "similia", score, run=run) for run, score in enumerate([80.0, 90.0, 40.0])]
    records += [row("A", "specialist", score, run=run) for run, score in enumerate([70.0, 90.0])]
    records += [row("in print: P", "print", 75.0)]
    gaps = {gap.theirs.tool: gap for gap in gaps_of(records, "one", OURS)}
    assert gaps["A"].points == gaps[BEST_HERE].points == 5
    assert gaps["A"].error == pytest.approx(1.0)  # two errors of sqrt(1 + 1) / 2
    assert gaps[BEST_PRINTED].points == pytest.approx(-5)  # all three of ours
    assert mean_of(records, "one", "B") is None


def test_lower_errors_are_better_and_in_percent_of_the_others():
    records = [row(OURS, "similia", 0.5, 0.01, metric="rmse"), row("A", "specialist", 0.4, 0.03, metric="rmse")]
    records += [row("B", "specialist", 2.0, 0.0, metric="rmse")]
    gaps = {gap.theirs.tool: gap for gap in gaps_of(records, "one", OURS)}
    assert (gaps["A"].points, gaps["A"].verdict) == (pytest.approx(-25), "loss")
    assert gaps["A"].error == pytest.approx(100 * np.hypot(0.01, 0.03) / 0.4)
    assert (gaps["B"].points, gaps["B"].verdict) == (pytest.approx(75), "win")
    assert gaps[BEST_HERE].points == gaps["A"].points


def test_wins_ties_and_losses_are_counted_and_losses_shown():
    records = []
    for name, score in (("one", 90.0), ("two", 80.0), ("three", 70.0)):
        records += [row("majority or mean", "baseline", 50.0, set=name), row(OURS, "similia", score, set=name)]
        records += [row("A", "specialist", 80.5, set=name), row("B", "specialist", "", set=name)]
    tables, figure = present(records)
    titles = {table.title: table for table in tables}
    (scores,) = (table for title, table in titles.items() if title == "DNA")
    assert [line[0] for line in scores.rows] == ["one", "two\\*", "three"]
    assert scores.rows[0][5:7] == ["**90.0**", "80.5"]
    counts = {line[0]: line[2:7] for line in titles["Wins, ties and losses of similia by two standard errors"].rows}
    assert counts["A"] == [3, 1, 1, 1, "-0.5 ± 1.6"]  # of 9.5, -0.5 and -10.5, each with an error of sqrt(2)
    assert "B" not in counts
    losses = titles["All losses of similia"].rows
    assert [(line[0], line[3], line[5]) for line in losses] == [("three", "A", "-10.5 ± 2.8")]
    assert "1 wins, 1 ties, 1 losses" in figure.get_suptitle()


def test_the_chart_shows_points_and_seconds_of_both():
    records = [row("majority or mean", "baseline", 50.0), row(OURS, "similia", 90.0) | {"seconds": 60.0}]
    records += [row("A", "specialist", 80.0) | {"seconds": 4.0}, row("B", "specialist", 85.0) | {"seconds": 0.5}]
    _, figure = present(records)
    points, seconds = figure.subfigs[0].axes
    assert points.get_xlabel() == "points"
    assert [line.get_xdata().tolist() for line in points.lines[:1]] == [[5.0]]
    assert seconds.get_xlabel() == "seconds"
    assert [line.get_xdata().tolist() for line in seconds.lines] == [[60.0], [0.5]]
    assert "dots for similia" in figure.get_suptitle()


def test_the_chart_of_the_documentation_is_that_of_its_table():
    docs = Path(__file__).parents[2] / "docs" / "reproduction"
    tables, figure = present(_read_csv(docs / "specialists.csv"))
    picture, page = ((docs / f"specialists.{ending}").read_text(encoding="utf-8") for ending in ("svg", "md"))
    texts = set(re.findall(r"<text[^>]*>([^<]*)</text>", picture))
    assert {*figure.get_suptitle().splitlines()} <= texts
    for part in figure.subfigs:
        assert {label.get_text() for axis in part.axes[::2] for label in axis.get_yticklabels()} <= texts
    assert all(table.to_markdown() in page for table in tables)


def test_each_set_counts_with_its_largest_budget():
    more = "similia, 100 s"
    records = []
    for name in ("one", "two"):
        records += [row("majority or mean", "baseline", 50.0, set=name), row(OURS, "similia", 70.0, set=name)]
        records += [row("A", "specialist", 80.5, set=name)]
    tables, figure = present([*records, row(more, "similia", 95.0, set="two")])
    (counts,) = (table.rows for table in tables if table.title.startswith("Wins"))
    assert [line[2:6] for line in counts if line[0] == "A"] == [[2, 1, 0, 1]]
    assert "1 wins, 0 ties, 1 losses" in figure.get_suptitle()


def test_resampled_series_are_counted_by_themselves():
    records = []
    for kind, score in (("series", 90.0), ("resamples", 70.0)):
        records += [row("majority or mean", "baseline", 50.0, set=kind, kind=kind)]
        records += [row(OURS, "similia", score, set=kind, kind=kind)]
        records += [row("A", "specialist", 80.5, set=kind, kind=kind)]
    tables, figure = present(records)
    (counts,) = (table.rows for table in tables if table.title.startswith("Wins"))
    counted = {tuple(line[:2]): line[2:6] for line in counts}
    assert counted[BEST_HERE, "all"] == counted["A", "Series"] == [1, 1, 0, 0]
    assert counted["A", "Series, resampled"] == [1, 0, 0, 1]
    assert "1 wins, 0 ties, 0 losses" in figure.get_suptitle()


# ---- published numbers
def test_published_numbers_stand_beside_the_data(tmp_path, monkeypatch):
    monkeypatch.setenv("SIMILIA_DATA", os.pathsep.join([str(tmp_path / "data"), str(tmp_path / "data2")]))
    (tmp_path / "reference").mkdir()
    header = "dataset,classifier,accuracy_default_split\n"
    (tmp_path / "reference" / "ucr_accuracy.csv").write_text(f"{header}CBF,HC2,0.9\nCar,HC2,0.8\n")
    parts = {0: (np.arange(3), np.arange(3, 7))}
    found = list(specialists.printed(Task("CBF", "series"), np.zeros(7), parts))
    assert [(line["tool"], line["score"], line["role"]) for line in found] == [("in print: HC2", 90.0, "print")]
    assert list(specialists.printed(Task("CTCF", "dna", "auc"), np.zeros(7), parts)) == []


# ---- tools
def job(folder, task, X, y, parts, **options):
    specialists.write_objects(folder, task, X, y, parts)
    options = {"metric": task.metric, "budget": 2, "runs": list(parts), **options}
    (folder / "options.json").write_text(specialists.json.dumps(options))
    return _specialist_tools.Job(folder)


def test_no_tool_looks_at_the_targets_of_a_test_part(tmp_path):
    drawings, names = letters(5)
    order = np.random.default_rng(0).permutation(75)
    X, y = take(as_graphs(drawings), order), np.unique(names[order], return_inverse=True)[1]
    train, test = np.arange(60), np.arange(60, 75)
    other = np.where(np.arange(75) < 60, y, 0)
    texts = as_strings([f"{name}{name} {i}" for i, name in enumerate(names[order])])
    cases = {"mean_map": (Task("letters", "attributes"), X), "letters": (Task("made", "text"), texts)}
    for name, (task, objects) in cases.items():
        found = [
            list(_specialist_tools.TOOLS[name](job(tmp_path, task, objects, targets, {0: (train, test)})))
            for targets in (y, other)
        ]
        assert np.array_equal(found[0][0][0], found[1][0][0]), name
        assert found[0][0][2] == found[1][0][2], name
    assert np.mean(found[0][0][0] == y[test]) > 0.8


def test_kernel_machines_choose_among_kernels_by_folds_of_the_training_part(tmp_path):
    random = np.random.default_rng(0)
    y = np.tile([0, 1], 30)
    points = {"noise": random.standard_normal((60, 3)), "signal": y[:, None] * 2.0 + random.normal(0, 0.3, (60, 3))}
    parts = {0: (np.arange(40), np.arange(40, 60))}
    one = job(tmp_path, Task("made", "text"), as_strings(["A"] * 60), y, parts)
    predictions, scores, note = _specialist_tools._machine(one, {k: X @ X.T for k, X in points.items()}, *parts[0])
    assert note.startswith("signal")
    assert (predictions == y[40:]).all()
    assert ((scores > 0) == (predictions == 1)).all()
    one = job(tmp_path, Task("made", "text", "rmse"), as_strings(["A"] * 60), y + 100.0, parts)
    predictions, _, _ = _specialist_tools._machine(one, {k: X @ X.T for k, X in points.items()}, *parts[0])
    assert np.abs(predictions - y[40:] - 100).max() < 0.8  # the mean of the training part is put back


def test_what_fails_or_takes_too_long_has_a_note(tmp_path, monkeypatch, capfd):
    (found,) = run_tool("letters", tmp_path, {"runs": [3], "metric": "auc"})
    assert found["run"] == 3
    assert "objects.npz" in found["note"]
    monkeypatch.setattr(specialists, "LIMIT", 0.01)
    (found,) = run_tool("letters", tmp_path, {"runs": [0], "metric": "auc"})
    assert found["note"] == "out of time after 0.01 s"
    monkeypatch.delenv("SIMILIA_GRAKEL_PYTHON", raising=False)
    assert list(run_tool("wl", tmp_path, {"runs": [0], "metric": "auc"})) == []
    assert "SIMILIA_GRAKEL_PYTHON names no interpreter" in capfd.readouterr().err


def test_every_task_has_tools_and_a_name_of_its_own():
    assert max(Counter(task.name for task in TASKS).values()) == 1
    assert {task.kind for task in TASKS} == {*KINDS}
    assert {name for names in KINDS.values() for name in names} | {"similia"} == {*TOOLS} == {*_specialist_tools.TOOLS}


# ---- the whole run
@pytest.mark.long
def test_an_interrupted_run_goes_on(tmp_path, monkeypatch):
    for variable in RIVALS:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(specialists, "N_DRAWINGS", 6)
    run, real = {"only": ["promoters", "letters"], "seeds": 1, "budget": 2, "output": tmp_path}, run_tool

    def interrupted(name, folder, options):
        if name == "mean_map":
            raise KeyboardInterrupt
        return real(name, folder, options)

    monkeypatch.setattr(specialists, "run_tool", interrupted)
    with pytest.raises(KeyboardInterrupt):
        experiments.run("specialists", **run)

    def rows():
        with (tmp_path / "reproduction" / "specialists.csv").open(newline="") as file:
            return {(line["set"], line["tool"]): line for line in csv.DictReader(file)}

    before = rows()
    assert ("letters", "similia, 2 s") in before
    assert ("letters", "plain mean map, SVM") not in before
    asked = []
    monkeypatch.setattr(specialists, "run_tool", lambda *given: asked.append(given[2]["runs"]) or real(*given))
    section = experiments.run("specialists", **run)
    assert Counter(map(len, asked)) == {0: 3, 1: 2}  # new: the mean map; WL, which no interpreter has
    page = section.write(tmp_path)
    after = rows()
    assert {key: after[key] for key in before} == before
    for name in ("promoters", "letters"):
        assert float(after[name, "similia, 2 s"]["score"]) > float(after[name, "majority or mean"]["score"]) + 15
        assert float(after[name, "similia, 2 s"]["memory"]) > 50
    assert "Wins, ties and losses of similia" in page.read_text()
    assert "<svg" in (tmp_path / "reproduction" / "specialists.svg").read_text()


def test_experiments_without_a_budget_say_so():
    with pytest.raises(ValueError, match="nyshd-graphs has no budget"):
        experiments.run("nyshd-graphs", only=["MUTAG"], budget=3)


def test_kinds_choose_their_sets():
    chosen = choose(TASKS, ["molecules", "CTCF"])
    assert [task.name for task in chosen] == ["CTCF", "ESOL", "Photoswitch", "BBBP"]
