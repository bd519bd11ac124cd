"""Compiled loops that draw and count graphlets, each stored as an integer code (see `similia.objects.graphlets`)."""

from __future__ import annotations

import numpy as np

from similia.core.hashing import GOLDEN, mix, popcount
from similia.core.jit import njit

_LOW = np.uint64(2**32 - 1)
_ONE, _32 = np.uint64(1), np.uint64(32)
_LARGEST_MATRIX = 2**19  # words (4 MiB); with a larger matrix, edges are looked up among sorted neighbours
_PATIENCE = 64  # steps of a walk after which, each time, its next new node is drawn directly
TABLE_BITS = 16  # codes below 2**16 are counted in a table that stays in the cache; larger ones are sorted


@njit()
def simple_adjacency(offsets, indptr, indices, new_offsets):  # type: ignore[no-untyped-def]
    """Drop arc directions, self-loops and repeated edges from graphs; return the result as (indptr, neighbours).

    Neighbours are sorted and numbered within their graph. A graph with more nodes by `new_offsets` than by `offsets`
    gets isolated nodes.
    """
    n_nodes = len(indptr) - 1
    reverse_ptr = np.zeros(n_nodes + 1, dtype=np.int64)
    for k in range(len(indices)):
        reverse_ptr[indices[k] + 1] += 1
    for v in range(n_nodes):
        reverse_ptr[v + 1] += reverse_ptr[v]
    place, sources = reverse_ptr[:-1].copy(), np.empty(len(indices), dtype=np.int32)
    new_indptr = np.zeros(new_offsets[-1] + 1, dtype=np.int64)
    neighbours = np.empty(2 * len(indices), dtype=np.int32)
    end = 0
    for g in range(len(offsets) - 1):
        for v in range(offsets[g], offsets[g + 1]):
            for k in range(indptr[v], indptr[v + 1]):
                sources[place[indices[k]]] = v - offsets[g]
                place[indices[k]] += 1
    for g in range(len(offsets) - 1):
        for v in range(offsets[g], offsets[g + 1]):
            end = _merge(v - offsets[g], indices[indptr[v] : indptr[v + 1]], offsets[g],
                         sources[reverse_ptr[v] : reverse_ptr[v + 1]], neighbours, end)  # fmt: skip
            new_indptr[new_offsets[g] + v - offsets[g] + 1] = end
        new_indptr[new_offsets[g] + offsets[g + 1] - offsets[g] + 1 : new_offsets[g + 1] + 1] = end
    return new_indptr, neighbours[:end].copy()


@njit()
def _merge(v, targets, shift, sources, out, end):  # type: ignore[no-untyped-def]
    """Append the union of ``targets - shift`` and `sources`, both sorted, to `out`, without `v`; return the new end."""
    i = j = 0
    while i < len(targets) or j < len(sources):
        if j == len(sources) or (i < len(targets) and targets[i] - shift <= sources[j]):
            u = targets[i] - shift
            if j < len(sources) and sources[j] == u:
                j += 1
            i += 1
        else:
            u = np.int64(sources[j])
            j += 1
        if u != v:
            out[end] = u
            end += 1
    return end


@njit()
def component_sizes(offsets, indptr, neighbours):  # type: ignore[no-untyped-def]
    sizes, queue = np.zeros(offsets[-1], dtype=np.int64), np.empty(offsets[-1], dtype=np.int64)
    for g in range(len(offsets) - 1):
        for source in range(offsets[g], offsets[g + 1]):
            if sizes[source]:
                continue
            queue[0], sizes[source] = source, 1
            first, last = 0, 1
            while first < last:
                for k in range(indptr[queue[first]], indptr[queue[first] + 1]):
                    u = offsets[g] + neighbours[k]
                    if sizes[u] == 0:
                        queue[last], sizes[u] = u, 1
                        last += 1
                first += 1
            for q in range(last):
                sizes[queue[q]] = last
    return sizes


@njit()
def graph_keys(offsets, indptr, neighbours, seed):  # type: ignore[no-untyped-def]
    """Return one 64-bit key for each graph: a hash of the seed, the number of nodes and the edges."""
    keys = np.empty(len(offsets) - 1, dtype=np.uint64)
    for g in range(len(offsets) - 1):
        edges = np.uint64(0)
        for v in range(offsets[g], offsets[g + 1]):
            for k in range(indptr[v], indptr[v + 1]):
                edges += mix(np.uint64(v - offsets[g]) << _32 | np.uint64(neighbours[k]))
        keys[g] = mix(mix(mix(seed) + np.uint64(offsets[g + 1] - offsets[g])) + edges)
    return keys


