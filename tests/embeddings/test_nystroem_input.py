"""Nystroem: precomputed kernels, objects of any kind and bad input."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import cosine_similarity, linear_kernel, rbf_kernel
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import similia as sm
from samples.nystroem import STRATEGIES, normal
from similia.core.products import row_product

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


@pytest.mark.parametrize("landmarks", ["uniform", "kmeans++", np.arange(30)[::-1]], ids=str)
def test_all_landmarks_precomputed_columns_are_in_training_order(landmarks):
    X = normal(34, 2)
    kernel = partial(rbf_kernel, gamma=5)
    nystroem = sm.Nystroem("precomputed", 30, landmarks, random_state=1, rcond=0).fit(kernel(X[:30]))
    L = X[:30][nystroem.landmark_indices_]
    Z = nystroem.transform(kernel(X[:30], L))
    np.testing.assert_allclose(Z @ Z.T, kernel(X[:30]), atol=1e-7)
    np.testing.assert_array_equal(nystroem.transform(kernel(X[30:], L)), nystroem.transform(kernel(X[30:], X[:30])))


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
        ((10, 4), [[0, 1], [2, 3]], r"shape \(10, 4\), expected a square kernel matrix to weight the experts"),
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


# ---- bad input


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"n_components": 0}, "n_components must be an integer >= 1"),
        ({"n_components": 2.5}, "n_components must be an integer >= 1"),
        ({"landmarks": "best"}, "landmarks='best' is unknown; choose one of.*'rpcholesky'"),
        ({"landmarks": [0, 10]}, "landmark index 10 is out of range, expected 0 to 9 for 10 objects"),
        ({"landmarks": [-1]}, "landmark index -1 is out of range"),
        ({"landmarks": []}, "non-empty 1-D array of integer indices"),
        ({"landmarks": np.array([], int)}, "non-empty 1-D array of integer indices"),
        ({"landmarks": [0.0, 1.0]}, "non-empty 1-D array of integer indices"),
        ({"landmarks": np.zeros((2, 2, 1), int)}, r"got shape \(2, 2, 1\)"),
        ({"landmarks": [True, False]}, "numpy.flatnonzero"),
        ({"landmarks": [[0, 1], [2.5]]}, "integer indices"),
        ({"landmarks": lambda X, k, s, rng: [99]}, "landmark index 99 is out of range"),
        ({"spectrum": "drop"}, "spectrum='drop' is unknown; choose one of"),
        ({"rcond": -1.0}, "rcond must be at least 0"),
        ({"rcond": 1.0}, "rcond must be at least 0 and below 1, got 1.0"),
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
    with pytest.raises(ValueError, match=r"do not fit a matrix of shape .*; fit again"):
        row_product(rbf_kernel(normal(3, 2), nystroem.landmarks_), change(nystroem.components_))
