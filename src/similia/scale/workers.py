"""Apply a function to each chunk of a source and yield results in order: in this process, or on a Dask cluster.

In this process, a thread reads the next chunk while the current one is processed. On a cluster with w workers, at most
2 w + 2 chunks are in progress, and each task uses one thread. If a worker dies, another one takes over its chunk. The
model is itself the result of a task, so the scheduler can recompute it if the workers that hold it die. If the
scheduler is lost, the run ends with an error; if you start it again, it resumes.
"""

from __future__ import annotations

import contextvars
import logging
import pickle
import re
import signal
import socket
import time
import uuid
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from similia.core.config import collected_warnings, config, limited_to, settings
from similia.core.validation import BadItem, BadPair, BadParameter, DataError, WarningData, warn_once, warning_of_part
from similia.objects import n_objects, take

if TYPE_CHECKING:
    from similia.sources.source import Chunk

_ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
PATIENCE = 60.0  # seconds to wait for a cluster without workers
_FIRST = 10.0  # seconds to wait for a cluster at the start
_POLL = 5.0  # seconds between checks for workers
_SETTINGS = {
    "distributed.admin.large-graph-warning-threshold": "1TB",
    # without Dask's MALLOC_TRIM_THRESHOLD_, which makes workers return each array to the system and take twice the time
    "distributed.nanny.pre-spawn-environ": dict.fromkeys(_ONE_THREAD, 1),
}
Function = Callable[[Any, Any], Any]
Results = Generator[tuple["Chunk", Any], None, None]


class Here:
    """Process chunks in this process; if `ahead`, a thread reads the next chunk at the same time."""

    def __init__(self, ahead: bool = True) -> None:
        self.ahead = ahead

    def map(self, function: Function, model: Any, chunks: Iterable[Chunk]) -> Results:
        """Yield pairs of a chunk and ``function(model, chunk.objects)``, in order."""
        known: Heard = set()
        with closing(_read_ahead(chunks)) if self.ahead else nullcontext(chunks) as stream:
            for chunk in stream:
                yield chunk, _said(_worked(function, model, chunk.objects, chunk.start), known)


def _read_ahead(chunks: Iterable[Chunk]) -> Generator[Chunk, None, None]:
    """Yield chunks; while the caller works on a chunk, a thread reads the next one."""
    rest = iter(chunks)
    run: Callable[..., Any] = contextvars.copy_context().run
    with ThreadPoolExecutor(1, "similia-reader") as thread:
        coming = thread.submit(run, next, rest, None)
        while (chunk := coming.result()) is not None:
            coming = thread.submit(run, next, rest, None)
            yield chunk


# ---- which object an error or warning is about
Heard = set[tuple[Any, str]]  # kinds of warnings that were already emitted in this run


def _worked(function: Function, model: Any, objects: Any, start: int) -> tuple[Any, list[WarningData]]:
    """Return ``function(model, objects)`` and its warnings; warnings and errors give positions in the whole source."""
    with collected_warnings() as caught:
        try:
            result = function(model, objects)
        except Exception as error:
            located = _located(error, function, model, objects, start)
            raise located from (None if located is error else error)
    return result, [warning_of_part(warning, start) for warning in caught]


def _said(worked: tuple[Any, list[WarningData]], known: Heard) -> Any:
    """Emit the warnings of a chunk, except kinds in `known`, which were emitted before; return the result."""
    result, warnings = worked
    for warning in warnings:
        warn_once(warning, known)
    return result


