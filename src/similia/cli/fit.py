"""``similia fit`` trains, scores and writes a model: the best of many pipelines, or one for a kernel or distance."""

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
        int | None, typer.Option(help="With a kernel: number of bits of a code; a multiple of 8. Default: 10000.")
    ] = None,
    landmarks: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="With a kernel: number of landmarks, the objects with which each object is compared. Default: 2 % of "
            "the objects, at least 300.",
        ),
    ] = None,
    directions: Annotated[
        str | None,
        typer.Option(
            help="With a kernel: how random directions make the bits. gaussian (the default) stores a random matrix; "
            "hadamard stores none, for small devices (similia export)."
        ),
    ] = None,
    learner: Annotated[
        str | None,
        typer.Option(
            help="gaussian-process: learn from the kernel by a Gaussian process, whose predictions of numbers have "
            "standard deviations (similia predict --std) and which suggests what to measure next (similia suggest). "
            "Without --kernel, it takes the one of a few kernels under which the labels of at most 1000 objects are "
            "most likely. Without --learner, a kernel makes bits for prototypes (classes) or vectors for ridge "
            "regression (numbers).",
        ),
    ] = None,
    task: Annotated[
        str,
        typer.Option(
            help="classification: labels are classes; regression: labels are numbers to predict; auto: decide by "
            "--scoring, or else by the labels."
        ),
    ] = "auto",
    budget: Annotated[
        str | None,
        typer.Option(
            help="Without a kernel or distance: time to choose a pipeline, such as 90s or 1h; its last fifth (with "
            "--cross, its second half) is for the final fits. Default: 10m."
        ),
    ] = None,
    scoring: Annotated[
        str | None,
        typer.Option(
            help="A scikit-learn scorer, such as balanced_accuracy, to compare pipelines and to score the result. "
            "Default: accuracy for classes, r2 for numbers.",
            autocompletion=scorers,
        ),
    ] = None,
    cv: Annotated[
        int | None, typer.Option(min=3, help="Without a kernel or distance: number of folds. Default: 5.")
    ] = None,
    voters: Annotated[
        int | None,
        typer.Option(
            min=1, help="Without a kernel or distance: maximum number of pipelines that vote together. Default: 5."
        ),
    ] = None,
    test: Annotated[
        float, typer.Option(help="Share of objects held out to score the model before the final fit; 0 holds out none.")
    ] = 0.2,
    conformal: Annotated[
        bool,
        typer.Option(
            "--conformal",
            help="Calibrate the model with the held-out objects, and do not fit it to them. 'similia predict "
            "--coverage 0.9' then writes sets of labels, or intervals, that contain the truth with probability "
            "0.9.",
        ),
    ] = False,
    cross: Annotated[
        bool,
        typer.Option(
            "--cross",
            help="With --conformal: fit the model to all objects, and calibrate it with all of them, in 5 folds. "
            "Better for a few hundred objects or fewer; takes 6 fits instead of one.",
        ),
    ] = False,
    by_class: Annotated[
        bool,
        typer.Option(
            "--by-class",
            help="With --conformal: calibrate each class with its own objects, so that sets contain the truth with "
            "the chosen probability within each class, even a rare one.",
        ),
    ] = False,
    seed: Seed = 0,
) -> None:
    """Train a model on labelled data: the best of many pipelines, or the one for a given kernel or distance.

    For classes, --kernel trains NysHD: it compares objects with landmarks, makes packed bits, and learns a prototype
    for each class. For numbers, it trains ridge regression. --distance trains D2KE, a linear model of distances to
    random objects.

    [bold]similia fit reads.csv --text sequence --label species -o model.similia --budget 5m[/bold]

    Ctrl-C ends the trials; the best pipeline so far is then fitted and written.

    [bold]similia fit molecules.csv --smiles smiles --label active -o active.similia[/bold]

    [bold]similia fit molecules.csv --smiles smiles --label yield --learner gaussian-process -o yield.similia[/bold]

    [bold]similia fit reads.csv --label species --conformal --cross -o species.similia[/bold]

    [bold]similia fit MUTAG.zip --kernel 'WeisfeilerLehman(n_iter=3)' -o mutag.similia[/bold]

    [bold]similia fit splice --kernel 'WeightedDegree(degree=5)' --directions hadamard -o splice.similia[/bold]

    [bold]similia fit GunPoint_TRAIN.ts --distance 'DTW(window=0.1)' -o gunpoint.similia[/bold]
    """
    import similia as sm
    from similia.cli import training
    from similia.cli.inputs import as_compared, read_labelled, remember_columns
    from similia.cli.outputs import check_model, size_of
    from similia.cli.voice import console, result, written

    chooses = kernel is distance is bits is landmarks is directions is learner is None
    choosing = {"--budget": budget, "--cv": cv, "--voters": voters}
    compared = training.check_options(choosing, chooses, kernel, distance, test, scoring)
    training.check_conformal(conformal, cross, by_class, test)
    check_model(output, data)
    seconds = training.parse_duration(budget or "10m")
    table = as_compared(data, compared, table)
    read = read_labelled(data, **table)
    y, decided = training.targets_of(read, task, scoring, table.get("label"))
    training.check_suits(scoring, decided, y)
    training.check_conformal(conformal, cross, by_class, test, decided)
    part = training.Part(read, y, decided, test, seed, scoring, conformal, cross, by_class)
    if chooses:
        model, facts = training.chosen(part, seconds, cv, voters)
    else:
        recipe = training.recipe_of(part, kernel, distance, bits, landmarks, directions, learner)
        model, facts = training.made(part, recipe)
    remember_columns(model, data, table)
    sm.save(model, output)
    size = output.stat().st_size
    result({"objects": len(y), "kind": read.kind, "task": decided, **facts, "model": output, "bytes": size})
    how = f"fitted on all {len(y)}"
    if cross:
        how += f" and calibrated with all, in {len(model.fold_estimators_)} folds,"
    elif conformal:
        held_out = len(part.split()[1])
        how = f"fitted on {len(y) - held_out} and calibrated with {held_out}"
    console().print(f"{how} and wrote {written(output)} ({size_of(size)})")
