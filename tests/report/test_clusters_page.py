"""The page of clusters: what it holds and says, against counts by hand; and the command that writes it."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from typer.testing import CliRunner

import similia as sm
from samples.report import HOSTILE, Opened, Page, graphs, series
from similia.cli.app import app
from similia.explanations import explain, explain_classes
from similia.report import write_clusters

RNG = np.random.default_rng(0)
WORDS = ["".join(RNG.choice(list(letters), 12)) for letters in ("AC", "GT", "AC", "GT") * 10]
KINDS = ["ac", "gt", "ac", "gt"] * 10
KERNEL, COSINE = sm.kernels.Spectrum(k=2, normalize=True), sm.kernels.Cosine()


@pytest.fixture(scope="module")
def fitted() -> Any:
    return sm.KernelKMeans(KERNEL, n_clusters=2, random_state=0).fit(WORDS)


@pytest.fixture(scope="module")
def written(fitted: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_clusters(fitted, WORDS, KINDS, tmp_path_factory.mktemp("clusters") / "c.html", title="Two alphabets")


def test_the_page_says_what_was_found(fitted: Any, written: Path) -> None:
    page = Page(written)
    for c in range(2):
        assert f"cluster {c}" in page.text
        assert WORDS[fitted.medoid_indices_[c]] in page.text
    assert "20" in page.text
    assert "Two alphabets" in page.text
    assert adjusted_rand_score(KINDS, fitted.labels_) == 1.0
    assert "1.00" in page.text
    assert "as requested" in page.text
    assert "How many clusters" not in page.text


def test_stretches_of_time_are_drawn_over_the_medoid(tmp_path: Path) -> None:
    times, noise = np.arange(40), np.random.default_rng(0).normal(size=(20, 40))
    X = 0.05 * noise + np.where(np.arange(20)[:, None] % 2, 2 * np.exp(-(((times - 15) / 3) ** 2)), 0.0)
    model = sm.KernelKMeans(sm.distances.DTW(), n_clusters=2, random_state=0).fit(X)
    path = write_clusters(model, X, path=tmp_path / "c.html")
    page, shares = Page(path), explain_classes(model, X)
    bump = int(model.labels_[1])
    assert shares[bump][0].example == model.medoid_indices_[bump]
    assert f"{shares[bump][0].name} (100.0 %)" in page.text
    assert f"Cluster {bump}: the medoid and the stretches" in page.text
    text = path.read_text()
    charts = re.findall(r'<svg class="chart".*?</svg>', text, re.S)
    assert len(charts) == sum(bool(parts) for parts in shares.values())
    (drawn,) = (chart for chart in charts if f"<title>Cluster {bump}" in chart)
    assert drawn.count("opacity: 0.5") == 1  # the largest stretch


def test_the_page_opens_without_complaint(browser: Any, written: Path) -> None:
    opened = Opened(browser, written)
    assert opened.said == []
    opened.page.close()


def test_stability_is_drawn(tmp_path: Path) -> None:
    model = sm.KernelKMeans(KERNEL, n_clusters=[2, 3, 4], random_state=0).fit(WORDS)
    page = Page(write_clusters(model, WORDS, path=tmp_path / "c.html"))
    assert "chosen by stability" in page.text
    assert f"standard error of the best was taken: {model.n_clusters_}." in page.text
    assert "most frequent class" not in page.text


def test_clusters_of_copies_are_not_taken_for_stable_groups(tmp_path: Path) -> None:
    words = ["ACACACAC", "ACACACCA", "GTGTGTGT", "GTGTGTTG"] * 5
    model = sm.KernelKMeans(sm.kernels.Spectrum(k=3), n_clusters="stability", random_state=0).fit(words)
    assert model.n_clusters_ == 2
    page = Page(write_clusters(model, words, path=tmp_path / "c.html"))
    assert "the best was taken: 2; 4 clusters would each hold copies of one object." in page.text


def test_a_sample_is_drawn_with_the_medoids_in_it(fitted: Any, tmp_path: Path) -> None:
    names = [f"n{i}" for i in range(40)]
    page = Page(write_clusters(fitted, WORDS, path=tmp_path / "c.html", names=names, max_objects=4))
    shown = page.payload["names"]
    assert {names[i] for i in fitted.medoid_indices_} < set(shown)
    assert 4 <= len(shown) <= 4 + 2 * 5
    assert [WORDS[names.index(name)] for name in shown] == [one["t"] for one in page.payload["objects"]]


@pytest.mark.parametrize(
    ("similarity", "objects"),
    [
        (sm.kernels.WeisfeilerLehman(n_iter=1), graphs()[0]),
        (sm.distances.DTW(), series()[0]),
        (sm.kernels.RBF(1.0), np.random.default_rng(0).normal(size=(20, 3))),
        (sm.kernels.Spectrum(k=1), [HOSTILE, "ab", "<b>", "ba&amp;", "\x00"]),
    ],
    ids=["graphs", "series", "vectors", "hostile"],
)
@pytest.mark.parametrize("k", [1, 3])
def test_other_objects(tmp_path: Path, similarity: Any, objects: Any, k: int) -> None:
    model = sm.KernelKMeans(similarity, n_clusters=k, random_state=0).fit(objects)
    page = Page(write_clusters(model, objects, path=tmp_path / "c.html"))
    assert f"{model.n_clusters_} cluster" in page.text or "clusters" in page.text
    assert ("nothing distinguishes its members" in page.text) == (k == 1)


@pytest.mark.parametrize("clusters", [sm.KernelKMeans(COSINE, 2, random_state=0), sm.HDBSCAN(COSINE, 3)])
def test_a_pipeline_of_texts_shows_texts_and_words(tmp_path: Path, clusters: Any) -> None:
    texts = ["cats like mats", "a cat likes a mat", "cats and mats"] * 4 + [
        "bonds fell",
        "stocks fell",
        "stocks rose",
    ] * 4
    model = make_pipeline(CountVectorizer(), clusters).fit(texts)
    page = Page(write_clusters(model, texts, path=tmp_path / "c.html"))
    for medoid in clusters.medoid_indices_:
        assert texts[medoid] in page.text
    shared = [f"{part.name} (" for part in explain_classes(model, texts)[clusters.labels_[0]]]
    assert shared
    assert all(part in page.text for part in shared)
    assert "CountVectorizer → " in page.text
    assert ("Why it belongs to its cluster" in page.text) == isinstance(clusters, sm.KernelKMeans)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (
            {"model": make_pipeline(CountVectorizer(), sm.KernelSVC(COSINE))},
            ValueError,
            "got CountVectorizer → KernelSVC",
        ),
        ({"model": make_pipeline(CountVectorizer(), sm.HDBSCAN(COSINE))}, NotFittedError, "fit"),
        ({"model": sm.KernelKMeans(KERNEL)}, NotFittedError, "fit"),
        ({"model": sm.SimilarityMap(KERNEL)}, ValueError, "KernelKMeans"),
        ({"y": ["a"]}, ValueError, "40"),
        (
            {"y": "x.html"},
            ValueError,
            "y must be one label .*, got 'x.html'; to write the page there, give path='x.html'",
        ),
        ({"names": ["a"]}, ValueError, "one name per object"),
        ({"max_objects": 1}, ValueError, "max_objects"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_written(
    fitted: Any, tmp_path: Path, change: dict[str, Any], error: type[Exception], words: str
) -> None:
    path = tmp_path / "c.html"
    with pytest.raises(error, match=words):
        write_clusters(**{"model": fitted, "X": WORDS, "path": path} | change)
    assert not path.exists()


# ---- clusters of high density
DENSE = ["".join(np.random.default_rng(i).choice([*letters], 12)) for i, letters in enumerate(("AC", "ACGG") * 15)]
DENSE += ["NNNN", "QXQX", "XYZXYZ"]  # noise


@pytest.fixture(scope="module")
def dense() -> Any:
    return sm.HDBSCAN(sm.kernels.Spectrum(k=1, normalize=True), 6, 3).fit(DENSE)


def test_noise_is_counted_and_is_no_cluster(dense: Any, tmp_path: Path) -> None:
    kinds = [*["ac", "acg"] * 15, "other", "other", "other"]
    assert adjusted_rand_score(kinds, dense.labels_) == 1
    assert (dense.labels_[-3:] == -1).all()
    path = write_clusters(dense, DENSE, kinds, tmp_path / "c.html", title="Dense words")
    text, page = path.read_text(), Page(path)
    assert "<dt>noise</dt><dd>3<small>objects in no cluster</small>" in text
    assert "<dt>agreement</dt><dd>1.00<small>" in text
    assert "noise counts as one cluster" in text
    assert "The medoid is the member nearest to the others of its cluster" in text
    assert "centre" not in re.sub("<style>.*?</style>|<script>.*?</script>", "", text, flags=re.S)
    assert "How many clusters" not in text
    (table,) = re.findall("<table.*?</table>", text, re.S)
    assert "noise" not in table
    for c in range(2):
        assert f"cluster {c}" in table
        assert DENSE[dense.medoid_indices_[c]] in table
    assert len(page.payload["names"]) == 33
    assert "noise" in str(page.payload["facts"])  # on the map


def test_the_page_of_noise_only(tmp_path: Path) -> None:
    words = ["".join(RNG.choice([*"ACGT"], 30)) for _ in range(20)]
    model = sm.HDBSCAN(sm.distances.Levenshtein(), 15).fit(words)
    assert model.n_clusters_ == 0
    text = write_clusters(model, words, path=tmp_path / "c.html").read_text()
    assert "All objects are noise. A smaller min_cluster_size" in text
    assert "There is no cluster." in text
    assert explain_classes(model, words) == {}


def test_other_objects_than_those_of_fit_are_assigned(dense: Any, tmp_path: Path) -> None:
    text = write_clusters(dense, ["ACCACCAACACA", "ACAACCACCACA", "QQQ"], path=tmp_path / "c.html").read_text()
    assert "<dt>noise</dt><dd>1<small>" in text
    assert "QQQ" in text


def test_the_parts_of_a_dense_cluster_are_its_mean_features_minus_those_of_the_others(dense: Any) -> None:
    features = np.array([[x.count(letter) for letter in "ACGT"] for x in DENSE], dtype=float)
    features /= np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1)
    found = explain_classes(dense, DENSE, top=9, n_members=99)
    assert [*found] == [0, 1]
    for c, parts in found.items():
        own, other = dense.labels_ == c, dense.labels_ == 1 - c  # noise is in neither
        amounts = 2 * (features[own].mean(axis=0) - features[other].mean(axis=0)) * features[own].mean(axis=0)
        expected = {letter: amount for letter, amount in zip("ACGT", amounts, strict=True) if amount > 1e-9}
        assert {part.name for part in parts} == set(expected)
        for part in parts:
            assert part.contribution == pytest.approx(expected[part.name], rel=1e-5)


# ---- what the members of a class share
def test_shared_parts_are_means_over_explanations(fitted: Any) -> None:
    found = explain_classes(fitted, WORDS, top=100, n_members=100)
    assert [*found] == [0, 1]
    for label, parts in found.items():
        members = [word for word, of in zip(WORDS, fitted.labels_, strict=True) if of == label]
        amounts: dict[str, list[float]] = {}
        for word in members:
            for part in explain(fitted, word, top=1000).parts:
                if part.name != "intercept":
                    amounts.setdefault(part.name, []).append(part.contribution)
        expected = {name: sum(v) / len(members) for name, v in amounts.items() if sum(v) > 0 and len(v) > 1}
        assert {part.name for part in parts} == set(expected)
        for part in parts:
            assert part.contribution == pytest.approx(expected[part.name])
            assert part.share == pytest.approx(sum(v > 0 for v in amounts[part.name]) / len(members))
        assert parts == sorted(parts, key=lambda part: -part.contribution)
        assert set("".join(part.name for part in parts)) == set(members[0])


def test_a_classifier_is_explained_by_the_classes_it_predicts() -> None:
    model = sm.KernelSVC(KERNEL).fit(WORDS, KINDS)
    found = explain_classes(model, WORDS, top=2, n_members=5)
    assert [*found] == ["ac", "gt"]
    assert all(set(part.name) <= set(label.upper()) for label, parts in found.items() for part in parts)


@pytest.mark.parametrize(
    ("model", "words"),
    [(sm.KernelRidge(KERNEL).fit(WORDS, range(40)), "predicts no classes"), (KERNEL, "predicts no classes")],
)
def test_models_without_classes_are_refused(model: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        explain_classes(model, WORDS)


# ---- the command
def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["cluster", *arguments])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "words.csv"
    path.write_text("word,kind\n" + "".join(f"{word},{kind}\n" for word, kind in zip(WORDS, KINDS, strict=True)))
    return path


def test_the_command_agrees_with_the_library(table: Path, tmp_path: Path, fitted: Any) -> None:
    output, page, saved = tmp_path / "out.csv", tmp_path / "c.html", tmp_path / "c.similia"
    done = run(
        str(table), "--text", "word", "--label", "kind", "--kernel", "Spectrum(k=2, normalize=True)", "--clusters", "2",
        "-o", str(output), "--report", str(page), "--save", str(saved),
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "40 objects in 2 clusters of 20, 20" in done.output
    rows = [*csv.DictReader(output.read_text().splitlines())]
    assert [int(row["cluster"]) for row in rows] == fitted.labels_.tolist()
    assert {int(row["medoid"]) for row in rows} == set(fitted.medoid_indices_.tolist())
    np.testing.assert_allclose([float(row["distance"]) for row in rows], fitted.transform(WORDS).min(axis=1))
    assert "Clusters of words.csv" in Page(page).text
    np.testing.assert_array_equal(sm.load(saved).predict(WORDS), fitted.labels_)


def test_the_command_finds_clusters_of_high_density(tmp_path: Path, dense: Any) -> None:
    data, output, page, saved = (tmp_path / name for name in ("words.csv", "out.csv", "c.html", "c.similia"))
    data.write_text("word\n" + "".join(f"{word}\n" for word in DENSE))
    how = (
        str(data),
        "--text",
        "word",
        "--kernel",
        "Spectrum(k=1, normalize=True)",
        "--method",
        "density",
        "-o",
        str(output),
    )
    done = run(*how, "--min-size", "6", "--report", str(page), "--save", str(saved))
    assert done.exit_code == 0, done.output
    model = sm.HDBSCAN(sm.kernels.Spectrum(k=1, normalize=True), 6, random_state=0).fit(DENSE)
    sizes = ", ".join(map(str, sorted(np.bincount(model.labels_[model.labels_ >= 0]), reverse=True)))
    noise = int((model.labels_ < 0).sum())
    assert noise > 1
    assert f"33 objects in 2 clusters of {sizes}; {noise} are noise" in " ".join(done.output.split())
    rows = [*csv.DictReader(output.read_text().splitlines())]
    assert [*rows[0]] == ["row", "cluster", "probability", "medoid"]
    assert [int(row["cluster"]) for row in rows] == model.labels_.tolist()
    assert [float(row["probability"]) for row in rows] == pytest.approx(model.probabilities_)
    expected = [-1 if c < 0 else int(model.medoid_indices_[c]) for c in model.labels_]
    assert [int(row["medoid"]) for row in rows] == expected
    assert f"<dt>noise</dt><dd>{noise}<small>" in page.read_text()
    np.testing.assert_array_equal(sm.load(saved).predict(DENSE), model.labels_)
    assert run(*how).exit_code == 0  # five objects by default
    labels = [int(row["cluster"]) for row in csv.DictReader(output.read_text().splitlines())]
    assert labels == sm.HDBSCAN(sm.kernels.Spectrum(k=1, normalize=True), 5, random_state=0).fit_predict(DENSE).tolist()


def test_the_command_chooses_the_number(table: Path, tmp_path: Path) -> None:
    done = run(str(table), "--text", "word", "--kernel", "Spectrum(k=2, normalize=True)", "-o", str(tmp_path / "o.csv"))
    assert done.exit_code == 0, done.output
    assert "40 objects in 2 clusters" in done.output


def test_labels_that_no_option_names_do_not_stop_the_command(tmp_path: Path) -> None:
    data, output, page = tmp_path / "words.parquet", tmp_path / "o.csv", tmp_path / "c.html"
    parquet.write_table(pa.table({"text": WORDS, "label": [None, *KINDS[1:]]}), data)
    how = ("--kernel", "Spectrum(k=2)", "--clusters", "2", "-o", str(output), "--report", str(page))
    done = run(str(data), *how)
    assert done.exit_code == 0, done.output
    assert "agreement" not in Page(page).text
    table = tmp_path / "words.csv"
    table.write_text("text,label\n" + "".join(f"{w},{k}\n" for w, k in zip(WORDS, ["", *KINDS[1:]], strict=True)))
    assert f"no labels, because 1 of {len(WORDS)} strings have none" in run(str(table), *how).output
    assert "agreement" not in Page(page).text
    parquet.write_table(pa.table({"text": WORDS, "label": KINDS}), data)
    assert run(str(data), *how).exit_code == 0
    assert "agreement" in Page(page).text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("-o", "out.txt"), "give out.txt the ending .csv or .parquet"),
        (("-o", "out.csv", "--clusters", "many"), "must be a number of at least 1, or stability"),
        (("-o", "out.csv", "--clusters", "50"), "at least 50 (--clusters)"),
        (("-o", "out.csv", "--report", "out.txt"), "end out.txt in .html"),
        (("-o", "out.csv", "--method", "dbscan"), "--method must be k-means or density, got dbscan"),
        (("-o", "out.csv", "--method", "density", "--clusters", "3"), "for density, set --min-size"),
        (("-o", "out.csv", "--method", "density", "--landmarks", "30"), "for density, set --min-size"),
        (("-o", "out.csv", "--min-size", "3"), "for k-means, set --clusters"),
        (("-o", "out.csv", "--method", "density", "--min-size", "50"), "at least 50 (--min-size)"),
        (("-o", "out.csv", "--kernel", "Spectrum()", "--distance", "Levenshtein()"), "exclude each other"),
    ],
)
def test_wrong_options_are_said_and_nothing_written(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(str(table), "--text", "word", *options)
    assert words in str(done.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["words.csv"]
