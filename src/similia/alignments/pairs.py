"""What distances and kernels that compare all pairs of series share: both collections checked, and the window."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.text import counted
from similia.objects._vectors import SeriesBatch
from similia.objects.sequences import as_second, named
from similia.objects.series import as_series
from similia.objects.series_forms import check_finite

UNLIMITED = 2**40  # steps: a window that excludes nothing


def as_series_pair(X: Any, Y: Any) -> tuple[SeriesBatch, SeriesBatch]:
    """Return X and Y (X again where Y is None) as batches with one number of channels, or raise.

    What `as_series` lets pass in a batch is looked at: loops check no bounds, and a minimum may drop a NaN.
    """
    A = as_series(X)
    B = A if Y is None else as_second(as_series, Y)
    for name, batch in (("X", A), ("Y", B)):
        if batch.lengths.min() == 0:
            raise ValueError(
                f"{name}[{batch.lengths.argmin()}] has length 0, expected at least one time point; drop it"
            )
        check_finite(batch.values, batch.offsets, name + "[{i}], time point {place}, channel {column}")
    if A.n_dims != B.n_dims:
        raise ValueError(
            f"the series of X have {counted(A.n_dims, 'channel')} and those of Y have {B.n_dims}, expected one "
            "number; "
            "one series x is [x], and as_series(X, axes=...) exchanges time and channels"
        )
    return A, B


def as_named_series(
    X: Any, Y: Any, rows: npt.ArrayLike, columns: npt.ArrayLike
) -> tuple[SeriesBatch, SeriesBatch, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the series that pairs ``X[rows[k]], Y[columns[k]]`` name, as `as_series_pair` does, and their places."""
    (A, left), (B, right) = named(as_series(X), rows), named(as_second(as_series, Y), columns)
    return *as_series_pair(A, B), left, right


def window_band(window: Any) -> tuple[int, float]:
    """Return a window in steps and as a share of the longer series, one of them 0; raise for anything else."""
    if window is None:
        return UNLIMITED, 0.0
    if isinstance(window, Integral) and not isinstance(window, bool) and int(window) >= 0:
        return min(int(window), UNLIMITED), 0.0
    if isinstance(window, Real) and not isinstance(window, Integral) and 0 < float(window) <= 1:
        return 0, float(window)
    raise ValueError(
        "window must be None, an integer >= 0 (steps) or a float in (0, 1] (share of the longer series), "
        f"got {window!r}"
    )
