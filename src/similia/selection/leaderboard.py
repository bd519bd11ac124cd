"""The candidates, best first, while they are tried: a table on a terminal, lines in a log, nothing if switched off."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from typing import Any, Self

from similia.selection._budget import Budget

_SHOWN = 10


class Leaderboard(AbstractContextManager["Leaderboard"]):
    """Shows the best candidates and the time left.

    Parameters
    ----------
    shown : bool
    budget : Budget
    measure : str
        Name of the score.
    """

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
        """Draw `rows` of the table of a `Selection`; a log gets a line when the phase changes."""
        if not self.shown:
            return
        title = f"{phase}, {self.budget.spent:.0f} s"
        if self.budget.seconds is not None:
            title += f" of {self.budget.seconds:.0f}"
        if self._live is not None:
            self._live.update(table_of(rows[:_SHOWN], title, self.measure))
        elif phase != self._phase:
            best = f"; best so far {rows[0]['name']} ({rows[0]['mean_score']:.3f})" if rows else ""
            print(f"{title}{best}", file=sys.stderr, flush=True)
        self._phase = phase


def table_of(rows: list[dict[str, Any]], title: str, measure: str) -> Any:
    """Return a rich table of candidates."""
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    table.add_column("candidate", overflow="fold")
    for column in (measure, "± s.e.", "fit, s", "objects"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        numbers = (f"{row['mean_score']:.3f}", f"{row['standard_error']:.3f}", f"{row['fit_seconds']:.2f}")
        table.add_row(row["name"], *numbers, str(row["n_objects"]))
    return table
