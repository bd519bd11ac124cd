"""Transformers of objects: to a one-column table and back, graphs and series to sets of points, scaled node attributes.

Cost: linear in the number of nodes, walks and windows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import Tags

from similia.core.estimators import ObjectsOut, all_at_once, check_fitted
from similia.core.state import array, count, optional, state
from similia.core.text import counted
from similia.core.validation import BadValue, check_choice, check_positive, check_positive_int
from similia.objects.graph_batch import GraphBatch, check_attributes
from similia.objects.graphs import as_graphs
from similia.objects.sequences import at_least_one, offsets_of, segments
from similia.objects.series import as_series
from similia.objects.tables import is_frame, not_a_column, objects_in
from similia.objects.vectors import SetBatch, check_finite

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_NO_LABELS = np.empty(0, np.int64)


def as_column(X: Any) -> npt.NDArray[Any]:
    """Convert a collection of objects to a table of one column.

    scikit-learn's ``BaggingClassifier``, ``permutation_importance`` and others accept only tables. Pass them this
    table, and begin the pipeline inside them with `FromColumn`, which turns the table back into a collection.

    Parameters
    ----------
    X : collection of n objects
        List, tuple, object array, Series, data frame of one column, or a batch such as `GraphBatch`.

    Returns
    -------
    ndarray of object, shape (n, 1)
        The objects themselves, not copies.

    Examples
    --------
    >>> from sklearn.ensemble import BaggingClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import LinearSVC
    >>> import similia as sm
    >>> from similia.objects.transformers import FromColumn, as_column
    >>> X, y = ["GATTACA", "ATTAC", "TATTA", "CCGCGG", "CGCGC", "GCGG"], [0, 0, 0, 1, 1, 1]
    >>> model = make_pipeline(FromColumn(), sm.KernelFeatures(sm.kernels.Spectrum(k=2), 256), LinearSVC())
    >>> bag = BaggingClassifier(model, n_estimators=5, random_state=0).fit(as_column(X), y)
    >>> bag.predict(as_column(["TTACA", "GCGC"]))
    array([0, 1])
    """
    X = objects_in(X, numbers=True)
    if is_frame(X):
        raise not_a_column(X, "objects")
    column = np.empty((at_least_one(X), 1), dtype=object)
    for i, value in enumerate(X):
        column[i, 0] = value
    return column


@state()
class FromColumn(ObjectsOut):
    """Convert a table of one column to a 1-D array of its objects.

    Use it as the first step of a pipeline inside a meta-estimator that requires tables; see `as_column`. Lists and
    other one-dimensional collections are returned unchanged. `fit` only checks `X`.

    Examples
    --------
    >>> from similia.objects.transformers import FromColumn, as_column
    >>> FromColumn().fit_transform(as_column(["GATTACA", "AC"]))
    array(['GATTACA', 'AC'], dtype=object)
    """

    @all_at_once
    def fit(self, X: Any, y: Any = None) -> Self:
        """Check that `X` is a table of one column, or a one-dimensional collection such as a list."""
        self.transform(X)
        return self

    def transform(self, X: Any) -> Any:
        """Return the objects in a table of one column as an array of shape (n,); return other collections unchanged."""
        n = at_least_one(X)
        shape = tuple(getattr(X, "shape", (n,)))
        if len(shape) == 1:
            return X
        if shape != (n, 1):
            remedy = "similia.objects.as_column(X) makes such a table, ColumnTransformer selects one column of a table"
            raise BadValue(None, f"has shape {shape}", "one column of objects", remedy)
        return np.asarray(X.to_numpy() if hasattr(X, "to_numpy") else X, dtype=object)[:, 0]

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


@state(mean_=array("f8", "d"), scale_=array("f8", "d"))
class AttributeScaler(ObjectsOut):
    """Shift and scale each node attribute to mean 0 and standard deviation 1 over the nodes seen in ``fit``.

    A constant attribute becomes 0. The output is a `GraphBatch`. In a pipeline, put the scaler before `Nystroem` or any
    other step that takes graphs.

    Attributes
    ----------
    mean_, scale_ : ndarray of float64, shape (n_attributes,)
        Mean and standard deviation of each attribute. A standard deviation of 0, up to rounding, is stored as 1.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.objects import AttributeScaler
    >>> edge = {"edge_index": np.array([[0], [1]]), "n_nodes": 2, "node_attributes": np.array([[0.0], [4.0]])}
    >>> AttributeScaler().fit_transform([edge]).node_attributes.ravel()
    array([-1.,  1.])
    """

    mean_: np.ndarray
    scale_: np.ndarray

    @all_at_once
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the mean and standard deviation of each node attribute; raise ValueError if the graphs have none."""
        attributes = self._attributes(as_graphs(X))
        # Powers of two bring each attribute near 1, so that squares are neither 0 nor infinite.
        exponents = np.frexp(np.abs(attributes).max(axis=0, initial=0.0))[1]
        with np.errstate(under="ignore"):
            units = np.ldexp(attributes, -exponents)
            mean, deviation = units.mean(axis=0), units.std(axis=0)
            if len(units):
                mean = np.clip(mean, units.min(axis=0), units.max(axis=0))  # exact for a constant attribute
            rounding = len(units) * np.finfo(np.float64).eps * np.abs(mean)  # as in scikit-learn's StandardScaler
        self.mean_ = np.ldexp(mean, exponents)
        self.scale_ = np.where(deviation > rounding, np.ldexp(deviation, exponents), 1.0)
        return self

    def transform(self, X: Any) -> GraphBatch:
        """Return the graphs with scaled attributes; `X` is not changed."""
        check_fitted(self)
        graphs = as_graphs(X)
        attributes = np.zeros((0, len(self.mean_))) if graphs.n_nodes == 0 else self._attributes(graphs)
        if attributes.shape[1] != len(self.mean_):
            raise ValueError(f"nodes have {attributes.shape[1]} attributes, expected {len(self.mean_)} as in fit")
        exponents = np.frexp(np.maximum(np.abs(self.mean_), self.scale_))[1]
        mean, scale = np.ldexp(self.mean_, -exponents), np.ldexp(self.scale_, -exponents)
        with np.errstate(under="ignore"):
            scaled = (np.ldexp(attributes, -exponents) - mean) / scale
        return replace(graphs, node_attributes=scaled)

    @staticmethod
    def _attributes(graphs: GraphBatch) -> np.ndarray:
        if graphs.node_attributes is None:
            raise ValueError("these graphs have no node attributes to scale; remove AttributeScaler to compare labels")
        check_attributes(graphs)
        return graphs.node_attributes


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
        If the graphs lack the attributes or labels that `use` requests; if ``use="auto"`` and ``degrees=False``, and
        the graphs have neither attributes nor labels; or if only some graphs have attributes. In `transform`, also if
        the graphs have another number of attributes than the graphs in `fit`, or if they lack edge labels that the
        graphs in `fit` had.

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
        """Return a set of points for each graph of `X`; coordinates are float64."""
        check_fitted(self)
        graphs = as_graphs(X)
        nodes = _averaged(graphs, self._of_nodes(graphs), self.n_iter)
        along = self._of_arcs(graphs)
        paths, arcs, offsets = _paths(graphs, self.path_length)
        columns = [nodes[step] for step in paths] + [along[step] for step in arcs]
        return SetBatch(np.ascontiguousarray(np.hstack(columns)), offsets)

    def _of_nodes(self, graphs: GraphBatch) -> Floats:
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
        parts = [np.zeros((len(graphs.indices), 0))]
        if self.edge_labels_ is not None:
            parts.append(_one_hot(_column(graphs, "edge_labels", empty=_NO_LABELS), self.edge_labels_))
        if self.weighted_:
            weights = graphs.edge_weights
            parts.append(np.ones((len(graphs.indices), 1)) if weights is None else weights[:, None])
        return np.hstack(parts)


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
        windows at different positions are less similar. This coordinate grows evenly, from 0 for the first window to
        `time` for a window that ends at the last time point. If a series has only one window, the coordinate is 0.

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
        """Learn the number of channels; raise ValueError if a series of `X` is shorter than a window."""
        check_positive_int(self.length, "length")
        check_positive_int(self.step, "step")
        check_positive(self.time, "time", zero=True)
        self.n_channels_ = as_series(X).n_dims
        self.transform(X)
        return self

    def transform(self, X: Any) -> SetBatch:
        """Return a set of points for each series of `X`, one point for each window, in the dtype of the series."""
        check_fitted(self)
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
