"""Sums of kernels of graphlet codes over pairs of histograms, for the maximum mean discrepancy.

A tile of `LANES` graphs has a table: entry (row, lane) is the kernel mean of the lane's histogram at the code of
that row. What two histograms have in common is then one sum over the codes of the other. Every entry is summed in an
order of its own, so that equal histograms give equal numbers, to the last bit, wherever they stand.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from similia.core.config import settings
from similia.core.hashing import popcount
from similia.core.jit import njit
from similia.core.threads import n_threads, run_in_ranges
from similia.objects.graphlets import Patterns

Array = npt.NDArray[np.float64]
# Time of one pair of codes, and of one table entry and bit, in any one unit (measured).
_PAIR_COST, _TABLE_COST = 3, 1
_IN_CACHE = 2**14  # float64 values of a table: 128 KiB
LANES = 8  # graphs of a tile: their entries of one row fill one cache line


class _Histograms(NamedTuple):
    """Counts of codes with the row of a table that each code has."""

    codes: npt.NDArray[np.uint64]
    places: npt.NDArray[np.int64]
    counts: Array
    offsets: npt.NDArray[np.int64]


def pattern_sums(A: Patterns, B: Patterns | None, n_bits: int, rho: float) -> tuple[Array, Array, Array]:
    """Return the sums of rho**hamming over the samples of each pair of graphs, and over those of each graph twice."""
    tables = _Tables(A, B, n_bits, rho)
    n = len(A.offsets) - 1
    out, own_a = np.empty((n, n if B is None else len(B.offsets) - 1)), np.empty(n)
    tables.fill(out, own_a, tables.a, tables.b, same=B is None)
    if B is None:
        return out, own_a, own_a
    own_b = np.empty(out.shape[1])
    tables.fill(None, own_b, tables.b, tables.b, same=False)
    return out, own_a, own_b


class _Tables:
    """Tables of kernel means, made in the way that takes less time here.

    A table has a row for each distinct code; or, for the kernel rho**hamming, for each code there is.
    """

    def __init__(self, A: Patterns, B: Patterns | None, n_bits: int, rho: float) -> None:
        codes = A.codes if B is None else np.concatenate([A.codes, B.codes])
        distinct, places = np.unique(codes, return_inverse=True)
        n_graphs = len(A.offsets) - 1 + (0 if B is None else len(B.offsets) - 1)
        self.rho, self.powers = rho, rho ** np.arange(n_bits + 1.0)
        self.all_codes = rho > 0 and _whole_table_pays(n_bits, n_graphs, len(distinct), len(codes))
        self.distinct, self.n_rows = distinct, 1 << n_bits if self.all_codes else len(distinct)
        places = codes if self.all_codes else places
        self.a = _histograms(A, places[: len(A.codes)])
        self.b = self.a if B is None else _histograms(B, places[len(A.codes) :])

    def fill(self, out: Array | None, own: Array, A: _Histograms, B: _Histograms, *, same: bool) -> None:
        """Write the sums over pairs of A and B into `out` (if any), those over pairs of one of A into `own`."""
        by_pairs = self.rho > 0 and not self.all_codes
        last = np.full(self.n_rows if by_pairs else 0, -1)  # graph of B that needs the row last
        if by_pairs:
            last[B.places] = np.repeat(np.arange(len(B.offsets) - 1), np.diff(B.offsets))

        def tiles(start: int, stop: int) -> None:
            table = np.empty((self.n_rows, LANES))
            for first in range(start, stop, LANES):
                lanes = (first, min(LANES, stop - first))
                if by_pairs:
                    own_pairs(self.powers, A.codes, A.counts, A.offsets, *lanes, own)
                    if out is not None:
                        rows = np.flatnonzero(last >= (first if same else 0))
                        smooth_pairs(
                            self.distinct[rows], rows, self.powers, A.codes, A.counts, A.offsets, *lanes, table
                        )
                else:
                    scatter(A.places, A.counts, A.offsets, *lanes, table)
                    if self.all_codes:
                        smooth_all(table, self.rho)
                    gather_own(table, A.places, A.counts, A.offsets, *lanes, own)
                if out is not None:
                    gather(table, B.places, B.counts, B.offsets, *lanes, first if same else 0, same, out)

        run_in_ranges(tiles, len(own), LANES)


def _whole_table_pays(n_bits: int, n_graphs: int, n_distinct: int, n_entries: int) -> bool:
    """Return whether a table of all codes takes less time than the pairs of codes, and fits into memory."""
    n_bytes = 64 * n_threads() * 2.0**n_bits
    pairs = _PAIR_COST * float(n_distinct) * n_entries
    return n_bytes <= settings().max_memory and n_graphs * 2.0**n_bits * n_bits * _TABLE_COST < pairs


def _histograms(A: Patterns, places: npt.NDArray) -> _Histograms:
    return _Histograms(
        np.ascontiguousarray(A.codes), np.ascontiguousarray(places, np.int64), A.counts.astype(np.float64), A.offsets
    )


def joined(parts: list[Patterns]) -> Patterns:
    """Return the rows of all parts as one."""
    if len(parts) == 1:
        return parts[0]
    offsets = np.concatenate(([0], np.cumsum(np.concatenate([np.diff(part.offsets) for part in parts]))))
    codes, counts = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    return Patterns(codes, counts, offsets.astype(np.int64))


@njit()
def scatter(places, counts, offsets, first, count, table):  # type: ignore[no-untyped-def]
    """Write the histograms first, ..., first + count - 1 into `table`, shape (rows, LANES), zero elsewhere."""
    table[:] = 0.0
    for lane in range(count):
        for e in range(offsets[first + lane], offsets[first + lane + 1]):
            table[places[e], lane] = counts[e]


@njit()
def smooth_all(table, rho):  # type: ignore[no-untyped-def]
    """Apply the kernel rho**hamming(a, b) in place to a table of all codes: it is a product over the bits."""
    flat = table.ravel()
    piece = len(flat)
    while piece > _IN_CACHE:  # passes over everything, until pieces that stay in cache can be finished one by one
        piece //= 4
        _smooth_two_bits(flat, piece, rho)
    for begin in range(0, len(flat), piece):
        part = flat[begin : begin + piece]
        span = piece
        while span >= 4 * LANES:
            span //= 4
            _smooth_two_bits(part, span, rho)
        if span == 2 * LANES:
            for i in range(0, piece, 2 * LANES):
                for j in range(i, i + LANES):
                    part[j], part[j + LANES] = part[j] + rho * part[j + LANES], rho * part[j] + part[j + LANES]


@njit()
def _smooth_two_bits(values, span, rho):  # type: ignore[no-untyped-def]
    """Mix quadruples of values `span` apart."""
    for begin in range(0, len(values), 4 * span):
        a, b = values[begin : begin + span], values[begin + span : begin + 2 * span]
        c, d = values[begin + 2 * span : begin + 3 * span], values[begin + 3 * span : begin + 4 * span]
        for i in range(span):
            ab, ba, cd, dc = a[i] + rho * b[i], rho * a[i] + b[i], c[i] + rho * d[i], rho * c[i] + d[i]
            a[i], b[i], c[i], d[i] = ab + rho * cd, ba + rho * dc, rho * ab + cd, rho * ba + dc


@njit()
def smooth_pairs(wanted, rows, powers, codes, counts, offsets, first, count, table):  # type: ignore[no-untyped-def]
    """Write sums of ``powers[hamming]`` times count over each histogram, at the codes `wanted`, to these rows."""
    for lane in range(count):
        begin, end = offsets[first + lane], offsets[first + lane + 1]
        whole = len(wanted) - len(wanted) % 4
        for c in range(0, whole, 4):  # four sums at a time, none waiting for the other
            c0, c1, c2, c3 = wanted[c], wanted[c + 1], wanted[c + 2], wanted[c + 3]
            s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
            for e in range(begin, end):
                code, n = codes[e], counts[e]
                s0 += n * powers[popcount(c0 ^ code)]
                s1 += n * powers[popcount(c1 ^ code)]
                s2 += n * powers[popcount(c2 ^ code)]
                s3 += n * powers[popcount(c3 ^ code)]
            table[rows[c], lane], table[rows[c + 1], lane] = s0, s1
            table[rows[c + 2], lane], table[rows[c + 3], lane] = s2, s3
        for c in range(whole, len(wanted)):
            table[rows[c], lane] = _kernel_sum(wanted[c], powers, codes, counts, begin, end)


@njit()
def own_pairs(powers, codes, counts, offsets, first, count, out):  # type: ignore[no-untyped-def]
    """Write ``out[first + lane]``, the sum of ``powers[hamming]`` over all pairs of one histogram."""
    for g in range(first, first + count):
        total = 0.0
        for e in range(offsets[g], offsets[g + 1]):
            total += counts[e] * _kernel_sum(codes[e], powers, codes, counts, offsets[g], offsets[g + 1])
        out[g] = total


@njit()
def _kernel_sum(wanted, powers, codes, counts, begin, end):  # type: ignore[no-untyped-def]
    total = 0.0
    for e in range(begin, end):
        total += counts[e] * powers[popcount(wanted ^ codes[e])]
    return total


@njit()
def gather(table, places, counts, offsets, first, count, start, same, out):  # type: ignore[no-untyped-def]
    """Write ``out[first + lane, h]``, the sum of the lane's table over histogram h, for h from `start` on.

    With `same`, rows and columns are one collection: h from the lane on, and ``out[h, first + lane]`` too.
    """
    total = np.empty(LANES)
    for h in range(start, len(offsets) - 1):
        total[:] = 0.0
        for e in range(offsets[h], offsets[h + 1]):
            row, n = places[e], counts[e]
            for lane in range(LANES):
                total[lane] += n * table[row, lane]
        for lane in range(count):
            g = first + lane
            if not same:
                out[g, h] = total[lane]
            elif h >= g:
                out[g, h] = out[h, g] = total[lane]


@njit()
def gather_own(table, places, counts, offsets, first, count, out):  # type: ignore[no-untyped-def]
    """Write ``out[first + lane]``, the sum of the lane's table over its own histogram."""
    for lane in range(count):
        total = 0.0
        for e in range(offsets[first + lane], offsets[first + lane + 1]):
            total += counts[e] * table[places[e], lane]
        out[first + lane] = total
