"""Bad input through the whole pipeline, from objects to predictions: one sentence, and nothing half-written."""

from __future__ import annotations

import datetime
import inspect
import re
import warnings
from functools import partial

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

import similia as sm
from similia import kernels
from similia.core.validation import BadValue, check_vectors
from similia.distances import Levenshtein

STRINGS = ["ACGT", "AC", "", "GGT"] * 2
GRAPHS = [
    nx.empty_graph(0),
    nx.empty_graph(1),
    nx.empty_graph(4),
    nx.path_graph(3),
    nx.cycle_graph(3),
    nx.star_graph(3),
]
VECTORS = np.random.default_rng(0).normal(size=(8, 3))
LABELS = [0, 1] * 4
EDGE = np.array([[0], [1]])


def nyshd(kernel, **parameters):
    return sm.recipes.nyshd(kernel, n_bits=parameters.pop("n_bits", 64), random_state=0, **parameters)


def one_sentence(raised):
    text = str(raised.value)
    assert "\n" not in text
    assert len(text) < 400


# ---- input that is refused: (kernel, X, y, error, sentence)


def giving(values):
    """A kernel that gives `values` whatever it is asked."""
    return lambda X, Y: values


STRING, GRAPH = kernels.Spectrum(k=2), kernels.WeisfeilerLehman(n_iter=1)
NAN_ATTRIBUTES = {"edge_index": EDGE, "n_nodes": 2, "node_attributes": np.array([[0.0], [np.nan]])}
REFUSED = {
    "no strings": (STRING, [], [], ValueError, "X is empty: found 0 strings"),
    "no graphs": (GRAPH, [], [], ValueError, "X is empty: found 0 graphs"),
    "one string": (STRING, "ACGT", LABELS[:4], TypeError, r"one string, 'ACGT', .*; write \[x\]"),
    "one graph": (GRAPH, nx.path_graph(4), LABELS[:4], TypeError, r"one Graph, .*write \[graph\]"),
    "number among strings": (STRING, ["A", "C", 3, "G"], LABELS[:4], TypeError, r"X\[2\] is int \(3\), expected str"),
    "missing string": (STRING, ["A", "C", None, "G"], LABELS[:4], TypeError, r"X\[2\] is missing \(None\)"),
    "bytes among strings": (STRING, ["A", b"C"], [0, 1], TypeError, r"X\[1\] is bytes among str"),
    "array among strings": (STRING, ["A", np.eye(9)], [0, 1], TypeError, r"X\[1\] is ndarray \(array\(\[\["),
    "string among graphs": (GRAPH, [nx.path_graph(2), "A"], [0, 1], TypeError, "graph 1 is str"),
    "arc to nowhere": (GRAPH, [(EDGE, 2), (EDGE, 1)], [0, 1], ValueError, r"graph 1, arc 0 joins nodes \[0, 1\]"),
    "NaN attributes": (kernels.Propagation(), [NAN_ATTRIBUTES], [0], ValueError, "graph 0, node 1 .* NaN"),
    "too few labels": (STRING, STRINGS, LABELS[:-1], ValueError, "y has 7 labels for 8 objects"),
    "no labels": (STRING, STRINGS, None, ValueError, "requires y to be passed, but the target y is None"),
    "pairs of labels": (STRING, STRINGS, [[0, 1]] * 8, ValueError, r"shape \(8,\).*got shape \(8, 2\)"),
    "ragged labels": (STRING, STRINGS, [[0, 1]] * 7 + [[1]], ValueError, r"one label.*sequences of different lengths"),
    "NaN label": (STRING, STRINGS, [0.0, 1.0, 0.0, np.nan] * 2, ValueError, r"y\[3\] is nan"),
    "one class": (STRING, STRINGS, [1] * 8, ValueError, r"y holds one class, \[1\]"),
    "nothing in common": (STRING, ["", "A", "C"], [0, 1, 1], ValueError, "landmarks are 0: .* shorter than k"),
    "edges of none": (kernels.EdgeHistogram(), GRAPHS[:3], [0, 1, 1], ValueError, "graphs without edges"),
    "class of kernels": (kernels.Spectrum, STRINGS, LABELS, TypeError, r"the class Spectrum, .*Spectrum\("),
    "a distance": (Levenshtein(), STRINGS, LABELS, TypeError, r"Levenshtein\(\) is a distance, expected a kernel"),
    "no kernel": (3, STRINGS, LABELS, ValueError, "kernel must be a callable"),
    "kernel gives NaN": (giving(np.full((8, 8), np.nan)), VECTORS, LABELS, ValueError, "is nan, expected a finite"),
    "kernel gives a row": (giving(np.ones(8)), VECTORS, LABELS, ValueError, r"returned shape \(8,\) for 8 x 8"),
    "kernel gives ragged rows": (giving([[1.0], [1.0] * 8]), VECTORS, LABELS, ValueError, "rows of one length"),
    "kernel gives text": (giving(np.full((8, 8), "a")), VECTORS, LABELS, TypeError, "values of dtype <U1"),
    "kernel gives nothing": (giving(None), VECTORS, LABELS, TypeError, "values of dtype object"),
    "kernel with a direction": (giving(np.arange(64.0).reshape(8, 8)), VECTORS, LABELS, ValueError, "is not symmetric"),
}  # fmt: skip


