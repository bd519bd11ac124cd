"""What a running call may use and what it tells: settings, progress and logs, threads, warnings of threads, locks.

Settings (memory for temporary arrays, processes, progress bars) hold for a block of code. Long loops report their
progress on a display, which ``config(progress=True)`` shows, and in logs. Loops that release the GIL (numba, BLAS,
numpy) run in threads, and shared objects are locked, safely under Ctrl-C.

A signal can raise an exception between any two calls of the main thread. In `threading` and `concurrent.futures` this
may happen just after Python code has acquired a lock, which is then never released. Here threads communicate through
queues and locks written in C, which no signal leaves locked.
"""

from __future__ import annotations

import logging
import math
import os
import sys
import time
import warnings
from _thread import start_new_thread
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, replace
from functools import cache, wraps
from numbers import Integral, Real
from queue import Empty, SimpleQueue
from threading import Condition, Lock
from typing import Any, TypeVar
from weakref import WeakSet

import numpy as np
import numpy.typing as npt
from joblib import cpu_count
from threadpoolctl import ThreadpoolController

T = TypeVar("T")
Argument = TypeVar("Argument")
Result = TypeVar("Result")
Method = TypeVar("Method", bound=Callable[..., Any])

_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
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
        Number of processes in which `pairwise` calls Python functions. Functions of aeon and tslearn receive this
        number as their ``n_jobs``. 1 by default; -1 means one process for each core.
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


def row_blocks(n: int, bytes_per_row: int, at_most: int | None = None) -> Iterator[npt.NDArray[np.int64]]:
    """Yield ``arange(n)`` in blocks of as many rows as ``config(max_memory)`` allows, and of at most `at_most` rows."""
    step = rows_per_block(bytes_per_row, at_most)
    for start in range(0, n, step):
        yield np.arange(start, min(start + step, n))


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


# ---- progress and logs
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


# ---- threads
_limit: ContextVar[int | None] = ContextVar("similia_threads", default=None)

_WORTH_THREADS = 2**28  # minimum multiplications (a few milliseconds) that justify starting threads


class _Shared:
    """The limit of BLAS to one thread, one for all threads: if each set a limit, they could end in the wrong order."""

    lock = Lock()
    users = 0
    before: list[int] | None = None  # threads of each BLAS; None if nothing has been changed


def n_threads() -> int:
    """Return the number of threads for shared work: one per core, unless `limited_to` sets fewer."""
    limit = _limit.get()
    return int(cpu_count()) if limit is None else min(limit, int(cpu_count()))


@contextmanager
def limited_to(limit: int | None) -> Iterator[None]:
    """Use at most `limit` threads in the block (None: no change); pass 1 inside tasks that already run in parallel."""
    if limit is None:
        yield
        return
    token = _limit.set(limit)
    try:
        with one_blas_thread() if limit == 1 else nullcontext():
            yield
    finally:
        _limit.reset(token)


def in_threads(
    task: Callable[[Argument], Result], arguments: Iterable[Argument], workers: int | None = None
) -> list[Result]:
    """Call `task` on each argument in `workers` threads, by default as many as allowed; return the results in order.

    After an error or Ctrl-C, no further task starts. Of several errors, the one for the earliest argument is raised.
    """
    todo: SimpleQueue[tuple[int, Argument]] = SimpleQueue()
    n = 0
    for n, argument in enumerate(arguments, 1):
        todo.put((n - 1, argument))
    results: list[Any] = [None] * n
    errors: dict[int, BaseException] = {}
    gone: list[None] = []  # for each thread that has ended; changed by threads only, as a signal may cut any step here
    bell: SimpleQueue[None] = SimpleQueue()

    def work() -> None:
        with suppress(Empty):
            while True:
                i, argument = todo.get_nowait()
                try:
                    results[i] = task(argument)
                except BaseException as error:
                    errors[i] = error
                    _empty(todo)
        gone.append(None)
        bell.put(None)

    started = 0
    try:
        for _ in range(min(n_threads() if workers is None else workers, n)):
            start_new_thread(copy_context().run, (work,))
            started += 1
        while len(gone) < started:
            bell.get()
    finally:
        _empty(todo)
        while len(gone) < started:  # running tasks must end before their arrays are reused
            bell.get()
    if errors:
        raise errors[min(errors)]
    return results


