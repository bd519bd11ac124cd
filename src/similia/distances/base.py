"""The protocol of a distance, d(X, Y=None) -> (n, m), non-negative, and what the built-in ones share.

As for kernels, no base class is asked of a user: any callable of that form is a distance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from similia.core.errors import BadPairValue, pairs_named
from similia.kernels._evaluate import as_floats, called, name_of, refuse_class
from similia.kernels.base import Kernel
from similia.kernels.combine import Pairwise
from similia.objects import n_objects
from similia.objects._tables import objects_in


@dataclass(frozen=True)
class Facts:
    """What is true of a distance for all its parameters; tests hold every distance against its own.

    Attributes
    ----------
    symmetric : bool
        d(x, y) = d(y, x).
    identity : bool
        d(x, x) = 0.
    metric : bool
        The triangle inequality holds, and d(x, y) = 0 only for x = y (as what the distance compares: a set of
        points, not a list): `similia.bounds.lipschitz` needs it.
    unequal_length : bool
        Objects of different length can be compared.
    cost : str
        Operations for one pair of objects of lengths m and n, such as ``"m n"``.
    """

    symmetric: bool
    identity: bool
    metric: bool
    unequal_length: bool
    cost: str


class Distance(BaseEstimator):
    """Base of the built-in distances: an object that holds parameters and learns nothing."""

    facts: ClassVar[Facts]

    def __call__(self, X: Any, Y: Any = None) -> npt.NDArray[np.floating]:
        """Return the distances of `X` to `Y`.

        Parameters
        ----------
        X : sequence of n objects
        Y : sequence of m objects, optional
            `X` itself if not given.

        Returns
        -------
        ndarray of float32 or float64, shape (n, m)
        """
        raise NotImplementedError

    def as_objects(self, X: Any) -> Any:
        """Return `X` in the memory layout this distance works on."""
        return objects_in(X)


def check_distance(distance: Any) -> None:
    """Raise unless `distance` can be called and is no kernel."""
    refuse_class(distance, "distance")
    if isinstance(distance, Kernel) and not isinstance(distance, Pairwise):  # a lifted function may be either
        raise TypeError(
            f"{distance!r} is a kernel, which is large for like objects; expected a distance, such as DTW()"
        )
    if not callable(distance):
        raise TypeError(f"distance must be a callable d(X, Y) -> (n, m), got {distance!r}; see similia.distances")


def distances_between(
    distance: Any, X: Any, Y: Any = None, start: int = 0, pair: str | None = None
) -> npt.NDArray[np.floating]:
    """Return d(X, Y) of any callable as a float32 or float64 array, or raise if it is no distance.

    Where `X` is a block of a larger collection, `start` is the position of its first object there; `pair` names two
    objects in a message.

    Raises
    ------
    ValueError
        If the result is not of shape (n, m), or a value is NaN, infinite or negative; the pair is named.
    TypeError
        If `distance` is a kernel or cannot be called, or the values are not real numbers.
    """
    check_distance(distance)
    name = name_of(distance)
    expected = (n_objects(X), n_objects(X if Y is None else Y))
    with pairs_named(range(start, start + expected[0]), range(expected[1]), pair):
        values = as_floats(called(distance, X, Y, "distance"), f"the distance {name} returned")
    if values.shape != expected:
        raise ValueError(
            f"the distance {name} returned shape {values.shape} for {expected[0]} x {expected[1]} objects, "
            f"expected {expected}; lift a function of two objects with similia.pairwise(f)"
        )
    bad = ~(values >= 0) | np.isinf(values)
    if bad.any():
        i, j = np.argwhere(bad)[0]
        found = f"the distance {name} returned {values[i, j]:.6g} for"
        names = pair or "X[{}] and Y[{}]"
        raise BadPairValue(found, (int(i) + start, int(j)), ", expected a finite number >= 0", names)
    return values
