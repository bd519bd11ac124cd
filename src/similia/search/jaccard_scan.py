r"""Exact search by the Jaccard distance of packed bits, :math:`1 - |x \cap y| / |x \cup y|`, pruned by numbers of bits.

If x has a bits and y has b, they have at most min(a, b) in common, and distance d needs at least
(1 - d) (a + b) / (2 - d) in common. Rows are visited in ascending order of their number of bits, outwards from that of
the queries, in tiles that stay in cache. A tile whose rows have too few or too many bits is skipped for a query. In
other tiles, the words in which the query has most bits come first. Once the bits found so far and those that the query
has left are too few for every row, the tile is abandoned. Words without a bit of the query are never read.

Cost, if nothing can be ruled out: that of Hamming search (`scan`).
Paper: Swamidass & Baldi, "Bounds and algorithms for fast exact searches of chemical fingerprints in linear and
sublinear time", JCIM 47, 2007.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from similia.codes.bits import as_words
from similia.core.hashing import popcount
from similia.core.jit import njit
from similia.core.threads import run_in_ranges
from similia.search._rows import Codes, Part
from similia.search.scan import best, replace_last
from similia.storage.store import Ids

_TOGETHER = 128  # queries of similar numbers of bits that share a tile
_FEW = 2  # for fewer queries, transposing a tile costs more than it saves
_TILE_WORDS = 4096  # words of a tile
_TILES_OF_A_THREAD = 32
_LAST = 2**63 - 1
_SLACK = 1e-12  # relative: for the rounding of bounds
_PADDED = 2**12  # rows counted at a time
Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]


class BySize(NamedTuple):
    """The rows of a part in ascending order of their number of bits."""

    order: npt.NDArray[np.int32]  # positions in the part
    sizes: npt.NDArray[np.int32]  # numbers of bits, ascending


def sorted_by_size(parts: Sequence[Part]) -> list[BySize]:
    """Return the order of the rows of each part."""
    found = []
    for part in parts:
        sizes = np.empty(len(part.ids), np.int32)

        def fill(first: int, last: int, part: Part = part, sizes: Any = sizes) -> None:
            for at in range(first, last, _PADDED):
                sizes[at : min(at + _PADDED, last)] = bit_counts(as_words(part.codes[at : min(at + _PADDED, last)]))

        run_in_ranges(fill, len(sizes), 8 * _PADDED)
        order = np.argsort(sizes, kind="stable").astype(np.int32)
        found.append(BySize(order, sizes[order]))
    return found


def nearest(parts: Sequence[Part], by_size: Sequence[BySize], queries: Codes, k: int) -> tuple[Floats, Ids]:
    """Return distances and ids of the `k` nearest rows of each query, both (q, k), ordered by distance, then id.

    `parts` must hold at least `k` rows that are not removed; `by_size` is ``sorted_by_size(parts)``.
    """
    words = as_words(queries)
    own = bit_counts(words)
    order = np.argsort(own, kind="stable")
    distances, ids = np.empty((len(queries), k)), np.empty((len(queries), k), np.int64)
    for start in range(0, len(order), _TOGETHER):
        some = order[start : start + _TOGETHER]
        distances[some], ids[some] = _nearest(parts, by_size, words[some], own[some], k)
    return distances, ids


def _nearest(
    parts: Sequence[Part], by_size: Sequence[BySize], queries: Words, own: npt.NDArray[np.int32], k: int
) -> tuple[Floats, Ids]:
    bounds = np.full(len(queries), np.inf)  # shared by threads: the k-th best of any range bounds the result
    plan = _plan(queries)
    tile_rows = max(64, min(512, _TILE_WORDS // queries.shape[1]))
    found: list[tuple[Floats, Ids]] = []
    for part, (order, sizes) in zip(parts, by_size, strict=True):
        words = _words_of(part)
        n_tiles = -(-len(order) // tile_rows)
        home = int(np.searchsorted(sizes, own[len(own) // 2])) // tile_rows
        tiles = np.argsort(np.abs(np.arange(n_tiles) - home), kind="stable")

        def scan(
            first: int, last: int, rows: Any = (words, order, sizes, part.ids, part.dead), tiles: Any = tiles
        ) -> None:
            distances, ids = np.full((len(queries), k), np.inf), np.full((len(queries), k), _LAST)
            _scan(*rows, queries, own, *plan, tiles[first:last], tile_rows, bounds, distances, ids)
            found.append((distances, ids))

        run_in_ranges(scan, n_tiles, _TILES_OF_A_THREAD)
    return best(found, k)


def _words_of(part: Part) -> Words:
    """Return the codes as 64-bit words, read-only as memory maps are; a copy only if rows are no whole words."""
    words = as_words(part.codes)
    words = words.view()
    words.flags.writeable = False
    return words


def _plan(queries: Words) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return the words of each query, those with most bits first, and how many bits are left before each of them."""
    counts = bit_counts(queries.reshape(-1, 1)).reshape(queries.shape)
    words = np.argsort(-counts, axis=1, kind="stable").astype(np.int32)
    taken = np.cumsum(np.take_along_axis(counts, words, axis=1), axis=1)
    left = np.zeros((len(queries), queries.shape[1] + 1), np.int32)
    left[:, 0] = taken[:, -1]
    left[:, 1:] = taken[:, -1:] - taken
    return words, left


