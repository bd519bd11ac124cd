"""Slow twins of the stream readers: whole files in text mode, a line at a time."""

from __future__ import annotations

import csv
import gzip


def text_file(path, newline=None):
    opener = gzip.open if path.suffix == ".gz" else open
    return opener(path, "rt", encoding="utf-8-sig", newline=newline)


def fasta(path):
    """Return (header, sequence) of each record."""
    records = []
    with text_file(path) as file:
        for line in map(str.strip, file):
            if line.startswith(">"):
                records.append((line[1:].strip(), ""))
            elif line and not line.startswith(";"):
                header, sequence = records.pop()  # IndexError: no header before
                letters = "".join(" " if c.isspace() and c.isascii() else c for c in line)
                words = letters.split(" ")
                assert len({word.isdecimal() for word in words if word}) == 1  # no position beside letters
                records.append((header, sequence + "".join(words)))
    return records


def fastq(path):
    """Return (header, sequence, qualities) of each record."""
    with text_file(path) as file:
        lines = [line.rstrip("\n") for line in file]
    while len(lines) % 4 and not lines[-1]:
        lines.pop()
    records = [lines[i : i + 4] for i in range(0, len(lines), 4)]
    for name, sequence, plus, qualities in records:
        assert name[0] == "@"
        assert plus[0] == "+"
        assert len(sequence) == len(qualities)
    return [(name[1:], sequence, qualities) for name, sequence, _, qualities in records]


def table(path, column):
    """Return the fields of a column that is given by name."""
    tabs = ".tsv" in path.name
    with text_file(path, newline="") as file:
        quoting = csv.QUOTE_NONE if tabs else csv.QUOTE_MINIMAL
        rows = [row for row in csv.reader(file, delimiter="\t" if tabs else ",", quoting=quoting, strict=True) if row]
    position = rows[0].index(column)
    if {len(row) for row in rows} != {len(rows[0])}:
        raise ValueError("ragged")
    return [row[position] for row in rows[1:]]
