"""Read the rows of a matrix from arrays, memory maps, sparse rows, files, chunked stores and streams of chunks.

Unlike a `similia.sources.source.Source`, a `RowSource` keeps float32, yields sparse data as sparse rows, and reads only
the requested rows where the storage format allows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import deepcopy
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from similia.core.config import rows_per_block
from similia.core.errors import BadFile, BadParameter, BadType, BadValue
from similia.core.estimators import twin_of
from similia.core.validation import not_2d, not_real, too_narrow, unmasked
from similia.objects.sequences import as_csr
from similia.sources.dask import Distributed, whole_part
from similia.sources.rows import parquet_file
from similia.sources.source import Source

Indices = npt.NDArray[np.int64]
Part = tuple[npt.NDArray, npt.NDArray[np.float64], Indices]  # rows, their priorities, their positions in the source
_MOST_ROWS = 2**14
_LARGEST = 1e150  # squares of larger numbers may overflow when added


class RowSource:
    """Base class of sources that yield the rows of a matrix in dense or CSR blocks.

    `dtype` is float32 for float32 data, otherwise float64. For a stream, `n_rows` is None, `take` raises, and `blocks`
    can be called only once.
    """

    n_rows: int | None = None
    n_features: int
    dtype: np.dtype

    def blocks(self, whole: bool = False) -> Iterator[Any]:
        """Yield all rows in order, in blocks; if `whole`, yield a numeric array or memory map as a single block."""
        raise NotImplementedError

    def take(self, indices: Indices) -> Iterator[Any]:
        """Yield the rows at sorted, distinct `indices`, in blocks that the caller may overwrite."""
        raise NotImplementedError

    @property
    def row_bytes(self) -> float:
        """Number of bytes that one row takes in memory (the mean for sparse rows)."""
        return self.n_features * self.dtype.itemsize

    @property
    def _step(self) -> int:
        return rows_per_block(64 * self.n_features, at_most=_MOST_ROWS)


class ArrayRows(RowSource):
    """Rows of an array, a memory map, or an object with `shape` and row access by ``[]`` (h5py, zarr)."""

    def __init__(self, X: Any) -> None:
        self._X = X
        self.n_rows, self.n_features = map(int, X.shape)
        self.dtype = _float_type(getattr(X, "dtype", np.float64))
        chunks = getattr(X, "chunks", None)
        self._chunk = int(chunks[0]) if chunks and not callable(chunks) and isinstance(chunks[0], int) else None

    def blocks(self, whole: bool = False) -> Iterator[npt.NDArray]:
        if whole and isinstance(self._X, np.ndarray) and self._X.dtype.kind in "fiub":
            yield self._X
            return
        n, step = self.n_rows or 0, self._step
        if self._chunk:  # whole chunks: reading a part of a chunk costs as much as all of it
            step = max(self._chunk, step - step % self._chunk)
        for start in range(0, n, step):
            yield as_floats(self._X[start : min(n, start + step)], self.dtype)

    def take(self, indices: Indices) -> Iterator[npt.NDArray]:
        if self._chunk and not isinstance(self._X, np.ndarray):
            for part in np.split(indices, np.flatnonzero(np.diff(indices // self._chunk)) + 1):
                first = int(part[0])
                yield as_floats(self._X[first : int(part[-1]) + 1], self.dtype)[part - first]
            return
        for start in range(0, len(indices), self._step):
            part = indices[start : start + self._step]
            if part[-1] - part[0] + 1 == len(part):
                yield np.array(as_floats(self._X[int(part[0]) : int(part[-1]) + 1], self.dtype))
            else:
                yield as_floats(self._X[part], self.dtype)


class DistributedRows(RowSource):
    """Rows of a Dask collection, wrapped as a `Distributed`."""

    def __init__(self, X: Distributed) -> None:
        example = X.example()
        self._X, self.n_rows, self.n_features = X, len(X), int(example.shape[1])
        self._sparse, self.dtype = sp.issparse(example), _float_type(example.dtype)

    @property
    def row_bytes(self) -> float:
        return super().row_bytes if not self._sparse else 2 * super().row_bytes

    def blocks(self, whole: bool = False) -> Iterator[Any]:
        for rows in self._X.blocks(self._step).map(whole_part, few=True):
            yield self._rows(rows)

    def take(self, indices: Indices) -> Iterator[Any]:
        # in large steps, because each `take` computes the parts of the collection that it reads again
        step = self._step * max(1, rows_per_block(int(4 * self.row_bytes)) // self._step)
        for start in range(0, len(indices), step):
            rows = self._rows(self._X.take(indices[start : start + step]))
            for first in range(0, rows.shape[0], self._step):  # cut as for arrays: same order of sums
                yield rows[first : first + self._step]

    def _rows(self, rows: Any) -> Any:
        return as_csr(rows).astype(self.dtype) if self._sparse else as_floats(rows, self.dtype)


class SparseRows(RowSource):
    """Rows of a scipy.sparse matrix; blocks are CSR."""

    def __init__(self, X: Any) -> None:
        self.n_rows, self.n_features = map(int, X.shape)
        self.dtype, self._X = _float_type(X.dtype), as_csr(X)

    @property
    def row_bytes(self) -> float:
        return 16 * (1 + self._X.nnz / max(1, self.n_rows or 0))

    def blocks(self, whole: bool = False) -> Iterator[sp.csr_array]:
        return self.take(np.arange(self.n_rows or 0))

    def take(self, indices: Indices) -> Iterator[sp.csr_array]:
        for start in range(0, len(indices), _MOST_ROWS):
            yield self._X[indices[start : start + _MOST_ROWS]].astype(self.dtype)


class ParquetRows(RowSource):
    """Rows of a Parquet file: one numeric column for each feature, or a single column of lists."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with parquet_file(path) as file:
            schema, meta = file.schema_arrow, file.metadata
            kinds = list(schema.types)
            self._is_list = len(kinds) == 1 and hasattr(kinds[0], "value_type")
            values = [kinds[0].value_type] if self._is_list else kinds
            if wrong := [n for n, kind in zip(schema.names, values, strict=False) if not _is_number(kind)]:
                raise BadFile(path, f"has no numbers in column {wrong[0]!r}; write a file of the features only")
            self.n_rows = int(meta.num_rows)
            self.n_features = len(kinds)
            self.dtype = np.dtype(np.float32 if {str(kind) for kind in values} == {"float"} else np.float64)
            self._groups = np.cumsum([0, *(meta.row_group(g).num_rows for g in range(meta.num_row_groups))])
            if self._is_list:
                first = next(file.iter_batches(batch_size=1), None)
                self.n_features = len(first.column(0)[0]) if first is not None else 0

    def blocks(self, whole: bool = False) -> Iterator[npt.NDArray]:
        with parquet_file(self._path) as file:
            for batch in file.iter_batches(batch_size=self._step):
                yield self._matrix(batch)

    def take(self, indices: Indices) -> Iterator[npt.NDArray]:
        with parquet_file(self._path) as file:
            for group in np.unique(np.searchsorted(self._groups, indices, side="right") - 1):
                start = int(self._groups[group])
                for batch in file.iter_batches(batch_size=self._step, row_groups=[int(group)]):
                    low, high = np.searchsorted(indices, [start, start + len(batch)])
                    if high > low:
                        yield self._matrix(batch.take(indices[low:high] - start))
                    start += len(batch)

    def _matrix(self, batch: Any) -> npt.NDArray:
        if not self._is_list:
            columns = [column.to_numpy(zero_copy_only=False) for column in batch.columns]
            return as_floats(np.column_stack(columns), self.dtype)
        values = batch.column(0).flatten().to_numpy(zero_copy_only=False)
        if len(values) != len(batch) * self.n_features:
            raise BadFile(self._path, f"has lists that are not all of length {self.n_features}; write equal lengths")
        return as_floats(np.array(values).reshape(len(batch), self.n_features), self.dtype)


