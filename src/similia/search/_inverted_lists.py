"""Inverted lists of the features of objects: the k nearest objects, exactly, and the lists in a file.

A segment holds rows in ascending order of size, k(x, x) of the features. The list of feature f is the entries
``starts[f]`` to ``starts[f + 1]`` of `rows` (ascending) and `amounts`. Row r has the features (ascending) and counts
``limits[r]`` to ``limits[r + 1]`` of `held` and `counts`.

**Search.** Blocks of rows are visited outwards from the query's own size, until the sizes alone rule out every row
beyond (`_nearest_at_size`). Within a block, the lists of the query add to one number for each row, and only rows that
reach the `_needed` sum are compared. The longest lists are left out as long as their features together add at most a
share of the needed sum (MaxScore): a row that they alone hold cannot reach it, and the few that may are summed from
their own features. That share shrinks if such sums take longer than the lists, and grows otherwise; it has no effect on
results.

**File**, which can be memory-mapped: loading an index need not count features. It begins with the length of a header (8
bytes, little-endian) and the header, JSON that gives the type, the length, the position and the checksum of each array
of a `Segment`. The arrays follow, each at a multiple of 64 bytes. Compiled loops trust these arrays, so reading checks
that every position in them exists, and that positions ascend in each list; checksums are verified unless the file is
mapped, as for codes (`Store.arrays`).

Paper: Turtle & Flood, "Query evaluation: strategies and optimizations", Information Processing & Management 1995.
"""

from __future__ import annotations

import json
import math
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from similia.core.errors import BadFile
from similia.core.jit import njit
from similia.kernels.counts import Counts, number_ids
from similia.objects.sequences import segments
from similia.search.scan import replace_last
from similia.storage.disk import replacing
from similia.storage.store import Ids

Floats = npt.NDArray[np.float64]
EXACT = 2**24  # whole numbers up to here are exact in single precision
_VERSION, _ALIGNED, _MOST_HEADER = 1, 64, 2**16
_TYPES = {
    "features": ("u8",), "starts": ("i8",), "rows": ("i4",), "amounts": ("u1", "f4"), "tops": ("f8",),
    "limits": ("i8",), "held": ("i4",), "counts": ("u1", "f8"), "sizes": ("f8",), "ids": ("i8",),
}  # fmt: skip
MINMAX, COSINE, PLAIN = 0, 1, 2  # how a sum of minima or products becomes a kernel value
_BLOCK, _CHUNK = 2**13, 64  # rows in a block, whose sums fit the cache, and rows whose greatest sum is tested first
_SHARE = 0.2  # of the needed sum that features of left-out lists may add, at first
_SLACK = 1e-9  # relative: for the rounding of bounds
_LEAST = 2.0**-1022  # smaller products lose digits
_ROUNDED = 2.0**-22  # relative: for the rounding of one single-precision sum


class Segment(NamedTuple):
    """Objects in ascending order of size, with their inverted lists; the module describes the arrays."""

    features: npt.NDArray[np.uint64]  # ids of the features, ascending
    starts: Ids
    rows: npt.NDArray[np.int32]
    amounts: npt.NDArray
    tops: Floats
    limits: Ids
    held: npt.NDArray[np.int32]
    counts: npt.NDArray
    sizes: Floats
    ids: Ids
    dead: npt.NDArray[np.bool_]
    whole: bool  # whether all counts are whole numbers, and all sizes below 2**24

    @classmethod
    def of(cls, counts: Counts, ids: Ids, least: bool) -> Segment:
        distinct, numbers = number_ids(counts.ids)
        by_id = np.argsort(distinct)
        place = np.empty(len(distinct), np.int32)
        place[by_id] = np.arange(len(distinct), dtype=np.int32)
        byte = counts._whole and float(counts.values.max(initial=0.0)) < 256
        values = counts.values.astype(np.uint8) if byte else counts.values
        shape = (len(counts), len(distinct))
        matrix = sp.csr_array((values, place[numbers], counts.offsets), shape=shape)
        matrix.sort_indices()
        sizes = own_sums(matrix.indptr.astype(np.int64), matrix.data, least)
        order = np.argsort(sizes, kind="stable")
        matrix, sizes = matrix[order], sizes[order]
        lists = matrix.tocsc()
        starts, limits = lists.indptr.astype(np.int64), matrix.indptr.astype(np.int64)
        tops = np.maximum.reduceat(lists.data, starts[:-1]).astype(np.float64) if len(distinct) else np.empty(0)
        amounts = lists.data if byte else _rounded_up(lists.data)
        arrays = (
            distinct[by_id], starts, lists.indices.astype(np.int32), amounts, tops, limits,
            matrix.indices.astype(np.int32), matrix.data, sizes, ids[order],
        )  # fmt: skip
        for one in arrays:  # as memory maps are, so that loops are compiled for one type
            one.flags.writeable = False
        whole = counts._whole and float(sizes.max(initial=0.0)) < EXACT
        return cls(*arrays, np.zeros(len(ids), np.bool_), whole)

    def alive(self) -> tuple[Counts, Ids]:
        """Return the features and ids of the objects that are not removed."""
        kept = np.flatnonzero(~self.dead)
        at, limits = segments(self.limits, kept)
        return Counts(limits, self.features[self.held[at]], self.counts[at].astype(np.float64)), self.ids[kept]


