import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import (
    GridSearchCV,
    LeaveOneOut,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.svm import SVC

import similia as sm
from naive import heat_svc as naive_heat_svc
from similia.embeddings import HeatRandomFeatures
from similia.kernels.heat import HypersphericalHeat, heat_profile, suggest_contrast
from similia.learn.heat_svc import HeatSVC
from similia.learn.kernel_machines import best_of, nested_scores, precomputed_scores


def documents(seed=0, n=90, n_words=40, n_classes=3, overlap=0.6):
    """Word counts of classes whose words overlap, so that some labels are wrong whatever is learnt."""
    rng = np.random.default_rng(seed)
    common = rng.dirichlet(np.full(n_words, 0.3))
    own = rng.dirichlet(np.full(n_words, 0.3), size=n_classes)
    y = np.arange(n) % n_classes
    laws = overlap * common + (1 - overlap) * own[y]
    X = np.array([rng.multinomial(rng.integers(5, 40), law) for law in laws])
    order = rng.permutation(n)
    return X[order], np.array(["course", "faculty", "project", "student"])[y[order]]


def fold_array(y, k):
    folds = np.empty(len(y), dtype=int)
    for i, (_, test) in enumerate(StratifiedKFold(k).split(np.zeros((len(y), 1)), y)):
        folds[test] = i
    return folds


def heat_of(X):
    return lambda a: HypersphericalHeat(contrast=a)(X)


PARAMETERS, CS = [0.25, 2.0, 16.0], [0.1, 1.0, 10.0, 100.0]

# ---- scores on one Gram matrix


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("class_weight", [None, "balanced", {"course": 3.0, "faculty": 0.5}])
def test_scores_equal_a_grid_search(n_classes, class_weight):
    X, y = documents(n_classes, n_classes=n_classes)
    folds, of = fold_array(y, 4), heat_of(X)
    fast = precomputed_scores(of, PARAMETERS, CS, y, folds, class_weight)
    assert fast.shape == (3, 4, 4)
    slow = naive_heat_svc.precomputed_scores(of, PARAMETERS, CS, y, folds, class_weight)
    np.testing.assert_allclose(fast, slow, rtol=0, atol=1e-12)
    assert len(np.unique(fast)) > 5


@pytest.mark.parametrize(("seed", "n_folds", "class_weight"), [(0, 3, None), (1, 5, "balanced"), (2, 6, None)])
def test_nested_scores_equal_a_search_within_each_outer_fold(seed, n_folds, class_weight):
    X, y = documents(seed, n=70)
    folds, of = fold_array(y, n_folds), heat_of(X)
    fast = nested_scores(of, PARAMETERS, CS, y, folds, class_weight)
    accuracies, parameters, Cs, predictions = naive_heat_svc.nested_scores(of, PARAMETERS, CS, y, folds, class_weight)
    assert fast.parameters == parameters
    np.testing.assert_array_equal(fast.Cs, Cs)
    np.testing.assert_array_equal(fast.predictions, predictions)
    np.testing.assert_allclose(fast.accuracies, accuracies, rtol=0, atol=1e-12)
    assert len(set(zip(parameters, Cs, strict=True))) > 1  # the folds do choose differently


def test_scikit_learns_own_nested_cross_validation_agrees():
    X, y = documents(3, n=60)
    folds = fold_array(y, 4)
    of, rows = heat_of(X), np.arange(60)[:, None]
    outer = [(np.flatnonzero(folds != i), np.flatnonzero(folds == i)) for i in range(4)]

    class OtherFolds:
        def split(self, rows, y=None, groups=None):
            for i in np.unique(folds[rows[:, 0]]):
                yield np.flatnonzero(folds[rows[:, 0]] != i), np.flatnonzero(folds[rows[:, 0]] == i)

        def get_n_splits(self, X=None, y=None, groups=None):
            return 3

    model = naive_heat_svc.GramSVC({p: of(p) for p in PARAMETERS})
    grid = [{"C": [C], "parameter": [p]} for C in CS for p in PARAMETERS]
    expected = cross_val_score(GridSearchCV(model, grid, cv=OtherFolds()), rows, y, cv=outer)
    np.testing.assert_allclose(nested_scores(of, PARAMETERS, CS, y, folds).accuracies, expected, atol=1e-12)


def test_each_gram_matrix_is_made_once_and_may_reuse_memory():
    X, y = documents(4, n=40)
    folds, of = fold_array(y, 4), heat_of(X)
    calls, buffer = [], np.empty((40, 40))

    def counted(a):
        calls.append(a)
        np.copyto(buffer, of(a))
        return buffer

    assert np.array_equal(
        precomputed_scores(counted, PARAMETERS, CS, y, folds), precomputed_scores(of, PARAMETERS, CS, y, folds)
    )
    assert calls == PARAMETERS
    calls.clear()
    a, b = nested_scores(counted, PARAMETERS, CS, y, folds), nested_scores(of, PARAMETERS, CS, y, folds)
    np.testing.assert_array_equal(a.predictions, b.predictions)
    assert calls == PARAMETERS + sorted(set(a.parameters))


def test_order_of_cs_does_not_change_scores():
    X, y = documents(5)
    folds, of = fold_array(y, 3), heat_of(X)
    up, down = precomputed_scores(of, [2.0], CS, y, folds), precomputed_scores(of, [2.0], CS[::-1], y, folds)
    np.testing.assert_array_equal(up, down[:, ::-1])


@pytest.mark.same_bits
def test_results_do_not_depend_on_threads(monkeypatch):
    X, y = documents(6)
    folds, of = fold_array(y, 5), heat_of(X)
    several = nested_scores(of, PARAMETERS, CS, y, folds)
    monkeypatch.setattr("similia.core.config.cpu_count", lambda: 1)
    one = nested_scores(of, PARAMETERS, CS, y, folds)
    np.testing.assert_array_equal(one.predictions, several.predictions)


def test_a_kernel_that_knows_the_label_is_right_everywhere_and_noise_is_not():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    known = (y[:, None] == y).astype(float)
    folds = fold_array(y, 5)
    assert (nested_scores(lambda p: known, [None], [1.0], y, folds).accuracies == 1).all()
    noise = rng.normal(size=(60, 200))
    assert nested_scores(lambda p: noise @ noise.T, [None], [1.0], y, folds).accuracies.mean() < 0.75


def test_a_class_that_training_rows_miss_is_never_predicted():
    y = np.array(["b", "c", "b", "c", "b", "c", "a"])
    K = np.eye(7) + (y[:, None] == y)
    found = nested_scores(lambda p: K, [0], [1.0], y, [0, 0, 1, 1, 2, 2, 2])
    np.testing.assert_array_equal(found.predictions[:6], y[:6])
    assert found.predictions[6] != "a"


def test_weights_of_a_class_that_training_rows_miss():
    y = np.array(["b", "c", "b", "c", "b", "c", "a"])
    K, folds = np.eye(7) + (y[:, None] == y), [0, 0, 1, 1, 2, 2, 2]
    found, same = (
        nested_scores(lambda p: K, [0], [1.0], y, folds, weights)
        for weights in ({"a": 3.0, "b": 2.0}, {"a": 3.0, "b": 2.0, "c": 1.0})
    )
    np.testing.assert_array_equal(found.predictions, same.predictions)
    np.testing.assert_array_equal(
        precomputed_scores(lambda p: K, [0], [1.0], y, folds, {"a": 3.0})[0, 0], [1.0, 1.0, 2 / 3]
    )


def test_equal_scores_take_the_first_c_then_the_first_parameter():
    assert best_of(np.array([[0.5, 0.9, 0.9], [0.5, 0.9, 0.8], [0.9 - 1e-15, 0.2, 0.1]])) == (2, 0)
    assert best_of(np.array([[0.5, 0.6], [0.5, 0.7], [0.5, 0.7]])) == (1, 1)


# ---- the classifier


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("kind", ["counts", "signed", "sparse", "float32"])
def test_equals_libsvm_on_the_kernel(n_classes, kind):
    X, y = documents(7, n=120, n_classes=n_classes)
    X = {"counts": X, "signed": X - X.mean(axis=0), "sparse": sp.csr_array(X), "float32": X.astype(np.float32)}[kind]
    model = HeatSVC(contrast=3.0, C=2.0, class_weight="balanced").fit(X[:80], y[:80])
    kernel = HypersphericalHeat(contrast=3.0)
    svc = SVC(kernel="precomputed", C=2.0, class_weight="balanced", break_ties=n_classes > 2)
    svc.fit(kernel(X[:80]), y[:80])
    K = kernel(X[80:], X[:80])
    np.testing.assert_allclose(model.decision_function(X[80:]), svc.decision_function(K), rtol=0, atol=1e-5)
    np.testing.assert_array_equal(model.predict(X[80:]), svc.predict(K))
    np.testing.assert_array_equal(model.support_, svc.support_)
    assert model.decision_function(X[80:]).shape == ((40,) if n_classes == 2 else (40, 4))
    assert model.cv_results_ == {}
    if kind == "sparse":
        dense = model.decision_function(X[80:].toarray())
        np.testing.assert_allclose(dense, model.decision_function(X[80:]), rtol=0, atol=1e-9)


def test_tuning_equals_a_grid_search_over_the_kernel():
    X, y = documents(8)
    folds = StratifiedKFold(4)
    model = HeatSVC([16.0, 0.25, 2.0], CS[::-1], cv=4).fit(X, y)
    scores = np.empty((3, 4))
    for i, a in enumerate(PARAMETERS):
        for j, C in enumerate(CS):
            scores[i, j] = np.mean(
                [
                    np.mean(HeatSVC(a, C).fit(X[train], y[train]).predict(X[test]) == y[test])
                    for train, test in folds.split(X, y)
                ]
            )
    results = model.cv_results_
    np.testing.assert_allclose(results["mean_test_score"].reshape(3, 4), scores, atol=1e-12)
    np.testing.assert_array_equal(results["contrast"].reshape(3, 4)[:, 0], PARAMETERS)
    np.testing.assert_array_equal(results["C"].reshape(3, 4)[0], CS)
    assert (results["std_test_score"] >= 0).all()
    best = np.isclose(results["mean_test_score"], scores.max(), rtol=0, atol=1e-12)
    assert results["C"][best].min() == model.C_
    assert model.contrast_ == results["contrast"][best & (results["C"] == model.C_)].min()
    direct = HeatSVC(model.contrast_, model.C_).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), direct.decision_function(X))
    assert model.kernel_.contrast == model.contrast_
    assert model.contrast_ == pytest.approx(40 * np.exp(-39 * model.t_), rel=1e-12)