def _located(error: Exception, function: Function, model: Any, objects: Any, start: int) -> Exception:
    """Return an error like `error` that names the position of the bad object in the source.

    If `error` has an index, `start`, the position of the chunk, is added to it. Otherwise `function` is called again on
    halves of the chunk, then on halves of the failing half and so on, to find the bad object.
    """
    n = n_objects(objects)
    where = f"objects {start} to {start + n - 1}"
    if isinstance(error, MemoryError):
        return OSError(f"{where} do not fit into memory together ({error}); lower chunk or max_memory")
    if isinstance(error, OSError | BadParameter):  # about no object
        return error
    kind = TypeError if isinstance(error, TypeError) else ValueError
    if isinstance(error, BadPair) or (isinstance(error, BadItem) and error.index is not None):
        return error.shifted(start)
    first, size = 0, n
    while size > 1:
        half = size // 2
        if not _fails(function, model, take(objects, np.arange(first, first + half))):
            first, half = first + half, size - half
        size = half
    if _fails(function, model, take(objects, [first])):
        where = f"X[{start + first}]"
    name = "" if isinstance(error, TypeError | ValueError) else f"{type(error).__name__}: "
    return kind(f"{where}: {name}{error}")


def _fails(function: Function, model: Any, objects: Any) -> bool:
    try:
        function(model, objects)
    except Exception:
        return True
    return False


# ---- Dask
class OnDask:
    """Context manager that processes chunks on a Dask cluster.

    `workers` is a number of processes to start on this machine, the address of a scheduler, or a `distributed.Client`.
    """

    def __init__(self, workers: Any) -> None:
        self.workers = workers
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        dask, distributed = import_dask()
        with ExitStack() as stack:
            stack.enter_context(dask.config.set(_SETTINGS))
            stack.enter_context(_quiet_logs())
            self.client = self._connected(distributed.Client, stack)
            if isinstance(self.workers, int):
                with suppress(OSError):  # a worker has just died; new ones register the callback
                    self.client.register_worker_callbacks(_ignore_interrupts)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _connected(self, Client: Any, stack: ExitStack) -> Any:
        """Return a client of the cluster once it has a worker; raise if it has none within `_FIRST` seconds."""
        soon, where = min(PATIENCE, _FIRST), self.workers
        if isinstance(where, int):
            where = stack.enter_context(_local_cluster(where))
        try:
            if isinstance(where, Client):
                client = where
            else:
                if isinstance(where, str):  # a client would retry for a long time
                    socket.create_connection(_host_and_port(where), timeout=soon).close()
                client = Client(where, timeout=soon, set_as_default=False)
                stack.callback(_close, client)
            client.wait_for_workers(1, timeout=soon)
        except (OSError, TimeoutError) as error:
            raise _cluster_error(
                f"cannot be reached or has no workers ({type(error).__name__}): {self.workers}"
            ) from error
        return client

    def map(self, function: Function, model: Any, chunks: Iterable[Chunk]) -> Results:
        import cloudpickle

        payload = cloudpickle.dumps((function, model), protocol=pickle.HIGHEST_PROTOCOL)
        under_way: deque[tuple[Chunk, Any]] = deque()
        known: Heard = set()
        name = f"similia-{uuid.uuid4().hex}"
        try:
            there = self.client.submit(pickle.loads, payload, key=f"{name}-model", pure=False)
            for chunk in chunks:
                task = (there, chunk.objects, chunk.start, settings().max_memory)
                future = self.client.submit(_in_worker, *task, key=f"{name}-{chunk.start}", pure=False)
                under_way.append((chunk, future))
                while len(under_way) > 2 * max(1, len(self.client.nthreads())):
                    yield self._first(under_way, known)
            while under_way:
                yield self._first(under_way, known)
        except Exception as error:
            if not self._is_lost(error):
                raise
            raise _cluster_error(f"was lost ({type(error).__name__})") from error
        finally:
            for _, future in under_way:
                with suppress(Exception):
                    future.cancel(force=True)

    def _first(self, under_way: deque[tuple[Chunk, Any]], known: Heard) -> tuple[Chunk, Any]:
        """Return the oldest chunk and its result, or raise its error; wait at most `PATIENCE` seconds for workers."""
        from distributed import KilledWorker
        from distributed import TimeoutError as NotYet

        chunk, future = under_way[0]
        idle = time.monotonic()
        while True:
            try:
                done, value = future.result(timeout=_POLL)
                break
            except NotYet:
                if self.client.nthreads():
                    idle = time.monotonic()
                if time.monotonic() - idle > PATIENCE:
                    raise _cluster_error("has no workers any more") from None
            except KilledWorker as error:
                raise ConnectionError(
                    f"the workers that got objects {chunk.start} to {chunk.stop - 1} died, one after the other (out of "
                    "memory?); run the same again, with a smaller chunk, to resume"
                ) from error
        under_way.popleft()
        if not done:
            raise value
        return chunk, _said(value, known)

    def _is_lost(self, error: Exception) -> bool:
        """Return whether an error means that the scheduler is gone or has lost its state."""
        from asyncio import CancelledError as Cancelled

        from distributed.comm import CommClosedError

        return isinstance(error, Cancelled | CancelledError | CommClosedError) or self.client.status != "running"


