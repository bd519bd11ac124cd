"""Settings that hold for a block of code: memory for temporary arrays, processes, progress bars.

Long loops report their progress here, too: on a display, which ``config(progress=True)`` shows, and in logs.
"""

from __future__ import annotations

import logging
import math
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, TypeVar

_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
T = TypeVar("T")
_EVERY = 10.0  # seconds between lines of a log
_display: Any = None  # shared by all loops; nested loops add lines
_LONG = 0.1  # seconds


@dataclass(frozen=True)
class Settings:
    """The settings that `config` changes; `config` says what they mean."""

    max_memory: int = 2**30
    n_jobs: int | None = None
    progress: bool = False
    part: bool = False  # while streaming, warn even if only a few objects are affected
    lazy: bool = False  # while reading one part of a Dask collection
    start: int | None = None  # position of the first object of this part, if it is known


_settings: ContextVar[Settings] = ContextVar("similia_settings", default=Settings())  # noqa: B039, it is frozen


def settings() -> Settings:
    """Return the settings in force; `similia.config` changes them."""
    return _settings.get()


@contextmanager
def config(
    *, max_memory: int | str | None = None, n_jobs: int | None = None, progress: bool | None = None
) -> Iterator[Settings]:
    """Change settings inside a ``with`` block.

    Settings that are not given keep their values. The block changes the settings only for the thread (or context of
    `contextvars`) that entered it. Threads that you start inside the block use the default settings, so enter `config`
    in each of them. A call without ``with`` changes nothing.

    Parameters
    ----------
    max_memory : int or str, optional
        Memory for the temporary arrays of one operation: a number of bytes, or text such as ``"512MiB"`` or ``"2GB"``;
        1 GiB by default. Comparisons of n with m objects are split into blocks that fit. Results do not depend on this
        setting.
    n_jobs : int, optional
        Number of processes in which `pairwise` calls Python functions. aeon and tslearn receive it as their ``n_jobs``.
        1 by default; -1 means one for each core.
    progress : bool, optional
        Whether long loops show a progress bar on the terminal; False by default.

    Yields
    ------
    Settings
        The settings in force inside the block.

    Raises
    ------
    ValueError
        If `max_memory` is not a finite size of at least one byte, or if `n_jobs` is 0 or not an integer.

    Examples
    --------
    >>> import similia as sm
    >>> with sm.config(max_memory="64MiB") as inside:
    ...     inside.max_memory
    67108864
    """
    if max_memory is not None:
        max_memory = _parse_bytes(max_memory)
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(f"n_jobs must be a number of processes, or -1 for one for each core, got {n_jobs!r}")
    given = {"max_memory": max_memory, "n_jobs": n_jobs, "progress": progress}
    with _changed(**{name: value for name, value in given.items() if value is not None}):
        yield settings()


@contextmanager
def part_of_more(*, lazy: bool = False, start: int | None = None) -> Iterator[None]:
    """Tell estimators called in the block that their input is one part of a stream, or of a Dask collection if `lazy`.

    An estimator usually warns only if most of its input objects look suspicious. For a part of a stream, it warns even
    about a single one; for a part of a Dask collection, it never warns if the part has only a few objects. With
    `start`, the position of the first object, warnings number objects in the whole collection.
    """
    with _changed(part=not lazy, lazy=lazy, start=start):
        yield


@contextmanager
def _changed(**changes: Any) -> Iterator[None]:
    token = _settings.set(replace(settings(), **changes))
    try:
        yield
    finally:
        _settings.reset(token)


def rows_per_block(bytes_per_row: int, at_most: int | None = None) -> int:
    """Return how many rows fit into ``similia.config(max_memory=...)``: at least 1, and no more than `at_most`."""
    rows = max(1, settings().max_memory // max(1, bytes_per_row))
    return rows if at_most is None else min(rows, at_most)


def check_memory(takes: str, needed: int, instead: str) -> None:
    """Raise if `needed` bytes exceed ``max_memory``; the message starts with `takes` and advises `instead`."""
    most = settings().max_memory
    if needed > most:
        raise ValueError(
            f"{takes} {needed / 2**20:.0f} MiB, and max_memory is {most / 2**20:.0f} MiB; {instead}, or allow more "
            "with similia.config(max_memory=...)"
        )


def _parse_bytes(size: float | str) -> int:
    if isinstance(size, str):
        digits = size.strip().rstrip("BKMGIbkmgi ")
        unit = size.strip()[len(digits) :].strip().upper() or "B"
        try:
            size = float(digits) * _UNITS[unit]
        except (KeyError, ValueError):
            raise ValueError(f"max_memory={size!r} is not a size; write a number of bytes or, e.g., '512MiB'") from None
    if not isinstance(size, Real) or not 1 <= size < math.inf:
        raise ValueError(f"max_memory must be a finite number of bytes, at least 1, got {size}")
    return int(size)


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
