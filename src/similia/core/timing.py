"""What takes long is logged: fits, compiling, building of indexes. Loggers are named as modules, ``similia.…``.

Messages of a tenth of a second and more have level INFO, others DEBUG: nothing is printed unless a program asks for it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

_LONG = 0.1  # seconds


def logger_of(module: str) -> logging.Logger:
    """Return the logger of a module, made when the module is imported.

    `logging` locks itself to make a logger and to look up a level for the first time; Ctrl-C at that moment would leave
    it locked, and other threads would wait for ever. Both are done here, so that no fit takes that lock.
    """
    logger = logging.getLogger(module)
    for level in (logging.DEBUG, logging.INFO):
        logger.isEnabledFor(level)
    return logger


def log_seconds(logger: logging.Logger, what: str, seconds: float) -> None:
    """Log that something took some seconds."""
    logger.log(logging.INFO if seconds >= _LONG else logging.DEBUG, "%s: %.3g s", what, seconds)


@contextmanager
def logged(logger: logging.Logger, what: str) -> Iterator[None]:
    """Log how long the block took, unless it fails."""
    start = time.perf_counter()
    yield
    log_seconds(logger, what, time.perf_counter() - start)
