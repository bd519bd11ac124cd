"""Base classes and helpers of estimators: fits that change nothing if they fail, tags, columns, lists as parameters."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import update_wrapper, wraps
from types import MethodType
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from similia.core.config import log_seconds, logger_of
from similia.core.text import listed, short
from similia.core.validation import BadValue, check_flags, column_names, is_table, not_real, too_narrow, wrong_width

Estimator = TypeVar("Estimator")
Method = TypeVar("Method", bound=Callable[..., Any])


def twin_of(estimator: Estimator) -> Estimator:
    """Return a shallow copy of an estimator: setting an attribute of the twin does not change the original."""
    twin = object.__new__(type(estimator))
    vars(twin).update(vars(estimator))
    return twin


def detached(value: Estimator) -> Estimator:
    """Return a copy of a kernel, distance or estimator that `set_params` of the original, nested or not, cannot change.

    Its parameters that are estimators or lists of them are copied likewise; the copy shares all other attributes, such
    as learnt ones. Whatever has no parameters, such as a function, is returned itself.
    """
    if isinstance(value, type) or not hasattr(value, "set_params"):
        return value
    twin = twin_of(value)
    for name, part in vars(value).items():
        if name.startswith("_") or name.endswith("_"):
            continue
        if type(part) in (list, tuple) and any(hasattr(one, "set_params") for one in part):
            vars(twin)[name] = type(part)(map(detached, part))
        elif hasattr(part, "set_params"):
            vars(twin)[name] = detached(part)
    return twin


def present(estimator: Estimator) -> Estimator:
    """Return the estimator as it is now, for reading without a lock.

    Methods decorated with `all_at_once` give an estimator new attributes in one assignment, so the result never mixes
    attributes from before and after such a call.
    """
    view = object.__new__(type(estimator))
    view.__dict__ = vars(estimator)
    return view


def check_fitted(estimator: Any, attribute: str | None = None) -> None:
    """Raise `NotFittedError` if an estimator lacks `attribute` or, if that is None, has no learnt attribute.

    An estimator that defines `__sklearn_is_fitted__` answers for itself. If the answer is no, scikit-learn's
    `check_is_fitted` decides, as it knows estimators that need no fit. It computes the tags of the estimator and of all
    its parts, which takes longer than transforming one object.
    """
    names = getattr(estimator, "__dict__", {})
    if attribute:
        fitted = attribute in names
    elif hasattr(estimator, "__sklearn_is_fitted__") and not isinstance(estimator, type):
        fitted = estimator.__sklearn_is_fitted__()
    else:
        fitted = any(name.endswith("_") and name[:2] != "__" for name in names)
    if not fitted:
        check_is_fitted(estimator, attribute, msg="this %(name)s is not fitted yet; call its fit first")


def all_at_once(method: Method) -> Method:
    """Decorate a learning method (fit, partial_fit, add ...) so that its estimator changes only if the call succeeds.

    The method runs on a twin that shares the attributes of the estimator; a single assignment then gives the twin's
    attributes to the estimator. Errors, including Ctrl-C at any moment, leave the estimator unchanged. The method may
    assign attributes freely, but must copy a value before it changes the value in place. Its duration is logged.
    """
    logger = logger_of(method.__module__)

    @wraps(method)
    def on_twin(self: Any, *args: Any, **kwargs: Any) -> Any:
        check_flags(self)
        start, twin = time.perf_counter(), twin_of(self)
        result = method(twin, *args, **kwargs)
        log_seconds(logger, f"{type(self).__name__}.{method.__name__}", time.perf_counter() - start)
        self.__dict__ = vars(twin)
        return self if result is twin else result

    on_twin.learns = True  # type: ignore[attr-defined]
    return on_twin  # type: ignore[return-value]


# ---- Dask collections
def is_lazy(X: Any) -> bool:
    """Return whether `X` is a Dask collection, or one as `similia.sources.dask` reads it."""
    return hasattr(X, "__dask_graph__") or getattr(type(X), "of_dask", False) is True


def computed(value: Any) -> Any:
    """Compute a Dask collection; return anything else unchanged."""
    return value.compute() if hasattr(value, "__dask_graph__") else value


def if_lazy(instead: Callable[..., Any]) -> Callable[[Method], Method]:
    """Make a decorator of methods, which calls ``instead(method, self, ...)`` if an argument is a Dask collection.

    Calls with objects in memory go straight to the method. `similia.sources.dask` has these decorators.
    """

    @wraps(instead)
    def decorate(method: Method) -> Method:
        @wraps(method)
        def of_any(self: Any, *args: Any, **kwargs: Any) -> Any:
            if any(map(is_lazy, args)) or (kwargs and any(map(is_lazy, kwargs.values()))):
                return instead(method, self, *args, **kwargs)
            return method(self, *args, **kwargs)

        return of_any  # type: ignore[return-value]

    return decorate  # type: ignore[return-value]


class offered_if:
    """Decorate a method that exists only if ``check(estimator)`` does not raise AttributeError.

    The user sees the error of `check`, whereas scikit-learn's `available_if` raises an error of its own.
    """

    def __init__(self, check: Callable[[Any], None]) -> None:
        self._check = check

    def __call__(self, method: Method) -> Method:
        self._method = method
        return update_wrapper(self, method)  # type: ignore[return-value]

    def __get__(self, estimator: Any, owner: Any = None) -> Any:
        if estimator is None:
            return self._method
        self._check(estimator)
        return MethodType(self._method, estimator)


class Transformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of the transformers of similia.

    A class declares its input and output in `_takes` and `_dtypes`, which become scikit-learn's tags, and sets
    `_n_features_out`, from which `get_feature_names_out` names the columns. The class decorates its `fit` with
    `all_at_once` and its `transform` with `lazily`. For Dask collections, `fit` is also decorated with `from_parts`, or
    it calls `refuse_lazy`.
    """

    _takes: ClassVar[Collection[str]] = ()  # input tags that are true, such as "sparse" or "string"
    _dtypes: ClassVar[Collection[str]] = ("float64", "float32")  # kept from input to output; none for codes

    def _learn_columns(self, X: Any) -> None:
        """Store the number and names of the columns of a table, local or distributed."""
        check_columns(self, example_of(X), reset=True)

    def _check_columns(self, X: Any) -> None:
        """Raise if the transformer is not fitted, or was fitted to columns other than those of `X`."""
        check_fitted(self)
        check_columns(self, X, reset=False)

    def _example(self) -> Any:
        """Return a collection of one object that `transform` takes, or None if none can be made without data."""
        return None

    def _for_one(self) -> Callable[[Any], Any] | None:
        """Return a function that transforms one object fast, as long as no fitted attribute is replaced; or None.

        The function takes a collection of one object and returns what `transform` returns, bit for bit. It returns None
        for whatever needs the whole of `transform`: input in another layout, and anything to warn or complain about.
        """
        return None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        for name in self._takes:
            setattr(tags.input_tags, name, True)
        tags.transformer_tags.preserves_dtype = [*self._dtypes]
        return tags


