"""Which column of a table holds the objects: the only candidate is taken and named, and a model remembers it."""

import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

import similia as sm
from samples.select import sample
from similia.cli.app import app
from similia.cli.encoders import check_kind
from similia.cli.inputs import read_objects, with_columns_of
from similia.scale.stream import predict_stream
from similia.search.on_disk import SearchFolder

STRINGS, LABELS = sample("strings", 30)


def run(*line):
    return CliRunner().invoke(app, [str(word) for word in line], catch_exceptions=False)


@pytest.fixture
def table(tmp_path):
    """Two columns of text beside the label."""
    path = tmp_path / "reads.csv"
    rows = [f"{x},a note,{label}" for x, label in zip(STRINGS, LABELS, strict=True)]
    path.write_text("\n".join(["sequence,note,species", *rows]))
    return path


@pytest.fixture
def model(table, tmp_path):
    path = tmp_path / "m.similia"
    options = ("--text", "sequence", "--label", "species", "--kernel", "Spectrum(k=3)", "--bits", "64", "--test", "0")
    assert run("fit", table, *options, "-o", path).exit_code == 0
    return path


def test_the_only_column_of_text_is_taken_and_named(tmp_path):
    path = tmp_path / "reads.csv"
    path.write_text("\n".join(["reads,species", *map(",".join, zip(STRINGS, LABELS, strict=True))]))
    line = ("fit", path, "--label", "species", "-o", tmp_path / "m", "--kernel", "Spectrum(k=3)", "--bits", "64")
    assert "the strings of column 'reads', the only one of text" in run(*line).stderr


def test_predict_reads_the_column_that_the_model_was_fitted_to(table, model, tmp_path):
    done = run("predict", model, table)
    assert "the objects are read from column 'sequence', as in the model's training data" in done.stderr
    assert done.stdout == run("predict", model, table, "--text", "sequence").stdout
    other = tmp_path / "other.csv"
    other.write_text("\n".join(["reads", *STRINGS]))
    assert "the only one of text" in run("predict", model, other).stderr


def test_an_option_names_another_column(table, model):
    read = with_columns_of(sm.load(model), str(table), {"text": "note"}, labelled=True)
    assert read == {"text": "note", "label": "species"}


def test_report_and_explain_read_the_same_column(table, model, tmp_path):
    done = run("report", model, table, "-o", tmp_path / "page.html", "--folds", "2")
    assert "by cross-validation" in done.stderr  # so that the labels were found, too
    shown = json.loads(run("explain", model, table, "--object", "3", "--json").stdout)
    assert shown["title"] == sm.explain(sm.load(model), STRINGS[3]).title


def test_report_of_objects_without_labels_says_that_no_accuracy_is_shown(model, tmp_path):
    bare = tmp_path / "bare.csv"
    bare.write_text("\n".join(["reads", *STRINGS]))
    done = run("report", model, bare, "-o", tmp_path / "page.html")
    assert "no labels" in done.stderr
    assert "shows no accuracy" in done.stderr


def test_columns_of_numbers_are_remembered_in_their_order(tmp_path):
    X = sample("vectors", 30)[0]
    path, model = tmp_path / "rows.csv", tmp_path / "m.similia"
    np.savetxt(path, np.column_stack([X, np.arange(30) % 2]), delimiter=",", header="a,b,c,d,e,f,target", comments="")
    line = ("fit", path, "--label", "target", "-o", model, "--budget", "1s", "--cv", "3", "--test", "0")
    assert run(*line).exit_code == 0
    turned = tmp_path / "turned.csv"
    np.savetxt(turned, np.column_stack([np.arange(30), X[:, ::-1]]), delimiter=",", header="n,f,e,d,c,b,a", comments="")
    assert run("predict", model, turned).stdout == run("predict", model, path).stdout


@pytest.mark.parametrize(
    "model",
    [
        SimpleNamespace(table_columns_={"values": ["x", "y"], "series": False, "label": "target"}),
        SimpleNamespace(feature_names_in_=np.array(["x", "y"], dtype=object)),
    ],
)
def test_columns_of_numbers_are_read_by_name_or_refused(tmp_path, model):
    path = tmp_path / "new.csv"
    path.write_text("y,x,target\n1,2,0\n")
    read = read_objects(str(path), **with_columns_of(model, str(path), {}))
    assert read.objects.tolist() == [[2, 1]]
    path.write_text("x,target\n2,0\n")
    with pytest.raises(ValueError, match=r"has no column 'y', on which the model was trained; it has 'target', 'x'; "):
        with_columns_of(model, str(path), {"label": "target"})
    assert with_columns_of(model, str(path), {"values": "x,target"}) == {"values": "x,target"}


