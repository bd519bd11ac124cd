r"""`find` looks for a pattern in a long series: the stretches nearest to it under dynamic time warping, exactly.

By default, each stretch of the pattern's length is standardised, as the pattern is. LB_Keogh is a lower bound on the
distance between the two: each point of the stretch costs at least the distance of this point from the envelope, the
range of the pattern within the warping band. The same holds with stretch and pattern exchanged. DTW is then computed in
rounds, in ascending order of bounds, for `LANES` stretches at a time. It is abandoned once it exceeds the k-th distance
found before the round. The search ends when no bound is below the k-th distance. A stretch that is found can rule out
others that start too near to it, so the k-th distance can also grow; abandoned stretches are then tried again. The
result is therefore the same as if all stretches were compared, whatever the number of threads.

Cost for a pattern of m points and a series of n: 12 m n operations for the bounds, and m w for each stretch that they
do not rule out, where w is the width of the band.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from similia.alignments import half_width, window_band
from similia.core import lanes as lane
from similia.core.config import n_threads, run_in_ranges
from similia.core.jit import njit
from similia.core.lanes import LANES
from similia.core.text import short
from similia.core.validation import BadParameter, BadType, BadValue, check_positive_int
from similia.distances.elastic import DTW
from similia.learn.series_neighbors import envelope, warp_within
from similia.objects import as_series

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
_GRAIN = 64 * LANES  # stretches per thread, at least
_FIRST, _MOST = 16 * LANES, 2**14  # stretches in the first rounds, and in any


def find(
    pattern: Any, series: Any, k: int = 1, distance: DTW | None = None, *, normalize: bool = True, exclude: float = 0.5
) -> tuple[Floats, Index]:
    """Return the `k` stretches (subsequences) of a long series that are nearest to a pattern by dynamic time warping.

    Parameters
    ----------
    pattern : array-like, shape (m,) or (m, n_channels)
        What to look for, at least two points.
    series : array-like, shape (n,) or (n, n_channels)
        Where to look, n >= m.
    k : int, default=1
        Maximum number of stretches.
    distance : DTW, optional
        The distance between the pattern and a stretch of m points (see `similia.distances.DTW`); by default
        ``DTW(window=0.1)``. ``DTW(window=0)`` is the sum of the distances between points at equal positions, without
        warping.
    normalize : bool, default=True
        Whether to standardise each channel of the pattern and of each stretch to mean 0 and standard deviation 1. All
        values of a channel that is constant in a stretch become 0.
    exclude : float, default=0.5
        Minimum distance between the starts of two returned stretches, as a fraction (0 to 1) of the pattern length m.
        Even with 0, no two stretches have the same start.

    Returns
    -------
    distances : ndarray of float64, shape (n_found,)
        Value of `distance` between the pattern and each stretch, ascending.
    starts : ndarray of int64, shape (n_found,)
        Position of the first point of each stretch. There are fewer than `k` stretches if the series has no room for
        more.

    Raises
    ------
    ValueError
        If a value is NaN or infinite; if the series is shorter than the pattern, or has another number of channels; if
        the pattern has fewer than two points; if a parameter is out of range; or if a distance is too large or too
        small for float64.
    TypeError
        If `pattern` or `series` does not hold real numbers.

    Notes
    -----
    The nearest stretch is chosen first. Each further choice is the nearest stretch whose start is far enough from the
    starts of all stretches chosen before. Among equally near stretches, the earliest is chosen. A channel counts as
    constant in a stretch if its standard deviation there is at most m times the rounding error of its mean. Two values
    may count as equal if their difference is below 1e-150 times the largest absolute value. Memory: at most about
    ``8 * (4 + 6 * n_channels)`` bytes for each point of the series.

    References
    ----------
    Rakthanmanon et al., "Searching and mining trillions of time series subsequences under dynamic time warping", KDD
    2012.

    Examples
    --------
    >>> import numpy as np
    >>> import similia as sm
    >>> t = np.linspace(0, 60, 3000)
    >>> series = np.sin(t) + 0.05 * t  # rises slowly
    >>> series[1700:1800] = series[1700] + np.abs(np.linspace(-1, 1, 100))  # a notch
    >>> distances, starts = sm.search.find(np.abs(np.linspace(-1, 1, 100)), series)
    >>> starts
    array([1700])
    """
    distance = DTW(window=0.1) if distance is None else distance
    if not isinstance(distance, DTW):
        raise BadParameter("distance", "a similia.distances.DTW", short(distance))
    check_positive_int(k, "k")
    if not isinstance(exclude, Real) or isinstance(exclude, bool) or not 0 <= exclude <= 1:
        raise BadParameter("exclude", "a number from 0 to 1", short(exclude))
    x, y = _one(pattern, "pattern"), _one(series, "series")
    if x.shape[1] != y.shape[1]:
        raise ValueError(f"pattern has {x.shape[1]} channels and series {y.shape[1]}; give the same channels of both")
    if not 2 <= len(x) <= len(y):
        raise ValueError(f"pattern has {len(x)} points, expected at least 2 and at most {len(y)}, those of the series")
    x_size, y_size = np.abs(x).max(axis=0), np.abs(y).max(axis=0)
    if not normalize:
        x_size = y_size = max(x_size.max(), y_size.max())
    (_, x_exponent), (_, y_exponent) = np.frexp(x_size), np.frexp(y_size)
    stretches = _Stretches.of(np.ldexp(x, -x_exponent), np.ldexp(y, -y_exponent), distance, bool(normalize))
    values, starts = stretches.nearest(k, max(1, math.ceil(float(exclude) * len(x) - 1e-9)))
    if distance.root:
        values = np.sqrt(values)
    return (values if normalize else _multiplied(values, distance._degree() * y_exponent)), starts


def _one(x: Any, name: str) -> Floats:
    """Return a series in float64, shape (n, n_channels); raise if it is none or has values that are not finite."""
    try:
        return as_series([x]).values.astype(np.float64)
    except (BadType, BadValue) as error:
        raise error.changed(collection=name, index=None) from error


def _multiplied(values: Floats, exponent: Any) -> Floats:
    """Return distances times 2**exponent; raise if one becomes infinite or 0."""
    with np.errstate(over="ignore", under="ignore"):
        found = np.ldexp(values, exponent)
    if np.isinf(found).any() or ((found == 0) & (values > 0)).any():
        size = "exceeds the largest" if exponent > 0 else "is below the smallest"
        raise ValueError(f"a distance {size} float64; scale the series")
    return found


class _Stretches(NamedTuple):
    """All stretches of a series that have the length m of a pattern; channel c of point t is at ``[c, t]``."""

    how: tuple[int, int, bool, float]  # m, number of channels, whether a match costs the root, half width of the band
    pattern: Floats  # standardised if wanted, (m n_channels), points one after the other
    series: Floats  # (n_channels, n + LANES)
    means: Floats  # of the stretch that begins at each point, (n_channels, n_stretches + LANES)
    factors: Floats  # one over the standard deviations, 0 for constant stretches; all 1 if nothing is standardised
    bounds: Floats  # on the distances of the stretches

    @classmethod
    def of(cls, x: Floats, y: Floats, distance: DTW, normalize: bool) -> _Stretches:
        (m, p), n = x.shape, len(y) - len(x) + 1
        rooted, (steps, share) = distance._rooted(), window_band(distance.window)
        how = (m, p, rooted, float(min(m, half_width(m, m, steps, share))))
        series, own = np.zeros((p, len(y) + LANES)), np.zeros((p, m + LANES))
        series[:, : len(y)], own[:, :m] = y.T, x.T
        own_mean, own_factor = np.zeros((p, LANES)), np.ones((p, LANES))
        means, factors = np.zeros((p, n + LANES)), np.ones((p, n + LANES))
        if normalize:
            _standardise(own, m, own_mean, own_factor, 0, 1)
            run_in_ranges(lambda a, b: _standardise(series, m, means, factors, a, b), n, _GRAIN)
        pattern = np.ascontiguousarray((x - own_mean[:, 0]) * own_factor[:, 0])
        around = np.zeros((2, p, len(y) + LANES))  # range of the series about each point
        inside = np.empty((2, p, m))  # range of the pattern
        reach = int(how[3])
        for c in range(p):
            envelope(series[c], 0, len(y), 1, len(y), reach, around[0, c], around[1, c])
            envelope(pattern[:, c].copy(), 0, m, 1, m, reach, inside[0, c], inside[1, c])
        bounds = np.empty(n + LANES)
        one = cls(how, pattern.reshape(-1), series, means, factors, bounds)
        run_in_ranges(lambda a, b: _bound(how, *one[1:5], around, inside, bounds, a, b), n, _GRAIN)
        return one._replace(bounds=bounds[:n])

    def nearest(self, k: int, apart: int) -> tuple[Floats, Index]:
        """Return the distances and starts of `k` stretches, nearest first, whose starts differ by at least `apart`."""
        bounds, values = self.bounds.copy(), np.full(len(self.bounds), np.inf)
        chosen, size = _spaced(bounds, 4 * k, apart), _FIRST
        limit = np.inf
        while True:
            found = self._distances(chosen, limit)
            known = found <= limit
            values[chosen[known]], bounds[chosen[known]] = found[known], np.inf
            bounds[chosen[~known]] = np.maximum(bounds[chosen[~known]], np.nextafter(limit, np.inf))
            starts = _spaced(values, k, apart)
            limit = values[starts[-1]] if len(starts) == k else np.inf
            chosen = np.flatnonzero(bounds <= limit if limit < np.inf else bounds < limit)
            if not len(chosen):
                return values[starts], starts
            if len(chosen) > size:
                chosen = chosen[np.argpartition(bounds[chosen], size)[:size]]
            chosen = chosen[np.argsort(bounds[chosen], kind="stable")]
            size = min(2 * size, _MOST)

    def _distances(self, chosen: Index, limit: float) -> Floats:
        """Return the distances of the stretches at `chosen`; those above `limit` may be infinite."""
        found, m, p = np.empty(len(chosen)), *self.how[:2]

        def evaluate(first: int, last: int) -> None:
            room = np.empty(LANES * p * m), np.empty(LANES * (m + 1)), np.full(LANES, self.how[3])
            _evaluate(self.how, *self[1:5], chosen, limit, found, first, last, *room)

        run_in_ranges(evaluate, len(chosen), max(LANES, -(-len(chosen) // (4 * n_threads()) // LANES) * LANES))
        return found


def _spaced(values: Floats, k: int, apart: int) -> Index:
    """Return the positions of the `k` smallest values that lie at least `apart` from each other, smallest first.

    Infinite values are not taken.
    """
    left, found = values.copy(), []
    for _ in range(k):
        at = int(left.argmin())
        if np.isinf(left[at]):
            break
        found.append(at)
        left[max(0, at - apart + 1) : at + apart] = np.inf
    return np.array(found, dtype=np.int64)


@njit()
def _standardise(series, m, means, factors, first, last):  # type: ignore[no-untyped-def]
    """Set the means, and one over the standard deviations, of the stretches `first` to `last` - 1 of `m` points."""
    eps = np.finfo(series.dtype).eps
    for c in range(len(series)):
        channel, mean, factor = series[c], means[c], factors[c]
        for at in range(first, last, LANES):
            total = lane.splat(channel[:0].sum())
            for j in range(m):
                total = total + lane.load(channel, at + j)
            center = total * lane.splat(1.0 / m)
            total = lane.splat(channel[:0].sum())
            for j in range(m):
                away = lane.load(channel, at + j) - center
                total = lane.multiply_add(away, away, total)
            lane.store(mean, at, center)
            lane.store(factor, at, total)
            for i in range(at, at + LANES):
                deviation = np.sqrt(factor[i] / m)
                factor[i] = 1.0 / deviation if deviation > m * eps * abs(mean[i]) else 0.0


@njit()
def _bound(how, pattern, series, means, factors, around, inside, bounds, first, last):  # type: ignore[no-untyped-def]
    """Set lower bounds on the distances of the stretches `first` to `last` - 1."""
    m, p, rooted, _ = how
    surely = 1 - 4 * np.finfo(series.dtype).eps * (2 * m + p)
    zero = lane.splat(pattern[:0].sum())
    for at in range(first, last, LANES):
        of_stretch, of_pattern = zero, zero
        for j in range(m):
            one, other = zero, zero
            for c in range(p):
                mean, factor = lane.load(means[c], at), lane.load(factors[c], at)
                y = (lane.load(series[c], at + j) - mean) * factor
                gap = lane.maximum(lane.splat(inside[0, c, j]) - y, y - lane.splat(inside[1, c, j]))
                gap = lane.maximum(gap, zero)
                one = gap if rooted and p == 1 else lane.multiply_add(gap, gap, one)
                low = (lane.load(around[0, c], at + j) - mean) * factor
                high = (lane.load(around[1, c], at + j) - mean) * factor
                x = lane.splat(pattern[p * j + c])
                gap = lane.maximum(lane.maximum(low - x, x - high), zero)
                other = gap if rooted and p == 1 else lane.multiply_add(gap, gap, other)
            if rooted and p > 1:  # the root of the square of a tiny number would be another number
                one, other = lane.square_root(one), lane.square_root(other)
            of_stretch, of_pattern = of_stretch + one, of_pattern + other
        lane.store(bounds, at, lane.maximum(of_stretch, of_pattern) * lane.splat(surely))


@njit()
def _evaluate(  # type: ignore[no-untyped-def]
    how, pattern, series, means, factors, chosen, limit, values, first, last, group, room, widths
):
    """Set the distances of the stretches ``chosen[first:last]``; infinite where a whole group exceeds `limit`."""
    m, p, rooted, _ = how
    for begin in range(first, last, LANES):
        end = min(begin + LANES, last)
        for i in range(LANES):
            start = chosen[min(begin + i, end - 1)]
            for c in range(p):
                mean, factor = means[c, start], factors[c, start]
                for j in range(m):
                    group[LANES * (p * j + c) + i] = (series[c, start + j] - mean) * factor
        complete = warp_within(pattern, 0, m, group, m, p, rooted, widths, room, limit)
        for i in range(begin, end):
            values[i] = room[LANES * m + i - begin] if complete else np.inf
