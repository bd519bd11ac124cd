"""Use the time series distances and kernels of aeon and tslearn.

Series are passed in the format of each library: a list of (n_channels, length) arrays for aeon; a list of
(length, n_channels) arrays for tslearn, which pads them with NaN. Matrices are computed in blocks of rows that fit into
``similia.config(max_memory=...)``; only a symmetric matrix of one collection is computed at once. Functions that
return matrices get the value of ``similia.config(n_jobs=...)``; functions of two series run in that many
processes. Results are checked.

`similia.distances.DTW` and the other elastic distances of similia are faster. Use the adapters for distances that
similia lacks (shape DTW, move-split-merge variants, Fréchet, canonical time warping ...), and for comparisons.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.adapters._forwarded import Forwarded, called, library, name_in
from similia.alignments import as_series_pair
from similia.core.config import rows_per_block, settings
from similia.objects import SeriesBatch, as_series, take
from similia.similarity import Distance, EachPair, Facts, Kernel, distances_between, evaluate, name_of

Floats = npt.NDArray[np.floating]
_ASYMMETRIC = ("dtw_gi", "shift_scale")  # distances of aeon with d(x, y) != d(y, x)
_SIMILARITIES = ("lcss", "lcss_path", "lcss_path_from_metric")  # of tslearn: larger values mean closer series
_KERNELS = ("gak", "unnormalized_gak")  # kernels of tslearn


class _OfSeries(Forwarded):
    """Base class of the kernels and distances of series."""

    def as_objects(self, X: Any) -> SeriesBatch:
        """Return `X` as a `SeriesBatch`."""
        return as_series(X)


class _SeriesDistance(_OfSeries, Distance):
    """Base class of distances given by the name of another library's function, or by a function of two series."""

    facts = Facts(symmetric=False, identity=False, metric=False, unequal_length=True, cost="that of the other library")

    def __init__(self, distance: Any = "dtw", params: dict[str, Any] | None = None, symmetric: bool = True) -> None:
        self.distance = distance
        self.params = params
        self.symmetric = symmetric

    def __call__(self, X: Any, Y: Any = None) -> Floats:
        A, B = (side.astype(np.float64) for side in as_series_pair(X, Y))
        function, symmetric = self._function()
        mirror = symmetric and self.symmetric
        return _in_blocks(lambda x, y: distances_between(function, x, y), A, B if Y is not None else None, mirror)

    def _function(self) -> tuple[Callable[..., Any], bool]:
        """Return d(X, Y=None) on batches of series, and whether d(X) may be computed from half of the pairs."""
        raise NotImplementedError


class AeonDistance(_SeriesDistance):
    """A time series distance of the library aeon; create one with `from_aeon`.

    Parameters
    ----------
    distance : str or callable, default="dtw"
        A name in ``aeon.distances.get_distance_function_names()``, or a function of two (n_channels, length) arrays.
    params : dict, optional
        Options of the distance. Each can also be set by its own name: ``set_params(window=0.1)``.
    symmetric : bool, default=True
        Whether d(x, y) = d(y, x); see `from_aeon`.

    Examples
    --------
    >>> from similia.adapters import AeonDistance
    >>> AeonDistance("dtw", {"window": 0.1}).set_params(window=0.2)
    AeonDistance(params={'window': 0.2})
    """

    def _function(self) -> tuple[Callable[..., Any], bool]:
        options = dict(self.params or {})
        if callable(self.distance):
            return _each_pair(self.distance, name_of(self.distance), options), True
        aeon = library("aeon", "aeon.distances", "from_aeon")
        known: list[str] = getattr(aeon, "get_distance_function_names", list)()
        if not isinstance(self.distance, str) or (known and self.distance not in known):
            raise ValueError(f"aeon has no distance {self.distance!r}; it has {', '.join(known)}")
        name = f"aeon's {self.distance}"
        window, slope = options.get("window"), options.get("itakura_max_slope")
        symmetric = self.distance not in _ASYMMETRIC and slope is None
        if self.distance == "twe" and (window, slope) != (None, None):  # many series: aeon 1.6 bounds padded lengths
            options.pop("n_jobs", None)
            return _each_pair(aeon.twe_distance, name, options), symmetric
        options.setdefault("n_jobs", settings().n_jobs or 1)

        def function(X: Any, Y: Any = None) -> Any:
            sides = [_transposed(side) for side in (X, Y) if side is not None]
            # If all series of Y have equal lengths, aeon 1.6 assumes the same of X, and reads past the ends of the
            # series of X. An extra series of another length in Y avoids this.
            misread = Y is not None and np.ptp(X.lengths) > 0 and np.ptp(Y.lengths) == 0
            if misread:
                other = X[int(np.argmax(X.lengths != Y.lengths[0]))]
                sides[1] = [*sides[1], np.ascontiguousarray(other.T, np.float64)]
            D = called(name, aeon.pairwise_distance, *sides, method=self.distance, **options)
            return D[:, :-1] if misread else D

        function.__name__ = name
        return function, symmetric


