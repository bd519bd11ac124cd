"""What `similia.checks.check_structured_estimator` tries: an estimator, objects, and what is expected of both."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import joblib
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import clone, is_classifier, is_regressor

from similia.checks.laws import _check_equal
from similia.objects import n_objects
from similia.objects.batches import Batch

Arrays = dict[str, npt.NDArray[Any]]

METHODS = ("transform", "predict", "predict_proba", "decision_function")
CONTAINERS = ("list", "tuple", "array", "pandas", "polars", "arrow")
N_FOLDS = 3


@dataclass(frozen=True)
class Case:
    """An estimator and what it is tried on."""

    estimator: Any
    X: Any
    y: Any
    methods: tuple[str, ...]
    containers: tuple[str, ...]
    tolerance: float

    @cached_property
    def n(self) -> int:
        return n_objects(self.X)

    @cached_property
    def targets(self) -> Any:
        """Labels for the learner behind a transformer, where none are given."""
        return np.arange(self.n) % 2 if self.y is None else self.y

    @cached_property
    def objects(self) -> list[Any] | None:
        """The objects one by one, or None where the collection is a table."""
        return list(self.X) if isinstance(self.X, list | tuple | Batch) else None

    @property
    def supervised(self) -> bool:
        return "predict" in self.methods

    def fresh(self) -> Any:
        """Return a clone whose random states that are None are 0."""
        copy = clone(self.estimator)
        unset = [key for key, value in copy.get_params().items() if key.endswith("random_state") and value is None]
        return copy.set_params(**dict.fromkeys(unset, 0))

    def fit(self, estimator: Any, X: Any = None) -> Any:
        return estimator.fit(self.X if X is None else X, self.y)

    @cached_property
    def fitted(self) -> Any:
        return self.fit(self.fresh())

    @cached_property
    def expected(self) -> Arrays:
        return self.outputs(self.fitted, self.X)

    def outputs(self, fitted: Any, X: Any) -> Arrays:
        """Return what each method returns for `X`, as arrays of one row for each object."""
        found: Arrays = {}
        for method in self.methods:
            values = getattr(fitted, method)(X)
            for i, part in enumerate(values if isinstance(values, tuple) else (values,)):
                name = f"{method}(X)" + (f"[{i}]" if isinstance(values, tuple) else "")
                found[name] = as_array(part, name)
        return found

    def check_equal(self, law: str, found: Arrays, what: str, rows: Any = slice(None)) -> None:
        """Raise if outputs differ from those of the fitted estimator for `rows`."""
        for name, values in self.expected.items():
            wanted, got = values[rows], found[name]
            if got.shape != wanted.shape:
                raise AssertionError(f"{law}: {name} {what} has shape {got.shape}, expected {wanted.shape}")
            if wanted.dtype.kind in "biuf" and got.dtype.kind in "biuf":
                _check_equal(law, wanted, name, got, f"{name} {what}", self.tolerance)
            elif not np.array_equal(wanted, got):
                i = int(np.argmax(wanted != got))
                raise AssertionError(f"{law}: at {i}, {name} is {wanted[i]!r} but {name} {what} is {got[i]!r}")


def as_array(values: Any, name: str) -> npt.NDArray[Any]:
    """Return an output as an array; objects become fingerprints, so that they can be compared."""
    if isinstance(values, Batch):
        return np.array([int(joblib.hash(value)[:12], 16) for value in values])
    if sp.issparse(values):
        values = values.toarray()
    if not isinstance(values, np.ndarray) or values.ndim not in (1, 2):
        raise AssertionError(f"array: {name} is {type(values).__name__}, expected an array with a row for each object")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise AssertionError(
            f"finite: {name} holds NaN or infinity in row {int(np.argwhere(~np.isfinite(values))[0][0])}"
        )
    return values


@contextmanager
def within(law: str) -> Iterator[None]:
    """Name the law in whatever is raised."""
    try:
        yield
    except AssertionError:
        raise
    except Exception as error:
        text = " ".join(str(error).split())
        raise AssertionError(f"{law}: {type(error).__name__} was raised: {text[:300]}") from error


def case_of(
    estimator: Any, X: Any, y: Any, methods: Sequence[str] | None, kinds: Sequence[str] | None, tolerance: float
) -> Case:
    """Return a case, or raise ValueError if it cannot be tried."""
    kinds = CONTAINERS if kinds is None else tuple(kinds)
    if unknown := set(kinds) - set(CONTAINERS):
        raise ValueError(f"containers names {sorted(unknown)}, expected some of {', '.join(CONTAINERS)}")
    if methods is None:
        methods = [name for name in METHODS if hasattr(estimator, name)]
    if not methods:
        raise ValueError(f"{type(estimator).__name__} has none of {', '.join(METHODS)}; name others in methods=")
    if (is_classifier(estimator) or is_regressor(estimator)) and y is None:
        raise ValueError(f"{type(estimator).__name__} learns from targets; give y")
    n = n_objects(X)
    if n < 2 * N_FOLDS:
        raise ValueError(f"a check makes {N_FOLDS} folds: X has {n} objects, expected at least {2 * N_FOLDS}")
    return Case(estimator, X, None if y is None else np.asarray(y), tuple(methods), kinds, tolerance)


def containers(objects: Sequence[Any], kinds: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Yield the objects in each kind of collection that can hold them and whose library is installed."""
    for kind in ("list", "tuple"):
        if kind in kinds:
            yield f"a {kind}", {"list": list, "tuple": tuple}[kind](objects)
    array = object_array(objects)
    if "array" in kinds:
        yield "an object array", array
    plain = all(isinstance(x, str) for x in objects) or all(_is_numbers(x) for x in objects)
    if "pandas" in kinds and (pandas := installed("pandas")):
        texts = all(isinstance(x, str) for x in objects)  # which have a dtype of their own
        yield "a pandas Series", pandas.Series([*objects] if texts else array, index=np.arange(len(array))[::-1] + 7)
    if plain and "polars" in kinds and (polars := installed("polars")):
        yield "a polars Series", polars.Series("objects", [x if isinstance(x, str) else list(x) for x in objects])
    if plain and "arrow" in kinds and (pyarrow := installed("pyarrow")):
        yield "an Arrow array", pyarrow.array([x if isinstance(x, str) else list(x) for x in objects])


def object_array(objects: Sequence[Any]) -> npt.NDArray[Any]:
    array = np.empty(len(objects), dtype=object)
    for i, value in enumerate(objects):
        array[i] = value
    return array


def _is_numbers(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind == "f"


def installed(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
