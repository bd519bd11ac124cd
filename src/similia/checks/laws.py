"""Check the laws of a kernel, a distance, an embedding, an encoder or any other estimator of objects, ours or your own.

Each check returns None if every law holds on the given objects. Otherwise it raises `AssertionError` with one
sentence: the law that fails, the place, and the two values that disagree. It raises `ValueError` for fewer than two
objects. Only the given objects are tried, so pass short and long ones, repeats, and an empty one if it can occur.

Cost: a few matrices of n x n values or a few calls of ``fit``; tens to hundreds of objects are enough.

The laws of `check_structured_estimator` are functions of a `Case`; they call each method for each object.
"""
# ruff: noqa: NPY002, a law is about the global random state

from __future__ import annotations

import importlib
import inspect
import os
import pickle
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import joblib
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import clone, is_classifier, is_clusterer, is_outlier_detector, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import get_tags

from similia.core.text import short
from similia.objects import n_objects, take
from similia.objects.sequences import Batch

Arrays = dict[str, npt.NDArray[Any]]
METHODS = ("transform", "predict", "predict_proba", "decision_function")
CONTAINERS = ("list", "tuple", "array", "pandas", "polars", "arrow")
N_FOLDS = 3


def check_kernel(kernel: Any, X: Any, *, tolerance: float = 1e-6) -> None:
    """Check that `kernel` is a positive semi-definite kernel on `X`; raise AssertionError if a law fails.

    The laws:

    - ``kernel(X)`` is a symmetric (n, n) matrix of finite real numbers without negative eigenvalues;
    - a second call returns the same matrix;
    - for disjoint parts A and B of `X`, ``kernel(A, B)`` equals the corresponding block of ``kernel(X)``;
    - if the kernel has a method ``diag``, ``kernel.diag(X)`` is the diagonal of the matrix.

    Parameters
    ----------
    kernel : callable
        ``kernel(X, Y=None) -> (n, m)``.
    X : sequence of n objects
        At least two.
    tolerance : float, default=1e-6
        Largest difference allowed between numbers that should be equal, as a fraction of the largest absolute value in
        the arrays compared. A negative eigenvalue is allowed if its absolute value is at most this fraction of the
        largest absolute eigenvalue.

    Examples
    --------
    >>> import similia as sm
    >>> sm.checks.check_kernel(sm.kernels.Spectrum(k=2), ["GATTACA", "ATTA", ""])
    >>> minus_distance = sm.pairwise(lambda x, y: -abs(len(x) - len(y)))
    >>> sm.checks.check_kernel(minus_distance, ["GATTACA", "ATTA"])
    Traceback (most recent call last):
    AssertionError: positive semi-definite: the smallest eigenvalue of kernel(X) is -3, the largest 3
    """
    K = _check_matrix(kernel, "kernel", X, tolerance)
    eigenvalues = np.linalg.eigvalsh((K + K.T) / 2)
    least, most = eigenvalues[0], eigenvalues[-1]
    _require(
        least >= -tolerance * np.abs(eigenvalues).max(),
        f"positive semi-definite: the smallest eigenvalue of kernel(X) is {least:.4g}, the largest {most:.4g}",
    )
    if hasattr(kernel, "diag"):
        diagonal = _real_array(kernel.diag(X), (len(K),), "kernel.diag(X)")
        _check_equal("diagonal", K.diagonal(), "kernel(X).diagonal()", diagonal, "kernel.diag(X)", tolerance)


