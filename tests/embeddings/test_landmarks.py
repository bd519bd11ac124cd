"""Landmark strategies: their laws by enumeration, their use on kernels that uniform sampling handles badly."""

import collections

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

import similia as sm
from naive import similarities as naive
from similia.embeddings import landmarks
from similia.embeddings.landmarks import Gram, PrecomputedGram
from similia.kernels import GappedKmers, MinMax, Normalized, Optical, Spectrum, Sum

NAMES = ["uniform", "kmeans++", "leverage", "rpcholesky", "adaptive"]


def narrow(X, Y):
    return rbf_kernel(X, Y, gamma=0.1)


def skewed_clusters(seed=0):
    """Return 800 vectors in one dense cluster and 3 vectors in each of 20 far ones."""
    rng = np.random.default_rng(seed)
    far = [rng.normal(size=10) * 5 + rng.normal(size=(3, 10)) * 0.2 for _ in range(20)]
    return np.concatenate([rng.normal(size=(800, 10)) * 0.2, *far])


def random_kernel(rng, n, rank):
    factor = rng.normal(size=(n, rank))
    return factor @ factor.T


def assert_follows(draw, law, n_draws=2000):
    """Check frequencies of `draw(rng)` against exact probabilities, to six standard errors."""
    rng = np.random.default_rng(7)
    with threadpool_limits(limits=1):  # thousands of tiny products
        counts = collections.Counter(tuple(int(i) for i in draw(rng)) for _ in range(n_draws))
    assert sum(law.values()) == pytest.approx(1)
    for sequence, p in law.items():
        assert abs(counts[sequence] / n_draws - p) <= 6 * np.sqrt(p * (1 - p) / n_draws) + 1e-9, sequence


@pytest.mark.parametrize("length", [1, 2, 3])
def test_rpcholesky_draws_by_the_residual_diagonal(length):
    K = np.array([[4.0, 3.8, 0.2, 0.1], [3.8, 4.0, 0.3, 0.0], [0.2, 0.3, 1.0, 0.6], [0.1, 0.0, 0.6, 0.5]])
    assert_follows(lambda rng: landmarks.rpcholesky(PrecomputedGram(K), length, rng), naive.pivot_law(K, length))


@pytest.mark.parametrize("length", [1, 2, 3])
def test_kmeans_plusplus_draws_by_squared_distance(length):
    K = random_kernel(np.random.default_rng(2), 4, 3)
    assert_follows(
        lambda rng: landmarks.kmeans_plusplus(PrecomputedGram(K), length, rng),
        naive.kmeans_plusplus_law(K, length),
    )


def test_ridge_scores_of_the_whole_collection_are_exact():
    K = random_kernel(np.random.default_rng(3), 30, 30)
    rank = 5
    ridge = np.sort(np.linalg.eigvalsh(K))[: 30 - rank].sum() / rank
    objects = np.arange(30)
    found = landmarks._ridge_scores(PrecomputedGram(K), K.diagonal(), objects, objects, np.ones(30), rank)
    np.testing.assert_allclose(found, naive.leverage_scores(K, ridge), rtol=1e-10)


def test_ridge_scores_from_a_weighted_half_are_close():
    X = np.random.default_rng(4).normal(size=(400, 3))
    K = rbf_kernel(X, gamma=0.2)
    half = np.arange(0, 400, 2)
    weights = np.full(200, np.sqrt(2.0))
    found = landmarks._ridge_scores(PrecomputedGram(K), K.diagonal(), np.arange(400), half, weights, 20)
    spectrum = np.sort(np.linalg.eigvalsh(K[np.ix_(half, half)] * 2))
    exact = naive.leverage_scores(K, spectrum[:-20].sum() / 20)
    assert (found > exact / 2).all()  # they may exceed the exact ones, where the half misses a direction
    assert np.median(np.abs(found - exact) / exact) < 0.2


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(NAMES), st.integers(2, 60), st.data())
def test_landmarks_are_distinct_objects(name, n, data):
    s = data.draw(st.integers(1, n))
    seed = data.draw(st.integers(0, 2**16))
    rank = data.draw(st.integers(1, n))
    K = random_kernel(np.random.default_rng(seed), n, rank)
    found = landmarks.STRATEGIES[name](PrecomputedGram(K), s, np.random.default_rng(seed))
    assert len(np.unique(found)) == len(found) <= s
    assert found.min() >= 0
    assert found.max() < n
    if name in ("uniform", "leverage", "adaptive"):
        assert len(found) == s
    if name == "rpcholesky":
        assert len(found) >= min(s, rank)
        if len(found) > rank:  # of rounding: the first ones explain K
            C = K[:, found[:rank]]
            np.testing.assert_allclose(C @ np.linalg.pinv(C[found[:rank]]) @ C.T, K, atol=1e-6 * K.diagonal().max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["kmeans++", "rpcholesky"])