@njit()
def bit_counts(words):  # type: ignore[no-untyped-def]
    """Return the number of bits of each row."""
    counts = np.zeros(len(words), np.int32)
    for i in range(len(words)):
        total = np.uint64(0)
        for w in range(words.shape[1]):
            total += popcount(words[i, w])
        counts[i] = total
    return counts


@njit()
def _needed(bound, size, low):  # type: ignore[no-untyped-def]
    """Return how many bits a row of `low` bits or more must share with a query of `size` bits to be within `bound`."""
    if bound >= 1:
        return 0
    return np.int64(np.ceil((1 - bound) * (size + low) / (2 - bound) * (1 - _SLACK) - _SLACK))


@njit()
def _scan(  # type: ignore[no-untyped-def]
    rows, order, sizes, ids, dead, queries, own, words, left, tiles, tile_rows, bounds, distances, found
):
    """Replace entries of the heaps `distances`, `found` by nearer rows of some tiles."""
    n_words, few = queries.shape[1], len(queries) < _FEW
    turned, counts = np.empty((n_words, tile_rows), np.uint64), np.empty(tile_rows, np.uint64)
    for tile in tiles:
        first = tile * tile_rows
        n = min(tile_rows, len(order) - first)
        low, high = sizes[first], sizes[first + n - 1]
        ready = False
        for i in range(len(queries)):
            need = _needed(bounds[i], own[i], low)
            if need > min(own[i], high):
                continue
            if few:
                _search_rows(rows, order, sizes, ids, dead, queries[i], own[i], words[i], left[i], first, n, bounds,
                             distances, found, i)  # fmt: skip
                continue
            if not ready:
                for j in range(n):
                    row = order[first + j]
                    for w in range(n_words):
                        turned[w, j] = rows[row, w]
                ready = True
            if np.int64(_count(turned, n, queries[i], words[i], left[i], need, counts)) < need:
                continue
            for j in range(n):
                shared = np.int64(counts[j])
                if shared >= need and not dead[order[first + j]]:
                    row = order[first + j]
                    _offer(shared, own[i], sizes[first + j], ids[row], bounds, distances, found, i)
                    need = _needed(bounds[i], own[i], low)


@njit()
def _search_rows(  # type: ignore[no-untyped-def]
    rows, order, sizes, ids, dead, query, own, words, left, first, n, bounds, distances, found, i
):
    """Compare one query with the rows of a tile one by one."""
    for j in range(first, first + n):
        row, shared, t = order[j], np.int64(0), 0
        need = _needed(bounds[i], own, sizes[j])
        while left[t] > 0 and shared + left[t] >= need:
            w = words[t]
            shared += np.int64(popcount(query[w] & rows[row, w]))
            t += 1
        if shared >= need and not dead[row]:
            _offer(shared, own, sizes[j], ids[row], bounds, distances, found, i)


@njit()
def _count(tile, n, query, words, left, need, counts):  # type: ignore[no-untyped-def]
    """Fill `counts` with the bits shared by `query` and n codes, columns of `tile`; return an upper bound on them.

    If the bound is below `need`, the counts are incomplete.
    """
    counts[:n] = 0
    t, greatest = 0, np.uint64(0)
    while left[t] > 0:
        if t + 4 <= len(words):  # four words at a time, so that counts are loaded and stored once
            a, b, c, d = query[words[t]], query[words[t + 1]], query[words[t + 2]], query[words[t + 3]]
            A, B, C, D = tile[words[t]], tile[words[t + 1]], tile[words[t + 2]], tile[words[t + 3]]
            for j in range(n):
                counts[j] += popcount(a & A[j]) + popcount(b & B[j]) + popcount(c & C[j]) + popcount(d & D[j])
            t += 4
        else:
            a, A = query[words[t]], tile[words[t]]
            for j in range(n):
                counts[j] += popcount(a & A[j])
            t += 1
        greatest = np.uint64(0)
        for j in range(n):
            greatest = max(greatest, counts[j])
        if np.int64(greatest) + left[t] < need:
            return greatest
    return greatest


@njit()
def _offer(shared, own, size, id_, bounds, distances, found, i):  # type: ignore[no-untyped-def]
    """Put a row of `size` bits into the heap of query i if it is nearer than the last."""
    union = own + size - shared
    distance = 1 - shared / union if union > 0 else 0.0
    if distance < distances[i, 0] or (distance == distances[i, 0] and id_ < found[i, 0]):
        replace_last(distances[i], found[i], distance, id_)
        bounds[i] = min(bounds[i], distances[i, 0])
