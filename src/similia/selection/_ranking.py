"""Candidates ranked by their scores: which go on from a rung, and which one is chosen."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from similia.selection._evaluate import Evaluator

_SLACK = 0.02  # of the best score, that a beginning may hide
_FEW = 4  # embeddings from which none goes only to halve them

Candidate = tuple[int, int]  # group and learner


def survivors(
    table: dict[Candidate, npt.NDArray], evaluator: Evaluator, folds: int, *, last: bool
) -> dict[int, list[int]]:
    """Return the learners that go on, by group, the best group first.

    On a beginning of the objects (not `last`) candidates may be worse by a little more.
    """
    means = {candidate: float(scores.mean()) for candidate, scores in table.items()}
    best = max(means, key=means.__getitem__)
    slack = 0.0 if last else _SLACK

    def near(candidate: Candidate, to: Candidate) -> bool:
        gap = table[to] - table[candidate]
        return bool(gap.mean() <= 2 * noise(gap, folds) + slack)

    tops = best_of_groups(table)
    ranked = [*tops]
    most = max(_FEW, -(-len(ranked) // 2))
    kept = [g for g in ranked[:most] if near(tops[g], best)]
    floors = [g for g in ranked if evaluator.groups[g].floor]
    if floors and not set(floors) & set(kept):
        kept.insert(1, floors[0])  # early, lest time runs out before it
    return {g: [i for h, i in table if h == g and near((g, i), tops[g])] for g in kept}


def best_of_groups(table: dict[Candidate, npt.NDArray]) -> dict[int, Candidate]:
    """Return the best candidate of each group, the best group first."""
    found: dict[int, Candidate] = {}
    for candidate in sorted(table, key=lambda candidate: -float(table[candidate].mean())):
        found.setdefault(candidate[0], candidate)
    return found


def noise(scores: npt.NDArray, folds: int) -> float:
    """Return the standard error of a mean over folds, whose training parts overlap (Nadeau & Bengio, 2003)."""
    return float(np.sqrt(scores.var(ddof=1) * (1 / len(scores) + 1 / (folds - 1))))


def chosen(tables: list[dict[Candidate, npt.NDArray]], evaluator: Evaluator) -> Candidate:
    """Return the best candidate of the last rung that has any, never one that nearest neighbours beat.

    Of equal means, as on few and easy objects, that of the embedding whose learners are better on average, then the
    earlier on the ladder. Where the last rung had no time for nearest neighbours, those that were below them on a rung
    before are out.
    """
    tables = [table for table in tables if table]
    if not tables:
        raise ValueError("no candidate could be fitted")
    allowed = set(tables[-1])
    for table in reversed(tables):
        floors = {c: float(s.mean()) for c, s in table.items() if evaluator.groups[c[0]].floor}
        if floors:
            best = max(floors, key=floors.__getitem__)
            above = {c for c in allowed if c in table and table[c].mean() >= floors[best]}
            if not above:
                return best
            allowed = above
            break
    means = {c: float(tables[-1][c].mean()) for c in tables[-1]}
    groups = {g: float(np.mean([mean for c, mean in means.items() if c[0] == g])) for g, _ in means}
    return max(sorted(allowed), key=lambda c: (means[c], groups[c[0]]))
