"""`AutoClassifier` and `AutoRegressor` are estimators of scikit-learn: cloned, in pipelines, cross-validated, saved."""

import pickle
import warnings

import dask.bag
import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold, KFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import similia as sm
from samples.select import rows, sample
from similia.distances import FromFunction, Levenshtein
from similia.kernels import Spectrum
from similia.objects import take
from similia.report import write_report
from similia.selection import _search
from similia.selection import auto as _run
from similia.selection._ladder import Group, ladder

QUICK = {"budget": None, "cv": 3, "nested": False, "max_voters": 1, "random_state": 0, "progress": False}


@pytest.fixture
def few(monkeypatch):
    """Two rungs of the ladder, so that a choice takes a moment."""
    monkeypatch.setattr(_run, "ladder", lambda *given: ladder(*given)[:2])
    monkeypatch.setattr(_search, "_ENOUGH_HELD_OUT", 1)


def only(monkeypatch, learner, *steps):
    """Let there be one candidate."""
    found = Group("only", tuple(steps), (("it", (("learner", learner),)),))
    monkeypatch.setattr(_run, "ladder", lambda *given: [found])
    monkeypatch.setattr(_search, "_ENOUGH_HELD_OUT", 1)


def test_the_constructor_only_stores_and_a_clone_has_the_same_parameters():
    auto = sm.AutoClassifier(60, similarity=[Spectrum(k=2), Levenshtein()], cv="many", random_state=3)
    params = clone(auto).get_params()
    assert {name: str(value) for name, value in params.items()} == {n: str(v) for n, v in auto.get_params().items()}
    assert list(auto.get_params(deep=False)) == sorted(
        ["budget", "cv", "nested", "progress", "random_state", "scoring", "similarity", "max_voters"]
    )
    assert auto.set_params(budget=5).budget == 5
    assert sm.AutoClassifier(similarity=Spectrum(k=2)).set_params(similarity__k=4).similarity.k == 4
    assert eval(repr(sm.AutoRegressor(budget=7)), {"AutoRegressor": sm.AutoRegressor}).budget == 7
    with pytest.raises(ValueError, match="cv must be an integer >= 3"):
        auto.fit(*sample("strings", 12))


def test_each_is_what_it_is_called():
    assert is_classifier(sm.AutoClassifier())
    assert is_regressor(sm.AutoRegressor())


@pytest.mark.parametrize("kind", ["strings", "graphs", "series", "vectors"])
def test_it_is_cross_validated_like_any_other(kind, few):
    X, y = sample(kind, 36)
    scores = cross_val_score(sm.AutoClassifier(**QUICK), X, y, cv=3)
    assert scores.shape == (3,)
    assert scores.mean() > 0.6


def test_lists_of_strings_and_numbers_are_cross_validated(few):
    X, y = sample("strings", 36, "regression")
    assert cross_val_score(sm.AutoRegressor(**QUICK), X, y, cv=KFold(3, shuffle=True, random_state=0)).mean() > 0.3


def test_it_ends_a_pipeline_and_stands_inside_of_one(few):
    X, y = sample("vectors", 30)
    last = make_pipeline(StandardScaler(), sm.AutoClassifier(**QUICK)).fit(X, y)
    assert last.score(X, y) > 0.7
    X, y = sample("strings", 30)
    inside = Pipeline([("auto", sm.AutoClassifier(**QUICK)), ("svc", SVC())])
    few_features = clone(inside).set_params(auto__similarity=Spectrum(k=2))
    assert few_features.get_params()["auto__similarity"].k == 2


def test_groups_are_a_parameter_of_fit_also_inside_of_a_pipeline(few):
    X, y = sample("vectors", 36)
    patients = np.repeat(np.arange(12), 3)
    with pytest.raises(ValueError, match="X has 2 groups"):
        sm.AutoClassifier(**QUICK).fit(X, y, groups=np.arange(36) % 2)
    with pytest.raises(ValueError, match="X has 2 groups"):
        make_pipeline(sm.AutoClassifier(**QUICK)).fit(X, y, autoclassifier__groups=np.arange(36) % 2)
    assert len(cross_val_score(sm.AutoClassifier(**QUICK), X, y, groups=patients, cv=GroupKFold(3))) == 3


