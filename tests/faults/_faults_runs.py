"""Processes that are watched while something breaks, and the counting of what they leave."""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import _faults_jobs as jobs
import numpy as np

import similia as sm
from similia.search.on_disk import SearchFolder

sys.path.append(str(Path(__file__).parents[1]))
from kill_commands import write_words

LABELS = np.arange(60) % 3
HANG = 180.0  # seconds after which a run is taken to hang; on a busy machine the first, which compiles, takes a minute
_LONGEST = 500  # letters of a sentence
_UNCLEAR = ("Traceback", "Exception ignored", "Error:", "Warning:", "distributed.")

_context = multiprocessing.get_context("forkserver")


def start_server() -> None:
    """Start the process whose forks are the runs."""
    from multiprocessing.forkserver import ensure_running

    here, before = str(Path(__file__).parent), os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([here, *([before] if before else [])])  # workers of clusters need it too
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _context.set_forkserver_preload(["_faults_jobs"])
    ensure_running()


@dataclass
class Tally:
    """A row of the table."""

    faults: int = 0
    runs: int = 0
    ended_before: int = 0
    lost: int = 0
    doubled: int = 0
    wrong: int = 0
    hangs: int = 0
    unclear: int = 0
    note: str = field(default="", compare=False)  # what was done in the last trial

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(getattr(self, name) + getattr(other, name) for name in _COLUMNS))

    def complain(self, text: str, count: bool = True) -> None:
        """Count a refusal that is not clear, or only say what is wrong."""
        self.unclear += int(count)
        print(f"    {text}", file=sys.stderr, flush=True)

    def row(self, kind: str) -> dict[str, Any]:
        """Return the cells."""
        return {"kind": kind, **{name.replace("_", " "): getattr(self, name) for name in _COLUMNS}}

    def bad(self) -> tuple[int, ...]:
        """Return what must be zero."""
        return self.lost, self.doubled, self.wrong, self.hangs, self.unclear

    def compare(self, found: Sequence[Any], expected: Sequence[Any]) -> None:
        """Count what is lost, doubled or wrong of a list of results that ought to be as expected."""
        if list(found) == list(expected):
            return
        have, want = Counter(found), Counter(expected)
        extra = have - want
        lost, doubled = (want - have).total(), sum(n for item, n in extra.items() if item in want)
        wrong = extra.total() - doubled
        self.lost, self.doubled = self.lost + lost, self.doubled + doubled
        self.wrong += wrong or int(not lost and not doubled)  # in another order
        print(f"    {lost} lost, {doubled} doubled, {wrong} wrong of {len(expected)}", file=sys.stderr)


_COLUMNS = [name for name in Tally.__dataclass_fields__ if name != "note"]


