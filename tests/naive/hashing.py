"""Slow, obvious twins of the generalised Nyström PCA: numpy's SVD, loops over rows, the paper's own scaling."""

import numpy as np


def gn_smallest(random, n, count):
    """Positions of the `count` smallest of n numbers drawn one after the other."""
    drawn = [(random.random(), i) for i in range(n)]
    return sorted(i for _, i in sorted(drawn)[:count])


def gn_directions(X, rows, columns, k, center=True, orthonormalize=True):
    """Algorithm 1, lines 1-4, on X (samples x features) as the paper writes it; returns B (d, k), S and the mean."""
    X = np.asarray(X, dtype=float)
    (n, m), c, r = X.shape, len(rows), len(columns)
    mean = np.mean([X[i] for i in rows], axis=0) if center else np.zeros(m)
    C = np.sqrt(n / c) * np.stack([X[i] - mean for i in rows], axis=1)
    W = np.sqrt(m / r) * np.stack([C[i] for i in columns])
    _, S, Vt = np.linalg.svd(W)
    U = C @ Vt[:k].T @ np.diag(1 / S[:k])
    if not orthonormalize:
        return U, S[:k], mean
    Q, _ = np.linalg.qr(U)
    left, S, _ = np.linalg.svd(Q.T @ C)
    return Q @ left, S, mean


def gn_norm_directions(X, rows, columns, k):
    """ConstantTimeSVD with C and W scaled entry by entry, on X centred by its mean; B (d, k) and S."""
    A = (np.asarray(X, dtype=float) - np.mean(X, axis=0)).T
    c, r = len(rows), len(columns)
    p = [np.linalg.norm(A[:, j]) ** 2 / np.linalg.norm(A) ** 2 for j in range(A.shape[1])]
    C = np.stack([A[:, j] / np.sqrt(c * p[j]) for j in rows], axis=1)
    q = [np.linalg.norm(C[i]) ** 2 / np.linalg.norm(C) ** 2 for i in range(len(C))]
    W = np.stack([C[i] / np.sqrt(r * q[i]) for i in columns])
    _, S, Vt = np.linalg.svd(W)
    return np.stack([C @ Vt[t] / S[t] for t in range(k)], axis=1), S[:k]


def gn_projection_error(X, B, mean):
    """||X - B B^T X||_F / ||X||_F, row by row."""
    lost = [np.sum((x - mean - B @ (B.T @ (x - mean))) ** 2) for x in np.asarray(X, dtype=float)]
    return np.sqrt(sum(lost) / sum(np.sum((x - mean) ** 2) for x in np.asarray(X, dtype=float)))
