"""``similia fit`` without a kernel or distance: what it chooses, says, writes and refuses."""

import csv
import json
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.pipeline import Pipeline
from typer.testing import CliRunner

import similia as sm
from experiments import selection
from samples.select import sample
from similia.cli.app import app
from similia.cli.fit import fit
from similia.cli.training import check_suits, option_of, parse_duration, print_choice
from similia.cli.voice import speaking
from similia.objects import AttributeScaler
from similia.selection import _search
from similia.selection import auto as _select
from similia.selection._ladder import ladder


@pytest.fixture
def few_candidates(monkeypatch):
    """Two rungs of the ladder, so that a choice takes a second."""
    monkeypatch.setattr(_select, "ladder", lambda *given: ladder(*given)[:2])
    monkeypatch.setattr(_search, "_ENOUGH_HELD_OUT", 1)


@pytest.fixture
def table(tmp_path):
    def write(y):
        path = tmp_path / "table.csv"
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([["text", "label"], *zip(sample("strings", len(y))[0], y, strict=True)])
        return str(path)

    return write


def run(data, output, **changes):
    fit(data, {}, output, **{"budget": "60s", "test": 0.25, "seed": 0, **changes})


def test_a_model_is_chosen_scored_on_a_held_out_part_and_written(table, tmp_path, capsys, few_candidates):
    output = tmp_path / "m.similia"
    run(table(sample("strings", 40)[1]), output)
    said = capsys.readouterr().out
    for words in (
        "40 strings in 2 classes",
        "the search takes 48 s of the budget of 60 s",
        "candidates tried in",
        "chosen: ",
        "of a choice like this on new objects: ",
        "all: accuracy",
        "--kernel",
    ):
        assert words in said
    X, y = sample("strings", 20, seed=5)
    assert np.mean(sm.load(output).predict(X) == y) > 0.8


def test_the_choice_never_sees_the_held_out_part_and_the_model_is_fitted_on_everything(
    table, tmp_path, monkeypatch, few_candidates
):
    given, fitted = [], []
    first, again = sm.AutoClassifier.fit, sm.AutoClassifier.refit
    monkeypatch.setattr(sm.AutoClassifier, "fit", lambda self, X, y: given.append(len(y)) or first(self, X, y))
    monkeypatch.setattr(sm.AutoClassifier, "refit", lambda self, X, y: fitted.append(len(y)) or again(self, X, y))
    run(table(sample("strings", 40)[1]), tmp_path / "m.similia")
    run(table(sample("strings", 40)[1]), tmp_path / "m.similia", test=0.0)
    assert given == [30, 40]
    assert fitted == [40]


def test_numbers_are_predicted(table, tmp_path, capsys, monkeypatch, few_candidates):
    y = sample("strings", 40, "regression")[1]
    data = sm.sources.Objects("made", "strings", sm.objects.as_strings(sample("strings", 40)[0]), y)
    monkeypatch.setattr("similia.cli.inputs.read_labelled", lambda *given, **options: data)
    run("made", tmp_path / "m.similia")
    assert "R squared" in capsys.readouterr().out


def test_numbers_of_a_table_are_predicted_as_numbers_and_said_to_be(table, tmp_path, capsys, few_candidates):
    y = np.round(sample("strings", 60, "regression")[1], 4)
    run(table(y.tolist()), tmp_path / "m.similia")
    said = capsys.readouterr()
    assert "are 60 different numbers: they are predicted as numbers" in said.err
    assert "60 strings with numbers to predict" in said.out


def test_a_class_with_few_objects_has_fewer_folds(table, tmp_path, capsys, few_candidates):
    y = ["rare" if i % 8 == 0 else "often" for i in range(40)]  # 5, of which 4 stay for training
    with pytest.warns(UserWarning, match="class 'rare' has 4 objects, so there are 4 folds instead of 5"):
        run(table(y), tmp_path / "m.similia")
    assert "chosen: " in capsys.readouterr().out


def test_json_has_the_candidates_and_scores(table, tmp_path, capsys, few_candidates):
    with speaking(json=True):
        run(table(sample("strings", 40)[1]), tmp_path / "m.similia")
    facts = json.loads(capsys.readouterr().out)
    assert facts["objects"] == 40
    assert facts["accuracy"]["outer_folds"] == 5
    assert facts["held_out"]["objects"] == 10
    assert {"name", "mean_test_score", "state"} <= {*facts["candidates"][0]}
    assert facts["candidates"][0]["name"] == facts["chosen"]


def test_another_score_and_other_folds_are_used_and_told(table, tmp_path, capsys, few_candidates):
    with speaking(json=True):
        run(table(sample("strings", 40)[1]), tmp_path / "m.similia", scoring="balanced_accuracy", cv=3)
    facts = json.loads(capsys.readouterr().out)
    assert facts["balanced_accuracy"]["outer_folds"] == 3
    assert 0.5 < facts["held_out"]["balanced_accuracy"] <= 1


def test_more_folds_than_a_class_has_objects_are_made_fewer(table, tmp_path, capsys, few_candidates):
    with pytest.warns(UserWarning, match="class 'rare' has 6 objects, so there are 6 folds instead of 8"):
        run(table(["rare" if i % 5 == 0 else "often" for i in range(40)]), tmp_path / "m.similia", cv=8)