def check_distance(distance: Any, X: Any, *, tolerance: float = 1e-6) -> None:
    """Check that `distance` is a distance on `X`; raise AssertionError if a law fails.

    The laws:

    - ``distance(X)`` is a symmetric (n, n) matrix of finite real numbers >= 0, and its diagonal is 0;
    - a second call returns the same matrix;
    - for disjoint parts A and B of `X`, ``distance(A, B)`` equals the corresponding block of ``distance(X)``.

    The triangle inequality is not checked: useful distances, such as dynamic time warping, violate it.

    Parameters
    ----------
    distance : callable
        ``distance(X, Y=None) -> (n, m)``.
    X : sequence of n objects
        At least two.
    tolerance : float, default=1e-6
        Largest difference allowed between numbers that should be equal, as a fraction of the largest absolute value in
        the arrays compared.

    Examples
    --------
    >>> import similia as sm
    >>> sm.checks.check_distance(sm.distances.FromFunction(lambda x, y: abs(len(x) - len(y))), ["GATTACA", "ATTA"])
    """
    D = _check_matrix(distance, "distance", X, tolerance)
    i, j = np.unravel_index(D.argmin(), D.shape)
    _require(D[i, j] >= 0, f"non-negative: distance(X)[{i}, {j}] is {D[i, j]:.6g}")
    i = D.diagonal().argmax()
    _require(D[i, i] <= tolerance * D.max(), f"zero to itself: distance(X)[{i}, {i}] is {D[i, i]:.6g}")


def check_embedding(estimator: Any, X: Any, y: Any = None, *, tolerance: float = 1e-4) -> None:
    """Check that `estimator` is an embedding, a transformer of objects to vectors; raise AssertionError if a law fails.

    The laws:

    - ``fit`` returns the estimator and does not change its parameters;
    - ``transform(X)`` is a matrix of n rows of finite float32 or float64 numbers;
    - a second call of ``transform`` returns the same matrix;
    - an object gets the same vector whether ``transform`` gets all of `X`, a part of it, the objects in another order,
      or only this object;
    - a second fit with the same ``random_state`` gives the same vectors.

    Parameters
    ----------
    estimator : scikit-learn transformer
        The check fits only clones of the estimator. In the clones, each ``random_state`` that is None is replaced by 0,
        even inside nested estimators.
    X : sequence of n objects
        At least two.
    y : array-like of shape (n,), optional
        Labels, if ``fit`` needs them.
    tolerance : float, default=1e-4
        Largest difference allowed between numbers that should be equal, as a fraction of the largest absolute value in
        the arrays compared.

    Examples
    --------
    >>> import similia as sm
    >>> embedding = sm.Nystroem(sm.kernels.Spectrum(k=2), n_components=2)
    >>> sm.checks.check_embedding(embedding, ["GATTACA", "ATTA", "ACA"])
    """
    vectors = _check_transformer(estimator, X, y, tolerance)
    known = vectors.dtype in (np.float32, np.float64)
    _require(known, f"dtype: transform(X) has dtype {vectors.dtype}, expected float32 or float64")


def check_codes(encoder: Any, X: Any, y: Any = None) -> None:
    """Check that `encoder` is a transformer of objects to packed bits; raise AssertionError if a law fails.

    The laws:

    - ``transform(X)`` is a C-contiguous uint8 array of n rows;
    - if the encoder has an attribute ``n_bits``, a row has ``n_bits // 8`` bytes;
    - all laws of `check_embedding` hold, apart from the law about dtypes; codes that should be equal are equal bit for
      bit.

    Parameters
    ----------
    encoder : scikit-learn transformer
        The check fits only clones of the estimator. In the clones, each ``random_state`` that is None is replaced by 0,
        even inside nested estimators.
    X : sequence of n objects
        At least two.
    y : array-like of shape (n,), optional
        Labels, if ``fit`` needs them.

    Examples
    --------
    >>> import numpy as np
    >>> import similia as sm
    >>> sm.checks.check_codes(sm.SignRandomProjection(n_bits=64), np.eye(3))
    """
    codes = _check_transformer(encoder, X, y, tolerance=0.0)
    in_order = codes.flags.c_contiguous
    _require(
        codes.dtype == np.uint8 and in_order,
        f"packed bits: transform(X) has dtype {codes.dtype}, C-contiguous: {in_order}; "
        "expected C-contiguous uint8, as numpy.packbits makes",
    )
    found, n_bits = 8 * codes.shape[1], getattr(encoder, "n_bits", 8 * codes.shape[1])
    _require(found == n_bits, f"n_bits: transform(X) has {found} bits, encoder.n_bits is {n_bits}")


