"""How a command speaks: for people or as JSON, quiet or verbose; each command has these options from `command`."""

from __future__ import annotations

import atexit
import functools
import inspect
import json
import os
import signal
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

from similia.cli.options import READING, reading

_OPTIONS = {  # of each command: its letter and what it does
    "json": (["--json"], "Print the result as JSON; predictions as a line of JSON each."),
    "quiet": (["--quiet", "-q"], "Print errors only, and the result if it is asked for as JSON."),
    "verbose": (["--verbose", "-v"], "Show the progress of inner loops, and the place in the code of an error."),
}
_PIPED_IN = ("data", "queries")
_TABLE = "table"
_IN_PYTHON = "similia.save(model, path) writes one"  # what sentences of the library say, and commands say instead
_ON_COMMAND_LINE = "'similia fit DATA -o FILE' writes one, and 'similia encode' writes encoders"


@dataclass(frozen=True)
class Voice:
    """What was asked for; `piped` is whether standard output is the data that the command writes.

    `stdin` are the paths of what standard input brought, for which sentences have ``-``.
    """

    json: bool = False
    quiet: bool = False
    verbose: bool = False
    piped: bool = False
    stdin: tuple[str, ...] = ()


_USUAL = Voice()
_voice: ContextVar[Voice] = ContextVar("voice", default=_USUAL)
_alone: ContextVar[bool] = ContextVar("alone", default=False)
_TOLD = "told"


def voice() -> Voice:
    """Return how the command that runs is to speak."""
    return _voice.get()


@contextmanager
def speaking(**how: Any) -> Iterator[None]:
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

    for path in voice().stdin:
        text = text.replace(path, "standard input")
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

    A parameter called ``table`` stands for the options of reading (`options.READING`), and gets all of them.

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
        given = [parameter for name, parameter in signature.parameters.items() if name != _TABLE]
        added = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for name, (annotation, default) in [
                *(READING.items() if _TABLE in signature.parameters else []),
                *((name, (Annotated[bool, typer.Option(*o, help=h)], False)) for name, (o, h) in _OPTIONS.items()),
            ]
        ]

        @functools.wraps(function)
        def run(**arguments: Any) -> None:
            how = {name: arguments.pop(name) for name in _OPTIONS}
            target = arguments.get("output") or arguments.get("folder")
            before = _state(target)
            try:
                if _TABLE in signature.parameters:
                    arguments[_TABLE] = reading(arguments)
                with ExitStack() as stack:
                    _spoken(function, arguments, how, pipe, stack)
            except KeyboardInterrupt as stop:
                _end_stopped(stop, target, before)
                raise

        keyword = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in given]
        run.__signature__ = signature.replace(parameters=[*keyword, *added])  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in [*keyword, *added]}
        group.command(name)(run)
        return function

    return register


def own_process() -> None:
    """Say that the process is this command and nothing else, so that its end may do with signals what it likes."""
    _alone.set(True)
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # Python's own would kill the process when it is gone


def tell_stopped(stop: KeyboardInterrupt, how: str) -> None:
    """Print a line after Ctrl-C, the only one of the command; another Ctrl-C meanwhile has no effect."""
    if _alone.get():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    print(f"similia: stopped{how}", file=sys.stderr)
    stop.add_note(_TOLD)


def _end_stopped(stop: KeyboardInterrupt, target: Path | None, before: Any) -> None:
    """Say that a command was stopped, unless it has; that nothing was written only where files show it."""
    link: BaseException | None = stop  # a second Ctrl-C is raised while the first is on its way
    while link is not None and _TOLD not in getattr(link, "__notes__", ()):
        link = link.__context__
    if link is None:
        nothing = target not in (None, Path("-")) and _state(target) == before
        tell_stopped(stop, "; nothing was written" * nothing)
    if _alone.get():  # threads may be awaited: a further Ctrl-C ends that, without a traceback
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))


def _state(path: Path | None) -> tuple[int, int] | None:
    """Return what is another after a file was replaced, or an entry of a folder added; None where nothing is."""
    try:
        about = os.stat(path or "")
    except OSError:
        return None
    return about.st_ino, about.st_mtime_ns


def _spoken(
    function: Callable[..., None], arguments: dict[str, Any], how: dict[str, Any], pipe: str | None, stack: ExitStack
) -> None:
    """Call the function of a command, in the voice and with the pipes that were asked for."""
    piped: list[str] = []
    try:
        how["piped"] = _open_pipes(arguments, pipe, how["json"], stack, piped)
        stack.enter_context(speaking(**how, stdin=tuple(piped)))
        stack.enter_context(_short_warnings())
        function(**arguments)
    except Exception as error:
        if how["verbose"]:
            traceback.print_exc()
        for old, new in [*((path, "standard input") for path in piped), (_IN_PYTHON, _ON_COMMAND_LINE)]:
            error.args = tuple(a.replace(old, new) if isinstance(a, str) else a for a in error.args)
        raise


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
        raise ValueError("standard output (-o -) is a terminal, which cannot show this file; name a file")
    arguments["output"] = stack.enter_context(to_stdout(pipe))
    return True
