"""Settings that hold for a block of code: memory for temporary arrays, processes, progress bars."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


@dataclass(frozen=True)
class Settings:
    """The settings that `config` changes; `config` says what they mean."""

    max_memory: int = 2**30
    n_jobs: int | None = None
    progress: bool = False
    part: bool = False  # while streaming, warn even if only a few objects are affected
    lazy: bool = False  # while reading one part of a Dask collection
    start: int | None = None  # position of the first object of this part, if it is known


_settings: ContextVar[Settings] = ContextVar("similia_settings", default=Settings())  # noqa: B039, it is frozen


def settings() -> Settings:
    """Return the settings in force; `similia.config` changes them."""
    return _settings.get()


@contextmanager
def config(
    *, max_memory: int | str | None = None, n_jobs: int | None = None, progress: bool | None = None
) -> Iterator[Settings]:
    """Change settings inside a ``with`` block.

    Settings that are not given keep their values. The block changes the settings only for the thread (or context of
    `contextvars`) that entered it. Threads that you start inside the block use the default settings, so enter `config`
    in each of them. A call without ``with`` changes nothing.

    Parameters
    ----------
    max_memory : int or str, optional
        Memory for the temporary arrays of one operation: a number of bytes, or text such as ``"512MiB"`` or ``"2GB"``;
        1 GiB by default. Comparisons of n with m objects are split into blocks that fit. Results do not depend on this
        setting.
    n_jobs : int, optional
        Number of processes in which `pairwise` calls Python functions. aeon and tslearn receive it as their ``n_jobs``.
        1 by default; -1 means one for each core.
    progress : bool, optional
        Whether long loops show a progress bar on the terminal; False by default.

    Yields
    ------
    Settings
        The settings in force inside the block.

    Raises
    ------
    ValueError
        If `max_memory` is not a finite size of at least one byte, or if `n_jobs` is 0 or not an integer.

    Examples
    --------
    >>> import similia as sm
    >>> with sm.config(max_memory="64MiB") as inside:
    ...     inside.max_memory
    67108864
    """
    if max_memory is not None:
        max_memory = _parse_bytes(max_memory)
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(f"n_jobs must be a number of processes, or -1 for one for each core, got {n_jobs!r}")
    given = {"max_memory": max_memory, "n_jobs": n_jobs, "progress": progress}
    with _changed(**{name: value for name, value in given.items() if value is not None}):
        yield settings()


@contextmanager
def part_of_more(*, lazy: bool = False, start: int | None = None) -> Iterator[None]:
    """Tell estimators called in the block that their input is one part of a stream, or of a Dask collection if `lazy`.

    An estimator usually warns only if most of its input objects look suspicious. For a part of a stream, it warns even
    about a single one; for a part of a Dask collection, it never warns if the part has only a few objects. With
    `start`, the position of the first object, warnings number objects in the whole collection.
    """
    with _changed(part=not lazy, lazy=lazy, start=start):
        yield


@contextmanager
def _changed(**changes: Any) -> Iterator[None]:
    token = _settings.set(replace(settings(), **changes))
    try:
        yield
    finally:
        _settings.reset(token)


def rows_per_block(bytes_per_row: int, at_most: int | None = None) -> int:
    """Return how many rows fit into ``similia.config(max_memory=...)``: at least 1, and no more than `at_most`."""
    rows = max(1, settings().max_memory // max(1, bytes_per_row))
    return rows if at_most is None else min(rows, at_most)


def check_memory(takes: str, needed: int, instead: str) -> None:
    """Raise if `needed` bytes exceed ``max_memory``; the message starts with `takes` and advises `instead`."""
    most = settings().max_memory
    if needed > most:
        raise ValueError(
            f"{takes} {needed / 2**20:.0f} MiB, and max_memory is {most / 2**20:.0f} MiB; {instead}, or allow more "
            "with similia.config(max_memory=...)"
        )


def _parse_bytes(size: float | str) -> int:
    if isinstance(size, str):
        digits = size.strip().rstrip("BKMGIbkmgi ")
        unit = size.strip()[len(digits) :].strip().upper() or "B"
        try:
            size = float(digits) * _UNITS[unit]
        except (KeyError, ValueError):
            raise ValueError(f"max_memory={size!r} is not a size; write a number of bytes or, e.g., '512MiB'") from None
    if not isinstance(size, Real) or not 1 <= size < math.inf:
        raise ValueError(f"max_memory must be a finite number of bytes, at least 1, got {size}")
    return int(size)
