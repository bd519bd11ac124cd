"""Connections with limits that uvicorn lacks: on their number, and on the time that a client may take.

`Connection` uses attributes of uvicorn's `H11Protocol` that have no underscore but no documentation either: `conn`,
`connections`, `loop` and `transport`. If a release of uvicorn renames one, the tests of slow clients fail.

Worker processes import this module before they answer uvicorn's first check that they are alive, and uvicorn kills a
worker that does not answer within five seconds. So this module imports nothing of similia.
"""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import TYPE_CHECKING, Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from similia.serve.web import Limits

_REASONS = {408: "Request Timeout", 503: "Service Unavailable"}


class Connection(H11Protocol):
    """A connection that closes if its client does not send the headers of a request, or read the answer, in time."""

    def __init__(self, *args: Any, max_connections: int, timeout: float, read_timeout: float, **options: Any) -> None:
        super().__init__(*args, **options)
        self._most, self._timeout, self._read_timeout = max_connections, timeout, read_timeout
        self._too_many = False
        self._for_request: asyncio.TimerHandle | None = None
        self._for_reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._too_many = len(self.connections) > self._most
        self._for_request = self.loop.call_later(1.0 if self._too_many else self._read_timeout, self._late)

    def data_received(self, data: bytes) -> None:
        if self._too_many:
            self._refuse(503, f"{self._most} connections are open, which is the maximum; try again in a second")
            return
        super().data_received(data)
        # Idle: the headers are incomplete. Done: the request is answered, but its body has not been sent to its end.
        waits = self.conn.our_state in (h11.IDLE, h11.DONE)
        if self._for_request is not None and not waits:
            self._for_request.cancel()
            self._for_request = None
        elif self._for_request is None and waits:
            self._for_request = self.loop.call_later(self._read_timeout, self._late)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._for_reading is None:
            self._for_reading = self.loop.call_later(self._timeout, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._for_reading is not None:
            self._for_reading.cancel()
            self._for_reading = None

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._for_request, self._for_reading):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def _late(self) -> None:
        if self.conn.our_state is h11.IDLE:
            self._refuse(408, f"the headers did not arrive within {self._read_timeout:g} seconds")
        else:
            self.transport.close()

    def _refuse(self, status: int, sentence: str) -> None:
        """Answer without a request, and close."""
        if self.transport.is_closing():
            return
        content = json.dumps({"error": sentence}).encode()
        lines = [f"HTTP/1.1 {status} {_REASONS[status]}", "Content-Type: application/json"]
        lines += [f"Content-Length: {len(content)}", "Connection: close", *["Retry-After: 1"] * (status == 503)]
        self.transport.write("\r\n".join([*lines, "", ""]).encode() + content)
        self.transport.close()


def configuration(limits: Limits, **options: Any) -> dict[str, Any]:
    """Return arguments of `uvicorn.run`: `options`, and those that every service has."""
    connection = partial(
        Connection,
        max_connections=limits.max_connections,
        timeout=limits.timeout,
        read_timeout=limits.read_timeout,
    )
    return {
        "http": connection, "log_level": "warning", "access_log": False, "timeout_keep_alive": 30,
        "timeout_graceful_shutdown": int(limits.timeout) + 1, "server_header": False,
    } | options  # fmt: skip
