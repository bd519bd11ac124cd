"""Atomic file writes, a lock between processes, and a data file that grows chunk by chunk beside a journal.

The journal makes a run safe to interrupt. ``data`` holds the rows. ``journal`` holds one line per chunk: the number of
objects so far, the number of bytes and the crc32 of the chunk, and a checksum of the line itself. Rows are flushed to
the disk before their line, and a chunk counts once its line is on the disk. So a crash leaves, at worst, rows without a
line, or half a line. A resumed run cuts these off, compares each chunk with its checksum, and cuts both files at the
first mismatch.

When the data file is complete, it is moved to its final name and the folder is removed. Only one process at a time may
write; a lock ensures this.
"""

from __future__ import annotations

import errno
import io
import json
import os
import stat
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self, TextIO

from similia.core.validation import BadFile, as_path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_DEVICES = Path(os.devnull).parent
LOCK = "index.lock"
TEMPORARY = ".tmp"
_FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
DATA, JOURNAL = "data", "journal"
_FORMAT = "similia-journal"
_BLOCK = 2**20  # bytes read at a time to compute checksums
_BINARY = getattr(os, "O_BINARY", 0)


def says_full(error: BaseException) -> str | None:
    """Return a message if `error` means that a disk, quota or file size limit is exhausted, otherwise None."""
    if isinstance(error, OSError) and error.errno in _FULL:
        return f"the disk is full ({error.strerror})"
    return None


@contextmanager
def disk_full(state: Callable[[], str]) -> Iterator[None]:
    """Context manager that adds to a disk-full error the text ``state()`` (what is kept) and how to continue."""
    try:
        yield
    except OSError as error:
        if (full := says_full(error)) is None:
            raise
        raise OSError(f"{full}; {state()}: make room and run the same again") from error


