"""KernelFeatures: the features of the kernel, in pipelines, grid search and files."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted

import similia as sm
from similia import kernels

# The classes have the same letters, and differ in their order only: k=1 cannot tell them apart.
X = ["ABABAB", "BABABA", "ABABABAB", "BABA", "AABB", "BBAA", "AAABBB", "BBAABBAA"] * 2
Y = ([0] * 4 + [1] * 4) * 2


@pytest.mark.parametrize(
    ("kernel", "objects"),
    [
        (kernels.Spectrum(k=2, normalize=True), X),
        (kernels.Sum([kernels.Spectrum(k=1), kernels.Spectrum(k=3)]), X),
        (kernels.WeisfeilerLehman(n_iter=1), [nx.path_graph(3), nx.cycle_graph(4)]),
    ],
)
def test_features_are_those_of_the_kernel(kernel, objects):
    features = sm.KernelFeatures(kernel, n_features=512).fit_transform(objects)
    assert (features != kernel.features(objects, 512)).nnz == 0
    assert features.shape == (len(objects), 512)
    wide = sm.KernelFeatures(kernel).transform(objects)
    assert wide.shape == (len(objects), 2**20)
    np.testing.assert_allclose((wide @ wide.T).toarray(), kernel(objects))


def test_estimator_contract():
    kernel = kernels.Spectrum(k=2)
    step = sm.KernelFeatures(kernel, n_features=64)
    assert step.fit(X, Y) is step
    assert step.kernel is kernel
    assert step.get_params() == {
        "kernel": kernel,
        "n_features": 64,
        **{f"kernel__{k}": v for k, v in kernel.get_params().items()},
    }
    fresh = clone(step)
    assert fresh.kernel is not kernel
    assert (fresh.transform(X) != step.transform(X)).nnz == 0
    try:
        check_is_fitted(fresh)
    except NotFittedError:
        pytest.fail("a stateless transformer needs no fit")


def test_grid_search_reaches_the_kernel():
    pipeline = make_pipeline(sm.KernelFeatures(kernels.Spectrum(k=1, normalize=True), 2**12), LinearSVC())
    search = GridSearchCV(pipeline, {"kernelfeatures__kernel__k": [1, 2]}, cv=2).fit(X, Y)
    assert search.best_params_ == {"kernelfeatures__kernel__k": 2}
    assert search.predict(X).tolist() == Y


def test_a_saved_pipeline_predicts_the_same(tmp_path):
    pipeline = make_pipeline(sm.KernelFeatures(kernels.Spectrum(k=2), 2**12), LinearSVC()).fit(X, Y)
    loaded = sm.load(sm.save(pipeline, tmp_path / "model.similia"))
    np.testing.assert_array_equal(loaded.decision_function(X), pipeline.decision_function(X))
    assert loaded[0].kernel.k == 2


@pytest.mark.parametrize(
    ("step", "error", "sentence"),
    [
        (sm.KernelFeatures(kernels.Product([kernels.Spectrum()])), TypeError, "no explicit features; similia.Nystroem"),
        (sm.KernelFeatures(len), TypeError, "no explicit features; similia.Nystroem"),
        (sm.KernelFeatures(kernels.Spectrum), TypeError, r"is the class Spectrum, .* write Spectrum\(\.\.\.\)"),
        (sm.KernelFeatures(kernels.Spectrum(), 0), ValueError, "n_features must be an integer >= 1, got 0"),
    ],
)
def test_bad_parameters_get_one_sentence(step, error, sentence):
    for call in (step.fit, step.transform):
        with pytest.raises(error, match=sentence) as raised:
            call(X)
        assert "\n" not in str(raised.value)
