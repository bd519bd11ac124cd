"""A Gaussian process on the command line: fit, predict with standard deviations, and suggest what to measure."""

import csv
import json

import numpy as np
import pytest
from typer.testing import CliRunner

import similia as sm
from similia.cli.app import app
from similia.cli.options import parse_kernel
from similia.scale.stream import Predictions, predict_stream

RNG = np.random.default_rng(1)
WORDS = ["".join(word) for word in RNG.choice(list("ACGT"), (60, 12))]
Y = [word.count("G") + 0.01 * i for i, word in enumerate(WORDS)]
POOL = ["".join(word) for word in RNG.choice(list("ACGT"), (20, 12))]
KERNEL = ("--kernel", "Spectrum(k=1)")
PROCESS = ("--learner", "gaussian-process", "--test", "0.2")


def run(*arguments, code=0):
    done = CliRunner().invoke(app, [str(a) for a in arguments])
    assert done.exit_code == code, (done.output, done.exception)
    return done


def rows_of(text):
    return [*csv.DictReader(text.splitlines())]


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.csv"
    kinds = ["many" if word.count("G") > 2 else "few" for word in WORDS]
    lines = [f"{x},{y},{kind}\n" for x, y, kind in zip(WORDS, Y, kinds, strict=True)]
    path.write_text("sequence,yield,kind\n" + "".join(lines))
    return path


@pytest.fixture
def pool(tmp_path):
    path = tmp_path / "pool.csv"
    path.write_text("name,sequence\n" + "".join(f"p{i},{x}\n" for i, x in enumerate(POOL)))
    return path


@pytest.fixture
def model(data, tmp_path):
    path = tmp_path / "m.similia"
    run("fit", data, "--text", "sequence", "--label", "yield", *PROCESS, *KERNEL, "-o", path)
    return path


@pytest.fixture
def process():
    return sm.GaussianProcessRegressor(sm.kernels.Spectrum(k=1), random_state=0).fit(WORDS, Y)


def test_numbers_are_fitted_as_in_python(data, model, process, tmp_path):
    fitted = sm.load(model)
    np.testing.assert_array_equal(fitted.predict(POOL), process.predict(POOL))
    line = ("fit", data, "--text", "sequence", "--label", "yield", *PROCESS, *KERNEL, "-o", tmp_path / "again.similia")
    whole = "Product([Spectrum(k=12)])"  # no two words share 12 letters
    poor = (*line[:-2], "-o", tmp_path / "poor.similia", "--kernel", whole)
    said = run(*line)
    assert "Gaussian process with the kernel Spectrum(k=1)" in said.output
    within = np.mean(np.abs(process.targets_ - process.loo_mean_) <= 1.96 * process.loo_std_)
    assert f"{within:.0%} lie within 1.96 standard deviations".replace("% lie", " % lie") in said.output
    told = json.loads(run(*line, "--json").stdout)
    assert told["held_out"]["r_squared"] > 0.9
    assert (told["noise"], told["within_95"]) == (process.noise_, within)
    residual = np.mean((process.targets_ - process.loo_mean_) ** 2)
    assert told["r_squared_from_others"] == pytest.approx(1 - residual / np.var(Y))
    assert "explains little" not in said.output
    assert "this kernel explains little of the numbers" in run(*poor).output


def test_classes_get_a_classifier(data, tmp_path):
    path = tmp_path / "c.similia"
    run("fit", data, "--text", "sequence", "--label", "kind", *PROCESS, "--landmarks", 9, "-o", path)
    fitted = sm.load(path)
    assert isinstance(fitted, sm.GaussianProcessClassifier)
    assert fitted.n_landmarks == 9
    error = run("predict", path, data, "--std", code=1).exception
    assert "(GaussianProcessClassifier) predicts no standard deviations" in str(error)
    assert "suggests nothing" in str(run("suggest", path, data, code=1).exception)
    (empty := tmp_path / "empty.csv").write_text("")
    assert str(run("predict", path, empty, code=1).exception) == f"{empty} is empty"