BOTH = [sm.HDBSCAN, sm.NearestNeighbors, sm.OutlierDetector, sm.KernelKMeans, sm.SimilarityMap]


@pytest.mark.parametrize("estimator", BOTH)
@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("levenshtein", "did you mean similia.distances.Levenshtein()?"),
        ("spectrm", "did you mean similia.kernels.Spectrum()?"),
        ("cosine", "did you mean similia.kernels.Cosine()?"),
        ("Normalized", "did you mean similia.kernels.Normalized(...)?"),
        ("euclidean", "write similia.distances.FromFunction(cdist, pairwise=True), with cdist of scipy.spatial.dis"),
        ("minkowski", "similia.distances.FromFunction(functools.partial(cdist, metric='minkowski'), pairwise=True)"),
        (Levenshtein, "write Levenshtein(...)"),
        ("quux", "'quux'"),
    ],
)
def test_a_name_in_place_of_a_similarity_is_spelled_out(estimator, name, advice):
    with pytest.raises((TypeError, ValueError), match=re.escape(advice)) as raised:
        estimator(name).fit(STRINGS)
    assert ("did you mean" in str(raised.value)) == advice.startswith("did")


@pytest.mark.parametrize(
    ("estimator", "advice"),
    [
        (sm.KernelSVC("spectrum"), "did you mean similia.kernels.Spectrum()?"),
        (sm.Nystroem("spectrum"), "did you mean similia.kernels.Spectrum()?"),
        (sm.D2KE("dtw"), "did you mean similia.distances.DTW()?"),
    ],
)
def test_so_is_that_of_a_kernel_or_a_distance(estimator, advice):
    with pytest.raises((TypeError, ValueError), match=re.escape(advice)):
        estimator.fit(STRINGS, LABELS)


@pytest.mark.parametrize("case", REFUSED)
def test_fit_refuses_and_leaves_the_model_as_it_was(case):
    kernel, X, y, error, sentence = REFUSED[case]
    model = nyshd(STRING).fit(STRINGS, LABELS)
    before = model.predict(STRINGS)
    model.set_params(nystroem__kernel=kernel)
    with pytest.raises(error, match=sentence) as raised:
        model.fit(X, y)
    one_sentence(raised)
    model.set_params(nystroem__kernel=STRING)
    np.testing.assert_array_equal(model.predict(STRINGS), before)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"n_bits": 100}, "n_bits must be a multiple of 8 .*, got 100; use n_bits=104"),
        ({"n_bits": 0}, "n_bits must be an integer >= 1"),
        ({"landmarks": [0, 8]}, "landmark index 8 is out of range, expected 0 to 7"),
        ({"landmarks": "best"}, "landmarks='best' is unknown"),
        ({"init": "ones"}, "init must be 'zeros' or 'bundle', got 'ones'"),
        ({"max_iter": 0}, "max_iter=0 learns nothing"),
    ],
)
def test_parameters_out_of_range(parameters, sentence):
    with pytest.raises(ValueError, match=sentence) as raised:
        nyshd(STRING, **parameters).fit(STRINGS, LABELS)
    one_sentence(raised)


@pytest.mark.parametrize(
    ("X", "error", "sentence"),
    [
        ([], ValueError, "X is empty: found 0 strings"),
        ("ACGT", TypeError, r"one string, 'ACGT', .*; write \[x\]"),
        (["A", 1], TypeError, r"X\[1\] is int"),
        ([nx.path_graph(2)], TypeError, r"X\[0\] is Graph"),
    ],
)
def test_predict_refuses(X, error, sentence):
    with pytest.raises(error, match=sentence) as raised:
        nyshd(STRING).fit(STRINGS, LABELS).predict(X)
    one_sentence(raised)


def with_flags():
    """Return (class, parameter) for each parameter of a public estimator, kernel or distance that is a bool."""
    rooms = (sm, sm.kernels, sm.distances, sm.learn, sm.search, sm.codes, sm.embeddings, sm.objects)
    classes = {getattr(room, name) for room in rooms for name in room.__all__}
    classes = {cls for cls in classes if isinstance(cls, type) and issubclass(cls, BaseEstimator)}
    return [
        (cls, name)
        for cls in sorted(classes, key=lambda cls: cls.__name__)
        for name, parameter in inspect.signature(cls).parameters.items()
        if isinstance(parameter.default, bool)
    ]


