"""Read Parquet files, .npy arrays and iterables by rows.

Memory stays bounded even if a file is hostile. A Parquet file can repeat a long dictionary entry at no cost, so the
length of the longest entry limits the number of rows per batch. Rows of arrays are read, not mapped, because mapped
pages count as memory of the process. The header of an array must agree with the size of the file. Nothing is unpickled.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Set, Sized
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from similia.core.text import short
from similia.core.validation import BadFile, BadItem, BadValue, check_vectors, read_header
from similia.objects.graph_batch import GraphBatch
from similia.objects.sequences import Batch, StringBatch
from similia.objects.tables import is_frame, objects_in, to_array
from similia.sources.source import FILL, Reading, Skips, choose, leave_out, place_of
from similia.sources.text import Records, record_limit, strings

_ROWS = 1000  # rows read at once: they fit into the caches, even if some are far longer than others


@contextmanager
def parquet_file(path: Any, **options: Any) -> Iterator[Any]:
    """Return a context with an open Parquet file, which turns the errors of Arrow into `BadFile`."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as parquet
    except ImportError:
        raise ImportError(f"reading {path} needs pyarrow: pip install pyarrow") from None
    try:
        with parquet.ParquetFile(path, **options) as file:
            yield file
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError) as error:  # all seen with damaged footers
        raise BadFile(path, f"is not an intact Parquet file: {' '.join(str(error).split())[:200]}") from None