@njit()
def bit_matrix(n, indptr, neighbours):  # type: ignore[no-untyped-def]
    """Return a graph's adjacency matrix as rows of 64-bit words; if it would exceed 4 MiB, an array of shape (1, 0)."""
    n_words = (n + 63) >> 6
    if n * n_words > _LARGEST_MATRIX:
        return np.zeros((1, 0), dtype=np.uint64)
    matrix = np.zeros((n, n_words), dtype=np.uint64)
    for v in range(n):
        for k in range(indptr[v], indptr[v + 1]):
            matrix[v, neighbours[k] >> 6] |= _ONE << np.uint64(neighbours[k] & 63)
    return matrix


@njit()
def _code(visited, size, matrix, indptr, neighbours):  # type: ignore[no-untyped-def]
    """Return the code (see `sample_graphlets`) of the graphlet on ``visited[:size]``; `matrix` is from `bit_matrix`."""
    code, pair = np.uint64(0), np.uint64(0)
    for j in range(1, size):
        v = visited[j]
        if matrix.shape[1]:  # outside the loop, which is faster
            row = matrix[v]
            for i in range(j):
                u = visited[i]
                code |= (row[u >> 6] >> np.uint64(u & 63) & _ONE) << pair
                pair += _ONE
        else:
            for i in range(j):
                code |= np.uint64(_adjacent(visited[i], v, indptr, neighbours)) << pair
                pair += _ONE
    return code


@njit()
def _joined(u, v, matrix, indptr, neighbours):  # type: ignore[no-untyped-def]
    """Return 1 if an edge joins u and v, else 0; `matrix` is from `bit_matrix`."""
    if matrix.shape[1]:
        return np.int64(matrix[v, u >> 6] >> np.uint64(u & 63) & _ONE)
    return np.int64(_adjacent(u, v, indptr, neighbours))


@njit()
def _adjacent(u, v, indptr, neighbours):  # type: ignore[no-untyped-def]
    """Return whether an edge joins u and v, by binary search among the neighbours of the node of lower degree."""
    if indptr[u + 1] - indptr[u] > indptr[v + 1] - indptr[v]:
        u, v = v, u
    low, high = indptr[u], indptr[u + 1]
    while low < high:
        middle = (low + high) >> 1
        if neighbours[middle] < v:
            low = middle + 1
        else:
            high = middle
    return low < indptr[u + 1] and neighbours[low] == v


@njit()
def draw_walks(first, last, size, flyback, offsets, indptr, neighbours, sizes, start_offsets, starts, keys, codes):  # type: ignore[no-untyped-def]
    """Draw graphlets number `first` to `last` - 1 by random walks, and write their codes to `codes`.

    `codes` has shape (n_graphs, n_samples); graphlet number g * n_samples + s has the code ``codes[g, s]``. `flyback`
    is the probability of a return to the start of the walk, times 2**32. The start is one of the nodes
    ``starts[start_offsets[g]:start_offsets[g + 1]]``. `sizes` are from `component_sizes`, `keys` from `graph_keys`.
    """
    n_samples = codes.shape[1]
    while first < last:
        g = first // n_samples
        stop = min(last, (g + 1) * n_samples)
        low, high = offsets[g], offsets[g + 1]
        begin = indptr[low]
        arcs = neighbours[begin : indptr[high]]
        _walk(
            first - g * n_samples, stop - g * n_samples, size, flyback, indptr[low : high + 1] - begin, arcs,
            sizes[low:high], starts[start_offsets[g] : start_offsets[g + 1]], keys[g], codes[g],
        )  # fmt: skip
        first = stop


@njit()
def draw_uniform(first, last, size, offsets, indptr, neighbours, keys, codes):  # type: ignore[no-untyped-def]
    """Draw graphlets of distinct nodes chosen uniformly; arguments and output are those of `draw_walks`."""
    n_samples = codes.shape[1]
    while first < last:
        g = first // n_samples
        start, stop = first - g * n_samples, min(last - g * n_samples, n_samples)
        n, begin = offsets[g + 1] - offsets[g], indptr[offsets[g]]
        arcs, here = neighbours[begin : indptr[offsets[g + 1]]], indptr[offsets[g] : offsets[g + 1] + 1] - begin
        matrix = bit_matrix(n, here, arcs)
        if matrix.shape[1]:
            _draw_nodes(start, stop, size, matrix, keys[g], codes[g])
        else:  # walks that restart at each step
            alone, starts = np.ones(n, dtype=np.int64), np.arange(n).astype(np.int32)
            _walk(start, stop, size, np.uint64(0), here, arcs, alone, starts, keys[g], codes[g])
        first += stop - start


