"""Convert objects to views, the form in which explanations show them, and find substructures of molecules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from similia.objects import GraphBatch, SeriesBatch, SetBatch, StringBatch
from similia.objects.graph_forms import BONDS, SYMBOLS, hash_labels
from similia.objects.molecules import SmilesBatch, read_smiles

Places = npt.NDArray[np.int64]
Group = tuple[str, Places]  # name and atoms


NOTHING = 1e-12  # relative to the value: smaller numbers are rounding errors
FEW = 0.5  # if the listed parts hold a smaller share, tables show stretches of strings first, and a note tells it


@dataclass(frozen=True, eq=False)
class View:
    """One object, ready to be drawn.

    Attributes
    ----------
    kind : {"strings", "graphs", "series", "sets", "other"}
    n_places : int
        Number of letters, nodes, time points or points; 0 for other objects.
    text : str
        Letters of a string (bytes as Latin-1); of a molecule that was given as SMILES, these.
    arcs : ndarray of int64, shape (2, n_arcs)
        Arcs of a graph.
    names : list of str
        Label of each node, or an empty string.
    bonds : list of str or None
        Bond of each arc of a molecule: ``-``, ``=``, ``#`` or ``:``; None for other graphs.
    values : ndarray of float64, shape (n_places, p)
        Values of a series or a set.
    links : sequence of (int, int, float)
        (place in x, place in y, amount) of matched places, as in `Found`; only the view of x holds them.
    """

    kind: str
    n_places: int
    text: str = ""
    arcs: Places = field(default_factory=lambda: np.empty((2, 0), dtype=np.int64))
    names: list[str] = field(default_factory=list)
    bonds: list[str] | None = None
    values: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 1)))
    links: Sequence[tuple[int, int, float]] = ()


def view_of(batch: object, label_names: Mapping[int, str] | None = None) -> View:
    """Return a view of the first object of a batch; views of vectors and other unstructured objects have no places."""
    if isinstance(batch, SmilesBatch):
        return replace(view_of(read_smiles(batch.take([0]))), text=as_text(batch[0]))
    if isinstance(batch, StringBatch):
        text = as_text(batch[0])
        return View(batch.kind, len(text), text=text)
    if isinstance(batch, GraphBatch):
        n = int(batch.node_offsets[1])
        stop = int(batch.indptr[n])
        arcs = np.array([np.repeat(np.arange(n), np.diff(batch.indptr[: n + 1])), batch.indices[:stop]], dtype=np.int64)
        first = batch.take([0]) if len(batch) > 1 else batch
        names = node_names(first, label_names or {})
        return View(batch.kind, n, arcs=arcs, names=names, bonds=_bonds(first, names))
    if isinstance(batch, SeriesBatch | SetBatch):
        values = dense(batch.values[: batch.offsets[1]])
        return View(batch.kind, len(values), values=values)
    return View("other", 0)


def dense(values: Any) -> npt.NDArray[np.float64]:
    """Return a dense or sparse array as a dense array of float64."""
    return np.asarray(values.toarray() if sp.issparse(values) else values, dtype=np.float64)


def as_text(letters: str | bytes) -> str:
    """Return a string's letters as text; bytes as Latin-1, one letter for each byte."""
    return letters.decode("latin-1") if isinstance(letters, bytes) else letters


def _bonds(graph: GraphBatch, names: list[str]) -> list[str] | None:
    """Return the bond of each arc of a molecule, or None for other graphs."""
    labels = None if graph.edge_labels is None else graph.edge_labels.tolist()
    if labels is None and len(graph.indices) == 0:
        labels = []
    known = labels is not None and all(label in BONDS for label in labels) and {*names} <= {*SYMBOLS.values()}
    return [BONDS[label][0] for label in labels or []] if known else None  # "=" for "=(E)"


