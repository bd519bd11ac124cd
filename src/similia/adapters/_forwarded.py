"""Shared by all adapters: import a library on demand, and turn its options into parameters for grid search."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Self

from sklearn.base import BaseEstimator


class Forwarded(BaseEstimator):
    """An estimator that passes the dict `params` as options to a function of another library.

    Each option is also a parameter of the estimator: ``get_params()["window"]``, ``set_params(window=0.1)``.
    """

    params: dict[str, Any] | None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name and, if `deep`, also each option in `params` by its own name."""
        own = super().get_params(deep=False)
        return {**(self.params or {}), **own} if deep else own

    def set_params(self, **params: Any) -> Self:
        """Set parameters of this object; a name that is no parameter sets an option of the other library's function."""
        own = super().get_params(deep=False)
        options = {name: value for name, value in params.items() if name not in own}
        super().set_params(**{name: value for name, value in params.items() if name in own})
        for name in options:
            if "__" in name:
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}; set an option by its own name")
        if options:
            self.params = {**(self.params or {}), **options}
        return self


def library(name: str, module: str, what: str) -> Any:
    """Import a module of the library `name`; if it is missing, raise an error that says how `what` gets it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name not in (module, module.partition(".")[0]):  # a dependency of the library is missing
            raise
        raise ModuleNotFoundError(
            f"{what} needs {name}, which is not installed: pip install {name}", name=error.name
        ) from None


def name_in(function: Any, package: str, suffixes: tuple[str, ...] = ()) -> Any:
    """Return `function` or, if `package` defines it, its name (which can be saved), without an ending in `suffixes`."""
    if not callable(function) or not getattr(function, "__module__", "").startswith(f"{package}."):
        return function
    name = function.__name__
    suffix = next((suffix for suffix in suffixes if name.endswith(suffix)), "")
    return name.removesuffix(suffix)


def called(name: str, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a function of another library; turn any error into a ValueError of one sentence about `name`."""
    try:
        return function(*args, **options)
    except Exception as error:
        detail = " ".join(str(error).split())
        raise ValueError(f"{name} failed: {type(error).__name__}: {detail[:300]}") from error