@njit()
def _draw_nodes(first, last, size, matrix, key, codes):  # type: ignore[no-untyped-def]
    """Draw graphlets `first` to `last` - 1 of one graph: distinct nodes, chosen uniformly."""
    n = np.uint64(len(matrix))
    last_seen_by, visited = np.full(len(matrix), -1, dtype=np.int64), np.empty(size, dtype=np.int64)
    for sample in range(first, last):
        state = mix(key + mix(np.uint64(sample)))
        code, pair = np.uint64(0), np.uint64(0)
        for j in range(size):
            node = np.int64(((mix(state) >> _32) * n) >> _32)
            state += GOLDEN
            while last_seen_by[node] == sample:
                node = np.int64(((mix(state) >> _32) * n) >> _32)
                state += GOLDEN
            last_seen_by[node], visited[j] = sample, node
            row = matrix[node]
            for i in range(j):
                u = visited[i]
                code |= (row[u >> 6] >> np.uint64(u & 63) & _ONE) << pair
                pair += _ONE
        codes[sample] = code


@njit()
def _walk(first, last, size, flyback, indptr, neighbours, sizes, starts, key, codes):  # type: ignore[no-untyped-def]
    n = len(sizes)
    matrix = bit_matrix(n, indptr, neighbours)
    packed = np.empty(n, dtype=np.uint64)  # first arc and degree of each node
    for v in range(n):
        packed[v] = np.uint64(indptr[v]) << _32 | np.uint64(indptr[v + 1] - indptr[v])
    last_seen_by, visited = np.full(n, -1, dtype=np.int64), np.empty(size, dtype=np.int64)
    n_starts = np.uint64(len(starts))
    for sample in range(first, last):
        state = mix(key + mix(np.uint64(sample)))
        n_seen = 0
        while n_seen < size:
            start = np.int64(starts[((mix(state) >> _32) * n_starts) >> _32])
            state += GOLDEN
            if last_seen_by[start] == sample:
                continue
            last_seen_by[start], visited[n_seen] = sample, start
            goal = min(size, n_seen + sizes[start])
            first_here = n_seen
            n_seen += 1
            node, steps = start, 0
            while n_seen < goal:
                word = mix(state)
                state += GOLDEN
                entry = packed[node]
                arc = (entry >> _32) + (((word >> _32) * (entry & _LOW)) >> _32)
                there = np.int64(neighbours[arc])
                node = start if (word & _LOW) < flyback else there
                visited[n_seen] = node
                n_seen += last_seen_by[node] != sample
                last_seen_by[node] = sample
                steps += 1
                if steps == _PATIENCE and n_seen < goal:
                    node, state = _leap(node, visited[first_here:n_seen], flyback, matrix, indptr, neighbours, state)
                    last_seen_by[node], visited[n_seen] = sample, node
                    n_seen += 1
                    steps = 0
        codes[sample] = _code(visited, size, matrix, indptr, neighbours)


@njit()
def _leap(node, seen, flyback, matrix, indptr, neighbours, state):  # type: ignore[no-untyped-def]
    """Return (next new node, new random state) of a walk that is at `node` and has visited `seen` (its start first).

    The new node is drawn from its exact distribution. Visited nodes other than `node` are eliminated in turn: a step to
    an eliminated node is replaced by the steps that leave it. ``leave[i, j]`` is the probability that a walk at i next
    leaves the visited nodes from j. Only positive numbers are added (Grassmann, Taksar & Heyman, 1985), so small
    probabilities are as precise as large ones.
    """
    m, fly = len(seen), np.float64(flyback) / 2.0**32
    move, leave = np.zeros((m, m)), np.zeros((m, m))
    here = 0
    for i in range(m):
        degree, known = indptr[seen[i] + 1] - indptr[seen[i]], 0
        for j in range(m):
            joined = _joined(seen[i], seen[j], matrix, indptr, neighbours)
            known += joined
            move[i, j] = (1.0 - fly) * joined / degree
        move[i, 0] += fly
        leave[i, i] = (1.0 - fly) * (degree - known) / degree
        if seen[i] == node:
            here = i
    gone = np.zeros(m, dtype=np.bool_)
    for out in range(m):
        if out == here:
            continue
        gone[out] = True
        total = leave[out].sum()
        for j in range(m):
            total += 0.0 if gone[j] else move[out, j]
        for i in range(m):
            if not gone[i]:
                share = move[i, out] / total
                move[i] += share * move[out]
                leave[i] += share * leave[out]
    level = np.float64(mix(state) >> np.uint64(11)) * 2.0**-53 * leave[here].sum()
    state += GOLDEN
    gate = 0
    for i in range(m):
        if leave[here, i] > 0.0:
            gate = i
            level -= leave[here, i]
            if level < 0.0:
                break
    first, degree = indptr[seen[gate]], np.uint64(indptr[seen[gate] + 1] - indptr[seen[gate]])
    while True:
        new = np.int64(neighbours[first + np.int64(((mix(state) >> _32) * degree) >> _32)])
        state += GOLDEN
        known = 0
        for i in range(m):
            known += seen[i] == new
        if known == 0:
            return new, state


