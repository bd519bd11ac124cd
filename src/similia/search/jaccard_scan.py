r"""Exact search by the Jaccard distance of packed bits, :math:`1 - |x \cap y| / |x \cup y|`, pruned by numbers of bits.

Only bits that are 1 count. If x has a of them and y has b, they share at most min(a, b), and a distance of at most d
requires at least (1 - d) (a + b) / (2 - d) shared bits. Rows are sorted by their number of bits and divided into tiles
that stay in cache. The tiles are visited outwards from the number of bits of the queries. A tile whose rows have too
few or too many bits is skipped for a query. In other tiles, codes are compared by their folds first: a fold is the
bitwise or of every F-th word, for F words in all, an eighth of a long code. Each bit that x and y share sets a bit that
their folds share. The a bits of x set a' bits of its fold, so x and y share at most a - a' bits more than their folds.
Only rows that pass this bound are compared: about one fingerprint of a molecule in 2,000. If more than a quarter pass,
as for codes half of whose bits are 1, the whole tile is compared instead.

The sooner near rows are found, the more others can be ruled out. So each query first takes the 2 k rows with the most
promising folds among the 3 % whose number of bits is nearest to its own: their k-th distance bounds that of the result.

Cost, if nothing can be ruled out: the steps of Hamming search (`scan`), and gathering each tile row by row. Memory: an
eighth to a quarter of that of the codes (of those below 256 bits, a word), and 8 bytes for each row. Papers: Swamidass
& Baldi, "Bounds and algorithms for fast exact searches of chemical fingerprints in linear and sublinear time", JCIM 47,
2007. Baldi, Hirschberg & Nasr, "Speeding up chemical database searches using a proximity filter based on the logical
exclusive OR", JCIM 48, 2008: they fold by exclusive or, which bounds less: two bits that meet leave none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from similia.codes.bits import as_words
from similia.core.config import rows_per_block, run_in_ranges
from similia.core.hashing import popcount
from similia.core.jit import njit, read_only
from similia.core.validation import Ids
from similia.search.scan import best, replace_last

if TYPE_CHECKING:
    from similia.search.hamming_index import Codes, Part

_TOGETHER = 128  # queries of similar numbers of bits that share a tile
_TILE = 512  # rows
_TILES_OF_A_THREAD = 8
_DIRECT = 4  # rows are compared alone if at most one in 4 passes, else the tile as a whole
_WAIT = 64  # maximum number of tiles that are then compared as a whole, too: 2, 4, 8 ...
_RANGES = 16  # of tiles with neighbours of their own, about
_FIRST = 32  # one in so many tiles gives the first bound
_PER_THREAD = 4  # queries that get their first bound together
_LAST = 2**63 - 1
_SLACK = 1e-12  # relative: for the rounding of bounds
_PADDED = 2**12  # rows counted at a time
Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]


class BySize(NamedTuple):
    """The rows of a part in ascending order of their number of bits."""

    order: npt.NDArray[np.int32]  # positions in the part
    sizes: npt.NDArray[np.int32]  # numbers of bits, ascending
    folds: Words  # (tiles, words of a fold, rows of a tile); 0 past the last row


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
        found.append(BySize(order, sizes[order], _folds(as_words(part.codes), order)))
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
    found: list[tuple[Floats, Ids]] = []
    folded = _folds(queries, np.arange(len(queries), dtype=np.int32), len(queries))[0].T.copy()
    over = own - bit_counts(folded)  # bits that may be shared on top of those that the folds share
    for part, (order, sizes, folds) in zip(parts, by_size, strict=True):
        home = int(np.searchsorted(sizes, own[len(own) // 2])) // _TILE
        tiles = np.argsort(np.abs(np.arange(len(folds)) - home), kind="stable")
        arrays: list[Any] = [as_words(part.codes), order, sizes, folds, part.ids, part.dead]
        rows = tuple(map(read_only, arrays))

        def start(first: int, last: int, rows: Any = rows, near: int = len(folds) // _FIRST) -> None:
            some = slice(first, last)
            _bound(*rows, queries[some], own[some], folded[some], over[some], near, k, bounds[some])

        if len(folds) >= _FIRST and (2 * over <= own).any():
            run_in_ranges(start, len(queries), _PER_THREAD)

        def scan(first: int, last: int, rows: Any = rows, tiles: Any = tiles) -> None:
            distances, ids = np.full((len(queries), k), np.inf), np.full((len(queries), k), _LAST)
            _scan(*rows, queries, own, folded, over, tiles[first:last], bounds, distances, ids)
            found.append((distances, ids))

        run_in_ranges(scan, len(folds), _TILES_OF_A_THREAD)
    return best(found, k)


def _folds(rows: Words, order: npt.NDArray[np.int32], size: int = _TILE) -> Words:
    """Return the folds of the rows in this order, in tiles of `size` rows; see `BySize`."""
    n_words = rows.shape[1]
    n_folded = max(-(-n_words // 8), min(4, -(-n_words // 4)))
    found = np.zeros((-(-len(order) // size), n_folded, size), np.uint64)

    def fill(first: int, last: int) -> None:
        _fold(read_only(rows), read_only(order), found, first, last)

    run_in_ranges(fill, len(found), _TILES_OF_A_THREAD)
    return found


@njit()
def _fold(rows, order, found, first, last):  # type: ignore[no-untyped-def]
    """Set ``found[t, :, j]`` to the fold of row j of tile t, for tiles from `first` to `last` - 1."""
    _, n_folded, size = found.shape
    for t in range(first, last):
        for j in range(min(size, len(order) - t * size)):
            row = order[t * size + j]
            for w in range(rows.shape[1]):
                found[t, w % n_folded, j] |= rows[row, w]


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
def _bound(  # type: ignore[no-untyped-def]
    rows, order, sizes, folds, ids, dead, queries, own, folded, over, near, k, bounds
):
    """Lower each of `bounds` to the k-th least distance among 2 k rows of the `near` tiles around the query's size.

    These are the rows whose folds leave the least possible distance. If the fold of a query has lost more than half of
    its bits, it rules out too little, and the bound stays.
    """
    counts, at = np.empty(_TILE, np.uint64), np.empty(2 * k, np.int64)
    for i in range(len(queries)):
        if 2 * over[i] > own[i]:
            continue
        least = np.full(2 * k, np.inf)  # possible distances of the rows `at`, a heap
        at[:] = _LAST
        home = np.searchsorted(sizes, own[i]) // _TILE
        start = max(0, min(home - near // 2, len(folds) - near))
        for step in range(near):  # 0, 1, -1, 2, ... from home
            number = start + (home - start + (step + 1) // 2 * (1 if step % 2 else -1)) % near
            first = number * _TILE
            n, low = min(_TILE, len(order) - first), sizes[first]
            need = _needed(least[0], own[i], low) - over[i]
            if _count(folds[number], n, folded[i], counts) < need:
                continue
            for j in range(n):
                if np.int64(counts[j]) >= need and not dead[order[first + j]]:
                    size = sizes[first + j]
                    possible = _distance(min(np.int64(counts[j]) + over[i], own[i], size), own[i], size)
                    if possible < least[0]:
                        replace_last(least, at, possible, first + j)
                        need = _needed(least[0], own[i], low) - over[i]
        for j in range(2 * k):
            if at[j] < _LAST:
                least[j] = _distance(np.int64(_in_common(queries[i], rows[order[at[j]]])), own[i], sizes[at[j]])
        bounds[i] = min(bounds[i], np.sort(least)[k - 1])


@njit()
def _distance(shared, own, size):  # type: ignore[no-untyped-def]
    """Return the Jaccard distance of codes of `own` and `size` bits that share `shared`."""
    union = own + size - shared
    return (union - shared) / union if union > 0 else 0.0


@njit()
def _scan(  # type: ignore[no-untyped-def]
    rows, order, sizes, folds, ids, dead, queries, own, folded, over, tiles, bounds, distances, found
):
    """Replace entries of the heaps `distances`, `found` by nearer rows of some tiles.

    `own` holds the number of bits of each query, `folded` its fold, `over` how many bits it has more than its fold.
    """
    tile, counts = np.empty((queries.shape[1], _TILE), np.uint64), np.empty(_TILE, np.uint64)
    passed = np.empty(_TILE, np.int64)
    waits = np.zeros(len(queries), np.int64)  # tiles for which folds are not compared, as they excluded too few
    pauses = np.ones(len(queries), np.int64)
    for number in tiles:
        first = number * _TILE
        n = min(_TILE, len(order) - first)
        here, low, high = order[first : first + n], sizes[first], sizes[first + n - 1]
        read = False
        for i in range(len(queries)):
            need = _needed(bounds[i], own[i], low)
            if need > min(own[i], high):
                continue
            if waits[i] > 0:
                waits[i] -= 1
            elif need > over[i]:
                if _count(folds[number], n, folded[i], counts) < need - over[i]:
                    continue
                n_passed = _from(counts, n, need - over[i], passed, n // _DIRECT)
                if n_passed <= n // _DIRECT:
                    pauses[i] = 1
                    for j in passed[:n_passed]:
                        if dead[here[j]]:
                            continue
                        shared = np.int64(_in_common(queries[i], rows[here[j]]))
                        if shared >= need:
                            _offer(shared, own[i], sizes[first + j], ids[here[j]], bounds, distances, found, i)
                            need = _needed(bounds[i], own[i], low)
                    continue
                waits[i] = pauses[i] = min(2 * pauses[i], _WAIT)
            if not read:
                _read(rows, here, tile)
                read = True
            if _count(tile, n, queries[i], counts) < need:
                continue
            for j in range(n):
                shared = np.int64(counts[j])
                if shared >= need and not dead[here[j]]:
                    _offer(shared, own[i], sizes[first + j], ids[here[j]], bounds, distances, found, i)
                    need = _needed(bounds[i], own[i], low)


@njit()
def _read(rows, here, tile):  # type: ignore[no-untyped-def]
    """Fill the columns of a tile with the rows at the positions `here`."""
    for w in range(len(tile)):
        for j in range(len(here)):
            tile[w, j] = rows[here[j], w]


@njit()
def _from(counts, n, least, passed, most):  # type: ignore[no-untyped-def]
    """Write to `passed` which of the first n counts are at least `least`; return their number, or one above `most`."""
    number = 0
    for j in range(n):
        passed[number] = j
        number += np.int64(counts[j]) >= least
        if number > most:
            break
    return number


@njit()
def _in_common(x, y):  # type: ignore[no-untyped-def]
    count = np.uint64(0)
    for w in range(len(x)):
        count += popcount(x[w] & y[w])
    return count


@njit()
def _count(tile, n, query, counts):  # type: ignore[no-untyped-def]
    """Fill `counts` with the bits that `query` shares with n codes, one per column of `tile`; return the greatest."""
    counts[:n] = 0
    greatest, word, last = np.uint64(0), 0, len(query) - 4
    while word < last:  # four words at a time, so that counts are loaded and stored once
        a, b, c, d = query[word], query[word + 1], query[word + 2], query[word + 3]
        A, B, C, D = tile[word], tile[word + 1], tile[word + 2], tile[word + 3]
        for j in range(n):
            counts[j] += popcount(a & A[j]) + popcount(b & B[j]) + popcount(c & C[j]) + popcount(d & D[j])
        word += 4
    if word == last:
        a, b, c, d = query[word], query[word + 1], query[word + 2], query[word + 3]
        A, B, C, D = tile[word], tile[word + 1], tile[word + 2], tile[word + 3]
        for j in range(n):
            both = popcount(a & A[j]) + popcount(b & B[j]) + popcount(c & C[j]) + popcount(d & D[j])
            counts[j] += both
            greatest = max(greatest, counts[j])
        return np.int64(greatest)
    while word < len(query):
        a, A = query[word], tile[word]
        for j in range(n):
            counts[j] += popcount(a & A[j])
            greatest = max(greatest, counts[j])
        word += 1
    return np.int64(greatest)


@njit()
def _offer(shared, own, size, id_, bounds, distances, found, i):  # type: ignore[no-untyped-def]
    """Put a row of `size` bits into the heap of query i if it is nearer than the last."""
    distance = _distance(shared, own, size)
    if distance < distances[i, 0] or (distance == distances[i, 0] and id_ < found[i, 0]):
        replace_last(distances[i], found[i], distance, id_)
        bounds[i] = min(bounds[i], distances[i, 0])
