"""``similia cluster``, and what the other commands do with a model of clusters."""

import csv
import json

import numpy as np
import pytest
from typer.testing import CliRunner

import similia as sm
from similia.cli.app import app

RNG = np.random.default_rng(0)
WORDS = ["".join(RNG.choice(list(letters), 12)) for letters in ("AC", "GT") * 15]
KERNEL = ("--kernel", "Spectrum(k=2, normalize=True)")
DENSE = ("--method", "density")


def run(*arguments, code=0):
    done = CliRunner().invoke(app, [str(a) for a in arguments])
    assert done.exit_code == code, (done.output, done.exception)
    return done


def refused(*arguments):
    return str(run(*arguments, code=1).exception)


def rows_of(path):
    with path.open(newline="") as file:
        return [*csv.DictReader(file)]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "seq.csv"
    path.write_text("name,read,family\n" + "".join(f"n{i},{w},{'ab'[i % 2]}\n" for i, w in enumerate(WORDS)))
    return path


@pytest.fixture(params=["k-means", "density"])
def saved(request, table, tmp_path):
    how = (*KERNEL, "--method", request.param, *(("--clusters", 2) if request.param == "k-means" else ()))
    run("cluster", table, "--text", "read", *how, "-o", tmp_path / "c.csv", "--save", tmp_path / "c.similia")
    return tmp_path / "c.similia"


def test_a_saved_model_assigns_objects_of_the_column_that_it_remembers(saved, table, tmp_path):
    run("predict", saved, table, "-o", tmp_path / "p.csv")
    predicted = rows_of(tmp_path / "p.csv")
    assert list(predicted[0]) == ["row", "cluster"]
    assert [row["cluster"] for row in predicted] == [row["cluster"] for row in rows_of(tmp_path / "c.csv")]
    line = run("predict", saved, table, "--json").stdout.splitlines()[0]
    assert json.loads(line) == {"row": 0, "cluster": int(predicted[0]["cluster"])}


def test_the_number_of_clusters_has_a_short_option(table, tmp_path):
    for option in ("-k", "--clusters"):
        run("cluster", table, "--text", "read", *KERNEL, option, 3, "-o", tmp_path / f"{option.strip('-')}.csv")
    short, long = (rows_of(tmp_path / f"{name}.csv") for name in ("k", "clusters"))
    assert {row["cluster"] for row in short} == {"0", "1", "2"}
    assert short == long


def test_the_report_of_clusters_is_another_page(saved, table, tmp_path):
    said = run("report", saved, table, "--label", "family", "-o", tmp_path / "r.html").stderr
    assert "predicts clusters, which are no classes" in said
    assert "similia cluster --report" in said
    assert "cross-validation" not in said


def test_data_of_another_kind_are_refused_by_the_name_of_the_file(saved, tmp_path):
    np.save(tmp_path / "x.npy", np.eye(4))
    assert "x.npy holds vectors, which Spectrum(k=2, normalize=True) does not" in refused(
        "predict", saved, tmp_path / "x.npy"
    )


def test_clusters_without_decisions_are_explained_by_another_command(saved, table):
    if isinstance(sm.load(saved), sm.KernelKMeans):
        assert run("explain", saved, table, "--object", 0).stdout.startswith("predicted: ")
        return
    said = refused("explain", saved, table, "--object", 0)
    assert "HDBSCAN has clusters" in said
    assert "explain_classes, or similia cluster --report" in said


def test_columns_of_numbers_keep_their_names(tmp_path):
    rows = [(1 + i % 2 * 5, i % 3, 4) for i in range(20)]
    (tmp_path / "n.csv").write_text("height,width,depth\n" + "".join(f"{h},{w},{d}\n" for h, w, d in rows))
    how = ("--kernel", "Cosine()", "--clusters", 2, "--save", tmp_path / "c.similia", "--report", tmp_path / "r.html")
    run("cluster", tmp_path / "n.csv", *how, "-o", tmp_path / "c.csv")
    assert "height (" in (tmp_path / "r.html").read_text()
    said = run("explain", tmp_path / "c.similia", tmp_path / "n.csv", "--object", 0).stdout
    assert "height" in said
    assert "column 0" not in said


def test_min_samples_is_that_of_the_library(table, tmp_path):
    how = (*KERNEL, *DENSE, "--min-samples", 2, "-o", tmp_path / "c.csv", "--save", tmp_path / "c.similia")
    run("cluster", table, "--text", "read", *how)
    assert sm.load(tmp_path / "c.similia").min_samples == 2
    assert "--min-samples is for --method density" in refused(
        "cluster", table, "--min-samples", 2, "-o", tmp_path / "d.csv"
    )


@pytest.mark.parametrize(
    ("options", "least", "option"),
    [
        (("--clusters", 4), 4, "--clusters"),
        (DENSE, 5, "--min-size"),
        ((*DENSE, "--min-size", 4), 4, "--min-size"),
        ((*DENSE, "--min-size", 2, "--min-samples", 6), 6, "--min-samples"),
    ],
)
def test_too_few_objects_name_the_option(options, least, option, tmp_path):
    (tmp_path / "few.csv").write_text("text\nACGT\nCCGT\nGGTA\n")
    said = refused("cluster", tmp_path / "few.csv", *KERNEL, *options, "-o", tmp_path / "c.csv")
    assert f"few.csv holds 3 objects, expected at least {least} ({option})" in said


@pytest.mark.parametrize("command", ["cluster", "map", "outliers", "index"])
def test_a_bad_series_of_an_array_is_named(command, tmp_path):
    X = RNG.normal(size=(9, 12))
    X[3, 4] = np.nan
    np.save(tmp_path / "nan.npy", X)
    output = {"map": ("-o", tmp_path / "m.html"), "index": (tmp_path / "index",)}.get(
        command, ("-o", tmp_path / "o.csv")
    )
    build = ("build",) if command == "index" else ()
    said = refused(command, *build, tmp_path / "nan.npy", *output, "--series")
    assert "nan.npy, row 3 (counted from 0), time point 4, channel 0: it is nan" in said


@pytest.mark.parametrize("name", ["other.csv", "other.fasta.gz", "other.npy"])
def test_a_model_does_not_replace_data(name, table, tmp_path):
    data = tmp_path / name
    data.write_text("data")
    how = ("--text", "read", *KERNEL)
    commands = [
        ("fit", table, *how, "--label", "family", "-o", data),
        ("cluster", table, *how, "-o", tmp_path / "c.csv", "--save", data),
        ("map", table, *how, "-o", tmp_path / "m.html", "--save", data),
        ("outliers", table, *how, "-o", tmp_path / "o.csv", "--save", data),
    ]
    for command in commands:
        assert f"{data} is a file of data, which the model would replace" in refused(*command)
    assert data.read_text() == "data"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, table.name])


def test_a_model_replaces_a_model(table, tmp_path):
    sm.save(sm.kernels.Spectrum(), tmp_path / "m.csv")
    how = (table, "--text", "read", *KERNEL, "--clusters", 2, "-o", tmp_path / "c.csv")
    run("cluster", *how, "--save", tmp_path / "m.csv")
    assert isinstance(sm.load(tmp_path / "m.csv"), sm.KernelKMeans)
