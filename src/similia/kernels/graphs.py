r"""Graph kernels that count substructures: vertices, edges, refined colours, shortest paths.

Each kernel is an inner product of explicit features, counts with 64-bit ids (see `FeatureKernel`). Renumbering the
nodes of a graph does not change its features, unless `Graphlet` draws samples. If the graphs have no node labels,
kernels that compare labels use the degrees of the nodes instead. A graph without features has kernel 0 with all others;
with ``normalize=True`` it has kernel 1 with itself, if Y is not given.

Cost for N nodes and M arcs in all graphs: O(N) for vertices, O(M) for edges, O(h M) for h rounds of refinement.
Shortest paths cost O(n m) for each graph of n nodes and m arcs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from similia.core.config import rows_per_block
from similia.core.hashing import combine, mix
from similia.core.jit import njit
from similia.core.validation import check_positive_int
from similia.kernels.counts import Counts, FeatureKernel, _place, _shift_for, check_alike, count
from similia.objects import GraphBatch, as_graphs
from similia.objects.graphlets import (
    Patterns,
    as_structures,
    canonical_forms,
    count_patterns,
    count_subsets,
    sample_graphlets,
)
from similia.objects.sequences import offsets_of

_NO_LABELS = np.empty(0, dtype=np.int64)
_DETAILED = np.uint64(0xD37A11ED)


class GraphKernel(FeatureKernel):
    """Base class of the graph kernels: reads graphs; raises if labels of X would be compared with degrees of Y."""

    def as_objects(self, X: Any) -> GraphBatch:
        return as_graphs(X)

    def _compared(self, graphs: GraphBatch) -> dict[str, str]:
        found = {"nodes": self._compared_nodes(graphs)} if graphs.n_nodes else {}
        if self._reads_edge_labels() and len(graphs.indices):
            found["edges"] = "edges without labels" if graphs.edge_labels is None else "edges with labels"
        if getattr(self, "details", False) and graphs.n_nodes:
            found["details"] = "nodes without details" if graphs.node_details is None else "nodes with details"
        return found

    def _compared_nodes(self, graphs: GraphBatch) -> str:
        return "degrees of unlabelled nodes" if graphs.node_labels is None else "node labels"

    def _reads_edge_labels(self) -> bool:
        return False

    def _check_alike(self, X: GraphBatch, Y: GraphBatch) -> None:
        check_alike(self, self._compared(X), self._compared(Y), "X", "Y")


def node_labels_of(graphs: GraphBatch) -> npt.NDArray[np.uint64]:
    """Return the label of each node, or its degree if the graphs have no labels, shape (n_nodes,)."""
    labels = graphs.degrees if graphs.node_labels is None else graphs.node_labels
    return np.ascontiguousarray(labels, dtype=np.int64).view(np.uint64)


def arcs_of(graphs: GraphBatch) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the arcs as in a CSR matrix: (position of each node's first arc, target of each arc)."""
    return np.ascontiguousarray(graphs.indptr, np.int64), np.ascontiguousarray(graphs.indices, np.int64)


def edge_labels_of(graphs: GraphBatch, wanted: bool) -> npt.NDArray[np.int64]:
    """Return the label of each arc; an empty array if not `wanted`, or if the graphs have no edge labels."""
    if not wanted or graphs.edge_labels is None:
        return _NO_LABELS
    return np.ascontiguousarray(graphs.edge_labels, dtype=np.int64)


class VertexHistogram(GraphKernel):
    r"""Histogram kernel of node labels, or of degrees if the graphs have no labels.

    .. math:: K(G, H) = \sum_a \#\{v \in G : l(v) = a\} \, \#\{v \in H : l(v) = a\}.

    Parameters
    ----------
    normalize : bool, default=False
        Divide K(G, H) by sqrt(K(G, G) K(H, H)).

    References
    ----------
    Sugiyama & Borgwardt, "Halting in random walk kernels", NeurIPS 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.kernels import VertexHistogram
    >>> arcs = np.array([[0, 1], [1, 0]])
    >>> edge = {"edge_index": arcs, "n_nodes": 2, "node_labels": [6, 7]}
    >>> dots = {"edge_index": arcs[:, :0], "n_nodes": 3, "node_labels": [6, 6, 6]}
    >>> VertexHistogram()([edge, dots])
    array([[2., 3.],
           [3., 9.]])
    """

    def __init__(self, normalize: bool = False) -> None:
        self.normalize = normalize

    def _counts(self, objects: GraphBatch) -> Counts:
        return count(vertex_ids(node_labels_of(objects)), objects.node_offsets)


