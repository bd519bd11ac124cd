"""Wasserstein distance of sets of points: the least cost of moving all mass of one set onto the other.

The cost of a pair of sets of sizes m and n is about (m + n) m n operations. Rejected: ``scipy.optimize.linprog``, which
takes a hundred times as long for sets of 30 points, and ``linear_sum_assignment``, which is as fast but needs two sets
of equal size. The tests compare with both.

The plan is found by successive shortest paths: each step finds the cheapest way from a point with mass left to a point
with room left, by Dijkstra's algorithm on reduced costs, and moves as much mass as it can. The way may take back mass
that other points have sent. Masses are integers, so the plan is exact; only the sum of its costs is rounded.

The points of each set are sorted, and the two sets of a pair are put into a fixed order. So the bits of a distance
depend neither on the order of the points nor on which set is the first argument.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.alignments import Indices
from similia.core.jit import njit
from similia.core.validation import check_choice
from similia.distances.magnitudes import Array, Pairs, ScaledDistance
from similia.distances.sets import as_comparable, fill_sets
from similia.objects import SetBatch, as_sets
from similia.similarity import Facts

_WORK_OF_A_THREAD = 2**20  # operations


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
    exp(-lambda d) is the Wasserstein Weisfeiler-Lehman kernel of Togninalli et al. For sets of word vectors and
    ``p=1``, d is the word mover's distance. `similia.kernels.DistanceRBF` and `similia.D2KE` make other kernels from d.

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
        """Return an optimal transport plan between two sets of points; if several plans are optimal, one of them.

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

        grain = max(1, _WORK_OF_A_THREAD // ((mean_a + mean_b) * mean_a * mean_b))
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
