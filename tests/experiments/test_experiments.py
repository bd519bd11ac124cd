"""The experiments: protocol against hand-worked cases, and each one end to end on its smallest set."""

import os

import numpy as np
import pytest
from scipy import stats

import experiments
import similia as sm
from experiments import _nyshd
from experiments._nyshd import GRIDS, NGRAM_GRID
from experiments._paper import GRAPH_TASKS, STRING_TASKS, TASKS
from experiments._protocol import (
    Method,
    majority,
    paired_interval,
    paper_split,
    score_predictions,
    stratified_splits,
    tune,
)
from experiments._report import Section, Table
from similia.learn import HDClassifier

needs_data = pytest.mark.skipif("SIMILIA_DATA" not in os.environ, reason="SIMILIA_DATA names no folder of data sets")


def test_paper_margins_recomputed_from_its_tables():
    graphs = [task.printed["NysHD"][0] - task.printed["GraphHD"][0] for task in GRAPH_TASKS]
    strings = [task.printed["NysHD"][0] - task.printed["N-gram"][0] for task in STRING_TASKS]
    assert np.mean(graphs) == pytest.approx(11.0, abs=0.05)  # the margins its abstract states
    assert np.mean(strings) == pytest.approx(17.0, abs=0.05)


def test_paper_split_is_the_papers():
    assert [len(part) for part in paper_split(4110)] == [3288, 822]
    assert [len(part) for part in paper_split(106)] == [84, 22]


def test_paired_interval_by_hand():
    mean, half, corrected = paired_interval([3.0, 5.0, 4.0], [1.0, 2.0, 3.0])
    assert mean == 2.0  # of 2, 3, 1: variance 1; 1/3, or (1/3 + 1/4), under the root
    assert half == pytest.approx(stats.t.ppf(0.975, 2) * np.sqrt(1 / 3))
    assert corrected == pytest.approx(stats.t.ppf(0.975, 2) * np.sqrt(7 / 12))


def test_scores_by_hand():
    scores = score_predictions(np.array([0, 0, 0, 1]), np.array([0, 0, 0, 2]))
    assert (scores.accuracy, scores.balanced) == ([75.0], [50.0])
    y = np.array([1, 1, 1, 2])
    constant = majority(y, [(np.array([0, 1, 3]), np.array([2, 3]))])
    assert (constant.accuracy, constant.balanced) == ([50.0], [50.0])


def test_tuning_sees_only_the_training_part():
    y = np.array([0, 1] * 20)
    seen = set()

    class Spy:
        def __init__(self, sign):
            self.sign = sign

        def fit(self, X, y):
            seen.update(X.ravel().tolist())
            return self

        def transform(self, X):
            seen.update(X.ravel().tolist())
            return (self.sign * (X % 2) * 2 - self.sign).astype(float) + np.array([0.0, 1e-9])

    method = Method(
        "spy",
        lambda params, seed: Spy(params["sign"]),
        lambda params, seed: HDClassifier(init="bundle", max_iter=0),
        [{"sign": 0.0}, {"sign": 1.0}],
    )
    train = np.arange(30)
    assert tune(method, np.arange(40)[:, None], y, train) == {"sign": 1.0}
    assert seen == set(range(30))


def test_baselines_get_at_least_as_many_trials():
    assert len(NGRAM_GRID) >= len(GRIDS["strings"])
    assert {setting["n"] for setting in NGRAM_GRID} == {2, 3, 4, 5, 6}


def test_stratified_splits_keep_class_shares():
    y = np.repeat([0, 1], [80, 20])
    for train, test in stratified_splits(y, 3):
        assert (y[train].sum(), y[test].sum()) == (16, 4)
        assert not set(train) & set(test)


def test_a_page_is_written_set_by_set(tmp_path):
    def present(records):
        return [Table("T", ["x"], [[r["set"], r["value"]] for r in records])], None

    Section(
        "b",
        "Title b",
        "Text.",
        [{"set": "one", "value": 1.234, "run": 0}, {"set": "two", "value": 5, "run": 0}],
        present,
    ).write(tmp_path)
    other = Section("a", "Title a", "Text.", [{"set": "x", "value": 0, "seed": 4}], present).write(tmp_path)
    path = Section("b", "Title b", "Text.", [{"set": "two", "value": 6.0, "run": 0}], present).write(tmp_path)
    assert path == tmp_path / "reproduction" / "b.md"
    page = path.read_text()
    assert page.startswith("# Title b\n")
    assert "| one | 1.2 |" in page
    assert "| two | 6.0 |" in page
    assert "| two | 5" not in page
    assert "`python dev.py reproduce a --seeds 5 --output docs`" in other.read_text()