def _check_matrix(function: Any, name: str, X: Any, tolerance: float) -> npt.NDArray[np.float64]:
    """Return `function(X)` after checking the laws that kernels and distances have in common."""
    n = _n_at_least_two(X)
    values = _real_array(function(X), (n, n), f"{name}(X)")
    again = _real_array(function(X), (n, n), f"{name}(X)")
    _check_equal("repeatable", values, f"{name}(X)", again, "a second call", tolerance)
    _check_equal("symmetric", values, f"{name}(X)", values.T, "its transpose", tolerance)
    for rows, columns in _disjoint_parts(n):
        part = f"{name}(A, B) for A = X[{rows.tolist()}], B = X[{columns.tolist()}]"
        block = _real_array(function(take(X, rows), take(X, columns)), (len(rows), len(columns)), part)
        _check_equal("blocks", block, part, values[np.ix_(rows, columns)], f"{name}(X) there", tolerance)
    return values.astype(np.float64)


def _check_transformer(estimator: Any, X: Any, y: Any, tolerance: float) -> npt.NDArray:
    """Return `transform(X)` after checking the laws that embeddings and encoders have in common."""
    n = _n_at_least_two(X)
    fitted = _fitted_clone(estimator, X, y)
    values = _real_array(fitted.transform(X), (n, None), "transform(X)")
    again = _real_array(fitted.transform(X), values.shape, "transform(X)")
    _check_equal("repeatable", values, "transform(X)", again, "a second call", tolerance)
    for rows in (np.arange(n)[::-1], np.arange(0, n, 2), np.array([n - 1])):
        part = f"transform(A) for A = X[{rows.tolist()}]"
        some = _real_array(fitted.transform(take(X, rows)), (len(rows), values.shape[1]), part)
        _check_equal("blocks", some, part, values[rows], "transform(X) there", tolerance)
    refitted = _real_array(_fitted_clone(estimator, X, y).transform(X), values.shape, "transform(X)")
    _check_equal("seed", values, "transform(X)", refitted, "transform(X) after a second fit", tolerance)
    return values


def _fitted_clone(estimator: Any, X: Any, y: Any) -> Any:
    """Return a fitted clone with a fixed seed; raise if ``fit`` does not return the clone or changes its parameters."""
    copy = _seeded_clone(estimator)
    before = copy.get_params()
    _require(copy.fit(X, y) is copy, "fit: it does not return the estimator itself")
    after = copy.get_params()
    changed = [
        name for name in after if after[name] is not before.get(name) and not _in_place(copy, name, before.get(name))
    ]
    names = ", ".join(map(repr, changed))
    _require(not changed, f"fit: it changes the parameter {names}; learnt values belong in attributes such as mean_")
    return copy


def _seeded_clone(estimator: Any) -> Any:
    copy = clone(estimator)
    unset = [key for key, value in copy.get_params().items() if key.endswith("random_state") and value is None]
    return copy.set_params(**dict.fromkeys(unset, 0))


def _in_place(estimator: Any, name: str, value: Any) -> bool:
    """Return whether `fit` may change a parameter: a pipeline fits its steps in place and makes a new list of them."""
    return isinstance(estimator, Pipeline) and (name.split("__")[-1] == "steps" or hasattr(value, "fit"))


def _require(holds: Any, sentence: str) -> None:
    if not holds:
        raise AssertionError(sentence)


def _n_at_least_two(X: Any) -> int:
    n = n_objects(X)
    if n < 2:
        raise ValueError(f"a check compares objects with each other, so X must hold at least two, got {n}")
    return n


