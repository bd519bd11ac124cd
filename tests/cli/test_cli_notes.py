"""What commands say of columns, models and scores that are probably not those that were meant."""

from __future__ import annotations

import json
import logging
import shutil
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import RidgeCV
from typer.testing import CliRunner

import similia as sm
from similia.cli.app import app
from similia.cli.explain import explain
from similia.cli.inputs import check_kind, read_labelled, read_objects, remember_columns
from similia.cli.outputs import size_of
from similia.cli.report import report
from similia.cli.serve import info
from similia.cli.training import scores_of, targets_of
from similia.cli.voice import _compiling_told, _short_warnings, speaking
from similia.core.config import log_seconds
from similia.core.validation import BadFile, ObjectsWarning

RNG = np.random.default_rng(0)
WORDS = ["".join(word) for word in RNG.choice(list("ACDE"), (48, 8))]
FAMILIES = ["ac" if word.count("A") + word.count("C") > 4 else "de" for word in WORDS]
HOW = {"text": "peptide", "label": "family"}


@pytest.fixture
def peptides(tmp_path):
    path = tmp_path / "pep.csv"
    rows = [f"{word},{family},{i + 10},P{i}" for i, (word, family) in enumerate(zip(WORDS, FAMILIES, strict=True))]
    path.write_text("\n".join(["peptide,family,length,acc", *rows]))
    return str(path)


@pytest.fixture
def numbers(tmp_path):
    path = tmp_path / "num.csv"
    path.write_text("x,y\n" + "".join(f"{i % 7},{i % 5}\n" for i in range(40)))
    return str(path)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    recipe = sm.recipes.nyshd(sm.kernels.Spectrum(k=1), n_landmarks=20, n_bits=64, random_state=0)
    return sm.save(recipe.fit(WORDS, FAMILIES), tmp_path_factory.mktemp("model") / "m.similia")


# ---- columns
@pytest.mark.parametrize(("n_classes", "told"), [(11, True), (10, False)])
def test_many_classes_that_are_numbers_are_told(n_classes, told, capsys):
    y = np.arange(200) % n_classes
    read = SimpleNamespace(labels=y, source="pep.csv")
    found, task = targets_of(read, "auto", None, "length")
    assert (found.tolist(), task) == (y.tolist(), "classification")
    said = capsys.readouterr().err
    assert ("column 'length' holds only numbers, taken as 11 classes; --task regression" in said) == told
    targets_of(read, "classification", None, "length")
    assert capsys.readouterr().err == ""  # the user has decided


def test_numbers_as_strings_are_told(peptides, capsys):
    read_labelled(peptides, text="length", label="family")
    assert "column 'length' holds only numbers, which are compared letter by letter" in capsys.readouterr().err
    read_labelled(peptides, text="acc", label="family")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("predicted", "told"), [("a", True), ("b", False)])
def test_a_model_no_better_than_the_most_frequent_class_is_told(predicted, told, capsys):
    constant = DummyClassifier(strategy="constant", constant=predicted).fit([[0], [0]], ["a", "b"])
    for scoring, expected in ((None, told), ("accuracy", told), ("balanced_accuracy", False)):
        y = np.array(["a", "b", "b"])  # the most frequent class of the training part is "a"
        scores_of(constant, [[0]] * 3, y, "classification", scoring, np.array(["a", "a", "b"]))
        assert ("not better than always predicting" in capsys.readouterr().err) == expected


# ---- models of another kind of data
def test_another_kind_of_data_is_refused_by_its_name(peptides, numbers, model, tmp_path):
    said = r"num.csv holds vectors \(columns 'x', 'y'\), which Spectrum\(k=1\) does not compare; --text names another"
    page = tmp_path / "r.html"
    with pytest.raises(BadFile, match=said):
        explain(model, numbers, {"values": "x,y"}, one="0")
    with pytest.raises(BadFile, match=said):
        report(model, numbers, {"values": "x,y"}, page)
    assert not page.exists()


def test_a_model_that_compares_nothing_remembers_its_kind_of_data(peptides, numbers):
    ridge = RidgeCV()
    remember_columns(ridge, numbers, {"values": "x,y"})
    strings, vectors = read_objects(peptides, **HOW), read_objects(numbers, values="x,y")
    with pytest.raises(BadFile, match=r"holds strings \(column 'peptide'\), and the model was fitted to vectors"):
        check_kind(ridge, strings, strings.objects)
    check_kind(ridge, vectors, vectors.objects)
    check_kind(RidgeCV(), strings, strings.objects)  # fitted elsewhere: nothing is known


