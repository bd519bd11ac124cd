r"""Elastic distances of time series: dynamic time warping, edits, moves, matches and soft minima.

All are computed by dynamic programming over the m n pairs of time points (x_i, y_j), in O(m n p) operations for p
channels and O(n) memory per pair of series. With a window of w steps, they take O(w max(m, n) p) operations.

Distances are computed in float64 for series of any dtype, and d(x, y) and d(y, x) have the same bits. Pairs with very
large or very small values are scaled by a power of two; differences below 1e-40 times the largest value of a pair may
count as 0. SoftDTW takes values up to 1e145 times the square root of gamma.

All distances raise a ValueError when called if a parameter is out of range or X and Y differ in their number of
channels. A 2-D array is a collection of n series with one channel; write a single series x of several channels as
``[x]``.

Dynamic time warping matches two series step by step, without going back in time, in the cheapest way:

.. math:: D(i, j) = c(x_i, y_j) + \min\{D(i-1, j), D(i, j-1), D(i-1, j-1)\}, \qquad d(x, y) = D(m, n),

where c is the Euclidean distance over the channels, not squared. The sum is not divided by the length of the path and
no root is taken. Cost: m n cells per pair; 16 pairs are computed at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from similia import alignments as loops
from similia.alignments import (
    as_series_pair,
    fill_chosen,
    fill_pairs,
    half_width,
    in_units,
    log_sums,
    put,
    task_of,
    window_band,
)
from similia.core import lanes as lane
from similia.core.jit import njit
from similia.core.lanes import LANES
from similia.core.text import short
from similia.core.validation import check_choice, check_positive, is_finite
from similia.distances.magnitudes import Array, Pairs, ScaledDistance, scaled_back
from similia.objects import SeriesBatch, as_series
from similia.similarity import Facts

How = tuple[int, float, Callable[[SeriesBatch], Array] | None]  # (kind, parameter, deletion costs)


class _FactsByParameters:
    """Descriptor of ``facts``: those of an instance are corrected for its parameters."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def __get__(self, distance: _Elastic | None, owner: type | None = None) -> Facts:
        return self.facts if distance is None else replace(self.facts, **distance._untrue())


_METRIC = _FactsByParameters(Facts(symmetric=True, identity=True, metric=True, unequal_length=True, cost="m n"))


class _Elastic(ScaledDistance):
    """Base class of the distances computed by dynamic programming with an optional window."""

    window: float | None

    def as_objects(self, X: Any) -> SeriesBatch:
        return as_series(X)

    def _untrue(self) -> dict[str, Any]:
        """Return the facts that are different for these parameters; a window breaks the triangle inequality."""
        return {} if self.window is None else {"metric": False}

    def _read(self, X: Any, Y: Any) -> tuple[SeriesBatch, SeriesBatch]:
        A, B = as_series_pair(X, Y)
        left = A.astype(np.float64)
        return left, left if A is B else B.astype(np.float64)


class EditDistance(_Elastic):
    """Base class of the distances that add up the costs of single steps."""

    def _how(self, unit: float) -> How:
        """Return the kind and parameter for `alignments.fill`, for series divided by `unit`, and the deletion costs.

        The latter are a function that returns the cost of deleting each time point of a batch, or None.
        """
        raise NotImplementedError

    def _find(self, A: SeriesBatch, B: SeriesBatch, pairs: Pairs | None, shift: int) -> Array:
        left, right, *how = self._sides(A, B, shift)

        def fill(*where: Any) -> None:
            loops.fill(*how, *where)

        return fill_pairs(left, right, fill) if pairs is None else fill_chosen(left, right, *pairs, fill)

    def _sides(self, A: SeriesBatch, B: SeriesBatch, shift: int = 0) -> tuple[Any, ...]:
        """Return A and B, divided by ``2**shift``, with deletion costs; then the first arguments of `loops.fill`."""
        band, (kind, parameter, costs) = window_band(self.window), self._how(2.0**shift)

        def with_costs(side: SeriesBatch) -> SeriesBatch:
            return side if costs is None else SeriesBatch(np.column_stack([side.values, costs(side)]), side.offsets)

        left = with_costs(A)
        right = left if A is B else with_costs(B)
        return left, right, kind, parameter, A.n_dims, band


