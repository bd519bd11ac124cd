"""Hostile input: mutated files, models and objects to everything that reads.

    python tests/faults/run.py fuzz --inputs 100000
    python tests/faults/fuzz.py read_ts 0 4711      # input 4711 of seed 0 again, with its traceback

Input i of a target depends on the seed, the target and i alone. Inputs run in processes of their own, one for each
core, whose address space is limited, so that crashes, hangs and allocations end a process and are counted; the process
is started again with the next input. What is found is shortened, saved, and named at the end.
"""

from __future__ import annotations

import linecache
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from ctypes import c_longlong
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from random import Random
from typing import Any

from _targets import Target, targets
from sklearn.exceptions import NotFittedError

import similia as sm
from similia.core.validation import BadFile, BadParameter, BadType, BadValue

TITLE = "Hostile input"
TEXT = """
The inputs are small valid files, models and objects, mutated at random. Bits, bytes and slices are changed, inserted,
dropped, repeated and spliced. Numbers are replaced (0, -1, 2^31, 2^63, 1e308, nan, 400 digits), encodings and line ends
are changed, and brackets are nested deeply. Archives are changed member by member, with valid checksums. Arrays get
another type, shape or header. Descriptions of models get other values, classes, loaders and cycles. Manifests are
resealed, as a forger would do. *Refused*: similia raised a ValueError, TypeError or OSError on purpose, with a message
of one line of less than 500 characters that names the file or the item. A *find* is anything else: another exception,
one raised by a library below, a warning that is not a UserWarning, a crash, more than 2 s of processor time,
or a need for over 1 GiB more memory than the process began with. Loaded models are used on a few objects. Not covered
are the search structures of faiss, and models of scikit-learn other than support vector machines and linear models.
They run code that others compiled, so load them only from people you trust. Where atheris can be installed, `python
tests/faults/coverage_guided.py` fuzzes five readers, guided by coverage.
"""
INPUTS = 1_000_000
MUST_BE_ZERO = ("finds",)

MEMORY = 2**30  # bytes of address space an input may take
SECONDS = 2.0  # of processor time
HANG = 30.0  # seconds on the clock after which a process is ended
_CHUNK = 1000
_REFUSALS = (
    ValueError,
    TypeError,
    FileNotFoundError,
    OSError,
    IsADirectoryError,
    BadValue,
    BadType,
    BadParameter,
    BadFile,
)
_SHORTEST, _LONGEST = 10, 500
_ROOM = os.path.dirname(sm.__file__)


@dataclass
class Find:
    """One input that was neither accepted nor refused in a sentence of ours."""

    target: str
    index: int
    what: str
    path: str = ""


def run(n: int, seed: int) -> list[dict[str, Any]]:
    """Give about `n` inputs to all targets and return the rows of the table."""
    some = targets()
    total = sum(target.share for target in some)
    wanted = {target.name: max(1, round(n * target.share / total)) for target in some}
    start = time.perf_counter()
    counts, finds = _Pool(seed, Path(tempfile.mkdtemp(prefix="similia-finds-"))).run(wanted)
    _report(finds, sum(wanted.values()) / (time.perf_counter() - start))
    rows = [
        {
            "reader": name,
            "inputs": wanted[name],
            "accepted": counts[name, "accepted"],
            "refused": counts[name, "refused"],
            "finds": sum(find.target == name for find in finds),
        }
        for name in wanted
    ]
    columns = ("inputs", "accepted", "refused", "finds")
    return [*rows, {"reader": "**all**"} | {column: sum(row[column] for row in rows) for column in columns}]


def _report(finds: list[Find], per_second: float) -> None:
    print(f"{per_second:.0f} inputs a second")
    kinds = Counter((find.target, find.what) for find in finds)
    for (target, what), n in kinds.most_common():
        first = next(find for find in finds if (find.target, find.what) == (target, what))
        print(f"{n:6} {target}: {what}\n       input {first.index}, {first.path}")


# --- one input --------------------------------------------------------------------------------