class ChunkRows(RowSource):
    """Rows of an iterable of 2-D chunks, which is read only once."""

    def __init__(self, chunks: Iterable[Any]) -> None:
        self._chunks = iter(chunks)
        first = next(self._chunks, None)
        if first is None:
            raise BadValue(None, "is empty: found no chunk", "at least one array (rows, n_features)")
        self._first = check_chunk(first)
        self.n_features, self.dtype = self._first.shape[1], self._first.dtype

    def blocks(self, whole: bool = False) -> Iterator[npt.NDArray]:
        yield self._first
        del self._first
        for number, chunk in enumerate(self._chunks, 1):
            yield check_chunk(chunk, number, self.n_features, self.dtype)


class Reservoir:
    """Draw a uniform sample without replacement from a stream of unknown length.

    Each row gets a random number in [0, 1), its priority. The rows with the smallest priorities form the sample: the
    fraction (float) or number (int) `share` of all rows, but at least `least` rows. A row is kept while its priority is
    below a bound that falls as rows arrive. The bound lies eight standard deviations above the expected largest
    priority of the sample, so a row of the sample is lost with probability below 1e-10. A row whose priority lies eight
    standard deviations below that expectation counts as certain to be in the sample.
    """

    def __init__(self, random: np.random.Generator, share: float | int, least: int) -> None:
        self.n_chunks, self.n_rows, self.n_taken, self.nbytes = 0, 0, 0, 0
        self.dtype: np.dtype | None = None  # dtype of the first chunk
        self._random, self._share, self._least = random, share, least
        self._parts: list[Part] = []
        self._pruned_at = 1

    def copy(self) -> Reservoir:
        """Return a reservoir that can change independently of this one; arrays of rows kept so far are not copied."""
        other = twin_of(self)
        other._random, other._parts = deepcopy(self._random), [*self._parts]
        return other

    def add(self, chunk: npt.NDArray) -> None:
        """Draw a priority for each row of a chunk, and keep copies of the rows that may still be in the sample."""
        priorities = self._random.random(len(chunk))
        self.dtype, self.n_chunks = chunk.dtype, self.n_chunks + 1
        first, self.n_rows = self.n_rows, self.n_rows + len(chunk)
        near = np.flatnonzero(priorities <= self._bound())
        self._parts.append((chunk[near], priorities[near], near + first))
        self.nbytes += self._parts[-1][0].nbytes
        if self.n_rows > 1.25 * self._pruned_at:
            self._pruned_at = self.n_rows
            self._parts = [_where(part, part[1] <= self._bound()) for part in self._parts]
            self.nbytes = sum(rows.nbytes for rows, _, _ in self._parts)

    def take_sure(self) -> Iterator[Part]:
        """Yield the rows that are certain to be in the sample, and stop keeping them; `share` must be a float."""
        f, n = float(self._share), self.n_rows
        below = f - 8 * (f / n) ** 0.5 - 64 / n
        parts, self._parts = self._parts, []
        while parts:  # free each part before copying the next
            part = parts.pop(0)
            sure, left = _where(part, part[1] < below), _where(part, part[1] >= below)
            del part
            self.n_taken += len(sure[1])
            self._parts += [left] if len(left[1]) else []
            yield sure
        self.nbytes = sum(rows.nbytes for rows, _, _ in self._parts)

    def rest(self) -> Iterator[Part]:
        """Yield the rows of the sample that `take_sure` has not yielded, in the order of the source."""
        chosen, start = self._chosen(), 0
        for part in self._parts:
            low, high = np.searchsorted(chosen, [start, start + len(part[1])])
            yield _where(part, chosen[low:high] - start)
            start += len(part[1])

    def sample(self) -> tuple[npt.NDArray, Indices]:
        """Return one array of the rows that `rest` yields, and an array of their positions in the source."""
        rows = np.empty((len(self._chosen()), self._parts[0][0].shape[1]), self._parts[0][0].dtype)
        indices, start = np.empty(len(rows), np.int64), 0
        for part, _, where in self.rest():
            rows[start : start + len(part)], indices[start : start + len(part)] = part, where
            start += len(part)
        return rows, indices

    def _chosen(self) -> Indices:
        priorities = np.concatenate([priorities for _, priorities, _ in self._parts])
        return smallest(priorities, self._needed() - self.n_taken)

    def _needed(self) -> int:
        whole = isinstance(self._share, Integral)
        return min(self.n_rows, max(int(self._share) if whole else ceil_share(self._share, self.n_rows), self._least))

    def _bound(self) -> float:
        needed = self._needed()
        return (needed + 8 * needed**0.5 + 64) / max(1, self.n_rows)


