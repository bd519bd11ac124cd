r"""Objects as explanations show them: `View`, names of functional groups, colours, layouts, pictures of molecules.

Graphs are laid out so that distances between drawn nodes match path lengths d_ij: classical scaling of the path
lengths, then stress majorisation, which finds positions p_i that minimise sum_ij w_ij (||p_i - p_j|| - d_ij)^2 with
w_ij = d_ij^-2. Cost: n^3 once and n^2 for each of 60 rounds.

Paper: Gansner, Koren & North, "Graph drawing by stress majorization", Graph Drawing 2004.

`render_text` shows an explanation as text: a table of parts, and strings with the number of a part below each letter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import shortest_path

from similia.core.text import counted, number
from similia.objects import GraphBatch, SeriesBatch, SetBatch, StringBatch
from similia.objects.graph_batch import BONDS, SYMBOLS, hash_labels
from similia.objects.molecules import SmilesBatch, has_rdkit, in_the_plane, read_smiles

if TYPE_CHECKING:
    from similia.explanations._explanation import Explanation, Part

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
Group = tuple[str, Places]  # name and atoms
NOTHING = 1e-12  # relative to the value: smaller numbers are rounding errors
FEW = 0.5  # if the listed parts hold a smaller share, tables show stretches of strings first, and a note tells it
_ROUNDS = 60
_MOST_CHANNELS = 12  # maximum number of channels of a series to draw
MOST_NODES = 400  # larger graphs are not drawn: the picture would be unreadable
_FOR, _AGAINST, GREY = (0, 114, 178), (213, 94, 0), "#9a9a9a"  # Okabe & Ito, "Color universal design", 2008
_PIXELS = 24.0  # pixels per unit of RDKit's coordinates; a bond is 1.5 units long
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
_WIDTH = 80
_LONGEST_STRING = 2000
_MARKS = "123456789abcdefghijklmnopqrstuvwxyz"
_ROWS = "abcdefghijklmnopqrstuvwxyz"  # marks of stretches left out
_LEFT_OUT = {  # what happens to x, and the head of the column
    "strings": ("a stretch of x is left out", "stretch"),
    "series": ("a straight line replaces a stretch of x", "stretch"),
    "graphs": ("nodes of x are left out", "nodes"),
    "sets": ("points of x are left out", "points"),
    "vectors": ("the mean of a column replaces the value of x", "column"),
}
_BARS = "▁▂▃▄▅▆▇█"
_MOST_RUNS = 4
_UNEXPLAINED = "not explained by parts"
MOST_GROUPS = 8  # maximum number of substructures that are listed
_LITTLE = 1 / 3  # parts without places that hold a smaller share explain little
_ROUNDING = 1e-6  # relative to the largest number: rounding errors of float32


@dataclass(frozen=True, eq=False)
class View:
    """One object, ready to be drawn; a vector is of the kind "vectors" only if its columns are left out."""

    kind: str  # "strings", "graphs", "series", "sets", "vectors" or "other"
    n_places: int  # number of letters, nodes, time points, points or columns; 0 for other objects
    text: str = ""  # letters of a string (bytes as Latin-1), or SMILES of a molecule that was given as such
    arcs: Places = field(default_factory=lambda: np.empty((2, 0), dtype=np.int64))
    names: list[str] = field(default_factory=list)  # labels of nodes, perhaps empty, or names of columns
    bonds: list[str] | None = None  # of each arc of a molecule: -, =, # or :
    # a row for each place of a series or set; of a vector, its numbers and the means of the columns
    values: Floats = field(default_factory=lambda: np.empty((0, 1)))
    links: Sequence[tuple[int, int, float]] = ()  # as in `Found`; only the view of x holds them
    stored: Places | None = None  # columns of a sparse row that are not 0, ascending


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
    return np.asarray(values.toarray() if sp.issparse(values) else values, dtype=np.float64)


def as_text(letters: str | bytes) -> str:
    return letters.decode("latin-1") if isinstance(letters, bytes) else letters


def _bonds(graph: GraphBatch, names: list[str]) -> list[str] | None:
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


def is_molecule(view: View) -> bool:
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
    return "; ".join(filter(None, notes))


def sides(e: Explanation) -> list[tuple[str, View, Floats | None, Floats]]:
    """Return (name, view, shares, strengths) for x and, if there is a y, for y.

    Shares are the amounts that the parts add at each place, (n_places,), or, for series of several channels, at each
    place of each channel, (n_places, n_channels). Strengths are shares scaled to [-1, 1], with the sign changed for
    distances: places of positive strength make the objects similar or support the decision.
    """
    found = []
    for name, view, shares in (("x", e._x, e.shares_x), ("y", e._y, e.shares_y)):
        if view is None:
            continue
        strengths = np.zeros(view.n_places)
        if shares is None and name == "x" and e.left_out is not None:
            shares = e.left_out.amounts
        if shares is not None and len(shares) == view.n_places and np.abs(shares).max(initial=0.0):
            strengths = sign_of(e) * shares / np.abs(shares).max()
        found.append((name, view, shares, strengths))
    return found


def curves(e: Explanation) -> list[tuple[str, Floats, Floats]]:
    """Return (name, values, strengths) of each channel of x if an explanation is of one series; [] otherwise."""
    drawn = sides(e)
    if len(drawn) != 1 or drawn[0][1].kind != "series":
        return []
    name, view, _, strengths = drawn[0]
    strengths = strengths.reshape(view.n_places, -1)  # one column for all channels, or one for each
    p, width = view.values.shape[1], strengths.shape[1]
    names = [name] if p == 1 else [f"{name}[:, {channel}]" for channel in range(min(p, _MOST_CHANNELS))]
    return [(label, view.values[:, c], strengths[:, c % width]) for c, label in enumerate(names)]


def sign_of(e: Explanation) -> float:
    """Return -1 for a distance or strangeness, because its positive parts make objects unlike; otherwise 1."""
    return -1.0 if "distance" in e.kind or e.kind == "strangeness" else 1.0


def links_of(e: Explanation) -> tuple[list[tuple[int, int, float]], float]:
    """Return the links of x, and their largest absolute amount (1 if all are 0)."""
    links = [] if e._x is None or e._y is None else list(e._x.links)
    return links, max((abs(value) for *_, value in links), default=0.0) or 1.0


def positions(n: int, arcs: npt.NDArray[np.int64]) -> Floats:
    """Return positions in [0, 1] x [0, 1] for the n nodes of a graph, shape (n, 2); `arcs` has shape (2, n_arcs)."""
    if n <= 1:
        return np.full((n, 2), 0.5)
    weights = np.ones(arcs.shape[1])
    D = shortest_path(sp.csr_array((weights, (arcs[0], arcs[1])), shape=(n, n)), directed=False, unweighted=True)
    reach = D[np.isfinite(D)].max()
    D[~np.isfinite(D)] = reach + 2  # so that components are drawn side by side
    P = _scaled(D)
    with np.errstate(divide="ignore"):
        W = np.where(D > 0, 1.0 / D**2, 0.0)
    V = -W
    np.fill_diagonal(V, W.sum(axis=1))
    inverse = np.linalg.pinv(V)
    for _ in range(_ROUNDS):
        gaps = np.linalg.norm(P[:, None] - P[None], axis=2)
        B = -W * D / np.where(gaps > 1e-9, gaps, 1.0)
        B[gaps <= 1e-9] = 0.0
        np.fill_diagonal(B, 0.0)
        np.fill_diagonal(B, -B.sum(axis=1))
        P = inverse @ (B @ P)
    P -= P.min(axis=0)
    P /= P.max() or 1.0
    centred: Floats = P + (1.0 - P.max(axis=0)) / 2
    return centred


def _scaled(D: Floats) -> Floats:
    """Return (n, 2) coordinates by classical scaling of (n, n) distances `D`; small shifts separate equal points."""
    n = len(D)
    centre = np.eye(n) - 1.0 / n
    values, vectors = np.linalg.eigh(-0.5 * centre @ D**2 @ centre)
    P = vectors[:, -2:][:, ::-1] * np.sqrt(np.maximum(values[-2:][::-1], 0.0))
    angles = 2.399963 * np.arange(n)  # the golden angle
    return P + 0.05 * np.column_stack([np.cos(angles), np.sin(angles)])


def shade(strength: float) -> str:
    """Return a shade of blue if `strength` is positive, of orange if negative, white if 0, as ``#rrggbb``."""
    # Weak places stay visible, and black letters stay readable on the full colour.
    amount = 0.0 if strength == 0 else 0.12 + 0.68 * min(1.0, abs(strength))
    return "#" + "".join(f"{round(255 + amount * (c - 255)):02x}" for c in (_FOR if strength >= 0 else _AGAINST))


