"""Rounds of halving and tables of scores: what is tried in which order, who survives, and who is best.

A candidate is a learner on an embedding, given as (group, learner): a group is an embedding with all its learners. A
table holds the scores of the candidates that one round has cross-validated, one score for each held-out fold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from similia.selection._evaluate import Evaluator
from similia.selection._ladder import DEAR, Group

FIRST, GROWTH, LAST = 300, 3.2, 3000  # objects of the first round, growth per round, objects of the last round
_ENOUGH_HELD_OUT = 2000  # minimum number of held-out predictions per candidate in the last round, over its partitions
_SLACK = 0.02  # additional gap to the best score that is tolerated while a round uses only some of the objects
_FEW = 4  # up to this many embeddings are not halved
Candidate = tuple[int, int]  # group and learner
Table = dict[Candidate, npt.NDArray]


class Rung(NamedTuple):
    """One round of halving: cross-validation on the first `n` objects, split into folds in `partitions` ways."""

    n: int
    partitions: int


class Unit(NamedTuple):
    """Learners on one embedding (`group`) that are tried together; `learners` are their indices in the group."""

    group: int
    learners: tuple[int, ...]

    @property
    def candidates(self) -> list[Candidate]:
        return [(self.group, learner) for learner in self.learners]


def rungs(n: int, first: int, folds: int, last: int = LAST) -> list[Rung]:
    """Return the rounds of halving for `n` objects; sizes grow from `first` to `last` (or to `n`, if smaller)."""
    sizes, last = [], min(n, max(first, last))
    size = float(first)
    while size * 1.5 < last:
        sizes.append(int(size))
        size *= GROWTH
    repeats = int(np.clip(-(-_ENOUGH_HELD_OUT // last), 1, 10))
    steps = [Rung(size, 1) for size in (*sizes, last)]
    return steps + ([Rung(last, repeats)] if repeats > 1 else [])


def first_units(groups: Sequence[Group]) -> list[Unit]:
    """Return the units of the first round in order: the cheapest group of each family, then the others by cost.

    Expensive groups, except the cheapest of each family, come after all learners of all other groups.
    """
    by_cost = sorted(range(len(groups)), key=lambda g: groups[g].cost)  # stable: ties keep the order of the list
    firsts: dict[str, int] = {}
    for g in by_cost:
        firsts.setdefault(groups[g].family or groups[g].name, g)
    order = [*firsts.values(), *(g for g in by_cost if g not in firsts.values())]
    learners = {g: groups[g].turns or range(len(groups[g].learners)) for g in order}
    late = [g for g in order if groups[g].cost >= DEAR and g not in firsts.values()]
    soon = {g: given for g, given in learners.items() if g not in late}
    return turns(soon, groups) + turns({g: learners[g] for g in late}, groups)


def turns(learners: Mapping[int, Sequence[int]], groups: Sequence[Group]) -> list[Unit]:
    """Split {group: learners} into units; return the first unit of each group, then the second ones, and so on."""
    units: list[tuple[int, Unit]] = []
    for g, given in learners.items():
        parts = [(i,) for i in given] if groups[g].turns else [tuple(sorted(given))]
        units += [(turn, Unit(g, part)) for turn, part in enumerate(parts)]
    return [unit for _, unit in sorted(units, key=lambda item: item[0])]


def survivors(table: Table, evaluator: Evaluator, folds: int, *, last: bool) -> dict[int, list[int]]:
    """Return the learners that survive a round as {group: learners}, the best group first.

    If the round did not use all objects of the search (not `last`), a slightly larger gap to the best is tolerated.
    """
    slack, tops = 0.0 if last else _SLACK, best_of_groups(table)
    ranked = [*tops]
    most = max(_FEW, -(-len(ranked) // 2))
    kept = [g for g in ranked[:most] if near(table, tops[g], tops[ranked[0]], folds, slack)]
    floors = [g for g in ranked if evaluator.groups[g].floor]
    if floors and not set(floors) & set(kept):
        kept.insert(1, floors[0])  # near the front, before time runs out
    trusted = [g for g in ranked if evaluator.groups[g].trusted and g not in kept]
    kept[1:1] = [g for g in trusted if near(table, tops[g], tops[ranked[0]], folds, slack)]
    return {g: [i for h, i in table if h == g and near(table, (g, i), tops[g], folds, slack)] for g in kept}


def chosen(tables: list[Table], evaluator: Evaluator, folds: int) -> Candidate:
    """Return the best candidate of the last nonempty table, with two exceptions.

    A trusted candidate is chosen unless it is behind the best by more than two standard errors (`near`). Otherwise, the
    choice must have scored at least as high as nearest neighbours in the last round that tried these. Ties in the mean
    score, common on few and easy objects, are broken by the mean over all learners of the embedding, then by the order
    of the candidates.
    """
    tables = [table for table in tables if table]
    tops = best_of_groups(tables[-1])
    best = next(iter(tops.values()))
    for g, candidate in tops.items():
        if evaluator.groups[g].trusted and near(tables[-1], candidate, best, folds):
            return candidate
    allowed = set(tables[-1])
    for table in reversed(tables):
        floors = {c: float(s.mean()) for c, s in table.items() if evaluator.groups[c[0]].floor}
        if floors:
            best = max(floors, key=floors.__getitem__)
            allowed = {c for c in allowed if c in table and table[c].mean() >= floors[best]}
            if not allowed:
                return best
            break
    means = {c: float(tables[-1][c].mean()) for c in tables[-1]}
    groups = {g: float(np.mean([mean for c, mean in means.items() if c[0] == g])) for g, _ in means}
    return max(sorted(allowed), key=lambda c: (means[c], groups[c[0]]))


def best_of_groups(table: Table) -> dict[int, Candidate]:
    """Return {group: its best candidate}, the best group first."""
    found: dict[int, Candidate] = {}
    for candidate in sorted(table, key=lambda candidate: -float(table[candidate].mean())):
        found.setdefault(candidate[0], candidate)
    return found


def near(table: Table, candidate: Candidate, best: Candidate, folds: int, slack: float = 0.0) -> bool:
    """Return whether a candidate is behind `best` by at most two standard errors of their difference, plus `slack`."""
    gap = table[best] - table[candidate]
    return bool(gap.mean() <= 2 * noise(gap, folds) + slack)


def noise(scores: npt.NDArray, folds: int) -> float:
    """Return the standard error of the mean score on folds with overlapping training parts (Nadeau & Bengio, 2003)."""
    return float(np.sqrt(scores.var(ddof=1) * (1 / len(scores) + 1 / (folds - 1))))
