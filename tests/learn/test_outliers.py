"""`OutlierDetector` against its definition, and the coverage of its p-values."""

from __future__ import annotations

import dask.array
import dask.bag
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein as rapidfuzz
from sklearn import clone, config_context
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.neighbors import LocalOutlierFactor

import similia as sm
from similia.checks import check_structured_estimator
from tests.naive.similarities import nearest_others

LEVENSHTEIN = sm.distances.Levenshtein()
WORDS = st.lists(st.text("AB", max_size=5), min_size=3, max_size=9)


def edits(x, y):
    return float(rapidfuzz.distance(x, y))


def naive_p_value(words, new, k):
    """Return the share of the collection with `new` whose k-th neighbours are at least as far as that of `new`."""
    farthest = nearest_others(edits, [*words, new], k)[0][:, -1]
    return np.mean(farthest >= farthest[-1])


@settings(max_examples=150, deadline=None)
@given(WORDS, st.text("AB", max_size=7), st.data())
def test_p_value_is_that_of_the_whole_collection(words, new, data):
    k = data.draw(st.integers(1, len(words) - 1))
    detector = sm.OutlierDetector(LEVENSHTEIN, n_neighbors=k, novelty=True).fit(words)
    assert detector.p_values([new]) == pytest.approx(naive_p_value(words, new, k))


@settings(max_examples=60, deadline=None)
@given(WORDS, st.data())
def test_scores_are_distances_to_the_kth_neighbour(words, data):
    k = data.draw(st.integers(1, len(words) - 1))
    detector = sm.OutlierDetector(LEVENSHTEIN, n_neighbors=k, novelty=True).fit(words)
    np.testing.assert_array_equal(detector.train_scores_, -nearest_others(edits, words, k)[0][:, -1])
    new = ["ABBA", "", "C"]
    expected = [-sorted(edits(x, y) for y in words)[k - 1] for x in new]
    np.testing.assert_array_equal(detector.score_samples(new), expected)


def test_reconstruction_is_the_distance_from_the_span_of_landmarks():
    """With a linear kernel, the span is one of vectors, and least squares give the distance from it."""
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(40, 12)), rng.normal(size=(7, 12))
    detector = sm.OutlierDetector(lambda A, B: A @ B.T, "reconstruction", n_components=6, novelty=True, random_state=0)
    detector.fit(X)
    landmarks = detector.nystroem_.landmark_indices_

    def residual(x, others):
        rest = x - X[others].T @ np.linalg.lstsq(X[others].T, x, rcond=None)[0]
        return rest @ rest

    expected = [residual(x, landmarks[landmarks != i]) for i, x in enumerate(X)]
    np.testing.assert_allclose(-detector.train_scores_, expected, atol=1e-9)
    scores = np.array([residual(x, landmarks) for x in new])
    np.testing.assert_allclose(-detector.score_samples(new), scores, atol=1e-9)
    others = np.delete(np.array(expected), landmarks)
    ranks = [(1 + np.sum(others >= score)) / (1 + len(others)) for score in scores]
    np.testing.assert_allclose(detector.p_values(new), ranks)


def test_equal_landmarks_are_in_the_span_of_each_other():
    X = np.repeat(np.eye(4)[:2], 10, axis=0)
    detector = sm.OutlierDetector(sm.kernels.RBF(1.0), "reconstruction", n_components=10, random_state=0).fit(X)
    np.testing.assert_allclose(detector.train_scores_, 0, atol=1e-9)


