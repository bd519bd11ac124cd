"""The published systems as pipelines: what they compose, that they learn, and that a seed fixes the model."""

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

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


@pytest.mark.same_bits
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


# ---- D2KE
@pytest.fixture(scope="module")
def waves():
    """Noisy series of two kinds, of different lengths: rising and falling ramps."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, size=60)
    X = [
        np.linspace(-1, 1, n) * (2 * c - 1) + rng.normal(size=n) / 2
        for c, n in zip(y, rng.integers(8, 20, 60), strict=True)
    ]
    return X, y


def test_d2ke_learns_series(waves):
    X, y = waves
    model = sm.recipes.d2ke(sm.distances.DTW(), 128, random_state=0)
    assert [name for name, _ in model.steps] == ["d2ke", "scaler", "learner"]
    assert cross_val_score(model, X, y, cv=4).mean() > 0.85  # a coin gives 0.5 +- 0.06


@pytest.mark.same_bits
def test_d2ke_same_seed_same_model(waves):
    X, y = waves
    model = sm.recipes.d2ke(sm.distances.DTW(), 64, random_state=3)
    first = clone(model).fit(X, y).decision_function(X)
    np.testing.assert_array_equal(clone(model).fit(X, y).decision_function(X), first)
    other = sm.recipes.d2ke(sm.distances.DTW(), 64, random_state=4).fit(X, y).decision_function(X)
    assert (other != first).any()


def test_d2ke_tuned(waves):
    X, y = waves
    model = sm.recipes.d2ke(sm.distances.DTW(), 64, gamma="tune", C="tune", cv=3, random_state=0)
    assert is_classifier(model)
    assert cross_val_score(model, X, y, cv=4).mean() > 0.85
    model.fit(X, y)
    assert set(model.best_params_) == {"d2ke__gamma", "learner__C"}
    assert model.classes_.tolist() == [0, 1]
    assert model.decision_function(X).shape == (60,)
    assert not hasattr(model, "predict_proba")
    alone = model.pipeline_  # an ordinary pipeline
    assert alone["d2ke"].gamma_ == model.best_params_["d2ke__gamma"]
    np.testing.assert_array_equal(clone(alone).fit(X, y).predict(X), model.predict(X))


def test_d2ke_regression(waves):
    X, _ = waves
    target = np.array([x[-1] - x[0] for x in X])
    for C in (0.01, "tune"):
        model = sm.recipes.d2ke(sm.distances.DTW(), 128, C=C, task="regression", random_state=0)
        assert is_regressor(model)
        assert cross_val_score(model, X, target, cv=4).mean() > 0.6  # the mean has R squared 0


@pytest.mark.parametrize("tuned", [{}, {"gamma": "tune", "C": "tune", "cv": 3}])
def test_d2ke_decides_the_task_by_the_targets(waves, tuned, tmp_path):
    X, y = waves
    numbers = np.arange(len(X)) / 7

    def made(task):
        return sm.recipes.d2ke(sm.distances.DTW(), 32, task=task, random_state=0, **tuned)

    for targets, task in ((y, "classification"), (numbers, "regression"), (numbers.astype(str), "regression")):
        model, told = made("auto").fit(X, targets), made(task).fit(X, numbers if task == "regression" else y)
        np.testing.assert_array_equal(model.predict(X), told.predict(X))
        assert (is_regressor(model), is_classifier(model)) == (task == "regression", task == "classification")
        loaded = sm.load(sm.save(model, tmp_path / "model.similia"))
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        assert hasattr(model, "decision_function") == (task == "classification")
    again = model.fit(X, y)  # the same estimator, for classes after numbers
    np.testing.assert_array_equal(again.predict(X), made("classification").fit(X, y).predict(X))
    scores = cross_val_score(made("auto"), X, numbers, cv=2)
    np.testing.assert_allclose(scores, cross_val_score(made("regression"), X, numbers, cv=2))


def test_d2ke_with_another_learner_and_hypervectors(waves):
    X, y = waves
    learner = LogisticRegression(C=0.01)
    model = sm.recipes.d2ke(sm.distances.DTW(), 64, gamma="tune", estimator=learner, random_state=0).fit(X, y)
    assert model.predict_proba(X).shape == (60, 2)
    assert not hasattr(learner, "coef_")
    hypervectors = make_pipeline(sm.SignRandomProjection(2048, random_state=0), sm.HDClassifier(random_state=0))
    model = sm.recipes.d2ke(sm.distances.DTW(), 64, estimator=hypervectors, random_state=0)
    assert cross_val_score(model, X, y, cv=4).mean() > 0.8
    with pytest.raises(ValueError, match="C is not a parameter of estimator"):
        sm.recipes.d2ke(sm.distances.DTW(), C="tune", estimator=learner)
    with pytest.raises(ValueError, match='task must be "classification", "regression" or "auto"'):
        sm.recipes.d2ke(sm.distances.DTW(), task="clustering")


@pytest.mark.parametrize("gamma", ["median", "tune"])
def test_d2ke_holds_representatives_out(waves, gamma):
    X, y = waves
    held = sm.embeddings.Representatives(hold_out=True)
    model = sm.recipes.d2ke(sm.distances.DTW(), 20, gamma, objects=held, random_state=0).fit(X, y)
    d2ke, scaler, _ = model.pipeline_
    rest = np.setdiff1d(np.arange(60), d2ke.representative_indices_)
    np.testing.assert_allclose(scaler.mean_, d2ke.transform([X[i] for i in rest]).mean(axis=0), rtol=1e-9)
    assert model.score(X, y) > 0.8


def test_grid_search_reaches_what_d2ke_search_leaves(waves):
    X, y = waves
    objects = sm.embeddings.RandomSeries()
    model = sm.recipes.d2ke(sm.distances.DTW(), 16, gamma="tune", objects=objects, cv=2, random_state=0)
    grid = {"pipeline__d2ke__objects__length": [(2, 4), (2, 12)]}
    search = GridSearchCV(model, grid, cv=2).fit(X, y)
    assert search.best_params_["pipeline__d2ke__objects__length"] in grid["pipeline__d2ke__objects__length"]
    assert objects.length == (2, 25)


def test_d2ke_with_an_estimator_is_repeatable():
    words = ["aab", "ab", "ba", "bbc", "cb", "cc", "ac", "ca"] * 3
    y = [word.count("a") > 0 for word in words]
    hypervectors = make_pipeline(sm.SignRandomProjection(n_bits=256), sm.HDClassifier())
    fits = [
        sm.recipes.d2ke(sm.distances.Levenshtein(), 32, estimator=hypervectors, random_state=seed).fit(words, y)
        for seed in (0, 0, 1)
    ]
    first, again, other = (model.decision_function(words) for model in fits)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert hypervectors[0].random_state is None


def test_d2ke_names_what_is_wrong():
    distance = sm.distances.Levenshtein()
    with pytest.raises(ValueError, match="C must be a positive number or \"tune\", got 'tuned'"):
        sm.recipes.d2ke(distance, C="tuned")
    with pytest.raises(ValueError, match="y holds fractions"):
        sm.recipes.d2ke(distance, 8, gamma="tune").fit(["a", "b", "ab"] * 4, np.linspace(0, 1, 12))
    with pytest.raises(TypeError, match=r"Spectrum\(\) is a kernel, .* expected a distance"):
        sm.recipes.d2ke(sm.kernels.Spectrum(), 8).fit(["a", "b"], [0, 1])


def test_classifiers_refuse_numbers_to_predict_before_anything_is_compared():
    def never(x, y):
        raise AssertionError("objects are compared")

    words, y = ["a", "b", "ab"] * 4, np.linspace(0, 1, 12)
    for model in (
        sm.recipes.nyshd(sm.pairwise(never), 4, 64),
        sm.recipes.d2ke(sm.distances.FromFunction(never), 4),
        sm.recipes.d2ke(sm.distances.FromFunction(never), 4, gamma="tune"),
        sm.recipes.graphlet_optical(3, 20, 10),
    ):
        with pytest.raises(ValueError, match=r"y holds fractions .*round or bin them.*KernelRidge.*recipes\.d2ke"):
            model.fit(words, y)
    with pytest.raises(ValueError, match=r"y holds fractions .*round or bin them"):
        sm.HDClassifier().fit(np.eye(12), y)


# ---- seeds
RECIPES = {
    "nyshd": lambda seed: sm.recipes.nyshd(sm.kernels.Spectrum(2), 20, 256, seed),
    "d2ke": lambda seed: sm.recipes.d2ke(sm.distances.Levenshtein(), 16, random_state=seed),
    "graphlet_optical": lambda seed: sm.recipes.graphlet_optical(4, 20, 10, random_state=seed),
}


def drawn(model):
    return [value for name, value in sorted(model.get_params().items()) if name.endswith("random_state")]


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_recipes_take_the_seeds_that_estimators_take(recipe):
    for kind in (np.random.default_rng, np.random.RandomState):
        assert drawn(recipe(kind(1))) == drawn(recipe(kind(1))) != drawn(recipe(kind(2)))
    assert drawn(recipe(np.int64(3))) == drawn(recipe(3)) != drawn(recipe(4))
    assert all(isinstance(seed, int) for seed in drawn(recipe(np.random.default_rng(0))))
    assert set(drawn(recipe(None))) == {None}
    for wrong in ("seed", 1.5, -1, [1, 2]):
        with pytest.raises(ValueError, match=r"^random_state must be None, an integer >= 0 or a numpy generator, got"):
            recipe(wrong)


def test_seeds_of_integers_are_those_of_earlier_versions():
    expected = np.random.SeedSequence(5).generate_state(3).tolist()
    nystroem, projection, classifier = (step.random_state for _, step in RECIPES["nyshd"](5).steps)
    assert [nystroem, projection, classifier] == expected


@pytest.mark.parametrize("C", [0, -1.0, np.nan, np.inf, "tune", True, [1.0]])
def test_graphlet_optical_refuses_a_regularisation(C):
    with pytest.raises(ValueError, match=r"^C must be a positive number or None, got"):
        sm.recipes.graphlet_optical(C=C)
