"""Predictions that can be joined back: names from a column, scores of the classes, in every form and after any stop."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import SVC
from typer.testing import CliRunner

import similia as sm
from similia.cli.app import app
from similia.scale.stream import Predictions, predict_stream
from similia.sources.streams import open_stream
from similia.storage.disk import Journal

runner = CliRunner()
RNG = np.random.default_rng(3)
WORDS = ["".join(word) for word in RNG.choice(list("ACGT"), (60, 14))]
Y = [["low", "mid", "high"][i % 3] for i in range(60)]
NAMES = [f'r-{i} "é", x' if i % 7 == 0 else f"r-{i}" for i in range(60)]
FEATURES = sm.KernelFeatures(sm.kernels.Spectrum(k=2), 64)
LOGISTIC = make_pipeline(FEATURES, LogisticRegression()).fit(WORDS, Y)
BINARY = make_pipeline(FEATURES, None, SVC(kernel="linear")).fit(WORDS, [y == "mid" for y in Y])
RIDGE = make_pipeline(FEATURES, Ridge()).fit(WORDS, np.arange(60.0))


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def tables(folder):
    """The same words with their names in every format of a table, the names before or behind them."""
    with (folder / "a.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["read", "text"], *zip(NAMES, WORDS, strict=True)])
    rows = "".join(f"{word}\t{i}\t{name}\n" for i, (word, name) in enumerate(zip(WORDS, NAMES, strict=True)))
    (folder / "a.tsv").write_text("text\tn\tread\n" + rows, encoding="utf-8")
    columns = {"n": range(60), "read": NAMES, "deep": [[1, 2]] * 60, "text": WORDS}
    parquet.write_table(pa.table(columns), folder / "a.parquet", row_group_size=17)
    return [folder / name for name in ("a.csv", "a.tsv", "a.parquet")]


def invoke(*arguments, code=0, **how):
    done = runner.invoke(app, [str(a) for a in arguments], **how)
    assert done.exit_code == code, (done.output, done.exception)
    return done


def refused(*arguments):
    said = str(runner.invoke(app, [str(a) for a in arguments]).exception)
    assert "\n" not in said
    return said


def rows_of(path, delimiter=","):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file, delimiter=delimiter))


def table_of(folder, texts, labels):
    path = folder / "data.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["text", "label"], *zip(texts, labels, strict=True)])
    return path


def saved(model, folder):
    return sm.save(model, folder / "m.similia")


# ---- names
@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_names_stand_beside_the_predictions_of_every_table(chunk, tmp_path):
    expected = [["read", "label"], *map(list, zip(NAMES, LOGISTIC.predict(WORDS).tolist(), strict=True))]
    model = saved(LOGISTIC, tmp_path)
    for data in tables(tmp_path):
        shown = invoke("predict", model, data, "--id", "read", "--chunk", chunk).stdout
        assert list(csv.reader(shown.splitlines())) == expected
        invoke("predict", model, data, "--id", "read", "--chunk", chunk, "-o", tmp_path / "p.csv")
        assert rows_of(tmp_path / "p.csv") == expected
        piped = invoke("predict", model, "-", "--id", "read", "-o", "-", input=data.read_bytes()).stdout
        assert list(csv.reader(piped.splitlines())) == expected


def test_the_stream_names_objects_by_any_column(tmp_path):
    paths = tables(tmp_path)
    for path in paths:
        for chunk in (1, 5, 60):
            parts = list(open_stream(path, chunk=chunk, names="read").chunks())
            assert [name for part in parts for name in part.names] == NAMES
            assert [word for part in parts for word in part.objects.tolist()] == WORDS
            rest = open_stream(path, chunk=4, names="read").chunks(parts[0].stop)
            assert [name for part in rest for name in part.names] == NAMES[parts[0].stop :]
        assert next(open_stream(path, names="text").chunks()).names == WORDS
        assert open_stream(path).fingerprint() == open_stream(path, names="read").fingerprint()
    assert next(open_stream(paths[2], names=0).chunks()).names == [str(i) for i in range(60)]


def test_parquet_names_of_every_type(tmp_path):
    path = tmp_path / "t.parquet"
    columns = {
        "numbers": ([3, None, -1], ["3", "", "-1"]),
        "floats": ([0.5, 1.0, None], ["0.5", "1", ""]),
        "dates": (pa.array([0, 1, 365], pa.date32()), ["1970-01-01", "1970-01-02", "1971-01-01"]),
        "texts": (pa.array(["é", "", "b"]).dictionary_encode(), ["é", "", "b"]),
        "raw": ([b"a", b"bc", b""], ["a", "bc", ""]),
        "flags": ([True, False, True], ["true", "false", "true"]),
    }
    table = {"text": ["A", "C", "G"], "deep": [[1]] * 3, "bad": [b"\xff"] * 3}
    parquet.write_table(pa.table(table | {name: values for name, (values, _) in columns.items()}), path)
    for name, (_, expected) in columns.items():
        assert [n for part in open_stream(path, chunk=2, names=name).chunks() for n in part.names] == expected
    with pytest.raises(ValueError, match=r"'deep': holds list<.*expected text, numbers or dates as names"):
        open_stream(path, names="deep")
    with pytest.raises(ValueError, match=r"'bad': holds binary"):
        list(open_stream(path, names="bad").chunks())


def test_names_that_cannot_be_are_refused(tmp_path):
    model = saved(LOGISTIC, tmp_path)
    data = tables(tmp_path)
    (tmp_path / "a.fasta").write_text(">r1\nACGT\n")
    np.save(tmp_path / "v.npy", np.ones((2, 3)))
    for path in data:
        said = refused("predict", model, path, "--id", "reed")
        assert "has no column 'reed' (did you mean read?); it has" in said
        assert said.endswith("'text'") or said.endswith("'read'")
    assert "a.fasta holds the names of its records; drop names (--id)" in refused(
        "predict", model, tmp_path / "a.fasta", "--id", "read"
    )
    for other in (tmp_path / "v.npy", "splice"):
        assert "has no columns, so names (--id) does not apply; drop it" in refused(
            "predict", model, other, "--id", "read"
        )
    assert "neither a file, a folder" in refused("predict", model, tmp_path / "absent.csv", "--id", "read")
    for source in (WORDS, tmp_path / "a.fasta", tmp_path / "v.npy"):
        with pytest.raises(ValueError, match=r"has no columns, |names of its records"):
            open_stream(source, names="read")


def test_predictions_are_joined_by_the_name_of_the_column(tmp_path):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed (extra: test)")
    model = saved(LOGISTIC, tmp_path)
    for data in tables(tmp_path)[:2]:
        separator = "\t" if data.suffix == ".tsv" else ","
        invoke("predict", model, data, "--id", "read", "-o", tmp_path / "p.csv")
        joined = pandas.read_csv(data, sep=separator).merge(pandas.read_csv(tmp_path / "p.csv"), on="read")
        assert joined["text"].tolist() == WORDS
        assert joined["label"].tolist() == LOGISTIC.predict(WORDS).tolist()
    predict_stream(LOGISTIC, open_stream(data, names="read"), tmp_path / "p.csv")
    assert rows_of(tmp_path / "p.csv")[0] == ["read", "label"]


@pytest.mark.parametrize(
    ("name", "options", "clashes"),
    [
        ("label", (), True),
        ("high", ("--scores",), True),
        ("high", (), False),
        ("row", ("--scores",), False),
        ("scores", ("--scores",), False),
        ("label", ("--json",), True),
        ("scores", ("--json", "--scores"), True),
        ("high", ("--json", "--scores"), False),
    ],
)
def test_a_column_called_like_one_of_the_predictions(name, options, clashes, tmp_path):
    model, data = saved(LOGISTIC, tmp_path), tmp_path / "a.csv"
    data.write_text(f"text,{name}\n{WORDS[0]},r0\n")
    if clashes:
        said = refused("predict", model, data, "--id", name, *options)
        assert said == (
            f"the results have a column '{name}', too; rename it in the data, or name another column (names= or --id)"
        )
        return
    shown = invoke("predict", model, data, "--id", name, *options).stdout.splitlines()
    assert json.loads(shown[0])[name] == "r0" if "--json" in options else shown[0].startswith(f"{name},label")


def test_a_run_with_another_name_of_the_column_starts_anew():
    names = ("read", "other", "row", 0, 1, None)  # without a name, rows are numbered
    keys = [Predictions(LOGISTIC, "csv", False, name).belongs for name in names]
    assert len({str(key) for key in keys}) == len(names)
    assert keys[-1] == {}


# ---- scores
def test_a_column_for_each_class(tmp_path):
    expected = LOGISTIC.predict_proba(WORDS)
    model = saved(LOGISTIC, tmp_path)
    for data in tables(tmp_path):
        for chunk in (1, 9, 60):
            invoke("predict", model, data, "--scores", "--chunk", chunk, "-o", tmp_path / "p.csv")
            head, *rows = rows_of(tmp_path / "p.csv")
            assert head == ["row", "label", "high", "low", "mid"]
            assert [row[:2] for row in rows] == [[str(i), y] for i, y in enumerate(LOGISTIC.predict(WORDS).tolist())]
            np.testing.assert_allclose(np.array([row[2:] for row in rows], float), expected, rtol=1e-5)
            assert [head[2 + np.argmax(np.array(row[2:], float))] for row in rows] == [row[1] for row in rows]


def test_two_classes_without_probabilities_have_a_value_and_its_negative(tmp_path):
    decision = BINARY.decision_function(WORDS)
    predict_stream(BINARY, WORDS, tmp_path / "p.jsonl", scores=True, chunk=11)
    found = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    assert [row["label"] for row in found] == BINARY.predict(WORDS).tolist()
    values = np.array([[row["scores"]["False"], row["scores"]["True"]] for row in found])
    np.testing.assert_allclose(values, np.column_stack([-decision, decision]), rtol=1e-5)


def test_hypervectors_and_models_without_steps_have_scores(tmp_path):
    nyshd = sm.recipes.nyshd(sm.kernels.Spectrum(k=2), 16, 256, random_state=0, update="averaged").fit(WORDS, Y)
    machine = sm.KernelSVC(sm.kernels.Spectrum(k=2)).fit(WORDS, Y)
    for model in (nyshd, machine):
        predict_stream(model, WORDS, tmp_path / "p.csv", scores=True)
        values = np.array([row[2:] for row in rows_of(tmp_path / "p.csv")[1:]], float)
        np.testing.assert_allclose(values, model.decision_function(WORDS), rtol=1e-5, atol=1e-12)


def test_objects_are_embedded_once_for_labels_and_scores(tmp_path):
    calls = []

    class Counting(sm.KernelFeatures):
        def transform(self, X):
            calls.append(len(X))
            return super().transform(X)

    model = make_pipeline(Counting(sm.kernels.Spectrum(k=2), 64), MaxAbsScaler(), SGDClassifier(random_state=0)).fit(
        WORDS, Y
    )
    calls.clear()
    predict_stream(model, WORDS, tmp_path / "p.csv", scores=True, chunk=20)
    assert calls == [20, 20, 20]


def test_models_without_scores_are_refused_before_anything_is_made(tmp_path):
    words = tables(tmp_path)[0]
    several = make_pipeline(FEATURES, MultiOutputClassifier(LogisticRegression())).fit(
        WORDS, [[i % 2, 1 - i % 2] for i in range(60)]
    )
    pairs = [
        make_pipeline(FEATURES, SVC(decision_function_shape="ovo")).fit(WORDS + WORDS, np.arange(120) % classes)
        for classes in (3, 4)
    ]
    clashing = make_pipeline(FEATURES, SGDClassifier(random_state=0)).fit(
        WORDS, ["label" if y == "low" else y for y in Y]
    )
    said = refused("predict", saved(RIDGE, tmp_path), words, "--scores", "-o", tmp_path / "p.csv")
    assert said == "the model (Ridge) predicts numbers, so there are no scores of classes; drop scores"

    class Plain(SGDClassifier):
        decision_function = property()

    plain = make_pipeline(FEATURES, Plain().fit(FEATURES.transform(WORDS), Y))
    for model, sentence in [
        (several, "predicts several labels at once"),
        (pairs[0], "SVC.* a decision value for each pair of classes"),
        (pairs[1], "SVC.* a decision value for each pair of classes"),
        (clashing, r"a class is called 'label'.*\.jsonl"),
        (plain, "neither probabilities nor decision values"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            predict_stream(model, WORDS, tmp_path / "p.csv", scores=True)
    assert not (tmp_path / "p.csv").exists()
    predict_stream(clashing, WORDS, tmp_path / "p.jsonl", scores=True)
    assert set(json.loads((tmp_path / "p.jsonl").read_text().splitlines()[0])["scores"]) == {"high", "label", "mid"}


# ---- forms
def test_the_ending_of_the_file_says_the_form(tmp_path):
    model, data = saved(LOGISTIC, tmp_path), tables(tmp_path)[0]
    options = ("--id", "read", "--scores")
    for name in ("p.csv", "p.tsv", "p.jsonl"):
        summary = json.loads(invoke("predict", model, data, *options, "-o", tmp_path / name, "--json").stdout)
        assert summary == {"predictions": 60, "output": str(tmp_path / name)}
    rows = rows_of(tmp_path / "p.csv")
    assert rows_of(tmp_path / "p.tsv", "\t") == rows
    assert (tmp_path / "p.tsv").read_text().startswith("read\tlabel\thigh\tlow\tmid\n")
    lines = (tmp_path / "p.jsonl").read_text().splitlines()
    assert [
        [f["read"], f["label"], *(f"{v:.6g}" for v in f["scores"].values())] for f in map(json.loads, lines)
    ] == rows[1:]
    assert invoke("predict", model, data, *options, "--json").stdout.splitlines() == lines
    numbers = invoke("predict", model, data, "--json").stdout.splitlines()
    assert json.loads(numbers[1]) == {"row": 1, "label": json.loads(lines[1])["label"]}


def test_other_endings_say_what_to_write(tmp_path):
    model, data = saved(LOGISTIC, tmp_path), tables(tmp_path)[0]
    for options in ((), ("--json",)):
        said = refused("predict", model, data, "-o", tmp_path / "x.json", *options)
        assert said.endswith(f"end {tmp_path / 'x.json'} in .jsonl")
        for name in ("x.parquet", "x.csv.gz"):
            assert "are written as .csv, .tsv or .jsonl" in refused(
                "predict", model, data, "-o", tmp_path / name, *options
            )
    with pytest.raises(ValueError, match=r"x\.json in \.jsonl"):
        predict_stream(LOGISTIC, WORDS, tmp_path / "x.json")
    assert not list(tmp_path.glob("x.*"))


# ---- interrupted and resumed
@pytest.mark.parametrize("name", ["p.csv", "p.tsv", "p.jsonl"])
def test_stopped_anywhere_and_gone_on_with_other_chunks(name, tmp_path, monkeypatch):
    model, output = saved(LOGISTIC, tmp_path), tmp_path / name
    append = Journal.append
    for data in tables(tmp_path):
        arguments = ("predict", model, data, "--id", "read", "--scores", "-o", output)
        invoke(*arguments)
        whole = output.read_bytes()
        output.unlink()
        for call in (1, 2, 5):
            calls = []

            def stopping(*given, calls=calls, call=call):
                calls.append(1)
                if len(calls) == call:
                    raise KeyboardInterrupt
                append(*given)

            with monkeypatch.context() as patch:
                patch.setattr(Journal, "append", stopping)
                invoke(*arguments, "--chunk", 11, code=130)
            done = invoke(*arguments, "--chunk", 13)
            assert ("resuming after" in done.stdout) == (call > 1)
            assert output.read_bytes() == whole
            output.unlink()


def test_other_options_start_anew(tmp_path, monkeypatch):
    model, data, output = saved(LOGISTIC, tmp_path), tables(tmp_path)[0], tmp_path / "p.csv"
    append, options = Journal.append, [(), ("--id", "read"), ("--id", "text"), ("--scores",)]
    for first in options:
        for second in options:
            calls = []

            def stopping(*given, calls=calls):
                calls.append(1)
                if len(calls) == 3:
                    raise KeyboardInterrupt
                append(*given)

            with monkeypatch.context() as patch:
                patch.setattr(Journal, "append", stopping)
                invoke("predict", model, data, "-o", output, *first, "--chunk", 11, code=130)
            done = invoke("predict", model, data, "-o", output, *second)
            assert ("resuming after 22" in done.stdout) == (first == second)
            assert len(rows_of(output)) == 61
            assert len({len(row) for row in rows_of(output)}) == 1


# ---- strangers
@pytest.mark.parametrize("options", [(), ("-q",), ("-v",)])
def test_objects_that_training_never_met_are_a_line_on_the_terminal(options, tmp_path):
    model, data = saved(LOGISTIC, tmp_path), tmp_path / "lower.fasta"
    data.write_text("".join(f">{name}\n{word}\n" for name in "abcd" for word in (WORDS[0].lower(), WORDS[1])))
    sm.save(make_pipeline(sm.KernelFeatures(sm.kernels.Spectrum(k=2)), SVC()).fit(WORDS, Y), model)
    command = [sys.executable, "-m", "similia.cli", "predict", str(model), str(data), "--chunk", "3", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 9)
    said = [line for line in done.stderr.splitlines() if "have no feature" in line]
    if options == ("-q",):
        assert done.stderr == ""
    elif options == ():
        [line] = said
        assert line.startswith("warning: 2 of the objects 0 to 2 have no feature that a training object had, ")
        assert "ObjectsWarning" not in done.stderr
    else:
        [line] = said
        assert "ObjectsWarning: 2 of the objects" in line


# ---- sets and intervals
def test_sets_of_labels_in_every_form(tmp_path):
    model = sm.ConformalClassifier(FrozenEstimator(LOGISTIC), random_state=0).fit(WORDS, Y)
    path, expected = saved(model, tmp_path), model.predict_set(WORDS, 0.8)
    sets = [[label for label, inside in zip(["high", "low", "mid"], row, strict=True) if inside] for row in expected]
    assert len({len(labels) for labels in sets}) > 1
    for table in tables(tmp_path):
        output = tmp_path / "sets.csv"
        invoke("predict", path, table, "--text", "text", "--coverage", 0.8, "--chunk", 7, "-o", output)
        assert rows_of(output)[0] == ["row", "label", "set"]
        assert [row[2] for row in rows_of(output)[1:]] == [" | ".join(labels) for labels in sets]
        assert [row[1] for row in rows_of(output)[1:]] == LOGISTIC.predict(WORDS).tolist()
        output.unlink()
    output = tmp_path / "sets.jsonl"
    invoke("predict", path, tmp_path / "a.csv", "--id", "read", "--coverage", 0.8, "-o", output)
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    assert lines[3] == {"read": NAMES[3], "label": LOGISTIC.predict(WORDS)[3], "set": sets[3]}
    assert [line["set"] for line in lines] == sets


def test_intervals_in_every_form(tmp_path):
    model = sm.ConformalRegressor(FrozenEstimator(RIDGE)).fit(WORDS, np.arange(60.0))
    path, ends, (table, *_) = saved(model, tmp_path), model.predict_interval(WORDS, 0.9), tables(tmp_path)
    invoke("predict", path, table, "--text", "text", "--coverage", 0.9, "-o", tmp_path / "ends.tsv")
    head, *rows = rows_of(tmp_path / "ends.tsv", "\t")
    assert head == ["row", "label", "low", "high"]
    np.testing.assert_allclose(np.array([row[2:] for row in rows], dtype=float), ends, rtol=1e-8)
    invoke("predict", path, table, "--text", "text", "--coverage", 0.9, "-o", tmp_path / "ends.jsonl")
    found = json.loads((tmp_path / "ends.jsonl").read_text().splitlines()[0])
    assert list(found) == ["row", "label", "low", "high"]
    np.testing.assert_allclose([found["low"], found["high"]], ends[0], rtol=1e-8)


def test_another_coverage_is_another_run(tmp_path):
    model = sm.ConformalRegressor(FrozenEstimator(RIDGE)).fit(WORDS, np.arange(60.0))
    for coverage in (0.8, 0.9):
        predict_stream(model, WORDS, tmp_path / "ends.csv", coverage=coverage)
        found = np.array([row[2:] for row in rows_of(tmp_path / "ends.csv")[1:]], dtype=float)
        np.testing.assert_allclose(found, model.predict_interval(WORDS, coverage), rtol=1e-8)
    assert Predictions(model, coverage=0.8).belongs != Predictions(model, coverage=0.9).belongs


def test_no_sets(tmp_path):
    (table, *_), plain = tables(tmp_path), saved(LOGISTIC, tmp_path)
    assert "(LogisticRegression) is not calibrated" in refused("predict", plain, table, "--coverage", 0.9)
    mixed = sm.ConformalClassifier(FrozenEstimator(LOGISTIC)).fit(WORDS, ["a | b", *Y[1:]])
    path, of_lines = sm.save(mixed, tmp_path / "mixed.similia"), ("-o", tmp_path / "sets.jsonl")
    assert "the class 'a | b' contains ' | '" in refused("predict", path, table, "--coverage", 0.9)
    assert "exclude each other" in refused("predict", path, table, "--coverage", 0.9, "--scores")
    too_few = refused("predict", path, table, *of_lines, "--coverage", 0.99)
    assert too_few.startswith("--coverage=0.99 needs 99 calibration objects, found 60")
    two = refused("predict", path, table, *of_lines, "--coverage", 0.9, "--std")
    assert two == "--std and --coverage exclude each other; write each to a file of its own"
    assert "above 0 and below 1, got 90" in refused("predict", path, table, *of_lines, "--coverage", 90)


@pytest.mark.parametrize("how", [["--budget", "2s", "--cv", 3], ["--kernel", "Spectrum(k=2)", "--landmarks", 20]])
def test_a_model_calibrated_with_the_held_out_objects(how, tmp_path):
    words = [word + ("AAAA" if i % 2 else "CGCG") for i, word in enumerate(WORDS)]
    data, path = tmp_path / "data.csv", tmp_path / "model.similia"
    with data.open("w", newline="") as file:
        csv.writer(file).writerows([["text", "label"], *([w, "ab"[i % 2]] for i, w in enumerate(words))])
    said = invoke("fit", data, "-o", path, "--conformal", "--test", 0.5, *how).output
    assert "fitted on 30 and calibrated with 30" in " ".join(said.split())
    model = sm.load(path)
    assert len(model.calibration_scores_) == 30
    invoke("predict", path, data, "--coverage", 0.9, "-o", tmp_path / "sets.csv")
    assert rows_of(tmp_path / "sets.csv")[0] == ["row", "label", "set"]
    said = " ".join(invoke("report", path, data, "-o", tmp_path / "page.html", "--folds", 2).output.split())
    assert re.search(r"coverage, cross-validated [\d.]+ % \(80 % asked\)", said)
    assert "--test 0 holds out none" in refused("fit", data, "-o", path, "--conformal", "--test", 0)


@pytest.mark.parametrize(
    "how", [["--budget", "3s", "--cv", 3, "--test", 0], ["--kernel", "Spectrum(k=2)", "--landmarks", 50, "--test", 0.1]]
)
def test_a_model_calibrated_in_folds_and_by_class(how, tmp_path):
    words = [word + ("AAAA" if i % 3 else "CGCG") for i, word in enumerate(WORDS)]
    data, path = table_of(tmp_path, words, ["ab"[i % 3 == 0] for i in range(60)]), tmp_path / "model.similia"
    said = invoke("fit", data, "-o", path, "--conformal", "--cross", "--by-class", *how).output
    assert "fitted on all 60 and calibrated with all, in 5 folds, and wrote" in " ".join(said.split())
    model = sm.load(path)
    assert (model.method, model.by_class, len(model.calibration_scores_)) == ("cross", True, 60)
    # The same as in Python, around the pipeline that was fitted to all objects.
    twin = sm.ConformalClassifier(clone(model.estimator_), "cross", by_class=True, random_state=0)
    labels = ["ab"[i % 3 == 0] for i in range(60)]
    sets = twin.fit(words, labels).predict_set(words, 0.9)
    invoke("predict", path, data, "--coverage", 0.9, "-o", tmp_path / "sets.csv")
    expected = [" | ".join(twin.classes_[row]) for row in sets]
    assert [row[2] for row in rows_of(tmp_path / "sets.csv")[1:]] == expected
    found = json.loads(invoke("report", path, data, "-o", tmp_path / "page.html", "--folds", 2, "--json").stdout)
    assert 0.5 < found["scores"]["coverage"]["0.8"] <= 1


@pytest.mark.parametrize("how", [["--distance", "Levenshtein()"], ["--learner", "gaussian-process"]])
def test_intervals_of_folds(how, tmp_path):
    truth = np.array([word.count("A") + i / 100 for i, word in enumerate(WORDS)])
    data, path = table_of(tmp_path, WORDS, truth.tolist()), tmp_path / "model.similia"
    invoke("fit", data, "-o", path, "--conformal", "--cross", *how)
    assert len(sm.load(path).calibration_scores_) == 60
    invoke("predict", path, data, "--coverage", 0.9, "-o", tmp_path / "ends.csv")
    ends = np.array([row[1:] for row in rows_of(tmp_path / "ends.csv")[1:]], dtype=float)
    assert ((ends[:, 1] <= truth) & (truth <= ends[:, 2])).mean() > 0.8
    found = json.loads(invoke("report", path, data, "-o", tmp_path / "page.html", "--folds", 2, "--json").stdout)
    assert 0.5 < found["scores"]["coverage"]["0.8"] <= 1


def test_each_class_is_calibrated_with_its_held_out_objects(tmp_path):
    data, path = table_of(tmp_path, WORDS, ["ab"[i % 4 == 0] for i in range(60)]), tmp_path / "model.similia"
    invoke("fit", data, "-o", path, "--conformal", "--by-class", "--test", 0.5, "--kernel", "Spectrum(k=2)")
    model = sm.load(path)
    assert (model.method, model.by_class, len(model.calibration_scores_)) == ("split", True, 30)


def test_options_of_calibration_that_contradict_each_other(tmp_path):
    data, path = table_of(tmp_path, WORDS, [i / 7 for i in range(60)]), tmp_path / "model.similia"
    for option in ("--cross", "--by-class"):
        assert f"{option} says how --conformal calibrates" in refused("fit", data, "-o", path, option)
    assert "--test 0 holds out none" in refused("fit", data, "-o", path, "--conformal", "--test", 0, "--by-class")
    assert "numbers to predict; drop --by-class" in refused("fit", data, "-o", path, "--conformal", "--by-class")


def test_intervals_of_a_distance(tmp_path):
    data, path = tmp_path / "data.csv", tmp_path / "model.similia"
    with data.open("w", newline="") as file:
        csv.writer(file).writerows([["text", "label"], *([w, w.count("A") + i / 100] for i, w in enumerate(WORDS))])
    invoke("fit", data, "-o", path, "--conformal", "--test", 0.4, "--distance", "Levenshtein()")
    assert len(sm.load(path).calibration_scores_) == 24
    invoke("predict", path, data, "--coverage", 0.9, "-o", tmp_path / "ends.csv")
    ends = np.array([row[1:] for row in rows_of(tmp_path / "ends.csv")[1:]], dtype=float)
    assert (ends[:, 1] < ends[:, 0]).all()
    assert (ends[:, 0] < ends[:, 2]).all()
    found = invoke("report", path, data, "-o", tmp_path / "page.html", "--unseen", "--json").output
    coverage = json.loads(found)["scores"]["coverage"]
    truth = [word.count("A") + i / 100 for i, word in enumerate(WORDS)]
    assert coverage["0.9"] == pytest.approx(((ends[:, 1] <= truth) & (truth <= ends[:, 2])).mean())