def _close(client: Any) -> None:
    with suppress(Exception):
        client.close(timeout=2)


def _cluster_error(what: str) -> ConnectionError:
    return ConnectionError(f"the cluster {what}; start it and run the same again to resume")


def _host_and_port(address: str) -> tuple[str, int]:
    """Return host and port of a scheduler's address; raise if the address is malformed or its host is unknown."""
    found = re.fullmatch(r"(?:(?:tcp|tls)://)?\[?([^\[\]/]+?)\]?:(\d{1,5})", address.strip())
    if found is None:
        raise ValueError(f"{address!r} is not the address of a scheduler, expected e.g. tcp://10.0.0.1:8786")
    try:
        socket.getaddrinfo(found[1], int(found[2]))
    except (OSError, OverflowError) as error:
        raise ValueError(f"{address!r} names an unknown machine ({error})") from None
    return found[1], int(found[2])


def _local_cluster(n_workers: int) -> Any:
    """Start worker processes on this machine; Dask's dashboard, which cannot be turned off, gets any free port."""
    from distributed import LocalCluster

    page = {"dashboard_address": ":0", "scheduler_kwargs": {"dashboard": False}}
    try:
        return LocalCluster(n_workers, processes=True, threads_per_worker=1, silence_logs=50, **page)
    except RuntimeError as error:
        raise ConnectionError(
            f"cannot start the processes ({error}); run the same again; a script must call this under "
            'if __name__ == "__main__":'
        ) from error


@contextmanager
def _quiet_logs() -> Iterator[None]:
    """Return a context without Dask's logs of lost workers and connections; this module raises errors itself."""
    import distributed  # noqa: F401  (it sets up the handlers)

    handlers = [(handler, handler.level) for handler in logging.getLogger("distributed").handlers]
    for handler, _ in handlers:
        handler.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for handler, level in handlers:
            handler.setLevel(level)


def _ignore_interrupts() -> None:
    """Ignore Ctrl-C in a worker: a terminal sends it to all processes, but only the one that commits must react."""
    with suppress(ValueError):  # fails if the worker is a thread
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _in_worker(model: tuple[Function, Any], objects: Any, start: int, max_memory: int) -> tuple[bool, Any]:
    """Return (True, (result, warnings)), or (False, error), so that the task itself never fails."""
    function, fitted = model
    with config(max_memory=max_memory, progress=False), limited_to(1):
        try:
            return True, _worked(function, fitted, objects, start)
        except (TypeError, OSError, ValueError) as error:
            if isinstance(error, DataError):
                return False, error
            return False, next(k(str(error)) for k in (TypeError, OSError, ValueError) if isinstance(error, k))


@contextmanager
def opened(workers: Any, ahead: bool = True) -> Iterator[Here | OnDask]:
    """Return a context with an object whose `map` processes chunks: a `Here` if `workers` is None, else an `OnDask`."""
    if workers is None:
        yield Here(ahead)
    else:
        with OnDask(workers) as cluster:
            yield cluster


def import_dask() -> tuple[Any, Any]:
    """Return the modules dask and distributed, or raise an error that explains how to install them."""
    try:
        import dask
        import distributed
    except ImportError:
        raise ImportError("working on a cluster needs Dask: pip install 'similia[dask]'") from None
    return dask, distributed
