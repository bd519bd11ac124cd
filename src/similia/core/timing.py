"""What takes long is logged: fits, compiling, building of indexes. Loggers are named as modules, ``similia.…``.

Messages of a tenth of a second and more have level INFO, others DEBUG: nothing is printed unless a program asks for it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

_LONG = 0.1  # seconds


def log_seconds(module: str, what: str, seconds: float) -> None:
    """Log that something took some seconds, in the name of a module."""
    logging.getLogger(module).log(logging.INFO if seconds >= _LONG else logging.DEBUG, "%s: %.3g s", what, seconds)


@contextmanager
def logged(module: str, what: str) -> Iterator[None]:
    """Log how long the block took, unless it fails."""
    start = time.perf_counter()
    yield
    log_seconds(module, what, time.perf_counter() - start)
