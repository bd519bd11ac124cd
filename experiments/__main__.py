"""``python dev.py reproduce NAME``: run a published experiment, our mean ± sd beside the paper's number."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from experiments import EXPERIMENTS, run
from similia.core.config import config


def _names(incomplete: str) -> list[str]:
    return [name for name in EXPERIMENTS if name.startswith(incomplete)]


def main(
    experiment: Annotated[
        str | None, typer.Argument(help="Name of the experiment; without it, they are listed.", autocompletion=_names)
    ] = None,
    only: Annotated[list[str] | None, typer.Option(help="Only this data set or kind (repeat for several).")] = None,
    seeds: Annotated[int, typer.Option(help="Seeds (and stratified splits); the paper used 10.")] = 10,
    budget: Annotated[float | None, typer.Option(help="Seconds for similia, where it chooses by itself.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for Markdown, CSV and pictures, e.g. docs.")
    ] = None,
) -> None:
    """Run a published experiment and print our mean ± sd beside the paper's number."""
    console = Console(highlight=False)
    if experiment is None:
        for name, summary in EXPERIMENTS.items():
            console.print(f"{name:20} {summary}", markup=False)
        return
    try:
        with config(progress=True):
            section = run(experiment, only=only, seeds=seeds, budget=budget, output=output)
    except (ValueError, FileNotFoundError) as error:  # a wrong option, or data that are not here
        raise SystemExit(f"{error}") from None
    for table in section.tables:
        table.print(console)
    if output is not None:
        console.print(f"wrote {section.write(output)}", markup=False)


if __name__ == "__main__":
    typer.run(main)
