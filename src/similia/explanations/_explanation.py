"""The result of `explain`: a value as a sum of named parts, each with its places in the objects."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.hashing import GOLDEN
from similia.explanations._views import FEW, NOTHING, Places, View, groups, is_molecule, render_text
from similia.objects.graph_batch import hash_labels

Floats = npt.NDArray[np.float64]
Described = tuple[str, Places, Places]  # name of a part, and its places in x and y
Link = tuple[int, int, float]  # place in x, place in y, amount of the match
NOWHERE: Places = np.empty(0, dtype=np.int64)
INTERCEPT = "intercept"


class NoParts(TypeError):
    """What is to be explained, a kernel, a distance or a decision, is not a sum of parts."""


@dataclass(frozen=True, eq=False)
class Part:
    """One reason for a similarity, a distance or a decision.

    Attributes
    ----------
    name : str
        Name of the part, such as a substring, the tree of labels around a node, an edit, a step of a warping path or a
        column.
    contribution : float
        Amount that the part adds to the explained value.
    in_x, in_y : ndarray of int64
        Positions of the part in the explained objects x and y: indices, from 0 and in ascending order, of the letters
        of a string, nodes of a graph, time points of a series, points of a set or, in `left_out`, columns of a vector.
        Both arrays are empty if the part has no position. `in_y` is empty, too, if only one object is explained.

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