def node_names(graphs: GraphBatch, label_names: Mapping[int, str]) -> list[str]:
    """Return the label of each node as text (the symbol of an atom), or empty texts for graphs without labels."""
    if graphs.node_labels is None:
        return [""] * graphs.n_nodes
    return [label_names.get(label) or SYMBOLS.get(label, str(label)) for label in graphs.node_labels.tolist()]


def described(batch: object, number: int) -> str:
    """Describe the first object of a batch in a few words; `number` is the index to show for it."""
    if isinstance(batch, StringBatch):
        text = as_text(batch[0])
        return f"{text if len(text) <= 40 else text[:37] + '...'!r}" if text else "the empty string"
    view = view_of(batch)
    sizes = {"graphs": "nodes", "series": "time points", "sets": "points"}
    return f"no. {number}" + (f" ({view.n_places} {sizes[view.kind]})" if view.kind in sizes else "")


def names_of_labels(x: Any) -> dict[int, str]:
    """Return {number: text} for the text labels of a graph's nodes, which `as_graphs` replaces by these numbers."""
    labels: Iterable[Any] = ()
    if hasattr(x, "nodes") and hasattr(x, "adjacency"):  # networkx
        labels = [data.get("label") for _, data in x.nodes(data=True)]
    else:
        table = x[2] if isinstance(x, tuple) and len(x) == 3 else x
        if isinstance(table, Mapping) and table.get("node_labels") is not None:
            labels = table["node_labels"]
    texts = [label for label in labels if isinstance(label, str)]
    return dict(zip(hash_labels(texts).tolist(), texts, strict=True))


# Functional groups: their elements and bonds, without hydrogens; "O1" is an oxygen with one neighbour.
_NAMES = {
    "O1 | ": "hydroxyl", "O2 | ": "ether", "N1 | ": "amine", "N2 | ": "amine", "N3 | ": "amine", "S1 | ": "thiol",
    "S2 | ": "thioether", "F1 | ": "fluorine", "Cl1 | ": "chlorine", "Br1 | ": "bromine", "I1 | ": "iodine",
    "C2 O1 | C=O": "aldehyde", "C3 O1 | C=O": "ketone", "C2 N1 | C#N": "nitrile", "N3 O1 O1 | N-O N=O": "nitro",
    "N3 O1 O1 | N=O N=O": "nitro", "C3 O1 O1 | C-O C=O": "carboxyl", "C3 O1 O2 | C-O C=O": "ester",
    "C3 N1 O1 | C-N C=O": "amide", "C3 N2 O1 | C-N C=O": "amide", "C3 N3 O1 | C-N C=O": "amide",
    "O1 O1 S4 | O=S O=S": "sulfone", "N1 O1 O1 S4 | N-S O=S O=S": "sulfonamide",
    "N2 O1 O1 S4 | N-S O=S O=S": "sulfonamide", "N3 O1 O1 S4 | N-S O=S O=S": "sulfonamide", "N2 N2 | N=N": "azo",
}  # fmt: skip
_RINGS: dict[tuple[Any, ...], str] = {
    (6, ("C", 6)): "benzene ring", (10, ("C", 10)): "naphthalene", (6, ("C", 5), ("N", 1)): "pyridine ring",
    (6, ("C", 4), ("N", 2)): "diazine ring", (5, ("C", 4), ("N", 1)): "pyrrole ring",
    (5, ("C", 4), ("O", 1)): "furan ring", (5, ("C", 4), ("S", 1)): "thiophene ring",
    (5, ("C", 3), ("N", 2)): "imidazole or pyrazole ring", (9, ("C", 8), ("N", 1)): "indole",
    (10, ("C", 9), ("N", 1)): "quinoline",
}  # fmt: skip


def is_molecule(view: View) -> bool:
    """Return whether a view shows a molecule with its bonds."""
    return view.bonds is not None and view.n_places > 0


