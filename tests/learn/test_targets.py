"""Classes or numbers: one rule, whatever form the targets have and wherever they come from."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import make_scorer, mean_absolute_error, median_absolute_error
from sklearn.svm import LinearSVC

import similia as sm
from similia.core.validation import BadValue
from similia.learn.targets import as_numbers, checked_labels, checked_targets, task_of


def potencies(n=1017, values=296):
    """Return n numbers such as pIC50 values, with two decimals, of which many are equal."""
    rng = np.random.default_rng(0)
    some = rng.choice(np.arange(400, 1000), values, replace=False) / 100
    return np.concatenate([some, rng.choice(some, n - values)])


NUMBERS = {
    "potencies": potencies(),
    "as text": potencies().astype(str),
    "as objects": potencies().astype(object),
    "as bytes": potencies().astype(str).astype("S"),
    "float32": potencies().astype(np.float32),
    "a list": potencies().tolist(),
    "whole, nearly all different": np.arange(30),
    "whole and as text": np.arange(30).astype(str),
    "whole and as float": np.arange(30.0),
    "three fractions": [0.5, 1.5, 2.5],
    "signs and exponents": ["-1.5e-3", "+2", " 7 "],
}
CLASSES = {
    "text": ["a", "b", "a"],
    "one is text": ["1.5", "2.5", "n/a"],
    "digits": [0, 1, 1, 0],
    "digits as float": [0.0, 1.0, 1.0],
    "digits as text": ["0", "1", "1"],
    "minus one and one": [-1, 1, -1],
    "bool": [True, False],
    "hundred classes of ten": np.repeat(np.arange(100), 10),
    "hundred classes of ten, as float": np.repeat(np.arange(100.0), 10),
    "twenty digits": np.arange(20),
    "names that Python would read": ["1_000", "2_000.5", "3_000"],
    "nan is a name too": ["nan", "inf", "1.5"],
    "none": ["a", None, "b"],
    "fractions of Python's": [0, 1, None],
    "too large for a float": [10**400, 2],
}


OF_NUMBERS = [
    *("r2", "neg_mean_absolute_error", "neg_root_mean_squared_error", "neg_mean_squared_log_error"),
    *("explained_variance", "neg_median_absolute_error", "neg_mean_poisson_deviance"),
]
OF_CLASSES = [
    *("accuracy", "balanced_accuracy", "f1", "f1_macro", "roc_auc", "neg_log_loss", "matthews_corrcoef"),
    *("adjusted_rand_score", "top_k_accuracy"),
]


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_to_predict(name):
    assert task_of(NUMBERS[name]) == "regression"
    assert task_of(NUMBERS[name], "classification") == "classification"
    np.testing.assert_allclose(as_numbers(NUMBERS[name]), [float(value) for value in NUMBERS[name]])


@pytest.mark.parametrize("name", CLASSES)
def test_classes(name):
    assert task_of(CLASSES[name]) == "classification"


@pytest.mark.parametrize(
    ("scoring", "task"),
    [
        *((name, "regression") for name in OF_NUMBERS),
        *((name, "classification") for name in OF_CLASSES),
        (make_scorer(median_absolute_error, greater_is_better=False), "regression"),
        (make_scorer(mean_absolute_error), "regression"),
    ],
)
def test_a_scorer_that_suits_one_task_decides(scoring, task):
    assert task_of([0, 1, 1, 0], scoring=scoring) == task
    assert task_of(["0", "1", "1", "0"], scoring=scoring) == task
    assert task_of(potencies(), scoring=scoring) == task


def test_a_function_of_one_s_own_decides_nothing_and_a_task_that_is_given_does():
    def score(model, V, y):
        raise AssertionError("not to be called")

    assert task_of([0, 1, 1, 0], scoring=score) == "classification"
    assert task_of([0.5, 1.25], scoring=score) == "regression"
    assert task_of([0, 1, 1], "classification", scoring="r2") == "classification"
    assert task_of([0, 1, 1], "regression", scoring="accuracy") == "regression"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ((["a", "b"], "ranking"), "task must be 'auto', 'classification' or 'regression', got 'ranking'"),
        ((["1", "b"], "regression"), r"regression needs finite numbers in y, found y\[1\] = 'b'"),
        (([1.0, np.nan], "regression"), r"needs finite numbers in y, found y\[1\] = nan"),
        (([1.0, 2.0, "x"], "auto", "r2"), r"scoring='r2' needs finite numbers in y, found y\[2\] = 'x'"),
        (([0, 1], "auto", "beauty"), "beauty"),
        ((np.array(["2020-01-01"], "M8[ns]"), "regression"), r"needs finite numbers in y, found y\[0\] = '2020-01-01T"),
    ],
)
def test_what_cannot_be(given, sentence):
    with pytest.raises(ValueError, match=sentence):
        task_of(*given)


@pytest.mark.parametrize(
    ("y", "found"),
    [
        (np.array(["2020-01-01"], "M8[D]"), r"y\[0\] is .*2020"),
        (np.array([5], "m8[D]"), r"y\[0\] is "),
        ([1j], r"y\[0\] is 1j"),
        ([10**400], r"y\[0\] is 1000"),
        ([1, 2.5, "0.61 mol/L", "x"], r"y\[2\] is '0.61 mol/L'"),
        (pd.Series(["1", "many"], index=[7, 8]), r"y\[1\] is 'many'"),
        ([[1, 2], [3, "b"]], r"y\[1\] is \[3, 'b'\]"),
        ([[1, 2], [3]], "y holds a value"),
        ([np.zeros((2, 2)), np.zeros((2, 3))], "y holds a value"),
    ],
)
def test_targets_of_regression_are_real_numbers(y, found):
    with pytest.raises(BadValue, match=f"^{found}.*, which is no number; .*Model predicts numbers, so take a class"):
        checked_targets(y, len(y), "Model")


@pytest.mark.parametrize("missing", [pd.NA, pd.NaT, np.float32("nan"), None])
def test_missing_labels_are_no_class(missing):
    with pytest.raises(ValueError, match=r"y\[1\] is .*, expected a class label; drop that object"):
        checked_labels([0, missing, 1], 3)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([3, 1, 2], np.array([3, 1, 2])),
        ([np.int8(3), 1], np.array([3, 1])),
        ([True, np.False_], np.array([True, False])),
        ([2.0, 1.0], np.array([2.0, 1.0])),
        (["b", "a"], np.array(["b", "a"], dtype=object)),
        ([2**63 + 1, -1], np.array([2**63 + 1, -1], dtype=object)),  # as floats, they would not be themselves
    ],
)
def test_numbers_in_a_column_of_objects_are_numbers(labels, expected):
    np.testing.assert_array_equal(checked_labels(pd.Series(labels, dtype=object), len(labels)), expected, strict=True)


D2KE_SEARCH = sm.recipes.d2ke(sm.distances.Levenshtein(), 4, gamma="tune", cv=2, random_state=0)


@pytest.mark.parametrize(
    "model", [sm.KernelSVC(sm.kernels.Spectrum(k=2)), sm.VoteClassifier([LinearSVC()]), D2KE_SEARCH]
)
def test_numbers_in_a_column_of_objects_are_learnt_and_scored(model):
    X = [[1.0], [2.0]] * 4 if isinstance(model, sm.VoteClassifier) else ["ACAC", "GTGT"] * 4
    y = pd.Series([0, 1] * 4, dtype=object)
    assert model.fit(X, y).score(X, y) == 1.0
    assert model.classes_.dtype == np.int64