def _disjoint_parts(n: int) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Return two pairs of disjoint arrays of positions below `n`; one array of the second pair is descending.

    Disjoint, because a kernel may set only the similarity of an object to itself by convention.
    """
    return [(np.arange(0, n, 2), np.arange(1, n, 2)), (np.arange(1, n)[::-1], np.arange(1))]


def _real_array(values: Any, shape: tuple[int | None, ...], name: str) -> npt.NDArray:
    """Return `values`; raise if they are not an array of finite real numbers of this `shape` (None: any length)."""
    kind = f"{type(values).__name__} of dtype {getattr(values, 'dtype', None)}"
    real = isinstance(values, np.ndarray) and values.dtype.kind in "buif"
    _require(real, f"array: {name} is {kind}, expected a numpy array of real numbers")
    fits = values.ndim == len(shape) and all(
        want in (None, have) for want, have in zip(shape, values.shape, strict=True)
    )
    _require(fits, f"shape: {name} has shape {values.shape}, expected {shape}")
    for place in np.argwhere(~np.isfinite(values)).tolist()[:1]:
        raise AssertionError(f"finite: {name} is {values[tuple(place)]} at {tuple(place)}")
    return values


def _check_equal(law: str, a: npt.NDArray, a_name: str, b: npt.NDArray, b_name: str, tolerance: float) -> None:
    """Raise if two arrays differ by more than `tolerance` times the largest absolute value."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    difference = np.abs(a - b)
    if difference.max(initial=0.0) > tolerance * max(np.abs(a).max(initial=0.0), np.abs(b).max(initial=0.0)):
        place = tuple(int(i) for i in np.unravel_index(difference.argmax(), difference.shape))
        raise AssertionError(f"{law}: at {place}, {a_name} is {a[place]:.6g} but {b_name} is {b[place]:.6g}")


def check_structured_estimator(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    methods: Sequence[str] | None = None,
    containers: Sequence[str] | None = None,
    tolerance: float = 1e-6,
) -> None:
    """Check that `estimator` follows scikit-learn's contract on objects that are not vectors.

    If a law fails, it raises an AssertionError whose message begins with the name of the law. The laws, with their
    names in italics:

    - *clone, set_params, parameters, mutation, global random state, fit*: `fit` returns the estimator; parameters are
      stored as given and can be set; `fit` does not change parameters, `X`, `y` or global random states;
    - *unfitted, empty, labels*: methods raise ``NotFittedError`` before `fit`; for an empty collection they raise a
      ``ValueError`` whose message says that it is empty (or, if `X` is a table, return an output without rows); if
      `y` has fewer targets than `X` has objects, `fit` of a predictor raises ``ValueError`` (clusterers and outlier
      detectors may ignore targets);
    - *rows, repeatable, permutation, batches, one by one*: each object gets one row of output, and this row depends
      only on the object and the fitted model;
    - *seed, idempotence, fit_transform*: a second fit, of a clone or of the same estimator, gives the same results;
      `fit_transform` gives the same results, too;
    - *persistence*: an estimator that was saved with `similia.save` and loaded with `similia.load` gives the same
      results (if `similia.save` refuses it because of a class of your own or of another library, the check uses
      ``pickle`` instead);
    - *containers*: the same objects in a collection of another type give the same results;
    - *Pipeline, cross_val_score, GridSearchCV*: all three accept the estimator (the last two are tried only if it
      has a method ``transform`` or ``score``); `GridSearchCV` can set the parameters of the innermost object, such as a
      kernel inside the estimator;
    - *get_feature_names_out, set_output, ColumnTransformer*: each column has a name; the output can be a pandas or
      polars frame, unless it is sparse; a `ColumnTransformer` can apply the estimator to one column of a data frame.
      These laws need ``transform``; they are skipped if any method, such as ``predict``, returns a 1-D array.

    Parameters
    ----------
    estimator : scikit-learn estimator
        The check fits only clones of the estimator. In the clones, each ``random_state`` that is None is replaced by 0,
        even inside nested estimators.
    X : list, tuple, batch (such as `similia.objects.GraphBatch`) or table (2-D array or data frame) of n objects
        At least six objects, but not many: the check fits the estimator about twenty times. For a table, the laws
        *containers* and *ColumnTransformer* are skipped.
    y : array-like of shape (n,), optional
        Class labels, at least three of each class, or targets of a regression. Classifiers and regressors need them.
    methods : sequence of str, optional
        Methods to check. Each returns an array with one row per object, or a tuple of such arrays. By default,
        ``transform``, ``predict``, ``predict_proba`` and ``decision_function``, except methods that the estimator
        lacks.
    containers : sequence of {"list", "tuple", "array", "pandas", "polars", "arrow"}, optional
        Collections to try: lists, tuples, object arrays, pandas or polars Series, and Arrow arrays; by default all.
        pandas, polars and Arrow are tried only if they are installed; ``"polars"`` and ``"arrow"`` also need objects
        that are strings or 1-D float arrays.
    tolerance : float, default=1e-6
        Largest difference allowed between numbers that should be equal, as a fraction of the largest absolute value in
        the arrays compared.

    Examples
    --------
    >>> import similia as sm
    >>> words = ["GATTACA", "ATTAC", "CCGCGG", "CGCGC", "TTACAT", "GCGC"]
    >>> sm.checks.check_structured_estimator(sm.Nystroem(sm.kernels.Spectrum(k=2), n_components=3), words)
    """
    case = _case_of(estimator, X, y, methods, containers, tolerance)
    for law in LAWS:
        law(case)


