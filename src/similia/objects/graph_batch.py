"""The memory layout of graphs: arcs (directed edges) sorted by source, with optional labels, attributes and weights.

`read_graph` reads a single graph, such as a networkx graph, a matrix or a dict, as arrays (`Part`). It recognises the
form of a graph by its type or attributes, without importing its library. Nodes are numbered from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from numbers import Integral
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from similia.core.text import short
from similia.core.validation import BadType, BadValue, unmasked
from similia.objects.sequences import Batch, check_array, check_offsets, joined, offsets_of, resolve_indices, segments
from similia.objects.vectors import endless

# Optional columns, with a row per node or arc.
SIDE = ("node_labels", "node_attributes", "edge_labels", "edge_weights", "node_details")
_NUMBERS = ("node_attributes", "edge_weights")  # float64; the others are int64
_KEYS = ("edge_index", "n_nodes", *SIDE)
_INT64 = range(-(2**63), 2**63)
_ELEMENTS = (
    "* H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr Rb Sr Y Zr Nb "
    "Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho Er Tm Yb Lu Hf Ta W Re Os Ir Pt Au "
    "Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu Am Cm Bk Cf Es Fm Md No Lr Rf Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv Ts "
    "Og"
)
_DOUBLE, _DOUBLE_BONDS = 2, {2: "=(Z)", 3: "=(E)", 4: "=(cis)", 5: "=(trans)"}  # RDKit's types and stereo descriptors
# Details of atoms: isotope, handedness, whether aromatic and in a ring, charge, neighbours and hydrogens, as digits of
# these sizes after a number that no other data set will have by chance.
_CHARGES, _HANDS = 16, ("", "R", "S", "r", "s", "?")
_FIELDS, _MOLECULE = (512, 8, 2, 2, 2 * _CHARGES, 16, 16), 0x6D6F6C31


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
        A label for each node, as an integer. `as_graphs` also accepts labels of other types. It stores each as a 64-bit
        hash of its text, which does not change from one run of Python to the next.
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
        """Make a batch from arcs (directed edges) in any order; repeated arcs are merged.

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
            If shapes do not fit together; if labels are not integers; if a node of an arc does not exist; if an arc
            joins two graphs; or if attributes or weights are NaN or infinite. The message names the node or arc.
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
        """Number of arcs (directed edges) that leave each node, shape (n_nodes,)."""
        return np.diff(self.indptr)

    @property
    def graph_of_node(self) -> npt.NDArray[np.int64]:
        """Index of each node's graph, shape (n_nodes,)."""
        return np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.node_offsets))

    @property
    def edge_index(self) -> npt.NDArray[np.int64]:
        """Source and target of each arc (directed edge), shape (2, n_arcs)."""
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
        """Return the graphs of one or more batches in order; raise an error if only some have labels or attributes.

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
    """Do as `GraphBatch.concatenate` for the labels, attributes and weights (`sides`) of several collections.

    Collection i has ``nodes[i]`` nodes and ``arcs[i]`` arcs; `naming` names it in errors, as arguments of `BadValue`.
    """
    return {
        name: _joined_column(name, [side[name] for side in sides], nodes if name.startswith("node") else arcs, naming)
        for name in SIDE
    }


def _joined_column(name: str, columns: list[Any], sizes: list[int], naming: dict[str, Any]) -> Any:
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
    """Return the index of the first arc whose source or target is not a node, or None."""
    outside = ((arcs < 0) | (arcs >= n_nodes)).any(axis=0)
    return int(np.argmax(outside)) if outside.any() else None


def _checked_side(side: dict[str, Any], n_nodes: int, n_arcs: int) -> dict[str, Any]:
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
    if graphs.node_attributes is not None:
        finite = np.isfinite(graphs.node_attributes).all(axis=1)
        if not finite.all():
            graph, place = place_of(graphs, int(np.argmin(finite)))
            found, remedy = "has attributes that are NaN or infinite", "impute them first"
            raise BadValue(graph, found, "finite numbers", remedy, kind="graph", place=place)


class Names(NamedTuple):
    """Names of each kind of data in networkx and igraph graphs, and of node labels in PyG graphs; None: do not read."""

    node_label: str | None = "label"
    node_attributes: str | tuple[str, ...] | None = "attributes"
    edge_label: str | None = "label"
    edge_weight: str | None = "weight"

    def chosen(self, columns: Iterable[Any]) -> list[Any]:
        """Return `columns`, in the order of `SIDE`, with None in place of each column that is not to be read."""
        return [column if name else None for name, column in zip((*self, self.node_label), columns, strict=True)]


@dataclass
class Part:
    """One graph as arrays, like a `GraphBatch` but with arcs in any order."""

    n_nodes: int
    edge_index: npt.NDArray[np.int64]
    node_labels: npt.NDArray[np.int64] | None = None
    node_attributes: npt.NDArray[np.float64] | None = None
    edge_labels: npt.NDArray[np.int64] | None = None
    edge_weights: npt.NDArray[np.float64] | None = None
    node_details: npt.NDArray[np.int64] | None = None
    node_names: tuple[str, ...] = ()  # names of all data found at nodes, read or not
    edge_names: tuple[str, ...] = ()

    def both_directions(self) -> Part:
        """Append the reverse of each arc, except self-loops, with the same label and weight; return `self`."""
        back = np.flatnonzero(self.edge_index[0] != self.edge_index[1])
        self.edge_index = np.concatenate([self.edge_index, self.edge_index[::-1, back]], axis=1)
        for name in ("edge_labels", "edge_weights"):
            if (value := getattr(self, name)) is not None:
                setattr(self, name, np.concatenate([value, value[back]]))
        return self


def is_graph(X: Any) -> bool:
    """Return whether `X` is a single graph, not a collection."""
    return _reader_of(X) is not None


def read_graph(graph: Any, names: Names) -> Part:
    """Return one graph as arrays; the caller adds its position to errors."""
    if graph is None:
        raise BadType(None, "is NoneType (None)", "a graph", "drop what is missing")
    read = _reader_of(graph)
    if read is not None:
        return read(graph, names)
    hint = "similia.objects.from_smiles reads molecules written as SMILES" if isinstance(graph, str | bytes) else ""
    raise BadType(
        None,
        f"is {type(graph).__name__} ({short(graph)})",
        "a networkx, igraph or PyG graph, an RDKit Mol, a square adjacency matrix, (edge_index, n_nodes) or a dict "
        "with these keys",
        hint,
    )


def _reader_of(graph: Any) -> Callable[[Any, Names], Part] | None:
    if getattr(graph, "kind", None) == "graphs":
        return _from_batch
    for attributes, read in _LIBRARIES.items():
        if all(hasattr(graph, attribute) for attribute in attributes):
            return read
    if hasattr(graph, "tocoo") and len(graph.shape) == 2:
        return _from_matrix
    if isinstance(graph, np.ndarray) and graph.ndim == 2 and graph.dtype.kind in "biuf":
        return _from_matrix
    if isinstance(graph, Mapping):
        return _from_dict
    if isinstance(graph, tuple) and len(graph) in (2, 3) and isinstance(graph[1], Integral):
        return _from_tuple if len(graph) == 2 or isinstance(graph[2], Mapping) else None
    return None


@dataclass(frozen=True)
class _Table:
    """The attribute dicts of the nodes (or edges) of one graph of networkx or igraph."""

    what: str
    keys: list[Any]
    data: list[Mapping[str, Any]]

    def column(self, name: str | None, default: Any = None) -> list[Any] | None:
        """Return the value called `name` of each node or edge, or None if none has it.

        If only some have it, the others get `default`; raise if `default` is None.
        """
        if name is None:
            return None
        values = [data.get(name) for data in self.data]
        missing = [i for i, value in enumerate(values) if value is None]
        if len(missing) == len(values):
            return None
        for i in missing:
            if default is None:
                found = f"has no {name!r} at {self.at(i)}, but at other {self.what}s"
                raise BadValue(None, found, remedy="give it to all or to none")
            values[i] = default
        return values

    def labels(self, name: str | None) -> npt.NDArray[np.int64] | None:
        values = self.column(name)
        return None if values is None else _labels(values)

    def vectors(self, name: str | tuple[str, ...] | None) -> npt.NDArray[np.float64] | None:
        if isinstance(name, tuple):
            columns = {one: self.vectors(one) for one in name}
            missing = [one for one, column in columns.items() if column is None]
            if missing and len(missing) < len(columns):
                raise BadValue(None, f"has no {missing[0]!r} at any {self.what}", "all of node_attributes, or none")
            return None if missing else np.hstack([column for column in columns.values() if column is not None])
        values = self.column(name)
        if values is None:
            return None
        rows = [np.atleast_1d(_numbers(value, f"{name} of {self.at(i)}")) for i, value in enumerate(values)]
        for i, row in enumerate(rows):
            if row.ndim != 1 or row.shape != rows[0].shape:
                raise BadValue(None, f"has {name} of shape {row.shape} at {self.at(i)}", f"{rows[0].shape}")
        return np.stack(rows)

    def weights(self, name: str | None) -> npt.NDArray[np.float64] | None:
        values = self.column(name, default=1.0)
        for i, value in enumerate(values or ()):
            if np.ndim(value) != 0:
                raise BadValue(None, f"has a {name} of shape {np.shape(value)} at {self.at(i)}", "one number")
        return None if values is None else _numbers(values, f"{name}s of edges")

    def names(self) -> tuple[str, ...]:
        return tuple({name: None for data in self.data for name, value in data.items() if value is not None})

    def at(self, i: int) -> str:
        return f"{self.what} {short(self.keys[i])}"


def _from_tables(nodes: _Table, edges: _Table, pairs: list[tuple[int, int]], directed: bool, names: Names) -> Part:
    part = Part(
        len(nodes.keys),
        np.array(pairs, dtype=np.int64).reshape(-1, 2).T,
        nodes.labels(names.node_label),
        nodes.vectors(names.node_attributes),
        edges.labels(names.edge_label),
        edges.weights(names.edge_weight),
        node_names=nodes.names(),
        edge_names=edges.names(),
    )
    return part if directed else part.both_directions()


def _from_networkx(graph: Any, names: Names) -> Part:
    nodes = _Table("node", list(graph.nodes), [data for _, data in graph.nodes(data=True)])
    ends = list(graph.edges(data=True))
    edges = _Table("edge", [(u, v) for u, v, _ in ends], [data for _, _, data in ends])
    number = {node: i for i, node in enumerate(nodes.keys)}
    pairs = [(number[u], number[v]) for u, v in edges.keys]
    return _from_tables(nodes, edges, pairs, graph.is_directed(), names)


def _from_igraph(graph: Any, names: Names) -> Part:
    nodes = _Table("node", list(range(graph.vcount())), [vertex.attributes() for vertex in graph.vs])
    pairs = list(graph.get_edgelist())
    edges = _Table("edge", pairs, [edge.attributes() for edge in graph.es])
    return _from_tables(nodes, edges, pairs, graph.is_directed(), names)


def _labels(values: list[Any]) -> npt.NDArray[np.int64]:
    for i, label in enumerate(values):
        if label is None or (isinstance(label, float) and label != label):
            raise BadValue(None, f"has a missing label ({short(label)}) at position {i}", "an integer or a text")
    return hash_labels(values)


def _numbers(value: Any, what: str) -> npt.NDArray[np.float64]:
    array = _array(value, what)
    try:
        if array.dtype.kind == "c":
            raise TypeError("complex numbers")
        return np.array(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise BadValue(None, f"has {what} that are not numbers: {short(value)}") from None


def _array(value: Any, what: str) -> npt.NDArray[Any]:
    if np.ma.is_masked(value):
        raise BadValue(None, f"has {what} that are masked", "data without gaps", "fill or drop masked values")
    try:
        if not endless(value):
            return np.asarray(value)
        raise MemoryError
    except ValueError:
        raise BadValue(None, f"has {what} that cannot be read as an array: {short(value)}") from None
    except MemoryError:
        raise BadValue(None, f"has {what} {short(value)}, more numbers than fit into memory") from None


def _from_matrix(graph: Any, names: Names) -> Part:
    dense = isinstance(graph, np.ndarray)
    if graph.shape[0] != graph.shape[1]:
        found = f"is {'an array' if dense else 'a sparse matrix'} of shape {graph.shape}"
        raise BadValue(None, found, "a square adjacency matrix")
    if dense:
        array = _array(graph, "entries")  # a plain array also of an np.matrix
        row, col = np.nonzero(array)
        weight = array[row, col]
    elif graph.dtype.kind == "c":
        raise BadValue(None, f"is a sparse matrix of {graph.dtype}", "real numbers")
    else:
        matrix = (graph.astype(np.float64) if graph.dtype.kind in "iu" else graph).tocoo().copy()  # int8 would overflow
        matrix.sum_duplicates()  # also sorts, without CSR's array of rows, which a wrong size would make huge
        row, col, weight = matrix.row, matrix.col, matrix.data
    kept = np.flatnonzero(weight)  # a sparse matrix may store zeros
    weights = np.asarray(weight[kept], dtype=np.float64)
    part = Part(graph.shape[0], np.stack([row[kept], col[kept]]).astype(np.int64))
    if names.edge_weight is not None and (weights != 1).any():
        part.edge_weights = weights
    return part


def _from_tuple(graph: Any, names: Names) -> Part:
    return _from_dict({**(graph[2] if len(graph) == 3 else {}), "edge_index": graph[0], "n_nodes": graph[1]}, names)


def _from_dict(graph: Any, names: Names) -> Part:
    unknown = [key for key in graph if key not in _KEYS]
    if unknown or "edge_index" not in graph:
        problem = f"an unknown key {short(unknown[0])}" if unknown else "no key 'edge_index'"
        raise BadValue(None, f"is a dict with {problem}", remedy=f"keys are {', '.join(_KEYS)}")
    n_nodes = graph.get("n_nodes")
    if n_nodes is None:  # columns count even if `names` leaves them out
        key = next((key for key in ("node_labels", "node_attributes") if graph.get(key) is not None), None)
        if key is None:
            raise BadValue(None, "has no n_nodes", "the number of nodes (isolated ones are not in edge_index)")
        if not (shape := _array(graph[key], key).shape):
            raise BadValue(None, f"has {key}={short(graph[key])}", "a row for each node")
        n_nodes = shape[0]
    return _checked(graph["edge_index"], n_nodes, *names.chosen(map(graph.get, SIDE)))


def _from_pyg(graph: Any, names: Names) -> Part:
    labels, weights = _edge_attr(graph, names)
    if names.edge_weight and getattr(graph, "edge_weight", None) is not None:
        weights = graph.edge_weight
    node_labels, found = _pyg_labels(graph, names.node_label)
    use_x = names.node_attributes and getattr(graph, "x", None) is not None and found != ("x",)
    part = _checked(graph.edge_index, graph.num_nodes, node_labels, graph.x if use_x else None, labels, weights)
    part.node_names = found
    return part


def _pyg_labels(graph: Any, name: str | None) -> tuple[Any, tuple[str, ...]]:
    """Return (labels, (name,)) from integers or one-hot rows in the attribute `name` of a PyG graph.

    Return (None, ()) if `name` is None or "label", the default, or if the graph has no such attribute.
    """
    values = None if name in (None, Names().node_label) else getattr(graph, str(name), None)
    if values is None:
        return None, ()
    array = _undo_one_hot(_array(values, str(name)))
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    whole = array.dtype.kind == "f" and bool(((array == np.trunc(array)) & (np.abs(array) < 2.0**63)).all())
    if array.ndim != 1 or not (array.dtype.kind in "biu" or whole):
        raise BadValue(
            None,
            f"has {name} of {array.dtype} and shape {array.shape}",
            "one integer for each node or one-hot rows",
            "real numbers are node attributes, not labels",
        )
    return array.astype(np.int64) if whole else array, (str(name),)


def _edge_attr(graph: Any, names: Names) -> tuple[Any, Any]:
    """Return PyG's ``edge_attr`` as (labels, None) for integers or one-hot rows, or (None, weights) for floats."""
    attr = getattr(graph, "edge_attr", None)
    if attr is None or (names.edge_label is None and names.edge_weight is None):
        return None, None
    attr = _undo_one_hot(np.asarray(attr))
    if attr.ndim == 2 and attr.shape[1] > 1:
        raise BadValue(
            None,
            f"has edge_attr of {attr.shape[1]} columns",
            "one column or one-hot rows (an edge has one label and one weight)",
            "leave it out with edge_label=None, edge_weight=None",
        )
    attr = attr.reshape(-1)
    if attr.dtype.kind in "biu":
        return (attr if names.edge_label else None), None
    return None, (attr if names.edge_weight else None)


