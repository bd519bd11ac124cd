"""The memory layout of graphs: arcs (directed edges) sorted by source, with optional labels, attributes and weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from similia.core.errors import BadValue
from similia.core.validation import unmasked
from similia.objects.sequences import Batch, check_array, check_offsets, joined, offsets_of, resolve_indices, segments

# Optional columns, with a row per node or arc.
SIDE = ("node_labels", "node_attributes", "edge_labels", "edge_weights", "node_details")
_NUMBERS = ("node_attributes", "edge_weights")  # float64; the others are int64


@dataclass(frozen=True, eq=False, repr=False)
class GraphBatch(Batch):
    """A collection of graphs.

    An undirected edge is stored as two arcs (directed edges), a self-loop as one. The arcs that leave a node are sorted
    by target, without repeats. `from_arrays` sorts and checks arcs; the plain constructor checks nothing.

    Attributes
    ----------
    node_offsets : ndarray of int64, shape (n_graphs + 1,)
        Nodes of graph g are ``node_offsets[g]:node_offsets[g + 1]``.
    indptr : ndarray of int64, shape (n_nodes + 1,)
        Arcs that leave node v are ``indptr[v]:indptr[v + 1]``.
    indices : ndarray of int64, shape (n_arcs,)
        Target node of each arc; nodes are numbered over the whole batch.
    node_labels : ndarray of int64, shape (n_nodes,), optional
        A label for each node, as an integer. `as_graphs` also takes other labels, and stores each as a 64-bit hash of
        its text, which does not change from one run of Python to the next.
    node_attributes : ndarray of float64, shape (n_nodes, n_attributes), optional
        A vector of numbers for each node.
    edge_labels : ndarray of int64, shape (n_arcs,), optional
        A label for each arc, stored like the labels of nodes.
    edge_weights : ndarray of float64, shape (n_arcs,), optional
        A weight for each arc.
    node_details : ndarray of int64, shape (n_nodes,), optional
        A second, finer label for each node, such as the charge of an atom; only `similia.kernels.WeisfeilerLehman` uses
        it.

    Examples
    --------
    >>> from similia.objects import GraphBatch
    >>> arcs = [[0, 1, 1, 2, 2, 0, 3, 4], [1, 0, 2, 1, 0, 2, 4, 3]]
    >>> graphs = GraphBatch.from_arrays([0, 3, 5], arcs)  # a triangle and a single edge
    >>> graphs, graphs.n_nodes, graphs[1].indices
    (<GraphBatch of 2 objects>, 5, array([1, 0]))
    """

    kind = "graphs"

    node_offsets: npt.NDArray[np.int64]
    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int64]
    node_labels: npt.NDArray[np.int64] | None = None
    node_attributes: npt.NDArray[np.float64] | None = None
    edge_labels: npt.NDArray[np.int64] | None = None
    edge_weights: npt.NDArray[np.float64] | None = None
    node_details: npt.NDArray[np.int64] | None = None

    @classmethod
    def from_arrays(
        cls,
        node_offsets: npt.ArrayLike,
        edge_index: npt.ArrayLike,
        *,
        node_labels: npt.ArrayLike | None = None,
        node_attributes: npt.ArrayLike | None = None,
        edge_labels: npt.ArrayLike | None = None,
        edge_weights: npt.ArrayLike | None = None,
        node_details: npt.ArrayLike | None = None,
        repeated: Literal["sum", "first"] = "sum",
    ) -> Self:
        """Make a batch from arcs in any order; repeated arcs are merged.

        Parameters
        ----------
        node_offsets, node_labels, node_attributes, edge_labels, edge_weights, node_details : array-like
            See the attributes of `GraphBatch`; here, edge labels and weights are in the order of `edge_index`.
        edge_index : array-like of int, shape (2, n_arcs)
            Source and target node of each arc; nodes are numbered over the whole batch. An undirected edge is two arcs.
        repeated : {"sum", "first"}, default="sum"
            Which weight a repeated arc gets: the sum of its weights, or the first one. The arc always gets its first
            label.

        Raises
        ------
        ValueError
            If shapes do not fit together, labels are not integers, an arc names a missing node or joins two graphs, or
            attributes or weights are NaN or infinite; the message names the node or arc.
        """
        offsets = check_offsets(node_offsets, "node_offsets")
        n_nodes = int(offsets[-1])
        arcs = _check_arcs(edge_index, offsets)
        columns = (node_labels, node_attributes, edge_labels, edge_weights, node_details)
        side = _checked_side(dict(zip(SIDE, columns, strict=True)), n_nodes, arcs.shape[1])
        order, first = _sorted_arcs(arcs, n_nodes)
        kept = order[first]
        if side["edge_labels"] is not None:
            side["edge_labels"] = side["edge_labels"][kept]
        if side["edge_weights"] is not None:
            weights = side["edge_weights"]
            summed = repeated == "sum" and len(kept) < len(order)
            side["edge_weights"] = np.add.reduceat(weights[order], first) if summed else weights[kept]
        indptr = offsets_of(np.bincount(arcs[0, kept], minlength=n_nodes))
        return cls(offsets, indptr, arcs[1, kept], **side)

    def __len__(self) -> int:
        return len(self.node_offsets) - 1

    @property
    def n_nodes(self) -> int:
        """Total number of nodes."""
        return len(self.indptr) - 1

    @property
    def degrees(self) -> npt.NDArray[np.int64]:
        """Number of arcs that leave each node, shape (n_nodes,)."""
        return np.diff(self.indptr)

    @property
    def graph_of_node(self) -> npt.NDArray[np.int64]:
        """Index of each node's graph, shape (n_nodes,)."""
        return np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.node_offsets))

    @property
    def edge_index(self) -> npt.NDArray[np.int64]:
        """Source and target of each arc, shape (2, n_arcs)."""
        return np.stack([np.repeat(np.arange(self.n_nodes, dtype=np.int64), self.degrees), self.indices])

    def take(self, indices: npt.ArrayLike) -> Self:
        nodes, node_offsets = segments(self.node_offsets, resolve_indices(indices, len(self)))
        arcs, indptr = segments(self.indptr, nodes)
        shift = np.repeat(np.arange(len(nodes), dtype=np.int64) - nodes, np.diff(indptr))
        side = {name: column if column is None else column[nodes if name.startswith("node") else arcs]
                for name, column in self._side().items()}  # fmt: skip
        return type(self)(node_offsets, indptr, self.indices[arcs] + shift, **side)

    @classmethod
    def concatenate(cls, batches: Sequence[Self]) -> Self:
        """Return the graphs of one or more batches in order; raise if only some batches have labels or attributes.

        Missing weights become 1. A batch without nodes may lack node labels, and a batch without arcs may lack edge
        labels.
        """
        nodes, arcs = [batch.n_nodes for batch in batches], [len(batch.indices) for batch in batches]
        side = joined_side([batch._side() for batch in batches], nodes, arcs, collection="batches")
        firsts = offsets_of(nodes)[:-1]
        return cls(
            joined([batch.node_offsets for batch in batches]),
            joined([batch.indptr for batch in batches]),
            np.concatenate([batch.indices + first for batch, first in zip(batches, firsts, strict=True)]),
            **side,
        )

    def _check(self) -> None:
        for name in ("node_offsets", "indptr", "indices"):
            check_array(getattr(self, name), name, np.int64)
        for name, value in self._side().items():
            if value is not None:
                dtype = np.float64 if name in _NUMBERS else np.int64
                check_array(value, name, dtype, 2 if name == "node_attributes" else 1)
        offsets, indptr = check_offsets(self.node_offsets, "node_offsets"), check_offsets(self.indptr, "indptr")
        if offsets[-1] != self.n_nodes or indptr[-1] != len(self.indices):
            raise ValueError(
                f"node_offsets end at {offsets[-1]} and indptr at {indptr[-1]}, "
                f"but there are {self.n_nodes} nodes and {len(self.indices)} arcs"
            )
        _checked_side(self._side(), self.n_nodes, len(self.indices))
        _check_arcs(self.edge_index, offsets)

    def _side(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in SIDE}

    def _one(self, index: int) -> Self:
        return self.take(np.array([index], dtype=np.int64))


