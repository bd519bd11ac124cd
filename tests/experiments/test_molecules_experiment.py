"""The experiment on features of molecules: its table by hand, and end to end on a few alkanes and alcohols."""

import pytest
from sklearn.utils import Bunch

pytest.importorskip("rdkit", reason="RDKit is not installed: pip install 'similia[molecules]'")

from experiments import molecules
from experiments.molecules import CHOSEN, FOREST, MEAN, Task
from similia.kernels import Morgan, WeisfeilerLehman

SMILES = ["C" * n + end for n in range(2, 14) for end in ("", "O", "N")]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    targets = {"length": [float(len(text)) for text in SMILES], "alcohol": [float("O" in text) for text in SMILES]}
    monkeypatch.setattr(molecules, "fetch", lambda name: Bunch(data=SMILES, target=targets[name]))
    monkeypatch.setattr(molecules, "KERNELS", {"WL": WeisfeilerLehman(1), "Morgan": Morgan(1)})


def scores(records, **where):
    return [r["score"] for r in records if all(r[key] == value for key, value in where.items())]


def test_numbers_are_predicted_and_the_choice_is_one_of_the_rows():
    records = [*molecules.measure(Task("length"), 2)]
    assert len(records) == 2 * (3 * 2 + 3)
    for run in range(2):
        rows = [scores(records, run=run, features=name, similarity="min-max")[0] for name in ("WL", "Morgan")]
        assert scores(records, run=run, features=CHOSEN)[0] in rows
        assert max(rows) < scores(records, run=run, features=MEAN)[0] / 2  # the mean errs by 4 letters
        assert scores(records, run=run, features=FOREST)[0] < scores(records, run=run, features=MEAN)[0]


def test_classes_are_ranked():
    records = [*molecules.measure(Task("alcohol", metric="AUC"), 2)]
    assert len(records) == 2 * (3 * 2 + 2)
    assert scores(records, features="WL", similarity="min-max") == [1.0, 1.0]
    assert scores(records, features=MEAN) == [0.5, 0.5]


def test_finished_splits_are_not_scored_again():
    whole = [*molecules.measure(Task("length"), 2)]
    marked = [{**record, "score": -1.0} for record in whole]
    assert [*molecules.measure(Task("length"), 2, marked)] == marked
    assert [*molecules.measure(Task("length"), 2, marked[:-1])] == marked[:9] + whole[9:]  # the second was interrupted


def test_the_table_by_hand():
    where = {"set": "ESOL", "metric": "RMSE"}
    records = [
        {**where, "run": run, "features": "WL", "similarity": similarity, "score": score}
        for run, similarity, score in ((0, "min-max", 1.0), (1, "min-max", 2.0), (0, "cosine", 4.0), (1, "cosine", 4.0))
    ]
    records += [{**where, "run": run, "features": MEAN, "similarity": "-", "score": 9.0} for run in (0, 1)]
    (table,), figure = molecules.present(records)
    assert (table.title, figure) == ("ESOL: RMSE on 2 splits", None)
    assert table.rows == [["WL", "1.500 ± 0.500", "4.000 ± 0.000"], [MEAN, "9.000 ± 0.000", ""]]
