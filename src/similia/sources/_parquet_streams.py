"""Strings of a column of a Parquet file, a few rows at a time: the bytes of Arrow become those of a `StringBatch`.

Arrow unpacks a page as far as its header says. Rows of one batch are bounded by the longest entry of a dictionary,
which a hostile file may repeat at no cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.text import _short, counted
from similia.objects._strings import StringBatch
from similia.sources._blocks import Records
from similia.sources._delimited_streams import position_of
from similia.sources._lines import strings
from similia.sources._skipped import Skips
from similia.sources.reading import Reading, choose

_ROWS = 1000  # read at once: few enough for the caches, and for rows that are far longer than most


@contextmanager
def parquet_file(path: Any, **options: Any) -> Iterator[Any]:
    """Open a Parquet file; what Arrow raises about it becomes one sentence."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise ImportError(f"reading {path} needs pyarrow: pip install pyarrow") from None
    try:
        with parquet.ParquetFile(path, **options) as file:
            yield file
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError) as error:  # of a damaged footer
        raise ValueError(f"{path} is not a whole Parquet file: {_first_line(error)}") from None


def parquet_column(path: Any, column: str | int, names: list[str]) -> str:
    """Return the name of a column, or raise."""
    if isinstance(column, int) and not -len(names) <= column < len(names):
        raise ValueError(f"{path} has {counted(len(names), 'column')}, none at position {column}")
    return names[position_of(path, column, names)]


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


