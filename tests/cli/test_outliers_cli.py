"""``similia outliers`` and ``neighbours``: the library's answers in files, for each way to name what is ordinary."""

import csv
import json

import numpy as np
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

import similia as sm
from similia.cli.app import app

RNG = np.random.default_rng(0)
WORDS = ["".join(word) for word in RNG.choice(list("AC"), (40, 12))]
NEW = [*("".join(word) for word in RNG.choice(list("AC"), (9, 12))), "GTGTGTGTGTGT"]
LEVENSHTEIN = ("--distance", "Levenshtein()")
USUAL = sm.kernels.GappyKmers(k=4, gaps=1, normalize=True)


def run(*arguments, code=0, **how):
    done = CliRunner().invoke(app, [str(a) for a in arguments], **how)
    assert done.exit_code == code, (done.output, done.exception)
    return done


def table(path, words):
    path.write_text("read,sequence\n" + "".join(f"{path.stem}{i},{word}\n" for i, word in enumerate(words)))
    return path


@pytest.fixture
def ordinary(tmp_path):
    return table(tmp_path / "a.csv", WORDS)


@pytest.fixture
def new(tmp_path):
    return table(tmp_path / "b.csv", NEW)


def columns(path):
    with path.open(newline="") as file:
        rows = [*csv.DictReader(file)]
    return {name: [row[name] for row in rows] for name in rows[0]}


def numbers(path, name):
    return np.array(columns(path)[name], float)


# ---- outliers
@pytest.mark.parametrize("normalize", [False, True])
def test_a_kernel_by_which_large_objects_are_strange_is_noted(normalize, ordinary, tmp_path):
    kernel = f"Spectrum(k=2, normalize={normalize})"
    said = run("outliers", ordinary, "--text", "sequence", "--kernel", kernel, "-o", tmp_path / "o.csv")
    assert ("Spectrum is not normalised, so large objects count as strange" in said.output) is not normalize


def test_fewer_training_objects_than_neighbours_are_noted_by_the_option(new, tmp_path):
    few = table(tmp_path / "few.csv", WORDS[:3])
    how = ("--train", few, "--text", "sequence", *LEVENSHTEIN, "-o", tmp_path / "o.csv")
    said = run("outliers", new, *how).output
    assert "-k 10 is more than the 2 other objects, so all are used" in said
    assert "n_neighbors" not in said


def test_objects_that_share_nothing_with_others_are_noted(tmp_path):
    strangers = ["".join(three) for three in ("GGG", "TTT", "KKK", "MMM")]
    data = table(tmp_path / "d.csv", [*WORDS, *strangers])
    kernel = ("--kernel", "Spectrum(k=3, normalize=True)")
    said = run("outliers", data, "--text", "sequence", *kernel, "-k", 2, "-o", tmp_path / "o.csv")
    assert "4 objects share the largest strangeness, so they cannot be told apart" in said.output


def test_a_threshold_that_no_distance_reaches_is_noted(tmp_path):
    near = [letters * 5 for letters in ("AB", "AC", "AD", "BC", "BD", "CD")]  # pairs have at most one letter in common
    data, kernel = table(tmp_path / "d.csv", [*near, "ZZZZ"]), ("--kernel", "Spectrum(k=1, normalize=True)")
    said = run("outliers", data, "--text", "sequence", *kernel, "-k", 5, "-o", tmp_path / "o.csv").output
    assert "0 of 7 objects are outliers" in said
    assert "no object is above the threshold" in said
    share = ("--contamination", 0.15)
    said = run("outliers", data, "--text", "sequence", *kernel, "-k", 2, *share, "-o", tmp_path / "p.csv").output
    assert "no object is above the threshold" not in said


@pytest.mark.parametrize(
    ("words", "noted"), [(["abc", "def", "ghi", "jkl"] * 3, True), (["abcdef", "abcde"] * 5, False)]
)
def test_short_strings_that_have_nothing_in_common_are_noted(words, noted, tmp_path):
    data, output = table(tmp_path / "d.csv", words), tmp_path / "o.csv"
    said = run("outliers", data, "--text", "sequence", "-k", 2, "-o", output).output
    assert ("of the pairs of strings have nothing in common under this kernel" in said) is noted
    said = run("outliers", data, "--text", "sequence", *LEVENSHTEIN, "-k", 2, "-o", output).output
    assert "nothing in common under this kernel" not in said


@pytest.mark.parametrize("command", ["cluster", "neighbours", "outliers"])
def test_rows_of_numbers_are_series_if_the_distance_compares_series(command, tmp_path):
    X = RNG.normal(size=(30, 12)).cumsum(axis=1)
    np.savez(data := tmp_path / "x.npz", X=X)
    output = tmp_path / ("o.npz" if command == "neighbours" else "o.csv")
    said = run(
        command, data, "--distance", "DTW(window=2)", "-k" if command != "cluster" else "--clusters", 3, "-o", output
    )
    assert "are read as series, because DTW(window=2) compares series" in said.output