def test_a_warning_numbers_an_object_as_the_predictions_do():
    with speaking(), _short_warnings():
        text = warnings.formatwarning(ObjectsWarning(2, 9, "are odd", 4, "look"), UserWarning, "x.py", 1)
    assert text == "warning: 2 of 9 objects are odd, e.g. object 4 (counted from 0); look\n"


# ---- the report
def test_the_report_tells_its_score(peptides, model, tmp_path, capsys):
    truth, predicted = np.array(FAMILIES), sm.load(model).predict(WORDS)
    share, floor = (predicted == truth).mean(), max((truth == "ac").mean(), (truth == "de").mean())
    report(model, peptides, HOW, tmp_path / "r.html", unseen=True)
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("accuracy "))
    assert line.startswith(f"accuracy {100 * share:.1f} % (")
    assert line.endswith(f"), always the most frequent class {100 * floor:.1f} %")
    with speaking(json=True):
        report(model, peptides, HOW, tmp_path / "r.html", unseen=True)
    scores = json.loads(capsys.readouterr().out)["scores"]
    assert (scores["accuracy"], scores["most_frequent"], scores["objects"]) == pytest.approx((share, floor, len(WORDS)))
    assert 0.5 < scores["interval"][0] < share


@pytest.mark.parametrize("unseen", [True, False])
def test_labels_that_are_no_classes_of_the_model_are_refused(peptides, model, tmp_path, unseen):
    page = tmp_path / "r.html"
    with pytest.raises(
        ValueError, match=r"none of these 48 labels, such as 'P\d+', is a class of the model \(ac, de\)"
    ):
        report(model, peptides, HOW | {"label": "acc"}, page, unseen=unseen)
    assert not page.exists()


# ---- small
def test_sizes_are_told_in_a_fitting_unit():
    assert [size_of(n) for n in (12, 45_230, 204_000, 7_040_000)] == ["12 bytes", "45 kB", "0.2 MB", "7.0 MB"]


def test_info_shortens_arrays(tmp_path, capsys):
    ridge = RidgeCV(alphas=np.logspace(-4, 4, 17)).fit(np.eye(3), [1.0, 2.0, 3.0])
    info(sm.save(ridge, tmp_path / "m.similia"))
    assert "alphas=array([1.e-04, ..., 1.e+04]" in capsys.readouterr().out


# ---- compilation
@pytest.mark.parametrize(("terminal", "quiet", "said"), [(True, False, 1), (False, False, 0), (True, True, 0)])
def test_on_a_terminal_long_compilation_is_told_once(terminal, quiet, said, monkeypatch, capsys):
    logger = logging.getLogger("similia.compile")
    with speaking(quiet=quiet):
        monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
        with _compiling_told():
            log_seconds(logger, "similia.one", 1.5)
            assert "compiling" not in capsys.readouterr().err
            for _ in range(3):
                log_seconds(logger, "similia.two", 0.7)
    assert capsys.readouterr().err.count("compiling loops for their first use") == said
    assert logger.level == logging.NOTSET
    assert logger.handlers == []


# ---- case
@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("fit", ["--kernel", "Spectrum(k=2)", "-o", "m.similia"]),
        ("cluster", ["--clusters", "2", "-o", "c.csv"]),
        ("outliers", ["-o", "o.csv"]),
        ("map", ["-o", "m.html"]),
        ("neighbours", ["-k", "3", "-o", "g.npz"]),
        ("duplicates", ["-o", "d.csv"]),
        ("encode", ["--bits", "8", "-o", "e.npy"]),
        ("index", ["x.index", "--bits", "8"]),
    ],
)
def test_sequences_in_both_cases_are_told_once(command, options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = ["index", "build"] if command == "index" else [command]
    for case, told in ((str.lower, 1), (str, 0)):
        words = [case(word) if i % 2 else word for i, word in enumerate(WORDS)]
        Path("w.fasta").write_text("".join(f">s{i} label={i % 3}\n{word}\n" for i, word in enumerate(words)))
        shutil.rmtree("x.index", ignore_errors=True)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            done = CliRunner().invoke(app, [*names, "w.fasta", *options])
        assert done.exit_code == 0, done.output
        said = " ".join([done.stderr, *(str(one.message) for one in caught)])
        assert said.count("the same letters occur as capitals and as small letters") == told
    if command == "fit":
        Path("w.fasta").write_text(Path("w.fasta").read_text() + ">s label=1\nacde\n")
        done = CliRunner().invoke(app, ["fit", "w.fasta", "--kernel", "Spectrum(k=2, ignore_case=True)", *options[2:]])
        assert "capitals" not in done.stderr
