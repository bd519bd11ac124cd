"""How a command speaks: for people or as JSON, quiet or verbose; each command has these options from `command`."""

from __future__ import annotations

import functools
import inspect
import json
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

_OPTIONS = {  # of each command: its letter and what it does
    "json": (["--json"], "Print the result as JSON; predictions as a line of JSON each."),
    "quiet": (["--quiet", "-q"], "Print errors only, and the result if it is asked for as JSON."),
    "verbose": (["--verbose", "-v"], "Show the progress of inner loops, and the place in the code of an error."),
}
_PIPED_IN = ("data", "queries")


@dataclass(frozen=True)
class Voice:
    """What was asked for; `piped` is whether standard output is the data that the command writes."""

    json: bool = False
    quiet: bool = False
    verbose: bool = False
    piped: bool = False


_USUAL = Voice()
_voice: ContextVar[Voice] = ContextVar("voice", default=_USUAL)


def voice() -> Voice:
    """Return how the command that runs is to speak."""
    return _voice.get()


@contextmanager
def speaking(**how: bool) -> Iterator[None]:
    """Speak as `Voice` says."""
    token = _voice.set(Voice(**how))
    try:
        yield
    finally:
        _voice.reset(token)


@contextmanager
def _short_warnings() -> Iterator[None]:
    """Have warnings of Python be a line without the place in the code, which ``--verbose`` shows; none if quiet."""
    usual, how = warnings.formatwarning, voice()

    def line(message: Warning | str, *place: Any) -> str:
        return "" if how.quiet else f"warning: {message}\n"

    if not how.verbose:
        warnings.formatwarning = line  # type: ignore[assignment]
    try:
        yield
    finally:
        warnings.formatwarning = usual


def console(**options: Any) -> Any:
    """Return where people read: standard output, or standard error where that is data, or nowhere beside JSON."""
    from rich.console import Console

    how = voice()
    return Console(stderr=how.piped, quiet=how.quiet or how.json, soft_wrap=True, **options)


def written(path: Path) -> str:
    """Return how to call a file that was written, or standard output."""
    return "standard output" if voice().piped else str(path)


def note(text: str) -> None:
    """Print a line on standard error."""
    from rich.console import Console

    Console(stderr=True, soft_wrap=True, highlight=False, quiet=voice().quiet).print(text, markup=False)


def result(facts: dict[str, Any] | list[Any]) -> None:
    """Print what came out as JSON, if that was asked for; what is no number is null."""
    if voice().json:
        text = json.dumps(facts, default=_plain)
        print(json.dumps(json.loads(text, parse_constant=lambda _: None), indent=2))


def _plain(value: Any) -> Any:
    """Return a numpy scalar or array, or a path, as JSON has it."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def command(group: typer.Typer, name: str | None = None, *, pipe: str | None = None) -> Callable[..., Any]:
    """Register a function as a command that also has ``--json``, ``--quiet`` and ``--verbose``, and takes ``-``.

    Parameters
    ----------
    group : typer.Typer
    name : str, optional
        Of the command; that of the function if not given.
    pipe : str, optional
        Ending of the file that ``-o -`` writes to standard output; if not given, the function gets None as its output
        and prints.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(function, eval_str=True)
        given = list(signature.parameters.values())
        added = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=False,
                annotation=Annotated[bool, typer.Option(*o, help=h)],
            )
            for name, (o, h) in _OPTIONS.items()
        ]

        @functools.wraps(function)
        def run(**arguments: Any) -> None:
            how = {name: arguments.pop(name) for name in _OPTIONS}
            with ExitStack() as stack:
                piped: list[str] = []
                try:
                    how["piped"] = _open_pipes(arguments, pipe, how["json"], stack, piped)
                    stack.enter_context(speaking(**how))
                    stack.enter_context(_short_warnings())
                    function(**arguments)
                except Exception as error:
                    if how["verbose"]:
                        traceback.print_exc()
                    for path in piped:
                        error.args = tuple(a.replace(path, "-") if isinstance(a, str) else a for a in error.args)
                    raise

        keyword = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in given]
        run.__signature__ = signature.replace(parameters=[*keyword, *added])  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in [*keyword, *added]}
        group.command(name)(run)
        return function

    return register


def _open_pipes(arguments: dict[str, Any], pipe: str | None, as_json: bool, stack: ExitStack, piped: list[str]) -> bool:
    """Put files in the place of ``-``, whose paths go to `piped`; return whether standard output is what is written."""
    from similia.cli.pipes import from_stdin, to_stdout

    for name in _PIPED_IN:
        if arguments.get(name) == "-":
            arguments[name] = stack.enter_context(from_stdin())
            piped.append(arguments[name])
    if arguments.get("output") != Path("-"):
        return False
    if as_json:
        raise ValueError("-o - and --json both write to standard output; name a file, or drop --json")
    if pipe is None:
        arguments["output"] = None
        return False
    if sys.stdout.isatty():
        raise ValueError("-o - writes data to a pipe or file, and standard output is a terminal; name a file")
    arguments["output"] = stack.enter_context(to_stdout(pipe))
    return True
