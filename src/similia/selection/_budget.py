"""Time: how much there is, how much is left, and what a candidate is going to take on more objects."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

SEARCH, REFIT = 0.5, 0.3  # of the budget: what the search may take, and what the final fit may be expected to take

_GROWS = 0.1  # share of a time that is taken to grow with n, at least

clock = time.monotonic  # tests put another one here


@dataclass
class Budget:
    """A span of seconds that began when this was made; None has no end."""

    seconds: float | None
    start: float = field(default_factory=lambda: clock())

    @property
    def spent(self) -> float:
        return clock() - self.start

    def left(self, share: float = 1.0) -> float:
        """Return the seconds left of the first `share` of the budget, below 0 when it is over."""
        return float("inf") if self.seconds is None else share * self.seconds - self.spent


@dataclass
class Costs:
    """Seconds that groups took, and from these what they will take: a constant, and n to a power."""

    taken: dict[tuple[int, int], float] = field(default_factory=dict)  # (group, objects) to seconds of a fit

    def note(self, group: int, n: int, seconds: float) -> None:
        """Remember the seconds of one fit (and scoring) of a group's learners on n objects."""
        self.taken[group, n] = seconds

    def expected(self, group: int, n: int, slow: bool) -> float:
        """Return the expected seconds of one fit on n objects: 0 if nothing is known yet."""
        known = sorted(m for g, m in self.taken if g == group)
        if not known:
            return 0.0
        power, m, grows = 2.0 if slow else 1.2, known[-1], 1.0
        seconds = self.taken[group, m]
        if len(known) > 1 and seconds > 0:
            fewer = known[-2]
            more = 1 - self.taken[group, fewer] / seconds
            grows = min(1.0, max(_GROWS, more / (1 - (fewer / m) ** power)))
        return seconds * (1 + grows * ((n / m) ** power - 1))