def _undo_one_hot(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """If `array` has several columns and all rows are one-hot, return the column number of each 1; else `array`."""
    if array.ndim != 2 or array.shape[1] < 2 or not ((array == 1).sum(axis=1) == 1).all():
        return array
    return array.argmax(axis=1) if np.count_nonzero(array) == len(array) else array


def _checked(
    edge_index: Any, n_nodes: Any, node_labels: Any, node_attributes: Any, edge_labels: Any, edge_weights: Any,
    node_details: Any = None,
) -> Part:  # fmt: skip
    """Return a `Part` from arrays of a user, whose labels may have any type."""
    arcs = _array(edge_index, "edge_index")
    if arcs.size == 0:
        arcs = np.zeros((2, 0), dtype=np.int64)
    if arcs.ndim != 2 or arcs.shape[0] != 2 or arcs.dtype.kind not in "iu":
        raise BadValue(None, f"has edge_index of {arcs.dtype} and shape {arcs.shape}", "integers (2, n_arcs)")
    if not isinstance(n_nodes, Integral) or n_nodes < 0:
        raise BadValue(None, f"has n_nodes={short(n_nodes)}", "an integer >= 0")
    if node_attributes is not None:
        node_attributes = _numbers(node_attributes, "node attributes")
        if node_attributes.ndim == 1:
            node_attributes = node_attributes[:, None]
    return Part(
        int(n_nodes),
        arcs.astype(np.int64),
        None if node_labels is None else _label_array(node_labels),
        node_attributes,
        None if edge_labels is None else _label_array(edge_labels),
        None if edge_weights is None else _numbers(edge_weights, "edge weights").reshape(-1),
        None if node_details is None else _label_array(node_details),
    )


def _label_array(values: Any) -> npt.NDArray[np.int64]:
    array = _array(values, "labels")
    if array.ndim != 1:
        raise BadValue(None, f"has labels of shape {array.shape}", "one label for each node or edge")
    if array.dtype.kind in "bi":
        return hash_labels(array)
    return _labels(list(values) if isinstance(values, list | tuple) else array.tolist())  # numpy makes "1" of [1, "C"]


def _from_molecule(graph: Any, names: Names) -> Part:
    graph = _perceived(graph)
    n, bonds = graph.GetNumAtoms(), [graph.GetBondWithIdx(i) for i in range(graph.GetNumBonds())]
    ends = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in bonds]
    part = Part(n, np.array(ends, dtype=np.int64).reshape(-1, 2).T)
    if names.node_label:
        atoms = [graph.GetAtomWithIdx(i) for i in range(n)]  # faster than GetAtoms
        part.node_labels = np.fromiter((_hash_text(atom.GetSymbol()) for atom in atoms), np.int64, n)
        part.node_details = np.fromiter(map(_atom_detail, atoms), np.int64, n)
    if names.edge_label:
        part.edge_labels = np.fromiter((_hash_text(_bond(bond)) for bond in bonds), np.int64, len(bonds))
    return part.both_directions()


