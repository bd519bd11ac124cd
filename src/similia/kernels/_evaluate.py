"""Any kernel, evaluated and checked: what the rooms on the right see of a user's callable.

A kernel k(X, Y=None) may return float32, float64, integers, lists or a sparse matrix. Here it becomes a dense
float array of the right shape, or one sentence that says what is wrong with it. Cost: that of the kernel.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from similia._config import settings
from similia._validation import check_table, unmasked
from similia.core.errors import pairs_named
from similia.objects import n_objects, take
from similia.objects._distributed import Distributed
from similia.objects._tables import objects_in

_DIAGONAL_BLOCK = 32  # objects per call for a kernel without diag(): 32 values computed for each one kept
_FEW_OF_A_PART = 20  # objects, most of which say nothing about the whole
_TOLD = 100  # letters of another's error
_LIFTS = {"kernel": "similia.pairwise(f)", "distance": "similia.distances.FromFunction(f)"}


def as_objects(kernel: Any, X: Any) -> Any:
    """Return `X` in the layout `kernel` (or a distance) works on: its ``as_objects`` hook, or `X` itself.

    A table of one column that holds no numbers is the objects in it.
    """
    refuse_class(kernel, "the kernel or distance")
    if hasattr(X, "__array__") and not hasattr(X, "__len__"):
        X = np.asarray(X)
    if not hasattr(kernel, "as_objects"):
        return objects_in(X)
    return X.converted(kernel.as_objects) if isinstance(X, Distributed) else kernel.as_objects(X)


def read_objects(estimator: Any, function: Any, X: Any, *, reset: bool) -> Any:
    """Return `X` in the layout of a kernel or distance; of vectors, `estimator` learns or checks the columns."""
    if not reset and hasattr(estimator, "n_features_in_"):
        check_table(estimator, X, reset=False)
    objects = as_objects(function, X)
    check_table(estimator, objects, X, reset=reset)
    return objects


def takes_sparse(function: Any) -> bool:
    """Return whether a kernel or distance takes sparse rows: ours say so, and of others it is supposed."""
    return bool(getattr(function, "_takes_sparse", not type(function).__module__.startswith("similia.")))


def decided(kernel: Any, X: Any) -> Any:
    """Return `kernel` with what it leaves to the data decided by `X`: its ``decided`` hook, or `kernel` itself."""
    return kernel.decided(X) if hasattr(kernel, "decided") else kernel


def compared(kernel: Any, X: Any) -> dict[str, str]:
    """Return in words what of these objects a kernel compares, where that depends on what they have."""
    return kernel._compared(as_objects(kernel, X)) if hasattr(kernel, "_compared") else {}


def refuse_class(function: Any, what: str) -> None:
    """Raise for a class where an object of it is wanted."""
    if isinstance(function, type):
        name = function.__name__
        raise TypeError(f"{what} is the class {name}, expected an object that can be called; write {name}(...)")


def check_kernel(kernel: Any, what: str = "kernel") -> None:
    """Raise unless `kernel` can be called and is no distance."""
    from similia.distances.base import Distance

    refuse_class(kernel, what)
    if isinstance(kernel, Distance):
        raise TypeError(
            f"{kernel!r} is a distance, expected a kernel; similia.kernels.DistanceRBF(distance) makes one of it "
            "(NegativeDistance that of the energy distance), similia.D2KE and recipes.d2ke take the distance itself"
        )
    if not callable(kernel):
        raise TypeError(f"{what} is {kernel!r}, expected a kernel: an object called as k(X, Y)")


def warn_of_strangers(rows: Sequence[int], n: int, what: str) -> None:
    """Warn that the objects at `rows` share nothing with the training objects.

    More than half of `n` objects have to; of a stream, whose warnings are told once, one is enough.
    """
    most = 2 * len(rows) > n and not (settings().lazy and n < _FEW_OF_A_PART)
    if most or (len(rows) and settings().part):
        warnings.warn(
            f"{len(rows)} of {n} objects {what}, e.g. X[{rows[0]}]; are they of the same kind (case, alphabet, labels) "
            "as the training objects?",
            UserWarning,
            stacklevel=4,
        )


def evaluate(kernel: Any, X: Any, Y: Any = None) -> npt.NDArray:
    """Return k(X, Y), or k(X) without a `Y`, as a float32 or float64 array, or raise if it is not of shape (n, m)."""
    check_kernel(kernel)
    values = as_floats(called(kernel, X, Y, "kernel"), f"the kernel {name_of(kernel)} returned")
    expected = (n_objects(X), n_objects(X if Y is None else Y))
    if values.shape != expected:
        raise ValueError(
            f"the kernel {name_of(kernel)} returned shape {values.shape} for {expected[0]} x {expected[1]} objects, "
            f"expected {expected}; lift a function of two objects with similia.pairwise(f)"
        )
    return values


def called(function: Any, X: Any, Y: Any, what: str) -> Any:
    """Return ``function(X)`` or ``function(X, Y)``, or raise and say so where it is one of two objects.

    A function of two objects cannot be told from one of two collections before it is called: only one that fails is
    tried on a pair.
    """
    try:
        return function(X) if Y is None else function(X, Y)
    except MemoryError:
        raise
    except Exception as error:
        if isinstance(function, BaseEstimator) or not _is_of_pairs(function, X, X if Y is None else Y):
            raise
        text = " ".join(str(error).split())
        raise TypeError(
            f"the {what} {name_of(function)} is a function of two objects, and fails on collections "
            f"({type(error).__name__}: {text[:_TOLD]}); lift it with {_LIFTS[what]}, or define it as "
            "f(X, Y=None) -> (n, m)"
        ) from error


def _is_of_pairs(function: Any, X: Any, Y: Any) -> bool:
    """Return whether `function` gives one number for the first objects of two collections."""
    try:
        x, y = ((objects.iloc if hasattr(objects, "iloc") else objects)[0] for objects in (X, Y))
        value = function(x, y)
    except Exception:  # whatever it is: the failure on collections is told then
        return False
    return isinstance(value, Real) or getattr(value, "shape", None) == ()


def diagonal(kernel: Any, X: Any, evaluate: Callable[..., npt.NDArray] = evaluate) -> npt.NDArray[np.float64]:
    """Return k(x, x) for each object, shape (n,): the kernel's ``diag``, or blocks on its diagonal."""
    refuse_class(kernel, "kernel")
    n = n_objects(X)
    if not hasattr(kernel, "diag"):
        parts = []
        for start in range(0, n, _DIAGONAL_BLOCK):
            rows = np.arange(start, min(start + _DIAGONAL_BLOCK, n))
            block = take(X, rows)
            with pairs_named(rows, rows, "X[{}] and X[{}]"):
                parts.append(evaluate(kernel, block, block).diagonal())
        return np.concatenate(parts).astype(np.float64)
    with pairs_named(range(n), range(n), "X[{}] and X[{}]"):
        values = as_floats(kernel.diag(X), f"{name_of(kernel)}.diag returned")
    if values.shape != (n,):
        raise ValueError(
            f"{name_of(kernel)}.diag returned shape {values.shape}, expected ({n},), a value for each object"
        )
    return values.astype(np.float64)


