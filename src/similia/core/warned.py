"""Warnings of one thread, heard while other threads work.

`warnings.catch_warnings` changes what all threads share: of two that leave it out of order, the first puts back what
the second has changed, and warnings are lost from then on.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any

_list: ContextVar[list[warnings.WarningMessage] | None] = ContextVar("similia_warnings", default=None)


class _Shared:
    """What the first who listens changes, and the last one puts back."""

    lock = Lock()
    users = 0
    before: Any = None


@contextmanager
def heard() -> Iterator[list[warnings.WarningMessage]]:
    """Collect the warnings of this thread, and of those it shares work among, in place of showing them."""
    mine, token, said = 0, None, []  # type: ignore[var-annotated]
    try:
        with _Shared.lock:
            _Shared.users, mine = _Shared.users + 1, 1  # one step, so that Ctrl-C comes before or after both
            if _Shared.before is None:
                _Shared.before = warnings.catch_warnings()
                _Shared.before.__enter__()
                warnings.simplefilter("always")
                warnings.showwarning = _for(warnings.showwarning)
        token = _list.set(said)
        yield said
    finally:
        if token is not None:
            _list.reset(token)
        if mine:
            with _Shared.lock:
                _Shared.users -= 1
                if _Shared.users == 0 and _Shared.before is not None:
                    before, _Shared.before = _Shared.before, None
                    before.__exit__(None, None, None)


def _for(others: Any) -> Any:
    """Return a `showwarning` that keeps what belongs to a listener and shows what does not."""

    def show(message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None) -> None:
        said = _list.get()
        if said is None:
            others(message, category, filename, lineno, file, line)
        else:
            said.append(warnings.WarningMessage(message, category, filename, lineno, file, line))

    return show