class EdgeHistogram(GraphKernel):
    r"""Edge histogram kernel: inner product of the counts of edges, by the labels of the edge and of its two nodes.

    Parameters
    ----------
    edge_labels : bool, default=True
        Whether to use edge labels if the graphs have them.
    normalize : bool, default=False
        Divide K(G, H) by sqrt(K(G, G) K(H, H)).

    Notes
    -----
    Two arcs (directed edges) u-v and v-u together count as one edge, unless edge labels are used and differ: then they
    count as two. An arc without its reverse counts as one edge, and so does a self-loop. The order of the two node
    labels does not matter. Nodes without labels are labelled by their degrees. Edge weights are ignored.

    References
    ----------
    Sugiyama & Borgwardt, "Halting in random walk kernels", NeurIPS 2015; they do not use node labels.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.kernels import EdgeHistogram
    >>> path = {"edge_index": np.array([[0, 1, 1, 2], [1, 0, 2, 1]]), "n_nodes": 3, "node_labels": [1, 2, 1]}
    >>> edge = {"edge_index": np.array([[0, 1], [1, 0]]), "n_nodes": 2, "node_labels": [2, 1]}
    >>> EdgeHistogram()([path, edge])
    array([[4., 2.],
           [2., 1.]])
    """

    def __init__(self, edge_labels: bool = True, normalize: bool = False) -> None:
        self.edge_labels = edge_labels
        self.normalize = normalize

    def _reads_edge_labels(self) -> bool:
        return self.edge_labels

    def _counts(self, objects: GraphBatch) -> Counts:
        indptr, indices = arcs_of(objects)
        ids = np.empty(len(indices), dtype=np.uint64)
        offsets = np.zeros(len(objects) + 1, dtype=np.int64)
        edge_labels = edge_labels_of(objects, self.edge_labels)
        edge_ids(node_labels_of(objects), objects.node_offsets, indptr, indices, edge_labels, ids, offsets)
        return count(ids[: offsets[-1]], offsets)