def test_stops_when_all_objects_are_explained(name, dtype):
    X = np.repeat(np.random.default_rng(5).normal(size=(6, 4)), 20, axis=0).astype(dtype)
    gram = Gram(lambda X, Y: narrow(X, Y).astype(dtype), X)
    found = landmarks.STRATEGIES[name](gram, 50, np.random.default_rng(0))
    assert sorted(found // 20) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("name", NAMES)
def test_all_objects_identical(name):
    nystroem = sm.Nystroem(narrow, n_components=5, landmarks=name, random_state=0).fit(np.ones((20, 3)))
    assert nystroem.rank_ == 1
    np.testing.assert_allclose(nystroem.transform(np.ones((2, 3))), [[1.0], [1.0]])


@pytest.mark.parametrize(("name", "margin"), [("rpcholesky", 0.5), ("kmeans++", 0.5), ("leverage", 0.8)])
def test_beats_uniform_where_clusters_are_skewed(name, margin):
    X = skewed_clusters()

    def error(strategy):
        fits = (sm.Nystroem(narrow, 40, strategy, random_state=seed).fit(X) for seed in range(5))
        return np.mean([fit.approximation_error(X, n_samples=None) for fit in fits])

    assert error(name) < margin * error("uniform")


def test_adaptive_draws_by_what_was_sampled():
    # Half the rank of one landmark is none: the second is drawn by its squared similarity to the first.
    K = np.ones((12, 12))
    K[10:, 10:] += 100.0
    rng = np.random.default_rng(0)
    second = [landmarks.adaptive(PrecomputedGram(K), 2, rng, n_rounds=2) for _ in range(300)]
    after_far = [b for a, b in second if a == 10]
    assert len(after_far) > 10
    assert np.mean([b == 11 for b in after_far]) > 0.9  # probability 101^2 / (101^2 + 10)


@pytest.mark.parametrize("power", [-600, -20, 520])
@pytest.mark.parametrize("strategy", [landmarks.adaptive, landmarks.rpcholesky, landmarks.leverage])
def test_landmarks_do_not_depend_on_the_unit(strategy, power):
    K = random_kernel(np.random.default_rng(0), 60, 30)
    K[:30] *= 1e-3
    K[:, :30] *= 1e-3
    draws = [strategy(PrecomputedGram(np.ldexp(K, p)), 20, np.random.default_rng(0)) for p in (0, power)]
    np.testing.assert_array_equal(*draws)


def test_ensemble_splits_the_landmarks():
    experts = landmarks.ensemble(PrecomputedGram(np.eye(50)), 10, np.random.default_rng(0))
    assert [len(part) for part in experts] == [3, 3, 2, 2]
    assert len(np.unique(np.concatenate(experts))) == 10


def test_proposals_with_an_overstated_diagonal_do_not_loop():
    # A normalised kernel says k(x, x) = 1 for an empty object although its row is zero.
    class Kernel:
        def __call__(self, X, Y=None):
            return X @ (X if Y is None else Y).T

        def diag(self, X):
            return np.ones(len(X))

    X = np.concatenate([np.eye(3), np.zeros((5, 3))])
    found = landmarks.rpcholesky(Gram(Kernel(), X), 6, np.random.default_rng(0))
    assert sorted(found) == [0, 1, 2]


SHORT = ["GATTACA", "AC", "ACGTACGT", ""]


@pytest.mark.parametrize(
    ("kernel", "X"),
    [
        (Spectrum(3, normalize=True), SHORT),
        (GappedKmers(4, 3, normalize=True), SHORT),
        (MinMax(Spectrum(3)), SHORT),
        (Normalized(Normalized(Spectrum(3))), SHORT),
        (Sum([Spectrum(3, normalize=True), Spectrum(2)]), SHORT),
        (Optical(normalize=True), np.array([[1.0, 2.0], [0.0, 0.0]])),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_diagonal_is_that_of_a_block(kernel, X):
    gram = Gram(kernel, X)
    block = gram.block(np.arange(gram.n), np.arange(gram.n))
    assert block[1, 1] < gram.kernel.diag(X)[1]
    np.testing.assert_array_equal(gram.diagonal(), block.diagonal())


@pytest.mark.parametrize("name", ["kmeans++", "leverage"])
def test_objects_without_features_are_no_landmarks(name):
    words = np.random.default_rng(0).choice(list("ACGT"), (150, 30))
    X = [*map("".join, words), *["AC"] * 100]
    found = landmarks.STRATEGIES[name](Gram(Spectrum(3, normalize=True), X), 50, np.random.default_rng(0))
    assert (found >= 150).sum() <= 1  # k-means++ takes the origin of the feature space for a point like any other


def test_few_kernel_calls():
    calls = collections.Counter()

    class Kernel:
        def __call__(self, X, Y=None):
            calls["k"] += 1
            return narrow(X, Y)

        def diag(self, X):
            return np.ones(len(X))

    X = np.random.default_rng(0).normal(size=(500, 3))
    landmarks.rpcholesky(Gram(Kernel(), X), 80, np.random.default_rng(0))
    assert calls["k"] < 40  # one at a time would take 80 and more


@pytest.mark.parametrize("K", [np.eye(600), random_kernel(np.random.default_rng(0), 600, 3)], ids=["flat", "low rank"])
def test_leverage_asks_for_few_columns(K):
    widths = []

    class Watched(PrecomputedGram):
        def block(self, rows, columns):
            widths.append(len(columns))
            return super().block(rows, columns)

    landmarks.leverage(Watched(K), 16, np.random.default_rng(0))
    assert 8 < widths[0] <= 16  # objects are halved until at most s are left
    assert len(widths) == 2 * 6  # two blocks for 19, 38, 75, 150, 300 and 600 objects
    assert max(widths) < 3 * 16
