"""Loops over graphlet codes: enumeration of all subsets, counts of equal codes, isomorphism classes."""

from __future__ import annotations

import numpy as np

from similia.core.hashing import mix
from similia.core.jit import njit

_ONE = np.uint64(1)
TABLE_BITS = 16  # codes below 2**16 are counted in a table that stays in the cache; larger ones are sorted


@njit()
def count_small(codes, distinct, counts, lengths):  # type: ignore[no-untyped-def]
    """Count codes below 2**TABLE_BITS row by row; a bit per code tells in order which ones occur."""
    table = np.zeros(1 << TABLE_BITS, dtype=np.int64)
    occurs = np.zeros(1 << (TABLE_BITS - 6), dtype=np.uint64)
    for i in range(len(codes)):
        for k in range(codes.shape[1]):
            code = np.int64(codes[i, k])
            table[code] += 1
            occurs[code >> 6] |= _ONE << np.uint64(code & 63)
        end = 0
        for word in range(len(occurs)):
            bits = occurs[word]
            while bits:
                lowest = bits & (~bits + _ONE)
                code = (word << 6) + _bit_number(lowest)
                distinct[i, end], counts[i, end] = code, table[code]
                table[code] = 0
                end += 1
                bits ^= lowest
            occurs[word] = 0
        lengths[i] = end


@njit()
def _bit_number(bit):  # type: ignore[no-untyped-def]
    """Return the position of the only 1 bit of a word."""
    number = 0
    for step in (32, 16, 8, 4, 2, 1):
        if bit >> np.uint64(step):
            number += step
            bit >>= np.uint64(step)
    return number


@njit()
def count_sorted(codes, distinct, counts, lengths):  # type: ignore[no-untyped-def]
    """Count runs of equal codes in sorted rows."""
    for i in range(len(codes)):
        end = -1
        for k in range(codes.shape[1]):
            if k == 0 or codes[i, k] != codes[i, k - 1]:
                end += 1
                distinct[i, end], counts[i, end] = codes[i, k], 0
            counts[i, end] += 1
        lengths[i] = end + 1


@njit()
def orbits(size, tables, low_bits):  # type: ignore[no-untyped-def]
    """Return (class of each code, smallest code of each class) under the two permutations of `tables`.

    ``tables[p, 0]`` and ``tables[p, 1]`` say where permutation p takes the low bits and the high bits of a
    code. Codes are visited in ascending order, so the first code met of a class is its smallest.
    """
    n_codes = 1 << (size * (size - 1) // 2)
    unknown = np.uint32(0xFFFFFFFF)
    classes, stack = np.full(n_codes, unknown, dtype=np.uint32), np.empty(n_codes, dtype=np.uint32)
    smallest = np.empty(2048, dtype=np.uint64)
    n_classes, low = 0, (1 << low_bits) - 1
    for first in range(n_codes):
        if classes[first] != unknown:
            continue
        classes[first], smallest[n_classes], stack[0] = n_classes, first, first
        height = 1
        while height:
            height -= 1
            code = np.int64(stack[height])
            for p in range(2):
                image = tables[p, 0, code & low] | tables[p, 1, code >> low_bits]
                if classes[image] == unknown:
                    classes[image], stack[height] = n_classes, image
                    height += 1
        n_classes += 1
    return classes, smallest[:n_classes].copy()


@njit()
def enumerate_codes(size, indptr, neighbours):  # type: ignore[no-untyped-def]
    """Return (distinct codes, counts) of all subsets of `size` ascending nodes of one graph, in no order.

    ``seen[v]`` keeps which of the chosen nodes have v as neighbour, so a subset costs one addition.
    """
    n = len(indptr) - 1
    seen, chosen = np.zeros(n, dtype=np.uint64), np.full(size, -1, dtype=np.int64)
    prefix = np.zeros(size + 1, dtype=np.uint64)
    table, counts, used = np.zeros(1024, dtype=np.uint64), np.zeros(1024, dtype=np.int64), 0
    depth = 0
    while depth >= 0:
        if chosen[depth] >= 0:  # take the node back
            _mark(chosen[depth], depth, indptr, neighbours, seen)
        elif depth:
            chosen[depth] = chosen[depth - 1]
        chosen[depth] += 1
        shift = np.uint64(depth * (depth - 1) // 2)
        if depth == size - 1:
            for v in range(chosen[depth], n):
                if 2 * used > len(table):
                    table, counts = _grown(table, counts)
                used += _add(prefix[depth] | seen[v] << shift, 1, table, counts)
            chosen[depth] = -1
            depth -= 1
        elif chosen[depth] > n - size + depth:
            chosen[depth] = -1
            depth -= 1
        else:
            prefix[depth + 1] = prefix[depth] | seen[chosen[depth]] << shift
            _mark(chosen[depth], depth, indptr, neighbours, seen)
            depth += 1
    kept = counts > 0
    return table[kept], counts[kept]


@njit()
def _mark(node, depth, indptr, neighbours, seen):  # type: ignore[no-untyped-def]
    """Flip bit `depth` at the neighbours of a node."""
    for k in range(indptr[node], indptr[node + 1]):
        seen[neighbours[k]] ^= _ONE << np.uint64(depth)


@njit()
def _add(code, times, table, counts):  # type: ignore[no-untyped-def]
    """Add to the count of a code; return whether it is new."""
    last_slot = len(table) - 1
    slot = np.int64(mix(code) & np.uint64(last_slot))
    while counts[slot] and table[slot] != code:
        slot = (slot + 1) & last_slot
    new = counts[slot] == 0
    table[slot] = code
    counts[slot] += times
    return new


@njit()
def _grown(table, counts):  # type: ignore[no-untyped-def]
    """Return a hash table four times as long."""
    new_table, new_counts = np.zeros(4 * len(table), dtype=np.uint64), np.zeros(4 * len(table), dtype=np.int64)
    for slot in range(len(table)):
        if counts[slot]:
            _add(table[slot], counts[slot], new_table, new_counts)
    return new_table, new_counts
