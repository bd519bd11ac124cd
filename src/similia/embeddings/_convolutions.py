"""Loops of `RandomConvolutions`: dilated convolutions with the 84 kernels, and what is pooled of their outputs.

A kernel has nine weights, 2 at three places a < b < c and -1 elsewhere. So its output at time t, with the distances
s d (s = -4, ..., 4) between its places at dilation d, is

.. math:: C_t = \\Big(\\sum_s -x_{t + s d}\\Big) + 3 x_{t + (a - 4) d} + 3 x_{t + (b - 4) d} + 3 x_{t + (c - 4) d}.

The first sum serves all 84 kernels of a dilation; the series is multiplied by 3 only once, and stands between zeros, so
that a shift is another place to read from. Each output is added in this order, channel after channel, in float32. All
poolings but one are counts of outputs with C_t > bias, and the sums of positive parts are of `LANES` lanes: nothing
depends on the width of the processor's registers.

For the shares of series with one channel, no output is stored: kernels with the same a and b share all additions but
the last, which is made while counting, for four biases at a time. Otherwise outputs are stored. All four poolings
compare them with a bias 64 at a time, into the bits of a word.

Of 500 points, a share takes 20 ns with its part of the additions; all poolings of one bias take 130 ns, and the outputs
of a kernel that are stored 90 ns. Rejected for shares: to store outputs (a fifth slower), to count the bits of words or
in lanes of 512 bits (a quarter slower), a plain loop that the compiler vectorises (half again as slow), to compare
integers of the same order (no gain), copies of the series at all shifts (no gain).
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

    `values` and `offsets` are of a `SeriesBatch`. If `differences`, the first differences are convolved instead.
    Dilation j has ``counts[j]`` biases for each kernel, in the order of `biases`, and its kernel k has the channels
    ``channels[limits[84 j + k]:limits[84 j + k + 1]]``. If `pool_all`, all poolings are written, one after another,
    else the shares of positive outputs alone.
    """
    n_channels, longest = values.shape[1], 1
    for i in range(start, stop):
        longest = max(longest, offsets[i + 1] - offsets[i])
    reach = 4 * min(longest, dilations.max())  # a dilation above the length reads only zeros, as one equal to it does
    width = longest + 2 * reach + LANES  # of a channel; flat arrays, since a slice takes longer than some convolutions
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
    """Write a series, or its first differences, and three times these, between zeros; return the length.

    The series is ``values[start:stop]``; its channel c begins at ``c * width + reach``.
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
    """Fill `rest` from `origin` on with minus the sum of the nine numbers that a kernel covers, its middle first."""
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
    """Fill `output` with `size` outputs of kernel `k` for one channel, or add them; end with -inf, to a whole word."""
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

    The biases begin at number `bias`. `x` has room for `HALF` numbers after these; they are the same after the call.
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
    """Add what `output`, which begins at place `begin` of the whole output, adds to the poolings of `n` biases.

    They are the number of positive outputs (outputs above the bias), the sum of their excesses, the sum of their
    places, the longest stretch of them that has ended, and the length of the stretch that has not.
    """
    zero = splat(np.float32(0))
    for f in range(n):
        level, excess = splat(biases[bias + f]), zero
        stretch, run = stretches[f], running[f]
        for t in range(0, size, 64):
            word = _word(output, t, level)
            for part in range(0, 64, 2 * LANES):  # pairs first: a sum waits for the one before
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
    """Return the longest stretch of 1 bits that has ended, and the length of the one that has not, after `word`.

    `stretch` and `run` are these two before it.
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
