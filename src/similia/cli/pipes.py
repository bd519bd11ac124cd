"""Handle ``-``: copy standard input to a file named by its format, and write results to standard output."""

from __future__ import annotations

import gzip
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from similia.core.errors import BadFile

_BLOCK = 2**20
_MAGIC = {b"\x93NUMPY": ".npy", b"PAR1": ".parquet"}
_TS_WORDS = ("@problemname", "@timestamps", "@missing", "@univariate", "@dimension", "@equallength", "@classlabel")


@contextmanager
def from_stdin() -> Iterator[str]:
    """Yield the path of a temporary copy of standard input, with the file ending that matches its first bytes."""
    if sys.stdin is None or sys.stdin.isatty():
        raise ValueError("- reads standard input, which is a terminal; write e.g. cat reads.fasta | similia ... -")
    with tempfile.TemporaryDirectory(prefix="similia-") as folder:
        spooled = Path(folder, "stdin")
        with spooled.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file, _BLOCK)
        path = spooled.with_name("stdin" + _ending(spooled))
        spooled.rename(path)
        yield str(path)


@contextmanager
def to_stdout(ending: str) -> Iterator[Path]:
    """Yield the path of a temporary file; after the block, copy the file to standard output."""
    with tempfile.TemporaryDirectory(prefix="similia-") as folder:
        path = Path(folder, "stdout" + ending)
        yield path
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer, _BLOCK)
        sys.stdout.buffer.flush()


def _ending(path: Path) -> str:
    """Return the file ending, such as ".fasta.gz", that matches the contents of a file."""
    with path.open("rb") as file:
        head = file.read(6)
    if head.startswith(b"\x1f\x8b"):
        try:
            with gzip.open(path, "rb") as opened:
                return _kind(opened) + ".gz"
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise BadFile("standard input", "is a damaged or incomplete gzip file") from None
    with path.open("rb") as file:
        return _kind(file)


def _kind(file: Any) -> str:
    """Return the file ending, such as ".csv", that matches the first block of an uncompressed file."""
    head = file.read(_BLOCK)
    if not head:
        raise ValueError("standard input is empty")
    if head.startswith(b"PK\x03\x04"):  # an array in an archive is called NAME.npy
        return ".npz" if b".npy" in head[:100] else ".zip"
    for magic, ending in _MAGIC.items():
        if head.startswith(magic):
            return ending
    if b"\nM  END" in head or b"\n$$$$" in head:
        return ".sdf"
    lines = head.decode("utf-8-sig", errors="replace").splitlines()
    first = next((line for line in lines if line.strip()), "")
    if first.startswith((">", ";")):
        return ".fasta"
    if first.startswith("#") or first.lower().startswith(_TS_WORDS):
        return ".ts"
    if first.startswith("@"):
        return ".fastq"
    return ".tsv" if "\t" in first else ".csv"
