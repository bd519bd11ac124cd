"""One progress display for all long loops; silent unless ``config(progress=True)``."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import Any, TypeVar

from similia._config import settings

T = TypeVar("T")

_display: Any = None  # the terminal has room for one; loops inside loops are further lines of it


def track(items: Iterable[T], description: str, total: int | None = None) -> Generator[T, None, None]:
    """Yield `items`, drawing a bar with count and time left if progress is switched on."""
    global _display
    if not settings().progress:
        yield from items
    elif _display is not None:
        yield from _one_line(items, description, total)
    else:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as _display:
            try:
                yield from _one_line(items, description, total)
            finally:
                _display = None


def _one_line(items: Iterable[T], description: str, total: int | None) -> Iterator[T]:
    display = _display
    line = display.add_task(description, total=total)
    try:
        for done, item in enumerate(items, start=1):
            yield item
            display.advance(line)
            if line == 0 and not display.console.is_terminal:  # a log gets lines of the outermost loop, not bars
                display.console.print(f"{description}: {done}{f'/{total}' if total else ''}", highlight=False)
    finally:
        display.remove_task(line)