class WeisfeilerLehman(GraphKernel):
    r"""Weisfeiler-Lehman subtree kernel: histograms of colours over rounds of refinement.

    The first colour of a node is its label (its degree, if the graphs have no labels). Each round replaces the colour
    by a new one, which stands for the old colour and the multiset of the neighbours' colours. c_t(G) is the histogram
    of the colours in G after t rounds, and

    .. math:: K(G, H) = \sum_{t=0}^{n\_iter} \langle c_t(G), c_t(H) \rangle.

    Nodes may have details, as atoms from SMILES do (charge, hydrogens, rings, handedness). Then c_0 also counts pairs
    (label, detail); the later rounds ignore details.

    Parameters
    ----------
    n_iter : int, default=5
        Number of rounds of refinement; with 0 and without details, the kernel equals `VertexHistogram`.
    edge_labels : bool, default=True
        Whether to combine each neighbour's colour with the label of the edge to it, if the graphs have edge labels.
    normalize : bool, default=False
        Divide K(G, H) by sqrt(K(G, G) K(H, H)).
    details : bool, default=True
        Whether to count pairs (label, detail), if the nodes have details.

    Notes
    -----
    Colours are 64-bit hashes of (own colour, sum of hashes of the neighbours' colours). They do not change from one
    process to the next. Among v distinct colours, at least two have the same hash with a probability of about v**2 /
    2**65. In a directed graph, the neighbours of a node are the targets of its outgoing arcs. Edge weights are ignored.
    Some different graphs, such as a hexagon and two triangles, have equal features.

    References
    ----------
    Shervashidze et al., "Weisfeiler-Lehman graph kernels", JMLR 12, 2011, Section 3.2.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.kernels import WeisfeilerLehman
    >>> def cycle(n):
    ...     v = np.arange(n)
    ...     return np.array([np.r_[v, v], np.r_[(v + 1) % n, (v - 1) % n]])
    >>> hexagon = (cycle(6), 6)
    >>> triangles = (np.hstack([cycle(3), cycle(3) + 3]), 6)
    >>> square = (cycle(4), 4)
    >>> WeisfeilerLehman(n_iter=2)([hexagon, triangles, square])
    array([[108., 108.,  72.],
           [108., 108.,  72.],
           [ 72.,  72.,  48.]])
    """

    def __init__(
        self, n_iter: int = 5, edge_labels: bool = True, normalize: bool = False, details: bool = True
    ) -> None:
        self.n_iter = n_iter
        self.edge_labels = edge_labels
        self.normalize = normalize
        self.details = details

    def _reads_edge_labels(self) -> bool:
        return self.edge_labels and check_positive_int(self.n_iter, "n_iter", minimum=0) > 0

    def _counts(self, objects: GraphBatch) -> Counts:
        n_iter = check_positive_int(self.n_iter, "n_iter", minimum=0)
        first = vertex_ids(node_labels_of(objects))
        colours = refined_ids(first, *arcs_of(objects), edge_labels_of(objects, self.edge_labels), n_iter)
        if self.details and objects.node_details is not None:
            colours = np.column_stack([colours, detailed_ids(first, objects.node_details)])
        return count(colours.ravel(), objects.node_offsets * colours.shape[1])


class ShortestPath(GraphKernel):
    r"""Shortest-path kernel: counts pairs of nodes by their labels and the distance between them.

    .. math:: K(G, H) = \sum_{a, b, d} c_{abd}(G) \, c_{abd}(H), \quad
              c_{abd}(G) = \#\{(u, v) : u \neq v, l(u) = a, l(v) = b, d(u, v) = d < \infty\}.

    Parameters
    ----------
    with_labels : bool, default=True
        Whether to compare node labels (degrees, if there are none) in addition to distances.
    normalize : bool, default=False
        Divide K(G, H) by sqrt(K(G, G) K(H, H)).

    Notes
    -----
    The distance from one node to another is the smallest number of arcs (directed edges) on a path between them; edge
    weights and edge labels are ignored. Pairs are ordered, so each pair of an undirected graph counts twice. Pairs
    without a path are not counted.

    References
    ----------
    Borgwardt & Kriegel, "Shortest-path kernels on graphs", ICDM 2005.

    Examples
    --------
    The path of three nodes has four ordered pairs at distance 1 and two at distance 2:

    >>> import numpy as np
    >>> from similia.kernels import ShortestPath
    >>> path = (np.array([[0, 1, 1, 2], [1, 0, 2, 1]]), 3)
    >>> edge = (np.array([[0, 1], [1, 0]]), 2)
    >>> ShortestPath(with_labels=False)([path, edge])
    array([[20.,  8.],
           [ 8.,  4.]])
    """

    def __init__(self, with_labels: bool = True, normalize: bool = False) -> None:
        self.with_labels = with_labels
        self.normalize = normalize

    def _compared_nodes(self, graphs: GraphBatch) -> str:
        return super()._compared_nodes(graphs) if self.with_labels else "distances"

    def _counts(self, objects: GraphBatch) -> Counts:
        labels = node_labels_of(objects) if self.with_labels else np.zeros(objects.n_nodes, dtype=np.uint64)
        return Counts(*count_shortest_paths(labels, objects.node_offsets, *arcs_of(objects)))


