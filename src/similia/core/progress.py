"""A progress display for all long loops, shown only with ``config(progress=True)``."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from similia.core.config import config, settings

T = TypeVar("T")
_EVERY = 10.0  # seconds between lines of a log

_display: Any = None  # shared by all loops; nested loops add lines


def track(items: Iterable[T], description: str, total: int | None = None) -> Generator[T, None, None]:
    """Yield `items`; inside ``similia.config(progress=True)``, show a bar with the count and the time left."""
    if not settings().progress:
        yield from items
    elif _display is not None:
        yield from _one_line(items, description, total)
    else:
        from rich.progress import MofNCompleteColumn, TimeRemainingColumn

        with _displayed(MofNCompleteColumn(), TimeRemainingColumn()):
            yield from _one_line(items, description, total)


@contextmanager
def _displayed(*columns: Any) -> Iterator[Any]:
    """Yield a display of bars that end with the given columns, on the terminal or in a log."""
    global _display
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), *columns)
    with Progress(*columns, console=Console(stderr=True), transient=True) as _display:
        try:
            yield _display
        finally:
            _display = None


def _one_line(items: Iterable[T], description: str, total: int | None) -> Iterator[T]:
    display = _display
    line = display.add_task(description, total=total, said="")  # a field of the bar of `meter`
    try:
        for done, item in enumerate(items, start=1):
            yield item
            display.advance(line)
            if line == 0 and not display.console.is_terminal:  # a log gets lines, of the outermost loop only
                display.console.print(f"{description}: {done}{f'/{total}' if total else ''}", highlight=False)
    finally:
        display.remove_task(line)


@contextmanager
def meter(
    description: str, done: int = 0, total: int | None = None, size: int | None = None
) -> Iterator[Callable[[int, int], None]]:
    """Yield a function to call with two numbers: objects done (of `total`) and bytes read (of `size`).

    If ``config(progress=True)`` is set, the function shows these with the rate and the time left: as a bar on a
    terminal, elsewhere as a line every ten seconds. A resumed run begins with `done` objects.
    """
    pace = _Pace(done, total, size)
    if not settings().progress or _display is not None:
        yield lambda done, bytes_read: None
    elif sys.stderr.isatty():
        from rich.progress import TextColumn

        with _displayed(TextColumn("{task.fields[said]}")) as display:
            line = display.add_task(description, total=None, said="")

            def draw(done: int, bytes_read: int) -> None:
                said = pace.update(done, bytes_read)
                display.update(line, completed=pace.fraction, total=1 if pace.fraction else None, said=said)

            yield draw
    else:
        last = time.monotonic()

        def write(done: int, bytes_read: int) -> None:
            nonlocal last
            said = pace.update(done, bytes_read)
            if time.monotonic() - last >= _EVERY:
                last = time.monotonic()
                print(f"{description}: {said}", file=sys.stderr, flush=True)

        with config(progress=False):  # no nested loops in a log
            yield write


class _Pace:
    """Rate and remaining time of a run, by objects if their total number is known, else by bytes."""

    def __init__(self, done: int, total: int | None, size: int | None) -> None:
        self.first, self.total, self.size = done, total, size
        self.start = time.monotonic()
        self.fraction: float | None = None
        self._bytes: tuple[int, float] | None = None  # first count, and its time

    def update(self, done: int, bytes_read: int) -> str:
        now = time.monotonic()
        rate = (done - self.first) / max(now - self.start, 1e-9)
        left, self._bytes = None, self._bytes or (bytes_read, now)
        if self.total:
            self.fraction, left = done / self.total, (self.total - done) / max(rate, 1e-9)
        elif self.size:
            self.fraction = bytes_read / self.size
            if bytes_read > self._bytes[0]:
                left = (self.size - bytes_read) * (now - self._bytes[1]) / (bytes_read - self._bytes[0])
        said = f"{done:,} of {self.total:,}" if self.total else f"{done:,}"
        return f"{said}, {rate:,.0f}/s" + ("" if left is None else f", {_duration(left)} left")


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


_LONG = 0.1  # seconds


def logger_of(module: str) -> logging.Logger:
    """Return the logger of a module; call this when the module is imported.

    `logging` takes a lock to create a logger and to look up a level for the first time. Ctrl-C at that moment would
    keep the lock taken, and other threads would wait forever. Both steps happen here, at import, never during a fit.
    """
    logger = logging.getLogger(module)
    for level in (logging.DEBUG, logging.INFO):
        logger.isEnabledFor(level)
    return logger


def log_seconds(logger: logging.Logger, what: str, seconds: float) -> None:
    logger.log(logging.INFO if seconds >= _LONG else logging.DEBUG, "%s: %.3g s", what, seconds)


@contextmanager
def logged(logger: logging.Logger, what: str) -> Iterator[None]:
    """Log the duration of the block, unless it fails."""
    start = time.perf_counter()
    yield
    log_seconds(logger, what, time.perf_counter() - start)
