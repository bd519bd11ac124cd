r"""Explain similarities and distances of series by the steps of the cheapest alignment, or of all alignments.

Predictions from statistics over time are split over stretches of the series, see `of_times`.

Elastic distances sum local costs along a path. This module recomputes them with the path, so the parts sum to the
distance up to rounding. Sums over all alignments pi (soft-DTW and global alignment), weighted by local similarities
kappa_ij of time points i and j, satisfy

.. math:: \log \sum_\pi \prod_{(i, j) \in \pi} \kappa_{ij} = \sum_{ij} P_{ij} \log \kappa_{ij} + H,

where P_ij is the probability that i and j are matched, and H the entropy of the alignments, which belongs to no pair.

Cost: O(m n) operations and about 48 m n bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from similia import alignments as kinds
from similia.alignments import as_series_pair, half_width, in_units, window_band
from similia.core.config import check_memory
from similia.core.jit import njit
from similia.distances.elastic import ADTW, DTW, LCSS, MSM, EditDistance, SoftDTW
from similia.explanations._explanation import NOWHERE, Described, Floats, Found, joined, listed, runs_of
from similia.kernels.series import GlobalAlignment
from similia.objects import SeriesBatch

_BYTES_PER_CELL = 48
_FAINT = 0.02  # matches of lower probability are not drawn
DIAGONAL, UP, LEFT = 0, 1, 2  # moves that match two time points, delete one of x, and insert one of y
Names = tuple[str, str]  # names of the first and the second series
_Step = tuple[str, float, tuple[int, ...], tuple[int, ...]]  # name, cost, time points of x and of y


def warping(distance: Any, X: SeriesBatch, Y: SeriesBatch, names: Names) -> Found:
    A, B = _as_floats(X, Y)
    a, b = A.values, B.values
    outside = _outside(len(a), len(b), distance.window)
    with np.errstate(over="ignore", invalid="ignore"):
        if isinstance(distance, DTW):
            cost = _lengths(a, b) if distance._rooted() else _lengths(a, b) ** 2
            return _found(_steps(cost, cost, cost, outside), cost.shape, names, both=True)
        if isinstance(distance, ADTW):
            cost, penalty = _lengths(a, b) ** 2, distance._how(1.0)[1]
            warped = cost + penalty
            return _found(_steps(cost, warped, warped, outside), cost.shape, names, both=True)
        if isinstance(distance, MSM):
            channels = [_msm(a[:, c], b[:, c], distance, outside, names) for c in range(a.shape[1])]
            if len(channels) == 1:
                return channels[0]
            return joined([found.times(1.0, f"channel {c}: ") for c, found in enumerate(channels)])
        if isinstance(distance, LCSS):
            return _lcss(_lengths(a, b) <= distance.epsilon, outside, names)
        return _edited(distance, A, B, outside, names)


def _lengths(a: Floats, b: Floats) -> Floats:
    """Return the Euclidean distances of time points; their squares may exceed the largest float64."""
    unit = _unit(a, b)
    return unit * cdist(a / unit, b / unit)


def _unit(*numbers: Any) -> float:
    """Return the power of two above the largest of the numbers, which are at most 1 when divided by it."""
    return 2.0 ** min(1023, int(np.frexp(max(np.abs(some).max() for some in numbers))[1]))


def of_times(amounts: Floats, values: Any) -> Found:
    """Return what each time point of each channel adds, (length, n_channels), as parts.

    A part is a stretch of points of one channel that have one sign and are all above the mean amount, or all below it.
    """
    n_channels = amounts.shape[1]
    strong = np.abs(amounts).mean()
    stretches: list[tuple[int, int, int]] = []
    for channel in range(n_channels):
        stretches += [(channel, *run) for run in runs_of(amounts[:, channel], strong)]

    def describe(k: int) -> Described:
        channel, start, stop = stretches[k]
        name = f"channel {channel}, " if n_channels > 1 else ""
        return name + named_stretch(values[:, [channel]], start, stop), np.arange(start, stop), NOWHERE

    totals = np.array([amounts[start:stop, channel].sum() for channel, start, stop in stretches])
    return Found(totals, describe, amounts[:, 0] if n_channels == 1 else amounts)


def named_stretch(values: Any, start: int, stop: int) -> str:
    """Return the name of a stretch of a series: its times and, unless the series has several channels, its values."""
    name = f"time {start}" if stop == start + 1 else f"time {start}-{stop - 1}"
    if values.shape[1] > 1:
        return name
    low, high = values[start:stop].min(), values[start:stop].max()
    return name + (f", value {low:.3g}" if low == high else f", values {low:.3g} to {high:.3g}")


def _as_floats(X: Any, Y: Any) -> tuple[SeriesBatch, SeriesBatch]:
    A, B = (side.astype(np.float64) for side in as_series_pair(X, Y))
    check_cells(len(A.values), len(B.values))
    return A, B


def _edited(distance: EditDistance, A: SeriesBatch, B: SeriesBatch, outside: Any, names: Names) -> Found:
    """Return the steps of the cheapest alignment under `ERP` or `TWE`, which charge for deletions, as parts."""
    unit = _unit(A.values, B.values, getattr(distance, "gap", 0.0))
    kind, nu, costs = distance._how(unit)
    if costs is None:
        raise TypeError(f"{type(distance).__name__} has no costs of deletions")
    A, B = (replace(side, values=side.values / unit) for side in (A, B))
    delete, insert = unit * costs(A), unit * costs(B)
    match = ground = unit * cdist(A.values, B.values)
    m, n = ground.shape
    if kind == kinds.TWE:
        before = np.zeros((m, n))
        before[1:, 1:] = ground[:-1, :-1]
        match = ground + before + 2 * unit * nu * np.abs(np.subtract.outer(np.arange(m), np.arange(n)))
    borders = None
    if kind == kinds.ERP:
        borders = np.concatenate(([0.0], np.cumsum(insert))), np.concatenate(([0.0], np.cumsum(delete)))
    rows, columns = np.broadcast_to(delete[:, None], (m, n)), np.broadcast_to(insert, (m, n))
    steps = _steps(match, rows, columns, outside, borders, delete, insert)
    return _found(steps, (m, n), names)


def _msm(a: Any, b: Any, distance: MSM, outside: Any, names: Names) -> Found:
    c = distance._how(1.0)[1]

    def split(new: Floats, old: Floats, other: Floats) -> Floats:
        """Return the costs of a split, for each value `new` after its predecessor `old` (rows) and each `other`."""
        low, high = np.minimum.outer(old, other), np.maximum.outer(old, other)
        result: Floats = c + np.abs(new[:, None] - np.clip(new[:, None], low, high))
        return result

    before_a, before_b = np.concatenate((a[:1], a[:-1])), np.concatenate((b[:1], b[:-1]))
    steps = _steps(
        np.abs(np.subtract.outer(a, b)), split(a, before_a, b), np.ascontiguousarray(split(b, before_b, a).T), outside
    )
    return _found(steps, (len(a), len(b)), names, gone="split or merged")


def _lcss(alike: Any, outside: Any, names: Names) -> Found:
    """Return unmatched points of the shorter series as parts of 1 / its length; `alike` (m, n) allows matches."""
    m, n = alike.shape
    match = np.where(alike & ~outside, -1.0, np.inf)
    none = np.zeros((m, n))
    moves = _path([match, none, none], np.zeros(n + 1), np.zeros(m + 1))
    pairs = [(i, j) for i, j, move in moves if move == DIAGONAL]
    side = 0 if m <= n else 1
    alone = sorted(set(range(min(m, n))) - {pair[side] for pair in pairs})
    parts: list[_Step] = []
    for t in alone:
        in_x, in_y = ((t,), ()) if side == 0 else ((), (t,))
        parts.append((f"{names[side]}[{t}] without a match", 1 / min(m, n), in_x, in_y))
    return replace(listed(parts, m, n), links=[(i, j, 0.0) for i, j in pairs])


def _steps(
    match: Floats,
    delete: Floats,
    insert: Floats,
    outside: Any,
    borders: tuple[Floats, Floats] | None = None,
    border_delete: Floats | None = None,
    border_insert: Floats | None = None,
) -> list[tuple[int, int, int, float]]:
    """Return (i, j, move, cost) of each step of the cheapest path: `move` (DIAGONAL, UP or LEFT) leads to cell (i, j).

    Cells in `outside` are forbidden. Without `borders`, every path begins with a match of the first time points.
    """
    m, n = match.shape
    costs = [np.where(outside, np.inf, cost) for cost in (match, delete, insert)]
    first_row, first_column = (np.full(n + 1, np.inf), np.full(m + 1, np.inf)) if borders is None else borders
    first_row[0] = first_column[0] = 0.0
    steps = []
    for i, j, move in _path(costs, first_row, first_column):
        if i >= 0 and j >= 0:
            cost = costs[move][i, j]
        else:
            cost = border_delete[i] if move == UP else border_insert[j]  # type: ignore[index]
        steps.append((i, j, move, float(cost)))
    return steps


def _path(costs: Sequence[Floats], row: Floats, column: Floats) -> list[tuple[int, int, int]]:
    """Return (i, j, move) of each step of the cheapest path, first to last; -1 means before the first point.

    `costs` has the costs of matches, deletions and insertions, each of shape (m, n); `row` (n + 1 values) and `column`
    (m + 1 values) the costs of the paths to the cells with i = -1 and with j = -1.
    """
    moves = best_moves(*map(np.ascontiguousarray, costs), row, column)
    i, j = costs[0].shape
    cells = []
    while i > 0 or j > 0:
        move = int(moves[i, j])
        cells.append((i - 1, j - 1, move))
        i, j = i - (move != LEFT), j - (move != UP)
    return cells[::-1]


def _found(
    steps: list[tuple[int, int, int, float]],
    lengths: tuple[int, ...],
    names: Names,
    both: bool = False,
    gone: str = "deleted",
) -> Found:
    """Return steps (i, j, move, cost) as parts: matches if diagonal or if `both`, otherwise points called `gone`."""
    parts: list[_Step] = []
    for i, j, move, cost in steps:
        if both or move == DIAGONAL:
            parts.append((matched(names, i, j), cost, (i,), (j,)))
        elif move == UP:
            parts.append((f"{names[0]}[{i}] {gone}", cost, (i,), ()))
        else:
            parts.append((f"{names[1]}[{j}] {gone}", cost, (), (j,)))
    return listed(parts, *lengths)


def matched(names: Names, i: int, j: int) -> str:
    """Return the name of a match of point `i` of series ``names[0]`` and `j` of ``names[1]``; x always comes first."""
    at = {names[0]: i, names[1]: j}
    return f"x[{at['x']}] with y[{at['y']}]"


def check_cells(m: int, n: int) -> None:
    taking = f"the alignment of x and y, of lengths {m} and {n}, takes"
    check_memory(taking, _BYTES_PER_CELL * m * n, "explain shorter pieces")


def _outside(m: int, n: int, window: Any) -> Any:
    steps, share = window_band(window)
    width = half_width(m, n, steps, share)
    return np.abs(np.subtract.outer(np.arange(m), np.arange(n))) > width


def soft_warping(distance: SoftDTW, X: SeriesBatch, Y: SeriesBatch, names: Names) -> Found:
    """Return the expected cost of each match under soft-DTW as a part; entropy, d(x, x), d(y, y) are not parts."""
    A, B = _as_floats(X, Y)
    costs = cdist(A.values, B.values) ** 2
    allowed = np.where(_outside(len(costs), costs.shape[1], distance.window), -np.inf, -costs / distance.gamma)
    return _expected(_posterior(allowed), costs, names)


def global_alignment(kernel: GlobalAlignment, X: Any, Y: Any) -> tuple[float, str, Found, str]:
    """Return (log k, kind, parts, note) for the global alignment kernel k of two series."""
    A, B = _as_floats(kernel.as_objects(X), kernel.as_objects(Y))
    (rate, _, triangular, _, _), half = kernel._how()
    log_e = -rate * cdist(in_units(A, half, "bandwidth").values, in_units(B, half, "bandwidth").values) ** 2
    gap = np.abs(np.subtract.outer(np.arange(len(A.values)), np.arange(len(B.values))))
    with np.errstate(divide="ignore"):
        if triangular:
            log_e = log_e + np.log(np.maximum(1 - gap / triangular, 0.0))
        logs = log_e - np.log(2 - np.exp(log_e))
    value = float(kernel.log_values(A, B)[0, 0])
    if value == -np.inf:
        raise ValueError(
            f"no alignment of x and y is allowed by triangular={kernel.triangular} (lengths {len(A.values)} and "
            f"{len(B.values)}), so that k = 0; raise triangular"
        )
    centred = " and the norms" if kernel.normalize else ""
    note = (
        f"the parts add up to log k, k = {np.exp(value):.6g}: log similarities of matches times their chance; "
        f"what is left is the entropy of the alignments{centred}"
    )
    return value, "log similarity", _expected(_posterior(logs), logs, ("x", "y")), note


def _posterior(logs: Floats) -> Floats:
    """Return the probability of each match, shape (m, n); an alignment weighs e^(sum of `logs` of its matches)."""
    logs = np.ascontiguousarray(logs)
    forward = log_sums_to(logs)
    backward = log_sums_to(np.ascontiguousarray(logs[::-1, ::-1]))[::-1, ::-1]
    finite = np.isfinite(logs)
    exponents = np.where(finite, forward + backward - np.where(finite, logs, 0.0) - forward[-1, -1], -np.inf)
    return np.asarray(np.exp(exponents))


def _expected(chances: Floats, costs: Floats, names: Names) -> Found:
    """Return all matches as parts: the cost of each match times its probability."""
    amounts = np.where(chances > 0, chances * np.where(chances > 0, costs, 0.0), 0.0)
    n = amounts.shape[1]
    links = [(int(i), int(j), float(chances[i, j])) for i, j in np.argwhere(chances > _FAINT)]

    def describe(k: int) -> tuple[str, Any, Any]:
        i, j = divmod(k, n)
        return f"{matched(names, i, j)} (chance {chances[i, j]:.2f})", np.array([i]), np.array([j])

    return Found(amounts.ravel(), describe, amounts.sum(axis=1), amounts.sum(axis=0), links)


@njit()
def best_moves(match, delete, insert, first_row, first_column):  # type: ignore[no-untyped-def]
    """Return the cheapest move (DIAGONAL, UP or LEFT) into each cell, shape (m + 1, n + 1); ties prefer DIAGONAL.

    The cost of the cheapest path to a cell is D(i, j) = min(D(i-1, j-1) + match, D(i-1, j) + delete, D(i, j-1) +
    insert). The first row (n + 1 values) and the first column (m + 1 values) of D are given.
    """
    m, n = match.shape
    moves = np.zeros((m + 1, n + 1), dtype=np.uint8)
    moves[0, 1:], moves[1:, 0] = LEFT, UP
    above = first_row.copy()
    row = np.empty(n + 1)
    for i in range(m):
        row[0] = first_column[i + 1]
        for j in range(n):
            best, move = above[j] + match[i, j], DIAGONAL
            other = above[j + 1] + delete[i, j]
            if other < best:
                best, move = other, UP
            other = row[j] + insert[i, j]
            if other < best:
                best, move = other, LEFT
            row[j + 1], moves[i + 1, j + 1] = best, move
        above, row = row, above
    return moves


@njit()
def log_sums_to(logs):  # type: ignore[no-untyped-def]
    """Return log M, shape (m, n): M(i, j) = e^logs(i, j) (M(i-1, j-1) + M(i-1, j) + M(i, j-1)), and M(-1, -1) = 1."""
    m, n = logs.shape
    table = np.full((m + 1, n + 1), -np.inf)
    table[0, 0] = 0.0
    for i in range(m):
        for j in range(n):
            a, b, c = table[i, j], table[i, j + 1], table[i + 1, j]
            largest = max(a, max(b, c))
            if largest > -np.inf:
                total = np.exp(a - largest) + np.exp(b - largest) + np.exp(c - largest)
                table[i + 1, j + 1] = logs[i, j] + largest + np.log(total)
    return table[1:, 1:]
