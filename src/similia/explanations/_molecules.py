"""Molecules in explanations: drawn by RDKit, and taken apart into functional groups, rings and chains.

A graph is a molecule if its node labels are symbols of elements and its edge labels are the bonds ``-``, ``=``, ``#``
and ``:`` that `similia.objects.from_smiles` writes. Hydrogens and charges are not in the graph, and not in the drawing.

Each atom belongs to one group: an aromatic ring system, a functional group, or a chain or ring of the other carbons.
What the atoms of the groups add therefore sums up to what all atoms add. Functional groups are connected heteroatoms,
with carbons that have a double or triple bond outside aromatic rings, or two heteroatoms beside them.

Paper: Ertl, "An algorithm to identify functional groups in organic molecules", J. Cheminformatics 9:36, 2017.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.explanations._colours import shade
from similia.explanations._views import View
from similia.objects.molecules import has_rdkit, in_the_plane

Group = tuple[str, npt.NDArray[np.int64]]
_PIXELS = 24.0  # for each unit of RDKit's coordinates, of which a bond has 1.5
# Functional groups: elements and bonds inside, hydrogens left out; "O1" is an oxygen with one neighbour.
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


def is_molecule(view: View | None) -> bool:
    """Whether a view shows a molecule with its bonds."""
    return view is not None and view.kind == "graph" and view.bonds is not None and view.n_places > 0


def groups(view: View) -> list[Group]:
    """Return the functional groups, aromatic rings and carbon chains of a molecule, in the order of their atoms."""
    bonds = _bonds(view)
    names = view.names or []
    near: list[dict[int, str]] = [{} for _ in names]
    for u, v, bond in bonds:
        near[u][v] = near[v][u] = bond
    aromatic = {v for u_v in bonds if u_v[2] == ":" for v in u_v[:2]}
    hetero = {v for v, name in enumerate(names) if name not in ("C", "H")}
    marked = {v for v in range(len(names)) if v not in aromatic and _is_functional(v, names, near, hetero, aromatic)}
    found: list[Group] = []
    for kind, members in (("ring", aromatic), ("group", marked), ("chain", {*range(len(names))} - aromatic - marked)):
        pieces = _connected(members, near, ":" if kind == "ring" else "-=#:")
        found += [(_name(kind, atoms, names, near), np.array(atoms, dtype=np.int64)) for atoms in pieces]
    return sorted(found, key=lambda group: int(group[1][0]))


def _bonds(view: View) -> list[tuple[int, int, str]]:
    """Return each bond once, as (lower atom, higher atom, kind)."""
    arcs = np.empty((2, 0), np.int64) if view.arcs is None else view.arcs
    found = {(min(u, v), max(u, v)): b for (u, v), b in zip(arcs.T.tolist(), view.bonds or [], strict=True) if u != v}
    return sorted((u, v, bond) for (u, v), bond in found.items())


def _is_functional(v: int, names: list[str], near: list[dict[int, str]], hetero: set[int], aromatic: set[int]) -> bool:
    if v in hetero:
        return True
    if names[v] != "C":
        return False
    multiple = any(bond in "=#" for bond in near[v].values())
    return multiple or sum(u in hetero and u not in aromatic for u in near[v]) > 1


def _connected(members: set[int], near: list[dict[int, str]], along: str) -> list[list[int]]:
    """Return the connected pieces of some atoms, ascending, along bonds of some kinds."""
    left, pieces = set(members), []
    for start in sorted(members):
        if start not in left:
            continue
        left.remove(start)
        piece, edge = [start], [start]
        while edge:
            v = edge.pop()
            for u, bond in near[v].items():
                if u in left and bond in along:
                    left.remove(u)
                    piece.append(u)
                    edge.append(u)
        pieces.append(sorted(piece))
    return pieces


def _name(kind: str, atoms: list[int], names: list[str], near: list[dict[int, str]]) -> str:
    inside = {(u, v): bond for u in atoms for v, bond in near[u].items() if u < v and v in set(atoms)}
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


def _drawn(view: View, strength: npt.NDArray[np.float64], canvas: str, pixels: float) -> Any:
    """Return RDKit's canvas with the molecule, atoms and bonds in the colours of what they add."""
    from rdkit.Chem.Draw import rdMolDraw2D

    molecule = in_the_plane(view.names or [], _bonds(view))
    drawer = getattr(rdMolDraw2D, canvas)(-1, -1)
    options = drawer.drawOptions()
    options.useBWAtomPalette()
    options.scalingFactor, options.padding = pixels, 0.06
    options.bondLineWidth, options.scaleBondWidth = round(2 * pixels / _PIXELS), False
    options.minFontSize = options.maxFontSize = round(12 * pixels / _PIXELS)
    options.highlightRadius, options.highlightBondWidthMultiplier = 0.38, 6
    options.prepareMolsBeforeDrawing = False
    tints = {v: _rgb(float(s)) for v, s in enumerate(strength) if s}
    bonds = {
        molecule.GetBondBetweenAtoms(u, v).GetIdx(): _rgb(float(strength[u] + strength[v]) / 2)
        for u, v, _ in _bonds(view)
        if strength[u] and strength[v]
    }
    drawer.DrawMolecule(
        molecule,
        highlightAtoms=[*tints],
        highlightBonds=[*bonds],
        highlightAtomColors=tints,
        highlightBondColors=bonds,
        highlightAtomRadii={},
    )
    drawer.FinishDrawing()
    return drawer


def _rgb(strength: float) -> tuple[float, float, float]:
    colour = shade(strength)
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue


def svg(view: View, strength: npt.NDArray[np.float64], tips: list[str]) -> str | None:
    """Return a drawing of a molecule as SVG, with a text for each atom, or None where RDKit is not installed."""
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


def picture(view: View, strength: npt.NDArray[np.float64]) -> npt.NDArray[Any] | None:
    """Return a drawing of a molecule as an array of colours, or None where RDKit is not installed."""
    if not has_rdkit():
        return None
    from io import BytesIO

    from matplotlib.image import imread

    return np.asarray(imread(BytesIO(_drawn(view, strength, "MolDraw2DCairo", 3 * _PIXELS).GetDrawingText())))
