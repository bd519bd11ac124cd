"""The service over HTTP: a Starlette application, its limits, its batches, its description and its metrics.

Memory is bounded: a body is read in pieces and refused as soon as it is too large, or as all bodies together are; the
number of waiting objects is limited. A model or index that another process has replaced is read in the background;
requests are answered by the old one until then.

A single thread answers requests. While it is busy, further requests wait; then all that ask for the same thing are
answered together, because one call on many objects takes less time than many calls. A request that finds the thread
idle is answered at once. A long request is answered in pieces, between which others have their turn and its time-out
stops it. A piece cannot be stopped, so the size of an object is limited.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import time
import uuid
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from similia._version import __version__
from similia.core.config import logger_of
from similia.serve.service import OPERATIONS, Refused, Service, pieces

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)  # upper ends of the histogram
_FRESH = 10.0  # seconds without news after which a process counts as dead
_FAMILIES = {  # of metrics, and their types
    "similia_requests_total": "counter", "similia_request_seconds": "histogram", "similia_objects_total": "counter",
    "similia_reloads_total": "counter", "similia_reload_failures_total": "counter", "similia_batches_total": "counter",
    "similia_waiting_objects": "gauge", "similia_body_bytes": "gauge",
}  # fmt: skip
ENVIRONMENT, TOKEN = "SIMILIA_SERVE", "SIMILIA_TOKEN"  # variables with the settings, for worker processes
_LOOKS = 1.0  # seconds between looks at the file
_UNCOUNTED = 2**16  # bytes of each body that do not count, so that large bodies never shut out small ones
_LOGGER = logger_of(__name__)
_Run = Callable[[Any, list[Any]], list[Any]]
_EXAMPLES = {
    "neighbors": ('{"objects": [...], "n_neighbors": 10}', "ids, distances and names of the nearest objects"),
    "predict": ('{"objects": [...], "scores": false}', "the label of each object, with scores of classes if asked for"),
    "encode": ('{"objects": [...]}', "the code (hexadecimal bytes) or vector of each object"),
    "explain": ('{"object": ..., "other": ..., "top": 10}', "the parts of a decision, or of how alike two objects are"),
}
_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{name}</title>
<style>body{{font:16px sans-serif;max-width:50em;margin:2em auto}} td{{padding:.3em 1em .3em 0}}</style>
</head><body><h1>{name}</h1><p>A service of similia. Requests and answers are JSON; <a href="openapi.json">openapi.json
</a> describes them, <a href="health">health</a> and <a href="metrics">metrics</a> tell how it does.</p>
<table>{rows}</table></body></html>"""
_STATUSES = {
    400: "no JSON", 401: "no token", 408: "too slow", 413: "too large", 422: "not valid", 503: "busy: try again",
}  # fmt: skip


class Metrics:
    """Counts of requests and their durations, in the text format of Prometheus.

    Several processes that serve together have a folder in which each writes its counts: every second, and before it
    shows the sums. So a sum never falls below one shown before, whichever process shows it, and also if a process dies.
    """

    def __init__(self, folder: str | None) -> None:
        self.counts: dict[str, Counter[str]] = {family: Counter() for family in _FAMILIES}
        self.path = Path(folder) / f"{uuid.uuid4().hex}.json" if folder else None
        for family in _FAMILIES:
            if family not in ("similia_requests_total", "similia_request_seconds"):
                self.counts[family][""] = 0

    def note(self, operation: str, status: int, seconds: float) -> None:
        label = f'operation="{operation}"'
        self.counts["similia_requests_total"][f'{{{label},status="{status}"}}'] += 1
        histogram = self.counts["similia_request_seconds"]
        for end in _SECONDS:
            histogram[f'_bucket{{{label},le="{end}"}}'] += seconds <= end
        histogram[f'_bucket{{{label},le="+Inf"}}'] += 1
        histogram[f"_sum{{{label}}}"] += seconds  # type: ignore[assignment]
        histogram[f"_count{{{label}}}"] += 1

    def write(self) -> None:
        if self.path is not None:
            part = self.path.with_suffix(".part")
            part.write_text(json.dumps(self.counts), encoding="utf-8")
            part.replace(self.path)

    def text(self) -> str:
        lines = []
        for family, counts in self._sums().items():
            lines.append(f"# TYPE {family} {_FAMILIES[family]}")
            lines += [f"{family}{name} {value}" for name, value in counts.items()]
        return "\n".join(lines) + "\n"

    def _sums(self) -> dict[str, Counter[str]]:
        if self.path is None:
            return self.counts
        self.write()
        sums: dict[str, Counter[str]] = {family: Counter() for family in _FAMILIES}
        for path in sorted(self.path.parent.glob("*.json")):  # in a fixed order, so that sums of floats never fall
            dead = time.time() - path.stat().st_mtime > _FRESH
            for family, counts in json.loads(path.read_text(encoding="utf-8")).items():
                if not dead or _FAMILIES[family] != "gauge":
                    sums[family].update(counts)
        return sums


