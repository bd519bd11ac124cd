"""What `similia.select` takes: kinds that are recognised, and one sentence for what cannot be chosen from."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import get_scorer

import similia as sm
from samples.select import choose, sample
from similia.embeddings.vectors import SeriesVectors
from similia.objects import n_objects
from similia.selection._evaluate import Evaluator
from similia.selection._ladder import ladder
from similia.selection.folds import checked_targets, number_of_folds, ordered, recognised


def test_sparse_rows_are_vectors():
    X, y = sample("vectors", 30)
    found = choose(sp.csr_matrix(np.maximum(X, 0)), y, budget=1.5, cv=3, random_state=0)
    assert found.kind_ == "vectors"
    assert np.mean(found.predict(sp.csr_array(np.maximum(X, 0))) == y) > 0.6


def test_every_embedding_of_sparse_rows_is_compared():
    X, y = sample("vectors", 24)
    X, fold = sp.csr_array(np.maximum(X, 0)), np.arange(24) // 2 % 3
    groups = ladder("vectors", X, "classification", 0)
    evaluator = Evaluator(X, y, [fold], get_scorer("accuracy"), groups)
    for g in range(len(groups)):
        evaluator.run(g, [0], 24, [(0, frozenset({0}))])
    assert any("Heat" in group.name for group in groups)
    assert not evaluator.failed


@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        (["a"] * 12, "y has the one class 'a', expected at least two"),
        (["a"] * 10 + ["b"] * 2, "class 'b' has 2 objects; cross-validation needs two classes of at least 3"),
        ([*"aaabcdefghij"], "most of the 10 classes in y have only one object"),
        ([0.5] * 11 + [np.nan], r"y\[11\] is nan, expected a label or a finite number"),
        (["a", None] + ["b"] * 10, r"y\[1\] is None"),
        ([0.5] * 12, "all 12 targets are 0.5"),
        (["a", "b"], "y has 2 labels for 12 objects"),
    ],
)
def test_targets_that_cannot_be_learnt(y, sentence):
    X = np.random.default_rng(0).normal(size=(12, 3))
    task = "regression" if y == [0.5] * 12 else "auto"
    with pytest.raises(ValueError, match=sentence):
        choose(X, np.array(y, dtype=object) if None in y else y, cv=4, task=task)


@given(st.lists(st.integers(1, 7), min_size=2, max_size=6), st.integers(0, 2**32 - 1))
def test_every_fold_of_accepted_classes_has_two_of_them(sizes, seed):
    y = np.repeat(np.arange(len(sizes)), sizes)
    enough = sum(size >= 3 for size in sizes) >= 2 or sum(size >= 2 for size in sizes) >= 4
    alone = sizes.count(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            folds = number_of_folds(y, "classification", 3)
        except ValueError:
            assert not enough or len(y) < 6 or 2 * alone > len(sizes)
            return
    order = ordered(y, "classification", folds, np.random.default_rng(seed))
    assert all(len(np.unique(y[order.objects[order.fold == fold]])) >= 2 for fold in range(folds))


def test_classes_of_two_objects_each_are_learnt():
    rng = np.random.default_rng(0)
    y = np.repeat([*"abcdef"], 2)
    X = 10 * np.eye(6)[np.unique(y, return_inverse=True)[1]] + rng.normal(size=(12, 6))
    with pytest.warns(UserWarning, match="class 'a' has 2 objects, so there are 3 folds instead of 5"):
        found = choose(X, y, cv=5, budget=None, random_state=0, progress=False)
    assert (found.predict(X + 0.1 * rng.normal(size=X.shape)) == y).all()


def test_numbers_taken_for_classes_are_asked_about():
    ages = np.append(np.repeat(np.arange(20, 50), 7), 99)
    for y in (ages, ages.astype(float), ages.astype(str)):
        with pytest.warns(UserWarning, match="has 1 object, so there are 3 folds instead of 5; AutoRegressor predicts"):
            number_of_folds(checked_targets(y, len(y), "classification"), "classification", 5)


def test_a_class_with_fewer_objects_than_the_fewest_folds():
    with pytest.warns(UserWarning, match="^class 'c' has 2 objects, fewer than the 3 folds$"):
        assert number_of_folds(np.array(list("aaaabbbbcc")), "classification", 3) == 3


@pytest.mark.parametrize("kind", [float, str, object])
def test_numbers_are_predicted_as_numbers_whatever_their_type(kind):
    values = np.round(np.random.default_rng(0).normal(6, 1, size=40), 1)  # as measured: many are equal
    assert len(np.unique(values)) < 30
    found = choose(values[:, None], values.astype(kind), budget=2, cv=3, nested=False, random_state=0)
    assert (type(found), found.measure_) == (sm.AutoRegressor, "r2")
    assert np.abs(found.predict(values[:, None]) - values).mean() < 0.5


@pytest.mark.parametrize("kind", [bool, object, list])
def test_booleans_are_the_numbers_0_and_1_for_a_regressor(kind):
    given = [True, False, False] * 4
    found = checked_targets(given if kind is list else np.array(given, dtype=kind), 12, "regression")
    assert found.dtype == np.float64
    assert found.tolist() == [1.0, 0.0, 0.0] * 4


def test_a_score_of_numbers_makes_whole_numbers_a_regression():
    y = np.arange(40) % 4
    found = choose(y[:, None] * 1.0, y, scoring="neg_mean_absolute_error", budget=2, cv=3, nested=False, random_state=0)
    assert isinstance(found, sm.AutoRegressor)
    with pytest.raises(ValueError, match=r"scoring='r2' needs finite numbers in y, found y\[0\] = 'a'"):
        choose(np.zeros((9, 1)), ["a", "b", "c"] * 3, scoring="r2", cv=3)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"cv": 2}, "cv must be an integer >= 3, got 2"),
        ({"budget": 0}, r"budget must be a positive number of seconds or None, got 0"),
        ({"task": "ranking"}, "task must be 'auto', 'classification' or 'regression'"),
        ({"task": "regression"}, "regression needs finite numbers in y"),
        ({"scoring": "beauty"}, "beauty"),
    ],
)
def test_parameters_out_of_range(changes, sentence):
    X, y = sample("vectors", 12)
    with pytest.raises(ValueError, match=sentence):
        choose(X, y, **{"cv": 3, **changes})


def test_objects_of_no_kind_or_of_two():
    y = [0, 1] * 6
    with pytest.raises(TypeError, match=r"cannot tell what kind of object X\[0\] is: found <object.*expected a string"):
        choose([object()] * 12, y)
    with pytest.raises(ValueError, match="arrays of 2 axes, which may be series or point sets"):
        choose([np.zeros((3, 2))] * 12, y)
    with pytest.raises(ValueError, match="X is empty"):
        choose([], [])
    with pytest.raises(TypeError, match="one str"):
        choose("ACGT", y)


@pytest.mark.parametrize(
    ("X", "kind"),
    [
        (["ab", "c"], "strings"),
        ([b"ab", b"c"], "strings"),
        (np.array(["ab", "c"]), "strings"),
        ([np.zeros(3), np.zeros(4)], "series"),
        ([[1.0, 2.0], [3.0, 4.0]], "vectors"),
        (np.zeros((2, 3), dtype=np.int32), "vectors"),
        ([{"edge_index": np.array([[0], [1]]), "n_nodes": 2}] * 2, "graphs"),
    ],
)
def test_kinds_are_recognised(X, kind):
    found, objects = recognised(X)
    assert found == kind
    assert n_objects(objects) == 2


def test_masked_time_points_are_missing():
    with pytest.raises(ValueError, match="series 0, time point 1, channel 0 is nan"):
        recognised([np.ma.masked_array([1.0, 2.0, 3.0], mask=[0, 1, 0]), np.zeros(4)])


def test_columns_of_data_frames():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": ["ab", "c"], "size": [1.0, 2.0], "width": [3.0, 4.0]})
    assert recognised(frame["text"])[0] == "strings"
    assert recognised(frame[["size", "width"]])[0] == "vectors"


# series as vectors


def test_series_of_one_length_become_vectors_and_others_are_refused():
    X = sm.objects.as_series([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]])
    flat = SeriesVectors().fit(X)
    assert flat.transform(X).tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]
    assert not np.shares_memory(flat.transform(X), X.values)  # a later step may change its input in place
    assert (flat.length_, flat.n_channels_) == (2, 2)
    with pytest.raises(ValueError, match=r"X\[1\] has 1 time point and 1 channel, expected 2 and 1"):
        SeriesVectors().fit([np.zeros(2), np.zeros(1)])
    with pytest.raises(ValueError, match=r"X\[0\] has 2 time points and 1 channel, expected 2 and 2"):
        flat.transform([np.zeros(2)])


def test_importing_the_room_loads_no_scikit_learn():
    code = "import similia.selection, sys; sys.exit('sklearn' in sys.modules or 'numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
