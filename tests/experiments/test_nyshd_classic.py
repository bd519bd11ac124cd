"""NysHD beside torchhd: the protocol end to end on a small set, and the tables by hand."""

import os

import numpy as np
import pytest
from sklearn.utils import Bunch

from experiments import nyshd_classic, nyshd_learners
from experiments.nyshd_classic import MACHINE, MAJORITY, RBF_SVM, UPDATES, Task
from similia.objects import as_series

needs_torchhd = pytest.mark.skipif(
    "SIMILIA_TORCHHD_PYTHON" not in os.environ, reason="SIMILIA_TORCHHD_PYTHON names no interpreter that has torchhd"
)


def blobs(n):
    rng = np.random.default_rng(n)
    y = np.arange(n) % 3
    return (np.eye(3)[y] * 4 + rng.standard_normal((n, 3))).astype(np.float32), y


@pytest.fixture
def small(monkeypatch):
    monkeypatch.delenv("SIMILIA_TORCHHD_PYTHON", raising=False)
    X, y = blobs(120)
    bunch = Bunch(data=X, target=y + 5, split=np.repeat([0, 1], [90, 30]))
    monkeypatch.setattr(nyshd_classic, "fetch", lambda name: bunch)
    monkeypatch.setattr(nyshd_classic, "SCALES", (1.0, 100.0))


def accuracies(records, learner):
    return [record["accuracy"] for record in records if record["learner"] == learner]


@pytest.mark.long
def test_all_learners_on_a_small_set(small, capsys):
    records = [*nyshd_classic.measure(Task("ISOLET", ("blobs",)), 2)]
    assert "SIMILIA_TORCHHD_PYTHON" in capsys.readouterr().err  # left out, with the reason
    assert [len(accuracies(records, name)) for name in (MAJORITY, RBF_SVM)] == [1, 1]
    assert accuracies(records, MAJORITY) == [pytest.approx(100 / 3)]
    for name in (*UPDATES, MACHINE):
        assert len(accuracies(records, name)) == 2
        assert min(accuracies(records, name)) > 85
    accuracy, automatic, _, chosen = nyshd_classic.present(records)[0]
    assert ["in print: LeHDC", ""] in accuracy.rows
    assert automatic.rows[0][:2] == ["ISOLET", "ridge"]
    assert chosen.rows[0][1].endswith("x median heuristic")


def test_known_rows_are_not_measured_again(small):
    task = Task("ISOLET", ("blobs",))
    whole = [*nyshd_classic.measure(task, 1)]
    marked = [{**record, "accuracy": -1.0} for record in whole]
    assert [*nyshd_classic.measure(task, 1, marked)] == marked
    again = [*nyshd_classic.measure(task, 1, [r for r in marked if r["learner"] != "margin"])]
    (margin,) = accuracies(whole, "margin")
    assert accuracies(again, "margin") == [margin]
    assert len(again) == len(whole)


def test_settings_are_chosen_on_the_training_part(small):
    forms, y, (train, test) = nyshd_classic.load(Task("ISOLET", ("blobs",)))
    assert set(y) == {0, 1, 2}
    for a, b in nyshd_classic.folds(y, train):
        assert set(a) | set(b) == set(train)
        assert not set(a) & set(b)
    assert not set(train) & set(test)
    changed = {"features": forms["features"].copy()}
    changed["features"][test] += 1000
    assert nyshd_classic._widths(changed, train) == nyshd_classic._widths(forms, train)


def test_windows_have_two_forms(monkeypatch):
    windows = np.arange(24.0).reshape(2, 3, 4) - 4
    bunch = Bunch(data=as_series(list(windows)), target=np.array([1, 0]), split=np.array([0, 1]))
    monkeypatch.setattr(nyshd_classic, "fetch", lambda name: bunch)
    forms, y, (train, test) = nyshd_classic.load(Task("EMG 1", ("windows",)))
    assert forms["samples"].tolist() == windows.reshape(2, 12).tolist()
    assert forms["means"][0].tolist() == [8 / 3, 3, 10 / 3, 11 / 3]  # of -4, 0, 4; -3, 1, 5; -2, 2, 6; -1, 3, 7
    assert (y.tolist(), train.tolist(), test.tolist()) == ([1, 0], [0], [1])


def test_the_gap_by_hand():
    assert nyshd_classic._gap(90.0, 90.0, 10_000) == "+0.00 ± 0.85"  # 2 sqrt(2 x .0902 x .9002 / 10,000) by hand
    assert nyshd_classic._gap(97.0, 98.5, 100).startswith("-1.50")


def test_few_bits_by_hand():
    scores = {
        "a": {"perceptron": (70, 74), "ridge": (73, 73), 2000: (72, 72), 1000: (71, 71), 504: (60, 60)},
        "b": {"perceptron": (80, 80), "ridge": (80, 80), 2000: (79.5, 79.5), 1000: (80, 80), 504: (80, 80)},
    }
    records = [
        {
            "set": one,
            "run": run,
            "learner": name if isinstance(name, str) else f"ridge, first {name:,} bits",
            "accuracy": score,
        }
        for one, rows in scores.items()
        for name, pair in rows.items()
        for run, score in enumerate(pair)
    ]
    assert nyshd_learners.few_bits(records).rows == [
        ["504", 1, 1, "a", 1, "a"],
        ["1,000", 1, 2, "none", 1, "a"],  # a: 1 ± 2 below the perceptron, 2 below ridge
        ["2,000", 1, 1, "b", 2, "none"],  # b: half a point below, with no spread
    ]


@pytest.mark.ecosystem
@needs_torchhd
def test_classifiers_of_torchhd():
    X, y = blobs(120)
    names = ["Vanilla", "OnlineHD", "CompHD"]  # codes by levels and by products; the tool compares them with torchhd's
    train, test = np.arange(90), np.arange(90, 120)
    found = [*nyshd_classic._torchhd({"features": X}, y, train, test, names, 2)]
    assert [record["learner"] for record in found] == [f"torchhd {name}" for name in names]
    assert min(record["accuracy"] for record in found) > 70
