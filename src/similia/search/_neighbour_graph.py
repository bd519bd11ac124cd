"""Loops of `knn_graph`: sorted lists of neighbours, neighbours of neighbours, rows of a tile of distances.

The lists of n objects are `best` (distances) and `which` (positions), both (n, c), each row in ascending order of
(distance, position). Unused entries hold infinity and n. Each loop but `reverse` writes for the rows `first` to `last`
- 1 only, so threads share the rows, and the result does not depend on their number.
"""

from __future__ import annotations

import numpy as np

from similia.core.hashing import popcount
from similia.core.jit import njit


@njit()
def insert(best, which, value, j):  # type: ignore[no-untyped-def]
    """Insert (value, j) into the sorted pairs (`best`, `which`) and drop the last; return its place, or -1 if none."""
    at = len(best)
    while at > 0 and (value < best[at - 1] or (value == best[at - 1] and j < which[at - 1])):
        at -= 1
        if at + 1 < len(best):
            best[at + 1], which[at + 1] = best[at], which[at]
    if at == len(best):
        return -1
    best[at], which[at] = value, j
    return at


@njit()
def merge_tile(D, row, column, best, which, first, last):  # type: ignore[no-untyped-def]
    """Insert the distances ``D[i, j]`` of the objects ``row + i`` and ``column + j`` into the lists of the former."""
    for i in range(first, last):
        values, positions = best[row + i], which[row + i]
        for j in range(D.shape[1]):
            if D[i, j] <= values[-1] and column + j != row + i:
                insert(values, positions, np.float64(D[i, j]), column + j)


@njit()
def merge_pairs(start, offsets, columns, distances, best, which, new, first, last):  # type: ignore[no-untyped-def]
    """Insert pairs into the lists; mark the entries that stay in `new`.

    The pairs of object ``start + i`` are the entries ``offsets[i]`` to ``offsets[i + 1]`` of `columns` and `distances`.
    No pair may be in the lists already.
    """
    c = best.shape[1]
    for i in range(first, last):
        values, positions, marks = best[start + i], which[start + i], new[start + i]
        for t in range(offsets[i], offsets[i + 1]):
            if not distances[t] <= values[-1]:
                continue
            at = insert(values, positions, np.float64(distances[t]), columns[t])
            if at >= 0:
                for k in range(c - 1, at, -1):
                    marks[k] = marks[k - 1]
                marks[at] = True


@njit()
def reverse(which, new, back, back_new):  # type: ignore[no-untyped-def]
    """Fill row j of `back` with objects that have j in their lists, those that rank it highest first; copy the marks.

    Unused entries are n.
    """
    n, width = back.shape
    used = np.zeros(n, np.int64)
    back[:] = n
    for k in range(which.shape[1]):
        for i in range(n):
            j = which[i, k]
            if j < n and used[j] < width:
                back[j, used[j]], back_new[j, used[j]] = i, new[i, k]
                used[j] += 1


@njit()
def propose(which, known, new, back, back_new, start, columns, counts, first, last):  # type: ignore[no-untyped-def]
    """Fill ``columns[i]`` with neighbours of neighbours of object ``start + i``, and ``counts[i]`` with how many.

    Neighbours are the lists `which` and `back`. A path of two steps counts if one of them is marked `new`. The list
    `back` of the object counts, too. Objects in its list `known` are left out.
    """
    n = len(which)
    seen = np.full(n, -1, np.int64)
    for i in range(first, last):
        own, used = start + i, 0
        seen[own] = own
        for j in known[own]:
            if j < n:
                seen[j] = own
        for step in range(which.shape[1] + back.shape[1]):
            forward = step < which.shape[1]
            j = which[own, step] if forward else back[own, step - which.shape[1]]
            if j == n:
                continue
            fresh = new[own, step] if forward else back_new[own, step - which.shape[1]]
            if not forward and seen[j] != own and used < columns.shape[1]:  # who lists an object may be near to it
                seen[j] = own
                columns[i, used] = j
                used += 1
            for k in range(which.shape[1]):
                if (fresh or new[j, k]) and which[j, k] < n and seen[which[j, k]] != own and used < columns.shape[1]:
                    seen[which[j, k]] = own
                    columns[i, used] = which[j, k]
                    used += 1
            for k in range(back.shape[1]):
                if (fresh or back_new[j, k]) and back[j, k] < n and seen[back[j, k]] != own and used < columns.shape[1]:
                    seen[back[j, k]] = own
                    columns[i, used] = back[j, k]
                    used += 1
        counts[i] = used


@njit()
def propose_window(order, place, known, reach, start, columns, counts, first, last):  # type: ignore[no-untyped-def]
    """Fill ``columns[i]`` with the objects within `reach` places of the object ``start + i`` in `order`.

    `place` is the inverse of `order`. Objects in the list `known` of the object are left out.
    """
    n = len(order)
    for i in range(first, last):
        own, used = start + i, 0
        for at in range(max(0, place[own] - reach), min(n, place[own] + reach + 1)):
            j = order[at]
            if j == own:
                continue
            fresh = True
            for k in range(known.shape[1]):
                if known[own, k] == j:
                    fresh = False
                    break
            if fresh:
                columns[i, used] = j
                used += 1
        counts[i] = used


@njit()
def propose_sharing(starts, kmers, limits, strings, most_read, known, start, columns, counts, first, last):  # type: ignore[no-untyped-def]
    """Fill ``columns[i]`` with the strings that share most k-mers with the string ``start + i``.

    String s has the k-mers ``kmers[starts[s]:starts[s + 1]]``, and k-mer f occurs in the strings
    ``strings[limits[f]:limits[f + 1]]``, in ascending order. Of these, the `most_read` around s are counted. Of
    those that share equally many k-mers, the first found are taken. Strings in its list `known` are left out.
    """
    n, most = len(known), columns.shape[1]
    shared, touched = np.zeros(n, np.int32), np.empty(n, np.int32)
    for i in range(first, last):
        own, n_touched, top = start + i, 0, 0
        for t in range(starts[own], starts[own + 1]):
            low, high = limits[kmers[t]], limits[kmers[t] + 1]
            if high - low > most_read:
                middle = low + np.searchsorted(strings[low:high], own)
                low = max(low, min(middle - most_read // 2, high - most_read))
                high = low + most_read
            for at in range(low, high):
                j = strings[at]
                if shared[j] == 0:
                    touched[n_touched] = j
                    n_touched += 1
                shared[j] += 1
        shared[own] = 0
        for j in known[own]:
            if j < n:
                shared[j] = 0
        for at in range(n_touched):
            top = max(top, shared[touched[at]])
        having = np.zeros(top + 1, np.int64)
        for at in range(n_touched):
            having[shared[touched[at]]] += 1
        used, least = 0, top
        while least > 1 and used + having[least] < most:
            used += having[least]
            least -= 1
        used = 0
        for at in range(n_touched):
            if shared[touched[at]] > least and used < most:
                columns[i, used] = touched[at]
                used += 1
        equal = used
        for at in range(n_touched):
            if shared[touched[at]] == least and least > 0 and equal < most:
                columns[i, equal] = touched[at]
                equal += 1
        counts[i] = equal
        for at in range(n_touched):
            shared[touched[at]] = 0


@njit()
def bits_apart(words, rows, columns, out, first, last):  # type: ignore[no-untyped-def]
    """Fill ``out[t]`` with the number of bits in which the codes ``rows[t]`` and ``columns[t]`` differ."""
    for t in range(first, last):
        total = np.uint64(0)
        for w in range(words.shape[1]):
            total += popcount(words[rows[t], w] ^ words[columns[t], w])
        out[t] = total