def _perceived(molecule: Any) -> Any:
    """Return a molecule of which RDKit knows hydrogens and rings; a copy if `molecule` was never sanitised."""
    if not molecule.NeedsUpdatePropertyCache():
        return molecule
    from rdkit import Chem

    molecule = Chem.Mol(molecule)
    molecule.UpdatePropertyCache(strict=False)
    Chem.FastFindRings(molecule)
    return molecule


def _bond(bond: Any) -> str:
    """Return the sign of a bond in SMILES, with the sides of a double bond if known, or the name of any other type."""
    kind = int(bond.GetBondType())
    if kind == _DOUBLE:
        return _DOUBLE_BONDS.get(int(bond.GetStereo()), "=")
    return {1: "-", 3: "#", 12: ":"}.get(kind) or str(bond.GetBondType())


def _atom_detail(atom: Any) -> int:
    """Pack the properties of an atom that Morgan fingerprints read, beyond its element, into one integer."""
    hand = atom.GetProp("_CIPCode") if atom.HasProp("_CIPCode") else ""
    handedness = _HANDS.index(hand if hand in _HANDS else "?")
    charge = min(max(atom.GetFormalCharge(), -_CHARGES), _CHARGES - 1) + _CHARGES
    ring, numbers = (atom.GetIsAromatic(), atom.IsInRing()), (atom.GetTotalDegree(), atom.GetTotalNumHs())
    detail = _MOLECULE
    for size, value in zip(_FIELDS, (atom.GetIsotope(), handedness, *ring, charge, *numbers), strict=True):
        detail = detail * size + min(int(value), size - 1)
    return detail


