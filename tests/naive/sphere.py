"""Slow twins of the hypersphere: one row, one pair at a time, with exact sums."""

from math import fsum, sqrt

import mpmath
import numpy as np


def unit_row(x, mapping):
    """The row mapped to the sphere."""
    x = [float(value) for value in x]
    if mapping == "sqrt":
        total = fsum(x)
        return np.array([sqrt(value / total) for value in x])
    norm = sqrt(fsum(value * value for value in x))
    return np.array([value / norm for value in x])


def versine(x, y):
    """1 - cos of the angle between two unit rows: half the squared length of their difference."""
    return fsum((float(a) - float(b)) ** 2 for a, b in zip(x, y, strict=True)) / 2


def versine_matrix(X, Y):
    """Versines of all pairs of unit rows."""
    return np.array([[versine(x, y) for y in Y] for x in X])


def exact_versine(x, y):
    """1 - cos of the angle between two rows of any length, to 20 digits."""
    with mpmath.workdps(60):
        x, y = ([mpmath.mpf(float(value)) for value in row] for row in (x, y))
        return float(1 - mpmath.fdot(x, y) / mpmath.sqrt(mpmath.fdot(x, x) * mpmath.fdot(y, y)))
