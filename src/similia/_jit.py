"""The one way similia compiles loops: cached on disk where possible, releasing the GIL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def njit(*, reassociate: bool = False) -> Callable[[Callable], Any]:
    """Compile a function with numba, at its first use.

    `reassociate` lets sums be vectorised; infinities and NaN keep their meaning. Where numba finds no
    writable cache folder the function is compiled without a cache.
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
