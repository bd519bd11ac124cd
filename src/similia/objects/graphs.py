"""Convert collections of graphs in many forms to a `GraphBatch`, and read the text format of TUDataset.

That format (https://chrsmrrs.github.io/datasets) keeps a collection in a few files. Graphs are numbered from 1, and so
are the nodes of the whole collection. ``NAME_A.txt`` has a line for each arc (source, target), and
``NAME_graph_indicator.txt`` a line for each node (the number of its graph).
"""

from __future__ import annotations

import io
import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from similia.core.config import settings
from similia.core.text import counted, short
from similia.core.validation import BadFile, BadItem, BadType, BadValue, as_path, check_choice, warn_user
from similia.objects.graph_batch import (
    SIDE,
    GraphBatch,
    Names,
    Part,
    first_outside,
    hash_labels,
    is_graph,
    joined_side,
    read_graph,
)
from similia.objects.sequences import offsets_of
from similia.objects.tables import is_frame, not_a_column, objects_in

_DEFAULT = Names()
_IDENTITIES = ("name", "_nx_name")  # names of single nodes, which are not useful as labels
_SUFFIX = "_graph_indicator.txt"
_KINDS = ("A", "graph_indicator", "graph_labels", "graph_attributes", "node_labels", "node_attributes", "edge_labels",
          "edge_attributes")  # fmt: skip
_NUMBERS: dict[type, str] = {np.int64: "an integer of 64 bits", np.float64: "a number"}
_Member = tuple[str, int, Callable[[], Any]]  # name and size of a file, and a function that opens it


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
          ``edge_labels``, ``edge_weights``, ``node_details``. Without ``n_nodes``, node labels or attributes are
          required, since their number is the number of nodes;
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
        If `X` is a single graph or not a sequence, or if an item is not a graph.
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


def read_tudataset(
    path: str | os.PathLike[str],
    *,
    target: Literal["labels", "attributes"] | None = None,
    edge_weight: int | None = 0,
) -> tuple[GraphBatch, npt.NDArray[Any] | None]:
    """Read a collection of graphs in the text format of TUDataset (https://chrsmrrs.github.io/datasets).

    Parameters
    ----------
    path : path
        The folder or the zip file of one data set. A zip file is read without unpacking it to disk. In the files,
        commas separate the numbers, with or without spaces.
    target : {"labels", "attributes"}, optional
        Data to return as `y`: the graph labels (classes) or the graph attributes (regression targets). The default is
        the labels or, if there are none, the attributes; `y` is None if there are neither.
    edge_weight : int or None, default=0
        Position, from 0, of the edge attribute to read as edge weight. With None, or if the data set has no edge
        attributes, no weights are read.

    Returns
    -------
    graphs : GraphBatch
        Graphs with the node labels, node attributes, edge labels and edge weights that the data set has. Labels in
        several columns become one label (a hash of the row). Each line of the file of edges gives one arc (directed
        edge); the published data sets list both directions of an edge. A repeated arc keeps its first label and weight.
        A graph may have no nodes.
    y : ndarray, shape (n_graphs,) or (n_graphs, n_columns), or None
        int64 labels or float64 attributes.

    Raises
    ------
    FileNotFoundError
        If `path`, a required file or the file of the requested `target` does not exist.
    ValueError
        If a file is truncated or invalid, if the numbers of lines in two files contradict each other, or if an edge
        joins two graphs; the message names the file and, if known, the line. Also if the data need more memory than
        ``similia.config(max_memory=...)`` allows, or if a zip file holds two files of the same name, a link, or a path
        that leads outside the archive.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from similia.objects import read_tudataset
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, text in {"A": "1, 2\\n2, 1\\n", "graph_indicator": "1\\n1\\n2\\n",
    ...                        "graph_labels": "-1\\n1\\n"}.items():
    ...         _ = pathlib.Path(folder, f"TINY_{name}.txt").write_text(text)
    ...     graphs, y = read_tudataset(folder)
    >>> graphs, y, graphs.degrees
    (<GraphBatch of 2 objects>, array([-1,  1]), array([1, 1, 0]))
    """
    check_choice(target, "target", ("labels", "attributes", None))
    files = _open(as_path(path))
    indicator = files.rows("graph_indicator", np.int64, 1)[:, 0]
    arcs = files.rows("A", np.int64, 2).reshape(-1, 2)
    labels = files.optional("graph_labels", np.int64)
    attributes = files.optional("graph_attributes", np.float64)
    n_graphs = _n_graphs(files, indicator, labels, attributes)
    _check_arcs(files, arcs, indicator)
    graphs = _batch(files, indicator, arcs, n_graphs, edge_weight)
    return graphs, _target(files, target, labels, attributes)


