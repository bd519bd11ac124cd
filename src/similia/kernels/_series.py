"""What comparisons of all pairs of series share, and logarithms of sums over all alignments of two series.

The sums are the global alignment kernel's and soft-DTW's.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from similia._jit import njit
from similia._threads import run_in_ranges
from similia.objects import SeriesBatch

_CELLS_PER_TASK = 200_000  # about a millisecond of work, many times what it costs to hand it to a thread


def share_rows(work: Callable[[int, int], None], X: SeriesBatch, n_columns: int) -> None:
    """Call ``work(start, stop)`` on ranges of the series of X over the cores, each to meet `n_columns` time points."""
    cells_per_row = max(1, len(X.values) // max(1, len(X)) * n_columns)
    run_in_ranges(work, len(X), max(1, _CELLS_PER_TASK // cells_per_row))


def log_sums(
    X: SeriesBatch, Y: SeriesBatch, how: tuple[float, bool, int, int, float], *, same: bool, centre: bool
) -> npt.NDArray[np.float64]:
    """Return log_sum(x, y) of all pairs, less the mean of log_sum(x, x) and log_sum(y, y) if `centre`.

    `how` is (rate, divisible, triangular) of `log_sum` and (steps, share) of `half_width`; `same` says that Y is X.
    """
    selves = [np.empty(0)] * 2
    if centre:
        own = self_log_sums(X, how)
        selves = [own, own if same else self_log_sums(Y, how)]
    sides = (X.values, X.offsets, selves[0], Y.values, Y.offsets, selves[1])
    out = np.empty((len(X), len(Y)))
    share_rows(lambda start, stop: _fill(*how, *sides, same, start, stop, out), X, len(Y.values))
    return out


def self_log_sums(X: SeriesBatch, how: tuple[float, bool, int, int, float]) -> npt.NDArray[np.float64]:
    """Return log_sum(x, x) of each series, shape (n,)."""
    out = np.empty(len(X))
    most = int(X.lengths.max(initial=0))
    share_rows(lambda start, stop: _fill_selves(*how, X.values, X.offsets, start, stop, out), X, most)
    return out


@njit()
def half_width(m, n, steps, share):  # type: ignore[no-untyped-def]
    """Return the largest abs(i - j) in a window of so many steps and share of the longer length, for lengths m and n.

    At least abs(m - n), without which no path would reach the end.
    """
    return max(max(steps, int(share * max(m, n) + 1e-9)), abs(m - n))


@njit()
def _squared(x, i, y, j):  # type: ignore[no-untyped-def]
    total = 0.0
    for k in range(x.shape[1]):
        total += (x[i, k] - y[j, k]) ** 2
    return total


@njit()
def log_sum(x, y, rate, divisible, triangular, band, row):  # type: ignore[no-untyped-def]
    """Return log sum over alignments of the product of local similarities.

    With e = exp(-rate ||x_i - y_j||^2) the local similarity is e (soft-DTW), or w e / (2 - w e) if `divisible`,
    with w = 1 - |i - j| / triangular where that is not 0. Cells with |i - j| > band are left out. Three similarities
    are added up as exp(. - largest), left and up first: exchanging x and y changes no bit. `row` has room for len(y).
    """
    m, n = len(x), len(y)
    row[:n] = -np.inf
    for i in range(m):
        first = max(0, i - band)
        diagonal = row[first - 1] if first > 0 else -np.inf
        if i == 0:
            diagonal = 0.0
        left = -np.inf
        for j in range(first, min(n, i + band + 1)):
            z, up = rate * _squared(x, i, y, j), row[j]
            largest = max(diagonal, max(up, left))
            here = -np.inf
            if largest > -np.inf:
                share = math.exp(diagonal - largest) + (math.exp(up - largest) + math.exp(left - largest))
                if divisible:
                    w = 1.0 - abs(i - j) / triangular if triangular > 0 else 1.0
                    share *= w / (2.0 - w * math.exp(-z))
                here = largest - z + math.log(share)
            diagonal, left, row[j] = up, here, here
    return row[n - 1] if abs(m - n) <= band else -np.inf


@njit()
def _fill_selves(rate, divisible, triangular, steps, share, X, offsets, start, stop, out):  # type: ignore[no-untyped-def]
    """Write log_sum(x, x) of series start..stop."""
    row = np.empty(len(X))
    for i in range(start, stop):
        x = X[offsets[i] : offsets[i + 1]]
        out[i] = log_sum(x, x, rate, divisible, triangular, half_width(len(x), len(x), steps, share), row)


@njit()
def _fill(  # type: ignore[no-untyped-def]
    rate, divisible, triangular, steps, share, X, X_offsets, X_self, Y, Y_offsets, Y_self, mirror, start, stop, out
):
    """Write log_sum(x, y) to rows start..stop of `out`; if `mirror`, the upper triangle and its mirror image.

    Where `X_self` is not empty, the mean of log_sum(x, x) and log_sum(y, y) is subtracted. Without `divisible`
    (soft-DTW) both of these must have the band of the pair; with it the band is `steps`, which may exclude all paths.
    """
    row = np.empty(max(len(X), len(Y)))
    for i in range(start, stop):
        x = X[X_offsets[i] : X_offsets[i + 1]]
        for j in range(i if mirror else 0, len(Y_offsets) - 1):
            y = Y[Y_offsets[j] : Y_offsets[j + 1]]
            band = steps if divisible else half_width(len(x), len(y), steps, share)
            value = log_sum(x, y, rate, divisible, triangular, band, row)
            if len(X_self) > 0:
                own, other = X_self[i], Y_self[j]
                if not divisible and band != half_width(len(x), len(x), steps, share):
                    own = log_sum(x, x, rate, divisible, triangular, band, row)
                if not divisible and band != half_width(len(y), len(y), steps, share):
                    other = log_sum(y, y, rate, divisible, triangular, band, row)
                value -= (own + other) / 2
            out[i, j] = value
            if mirror:
                out[j, i] = value