@pytest.mark.parametrize(("cls", "name"), with_flags(), ids=lambda part: getattr(part, "__name__", part))
def test_a_word_in_place_of_true_or_false_is_refused(cls, name):
    needed = [p.name for p in inspect.signature(cls).parameters.values() if p.default is p.empty]
    owner = cls(**dict.fromkeys(needed, STRING), **{name: "no"})
    reads = next(method for method in ("as_objects", "fit", "complete") if hasattr(owner, method))
    with pytest.raises(ValueError, match=f"^{name} must be True or False, got 'no'$"):
        getattr(owner, reads)(STRINGS)


def test_kernels_of_users_may_keep_a_flag_under_another_name_and_read_objects_without_self():
    class Own(kernels.Kernel):
        def __init__(self, flag=True):
            self._flag = flag

        @staticmethod
        def as_objects(X):
            return [x.lower() for x in X]

    assert sm.similarity.as_objects(Own(), ["A", "b"]) == ["a", "b"]


def test_kernels_called_by_themselves_refuse_it_too_and_numpys_bools_are_taken():
    with pytest.raises(ValueError, match=r"^normalize must be True or False, got 'no'$"):
        kernels.MinMax(kernels.Spectrum(k=2, normalize="no"))(STRINGS)
    found = kernels.Spectrum(k=2, normalize=np.bool_(True))(STRINGS)
    np.testing.assert_array_equal(found, kernels.Spectrum(k=2, normalize=True)(STRINGS))


@pytest.mark.parametrize("estimator", [sm.NearestNeighbors(sm.kernels.RBF()), sm.search.VectorIndex(), sm.HeatSVC()])
@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        ([[1.0, 2.0], [3.0, 4.0, 5.0]], r"X\[1\] has the shape \(3,\), unlike X\[0\] of shape \(2,\)"),
        ([[[1.0], [1.0, 2.0]], [[1.0], [2.0]]], "X has rows of different lengths"),
    ],
)
def test_rows_that_are_no_vectors(estimator, X, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence) as raised:
        estimator.fit(X, [0, 1]) if hasattr(estimator, "predict") else estimator.fit(X)
    one_sentence(raised)


def test_errors_name_the_model_that_was_called_and_not_the_kernel_inside():
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    both = kernels.Sum([kernels.WeisfeilerLehman(), kernels.VertexHistogram()])
    graphs = [{**graph, "node_labels": [1] * graph["n_nodes"]} for graph in (with_nodes(n) for n in (2, 3, 4, 5))]
    models = {
        "KernelSVC": sm.KernelSVC(both),
        "KNeighborsClassifier": sm.KNeighborsClassifier(both, 1),
        "Pipeline": make_pipeline(sm.Nystroem(both, 2, random_state=0), LinearSVC()),
    }
    for name, model in models.items():
        model.fit(graphs, LABELS[:4])
        mixed = f"^{name} would compare degrees of unlabelled nodes of X with node labels of the training objects;"
        for call in (model.predict, lambda X: sm.explain(model, X[0])):  # noqa: B023
            with pytest.raises(ValueError, match=mixed):
                call([with_nodes(3)])
        with pytest.raises(TypeError, match=rf"^x is not an object that {name} compares \(3\): "):
            sm.explain(model, 3)
    with pytest.raises(ValueError, match=r"^Sum would compare node labels of X with .* of Y;"):
        both(graphs, [with_nodes(3)])


def with_nodes(n):
    return {"edge_index": EDGE, "n_nodes": n}


def test_a_class_that_comes_later_is_named():
    model = nyshd(STRING, update="averaged").fit(STRINGS, LABELS)
    codes, prototypes = model[:-1].transform(STRINGS), model[-1].prototypes_.copy()
    with pytest.raises(ValueError, match=r"y\[1\] is 7, not one of the classes \[0, 1\]") as raised:
        model[-1].partial_fit(codes, [0, 7] * 4)
    one_sentence(raised)
    np.testing.assert_array_equal(model[-1].prototypes_, prototypes)


# ---- a function of two objects where one of two collections is called


def shared(x, y):
    """Letters that two strings have in common; a list of strings fails obscurely."""
    return float(len(set(x.lower()) & set(y.lower())))


def apart(x, y):
    return float(len(set(x.lower()) ^ set(y.lower())))


def same_length(x, y):
    """Collections give one number, of no meaning."""
    return len(x) == len(y)


def lengths_apart(x, y):
    return abs(len(x) - len(y))


