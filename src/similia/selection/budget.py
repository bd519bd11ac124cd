"""The time budget of a search, and the leaderboard that shows how it goes."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

SEARCH, REFIT = 0.7, 0.5  # shares of the budget: for the search, and at most for the final fit
_SHOWN = 10  # candidates on the leaderboard
clock = time.monotonic  # tests replace it


@dataclass
class Budget:
    """A time budget that begins with the creation of this object; `seconds` is None for no limit."""

    seconds: float | None
    start: float = field(default_factory=lambda: clock())

    @property
    def spent(self) -> float:
        return clock() - self.start

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the clock inside the ``with`` block."""
        begin = clock()
        yield
        self.start += clock() - begin

    def left(self, share: float = 1.0) -> float:
        """Return (`share` times the budget) - (seconds spent), which may be negative; infinite without a limit."""
        return float("inf") if self.seconds is None else share * self.seconds - self.spent


class Leaderboard(AbstractContextManager["Leaderboard"]):
    """Shows the best candidates and the time spent; `measure` is the name of the score."""

    def __init__(self, shown: bool, budget: Budget, measure: str) -> None:
        from rich.console import Console

        self.shown, self.budget, self.measure = shown, budget, measure
        self._console = Console(stderr=True)
        self._live: Any = None
        self._phase = ""

    def __enter__(self) -> Self:
        if self.shown and self._console.is_terminal:
            from rich.live import Live

            self._live = Live(console=self._console, transient=True, refresh_per_second=4)
            self._live.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        if self._live is not None:
            self._live.__exit__(*raised)
            self._live = None

    def show(self, phase: str, rows: list[dict[str, Any]]) -> None:
        """Show candidates in a terminal; elsewhere, write one line to stderr whenever the phase changes."""
        if not self.shown:
            return
        title = f"{phase}, {self.budget.spent:.0f} s"
        if self.budget.seconds is not None:
            title += f" of {self.budget.seconds:.0f}"
        if self._live is not None:
            self._live.update(table_of(rows[:_SHOWN], title, self.measure))
        elif phase != self._phase:
            best = f"; best so far {rows[0]['name']} ({rows[0]['mean_test_score']:.3f})" if rows else ""
            print(f"{title}{best}", file=sys.stderr, flush=True)
        self._phase = phase


def rows_of(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the columns of `cv_results_` as a list of dicts, one for each candidate."""
    return [dict(zip(results, row, strict=True)) for row in zip(*results.values(), strict=True)]


def table_of(rows: list[dict[str, Any]], title: str, measure: str) -> Any:
    """Return a table of candidates for the terminal, made by the library rich."""
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    table.add_column("candidate", overflow="fold")
    for column in (measure, "± s.e.", "fit, s", "objects"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        numbers = (f"{row['mean_test_score']:.3f}", f"{row['standard_error']:.3f}", f"{row['mean_fit_time']:.2f}")
        table.add_row(row["name"], *numbers, str(row["n_objects"]))
    return table