def test_that_rows_are_series_names_no_other_columns(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("t0,t1,class\n1,2,0\n3,4,1\n")
    model = SimpleNamespace(table_columns_={"values": ["t0", "t1"], "series": True, "label": "class"})
    for table in ({}, {"series": True}):
        assert with_columns_of(model, str(path), table) == {"values": ["t0", "t1"], "series": True}


def test_encode_reads_the_column_that_its_model_was_fitted_to(table, model, tmp_path):
    codes = [tmp_path / f"{name}.npy" for name in ("own", "remembered", "named", "by the model")]
    done = run("encode", table, "-o", codes[0], "--text", "sequence", "--kernel", "Spectrum(k=3)", "--bits", "64")
    assert done.exit_code == 0
    done = run("encode", table, "-o", codes[1], "--model", tmp_path / "own.encoder.similia")
    assert "the objects are read from column 'sequence', as in the model's training data" in done.stderr
    run("encode", table, "-o", codes[2], "--model", model, "--text", "sequence")
    run("encode", table, "-o", codes[3], "--model", model)
    own, remembered, named, by_model = map(np.load, codes)
    np.testing.assert_array_equal(own, remembered)
    np.testing.assert_array_equal(named, by_model)


def test_an_index_reads_the_column_that_it_was_built_from(table, tmp_path):
    folder, other = tmp_path / "index", tmp_path / "other.csv"
    assert run("index", "build", table, folder, "--text", "sequence", "--bits", "64").exit_code == 0
    other.write_text(table.read_text().replace("a note", "another note"))
    assert run("index", "add", other, folder).exit_code == 0
    assert json.loads(run("index", "info", folder, "--json").stdout)["objects"] == 60
    found = json.loads(run("index", "search", folder, table, "-k", "1", "--json").stdout)["neighbours"]
    assert {row["distance"] for row in found} == {0.0}


def test_a_table_without_the_column_of_the_model_says_so(table, model, tmp_path):
    renamed = tmp_path / "renamed.csv"
    renamed.write_text(table.read_text().replace("sequence", "read", 1))
    with pytest.raises(ValueError, match=r"has no column .sequence., on which the model was trained; it .*read") as e:
        run("predict", model, renamed)
    assert str(e.value).endswith("--text names another")
    assert run("predict", model, renamed, "--text", "read").exit_code == 0


def test_building_over_an_index_says_how_to_build_another(table, tmp_path):
    folder = tmp_path / "index"
    line = ("index", "build", table, folder, "--text", "sequence", "--bits", "64")
    assert run(*line).exit_code == 0
    with pytest.raises(
        ValueError, match=r"an index already, and .*; its options: .* name a new folder or delete this one"
    ):
        run(*line[:-1], "128")


LONG = ("--time", "t", "--id", "who", "--values", "pulse,temp")


def long_table(path, n=12, first=0, columns="who,t,pulse,temp,label"):
    """Write a long table of `n` series, in which the columns have any order; return its path."""
    rng, names = np.random.default_rng(first), ["who", "t", "pulse", "temp", "label"]
    order = [names.index(name) for name in columns.split(",")]
    lines = [columns]
    for i in range(first, first + n):
        for t in range(6):
            row = [f"s{i}", t, f"{(1 + i % 2) * np.sin(t) + rng.normal():.3f}", f"{rng.normal():.3f}", "ab"[i % 2]]
            lines.append(",".join(str(row[j]) for j in order))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def series(tmp_path_factory):
    """Return a long table, and a model and an index made of it."""
    folder = tmp_path_factory.mktemp("long")
    table, distance = long_table(folder / "day1.csv"), ("--distance", "DTW()")
    made = run("fit", table, *LONG, *distance, "--test", "0", "-o", folder / "m.similia")
    assert made.exit_code == 0, made.output
    assert run("index", "build", table, folder / "i", *LONG, *distance, "--bits", "64").exit_code == 0
    return table, folder / "m.similia", folder / "i"


def test_a_model_remembers_the_columns_of_a_long_table(series, tmp_path):
    _, model, _ = series
    day = long_table(tmp_path / "day2.csv", first=12, columns="temp,label,pulse,t,who")
    named, own = run("predict", model, day, *LONG), run("predict", model, day)
    assert named.stdout == own.stdout
    assert [line.split(",")[0] for line in own.stdout.split()] == ["who", *(f"s{i}" for i in range(12, 24))]
    assert "a long table with time 't'; id 'who'; values 'pulse', 'temp', as in the model's training" in own.stderr
    partly = run("predict", model, day, "--values", "pulse,temp")
    assert partly.stdout == own.stdout
    assert "with time 't'; id 'who', as" in partly.stderr
    predict_stream(sm.load(model), day, tmp_path / "python.csv")
    labels = [line.split(",")[1] for line in (tmp_path / "python.csv").read_text().split()]
    assert labels == [line.split(",")[1] for line in own.stdout.split()]
    shown = json.loads(run("explain", model, day, "--object", "s13", "--json").stdout)
    read = read_objects(str(day), time="t", names="who", values="pulse,temp")
    assert shown["title"] == sm.explain(sm.load(model), read.objects[1:2]).title
    done = run("report", model, day, "-o", tmp_path / "page.html", "--folds", "2")
    assert "by cross-validation" in done.stderr


def test_an_index_remembers_the_columns_of_a_long_table(series, tmp_path):
    table, _, built = series
    folder = shutil.copytree(built, tmp_path / "i")
    day = long_table(tmp_path / "day2.csv", first=12, columns="temp,label,pulse,t,who")
    assert run("index", "add", day, folder).exit_code == 0
    told = json.loads(run("index", "info", folder, "--json").stdout)
    assert told["objects"] == 24
    assert (told["time"], told["id"], told["values"]) == ("t", "who", ["pulse", "temp"])
    for one in (table, day):
        found = json.loads(run("index", "search", folder, one, "-k", "1", "--json").stdout)["neighbours"]
        assert {row["distance"] for row in found} == {0.0}
        assert all(row["query"] == row["name"] for row in found)


def test_columns_of_a_long_table_in_another_order_or_number_are_refused(series, tmp_path):
    _, model, folder = series
    day = long_table(tmp_path / "day2.csv", first=12)
    for line in (("predict", model, day), ("index", "add", day, folder), ("index", "search", folder, day)):
        with pytest.raises(ValueError, match=r"day2.csv .*'temp', 'pulse' .*expected the order 'pulse', 'temp', in"):
            run(*line, *LONG[:-1], "temp,pulse")
        with pytest.raises(ValueError, match=r"day2.csv .* of 1 channel, 'pulse' .*, expected 2 .*: 'pulse', 'temp'"):
            run(*line, *LONG[:-1], "pulse")
    text = day.read_text().replace("temp", "heat", 1)
    day.write_text(text)
    with pytest.raises(ValueError, match=r"no column 'temp', on which .*'heat'.*--values names another"):
        run("predict", model, day)
    other = run("predict", model, day, "--values", "pulse,heat")
    assert "read from 'pulse', 'heat' (--values), but the model was trained on 'pulse', 'temp'" in other.stderr
    day.write_text(text.replace("who", "name", 1).replace("heat", "temp", 1))
    with pytest.raises(ValueError, match=r"no column 'who', .*names= or --id names another"):
        run("predict", model, day)
    assert run("predict", model, day, "--id", "name").exit_code == 0


def test_a_model_of_a_long_table_reads_rows_of_series_too(series, tmp_path):
    _, model, _ = series
    assert with_columns_of(sm.load(model), str(long_table(tmp_path / "a.csv")), {"series": True}) == {"series": True}


def test_columns_of_vectors_in_another_order_are_refused(tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("y,x,z\n1,2,0\n")
    model = SimpleNamespace(table_columns_={"values": ["x", "y"], "series": False, "label": "target"})
    with pytest.raises(ValueError, match=r"'y', 'x' .*, expected the order 'x', 'y', in which"):
        with_columns_of(model, str(path), {"values": "y,x"})
    assert with_columns_of(model, str(path), {"values": "x,y"}) == {"values": "x,y"}


def test_an_index_refuses_series_of_other_channels(series, tmp_path):
    _, _, built = series
    folder = shutil.copytree(built, tmp_path / "i")
    path = tmp_path / "new.ts"
    path.write_text("@classLabel false\n@data\n1,2,3\n4,5\n")
    for line in (("index", "add", path, folder), ("index", "search", folder, path)):
        with pytest.raises(ValueError, match=r"new.ts holds series of 1 channel, expected 2 as in the index .*/i$"):
            run(*line)
    day = long_table(tmp_path / "day2.csv")
    table = {"time": "t", "names": "who", "values": "pulse"}
    with pytest.raises(ValueError, match=r"day2.csv holds series of 1 channel, 'pulse', expected 2 as in the index"):
        check_kind(read_objects(str(day), **table), SearchFolder.open(folder))
