"""KernelFeatures: the features of the kernel, in pipelines, grid search and files."""

from __future__ import annotations

import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
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


@pytest.mark.parametrize("returned", [sp.csr_array((2, 1000)), sp.csr_array((1, 64)), sp.csc_array((2, 64)), 1.0])
def test_features_of_another_shape_or_format_are_refused(returned):
    class Broken:
        def features(self, X, n_features=None):
            return returned

    sentence = r"Broken.features returned .*, expected a sparse CSR matrix of shape \(2, 64\)$"
    with pytest.raises(ValueError, match=sentence):
        sm.KernelFeatures(Broken(), 64).fit_transform(["a", "b"])


# ---- objects of which training met nothing
UPPER = ["GATTACA", "ATTAC", "CCGCGG", "CGCGC"]


def trained(n_features=2**12, kernel=None, X=UPPER):
    features = sm.KernelFeatures(kernel or kernels.Spectrum(k=3), n_features)
    return make_pipeline(features, LinearSVC()).fit(X, [0, 0, 1, 1])


def said_of(model, objects):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.transform(objects) if hasattr(model, "transform") else model.predict(objects)
    assert all(issubclass(warning.category, UserWarning) for warning in caught)
    return [str(warning.message) for warning in caught]


def strangers_of(kernel, training, objects, n_features):
    """The slow way: columns as sets."""
    met = {c for x in training for c in kernel.features([x], n_features).nonzero()[1]}
    columns = [set(kernel.features([x], n_features).nonzero()[1]) for x in objects]
    q, found = len(met) / n_features, []
    for i, own in enumerate(columns):
        k = len(own)
        chance = q * k + 3 * (q * (1 - q) * k) ** 0.5 + 0.05 * (1 - q) * k
        if own and len(own & met) <= (0 if k < 8 else min(int(chance), k - 1)):
            found.append(i)
    return found


@pytest.mark.parametrize("n_features", [5, 64, 2**12, 2**20])
def test_the_objects_that_are_named_are_those_without_a_known_column(n_features):
    rng = np.random.default_rng(n_features)
    kernel = kernels.Spectrum(k=3)
    training = ["".join(word) for word in rng.choice(list("ACGT"), (4, 5))]
    model = trained(n_features, kernel, training)
    some = 0
    for _ in range(40):
        objects = ["".join(rng.choice(list("ACGTN"), rng.integers(0, 20))) for _ in range(9)]
        expected = strangers_of(kernel, training, objects, n_features)
        said = [text for text in said_of(model, objects) if "no features at all" not in text]
        some += bool(expected)
        assert len(said) == bool(expected)
        for text in said:
            assert text.startswith(f"{len(expected)} of 9 objects have no feature that a training object had, e.g. ")
            assert f"X[{expected[0]}]" in text
            assert "\n" not in text
    assert some or n_features == 5


def test_letters_of_another_case_are_heard_of():
    model = trained()
    [text] = said_of(model, ["GATTA", "gattaca", "", "ccgcgg"])
    assert text == (
        "2 of 4 objects have no feature that a training object had, e.g. X[1]; a linear model knows nothing "
        "about them; are they of the same kind (case, alphabet, labels) as the training objects?"
    )
    assert (
        said_of(model, UPPER) == said_of(model, ["", "GATTA", "GATtaca"]) == []
    )  # too short for a feature; one is known
    assert said_of(trained(kernel=kernels.WeisfeilerLehman(), X=[nx.path_graph(3)] * 4), [nx.path_graph(3)]) == []


def test_columns_that_many_features_share_do_not_hide_another_case():
    rng = np.random.default_rng(0)
    X = ["".join(rng.choice(list("ACDEFGHIKLMNPQRSTVWY"), 300)) for _ in range(120)]
    model = sm.KernelFeatures(kernels.Spectrum(k=3), 2**13)
    model.fit_transform(X[:90])  # 8000 words in 8192 columns: two thirds are met
    assert said_of(model, X[90:]) == []
    [text] = said_of(model, [x.lower() for x in X[90:]])
    assert int(text.split()[0]) > 20