@contextmanager
def replacing(path: Path) -> Iterator[Any]:
    """Open a temporary file for a ``with`` block, then flush it and move it to `path`.

    If `path` exists, it is replaced and its permissions are kept. If the block raises, `path` stays as it is. A folder,
    a pipe or a device is refused.
    """
    check_target(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}{TEMPORARY}")
    try:
        with open(temporary, "xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if path.exists():
            temporary.chmod(stat.S_IMODE(path.stat().st_mode))
        move(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)  # frees its space on a full disk
        raise


def check_target(path: Path) -> None:
    """Raise if something else than a file exists at `path`, so that a new file must not be moved there."""
    if (path.exists() and not path.is_file()) or path.absolute().parent == _DEVICES:  # /dev/stdout may lead to a file
        raise BadFile(path, "is a folder, a pipe or a device, which a file must not replace; name a file")


def move(source: Path, target: Path) -> None:
    """Move a file over another in one step; Windows refuses while `target` is read, so retry for a second."""
    for _ in range(20 if sys.platform == "win32" else 0):
        try:
            os.replace(source, target)
            return
        except PermissionError:
            time.sleep(0.05)
    os.replace(source, target)


def write_atomically(path: Path, data: bytes) -> None:
    with replacing(path) as stream:
        stream.write(data)


def text_destination(path: str | os.PathLike[str] | TextIO) -> Path | TextIO:
    """Return an open text file as it is, and a path as a Path; raise if the folder of a path does not exist."""
    if isinstance(getattr(path, "file", path), io.TextIOBase):  # temporary files of the standard library have a `file`
        return path  # type: ignore[return-value]
    place = as_path(path)
    check_folder(place)
    return place


def check_folder(path: Path) -> None:
    """Raise if the folder in which a file is to be written does not exist."""
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(f"the folder {path.parent} does not exist; make it first")


def write_text(text: str, place: Path | TextIO) -> None:
    """Write a text to a path, atomically, or to an open text file; characters that UTF-8 lacks become "?"."""
    encoded = text.encode("utf-8", "replace")
    if isinstance(place, Path):
        write_atomically(place, encoded)
    else:
        place.write(encoded.decode())


def sync_folder(folder: Path) -> None:
    """Flush the directory entries of a folder to the disk, where the system supports it."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def is_temporary(name: str) -> bool:
    """Return whether `name` is the name of an unfinished temporary file of `replacing`."""
    return name.startswith(".") and name.endswith(TEMPORARY)


def is_leftover(name: str) -> bool:
    """Return whether `name` is a lock or a temporary file. A folder with only such files counts as empty."""
    return name == LOCK or is_temporary(name)


def take_lock(folder: Path) -> Any:
    """Lock `folder` until the returned file is closed; raise if another process holds the lock."""
    stream = open(folder / LOCK, "ab")  # noqa: SIM115 - closed by the caller, when the change is done
    try:
        if sys.platform == "win32":
            stream.seek(0)
            msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        stream.close()
        raise ValueError(
            f"another process is writing to {folder}, or its file system has no locks; wait until it has finished"
        ) from None
    return stream


class Journal:
    """A locked folder with a data file and a journal of its finished chunks, from which a run can resume.

    Use it in a ``with`` block: call `start` for a new run, or `resume` if `header` shows that the files belong to the
    same run; then call `append` for each chunk, and `finish`. The parent of `folder` must exist.

    Attributes
    ----------
    header : dict or None
        The `header` passed to `start` when the files were created; None if there are no valid files.
    done : int
        Number of objects on the disk.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.done = 0
        self._files: dict[str, int] = {}  # file descriptors
        self._sizes: dict[str, int] = {}  # number of valid bytes
        self._offset = 0  # start of the first chunk
        self._lock = _locked(folder)
        try:
            self.header = self._read_header()
        except BaseException:
            self.close()
            raise

    def start(self, header: dict[str, Any], offset: int) -> None:
        """Start a new run, described by `header`; reserve the first `offset` bytes of the data file for `finish`."""
        self._shut()
        for name in (JOURNAL, DATA):  # the journal first: without it, data do not count
            (self.folder / name).unlink(missing_ok=True)
        line = _line({"format": _FORMAT, "version": 1, "offset": offset, "header": header})
        with disk_full(self._state):
            for name, content in ((DATA, bytes(offset)), (JOURNAL, line)):
                self._files[name] = os.open(self.folder / name, os.O_RDWR | os.O_CREAT | _BINARY, 0o666)
                _write(self._files[name], content)
                os.fsync(self._files[name])
                self._sizes[name] = len(content)
            sync_folder(self.folder)
        self.header, self._offset, self.done = header, offset, 0

    def resume(self) -> str | None:
        """Cut off the remains of a crash and damaged chunks; return a message if chunks were damaged, else None."""
        for name in (DATA, JOURNAL):
            self._files[name] = os.open(self.folder / name, os.O_RDWR | _BINARY)
        entries, last, damaged = self._read_entries()
        self._sizes[DATA], self.done = self._offset, 0
        for number, entry in enumerate(entries):
            if self._checksum(entry["bytes"]) != entry["crc32"]:
                entries, damaged = entries[:number], True
                break
            self._sizes[DATA] += entry["bytes"]
            self.done = entry["stop"]
        with open(self.folder / JOURNAL, "rb") as journal:
            self._sizes[JOURNAL] = sum(len(journal.readline()) for _ in range(1 + len(entries)))
        self._cut()
        if not damaged:
            return None
        again = f"the {last - self.done} objects" if last > self.done else "all objects"
        return f"{self.folder} is damaged after object {self.done}; {again} after it are done again"

    def append(self, data: Any, stop: int) -> None:
        """Append `data`, the bytes of objects `done` to `stop` - 1; they are on the disk when the call returns.

        Raise OSError if the disk is full; earlier chunks stay intact, and the run can be resumed.
        """
        data = memoryview(data).cast("B")
        entry = {"start": self.done, "stop": stop, "bytes": len(data), "crc32": zlib.crc32(data)}
        try:
            with disk_full(self._state):
                for name, content in ((DATA, data), (JOURNAL, _line(entry))):
                    os.lseek(self._files[name], self._sizes[name], os.SEEK_SET)
                    _write(self._files[name], content)
                    os.fsync(self._files[name])
        except OSError:
            with suppress(OSError):
                self._cut()
            raise
        self._sizes[DATA] += len(data)
        self._sizes[JOURNAL] += len(_line(entry))
        self.done = stop

    def finish(self, output: Path, first: bytes) -> None:
        """Write `first` to the bytes reserved by `start`, move the data file to `output` and remove the folder."""
        if len(first) != self._offset:
            raise ValueError(f"{len(first)} bytes come before the first chunk, but start reserved {self._offset}")
        with disk_full(self._state):
            os.lseek(self._files[DATA], 0, os.SEEK_SET)
            _write(self._files[DATA], first)
            os.fsync(self._files[DATA])
        self._shut()
        if output.exists():
            (self.folder / DATA).chmod(stat.S_IMODE(output.stat().st_mode))
        move(self.folder / DATA, output)
        sync_folder(output.parent)
        (self.folder / JOURNAL).unlink()
        self.header = None
        self.close()

    def close(self) -> None:
        """Release the files and the lock; remove the folder unless it holds an unfinished run."""
        self._shut()
        if self._lock is None:
            return
        empty, lock, self._lock = not (self.folder / JOURNAL).exists(), self._lock, None
        if not empty:
            lock.close()
            return
        (self.folder / DATA).unlink(missing_ok=True)
        if os.name == "posix":  # Windows deletes no open file
            (self.folder / LOCK).unlink(missing_ok=True)
        lock.close()
        with suppress(OSError):
            if os.name != "posix":
                (self.folder / LOCK).unlink(missing_ok=True)
            self.folder.rmdir()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _state(self) -> str:
        return f"{self.folder} keeps the {self.done} objects that are done"

    def _shut(self) -> None:
        for descriptor in self._files.values():
            os.close(descriptor)
        self._files = {}

    def _cut(self) -> None:
        """Truncate both files to their valid part, the journal first."""
        for name in (JOURNAL, DATA):
            os.ftruncate(self._files[name], self._sizes[name])
            os.fsync(self._files[name])

    def _read_header(self) -> dict[str, Any] | None:
        path = self.folder / JOURNAL
        if not path.exists() or not (self.folder / DATA).exists():
            return None
        with open(path, "rb") as journal:
            found = _parsed(journal.readline())
        if found is None or found.get("format") != _FORMAT or found.get("version") != 1:
            return None
        self._offset = int(found["offset"])
        header: dict[str, Any] = found["header"]
        return header

    def _read_entries(self) -> tuple[list[dict[str, Any]], int, bool]:
        """Return (entries before the first bad line, largest `stop` in any line, whether any line is bad)."""
        entries: list[dict[str, Any]] = []
        last, damaged = 0, False
        with open(self.folder / JOURNAL, "rb") as journal:
            journal.readline()
            for line in journal:
                found = _parsed(line)
                last = max(last, found["stop"] if found else 0)
                if found and not damaged and found["start"] == (entries[-1]["stop"] if entries else 0):
                    entries.append(found)
                elif line.endswith(b"\n"):  # a crash can leave half a line at the end
                    damaged = True
        return entries, last, damaged

    def _checksum(self, size: int) -> int | None:
        """Return the crc32 of the `size` bytes after the valid data, or None if the data file ends before."""
        found = 0
        os.lseek(self._files[DATA], self._sizes[DATA], os.SEEK_SET)
        while size:
            block = os.read(self._files[DATA], min(size, _BLOCK))
            if not block:
                return None
            found, size = zlib.crc32(block, found), size - len(block)
        return found


def _write(descriptor: int, data: Any) -> None:
    """Write all of the data, even if the system writes only a part at a time; raise if it fails."""
    rest = memoryview(data)
    while len(rest):
        rest = rest[os.write(descriptor, rest) :]


def _line(content: dict[str, Any]) -> bytes:
    text = json.dumps(content, sort_keys=True).encode()
    return b"%s\t%08x\n" % (text, zlib.crc32(text))


def _parsed(line: bytes) -> dict[str, Any] | None:
    """Return the content of a line that `_line` wrote, or None if the line is damaged."""
    text, _, checksum = line.rpartition(b"\t")
    if checksum != b"%08x\n" % zlib.crc32(text):
        return None
    content: dict[str, Any] = json.loads(text)
    return content


def _locked(folder: Path) -> Any:
    """Create the folder if necessary, lock it, and return the open lock file."""
    while True:
        folder.mkdir(exist_ok=True)
        try:
            lock = take_lock(folder)
        except FileNotFoundError:  # a run that has just finished removed the folder
            continue
        with suppress(FileNotFoundError):
            if os.fstat(lock.fileno()).st_ino == os.stat(folder / LOCK).st_ino:
                return lock
        lock.close()