def atom_text(symbol: str, detail: int) -> str:
    """Return an atom as in SMARTS, such as ``[C;H3;X4]``; a `detail` not from `_atom_detail` is shown as it is.

    H3 means three hydrogens, X4 four neighbours including hydrogens, R an atom in a ring, and +1 the charge. R or S in
    parentheses is the handedness. Symbols of aromatic atoms are in lower case.
    """
    rest, values = detail, []
    for size in reversed(_FIELDS):
        rest, value = divmod(rest, size)
        values.append(value)
    if rest != _MOLECULE:
        return f"{symbol}[{detail}]"
    hydrogens, degree, charge, in_ring, aromatic, handedness, isotope = values
    facts = [f"{isotope or ''}{symbol.lower() if aromatic else symbol}", f"H{hydrogens}", f"X{degree}", "R" * in_ring]
    facts += [f"{charge - _CHARGES:+d}" * (charge != _CHARGES), f"({_HANDS[handedness]})" * (handedness > 0)]
    return f"[{';'.join(filter(None, facts))}]"


def _from_batch(graph: Any, names: Names) -> Part:
    if len(graph) != 1:
        found = f"is a GraphBatch of {len(graph)} graphs"
        raise BadValue(None, found, "one graph", "pass the batch itself as X")
    return Part(graph.n_nodes, graph.edge_index, *names.chosen(getattr(graph, name) for name in SIDE))


