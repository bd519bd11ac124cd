r"""Use the optimal transport of POT as distances of point sets, histograms and shapes (Gromov-Wasserstein).

.. math:: \mathrm{emd2}(a, b, M) = \min_{T \ge 0,\; T 1 = a,\; T' 1 = b} \langle T, M \rangle

The weights a and b belong to the points of two sets or to the bins of two histograms; T is a transport plan. For sets,
M holds the distances from the points of one to those of the other, and all points of a set have the same weight. For
histograms, M is a given cost of moving mass between bins. The function of POT is called for each pair of objects, in
``similia.config(n_jobs=...)`` processes. A call of emd2 for sets of s points costs O(s^3 log s).

Library: Flamary et al., "POT: Python Optimal Transport", JMLR 22, 2021. `similia.distances.SlicedWasserstein` is a
faster sliced distance of sets.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

from similia.adapters._forwarded import Forwarded, called, library, name_in
from similia.core.validation import BadValue, as_second, check_vectors
from similia.objects import as_sets
from similia.similarity import Distance, EachPair, Facts, distances_between

# kinds of functions (see `_value`), by the names of their first parameters
_KINDS = {
    ("a", "b", "M"): "plan",
    ("X_s", "X_t"): "points",
    ("X_a", "X_b"): "points",
    ("C1", "C2"): "shapes",
    ("u_values", "v_values"): "numbers",
    ("x_a", "x_b"): "numbers",
}


class POTDistance(Forwarded, Distance):
    """An optimal-transport distance of the library POT; create one with `from_pot`, which describes the parameters.

    Parameters
    ----------
    function : str or callable, default="emd2"
    metric : str, default="euclidean"
    cost : ndarray of shape (n_bins, n_bins), optional
    root : bool, default=False
    symmetric : bool, default=True
    params : dict, optional
        Options of the function. Each can also be set by its own name: ``set_params(reg=0.1)``.

    See Also
    --------
    from_pot : Has an example.
    """

    facts = Facts(symmetric=False, identity=False, metric=False, unequal_length=True, cost="that of POT")

    def __init__(
        self,
        function: Any = "emd2",
        metric: str = "euclidean",
        cost: Any = None,
        root: bool = False,
        symmetric: bool = True,
        params: dict[str, Any] | None = None,
    ) -> None:
        self.function = function
        self.metric = metric
        self.cost = cost
        self.root = root
        self.symmetric = symmetric
        self.params = params

    def as_objects(self, X: Any) -> Any:
        """Return `X` as a `SetBatch`, or as a matrix of histograms if `cost` is given."""
        return as_sets(X) if self.cost is None else check_vectors(X)

    def __call__(self, X: Any, Y: Any = None) -> npt.NDArray[np.float64]:
        """Return the distances of `X` to `Y` (`X` if not given), shape (n, m); histograms are normalised to sum 1."""
        pair = self._pair()
        left = self._arrays(self.as_objects(X), "X")
        right = None if Y is None else self._arrays(as_second(self.as_objects, Y), "Y")
        symmetric = self.symmetric and (self.cost is None or np.array_equal(self.cost, np.transpose(self.cost)))
        D = distances_between(EachPair(pair, symmetric), left, right).astype(np.float64, copy=False)
        return np.sqrt(D, out=D) if self.root else D

    def _pair(self) -> Callable[[Any, Any], float]:
        """Return the distance of two objects as a function that can be pickled and sent to other processes."""
        function, options = self.function, dict(self.params or {})
        if isinstance(function, str):
            ot = library("POT", "ot", "from_pot")
            function = None if function.startswith("_") else getattr(ot, function, None)
        if not callable(function):
            raise ValueError(
                f"POT has no function {self.function!r}; use e.g. 'emd2', 'sinkhorn2' or 'gromov_wasserstein2'"
            )
        names = tuple(inspect.signature(function).parameters)
        kind = next((kind for first, kind in _KINDS.items() if names[: len(first)] == first), None)
        if kind is None:
            raise ValueError(
                f"{function.__name__}({', '.join(names[:3])}, ...) is not a function of two sets or histograms; use "
                "'emd2', 'sinkhorn2', 'sliced_wasserstein_distance' or 'gromov_wasserstein2', or "
                "similia.distances.FromFunction for a function of two objects"
            )
        if self.cost is not None and kind != "plan":
            raise ValueError(f"cost is for histograms, which {function.__name__} does not compare; drop cost")
        if kind in ("points", "numbers") and "metric" in names:
            options.setdefault("metric", self.metric)
        elif kind in ("points", "numbers") and self.metric != "euclidean":
            raise ValueError(f"{function.__name__} has no option metric; drop metric")
        for seed in ("seed", "random_state"):
            if seed in names and options.get(seed) is None:
                options[seed] = 0  # the same directions for all pairs and calls
        pair = partial(_value, function, kind, self.metric, self._checked_cost(), options)
        pair.__name__ = f"POT's {function.__name__}"  # type: ignore[attr-defined]
        return pair

    def _checked_cost(self) -> npt.NDArray[np.float64] | None:
        if self.cost is None:
            return None
        cost = np.ascontiguousarray(self.cost, dtype=np.float64)
        if cost.ndim != 2 or cost.shape[0] != cost.shape[1] or not (np.isfinite(cost) & (cost >= 0)).all():
            raise ValueError(f"cost must be a square matrix of finite numbers >= 0, got shape {cost.shape}")
        return cost

    def _arrays(self, objects: Any, name: str) -> list[npt.NDArray[np.float64]]:
        if self.cost is None:
            arrays = [np.ascontiguousarray(points, dtype=np.float64) for points in objects]
            for i, points in enumerate(arrays):
                if len(points) == 0:
                    raise BadValue(i, "is an empty set, which has no mass", remedy="drop it", collection=name)
            return arrays
        rows = np.asarray(objects, dtype=np.float64)
        if rows.shape[1] != len(self.cost):
            found = f"has {rows.shape[1]} bins, and cost has {len(self.cost)}"
            raise BadValue(None, found, "the same number", collection=name)
        bad = (rows < 0).any(axis=1) | (rows.sum(axis=1) <= 0)
        if bad.any():
            found = "is not a histogram: expected entries >= 0, not all of them 0"
            raise BadValue(int(bad.argmax()), found, remedy="drop that row", collection=name)
        return list(rows / rows.sum(axis=1, keepdims=True))


def _value(
    function: Callable[..., Any], kind: str, metric: str, cost: Any, options: dict[str, Any], x: Any, y: Any
) -> float:
    """Call a function of POT on two objects, converted to the arguments that its `kind` takes (see `_KINDS`)."""
    if kind == "plan" and cost is not None:
        arguments: tuple[Any, ...] = (x, y, cost)
    elif kind == "plan":
        arguments = (np.full(len(x), 1 / len(x)), np.full(len(y), 1 / len(y)), cdist(x, y, metric))
    elif kind == "shapes":
        arguments = (cdist(x, x, metric), cdist(y, y, metric))
    elif kind == "numbers":
        arguments = (_column(x), _column(y))
    else:
        arguments = (x, y)
    name = f"POT's {function.__name__}"
    found = called(name, function, *arguments, **options)
    number = np.asarray(getattr(found, "value", found))
    if number.size != 1 or number.ndim > 1:  # a plan, even of one entry, has two axes
        raise ValueError(f"{name} returned shape {number.shape}, expected a number; emd2 returns the cost")
    value = float(number.reshape(()))
    # Rounding: the cost of transport to itself may be -1e-17 times the largest cost; costs of shapes are squares.
    largest = max(float(np.abs(costs).max()) for costs in arguments[2:] or arguments)
    return 0.0 if -1e-12 * largest ** (1 if kind == "plan" else 2) <= value < 0 else value


def from_pot(
    function: Any = "emd2",
    *,
    metric: str = "euclidean",
    cost: Any = None,
    root: bool = False,
    symmetric: bool = True,
    **params: Any,
) -> POTDistance:
    """Turn a distance of the library POT (Python Optimal Transport) into a distance of similia.

    Optimal transport compares two point sets or histograms by the least cost of moving the mass of one of them onto the
    other.

    Parameters
    ----------
    function : str or callable, default="emd2"
        A function of ``ot``, or its name. The names of the function's first parameters determine which arguments it
        gets:

        - (a, b, M), as for "emd2" and "sinkhorn2": the weights of the points of two sets (1 / s in a set of s points),
          and the distances from the points of one set to the points of the other. If `cost` is given: two histograms,
          and `cost`.
        - (X_s, X_t), as for "sliced_wasserstein_distance": the points of both sets.
        - (C1, C2), as for "gromov_wasserstein2": the distances between the points within each set.
        - (u_values, v_values), as for "wasserstein_1d": two sets of one-dimensional points.

        Functions of its modules, such as ``ot.partial.partial_wasserstein2``, are given as they are, without a name.
    metric : str, default="euclidean"
        Distance between points, by its name in ``scipy.spatial.distance.cdist``. It is used for M, C1 and C2, and given
        to functions of points that have an option ``metric``, such as "emd2_1d"; others refuse all but the default.
    cost : ndarray of shape (n_bins, n_bins), optional
        Cost of moving mass between bins. If given, the objects are histograms (the rows of a matrix) instead of sets.
    root : bool, default=False
        Whether to take the square root of the values. "emd2" with the metric "sqeuclidean", for example, is the square
        of the 2-Wasserstein distance.
    symmetric : bool, default=True
        Whether d(x, y) = d(y, x). If True, ``d(X)`` calls the function once, not twice, for each pair of objects; twice
        if `cost` is not symmetric.
    **params
        Options of the function, such as ``reg=0.1`` for "sinkhorn2". If the function has an option ``seed`` or
        ``random_state``, this option is 0 by default.

    Returns
    -------
    POTDistance
        Called as ``d(X, Y=None) -> (n, m)`` on collections of point sets or, if `cost` is given, of histograms.

    Notes
    -----
    The Sinkhorn distance of a set to itself is not 0, and the Gromov-Wasserstein solver may find different local minima
    for (x, y) and (y, x). `similia.checks.check_distance` tests d(x, x) = 0 and symmetry on your objects.

    Examples
    --------
    >>> from similia.adapters import from_pot
    >>> from_pot("sinkhorn2", reg=0.1).set_params(reg=1.0).params
    {'reg': 1.0}
    >>> def nearest_first(a, b, M):  # of the form of ot.emd2
    ...     return min(a) * M.min(axis=1).sum()
    >>> from_pot(nearest_first)([[[0.0, 0.0], [3.0, 4.0]]], [[[0.0, 0.0]]])
    array([[2.5]])
    """
    name = name_in(function, "ot")
    if callable(function) and getattr(sys.modules.get("ot"), str(name), None) is not function:
        name = function  # of a module inside ot
    return POTDistance(name, metric, cost, root, symmetric, params or None)


def _column(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    if x.shape[1] != 1:
        raise ValueError(
            f"found points of dimension {x.shape[1]}, but this function takes sets of numbers, shape (s, 1)"
        )
    return x[:, 0]
