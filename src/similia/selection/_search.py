"""Successive halving on nested folds; the Notes of `AutoClassifier` say what a round keeps, and who votes.

A candidate is a learner on an embedding, given as (group, learner): a group is an embedding with all its learners. A
table holds the scores of the candidates that one round has cross-validated, one score for each held-out fold.

The order of work depends only on the candidates, the seed and the scores; measured time only decides what is left out.
The first round tries the cheapest embedding of each family, then the others, cheap ones first. Later rounds try each
surviving embedding with its first surviving learner, the best embedding first, then with its second one. Candidates
that a round had no time for wait until the end. A round is decisive if it scored the best candidate of the round
before, or one within a standard error of it. A candidate that would not make its round decisive waits, too.

The nested estimate repeats all of this without fold i, for each i, and scores the choice on fold i. A model fitted
without folds i and j is used twice: its score on j informs the choice made without i, its score on i the choice made
without j. So k folds take only k (k - 1) / 2 extra fits. No model is scored on a fold that its choice or its fit has
seen. If there is no time for a fold, a quick estimate needs no fit: it repeats the choice on the scores of the other
folds, and the chosen candidate already has a score on fold i.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from similia.learn.vote import plurality
from similia.selection._evaluate import Answers, Evaluator, Left
from similia.selection._ladder import DEAR, Group
from similia.selection.budget import REFIT, SEARCH, Budget

_QUORUM = 3  # minimum number of voters
OUT_OF_TIME, TOO_SLOW = "out of time", "too slow for the final fit"
FIRST, GROWTH, LAST = 300, 3.2, 3000  # objects of the first round, growth per round, objects of the last round
_ENOUGH_HELD_OUT = 2000  # minimum number of held-out predictions per candidate in the last round, over its partitions
_SLACK = 0.02  # additional gap to the best score that is tolerated while a round uses only some of the objects
_FEW = 4  # up to this many embeddings are not halved
Candidate = tuple[int, int]  # group and learner
Table = dict[Candidate, npt.NDArray]
_GROWS = 0.1  # minimum share of a time that is assumed to grow with n
_NEARLY_LINEAR, _FROM_ONE = 1.3, 1.5  # exponents of n: of fast fits, and the largest while only one n is timed
_PROBES = 0.05  # share of the seconds left that measuring the cost of a unit may take
_FINAL = "final"  # prefix of the keys for the cost of one learner fitted alone
_FITTED = -1  # stands for the learner in the key of a cost if all learners of a group are tried at once


@dataclass
class View:
    """The scores that a choice may use: on all folds, or on all folds but the outer fold `hidden`.

    If `refits`, models are fitted without the hidden fold; otherwise only the scores on it are left out. `tables` holds
    the scores of the candidates of each round of halving.
    """

    hidden: int | None = None
    refits: bool = True
    tables: list[Table] = field(default_factory=list)

    def cells(self, rung: Rung, folds: int) -> list[tuple[Left, int]]:
        """Return a cell, ((partition, folds left out of training), fold to score), for each score of a candidate."""
        partitions = range(rung.partitions if self.hidden is None else 1)
        apart = frozenset({self.hidden}) if self.hidden is not None and self.refits else frozenset()
        scored = [fold for fold in range(folds) if fold != self.hidden]
        return [((p, apart | {fold}), fold) for p in partitions for fold in scored]


@dataclass
class Search:
    """Chooses a candidate by successive halving: on all folds and, to estimate its score, once without each fold.

    `steps` are the rounds of halving, `n_full` is the number of objects of the final fit, and `voters` the maximum
    number of candidates that vote. ``report(view, rung)`` is called after each group.
    """

    evaluator: Evaluator
    steps: list[Rung]
    folds: int
    budget: Budget
    n_full: int
    classify: bool = True
    voters: int = 1
    report: Callable[[View, Rung], None] = lambda view, rung: None
    out: dict[Candidate, str] = field(default_factory=dict)  # why a candidate was not tried (further)
    skipped: set[tuple[int, Candidate]] = field(default_factory=set)  # (round, candidate) that there was no time for
    main: View = field(default_factory=View)

    def __post_init__(self) -> None:
        self.times = Times(self.evaluator, self.folds, self.budget, self.n_full)

    @property
    def stopped_early(self) -> bool:
        """Return whether a candidate was not compared, or not chosen, for lack of time."""
        return bool({OUT_OF_TIME, TOO_SLOW} & {*self.out.values()})

    @property
    def _groups(self) -> Sequence[Group]:
        return self.evaluator.groups

    # ---- rounds of halving
    def search(self) -> None:
        """Search on all folds; ``main.tables`` gets a table of scores for each round, even after an interruption."""
        early = len({group.family or group.name for group in self._groups})  # as many units: the first of each family

        def share(r: int, i: int) -> float:
            first = r == 0 and i < early
            part = self.budget.left(SEARCH if first else SEARCH * (r + 2) / (len(self.steps) + 1))
            return min(part, self._spare())

        waiting = self._halve(share)
        for r, unit in sorted(waiting, key=lambda item: -item[0]):  # the furthest first
            self._climb(unit, r)
        if waiting and not self.stopped_early:  # all were tried: halve as if none had waited
            final = self.times.final(self.best(self.main)[0])
            tables, done = self.main.tables, False
            self.main.tables = []
            try:
                done = not self._halve(lambda r, i: self.budget.left() - final)
            finally:
                if not done:  # out of time, or stopped with Ctrl-C
                    self.main.tables = tables

    def _halve(self, left: Callable[[int, int], float]) -> list[tuple[int, Unit]]:
        """Run all rounds; unit i of round r may take `left(r, i)` seconds. Return (round, unit) of those not run."""
        waiting: list[tuple[int, Unit]] = []
        units = first_units(self._groups)
        for r, rung in enumerate(self.steps):
            table: Table = {}
            self.main.tables.append(table)
            for i, unit in enumerate(units):
                allowed = left(r, i) if self._decides(r) else max(left(r, i), self._spare() / 2)
                if not self._try(unit, r, allowed):
                    waiting.append((r, unit))
            if not table:
                break
            units = self._next(table, rung)
            first = next((unit for unit in units if self._is_decided(table, unit.candidates)), None)
            units.sort(key=lambda unit: unit is not first)  # stable
        return waiting

    def _climb(self, unit: Unit, start: int) -> None:
        """Try a unit that had no time in round `start`; its learners enter later rounds while they survive."""
        units = [unit]
        for r in range(start, len(self.steps)):
            if len(self.main.tables) <= r:
                self.main.tables.append({})
            for one in units:
                self._try(one, r, self._spare())
            table = self.main.tables[r]
            kept = [other for other in self._next(table, self.steps[r]) if other.group == unit.group] if table else []
            parts = [tuple(i for i in other.learners if i in unit.learners) for other in kept]
            units = [Unit(unit.group, part) for part in parts if part]

    def _try(self, unit: Unit, r: int, left: float) -> bool:
        """Run a unit in round `r` unless an obstacle is found; return whether it ran, and record if it did not."""
        keys = {(r, candidate) for candidate in unit.candidates}
        if obstacle := self._obstacle(unit, r, left):
            self.out |= dict.fromkeys(unit.candidates, obstacle)
            self.skipped |= keys
            return False
        self._run(self.main, *unit, self.steps[r], self.main.tables[r])
        self.skipped -= keys
        return True

    def _obstacle(self, unit: Unit, r: int, left: float) -> str:
        """Return why a unit should not run in round `r`, for which `left` seconds are left; "" if it should."""
        if not (self._decides(r) or self._is_decided(self.main.tables[r - 1], unit.candidates)):
            return OUT_OF_TIME  # its scores could not change the choice
        if self.budget.seconds is None or not any(self.main.tables):
            return ""
        if r and not any(map(self.times.can_be_fitted, unit.candidates)):
            return TOO_SLOW
        if left > 0:
            if r == 0:
                self.times.probe(unit, self.steps[r], left)
            if self.times.expected(unit, self.steps[r]) < left:
                return ""
        return OUT_OF_TIME

    def _run(self, view: View, g: int, learners: Sequence[int], rung: Rung, table: Table) -> None:
        """Score learners of group `g` in a round of halving, and enter the scores into the `table` of the round."""
        cells = view.cells(rung, self.folds)
        left = list(dict.fromkeys(left for left, _ in cells))
        held = self.evaluator.holds(g, rung.n)
        shared, seconds, fits = self.evaluator.run(g, learners, rung.n, left)
        if view.hidden is None and fits:
            self.times.note(Unit(g, tuple(learners)), rung, None if held else shared, seconds / fits)
        for learner in learners:
            scores = self.evaluator.scores(g, learner, rung.n, cells)
            if scores is not None:
                table[g, learner] = scores
                if view.hidden is None:
                    self.out.pop((g, learner), None)
        self.report(view, rung)

    def _next(self, table: Table, rung: Rung) -> list[Unit]:
        """Return the units for the next round: the first unit of each surviving embedding, then the other units."""
        alive = self._alive(table, rung)
        learners = {g: [i for i in self._groups[g].turns or kept if i in kept] for g, kept in alive.items()}
        return turns(learners, self._groups)

    def _alive(self, table: Table, rung: Rung) -> dict[int, list[int]]:
        return survivors(table, self.evaluator, self.folds, last=rung.n == self.steps[-1].n)

    def _spare(self) -> float:
        """Return the seconds left in the budget, less those expected for the final fit of the current choice."""
        return self.budget.left() - (self.times.final(self.best(self.main)[0]) if any(self.main.tables) else 0.0)

    def _decides(self, r: int) -> bool:
        """Return whether round `r` has scored the best candidate of the round before, or one nearly as good."""
        return r == 0 or self._is_decided(self.main.tables[r - 1], self.main.tables[r])

    def _is_decided(self, before: Table, after: Iterable[Candidate]) -> bool:
        """Return whether `after` has the best candidate of `before`, or one within a standard error of that best."""
        before = self._fast(before) or before
        gaps = [before[self._leader(before)] - before[c] for c in after if c in before]
        return any(gap.mean() <= noise(gap, self.folds) for gap in gaps)

    def _fast(self, table: Table) -> Table:
        """Return a table of scores without the candidates whose final fit would take too long."""
        return {c: scores for c, scores in table.items() if self.times.can_be_fitted(c)}

    def _leader(self, table: Table) -> Candidate:
        """Return the best candidate of a table, leaving out those that failed in a later round."""
        failed = self.evaluator.failed
        sound = [c for c in table if c not in failed and (c[0], -1) not in failed] or [*table]
        return max(sound, key=lambda c: table[c].mean())

    # ---- the choice
    def best(self, view: View) -> tuple[Candidate, int]:
        """Return the best candidate of a view, and the number of the round whose scores decide.

        Candidates whose final fit would take too long are chosen only if there are no others.
        """
        best, fast = self._decided(view.tables), [self._fast(table) for table in view.tables]
        return best if self.times.can_be_fitted(best[0]) or not any(fast) else self._decided(fast)

    def _decided(self, tables: list[Table]) -> tuple[Candidate, int]:
        """Return the best candidate of the tables, and the number of the round whose scores decide."""
        known = [r for r, table in enumerate(tables) if table]
        if not known:
            raise ValueError("no candidate could be fitted")
        last = 0
        while last + 1 < len(known) and self._is_decided(tables[known[last]], tables[known[last + 1]]):
            last += 1
        return chosen(tables[: known[last] + 1], self.evaluator, self.folds), known[last]

    def choice(self, view: View) -> tuple[Candidate, ...]:
        """Return the candidate chosen by the scores of a view, or several candidates that vote.

        Voters are the best candidate of all, and the best candidate of each other embedding if it is nearly as good
        (`near`) and there is time to fit it, too. They vote if they are at least three and the vote scores higher than
        the best candidate alone. A trusted candidate is chosen alone.
        """
        best, r = self.best(view)
        table, rung = view.tables[r], self.steps[r]
        leader = self._decided(view.tables)[0]
        if leader != best and view.hidden is None:
            self.out[leader] = TOO_SLOW
        alone = self.voters < _QUORUM or self._groups[best[0]].trusted
        if alone or not self.evaluator.scores_answers or best not in table:
            return (best,)
        voters, seconds = [best], self.times.final(best)
        for candidate in best_of_groups(table).values():
            if candidate[0] == best[0] or not near(table, candidate, best, self.folds):
                continue
            total = seconds + self.times.final(candidate)
            if total <= self.times.most:
                voters.append(candidate)
                seconds = total
            elif view.hidden is None and len(voters) < self.voters:
                self.out[candidate] = TOO_SLOW
        voters = voters[: self.voters]
        if len(voters) < _QUORUM:
            return (best,)
        scores = self._joined_scores(voters, rung.n, view.cells(rung, self.folds))
        return (best,) if scores is None or scores.mean() <= table[best].mean() else tuple(voters)

    def voted(self, voters: Sequence[Candidate], r: int) -> npt.NDArray:
        """Return the scores of a vote of `voters` in round `r` of the main search, one for each held-out fold."""
        scores = self._joined_scores(voters, self.steps[r].n, self.main.cells(self.steps[r], self.folds))
        assert scores is not None  # otherwise it would not be chosen
        return scores

    def _joined_scores(
        self, voters: Sequence[Candidate], n: int, cells: Sequence[tuple[Left, int]]
    ) -> npt.NDArray | None:
        """Return the score of a vote for each cell (see `View.cells`), or None if a voter lacks predictions."""
        evaluator = self.evaluator
        if len(voters) == 1:
            return evaluator.scores(*voters[0], n, cells)
        scores = []
        for left, fold in cells:
            answers = [evaluator.answers.get((g, i, n, left), {}).get(fold) for g, i in voters]
            known = [answer for answer in answers if answer is not None]
            if len(known) < len(answers):
                return None
            joined = plurality(known, np.unique(evaluator.y)) if self.classify else np.mean(known, axis=0)
            truth = evaluator.y[:n][evaluator.partitions[left[0]][:n] == fold]
            scores.append(float(evaluator.score(Answers(joined), None, truth)))
        return np.array(scores)

    def why(self, choice: tuple[Candidate, ...]) -> list[str]:
        """Return notes for the user: why the best score was not chosen, if so, and the score of a vote, if one won."""
        best, r = choice[0], self.best(self.main)[1]
        table = self.main.tables[r]
        leader = max([best, *table] if best in table else table, key=lambda c: table[c].mean())
        name, score = self._groups[leader[0]].named(leader[1]), float(table[leader].mean())
        sentences = []
        if leader != best:
            if self.out.get(leader) == TOO_SLOW:
                expected, most = self.times.final(leader), self.times.most
                why = (
                    f"fitting it to all {self.n_full} objects was expected to take {expected:.0f} s, and the final fit "
                    f"may take {most:.0f} s"
                )
            elif self._groups[best[0]].trusted:
                trusted = self._groups[best[0]].named(best[1])
                why = f"{trusted}, the best of its kind on many data sets, is not clearly worse"
            else:
                why = "nearest neighbours were better than it the last time they were tried"
            sentences.append(f"{name} has the best score ({score:.3f}) and was not chosen: {why}")
        if len(choice) > 1:
            voted, alone = float(self.voted(choice, r).mean()), table[best].mean()
            sentences.append(f"the vote of {len(choice)} scored {voted:.3f}, the best of them alone {alone:.3f}")
        return sentences

    # ---- estimates of the score of the choice on new objects
    def nested(self, fold: int) -> float | None:
        """Repeat the search without `fold`; return the score that its choice has on `fold`, or None if out of time."""
        view = View(fold)
        alive: dict[int, list[int]] = {}
        for g, i in self.main.tables[0]:
            alive.setdefault(g, []).append(i)
        for r, (rung, tried) in enumerate(self._single()):
            table: Table = {}
            view.tables.append(table)
            learners = {g: [i for i in kept if (r, (g, i)) not in self.skipped] for g, kept in alive.items()}
            had_time = [g for g in alive if learners[g]]
            for g in had_time[: len({g for g, _ in tried})]:
                if self.budget.left() < self.times.expected(Unit(g, tuple(learners[g])), rung):
                    return None
                self._run(view, g, learners[g], rung, table)
            if not table:
                break
            alive = self._alive(table, rung)
        return self._score_without(view, fold) if any(view.tables) else None

    def quick(self, fold: int) -> float | None:
        """Choose by the scores on the other folds; return the score that this choice has on `fold`, None if unknown."""
        view = View(fold, refits=False)
        view.tables = [{c: np.delete(scores, fold) for c, scores in table.items()} for _, table in self._single()]
        return self._score_without(view, fold)

    def _single(self) -> list[tuple[Rung, Table]]:
        """Return (round, table of scores) for each completed round that uses a single partition into folds."""
        rungs = zip(self.steps, self.main.tables, strict=False)
        return [(rung, table) for rung, table in rungs if rung.partitions == 1 and table]

    def _score_without(self, view: View, fold: int) -> float | None:
        """Return the score on `fold` of the choice made from a view that hides `fold`; None if it is unknown."""
        choice = self.choice(view)
        n, left = self.steps[self.best(view)[1]].n, (0, frozenset({fold}))
        for g, learner in choice:
            self.evaluator.run(g, [learner], n, [left])
        scores = self._joined_scores(choice, n, [(left, fold)])
        return None if scores is None else float(scores[0])


# ---- rounds and tables of scores
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


# ---- times
@dataclass
class Costs:
    """Records the seconds that work on n objects takes, for some n, and predicts them for other n."""

    taken: dict[Hashable, dict[int, float]] = field(default_factory=dict)  # work to {objects: seconds}

    def note(self, work: Hashable, n: int, seconds: float) -> None:
        self.taken.setdefault(work, {})[n] = seconds

    def expected(self, work: Hashable, n: int, power: float) -> float:
        """Return the expected seconds of work on n objects, assumed to be a + b n^power; 0 if nothing was recorded."""
        known = sorted(self.taken.get(work, {}).items())
        if not known:
            return 0.0
        (m, seconds), grows = known[-1], 1.0
        if len(known) > 1 and seconds > 0:
            fewer, less = known[-2]
            grows = min(1.0, max(_GROWS, (1 - less / seconds) / (1 - (fewer / m) ** power)))
        return seconds * (1 + grows * ((n / m) ** power - 1))


@dataclass
class Times:
    """Expected times of units in a round of halving, and of the final fit of a candidate to `n_full` objects."""

    evaluator: Evaluator
    folds: int
    budget: Budget
    n_full: int
    costs: Costs = field(default_factory=Costs)
    of_fits: dict[tuple[int, int, int], float] = field(default_factory=dict)  # seconds by (group, learner, n)

    @property
    def most(self) -> float:
        """Return the seconds that the final fit may take."""
        return math.inf if self.budget.seconds is None else REFIT * self.budget.seconds

    def note(self, unit: Unit, rung: Rung, shared: float | None, fit: float) -> None:
        """Record the seconds that a unit took for work that folds share (None if cached), and for one fit."""
        if shared is not None:
            self.costs.note(self.evaluator.shared(unit.group), rung.n, shared)
        self.costs.note(self._work(unit), rung.n, fit)
        for learner in unit.learners:
            took = self.evaluator.seconds.pop((unit.group, learner, rung.n), [])
            if took:  # empty if the learner failed
                alone = median(took)  # robust if one fold waits for a busy machine or a compiler
                self.costs.note((_FINAL, unit.group, learner), rung.n - rung.n // self.folds, alone)
                self.of_fits[unit.group, learner, rung.n] = alone + (shared or 0.0) / self.folds

    def expected(self, unit: Unit, rung: Rung) -> float:
        """Return the seconds that a unit is expected to take in a round of halving."""
        g, fits = unit.group, self.folds * max(1, rung.partitions - 1)
        units = [Unit(g, (i,)) for i in unit.learners] if self.evaluator.groups[g].turns else [unit]
        seconds = fits * sum(self.costs.expected(self._work(one), rung.n, self._power(g)) for one in units)
        if not self.evaluator.holds(g, rung.n):
            power = 2.0 if self.evaluator.groups[g].pairwise else 1.0
            seconds += self.costs.expected(self.evaluator.shared(g), rung.n, power)
        return seconds

    def probe(self, unit: Unit, rung: Rung, left: float) -> None:
        """Time a unit on a few objects, unless its cost is known; `left` is the number of seconds that it may take."""
        g = unit.group
        shared = self.evaluator.shared(g)
        work: Hashable = self._work(unit) if shared is None else shared
        if work not in self.costs.taken:
            fits = self.folds if shared is None else 1
            note = partial(self.costs.note, work)
            self.evaluator.probe(g, unit.learners[0], rung.n, note, left / fits, _PROBES * left)

    def final(self, candidate: Candidate) -> float:
        """Return the expected seconds of the final fit of a candidate.

        If fits were timed for one n only, growth of at most n^1.5 is assumed, as most of the time may be constant.
        """
        g, n = candidate[0], self.n_full
        group, work, shared = self.evaluator.groups[g], (_FINAL, *candidate), self.evaluator.shared(g)
        power = self._power(g) if len(self.costs.taken.get(work, ())) > 1 else min(self._power(g), _FROM_ONE)
        seconds = self.costs.expected(work, n, power)
        if not group.pairwise:
            return seconds + self.costs.expected(shared, n, 1.0)
        partners = n if group.partners is None else min(n, group.partners)
        return seconds + (self.costs.expected(shared, math.isqrt(n * partners), 2.0) if partners else 0.0)

    def can_be_fitted(self, candidate: Candidate) -> bool:
        """Return whether there is time for the final fit of a candidate."""
        return self.final(candidate) <= self.most

    def _work(self, unit: Unit) -> tuple[int, int]:
        """Return the key of the cost of a fit: the group, and the learner if learners are tried one by one."""
        return unit.group, unit.learners[0] if self.evaluator.groups[unit.group].turns else _FITTED

    def _power(self, g: int) -> float:
        """Return the exponent p of the growth n^p that is assumed for the time of a fit."""
        return 2.0 if self.evaluator.groups[g].slow else _NEARLY_LINEAR