def test_nested_scores_of_the_classifier():
    X, y = documents(9)
    model = HeatSVC(PARAMETERS, CS, cv=4)
    found = model.nested_scores(X, y)
    expected = nested_scores(heat_of(X), PARAMETERS, CS, y, fold_array(y, 4))
    np.testing.assert_array_equal(found.predictions, expected.predictions)
    assert found.parameters == expected.parameters
    assert not hasattr(model, "classes_")


def test_one_candidate_is_nested_cross_validation_without_a_choice():
    X, y = documents(10)
    model = HeatSVC(2.0, 1.0, cv=5)
    np.testing.assert_allclose(
        model.nested_scores(X, y).accuracies, cross_val_score(model, X, y, cv=StratifiedKFold(5))
    )


def test_suggested_contrast():
    X, y = documents(11)
    model = HeatSVC("suggest", 1.0).fit(X, y)
    assert model.contrast_ == pytest.approx(suggest_contrast(X), rel=1e-12)


@pytest.mark.parametrize("n", [2, 3, 20, 500])
def test_tuning_tries_contrasts_and_near_n_times_of_the_same_slope(n):
    X = np.random.default_rng(n).dirichlet(np.full(n, 0.5), size=40)
    results = HeatSVC(cv=2, C=1.0).fit(X, X[:, 0] > np.median(X[:, 0])).cv_results_
    a, t = results["contrast"], results["t"]
    assert len(a) == 9
    assert (np.diff(a) > 0).all()
    assert (np.diff(t) < 0).all()
    assert (t > 0).all()
    np.testing.assert_allclose(a, n * np.exp(-(n - 1) * t))
    u = 1e-6
    slopes = np.array([(1 - heat_profile(u, n, time)) / u for time in t])
    near = 2.0 ** np.arange(-2, 7)
    assert (np.abs(np.log2(slopes / near)) < 1.7).all()
    if n == 500:
        np.testing.assert_allclose(a, near)


