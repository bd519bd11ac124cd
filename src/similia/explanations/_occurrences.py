r"""Features of one object with their names and places, and sums over them.

A kernel that counts has k(x, y) = sum_f w_f c_f(x) c_f(y), and a linear model on it sum_f w_f c_f(x) g_f: both are sums
over the features of x of c_f(x) times a coefficient, so the part of feature f is exact. Ids are those of
`similia.kernels.counts`: what the kernel takes for one feature is one here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.explanations._found import NOWHERE, Described, Floats, Found, Places
from similia.kernels.counts import Counts

Ids = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Occurrences:
    """All places where features occur in one object.

    Attributes
    ----------
    ids : ndarray of uint64, shape (n,)
        Feature of each occurrence.
    values : ndarray of float64, shape (n,)
        What each adds to the count of its feature: 1, or the count where places are not known.
    offsets, places : ndarrays of int64
        Occurrence o is at ``places[offsets[o]:offsets[o + 1]]``.
    name : callable
        Number of an occurrence to the name of its feature.
    n_places : int
        Letters or nodes of the object.
    groups : ndarray of uint64, shape (n,), optional
        Features to be shown as one (a path and its reverse); `ids` if None.
    kinds : list of str, optional
        What else tells occurrences of one feature apart; the kinds that occur stand after its name.
    """

    ids: Ids
    values: Floats
    offsets: Places
    places: Places
    name: Callable[[int], str]
    n_places: int
    groups: Ids | None = None
    kinds: list[str] | None = None

    @classmethod
    def of_width(cls, ids: Ids, places: Places, name: Callable[[int], str], n_places: int) -> Occurrences:
        """Make occurrences of one place count each: `places` has shape (n, width)."""
        n, width = places.shape
        offsets = np.arange(n + 1, dtype=np.int64) * width
        return cls(ids, np.ones(n), offsets, places.ravel().astype(np.int64), name, n_places)

    @classmethod
    def without_places(cls, counts: Counts, name: Callable[[int], str], n_places: int) -> Occurrences:
        """Make one occurrence of each feature of one object from its counts alone."""
        none = np.zeros(len(counts.ids) + 1, dtype=np.int64)
        return cls(counts.ids, counts.values, none, NOWHERE, name, n_places)

    def at(self, chosen: Places) -> Places:
        """Return the places of some occurrences, ascending, each once."""
        runs = [self.places[self.offsets[o] : self.offsets[o + 1]] for o in chosen.tolist()]
        return np.unique(np.concatenate(runs)) if runs else NOWHERE

    def keys(self) -> Ids:
        """Return what each occurrence is shown as."""
        return self.ids if self.groups is None else self.groups

    def shares(self, amounts: Floats) -> Floats:
        """Return what each place gets if occurrence o shares ``amounts[o]`` among its places."""
        lengths = np.diff(self.offsets)
        each = np.repeat(amounts / np.maximum(lengths, 1), lengths)
        return totals(self.places, each, self.n_places)


def totals(rows: npt.NDArray, amounts: Floats, n: int) -> Floats:
    """Return the sum of the amounts of each of n rows."""
    sums = np.zeros(n)
    np.add.at(sums, rows.ravel(), amounts)
    return sums


def lookup(ids: Ids, known: Ids, values: Floats) -> Floats:
    """Return the value of each id, 0 for one that is not known; `known` are distinct."""
    if len(known) == 0:
        return np.zeros(len(ids))
    order = np.argsort(known)
    places = np.minimum(np.searchsorted(known, ids, sorter=order), len(known) - 1)
    found = order[places]
    return np.where(known[found] == ids, values[found], 0.0)


def summed(occurrences: Occurrences) -> tuple[Ids, Floats]:
    """Return the distinct features of an object and their counts."""
    ids, rows = np.unique(occurrences.ids, return_inverse=True)
    return ids, totals(rows, occurrences.values, len(ids))


def linear_parts(x: Occurrences, coefficients: Floats, y: Occurrences | None = None) -> Found:
    """Return the parts of sum_o values[o] coefficients[o] over the occurrences o of x, one for each feature.

    Where `y` is given, features are also placed there; the coefficients are then the counts of y (times weights).
    """
    amounts = x.values * coefficients
    kept = np.flatnonzero(amounts)
    keys, first, rows = np.unique(x.keys()[kept], return_index=True, return_inverse=True)
    contributions = totals(rows, amounts[kept], len(keys))
    of_key = np.split(kept[np.argsort(rows.ravel(), kind="stable")], np.cumsum(np.bincount(rows.ravel()))[:-1])
    y_keys = np.empty(0, dtype=np.uint64) if y is None else y.keys()
    order = np.argsort(first)  # equal parts are listed as they occur in x

    def describe(number: int) -> Described:
        k = int(order[number])
        there = np.flatnonzero(y_keys == keys[k])
        name = x.name(int(kept[first[k]]))
        if x.kinds is not None:
            kinds = {x.kinds[o] for o in of_key[k]} | {y.kinds[o] for o in there if y is not None and y.kinds}
            name += f" ({'/'.join(sorted(kinds))})"
        return name, x.at(of_key[k]), NOWHERE if y is None else y.at(there)

    return Found(contributions[order], describe, shares_x=x.shares(amounts))


def pair_parts(x: Occurrences, y: Occurrences, weights: Callable[[Ids], Floats]) -> Found:
    """Return the parts of sum_f w_f c_f(x) c_f(y)."""
    ids_x, counts_x = summed(x)
    ids_y, counts_y = summed(y)
    found = linear_parts(x, weights(x.ids) * lookup(x.ids, ids_y, counts_y), y)
    shares_y = y.shares(y.values * weights(y.ids) * lookup(y.ids, ids_x, counts_x))
    return Found(found.contributions, found.describe, found.shares_x, shares_y)


def counts_of(kernel: Any, objects: Any) -> tuple[Counts, Floats]:
    """Return the counts of objects and the weight of each entry in an inner product."""
    counts = kernel._counts(objects)
    return counts, np.ones(len(counts.ids)) if counts.weights is None else counts.weights
