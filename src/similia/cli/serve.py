"""``similia serve``, ``similia warmup`` and ``similia info``, for running a model or a search index as a service."""

from __future__ import annotations

import ipaddress
import math
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from similia._version import __version__
from similia.cli.options import Model

_FEW = 4  # arrays with more entries are shown by their first and last entry


def serve(
    path: Annotated[Path, typer.Argument(help="A model file, or the folder of an index.")],
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 listens on all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on.")] = 8000,
    processes: Annotated[
        int, typer.Option("--workers", min=1, help="Number of processes; a process that dies is replaced.")
    ] = 1,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="SIMILIA_TOKEN", help="Accept only requests with the header 'Authorization: Bearer TOKEN'."
        ),
    ] = None,
    max_bytes: Annotated[int, typer.Option(min=1, help="Maximum bytes of a request.")] = 2**23,
    max_total_bytes: Annotated[
        int, typer.Option(min=1, help="Maximum bytes of all requests that a process reads or has waiting.")
    ] = 2**26,
    max_objects: Annotated[int, typer.Option(min=1, help="Maximum number of objects in a request.")] = 1000,
    max_size: Annotated[
        int, typer.Option(min=1, help="Maximum letters, numbers, or nodes or arcs of an object.")
    ] = 100_000,
    max_connections: Annotated[int, typer.Option(min=1, help="Maximum number of connections to a process.")] = 500,
    timeout: Annotated[float, typer.Option(min=0.1, help="Maximum time of an answer, in seconds.")] = 30.0,
    read_timeout: Annotated[
        float, typer.Option(min=0.1, help="Maximum time in which a client must send a request, in seconds.")
    ] = 10.0,
) -> None:
    """Answer requests over HTTP: POST /neighbors, /predict, /encode, /explain; GET /health, /metrics, /openapi.json.

    [bold]similia serve model.similia --port 8000[/bold]

    [bold]curl localhost:8000/predict -d '{"objects": ["ACGTACGT"]}'[/bold]
    """
    try:
        import uvicorn

        from similia.serve import connection, web
    except ImportError as error:
        raise ValueError(f"a service needs {error.name}; install it with: pip install 'similia[serve]'") from None
    from similia.cli.voice import note
    from similia.serve.service import Service

    for option, seconds in (("--timeout", timeout), ("--read-timeout", read_timeout)):
        if not math.isfinite(seconds):
            raise ValueError(f"{option} must be a finite number of seconds, got {seconds}")
    web.check_token(token)
    limits = web.Limits(
        max_bytes=max_bytes, max_objects=max_objects, max_size=max_size, max_total_bytes=max_total_bytes,
        max_connections=max_connections, timeout=timeout, read_timeout=read_timeout,
    )  # fmt: skip
    service = Service(path)
    offered = ", ".join(f"/{operation}" for operation in service.held.operations)
    note(f"serving {path} at http://{host}:{port} ({offered}); Ctrl-C stops")
    if token is None and not _is_loopback(host):
        note("warning: anyone who can reach this address can use the service; --token restricts it")
    options = connection.configuration(limits, host=host, port=port)
    if processes == 1:
        uvicorn.run(web.application(service, limits, token), **options)
        return
    del service  # each worker reads its own
    with TemporaryDirectory(prefix="similia-serve-", ignore_cleanup_errors=True) as folder:
        os.environ |= {web.ENVIRONMENT: web.settings(path.resolve(), limits, folder), web.TOKEN: token or ""}
        uvicorn.run("similia.serve.web:from_environment", factory=True, workers=processes, **options)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def warmup(
    kinds: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KIND]...", help="Kinds of objects: strings, graphs, series, sets, vectors, codes. Default: all."
        ),
    ] = None,
) -> None:
    """Compile the fast loops in advance (a minute or two, once), so that first calls are as fast as later ones.

    Run it when you set up a machine or a container image. Set NUMBA_CACHE_DIR to a folder that the service can read.

    [bold]similia warmup strings codes[/bold]
    """
    import similia as sm
    from similia.cli.voice import console, result

    seconds = sm.warmup(kinds or None)
    for kind, value in seconds.items():
        console().print(f"{kind}: {value:.1f} s")
    result({"seconds": seconds})


def info(model: Model) -> None:
    """Show the contents of a model file and the version of similia that wrote it.

    [bold]similia info model.similia[/bold]
    """
    import numpy as np

    import similia as sm
    from similia.cli.outputs import size_of
    from similia.cli.voice import console, result
    from similia.storage.models import written_by

    if model.is_dir():
        raise ValueError(f"{model} is a folder, not a model file; if it is an index, use: similia index info {model}")
    fitted = sm.load(model)
    with model.open("rb") as file:
        writer = written_by(file)
    steps = getattr(fitted, "steps", None) or [(type(fitted).__name__.lower(), fitted)]
    with np.printoptions(threshold=_FEW, edgeitems=1, precision=3):  # of arrays among the parameters
        shown = [{"name": name, "estimator": " ".join(repr(step).split())} for name, step in steps]
    facts: dict[str, Any] = {
        "written_by": writer,
        "read_by": __version__,
        "bytes": model.stat().st_size,
        "steps": shown,
    }
    classes = getattr(fitted, "classes_", None)
    facts |= {} if classes is None else {"classes": [str(label) for label in classes]}
    result(facts)
    say = console(highlight=False)
    say.print(f"{model}: {size_of(facts['bytes'])}, written by similia {writer or 'of an unknown version'}")
    for step in facts["steps"]:
        say.print(f"  {step['name']}: {step['estimator']}")
    if classes is not None:
        say.print(f"  classes: {', '.join(facts['classes'])}")