class TslearnDistance(_SeriesDistance):
    """A time series distance of the library tslearn; create one with `from_tslearn`.

    Parameters
    ----------
    distance : str or callable, default="dtw"
        Name of a function of ``tslearn.metrics``, with or without the prefix ``cdist_``, or a function of two (length,
        n_channels) arrays.
    params : dict, optional
        Options of the function. Each can also be set by its own name: ``set_params(sakoe_chiba_radius=5)``.
    symmetric : bool, default=True
        Whether d(x, y) = d(y, x); see `from_tslearn`.

    Examples
    --------
    >>> from similia.adapters import TslearnDistance
    >>> TslearnDistance("dtw", {"sakoe_chiba_radius": 3}).get_params()["sakoe_chiba_radius"]
    3
    """

    def _function(self) -> tuple[Callable[..., Any], bool]:
        return _of_tslearn(self.distance, self.params), True


class TslearnKernel(_OfSeries, Kernel):
    """The global alignment kernel for time series of the library tslearn; create one with `from_tslearn`.

    Parameters
    ----------
    kernel : str, default="gak"
        "gak" (or "cdist_gak") for the normalised kernel, or "unnormalized_gak".
    params : dict, optional
        Options of tslearn's kernel function. Each can also be set by its own name: ``set_params(sigma=2.0)``.

    Notes
    -----
    `similia.kernels.GlobalAlignment` is a similar kernel that is positive definite and faster than this one.

    Examples
    --------
    >>> from similia.adapters import TslearnKernel
    >>> TslearnKernel(params={"sigma": 2.0}).get_params()["sigma"]
    2.0
    """

    def __init__(self, kernel: Any = "gak", params: dict[str, Any] | None = None) -> None:
        self.kernel = kernel
        self.params = params

    def __call__(self, X: Any, Y: Any = None) -> npt.NDArray[np.float64]:
        A, B = (side.astype(np.float64) for side in as_series_pair(X, Y))
        function = _of_tslearn(self.kernel, self.params, kernels=True)
        K = _in_blocks(lambda x, y: evaluate(function, x, y), A, B if Y is not None else None, True)
        return K.astype(np.float64, copy=False)

    def diag(self, X: Any) -> npt.NDArray[np.float64]:
        """Return k(x, x) for each series, shape (n,)."""
        X = as_series(X)
        if _without_prefix(self.kernel) == "gak":
            return np.ones(len(X))
        function = _of_tslearn(self.kernel, self.params, kernels=True)
        return np.array([evaluate(function, X[[i]], X[[i]])[0, 0] for i in range(len(X))])


def from_aeon(distance: Any = "dtw", *, symmetric: bool = True, **params: Any) -> AeonDistance:
    """Turn a time series distance of the library aeon into a distance of similia.

    Parameters
    ----------
    distance : str or callable, default="dtw"
        The name of a distance, such as "dtw", "shape_dtw" or "msm"; a function of aeon, such as
        ``aeon.distances.msm_distance`` or ``msm_pairwise_distance``; or your own function of two (n_channels, length)
        arrays.
    symmetric : bool, default=True
        Whether d(x, y) = d(y, x). If True, ``d(X)`` may be computed from half of the pairs; give False if your function
        is not symmetric. You need not set `symmetric` for aeon's own distances: similia knows which of them are not
        symmetric, such as "shift_scale".
    **params
        Options of the distance, such as ``window=0.1``.

    Returns
    -------
    AeonDistance
        Called as ``d(X, Y=None) -> (n, m)`` on anything that `similia.objects.as_series` reads.

    Notes
    -----
    aeon's "dtw" sums squared differences; ``similia.distances.DTW(local="sqeuclidean")`` computes the same distance and
    is faster. `similia.checks.check_distance` tests on your series whether a distance is symmetric, never negative, and
    0 from a series to itself.

    Examples
    --------
    >>> from similia.adapters import from_aeon
    >>> distance = from_aeon("msm", c=0.5)
    >>> distance.set_params(c=1.0).params
    {'c': 1.0}
    """
    name = name_in(distance, "aeon", ("_pairwise_distance", "_distance"))
    name = "shift_scale" if name == "shift_scale_invariant" else name  # the name that aeon gives this function
    return AeonDistance(name, params or None, symmetric)