@dataclass(frozen=True)
class Limits:
    """Limits of a service.

    Attributes
    ----------
    max_bytes : int
        Maximum number of bytes in the body of a request.
    max_objects : int
        Maximum number of objects in a request.
    max_size : int
        Maximum size of an object: the number of letters of a string, of numbers in a list, or of nodes or arcs of a
        graph.
    max_total_bytes : int
        Maximum total number of bytes in the bodies of all requests that are being read or wait for an answer; the first
        65,536 bytes of each body are not counted. Further requests get the status 503. If there is no other request, a
        body may have `max_bytes`.
    max_waiting : int
        Maximum number of objects that may wait; further requests get the status 503.
    max_connections : int
        Maximum number of open connections. Only `similia serve` enforces this limit; another server has its own
        setting.
    timeout : float
        Maximum number of seconds for the service to answer. With `similia serve`, it is also the maximum number of
        seconds for a client to read the answer.
    read_timeout : float
        Maximum number of seconds for a client to send the body of its request. With `similia serve`, it is also the
        maximum number of seconds for a client to send the headers.
    """

    max_bytes: int = 2**23
    max_objects: int = 1000
    max_size: int = 100_000
    max_total_bytes: int = 2**26
    max_waiting: int = 10_000
    max_connections: int = 500
    timeout: float = 30.0
    read_timeout: float = 10.0


class _Bodies:
    """Counts the bytes of the bodies in memory, and refuses more than `most`."""

    def __init__(self, most: int) -> None:
        self.most, self.held = most, 0

    @contextmanager
    def body(self) -> Iterator[Callable[[int], None]]:
        """Yield a function that takes the size of a growing body, which counts until the end of the block."""
        own = 0

        def grow(size: int) -> None:
            nonlocal own
            more = max(0, size - _UNCOUNTED) - own
            if self.held > own and self.held + more > self.most:
                raise _Unread(503, f"the bodies of other requests hold {self.held - own} bytes; try again in a second")
            own, self.held = own + more, self.held + more

        try:
            yield grow
        finally:
            self.held -= own


class _Unread(Refused):
    """Exception for a request whose body is not read to its end, so that its connection must close."""