def full(strength: float) -> str:
    """Return the colour of `shade` in full."""
    return "#" + "".join(f"{c:02x}" for c in (_FOR if strength >= 0 else _AGAINST))


def _drawn(view: View, strength: Floats, canvas: str, pixels: float) -> Any:
    """Draw a molecule, coloured by the `strength` of atoms on an RDKit canvas of class `canvas`."""
    from rdkit.Chem.Draw import rdMolDraw2D

    molecule = in_the_plane(view.names, bonds_of(view))
    drawer = getattr(rdMolDraw2D, canvas)(-1, -1)
    options = drawer.drawOptions()
    options.useBWAtomPalette()
    options.scalingFactor, options.padding = pixels, 0.06
    options.bondLineWidth, options.scaleBondWidth = round(2 * pixels / _PIXELS), False
    options.minFontSize = options.maxFontSize = round(12 * pixels / _PIXELS)
    options.highlightRadius, options.highlightBondWidthMultiplier = 0.38, 6
    options.prepareMolsBeforeDrawing = False
    atoms = {v: _rgb(float(s)) for v, s in enumerate(strength) if s}
    bonds = {
        molecule.GetBondBetweenAtoms(u, v).GetIdx(): _rgb(float(strength[u] + strength[v]) / 2)
        for u, v, _ in bonds_of(view)
        if strength[u] and strength[v]
    }
    colours = {"highlightAtomColors": atoms, "highlightBondColors": bonds, "highlightAtomRadii": {}}
    drawer.DrawMolecule(molecule, highlightAtoms=[*atoms], highlightBonds=[*bonds], **colours)
    drawer.FinishDrawing()
    return drawer


