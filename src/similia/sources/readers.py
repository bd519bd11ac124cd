"""Strings from files: FASTA, FASTQ, and columns of CSV, TSV and Parquet tables.

Text files may be compressed with gzip (a name that ends in ``.gz``). One pass, a list of str each; the parsers are
those of `similia.sources.streams`, which reads files that do not fit into memory.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from similia.core.config import settings
from similia.core.text import _short
from similia.core.validation import as_path
from similia.sources._blocks import Records, one_sentence
from similia.sources._delimited_streams import Table, delimiter_of
from similia.sources._parquet_streams import parquet_column, parquet_file
from similia.sources._sequence_files import fasta_records, fastq_records
from similia.sources._skipped import Skips
from similia.sources.reading import Reading, typed

_BOMB = 100  # times that a gzip file may grow: text grows tenfold, deflate at most a thousandfold


def read_fasta(path: str | os.PathLike[str]) -> tuple[list[str], list[str]]:
    """Read the sequences of a FASTA file.

    Parameters
    ----------
    path : path
        Plain or gzip (``.gz``). A record is a line ``>name`` and any number of lines of sequence,
        which are joined; blank lines and lines that begin with ``;`` are skipped.

    Returns
    -------
    names : list of str
        Each header without ``>``.
    sequences : list of str
        In the letters of the file; a record without a sequence gives ``""``.

    Raises
    ------
    ValueError
        If the file is empty, truncated or of another kind; the sentence names the line.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from similia.sources import read_fasta
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "two.fasta")
    ...     _ = path.write_text(">first\\nACGT\\nAC\\n>second\\nGG\\n")
    ...     read_fasta(path)
    (['first', 'second'], ['ACGTAC', 'GG'])
    """
    names: list[str] = []
    sequences: list[str] = []
    for records in _whole(path, fasta_records(path)):
        names += records.headers or []
        sequences += records.columns[0].tolist()
    return names, sequences


def read_fastq(path: str | os.PathLike[str]) -> tuple[list[str], list[str], list[str]]:
    """Read the sequences of a FASTQ file.

    Parameters
    ----------
    path : path
        Plain or gzip (``.gz``), four lines a record: ``@name``, sequence, ``+``, qualities.

    Returns
    -------
    names : list of str
        Each header without ``@``.
    sequences : list of str
        In the letters of the file.
    qualities : list of str
        The characters of the file, as many as the sequence has letters.

    Raises
    ------
    ValueError
        If the file is empty, truncated or of another kind; the sentence names the line.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from similia.sources import read_fastq
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "one.fastq")
    ...     _ = path.write_text("@read\\nACGT\\n+\\nIIII\\n")
    ...     read_fastq(path)
    (['read'], ['ACGT'], ['IIII'])
    """
    names: list[str] = []
    found: tuple[list[str], list[str]] = ([], [])
    for records in _whole(path, fastq_records(path)):
        names += records.headers or []
        for values, column in zip(found, records.columns, strict=True):
            values += column.tolist()
    return names, *found


def read_columns(
    path: str | os.PathLike[str],
    *columns: str | int,
    sep: str | None = None,
    encoding: str = "utf-8",
    header: bool = True,
    on_error: str = "stop",
    skipped: str | os.PathLike[str] | None = None,
) -> tuple[list[Any], ...]:
    r"""Read columns of a CSV, TSV or Parquet table.

    Parameters
    ----------
    path : path
        ``.csv``, ``.tsv``, ``.tab`` (also with ``.gz``) or ``.parquet``. Commas may be quoted as in
        RFC 4180; a table with tabs has no quotes.
    *columns : str or int
        Names (from the first line) or positions from 0, at least one.
    sep : str, optional
        What separates the cells of text files: a character, "tab" or "space". By the ending if not given.
    encoding : str, default="utf-8"
        Of text files.
    header : bool, default=True
        Whether the first line of a text file holds the names.
    on_error : {"stop", "skip"}, default="stop"
        With "skip", lines with more or fewer cells than the first are left out.
    skipped : path, optional
        A CSV file that lists them.

    Returns
    -------
    tuple of lists, one for each of `columns`
        From text files, int or float where all cells of a column are finite numbers, unless one begins with a 0 as
        007 does; otherwise str. From Parquet as stored, with missing values as None.

    Raises
    ------
    ValueError
        If a column does not exist, a line of text has more or fewer cells than the first one, or the file is
        truncated or of another kind; the sentence names the line.
    TypeError
        If a column is neither a name nor a position, such as a list of names.
    ImportError
        If the file is Parquet and pyarrow is not installed.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from similia.sources import read_columns
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "table.csv")
    ...     _ = path.write_text("text,label\n\"one, two\",1\nthree,2\n")
    ...     read_columns(path, "text", "label")
    (['one, two', 'three'], [1, 2])
    """
    if not columns:
        raise ValueError("read_columns needs the name or position of at least one column")
    for column in columns:
        if not isinstance(column, str | int):
            raise TypeError(
                f"a column must be a name or a position, got {type(column).__name__} ({_short(column)}); "
                "write read_columns(path, 'a', 'b')"
            )
    if as_path(path).suffix.lower() == ".parquet":
        return _parquet(path, columns)
    found: tuple[list[Any], ...] = tuple([] for _ in columns)
    reading = Reading(sep=sep, encoding=encoding, header=header, on_error=on_error)
    skips = Skips(None if skipped is None else Path(skipped)) if on_error == "skip" else None
    if skips is not None:
        skips.begin(0)
    table = Table(path, reading.sep or delimiter_of(path), header, encoding, skips)
    for records in _whole(path, table.records([table.position_of(column) for column in columns])):
        for values, column in zip(found, records.columns, strict=True):
            values += column.tolist()
    return tuple(map(typed, found))


def _parquet(path: Any, columns: tuple[str | int, ...]) -> tuple[list[Any], ...]:
    with parquet_file(path) as file:
        names = file.schema_arrow.names
        wanted = [parquet_column(path, column, names) for column in columns]
        table = file.read(columns=wanted)
        return tuple(table.column(name).to_pylist() for name in wanted)


def _whole(path: Any, records: Iterator[Records]) -> Iterator[Records]:
    """Yield records for a list of them all, which a small file that unpacks to a huge one must not fill."""
    most = settings().max_memory
    for part in records:
        if part.position and part.ends[-1] > max(most, _BOMB * part.position):
            raise ValueError(
                f"{path} unpacks to more than max_memory ({most} bytes) and {_BOMB} times its size, as a bomb does; "
                "raise similia.config(max_memory=...) or read it with similia.sources.open_stream"
            )
        yield part


@contextmanager
def _text(path: Any) -> Iterator[TextIO]:
    """Open a plain or gzip text file; a file that is cut or not text raises ValueError."""
    opener: Any = gzip.open if as_path(path).suffix.lower() == ".gz" else open
    with one_sentence(path), opener(path, "rt", encoding="utf-8-sig") as file:
        yield file
