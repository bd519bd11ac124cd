"""What every command has: JSON, quiet and verbose, pipes, exit codes, completion, names that were probably meant."""

import gzip
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import pytest
from sklearn.svm import LinearSVC
from typer.testing import CliRunner

import similia as sm
from similia.cli import options
from similia.cli.app import app
from similia.cli.voice import _ending
from similia.core.text import did_you_mean

runner = CliRunner()
WORDS = ["".join(word) for word in np.random.default_rng(0).choice(list("ACGT"), (40, 12))]
LABELS = ["even" if i % 2 == 0 else "odd" for i in range(40)]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "words.csv"
    path.write_text("text,label\n" + "".join(f"{w},{y}\n" for w, y in zip(WORDS, LABELS, strict=True)))
    return path


@pytest.fixture
def model(tmp_path):
    recipe = sm.recipes.nyshd(sm.kernels.Spectrum(k=2), n_bits=64, random_state=0)
    return sm.save(recipe.fit(WORDS, LABELS), tmp_path / "given.similia")


def invoke(*arguments, code=0, **how):
    done = runner.invoke(app, [str(a) for a in arguments], **how)
    assert done.exit_code == code, (done.output, done.exception)
    return done


def similia(*arguments, **how):
    """Run the command as a user does."""
    return subprocess.run([sys.executable, "-m", "similia.cli", *map(str, arguments)], capture_output=True, **how)


# ---- JSON
def test_each_command_prints_json_alone(table, model, tmp_path):
    folder, codes = tmp_path / "index", tmp_path / "codes.npy"
    spectrum = ("--kernel", "Spectrum(k=2)")
    commands = {
        "fit": ("fit", table, "-o", tmp_path / "m.similia", *spectrum, "--bits", 64),
        "predict": ("predict", model, table, "-o", tmp_path / "p.csv"),
        "encode": ("encode", table, "-o", codes, *spectrum, "--bits", 64, "--landmarks", 8),
        "build": ("index", "build", table, folder, "--bits", 64, "--landmarks", 8),
        "search": ("index", "search", folder, table, "-k", 2),
        "remove": ("index", "remove", folder, 3),
        "info": ("index", "info", folder),
        "explain": ("explain", model, table, "--pair", 0, 1),
    }
    found = {name: json.loads(invoke(*arguments, "--json").stdout) for name, arguments in commands.items()}
    assert (found["fit"]["objects"], found["fit"]["held_out"]["objects"]) == (40, 8)
    assert set(found["fit"]["held_out"]["recall"]) == {"even", "odd"}
    assert found["predict"] == {"predictions": 40, "output": str(tmp_path / "p.csv")}
    assert (found["encode"]["codes"], found["encode"]["bits"]) == (40, 64)
    assert np.load(codes).shape == (40, 8)
    assert (found["build"]["objects"], found["build"]["added"]) == (40, 40)
    assert [row["id"] for row in found["search"]["neighbours"] if row["rank"] == 1] == list(range(40))
    assert found["remove"] == {"folder": str(folder), "removed": [3], "objects": 39}
    assert (found["info"]["objects"], found["info"]["sources"][0]["done"]) == (39, 40)
    names_as_keys = {"recall": "the classes"}
    assert [key for key in keys_of(found, names_as_keys) if not key.isidentifier()] == []


def keys_of(value, without):
    """Yield the keys of nested dicts but for those whose keys are data."""
    if isinstance(value, list):
        for item in value:
            yield from keys_of(item, without)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            if key not in without:
                yield from keys_of(inner, without)


def test_predictions_are_a_line_of_json_each(table, model):
    lines = [json.loads(line) for line in invoke("predict", model, table, "--json").stdout.splitlines()]
    expected = sm.load(model).predict(WORDS)
    assert lines == [{"row": i, "label": label} for i, label in enumerate(expected.tolist())]


