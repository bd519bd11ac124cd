"""``similia serve`` answers HTTP requests with a model or a search index."""

from __future__ import annotations

import ipaddress
import math
import os
from pathlib import Path
from typing import Annotated, Any

import typer


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
    max_objects: Annotated[int, typer.Option(min=1, help="Maximum number of objects in a request.")] = 1000,
    timeout: Annotated[float, typer.Option(min=0.1, help="Maximum time of an answer, in seconds.")] = 30.0,
) -> None:
    """Answer requests over HTTP: POST /neighbors, /predict, /encode, /explain; GET /health, /metrics, /openapi.json.

    [bold]similia serve model.similia --port 8000[/bold]

    [bold]curl localhost:8000/predict -d '{"objects": ["ACGTACGT"]}'[/bold]
    """
    try:
        import uvicorn

        from similia.serve import web
    except ImportError as error:
        raise ValueError(f"a service needs {error.name}; install it with: pip install 'similia[serve]'") from None
    from similia.cli.voice import note
    from similia.serve.service import Service

    if not math.isfinite(timeout):
        raise ValueError(f"--timeout must be a finite number of seconds, got {timeout}")
    web.check_token(token)
    limits = web.Limits(max_bytes=max_bytes, max_objects=max_objects, timeout=timeout)
    service = Service(path)
    offered = ", ".join(f"/{operation}" for operation in service.held.operations)
    note(f"serving {path} at http://{host}:{port} ({offered}); Ctrl-C stops")
    if token is None and not _is_loopback(host):
        note("warning: anyone who can reach this address can use the service; --token restricts it")
    options: dict[str, Any] = {
        "host": host, "port": port, "log_level": "warning", "access_log": False, "timeout_keep_alive": 30,
        "timeout_graceful_shutdown": int(timeout) + 1, "server_header": False,
    }  # fmt: skip
    if processes == 1:
        uvicorn.run(web.application(service, limits, token), **options)
        return
    del service
    os.environ |= {web.ENVIRONMENT: web.settings(path.resolve(), limits), web.TOKEN: token or ""}
    uvicorn.run("similia.serve.web:from_environment", factory=True, workers=processes, **options)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
