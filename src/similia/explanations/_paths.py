"""Loops over the cells of an alignment: the cheapest path, and sums over all paths in logarithms."""

from __future__ import annotations

import numpy as np

from similia.core.jit import njit

DIAGONAL, UP, LEFT = 0, 1, 2


@njit()
def best_moves(match, delete, insert, first_row, first_column):  # type: ignore[no-untyped-def]
    """Return how each cell is reached most cheaply, shape (m + 1, n + 1): diagonally where that is as cheap.

    D(i, j) = min(D(i-1, j-1) + match, D(i-1, j) + delete, D(i, j-1) + insert), borders as given (shapes n + 1, m + 1).
    """
    m, n = match.shape
    moves = np.zeros((m + 1, n + 1), dtype=np.uint8)
    moves[0, 1:], moves[1:, 0] = LEFT, UP
    above = first_row.copy()
    row = np.empty(n + 1)
    for i in range(m):
        row[0] = first_column[i + 1]
        for j in range(n):
            best, move = above[j] + match[i, j], DIAGONAL
            other = above[j + 1] + delete[i, j]
            if other < best:
                best, move = other, UP
            other = row[j] + insert[i, j]
            if other < best:
                best, move = other, LEFT
            row[j + 1], moves[i + 1, j + 1] = best, move
        above, row = row, above
    return moves


@njit()
def log_sums_to(logs):  # type: ignore[no-untyped-def]
    """Return log M of M(i, j) = e^logs (M(i-1, j-1) + M(i-1, j) + M(i, j-1)), shape (m, n), M(0, 0) = 1 before it."""
    m, n = logs.shape
    table = np.full((m + 1, n + 1), -np.inf)
    table[0, 0] = 0.0
    for i in range(m):
        for j in range(n):
            a, b, c = table[i, j], table[i, j + 1], table[i + 1, j]
            largest = max(a, max(b, c))
            if largest > -np.inf:
                total = np.exp(a - largest) + np.exp(b - largest) + np.exp(c - largest)
                table[i + 1, j + 1] = logs[i, j] + largest + np.log(total)
    return table[1:, 1:]