@dataclass(frozen=True, eq=False)
class LeftOut:
    """What a decision loses if places of an object are left out.

    Attributes
    ----------
    of : str
        What is lost, such as "the decision".
    parts : list of Part
        Stretches of a string or series, nodes of a graph, points of a set, or columns of a vector; the contribution is
        the decision for the whole object minus that without them.
    amounts : ndarray of float64, shape (n_places,)
        Mean loss over the windows that cover each place; 0 for a column of a long vector that was not left out.
    """

    of: str
    parts: list[Part]
    amounts: Floats


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """A value split into parts: ``value == sum(part.contribution for part in parts) + residual`` up to rounding.

    Attributes
    ----------
    value : float
        The explained number: a similarity or distance of two objects x and y, or a decision or prediction for an object
        x. For some kernels and distances, `value` is the logarithm or the square of the similarity or distance, because
        the parts add up to this logarithm or square; see `kind` and `note`.
    kind : str
        ``"similarity"``, ``"log similarity"``, ``"distance"``, ``"squared distance"``, ``"decision"``,
        ``"prediction"`` or, of a `similia.OutlierDetector`, ``"strangeness"``.
    parts : list of Part
        At most `top` parts (a parameter of `explain`), the largest absolute contribution first; then the intercept of
        a model, if the model has one.
    residual : float
        `value` minus the contributions of the listed parts; equal to the sum of `omitted` and `unexplained`.
    omitted : float
        Sum of the contributions of the parts that are not in `parts`.
    unexplained : float
        Amount that no part explains: only rounding errors if the explanation is exact. Tables do not show amounts below
        1e-12 of the value.
    n_omitted : int
        Number of parts that add something but are not in `parts`.
    absolute_sum : float
        Sum of the absolute amounts of all parts, listed or not, without the intercept.
    title : str
        One line that names the explained value and the model.
    note : str
        Remarks on how to read the numbers; empty if there are none.
    shares_x, shares_y : ndarray of float64, or None
        For each place of x and of y (letter, node, time point, point of a set), the amount that all parts, listed or
        not, add there. The amount of a part is divided equally among its occurrences, and the amount of an occurrence
        equally among its places. The shape is (n_places,). There is one exception: if x is a series of several channels
        and its decision is split over time points and channels, the shape is (n_time_points, n_channels).
    nearest : Explanation or None
        Only for `similia.learn.KNeighborsClassifier` and `KNeighborsRegressor`: the explanation of the similarity or
        distance between x and the nearest training object. None if this similarity or distance has no parts. `to_text`
        and `to_html` show it below the other parts.
    left_out : LeftOut or None
        Only if a decision or prediction has no parts, or if its parts have no places in x; distances to training
        objects, for example, have no places in x. `left_out.parts` lists the stretches of a string or series, the
        nodes, the points or the columns without which the decision changes most. The contribution of such a part is the
        decision for x minus the decision for x without the part; these contributions do not add up to `value`. In a
        series, a straight line replaces the stretch. In a vector, the mean of the column over the training objects that
        the model keeps replaces the value. To find the parts, `explain` leaves out groups of one or more neighbouring
        places (of a vector, single columns), and computes this difference for each group. `left_out.amounts` holds, for
        each place, the mean of the differences for the groups that contain the place.

    Notes
    -----
    Notebooks display the output of `to_html`.

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
    <BLANKLINE>
    below a letter: the row of its largest listed part
    """

    value: float
    kind: str
    parts: list[Part]
    residual: float
    omitted: float = 0.0
    unexplained: float = 0.0
    n_omitted: int = 0
    absolute_sum: float = 0.0
    title: str = ""
    note: str = ""
    shares_x: Floats | None = None
    shares_y: Floats | None = None
    nearest: Explanation | None = None
    left_out: LeftOut | None = None
    _x: View | None = None
    _y: View | None = None
    _has_intercept: bool = False

    @property
    def listed_share(self) -> float:
        """Return the share of the listed parts in `absolute_sum`."""
        listed = sum(abs(part.contribution) for part in self.parts if part not in self._intercept)
        return listed / self.absolute_sum if self.n_omitted and self.absolute_sum else 1.0

    @property
    def _intercept(self) -> list[Part]:
        return self.parts[-1:] if self._has_intercept else []

    @property
    def groups(self) -> list[Part]:
        """Return substructures of molecules and stretches of strings, the largest contribution first.

        Each atom belongs to one group: a functional group, an aromatic ring system, or a chain or ring of other
        carbons. Each letter belongs to one stretch, a run of letters whose amounts in `shares_x` (or `shares_y`) have
        the same sign and are all above, or all below, the mean absolute amount. The contribution of a group is the sum
        of the amounts of its atoms or letters. So the contributions of all groups of x sum to ``shares_x.sum()``, and
        the contributions of all groups of y to ``shares_y.sum()``. Groups that add nothing are left out. Objects of
        other kinds have no groups.
        """
        found = []
        for view, shares in ((self._x, self.shares_x), (self._y, self.shares_y)):
            if view is None or shares is None or len(shares) != view.n_places:
                continue
            for name, run in _groups(view, shares):
                places = (run, NOWHERE) if view is self._x else (NOWHERE, run)
                found.append(Part(name, float(shares[run].sum()), *places))
        found = [part for part in found if abs(part.contribution) > NOTHING * abs(self.value)]
        return sorted(found, key=lambda part: -abs(part.contribution))

    @property
    def _shown_groups(self) -> list[Part]:
        """Return the groups that tables show: of strings, only if the listed parts hold little."""
        strings = self._x is not None and self._x.kind == "strings"
        return [] if strings and self.listed_share >= FEW else self.groups

    def to_text(self, rest_in: str = "") -> str:
        """Return the explanation as text: a table of parts, then, for strings, each string with marks below it.

        If the listed parts make up less than half of `absolute_sum`, a note may say where to see the amounts of all
        parts. By default, the note names the attribute `shares_x` and the methods that draw it. If you show these
        amounts elsewhere, such as on a page, pass the name of that place as `rest_in`; the note then names this place
        instead.

        Each row of a table of parts has a mark: 1 to 9, then a, b, ... Below each letter of a string stands the mark of
        the largest listed part that covers the letter. For molecules, and for strings whose listed parts make up less
        than half of `absolute_sum`, tables of substructures or stretches (the property `groups`) come first. If the
        explanation has `left_out`, a table with the marks a, b, ... lists the places without which the decision changes
        most. Each table splits the whole value, except the table of `left_out`, whose amounts overlap. Percentages are
        shares of the value or, if a table has both signs, of the sum of absolute amounts; the head of the column says
        which of the two. A series is drawn in bars if its decision is split over time. A + (or -) below a bar means
        that its time points add (or subtract) more than the mean absolute amount. Strings are cut to 2000 letters and
        broken into lines of 80; names of parts are cut to 78 characters. Unprintable characters are replaced.
        """
        return render_text(self, rest_in)

    def to_html(self) -> str:
        """Return the explanation as a fragment of HTML: inline styles and drawings, no script, all text escaped.

        RDKit draws molecules if it is installed.
        """
        from similia.explanations._html import as_html

        return as_html(self)

    def plot(self, ax: Any = None) -> Any:
        """Draw the explanation with matplotlib.

        The letters of strings and the nodes of graphs are coloured by their contributions to the explained value. If
        only one object is explained, the time points of a series or the points of a set are coloured in the same way.
        Two series, or two sets, are drawn with lines between matched points. RDKit draws molecules if it is installed.
        A bar chart shows the contribution of each part, such as a substring; for molecules, whole substructures come
        first. Blue marks positive and orange negative contributions. For distances, the colours are exchanged, since a
        positive contribution makes objects less similar. Colour-blind readers can tell the two colours apart.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes for the objects or, if they cannot be drawn, for the bars. By default, a new figure shows both.

        Returns
        -------
        matplotlib Axes
        """
        from similia.explanations._plots import plot

        return plot(self, ax)

    def logo(self, ax: Any = None) -> Any:
        """Draw a string as a sequence logo with matplotlib: the height of a letter is its contribution to the value.

        Letters with a negative contribution hang below the axis. The contributions are the amounts in `shares_x`. If
        two strings are explained, a second logo below shows y, with the amounts in `shares_y`.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes for the logo of x; y is then not drawn. By default, a new figure has one row for x and, if there is a
            y, one row for y.

        Returns
        -------
        matplotlib Axes
            The axes of x.

        Raises
        ------
        ValueError
            If the explained objects are not strings, or if the parts have no positions in the strings.
        """
        from similia.explanations._plots import logo

        return logo(self, ax)

    def _repr_html_(self) -> str:
        return self.to_html()

    def __repr__(self) -> str:
        return (
            f"<Explanation of a {self.kind} of {self.value:.6g} in {len(self.parts)} parts, {self.residual:.3g} left>"
        )


