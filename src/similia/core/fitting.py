"""Fitted state that is set all at once: a fit that fails or is interrupted leaves an estimator as it was."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from similia.core.progress import logged, logger_of

Method = TypeVar("Method", bound=Callable[..., Any])


Estimator = TypeVar("Estimator")


def twin_of(estimator: Estimator) -> Estimator:
    """Return another estimator that shares the attributes of this one; setting one of them changes only the twin."""
    twin = object.__new__(type(estimator))
    vars(twin).update(vars(estimator))
    return twin


def all_at_once(method: Method) -> Method:
    """Let a method that learns (fit, partial_fit, add ...) change its estimator only when it has succeeded.

    The method runs on a twin that shares the attributes of the estimator; one assignment then gives the estimator the
    twin's attributes. Whatever the method raises, Ctrl-C at any moment included, leaves the estimator as it was. The
    method may assign attributes freely, but must copy what an attribute holds before it changes that in place.
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
