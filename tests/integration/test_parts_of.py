"""`parts_of`: pipelines, searches, votes and wrappers come apart to the same steps."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import similia as sm
from similia.kernels import Cosine, Spectrum
from similia.learn.vote import VoteClassifier
from similia.pipelines import chosen, comparison_of, members_of, parts_of, steps_of

X = ["AAAA", "AAAC", "AAGA", "AACA", "TTTT", "TTTC", "TTGT", "TTCT"]
y = [0] * 4 + [1] * 4


def pipeline():
    return make_pipeline(sm.Nystroem(Spectrum(k=2), n_components=4, random_state=0), LinearSVC())


def names(steps):
    return [type(step).__name__ for step in steps]


@pytest.mark.parametrize("fit", [False, True])
def test_a_pipeline_is_its_transformers_and_its_learner(fit):
    model = pipeline()
    parts = parts_of(model.fit(X, y) if fit else model)
    assert parts.whole is parts.model is model
    assert parts.transformers == [model[0]]
    assert parts.learner is model[1]
    assert parts.steps == [model[0], model[1]]
    assert repr(parts) == "Nystroem → LinearSVC"


def test_without_a_learner_all_steps_transform():
    encoder = make_pipeline(sm.Nystroem(Spectrum()), sm.SignRandomProjection())
    parts = parts_of(encoder)
    assert names(parts.transformers) == ["Nystroem", "SignRandomProjection"]
    assert parts.learner is None


def test_an_estimator_alone_is_its_own_step():
    learner, encoder = LinearSVC(), sm.Nystroem(Spectrum())
    assert (parts_of(learner).transformers, parts_of(learner).learner) == ([], learner)
    assert (parts_of(encoder).transformers, parts_of(encoder).learner) == ([encoder], None)


def test_pipelines_inside_are_laid_open_and_idle_steps_left_out():
    inner = make_pipeline(sm.Nystroem(Spectrum()), "passthrough")
    assert names(steps_of(make_pipeline(inner, None, make_pipeline(LinearSVC())))) == ["Nystroem", "LinearSVC"]


def test_a_search_is_what_it_chose_once_it_has():
    search = GridSearchCV(pipeline(), {"linearsvc__C": [0.1, 1.0]}, cv=2)
    assert chosen(search) is search
    assert parts_of(search).learner is search
    search.fit(X, y)
    assert parts_of(search).whole is search.best_estimator_
    assert names(parts_of(search).steps) == ["Nystroem", "LinearSVC"]


def test_a_search_as_the_last_step_is_opened_too():
    model = make_pipeline(
        sm.Nystroem(Spectrum(), n_components=4), GridSearchCV(LinearSVC(), {"C": [1.0, 2.0]}, cv=2)
    ).fit(X, y)
    assert parts_of(model).learner is model[-1].best_estimator_


def test_what_is_frozen_is_opened():
    model = pipeline().fit(X, y)
    assert parts_of(FrozenEstimator(model)).whole is model


@pytest.mark.parametrize("fit", [False, True])
def test_of_models_that_vote_the_first_is_taken_apart(fit):
    vote = VoteClassifier([pipeline(), make_pipeline(sm.KernelFeatures(Spectrum()), LinearSVC())])
    if fit:
        vote.fit(X, y)
    parts = parts_of(vote)
    assert parts.whole is vote
    assert parts.model is (vote.estimators_ if fit else vote.estimators)[0]
    assert repr(parts) == "Nystroem → LinearSVC (the first of 2 that vote)"
    assert len(members_of(vote)) == 2


@pytest.mark.parametrize("fit", [False, True])
@pytest.mark.parametrize("wrap", [CalibratedClassifierCV, FixedThresholdClassifier, TunedThresholdClassifierCV])
def test_a_wrapper_stays_the_whole_and_shows_the_model_inside(wrap, fit):
    model = wrap(pipeline(), **({} if wrap is FixedThresholdClassifier else {"cv": 2}))
    if fit:
        model.fit(X, y)
    parts = parts_of(model)
    assert parts.whole is model
    assert names(parts.steps) == ["Nystroem", "LinearSVC"]
    assert hasattr(parts.learner, "coef_") == fit
    assert repr(parts) == f"Nystroem → LinearSVC (inside of {wrap.__name__})"


def test_transformed_targets_wrap_their_regressor():
    model = TransformedTargetRegressor(make_pipeline(sm.Nystroem(Spectrum(), n_components=8), Ridge()), func=np.log1p)
    model.set_params(inverse_func=np.expm1)
    assert parts_of(model).model is model.regressor
    assert parts_of(model.fit(X, np.arange(8.0))).model is model.regressor_
    assert members_of(TransformedTargetRegressor()) == []


def test_members_are_those_of_votes_and_wrappers_only():
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(2, random_state=0).fit(np.eye(4), [0, 0, 1, 1])
    assert members_of(forest) == []
    assert members_of(pipeline().fit(X, y)) == []


def test_the_comparison_is_that_of_the_first_step_that_has_one():
    kernel, distance = Spectrum(k=2), sm.distances.Levenshtein()
    found = parts_of(make_pipeline(sm.Nystroem(kernel), LinearSVC())).comparison()
    assert found.function is kernel
    assert found.is_kernel
    found = parts_of(make_pipeline(sm.D2KE(distance), LinearSVC())).comparison()
    assert found.function is distance
    assert not found.is_kernel
    assert parts_of(sm.learn.KNeighborsClassifier(distance)).comparison().function is distance
    fitted = sm.D2KE(distance, 4, X, random_state=0).fit(X)
    assert comparison_of(fitted).function is fitted.distance_
    assert comparison_of(fitted, fitted=False).function is distance
    assert parts_of(LinearSVC()).comparison() is None  # has no kernel
    from sklearn.svm import SVC

    assert comparison_of(SVC(kernel="rbf")) is None  # a name is no function


def test_a_distance_in_the_place_of_a_kernel_is_a_distance():
    from types import SimpleNamespace

    assert not comparison_of(SimpleNamespace(kernel=sm.distances.DTW())).is_kernel


def test_neighbours_by_a_kernel_compare_by_a_kernel_and_a_lifted_function_is_one():
    lifted = sm.pairwise(lambda x, y: float(x == y))
    for given, is_kernel in ((Spectrum(), True), (lifted, True), (sm.distances.Levenshtein(), False)):
        assert comparison_of(sm.learn.KNeighborsClassifier(given)).is_kernel == is_kernel
    assert comparison_of(sm.Nystroem(lifted)).is_kernel


def test_the_comparison_inside_of_a_vote_is_found():
    vote = VoteClassifier([pipeline(), pipeline()])
    assert parts_of(make_pipeline("passthrough", vote)).comparison().function == vote.estimators[0][0].kernel


def test_a_wrapper_compares_by_what_it_wraps():
    kernel = Spectrum(k=2)
    wrapped = TransformedTargetRegressor(sm.KernelRidge(kernel))
    first, second = parts_of(make_pipeline(StandardScaler(), wrapped)).comparisons()
    assert first is None
    assert second.function is kernel


def test_a_fitted_comparison_is_as_the_objects_decided_it():
    table = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0], [3.0, 0.0, 1.0]])
    encoder = sm.Nystroem(Cosine("auto"), n_components=2).fit(table)
    assert comparison_of(encoder).function.mapping == "sqrt"
    assert comparison_of(encoder, fitted=False).function.mapping == "auto"


def test_values_of_a_comparison_are_checked():
    found = comparison_of(sm.Nystroem(Spectrum(k=2)))
    assert found.between(found.as_objects(["AAA"]), found.as_objects(["AAA", "C"])).tolist() == [[4.0, 0.0]]
    broken = comparison_of(sm.D2KE(lambda X, Y=None: np.full((1, 1), -1.0)))
    with pytest.raises(ValueError, match=">= 0"):
        broken.between(["A"], ["A"])
