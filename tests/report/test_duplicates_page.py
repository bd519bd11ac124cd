"""The page of near-duplicates: what it says, against counts by hand; alignments; and the command that writes it."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein as RapidLevenshtein
from sklearn.feature_extraction.text import CountVectorizer
from typer.testing import CliRunner

from samples.report import HOSTILE, Opened, Page, graphs, series, sets, vectors
from similia.cli.app import app
from similia.distances import DTW, Levenshtein, ModifiedHausdorff
from similia.kernels import Cosine, MinMax, Spectrum, WeisfeilerLehman
from similia.report import write_duplicates
from similia.report.duplicates_page import _aligned
from similia.search import near_duplicates

TEXTS = [
    *("the cat sat on the mat", "the cat sat on the hat", "the cat sat on thehat", "a dog ran home"),
    *("a dog ran home!", "nothing like the others", "the cat sat on the mat"),
]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = near_duplicates(TEXTS, Levenshtein(), 1)
    return write_duplicates(found, TEXTS, tmp_path_factory.mktemp("page") / "d.html", title="Cats and dogs")


def test_the_page_says_what_was_found(written: Path) -> None:
    page = Page(written)
    # pairs at distance 1: 0-1, 1-6, 1-2, 3-4; at distance 0: 0-6. Groups: {0, 1, 2, 6}, {3, 4}, {5}
    assert "Cats and dogs" in page.text
    assert "5 pairs have a distance of at most 1" in page.sections["values"]
    assert "connect 6 objects (85.7 %) into 2 groups" in page.sections["values"]
    assert "None: all pairs were compared." in page.sections["recall"]
    assert "4 objects: object 0 is kept" in page.sections["groups"]
    assert "1 object would be dropped for being connected" in page.sections["keep"]  # object 2, at distance 2 of 0
    assert "<mark>m</mark>at" in page.text
    assert "<mark>h</mark>at" in page.text
    assert "<mark>·</mark>" in page.text
    assert "<mark>!</mark>" in page.text


def test_equal_objects_are_no_example_of_the_most_similar(written: Path) -> None:
    page = Page(written)
    assert "distance 0: object 0 and object 6" not in page.text.split("Pairs in the middle")[0]


def test_the_page_opens_without_complaint(browser: Any, written: Path) -> None:
    opened = Opened(browser, written)
    assert opened.said == []
    wide, window = opened.widths()
    assert wide <= window
    opened.page.close()


def test_the_recall_is_counted_on_a_sample(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = ["".join(row) for row in np.repeat(rng.choice(list("acgt"), (40, 30)), 3, axis=0)]
    found = near_duplicates(X, Levenshtein(), 2, method="hashes", random_state=0)
    checked = found.check(X, n_checked=120)
    assert (checked.n_found, checked.n_true, checked.n_checked) == (240, 240, 120)
    assert checked.recall == checked.high == 1.0
    z = 1.959963984540054
    assert checked.low == pytest.approx(120 / (120 + z * z))  # Wilson's interval of 120 successes of 120
    half = type(found)(
        found.pairs[::2],
        found.values[::2],
        *(getattr(found, name) for name in ("groups", "recall", "similarity", "threshold", "relative", "method")),
    )
    again = half.check(X, n_checked=120)
    assert (again.n_found, again.n_true) == (2 * len(half.pairs), 240)
    page = Page(write_duplicates(found, X, tmp_path / "d.html"))
    assert "100.0 % of their near-duplicates" in page.sections["recall"]


def test_nothing_found(tmp_path: Path) -> None:
    found = near_duplicates(["abc", "xyz"], Levenshtein(), 1)
    page = Page(write_duplicates(found, ["abc", "xyz"], tmp_path / "d.html"))
    assert "No two objects have a distance of at most 1." in page.sections["values"]
    assert "There are no pairs." in page.sections["pairs"]


@pytest.mark.parametrize(
    ("similarity", "objects", "threshold"),
    [
        (MinMax(WeisfeilerLehman(n_iter=1)), graphs()[0], 0.6),
        (DTW(), series()[0], 3.0),
        (ModifiedHausdorff(), sets()[0], 0.8),
        (MinMax(), vectors()[0], 0.6),
        (MinMax(Spectrum(2)), [HOSTILE, f"{HOSTILE} ", "<b>", "<b>!", "\x00\n", "\x00\n\t"], 0.5),
        (Levenshtein(), [b"abc", b"abd\xff", b"abd"], 1),
    ],
    ids=["graphs", "series", "sets", "vectors", "hostile", "bytes"],
)
def test_other_objects(tmp_path: Path, similarity: Any, objects: Any, threshold: float) -> None:
    found = near_duplicates(objects, similarity, threshold)
    assert len(found.pairs)
    names = [f"n{i}" for i in range(len(found.groups))]
    page = Page(write_duplicates(found, objects, tmp_path / "d.html", names=names))
    shown = {int(tag["data-i"]) for name, tag in page.tags if "data-i" in tag}
    assert shown <= set(range(len(page.payload["objects"])))
    assert "is kept" in page.sections["groups"]
    assert "<script>alert" not in page.text


@given(st.text("abc", max_size=80), st.text("abc", max_size=80), st.text("x", max_size=90))
def test_alignments_spell_both_strings_and_mark_as_many_edits_as_there_are(a: str, b: str, between: str) -> None:
    lines = _aligned(a + between + b, b + between + a)
    for side, whole in ((0, a + between + b), (1, b + between + a)):
        spelled = "".join(text for line in lines for text, _ in line[side]).replace("·", "")
        if "…" not in spelled:
            assert spelled == whole
    marked = [(x, y) for line in lines for (x, different), (y, _) in zip(*line, strict=True) if different]
    edits = sum(p != q for x, y in marked for p, q in zip(x, y, strict=True))
    assert edits == RapidLevenshtein.distance(a + between + b, b + between + a)
    assert all(x == y for line in lines for (x, different), (y, _) in zip(*line, strict=True) if not different)


def test_texts_are_shown_in_place_of_their_vectors(tmp_path: Path) -> None:
    vectors = CountVectorizer().fit_transform(TEXTS).astype(float)
    found = near_duplicates(vectors, Cosine("projection"), 0.7)
    page = Page(write_duplicates(found, vectors, tmp_path / "d.html", shown=TEXTS))
    assert "similarity 1: object 3 and object 4" in page.text  # equal vectors, but the texts differ
    assert "<mark>!</mark>" in page.text
    assert {shown["t"] for shown in page.payload["objects"]} <= {*TEXTS}
    with pytest.raises(ValueError, match=r"X cannot be read as a table .*; give what near_duplicates searched"):
        write_duplicates(found, TEXTS, tmp_path / "other.html")


def test_names_of_a_series_are_in_its_order_whatever_its_labels(tmp_path: Path) -> None:
    X, names = ["abcd", "abce", "x"], pd.Series(["one", "two", "three"], index=[2, 1, 0])
    page = Page(write_duplicates(near_duplicates(X, Levenshtein(), 1), X, tmp_path / "d.html", names=names))
    assert "distance 1: one and two" in page.text


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"found": [(0, 1)]}, ValueError, "near_duplicates"),
        ({"X": TEXTS[:3]}, ValueError, "has 3 objects"),
        ({"names": ["a"]}, ValueError, "one name per object"),
        ({"shown": TEXTS[:3]}, ValueError, "shown has 3 objects, expected the 7 in which"),
        ({"X": [1.5] * 7}, TypeError, "give what near_duplicates searched, .* shows other objects with shown="),
        ({"n_checked": 0}, ValueError, "n_checked"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_written(
    tmp_path: Path, change: dict[str, Any], error: type[Exception], words: str
) -> None:
    path = tmp_path / "d.html"
    found = near_duplicates(TEXTS, Levenshtein(), 1)
    with pytest.raises(error, match=words):
        write_duplicates(**{"found": found, "X": TEXTS, "path": path} | change)
    assert not path.exists()


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    data, output, page = (tmp_path / name for name in ("texts.csv", "pairs.csv", "page.html"))
    data.write_text("id,text\n" + "".join(f"t{i},{text}\n" for i, text in enumerate(TEXTS)))
    command = ["duplicates", str(data), "--id", "id", "--distance", "Levenshtein()", "--threshold", "1"]
    done = CliRunner().invoke(app, [*command, "-o", str(output), "--report", str(page)])
    assert done.exit_code == 0, done.output
    assert len([*csv.DictReader(output.read_text().splitlines())]) == 5
    assert "4 objects: t0 is kept" in Page(page).text
    assert "Near-duplicates in texts.csv" in Page(page).text
    other = ["-o", str(tmp_path / "other.csv"), "--report", str(tmp_path / "page.txt")]
    done = CliRunner().invoke(app, [*command, *other])
    assert "in .html" in str(done.exception)
    assert not (tmp_path / "other.csv").exists()


def test_no_pair_is_an_example_twice(tmp_path: Path) -> None:
    """Nine pairs of nine groups, similarity falling: three at each end, others from the middle."""
    X = [text for k in range(9) for text in (chr(97 + k) * 30, chr(97 + k) * (29 - k))]
    found = near_duplicates(X, Levenshtein(), 9)
    assert len(found.pairs) == 9
    text = Page(write_duplicates(found, X, tmp_path / "d.html")).text
    titles = re.findall(r"distance (\d): object \d+ and object \d+", text)
    assert (titles[:3], titles[-3:]) == (["1", "2", "3"], ["9", "8", "7"])
    assert len(titles) > 6
    assert {*titles[3:-3]} <= {"4", "5", "6"}
    assert len(titles) == len({*titles})
    assert "The least similar pairs, nearest to the threshold" in text


def test_the_command_names_the_pairs_and_says_how_many_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from similia.cli.duplicates import _show_examples
    from similia.sources import Objects

    X = [text for k in range(5) for text in (chr(97 + k) * 9, chr(97 + k) * 8)]
    names = [f"P{i:02}" for i in range(10)]
    found = near_duplicates(X, Levenshtein(), 1)
    _show_examples(found, Objects("t.csv", "strings", X, None, names), "distance", names)
    out = capsys.readouterr().out
    assert out.startswith("P00, P01: distance 1\n")
    assert out.endswith("(the first 3 of 5 pairs)\n")
    _show_examples(found, Objects("t.csv", "strings", X, None, None), "distance", None)
    assert capsys.readouterr().out.startswith("0, 1: distance 1\n")


def test_values_that_differ_by_rounding_only_have_a_histogram(tmp_path: Path) -> None:
    X = [[0.1, 0.1], [0.2, 0.2], [1.2, 1.2], [1.3, 1.3]]
    found = near_duplicates(X, DTW(), 0.25)
    assert 0 < np.ptp(found.values) < 1e-9
    write_duplicates(found, X, tmp_path / "page.html")
    assert (tmp_path / "page.html").exists()
