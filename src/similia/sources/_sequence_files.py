"""FASTA and FASTQ files to records, a block of whole records at a time.

Each format has one parser by the letter, which takes any text and says what is wrong with it, and one for blocks of
plain ASCII without oddities, which finds lines by numpy and gives up (None) on all others. Tests hold them equal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from similia.objects._strings import StringBatch
from similia.sources._blocks import Blocks, Records, decode, whole_lines
from similia.sources._lines import SPACE, Int, find_lines, gather

# Blank lines and comments, by the rules of str.strip, and then no printable ASCII letter other than ">".
_FASTA_BEGIN = re.compile(rb"(?:[\s\x1c-\x1f]+|;[^\r\n]*+)*+(?![!-:<=?-~])")
_BEFORE_INDENTED = re.compile(rb"\n(?=[\t\x0b\x0c\x1c-\x1f ]+>)")


def fasta_records(path: Any, offset: int = 0, line: int = 1) -> Iterator[Records]:
    """Yield the records of a FASTA file; `offset` and `line` are where one of them begins."""
    empty = "holds no sequences, expected lines '>name' followed by sequence lines"
    return _records(Blocks(path, offset, line), _cut_fasta, plain_fasta, any_fasta, empty)


def fastq_records(path: Any, offset: int = 0, line: int = 1) -> Iterator[Records]:
    """Yield the records of a FASTQ file (sequences, qualities); `offset` and `line` are where one of them begins."""
    empty = "holds no records, expected '@name', sequence, '+', qualities"
    return _records(Blocks(path, offset, line), _cut_fastq, plain_fastq, any_fastq, empty)


def _records(
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
        raise ValueError(f"{blocks.path} {empty}")


def _texts(block: bytes, starts: Int, ends: Int) -> list[str]:
    """Return headers, each without its first letter."""
    return [block[start + 1 : end].decode() for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


# --- FASTA ------------------------------------------------------------------------------------


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
                raise ValueError(f"{at.path}, line {number}: expected '>name' before any sequence; is it FASTA?")
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
    headers = _texts(block, starts[heads], ends[heads])
    behind = at.offset + np.append(starts[heads[1:]], len(block))
    lines = at.line + np.append(full[heads[1:]], n_lines)
    return Records((batch,), behind, lines, [header.strip() for header in headers], at.position)


# --- FASTQ ------------------------------------------------------------------------------------


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
            raise ValueError(f"{path}, line {number}: the last record has {len(record)} of 4 lines; is it truncated?")
        name, sequence, plus, quality = record
        if not name.startswith("@") or not plus.startswith("+"):
            raise ValueError(f"{path}, line {number}: expected '@name', sequence, '+', qualities; is it FASTQ?")
        if len(sequence) != len(quality):
            raise ValueError(
                f"{path}, line {number + 3}: {len(quality)} qualities for {len(sequence)} letters; truncated?"
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
    headers = _texts(block, starts[:, names], ends[:, names])
    behind = at.offset + np.append(starts[1:, names], len(block))
    return Records(columns, behind, _every_fourth(at, len(starts)), headers, at.position)


def _every_fourth(at: Blocks, n: int) -> Int:
    return at.line + 4 * np.arange(1, n + 1, dtype=np.int64)
