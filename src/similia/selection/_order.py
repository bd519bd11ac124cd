"""In which order candidates are tried: it follows from the ladder and from scores, never from measured time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from similia.selection._ladder import DEAR, Group


class Unit(NamedTuple):
    """Learners of a group that are fitted together."""

    group: int
    learners: tuple[int, ...]


def first_units(groups: Sequence[Group]) -> list[Unit]:
    """Return all candidates in the order of the first rung: the cheapest embedding of each family is first.

    The dear ones wait for all learners of the others.
    """
    by_cost = sorted(range(len(groups)), key=lambda g: groups[g].cost)  # stable: else in the order of the ladder
    firsts: dict[str, int] = {}
    for g in by_cost:
        firsts.setdefault(groups[g].family or groups[g].name, g)
    order = [*firsts.values(), *(g for g in by_cost if g not in firsts.values())]
    learners = {g: groups[g].turns or range(len(groups[g].learners)) for g in order}
    late = [g for g in order if groups[g].cost >= DEAR and g not in firsts.values()]
    soon = {g: given for g, given in learners.items() if g not in late}
    return turns(soon, groups) + turns({g: learners[g] for g in late}, groups)


def turns(learners: Mapping[int, Sequence[int]], groups: Sequence[Group]) -> list[Unit]:
    """Return learners of some groups as units: the first of each group, then the second of those that take turns."""
    units: list[tuple[int, Unit]] = []
    for g, given in learners.items():
        parts = [(i,) for i in given] if groups[g].turns else [tuple(sorted(given))]
        units += [(turn, Unit(g, part)) for turn, part in enumerate(parts)]
    return [unit for _, unit in sorted(units, key=lambda item: item[0])]