def test_what_is_no_number_is_null(capsys):
    from similia.cli.voice import result, speaking

    with speaking(json=True):
        result({"a": np.float64("nan"), "b": np.arange(2), "c": np.int64(3), "d": float("inf")})
    assert json.loads(capsys.readouterr().out) == {"a": None, "b": [0, 1], "c": 3, "d": None}
    result({"a": 1})
    assert capsys.readouterr().out == ""


# ---- quiet and verbose
def test_quiet_prints_nothing_but_errors(table, model, tmp_path):
    said = invoke("predict", model, table, "-o", tmp_path / "p.csv", "-q")
    assert (said.stdout, said.stderr) == ("", "")
    assert invoke("predict", model, table, "-o", tmp_path / "p.csv").stdout.startswith("wrote 40")
    failed = similia("predict", model, tmp_path / "absent.csv", "-q", text=True)
    assert (failed.returncode, failed.stdout) == (2, "")
    assert failed.stderr.count("\n") == 1


def test_verbose_shows_where_an_error_was(model, tmp_path):
    usual = similia("predict", model, tmp_path / "absent.csv", text=True)
    verbose = similia("predict", model, tmp_path / "absent.csv", "--verbose", text=True)
    assert "Traceback" not in usual.stderr
    assert "Traceback" in verbose.stderr
    assert verbose.stderr.endswith(usual.stderr)
    assert usual.returncode == verbose.returncode == 2


# ---- pipes
def test_data_from_a_pipe(table, model):
    expected = invoke("predict", model, table).stdout
    for data in (table.read_bytes(), gzip.compress(table.read_bytes())):
        assert invoke("predict", model, "-", input=data).stdout == expected


def test_codes_into_a_pipe(table, model, tmp_path):
    invoke("encode", table, "-o", tmp_path / "codes.npy", "--model", model)
    done = similia("encode", "-", "-o", "-", "--model", model, input=table.read_bytes())
    assert done.stdout == (tmp_path / "codes.npy").read_bytes()
    assert b"wrote 40 codes of 64 bits to standard output" in done.stderr
    assert not list(tmp_path.glob("*.partial"))


def test_a_model_into_a_pipe(table, tmp_path):
    done = similia("fit", table, "-o", "-", "--kernel", "Spectrum(k=2)", "--bits", 64)
    (tmp_path / "piped.similia").write_bytes(done.stdout)
    invoke("fit", table, "-o", tmp_path / "file.similia", "--kernel", "Spectrum(k=2)", "--bits", 64)
    piped, file = (sm.load(tmp_path / f"{name}.similia") for name in ("piped", "file"))
    assert piped.predict(WORDS).tolist() == file.predict(WORDS).tolist()


@pytest.mark.parametrize(
    ("raw", "ending"),
    [
        (b">a\nAC\n", ".fasta"),
        (b"\n;old\n>a\nAC\n", ".fasta"),
        (b"@read\nAC\n+\nII\n", ".fastq"),
        (b"@problemName X\n@data\n1,2:a\n", ".ts"),
        (b"# a comment\n@problemName X\n", ".ts"),
        (b"\xef\xbb\xbftext,label\nAC,a\n", ".csv"),
        (b"text\tlabel\nAC\ta\n", ".tsv"),
        (b"#text\tlabel\nAC\ta\n", ".tsv"),
        (b"PAR1....", ".parquet"),
        (b"\x93NUMPY\x01\x00", ".npy"),
        (gzip.compress(b">a\nAC\n", mtime=0), ".fasta.gz"),
    ],
)
def test_what_a_pipe_brings(tmp_path, raw, ending):
    path = tmp_path / "stdin"
    path.write_bytes(raw)
    assert _ending(path) == ending


