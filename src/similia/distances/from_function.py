"""Use functions of two objects or two collections, from any library, as distances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.validation import as_second, check_choice
from similia.objects import as_series
from similia.objects.tables import objects_in
from similia.similarity import Distance, EachPair, Facts, distances_between


class FromFunction(Distance):
    """A distance that calls a Python function.

    A function of two objects is called once per pair. Two collections of n and m objects take n m calls. One collection
    of n objects takes n (n + 1) / 2 calls if `symmetric` is True, otherwise n^2. ``similia.config(n_jobs=...)`` sets
    the number of processes that share the calls. A function of two collections is called once.

    Parameters
    ----------
    function : callable
        ``function(x, y) -> float``, or ``function(X, Y) -> (n, m)`` with ``pairwise=True``.
    pairwise : bool, default=False
        Whether the function takes two collections and returns the matrix of distances.
    axes : {None, "time, channel", "channel, time"}, default=None
        Layout of series for functions that take series as arrays. With None, the function gets objects of any kind,
        unchanged. Otherwise `similia.objects.as_series` reads the objects, and the function gets arrays of shape
        (length, n_channels) or (n_channels, length); with ``pairwise=True`` it gets lists of such arrays.
    symmetric : bool, default=True
        Whether d(x, y) = d(y, x) for all x and y. If True, almost half of the calls within one collection are saved.

    Raises
    ------
    TypeError
        When called, if `function` is not callable or returns something that is not a real number; or if, with
        ``pairwise=True``, it fails on two collections but works on two single objects.
    ValueError
        When called, if `axes` is unknown; if a function of two objects fails, or a distance is negative, NaN or
        infinite (the message names the pair); or if a function of two collections returns the wrong shape. Other errors
        that a function of two collections raises are passed on.

    Notes
    -----
    `similia.adapters` wraps the distances of aeon, tslearn and POT, with suitable axes and options. Set options of the
    function with ``functools.partial``, for example ``functools.partial(function, window=0.1)``. The distance can be
    pickled if the function is defined at the top level of a module. The function need not be a metric.

    Examples
    --------
    >>> from similia.distances import FromFunction
    >>> FromFunction(lambda x, y: abs(len(x) - len(y)))(["kitten", "cat"], ["sitting"])
    array([[1.],
           [4.]])
    >>> from scipy.spatial.distance import cdist
    >>> FromFunction(cdist, pairwise=True)([[0.0, 0.0], [3.0, 4.0]])
    array([[0., 5.],
           [5., 0.]])
    """

    facts = Facts(symmetric=False, identity=False, metric=False, unequal_length=True, cost="one call of the function")

    def __init__(
        self, function: Callable[..., Any], pairwise: bool = False, axes: str | None = None, symmetric: bool = True
    ) -> None:
        self.function = function
        self.pairwise = pairwise
        self.axes = axes
        self.symmetric = symmetric

    def as_objects(self, X: Any) -> Any:
        return super().as_objects(X) if self.axes is None else as_series(X)

    def __call__(self, X: Any, Y: Any = None) -> npt.NDArray[np.floating]:
        if not callable(self.function):
            raise TypeError(f"FromFunction takes a function d(x, y) of two objects, got {self.function!r}")
        check_choice(self.axes, "axes", (None, "time, channel", "channel, time"))
        X = self._arranged(X)
        Y = None if Y is None else as_second(self._arranged, Y)
        if not self.pairwise:
            return distances_between(EachPair(self.function, self.symmetric), X, Y)
        return distances_between(self.function, X, X if Y is None else Y)

    def _arranged(self, X: Any) -> Any:
        if self.axes is None:
            return objects_in(X)
        arrays = list(as_series(X))
        return arrays if self.axes == "time, channel" else [np.ascontiguousarray(array.T) for array in arrays]
