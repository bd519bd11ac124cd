"""What the processes of the faults do. They are forks of one that has imported this module, and so everything."""

from __future__ import annotations

import logging
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.bag as db
import distributed
import distributed.cli.dask_scheduler
import distributed.cli.dask_worker
import numpy as np
from sklearn.pipeline import make_pipeline

import similia as sm
import similia.cli.app
import similia.cli.encoders
from similia.cli import main
from similia.scale import stream
from similia.scale import workers as _workers
from similia.scale.sharded_index import ShardedIndex
from similia.search import HammingIndex
from similia.search.on_disk import SearchFolder

Send = Callable[[Any], None]

POISON, POISONED, N_VECTORS = 7.5, 73_421, 80_000  # a first coordinate that a kernel refuses, and where it stands


def command(send: Send, arguments: list[str], limit: int | None = None) -> None:
    """Run ``similia``; no file may grow beyond `limit` bytes, which is how a full disk looks."""
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    sys.argv = ["similia", *arguments]
    main()


def process(send: Send, arguments: list[str]) -> None:
    """Become a process that imports everything itself."""
    os.execv(sys.executable, [sys.executable, "-m", "similia.cli", *arguments])


def call(send: Send, function: Callable[..., Any], *args: Any, patience: float = 60.0, **kwargs: Any) -> None:
    """Call a function and send what it returns, or end as a command does that was refused."""
    _workers.PATIENCE = patience
    try:
        send(function(*args, **kwargs))
    except (ValueError, TypeError, OSError) as error:
        print(f"similia: {error}", file=sys.stderr)
        raise SystemExit(2) from None


def encode(model: str, data: str, output: str, **options: Any) -> int:
    return stream.encode_stream(sm.load(model), data, output, **options)


def predict(model: str, data: str, output: str, **options: Any) -> int:
    return stream.predict_stream(sm.load(model), data, output, **options)


def encode_with(encoder: Any, data: str, output: str, **options: Any) -> int:
    return stream.encode_stream(encoder, data, output, **options)


# ---- a cluster of processes
def scheduler(send: Send, port: int) -> None:
    """Run ``dask scheduler``."""
    arguments = ["--port", str(port), "--host", "127.0.0.1", "--no-dashboard"]
    distributed.cli.dask_scheduler.main(arguments)


def worker(send: Send, address: str, folder: str) -> None:
    """Run ``dask worker``."""
    arguments = [address, "--no-nanny", "--nthreads", "1", "--no-dashboard", "--local-directory", folder]
    distributed.cli.dask_worker.main(arguments)


def restart(send: Send, address: str) -> None:
    """Restart the workers of a cluster, as anyone with a client may."""
    with distributed.Client(address) as client:
        client.restart(wait_for_workers=False)


def _quiet_client(address: str) -> Any:
    """Connect as a user's program does that does not show what Dask logs of workers that are lost."""
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    return distributed.Client(address)


# ---- fits
_WORDS = ["".join(word) for word in np.random.default_rng(5).choice(list("ACGT"), (900, 40))]
_LABELS = np.arange(900) % 3
_VECTORS = np.random.default_rng(6).normal(size=(20_000, 32)).astype(np.float32)
_CODES = np.random.default_rng(7).integers(256, size=(30_000, 2), dtype=np.uint8)  # of two bytes: many ties


def fit(send: Send, what: str, address: str | None) -> None:
    """Fit a model, here or on a cluster, and send what it learnt and what it makes of the data."""
    if address is None:
        send(_fit(what, lambda X: X))
        return
    with _quiet_client(address):
        send("connected")
        send(_fit(what, _parted))


