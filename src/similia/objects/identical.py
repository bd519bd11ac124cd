"""Find identical objects: a split into training and test sets keeps them together, and none is measured twice.

**Graphs in any order of their nodes** (`are_among`). Each node gets a colour, a hash of its labels, and in each round a
new one, the hash of its colour and of the labels and colours at the other ends of its arcs, until no round tells more
nodes apart. Where nodes still have the same colour, one of them gets another, and the rounds go on. At last, each node
has its own colour; nodes are sorted by colour, and graphs are compared byte for byte. So graphs that are found are
identical. One is missed only if nodes of the same colour are not symmetric, as in some graphs without labels all of
whose nodes have the same degree. Only graphs whose colours after three rounds are those of another graph are sorted.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from similia.core.validation import BadValue
from similia.objects.graph_batch import SIDE, GraphBatch
from similia.objects.molecules import SmilesBatch, canonical_smiles
from similia.objects.sequences import Ragged
from similia.objects.tables import is_missing

_ROUNDS = 3  # after which graphs of different colours are not compared
_IN, _OUT, _APART = (np.uint64(0x9E3779B97F4A7C15 * k % 2**64) for k in (1, 3, 5))


def identical(batch: Any) -> npt.NDArray[np.int64]:
    """Number the objects so that identical objects share a number; return the number of each object, shape (n,).

    Numbers start at 0, in order of first appearance. The order of points in a set does not matter. Graphs are identical
    only if their nodes are numbered in the same way. Arrays in a list are compared by shape, dtype and data, objects of
    an unknown type by their `repr` (data frames also by their values), or by identity if their class defines none.
    """
    numbers: dict[bytes, int] = {}
    found = [numbers.setdefault(_digest(part), len(numbers)) for part in _bytes(batch)]
    return np.array(found, dtype=np.int64)


def with_groups(same: npt.NDArray[np.int64], groups: Any) -> npt.NDArray[np.int64]:
    """Merge `groups` that hold identical objects; return each object's group number. `same` is from `identical`."""
    n, groups = len(same), np.asarray(groups)
    if groups.shape != (n,):
        raise ValueError(f"groups must be one name or number per object, shape ({n},), got shape {groups.shape}")
    missing = np.array([is_missing(name) for name in groups.tolist()])
    if missing.any():
        i = int(np.argmax(missing))
        remedy = "give an object alone its own group"
        raise BadValue(i, f"is {groups[i]}", "a name or number", remedy, collection="groups")
    given = np.unique(groups.astype(str) if groups.dtype == object else groups, return_inverse=True)[1]
    rows = np.arange(n)  # the nodes of the graph are objects, then the numbers in `same`, then groups
    links = sp.coo_array((np.ones(2 * n), (np.r_[rows, rows], np.r_[n + same, 2 * n + given])), shape=(3 * n, 3 * n))
    found: npt.NDArray[np.int64] = connected_components(links, directed=False)[1][:n].astype(np.int64)
    return found


def are_among(batch: Any, others: Any) -> npt.NDArray[np.bool_]:
    """Return a mask of the objects of `batch` that also occur in `others`, a batch of the same type.

    The dtypes of the two may differ: strings of the same letters and vectors of the same numbers are identical. The
    order of the nodes of graphs does not matter, nor that of the atoms in SMILES; see above.
    """
    if isinstance(batch, SmilesBatch):
        batch, others = canonical_smiles(batch), canonical_smiles(others)
    elif isinstance(batch, GraphBatch):
        return _graphs_are_among(batch, others)
    common = np.result_type(_dtype(batch), _dtype(others))
    dtype = None if common.kind == "O" else common
    known = {_digest(part) for part in _bytes(others, dtype)}
    return np.array([_digest(part) in known for part in _bytes(batch, dtype)], dtype=bool)


def _dtype(batch: Any) -> np.dtype:
    """Return the dtype of the numbers of a batch, or object if they are not all in one array."""
    if isinstance(batch, Ragged):
        return batch.values.dtype
    return batch.dtype if isinstance(batch, np.ndarray) or sp.issparse(batch) else np.dtype(object)


def _digest(data: bytes) -> bytes:
    """Return `data` unchanged if shorter than 32 bytes, otherwise a hash of 32 bytes."""
    return data if len(data) < 32 else hashlib.blake2b(data, digest_size=32).digest()


def _bytes(batch: Any, dtype: np.dtype | None = None) -> Iterator[bytes]:
    """Yield the data of each object; if `dtype` is given, numbers that are all in one array are converted to it."""
    if isinstance(batch, GraphBatch):
        yield from (_graph_bytes(batch, g) for g in range(len(batch)))
    elif isinstance(batch, Ragged):
        for first, last in pairwise(batch.offsets):
            part = batch.values[first:last]
            yield _plain(part[np.lexsort(part.T)] if batch.kind == "sets" else part, dtype)
    elif sp.issparse(batch):
        rows = sp.csr_array(batch, copy=True)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        for first, last in pairwise(rows.indptr):
            yield rows.indices[first:last].astype(np.int64).tobytes() + _plain(rows.data[first:last], dtype)
    elif isinstance(batch, np.ndarray) and batch.dtype != object:
        yield from (_plain(row, dtype) for row in batch)
    else:
        yield from map(_object_bytes, batch)


