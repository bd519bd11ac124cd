"""Locks of objects that several threads use: many may read at once, one may change, a forked child starts free."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition
from typing import Any
from weakref import WeakSet


class SharedLock:
    """Held by any number of readers, or by one writer; a waiting writer goes before new readers.

    A thread that holds the lock must not ask for it again.
    """

    def __init__(self) -> None:
        self._free()
        _locks.add(self)

    def _free(self) -> None:
        self._changed = Condition()
        self._readers = self._waiting = 0
        self._writing = False

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Wait until nobody changes the object; nobody changes it inside."""
        with self._changed:
            self._changed.wait_for(lambda: not (self._writing or self._waiting))
            self._readers += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers -= 1
                self._changed.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Wait until nobody else uses the object; nobody else uses it inside."""
        with self._changed:
            self._waiting += 1
            try:
                self._changed.wait_for(lambda: not (self._writing or self._readers))
                self._writing = True
            finally:
                self._waiting -= 1
                self._changed.notify_all()  # readers that waited for a writer who gave up
        try:
            yield
        finally:
            with self._changed:
                self._writing = False
                self._changed.notify_all()


_locks: WeakSet[SharedLock] = WeakSet()


def lock_of(owner: Any) -> SharedLock:
    """Return the one lock of an object, made at first use and kept as its attribute `_lock`.

    Copies, pickles and files must leave the attribute out: they are other objects.
    """
    state = vars(owner)
    lock: SharedLock = state.get("_lock") or state.setdefault("_lock", SharedLock())  # setdefault is atomic
    return lock


def _free_all() -> None:
    """Free all locks in a forked child, where the threads that held them do not exist."""
    for lock in list(_locks):
        lock._free()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_all)
