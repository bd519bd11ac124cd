"""Slow, obvious twins of `similia.codes.itq`."""

import numpy as np


def signs(Z):
    return np.where(Z >= 0, 1.0, -1.0)


def loss(Y, Z, Q):
    """Return ||Y - Z Q||_F^2, number by number."""
    total = 0.0
    for i in range(len(Z)):
        for j in range(len(Q)):
            total += (Y[i, j] - sum(Z[i, a] * Q[a, j] for a in range(len(Q)))) ** 2
    return total


def nearest_rotation(Y, Z):
    """Return argmin over orthogonal Q of ||Y - Z Q||_F: Algorithm 1, line 8."""
    M, _, M_tilde_T = np.linalg.svd(Y.T @ Z)
    return M_tilde_T.T @ M.T


def itq(Z, Q, n_iter):
    """Return Q and the loss after each iteration; Z is centred."""
    losses = []
    for _ in range(n_iter):
        Y = signs(Z @ Q)
        Q = nearest_rotation(Y, Z)
        losses.append(np.sum((Y - Z @ Q) ** 2))
    return Q, np.array(losses)
