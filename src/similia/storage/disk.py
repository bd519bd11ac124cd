"""Atomic file writes, and a lock between processes."""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from similia.core.errors import BadFile
from similia.core.validation import as_path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_DEVICES = Path(os.devnull).parent
LOCK = "index.lock"
TEMPORARY = ".tmp"
_FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}


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