# ---- the laws listed above: of the estimator itself
def check_clone(case: Case) -> None:
    with within("clone"):
        copy, tags = clone(case.estimator), get_tags(case.estimator)
        learnt = [name for name in vars(copy) if name.endswith("_") and not name.startswith("_")]
        names = ", ".join(learnt)
        _require(not (learnt and tags.requires_fit), f"clone: a clone has {names}, expected no attribute learnt in fit")
        shallow = copy.get_params(deep=False)
        _require(copy.set_params(**shallow) is copy, "set_params: it does not return the estimator itself")
        for key, value in shallow.items():
            found = copy.get_params(deep=False)[key]
            _require(found is value, f"set_params: {key} is {short(found)} after {short(value)} was set")
        same = sorted(map(str, copy.get_params())) == sorted(map(str, clone(copy).get_params()))
        _require(same, "clone: a clone has other parameters")


def check_unfitted(case: Case) -> None:
    for method in case.methods if get_tags(case.estimator).requires_fit else ():
        with _refused("unfitted", method, "before fit", NotFittedError):
            getattr(case.fresh(), method)(case.X)


def check_fit(case: Case) -> None:
    estimator = case.fresh()
    before = estimator.get_params()
    digests = {name: _digest(value) for name, value in before.items()}
    objects, targets, states = joblib.hash(case.X), joblib.hash(case.y), _random_states()
    with within("fit"):
        _require(case.fit(estimator) is estimator, "fit: it does not return the estimator itself")
        case.outputs(estimator, case.X)
        if hasattr(estimator, "fit_transform"):
            case.fresh().fit_transform(case.X, case.y)
    after = estimator.get_params()
    for name in before:
        same = after.get(name) is before[name] and _digest(after[name]) == digests[name]
        _require(
            same or _in_place(estimator, name, before[name]),
            f"parameters: fit changes the parameter {name!r}; learnt values belong in attributes such as mean_",
        )
    unchanged = joblib.hash(case.X) == objects and joblib.hash(case.y) == targets
    _require(unchanged, "mutation: fit or a method changes X or y")
    drawn = _random_states() != states
    _require(not drawn, "global random state: fit or a method draws from numpy.random or random, not from random_state")


def _digest(value: Any) -> str | None:
    try:
        return str(joblib.hash(value))
    except Exception:
        return None


def _random_states() -> tuple[str, str]:
    return str(joblib.hash(np.random.get_state())), str(joblib.hash(random.getstate()))


def check_empty(case: Case) -> None:
    none = take(case.X, np.zeros(0, np.int64))
    for method in case.methods:
        said = ("empty", "at least", "0 sample", "minimum of")
        with _refused("empty", method, "of no objects", ValueError, said):
            found = getattr(case.fitted, method)(none)
            if case.objects is None and n_objects(found[0] if isinstance(found, tuple) else found) == 0:
                raise ValueError("empty")  # for a table, an empty result is as good as the error


def check_labels(case: Case) -> None:
    if case.supervised and case.y is not None and not is_clusterer(case.estimator):
        with _refused("labels", "fit", "with fewer labels than objects", ValueError):
            case.fresh().fit(case.X, case.y[:-1])


@contextmanager
def _refused(law: str, what: str, when: str, kind: type[Exception], said: Sequence[str] = ("",)) -> Iterator[None]:
    """Require the ``with`` block to raise an error of class `kind` whose message contains one of the words `said`."""
    try:
        yield
    except kind as error:
        clear = any(word in str(error) for word in said)
        _require(clear, f"{law}: {what} {when} says {short(str(error), 80)}, expected the word {said[0]!r}")
    except Exception as error:
        raise AssertionError(f"{law}: {what} raised {type(error).__name__} {when}, expected {kind.__name__}") from error
    else:
        raise AssertionError(f"{law}: {what} {when} raised nothing, expected {kind.__name__}")