def _empty(queue: SimpleQueue[Any]) -> None:
    with suppress(Empty):
        while True:
            queue.get_nowait()


def run_in_ranges(work: Callable[[int, int], None], n: int, grain: int) -> None:
    """Call ``work(start, stop)`` on ranges that cover ``range(n)``, in threads if there is enough to share.

    Ranges begin at multiples of `grain`, the smallest piece worth a call. Any thread may run any range, so `work` must
    write only to its own range. The threads are Python's, because compiling with numba's ``parallel=True`` takes
    seconds.
    """
    n_grains = -(-n // grain)
    workers = min(n_threads(), n_grains) if n_grains > 1 else 1
    if workers <= 1:
        work(0, n)
        return
    pieces = min(n_grains, 4 * workers)  # of equal size, a multiple of the threads, which balances the load
    limits = [min(n, grain * (i * n_grains // pieces)) for i in range(pieces + 1)]
    in_threads(lambda i: work(limits[i], limits[i + 1]), range(pieces), workers)


@contextmanager
def one_blas_thread() -> Iterator[int]:
    """Limit BLAS to one thread in the block, which fixes the order of sums; yield how many threads BLAS could use.

    Several threads may run such blocks at once, and blocks may be nested.
    """
    mine = 0
    try:
        with _Shared.lock:
            _Shared.users, mine = _Shared.users + 1, 1  # one step, so that Ctrl-C comes before or after both
            blas = _blas()
            if _Shared.before is None:
                _Shared.before = [library.num_threads for library in blas.lib_controllers]
            if _Shared.users == 1:
                _set_threads([1] * len(blas.lib_controllers))
            most, limit = max(_Shared.before, default=1), _limit.get()
        yield most if limit is None else min(limit, most)
    finally:
        if mine:
            with _Shared.lock:
                _Shared.users -= 1
                if _Shared.users == 0 and _Shared.before is not None:
                    _set_threads(_Shared.before)
                    _Shared.before = None


def _set_threads(numbers: list[int]) -> None:
    """Set the number of threads of each BLAS library.

    From threadpoolctl 3.8 on, settings by any thread but the first that set a limit are silently ignored. This function
    lifts that restriction, since another thread may have to restore the numbers.
    """
    for library, number in zip(_blas().lib_controllers, numbers, strict=True):
        free = getattr(library, "clear_controlling_thread", lambda **_: None)
        free(force=True)
        library.set_num_threads(number)
        free(force=True)


@cache
def _blas() -> ThreadpoolController:
    """Return all BLAS libraries loaded at the first call, those of numpy and scipy among them."""
    import scipy.linalg  # noqa: F401  (it has a BLAS of its own, which must be loaded to be found)

    return ThreadpoolController().select(user_api="blas")  # takes 6 ms


def run_tasks(task: Callable[[int], None], arguments: Iterable[int], work: int) -> None:
    """Call `task` on each argument, in threads if `work`, the total number of multiplications, justifies them.

    A task should compute a small tile of a result and also use it: then both run in parallel, with the tile in cache.
    """
    workers = n_threads() if work >= _WORTH_THREADS else 1
    if workers > 1:
        in_threads(task, arguments, workers)
        return
    for argument in arguments:
        task(argument)


def run_blas_tasks(task: Callable[[int], None], arguments: Iterable[int], work: int) -> None:
    """Call `task` like `run_tasks`, in as many threads as BLAS may use, while BLAS itself is limited to one thread.

    Unlike BLAS's own threads, these threads do not wait for one another after a product. If BLAS is already limited, no
    threads start.
    """
    if work >= _WORTH_THREADS and not _Shared.users:
        with one_blas_thread() as workers:
            in_threads(task, arguments, workers)
        return
    run_tasks(task, arguments, work=0)  # in this thread


# ---- warnings of threads
_collected: ContextVar[list[warnings.WarningMessage] | None] = ContextVar("similia_warnings", default=None)


class _Collecting:
    """State of `collected_warnings`: of overlapping blocks, the first changes the settings, the last restores them."""

    lock = Lock()
    users = 0
    before: Any = None


@contextmanager
def collected_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Collect the warnings of this thread, and of threads sharing its work, in a list instead of showing them."""
    mine, token, found = 0, None, []  # type: ignore[var-annotated]
    try:
        with _Collecting.lock:
            _Collecting.users, mine = _Collecting.users + 1, 1  # one step, so that Ctrl-C comes before or after both
            if _Collecting.before is None:
                _Collecting.before = warnings.catch_warnings()
                _Collecting.before.__enter__()
                warnings.simplefilter("always")
                warnings.showwarning = _show_or_collect(warnings.showwarning)
        token = _collected.set(found)
        yield found
    finally:
        if token is not None:
            _collected.reset(token)
        if mine:
            with _Collecting.lock:
                _Collecting.users -= 1
                if _Collecting.users == 0 and _Collecting.before is not None:
                    before, _Collecting.before = _Collecting.before, None
                    before.__exit__(None, None, None)


def _show_or_collect(others: Any) -> Any:
    """Return a `showwarning` that collects warnings in blocks of `collected_warnings` and calls `others` elsewhere."""

    def show(message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None) -> None:
        found = _collected.get()
        if found is None:
            others(message, category, filename, lineno, file, line)
        else:
            found.append(warnings.WarningMessage(message, category, filename, lineno, file, line))

    return show


# ---- locks of shared objects
class SharedLock:
    """A lock held by any number of readers or by one writer; a waiting writer precedes new readers.

    A thread that holds the lock must not acquire it again.
    """

    def __init__(self) -> None:
        self._free()
        _locks.add(self)

    def _free(self) -> None:
        self._mutex = Lock()  # acquired and released in C, where no signal interrupts
        self._changed = Condition(self._mutex)
        self._readers = self._waiting = 0
        self._writing = False

    def _wait(self, free: Callable[[], bool]) -> None:
        """Wait until the lock is free; poll, as Ctrl-C may have stopped the thread that should notify."""
        while not self._changed.wait_for(free, timeout=1.0):
            pass

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold the lock as a reader: during the block, no thread changes the object."""
        mine = 0
        try:
            with self._mutex:
                self._wait(lambda: not (self._writing or self._waiting))
                self._readers, mine = self._readers + 1, 1
            yield
        finally:  # whatever is raised above, Ctrl-C too
            if mine:
                with self._mutex:
                    self._readers -= 1
                    self._changed.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock as the writer: during the block, no other thread uses the object."""
        mine = False
        try:
            with self._mutex:
                self._waiting += 1
                try:
                    self._wait(lambda: not (self._writing or self._readers))
                    self._writing = mine = True
                finally:
                    self._waiting -= 1
                    self._changed.notify_all()  # wake readers that waited for a writer that gave up
            yield
        finally:  # whatever is raised above, Ctrl-C too
            if mine:
                with self._mutex:
                    self._writing = False
                    self._changed.notify_all()


_locks: WeakSet[SharedLock] = WeakSet()


def lock_of(owner: Any) -> SharedLock:
    """Return the lock of an object, created at first use and stored as its attribute `_lock`.

    Copies, pickles and files must leave the attribute out.
    """
    state = vars(owner)
    lock: SharedLock = state.get("_lock") or state.setdefault("_lock", SharedLock())  # setdefault is atomic
    return lock


def exclusively(method: Method) -> Method:
    """Decorate a method so that no other thread uses its object during a call; see `SharedLock.writing`."""

    @wraps(method)
    def alone(self: Any, *args: Any, **kwargs: Any) -> Any:
        with lock_of(self).writing():
            return method(self, *args, **kwargs)

    return alone  # type: ignore[return-value]


def _free_all() -> None:
    """Free all locks in a forked child, which lacks the threads that held them."""
    for lock in list(_locks):
        lock._free()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_all)