OF_KERNELS = {
    "recipes.nyshd": nyshd,
    "Nystroem": lambda f: sm.Nystroem(kernel=f, n_components=3),
    "KernelSVC": sm.learn.KernelSVC,
    "KernelRidge": sm.learn.KernelRidge,
    "KernelSVR": sm.learn.KernelSVR,
    "GaussianProcessRegressor": sm.GaussianProcessRegressor,
    "GaussianProcessClassifier": sm.GaussianProcessClassifier,
    "KernelKMeans": lambda f: sm.KernelKMeans(f, 2),
    "Normalized": lambda f: sm.Nystroem(kernels.Normalized(f), 3),
}
OF_DISTANCES = {
    "recipes.d2ke": lambda f: sm.recipes.d2ke(f, objects=STRINGS),
    "D2KE": lambda f: sm.D2KE(distance=f, objects=STRINGS),
    "KNeighborsClassifier": sm.learn.KNeighborsClassifier,
    "DistanceRBF": lambda f: sm.Nystroem(kernels.DistanceRBF(f), 3),
}


@pytest.mark.parametrize(
    ("model", "function"),
    [(model, function) for model in OF_KERNELS for function in (shared, same_length)]
    + [(model, function) for model in OF_DISTANCES for function in (apart, lengths_apart)],
)
def test_a_function_of_two_objects_is_told_and_lifted(model, function):
    make = (OF_KERNELS | OF_DISTANCES)[model]
    with pytest.raises((TypeError, ValueError), match=rf"{function.__name__}.*wrap.* similia\.") as raised:
        make(function).fit(STRINGS, LABELS)
    one_sentence(raised)
    lift = sm.pairwise if model in OF_KERNELS else sm.distances.FromFunction
    make(lift(function)).fit(STRINGS, LABELS)


def test_only_a_function_that_is_one_of_two_objects_is_called_one():
    def broken(X, Y=None):
        raise RuntimeError("a fault of its own")

    def full(X, Y=None):
        if len(X) > 1:
            raise MemoryError("a gigabyte more is needed")
        return 1.0

    def of_collections(X, Y=None):
        return np.array([[float(x == y) for y in (X if Y is None else Y)] for x in X])

    for function, error in ((broken, RuntimeError), (full, MemoryError)):
        with pytest.raises(error, match=r"a fault of its own|a gigabyte more"):
            sm.Nystroem(function, 3).fit(["ab", "abc", "a"])
    assert sm.Nystroem(of_collections, 3).fit(["ab", "abc", "a"]).transform(["ab"]).shape == (1, 3)


# ---- input that is unusual, and welcome: finite all the way to the predictions


def check_finite_all_the_way(model, X, y, others):
    model.fit(X, y)
    embedding, codes = model[0].transform(others), model[:-1].transform(others)
    assert np.isfinite(embedding).all()
    assert codes.shape == (len(others), 8)
    assert np.isfinite(model.decision_function(others)).all()
    assert set(model.predict(others)) <= set(y)
    return embedding


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("kernel", ["Spectrum", "GappyKmers", "Mismatch", "WeightedDegree"])
def test_empty_strings_are_objects(kernel, normalize):
    model = nyshd(getattr(kernels, kernel)(normalize=normalize))
    embedding = check_finite_all_the_way(model, ["ACGTAC", "ACGTT", "", "GGTACC"] * 2, LABELS, ["", "GTACG"])
    assert not embedding[0].any()  # similar to nothing, even where it is a landmark


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize(
    "kernel", ["VertexHistogram", "EdgeHistogram", "WeisfeilerLehman", "ShortestPath", "Propagation"]
)
def test_graphs_without_nodes_or_edges_are_objects(kernel, normalize):
    model = nyshd(getattr(kernels, kernel)(normalize=normalize))
    embedding = check_finite_all_the_way(model, GRAPHS, [0, 1] * 3, GRAPHS)
    assert not embedding[0].any()  # the graph without nodes
    assert sm.GraphHDEncoder(n_bits=64, random_state=0).fit_transform(GRAPHS).shape == (6, 8)


@pytest.mark.parametrize("landmarks", ["uniform", "kmeans++", "leverage", "rpcholesky", "adaptive", "ensemble"])
def test_equal_objects_are_one_landmark(landmarks):
    model = nyshd(STRING, n_landmarks=8, landmarks=landmarks)
    check_finite_all_the_way(model, ["ACGT"] * 8, LABELS, ["ACGT", "ACGG", "", "TT"])
    assert model[0].rank_ >= 1
    assert len(set(map(bytes, model[:-1].transform(["ACGT"] * 3)))) == 1


def minus_distance(X, Y):
    return -np.abs(X[:, :1] - Y[:, 0])


@pytest.mark.parametrize("spectrum", ["clip", "flip", "shift"])
def test_an_indefinite_similarity_is_made_definite(spectrum):
    model = nyshd(minus_distance).set_params(nystroem__spectrum=spectrum)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_finite_all_the_way(model, VECTORS, LABELS, VECTORS)
    assert [str(w.message)[:40] for w in caught] == ["the kernel is not positive semi-definite"] * (spectrum == "clip")


