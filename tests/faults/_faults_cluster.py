"""Workers and schedulers that die, and a kernel that raises."""

from __future__ import annotations

import atexit
import os
import random
import signal
import socket
import time
from functools import cache
from pathlib import Path
from typing import Any

import _faults_jobs as jobs
import distributed
import numpy as np
from _faults_runs import Kind, Run, Tally, rows_of, undisturbed, words_file

import similia as sm
from similia.scale.stream import partial_of
from similia.storage.disk import Journal

_N, _CHUNK = 6000, 100


class Killing(Kind):
    """A cluster of two processes, whose nannies start those anew that are killed."""

    weight = 2

    def __init__(self, base: Path) -> None:
        super().__init__(base)
        self.cluster = _cluster()
        self.address = self.cluster.scheduler_address
        self.client = distributed.Client(self.cluster, set_as_default=False)

    def close(self) -> None:
        """Leave the cluster to the next kind."""
        self.client.close()

    def kill(self, rng: random.Random) -> None:
        """Kill one of the two workers."""
        os.kill(rng.choice([nanny.pid for nanny in self.cluster.workers.values() if nanny.pid]), signal.SIGKILL)

    def whole(self) -> None:
        """Wait until there are two workers again that have imported everything."""
        for _ in range(5):
            try:
                self.client.wait_for_workers(2, timeout=30)
                self.client.run(_imported)
                return
            except TimeoutError:  # now and then a nanny does not start its worker again
                self.cluster.scale(len(self.cluster.worker_spec) + 1)
            except OSError:  # the worker that was killed was still counted
                time.sleep(1)
        raise RuntimeError("the cluster does not get two workers again; begin with another one")

    def disturbed(self, run: Run, seconds: float, rng: random.Random, tally: Tally) -> None:
        """Kill a worker in the middle of a run; count which came first."""
        if run.sleep(rng.uniform(0, seconds)):
            self.kill(rng)
            tally.faults += 1
        else:
            tally.ended_before += 1


@cache
def _cluster() -> Any:
    options: dict[str, Any] = {"dashboard_address": ":0", "scheduler_kwargs": {"dashboard": False}}
    cluster = distributed.LocalCluster(2, threads_per_worker=1, processes=True, silence_logs=50, **options)
    atexit.register(cluster.close)
    return cluster


def _imported() -> None:
    import _faults_jobs  # noqa: F401


class Streams:
    """Encoding and predicting on a cluster, by functions and commands."""

    def __init__(self, base: Path, address: str) -> None:
        self.base, self.address = base, address
        self.data = words_file(base / "words.fasta", _N)
        self.model, self.encoder = base / "model.similia", base / "encoder.similia"
        words = ["".join(word) for word in np.random.default_rng(3).choice(list("ACGT"), (60, 12))]
        fitted = sm.recipes.nyshd(sm.kernels.GappyKmers(k=4, gaps=1), 20, 256, random_state=0)
        sm.save(fitted.fit(words, np.arange(60) % 3), self.model)
        sm.save(fitted[:-1], self.encoder)
        self.expected: dict[str, list[Any]] = {}
        for name in ("encode", "predict"):
            folder = base / name
            folder.mkdir()
            undisturbed(jobs.command, self._arguments(name, folder))
            self.expected[name] = rows_of(self.output(name, folder))
        for again in range(2):  # first the workers import everything
            folder = base / f"on the cluster {again}"
            folder.mkdir()
            self.seconds = undisturbed(jobs.command, self._arguments("encode", folder, "--scheduler", address))[0]

    def output(self, name: str, folder: Path) -> Path:
        return folder / ("codes.npy" if name == "encode" else "labels.csv")

    def _arguments(self, name: str, folder: Path, *where: str) -> list[str]:
        model = {"encode": ["encode", str(self.data), "--model", str(self.encoder)]}
        first = model.get(name, ["predict", str(self.model), str(self.data)])
        return [*first, "-o", str(self.output(name, folder)), "--chunk", str(_CHUNK), *where]

    def start(self, name: str, folder: Path, rng: random.Random, patience: float = 60.0) -> Run:
        """Start on the cluster, half of them as commands."""
        if rng.random() < 0.5 and patience == 60.0:
            return Run(jobs.command, self._arguments(name, folder, "--scheduler", self.address))
        job, model = (jobs.encode, self.encoder) if name == "encode" else (jobs.predict, self.model)
        output, options = str(self.output(name, folder)), {"chunk": _CHUNK, "workers": self.address}
        return Run(jobs.call, job, str(model), str(self.data), output, patience=patience, **options)

    def finish(self, name: str, folder: Path, rng: random.Random, tally: Tally) -> None:
        """Run once more, unless all is done, and compare."""
        if not self.output(name, folder).exists():
            run = self.start(name, folder, rng)
            if not run.end(tally, may_be_refused=False):
                return
        tally.compare(rows_of(self.output(name, folder)), self.expected[name])
        tally.compare([path.name for path in folder.glob("*.partial")], [])


