r"""Exact search by the Jaccard distance of packed bits, :math:`1 - |x \cap y| / |x \cup y|`, pruned by numbers of bits.

Only bits that are 1 count. If x has a of them and y has b, they share at most min(a, b), and a distance of at most d
requires at least (1 - d) (a + b) / (2 - d) shared bits. Rows are sorted by their number of bits and divided into tiles
that stay in cache. The tiles are visited outwards from the number of bits of the queries. A tile whose rows have too
few or too many bits is skipped for a query. In other tiles, x and y have at most the sum over words of min(a_w, b_w)
bits in common, where a_w and b_w are their bits in word w. Each of these numbers takes one byte for a word of 64 bits,
so this bound takes less time than a comparison, and saves most for queries of up to 255 bits. Only rows that pass it
are compared. If more than a quarter pass, the whole tile is compared, beginning with the words in which the query has
the most rare bits. Once the shared bits found so far and the remaining bits of the query are too few for every row, the
tile is abandoned.

Cost, if nothing can be ruled out: the steps of Hamming search (`scan`), and gathering each tile row by row. Memory: an
eighth of that of the codes, and 8 bytes for each row. Paper: Swamidass & Baldi, "Bounds and algorithms for fast exact
searches of chemical fingerprints in linear and sublinear time", JCIM 47, 2007.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from similia.codes.bits import as_words
from similia.core.config import rows_per_block
from similia.core.hashing import popcount
from similia.core.jit import njit
from similia.core.threads import run_in_ranges
from similia.search._rows import Codes, Part
from similia.search.scan import best, replace_last
from similia.storage.store import Ids

_TOGETHER = 128  # queries of similar numbers of bits that share a tile
_TILE_WORDS = 4096  # words of a tile
_TILES_OF_A_THREAD = 32
_DIRECT, _WAIT = 4, 63  # rows are compared alone if at most one in 4 passes; else the next 63 tiles as a whole
_RANGES = 16  # of tiles with neighbours of their own, about
_SAMPLE = 2000  # rows in which bits are counted
_LAST = 2**63 - 1
_SLACK = 1e-12  # relative: for the rounding of bounds
_PADDED = 2**12  # rows counted at a time
Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]


class BySize(NamedTuple):
    """The rows of a part in ascending order of their number of bits."""

    order: npt.NDArray[np.int32]  # positions in the part
    sizes: npt.NDArray[np.int32]  # numbers of bits, ascending
    frequency: npt.NDArray[np.float64]  # of each bit, in a sample of the rows
    in_words: npt.NDArray[np.uint8]  # (tiles, words, rows of a tile): number of bits in each word; 0 past the last row


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
        some = as_words(part.codes[:: max(1, len(sizes) // _SAMPLE)]).view(np.uint8)
        frequency = np.unpackbits(some, axis=1).mean(axis=0)
        found.append(BySize(order, sizes[order], frequency, _in_words(as_words(part.codes), order)))
    return found


def nearest(parts: Sequence[Part], by_size: Sequence[BySize], queries: Codes, k: int) -> tuple[Floats, Ids]:
    """Return distances and ids of the `k` nearest rows of each query, both (q, k), ordered by distance, then id.

    `parts` must hold at least `k` rows that are not removed; `by_size` is ``sorted_by_size(parts)``.
    """
    words = as_words(queries)
    own = bit_counts(words)
    order = np.argsort(own, kind="stable")
    distances, ids = np.empty((len(queries), k)), np.empty((len(queries), k), np.int64)
    step = rows_per_block(24 * k * _RANGES, at_most=_TOGETHER)
    for start in range(0, len(order), step):
        some = order[start : start + step]
        distances[some], ids[some] = _nearest(parts, by_size, words[some], own[some], k)
    return distances, ids


def _nearest(
    parts: Sequence[Part], by_size: Sequence[BySize], queries: Words, own: npt.NDArray[np.int32], k: int
) -> tuple[Floats, Ids]:
    bounds = np.full(len(queries), np.inf)  # shared by threads: the k-th best of any range bounds the result
    tile_rows = _rows_of_a_tile(queries.shape[1])
    found: list[tuple[Floats, Ids]] = []
    each = bit_counts(queries.reshape(-1, 1)).reshape(queries.shape).astype(np.uint8)
    for part, (order, sizes, frequency, in_words) in zip(parts, by_size, strict=True):
        plan = _plan(queries, each, frequency)
        n_tiles = -(-len(order) // tile_rows)
        home = int(np.searchsorted(sizes, own[len(own) // 2])) // tile_rows
        tiles = np.argsort(np.abs(np.arange(n_tiles) - home), kind="stable")

        arrays: list[Any] = [as_words(part.codes), order, sizes, in_words, part.ids, part.dead]
        rows = tuple(map(_read_only, arrays))

        def scan(first: int, last: int, rows: Any = rows, plan: Any = plan, tiles: Any = tiles) -> None:
            distances, ids = np.full((len(queries), k), np.inf), np.full((len(queries), k), _LAST)
            _scan(*rows, queries, own, each, *plan, tiles[first:last], tile_rows, bounds, distances, ids)
            found.append((distances, ids))

        run_in_ranges(scan, n_tiles, _TILES_OF_A_THREAD)
    return best(found, k)


def _read_only(array: npt.NDArray) -> npt.NDArray:
    """Return a view that cannot be written, so that memory maps and arrays have the same compiled type."""
    view = array.view()
    view.flags.writeable = False
    return view


def _rows_of_a_tile(n_words: int) -> int:
    return max(64, min(512, _TILE_WORDS // n_words))


def _in_words(rows: Words, order: npt.NDArray[np.int32]) -> npt.NDArray[np.uint8]:
    """Return the number of bits in each word of the rows in this order, tile by tile; see `BySize`."""
    n_words = rows.shape[1]
    size = _rows_of_a_tile(n_words)
    found = np.zeros((-(-len(order) // size), n_words, size), np.uint8)

    def fill(first: int, last: int) -> None:
        _count_words(_read_only(rows), _read_only(order), found, first, last)

    run_in_ranges(fill, len(found), _TILES_OF_A_THREAD)
    return found


@njit()
def _count_words(rows, order, found, first, last):  # type: ignore[no-untyped-def]
    """Set ``found[t, w, j]`` to the bits in word w of row j of tile t, for tiles from `first` to `last` - 1."""
    _, n_words, size = found.shape
    for t in range(first, last):
        for j in range(min(size, len(order) - t * size)):
            row = order[t * size + j]
            for w in range(n_words):
                found[t, w, j] = popcount(rows[row, w])


def _plan(
    queries: Words, each: npt.NDArray[np.uint8], frequency: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return an order of the words of each query, and how many of its bits are left before each of them.

    First come the words whose bits a row of the index is expected to lack most of. `each` holds the number of bits in
    each word.
    """
    bits = np.unpackbits(queries.view(np.uint8).reshape(*queries.shape, 8), axis=2)
    lacking = (bits * (1 - frequency.reshape(1, -1, 64))).sum(axis=2)
    words = np.argsort(-lacking, axis=1, kind="stable").astype(np.int32)
    taken = np.cumsum(np.take_along_axis(each, words, axis=1), axis=1, dtype=np.int32)
    left = np.zeros((len(queries), queries.shape[1] + 1), np.int32)
    left[:, 0] = taken[:, -1]
    left[:, 1:] = taken[:, -1:] - taken
    return words, left