class ERP(EditDistance):
    r"""Edit distance with real penalty: match time points, or delete them at the cost of their distance to a gap value.

    .. math:: D(i, j) = \min\{D(i-1, j-1) + \|x_i - y_j\|,\; D(i-1, j) + \|x_i - g\|,\; D(i, j-1) + \|y_j - g\|\}

    with D(0, 0) = 0. D(i, 0) and D(0, j) are the costs of deleting the first i points of x and the first j points of y.
    Norms are Euclidean over the channels.

    Parameters
    ----------
    gap : float, default=0.0
        The gap value g, the same in each channel; 0 suits series of mean zero.
    window : int or float, optional
        Sakoe-Chiba band: use only pairs (i, j) with ``abs(i - j) <= w``. As in `DTW`, an integer is w itself, and a
        float is w as a fraction of the longer length; None means no band.

    Notes
    -----
    Without a window, ERP is a metric, with one exception: two series that differ only in time points equal to the gap
    value have distance 0, because deleting such points costs nothing. With a window, the triangle inequality fails, and
    the attribute ``facts.metric`` is False.

    If the best alignment deletes the first time points, version 1.6 of the library aeon returns larger values, since
    it sets each D(i, 0) and D(0, j) to the cost of deleting the whole series.

    References
    ----------
    Chen & Ng, "On the marriage of Lp-norms and edit distance", VLDB 2004.

    Examples
    --------
    >>> from similia.distances import ERP
    >>> ERP()([[1.0, 2.0, 3.0], [2.0, 3.0]])
    array([[0., 1.],
           [1., 0.]])
    >>> ERP(gap=1.0)([[1.0, 2.0, 3.0]], [[2.0, 3.0]])
    array([[0.]])
    """

    facts = _METRIC

    def __init__(self, gap: float = 0.0, window: float | None = None) -> None:
        self.gap = gap
        self.window = window

    def _unit(self) -> float:
        if not is_finite(self.gap):
            raise ValueError(f"gap must be a finite number, got {short(self.gap, 80)}")
        return float(self.gap)

    def _how(self, unit: float) -> How:
        gap = self._unit() / unit
        return loops.ERP, 0.0, lambda side: np.linalg.norm(side.values - gap, axis=1)


class MSM(EditDistance):
    r"""Move-split-merge distance: the least cost of edits that change or duplicate a value, or merge equal neighbours.

    .. math::
        D(i, j) = \min\{D(i-1, j-1) + |x_i - y_j|,\; D(i-1, j) + C(x_i, x_{i-1}, y_j),\;
        D(i, j-1) + C(y_j, x_i, y_{j-1})\}

    with D(0, 0) = 0, and D(i, 0) and D(0, j) infinite for i, j > 0. The distance between series of m and n points is
    D(m, n). C(a, b, b') is c if a lies between b and b', else c + min(abs(a - b), abs(a - b')). Adding the same
    constant to both series does not change the distance.

    Parameters
    ----------
    c : float, default=1.0
        Cost of a split or a merge, above 0.
    window : int or float, optional
        Sakoe-Chiba band: use only pairs (i, j) with ``abs(i - j) <= w``. As in `DTW`, an integer is w itself, and a
        float is w as a fraction of the longer length; None means no band.

    Notes
    -----
    For several channels, the distance is the sum of the distances of the channels, each with its own alignment. This is
    the *independent* version of Shifaz et al.; it is a metric because a sum of metrics is a metric. With a window, the
    triangle inequality fails, and the attribute ``facts.metric`` is False.

    References
    ----------
    Stefan, Athitsos & Das, "The move-split-merge metric for time series", IEEE TKDE 25(6), 2013. Shifaz,
    Pelletier, Petitjean & Webb, "Elastic similarity and distance measures for multivariate time series", Knowledge and
    Information Systems 65(6), 2023.

    Examples
    --------
    >>> from similia.distances import MSM
    >>> MSM(c=0.5)([[1.0, 2.0, 2.0], [1.0, 2.0], [1.0, 4.0]])
    array([[0. , 0.5, 2.5],
           [0.5, 0. , 2. ],
           [2.5, 2. , 0. ]])
    """

    facts = _METRIC

    def __init__(self, c: float = 1.0, window: float | None = None) -> None:
        self.c = c
        self.window = window

    def _unit(self) -> float:
        return _undivided(check_positive(self.c, "c"))

    def _how(self, unit: float) -> How:
        return loops.MSM, check_positive(self.c, "c") / unit, None


