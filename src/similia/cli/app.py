"""Commands and their help; the work is in the modules beside this one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from similia._version import __version__
from similia.cli.index_app import index
from similia.cli.options import (
    DATA_HELP,
    Bits,
    Chunk,
    Cluster,
    Data,
    Distance,
    Kernel,
    Memory,
    Model,
    Scheduler,
    Seed,
    Table,
    scorers,
    working,
)
from similia.cli.voice import command

_EPILOG = (
    "Exit codes: 0 success; 1 a pipe was closed, or similia itself failed (please report it); 2 unusable input or "
    "options, explained in one sentence; 130 stopped with Ctrl-C (fit writes the best pipeline found until then: 0). "
    "Completion of commands, options and names: similia --install-completion."
)

app = typer.Typer(
    name="similia",
    help="Similarity in; vectors, packed bits, classifiers and search out. Start with: [bold]similia demo[/bold]",
    epilog=_EPILOG,
    rich_markup_mode="rich",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(index, name="index")


def _version(value: bool) -> None:
    if value:
        typer.echo(f"similia {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@command(app)
def demo(seed: Seed = 0) -> None:
    """Classify real DNA with hypervectors made from a kernel.

    Trains on the two bundled sets (promoters, splice junctions) and shows accuracy, size and what
    happens when bits of the codes flip.
    """
    from similia.cli.demo import run

    run(seed)


@command(app, pipe=".similia")
def fit(
    data: Data,
    table: Table,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the model.")],
    kernel: Kernel = None,
    distance: Distance = None,
    bits: Annotated[
        int | None,
        typer.Option(help="With a kernel: bits of a code, a multiple of 8; 10000 if not given."),
    ] = None,
    landmarks: Annotated[
        int | None,
        typer.Option(help="With a kernel: number of landmarks; by the paper's rule if not given."),
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
        typer.Option(help="Without a kernel or distance: time to try pipelines, such as 90s or 1h; 10m if not given."),
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
    seed: Seed = 0,
) -> None:
    """Train a model on labelled data: the best of many pipelines, or NysHD with a kernel, or D2KE with a distance.

    [bold]similia fit reads.csv --text sequence --label species -o model.similia --budget 5m[/bold]

    Ctrl-C ends the trials; the best pipeline so far is fitted and written.

    [bold]similia fit molecules.csv --smiles smiles --label active -o active.similia[/bold]

    [bold]similia fit MUTAG.zip --kernel 'WeisfeilerLehman(n_iter=3)' -o mutag.similia[/bold]

    [bold]similia fit GunPoint_TRAIN.ts --distance 'DTW(window=0.1)' -o gunpoint.similia[/bold]
    """
    from similia.cli.fit import fit_selected
    from similia.cli.models import fit_model

    if kernel is distance is bits is landmarks is None:
        fit_selected(
            data,
            output,
            budget=budget or "10m",
            test_share=test,
            seed=seed,
            task=task,
            scoring=scoring,
            cv=cv,
            voters=voters,
            **table,
        )
        return
    for option, value in {"--budget": budget, "--cv": cv, "--voters": voters}.items():
        if value is not None:
            raise ValueError(
                f"{option} is for choosing a pipeline; drop it, or --kernel, --distance, --bits and --landmarks"
            )
    fit_model(
        data,
        output,
        kernel=kernel,
        distance=distance,
        n_bits=bits,
        n_landmarks=landmarks,
        test_share=test,
        seed=seed,
        task=task,
        scoring=scoring,
        **table,
    )


@command(app)
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


@command(app, pipe=".html")
def report(
    model: Model,
    data: Data,
    table: Table,
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML page to write.")],
    unseen: Annotated[
        bool, typer.Option("--unseen", help="The model was fitted without these objects: score its own predictions.")
    ] = False,
    folds: Annotated[int, typer.Option(min=2, help="Folds of cross-validation, without --unseen.")] = 5,
    objects: Annotated[
        int, typer.Option(min=10, help="Maximum number of objects; a random sample is taken of more.")
    ] = 5000,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    seed: Seed = 0,
) -> None:
    """Write a page about a model and data: accuracy, errors, a map of the objects, why they are similar, cost.

    [bold]similia report model.similia reads.csv --text sequence --label species -o report.html[/bold]
    """
    from similia.cli.report import report as run

    run(
        model,
        data,
        output,
        unseen=unseen,
        folds=folds,
        max_objects=objects,
        title=title,
        seed=seed,
        **table,
    )


@command(app, pipe=".html")
def explain(
    model: Annotated[Path, typer.Argument(help="A model, an encoder or the folder of an index.")],
    data: Data,
    table: Table,
    pair: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--pair",
            metavar="WHICH WHICH",
            help="Explain why these two objects are similar: their names, or numbers from 0.",
        ),
    ] = None,
    one: Annotated[
        str | None,
        typer.Option(
            "--object", metavar="WHICH", help="Explain the prediction for this object: its name, or number from 0."
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Maximum number of parts to list.")] = 10,
    labels: Annotated[
        str | None, typer.Option(help="Names of the labels of nodes, e.g. 0=C,1=N,2=O for atoms.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="HTML page to write; the terminal if not given.")
    ] = None,
) -> None:
    """Show why two objects are similar, or why a model decides as it does: k-mers, patterns of graphs, alignments.

    [bold]similia explain model.similia reads.csv --text sequence --pair 3 17[/bold]

    [bold]similia explain model.similia reads.fasta --object read17[/bold]

    [bold]similia explain model.similia molecules.zip --object 5 --labels 0=C,1=N,2=O[/bold]
    """
    from similia.cli.explain import explain_pair, explain_prediction

    how: dict[str, Any] = {"top": top, "labels": labels, "output": output, **table}
    if pair is not None and one is None:
        explain_pair(model, data, *pair, **how)
    elif one is not None and pair is None:
        explain_prediction(model, data, one, **how)
    else:
        raise ValueError(
            "give either --pair A B (why are two objects similar?) or --object A (why is it predicted so?)"
        )


@command(app, pipe=".npy")
def encode(
    data: Data,
    table: Table,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The .npy file to write: a row of packed bits for each object.")
    ],
    model: Annotated[
        Path | None, typer.Option(help="An encoder, a model of 'similia fit' or an index; if not given, one is fitted.")
    ] = None,
    kernel: Kernel = None,
    distance: Distance = None,
    bits: Annotated[
        int | None,
        typer.Option(help="Without a model: bits of a code, a multiple of 8; 256 if not given."),
    ] = None,
    landmarks: Annotated[
        int | None,
        typer.Option(min=1, help="Without a model: number of landmarks of the kernel or distance; 256 if not given."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Without a model: seed of everything random; 0 if not given."),
    ] = None,
    chunk: Chunk = 10_000,
    max_memory: Memory = None,
    cluster: Cluster = None,
    scheduler: Scheduler = None,
) -> None:
    """Make packed bits of objects. Interrupted runs resume when the command is repeated.

    [bold]similia encode reads.fasta -o reads.npy[/bold]

    [bold]similia encode more.fasta -o more.npy --model reads.encoder.similia[/bold]
    """
    from similia.cli.encode import encode as run

    with working(max_memory, cluster, scheduler) as workers:
        run(
            data,
            output,
            model=model,
            kernel=kernel,
            distance=distance,
            bits=bits,
            landmarks=landmarks,
            seed=seed,
            chunk=chunk,
            workers=workers,
            **table,
        )


@command(app)
def plan(
    table: Table,
    objects: Annotated[float | None, typer.Option(help="Number of objects, e.g. 1e9.")] = None,
    length: Annotated[
        float | None,
        typer.Option(help="Their mean length: letters, nodes of a graph, points of a series or set, or numbers."),
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="Instead of --objects and --length: data to take a sample of. " + DATA_HELP)
    ] = None,
    kernel: Kernel = None,
    distance: Distance = None,
    landmarks: Annotated[
        int | None,
        typer.Option(min=1, help="Landmarks of a kernel or distance; 300, or all objects if fewer, if not given."),
    ] = None,
    random: Annotated[
        int | None,
        typer.Option(min=1, help="With a distance: random objects, instead of landmarks."),
    ] = None,
    bits: Bits = 1024,
    cores: Annotated[int | None, typer.Option(min=1, help="All of this machine if not given.")] = None,
    kind: Annotated[
        str | None,
        typer.Option(help="strings, graphs, series, sets or vectors, where the kernel or distance leaves it open."),
    ] = None,
    edges: Annotated[
        float | None,
        typer.Option(help="Mean edges of a graph; as many as nodes if not given."),
    ] = None,
    letters: Annotated[int, typer.Option(min=1, help="Different letters of strings, or labels of nodes.")] = 4,
    channels: Annotated[
        int | None,
        typer.Option(min=1, help="Numbers of a point of a series (1 if not given) or set (2)."),
    ] = None,
) -> None:
    """Estimate the cost of bits of many objects: kernel values, operations, bytes, hours. Takes 5 to 20 seconds.

    [bold]similia plan --objects 1e9 --length 100 --kernel 'GappyKmers(k=4, gaps=1)' --cores 64[/bold]

    [bold]similia plan --data reads.fasta --distance 'Levenshtein()' --random 1024[/bold]
    """
    from similia.cli.plan import show_plan

    show_plan(
        objects=objects,
        length=length,
        data=data,
        table=table,
        kernel=kernel,
        distance=distance,
        landmarks=landmarks,
        random=random,
        bits=bits,
        cores=cores,
        kind=kind,
        edges=edges,
        letters=letters,
        channels=channels,
    )


@command(app)
def warmup(
    kinds: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KIND]...", help="Of strings, graphs, series, sets, vectors, codes; all if not given."),
    ] = None,
) -> None:
    """Compile all loops ahead, so that a first request is as quick as the next. Takes a minute or two, once.

    Run it when a machine or an image is set up. Set NUMBA_CACHE_DIR to a folder that the service can read.

    [bold]similia warmup strings codes[/bold]
    """
    from similia.cli.service import warm_up

    warm_up(kinds)


@command(app)
def info(model: Model) -> None:
    """Show what a model file holds and which similia wrote it.

    [bold]similia info model.similia[/bold]
    """
    from similia.cli.service import show_model

    show_model(model)
