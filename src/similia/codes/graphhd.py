"""Graphs to hypervectors through the ranks of their nodes.

PageRank ranks the nodes of a graph. The node of rank r gets the random vector v(r), the same in all graphs. An edge is
encoded as the product of the vectors of its two nodes, and a graph as the bitwise majority of its edge vectors:

    code(G) = sign( sum over edges {u, w} of v(rank(u)) * v(rank(w)) )

Labels, attributes and weights are not used: graphs are similar if their edges join the same pairs of ranks.

PageRank x is computed in sums that do not depend on the order of nodes:

    x(v) <- (1 - damping) + damping * (sum over arcs u -> v of x(u) / degree(u)),    from x = 1

Usual definitions divide by the number of nodes and spread the mass of nodes without arcs over all nodes. These two
steps scale all values of a graph equally and do not change their order. Here all values are multiples of one power of
two, chosen so that every sum of a graph's values fits 53 bits, and quotients are rounded down to such multiples. All
sums are then exact. So nodes that are exchanged by a symmetry of the graph have equal values, however the nodes are
numbered.

Cost: `n_iter` passes over the arcs, then about 8 operations per edge and 64-bit word of a vector. Nunes et al. (2022).
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from similia.codes.hypervectors import (
    Codes,
    Counts,
    Indices,
    SeededEncoder,
    basis,
    bundle_members,
    empty_output,
    tie_code,
    to_words,
)
from similia.core.config import rows_per_block
from similia.core.jit import njit
from similia.core.state import count, state
from similia.core.validation import check_positive_int
from similia.objects import GraphBatch
from similia.objects.sequences import runs

_BYTES = 128  # bytes of working memory per node or arc


@state(fits=lambda state, sizes: 0 <= state["damping"] < 1, damping="number", n_iter=count(least=1))
class GraphHDEncoder(SeededEncoder):
    """Encode a graph as the majority or the sum of random vectors, one for each edge (GraphHD).

    The vector of an edge depends on the ranks of its two nodes by PageRank.

    Parameters
    ----------
    n_bits : int, default=10_000
        Length of the hypervectors (long, random-looking codes), a multiple of 8.
    damping : float, default=0.85
        Probability, in [0, 1), that the random walk of PageRank follows an edge instead of restarting.
    n_iter : int, default=100
        Number of PageRank iterations.
    output : {"bits", "counts"}, default="bits"
        What `transform` returns: the bitwise majority of the edge vectors, packed ("bits"), or their sum, in which bit
        1 counts as +1 and bit 0 as -1 ("counts").
    random_state : int, Generator, RandomState or None
        Seed or generator from which `fit` draws `seed_`.

    Attributes
    ----------
    seed_ : int
        Seed of the random vectors: `seed_` and the rank of a node by PageRank determine the vector of the node. So
        graphs may be larger than those of `fit`, and every process encodes them identically.

    Notes
    -----
    Nodes are ranked by PageRank; the node with the largest value has rank 0. A node gets the random vector that belongs
    to its rank, and an edge gets the product of the vectors of its two nodes. Nodes with equal PageRank, such as the
    leaves of a star, are ranked by node number. If no two nodes have equal PageRank, the code does not depend on the
    numbering.

    Two nodes are joined by one edge if there is an arc between them, in one direction or in both. Self-loops get no
    edge vector: the product ``v * v`` would be the same for every node. But PageRank follows self-loops, and it follows
    an arc only in its direction. If a bit is 1 in exactly half of the edge vectors, there is no majority: the code then
    takes this bit from a fixed random vector. A graph without edges has all its bits from this vector, and counts of 0.

    References
    ----------
    I. Nunes, M. Heddes, T. Givargis, A. Nicolau and A. Veidenbaum, "GraphHD: efficient graph classification using
    hyperdimensional computing", DATE 2022.

    Examples
    --------
    >>> import networkx as nx
    >>> from similia import codes
    >>> encoder = codes.GraphHDEncoder(random_state=0)
    >>> encoded = encoder.fit_transform([nx.star_graph(9), nx.star_graph(8), nx.path_graph(10)])
    >>> encoded.shape
    (3, 1250)
    >>> likeness = codes.similarity(encoded)
    >>> bool(likeness[0, 1] > 0.7 > likeness[0, 2])
    True
    """

    def __init__(
        self,
        n_bits: int = 10_000,
        damping: float = 0.85,
        n_iter: int = 100,
        output: str = "bits",
        random_state: Any = None,
    ) -> None:
        self.n_bits = n_bits
        self.damping = damping
        self.n_iter = n_iter
        self.output = output
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive_int(self.n_iter, "n_iter")
        if not isinstance(self.damping, Real) or not 0 <= self.damping < 1:
            raise ValueError(f"damping must be a number in [0, 1), got {self.damping!r}")

    def _encode(self, X: Any) -> Codes | Counts:
        from similia.objects import as_graphs

        batch = as_graphs(X)
        n_ranks = int(np.diff(batch.node_offsets).max(initial=0))
        table = to_words(basis(self.seed_, range(n_ranks), self.n_bits))
        ties = tie_code(self.seed_, self.n_bits)
        out = empty_output(len(batch), self.n_bits, self.output)
        bytes_before = _BYTES * (batch.node_offsets + batch.indptr[batch.node_offsets])
        for run in runs(bytes_before, rows_per_block(1)):
            part = batch if run == slice(0, len(batch)) else batch[run]
            edges, offsets = _edges(part)
            bundle_members(table, _ranks(part, self.damping, self.n_iter)[edges], offsets, ties, out[run])
        return out

    def _example(self) -> Any:
        return [{"edge_index": np.array([[0], [1]]), "n_nodes": 2}]


def _edges(batch: GraphBatch) -> tuple[Indices, Indices]:
    """Return (edges, offsets): undirected edges (u, v), u < v; those of graph i are ``offsets[i]:offsets[i + 1]``."""
    source = np.repeat(np.arange(batch.n_nodes, dtype=np.int64), batch.degrees)
    low, high = np.minimum(source, batch.indices), np.maximum(source, batch.indices)
    keys = np.sort((low * batch.n_nodes + high)[low < high])
    keys = keys[np.diff(keys, prepend=-1) > 0]
    edges = np.stack(np.divmod(keys, max(batch.n_nodes, 1)), axis=1)
    return edges, np.searchsorted(edges[:, 0], batch.node_offsets).astype(np.int64)


def _ranks(batch: GraphBatch, damping: float, n_iter: int) -> Indices:
    """Return the rank of each node in its graph, by decreasing PageRank; ties are broken by node number."""
    centrality = pagerank(batch.node_offsets, batch.indptr, batch.indices, float(damping), int(n_iter))
    order = np.lexsort((-centrality, batch.graph_of_node))
    ranks = np.empty(batch.n_nodes, dtype=np.int64)
    ranks[order] = np.arange(batch.n_nodes) - np.repeat(batch.node_offsets[:-1], np.diff(batch.node_offsets))
    return ranks


@njit()
def pagerank(node_offsets, indptr, indices, damping, n_iter):  # type: ignore[no-untyped-def]
    """Return each node's PageRank, times a power of two for its graph, rounded down to a whole number (float)."""
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
