"""Kernel k-means by its definition: distances to the means of clusters from the matrix of all kernel values."""

from __future__ import annotations

import numpy as np


def squared_distances(K, cross, own, labels, k):
    """Return ||phi(x) - mu_c||^2 for objects x with values `own` = k(x, x) and `cross` with the training objects."""
    D = np.empty((len(own), k))
    for c in range(k):
        members = np.flatnonzero(labels == c)
        inside = sum(K[i, j] for i in members for j in members) / len(members) ** 2
        for x in range(len(own)):
            D[x, c] = own[x] - 2 * sum(cross[x, j] for j in members) / len(members) + inside
    return D


def running_means(centers, counts, batches):
    """Return the means of all vectors assigned to each centre, one vector after the other within fixed batches."""
    centers, counts = centers.copy(), counts.copy()
    for F in batches:
        before = centers.copy()
        for x in F:
            c = np.argmin(((x - before) ** 2).sum(axis=1))
            counts[c] += 1
            centers[c] += (x - centers[c]) / counts[c]
    return centers, counts