def _object_bytes(x: Any) -> bytes:
    """Return shape, dtype and data of an array of numbers; of others the `repr` and any values, or the `id` without."""
    if isinstance(x, np.ndarray) and x.dtype != object:
        return f"{x.shape} {x.dtype.str} ".encode() + _plain(x)
    if type(x).__repr__ is object.__repr__:
        return f"{id(x)}".encode()
    framed = hasattr(x, "__array__") and not isinstance(x, np.ndarray | np.generic)  # its `repr` may be cut short
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):  # all values and digits of arrays inside
        return repr(_in_order(x)).encode("utf-8", "replace") + (_object_bytes(np.asarray(x)) if framed else b"")


def _in_order(x: Any) -> Any:
    """Return an object with the same `repr` for all sets or dictionaries that are equal, also inside of lists."""
    if isinstance(x, set | frozenset | dict):
        parts = x.items() if isinstance(x, dict) else x
        return isinstance(x, dict), sorted(repr(_in_order(part)) for part in parts)
    return [type(x).__name__, *map(_in_order, x)] if isinstance(x, list | tuple) else x


def _plain(part: npt.NDArray, dtype: np.dtype | None = None) -> bytes:
    """Return the bytes of an array, converted to `dtype` if that is given, with -0.0 replaced by 0.0."""
    part = np.asarray(part, dtype)
    return np.ascontiguousarray(part + 0 if part.dtype.kind in "fc" else part).tobytes()


def _graph_bytes(batch: GraphBatch, g: int) -> bytes:
    first, last = batch.node_offsets[g : g + 2]
    arcs = slice(batch.indptr[first], batch.indptr[last])
    found = [batch.indptr[first : last + 1] - batch.indptr[first], batch.indices[arcs] - first]
    columns = {name: getattr(batch, name) for name in SIDE if getattr(batch, name) is not None}
    found += [column[first:last] if name.startswith("node") else column[arcs] for name, column in columns.items()]
    return b"|".join(map(_plain, found))


# ---- graphs in any order of their nodes
def _graphs_are_among(batch: GraphBatch, others: GraphBatch) -> npt.NDArray[np.bool_]:
    found = np.zeros(len(batch), bool)
    if not _same_columns(batch, others):
        return found
    signatures, theirs = _signatures(batch), _signatures(others)
    rows = np.flatnonzero(np.isin(signatures, theirs))
    kept = np.flatnonzero(np.isin(theirs, signatures[rows]))
    both = _sorted_nodes(GraphBatch.concatenate([batch.take(rows), others.take(kept)]))
    digests = [_digest(_graph_bytes(both, g)) for g in range(len(both))]
    known = set(digests[len(rows) :])
    found[rows] = [digest in known for digest in digests[: len(rows)]]
    return found


def _same_columns(batch: GraphBatch, others: GraphBatch) -> bool:
    """Return whether two batches have labels, details and weights for the same, and attributes of the same length."""
    shapes = (
        [None if (column := getattr(b, name)) is None else column.shape[1:] for name in SIDE] for b in (batch, others)
    )
    return next(shapes) == next(shapes)


def _signatures(batch: GraphBatch) -> npt.NDArray[np.uint64]:
    """Return a hash of each graph, which is the same for any order of its nodes."""
    colours = _hashed(batch, "node")
    for _ in range(_ROUNDS):
        colours = _refined(batch, colours)
    total = np.zeros(len(batch), np.uint64)
    np.add.at(total, batch.graph_of_node, colours)
    return total


def _sorted_nodes(batch: GraphBatch) -> GraphBatch:
    """Return the graphs with their nodes sorted by colour, after rounds that give each node of a graph its own."""
    graphs, colours = batch.graph_of_node, _hashed(batch, "node")
    while True:
        different = 0
        while different < (now := len(np.unique(colours))):
            different, colours = now, _refined(batch, colours)
        order = np.lexsort((colours, graphs))
        tied = np.flatnonzero((np.diff(colours[order]) == 0) & (np.diff(graphs[order]) == 0))
        if not len(tied):
            break
        first = order[tied[np.unique(graphs[order[tied]], return_index=True)[1]]]  # one node of each graph
        colours[first] = _mixed(colours[first] ^ _APART)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    side = {name: column if column is None or name.startswith("edge") else column[order]
            for name in SIDE for column in [getattr(batch, name)]}  # fmt: skip
    return GraphBatch.from_arrays(batch.node_offsets, place[batch.edge_index], **side)


def _hashed(batch: GraphBatch, what: str) -> npt.NDArray[np.uint64]:
    """Return a hash of the labels, attributes and details, or weights, of each node or arc (`what`: "node", "edge")."""
    found = np.zeros(batch.n_nodes if what == "node" else len(batch.indices), np.uint64)
    for name in SIDE:
        if name.startswith(what) and (column := getattr(batch, name)) is not None:
            for numbers in np.atleast_2d(column.T):
                bits = np.ascontiguousarray(numbers + 0).view(np.uint64)
                found = _mixed(found + _mixed(bits))
    return found


def _refined(batch: GraphBatch, colours: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return the colours of nodes after one more round."""
    arcs, (sources, targets) = _hashed(batch, "edge"), batch.edge_index
    new = _mixed(colours)
    np.add.at(new, sources, _mixed(colours[targets] + _mixed(arcs + _OUT)))
    np.add.at(new, targets, _mixed(colours[sources] + _mixed(arcs + _IN)))
    return _mixed(new)


def _mixed(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return `similia.core.hashing.mix` of each number, without loops to compile."""
    x = x + _IN
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
