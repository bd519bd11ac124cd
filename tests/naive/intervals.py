"""A slow, obvious twin of QUANT, for series of one length."""

from __future__ import annotations

import itertools
import math

import numpy as np


def quantiles(part, divisor):
    """Every second quantile minus the mean."""
    n = 1 + (len(part) - 1) // divisor
    if n == 1:
        return [np.median(part)]
    found = np.quantile(part, np.linspace(0, 1, n))
    found[1::2] -= np.mean(part)
    return [*found]


def features(x, depth, divisor):
    """The features of a series of at least three points and one channel, all that QUANT derives from it."""
    padded = np.pad(np.diff(x), 2, mode="edge")
    smoothed = np.array([padded[i : i + 5].mean() for i in range(len(x) - 1)])
    out = []
    for z in (x, smoothed, np.diff(x, n=2), np.abs(np.fft.rfft(x))):
        for level in range(min(depth, int(math.log2(len(z))) + 1)):
            cuts = [math.floor(j * len(z) / 2**level) for j in range(2**level + 1)]
            pairs = [*itertools.pairwise(cuts)]
            out += [q for a, b in pairs for q in quantiles(z[a:b], divisor)]
            if level > 0 and sorted(b - a for a, b in pairs)[(len(pairs) - 1) // 2] > 1:
                shift = math.ceil(len(z) / 2**level / 2)
                out += [q for a, b in pairs[:-1] for q in quantiles(z[a + shift : b + shift], divisor)]
    return np.array(out)
