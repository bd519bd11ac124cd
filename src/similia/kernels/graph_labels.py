"""Loops of the graph kernels: one 64-bit id for each occurrence of a feature, or counts of ids at once."""

from __future__ import annotations

import numpy as np

from similia.core.hashing import combine, mix
from similia.core.jit import njit
from similia.kernels.counts import _shift_for, _slot


@njit()
def vertex_ids(labels):  # type: ignore[no-untyped-def]
    """Return one id for each label."""
    ids = np.empty(len(labels), dtype=np.uint64)
    for v in range(len(labels)):
        ids[v] = mix(np.uint64(labels[v]))
    return ids


@njit()
def refined_ids(ids, indptr, indices, edge_labels, n_iter):  # type: ignore[no-untyped-def]
    """Return colours of n_iter + 1 levels, shape (n_nodes, n_iter + 1); level 0 is `ids`.

    A new colour is a hash of the old one and of the multiset of (edge label, colour) around: the sum
    of hashes modulo 2**64 does not depend on the order of neighbours. `edge_labels` may be empty.
    """
    colours = np.empty((len(ids), n_iter + 1), dtype=np.uint64)
    colours[:, 0] = ids
    for level in range(n_iter):
        for v in range(len(ids)):
            around = np.uint64(0)
            for k in range(indptr[v], indptr[v + 1]):
                colour = colours[indices[k], level]
                around += combine(colour, np.uint64(edge_labels[k])) if len(edge_labels) else mix(colour)
            colours[v, level + 1] = combine(colours[v, level], around)
    return colours


@njit()
def edge_ids(labels, node_offsets, indptr, indices, edge_labels, ids, offsets):  # type: ignore[no-untyped-def]
    """Write one id for each edge and where each graph's begin; two arcs u-v and v-u of one label are one edge."""
    end = 0
    for g in range(len(node_offsets) - 1):
        for v in range(node_offsets[g], node_offsets[g + 1]):
            for k in range(indptr[v], indptr[v + 1]):
                u = indices[k]
                if v > u and _has_twin(u, v, k, indptr, indices, edge_labels):
                    continue
                low, high = min(labels[u], labels[v]), max(labels[u], labels[v])
                ids[end] = combine(np.uint64(low), np.uint64(high))
                if len(edge_labels):
                    ids[end] = combine(ids[end], np.uint64(edge_labels[k]))
                end += 1
        offsets[g + 1] = end


@njit()
def _has_twin(u, v, k, indptr, indices, edge_labels):  # type: ignore[no-untyped-def]
    """Return whether arc u-v exists with the label of arc k."""
    place = indptr[u] + np.searchsorted(indices[indptr[u] : indptr[u + 1]], v)
    found = place < indptr[u + 1] and indices[place] == v
    return found and (len(edge_labels) == 0 or edge_labels[place] == edge_labels[k])


@njit()
def count_shortest_paths(labels, node_offsets, indptr, indices):  # type: ignore[no-untyped-def]
    """Return (offsets, ids, values): how often each (label, label, distance) occurs in each graph.

    Breadth-first search from each node; what it reaches is counted at once in a hash table of the
    graph, so memory is one number for each distinct triple and not for each pair of nodes.
    """
    offsets = np.zeros(len(node_offsets), dtype=np.int64)
    ids, values = np.empty(1024, dtype=np.uint64), np.empty(1024)
    seen_from = np.full(len(labels), -1, dtype=np.int64)
    queue, distances = np.empty(len(labels), dtype=np.int64), np.empty(len(labels), dtype=np.int64)
    for g in range(len(node_offsets) - 1):
        start = end = offsets[g]
        table = np.full(64, -1, dtype=np.int64)
        for source in range(node_offsets[g], node_offsets[g + 1]):
            reached = _search(source, indptr, indices, seen_from, queue, distances)
            if end + reached > len(ids):
                ids, values = _with_room(ids, end + reached), _with_room(values, end + reached)
            if 2 * (end - start + reached) > len(table):
                table = _rehashed(ids, start, end, reached)
            end = _tally(labels, source, queue[:reached], distances, table, ids, values, end)
        offsets[g + 1] = end
    return offsets, ids[: offsets[-1]].copy(), values[: offsets[-1]].copy()


@njit()
def _search(source, indptr, indices, seen_from, queue, distances):  # type: ignore[no-untyped-def]
    """Write the nodes that can be reached, nearest first, and their distances; return how many."""
    queue[0], distances[0], seen_from[source] = source, 0, source
    first, last = 0, 1
    while first < last:
        v = queue[first]
        for k in range(indptr[v], indptr[v + 1]):
            u = indices[k]
            if seen_from[u] != source:
                seen_from[u] = source
                queue[last], distances[last] = u, distances[first] + 1
                last += 1
        first += 1
    return last


@njit()
def _tally(labels, source, queue, distances, table, ids, values, end):  # type: ignore[no-untyped-def]
    """Add the triples of one source to the table of its graph; return the new end of `ids`."""
    shift, last_slot = _shift_for(len(table)), len(table) - 1
    distance, key = 0, np.uint64(0)
    for q in range(1, len(queue)):
        if distances[q] != distance:
            distance = distances[q]
            key = combine(labels[source], np.uint64(distance))
        triple = combine(key, labels[queue[q]])
        slot = _slot(triple, shift)
        while table[slot] >= 0 and ids[table[slot]] != triple:
            slot = (slot + 1) & last_slot
        if table[slot] < 0:
            ids[end], values[end], table[slot] = triple, 0.0, end
            end += 1
        values[table[slot]] += 1.0
    return end


@njit()
def _rehashed(ids, start, end, more):  # type: ignore[no-untyped-def]
    """Return a table that holds ``ids[start:end]`` with room for `more`, at most half full."""
    n_slots = 64
    while n_slots < 4 * (end - start + more):
        n_slots *= 2
    table = np.full(n_slots, -1, dtype=np.int64)
    shift = _shift_for(n_slots)
    for k in range(start, end):
        slot = _slot(ids[k], shift)
        while table[slot] >= 0:
            slot = (slot + 1) & (n_slots - 1)
        table[slot] = k
    return table


@njit()
def _with_room(values, n):  # type: ignore[no-untyped-def]
    """Return a longer copy, so that doubling keeps the total cost linear."""
    grown = np.empty(2 * n, dtype=values.dtype)
    grown[: len(values)] = values
    return grown
