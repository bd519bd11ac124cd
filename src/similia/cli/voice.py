"""Output of commands: text or JSON, quiet or verbose; `command` adds these options to each command, and handles ``-``.

``-`` stands for standard input, which is copied to a file named by its format, and for standard output.
"""

from __future__ import annotations

import atexit
import functools
import gzip
import inspect
import json
import logging
import os
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.models import ArgumentInfo, OptionInfo

from similia.cli.options import READING, WORKING, reading, working

_OPTIONS = {  # of each command: the flags and the help
    "json": (["--json"], "Print the result as JSON; predictions without --output as one line of JSON each."),
    "quiet": (["--quiet", "-q"], "Print only errors, the result of --json, and what --output would get."),
    "verbose": (["--verbose", "-v"], "Show the progress of inner loops, and the traceback of an error."),
}
_SILENT = 2.0  # seconds of compilation without a word
_PIPED_IN = ("data", "queries", "train")
_OUTPUTS = ("output", "groups", "report", "save")
_STANDS_FOR = {"table": READING, "workers": WORKING}  # parameters of commands, and the options for each
_BLOCK = 2**20
_MAGIC = {b"\x93NUMPY": ".npy", b"PAR1": ".parquet"}
_TS_WORDS = ("@problemname", "@timestamps", "@missing", "@univariate", "@dimension", "@equallength", "@classlabel")


@dataclass(frozen=True)
class Voice:
    """Output options; `piped` tells whether the command writes its data to standard output.

    `stdin` holds the paths of temporary copies of standard input.
    """

    json: bool = False
    quiet: bool = False
    verbose: bool = False
    piped: bool = False
    stdin: tuple[str, ...] = ()


_USUAL = Voice()
_voice: ContextVar[Voice] = ContextVar("voice", default=_USUAL)
_alone: ContextVar[bool] = ContextVar("alone", default=False)
_TOLD = "told"  # attribute of a KeyboardInterrupt whose line was printed


def voice() -> Voice:
    return _voice.get()


@contextmanager
def speaking(**how: Any) -> Iterator[None]:
    token = _voice.set(Voice(**how))
    try:
        yield
    finally:
        _voice.reset(token)


class _Compiling(logging.Handler):
    """Print one note when loops have been compiled for two seconds."""

    seconds = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        before = self.seconds
        self.seconds += record.args[1]  # type: ignore[index, operator]
        if before < _SILENT <= self.seconds:
            note("compiling loops for their first use, up to a minute; later runs take them from a cache")


@contextmanager
def _compiling_told() -> Iterator[None]:
    if not sys.stderr.isatty():
        yield
        return
    logger, handler = logging.getLogger("similia.compile"), _Compiling()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


@contextmanager
def _short_warnings() -> Iterator[None]:
    """Shorten Python warnings to one line, except with ``--verbose``; ``--quiet`` hides them."""
    usual, how = warnings.formatwarning, voice()

    def line(message: Warning | str, *place: Any) -> str:
        from similia.core.validation import ObjectsWarning

        if isinstance(message, ObjectsWarning):  # numbered like the rows of predictions
            message = message.about(f"object {message.index} (counted from 0)")
        return "" if how.quiet else f"warning: {message}\n"

    if not how.verbose:
        warnings.formatwarning = line  # type: ignore[assignment]
    try:
        yield
    finally:
        warnings.formatwarning = usual


def console(**options: Any) -> Any:
    """Return the console for messages, which holds no markup; with --quiet or --json it prints nothing.

    It writes to standard output or, if the data of the command goes there, to standard error.
    """
    from rich.console import Console

    how = voice()
    quiet = how.quiet or how.json
    return Console(stderr=how.piped, quiet=quiet, soft_wrap=True, markup=False, emoji=False, **options)


def written(path: Path) -> str:
    """Return the name of a written file for messages: its path, or "standard output" if data is piped."""
    return "standard output" if voice().piped else str(path)


def called(source: Any) -> str:
    """Return the name of an input file for messages: its path, or "standard input" for a copy of standard input."""
    return "standard input" if str(source) in voice().stdin else str(source)


def as_typed(data: str) -> str:
    """Return an input as commands name it: its path, or "-" for a copy of standard input."""
    return "-" if data in voice().stdin else data


def note(text: str) -> None:
    from rich.console import Console

    quiet = voice().quiet
    Console(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False, quiet=quiet).print(text)


