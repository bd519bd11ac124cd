"""Use the kernels of GraKeL.

A graph is passed to GraKeL as a dict that maps each node, even an isolated one, to its neighbours, together with the
labels of nodes and edges. K(X) is computed by ``fit_transform``, K(X, Y) by ``fit`` on Y and ``transform`` of X. Each
call uses a new clone of the kernel, so no state is kept. Cost and memory are those of GraKeL, in one process unless the
kernel has ``n_jobs``.

Library: Siglidis, Nikolentzos, Limnios, Giatsidis, Skianis & Vazirgiannis, "GraKeL: a graph kernel library in Python",
JMLR 21, 2020.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from similia.adapters._forwarded import called
from similia.core.validation import as_second
from similia.kernels.counts import scale_by_norms
from similia.objects import GraphBatch, as_graphs
from similia.similarity import Kernel, as_floats, refuse_class

Floats = npt.NDArray[np.float64]


class GraKeLKernel(Kernel):
    """A graph kernel of the library GraKeL; create one with `from_grakel`.

    Parameters
    ----------
    kernel : grakel.Kernel
        For example ``grakel.WeisfeilerLehman(n_iter=3, base_graph_kernel=grakel.VertexHistogram)``. Change its
        parameters with ``set_params(kernel__n_iter=5)``.
    use : {"labels", "attributes"}, default="labels"
        Whether GraKeL gets the labels or the attribute vectors of the nodes.
    normalize : bool, optional
        Whether to divide k(x, y) by sqrt(k(x, x) k(y, y)). By default, ``kernel.normalize`` decides. After
        normalisation, a graph with k(x, x) = 0 has similarity 1 to itself and 0 to all others, as in the kernels of
        similia; GraKeL itself returns NaN.

    See Also
    --------
    from_grakel : Has an example.

    Notes
    -----
    Missing labels of nodes or edges become 0. A graph without nodes is not passed to GraKeL: its unnormalised kernel
    value with every graph is 0. If the kernel of GraKeL is random, give it a ``random_state``.

    For some of GraKeL's kernels, the value for two graphs depends on the other graphs in the collection;
    `similia.checks.check_kernel` detects this. In GraKeL 0.1.11, VertexHistogram, EdgeHistogram, WeisfeilerLehman,
    WeisfeilerLehmanOptimalAssignment, ShortestPath, ShortestPathAttr, PyramidMatch and SubgraphMatching pass this
    check. RandomWalk, OddSth, SvmTheta and MultiscaleLaplacian fail it. Propagation, NeighborhoodHash and HadamardCode
    fail it if a graph has isolated nodes.
    """

    def __init__(self, kernel: Any, use: str = "labels", normalize: bool | None = None) -> None:
        self.kernel = kernel
        self.use = use
        self.normalize = normalize

    def as_objects(self, X: Any) -> GraphBatch:
        """Return `X` as a `GraphBatch`."""
        return as_graphs(X)

    def __call__(self, X: Any, Y: Any = None) -> Floats:
        """Return the Gram block of the graphs `X` against `Y` (`X` if not given), shape (n, m)."""
        X = as_graphs(X)
        K, kxx, kyy = self._within(X) if Y is None else self._between(X, as_second(as_graphs, Y))
        if self._normalized():
            scale_by_norms(K, kxx, kyy, same=Y is None)
        return K

    def diag(self, X: Any) -> Floats:
        """Return k(x, x) for each graph, shape (n,)."""
        X = as_graphs(X)
        if self._normalized():
            return np.ones(len(X))
        graphs, full = self._as_lists(X)
        diagonal = np.zeros(len(X))
        if graphs:
            kernel = called(self._name(), self._unfitted().fit, graphs)
            try:
                diagonal[full] = self._diagonals(kernel)[0]
            except ValueError:  # some kernels have a diagonal only after a matrix was computed
                called(self._name(), kernel.fit_transform, graphs)
                diagonal[full] = self._diagonals(kernel)[0]
        return diagonal

    def _self_values(self, X: Any) -> Floats:
        X = as_graphs(X)
        if not self._normalized():
            return self.diag(X)
        return (self._between(X, X[self._as_lists(X)[1][:1]])[1] > 0).astype(np.float64)

    def _within(self, X: GraphBatch) -> tuple[Floats, Floats, Floats]:
        """Return (K, d, d): K(X) before normalisation, and its diagonal d, for the rows and for the columns."""
        graphs, full = self._as_lists(X)
        K = np.zeros((len(X), len(X)))
        if graphs:
            values = called(self._name(), self._unfitted().fit_transform, graphs)
            K[np.ix_(full, full)] = self._checked(values, full, full)
        diagonal = K.diagonal().copy()
        return K, diagonal, diagonal

    def _between(self, X: GraphBatch, Y: GraphBatch) -> tuple[Floats, Floats, Floats]:
        """Return (K, kxx, kyy): K(X, Y) before normalisation, and k(x, x) and k(y, y) (0 unless they are needed)."""
        (rows, left), (columns, right) = self._as_lists(X), self._as_lists(Y)
        K, kxx, kyy = np.zeros((len(X), len(Y))), np.zeros(len(X)), np.zeros(len(Y))
        if rows and columns:
            kernel = called(self._name(), self._unfitted().fit, columns)
            K[np.ix_(left, right)] = self._checked(called(self._name(), kernel.transform, rows), left, right)
            if self._normalized():
                kyy[right], kxx[left] = self._diagonals(kernel)
        return K, kxx, kyy

    def _unfitted(self) -> Any:
        """Return an unfitted copy of GraKeL's kernel, with the kernel's own normalisation switched off."""
        refuse_class(self.kernel, "the kernel")
        if not hasattr(self.kernel, "fit_transform") or not hasattr(self.kernel, "get_params"):
            raise TypeError(f"from_grakel takes a kernel of GraKeL, such as WeisfeilerLehman(), got {self.kernel!r}")
        kernel = clone(self.kernel)
        if getattr(kernel, "normalize", False):
            kernel.set_params(normalize=False)  # which returns None
        return kernel

    def _normalized(self) -> bool:
        return bool(getattr(self.kernel, "normalize", False) if self.normalize is None else self.normalize)

    def _name(self) -> str:
        return f"GraKeL's {type(self.kernel).__name__}"

    def _diagonals(self, kernel: Any) -> tuple[Floats, ...]:
        """Return k(x, x) of the graphs to which `kernel` was fitted, and of those it has transformed, if any."""
        found = called(self._name(), kernel.diagonal)
        found = found if isinstance(found, tuple) else (found,)
        return tuple(np.asarray(part, dtype=np.float64).ravel() for part in found)

    def _checked(self, K: Any, rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64]) -> Floats:
        K = as_floats(K, f"{self._name()} returned").astype(np.float64, copy=False)
        if K.shape != (len(rows), len(columns)):
            raise ValueError(f"{self._name()} returned shape {K.shape} for {len(rows)} x {len(columns)} graphs")
        if not np.isfinite(K).all():
            i, j = np.argwhere(~np.isfinite(K))[0]
            pair = f"graphs {rows[i]} and {columns[j]}"
            raise ValueError(f"{self._name()} returned {K[i, j]} for {pair}, expected a number")
        return K

    def _as_lists(self, X: GraphBatch) -> tuple[list[Any], npt.NDArray[np.int64]]:
        """Return the graphs that have nodes, in GraKeL's format, and their positions in `X`."""
        if self.use not in ("labels", "attributes"):
            raise ValueError(f"use must be 'labels' or 'attributes', got {self.use!r}")
        if self.use == "attributes" and X.node_attributes is None:
            raise ValueError("the graphs have no node attributes; add some, or use use='labels'")
        full = np.flatnonzero(np.diff(X.node_offsets))
        return [_as_grakel(X, int(g), self.use) for g in full], full


