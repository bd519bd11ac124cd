"""The commands: a module each, which imports what it needs when it runs, so that ``similia --help`` answers at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from similia._version import __version__
from similia.cli.demo import demo
from similia.cli.explain import explain
from similia.cli.fit import fit
from similia.cli.index_app import index
from similia.cli.options import Chunk, Cluster, Data, Distance, Kernel, Memory, Scheduler, Table, working
from similia.cli.plan import plan
from similia.cli.predict import predict
from similia.cli.report import report
from similia.cli.service import info, warmup
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


for function, pipe in (  # in the order of the help; `pipe` is the ending of what -o - writes
    (demo, None),
    (fit, ".similia"),
    (predict, None),
    (report, ".html"),
    (explain, ".html"),
    (encode, ".npy"),
    (plan, None),
    (warmup, None),
    (info, None),
):
    command(app, pipe=pipe)(function)
app.add_typer(index, name="index")
