"""Choosing among pipelines of a user's own kernel or distance, also of objects that no built-in one knows."""

import pickle

import dask.bag as bag
import networkx as nx
import numpy as np
import pytest
from sklearn.metrics import get_scorer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import similia as sm
from samples.select import choose, rows, sample
from similia.distances import FromFunction, Levenshtein
from similia.kernels import RBF, Cosine, GappyKmers, Normalized, Product, Spectrum
from similia.learn import KNeighborsClassifier
from similia.selection import auto as _run
from similia.selection._evaluate import Cache, Evaluator, fitted
from similia.selection._ladder import ladder
from similia.selection.folds import recognised

QUICK = {"budget": None, "cv": 3, "nested": False, "random_state": 0, "progress": False}


def jaccard(x, y):
    return 1 - len(x & y) / len(x | y)


def overlap(x, y):
    return float(len(x ^ y))


def common(x, y):
    return float(len(x & y))


def use_own(monkeypatch, n=None):
    """Leave only the first n groups with kernels and distances of the user."""
    monkeypatch.setattr(_run, "ladder", lambda *given: [group for group in ladder(*given) if group.own][:n])


@pytest.fixture(scope="module")
def tags():
    """Sets of letters, of two classes that share four of ten."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    return [set(rng.choice(list("abcdefghij")[3 * c : 7 + 3 * c], 4, replace=False)) for c in y], y


def test_sets_of_tags_are_compared_by_a_function(tags):
    X, y = tags
    found = choose(X[:40], y[:40], similarity=FromFunction(jaccard), budget=None, cv=4, random_state=0, progress=False)
    assert found.kind_ == "objects"
    assert found.n_outer_folds_ == 4
    assert all("jaccard" in row["name"] for row in rows(found))
    assert np.mean(found.predict(X[40:]) == y[40:]) > 0.8


def test_scores_are_those_of_the_function_itself(tags):
    X, y = tags
    found = choose(
        X, y, similarity=FromFunction(jaccard), budget=None, cv=3, random_state=0, nested=False, progress=False
    )
    row = next(row for row in rows(found) if row["name"].endswith("· 1 nearest"))
    model = make_pipeline(KNeighborsClassifier(FromFunction(jaccard), 1))
    assert row["mean_test_score"] == pytest.approx(np.mean(cross_val_score(model, X, y, cv=3)), abs=0.1)
    assert row["mean_test_score"] > 0.75  # by chance: 0.5


def test_own_come_first_and_the_built_in_ones_follow():
    X = recognised(sample("strings", 40)[0])[1]
    names = [group.name for group in ladder("strings", X, "classification", 0, [FromFunction(jaccard)])]
    built_in = [group.name for group in ladder("strings", X, "classification", 0)]
    assert all(name.startswith("jaccard") for name in names[:3])
    assert names[3:] == built_in
    again = [group.name for group in ladder("strings", X, "classification", 0, [Levenshtein()])]
    assert again[0] == "Levenshtein"
    assert sorted(again) == sorted(built_in)  # what is there already is tried once
    groups = ladder("objects", list("ab"), "classification", 0, [GappyKmers(k=3, gaps=1), FromFunction(jaccard)])
    assert [group.name.split(" · ")[-1] for group in groups[:3]] == [
        "GappyKmers 3",
        "features",
        "landmarks",
    ]
    assert groups[0].floor
    assert groups[3].floor
    assert not [g for g in ladder("objects", [], "regression", 0, [Spectrum(k=3)]) if "features" in g.name]


def test_two_functions_of_one_name_do_not_share_a_matrix(tags):
    first, second = (FromFunction(lambda x, y: jaccard(x, y)), FromFunction(lambda x, y: overlap(x, y)))
    cache = Cache(tags[0])
    groups = [ladder("objects", tags[0], "classification", 0, [compare])[0] for compare in (first, second)]
    for group, compare in zip(groups, (first, second), strict=True):
        _, tails, _ = cache.pipelines(group, [0], 5)
        np.testing.assert_allclose(tails[0][0].distance.values, compare(tags[0][:5]))
    again = ladder("objects", tags[0], "classification", 0, [first])
    assert cache.name(again[0]) == cache.name(again[1]) == cache.name(groups[0])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (jaccard, r"similarity\[0\] is jaccard.*expected a kernel or a distance.*distances\.FromFunction"),
        ([FromFunction(jaccard), 3], r"similarity\[1\] is 3"),
        (3.0, r"similarity\[0\] is 3.0"),
        ("levenshtein", r"similarity\[0\] is 'levenshtein'"),
    ],
)
def test_what_is_no_kernel_or_distance_is_refused(tags, given, words):
    with pytest.raises(TypeError, match=words):
        choose(*tags, similarity=given)


def test_a_distance_that_was_lifted_as_a_kernel_is_known(tags):
    with pytest.raises(
        ValueError, match=r"similarity\[1\] must be a kernel.*got jaccard, which is smaller .*FromFunction\(f\)"
    ):
        choose(*tags, similarity=[FromFunction(jaccard), sm.pairwise(jaccard)])


def test_without_one_the_sentence_says_that_one_may_be_given(tags):
    with pytest.raises(TypeError, match=r"cannot tell what kind of object .*or give your own similarity"):
        choose(*tags)
    with pytest.raises(TypeError, match="collection"):
        choose(3, [0], similarity=FromFunction(jaccard))


@pytest.mark.parametrize(
    ("X", "error", "words"),
    [
        (["AC", None, "CA"], TypeError, r"X\[1\]"),
        (np.array([[1.0, 2.0], [np.nan, 3.0]]), ValueError, "NaN|finite|missing"),
        (bag.from_sequence(["AC", "CA"]), TypeError, "the search runs in memory"),
    ],
)
def test_objects_of_a_known_kind_are_checked_beside_an_own_similarity(X, error, words):
    with pytest.raises(error, match=words):
        choose(X, ["u", "v", "u"], similarity=Levenshtein())


def test_arrays_that_may_be_series_or_sets_are_taken_as_they_are_with_an_own_distance():
    rng = np.random.default_rng(0)
    X, y = [rng.normal(size=(3, 2)) + 3 * (i % 2) for i in range(24)], np.arange(24) % 2
    gap = FromFunction(lambda x, y: float(abs(x.mean() - y.mean())))
    found = choose(X, y, similarity=gap, budget=None, cv=3, random_state=0, nested=False, progress=False)
    assert found.kind_ == "objects"
    assert np.mean(found.predict(X) == y) > 0.9


def test_without_the_nested_estimate_the_choice_is_the_same(tags):
    X, y = tags
    given = {"similarity": FromFunction(jaccard), "budget": None, "cv": 3, "random_state": 0, "progress": False}
    with_, without = (choose(X, y, nested=nested, **given) for nested in (True, False))
    assert with_.best_name_ == without.best_name_
    assert with_.n_outer_folds_ == 3
    assert without.n_outer_folds_ == 0
    assert np.isnan(without.best_score_)


def test_weights_of_features_that_were_never_met_are_not_kept(tmp_path):
    X, y = sm.datasets.load_promoters(return_X_y=True)
    features = sm.KernelFeatures(Spectrum(k=5, normalize=True), 2**18)
    dense = make_pipeline(features, LinearSVC(random_state=0)).fit(X[:80], y[:80])
    sparse = fitted(make_pipeline(features, LinearSVC(random_state=0)), X[:80], y[:80])
    np.testing.assert_array_equal(sparse.decision_function(X), dense.decision_function(X))
    assert sm.explain(sparse, X[90]).to_text() == sm.explain(dense, X[90]).to_text()
    assert sm.save(sparse, tmp_path / "sparse").stat().st_size < sm.save(dense, tmp_path / "dense").stat().st_size / 10
    np.testing.assert_array_equal(sm.load(tmp_path / "sparse").predict(X), dense.predict(X))
    few = make_pipeline(StandardScaler(), LinearSVC(random_state=0))
    assert isinstance(fitted(few, np.eye(12)[:, :3] + 1, np.arange(12) % 2)[-1].coef_, np.ndarray)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_the_neighbours_by_a_kernel_of_two_objects_are_the_most_similar(tags, task, monkeypatch, tmp_path):
    use_own(monkeypatch, 1)
    X, y = tags[0], tags[1] if task == "classification" else tags[1] + 0.1 * np.random.default_rng(0).random(60)
    found = choose(X[:40], y[:40], task=task, similarity=sm.pairwise(common), **QUICK)
    assert found.best_name_.startswith("common · ")
    assert found.best_name_.endswith(" nearest")
    similar = np.argsort([[-common(x, other) for other in X[:40]] for x in X[40:]], axis=1, kind="stable")
    nearest = found.best_estimator_[-1].kneighbors(X[40:], return_distance=False)
    np.testing.assert_array_equal(nearest, similar[:, : nearest.shape[1]])  # all sets have four elements
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.refit(X[:40], y[:40]).predict(X), found.predict(X))
    with pytest.raises(ValueError, match="which a saved file may not contain"):
        sm.save(found, tmp_path / "auto.similia")


@pytest.mark.parametrize(
    ("kind", "X", "number"),
    [
        ("series", [np.arange(5.0) + 9 * (i % 2) + 0.1 * i for i in range(24)], np.sum),
        ("graphs", [nx.path_graph(4 + 9 * (i % 2) + i // 9) for i in range(24)], len),
        ("vectors", [[i, 90 * (i % 2)] for i in range(24)], np.max),
    ],
)
def test_a_function_gets_the_same_form_of_objects_in_fit_and_in_predict(kind, X, number, monkeypatch):
    use_own(monkeypatch)
    y, forms = np.arange(24) % 2, set()

    def gap(*pair):
        forms.update((type(one), getattr(one, "shape", ()), getattr(one, "dtype", None)) for one in pair)
        return float(abs(number(pair[0]) - number(pair[1])))

    found = choose(X, y, similarity=FromFunction(gap), **QUICK)
    assert found.kind_ == kind
    assert found.predict(X[:6]).tolist() == [0, 1] * 3
    assert found.refit(X, y).predict(X[:6]).tolist() == [0, 1] * 3
    expected = np.asarray(X[0], dtype=float) if kind == "vectors" else X[0]
    assert forms == {(type(expected), getattr(expected, "shape", ()), getattr(expected, "dtype", None))}


@pytest.mark.parametrize("kernel", [RBF(), Normalized(Product([RBF(), Cosine()])), Cosine()])
def test_settings_that_depend_on_data_come_from_the_training_folds(kernel):
    X, y = sample("vectors", 24)
    X = np.abs(X)
    groups = ladder("vectors", X, "classification", 0, [kernel])[:2]
    fold, score = np.arange(24) % 3, get_scorer("accuracy")
    evaluator = Evaluator(X, y, [fold], score, groups)
    assert all(group.own and evaluator.shared(g) is None for g, group in enumerate(groups))
    fixed = ladder("vectors", X, "classification", 0, [kernel.decided(X)])
    assert Cache(X).name(fixed[0]) is not None
    evaluator.run(0, [0], 24, [(0, frozenset({0}))])
    train, test = np.flatnonzero(fold), np.flatnonzero(fold == 0)
    model = groups[0].pipeline(0).fit(X[train], y[train])
    assert evaluator.scores(0, 0, 24, [((0, frozenset({0})), 0)]).tolist() == [model.score(X[test], y[test])]
