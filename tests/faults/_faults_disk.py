"""Full disks, damaged files, and commands that are stopped by hand."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _faults_jobs as jobs
from _faults_runs import Kind, Run, Tally, neighbours_of, objects_of, undisturbed

from similia.search.on_disk import SearchFolder

COMMANDS = ("encode", "predict", "build", "add")


class Stopped(Kind):
    """SIGINT or SIGTERM to a command; some have imports to do first, some a cluster of their own."""

    name = "Ctrl-C, SIGTERM"

    def __init__(self, base: Path) -> None:
        super().__init__(base)
        self.works = tuple(map(self.work, COMMANDS))
        self.real = undisturbed(jobs.process, self.works[1].arguments(self.works[1].new(base / "real")))[0]

    def trial(self, rng: random.Random, tally: Tally) -> None:
        """Stop a command, perhaps again, then let it finish."""
        real = rng.random() < 0.25
        here = self.works[1] if real else rng.choice(self.works)
        on_cluster = not real and rng.random() < 0.15
        work = self.work("predict", "--cluster", "local:2") if on_cluster else here
        folder = work.new(self.fresh())
        job, low, high = (jobs.process, 0.4, self.real) if real else (jobs.command, 0.002, work.seconds)
        for _ in range(rng.choice((1, 1, 2))):
            run, number = Run(job, work.arguments(folder)), rng.choice((signal.SIGINT, signal.SIGINT, signal.SIGTERM))
            if run.sleep(rng.uniform(low, high)):
                run.signal(number)
            run.end(tally, may_be_refused=False)
            if run.code == 0 or (real and work.output(folder).exists()):  # the file is written last
                tally.ended_before += 1
                break
            tally.faults += 1
            if number == signal.SIGINT and run.code != 130:
                tally.complain(f"Ctrl-C ended with {run.code}: {run.text[-500:]}")
        work.finish(folder, tally)


class FullDisk(Kind):
    """No file may grow beyond a number of bytes (RLIMIT_FSIZE)."""

    name = "disk full (limit of a file)"

    def __init__(self, base: Path) -> None:
        super().__init__(base)
        self.works = tuple(map(self.work, COMMANDS))

    def trial(self, rng: random.Random, tally: Tally) -> None:
        """Run once or twice with a limit at a random byte, then without."""
        work = rng.choice(self.works)
        folder = work.new(self.fresh())
        largest = max(path.stat().st_size for path in work.whole.rglob("*") if path.is_file())
        for _ in range(rng.choice((1, 1, 2))):
            _full(work.start(folder, limit=rng.randrange(largest)), tally)
        work.finish(folder, tally)


class SmallDisk(Kind):
    """A file system of a few pages (tmpfs), which is made larger afterwards; only where it may be mounted."""

    name = "disk full (small tmpfs)"

    def __init__(self, base: Path) -> None:
        super().__init__(base)
        (base / "mount").mkdir()
        self.mounted = _mount(base / "mount", 2**20)
        _unmount(base / "mount")
        self.works = tuple(map(self.work, COMMANDS)) if self.mounted else ()

    def trial(self, rng: random.Random, tally: Tally) -> None:
        """Run on a disk that is too small, then on the same one that has grown."""
        work = rng.choice(self.works)
        folder, size = self.fresh(), _size(work.whole)
        folder.mkdir()
        least = _size(work.before) if work.name == "add" else 0
        _mount(folder, least + rng.randrange(4096, size - least + 8192))
        try:
            if work.name == "add":
                shutil.copytree(work.before, folder / "index")
            _full(work.start(folder), tally)
            subprocess.run(["mount", "-o", "remount,size=64m", folder], check=True)
            work.finish(folder, tally)
        finally:
            _unmount(folder)


def _size(folder: Path) -> int:
    return sum(-(-path.stat().st_size // 4096) * 4096 for path in folder.rglob("*") if path.is_file())


def _full(run: Run, tally: Tally) -> None:
    run.end(tally)
    if run.code == 0:
        tally.ended_before += 1
        return
    tally.faults += 1
    if "the disk is full" not in run.text:
        tally.complain(f"does not speak of a full disk: {run.text[-500:]}")


def _mount(folder: Path, size: int) -> bool:
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True)
    return done.returncode == 0


def _unmount(folder: Path) -> None:
    subprocess.run(["umount", folder], capture_output=True)


# ---- damage
def flip(path: Path, rng: random.Random) -> str:
    """Change one byte."""
    data, where = bytearray(path.read_bytes()), rng.randrange(path.stat().st_size)
    data[where] ^= 1 << rng.randrange(8)
    path.write_bytes(data)
    return f"byte {where} of {path.name} flipped"


def truncate(path: Path, rng: random.Random) -> str:
    """Cut a file."""
    size = rng.randrange(path.stat().st_size)
    with path.open("r+b") as file:
        file.truncate(size)
    return f"{path.name} cut to {size}"


def delete(path: Path, rng: random.Random) -> str:
    """Delete a file."""
    path.unlink()
    return f"{path.name} deleted"


HARMS = (flip, truncate, delete)


class DamagedPartial(Kind):
    """A command is killed, and a file that it left is damaged."""

    name = "damaged partial file"

    def __init__(self, base: Path) -> None:
        super().__init__(base)
        self.works = tuple(map(self.work, COMMANDS[:2]))

    def trial(self, rng: random.Random, tally: Tally) -> None:
        """Kill a command, damage, finish."""
        work = rng.choice(self.works)
        folder = work.new(self.fresh())
        run = work.start(folder)
        partial = folder / f"{work.output(folder).name}.partial" / "journal"
        run.until(partial.exists)  # before, there is nothing to damage
        if run.sleep(rng.uniform(0, work.seconds - run.seconds)):
            run.signal(rng.choice((signal.SIGKILL, signal.SIGINT)))
        run.end(tally)
        files = [path for path in folder.glob("*.partial/*") if path.stat().st_size]
        if not files:
            tally.ended_before += 1
            return
        tally.faults += 1
        path = rng.choice(sorted(files))
        tally.note = rng.choice(HARMS)(path, rng)
        work.finish(folder, tally)


class DamagedIndex(Kind):
    """A file of an index is damaged: whoever reads all of it must refuse it, and whoever changes it too."""

    name = "damaged index"

    def __init__(self, base: Path) -> None:
        super().__init__(base)
        build = self.work("build", n=400, chunk=40)
        self.folder = base / "index"
        shutil.copytree(build.output(build.whole), self.folder)
        SearchFolder.open(self.folder).remove(list(range(3, 90, 7)))
        self.expected = _answers(self.folder, False)
        self.after = _changed(self.folder, base / "changed")

    def trial(self, rng: random.Random, tally: Tally) -> None:
        """Damage, read in every way, take the damage away, read again."""
        folder = self.fresh()
        shutil.copytree(self.folder, folder)
        path = rng.choice(sorted(p for p in folder.rglob("*") if p.is_file() and p.stat().st_size))
        before = path.read_bytes()
        tally.note = rng.choice(HARMS)(path, rng)
        tally.faults += 1
        self._read(tally, "load", lambda: _answers(folder, False))
        self._read(tally, "verify and map", lambda: _verified(folder))
        self._read(tally, "change", lambda: _changed(folder, self.fresh()), self.after)
        path.write_bytes(before)
        self._read(tally, "mended", lambda: _answers(folder, True), may_be_refused=False)
        shutil.rmtree(folder)

    def _read(
        self, tally: Tally, how: str, read: Callable[[], Any], expected: Any = None, may_be_refused: bool = True
    ) -> None:
        tally.runs += 1
        try:
            found = read()
        except (ValueError, OSError) as error:
            if not may_be_refused or "\n" in str(error) or len(str(error)) > 500:
                tally.complain(f"{how}: {error}")
            return
        except Exception as error:
            tally.complain(f"{how}: {error!r}")
            return
        if found != (expected or self.expected):
            tally.wrong += 1
            tally.complain(f"{how}: another answer, without a word", count=False)


def _answers(folder: Path, mmap: bool) -> list[Any]:
    return [*objects_of(folder, mmap), *neighbours_of(folder, mmap)]


def _verified(folder: Path) -> list[Any]:
    SearchFolder.open(folder).store.verify()
    return _answers(folder, True)


def _changed(folder: Path, copy: Path) -> list[Any]:
    """Remove most objects, which writes the others anew; return what there is then."""
    shutil.copytree(folder, copy)
    try:
        SearchFolder.open(copy).remove(list(range(100, 390)))
        return _answers(copy, False)
    finally:
        shutil.rmtree(copy)
