"""Strings from files: FASTA, FASTQ, and columns of CSV, TSV and Parquet tables.

Text files may be compressed with gzip (a name that ends in ``.gz``). One pass, a list of str each.
"""

from __future__ import annotations

import csv
import gzip
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from similia.objects._sequences import _short

_DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}


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
    >>> from similia.objects import read_fasta
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "two.fasta")
    ...     _ = path.write_text(">first\\nACGT\\nAC\\n>second\\nGG\\n")
    ...     read_fasta(path)
    (['first', 'second'], ['ACGTAC', 'GG'])
    """
    names: list[str] = []
    lines_of: list[list[str]] = []
    with _text(path) as file:
        for number, line in enumerate(file, 1):
            line = line.strip()
            if line.startswith(">"):
                names.append(line[1:].strip())
                lines_of.append([])
            elif line and not line.startswith(";"):
                if not names:
                    raise ValueError(f"{path}, line {number}: expected '>name' before any sequence; is it FASTA?")
                lines_of[-1].append(line)
    if not names:
        raise ValueError(f"{path} holds no sequences, expected lines '>name' followed by sequence lines")
    return names, ["".join(lines) for lines in lines_of]


def read_fastq(path: str | os.PathLike[str]) -> tuple[list[str], list[str], list[str]]:
    """Read the sequences of a FASTQ file.

    Parameters
    ----------
    path : path
        Plain or gzip (``.gz``), four lines a record: ``@name``, sequence, ``+``, qualities.

    Returns
    -------
    names, sequences, qualities : list of str
        Qualities are the characters of the file, as many as the sequence has letters.

    Raises
    ------
    ValueError
        If the file is empty, truncated or of another kind; the sentence names the line.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from similia.objects import read_fastq
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "one.fastq")
    ...     _ = path.write_text("@read\\nACGT\\n+\\nIIII\\n")
    ...     read_fastq(path)
    (['read'], ['ACGT'], ['IIII'])
    """
    names, sequences, qualities = [], [], []
    with _text(path) as file:
        lines = [line.rstrip("\r\n") for line in file]
    while len(lines) % 4 and not lines[-1]:  # a read may be empty, so blank lines count inside a record
        lines.pop()
    for start in range(0, len(lines), 4):
        record = lines[start : start + 4]
        if len(record) < 4:
            raise ValueError(
                f"{path}, line {start + 1}: the last record has {len(record)} of 4 lines; is it truncated?"
            )
        name, sequence, plus, quality = record
        if not name.startswith("@") or not plus.startswith("+"):
            raise ValueError(f"{path}, line {start + 1}: expected '@name', sequence, '+', qualities; is it FASTQ?")
        if len(sequence) != len(quality):
            raise ValueError(
                f"{path}, line {start + 4}: {len(quality)} qualities for {len(sequence)} letters; truncated?"
            )
        names.append(name[1:])
        sequences.append(sequence)
        qualities.append(quality)
    if not names:
        raise ValueError(f"{path} holds no records, expected '@name', sequence, '+', qualities")
    return names, sequences, qualities


def read_columns(
    path: str | os.PathLike[str], *columns: str | int, delimiter: str | None = None, header: bool = True
) -> tuple[list[Any], ...]:
    r"""Read columns of a CSV, TSV or Parquet table.

    Parameters
    ----------
    path : path
        ``.csv``, ``.tsv``, ``.tab`` (also with ``.gz``) or ``.parquet``. Commas may be quoted as in
        RFC 4180; a table with tabs has no quotes.
    *columns : str or int
        Names (from the first line) or positions from 0, at least one.
    delimiter : str, optional
        For text files with another ending.
    header : bool
        Whether the first line of a text file holds the names.

    Returns
    -------
    tuple of lists, one for each of `columns`
        Of str from text files; as stored (missing values as None) from Parquet.

    Raises
    ------
    ValueError
        If a column does not exist, a line is short, or the file is truncated or of another kind.
    TypeError
        If a column is neither a name nor a position, such as a list of names.
    ImportError
        If the file is Parquet and pyarrow is not installed.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from similia.objects import read_columns
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "table.csv")
    ...     _ = path.write_text("text,label\n\"one, two\",1\nthree,2\n")
    ...     read_columns(path, "text", "label")
    (['one, two', 'three'], ['1', '2'])
    """
    if not columns:
        raise ValueError("read_columns needs the name or position of at least one column")
    for column in columns:
        if not isinstance(column, str | int):
            raise TypeError(
                f"a column must be a name or a position, got {type(column).__name__} ({_short(column)}); "
                "write read_columns(path, 'a', 'b')"
            )
    if Path(path).suffix == ".parquet":
        return _parquet(path, columns)
    if delimiter is None:
        suffixes = [suffix for suffix in Path(path).suffixes if suffix in _DELIMITERS]
        if not suffixes:
            raise ValueError(f"{path} ends neither in .csv, .tsv, .tab nor .parquet; give delimiter=',' or '\\t'")
        delimiter = _DELIMITERS[suffixes[-1]]
    with _text(path, newline="") as file, _long_fields():
        return _delimited(path, file, columns, delimiter, header)


def _delimited(
    path: Any, file: TextIO, columns: tuple[str | int, ...], delimiter: str, header: bool
) -> tuple[list[str], ...]:
    quoting = csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL
    reader = csv.reader(file, delimiter=delimiter, quoting=quoting, strict=True)  # type: ignore[arg-type]
    try:
        names = next(reader, None) if header else None
        positions = [_position(path, column, names) for column in columns]
        found: tuple[list[str], ...] = tuple([] for _ in columns)
        for row in filter(None, reader):  # blank lines are not rows
            for values, position in zip(found, positions, strict=True):
                if not -len(row) <= position < len(row):
                    raise ValueError(
                        f"{path}, line {reader.line_num}: {len(row)} fields, expected more than {position}; "
                        "is it truncated?"
                    )
                values.append(row[position])
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: {error}; is it truncated?") from None
    if not found[0]:
        raise ValueError(f"{path} holds no rows")
    return found


def _position(path: Any, column: str | int, names: list[str] | None) -> int:
    if isinstance(column, int):
        return column
    if names is None:
        raise ValueError(f"{path} has no names of columns (header=False); give positions instead of {column!r}")
    if column not in names:
        raise ValueError(f"{path} has no column {column!r}; it has {', '.join(map(repr, names))}")
    return names.index(column)


def _parquet(path: Any, columns: tuple[str | int, ...]) -> tuple[list[Any], ...]:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise ImportError(f"reading {path} needs pyarrow: pip install pyarrow") from None
    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            for column in columns:
                if isinstance(column, int) and not -len(names) <= column < len(names):
                    raise ValueError(f"{path} has {len(names)} columns, none at position {column}")
            wanted = [names[_position(path, column, names)] for column in columns]
            table = file.read(columns=wanted)
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as error:  # Arrow reports a damaged footer as OSError
        raise ValueError(f"{path} is not a whole Parquet file: {error}") from None
    return tuple(table.column(name).to_pylist() for name in wanted)


@contextmanager
def _text(path: Any, newline: str | None = None) -> Iterator[TextIO]:
    """Open a plain or gzip text file; a file that is cut or not text raises ValueError."""
    opener: Any = gzip.open if Path(path).suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline=newline) as file:
            yield file
    except (EOFError, gzip.BadGzipFile, zlib.error, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is truncated or not a UTF-8 text file: {error}") from None


@contextmanager
def _long_fields() -> Iterator[None]:
    """Let fields of the csv module be as long as a chromosome (the limit is global, so it is put back)."""
    before = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(before)
