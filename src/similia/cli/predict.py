"""``similia predict`` writes the predictions of a model for data; interrupted runs resume."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from similia.cli.options import Chunk, Cluster, Data, Memory, Model, Scheduler, Table, working


def predict(
    model: Model,
    data: Data,
    table: Table,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A .csv, .tsv or .jsonl to write; the terminal if not given.")
    ] = None,
    scores: Annotated[
        bool, typer.Option("--scores", help="Add a column for each class: its probability, or else decision value.")
    ] = False,
    chunk: Chunk = 10_000,
    max_memory: Memory = None,
    cluster: Cluster = None,
    scheduler: Scheduler = None,
) -> None:
    """Predict labels of new data with a model. Interrupted runs resume when the command is repeated.

    [bold]similia predict model.similia new.csv --text sequence -o predictions.csv[/bold]

    [bold]similia predict model.similia new.csv --text sequence --id read --scores -o predictions.tsv[/bold]
    """
    from similia.cli.models import predict_with_model

    with working(max_memory, cluster, scheduler) as workers:
        predict_with_model(model, data, output, scores=scores, chunk=chunk, workers=workers, **table)
