"""Rows onto directions, block by block: one sgemm, whose tiles are of one shape, so that a row's result is its own."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from similia._threads import one_blas_thread
from similia.codes._generalized_nystroem import TILE, Floats, in_tiles
from similia.codes._row_sources import RowSource, check_rows


def projected(
    source: RowSource, components: npt.NDArray, offset: Floats, out: npt.NDArray | None = None
) -> Iterator[npt.NDArray]:
    """Yield ``rows @ components.T - offset`` of each block, written to its part of `out` if given."""
    B = components.astype(source.dtype, copy=False)
    start = 0
    for block in source.blocks(whole=out is not None):
        n = block.shape[0]
        Z = np.empty((n, len(B)), source.dtype) if out is None else out[start : start + n]
        if sp.issparse(block):
            np.subtract(block @ B.T, offset.astype(source.dtype), out=Z)
        else:
            project_rows(block, B, offset, Z)
        if (bad := first_bad_row(Z)) is not None:
            check_rows(block[bad : bad + 1], start + bad)
            raise ValueError(f"X[{start + bad}] is too large for sums in {source.dtype}; scale the data")
        yield Z
        start += n


def project_rows(X: npt.NDArray, components: npt.NDArray, offset: Floats, out: npt.NDArray) -> None:
    """Fill `out` with ``X @ components.T - offset``; a row's result depends on that row alone, bit for bit.

    BLAS, at one thread, sees blocks of one shape only. 256 rows cost a single query little and full blocks 4 %.
    """
    dtype = components.dtype
    offset = offset.astype(dtype)

    def fill(start: int, stop: int) -> None:
        for i in range(start, stop, TILE):
            rows = X[i : min(stop, i + TILE)]
            block = np.ascontiguousarray(rows, dtype=dtype)
            if len(block) < TILE:
                block = np.concatenate([block, np.zeros((TILE - len(block), block.shape[1]), dtype)])
            with np.errstate(all="ignore"):  # what is not finite is found in the product
                np.subtract((block @ components.T)[: len(rows)], offset, out=out[i : i + len(rows)])

    with one_blas_thread():
        in_tiles(fill, len(X), TILE, X.size * len(components))


def offset_of(components: npt.NDArray, mean: Floats) -> Floats:
    """Return ``components @ mean`` in float64."""
    with one_blas_thread():
        return components.astype(np.float64) @ mean


def first_bad_row(product: npt.NDArray) -> int | None:
    """Return the first row whose product is not finite, or None."""
    if np.isfinite(product).all():
        return None
    return int(np.argmin(np.isfinite(product).all(axis=1)))
