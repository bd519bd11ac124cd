"""Compile loops with numba, cached on disk if possible and without the GIL."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba.core import event

from similia.core.config import log_seconds, logger_of

_LOGGER = logger_of("similia.compile")


def njit(*, reassociate: bool = False) -> Callable[[Callable], Any]:
    """Return a decorator that compiles a function with numba at its first call.

    `reassociate` allows sums to be vectorised; infinities and NaN keep their meaning. If numba finds no writable cache
    folder, the function is compiled without a cache.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    if reassociate:
        options["fastmath"] = {"reassoc", "contract", "nsz"}

    def decorate(function: Callable) -> Any:
        try:
            return numba.njit(cache=True, **options)(function)
        except RuntimeError as error:
            if "cannot cache" not in str(error):
                raise
            return numba.njit(cache=False, **options)(function)

    return decorate


def read_only(array: npt.NDArray) -> npt.NDArray:
    """Return a read-only view, so that memory maps and arrays have the same compiled type."""
    view = array.view(np.ndarray)
    view.flags.writeable = False
    return view


class _Compiled(event.Listener):
    """Listener that logs the functions of similia that numba compiles, but not those that it loads from the cache."""

    def __init__(self) -> None:
        self.starts: dict[int, float] = {}

    def on_start(self, event: Any) -> None:
        self.starts[id(event.data["dispatcher"])] = time.perf_counter()

    def on_end(self, event: Any) -> None:
        function, start = event.data["dispatcher"].py_func, self.starts.pop(id(event.data["dispatcher"]), None)
        if start is not None and (function.__module__ or "").startswith("similia."):  # None for a jitclass
            log_seconds(_LOGGER, f"{function.__module__}.{function.__name__}", time.perf_counter() - start)


event.register("numba:compile", _Compiled())
