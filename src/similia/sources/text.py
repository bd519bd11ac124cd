"""Read text files of lines (``.txt``, ``.smi``), SDF, FASTA and FASTQ, a block at a time.

Tests compare these parsers with slow ones that read line by line (``tests/naive/streams.py``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from similia.core.errors import BadFile
from similia.core.text import short
from similia.objects.sequences import StringBatch
from similia.sources._blocks import (
    Blocks,
    Int,
    Records,
    count_lines,
    find_lines,
    gather,
    refuse_bombs,
    strings,
    whole_lines,
)
from similia.sources.reading import Reading

_END = "$$$$"  # last line of a molecule in SDF
_FIELD = re.compile(r"^>.*<([^<>]+)>")
_TITLES = {"smiles", "canonical_smiles", "smi"}  # first word of a .smi file whose first line is a title
_Parser = Callable[[bytes, Blocks], Records]


def _records(
    path: Any, cut: Callable[[bytes], int], parse: _Parser, empty: str, encoding: str = "utf-8"
) -> Iterator[Records]:
    """Yield the records ``parse(block, blocks)`` of each block; number them, unless they have headers.

    `cut` is the argument of `Blocks.split`; `empty` is the message for a file without records.
    """
    row = 0
    with Blocks(path, encoding) as blocks:
        for block in blocks.split(cut):
            records = parse(block, blocks)
            n = len(records.ends)
            if n:
                yield replace(records, rows=row + np.arange(n)) if records.headers is None else records
            row += n
    if not row:
        raise BadFile(path, empty)


# ---- lines
def line_records(path: Any, encoding: str = "utf-8") -> Iterator[Records]:
    """Yield the non-empty lines of a text file."""
    return _records(path, whole_lines, _lines, "holds no lines", encoding)


def _lines(block: bytes, at: Blocks) -> Records:
    buffer, starts, ends, behind, _ = find_lines(block, at)
    full = np.flatnonzero(ends > starts)
    batch = strings(*gather(buffer, starts[full], ends[full]))
    return Records((batch,), behind[full], at.line + full, position=at.position)


def smi_records(path: Any, encoding: str = "utf-8") -> Iterator[Records]:
    """Yield two columns of a ``.smi`` file: SMILES (the first word of each line) and names (the rest of the line)."""
    title, found = True, False  # title: whether the next line may be one
    for part in line_records(path, encoding):
        words = [(*text.split(None, 1), "", "")[:2] for text in part.columns[0].tolist()]
        first = int(title and words[0][0].lower() in _TITLES)
        title = False
        columns = tuple(StringBatch.from_list([word[j] for word in words[first:]]) for j in (0, 1))
        if len(words) > first:
            found = True
            yield part.take(slice(first, None), columns)
    if not found:
        raise BadFile(path, "holds a title but no molecules")


def smi_has_names(path: Any, encoding: str) -> bool:
    return bool(next(smi_records(path, encoding)).columns[1][0])


# ---- SDF
def sdf_records(path: Any, reading: Reading) -> Iterator[Records]:
    """Yield three columns of an SDF as text: molecules, labels (a data field), names (a data field or title lines)."""

    def parse(block: bytes, at: Blocks) -> Records:
        molecules, ends, begins = _molecules(block, at)
        fields = list(map(_fields, molecules))
        labels = [field.get(str(reading.label), "") for field in fields]
        if reading.names is None:
            names = list(map(_title, molecules))
        else:
            names = [field.get(str(reading.names), "") for field in fields]
        columns = tuple(map(StringBatch.from_list, (["\n".join(lines) for lines in molecules], labels, names)))
        return Records(columns, ends, begins, position=at.position)

    empty = f"holds no molecules, expected blocks that end in a line {_END}"
    return _records(path, _cut_sdf, parse, empty, reading.encoding)


def sdf_begin(path: Any, encoding: str) -> tuple[str, dict[str, str]]:
    """Return the title and the data fields of the first molecule of an SDF."""
    with Blocks(path, encoding) as blocks:
        block = next(blocks.split(_cut_sdf), b"")
        first = next(iter(_molecules(block, blocks)[0]), [])
        return _title(first), _fields(first)


def read_mol_blocks(texts: StringBatch, bad: Callable[[int, str], None]) -> Any:
    """Return the valid SDF molecules as graphs (None if there are none); call ``bad(i, why)`` for the others."""
    from similia.objects.graph_batch import Names, read_graph
    from similia.objects.graphs import join_parts
    from similia.objects.molecules import import_rdkit

    Chem, rdBase = import_rdkit()
    parts = []
    with rdBase.BlockLogs():
        for i, text in enumerate(texts):
            molecule = Chem.MolFromMolBlock(text)
            if molecule is None:
                title = str(text).split("\n", 1)[0]
                bad(i, f"the molecule that begins here ({short(title)}) cannot be read by RDKit")
            else:
                parts.append(read_graph(molecule, Names()))
    return join_parts(parts) if parts else None


def _cut_sdf(data: bytes) -> int:
    """Return how many of the first bytes of `data` are whole molecules."""
    end = data.rfind(_END.encode())
    while end > 0 and data[end - 1 : end] not in (b"\n", b"\r"):
        end = data.rfind(_END.encode(), 0, end)
    return data.find(b"\n", end) + 1 if end >= 0 else 0


def _molecules(block: bytes, at: Blocks) -> tuple[list[list[str]], Int, Int]:
    """Return, for each molecule of a block, its lines, the position of its end, and the number of its first line."""
    molecules: list[list[str]] = []
    ends, begins = list[int](), list[int]()
    position, line, lines = at.offset, at.line, list[str]()
    begin = line
    for raw in block.splitlines(keepends=True):
        position, line = position + len(raw), line + count_lines(raw)
        lines.append(raw.decode().rstrip("\r\n"))
        if lines[-1].startswith(_END) or (position == at.offset + len(block) and any(map(str.strip, lines))):
            molecules.append(lines[:-1] if lines[-1].startswith(_END) else lines)
            ends.append(position)
            begins.append(begin)
            lines, begin = [], line
    return molecules, np.array(ends, np.int64), np.array(begins, np.int64)


def _title(lines: list[str]) -> str:
    return lines[0].strip() if lines else ""


def _fields(lines: list[str]) -> dict[str, str]:
    """Return the data fields of a molecule as {name: value}; of a value with several lines, only the first."""
    return {found[1]: lines[i + 1].strip() for i, text in enumerate(lines[:-1]) if (found := _FIELD.match(text))}


# ---- FASTA and FASTQ
# Matches data that may be FASTA: blank lines and comments, then ">" or anything but a printable ASCII character.
_FASTA_BEGIN = re.compile(rb"(?:[\s\x1c-\x1f]+|;[^\r\n]*+)*+(?![!-:<=?-~])")
_BEFORE_INDENTED = re.compile(rb"\n(?=[\t\x0b\x0c\x1c-\x1f ]+>)")


def fasta_records(path: Any, encoding: str = "utf-8") -> Iterator[Records]:
    """Yield the sequences of a FASTA file, with their headers."""
    empty = "holds no sequences, expected lines '>name' followed by sequence lines"
    return _records(path, _cut_fasta, _fasta, empty, encoding)


def fastq_records(path: Any, encoding: str = "utf-8") -> Iterator[Records]:
    """Yield two columns of a FASTQ file, sequences and qualities, with their headers."""
    empty = "holds no records, expected '@name', sequence, '+', qualities"
    return _records(path, _cut_fastq, _fastq, empty, encoding)


def _headers(text: bytes, starts: Int, ends: Int) -> list[str]:
    """Return the lines of headers, each without its first character (``>`` or ``@``)."""
    return [text[start + 1 : end].decode() for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


def _cut_fasta(data: bytes) -> int:
    """Return how many of the first bytes of `data` are whole records."""
    if not _FASTA_BEGIN.match(data):
        return len(data)  # not FASTA: the parser raises before more is read
    end = data.rfind(b"\n>") + 1 or data.rfind(b"\r>") + 1
    if not end:
        for match in _BEFORE_INDENTED.finditer(data):
            end = match.end()
    return end


def _fasta(block: bytes, at: Blocks) -> Records:
    buffer, starts, ends, behind, text = find_lines(block, at, strip=True)
    full = np.flatnonzero(ends > starts)
    first = buffer[starts[full]]
    comments = first == ord(";")
    if comments.any():
        full, first = full[~comments], first[~comments]
    is_header = first == ord(">")
    if len(full) and not is_header[0]:
        raise BadFile(at.path, "expected '>name' before any sequence; is it FASTA?", at=f"line {at.line + full[0]}")
    heads, lines = full[is_header], full[~is_header]
    values, offsets = gather(buffer, starts[lines], ends[lines])
    first_lines = np.flatnonzero(is_header) - np.arange(len(heads))  # indices into `lines`
    batch = strings(values, np.append(offsets[first_lines], offsets[-1]))
    headers = [header.strip() for header in _headers(text, starts[heads], ends[heads])]
    record_ends = np.append(behind[heads[1:] - 1], behind[-1])[: len(heads)]
    return Records((batch,), record_ends, headers=headers, position=at.position)


def _cut_fastq(data: bytes) -> int:
    """Return how many of the first bytes of `data` are whole records of four lines each."""
    end = whole_lines(data)
    if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
        lines = data[:end].splitlines(keepends=True)
        return sum(map(len, lines[: len(lines) // 4 * 4]))
    for _ in range(data.count(b"\n", 0, end) % 4):
        end = data.rfind(b"\n", 0, end - 1) + 1
    return end


def _fastq(block: bytes, at: Blocks) -> Records:
    lines = find_lines(block, at)
    n = len(lines.starts)
    while n % 4 and lines.starts[n - 1] == lines.ends[n - 1]:  # an empty sequence is a blank line, too
        n -= 1
    whole = n - n % 4
    starts, ends, behind = (a[:whole].reshape(-1, 4) for a in lines[1:4])
    names, pluses = (lines.buffer.take(starts[:, j], mode="clip") for j in (0, 2))  # the last line may be empty
    marked = (names == ord("@")) & (pluses == ord("+"))
    sequences, qualities = (strings(*gather(lines.buffer, starts[:, j], ends[:, j])) for j in (1, 3))
    n_letters, n_qualities = np.diff(sequences.offsets), np.diff(qualities.offsets)
    bad = ~marked | (n_letters != n_qualities)
    if bad.any():
        i = int(bad.argmax())
        line, found = 4 * i, "expected '@name', sequence, '+', qualities; is it FASTQ?"
        if marked[i]:
            line, found = 4 * i + 3, f"{n_qualities[i]} qualities for {n_letters[i]} letters; truncated?"
        raise BadFile(at.path, found, at=f"line {at.line + line}")
    if n > whole:
        found = f"the last record has {n % 4} of 4 lines; is it truncated?"
        raise BadFile(at.path, found, at=f"line {at.line + whole}")
    headers = _headers(lines.text, starts[:, 0], ends[:, 0])
    return Records((sequences, qualities), behind[:, 3], headers=headers, position=at.position)


def read_fasta(path: str | os.PathLike[str], encoding: str = "utf-8") -> tuple[list[str], list[str]]:
    """Read the sequences of a FASTA file.

    Parameters
    ----------
    path : path
        Plain or gzip (``.gz``). A record is a line ``>name``, followed by any number of sequence lines, which are
        joined. Blank lines and lines that begin with ``;`` are skipped.
    encoding : str, default="utf-8"
        Encoding of the file.

    Returns
    -------
    names : list of str
        Each header without ``>``.
    sequences : list of str
        As written in the file; ``""`` for a record without a sequence.

    Raises
    ------
    ValueError
        If the file is empty, truncated or not a FASTA file. The message names the line.

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
    names, sequences = _as_lists(path, fasta_records(path, encoding))
    return names, sequences


def read_fastq(path: str | os.PathLike[str], encoding: str = "utf-8") -> tuple[list[str], list[str], list[str]]:
    """Read the sequences of a FASTQ file.

    Parameters
    ----------
    path : path
        Plain or gzip (``.gz``), with four lines per record: ``@name``, sequence, ``+``, qualities.
    encoding : str, default="utf-8"
        Encoding of the file.

    Returns
    -------
    names : list of str
        Each header without ``@``.
    sequences : list of str
        As written in the file.
    qualities : list of str
        As written in the file: one character per letter of the sequence.

    Raises
    ------
    ValueError
        If the file is empty, truncated or not a FASTQ file. The message names the line.

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
    names, sequences, qualities = _as_lists(path, fastq_records(path, encoding))
    return names, sequences, qualities


def _as_lists(path: Any, records: Iterator[Records]) -> list[list[str]]:
    """Return lists: the headers of all records, then the values of each column."""
    parts = list(refuse_bombs(path, records))
    columns = ([x for part in parts for x in part.columns[j].tolist()] for j in range(len(parts[0].columns)))
    return [[name for part in parts for name in part.headers or []], *columns]
