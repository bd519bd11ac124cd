"""Methods of estimators that also take Dask collections; Dask itself is imported when one comes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from similia.core.errors import BadType
from similia.sources.dask import Distributed, apply, as_partitions

Method = TypeVar("Method", bound=Callable[..., Any])


def is_lazy(X: Any) -> bool:
    """Return whether `X` is a Dask collection, as Dask or `as_partitions` made it."""
    return hasattr(X, "__dask_graph__") or isinstance(X, Distributed)


def lazily(method: Method) -> Method:
    """Let a method of objects or vectors (transform, predict ...) take a Dask collection and return a Dask array.

    Block by block it is what the method returns for the objects of each part.
    """

    @wraps(method)
    def of_any(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_lazy(X):
            return method(self, X, *args, **kwargs)
        return apply(getattr(self, method.__name__), X, *args, **kwargs)

    return of_any  # type: ignore[return-value]


def from_parts(method: Method) -> Method:
    """Let `fit` take a Dask collection: the method gets it as `Distributed`, and labels as arrays."""

    @wraps(method)
    def of_any(self: Any, X: Any = None, *args: Any, **kwargs: Any) -> Any:
        X = as_parts(X)
        args, kwargs = tuple(map(_here, args)), {name: _here(value) for name, value in kwargs.items()}
        return method(self, X, *args, **kwargs)

    return of_any  # type: ignore[return-value]


def as_parts(X: Any) -> Any:
    """Return a Dask collection as `Distributed`, anything else as it is."""
    return as_partitions(X) if hasattr(X, "__dask_graph__") else X


def refuse_lazy(X: Any, needs: str) -> None:
    """Raise for a Dask collection; `needs` says what for the objects must be here, and what does without."""
    if is_lazy(X):
        raise BadType(None, f"is a Dask collection, and {needs}")


def _here(value: Any) -> Any:
    """Return labels that Dask holds as they are when computed."""
    return value.compute() if hasattr(value, "__dask_graph__") else value