# ---- what it computes
def check_rows(case: Case) -> None:
    with within("rows"):
        for name, values in case.expected.items():
            _require(len(values) == case.n, f"rows: {name} has {len(values)} rows for {case.n} objects")
        case.check_equal("repeatable", case.outputs(case.fitted, case.X), "a second time")
        order = np.random.default_rng(0).permutation(case.n)
        case.check_equal("permutation", case.outputs(case.fitted, take(case.X, order)), "of permuted objects", order)
        half = np.arange(0, case.n, 2)
        case.check_equal("batches", case.outputs(case.fitted, take(case.X, half)), "of every second object", half)
        for i in range(case.n):
            case.check_equal("one by one", case.outputs(case.fitted, take(case.X, [i])), f"of X[{i}] alone", [i])


def check_fits(case: Case) -> None:
    with within("idempotence"):
        states = np.random.get_state(), random.getstate()
        try:
            np.random.seed(1)
            random.seed(1)
            case.check_equal("seed", case.outputs(case.fit(case.fresh()), case.X), "after the fit of a clone")
        finally:
            np.random.set_state(states[0])
            random.setstate(states[1])
        again = case.fit(case.fit(case.fresh()))
        case.check_equal("idempotence", case.outputs(again, case.X), "after a second fit")
        if "transform" in case.methods:
            name = next(name for name in case.expected if name.startswith("transform"))
            found = {**case.expected, name: as_array(case.fresh().fit_transform(case.X, case.y), name)}
            case.check_equal("fit_transform", found, "from fit_transform")


def check_persistence(case: Case) -> None:
    from similia.storage.models import load, refused_types, save

    with within("persistence"):
        refused = refused_types(case.fitted)
        if any(name.startswith("similia.") for name in refused) or not refused:
            with tempfile.TemporaryDirectory() as folder:
                loaded = load(save(case.fitted, os.path.join(folder, "model")))
            case.check_equal("persistence", case.outputs(loaded, case.X), "after similia.save and load")
        else:  # similia.load never loads classes of your own
            pickled = pickle.loads(pickle.dumps(case.fitted))
            case.check_equal("persistence", case.outputs(pickled, case.X), "after pickle")


def check_containers(case: Case) -> None:
    if case.objects is None:
        return
    for name, collection in containers(case.objects, case.containers):
        with within(f"containers, {name}"):
            fitted = case.fit(case.fresh(), collection)
            case.check_equal("containers", case.outputs(fitted, collection), f"of X as {name}")


# ---- inside scikit-learn
def check_searches(case: Case) -> None:
    if not case.supervised and not case.makes_columns:
        return
    model = make_pipeline(case.fresh(), *([] if case.supervised else [RidgeClassifier()]))
    with within("Pipeline"):
        found = len(model.fit(case.X, case.targets).predict(case.X))
        _require(found == case.n, f"Pipeline: predict returned {found} values for {case.n} objects")
        if not case.supervised:
            vectors = as_array(model[:-1].transform(case.X), "transform(X)")
            case.check_equal("Pipeline", {**case.expected, "transform(X)": vectors}, "in a pipeline")
    if not hasattr(model, "score"):
        return  # a clusterer without a score, of which scikit-learn has many
    with within("cross_val_score"):
        scores = cross_val_score(clone(model), case.X, case.targets, cv=N_FOLDS, error_score="raise")
    grid = deepest_parameters(model)
    if not grid and not inspect.signature(type(case.estimator)).parameters:
        return  # there is nothing to search
    with within(f"GridSearchCV over {', '.join(grid) or 'nothing'}"):
        _require(grid, "GridSearchCV: the estimator has no parameters to search, expected those of __init__")
        best = GridSearchCV(clone(model), grid, cv=N_FOLDS, error_score="raise").fit(case.X, case.targets).best_score_
        _require(
            np.isclose(best, scores.mean()),
            f"GridSearchCV: the score is {best:.6g}, but that of cross_val_score with the same parameters is "
            f"{scores.mean():.6g}",
        )


