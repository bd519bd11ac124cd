"""Locks for objects shared by threads: many readers or one writer; a forked child starts with free locks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from threading import Condition, Lock
from typing import Any, TypeVar
from weakref import WeakSet

Method = TypeVar("Method", bound=Callable[..., Any])


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
        """Hold the lock as a reader: no thread changes the object inside."""
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
        """Hold the lock as the writer: no other thread uses the object inside."""
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
    """Make a method run while no other thread uses its object; see `SharedLock.writing`."""

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
