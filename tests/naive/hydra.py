"""Slow, obvious twins of Hydra's features and of the scaler that follows them."""

from __future__ import annotations

import numpy as np


def features(x, weights, channels):
    """The features (n_dilations, n_groups, 2, n_kernels) of a series (length, n_channels)."""
    n_dilations, n_groups, n_kernels, _ = weights.shape
    out = np.zeros((n_dilations, n_groups, 2, n_kernels))
    for d in range(n_dilations):
        for g in range(n_groups):
            s = sum(x[:, c].astype(float) for c in channels[d, g])
            s = s if g < (n_groups + 1) // 2 else np.diff(s)
            for t in range(len(s)):
                times = [(j, t + (j - 4) * 2**d) for j in range(9)]
                z = [sum(w[j] * s[at] for j, at in times if 0 <= at < len(s)) for w in weights[d, g].astype(float)]
                out[d, g, 0, np.argmax(z)] += max(z)
                out[d, g, 1, np.argmin(z)] += 1
    return out


def scaled(train, X, exponent):
    """Square roots, standardised by the training rows; zeros stay zeros."""
    train, X = np.sqrt(np.clip(train, 0, None)), np.sqrt(np.clip(X, 0, None))
    scale = train.std(axis=0, ddof=1) + np.mean(train == 0, axis=0) ** exponent + 1e-8
    return (X - train.mean(axis=0)) / scale * (X != 0)
