"""``similia fit`` scores and writes the best of many pipelines, NysHD for a kernel, or D2KE for a distance."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from similia.cli.options import Data, Distance, Kernel, Seed, Table, scorers


def fit(
    data: Data,
    table: Table,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the model.")],
    kernel: Kernel = None,
    distance: Distance = None,
    bits: Annotated[
        int | None, typer.Option(help="With a kernel: bits of a code, a multiple of 8; 10000 if not given.")
    ] = None,
    landmarks: Annotated[
        int | None, typer.Option(help="With a kernel: number of landmarks; by the paper's rule if not given.")
    ] = None,
    directions: Annotated[
        str | None,
        typer.Option(
            help="With a kernel: how bits are made. gaussian (if not given): by a random matrix; hadamard: without a "
            "matrix, for small devices (similia export)."
        ),
    ] = None,
    task: Annotated[
        str,
        typer.Option(
            help="auto, classification or regression: are labels classes, or numbers to predict? auto decides by "
            "--scoring, else by the labels."
        ),
    ] = "auto",
    budget: Annotated[
        str | None,
        typer.Option(
            help="Without a kernel or distance: time to choose a pipeline and, in the last fifth, to fit it to all "
            "objects, such as 90s or 1h; 10m if not given."
        ),
    ] = None,
    scoring: Annotated[
        str | None,
        typer.Option(
            help="A scorer of scikit-learn such as balanced_accuracy that compares pipelines and measures the result; "
            "accuracy, or r2 for numbers, if not given.",
            autocompletion=scorers,
        ),
    ] = None,
    cv: Annotated[int | None, typer.Option(min=3, help="Without a kernel or distance: folds; 5 if not given.")] = None,
    voters: Annotated[
        int | None,
        typer.Option(
            min=1, help="Without a kernel or distance: maximum number of pipelines that vote together; 5 if not given."
        ),
    ] = None,
    test: Annotated[
        float, typer.Option(help="Share held out to measure accuracy before the final fit; 0 for none.")
    ] = 0.2,
    conformal: Annotated[
        bool,
        typer.Option(
            "--conformal",
            help="Calibrate the model with the held-out objects instead of fitting it to them too, so that 'similia "
            "predict --coverage 0.9' writes sets of labels or intervals that hold the truth with this probability.",
        ),
    ] = False,
    seed: Seed = 0,
) -> None:
    """Train a model on labelled data: the best of many pipelines, or NysHD with a kernel, or D2KE with a distance.

    [bold]similia fit reads.csv --text sequence --label species -o model.similia --budget 5m[/bold]

    Ctrl-C ends the trials; the best pipeline so far is fitted and written.

    [bold]similia fit molecules.csv --smiles smiles --label active -o active.similia[/bold]

    [bold]similia fit MUTAG.zip --kernel 'WeisfeilerLehman(n_iter=3)' -o mutag.similia[/bold]

    [bold]similia fit splice --kernel 'WeightedDegree(degree=5)' --directions hadamard -o splice.similia[/bold]

    [bold]similia fit GunPoint_TRAIN.ts --distance 'DTW(window=0.1)' -o gunpoint.similia[/bold]
    """
    import similia as sm
    from similia.cli import training
    from similia.cli.inputs import read_labelled
    from similia.cli.model_data import remember_columns
    from similia.cli.outputs import check_output
    from similia.cli.voice import console, result, written

    chooses = kernel is distance is bits is landmarks is directions is None
    training.check_options(
        {"--budget": budget, "--cv": cv, "--voters": voters}, chooses, kernel, distance, test, scoring
    )
    if conformal and not test:
        raise ValueError("--conformal calibrates with the held-out objects, and --test 0 holds out none; drop one")
    check_output(output, data)
    seconds = training.parse_duration(budget or "10m")
    table = training.as_compared(data, kernel, distance, table)
    read = read_labelled(data, **table)
    y, decided = training.targets_of(read, task, scoring, table.get("label"))
    training.check_suits(scoring, decided, y)
    part = training.Part(read, y, decided, test, seed, scoring, conformal)
    if chooses:
        model, facts = training.chosen(part, seconds, cv, voters)
    else:
        model, facts = training.made(part, kernel, distance, bits, landmarks, directions)
    remember_columns(model, data, table)
    sm.save(model, output)
    size = output.stat().st_size
    result({"objects": len(y), "kind": read.kind, "task": decided, **facts, "model": output, "bytes": size})
    how = f"fitted on all {len(y)}"
    if conformal:
        held_out = len(part.split()[1])
        how = f"fitted on {len(y) - held_out} and calibrated with {held_out}"
    console().print(f"{how} and wrote {written(output)} ({size / 1e6:.1f} MB)")
