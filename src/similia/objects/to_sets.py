"""Transformers that turn graphs and series into sets of points, for kernels, distances and embeddings of sets.

A graph becomes a set of points, one for each node, edge or longer walk. The coordinates of a point are the attributes
and labels along that walk. Those of each node may first be averaged with those of its neighbours. A series becomes the
set of its windows.

Cost: linear in the number of nodes, walks and windows.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from similia.core.errors import BadValue
from similia.core.estimators import ObjectsOut, all_at_once
from similia.core.state import array, count, optional, state
from similia.core.text import counted
from similia.core.validation import check_choice, check_positive, check_positive_int
from similia.objects.graph_batch import GraphBatch
from similia.objects.graphs import as_graphs
from similia.objects.sequences import offsets_of, segments
from similia.objects.series import as_series
from similia.objects.sets import SetBatch
from similia.objects.vectors import check_finite

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_NO_LABELS = np.empty(0, np.int64)


@state(
    n_attributes_=count(), labels_=optional(array("i8", None)), edge_labels_=optional(array("i8", None)),
    weighted_="flag",
)  # fmt: skip
class GraphToSets(ObjectsOut):
    r"""Turn each graph into a set of points, one for each node, edge or walk.

    The coordinates of a point are the attributes or labels of the nodes along the walk (see `use`), and the labels and
    weights of its edges (see `edges`). All methods for sets of points then work on graphs: `similia.MeanMapFeatures`,
    `similia.kernels.MeanMap`, and distances such as `similia.distances.SlicedWasserstein`, alone or in `similia.D2KE`.

    Parameters
    ----------
    path_length : int, default=0
        Number of arcs (directed edges) of a walk. 0 gives a point for each node. 1 gives a point for each arc, so two
        points for an undirected edge. 2 gives a point for each walk u -> v -> w with u != w. A walk never goes straight
        back, but may return to a node later.
    n_iter : int, default=0
        Number of averaging steps. A step replaces the coordinates of each node by the mean of two vectors: its own
        coordinates, and the mean coordinates of its neighbours. A node without neighbours keeps its coordinates. The
        coordinates after 0, 1, ..., `n_iter` steps are put side by side.
    use : {"auto", "attributes", "labels", "both"}, default="auto"
        Coordinates of a node: its attributes, its label (one-hot over the labels seen in `fit`), or both side by side.
        "auto" uses attributes if the graphs have them, else labels.
    degrees : bool, default=False
        Whether log2(1 + number of neighbours) is another coordinate of a node, averaged like the others. If the graphs
        have neither attributes nor labels, and ``use="auto"``, this number is the only coordinate.
    edges : bool, default=True
        Whether the edge labels (one-hot) and edge weights along a walk are coordinates too, if the graphs seen in `fit`
        have them. With ``path_length=0`` there are no edges along a walk.

    Attributes
    ----------
    n_attributes_ : int
        Number of attributes used; 0 if none.
    labels_, edge_labels_ : ndarray of int64, or None
        Labels in the order of their one-hot coordinates; None if labels are not used.
    weighted_ : bool
        Whether edge weights are coordinates.

    Raises
    ------
    ValueError
        If the graphs lack the attributes or labels that `use` requests, or have neither with ``use="auto"`` and
        ``degrees=False``; or if only some graphs have attributes. In `transform`, also if the graphs have another
        number of attributes than the graphs in `fit`, or if they lack edge labels that the graphs in `fit` had.

    Notes
    -----
    Put `similia.objects.AttributeScaler` before this step: otherwise the attribute with the largest scale dominates the
    distances between points. A label not seen in `fit` has only zeros as its one-hot coordinates; missing edge weights
    become 1. A graph without walks of `path_length` arcs becomes an empty set.

    References
    ----------
    Togninalli, Ghisu, Llinares-López, Rieck & Borgwardt, "Wasserstein Weisfeiler-Lehman graph kernels", NeurIPS 2019,
    Eq. 2, with an unweighted mean of the neighbours.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.objects import GraphToSets
    >>> arcs = np.array([[0, 1, 1, 2], [1, 0, 2, 1]])  # a path of three nodes
    >>> graph = {"edge_index": arcs, "n_nodes": 3, "node_attributes": np.array([[0.0], [4.0], [8.0]])}
    >>> GraphToSets(n_iter=1).fit_transform([graph])[0]
    array([[0., 2.],
           [4., 4.],
           [8., 6.]])
    >>> GraphToSets(path_length=1).fit_transform([graph])[0]
    array([[0., 4.],
           [4., 0.],
           [4., 8.],
           [8., 4.]])
    """

    labels_: Ints | None
    edge_labels_: Ints | None

    def __init__(
        self, path_length: int = 0, n_iter: int = 0, use: str = "auto", degrees: bool = False, edges: bool = True
    ) -> None:
        self.path_length = path_length
        self.n_iter = n_iter
        self.use = use
        self.degrees = degrees
        self.edges = edges

    @all_at_once
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn which attributes and weights the graphs `X` have, and the labels that occur."""
        check_positive_int(self.path_length, "path_length", minimum=0)
        check_positive_int(self.n_iter, "n_iter", minimum=0)
        check_choice(self.use, "use", ("auto", "attributes", "labels", "both"))
        graphs = as_graphs(X)
        there = graphs.node_attributes is not None and graphs.node_attributes.shape[1] > 0
        attributes = self.use in ("attributes", "both") or (self.use == "auto" and there)
        bare = self.use == "auto" and self.degrees and not there and graphs.node_labels is None
        if not bare and (self.use in ("labels", "both") or not attributes):
            self.labels_ = np.unique(_column(graphs, "node_labels", "attributes" if self.use == "auto" else ""))
        else:
            self.labels_ = None
        self.n_attributes_ = _column(graphs, "node_attributes").shape[1] if attributes else 0
        along = bool(self.edges) and self.path_length > 0
        self.edge_labels_ = np.unique(graphs.edge_labels) if along and graphs.edge_labels is not None else None
        self.weighted_ = along and graphs.edge_weights is not None
        return self

    def transform(self, X: Any) -> SetBatch:
        """Return the sets of the graphs `X`; their points have float64 coordinates."""
        check_is_fitted(self)
        graphs = as_graphs(X)
        nodes = _averaged(graphs, self._of_nodes(graphs), self.n_iter)
        along = self._of_arcs(graphs)
        paths, arcs, offsets = _paths(graphs, self.path_length)
        columns = [nodes[step] for step in paths] + [along[step] for step in arcs]
        return SetBatch(np.ascontiguousarray(np.hstack(columns)), offsets)

    def _of_nodes(self, graphs: GraphBatch) -> Floats:
        """Return the coordinates of all nodes before averaging."""
        parts: list[Floats] = []
        if self.n_attributes_:
            attributes = _column(graphs, "node_attributes", empty=np.zeros((0, self.n_attributes_)))
            if attributes.shape[1] != self.n_attributes_:
                found = f"has {counted(attributes.shape[1], 'attribute')} of each node"
                raise BadValue(None, found, f"{self.n_attributes_} as in fit")
            parts.append(attributes)
        if self.labels_ is not None:
            parts.append(_one_hot(_column(graphs, "node_labels", empty=_NO_LABELS), self.labels_))
        if self.degrees:
            parts.append(np.log2(1.0 + graphs.degrees)[:, None])
        return np.hstack(parts)

    def _of_arcs(self, graphs: GraphBatch) -> Floats:
        """Return the coordinates of all arcs: labels and weights, if used."""
        parts = [np.zeros((len(graphs.indices), 0))]
        if self.edge_labels_ is not None:
            parts.append(_one_hot(_column(graphs, "edge_labels", empty=_NO_LABELS), self.edge_labels_))
        if self.weighted_:
            weights = graphs.edge_weights
            parts.append(np.ones((len(graphs.indices), 1)) if weights is None else weights[:, None])
        return np.hstack(parts)