def test_mapping_is_that_of_the_training_rows():
    X, y = documents(12)
    signed = X - X.mean(axis=0)
    assert HeatSVC(2.0, 1.0).fit(X, y).kernel_.mapping == "sqrt"
    model = HeatSVC(2.0, 1.0).fit(signed, y)
    assert model.kernel_.mapping == "projection"
    positive = np.abs(signed)
    units = positive / np.linalg.norm(positive, axis=1, keepdims=True)
    of_units = HeatSVC(2.0, 1.0, mapping=None).fit(signed / np.linalg.norm(signed, axis=1, keepdims=True), y)
    np.testing.assert_allclose(model.decision_function(positive), of_units.decision_function(units), atol=1e-9)


def test_zero_rows():
    X, y = documents(13)
    X[5] = 0
    with pytest.raises(ValueError, match=r"X\[5\]"):
        HeatSVC().fit(X, y)
    model = HeatSVC(2.0, 1.0, zero_rows="uniform").fit(X, y)
    np.testing.assert_allclose(model.decision_function(X[[5]]), model.decision_function(np.ones((1, 40))), atol=1e-12)


def test_shuffled_folds_come_from_random_state():
    X, y = documents(14)
    order = np.argsort(y)
    X, y = X[order], y[order]

    def scores(seed):
        return HeatSVC(PARAMETERS, CS, random_state=seed).fit(X, y).cv_results_["mean_test_score"]

    np.testing.assert_array_equal(scores(3), scores(3))
    np.testing.assert_array_equal(scores(None), scores(None))
    assert not np.array_equal(scores(3), scores(4))


