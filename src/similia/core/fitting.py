"""Set fitted state all at once: a fit that fails or is interrupted does not change the estimator."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from similia.core.progress import logged, logger_of

Method = TypeVar("Method", bound=Callable[..., Any])


Estimator = TypeVar("Estimator")


def twin_of(estimator: Estimator) -> Estimator:
    """Return a shallow copy of an estimator: setting an attribute of the twin does not change the original."""
    twin = object.__new__(type(estimator))
    vars(twin).update(vars(estimator))
    return twin


def all_at_once(method: Method) -> Method:
    """Make a method that learns (fit, partial_fit, add ...) change its estimator only if it succeeds.

    The method runs on a twin that shares the attributes of the estimator; a single assignment then gives the twin's
    attributes to the estimator. Errors, including Ctrl-C at any moment, leave the estimator unchanged. The method may
    assign attributes freely, but must copy a value before it changes the value in place.
    """
    logger = logger_of(method.__module__)

    @wraps(method)
    def on_twin(self: Any, *args: Any, **kwargs: Any) -> Any:
        twin = twin_of(self)
        with logged(logger, f"{type(self).__name__}.{method.__name__}"):
            result = method(twin, *args, **kwargs)
        self.__dict__ = vars(twin)
        return self if result is twin else result

    on_twin.learns = True  # type: ignore[attr-defined]
    return on_twin  # type: ignore[return-value]