class Graphlet(GraphKernel):
    r"""Graphlet kernel: inner product of the numbers of induced subgraphs on k nodes in each isomorphism class.

    Parameters
    ----------
    size : int, default=4
        Number k of nodes, from 2 to 7. The numbers of classes for these sizes are 2, 4, 11, 34, 156 and 1044.
    n_samples : int or None, default=None
        Number of graphlets (induced subgraphs on k nodes) drawn from each graph. None counts all subsets of k nodes.
    sampling : {"uniform", "random_walk"}, default="uniform"
        How to draw the k nodes of a graphlet if `n_samples` is given: at random, or the first k nodes that a random
        walk visits. For details see `similia.objects.sample_graphlets`.
    normalize : bool, default=False
        Divide K(G, H) by sqrt(K(G, G) K(H, H)).
    seed : int, default=0
        Seed of the samples. The samples of a graph do not depend on the other graphs.

    Raises
    ------
    ValueError
        When called, if a parameter is out of range, or if ``n_samples=None`` and a graph has more than 2e8 subsets of k
        nodes.

    Notes
    -----
    The kernel compares only the structure of graphs. It ignores labels, self-loops, and the directions and weights of
    edges. A graph with fewer than k nodes has no graphlet.

    With uniform sampling, the count of a class estimates ``n_samples`` times the fraction of subsets in that class.
    Different graphs G and H are sampled independently. So, without `normalize`, K(G, H) is an unbiased estimate of the
    inner product of their expected counts. Equal graphs get the same sample, so K(G, G) is too large on average, by at
    most ``n_samples``.

    References
    ----------
    Shervashidze, Vishwanathan, Petri, Mehlhorn & Borgwardt, "Efficient graphlet kernels for large graph
    comparison", AISTATS 2009.

    Examples
    --------
    Each graph has four subsets of three nodes. In the path graph, two of the subsets form a path, and two form an edge
    and an isolated node; in the star, three form a path, and one has no edges:

    >>> from similia.kernels.graphs import Graphlet
    >>> path = ([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]], 4)
    >>> star = ([[0, 1, 0, 2, 0, 3], [1, 0, 2, 0, 3, 0]], 4)
    >>> Graphlet(size=3)([path, star])
    array([[ 8.,  6.],
           [ 6., 10.]])
    """

    def __init__(
        self,
        size: int = 4,
        n_samples: int | None = None,
        sampling: str = "uniform",
        normalize: bool = False,
        seed: int = 0,
    ) -> None:
        self.size = size
        self.n_samples = n_samples
        self.sampling = sampling
        self.normalize = normalize
        self.seed = seed

    def as_objects(self, X: Any) -> GraphBatch:
        return as_structures(X)

    def _compared_nodes(self, graphs: GraphBatch) -> str:
        return "structure"

    def _counts(self, objects: GraphBatch) -> Counts:
        canonical_forms(self.size)  # raises early for a wrong size
        if self.n_samples is None:
            patterns = count_subsets(objects, self.size, f"Graphlet(size={self.size}, n_samples=...)")
            return self._by_class(objects, patterns)
        n_samples = check_positive_int(self.n_samples, "n_samples")
        step = rows_per_block(64 * n_samples)
        return Counts.concatenate([self._sampled(objects[g : g + step]) for g in range(0, len(objects), step)])

    def _sampled(self, graphs: GraphBatch) -> Counts:
        codes = sample_graphlets(graphs, self.size, self.n_samples, self.sampling, seed=self.seed)  # type: ignore[arg-type]
        return self._by_class(graphs, count_patterns(codes))

    def _by_class(self, graphs: GraphBatch, patterns: Patterns) -> Counts:
        """Return the counts of isomorphism classes, given the counts of graphlet codes (packed adjacency bits)."""
        table, representatives = canonical_forms(self.size)
        lengths = np.diff(patterns.offsets)
        # Samples of a graph with fewer than `size` nodes contain padding nodes.
        real = np.diff(graphs.node_offsets) >= self.size
        kept = np.repeat(real, lengths)
        offsets = offsets_of(np.where(real, lengths, 0))
        entries = (patterns.counts[kept].astype(np.float64), table[patterns.codes[kept]].astype(np.int64), offsets)
        counts = csr_array(entries, shape=(len(graphs), len(representatives)))
        counts.sum_duplicates()
        ids = vertex_ids(representatives | np.uint64(self.size) << np.uint64(32))
        return Counts(counts.indptr.astype(np.int64), ids[counts.indices], counts.data)