def _rgb(strength: float) -> tuple[float, float, float]:
    red, green, blue = bytes.fromhex(shade(strength)[1:])
    return red / 255, green / 255, blue / 255


def svg(view: View, strength: Floats, tips: list[str]) -> str | None:
    """Return an SVG drawing of a molecule with a tooltip for each atom, or None if RDKit is not installed."""
    if not has_rdkit():
        return None
    drawer = _drawn(view, strength, "MolDraw2DSVG", _PIXELS)
    text: str = drawer.GetDrawingText()
    text = text[text.index("<svg") :].rstrip().removesuffix("</svg>")
    places = [drawer.GetDrawCoords(v) for v in range(view.n_places)]
    spots = "".join(
        f"<circle cx='{p.x:.1f}' cy='{p.y:.1f}' r='9' fill='#fff' fill-opacity='0'><title>{tip}</title></circle>"
        for p, tip in zip(places, tips, strict=True)
    )
    return f"{text}{spots}</svg>"


def picture(view: View, strength: Floats) -> npt.NDArray[Any] | None:
    if not has_rdkit():
        return None
    from matplotlib.image import imread

    return np.asarray(imread(BytesIO(_drawn(view, strength, "MolDraw2DCairo", 3 * _PIXELS).GetDrawingText())))


class Row(NamedTuple):
    """A row of a table; `size` is the sum of the absolute amounts in it.

    `mark` is the sign of a part below letters, "-" for a group, and empty for rows that are neither.
    """

    name: str
    amount: float
    size: float
    in_x: str = ""
    in_y: str = ""
    mark: str = ""

    def at(self, columns: list[str]) -> list[str]:
        return [self.in_x if column == "in x" else self.in_y for column in columns]


class Table(NamedTuple):
    """Rows whose amounts add up to the value, except for rounding."""

    heading: str  # by what the value is split; empty if this is the only table
    head: str  # of the column of names
    percentages: str  # head of the column of percentages
    rows: list[Row]
    whole: float  # sum of the sizes of all rows, of which percentages are shares

    @property
    def places(self) -> list[str]:
        """The heads of the columns of places in which a part has a place."""
        return [column for column in ("in x", "in y") if any(any(row.at([column])) for row in self.rows)]


