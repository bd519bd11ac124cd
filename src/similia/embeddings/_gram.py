"""Entries of a kernel matrix, computed when asked for and checked as they arrive.

The landmark strategies and `Nystroem` see a kernel only through this window: a block of rows and
columns, whole columns, the diagonal. Nothing of size n x n is ever formed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from similia._config import rows_per_block
from similia.objects import n_objects, take

Index = npt.NDArray[np.int64]
_DIAGONAL_BLOCK = 32  # rows per call for a kernel without diag(): 32 values computed for each one kept


class Gram:
    """The kernel matrix of a collection of objects under a callable kernel.

    Attributes
    ----------
    X : collection of objects
        In the layout the kernel works on.
    n : int
        Number of objects.
    """

    def __init__(self, kernel: Callable[..., Any], X: Any) -> None:
        self.kernel = kernel
        self.X = as_objects(kernel, X)
        self.n = n_objects(self.X)
        if self.n == 0:
            raise ValueError("X is empty: found 0 objects, expected at least one")

    def block(self, rows: npt.ArrayLike, columns: npt.ArrayLike) -> npt.NDArray:
        """Return k(X[rows], X[columns]), shape (n_rows, n_columns), float32 or float64."""
        rows, columns = np.asarray(rows), np.asarray(columns)
        values = evaluate(self.kernel, take(self.X, rows), take(self.X, columns))
        return check_finite(values, rows, columns, "X[{}] and X[{}]")

    def columns(self, indices: npt.ArrayLike) -> npt.NDArray:
        """Return k(X, X[indices]), shape (n, n_indices), computed in blocks of rows."""
        indices = np.asarray(indices)
        blocks = [self.block(rows, indices) for rows in row_blocks(self.n, 8 * max(1, len(indices)))]
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)

    def diagonal(self) -> npt.NDArray:
        """Return k(x, x) for all objects, float64 (n,), by the kernel's ``diag`` where it has one."""
        if not hasattr(self.kernel, "diag"):
            starts = range(0, self.n, _DIAGONAL_BLOCK)
            rows = [np.arange(i, min(i + _DIAGONAL_BLOCK, self.n)) for i in starts]
            return np.concatenate([self.block(r, r).diagonal() for r in rows]).astype(np.float64)
        values = as_floats(self.kernel.diag(self.X), "kernel.diag returned")
        if values.shape != (self.n,):
            raise ValueError(
                f"kernel.diag returned shape {values.shape}, expected ({self.n},), a value for each object"
            )
        return check_finite(values[:, None], range(self.n), [0], "X[{}] and itself")[:, 0].astype(np.float64)

    def eps(self) -> float:
        """Return the machine precision of the kernel values: float32 kernels carry more rounding."""
        return float(np.finfo(self.block([0], [0]).dtype).eps)


class PrecomputedGram(Gram):
    """A kernel matrix that is already there: all of it, or the columns of some objects only.

    Parameters
    ----------
    K : ndarray of float32 or float64, shape (n, n) or (n, n_columns)
    columns : ndarray of int64, shape (n_columns,), optional
        Objects that the columns belong to; all of them if not given.
    """

    kernel: Any

    def __init__(self, K: npt.NDArray, columns: Index | None = None) -> None:
        self.kernel = "precomputed"
        self.X = K
        self.n = len(K)
        self._position = np.arange(self.n)
        if columns is not None:
            self._position[columns] = np.arange(len(columns))

    def block(self, rows: npt.ArrayLike, columns: npt.ArrayLike) -> npt.NDArray:
        rows, columns = np.asarray(rows), np.asarray(columns)
        values = self.X[np.ix_(rows, self._position[columns])]
        return check_finite(values, rows, columns, "objects {} and {}")

    def diagonal(self) -> npt.NDArray:
        values = self.X.diagonal()[:, None]
        return check_finite(values, range(self.n), [0], "object {} and itself")[:, 0].astype(np.float64)


def as_objects(kernel: Any, X: Any) -> Any:
    """Return `X` in the layout `kernel` works on: its ``as_objects`` hook, or `X` itself."""
    return kernel.as_objects(X) if hasattr(kernel, "as_objects") else X


def row_blocks(n: int, bytes_per_row: int) -> Iterator[Index]:
    """Yield the row numbers 0, ..., n - 1 in blocks that fit into ``config(max_memory)``."""
    step = rows_per_block(bytes_per_row)
    for start in range(0, n, step):
        yield np.arange(start, min(start + step, n))


def evaluate(kernel: Callable[..., Any], X: Any, Y: Any) -> npt.NDArray:
    """Return k(X, Y) as a float32 or float64 array, or raise if it has not the shape (n, m)."""
    values = kernel(X, Y)
    expected = (n_objects(X), n_objects(Y))
    if getattr(values, "shape", np.shape(values)) != expected:
        raise ValueError(
            f"the kernel returned shape {np.shape(values)} for {expected[0]} x {expected[1]} objects, "
            f"expected {expected}; lift a function of two objects with similia.pairwise(f)"
        )
    return as_floats(values, "the kernel returned")


def as_floats(values: Any, subject: str) -> npt.NDArray:
    """Return a dense float32 or float64 array, or raise if the values are not real numbers."""
    values = values.toarray() if sp.issparse(values) else np.asarray(values)
    if values.dtype.kind not in "biuf":
        raise TypeError(f"{subject} values of dtype {values.dtype}, expected real numbers (float64)")
    return values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)


def check_finite(
    values: npt.NDArray, rows: npt.ArrayLike | range, columns: npt.ArrayLike | range, pair: str
) -> npt.NDArray:
    """Return `values`, or raise naming, in the words of `pair`, the first pair with NaN or infinity."""
    finite = np.isfinite(values)
    if not finite.all():
        i, j = np.argwhere(~finite)[0]
        found = pair.format(np.asarray(rows)[i], np.asarray(columns)[j])
        raise ValueError(
            f"the kernel value of {found} is {values[i, j]}, expected a finite number; "
            "look at these two objects (empty? NaN inside?)"
        )
    return values
