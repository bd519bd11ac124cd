"""The experiment on kinds of bits: its measures by hand, its limits, and end to end."""

import numpy as np
import pytest

import experiments
from experiments import bits
from experiments.bits import FLOATS, accuracy, score, unit, vote
from experiments.hashing_objects import measured
from similia.embeddings import Nystroem
from similia.kernels import Spectrum


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(bits, "BITS", (8, 16, 2048))


def _two_clouds(n=120, d=16, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    V = rng.standard_normal((n, d))
    V[:, 0] += 6 * y - 3
    return V[: n // 2], V[n // 2 :], y[: n // 2], y[n // 2 :]


def test_votes_by_hand():
    labels = np.array([["a", "b", "b"], ["c", "a", "b"], ["b", "a", "a"]])
    assert vote(labels).tolist() == ["b", "c", "a"]


def test_unit_and_accuracy_by_hand():
    np.testing.assert_array_equal(unit(np.array([[3.0, 4], [0, 0]])), [[0.6, 0.8], [0, 0]])
    assert accuracy(np.array([1, 2, 2]), np.array([1, 2, 3])) == 66.667


def test_signs_come_close_to_the_vectors_and_flips_cost(monkeypatch):
    monkeypatch.setattr(bits, "FLIPS", (0.0, 0.2, 0.5))
    records = score(*_two_clouds(), seed=0)
    (floats,) = (record for record in records if record["code"] == FLOATS)
    assert floats["recall"] == 100
    assert min(floats["svm"], floats["classifier"], floats["neighbours"]) > 95

    def one(column, **where):
        (value,) = measured(records, column, **where)
        return value

    long = {"code": "signs", "bits": 2048}
    recalls = [one("recall", flipped=share, **long) for share in (0.0, 0.2, 0.5)]
    assert recalls[0] > 85
    assert recalls[0] > recalls[1] > recalls[2]
    assert recalls[2] < 35  # ten of sixty by chance
    assert one("recall", code="signs", bits=8, flipped=0.0) < recalls[0] - 20
    assert one("classifier", flipped=0.0, **long) > 95
    assert one("neighbours", flipped=0.0, **long) > 95


def test_only_test_codes_are_flipped_and_only_training_labels_are_learnt(monkeypatch):
    V, W, y, z = _two_clouds()
    monkeypatch.setattr(bits, "FLIPS", (1.0,))
    (record,) = (r for r in score(V, W, y, z, seed=0) if (r["code"], r["bits"]) == ("signs", 2048))
    assert record["classifier"] < 5  # opposite codes are of the other class
    assert record["neighbours"] < 5
    clean = score(V, W, y, z, seed=0)
    relabelled = score(V, W, y, 1 - z, seed=0)
    for a, b in zip(clean, relabelled, strict=True):
        assert a["recall"] == b["recall"]
        if a["note"] == "":
            assert a["classifier"] == pytest.approx(100 - b["classifier"], abs=0.01)
            assert a["neighbours"] == pytest.approx(100 - b["neighbours"], abs=0.01)


def test_itq_stops_at_the_rank():
    V, W, y, z = _two_clouds(d=12)
    records = score(V, W, y, z, seed=0)
    for record in records:
        possible = record["code"] in (FLOATS, "signs") or record["bits"] == 8
        assert (record["note"] == "") == possible
        assert (record["recall"] == "") != possible
        assert possible or record["note"] == "the vectors have rank 12"


def _task():
    def load(seed):
        rng = np.random.default_rng(seed)
        y = np.arange(100) % 2
        return ["".join(rng.choice(list("ACGT"), 30, p=[[0.4, 0.1, 0.1, 0.4], [0.1, 0.4, 0.4, 0.1]][c])) for c in y], y

    return bits.Task("made", load, lambda seed: Nystroem(Spectrum(k=2), 40, random_state=seed))


def test_end_to_end(monkeypatch, tmp_path):
    monkeypatch.setattr(bits, "TASKS", (_task(),))
    section = experiments.run("bits", seeds=2)
    assert {record["seed"] for record in section.records} == {0, 1}
    assert len(section.tables) == 7
    assert np.mean(measured(section.records, "classifier", code="signs", bits=2048, flipped=0.0)) > 90
    section.write(tmp_path)
    text = (tmp_path / "reproduction" / "bits.md").read_text()
    assert "not possible" in text
    assert "linear SVM" in text
    svg = (tmp_path / "reproduction" / "bits.svg").read_text()
    assert "signs, 10% flipped" in svg
    rows = {(row[1], row[2]): row[3:] for row in section.tables[3].rows}
    assert set(rows) == {("signs", 8), ("signs", 16), ("signs", 2048), ("PCA, ITQ", 8), ("GN PCA, ITQ", 8)}  # rank 15
    assert all(len(cells) == len(bits.FLIPS) and all(cells) for cells in rows.values())


def test_embedding_is_learnt_from_the_training_part_alone(monkeypatch):
    task = _task()
    fitted = []

    class Spy:
        def fit(self, X):
            fitted.append(len(X))
            self.model = Nystroem(Spectrum(k=2), 40, random_state=0).fit(X)
            return self

        def transform(self, X):
            return self.model.transform(X)

    means = []
    monkeypatch.setattr(bits, "score", lambda V, W, y, z, seed: means.append((V.mean(axis=0), len(W))) or [])
    bits.measure(bits.Task("made", task.load, lambda seed: Spy()), seeds=1)
    assert fitted == [80]
    np.testing.assert_allclose(means[0][0], 0, atol=1e-12)
    assert means[0][1] == 20


@pytest.mark.parametrize("name", [task.name for task in bits.TASKS])
def test_every_task_loads(data_folder, name):
    (task,) = (task for task in bits.TASKS if task.name == name)
    X, y = task.load(0)
    assert len(X) == len(y) == {"NCI1": 2000, "splice": 3186, "JapaneseVowels": 640, "SBM": 1000, "WebKB": 4166}[name]
    assert np.array_equal(task.load(0)[1], y)
