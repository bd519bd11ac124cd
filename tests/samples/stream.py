"""Files of every format that streams read, written for tests."""

from __future__ import annotations

import gzip

import pyarrow as pa
from pyarrow import parquet

from similia.sources import read_columns, read_fasta, read_fastq

WORDS = ["ACGT", "", "GG", "a b", "ACGTACGTAC", "T", "é", "AC", "C" * 40, "G", "TT", "N-*"]
FORMATS = ["a.fa", "a.fa.gz", "a.fastq", "a.fq.gz", "a.csv", "a.csv.gz", "a.tsv", "a.parquet"]


def write(path, text):
    data = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def strings_of(chunks):
    return [string for chunk in chunks for string in chunk.objects.tolist()]


def in_table(words):
    """Return words with blanks for empty ones, which a table must not hold."""
    return [word or " " for word in words]


def written(folder, name, words):
    """Write words as a file of a format; return its path and what the whole-file readers read."""
    path = folder / name
    if ".fa" in name and "fastq" not in name:
        write(path, ";old\n" + "".join(f">w{i} more\n{word[:3]}\n\n{word[3:]}\n" for i, word in enumerate(words)))
        return path, read_fasta(path)[1]
    if ".f" in name:
        write(path, "".join(f"@w{i} more\r\n{word}\r\n+\r\n{'I' * len(word)}\r\n" for i, word in enumerate(words)))
        return path, read_fastq(path)[1]
    words = in_table(words)
    if name == "a.parquet":
        parquet.write_table(pa.table({"id": range(len(words)), "text": words}), path, row_group_size=5)
    else:
        between = "\t" if "tsv" in name else ","
        write(path, f"id{between}text\n" + "".join(f"{i}{between}{word}\n\n" for i, word in enumerate(words)))
    return path, read_columns(path, "text")[0]