@pytest.mark.parametrize(
    ("scoring", "y", "sentence"),
    [
        ("balanced_acuracy", ["a", "b"] * 10, r"no scorer of .* \(did you mean balanced_accuracy\?\); some are"),
        ("r2", ["a", "b"] * 10, "--scoring r2 needs numbers, and the label 'a' of .* is not a number"),
        ("f1", ["a", "b"] * 10, "f1 does not suit classification .*pos_label=1 is not a valid label"),
        ("f1", ["a", "b", "c"] * 10, "f1 does not suit classification .*multiclass"),
        ("neg_log_loss", ["a", "b"] * 10, "it needs probabilities, which most candidates do not give"),
        (
            "accuracy",
            [i / 7 for i in range(40)],
            "accuracy is for classes, and the labels of .* are numbers; for numbers, use r2 or neg_mean_absolute_error",
        ),
        ("rand_score", [i / 7 for i in range(40)], "rand_score is for classes"),
    ],
)
def test_scores_that_do_not_suit_are_refused_before_time_is_spent(table, tmp_path, monkeypatch, scoring, y, sentence):
    monkeypatch.setattr(sm.AutoClassifier, "fit", lambda *given: pytest.fail("time is spent"))
    with pytest.raises(ValueError, match=sentence) as raised:
        run(table(y), tmp_path / "m.similia", scoring=scoring)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("scoring", ["f1", "roc_auc", "average_precision", "accuracy", "top_k_accuracy"])
def test_scores_that_suit_two_classes_of_numbers(scoring):
    check_suits(scoring, "classification", np.array([0, 1] * 9))