class TWE(EditDistance):
    r"""Time warp edit distance: edit one series into the other, at costs that depend on values and on times.

    .. math::
        D(i, j) = \min\{D(i-1, j-1) + \|x_i - y_j\| + \|x_{i-1} - y_{j-1}\| + 2\nu|i - j|,\;
        D(i-1, j) + \|x_i - x_{i-1}\| + \nu + \lambda,\; D(i, j-1) + \|y_j - y_{j-1}\| + \nu + \lambda\}

    with D(0, 0) = 0, and D(i, 0) and D(0, j) infinite for i, j > 0. The distance between series of m and n points is
    D(m, n). Time stamps are 1, 2, 3, ... A match costs the distance between the two points plus the distance between
    their two predecessors. A deletion costs the distance between the deleted point and its predecessor, plus lambda
    (`lmbda`). Here, the distance between two points is the distance between their values plus nu times the difference
    of their times.

    Parameters
    ----------
    nu : float, default=0.001
        Stiffness, above 0: the cost per unit of time.
    lmbda : float, default=1.0
        Amount added to the cost of each deletion, at least 0.
    window : int or float, optional
        Sakoe-Chiba band: use only pairs (i, j) with ``abs(i - j) <= w``. As in `DTW`, an integer is w itself, and a
        float is w as a fraction of the longer length; None means no band.

    Notes
    -----
    Without a window, TWE is a metric. With a window, the triangle inequality fails, and the attribute ``facts.metric``
    is False. Adding the same constant to both series does not change the distance. As in Marteau's paper and
    the library aeon, x_0 = y_0 = 0; any other common value would give the same distance, since the first time points
    are always matched with each other.

    References
    ----------
    Marteau, "Time warp edit distance with stiffness adjustment for time series matching", IEEE PAMI 31(2), 2009.

    Examples
    --------
    >>> from similia.distances import TWE
    >>> TWE(nu=0.5, lmbda=1.0)([[1.0, 2.0, 3.0]], [[1.0, 2.0, 3.0], [1.0, 2.0], [1.0, 2.0, 4.0]])
    array([[0. , 2.5, 1. ]])
    """

    facts = _METRIC

    def __init__(self, nu: float = 0.001, lmbda: float = 1.0, window: float | None = None) -> None:
        self.nu = nu
        self.lmbda = lmbda
        self.window = window

    def _unit(self) -> float:
        return _undivided(max(check_positive(self.nu, "nu"), check_positive(self.lmbda, "lmbda", zero=True)))

    def _how(self, unit: float) -> How:
        nu, lmbda = check_positive(self.nu, "nu") / unit, check_positive(self.lmbda, "lmbda", zero=True) / unit
        return loops.TWE, nu, lambda side: _steps(side) + nu + lmbda


class LCSS(EditDistance):
    r"""Longest common subsequence distance, 1 - lcss(x, y) / min(m, n), in [0, 1].

    m and n are the lengths of x and y. lcss(x, y) is the length of the longest list of pairs (i, j) in which x_i
    matches y_j, and both i and j increase from pair to pair.

    Parameters
    ----------
    epsilon : float, default=1.0
        Maximum Euclidean distance at which time points match, at least 0.
    window : int or float, optional
        Sakoe-Chiba band: use only pairs (i, j) with ``abs(i - j) <= w``. As in `DTW`, an integer is w itself, and a
        float is w as a fraction of the longer length; None means no band.

    Notes
    -----
    LCSS is not a metric: a series has distance 0 to each of its subsequences. Here, as in the library aeon, points
    match if their Euclidean distance is at most epsilon. In Vlachos et al., they match if they differ by less than
    epsilon in each channel.

    References
    ----------
    Vlachos, Kollios & Gunopulos, "Discovering similar multidimensional trajectories", ICDE 2002, Definitions 1 and 2.

    Examples
    --------
    >>> from similia.distances import LCSS
    >>> LCSS(epsilon=0.5)([[1.0, 2.0, 9.0, 3.0]], [[1.0, 2.0, 3.0], [9.0, 1.0]])
    array([[0. , 0.5]])
    """

    facts = Facts(symmetric=True, identity=True, metric=False, unequal_length=True, cost="m n")

    def __init__(self, epsilon: float = 1.0, window: float | None = None) -> None:
        self.epsilon = epsilon
        self.window = window

    def _degree(self) -> int:
        return 0

    def _how(self, unit: float) -> How:
        return loops.LCSS, check_positive(self.epsilon, "epsilon", zero=True) / unit, None


