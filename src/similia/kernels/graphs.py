r"""Graph kernels that count substructures: vertices, edges, refined colours, shortest paths.

Each has a finite explicit map, a histogram of features with 64-bit ids, so a Gram block is one sparse
product (see `FeatureKernel`). A graph relabelled by any permutation of its nodes gets the same
features, bit for bit.

Costs for a batch of N nodes and M arcs: O(N) vertices, O(M) edges, O(h M) refinement with h rounds,
O(sum of n_g m_g) shortest paths of graphs of n_g nodes and m_g arcs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.validation import check_positive_int
from similia.kernels import graph_labels as _graphs
from similia.kernels.counts import Counts, count
from similia.kernels.features import FeatureKernel, check_alike
from similia.objects import GraphBatch, as_graphs

_NO_LABELS = np.empty(0, dtype=np.int64)


class GraphKernel(FeatureKernel):
    """Base of the graph kernels: reads graphs, and refuses to compare by unlike things."""

    def as_objects(self, X: Any) -> GraphBatch:
        """Return `X` as a `GraphBatch` (see `similia.objects.as_graphs`)."""
        return as_graphs(X)

    def _compared(self, graphs: GraphBatch) -> dict[str, str]:
        """Return in words what of the nodes (and edges) of these graphs is compared; {} for graphs without any."""
        return {"nodes": self._compared_nodes(graphs)} if graphs.n_nodes else {}

    def _compared_nodes(self, graphs: GraphBatch) -> str:
        return "degrees, in place of node labels" if graphs.node_labels is None else "node labels"

    def _check_alike(self, X: GraphBatch, Y: GraphBatch) -> None:
        """Raise if one side would be compared by labels and the other, having none, by something else."""
        check_alike(self, self._compared(X), self._compared(Y), "X", "Y")


class EdgeLabelKernel(GraphKernel):
    """Base of the graph kernels that read edge labels where the graphs have them."""

    edge_labels: bool

    def _compared(self, graphs: GraphBatch) -> dict[str, str]:
        compared = super()._compared(graphs)
        if self._reads_edge_labels() and len(graphs.indices):
            compared["edges"] = "edges without labels" if graphs.edge_labels is None else "edges with labels"
        return compared

    def _reads_edge_labels(self) -> bool:
        return self.edge_labels


def node_labels_of(graphs: GraphBatch) -> npt.NDArray[np.uint64]:
    """Return the label of each node, its degree if the graphs have none, shape (n_nodes,)."""
    labels = graphs.degrees if graphs.node_labels is None else graphs.node_labels
    return np.ascontiguousarray(labels, dtype=np.int64).view(np.uint64)


def _arcs(graphs: GraphBatch) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    return np.ascontiguousarray(graphs.indptr, np.int64), np.ascontiguousarray(graphs.indices, np.int64)


def _edge_labels(graphs: GraphBatch, wanted: bool) -> npt.NDArray[np.int64]:
    if not wanted or graphs.edge_labels is None:
        return _NO_LABELS
    return np.ascontiguousarray(graphs.edge_labels, dtype=np.int64)


class VertexHistogram(GraphKernel):
    r"""Histogram kernel of node labels.

    .. math:: K(G, H) = \sum_l \#\{v \in G : l(v) = l\} \, \#\{v \in H : l(v) = l\}.

    Parameters
    ----------
    normalize : bool, default=False
        Divide by sqrt(K(G, G) K(H, H)).

    Notes
    -----
    Graphs without node labels are compared by the degrees of their nodes. A graph without nodes has
    K = 0 (normalised: 0 to others, 1 to itself).

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
        return count(_graphs.vertex_ids(node_labels_of(objects)), objects.node_offsets)