def _rounded_up(values: Floats) -> npt.NDArray[np.float32]:
    with np.errstate(over="ignore"):  # infinity is an upper bound, too
        single = values.astype(np.float32)
    return np.where(single < values, np.nextafter(single, np.float32(np.inf)), single)


def write(segment: Segment, path: Path) -> None:
    """Write a segment, none of whose objects is removed, to a file."""
    entries, at = {}, 0
    arrays = {name: np.ascontiguousarray(getattr(segment, name)) for name in _TYPES}
    for name, array in arrays.items():
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        entries[name] = [array.dtype.str[1:], len(array), at, zlib.crc32(little.data)]
        at += -(-array.nbytes // _ALIGNED) * _ALIGNED
    header = json.dumps({"version": _VERSION, "whole": segment.whole, "bytes": at, "arrays": entries}).encode()
    header += b" " * (-(len(header) + 8) % _ALIGNED)
    with replacing(path) as stream:
        stream.write(len(header).to_bytes(8, "little") + header)
        for array in arrays.values():
            stream.write(array.astype(array.dtype.newbyteorder("<"), copy=False).data)
            stream.write(bytes(-array.nbytes % _ALIGNED))


def read(path: Path, ids: Ids, mmap: bool) -> Segment:
    """Return the segment in a file, which must hold the objects with these ids; raise `BadFile` if it is damaged."""
    try:
        data: npt.NDArray[np.uint8] = np.memmap(path, np.uint8, "r").view(np.ndarray)
        if not mmap:
            data = np.array(data)
            data.flags.writeable = False
        return _checked(data, ids, mmap)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        found = "does not hold the inverted lists of the objects beside it"
        raise BadFile(path, f"{found}; restore the index from a copy") from None


def _checked(data: npt.NDArray[np.uint8], ids: Ids, mmap: bool) -> Segment:
    """Return the segment in the bytes of a file; raise an error of any of several types if something does not fit."""
    start = 8 + int.from_bytes(data[:8].tobytes(), "little")
    if start > min(len(data), _MOST_HEADER) or start % _ALIGNED:
        raise ValueError
    header = json.loads(data[8:start].tobytes())
    if header["version"] != _VERSION or len(data) != start + header["bytes"] or type(header["whole"]) is not bool:
        raise ValueError
    arrays = {name: _array(data[start:], header["arrays"][name], kinds, mmap) for name, kinds in _TYPES.items()}
    segment = Segment(**arrays, dead=np.zeros(len(ids), np.bool_), whole=header["whole"])
    if not _fits(segment) or not np.array_equal(np.sort(segment.ids), np.sort(ids)):
        raise ValueError
    return segment


def _array(data: npt.NDArray[np.uint8], entry: Any, kinds: tuple[str, ...], mmap: bool) -> npt.NDArray[Any]:
    """Return the array that an entry of the header describes, and that has one of the types `kinds`."""
    kind, n, at, checksum = entry
    if kind not in kinds or not all(type(value) is int and value >= 0 for value in (n, at, checksum)):
        raise ValueError
    size = n * np.dtype(kind).itemsize
    if at % _ALIGNED or at + size > len(data) or (not mmap and zlib.crc32(data[at : at + size].data) != checksum):
        raise ValueError
    return data[at : at + size].view(np.dtype(f"<{kind}"))


def _fits(one: Segment) -> bool:
    """Return whether the arrays of a segment fit each other, so that loops stay within them."""
    n, m = len(one.sizes), len(one.features)
    fits = len(one.starts) == m + 1 and len(one.limits) == n + 1 and len(one.tops) == m and len(one.ids) == n
    fits = fits and len(one.rows) == len(one.amounts) == len(one.held) == len(one.counts)
    fits = fits and (one.amounts.dtype == np.uint8) == (one.counts.dtype == np.uint8)
    for offsets, places, end in ((one.starts, one.rows, n), (one.limits, one.held, m)):
        fits = fits and bool(offsets[0] == 0 and offsets[-1] == len(places) and (offsets[1:] >= offsets[:-1]).all())
        fits = fits and (len(places) == 0 or bool(places.min() >= 0 and places.max() < end))
        fits = fits and bool(ascend(offsets, places))
    return fits and bool((one.features[1:] > one.features[:-1]).all() and (one.sizes[1:] >= one.sizes[:-1]).all())


@njit()
def ascend(offsets, places):  # type: ignore[no-untyped-def]
    """Return whether ``places[offsets[i] : offsets[i + 1]]`` ascend for each i, without equal ones."""
    for i in range(len(offsets) - 1):
        for t in range(offsets[i] + 1, offsets[i + 1]):
            if places[t] <= places[t - 1]:
                return False
    return True


@njit()
def own_sums(offsets, values, least):  # type: ignore[no-untyped-def]
    """Return each object's sum of minima (`least`) or products with itself, added in the order of its entries."""
    sums = np.zeros(len(offsets) - 1)
    for i in range(len(sums)):
        for t in range(offsets[i], offsets[i + 1]):
            value = np.float64(values[t])
            sums[i] += value if least else value * value
    return sums


@njit()
def _geometric_mean(a, b):  # type: ignore[no-untyped-def]
    """Return the square root of a b, where the product may be too large or too small for float64."""
    product = a * b
    return math.sqrt(product) if _LEAST < product < np.inf else math.sqrt(a) * math.sqrt(b)


@njit()
def distance_of(how, total, own, other):  # type: ignore[no-untyped-def]
    """Return the distance of two objects, given the sum of their features and that of each with itself."""
    if how == PLAIN:
        return math.sqrt(max(own + other - 2 * total, 0.0))
    scale = own + other - total if how == MINMAX else _geometric_mean(own, other)
    return math.sqrt(max(2.0 - 2 * (total / scale if scale > 0 else total), 0.0))


@njit()
def _needed(how, worst, own, low):  # type: ignore[no-untyped-def]
    """Return a lower bound on the sum that makes a row of size `low` or more no farther than `worst`."""
    if worst == np.inf:
        return -1.0
    if how == PLAIN:
        return (own + low - worst * worst) / 2 - _SLACK * (own + low)
    value = 1 - worst * worst / 2
    if value <= _SLACK:
        return 0.0
    return (1 - _SLACK) * value * ((own + low) / (1 + value) if how == MINMAX else _geometric_mean(own, low))


@njit()
def _nearest_at_size(how, least, own, low, high):  # type: ignore[no-untyped-def]
    """Return a lower bound on the distance of any row of a size from `low` to `high`."""
    other = min(max(own, low), high)
    if least:
        return (1 - _SLACK) * distance_of(how, min(own, other), own, other) - _SLACK
    return (1 - _SLACK) * abs(math.sqrt(own) - math.sqrt(other)) if how == PLAIN else 0.0


@njit()
def _total(columns, values, first, last, held, counts, start, stop, least):  # type: ignore[no-untyped-def]
    """Return the sum of minima or products of a query's features `first` to `last` - 1 and a row's own features."""
    total = 0.0
    while first < last and start < stop:
        if columns[first] < held[start]:
            first += 1
        elif columns[first] > held[start]:
            start += 1
        else:
            value = np.float64(counts[start])
            total += min(values[first], value) if least else values[first] * value
            first += 1
            start += 1
    return total


@njit()
def _first_at_least(rows, low, high, row):  # type: ignore[no-untyped-def]
    """Return the first position from `low` to `high` whose row is `row` or more; rows ascend."""
    while low < high:
        middle = (low + high) // 2
        if rows[middle] < row:
            low = middle + 1
        else:
            high = middle
    return low


@njit()
def search_segment(  # type: ignore[no-untyped-def]
    offsets, columns, values, owns, how, least, whole, starts, rows, amounts, tops, limits, held, counts, sizes, ids,
    dead, distances, found, first_query, last_query,
):  # fmt: skip
    """Replace entries of the heaps ``distances[i], found[i]`` by nearer rows of a segment, for some queries i.

    Query i has the features ``offsets[i]`` to ``offsets[i + 1]`` of `columns` and `values`, and the size ``owns[i]``.
    `whole` says that all sums are whole numbers that single precision holds.
    """
    sums = np.zeros(_BLOCK + 1, np.float32)
    for i in range(first_query, last_query):
        _search(
            columns[offsets[i] : offsets[i + 1]], values[offsets[i] : offsets[i + 1]], owns[i], how, least, whole,
            starts, rows, amounts, tops, limits, held, counts, sizes, ids, dead, distances[i], found[i], sums,
        )  # fmt: skip


@njit()
def _search(  # type: ignore[no-untyped-def]
    columns, values, own, how, least, whole, starts, rows, amounts, tops, limits, held, counts, sizes, ids, dead,
    distances, found, sums,
):  # fmt: skip
    n, m = len(sizes), len(columns)
    most, length = np.empty(m), np.empty(m, np.int64)  # of each list: what it adds at most, and its entries
    for t in range(m):
        top = tops[columns[t]]
        most[t] = min(values[t], top) if least else values[t] * top
        length[t] = starts[columns[t] + 1] - starts[columns[t]]
    order = np.argsort(-length)
    n_blocks = (n + _BLOCK - 1) // _BLOCK
    up = min(np.searchsorted(sizes, own) // _BLOCK, n_blocks - 1)
    down = up - 1
    above, below = np.empty(m, np.int64), np.empty(m, np.int64)  # places in the lists
    for t in range(m):
        above[t] = _first_at_least(rows, starts[columns[t]], starts[columns[t] + 1], up * _BLOCK)
        below[t] = above[t]
    share, mean_length = _SHARE, (len(held) // max(1, n)) + m
    while True:
        near_up = near_down = np.inf
        if up < n_blocks:
            near_up = _nearest_at_size(how, least, own, sizes[up * _BLOCK], sizes[min(n, (up + 1) * _BLOCK) - 1])
        if down >= 0:
            near_down = _nearest_at_size(how, least, own, sizes[down * _BLOCK], sizes[(down + 1) * _BLOCK - 1])
        upward = near_up <= near_down and up < n_blocks
        if min(near_up, near_down) > distances[0] or (up >= n_blocks and down < 0):
            return
        block = up if upward else down
        if upward:
            up += 1
        else:
            down -= 1
        first, last = block * _BLOCK, min(n, (block + 1) * _BLOCK)
        need = _needed(how, distances[0], own, sizes[first])
        if need > most.sum():
            continue
        skipped, left_out = _left_out(order, most, share * need)
        saved = _add_lists(
            order, skipped, columns, values, least, starts, rows, amounts, above if upward else below, upward, first,
            last, sums, whole,
        )  # fmt: skip
        exact = whole and skipped == 0
        compared = _compare_rows(
            columns, values, own, how, least, exact, left_out, m, limits, held, counts, sizes, ids, dead, distances,
            found, sums, first, last,
        )  # fmt: skip
        if skipped:
            spent, saved = compared * mean_length, saved * (last - first) // n
            if 2 * spent > saved:
                share /= 2
            elif 8 * spent < saved:
                share = min(0.9, 1.25 * share)


@njit()
def _left_out(order, most, limit):  # type: ignore[no-untyped-def]
    """Return how many of the first lists in `order` add at most `limit` together, and what they add."""
    skipped, total = 0, 0.0
    while skipped < len(order) and total + most[order[skipped]] <= limit:
        total += most[order[skipped]]
        skipped += 1
    return skipped, total


@njit()
def _add_lists(  # type: ignore[no-untyped-def]
    order, skipped, columns, values, least, starts, rows, amounts, places, upward, first, last, sums, whole
):  # fmt: skip
    """Add the lists to the sums of the rows `first` to `last` - 1, but for the first ones in `order`.

    Return the number of entries in the lists left out.
    """
    saved = 0
    for s in range(len(order)):
        t = order[s]
        start, stop = starts[columns[t]], starts[columns[t] + 1]
        if s < skipped:
            saved += stop - start
            continue
        value = np.float32(values[t])
        if np.float64(value) < values[t]:
            value = np.nextafter(value, np.float32(np.inf))
        begin, end = _entries_of_block(rows, start, stop, places[t], upward, first, last)
        places[t] = end if upward else begin
        _add(sums, rows[begin:end], amounts[begin:end], value, least, whole, np.uint64(first))
    return saved


@njit()
def _entries_of_block(rows, start, stop, at, upward, first, last):  # type: ignore[no-untyped-def]
    """Return the first and the last + 1 of the entries of a list with rows from `first` to `last` - 1.

    The list is ``rows[start:stop]``, walked `upward` or downwards from the place `at`. It may have been left out of the
    blocks before; then the walk jumps to this one.
    """
    if upward:
        if at < stop and rows[at] < first:
            at = _first_at_least(rows, at, stop, first)
        return at, _end_of_block(rows, at, stop, last)
    if at > start and rows[at - 1] >= last:
        at = _first_at_least(rows, start, at, last)
    return _first_at_least(rows, start, at, first), at


@njit()
def _end_of_block(rows, low, high, row):  # type: ignore[no-untyped-def]
    """Return the first position from `low` to `high` whose row is `row` or more, which is near `low`."""
    step = 1
    while low + step < high and rows[low + step] < row:
        low += step
        step *= 2
    return _first_at_least(rows, low, min(low + step, high), row)


@njit()
def _add(sums, rows, amounts, value, least, whole, first):  # type: ignore[no-untyped-def]
    """Add a list to the sums; unsigned positions spare a test of their sign."""
    if least and whole and value <= 1:  # no count is less
        for at in range(len(rows)):
            sums[np.uint64(rows[at]) - first] += value
    elif least:
        for at in range(len(rows)):
            sums[np.uint64(rows[at]) - first] += min(value, np.float32(amounts[at]))
    else:
        for at in range(len(rows)):
            sums[np.uint64(rows[at]) - first] += value * np.float32(amounts[at])


@njit()
def _compare_rows(  # type: ignore[no-untyped-def]
    columns, values, own, how, least, exact, left_out, m, limits, held, counts, sizes, ids, dead, distances, found,
    sums, first, last,
):  # fmt: skip
    """Compare the rows whose sums may suffice, set all sums to 0, and return how many were summed again."""
    bits = sums.view(np.int32)  # sums are no less than 0, so these numbers have the same order
    rounding = 1.0 if exact else 1 - (m + 2) * _ROUNDED
    again = 0
    need = _needed(how, distances[0], own, sizes[first])
    cut = _as_bits(sums, (need - left_out) * rounding)
    for begin in range(0, last - first, _CHUNK):
        end = min(begin + _CHUNK, last - first)
        greatest = bits[begin]
        for j in range(begin, end):
            greatest = max(greatest, bits[j])
        if greatest >= cut:
            for j in range(begin, end):
                row = first + j
                if bits[j] < cut or dead[row]:
                    continue
                total = np.float64(sums[j])
                if not exact:
                    total = _total(columns, values, 0, m, held, counts, limits[row], limits[row + 1], least)
                    again += 1
                distance = distance_of(how, total, own, sizes[row])
                if distance < distances[0] or (distance == distances[0] and ids[row] < found[0]):
                    replace_last(distances, found, distance, ids[row])
                    need = _needed(how, distances[0], own, sizes[first])
                    cut = _as_bits(sums, (need - left_out) * rounding)
        sums[begin:end] = 0
    return again


@njit()
def _as_bits(sums, value):  # type: ignore[no-untyped-def]
    """Return the bits of `value` in single precision, rounded down, or 0 if it is negative; the last sum is scratch."""
    single = np.float32(value)
    if np.float64(single) > value:
        single = np.nextafter(single, np.float32(-np.inf))
    sums[-1] = max(single, np.float32(0.0))
    return sums.view(np.int32)[-1]
