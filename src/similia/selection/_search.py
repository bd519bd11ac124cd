"""Successive halving on nested folds; the Notes of `AutoClassifier` say what a round keeps, and who votes.

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

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from similia.learn.vote import plurality
from similia.selection._evaluate import Answers, Evaluator, Left
from similia.selection._ladder import Group
from similia.selection._rounds import (
    Candidate,
    Rung,
    Table,
    Unit,
    best_of_groups,
    chosen,
    first_units,
    near,
    noise,
    survivors,
    turns,
)
from similia.selection._times import Times
from similia.selection.budget import SEARCH, Budget

_QUORUM = 3  # minimum number of voters
OUT_OF_TIME, TOO_SLOW = "out of time", "too slow for the final fit"


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
