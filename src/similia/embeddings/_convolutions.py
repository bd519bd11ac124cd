"""Loops of `RandomConvolutions`: dilated convolutions with the 84 kernels, and statistics (poolings) of their outputs.

A kernel has nine weights: 2 at three places a < b < c, and -1 elsewhere. At dilation d, its output at time t is

    C(t) = -(sum over s = -4, ..., 4 of x(t + s d)) + 3 x(t + (a - 4) d) + 3 x(t + (b - 4) d) + 3 x(t + (c - 4) d).

The first sum is the same for all 84 kernels of a dilation. The series is multiplied by 3 once and padded with zeros on
both sides, so a shifted series is only another place to read from. Terms are added in the order of the formula, channel
after channel, in float32. The sum of excesses C(t) - bias has a fixed number of partial sums, `LANES`; all other
poolings are whole numbers. So no result depends on the width of the processor's registers.

If only the share of positive outputs is asked for, and series have one channel, no output is stored: kernels with the
same a and b share all additions but the last, which is made while counting, for four biases at a time. Otherwise,
outputs are stored. If all poolings are asked for, they are compared with a bias 64 at a time, into the bits of a word,
from which the poolings are computed.

For a series of 500 points, the share for one bias takes 20 ns, including its part of the additions. To store the
outputs of a kernel takes 90 ns, and all four poolings for one bias 130 ns. Rejected for shares: storing outputs (a
fifth slower), counting the bits of words or in lanes of 512 bits (a quarter slower), a plain loop that the compiler
vectorises (half again as slow), comparing integers of the same order, and copies of the series at all shifts (no gain).
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from similia.core.hashing import popcount
from similia.core.jit import njit
from similia.core.lanes import (
    HALF,
    LANES,
    bits_above,
    count_above,
    load,
    load_half,
    maximum,
    no_counts,
    splat,
    splat_half,
    store,
    total,
)

KERNELS = np.array(list(combinations(range(9), 3)), dtype=np.int64)  # places of the weight 2, in the order of the paper
_TILE = 1024  # outputs that are pooled while they are in cache; a multiple of 64
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_ONE = np.uint64(1)
_PLACES = np.array(  # numbers whose bit i is bit k of i
    [sum(1 << i for i in range(64) if i >> k & 1) for k in range(6)], dtype=np.uint64
)


@njit()
def write_features(  # type: ignore[no-untyped-def]
    values, offsets, start, stop, differences, pool_all, dilations, counts, biases, channels, limits, out, first
):
    """Write the features of series `start` to `stop` - 1 into their rows of `out`, float32, from column `first` on.

    `values` and `offsets` are those of a `SeriesBatch`. If `differences`, the first differences are convolved instead.
    At dilation j, each kernel has ``counts[j]`` biases, in the order of `biases`, and kernel k reads the channels
    ``channels[limits[84 j + k]:limits[84 j + k + 1]]``. If `pool_all`, the four poolings are written one after another,
    otherwise only the shares of positive outputs.
    """
    n_channels, longest = values.shape[1], 1
    for i in range(start, stop):
        longest = max(longest, offsets[i + 1] - offsets[i])
    reach = 4 * min(longest, dilations.max())  # larger dilations read only zeros, like one equal to the length
    width = longest + 2 * reach + LANES  # of a channel; flat arrays, since slicing takes longer than some convolutions
    ones = np.empty(n_channels * width, np.float32)
    threes, rest = np.empty_like(ones), np.empty_like(ones)
    shared = not pool_all and n_channels == 1 and len(channels) == len(limits) - 1  # each kernel reads the one channel
    pair, tile = np.empty_like(ones), _TILE if pool_all else longest
    output, zeros = np.empty(tile + 64, np.float32), np.zeros(tile + 64, np.float32)
    most, m = counts.max(), len(biases)
    found, sums, places = np.empty(most, np.int64), np.empty(most), np.empty(most, np.int64)
    stretches, running = np.empty(most, np.int64), np.empty(most, np.int64)
    for i in range(start, stop):
        length = _copy(values, offsets[i], offsets[i + 1], differences, reach, width, ones, threes)
        bias = 0
        for j in range(len(dilations)):
            dilation, n = min(dilations[j], length), counts[j]
            for channel in range(n_channels):
                _sum_rest(ones, channel * width + reach, dilation, length, rest)
            for k in range(len(KERNELS)):
                low, high = 0, length
                if (j + k) % 2 == 1 and length > 8 * dilation:  # without padding
                    low, high = 4 * dilation, length - 4 * dilation
                for f in range(n if pool_all else 0):  # shares are assigned
                    found[f], sums[f], places[f], stretches[f], running[f] = 0, 0.0, 0, 0, 0
                number = len(KERNELS) * j + k
                if shared and KERNELS[k, 2] == KERNELS[k, 1] + 1:  # the first kernel with these two places
                    _add_two(rest, threes, reach, dilation, k, length, pair)
                for begin in range(low, high, tile):
                    size, origin = min(tile, high - begin), reach + begin
                    if shared:
                        third = origin + (KERNELS[k, 2] - 4) * dilation
                        _count(pair, origin, threes, third, size, biases, bias, n, found)
                        continue
                    for at in range(limits[number], limits[number + 1]):
                        there = channels[at] * width + origin
                        _convolve(rest, threes, there, dilation, k, size, at > limits[number], output)
                    if pool_all:
                        _pool(output, size, biases, bias, n, begin - low, found, sums, places, stretches, running)
                    else:
                        _count(output, 0, zeros, 0, size, biases, bias, n, found)
                size = high - low
                for f in range(n):
                    column = first + bias + f
                    out[i, column] = found[f] / size
                    if pool_all:
                        many = max(found[f], 1)
                        out[i, column + m] = sums[f] / many
                        out[i, column + 2 * m] = (places[f] + found[f]) / (many * size)
                        out[i, column + 3 * m] = max(stretches[f], running[f]) / size
                bias += n


@njit()
def _copy(values, start, stop, differences, reach, width, ones, threes):  # type: ignore[no-untyped-def]
    """Write a series, or its first differences, to `ones`, padded with zeros, and 3 times this to `threes`.

    The series is ``values[start:stop]``; its channel c begins at ``c * width + reach``. Return the length.
    """
    length = max(1, stop - start - differences)
    ones[:] = np.float32(0)
    for channel in range(values.shape[1]):
        for t in range(length):
            value = values[start + t, channel]
            if differences:
                value = values[start + t + 1, channel] - value if stop - start > 1 else np.float32(0)
            ones[channel * width + reach + t] = value
    for t in range(len(ones)):
        threes[t] = np.float32(3) * ones[t]
    return length


@njit()
def _sum_rest(ones, origin, dilation, length, rest):  # type: ignore[no-untyped-def]
    """Fill `rest` from `origin` on with the sum of minus the nine numbers that a kernel reads, the middle one first."""
    zero = splat(np.float32(0))
    for at in range(origin, origin + length, LANES):
        value = zero - load(ones, at)
        for s in range(1, 5):
            value = value - load(ones, at - (5 - s) * dilation)
        for s in range(1, 5):
            value = value - load(ones, at + s * dilation)
        store(rest, at, value)


@njit()
def _add_two(rest, threes, origin, dilation, k, length, pair):  # type: ignore[no-untyped-def]
    """Fill `pair` from `origin` on with the first three terms of the outputs of kernel `k`."""
    a, b = (KERNELS[k, 0] - 4) * dilation, (KERNELS[k, 1] - 4) * dilation
    for at in range(origin, origin + length, LANES):
        store(pair, at, load(rest, at) + load(threes, at + a) + load(threes, at + b))


@njit()
def _convolve(rest, threes, origin, dilation, k, size, add, output):  # type: ignore[no-untyped-def]
    """Write `size` outputs of kernel `k` for one channel to `output`, or add them; pad with -inf to whole words."""
    a, b, c = (KERNELS[k, 0] - 4) * dilation, (KERNELS[k, 1] - 4) * dilation, (KERNELS[k, 2] - 4) * dilation
    for t in range(0, size, LANES):
        at = origin + t
        value = load(rest, at) + load(threes, at + a) + load(threes, at + b) + load(threes, at + c)
        if add:
            value = load(output, t) + value
        store(output, t, value)
    for t in range(size, (size + 63) // 64 * 64):
        output[t] = -np.inf


@njit()
def _word(output, t, level):  # type: ignore[no-untyped-def]
    """Return a uint64 whose bit i is 1 if ``output[t + i]`` is above `level`."""
    word = bits_above(load(output, t), level)
    for part in range(1, 64 // LANES):
        word |= bits_above(load(output, t + part * LANES), level) << np.uint64(part * LANES)
    return word


@njit()
def _count(x, first, y, second, size, biases, bias, n, found):  # type: ignore[no-untyped-def]
    """Write to `found` how many of the sums ``x[first + t] + y[second + t]``, t < size, are above each of `n` biases.

    The biases are those from position `bias` on. `x` must have `HALF` numbers after the last one; they are overwritten
    and restored.
    """
    after = load_half(x, first + size)
    store(x, first + size, splat_half(np.float32(-np.inf)))  # so that no sum in the last lanes is above a bias
    for f0 in range(0, n, 4):
        f1, f2, f3 = min(f0 + 1, n - 1), min(f0 + 2, n - 1), min(f0 + 3, n - 1)  # some twice in the last round
        b0, b1 = splat_half(biases[bias + f0]), splat_half(biases[bias + f1])
        b2, b3 = splat_half(biases[bias + f2]), splat_half(biases[bias + f3])
        n0 = n1 = n2 = n3 = no_counts()
        for t in range(0, size, HALF):
            value = load_half(x, first + t) + load_half(y, second + t)
            n0, n1 = count_above(n0, value, b0), count_above(n1, value, b1)
            n2, n3 = count_above(n2, value, b2), count_above(n3, value, b3)
        found[f0], found[f1], found[f2], found[f3] = total(n0), total(n1), total(n2), total(n3)
    store(x, first + size, after)


@njit()
def _pool(output, size, biases, bias, n, begin, found, sums, places, stretches, running):  # type: ignore[no-untyped-def]
    """Update the poolings of `n` biases by a part of the output, `output`, whose first number has the position `begin`.

    An output is positive if it is above the bias. The poolings are the number of positive outputs, the sums of their
    excesses and of their positions, the longest stretch of them that has ended, and the length of a stretch that has
    not ended yet.
    """
    zero = splat(np.float32(0))
    for f in range(n):
        level, excess = splat(biases[bias + f]), zero
        stretch, run = stretches[f], running[f]
        for t in range(0, size, 64):
            word = _word(output, t, level)
            for part in range(0, 64, 2 * LANES):  # pairs first: each sum must wait for the one before
                here, there = load(output, t + part), load(output, t + part + LANES)
                excess = excess + (maximum(here - level, zero) + maximum(there - level, zero))
            many = np.int64(popcount(word))
            found[f] += many
            places[f] += (begin + t) * many
            for k in range(6):
                places[f] += np.int64(popcount(word & _PLACES[k])) << k
            stretch, run = _longest(word, stretch, run)
        sums[f] += total(excess)
        stretches[f], running[f] = stretch, run


@njit()
def _longest(word, stretch, run):  # type: ignore[no-untyped-def]
    """Return (longest stretch of 1 bits that has ended, length of the stretch that has not ended) after 64 more bits.

    `word` holds these bits, and `stretch` and `run` are the two lengths before them.
    """
    if word == _ALL:
        return stretch, run + 64
    if word == 0:
        return max(stretch, run), 0
    stretch = max(stretch, run + np.int64(popcount(word & ~(word + _ONE))))  # the ones up to the first zero
    last = ~word  # all bits up to the last zero
    for k in range(6):
        last |= last >> np.uint64(1 << k)
    need, had, inside = stretch + 1, 1, word if stretch < 64 else np.uint64(0)
    while had < need and inside != 0:  # leave a bit where a stretch of `had` bits begins
        step = min(had, need - had)
        inside &= inside >> np.uint64(step)
        had += step
    while inside != 0:
        stretch += 1
        inside &= inside >> _ONE
    return stretch, 64 - np.int64(popcount(last))


@njit()
def convolve(x, dilation, kernel, channels, out):  # type: ignore[no-untyped-def]
    """Fill `out` (length,) with the output of one kernel for a float32 series `x`, shape (length, n_channels)."""
    for t in range(len(x)):
        for number in range(len(channels)):
            column = x[:, channels[number]]
            value = -column[t]
            for s in (-4, -3, -2, -1, 1, 2, 3, 4):
                at = t + s * dilation
                if 0 <= at < len(x):
                    value -= column[at]
            for place in kernel:
                at = t + (place - 4) * dilation
                if 0 <= at < len(x):
                    value += np.float32(3) * column[at]
            out[t] = value if number == 0 else out[t] + value
