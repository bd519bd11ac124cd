"""Share loops that release the GIL (numba, BLAS, numpy) among threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from threading import Lock
from typing import Any

from joblib import cpu_count
from threadpoolctl import ThreadpoolController

_limit: ContextVar[int | None] = ContextVar("similia_threads", default=None)

_WORTH_THREADS = 2**28  # multiplications (a few milliseconds) below which starting threads does not pay


class _Shared:
    """The limit on BLAS that all who want one thread share: two of them, undone out of order, would last for ever."""

    lock = Lock()
    users = 0
    limit: Any = None
    n_threads = 1  # before it


def n_threads() -> int:
    """Return how many threads work may be shared among here: a core each, unless `limited_to` says fewer."""
    limit = _limit.get()
    return int(cpu_count()) if limit is None else min(limit, int(cpu_count()))


@contextmanager
def limited_to(limit: int | None) -> Iterator[None]:
    """Share work among at most `limit` threads inside; 1 is for tasks beside which others run. None changes nothing."""
    if limit is None:
        yield
        return
    token = _limit.set(limit)
    try:
        with one_blas_thread() if limit == 1 else nullcontext():
            yield
    finally:
        _limit.reset(token)


def run_in_ranges(work: Callable[[int, int], None], n: int, grain: int) -> None:
    """Call ``work(start, stop)`` on ranges that cover 0..n, in threads if there is enough to share.

    Ranges begin at multiples of `grain`, the smallest piece worth a call; which thread runs which range is
    left open, so `work` must write to its own range only. A pool of threads, not numba's ``parallel=True``:
    that takes seconds to compile.
    """
    n_grains = -(-n // grain)
    workers = min(n_threads(), n_grains) if n_grains > 1 else 1
    if workers <= 1:
        work(0, n)
        return
    step = grain * -(-n_grains // (4 * workers))  # four ranges for each thread even out the load
    with ThreadPoolExecutor(workers) as pool:
        wait_for(pool, [pool.submit(work, start, min(n, start + step)) for start in range(0, n, step)])


def wait_for(pool: ThreadPoolExecutor, tasks: Iterable[Future[Any]]) -> None:
    """Wait for tasks; at the first error, or Ctrl-C, those that have not begun never do."""
    try:
        for task in tasks:
            task.result()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise


@contextmanager
def one_blas_thread() -> Iterator[int]:
    """Hold BLAS at one thread, so that sums have one order; yield how many it had.

    May be used in several threads at once, and within itself.
    """
    with _Shared.lock:
        if _Shared.users == 0:
            blas = _blas()
            _Shared.n_threads = max((library.num_threads for library in blas.lib_controllers), default=1)
            _let_any_thread_set_limits()
            _Shared.limit = blas.limit(limits=1)
        _Shared.users += 1
    try:
        limit = _limit.get()
        yield _Shared.n_threads if limit is None else min(limit, _Shared.n_threads)
    finally:
        with _Shared.lock:
            _Shared.users -= 1
            if _Shared.users == 0:
                _let_any_thread_set_limits()
                _Shared.limit.restore_original_limits()
                _let_any_thread_set_limits()


def _let_any_thread_set_limits() -> None:
    """Undo what threadpoolctl does from 3.8 on: only the thread that set a limit first may set another one.

    The last to leave need not be the first that came, and what it sets would silently be ignored.
    """
    for library in _blas().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


@cache
def _blas() -> ThreadpoolController:
    """Return the BLAS of numpy and scipy, which are all that similia's own products use."""
    import scipy.linalg  # noqa: F401  (it has a BLAS of its own, which must be loaded to be found)

    return ThreadpoolController().select(user_api="blas")  # takes 6 ms


def run_tasks(task: Callable[[int], None], arguments: Iterable[int], work: int) -> None:
    """Call `task` on each argument, in threads if `work`, the multiplications of all, is worth them.

    Tasks that fill a small tile and use it at once gain: the use runs in parallel too, while the tile is in cache.
    """
    workers = n_threads() if work >= _WORTH_THREADS else 1
    if workers == 1:
        for argument in arguments:
            task(argument)
        return
    with ThreadPoolExecutor(workers) as pool:
        wait_for(pool, [pool.submit(task, argument) for argument in arguments])


def run_blas_tasks(task: Callable[[int], None], arguments: Iterable[int], work: int) -> None:
    """Call `task` on each argument in as many threads as BLAS may use, with BLAS at one thread meanwhile.

    Tasks that multiply small tiles and use the product at once gain: the use runs in parallel too, and no
    thread waits for another after each tile. `work` counts multiplications; little work runs as it is, and so does
    a call while BLAS is held at one thread.
    """
    if work < _WORTH_THREADS or _Shared.users:
        for argument in arguments:
            task(argument)
        return
    with one_blas_thread() as workers, ThreadPoolExecutor(workers) as pool:
        wait_for(pool, [pool.submit(task, argument) for argument in arguments])