def joined_side(sides: list[dict[str, Any]], nodes: list[int], arcs: list[int], **naming: str) -> dict[str, Any]:
    """Concatenate the labels, attributes and weights (`sides`) of several collections of graphs, column by column.

    Collection i has ``nodes[i]`` nodes and ``arcs[i]`` arcs. A collection without nodes may lack node columns, and one
    without arcs may lack edge columns. Missing weights are 1. `naming` holds arguments of `BadValue` that name a
    collection in errors.
    """
    return {
        name: _joined_column(name, [side[name] for side in sides], nodes if name.startswith("node") else arcs, naming)
        for name in SIDE
    }


def _joined_column(name: str, columns: list[Any], sizes: list[int], naming: dict[str, Any]) -> Any:
    """Return one concatenated column, or None if no collection has it; raise if only some collections have it."""
    having = [i for i, column in enumerate(columns) if column is not None]
    if not having:
        return None
    if name == "edge_weights":
        columns = [np.ones(size) if column is None else column for column, size in zip(columns, sizes, strict=True)]
    first = next((i for i in having if len(columns[i])), having[0])  # one with rows, if there is any
    for i, (column, size) in enumerate(zip(columns, sizes, strict=True)):
        if column is None and size:
            found, remedy = f"has no {name}, but {{other}} has", "give them to all graphs or to none"
            raise BadValue(i, found, remedy=remedy, other=first, **naming)
        if column is not None and size and column.shape[1:] != columns[first].shape[1:]:
            width = columns[first].shape[1:]
            found = f"has node attributes of shape {column.shape}, but {{other}} has {width} for each node"
            raise BadValue(i, found, other=first, **naming)
    return np.concatenate([column for column in columns if column is not None and len(column)] or [columns[first]])