def tables(e: Explanation) -> list[Table]:
    """Return the tables of stretches left out, of the groups of x and of y, if these are shown, and of the parts."""
    found, made = [], []
    if e.left_out is not None and e.left_out.parts:
        rows = [_row(part, _mark(k, _ROWS)) for k, part in enumerate(e.left_out.parts)]
        kind = "" if e._x is None else e._x.kind
        how, head = _LEFT_OUT.get(kind, _LEFT_OUT["strings"])
        heading = f"by how much {e.left_out.of} falls if {how} (effects overlap, so they do not add up)"
        made.append(Table(heading, head, "", rows, 0.0))
    head = "stretch" if e._x is not None and e._x.kind == "strings" else "substructure"
    for side, of in (("in_x", "" if e._y is None else " of x"), ("in_y", " of y")):
        groups = [part for part in e._shown_groups if len(getattr(part, side))]
        few = [part.contribution for part in groups[MOST_GROUPS:]]
        left = e.value - sum(part.contribution for part in (*groups, *e._intercept))
        rows = [_row(part, "-") for part in (*groups[:MOST_GROUPS], *e._intercept)]
        rows += _left(e, len(few), "smaller piece", sum(few), sum(map(abs, few)), left, _UNEXPLAINED)
        if groups:
            found.append((f"{head}{of}", head, rows))
    if e.parts or not (made or e.left_out):
        found.append(("part", "part", [*(_row(part, _mark(k)) for k, part in enumerate(e.parts)), *rest(e)]))
    for by, name, rows in found:
        whole = sum(row.size for row in rows)
        one_sign = abs(sum(row.amount for row in rows)) >= (1 - _ROUNDING) * whole
        heading = f"the {e.kind} by {by} (each table splits all of it)" if len(found) > 1 else ""
        heading = heading or f"the {e.kind} by part" * bool(made)
        made.append(Table(heading, name, "%" if one_sign else "% of sum |adds|", rows, whole))
    return made


def _row(part: Part, mark: str) -> Row:
    return Row(part.name, part.contribution, abs(part.contribution), runs(part.in_x), runs(part.in_y), mark)


def rest(e: Explanation) -> list[Row]:
    """Return the last rows of the table of parts: parts that are not listed, and the unexplained amount."""
    size = max(abs(e.omitted), (1 - e.listed_share) * e.absolute_sum)
    return _left(e, e.n_omitted, "smaller part", e.omitted, size, e.unexplained, _UNEXPLAINED)


def _left(e: Explanation, n: int, what: str, omitted: float, size: float, left: float, name: str) -> list[Row]:
    """Return a row for `n` parts that are not listed, and one for an amount that is in none, unless it is 0."""
    rows = [Row(counted(n, what), omitted, size)] if n else []
    share = abs(left) / max(abs(e.value), *(abs(part.contribution) for part in e.parts), 1e-12)
    if share > NOTHING:
        rows.append(Row("rounding" if share <= _ROUNDING else name, left, abs(left)))
    return rows


def render_text(e: Explanation, rest_in: str = "") -> str:
    lines = [f"{visible(e.title)}: {number(e.value)}"]
    for table in tables(e):
        lines += ["", *filter(None, [visible(table.heading)]), *_lines(table)]
    lines += [*_strings(e), *_series(e)]
    if note := whole_note(e, rest_in):
        lines += ["", f"note: {visible(note)}"]
    if e.nearest is not None:
        lines += ["", render_text(e.nearest, rest_in)]
    return "\n".join(lines)


def whole_note(e: Explanation, rest_in: str = "") -> str:
    """Return the note, with the share of the listed parts and, if it is small, where to see the rest: `rest_in`."""
    kind = "" if e._x is None else e._x.kind
    if e.listed_share >= FEW:
        return e.note
    table, n = tables(e)[-1], len(e.parts) - len(e._intercept)
    share = number(float(f"{100 * sum(row.size for row in table.rows[:n]) / table.whole:.2g}"))
    whole = "value" if table.percentages == "%" else "sum of absolute amounts"
    told = f"the {counted(n, 'listed part')} {'holds' if n == 1 else 'hold'} {share} % of the {whole}"
    if e.shares_x is None:
        if kind != "strings" or e.listed_share >= _LITTLE:
            return e.note
        told += (
            ", and the parts of this model have no places in x; a model with a kernel of substrings, such as "
            "MinMax(Spectrum(3)), splits its decision by stretches (similia fit DATA --kernel 'MinMax(Spectrum(3))')"
        )
    elif kind in ("strings", "graphs") or (kind == "series" and e._y is None):
        usual = "shares_x, to_html() and logo()" if kind == "strings" else "shares_x and to_html()"
        told += f"; {rest_in} shows where all of it lies" if rest_in else f"; {usual} show where all of it lies"
    else:
        return e.note
    return one_note(e.note, told)


