"""check_structured_estimator: our estimators on objects pass, and each law can fail with a sentence naming it."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
    clone,
)
from sklearn.ensemble import BaggingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.inspection import permutation_importance
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC, LinearSVC
from test_sklearn_checks import OTHERS, VECTORS, public_estimators

import similia as sm
from similia import distances, kernels, similarity
from similia.checks.laws import check_structured_estimator
from similia.codes import RecordEncoder
from similia.embeddings import Hydra, Representatives, SeriesVectors
from similia.learn.kernel_machines import KernelSVC
from similia.learn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from similia.objects import AttributeScaler, GraphToSets, SeriesToSets, as_graphs, as_series, as_strings, take
from similia.objects.transformers import FromColumn, as_column

STRINGS = ["GATTACA", "ATTAC", "CCGCGG", "CGCGC", "TTACAT", "GCGC", "TATTAG", "GGCC", "ACATTA", "CGGCG", "", "A"]
Y = np.array([0, 0, 1, 1, 0, 1, 0, 1, 0, 1, 0, 1])
_RNG = np.random.default_rng(0)
SERIES = [np.sin(np.arange(8 + i % 3) * (1 + i % 2)) + 0.1 * _RNG.normal(size=8 + i % 3) for i in range(12)]
SETS = [_RNG.normal(size=(3 + i % 3, 2)) + i % 2 for i in range(12)]
RECORDS = [(text, float(i)) for i, text in enumerate(STRINGS)]


def graph(i):
    """Return a path of 4 to 7 nodes, closed to a cycle where i is odd."""
    n = 4 + i % 4
    arcs = np.array([[j, j + 1] for j in range(n - 1)] + [[0, n - 1]] * (i % 2)).T
    edges = np.concatenate([arcs, arcs[::-1]], axis=1)
    attributes = np.arange(float(n))[:, None] + i
    return {"edge_index": edges, "n_nodes": n, "node_labels": np.arange(n) % 3, "node_attributes": attributes}


GRAPHS = [graph(i) for i in range(12)]
SPECTRUM, WL = kernels.Spectrum(k=2), kernels.WeisfeilerLehman(n_iter=1)
CODES = make_pipeline(sm.Nystroem(SPECTRUM, 4), sm.SignRandomProjection(64))

CASES = {
    "Nystroem": (sm.Nystroem(SPECTRUM, 4), STRINGS),
    "Nystroem, nested": (sm.Nystroem(kernels.Sum([kernels.Normalized(SPECTRUM), SPECTRUM]), 4, "leverage"), STRINGS),
    "Nystroem of graphs": (sm.Nystroem(WL, 4), GRAPHS),
    "Nystroem of series": (sm.Nystroem(kernels.GlobalAlignment(), 4), SERIES),
    "Nystroem of sets": (sm.Nystroem(kernels.DistanceRBF(distances.ModifiedHausdorff()), 4), SETS),
    "Nystroem of a batch": (sm.Nystroem(SPECTRUM, 4), as_strings(STRINGS)),
    "Nystroem of a batch of graphs": (sm.Nystroem(WL, 4), as_graphs(GRAPHS)),
    "KernelFeatures": (sm.KernelFeatures(SPECTRUM, 64), STRINGS),
    "KernelFeatures of graphs": (sm.KernelFeatures(WL, 64), GRAPHS),
    "D2KE": (sm.D2KE(distances.Levenshtein(), 8), STRINGS),
    "D2KE of series": (sm.D2KE(distances.DTW(), 8), SERIES),
    "D2KE of sets": (sm.D2KE(distances.ModifiedHausdorff(), 8), SETS),
    "D2KE, representatives": (sm.D2KE(distances.Levenshtein(), 4, Representatives()), STRINGS),
    "PseudoEuclidean": (sm.PseudoEuclidean(distances.Levenshtein(), 3), STRINGS),
    "PseudoEuclidean of series": (sm.PseudoEuclidean(distances.DTW(), 3, n_landmarks=5), as_series(SERIES)),
    "SimilarityMap": (sm.SimilarityMap(SPECTRUM, n_landmarks=6), STRINGS),
    "SimilarityMap of series": (sm.SimilarityMap(distances.DTW()), SERIES),
    "SimilarityMap of graphs": (sm.SimilarityMap(WL), GRAPHS),
    "GraphletSampling": (sm.GraphletSampling(3, 50, n_components=16), GRAPHS),
    "GraphletSampling, sparse": (sm.GraphletSampling(3, 50, features="match"), GRAPHS),
    "MinHash": (sm.MinHash(SPECTRUM, 64), STRINGS),
    "MinHash, onehot": (sm.MinHash(WL, 64, output="onehot"), GRAPHS),
    "NGramEncoder": (sm.NGramEncoder(2, 64), STRINGS),
    "NGramEncoder, counts": (sm.NGramEncoder(2, 64, output="counts"), STRINGS),
    "GraphHDEncoder": (sm.GraphHDEncoder(64), GRAPHS),
    "SeriesVectors": (SeriesVectors(), as_series(np.random.default_rng(0).normal(size=(12, 6)))),
    "Hydra": (Hydra(2, 4), SERIES),
    "IntervalQuantiles": (sm.IntervalQuantiles(depth=3), SERIES),
    "SequenceEncoder": (sm.SequenceEncoder(8, n_bits=64), SERIES),
    "RandomConvolutions": (sm.RandomConvolutions(168), SERIES),
    "RandomConvolutions, MultiRocket": (sm.RandomConvolutions(672, "multirocket"), SERIES),
    "LevelEncoder": (sm.LevelEncoder(8, n_bits=64), [float(i) for i in range(12)]),
    "RecordEncoder": (
        RecordEncoder([(0, sm.NGramEncoder(2, 64, random_state=0)), (1, sm.LevelEncoder(8, 64, random_state=0))]),
        RECORDS,
    ),
    "AttributeScaler": (AttributeScaler(), GRAPHS),
    "MeanMapFeatures": (sm.MeanMapFeatures(16), SETS),
    "GraphToSets": (make_pipeline(GraphToSets(1, 1), sm.MeanMapFeatures(16)), GRAPHS),
    "SeriesToSets": (make_pipeline(SeriesToSets(4), sm.MeanMapFeatures(16, scales=(0.5, 2))), SERIES),
    "FromColumn": (make_pipeline(FromColumn(), sm.Nystroem(SPECTRUM, 4)), STRINGS),
    "ITQ": (sm.ITQ(8), np.random.default_rng(0).normal(size=(12, 8))),
    "SignCodes": (sm.codes.SignCodes(), np.random.default_rng(0).normal(size=(12, 8))),
    "recipes.nyshd": (sm.recipes.nyshd(SPECTRUM, 4, n_bits=64), STRINGS),
    "recipes.d2ke": (sm.recipes.d2ke(distances.Levenshtein(), 8), STRINGS),
    "recipes.d2ke, tuned": (sm.recipes.d2ke(distances.Levenshtein(), 8, gamma="tune", cv=2, random_state=0), STRINGS),
    "recipes.graphlet_optical": (sm.recipes.graphlet_optical(3, 50, n_components=None), GRAPHS),
    "codes of strings": (CODES, STRINGS),
    "KernelSVC": (KernelSVC(SPECTRUM), STRINGS),
    "KernelSVC, probabilities": (KernelSVC(SPECTRUM, probability=True), STRINGS),
    "KernelRidge": (sm.KernelRidge(SPECTRUM), STRINGS),
    "KernelRidge of graphs": (sm.KernelRidge(WL), GRAPHS),
    "KernelRidge, best alpha": (sm.KernelRidge(SPECTRUM, alpha="auto"), STRINGS),
    "KernelSVR": (sm.KernelSVR(SPECTRUM), STRINGS),
    "GaussianProcessRegressor": (sm.GaussianProcessRegressor(SPECTRUM, {"k": [1, 2]}), STRINGS),
    "GaussianProcessRegressor, landmarks": (sm.GaussianProcessRegressor(WL, n_landmarks=4), GRAPHS),
    "GaussianProcessClassifier": (sm.GaussianProcessClassifier(SPECTRUM, n_landmarks=4), STRINGS),
    "KernelSVR of series": (sm.KernelSVR(kernels.DistanceRBF(distances.DTW(), 0.1)), SERIES),
    "KernelKMeans": (sm.KernelKMeans(WL, 2), GRAPHS),
    "KernelKMeans of a distance": (sm.KernelKMeans(distances.DTW(), 2), SERIES),
    "HDBSCAN": (sm.HDBSCAN(distances.Levenshtein(), 2), STRINGS),
    "HDBSCAN of a kernel": (sm.HDBSCAN(WL, 2, 1, cluster_selection_method="leaf"), GRAPHS),
    "HDBSCAN of series": (sm.HDBSCAN(distances.DTW(), 2, n_neighbors=3), SERIES),
    "KNeighborsClassifier": (KNeighborsClassifier(distances.DTW()), SERIES),
    "KNeighborsRegressor": (KNeighborsRegressor(WL), GRAPHS),
    "VoteClassifier": (sm.VoteClassifier([KernelSVC(SPECTRUM), KNeighborsClassifier(SPECTRUM)]), STRINGS),
    "VoteRegressor": (sm.VoteRegressor([KNeighborsRegressor(distances.DTW())]), SERIES),
    "ConformalClassifier": (sm.ConformalClassifier(KernelSVC(SPECTRUM)), STRINGS),
    "ConformalClassifier of graphs": (sm.ConformalClassifier(KernelSVC(WL), "cross", cv=2), as_graphs(GRAPHS)),
    "ConformalRegressor": (sm.ConformalRegressor(KNeighborsRegressor(distances.DTW())), SERIES),
    "ConformalRegressor, cross": (sm.ConformalRegressor(sm.KernelRidge(SPECTRUM), "cross", cv=2), STRINGS),
    "a kernel machine": (make_pipeline(sm.KernelFeatures(SPECTRUM, 64), SVC(kernel="linear")), STRINGS),
}
SEARCHES = {
    "NearestNeighbors": (sm.NearestNeighbors(distances.DTW(), 2), SERIES),
    "SimilaritySearch": (sm.SimilaritySearch(CODES.set_params(nystroem__random_state=0), rerank="kernel"), STRINGS),
    "HammingIndex": (sm.HammingIndex(64), sm.NGramEncoder(2, 64, random_state=0).fit_transform(STRINGS)),
    "FeatureIndex": (sm.search.FeatureIndex(kernels.MinMax(SPECTRUM)), STRINGS),
    "VectorIndex": (sm.search.VectorIndex(random_state=0), np.random.default_rng(0).normal(size=(12, 8))),
}
UNTESTED = {
    "ShardedIndex": "takes files and Dask collections, which are no objects; tests/sources/test_dask.py",
    "AutoClassifier": "a fit takes seconds; tests/selection/test_auto.py holds it against the conventions",
    "AutoRegressor": "as AutoClassifier",
}


@pytest.mark.filterwarnings("ignore:.*(similarity 0 to all|no features at all)")
@pytest.mark.parametrize("name", CASES)
def test_ours_pass(name):
    estimator, X = CASES[name]
    check_structured_estimator(estimator, X, Y)


@pytest.mark.ecosystem
@pytest.mark.filterwarnings("ignore")  # of UMAP
@pytest.mark.parametrize(
    ("similarity", "X"),
    [(distances.Levenshtein(), STRINGS), (kernels.GlobalAlignment(), SERIES)],
    ids=["strings", "series"],
)
def test_a_map_by_umap_passes(similarity, X):
    """No two objects are at distance 0: `transform` would place both at the mean of their places."""
    pytest.importorskip("umap", reason="umap-learn lays out the graph of neighbours and is not installed")
    check_structured_estimator(sm.SimilarityMap(similarity, "neighbours", n_neighbors=3), X)


@pytest.mark.filterwarnings("ignore:.*(similarity 0 to all|no features at all)")
@pytest.mark.parametrize("name", SEARCHES)
def test_searches_pass(name):
    estimator, X = SEARCHES[name]
    check_structured_estimator(estimator, X, methods=["search" if hasattr(estimator, "search") else "kneighbors"])


def test_none_is_forgotten():
    estimators = [estimator for estimator, _ in (*CASES.values(), *SEARCHES.values())]
    parts = [part for estimator in estimators for part in (estimator, *getattr(estimator, "named_steps", {}).values())]
    held = {type(part).__name__ for part in parts} | set(UNTESTED)
    of_vectors = {type(estimator).__name__ for estimator in VECTORS}
    assert set(OTHERS) <= held
    assert public_estimators() <= held | of_vectors


# ---- a fitted model keeps the kernel and the distance it was fitted with
COMPARING = {
    **CASES,
    "OutlierDetector": (sm.OutlierDetector(distances.DTW(), n_neighbors=2, novelty=True), SERIES),
    "OutlierDetector, span": (sm.OutlierDetector(SPECTRUM, "reconstruction", novelty=True), STRINGS),
    "SimilaritySearch": (sm.SimilaritySearch(CODES), STRINGS),  # `rerank` may be set at any time
    "SimilaritySearch of features": (sm.SimilaritySearch(sm.search.FeatureIndex(kernels.MinMax(SPECTRUM))), STRINGS),
    "FeatureIndex": SEARCHES["FeatureIndex"],
    "Pipeline of features": (
        sm.Pipeline([("features", sm.KernelFeatures(SPECTRUM, 64)), ("svc", LinearSVC())]),
        STRINGS,
    ),
}
ANSWERS = ("transform", "predict", "predict_proba", "decision_function", "score_samples", "p_values")


def comparisons(model):
    """Return the kernels and distances among the parameters of a model, also nested ones."""
    values = model.get_params().values()
    return [value for value in values if isinstance(value, similarity.Kernel | similarity.Distance)]


def answers(model, X):
    found = {name: getattr(model, name)(X) for name in ANSWERS if hasattr(model, name)}
    if hasattr(model, "kneighbors"):
        found["kneighbors"] = model.kneighbors(X, n_neighbors=2)
    return {name: value.toarray() if sparse.issparse(value) else value for name, value in found.items()}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name, (model, _) in COMPARING.items() if comparisons(model)])
def test_a_fitted_model_keeps_its_kernel_when_parameters_of_the_given_one_change(name):
    estimator, X = COMPARING[name]
    model = clone(estimator)
    given = comparisons(model)
    model.fit(take(X, np.arange(9)), Y[:9])
    before = answers(model, X)
    for function in [*given, *comparisons(model)]:
        plain = {
            key: value for key, value in function.get_params(deep=False).items() if not hasattr(value, "get_params")
        }
        function.set_params(
            **{key: not value if isinstance(value, bool) else "changed" for key, value in plain.items()}
        )
    after = answers(model, X)
    assert before.keys() == after.keys() != set()
    for method, values in before.items():
        np.testing.assert_array_equal(after[method], values)


# ---- broken ones


class Letters(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Count letters of strings under random weights, with faults to choose from."""

    def __init__(self, weight=1.0, fault="", seen=None, random_state=None):
        self.weight = weight
        self.fault = fault
        self.seen = [0] if fault == "stored" else seen
        self.random_state = random_state

    def fit(self, X, y=None):
        if len(X) == 0 or (self.fault == "arrays" and not isinstance(X, list)):
            raise ValueError("X is empty: found 0 strings, expected at least one")
        if self.fault == "few" and len(X) < 12:
            raise ValueError("expected all objects")
        if self.fault == "unlabelled" and y is not None:
            raise ValueError("expected no labels")
        if self.fault == "column" and getattr(X, "name", None) == "objects" and hasattr(X, "iloc"):
            raise TypeError("expected no column")
        rng = np.random.default_rng(None if self.fault == "seed" else self.random_state)
        weights = np.random.normal(size=4) if self.fault == "global" else rng.normal(size=4)  # noqa: NPY002
        if self.fault == "global python":
            weights = weights + random.random()
        self.weights_ = weights + getattr(self, "weights_", 0.0) if self.fault == "warm" else weights
        self.mean_ = 0.1 * sum(map(len, X))
        self._n_features_out = 5 if self.fault == "names" else 4
        if self.fault == "parameter":
            self.weight = 2.0
        if self.fault == "grown":
            self.seen.append(len(X))
        if self.fault == "mutation":
            X[0] = "A"
        if self.fault == "learnt":
            self.function_ = _NotSaved()
        return None if self.fault == "self" else self

    def transform(self, X):
        if not hasattr(self, "weights_"):
            raise NotFittedError("fit first") if self.fault != "unfitted" else RuntimeError("fit first")
        if len(X) == 0 and self.fault != "empty":
            raise ValueError("no" if self.fault == "silent" else "X is empty: found 0 strings, expected at least one")
        items = list(X)
        counts = np.array([[x.count(letter) for letter in "ACGT"] for x in items], dtype=float).reshape(len(items), 4)
        out = self.weight * counts * self.weights_
        if self.fault == "batch":
            out = out - out.mean(axis=0)
        if self.fault == "alone" and len(items) == 1:
            out = out + 1
        if self.fault == "sorted":
            out = out[np.argsort(out[:, 0])]
        if self.fault == "call":
            self.mean_ = self.mean_ + 1
            out = out + self.mean_
        if self.fault == "rows":
            out = out[1:]
        if self.fault == "nan":
            out[0, 0] = np.nan
        if self.fault == "index" and hasattr(X, "index") and not isinstance(X, list | tuple):
            out = out[np.argsort(X.index)]
        if self.fault == "lists":
            return out.tolist()
        return out

    def fit_transform(self, X, y=None):
        return self.fit(X, y).transform(X) * (2 if self.fault == "fit_transform" else 1)

    def set_params(self, **params):
        super().set_params(**params)
        if self.fault == "set":
            self.weight = -1.0
        return self

    def set_output(self, *, transform=None):
        return self if self.fault == "frame" else super().set_output(transform=transform)

    def get_feature_names_out(self, input_features=None):
        names = super().get_feature_names_out(input_features)
        return np.array(["same"] * 4) if self.fault == "twice" else names

    def __getstate__(self):
        state = dict(super().__getstate__())
        if self.fault == "lost" and "weights_" in state:
            state["weights_"] = 2 * state["weights_"]
        return state


