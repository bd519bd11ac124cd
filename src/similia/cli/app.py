"""The Typer application; each command is a module that imports what it needs only when the command runs."""

from __future__ import annotations

from typing import Annotated

import typer

from similia._version import __version__
from similia.cli.cluster import cluster
from similia.cli.demo import demo
from similia.cli.duplicates import duplicates
from similia.cli.encode import encode
from similia.cli.explain import explain
from similia.cli.export import export
from similia.cli.fit import fit
from similia.cli.index import index
from similia.cli.map import map
from similia.cli.plan import plan
from similia.cli.predict import predict
from similia.cli.report import report
from similia.cli.serve import serve
from similia.cli.service import info, warmup
from similia.cli.voice import command

_EPILOG = (
    "Exit codes: 0 success; 1 a pipe was closed, or similia itself failed (please report it); 2 invalid input or "
    "options, explained in one sentence; 130 stopped with Ctrl-C (but 0 if fit then wrote the best pipeline so far). "
    "Shell completion: similia --install-completion."
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


for function, pipe in (  # in the order of the help; `pipe` is the ending of the file that -o - writes
    (demo, None),
    (fit, ".similia"),
    (predict, None),
    (report, ".html"),
    (map, ".html"),
    (cluster, ".csv"),
    (duplicates, ".csv"),
    (explain, ".html"),
    (encode, ".npy"),
    (export, None),
    (serve, None),
    (plan, None),
    (warmup, None),
    (info, None),
):
    command(app, pipe=pipe)(function)
app.add_typer(index, name="index")