def test_what_the_winner_can_the_choice_can(monkeypatch):
    X, y = sample("vectors", 30)
    only(monkeypatch, SVC(probability=False), ("scaler", StandardScaler()))
    auto = sm.AutoClassifier(**QUICK).fit(X, y)
    best = auto.best_estimator_
    assert not hasattr(auto, "predict_proba")
    np.testing.assert_array_equal(auto.decision_function(X), best.decision_function(X))
    np.testing.assert_array_equal(auto.transform(X), StandardScaler().fit_transform(X))
    np.testing.assert_array_equal(auto.classes_, ["even", "odd"])
    assert auto.n_features_in_ == 6
    assert auto.score(X, y) == best.score(X, y)
    only(monkeypatch, sm.learn.KNeighborsClassifier(Levenshtein(), 3))
    auto.fit(*sample("strings", 30))
    assert not hasattr(auto, "transform")
    assert not hasattr(auto, "n_features_in_")
    assert auto.predict_proba(["AC", "GT"]).shape == (2, 2)


def test_before_fit_there_is_nothing_but_a_promise_of_transform():
    auto = sm.AutoClassifier()
    assert not hasattr(auto, "predict_proba")
    assert hasattr(auto, "transform")  # or no pipeline would take it before its last step
    for method in (auto.predict, auto.transform):
        with pytest.raises(NotFittedError):
            method(["A"])
    with pytest.raises(NotFittedError):
        auto.refit(["A"], ["b"])


def test_the_results_are_columns_like_those_of_a_grid_search(few):
    auto = sm.AutoClassifier(**{**QUICK, "nested": True}).fit(*sample("strings", 30))
    results = auto.cv_results_
    assert {"mean_test_score", "rank_test_score", "mean_fit_time", "estimator"} <= {*results}
    assert len({len(column) for column in results.values()}) == 1
    assert results["name"][0] == auto.best_name_
    tried = results["n_objects"] > 0
    assert results["rank_test_score"][tried].tolist() == [*range(1, tried.sum() + 1)]
    low, high = auto.best_score_interval_
    assert low <= auto.best_score_ <= high
    assert str(rows(auto)[0]["estimator"].steps[-1][0]) == str(auto.best_estimator_.steps[-1][0])


def test_score_is_by_the_score_that_was_asked_for(few):
    X, y = sample("vectors", 40, "regression")
    auto = sm.AutoRegressor(scoring="neg_mean_absolute_error", **QUICK).fit(X, y)
    assert auto.score(X, y) == pytest.approx(-np.abs(auto.predict(X) - y).mean())
    with pytest.raises(ValueError, match="scoring='r2' does not score a classification"):
        sm.AutoClassifier(scoring="r2", **QUICK).fit(*sample("vectors", 30))


def called_alike(model, X, y):
    return float(np.mean(model.predict(X) == y))


def counted_classes(model, X, y):
    return float(len(model.classes_))


@pytest.mark.parametrize("scoring", [None, "balanced_accuracy", called_alike, counted_classes])
def test_dask_collections_that_were_not_counted_are_scored(scoring, few):
    X, y = sample("strings")
    auto = sm.AutoClassifier(**QUICK, scoring=scoring).fit(X, y)
    X, y = X[:9], np.roll(y[:9], 1)
    there = dask.bag.from_sequence(X, npartitions=2)
    for labels in (y, dask.bag.from_sequence(y.tolist(), npartitions=3)):
        assert auto.score(there, labels) == auto.score(X, labels) == auto.score(X, y)


def test_numbers_in_a_column_of_objects_are_scored_and_labels_of_two_types_refused(few):
    X, y = sample("vectors", 40)
    numbers = np.unique(y, return_inverse=True)[1]
    auto = sm.AutoClassifier(**QUICK).fit(X, numbers.astype(object))
    assert auto.score(X, numbers.astype(object)) == auto.score(X, numbers) > 0.5
    for mixed in ([0, "a"] * 20, np.array([0, "a"] * 20, dtype=object)):
        with pytest.raises(ValueError, match=r"y\[1\] is 'a', but y\[0\] is 0; give labels of one type"):
            auto.fit(X, mixed)