@njit()
def bit_counts(words):  # type: ignore[no-untyped-def]
    """Return the number of bits that are 1 in each row."""
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
    rows, order, sizes, in_words, ids, dead, queries, own, each, words, left, tiles, tile_rows, bounds, distances, found
):
    """Replace entries of the heaps `distances`, `found` by nearer rows of some tiles."""
    n_words = queries.shape[1]
    tile, counts = np.empty((n_words, tile_rows), np.uint64), np.empty(tile_rows, np.uint64)
    ready = np.empty(n_words, np.bool_)  # the words of the tile that were read
    most, wide, passing = np.empty(tile_rows, np.uint8), np.empty(tile_rows, np.uint32), np.empty(tile_rows, np.int64)
    waits = np.zeros(len(queries), np.int64)  # tiles for which the bound by words is left out, as it excluded too few
    for number in tiles:
        first = number * tile_rows
        n = min(tile_rows, len(order) - first)
        low, high = sizes[first], sizes[first + n - 1]
        ready[:] = False
        for i in range(len(queries)):
            need = _needed(bounds[i], own[i], low)
            if need > min(own[i], high):
                continue
            here = order[first : first + n]
            if need > 0 and waits[i] == 0:
                if own[i] < 256:  # sums fit into bytes
                    n_passing = _pass(in_words[number], each[i], need, n, most, passing)
                else:
                    n_passing = _pass(in_words[number], each[i], need, n, wide, passing)
                if _DIRECT * n_passing <= n:
                    for j in passing[:n_passing]:
                        shared = np.int64(_in_common(queries[i], rows[here[j]]))
                        if shared >= need and not dead[here[j]]:
                            _offer(shared, own[i], sizes[first + j], ids[here[j]], bounds, distances, found, i)
                            need = _needed(bounds[i], own[i], low)
                    continue
                waits[i] = _WAIT
            elif waits[i] > 0:
                waits[i] -= 1
            if _count(rows, here, tile, ready, queries[i], words[i], left[i], need, counts) < need:
                continue
            for j in range(n):
                shared = np.int64(counts[j])
                if shared >= need and not dead[here[j]]:
                    _offer(shared, own[i], sizes[first + j], ids[here[j]], bounds, distances, found, i)
                    need = _needed(bounds[i], own[i], low)