def from_tslearn(function: Any = "dtw", *, symmetric: bool = True, **params: Any) -> TslearnDistance | TslearnKernel:
    """Turn a time series distance or kernel of the library tslearn into one of similia.

    Parameters
    ----------
    function : str or callable, default="dtw"
        The name of a function, such as "dtw", "frechet", "ctw", "soft_dtw_normalized" or "gak"; a function of tslearn,
        such as ``tslearn.metrics.cdist_dtw``; or your own distance of two (length, n_channels) arrays.
    symmetric : bool, default=True
        Whether d(x, y) = d(y, x). If True, ``d(X)`` may be computed from half of the pairs; give False if your function
        is not symmetric. It has no effect on kernels.
    **params
        Options of the function, such as ``sakoe_chiba_radius=5``.

    Returns
    -------
    TslearnDistance or TslearnKernel
        A kernel if `function` is "gak" or "unnormalized_gak", otherwise a distance. Both are called as
        ``f(X, Y=None) -> (n, m)`` on anything that `similia.objects.as_series` reads.

    Notes
    -----
    tslearn's "dtw" is the square root of a sum of squared differences;
    ``similia.distances.DTW(local="sqeuclidean", root=True)`` computes the same distance and is faster.

    Examples
    --------
    >>> from similia.adapters import from_tslearn
    >>> from_tslearn("gak", sigma=2.0)
    TslearnKernel(params={'sigma': 2.0})
    >>> from_tslearn("frechet")
    TslearnDistance(distance='frechet')
    """
    name = _without_prefix(name_in(function, "tslearn"))
    if isinstance(name, str) and name in _KERNELS:
        return TslearnKernel(name, params or None)
    return TslearnDistance(name, params or None, symmetric)


def _without_prefix(name: Any) -> Any:
    return name.removeprefix("cdist_") if isinstance(name, str) else name


def _each_pair(function: Callable[..., Any], name: str, options: dict[str, Any]) -> EachPair:
    pair = partial(_of_transposed, function, **options)
    pair.__name__ = name  # type: ignore[attr-defined]
    return EachPair(pair)


def _of_transposed(function: Callable[..., Any], x: Any, y: Any, **options: Any) -> Any:
    return function(np.ascontiguousarray(x.T), np.ascontiguousarray(y.T), **options)


def _of_tslearn(name: Any, params: dict[str, Any] | None, kernels: bool = False) -> Callable[..., Any]:
    """Return f(X, Y=None) on batches, for a function of two series or the name of a distance (kernel if `kernels`)."""
    options = dict(params or {})
    if callable(name):
        return EachPair(partial(name, **options))
    metrics, name = library("tslearn", "tslearn.metrics", "from_tslearn"), _without_prefix(name)
    if name in _SIMILARITIES:
        raise ValueError(f"tslearn's {name} is a similarity, expected a distance; use similia.distances.LCSS")
    public = isinstance(name, str) and not name.startswith("_") and "path" not in name
    if not public or (name in _KERNELS) != kernels:
        raise ValueError(f"from_tslearn has no {'kernel' if kernels else 'distance'} {name!r}; see tslearn.metrics")
    whole, single = getattr(metrics, f"cdist_{name}", None), getattr(metrics, name, None)
    if whole is None:
        if single is None:
            raise ValueError(f"tslearn.metrics has neither cdist_{name} nor {name}")
        if not callable(single) or [*inspect.signature(single).parameters][:2] != ["s1", "s2"]:
            raise ValueError(f"tslearn.metrics.{name} is not a function of two series")
        return EachPair(partial(single, **options))
    options.setdefault("n_jobs", settings().n_jobs)

    def function(X: Any, Y: Any = None) -> Any:
        sides = [[np.asarray(x, np.float64) for x in side] for side in (X, Y) if side is not None]
        return called(f"tslearn's {name}", whole, *sides, **options)

    function.__name__ = f"tslearn's {name}"
    return function


def _transposed(X: SeriesBatch) -> list[npt.NDArray[np.float64]] | npt.NDArray[np.float64]:
    """Return series in aeon's format: a list of (n_channels, length) arrays, or one array for equal lengths."""
    arrays = [np.ascontiguousarray(x.T, np.float64) for x in X]
    return np.stack(arrays) if np.ptp(X.lengths) == 0 else arrays


def _in_blocks(
    function: Callable[[Any, Any], Floats], A: SeriesBatch, B: SeriesBatch | None, symmetric: bool
) -> Floats:
    """Return ``function(A, B)``, computed in blocks of rows of `A`; without `B`, of `A` and `A`."""
    if B is None and symmetric:
        return function(A, None)
    B = A if B is None else B
    step = rows_per_block(3 * 8 * len(B))
    starts = range(0, len(A), step)
    blocks = [function(take(A, np.arange(i, min(i + step, len(A)))), B) for i in starts]
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
