"""Exact Hamming search: compare queries with all stored codes, and keep the nearest or those within a radius.

Rows are processed in tiles that stay in cache. Each tile is transposed once to (words, rows), so the distances of a
query to a tile are sums of popcounts over contiguous numbers, which the compiler vectorises eight at a time. The rows
of a tile are examined one by one only if the smallest distance in the tile is at most the query's k-th best so far. A
heap ordered by (distance, id) holds the k best, so the smaller id wins every tie, whatever the order of rows, tiles or
threads.

Cost: queries x rows x n_bits / 64 steps of xor, popcount and add. A tile transposed for a single query would serve only
once, so a single query is compared with the codes in place, four rows at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from similia.codes.bits import are_words, as_words
from similia.core import lanes as lane
from similia.core.config import rows_per_block, run_in_ranges
from similia.core.hashing import popcount
from similia.core.jit import njit
from similia.core.validation import Ids, check_radius

if TYPE_CHECKING:
    from similia.search.hamming_index import Codes, Part, Rows

_GRAIN = 2**14  # minimum number of rows per thread
_WORDS_OF_A_THREAD = 2**20  # minimum number of words that a thread compares
_PADDED = 2**12  # rows padded to whole words at a time, if their length is not a multiple of 8 bytes
_HITS = 2**16  # rows within the radius returned at a time
_WAITING = 2**12  # rows that wait for the heap
_SAMPLED, _MORE = 32, 5  # of the rows, the share that is looked at first, for so many of the nearest more than expected
_FEW = 2  # for fewer queries, transposing a tile costs more than it saves
_FAR, _LAST = 2**31 - 1, 2**63 - 1
_ONE, _TWO = np.uint64(1), np.uint64(2)
_GROUP, _GROUPS = 4, 32  # rows that one query is compared with at once, and groups of them with one near enough

Distances = npt.NDArray[np.int32]


def nearest(parts: Sequence[Part], queries: Codes, k: int) -> tuple[Distances, Ids]:
    """Return distances and ids of the `k` nearest rows of each query, both (q, k), ordered by distance, then id.

    `parts` must hold at least `k` rows that are not removed.
    """
    n_rows = sum(len(part.ids) for part in parts)
    step = rows_per_block(24 * k * (n_rows // _GRAIN + 1), at_most=max(1, len(queries)))
    distances, ids = np.empty((len(queries), k), np.int32), np.empty((len(queries), k), np.int64)
    for start in range(0, len(queries), step):
        block = slice(start, start + step)
        distances[block], ids[block] = _nearest(parts, n_rows, as_words(queries[block]), k)
    return distances, ids


def _nearest(parts: Sequence[Part], n_rows: int, queries: npt.NDArray[np.uint64], k: int) -> tuple[Distances, Ids]:
    """Return distances and ids of the `k` nearest rows of each query, compared in ranges of rows."""
    found: dict[int, tuple[Distances, Ids]] = {}
    bounds = np.full(len(queries), _FAR, np.int32)  # shared by threads: the k-th best of any range bounds the result

    def scan(start: int, stop: int) -> None:
        distances, ids = _heaps(len(queries), k)
        for words, part in _pieces(parts, start, stop):
            if len(queries) < _FEW:
                _scan_for_one(words, part.ids, part.dead, queries[0], bounds, distances[0], ids[0])
            else:
                _scan_nearest(words, part.ids, part.dead, queries, bounds, distances, ids, _tile_rows(words))
        sort_heaps(distances, ids)
        found[start] = distances, ids

    run_in_ranges(scan, n_rows, _grain(queries))
    return found[0] if len(found) == 1 else best(list(found.values()), k)


def _heaps(n: int, k: int) -> tuple[Distances, Ids]:
    distances, ids = np.empty((n, k), np.int32), np.empty((n, k), np.int64)
    distances.fill(_FAR)
    ids.fill(_LAST)
    return distances, ids


def nearest_to_one(
    rows: Rows, query: npt.NDArray[np.uint64], k: int, ordered: bool = True
) -> tuple[Distances, Ids] | None:
    """Return what `nearest` does for one query (1, n_words), in any order unless `ordered`.

    Return None if that needs threads or padded codes.
    """
    words = rows.words()
    if not words or rows.n_rows > _grain(query):
        return None
    (distances, ids), bound = _heaps(1, k), np.empty(1, np.int32)
    bound.fill(_FAR)
    for part, part_ids, dead in words:
        _scan_for_one(part, part_ids, dead, query[0], bound, distances[0], ids[0])
    if ordered:
        sort_heaps(distances, ids)
    return distances, ids


def smallest(values: npt.NDArray[np.float64], ids: Ids, k: int) -> npt.NDArray[np.int64]:
    """Return the positions (k,) of the `k` smallest of `values` (none is NaN), ordered by value, then by id."""
    least, found, at = np.empty((1, k)), np.empty((1, k), np.int64), np.empty(k, np.int64)
    _fill_smallest(values, ids, least, found, at)
    return at


def best(found: Sequence[tuple[Any, Ids]], k: int) -> tuple[Any, Ids]:
    """Merge pairs (distances, ids) for the same queries; return the `k` best of each query by distance, then id."""
    distances = np.concatenate([pair[0] for pair in found], axis=1)
    ids = np.concatenate([pair[1] for pair in found], axis=1)
    order = np.lexsort((ids, distances))[:, :k]
    return np.take_along_axis(distances, order, axis=1), np.take_along_axis(ids, order, axis=1)


def within(parts: Sequence[Part], queries: Codes, radius: int) -> tuple[npt.NDArray[np.int64], Distances, Ids]:
    """Return limits, distances and ids of all rows within `radius` of each query, ordered by query, distance, id.

    The results of query i are the entries ``limits[i]`` to ``limits[i + 1]`` of the other two arrays.
    """
    n_rows = sum(len(part.ids) for part in parts)
    words_of_queries = as_words(queries)
    found: dict[int, list[npt.NDArray[np.int64]]] = {}

    def scan(start: int, stop: int) -> None:
        found[start] = []
        for words, part in _pieces(parts, start, stop):
            found[start] += _hits(words, part, words_of_queries, radius)

    run_in_ranges(scan, n_rows, _grain(words_of_queries))
    hits = np.concatenate([np.empty((3, 0), np.int64), *(block for blocks in found.values() for block in blocks)], 1)
    query, distance, ids = hits[:, np.lexsort((hits[2], hits[1], hits[0]))]
    limits = np.searchsorted(query, np.arange(len(queries) + 1))
    return limits, distance.astype(np.int32), ids


def _grain(queries: npt.NDArray[np.uint64]) -> int:
    """Return the minimum number of rows per thread for these queries."""
    return max(_GRAIN, _WORDS_OF_A_THREAD // max(1, queries.size))


def _hits(
    words: npt.NDArray[np.uint64], part: Part, queries: npt.NDArray[np.uint64], radius: int
) -> Iterator[npt.NDArray[np.int64]]:
    """Yield the rows of `part` within `radius` of a query, in arrays (3, n): query number, distance and id."""
    tile = _tile_rows(words)
    hits = np.empty((3, _HITS + tile), np.int64)
    row = query = 0
    while row < len(words):
        n_hits, row, query = _scan_within(words, part.ids, part.dead, queries, radius, tile, hits, row, query, _HITS)
        yield hits[:, :n_hits].copy()


def _pieces(parts: Sequence[Part], start: int, stop: int) -> Iterator[tuple[npt.NDArray[np.uint64], Part]]:
    """Yield (codes as 64-bit words, `Part`) for pieces of the rows `start` to `stop`; copy codes only if necessary."""
    first = 0
    for part in parts:
        begin, end = max(0, start - first), min(len(part.ids), stop - first)
        first += len(part.ids)
        step = max(1, end - begin) if are_words(part.codes) else _PADDED
        for row in range(begin, end, step):
            rows = slice(row, min(end, row + step))
            words, ids, dead = as_words(part.codes[rows]), part.ids[rows], part.dead[rows]
            for array in (words, ids, dead):  # views, so that memory maps and arrays have the same compiled type
                array.flags.writeable = False
            yield words, part._replace(codes=part.codes[rows], ids=ids, dead=dead)


def _tile_rows(words: npt.NDArray[np.uint64]) -> int:
    return max(64, min(512, 4096 // words.shape[1]))


def radius_in_bits(radius: Any, n_bits: int) -> int:
    return int(min(check_radius(radius), n_bits))


@njit()
def _scan_nearest(words, ids, dead, queries, bounds, distances, found, tile):  # type: ignore[no-untyped-def]
    turned, counts = np.empty((words.shape[1], tile), np.uint64), np.empty(tile, np.uint64)
    for first in range(0, len(words), tile):
        n = min(tile, len(words) - first)
        turned[:, :n] = words[first : first + n].T
        for i in range(len(queries)):
            smallest = _count(turned, n, queries[i], counts)
            bound = bounds[i]
            if smallest > bound:
                continue
            worst = distances[i, 0]
            for j in range(n):
                distance = np.int32(counts[j])
                if distance > bound or dead[first + j]:
                    continue
                if distance < worst or (distance == worst and ids[first + j] < found[i, 0]):
                    replace_last(distances[i], found[i], distance, ids[first + j])
                    worst = distances[i, 0]
                    bound = min(bound, worst)
            bounds[i] = min(bounds[i], bound)


@njit()
def _scan_for_one(words, ids, dead, query, bounds, distances, found):  # type: ignore[no-untyped-def]
    """Put the rows nearest to one query into the heap (`distances`, `found`); `bounds` is as in `_scan_nearest`.

    If many rows are wanted, the first rows tell a distance within which there are probably enough, so that fewer rows
    wait. Should there be too few, all rows are compared again, without this guess.
    """
    k, some = len(distances), len(words) // _SAMPLED
    few = 3 * k // (2 * _SAMPLED) + _MORE
    if few < k // 2 and some >= _WAITING // 4 and distances.min() == _FAR:  # nothing found before is lost
        guess, nearest, ids_of_nearest = bounds.copy(), np.full(few, _FAR, np.int32), np.full(few, _LAST)
        _compare(words[:some], ids[:some], dead[:some], query, guess, nearest, ids_of_nearest)
        unlike, guess[0] = nearest[0] >= bounds[0], min(bounds[0], nearest[0])
        if _compare(words, ids, dead, query, guess, distances, found) >= k or unlike:
            bounds[0] = min(bounds[0], guess[0])
            return
        distances[:], found[:] = _FAR, _LAST
    _compare(words, ids, dead, query, bounds, distances, found)


@njit()
def _compare(words, ids, dead, query, bounds, distances, found):  # type: ignore[no-untyped-def]
    """Do the work of `_scan_for_one`; return how many rows are within the last bound.

    Counts of the distances seen so far tell beyond which distance no row can be among the nearest. The rows within it
    wait in `rows`, and most are dropped again, when better ones have lowered the bound, before they reach the heap.
    Four rows are compared at once if their words fill registers.
    """
    n_words, k = len(query), len(distances)
    flat, seen = words.reshape(-1), np.zeros(64 * n_words + 1, np.int32)
    size = _WAITING + _GROUP * _GROUPS
    rows, counts = np.empty(size, np.int64), np.empty(size, np.int32)
    bound = min(bounds[0], distances[0], np.int32(64 * n_words))
    repeated = np.empty(max(lane.WORDS, n_words), np.uint64)
    for word in range(len(repeated)):
        repeated[word] = query[word % n_words]
    fit = len(words) - len(words) % _GROUP if n_words in (1, 2) or n_words % lane.WORDS == 0 else 0
    sums, starts = np.empty(_GROUP * _GROUPS, np.uint64), np.empty(_GROUPS, np.int64)
    first = n = total = 0
    while first < fit:
        if n_words == lane.WORDS:  # a constant, which makes a faster loop
            first, n_groups = _next_groups(flat, first, fit, repeated, lane.WORDS, np.int64(bound), sums, starts)
        else:
            first, n_groups = _next_groups(flat, first, fit, repeated, n_words, np.int64(bound), sums, starts)
        for group in range(n_groups):
            for j in range(_GROUP):
                count, row = np.int32(sums[_GROUP * group + j]), starts[group] + j
                if count <= bound and not dead[row]:
                    rows[n], counts[n] = row, count
                    n, total, bound = _noted(n, total, bound, count, k, seen)
        if n >= _WAITING:
            n = _offer(rows, counts, n, bound, ids, distances, found)
    for row in range(fit, len(words)):
        count = np.int32(_distance(flat, np.uint64(row) * np.uint64(n_words), query, np.uint64(n_words)))
        if count <= bound and not dead[row]:
            rows[n], counts[n] = row, count
            n, total, bound = _noted(n, total, bound, count, k, seen)
            if n >= _WAITING:
                n = _offer(rows, counts, n, bound, ids, distances, found)
    _offer(rows, counts, n, bound, ids, distances, found)
    bounds[0] = min(bounds[0], bound)
    return total


@njit()
def _distance(flat, at, query, n_words):  # type: ignore[no-untyped-def]
    """Return the distance of `query` to the words from `at` on; positions are unsigned: no sign is to be checked."""
    word, count = np.uint64(0), np.uint64(0)
    while word + _ONE < n_words:
        count += popcount(query[word] ^ flat[at + word])
        count += popcount(query[word + _ONE] ^ flat[at + word + _ONE])
        word += _TWO
    if word < n_words:
        count += popcount(query[word] ^ flat[at + word])
    return count


@njit()
def _next_groups(flat, first, stop, query, n_words, bound, sums, starts):  # type: ignore[no-untyped-def]
    """Collect groups of four rows of which at least one is within `bound`, from `first` on, until `starts` is full.

    Return where to go on, and the number of groups. Their first rows are written to `starts`, the distances of the four
    rows of each to `sums`. Rows have 1, 2 or a multiple of 4 words; `query` is repeated to 4 words at least.
    """
    own, n = lane.load_words(query, 0), 0
    for row in range(first, stop, _GROUP):
        at = row * n_words
        a = lane.differing_bits(own, lane.load_words(flat, at))
        if n_words == 2:
            a = lane.sums_of_pairs(a, lane.differing_bits(own, lane.load_words(flat, at + 4)))  # of rows 0, 2, 1, 3
        elif n_words > 2:
            b = lane.differing_bits(own, lane.load_words(flat, at + n_words))
            c = lane.differing_bits(own, lane.load_words(flat, at + 2 * n_words))
            d = lane.differing_bits(own, lane.load_words(flat, at + 3 * n_words))
            for word in range(lane.WORDS, n_words, lane.WORDS):
                more, at = lane.load_words(query, word), at + lane.WORDS
                a = lane.plus(a, lane.differing_bits(more, lane.load_words(flat, at)))
                b = lane.plus(b, lane.differing_bits(more, lane.load_words(flat, at + n_words)))
                c = lane.plus(c, lane.differing_bits(more, lane.load_words(flat, at + 2 * n_words)))
                d = lane.plus(d, lane.differing_bits(more, lane.load_words(flat, at + 3 * n_words)))
            a = lane.sums_of_halves(lane.sums_of_pairs(a, b), lane.sums_of_pairs(c, d))
        if lane.any_at_most(a, bound):
            lane.store(sums, _GROUP * n, a)
            if n_words == 2:
                sums[_GROUP * n + 1], sums[_GROUP * n + 2] = sums[_GROUP * n + 2], sums[_GROUP * n + 1]
            starts[n] = row
            n += 1
            if n == len(starts):
                return row + _GROUP, n
    return stop, n


@njit()
def _noted(n, total, bound, distance, k, seen):  # type: ignore[no-untyped-def]
    """Count a distance; return n + 1, how many of those `seen` are within the bound, and the bound, the k-th least."""
    seen[distance] += 1
    total += 1
    while total - seen[bound] >= k:
        total -= seen[bound]
        bound -= np.int32(1)
    return n + 1, total, bound


@njit()
def _offer(rows, counts, n, bound, ids, distances, found):  # type: ignore[no-untyped-def]
    """Put those of n waiting rows that are within the bound and better than the worst into the heap; return 0."""
    for i in range(n):
        distance, id_ = counts[i], ids[rows[i]]
        if distance <= bound and (distance < distances[0] or (distance == distances[0] and id_ < found[0])):
            replace_last(distances, found, distance, id_)
    return 0


@njit()
def _fill_smallest(values, ids, least, found, at):  # type: ignore[no-untyped-def]
    """Fill `least` and `found`, both (1, k), with the k smallest pairs (value, id), ascending, `at` with positions."""
    least[0], found[0] = np.inf, _LAST
    for j in range(len(values)):
        value, id_ = values[j], ids[j]
        if value < least[0, 0] or (value == least[0, 0] and id_ < found[0, 0]):
            replace_last(least[0], found[0], value, id_)
    sort_heaps(least, found)
    for i in range(len(at)):
        at[i] = 0
        while ids[at[i]] != found[0, i]:
            at[i] += 1


@njit()
def sort_heaps(distances, ids):  # type: ignore[no-untyped-def]
    """Sort each row of pairs (distance, id), a heap whose first pair is the greatest, in ascending order."""
    for i in range(len(distances)):
        for last in range(distances.shape[1] - 1, 0, -1):
            distance, id_ = distances[i, last], ids[i, last]
            distances[i, last], ids[i, last] = distances[i, 0], ids[i, 0]
            replace_last(distances[i, :last], ids[i, :last], distance, id_)


@njit()
def _scan_within(words, ids, dead, queries, radius, tile, hits, row, query, enough):  # type: ignore[no-untyped-def]
    turned, counts = np.empty((words.shape[1], tile), np.uint64), np.empty(tile, np.uint64)
    few = len(queries) < _FEW
    n_hits = 0
    for first in range(row, len(words), tile):
        n = min(tile, len(words) - first)
        if not few:
            turned[:, :n] = words[first : first + n].T
        for i in range(query, len(queries)):
            if n_hits > enough - 1:
                return n_hits, first, i
            if few:
                smallest = _count(words[first : first + n].T, n, queries[i], counts)
            else:
                smallest = _count(turned, n, queries[i], counts)
            if smallest > radius:
                continue
            for j in range(n):
                if np.int64(counts[j]) <= radius and not dead[first + j]:
                    hits[0, n_hits], hits[1, n_hits], hits[2, n_hits] = i, counts[j], ids[first + j]
                    n_hits += 1
        query = 0
    return n_hits, len(words), 0


@njit()
def _count(tile, n, query, counts):  # type: ignore[no-untyped-def]
    """Fill `counts` with the distances of `query` to n codes, one per column of `tile`; return the smallest."""
    counts[:n] = 0
    word = 0
    while word + 4 <= len(query):  # four words at a time, so that counts are loaded and stored once
        a, b, c, d = query[word], query[word + 1], query[word + 2], query[word + 3]
        A, B, C, D = tile[word], tile[word + 1], tile[word + 2], tile[word + 3]
        for j in range(n):
            counts[j] += popcount(a ^ A[j]) + popcount(b ^ B[j]) + popcount(c ^ C[j]) + popcount(d ^ D[j])
        word += 4
    while word < len(query):
        a, A = query[word], tile[word]
        for j in range(n):
            counts[j] += popcount(a ^ A[j])
        word += 1
    smallest = counts[0]
    for j in range(n):
        smallest = min(smallest, counts[j])
    return np.int64(smallest)


@njit()
def replace_last(distances, ids, distance, id_):  # type: ignore[no-untyped-def]
    """Replace the root of a heap, its greatest pair (distance, id), by (distance, id_), and restore the heap."""
    k = len(distances)
    place, child = 0, 1
    while child < k:
        other = child + 1
        if other < k and (
            distances[other] > distances[child] or (distances[other] == distances[child] and ids[other] > ids[child])
        ):
            child = other
        if distances[child] < distance or (distances[child] == distance and ids[child] < id_):
            break
        distances[place], ids[place] = distances[child], ids[child]
        place, child = child, 2 * child + 1
    distances[place], ids[place] = distance, id_
