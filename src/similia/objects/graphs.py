"""Convert collections of graphs in many forms to a `GraphBatch`."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np

from similia.core.config import settings
from similia.core.errors import BadItem, BadType, BadValue
from similia.core.text import short
from similia.objects.graph_batch import GraphBatch
from similia.objects.graph_forms import Names, Part, is_graph, read_graph
from similia.objects.tables import is_frame, not_a_column, objects_in

_IDENTITIES = ("name", "_nx_name")  # names of single nodes, which say nothing about their kind


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

        The graphs may be the single column of a data frame. A `GraphBatch` is returned unchanged. `read_tudataset`
        reads a path.
    node_label, node_attributes, edge_label, edge_weight : str or None
        Names under which networkx and igraph graphs store them; by default ``"label"``, ``"attributes"``, ``"label"``
        and ``"weight"``, if the graphs have such data. None leaves them out, for graphs of any form. Integer labels
        are kept; other labels become a 64-bit hash of their text.

    Returns
    -------
    GraphBatch
        Directed graphs, matrices and edge indices keep their arcs as given; an undirected edge of networkx and igraph
        becomes two arcs. Repeated arcs are merged: the first label is kept, weights are summed. A self-loop is one
        arc. An arc without a weight among weighted ones gets weight 1. `X` is not changed.

    Raises
    ------
    TypeError
        If `X` is a single graph or not a sequence, or an item is not a graph.
    ValueError
        If `X` is empty or a graph is invalid: an arc names a node that does not exist, there are too few or too many
        labels or attributes, numbers are NaN, or only some graphs have labels or attributes. The message names the
        graph. Also if no graph has data under a name other than the default, or if graphs claim more nodes without
        arcs than fit into ``similia.config(max_memory=...)`` at 8 bytes each.
    FileNotFoundError
        If `X` is a path without a TUDataset.

    Warns
    -----
    UserWarning
        If nodes carry data, but none under the default names.

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
    """Raise if no graph has a name that the user chose; warn if the nodes' data has other names."""
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
    """Raise if claimed numbers of nodes without arcs would exceed the working memory."""
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
    """Return a column of all graphs, or None if none has it; a graph without nodes may lack a column of nodes."""
    columns = [getattr(part, name) for part in parts]
    having = [i for i, column in enumerate(columns) if column is not None]
    if not having:
        return None
    having.sort(key=lambda i: len(columns[i]) == 0)  # a graph with rows comes first as the example
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