@pytest.mark.parametrize(
    "detector",
    [
        sm.OutlierDetector(euclidean_distances, n_neighbors=3, novelty=True),
        sm.OutlierDetector(sm.kernels.RBF(0.5), "reconstruction", n_components=7, novelty=True, random_state=0),
    ],
    ids=["neighbors", "reconstruction"],
)
def test_p_values_are_uniform(detector):
    """Over many collections, p <= a as often as a: at most, and nearly (scores of numbers do not tie)."""
    rng = np.random.default_rng(1)
    p, n, n_collections = [], 19, 500
    for _ in range(n_collections):
        X = rng.standard_t(2, size=(n + 1, 2))
        p.append(detector.fit(X[:n]).p_values(X[n:])[0])
    m = n if detector.method == "neighbors" else n - 7
    levels = np.arange(1, m + 1) / (m + 1)
    rates = np.mean(np.array(p)[:, None] <= levels + 1e-9, axis=0)
    assert (np.abs(rates - levels) < 4 * np.sqrt(levels * (1 - levels) / n_collections)).all()


@pytest.mark.parametrize("contamination", ["auto", 0.1])
def test_strings_of_another_kind_are_found(contamination):
    rng = np.random.default_rng(0)
    ancestor = rng.integers(4, size=30)
    family = np.where(rng.random((95, 30)) < 0.1, rng.integers(4, size=(95, 30)), ancestor)
    words = ["".join(row) for row in np.array(list("ACGT"))[np.vstack([family, rng.integers(4, size=(5, 30))])]]
    odd = np.arange(100) >= 95
    for similarity, method in (
        (LEVENSHTEIN, "neighbors"),
        (sm.kernels.Spectrum(k=3, normalize=True), "reconstruction"),
    ):
        detector = sm.OutlierDetector(similarity, method, n_components=8, contamination=contamination, random_state=0)
        labels = detector.fit_predict(words)
        assert (labels[odd] == -1).all()
        assert roc_auc_score(odd, -detector.train_scores_) > 0.99
        if contamination == 0.1:
            assert np.sum(labels == -1) <= 10


@pytest.mark.filterwarnings("ignore:the kernel is not positive semi-definite")
@pytest.mark.parametrize("method", ["neighbors", "density", "reconstruction"])
def test_a_number_far_from_the_others_is_an_outlier_by_a_lifted_kernel(method):
    X = np.random.default_rng(0).normal(size=60).tolist()
    kernel = sm.pairwise(lambda a, b: float(np.exp(-((a - b) ** 2))))
    detector = sm.OutlierDetector(kernel, method, n_components=20, novelty=True, random_state=0).fit(X)
    assert detector.predict([50.0, 0.0]).tolist() == [-1, 1]
    if method != "density":
        far, near = detector.p_values([50.0, 0.0])
        assert far == pytest.approx(1 / (len(detector._calibration) + 1))
        assert near > 0.1
    with pytest.raises(ValueError, match=r"similarity must be a kernel.*FromFunction"):
        sm.OutlierDetector(sm.pairwise(lambda a, b: abs(a - b)), method, random_state=0).fit(X)


def test_methods_belong_to_one_mode():
    words = ["a", "ab", "b", "abc"]
    detector = sm.OutlierDetector(LEVENSHTEIN, n_neighbors=1)
    assert not hasattr(detector, "predict")
    with pytest.raises(AttributeError, match="set novelty=True"):
        detector.fit(words).p_values(words)
    with pytest.raises(AttributeError, match="does not allow fit_predict"):
        sm.OutlierDetector(LEVENSHTEIN, novelty=True).fit_predict(words)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "lof"}, "method must be 'neighbors', 'density' or 'reconstruction', got 'lof'"),
        ({"contamination": 0.7}, "contamination must be 'auto' or a number in"),
        ({"n_neighbors": 0}, "n_neighbors must be an integer >= 1, got 0"),
    ],
)
def test_wrong_parameters(arguments, message):
    with pytest.raises(ValueError, match=message):
        sm.OutlierDetector(LEVENSHTEIN, **arguments).fit(["a", "b", "c"])


def test_one_object_has_no_others():
    with pytest.raises(ValueError, match=r"X holds 1 object \(n_samples = 1\), expected at least 2"):
        sm.OutlierDetector(LEVENSHTEIN, n_neighbors=1).fit(["a"])