class Trial:
    """Gives inputs to targets and judges what comes of them."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.seed = seed
        self.folder = folder
        self.heard: list[Any] = []

    def item(self, target: Target, index: int) -> Any:
        """Return input `index` of a target."""
        return target.item(Random(f"{self.seed} {target.name} {index}"))

    def judge(self, target: Target, item: Any, again: bool = False) -> str:
        """Return "accepted", "refused" or what is wrong."""
        self.heard.clear()
        start = time.process_time()
        try:
            with warnings.catch_warnings(record=True) as heard, sm.config(max_memory="8MiB"):
                warnings.simplefilter("always")
                target.call(item, self.folder)
            verdict = "accepted"
        except Exception as error:
            verdict = _refusal(error, target.words, target.theirs)
        except BaseException as error:  # numba, pyarrow and others have some that are no Exception
            verdict = f"{type(error).__name__}: {error}"
        took = time.process_time() - start
        if took > SECONDS:  # once more: an array of a type not met before compiles a loop
            return f"{took:.0f} s" if again else self.judge(target, item, again=True)
        for warning in heard:
            ours = not target.theirs or warning.filename.startswith(_ROOM)
            if ours and not issubclass(warning.category, UserWarning):
                return f"{warning.category.__name__} at {_place(warning.filename, warning.lineno)}"
        return verdict


def _refusal(error: Exception, words: tuple[str, ...], theirs: bool) -> str:
    """Return "refused" for a sentence of ours (`theirs`: or of scikit-learn alone), or what is wrong with it."""
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1]
    ours = [frame for frame in frames if frame.filename.startswith(_ROOM)]
    place = _place(last.filename, last.lineno)
    if theirs and not ours and not isinstance(error, MemoryError):
        return "refused"
    if not last.filename.startswith(_ROOM) and ours:
        place += f" from {_place(ours[-1].filename, ours[-1].lineno)}"
    if isinstance(error, NotFittedError):
        return "refused"
    if type(error) not in _REFUSALS:
        return f"{type(error).__name__} at {place}"
    text = str(error)
    from_system = isinstance(error, OSError) and error.filename is not None  # names the file by itself
    if not from_system and not linecache.getline(last.filename, last.lineno or 0).strip().startswith("raise"):
        return f"{type(error).__name__} at {place}, not ours"
    if not last.filename.startswith(_ROOM) and not from_system:
        return f"{type(error).__name__} at {place}, not ours"
    if "\n" in text or not _SHORTEST < len(text) < _LONGEST:
        return f"a sentence of {'several lines' if chr(10) in text else 'a wrong length'} at {place}"
    if words and not any(word in text for word in words):
        return f"a sentence that names neither of {words} at {place}"
    return "refused"


def _place(filename: str, line: int | None) -> str:
    return f"{Path(filename).parent.name}/{Path(filename).name}:{line}"


def _saved(trial: Trial, target: Target, item: Any, what: str, folder: Path) -> str:
    """Save an input, shortened as long as the same is found, and return where."""
    place = Path(tempfile.mkdtemp(prefix=target.name.split(",")[0].replace(" ", "_") + "-", dir=folder))
    files = item[0] if isinstance(item, tuple) and item and isinstance(item[0], dict) else item
    if not isinstance(files, dict) or not all(isinstance(data, bytes) for data in files.values()):
        try:
            text = repr(item)
        except Exception:
            text = type(item).__name__
        (place / "object.txt").write_text(text, encoding="utf-8", errors="backslashreplace")
        return str(place)
    if item is files and what:
        files = _shortened(trial, target, files, what)
    for name, data in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(data)
    return str(place)


def _shortened(trial: Trial, target: Target, files: dict[str, bytes], what: str) -> dict[str, bytes]:
    """Drop pieces of the files as long as the same comes of them, for a second at most."""
    end = time.perf_counter() + 1.0
    for name in list(files):
        size = len(files[name]) // 2
        while size and time.perf_counter() < end:
            first = 0
            while first < len(files[name]) and time.perf_counter() < end:
                fewer = files | {name: files[name][:first] + files[name][first + size :]}
                if trial.judge(target, fewer) == what:
                    files = fewer
                else:
                    first += size
            size //= 2
    return files


# --- processes --------------------------------------------------------------------------------

_NOW, _SINCE, _ACCEPTED, _REFUSED = range(4)


def _work(seed: int, folder: str, pipe: Connection, state: Any) -> None:
    """Judge chunks of inputs until None comes; runs in a process of its own."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    some = {target.name: target for target in targets()}
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as scratch:
        trial = Trial(seed, Path(scratch))
        for target in some.values():
            trial.judge(target, target.item(Random(f"first {target.name}")))  # compiled and imported before the limit
        used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))
        pipe.send("ready")
        for name, start, stop in iter(pipe.recv, None):
            state[_ACCEPTED] = state[_REFUSED] = 0
            for index in range(start, stop):
                state[_NOW], state[_SINCE] = index, time.monotonic_ns()
                item = trial.item(some[name], index)
                verdict = trial.judge(some[name], item)
                if verdict == "accepted":
                    state[_ACCEPTED] += 1
                elif verdict == "refused":
                    state[_REFUSED] += 1
                else:
                    pipe.send(Find(name, index, verdict, _saved(trial, some[name], item, verdict, Path(folder))))
            state[_SINCE] = 0
            pipe.send("done")