def result(facts: dict[str, Any] | list[Any]) -> None:
    """Print the result as JSON if requested, with NaN and infinity as null."""
    if voice().json:
        text = json.dumps(facts, default=_plain)
        print(json.dumps(json.loads(text, parse_constant=lambda _: None), indent=2))


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)


def command(group: typer.Typer, name: str | None = None, *, pipe: str | None = None) -> Callable[..., Any]:
    """Register a function as a command with ``--json``, ``--quiet`` and ``--verbose``, and ``-`` for standard streams.

    The parameter ``table`` of a function takes the group of options `READING`, and ``workers`` the group `WORKING`.
    With ``-o -``, the output goes to standard output, in the format of files that end in `pipe`; if `pipe` is None, the
    function gets ``output=None``.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(function, eval_str=True)
        given = [found for found in signature.parameters.values() if found.name not in _STANDS_FOR]
        options: dict[str, tuple[Any, Any]] = {}
        for parameter, stands_for in _STANDS_FOR.items():
            options |= stands_for if parameter in signature.parameters else {}
        options |= {o: (Annotated[bool, typer.Option(*flags, help=h)], False) for o, (flags, h) in _OPTIONS.items()}
        added = [
            inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for option, (annotation, default) in options.items()
        ]

        @functools.wraps(function)
        def run(**arguments: Any) -> None:
            _raise_at_ctrl_c()
            how = {name: arguments.pop(name) for name in _OPTIONS}
            target = arguments.get("output") or arguments.get("folder")
            before = _state(target)
            try:
                if "table" in signature.parameters:
                    arguments["table"] = reading(arguments)
                _check_outputs(arguments)
                with ExitStack() as stack:
                    if "workers" in signature.parameters:
                        arguments["workers"] = stack.enter_context(working(arguments))
                    _spoken(function, arguments, how, pipe, stack, spelled)
            except KeyboardInterrupt as stop:
                _end_stopped(stop, target, before)
                raise

        keyword = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in given]
        spelled = _spelled([*keyword, *added])
        run.__signature__ = signature.replace(parameters=[*keyword, *added])  # type: ignore[attr-defined]
        paragraphs = inspect.cleandoc(function.__doc__ or "").split("\n\n")
        run.__doc__ = "\n\n".join(" ".join(lines.split("\n")) for lines in paragraphs)  # the help wraps lines itself
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in [*keyword, *added]}
        group.command(name)(run)
        return function

    return register


def _spelled(parameters: list[inspect.Parameter]) -> dict[str, str]:
    """Return how users write parameters: DATA for ``data`` and X; ``--max-length`` for ``max_length``."""
    found = {}
    for parameter in parameters:
        for about in parameter.annotation.__metadata__:
            if isinstance(about, OptionInfo):
                flags = [flag for flag in (about.default, *(about.param_decls or ())) if isinstance(flag, str)]
                found[parameter.name] = max(flags, key=len, default="--" + parameter.name.replace("_", "-"))
            elif isinstance(about, ArgumentInfo):
                found[parameter.name] = parameter.name.upper()
    return found | ({"X": found["data"]} if "data" in found else {})


def own_process() -> None:
    """Declare that the process runs only this command, which may then change signal handlers when it ends."""
    _alone.set(True)
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # the default handler would kill the exiting process


def _raise_at_ctrl_c() -> None:
    """From here on, Ctrl-C raises KeyboardInterrupt in a process of its own; until here, `main` ends it at once."""
    if _alone.get() and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def tell_stopped(stop: KeyboardInterrupt, how: str) -> None:
    """Print the only line after Ctrl-C, "similia: stopped" and `how`; a second Ctrl-C then has no effect."""
    if _alone.get():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    print(f"similia: stopped{how}", file=sys.stderr)
    setattr(stop, _TOLD, True)


def _end_stopped(stop: KeyboardInterrupt, target: Path | None, before: Any) -> None:
    """Print once that a command was stopped and, if `target` has the state `before`, that it wrote nothing."""
    link: BaseException | None = stop  # a second Ctrl-C may follow while the first is handled
    while link is not None and not hasattr(link, _TOLD):
        link = link.__context__
    if link is None:
        nothing = target not in (None, Path("-")) and _state(target) == before
        tell_stopped(stop, "; nothing was written" * nothing)
    if _alone.get():  # a further Ctrl-C ends the wait for threads, without a traceback
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))


def _state(path: Path | None) -> tuple[int, int] | None:
    """Return the inode and the modification time of a path, which show changes; None if the path does not exist."""
    try:
        about = os.stat(path or "")
    except OSError:
        return None
    return about.st_ino, about.st_mtime_ns


def _check_outputs(arguments: dict[str, Any]) -> None:
    named = [*map(arguments.get, _OUTPUTS), arguments.get("table", {}).get("skipped")]
    files: set[Path] = set()
    for path in named:
        if path is not None and path.resolve() in files:
            raise ValueError(f"{path} is named as two outputs of this command; name another file for one of them")
        files |= set() if path is None else {path.resolve()}


def _spoken(
    function: Callable[..., None],
    arguments: dict[str, Any],
    how: dict[str, Any],
    pipe: str | None,
    stack: ExitStack,
    spelled: dict[str, str],
) -> None:
    """Call the function of a command, with its output options in force and its pipes open."""
    piped: list[str] = []
    try:
        how["piped"] = _open_pipes(arguments, pipe, how["json"], stack, piped)
        stack.enter_context(speaking(**how, stdin=tuple(piped)))
        stack.enter_context(_short_warnings())
        stack.enter_context(_compiling_told())
        function(**arguments)
    except Exception as error:
        from similia.core.validation import DataError

        if how["verbose"]:
            traceback.print_exc()
        if not isinstance(error, DataError):
            raise
        changes = {
            name: spelled[was] for name in ("name", "parameter") if (was := getattr(error, name, None)) in spelled
        }
        if error.path in piped:
            changes["path"] = "standard input"
        raise error.changed(**changes) from error


def _open_pipes(arguments: dict[str, Any], pipe: str | None, as_json: bool, stack: ExitStack, piped: list[str]) -> bool:
    """Replace each ``-`` by a temporary file; add inputs to `piped`; return whether data goes to standard output."""
    for name in _PIPED_IN:
        if arguments.get(name) == "-":
            arguments[name] = stack.enter_context(_from_stdin())
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
    arguments["output"] = stack.enter_context(_to_stdout(pipe))
    return True


# ---- pipes: standard input as a file, and a file as standard output
@contextmanager
def _from_stdin() -> Iterator[str]:
    """Yield the path of a temporary copy of standard input, with the file ending that matches its first bytes."""
    if sys.stdin is None or sys.stdin.isatty():
        raise ValueError("- reads standard input, which is a terminal; write e.g. cat reads.fasta | similia ... -")
    with tempfile.TemporaryDirectory(prefix="similia-") as folder:
        spooled = Path(folder, "stdin")
        with spooled.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file, _BLOCK)
        path = spooled.with_name("stdin" + _ending(spooled))
        spooled.rename(path)
        yield str(path)


@contextmanager
def _to_stdout(ending: str) -> Iterator[Path]:
    """Yield the path of a temporary file; after the block, copy the file to standard output."""
    with tempfile.TemporaryDirectory(prefix="similia-") as folder:
        path = Path(folder, "stdout" + ending)
        yield path
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer, _BLOCK)
        sys.stdout.buffer.flush()


def _ending(path: Path) -> str:
    """Return the file ending, such as ".fasta.gz", that matches the contents of a file."""
    from similia.core.validation import BadFile

    with path.open("rb") as file:
        head = file.read(6)
    if head.startswith(b"\x1f\x8b"):
        try:
            with gzip.open(path, "rb") as opened:
                return _kind(opened) + ".gz"
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise BadFile("standard input", "is a damaged or incomplete gzip file") from None
    with path.open("rb") as file:
        return _kind(file)


def _kind(file: Any) -> str:
    """Return the file ending, such as ".csv", that matches the first block of an uncompressed file."""
    head = file.read(_BLOCK)
    if not head:
        raise ValueError("standard input is empty")
    if head.startswith(b"PK\x03\x04"):  # an array in an archive is called NAME.npy
        return ".npz" if b".npy" in head[:100] else ".zip"
    for magic, ending in _MAGIC.items():
        if head.startswith(magic):
            return ending
    if b"\nM  END" in head or b"\n$$$$" in head:
        return ".sdf"
    lines = head.decode("utf-8-sig", errors="replace").splitlines()
    first = next((line for line in lines if line.strip()), "")
    if first.startswith((">", ";")):
        return ".fasta"
    bare = next((line for line in lines if line.strip() and not line.startswith("#")), "")  # behind comments of .ts
    if first.lower().startswith(_TS_WORDS) or (first.startswith("#") and bare.startswith("@")):
        return ".ts"
    if first.startswith("@"):
        return ".fastq"
    return ".tsv" if "\t" in first else ".csv"
