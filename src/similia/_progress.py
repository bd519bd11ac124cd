"""One progress bar for all long loops; silent unless ``config(progress=True)``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from similia._config import settings

T = TypeVar("T")


def track(items: Iterable[T], description: str, total: int | None = None) -> Iterator[T]:
    """Yield `items`, drawing a bar with rate and time left if progress is switched on."""
    if not settings().progress:
        yield from items
        return
    from rich.console import Console
    from rich.progress import track as rich_track

    yield from rich_track(items, description, total=total, console=Console(stderr=True), transient=True)