class ParquetTable:
    """Read the objects, labels (as stored) and names (as text) of a Parquet file."""

    def __init__(self, path: Path, reading: Reading, skips: Skips | None = None, kind: str | None = None) -> None:
        self.path, self.size, self.skips = path, path.stat().st_size, skips
        with parquet_file(path) as file:
            import pyarrow as pa

            schema = file.schema_arrow
            self.header, self.n = list(schema.names), file.metadata.num_rows
            index = index_columns(path, schema)
        left_out = [j for j, name in enumerate(self.header) if name in index]
        choice = choose(path, self.header, reading, lambda j: _holds(schema.field(j).type), kind, left_out)
        self.choice = choice
        self.fields = [schema.field(j) for j in choice.objects]
        self.labels, self.names = ([] if j is None else [schema.field(j)] for j in (choice.label, choice.names))
        for field in self.names:
            self._named(field, pa.array([], type=field.type))  # raises if the column cannot be converted to text
        self.is_numeric = choice.kind in ("vectors", "series")
        for field in self.fields:
            if _holds(field.type) != ("numbers" if self.is_numeric else "text"):
                expected = "numbers" if self.is_numeric else "strings"
                found = f"holds {str(field.type)[:60]}, expected {expected}; name another column"
                raise BadFile(path, found, at=f"column {short(field.name)}")
        self.text = self.is_numeric or bool(_is_text(self.fields[0].type))
        if self.n <= 0:
            raise BadFile(path, "holds no rows")

    def records(self, start: int, chunk: int, max_bytes: int) -> Iterator[Records]:
        row = end = 0
        columns = list(dict.fromkeys(field.name for field in [*self.fields, *self.labels, *self.names]))
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
                        found = self._columns(arrow, first)
                        sizes = np.full(len(numbers), 8 * len(self.fields))
                        ends = end + np.cumsum(sizes if self.is_numeric else np.diff(found[0].offsets))
                        end = int(ends[-1])
                        yield Records(found, ends, rows=numbers, position=self.size * row // self.n)
        if row != self.n:
            raise BadFile(self.path, f"holds {row} rows, but its footer says {self.n}; is it damaged?")

    def _columns(self, arrow: Any, row: int) -> tuple[Any, ...]:
        """Return the columns of an Arrow batch that begins at row number `row`: objects, labels, names."""
        if self.is_numeric:
            objects: list[Any] = [_numbers(_column(arrow, field)) for field in self.fields]
        else:
            objects = [self._parquet_strings(_column(arrow, self.fields[0]), row)]
        labels = [_plain(_column(arrow, field)) for field in self.labels]
        return (*objects, *labels, *(self._named(field, _column(arrow, field)) for field in self.names))

    def _without_missing(self, arrow: Any, first: int) -> tuple[Any, npt.NDArray[np.int64]]:
        """Return the rows whose object is not null, and their positions; skip the others, or raise without `skips`."""
        numbers = first + np.arange(arrow.num_rows)
        if self.is_numeric:  # `Converter` handles missing numbers
            return arrow, numbers
        array = _column(arrow, self.fields[0])
        if not array.null_count:
            return arrow, numbers
        valid = array.is_valid().to_numpy(zero_copy_only=False)
        why = f"column {short(self.fields[0].name)} is missing (null), expected a string"
        for i in numbers[~valid].tolist():
            leave_out(self.path, self.skips, why, i, remedy=FILL)
        return arrow.take(np.flatnonzero(valid)), numbers[valid]

    def _rows_at_once(self, group: int, about: Any, chunk: int, max_bytes: int) -> int:
        """Return how many rows of a row group to read at once: at most `chunk` rows that take about `max_bytes`."""
        longest = about.total_byte_size // max(1, about.num_rows)
        texts = [field for field in [*self.fields, *self.names] if _is_text(field.type) is not None]
        if not texts:
            return max(1, min(chunk, _ROWS, max_bytes // max(1, longest)))
        columns = list(dict.fromkeys(field.name for field in texts))
        # not about.column(j): with damaged statistics, it crashes the process (pyarrow 26), whereas reading raises
        with parquet_file(self.path, read_dictionary=columns, pre_buffer=False, buffer_size=2**20) as file:
            for first in islice(file.iter_batches(1, row_groups=[group], columns=columns, use_threads=False), 1):
                for field in texts:
                    found = _column(first, field)
                    if hasattr(found, "dictionary"):
                        longest = max(longest, int(np.diff(_bytes_of(found.dictionary)[1]).max(initial=0)))
        return max(1, min(chunk, _ROWS, max_bytes // max(1, longest)))

    def _parquet_strings(self, array: Any, row: int) -> StringBatch:
        """Return an Arrow array as a `StringBatch`; `row` is the position of its first entry in the file."""
        values, bounds = _bytes_of(array)
        if not self.text:
            return StringBatch(values, bounds, True)
        try:
            return strings(values, bounds)
        except UnicodeDecodeError as error:
            bad = row + int(np.searchsorted(bounds, error.start, "right")) - 1
            raise BadFile(
                self.path, f"column {short(self.fields[0].name)} is not UTF-8: {error}", at=place_of(bad)
            ) from None

    def _named(self, field: Any, array: Any) -> StringBatch:
        """Return an Arrow array of names as text, with "" for missing names."""
        import pyarrow as pa

        try:
            return strings(*_bytes_of(_decoded(array).cast(pa.large_string()).fill_null("")))
        except (pa.ArrowException, UnicodeDecodeError):
            found = f"holds {str(field.type)[:60]}, expected text, numbers or dates as names; name another column"
            raise BadFile(self.path, found, at=f"column {short(field.name)}") from None


def index_columns(path: Path, schema: Any) -> list[Any]:
    """Return the names of the columns in which pandas stored the index of a data frame (and dicts without columns)."""
    try:
        return list((schema.pandas_metadata or {}).get("index_columns", []))
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise BadFile(path, "holds metadata of pandas that are not what pandas writes; is it damaged?") from None


def _is_text(kind: Any) -> bool | None:
    """Return True for an Arrow type of text, False for a type of bytes, None for others."""
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return True
    return False if types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind) else None


def _holds(kind: Any) -> str | None:
    """Return "text" or "numbers", or None for other Arrow types."""
    from pyarrow import types

    if _is_text(kind) is not None:
        return "text"
    numeric = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_boolean(kind)
    return "numbers" if numeric else None


def _numbers(array: Any) -> npt.NDArray[np.float64]:
    """Return an Arrow array of numbers as float64, with NaN for missing values."""
    import pyarrow as pa

    return array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False).astype(np.float64, copy=False)


def _plain(array: Any) -> npt.NDArray[np.object_]:
    values = np.empty(len(array), dtype=object)
    values[:] = array.to_pylist()
    return values


def _decoded(array: Any) -> Any:
    return array.dictionary_decode() if hasattr(array, "dictionary") else array


def _bytes_of(array: Any) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return the joined bytes of the strings of an Arrow array, and the offsets of the strings in them."""
    import pyarrow as pa

    array = _decoded(array).cast(pa.large_binary())
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    return np.frombuffer(data or b"", np.uint8)[bounds[0] : bounds[-1]].copy(), bounds - bounds[0]


def _column(batch: Any, field: Any) -> Any:
    return batch.column(batch.schema.names.index(field.name))


_MOST_HEADER = 2**14  # maximum bytes read for a header; numpy reads a header of any length before it refuses it


class NpyRows:
    """Read the rows of a 2-D array of numbers in a .npy file."""

    kind = "vectors"

    def __init__(self, path: Path, skips: Skips | None = None) -> None:
        self.path, self.skips, size = path, skips, path.stat().st_size
        with open(path, "rb") as file:
            begin = io.BytesIO(file.read(_MOST_HEADER))
        try:
            shape, self.dtype, claimed, self.fortran = read_header(begin)
        except ValueError as error:
            raise BadFile(path, f"is not an array that numpy.save wrote: {error}") from None
        self.offset = begin.tell()
        if len(shape) != 2 or self.dtype.kind not in "fiu" or min(shape) == 0:
            found = f"{str(self.dtype)[:60]} of shape {short(shape)}"
            raise BadFile(path, f"holds {found}, expected numbers of shape (n, n_features)")
        self.n, self.width = shape
        if claimed != size - self.offset:
            raise BadFile(
                path,
                f"has {size - self.offset} bytes of data, but its header (shape {short(shape)}) says "
                f"{short(claimed)}; is it truncated?",
            )

    def records(self, start: int, chunk: int, max_bytes: int) -> Iterator[Records]:
        """Yield rows from number `start` on; add those with NaN or infinity to `skips`, or raise if it is None."""
        row = self.dtype.itemsize * self.width
        if row > record_limit():
            raise BadFile(self.path, f"it takes {row} bytes, more than {record_limit()}; raise max_memory", at="row 0")
        step = max(1, min(chunk, max_bytes // row))
        for first in range(start, self.n, step):
            stop = min(self.n, first + step)
            rows = self._rows(first, stop)
            good = np.flatnonzero(np.isfinite(rows).all(axis=1))
            for bad in np.setdiff1d(np.arange(len(rows)), good).tolist() if len(good) < len(rows) else []:
                if self.skips is None:
                    raise BadFile(self.path, "it holds NaN or infinity; drop or impute it", at=f"row {first + bad}")
                self.skips.add(first + bad, "it holds NaN or infinity")
            ends = np.arange(first + 1 - start, stop + 1 - start) * row
            if len(good):
                kept = (rows,) if len(good) == len(rows) else (rows[good],)
                yield Records(kept, ends[good], position=self.offset + stop * row, rows=first + good)

    def _rows(self, start: int, stop: int) -> npt.NDArray:
        if self.fortran:  # rows are scattered; mapping the file anew each time releases its pages
            shape = (self.n, self.width)
            rows = np.memmap(self.path, self.dtype, "r", self.offset, shape, "F")[start:stop]
        else:
            count, row = (stop - start) * self.width, self.dtype.itemsize * self.width
            rows = np.fromfile(self.path, self.dtype, count, offset=self.offset + start * row)
            if len(rows) < count:
                raise BadFile(self.path, "the file became shorter while it was read", at=f"row {start}")
            rows = rows.reshape(-1, self.width)
        return np.array(rows, dtype=self.dtype.newbyteorder("="), order="C", copy=self.fortran or None)


OF_ARRAYS = ("series", "sets", "vectors")  # kinds of objects that arrays can represent


class Items:
    """Read an iterable of strings, series, graphs or batches (`similia.objects`), or the rows of a 2-D array.

    A data frame is its only column of objects, or an array of numbers.

    If the items are arrays, `of_arrays` is True, and `kind`, one of `OF_ARRAYS`, says what an array is ("series" by
    default).
    """

    of_arrays = False

    def __init__(self, source: Any, kind: str | None = None) -> None:
        source = objects_in(source) if is_frame(source) else source
        source = to_array(source) if is_frame(source) else source
        if sp.issparse(source):
            raise TypeError(f"expected an array of rows, got a sparse matrix of shape {source.shape}; give X.toarray()")
        if isinstance(source, bytes | Mapping | Set) or not isinstance(source, Iterable):
            raise TypeError(f"expected a path or an ordered iterable of objects, got {short(source)}")
        self.n: int | None = len(source) if isinstance(source, Sized) else None
        self._source: Any = source
        if isinstance(source, Batch) or (isinstance(source, np.ndarray) and source.ndim == 2):
            self.kind = source.kind if isinstance(source, Batch) else "vectors"
            _check_kind(kind, self.kind)
            self._items = self._slices
            return
        iterator = iter(source)
        self._once = iterator is source  # a generator, not a list
        first = list(islice(iterator, 1))
        if not first:
            raise ValueError("the iterable holds no objects, expected at least one")
        self.kind = kind_of_item(first[0])
        self.of_arrays = self.kind == "series" and not isinstance(first[0], Batch)
        if kind is not None and self.of_arrays:
            self.kind = kind
        _check_kind(kind, self.kind)
        if isinstance(first[0], Batch):
            self.n = None
        if self._once:
            self._source = chain(first, iterator)
        self._items = self._converted

    def records(self, start: int, chunk: int, max_bytes: int) -> Iterator[Records]:
        if self._source is None:
            raise ValueError("this generator was already read; pass a new one")
        row = end = 0
        for batch in self._items(chunk, max_bytes):
            skip = min(len(batch), max(0, start - row))
            row += len(batch)
            if skip < len(batch):
                batch = batch[skip:] if skip else batch
                ends = end + _sizes(batch)
                end = int(ends[-1])
                yield Records((batch,), ends)

    def _slices(self, chunk: int, max_bytes: int) -> Iterator[Any]:
        for start in range(0, len(self._source), chunk):
            yield self._source[start : start + chunk]

    def _converted(self, chunk: int, max_bytes: int) -> Iterator[Any]:
        """Convert the items to batches of `chunk` items each, or of fewer if these take about `max_bytes`."""
        items: list[Any] = []
        size = passed = 0
        source = self._source
        if self._once:
            self._source = None
        for item in source:
            if not isinstance(item, Batch):
                items.append(item)
                size += item.nbytes if isinstance(item, np.ndarray) else len(item) if hasattr(item, "__len__") else 0
            if items and (isinstance(item, Batch) or len(items) == chunk or size >= max_bytes):
                yield _numbered(_reader(self.kind), items, passed)
                passed, items, size = passed + len(items), [], 0
            if isinstance(item, Batch):
                if item.kind != self.kind:
                    raise TypeError(
                        f"item {passed} is a {type(item).__name__}, expected {self.kind} like the items before"
                    )
                passed += 1
                yield item
        if items:
            yield _numbered(_reader(self.kind), items, passed)


def _check_kind(wanted: str | None, found: str) -> None:
    if wanted not in (None, found):
        raise ValueError(f"kind={wanted!r} is for an iterable of arrays, but this one holds {found}; drop kind")


def kind_of_item(item: Any) -> str:
    """Return the kind of an item of an iterable, such as "strings"; raise TypeError for an unsupported item."""
    item = item.as_py() if hasattr(item, "as_py") else item
    if isinstance(item, Batch):
        return item.kind
    if isinstance(item, str | bytes):
        return "strings"
    if isinstance(item, np.ndarray | list | tuple):
        return "series"
    if item is None or isinstance(item, int | float) or sp.issparse(item):
        raise TypeError(f"item 0 is {short(item)}, expected a string, an array, a graph or a batch of objects")
    return "graphs"


def _reader(kind: str) -> Callable[[Any], Any]:
    from similia.objects.graphs import as_graphs
    from similia.objects.sequences import as_strings
    from similia.objects.series import as_series
    from similia.objects.vectors import as_sets

    readers: dict[str, Callable[[Any], Any]] = {
        "strings": as_strings, "series": as_series, "graphs": as_graphs, "sets": as_sets, "vectors": _as_vectors,
    }  # fmt: skip
    return readers[kind]


def _as_vectors(items: list[Any]) -> Any:
    """Stack vectors, which must have equal lengths, as the rows of a matrix."""
    rows = [np.asarray(item) for item in items]
    for i, row in enumerate(rows):
        if row.ndim != 1 or len(row) != len(rows[0]):
            raise BadValue(i, f"has shape {row.shape}", f"a vector of shape {rows[0].shape}")
    return check_vectors(np.stack(rows))


def _numbered(read: Callable[[Any], Any], items: list[Any], first: int) -> Any:
    """Return ``read(items)``; in an error, add `first`, the position of the first item, to the index."""
    try:
        return read(items)
    except BadItem as error:
        raise error.shifted(first).changed(kind=error.kind or "item") from None


def _sizes(batch: Any) -> np.ndarray:
    """Return the approximate cumulative sizes of the objects in bytes."""
    if isinstance(batch, np.ndarray):
        return np.arange(1, len(batch) + 1) * (batch.nbytes // len(batch))
    if isinstance(batch, GraphBatch):
        return np.asarray(batch.node_offsets[1:]) * 8
    return batch.offsets[1:] * batch.values.itemsize * (batch.values.shape[1] if batch.values.ndim == 2 else 1)