class WorkerOfStream(Killing):
    """A worker dies while a stream is encoded or predicted; every sixth time one that the command started itself."""

    name = "worker killed: encode, predict"

    def __init__(self, base: Path) -> None:
        super().__init__(base)
        self.streams = Streams(base, self.address)

    def trial(self, rng: random.Random, tally: Tally) -> None:
        """Kill a worker of a run that should finish all the same."""
        name, folder = rng.choice(("encode", "predict")), self.fresh()
        folder.mkdir()
        own = rng.random() < 1 / 6
        if own:  # its processes may die before they are a cluster
            run = Run(jobs.command, self.streams._arguments(name, folder, "--cluster", "local:2"))
            run.until(lambda: len(_workers_of(run)) == 2)
            if run.sleep(rng.uniform(0, 3 + self.streams.seconds)) and (found := _workers_of(run)):
                os.kill(rng.choice(found), signal.SIGKILL)
                tally.faults += 1
            else:
                tally.ended_before += 1
        else:
            self.whole()
            run = self.streams.start(name, folder, rng)
            self.disturbed(run, self.streams.seconds, rng, tally)
        run.end(tally, may_be_refused=own)
        self.streams.finish(name, folder, rng, tally)


def _workers_of(run: Run) -> list[int]:
    """Return the processes of the workers that a command has started."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            group = os.getpgid(int(path.name))
            if group == run.process.pid and b"spawn_main" in (path / "cmdline").read_bytes():
                found.append(int(path.name))
        except (ProcessLookupError, FileNotFoundError):
            continue
    return found


class WorkerOfFit(Killing):
    """A worker dies while a model is fitted, which must learn what the local fit does."""

    name = "worker killed: fit"
    _models = ("NysHD", "ITQ", "PCA")

    def __init__(self, base: Path) -> None:
        super().__init__(base)
        self.whole()
        self.expected = {what: undisturbed(jobs.fit, what, None)[1] for what in self._models}
        undisturbed(jobs.fit, "NysHD", self.address)
        self.seconds = {what: undisturbed(jobs.fit, what, self.address)[0] for what in self._models}

    def start(self, what: str) -> Run:
        """Start what is tried."""
        return Run(jobs.fit, what, self.address)

    def trial(self, rng: random.Random, tally: Tally) -> None:
        """Kill a worker of a fit."""
        what = tally.note = rng.choice(list(self.expected))
        self.whole()
        run = self.start(what)
        run.until(lambda: bool(run.sent))  # it is connected
        self.disturbed(run, self.seconds[what] - 0.1, rng, tally)
        if run.end(tally, may_be_refused=False):
            for found, expected in zip(run.sent[1], self.expected[what][0], strict=True):
                tally.compare(list(map(bytes, np.atleast_2d(found.T).T)), list(map(bytes, np.atleast_2d(expected.T).T)))


class WorkerOfIndex(WorkerOfFit):
    """A worker dies while a `ShardedIndex` is built and asked, or objects are indexed."""

    name = "worker killed: index"

    def __init__(self, base: Path) -> None:
        Killing.__init__(self, base)
        self.whole()
        self.expected = {"sharded": undisturbed(jobs.sharded, None)[1]}
        self.seconds = {"sharded": [undisturbed(jobs.sharded, self.address)[0] for _ in range(2)][1]}
        self.local = self.work("build")
        self.on_cluster = self.work("build", "--scheduler", self.address)

    def start(self, what: str) -> Run:
        """Start what is tried."""
        return Run(jobs.sharded, self.address)

    def trial(self, rng: random.Random, tally: Tally) -> None:
        """Kill a worker."""
        if rng.random() < 0.5:
            super().trial(rng, tally)
            return
        self.whole()
        folder = self.on_cluster.new(self.fresh())
        run = self.on_cluster.start(folder)
        self.disturbed(run, self.on_cluster.seconds, rng, tally)
        run.end(tally, may_be_refused=False)
        tally.compare(self.local.left(folder), self.local.expected)


class Scheduler(Kind):
    """``dask scheduler`` dies and is started again, or not, or a client restarts its workers."""

    name = "scheduler killed or restarted"
    weight = 2

    def __init__(self, base: Path) -> None:
        super().__init__(base)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.workers: list[Run] = []
        self.scheduler = Run(jobs.scheduler, self.port)
        self._complete()
        self.streams = Streams(base, self.address)

    def close(self) -> None:
        """End scheduler and workers."""
        for run in (self.scheduler, *self.workers):
            run.kill()

    def trial(self, rng: random.Random, tally: Tally) -> None:
        """Kill the scheduler, or restart the workers, in the middle of a run; let it, or another one, finish."""
        self._complete()
        name, folder = rng.choice(("encode", "predict")), self.fresh()
        folder.mkdir()
        how = tally.note = rng.choice(("killed", "killed", "killed", "gone for long", "restart"))
        run = self.streams.start(name, folder, rng, patience=2.0 if how == "gone for long" else 60.0)
        ended = not run.sleep(rng.uniform(0, self.streams.seconds))
        if ended:
            tally.ended_before += 1
        else:
            tally.faults += 1
            if how == "restart":
                Run(jobs.restart, self.address).end(tally, may_be_refused=False)
            else:
                self.scheduler.kill()
                if how == "gone for long":
                    run.end(tally)
                time.sleep(rng.uniform(0, 1))
                self.scheduler = Run(jobs.scheduler, self.port)
            self._complete()
        run.end(tally)
        self.streams.finish(name, folder, rng, tally)

    def _complete(self) -> None:
        """Start workers for those that have died; they die with their scheduler or its connection."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            for run in (self.scheduler, *self.workers):
                run.sleep(0.01)
            self.workers = [run for run in self.workers if run.code is None]
            while len(self.workers) < 2:
                self.workers.append(Run(jobs.worker, self.address, str(self.base)))
            try:
                with distributed.Client(self.address, timeout=5, set_as_default=False) as client:
                    client.wait_for_workers(2, timeout=5)
                return
            except (OSError, TimeoutError):
                continue
        raise RuntimeError("the cluster does not come back")