@pytest.mark.parametrize("n_neighbors", [3, 10])
def test_more_neighbours_than_other_objects(n_neighbors):
    said = f"n_neighbors={n_neighbors} is more than the 2 other training objects: all 2 are used"
    with pytest.warns(UserWarning, match=said):
        detector = sm.OutlierDetector(LEVENSHTEIN, n_neighbors=n_neighbors).fit(["a", "b", "c"])
    assert detector.n_neighbors_ == 2


@pytest.mark.parametrize("method", ["neighbors", "reconstruction"])
def test_saved_detector(method, tmp_path):
    words = ["kitten", "mitten", "bitten", "sitting", "fitting", "hitting", "witty"]
    similarity = LEVENSHTEIN if method == "neighbors" else sm.kernels.Spectrum(k=2)
    detector = sm.OutlierDetector(similarity, method, n_neighbors=2, n_components=3, novelty=True, random_state=0)
    detector.fit(words)
    sm.save(detector, tmp_path / "odd.similia")
    loaded = sm.load(tmp_path / "odd.similia")
    for name in ("predict", "decision_function", "p_values"):
        np.testing.assert_array_equal(
            getattr(loaded, name)(["smitten", "q"]), getattr(detector, name)(["smitten", "q"])
        )


@pytest.mark.filterwarnings("ignore:n_neighbors=|n_components=")
@pytest.mark.parametrize("method", ["neighbors", "density", "reconstruction"])
def test_structured_checks(method):
    words = ["kitten", "mitten", "bitten", "sitting", "fitting", "hitting", "witty", "city", "pity", "kit"]
    similarity = sm.kernels.Spectrum(k=2) if method == "reconstruction" else LEVENSHTEIN
    check_structured_estimator(
        sm.OutlierDetector(similarity, method, n_neighbors=2, n_components=3, novelty=True, random_state=0), words
    )