def test_the_outliers_of_a_collection_are_those_of_fit_predict(tmp_path):
    data, output = table(tmp_path / "d.csv", [*WORDS, NEW[-1]]), tmp_path / "o.csv"
    said = run("outliers", data, "--id", "read", *LEVENSHTEIN, "-k", 3, "--contamination", 0.1, "-o", output)
    detector = sm.OutlierDetector(sm.distances.Levenshtein(), n_neighbors=3, contamination=0.1)
    signs = detector.fit_predict([*WORDS, NEW[-1]])
    found = columns(output)
    assert list(found) == ["row", "read", "rank", "strangeness", "outlier"]
    assert found["outlier"] == [str(sign < 0) for sign in signs.tolist()]
    np.testing.assert_array_equal(numbers(output, "strangeness"), -detector.train_scores_)
    assert found["read"][40] == "d40"
    assert found["rank"][40] == "1"
    by_rank = numbers(output, "strangeness")[np.argsort(numbers(output, "rank"))]
    assert sorted(by_rank.tolist(), reverse=True) == by_rank.tolist()
    assert f"{(signs < 0).sum()} of 41 objects are outliers" in said.output
    assert "the strangest: d40 (" in said.output


@pytest.mark.parametrize("method", ["neighbors", "density", "reconstruction"])
def test_new_objects_are_compared_with_ordinary_ones_only(method, ordinary, new, tmp_path):
    output = tmp_path / "o.parquet"
    run("outliers", new, "--text", "sequence", "--train", ordinary, "--method", method, "-o", output)
    detector = sm.OutlierDetector(USUAL, method, novelty=True, random_state=0).fit(WORDS)
    found = sm_columns(output)
    np.testing.assert_array_equal(found["strangeness"], -detector.score_samples(NEW))
    assert found["outlier"] == (detector.predict(NEW) < 0).tolist()
    assert ("p_value" in found) == (method != "density")
    if method != "density":
        np.testing.assert_array_equal(found["p_value"], detector.p_values(NEW))
        assert found["p_value"][-1] == min(found["p_value"])
    assert found["rank"][-1] == 1


def sm_columns(path):
    from pyarrow import parquet

    return parquet.read_table(path).to_pydict()


def test_a_saved_detector_gives_what_the_run_gave_that_wrote_it(ordinary, new, tmp_path):
    first, second, saved = tmp_path / "1.csv", tmp_path / "2.csv", tmp_path / "d.similia"
    spelled = ("--text", "sequence", "--id", "read")
    run("outliers", new, *spelled, "--train", ordinary, *LEVENSHTEIN, "-k", 2, "--save", saved, "-o", first)
    for named in (("--id", "read"), ()):  # the detector remembers the column of names
        run("outliers", new, *named, "--model", saved, "-o", second)
        assert second.read_text() == first.read_text()
    run("outliers", ordinary, *spelled, *LEVENSHTEIN, "-k", 2, "--save", saved, "-o", tmp_path / "3.csv")
    run("outliers", new, "--id", "read", "--model", saved, "-o", second)
    assert second.read_text() == first.read_text()


def test_json_pipes_and_skipped_rows(ordinary, new, tmp_path):
    told = json.loads(
        run("outliers", new, "--text", "sequence", "--train", ordinary, "-o", tmp_path / "o.csv", "--json").stdout
    )
    assert (told["objects"], told["strangest"][0]["row"], told["compared_by"]) == (10, 9, str(USUAL))
    assert told["threshold"] < told["strangest"][0]["strangeness"]
    piped = run("outliers", new, "--text", "sequence", "--train", "-", "-o", "-", input=ordinary.read_bytes())
    assert piped.stdout_bytes == (tmp_path / "o.csv").read_bytes()
    for path, row in ((ordinary, "x,\n"), (new, "y,\nz,\n")):
        path.write_text(path.read_text() + row)
    run("outliers", new, "--text", "sequence", "--train", ordinary, "--on-error", "skip", "-o", tmp_path / "o.csv")
    lists = [tmp_path / "o.csv.skipped.csv", tmp_path / "train.o.csv.skipped.csv"]
    assert [len(columns(path)["line"]) for path in lists] == [2, 1]


