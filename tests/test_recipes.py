"""NysHD as a pipeline: what it composes, that it learns, and that the same seed gives the same model."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

import similia as sm


@pytest.fixture(scope="module")
def promoters():
    return sm.datasets.load_promoters(return_X_y=True)


def test_nyshd_learns_promoters(promoters):
    X, y = promoters
    model = sm.recipes.nyshd(sm.kernels.GappyKmers(k=4, gaps=1), random_state=0)
    assert cross_val_score(model, X, y, cv=5).mean() > 0.8  # a coin gives 0.5 +- 0.05


def test_auto_landmarks_follow_the_paper(promoters):
    X, y = promoters
    model = sm.recipes.nyshd(sm.kernels.Spectrum(k=2), random_state=0).fit(X, y)
    assert len(model["nystroem"].landmark_indices_) == 106  # min(n, max(300, 0.02 n))
    many = list(X) * 4
    assert len(model["nystroem"].fit(many).landmark_indices_) == 300


def test_same_seed_same_codes_and_predictions(promoters):
    X, y = promoters
    model = sm.recipes.nyshd(sm.kernels.Spectrum(k=3), n_landmarks=40, n_bits=512, random_state=5)
    first, second = clone(model).fit(X, y), clone(model).fit(X, y)
    np.testing.assert_array_equal(first[:-1].transform(X), second[:-1].transform(X))
    np.testing.assert_array_equal(first[-1].prototypes_, second[-1].prototypes_)
    other = sm.recipes.nyshd(sm.kernels.Spectrum(k=3), n_landmarks=40, n_bits=512, random_state=6).fit(X, y)
    assert (other[:-1].transform(X) != first[:-1].transform(X)).any()


def test_codes_of_an_object_do_not_depend_on_the_others(promoters):
    X, y = promoters
    encoder = sm.recipes.nyshd(sm.kernels.GappyKmers(), n_bits=2048, random_state=0).fit(X, y)[:-1]
    together = encoder.transform(X)
    with sm.config(max_memory=2000):
        np.testing.assert_array_equal(encoder.transform(X), together)
    np.testing.assert_array_equal(np.vstack([encoder.transform([x]) for x in X]), together)


def test_grid_search_reaches_the_kernel(promoters):
    X, y = promoters
    model = sm.recipes.nyshd(sm.kernels.Spectrum(), n_bits=512, random_state=0)
    search = GridSearchCV(model, {"nystroem__kernel__k": [1, 4]}, cv=3).fit(X, y)
    assert search.best_params_["nystroem__kernel__k"] == 4
    assert model["nystroem"].kernel.k == 3  # the given kernel is left alone
