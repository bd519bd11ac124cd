"""``similia reproduce``: published experiments, our figures beside the paper's."""

from __future__ import annotations

from pathlib import Path

from similia._config import config
from similia.cli.voice import console, result, voice
from similia.experiments import EXPERIMENTS, run


def reproduce(experiment: str | None, *, only: list[str] | None, seeds: int, output: Path | None) -> None:
    """Run an experiment and print its tables, or list the experiments."""
    say = console(highlight=False)
    if experiment is None:
        for name, summary in EXPERIMENTS.items():
            say.print(f"{name:20} {summary}", markup=False)
        result(EXPERIMENTS)
        return
    with config(progress=not voice().quiet):
        section = run(experiment, only=only, seeds=seeds)
    for table in section.tables:
        table.print(say)
    result([{"title": table.title, "columns": table.columns, "rows": table.rows} for table in section.tables])
    if output is not None:
        say.print(f"wrote {section.write(output)}", markup=False)
