r"""Propagation kernel: compares the labels or attributes around nodes after 0, 1, 2, ... steps of a random walk.

The symbols are those of `Propagation`, and T = D^(-1) A. If f is the identity, then P_t u_t = T^t (P_0 u_t). So the
projections P_0 u_t, one number for each node and step t, are propagated instead of the rows of P_0, in time O(n_iter^2
M) for M arcs. Hellinger's distance needs P_t itself, in time O(n_iter M L) for L labels; graphs are processed in
blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from similia.core.functions import cos_sin, log_of
from similia.core.hashing import combine
from similia.core.jit import njit
from similia.core.validation import BadValue, check_choice, check_positive, check_positive_int
from similia.kernels.counts import Counts, count, number_ids
from similia.kernels.graphs import GraphKernel, arcs_of, node_labels_of
from similia.objects import GraphBatch
from similia.objects.graph_batch import check_attributes, place_of
from similia.objects.sequences import runs

_BIN_WIDTH = {"labels": 0.01, "attributes": 1.0}
_METRICS = {"labels": ("tv", "hellinger"), "attributes": ("l1", "l2")}
_NODES_PER_BLOCK = 4096  # rows of P_t in memory at once; they fit in the cache
_EXTREME = 1e100  # sums of edge weights between it and its reciprocal neither overflow nor lose digits
_S11 = np.uint64(11)
_FEW = 32  # up to so many values n are sorted by n (n - 1) / 2 exchanges
Array = npt.NDArray[np.float64]


class Propagation(GraphKernel):
    r"""Propagation kernel of labelled or attributed graphs.

    P_0 has a row for each node: its one-hot label or its attributes. A step of a random walk replaces each row by the
    mean of the rows of the neighbours: P_{t+1} = D^{-1} A P_t, with the adjacency matrix A and the diagonal matrix D of
    degrees. A random projection, the same for all graphs, puts the row of each node v into a bin b_t(v). The kernel
    compares histograms of the bins:

    .. math:: b_t(v) = \lfloor (f(P_t)_v \cdot u_t + \beta_t) / w \rfloor, \qquad
              K(G, H) = \sum_{t=0}^{n\_iter} \langle \mathrm{hist}\,b_t(G), \mathrm{hist}\,b_t(H) \rangle.

    The entries of u_t are random: Cauchy-distributed for the metrics "tv" and "l1", normal for "l2" and "hellinger".
    beta_t is uniform on [0, w], where w is `bin_width`. f is the square root for "hellinger", otherwise the identity.

    Parameters
    ----------
    n_iter : int, default=4
        Number of steps. The corresponding parameters of the library GraKeL and of NysHD (see
        `similia.recipes.nyshd`) are larger by 1, since they give the number of terms of the sum over t.
    bin_width : float or "auto", default="auto"
        Width w of a bin. "auto" is 0.01 for labels and 1 for attributes. A width of 1 suits attributes of unit
        variance; `similia.objects.AttributeScaler` scales attributes to unit variance.
    metric : {"auto", "tv", "hellinger", "l1", "l2"}, default="auto"
        Distance that determines how often two rows share a bin (see Notes): "tv" (total variation) or "hellinger" for
        labels, "l1" or "l2" for attributes. "auto" is "tv" for labels and "l1" for attributes.
    use : {"auto", "labels", "attributes"}, default="auto"
        Property of the nodes to propagate. "auto" is "attributes" if the graphs have them (as in NysHD), else "labels".
        Nodes without labels are labelled by their degrees.
    per_dimension : bool, default=False
        For attributes only. False projects all attributes of a node to one number, as in Neumann et al. True bins each
        attribute separately, as in GraKeL and NysHD; two nodes then match only if all their attributes share a bin.
    normalize : bool, default=False
        Divide K(G, H) by sqrt(K(G, G) K(H, H)).
    random_state : int, default=0
        Seed of u_t and beta_t. It must be an integer, so that every call uses the same numbers. The features of a graph
        do not change from one process to the next.

    Raises
    ------
    ValueError
        When called, if a parameter is out of range; if `metric` is for attributes but labels are propagated, or
        `metric` is for labels but attributes are propagated; if labels are propagated and `per_dimension` is True; if
        required attributes are missing, NaN or infinite; or if the weight of an edge is negative or NaN.

    Notes
    -----
    If edges have weights, the mean over the neighbours is weighted. A node without neighbours, or whose edges all have
    weight 0, keeps its row.

    Without `per_dimension`, for "tv" and "l1", two rows of P_t at l1 distance c share a bin with probability (2/pi)
    atan(w/c) - (c / (pi w)) log(1 + (w/c)^2). For "l2" and "hellinger", two rows of f(P_t) at l2 distance c share a bin
    with probability erf(w / (c sqrt 2)) - (2 c / (sqrt(2 pi) w)) (1 - exp(-w^2 / (2 c^2))).

    References
    ----------
    Neumann, Garnett, Bauckhage & Kersting, "Propagation kernels: efficient graph kernels from propagated information",
    Machine Learning 102, 2016, Algorithms 1 and 3.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.kernels import Propagation
    >>> def path(*labels):
    ...     v = np.arange(len(labels) - 1)
    ...     arcs = np.array([np.r_[v, v + 1], np.r_[v + 1, v]])
    ...     return {"edge_index": arcs, "n_nodes": len(labels), "node_labels": list(labels)}
    >>> graphs = [path(1, 2, 1, 3), path(3, 1, 2, 1), path(1, 1, 2, 3)]
    >>> Propagation(n_iter=1)(graphs)  # the first two are equal up to the order of their nodes
    array([[12., 12.,  9.],
           [12., 12.,  9.],
           [ 9.,  9., 10.]])
    """

    def __init__(
        self,
        n_iter: int = 4,
        bin_width: float | str = "auto",
        metric: str = "auto",
        use: str = "auto",
        per_dimension: bool = False,
        normalize: bool = False,
        random_state: int = 0,
    ) -> None:
        self.n_iter = n_iter
        self.bin_width = bin_width
        self.metric = metric
        self.use = use
        self.per_dimension = per_dimension
        self.normalize = normalize
        self.random_state = random_state

    def _compared_nodes(self, graphs: GraphBatch) -> str:
        if self._used(graphs) == "labels":
            return super()._compared_nodes(graphs)
        return f"{_n_attributes(graphs)} node attributes"

    def _counts(self, objects: GraphBatch) -> Counts:
        ids = self._node_ids(objects)
        return count(ids.ravel(), objects.node_offsets * ids.shape[1])

    def _node_ids(self, objects: GraphBatch) -> npt.NDArray[np.uint64]:
        """Return the id of each node's bin after t = 0, ..., n_iter steps of the walk, shape (n_nodes, n_iter + 1)."""
        n_terms = check_positive_int(self.n_iter, "n_iter", minimum=0) + 1
        used = self._used(objects)
        metric = self._metric(used, objects)
        auto = isinstance(self.bin_width, str) and self.bin_width == "auto"
        width = _BIN_WIDTH[used] if auto else check_positive(self.bin_width, "bin_width", hint="; or use 'auto'")
        seed = np.uint64(check_positive_int(self.random_state, "random_state", minimum=0) % 2**64)
        if not objects.n_nodes:
            return np.empty((0, n_terms), np.uint64)
        _check_weights(objects)
        if used == "attributes":
            X = _attributes(objects)
            u = draw(seed, np.arange(X.shape[1], dtype=np.uint64), n_terms, metric == "l1")
            Z = propagated(objects, project_each(X, u) if self.per_dimension else project(X, u), n_terms)
        elif metric == "hellinger":
            Z = _projected_roots(objects, n_terms, seed)
        else:
            labels, rows = number_ids(node_labels_of(objects))
            Z = propagated(objects, project_labels(rows, draw(seed, labels, n_terms, True)), n_terms)
        beta = draw_offsets(seed, n_terms, Z.shape[1] // n_terms) * width
        ids: npt.NDArray[np.uint64] = hash_bins(bins(Z, beta, width).view(np.uint64), n_terms)
        return ids

    def _used(self, graphs: GraphBatch) -> str:
        """Return "labels" or "attributes", the property to propagate; raise if a parameter does not suit the graphs."""
        check_choice(self.use, "use", ("auto", *_METRICS))
        found = "attributes" if _n_attributes(graphs) else "labels"
        used = found if self.use == "auto" else self.use
        if used == "attributes" and found == "labels" and graphs.n_nodes:
            raise ValueError(
                "use='attributes' needs node attributes, but these graphs have none; use "
                f"{type(self).__name__}(use='labels')"
            )
        if used == "labels" and self.per_dimension and graphs.n_nodes:
            raise ValueError(
                "per_dimension=True bins each node attribute separately, but these graphs are compared by labels; "
                f"use {type(self).__name__}(per_dimension=False)"
            )
        return used

    def _metric(self, used: str, graphs: GraphBatch) -> str:
        known = _METRICS[used] if graphs.n_nodes else _METRICS["labels"] + _METRICS["attributes"]
        metric = _METRICS[used][0] if self.metric == "auto" else self.metric
        if metric not in known:
            raise ValueError(
                f"metric={metric!r} is not for node {used}, by which these graphs are compared; use one of "
                f"{', '.join(map(repr, known))}, or set the parameter use"
            )
        return metric


def project_labels(rows: npt.NDArray[np.int64], u: Array) -> Array:
    """Return the projections of one-hot labels, ``u[t, rows[v]]`` for node v and step t, shape (n_nodes, n_terms)."""
    return np.ascontiguousarray(u.T)[rows]


def project_each(X: Array, u: Array) -> Array:
    """Return the elementwise product of each row of X with each row of `u`, shape (n_nodes, n_terms * n_attributes)."""
    with np.errstate(over="ignore"):  # `bins` raises for an overflow
        return (X[:, None, :] * u).reshape(len(X), u.size)


def propagated(graphs: GraphBatch, Z: Array, n_terms: int) -> Array:
    """Divide the columns of Z into `n_terms` equal blocks; return Z with block t propagated by t steps of the walk."""
    Z, moved, walk = Z.copy(), np.empty_like(Z), _walk(graphs, Z.shape[1])
    for first in range(Z.shape[1] // n_terms, Z.shape[1], Z.shape[1] // n_terms):
        walk(Z, first, moved)
        Z[:, first:] = moved[:, first:]
    return Z


def bins(Z: Array, beta: Array, width: float) -> Array:
    """Return floor((Z + beta) / width) as float64, or raise if a value is not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        b = np.floor((Z + beta.ravel()) / width)
    if not np.isfinite(b).all():
        found = f"has projections that exceed the largest float64 after division by bin_width={width}"
        raise BadValue(None, found, remedy="scale the attributes (AttributeScaler) or take wider bins")
    return b


def root_projections(graphs: GraphBatch, rows: npt.NDArray[np.int64], u: Array) -> Array:
    """Return sqrt(P_t) u_t for each step t, shape (n_nodes, n_terms).

    P_t are the label distributions of the nodes after t steps of the walk; node v starts with the label ``rows[v]``.
    """
    n_terms, n_labels = u.shape
    P, moved = np.zeros((len(rows), n_labels)), np.empty((len(rows), n_labels))
    P[np.arange(len(rows)), rows] = 1.0
    Z, walk = np.empty((len(rows), n_terms)), _walk(graphs, n_labels)
    for t in range(n_terms):
        Z[:, t] = project(np.sqrt(P), u[t : t + 1])[:, 0]
        if t < n_terms - 1:
            walk(P, 0, moved)
            P, moved = moved, P
    return Z


def _projected_roots(graphs: GraphBatch, n_terms: int, seed: np.uint64) -> Array:
    """Return `root_projections` of all graphs, in blocks of graphs; a block takes memory for its own labels only."""
    parts = [np.empty((0, n_terms))]
    for run in runs(graphs.node_offsets, _NODES_PER_BLOCK):
        block = graphs[run]
        # Ascending labels, so that the order of sums does not depend on the rest of the block.
        labels, rows = np.unique(node_labels_of(block), return_inverse=True)
        parts.append(root_projections(block, rows, draw(seed, labels, n_terms, False)))
    return np.concatenate(parts)


def _walk(graphs: GraphBatch, n_columns: int) -> Callable[[Array, int, Array], None]:
    """Return a function (Z, first, out) that fills `out`, from column `first` on, with Z after one step of the walk."""
    arcs = arcs_of(graphs)
    weights, totals = np.empty(0), graphs.degrees.astype(np.float64)
    if graphs.edge_weights is not None:
        weights = _moderate(np.ascontiguousarray(graphs.edge_weights, dtype=np.float64), arcs[0])
        totals = total_weights(arcs[0], weights)
    room = np.empty((int(graphs.degrees.max(initial=0)), n_columns))

    def step(Z: Array, first: int, out: Array) -> None:
        neighbour_means(Z, first, *arcs, weights, totals, room, out)

    return step


def _moderate(weights: Array, indptr: npt.NDArray[np.int64]) -> Array:
    """Return the weights of arcs, divided by the largest of their node if this is extreme; means do not change."""
    if not ((weights > _EXTREME) | ((weights < 1 / _EXTREME) & (weights > 0))).any():
        return weights
    nodes = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    largest = np.zeros(len(indptr) - 1)
    np.maximum.at(largest, nodes, weights)
    largest[(largest == 0) | ((largest >= 1 / _EXTREME) & (largest <= _EXTREME))] = 1.0
    with np.errstate(under="ignore"):
        found: Array = weights / largest[nodes]
    return found


def _n_attributes(graphs: GraphBatch) -> int:
    return 0 if graphs.node_attributes is None else graphs.node_attributes.shape[1]


def _attributes(graphs: GraphBatch) -> Array:
    """Return the node attributes, or raise and name the first node with a value that is not finite."""
    check_attributes(graphs)
    return np.ascontiguousarray(graphs.node_attributes, dtype=np.float64)


def _check_weights(graphs: GraphBatch) -> None:
    if graphs.edge_weights is not None and (negative := ~(graphs.edge_weights >= 0)).any():
        arc = int(np.argmax(negative))
        graph, place = place_of(graphs, int(np.searchsorted(graphs.indptr, arc, side="right")) - 1)
        found = f"has an edge of weight {graphs.edge_weights[arc]}"
        expected = "weights >= 0: a random walk follows edges in proportion to their weights"
        raise BadValue(graph, found, expected, kind="graph", place=place)


@njit()
def _uniform(key):  # type: ignore[no-untyped-def]
    """Turn a 64-bit hash into a number in (0, 1]."""
    return (float(key >> _S11) + 0.5) * 2.0**-53


@njit()
def draw(seed, names, n_terms, cauchy):  # type: ignore[no-untyped-def]
    """Hash (seed, step, name) into a Cauchy number, or a normal one if not `cauchy`; shape (n_terms, len(names))."""
    u = np.empty((n_terms, len(names)))
    for t in range(n_terms):
        term = combine(seed, np.uint64(2 * t))
        for k in range(len(names)):
            key = combine(term, names[k])
            if cauchy:
                cosine, sine = cos_sin(2.0 * (_uniform(key) - 0.5))
                u[t, k] = sine / cosine
            else:
                radius = math.sqrt(-2.0 * log_of(_uniform(key)))
                u[t, k] = radius * cos_sin(4.0 * _uniform(combine(key, np.uint64(1))))[0]
    return u


@njit()
def draw_offsets(seed, n_terms, n_dimensions):  # type: ignore[no-untyped-def]
    """Hash (seed, step, dimension) into numbers uniform on (0, 1], shape (n_terms, n_dimensions)."""
    beta = np.empty((n_terms, n_dimensions))
    for t in range(n_terms):
        term = combine(seed, np.uint64(2 * t + 1))
        for k in range(n_dimensions):
            beta[t, k] = _uniform(combine(term, np.uint64(k)))
    return beta


@njit()
def project(X, u):  # type: ignore[no-untyped-def]
    """Return X @ u.T; each sum runs over the columns of X in order."""
    Z = np.zeros((len(X), len(u)))
    for v in range(len(X)):
        for k in range(X.shape[1]):
            for t in range(len(u)):
                Z[v, t] += X[v, k] * u[t, k]
    return Z


@njit()
def total_weights(indptr, weights):  # type: ignore[no-untyped-def]
    """Return the total weight of each node's arcs; the weights are added in ascending order."""
    totals = np.zeros(len(indptr) - 1)
    for v in range(len(totals)):
        totals[v] = np.sort(weights[indptr[v] : indptr[v + 1]]).sum()
    return totals


@njit()
def neighbour_means(Z, first, indptr, indices, weights, totals, room, out):  # type: ignore[no-untyped-def]
    """Fill `out`, from column `first` on, with the weighted mean of Z over the neighbours of each node.

    Terms are added in ascending order, so the order of neighbours does not matter. A node of total weight 0 keeps its
    values. `weights` is empty if all are 1; `room` is work space of shape (largest degree, number of columns of Z).
    Sorting takes most of the time; without weights, nodes with up to three neighbours need no sort.
    """
    n_columns = Z.shape[1]
    for v in range(len(indptr) - 1):
        start = indptr[v]
        degree = indptr[v + 1] - start
        if totals[v] == 0.0 or (degree == 1 and len(weights) == 0):
            only = v if totals[v] == 0.0 else indices[start]
            for c in range(first, n_columns):
                out[v, c] = Z[only, c]
        elif degree == 2 and len(weights) == 0:
            a, b = indices[start], indices[start + 1]
            for c in range(first, n_columns):
                out[v, c] = (Z[a, c] + Z[b, c]) / 2.0
        elif degree == 3 and len(weights) == 0:
            a, b, d = indices[start], indices[start + 1], indices[start + 2]
            for c in range(first, n_columns):
                low, high, z = min(Z[a, c], Z[b, c]), max(Z[a, c], Z[b, c]), Z[d, c]
                out[v, c] = ((min(low, z) + max(low, min(high, z))) + max(high, z)) / 3.0
        else:
            for k in range(degree):
                u, weight = indices[start + k], weights[start + k] if len(weights) else 1.0
                for c in range(first, n_columns):
                    room[k, c] = weight * Z[u, c]
            _sort_columns(room, degree, first)
            for c in range(first, n_columns):
                total = room[0, c]
                for k in range(1, degree):
                    total += room[k, c]
                out[v, c] = total / totals[v]


@njit()
def _sort_columns(room, n, first):  # type: ignore[no-untyped-def]
    """Sort ``room[:n, c]`` in place for each column c >= `first`; few values by fast exchanges without branches."""
    if n > _FEW:
        for c in range(first, room.shape[1]):
            room[:n, c] = np.sort(room[:n, c])
        return
    for i in range(1, n):
        for j in range(i, 0, -1):
            for c in range(first, room.shape[1]):
                x, y = room[j - 1, c], room[j, c]
                room[j - 1, c] = min(x, y)
                room[j, c] = max(x, y)


@njit()
def hash_bins(bits, n_terms):  # type: ignore[no-untyped-def]
    """Hash the d bins of each node and step into one id; `bits` are the bins as uint64, (n_nodes, n_terms * d)."""
    n_dimensions = bits.shape[1] // n_terms
    ids = np.empty((len(bits), n_terms), dtype=np.uint64)
    for v in range(len(bits)):
        for t in range(n_terms):
            key = np.uint64(t)
            for k in range(n_dimensions):
                key = combine(key, bits[v, t * n_dimensions + k])
            ids[v, t] = key
    return ids