class _Web:
    """Turns HTTP requests into calls of a `Service`."""

    def __init__(self, service: Service, limits: Limits, token: str | None, folder: str | None) -> None:
        self.service, self.limits, self.token = service, limits, token
        self.metrics, self.stale, self.unwritten = Metrics(folder), "", False
        self.bodies = _Bodies(limits.max_total_bytes)
        self.batches = Batches(self._run, limits.max_waiting, most_size=limits.max_size)

    def _run(self, key: Any, items: list[Any]) -> list[Any]:
        operation, options, held, start = key
        return self.service.answer(operation, items, held=held, start=start, **dict(options))

    async def operate(self, request: Request) -> Response:
        """Answer ``POST /neighbors``, ``/predict``, ``/encode`` and ``/explain``."""
        operation, start = request.url.path.rpartition("/")[2], time.perf_counter()  # a prefix may come first
        try:
            response = await self._answer(operation, request)
        except Exception:
            self.metrics.note(operation, 500, time.perf_counter() - start)
            raise
        self.metrics.note(operation, response.status_code, time.perf_counter() - start)
        return response

    async def _answer(self, operation: str, request: Request) -> Response:
        try:
            return _Json({"results": await self._results(operation, request)})
        except Refused as error:
            refused = error
        except Full:
            refused = Refused(503, f"{self.batches.n_waiting} objects are waiting; try again in a second")
        except TimeoutError:
            seconds = f"{self.limits.timeout:g} seconds"
            refused = Refused(503, f"no answer within {seconds}; send fewer or smaller objects, or try again")
        headers = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "1"}}.get(refused.status, {})
        if isinstance(refused, _Unread):
            headers = headers | {"Connection": "close"}
        return _Json({"error": str(refused)}, refused.status, headers)

    async def _results(self, operation: str, request: Request) -> list[Any]:
        if self.token is not None:
            given = request.headers.get("authorization", "")
            if not hmac.compare_digest(given.encode("utf-8", "replace"), f"Bearer {self.token}".encode()):
                raise Refused(401, "the token is missing or wrong; send the header 'Authorization: Bearer TOKEN'")
        with self.bodies.body() as grow:
            parsed = _parsed(await self._body(request, grow))
            objects, options = self.service.options(operation, parsed, self.limits.max_objects, self.limits.max_size)
            del parsed
            self._count("objects_total", len(objects))
            shared = _Alone(options) if operation == "explain" else tuple(options.items())
            return await asyncio.wait_for(self._in_pieces(operation, shared, objects), self.limits.timeout)

    async def _in_pieces(self, operation: str, options: Hashable, objects: list[Any]) -> list[Any]:
        """Return the results of all pieces; each goes to the end of the queue when the one before it is answered."""
        held, found = self.service.held, []
        for start, size, piece in pieces(objects, self.limits.max_size):
            found += await self.batches.submit((operation, options, held, start), piece, size, admitted=start > 0)
        return found

    def _count(self, name: str, more: int) -> None:
        self.metrics.counts[f"similia_{name}"][""] += more

    async def _body(self, request: Request, grow: Callable[[int], None]) -> bytes:
        most = self.limits.max_bytes
        refused = _Unread(413, f"the body is larger than {most} bytes; send fewer objects in a request")
        length = request.headers.get("content-length", "0")
        if length.isdigit() and int(length) > most:
            raise refused
        parts, size = [], 0
        try:
            async with asyncio.timeout(self.limits.read_timeout):
                async for part in request.stream():
                    size += len(part)
                    if size > most:
                        raise refused
                    grow(size)
                    parts.append(part)
        except TimeoutError:
            seconds = self.limits.read_timeout
            raise _Unread(408, f"the body did not arrive within {seconds:g} seconds") from None
        except ClientDisconnect:
            raise Refused(400, "the client closed the connection before its request was complete") from None
        return b"".join(parts)

    async def health(self, _: Request) -> Response:
        held = self.service.held
        facts = {"status": "ok", "version": __version__, "serves": self.service.path.name}
        size = {"objects": len(held.model)} if "neighbors" in held.operations else {}
        stale = {"stale": self.stale} if self.stale else {}
        return JSONResponse(facts | {"operations": list(held.operations), "kind": held.kind} | size | stale)

    async def show_metrics(self, _: Request) -> Response:
        self._gauge()
        return PlainTextResponse(self.metrics.text(), media_type="text/plain; version=0.0.4")

    def _gauge(self) -> None:
        now = {"batches_total": self.batches.n_batches, "waiting_objects": self.batches.n_waiting}
        for name, value in (now | {"body_bytes": self.bodies.held}).items():
            self.metrics.counts[f"similia_{name}"][""] = value

    async def description(self, _: Request) -> Response:
        return JSONResponse(description(self.service.held.operations))

    async def page(self, _: Request) -> Response:
        return HTMLResponse(_PAGE.format(name=self.service.path.name, rows=_rows(self.service.held.operations)))

    async def look(self) -> None:
        """Read the model or index again when it has changed, and share the metrics, for as long as the service runs."""
        while True:
            await asyncio.sleep(_LOOKS)
            self._share()
            try:
                read = await asyncio.to_thread(self.service.refresh)
            except (OSError, ValueError) as error:  # half-copied or damaged: the old one goes on
                self.stale = " ".join(str(error).split())
                self._count("reload_failures_total", 1)
                _LOGGER.warning("%s could not be read again: %s", self.service.path, self.stale)
            else:
                self._count("reloads_total", read)
                self.stale = ""

    def _share(self) -> None:
        self._gauge()
        try:
            self.metrics.write()
        except OSError as error:
            if not self.unwritten:  # else it was said before
                _LOGGER.warning("the metrics for other workers could not be written: %s", error)
            self.unwritten = True
        else:
            self.unwritten = False


