"""Nystroem: the definition, its laws, order-free rows, bad input, scikit-learn."""

import pickle
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import cosine_similarity, linear_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

import naive
import similia as sm
from similia.embeddings._ordered_product import ordered_product

STRATEGIES = ["uniform", "kmeans++", "leverage", "rpcholesky", "adaptive", "ensemble"]
SINGLE = STRATEGIES[:-1]


class RBF(BaseEstimator):
    """A kernel with a parameter that grid search can reach."""

    def __init__(self, gamma=0.1):
        self.gamma = gamma

    def __call__(self, X, Y=None):
        return rbf_kernel(X, Y, gamma=self.gamma)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def relative_error(K, Z):
    K, Z = K.astype(np.float64), Z.astype(np.float64)
    return np.linalg.norm(K - Z @ Z.T) / np.linalg.norm(K)


# ---- the definition


@pytest.mark.parametrize("landmarks", SINGLE)
@pytest.mark.parametrize("rank", [3, 200])
def test_gram_matrix_is_the_definition(landmarks, rank):
    factor = normal(60, rank)
    nystroem = sm.Nystroem(linear_kernel, n_components=12, landmarks=landmarks, random_state=0)
    Z = nystroem.fit_transform(factor)
    expected = naive.nystroem(factor @ factor.T, nystroem.landmark_indices_)
    np.testing.assert_allclose(Z @ Z.T, expected, atol=1e-9 * np.abs(expected).max())
    assert Z.shape == (60, nystroem.rank_)
    assert nystroem.rank_ == min(rank, 12)


def test_ensemble_is_the_weighted_mixture():
    X = normal(80, 3)
    parts = [[0, 3, 5], [10, 11, 12, 13], [40, 41]]
    nystroem = sm.Nystroem(rbf_kernel, landmarks=parts, random_state=0)
    Z = nystroem.fit_transform(X)
    K = rbf_kernel(X)
    expected = sum(w * naive.nystroem(K, part) for w, part in zip(nystroem.weights_, parts, strict=True))
    np.testing.assert_allclose(Z @ Z.T, expected, atol=1e-10)
    equal = sum(naive.nystroem(K, part) / 3 for part in parts)
    assert np.linalg.norm(K - expected) < np.linalg.norm(K - equal)


def test_ensemble_drops_an_expert_that_adds_nothing():
    X = np.concatenate([np.eye(4), np.zeros((40, 4))])
    X[4:, 0] = np.linspace(1, 2, 40)
    nystroem = sm.Nystroem(linear_kernel, landmarks=[[0, 1, 2, 3], [1]], random_state=0).fit(X)
    assert len(nystroem.weights_) <= 2
    assert nystroem.components_.shape == (len(nystroem.landmark_indices_), nystroem.rank_)
    assert relative_error(X @ X.T, nystroem.transform(X)) < 0.02


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 25), st.integers(1, 30), st.integers(0, 2**16), st.data())
def test_laws(n, rank, seed, data):
    s = data.draw(st.integers(1, n))
    landmarks = data.draw(st.sampled_from(SINGLE))
    X = normal(n, rank, seed=seed)
    nystroem = sm.Nystroem(linear_kernel, n_components=s, landmarks=landmarks, random_state=seed).fit(X)
    Z, K = nystroem.transform(X), X @ X.T
    scale = np.abs(K).max()
    chosen = nystroem.landmark_indices_
    np.testing.assert_allclose((Z @ Z.T)[np.ix_(chosen, chosen)], K[np.ix_(chosen, chosen)], atol=1e-8 * scale)
    assert np.linalg.eigvalsh(K - Z @ Z.T).min() > -1e-8 * scale * n  # never above K in the Loewner order
    if s == n:
        np.testing.assert_allclose(Z @ Z.T, K, atol=1e-8 * scale)
    order = np.random.default_rng(seed).permutation(n)
    np.testing.assert_allclose(nystroem.transform(X[order]), Z[order], atol=1e-12 * scale)
    assert (np.diff(nystroem.eigenvalues_) <= 0).all()


