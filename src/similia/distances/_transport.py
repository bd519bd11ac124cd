"""The loop behind the Wasserstein distance: least costs of transport between sets of points of equal weight.

Successive shortest paths: each step finds the cheapest way from a point with mass left to a point with room left, by
Dijkstra's algorithm on reduced costs, and moves as much mass as it can. The way may take back mass that other points
have sent. Masses are integers, so the plan is exact; only the sum of its costs is rounded.
"""

from __future__ import annotations

import math

import numpy as np

from similia.core.jit import njit


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
def costs_of(x, y, power, manhattan):  # type: ignore[no-untyped-def]
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
def plan(costs):  # type: ignore[no-untyped-def]
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
def distances(A, a_offsets, B, b_offsets, left, right, power, manhattan, out):  # type: ignore[no-untyped-def]
    """Fill ``out[k]`` with the distance of set ``left[k]`` of A to set ``right[k]`` of B, whose points are in order."""
    for k in range(len(left)):
        x = A[a_offsets[left[k]] : a_offsets[left[k] + 1]]
        y = B[b_offsets[right[k]] : b_offsets[right[k] + 1]]
        costs = costs_of(y, x, power, manhattan) if _before(y, x) else costs_of(x, y, power, manhattan)
        flow, units = plan(costs)
        total = 0.0
        for i in range(costs.shape[0]):
            for j in range(costs.shape[1]):
                if flow[i, j] > 0:
                    total += flow[i, j] * costs[i, j]
        out[k] = total / units if power == 1 else math.sqrt(total / units)