class _NotSaved:
    def __reduce__(self):
        raise TypeError("this cannot be pickled")


class Flat(Letters):
    """Letters without names of columns."""

    get_feature_names_out = property()


class Majority(ClassifierMixin, BaseEstimator):
    """Predict the commonest label, with faults to choose from."""

    def __init__(self, fault="", depth=1):
        self.fault = fault
        self.depth = depth

    def fit(self, X, y):
        if len(X) != len(y) and self.fault != "labels":
            raise ValueError(f"y has {len(y)} labels for {len(X)} objects")
        self.classes_, counts = np.unique(y, return_counts=True)
        self.label_ = self.classes_[counts.argmax()]
        return self

    def predict(self, X):
        if not hasattr(self, "label_"):
            raise NotFittedError("fit first")
        if len(X) == 0:
            raise ValueError("X is empty")
        return np.full(len(X), self.label_)


PYTHON = ("list", "tuple", "array", "pandas", "polars")  # iterating over an Arrow array gives scalars of its own
FAULTS = {
    "stored": "clone: ",
    "set": "set_params: weight is -1.0 after 1.0 was set",
    "unfitted": "unfitted: transform raised RuntimeError before fit, expected NotFittedError",
    "self": "fit: it does not return the estimator itself",
    "parameter": "parameters: fit changes the parameter 'weight'",
    "grown": "parameters: fit changes the parameter 'seen'",
    "mutation": "mutation: fit or a method changes X or y",
    "global": "global random state: ",
    "global python": "global random state: ",
    "lists": r"array: transform\(X\) is list",
    "nan": r"finite: transform\(X\) holds NaN or infinity in row 0",
    "rows": r"rows: transform\(X\) has 11 rows for 12 objects",
    "call": "repeatable: ",
    "sorted": "permutation: ",
    "batch": "batches: ",
    "alone": r"one by one: at .* of X\[0\] alone is",
    "seed": "seed: ",
    "warm": "idempotence: .* after a second fit",
    "fit_transform": "fit_transform: ",
    "empty": r"empty: transform of no objects raised nothing, expected ValueError",
    "silent": "empty: transform of no objects says 'no'",
    "learnt": "persistence: ValueError was raised: the model holds an object that a file cannot",
    "lost": "persistence: ",
    "arrays": "containers, a tuple: ValueError was raised: X is empty",
    "index": "containers: .* of X as a pandas Series",
    "few": "cross_val_score: ValueError was raised: .*expected all objects",
    "unlabelled": "Pipeline: ValueError was raised: expected no labels",
    "frame": r"set_output\('pandas'\): transform returned ndarray with columns",
    "column": "ColumnTransformer: TypeError was raised: expected no column",
    "names": r"get_feature_names_out: 5 names, 5 different, of 4 columns",
    "twice": r"get_feature_names_out: 4 names, 1 different, of 4 columns",
}


