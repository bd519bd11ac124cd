"""The experiment on outliers: its collections, its table by hand, and end to end on synthetic points."""

import numpy as np
import pytest

import similia as sm
from experiments import outliers
from experiments.outliers import Task, collection, measure, present

RNG = np.random.default_rng(0)
X = np.vstack([RNG.normal(size=(60, 2)), RNG.normal(size=(60, 2)) + 20.0])
Y = np.repeat(["near", "far"], 60)


@pytest.mark.parametrize("run", range(3))
def test_a_collection_has_so_many_objects_of_the_class_whose_turn_it_is(run):
    rows, rare = collection(Y, run, 5)
    assert len(np.unique(rows)) == len(rows) == 65
    assert rare.sum() == 5
    assert set(Y[rows][rare]) == {["far", "near"][run % 2]}  # in sorted order
    assert set(Y[rows][~rare]) == {["near", "far"][run % 2]}


def test_rare_objects_that_lie_apart_are_found(monkeypatch):
    monkeypatch.setattr(outliers, "load", lambda name: (X, Y))
    monkeypatch.setattr(outliers, "S", 10)
    records = [*measure(Task("points", lambda: sm.kernels.RBF(0.01), "points"), 2)]
    judged = {(record["detector"], record["of"], record["rare"], record["run"]) for record in records}
    assert len(judged) == len(records) == 2 * len(outliers.RARE) * 7  # three of ours, LOF and forests of each input
    ours = [record["auc"] for record in records if record["detector"].startswith("Outlier") and record["rare"] == 5]
    assert min(ours) > 90
    _, first, second = (table.rows for table in present(records)[0])
    assert [row[0] for row in first] == [row[0] for row in second] == ["points", "mean"]
    assert first[0][1:] != second[0][1:]


def test_the_table_by_hand():
    where = {"rare": 5, "detector": "LOF", "of": "points"}
    found = [("a", 0, 50.0), ("a", 1, 70.0), ("b", 0, 90.0), ("b", 1, 90.0)]
    records = [{**where, "set": name, "run": run, "auc": auc} for name, run, auc in found]
    (_, table), _ = present([*records, *({**where, "set": "splice", "run": run, "auc": 45.0} for run in range(2))])
    assert table.rows[0] == ["a", "60.0 ± 10.0"]
    assert table.rows[-2:] == [["mean of the first", "45.0"], ["mean", "65.0"]]


def test_the_differences_by_hand():
    found = {
        ("OutlierDetector, neighbors", "the similarity"): (70.0, 65.0, 80.0),
        ("OutlierDetector, density", "the similarity"): (60.0, 60.0, 60.0),
        ("isolation forest", "the same vectors"): (50.0, 50.0, 50.0),
        ("LOF", "the same vectors"): (60.0, 60.0, 60.0),
        ("isolation forest", "raw features"): (75.0, 75.0, 75.0),
        ("LOF", "raw features"): (69.0, 66.0, 77.0),
    }
    records = [
        {"set": name, "rare": 5, "detector": detector, "of": of, "run": run, "auc": auc + step}
        for (detector, of), areas in found.items()
        for name, auc in zip(("splice", "digits", "CTCF"), areas, strict=True)
        for run, step in enumerate((-1.0, 1.0))
    ]
    rows = present(records)[0][0].rows
    assert [row[:3] for row in rows] == [
        [5, "neighbors", "all 3"], [5, "neighbors", "added 1"], [5, "density", "all 3"], [5, "density", "added 1"],
    ]  # fmt: skip
    assert rows[0][-1] == "+1.0 ± 1.2 (2)"  # of 1, -1 and 3
    assert rows[1][3:] == ["+30.0 ± 0.0 (1)", "+20.0 ± 0.0 (1)", "+5.0 ± 0.0 (1)", "+3.0 ± 0.0 (1)"]
    assert rows[2][4] == "+0.0 ± 0.0 (0)"


def test_each_set_is_listed_once():
    names = [task.name for task in outliers.TASKS]
    assert len(set(names)) == len(names) == 53
