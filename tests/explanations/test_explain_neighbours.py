"""Decisions of nearest neighbours: parts are neighbours, and add up to what the model says."""

import re

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import euclidean_distances

import similia as sm

STRINGS = ["GATTACA", "ATTAC", "CCGCGG", "CGCGC", "TTACAT", "GCGC", "TATTAG", "GGCC", "ACATTA", "CGGCG"]
LABELS = np.array(list("abcbcabcab"))


@pytest.mark.filterwarnings("ignore:.* have similarity 0 to all training objects")  # of strings shorter than k
@settings(max_examples=30, deadline=None)
@given(st.text("ACGT", max_size=8), st.integers(1, 10), st.sampled_from(["uniform", "distance"]), st.booleans())
def test_the_votes_add_up_to_the_lead_of_the_class(x, k, weights, by_kernel):
    compare = sm.kernels.Spectrum(k=2) if by_kernel else sm.distances.Levenshtein()
    model = sm.KNeighborsClassifier(compare, k, weights).fit(STRINGS, LABELS)
    found = sm.explain(model, x, top=20)
    shares = model.predict_proba([x])[0]
    lead = np.sort(shares)[::-1]
    assert found.value == pytest.approx(lead[0] - lead[1], abs=1e-12)
    assert sum(part.contribution for part in found.parts) + found.residual == pytest.approx(found.value, abs=1e-12)
    assert found.residual == pytest.approx(0.0, abs=1e-12)
    assert f"for {model.predict([x])[0]} against " in found.title
    for part in found.parts:
        number = int(re.search(r"training object (\d+)", part.name)[1])
        assert part.name.startswith(f"{LABELS[number]}: ")
        assert number in model.kneighbors([x], return_distance=False)[0]


def test_of_one_class_there_is_nothing_to_explain():
    model = sm.KNeighborsClassifier(sm.distances.Levenshtein()).fit(["A", "C"], ["x", "x"])
    with pytest.raises(ValueError, match="fitted to one class, x"):
        sm.explain(model, "A")


def test_a_mean_is_that_of_the_targets():
    targets = np.arange(10.0) ** 2
    model = sm.KNeighborsRegressor(sm.distances.Levenshtein(), 4, "distance").fit(STRINGS, targets)
    found = sm.explain(model, "GATT")
    assert found.value == pytest.approx(model.predict(["GATT"])[0])
    assert sum(part.contribution for part in found.parts) == pytest.approx(found.value)
    with pytest.raises(ValueError, match="predicts 2 numbers, expected one"):
        sm.explain(model.fit(STRINGS, np.column_stack([targets, targets])), "GATT")


def test_a_column_of_targets_is_one_target():
    from sklearn.neighbors import KNeighborsRegressor

    X = np.random.default_rng(0).normal(size=(20, 2))
    flat, column = (sm.explain(KNeighborsRegressor(3).fit(X, y), X[0]) for y in (X[:, 0], X[:, :1]))
    assert [(part.name, part.contribution) for part in column.parts] == [
        (part.name, part.contribution) for part in flat.parts
    ]


def test_vectors_and_series_are_named_by_number():
    X = np.random.default_rng(0).normal(size=(10, 3))
    found = sm.explain(sm.KNeighborsClassifier(euclidean_distances, 1).fit(X, LABELS), X[4])
    assert [part.name for part in found.parts] == ["c: training object 4, at distance 0"]
    series = [np.sin(np.arange(5 + i)) for i in range(10)]
    found = sm.explain(sm.KNeighborsClassifier(sm.distances.DTW(), 1).fit(series, LABELS), series[2])
    assert [part.name for part in found.parts] == ["c: training object 2 (7 time points), at distance 0"]
    assert "training object 2" in found.to_html()


def test_the_nearest_object_is_explained_where_its_similarity_has_parts(tmp_path, capsys):
    from similia.cli import explain as command

    rings = [nx.cycle_graph(n) for n in (4, 5, 6, 7)]
    for ring in rings:
        nx.set_node_attributes(ring, {v: "N" if v == 0 else "C" for v in ring}, "label")
    x = rings.pop()
    graphs, y = [*rings, *(ring.subgraph([*ring][1:]) for ring in rings)], list("rrrppp")
    for kernel in (sm.kernels.MinMax(sm.kernels.WeisfeilerLehman()), sm.kernels.WeisfeilerLehman(normalize=True)):
        model = sm.KNeighborsClassifier(kernel, 3).fit(graphs, y)
        found = sm.explain(model, x)
        expected = sm.explain(kernel, x, rings[2])
        assert found.nearest.value == expected.value
        assert [part.name for part in found.nearest.parts] == [part.name for part in expected.parts]
        assert found.nearest.title.startswith("similarity of x and y, training object 2, by ")
        below = expected.to_text().split("\n", 1)[1]
        assert found.to_text().endswith(f"{found.nearest.title}: {expected.value:.4g}\n{below}")
        assert found.nearest.to_html() in found.to_html()
        assert "no parts" not in found.note
    edits = sm.KNeighborsClassifier(sm.distances.Levenshtein(), 1).fit(STRINGS, LABELS)
    assert [part.name for part in sm.explain(edits, "GATTAC").nearest.parts] == ["'A' in y only"]
    path, data = sm.save(edits, tmp_path / "model.similia"), tmp_path / "x.csv"
    data.write_text("text\nGATTAC\n")
    command.explain(path, str(data), {}, one="0")
    assert "distance of x and y, training object 0, by Levenshtein(): 1" in capsys.readouterr().out
    assert command.as_dict(sm.explain(edits, "GATTAC"))["nearest"]["parts"][0]["name"] == "'A' in y only"


def test_without_parts_a_note_says_that_what_is_shared_cannot_be_shown():
    model = sm.KNeighborsClassifier(sm.distances.JaroWinkler(), 1).fit(STRINGS, LABELS)
    found = sm.explain(model, "GATTAC")
    assert found.nearest is None
    assert found.note.endswith("JaroWinkler has no parts, so it cannot be shown how x resembles them")
    series = [np.sin(np.arange(1000 + i)) for i in range(10)]
    model = sm.KNeighborsClassifier(sm.distances.DTW(), 1).fit(series, LABELS)
    with sm.config(max_memory="1MiB"):
        found = sm.explain(model, series[2])
    assert found.nearest is None
    assert "it is not shown how x resembles the nearest one: the alignment of x and y" in found.note
