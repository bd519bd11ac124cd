"""Loops of `FeatureIndex`: the k nearest rows of a segment by inverted lists, exactly, and sums of minima or products.

A segment holds rows in ascending order of size, k(x, x) of the features. The list of feature f is the entries
``starts[f]`` to ``starts[f + 1]`` of `rows` (ascending) and `amounts`. Row r has the features (ascending) and counts
``limits[r]`` to ``limits[r + 1]`` of `held` and `counts`.

Blocks of rows are visited outwards from the query's own size, until the sizes alone rule out every row beyond
(`_nearest_at_size`). Within a block, the lists of the query add to one number for each row, and only rows that reach
the `_needed` sum are compared. The longest lists are left out as long as their features together add at most a share
of the needed sum (MaxScore): a row that they alone hold cannot reach it, and the few that may are summed from their own
features. That share shrinks if such sums take longer than the lists, and grows otherwise; it has no effect on results.

Paper: Turtle & Flood, "Query evaluation: strategies and optimizations", Information Processing & Management 1995.
"""

from __future__ import annotations

import math

import numpy as np

from similia.core.jit import njit
from similia.search.scan import replace_last

MINMAX, COSINE, PLAIN = 0, 1, 2  # how a sum of minima or products becomes a kernel value
_BLOCK, _CHUNK = 2**13, 64  # rows in a block, whose sums fit the cache, and rows whose greatest sum is tested first
_SHARE = 0.2  # of the needed sum that features of left-out lists may add, at first
_SLACK = 1e-9  # relative: for the rounding of bounds
_LEAST = 2.0**-1022  # smaller products lose digits
_ROUNDED = 2.0**-22  # relative: for the rounding of one single-precision sum


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
