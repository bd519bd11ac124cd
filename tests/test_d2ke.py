"""D2KE: features by definition, growth, memory, grid search, and what it refuses."""

import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import similia as sm
from naive import d2ke_feature, edit_distance
from similia.distances import DTW, Distance, Levenshtein, ModifiedHausdorff
from similia.embeddings import D2KE, Mosaics, RandomSeries, RandomSets, RandomStrings, Representatives
from similia.embeddings.d2ke_search import D2KESearch
from similia.kernels.from_distance import distance_matrix
from similia.objects import SeriesBatch, SetBatch, StringBatch, as_strings

rng = np.random.default_rng(0)
WORDS = ["".join(rng.choice(list("abcd"), size=n)) for n in rng.integers(0, 9, size=40)]
LABELS = np.array([word.count("a") > 1 for word in WORDS])
SERIES = [rng.normal(size=(n, 2)).astype(np.float32) for n in rng.integers(3, 9, size=20)]
SETS = [rng.random((n, 3)) for n in rng.integers(1, 6, size=20)]
CALLS = []


class Counted(Distance):
    """Levenshtein that notes how many distances it was asked for."""

    def as_objects(self, X):
        return as_strings(X)

    def __call__(self, X, Y=None):
        Y = X if Y is None else Y
        CALLS.append(len(X) * len(Y))
        return Levenshtein()(X, Y)


@pytest.fixture(autouse=True)
def forget_calls():
    CALLS.clear()


def same_objects(a, b):
    return len(a) == len(b) and all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


# ---- features
def test_features_by_their_definition():
    d2ke = D2KE(Levenshtein(), n_components=5, objects=RandomStrings((0, 3)), gamma=0.3, random_state=0)
    F = d2ke.fit_transform(WORDS[:6])
    expected = [[d2ke_feature(edit_distance, x, w, 0.3, 5) for w in d2ke.random_objects_] for x in WORDS[:6]]
    np.testing.assert_allclose(F, expected, rtol=1e-6)
    np.testing.assert_array_equal(d2ke.features(d2ke.distances(WORDS[:6])), F)
    assert d2ke.get_feature_names_out().tolist() == [f"d2ke{j}" for j in range(5)]


@pytest.mark.parametrize(
    ("distance", "X", "kind", "sampler"),
    [
        (Levenshtein(), WORDS, StringBatch, RandomStrings),
        (DTW(), SERIES, SeriesBatch, RandomSeries),
        (ModifiedHausdorff(), SETS, SetBatch, RandomSets),
        (sm.pairwise(lambda x, y: float(abs(len(x) - len(y)))), WORDS, list, Representatives),
    ],
)
def test_auto_goes_by_what_the_distance_works_on(distance, X, kind, sampler):
    d2ke = D2KE(distance, n_components=12, random_state=0).fit(X)
    assert type(d2ke.random_objects_) is kind
    assert type(d2ke.sampler_) is sampler
    F = d2ke.transform(X)
    assert F.shape == (len(X), 12)
    assert (F > 0).all()
    assert (1 / np.sqrt(12) * (1 + 1e-6) >= F).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_is_that_of_the_series(dtype):
    X = [x.astype(dtype) for x in SERIES]
    d2ke = D2KE(DTW(), n_components=8, random_state=0).fit(X)
    assert d2ke.random_objects_.values.dtype == dtype
    assert d2ke.transform(X).dtype == dtype


def test_random_objects_look_like_the_objects_to_a_plain_function():
    def distance(X, Y):
        assert {np.ndim(x) for x in [*X, *Y]} == {1}
        return np.array([[abs(x.mean() - y.mean()) for y in Y] for x in X])

    flat = [x[:, 0] for x in SERIES]
    d2ke = D2KE(distance, 300, RandomSeries((2, 4)), random_state=0).fit(flat)
    assert d2ke.transform(flat).shape == (20, 300)
    assert same_objects(d2ke.extend(310).random_objects_, clone(d2ke).fit(flat).random_objects_)

    def strings(X, Y):
        assert {type(x) for x in [*X, *Y]} == {str}
        return np.ones((len(X), len(Y)))

    assert D2KE(strings, 300, RandomStrings(3)).fit_transform(WORDS).shape == (40, 300)