class ADTW(EditDistance):
    r"""Amerced dynamic time warping: each step that advances in only one of the two series costs a penalty.

    .. math:: D(i, j) = \|x_i - y_j\|^2 + \min\{D(i-1, j-1),\; D(i-1, j) + \omega,\; D(i, j-1) + \omega\}

    with D(0, 0) = 0, and D(i, 0) and D(0, j) infinite for i, j > 0. The distance between series of m and n points is
    D(m, n). A penalty omega of 0 gives `DTW` with squared costs. A large penalty gives the squared Euclidean distance
    of two series of equal length. A window forbids matches of points that are far apart in time; the penalty only makes
    such matches expensive.

    Parameters
    ----------
    penalty : float, default=1.0
        The cost omega of a step that advances in only one series, at least 0, in the unit of squared values. Tune it; 1
        is a first guess for standardised series.
    window : int or float, optional
        Sakoe-Chiba band: use only pairs (i, j) with ``abs(i - j) <= w``. As in `DTW`, an integer is w itself, and a
        float is w as a fraction of the longer length; None means no band.

    Notes
    -----
    ADTW is not a metric: the triangle inequality fails, as for squared Euclidean distances.

    References
    ----------
    Herrmann & Webb, "Amercing: an intuitive and effective constraint for dynamic time warping", Pattern Recognition
    137, 2023, Eq. 3.

    Examples
    --------
    >>> from similia.distances import ADTW
    >>> series = [[0.0, 1.0, 5.0], [0.0, 0.0, 1.0, 5.0], [0.0, 1.0, 3.0]]
    >>> ADTW(penalty=0.5)(series)
    array([[0. , 0.5, 4. ],
           [0.5, 0. , 4.5],
           [4. , 4.5, 0. ]])
    """

    facts = Facts(symmetric=True, identity=True, metric=False, unequal_length=True, cost="m n")

    def __init__(self, penalty: float = 1.0, window: float | None = None) -> None:
        self.penalty = penalty
        self.window = window

    def _degree(self) -> int:
        return 2

    def _unit(self) -> float:
        return check_positive(self.penalty, "penalty", zero=True) ** 0.5

    def _how(self, unit: float) -> How:
        return loops.ADTW, check_positive(self.penalty, "penalty", zero=True) / unit / unit, None


class SoftDTW(_Elastic):
    r"""Soft-DTW and its divergence: dynamic time warping with a soft minimum over all alignments.

    .. math::
        S(x, y) = -\gamma \log \sum_\pi \exp\Big(-\frac{1}{\gamma} \sum_{(i, j) \in \pi} \|x_i - y_j\|^2\Big), \qquad
        d(x, y) = S(x, y) - \tfrac{1}{2}(S(x, x) + S(y, y))

    The first sum runs over all alignments pi, the second over the pairs (i, j) of points that pi matches. S is soft-DTW
    and d its divergence.

    Parameters
    ----------
    gamma : float, default=1.0
        Smoothing, above 0. As gamma goes to 0, S approaches DTW with squared Euclidean local cost.
    window : int or float, optional
        Sakoe-Chiba band: use only pairs (i, j) with ``abs(i - j) <= w``. As in `DTW`, an integer is w itself, and a
        float is w as a fraction of the longer length; None means no band.
    divergence : bool, default=True
        Whether to return the divergence d; otherwise return S. S is usually negative if x and y are similar, and
        estimators that take a distance raise an error for negative values. S(x, x) is rarely 0 and can exceed S(x, y).
        The attribute ``facts.identity`` says whether every object has distance 0 to itself; it is True for d and False
        for S (see `similia.distances.Facts`).

    Notes
    -----
    d is symmetric and 0 at x = y, but not a metric. Blondel et al. prove for some local costs that d is never negative.
    For squared Euclidean costs there is no proof, but a search among 24 million pairs of short series found no negative
    d. A d that is below 0 because of rounding errors is set to 0. With a window, S(x, x) and S(y, y) use the same w as
    S(x, y). exp(-d / gamma) is not a positive definite kernel; for a positive definite kernel, use
    `similia.kernels.GlobalAlignment`.

    References
    ----------
    Cuturi & Blondel, "Soft-DTW: a differentiable loss function for time-series", ICML 2017,
    Algorithm 1. Blondel, Mensch & Vert, "Differentiable divergences between time series", AISTATS 2021.

    Examples
    --------
    >>> from similia.distances import SoftDTW
    >>> x, y = [0.0, 1.0], [0.0, 1.0, 1.0]
    >>> SoftDTW(gamma=0.01)([x], [x, y, [3.0]]).round(4).tolist()  # S(y, y) = -gamma log 3
    [[0.0, 0.0055, 13.0]]
    >>> bool(SoftDTW(divergence=False)([x], [x]) < 0)
    True
    """

    facts = _FactsByParameters(Facts(symmetric=True, identity=True, metric=False, unequal_length=True, cost="m n"))

    def __init__(self, gamma: float = 1.0, window: float | None = None, divergence: bool = True) -> None:
        self.gamma = gamma
        self.window = window
        self.divergence = divergence

    def _untrue(self) -> dict[str, Any]:
        return {} if self.divergence else {"identity": False}

    def _distances(self, A: SeriesBatch, B: SeriesBatch, pairs: Pairs | None = None) -> Array:
        gamma, exponent = np.frexp(check_positive(self.gamma, "gamma"))
        gamma, half = np.ldexp(gamma, exponent % 2), int(exponent) // 2  # the scaled parameter is gamma 4**half
        X = in_units(A, half, "root of gamma")
        Y = X if A is B else in_units(B, half, "root of gamma", "Y")
        how = (1.0 / float(gamma), False, 0, *window_band(self.window))
        out = log_sums(X, Y, how, same=A is B, centre=self.divergence, pairs=pairs)
        out *= -gamma
        if self.divergence:
            np.maximum(out, 0.0, out=out)
        return scaled_back(out, 2 * half, out.dtype, pairs)


