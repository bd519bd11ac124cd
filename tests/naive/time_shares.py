"""Slow, obvious twins of `time_shares`: each feature alone, each output alone, each point alone."""

from __future__ import annotations

import re
from itertools import groupby

import numpy as np

from naive import convolutions


def divided(amount, chosen):
    """`amount` in equal parts to the chosen outputs, or to all if none is chosen."""
    chosen = np.asarray(chosen)
    chosen = chosen if chosen.any() else ~chosen
    return amount * chosen / chosen.sum()


def spread(amounts, x, channels, offsets):
    """The amount of each output to the points it reads, in proportion to their distance from their mean."""
    out = np.zeros(x.shape)
    for t, amount in enumerate(amounts):
        if amount == 0:
            continue
        times = [t + offset for offset in offsets if 0 <= t + offset < len(x)]
        means = x[times].mean(axis=0)
        far = {(c, at): abs(x[at, c] - means[c]) for c in channels for at in times}
        places = [(c, at) for c in channels for at in times]
        total = sum(far[place] for place in places)
        for c, at in places:
            out[at, c] += amount * (far[c, at] / total if total > 1e-9 else 1 / len(places))
    return out


def longest(positive):
    """The first of the longest stretches of positive outputs, as a mask."""
    best, most, start = np.zeros(len(positive), bool), 0, 0
    for value, group in groupby(positive):
        n = len(list(group))
        if value and n > most:
            most, best = n, np.isin(np.arange(len(positive)), range(start, start + n))
        start += n
    return best


def of_convolutions(x, kernels, weights, centre):
    """What each point adds to the poolings of fitted kernels; `weights` and `centre` have shape (poolings, biases)."""
    out, number = np.zeros(x.shape), 0
    for j, (dilation, n) in enumerate(zip(kernels.dilations, kernels.counts, strict=True)):
        for k, kernel in enumerate(convolutions.KERNELS):
            own = kernels.channels[kernels.limits[84 * j + k] : kernels.limits[84 * j + k + 1]]
            outputs = sum(convolutions.convolution(x[:, channel], kernel, dilation) for channel in own)
            valid = np.ones(len(x), bool)
            if (j + k) % 2 and len(x) > 8 * dilation:
                valid[: 4 * dilation] = valid[-4 * dilation :] = False
            for _ in range(n):
                bias = float(kernels.biases[number])
                differences = np.array(convolutions.pooled(outputs[valid], bias)) - np.resize(centre[:, number], 4)
                positive = outputs[valid] > bias
                stretch = longest(positive)
                sets = [positive if differences[0] > 0 else ~positive, positive, positive]
                sets.append(stretch if differences[3] > 0 else ~stretch)
                amounts = np.zeros(len(x))
                for pooling, weight in enumerate(weights[:, number]):
                    amounts[valid] += divided(weight * differences[pooling], sets[pooling])
                out += spread(amounts, x, own, dilation * np.arange(-4, 5))
                number += 1
    return out


def of_hydra(x, weights, channels, coefficients, centre):
    """What each point adds to the wins of all groups; `coefficients` and `centre` (dilations, groups, 2, kernels)."""
    out = np.zeros(x.shape)
    n_dilations, n_groups, n_kernels, _ = weights.shape
    for d in range(n_dilations):
        for g in range(n_groups):
            differences = g >= (n_groups + 1) // 2
            series = np.diff(x, axis=0) if differences else x
            s = sum(series[:, c].astype(float) for c in channels[d, g])
            z = np.zeros((n_kernels, len(s)))
            for j in range(9):
                for t in range(len(s)):
                    if 0 <= t + (j - 4) * 2**d < len(s):
                        z[:, t] += weights[d, g, :, j].astype(float) * s[t + (j - 4) * 2**d]
            for k in range(n_kernels):
                wins = [z.argmax(axis=0) == k, z.argmin(axis=0) == k]
                for pooling, total in enumerate([z[k, wins[0]].sum(), wins[1].sum()]):
                    difference = total - centre[d, g, pooling, k]
                    chosen = wins[pooling] if difference > 0 else ~wins[pooling]
                    amounts = divided(coefficients[d, g, pooling, k] * difference, chosen)
                    found = spread(amounts, series, channels[d, g], 2**d * np.arange(-4, 5))
                    out += halved(found) if differences else found
    return out


def halved(amounts):
    """What the points add if their differences add `amounts`: half to each of the two."""
    return np.pad(amounts, ((0, 1), (0, 0))) / 2 + np.pad(amounts, ((1, 0), (0, 0))) / 2


def of_intervals(x, names, amounts):
    """What each point adds to quantiles, whose intervals are in their names; for a series of the length in fit."""
    out = np.zeros(x.shape)
    for name, amount in zip(names, amounts, strict=True):
        channel, what, first, last = re.match(r"channel (\d+), ([a-z ]+) (\d+)-(\d+) ", name).groups()
        values = np.zeros(len(x))
        values[int(first) : int(last) + 1] = amount / (int(last) + 1 - int(first))
        reads = {"points": [0], "differences": range(-2, 4), "second differences": range(3)}
        if what == "frequencies":
            out[:, int(channel)] += amount / len(x)
        else:
            out += spread(values, x, [int(channel)], reads[what])
    return out