def smallest(priorities: npt.NDArray[np.float64], count: int) -> Indices:
    """Return the sorted positions of the `count` smallest `priorities`: a uniform sample if priorities are random."""
    if count >= len(priorities):
        return np.arange(len(priorities))
    return np.sort(np.argpartition(priorities, count - 1)[:count]).astype(np.int64)


def sample_size(share: float | int, n: int, least: int, name: str, what: str) -> int:
    """Return how many of n rows or features to sample, at least `least`; raise if n is below `least` or an int `share`.

    `share` is a fraction (float) or a count (int). The error names the parameter `name` and the items `what` ("rows").
    """
    if n < least:
        found = f"{least} needs at least {least} {what}, found {n}"
        raise BadParameter("n_components", "", found, f"use n_components={n}")
    if isinstance(share, Integral):
        if share > n:
            raise ValueError(f"{name}={share} {what} are more than the {n} there are; use at most {n}, or 1.0 for all")
        return max(int(share), least)
    return min(n, max(ceil_share(float(share), n), least))


def check_share(value: Any, name: str) -> None:
    """Raise if `value`, of parameter `name`, is neither a float in (0, 1] (a fraction) nor an int >= 1 (a count)."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        good = int(value) >= 1
    else:
        good = isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) <= 1
    if not good:
        raise ValueError(f"{name} must be a float in (0, 1] or an integer >= 1, got {value!r}")


def ceil_share(share: float, n: int) -> int:
    """Return ``share * n`` rounded up."""
    return int(np.ceil(round(share * n, 6)))  # 0.07 * 100 is slightly above 7 in floats


def _where(part: Part, rows: npt.NDArray) -> Part:
    return part[0][rows], part[1][rows], part[2][rows]


def open_rows(X: Any) -> RowSource:
    """Wrap `X` in the matching `RowSource`, or raise an error that lists the accepted types."""
    if isinstance(X, Distributed):
        source: RowSource = DistributedRows(X)
    elif isinstance(X, Source):
        if X.kind != "vectors":
            raise ValueError(f"X holds {X.called}, expected vectors; turn them into vectors, e.g. by similia.Nystroem")
        return ChunkRows(chunk.objects for chunk in X.chunks())
    elif sp.issparse(X):
        source = SparseRows(X)
    elif isinstance(X, (str, Path)):
        source = _open_file(Path(X))
    elif isinstance(X, np.ndarray) or hasattr(X, "to_numpy") or (isinstance(X, (list, tuple)) and not _is_chunks(X)):
        source = ArrayRows(_check_matrix(X))
    elif hasattr(X, "shape") and hasattr(X, "__getitem__"):
        if len(X.shape) != 2:
            raise ValueError(f"X must be 2-D (n, n_features), got shape {tuple(X.shape)}")
        source = ArrayRows(X)
    elif isinstance(X, Iterable):
        return ChunkRows(X)
    elif hasattr(X, "__array__"):
        return open_rows(np.asarray(X))
    else:
        raise BadValue(
            None,
            f"is a {type(X).__name__}",
            "a 2-D array, a sparse matrix, an object with shape and row access, the path of a .npy or .parquet file, "
            "or an iterable of 2-D chunks",
        )
    if not source.n_rows:
        raise BadValue(None, "is empty: found 0 vectors", "at least one")
    if source.n_features == 0:
        raise too_narrow("X", (source.n_rows, 0))
    return source


def gather(source: RowSource, indices: Indices) -> Any:
    """Return a copy of the rows at sorted, distinct `indices` as one dense or CSR matrix."""
    blocks = list(source.take(indices))
    if len(blocks) == 1:
        return blocks[0]
    return sp.csr_array(sp.vstack(blocks)) if sp.issparse(blocks[0]) else np.concatenate(blocks)


def dense_parts(rows: Any) -> Iterator[npt.NDArray]:
    """Yield dense or CSR rows as dense blocks, in order."""
    step = rows_per_block(64 * rows.shape[1]) if sp.issparse(rows) else rows.shape[0]
    for start in range(0, rows.shape[0], step):
        part = rows[start : start + step]
        yield part.toarray() if sp.issparse(part) else part


def check_rows(rows: Any, where: Indices | int) -> None:
    """Raise if a row holds NaN or infinity; the error names the first such row by its position in the source.

    `where` holds the positions of all rows, or is the position of the first of consecutive rows.
    """
    sparse = sp.issparse(rows)
    bad = ~np.isfinite(rows.data) if sparse else ~np.isfinite(rows).all(axis=1)
    if (name := _first(rows, bad, where)) is not None:
        raise BadValue(name, "holds NaN or infinity", "finite numbers", "drop or impute that row")


def _first(rows: Any, bad: npt.NDArray[np.bool_], where: Indices | int) -> int | None:
    """Return the source position of the first bad row, or None; `bad` marks rows, or the stored values of CSR rows."""
    if not bad.any():
        return None
    row = int(bad.argmax())
    row = int(np.searchsorted(rows.indptr, row, side="right")) - 1 if sp.issparse(rows) else row
    return row + where if isinstance(where, int) else int(where[row])


def check_squares(rows: Any, where: Indices | int) -> None:
    """Raise if a row holds NaN, infinity or numbers whose squares are too large to add; `where`: see `check_rows`."""
    check_rows(rows, where)
    if rows.dtype == np.float32:  # squared in float64
        return
    reach = np.abs(rows.data) if sp.issparse(rows) else np.maximum(rows.max(axis=1), -rows.min(axis=1))
    if (name := _first(rows, reach > _LARGEST, where)) is not None:
        found = f"holds numbers above {_LARGEST:.0e}, whose squares are too large to add"
        raise BadValue(name, found, remedy="scale X down")


def check_chunk(
    chunk: Any, number: int = 0, n_features: int | None = None, dtype: np.dtype | None = None
) -> npt.NDArray:
    """Return a chunk as a dense 2-D float array; raise if its shape is wrong (errors call it chunk `number`)."""
    chunk = chunk.toarray() if sp.issparse(chunk) else np.asarray(unmasked(chunk, f"chunk {number}"))
    if chunk.ndim != 2:
        raise ValueError(f"chunk {number} has shape {chunk.shape}, expected 2-D (rows, n_features); a row x is x[None]")
    if n_features is not None and chunk.shape[1] != n_features:
        raise ValueError(f"chunk {number} has {chunk.shape[1]} features, expected {n_features} as in the first")
    if chunk.shape[1] == 0:
        raise ValueError(f"chunk {number} has 0 features, expected at least one")
    return as_floats(chunk, _float_type(chunk.dtype) if dtype is None else dtype)


def as_floats(block: Any, dtype: np.dtype) -> npt.NDArray:
    """Return a block as a C-contiguous array of `dtype`; copy only if necessary."""
    try:
        return np.asarray(block, dtype=dtype, order="C")
    except (TypeError, ValueError) as error:
        found = f"holds {np.asarray(block).dtype} entries ({error})"
        kind = BadType if isinstance(error, TypeError) else BadValue
        raise kind(None, found, "numbers", "encode them") from None


def _check_matrix(X: Any) -> npt.NDArray:
    unmasked(X)
    try:
        X = X if type(X) in (np.ndarray, np.memmap) else np.asarray(X)
    except ValueError:
        raise BadValue(None, "has rows of different lengths", "a 2-D array (n, n_features)") from None
    if X.ndim != 2:
        raise not_2d("X", X.shape)
    return X


def _open_file(path: Path) -> RowSource:
    if path.suffix == ".npy":
        return ArrayRows(_check_matrix(np.load(path, mmap_mode="r")))
    if path.suffix in (".parquet", ".pq"):
        return ParquetRows(path)
    raise ValueError(f"{path} ends in {path.suffix!r}, expected .npy or .parquet; load other files and pass the array")


def _is_chunks(X: Any) -> bool:
    return len(X) > 0 and (sp.issparse(X[0]) or getattr(X[0], "ndim", 0) == 2)


def _float_type(dtype: Any) -> np.dtype:
    try:
        dtype = np.dtype(dtype)
    except TypeError:  # a dtype of another library; its values are converted block by block
        return np.dtype(np.float32 if "float32" in str(dtype) else np.float64)
    if dtype.kind == "c":
        raise not_real()
    return np.dtype(np.float32) if dtype == np.float32 else np.dtype(np.float64)


def _is_number(kind: Any) -> bool:
    """Return whether the Arrow type `kind` is a floating, integer or boolean type."""
    from pyarrow import types

    return types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind)