def test_series_are_compared_by_dtw(tmp_path):
    X = RNG.normal(size=(20, 15)).cumsum(axis=1)
    X[7] += 40
    np.savez(tmp_path / "x.npz", X=X)
    said = run("outliers", tmp_path / "x.npz", "--series", "-k", 3, "-o", tmp_path / "o.csv")
    assert "series are compared by DTW()" in said.output
    assert columns(tmp_path / "o.csv")["rank"][7] == "1"
    said = run("outliers", tmp_path / "x.npz", "--distance", "DTW()", "-k", 3, "-o", tmp_path / "p.csv")
    assert (tmp_path / "p.csv").read_text() == (tmp_path / "o.csv").read_text()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("-o", "o.txt"), "give o.txt the ending .csv or .parquet"),
        (("-o", "a.parquet", "--save", "a.csv"), "a.csv is an input of this command"),
        (("-o", "o.csv", "--method", "lof"), "--method must be 'neighbors', 'density' or 'reconstruction'"),
        (
            ("-o", "o.csv", "--method", "reconstruction", *LEVENSHTEIN),
            "needs a kernel, and Levenshtein() is",
        ),
        (("-o", "o.csv", "--method", "reconstruction", "-k", "3"), "-k does not apply to --method reconstruction"),
        (("-o", "o.csv", "--landmarks", "3"), "--landmarks does not apply to --method neighbors"),
        (("-o", "o.csv", "--contamination", "0"), "--contamination must be 'auto' or a number in (0, 0.5]"),
        (("-o", "o.csv", "--kernel", "Spectrum()", *LEVENSHTEIN), "exclude each other"),
        (("-o", "o.csv", "--kernel", "WeisfeilerLehman()"), "does not compare"),
        (("-o", "o.csv", "--train", "none.csv"), "none.csv is neither a file"),
        (("-o", "o.csv", "--model", "m", "-k", "3"), "-k is for fitting a detector, and m is fitted"),
        (("-o", "o.csv", "--model", "m", "--train", "a.csv"), "--train is for fitting a detector"),
        (("-o", "o.csv", "--model", "m"), "m holds no detector for new objects, but Nystroem"),
    ],
)
def test_wrong_options_are_said_and_nothing_is_written(ordinary, tmp_path, monkeypatch, options, words):
    monkeypatch.chdir(tmp_path)
    sm.save(sm.Nystroem(sm.kernels.Spectrum(), 2).fit(WORDS), "m")
    assert words in str(run("outliers", "a.csv", "--text", "sequence", *options, code=1).exception)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "m"]


def test_objects_that_a_saved_detector_does_not_compare(ordinary, tmp_path):
    saved = tmp_path / "d.similia"
    run("outliers", ordinary, "--text", "sequence", "--save", saved, "-o", tmp_path / "o.csv")
    np.save(tmp_path / "x.npy", np.eye(4))
    error = run("outliers", tmp_path / "x.npy", "--model", saved, "-o", tmp_path / "p.csv", code=1).exception
    assert "holds vectors, which GappyKmers" in str(error)


# ---- neighbours
def test_the_graph_is_that_of_the_library(ordinary, tmp_path):
    output = tmp_path / "g.npz"
    said = run("neighbours", ordinary, "--text", "sequence", *LEVENSHTEIN, "-k", 4, "-o", output)
    assert "4 neighbours of each of 40 objects; recall 1.000" in said.output
    found, expected = sp.load_npz(output), sm.search.knn_graph(WORDS, sm.distances.Levenshtein(), 4, symmetric=True)
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(found, part), getattr(expected, part))
    piped = run("neighbours", ordinary, "--text", "sequence", *LEVENSHTEIN, "-k", 4, "-o", "-")
    (tmp_path / "piped.npz").write_bytes(piped.stdout_bytes)
    assert (sp.load_npz(tmp_path / "piped.npz") != expected).nnz == 0
    run("neighbours", ordinary, "--text", "sequence", *LEVENSHTEIN, "-k", 4, "--no-symmetric", "-o", output)
    one_way = sm.search.knn_graph(WORDS, sm.distances.Levenshtein(), 4, symmetric=False)
    assert (sp.load_npz(output) != one_way).nnz == 0
    assert np.diff(one_way.indptr).tolist() == [4] * 40


def test_the_recall_of_candidates_is_measured_and_both_directions_are_stored(ordinary, tmp_path):
    output = tmp_path / "g.npz"
    how = ("--method", "bits", "--seed", 3, "-k", 5)
    told = json.loads(run("neighbours", ordinary, "--text", "sequence", *how, "-o", output, "--json").stdout)
    expected, recall = sm.search.knn_graph(
        WORDS, USUAL, 5, method="bits", symmetric=True, random_state=3, return_recall=True
    )
    found = sp.load_npz(output)
    assert (found != expected).nnz == 0
    assert (found != found.T).nnz == 0
    assert (told["recall"], told["distances"], told["compared_by"]) == (round(recall, 4), expected.nnz, str(USUAL))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("-o", "g.npy"), "graphs are written as .npz; give g.npy this ending"),
        (("-o", "g.npz", "-k", "40"), "-k must be below 40, the number of objects, got 40"),
        (("-o", "g.npz", "--method", "hnsw"), "--method must be 'auto', 'exact', 'kmers' or 'bits'"),
    ],
)
def test_graphs_that_cannot_be(ordinary, tmp_path, monkeypatch, options, words):
    monkeypatch.chdir(tmp_path)
    assert words in str(run("neighbours", "a.csv", "--text", "sequence", *options, code=1).exception)
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]
