"""Random phases of vectors in a fixed order of summation, and their quarter turns as packed bits.

Phases are counted in quarter turns, so that a quarter is the integer part modulo 4. Each sum of a phase is taken in
one order (`core.products`), whatever the other rows: a phase next to the edge of a quarter never flips a bit with
the size of a block or the number of threads.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from similia.core.functions import cos_sin_of_quarters
from similia.core.jit import njit
from similia.core.products import panels, row_product
from similia.core.threads import run_in_ranges

Floats = npt.NDArray[np.float64]

_TILE_ROWS, _TILE_COLUMNS = 64, 512  # a float64 tile of 256 KiB stays in cache until it is packed


def encode(rows: Floats, frequencies: Floats, phases: Floats, out: npt.NDArray) -> None:
    """Write to `out` packed bits (uint8) or Fourier features (floats) of the phases ``rows @ frequencies + phases``."""

    def work(start: int, stop: int) -> None:
        buffer = np.empty((_TILE_ROWS, _TILE_COLUMNS))
        for column in range(0, len(phases), _TILE_COLUMNS):
            tile = panels(frequencies[:, column : column + _TILE_COLUMNS], stop - start)
            offsets = phases[column : column + _TILE_COLUMNS]
            for row in range(start, stop, _TILE_ROWS):
                last = min(stop, row + _TILE_ROWS)
                turned = buffer.reshape(-1)[: (last - row) * len(offsets)].reshape(last - row, len(offsets))
                row_product(rows[row:last], tile, turned, threads=False)
                turned += offsets
                if out.dtype == np.uint8:
                    _pack_quarters(turned, out[row:last, column // 4 :])
                else:
                    _waves(turned, out[row:last, 2 * column :], len(phases))

    run_in_ranges(work, len(rows), _TILE_ROWS)


def _waves(turned: Floats, out: npt.NDArray, n_phases: int) -> None:
    """Write cosine and sine of phases, in turn."""
    cosines, sines = cos_sin_of_quarters(turned, out.dtype)
    scale = out.dtype.type(n_phases**-0.5)
    width = 2 * turned.shape[1]
    out[:, 0:width:2] = scale * cosines
    out[:, 1:width:2] = scale * sines


@njit()
def _pack_quarters(turned, out):  # type: ignore[no-untyped-def]
    """Write, two bits a phase, the signs of its cosine and sine: 11, 01, 00, 10 for quarters 0, 1, 2, 3."""
    for i in range(turned.shape[0]):
        for byte in range(turned.shape[1] // 4):
            packed = 0
            for j in range(4 * byte, 4 * byte + 4):
                quarter = np.int64(np.floor(turned[i, j]))
                cosine = 1 ^ (((quarter + 1) >> 1) & 1)
                sine = 1 ^ ((quarter >> 1) & 1)
                packed = (packed << 2) | (cosine << 1) | sine
            out[i, byte] = packed
