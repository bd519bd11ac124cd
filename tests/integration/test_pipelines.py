"""Pipelines in blocks: the same results, within max_memory, with the numbers of the whole."""

from __future__ import annotations

import tracemalloc
import warnings
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.pipeline
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import (
    ElasticNet,
    Lasso,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
    RidgeCV,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.pipeline import FeatureUnion
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC, LinearSVR

import similia as sm

WORDS = ["".join(row) for row in np.random.default_rng(0).choice(list("ACGT"), (1600, 12))]
LABELS = [f"class {word.count('A') % 3}" for word in WORDS]


def hypervectors(n_bits=2048):
    return sm.recipes.nyshd(sm.kernels.Spectrum(k=2), 16, n_bits, random_state=0).fit(WORDS[:200], LABELS[:200])


def whole(model):
    return sklearn.pipeline.Pipeline(model.steps)


@pytest.mark.parametrize("memory", ["20KB", "1MB", "1GiB"])
def test_blocks_change_no_bit(memory):
    model = hypervectors()
    expected = whole(model)
    with sm.config(max_memory=memory):
        np.testing.assert_array_equal(model.predict(WORDS), expected.predict(WORDS))
        np.testing.assert_array_equal(model.decision_function(WORDS), expected.decision_function(WORDS))
        np.testing.assert_array_equal(model[:-1].transform(WORDS), expected[:-1].transform(WORDS))
        assert model.score(WORDS, LABELS) == expected.score(WORDS, LABELS)


def peak_of(call):
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_what_lies_between_steps_stays_within_max_memory():
    model = hypervectors(n_bits=16384)  # 2 KiB an object, 3.2 MB in all
    with sm.config(max_memory="1MiB"):
        model.predict(WORDS)
        ours, theirs = peak_of(lambda: model.predict(WORDS)), peak_of(lambda: whole(model).predict(WORDS))
    assert ours < 1.25 * 2**20
    assert theirs > 3 * 10**6  # so the bound above says something


def test_regressors_and_scores_with_weights():
    X = np.random.default_rng(0).normal(size=(500, 3))
    model = sm.Pipeline([("scale", StandardScaler()), ("ridge", Ridge())]).fit(X, X.sum(axis=1))
    expected, weights, y = whole(model), np.arange(500.0), X[:, 0]
    with sm.config(max_memory="1B"):
        np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=1e-12)
        assert model.score(X, y) == pytest.approx(expected.score(X, y), rel=1e-12)
        scored = model.score(X, y, sample_weight=weights)
    assert scored == pytest.approx(expected.score(X, y, sample_weight=weights), rel=1e-12)


@pytest.mark.parametrize("n_targets", [1, 2])
def test_blocks_keep_the_probabilities_of_each_target_apart(n_targets):
    X = np.random.default_rng(0).normal(size=(200, 3))
    y = np.c_[X[:, 0] > 0, np.digitize(X[:, 1], [-0.5, 0.5])][:, :n_targets].squeeze()
    model = sm.Pipeline([("scale", StandardScaler()), ("forest", RandomForestClassifier(3, random_state=0))]).fit(X, y)
    expected = whole(model).predict_proba(X)
    with sm.config(max_memory="1B"):
        found = model.predict_proba(X)
    assert type(found) is type(expected)
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs, strict=True)


def kinds():
    X = np.random.default_rng(0).normal(size=(200, 3))
    names = ["a", "b", "c"]
    return {"array": X, "list": X.tolist(), "frame": pd.DataFrame(X, columns=names), "sparse": sp.csr_array(X)}


@pytest.mark.parametrize("kind", kinds())
def test_collections_are_cut_and_joined_as_what_they_are(kind):
    X = kinds()[kind]
    model = sm.Pipeline([("same", FunctionTransformer()), ("same again", FunctionTransformer())]).fit(X)
    with sm.config(max_memory="1B"):
        found = model.transform(X)
    assert type(found) is type(X)
    if kind == "frame":
        pd.testing.assert_frame_equal(found, X)
    else:
        np.testing.assert_array_equal(found.toarray() if kind == "sparse" else found, kinds()["array"])


