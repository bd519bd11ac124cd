"""PageRank of all graphs of a batch in sums that do not depend on the order of nodes.

    x(v) <- (1 - damping) + damping * (sum over arcs u -> v of x(u) / degree(u)),    from x = 1

Usual definitions divide by the number of nodes and give the mass of nodes without arcs to all nodes equally;
both scale all values of a graph alike, which leaves their order. x is a multiple of a power of two so small
that every sum of a graph's values fits 53 bits; quotients are rounded down to such multiples. All sums are
then exact, and nodes that a symmetry of the graph exchanges have exactly equal values, whatever their numbers.

Cost: n_iter (nodes + arcs). S. Brin and L. Page (1998).
"""

from __future__ import annotations

import numpy as np

from similia.core.jit import njit


@njit()
def pagerank(node_offsets, indptr, indices, damping, n_iter):  # type: ignore[no-untyped-def]
    """Return the PageRank of each node, as float64 integers on a scale of each graph's own, shape (n_nodes,)."""
    n_nodes = len(indptr) - 1
    rank = np.empty(n_nodes)
    gathered = np.empty(n_nodes)
    for g in range(len(node_offsets) - 1):
        first, last = node_offsets[g], node_offsets[g + 1]
        n = last - first
        one = 2.0**52
        while n * one > 2.0**52:
            one /= 2
        teleport = np.floor((1 - damping) * one)
        rank[first:last] = one
        for _ in range(n_iter):
            gathered[first:last] = 0.0
            for u in range(first, last):
                share = np.floor(rank[u] / max(indptr[u + 1] - indptr[u], 1))
                for k in range(indptr[u], indptr[u + 1]):
                    gathered[indices[k]] += share
            for v in range(first, last):
                rank[v] = teleport + np.floor(damping * gathered[v])
    return rank