@dataclass(frozen=True, eq=False)
class Found:
    """All parts of a value, listed in an explanation or not."""

    contributions: Floats
    describe: Callable[[int], Described]  # takes the number of a part
    shares_x: Floats | None = None  # amount that all parts add at each place
    shares_y: Floats | None = None
    links: Sequence[Link] = ()  # matched places; in a sum over alignments, amounts are probabilities
    keys: npt.NDArray[np.uint64] | None = None  # parts with the same key are added up, as they have the same name

    def times(self, factor: float, prefix: str = "") -> Found:
        """Return the parts multiplied by `factor`, with `prefix` before the name of each part."""

        def describe(k: int) -> Described:
            name, in_x, in_y = self.describe(k)
            return prefix + name, in_x, in_y

        x, y = (None if shares is None else factor * shares for shares in (self.shares_x, self.shares_y))
        links = [(i, j, factor * value) for i, j, value in self.links]
        keys = self.keys if self.keys is None or not prefix else under(self.keys, prefix)
        return Found(factor * self.contributions, describe, x, y, links, keys)


def under(keys: npt.NDArray[np.uint64], name: str) -> npt.NDArray[np.uint64]:
    """Return keys that distinguish parts of this name, such as a kernel, from those of other names."""
    return keys * GOLDEN + hash_labels([name]).view(np.uint64)


