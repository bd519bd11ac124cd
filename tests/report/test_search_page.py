"""The page of a search: its recall against counts by hand, what it shows of any kind of search, and its command."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rapidfuzz.distance import Levenshtein as rapidfuzz
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from typer.testing import CliRunner

import similia as sm
from samples.report import HOSTILE, Opened, Page
from similia.cli.app import app
from similia.report import write_search

RNG = np.random.default_rng(0)
WORDS = ["".join(word) for word in RNG.choice(list("ACGT"), (140, 12))]
KEPT, QUERIES = WORDS[:100], WORDS[100:]
ENCODER = make_pipeline(
    sm.Nystroem(sm.kernels.Spectrum(k=2), 20, random_state=0), sm.SignRandomProjection(64, random_state=0)
)


@pytest.fixture(scope="module")
def fitted() -> Any:
    return sm.SimilaritySearch(ENCODER, rerank=sm.distances.Levenshtein(), n_candidates=50).fit(KEPT)


@pytest.fixture(scope="module")
def written(fitted: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("search")
    return write_search(fitted, QUERIES, folder / "s.html", n_neighbors=5, title="Words")


def table_of(page: Path, caption: str) -> list[list[str]]:
    found = re.search(rf"<caption>{caption}.*?<tbody>(.*?)</tbody>", page.read_text(), re.S)
    assert found is not None
    rows = re.findall(r"<tr>(.*?)</tr>", found[1], re.S)
    return [[re.sub("<[^>]*>", "", cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.S)] for row in rows]


def test_recall_is_that_of_all_pairs(fitted: Any, written: Path) -> None:
    rows = table_of(written, "Recall of the 5 nearest")
    assert [row[0] for row in rows] == ["10", "20", "50 (now)", "100"]
    D = np.array([[rapidfuzz.distance(query, word) for word in KEPT] for query in QUERIES])
    for row in rows:
        c = int(row[0].split()[0])
        ids = sm.SimilaritySearch(ENCODER, rerank=sm.distances.Levenshtein(), n_candidates=c).fit(KEPT)
        found = ids.kneighbors(QUERIES, 5, return_distance=False)
        shares = np.mean([np.sort(d)[4] >= d[near] for d, near in zip(D, found, strict=True)], axis=1)
        assert row[1] == f"{100 * shares.mean():.2f}"
        assert row[2] == f"{100 * shares.std(ddof=1) / np.sqrt(len(QUERIES)):.2f}"
    assert rows[-1][1] == "100.00"
    assert float(rows[0][1]) < 90
    assert f"{float(rows[2][1]):.1f} %" in Page(written).text.replace("\u202f", " ")


def test_fewer_candidates_than_neighbours_are_not_said_to_be_measured(tmp_path: Path) -> None:
    search = sm.SimilaritySearch(ENCODER, rerank=sm.distances.Levenshtein(), n_candidates=3).fit(KEPT)
    path = write_search(search, QUERIES, tmp_path / "s.html", n_neighbors=10)
    shares = {row[0]: float(row[1]) for row in table_of(path, "Recall of the 10 nearest")}
    card = re.search(r"recall of 10 nearest</dt><dd>([\d.]+).*?<small>(\d+) candidates", path.read_text())
    assert card is not None
    assert float(card[1]) == pytest.approx(shares[card[2]], abs=0.051)


def test_queries_are_shown_with_what_they_find(fitted: Any, written: Path) -> None:
    page = Page(written)
    assert "Words" in page.text
    shown = [i for i in range(len(QUERIES)) if f"query {i}" in re.findall(r"<h3>(.*?)</h3>", written.read_text())]
    assert len(shown) == 6
    for i in shown:
        ids = fitted.kneighbors([QUERIES[i]], 4, return_distance=False)[0]
        assert all(KEPT[j] in page.text and f"id {j}" in page.text for j in ids)
    assert "Why the first is near it" in page.text
    assert "How candidates are found" not in page.text


def test_the_page_opens_without_complaint(browser: Any, written: Path) -> None:
    opened = Opened(browser, written)
    assert opened.said == []
    opened.page.close()


def test_auto_shows_what_it_tried(tmp_path: Path) -> None:
    search = sm.SimilaritySearch("auto", rerank=sm.distances.Levenshtein()).fit(KEPT)
    rows = table_of(write_search(search, QUERIES, tmp_path / "s.html"), "Methods that were tried")
    assert len(rows) == len({one["candidates"] for one in search.trials_})
    (kept,) = (row for row in rows if row[0].endswith("(kept)"))
    tried = [one for one in search.trials_ if kept[0].startswith(one["candidates"].split(" -")[0])]
    assert f"{100 * max(one['recall'] for one in tried):.1f}" in kept


V = RNG.normal(size=(220, 6))
VECTORS = make_pipeline(
    sm.Nystroem(sm.kernels.RBF(gamma=0.1), 30, random_state=0), sm.SignRandomProjection(64, random_state=0)
)


@pytest.mark.parametrize(
    ("search", "given"),
    [
        (sm.SimilaritySearch(VECTORS, rerank="projected"), {}),
        (sm.SimilaritySearch(VECTORS, rerank="kernel"), {}),
        (sm.SimilaritySearch(VECTORS), {"objects": np.abs(V[:200])}),
    ],
)
def test_any_search(search: Any, given: dict[str, Any], tmp_path: Path) -> None:
    X = np.abs(V)
    path = write_search(search.fit(X[:200]), X[200:], tmp_path / "s.html", **given)
    rows = table_of(path, "Recall of the 10 nearest")
    now = search.recall(X[200:], 10, **({"metric": "projected"} if search.rerank == "projected" else {}) | given)
    assert any(f"{100 * now.recall:.2f}" in row for row in rows)
    assert len(rows) == (1 if search.rerank is None else 5)  # 10, 20, 50, 100, and all 200
    missing = "keeps no objects" in Page(path).text
    assert missing == (search.rerank == "projected")


@pytest.mark.parametrize("bits", [1, 4])
def test_a_search_by_vectors_alone(bits: int, tmp_path: Path) -> None:
    index = sm.search.VectorIndex(bits=bits, random_state=0)
    search = sm.SimilaritySearch(index, rerank=sm.kernels.Cosine("projection")).fit(V[:200])
    path = write_search(search, V[200:], tmp_path / "s.html")
    assert "Model: vectors: VectorIndex" in Page(path).text
    assert table_of(path, "Recall of the 10 nearest")[-1][1] == "100.00"


def test_a_hostile_text_does_no_harm(tmp_path: Path, browser: Any) -> None:
    words = [*KEPT, HOSTILE]
    search = sm.SimilaritySearch(ENCODER, rerank=sm.distances.Levenshtein()).fit(words)
    path = write_search(search, [HOSTILE], tmp_path / "s.html", n_neighbors=1, title=HOSTILE, names=[HOSTILE])
    opened = Opened(browser, path)
    assert opened.said == []
    opened.page.close()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"search": "a search"}, "a similia.SimilaritySearch"),
        ({"X": []}, "at least one"),
        ({"names": ["one"]}, "one name per object"),
        ({"n_neighbors": 101}, "at most the 100 objects"),
        ({"n_neighbors": 0}, "n_neighbors"),
        ({"max_queries": 0}, "max_queries"),
    ],
)
def test_bad_input(fitted: Any, tmp_path: Path, change: dict[str, Any], words: str) -> None:
    path = tmp_path / "s.html"
    with pytest.raises(ValueError, match=words):
        write_search(**{"search": fitted, "X": QUERIES, "path": path} | change)
    assert not path.exists()


def test_a_search_that_is_not_fitted_or_keeps_nothing(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        write_search(sm.SimilaritySearch(ENCODER), QUERIES, tmp_path / "s.html")
    with pytest.raises(ValueError, match="give objects="):
        write_search(sm.SimilaritySearch(ENCODER).fit(KEPT), QUERIES, tmp_path / "s.html")


def test_the_command(tmp_path: Path) -> None:
    for name, words in (("kept", KEPT), ("asked", QUERIES)):
        (tmp_path / f"{name}.fasta").write_text("".join(f">{name}{i}\n{word}\n" for i, word in enumerate(words)))
    kept, asked, index, output = (tmp_path / name for name in ("kept.fasta", "asked.fasta", "i", "s.html"))
    runner = CliRunner()
    assert runner.invoke(app, ["index", "build", str(kept), str(index), "--by", "auto"]).exit_code == 0
    given = ["index", "report", str(index), str(asked), "-k", "3", "--most", "20", "-o", str(output)]
    result = runner.invoke(app, given)
    assert result.exit_code == 0, result.output
    text = Page(output).text
    assert "recall of 3 nearest" in text
    assert "100 candidates: recall 100.0 %" in result.output
    told = json.loads(runner.invoke(app, [*given, "--json"]).stdout)
    assert told["recall"][-1]["recall"] == 1.0
    assert re.search(r"kept\d", text)
    assert re.search(r"asked\d", text)
    assert "20 queries" in text
    assert "Methods that were tried" in text


def test_the_command_refuses_an_index_without_objects(tmp_path: Path) -> None:
    (tmp_path / "kept.fasta").write_text("".join(f">{i}\n{word}\n" for i, word in enumerate(KEPT)))
    kept, index = str(tmp_path / "kept.fasta"), str(tmp_path / "i")
    assert CliRunner().invoke(app, ["index", "build", kept, index, "--rerank", "none"]).exit_code == 0
    result = CliRunner().invoke(app, ["index", "report", index, kept, "-o", str(tmp_path / "s.html")])
    assert "keeps no objects (--rerank none)" in str(result.exception)
    assert not (tmp_path / "s.html").exists()