def test_good_ones_pass_and_stay_unfitted():
    letters = Letters(random_state=3)
    check_structured_estimator(letters, list(STRINGS), Y, containers=PYTHON)
    check_structured_estimator(letters, list(STRINGS), containers=PYTHON)
    check_structured_estimator(Majority(), list(STRINGS), Y)
    assert not hasattr(letters, "weights_")


@pytest.mark.parametrize("fault", FAULTS)
def test_broken_ones_fail(fault):
    X, labels = list(STRINGS), None if fault == "unlabelled" else Y
    with pytest.raises(AssertionError, match=FAULTS[fault]) as error:
        check_structured_estimator(Letters(fault=fault, seen=[]), X, labels, containers=PYTHON)
    assert "\n" not in str(error.value)


def test_broken_predictors_fail():
    with pytest.raises(AssertionError, match="labels: fit with fewer labels than objects raised nothing"):
        check_structured_estimator(Majority("labels"), list(STRINGS), Y)


class Long(ClusterMixin, BaseEstimator):
    """A clusterer that ignores targets, as those of scikit-learn."""

    def __init__(self, least=4):
        self.least = least

    def fit(self, X, y=None):
        self.mean_ = sum(map(len, X)) / len(X)
        return self

    def predict(self, X):
        if not hasattr(self, "mean_"):
            raise NotFittedError("fit first")
        if len(X) == 0:
            raise ValueError("X is empty: found 0 strings, expected at least one")
        return np.array([int(len(x) > max(self.least, self.mean_)) for x in X])

    def score(self, X, y=None):
        return float(self.predict(X).mean())


