"""similia export: the files of export_c, and what it says of bad options."""

import csv
import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import similia as sm
from similia.cli.app import app

runner = CliRunner()
WORDS = ["".join(word) for word in np.random.default_rng(0).choice(list("ACGT"), (40, 12))]
LABELS = ["even", "odd"] * 20


@pytest.fixture
def folder(tmp_path):
    with (tmp_path / "w.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("word", "label"), *zip(WORDS, LABELS, strict=True)])
    invoke("fit", tmp_path / "w.csv", "--text", "word", "--kernel", "Spectrum(k=2)", "--bits", 64, "-o", tmp_path / "m")
    return tmp_path


def invoke(*arguments, code=0):
    done = runner.invoke(app, [str(a) for a in arguments])
    assert done.exit_code == code, (done.output, done.exception)
    return done


def refused(*arguments):
    return str(runner.invoke(app, [str(a) for a in arguments]).exception)


def test_c_is_written_as_by_python(folder):
    said = invoke("export", folder / "m", folder / "w.csv", "-o", folder / "c", "--name", "words").output
    assert f"wrote {folder / 'c'}: Quantised(substrings, 64 bits, 2 classes" in said
    assert "of the labels of 40 objects are equal; accuracy" in said
    sm.export_c(sm.load(folder / "m"), folder / "own", WORDS, name="words")
    names = sorted(path.name for path in (folder / "own").iterdir())
    assert names == ["words.c", "words.h", "words.txt", "words_test.c"]
    for name in names:
        assert (folder / "c" / name).read_text() == (folder / "own" / name).read_text()


def test_verilog_is_written_as_by_python(folder):
    invoke("export", folder / "m", folder / "w.csv", "--to", "verilog", "-o", folder / "v", "--name", "words")
    sm.export_verilog(sm.load(folder / "m"), folder / "own", WORDS, name="words")
    names = sorted(path.name for path in (folder / "own").iterdir())
    assert {"words.v", "words_tb.v", "words_verilog.txt"} <= set(names)
    for name in names:
        assert (folder / "v" / name).read_bytes() == (folder / "own" / name).read_bytes()


def test_float32_is_written_as_by_python(folder):
    invoke("export", folder / "m", folder / "w.csv", "--float", "-o", folder / "f", "--name", "words")
    sm.export_c(sm.load(folder / "m"), folder / "own", WORDS, name="words", numbers="float")
    for path in (folder / "own").iterdir():
        assert (folder / "f" / path.name).read_text() == path.read_text()
    assert "in float32, C99" in (folder / "f" / "words.h").read_text()
    given = ("export", folder / "m", folder / "w.csv", "--float", "-o", folder / "new")
    assert "--float is only for C" in refused(*given, "--to", "verilog")
    assert "--float and --max-bytes exclude each other" in refused(*given, "--max-bytes", 4000)
    assert not (folder / "new").exists()


def test_json_without_data(folder):
    found = json.loads(invoke("export", folder / "m", "--max-length", 50, "-o", folder / "c", "--json").stdout)
    assert (found["bits"], found["kind"], "loss" in found) == (64, "substrings", False)
    assert "MODEL_MAX_LENGTH 50U" in (folder / "c" / "model.h").read_text()
    found = json.loads(invoke("export", folder / "m", folder / "w.csv", "-o", folder / "d", "--json").stdout)
    assert 0.9 < found["loss"]["labels"] <= 1


def test_bad_options_are_named(folder):
    assert (
        refused("export", folder / "m", "--to", "rust", "-o", folder / "c") == "--to must be c or verilog, got 'rust'"
    )
    assert refused("export", folder / "m", "-o", "-").startswith("-o must name a folder")
    invoke("export", folder / "m", "-o", folder / "c")
    assert "exists; give another folder or name, or overwrite" in refused("export", folder / "m", "-o", folder / "c")
    invoke("export", folder / "m", "-o", folder / "c", "--overwrite")
    assert "--name must be a letter followed by letters" in refused(
        "export", folder / "m", "-o", folder / "c", "--name", "a b"
    )


# ---- smaller models
def test_the_model_of_compress_is_written(folder):
    model, data = folder / "m", folder / "w.csv"
    found = sm.devices.compress(sm.load(model), WORDS, LABELS, max_bytes=2000)
    small = sm.export_c(found.model, folder / "own", WORDS, name="words")
    options = ["--max-bytes", 2000, "--name", "words", "--save", folder / "small"]
    said = invoke("export", model, data, "-o", folder / "c", *options).output
    assert found.table() + "; --json has all" in said
    assert small.n_bytes <= 2000 < sm.quantise(sm.load(model), WORDS).n_bytes
    assert (folder / "c" / "words.c").read_text() == (folder / "own" / "words.c").read_text()
    saved = sm.load(folder / "small")
    assert saved.predict(WORDS).tolist() == found.model.predict(WORDS).tolist()
    invoke("predict", folder / "small", data)  # it knows the column
    facts = json.loads(invoke("export", model, data, "-o", folder / "d", "--max-bytes", 2000, "--json").stdout)
    assert facts["chosen"] == vars(found.chosen)
    assert facts["sizes"] == [vars(size) for size in found.sizes]


def test_the_smallest_within_the_loss_is_written(folder):
    model, data = folder / "m", folder / "w.csv"
    found = sm.devices.compress(sm.load(model), WORDS, LABELS, max_loss=0.3, random_state=3)
    options = ["--max-loss", 0.3, "--seed", 3, "--json"]
    facts = json.loads(invoke("export", model, data, "-o", folder / "c", *options).stdout)
    assert facts["chosen"] == vars(found.chosen)
    assert facts["chosen"] != facts["sizes"][-1]


@pytest.mark.parametrize("unit", [1, 0.5])  # labels 0 and 1, or 0.0 and 0.5, which similia fit takes as text
def test_labels_that_are_numbers_are_those_of_the_model(folder, unit):
    odd = np.array([label == "odd" for label in LABELS])
    data, model = folder / "n.csv", folder / "n"
    with data.open("w", newline="") as file:
        csv.writer(file).writerows([("word", "label"), *zip(WORDS, (odd * unit).tolist(), strict=True)])
    spectrum = ("--kernel", "Spectrum(k=2)", "--bits", 64, "--task", "classification", "--test", 0)
    invoke("fit", data, *spectrum, "-o", model)
    loss = json.loads(invoke("export", model, data, "-o", folder / "c", "--json").stdout)["loss"]
    fitted = sm.load(model)
    assert loss["before"] == np.mean(fitted.predict(WORDS) == fitted.classes_[odd.astype(int)]) > 0.6
    invoke("export", model, data, "-o", folder / "d", "--max-loss", 0.3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--max-bytes", 99, "--max-loss", 0.1], "--max-bytes and --max-loss exclude each other: each says which"),
        (["--max-loss", 1.5], "--max-loss must be a number from 0 to below 1, such as 0.01, got 1.5"),
        (["--max-bytes", 0], "--max-bytes must be an integer >= 1, got 0"),
        (["--max-bytes", 99], "--max-bytes must be at least [0-9]+, the bytes of the smallest size, got 99; allow"),
        (["--save", "s"], "--save is for the smaller model of --max-bytes or --max-loss; add one of them, or drop"),
        (["--max-length", 0], "--max-length must be an integer >= 1, got 0"),
        (
            ["--max-length", 11],
            r"w\.csv, line 2: it has 12 letters, expected at most 11; quantise with a larger --max-l",
        ),
        (["--name", "module", "--to", "verilog"], "--name must be no keyword of Verilog, got 'module'; give another"),
    ],
)
def test_options_are_called_as_they_are_written(folder, options, message):
    said = refused("export", folder / "m", folder / "w.csv", "-o", folder / "new", *options)
    assert re.search(message, said), said
    assert not (folder / "new").exists()


