"""Graphs: from the collections that users have to one `GraphBatch`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from similia.core.config import settings
from similia.core.errors import BadItem, BadType, BadValue
from similia.core.text import short
from similia.core.validation import unmasked
from similia.objects.graph_forms import Names, Part, is_graph, read_graph
from similia.objects.sequences import Batch, check_array, check_offsets, joined, resolve_indices, segments
from similia.objects.tables import is_frame, not_a_column, objects_in

_IDENTITIES = ("name", "_nx_name")  # what igraph calls a node, which says nothing of its kind


@dataclass(frozen=True, eq=False, repr=False)
class GraphBatch(Batch):
    """A collection of graphs.

    An undirected edge is two arcs, a self-loop one; arcs of a node are sorted by target and
    none is repeated. `from_arrays` brings arcs into that order and checks them; the bare
    constructor trusts its arguments.

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
            Of a repeated arc, the first is kept.
        edge_weights : array-like of float, shape (n_arcs,), optional
        repeated : {"sum", "first"}
            Which weight a repeated arc gets.

        Raises
        ------
        ValueError
            If shapes do not fit, labels are not integers, an arc leaves its graph or the batch, or
            attributes or weights are NaN or infinite; the sentence names the node or arc.
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
        """Number of nodes in all graphs together."""
        return len(self.indptr) - 1

    @property
    def degrees(self) -> npt.NDArray[np.int64]:
        """Number of arcs that leave each node, shape (n_nodes,)."""
        return np.diff(self.indptr)

    @property
    def graph_of_node(self) -> npt.NDArray[np.int64]:
        """Number of the graph that each node belongs to, shape (n_nodes,)."""
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
        """Return the graphs of one or more batches, one batch after another; raises if some lack what others have.

        As in `as_graphs`, arcs without weights among weighted ones weigh 1, and batches without nodes (or arcs) need
        no labels.
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


def as_graphs(
    X: Any,
    *,
    node_label: str | None = "label",
    node_attributes: str | None = "attributes",
    edge_label: str | None = "label",
    edge_weight: str | None = "weight",
) -> GraphBatch:
    """Return a collection of graphs as a `GraphBatch`.

    Parameters
    ----------
    X : sequence of graphs, GraphBatch or path
        Each graph is one of

        - a networkx graph (also directed or with parallel edges) or an igraph graph;
        - a square adjacency matrix, scipy sparse (repeated entries are summed) or a 2-D array:
          nonzero entries are arcs, and weights too unless all are 1;
        - ``(edge_index, n_nodes)`` or ``(edge_index, n_nodes, {"node_labels": ..., ...})``;
        - a dict with the keys ``edge_index``, ``n_nodes``, ``node_labels``, ``node_attributes``,
          ``edge_labels``, ``edge_weights`` (all but the first optional);
        - a PyG ``Data``: ``x`` gives the node attributes, ``edge_weight`` the weights,
          ``edge_attr`` labels (integers, one-hot rows) or weights (one column of real numbers);
          ``node_label="x"`` (or "z", ...) takes integers or one-hot rows of that name as labels;
        - an RDKit ``Mol``: atoms are nodes, labelled by symbol, bonds are edges, labelled
          ``-``, ``=``, ``#`` or ``:`` (aromatic); `from_smiles` reads texts;
        - a `GraphBatch` of one graph.

        A data frame of one column is the graphs in it. A `GraphBatch` is returned as it is. A path is read by
        `read_tudataset`.
    node_label, node_attributes, edge_label, edge_weight : str or None
        Names under which networkx and igraph graphs keep them: ``"label"``, ``"attributes"``,
        ``"label"`` and ``"weight"`` by default, where the graphs have data of that name. None
        leaves them out (in any form). Integer labels are kept, other labels become a 64-bit hash
        of their text.

    Returns
    -------
    GraphBatch
        Directed graphs, matrices and edge indices keep their arcs as given; an undirected edge
        of networkx and igraph is two arcs. Repeated arcs are merged: the first label is kept,
        weights are summed. A self-loop is one arc. An arc without a weight among weighted ones
        weighs 1. `X` is not changed.

    Raises
    ------
    TypeError
        If `X` is one graph or no sequence, or an item is not a graph.
    ValueError
        If `X` is empty or a graph does not fit: an arc names a node that does not exist, rows of
        labels or attributes are missing or too many, numbers are NaN, or labels or attributes are
        present in some graphs only. The sentence names the graph. Also if a name other than the
        default is that of no data in any graph, or if graphs claim more nodes without arcs than
        ``similia.config(max_memory=...)`` holds at 8 bytes each.
    FileNotFoundError
        If `X` is a path where no TUDataset is.

    Warns
    -----
    UserWarning
        If nodes carry data, but none of it under the default names.

    Examples
    --------
    >>> import networkx as nx
    >>> from similia.objects import as_graphs
    >>> graphs = as_graphs([nx.path_graph(3), nx.cycle_graph(4)])
    >>> graphs, graphs.degrees
    (<GraphBatch of 2 objects>, array([1, 2, 1, 2, 2, 2, 2]))
    """
    if isinstance(X, str | os.PathLike):
        from similia.objects.tudataset import read_tudataset

        try:
            X = read_tudataset(X)[0]
        except FileNotFoundError as error:
            raise FileNotFoundError(f"{error} (graphs are read from a path; usually X is a list of graphs)") from None
    if not isinstance(X, GraphBatch):
        names = Names(node_label, node_attributes, edge_label, edge_weight)
        parts = [_read(i, graph, names) for i, graph in enumerate(_items(X))]
        _check_names(parts, names)
        _check_claims(parts)
        X = join_parts(parts)
    if len(X) == 0:
        raise BadValue(None, "is empty: found 0 graphs", "at least one")
    return X


def _items(X: Any) -> list[Any]:
    X = objects_in(X)
    if is_frame(X):
        raise not_a_column(X, "graphs")
    if not isinstance(X, list | tuple) and hasattr(X, "to_pylist"):  # Arrow: structs of arrays
        return list(X.to_pylist())
    if hasattr(X, "to_data_list"):  # a PyG Batch is one graph and a collection
        return list(X.to_data_list())
    if callable(getattr(X, "get", None)) and callable(getattr(X, "len", None)):  # a PyG data set
        return [X[i] for i in range(len(X))]
    if is_graph(X):
        raise BadType(None, f"is one {type(X).__name__}", "a collection of graphs", "write [graph]")
    ordered = hasattr(X, "__len__") and hasattr(X, "__getitem__") and not isinstance(X, range | type)
    if not ordered or getattr(X, "shape", None) == ():
        raise BadType(None, f"is {type(X).__name__} ({short(X)})", "a sequence of graphs", "use a list")
    return list(X)


def _read(i: int, graph: Any, names: Names) -> Part:
    """Read graph i and check it alone, so that errors name it."""
    try:
        part = read_graph(graph, names)
    except BadItem as error:
        raise error.changed(index=i, kind="graph") from None
    _check(i, part)
    return part


def _check_names(parts: list[Part], names: Names) -> None:
    """Raise for a name the user chose that no graph has; warn if the data of the nodes has other names."""
    node_names = [*dict.fromkeys(name for part in parts for name in part.node_names)]
    edge_names = [*dict.fromkeys(name for part in parts for name in part.edge_names)]
    any_node = any(part.n_nodes for part in parts)
    any_edge = any(part.edge_index.size for part in parts)
    for parameter, what, found, any_there in (
        ("node_label", "node", node_names, any_node),
        ("node_attributes", "node", node_names, any_node),
        ("edge_label", "edge", edge_names, any_edge),
        ("edge_weight", "edge", edge_names, any_edge),
    ):
        name = getattr(names, parameter)
        if any_there and name not in (None, getattr(Names, parameter), *found):
            there = ", ".join(map(short, found[:10])) or "no names (only networkx and igraph graphs have them)"
            raise ValueError(f"{parameter}={name!r} is at no {what} of any graph; {what}s carry {there}")
    default = (Names.node_label, Names.node_attributes)
    if (names.node_label, names.node_attributes) == default and not {*default} & {*node_names}:
        _warn_unread([name for name in node_names if name not in _IDENTITIES])


def _warn_unread(unread: list[str]) -> None:
    if unread:
        warnings.warn(
            f"nodes carry {', '.join(map(short, unread[:10]))} but no {Names.node_label!r}; say as_graphs(X, "
            f"node_label={short(unread[0])}) to use it (node_attributes= for numbers), or node_label=None to leave it",
            UserWarning,
            stacklevel=4,
        )


def _check(i: int, part: Part) -> None:
    n_arcs = part.edge_index.shape[1]
    outside = ((part.edge_index < 0) | (part.edge_index >= part.n_nodes)).any(axis=0)
    if outside.any():
        arc = int(np.argmax(outside))
        found = f"joins nodes {part.edge_index[:, arc].tolist()}, but the graph has {part.n_nodes} nodes"
        raise BadValue(i, found, "numbers from 0", kind="graph", place=f"arc {arc}")
    for name, size, what in (
        ("node_labels", part.n_nodes, "nodes"),
        ("node_attributes", part.n_nodes, "nodes"),
        ("edge_labels", n_arcs, "arcs"),
        ("edge_weights", n_arcs, "arcs"),
    ):
        value = getattr(part, name)
        if value is not None and (np.ndim(value) == 0 or len(value) != size):
            found = f"has {len(np.atleast_1d(value))} rows of {name} for {size} {what}"
            raise BadValue(i, found, "one for each", kind="graph")
        if value is not None and not np.isfinite(value).all():
            row = int(np.argwhere(~np.isfinite(value))[0, 0])
            found, place = f"has {name} that are NaN or infinite", f"{what[:-1]} {row}"
            raise BadValue(i, found, "finite numbers", kind="graph", place=place)


def _check_claims(parts: list[Part]) -> None:
    """Raise if numbers of nodes that nothing shows would take more than the working memory."""
    limit, claimed = settings().max_memory // 8, 0
    for i, part in enumerate(parts):
        rows = [column for column in (part.node_labels, part.node_attributes) if column is not None]
        claimed += 0 if rows else max(0, part.n_nodes - part.edge_index.size)
        if claimed > limit:
            raise BadValue(
                i,
                f"has {short(part.n_nodes)} nodes and {part.edge_index.shape[1]} arcs: the nodes without arcs of all "
                "graphs would take more than the working memory",
                remedy="is the number right? similia.config(max_memory=...) allows more",
                kind="graph",
            )


def join_parts(parts: list[Part]) -> GraphBatch:
    """Return graphs as one batch."""
    offsets = np.concatenate(([0], np.cumsum([part.n_nodes for part in parts], dtype=np.int64))).astype(np.int64)
    arcs = [part.edge_index + start for part, start in zip(parts, offsets[:-1], strict=True)]
    _fill_weights(parts)
    return GraphBatch.from_arrays(
        offsets,
        np.concatenate(arcs, axis=1) if arcs else np.zeros((2, 0), dtype=np.int64),
        node_labels=_column(parts, "node_labels"),
        node_attributes=_column(parts, "node_attributes"),
        edge_labels=_column(parts, "edge_labels"),
        edge_weights=_column(parts, "edge_weights"),
    )


def _fill_weights(parts: list[Part]) -> None:
    """Give weight 1 to the arcs of graphs without weights, if other graphs have them."""
    if any(part.edge_weights is not None for part in parts):
        for part in parts:
            if part.edge_weights is None:
                part.edge_weights = np.ones(part.edge_index.shape[1])


def _column(parts: list[Part], name: str) -> Any:
    """Return a column of all graphs, or None if none has it; a graph without nodes (arcs) needs none."""
    columns = [getattr(part, name) for part in parts]
    having = [i for i, column in enumerate(columns) if column is not None]
    if not having:
        return None
    having.sort(key=lambda i: len(columns[i]) == 0)  # a graph with rows is the example
    example = columns[having[0]]
    for i, (part, column) in enumerate(zip(parts, columns, strict=True)):
        size = part.n_nodes if name.startswith("node") else part.edge_index.shape[1]
        if column is None and size:
            found, remedy = f"has no {name}, but {{other}} has", "give them to all graphs or to none"
            raise BadValue(i, found, remedy=remedy, kind="graph", other=having[0])
        if column is not None and size and column.shape[1:] != example.shape[1:]:
            found = f"has node attributes of shape {column.shape}, but {{other}} has {example.shape[1:]} for each node"
            raise BadValue(i, found, kind="graph", other=having[0])
    return np.concatenate([column for column in columns if column is not None and len(column)] or [example])


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
    """Return the order of arcs by source and target, and where in that order each distinct arc begins."""
    keys = arcs[0] * n_nodes + arcs[1]
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    return order, np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