def test_strings_table_on_bundled_data(tmp_path, monkeypatch):
    monkeypatch.setattr(_nyshd, "NGRAM_GRID", NGRAM_GRID[:2])
    section = experiments.run("nyshd-strings", only=["Promoter"], seeds=2)
    assert section.write(tmp_path).exists()
    rows = {row[0]: row[1] for row in section.tables[0].rows}
    assert rows["NysHD (paper)"] == "89.0 ± 3.4"
    assert float(rows["**NysHD** (ours)"].split()[0]) > 70
    assert {r["protocol"] for r in section.records} == {"paper", "stratified"}


def test_faults_hurt_more_the_more_bits_flip(tmp_path):
    section = experiments.run("nyshd-faults", only=["Promoter"], seeds=2)
    section.write(tmp_path)
    assert "<svg" in (tmp_path / "reproduction" / "nyshd-faults.svg").read_text()
    codes = section.tables[0].rows[0][2:]
    assert codes[0] > 75
    assert codes[0] - codes[2] < 10  # a tenth of the bits


def test_calibration_on_bundled_data():
    from experiments import nyshd_calibration

    losses, errors, accuracies, times = experiments.run("nyshd-calibration", only=["Promoter"], seeds=1).tables
    assert [row[1] for row in losses.rows[:4]] == ["ours", "sigmoid", "temperature", "softmax of the scores"]
    for i in range(0, len(losses.rows), 4):
        ours, none = (float(losses.rows[j][2].split()[0]) for j in (i, i + 3))
        assert ours < none - 0.1
        assert accuracies.rows[i][2] == accuracies.rows[i + 3][2]
    assert len(errors.rows) == 4 * len(nyshd_calibration.LEARNERS)
    assert len(times.rows) == 2 * len(nyshd_calibration.LEARNERS)
    p = np.array([[0.9, 0.1], [0.1, 0.9], [0.9, 0.1], [0.45, 0.55]])  # bins: 3 of 0.9, of which 2 are right; 1 of 0.55
    found = nyshd_calibration.calibration_error(p, np.array([0, 1, 1, 0]))
    assert found == pytest.approx((abs(2.7 - 2) + 0.55) / 4)


@pytest.mark.long
@needs_data
def test_graphs_table_on_mutag(monkeypatch):
    small = {kind: grid[:1] for kind, grid in GRIDS.items()}
    monkeypatch.setattr(_nyshd, "GRIDS", small)
    monkeypatch.setattr(_nyshd, "GRAPHHD_GRID", _nyshd.GRAPHHD_GRID[:1])
    section = experiments.run("nyshd-graphs", only=["MUTAG"], seeds=2)
    rows = {row[0]: row[1] for row in section.tables[0].rows}
    assert float(rows["**NysHD** (ours)"].split()[0]) > 70


def test_kernel_error_experiment_runs(monkeypatch):
    from experiments import nyshd_kernel_error

    monkeypatch.setattr(nyshd_kernel_error, "BITS", (1_000, 10_000))
    error = experiments.run("nyshd-kernel-error", only=["Promoter"], seeds=1)
    last = {row[1]: float(row[-1]) for row in error.tables[0].rows}
    assert last["Nyström only"] < 1e-6  # every object is a landmark
    assert last["corrected"] < last["raw"]


@pytest.mark.long
def test_best_pipeline_on_bundled_data(monkeypatch):
    from experiments import nyshd_best

    few = list(nyshd_best.candidates(TASKS["Promoter"]))[:2]
    monkeypatch.setattr(nyshd_best, "candidates", lambda task: few)
    with sm.config(n_jobs=1):  # in this process, where the short list is
        section = experiments.run("nyshd-best", only=["Promoter"], seeds=2)
    (paper,), (stratified,) = (table.rows for table in section.tables)
    assert float(paper[1].split()[0]) > 75
    assert paper[2:4] == [89.0, "NysHD"]
    assert "GappyKmers" in paper[4]
    assert stratified[1] == "2 × 3"
    assert stratified[5].startswith("50.0")


def test_unknown_names_are_named():
    with pytest.raises(ValueError, match="no experiment is called 'table-2'"):
        experiments.run("table-2")
    with pytest.raises(ValueError, match="'NCI2'"):
        experiments.run("nyshd-graphs", only=["NCI2"])
    assert set(TASKS) == {t.name for t in GRAPH_TASKS + STRING_TASKS}