class _Worker:
    """A process and the chunk it works on."""

    def __init__(self, context: Any, seed: int, folder: Path) -> None:
        self.state = context.RawArray(c_longlong, 4)
        self.pipe, end = context.Pipe()
        self.process = context.Process(target=_work, args=(seed, str(folder), end, self.state), daemon=True)
        self.process.start()
        end.close()
        self.chunk: tuple[str, int, int] | None = None

    def hangs(self) -> bool:
        """Whether an input has taken too long on the clock."""
        since = self.state[_SINCE]
        return self.chunk is not None and since > 0 and time.monotonic_ns() - since > HANG * 1e9


class _Pool:
    """Hands chunks of inputs to processes, and starts those anew that end."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.seed, self.folder = seed, folder
        self.counts: Counter[tuple[str, str]] = Counter()
        self.finds: list[Find] = []
        self.context = multiprocessing.get_context("spawn")

    def run(self, wanted: dict[str, int]) -> tuple[Counter[tuple[str, str]], list[Find]]:
        """Run all inputs; return counts by target and verdict, and the finds."""
        chunks = list(_chunks(wanted))
        workers = [self._worker() for _ in range(min(os.cpu_count() or 1, len(chunks)))]
        while workers:
            wait([worker.pipe for worker in workers] + [worker.process.sentinel for worker in workers], timeout=1.0)
            for i, worker in enumerate(workers):
                if worker.hangs():
                    worker.process.kill()
                    worker.process.join()
                if not self._listen(worker, chunks):
                    self._bury(worker, chunks)
                    workers[i] = self._worker()
            workers = [worker for worker in workers if worker.chunk or chunks or worker.process.is_alive()]
        return self.counts, self.finds

    def _worker(self) -> _Worker:
        return _Worker(self.context, self.seed, self.folder)

    def _listen(self, worker: _Worker, chunks: list[tuple[str, int, int]]) -> bool:
        """Take what a process sends and give it work; return False if it ended in the middle."""
        try:
            while worker.pipe.poll():
                message = worker.pipe.recv()
                if isinstance(message, Find):
                    self.finds.append(message)
                    continue
                self._count(worker)
                worker.chunk = chunks.pop() if chunks else None
                worker.pipe.send(worker.chunk)
                if worker.chunk is None:
                    worker.process.join()
                    return True
        except (EOFError, OSError):
            return False
        return worker.process.is_alive() or worker.pipe.poll()

    def _count(self, worker: _Worker) -> None:
        if worker.chunk is not None:
            self.counts[worker.chunk[0], "accepted"] += worker.state[_ACCEPTED]
            self.counts[worker.chunk[0], "refused"] += worker.state[_REFUSED]

    def _bury(self, worker: _Worker, chunks: list[tuple[str, int, int]]) -> None:
        """Note what ended a process, and put back the inputs it did not come to."""
        worker.process.join()
        if worker.chunk is None:
            raise RuntimeError(f"a worker ended before its first input (exit code {worker.process.exitcode})")
        self._count(worker)
        name, _, stop = worker.chunk
        index, code = worker.state[_NOW], worker.process.exitcode or 0
        ended = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        what = f"more than {HANG:.0f} s" if worker.hangs() else f"crash, {ended}"
        target = next(target for target in targets() if target.name == name)
        trial = Trial(self.seed, self.folder)
        self.finds.append(Find(name, index, what, _saved(trial, target, trial.item(target, index), "", self.folder)))
        print(f"{name}, input {index}: {what}", flush=True)
        if index + 1 < stop:
            chunks.append((name, index + 1, stop))


def _chunks(wanted: dict[str, int]) -> Iterator[tuple[str, int, int]]:
    """Yield chunks; slow targets come last here, that is first from the end of the list."""
    for name, n in sorted(wanted.items(), key=lambda entry: -entry[1]):
        for start in range(0, n, _CHUNK):
            yield name, start, min(n, start + _CHUNK)


def _again(name: str, seed: int, index: int) -> None:
    """Give one input to one target here, and let what it raises be seen."""
    target = next(target for target in targets() if target.name.startswith(name))
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(seed, Path(folder))
        item = trial.item(target, index)
        print(str(item)[:3000])
        print(trial.judge(target, item))
        with sm.config(max_memory="8MiB"):
            print(target.call(item, Path(folder)))


if __name__ == "__main__":
    _again(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
