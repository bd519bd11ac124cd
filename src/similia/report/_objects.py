"""What a collection holds: its kind, sizes, empty and repeated objects, and each object small enough for a page."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from similia.core.text import _short
from similia.objects import GraphBatch, SeriesBatch, SetBatch, StringBatch, as_graphs, as_strings, n_objects
from similia.objects.graph_forms import BONDS, SYMBOLS
from similia.objects.identical import identical
from similia.objects.molecules import has_rdkit, in_the_plane
from similia.objects.sequences import segments
from similia.report._model import Parts
from similia.similarity import as_objects

_LETTERS = 280
_POINTS = 48  # of a series, a vector or a set
_CHANNELS = 3
_NODES = 48
_KINDS = {StringBatch: "strings", GraphBatch: "graphs", SeriesBatch: "time series", SetBatch: "point sets"}
TEXTS = ("strings", "objects")  # kinds that are shown as text
SIZE_OF = {
    "strings": "letters", "graphs": "nodes", "time series": "time points", "point sets": "points",
    "vectors": "numbers other than 0",
}  # fmt: skip

Json = dict[str, Any]


@dataclass(frozen=True)
class Seen:
    """A collection looked at.

    Attributes
    ----------
    kind : str
        A key of `SIZE_OF`, or "objects".
    batch : collection of n objects
        In the layout of the kind.
    sizes : ndarray of int64, shape (n,), or None
    groups : ndarray of int64, shape (n,)
        Equal for identical objects.
    """

    kind: str
    batch: Any
    sizes: npt.NDArray[np.int64] | None
    groups: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def duplicates(self) -> int:
        """Number of objects that were met before."""
        return len(self) - len(np.unique(self.groups))


def look_at(X: Any, parts: Parts | None = None) -> Seen:
    """Find out what a collection holds, in the layout the model compares, or by its first object."""
    batch = _layout(X, parts)
    kind = _KINDS.get(type(batch), "vectors" if sp.issparse(batch) or isinstance(batch, np.ndarray) else "objects")
    sizes: Any = None
    if isinstance(batch, GraphBatch):
        sizes = np.diff(batch.node_offsets)
    elif kind in ("strings", "time series", "point sets"):
        sizes = np.diff(batch.offsets)
    elif kind == "vectors":
        sizes = np.asarray((batch != 0).sum(axis=1)).ravel()
    return Seen(kind, batch, sizes, identical(batch))


def _layout(X: Any, parts: Parts | None) -> Any:
    if parts is not None and parts.metric is not None:
        X = as_objects(parts.metric.function, X)
    if type(X) in _KINDS:
        return X
    if sp.issparse(X):
        return X.tocsr()
    if getattr(X, "ndim", 0) == 2:
        array = np.asarray(X)
        if array.dtype.kind in "biuf":
            return array
    for read in (as_strings, as_graphs):
        try:
            return read(X)
        except (TypeError, ValueError, AttributeError):
            continue
    return [X[i] for i in range(n_objects(X))] if not hasattr(X, "iloc") else X.to_numpy().tolist()


def described(seen: Seen, i: int) -> str:
    """Return an object in a line of text."""
    if seen.kind == "strings":
        return _clipped(_text(seen.batch[i]))
    if seen.kind == "graphs":
        graph = seen.batch[i]
        n_edges = len(np.unique(np.sort(graph.edge_index, axis=0), axis=1).T)
        return f"graph of {_of(seen.sizes, i)} nodes{_formula(graph)} and {n_edges} edges"
    if seen.kind == "time series":
        return f"series of {_of(seen.sizes, i)} time points, {seen.batch.n_dims} channel" + "s" * (
            seen.batch.n_dims > 1
        )
    if seen.kind == "point sets":
        return f"{_of(seen.sizes, i)} points of dimension {seen.batch.n_dims}"
    if seen.kind == "vectors":
        return f"vector of {seen.batch.shape[1]} numbers, {_of(seen.sizes, i)} of them not 0"
    return _short(seen.batch[i], _LETTERS)


def _symbols(graph: GraphBatch) -> list[str]:
    """Return the symbol of each node of molecules; nothing of other graphs."""
    labels = [] if graph.node_labels is None else graph.node_labels.tolist()
    return [SYMBOLS[label] for label in labels] if all(label in SYMBOLS for label in labels) else []


def _formula(graph: GraphBatch) -> str:
    """Return how many atoms of each kind a molecule has, carbon first."""
    counted = sorted(Counter(_symbols(graph)).items(), key=lambda item: (item[0] != "C", item[0]))
    text = " ".join(f"{symbol}{n}" if n > 1 else symbol for symbol, n in counted)
    return f" ({text})" if text else ""


def _of(sizes: npt.NDArray[np.int64] | None, i: int) -> int:
    return 0 if sizes is None else int(sizes[i])


def _text(value: str | bytes) -> str:
    text = value.decode("latin-1") if isinstance(value, bytes) else value
    return text.encode("utf-8", "replace").decode("utf-8")  # lone surrogates cannot be written


def _clipped(text: str) -> str:
    if text == "":
        return "(empty)"
    return text if len(text) <= _LETTERS else f"{text[:_LETTERS]}… ({len(text):,} letters)"


def for_page(seen: Seen) -> list[Json]:
    """Return each object as what the page draws: ``t`` text, and ``c`` curves, ``p`` points or ``g`` a graph."""
    if seen.kind == "graphs":
        return _graphs(seen)
    drawn: list[Json] = []
    spread = _spread(seen)
    for i in range(len(seen)):
        shown: Json = {"t": described(seen, i)}
        if seen.kind in ("time series", "vectors"):
            rows = _row(seen.batch, i) if seen.kind == "vectors" else seen.batch[i]
            shown["c"] = [_curve(channel) for channel in np.asarray(rows, dtype=np.float64).T[:_CHANNELS]]
        elif seen.kind == "point sets":
            points = (seen.batch[i][: 2 * _POINTS, :2] - spread[0]) / spread[1] * 100
            points = np.column_stack([points, np.full(len(points), 50)]) if points.shape[1] == 1 else points
            shown["p"] = points.round().astype(int).ravel().tolist()
        drawn.append(shown)
    return drawn


def _row(batch: Any, i: int) -> npt.NDArray:
    row = batch[[i]].toarray() if sp.issparse(batch) else batch[i]
    return np.reshape(row, (-1, 1))


def _curve(values: npt.NDArray[np.float64]) -> list[int]:
    """Return at most 48 means of runs of a curve, from 0 (its least) to 100."""
    if len(values) > _POINTS:
        edges = np.linspace(0, len(values), _POINTS + 1).astype(int)
        values = np.add.reduceat(values, edges[:-1]) / np.diff(edges)
    low, high = (values.min(), values.max()) if len(values) else (0.0, 0.0)
    scaled = (values - low) / (high - low) * 100 if high > low else np.full(len(values), 50.0)
    return scaled.round().astype(int).tolist()


def _spread(seen: Seen) -> tuple[npt.NDArray, Any]:
    """Return the least of the first two coordinates of all sets, and the range that keeps their proportion."""
    if seen.kind != "point sets" or not len(seen.batch.values):
        return np.zeros(2), 1.0
    values = seen.batch.values[:, :2]
    low = values.min(axis=0)
    return low, max(float((values.max(axis=0) - low).max()), np.finfo(float).tiny)


def _placed(symbols: list[str], bonds: list[tuple[int, int, str]]) -> Json:
    """Return where RDKit puts the atoms of a molecule, in hundredths of its unit, and the kind of each bond."""
    if not all(bond for *_, bond in bonds):
        return {}
    conformer = in_the_plane(symbols, bonds).GetConformer()
    places = np.array([list(conformer.GetAtomPosition(v))[:2] for v in range(len(symbols))])
    return {"xy": (places * [100, -100]).round().astype(int).ravel().tolist(), "b": "".join(bond for *_, bond in bonds)}


def _graphs(seen: Seen) -> list[Json]:
    """Return the first nodes of each graph, their edges as pairs, labels as ranks by frequency, symbols of atoms.

    Of molecules also ``xy``, where RDKit puts the atoms, and ``b``, a letter for each bond, if RDKit is installed.
    """
    batch: GraphBatch = seen.batch
    ranks = None
    if batch.node_labels is not None:
        _, inverse, counts = np.unique(batch.node_labels, return_inverse=True, return_counts=True)
        ranks = np.argsort(np.argsort(-counts, kind="stable"))[inverse]
    drawn = []
    for g in range(len(seen)):
        first, last = (int(v) for v in batch.node_offsets[g : g + 2])
        n = min(last - first, _NODES)
        positions, offsets = segments(batch.indptr, np.arange(first, first + n))
        source, target = np.repeat(np.arange(n), np.diff(offsets)), batch.indices[positions] - first
        kept = (target < n) & (source != target)
        low, high = np.minimum(source, target)[kept], np.maximum(source, target)[kept]
        edges = np.unique(low * _NODES + high)
        more = "" if n == last - first else f", of which {n} are drawn"
        shown: Json = {
            "t": described(seen, g) + more,
            "g": [n, *np.column_stack(divmod(edges, _NODES)).ravel().tolist()],
        }
        if ranks is not None:
            shown["l"] = np.minimum(ranks[first : first + n], 6).tolist()
        symbols = _symbols(batch[g])[:n]
        if symbols:
            shown["s"] = " ".join(symbols)
        if symbols and batch.edge_labels is not None and has_rdkit():
            marks = [BONDS.get(label, "") for label in batch.edge_labels[positions][kept].tolist()]
            orders = dict(zip((low * _NODES + high).tolist(), marks, strict=True))
            shown |= _placed(symbols, [(*divmod(edge, _NODES), orders[edge]) for edge in edges.tolist()])
        drawn.append(shown)
    return drawn
