"""Compile loops with numba, cached on disk if possible and without the GIL."""

from __future__ import annotations

import signal
import threading
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


class _Deferred(event.Listener):
    """Listener that defers Ctrl-C while numba compiles: KeyboardInterrupt is raised when a function is compiled.

    LLVM calls back into numba, and an exception in a callback is lost: numba then fails because its result is missing,
    or goes on as if there had been no Ctrl-C. Only the main thread gets signals; handlers of others are left alone.
    """

    def __init__(self) -> None:
        self.depth, self.pressed = 0, False

    def on_start(self, event: Any) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        if self.depth == 0:
            if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
                return
            signal.signal(signal.SIGINT, self._press)
        self.depth += 1

    def on_end(self, event: Any) -> None:
        if threading.current_thread() is not threading.main_thread() or self.depth == 0:
            return
        self.depth -= 1
        if self.depth == 0:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if self.pressed and (self.depth == 0 or event.kind == "numba:compile"):
            self.pressed = False
            raise KeyboardInterrupt

    def _press(self, *_: object) -> None:
        self.pressed = True


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
_DEFERRED = _Deferred()
for _kind in ("numba:compiler_lock", "numba:compile"):
    event.register(_kind, _DEFERRED)