def _column(graphs: GraphBatch, name: str, nor: str = "", empty: Any = None) -> Any:
    """Return the attributes or labels called `name`; raise if there are none. The error also mentions `nor`.

    If the graphs have no nodes (or no edges) at all, return `empty` instead, if given.
    """
    values = getattr(graphs, name)
    if name == "node_attributes" and values is not None and values.shape[1] == 0:
        values = None
    if (
        values is None
        and empty is not None
        and not (graphs.n_nodes if name.startswith("node") else len(graphs.indices))
    ):
        return empty
    if values is None:
        what = name.replace("_", " ")
        found = f"holds graphs with neither {what} nor {nor}" if nor else f"holds graphs without {what}"
        remedy = "as_graphs(X, node_label=..., node_attributes=...) reads data under other names"
        if nor:
            remedy += "; degrees=True needs neither"
        raise BadValue(None, found, "some on every node" if name.startswith("node") else "labels as in fit", remedy)
    return values


def _one_hot(labels: Ints, known: Ints) -> Floats:
    """Return a row for each label with 1 at its position in `known`, or zeros if it is not there."""
    return (labels[:, None] == known).astype(np.float64)


def _averaged(graphs: GraphBatch, values: Floats, n_iter: int) -> Floats:
    """Return `values` and the results of `n_iter` averages with the mean of the neighbours, side by side."""
    degrees = graphs.degrees
    adjacency = sp.csr_array(
        (np.ones(len(graphs.indices)), graphs.indices, graphs.indptr), shape=(graphs.n_nodes, graphs.n_nodes)
    )
    steps = [values]
    for _ in range(n_iter):
        means = (adjacency @ steps[-1]) / np.maximum(degrees, 1)[:, None]
        steps.append(np.where(degrees[:, None] > 0, 0.5 * steps[-1] + 0.5 * means, steps[-1]))
    return np.hstack(steps)