def test_vectors_with_a_function_of_scikit_learn():
    from sklearn.metrics.pairwise import euclidean_distances

    X = rng.normal(size=(30, 3))
    drawn = D2KE(euclidean_distances, 300, lambda X, n, rng: rng.normal(size=(n, X.shape[1])), 0.5, 0).fit(X)
    assert drawn.random_objects_.shape == (300, 3)
    np.testing.assert_allclose(drawn.transform(X), np.exp(-0.5 * drawn.distances(X)) / np.sqrt(300))
    assert isinstance(D2KE(euclidean_distances, 10).fit(X).random_objects_, np.ndarray)


def test_a_given_collection_is_used_whole():
    d2ke = D2KE(Levenshtein(), n_components=3, objects=["a", "bb", "", "dd"], gamma=1.0).fit(WORDS)
    assert d2ke.random_objects_.tolist() == ["a", "bb", "", "dd"]
    assert d2ke.transform(WORDS).shape == (40, 4)
    with pytest.raises(ValueError, match="the 4 random objects were given as a collection"):
        d2ke.extend(5)


# ---- representatives
def test_representatives_are_training_objects_drawn_without_replacement():
    d2ke = D2KE(Levenshtein(), 15, Representatives(), gamma=0.4, random_state=3).fit(WORDS)
    chosen = d2ke.representative_indices_
    assert len(set(chosen)) == 15
    expected = np.exp(-0.4 * Levenshtein()(WORDS, [WORDS[i] for i in chosen])) / np.sqrt(15)
    np.testing.assert_allclose(d2ke.transform(WORDS), expected, rtol=1e-6)
    firsts = [clone(d2ke).set_params(random_state=s).fit(WORDS).representative_indices_[0] for s in range(60)]
    assert len(set(firsts)) > 20


def test_no_more_representatives_than_objects():
    d2ke = D2KE(Levenshtein(), 1000, Representatives(), random_state=0).fit(WORDS)
    assert sorted(d2ke.representative_indices_) == list(range(40))
    assert d2ke.transform(WORDS[:2]).shape == (2, 40)


def test_held_out_representatives_are_not_trained_on_by_a_pipeline():
    held = Representatives(hold_out=True)
    with pytest.raises(ValueError, match="a step of a pipeline cannot do"):
        make_pipeline(D2KE(Levenshtein(), 10, held), LinearSVC()).fit(WORDS, LABELS)
    with pytest.raises(ValueError, match="n_components=40 representatives held out of 40 training objects leave none"):
        D2KE(Levenshtein(), 50, held).fit(WORDS)
    assert len(D2KE(Levenshtein(), 39, held).fit(WORDS).representative_indices_) == 39


# ---- growth, seeds, blocks
@pytest.mark.parametrize(
    "objects", ["auto", Representatives(), lambda X, n, rng: [str(rng.random()) for _ in range(n)]]
)
@pytest.mark.parametrize(("few", "many"), [(3, 8), (10, 300), (255, 257), (256, 600)])
def test_more_components_keep_the_old_ones(objects, few, many):
    X = [f"{i:b}" for i in range(700)]
    small = D2KE(Levenshtein(), few, objects, random_state=5).fit(X)
    large = D2KE(Levenshtein(), many, objects, random_state=5).fit(X)
    assert small.gamma_ == large.gamma_
    assert same_objects(large.random_objects_[:few], small.random_objects_)
    assert len(set(large.random_objects_)) > 0.5 * min(many, 100)  # blocks are not copies of one another
    old, gamma = small.distances(X[:9]), small.gamma_
    small.extend(many, X)
    assert small.gamma_ == gamma
    assert same_objects(small.random_objects_, large.random_objects_)
    np.testing.assert_array_equal(small.transform(X[:9]), large.transform(X[:9]))
    np.testing.assert_array_equal(np.hstack([old, small.distances(X[:9], start=few)]), large.distances(X[:9]))
    assert clone(small).n_components == many
    assert len(small.representative_indices_) == (many if isinstance(objects, Representatives) else 0)


@pytest.mark.parametrize(("distance", "X"), [(DTW(), SERIES), (ModifiedHausdorff(), SETS), (Levenshtein(), WORDS)])
def test_extension_needs_no_training_objects_where_the_sampler_knows_all(distance, X):
    small = D2KE(distance, 10, random_state=5).fit(X).extend(20)
    assert same_objects(small.random_objects_, D2KE(distance, 20, random_state=5).fit(X).random_objects_)
    assert type(small.random_objects_) is type(distance.as_objects(X))