@pytest.mark.parametrize("y", [None, Y])
def test_clusterers_need_no_targets(y):
    check_structured_estimator(Long(), list(STRINGS), y, containers=PYTHON)


class Shares(Letters):
    """Letters with a second method that returns a matrix."""

    def shares(self, X):
        return self.transform(X)[:, :2]


def test_a_transformer_with_a_second_matrix_passes():
    shares = Shares(random_state=3)
    check_structured_estimator(shares, list(STRINGS), Y, methods=["transform", "shares"], containers=PYTHON)


def test_what_scikit_learn_raises_is_named():
    only_lists = FunctionTransformer(lambda X: [[len(x)] for x in X])
    with pytest.raises(AssertionError, match="array: "):
        check_structured_estimator(only_lists, STRINGS, Y)
    with pytest.raises(AssertionError, match="get_feature_names_out: AttributeError was raised"):
        check_structured_estimator(Flat(), list(STRINGS), Y, containers=PYTHON)
    with pytest.raises(AssertionError, match=r"containers, an Arrow array: TypeError was raised: .*StringScalar"):
        check_structured_estimator(Letters(), list(STRINGS), Y)


class Searched(Majority):
    """A predictor whose parameters a grid search does not reach."""

    def get_params(self, deep=True):
        return {}


def test_a_search_that_reaches_no_parameter_fails():
    with pytest.raises(AssertionError, match=r"GridSearchCV.*no parameters to search"):
        check_structured_estimator(Searched(), list(STRINGS), Y)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((sm.Nystroem(SPECTRUM, 2), STRINGS[:5]), "X must hold at least 6 objects, got 5"),
        ((sm.recipes.nyshd(SPECTRUM), STRINGS), "Pipeline learns from targets; give y"),
        ((sm.HammingIndex(64), STRINGS), "HammingIndex has none of transform, predict"),
    ],
)
def test_what_cannot_be_tried(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        check_structured_estimator(*arguments)
    with pytest.raises(ValueError, match=r"containers names \['dask'\], expected some of list, tuple"):
        check_structured_estimator(sm.Nystroem(SPECTRUM, 2), STRINGS, containers=["dask"])


# ---- frames and columns


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_from_pipelines_that_begin_with_objects_to_objects(library):
    pytest.importorskip(library)
    kernel = kernels.Propagation(n_iter=1, use="attributes", bin_width=0.5)
    embedding = make_pipeline(AttributeScaler(), sm.Nystroem(kernel, 3, random_state=0)).set_output(transform=library)
    frame = embedding.fit_transform(GRAPHS)
    assert type(frame).__module__.startswith(library)
    assert list(frame.columns) == list(embedding.get_feature_names_out())
    assert frame.columns[0] == "nystroem0"


def test_a_frame_of_codes_is_packed_bits_for_what_follows():
    encoder = make_pipeline(*clone(CODES)).set_output(transform="pandas")
    encoder.set_params(nystroem__random_state=0, signrandomprojection__random_state=0)
    frame = encoder.fit_transform(STRINGS)
    assert list(frame.columns) == [f"signrandomprojection{i}" for i in range(8)]  # 64 bits: a column is a byte
    assert (frame.dtypes == np.uint8).all()
    model, same = sm.HDClassifier(random_state=0), sm.HDClassifier(random_state=0)
    scores = model.fit(frame, Y).decision_function(frame)
    np.testing.assert_array_equal(scores, same.fit(frame.to_numpy(), Y).decision_function(frame.to_numpy()))
    assert model.prototypes_.shape == (2, 64)


def test_sparse_features_have_names_and_no_frame():
    features = sm.KernelFeatures(SPECTRUM, 64)
    assert list(features.get_feature_names_out()[:2]) == ["kernelfeatures0", "kernelfeatures1"]
    with pytest.raises(ValueError, match="sparse"):
        features.set_output(transform="pandas").fit_transform(STRINGS)


# ---- objects as one column


@pytest.mark.parametrize(("X", "kernel"), [(STRINGS, SPECTRUM), (GRAPHS, WL), (as_graphs(GRAPHS), WL)])
def test_bagging_and_permutation_importance_take_a_column(X, kernel):
    model = make_pipeline(FromColumn(), sm.Nystroem(kernel, 3, random_state=0), LinearSVC())
    with pytest.raises(ValueError, match=r"Expected 2D array|setting an array element"):
        BaggingClassifier(model, 3).fit(list(X), Y)
    bag = BaggingClassifier(model, 3, random_state=0).fit(as_column(X), Y)
    assert bag.predict(as_column(X)).shape == (12,)
    importance = permutation_importance(model.fit(as_column(X), Y), as_column(X), Y, random_state=0)
    assert importance.importances_mean.shape == (1,)
    assert importance.importances_mean[0] > 0  # shuffled objects carry no labels
    np.testing.assert_array_equal(model.predict(X), model.predict(as_column(X)))


def test_columns_of_other_shapes_are_refused():
    for X in (np.zeros((3, 2), dtype=object), np.zeros((3, 1, 1), dtype=object)):
        with pytest.raises(ValueError, match=re.escape(f"X has shape {X.shape}, expected one column of objects")):
            FromColumn().fit(X)
    with pytest.raises(ValueError, match="X is empty"):
        as_column([])
    with pytest.raises(TypeError, match="expected a collection of objects"):
        as_column("ACGT")
    assert FromColumn().fit_transform(STRINGS) is STRINGS
    arrays = [np.zeros(2), np.ones(2)]  # numpy would make a table of them
    assert [x is y for x, y in zip(FromColumn().transform(as_column(arrays)), arrays, strict=True)] == [True, True]
