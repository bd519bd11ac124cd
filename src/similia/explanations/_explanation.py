"""What `explain` returns: a value as a sum of named parts, each with its places in the objects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.explanations._views import View

Places = npt.NDArray[np.int64]
_NOTHING = 1e-12  # of the whole: what rounding leaves


@dataclass(frozen=True, eq=False)
class Part:
    """One reason for a similarity, a distance or a decision.

    Attributes
    ----------
    name : str
        What it is: a k-mer, a tree of labels, an edit, a step of a warping path, a column.
    contribution : float
        What it adds to the value.
    in_x, in_y : ndarray of int64
        Where it is, counted from 0, ascending: letters of a string, nodes of a graph, time points of a series,
        points of a set. Empty where it has no place, or there is no y.

    Examples
    --------
    >>> from similia.explanations import explain
    >>> from similia.distances import Levenshtein
    >>> explain(Levenshtein(), "GATTACA", "GATACA").parts[0]
    Part(name="'T' in x only", contribution=1.0, in_x=array([3]), in_y=array([], dtype=int64))
    """

    name: str
    contribution: float
    in_x: Places
    in_y: Places


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """A value taken apart: ``value == sum(part.contribution for part in parts) + residual`` up to rounding.

    Attributes
    ----------
    value : float
        The similarity, distance or decision that is explained, in the scale in which its parts add; `note` says which.
    kind : str
        ``"similarity"``, ``"log similarity"``, ``"distance"``, ``"squared distance"``, ``"decision"`` or
        ``"prediction"``.
    parts : list of Part
        At most `top` parts, those of the largest absolute contribution first.
    residual : float
        What the listed parts leave out: `omitted` and `unexplained` together.
    omitted : float
        Sum of the parts that are known but not listed, `n_omitted` of them.
    unexplained : float
        What no part explains: rounding where the explanation is exact, not shown below 1e-12 of the whole.
    n_omitted : int
        Number of parts that are not listed.
    title : str
        One line: what was explained by what.
    note : str
        How to read the numbers, empty where they need no word.
    shares_x, shares_y : ndarray of float64, or None
        For each place of x (letter, node, time point, point of a set) what all parts together, listed or not, add to
        the value there: a part is shared equally among its occurrences, and each of them among its places.

    Notes
    -----
    In a notebook an explanation shows itself as `to_html`.

    Examples
    --------
    >>> from similia.explanations import explain
    >>> from similia.kernels import Spectrum
    >>> found = explain(Spectrum(k=3), "GATTACA", "ATTACC")
    >>> found
    <Explanation of a similarity of 3 in 3 parts, 0 left>
    >>> print(found.to_text())
    similarity of x and y by Spectrum(): 3
    <BLANKLINE>
       part      adds   %  in x  in y
    1  ATT          1  33  1-3   0-2
    2  TTA          1  33  2-4   1-3
    3  TAC          1  33  3-5   2-4
    <BLANKLINE>
    x     0  GATTACA
              11123
    <BLANKLINE>
    y     0  ATTACC
             11123
    """

    value: float
    kind: str
    parts: list[Part]
    residual: float
    omitted: float = 0.0
    unexplained: float = 0.0
    n_omitted: int = 0
    title: str = ""
    note: str = ""
    shares_x: npt.NDArray[np.float64] | None = None
    shares_y: npt.NDArray[np.float64] | None = None
    _x: View | None = field(default=None)
    _y: View | None = field(default=None)

    @property
    def groups(self) -> list[Part]:
        """Whole substructures of molecules, the largest contribution first; empty for other objects.

        Each atom belongs to one functional group, aromatic ring system, or chain or ring of other carbons. What a
        group adds is the sum of `shares_x` (or `shares_y`) over its atoms, so that the groups of one molecule add up
        to what all its atoms do. Groups that add nothing are left out.
        """
        from similia.explanations._molecules import groups, is_molecule

        found = []
        for side, view, shares in ((0, self._x, self.shares_x), (1, self._y, self.shares_y)):
            if view is None or shares is None or not is_molecule(view) or len(shares) != view.n_places:
                continue
            for name, atoms in groups(view):
                places = [atoms, np.empty(0, dtype=np.int64)]
                found.append(Part(name, float(shares[atoms].sum()), places[side], places[1 - side]))
        found = [part for part in found if abs(part.contribution) > _NOTHING * abs(self.value)]
        return sorted(found, key=lambda part: -abs(part.contribution))

    def to_text(self) -> str:
        """Return the explanation for a terminal: a table of parts, and strings with the parts' numbers below.

        Of molecules, a table of whole substructures stands above it (`groups`).

        Returns
        -------
        str
            Lines of at most about 100 characters, without control characters.
        """
        from similia.explanations._text import as_text

        return as_text(self)

    def to_html(self) -> str:
        """Return the explanation as a fragment of HTML: inline styles and drawings, no script, all text escaped.

        Molecules are drawn by RDKit, if it is installed.

        Returns
        -------
        str
        """
        from similia.explanations._html import as_html

        return as_html(self)

    def plot(self, ax: Any = None) -> Any:
        """Draw the explanation with matplotlib.

        Strings are coloured by what each letter adds, graphs by what each node adds (molecules are drawn by RDKit, if
        it is installed), series are aligned; bars show the parts, and above them whole substructures of molecules.
        Blue adds to the value and orange takes from it, in shades that the colour-blind can tell.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure if not given.

        Returns
        -------
        matplotlib Axes
        """
        from similia.explanations._plots import plot

        return plot(self, ax)

    def _repr_html_(self) -> str:
        return self.to_html()

    def __repr__(self) -> str:
        return (
            f"<Explanation of a {self.kind} of {self.value:.6g} in {len(self.parts)} parts, {self.residual:.3g} left>"
        )