def test_extension_refuses():
    d2ke = D2KE(Levenshtein(), 10, random_state=5).fit(WORDS)
    with pytest.raises(ValueError, match="n_components=9 is the new total, and there are 10 features already"):
        d2ke.extend(9)
    with pytest.raises(ValueError, match=r"write extend\(n_components, X\)"):
        D2KE(Levenshtein(), 10, Representatives()).fit(WORDS).extend(12)


def test_the_seed_decides():
    def objects(random_state):
        return list(D2KE(Levenshtein(), 20, random_state=random_state).fit(WORDS).random_objects_)

    assert objects(1) == objects(1) == objects(np.int64(1))
    assert objects(1) != objects(2)
    assert objects(np.random.default_rng(1)) == objects(np.random.default_rng(1))
    assert objects(None) != objects(None)
    shared = np.random.default_rng(1)
    assert objects(shared) != objects(shared)
    d2ke = D2KE(Levenshtein(), 20).fit(WORDS)
    assert objects(d2ke.seed_) == list(d2ke.random_objects_)


def test_rows_do_not_depend_on_blocks_or_company():
    d2ke = D2KE(DTW(), 50, random_state=0).fit(SERIES)
    together = d2ke.transform(SERIES)
    with sm.config(max_memory=5000):
        np.testing.assert_array_equal(d2ke.transform(SERIES), together)
        assert clone(d2ke).fit(SERIES).gamma_ == d2ke.gamma_
    np.testing.assert_array_equal(np.vstack([d2ke.transform([x]) for x in SERIES]), together)


def test_distances_are_computed_in_blocks_of_rows():
    d2ke = D2KE(Counted(), 50, gamma=1.0, random_state=0).fit(WORDS)
    assert CALLS == []  # a given gamma needs no distance
    with sm.config(max_memory=16 * 50 * 7):
        d2ke.transform(WORDS)
    assert CALLS == [350] * 5 + [250]


def test_inputs_are_left_alone():
    table = rng.random((6, 4))
    kept = table.copy()
    d2ke = D2KE(lambda X, Y: table[np.ix_(X, Y)], objects=np.arange(4), gamma=2.0).fit(np.arange(6))
    F = d2ke.transform(np.arange(6))
    d2ke.features(table)
    np.testing.assert_array_equal(table, kept)
    np.testing.assert_allclose(F, np.exp(-2 * table) / 2)


# ---- gamma
def test_gamma_is_one_over_the_median_distance():
    objects = ["a", "abc", "ddd", ""]
    median = np.median([[edit_distance(x, w) for w in objects] for x in WORDS])
    assert D2KE(Levenshtein(), objects=objects).fit(WORDS).gamma_ == pytest.approx(1 / median)
    assert D2KE(Levenshtein(), objects=objects, gamma="4*median").fit(WORDS).gamma_ == pytest.approx(4 / median)
    assert D2KE(Levenshtein(), objects=objects, gamma=" 1e-1 * median").fit(WORDS).gamma_ == pytest.approx(0.1 / median)
    assert D2KE(Levenshtein(), objects=objects, gamma=0.7).fit(WORDS).gamma_ == 0.7


def test_gamma_follows_the_unit_of_the_distance():
    def millimetres(X, Y):
        return 1000 * Levenshtein()(X, Y)

    d2ke = D2KE(Levenshtein(), 30, RandomStrings(), random_state=0)
    scaled = clone(d2ke).set_params(distance=millimetres)
    np.testing.assert_allclose(scaled.fit_transform(WORDS), d2ke.fit_transform(WORDS), rtol=1e-5)


def test_gamma_where_the_median_distance_is_zero():
    assert D2KE(Levenshtein(), objects=["a"]).fit(["a", "a", "b"]).gamma_ == 1.0
    assert D2KE(Levenshtein(), objects=["a"], gamma="3*median").fit(["a", "a", "b"]).gamma_ == 3.0


def test_gamma_costs_a_bounded_number_of_distances():
    D2KE(Counted(), 1000, random_state=0).fit(WORDS * 50)
    assert sum(CALLS) == 256 * 64


