"""The loop behind mean map features: waves of each point of a set, added in the order of the points."""

from __future__ import annotations

import numpy as np

from similia.core.jit import njit
from similia.core.scalars import write_waves


@njit()
def add_waves(turns, of_set, sums):  # type: ignore[no-untyped-def]
    """Add the cosines and then the sines of row p of `turns`, in quarter turns, to row ``of_set[p]`` of `sums`."""
    k = turns.shape[1]
    cosines, sines = np.empty(k), np.empty(k)
    for p in range(len(turns)):
        write_waves(turns[p], 1.0, cosines, sines)
        row = sums[of_set[p]]
        for j in range(k):
            row[j] += cosines[j]
        for j in range(k):
            row[k + j] += sines[j]
