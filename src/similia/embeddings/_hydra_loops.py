"""The loop of `Hydra`: at each time point, the kernels of a group compete.

Time points are SIMD lanes. The nine shifted vectors of a step stay in registers while all kernels of the group are
applied, so a kernel takes nine fused multiply-adds and ten comparisons and additions for `LANES` time points. Each lane
has sums of its own, which are added in a fixed order at the end, so the bits are equal on every processor.
"""

from __future__ import annotations

import numpy as np

from similia.core import lanes as lane
from similia.core.jit import njit
from similia.core.lanes import LANES

LENGTH = 9  # of a kernel


@njit()
def compete(values, offsets, start, stop, weights, channels, out):  # type: ignore[no-untyped-def]
    """Fill rows ``start:stop`` of `out` with the features of these series; `Hydra` states the shapes of arrays.

    The last half of the groups (rounded down) read the differences of successive values instead of the values.
    """
    n_dilations, n_groups, n_kernels = weights.shape[:3]
    n_plain = n_groups - n_groups // 2
    longest = 0
    for i in range(start, stop):
        longest = max(longest, offsets[i + 1] - offsets[i])
    widest = min(1 << (n_dilations - 1), longest)
    padded = np.zeros(longest + (LENGTH - 1) * widest + LANES, np.float32)
    room = np.empty(3 * n_kernels * LANES, np.float32)
    ends = np.zeros(2 * LANES, np.float32)
    ends[:LANES] = 1
    for i in range(start, stop):
        x = values[offsets[i] : offsets[i + 1]]
        for d in range(n_dilations):
            dilation = min(1 << d, len(x))  # larger dilations read the same numbers: zeros on both sides
            for g in range(n_groups):
                differences = int(g >= n_plain)
                length = len(x) - differences
                if values.shape[1] > 1 or g == 0 or g == n_plain:
                    _pad(x, channels[d, g], differences, LENGTH // 2 * dilation, padded)
                _count(padded, length, dilation, weights[d, g].reshape(-1), ends, room, out[i, d, g])


@njit()
def _pad(x, channels, differences, margin, padded):  # type: ignore[no-untyped-def]
    """Write the sum of some channels of a series, or its differences, to `padded`, with zeros on both sides."""
    padded[:] = 0
    for t in range(len(x) - differences):
        total = np.float32(0)
        for c in channels:
            total += x[t + 1, c] - x[t, c] if differences else x[t, c]
        padded[margin + t] = total


@njit()
def _count(padded, length, dilation, weights, ends, room, out):  # type: ignore[no-untyped-def]
    """Fill ``out[0, k]`` with the sum of the winning outputs of kernel k, ``out[1, k]`` with the number of its losses.

    An output wins if it is the largest of the group at its time, and loses if it is the smallest; of equal outputs, the
    first kernel's counts. `ends` holds `LANES` ones, then `LANES` zeros.
    """
    n_kernels = out.shape[1]
    sums, counts = n_kernels * LANES, 2 * n_kernels * LANES  # places in `room`, behind the values of this step
    room[:] = 0
    zero, infinity = lane.splat(np.float32(0)), lane.splat(np.float32(np.inf))
    for t in range(0, length, LANES):
        x0, x1 = lane.load(padded, t), lane.load(padded, t + dilation)
        x2, x3 = lane.load(padded, t + 2 * dilation), lane.load(padded, t + 3 * dilation)
        x4, x5 = lane.load(padded, t + 4 * dilation), lane.load(padded, t + 5 * dilation)
        x6, x7 = lane.load(padded, t + 6 * dilation), lane.load(padded, t + 7 * dilation)
        x8 = lane.load(padded, t + 8 * dilation)
        most, least = zero - infinity, infinity
        for k in range(n_kernels):
            w = k * LENGTH
            z = x0 * lane.splat(weights[w])
            z = lane.multiply_add(x1, lane.splat(weights[w + 1]), z)
            z = lane.multiply_add(x2, lane.splat(weights[w + 2]), z)
            z = lane.multiply_add(x3, lane.splat(weights[w + 3]), z)
            z = lane.multiply_add(x4, lane.splat(weights[w + 4]), z)
            z = lane.multiply_add(x5, lane.splat(weights[w + 5]), z)
            z = lane.multiply_add(x6, lane.splat(weights[w + 6]), z)
            z = lane.multiply_add(x7, lane.splat(weights[w + 7]), z)
            z = lane.multiply_add(x8, lane.splat(weights[w + 8]), z)
            lane.store(room, k * LANES, z)
            most, least = lane.maximum(most, z), lane.minimum(least, z)
        inside = lane.load(ends, LANES - min(LANES, length - t))
        gain = most * inside
        for k in range(n_kernels):
            z = lane.load(room, k * LANES)
            at = k * LANES
            won = lane.where_at_most(most, z, gain, zero)
            lane.store(room, sums + at, lane.load(room, sums + at) + won)
            most = lane.where_at_most(most, z, infinity, most)  # no later kernel wins here
            won = lane.where_at_most(z, least, inside, zero)
            lane.store(room, counts + at, lane.load(room, counts + at) + won)
            least = lane.where_at_most(z, least, zero - infinity, least)
    for pooling in range(2):
        for k in range(n_kernels):
            at = (1 + pooling) * n_kernels * LANES + k * LANES
            half = LANES // 2
            while half:
                for j in range(half):
                    room[at + j] += room[at + half + j]
                half //= 2
            out[pooling, k] = room[at]