class ParquetRows:
    """Columns of a Parquet file: the objects, labels as they are stored, names as text."""

    def __init__(self, path: Path, reading: Reading, skips: Skips | None = None, kind: str | None = None) -> None:
        self.path, self.size, self.skips = path, path.stat().st_size, skips
        with parquet_file(path) as file:
            schema = file.schema_arrow
            self.header, self.n = list(schema.names), file.metadata.num_rows
        self.choice = choose(path, self.header, reading, lambda j: _holds(schema.field(j).type), kind)
        self.fields = [schema.field(j) for j in self.choice.objects]
        self.label = None if self.choice.label is None else schema.field(self.choice.label)
        self.names = [] if self.choice.names is None else [schema.field(self.choice.names)]
        for field in self.names:
            self._named(field, _nothing(field))  # raises if it cannot be text
        self.is_numeric = self.choice.kind in ("vectors", "series")
        for field in self.fields:
            self._check_type(field)
        self.text = self.is_numeric or bool(_is_text(self.fields[0].type))
        if self.n <= 0:
            raise ValueError(f"{path} holds no rows")

    def _check_type(self, field: Any) -> None:
        found = _holds(field.type)
        if found != ("numbers" if self.is_numeric else "text"):
            expected = "numbers" if self.is_numeric else "strings"
            raise TypeError(
                f"{self.path}: column {_short(field.name)} holds {str(field.type)[:60]}, expected {expected}; name "
                "another column"
            )

    def records(self, start: int, chunk: int, max_bytes: int) -> Iterator[Records]:
        """Yield the columns from row `start` on."""
        row = end = 0
        fields = [*self.fields, *([] if self.label is None else [self.label]), *self.names]
        columns = list(dict.fromkeys(field.name for field in fields))
        with parquet_file(self.path, pre_buffer=False, buffer_size=2**20) as file:
            for group in range(file.num_row_groups):
                about = file.metadata.row_group(group)
                if row + about.num_rows <= start:
                    row += about.num_rows
                    continue
                most = self._rows_at_once(group, about, chunk, max_bytes)
                for arrow in file.iter_batches(most, row_groups=[group], columns=columns, use_threads=False):
                    skip = min(arrow.num_rows, max(0, start - row))
                    first = row + skip
                    row += arrow.num_rows
                    arrow, numbers = self._without_missing(arrow[skip:], first)
                    if len(numbers):
                        objects = self._objects(arrow, first)
                        labels = [] if self.label is None else [_plain(_column(arrow, self.label))]
                        names = [self._named(field, _column(arrow, field)) for field in self.names]
                        width = 8 * len(self.fields)
                        ends = end + (
                            width * np.arange(1, len(numbers) + 1) if self.is_numeric else objects[0].offsets[1:]
                        )
                        end = int(ends[-1])
                        columns_of = (*objects, *labels, *names)
                        yield Records(columns_of, ends, position=self.size * row // self.n, rows=numbers)
        if row != self.n:
            raise ValueError(f"{self.path} holds {row} rows, but {self.n} by its footer; is it damaged?")

    def _without_missing(self, arrow: Any, first: int) -> tuple[Any, npt.NDArray[np.int64]]:
        """Return rows whose objects are not null, and their numbers in the file; raise or list the others."""
        numbers = first + np.arange(arrow.num_rows)
        if self.is_numeric:  # a number that is missing is told, or padding, where numbers are read
            return arrow, numbers
        array = _column(arrow, self.fields[0])
        if not array.null_count:
            return arrow, numbers
        valid = array.is_valid().to_numpy(zero_copy_only=False)
        for i in numbers[~valid].tolist():
            why = f"column {_short(self.fields[0].name)} is missing (null), expected a string"
            if self.skips is None:
                raise ValueError(
                    f"{self.path}, row {i} (from 0): {why}; fill it in or leave the row out (on_error='skip' or "
                    "--on-error skip)"
                )
            self.skips.add(i, why)
        return arrow.take(np.flatnonzero(valid)), numbers[valid]

    def _objects(self, arrow: Any, row: int) -> list[Any]:
        """Return the columns of the objects: strings, or numbers of which those that are missing are NaN."""
        if not self.is_numeric:
            return [self._strings(_column(arrow, self.fields[0]), row)]
        return [_numbers(_column(arrow, field)) for field in self.fields]

    def _rows_at_once(self, group: int, about: Any, chunk: int, max_bytes: int) -> int:
        """Return how many rows take at most about `max_bytes`."""
        longest = about.total_byte_size // max(1, about.num_rows)
        texts = [field for field in [*self.fields, *self.names] if _is_text(field.type) is not None]
        if not texts:
            return max(1, min(chunk, _ROWS, max_bytes // max(1, longest)))
        columns = list(dict.fromkeys(field.name for field in texts))
        # Not about.column(j): where statistics are damaged, that ends the process (pyarrow 26), and reading raises.
        with parquet_file(self.path, read_dictionary=columns, pre_buffer=False, buffer_size=2**20) as file:
            for first in islice(file.iter_batches(1, row_groups=[group], columns=columns, use_threads=False), 1):
                for field in texts:
                    found = _column(first, field)
                    if hasattr(found, "dictionary"):
                        longest = max(longest, int(np.diff(_bytes_of(found.dictionary)[1]).max(initial=0)))
        return max(1, min(chunk, _ROWS, max_bytes // max(1, longest)))

    def _strings(self, array: Any, row: int) -> StringBatch:
        """Return an Arrow array, which begins at `row` of the file, as a batch."""
        values, bounds = _bytes_of(array)
        if not self.text:
            return StringBatch(values, bounds, True)
        try:
            return strings(values, bounds)
        except UnicodeDecodeError as error:
            bad = row + int(np.searchsorted(bounds, error.start, "right")) - 1
            raise ValueError(
                f"{self.path}, row {bad} (from 0): column {_short(self.fields[0].name)} is not UTF-8: {error}"
            ) from None

    def _named(self, field: Any, array: Any) -> StringBatch:
        """Return an Arrow array as text; what is missing is empty."""
        import pyarrow as pa

        try:
            return strings(*_bytes_of(_decoded(array).cast(pa.large_string()).fill_null("")))
        except (pa.ArrowException, UnicodeDecodeError):
            raise TypeError(
                f"{self.path}: column {_short(field.name)} holds {str(field.type)[:60]}, expected text, numbers or "
                "dates as names; name another column"
            ) from None


def _is_text(kind: Any) -> bool | None:
    """Return whether values of an Arrow type are text (True) or bytes (False), None for others."""
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return True
    return False if types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind) else None


def _holds(kind: Any) -> str | None:
    """Return "text" or "numbers", or None for values of another Arrow type."""
    from pyarrow import types

    if _is_text(kind) is not None:
        return "text"
    numeric = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_boolean(kind)
    return "numbers" if numeric else None


def _numbers(array: Any) -> npt.NDArray[np.float64]:
    """Return an Arrow array of numbers as float64, those that are missing as NaN."""
    import pyarrow as pa

    return array.cast(pa.float64()).to_numpy(zero_copy_only=False).astype(np.float64, copy=False)


def _plain(array: Any) -> npt.NDArray[np.object_]:
    """Return an Arrow array as Python objects."""
    values = np.empty(len(array), dtype=object)
    values[:] = array.to_pylist()
    return values


def _decoded(array: Any) -> Any:
    return array.dictionary_decode() if hasattr(array, "dictionary") else array


def _bytes_of(array: Any) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return the bytes of the strings of an Arrow array, and where each begins."""
    import pyarrow as pa

    array = _decoded(array).cast(pa.large_binary())
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    return np.frombuffer(data or b"", np.uint8)[bounds[0] : bounds[-1]].copy(), bounds - bounds[0]


def _column(batch: Any, field: Any) -> Any:
    return batch.column(batch.schema.names.index(field.name))


def _nothing(field: Any) -> Any:
    import pyarrow as pa

    return pa.array([], type=field.type)