def test_hand_worked():
    # H = [[4]] for the landmark x = 2 of the kernel x y: Theta = 2 x / sqrt(4) = x.
    nystroem = sm.Nystroem(linear_kernel, landmarks=[1]).fit([[1.0], [2.0], [3.0]])
    np.testing.assert_array_equal(nystroem.transform([[1.0], [-5.0]]), [[1.0], [-5.0]])
    np.testing.assert_array_equal(nystroem.eigenvalues_, [4.0])
    np.testing.assert_array_equal(nystroem.landmarks_, [[2.0]])


# ---- precision


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("repeats", [1, 2])
def test_rank_deficient_kernel_in_float32(dtype, repeats):
    X = np.tile(load_digits().data[:200], (repeats, 1)).astype(dtype)
    nystroem = sm.Nystroem(linear_kernel, n_components=len(X), random_state=0)
    Z = nystroem.fit_transform(X)
    assert Z.dtype == dtype
    assert nystroem.rank_ <= np.linalg.matrix_rank(X)
    assert relative_error(X @ X.T, Z) < (1e-4 if dtype == np.float32 else 1e-12)


def test_rounding_of_float32_values_is_not_rank():
    X = normal(200, 10).astype(np.float32)
    nystroem = sm.Nystroem(linear_kernel, 200, random_state=0).fit(X)
    assert nystroem.rank_ == 10
    assert relative_error(X.astype(np.float64) @ X.T, nystroem.transform(X)) < 1e-5


def test_rcond_sets_the_rank():
    X = np.diag([1.0, 0.1, 0.01])
    assert [sm.Nystroem(linear_kernel, 3, rcond=r).fit(X).rank_ for r in (0, 1e-3, 0.5)] == [3, 2, 1]


# ---- indefinite kernels: H has eigenvalues 4, 1 and -2 in a hand-made basis

QUARTER = np.array([[0.6, 0.8, 0.0], [-0.8, 0.6, 0.0], [0.0, 0.0, 1.0]])
INDEFINITE = QUARTER @ np.diag([4.0, 1.0, -2.0]) @ QUARTER.T


@pytest.mark.parametrize(
    ("spectrum", "eigenvalues"), [("flip", [4.0, 2.0, 1.0]), ("shift", [7.0, 4.0, 1.0]), ("clip", [4.0, 1.0])]
)
def test_policies(spectrum, eigenvalues):
    nystroem = sm.Nystroem("precomputed", 3, spectrum=spectrum, landmarks=[0, 1, 2])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Z = nystroem.fit(INDEFINITE).transform(INDEFINITE)
    np.testing.assert_allclose(nystroem.eigenvalues_, eigenvalues)
    new = {"flip": [4, 1, 2], "shift": [16 / 7, 1 / 4, 4], "clip": [4, 1, 0]}[spectrum]
    np.testing.assert_allclose(Z @ Z.T, QUARTER @ np.diag(new) @ QUARTER.T, atol=1e-12)
    if spectrum == "clip":
        assert "0.5 times its largest" in str(caught[0].message)
        assert caught[0].filename == __file__
    else:
        assert not caught


def test_raise_policy_and_no_positive_direction():
    with pytest.raises(ValueError, match=r"not positive semi-definite.*-2.*spectrum"):
        sm.Nystroem("precomputed", 3, spectrum="raise").fit(INDEFINITE)
    for K, sentence in ((-np.eye(3), "no positive eigenvalue"), (np.zeros((3, 3)), "too short or too small")):
        with pytest.raises(ValueError, match=sentence):
            sm.Nystroem("precomputed", 3, spectrum="flip").fit(K)


def test_rounding_is_not_indefinite():
    X = normal(100, 3)
    for dtype in (np.float64, np.float32):  # "raise" would refuse a matrix that is indefinite beyond rounding
        assert sm.Nystroem(linear_kernel, 100, spectrum="raise", random_state=0).fit(X.astype(dtype)).rank_ == 3


# ---- order-free rows


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 13), st.integers(1, 11), st.integers(1, 9), st.integers(0, 2**16))
def test_ordered_product_is_the_naive_sum(n, s, r, seed):
    rng = np.random.default_rng(seed)
    C, W = rng.normal(size=(n, s)), rng.normal(size=(s, r))
    np.testing.assert_array_equal(ordered_product(C, W), naive.product_in_order(C, W))