def groups(view: View) -> list[Group]:
    """Return the functional groups, aromatic rings and carbon chains of a molecule, in the order of their atoms."""
    names, bonds = view.names, bonds_of(view)
    near: list[dict[int, str]] = [{} for _ in names]  # for each atom, {neighbour: bond}
    for u, v, bond in bonds:
        near[u][v] = near[v][u] = bond
    aromatic = {v for *ends, bond in bonds if bond == ":" for v in ends}
    hetero = {v for v, name in enumerate(names) if name not in ("C", "H")}

    def is_functional(v: int) -> bool:
        multiple = any(bond in "=#" for bond in near[v].values())
        between = sum(u in hetero and u not in aromatic for u in near[v]) > 1
        return v in hetero or (names[v] == "C" and (multiple or between))

    functional = {v for v in range(len(names)) if v not in aromatic and is_functional(v)}
    chains = {*range(len(names))} - aromatic - functional
    found: list[Group] = []
    for kind, members, along in (("ring", aromatic, ":"), ("group", functional, "-=#:"), ("chain", chains, "-=#:")):
        pieces = _connected(members, near, along)
        found += [(_name(kind, atoms, names, near), np.array(atoms, dtype=np.int64)) for atoms in pieces]
    return sorted(found, key=lambda group: int(group[1][0]))


def bonds_of(view: View) -> list[tuple[int, int, str]]:
    """Return each bond once, as (lower atom, higher atom, kind)."""
    bonds = zip(view.arcs.T.tolist(), view.bonds or [], strict=True)
    found = {(min(u, v), max(u, v)): bond for (u, v), bond in bonds if u != v}
    return sorted((u, v, bond) for (u, v), bond in found.items())


def _connected(members: set[int], near: list[dict[int, str]], along: str) -> list[list[int]]:
    """Return the connected components of the atoms `members`, each sorted; only bonds of a kind in `along` connect."""
    seen: set[int] = set()
    pieces = []
    for start in sorted(members):
        piece, edge = set(), [start] if start not in seen else []
        while edge:
            v = edge.pop()
            piece.add(v)
            edge += [u for u, bond in near[v].items() if u in members and u not in piece and bond in along]
        if piece:
            pieces.append(sorted(piece))
            seen |= piece
    return pieces


def _name(kind: str, atoms: list[int], names: list[str], near: list[dict[int, str]]) -> str:
    """Return the name of the piece that these atoms form; its `kind` is "ring", "group" (functional) or "chain"."""
    inside = {(u, v): bond for u in atoms for v, bond in near[u].items() if u < v and v in atoms}
    counts = Counter(names[v] for v in atoms)
    formula = " ".join(f"{symbol}{n if n > 1 else ''}" for symbol, n in sorted(counts.items()))
    if kind == "ring":
        return _RINGS.get((len(atoms), *sorted(counts.items())), f"aromatic ring system {formula}")
    if kind == "group":
        ends = sorted(f"{names[v]}{sum(names[u] != 'H' for u in near[v])}" for v in atoms)
        links = sorted(bond.join(sorted((names[u], names[v]))) for (u, v), bond in inside.items())
        key = f"{' '.join(ends)} | {' '.join(links)}"
        if key == "O1 | " and next(iter(near[atoms[0]].values()), "-") == "=":
            return "oxo"
        if set(counts) == {"C"} and len(atoms) == 2:
            return f"double bond {links[0]}" if "=" in links[0] else f"triple bond {links[0]}"
        return _NAMES.get(key, f"group {formula}" if len(atoms) > 1 else formula)
    if len(atoms) == 1:
        beside = sum(names[u] != "H" for u in near[atoms[0]])
        return "hydrogen" if counts["H"] else {1: "methyl", 2: "methylene"}.get(beside, "carbon")
    return f"{'carbon ring' if len(inside) >= len(atoms) else 'carbon chain'} {formula}"


def one_note(*notes: str) -> str:
    """Return notes as one; empty ones are left out."""
    return "; ".join(filter(None, notes))
