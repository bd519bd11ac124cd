"""The memory layout of graphs: arcs sorted by node, with labels, attributes and weights beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from similia.core.validation import unmasked
from similia.objects.sequences import Batch, check_array, check_offsets, joined, resolve_indices, segments


@dataclass(frozen=True, eq=False, repr=False)
class GraphBatch(Batch):
    """A collection of graphs.

    An undirected edge is two arcs, a self-loop one. The arcs of a node are sorted by target, without repeats.
    `from_arrays` sorts and checks arcs; the plain constructor trusts its arguments.

    Attributes
    ----------
    node_offsets : ndarray of int64, shape (n_graphs + 1,)
        Nodes of graph g are ``node_offsets[g]:node_offsets[g + 1]``.
    indptr : ndarray of int64, shape (n_nodes + 1,)
        Arcs of node v are ``indptr[v]:indptr[v + 1]``.
    indices : ndarray of int64, shape (n_arcs,)
        Target node of each arc, numbered over the whole batch.
    node_labels : ndarray of int64, shape (n_nodes,), optional
        Integer labels as given; other labels as a 64-bit hash of their text, the same in any process.
    node_attributes : ndarray of float64, shape (n_nodes, n_attributes), optional
    edge_labels : ndarray of int64, shape (n_arcs,), optional
    edge_weights : ndarray of float64, shape (n_arcs,), optional

    Examples
    --------
    A triangle and a single edge:

    >>> from similia.objects import GraphBatch
    >>> arcs = [[0, 1, 1, 2, 2, 0, 3, 4], [1, 0, 2, 1, 0, 2, 4, 3]]
    >>> graphs = GraphBatch.from_arrays([0, 3, 5], arcs)
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
        repeated: Literal["sum", "first"] = "sum",
    ) -> Self:
        """Make a batch from arcs in any order; repeated arcs are merged.

        Parameters
        ----------
        node_offsets : array-like of int, shape (n_graphs + 1,)
            Nodes of graph g are ``node_offsets[g]:node_offsets[g + 1]``.
        edge_index : array-like of int, shape (2, n_arcs)
            Source and target of each arc, numbered over the whole batch. An undirected edge is
            given in both directions.
        node_labels : array-like of int, shape (n_nodes,), optional
        node_attributes : array-like of float, shape (n_nodes, n_attributes), optional
        edge_labels : array-like of int, shape (n_arcs,), optional
            A repeated arc keeps its first label.
        edge_weights : array-like of float, shape (n_arcs,), optional
        repeated : {"sum", "first"}
            Weight of a repeated arc: the sum of its weights, or the first.

        Raises
        ------
        ValueError
            If shapes do not fit, labels are not integers, an arc leaves its graph or the batch, or
            attributes or weights are NaN or infinite; the message names the node or arc.
        """
        offsets = check_offsets(node_offsets, "node_offsets")
        n_nodes = int(offsets[-1])
        arcs = _check_arcs(edge_index, offsets)
        side = _check_side(
            {
                "node_labels": node_labels,
                "node_attributes": node_attributes,
                "edge_labels": edge_labels,
                "edge_weights": edge_weights,
            },
            {"node": n_nodes, "edge": arcs.shape[1]},
        )
        order, first = _sorted_arcs(arcs, n_nodes)
        kept = order[first]
        if side["edge_labels"] is not None:
            side["edge_labels"] = side["edge_labels"][kept]
        if side["edge_weights"] is not None:
            weights = side["edge_weights"]
            summed = repeated == "sum" and len(kept) < len(order)
            side["edge_weights"] = np.add.reduceat(weights[order], first) if summed else weights[kept]
        indptr = np.zeros(n_nodes + 1, dtype=np.int64)
        np.cumsum(np.bincount(arcs[0, kept], minlength=n_nodes), out=indptr[1:])
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
        """Return the batch of the graphs at `indices` (in that order, repeats allowed)."""
        nodes, node_offsets = segments(self.node_offsets, resolve_indices(indices, len(self)))
        arcs, indptr = segments(self.indptr, nodes)
        shift = np.repeat(np.arange(len(nodes), dtype=np.int64) - nodes, np.diff(indptr))
        side = {
            field.name: None if (value := getattr(self, field.name)) is None
            else value[nodes if field.name.startswith("node") else arcs]
            for field in fields(self)[3:]
        }  # fmt: skip
        return type(self)(node_offsets, indptr, self.indices[arcs] + shift, **side)

    @classmethod
    def concatenate(cls, batches: Sequence[Self]) -> Self:
        """Return the graphs of one or more batches in order; raise if only some have labels or attributes.

        As in `as_graphs`, arcs without weights among weighted ones weigh 1, and batches without nodes (or arcs) need
        no labels for them.
        """
        side = {field.name: _joined_side(field.name, batches) for field in fields(cls)[3:]}
        firsts = np.cumsum([0, *(batch.n_nodes for batch in batches[:-1])])
        return cls(
            joined([batch.node_offsets for batch in batches]),
            joined([batch.indptr for batch in batches]),
            np.concatenate([batch.indices + first for batch, first in zip(batches, firsts, strict=True)]),
            **side,
        )

    def _check(self) -> None:
        side = {field.name: getattr(self, field.name) for field in fields(self)[3:]}
        for name in ("node_offsets", "indptr", "indices"):
            check_array(getattr(self, name), name, np.int64)
        for name, value in side.items():
            if value is not None:
                numbers = name in ("node_attributes", "edge_weights")
                check_array(value, name, np.float64 if numbers else np.int64, 2 if name == "node_attributes" else 1)
        offsets, indptr = check_offsets(self.node_offsets, "node_offsets"), check_offsets(self.indptr, "indptr")
        if offsets[-1] != self.n_nodes or indptr[-1] != len(self.indices):
            raise ValueError(
                f"node_offsets end at {offsets[-1]} and indptr at {indptr[-1]}, "
                f"but there are {self.n_nodes} nodes and {len(self.indices)} arcs"
            )
        _check_side(side, {"node": self.n_nodes, "edge": len(self.indices)})
        _check_arcs(self.edge_index, offsets)

    def _one(self, index: int) -> Self:
        return self.take(np.array([index], dtype=np.int64))