def test_without_a_kernel_the_evidence_chooses_one_and_all_are_listed(data, tmp_path):
    line = ("fit", data, "--text", "sequence", "--label", "yield", *PROCESS, "-o", tmp_path / "m.similia")
    said, told = run(*line).output, json.loads(run(*line, "--json").stdout)
    kernels = sm.kernels.suggest_kernels(WORDS)
    alone = [sm.GaussianProcessRegressor(kernel).fit(WORDS, Y).log_marginal_likelihood_ for kernel in kernels]
    assert f"the one of {len(kernels)} kernels with the largest evidence" in said
    assert [row["log_evidence"] for row in told["kernels"]] == sorted(alone, reverse=True)
    for row in told["kernels"]:
        assert f"{row['log_evidence']:.1f}  {row['kernel']}" in said
        assert repr(parse_kernel(row["kernel"])) in map(repr, kernels)
    best = told["kernels"][0]["kernel"]
    run(*line[:-1], tmp_path / "again.similia", "--kernel", best)
    again = sm.load(tmp_path / "again.similia").predict(POOL)
    np.testing.assert_array_equal(sm.load(tmp_path / "m.similia").predict(POOL), again)
    conformal = json.loads(run(*line, "--json", "--conformal").stdout)
    assert len(conformal["kernels"]) == len(kernels)
    cross = json.loads(run(*line, "--json", "--conformal", "--cross").stdout)
    assert cross["kernels"] == told["kernels"]


def test_a_label_that_is_no_number_among_many_numbers_is_named(data, tmp_path):
    lines = data.read_text().splitlines()
    column = lines[0].split(",").index("yield")
    cells = lines[3].split(",")
    lines[3] = ",".join([*cells[:column], ">3.5", *cells[column + 1 :]])
    (wrong := tmp_path / "wrong.csv").write_text("\n".join(lines) + "\n")
    line = ("fit", wrong, "--text", "sequence", "--label", "yield", *PROCESS, *KERNEL, "-o", tmp_path / "w.similia")
    error = str(run(*line, code=1).exception)
    assert f"{len(lines) - 2} of the {len(lines) - 1} labels of {wrong} are numbers, but '>3.5' is not" in error


@pytest.mark.parametrize(("kind", "kernel"), [("series", sm.kernels.GlobalAlignment), ("sets", sm.kernels.Normalized)])
def test_objects_without_a_usual_kernel_get_one(kind, kernel, tmp_path, monkeypatch):
    X = RNG.normal(size=(30, 8, 2)).cumsum(axis=1)
    objects = sm.objects.as_series(list(X[:, :, 0])) if kind == "series" else sm.objects.as_sets(list(X))
    read = sm.sources.Objects("made", kind, objects, X[:, :, 0].mean(axis=1))
    monkeypatch.setattr("similia.cli.inputs.read_labelled", lambda *given, **options: read)
    run("fit", "made", "--learner", "gaussian-process", "--task", "regression", "-o", tmp_path / "m.similia")
    fitted = sm.load(tmp_path / "m.similia")
    assert isinstance(fitted.kernel_, kernel)
    assert fitted.score(objects, X[:, :, 0].mean(axis=1)) > 0.5


@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_standard_deviations_stand_beside_predictions_in_every_form(chunk, model, process, pool, tmp_path):
    mean, std = process.predict(POOL, return_std=True)
    shown = rows_of(run("predict", model, pool, "--std", "--id", "name", "--chunk", chunk).stdout)
    assert list(shown[0]) == ["name", "label", "std"]
    assert [row["name"] for row in shown] == [f"p{i}" for i in range(20)]
    np.testing.assert_array_equal([float(row["label"]) for row in shown], mean)
    assert [row["std"] for row in shown] == [f"{value:.6g}" for value in std]
    lines = run("predict", model, pool, "--std", "--chunk", chunk, "--json").stdout.splitlines()
    assert json.loads(lines[3]) == {"row": 3, "label": mean[3], "std": float(shown[3]["std"])}
    predict_stream(sm.load(model), POOL, tmp_path / "s.tsv", std=True, chunk=chunk)
    assert (tmp_path / "s.tsv").read_text().splitlines()[4] == f"3\t{mean[3]}\t{shown[3]['std']}"


def test_intervals_need_no_calibration(model, process, pool):
    found = rows_of(run("predict", model, pool, "--coverage", 0.9).stdout)
    ends = [[float(row["low"]), float(row["high"])] for row in found]
    np.testing.assert_allclose(ends, process.predict_interval(POOL, 0.9), rtol=1e-8)


