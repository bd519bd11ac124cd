"""Parts before the largest are chosen: arrays of contributions, and names and places made on demand.

A kernel of long strings has 100,000 features, of which ten are shown: only those get names.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from similia.explanations._explanation import Explanation, Part
from similia.explanations._views import View

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
Described = tuple[str, Places, Places]
Link = tuple[int, int, float]
NOWHERE: Places = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Found:
    """All parts of a value.

    Attributes
    ----------
    contributions : ndarray of float64, shape (n_parts,)
    describe : callable
        Part number to (name, places in x, places in y).
    shares_x, shares_y : ndarray of float64 or None
        What all parts add at each place.
    links : sequence of (int, int, float)
        Matched places and what each match adds.
    """

    contributions: Floats
    describe: Callable[[int], Described]
    shares_x: Floats | None = None
    shares_y: Floats | None = None
    links: Sequence[Link] = ()

    def times(self, factor: float, prefix: str = "") -> Found:
        """Return the parts of a multiple of the value, their names after `prefix`."""

        def describe(k: int) -> Described:
            name, in_x, in_y = self.describe(k)
            return prefix + name, in_x, in_y

        x, y = (None if s is None else factor * s for s in (self.shares_x, self.shares_y))
        links = [(i, j, factor * value) for i, j, value in self.links]
        return Found(factor * self.contributions, describe if prefix else self.describe, x, y, links)


def joined(founds: Sequence[Found]) -> Found:
    """Return the parts of a sum of values."""
    if len(founds) == 1:
        return founds[0]
    starts = np.cumsum([0] + [len(found.contributions) for found in founds]).tolist()

    def describe(k: int) -> Described:
        which = bisect_right(starts, k) - 1
        return founds[which].describe(k - starts[which])

    x, y = ([getattr(found, name) for found in founds] for name in ("shares_x", "shares_y"))
    links = [link for found in founds for link in found.links]
    return Found(np.concatenate([found.contributions for found in founds]), describe, _added(x), _added(y), links)


def _added(shares: list[Floats | None]) -> Floats | None:
    """Return the sum of what is known for as many places."""
    known = [s for s in shares if s is not None]
    if not known or len({len(s) for s in known}) > 1:
        return None
    total: Floats = np.sum(known, axis=0)
    return total


def listed(parts: Sequence[tuple[str, float, Sequence[int], Sequence[int]]], n_x: int, n_y: int) -> Found:
    """Return parts that are few enough to be a list of (name, contribution, places in x, places in y)."""
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
    *,
    title: str,
    note: str = "",
    constant: tuple[str, float] | None = None,
    views: tuple[View | None, View | None] = (None, None),
) -> Explanation:
    """Return the explanation with the `top` largest parts, equal ones in the order they were found.

    `constant` is a last part that is always listed: the intercept of a linear model.
    """
    sizes = np.abs(found.contributions)
    order = np.argsort(-sizes, kind="stable")
    order = order[sizes[order] > 0]
    parts = [Part(*_described(found, k)) for k in order[:top].tolist()]
    if constant is not None:
        parts.append(Part(constant[0], float(constant[1]), NOWHERE, NOWHERE))
    residual = value - float(sum(part.contribution for part in parts))
    omitted = float(found.contributions[order[top:]].sum())
    view_x, view_y = views
    if view_x is not None and found.links:
        view_x = replace(view_x, links=list(found.links))
    return Explanation(
        value=value,
        kind=kind,
        parts=parts,
        residual=residual,
        omitted=omitted,
        unexplained=residual - omitted,
        n_omitted=max(0, len(order) - top),
        title=title,
        note=note,
        shares_x=found.shares_x,
        shares_y=found.shares_y,
        _x=view_x,
        _y=view_y,
    )


def _described(found: Found, k: int) -> tuple[str, float, Places, Places]:
    name, in_x, in_y = found.describe(k)
    return name, float(found.contributions[k]), in_x, in_y
