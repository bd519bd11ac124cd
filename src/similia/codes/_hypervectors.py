"""Compiled loops that multiply and add hypervectors of ±1, stored as 64-bit words, for the encoders of hypervectors.

Here bit 1 stands for -1 and bit 0 for +1 ("sign bits"), so a product of ±1 vectors is an XOR, and the sum of m vectors
is m - 2 c, where c counts the ones at each position. Counts are bit-sliced: ``planes[p]`` holds bit p of the count of
every position, so adding a vector takes a few logical operations on whole words. A tree of carry-save adders (Harley
and Seal) adds eight vectors at a time. Adding m vectors of b words costs about 6 m b word operations.
"""

from __future__ import annotations

import numpy as np

from similia.core.jit import njit

_ONE = np.uint64(1)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@njit()
def bit_length(n):  # type: ignore[no-untyped-def]
    """Return the number of binary digits of n >= 0, at least 1."""
    length = 1
    while n >> length:
        length += 1
    return length


@njit()
def add_eight(rows, planes, n_planes):  # type: ignore[no-untyped-def]
    """Add the eight vectors in `rows` to the counts in `planes` (row p: bit p of each count); overwrites `rows`."""
    for w in range(rows.shape[1]):
        a, b, c, d = rows[0, w], rows[1, w], rows[2, w], rows[3, w]
        e, f, g, h = rows[4, w], rows[5, w], rows[6, w], rows[7, w]
        # seven full adders: planes[0] + a + b gives the sum s and the carry two_a, and so on
        x = planes[0, w] ^ a
        two_a = (planes[0, w] & a) | (x & b)
        s = x ^ b
        x = s ^ c
        two_b = (s & c) | (x & d)
        s = x ^ d
        x = planes[1, w] ^ two_a
        four_a = (planes[1, w] & two_a) | (x & two_b)
        twos = x ^ two_b
        x = s ^ e
        two_a = (s & e) | (x & f)
        s = x ^ f
        x = s ^ g
        two_b = (s & g) | (x & h)
        planes[0, w] = x ^ h
        x = twos ^ two_a
        four_b = (twos & two_a) | (x & two_b)
        planes[1, w] = x ^ two_b
        x = planes[2, w] ^ four_a
        rows[0, w] = (planes[2, w] & four_a) | (x & four_b)
        planes[2, w] = x ^ four_b
    ripple(rows[0], planes, 3, n_planes)


@njit()
def ripple(carry, planes, first, n_planes):  # type: ignore[no-untyped-def]
    """Add 2**first to the counts in `planes` (row p: bit p of each count) where `carry` has a 1; overwrites `carry`."""
    for p in range(first, n_planes):
        plane = planes[p]
        for w in range(len(carry)):
            old = plane[w]
            plane[w] = old ^ carry[w]
            carry[w] &= old


@njit()
def majority(planes, n_planes, m, ties, out):  # type: ignore[no-untyped-def]
    """Set bits of `out` to 1 where `planes` counts more than m / 2 ones, and to those of `ties` where just m / 2."""
    half = m // 2
    for w in range(len(out)):
        above, equal = np.uint64(0), _ALL
        for p in range(n_planes - 1, -1, -1):
            plane = planes[p, w]
            if (half >> p) & 1:
                equal &= plane
            else:
                above |= equal & plane
                equal &= ~plane
        out[w] = above if m & 1 else above | (equal & ties[w])


@njit()
def multiply(table, factors, out):  # type: ignore[no-untyped-def]
    """Fill `out` with the XOR of the rows of `table` that `factors` lists, up to a -1: the sign bits of a product."""
    out[:] = table[factors[0]]
    for j in range(1, len(factors)):
        if factors[j] < 0:
            break
        row = table[factors[j]]
        for w in range(len(out)):
            out[w] ^= row[w]


@njit()
def add(table, factors, planes, carry, ties, out):  # type: ignore[no-untyped-def]
    """Fill `out` with the bitwise majority of the rows of `table` that `factors` lists; -1 ends the list."""
    m = 0
    while m < len(factors) and factors[m] >= 0:
        m += 1
    n_planes = bit_length(m)
    planes[:n_planes] = np.uint64(0)
    for j in range(m):
        carry[:] = table[factors[j]]
        ripple(carry, planes, 0, bit_length(j + 1))
    majority(planes, n_planes, m, ties, out)


@njit()
def count_ones(planes, n_planes, n_bits, m, out):  # type: ignore[no-untyped-def]
    """Fill `out` with the sum of m vectors of ±1: m - 2 c, where c is the count of -1 at each position.

    Row p of `planes` holds bit p of each count: for position i, this is bit 63 - i % 64 of word i // 64.
    """
    sums = np.empty(64, dtype=np.int32)
    for w in range(planes.shape[1]):
        sums[:] = m
        for p in range(n_planes):
            plane = planes[p, w]
            for i in range(64):
                sums[i] -= np.int32(((plane >> np.uint64(63 - i)) & _ONE) << np.uint64(p + 1))
        first = 64 * w
        last = min(n_bits, first + 64)
        out[first:last] = sums[: last - first]


@njit()
def finish(rows, planes, m, n_bits, ties, i, words, sums):  # type: ignore[no-untyped-def]
    """Complete the counts in `planes` with the last m % 8 of m vectors, which are the first rows of `rows`.

    Then set ``words[i]`` to the majority of all m vectors, and ``sums[i]`` to their sum; an empty `words` or `sums` is
    skipped.
    """
    n_planes = bit_length(m)
    for r in range(m % 8):
        ripple(rows[r], planes, 0, n_planes)
    if len(words):
        majority(planes, n_planes, m, ties, words[i])
    if len(sums):
        count_ones(planes, n_planes, n_bits, m, sums[i])


@njit()
def bundle_members(table, members, offsets, additive, ties, n_bits, words, sums):  # type: ignore[no-untyped-def]
    """Compute the majority and the sum of the members ``offsets[i]:offsets[i + 1]`` of each object i.

    A member is a row of `members` (int64, n_factors columns): it lists rows of `table` (sign bits, uint64, n_words
    columns) and stands for their product, or for their majority if `additive`; -1 ends a shorter list. The outputs are
    `words` (n, n_words), the sign bits of the majority, and `sums` (n, n_bits), int32. An output with no rows is
    skipped. An object without members has sums 0 and the bits of `ties`.
    """
    n_words = table.shape[1]
    longest = 0
    for i in range(len(offsets) - 1):
        longest = max(longest, offsets[i + 1] - offsets[i])
    planes = np.empty((max(3, bit_length(longest)), n_words), dtype=np.uint64)
    inner = np.empty((bit_length(members.shape[1]), n_words), dtype=np.uint64)
    carry = np.empty(n_words, dtype=np.uint64)
    rows = np.empty((8, n_words), dtype=np.uint64)
    for i in range(len(offsets) - 1):
        m = offsets[i + 1] - offsets[i]
        planes[:] = np.uint64(0)
        for k in range(m):
            factors = members[offsets[i] + k]
            if additive:
                add(table, factors, inner, carry, ties, rows[k % 8])
            else:
                multiply(table, factors, rows[k % 8])
            if k % 8 == 7:
                add_eight(rows, planes, bit_length(k + 1))
        finish(rows, planes, m, n_bits, ties, i, words, sums)