@njit()
def vertex_ids(labels):  # type: ignore[no-untyped-def]
    """Return a feature id, a 64-bit hash, for each label."""
    ids = np.empty(len(labels), dtype=np.uint64)
    for v in range(len(labels)):
        ids[v] = mix(np.uint64(labels[v]))
    return ids


@njit()
def detailed_ids(ids, details):  # type: ignore[no-untyped-def]
    """Return a feature id for each node, from its detail and the id of its label; no colour has such an id."""
    found = np.empty(len(ids), dtype=np.uint64)
    for v in range(len(ids)):
        found[v] = combine(combine(ids[v], np.uint64(details[v])), _DETAILED)
    return found


@njit()
def refined_ids(ids, indptr, indices, edge_labels, n_iter):  # type: ignore[no-untyped-def]
    """Return nodes' colours after 0, ..., n_iter refinements, shape (n_nodes, n_iter + 1); the first column is `ids`.

    Hashes of the neighbours' colours are summed modulo 2**64, so the order of neighbours does not matter. `edge_labels`
    may be empty.
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
    """Fill `ids` with one id per edge and `offsets` with the position of each graph's first id.

    The arcs u-v and v-u count as one edge if both have the same edge label.
    """
    end = 0
    for g in range(len(node_offsets) - 1):
        for v in range(node_offsets[g], node_offsets[g + 1]):
            for k in range(indptr[v], indptr[v + 1]):
                u = indices[k]
                if v > u and _has_reverse(u, v, k, indptr, indices, edge_labels):
                    continue
                low, high = min(labels[u], labels[v]), max(labels[u], labels[v])
                ids[end] = combine(np.uint64(low), np.uint64(high))
                if len(edge_labels):
                    ids[end] = combine(ids[end], np.uint64(edge_labels[k]))
                end += 1
        offsets[g + 1] = end


@njit()
def _has_reverse(u, v, k, indptr, indices, edge_labels):  # type: ignore[no-untyped-def]
    """Return whether there is an arc from u to v with the same label as arc k."""
    place = indptr[u] + np.searchsorted(indices[indptr[u] : indptr[u + 1]], v)
    found = place < indptr[u + 1] and indices[place] == v
    return found and (len(edge_labels) == 0 or edge_labels[place] == edge_labels[k])


@njit()
def count_shortest_paths(labels, node_offsets, indptr, indices):  # type: ignore[no-untyped-def]
    """Return (offsets, ids, values) of `Counts`: how often each (label, label, distance) occurs in each graph.

    The breadth-first searches of a graph add to one hash table, which has one entry per distinct triple, so memory does
    not grow with the number of pairs of nodes.
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
    """Fill `queue` and `distances` with the nodes that `source` reaches, nearest first; return their number."""
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
    """Add the triples (label, label, distance) from node `source` to the counts `values`; return the end of `ids`."""
    shift = _shift_for(len(table))
    distance, key = 0, np.uint64(0)
    for q in range(1, len(queue)):
        if distances[q] != distance:
            distance = distances[q]
            key = combine(labels[source], np.uint64(distance))
        triple = combine(key, labels[queue[q]])
        slot = _place(triple, ids, table, shift)
        if table[slot] < 0:
            ids[end], values[end], table[slot] = triple, 0.0, end
            end += 1
        values[table[slot]] += 1.0
    return end


@njit()
def _rehashed(ids, start, end, more):  # type: ignore[no-untyped-def]
    """Return a hash table of ``ids[start:end]`` that is at most half full even if `more` ids are added."""
    n_slots = 64
    while n_slots < 4 * (end - start + more):
        n_slots *= 2
    table = np.full(n_slots, -1, dtype=np.int64)
    shift = _shift_for(n_slots)
    for k in range(start, end):
        table[_place(ids[k], ids, table, shift)] = k
    return table


@njit()
def _with_room(values, n):  # type: ignore[no-untyped-def]
    """Return a copy of `values` extended to 2 * n entries; the new entries are not initialised."""
    grown = np.empty(2 * n, dtype=values.dtype)
    grown[: len(values)] = values
    return grown