class _Json(JSONResponse):
    """JSON in UTF-8, in which lone surrogates are written as escapes such as ``\\ud800``, since UTF-8 has none."""

    def render(self, content: Any) -> bytes:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "backslashreplace")


class _Alone:
    """Options, which need not be hashable, of a request that is not joined with others."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options

    def __iter__(self) -> Any:
        return iter(self.options.items())


def application(
    service: Service, limits: Limits | None = None, token: str | None = None, metrics_folder: str | None = None
) -> Starlette:
    """Return a web application (ASGI) that offers a model or search index over HTTP; a server such as uvicorn runs it.

    Parameters
    ----------
    service : Service
        Holds the model or search index, and answers the requests with it.
    limits : Limits, optional
        Limits on the size, number and duration of requests.
    token : str, optional
        If given, every POST request must have the header ``Authorization: Bearer TOKEN``. GET requests (the start page,
        ``/health``, ``/metrics`` and ``/openapi.json``) need no token. A token that is empty or not ASCII raises
        ValueError.
    metrics_folder : str, optional
        Folder that several processes share, so that ``/metrics`` of any process shows the totals over all processes. It
        must be empty when the first process starts. By default, each process shows its own counts.

    Returns
    -------
    starlette.applications.Starlette
    """
    check_token(token)
    web = _Web(service, limits or Limits(), token, metrics_folder)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        looking = asyncio.create_task(web.look())
        yield
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking
        web.batches.close()

    routes = [Route(f"/{operation}", web.operate, methods=["POST"]) for operation in OPERATIONS]
    pages = {"/": web.page, "/health": web.health, "/metrics": web.show_metrics, "/openapi.json": web.description}
    routes += [Route(path, page, methods=["GET"]) for path, page in pages.items()]
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers={404: _no_page, 405: _no_page})


def check_token(token: str | None) -> None:
    if token is not None and not token.strip():
        raise ValueError("the token is empty; give one, or leave it out for a service that needs no token")
    if token is not None and (token != token.strip() or not token.isascii() or not token.isprintable()):
        raise ValueError("the token holds a character that headers cannot carry; use ASCII letters, digits and signs")


def settings(path: Any, limits: Limits, metrics_folder: str) -> str:
    """Return what a worker process reads from the environment."""
    return json.dumps({"path": str(path), "limits": asdict(limits), "metrics_folder": metrics_folder})


def from_environment() -> Starlette:
    """Return the application that the variable SIMILIA_SERVE describes, in a worker process."""
    told, token = json.loads(os.environ[ENVIRONMENT]), os.environ.get(TOKEN) or None
    return application(Service(told["path"]), Limits(**told["limits"]), token, told["metrics_folder"])


async def _no_page(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    where = ", ".join(f"POST /{operation}" for operation in OPERATIONS)
    return JSONResponse({"error": f"no {request.method} {request.url.path[:80]}; try {where} or GET /health"}, status)


def _parsed(body: bytes) -> Any:
    """Return a body of JSON; raise `Refused` if it is none, or holds NaN or an infinity."""

    def refuse(name: str) -> None:
        raise Refused(400, f"the body holds {name}, which is no JSON; numbers must be finite")

    try:
        return json.loads(body.decode("utf-8"), parse_constant=refuse)
    except UnicodeDecodeError as error:
        raise Refused(400, f"the body is no UTF-8 (byte {error.start}); encode the JSON in UTF-8") from None
    except RecursionError:
        raise Refused(400, "the body is nested too deeply") from None
    except ValueError as error:
        raise Refused(400, f"the body is no JSON: {error}") from None


def _rows(operations: tuple[str, ...]) -> str:
    row = "<tr><td><code>POST /{}</code></td><td><code>{}</code></td><td>{}</td></tr>"
    return "".join(row.format(operation, *_EXAMPLES[operation]) for operation in operations)


def description(operations: tuple[str, ...]) -> dict[str, Any]:
    numbers = "a list of numbers (or of lists of numbers)"
    thing = {"description": f"a string, {numbers}, SMILES, or a graph with edge_index and n_nodes"}
    fields: dict[str, dict[str, Any]] = {
        "neighbors": {"objects": {"type": "array", "items": thing}, "n_neighbors": {"type": "integer", "default": 10}},
        "predict": {"objects": {"type": "array", "items": thing}, "scores": {"type": "boolean", "default": False}},
        "encode": {"objects": {"type": "array", "items": thing}},
        "explain": {"object": thing, "other": thing, "top": {"type": "integer", "default": 10}},
    }
    wrong = {"content": {"application/json": {"schema": {"properties": {"error": {"type": "string"}}}}}}
    paths = {}
    for operation in operations:
        key = "object" if operation == "explain" else "objects"
        schema = {
            "type": "object", "properties": fields[operation], "required": [key], "additionalProperties": False,
        }  # fmt: skip
        done = {"type": "object", "properties": {"results": {"type": "array", "items": {"type": "object"}}}}
        paths[f"/{operation}"] = {
            "post": {
                "summary": _EXAMPLES[operation][1],
                "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
                "responses": {
                    "200": {"description": "results", "content": {"application/json": {"schema": done}}},
                    **{str(status): {"description": words} | wrong for status, words in _STATUSES.items()},
                },
            }
        }
    return {"openapi": "3.1.0", "info": {"title": "similia", "version": __version__}, "paths": paths}


class Full(Exception):
    """Too many objects are waiting."""


class _Waiting(NamedTuple):
    key: Hashable
    items: list[Any]
    size: int
    answer: asyncio.Future[list[Any]]


class Batches:
    """Joins requests with equal keys; ``run(key, items)``, in a thread, returns a result for each item.

    At most `most_waiting` items may wait, besides those being worked on; a single request may have more if no other
    waits. A batch holds at most `most_joined` items, whose sizes sum to at most `most_size`, or a single request.
    """

    def __init__(self, run: _Run, most_waiting: int = 10_000, most_joined: int = 256, most_size: int = 100_000) -> None:
        self._run = run
        self._most_waiting, self._most_joined, self._most_size = most_waiting, most_joined, most_size
        self._queue: deque[_Waiting] = deque()
        self._thread = ThreadPoolExecutor(1, "similia")
        self._task: asyncio.Task[None] | None = None
        self.n_waiting = self.n_batches = 0

    async def submit(self, key: Hashable, items: list[Any], size: int = 0, *, admitted: bool = False) -> list[Any]:
        """Return the results of items, or raise the error of ``run``.

        If too many wait, raise `Full` at once, unless the items are `admitted`: a part of them has been answered.
        """
        if not admitted and self.n_waiting + len(items) > self._most_waiting and self.n_waiting:
            raise Full
        waiting = _Waiting(key, items, size, asyncio.get_running_loop().create_future())
        self._queue.append(waiting)
        self.n_waiting += len(items)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())
        return await waiting.answer

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while self._queue:
            batch = self._take()
            if not batch:
                continue
            answers = await loop.run_in_executor(self._thread, self._answers, batch)
            self.n_batches += 1
            for waiting, answer in zip(batch, answers, strict=True):
                if waiting.answer.done():  # the client has gone
                    continue
                if isinstance(answer, BaseException):
                    waiting.answer.set_exception(answer)
                else:
                    waiting.answer.set_result(answer)

    def _take(self) -> list[_Waiting]:
        """Remove the requests of the next batch from the queue, without those whose clients have gone."""
        batch: list[_Waiting] = []
        others: deque[_Waiting] = deque()
        n = size = 0
        while self._queue:
            waiting = self._queue.popleft()
            large = n + len(waiting.items) > self._most_joined or size + waiting.size > self._most_size
            if waiting.answer.done():
                self.n_waiting -= len(waiting.items)
            elif batch and (large or waiting.key != batch[0].key):
                others.append(waiting)
            else:
                batch.append(waiting)
                n, size = n + len(waiting.items), size + waiting.size
                self.n_waiting -= len(waiting.items)
        self._queue = others
        return batch

    def _answers(self, batch: list[_Waiting]) -> list[Any]:
        """Return the results, or the error, of each request; if the batch fails, each is tried on its own."""
        try:
            found = self._run(batch[0].key, [item for waiting in batch for item in waiting.items])
        except Exception as error:
            if len(batch) == 1:
                return [error]
            return [self._answers([waiting])[0] for waiting in batch]
        results = iter(found)
        return [list(islice(results, len(waiting.items))) for waiting in batch]