def _joined_side(name: str, batches: Sequence[GraphBatch]) -> npt.NDArray[Any] | None:
    """Return one column of all batches, or None if none has it."""
    columns = [getattr(batch, name) for batch in batches]
    if all(column is None for column in columns):
        return None
    if name == "edge_weights":
        columns = [np.ones(len(b.indices)) if c is None else c for b, c in zip(batches, columns, strict=True)]
    sizes = [batch.n_nodes if name.startswith("node") else len(batch.indices) for batch in batches]
    if any(column is None and size for column, size in zip(columns, sizes, strict=True)):
        raise ValueError(f"some batches have {name} and others have none; give them to all, or to none")
    having = [column for column in columns if column is not None]
    return np.concatenate([column for column in having if len(column)] or having[:1])


def _check_arcs(edge_index: npt.ArrayLike, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    arcs = np.asarray(unmasked(edge_index, "edge_index"))
    if arcs.size == 0:
        return np.zeros((2, 0), dtype=np.int64)
    if arcs.ndim != 2 or arcs.shape[0] != 2 or not np.issubdtype(arcs.dtype, np.integer):
        raise ValueError(f"edge_index must be integers of shape (2, n_arcs), got {arcs.dtype} of shape {arcs.shape}")
    arcs = arcs.astype(np.int64)
    outside = ((arcs < 0) | (arcs >= offsets[-1])).any(axis=0)
    if outside.any():
        arc = int(np.argmax(outside))
        raise ValueError(f"arc {arc} joins nodes {arcs[:, arc].tolist()}, but there are {offsets[-1]} nodes, from 0")
    graph = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    across = graph[arcs[0]] != graph[arcs[1]]
    if across.any():
        arc = int(np.argmax(across))
        source, target = graph[arcs[:, arc]]
        raise ValueError(f"arc {arc} joins graph {source} to graph {target}; an arc must stay in one graph")
    return arcs


def _check_side(side: dict[str, Any], sizes: dict[str, int]) -> dict[str, Any]:
    """Return labels as int64 and attributes and weights as float64, or raise."""
    return {
        name: None if value is None else _check_column(name, np.asarray(unmasked(value, name)), sizes[name[:4]])
        for name, value in side.items()
    }


def _check_column(name: str, value: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    if value.ndim != (2 if name == "node_attributes" else 1) or len(value) != size:
        raise ValueError(f"{name} must have one row for each of {size} {name[:4]}s, got shape {value.shape}")
    if name.endswith("labels"):
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
    """Return the order of arcs by source and target, and the start of each distinct arc in that order."""
    keys = arcs[0] * n_nodes + arcs[1]
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    return order, np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