def test_the_numbers_of_a_bag_are_scored(few):
    X, y = sample("texts", task="regression")
    auto = sm.AutoRegressor(**QUICK).fit(X, y)
    assert auto.score(dask.bag.from_sequence(X, npartitions=2), y) == auto.score(X, y) > 0.3


def test_numbers_are_no_classes():
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(
        ValueError, match=r"y\[1\] is 0.1, which is not a class label; use AutoRegressor to predict numbers"
    ):
        sm.AutoClassifier(**QUICK).fit(X, np.arange(20) / 10)


@pytest.mark.parametrize(("counts", "folds"), [((20, 8, 4), 4), ((20, 8, 2), 3), ((20, 8, 1), 3)])
def test_a_small_class_lowers_the_number_of_folds(counts, folds, few):
    X, y = sample("vectors", sum(counts))[0], np.repeat(["a", "b", "c"], counts)
    auto = sm.AutoClassifier(**{**QUICK, "cv": 5, "nested": True})
    sentence = f"class 'c' has {counts[2]} objects?, so there are {folds} folds instead of 5"
    with pytest.warns(UserWarning, match=sentence) as caught:
        auto.fit(X, y)
    assert caught[0].filename == __file__  # the line that calls fit, not one inside
    assert auto.n_outer_folds_ == folds
    assert auto.classes_.tolist() == ["a", "b", "c"]


def test_refit_fits_the_choice_to_other_objects_and_keeps_its_record(few):
    X, y = sample("vectors", 40)
    auto = sm.AutoClassifier(**QUICK).fit(X[:30], y[:30])
    name, before = auto.best_name_, auto.best_estimator_
    assert auto.refit(X, y) is auto
    assert auto.best_name_ == name
    assert auto.best_estimator_ is not before
    expected = _run.fitted(auto._unfitted, X, y).predict(X)
    np.testing.assert_array_equal(auto.predict(X), expected)


def test_a_fit_that_fails_leaves_what_was_learnt(few):
    X, y = sample("vectors", 30)
    auto = sm.AutoClassifier(**QUICK).fit(X, y)
    before = auto.predict(X)
    with pytest.raises(ValueError, match="one class"):
        auto.fit(X, ["a"] * 30)
    np.testing.assert_array_equal(auto.predict(X), before)


@pytest.mark.parametrize("kind", ["strings", "vectors"])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_file_keeps_the_choice_and_its_record(kind, task, tmp_path, few):
    X, y = sample(kind, 30, task)
    auto = (sm.AutoClassifier if task == "classification" else sm.AutoRegressor)(**QUICK).fit(X, y)
    for read in (sm.load(sm.save(auto, tmp_path / "auto.similia")), pickle.loads(pickle.dumps(auto))):
        np.testing.assert_array_equal(read.predict(X), auto.predict(X))
        assert read.cv_results_["name"].tolist() == auto.cv_results_["name"].tolist()
        assert (read.best_name_, read.notes_, read.kind_) == (auto.best_name_, auto.notes_, auto.kind_)
        np.testing.assert_array_equal(read.refit(X, y).predict(X), auto.predict(X))


def test_a_function_of_the_user_is_not_saved(tmp_path, monkeypatch):
    X, y = sample("strings", 30)
    only(monkeypatch, sm.learn.KNeighborsClassifier(Levenshtein(), 3))
    auto = sm.AutoClassifier(similarity=FromFunction(lambda a, b: float(a != b)), **QUICK).fit(X, y)
    with pytest.raises(ValueError, match="which a saved file may not contain"):
        sm.save(auto, tmp_path / "auto.similia")
    assert sm.load(sm.save(auto.best_estimator_, tmp_path / "m.similia")).predict(X).shape == (30,)


