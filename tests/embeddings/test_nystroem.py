"""Nystroem: the definition, its laws, order-free rows, scikit-learn."""

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

import similia as sm
from naive import similarities as naive
from samples.nystroem import SINGLE, STRATEGIES, normal, relative_error
from similia.kernels import Cosine, MeanMap, Normalized, Product, Sum


class RBF(BaseEstimator):
    """A kernel with a parameter that grid search can reach."""

    def __init__(self, gamma=0.1):
        self.gamma = gamma

    def __call__(self, X, Y=None):
        return rbf_kernel(X, Y, gamma=self.gamma)


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


@pytest.mark.parametrize("parts", [[[0, 3, 5], [10, 11, 12, 13], [40, 41]], [[0, 3, 5], [10, 11, 12, 13]]])
def test_ensemble_is_the_weighted_mixture(parts):
    X = normal(80, 3)
    nystroem = sm.Nystroem(rbf_kernel, landmarks=parts, random_state=0)
    Z = nystroem.fit_transform(X)
    K = rbf_kernel(X)
    expected = sum(w * naive.nystroem(K, part) for w, part in zip(nystroem.weights_, parts, strict=True))
    np.testing.assert_allclose(Z @ Z.T, expected, atol=1e-10)
    equal = sum(naive.nystroem(K, part) / len(parts) for part in parts)
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


@pytest.mark.parametrize(
    "kernel",
    [Cosine("projection"), Sum([linear_kernel]), Product([linear_kernel]), Normalized(linear_kernel)],
    ids=lambda kernel: type(kernel).__name__,
)
@pytest.mark.parametrize("landmarks", ["uniform", "rpcholesky"])
def test_rounding_in_float32_is_not_rank_though_values_are_float64(kernel, landmarks):
    X = normal(200, 10).astype(np.float32)
    nystroem = sm.Nystroem(kernel, 200, landmarks, spectrum="raise", random_state=0).fit(X)
    assert nystroem.rank_ == 10
    assert relative_error(kernel(X.astype(np.float64)), nystroem.transform(X)) < 1e-5


@pytest.mark.parametrize("ground", [Cosine("projection"), linear_kernel], ids=["Cosine", "function"])
@pytest.mark.parametrize("n_first", [0, 6])
def test_rounding_in_float32_of_points_is_not_rank(ground, n_first):
    X = [*normal(360, 3).astype(np.float32).reshape(60, 6, 3)]
    X[0] = X[0][:n_first]
    for kernel in (MeanMap(ground), Normalized(MeanMap(ground))):
        assert sm.Nystroem(kernel, 60, spectrum="raise", random_state=0).fit(X).rank_ == 3


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
    for K, sentence in (
        (-np.eye(3), "no positive eigenvalue"),
        (np.diag([0.0, 0.0, -1.0]), "no positive eigenvalue"),
        (np.zeros((3, 3)), "too short or too small"),
    ):
        with pytest.raises(ValueError, match=sentence):
            sm.Nystroem("precomputed", 3, spectrum="flip").fit(K)


@pytest.mark.parametrize(("smallest", "refused"), [(-1e-3, True), (-1e-9, True), (-1e-11, False), (1e-3, False)])
def test_how_negative_an_eigenvalue_may_be(smallest, refused):
    K = QUARTER @ np.diag([1.0, 0.5, smallest]) @ QUARTER.T
    nystroem = sm.Nystroem("precomputed", landmarks=[0, 1, 2], spectrum="raise")
    if refused:
        with pytest.raises(ValueError, match="not positive semi-definite"):
            nystroem.fit(K)
    else:
        assert nystroem.fit(K).rank_ == 2 + (smallest > 0)


def test_directions_at_the_relative_limit_are_dropped():
    K = np.diag([1.0, 0.5, 0.25])
    assert [sm.Nystroem("precomputed", 3, rcond=r).fit(K).rank_ for r in (0.0, 0.25, 0.26, 0.5)] == [3, 2, 2, 1]


def test_rounding_is_not_indefinite():
    X = normal(100, 3)
    for dtype in (np.float64, np.float32):  # "raise" would refuse a matrix that is indefinite beyond rounding
        assert sm.Nystroem(linear_kernel, 100, spectrum="raise", random_state=0).fit(X.astype(dtype)).rank_ == 3


# ---- order-free rows


@pytest.mark.same_bits
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


@pytest.mark.same_bits
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


# ---- approximation_error


def test_blocks_of_transform_keep_to_the_working_memory():
    sizes = []

    def watched(X, Y):
        sizes.append(len(X))
        return linear_kernel(X, Y)

    nystroem = sm.Nystroem(watched, 20, random_state=0).fit(normal(30, 20))
    sizes.clear()
    with sm.config(max_memory=2**16):
        nystroem.transform(normal(1000, 20))
    assert sum(sizes) == 1000
    assert max(sizes) * 8 * (2 * 20 + nystroem.rank_) <= 2**16  # kernel values, twice, and vectors


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
    with config_context(transform_output="pandas"):
        assert nystroem.approximation_error(X, n_samples=None) == pytest.approx(exact, rel=1e-8)


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


@pytest.mark.parametrize("landmarks", ["uniform", [[0, 3, 5], [10, 11, 12, 13]]])
def test_a_saved_embedding_is_the_same(landmarks, tmp_path):
    X = ["GATTACA", "TTACAT", "GGCC", "CCGGA", "ACGTAC"] * 4
    nystroem = sm.Nystroem(sm.kernels.Spectrum(k=2), 4, landmarks=landmarks, random_state=0).fit(X)
    again = sm.load(sm.save(nystroem, tmp_path / "nystroem"))
    np.testing.assert_array_equal(again.transform(X), nystroem.transform(X))


@pytest.mark.parametrize("starts", [[], [[1, 0]], [[0, 0], [9, 9]]])
def test_experts_that_do_not_fill_the_components_are_not_saved(starts, tmp_path):
    nystroem = sm.Nystroem(sm.kernels.Spectrum(k=2), 4, random_state=0).fit(["GATTACA", "TTACAT", "GGCC", "CCGGA"])
    nystroem._corners = np.array([*starts, nystroem.components_.shape])
    with pytest.raises(ValueError, match="cannot be saved: a Nystroem has attributes that do not fit"):
        sm.save(nystroem, tmp_path / "nystroem")


class DoubledSpectrum(sm.kernels.Spectrum):
    """A kernel with features that are not the kernel: its values are doubled."""

    def __call__(self, X, Y=None):
        return 2 * super().__call__(X, Y)


def test_few_objects_of_a_kernel_with_values_of_its_own():
    X = ["GATTACA", "TTACAT", "GGCC", "CCGGA", "ACGTAC"] * 20
    nystroem = sm.Nystroem(DoubledSpectrum(k=2), 4, random_state=0).fit(X)
    np.testing.assert_array_equal(nystroem.transform(X[:1]), nystroem.transform(X)[:1])


def test_a_fitted_embedding_takes_what_it_was_fitted_to_whatever_the_parameter_is_now():
    X = np.random.default_rng(0).normal(size=(12, 2))
    for kernel, data, other in ((rbf_kernel, X, "precomputed"), ("precomputed", rbf_kernel(X), rbf_kernel)):
        model = sm.Nystroem(kernel, 5, random_state=0).fit(data)
        before = model.transform(data[:3])
        np.testing.assert_array_equal(model.set_params(kernel=other).transform(data[:3]), before)
