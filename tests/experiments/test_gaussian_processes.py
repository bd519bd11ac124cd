"""The experiment on Gaussian processes: its scores and table by hand, and end to end on a few alkanes and alcohols."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.utils import Bunch

pytest.importorskip("rdkit", reason="RDKit is not installed: pip install 'similia[molecules]'")

from experiments import gaussian_processes
from experiments.gaussian_processes import CHOSEN, LONGER, MAXIMIZED, MEAN, MEASURES, STEPS
from experiments.molecules import BOTH, Task
from similia.kernels import RBF, MinMax, Morgan, WeisfeilerLehman
from similia.learn import GaussianProcessRegressor

SMILES = ["C" * n + end for n in range(2, 14) for end in ("", "O", "N")]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    bunch = Bunch(data=SMILES, target=[float(len(text)) for text in SMILES])
    monkeypatch.setattr(gaussian_processes, "fetch", lambda name: bunch)
    kernels = {"WL": MinMax(WeisfeilerLehman(1)), "Morgan": MinMax(Morgan(1))}
    monkeypatch.setattr(gaussian_processes, "KERNELS", kernels)
    monkeypatch.delenv("SIMILIA_GPYTORCH_PYTHON", raising=False)


def test_lengths_are_predicted_and_finished_splits_are_kept():
    whole = [*gaussian_processes.measure(Task("length"), 2)]
    assert [record["model"] for record in whole] == 2 * ["WL", "Morgan", CHOSEN, MEAN]
    for run in (0, 1):
        found = {record["model"]: record["RMSE"] for record in whole if record["run"] == run}
        assert found[CHOSEN] in (found["WL"], found["Morgan"])
        assert found[CHOSEN] < found[MEAN] / 3
    marked = [{**record, "RMSE": -1.0} for record in whole]
    assert [*gaussian_processes.measure(Task("length"), 2, marked)] == marked
    again = [*gaussian_processes.measure(Task("length"), 2, marked[:-1])]
    assert [r["RMSE"] for r in again] == [r["RMSE"] for r in marked[:4] + whole[4:]]


def test_a_rival_scores_only_the_splits_that_lack_it(monkeypatch):
    def rival(K, y, train, test, steps):
        asked.append((frozenset(test), steps))
        return 0.0, {"RMSE": float(steps)}

    asked = []
    monkeypatch.setitem(gaussian_processes.KERNELS, BOTH, MinMax(WeisfeilerLehman(1)))
    ours = [*gaussian_processes.measure(Task("length"), 2)]
    assert not asked
    monkeypatch.setenv("SIMILIA_GPYTORCH_PYTHON", "python")
    monkeypatch.setattr(gaussian_processes, "_gpytorch", rival)
    both = [*gaussian_processes.measure(Task("length"), 2, ours)]
    assert [record for record in both if record["model"] not in STEPS] == ours
    first, second = STEPS.values()
    assert [steps for _, steps in asked] == [first, second, first, second]
    assert len({test for test, _ in asked}) == 2  # one for each split
    asked.clear()
    lacking = [record for record in both if (record["run"], record.get("RMSE")) != (1, float(second))]
    assert [*gaussian_processes.measure(Task("length"), 2, lacking)] == both
    assert [steps for _, steps in asked] == [second]


def test_the_rival_after_more_steps_is_compared_with_the_most_likely_values():
    scored = [(-5.0, 1.0, -5.0, 1.0 + 1e-9), (-4.0, 2.0, -4.25, 1.75), (-3.0, 1.0, -4.0, 1.0)]
    records = []
    for run, (evidence, error, other, its_error) in enumerate(scored):
        record = {"set": "A", "run": run, "negative log density": 0.0, "coverage of 95 %": 95.0, "seconds": 1.0}
        records += [
            record | {"model": MAXIMIZED, "RMSE": error, "evidence": evidence},
            record | {"model": LONGER, "RMSE": its_error, "evidence": other},
        ]
    *_, table = gaussian_processes.present(records)[0]
    assert table.rows == [["A", "3", "1", "-1.000 to -0.250", "within 0.2", "within 1e-09"]]
    without = [record for record in records if record["model"] != LONGER]
    assert len(gaussian_processes.present(without)[0]) == 1


def test_scores_by_hand():
    y, mean, std = np.array([1.0, 2.0, 9.0]), np.array([1.0, 3.0, 3.0]), np.array([1.0, 2.0, 3.0])
    found = gaussian_processes._scores(y, mean, std)
    expected = [np.sqrt((0 + 1 + 36) / 3), -norm(mean, std).logpdf(y).mean(), 100 * 2 / 3]
    assert [found[name] for name in MEASURES] == pytest.approx(expected)


def test_the_protocol_has_the_formulas_of_the_library():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(20, 2)), rng.normal(size=(5, 2))])
    kernel, y, known, held = RBF(gamma=0.5), rng.normal(size=25), np.arange(20), np.arange(20, 25)
    found = gaussian_processes._densities(kernel(X), y, known, held)
    model = GaussianProcessRegressor(kernel).fit(X[known], y[known])
    assert found["uniform share"] == pytest.approx(-model.log_density(X[held], y[held]).mean(), abs=1e-3)
    model.set_params(hyperparameters="maximized").fit(X[known], y[known])
    assert found["largest evidence"] == pytest.approx(-model.log_density(X[held], y[held]).mean(), abs=0.02)


def test_optima_are_compared_inside_the_training_part(monkeypatch):
    seen = []

    def rival(K, y, known, held, steps):
        seen.append((set(known), set(held), steps))
        return -float(steps), {"RMSE": 1.0}

    monkeypatch.setattr(gaussian_processes, "KERNELS", {BOTH: MinMax(WeisfeilerLehman(1))})
    monkeypatch.setattr(gaussian_processes, "_gpytorch", rival)
    found = gaussian_processes.stops(Task("length"), 1)
    assert [row["model"] for row in found] == ["integrated", "maximized", "gpytorch, 100 steps", "gpytorch, 1000 steps"]
    assert [row["evidence"] for row in found[2:]] == [-100.0, -1000.0]
    assert [steps for *_, steps in seen] == [100, 1000]
    known, held, _ = seen[0]
    assert not known & held
    assert len(known | held) == int(0.8 * len(SMILES))


def test_the_table_by_hand():
    record = {"set": "ESOL", "model": "WL", MEASURES[1]: 1.0, MEASURES[2]: 95.0}
    records = [{**record, "run": run, "RMSE": rmse, "seconds": 2.0} for run, rmse in ((0, 1.0), (1, 2.0))]
    (table,), figure = gaussian_processes.present(records)
    assert (table.title, figure) == ("ESOL: 2 splits", None)
    assert table.rows == [["WL", "1.500 ± 0.500", "1.000 ± 0.000", "95.000 ± 0.000", "2.0"]]
