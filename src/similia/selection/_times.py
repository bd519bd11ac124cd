"""Measure how long candidates take, and predict how long they will take on more objects."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import partial
from statistics import median

from similia.selection._evaluate import Evaluator
from similia.selection._rounds import Candidate, Rung, Unit
from similia.selection.budget import REFIT, Budget

_GROWS = 0.1  # minimum share of a time that is assumed to grow with n
_NEARLY_LINEAR, _FROM_ONE = 1.3, 1.5  # exponents of n: of fast fits, and the largest while only one n is timed
_PROBES = 0.05  # share of the seconds left that measuring the cost of a unit may take
_FINAL = "final"  # prefix of the keys for the cost of one learner fitted alone
_FITTED = -1  # stands for the learner in the key of a cost if all learners of a group are tried at once


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
