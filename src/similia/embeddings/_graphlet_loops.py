"""Loops that average Fourier features over graphlets without one cosine per sample.

A pattern is the vector a of the adjacency bits of a graphlet, so exp(i (w . a + b)) is exp(i b) times one factor for
each bit that is 1. Each group of eight bits has a table of its 256 possible products, so one feature of a pattern costs
one complex product for every eight bits. The feature is computed once for all graphs that have the pattern. Features
are computed in tiles of `WIDTH` columns: the tile of all patterns stays in cache while the sums of the graphs read it.

A tile of 32 features for size 6, 300 graphs and 8000 patterns takes 0.04 ms for the products and 0.44 ms for the sums,
both in SIMD registers (`similia.core.lanes`). Rejected: plain loops (0.23 and 0.65 ms); two tiles of 16 features (0.04
and 0.61 ms); sgemm for the most frequent patterns (0.35 ms for the sums, not worth a second path). Memory: one tile per
thread. If the tiles would take too much of ``max_memory``, each half of the graphs is handled with its own patterns.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from similia.core import lanes as lane
from similia.core.config import rows_per_block
from similia.core.functions import cos_sin_of_quarters
from similia.core.jit import njit
from similia.core.lanes import LANES
from similia.core.threads import n_threads, run_in_ranges

WIDTH = 2 * LANES  # number of features in a tile
_BITS = 8  # number of adjacency bits that index one table

Floats = npt.NDArray[np.float32]


def mean_waves(
    codes: npt.NDArray[np.uint64],
    offsets: npt.NDArray[np.int64],
    places: npt.NDArray[np.int64],
    shares: Floats,
    frequencies: npt.NDArray[np.float64],
    phases: npt.NDArray[np.float64],
    sines: bool,
) -> Floats:
    """Return for each graph the weighted mean of cos(w . a + b) over its patterns a and, if `sines`, of sin(w . a + b).

    The result is (n_graphs, m), or (n_graphs, 2 m) with the cosines first. `codes` holds the distinct patterns. Slice
    ``offsets[g]:offsets[g + 1]`` of `places` (positions in `codes`) and of `shares` (weights) belongs to graph g.
    `frequencies` (n_bits, m) holds the vectors w as columns, `phases` (m,) the numbers b.
    """
    m, n_graphs = len(phases), len(offsets) - 1
    if n_graphs > 1 and len(codes) > rows_per_block(8 * WIDTH * n_threads()):
        parts = []
        for first, last in ((0, n_graphs // 2), (n_graphs // 2, n_graphs)):
            entries = slice(offsets[first], offsets[last])
            kept, inside = np.unique(places[entries], return_inverse=True)
            here = offsets[first : last + 1] - offsets[first]
            parts.append(mean_waves(codes[kept], here, inside, shares[entries], frequencies, phases, sines))
        return np.concatenate(parts)
    out = np.empty((n_graphs, (1 + sines) * m), dtype=np.float32)

    def work(start: int, stop: int) -> None:
        room, sums = (np.empty(WIDTH * n, dtype=np.float32) for n in (len(codes), n_graphs))
        for first in range(start * WIDTH, min(m, stop * WIDTH), WIDTH):
            last = min(m, first + WIDTH)
            for part in range(1 + sines):
                shifted = phases[first:last] - part * np.pi / 2  # a sine is a cosine a quarter later
                tables = _tables(frequencies[:, first:last], shifted)
                _waves(codes, tables[0].ravel(), tables[1].ravel(), room)
                _gather(offsets, places, shares, room, sums)
                out[:, part * m + first : part * m + last] = sums.reshape(n_graphs, WIDTH)[:, : last - first]

    run_in_ranges(work, -(-m // WIDTH), 1)
    return out


def _tables(frequencies: npt.NDArray[np.float64], phases: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Return factors whose product is exp(i (w . a + b)) for a pattern a, as tables: (2, n_tables, 256, WIDTH).

    The first axis holds real, then imaginary parts; the last axis, up to `WIDTH` features. The w are the columns of
    `frequencies`, the b are `phases`. Table t has one row for each value of the byte of bits 8 t to 8 t + 7 of a. The
    first table also includes exp(i b).
    """
    n_bits, m = frequencies.shape
    tables = np.zeros((2, -(-n_bits // _BITS), 1 << _BITS, WIDTH))
    tables[0, :, 0] = 1
    tables[:, 0, 0, :m] = cos_sin_of_quarters(phases * (2 / np.pi))
    for bit in range(n_bits):
        c, s = cos_sin_of_quarters(frequencies[bit] * (2 / np.pi))
        (x, y), half = tables[:, bit // _BITS, :, :m], 1 << bit % _BITS
        # Real products: the rounding of numpy's complex products depends on the processor.
        x[half : 2 * half] = x[:half] * c - y[:half] * s
        y[half : 2 * half] = x[:half] * s + y[:half] * c
    return tables.astype(np.float32)


@njit()
def _waves(codes, real, imag, out):  # type: ignore[no-untyped-def]
    """Fill `out` with the real part, for each code, of the product of the rows of the tables that its bytes select."""
    last, low_byte, table = len(real) // (WIDTH << _BITS) - 1, np.uint64(255), WIDTH << _BITS
    for p in range(len(codes)):
        code = codes[p]
        for c in range(0, WIDTH, LANES):
            at = WIDTH * np.int64(code & low_byte) + c
            x, y = lane.load(real, at), lane.load(imag, at)
            for t in range(1, last):
                at = table * t + WIDTH * np.int64((code >> np.uint64(_BITS * t)) & low_byte) + c
                u, v = lane.load(real, at), lane.load(imag, at)
                x, y = x * u - y * v, x * v + y * u
            if last:
                at = table * last + WIDTH * np.int64((code >> np.uint64(_BITS * last)) & low_byte) + c
                x = x * lane.load(real, at) - y * lane.load(imag, at)
            lane.store(out, WIDTH * p + c, x)


@njit()
def _gather(offsets, places, shares, features, out):  # type: ignore[no-untyped-def]
    """Fill row g of `out` with the sum of ``shares[e] * features[places[e]]`` over the entries e of graph g.

    Entries alternate between two partial sums: in a single sum, each addition would wait for the one before.
    """
    for g in range(len(offsets) - 1):
        e, end = offsets[g], offsets[g + 1]
        zero = lane.splat(np.float32(0))
        a, b, c, d = zero, zero, zero, zero
        while e + 2 <= end:
            share, at = lane.splat(shares[e]), WIDTH * places[e]
            a = lane.multiply_add(share, lane.load(features, at), a)
            b = lane.multiply_add(share, lane.load(features, at + LANES), b)
            share, at = lane.splat(shares[e + 1]), WIDTH * places[e + 1]
            c = lane.multiply_add(share, lane.load(features, at), c)
            d = lane.multiply_add(share, lane.load(features, at + LANES), d)
            e += 2
        if e < end:
            share, at = lane.splat(shares[e]), WIDTH * places[e]
            a = lane.multiply_add(share, lane.load(features, at), a)
            b = lane.multiply_add(share, lane.load(features, at + LANES), b)
        lane.store(out, WIDTH * g, a + c)
        lane.store(out, WIDTH * g + LANES, b + d)


@njit()
def add_shares(offsets, places, weights, features, start, stop, out):  # type: ignore[no-untyped-def]
    """Add ``weights[e] * features[places[e]]`` to ``out[g]`` for all entries e of the graphs g in start..stop - 1."""
    for g in range(start, stop):
        row = out[g]
        for e in range(offsets[g], offsets[g + 1]):
            weight, feature = weights[e], features[places[e]]
            for j in range(len(row)):
                row[j] += weight * feature[j]
