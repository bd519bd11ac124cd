"""Rows onto directions, block by block; the result of a row depends on that row alone, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from similia.codes._generalized_nystroem import Floats
from similia.codes._row_sources import RowSource, check_rows
from similia.core.products import row_product


def projected(
    source: RowSource, components: npt.NDArray, offset: Floats, out: npt.NDArray | None = None
) -> Iterator[npt.NDArray]:
    """Yield ``rows @ components.T - offset`` of each block, written to its part of `out` if given."""
    directions, shift = components, offset.astype(components.dtype)
    start = 0
    for block in source.blocks(whole=out is not None):
        n = block.shape[0]
        Z = np.empty((n, len(directions)), components.dtype) if out is None else out[start : start + n]
        if sp.issparse(block):
            Z[:] = block.astype(Z.dtype, copy=False) @ directions.T
        else:
            row_product(block, directions.T, Z)
        with np.errstate(all="ignore"):  # what is not finite is found below
            Z -= shift
        if (bad := first_bad_row(Z)) is not None:
            check_rows(block[bad : bad + 1], start + bad)
            raise ValueError(f"X[{start + bad}] is too large for sums in {Z.dtype}; scale the data")
        yield Z
        start += n


def offset_of(components: npt.NDArray, mean: Floats) -> Floats:
    """Return ``components @ mean`` in float64."""
    return row_product(components, mean[:, None])[:, 0]


def first_bad_row(product: npt.NDArray) -> int | None:
    """Return the first row whose product is not finite, or None."""
    if np.isfinite(product).all():
        return None
    return int(np.argmin(np.isfinite(product).all(axis=1)))