class ObjectsOut(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Base of transformers whose output is again objects, not columns; ``set_output`` does not affect them."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__(auto_wrap_output_keys=None)

    def set_output(self, *, transform: Any = None) -> Self:
        """Do nothing and return the transformer: its output is a collection of objects, without columns."""
        return self

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Return `input_features`, or ``["objects"]`` if not given: the output has no columns."""
        return np.array(["objects"] if input_features is None else input_features, dtype=object)


class ListParams(BaseEstimator):
    """Base of classes with a parameter, named by `_list`, that is a list of kernels or models.

    If `_letter` is v, for example, entry 0 of the list is the parameter ``v0``, and a parameter ``name`` of this entry
    is ``v0__name``.
    """

    _list: ClassVar[str]  # the parameter that holds the list
    _letter: ClassVar[str]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; if `deep`, also each kernel or model in a list, and its own parameters."""
        params: dict[str, Any] = super().get_params(deep=False)
        for i, part in enumerate(self._listed() if deep else ()):
            name = f"{self._letter}{i}"
            params[name] = part
            if hasattr(part, "get_params") and not isinstance(part, type):
                params.update({f"{name}__{key}": value for key, value in part.get_params().items()})
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters by the names that `get_params` returns, including those of kernels or models in a list."""
        if self._list in params:
            setattr(self, self._list, params.pop(self._list))
        parts = self._listed()
        names = [f"{self._letter}{i}" for i in range(len(parts))]
        if any(name in params for name in names):
            setattr(self, self._list, [params.pop(name, part) for name, part in zip(names, parts, strict=True)])
        super().set_params(**params)
        return self

    def _listed(self) -> Any:
        """Return the list, or () if the parameter is not a list; other code then raises the error."""
        parts = getattr(self, self._list)
        return parts if isinstance(parts, list | tuple) else ()


def example_of(X: Any) -> Any:
    """Return a collection of one object from a distributed collection; return a local collection unchanged."""
    return X.example() if hasattr(type(X), "example") else X


def check_columns(estimator: Any, X: Any, *, reset: bool) -> None:
    """Store the width and column names of `X` if `reset`; otherwise raise if a data frame has other ones.

    Arrays have no names, so they are not checked.
    """
    if reset or _is_frame(X):
        with columns_told(estimator, X):
            validate_data(estimator, X, reset=reset, skip_check_array=True)


@contextmanager
def columns_told(estimator: Any, X: Any) -> Iterator[None]:
    """Return a context in which scikit-learn checks the columns of `X`, for errors that begin with one sentence.

    If a data frame has other columns than in fit, the sentence precedes the words of scikit-learn, for which its checks
    of estimators look.
    """
    names = column_names(X) if _is_frame(X) else []
    for name, count in Counter(names).items():
        if count > 1:
            at = " and ".join(str(i) for i, other in enumerate(names) if other == name)
            found = f"has {count} columns named {short(name)}, at positions {at} (counted from 0)"
            raise BadValue(None, found, remedy="rename all but one of them, or leave them out")
    try:
        yield
    except ValueError as error:
        learnt = list(getattr(estimator, "feature_names_in_", names))
        if not names or names == learnt:
            raise
        raise ValueError(f"{_other_columns(names, learnt, type(estimator).__name__)}\n{error}") from None


def _is_frame(X: Any) -> bool:
    return hasattr(X, "columns") and getattr(X, "elsewhere", False) is not True


def _other_columns(names: list[Any], learnt: list[Any], who: str) -> str:
    """Return a sentence about columns `names` that are not those that an estimator learnt, or in another order."""
    known, given = set(learnt), set(names)
    missing, new = [name for name in learnt if name not in given], [name for name in names if name not in known]
    found = [f"lacks {_columns(missing)}, to which {who} was fitted"] * bool(missing)
    found += [f"has {_columns(new)}, to which {'it' if missing else who} was not fitted"] * bool(new)
    if not found:
        found = [f"has the columns to which {who} was fitted, but in another order"]
    return f"X {', and '.join(found)}; give the columns in model.feature_names_in_, in their order"


def _columns(names: list[Any]) -> str:
    return f"the column{'s' * (len(names) > 1)} {listed(names)}"


def take_columns(estimator: Any, fitted: Any) -> None:
    """Give `estimator` the width and the column names that another estimator was fitted to, if any."""
    for name in ("n_features_in_", "feature_names_in_"):
        estimator.__dict__.pop(name, None)
        if hasattr(fitted, name):
            setattr(estimator, name, getattr(fitted, name))


def check_table(estimator: Any, X: Any, given: Any = None, *, reset: bool) -> None:
    """Store (if `reset`) or check the width and column names of a table of numbers.

    If `X` is no table, `reset` deletes the stored width and names, and without `reset` nothing happens. If a kernel
    converts the input of an estimator, `given` is that input, which may have column names, and `X` is the result.
    """
    X = example_of(X)
    if not is_table(X):
        if reset:
            for learnt in ("n_features_in_", "feature_names_in_"):
                vars(estimator).pop(learnt, None)
        return
    given = example_of(given)
    if reset and X.shape[1] == 0:
        raise too_narrow("X", X.shape)
    if np.dtype(getattr(X, "dtype", float)).kind == "c":
        raise not_real()
    check_columns(estimator, given if hasattr(given, "columns") else X, reset=reset)
    expected = getattr(estimator, "n_features_in_", None)
    if not reset and expected is not None and X.shape[1] != expected:
        raise wrong_width(X.shape[1], expected, estimator)
