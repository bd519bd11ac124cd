"""Files with an object a line (``.txt``, ``.smi``), and molecules one after another (``.sdf``), a block at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from similia.core.text import _short
from similia.objects._strings import StringBatch
from similia.sources._blocks import Blocks, Records, count_lines, decode, whole_lines
from similia.sources._lines import find_lines, gather, strings
from similia.sources._skipped import Skips
from similia.sources.reading import Reading

_END = b"$$$$"  # of a molecule in SDF
_FIELD = re.compile(r"^>.*<([^<>]+)>")
_TITLES = {"smiles", "canonical_smiles", "smi"}  # how the first line of a .smi begins that holds names


def line_records(path: Any, offset: int = 0, line: int = 1, row: int = 0, encoding: str = "utf-8") -> Iterator[Records]:
    """Yield the lines of a text file that are not empty."""
    found = offset > 0
    with Blocks(path, offset, line, encoding) as blocks:
        for block in blocks.split(whole_lines):
            records = (_plain_lines(block, blocks, row) if block.isascii() else None) or _lines(block, blocks, row)
            row += len(records.ends)
            if len(records.ends):
                found = True
                yield records
    if not found:
        raise ValueError(f"{path} holds no lines")


def _plain_lines(block: bytes, at: Blocks, row: int) -> Records | None:
    found = find_lines(block)
    if found is None:
        return None
    full = np.flatnonzero(found.ends > found.starts)
    batch = strings(*gather(found.buffer, found.starts[full], found.ends[full]))
    behind = at.offset + np.append(found.starts, len(block))[full + 1]
    return Records((batch,), behind, at.line + full + 1, None, at.position, at.line + full, row + np.arange(len(full)))


def _lines(block: bytes, at: Blocks, row: int) -> Records:
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
        for block in blocks.split(_cut):
            records, row = _molecules(block, blocks, reading, skips, row)
            found |= row > 0
            if records is not None:
                yield records
    if not found:
        raise ValueError(f"{path} holds no molecules, expected blocks that end in a line {_END.decode()}")


def sdf_has_field(path: Any, encoding: str, name: str) -> bool:
    """Return whether the first molecule of an SDF has a field."""
    with Blocks(path, encoding=encoding) as blocks:
        block = next(blocks.split(_cut), b"")
        return any(name in _fields(lines) for lines, *_ in _texts(block, blocks)[:1])


def _cut(data: bytes) -> int:
    """Return the length of the whole molecules that `data` begins with."""
    end = data.rfind(_END)
    while end > 0 and data[end - 1 : end] not in (b"\n", b"\r"):
        end = data.rfind(_END, 0, end)
    return data.find(b"\n", end) + 1 if end >= 0 else 0


def _texts(block: bytes, at: Blocks) -> list[tuple[list[str], int, int, int]]:
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
    from similia.objects._graph_forms import Names, read_graph
    from similia.objects.graphs import join_parts
    from similia.objects.molecules import import_rdkit

    Chem, rdBase = import_rdkit()
    parts, kept = [], list[tuple[str, str, int, int, int, int]]()
    with rdBase.BlockLogs():
        for lines, begin, behind, position in _texts(block, at):
            row += 1
            molecule = Chem.MolFromMolBlock("\n".join(lines))
            if molecule is None:
                why = f"the molecule that begins here ({_short(lines[0] if lines else '')}) cannot be read by RDKit"
                if skips is None:
                    raise ValueError(
                        f"{at.path}, line {begin}: {why}; correct it or leave it out (on_error='skip' or "
                        "--on-error skip)"
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