def test_an_indefinite_similarity_is_refused_if_asked():
    model = nyshd(minus_distance).set_params(nystroem__spectrum="raise")
    with pytest.raises(ValueError, match=r'not positive semi-definite.*pass spectrum="clip"') as raised:
        model.fit(VECTORS, LABELS)
    one_sentence(raised)


# ---- anything at all

ATOMS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.complex_numbers(), st.text(max_size=200),
    st.binary(max_size=9), st.just(np.eye(3)), st.just(np.float32(1)), st.just(nx.path_graph(3)), st.just(object),
    st.just((EDGE, 2)), st.just(range(3)), st.just(np.array("A")), st.just({"edge_index": EDGE}),
)  # fmt: skip
OBJECTS = st.one_of(
    ATOMS, st.lists(ATOMS, max_size=3), st.tuples(ATOMS, ATOMS), st.dictionaries(st.text(max_size=3), ATOMS, max_size=2)
)
STRINGY = st.lists(st.text("ACGT", max_size=9), max_size=8)
COLLECTIONS = st.one_of(st.lists(OBJECTS, max_size=8), STRINGY, OBJECTS)


@pytest.mark.filterwarnings("ignore:.* similarity 0 to all landmarks")
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(X=COLLECTIONS, y=st.one_of(COLLECTIONS, st.lists(st.integers(0, 2), max_size=8)), graphs=st.booleans())
def test_anything_is_learnt_from_or_refused_in_one_sentence(X, y, graphs):
    assume(not (graphs and isinstance(X, str)))  # a path: FileNotFoundError is right
    model = nyshd(GRAPH if graphs else STRING)
    try:
        model.fit(X, y)
    except (TypeError, ValueError) as error:
        text = str(error)
        assert 0 < len(text) < 400, text
        assert "\n" not in text, text
    else:
        assert len(model.predict(X)) == len(X)


@pytest.mark.filterwarnings("ignore:.* similarity 0 to all landmarks")
@settings(max_examples=50, deadline=None)
@given(X=STRINGY, y=st.lists(st.integers(0, 1) | st.sampled_from(["a", "b"]), max_size=8))
def test_strings_with_two_labels_are_learnt_from(X, y):
    X, y = [*X, "ACGT"], y[: len(X) + 1]
    model = nyshd(STRING)
    if len(y) != len(X) or len(set(y)) < 2 or len({type(label) for label in y}) > 1:
        with pytest.raises(ValueError, match=r"y has|y holds one class|labels of one type"):
            model.fit(X, y)
    else:
        assert set(model.fit(X, y).predict([*X, ""])) <= set(y)


@pytest.mark.parametrize(
    "estimator",
    [sm.SignRandomProjection(64), sm.ITQ(8), sm.GeneralizedNystroemPCA(1), sm.LevelEncoder(64)],
    ids=lambda estimator: type(estimator).__name__,
)
def test_strings_are_no_vectors(estimator):
    with pytest.raises(ValueError, match=r"^X (holds .*, expected|must hold) numbers"):
        estimator.fit(np.array([["read0", "1"], ["2", "3"]]), [0, 1])


@pytest.mark.parametrize(
    "fit",
    [
        lambda X, y: sm.D2KE(sm.distances.FromFunction(letters_apart), 8, random_state=0).fit(X),
        lambda X, y: sm.Nystroem(sm.pairwise(letters_in_common), 5, random_state=0).fit(X),
        lambda X, y: sm.KNeighborsClassifier(sm.distances.FromFunction(letters_apart)).fit(X, y),
        lambda X, y: sm.distances.FromFunction(letters_apart)(X),
        lambda X, y: sm.pairwise(letters_in_common)(X),
    ],
)
@pytest.mark.parametrize("whole", [list, tuple, lambda X: np.array(X, dtype=object)])
def test_a_missing_object_is_named_before_a_function_of_ones_own_meets_it(fit, whole):
    X = [set("abc"), set("abd"), set("xyz")] * 4
    X[7] = None
    with pytest.raises(ValueError, match=r"X\[7\] is missing \(None\)"):
        fit(whole(X), [0, 1, 1] * 4)


def test_vectors_of_numbers_too_large_for_float64():
    with pytest.raises(BadValue, match=r"^X\[1\] holds a number too large for float64, expected finite numbers"):
        check_vectors([[0, 1], [2, 10**400]])


def letters_apart(x, y):
    return 1.0 - letters_in_common(x, y)