def _paths(graphs: GraphBatch, length: int) -> tuple[list[Ints], list[Ints], Ints]:
    """Return all walks of `length` arcs that never go straight back, graph by graph.

    The result is (nodes, arcs, offsets): ``nodes[s][p]`` is node s of walk p, ``arcs[s][p]`` its arc s, and the walks
    of graph g are ``offsets[g]:offsets[g + 1]``.
    """
    nodes: list[Ints] = [np.arange(graphs.n_nodes, dtype=np.int64)]
    arcs: list[Ints] = []
    for _ in range(length):
        following, offsets = segments(graphs.indptr, nodes[-1])  # arcs that leave the last node of each walk
        path = np.repeat(np.arange(len(nodes[-1])), np.diff(offsets))
        if len(nodes) > 1:
            onward = graphs.indices[following] != nodes[-2][path]
            following, path = following[onward], path[onward]
        nodes = [step[path] for step in nodes] + [graphs.indices[following]]
        arcs = [step[path] for step in arcs] + [following]
    counts = np.bincount(graphs.graph_of_node[nodes[0]], minlength=len(graphs))
    return nodes, arcs, offsets_of(counts)


@state(n_channels_=count(least=1))
class SeriesToSets(ObjectsOut):
    """Turn each series into a set of points, one for each window (stretch of consecutive time points).

    Parameters
    ----------
    length : int, default=10
        Number of time points in a window. The coordinates of its point are the values in the window: all channels of
        the first time point, then all channels of the second, and so on.
    step : int, default=1
        Number of time points from the start of one window to the start of the next.
    time : float, default=0.0
        Weight of the position of a window in its series. With a weight above 0, the position is one more coordinate, so
        windows at different positions are less similar. This coordinate is 0 for the first window and `time` for a
        window that ends at the last time point.

    Attributes
    ----------
    n_channels_ : int
        Number of channels of the series seen in `fit`.

    Raises
    ------
    ValueError
        If a series is shorter than `length`, holds NaN or infinity, or has a different number of channels than the
        series in `fit`.

    Examples
    --------
    >>> from similia.objects import SeriesToSets
    >>> SeriesToSets(length=2).fit_transform([[1.0, 2.0, 4.0], [7.0, 8.0]])[0]
    array([[1., 2.],
           [2., 4.]])
    """

    def __init__(self, length: int = 10, step: int = 1, time: float = 0.0) -> None:
        self.length = length
        self.step = step
        self.time = time

    @all_at_once
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the number of channels; raise if a series of `X` is shorter than a window."""
        check_positive_int(self.length, "length")
        check_positive_int(self.step, "step")
        check_positive(self.time, "time", zero=True)
        self.n_channels_ = as_series(X).n_dims
        self.transform(X)
        return self

    def transform(self, X: Any) -> SetBatch:
        """Return the sets of windows of the series `X`, in the dtype of the series."""
        check_is_fitted(self)
        batch = as_series(X)
        check_finite(batch)
        if batch.n_dims != self.n_channels_:
            found = f"holds series of {counted(batch.n_dims, 'channel')}"
            raise BadValue(None, found, f"{self.n_channels_} as in fit")
        short_one = batch.lengths < self.length
        if short_one.any():
            i = int(np.argmax(short_one))
            expected = f"at least length={self.length}, that of a window"
            raise BadValue(i, f"has {counted(batch.lengths[i], 'time point')}", expected)
        counts = (batch.lengths - self.length) // self.step + 1
        offsets = offsets_of(counts)
        within = self.step * (np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts))
        starts = np.repeat(batch.offsets[:-1], counts) + within
        windows = batch.values[starts[:, None] + np.arange(self.length)].reshape(len(starts), -1)
        if self.time:
            room = np.repeat(np.maximum(1, batch.lengths - self.length), counts)
            windows = np.column_stack([windows, (self.time * within / room).astype(windows.dtype)])
        return SetBatch(np.ascontiguousarray(windows), offsets)