@pytest.mark.parametrize("landmarks", ["uniform", "ensemble"])
def test_rows_do_not_depend_on_company(landmarks):
    K = rbf_kernel(normal(2500, 5))
    nystroem = sm.Nystroem("precomputed", 97, landmarks=landmarks, random_state=0).fit(K)
    Z = nystroem.transform(K)
    for rows in ([3], [2499, 7], np.arange(0, 2500, 7), np.arange(1025)):
        np.testing.assert_array_equal(nystroem.transform(K[rows]), Z[rows])
    for max_memory in (1, 10_000, 1_000_000):
        with sm.config(max_memory=max_memory):
            np.testing.assert_array_equal(nystroem.transform(K[:300]), Z[:300])
    with threadpool_limits(limits=1):
        np.testing.assert_array_equal(nystroem.transform(K), Z)
    np.testing.assert_array_equal(nystroem.transform(np.asfortranarray(K)), Z)
    K.setflags(write=False)
    np.testing.assert_array_equal(nystroem.transform(K), Z)


@pytest.mark.parametrize("landmarks", STRATEGIES)
def test_fit_does_not_depend_on_threads_or_memory(landmarks):
    X = np.random.default_rng(0).integers(-3, 4, size=(400, 30)).astype(float)  # exact kernel values in any order

    def fitted():
        return sm.Nystroem(polynomial_kernel_exact, 200, landmarks, random_state=5).fit(X)

    first = fitted()
    with threadpool_limits(limits=1), sm.config(max_memory=20_000):
        second = fitted()
    np.testing.assert_array_equal(first.landmark_indices_, second.landmark_indices_)
    np.testing.assert_array_equal(first.components_, second.components_)


def polynomial_kernel_exact(X, Y=None):
    return (linear_kernel(X, Y) + 1) ** 2


# ---- precomputed kernels


def test_precomputed_equals_callable():
    X = normal(90, 4)
    K = rbf_kernel(X)
    by_kernel = sm.Nystroem(rbf_kernel, 20, random_state=3).fit(X[:70])
    by_matrix = sm.Nystroem("precomputed", 20, random_state=3).fit(K[:70, :70])
    chosen = by_kernel.landmark_indices_
    np.testing.assert_array_equal(by_matrix.landmark_indices_, chosen)
    expected = by_kernel.transform(X[70:])
    np.testing.assert_allclose(by_matrix.transform(K[70:, :70]), expected, atol=1e-10)
    np.testing.assert_allclose(by_matrix.transform(K[70:][:, chosen]), expected, atol=1e-10)
    tall = sm.Nystroem("precomputed", landmarks=chosen).fit(K[:70][:, chosen])
    np.testing.assert_allclose(tall.transform(K[70:][:, chosen]), expected, atol=1e-10)


def test_all_landmarks_precomputed_columns_are_in_training_order():
    K = rbf_kernel(normal(30, 2))
    nystroem = sm.Nystroem("precomputed", 30, random_state=1, rcond=0).fit(K)
    assert (nystroem.landmark_indices_ != np.arange(30)).any()
    assert relative_error(K, nystroem.transform(K)) < 1e-6


def test_cross_validation_slices_rows_and_columns():
    X, y = load_digits(return_X_y=True)
    X, y = X[:300], y[:300]
    kernel = partial(rbf_kernel, gamma=0.001)
    scores = [
        cross_val_score(make_pipeline(sm.Nystroem(k, 50, random_state=0), LinearSVC()), data, y, cv=3)
        for k, data in ((kernel, X), ("precomputed", kernel(X)))
    ]
    np.testing.assert_allclose(scores[0], scores[1], atol=0.02)
    assert scores[0].mean() > 0.85


def test_cross_validation_refuses_a_tall_block():
    K = rbf_kernel(normal(30, 2))[:, :10]
    pipeline = make_pipeline(sm.Nystroem("precomputed", landmarks=np.arange(10)), LinearSVC())
    with pytest.raises(ValueError, match="square"):
        cross_val_score(pipeline, K, np.arange(30) % 2, cv=3, error_score="raise")