def letters_in_common(x, y):
    return len(x & y) / len(x | y)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"n_jobs": 0}, "n_jobs must be a number of processes, or -1 for one for each core, got 0"),
        ({"n_jobs": 2.0}, "n_jobs must be a number of processes, or -1 for one for each core, got 2.0"),
        ({"max_memory": 0}, "max_memory must be a finite number of bytes, at least 1, got 0"),
        ({"max_memory": 0.5}, "max_memory must be a finite number of bytes, at least 1, got 0.5"),
        ({"max_memory": float("inf")}, "max_memory must be a finite number of bytes, at least 1, got inf"),
        ({"max_memory": float("nan")}, "max_memory must be a finite number of bytes, at least 1, got nan"),
        ({"max_memory": "1e400GB"}, "max_memory must be a finite number of bytes, at least 1, got inf"),
        ({"max_memory": "12 apples"}, "max_memory='12 apples' is not a size"),
        ({"max_memory": [1]}, "max_memory must be a finite number of bytes, at least 1, got [1]"),
    ],
)
def test_settings(changes, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)), sm.config(**changes):
        pass


# ---- what users write most often by mistake: the whole sentence
DNA = ["ACGTAC", "GGTACA", "ACGTTT", "CCGTAC"]
BIT_ENCODER = sm.SignRandomProjection(64, random_state=0)
SEARCH = sm.SimilaritySearch(make_pipeline(sm.Nystroem(STRING, 2, random_state=0), BIT_ENCODER))
UNFITTED = [
    (sm.Nystroem(STRING), "transform"),
    (sm.D2KE(Levenshtein(), 10), "transform"),
    (BIT_ENCODER, "transform"),
    (sm.HDClassifier(), "predict"),
    (sm.KNeighborsClassifier(Levenshtein()), "predict"),
    (sm.learn.KernelSVC(STRING), "predict"),
    (sm.GaussianProcessRegressor(STRING), "predict"),
    (sm.AutoClassifier(budget=1), "predict"),
    (sm.SimilarityMap(STRING), "transform"),
    (sm.HDBSCAN(STRING), "predict"),
    (nyshd(STRING), "predict"),
    (SEARCH, "kneighbors"),
]


@pytest.mark.parametrize(("estimator", "method"), UNFITTED, ids=lambda part: type(part).__name__)
def test_an_unfitted_estimator_asks_for_fit(estimator, method):
    X = np.zeros((4, 8), np.uint8) if isinstance(estimator, sm.HDClassifier) else DNA
    X = VECTORS if estimator is BIT_ENCODER else X
    with pytest.raises(NotFittedError) as raised:
        getattr(estimator, method)(X)
    assert str(raised.value) == f"this {type(estimator).__name__} is not fitted yet; call its fit first"


