"""Loops of `time_shares`, which splits a weighted sum of features over the time points of a series.

A feature is a statistic of the outputs of a convolution. Its amount (see `TimeShares.time_shares`) is first divided
among these outputs. They are computed by the functions that `transform` uses, so the same outputs are positive and the
same kernels win. Features of one convolution read the same points, so their amounts are divided among these together.

Cost: linear in the number of outputs and of features. 50,000 features of MultiRocket and 500 points take 0.3 s.
"""

from __future__ import annotations

import numpy as np

from similia.core.jit import njit
from similia.core.lanes import LANES
from similia.embeddings._convolutions import KERNELS, convolve
from similia.embeddings._hydra_loops import LENGTH, _count, _pad


@njit()
def spread(amounts, x, channels, first, step, n, out):  # type: ignore[no-untyped-def]
    """Divide ``amounts[t]`` among the points that output t reads, and add the parts to `out`.

    These are the points t + first + i step (i < n) of some channels of `x`, except those outside of the series. They
    get parts in proportion to their distance from their mean in the channel, or equal parts if all distances are 0.
    `x` and `out` have shape (length, n_channels).
    """
    length = len(x)
    for t in range(len(amounts)):
        if amounts[t] == 0:
            continue
        begin = t + first
        low = 0 if begin >= 0 else (-begin + step - 1) // step
        high = min(n, (length - 1 - begin) // step + 1)
        total = 0.0
        for c in channels:
            mean = _mean(x, c, begin, step, low, high)
            for i in range(low, high):
                total += abs(x[begin + i * step, c] - mean)
        for c in channels:
            mean = _mean(x, c, begin, step, low, high)
            for i in range(low, high):
                at = begin + i * step
                share = abs(x[at, c] - mean) / total if total > 0 else 1 / (len(channels) * (high - low))
                out[at, c] += amounts[t] * share


@njit()
def _mean(x, c, begin, step, low, high):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(low, high):
        total += x[begin + i * step, c]
    return total / (high - low)


@njit()
def _divide(amount, chosen, value, amounts):  # type: ignore[no-untyped-def]
    """Divide `amount` equally among the outputs whose entry in `chosen` is `value`, or among all if there are none."""
    many = 0
    for t in range(len(chosen)):
        many += chosen[t] == value
    each = amount / (many if many else len(chosen))
    for t in range(len(chosen)):
        if many == 0 or chosen[t] == value:
            amounts[t] += each


@njit()
def split_convolutions(  # type: ignore[no-untyped-def]
    x, pool_all, dilations, counts, biases, channels, limits, weights, centre, out
):
    """Add the shares of each point of a float32 series `x` to `out`; both have the shape (length, n_channels).

    The kernels are given as to `write_features`. `weights` and `centre` have an entry for each of their features.
    """
    length, m, bias = len(x), len(biases), 0
    output, amounts = np.empty(length, np.float32), np.empty(length)
    for j in range(len(dilations)):
        dilation = min(dilations[j], length)
        for k in range(len(KERNELS)):
            low, high = 0, length
            if (j + k) % 2 == 1 and length > 8 * dilation:  # without padding
                low, high = 4 * dilation, length - 4 * dilation
            number = len(KERNELS) * j + k
            own = channels[limits[number] : limits[number + 1]]
            convolve(x, dilation, KERNELS[k], own, output)
            amounts[:] = 0
            for f in range(bias, bias + counts[j]):
                _split_poolings(output[low:high], biases[f], pool_all, weights[f::m], centre[f::m], amounts[low:high])
            bias += counts[j]
            spread(amounts, x, own, -4 * dilation, dilation, 9, out)


@njit()
def _split_poolings(output, bias, pool_all, weights, centre, amounts):  # type: ignore[no-untyped-def]
    """Divide the amounts of the poolings for one `bias` among outputs; if not `pool_all`, only that of the share.

    The amount of the share goes to the outputs above the bias if the share is above its centre, otherwise to the other
    outputs. The amount of the longest stretch is divided in the same way: outputs in the stretch, or all others.
    """
    size, many, run, longest, end = len(output), 0, 0, 0, 0
    excess, places = 0.0, 0.0
    positive = output > bias
    for t in range(size):
        run = run + 1 if positive[t] else 0
        if run > longest:
            longest, end = run, t + 1
        if positive[t]:
            many += 1
            excess += output[t] - bias
            places += t + 1
    difference = many / size - centre[0]
    _divide(weights[0] * difference, positive, difference > 0, amounts)
    if pool_all:
        n = max(1, many)
        means = weights[1] * (excess / n - centre[1]) + weights[2] * (places / (n * size) - centre[2])
        _divide(means, positive, True, amounts)
        positive[:] = False
        positive[end - longest : end] = True
        difference = longest / size - centre[3]
        _divide(weights[3] * difference, positive, difference > 0, amounts)


@njit()
def split_wins(x, n_outputs, weights, channels, coefficients, centre, out):  # type: ignore[no-untyped-def]
    """Add the shares of each point of a float32 series `x` in features of `Hydra` to `out`, (length, n_channels).

    Kernels have `n_outputs` outputs: the length, or 0 for the differences of a single point. `coefficients` and
    `centre` have the shape (n_dilations, n_groups, 2, n_kernels). The amount of a feature above its centre goes to the
    times at which its kernel wins (or loses, for the second feature), otherwise to the other times.
    """
    n_dilations, n_groups, n_kernels = weights.shape[:3]
    length = len(x)
    widest = min(1 << (n_dilations - 1), length)
    padded = np.zeros(length + (LENGTH - 1) * widest + LANES, np.float32)
    room = np.empty(3 * n_kernels * LANES, np.float32)
    ends = np.zeros(2 * LANES, np.float32)
    ends[:LANES] = 1
    won, amounts = np.zeros((length, 2, n_kernels), np.float32), np.empty(length)
    for d in range(n_dilations):
        dilation = min(1 << d, length)
        for g in range(n_groups):
            _pad(x, channels[d, g], 0, LENGTH // 2 * dilation, padded)
            for t in range(n_outputs):
                _count(padded[t:], 1, dilation, weights[d, g].reshape(-1), ends, room, won[t])  # one output alone
            amounts[:] = 0
            for pooling in range(2):
                for k in range(n_kernels):
                    wins, total = won[:, pooling, k] != 0, 0.0
                    for t in range(n_outputs):
                        total += won[t, pooling, k]
                    difference = total - centre[d, g, pooling, k]
                    _divide(coefficients[d, g, pooling, k] * difference, wins, difference > 0, amounts)
            spread(amounts, x, channels[d, g], -(LENGTH // 2) * dilation, dilation, LENGTH, out)
