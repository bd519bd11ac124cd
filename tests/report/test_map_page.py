"""The page of a map: what it holds, what it says, and how a browser zooms, searches and chooses in it."""

from __future__ import annotations

import base64
import json
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from typer.testing import CliRunner

import similia as sm
from samples.report import HOSTILE, Opened, Page, graphs, series
from similia.cli.app import app
from similia.objects.transformers import FromColumn
from similia.report import write_map

KERNEL = sm.kernels.Spectrum(k=2, normalize=True)
PLACES = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.5, 0.5]])
TEXTS = ["cats like mats", "dogs like mats", "cats like dogs", "stocks fell", "bonds fell", "stocks and bonds"]
KINDS = ["pets", "pets", "pets", "money", "money", "money"]
WORDS = ["AAAAC", "AACCC", "GGGGT", "GGTTT", "ACGTA"]


@pytest.fixture(scope="module")
def fitted() -> Any:
    return sm.SimilarityMap(KERNEL, random_state=0).fit(WORDS)


@pytest.fixture(scope="module")
def corners(fitted: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a page with four objects in the corners of a square and one in its middle."""
    path = tmp_path_factory.mktemp("map") / "map.html"
    names = ["upper", "right", "left", "lower", "middle"]
    return write_map(fitted, WORDS, ["x", "x", "x", "y", "y"], path, names=names, points=PLACES)


def coordinates(page: Page) -> np.ndarray:
    return np.frombuffer(base64.b64decode(page.payload["xy"]), "<u2").reshape(-1, 2)


def codes(page: Page) -> list[int]:
    return [*base64.b64decode(page.payload["code"])]


def on_screen(opened: Opened, i: int) -> tuple[float, float]:
    """Return where the page shows object `i` before any zoom: a square of 0.92 of the field, centred."""
    x, y = coordinates(Page(Path(opened.page.url.removeprefix("file://"))))[i] / 65535
    box = opened.page.locator("canvas").bounding_box()
    side = 0.92 * min(box["width"], box["height"])
    return (
        box["x"] + (box["width"] - side) / 2 + x * side,
        box["y"] + (box["height"] - side) / 2 + y * side,
    )


def test_coordinates_keep_their_proportions(fitted: Any, tmp_path: Path) -> None:
    points = np.random.default_rng(0).normal(size=(5, 2)) * [1, 0.2]
    page = Page(write_map(fitted, WORDS, path=tmp_path / "m.html", points=points))
    found = coordinates(page).astype(float) * [1, -1]  # y is downwards on the page
    scale = 65535 / np.ptp(points, axis=0).max()
    np.testing.assert_allclose(found - found.mean(axis=0), (points - points.mean(axis=0)) * scale, atol=1)


def test_without_points_the_map_places_the_objects(fitted: Any, tmp_path: Path) -> None:
    one = Page(write_map(fitted, WORDS, path=tmp_path / "a.html"))
    other = Page(write_map(fitted, WORDS, path=tmp_path / "b.html", points=fitted.embedding_))
    unfitted = Page(write_map(sm.SimilarityMap(KERNEL, random_state=0), WORDS, path=tmp_path / "c.html"))
    np.testing.assert_array_equal(coordinates(one), coordinates(other))
    np.testing.assert_array_equal(coordinates(unfitted), coordinates(other))


@pytest.mark.parametrize("fitted_before", [True, False])
def test_a_pipeline_shows_the_objects_that_it_takes(tmp_path: Path, fitted_before: bool) -> None:
    words, placed = TfidfVectorizer(), sm.SimilarityMap(sm.kernels.Cosine("projection"), random_state=0)
    vectors = words.fit_transform(TEXTS)
    expected = Page(write_map(placed, vectors, KINDS, tmp_path / "vectors.html"))
    model = make_pipeline(TfidfVectorizer(), placed)
    model = model.fit(TEXTS) if fitted_before else model
    page = Page(write_map(model, TEXTS, KINDS, tmp_path / "texts.html"))
    assert [shown["t"] for shown in page.payload["objects"]] == TEXTS
    np.testing.assert_array_equal(coordinates(page), coordinates(expected))
    assert codes(page) == codes(expected)
    assert "6 strings, by Cosine(mapping='projection') after TfidfVectorizer. Trustworthiness" in unescape(page.text)
    few = Page(write_map(model.fit(TEXTS), TEXTS, path=tmp_path / "few.html", max_objects=3))
    assert [shown["t"] for shown in few.payload["objects"]] == [TEXTS[i] for i in few.payload["rows"]]


def test_a_pipeline_draws_what_its_first_step_compares(tmp_path: Path) -> None:
    pytest.importorskip("polars", reason="polars is not installed")
    X = series()[0]
    model = make_pipeline(sm.D2KE(sm.distances.DTW(), 5, random_state=0), sm.SimilarityMap(sm.kernels.RBF(1.0)))
    page = Page(write_map(model.set_output(transform="polars").fit(X), X, path=tmp_path / "m.html"))
    assert all("c" in shown for shown in page.payload["objects"])
    assert "time series, by RBF(gamma=1.0) after D2KE." in page.text


def test_a_pipeline_takes_the_rows_of_a_table(tmp_path: Path) -> None:
    frame = pd.DataFrame({"height": [1.5, 1.6, 1.9, 2.0], "city": ["Ulm", "Ulm", "Bonn", "Bonn"]})
    columns = make_column_transformer((OneHotEncoder(), ["city"]), remainder="passthrough")
    page = Page(
        write_map(make_pipeline(columns, sm.SimilarityMap(sm.kernels.RBF(1.0))), frame, path=tmp_path / "m.html")
    )
    assert [shown["t"] for shown in page.payload["objects"]] == [str(row) for row in frame.to_numpy().tolist()]


def test_names_of_a_series_are_in_its_order_whatever_its_labels(fitted: Any, tmp_path: Path) -> None:
    names = pd.Series(list("abcde"), index=[4, 3, 2, 1, 0])
    page = Page(write_map(fitted, WORDS, path=tmp_path / "m.html", points=PLACES, names=names))
    assert page.payload["names"] == [*names]


def test_colours_are_classes_or_a_scale(fitted: Any, tmp_path: Path) -> None:
    def payload(color: Any) -> Page:
        return Page(write_map(fitted, WORDS, color, tmp_path / "m.html"))

    classes = payload(["b", "a", "b", "b", "a"])
    assert (classes.payload["keys"], classes.payload["counts"], codes(classes)) == (["b", "a"], [3, 2], [0, 1, 0, 0, 1])
    numbers = payload([0.0, 1.0, 0.5, 0.25, 1.0])
    assert (numbers.payload["keys"], numbers.payload["range"]) == (None, ["0", "1"])
    assert codes(numbers) == [0, 255, 128, 64, 255]
    assert payload([3, 3, 2, 2, 2]).payload["keys"] == ["2", "3"]
    assert payload(["1.5", "2.5", "1.5", "0.5", "3"]).payload["keys"] is None
    assert payload(None).payload["labels"] is None


def test_beyond_twenty_classes_the_rarest_share_a_colour(tmp_path: Path) -> None:
    words = ["ACGT" * (1 + i % 5) + "ACGT"[i % 4] for i in range(60)]
    color = [f"c{min(i, 29):02d}" for i in range(60)]
    page = Page(write_map(sm.SimilarityMap(KERNEL, random_state=0), words, color, tmp_path / "m.html"))
    assert len(page.payload["keys"]) == 20
    assert page.payload["keys"][0] == "c29"
    assert page.payload["keys"][-1] == "11 others"
    assert page.payload["counts"][-1] == 11
    assert page.payload["labels"] == color


def test_more_objects_than_wanted_are_drawn_and_this_is_said(fitted: Any, tmp_path: Path) -> None:
    page = Page(write_map(fitted, WORDS, ["x", "x", "x", "y", "y"], tmp_path / "m.html", points=PLACES, max_objects=3))
    rows = page.payload["rows"]
    assert len(rows) == 3
    assert [shown["t"] for shown in page.payload["objects"]] == [WORDS[i] for i in rows]
    assert "drawn at random of 5" in page.text


@pytest.mark.parametrize(
    ("similarity", "objects", "key"),
    [(sm.kernels.WeisfeilerLehman(n_iter=1), graphs()[0], "g"), (sm.distances.DTW(), series()[0], "c")],
    ids=["graphs", "series"],
)
def test_a_page_draws_a_bounded_number_of_objects(
    browser: Any, tmp_path: Path, similarity: Any, objects: Any, key: str
) -> None:
    model = sm.SimilarityMap(similarity, random_state=0).fit(objects)
    every = Page(write_map(model, objects, path=tmp_path / "a.html"))
    path = write_map(model, objects, path=tmp_path / "m.html", max_drawings=7)
    some = Page(path)
    drawn = [i for i, shown in enumerate(some.payload["objects"]) if key in shown]
    assert len(drawn) == 7
    for i, (one, other) in enumerate(zip(some.payload["objects"], every.payload["objects"], strict=True)):
        assert one == (other if i in drawn else {"t": other["t"]})
    assert "The page holds drawings of 7 of them" in some.text
    assert "The page holds drawings" not in every.text
    opened = Opened(browser, path)
    opened.page.mouse.move(*on_screen(opened, next(i for i in range(40) if i not in drawn)))
    assert opened.page.locator(".shown h3").count() == 1
    assert opened.said == []
    opened.page.close()


def test_strings_are_not_drawn_and_stay_whole(fitted: Any, tmp_path: Path) -> None:
    page = Page(write_map(fitted, WORDS, path=tmp_path / "m.html", points=PLACES, max_drawings=0))
    assert [shown["t"] for shown in page.payload["objects"]] == WORDS
    assert "The page holds drawings" not in page.text


@pytest.mark.parametrize(
    ("similarity", "objects", "drawn"),
    [
        (sm.kernels.WeisfeilerLehman(n_iter=1), graphs()[0], "g"),
        (sm.distances.DTW(), series()[0], "c"),
        (sm.kernels.RBF(1.0), np.random.default_rng(0).normal(size=(20, 3)), "c"),
    ],
    ids=["graphs", "series", "vectors"],
)
def test_every_kind_of_object_is_drawn(browser: Any, tmp_path: Path, similarity: Any, objects: Any, drawn: str) -> None:
    path = write_map(sm.SimilarityMap(similarity, random_state=0), objects, path=tmp_path / "m.html")
    assert all(drawn in shown for shown in Page(path).payload["objects"])
    opened = Opened(browser, path)
    opened.page.mouse.move(*on_screen(opened, 0))
    assert opened.page.locator(".shown svg").count() == 1
    assert opened.said == []
    opened.page.close()


def test_bad_input_is_refused_at_once(fitted: Any, tmp_path: Path) -> None:
    for options, said in (
        ({"color": ["x"]}, "1 label"),
        ({"color": tmp_path / "a.html"}, "color must be one label .* to write the page there, give path='.*a.html'"),
        ({"names": ["x"]}, "names has 1 entries for 5 objects"),
        ({"points": PLACES[:3]}, r"points must be finite numbers of shape \(5, 2\)"),
        ({"points": PLACES * np.nan}, "points must be finite"),
        ({"max_objects": 1}, "max_objects"),
        ({"max_drawings": -1}, "max_drawings"),
    ):
        with pytest.raises(ValueError, match=said):
            write_map(fitted, WORDS, path=tmp_path / "m.html", **options)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"X is a Dask collection, and the page holds its objects; give X\.compute\(\)"):
        write_map(fitted, pytest.importorskip("dask.bag").from_sequence(WORDS), path=tmp_path / "map.html")
    with pytest.raises(ValueError, match=r"model must be a similia\.SimilarityMap, or a pipeline .*, got Nystroem"):
        write_map(sm.Nystroem(KERNEL), WORDS, path=tmp_path / "m.html")
    grouped = make_pipeline(FromColumn(), sm.KernelKMeans(KERNEL, n_clusters=2)).fit(WORDS)
    with pytest.raises(ValueError, match=r"or a pipeline that ends in one, got FromColumn → KernelKMeans"):
        write_map(grouped, WORDS, path=tmp_path / "m.html")
    with pytest.raises(FileNotFoundError, match="does not exist; make it first"):
        write_map(fitted, WORDS, path=tmp_path / "nowhere" / "m.html")
    assert [*tmp_path.iterdir()] == []


# in a browser


def test_pointing_clicking_and_moving(browser: Any, corners: Path) -> None:
    opened = Opened(browser, corners)
    panel = opened.page.locator(".shown")
    for i, name in enumerate(Page(corners).payload["names"]):
        opened.page.mouse.move(*on_screen(opened, i))
        assert panel.locator("h3").inner_text() == name
        assert WORDS[i] in panel.inner_text()
        assert "xxxyy"[i] in panel.locator("dd").all_inner_texts()
    x, y = on_screen(opened, 4)
    opened.page.mouse.move(x, y)
    opened.page.mouse.wheel(0, -400)  # zooms in on the object in the middle, which stays
    opened.page.mouse.move(x - 9, y)
    opened.page.mouse.move(x, y)
    assert panel.locator("h3").inner_text() == "middle"
    opened.page.mouse.down()
    opened.page.mouse.move(x + 100, y + 50)
    opened.page.mouse.up()
    opened.page.mouse.click(x + 100, y + 50)
    opened.page.get_by_text("Show all").click()
    opened.page.mouse.move(*on_screen(opened, 0))
    assert panel.locator("h3").inner_text() == "upper"
    assert opened.said == []
    opened.page.close()


def test_pixels_are_where_the_objects_are(browser: Any, corners: Path) -> None:
    opened = Opened(browser, corners)
    opened.page.wait_for_timeout(100)

    def colour(i: int) -> list[int]:
        box = opened.page.locator("canvas").bounding_box()
        x, y = on_screen(opened, i)
        read = "([x, y]) => [...document.querySelector('canvas').getContext('2d').getImageData(x, y, 1, 1).data]"
        found: list[int] = opened.page.evaluate(read, [x - box["x"], y - box["y"]])
        return found[:3]

    assert colour(0) == [0x00, 0x72, 0xB2]
    assert colour(3) == [0xD5, 0x5E, 0x00]
    opened.page.locator("button.key").first.click()
    opened.page.wait_for_timeout(100)
    assert colour(0) == [0xFD, 0xFD, 0xFC]  # paper
    assert colour(3) == [0xD5, 0x5E, 0x00]
    opened.page.mouse.move(*on_screen(opened, 0))
    assert opened.page.locator(".shown h3").count() == 0  # hidden objects are not found
    opened.page.close()


def test_search_and_lasso(browser: Any, corners: Path) -> None:
    opened = Opened(browser, corners)
    for wanted, count in (("gg", 2), ("UPPER", 1), ("x", 3), ("nothing", 0)):
        opened.page.fill("#search", wanted)
        assert opened.page.locator("#found").inner_text() == f"{count} found"
    opened.page.get_by_text("Lasso", exact=True).click()
    (x0, y0), (x1, y1) = on_screen(opened, 0), on_screen(opened, 3)
    middle = (x0 + x1) / 2 + 20
    left, right, bottom, top = min(x0, x1) - 15, middle, max(y0, y1) + 15, min(y0, y1) - 15
    opened.page.mouse.move(left, top)
    opened.page.mouse.down()
    for corner in ((right, top), (right, bottom), (left, bottom)):
        opened.page.mouse.move(*corner, steps=3)
    opened.page.mouse.up()
    assert opened.page.locator("#ids").input_value().split("\n") == ["upper", "left", "middle"]
    assert "3 chosen" in opened.page.locator("#picked label").inner_text()
    assert opened.said == []
    opened.page.close()


def test_a_phone_has_room_for_it(browser: Any, corners: Path) -> None:
    opened = Opened(browser, corners, viewport={"width": 360, "height": 740}, has_touch=True)
    assert opened.widths() == (360, 360)
    opened.page.touchscreen.tap(*on_screen(opened, 4))
    assert opened.page.locator(".shown h3").inner_text() == "middle"
    assert opened.said == []
    opened.page.close()


def test_hostile_text_runs_nothing(browser: Any, tmp_path: Path) -> None:
    words, labels = [HOSTILE + letter for letter in "abcde"], [f"{HOSTILE}{i % 2}" for i in range(5)]
    path = write_map(
        sm.SimilarityMap(KERNEL, random_state=0), words, labels, tmp_path / "m.html", names=[HOSTILE] * 5,
        points=PLACES, title=HOSTILE, color_name=HOSTILE,
    )  # fmt: skip
    page = Page(path)
    assert [tag for tag, _ in page.tags].count("script") == 2  # the data, and the page's own
    assert not {"img", "iframe", "object", "embed"} & {tag for tag, _ in page.tags}
    policy = next(a["content"] for tag, a in page.tags if tag == "meta" and "http-equiv" in a)
    assert "default-src 'none'" in policy
    opened = Opened(browser, path)
    opened.page.mouse.move(*on_screen(opened, 4))
    opened.page.fill("#search", "script")
    assert opened.page.locator("#found").inner_text() == "5 found"
    assert "</script>" in opened.page.locator(".shown").inner_text()
    assert opened.page.locator("img").count() == 0
    assert opened.said == []
    opened.page.close()


# the command


def invoke(*arguments: Any) -> Any:
    return CliRunner().invoke(app, ["map", *map(str, arguments)])


def test_a_map_of_two_objects_tells_why_nothing_was_measured(tmp_path: Path) -> None:
    data, output = tmp_path / "d.csv", tmp_path / "m.html"
    data.write_text("sequence\n" + "".join(f"{word}\n" for word in WORDS[:2]))
    options = (data, "--text", "sequence", "--kernel", "Spectrum(k=2)", "-o", output)
    assert "trustworthiness and continuity need at least 3 objects" in " ".join(invoke(*options).output.split())
    assert "Trustworthiness and continuity need a map of at least 3 objects." in output.read_text()
    told = json.loads(invoke(*options, "--json").stdout)
    assert (told["trustworthiness"], told["continuity"]) == (None, None)


@pytest.mark.parametrize("label", ["kind", "{i}.5"])
def test_an_empty_label_is_no_class_of_the_map(label: str, tmp_path: Path) -> None:
    data, output = tmp_path / "d.csv", tmp_path / "m.html"
    rows = [f"{w},{label.format(i=i) if i else ''}\n" for i, w in enumerate(WORDS)]
    data.write_text("text,label\n" + "".join(rows))
    done = invoke(data, "--kernel", "Spectrum(k=2)", "-o", output)
    assert f"no labels, because 1 of {len(WORDS)} strings have none" in done.output
    assert Page(output).payload["labels"] is None
    data.write_text("text,label\n" + "".join(rows[1:]))
    assert invoke(data, "--kernel", "Spectrum(k=2)", "-o", output).exit_code == 0
    assert Page(output).payload["labels"] is not None


def test_command(tmp_path: Path) -> None:
    data, output, saved = tmp_path / "d.csv", tmp_path / "m.html", tmp_path / "m.similia"
    data.write_text("read,sequence,kind,gc\n" + "".join(f"r{i},{w},k{i % 2},0.{i}\n" for i, w in enumerate(WORDS)))
    options = (data, "--text", "sequence", "--id", "read", "-o", output)
    done = invoke(*options, "--color", "kind", "--kernel", "Spectrum(k=2)", "--save", saved)
    assert done.exit_code == 0, done.output
    assert "trustworthiness" in done.output
    page = Page(output)
    assert page.payload["names"] == [f"r{i}" for i in range(5)]
    assert (page.payload["color"], page.payload["keys"]) == ("kind", ["k0", "k1"])
    assert sm.load(saved).transform(WORDS).shape == (5, 2)
    assert invoke(*options, "--color", "gc", "--distance", "Levenshtein()").exit_code == 0
    assert Page(output).payload["range"] == ["0", "0.4"]
    for more, said in (
        (("--color", "kind", "--label", "kind"), "mean the same"),
        (("--kernel", "Spectrum(k=2)", "--distance", "DTW()"), "exclude each other"),
        (("--method", "umap"), "method must be 'landmarks' or 'neighbours'"),
        (("--kernel", "WeisfeilerLehman()"), "does not compare"),
        (("--color", "species"), "species"),
    ):
        assert said in str(invoke(*options, *more).exception)
    assert "end " in str(invoke(data, "--text", "sequence", "-o", tmp_path / "m.png").exception)


def test_several_attributes_of_graphs_are_no_colours(tmp_path: Path) -> None:
    folder, output = tmp_path / "T", tmp_path / "m.html"
    folder.mkdir()
    for name, lines in {
        "A": [f"{i}, {i + 1}" for i in range(1, 12, 2)], "graph_indicator": [i // 2 + 1 for i in range(12)],
        "graph_attributes": [f"{i}, {i + 1}" for i in range(6)],
    }.items():  # fmt: skip
        (folder / f"T_{name}.txt").write_text("".join(f"{line}\n" for line in lines))
    assert invoke(folder, "-o", output).exit_code == 0
    assert Page(output).payload["labels"] is None