def from_grakel(kernel: Any, *, use: str = "labels", normalize: bool | None = None) -> GraKeLKernel:
    """Turn a graph kernel of the library GraKeL into a kernel of similia.

    Parameters
    ----------
    kernel : grakel.Kernel
        For example ``grakel.WeisfeilerLehman(n_iter=3, base_graph_kernel=grakel.VertexHistogram)``.
    use : {"labels", "attributes"}, default="labels"
        Whether GraKeL gets the labels or the attribute vectors of the nodes.
    normalize : bool, optional
        Whether to divide k(x, y) by sqrt(k(x, x) k(y, y)). By default, ``kernel.normalize`` decides.

    Returns
    -------
    GraKeLKernel
        Called as ``k(X, Y=None) -> (n, m)`` on anything that `similia.objects.as_graphs` reads. Use it in
        `similia.Nystroem`, `similia.KernelSVC` or any other estimator that takes a kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.adapters import from_grakel
    >>> from sklearn.base import BaseEstimator
    >>> class Nodes(BaseEstimator):  # what a kernel of GraKeL looks like
    ...     def fit_transform(self, graphs):
    ...         sizes = [len(neighbours) for neighbours, _, _ in graphs]
    ...         return np.outer(sizes, sizes)
    >>> from_grakel(Nodes(), normalize=False)([np.ones((2, 2)), np.ones((3, 3))])
    array([[4., 6.],
           [6., 9.]])
    """
    return GraKeLKernel(kernel, use=use, normalize=normalize)


def _as_grakel(X: GraphBatch, g: int, use: str) -> list[Any]:
    """Return graph number `g` as GraKeL's [{node: {neighbour: weight}}, {node: label}, {(node, node): label}]."""
    first, stop = X.node_offsets[g], X.node_offsets[g + 1]
    neighbours: dict[int, dict[int, float]] = {}
    edges: dict[tuple[int, int], int] = {}
    for v in range(first, stop):
        arcs = slice(X.indptr[v], X.indptr[v + 1])
        ends = (X.indices[arcs] - first).tolist()
        weights = [1.0] * len(ends) if X.edge_weights is None else X.edge_weights[arcs].tolist()
        labels = [0] * len(ends) if X.edge_labels is None else X.edge_labels[arcs].tolist()
        neighbours[int(v - first)] = dict(zip(ends, weights, strict=True))
        edges.update({(int(v - first), end): label for end, label in zip(ends, labels, strict=True)})
    nodes: Any = [0] * int(stop - first) if X.node_labels is None else X.node_labels[first:stop].tolist()
    if use == "attributes" and X.node_attributes is not None:
        nodes = X.node_attributes[first:stop]
    return [neighbours, dict(enumerate(nodes)), edges]