def deepest_parameters(model: Any) -> dict[str, list[Any]]:
    """Return a grid of the most nested parameters, each with its present value as the only choice."""
    plain = {
        key: value
        for key, value in model.get_params().items()
        if (value is None or isinstance(value, int | float | str)) and not key.startswith(("ridgeclassifier", "memory"))
    }
    most = max((key.count("__") for key in plain), default=0)
    return {key: [value] for key, value in plain.items() if most and key.count("__") == most}


def check_names(case: Case) -> None:
    if not case.makes_columns:
        return
    values = case.expected["transform(X)"]
    with within("get_feature_names_out"):
        names = case.fitted.get_feature_names_out()
        different, columns = len(set(map(str, names))), values.shape[1]
        _require(
            len(names) == different == columns,
            f"get_feature_names_out: {len(names)} names, {different} different, of {columns} columns",
        )
    for library in ("pandas", "polars"):
        if installed(library) is not None:
            with within(f"set_output({library!r})"):
                _check_frame(case, library, values, list(names))


def _check_frame(case: Case, library: str, values: npt.NDArray[Any], names: list[str]) -> None:
    estimator = case.fit(case.fresh().set_output(transform=library))
    law = f"set_output({library!r})"
    if sp.issparse(case.fitted.transform(case.X)):
        with _refused(law, "transform", "to sparse rows", ValueError, ["sparse"]):
            estimator.transform(case.X)
        return
    frame = estimator.transform(case.X)
    columns = list(getattr(frame, "columns", []))
    _require(
        type(frame).__module__.split(".")[0] == library and columns == names,
        f"{law}: transform returned {type(frame).__name__} with columns {short(columns)}, "
        "expected a frame with those of get_feature_names_out",
    )
    _check_equal(law, values, "transform(X)", frame.to_numpy(), "the frame", case.tolerance)


def check_columns(case: Case) -> None:
    pandas = installed("pandas")
    if case.objects is None or pandas is None or not case.makes_columns:
        return
    with within("ColumnTransformer"):
        numbers = np.arange(case.n, dtype=float)
        frame = pandas.DataFrame(
            {"numbers": numbers, "objects": pandas.Series(np.fromiter(case.objects, object, case.n))}
        )
        columns = ColumnTransformer(
            [("o", case.fresh(), "objects"), ("n", "passthrough", ["numbers"])], sparse_threshold=0.0
        )
        found = columns.fit_transform(frame, case.targets)
        wanted = np.column_stack([case.expected["transform(X)"], numbers])
        same = found.shape == wanted.shape
        _require(same, f"ColumnTransformer: the result has shape {found.shape}, expected {wanted.shape}")
        _check_equal("ColumnTransformer", wanted, "transform(X)", found, "its columns", case.tolerance)
        n_names = len(columns.get_feature_names_out())
        _require(n_names == wanted.shape[1], f"ColumnTransformer: {n_names} names of columns")
        learner = make_pipeline(clone(columns), RidgeClassifier())
        cross_val_score(learner, frame, case.targets, cv=N_FOLDS, error_score="raise")


LAWS: tuple[Callable[[Case], None], ...] = (
    check_clone, check_unfitted, check_fit, check_rows, check_fits, check_empty, check_labels, check_persistence,
    check_containers, check_searches, check_names, check_columns,
)  # fmt: skip


