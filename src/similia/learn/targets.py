"""Check targets, and decide whether they are classes or numbers to predict."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets

from similia.core.text import short
from similia.core.validation import BadValue, check_choice, check_labels, of_numbers, refuse_fractions, unmasked
from similia.objects.tables import is_missing

Task = Literal["classification", "regression"]
TASKS = ("auto", "classification", "regression")

_FEW, _PER_VALUE = 20, 5  # whole numbers are classes with at most 20 values, or 5 objects per value on average


def task_of(y: Any, task: str = "auto", scoring: Any = None) -> Task:
    """Return "classification" if the targets are classes, "regression" if they are numbers to predict.

    If `task` is not "auto", it is returned. If `scoring` is meant for one task only, that task is returned: "r2" means
    regression, "accuracy" classification. Otherwise the values decide. Numbers that are not whole mean regression.
    Whole numbers of any dtype are classes, unless there are more than 20 different values and on average fewer than 5
    objects per value. Text that holds numbers counts as numbers. All other targets are classes.

    Raises ValueError if `task` or `scoring` asks for regression and a target is not a finite number.

    Examples
    --------
    >>> task_of(["5.32", "6.1", "7.04"]), task_of([0.0, 1.0, 1.0]), task_of([0, 1, 1], scoring="r2")
    ('regression', 'classification', 'regression')
    """
    check_choice(task, "task", TASKS)
    decided = task if task != "auto" else suits(scoring)
    if decided == "classification":
        return "classification"
    numbers = as_numbers(y)
    if decided == "regression":
        if numbers is None:
            asked = "regression" if task == "regression" else f"scoring={scoring!r}"
            raise ValueError(f"{asked} needs finite numbers in y, found {_first_other(y)}")
        return "regression"
    return "classification" if numbers is None or _are_classes(numbers) else "regression"


def as_numbers(y: Any) -> npt.NDArray[np.float64] | None:
    """Return targets as float64 of shape (n,), also if they are text; None if a target is not a finite number."""
    array = np.asarray(unmasked(y, "y"))
    if array.dtype.kind not in "biufOUST":
        return None
    if array.dtype.kind in "biuf":
        numbers = array.astype(np.float64)
    else:
        try:
            numbers = np.array([_number(value) for value in array.tolist()], dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            return None
    return numbers if np.isfinite(numbers).all() else None


def checked_labels(y: Any, n: int, *, two: bool = False) -> npt.NDArray:
    """Return the labels of n objects as an array; raise if one is invalid or, with `two`, if all are of one class."""
    given, y = y, check_labels(y, n)
    if y.dtype.kind not in "biufUSO":
        no = " (Complex data not supported)" if y.dtype.kind == "c" else ""  # scikit-learn's words
        raise ValueError(f"y has dtype {y.dtype}, expected class labels: strings, integers or booleans{no}")
    if not isinstance(given, list | tuple):  # numpy turns [0, "a"] into ["0", "a"]
        given = y.tolist() if y.dtype.kind in "fO" else ()
    for i, label in enumerate(given):
        if is_missing(label) or (isinstance(label, float | np.floating) and not np.isfinite(label)):
            raise BadValue(i, f"is {label}", "a class label", "drop that object", collection="y")
        if isinstance(label, str) != isinstance(given[0], str):
            found = f"is {label!r}, but y[0] is {given[0]!r}"
            raise BadValue(i, found, remedy="give labels of one type", collection="y")
    y = of_numbers(y)
    refuse_fractions(y)
    if two:
        check_two_classes(np.unique(y), "y")
    return y


def checked_weights(sample_weight: Any, n: int) -> npt.NDArray[np.float64]:
    """Return the weights of n objects, ones for None; raise if one is negative or not finite, or all are 0."""
    if sample_weight is None:
        return np.ones(n)
    try:
        weights = np.asarray(unmasked(sample_weight, "sample_weight"), dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"sample_weight must hold numbers, found {short(sample_weight)}") from None
    if weights.shape != (n,):
        raise ValueError(f"sample_weight has shape {weights.shape} for {n} objects, expected ({n},)")
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        i = int(np.argmax(wrong))
        raise BadValue(i, f"is {weights[i]}", "a number of at least 0", collection="sample_weight")
    if not weights.any():
        raise ValueError("sample_weight is zero for all objects, expected a weight above 0 for some")
    return weights


def check_class_weight(class_weight: Any, classes: npt.NDArray) -> None:
    """Raise if `class_weight` is not None, "balanced" or a dictionary from some of `classes` to positive numbers."""
    if class_weight is None or (isinstance(class_weight, str) and class_weight == "balanced"):
        return
    if not isinstance(class_weight, dict):
        raise ValueError(f"class_weight must be a dictionary of labels, 'balanced' or None, got {short(class_weight)}")
    known = classes.tolist()
    for label, weight in class_weight.items():
        if label not in known:
            raise ValueError(f"class_weight holds {label!r}, expected labels of y, such as {known[0]!r}")
        number = isinstance(weight, Real) and not isinstance(weight, bool)
        if not number or not np.isfinite(weight) or weight <= 0:
            raise ValueError(f"class_weight[{label!r}] is {weight!r}, expected a positive number")


def weights_of_classes(class_weight: Any, y: npt.NDArray, classes: npt.NDArray) -> npt.NDArray[np.float64]:
    """Return the factor that `class_weight` gives to each of the labels `y`: 1 for classes that it does not mention."""
    check_class_weight(class_weight, classes)
    if isinstance(class_weight, str):
        return compute_sample_weight("balanced", y)
    factors = np.ones(len(y))
    for label, weight in (class_weight or {}).items():
        factors[y == label] = weight
    return factors


def classes_of(y: Any, n: int) -> tuple[npt.NDArray, npt.NDArray[np.int64]]:
    """Return the sorted classes and the position of each label in them; raise if `y` is invalid or of one class."""
    labels = checked_labels(y, n, two=True)
    check_classification_targets(labels)
    classes, targets = np.unique(labels, return_inverse=True)
    return classes, targets


def positions_among(y: npt.NDArray, classes: npt.NDArray) -> npt.NDArray[np.int64]:
    """Return the position of each label in the sorted `classes`; raise for a label that is not among them."""
    unseen = ~np.isin(y, classes) | _differ_in_type(y, classes)  # of numbers and text, numpy compares the digits
    if unseen.any():
        i = int(np.argmax(unseen))
        found = f"is {y.tolist()[i]!r}, not one of the classes {classes.tolist()} of the first call"
        raise BadValue(i, found, remedy="start a new HDClassifier with all of them", collection="y")
    return np.searchsorted(classes, y)


def with_classes_of(fitted: Any, y: npt.NDArray) -> npt.NDArray:
    """Return the sorted labels that a fitted classifier knows or that are in `y`; raise if their types differ."""
    known = np.asarray(fitted.classes_)
    if _differ_in_type(known, y):
        found = f"{short(y.tolist()[0])}, but the frozen estimator knows {short(known.tolist()[0])}"
        raise BadValue(0, f"is {found}", remedy="give labels of one type", collection="y")
    return np.union1d(known, y)


def _differ_in_type(a: npt.NDArray, b: npt.NDArray) -> bool:
    """Return whether one of two arrays of labels, each of one type, holds text and the other does not."""
    return isinstance(a[:1].tolist()[0], str | bytes) != isinstance(b[:1].tolist()[0], str | bytes)


def check_two_classes(classes: npt.NDArray, name: str) -> None:
    """Raise if there are fewer than two `classes`; the message calls the labels `name`."""
    if len(classes) < 2:
        raise ValueError(f"{name} holds one class, {classes.tolist()}, expected two or more")


def checked_targets(y: Any, n: int, who: str) -> npt.NDArray[np.float64]:
    """Return `y` as finite float64, (n,) or (n, n_outputs); raise, naming the regressor `who`, if that fails."""
    if y is None:
        raise ValueError(f"{who} requires y to be passed, but the target y is None")
    unmasked(y, "y")
    try:
        if np.asarray(y).dtype.kind in "mMc":
            raise TypeError("times and complex numbers are not real numbers")
        targets = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        try:
            rows = np.atleast_1d(np.asarray(y, dtype=object)).tolist()
        except ValueError:  # arrays of different shapes
            rows = []
        i = next((i for i, row in enumerate(rows) if not _are_numbers(row)), None)
        found = "holds a value" if i is None else f"is {short(rows[i])}"
        remedy = f"correct it or drop that object; {who} predicts numbers, so take a classifier for labels"
        raise BadValue(i, f"{found}, which is no number", remedy=remedy, collection="y") from None
    if targets.ndim not in (1, 2) or len(targets) != n:
        raise ValueError(f"y has shape {targets.shape} for {n} objects, expected ({n},) or ({n}, n_outputs)")
    if not np.isfinite(targets).all():
        i = int(np.argwhere(~np.isfinite(targets))[0, 0])
        raise BadValue(i, f"is {targets[i]}", "finite numbers", "drop that object", collection="y")
    return targets


def _are_numbers(values: Any) -> bool:
    """Return whether a target, or each of the targets of one object, is a real number."""
    try:
        np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def checked_numbers(y: Any, n: int, who: str) -> npt.NDArray[np.float64]:
    """Return `y` as finite float64, (n,); raise, naming the regressor `who`, if it is not one number per object."""
    return checked_targets(None if y is None else check_labels(y, n, what="number"), n, who)


def failure_of(scorer: Any, y: Any, model: Any) -> str:
    """Return the text of the error or UserWarning that a scorer gives for `model`, fitted to constants; "" if none."""
    from sklearn.exceptions import UndefinedMetricWarning

    X, y = np.zeros((len(y), 1)), np.asarray(y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # scorers of clusterings only warn of a wrong type of target
        warnings.simplefilter("ignore", UndefinedMetricWarning)  # some class is never predicted
        try:
            scorer(model.fit(X, y), X, y)
        except Exception as error:  # scorers do not document what they raise for wrong targets
            return " ".join(str(error).split())[:120] or type(error).__name__
    return ""


def needs_probabilities(scoring: Any) -> bool:
    """Return whether a scorer needs a classifier with `predict_proba`."""
    from sklearn.dummy import DummyClassifier
    from sklearn.linear_model import RidgeClassifier
    from sklearn.metrics import get_scorer

    scorer, y = get_scorer(scoring), [0, 1, 0, 1]
    return bool(failure_of(scorer, y, RidgeClassifier())) and not failure_of(scorer, y, DummyClassifier())


def suits(scoring: Any) -> Task | None:
    """Return "regression" if a scorer accepts fractions, "classification" if it accepts only classes, else None."""
    from sklearn.dummy import DummyClassifier, DummyRegressor
    from sklearn.metrics import get_scorer

    if scoring is None or not (isinstance(scoring, str) or hasattr(scoring, "_score_func")):
        return None
    scorer = get_scorer(scoring)  # raises if the name is unknown
    if not failure_of(scorer, [0.5, 1.5, 2.5, 3.5], DummyRegressor()):
        return "regression"
    return None if failure_of(scorer, [0, 1, 0, 1], DummyClassifier()) else "classification"


def _are_classes(numbers: npt.NDArray[np.float64]) -> bool:
    """Return whether the numbers are whole and have few enough values to be class labels."""
    if (numbers != np.round(numbers)).any():
        return False
    values = len(np.unique(numbers))
    return values <= _FEW or len(numbers) >= _PER_VALUE * values


def _number(value: Any) -> float:
    value = value.decode() if isinstance(value, bytes) else value
    if isinstance(value, str) and "_" in value:
        raise ValueError("Python reads 1_000 as a number; in a table it is a name")
    return float(value)


def _first_other(y: Any) -> str:
    """Return a description of the first target that is not a finite number, for an error message."""
    array = np.asarray(y)
    for i, value in enumerate(array.tolist()):
        if as_numbers(array[i : i + 1]) is None:
            return f"y[{i}] = {short(str(array[i]) if array.dtype.kind in 'mM' else value)}"
    raise AssertionError("all of them are numbers")