def as_floats(values: Any, subject: str) -> npt.NDArray:
    """Return a dense float32 or float64 array, or raise if the values are not real numbers."""
    unmasked(values, subject.removesuffix(" holds").removesuffix(" has"))
    try:
        values = values.toarray() if sp.issparse(values) else np.asarray(values)
    except ValueError:  # rows of different lengths
        raise ValueError(f"{subject} a {type(values).__name__} that is no array, expected rows of one length") from None
    if values.dtype.kind not in "biuf":
        raise TypeError(f"{subject} values of dtype {values.dtype}, expected real numbers (float64)")
    return values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)


def without_addresses(value: Any) -> str:
    """Return ``repr(value)`` with the names of functions in the place of where they are in memory.

    Classes have no ``__repr__`` of their own for it: scikit-learn's printer of nested estimators trips over those.
    """
    text = re.sub(r"<(?:[\w.]*?(\w+) object at 0x[0-9a-f]+|built-in function (\w+))>", r"\1\2", repr(value))
    text = re.sub(r"<(?:cy)?function ([\w.<>]+?) at 0x[0-9a-f]+>", lambda found: found[1].split(".<locals>.")[-1], text)
    return re.sub(r"<bound method ([\w.]+) of [^<>]*>", r"\1", text)


def name_of(function: Any) -> str:
    """Return what a message calls a kernel or distance: a function by its name, also one bound or lifted."""
    if not hasattr(function, "__name__"):
        inner = function.func if isinstance(function, partial) else getattr(function, "function", None)
        if callable(inner):
            return name_of(inner)
    return getattr(function, "__name__", type(function).__name__)