@njit()
def _pass(in_words, each, need, n, most, passing):  # type: ignore[no-untyped-def]
    """Fill `passing` with the rows of a tile that may share `need` bits with a query; return their number.

    `each` and `in_words` hold the bits in each word of the query and of the rows; `most` is room for sums of `each`.
    """
    most[:] = 0
    whole = len(each) - len(each) % 4
    for w in range(0, whole, 4):  # four words at a time, so that sums are loaded and stored once
        a, b, c, d = each[w], each[w + 1], each[w + 2], each[w + 3]
        A, B, C, D = in_words[w], in_words[w + 1], in_words[w + 2], in_words[w + 3]
        for j in range(len(most)):
            most[j] = most[j] + min(a, A[j]) + min(b, B[j]) + min(c, C[j]) + min(d, D[j])
    for w in range(whole, len(each)):
        a, A = each[w], in_words[w]
        for j in range(len(most)):
            most[j] = most[j] + min(a, A[j])
    greatest, count = most[0], 0
    for j in range(len(most)):
        greatest = max(greatest, most[j])
    if greatest >= need:
        for j in range(n):
            passing[count] = j
            count += most[j] >= need
    return count


@njit()
def _in_common(x, y):  # type: ignore[no-untyped-def]
    count = np.uint64(0)
    for w in range(len(x)):
        count += popcount(x[w] & y[w])
    return count


@njit()
def _count(rows, here, tile, ready, query, words, left, need, counts):  # type: ignore[no-untyped-def]
    """Fill `counts` with the bits that `query` shares with the rows at the positions `here`; return the greatest.

    If it can be no more than a number below `need`, return this number; the counts are then incomplete.
    """
    n = len(here)
    counts[:n] = 0
    t = 0
    while left[t] > 0:
        step = 4 if t + 4 <= len(words) else 1  # four words at a time, so that counts are loaded and stored once
        for w in words[t : t + step]:
            if not ready[w]:
                for j in range(n):
                    tile[w, j] = rows[here[j], w]
                ready[w] = True
        if step == 4:
            a, b, c, d = query[words[t]], query[words[t + 1]], query[words[t + 2]], query[words[t + 3]]
            A, B, C, D = tile[words[t]], tile[words[t + 1]], tile[words[t + 2]], tile[words[t + 3]]
            for j in range(n):
                counts[j] += popcount(a & A[j]) + popcount(b & B[j]) + popcount(c & C[j]) + popcount(d & D[j])
        else:
            a, A = query[words[t]], tile[words[t]]
            for j in range(n):
                counts[j] += popcount(a & A[j])
        t += step
        if 0 < left[t] < need:  # the bits left are too few for rows that share none so far
            greatest = _greatest(counts, n)
            if greatest + left[t] < need:
                return greatest + left[t]
    return _greatest(counts, n)


@njit()
def _greatest(counts, n):  # type: ignore[no-untyped-def]
    greatest = np.uint64(0)
    for j in range(n):
        greatest = max(greatest, counts[j])
    return np.int64(greatest)


@njit()
def _offer(shared, own, size, id_, bounds, distances, found, i):  # type: ignore[no-untyped-def]
    """Put a row of `size` bits into the heap of query i if it is nearer than the last."""
    union = own + size - shared
    distance = (union - shared) / union if union > 0 else 0.0
    if distance < distances[i, 0] or (distance == distances[i, 0] and id_ < found[i, 0]):
        replace_last(distances[i], found[i], distance, id_)
        bounds[i] = min(bounds[i], distances[i, 0])