@dataclass(frozen=True)
class _Files:
    """Contents of the files of a data set by kind; the kind of ``NAME_graph_labels.txt`` is ``graph_labels``."""

    path: Path
    data_set: str
    contents: dict[str, bytes]

    def error(self, kind: str, found: str, line: int | None = None) -> BadFile:
        """Return an error about the file of this kind; `line` is counted from 0."""
        return BadFile(self._name(kind), found, at="" if line is None else f"line {line + 1}")

    def missing(self, kind: str, remedy: str) -> FileNotFoundError:
        return FileNotFoundError(f"{self._name(kind)} is missing; {remedy}")

    def _name(self, kind: str) -> str:
        return f"{self.path}: {self.data_set}_{kind}.txt"

    def rows(self, kind: str, dtype: type, width: int | None = None) -> npt.NDArray[Any]:
        """Return a required file as an array of shape (n_lines, width); raise if it is missing or invalid."""
        if kind not in self.contents:
            raise self.missing(kind, "every TUDataset data set has it")
        text = self.contents[kind]
        if not text.strip():
            return np.zeros((0, width or 1), dtype=dtype)
        try:
            rows: npt.NDArray[Any] = np.loadtxt(io.BytesIO(text), dtype=dtype, delimiter=",", comments=None, ndmin=2)
        except ValueError as error:
            line, found = _bad_line(text, dtype) or (None, str(error))
            raise self.error(kind, found, line) from None
        if width is not None and rows.shape[1] != width:
            raise self.error(kind, f"must hold {counted(width, 'number')} a line, found {rows.shape[1]}")
        return rows

    def optional(self, kind: str, dtype: type, n_lines: int | None = None) -> npt.NDArray[Any] | None:
        """Return a file as finite numbers, or None if absent; raise unless it has `n_lines` lines (None: any)."""
        if kind not in self.contents:
            return None
        rows = self.rows(kind, dtype)
        if n_lines is not None and len(rows) != n_lines:
            what = kind.split("_")[0]
            raise self.error(kind, f"has {len(rows)} lines for {n_lines} {what}s; is it truncated?")
        finite = np.isfinite(rows).all(axis=1)
        if not finite.all():
            raise self.error(kind, "NaN or infinity, expected finite numbers", int(np.argmin(finite)))
        return rows


def _open(path: Path) -> _Files:
    if path.is_dir():
        files = [file for file in sorted(path.glob("*.txt")) if file.is_file()]  # no devices or pipes
        return _select(path, [(file.name, file.stat().st_size, partial(file.open, "rb")) for file in files])
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; give the folder or the zip file of a TUDataset data set")
    try:
        with zipfile.ZipFile(path) as archive:
            infos = [info for info in archive.infolist() if info.filename.endswith(".txt")]
            members = [_member(path, archive, info) for info in infos if not info.filename.startswith("__MACOSX/")]
            return _select(path, members)
    except FileNotFoundError:  # the archive lacks the file
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        problem = short(str(error), 120)[1:-1]
        raise BadFile(path, f"is not a whole zip file ({problem}); download it again") from None


