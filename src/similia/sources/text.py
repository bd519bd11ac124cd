"""Text files of one record after another: lines (``.txt``, ``.smi``), SDF, FASTA and FASTQ, a block at a time.

FASTA and FASTQ have two parsers each: one goes line by line, takes any text and says what is wrong with it; the other
finds the lines of plain ASCII blocks by numpy and returns None for all other blocks. Tests hold them equal.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from similia.core.errors import BadFile
from similia.core.text import short
from similia.objects.strings import StringBatch
from similia.sources._blocks import (
    SPACE,
    Blocks,
    Int,
    Records,
    count_lines,
    decode,
    find_lines,
    gather,
    not_a_bomb,
    strings,
    whole_lines,
)
from similia.sources.reading import Reading, Skips

_END = b"$$$$"  # of a molecule in SDF
_FIELD = re.compile(r"^>.*<([^<>]+)>")
_TITLES = {"smiles", "canonical_smiles", "smi"}  # how the first line of a .smi begins that holds names


def line_records(path: Any, offset: int = 0, line: int = 1, row: int = 0, encoding: str = "utf-8") -> Iterator[Records]:
    """Yield the lines of a text file that are not empty."""
    found = offset > 0
    with Blocks(path, offset, line, encoding) as blocks:
        for block in blocks.split(whole_lines):
            records = (_plain_lines(block, blocks, row) if block.isascii() else None) or _any_lines(block, blocks, row)
            row += len(records.ends)
            if len(records.ends):
                found = True
                yield records
    if not found:
        raise BadFile(path, "holds no lines")


def _plain_lines(block: bytes, at: Blocks, row: int) -> Records | None:
    found = find_lines(block)
    if found is None:
        return None
    full = np.flatnonzero(found.ends > found.starts)
    batch = strings(*gather(found.buffer, found.starts[full], found.ends[full]))
    behind = at.offset + np.append(found.starts, len(block))[full + 1]
    return Records((batch,), behind, at.line + full + 1, None, at.position, at.line + full, row + np.arange(len(full)))


def _any_lines(block: bytes, at: Blocks, row: int) -> Records:
    raws = block.splitlines(keepends=True)
    texts = [decode(raw, at.path, at.line + i).rstrip("\r\n") for i, raw in enumerate(raws)]
    full = np.array([i for i, text in enumerate(texts) if text], np.int64)
    ends = at.offset + np.cumsum([len(raw) for raw in raws], dtype=np.int64)
    batch = StringBatch.from_list([texts[i] for i in full.tolist()])
    rows = row + np.arange(len(full))
    return Records((batch,), ends[full], at.line + full + 1, None, at.position, at.line + full, rows)


# --- SMILES with names ------------------------------------------------------------------------


def smi_records(path: Any, offset: int = 0, line: int = 1, row: int = 0, encoding: str = "utf-8") -> Iterator[Records]:
    """Yield two columns of a file of SMILES: the first word of each line, and the rest, which names the molecule."""
    for part in line_records(path, offset, line, row, encoding):
        words = [(*text.split(None, 1), "", "")[:2] for text in part.columns[0].tolist()]
        title = offset == 0 and part.begins is not None and part.rows is not None and part.rows[0] == 0
        first = int(title and words[0][0].lower() in _TITLES)  # a line of titles
        columns = tuple(StringBatch.from_list([word[j] for word in words[first:]]) for j in (0, 1))
        if len(words) > first:
            arrays = (None if a is None else a[first:] for a in (part.lines, part.begins, part.rows))
            lines, begins, rows = arrays
            yield Records(columns, part.ends[first:], lines, None, part.position, begins, rows)


def smi_has_names(path: Any, encoding: str) -> bool:
    """Return whether the first molecule of a file of SMILES has a name."""
    return bool(next(smi_records(path, encoding=encoding)).columns[1][0])


# --- SDF --------------------------------------------------------------------------------------


def sdf_records(
    path: Any, reading: Reading, skips: Skips | None = None, offset: int = 0, line: int = 1, row: int = 0
) -> Iterator[Records]:
    """Yield the molecules of an SDF as graphs, their labels, and their names.

    Labels are the values of a field; names are those of another one, or the titles.
    """
    found = offset > 0
    with Blocks(path, offset, line, reading.encoding) as blocks:
        for block in blocks.split(_cut_sdf):
            records, row = _molecules(block, blocks, reading, skips, row)
            found |= row > 0
            if records is not None:
                yield records
    if not found:
        raise BadFile(path, f"holds no molecules, expected blocks that end in a line {_END.decode()}")


def sdf_has_field(path: Any, encoding: str, name: str) -> bool:
    """Return whether the first molecule of an SDF has a field."""
    with Blocks(path, encoding=encoding) as blocks:
        block = next(blocks.split(_cut_sdf), b"")
        return any(name in _fields(lines) for lines, *_ in _molecule_texts(block, blocks)[:1])


def _cut_sdf(data: bytes) -> int:
    """Return the length of the whole molecules that `data` begins with."""
    end = data.rfind(_END)
    while end > 0 and data[end - 1 : end] not in (b"\n", b"\r"):
        end = data.rfind(_END, 0, end)
    return data.find(b"\n", end) + 1 if end >= 0 else 0


def _molecule_texts(block: bytes, at: Blocks) -> list[tuple[list[str], int, int, int]]:
    """Return the lines of each molecule, the line where it begins, and the line and the position behind it."""
    molecules: list[tuple[list[str], int, int, int]] = []
    position, line, lines = at.offset, at.line, list[str]()
    begin = line
    for raw in block.splitlines(keepends=True):
        text = decode(raw, at.path, line).rstrip("\r\n")
        position, line = position + len(raw), line + count_lines(raw)
        lines.append(text)
        if text.startswith(_END.decode()):
            molecules.append((lines[:-1], begin, line, position))
            lines, begin = [], line
    if any(map(str.strip, lines)):
        molecules.append((lines, begin, line, position))
    return molecules


def _molecules(block: bytes, at: Blocks, reading: Reading, skips: Skips | None, row: int) -> tuple[Records | None, int]:
    from similia.objects.graph_forms import Names, read_graph
    from similia.objects.graphs import join_parts
    from similia.objects.molecules import import_rdkit

    Chem, rdBase = import_rdkit()
    parts, kept = [], list[tuple[str, str, int, int, int, int]]()
    with rdBase.BlockLogs():
        for lines, begin, behind, position in _molecule_texts(block, at):
            row += 1
            molecule = Chem.MolFromMolBlock("\n".join(lines))
            if molecule is None:
                why = f"the molecule that begins here ({short(lines[0] if lines else '')}) cannot be read by RDKit"
                if skips is None:
                    raise BadFile(
                        at.path,
                        f"{why}; correct it or leave it out (on_error='skip' or --on-error skip)",
                        at=f"line {begin}",
                    )
                skips.add(begin, why)
                continue
            fields = _fields(lines)
            name = lines[0].strip() if reading.names is None else fields.get(str(reading.names), "")
            parts.append(read_graph(molecule, Names()))
            kept.append((fields.get(str(reading.label), ""), name, position, behind, begin, row - 1))
    if not kept:
        return None, row
    labels, names, *places = zip(*kept, strict=True)
    ends, behinds, begins, rows = (np.array(place, np.int64) for place in places)
    columns = join_parts(parts), StringBatch.from_list(list(labels)), StringBatch.from_list(list(names))
    return Records(columns, ends, behinds, None, at.position, begins, rows), row


def _fields(lines: list[str]) -> dict[str, str]:
    """Return the data fields of a molecule: the first line of each value."""
    return {found[1]: lines[i + 1].strip() for i, text in enumerate(lines[:-1]) if (found := _FIELD.match(text))}


# Blank lines and comments, by the rules of str.strip, and then no printable ASCII letter other than ">".
_FASTA_BEGIN = re.compile(rb"(?:[\s\x1c-\x1f]+|;[^\r\n]*+)*+(?![!-:<=?-~])")


_BEFORE_INDENTED = re.compile(rb"\n(?=[\t\x0b\x0c\x1c-\x1f ]+>)")


def fasta_records(path: Any, offset: int = 0, line: int = 1) -> Iterator[Records]:
    """Yield the records of a FASTA file; `offset` and `line` are where one of them begins."""
    empty = "holds no sequences, expected lines '>name' followed by sequence lines"
    return _sequence_records(Blocks(path, offset, line), _cut_fasta, plain_fasta, any_fasta, empty)


def fastq_records(path: Any, offset: int = 0, line: int = 1) -> Iterator[Records]:
    """Yield the records of a FASTQ file (sequences, qualities); `offset` and `line` are where one of them begins."""
    empty = "holds no records, expected '@name', sequence, '+', qualities"
    return _sequence_records(Blocks(path, offset, line), _cut_fastq, plain_fastq, any_fastq, empty)


def _sequence_records(
    blocks: Blocks, cut: Callable[[bytes], int], plain: Callable, general: Callable, empty: str
) -> Iterator[Records]:
    found = blocks.offset > 0
    with blocks:
        for block in blocks.split(cut):
            records = (plain(block, blocks) if block.isascii() else None) or general(block, blocks)
            if len(records.ends):
                found = True
                yield records
    if not found:
        raise BadFile(blocks.path, empty)


def _headers(block: bytes, starts: Int, ends: Int) -> list[str]:
    """Return headers, each without its first letter."""
    return [block[start + 1 : end].decode() for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


def _cut_fasta(data: bytes) -> int:
    if not _FASTA_BEGIN.match(data):
        return len(data)  # no FASTA: the parser says so before more is read
    end = data.rfind(b"\n>") + 1 or data.rfind(b"\r>") + 1
    if not end:
        for match in _BEFORE_INDENTED.finditer(data):
            end = match.end()
    return end


def any_fasta(block: bytes, at: Blocks) -> Records:
    """Return the records of a block, line by line."""
    headers: list[str] = []
    sequences: list[list[str]] = []
    begins: list[int] = []
    lines: list[int] = []
    position, number = at.offset, at.line
    for raw in block.splitlines(keepends=True):
        text = decode(raw, at.path, number).strip()
        if text.startswith(">"):
            begins.append(position)
            lines.append(number)
            headers.append(text[1:].strip())
            sequences.append([])
        elif text and not text.startswith(";"):
            if not headers:
                raise BadFile(at.path, "expected '>name' before any sequence; is it FASTA?", at=f"line {number}")
            sequences[-1].append(text)
        position, number = position + len(raw), number + 1
    n = len(headers)
    batch = StringBatch.from_list(["".join(parts) for parts in sequences])
    ends, after = [*begins[1:], position][:n], [*lines[1:], number][:n]
    return Records((batch,), np.array(ends, np.int64), np.array(after, np.int64), headers, at.position)


def plain_fasta(block: bytes, at: Blocks) -> Records | None:
    """Return the records of an ASCII block without spaces around lines, or None."""
    found = find_lines(block)
    if found is None:
        return None
    buffer, starts, ends = found
    n_lines, full = len(starts), np.flatnonzero(ends > starts)
    starts, ends = starts[full], ends[full]
    first = buffer[starts]
    if SPACE[first].any() or SPACE[buffer[ends - 1]].any():
        return None
    header, sequence = first == ord(">"), (first != ord(">")) & (first != ord(";"))
    heads = np.flatnonzero(header)
    if not len(heads) or sequence[: heads[0]].any():
        return None
    values, offsets = gather(buffer, starts[sequence], ends[sequence])
    batch = StringBatch(values, np.append(offsets[np.cumsum(sequence)[heads]], offsets[-1]))
    headers = _headers(block, starts[heads], ends[heads])
    behind = at.offset + np.append(starts[heads[1:]], len(block))
    lines = at.line + np.append(full[heads[1:]], n_lines)
    return Records((batch,), behind, lines, [header.strip() for header in headers], at.position)


def _cut_fastq(data: bytes) -> int:
    end = whole_lines(data)
    if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
        lines = data[:end].splitlines(keepends=True)
        return sum(map(len, lines[: len(lines) // 4 * 4]))
    for _ in range(data.count(b"\n", 0, end) % 4):
        end = data.rfind(b"\n", 0, end - 1) + 1
    return end


def any_fastq(block: bytes, at: Blocks) -> Records:
    """Return the records of a block, line by line."""
    path = at.path
    raws = block.splitlines(keepends=True)
    lines = [decode(raw, path, at.line + i).rstrip("\r\n") for i, raw in enumerate(raws)]
    while len(lines) % 4 and not lines[-1]:  # a read may be empty, so blank lines count inside a record
        lines.pop()
    for start in range(0, len(lines), 4):
        record, number = lines[start : start + 4], at.line + start
        if len(record) < 4:
            raise BadFile(path, f"the last record has {len(record)} of 4 lines; is it truncated?", at=f"line {number}")
        name, sequence, plus, quality = record
        if not name.startswith("@") or not plus.startswith("+"):
            raise BadFile(path, "expected '@name', sequence, '+', qualities; is it FASTQ?", at=f"line {number}")
        if len(sequence) != len(quality):
            raise BadFile(
                path, f"{len(quality)} qualities for {len(sequence)} letters; truncated?", at=f"line {number + 3}"
            )
    n = len(lines) // 4
    ends = at.offset + np.cumsum([len(raw) for raw in raws[: 4 * n]], dtype=np.int64)[3::4]
    columns = (StringBatch.from_list(lines[1::4]), StringBatch.from_list(lines[3::4]))
    return Records(columns, ends, _every_fourth(at, n), [name[1:] for name in lines[::4]], at.position)


def plain_fastq(block: bytes, at: Blocks) -> Records | None:
    """Return the records of an ASCII block of whole records, or None."""
    found = find_lines(block)
    if found is None or len(found.starts) % 4:
        return None
    buffer, starts, ends = found.buffer, found.starts.reshape(-1, 4), found.ends.reshape(-1, 4)
    lengths = ends - starts
    names, sequences, pluses, qualities = range(4)
    if (
        not lengths[:, [names, pluses]].all()
        or (buffer[starts[:, names]] != ord("@")).any()
        or (buffer[starts[:, pluses]] != ord("+")).any()
        or (lengths[:, sequences] != lengths[:, qualities]).any()
    ):
        return None
    columns = tuple(StringBatch(*gather(buffer, starts[:, j], ends[:, j])) for j in (sequences, qualities))
    headers = _headers(block, starts[:, names], ends[:, names])
    behind = at.offset + np.append(starts[1:, names], len(block))
    return Records(columns, behind, _every_fourth(at, len(starts)), headers, at.position)


def _every_fourth(at: Blocks, n: int) -> Int:
    return at.line + 4 * np.arange(1, n + 1, dtype=np.int64)


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
        If the file is empty, truncated or of another kind. The message names the line.

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
    for records in not_a_bomb(path, fasta_records(path)):
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
        If the file is empty, truncated or of another kind. The message names the line.

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
    for records in not_a_bomb(path, fastq_records(path)):
        names += records.headers or []
        for values, column in zip(found, records.columns, strict=True):
            values += column.tolist()
    return names, *found