@njit()
def count_small(codes, distinct, counts, lengths):  # type: ignore[no-untyped-def]
    """Count the codes of each row with one counter per code; all codes are below 2**TABLE_BITS.

    The ``lengths[i]`` distinct codes of row i are written to ``distinct[i]``, ascending, and their counts to
    ``counts[i]``.
    """
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
                code = (word << 6) + np.int64(popcount(lowest - _ONE))
                distinct[i, end], counts[i, end] = code, table[code]
                table[code] = 0
                end += 1
                bits ^= lowest
            occurs[word] = 0
        lengths[i] = end


@njit()
def count_sorted(codes, distinct, counts, lengths):  # type: ignore[no-untyped-def]
    """Count the codes of each row, which must be sorted, by runs of equal codes; the output is as in `count_small`."""
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
    """Return (class of each code, smallest code of each class); classes are orbits under two node permutations.

    ``tables[p, 0]`` and ``tables[p, 1]`` give the image of the low and of the high bits of a code under permutation p.
    Codes are visited in ascending order, so the first code found of a class is its smallest.
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
    """Return (distinct codes, counts) over all subsets of `size` nodes of one graph; the codes are not sorted.

    Bit d of ``seen[v]`` tells whether v is a neighbour of chosen node d, so each subset costs one shift and one OR.
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
    """Flip bit `depth` of ``seen[v]`` for each neighbour v of `node`."""
    for k in range(indptr[node], indptr[node + 1]):
        seen[neighbours[k]] ^= _ONE << np.uint64(depth)


@njit()
def _add(code, times, table, counts):  # type: ignore[no-untyped-def]
    """Add `times` to the count of a code in a hash table; return whether the code is new."""
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
    new_table, new_counts = np.zeros(4 * len(table), dtype=np.uint64), np.zeros(4 * len(table), dtype=np.int64)
    for slot in range(len(table)):
        if counts[slot]:
            _add(table[slot], counts[slot], new_table, new_counts)
    return new_table, new_counts


@njit(reassociate=True)
def second_moments(codes, n_bits, moments):  # type: ignore[no-untyped-def]
    n_samples = codes.shape[1]
    n_words = (n_samples + 63) // 64
    planes, block = np.empty((n_bits, n_words), dtype=np.uint64), np.empty(64, dtype=np.uint64)
    for i in range(len(codes)):
        for word in range(n_words):
            here = min(64, n_samples - 64 * word)
            block[here:] = 0
            block[:here] = codes[i, 64 * word : 64 * word + here]
            _transpose(block)
            for p in range(n_bits):
                planes[p, word] = block[p]
        pair = 0
        for p in range(n_bits):
            for q in range(p, n_bits):
                both = np.uint64(0)
                for word in range(n_words):
                    both += popcount(planes[p, word] & planes[q, word])
                moments[i, pair] = np.float64(both) / np.float64(n_samples)
                pair += 1


@njit()
def _transpose(block):  # type: ignore[no-untyped-def]
    """Transpose a 64 x 64 bit matrix in place: swap two quarters, then two quarters of each quarter, and so on."""
    mask, width = np.uint64(0x00000000FFFFFFFF), 32
    while width:
        shift = np.uint64(width)
        for first in range(0, 64, 2 * width):
            for k in range(first, first + width):
                swap = ((block[k] >> shift) ^ block[k + width]) & mask
                block[k] ^= swap << shift
                block[k + width] ^= swap
        width >>= 1
        mask ^= mask << np.uint64(width)