class Run:
    """A job in a process of its own, with a group of its own.

    Attributes
    ----------
    code : int or None
        Exit code; below 0 the signal that ended it.
    text : str
        What it printed.
    sent : list
        What the job sent.
    """

    def __init__(self, job: Callable[..., None], *args: Any, **kwargs: Any) -> None:
        self._messages, to_messages = _context.Pipe(duplex=False)
        self._output, to_output = _context.Pipe(duplex=False)
        self.process = _context.Process(target=_run, args=(job, args, kwargs, to_messages, to_output))
        self.process.start()
        to_messages.close()
        to_output.close()
        self.text, self.sent, self.code = "", [], None
        self._open: set[Any] = {self._messages, self._output}
        self.hangs = not self.until(lambda: bool(self.sent))
        if self.sent:
            self.sent.pop(0)
        self.start = time.monotonic()

    def until(self, reached: Callable[[], bool], seconds: float = HANG) -> bool:
        """Watch until something is reached or the process has ended, which counts as well; False after `seconds`."""
        end = time.monotonic() + seconds
        while self.code is None and not reached():
            left = end - time.monotonic()
            if left <= 0:
                return False
            self._collect(wait([self.process.sentinel, *self._open], min(left, 0.02)))
            if self.process.exitcode is not None:
                while ready := wait(list(self._open), 0):
                    self._collect(ready)
                    if self._messages not in self._open and self._output not in ready:
                        break
                self.code = self.process.exitcode
        return True

    def _collect(self, ready: list[Any]) -> None:
        for connection in self._open & set(ready):
            try:
                if connection is self._messages:
                    self.sent.append(connection.recv())
                else:
                    found = os.read(connection.fileno(), 2**16)
                    self.text += found.decode(errors="replace")
                    if not found:
                        raise EOFError
            except (EOFError, OSError):
                self._open.discard(connection)

    def sleep(self, seconds: float) -> bool:
        """Watch for some seconds; return whether the process still runs."""
        self.until(lambda: False, max(0.0, seconds))
        return self.code is None

    def signal(self, number: int) -> None:
        """Send a signal to all processes of the group, as a terminal does."""
        os.killpg(self.process.pid, number)

    def kill(self) -> None:
        """End it, with all that it started."""
        try:
            self.signal(signal.SIGKILL)
        except ProcessLookupError:
            return
        self.until(lambda: False, 5)

    def end(self, tally: Tally, may_be_refused: bool = True) -> bool:
        """Wait for the end and count a hang or an unclear one; return whether all was done."""
        tally.runs += 1
        self.until(lambda: False, HANG)
        if self.code is None:
            self.kill()
            tally.hangs += 1
            print(f"    hangs: {self.text[-2000:]}", file=sys.stderr)
            return False
        stopped = self.code in (130, -signal.SIGINT, -signal.SIGTERM, -signal.SIGKILL)
        refused = [line for line in self.text.splitlines() if line.startswith("similia: ")]
        clear = self.code == 0 or stopped or (self.code == 2 and may_be_refused and len(refused) == 1)
        others = "\n".join(line for line in self.text.splitlines() if line not in refused)
        if not clear or any(word in others for word in _UNCLEAR) or max(map(len, refused), default=0) > _LONGEST:
            tally.unclear += 1
            print(f"    unclear, code {self.code}: {self.text[-3000:]}", file=sys.stderr)
        return self.code == 0

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self.start


def _run(job: Callable[..., None], args: Any, kwargs: Any, messages: Any, output: Any) -> None:
    os.setpgid(0, 0)
    os.dup2(output.fileno(), 1)
    os.dup2(output.fileno(), 2)
    output.close()
    messages.send("started")
    job(messages.send, *args, **kwargs)


def undisturbed(job: Callable[..., None], *args: Any, **kwargs: Any) -> tuple[float, list[Any]]:
    """Run a job to its end; return its seconds and what it sent."""
    run, tally = Run(job, *args, **kwargs), Tally()
    if not run.end(tally, may_be_refused=False) or any(tally.bad()):
        raise RuntimeError(f"a run without a fault failed: {run.text}")
    return run.seconds, run.sent


# ---- what a run left
def rows_of(path: Path) -> list[Any]:
    """Return the rows of a .npy file or the lines of another one."""
    if path.suffix == ".npy":
        return [row.tobytes() for row in np.load(path)]
    return path.read_text().splitlines()


def objects_of(folder: Path, mmap: bool = False) -> list[Any]:
    """Return name, object and code of all objects of an index, by id."""
    search, names = SearchFolder.open(folder).load_named(mmap)
    codes, objects = search.index_.reconstruct(search.ids_), search.objects_
    words = [] if objects is None else objects.tolist()
    return [(names.get(i), *rest) for i, *rest in zip(search.ids_.tolist(), words, map(bytes, codes), strict=True)]


def neighbours_of(folder: Path, mmap: bool = False) -> list[Any]:
    """Return the nearest objects of some, as ids and scores."""
    scores, ids = SearchFolder.open(folder).load(mmap).kneighbors(QUERIES, 10)
    return [*zip(ids.ravel().tolist(), scores.ravel().tolist(), strict=True)]


# ---- commands whose results are compared
def words_file(path: Path, n: int) -> Path:
    """Write random words, if it was not done before."""
    if not path.exists():
        write_words(path, n, seed=len(path.name))
    return path


OPTIONS = ["--kernel", "Spectrum(k=2)", "--bits", "64", "--landmarks", "8"]
BUILD = [*OPTIONS, "--rerank", "Levenshtein()", "--candidates", "20"]
QUERIES = ["ACGTACGTACGT", "TTTTACACCCCG", "GGGGGCATTACG"]