@pytest.mark.parametrize("first", ["default", "pandas", "polars"])
@pytest.mark.parametrize("last", ["pandas", "polars"])
def test_frames_that_steps_make_of_a_list_are_those_of_the_whole(first, last):
    steps = [StandardScaler().set_output(transform=first), StandardScaler().set_output(transform=last)]
    X = np.random.default_rng(0).normal(size=(200, 3)).tolist()
    model = sm.Pipeline([("first", steps[0]), ("last", steps[1])]).fit(X)
    expected = whole(model).transform(X)
    calls = []
    steps = [*model.steps[:1], ("count", FunctionTransformer(lambda V: calls.append(len(V)) or V)), *model.steps[1:]]
    counted = sm.Pipeline(steps)
    with sm.config(max_memory="1KiB"):
        found = counted.transform(X)
    assert max(calls) < 100
    if last == "pandas":
        pd.testing.assert_frame_equal(found, expected)
    else:
        assert found.equals(expected)


def test_columns_of_a_record_are_not_objects():
    table = {"w": WORDS[:100], "v": list(range(100))}
    encoder = sm.codes.NGramEncoder(n_bits=64, random_state=0)
    records = sm.codes.RecordEncoder([("w", encoder)], random_state=0)
    model = sm.Pipeline([("records", records), ("classes", sm.HDClassifier(random_state=0))])
    with sm.config(max_memory="1B"):
        assert len(model.fit(table, [0, 1] * 50).predict(table)) == 100


@pytest.mark.filterwarnings("ignore:.* have similarity 0 to all landmarks")
@pytest.mark.parametrize("form", [list, pd.Series])
@pytest.mark.parametrize(
    "first",
    [
        sm.MeanMapFeatures(64, gamma=1.0, random_state=0),
        sm.Nystroem(sm.kernels.MeanMap(sm.kernels.RBF(1.0)), landmarks=[99, 98], random_state=0),
    ],
)
def test_empty_sets_may_fill_a_block(first, form):
    rng = np.random.default_rng(0)
    X = form([[]] * 40 + [rng.normal(size=(5, 2)) for _ in range(60)])
    model = sm.Pipeline([("first", first), ("svc", LinearSVC())]).fit(X, [0, 1] * 50)
    with sm.config(max_memory="1KB"):
        np.testing.assert_array_equal(model.predict(X), whole(model).predict(X))


