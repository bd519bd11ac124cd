r"""Dynamic time warping: the cheapest way to match two series step by step, without going back in time.

.. math:: D(i, j) = c(x_i, y_j) + \min\{D(i-1, j), D(i, j-1), D(i-1, j-1)\}, \qquad d(x, y) = D(m, n),

with c the Euclidean distance over the channels (not squared), no division by the length of the path and no root at the
end. Cost: m n cells for a pair, of which 16 pairs are computed at a time (`similia.distances._dtw` says how).

Papers: Sakoe & Chiba, "Dynamic programming algorithm optimization for spoken word recognition", IEEE Transactions on
Acoustics, Speech and Signal Processing 26, 1978; as the distance of D2KE, Wu, Yen, Xu, Ravikumar & Witbrock 2018,
Section 4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.distances import _dtw as loops
from similia.distances._groups import fill_chosen, fill_pairs
from similia.distances.base import Distance, Facts
from similia.objects import SeriesBatch, as_series
from similia.objects._series_pairs import as_named_series, as_series_pair, window_band

Floats = npt.NDArray[np.floating]


class DTW(Distance):
    """Dynamic time warping of series of any lengths, with one channel or several.

    Parameters
    ----------
    window : int or float, optional
        Sakoe-Chiba band: step i is matched only with steps j of ``|i - j| <= w``. An integer >= 0 is w itself; a
        float in (0, 1] is a share of the longer length, rounded down. For lengths m and n, w is never
        below ``|m - n|``, since no path would exist. None: no band.
    local : {"euclidean", "sqeuclidean"}, default="euclidean"
        Cost of matching two steps: the Euclidean distance over the channels, or its square.
    root : bool, default=False
        Take the square root of the final sum of squares (with ``local="sqeuclidean"`` only).

    Raises
    ------
    ValueError
        When called, if a parameter is out of range, `X` and `Y` differ in channels, a value is NaN or infinite,
        or a distance exceeds the largest number of its type.

    Notes
    -----
    Series of float32 are computed and returned in float32, with a relative error of about 1e-6; any others in
    float64. A distance depends on its two series only, bit for bit, not on the other ones nor on threads.

    It is no metric: the triangle inequality fails, and d(x, y) = 0 for series that differ in repeated steps only.

    References
    ----------
    Sakoe & Chiba, "Dynamic programming algorithm optimization for spoken word recognition", IEEE TASSP 26, 1978.
    Wu, Yen, Xu, Ravikumar & Witbrock, "D2KE: from distance to kernel and embedding", 2018, Section 4.

    Examples
    --------
    >>> from similia.distances import DTW
    >>> series = [[0.0, 1.0, 2.0], [0.0, 0.0, 1.0, 2.0], [3.0]]
    >>> DTW()(series)
    array([[0., 0., 6.],
           [0., 0., 9.],
           [6., 9., 0.]])
    >>> DTW(local="sqeuclidean")(series[:2], series[2:])
    array([[14.],
           [23.]])
    """

    facts = Facts(symmetric=True, identity=True, metric=False, unequal_length=True, cost="m n")

    def __init__(self, window: float | None = None, local: str = "euclidean", root: bool = False) -> None:
        self.window = window
        self.local = local
        self.root = root

    def __call__(self, X: Any, Y: Any = None) -> Floats:
        """Return the distances of `X` to `Y`.

        Parameters
        ----------
        X : sequence of n series
            Whatever `similia.objects.as_series` takes: a 2-D array is n series of one channel, and one series of
            several channels is ``[x]``.
        Y : sequence of m series, optional
            `X` itself if not given; half of the pairs are then computed.

        Returns
        -------
        ndarray, shape (n, m)
            Of float32 if all series are, otherwise of float64.
        """
        X, Y = as_series_pair(X, Y)
        return self._checked(fill_pairs(X, Y, self._loop(X.n_dims)))

    def paired(self, X: Any, Y: Any, rows: npt.ArrayLike, columns: npt.ArrayLike) -> Floats:
        """Return the distances of some pairs: ``self(X, Y)[rows, columns]`` without the others.

        Parameters
        ----------
        X, Y : sequences of series
        rows, columns : array-like of int, shape (n_pairs,)
            Positions in `X` and `Y`.

        Returns
        -------
        ndarray, shape (n_pairs,)
            Of float32 if all series are, otherwise of float64.
        """
        A, B, left, right = as_named_series(X, Y, rows, columns)
        return self._checked(fill_chosen(A, B, left, right, self._loop(A.n_dims)), "pair {}")

    def _loop(self, n_dims: int) -> Callable[..., None]:
        """Return the loop over tasks, or raise for parameters out of range."""
        window, rooted = window_band(self.window), self._rooted()

        def warp(x: Any, y: Any, *where: Any) -> None:
            loops.fill(x, y, n_dims, rooted, window, *where)

        return warp

    def _checked(self, distances: Floats, pair: str = "X[{}] and Y[{}]") -> Floats:
        """Return final distances of what the loop found, or raise if one is not finite."""
        if np.isinf(distances.max(initial=0.0)):
            raise ValueError(
                f"the distance of {pair.format(*np.argwhere(np.isinf(distances))[0])} exceeds the largest "
                f"{distances.dtype}; "
                f"scale the series{' or give them as float64' if distances.dtype == np.float32 else ''}"
            )
        return np.sqrt(distances, out=distances) if self.root else distances

    def as_objects(self, X: Any) -> SeriesBatch:
        """Return `X` as a `SeriesBatch`."""
        return as_series(X)

    def _rooted(self) -> bool:
        if self.local not in ("euclidean", "sqeuclidean"):
            raise ValueError(f"local must be 'euclidean' or 'sqeuclidean', got {self.local!r}")
        if self.root and self.local == "euclidean":
            raise ValueError("root=True is the root of a sum of squares, got local='euclidean'; take 'sqeuclidean'")
        return self.local == "euclidean"