@pytest.mark.parametrize("option", [["--voters", "2"], ["--cv", "3"], ["--budget", "9s"]])
def test_what_is_for_choosing_is_refused_beside_a_kernel(table, tmp_path, option):
    line = ["fit", table(["a", "b"] * 10), "-o", str(tmp_path / "m"), "--kernel", "Spectrum(k=2)", *option]
    error = CliRunner().invoke(app, line).exception
    assert str(error).startswith(f"{option[0]} is for the choice among pipelines; drop it")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("10m", 600), ("1.5h", 5400), (" 45 ", 45), (30, 30), (".5m", 30), ("2min", 120)],
)
def test_durations(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-3", "0", "1d", "1e3", "10mm", "10ec", "9" * 400])
def test_what_is_no_duration(text):
    with pytest.raises(ValueError, match="--budget must be a time such as 90s, 10m or 1h"):
        parse_duration(text)


def test_refusals(table, tmp_path):
    with pytest.raises(ValueError, match="--test must be at least 0 and below 1, got 1"):
        run(table(["a", "b"] * 10), tmp_path / "m.similia", test=1.0)
    with pytest.raises(ValueError, match="y has the one class 'a'"):
        run(table(["a"] * 20), tmp_path / "m.similia")
    np.save(tmp_path / "x.npy", np.zeros((20, 3)))
    with pytest.raises(ValueError, match="holds vectors without labels"):
        run(str(tmp_path / "x.npy"), tmp_path / "m.similia")
    with pytest.raises(ValueError, match="does not exist"):
        run(table(["a", "b"] * 10), tmp_path / "nowhere" / "m.similia")


@pytest.mark.parametrize(
    ("y", "how", "sentence"),
    [
        ([f"read{i}" for i in range(20)], {}, "20 classes for 20 objects: is 'label' the column of labels"),
        ([f"read{i}" for i in range(20)], {"test": 0.0}, "20 classes for 20 objects: is 'label' the column"),
        (
            [*range(15), 1, 1, 2, 2, 2],
            {"task": "classification"},
            "15 classes for 20 objects.*--task regression predicts",
        ),
    ],
)
def test_names_are_not_taken_as_labels(table, tmp_path, y, how, sentence):
    with pytest.raises(ValueError, match=sentence):
        run(table(y), tmp_path / "m.similia", **how)


@pytest.mark.parametrize(
    ("y", "asks_for"),
    [
        ([f"{i / 7:.2f} mol/L" for i in range(20)], "unit"),
        ([*range(8), *(f"{i}e-1nM" for i in range(12))], "unit"),
        ([f"{i}.5%" if i % 2 else f"-{i} mg" for i in range(20)], "unit"),
        ([f"{i}{chr(97 + i)}" for i in range(20)], "column"),
        ([f"{i} mol/L" for i in range(19)] + ["read7"], "column"),
    ],
)
def test_numbers_with_a_unit_are_told_from_names(table, tmp_path, y, asks_for):
    sentence = {"unit": "look like numbers with a unit .*; leave the unit out", "column": "20 classes for 20 objects"}
    with pytest.raises(ValueError, match=sentence[asks_for]):
        run(table(y), tmp_path / "m.similia")


@pytest.mark.parametrize("options", [["--values", "pulse"], ["--series", "--values", "pulse"]])
def test_a_long_table_without_its_time_is_refused(tmp_path, options):
    """Each time point would be an object of its own."""
    path = tmp_path / "long.csv"
    points = [f"p{i},{t},{i + t},{'ab'[i % 2]}" for i in range(8) for t in range(3)]
    path.write_text("\n".join(["patient,t,pulse,label", *points]))
    command = ["fit", str(path), "-o", str(tmp_path / "m.similia"), "--id", "patient", *options]
    done = CliRunner().invoke(app, command)
    assert "repeats names in 'patient'; add --time COLUMN" in str(done.exception)
    assert not (tmp_path / "m.similia").exists()


@pytest.mark.parametrize(
    ("steps", "option"),
    [
        ([sm.Nystroem(sm.kernels.WeisfeilerLehman(n_iter=3))], '--kernel "WeisfeilerLehman(n_iter=3)"'),
        ([sm.KernelFeatures(sm.kernels.Sum([sm.kernels.Spectrum(k=2)]))], '--kernel "Sum(kernels=[Spectrum(k=2)])"'),
        ([sm.D2KE(sm.distances.DTW(window=0.1))], '--distance "DTW(window=0.1)"'),
        ([AttributeScaler(), sm.Nystroem(sm.kernels.Propagation())], ""),
        ([sm.GraphletSampling()], ""),
    ],
)
def test_what_was_chosen_as_an_option(steps, option):
    assert option_of(Pipeline([(str(i), step) for i, step in enumerate(steps)])) == option


def test_the_experiment_compares_the_choice_with_all_recipes_and_presents_it():
    X, y = sample("vectors", 60)
    found = selection.compare(X[:30], y[:30], X[30:], y[30:], budget=1.5, seed=0)
    records = [{"set": "made", "run": run, "n": 30, **record} for run in (0, 1) for record in found]
    accuracies = {record["recipe"]: record["accuracy"] for record in found if record["role"] != "chosen"}
    chosen = [record for record in found if record["role"] == "chosen"]
    assert len(chosen) == 1
    assert sum(record["role"] == "neighbours" for record in found) == 1
    assert all(r["difference"] == pytest.approx(chosen[0]["accuracy"] - r["accuracy"], abs=0.02) for r in found)
    tables, _ = selection.present(records)
    assert tables[0].rows[0][:2] == ["made", 2]
    assert tables[0].rows[0][4] == f"{chosen[0]['accuracy'] - max(accuracies.values()):+.1f}"
    assert tables[1].rows[0][2] == 1
    names = {task.name for task in selection.TASKS}
    assert not names & {*selection.DEVELOPMENT}
    assert names | {*selection.DEVELOPMENT} <= {*sm.datasets.available()} | {"promoters", "splice"}


def test_a_recipe_is_an_embedding_with_a_kind_of_learner():
    names = ["A · features · SVC(C=1)", "A · features · SVC(C=10)", "A · features · Ridge(alpha=1)", "B · 3 nearest"]
    names += ["B · 1 nearest", "C · HDClassifier"]
    states = {"C": "out of time"}
    table = [{"name": n, "n_objects": int(n[0] != "C"), "state": states.get(n[0], "finalist")} for n in names]
    table.append({"name": "D · SVC(C=1)", "n_objects": 0, "state": "failed: ValueError"})
    vote = {"name": "vote of 3: A; B; C", "n_objects": 1, "state": "chosen", "estimator": sm.VoteClassifier([1, 2, 3])}
    found = list(selection.recipes([vote, *({**row, "estimator": None} for row in table)]))
    assert [row["name"] for _, row in found] == [names[0], names[2], names[3], names[5]]
    assert [recipe for recipe, _ in found] == [
        "A · features · SVC",
        "A · features · Ridge",
        "B · nearest",
        "C · HDClassifier",
    ]


def test_the_best_recipe_is_one_for_all_splits():
    rows = [("x", 0, 90.0), ("x", 1, 80.0), ("y", 0, 84.0), ("y", 1, 88.0), ("z", 0, 100.0)]  # z: not in both
    records = [{"set": "s", "run": run, "role": "recipe", "recipe": r, "accuracy": a} for r, run, a in rows]
    records.append({"set": "s", "run": 0, "role": "chosen", "recipe": "", "accuracy": 99.0})
    assert [row["recipe"] for row in selection._best(records, "s", 2)] == ["y", "y"]


@pytest.mark.parametrize(("others", "said"), [([0.99, 0.5], True), ([0.97, 0.5], False)])
def test_a_better_score_of_an_earlier_round_is_explained(others, said, capsys):
    scores = np.array([0.98, *others])
    tried = {"name": np.array(["a", "b", "c"]), "mean_test_score": scores, "n_objects": np.array([90, 30, 30])}
    columns = tried | {"standard_error": scores / 10, "mean_fit_time": scores}
    auto = SimpleNamespace(cv_results_=columns, seconds_=1.0, measure_="accuracy", best_name_="a", notes_=[])
    auto.stopped_, auto.best_score_, auto.best_score_interval_ = False, 0.9, (0.8, 1.0)
    print_choice(auto, 60)
    assert ("dropped early has the score of its last round" in capsys.readouterr().out) is said