@pytest.mark.parametrize(
    ("fit", "landmarks", "match"),
    [
        ((10, 4), "uniform", "expected a square kernel matrix"),
        ((10, 4), [1, 2, 3], "4 columns for 3 landmarks"),
        ((0, 0), "uniform", "at least one row"),
        ((5,), "uniform", r"got shape \(5,\)"),
    ],
)
def test_bad_precomputed_fit(fit, landmarks, match):
    with pytest.raises(ValueError, match=match):
        sm.Nystroem("precomputed", 3, landmarks).fit(np.ones(fit))


def test_bad_precomputed_transform():
    nystroem = sm.Nystroem("precomputed", 3, random_state=0).fit(np.eye(10))
    with pytest.raises(ValueError, match=r"7 columns, expected 10 .* or 3"):
        nystroem.transform(np.ones((2, 7)))
    with pytest.raises(ValueError, match=r"of shape \(10, 10\), got \(4, 10\)"):
        nystroem.approximation_error(np.ones((4, 10)))
    K = np.ones((4, 10))
    K[2] = np.nan
    with pytest.raises(ValueError, match=r"X\[2\] and landmark 0 is nan"):
        nystroem.transform(K)


# ---- any objects


def shared_letters(X, Y=None):
    Y = X if Y is None else Y
    return np.array([[len(set(x) & set(y)) for y in Y] for x in X], dtype=float)


WORDS = ["tree", "trees", "bush", "bushes", "", "shrub"]


@pytest.mark.parametrize("container", [list, tuple, pd.Series, partial(np.array, dtype=object)])
@pytest.mark.parametrize("landmarks", STRATEGIES)
def test_words_in_any_container(container, landmarks):
    X = container(WORDS)
    nystroem = sm.Nystroem(shared_letters, n_components=6, landmarks=landmarks, random_state=0)
    if landmarks == "ensemble":
        nystroem.landmarks = [[0, 1, 4], [2, 3, 5]]
    Z = nystroem.fit_transform(X)
    assert not Z[4].any()  # the empty word is similar to nothing: the zero vector
    assert Z[[0, 1, 2, 3, 5]].any(axis=1).all()
    if landmarks != "ensemble":
        np.testing.assert_allclose(Z @ Z.T, shared_letters(WORDS), atol=1e-12)


def test_objects_of_another_kind_are_announced():
    nystroem = sm.Nystroem(shared_letters, n_components=4).fit(["TREE", "TREES", "BUSH", "BUSHES"])
    with pytest.warns(UserWarning, match=r"3 of 4 objects have similarity 0 .* e\.g\. X\[1\]; are they") as caught:
        Z = nystroem.transform(["BUSH", "tree", "trees", "bush"])
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert not Z[1:].any()
    with sm.config(max_memory=1), pytest.warns(UserWarning, match=r"3 of 4 objects .* X\[1\]") as caught:
        nystroem.transform(["BUSH", "tree", "trees", "bush"])
    assert len(caught) == 1
    nystroem.transform(["BUSH", "tree"])  # one half: an empty object among others is no mistake


def test_labels_are_counted_before_a_kernel_value_is_computed():
    def never(X, Y):
        raise AssertionError("a kernel value was computed")

    with pytest.raises(ValueError, match="y has 3 labels for 6 objects; give one label per object"):
        sm.Nystroem(never, 2).fit(WORDS, [0, 1, 0])
    sm.Nystroem(shared_letters, 2, random_state=0).fit(WORDS, pd.Series(range(6)))


def test_sparse_rows_and_frames():
    X = np.abs(normal(40, 6))
    expected = sm.Nystroem(cosine_similarity, 10, random_state=0).fit_transform(X)
    for same in (sp.csr_matrix(X), sp.coo_array(X), pd.DataFrame(X)):
        Z = sm.Nystroem(cosine_similarity, 10, random_state=0).fit_transform(same)
        np.testing.assert_allclose(Z @ Z.T, expected @ expected.T, atol=1e-10)


