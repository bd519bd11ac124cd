"""Share loops that release the GIL (numba, BLAS, numpy) among threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

from joblib import cpu_count
from threadpoolctl import ThreadpoolController

_WORTH_THREADS = 2**28  # multiplications (a few milliseconds) below which starting threads does not pay
_limiting_blas = Lock()


def run_in_ranges(work: Callable[[int, int], None], n: int, grain: int) -> None:
    """Call ``work(start, stop)`` on ranges that cover 0..n, in threads if there is enough to share.

    Ranges begin at multiples of `grain`, the smallest piece worth a call; which thread runs which range is
    left open, so `work` must write to its own range only. A pool of threads, not numba's ``parallel=True``:
    that takes seconds to compile.
    """
    n_grains = -(-n // grain)
    n_threads = min(cpu_count(), n_grains)
    if n_threads <= 1:
        work(0, n)
        return
    step = grain * -(-n_grains // (4 * n_threads))  # four ranges for each thread even out the load
    with ThreadPoolExecutor(n_threads) as pool:
        for task in [pool.submit(work, start, min(n, start + step)) for start in range(0, n, step)]:
            task.result()


def run_blas_tasks(task: Callable[[int], None], arguments: Iterable[int], work: int) -> None:
    """Call `task` on each argument in as many threads as BLAS may use, with BLAS at one thread meanwhile.

    Tasks that multiply small tiles and use the product at once gain: the use runs in parallel too, and no
    thread waits for another after each tile. `work` counts multiplications; little work runs as it is, and so does
    a call during another one: two limits on BLAS, undone out of order, would leave it at one thread for ever.
    """
    if work < _WORTH_THREADS or not _limiting_blas.acquire(blocking=False):
        for argument in arguments:
            task(argument)
        return
    try:
        blas = ThreadpoolController().select(user_api="blas")
        n_threads = max((library.num_threads for library in blas.lib_controllers), default=1)
        with blas.limit(limits=1), ThreadPoolExecutor(n_threads) as pool:
            for done in [pool.submit(task, argument) for argument in arguments]:
                done.result()
    finally:
        _limiting_blas.release()