def _check_arcs(edge_index: npt.ArrayLike, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    arcs = np.asarray(unmasked(edge_index, "edge_index"))
    if arcs.size == 0:
        return np.zeros((2, 0), dtype=np.int64)
    if arcs.ndim != 2 or arcs.shape[0] != 2 or not np.issubdtype(arcs.dtype, np.integer):
        raise ValueError(f"edge_index must be integers of shape (2, n_arcs), got {arcs.dtype} of shape {arcs.shape}")
    arcs = arcs.astype(np.int64)
    if (arc := first_outside(arcs, offsets[-1])) is not None:
        raise ValueError(f"arc {arc} joins nodes {arcs[:, arc].tolist()}, but there are {offsets[-1]} nodes, from 0")
    graph = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    across = graph[arcs[0]] != graph[arcs[1]]
    if across.any():
        arc = int(np.argmax(across))
        source, target = graph[arcs[:, arc]]
        raise ValueError(f"arc {arc} joins graph {source} to graph {target}; an arc must stay in one graph")
    return arcs


def first_outside(arcs: npt.NDArray[np.int64], n_nodes: int) -> int | None:
    """Return the index of the first arc whose source or target is not a node, or None if there is no such arc."""
    outside = ((arcs < 0) | (arcs >= n_nodes)).any(axis=0)
    return int(np.argmax(outside)) if outside.any() else None


def _checked_side(side: dict[str, Any], n_nodes: int, n_arcs: int) -> dict[str, Any]:
    """Return `side` with its labels as int64, attributes and weights as float64; raise if a column is invalid."""
    return {
        name: None if column is None else
        _check_column(name, np.asarray(unmasked(column, name)), n_nodes if name.startswith("node") else n_arcs)
        for name, column in side.items()
    }  # fmt: skip


def _check_column(name: str, value: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    if value.ndim != (2 if name == "node_attributes" else 1) or len(value) != size:
        raise ValueError(f"{name} must have one row for each of {size} {name[:4]}s, got shape {value.shape}")
    if name not in _NUMBERS:
        if value.dtype.kind not in "biu" and size:
            raise ValueError(f"{name} must be integers, got {value.dtype}; as_graphs takes labels of any kind")
        return value.astype(np.int64)
    numbers = value.astype(np.float64, order="C")
    finite = np.isfinite(numbers)
    if not finite.all():
        row = int(np.argwhere(~finite)[0, 0])
        raise ValueError(f"{name}[{row}] holds NaN or infinity, expected finite numbers")
    return numbers


def _sorted_arcs(arcs: npt.NDArray[np.int64], n_nodes: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return (order, distinct): `order` sorts arcs by source, then target; ``order[distinct]`` has each arc once."""
    keys = arcs[0] * n_nodes + arcs[1]
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    return order, np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])


def place_of(graphs: GraphBatch, node: int) -> tuple[int, str]:
    """Return the index of a node's graph, and the name of the node within that graph, such as "node 3"."""
    graph = int(np.searchsorted(graphs.node_offsets, node, side="right")) - 1
    return graph, f"node {node - graphs.node_offsets[graph]}"


def check_attributes(graphs: GraphBatch) -> None:
    """Raise if a node attribute is NaN or infinite, and name the first such node."""
    if graphs.node_attributes is not None:
        finite = np.isfinite(graphs.node_attributes).all(axis=1)
        if not finite.all():
            graph, place = place_of(graphs, int(np.argmin(finite)))
            found, remedy = "has attributes that are NaN or infinite", "impute them first"
            raise BadValue(graph, found, "finite numbers", remedy, kind="graph", place=place)