def _undivided(cost: float) -> float:
    """Return the `_unit` that leaves very small series unscaled if `cost`, divided by their scale, could overflow."""
    return 2.0**399 if cost > 2.0**400 else 0.0


def _steps(X: SeriesBatch) -> Array:
    """Return the distance of each time point to the previous one; 0 for the first point of a series."""
    steps = np.linalg.norm(np.diff(X.values, axis=0, prepend=X.values[:1]), axis=1)
    steps[X.offsets[:-1]] = 0.0
    return steps


class DTW(ScaledDistance):
    """Dynamic time warping of series of any lengths, with one or more channels.

    An alignment matches each time point of one series with one or more points of the other, in order. The distance is
    the smallest total cost of an alignment.

    Parameters
    ----------
    window : int or float, optional
        Sakoe-Chiba band: match time points i and j only if ``|i - j| <= w``. An integer >= 0 is w itself; a float in
        (0, 1] is w as a fraction of the longer length, rounded down; None means no band. If w is below the difference
        of the two lengths, it is raised to this difference, since otherwise no alignment would exist.
    local : {"euclidean", "sqeuclidean"}, default="euclidean"
        Cost of matching two time points: the Euclidean distance over the channels, or its square.
    root : bool, default=False
        Whether to take the square root of the final sum (only with ``local="sqeuclidean"``).

    Raises
    ------
    ValueError
        When called, if a parameter is out of range; if `X` and `Y` differ in their number of channels; if a value is
        NaN or infinite; or if a distance is too large or too small for its dtype.

    Notes
    -----
    DTW is not a metric: the triangle inequality fails, and d(x, y) = 0 for series that differ only in repeated time
    points.

    A 2-D array is a collection of n series with one channel; write a single series x of several channels as ``[x]``.
    `X` is converted to the dtype of `Y`, float32 or float64, which is also the dtype of the distances. The
    distance between two series is the same, to the last bit, whatever other series are in the call. For lengths m and n
    and p channels, the relative error is below (m + n + p + 1) 2^-24 in float32 and (m + n + p + 1) 2^-53 in float64.
    The error can be larger for nearly equal values: if a value of x and a value of y differ by less than 1e-12
    (float32) or 1e-33 (float64) times the largest absolute value in both series, their difference may be inaccurate or
    count as 0.

    References
    ----------
    Sakoe & Chiba, "Dynamic programming algorithm optimization for spoken word recognition", IEEE TASSP 26, 1978.
    Wu, Yen, Xu, Ravikumar & Witbrock, "D2KE: from distance to kernel and embedding", 2018, Section 4.

    Examples
    --------
    >>> from similia.distances import DTW
    >>> series = [[0.0, 1.0, 2.0], [0.0, 0.0, 1.0, 2.0], [3.0]]
    >>> DTW()(series)
    array([[0., 0., 6.],
           [0., 0., 9.],
           [6., 9., 0.]])
    >>> DTW(local="sqeuclidean")(series[:2], series[2:])
    array([[14.],
           [23.]])
    """

    facts = Facts(symmetric=True, identity=True, metric=False, unequal_length=True, cost="m n")

    def __init__(self, window: float | None = None, local: str = "euclidean", root: bool = False) -> None:
        self.window = window
        self.local = local
        self.root = root

    def as_objects(self, X: Any) -> SeriesBatch:
        return as_series(X)

    def _read(self, X: Any, Y: Any) -> tuple[SeriesBatch, SeriesBatch]:
        return as_series_pair(X, Y)

    def _degree(self) -> int:
        return 2 if self.local == "sqeuclidean" and not self.root else 1

    def _find(self, A: SeriesBatch, B: SeriesBatch, pairs: Pairs | None, shift: int) -> Array:
        n_dims, window, rooted = A.n_dims, window_band(self.window), self._rooted()

        def warp(x: Any, y: Any, *where: Any) -> None:
            _fill(x, y, n_dims, rooted, window, *where)

        found = fill_pairs(A, B, warp) if pairs is None else fill_chosen(A, B, *pairs, warp)
        return np.sqrt(found, out=found) if self.root else found

    def _rooted(self) -> bool:
        """Check the parameters; return whether a match costs the Euclidean distance rather than its square."""
        check_choice(self.local, "local", ("euclidean", "sqeuclidean"))
        if self.root and self.local == "euclidean":
            raise ValueError("root=True needs sums of squares, got local='euclidean'; set local='sqeuclidean'")
        return self.local == "euclidean"


