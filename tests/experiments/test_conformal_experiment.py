"""The experiment on conformal sets: its tables by hand, and end to end on synthetic classes and numbers."""

import numpy as np
import pytest

from experiments import conformal
from experiments.conformal import LABELS, NUMBERS, Task, measure, present

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 2))


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(conformal, "load", lambda task: (X, X[:, 0] if task.of == NUMBERS else (X[:, 0] > 0) + 3))
    monkeypatch.setattr(conformal.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(conformal, "JACKKNIFE", 40)
    monkeypatch.setattr(conformal, "ASKED_OF_IT", 50)


@pytest.mark.parametrize(
    ("name", "of", "methods"),
    [
        ("digits", LABELS, ["split", "by class", "split, aps", "cross"]),
        ("diabetes", NUMBERS, ["split", "cross", "jackknife+"]),
    ],
)
def test_each_method_is_measured_on_each_split(name, of, methods):
    records = [*measure(Task(name, "vectors", of), 20)]
    assert [record["method"] for record in records] == methods * 20
    for method in methods:
        those = [record for record in records if record["method"] == method]
        assert 0.85 < np.mean([record["coverage"] for record in those]) <= 1
        assert len({record["coverage"] for record in those}) > 1  # each split draws anew
    extremes, table = present(records)[0]
    assert [row[0].split(" (")[0] for row in extremes.rows] == methods
    assert [row[:3] for row in table.rows] == [[name, "vectors", method] for method in methods]
    assert {len(row) for row in table.rows} == {len(table.columns)}
    assert ("worst class" in table.columns) == (of == LABELS)


def test_the_table_by_hand():
    where = {"set": "splice"}
    rows = [("split", 0.5, 1.0, "1/2 1/2"), ("split", 1.0, 2.0, "3/3 1/1")]
    twin = [("MAPIE, split", 0.5, 1.5, "1/2 1/2"), ("MAPIE, split", 0.5, 2.7, "1/3 1/1")]
    other = [("MAPIE, cross, mean", 1.0, 2.0, "2/2 2/2")]
    names = ("method", "coverage", "size", "by class")
    extremes, table = present([where | dict(zip(names, row, strict=True)) for row in rows + twin + other])[0]
    assert table.rows == [
        ["splice", "strings", "split", "75.0 ± 25.0", "66.7", "1.500", "50.0 ± 0.0", "2.100", "-0.6000 ± 0.1000"],
        ["splice", "strings", "MAPIE, cross, mean", "100.0 ± 0.0", "100.0", "2.000", "–", "–", "–"],
    ]
    assert extremes.rows == [
        ["split (sets)", "1", "75.0", "75.0", "66.7", "0 of 1"],
        ["MAPIE, cross, mean (sets)", "1", "100.0", "100.0", "100.0", "–"],
    ]


def test_hydropathy_by_hand():
    assert conformal._hydropathy("ARX") == (1.8 - 4.5) / 2  # X is any amino acid


@pytest.mark.ecosystem
@pytest.mark.parametrize("of", [LABELS, NUMBERS])
def test_mapie_gets_the_same_model_and_objects(of, monkeypatch):
    pytest.importorskip("mapie", reason="MAPIE is not installed")
    monkeypatch.setattr(conformal.importlib.util, "find_spec", lambda name: name)
    records = [*measure(Task("points", "vectors", of), 2)]
    for method in ("split",) if of == LABELS else ("split", "jackknife+"):  # the other methods draw folds or numbers
        ours, theirs = (
            [(r["coverage"], r["size"]) for r in records if r["method"] == one]
            for one in (method, conformal.TWINS[method])
        )
        assert ours == theirs