def test_smaller_models_need_the_labels_of_training(folder):
    model = folder / "m"
    said = refused("export", model, "-o", folder / "c", "--max-loss", 0.1)
    assert said == "--max-loss needs labelled objects; give the training data after the model"
    (folder / "plain.csv").write_text("word\nACGT\nACGA\n")
    said = refused("export", model, folder / "plain.csv", "-o", folder / "c", "--max-loss", 0.1)
    assert "has no labels; --label names their column" in said
    (folder / "other.csv").write_text("word,label\nACGT,a\nACGA,b\n")
    said = refused("export", model, folder / "other.csv", "-o", folder / "c", "--max-loss", 0.1)
    assert said.endswith("has the label 'a', but the model knows 'even', 'odd'; give its training data")
    said = refused("export", model, "-o", folder / "c", "--max-length", 3)
    assert re.fullmatch(
        r"landmarks\[\d+\] has 12 letters, expected at most 3; quantise with a larger --max-length", said
    )


def test_files_that_exist_are_noticed_before_models_are_tried(folder, monkeypatch):
    invoke("export", folder / "m", "-o", folder / "c")
    monkeypatch.setattr(sm.devices, "compress", None)
    said = refused("export", folder / "m", folder / "w.csv", "-o", folder / "c", "--max-loss", 0.1)
    assert "model.c exists; give another folder or name, or overwrite" in said