@njit()
def _fill(x, y, p, rooted, window, symmetric, out, strides, first, last):  # type: ignore[no-untyped-def]
    """Fill `out` with the distances of the tasks `first` to `last` - 1; see `fill_pairs` for tasks and arguments."""
    values, offsets, _, _ = x
    packed, starts, lengths, columns, _ = y
    room = np.empty(LANES * (lengths.max() + 1), packed.dtype)
    widths = np.empty(LANES, packed.dtype)
    for task in range(first, last):
        i, group, begin, end = task_of(task, x, y, symmetric)
        if begin >= end:
            continue
        m = offsets[i + 1] - offsets[i]
        for k in range(LANES):
            widths[k] = half_width(m, lengths[min(begin + k, end - 1)], window[0], window[1])
        _warp(values, p * offsets[i], m, packed, starts[group], lengths[end - 1], p, rooted, widths, room)
        for c in range(begin, end):
            j = columns[c]
            put(out, strides, i, j, room[LANES * lengths[c] + c - begin], symmetric)


@njit()
def _warp(values, at, m, packed, start, n, p, rooted, widths, room):  # type: ignore[no-untyped-def]
    """Compute the DTW tables of one series with LANES others; leave their last rows in `room`, side by side.

    Column j is at LANES * (j + 1). The one series has m points, the longest other n. `widths` are half widths of the
    bands; the widest determines which columns are computed, and cells outside a narrower band become infinite.
    """
    room[:LANES] = 0.0
    room[LANES : LANES * (n + 1)] = np.inf
    infinite, width = lane.load(room, LANES), lane.load(widths, 0)
    reach, masked = int(widths.max()), widths.min() < widths.max()
    for i in range(m):
        x0 = lane.splat(values[at])  # three channels stay in registers: a third faster than rereading
        x1, x2 = lane.splat(values[at + min(1, p - 1)]), lane.splat(values[at + min(2, p - 1)])
        low, high = max(0, i - reach), min(n, i + reach + 1)
        left, diagonal = infinite, lane.load(room, LANES * low)
        for j in range(low, high):
            y = start + LANES * p * j
            difference = x0 - lane.load(packed, y)
            cost = difference * difference
            if p > 1:
                difference = x1 - lane.load(packed, y + LANES)
                cost = lane.multiply_add(difference, difference, cost)
            if p > 2:
                difference = x2 - lane.load(packed, y + 2 * LANES)
                cost = lane.multiply_add(difference, difference, cost)
            for c in range(3, p):
                difference = lane.splat(values[at + c]) - lane.load(packed, y + LANES * c)
                cost = lane.multiply_add(difference, difference, cost)
            if rooted:
                cost = lane.magnitude(difference) if p == 1 else lane.square_root(cost)
            up = lane.load(room, LANES * (j + 1))
            left = cost + lane.minimum(lane.minimum(up, diagonal), left)
            if masked:
                left = lane.where_at_most(lane.splat(values.dtype.type(abs(i - j))), width, left, infinite)
            diagonal = up
            lane.store(room, LANES * (j + 1), left)
        lane.store(room, 0, infinite)
        at += p
