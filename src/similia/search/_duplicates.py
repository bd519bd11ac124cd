"""The loop of `near_duplicates`: pairs of objects with equal keys."""

from __future__ import annotations

from similia.core.jit import njit


@njit()
def propose_equal(keys, hashes, least, order, own, band, start, left, right):  # type: ignore[no-untyped-def]
    """Write pairs of rows with equal keys in column `band`, but in no column before it, to `left` and `right`.

    `order` sorts the rows by this column, and rows with equal keys by position; `own` is the sorted column. Pairs of
    which fewer than `least` of the `hashes` are equal are left out. Begin at the place `start` of `order`. Return the
    place to go on from (its length at the end), and the number of pairs. There must be room for ``len(order)`` pairs.
    """
    n, used = len(order), 0
    for a in range(start, n):
        i, stop = order[a], a + 1
        while stop < n and own[stop] == own[a]:
            stop += 1
        if used + stop - a - 1 > len(left):
            return a, used
        for b in range(a + 1, stop):
            j, known = order[b], False
            for c in range(band):
                if keys[i, c] == keys[j, c]:
                    known = True
                    break
            if known:
                continue
            equal = 0
            for h in range(hashes.shape[1]):
                equal += hashes[i, h] == hashes[j, h]
            if equal >= least:
                left[used], right[used] = i, j
                used += 1
    return n, used


@njit()
def unite(root, left, right):  # type: ignore[no-untyped-def]
    """Join the sets of ``left[t]`` and ``right[t]`` in a forest in which each root is the smallest of its tree."""
    for t in range(len(left)):
        a, b = left[t], right[t]
        while root[a] != a:
            root[a] = root[root[a]]
            a = root[a]
        while root[b] != b:
            root[b] = root[root[b]]
            b = root[b]
        if a < b:
            root[b] = a
        else:
            root[a] = b


@njit()
def flatten(root):  # type: ignore[no-untyped-def]
    """Let each entry name the root of its tree; an entry is never below its root."""
    for i in range(len(root)):
        root[i] = root[root[i]]