def test_any_splits():
    X, y = documents(15, n=30)
    assert len(HeatSVC(PARAMETERS, 1.0, cv=LeaveOneOut()).fit(X, y).cv_results_["C"]) == 3
    splits = ShuffleSplit(3, random_state=0)
    assert HeatSVC(PARAMETERS, 1.0, cv=splits).fit(X, y).contrast_ in PARAMETERS
    with pytest.raises(ValueError, match=r"cv (never holds|holds) row"):
        HeatSVC(PARAMETERS, 1.0, cv=splits).nested_scores(X, y)


def test_splits_may_be_masks():
    X, y = documents(15, n=30)
    folds = fold_array(y, 3)
    masks = [(folds != i, folds == i) for i in range(3)]
    positions = [tuple(map(np.flatnonzero, split)) for split in masks]
    ours, expected = (precomputed_scores(heat_of(X), PARAMETERS, CS, y, splits) for splits in (masks, positions))
    np.testing.assert_array_equal(ours, expected)
    ours, expected = (HeatSVC(PARAMETERS, CS, cv=splits) for splits in (masks, positions))
    assert ours.fit(X, y).C_ == expected.fit(X, y).C_
    np.testing.assert_array_equal(ours.nested_scores(X, y).accuracies, expected.nested_scores(X, y).accuracies)
    with pytest.raises(ValueError, match=f"cv holds row {positions[0][1][0]} out twice"):
        HeatSVC(PARAMETERS, CS, cv=[*masks, masks[0]]).nested_scores(X, y)


