"""Time: how much there is, how much is left, and what a candidate is going to take on more objects."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

SEARCH, REFIT = 0.7, 0.5  # of the budget: for the rungs of the search in turn, and for the final fit at most

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

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Do not count the time that the block takes."""
        begin = clock()
        yield
        self.start += clock() - begin

    def left(self, share: float = 1.0) -> float:
        """Return the seconds left of the first `share` of the budget, below 0 when it is over."""
        return float("inf") if self.seconds is None else share * self.seconds - self.spent


@dataclass
class Costs:
    """Seconds that pieces of work took, and from these what they will take: a constant, and n to a power."""

    taken: dict[Hashable, dict[int, float]] = field(default_factory=dict)  # work to {objects: seconds}

    def note(self, work: Hashable, n: int, seconds: float) -> None:
        """Remember the seconds of a piece of work on n objects."""
        self.taken.setdefault(work, {})[n] = seconds

    def expected(self, work: Hashable, n: int, power: float) -> float:
        """Return the expected seconds of a piece of work on n objects: 0 if nothing is known yet."""
        known = self.taken.get(work)
        if not known:
            return 0.0
        sizes = sorted(known)
        m, grows = sizes[-1], 1.0
        seconds = known[m]
        if len(sizes) > 1 and seconds > 0:
            fewer = sizes[-2]
            more = 1 - known[fewer] / seconds
            grows = min(1.0, max(_GROWS, more / (1 - (fewer / m) ** power)))
        return seconds * (1 + grows * ((n / m) ** power - 1))
