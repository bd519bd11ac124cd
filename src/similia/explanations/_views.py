"""Objects as explanations show them: strings, graphs, series, point sets, vectors, by what they hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.objects import GraphBatch, SeriesBatch, SetBatch, StringBatch
from similia.objects.labels import BONDS, SYMBOLS, hash_labels


@dataclass(frozen=True, eq=False)
class View:
    """One object, ready to be drawn.

    Attributes
    ----------
    kind : str
        "string", "graph", "series", "set" or "other".
    n_places : int
        Letters, nodes, time points, points; 0 for anything else.
    text : str
        A string's letters (bytes as Latin-1), one for each place.
    arcs : ndarray of int64, shape (2, n_arcs)
        Of a graph.
    names : list of str
        Label of each node, empty if it has none.
    bonds : list of str
        Of a molecule, the bond that each arc is: ``-``, ``=``, ``#`` or ``:``; None for other graphs.
    values : ndarray of float64, shape (n_places, p)
        Of a series or a set.
    links : list of (int, int, float)
        Places of x matched with places of y, and how much each match adds; kept with x.
    """

    kind: str
    n_places: int
    text: str = ""
    arcs: npt.NDArray[np.int64] | None = None
    names: list[str] | None = None
    bonds: list[str] | None = None
    values: npt.NDArray[np.float64] | None = None
    links: list[tuple[int, int, float]] | None = None


def view_of(batch: object, label_names: dict[int, str] | None = None) -> View:
    """Return the first object of a batch, or a view without places of anything else."""
    if isinstance(batch, StringBatch):
        item = batch[0]
        text = item.decode("latin-1") if isinstance(item, bytes) else item
        return View("string", len(text), text=text)
    if isinstance(batch, GraphBatch):
        n = int(batch.node_offsets[1])
        stop = int(batch.indptr[n])
        arcs = np.array([np.repeat(np.arange(n), np.diff(batch.indptr[: n + 1])), batch.indices[:stop]], dtype=np.int64)
        first = batch.take([0]) if len(batch) > 1 else batch
        names = node_names(first, label_names or {})
        return View("graph", n, arcs=arcs, names=names, bonds=_bonds(first, names))
    if isinstance(batch, SeriesBatch | SetBatch):
        values = np.asarray(batch.values[: batch.offsets[1]], dtype=np.float64)
        return View("series" if isinstance(batch, SeriesBatch) else "set", len(values), values=values)
    return View("other", 0)


def _bonds(graph: GraphBatch, names: list[str]) -> list[str] | None:
    """Return the bonds of a molecule, or None for a graph that is none."""
    labels = None if graph.edge_labels is None else graph.edge_labels.tolist()
    if labels is None and len(graph.indices) == 0:
        labels = []
    known = labels is not None and all(label in BONDS for label in labels) and {*names} <= {*SYMBOLS.values()}
    return [BONDS[label] for label in labels or []] if known else None


def node_names(graphs: GraphBatch, label_names: dict[int, str]) -> list[str]:
    """Return the label of each node as text, of atoms the symbol; without labels all are empty."""
    if graphs.node_labels is None:
        return [""] * graphs.n_nodes
    return [label_names.get(label) or SYMBOLS.get(label, str(label)) for label in graphs.node_labels.tolist()]


def described(batch: object, number: int) -> str:
    """Return what a list calls the first object of a batch that is number `number` of some collection."""
    view = view_of(batch)
    if view.kind == "string":
        return f"{view.text if len(view.text) <= 40 else view.text[:37] + '...'!r}" if view.text else "the empty string"
    sizes = {"graph": "nodes", "series": "time points", "set": "points"}
    return f"no. {number}" + (f" ({view.n_places} {sizes[view.kind]})" if view.kind in sizes else "")


def names_of_labels(x: Any) -> dict[int, str]:
    """Return the text of the labels that a graph carries, by the number that `as_graphs` makes of it."""
    labels: list[Any] = []
    if hasattr(x, "nodes") and hasattr(x, "adjacency"):  # networkx
        labels = [data.get("label") for _, data in x.nodes(data=True)]
    elif isinstance(x, tuple) and len(x) == 3 and isinstance(x[2], Mapping):
        labels = list(x[2].get("node_labels", []))
    elif isinstance(x, Mapping) and "node_labels" in x and x["node_labels"] is not None:
        labels = list(x["node_labels"])
    labels = [label for label in labels if isinstance(label, str)]
    return dict(zip(hash_labels(labels).tolist(), labels, strict=True))