def _parted(X: Any) -> Any:
    if isinstance(X, list):
        return db.from_sequence(X, npartitions=7)
    return da.from_array(X, chunks=(len(X) // 7 + 1, -1))


def _fit(what: str, parted: Callable[[Any], Any]) -> list[Any]:
    if what == "NysHD":
        kernel = sm.kernels.GappyKmers(k=4, gaps=1)
        model = make_pipeline(
            sm.Nystroem(kernel, 12, landmarks="rpcholesky", random_state=0),
            sm.SignRandomProjection(512, random_state=0),
            sm.HDClassifier(init="bundle", max_iter=3, random_state=0),
        )
        model.fit(parted(_WORDS), _LABELS)
        return [model.predict(_WORDS), model[:-1].transform(_WORDS)]
    make = {"ITQ": sm.ITQ(32, max_iter=6, random_state=0), "PCA": sm.GeneralizedNystroemPCA(8, 0.5, random_state=0)}
    made = make[what].fit(parted(_VECTORS))
    return [made.transform(_VECTORS)]


def sharded(send: Send, address: str | None) -> None:
    """Build an index of codes, here or on a cluster, and send neighbours."""
    if address is None:
        index: Any = HammingIndex(16).fit(_CODES)
        send(_asked(index))
        return
    with _quiet_client(address):
        send("connected")
        send(_asked(ShardedIndex(16).fit(da.from_array(_CODES, chunks=(4_000, -1)))))


def _asked(index: Any) -> list[Any]:
    found: list[Any] = []
    for start in range(0, 400, 40):
        found += index.kneighbors(_CODES[start : start + 40], 10)
        found += [np.concatenate(part) for part in index.radius_neighbors(_CODES[start : start + 3], 1)]
    return found


# ---- a kernel that raises
class Kernel:
    """A user's kernel of vectors that raises on one of them as long as a file says how."""

    errors = (ValueError, TypeError, ZeroDivisionError, KeyError, RuntimeError, AssertionError)

    def __init__(self, switch: Path) -> None:
        self.switch = switch

    def __call__(self, X: Any, Y: Any = None) -> Any:
        Y = X if Y is None else Y
        if self.switch.exists() and (X[:, 0] == POISON).any():
            error = {kind.__name__: kind for kind in self.errors}[self.switch.read_text()]
            raise error("these two cannot be compared")
        return np.exp(-((X[:, None] - Y[None]) ** 2).sum(2))


# ---- an index that is read while it is written
def change(send: Send, folder: str, batches: list[list[str]], gone: list[list[int]], done: Path) -> None:
    """Add and remove, one commit each."""
    for words, ids in zip(batches, gone, strict=True):
        opened = SearchFolder.open(folder)
        opened.add(words)
        if ids:
            opened.remove(ids)
    done.touch()


def read(send: Send, folder: str, queries: list[str], mmap: bool, done: Path) -> None:
    """Open and search an index until a file is there; send ids of all objects and of the nearest, for each opening."""
    while not done.exists():
        try:
            search = SearchFolder.open(folder).load(mmap=mmap)
            if len(search):
                distances, ids = search.kneighbors(queries, min(5, len(search)))
                send((search.ids_, ids, distances))
        except Exception as error:
            send(f"{type(error).__name__}: {error}")
            time.sleep(0.01)


def changes(batches: list[list[str]], gone: list[list[int]]) -> Iterator[tuple[int, ...]]:
    """Yield the ids that are there after each commit."""
    ids: list[int] = []
    yield ()
    start = 0
    for words, dead in zip(batches, gone, strict=True):
        ids += range(start, start + len(words))
        start += len(words)
        yield tuple(ids)
        ids = sorted(set(ids) - set(dead))
        yield tuple(ids)


def _warm() -> None:
    """Load compiled loops, which takes longer than most of what is tried."""
    words = ["ACGTA", "CCGTA", "GATTA", "ACCAA"]
    model = sm.recipes.nyshd(sm.kernels.Spectrum(k=2), 3, 64, random_state=0).fit(words, [0, 1, 0, 1])
    model.predict(words)
    sm.SimilaritySearch(model[:-1], sm.distances.Levenshtein(), n_candidates=2).fit(words).add(words).kneighbors(
        words, 1
    )
    dask.compute(dask.delayed(len)("a"), scheduler="synchronous")


if sys.argv == ["-c"]:  # in the process that is forked
    _warm()
