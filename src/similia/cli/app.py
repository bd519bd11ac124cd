"""The Typer application; each command is a function that imports what it needs only when it runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

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
from similia.cli.neighbours import neighbours
from similia.cli.outliers import outliers
from similia.cli.plan import plan
from similia.cli.predict import predict
from similia.cli.report import report
from similia.cli.serve import info, serve, warmup
from similia.cli.suggest import suggest
from similia.cli.voice import command

_EPILOG = (
    "Exit codes: 0 success; 1 a pipe was closed, or similia itself failed (please report it); 2 invalid input or "
    "options, explained in one sentence; 130 stopped with Ctrl-C (but 0 if fit then wrote the best pipeline so far). "
    "Shell completion: similia --install-completion."
)


@contextmanager
def _in_one_sentence() -> Iterator[None]:
    """Print an error in the options as one sentence; exit with code 2."""
    try:
        yield
    except Exception as error:
        context = getattr(error, "ctx", None)
        if not hasattr(error, "format_message") or type(error).__name__ == "NoArgsIsHelpError":  # this one is the help
            raise
        text = " ".join(error.format_message().split()).rstrip(".")
        more = "" if context is None else f"; see {context.command_path} --help"
        print(f"similia: {text[:1].lower()}{text[1:]}{more}", file=sys.stderr)
        raise typer.Exit(2) from None


class _Commands(TyperGroup):
    def make_context(self, *arguments: Any, **options: Any) -> Any:
        with _in_one_sentence():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        with _in_one_sentence():
            return super().invoke(ctx)


app = typer.Typer(
    name="similia",
    cls=_Commands,
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
    (suggest, None),
    (report, ".html"),
    (map, ".html"),
    (cluster, ".csv"),
    (duplicates, ".csv"),
    (outliers, ".csv"),
    (neighbours, ".npz"),
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