class EdgeHistogram(EdgeLabelKernel):
    r"""Histogram kernel of edges, each told by the labels of its two ends and its own label.

    Parameters
    ----------
    edge_labels : bool, default=True
        Whether edge labels take part where the graphs have them.
    normalize : bool, default=False
        Divide by sqrt(K(G, G) K(H, H)).

    Notes
    -----
    The two ends are unordered; the arcs u-v and v-u of one label are one edge, an arc without its
    reverse is one edge too, and so is a self-loop. Edge weights play no part. Graphs without node
    labels are compared by the degrees of their nodes. An edgeless graph has K = 0 (normalised: 0 to
    others, 1 to itself).

    References
    ----------
    Sugiyama & Borgwardt, "Halting in random walk kernels", NeurIPS 2015 (there without the ends' labels).

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

    def _counts(self, objects: GraphBatch) -> Counts:
        indptr, indices = _arcs(objects)
        ids = np.empty(len(indices), dtype=np.uint64)
        offsets = np.zeros(len(objects) + 1, dtype=np.int64)
        edge_labels = _edge_labels(objects, self.edge_labels)
        _graphs.edge_ids(node_labels_of(objects), objects.node_offsets, indptr, indices, edge_labels, ids, offsets)
        return count(ids[: offsets[-1]], offsets)


class WeisfeilerLehman(EdgeLabelKernel):
    r"""Weisfeiler-Lehman subtree kernel: histograms of colours over rounds of refinement.

    A node's first colour is its label; each round makes a new colour of the old one and the multiset
    of colours around it. With c_t the histogram of colours after t rounds,

    .. math:: K(G, H) = \sum_{t=0}^{n\_iter} \langle c_t(G), c_t(H) \rangle.

    Parameters
    ----------
    n_iter : int, default=5
        Rounds of refinement; 0 gives `VertexHistogram`.
    edge_labels : bool, default=True
        Whether edge labels take part (with the colour at the other end) where the graphs have them.
    normalize : bool, default=False
        Divide by sqrt(K(G, G) K(H, H)).

    Raises
    ------
    ValueError
        When called, if `n_iter` is not a non-negative integer.

    Notes
    -----
    Colours are 64-bit hashes of (own colour, sum of hashes of the colours around), the same in any
    process; among v distinct colours two are mistaken for one with odds of v**2 / 2**65. Graphs
    without node labels start from degrees. Neighbours are the targets of a node's arcs; weights play
    no part. Graphs that refinement cannot tell apart (a hexagon and two triangles) have equal features.

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

    def __init__(self, n_iter: int = 5, edge_labels: bool = True, normalize: bool = False) -> None:
        self.n_iter = n_iter
        self.edge_labels = edge_labels
        self.normalize = normalize

    def _reads_edge_labels(self) -> bool:
        return self.edge_labels and check_positive_int(self.n_iter, "n_iter", minimum=0) > 0

    def _counts(self, objects: GraphBatch) -> Counts:
        n_iter = check_positive_int(self.n_iter, "n_iter", minimum=0)
        first = _graphs.vertex_ids(node_labels_of(objects))
        colours = _graphs.refined_ids(first, *_arcs(objects), _edge_labels(objects, self.edge_labels), n_iter)
        return count(colours.ravel(), objects.node_offsets * (n_iter + 1))


class ShortestPath(GraphKernel):
    r"""Shortest-path kernel: pairs of nodes told by their labels and the distance between them.

    .. math:: K(G, H) = \sum_{a, b, d} c_{abd}(G) \, c_{abd}(H), \quad
              c_{abd}(G) = \#\{(u, v) : u \neq v, l(u) = a, l(v) = b, d(u, v) = d < \infty\}.

    Parameters
    ----------
    with_labels : bool, default=True
        Whether node labels take part (degrees, if the graphs have none); otherwise distances only.
    normalize : bool, default=False
        Divide by sqrt(K(G, G) K(H, H)).

    Notes
    -----
    Distance is the number of arcs: edge weights and edge labels play no part. Pairs are ordered, so
    an undirected graph counts each path twice, and pairs without a path are not counted. A graph
    without edges has K = 0 (normalised: 0 to others, 1 to itself).

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
        return Counts(*_graphs.count_shortest_paths(labels, objects.node_offsets, *_arcs(objects)))