def test_errors_and_warnings_name_objects_by_their_numbers_in_the_whole():
    model = hypervectors()
    bad = [*WORDS[:901], 7, *WORDS[902:]]
    with sm.config(max_memory="100KB"), pytest.raises(TypeError, match=r"^X\[901\] is int"):
        model.predict(bad)
    strange = [*WORDS[:1100], *["zzz"] * 500]
    with sm.config(max_memory="100KB"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.predict(strange)
    [message] = [str(warning.message) for warning in caught]
    number = int(message.partition("X[")[2].partition("]")[0])
    assert number >= 1100
    assert strange[number] == "zzz"


def test_steps_that_are_missing_say_so():
    model = sm.Pipeline([("nystroem", sm.Nystroem(sm.kernels.Spectrum(), 4)), ("scale", StandardScaler())])
    with pytest.raises(NotFittedError):
        model.transform(WORDS)
    assert not hasattr(model, "predict")
    assert hasattr(model, "transform")


def upper(words):
    return np.array([word.upper() for word in words])


def halves(words):
    values = [len(word) / 2 for word in words]
    return np.array([int(value) for value in values] if all(value.is_integer() for value in values) else values)


@pytest.mark.parametrize("read", [upper, halves])
def test_later_blocks_may_have_wider_types(read):
    words = ["ab"] * 100 + ["abcdefghi"] * 100 + ["ab"] * 100
    model = sm.Pipeline([("same", FunctionTransformer()), ("read", FunctionTransformer(read))]).fit(words)
    with sm.config(max_memory="4KiB"):
        np.testing.assert_array_equal(model.transform(words), read(words), strict=True)


def test_a_warm_start_leaves_the_given_step_as_it_was():
    X = np.random.default_rng(0).normal(size=(40, 3))
    learner = SGDClassifier(random_state=0, warm_start=True).fit(X, X[:, 0] > 0)
    before = deepcopy(learner)
    model = sm.Pipeline([("end", learner)]).fit(X, X[:, 0] < 0)
    np.testing.assert_array_equal(learner.coef_, before.coef_)
    np.testing.assert_array_equal(model[0].coef_, before.fit(X, X[:, 0] < 0).coef_)


def test_a_failed_refit_leaves_all_steps_as_they_were():
    model = sm.Pipeline([("nystroem", sm.Nystroem(sm.kernels.Spectrum(k=2), 8)), ("learner", LogisticRegression())])
    model.fit(WORDS[:50], LABELS[:50])
    expected, landmarks = model.predict_proba(WORDS[50:90]), model[0].landmark_indices_
    with pytest.raises(ValueError, match="class"):
        model.fit(WORDS[100:150], ["one"] * 50)  # the first step succeeds, the second takes two classes
    np.testing.assert_array_equal(model.predict_proba(WORDS[50:90]), expected)
    np.testing.assert_array_equal(model[0].landmark_indices_, landmarks)
    assert not hasattr(clone(model)[0], "landmark_indices_")


def test_nested_pipelines_are_fitted_all_at_once():
    inner = sm.Pipeline([("nystroem", sm.Nystroem(sm.kernels.Spectrum(k=2), 8)), ("scale", StandardScaler())])
    for kind in (sm.Pipeline, sklearn.pipeline.Pipeline):
        nested = kind(inner.steps)
        model = sm.Pipeline([("inner", nested), ("learner", LogisticRegression())]).fit(WORDS[:50], LABELS[:50])
        expected = model.predict_proba(WORDS[50:90])
        with pytest.raises(ValueError, match="class"):
            model.fit(WORDS[100:150], ["one"] * 50)
        np.testing.assert_array_equal(model.predict_proba(WORDS[50:90]), expected)


def test_a_union_and_what_is_in_it_are_fitted_all_at_once():
    X, scaler = np.random.default_rng(0).normal(size=(20, 3)), StandardScaler()
    union = FeatureUnion([("same", "passthrough"), ("inner", FeatureUnion([("scale", scaler)]))])
    table = ColumnTransformer([("scale", scaler, [0, 1])])
    model = sm.Pipeline([("both", FeatureUnion([("union", union), ("table", table)])), ("end", LogisticRegression())])
    expected = model.fit(X, [0, 1] * 10).predict_proba(X)
    assert not hasattr(scaler, "mean_")
    with pytest.raises(ValueError, match="class"):
        model.fit(X + 100, [0] * 20)
    np.testing.assert_array_equal(model.predict_proba(X), expected)


def test_a_fitted_step_keeps_its_kernel_when_another_pipeline_sets_it():
    kernel, models, expected = sm.kernels.Spectrum(k=2), {}, {}
    for k in (2, 3, 4):
        models[k] = sm.recipes.nyshd(kernel, 16, 256, random_state=0).set_params(nystroem__kernel__k=k)
        expected[k] = models[k].fit(WORDS[:50], LABELS[:50]).decision_function(WORDS[50:60])
    for k, model in models.items():
        np.testing.assert_array_equal(model.decision_function(WORDS[50:60]), expected[k])
    nystroem = sm.Nystroem(sm.kernels.Spectrum(k=2), 8, random_state=0).fit(WORDS[:50])
    before = nystroem.transform(WORDS[50:60])
    model = sm.Pipeline([("nystroem", nystroem)]).fit(WORDS[:50])
    assert model.set_params(nystroem__kernel__k=5).fit(WORDS[:50])[0].kernel_.k == 5
    np.testing.assert_array_equal(nystroem.transform(WORDS[50:60]), before)


def test_a_saved_pipeline_is_one_again(tmp_path):
    model = hypervectors()
    loaded = sm.load(sm.save(model, tmp_path / "model"))
    assert type(loaded) is sm.Pipeline
    with sm.config(max_memory="20KB"):
        np.testing.assert_array_equal(loaded.predict(WORDS), model.predict(WORDS))


def test_recipes_are_such_pipelines():
    recipes = sm.recipes
    found = [
        recipes.nyshd(sm.kernels.Spectrum()), recipes.d2ke(sm.distances.Levenshtein()), recipes.pca_itq(8),
        recipes.graphlet_optical(),
    ]  # fmt: skip
    assert {type(model) for model in found} == {sm.Pipeline}
    tuned = recipes.d2ke(sm.distances.Levenshtein(), 8, gamma="tune", cv=2, random_state=0)
    assert type(tuned.fit(WORDS[:40], LABELS[:40]).pipeline_) is sm.Pipeline


NUMBERS = np.array([word.count("A") - 0.5 * word.count("CG") for word in WORDS])
LINEAR = [
    (LinearSVC(random_state=0), LABELS, ["predict", "decision_function"]),
    (LinearSVC(random_state=0), [label == LABELS[0] for label in LABELS], ["predict", "decision_function"]),
    (LogisticRegression(), LABELS, ["predict", "predict_proba"]),
    (SGDClassifier(random_state=0), LABELS, ["decision_function"]),
    (RidgeClassifier(), LABELS, ["predict", "decision_function"]),
    (Ridge(), NUMBERS, ["predict"]),
    (Ridge(), np.stack([NUMBERS, -NUMBERS], axis=1), ["predict"]),
    (Ridge(), NUMBERS[:, None], ["predict"]),
    (RidgeCV(), NUMBERS, ["predict"]),
    (LinearSVR(random_state=0, max_iter=10_000), NUMBERS, ["predict"]),
    (Lasso(alpha=1e-4), NUMBERS, ["predict"]),
    (ElasticNet(alpha=1e-4), np.stack([NUMBERS, -NUMBERS], axis=1), ["predict"]),
    (SGDRegressor(random_state=0), NUMBERS, ["predict"]),
    (PoissonRegressor(alpha=1e-4), np.abs(NUMBERS), ["predict"]),
]


@pytest.mark.same_bits
@pytest.mark.parametrize(("learner", "y", "methods"), LINEAR, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_linear_models_return_the_same_bits_of_an_object_alone(learner, y, methods, dtype):
    features = sm.D2KE(sm.distances.Levenshtein(), 67, random_state=0)
    steps = [("d2ke", features), ("dtype", FunctionTransformer(np.asarray, kw_args={"dtype": dtype})), ("end", learner)]
    model = sm.Pipeline(steps).fit(WORDS[:150], y[:150])
    for method in methods:
        together, theirs = (getattr(pipeline, method)(WORDS[:203]) for pipeline in (model, whole(model)))
        assert together.shape == theirs.shape
        assert together.dtype == theirs.dtype
        if together.dtype.kind == "f":
            np.testing.assert_allclose(together, theirs, atol=1e-5 if dtype == np.float32 else 1e-12)
        for n in (1, 7):
            parts = [getattr(model, method)(WORDS[start : start + n]) for start in range(0, 203, n)]
            np.testing.assert_array_equal(np.concatenate(parts), together)
    assert type(model[-1]) is type(learner)


def test_linear_models_after_sparse_features_and_with_sparse_coefficients():
    steps = [("kmers", sm.KernelFeatures(sm.kernels.Spectrum(k=3), 512)), ("end", LinearSVC(random_state=0))]
    model = sm.Pipeline(steps).fit(WORDS[:300], LABELS[:300])
    expected = whole(model).decision_function(WORDS[:300])
    np.testing.assert_allclose(model.decision_function(WORDS[:300]), expected, rtol=1e-12)
    model[-1].sparsify()
    np.testing.assert_allclose(model.decision_function(WORDS[:300]), expected, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:.*ll-conditioned matrix")
@pytest.mark.parametrize("learner", [RidgeClassifier(), RidgeCV(), LinearRegression(), LogisticRegression()])
@pytest.mark.parametrize("fitted_to", [np.float16, np.float32, np.longdouble])
@pytest.mark.parametrize("given", [np.float16, np.float32, np.longdouble])
def test_linear_models_return_the_dtype_of_scikit_learn(learner, fitted_to, given):
    X = np.random.default_rng(0).integers(-4, 5, (90, 3)) / 4
    model = sm.Pipeline([("end", clone(learner))]).fit(X.astype(fitted_to), X[:, 0] > 0)
    method = "decision_function" if hasattr(model, "decision_function") else "predict"
    ours, theirs = (getattr(one, method)(X.astype(given)) for one in (model, whole(model)))
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours, theirs, atol=1e-2 if fitted_to == given == np.float16 else 1e-5)  # theirs rounds


@pytest.mark.parametrize("learner", [Ridge(), LogisticRegression()])
def test_linear_models_take_long_doubles(learner):
    model = sm.Pipeline([("end", learner)]).fit(np.eye(4), np.arange(4))
    np.testing.assert_array_equal(model.predict(np.eye(4, dtype=np.longdouble)), model.predict(np.eye(4)))


def test_linear_models_refuse_vectors_of_another_width():
    model = sm.Pipeline([("end", Ridge())]).fit(np.eye(4), np.arange(4.0))
    with pytest.raises(ValueError, match=r"X has 3 features, but Ridge is expecting 4 features"):
        model.predict(np.eye(3))
