"""D2KESearch: one matrix of distances for all candidates, and what it refuses."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import similia as sm
from samples.d2ke import CALLS, LABELS, WORDS, Counted
from similia.distances import Levenshtein
from similia.embeddings import D2KE, Mosaics, RandomStrings, Representatives
from similia.learn.d2ke_search import D2KESearch


@pytest.fixture(autouse=True)
def forget_calls():
    CALLS.clear()


def test_search_computes_each_distance_once():
    model = sm.recipes.d2ke(Counted(), 30, gamma="tune", C="tune", cv=3, random_state=0)
    assert isinstance(model, D2KESearch)
    model.fit(WORDS, LABELS)
    assert sum(CALLS) == 40 * 30 + 40 * 64  # the features, and the median for gamma
    tried = {params["d2ke__gamma"] for params in model.cv_results_["params"]}
    unit = D2KE(Levenshtein(), 30, random_state=model.pipeline_["d2ke"].seed_).fit(WORDS).gamma_
    assert sorted(tried) == pytest.approx([unit / 4, unit, 4 * unit, 16 * unit])
    assert len(model.cv_results_["params"]) == 16
    assert model.score(WORDS, LABELS) > 0.7


def test_search_chooses_what_grid_search_chooses():
    pipeline = sm.recipes.d2ke(Levenshtein(), 30, objects=WORDS[:30], random_state=0)
    grid = {"d2ke__gamma": [0.001, 0.3, "9*median"], "learner__C": [1e-3, 1e-1]}
    # the random objects are given, so that folds share them, and "9*median" comes to nearly the same in each
    slow = GridSearchCV(pipeline, grid, cv=3).fit(WORDS, LABELS)
    fast = D2KESearch(pipeline, grid, cv=3).fit(WORDS, LABELS)
    scores = slow.cv_results_["mean_test_score"]
    named = [isinstance(p["d2ke__gamma"], float) for p in slow.cv_results_["params"]]
    np.testing.assert_allclose(fast.cv_results_["mean_test_score"][named], scores[named])
    best = fast.best_params_
    np.testing.assert_array_equal(
        fast.predict(WORDS), clone(pipeline).set_params(**best).fit(WORDS, LABELS).predict(WORDS)
    )
    np.testing.assert_array_equal(fast.pipeline_.predict(WORDS), fast.predict(WORDS))


def test_search_refuses_what_changes_distances():
    pipeline = sm.recipes.d2ke(Levenshtein(), 5, objects=RandomStrings())
    with pytest.raises(ValueError, match=r"'d2ke__objects__length', which changes the distances.*pipeline__d2ke__obj"):
        D2KESearch(pipeline, {"d2ke__objects__length": [3]}).fit(WORDS, LABELS)
    with pytest.raises(ValueError, match="Pipeline whose first step is a D2KE"):
        D2KESearch(make_pipeline(StandardScaler(), LinearSVC())).fit(WORDS, LABELS)
    with pytest.raises(ValueError, match="y has 3 labels for 40 objects"):
        D2KESearch(pipeline).fit(WORDS, LABELS[:3])


def test_search_refuses_folds_that_leave_nothing_to_learn():
    few = [*WORDS[:4], *WORDS[-4:]]
    labels = np.array(["a"] * 4 + ["b"] * 4)
    model = sm.recipes.d2ke(Levenshtein(), 8, gamma="tune", random_state=0)
    with pytest.raises(ValueError, match=r"^cv=5 is more than the 4 objects of the largest class; take"):
        model.fit(few, labels)
    with pytest.raises(ValueError, match=r"^class 'b' has one object, and the fold that holds it out leaves one class"):
        model.fit(few[:5], labels[:5])
    clone(model).set_params(cv=4).fit(few, labels)
    sm.recipes.d2ke(Levenshtein(), 8, gamma="tune", task="regression", cv=4, random_state=0).fit(few, np.arange(8.0))


def test_search_says_that_labels_are_numbers_written_as_text():
    few = [*WORDS[:4], *WORDS[-4:]]
    model = sm.recipes.d2ke(Levenshtein(), 8, gamma="tune", C="tune", random_state=0)
    for y in ([f"0.{i}5" for i in range(8)], ["1.5"] * 4 + ["2.5"] * 4, np.array(["1.5"] * 7 + ["2.5"], object)):
        with pytest.raises(ValueError, match=r"^y holds numbers as text, such as '.*5'.*task=\"regression\""):
            model.fit(few, y)
    texts = sm.recipes.d2ke(Levenshtein(), 8, gamma="tune", cv=4, random_state=0)
    assert set(texts.fit(few, ["1.5"] * 4 + ["2.5"] * 4).predict(few)) <= {"1.5", "2.5"}  # classes may be called so


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_search_shows_progress_and_chooses_the_same(n_jobs, capfd):
    pipeline = sm.recipes.d2ke(Levenshtein(), 20, random_state=0)
    search = D2KESearch(pipeline, {"d2ke__gamma": ["median", "9*median"]}, cv=3, n_jobs=n_jobs)
    silent = clone(search).fit(WORDS, LABELS)
    assert "cross-validation" not in capfd.readouterr().err
    with sm.config(progress=True):
        shown = clone(search).fit(WORDS, LABELS)
    np.testing.assert_array_equal(silent.cv_results_["mean_test_score"], shown.cv_results_["mean_test_score"])
    if n_jobs is None:
        assert "cross-validation: 6/6" in capfd.readouterr().err


def test_parameters_of_a_sampler_that_is_not_there():
    search = GridSearchCV(sm.recipes.d2ke(Levenshtein(), 5), {"d2ke__objects__length": [3]}, cv=2)
    with pytest.raises(
        ValueError, match=r'^objects__length is a parameter of a sampler, and objects="auto" becomes one'
    ):
        search.fit(WORDS, LABELS)
    d2ke = D2KE(Levenshtein()).set_params(objects=RandomStrings(), objects__length=4)
    assert d2ke.objects.length == 4


def test_search_trains_on_what_is_not_held_out():
    seen = []

    class Watching(LinearSVC):
        def fit(self, X, y):
            seen.append((X, y))
            return super().fit(X, y)

    pipeline = make_pipeline(D2KE(Levenshtein(), 10, Representatives(hold_out=True), 0.5, 1), Watching())
    model = D2KESearch(pipeline).fit(WORDS, LABELS)
    d2ke = model.pipeline_[0]
    rest = np.setdiff1d(np.arange(40), d2ke.representative_indices_)
    assert len(rest) == 30
    ((F, y),) = seen
    np.testing.assert_array_equal(F, d2ke.transform([WORDS[i] for i in rest]))
    np.testing.assert_array_equal(y, LABELS[rest])


def test_search_draws_mosaics_of_each_fold_from_its_own_training_part():
    pipeline = Pipeline([("d2ke", D2KE(Levenshtein(), 8, Mosaics(2), random_state=0)), ("learner", LinearSVC())])
    grid = {"d2ke__gamma": ["0.5*median", "2*median"]}
    ours = D2KESearch(pipeline, grid, cv=3).fit(WORDS, LABELS)
    whole = GridSearchCV(pipeline, grid, cv=3).fit(WORDS, LABELS)
    assert ours.cv_results_["params"] == whole.cv_results_["params"]
    assert ours.best_params_ == {"d2ke__gamma": whole.best_estimator_[0].gamma_}
    np.testing.assert_array_equal(ours.cv_results_["mean_test_score"], whole.cv_results_["mean_test_score"])
    assert ours.predict(WORDS).tolist() == whole.predict(WORDS).tolist()


def test_search_with_representatives_computes_each_distance_once():
    pipeline = sm.Pipeline([("d2ke", D2KE(Counted(), 64, Representatives(), random_state=0)), ("learner", LinearSVC())])
    grid = {"d2ke__gamma": ["0.5*median", "2*median", 0.3], "learner__C": [0.01, 1.0]}
    ours = D2KESearch(pipeline, grid, cv=3).fit(WORDS, LABELS)
    assert sum(CALLS) == 40 * 40 * 2  # the median for gamma, and all pairs
    whole = GridSearchCV(pipeline, grid, cv=3).fit(WORDS, LABELS)
    np.testing.assert_array_equal(ours.cv_results_["mean_test_score"], whole.cv_results_["mean_test_score"])
    assert ours.cv_results_["params"] == whole.cv_results_["params"]
    assert ours.best_params_["d2ke__gamma"] == whole.best_estimator_[0].gamma_ == ours.pipeline_[0].gamma
    np.testing.assert_array_equal(ours.decision_function(WORDS), whole.decision_function(WORDS))


@pytest.mark.parametrize(("R", "sampler"), [(4, Representatives()), (30, Mosaics(2))])
def test_search_computes_distances_once_for_all_candidates_of_a_fold(R, sampler):
    pipeline = sm.Pipeline([("d2ke", D2KE(Counted(), R, sampler, random_state=0)), ("learner", LinearSVC())])
    grid = {"d2ke__gamma": ["0.5*median", "2*median"], "learner__C": [0.01, 0.1, 1.0]}
    with sm.config(progress=True):
        ours = D2KESearch(pipeline, grid, cv=3).fit(WORDS, LABELS)
    columns = 40 if R == 4 else 64  # of the median: no more representatives than objects, 26 or 27 in a fold
    medians = 40 * columns + sum(n * min(n, 64) if R == 4 else n * 64 for n in (26, 27, 27))
    assert sum(CALLS) == 4 * 40 * R + medians
    whole = GridSearchCV(pipeline, grid, cv=3).fit(WORDS, LABELS)
    np.testing.assert_array_equal(ours.cv_results_["mean_test_score"], whole.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(ours.decision_function(WORDS), whole.decision_function(WORDS))


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"d2ke__gama": [1.0]}, r"'d2ke__gama', which is no parameter; there are d2ke__distance, d2ke__gamma"),
        ({"learner__c": [1.0]}, "'learner__c', which is no parameter; there are learner__C"),
        ({"svm__C": [1.0]}, "'svm__C', which is no parameter; there are d2ke, learner"),
    ],
)
def test_search_names_a_parameter_that_there_is_not(grid, message):
    pipeline = Pipeline([("d2ke", D2KE(Levenshtein(), 5)), ("learner", LinearSVC())])
    with pytest.raises(ValueError, match=message):
        D2KESearch(pipeline, grid).fit(WORDS, LABELS)


@pytest.mark.parametrize(
    "grid", [[{"learner__C": [1.0]}], {"learner__C": 1.0}, {"d2ke__gamma": "median"}, {3: [1.0]}, "learner__C"]
)
def test_search_refuses_a_grid_of_another_form(grid):
    pipeline = Pipeline([("d2ke", D2KE(Levenshtein(), 5)), ("learner", LinearSVC())])
    with pytest.raises(ValueError, match=r"^param_grid must be a dict of str to list, the values to try, got"):
        D2KESearch(pipeline, grid).fit(WORDS, LABELS)


def test_search_refuses_a_target_that_is_no_numbers():
    model = sm.recipes.d2ke(Levenshtein(), 8, gamma="tune", task="regression", random_state=0)
    with pytest.raises(ValueError, match=r"y\[2\] is nan, expected finite numbers to predict; drop that object"):
        model.fit(WORDS, [1.0, 2.0, np.nan, *range(37)])
    with pytest.raises(
        ValueError, match=r"y holds \['a'\] of dtype <U1, expected numbers to predict; for labels, write"
    ):
        model.fit(WORDS, ["a", "b"] * 20)


def test_search_gives_later_steps_the_column_names_that_d2ke_gives():
    model = sm.recipes.d2ke(Levenshtein(), 8, gamma="tune", cv=3, random_state=0)
    expected = clone(model).fit(WORDS, LABELS).decision_function(WORDS)
    with config_context(transform_output="pandas"):
        model.fit(WORDS, LABELS)
        np.testing.assert_array_equal(model.decision_function(WORDS), expected)  # a warning about names fails the test
        scaler = model.pipeline_[1]
    assert scaler.feature_names_in_.tolist() == model.pipeline_[0].get_feature_names_out().tolist()