# ---- memory
def test_memory_spares_distances(tmp_path):
    d2ke = D2KE(Counted(), 20, random_state=0, memory=str(tmp_path))
    first = d2ke.fit_transform(WORDS)
    asked = len(CALLS)
    assert asked > 0
    for gamma in (0.1, 1.0, "median"):
        again = clone(d2ke).set_params(gamma=gamma).fit_transform(WORDS)
    assert len(CALLS) == asked
    np.testing.assert_array_equal(again, first)
    d2ke.transform(WORDS[:3])
    assert len(CALLS) == asked + 1
    np.testing.assert_array_equal(clone(d2ke).set_params(memory=None).fit_transform(WORDS), first)


def test_grid_search_over_gamma_with_memory(tmp_path):
    model = make_pipeline(D2KE(Counted(), 20, random_state=0, memory=tmp_path), StandardScaler(), LinearSVC(C=0.01))
    GridSearchCV(model, {"d2ke__gamma": ["median"]}, cv=3).fit(WORDS, LABELS)
    one = sum(CALLS)
    CALLS.clear()
    search = GridSearchCV(model, {"d2ke__gamma": [0.01, 0.1, 1.0, 10.0]}, cv=3).fit(WORDS, LABELS)
    assert one > 0
    assert sum(CALLS) == 0
    assert search.best_params_["d2ke__gamma"] in (0.01, 0.1, 1.0, 10.0)


@pytest.mark.parametrize("mode", ["r", "r+"])
def test_a_mapped_cache_is_not_written_to(tmp_path, mode):
    memory = joblib.Memory(tmp_path, mmap_mode=mode, verbose=0)
    d2ke = D2KE(Counted(), 20, random_state=0, memory=memory)
    first = d2ke.fit_transform(WORDS)
    np.testing.assert_array_equal(d2ke.transform(WORDS), first)
    np.testing.assert_array_equal(d2ke.transform(WORDS), first)


# ---- scikit-learn
def test_grid_search_reaches_the_random_objects():
    model = make_pipeline(D2KE(Levenshtein(), 20, RandomStrings(), random_state=0), StandardScaler(), LinearSVC(C=0.01))
    grid = {"d2ke__objects__length": [(1, 2), 5], "d2ke__n_components": [4, 8]}
    best = GridSearchCV(model, grid, cv=2).fit(WORDS, LABELS).best_params_
    assert best["d2ke__objects__length"] in grid["d2ke__objects__length"]
    assert cross_val_score(model, WORDS, LABELS, cv=3).mean() > 0.7


def test_pickle_and_clone():
    d2ke = D2KE(Levenshtein(), 20, RandomStrings((1, 3)), random_state=0).fit(WORDS)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(d2ke)).transform(WORDS), d2ke.transform(WORDS))
    assert repr(clone(d2ke)) == repr(d2ke)
    before = d2ke.get_params(deep=False)
    assert all(d2ke.get_params(deep=False)[name] is value for name, value in before.items())


def test_pandas_output():
    pytest.importorskip("pandas")
    frame = D2KE(Levenshtein(), 3, random_state=0).set_output(transform="pandas").fit_transform(WORDS)
    assert list(frame.columns) == ["d2ke0", "d2ke1", "d2ke2"]


# ---- the search
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
    with pytest.raises(ValueError, match=r"^cv=5 folds are more than the 4 objects of the largest class; take"):
        model.fit(few, labels)
    with pytest.raises(ValueError, match=r"^class 'b' has one object, and the fold that holds it out leaves one class"):
        model.fit(few[:5], labels[:5])
    clone(model).set_params(cv=4).fit(few, labels)
    sm.recipes.d2ke(Levenshtein(), 8, gamma="tune", task="regression", cv=4, random_state=0).fit(few, np.arange(8.0))


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