def test_another_model_names_its_file_and_the_command_for_one_that_can_be_exported(folder):
    distance = ("--distance", "Levenshtein()", "--test", 0)
    invoke("fit", folder / "w.csv", *distance, "-o", folder / "d2ke")
    for options, found in (([], "makes codes or labels by LinearSVC"), (["--max-loss", 0.1], "is D2KE -> Stan")):
        said = refused("export", folder / "d2ke", folder / "w.csv", "-o", folder / "c", *options)
        assert f"{folder / 'd2ke'} {found}" in said
        assert said.endswith("; 'similia fit' with --kernel makes such a model")


# ---- similia fit for devices
def test_hadamard_directions_by_name(folder):
    spectrum = ("--kernel", "Spectrum(k=2)", "--bits", 512, "--test", 0)
    for directions in ("gaussian", "hadamard"):
        model = folder / directions
        invoke("fit", folder / "w.csv", *spectrum, "--directions", directions, "-o", model)
        assert sm.load(model)[1].method == directions
        said = invoke("export", model, folder / "w.csv", "-o", folder / f"{directions}_c")
        assert ("fitted with Hadamard directions, the model would take" in said.stderr) == (directions == "gaussian")
    invoke("fit", folder / "w.csv", *spectrum, "-o", folder / "default")
    assert sm.load(folder / "default")[1].method == "gaussian"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--directions", "random"], "--directions must be gaussian or hadamard, got 'random'"),
        (
            ["--directions", "hadamard", "--budget", "9s"],
            "--budget is for the choice among pipelines; drop it, or drop --kernel",
        ),
        (
            ["--directions", "hadamard", "--distance", "DTW"],
            "--directions is for models from a kernel, not from the distance DTW",
        ),
    ],
)
def test_directions_are_for_nyshd(folder, options, message):
    assert message in refused("fit", folder / "w.csv", "-o", folder / "x", *options)
    rows = "".join(f"{word},{i / 7}\n" for i, word in enumerate(WORDS))
    (folder / "numbers.csv").write_text("word,label\n" + rows)
    said = refused("fit", folder / "numbers.csv", "-o", folder / "x", "--directions", "hadamard")
    assert said == "--directions is for classes, and the labels are numbers to predict; drop --directions"


def test_vectors_by_a_kernel(folder):
    X = np.random.default_rng(0).normal(size=(60, 3)).round(3)
    rows = [",".join(map(str, row)) + f",{'left' if row[0] < 0 else 'right'}" for row in X]
    (folder / "v.csv").write_text("\n".join(["x,y,z,label", *rows]))
    invoke("fit", folder / "v.csv", "--bits", 256, "--directions", "hadamard", "--test", 0, "-o", folder / "v")
    assert repr(sm.load(folder / "v")[0].kernel) == "RBF()"
    said = invoke("export", folder / "v", folder / "v.csv", "-o", folder / "v_c").output
    assert "Quantised(gaussian, 256 bits, 2 classes" in said
    said = refused("fit", folder / "v.csv", "--kernel", "Spectrum(k=2)", "-o", folder / "x")
    assert said.endswith("holds vectors, which Spectrum(k=2) does not compare; use e.g. RBF()")
