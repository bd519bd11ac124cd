"""The experiment on conformal sets: its table by hand, and end to end on synthetic classes and numbers."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier

from experiments import conformal
from experiments.conformal import Task, measure, present

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 2))
TARGETS = {"proba": (X[:, 0] > 0).astype(int), "decisions": (X[:, 0] > 0).astype(int), "ESOL": X[:, 0]}
MODELS = {"proba": LogisticRegression(), "decisions": RidgeClassifier(), "ESOL": Ridge()}


class Products:
    """The inner product, as a kernel that reads its objects."""

    def as_objects(self, X):
        return X

    def __call__(self, X, Y=None):
        return X @ (X if Y is None else Y).T


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(conformal, "load", lambda name: (X, TARGETS[name] + 0.0 * (name == "ESOL"), MODELS[name]))
    monkeypatch.setattr(conformal, "_kernel", lambda name: Products())
    monkeypatch.setattr(conformal.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(conformal, "JACKKNIFE", 40)


@pytest.mark.parametrize(
    ("name", "methods"),
    [
        ("proba", ["split", "by class", "split, aps"]),
        ("decisions", ["split", "by class"]),
        ("ESOL", ["split", "cross", "jackknife+"]),
    ],
)
def test_each_method_is_measured_on_each_split(name, methods):
    records = [*measure(Task(name, "vectors"), 20)]
    assert [record["method"] for record in records] == methods * 20
    for method in methods:
        assert 0.8 < np.mean([r["coverage"] for r in records if r["method"] == method]) <= 1
    rows = present(records)[0][0].rows
    assert [row[:2] for row in rows] == [[name, method] for method in methods]


def test_the_table_by_hand():
    of = {"set": "a", "method": "split"}
    records = [
        {**of, "run": 0, "coverage": 0.5, "size": 1.0, "of": "1/2 1/2"},
        {**of, "run": 1, "coverage": 1.0, "size": 2.0, "of": "3/3 1/1"},
    ]
    assert present(records)[0][0].rows == [["a", "split", "75.0 ± 25.0", "66.7", "1.50"]]
