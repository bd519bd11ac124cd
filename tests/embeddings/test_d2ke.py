"""D2KE: features by definition, growth, memory, grid search, and what it refuses."""

import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import similia as sm
from naive.similarities import d2ke_feature, edit_distance
from samples.d2ke import CALLS, LABELS, SERIES, SETS, WORDS, Counted, rng
from similia.distances import DTW, FromFunction, Levenshtein, ModifiedHausdorff
from similia.embeddings import D2KE, Mosaics, RandomSeries, RandomSets, RandomStrings, Representatives
from similia.kernels.from_distance import distance_matrix
from similia.objects import SeriesBatch, SetBatch, StringBatch


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
        (sm.distances.FromFunction(lambda x, y: float(abs(len(x) - len(y)))), WORDS, list, Representatives),
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


def test_columns_of_a_table_are_remembered_until_the_next_fit():
    from sklearn.metrics.pairwise import euclidean_distances

    frame = pd.DataFrame(rng.normal(size=(30, 2)), columns=["a", "b"])
    d2ke = D2KE(euclidean_distances, 4, random_state=0).fit(frame)
    assert d2ke.feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="feature names"):
        d2ke.transform(frame.rename(columns={"b": "c"}))
    assert d2ke.fit(frame.assign(c=1.0)).feature_names_in_.tolist() == ["a", "b", "c"]


def test_a_given_collection_is_used_whole():
    d2ke = D2KE(Levenshtein(), n_components=3, objects=["a", "bb", "", "dd"], gamma=1.0).fit(WORDS)
    assert d2ke.random_objects_.tolist() == ["a", "bb", "", "dd"]
    assert d2ke.transform(WORDS).shape == (40, 4)
    with pytest.raises(ValueError, match="the 4 random objects were given as a collection"):
        d2ke.extend(5)


@pytest.mark.parametrize("kind", [pd.Series, pl.Series])
def test_a_column_is_a_collection_and_no_sampler(kind):
    distance, words = FromFunction(edit_distance), ["a", "bb", "", "dd"]
    d2ke = D2KE(distance, objects=kind(words), gamma=1.0).fit(WORDS)
    np.testing.assert_array_equal(d2ke.transform(WORDS), D2KE(distance, objects=words, gamma=1.0).fit_transform(WORDS))


def test_labels_of_a_series_do_not_count():
    d2ke = D2KE(FromFunction(edit_distance), 4, RandomStrings((1, 3)), random_state=0)
    expected = d2ke.fit_transform(WORDS)
    np.testing.assert_array_equal(d2ke.fit_transform(pd.Series(WORDS, index=range(5, 5 + len(WORDS)))), expected)


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


def test_extension_draws_and_compares_as_fit_did():
    distance, objects = DTW(), Mosaics(n_pieces=2)
    large = D2KE(DTW(), 20, Mosaics(n_pieces=2), random_state=5).fit(SERIES)
    small = D2KE(distance, 10, objects, random_state=5).fit(SERIES)
    small.set_params(distance__window=0, objects__n_pieces=1).extend(20, SERIES)
    np.testing.assert_array_equal(small.transform(SERIES), large.transform(SERIES))


def test_extension_refuses():
    d2ke = D2KE(Levenshtein(), 10, random_state=5).fit(WORDS)
    with pytest.raises(ValueError, match="n_components=9 is below the 10 random objects drawn before"):
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


@pytest.mark.same_bits
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
        ({"gamma": "mean"}, ValueError, r'positive number, "median" or a multiple such as "4\*median", got .mean'),
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
    with pytest.raises(ValueError, match=r"D has 4 features, but \w+ is expecting 3 features"):
        d2ke.features(np.ones((2, 4)))
    with pytest.raises(ValueError, match="start must be an integer >= 0, got -1"):
        d2ke.distances(WORDS, -1)
    with pytest.raises(ValueError, match="start must be at most the number of random objects, 3, got 4"):
        d2ke.distances(WORDS, 4)
    with pytest.raises(ValueError, match=r"gamma must be at most 3.40282e\+38 for float32 distances, got 1e\+39"):
        D2KE(Levenshtein(), 3, gamma=1e39).fit_transform(WORDS)
    assert d2ke.fit_transform(["aa"]).shape == (1, 3)  # one object is enough


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distances_to_no_new_objects(dtype):
    X = [np.asarray(series, dtype) for series in SERIES]
    d2ke = D2KE(DTW(), 3, random_state=0).fit(X)
    D = d2ke.distances(X)
    for start in range(4):
        np.testing.assert_array_equal(d2ke.distances(X, start), D[:, start:], strict=True)


def test_matrix_of_distances_is_fresh():
    D = np.ones((3, 2))
    assert not np.shares_memory(distance_matrix(lambda X, Y: D, [1, 2, 3], [1, 2]), D)


def test_extending_to_the_present_number_changes_nothing():
    words = ["kitten", "mitten", "sitting", "sunday", "monday"]
    model = sm.D2KE(Levenshtein(), 16, random_state=0).fit(words)
    before = model.transform(words)
    np.testing.assert_array_equal(model.extend(16).transform(words), before)
    with pytest.raises(ValueError, match="n_components=15 is below the 16 random objects"):
        model.extend(15)


def test_integer_seeds_draw_different_random_objects_and_generators_do_too():
    words, seen = ["kitten", "mitten", "sitting", "sunday"], set()
    for seed in (0, 1, 2, np.random.default_rng(0), np.random.default_rng(1)):
        seen.add("/".join(sm.D2KE(Levenshtein(), 4, random_state=seed).fit(words).random_objects_.tolist()))
    assert len(seen) == 5