# ---- bad input
def test_bad_distances_name_the_pair():
    def broken(X, Y):
        D = np.ones((len(X), len(Y)))
        D[[x == "bad" for x in X], 1] = broken.value
        return D

    objects = RandomStrings(alphabet="ab")
    X = ["ok"] * 11 + ["bad"]
    for broken.value, found in ((-1.0, "-1"), (np.nan, "nan"), (np.inf, "inf")):
        d2ke = D2KE(broken, 3, objects, gamma=1.0).fit(X)
        with pytest.raises(ValueError, match=rf"broken returned {found} for X\[11\] and random object 1, expected"):
            d2ke.transform(X)
        with sm.config(max_memory=16 * 3 * 5), pytest.raises(ValueError, match=r"for X\[11\] and random object 1"):
            d2ke.transform(X)
    with pytest.raises(ValueError, match="returned shape"):
        D2KE(lambda X, Y: np.ones(3), 3, objects, gamma=1.0).fit(X).transform(X)
    with pytest.raises(TypeError, match="expected real numbers"):
        D2KE(lambda X, Y: np.full((len(X), len(Y)), "far"), 3, objects).fit(X)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"distance": DTW}, TypeError, r"the class DTW, expected an object that can be called; write DTW\(...\)"),
        ({"distance": "dtw"}, TypeError, "distance must be a callable"),
        ({"objects": "random"}, ValueError, 'objects must be "auto"'),
        ({"objects": RandomStrings}, TypeError, r"objects is the class RandomStrings; write RandomStrings\(...\)"),
        ({"objects": []}, ValueError, "empty"),
        ({"objects": lambda X, n, rng: ["a"] * (n - 1)}, ValueError, "returned 255 objects, expected the 256"),
        ({"n_components": 0}, ValueError, "n_components must be an integer >= 1"),
        ({"gamma": -1.0}, ValueError, "gamma must be a positive number, got -1.0"),
        ({"gamma": "mean"}, ValueError, r'gamma must be a positive number, "median" or such as "4\*median", got .mean'),
        ({"gamma": "0*median"}, ValueError, "gamma must be a positive number"),
        ({"gamma": "..*median"}, ValueError, "gamma must be a positive number"),
        ({"gamma": None}, ValueError, "gamma must be a positive number"),
        ({"random_state": "seed"}, ValueError, "random_state must be"),
        ({"memory": 3}, ValueError, "memory"),
    ],
)
def test_bad_parameters(parameters, error, message):
    with pytest.raises(error, match=message):
        D2KE(**{"distance": Levenshtein(), **parameters}).fit(WORDS)


def test_bad_calls():
    with pytest.raises(ValueError, match="X is empty"):
        D2KE(Levenshtein()).fit([])
    with pytest.raises(ValueError, match="y has 2 labels for 40 objects"):
        D2KE(Levenshtein()).fit(WORDS, [0, 1])
    d2ke = D2KE(Levenshtein(), 3, random_state=0).fit(WORDS)
    with pytest.raises(ValueError, match="X is empty"):
        d2ke.transform([])
    with pytest.raises(ValueError, match="D has 4 features, expected 3"):
        d2ke.features(np.ones((2, 4)))
    assert d2ke.fit_transform(["aa"]).shape == (1, 3)  # one object is enough


def test_matrix_of_distances_is_fresh():
    D = np.ones((3, 2))
    assert not np.shares_memory(distance_matrix(lambda X, Y: D, [1, 2, 3], [1, 2]), D)


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
    pipeline = Pipeline([("d2ke", D2KE(Counted(), 64, Representatives(), random_state=0)), ("learner", LinearSVC())])
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
    pipeline = Pipeline([("d2ke", D2KE(Counted(), R, sampler, random_state=0)), ("learner", LinearSVC())])
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
        ({"d2ke__gama": [1.0]}, r"'d2ke__gama', and there is no such parameter; there are d2ke__distance, d2ke__gamma"),
        ({"learner__c": [1.0]}, "'learner__c', and there is no such parameter; there are learner__C"),
        ({"svm__C": [1.0]}, "'svm__C', and there is no such parameter; there are d2ke, learner"),
    ],
)
def test_search_names_a_parameter_that_there_is_not(grid, message):
    pipeline = Pipeline([("d2ke", D2KE(Levenshtein(), 5)), ("learner", LinearSVC())])
    with pytest.raises(ValueError, match=message):
        D2KESearch(pipeline, grid).fit(WORDS, LABELS)


def test_search_refuses_a_target_that_is_no_numbers():
    model = sm.recipes.d2ke(Levenshtein(), 8, gamma="tune", task="regression", random_state=0)
    with pytest.raises(ValueError, match=r"y\[2\] is nan, expected finite numbers to predict; drop that object"):
        model.fit(WORDS, [1.0, 2.0, np.nan, *range(37)])
    with pytest.raises(
        ValueError, match=r"y holds \['a'\] of dtype <U1, expected numbers to predict; for labels write"
    ):
        model.fit(WORDS, ["a", "b"] * 20)