def test_kernel_hooks_are_used_once_per_collection():
    converted = []

    class Kernel:
        def as_objects(self, X):
            if isinstance(X, np.ndarray):
                return X
            converted.append(len(X))
            return np.array([[len(x)] for x in X], dtype=float)

        def __call__(self, X, Y=None):
            X, Y = self.as_objects(X), self.as_objects(X if Y is None else Y)
            return X @ Y.T

    with sm.config(max_memory=1):
        sm.Nystroem(Kernel(), 3, "rpcholesky", random_state=0).fit(WORDS).transform(WORDS[:4])
    assert converted == [6, 4]


# ---- approximation_error


def test_approximation_error():
    X = normal(120, 4)
    K = rbf_kernel(X)
    nystroem = sm.Nystroem(rbf_kernel, 15, random_state=0).fit(X)
    exact = np.linalg.norm(K - naive.nystroem(K, nystroem.landmark_indices_)) / np.linalg.norm(K)
    assert nystroem.approximation_error(X, n_samples=None) == pytest.approx(exact, rel=1e-8)
    with sm.config(max_memory=3000):
        assert nystroem.approximation_error(X) == pytest.approx(exact, rel=1e-8)
    assert nystroem.approximation_error(X, n_samples=60) == pytest.approx(exact, rel=0.3)
    assert nystroem.approximation_error(X, 60) == nystroem.approximation_error(X, 60)
    precomputed = sm.Nystroem("precomputed", 15, random_state=0).fit(K)
    assert precomputed.approximation_error(K) == pytest.approx(exact, rel=1e-6)
    tall = sm.Nystroem("precomputed", landmarks=nystroem.landmark_indices_).fit(K[:, nystroem.landmark_indices_])
    assert tall.approximation_error(K) == pytest.approx(exact, rel=1e-6)


# ---- scikit-learn


def test_grid_search_reaches_the_kernel():
    X, y = load_digits(return_X_y=True)
    pipeline = make_pipeline(sm.Nystroem(RBF(), n_components=40, random_state=0), LinearSVC())
    search = GridSearchCV(pipeline, {"nystroem__kernel__gamma": [1e-3, 0.1]}, cv=2).fit(X[:200], y[:200])
    assert search.best_params_ == {"nystroem__kernel__gamma": 1e-3}


def test_estimator_contract():
    kernel = RBF(0.3)
    landmarks = np.array([1, 5, 6])
    nystroem = sm.Nystroem(kernel, landmarks=landmarks)
    X = normal(10, 2)
    before = X.copy()
    assert nystroem.fit(X) is nystroem
    assert nystroem.kernel is kernel
    assert nystroem.landmarks is landmarks
    np.testing.assert_array_equal(X, before)
    fresh = clone(nystroem)
    assert not hasattr(fresh, "landmarks_")
    np.testing.assert_array_equal(fresh.fit_transform(X), nystroem.transform(X))
    assert list(nystroem.get_feature_names_out()) == ["nystroem0", "nystroem1", "nystroem2"]
    frame = clone(nystroem).set_output(transform="pandas").fit_transform(X)
    assert list(frame.columns) == ["nystroem0", "nystroem1", "nystroem2"]
    again = pickle.loads(pickle.dumps(nystroem))
    np.testing.assert_array_equal(again.transform(X), nystroem.transform(X))


def test_seeds():
    X = normal(50, 3)
    chosen = [sm.Nystroem(rbf_kernel, 10, random_state=seed).fit(X).landmark_indices_ for seed in (0, 0, 1)]
    np.testing.assert_array_equal(chosen[0], chosen[1])
    assert (chosen[0] != chosen[2]).any()


def test_callable_landmarks():
    def first(X, kernel, n_components, rng):
        assert kernel is rbf_kernel
        return np.arange(n_components)

    nystroem = sm.Nystroem(rbf_kernel, 4, first).fit(normal(9, 2))
    np.testing.assert_array_equal(nystroem.landmark_indices_, [0, 1, 2, 3])