@pytest.mark.same_bits
@pytest.mark.parametrize("n_parts", [1, 3])
def test_reconstruction_of_a_dask_collection_is_that_in_memory(n_parts):
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("AB"), n)) for n in rng.integers(4, 12, 60)]
    X = rng.normal(size=(60, 4))
    bag, rows = dask.bag.from_sequence(words, npartitions=n_parts), dask.array.from_array(X, chunks=(60 // n_parts, 2))
    for kernel, local, lazy in [(sm.kernels.Spectrum(k=2), words, bag), (sm.kernels.RBF(0.1), X, rows)]:
        detector = sm.OutlierDetector(kernel, "reconstruction", n_components=8, random_state=0)
        labels = detector.fit_predict(local)
        other = clone(detector)
        np.testing.assert_array_equal(other.fit_predict(lazy), labels)
        np.testing.assert_array_equal(other.train_scores_, detector.train_scores_)
        assert other.offset_ == detector.offset_
        np.testing.assert_array_equal(other._calibration, detector._calibration)
        assert getattr(other, "n_features_in_", None) == getattr(detector, "n_features_in_", None)
    with pytest.raises(TypeError, match="method='neighbors' keeps all objects in memory"):
        sm.OutlierDetector(LEVENSHTEIN).fit(bag)


def test_neighbours_only_by_neighbours():
    spans = sm.OutlierDetector(sm.kernels.Spectrum(2), "reconstruction", n_components=2, random_state=0)
    spans.fit(["AB", "ABB", "BAB", "BBA"])
    assert not hasattr(spans, "kneighbors")
    assert not hasattr(clone(spans).fit(["AB", "ABB", "BAB", "BBA"]).set_params(method="neighbors"), "kneighbors")
    with pytest.raises(AttributeError, match="has no neighbours; set method='neighbors'"):
        spans.kneighbors()
    with pytest.raises(TypeError, match="have no parts; those of method='neighbors' have"):
        sm.explain(spans, "AAA")


def test_explained_by_the_neighbour_that_decides():
    words = ["kitten", "mitten", "bitten", "smitten"]
    detector = sm.OutlierDetector(LEVENSHTEIN, n_neighbors=2, contamination=0.25, novelty=True).fit(words)
    found = sm.explain(detector, "kitchen")
    _, farther = sorted(edits("kitchen", word) for word in words)[:2]
    number = next(i for i, word in enumerate(words) if edits("kitchen", word) == farther)
    assert found.value == farther == -detector.score_samples(["kitchen"])[0]
    in_pipeline = sm.Pipeline([("detector", sm.OutlierDetector(LEVENSHTEIN, n_neighbors=2))])
    assert sm.explain(in_pipeline.fit(words), "kitchen").value == farther
    assert f"training object {number}, at distance {farther:.3g}" in found.note
    assert sum(part.contribution for part in found.parts) == pytest.approx(farther)


@pytest.mark.parametrize("novelty", [False, True])
@pytest.mark.parametrize("k", [1, 4, 15])
def test_density_is_the_local_outlier_factor(novelty, k):
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(60, 3)) * rng.uniform(0.1, 3, (60, 1)), rng.normal(size=(20, 3))
    rbf = sm.kernels.RBF(0.1)
    ours = sm.OutlierDetector(rbf, "density", n_neighbors=k, novelty=novelty).fit(X)
    apart = np.sqrt(2 - 2 * rbf(X))
    np.fill_diagonal(apart, 0)
    theirs = LocalOutlierFactor(k, metric="precomputed", novelty=novelty).fit(apart)
    np.testing.assert_allclose(ours.train_scores_, theirs.negative_outlier_factor_, rtol=1e-6)
    if novelty:
        expected = theirs.score_samples(np.sqrt(2 - 2 * rbf(new, X)))
        np.testing.assert_allclose(ours.score_samples(new), expected, rtol=1e-6)
        with pytest.raises(AttributeError, match="method='density' has no p-values"):
            ours.p_values(new)


def test_density_finds_an_object_beside_a_dense_group():
    X = np.concatenate([np.linspace(0, 0.1, 30), np.linspace(5, 40, 30), [0.6]])[:, None]
    distance = sm.distances.FromFunction(lambda x, y: abs(float(x[0] - y[0])))
    by_density = sm.OutlierDetector(distance, "density", n_neighbors=5).fit(X).train_scores_
    by_distance = sm.OutlierDetector(distance, n_neighbors=5).fit(X).train_scores_
    assert by_density.argmin() == 60
    assert by_distance.argmin() != 60


def test_parameters_set_after_fit_change_no_prediction():
    words, new = ["kitten", "mitten", "bitten", "sitting", "fitting", "xylophone"], ["kitty", "quartz"]
    for method in ("neighbors", "density"):
        detector = sm.OutlierDetector(LEVENSHTEIN, method, n_neighbors=3, novelty=True).fit(words)
        before = detector.score_samples(new)
        detector.set_params(n_neighbors=1, method={"neighbors": "density", "density": "neighbors"}[method])
        np.testing.assert_array_equal(detector.score_samples(new), before)
        assert detector.kneighbors(new)[1].shape == (2, 3)
        assert hasattr(detector, "p_values") == (method == "neighbors")


@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_reconstruction_whatever_the_output_of_scikit_learn(output):
    X = np.random.default_rng(0).normal(size=(30, 3))
    frame = pd.DataFrame(X, index=np.arange(30)[::-1])
    detector = sm.OutlierDetector(sm.kernels.RBF(0.5), "reconstruction", n_components=5, novelty=True, random_state=0)
    expected = detector.fit(X).train_scores_, detector.p_values(X)
    with config_context(transform_output=output):
        found = detector.fit(frame).train_scores_, detector.p_values(frame)
    assert all(isinstance(scores, np.ndarray) for scores in found)
    np.testing.assert_array_equal(found, expected)
