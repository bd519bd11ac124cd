"""The stages of a model in float32, one object and one number at a time; every operation is one of np.float32."""

from __future__ import annotations

import math

import numpy as np

ONE = np.float32


def exp_minus(t):
    """Return exp(-t): the series of exp to the sixth power around the nearest multiple of ln 2; 0 from 86 on."""
    if not t < 86:
        return ONE(0)
    n = int(t * ONE(1.44269504) + ONE(0.5))
    r = (ONE(n) * ONE(0.693359375) - t) + ONE(n) * ONE(-2.12194440e-4)
    total = ONE(1 / math.factorial(6))
    for power in range(5, -1, -1):
        total = total * r + ONE(1 / math.factorial(power))
    for _ in range(n):
        total = total * ONE(0.5)
    return total


def squared_distance(x, y):
    total = ONE(0)
    for a, b in zip(x, y, strict=True):
        total = total + (a - b) * (a - b)
    return total


def product(x, y):
    total = ONE(0)
    for a, b in zip(x, y, strict=True):
        total = total + ONE(a) * b
    return total


def coordinates(A, c, k):
    """Return z = A k + c; A is a matrix, or the diagonal of one."""
    if A.ndim == 1:
        return [ONE(number) * a + offset for number, a, offset in zip(k, A, c, strict=True)]
    return [product(k, row) + offset for row, offset in zip(A, c, strict=True)]


def dense_signs(P, z):
    return [int(product(row, z) >= 0) for row in P]


def hadamard_signs(flips, n_bits, z):
    """Return the bits of each block: three times, flip signs and multiply by the factors of step 1, 2, ..., p / 2."""
    bits = []
    for block in flips:
        p = len(block[0])
        work = z + [ONE(0)] * (p - len(z))
        for flip in block:
            work = [-value if minus else value for value, minus in zip(work, flip, strict=True)]
            step = 1
            while step < p:
                work = [work[i ^ step] - work[i] if i & step else work[i] + work[i ^ step] for i in range(p)]
                step *= 2
        bits += [int(value >= 0) for value in work]
    return bits[:n_bits]


def scores(R, c, bits):
    return [product([2 * bit - 1 for bit in bits], row) + offset for row, offset in zip(R, c, strict=True)]
