"""Slow, obvious twin of random convolutions: weights written out, zeros around, one bias after another."""

from __future__ import annotations

from itertools import combinations, groupby

import numpy as np

KERNELS = [[2 if place in three else -1 for place in range(9)] for three in combinations(range(9), 3)]


def convolution(x, weights, dilation):
    """Outputs for one channel, one for each point."""
    around = np.concatenate([np.zeros(4 * dilation), x, np.zeros(4 * dilation)])
    return sum(w * around[i * dilation : i * dilation + len(x)] for i, w in enumerate(weights))


def pooled(outputs, bias):
    """Share of positive values, mean of their excesses, mean of their places (from 1), longest stretch."""
    positive = outputs > bias
    if not positive.any():
        return [0, 0, 0, 0]
    places, n = np.flatnonzero(positive) + 1, len(outputs)
    longest = max(len(list(group)) for value, group in groupby(positive) if value)
    return [positive.mean(), (outputs - bias)[positive].mean(), places.mean() / n, longest / n]


def features(x, kernels):
    """All poolings (4, n_biases) of a series (length, n_channels) by fitted kernels."""
    found, biases = [], list(kernels.biases.astype(float))
    for j, (dilation, n) in enumerate(zip(kernels.dilations, kernels.counts, strict=True)):
        for k, weights in enumerate(KERNELS):
            own = kernels.channels[kernels.limits[84 * j + k] : kernels.limits[84 * j + k + 1]]
            outputs = sum(convolution(x[:, channel], weights, dilation) for channel in own)
            if (j + k) % 2 and len(x) > 8 * dilation:
                outputs = outputs[4 * dilation : -4 * dilation]
            found += [pooled(outputs, biases.pop(0)) for _ in range(n)]
    return np.array(found).T
