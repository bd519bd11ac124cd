r"""Colours, layouts of graphs and RDKit's pictures of molecules, for notebooks and for matplotlib.

Graphs are laid out so that distances between drawn nodes match path lengths d_ij: classical scaling of the path
lengths, then stress majorisation, which finds positions p_i that minimise sum_ij w_ij (||p_i - p_j|| - d_ij)^2 with
w_ij = d_ij^-2. The layout is deterministic. Cost: n^3 once and n^2 for each of 60 rounds.

Paper: Gansner, Koren & North, "Graph drawing by stress majorization", Graph Drawing 2004.
"""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from similia.explanations._views import View, bonds_of
from similia.objects.molecules import has_rdkit, in_the_plane

if TYPE_CHECKING:
    from similia.explanations._explanation import Explanation

_ROUNDS = 60
MOST_CHANNELS = 12  # maximum number of channels of a series to draw
MOST_NODES = 400  # larger graphs are not drawn: the picture would be unreadable
_FOR, _AGAINST, GREY = (0, 114, 178), (213, 94, 0), "#9a9a9a"  # Okabe & Ito, "Color universal design", 2008
_PIXELS = 24.0  # pixels per unit of RDKit's coordinates; a bond is 1.5 units long
Floats = npt.NDArray[np.float64]


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
    names = [name] if p == 1 else [f"{name}[:, {channel}]" for channel in range(min(p, MOST_CHANNELS))]
    return [(label, view.values[:, c], strengths[:, c % width]) for c, label in enumerate(names)]


def sign_of(e: Explanation) -> float:
    """Return -1 if a distance is explained, because its positive parts make objects unlike; otherwise 1."""
    return -1.0 if "distance" in e.kind else 1.0


def links_of(e: Explanation) -> tuple[list[tuple[int, int, float]], float]:
    """Return matched places as (place in x, place in y, amount), and the largest absolute amount (1 if all are 0)."""
    links = [] if e._x is None or e._y is None else list(e._x.links)
    return links, max((abs(value) for *_, value in links), default=0.0) or 1.0


def positions(n: int, arcs: npt.NDArray[np.int64]) -> Floats:
    """Return positions in [0, 1] x [0, 1] for the n nodes of a graph, shape (n, 2); `arcs` has shape (2, n_arcs)."""
    if n <= 1:
        return np.full((n, 2), 0.5)
    weights = np.ones(arcs.shape[1])
    D = shortest_path(csr_array((weights, (arcs[0], arcs[1])), shape=(n, n)), directed=False, unweighted=True)
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
    """Return blue if `strength` is at least 0, otherwise orange, at full colour, as ``#rrggbb``."""
    return "#" + "".join(f"{c:02x}" for c in (_FOR if strength >= 0 else _AGAINST))


def _drawn(view: View, strength: Floats, canvas: str, pixels: float) -> Any:
    """Draw a molecule, coloured by the `strength` of atoms, on an RDKit canvas of class `canvas`; return the canvas."""
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
    """Return a picture of a molecule as an array of pixels, or None if RDKit is not installed."""
    if not has_rdkit():
        return None
    from matplotlib.image import imread

    return np.asarray(imread(BytesIO(_drawn(view, strength, "MolDraw2DCairo", 3 * _PIXELS).GetDrawingText())))