# ---- what is checked
@dataclass(frozen=True)
class Case:
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
        """Return `y` or, if it is None, labels for the classifier that follows a transformer in a pipeline."""
        return np.arange(self.n) % 2 if self.y is None else self.y

    @cached_property
    def objects(self) -> list[Any] | None:
        """Return the objects as a list, or None if the collection is a table."""
        return list(self.X) if isinstance(self.X, list | tuple | Batch) else None

    @property
    def supervised(self) -> bool:
        return "predict" in self.methods and not is_outlier_detector(self.estimator)

    @property
    def makes_columns(self) -> bool:
        return "transform(X)" in self.expected and all(values.ndim == 2 for values in self.expected.values())

    def fresh(self) -> Any:
        return _seeded_clone(self.estimator)

    def fit(self, estimator: Any, X: Any = None) -> Any:
        return estimator.fit(self.X if X is None else X, self.y)

    @cached_property
    def fitted(self) -> Any:
        return self.fit(self.fresh())

    @cached_property
    def expected(self) -> Arrays:
        return self.outputs(self.fitted, self.X)

    def outputs(self, fitted: Any, X: Any) -> Arrays:
        """Return {"predict(X)": output, ...} for all methods; outputs are arrays with one row for each object."""
        found: Arrays = {}
        for method in self.methods:
            values = getattr(fitted, method)(X)
            for i, part in enumerate(values if isinstance(values, tuple) else (values,)):
                name = f"{method}(X)" + (f"[{i}]" if isinstance(values, tuple) else "")
                found[name] = as_array(part, name)
        return found

    def check_equal(self, law: str, found: Arrays, what: str, rows: Any = slice(None)) -> None:
        """Raise if the outputs `found`, described by `what`, differ from those expected of the objects `rows`."""
        for name, values in self.expected.items():
            wanted, got = values[rows], found[name]
            same = got.shape == wanted.shape
            _require(same, f"{law}: {name} {what} has shape {got.shape}, expected {wanted.shape}")
            if wanted.dtype.kind in "biuf" and got.dtype.kind in "biuf":
                _check_equal(law, wanted, name, got, f"{name} {what}", self.tolerance)
            elif not np.array_equal(wanted, got):
                i = int(np.argmax(wanted != got))
                raise AssertionError(f"{law}: at {i}, {name} is {wanted[i]!r} but {name} {what} is {got[i]!r}")


def as_array(values: Any, name: str) -> npt.NDArray[Any]:
    """Return an output as an array (of hashes, if it is a batch); raise if it is neither 1-D nor 2-D, or not finite."""
    if isinstance(values, Batch):
        return np.array([int(joblib.hash(value)[:12], 16) for value in values])
    if sp.issparse(values):
        values = values.toarray()
    rows = isinstance(values, np.ndarray) and values.ndim in (1, 2)
    _require(rows, f"array: {name} is {type(values).__name__}, expected an array with a row for each object")
    if values.dtype.kind == "f":
        for row, *_ in np.argwhere(~np.isfinite(values))[:1]:
            raise AssertionError(f"finite: {name} holds NaN or infinity in row {row}")
    return values


@contextmanager
def within(law: str) -> Iterator[None]:
    try:
        yield
    except AssertionError:
        raise
    except Exception as error:
        text = " ".join(str(error).split())
        raise AssertionError(f"{law}: {type(error).__name__} was raised: {text[:300]}") from error


def _case_of(
    estimator: Any, X: Any, y: Any, methods: Sequence[str] | None, kinds: Sequence[str] | None, tolerance: float
) -> Case:
    """Return a `Case` with defaults filled in."""
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
        raise ValueError(f"a check makes {N_FOLDS} folds, so X must hold at least {2 * N_FOLDS} objects, got {n}")
    return Case(estimator, X, None if y is None else np.asarray(y), tuple(methods), kinds, tolerance)


def containers(objects: Sequence[Any], kinds: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Yield (name, collection) for each kind of collection that can hold the objects and is installed."""
    for kind in (list, tuple):
        if kind.__name__ in kinds:
            yield f"a {kind.__name__}", kind(objects)
    array = np.fromiter(objects, object, len(objects))
    if "array" in kinds:
        yield "an object array", array
    texts = all(isinstance(x, str) for x in objects)
    if "pandas" in kinds and (pandas := installed("pandas")):  # a list of strings gets the dtype str of pandas
        yield "a pandas Series", pandas.Series([*objects] if texts else array, index=np.arange(len(array))[::-1] + 7)
    if not texts and not all(isinstance(x, np.ndarray) and x.ndim == 1 and x.dtype.kind == "f" for x in objects):
        return
    plain = [x if isinstance(x, str) else list(x) for x in objects]
    if "polars" in kinds and (polars := installed("polars")):
        yield "a polars Series", polars.Series("objects", plain)
    if "arrow" in kinds and (pyarrow := installed("pyarrow")):
        yield "an Arrow array", pyarrow.array(plain)


def installed(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