def test_it_is_explained_and_reported_as_what_it_chose(tmp_path, few):
    X, y = sample("strings", 40)
    auto = sm.AutoClassifier(**QUICK).fit(X, y)
    shown, expected = sm.explain(auto, X[0]), sm.explain(auto.best_estimator_, X[0])
    assert (shown.title, shown.value) == (expected.title, expected.value)
    assert sm.explain(auto, X[0], X[1]).value == sm.explain(auto.best_estimator_, X[0], X[1]).value
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write_report(auto, X, y, tmp_path / "page.html", cv=2, random_state=0)
    assert (tmp_path / "page.html").stat().st_size > 10_000


def test_ctrl_c_ends_the_search_with_the_best_so_far(monkeypatch, few):
    X, y = sample("vectors", 40)
    note, noted = _search.Times.note, []

    def stop(self, *given):
        note(self, *given)
        noted.append(given)
        if len(noted) > 1:  # the first unit has its scores in the table
            raise KeyboardInterrupt

    monkeypatch.setattr(_search.Times, "note", stop)
    try:
        auto = sm.AutoClassifier(**QUICK).fit(X, y)
    except KeyboardInterrupt:
        pytest.skip("stopped before a table was there")
    assert auto.stopped_


def test_objects_are_taken_in_every_form(few):
    X, y = sample("strings", 30)
    auto = sm.AutoClassifier(**QUICK).fit(sm.objects.as_strings(X), y)
    np.testing.assert_array_equal(auto.predict(X), auto.predict(take(sm.objects.as_strings(X), np.arange(30))))


def test_columns_of_data_frames_are_told_by_name(few, tmp_path):
    X, y = sample("vectors", 30)
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"])
    auto = sm.AutoClassifier(**QUICK).fit(frame, y)
    assert auto.feature_names_in_.tolist() == ["a", "b"]
    assert auto.n_features_in_ == 2
    auto = sm.load(sm.save(auto, tmp_path / "auto"))
    for ask in (auto.predict, lambda X: auto.score(X, y)):
        ask(frame)
        with pytest.raises(ValueError, match="Feature names must be in the same order"):
            ask(frame[["b", "a"]])
    assert not hasattr(auto.refit(X, y), "feature_names_in_")


def test_candidates_pass_on_arrays_if_transformers_make_data_frames(monkeypatch):
    only(monkeypatch, LinearSVC(), ("features", sm.KernelFeatures(Spectrum(k=2))))
    X, y = sample("strings", 30)
    plain = sm.AutoClassifier(**QUICK).fit(X, y)
    with config_context(transform_output="pandas"):
        auto = sm.AutoClassifier(**QUICK).fit(X, y)
        np.testing.assert_array_equal(auto.predict(X), plain.predict(X))
        assert auto.refit(X, y).score(X, y) == plain.score(X, y)
    assert auto.cv_results_["mean_test_score"] == plain.cv_results_["mean_test_score"]


@pytest.mark.parametrize("unit", ["CC(C)=O", "ACGTGA"])
def test_strings_that_look_like_molecules_get_a_warning(few, unit):
    X = [unit * n for n in range(1, 13)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sm.AutoRegressor(**QUICK).fit(X, np.arange(12.0))
    assert any("the strings look like SMILES" in str(warning.message) for warning in caught) == ("=" in unit)


def test_graphs_without_labels_are_told_by_the_degrees_around_each_node(monkeypatch):
    rng = np.random.default_rng(0)
    graphs, y = [], np.arange(40) % 2
    for wide in y:  # trees: a node hangs on any earlier one, or on one of the last three
        parents = [rng.integers(0 if wide else max(0, i - 3), i) for i in range(1, 40)]
        arcs = np.array([parents, range(1, 40)])
        graphs.append({"edge_index": np.hstack([arcs, arcs[::-1]]), "n_nodes": 40})
    batch = sm.objects.as_graphs(graphs)
    maps = [group for group in ladder("graphs", batch, "classification", 0) if group.family == "mean map"]
    assert len(maps) == 3
    monkeypatch.setattr(_run, "ladder", lambda *given: maps[:1])
    assert sm.AutoClassifier(**{**QUICK, "nested": True}).fit(batch, y).best_score_ > 0.8
