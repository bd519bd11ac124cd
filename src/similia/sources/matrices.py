"""Sources of the rows of a matrix: arrays, memory maps, sparse rows, files, chunked stores and iterables of chunks.

Unlike other sources, these keep float32 and yield sparse data as CSR rows. Where the storage format allows it,
`take_blocks` reads only the requested rows.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from similia.core.config import rows_per_block
from similia.core.validation import BadFile, BadType, BadValue, not_2d, not_real, too_narrow, unmasked
from similia.objects.sequences import as_csr
from similia.sources.dask import Distributed, whole_part
from similia.sources.rows import index_columns, parquet_file
from similia.sources.source import Chunk, Chunks, Source

Indices = npt.NDArray[np.int64]
_MOST_ROWS = 2**14
_LARGEST = 1e150  # sums of the squares of larger numbers may overflow


class MatrixSource(Source):
    """Base class of sources whose objects are the rows of a matrix, dense or CSR.

    `dtype` is float32 for float32 data, otherwise float64. If the length `n` is not known (None), the rows can be read
    only once, in order.
    """

    kind = "vectors"
    n_features: int
    dtype: np.dtype

    @abstractmethod
    def blocks(self, whole: bool = False) -> Iterator[Any]:
        """Yield all rows in order, in blocks; if `whole`, yield a numeric array or memory map as a single block."""

    @abstractmethod
    def take_blocks(self, indices: Indices) -> Iterator[Any]:
        """Yield the rows at sorted, distinct `indices`, in blocks that the caller may overwrite."""

    def chunks(self, start: int = 0) -> Chunks:
        stop = 0
        for rows in self.blocks():
            first, stop = stop, stop + rows.shape[0]
            if stop > start:
                skipped = max(0, start - first)
                yield Chunk(rows[skipped:] if skipped else rows, None, first + skipped, stop)

    def take(self, indices: npt.ArrayLike) -> Any:
        wanted, order = np.unique(np.asarray(indices, np.int64), return_inverse=True)
        rows = self.take_sorted(wanted)
        return rows if np.array_equal(order, np.arange(len(wanted))) else rows[order]

    def take_sorted(self, indices: Indices) -> Any:
        """Return a copy of the rows at sorted, distinct `indices` as one dense or CSR matrix."""
        blocks = list(self.take_blocks(indices))
        if len(blocks) == 1:
            return blocks[0]
        return sp.csr_array(sp.vstack(blocks)) if sp.issparse(blocks[0]) else np.concatenate(blocks)

    def fingerprint(self) -> str:
        if not self.again:
            raise ValueError(f"a {self.source} has no fingerprint, because it may be readable only once; use a file")
        digest = hashlib.blake2b(f"{self.dtype} {self.n} {self.n_features}".encode(), digest_size=16)
        for rows in self.blocks():
            for part in dense_parts(rows):
                digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()

    @property
    def row_bytes(self) -> float:
        """Number of bytes that one row takes in memory (the mean for sparse rows)."""
        return self.n_features * self.dtype.itemsize

    @property
    def _step(self) -> int:
        return rows_per_block(64 * self.n_features, at_most=_MOST_ROWS)


class ArrayMatrix(MatrixSource):
    """Rows of an array, a memory map, or an object with `shape` and ``[rows]``, such as those of h5py and zarr."""

    def __init__(self, X: Any) -> None:
        self._X, self.source = X, type(X).__name__
        self.n, self.n_features = map(int, X.shape)
        self.dtype = _float_type(getattr(X, "dtype", np.float64))
        chunks = getattr(X, "chunks", None)
        self._chunk = int(chunks[0]) if chunks and not callable(chunks) and isinstance(chunks[0], int) else None

    def blocks(self, whole: bool = False) -> Iterator[npt.NDArray]:
        if whole and isinstance(self._X, np.ndarray) and self._X.dtype.kind in "fiub":
            yield self._X
            return
        n, step = self.n or 0, self._step
        if self._chunk:  # whole chunks: reading a part of a chunk costs as much as all of it
            step = max(self._chunk, step - step % self._chunk)
        for start in range(0, n, step):
            yield as_floats(self._X[start : min(n, start + step)], self.dtype)

    def take_blocks(self, indices: Indices) -> Iterator[npt.NDArray]:
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


class DistributedMatrix(MatrixSource):
    def __init__(self, X: Distributed) -> None:
        X = X.converted(_dense_or_sparse)
        example = X.example()
        self._X, self.n, self.n_features = X, len(X), int(example.shape[1])
        self.source, self.again = X.source, X.again
        self._sparse, self.dtype = sp.issparse(example), _float_type(example.dtype)

    @property
    def row_bytes(self) -> float:
        return super().row_bytes if not self._sparse else 2 * super().row_bytes

    def blocks(self, whole: bool = False) -> Iterator[Any]:
        for rows in self._X.blocks(self._step).map(whole_part, few=True):
            yield self._rows(rows)

    def take_blocks(self, indices: Indices) -> Iterator[Any]:
        # in large steps, because each `take` computes the parts of the collection that it reads again
        step = self._step * max(1, rows_per_block(int(4 * self.row_bytes)) // self._step)
        for start in range(0, len(indices), step):
            rows = self._rows(self._X.take(indices[start : start + step]))
            for first in range(0, rows.shape[0], self._step):  # cut as for arrays: same order of sums
                yield rows[first : first + self._step]

    def _rows(self, rows: Any) -> Any:
        return as_csr(rows).astype(self.dtype) if self._sparse else as_floats(rows, self.dtype)


class SparseMatrix(MatrixSource):
    """Rows of a scipy.sparse matrix; blocks are CSR."""

    def __init__(self, X: Any) -> None:
        self.n, self.n_features = map(int, X.shape)
        self.dtype, self._X, self.source = _float_type(X.dtype), as_csr(X), type(X).__name__

    @property
    def row_bytes(self) -> float:
        return 16 * (1 + self._X.nnz / max(1, self.n or 0))

    def blocks(self, whole: bool = False) -> Iterator[sp.csr_array]:
        return self.take_blocks(np.arange(self.n or 0))

    def take_blocks(self, indices: Indices) -> Iterator[sp.csr_array]:
        for start in range(0, len(indices), _MOST_ROWS):
            yield self._X[indices[start : start + _MOST_ROWS]].astype(self.dtype)


class ParquetMatrix(MatrixSource):
    """Rows of a Parquet file: one numeric column for each feature, or a single column of lists.

    Columns in which pandas stored the index of a data frame are left out.
    """

    def __init__(self, path: Path) -> None:
        self._path, self.source, self.size = path, str(path), path.stat().st_size
        with parquet_file(path) as file:
            schema, meta = file.schema_arrow, file.metadata
            index = index_columns(path, schema)
            self._columns = [j for j, name in enumerate(schema.names) if name not in index]
            names, kinds = [schema.names[j] for j in self._columns], [schema.types[j] for j in self._columns]
            if not names:
                raise BadFile(path, "has no columns; write a file of the features")
            self._is_list = len(kinds) == 1 and hasattr(kinds[0], "value_type")
            values = [kinds[0].value_type] if self._is_list else kinds
            if wrong := [n for n, kind in zip(names, values, strict=True) if not _is_number(kind)]:
                raise BadFile(path, f"has no numbers in column {wrong[0]!r}; write a file of the features only")
            self.n = int(meta.num_rows)
            self.n_features = len(kinds)
            self.dtype = np.dtype(np.float32 if {str(kind) for kind in values} == {"float"} else np.float64)
            self._groups = np.cumsum([0, *(meta.row_group(g).num_rows for g in range(meta.num_row_groups))])
            if self._is_list:
                first = next(file.iter_batches(batch_size=1), None)
                self.n_features = 0 if first is None else len(first.column(self._columns[0])[0].as_py() or ())

    def blocks(self, whole: bool = False) -> Iterator[npt.NDArray]:
        with parquet_file(self._path) as file:
            for batch in file.iter_batches(batch_size=self._step):
                yield self._matrix(batch)

    def take_blocks(self, indices: Indices) -> Iterator[npt.NDArray]:
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
            columns = [column.to_numpy(zero_copy_only=False) for column in map(batch.column, self._columns)]
            return as_floats(np.column_stack(columns), self.dtype)
        import pyarrow.compute as compute

        lists = batch.column(self._columns[0])
        lengths = compute.list_value_length(lists).to_numpy(zero_copy_only=False)  # NaN for a missing list
        if (lengths != self.n_features).any():
            raise BadFile(self._path, f"has lists that are not all of length {self.n_features}; write equal lengths")
        return as_floats(
            np.array(lists.flatten().to_numpy(zero_copy_only=False)).reshape(len(batch), self.n_features), self.dtype
        )


class ChunkedMatrix(MatrixSource):
    """Rows of an iterable of 2-D chunks, which can be read only once."""

    again = False

    def __init__(self, chunks: Iterable[Any]) -> None:
        self._chunks, self.source = iter(chunks), type(chunks).__name__
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

    def take_blocks(self, indices: Indices) -> Iterator[npt.NDArray]:
        raise ValueError(
            f"the rows of a {self.source} can be read only once, in order; pass an array or a file instead"
        )


def open_matrix(X: Any) -> MatrixSource:
    """Return `X` as a `MatrixSource`; raise an error that lists the accepted types if this is impossible."""
    if isinstance(X, MatrixSource):
        return X
    if isinstance(X, Distributed):
        source: MatrixSource = DistributedMatrix(X)
    elif isinstance(X, Source):
        if X.kind != "vectors":
            raise ValueError(f"X holds {X.called}, expected vectors; convert them first, e.g. with similia.Nystroem")
        return ChunkedMatrix(chunk.objects for chunk in X.chunks())
    elif sp.issparse(X):
        source = SparseMatrix(X)
    elif isinstance(X, (str, Path)):
        source = _open_file(Path(X))
    elif isinstance(X, np.ndarray) or hasattr(X, "to_numpy") or (isinstance(X, (list, tuple)) and not _is_chunks(X)):
        source = ArrayMatrix(_check_matrix(X))
    elif hasattr(X, "shape") and hasattr(X, "__getitem__"):
        if len(X.shape) != 2:
            raise ValueError(f"X must be 2-D (n, n_features), got shape {tuple(X.shape)}")
        source = ArrayMatrix(X)
    elif isinstance(X, Iterable):
        return ChunkedMatrix(X)
    elif hasattr(X, "__array__"):
        return open_matrix(np.asarray(X))
    else:
        raise BadValue(
            None,
            f"is a {type(X).__name__}",
            "a 2-D array, a sparse matrix, an object with shape and row access, the path of a .npy or .parquet file, "
            "or an iterable of 2-D chunks",
        )
    if not source.n:
        raise BadValue(None, "is empty: found 0 vectors", "at least one")
    if source.n_features == 0:
        raise too_narrow("X", (source.n, 0))
    return source


def dense_parts(rows: Any) -> Iterator[npt.NDArray]:
    """Yield dense or CSR rows as dense blocks, in order."""
    step = rows_per_block(64 * rows.shape[1]) if sp.issparse(rows) else max(1, rows.shape[0])
    for start in range(0, rows.shape[0], step):
        part = rows[start : start + step]
        yield part.toarray() if sp.issparse(part) else part


def check_rows(rows: Any, where: Indices | int) -> None:
    """Raise if a row holds NaN or infinity; the error names the first such row by its position in the source.

    `where` holds the positions of all rows or, if the rows are consecutive, is the position of the first.
    """
    sparse = sp.issparse(rows)
    bad = ~np.isfinite(rows.data) if sparse else ~np.isfinite(rows).all(axis=1)
    if (name := _first(rows, bad, where)) is not None:
        raise BadValue(name, "holds NaN or infinity", "finite numbers", "drop or impute that row")


def _first(rows: Any, bad: npt.NDArray[np.bool_], where: Indices | int) -> int | None:
    """Return the position of the first bad row in the source, or None; `bad` marks rows (for CSR, stored values)."""
    if not bad.any():
        return None
    row = int(bad.argmax())
    row = int(np.searchsorted(rows.indptr, row, side="right")) - 1 if sp.issparse(rows) else row
    return row + where if isinstance(where, int) else int(where[row])


def check_squares(rows: Any, where: Indices | int) -> None:
    """Raise if a row holds NaN, infinity or numbers whose squares are too large to add; `where` as in `check_rows`."""
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
    """Return chunk number `number` as a dense 2-D float array; raise if its shape is wrong."""
    chunk = chunk.toarray() if sp.issparse(chunk) else np.asarray(unmasked(chunk, f"chunk {number}"))
    if chunk.ndim != 2:
        raise ValueError(
            f"chunk {number} has shape {chunk.shape}, expected 2-D (rows, n_features); pass a single row x as x[None]"
        )
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
    given = X
    try:
        X = X if type(X) in (np.ndarray, np.memmap) else np.asarray(X)
    except ValueError:
        raise BadValue(None, "has rows of different lengths", "a 2-D array (n, n_features)") from None
    if X.ndim != 2:
        raise not_2d("X", X.shape, given)
    return X


def _dense_or_sparse(part: Any) -> Any:
    return part if sp.issparse(part) else _check_matrix(part)


def _open_file(path: Path) -> MatrixSource:
    if path.suffix == ".npy":
        return ArrayMatrix(_check_matrix(np.load(path, mmap_mode="r")))
    if path.suffix in (".parquet", ".pq"):
        return ParquetMatrix(path)
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
    from pyarrow import types

    return types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind)