MISTAKES = {
    "a class for an object": (
        lambda: sm.Nystroem(kernels.Spectrum).fit(DNA),
        "kernel is the class Spectrum, expected an object that can be called; write Spectrum(...)",
    ),
    "a name for a kernel": (
        lambda: sm.Nystroem("spectrum").fit(DNA),
        "kernel must be a callable k(X, Y) -> (n, m) or \"precomputed\", got 'spectrum'; did you mean "
        "similia.kernels.Spectrum()?",
    ),
    "a kernel for a distance": (
        lambda: sm.D2KE(STRING, 10).fit(DNA),
        "Spectrum(k=2) is a kernel, whose values are large for similar objects; expected a distance, such as DTW()",
    ),
    "another strategy": (
        lambda: sm.Nystroem(STRING, 2, "kmean").fit(DNA),
        "landmarks='kmean' is unknown; choose one of ['uniform', 'kmeans++', 'leverage', 'rpcholesky', 'adaptive', "
        "'ensemble']",
    ),
    "no landmark": (lambda: sm.Nystroem(STRING, 0).fit(DNA), "n_components must be an integer >= 1, got 0"),
    "nothing": (lambda: sm.Nystroem(STRING).fit([]), "X is empty: found 0 strings, expected at least one"),
    "one string": (lambda: STRING("ACGT"), "X is one string, 'ACGT', expected a collection of strings; write [x]"),
    "numbers": (lambda: STRING([1, 2]), "X[0] is int (1), expected str or bytes; convert numbers with str()"),
    "strings for series": (lambda: sm.distances.DTW()(DNA), "series 0 is 'ACGTAC', expected an array of numbers"),
    "other columns": (
        lambda: sm.SignRandomProjection(64).fit(VECTORS).transform(VECTORS[:, :2]),
        "X has 2 features, but SignRandomProjection is expecting 3 features as input, as in fit",
    ),
    "too few labels": (
        lambda: nyshd(STRING).fit(DNA, [0, 1, 0]),
        "y has 3 labels for 4 objects; give one label per object",
    ),
    "one class": (lambda: nyshd(STRING).fit(DNA, list("aaaa")), "y holds one class, ['a'], expected two or more"),
    "a small class": (
        lambda: sm.AutoClassifier(budget=1).fit([*DNA, "ACG", "CGT", "GGT", "TTT"], list("aaaaaaab")),
        "class 'b' has 1 object; cross-validation needs two classes of at least 3 objects each, or four of at least 2; "
        "give more objects of the small classes",
    ),
    "no budget": (
        lambda: sm.AutoClassifier(budget=-1).fit(DNA, [0, 1, 0, 1]),
        "budget must be a positive number of seconds or None, got -1",
    ),
    "too many neighbours": (
        lambda: SEARCH.fit(DNA).kneighbors(DNA, 9),
        "n_neighbors=9 is more than the 4 objects; ask for fewer, or add more",
    ),
    "no model": (
        lambda: sm.load("no.similia"),
        "no model at no.similia; similia.save(model, path) or similia fit writes one",
    ),
    "no data set": (
        lambda: sm.datasets.fetch("MUTAGG"),
        "unknown data set 'MUTAGG' (did you mean MUTAG?); similia.datasets.available() lists them",
    ),
    "no name": (
        lambda: kernels.Spectrm,
        "module 'similia.kernels' has no attribute 'Spectrm' (did you mean Spectrum?)",
    ),
    "a size": (
        lambda: sm.config(max_memory="lots").__enter__(),
        "max_memory='lots' is not a size; write a number of bytes or, e.g., '512MiB'",
    ),
    "own function": (
        lambda: sm.distances.FromFunction(lambda a, b: "x")(DNA),
        "<lambda> returned str for the pair (0, 0), expected one real number",
    ),
    "no number": (
        lambda: sm.GaussianProcessRegressor(STRING).fit(DNA, list("abab")),
        "y[0] is 'a', which is no number; correct it or drop that object; GaussianProcessRegressor predicts numbers, "
        "so take a classifier for labels",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_frequent_mistake_is_answered_in_one_sentence(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mistake, sentence = MISTAKES[name]
    with pytest.raises((ValueError, TypeError, OSError, AttributeError)) as raised:
        mistake()
    assert str(raised.value) == sentence


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize(
    ("column", "row", "sentence"),
    [
        ([1.5, None, 2.5], 1, "holds NaN or infinity, expected finite numbers; drop or impute that row"),
        (["1.5", "east", "2"], 1, "holds 'east', expected numbers; drop the column, or encode it"),
    ],
)
def test_an_error_about_a_data_frame_names_the_column(library, column, row, sentence):
    frame = pytest.importorskip(library).DataFrame({"height": [1.0, 2.0, 3.0], "region": column})
    with pytest.raises(BadValue, match=rf"^X\[{row}\], column 'region' {re.escape(sentence)}"):
        check_vectors(frame)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize(
    "read",
    [check_vectors, kernels.RBF(1.0), kernels.Cosine(), sm.LevelEncoder(64).fit, sm.ITQ(8).fit],
    ids=["vectors", "RBF", "Cosine", "LevelEncoder", "ITQ"],
)
def test_dates_beside_numbers_are_no_numbers(library, read):
    day = datetime.date(2020, 1, 1)
    frame = pytest.importorskip(library).DataFrame({"a": [1.0, 2.0], "day": [day, day], "last": [0.5, 1.0]})
    sentence = "X[0], column 'day' holds '2020-01-01', expected numbers; drop the column, or encode it, for example "
    with pytest.raises((ValueError, TypeError)) as raised:
        read(frame)
    if library == "polars" or read is check_vectors:
        assert str(raised.value) == sentence + "with scikit-learn's OneHotEncoder in a ColumnTransformer"


def test_times_of_polars_are_refused_wherever_they_are():
    polars = pytest.importorskip("polars")
    for values, sentence in (
        ([None, datetime.time(1)], r"X\[0\], column 't' is missing"),
        ([datetime.timedelta(1), None], r"X\[0\], column 't' holds '1 day, 0:00:00'"),
        ([datetime.datetime(2020, 1, 1)] * 2, r"X\[0\], column 't' holds '2020-01-01 00:00:00'"),
    ):
        for frame in (polars.DataFrame({"t": values}), polars.DataFrame({"t": values, "x": [1, 2]})):
            with pytest.raises(BadValue, match=sentence):
                check_vectors(frame)
    check_vectors(polars.DataFrame({"x": [1, 2], "y": [0.5, 1.0]}))


def test_frames_with_any_index_and_tables_of_arrow_name_the_column():
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"a": [1.0, 2.0], "b": [3.0, np.nan]}, index=[7.5, 0.25])  # a slice would go by labels
    for X in (frame, arrow.table({"a": [1.0, 2.0], "b": [3.0, np.nan]})):
        with pytest.raises(BadValue, match=r"^X\[1\], column 'b' holds NaN or infinity"):
            check_vectors(X)


OTHER_COLUMNS = {  # than a, b, c: the sentence of a model called M
    "ab": "lacks the column 'c', to which M was fitted",
    "abd": "lacks the column 'c', to which M was fitted, and has the column 'd', to which it was not fitted",
    "abcd": "has the column 'd', to which M was not fitted",
    "cba": "has the columns to which M was fitted, but in another order",
    "adefghij": "lacks the columns 'b', 'c', to which M was fitted, "
    "and has the columns 'd', 'e', 'f', 'g' … 'j', to which it was not fitted",
}


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize(
    ("model", "called"),
    [
        (sm.KernelRidge(kernels.RBF()), "KernelRidge"),
        (nyshd(kernels.RBF(), n_landmarks=5), "Nystroem"),
        (sm.HeatSVC(1.0, 1.0), "HeatSVC"),
        (sm.embeddings.FeatureWeights(), "FeatureWeights"),
        (sm.SignRandomProjection(64), "SignRandomProjection"),
        (sm.SimilaritySearch(sm.SignRandomProjection(64)), "SignRandomProjection"),
        (sm.SimilaritySearch(sm.SignRandomProjection(64), kernels.Cosine()), "SimilaritySearch"),
        (sm.SimilaritySearch(sm.MinHash(n_hashes=64), "kernel"), "SimilaritySearch"),
        (sm.SimilaritySearch("auto", kernels.RBF(1.0)), "SimilaritySearch"),
        (sm.search.FeatureIndex(kernels.MinMax()), "FeatureIndex"),
        (sm.SimilaritySearch(sm.search.FeatureIndex(kernels.MinMax())), "FeatureIndex"),
        (sm.SimilaritySearch("auto", kernels.MinMax()), "SimilaritySearch"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_columns_that_are_missing_or_new_are_named(library, model, called):
    def frame(names):
        values = np.random.default_rng(0).random((8, len(names)))
        return pytest.importorskip(library).DataFrame({name: values[:, j] for j, name in enumerate(names)})

    names = ("predict", "transform", "kneighbors")
    use = next(getattr(model, name) for name in names if hasattr(model, name))
    use = partial(use, n_neighbors=1, return_distance=False) if hasattr(model, "kneighbors") else use
    model.fit(frame("abc"), LABELS)
    assert model.feature_names_in_.tolist() == [*"abc"]
    assert len(use(frame("abc"))) == 8
    for call in (use, lambda X: use(X[:1]), *([model.add] if hasattr(model, "add") else [])):
        for columns, sentence in OTHER_COLUMNS.items():
            with pytest.raises(ValueError, match=r"^X ") as raised:
                call(frame(columns))
            first, theirs = str(raised.value).split("\n", 1)
            expected = sentence.replace("M ", f"{called} ")
            assert first == f"X {expected}; give the columns in model.feature_names_in_, in their order"
            assert theirs.startswith("The feature names should match those that were passed during fit.\n")


def test_a_name_of_two_columns_is_named():
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    model = sm.KernelRidge(kernels.RBF()).fit(pandas.DataFrame(VECTORS, columns=[*"abc"]), LABELS)
    found = "X has 2 columns named 'a', at positions 0 and 2 (counted from 0)"
    for frame in (pandas.DataFrame(VECTORS, columns=[*"aba"]), arrow.table([*VECTORS.T], names=[*"aba"])):
        for call in (model.predict, lambda X: model.fit(X, LABELS)):
            with pytest.raises(BadValue) as raised:
                call(frame)
            assert str(raised.value) == f"{found}; rename all but one of them, or leave them out"
    assert model.feature_names_in_.tolist() == [*"abc"]


def test_an_error_of_a_fit_says_nothing_of_the_columns_before():
    pandas = pytest.importorskip("pandas")
    model = sm.embeddings.FeatureWeights().fit(pandas.DataFrame(np.abs(VECTORS), columns=[*"abc"]))
    with pytest.raises(ValueError, match=r"^Input X contains NaN"):
        model.fit(pandas.DataFrame(VECTORS * np.nan, columns=[*"abd"]))


def test_missing_integers_and_dates_of_pandas_are_named_by_their_column():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0], "day": [datetime.date(2020, 1, 1)] * 2})
    with pytest.raises(
        BadValue, match=r"^X\[0\], column 'day' holds '2020-01-01', expected numbers; drop the column, or"
    ):
        check_vectors(frame)
    frame = pandas.DataFrame({"a": [1.0, 2.0], "n": pandas.array([1, None], dtype="Int64")})
    with pytest.raises(BadValue, match=r"^X\[1\], column 'n' is missing, expected numbers; drop or impute that row$"):
        check_vectors(frame)