class Work:
    """A command on words, what it leaves, and how long it takes when nothing happens.

    Parameters
    ----------
    base : pathlib.Path
        Folder of the data, which all share.
    name : {"encode", "predict", "build", "add"}
    options : str
        Of the command.
    n : int
        Number of words.
    chunk : int
        Words committed together.
    """

    def __init__(self, base: Path, name: str, *options: str, n: int = 2000, chunk: int = 50) -> None:
        self.base, self.name, self.options = base, name, [*options, "--chunk", str(chunk)]
        self.data = [words_file(base / f"{which} {n}.fasta", n) for which in ("first", "second")]
        self.model, self.before = base / "model.similia", base / f"index {n}"
        if not self.model.exists():
            words = ["".join(word) for word in np.random.default_rng(3).choice(list("ACGT"), (60, 12))]
            sm.save(sm.recipes.nyshd(sm.kernels.Spectrum(k=2), 8, 64, random_state=0).fit(words, LABELS), self.model)
        if name == "add" and not self.before.exists():
            undisturbed(jobs.command, ["index", "build", str(self.data[0]), str(self.before), *BUILD])
        took = []
        for _ in range(2):  # the first may load what the second finds loaded
            self.whole = self.new(base / f"whole {name} {len(list(base.iterdir()))}")
            took.append(undisturbed(jobs.command, self.arguments(self.whole))[0])
        self.seconds = min(took)
        self.expected = self.left(self.whole)

    def new(self, folder: Path) -> Path:
        """Make the folder of a run."""
        folder.mkdir()
        if self.name == "add":
            shutil.copytree(self.before, folder / "index")
        return folder

    def arguments(self, folder: Path) -> list[str]:
        """Return those of the command."""
        first, second, index = str(self.data[0]), str(self.data[1]), str(folder / "index")
        commands = {
            "encode": ["encode", first, "-o", str(self.output(folder)), *OPTIONS],
            "predict": ["predict", str(self.model), first, "-o", str(self.output(folder))],
            "build": ["index", "build", first, index, *BUILD],
            "add": ["index", "add", second, index],
        }
        return [*commands[self.name], *self.options]

    def output(self, folder: Path) -> Path:
        """Return what the command makes."""
        return folder / {"encode": "codes.npy", "predict": "labels.csv"}.get(self.name, "index")

    def start(self, folder: Path, **kwargs: Any) -> Run:
        """Start the command."""
        return Run(jobs.command, self.arguments(folder), **kwargs)

    def left(self, folder: Path) -> list[Any]:
        """Return what a finished run left."""
        output = self.output(folder)
        if not output.exists():
            return []
        return [*objects_of(output), *neighbours_of(output)] if output.is_dir() else rows_of(output)

    def finish(self, folder: Path, tally: Tally) -> None:
        """Run the command to its end, without a fault, and compare."""
        if self.start(folder).end(tally, may_be_refused=False):
            tally.compare(self.left(folder), self.expected)
            tally.compare([path.name for path in folder.glob("*.partial")], [])


class Kind:
    """A kind of fault; `trial` injects one, or counts that the run ended before it came."""

    name: str
    weight = 3  # in the share of all faults

    def __init__(self, base: Path) -> None:
        self.base = base
        self.base.mkdir()

    def work(self, name: str, *options: str, **kwargs: int) -> Work:
        """Return a command, with what it leaves undisturbed; all kinds share it."""
        shared = self.base.parent / "works"
        shared.mkdir(exist_ok=True)
        key = (str(shared), name, options, *kwargs.items())
        if key not in _works:
            _works[key] = Work(shared, name, *options, **kwargs)
        return _works[key]

    def trial(self, rng: random.Random, tally: Tally) -> None:
        """Inject a fault at a random moment, let the work be finished, compare."""
        raise NotImplementedError

    def close(self) -> None:
        """End what was started for all trials."""

    def fresh(self) -> Path:
        """Return a new path."""
        return self.base / f"trial {sum(1 for _ in self.base.iterdir())}"


_works: dict[Any, Work] = {}
