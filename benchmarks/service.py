"""`similia serve` under load: 100 clients, mixed requests, a worker killed and the index changed on the way.

Two worker processes serve an index of 20,000 strings of DNA (`benchmarks/neighbour_graphs.py`), and a third serves a
classifier of such strings. Each client sends a request every 0.2 s for a minute, 500 a second in all: 60 % ask for 10
neighbours, 15 % for codes, 15 % for a label, 10 % for an explanation. The clients share the two cores with the
services. After 20 s one worker of the index is killed, after 40 s another process adds 100 strings to the index. Each
answer must be that of the library, with the index as it was or as it is. A request whose connection breaks is sent
again; the time of an answer counts from the first attempt::

    python benchmarks/service.py
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from measure import Row
from neighbour_graphs import families

import similia as sm
from similia.search.on_disk import SearchFolder

N, CLIENTS, EVERY, SECONDS, K = 20_000, 100, 0.2, 60.0, 10
KILL_AT, ADD_AT = 20.0, 40.0
MIX = {"neighbors": 0.6, "encode": 0.15, "predict": 0.15, "explain": 0.1}

ADD = """
import sys
from similia.search.on_disk import SearchFolder
SearchFolder.open(sys.argv[1]).add(open(sys.argv[2]).read().split())
"""


def run() -> list[Row]:
    """Return the answers that were wrong or lost, and the 99th percentile of the time of an answer."""
    strings = families(N + 100)
    kept, added, queries = strings[:N], strings[N:], strings[:: N // 200]
    with tempfile.TemporaryDirectory() as folder:
        path, more = Path(folder) / "dna.index", Path(folder) / "more.txt"
        search = sm.SimilaritySearch(sm.MinHash(sm.kernels.Spectrum(6), 256, random_state=0)).fit(kept)
        search.save(path)
        more.write_text("\n".join(added))
        labels = ["rich" if string.count("G") + string.count("C") > 30 else "poor" for string in kept[:2000]]
        model = sm.recipes.nyshd(sm.kernels.Spectrum(6), random_state=0).fit(kept[:2000], labels)
        model_path = sm.save(model, Path(folder) / "rich.similia")
        before = _expected(search, model, queries)
        with _served(path, 2) as (port, server), _served(model_path, 1) as (model_port, _):
            ports = dict.fromkeys(MIX, port) | {"predict": model_port}
            found = asyncio.run(_load(ports, server, [sys.executable, "-c", ADD, str(path), str(more)], queries))
        after = _expected(SearchFolder.open(path).load(), model, queries)
    times = np.array([answer.seconds for answer in found])
    calm = [answer.seconds for answer in found if not KILL_AT <= answer.start < KILL_AT + 5]
    wrong = sum(answer.found not in (before[answer.asked], after[answer.asked]) for answer in found)
    renewed = sum(answer.found == after[answer.asked] != before[answer.asked] for answer in found)
    again = sum(answer.tries > 1 for answer in found)
    asked = CLIENTS * int(SECONDS / EVERY)
    what = f"{asked} requests in {SECONDS:g} s, {CLIENTS} clients"
    print(f"{again} sent again, {renewed} answers by the changed index, median {1000 * np.median(times):.1f} ms")
    return [
        Row(f"{what}: wrong answers", "1", wrong, at_most=0),
        Row(f"{what}: lost answers", "1", asked - len(found), at_most=0),
        Row(f"{what}: time of an answer, 99th percentile", "50 ms", np.percentile(times, 99) / 0.05, at_most=1),
        Row(f"{what}: the same, 5 s after the kill left out", "50 ms", np.percentile(calm, 99) / 0.05, at_most=1),
    ]


@contextmanager
def _served(path: Path, workers: int) -> Iterator[tuple[int, int]]:
    """Run the service of a path; yield its port and the number of its process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "similia.cli", "serve", str(path), "--port", str(port), "--workers", str(workers)]
    with subprocess.Popen(command) as server:
        try:
            yield port, server.pid
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(60)


class Answer(NamedTuple):
    """A request (operation, number of the query), its answer, when it was sent, how long it took, and attempts."""

    asked: tuple[str, int]
    found: Any
    start: float
    seconds: float
    tries: int


def _expected(search: Any, model: Any, queries: list[str]) -> dict[tuple[str, int], Any]:
    """Return the answer to each request: (operation, number of the query)."""
    distances, ids = search.kneighbors(queries, K)
    codes, labels = search.encoder_.transform(queries), model.predict(queries)
    found: dict[tuple[str, int], Any] = {}
    for i, query in enumerate(queries):
        found["neighbors", i] = {"ids": ids[i].tolist(), "distances": distances[i].tolist()}
        found["encode", i] = {"code": codes[i].tobytes().hex()}
        found["predict", i] = {"label": str(labels[i])}
        found["explain", i] = sm.explain(search.encoder_, query, queries[i - 1]).value
    return found


async def _load(ports: dict[str, int], server: int, add: list[str], queries: list[str]) -> list[Answer]:
    """Send all requests, kill a worker and change the index; return the answers."""
    for port in ports.values():
        for _ in range(600):
            try:
                await _send((await asyncio.open_connection("127.0.0.1", port)), "GET", "health", b"")
                break
            except OSError:
                await asyncio.sleep(0.1)
    for operation in tuple(MIX) * 4:  # compiled in all workers
        link = await asyncio.open_connection("127.0.0.1", ports[operation])
        await _send(link, "POST", operation, _body(operation, 0, queries))
    begin, answers = time.perf_counter(), []

    async def client(number: int) -> None:
        rng, links = np.random.default_rng(number), {}
        await asyncio.sleep(EVERY * number / CLIENTS)
        for step in range(int(SECONDS / EVERY)):
            due = begin + EVERY * (step + number / CLIENTS)
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            operation = str(rng.choice([*MIX], p=[*MIX.values()]))
            port = ports[operation]
            i, start = int(rng.integers(len(queries))), time.perf_counter()
            for tries in range(1, 20):
                try:
                    if port not in links:
                        links[port] = await asyncio.open_connection("127.0.0.1", port)
                    found = (await _send(links[port], "POST", operation, _body(operation, i, queries)))["results"][0]
                    found = found["value"] if operation == "explain" else found
                    seconds = time.perf_counter() - start
                    answers.append(Answer((operation, i), found, start - begin, seconds, tries))
                    break
                except (OSError, asyncio.IncompleteReadError):
                    links.pop(port, None)
                    await asyncio.sleep(0.01)

    async def events() -> None:
        await asyncio.sleep(KILL_AT)
        workers = subprocess.run(
            ["pgrep", "-P", str(server)], capture_output=True, text=True, check=True
        ).stdout.split()
        os.kill(int(workers[-1]), signal.SIGKILL)
        await asyncio.sleep(ADD_AT - KILL_AT)
        await (await asyncio.create_subprocess_exec(*add)).wait()

    await asyncio.gather(events(), *(client(number) for number in range(CLIENTS)))
    return answers


def _body(operation: str, i: int, queries: list[str]) -> bytes:
    if operation == "explain":
        return json.dumps({"object": queries[i], "other": queries[i - 1]}).encode()
    return json.dumps({"objects": [queries[i]]}).encode()


async def _send(link: Any, method: str, path: str, body: bytes) -> Any:
    """Send a request over an open connection and return its answer."""
    reader, writer = link
    writer.write(f"{method} /{path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    await writer.drain()
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
    )
    content = json.loads(await reader.readexactly(length))
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"{path}: {content}")
    return content


if __name__ == "__main__":
    print(*run(), sep="\n")