_LIBRARIES = {  # attributes that identify the graphs of a library
    ("is_multigraph", "nodes", "edges"): _from_networkx,
    ("get_edgelist", "vcount"): _from_igraph,
    ("edge_index", "num_nodes"): _from_pyg,
    ("GetAtoms", "GetBonds"): _from_molecule,
}


def hash_labels(labels: Iterable[Any]) -> npt.NDArray[np.int64]:
    """Return integers that int64 can hold unchanged, and other labels as a 64-bit BLAKE2b hash of their text.

    Among n different texts, two get the same hash with probability n**2 / 2**65. The text
    "1" and the integer 1 are different labels.
    """
    if isinstance(labels, np.ndarray) and labels.dtype.kind in "bi":
        return labels.astype(np.int64)
    return np.fromiter(map(_hash_label, labels), dtype=np.int64)


def _hash_label(label: Any) -> int:
    if isinstance(label, Integral | np.bool_) and int(label) in _INT64:
        return int(label)
    return _hash_text(str(label))


@lru_cache(maxsize=2**16)
def _hash_text(text: str) -> int:
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


# Texts of atoms and bonds by their hash, used to show molecules; * is RDKit's symbol for any atom.
SYMBOLS = {_hash_text(symbol): symbol for symbol in _ELEMENTS.split()}
BONDS = {_hash_text(bond): bond for bond in (*"-=#:", *_DOUBLE_BONDS.values())}