# ---- bad input


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        (
            {"n_components": 11},
            'n_components=11 landmarks cannot be chosen from 10 objects; use n_components="auto", or 10',
        ),
        ({"n_components": 0}, "n_components must be an integer >= 1"),
        ({"n_components": 2.5}, "n_components must be an integer >= 1"),
        ({"landmarks": "best"}, "landmarks='best' is unknown; choose one of.*'rpcholesky'"),
        ({"landmarks": [0, 10]}, "landmark index 10 is out of range, expected 0 to 9 for 10 objects"),
        ({"landmarks": [-1]}, "landmark index -1 is out of range"),
        ({"landmarks": []}, "non-empty 1-D array of integer indices"),
        ({"landmarks": [True, False]}, "numpy.flatnonzero"),
        ({"landmarks": [[0, 1], [2.5]]}, "integer indices"),
        ({"landmarks": lambda X, k, s, rng: [99]}, "landmark index 99 is out of range"),
        ({"spectrum": "drop"}, "spectrum='drop' is unknown; choose one of"),
        ({"rcond": -1.0}, "rcond must be at least 0"),
        ({"kernel": "rbf"}, "kernel must be a callable .* got 'rbf'"),
        ({"random_state": "seed"}, "random_state must be"),
    ],
)
def test_bad_parameters(parameters, match):
    with pytest.raises(ValueError, match=match):
        sm.Nystroem(**{"kernel": linear_kernel, "n_components": 5, **parameters}).fit(normal(10, 2))


def nan_for_one(X, Y=None):
    K = linear_kernel(X, Y)
    K[(X == 7).all(axis=1)] = np.nan
    return K


@pytest.mark.parametrize(
    ("kernel", "error", "match"),
    [
        (lambda X, Y: linear_kernel(X, Y)[:, :-1], ValueError, r"returned shape \(10, 9\) for 10 x 10 objects"),
        (lambda X, Y: 1.0, ValueError, r"returned shape \(\) .* similia.pairwise"),
        (lambda X, Y: np.full((len(X), len(Y)), "a"), TypeError, "expected real numbers"),
        (lambda X, Y: linear_kernel(X, Y) * 1j, TypeError, "complex128"),
        (lambda X, Y: X[:, :1] - Y[:, :1].T, ValueError, r"not symmetric: k\(X\[\d\], X\[\d\]\) = "),
        (nan_for_one, ValueError, r"X\[4\] and X\[\d\] is nan, expected a finite number"),
    ],
)
def test_bad_kernels(kernel, error, match):
    X = normal(10, 2)
    X[4] = 7
    with pytest.raises(error, match=match):
        sm.Nystroem(kernel, 10, random_state=0).fit(X)


def test_bad_row_in_transform_is_named_in_any_block():
    X = normal(10, 2)
    nystroem = sm.Nystroem(nan_for_one, 3, random_state=0).fit(X)
    X[8] = 7
    with sm.config(max_memory=1), pytest.raises(ValueError, match=r"X\[8\] and landmark 0 is nan"):
        nystroem.transform(X)


@pytest.mark.parametrize("X", [[], np.zeros((0, 3))])
def test_empty_collection(X):
    with pytest.raises(ValueError, match="X is empty"):
        sm.Nystroem(linear_kernel, 1).fit(X)
    with pytest.raises(ValueError, match="X is empty"):
        sm.Nystroem(linear_kernel, 1).fit(np.ones((2, 3))).transform(X)


def test_single_object():
    nystroem = sm.Nystroem(linear_kernel, 1, random_state=0)
    np.testing.assert_allclose(nystroem.fit_transform([[3.0, 4.0]]), [[5.0]])


@pytest.mark.parametrize("change", [lambda W: W[:-1], lambda W: np.vstack([W, W]), lambda W: W[:, 0]])
def test_components_that_do_not_fit_are_refused(change):
    """A file may hold anything; the compiled product must not read beyond an array."""
    nystroem = sm.Nystroem(rbf_kernel, n_components=5, random_state=0).fit(normal(20, 2))
    with pytest.raises(ValueError, match=r"do not fit components of shape .*; fit again"):
        ordered_product(rbf_kernel(normal(3, 2), nystroem.landmarks_), change(nystroem.components_))
