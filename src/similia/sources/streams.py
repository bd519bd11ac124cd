"""Read objects from files of any length and from iterables, a chunk at a time in constant memory.

Memory holds one chunk and one block of the file. On one core, 10^6 strings of 100 letters take 0.6 s from FASTA, 0.3 s
from CSV (1.3 s with quotes) and 0.4 s from Parquet.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from similia.core.text import counted, listed, short
from similia.core.validation import BadFile, check_positive_int
from similia.objects.sequences import concatenate
from similia.sources.rows import OF_ARRAYS, Items, NpyRows, ParquetTable, parquet_file
from similia.sources.source import Choice, Chunk, Chunks, Reading, Skips, Source, choose, ending_of, looks_numeric
from similia.sources.tables import PER_LETTER, Converter, Table, delimiter_of
from similia.sources.text import (
    Records,
    fasta_records,
    fastq_records,
    line_records,
    narrow,
    sdf_begin,
    sdf_records,
    smi_has_names,
    smi_records,
)

FASTA = {".fa", ".fasta", ".fna", ".faa"}
FASTQ = {".fq", ".fastq"}
TABLES = {".csv", ".tsv", ".tab"}
ROWS = {".parquet", ".npy"}
LINES = {".txt", ".smi", ".sdf"}
_SEPARATORS = {"\t": "tabs", ";": "';'", ",": "commas", "|": "'|'"}
STREAMED = FASTA | FASTQ | TABLES | ROWS | LINES
_NOT_TABLES = ("smiles", "values", "series", "time")
_MEANINGLESS = {  # for each ending, the options that do not apply to such files
    ".npy": ("text", *_NOT_TABLES, "label", "names"),
    ".txt": (*_NOT_TABLES, "label", "names"),
    ".smi": ("text", *_NOT_TABLES, "label", "names"),
    ".sdf": ("text", *_NOT_TABLES),
    **dict.fromkeys(FASTA | FASTQ, (*_NOT_TABLES, "names")),
}


class ObjectStream(Source):
    """Objects of a file or an iterable, as `open_stream` returns them; `Source` describes the attributes."""

    def __init__(self, source: Any, reading: Reading, chunk: int, max_bytes: int, kind: str | None = None) -> None:
        self.reading, self._chunk, self._max_bytes, self._kind = reading, chunk, max_bytes, kind
        self._path: Path | None = None
        self._rows: Any = None
        self._converter: Converter | None = None
        self._labelled = False
        self.kind = "strings"
        if not isinstance(source, str | os.PathLike):
            self.source, self._rows, self.again = type(source).__name__, Items(source, kind), False
            self._refuse(self.source, "text", "smiles", "values", "label", "names", "series", "sep", "on_error")
            self.kind, self.n = self._rows.kind, self._rows.n
            return
        self._path, self.source, self._ending = Path(source), str(source), ending_of(Path(source))
        self.size = _size(self._path)
        self.skips = reading.skips(begin=False)  # `chunks` calls begin()
        self._open(self._path)
        if self.kind == "graphs":
            from similia.objects.molecules import import_rdkit

            import_rdkit()
            self._max_bytes = max(1, max_bytes // PER_LETTER)

    def _open(self, path: Path) -> None:
        """Determine what kind of objects a file holds, and whether it has labels and names."""
        reading, ending = self.reading, self._ending
        packed_rows = ending in ROWS and path.suffix.lower() == ".gz"
        if is_table(path, reading) and not packed_rows:
            self._open_table(path)
            return
        if ending not in STREAMED:
            raise unknown_ending(path)
        if packed_rows:
            raise BadFile(path, "cannot be read by rows, because it is compressed as a whole; gunzip it first")
        self._refuse(path, *_MEANINGLESS[ending])
        self.named = ending in FASTA | FASTQ
        if ending == ".npy":
            self._rows = NpyRows(path, self.skips)
            self.kind, self.n = "vectors", None if self.skips else self._rows.n
        elif ending in (".smi", ".sdf"):
            self.kind = "graphs"
            self._converter = Converter(path, Choice("graphs", [0]), [], skips=self.skips, sdf=ending == ".sdf")
            if ending == ".smi":
                self.named = smi_has_names(path, reading.encoding)
            else:
                titled, fields = sdf_begin(path, reading.encoding)
                label = "label" if reading.label is None else str(reading.label)
                self._labelled = reading.label is not None or label in fields
                self.reading, self.named = replace(reading, label=label), reading.names is not None or titled

    def _open_table(self, path: Path) -> None:
        reading = self.reading
        if reading.time is not None:
            raise BadFile(
                path, "is a long table (time=), which can only be read as a whole; use similia.sources.read_objects"
            )
        if self._ending == ".parquet":
            self._rows = ParquetTable(path, reading, self.skips, self._kind)
            choice, header = self._rows.choice, self._rows.header
            self.n = None if self.skips else self._rows.n
        else:
            self._table = table_of(path, reading, self.skips)
            choice, header = choice_of(self._table, reading, self._kind)
        self.kind, self.told, self.columns = choice.kind, choice.told, [header[j] for j in choice.objects]
        self._labelled, self.named = choice.label is not None, choice.names is not None
        self._choice, self._converter = choice, Converter(path, choice, header, reading.decimal, self.skips)

    def _refuse(self, source: Any, *options: str) -> None:
        """Raise if one of the named options is set; they do not apply to the source."""
        given = self.reading.is_set(*options)
        if given:
            raise meaningless(source, given[0], getattr(self, "_ending", ""))

    @property
    def called(self) -> str:
        return "molecules" if self.kind == "graphs" and self._path is not None else self.kind

    def read_arrays_as(self, kind: str | None) -> None:
        """Read each array of an iterable of arrays as an object of the given kind; if `kind` is None, do nothing."""
        if isinstance(self._rows, Items) and self._rows.of_arrays and kind is not None:
            self.kind = self._rows.kind = kind

    def fingerprint(self) -> str:
        """Return a digest of the file and of the options that determine its objects (not their names and labels).

        The file is read once, in constant memory, at about 1 GB per second. An iterable raises ValueError.
        """
        if self._path is None:
            raise ValueError(f"a {self.source} has no fingerprint, because it may be readable only once; use a file")
        with open(self._path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256")  # twice as fast as blake2b on processors with SHA instructions
        reading = self.reading
        given = reading.is_set("encoding", "on_error", "header", "decimal")
        how: list[Any] = [f"{name}={getattr(reading, name)!r}" for name in given]
        if self._converter is not None and is_table(self._path, reading):
            how += [self.kind, reading.sep or "", *self.columns]
        digest.update("\0".join(map(str, how)).encode())
        return digest.hexdigest()

    def chunks(self, start: int = 0) -> Chunks:
        """Yield the objects from position `start` on in chunks; earlier objects are read and dropped.

        Raises
        ------
        ValueError
            If `start` is beyond the end (of a file, or of an iterable of known length), the file is damaged, or a
            record takes more than a quarter of ``max_memory`` (a sixteenth if the record is not ASCII, or if it is in a
            table with quotes or of which more than 8 columns are read). The message names the line, row or item.
        TypeError
            If an object is of another kind than the first one, such as a number among strings.
        """
        check_positive_int(start, "start", minimum=0)
        if self.n is not None and start > self.n:
            raise BadFile(self.source, f"holds {self.n} objects; start={start} is behind its end")
        skips = self.skips is not None  # then object i need not be row i
        if self.skips is not None:
            self.skips.begin()
        if self._rows is not None:
            records = self._rows.records(0 if skips else start, self._chunk, self._max_bytes)
        else:
            records = self._records() if skips else self._after(start, self._records())
        if self._converter is not None:
            records = self._converter.records(records, self._max_bytes)
        return self._watched(self._cut(self._after(start, records) if skips else records, start))

    def _watched(self, chunks: Iterator[Chunk]) -> Chunks:
        yield from chunks
        if self.at_end is not None:
            self.at_end(self)

    def _records(self) -> Iterator[Records]:
        path, encoding = self._path, self.reading.encoding
        if is_table(path, self.reading):
            return self._table.records(self._choice.positions)
        if self._ending == ".sdf":
            return sdf_records(path, self.reading)
        if self._ending in LINES:
            return (smi_records if self._ending == ".smi" else line_records)(path, encoding)
        return (fasta_records if self._ending in FASTA else fastq_records)(path, encoding)

    def _after(self, start: int, records: Iterator[Records]) -> Iterator[Records]:
        """Yield the records from number `start` on; raise if there are fewer than `start`."""
        passed = 0
        for part in records:
            n = len(part.ends)
            if passed + n > start:
                yield part.take(slice(start - passed, None)) if passed < start else part
            passed += n
        if passed < start:
            raise BadFile(self.source, f"holds {passed} objects; start={start} is behind its end")

    def _cut(self, records: Iterator[Records], start: int) -> Iterator[Chunk]:
        """Regroup records into chunks; the first record is the object at position `start`."""
        pieces: list[Records] = []
        n = begin = behind = 0  # n: objects in `pieces`; begin, behind: positions in the file
        first = start
        for part in records:
            a, stop = 0, len(part.ends)
            while a < stop:
                if n == 0:
                    begin = int(part.ends[a - 1]) if a else behind
                fit = int(np.searchsorted(part.ends, begin + self._max_bytes, "right"))
                b = min(stop, a + self._chunk - n, max(fit, a + (n == 0)))
                if b > a:
                    pieces.append(part.take(slice(a, b)))
                    n += b - a
                if n == self._chunk or b < stop:
                    yield self._joined(pieces, start, n)
                    pieces, start, n = [], start + n, 0
                a = b
            behind = int(part.ends[-1])
        if n:
            yield self._joined(pieces, start, n)
        if start + n == first == 0 and self.skips is not None and self.skips.first is not None:
            line, why = self.skips.first
            raise BadFile(self.source, f"holds no valid row; the first bad one is in line {line}: {why}")

    def _joined(self, pieces: list[Records], start: int, n: int) -> Chunk:
        """Join the `n` records of all pieces into one chunk whose first object has the position `start`."""
        objects = [part.columns[0] for part in pieces]
        labels: list[Any] = []
        names: list[Any] = []
        for part in pieces:
            if self._labelled:
                labels += part.columns[1].tolist()
            if part.headers is not None:
                names += [(header.split(None, 1) or [""])[0] for header in part.headers]
            elif self.named:
                names += part.columns[-1].tolist()
            elif self.skips is not None and part.rows is not None:
                names += part.rows.tolist()
        last = pieces[-1]
        named = self.named or (self.skips is not None and last.rows is not None)
        return Chunk(
            narrow(objects[0] if len(objects) == 1 else concatenate(objects)),
            names if named else None,
            start,
            start + n,
            int(last.ends[-1]) if last.position is None else last.position,
            labels if self._labelled else None,
            None if last.begins is None else np.concatenate([part.begins for part in pieces]),
            None if last.rows is None else np.concatenate([part.rows for part in pieces]),
        )


def is_table(path: Path | None, reading: Reading) -> bool:
    """Return whether a file is a table: by its ending, or because `reading` gives a separator."""
    if path is None:
        return False
    ending = ending_of(path)
    return ending in TABLES | {".parquet"} or (reading.sep is not None and ending not in ROWS)


def unknown_ending(path: Path, others: Iterable[str] = ()) -> BadFile:
    """Return the error for a file with an unknown ending; `others` are known endings besides `STREAMED`."""
    if path.suffix.lower() in (".xlsx", ".xls", ".ods"):
        return BadFile(path, "has an unknown ending; save the sheet as CSV (UTF-8)")
    known = ", ".join(sorted(STREAMED | set(others)))
    folders = ", and folders of series or of the TUDataset format" if others else ""
    return BadFile(
        path,
        f"has an unknown ending; if it is a table, give its separator (sep= or --sep); known are {known}{folders}",
    )


def meaningless(source: Any, option: str, ending: str) -> BadFile:
    """Return the error for an option that does not apply to a source; `ending` is its file ending, if any."""
    if option == "names" and ending in FASTA | FASTQ | {".smi"}:
        return BadFile(source, "holds the names of its records; drop names (--id), which is for tables")
    if option == "smiles":
        return BadFile(source, "is not a CSV, TSV or Parquet file, of which smiles (--smiles) names a column; drop it")
    what = {"names": "names (--id)", "on_error": "on_error='skip'", "sep": "sep"}.get(option, f"{option} (--{option})")
    return BadFile(
        source, f"has no columns, so {what} does not apply; drop it, or give the separator of cells (sep= or --sep)"
    )


def table_of(path: Path, reading: Reading, skips: Skips | None = None) -> Table:
    """Open a text table; raise if its first line contradicts the options `sep` or `header` of `reading`."""
    sep = reading.sep or delimiter_of(path)
    table = Table(path, sep, reading.header, reading.encoding, skips, reading.series)
    if len(table.first) == 1 and reading.sep is None:
        for other, called in _SEPARATORS.items():
            if other in table.first[0] and other != sep:
                raise BadFile(
                    path,
                    f"is read with cells separated by {_SEPARATORS.get(sep, repr(sep))}, but its first line has "
                    f"{called}; use sep={other!r} (--sep {'tab' if other == chr(9) else repr(other)})",
                )
    if reading.header:
        _check_header(path, table.first)
    return table


def choice_of(table: Table, reading: Reading, kind: str | None = None) -> tuple[Choice, list[str]]:
    """Choose the columns to read from a text table; return the choice and the names (or positions) of all columns."""
    head = cache(table.head)  # called only if no options name the columns

    def holds(j: int) -> str | None:
        numeric = looks_numeric([row[j] for row in head()], reading.decimal, 0.5)
        return None if numeric is None else "numbers" if numeric else "text"

    header = table.first if reading.header else [str(j) for j in range(len(table.first))]
    return choose(table.path, header, reading, holds, kind), header


def table_choice(path: Path, reading: Reading) -> tuple[Choice, list[str]]:
    """Choose the columns to read from a table; return the choice and the names (or positions) of all columns."""
    if ending_of(path) == ".parquet":
        rows = ParquetTable(path, reading)
        return rows.choice, rows.header
    return choice_of(table_of(path, reading), reading)


def known_columns(model: Any) -> dict[str, Any]:
    """Return the options that name the columns of the table from which a model learnt; {} if it learnt from none.

    The command line stores such options in a model as `table_columns_`; otherwise, the names of columns that the model
    learnt from a data frame are those of numbers.
    """
    names_in = getattr(model, "feature_names_in_", None)
    return getattr(model, "table_columns_", {} if names_in is None else {"values": names_in.tolist()})


def remembered(model: Any, path: Path, reading: Reading, labelled: bool = False, named: bool = False) -> dict[str, Any]:
    """Return options that name the columns of a table from which a model learnt, unless those of `reading` name others.

    If `labelled`, the column of labels is also named, and if `named`, that of names. Raise if the table lacks a column
    of numbers or of a long table, if no other column of text can take the place of the one that it lacks, or if
    `reading` names the columns of numbers in another order.
    """
    known = known_columns(model)
    if not known or not path.is_file() or not is_table(path, reading) or not reading.header:
        return {}
    if ending_of(path) == ".parquet":
        with parquet_file(path) as file:
            names = file.schema_arrow.names
    else:
        names = table_of(path, reading).first
    _check_values(path, reading, known)
    columns = _objects_among(names, path, reading, known)
    if labelled and reading.label is None and known.get("label") in names:
        columns["label"] = known["label"]
    if named and reading.names is None and known.get("names") in names:
        columns["names"] = known["names"]
    return columns


def _objects_among(names: list[str], path: Path, reading: Reading, known: dict[str, Any]) -> dict[str, Any]:
    """Return the options, among those that a model remembers, that name the columns of objects in a table."""
    long, numeric = "time" in known, reading.series or reading.axes is not None
    options = ("time", "names", "values") if long else ("text", "smiles", "values", "series")
    columns = {option: known[option] for option in options if option in known}
    first = next(iter(columns))
    if long:
        others = numeric or bool(reading.is_set("text", "smiles"))
        columns = {option: column for option, column in columns.items() if not reading.is_set(option)}
    else:
        others = bool(reading.is_set("text", "smiles", "values", "time")) or (numeric and first != "values")
    if others:
        return {}
    for option, column in columns.items() if long else [(first, columns[first])]:
        for name in [column] if isinstance(column, str) else column:
            if name not in names:
                _check_others(path, reading, names, option, name)
                return {}
    return columns | ({"series": True} if reading.series else {})


def _check_values(path: Path, reading: Reading, known: dict[str, Any]) -> None:
    """Raise if the option `values` names the columns that a model remembers in another order, or too many or few."""
    own, given = known.get("values"), reading.values
    if own is None or given is None or given == own:
        return
    if sorted(map(str, given)) == sorted(map(str, own)):
        found = f"is read from columns {listed(given)} (values= or --values), expected the order {listed(own)}"
        raise BadFile(path, f"{found}, in which the model was trained on them; drop the option")
    if "time" in known and not reading.series and len(given) != len(own):
        found = f"is read as series of {counted(len(given), 'channel')}, {listed(given)} (values= or --values)"
        raise BadFile(path, f"{found}, expected {len(own)} as in the model's training data: {listed(own)}")


def _check_others(path: Path, reading: Reading, names: list[str], option: str, missing: str) -> None:
    """Raise unless `missing`, the column that `option` names, is one of text and another can be chosen in its place."""
    if option in ("text", "smiles"):
        with suppress(BadFile):
            ObjectStream(path, reading, 1, 2**26)
            return
    if not any(names):
        raise BadFile(path, "is empty")
    has = ", ".join(map(short, sorted(names)))
    found = f"has no column {short(missing)}, on which the model was trained; it has {has}"
    raise BadFile(path, f"{found}; {option}= or --{'id' if option == 'names' else option} names another")


def _check_header(path: Path, names: list[str]) -> None:
    """Raise if all names of columns are numbers: the header seems to be missing. Increasing integers are accepted."""
    if not names or not looks_numeric(names) or not all(map(str.strip, names)):
        return
    numbers = [float(name.strip()) for name in names]
    counted = np.isfinite(numbers).all() and all(b > a and b == round(b) for a, b in pairwise(numbers))
    if len(names) == 1 or not counted:
        raise BadFile(
            path,
            f"found numbers ({short(', '.join(names))}), expected the names of columns; add a line with names, or use "
            "header=False (--no-header)",
            at="line 1",
        )


def _size(path: Path) -> int:
    """Return the size of a file in bytes; if it does not exist, the error also explains how to pass objects."""
    try:
        return path.stat().st_size
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENAMETOOLONG):
            raise
    name = short(str(path))
    raise FileNotFoundError(f"there is no file named {name}; if {name} is an object, pass a list: [{name}]")


def open_stream(
    source: str | os.PathLike[str] | Iterable[Any],
    *,
    kind: str | None = None,
    chunk: int = 10_000,
    max_bytes: int = 2**26,
    **options: Any,
) -> ObjectStream:
    r"""Open a file or an iterable, to read its objects in chunks.

    Parameters
    ----------
    source : path or iterable
        One of

        - a file of sequences: FASTA (``.fa``, ``.fasta``, ``.fna``, ``.faa``) or FASTQ (``.fq``, ``.fastq``);
        - a table: ``.csv``, ``.tsv``, ``.tab`` or ``.parquet``;
        - text (``.txt``), in which each non-empty line is a string;
        - molecules: ``.sdf``, or ``.smi`` with a SMILES and, optionally, a name on each line;
        - a ``.npy`` file of numbers, shape (n, n_features);
        - an iterable of strings, series (arrays), graphs or batches of `similia.objects`; a generator can be read only
          once;
        - a 2-D array, whose rows are the objects.

        All files except ``.parquet`` and ``.npy`` can also be compressed (``.gz``).
    kind : {"series", "sets", "vectors"}, optional
        How to interpret each array of an iterable: as a time series (the default), a set of points or a vector.
    chunk : int, default=10_000
        Maximum number of objects per chunk.
    max_bytes : int
        Approximate byte limit per chunk, by default 64 MiB; a chunk always holds at least one object.
    **options
        Options for reading a file, such as ``text="sequence"``: the parameters of `Reading`.

    Returns
    -------
    ObjectStream
        Its method ``chunks`` yields the objects in chunks, each a `similia.sources.Chunk`.

    Raises
    ------
    ValueError
        If the ending of the file is unknown or contradicts its contents; if a column is missing, ambiguous or of the
        wrong type; or if an option does not apply to the source.
    TypeError
        If `source` is neither a path nor an iterable (sets and dicts are refused, too), or if the first item of an
        iterable is not one of the objects above.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from similia.sources.streams import open_stream
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "three.fasta")
    ...     _ = path.write_text(">a 1\nACGT\nAC\n>b\nGG\n>c\nT\n")
    ...     stream = open_stream(path, chunk=2)
    ...     for part in stream.chunks():
    ...         print(part.start, part.names, part.objects.tolist(), part.bytes_read)
    ...     [last] = stream.chunks(start=2)
    ...     last.objects.tolist()
    0 ['a', 'b'] ['ACGTAC', 'GG'] 19
    2 ['c'] ['T'] 24
    ['T']
    >>> [part.objects.tolist() for part in open_stream((word for word in ["x", "yy", "z"]), chunk=2).chunks()]
    [['x', 'yy'], ['z']]
    """
    check_positive_int(chunk, "chunk")
    check_positive_int(max_bytes, "max_bytes")
    if kind is not None and kind not in OF_ARRAYS:
        raise ValueError(f'kind must be "series", "sets" or "vectors", got {kind!r}')
    if kind is not None and isinstance(source, str | os.PathLike):
        raise ValueError(f"kind={kind!r} is for an iterable of arrays, not for the file {source}; drop kind")
    reading = Reading(**options)
    if reading.axes is not None:
        raise ValueError("axes is for files that can only be read as a whole; use similia.sources.read_objects")
    return ObjectStream(source, reading, chunk, max_bytes, kind)
