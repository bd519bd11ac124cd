"""Requests that wait at the same time are joined into one batch.

A single thread answers requests. While it is busy, further requests wait; then all that ask for the same thing are
answered together, because one call on many objects takes less time than many calls. A request that finds the thread
idle is answered at once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple

Run = Callable[[Any, list[Any]], list[Any]]


class Full(Exception):
    """Too many objects are waiting."""


class _Waiting(NamedTuple):
    key: Hashable
    items: list[Any]
    answer: asyncio.Future[list[Any]]


class Batches:
    """Joins requests with equal keys.

    Parameters
    ----------
    run : callable
        ``run(key, items)`` returns a list with a result for each item. It runs in a thread.
    most_waiting : int
        Maximum number of items that may wait, besides those being worked on; a single request may have more if no other
        waits.
    most_joined : int
        Maximum number of items in a batch; a single request may have more.

    Attributes
    ----------
    n_waiting, n_batches : int
        Number of items that wait, and number of batches answered.
    """

    def __init__(self, run: Run, most_waiting: int = 10_000, most_joined: int = 256) -> None:
        self._run = run
        self._most_waiting, self._most_joined = most_waiting, most_joined
        self._queue: deque[_Waiting] = deque()
        self._thread = ThreadPoolExecutor(1, "similia")
        self._task: asyncio.Task[None] | None = None
        self.n_waiting = self.n_batches = 0

    async def submit(self, key: Hashable, items: list[Any]) -> list[Any]:
        """Return the results of items, or raise the error of ``run``; if too many wait, raise `Full` at once."""
        if self.n_waiting + len(items) > self._most_waiting and self.n_waiting:
            raise Full
        waiting = _Waiting(key, items, asyncio.get_running_loop().create_future())
        self._queue.append(waiting)
        self.n_waiting += len(items)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())
        return await waiting.answer

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while self._queue:
            batch = self._take()
            if not batch:
                continue
            answers = await loop.run_in_executor(self._thread, self._answers, batch)
            self.n_batches += 1
            for waiting, answer in zip(batch, answers, strict=True):
                if waiting.answer.done():  # the client has gone
                    continue
                if isinstance(answer, BaseException):
                    waiting.answer.set_exception(answer)
                else:
                    waiting.answer.set_result(answer)

    def _take(self) -> list[_Waiting]:
        """Remove the requests of the next batch from the queue, without those whose clients have gone."""
        batch: list[_Waiting] = []
        others: deque[_Waiting] = deque()
        size = 0
        while self._queue:
            waiting = self._queue.popleft()
            if waiting.answer.done():
                self.n_waiting -= len(waiting.items)
            elif batch and (waiting.key != batch[0].key or size + len(waiting.items) > self._most_joined):
                others.append(waiting)
            else:
                batch.append(waiting)
                size += len(waiting.items)
                self.n_waiting -= len(waiting.items)
        self._queue = others
        return batch

    def _answers(self, batch: list[_Waiting]) -> list[Any]:
        """Return the results, or the error, of each request; if the batch fails, each is tried on its own."""
        try:
            found = self._run(batch[0].key, [item for waiting in batch for item in waiting.items])
        except Exception as error:
            if len(batch) == 1:
                return [error]
            return [self._answers([waiting])[0] for waiting in batch]
        ends = [0]
        for waiting in batch:
            ends.append(ends[-1] + len(waiting.items))
        return [found[start:stop] for start, stop in pairwise(ends)]
