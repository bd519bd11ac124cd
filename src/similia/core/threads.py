"""Run loops that release the GIL (numba, BLAS, numpy) in threads, and lock shared objects, safely under Ctrl-C.

A signal can raise an exception between any two calls of the main thread. In `threading` and `concurrent.futures` this
may happen just after Python code has acquired a lock, which is then never released. Here threads communicate through
queues and locks written in C, which no signal leaves locked.
"""

from __future__ import annotations

import os
import warnings
from _thread import start_new_thread
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar, copy_context
from functools import cache, wraps
from queue import Empty, SimpleQueue
from threading import Condition, Lock
from typing import Any, TypeVar
from weakref import WeakSet

from joblib import cpu_count
from threadpoolctl import ThreadpoolController

Argument = TypeVar("Argument")
Result = TypeVar("Result")
Method = TypeVar("Method", bound=Callable[..., Any])
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