@pytest.mark.parametrize("at", [20, -20])
def test_a_damaged_pipe_is_refused_in_a_sentence(table, model, at):
    whole = gzip.compress(table.read_bytes())
    for raw in (whole[:at], whole[:30] + bytes(8) + whole[38:], whole[:2] + b"x" + whole[3:]):
        failed = runner.invoke(app, ["predict", str(model), "-"], input=raw)
        assert str(failed.exception) == "standard input is a damaged or incomplete gzip file"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["predict", "MODEL", "-"], "standard input is empty"),
        (["predict", "MODEL", "-", "--text", "words"], "similia: standard input has no column 'words'"),
        (["encode", "DATA", "-o", "-"], "give an encoder with --model"),
        (["encode", "DATA", "-o", "-", "--model", "MODEL", "--json"], "both write to standard output"),
    ],
)
def test_pipes_that_cannot_be(table, model, arguments, sentence):
    paths = {"MODEL": str(model), "DATA": str(table)}
    given = table.read_text() if "--text" in arguments else ""
    failed = similia(*(paths.get(a, a) for a in arguments), input=given, text=True)
    assert (failed.returncode, failed.stdout) == (2, "")
    assert sentence in failed.stderr


@pytest.mark.parametrize(
    ("arguments", "given", "sentence"),
    [
        (
            ["predict", "MODEL", "-"],
            'text,label\nACGT,a\n"AC\nGT,b\n',
            "line 3: the row that begins here cannot be read",
        ),
        (["predict", "MODEL", "-"], "text,label\nACGT\n", "line 2: found 1 cell, expected 2"),
        (["encode", "-", "-o", "codes.npy"], "text,label\nAC\0GT,a\n", "line 2: a NUL byte"),
        (
            ["fit", "-", "-o", "m", "--kernel", "Spectrum(k=3)"],
            "text,label\nACGT,\nAC,a\n",
            "line 2: the label (column",
        ),
        (["index", "build", "-", "folder"], "text,label\nACGT\n", "line 2: found 1 cell, expected 2"),
        (["predict", "LETTERS", "-"], "text,label\nACG,a\nacgt,b\n", "line 3: it "),
    ],
)
def test_errors_about_piped_data_name_standard_input(tmp_path, monkeypatch, model, arguments, given, sentence):
    monkeypatch.chdir(tmp_path)
    letters = tmp_path / "letters"
    if "LETTERS" in arguments:
        encoder = sm.Nystroem(sm.kernels.Mismatch(k=2), 2, random_state=0)
        sm.save(sm.Pipeline([("e", encoder), ("c", LinearSVC())]).fit(["ACGT", "GTTA"], ["a", "b"]), letters)
    paths = {"MODEL": str(model), "LETTERS": str(letters)}
    failed = runner.invoke(app, [paths.get(a, a) for a in arguments], input=given)
    assert isinstance(failed.exception, ValueError)
    assert failed.stdout in ("", "row,label\n")
    assert f"standard input, {sentence}" in str(failed.exception)
    assert str(tempfile.gettempdir()) not in str(failed.exception) + failed.stderr