@pytest.mark.same_bits
@given(seed=st.integers(0, 10**6), block=st.integers(1, 50))
@settings(max_examples=10, deadline=None)
def test_rows_are_classified_one_by_one_or_together(seed, block):
    X, y = documents(seed, n=40)
    model = HeatSVC(4.0, 1.0).fit(X, y)
    together = model.decision_function(X)
    with sm.config(max_memory=24 * len(model.support_) * block):
        blocks = model.decision_function(X)
    np.testing.assert_allclose(blocks, together, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(model.classes_[np.argmax(together, axis=1)], model.predict(X))


def test_only_support_vectors_are_kept():
    X, y = documents(16, overlap=0.2)
    model = HeatSVC(0.5, 100.0).fit(X, y)
    assert 0 < len(model.support_) < 60
    assert model.support_vectors_.shape == (len(model.support_), 40)
    assert model.pair_coef_.shape == (3, len(model.support_))
    assert model.pair_intercept_.shape == (3,)
    np.testing.assert_allclose(np.linalg.norm(model.support_vectors_, axis=1), 1, atol=1e-12)


def test_more_rows_than_memory_allows():
    X, y = documents(17)
    with sm.config(max_memory=8 * 90**2 * 3 - 1):
        with pytest.raises(ValueError, match=r"Gram matrices of 90 rows.*HeatRandomFeatures or Nystroem"):
            HeatSVC().fit(X, y)
        HeatSVC(2.0, 1.0).fit(X, y)  # which needs one matrix
    with sm.config(max_memory=8 * 90**2 * 3):
        HeatSVC().fit(X, y)


def test_input_is_not_written_to():
    X, y = documents(18)
    X = X / X.sum(axis=1, keepdims=True)
    before, expected = X.copy(), HeatSVC(cv=3).fit(X.copy(), y).decision_function(X.copy())
    X.setflags(write=False)
    np.testing.assert_array_equal(HeatSVC(cv=3).fit(X, y).decision_function(X), expected)
    np.testing.assert_array_equal(X, before)


def test_clones_have_the_parameters():
    model = HeatSVC("suggest", (1.0, 2.0), "projection", "uniform", 3, "balanced", 5)
    assert clone(model).get_params() == model.get_params()


# ---- bad input

X_BAD, Y_BAD = documents(0, n=12)
NAN = X_BAD.astype(float)
NAN[4, 2] = np.nan
FITTED = HeatSVC(2.0, 1.0).fit(X_BAD, Y_BAD)
ONES = np.eye(4)
BAD = [
    ("unknown word", lambda: HeatSVC("auto").fit(X_BAD, Y_BAD), 'got \'auto\'; contrast is "tune", "suggest"'),
    ("contrast of n", lambda: HeatSVC(40.0).fit(X_BAD, Y_BAD), "contrast must be below the number of features, 40"),
    ("negative contrast", lambda: HeatSVC([1, -2]).fit(X_BAD, Y_BAD), r"contrast\[1\] must be a positive number"),
    ("empty contrasts", lambda: HeatSVC([]).fit(X_BAD, Y_BAD), "contrast is an empty sequence"),
    ("C of zero", lambda: HeatSVC(C=0).fit(X_BAD, Y_BAD), 'C must be a positive number, got 0; C is "tune"'),
    ("NaN", lambda: HeatSVC().fit(NAN, Y_BAD), r"X\[4\], column 2"),
    ("fractions", lambda: HeatSVC().fit(X_BAD, X_BAD[:, 0] / 7), "y holds fractions"),
    ("label that is NaN", lambda: HeatSVC().fit(X_BAD, [0, 1, np.nan] * 4), r"y\[2\] is nan, expected a class label"),
    ("one class", lambda: HeatSVC().fit(X_BAD, ["a"] * 12), r"y holds one class, \['a'\]"),
    ("fewer labels", lambda: HeatSVC().fit(X_BAD, Y_BAD[:5]), "y has 5 labels for 12 objects"),
    ("many folds", lambda: HeatSVC(cv=9).fit(X_BAD, Y_BAD), "cv=9 is more than the 4 rows of the largest class"),
    ("class weight", lambda: HeatSVC(class_weight={"x": 2}).fit(X_BAD, Y_BAD), "class_weight holds 'x'"),
    ("NaN weight", lambda: HeatSVC(class_weight={"course": np.nan}).fit(X_BAD, Y_BAD), r"weight\['course'\] is nan"),
    ("weight 0", lambda: precomputed_scores(lambda p: ONES, [0], [1.0], [0, 1], [0, 1], {0: 0}), r"weight\[0\] is 0"),
    ("width", lambda: FITTED.predict(X_BAD[:, 1:]), r"X has 39 features, but \w+ is expecting 40 features"),
    ("negative", lambda: FITTED.predict(-X_BAD), "negative"),
    ("two folds", lambda: HeatSVC(cv=2).nested_scores(X_BAD, Y_BAD), "at least 3 folds, got 2"),
    ("folds", lambda: nested_scores(lambda p: ONES, [0], [1.0], [0, 1, 0, 1], [0, 1]), "folds must be 4 integers"),
    ("gap", lambda: nested_scores(lambda p: ONES, [0], [1.0], [0, 1, 0, 1], [0, 0, 2, 2]), "without a gap"),
    ("no C", lambda: nested_scores(lambda p: ONES, [0], [], [0, 1, 0, 1], [0, 1, 2, 0]), "there is no C to try"),
    ("one-class fold", lambda: precomputed_scores(lambda p: ONES, [0], [1.0], list("aabb"), [0, 0, 1, 1]), "one class"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_columns_in_another_order_are_refused():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((30, 4)), columns=[*"abcd"])
    y = np.arange(30) % 2
    model = HeatSVC(1.0, 1.0).fit(frame, y)
    features = HeatRandomFeatures(16, 1.0, random_state=0).fit(frame)
    for estimator, call in ((model, model.predict), (features, features.transform)):
        assert estimator.feature_names_in_.tolist() == [*"abcd"]
        assert len(call(frame)) == 30
        with pytest.raises(ValueError, match="feature names should match"):
            call(frame[[*"dcba"]])


def test_the_kernel_of_a_fitted_classifier_can_be_searched_further():
    rng = np.random.default_rng(0)
    X, y = rng.random((40, 100)), np.arange(40) % 2
    model = HeatSVC(contrast=[1.0, 4.0], C=1.0).fit(X, y)
    assert model.kernel_.t is None
    assert model.kernel_.contrast == model.contrast_
    np.testing.assert_allclose(model.kernel_(X), HypersphericalHeat(t=model.t_)(X), rtol=1e-12)