def _member(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> _Member:
    """Return the name and size of a file in a zip archive, and a function that opens it; raise if it leads outside."""
    place = PurePosixPath(info.filename.replace("\\", "/"))
    if place.is_absolute() or ".." in place.parts or stat.S_ISLNK(info.external_attr >> 16):
        raise BadFile(path, f"holds {short(info.filename)}, which leads outside the archive; download it again")
    return place.name, info.file_size, partial(archive.open, info)


def _select(path: Path, found: list[_Member]) -> _Files:
    """Read the files of a data set, named by its ``NAME_graph_indicator.txt``; raise unless `found` has exactly one."""
    names = [name.removesuffix(_SUFFIX) for name, _, _ in found if name.endswith(_SUFFIX)]
    if len(names) != 1:
        raise FileNotFoundError(
            f"{path} holds {len(names)} files named NAME{_SUFFIX}, expected one; "
            "give the folder or the zip file of one TUDataset data set"
        )
    contents: dict[str, bytes] = {}
    left = settings().max_memory
    for name, size, open_file in found:
        kind = name[len(names[0]) + 1 : -len(".txt")]
        if name != f"{names[0]}_{kind}.txt" or kind not in _KINDS:
            continue
        if kind in contents:
            raise BadFile(path, f"holds two files named {short(name)}, expected one; remove the other")
        left -= size
        if left < 0:
            raise BadFile(
                path,
                f"holds files of more than {settings().max_memory} bytes, the working memory; "
                "similia.config(max_memory=...) allows more",
            )
        with open_file() as file:
            contents[kind] = file.read(size)  # at most its declared size
    return _Files(path, names[0], contents)


def _bad_line(text: bytes, dtype: type) -> tuple[int, str] | None:
    """Return (number from 0, problem) of the first invalid line of a table of numbers; None if all lines are valid."""
    width = 0
    for number, line in enumerate(text.splitlines()):
        cells = line.split(b",") if line.strip() else []
        width = width or len(cells)
        if cells and len(cells) != width:
            return number, f"found {counted(len(cells), 'number')}, expected {width} as in the first line"
        for cell in cells:
            try:
                dtype(cell)
            except (ValueError, OverflowError):
                return number, f"found {short(cell.strip().decode(errors='replace'))}, expected {_NUMBERS[dtype]}"
    return None


def _n_graphs(files: _Files, indicator: npt.NDArray[np.int64], *per_graph: Any) -> int:
    """Return the number of rows of `per_graph` (labels, attributes) or, if both are None, the largest indicator."""
    largest = int(indicator.max(initial=0))
    if len(indicator) and indicator.min() < 1:
        line = int(np.argmin(indicator))
        raise files.error("graph_indicator", f"graphs are numbered from 1, found {indicator[line]}", line)
    counts = [len(rows) for rows in per_graph if rows is not None]
    n_graphs = max([largest, *counts])
    for kind, rows in zip(("graph_labels", "graph_attributes"), per_graph, strict=True):
        if rows is not None and len(rows) != n_graphs:
            raise files.error(kind, f"has {len(rows)} lines for {n_graphs} graphs; is it truncated?")
    if not counts and 8 * n_graphs > settings().max_memory:
        raise files.error(
            "graph_indicator",
            f"graph number {n_graphs}, but there are {len(indicator)} nodes; so many graphs without nodes exceed the "
            "working memory, see similia.config(max_memory=...)",
            int(np.argmax(indicator)),
        )
    if n_graphs == 0:
        raise ValueError(f"{files.path} holds no graphs")
    return n_graphs


def _check_arcs(files: _Files, arcs: npt.NDArray[np.int64], indicator: npt.NDArray[np.int64]) -> None:
    outside = ((arcs < 1) | (arcs > len(indicator))).any(axis=1)
    if outside.any():
        line = int(np.argmax(outside))
        raise files.error(
            "A",
            f"edge {arcs[line].tolist()} joins a node that does not exist, nodes are numbered 1 to {len(indicator)}; "
            "is the graph indicator truncated?",
            line,
        )
    graph = indicator[arcs - 1]
    across = graph[:, 0] != graph[:, 1]
    if across.any():
        line = int(np.argmax(across))
        one, two = graph[line]
        raise files.error("A", f"edge {arcs[line].tolist()} joins graph {one} to graph {two}", line)


def _batch(
    files: _Files, indicator: npt.NDArray[np.int64], arcs: npt.NDArray[np.int64], n_graphs: int, edge_weight: int | None
) -> GraphBatch:
    """Build the batch from the files; nodes are sorted by graph."""
    n_nodes, n_arcs = len(indicator), len(arcs)
    order = np.argsort(indicator, kind="stable")
    rank = np.empty(n_nodes, dtype=np.int64)
    rank[order] = np.arange(n_nodes)
    node_labels = files.optional("node_labels", np.int64, n_nodes)
    node_attributes = files.optional("node_attributes", np.float64, n_nodes)
    edge_labels = files.optional("edge_labels", np.int64, n_arcs)
    weights = files.optional("edge_attributes", np.float64, n_arcs) if edge_weight is not None else None
    if weights is not None and edge_weight not in range(-weights.shape[1], weights.shape[1]):
        found = f"has {weights.shape[1]} columns, none is edge_weight={edge_weight}"
        raise files.error("edge_attributes", found)
    return GraphBatch.from_arrays(
        offsets_of(np.bincount(indicator - 1, minlength=n_graphs)),
        rank[arcs.T - 1],
        node_labels=None if node_labels is None else _one_label(node_labels)[order],
        node_attributes=None if node_attributes is None else node_attributes[order],
        edge_labels=None if edge_labels is None else _one_label(edge_labels),
        edge_weights=None if weights is None else weights[:, edge_weight],
        repeated="first",
    )


def _one_label(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    if rows.shape[1] == 1:
        return rows[:, 0]
    distinct, where = np.unique(rows, axis=0, return_inverse=True)
    return hash_labels([",".join(map(str, row)) for row in distinct.tolist()])[where.reshape(-1)]


def _target(files: _Files, target: str | None, labels: Any, attributes: Any) -> npt.NDArray[Any] | None:
    if target is None:
        y = attributes if labels is None else labels
    else:
        y = labels if target == "labels" else attributes
        if y is None:
            raise files.missing(f"graph_{target}", "choose another target")
    return y[:, 0] if y is not None and y.shape[1] == 1 else y