def test_what_is_remembered_is_forgotten_by_fit():
    features = sm.KernelFeatures(kernels.Spectrum(k=2), 100)
    fitted = features.fit_transform(UPPER)
    assert (fitted != features.transform(UPPER)).nnz == 0
    bits = np.unpackbits(features.met_, bitorder="little")
    np.testing.assert_array_equal(np.flatnonzero(bits), np.unique(fitted.nonzero()[1]))
    assert features.met_.shape == (13,)
    assert len(said_of(features, ["acg"])) == 1
    before = features.met_.copy()
    features.transform(["acg"] * 0 + UPPER)
    np.testing.assert_array_equal(features.met_, before)
    assert said_of(sm.KernelFeatures(kernels.Spectrum(k=2), 100), ["acg"]) == []
    assert said_of(clone(features), ["acg"]) == []
    assert said_of(features.set_params(n_features=50), ["acg"]) == []  # what was met is of other columns
    assert said_of(features.fit(UPPER), ["acg"]) == []
    assert not hasattr(features, "met_")
    assert features.set_params(kernel=kernels.Optical()).fit(np.eye(3)).n_features_in_ == 3
    features.set_params(kernel=kernels.Spectrum(k=2)).fit(UPPER)
    assert features.transform(pd.DataFrame({"text": UPPER})).shape == (4, 50)
    wide = sm.KernelFeatures(kernels.Spectrum(k=2), 2**24 + 1)
    wide.fit_transform(UPPER)
    assert not hasattr(wide, "met_")


def test_what_is_remembered_is_saved_and_old_files_are_read(tmp_path):
    model = trained()
    loaded = sm.load(sm.save(model, tmp_path / "new.similia"))
    np.testing.assert_array_equal(loaded[0].met_, model[0].met_)
    assert said_of(loaded, ["acgt"]) == said_of(model, ["acgt"]) != []
    del model[0].met_  # as versions before this one wrote it
    old = sm.load(sm.save(model, tmp_path / "old.similia"))
    assert said_of(old, ["acgt"]) == []
    for wrong in (np.zeros(3, np.uint8), np.zeros(512), np.zeros((1, 512), np.uint8)):
        model[0].met_ = wrong
        with pytest.raises(ValueError, match="KernelFeatures has"):
            sm.save(model, tmp_path / "wrong.similia")


def test_a_stream_names_strangers_by_their_number(tmp_path):
    model = trained()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sm.scale.predict_stream(model, UPPER * 5 + ["acgt"], tmp_path / "p.csv", chunk=8)
    [text] = [str(warning.message) for warning in caught]
    assert text.startswith("1 of the objects 16 to 20 have no feature")
    assert "X[20]" in text


def test_objects_without_any_feature_are_heard_of():
    [text] = said_of(trained(), ["1", "2", "3", "GATTA"])
    assert text == (
        "3 of 4 objects have no features at all (are they too short?), e.g. X[0]; are they of the same kind (case, "
        "alphabet, labels) as the training objects?"
    )
    assert said_of(trained(), ["GATTA", "2", "CCGCG"]) == []
    assert said_of(trained(X=["1", "2", "3", "4"]), ["1", "2"]) == []  # as in training


@pytest.mark.parametrize(
    ("learner", "named"),
    [
        (sm.KNeighborsClassifier, "to all training objects,"),
        (sm.KernelSVC, "to all training objects that the model keeps,"),
    ],
)
def test_learners_on_a_kernel_tell_objects_unlike_all_training_objects(learner, named):
    model = learner(kernels.Spectrum(k=3)).fit(UPPER, [0, 0, 1, 1])
    [text] = said_of(model, ["GATTACA", "gattaca", "1", "CcGcGg"])
    assert text.startswith(f"3 of 4 objects have similarity 0 {named} e.g. X[1]; are they of the same kind")
    assert said_of(model, UPPER) == said_of(model, ["GATTACA", "gattaca"]) == []
    with sm.config(max_memory=64):  # blocks of a row
        assert said_of(model, ["GATTACA", "gattaca", "1", "CcGcGg"]) == [text]


def test_neighbours_by_a_distance_are_told_nothing():
    model = sm.KNeighborsClassifier(sm.distances.Levenshtein()).fit(UPPER, [0, 0, 1, 1])
    assert said_of(model, ["gattaca", "1"]) == []
