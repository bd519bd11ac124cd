"""Intersection and MinMax: slow twins, laws, the optimal assignment of graphs, wrong features, estimators."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import similia as sm
from naive import similarities as naive
from samples.graphs import batch, samples
from similia.checks import check_kernel
from similia.kernels import (
    Graphlet,
    Intersection,
    MinMax,
    Mismatch,
    Normalized,
    Product,
    Propagation,
    ShortestPath,
    Spectrum,
    Sum,
    WeightedDegree,
    WeisfeilerLehman,
)
from similia.objects import take

laws = settings(max_examples=40, deadline=None)
WORDS = st.lists(st.text("ab", max_size=12), min_size=1, max_size=6)
NUMBERS = st.lists(
    st.lists(st.one_of(st.just(0.0), st.integers(0, 3), st.floats(0, 9, width=32)), min_size=3, max_size=3),
    min_size=1, max_size=7,
)  # fmt: skip
STRINGS = ["AAAC", "AACC", "GT", "", "GTGTGTAAAC", "AACC"]
FRACTIONS = Sum([Spectrum(1), Spectrum(2)], weights=[1, 0.5])


def table(X, Y, features):
    """Slow twin: (intersections, min-max kernel) of all pairs; two objects without features have 0."""
    pairs = [[naive.min_max(features(x), features(y)) for y in Y] for x in X]
    return tuple(np.array([[f(*pair) for pair in row] for row in pairs]) for f in (lambda a, b: a, ratio))


def ratio(low, high):
    return low / high if high else 0.0


@laws
@given(WORDS, WORDS, st.integers(1, 3))
def test_counts_equal_the_twin(X, Y, k):
    low, share = table(X, Y, lambda x: naive.kmers(x, k))
    np.testing.assert_array_equal(Intersection(Spectrum(k))(X, Y), low)
    np.testing.assert_array_equal(MinMax(Spectrum(k))(X, Y), share)
    of_itself, _ = table(X, X, lambda x: naive.kmers(x, k))
    np.testing.assert_array_equal(Intersection(Spectrum(k)).diag(X), of_itself.diagonal())


@laws
@given(NUMBERS)
def test_rows_equal_the_twin(rows):
    low, share = table(rows, rows, lambda x: dict(enumerate(x)))
    for X in (np.array(rows, float), sp.csr_array(np.array(rows, float))):
        K, R = Intersection()(X), MinMax()(X)
        np.testing.assert_allclose(K, low, rtol=1e-14)
        np.testing.assert_array_equal(K, K.T)
        np.testing.assert_allclose(R - np.diag(R.diagonal()), share - np.diag(share.diagonal()), rtol=1e-13)
        np.testing.assert_array_equal(R.diagonal(), 1.0)


@laws
@given(WORDS)
def test_parts_of_a_sum_have_features_of_their_own(X):
    def features(x):
        return {**naive.kmers(x, 1), **{w: c * 0.5**0.5 for w, c in naive.kmers(x, 2).items()}}

    low, share = table(X, X, features)
    np.testing.assert_allclose(Intersection(FRACTIONS)(X), low, rtol=1e-14)
    np.testing.assert_allclose(MinMax(FRACTIONS)(X, X), share, rtol=1e-13)
    twice = Sum([Spectrum(1), Spectrum(1)])  # the same ids in both parts
    np.testing.assert_array_equal(Intersection(twice)(X), 2 * Intersection(Spectrum(1))(X))


def test_normalising_by_hand():
    # AAC has (2, 1) / sqrt 5, and AC has (1, 1) / sqrt 2
    a, b = 5**-0.5, 2**-0.5
    low, high = b + a, 2 * a + b
    for kernel in (Normalized(Spectrum(1)), Spectrum(1, normalize=True)):
        np.testing.assert_allclose(MinMax(kernel)(["AAC"], ["AC"]), [[low / high]], rtol=1e-15)
        np.testing.assert_allclose(Intersection(kernel).diag(["AAC", "AC", ""]), [3 * a, 2 * b, 0], rtol=1e-15)
    np.testing.assert_allclose(Intersection(Spectrum(1), normalize=True)(["AAC"], ["AC"]), [[2 / 6**0.5]], rtol=1e-15)


def test_vectors_of_one_feature():
    for X in ([[1.0], [2.0]], sp.csr_array([[1.0], [2.0]])):
        np.testing.assert_array_equal(MinMax()(X), [[1, 0.5], [0.5, 1]])
        np.testing.assert_array_equal(Intersection()(X), [[1, 1], [1, 2]])


@pytest.mark.parametrize("kernel", [Intersection(Spectrum(1), normalize=True), MinMax(Spectrum(1))], ids=str)
def test_objects_without_features(kernel):
    np.testing.assert_array_equal(kernel(["", "A", ""]), np.eye(3))
    np.testing.assert_array_equal(kernel(["", "A"], ["", "A"]), [[0, 0], [0, 1]])
    np.testing.assert_array_equal(kernel.diag(["", "A"]), [1, 1])


def test_weights_of_features_count_by_their_root():
    # one word of two letters at place 0 has weight 1, words of one letter have weight 2
    np.testing.assert_allclose(Intersection(WeightedDegree(2))(["AC"], ["AC"]), [[1 + 2 * 2**0.5]], rtol=1e-15)


@laws
@given(st.integers(0, 2**32 - 1), st.integers(0, 3))
def test_weisfeiler_lehman_gives_the_optimal_assignment(seed, n_iter):
    graphs = samples(seed, n=5)
    expected = [[naive.optimal_assignment(G, H, n_iter) for H in graphs] for G in graphs]
    np.testing.assert_array_equal(Intersection(WeisfeilerLehman(n_iter))(batch(graphs)), expected)


class Letters(BaseEstimator):
    """A kernel of a user: the columns of `features` are ids."""

    def features(self, X, n_features):
        return sp.csr_array([[x.count(c) for c in "ab"] for x in X])

    def __call__(self, X, Y=None):
        A = self.features(X, 2)
        return (A @ (A if Y is None else self.features(Y, 2)).T).toarray()


INNER = {
    "spectrum": (Spectrum(2), STRINGS),
    "mismatch": (Mismatch(2), [s for s in STRINGS if len(s) > 1]),
    "degree": (WeightedDegree(3), ["AAC", "ACC", "AAC"]),
    "sum": (FRACTIONS, STRINGS),
    "normalised": (Normalized(Sum([Spectrum(1), Spectrum(2, normalize=True)])), STRINGS),
    "long": (Normalized(Spectrum(2)), ["".join(x) for x in np.random.default_rng(1).choice(list("ACGT"), (12, 60))]),
    "own": (Letters(), ["abba", "b", "ab"]),
    "rows": (None, np.array([[1.0, 0, 0.25], [3, 0, 0], [0.5, 0.125, 7], [0, 0, 0]])),
    "graphs": (WeisfeilerLehman(2), batch(samples(5))),
    "paths": (ShortestPath(), batch(samples(6))),
    "graphlets": (Graphlet(3), batch(samples(7))),
    "propagation": (Propagation(2), batch(samples(8))),
}
each = pytest.mark.parametrize("name", INNER)


@each
def test_laws_of_a_kernel(name):
    inner, X = INNER[name]
    for kernel in (Intersection(inner), Intersection(inner, normalize=True), MinMax(inner)):
        check_kernel(kernel, X)


@each
@pytest.mark.same_bits
def test_all_ways_to_a_value_give_the_same_bits(name):
    inner, X = INNER[name]
    for kernel in (Intersection(inner), Intersection(inner, normalize=True), MinMax(inner)):
        objects = kernel.as_objects(X)
        n = len(kernel.diag(objects))
        K = kernel(objects, take(objects, range(n)))
        rows, columns = np.repeat(np.arange(n), n), np.tile(np.arange(n), n)
        np.testing.assert_array_equal(K, K.T)
        np.testing.assert_array_equal(kernel.paired(objects, objects, rows, columns).reshape(n, n), K)
        known = kernel.counted(objects)
        np.testing.assert_array_equal(kernel.paired(objects, objects, rows, columns, counts=known).reshape(n, n), K)
        np.testing.assert_array_equal(kernel.against(objects, objects), K)
        for i in range(n):
            np.testing.assert_array_equal(kernel(take(objects, [i]), objects), K[i : i + 1])
            np.testing.assert_array_equal(kernel.against(take(objects, [i]), objects), K[i : i + 1])
        with sm.config(max_memory="1KiB"):
            np.testing.assert_array_equal(kernel(objects, take(objects, range(n))), K)


def test_many_objects_in_threads_equal_one_at_a_time():
    rng = np.random.default_rng(0)
    X = rng.poisson(0.3, (300, 40)) * rng.choice([1.0, 0.1], (300, 40))
    K = Intersection()(X)
    np.testing.assert_array_equal(np.concatenate([Intersection()(X[i : i + 1], X) for i in range(300)]), K)
    np.testing.assert_allclose(K[7], np.minimum(X[7], X).sum(axis=1), rtol=1e-13)


@laws
@given(WORDS, st.booleans())
def test_features_of_the_intersection(X, normalize):
    kernel = Intersection(Spectrum(1), normalize)
    F = kernel.features(X)
    np.testing.assert_allclose((F @ F.T).toarray(), kernel(X, list(X)), rtol=1e-14)
    assert F.nnz == sum(map(len, X))  # as many as there are letters


def test_an_intersection_of_an_intersection_is_the_same():
    once = Intersection(Spectrum(1))
    np.testing.assert_array_equal(Intersection(once)(STRINGS), once(STRINGS))
    np.testing.assert_array_equal(MinMax(once)(STRINGS), MinMax(Spectrum(1))(STRINGS))
    with pytest.raises(ValueError, match="since its own features are not integers"):
        MinMax(Intersection(FRACTIONS))(STRINGS)


REFUSED = {
    "negative": (lambda: MinMax()([[1, 2], [0, -0.5]]), ValueError,
        r"^X\[1\] has a feature -0.5, expected features >= 0 .*; minima suit counts"),
    "negative in Y": (lambda: Intersection()([[1, 2]], [[3, 1], [-2, 1]]), ValueError, r"^Y\[1\] has a feature -2"),
    "huge": (lambda: MinMax()([[1e200, 1]]), ValueError, r"X\[0\] has a feature 1e\+200, expected .* at most 1e\+150"),
    "no features": (lambda: MinMax(MinMax(Spectrum()))(STRINGS), TypeError, "has no explicit features, expected"),
    "no features in a sum": (lambda: MinMax(Sum([Spectrum(), sm.kernels.Cosine()]))(STRINGS), TypeError, "no explicit"),
    "product": (lambda: Intersection(Product([Spectrum()]))(STRINGS), TypeError, "has no explicit features"),
    "class": (lambda: MinMax(Spectrum)(STRINGS), TypeError, "is the class Spectrum"),
    "distance": (lambda: MinMax(sm.distances.DTW())(STRINGS), TypeError, "is a distance"),
    "columns": (lambda: MinMax()([[1, 2]], [[1, 2, 3]]), ValueError, "X has 2 columns and Y has 3"),
    "fractions": (lambda: Intersection(FRACTIONS).features(["", "A", "AC"]), ValueError,
        r"^X\[2\] has a feature 0.707107, expected integers, such as counts; similia.Nystroem"),
    "too many": (lambda: Intersection().features([[1, 2], [2**31, 1]]), ValueError, "X has counts that add up to"),
    "too many inside": (lambda: MinMax(Intersection())([[1e12, 1.0]]), ValueError, "X has counts that add up to 1e.12"),
    "min-max": (lambda: sm.KernelFeatures(MinMax(Spectrum())).fit(STRINGS), TypeError, "has no explicit features"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_features_get_one_sentence(name):
    call, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_labels_are_not_compared_with_degrees():
    graphs = samples(0)
    with pytest.raises(ValueError, match="MinMax would compare node labels of X with degrees of unlabelled nodes"):
        MinMax(WeisfeilerLehman())(batch(graphs), batch(graphs, labels=False))


def test_parameters_of_the_inner_kernel_are_reached():
    kernel = clone(MinMax(FRACTIONS)).set_params(kernel__k0__k=2, kernel__weights=None)
    expected = MinMax(Sum([Spectrum(2), Spectrum(2)]))(STRINGS)
    np.testing.assert_array_equal(kernel(STRINGS), expected)


@pytest.mark.parametrize("kernel", [Intersection(Spectrum(2)), MinMax(Spectrum(2))], ids=str)
def test_estimators_take_them(kernel, tmp_path):
    X = ["ACACAC", "ACACA", "CACAC", "GTGTGT", "GTGTG", "TGTGT"] * 3
    y = [0, 0, 0, 1, 1, 1] * 3
    models = [
        make_pipeline(sm.Nystroem(kernel, 4, random_state=0), LinearSVC()),
        sm.KernelSVC(kernel),
        sm.KNeighborsClassifier(kernel, 3),
        sm.recipes.nyshd(kernel, n_landmarks=4, n_bits=256, random_state=0),
    ]
    if isinstance(kernel, Intersection):
        models.append(make_pipeline(sm.KernelFeatures(kernel, 64), LinearSVC()))
    for model in models:
        model.fit(X, y)
        sm.save(model, tmp_path / "model")
        loaded = sm.load(tmp_path / "model")
        assert loaded.predict(["ACAC", "TGTG"]).tolist() == [0, 1]
        np.testing.assert_array_equal(loaded.predict(X), y)
    search = sm.SimilaritySearch(models[3][:-1], "kernel").fit(X)
    _, found = search.kneighbors(["ACACAC"], 3)
    assert set(found[0].tolist()) == {0, 6, 12}


def test_a_change_of_the_inner_kernel_is_noticed_by_the_cache():
    kernel = MinMax(Spectrum(1))
    few, many = kernel.as_objects(["AAC"]), kernel.as_objects(STRINGS)
    for k in (1, 2, 1):
        kernel.set_params(kernel__k=k)
        np.testing.assert_array_equal(kernel.against(few, many), kernel(few, many))
