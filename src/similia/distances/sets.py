r"""Distances between point sets: by nearest points in both directions, and by optimal transport, sliced or whole.

Cost for sets of m and n points in p dimensions: m n p operations. Each instruction computes distances to 16 points of
one or more sets; blocks of distances stay in the cache, and only the minima are written to memory.

Pairs with very large or very small coordinates are scaled by a power of two; differences below 1e-40 times the largest
number of a pair (float32: 1e-12) may count as 0.

An empty set counts as the set that holds only the origin. So the distances stay symmetric, and those that satisfy the
triangle inequality still do. No constant has to be chosen for empty sets: the distance of an empty set to V grows with
the norms of the points of V.

All distances raise a ValueError when called if a parameter is out of range, the points of X and Y differ in dimension
or contain NaN, or a collection is empty.

The Wasserstein distance of a pair of sets of sizes m and n costs about (m + n) m n operations. The plan is found by
successive shortest paths: each step finds the cheapest way from a point with mass left to a point with room left, by
Dijkstra's algorithm on reduced costs, and moves as much mass as it can. The way may take back mass that other points
have sent. Masses are integers, so the plan is exact; only the sum of its costs is rounded. The points of each set are
sorted, and the two sets of a pair are put into a fixed order. So the bits of a distance depend neither on the order of
the points nor on which set is the first argument.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from similia.alignments import Indices
from similia.core import lanes as lane
from similia.core.config import run_in_ranges, run_tasks
from similia.core.jit import njit
from similia.core.lanes import LANES
from similia.core.products import panels, row_product
from similia.core.validation import BadValue, as_second, check_choice, check_positive_int, generator
from similia.distances.magnitudes import Array, Pairs, ScaledDistance
from similia.objects import SetBatch, as_sets
from similia.objects.sequences import runs
from similia.objects.vectors import check_finite
from similia.similarity import Facts

_STEP = 64  # multiplications of a matrix product that take as long as one coordinate of one pair of points
_POINTS = 1024  # points per tile, unless one set has more; a tile is a run of adjacent sets of A
_FEW_TILES = 8  # with fewer tiles, threads also share the sets of B
_WORK_OF_A_THREAD = 2**22  # operations
_MEAN_MAX, _MAX_MAX, _MEAN_SUM = 0, 1, 2  # how to combine the nearest distances of both directions
_SMALL = 32  # with at most this many points in a set, `_nearest_of_four` is faster than `_nearest`
_ROWS = 64  # points of a set of B compared at once: 256 KiB of float32 distances
_WORK_OF_PLANS = 2**20  # operations


class _NearestPoints(ScaledDistance):
    """Base class of the distances based on each point's distance to the nearest point of the other set."""

    ground: str
    _noun = "sets"
    _kind: ClassVar[int]
    _grounds: ClassVar[tuple[str, ...]] = ("euclidean", "sqeuclidean", "manhattan")

    def __init__(self, ground: str = "euclidean") -> None:
        self.ground = ground

    def as_objects(self, X: Any) -> SetBatch:
        return as_sets(X)

    def _read(self, X: Any, Y: Any) -> tuple[SetBatch, SetBatch]:
        check_choice(self.ground, "ground", self._grounds)
        return as_comparable(X, Y)

    def _degree(self) -> int:
        return 2 if self.ground == "sqeuclidean" else 1

    def _find(self, A: SetBatch, B: SetBatch, pairs: Pairs | None, shift: int) -> Array:
        if pairs is not None:
            return self._find_pairs(A, B, *pairs)
        out = np.empty((len(A), len(B)), B.values.dtype)
        # An instruction computes distances of 16 points of the first collection, so the one with larger sets is first.
        if A is not B and len(A.values) * len(B) < len(B.values) * len(A):
            self._fill(B, A, out.T, same=False)
        else:
            self._fill(A, B, out, same=A is B)
        return out

    def _find_pairs(self, A: SetBatch, B: SetBatch, left: Indices, right: Indices) -> Array:
        out = np.empty(len(left), B.values.dtype)
        order = np.argsort(left, kind="stable")
        ends = np.searchsorted(left[order], np.arange(len(A) + 1))

        def fill(a: int) -> None:
            pairs = order[ends[a] : ends[a + 1]]
            found = np.empty((1, len(pairs)), B.values.dtype)
            self._join(A, slice(a, a + 1), B, right[pairs], found)
            out[pairs] = found[0]

        mean_points = len(A.values) / len(A) * len(B.values) / len(B)
        run_tasks(fill, range(len(A)), int(_STEP * len(left) * mean_points * A.n_dims))
        return out

    def _fill(self, A: SetBatch, B: SetBatch, out: Array, *, same: bool) -> None:
        """Fill `out` with the distances of all pairs; if `same`, A is B and each pair is computed once."""
        tiles = runs(A.offsets, _POINTS)
        chunks = [np.arange(len(B))]
        if len(tiles) < _FEW_TILES and not same:
            chunks = np.array_split(chunks[0], min(len(B), _FEW_TILES))

        def fill(number: int) -> None:
            rows, chosen = tiles[number // len(chunks)], chunks[number % len(chunks)]
            if same:
                chosen = chosen[rows.start :]
            found = np.empty((rows.stop - rows.start, len(chosen)), out.dtype)
            self._join(A, rows, B, chosen, found)
            out[rows, chosen[0] : chosen[-1] + 1] = found
            if same:
                out[rows.stop :, rows] = found[:, rows.stop - rows.start :].T

        work = _STEP * len(A.values) * len(B.values) * A.n_dims // (2 if same else 1)
        run_tasks(fill, range(len(tiles) * len(chunks)), work)

    def _join(self, A: SetBatch, rows: slice, B: SetBatch, chosen: npt.NDArray[np.int64], out: Array) -> None:
        """Fill `out` with the distances between the sets ``A[rows]`` and the sets of B with indices `chosen`."""
        first, last = A.offsets[rows.start], A.offsets[rows.stop]
        columns = panels(A.values[first:last].T).values
        offsets = A.offsets[rows.start : rows.stop + 1] - first
        bits = np.empty(0, np.int32 if columns.itemsize == 4 else np.int64)
        _join(
            columns, bits, offsets, B.values, B.offsets, chosen, self._kind, self.ground == "manhattan",
            self.ground == "euclidean", out,
        )  # fmt: skip


class ModifiedHausdorff(_NearestPoints):
    r"""Modified Hausdorff distance: the larger of the two mean distances from the points of one set to the other set.

    .. math:: d(U, V) = \max\Big\{\frac{1}{|U|} \sum_{u \in U} \min_{v \in V} \Delta(u, v),\
              \frac{1}{|V|} \sum_{v \in V} \min_{u \in U} \Delta(v, u)\Big\},

    where :math:`\Delta` is the distance between two points. d is not a metric: {2}, {2, 1}, {0, 1, 0} violate the
    triangle inequality, and sets of the same points have distance 0, however often each set repeats them.

    Parameters
    ----------
    ground : {"euclidean", "sqeuclidean", "manhattan"}, default="euclidean"
        Distance between two points.

    Notes
    -----
    An empty set counts as the set that holds only the origin: two empty sets have distance 0, and the distance between
    an empty set and V is the mean distance from the points of V to the origin. Distances have the dtype of the points
    of `Y` (of `X` if `Y` is not given), and a relative error of about 1e-6 in float32 and 1e-14 in float64. The
    distance between two sets is the same, to the last bit, whatever other sets are in the call. Equal sets have
    distance exactly 0.

    References
    ----------
    Dubuisson & Jain, "A modified Hausdorff distance for object matching", ICPR 1994; Wu, Yen, Xu, Ravikumar & Witbrock,
    "D2KE: from distance to kernel and embedding", Eq. 2 (which exchanges the limits of the two sums by mistake).

    Examples
    --------
    >>> import numpy as np
    >>> from similia.distances import ModifiedHausdorff
    >>> sets = [np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([[6.0, 8.0]])]
    >>> ModifiedHausdorff()(sets)
    array([[0. , 7.5],
           [7.5, 0. ]])
    """

    facts = Facts(symmetric=True, identity=True, metric=False, unequal_length=True, cost="m n")
    _kind = _MEAN_MAX


class Hausdorff(_NearestPoints):
    r"""Hausdorff distance: the largest distance from a point to the nearest point of the other set.

    .. math:: d(U, V) = \max\{\max_{u \in U} \min_{v \in V} \Delta(u, v),\ \max_{v \in V} \min_{u \in U} \Delta(v, u)\}.

    :math:`\Delta` is the distance between two points. d is a metric on nonempty finite sets. Repeated points count
    once, and an empty set counts as the set that holds only the origin.

    Parameters
    ----------
    ground : {"euclidean", "manhattan"}, default="euclidean"
        Distance between two points.

    Notes
    -----
    The distance between an empty set and V is the largest distance from a point of V to the origin. There is no
    ``ground="sqeuclidean"``, since it would only square the result. For rounding errors, see the notes of
    `ModifiedHausdorff`.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.distances import Hausdorff
    >>> sets = [np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([[6.0, 8.0]])]
    >>> Hausdorff()(sets)
    array([[ 0., 10.],
           [10.,  0.]])
    """

    facts = Facts(symmetric=True, identity=True, metric=True, unequal_length=True, cost="m n")
    _kind = _MAX_MAX
    _grounds = ("euclidean", "manhattan")


class Chamfer(_NearestPoints):
    r"""Chamfer distance: the sum of the two mean distances from the points of one set to the other set.

    .. math:: d(U, V) = \frac{1}{|U|} \sum_{u \in U} \min_{v \in V} \Delta(u, v)
              + \frac{1}{|V|} \sum_{v \in V} \min_{u \in U} \Delta(v, u).

    :math:`\Delta` is the distance between two points. Like `ModifiedHausdorff`, d is not a metric.

    Parameters
    ----------
    ground : {"euclidean", "sqeuclidean", "manhattan"}, default="euclidean"
        Distance between two points; "sqeuclidean" is the usual choice for 3D point clouds.

    Notes
    -----
    An empty set counts as the set that holds only the origin. For rounding errors, see the notes of
    `ModifiedHausdorff`.

    References
    ----------
    Fan, Su & Guibas, "A point set generation network for 3D object reconstruction from a single image", CVPR
    2017, Eq. 2, which has sums instead of means.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.distances import Chamfer
    >>> sets = [np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([[6.0, 8.0]])]
    >>> Chamfer()(sets)
    array([[ 0. , 12.5],
           [12.5,  0. ]])
    """

    facts = Facts(symmetric=True, identity=True, metric=False, unequal_length=True, cost="m n")
    _kind = _MEAN_SUM


class SlicedWasserstein(ScaledDistance):
    r"""Sliced Wasserstein distance between the uniform distributions on two sets of points.

    .. math:: d(U, V) = \Big(\frac{1}{L} \sum_{l=1}^{L} \int_0^1
              \big|F^{-1}_{\theta_l U}(t) - F^{-1}_{\theta_l V}(t)\big|^p dt\Big)^{1/p}

    The L directions :math:`\theta_l` are drawn uniformly from the sphere. :math:`F^{-1}_{\theta U}` is the quantile
    function of the points of U projected onto :math:`\theta`. The sets may differ in size. The triangle inequality
    holds, but d is not a metric: it is 0 for different distributions that have the same projections in all L
    directions. For any two given distributions, this happens with probability 0.

    Parameters
    ----------
    n_projections : int, default=128
        Number L of directions; with more directions, the distance is more accurate and slower.
    p : {1, 2}, default=2
        Order of the distance.
    random_state : int, default=0
        Seed of the directions. It must be an integer, so that every call uses the same directions for points of the
        same dimension.

    Notes
    -----
    Projecting and sorting a set of m points in D dimensions takes about L m (D + log m) operations; comparing it with a
    set of n points then takes about L (m + n) operations. An empty set counts as the set that holds only the origin.
    Equal sets, with points in any order, have distance 0.

    References
    ----------
    Bonneel, Rabin, Peyré & Pfister, "Sliced and Radon Wasserstein barycenters of measures", Journal of
    Mathematical Imaging and Vision 51, 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.distances import SlicedWasserstein
    >>> sets = [np.array([[0.0], [2.0]]), np.array([[1.0]]), np.array([[5.0], [7.0], [7.0], [5.0]])]
    >>> SlicedWasserstein(p=1)(sets)  # in one dimension all directions agree
    array([[0., 1., 5.],
           [1., 0., 5.],
           [5., 5., 0.]])
    """

    facts = Facts(symmetric=True, identity=True, metric=False, unequal_length=True, cost="m + n")
    _noun = "sets"

    def __init__(self, n_projections: int = 128, p: int = 2, random_state: int = 0) -> None:
        self.n_projections = n_projections
        self.p = p
        self.random_state = random_state

    def as_objects(self, X: Any) -> SetBatch:
        return as_sets(X)

    def _read(self, X: Any, Y: Any) -> tuple[SetBatch, SetBatch]:
        check_positive_int(self.n_projections, "n_projections")
        check_choice(self.p, "p", (1, 2))
        return as_comparable(X, Y)

    def _find(self, A: SetBatch, B: SetBatch, pairs: Pairs | None, shift: int) -> Array:
        directions = self._directions(int(self.n_projections), A.n_dims)
        a = _sorted_projections(A, directions)
        b = a if A is B else _sorted_projections(B, directions)

        def fill(left: Indices, right: Indices, out: Array) -> None:
            _sliced_wasserstein(a, A.offsets, b, B.offsets, left, right, int(self.p), out)

        work = (len(A.values) // len(A) + len(B.values) // len(B)) * len(directions)  # operations per pair
        return fill_sets(A, B, pairs, fill, max(1, _WORK_OF_A_THREAD // work))

    def _directions(self, n_projections: int, n_dims: int) -> npt.NDArray[np.float64]:
        seed = check_positive_int(self.random_state, "random_state", minimum=0)
        directions = generator(seed).standard_normal((n_projections, n_dims))
        return directions / np.linalg.norm(directions, axis=1, keepdims=True)


def _sorted_projections(sets: SetBatch, directions: npt.NDArray[np.float64]) -> Array:
    """Return the projections of the points on each direction, in ascending order within each set."""
    projections = np.empty((len(sets.values), len(directions)), sets.values.dtype)
    for run in runs(sets.offsets, 4096):
        points = slice(sets.offsets[run.start], sets.offsets[run.stop])
        projections[points] = row_product(sets.values[points], directions.T)
    for start, stop in zip(sets.offsets[:-1], sets.offsets[1:], strict=True):
        projections[start:stop].sort(axis=0)
    return projections


def fill_sets(
    A: SetBatch, B: SetBatch, pairs: Pairs | None, fill: Callable[[Indices, Indices, Array], None], grain: int
) -> Array:
    """Return the distances of the index pairs `pairs`, or of all pairs; if A is B, each pair is computed once.

    ``fill(left, right, out)`` writes the distances of the sets ``A[left[k]]`` and ``B[right[k]]`` to ``out[k]``.
    A thread gets at least about `grain` pairs.
    """
    if pairs is not None:
        left, right, found = *pairs, np.empty(len(pairs[0]), B.values.dtype)

        def some(start: int, stop: int) -> None:
            fill(left[start:stop], right[start:stop], found[start:stop])

        run_in_ranges(some, len(left), grain)
        return found
    out = np.empty((len(A), len(B)), B.values.dtype)

    def rows(start: int, stop: int) -> None:
        for i in range(start, stop):
            columns = np.arange(i if A is B else 0, len(B))
            fill(np.full(len(columns), i), columns, out[i, columns[0] :])

    run_in_ranges(rows, len(A), max(1, grain // len(B)))
    if A is B:
        lower = np.tril_indices(len(A), -1)
        out[lower] = out.T[lower]
    return out


def as_comparable(X: Any, Y: Any) -> tuple[SetBatch, SetBatch]:
    """Return X and Y (X again if Y is None) as batches of sets prepared by `comparable`."""
    A = as_sets(X)
    return comparable(A, A if Y is None else as_second(as_sets, Y))


def comparable(A: SetBatch, B: SetBatch) -> tuple[SetBatch, SetBatch]:
    """Return both batches with {0} in place of empty sets; raise if dimensions differ or a value is not finite."""
    n_dims = A.n_dims if len(A.values) else B.n_dims
    if len(B.values) and B.n_dims != n_dims:
        raise BadValue(
            None, f"holds points of dimension {n_dims} and Y of dimension {B.n_dims}", "one dimension for both"
        )
    for batch, name in ((A, "X"), (B, "Y")):
        check_finite(batch, collection=name)
    without_empty = _without_empty(A, n_dims)
    return without_empty, without_empty if A is B else _without_empty(B, n_dims)


def _without_empty(sets: SetBatch, n_dims: int) -> SetBatch:
    empty = sets.lengths == 0
    if not empty.any():
        return sets
    values = sets.values if len(sets.values) else np.empty((0, n_dims), sets.values.dtype)
    return SetBatch(
        np.insert(values, sets.offsets[:-1][empty], 0.0, axis=0), sets.offsets + np.append(0, np.cumsum(empty))
    )


@njit()
def _add(values, n, root, sums):  # type: ignore[no-untyped-def]
    """Add the first n values (if `root`, their square roots) to four interleaved partial sums.

    Only the last part of a sum over several parts may have a number of values that four does not divide.
    """
    a, b, c, d = sums[0], sums[1], sums[2], sums[3]
    for k in range(0, n - n % 4, 4):
        if root:
            a += math.sqrt(values[k])
            b += math.sqrt(values[k + 1])
            c += math.sqrt(values[k + 2])
            d += math.sqrt(values[k + 3])
        else:
            a += values[k]
            b += values[k + 1]
            c += values[k + 2]
            d += values[k + 3]
    for k in range(n - n % 4, n):
        a += math.sqrt(values[k]) if root else values[k]
    sums[0], sums[1], sums[2], sums[3] = a, b, c, d


@njit()
def _take(values, n, kind, root, sums, largest):  # type: ignore[no-untyped-def]
    """Add the first n values as `_add` does or, if `kind` is _MAX_MAX, replace ``largest[0]`` by a larger value."""
    if kind != _MAX_MAX:
        _add(values, n, root, sums)
        return
    for k in range(n):
        largest[0] = max(largest[0], values[k])


@njit()
def _summary(n, kind, root, sums, largest):  # type: ignore[no-untyped-def]
    """Return the mean (if `kind` is _MAX_MAX, the maximum) of n values, or of their roots, that `_take` has taken."""
    if kind != _MAX_MAX:
        return ((sums[0] + sums[1]) + (sums[2] + sums[3])) / n
    return math.sqrt(largest[0]) if root else np.float64(largest[0])


@njit()
def _nearest(bits, lane_bits, n):  # type: ignore[no-untyped-def]
    """Return the smallest of ``bits[:n]``; replace ``lane_bits[:n]`` by the elementwise minimum of both arrays."""
    nearest = bits[0]
    for c in range(n):
        value = bits[c]
        if value < nearest:
            nearest = value
        if value < lane_bits[c]:
            lane_bits[c] = value
    return nearest


@njit()
def _nearest_of_four(bits, at, width, lane_bits, start, n, row_bits, place):  # type: ignore[no-untyped-def]
    """Do `_nearest` for four rows of `bits` at once; write their four minima to ``row_bits[place:]``."""
    a, b, c, d = bits[at], bits[at + width], bits[at + 2 * width], bits[at + 3 * width]
    for i in range(n):
        p, q, r, s = bits[at + i], bits[at + width + i], bits[at + 2 * width + i], bits[at + 3 * width + i]
        a, b, c, d = min(a, p), min(b, q), min(c, r), min(d, s)
        lane_bits[start + i] = min(lane_bits[start + i], min(min(p, q), min(r, s)))
    row_bits[place], row_bits[place + 1], row_bits[place + 2], row_bits[place + 3] = a, b, c, d


@njit()
def _term(columns, at, coordinate, total, manhattan):  # type: ignore[no-untyped-def]
    difference = lane.load(columns, at) - lane.splat(coordinate)
    if manhattan:
        return total + lane.magnitude(difference)
    return lane.multiply_add(difference, difference, total)


@njit()
def _tile(columns, width, points, manhattan, out):  # type: ignore[no-untyped-def]
    """Fill `out` with the distances (squared, unless `manhattan`) of `points` to the `width` points in `columns`.

    `columns` holds coordinates in the layout of `core.products.panels`. Row r of the result begins at
    ``out[r * width]``. The terms of a distance are always added in the order of the coordinates.
    """
    n, p = points.shape
    zero = lane.splat(columns.dtype.type(0))
    for first in range(0, width, LANES):
        for r in range(0, n - n % 4, 4):
            a, b, c, d = zero, zero, zero, zero
            for k in range(p):
                at = first * p + k * LANES
                a = _term(columns, at, points[r, k], a, manhattan)
                b = _term(columns, at, points[r + 1, k], b, manhattan)
                c = _term(columns, at, points[r + 2, k], c, manhattan)
                d = _term(columns, at, points[r + 3, k], d, manhattan)
            lane.store(out, r * width + first, a)
            lane.store(out, (r + 1) * width + first, b)
            lane.store(out, (r + 2) * width + first, c)
            lane.store(out, (r + 3) * width + first, d)
        for r in range(n - n % 4, n):
            a = zero
            for k in range(p):
                a = _term(columns, first * p + k * LANES, points[r, k], a, manhattan)
            lane.store(out, r * width + first, a)


@njit()
def _join(columns, bits, a_offsets, B, b_offsets, chosen, kind, manhattan, root, out):  # type: ignore[no-untyped-def]
    """Fill ``out[a, k]`` with the distance of set a of A, a group of sets, to set ``chosen[k]`` of `B`.

    `columns` holds the points of A, as in `_tile`; set a begins at point ``a_offsets[a]``, and ``a_offsets[0]`` is 0.
    `kind` and `root` are those of `_take`. Minima are taken of the bits of distances, read as integers: these have
    the same order, since distances are not negative, and vector instructions compare integers without a check for NaN.
    `bits` only gives the dtype of these integers.
    """
    width, n_sets = len(columns) // B.shape[1], len(a_offsets) - 1
    lanes, tile = np.empty(width, B.dtype), np.empty(_ROWS * width, B.dtype)
    rows, sums, largest = np.empty(_ROWS, B.dtype), np.empty((n_sets + 1, 4)), np.empty((n_sets + 1, 1), B.dtype)
    lane_bits, tile_bits, row_bits = lanes.view(bits.dtype), tile.view(bits.dtype), rows.view(bits.dtype)
    for place in range(len(chosen)):
        start, stop = b_offsets[chosen[place]], b_offsets[chosen[place] + 1]
        lanes[:] = np.inf
        sums[:], largest[:] = 0.0, 0
        for first in range(start, stop, _ROWS):
            last = min(stop, first + _ROWS)
            _tile(columns, width, B[first:last], manhattan, tile)
            for a in range(n_sets):
                c, n = a_offsets[a], a_offsets[a + 1] - a_offsets[a]
                whole = last - first - (last - first) % 4 if n <= _SMALL else 0
                for r in range(0, whole, 4):
                    _nearest_of_four(tile_bits, r * width + c, width, lane_bits, c, n, row_bits, r)
                for r in range(whole, last - first):
                    at = r * width + c
                    row_bits[r] = _nearest(tile_bits[at : at + n], lane_bits[c : c + n], n)
                _take(rows, last - first, kind, root, sums[a], largest[a])
        for a in range(n_sets):
            c, n = a_offsets[a], a_offsets[a + 1] - a_offsets[a]
            sums[n_sets], largest[n_sets] = 0.0, 0
            _take(lanes[c : c + n], n, kind, root, sums[n_sets], largest[n_sets])
            x = _summary(n, kind, root, sums[n_sets], largest[n_sets])
            y = _summary(stop - start, kind, root, sums[a], largest[a])
            out[a, place] = x + y if kind == _MEAN_SUM else max(x, y)


@njit()
def _sliced_wasserstein(A, a_offsets, B, b_offsets, left, right, power, out):  # type: ignore[no-untyped-def]
    """Fill ``out[k]`` with the sliced Wasserstein distance of set ``left[k]`` of A to set ``right[k]`` of B.

    Column l of A and of B holds the projections on direction l, in ascending order within each set. The quantile
    functions of sets of m and n points have their steps at the same places for all directions, so one pass over the
    steps serves all directions. `power` is the order, 1 or 2. The variable `mass` is a probability times m n.
    """
    n_directions = A.shape[1]
    cost, sums = np.empty(n_directions), np.empty(4)
    for k in range(len(left)):
        a, b = left[k], right[k]
        m, n = a_offsets[a + 1] - a_offsets[a], b_offsets[b + 1] - b_offsets[b]
        cost[:] = 0.0
        i = j = mass = 0
        while mass < m * n:
            until = min((i + 1) * n, (j + 1) * m)
            weight = (until - mass) / (m * n)
            x, y = A[a_offsets[a] + i], B[b_offsets[b] + j]
            for l in range(n_directions):
                difference = abs(np.float64(x[l]) - np.float64(y[l]))
                cost[l] += weight * (difference if power == 1 else difference * difference)
            mass = until
            i, j = mass // n, mass // m
        sums[:] = 0.0
        _add(cost, n_directions, False, sums)
        mean = ((sums[0] + sums[1]) + (sums[2] + sums[3])) / n_directions
        out[k] = mean if power == 1 else math.sqrt(mean)


class Wasserstein(ScaledDistance):
    r"""Exact Wasserstein distance between the uniform distributions on two sets of points; for small sets.

    .. math:: d(U, V) = \Big(\min_T \sum_{ij} T_{ij}\, \Delta(u_i, v_j)^p\Big)^{1/p}

    U has m points and V has n. The minimum is over all transport plans T >= 0 with row sums 1 / m and column sums
    1 / n. The distance is a metric of distributions, not of sets: repeating every point equally often changes nothing.

    Parameters
    ----------
    p : {1, 2}, default=1
        Order of the distance; 1 is the earth mover's distance.
    ground : {"euclidean", "manhattan"}, default="euclidean"
        Distance :math:`\Delta` between two points.

    Notes
    -----
    The time grows with the third power of the size of the sets. For sets of more than a few hundred points, use
    `similia.distances.SlicedWasserstein`, whose time is nearly linear in m + n.

    An empty set counts as the set that holds only the origin. Equal sets, with points in any order, have distance 0.
    The distance between two sets is the same, to the last bit, whatever other sets are in the call.

    ``similia.objects.GraphToSets(n_iter=h)`` turns graphs with node attributes into sets. For these sets and ``p=1``,
    exp(-lambda d) with a factor lambda > 0 is the Wasserstein Weisfeiler-Lehman kernel of Togninalli et al. For sets of
    word vectors and ``p=1``, d is the word mover's distance. `similia.kernels.DistanceRBF` and `similia.D2KE` make
    other kernels from d.

    References
    ----------
    Rubner, Tomasi & Guibas, "The earth mover's distance as a metric for image retrieval", IJCV 40, 2000; Togninalli et
    al., "Wasserstein Weisfeiler-Lehman graph kernels", NeurIPS 2019; Wu et al., "Word mover's embedding", EMNLP 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.distances import Wasserstein
    >>> sets = [np.array([[0.0], [2.0]]), np.array([[1.0]]), np.array([[5.0], [7.0], [9.0]])]
    >>> Wasserstein()(sets)
    array([[0., 1., 6.],
           [1., 0., 6.],
           [6., 6., 0.]])
    """

    facts = Facts(symmetric=True, identity=True, metric=True, unequal_length=True, cost="(m + n)^3")
    _noun = "sets"

    def __init__(self, p: int = 1, ground: str = "euclidean") -> None:
        self.p = p
        self.ground = ground

    def as_objects(self, X: Any) -> SetBatch:
        return as_sets(X)

    def plan(self, x: npt.ArrayLike, y: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return an optimal transport plan: how to move the mass of one set of points onto another at the least cost.

        Each set has mass 1, spread evenly over its points. If several plans are optimal, one of them is returned.

        Parameters
        ----------
        x, y : array-like of shape (m, n_dims) and (n, n_dims)
            The two sets; each must have at least one point.

        Returns
        -------
        ndarray of float64, shape (m, n)
            Entry (i, j) is the share of the mass that moves from ``x[i]`` to ``y[j]``; all entries add up to 1.

        Examples
        --------
        >>> from similia.distances import Wasserstein
        >>> Wasserstein().plan([[0.0], [2.0]], [[2.0], [9.0]])
        array([[0.5, 0. ],
               [0. , 0.5]])
        """
        A, B = self._read([x], [y])
        for name, points in (("x", x), ("y", y)):
            if np.size(points) == 0:  # read as {0}, as in a distance
                raise BadValue(None, "is an empty set", "at least one point", collection=name)
        _, shift = np.frexp(max(np.abs(side.values).max() for side in (A, B)))
        # Scaling does not change the plan.
        a, b = (np.ldexp(side.values.astype(np.float64), -int(shift)) for side in (A, B))
        costs = _costs_of(a, b, int(self.p), self.ground == "manhattan")
        moved, units = _plan(costs)
        return np.asarray(moved / units)

    def _read(self, X: Any, Y: Any) -> tuple[SetBatch, SetBatch]:
        check_choice(self.p, "p", (1, 2))
        check_choice(self.ground, "ground", ("euclidean", "manhattan"))
        return as_comparable(X, Y)

    def _find(self, A: SetBatch, B: SetBatch, pairs: Pairs | None, shift: int) -> Array:
        a = _in_order(A)
        b = a if A is B else _in_order(B)
        mean_a, mean_b = (max(1, len(sets.values) // len(sets)) for sets in (A, B))

        def fill(left: Indices, right: Indices, out: Array) -> None:
            _fill(a, A.offsets, b, B.offsets, left, right, int(self.p), self.ground == "manhattan", out)

        grain = max(1, _WORK_OF_PLANS // ((mean_a + mean_b) * mean_a * mean_b))
        return fill_sets(A, B, pairs, fill, grain)


def _in_order(sets: SetBatch) -> Array:
    """Return the points of all sets, sorted within each set by their coordinates."""
    of_set = np.repeat(np.arange(len(sets)), sets.lengths)
    order = np.lexsort((*sets.values.T[::-1], of_set))
    return np.ascontiguousarray(sets.values[order])


@njit()
def _before(x, y):  # type: ignore[no-untyped-def]
    """Return whether the set x comes before y: it has fewer points, or the first different coordinate is smaller."""
    if len(x) != len(y):
        return len(x) < len(y)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] != y[i, j]:
                return x[i, j] < y[i, j]
    return False


@njit()
def _costs_of(x, y, power, manhattan):  # type: ignore[no-untyped-def]
    """Return the distances of the points of x to those of y, to the given power."""
    out = np.empty((len(x), len(y)))
    for i in range(len(x)):
        for j in range(len(y)):
            total = 0.0
            for k in range(x.shape[1]):
                difference = abs(np.float64(x[i, k]) - np.float64(y[j, k]))
                total += difference if manhattan else difference * difference
            if manhattan:
                out[i, j] = total if power == 1 else total * total
            else:
                out[i, j] = math.sqrt(total) if power == 1 else total
    return out


@njit()
def _relax(costs, i, u, v, distance, done, near, via):  # type: ignore[no-untyped-def]
    """Shorten the paths to all columns by row i, which is at `distance` from the start."""
    for j in range(len(near)):
        length = distance + (costs[i, j] - u[i] - v[j])
        if not done[j] and length < near[j]:
            near[j], via[j] = length, i


@njit()
def _nearest_room(costs, start, u, v, flow, room, via, back):  # type: ignore[no-untyped-def]
    """Return the column with room left that is nearest to row `start`, and adapt the potentials u and v.

    ``via[j]`` becomes the row before column j on the shortest path, and ``back[i]`` the column before row i.
    """
    m, n = costs.shape
    near, done = np.full(n, np.inf), np.zeros(n, np.bool_)
    reach, reached = np.zeros(m), np.zeros(m, np.bool_)
    reached[start] = True
    _relax(costs, start, u, v, 0.0, done, near, via)
    while True:
        last = -1
        for j in range(n):
            if not done[j] and (last < 0 or near[j] < near[last]):
                last = j
        done[last] = True
        if room[last] > 0:
            break
        for i in range(m):
            if not reached[i] and flow[i, last] > 0:
                reached[i], reach[i], back[i] = True, near[last], last
                _relax(costs, i, u, v, near[last], done, near, via)
    for i in range(m):
        if reached[i]:
            u[i] += near[last] - reach[i]
    for j in range(n):
        if done[j]:
            v[j] -= near[last] - near[j]
    return last


@njit()
def _plan(costs):  # type: ignore[no-untyped-def]
    """Return the cheapest plan to move mass from rows to columns, all of equal weight, as (units moved, all units)."""
    m, n = costs.shape
    common = m
    while common % n:
        common += m
    u, v, flow = np.zeros(m), np.zeros(n), np.zeros((m, n), np.int64)
    room, via, back = np.full(n, common // n), np.zeros(n, np.int64), np.zeros(m, np.int64)
    for start in range(m):
        left = common // m
        while left > 0:
            end = _nearest_room(costs, start, u, v, flow, room, via, back)
            amount, j = min(left, room[end]), end
            while via[j] != start:
                amount, j = min(amount, flow[via[j], back[via[j]]]), back[via[j]]
            left -= amount
            room[end] -= amount
            j = end
            flow[via[j], j] += amount
            while via[j] != start:
                i, j = via[j], back[via[j]]
                flow[i, j] -= amount
                flow[via[j], j] += amount
    return flow, common


@njit()
def _fill(A, a_offsets, B, b_offsets, left, right, power, manhattan, out):  # type: ignore[no-untyped-def]
    """Fill ``out[k]`` with the distance of set ``left[k]`` of A to set ``right[k]`` of B, whose points are in order."""
    for k in range(len(left)):
        x = A[a_offsets[left[k]] : a_offsets[left[k] + 1]]
        y = B[b_offsets[right[k]] : b_offsets[right[k] + 1]]
        costs = _costs_of(y, x, power, manhattan) if _before(y, x) else _costs_of(x, y, power, manhattan)
        flow, units = _plan(costs)
        total = 0.0
        for i in range(costs.shape[0]):
            for j in range(costs.shape[1]):
                if flow[i, j] > 0:
                    total += flow[i, j] * costs[i, j]
        out[k] = total / units if power == 1 else math.sqrt(total / units)