def joined(founds: Sequence[Found]) -> Found:
    """Return the parts of a sum of values: those of all summands together, where parts with the same key make one."""
    if len(founds) == 1:
        return founds[0]
    starts = np.cumsum([0] + [len(found.contributions) for found in founds]).tolist()

    def describe(k: int) -> Described:
        which = bisect_right(starts, k) - 1
        return founds[which].describe(k - starts[which])

    x, y = _added([found.shares_x for found in founds]), _added([found.shares_y for found in founds])
    links = [link for found in founds for link in found.links]
    contributions = np.concatenate([found.contributions for found in founds])
    known = [found.keys for found in founds if found.keys is not None]
    if len(known) < len(founds):
        return Found(contributions, describe, x, y, links)
    keys, first, rows = np.unique(np.concatenate(known), return_index=True, return_inverse=True)
    order = np.argsort(first)
    sums = np.zeros(len(keys))
    np.add.at(sums, rows.ravel(), contributions)
    return Found(sums[order], lambda k: describe(int(first[order[k]])), x, y, links, keys[order])


def _added(shares: list[Floats | None]) -> Floats | None:
    """Return the sum of the arrays that are not None; None if there are none or they differ in length."""
    known = [s for s in shares if s is not None]
    return np.asarray(np.sum(known, axis=0)) if len({len(s) for s in known}) == 1 else None


def _groups(view: View, shares: Floats) -> list[tuple[str, Places]]:
    """Return (name, places) of the substructures of a molecule or the stretches of a string; [] for other objects."""
    if is_molecule(view):
        return groups(view)
    if view.kind != "strings":
        return []
    return [(view.text[start:stop], np.arange(start, stop)) for start, stop in runs_of(shares, np.abs(shares).mean())]


def runs_of(amounts: Floats, usual: float) -> list[tuple[int, int]]:
    """Return (start, stop) of the runs of amounts of one sign that are all above `usual` in size, or all not."""
    levels = np.sign(amounts) * (1 + (np.abs(amounts) > usual))
    return [*pairwise([0, *(np.flatnonzero(np.diff(levels)) + 1).tolist(), len(amounts)])] if len(amounts) else []


def listed(parts: Sequence[tuple[str, float, Sequence[int], Sequence[int]]], n_x: int, n_y: int) -> Found:
    """Convert (name, contribution, places in x, in y) to parts; those with one place in x and one in y give `links`."""
    shares: tuple[Floats, Floats] = (np.zeros(n_x), np.zeros(n_y))
    links = []
    for _, contribution, *places in parts:
        for share, where in zip(shares, places, strict=True):
            np.add.at(share, np.asarray(where, dtype=np.int64), contribution / max(1, len(where)))
        if len(places[0]) == 1 and len(places[1]) == 1:
            links.append((int(places[0][0]), int(places[1][0]), contribution))

    def describe(k: int) -> Described:
        name, _, in_x, in_y = parts[k]
        return name, np.asarray(in_x, dtype=np.int64), np.asarray(in_y, dtype=np.int64)

    return Found(np.array([part[1] for part in parts], dtype=np.float64), describe, shares[0], shares[1], links)


def explained(
    value: float,
    kind: str,
    found: Found,
    top: int,
    title: str,
    views: tuple[View, View | None],
    *,
    note: str = "",
    intercept: float | None = None,
) -> Explanation:
    """Return an explanation that lists the `top` largest parts (equal ones in the given order), then the intercept."""
    sizes = np.abs(found.contributions)
    order = np.argsort(-sizes, kind="stable")
    order = order[sizes[order] > 0]
    parts = []
    for k in order[:top].tolist():
        name, in_x, in_y = found.describe(k)
        parts.append(Part(name, float(found.contributions[k]), in_x, in_y))
    if intercept is not None:
        parts.append(Part(INTERCEPT, intercept, NOWHERE, NOWHERE))
    residual = value - float(sum(part.contribution for part in parts))
    omitted = float(found.contributions[order[top:]].sum())
    return Explanation(
        value,
        kind,
        parts,
        residual,
        omitted,
        unexplained=residual - omitted,
        n_omitted=max(0, len(order) - top),
        absolute_sum=float(sizes.sum()),
        title=" ".join(title.split()),  # a kernel may be printed over several lines
        note=note,
        shares_x=found.shares_x,
        shares_y=found.shares_y,
        _x=replace(views[0], links=list(found.links)),
        _y=views[1],
        _has_intercept=intercept is not None,
    )
