"""Commands and their help; the work is in the modules beside this one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from similia._version import __version__

app = typer.Typer(
    name="similia",
    help="Similarity in; vectors, packed bits and classifiers out. Start with: [bold]similia demo[/bold]",
    rich_markup_mode="rich",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

_KERNEL_HELP = "A kernel of similia.kernels with its parameters, e.g. 'GappyKmers(k=4, gaps=1)'."
_DISTANCE_HELP = "A distance of similia.distances instead of a kernel, e.g. 'DTW(window=0.1)'."
_DATA_HELP = (
    "CSV, TSV or Parquet; FASTA or FASTQ; a TUDataset folder or zip; series as .ts; "
    "or a name such as 'splice' or 'NCI1'."
)


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


@app.command()
def demo(seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0) -> None:
    """Classify real DNA with hypervectors made from a kernel.

    Trains on the two bundled sets (promoters, splice junctions) and shows accuracy, size and what
    happens when bits of the codes flip.
    """
    from similia.cli.demo import run

    run(seed)


@app.command()
def fit(
    data: Annotated[str, typer.Argument(help=_DATA_HELP)],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the model.")],
    kernel: Annotated[Optional[str], typer.Option(help=_KERNEL_HELP)] = None,  # noqa: UP045
    distance: Annotated[Optional[str], typer.Option(help=_DISTANCE_HELP)] = None,  # noqa: UP045
    text: Annotated[str, typer.Option(help="Column with the strings.")] = "text",
    label: Annotated[str, typer.Option(help="Column (or FASTA header field, as label=...) with the labels.")] = "label",
    bits: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(help="With a kernel: bits of a code, a multiple of 8; 10000 if not given."),
    ] = None,
    landmarks: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(help="With a kernel: number of landmarks; by the paper's rule if not given."),
    ] = None,
    test: Annotated[
        float, typer.Option(help="Share held out to measure accuracy before the final fit; 0 for none.")
    ] = 0.2,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
) -> None:
    """Train NysHD (with a kernel) or D2KE (with a distance) on labelled data and write the model.

    [bold]similia fit reads.csv --text sequence --label species -o model.similia[/bold]

    [bold]similia fit MUTAG.zip --kernel 'WeisfeilerLehman(n_iter=3)' -o mutag.similia[/bold]

    [bold]similia fit GunPoint_TRAIN.ts --distance 'DTW(window=0.1)' -o gunpoint.similia[/bold]
    """
    from similia.cli.models import fit_model

    fit_model(
        data,
        output,
        kernel=kernel,
        distance=distance,
        text=text,
        label=label,
        n_bits=bits,
        n_landmarks=landmarks,
        test_share=test,
        seed=seed,
    )


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="A model that 'similia fit' wrote.")],
    data: Annotated[str, typer.Argument(help=_DATA_HELP)],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV to write; the terminal if not given.")
    ] = None,
    text: Annotated[str, typer.Option(help="Column with the strings.")] = "text",
) -> None:
    """Predict labels of new data with a model.

    [bold]similia predict model.similia new.csv --text sequence -o predictions.csv[/bold]
    """
    from similia.cli.models import predict_with_model

    predict_with_model(model, data, output, text=text)


@app.command()
def reproduce(
    experiment: Annotated[
        str | None, typer.Argument(help="Name of the experiment; without it, they are listed.")
    ] = None,
    only: Annotated[Optional[list[str]], typer.Option(help="Only this data set (repeat for several).")] = None,  # noqa: UP045
    seeds: Annotated[int, typer.Option(help="Seeds (and stratified splits); the paper used 10.")] = 10,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for Markdown, CSV and pictures, e.g. docs.")
    ] = None,
) -> None:
    """Run a published experiment and print our mean ± sd beside the paper's number.

    [bold]similia reproduce nyshd-graphs --only MUTAG[/bold]

    [bold]similia reproduce nyshd-strings --output docs[/bold]
    """
    from similia._config import config
    from similia.experiments import EXPERIMENTS, run

    if experiment is None:
        for name, summary in EXPERIMENTS.items():
            typer.echo(f"{name:20} {summary}")
        return
    with config(progress=True):
        section = run(experiment, only=only, seeds=seeds)
    for table in section.tables:
        table.print()
    if output is not None:
        typer.echo(f"wrote {section.write(output)}")
