"""similia export: the files of export_c, and what it says of bad options."""

import csv
import json

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
    invoke("export", folder / "m", "-o", folder / "c")
    assert "exists; give another folder or name, or overwrite" in refused("export", folder / "m", "-o", folder / "c")
    invoke("export", folder / "m", "-o", folder / "c", "--overwrite")
    assert "name must begin with a letter" in refused("export", folder / "m", "-o", folder / "c", "--name", "a b")
