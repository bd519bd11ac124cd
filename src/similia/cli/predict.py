"""``similia predict`` writes the predictions of a model for data; interrupted runs resume."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from similia.cli.options import Chunk, Data, Model, Table, Workers


def predict(
    model: Model,
    data: Data,
    table: Table,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A .csv, .tsv or .jsonl file to write. Default: print to the terminal."),
    ] = None,
    scores: Annotated[
        bool,
        typer.Option(
            "--scores",
            help="Add a column per class: its probability, or its decision value for models without probabilities.",
        ),
    ] = False,
    coverage: Annotated[
        float | None,
        typer.Option(
            help="Add the set of labels, or the interval, that contains the truth with this probability, such as 0.9. "
            "Needs a model of 'similia fit --conformal', or a Gaussian process for numbers."
        ),
    ] = None,
    std: Annotated[
        bool,
        typer.Option(
            "--std",
            help="Add the standard deviation of each predicted number. Needs a Gaussian process: 'similia fit "
            "--learner gaussian-process'.",
        ),
    ] = False,
    chunk: Chunk = 10_000,
    workers: Workers = None,
) -> None:
    """Predict the labels of new data with a model. Interrupted runs resume when the command is repeated.

    [bold]similia predict model.similia new.csv --text sequence -o predictions.csv[/bold]

    [bold]similia predict model.similia new.csv --text sequence --id read --scores -o predictions.tsv[/bold]

    [bold]similia predict model.similia new.csv --coverage 0.9 -o sets.csv[/bold]

    [bold]similia predict process.similia new.csv --smiles smiles --std -o predictions.csv[/bold]
    """
    import similia as sm
    from similia.cli.inputs import check_kind, open_objects, with_columns_of
    from similia.cli.outputs import Spoken, check_output, meters, stoppable
    from similia.cli.voice import console, result, voice
    from similia.scale.stream import Predictions, form_of, print_stream, write_stream
    from similia.sources.source import Reading

    given = {"--scores": scores, "--std": std, "--coverage": coverage is not None}
    if len(excluding := [option for option, is_given in given.items() if is_given]) > 1:
        raise ValueError(f"{' and '.join(excluding)} exclude each other; write each to a file of its own")
    form_name = "jsonl" if voice().json else "csv"
    check_output(output, data, model)
    if output is not None:
        form_name = form_of(output)
    fitted = sm.load(model)
    if not hasattr(fitted, "predict"):
        raise ValueError(f"{model} cannot predict (is it an encoder?); 'similia fit' writes models that can")
    table = with_columns_of(fitted, data, table)
    stream = open_objects(data, chunk=chunk, workers=workers, **table)
    names = Reading(**table).names
    form = Predictions(fitted, form_name, scores, names, coverage, std, stream.named)  # raises if the model cannot
    check_kind(fitted, stream, stream.take([0]))
    if output is None:
        print_stream(form, stream, sys.stdout, workers=workers)
        return
    progress = Spoken()
    with stoppable(lambda: progress.done, stream.n), meters():
        write_stream(form, stream, output, workers=workers, progress=progress)
    console().print(f"wrote {progress.done} predictions to {output}")
    result({"predictions": progress.done, "output": output})
