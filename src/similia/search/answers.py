"""The neighbours that an index returns: put in order, cut at a radius, and compared with the true ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.config import rows_per_block

Floats = npt.NDArray[np.floating]
Index = npt.NDArray[np.int64]
_WITHIN = 64  # neighbours that `within_radius` asks for at first


def sorted_candidates(distances: Floats, ids: Index) -> Index:
    """Return the positions that sort each row of `distances` by distance, then by id."""
    return np.lexsort((ids, distances), axis=1)


def shares_found(distances: Floats, rows: Index) -> npt.NDArray[np.float64]:
    """Return, for each query, the share of its k answers that are no farther than its true k-th neighbour.

    `distances`, shape (q, n), compare queries with all objects; `rows`, shape (q, k), are the positions of the answers.
    """
    k = rows.shape[1]
    farthest = np.partition(distances, k - 1, axis=1)[:, k - 1 : k]
    return np.asarray(np.mean(np.take_along_axis(distances, rows, axis=1) <= farthest, axis=1))


def ragged(rows: Any, ends: Any = None) -> npt.NDArray[np.object_]:
    """Return the arrays `rows` as an object array; if `ends` is given, array i is cut to ``ends[i]`` entries."""
    found = np.empty(len(rows), dtype=object)
    for i, row in enumerate(rows):
        found[i] = row if ends is None else row[: ends[i]]
    return found


def within_radius(
    nearest: Callable[[Index, int], tuple[Any, Index]], q: int, n: int, radius: float
) -> tuple[list[Any], list[Index]]:
    """Return distances and ids of the objects within a radius of each of `q` queries, nearest first.

    ``nearest(queries, k)`` returns the distances and ids of the k nearest of `n` objects to the queries at some
    positions. More and more are asked for until the last one is too far.
    """
    distances: list[Any] = [np.empty(0)] * q
    found: list[Index] = [np.empty(0, np.int64)] * q
    left, k = np.arange(q), min(n, _WITHIN)
    while len(left):
        step, unfinished = rows_per_block(64 * k), []
        for start in range(0, len(left), step):
            some = left[start : start + step]
            for i, row, ids in zip(some.tolist(), *nearest(some, k), strict=True):
                end = int(np.searchsorted(row, radius, "right"))
                distances[i], found[i] = row[:end].copy(), ids[:end].copy()
                if end == k < n:
                    unfinished.append(i)
        left, k = np.array(unfinished, np.int64), min(n, 8 * k)
    return distances, found