def test_a_pipeline_that_ends_in_a_process_has_standard_deviations(process, tmp_path):
    features = sm.Nystroem(sm.kernels.Spectrum(k=1), 4, random_state=0)
    model = sm.Pipeline([("f", features), ("gp", sm.GaussianProcessRegressor(sm.kernels.RBF()))]).fit(WORDS, Y)
    predict_stream(model, POOL, tmp_path / "s.csv", std=True)
    std = model[-1].predict(model[:-1].transform(POOL), return_std=True)[1]
    assert [row["std"] for row in rows_of((tmp_path / "s.csv").read_text())] == [f"{value:.6g}" for value in std]
    for others in ({"scores": True}, {"coverage": 0.9}):
        with pytest.raises(ValueError, match="scores, coverage and std exclude each other"):
            Predictions(process, std=True, **others)
    assert Predictions(process, std=True).belongs != Predictions(process).belongs
    with pytest.raises(ValueError, match="the results have a column 'std', too"):
        Predictions(process, std=True, names="std")


@pytest.mark.parametrize(
    ("options", "how"),
    [
        ((), {}),
        (("--minimize",), {"maximize": False}),
        (("--method", "thompson", "--seed", "4"), {"method": "thompson", "random_state": 4}),
    ],
)
def test_suggestions_are_those_of_the_library(options, how, model, process, pool, tmp_path):
    output = tmp_path / "next.csv"
    said = run("suggest", model, pool, "--id", "name", "-n", 4, *options, "-o", output)
    assert "4 of 20 strings to measure" in said.output
    chosen = process.suggest(POOL, 4, **how)
    mean, std = process.predict([POOL[i] for i in chosen], return_std=True)
    expected = [
        {"rank": str(rank), "row": str(i), "name": f"p{i}", "object": POOL[i], "predicted": str(m), "std": f"{s:.6g}"}
        for rank, (i, m, s) in enumerate(zip(chosen.tolist(), mean.tolist(), std.tolist(), strict=True), start=1)
    ]
    assert rows_of(output.read_text()) == expected
    assert rows_of(run("suggest", model, pool, "--id", "name", "-n", 4, *options).stdout) == expected
    told = json.loads(run("suggest", model, pool, "-n", 4, *options, "--json").stdout)
    assert [row["row"] for row in told["suggestions"]] == chosen.tolist()
    assert told["pool"] == 20


def test_what_was_measured_is_not_suggested(model, process, tmp_path):
    mixed = [x for pair in zip(WORDS, POOL, strict=False) for x in pair]
    (path := tmp_path / "mixed.csv").write_text("sequence\n" + "\n".join(mixed) + "\n")
    said = run("suggest", model, path, "-n", 3, "--json")
    assert "20 of the 40 strings are measured: left out" in said.stderr
    found = json.loads(said.stdout)
    assert [row["object"] for row in found["suggestions"]] == [POOL[i] for i in process.suggest(POOL, 3)]
    assert [row["object"] for row in found["suggestions"]] == [mixed[row["row"]] for row in found["suggestions"]]
    (path := tmp_path / "old.csv").write_text("sequence\n" + "\n".join(WORDS) + "\n")
    error = str(run("suggest", model, path, "-n", 1, code=1).exception)
    assert error == f"all 60 strings of {path} are measured; give others"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            ("suggest", "m.similia", "pool.csv", "-n", "21"),
            "-n is 21, but pool.csv holds 20 strings to measure; ask",
        ),
        (("suggest", "m.similia", "pool.csv", "--method", "ucb"), "--method must be 'improvement' or 'thompson'"),
        (("suggest", "m.similia", "pool.csv", "-o", "pool.csv"), "pool.csv is an input of this command"),
        (("fit", "data.csv", "--learner", "svm"), "--learner must be gaussian-process, got 'svm'"),
        (("fit", "data.csv", "--learner", "gausian-process"), "'gausian-process' (did you mean gaussian-process?)"),
        (
            ("fit", "data.csv", *PROCESS, "--distance", "Levenshtein()"),
            "learns from a kernel, without bits; drop --dis",
        ),
        (("fit", "data.csv", *PROCESS, "--bits", "64"), "learns from a kernel, without bits; drop --bits"),
        (("fit", "data.csv", *PROCESS, "--budget", "9s"), "--budget is for the choice among pipelines; drop it"),
    ],
)
def test_refusals(line, words, data, model, pool, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    more = ("--text", "sequence", "--label", "yield", "-o", "new.similia") if line[0] == "fit" else ()
    assert words in str(run(*line, *more, code=1).exception)
    assert sorted(tmp_path.iterdir()) == before
