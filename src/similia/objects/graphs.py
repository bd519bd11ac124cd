"""Convert collections of graphs in many forms to a `GraphBatch`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from similia.core.config import settings
from similia.core.errors import BadItem, BadType, BadValue, warn_user
from similia.core.text import short
from similia.objects.graph_batch import SIDE, GraphBatch, Names, Part, first_outside, is_graph, joined_side, read_graph
from similia.objects.sequences import offsets_of
from similia.objects.tables import is_frame, not_a_column, objects_in

_DEFAULT = Names()
_IDENTITIES = ("name", "_nx_name")  # names of single nodes, which are not useful as labels


def as_graphs(
    X: Any,
    *,
    node_label: str | None = "label",
    node_attributes: str | Sequence[str] | None = "attributes",
    edge_label: str | None = "label",
    edge_weight: str | None = "weight",
) -> GraphBatch:
    """Return a collection of graphs as a `GraphBatch`.

    Parameters
    ----------
    X : sequence of graphs, GraphBatch or path
        Each graph is one of

        - a networkx graph, which may be directed or have parallel edges, or an igraph graph;
        - a square adjacency matrix, as a 2-D array or scipy sparse matrix (repeated entries are summed). Each nonzero
          entry is an arc (a directed edge); the entries are also the weights of the arcs, unless all are 1;
        - ``(edge_index, n_nodes)`` or ``(edge_index, n_nodes, {"node_labels": ..., ...})``, where ``edge_index``, of
          shape (2, n_arcs), holds the source node and the target node of each arc; nodes are numbered from 0;
        - a dict with the key ``edge_index`` and, optionally, ``n_nodes``, ``node_labels``, ``node_attributes``,
          ``edge_labels``, ``edge_weights``, ``node_details``. Without ``n_nodes``, the number of nodes is that of the
          node labels or attributes, one of which is then required;
        - a ``Data`` of PyTorch Geometric (PyG): ``x`` gives the node attributes, ``edge_weight`` the weights, and
          ``edge_attr`` the edge labels (integers or one-hot rows) or the weights (one column of real numbers);
          ``node_label="z"`` reads node labels from the tensor ``z`` (integers or one-hot rows);
        - an RDKit ``Mol``, which gets the labels and details that `from_smiles` describes;
        - a `GraphBatch` of one graph.

        A data frame with a single column of graphs is also accepted. If `X` itself is a `GraphBatch`, it is returned
        unchanged; if it is a path, `read_tudataset` reads it. In these two cases, the other parameters have no effect.
    node_label, node_attributes, edge_label, edge_weight : str or None
        Names under which networkx and igraph graphs hold node labels, node attributes, edge labels and edge weights.
        Data under the default names are optional; if you give another name, at least one graph must have data under it.
        If `node_attributes` is a list of names, the numbers or vectors under these names are put side by side. Set one
        of the four parameters to None (or `node_attributes` to an empty list) to ignore these labels, attributes or
        weights. This works for a sequence of graphs of any form. ``node_label=None`` also ignores ``node_details``,
        properties of atoms that `from_smiles` describes. Integer labels are kept; other labels become a 64-bit hash of
        their text.

    Returns
    -------
    GraphBatch
        An undirected edge of networkx or igraph, or a bond of RDKit, becomes two arcs. In all other forms, give both
        arcs of an undirected edge. Repeated arcs are merged: the first label is kept, weights are summed. A self-loop
        is one arc. If only some edges have weights, the other weights are 1.

    Raises
    ------
    TypeError
        If `X` is a single graph or not a sequence, or an item is not a graph.
    ValueError
        If `X` is empty; if a graph is invalid (an arc leads to a node that does not exist, or the number of labels is
        wrong); if only some graphs have labels or attributes; if no graph has data under a name that you give; or if
        the graphs have so many isolated nodes that these alone exceed ``similia.config(max_memory=...)``.

    Warns
    -----
    UserWarning
        If node data are ignored because `node_label` and `node_attributes` have their default values and the nodes have
        data only under other names. Data called "name" cause no warning.

    Examples
    --------
    >>> import networkx as nx
    >>> from similia.objects import as_graphs
    >>> graphs = as_graphs([nx.path_graph(3), nx.cycle_graph(4)])
    >>> graphs, graphs.degrees
    (<GraphBatch of 2 objects>, array([1, 2, 1, 2, 2, 2, 2]))
    >>> atoms = nx.Graph()
    >>> atoms.add_node(0, element="C", charge=0.5, mass=12.0)
    >>> as_graphs([atoms], node_label="element", node_attributes=["charge", "mass"]).node_attributes
    array([[ 0.5, 12. ]])
    """
    if isinstance(X, str | os.PathLike):
        from similia.objects.tudataset import read_tudataset

        try:
            X = read_tudataset(X)[0]
        except FileNotFoundError as error:
            raise FileNotFoundError(f"{error} (a string X is read as a path; pass graphs as a list)") from None
    if not isinstance(X, GraphBatch):
        given = node_attributes
        if given is not None and not isinstance(given, str):
            given = tuple(given) or None
        names = Names(node_label, given, edge_label, edge_weight)
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
    if hasattr(X, "to_pylist"):  # Arrow: structs of arrays
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
    """Read and check graph i; errors name its position."""
    try:
        part = read_graph(graph, names)
    except BadItem as error:
        raise error.changed(index=i, kind="graph") from None
    _check(i, part)
    return part


def _check_names(parts: list[Part], names: Names) -> None:
    """Raise if a name that the user chose is in no graph; warn if nodes have data, but none under default names."""
    node_names = [*dict.fromkeys(name for part in parts for name in part.node_names)]
    edge_names = [*dict.fromkeys(name for part in parts for name in part.edge_names)]
    nodes = "node", node_names, any(part.n_nodes for part in parts)
    edges = "edge", edge_names, any(part.edge_index.size for part in parts)
    for parameter, name, default in zip(Names._fields, names, _DEFAULT, strict=True):
        what, found, any_there = nodes if parameter.startswith("node") else edges
        for one in name if isinstance(name, tuple) else (name,):
            if not any_there or one in (None, default, *found):
                continue
            none = "no names (only those of networkx and igraph graphs and labels of PyG graphs have any)"
            there = ", ".join(map(short, found[:10])) or none
            raise ValueError(f"{parameter}={one!r}: no {what} of any graph has data of this name; {what}s have {there}")
    unread = [name for name in node_names if name not in _IDENTITIES]
    if names[:2] == _DEFAULT[:2] and unread and not {*_DEFAULT[:2]} & {*node_names}:
        warn_user(
            f"nodes have {', '.join(map(short, unread[:10]))} but no {_DEFAULT.node_label!r}, so all is ignored; "
            f"write as_graphs(X, node_label={short(unread[0])}) if it is a label, node_attributes=[{short(unread[0])}] "
            "if it holds numbers, or node_label=None if nothing is to be read"
        )


def _check(i: int, part: Part) -> None:
    """Raise if an arc of graph i leads to a missing node, or a column has a wrong number of rows, NaN or infinity."""
    if (arc := first_outside(part.edge_index, part.n_nodes)) is not None:
        found = f"joins nodes {part.edge_index[:, arc].tolist()}, but the graph has {part.n_nodes} nodes"
        raise BadValue(i, found, "numbers from 0", kind="graph", place=f"arc {arc}")
    for name in SIDE:
        value = getattr(part, name)
        if value is None:
            continue
        what, size = ("node", part.n_nodes) if name.startswith("node") else ("arc", part.edge_index.shape[1])
        if np.ndim(value) == 0 or len(value) != size:
            found = f"has {len(np.atleast_1d(value))} rows of {name} for {size} {what}s"
            raise BadValue(i, found, "one for each", kind="graph")
        finite = np.isfinite(value)
        if not finite.all():
            place = f"{what} {int(np.argwhere(~finite)[0, 0])}"
            raise BadValue(i, f"has {name} that are NaN or infinite", "finite numbers", kind="graph", place=place)


def _check_claims(parts: list[Part]) -> None:
    """Raise if, by the stated numbers of nodes, the nodes without arcs alone would exceed the working memory."""
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
    nodes, arcs = [part.n_nodes for part in parts], [part.edge_index.shape[1] for part in parts]
    offsets = offsets_of(nodes)
    edges = [part.edge_index + start for part, start in zip(parts, offsets[:-1], strict=True)]
    side = joined_side([vars(part) for part in parts], nodes, arcs, kind="graph")
    return GraphBatch.from_arrays(offsets, np.concatenate([np.zeros((2, 0), np.int64), *edges], axis=1), **side)
