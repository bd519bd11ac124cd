"""Means and variances of vectors that many objects have, with the same bits wherever the objects are.

Sums are taken over blocks of `BLOCK` objects, cut by their numbers, and added in the order of the blocks. The
variance takes a second pass, over differences from the mean, so that it keeps its digits where the mean is large:
within 1e-12, relatively, of numpy's ``var`` up to 1e8 vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.objects.sequences import each_block

BLOCK = 256
_SMALLEST = 1e-145  # difference whose square has all digits

Floats = npt.NDArray[np.float64]


def moments(X: Any, vectors: Callable[[Any, int], npt.NDArray]) -> tuple[int, Floats, Floats]:
    """Return the number, the mean (p,) and the variance (p,) of the vectors of all objects.

    Parameters
    ----------
    X : collection of objects, or a `Distributed` one
    vectors : callable
        ``vectors(block, start)`` returns those of some objects, shape (n_vectors, p); a function of a module, since it
        travels to where the objects are.
    """
    n, total = 0, np.zeros(1)
    for count, sums in each_block(X, BLOCK, _sums, vectors):
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            n, total = n + count, total + sums
    mean = total / n
    squares, rest, largest = np.zeros(1), np.zeros(1), 0.0
    for of_squares, of_rest, most in each_block(X, BLOCK, _squares, vectors, mean):
        squares, rest, largest = squares + of_squares, rest + of_rest, max(largest, most)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        variance = (squares - rest**2 / n) / n
    if not np.isfinite(variance).all():
        raise ValueError("X holds numbers whose squares are too large to add; scale it down")
    if 0 < largest < _SMALLEST:
        raise ValueError(f"the numbers of X differ by {largest:.3g} at most, whose square is no float64; scale it up")
    return n, mean, variance


def _sums(block: Any, start: int, vectors: Callable[[Any, int], npt.NDArray]) -> tuple[int, Floats]:
    values = vectors(block, start)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return len(values), values.sum(axis=0, dtype=np.float64)


def _squares(
    block: Any, start: int, vectors: Callable[[Any, int], npt.NDArray], mean: Floats
) -> tuple[Floats, Floats, float]:
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        differences = vectors(block, start) - mean
        largest = float(np.abs(differences).max(initial=0.0))
        return np.square(differences).sum(axis=0), differences.sum(axis=0), largest