class Raising(Killing):
    """A user's kernel raises on one object of 80,000, in this process or on a cluster."""

    name = "kernel raises on item 73,421"
    weight = 3

    def __init__(self, base: Path) -> None:
        super().__init__(base)
        X = np.random.default_rng(0).normal(size=(jobs.N_VECTORS, 2))
        X[jobs.POISONED, 0] = jobs.POISON
        self.data, self.switch = base / "vectors.npy", base / "switch"
        np.save(self.data, X)
        self.encoder = sm.Nystroem(jobs.Kernel(self.switch), 8, random_state=0).fit(X[:50])
        undisturbed(jobs.call, jobs.encode_with, self.encoder, str(self.data), str(base / "whole.npy"))
        self.expected = (base / "whole.npy").read_bytes()

    def trial(self, rng: random.Random, tally: Tally) -> None:
        """Let it raise an error of some type, then mend it."""
        kind = rng.choice(jobs.Kernel.errors)
        chunk, where = int(10 ** rng.uniform(3, 4)), rng.choice((None, self.address))
        tally.note = f"{kind.__name__}, chunks of {chunk}, {where or 'here'}"
        output = self.base / f"{self.fresh().name}.npy"
        arguments = (jobs.encode_with, self.encoder, str(self.data), str(output))
        self.switch.write_text(kind.__name__)
        run = Run(jobs.call, *arguments, chunk=chunk, workers=where)
        run.end(tally)
        tally.faults += 1
        if not any(place in run.text for place in (f"X[{jobs.POISONED}]", f"object {jobs.POISONED} (counted from 0)")):
            tally.complain(f"does not name the object: {run.text}")
        with Journal(partial_of(output)) as journal:
            if journal.header is not None:
                journal.resume()
            tally.lost += max(0, jobs.POISONED // chunk * chunk - journal.done)
        self.switch.unlink()
        if Run(jobs.call, *arguments, chunk=chunk, workers=where).end(tally, may_be_refused=False):
            tally.wrong += int(output.read_bytes() != self.expected)