def _lines(table: Table) -> list[str]:
    cells = [["", table.head, "adds", table.percentages, *table.places]]
    for row in table.rows:
        mark, name = row.mark.replace("-", ""), shortened(row.name, 78)
        cells.append([mark, name, number(row.amount), percent(row.size, table.whole), *row.at(table.places)])
    widths = [1, *(max(map(len, column)) for column in [*zip(*cells, strict=True)][1:])]
    return [_aligned(line, widths) for line in cells]


def _aligned(row: list[str], widths: list[int]) -> str:
    """Return the cells of a row as a line; the columns of numbers are right-aligned."""
    cells = zip(row, widths, strict=True)
    return "  ".join(f"{cell:{'>' if c in (2, 3) else '<'}{width}}" for c, (cell, width) in enumerate(cells)).rstrip()


def _strings(e: Explanation) -> list[str]:
    """Return the strings in lines; below each letter stands the mark (as in the table) of the largest part there."""
    lines: list[str] = []
    marked = False
    for name, view, side in (("x", e._x, "in_x"), ("y", e._y, "in_y")):
        if view is None or view.kind != "strings" or not view.n_places:
            continue
        marks = np.full(view.n_places, " ")
        rows = [(_mark(k), part) for k, part in enumerate(e.parts)]
        if name == "x" and e.left_out is not None:
            rows += [(_mark(k, _ROWS), part) for k, part in enumerate(e.left_out.parts)]
        for mark, part in reversed(rows):
            marks[getattr(part, side)] = mark
        text, below = visible_letters(view.text[:_LONGEST_STRING]), "".join(marks[:_LONGEST_STRING].tolist())
        lines.append("")
        for start in range(0, len(text), _WIDTH):
            row = slice(start, start + _WIDTH)
            lines += [f"{name} {start:>5}  {text[row]}", f"         {below[row]}".rstrip()]
        if len(view.text) > _LONGEST_STRING:
            lines.append(f"         ... {len(view.text) - _LONGEST_STRING} more letters")
        marked |= bool((marks != " ").any())
    return [*lines, "", "below a letter: the row of its largest listed part"] if marked else lines


def _series(e: Explanation) -> list[str]:
    """Return a row of bars for each channel of x; + or - below marks points that add more than the mean amount."""
    lines: list[str] = []
    for name, values, strengths in curves(e):
        if not strengths.any():
            return []
        n = len(values)
        bounds = np.linspace(0, n, min(n, _WIDTH) + 1).astype(np.int64)
        height, strength = (np.add.reduceat(a, bounds[:-1]) / np.diff(bounds) for a in (values, strengths))
        bars = (height - height.min()) / (float(np.ptp(height)) or 1.0) * (len(_BARS) - 1)
        strong = np.abs(strengths).mean()
        signs = "".join("+" if s > strong else "-" if s < -strong else " " for s in strength.tolist())
        lines += ["", f"{name:<9}{''.join(_BARS[round(bar)] for bar in bars.tolist())}", f"{'':9}{signs}".rstrip()]
    return lines


def _mark(k: int, marks: str = _MARKS) -> str:
    return marks[k] if k < len(marks) else "+"


def runs(places: Places) -> str:
    """Return ascending places as text, consecutive ones joined: ``3-5, 9``."""
    found = [run for run in np.split(places, np.flatnonzero(np.diff(places) > 1) + 1) if len(run)]
    shown = [f"{run[0]}" if run[0] == run[-1] else f"{run[0]}-{run[-1]}" for run in found]
    more = len(shown) - _MOST_RUNS
    return ", ".join(shown[:_MOST_RUNS]) + (f" and {more} more" if more > 0 else "")


def percent(size: float, whole: float) -> str:
    share = 100 * size / whole if whole else 0.0
    return "" if not whole else f"{share:.0f}" if share >= 1 or share == 0 else f"{share:.1g}"


def shortened(text: str, most: int) -> str:
    text = visible(text)
    return text if len(text) <= most else text[: most - 3] + "..."


def visible(text: str) -> str:
    return visible_letters(text.replace("\n", " ").replace("\t", " "))


def visible_letters(text: str) -> str:
    """Replace each unprintable character by U+FFFD, so that the length stays the same."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
