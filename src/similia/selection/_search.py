"""Successive halving on nested folds.

Rungs are growing beginnings of one stratified order of the objects, at the end repeated partitions into folds of all.
On each rung the surviving candidates are cross-validated on the same folds; those that are worse than the best by more
than the noise of that *paired* difference go, and at least half of the embeddings. Nearest neighbours stay.

The nested estimate repeats all of this without fold i, for each i, and scores what it chose on fold i. A fit without
the folds {i, j} is wanted without i for the choice (scored on j) and without j (scored on i), so that k folds take
k (k - 1) / 2 fits more instead of k (k - 1), and nothing that is chosen or fitted has seen what it is scored on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from similia.learn.vote import plurality
from similia.selection._budget import REFIT, SEARCH, Budget, Costs
from similia.selection._evaluate import Answers, Evaluator, Left

FIRST, GROWTH, LAST = 300, 3.2, 3000  # objects of the first rung, its growth, and of the last
_ENOUGH_HELD_OUT = 2000  # objects scored by a candidate, over partitions, in the end
_SLACK = 0.02  # of the best score, that a beginning may hide
_FEW = 4  # embeddings from which none goes only to halve them
_QUORUM = 3  # fewer do not vote
_PROBING, _PROBES = 0.6, 0.005  # seconds that telling the cost of a group may take, at least; share of the budget

Candidate = tuple[int, int]  # group and learner


class Rung(NamedTuple):
    """n objects in a number of partitions."""

    n: int
    partitions: int


def rungs(n: int, first: int, folds: int, last: int = LAST) -> list[Rung]:
    """Return the rungs for n objects."""
    sizes, last = [], min(n, max(first, last))
    size = float(first)
    while size * 1.5 < last:
        sizes.append(int(size))
        size *= GROWTH
    repeats = int(np.clip(-(-_ENOUGH_HELD_OUT // last), 1, 10))
    steps = [Rung(size, 1) for size in (*sizes, last)]
    return steps + ([Rung(last, repeats)] if repeats > 1 else [])


@dataclass
class View:
    """What a choice may look at: all folds, or all but `hidden`.

    Attributes
    ----------
    hidden : int or None
        The outer fold.
    tables : list of dict
        For each rung, candidate to its scores on folds.
    """

    hidden: int | None = None
    tables: list[dict[Candidate, npt.NDArray]] = field(default_factory=list)

    def cells(self, rung: Rung, folds: int) -> list[tuple[Left, int]]:
        """Return (what is left out of training, fold scored) of each score of a candidate."""
        partitions = range(rung.partitions if self.hidden is None else 1)
        apart = frozenset() if self.hidden is None else frozenset({self.hidden})
        scored = [fold for fold in range(folds) if fold != self.hidden]
        return [((p, apart | {fold}), fold) for p in partitions for fold in scored]


@dataclass
class Search:
    """The choice among candidates, on all folds and without each.

    Attributes
    ----------
    evaluator : Evaluator
    steps : list of Rung
    folds : int
    budget : Budget
    n_full : int
        Objects of the final fit.
    classify : bool
        Whether targets are classes, not numbers.
    voters : int
        Candidates that may vote, at most.
    told : callable
        Called after each group: told(view, rung).
    """

    evaluator: Evaluator
    steps: list[Rung]
    folds: int
    budget: Budget
    n_full: int
    classify: bool = True
    voters: int = 1
    told: Callable[[View, Rung], None] = lambda view, rung: None
    costs: Costs = field(default_factory=Costs)
    out: dict[int, str] = field(default_factory=dict)  # group to why it was not tried (further)
    main: View = field(default_factory=View)
    affordable: list[int] = field(default_factory=list)  # groups that each rung of the main search had time for

    def search(self) -> None:
        """Run the main search; a table of each rung is in ``main.tables``, also when it is interrupted."""
        alive = {g: [*range(len(group.learners))] for g, group in enumerate(self.evaluator.groups)}
        for r, rung in enumerate(self.steps):
            table: dict[Candidate, npt.NDArray] = {}
            self.main.tables.append(table)
            done = 0
            for g, learners in alive.items():
                if self._has_time(g, rung, r, first=not any(self.main.tables)):
                    self._run(self.main, g, learners, rung, table)
                    done += 1
            self.affordable.append(done)
            if not table:
                break
            alive = survivors(table, self.evaluator, self.folds, last=rung.n == self.steps[-1].n)

    def nested(self, fold: int) -> float | None:
        """Return the score on an outer fold of what is chosen without it, None if time ran out."""
        view = View(fold)
        alive = {g: [*range(len(self.evaluator.groups[g].learners))] for g in self._tried()}
        single = [rung for rung in self.steps if rung.partitions == 1]
        for r, rung in enumerate(single[: len(self.main.tables)]):
            table: dict[Candidate, npt.NDArray] = {}
            view.tables.append(table)
            for g, learners in [*alive.items()][: self.affordable[r]]:
                if self.budget.left() < self.folds * self.costs.expected(g, rung.n, self._slow(g)):
                    return None
                self._run(view, g, learners, rung, table)
            if not table:
                break
            alive = survivors(table, self.evaluator, self.folds, last=rung.n == self.steps[-1].n)
        choice = self.choice(view)
        n, left = self.steps[-1].n, (0, frozenset({fold}))
        for g, learner in choice:
            self.evaluator.run(g, [learner], n, [left])
        scores = self._joined_scores(choice, n, [(left, fold)])
        return None if scores is None else float(scores[0])

    def choice(self, view: View) -> tuple[Candidate, ...]:
        """Return the candidate that a view chooses, or some that vote.

        These are the best of the best embeddings that cannot be told from the first, if they are three or more, there
        is time to fit them all, and their vote is better than the first alone.
        """
        best = self.best(view)
        r = max((r for r, table in enumerate(view.tables) if best in table), default=-1)
        if r < 0 or self.voters < _QUORUM or not self.evaluator.scores_answers:
            return (best,)
        table, rung = view.tables[r], self.steps[r]
        voters, seconds = [best], self._final(best[0])
        for candidate in best_of_groups(table).values():
            gap = table[best] - table[candidate]
            told_apart = gap.mean() > 2 * noise(gap, self.folds)
            more = self._final(candidate[0])
            if candidate[0] != best[0] and not told_apart and self._is_affordable(seconds + more):
                voters.append(candidate)
                seconds += more
        voters = voters[: self.voters]
        if len(voters) < _QUORUM:
            return (best,)
        scores = self._joined_scores(voters, rung.n, view.cells(rung, self.folds))
        return (best,) if scores is None or scores.mean() <= table[best].mean() else tuple(voters)

    def voted(self, voters: Sequence[Candidate], r: int) -> npt.NDArray:
        """Return the scores of a vote on a rung of the main search."""
        scores = self._joined_scores(voters, self.steps[r].n, self.main.cells(self.steps[r], self.folds))
        assert scores is not None  # or it would not have been chosen
        return scores

    def _joined_scores(
        self, voters: Sequence[Candidate], n: int, cells: Sequence[tuple[Left, int]]
    ) -> npt.NDArray | None:
        """Return the scores of the vote of some candidates on held-out folds, or None where one is missing."""
        if len(voters) == 1:
            return self.evaluator.scores(*voters[0], n, cells)
        scores = []
        for left, fold in cells:
            answers = [self.evaluator.answers.get((g, i, n, left), {}).get(fold) for g, i in voters]
            known = [answer for answer in answers if answer is not None]
            if len(known) < len(answers):
                return None
            truth = self.evaluator.y[:n][self.evaluator.partitions[left[0]][:n] == fold]
            scores.append(float(self.evaluator.score(Answers(self._joined(known)), None, truth)))
        return np.array(scores)

    def _joined(self, answers: Sequence[npt.NDArray]) -> npt.NDArray:
        """Return what voters decide, of whom each gave its answers."""
        return plurality(answers, np.unique(self.evaluator.y)) if self.classify else np.mean(answers, axis=0)

    def _tried(self) -> Iterable[int]:
        """Return the groups of the first rung, in the order of the ladder."""
        return dict.fromkeys(g for g, _ in self.main.tables[0])

    def _run(self, view: View, g: int, learners: list[int], rung: Rung, table: dict[Candidate, npt.NDArray]) -> None:
        cells = view.cells(rung, self.folds)
        before = self.budget.spent
        left = list(dict.fromkeys(left for left, _ in cells))
        self.evaluator.run(g, learners, rung.n, left)
        if view.hidden is None:
            fits = self.folds * (rung.partitions if rung.partitions == 1 else rung.partitions - 1)
            self.costs.note(g, rung.n, (self.budget.spent - before) / fits)
        for learner in learners:
            scores = self.evaluator.scores(g, learner, rung.n, cells)
            if scores is not None:
                table[g, learner] = scores
        self.told(view, rung)

    def _has_time(self, g: int, rung: Rung, r: int, first: bool) -> bool:
        """Whether the search and the final fit of a group fit into the budget; the very first is always tried."""
        if self.budget.seconds is None or first:
            return True
        if r == 0:
            allowed = max(_PROBING, _PROBES * self.budget.seconds)
            for n, seconds in self.evaluator.probe(g, rung.n, self.folds, allowed):
                self.costs.note(g, n, seconds)
        elif not self._can_be_fitted(g):
            self.out[g] = "too slow for the final fit"
            return False
        left = self.budget.left(SEARCH * (r + 2) / (len(self.steps) + 1))
        fits = self.folds * max(1, rung.partitions - 1)
        if left <= fits * self.costs.expected(g, rung.n, self._slow(g)):
            self.out[g] = "out of time"
            return False
        return True

    def _can_be_fitted(self, g: int) -> bool:
        """Whether there is time for the final fit of a group."""
        return self._is_affordable(self._final(g))

    def _final(self, g: int) -> float:
        """Return the seconds that the final fit of a group is expected to take."""
        return self.costs.expected(g, self.n_full, self._slow(g))

    def _is_affordable(self, seconds: float) -> bool:
        """Whether final fits may take so long."""
        return self.budget.seconds is None or seconds <= REFIT * self.budget.seconds

    def best(self, view: View) -> Candidate:
        """Return what a view chooses among the candidates whose final fit there is time for; if none, among all."""
        fast = [{c: s for c, s in table.items() if self._can_be_fitted(c[0])} for table in view.tables]
        return chosen(fast if any(fast) else view.tables, self.evaluator)

    def _slow(self, g: int) -> bool:
        return self.evaluator.groups[g].slow


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
