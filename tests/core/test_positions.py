"""Errors name objects by their numbers in the collection that the user gave, however it is cut."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import similia as sm
from similia.core.errors import BadPairType, BadPairValue, shifted, shifted_text
from similia.scale.stream import encode_stream
from similia.sources.streams import open_stream

BAD = 901
NUMBERS = [*range(1200)]


def distance_of(x, y):
    if BAD in (x, y):
        raise RuntimeError("no such thing")
    return float(abs(x - y))


def kernel_of(x, y):
    return float(np.exp(-distance_of(x, y) / 100))


distance, kernel = sm.distances.FromFunction(distance_of), sm.pairwise(kernel_of)
GOOD = [i for i in NUMBERS if i != BAD]
LANDMARKS = np.arange(0, 50)
ENCODER = make_pipeline(sm.Nystroem(kernel, landmarks=LANDMARKS), sm.SignRandomProjection(64, random_state=0))

CALLS = {
    "D2KE.fit": lambda: sm.D2KE(distance, 8, objects=NUMBERS[:80], random_state=0).fit(NUMBERS[BAD : BAD + 200]),
    "D2KE.transform": lambda: sm.D2KE(distance, objects=[1, 2], gamma=1.0).fit(GOOD).transform(NUMBERS),
    "Nystroem.transform": lambda: sm.Nystroem(kernel, landmarks=LANDMARKS).fit(GOOD).transform(NUMBERS),
    "KernelSVC.predict": lambda: sm.KernelSVC(kernel).fit(GOOD[:10], [0, 1] * 5).predict(NUMBERS),
    "KNeighborsClassifier": lambda: sm.KNeighborsClassifier(distance).fit(GOOD[:20], [0, 1] * 10).predict(NUMBERS),
    "PseudoEuclidean": lambda: sm.PseudoEuclidean(distance, 2).fit(GOOD[:20]).transform(NUMBERS),
    "sm.Pipeline": lambda: sm.Pipeline(ENCODER.steps).fit(GOOD).transform(NUMBERS),
    "search": lambda: (
        sm.SimilaritySearch(ENCODER, rerank=distance, n_candidates=5).fit(GOOD).kneighbors(NUMBERS[800:], 1)
    ),
}
NUMBERED = {"D2KE.fit": 0, "search": BAD - 800}


@pytest.mark.parametrize("memory", ["2KB", "1GiB"])
@pytest.mark.parametrize("name", CALLS)
def test_pairs_under_a_failing_function_are_numbered_in_the_whole(name, memory):
    if name == "search":
        memory = "1GiB" if memory == "1GiB" else "20KB"
    number = NUMBERED.get(name, BAD)
    with sm.config(max_memory=memory), pytest.raises(ValueError, match=rf"of failed for X\[{number}\] and \w+ "):
        CALLS[name]()


def test_pairs_of_drawn_objects_are_numbered_in_the_whole():
    calls = [
        lambda: sm.kernels.suggest_gamma(distance, NUMBERS, n=1199),
        lambda: sm.Nystroem(kernel, landmarks=[5, BAD, 7]).fit(NUMBERS),
        lambda: sm.Nystroem(kernel, n_components=3, landmarks="rpcholesky", random_state=0).fit(NUMBERS),
        lambda: sm.KernelSVC(kernel).fit(NUMBERS[:1000], [0, 1] * 500),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"of failed for X\[\d+\] and X\[\d+\]") as caught:
            call()
        assert BAD in caught.value.index


def test_an_error_of_a_pair_is_data():
    error = BadPairValue("f failed for", (3, 4), ": no")
    assert str(error) == "f failed for the pair (3, 4): no"
    assert str(error.renamed([30, 31, 32, 33], [40, 41, 42, 43, 44], "X[{}] and landmark {}")) == (
        "f failed for X[33] and landmark 44: no"
    )
    named = error.renamed(range(9), range(9), "X[{}] and X[{}]")
    assert named.shifted(10).index == (13, 14)
    assert str(named.renamed(range(100, 109), range(9), "X[{}] and object {}")) == "f failed for X[103] and X[4]: no"
    assert BadPairType("f", (0, 0), "").shifted(2).index == (2, 0)
    again = pickle.loads(pickle.dumps(named))
    assert (type(again), again.index, str(again)) == (BadPairValue, (3, 4), "f failed for X[3] and X[4]: no")
    assert isinstance(error, ValueError)
    assert isinstance(BadPairType("f", (0, 0), ""), TypeError)


def test_sentences_of_parts_are_shifted():
    assert shifted_text("graph 2 has no labels, but graph 0 has", 70) == "graph 72 has no labels, but graph 70 has"
    assert shifted_text("X[3] and landmark 4", 10) == "X[13] and landmark 4"
    assert shifted_text("Y, series 3 is short", 10) == "Y, series 3 is short"
    assert shifted_text("X[3] of 9", 10, n=3) == "X[3] of 9"
    assert str(shifted(ValueError("set 1 is bad"), 5)) == "set 6 is bad"
    other = KeyError("X[1]")
    assert shifted(other, 5) is other


RING = {"edge_index": np.array([[0, 1, 2], [1, 2, 0]]), "n_nodes": 3}
BAD_STREAMS = {
    "graphs": ([RING] * 77 + [{"edge_index": np.array([[0], [9]]), "n_nodes": 3}], r"graph 77\b"),
    "series": ([[1.0, 2.0]] * 77 + [[1.0, np.nan]], r"series 77, time point 1"),
    "shapes": ([np.ones(3)] * 77 + [np.ones((3, 1, 1))], r"series 77\b"),
    "strings": (["ACGT"] * 77 + [4], r"item 77\b"),
}


@pytest.mark.parametrize("kind", BAD_STREAMS)
def test_streams_name_objects_by_their_numbers_in_the_stream(kind):
    items, message = BAD_STREAMS[kind]
    for chunk in (10, 60, 1000):
        with pytest.raises((TypeError, ValueError), match=message):
            [*open_stream((item for item in items), chunk=chunk).chunks()]


def test_generators_of_arrays_may_be_series_sets_or_vectors():
    rng = np.random.default_rng(0)
    clouds = [rng.normal(size=(size, 2)) for size in (3, 1, 5, 2)]
    parts = [part.objects for part in open_stream((c for c in clouds), kind="sets", chunk=3).chunks()]
    assert [type(part) for part in parts] == [sm.objects.SetBatch] * 2
    distance = sm.distances.ModifiedHausdorff()
    np.testing.assert_array_equal(np.concatenate([distance(part, clouds) for part in parts]), distance(clouds))

    rows = rng.normal(size=(7, 4))
    parts = [part.objects for part in open_stream((row for row in rows), kind="vectors", chunk=3).chunks()]
    np.testing.assert_array_equal(np.concatenate(parts), rows)
    series = next(open_stream((row for row in rows), kind="series").chunks()).objects
    assert type(series) is type(next(open_stream(row for row in rows).chunks()).objects) is sm.objects.SeriesBatch


@pytest.mark.parametrize(
    ("items", "kind", "message"),
    [
        ([np.ones(3)] * 77 + [np.ones(4)], "vectors", r"item 77 has shape \(4,\), expected a vector of shape \(3,\)"),
        ([np.ones(3)] * 77 + [np.array([1.0, np.nan, 0.0])], "vectors", r"item 77 holds NaN"),
        ([np.ones((2, 2))] * 77 + [np.ones((2, 3))], "sets", r"set 77\b"),
        (["ACGT"], "sets", "this one holds strings; leave kind out"),
        ([np.ones(3)], "points", "kind must be"),
    ],
)
def test_a_wrong_item_or_kind_of_a_generator_is_refused(items, kind, message):
    with pytest.raises(ValueError, match=message):
        [*open_stream((item for item in items), kind=kind, chunk=10).chunks()]


def test_a_kind_is_not_for_files(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((2, 2)))
    with pytest.raises(ValueError, match="kind='sets' is for an iterable"):
        open_stream(tmp_path / "x.npy", kind="sets")


def with_attributes(last):
    return {**RING, "node_attributes": np.array([[0.0], [1.0], [last]])}


PAIR = {"edge_index": np.array([[0, 1], [1, 0]]), "n_nodes": 2}
NEGATIVE = {**RING, "edge_weights": np.array([1.0, -1.0, 1.0])}
LARGE = {"edge_index": np.array([[0], [1]]), "n_nodes": 4000}
SECOND = {
    "weights": (sm.kernels.Propagation(bin_width=1.0), [RING], [RING, NEGATIVE]),
    "attributes": (
        sm.kernels.Propagation(bin_width=1e-9), [with_attributes(1.0)], [with_attributes(1.0), with_attributes(1e300)]
    ),
    "samples": (sm.distances.MMD(3, 8, small="raise"), [RING], [RING, PAIR]),
    "subsets": (sm.kernels.Graphlet(7), [RING], [RING, LARGE]),
}  # fmt: skip


@pytest.mark.parametrize("name", SECOND)
def test_errors_of_the_second_collection_are_told_as_of_it(name):
    function, X, Y = SECOND[name]
    with pytest.raises(ValueError, match=r"^Y, ") as caught:
        function(X, Y)
    assert "graph 1" in str(caught.value) or name == "attributes"
    with pytest.raises(ValueError, match=r"^(?!Y)"):
        function(Y, X)


def test_blocks_of_graphs_are_numbered_in_the_whole():
    graphs = [RING] * 30 + [PAIR]
    with sm.config(max_memory="1KB"), pytest.raises(ValueError, match=r"^graph 30 has 2 nodes"):
        sm.distances.MMD(3, 8, small="raise")(graphs)


class Refusing(sm.kernels.WeisfeilerLehman):
    """A transformer of graphs that refuses small ones."""

    def transform(self, X):
        small = np.flatnonzero(np.diff(X.node_offsets) < 3)
        if len(small):
            raise ValueError(f"graph {small[0]} has 2 nodes, expected at least size=3")
        return np.zeros((len(X), 1))


def test_errors_of_a_model_name_graphs_by_their_numbers_in_the_stream(tmp_path):
    graphs = [RING] * 77 + [{"edge_index": np.array([[0], [1]]), "n_nodes": 2}]
    with pytest.raises(ValueError, match=r"^graph 77 has 2 nodes"):
        encode_stream(Refusing(), (graph for graph in graphs), tmp_path / "rows.npy", chunk=10)
