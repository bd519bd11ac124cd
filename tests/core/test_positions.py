"""Errors name objects by their numbers in the collection that the user gave, however it is cut."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import similia as sm
from similia.core.validation import (
    BadFile,
    BadItem,
    BadPairType,
    BadPairValue,
    BadParameter,
    BadType,
    BadValue,
    ObjectsWarning,
    as_second,
    check_vectors,
    part_from,
)  # fmt: skip
from similia.scale.stream import encode_stream
from similia.sources.dask import as_partitions
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


ITEM = BadValue(
    2, "has no labels, but {other} has", "labels", "give them to all", kind="graph", place="node 3", other=0
)


def test_an_error_of_an_item_is_data():
    assert str(ITEM) == "graph 2, node 3 has no labels, but graph 0 has, expected labels; give them to all"
    assert ITEM.about("it") == "it, node 3 has no labels, but graph 0 has, expected labels; give them to all"
    shifted = ITEM.shifted(70)
    assert (shifted.index, shifted.other, ITEM.index) == (72, 70, 2)
    assert str(shifted).startswith("graph 72, node 3 has no labels, but graph 70 has")
    assert str(BadType(3, "is bytes", "str")) == "X[3] is bytes, expected str"
    assert str(BadValue(None, "is empty", remedy="give one", collection="Y")) == "Y is empty; give one"
    assert str(ITEM.changed(collection="Y")).startswith("Y, graph 2, node 3 has no labels, but Y, graph 0 has")
    for error, kind in ((ITEM, ValueError), (BadType(3, "is bytes", "str"), TypeError)):
        assert isinstance(error, kind)
        assert isinstance(error, BadItem)


@pytest.mark.parametrize(
    "error",
    [ITEM, BadType(None, "is a dict", "a list"), BadParameter("k", "an integer >= 1", "0", "take 1"),
     BadFile("a.csv", "the label is missing; drop the line", at="line 3")],
)  # fmt: skip
def test_errors_that_are_data_can_be_pickled(error):
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), vars(again), str(again)) == (type(error), vars(error), str(error))


def test_sentences_of_parameters_and_files():
    assert str(BadParameter("k", "an integer >= 1", "0", "take 1")) == "k must be an integer >= 1, got 0; take 1"
    error = BadFile("a.csv", "the label is missing", at="line 3")
    assert str(error) == "a.csv, line 3: the label is missing"
    assert (error.path, error.at, error.found) == ("a.csv", "line 3", "the label is missing")
    assert str(BadFile("a.csv", "is empty")) == "a.csv is empty"


def test_only_items_of_x_are_shifted_by_the_start_of_a_part():
    def raised(error):
        with pytest.raises(type(error)) as caught, part_from(10):
            raise error
        return caught.value

    assert raised(BadValue(3, "is bad")).index == 13
    for error in (
        BadValue(3, "is bad", collection="Y"),
        BadValue(None, "is empty"),
        KeyError("X[1]"),
        ValueError("X[1]"),
    ):
        assert raised(error) is error
    assert raised(BadPairValue("f", (1, 2), "", "X[{}] and X[{}]")).index == (11, 12)


def test_the_second_collection_is_named():
    def read(Y):
        raise BadValue(1, "is bad", collection="labels" if Y else "X")

    with pytest.raises(BadValue) as caught:
        as_second(read, [])
    assert (caught.value.collection, str(caught.value)) == ("Y", "Y[1] is bad")
    with pytest.raises(BadValue, match=r"labels\[1\]"):
        as_second(read, [1])


def test_a_warning_of_objects_is_data():
    warning = ObjectsWarning(2, 5, "are alone", 1, "look at them")
    assert str(warning) == "2 of 5 objects are alone, e.g. X[1]; look at them"
    assert str(warning.shifted(20)) == "2 of the objects 20 to 24 are alone, e.g. X[21]; look at them"
    assert str(pickle.loads(pickle.dumps(warning.shifted(20)))) == str(warning.shifted(20))


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
        (["ACGT"], "sets", "this one holds strings; drop kind"),
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
    with pytest.raises(ValueError, match=r"^Y\b") as caught:
        function(X, Y)
    assert "graph 1" in str(caught.value) or name == "attributes"
    with pytest.raises(ValueError, match=r"^(?!Y)"):
        function(Y, X)


def test_blocks_of_graphs_are_numbered_in_the_whole():
    graphs = [RING] * 30 + [PAIR]
    with sm.config(max_memory="1KB"), pytest.raises(ValueError, match=r"^graph 30 has 2 nodes"):
        sm.distances.MMD(3, 8, small="raise")(graphs)


class Refusing(sm.kernels.WeisfeilerLehman):
    """A transformer of graphs that refuses small ones, by an error with data or in prose."""

    prose = False

    def transform(self, X):
        small = np.flatnonzero(np.diff(X.node_offsets) < 3)
        if len(small):
            found, expected = "has 2 nodes", "at least size=3"
            if self.prose:
                raise ValueError(f"graph {small[0]} {found}, expected {expected}")
            raise BadValue(small[0], found, expected, kind="graph")
        return np.zeros((len(X), 1))


def test_errors_of_a_model_name_graphs_by_their_numbers_in_the_stream(tmp_path):
    graphs = [RING] * 77 + [{"edge_index": np.array([[0], [1]]), "n_nodes": 2}]
    with pytest.raises(ValueError, match=r"^graph 77 has 2 nodes"):
        encode_stream(Refusing(), (graph for graph in graphs), tmp_path / "rows.npy", chunk=10)


def test_prose_of_a_model_is_located_in_the_stream(tmp_path):
    graphs = [RING] * 77 + [PAIR] + [RING] * 9
    model = Refusing()
    model.prose = True
    with pytest.raises(ValueError, match=r"^X\[77\]: graph 7 has 2 nodes"):
        encode_stream(model, (graph for graph in graphs), tmp_path / "rows.npy", chunk=10)


def cloud(value):
    return np.array([[value, 1.0], [0.0, 2.0]])


# good object, bad object, what compares them, kind of object in sentences
KINDS = {
    "strings": ("GATTACA", 4, sm.kernels.Spectrum(2), ""),
    "graphs": (RING, {"edge_index": np.array([[0], [9]]), "n_nodes": 3}, sm.kernels.WeisfeilerLehman(1), "graph"),
    "series": ([1.0, 2.0], [1.0, np.nan], sm.distances.DTW(), "series"),
    "sets": (cloud(1.0), cloud(np.inf), sm.distances.ModifiedHausdorff(), "set"),
    "vectors": (np.ones(3), np.array([1.0, np.nan, 0.0]), sm.kernels.HypersphericalHeat(t=0.1), ""),
}
WHERE = 12


def embedding(kind):
    good, _, compare, _ = KINDS[kind]
    objects = [good, good] if kind != "vectors" else np.stack([good, good])
    if kind in ("series", "sets"):
        return sm.D2KE(compare, objects=objects, gamma=1.0, random_state=0).fit(objects)
    return sm.Nystroem(compare, landmarks=[0]).fit(objects)


def with_bad(kind, n=16):
    good, bad, _, _ = KINDS[kind]
    items = [good] * WHERE + [bad] + [good] * (n - WHERE - 1)
    return np.stack(items) if kind == "vectors" else items


def in_stream(kind):
    items = with_bad(kind)
    named = kind if kind in ("series", "sets", "vectors") else None  # the others are known by their items
    return [*open_stream((item for item in items), kind=named, chunk=5).chunks()]


def in_partitions(kind):
    if kind == "vectors":
        X = pytest.importorskip("dask.array").from_array(with_bad(kind), chunks=(5, 3))
    else:
        X = pytest.importorskip("dask.bag").from_sequence([*with_bad(kind)], npartitions=4)
    parts = as_partitions(X).blocks(5).converted(embedding_reader(kind))
    return [*parts.map(length_of)]


def length_of(part, start):
    return len(part)


def embedding_reader(kind):
    return check_vectors if kind == "vectors" else KINDS[kind][2].as_objects


def in_blocks(kind):
    with sm.config(max_memory="1KB"):
        return embedding(kind).transform(with_bad(kind))


def in_pipeline(kind):
    with sm.config(max_memory="1KB"):
        return (
            sm.Pipeline([("vectors", embedding(kind)), ("bits", sm.SignRandomProjection(64))])
            .fit(with_bad(kind)[:4])
            .transform(with_bad(kind))
        )


def in_queries(kind):
    encoder = make_pipeline(embedding(kind), sm.SignRandomProjection(64, random_state=0))
    search = sm.SimilaritySearch(encoder).fit(with_bad(kind)[:WHERE])
    return search.kneighbors(with_bad(kind), 1)


@pytest.mark.parametrize("way", [in_stream, in_partitions, in_blocks, in_pipeline, in_queries])
@pytest.mark.parametrize("kind", KINDS)
def test_a_bad_object_is_named_by_its_place_in_the_whole(kind, way):
    with pytest.raises((TypeError, ValueError)) as caught:
        way(kind)
    error = caught.value
    assert isinstance(error, BadItem)
    assert (error.index, error.collection) == (WHERE, "X")
    assert error.kind == KINDS[kind][3] or (way is in_stream and error.kind == "item")
    assert str(error).startswith(f"{error.kind} {WHERE}" if error.kind else f"X[{WHERE}]")


@pytest.mark.parametrize("kind", KINDS)
def test_a_bad_object_of_the_second_collection_is_named_as_of_it(kind):
    items, compare = with_bad(kind), KINDS[kind][2]
    with sm.config(max_memory="1KB"), pytest.raises((TypeError, ValueError)) as caught:
        compare(items[:WHERE], items)
    assert (caught.value.index, caught.value.collection) == (WHERE, "Y")
    assert str(caught.value).startswith(("Y, ", f"Y[{WHERE}]"))


def sets_with(bad, n=10, size=4):
    sets = [np.abs(np.random.default_rng(i).normal(size=(size, 3))) + 0.1 for i in range(n)]
    if bad is not None:
        sets[bad][3] = 0
    return sets


MEANS, CLASSES = sm.kernels.MeanMap(sm.kernels.Cosine()), [0, 1] * 5
OF_POINTS = {
    "call": lambda bad: MEANS(bad),
    "second": lambda bad: MEANS(sets_with(None), bad),
    "tiles": lambda bad: MEANS(sets_with(7, size=100)),
    "diag": lambda bad: MEANS.diag(bad),
    "fit": lambda bad: sm.KernelSVC(MEANS).fit(bad, CLASSES),
    "predict": lambda bad: sm.KernelSVC(MEANS).fit(sets_with(None), CLASSES).predict(bad),
    "Nystroem": lambda bad: sm.Nystroem(MEANS, 10, random_state=0).fit(bad),
    "transform": lambda bad: sm.Nystroem(MEANS, 10, random_state=0).fit(sets_with(None)).transform(bad * 3),
}


@pytest.mark.parametrize("way", OF_POINTS)
def test_a_bad_point_is_named_by_its_set_and_its_place_in_it(way):
    with pytest.raises(BadValue) as caught:
        OF_POINTS[way](sets_with(7))
    error = caught.value
    assert (error.index, error.kind, error.place) == (7, "set", "point 3")
    assert error.collection == ("Y" if way == "second" else "X")


def test_a_pair_of_points_is_named_by_its_sets_and_its_places_in_them():
    kernel = sm.kernels.MeanMap(sm.kernels.Product([sm.kernels.Optical()] * 2))
    X, Y = [np.ones((2, 2))] * 3, [np.ones((5, 2))] * 4
    X[2], Y[3] = np.array([[1, 1], [1e45, 1]]), np.array([[1, 1]] * 4 + [[1e45, 1]])
    with pytest.raises(BadPairValue, match=r"of X\[2\] and Y\[3\] \(points 1 and 4\) exceeds the largest float64"):
        kernel(X, Y)


SERIES = [np.arange(5.0), np.ones(5), np.zeros(5), np.full(5, 2.0)]
GIVEN = [*SERIES, np.array([1.0, np.nan]), *SERIES]


@pytest.mark.parametrize(
    "call",
    [
        lambda: sm.kernels.FromDistance(sm.distances.DTW(), GIVEN)(SERIES),
        lambda: sm.KernelSVC(sm.kernels.FromDistance(sm.distances.DTW(), GIVEN)).fit(SERIES, [0, 1, 0, 1]),
        lambda: sm.D2KE(sm.distances.DTW(), objects=GIVEN).fit(SERIES),
    ],
)
def test_a_bad_object_of_a_parameter_is_not_one_of_x(call):
    with pytest.raises(ValueError, match=r"^objects, series 4, time point 1, channel 0 is nan"):
        call()


def test_a_bad_origin_is_not_an_object_of_y():
    kernel = sm.kernels.NegativeDistance(sm.distances.DTW(), origin=[1.0, np.nan])
    with pytest.raises(ValueError, match=r"^origin, series 0, time point 1, channel 0 is nan"):
        kernel(SERIES)


def test_a_number_that_a_function_made_itself_ends_in_its_own_error():
    def five_times(X, Y):
        return sm.kernels.Cosine()(np.repeat(X, 5, axis=0), np.repeat(Y, 5, axis=0))[::5, ::5]

    rows = np.array([[1.0, 2.0], [3.0, 1.0], [0.0, 0.0], [1.0, 1.0]])
    with pytest.raises(BadValue, match="is zero in all 2 columns"):
        sm.KernelSVC(five_times).fit(rows, [0, 1, 0, 1])
    for index in ((9, 0), (0, 9), (-1, 0)):
        error = BadPairValue("f failed for", index, "")
        assert error.renamed(range(4), range(4), "X[{}] and X[{}]") is error


def cosines(X, Y=None):
    """A kernel without diag, whose errors are data."""
    return sm.kernels.Cosine("sqrt")(X, Y)


ZERO_ROWS = np.where(np.arange(2000)[:, None] == 1500, 0.0, 1.0 + np.arange(6000).reshape(2000, 3) % 7)
OF_FUNCTIONS = {
    "diagonal": lambda: sm.Nystroem(cosines, 5, landmarks="kmeans++", random_state=0).fit(ZERO_ROWS),
    "suggest_gamma": lambda: sm.kernels.suggest_gamma(cosines, ZERO_ROWS, n=1999),
    "neighbours": lambda: sm.KNeighborsClassifier(sm.kernels.Cosine("sqrt")).fit(ZERO_ROWS[:9], [0, 1, 1] * 3).predict(
        ZERO_ROWS
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", OF_FUNCTIONS)
def test_objects_under_a_function_are_numbered_in_the_whole(way):
    with sm.config(max_memory="20KB" if way == "neighbours" else "1GiB"), pytest.raises(BadValue) as caught:
        OF_FUNCTIONS[way]()
    assert (caught.value.index, caught.value.collection) == (1500, "X")