def test_a_reader_that_goes_away_is_no_traceback(table, model):
    command = [sys.executable, "-m", "similia.cli", "predict", str(model), "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        process.stdin.write(table.read_bytes())
        process.stdin.close()
        assert process.stderr.read() == b""
        assert process.wait() == 1


# ---- what is printed and written
def test_words_of_the_user_are_printed_as_they_are(tmp_path):
    path = tmp_path / "[b]:heart:.csv"
    labels = ["[/INST]", ":heart:"] * 20
    path.write_text("text,label\n" + "".join(f"{w},{y}\n" for w, y in zip(WORDS, labels, strict=True)))
    model = tmp_path / "[b]m.similia"
    shown = invoke("fit", path, "--kernel", "Spectrum(k=2)", "--bits", 64, "-o", model).output
    for words in ("[/INST]", ":heart:", f"wrote {model}"):
        assert words in shown
    assert f"to {tmp_path / '[b].csv'}" in invoke("predict", model, path, "-o", tmp_path / "[b].csv").output
    folder = tmp_path / "[b]"
    assert f"{folder}: 40 objects" in invoke("index", "build", path, folder, "--bits", 8, "--landmarks", 16).output
    assert invoke("index", "info", folder).output.startswith(f"{folder}\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["duplicates", "DATA", "-o", "p.csv", "--groups", "./p.csv"],
        ["map", "DATA", "-o", "p.html", "--save", "p.html"],
        ["cluster", "DATA", "-o", "p.csv", "--save", "p.csv"],
        ["cluster", "DATA", "-o", "p.csv", "--report", "p.html", "--save", "p.html"],
        ["predict", "MODEL", "DATA", "-o", "p.csv", "--on-error", "skip", "--skipped", "p.csv"],
    ],
)
def test_two_outputs_are_not_one_file(arguments, table, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paths = {"MODEL": str(model), "DATA": str(table)}
    failed = runner.invoke(app, [paths.get(a, a) for a in arguments])
    assert str(failed.exception).endswith(" is named as two outputs of this command; name another file for one of them")
    assert not list(tmp_path.glob("p.*"))


def test_an_output_that_is_a_folder_is_refused_before_training(table, tmp_path):
    failed = runner.invoke(app, ["fit", str(table), "--kernel", "Spectrum(k=2)", "-o", str(tmp_path)])
    assert str(failed.exception) == f"{tmp_path} is a folder; name a file to write"
    assert failed.output == ""


# ---- names that were probably meant
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["fit", "splise", "-o", "m"], "did you mean splice?"),
        (["fit", "DATA", "-o", "m", "--kernel", "Spectrm(k=3)"], "did you mean Spectrum?"),
        (["fit", "DATA", "-o", "m", "--distance", "Levenstein"], "did you mean Levenshtein?"),
        (["fit", "DATA", "-o", "m", "--kernel", "GappyKmers(gap=1)"], "did you mean gaps?"),
        (["fit", "DATA", "-o", "m", "--text", "txt"], "did you mean text?); it has 'text', 'label'"),
        (["encode", "DATA", "-o", "x.npy", "--rerank", "none"], "no such option: --rerank"),
    ],
)
def test_the_name_that_was_probably_meant(table, arguments, sentence):
    failed = runner.invoke(app, [str(table) if a == "DATA" else a for a in arguments])
    assert sentence in f"{failed.exception} {failed.output}"


@pytest.mark.parametrize(
    ("arguments", "start", "command"),
    [
        (["index", "search", "folder", "x.csv", "-k", "0"], "invalid value for '-k': ", "index search"),
        (["fit", "x.csv", "-o", "m", "--seed", "x"], "invalid value for '--seed': ", "fit"),
        (["fit", "x.csv", "-o", "m", "--landmarks", "0"], "invalid value for '--landmarks': ", "fit"),
        (["predict", "--nosuch"], "no such option: --nosuch", "predict"),
        (["predict", "m"], "missing argument 'data", "predict"),
        (["nosuch"], "no such command 'nosuch'", ""),
    ],
)
def test_an_error_in_the_options_is_one_sentence(arguments, start, command):
    done = runner.invoke(app, arguments)
    assert done.exit_code == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.lower().startswith(f"similia: {start}")
    assert line.endswith(f"{command} --help")


def test_without_arguments_the_help_is_printed():
    assert "Exit codes: 0 success" in " ".join(runner.invoke(app, []).output.split())


def test_a_name_like_no_other_is_not_guessed():
    assert did_you_mean("x" * 10_000, ["Spectrum", "y" * 10_000]) == ""
    assert did_you_mean("SPECTRUM", ["Spectrum"]) == " (did you mean Spectrum?)"


# ---- completion
def test_what_a_shell_completes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "promised.csv").touch()
    assert options._classes_of("kernels")("Spec") == ["Spectrum"]
    assert options._classes_of("distances")("Lev") == ["Levenshtein"]
    assert {"promoters", "promised.csv"} <= set(options._data("prom"))
    assert set(options._data("no-such-folder/x")) == set()


def test_a_shell_is_answered():
    asked = {"_SIMILIA_COMPLETE": "complete_bash", "COMP_WORDS": "similia fit splice --kernel Spec", "COMP_CWORD": "4"}
    code = "import sys; sys.argv = ['similia']; from similia.cli.app import app; app(prog_name='similia')"
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **asked}, capture_output=True, text=True)
    assert done.stdout.split() == ["Spectrum"], done.stderr
