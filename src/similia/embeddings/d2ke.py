r"""D2KE (from distance to kernel and embedding): feature vectors with one entry for each random object.

.. math:: \phi_j(x) = R^{-1/2} e^{-\gamma d(x, \omega_j)}, \qquad j = 1, \dots, R,

for any distance d and random objects omega_j drawn once from a distribution p(omega). Inner products of these vectors
estimate a positive definite kernel, `similia.kernels.FromDistance`; a linear model on the vectors is a kernel machine.
Cost: n R distances to short objects, linear in the number of objects and in their length.
"""

from __future__ import annotations

import os
import re
from functools import partial
from numbers import Integral
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_memory

from similia.core.errors import BadParameter, pairs_named
from similia.core.estimators import Transformer, all_at_once, check_fitted, detached, example_of
from similia.core.hashing import fingerprint
from similia.core.state import array, count, objects, one_of, optional, state
from similia.core.validation import RandomState, check_positive, check_positive_int, check_vectors, generator
from similia.embeddings.random_objects import RandomSeries, RandomSets, RandomStrings, Representatives
from similia.kernels.from_distance import distance_matrix, draw, exp_features, is_sampler, joined, random_stream
from similia.objects import SeriesBatch, SetBatch, StringBatch, n_objects, take
from similia.objects.sequences import at_least_one
from similia.similarity import ComparesObjects, as_objects, check_distance, read_objects
from similia.sources.dask import as_parts, from_parts, lazily

_AUTO = {StringBatch: RandomStrings, SeriesBatch: RandomSeries, SetBatch: RandomSets}
# "median" is the median of the distances between this many training objects (rows) and random objects (columns).
GAMMA_ROWS, GAMMA_COLUMNS = 256, 64


@state(
    distance="comparison", distance_="comparison", random_objects_=objects("r"), _n_features_out=count("r"),
    gamma_="positive", seed_=count(), sampler_=optional("sampler"), memory=one_of(None),
    representative_indices_=array("i8", None),
)  # fmt: skip
class D2KE(ComparesObjects, Transformer):
    r"""Embed objects of any kind, with any distance, by their distances to random objects.

    Parameters
    ----------
    distance : callable
        One of `similia.distances`, such as ``FromFunction(f)``, or a function of your own. ``distance(X, Y)`` returns
        a non-negative (n, m) array; it need not be a metric.
    n_components : int, default=1024
        Number R of random objects. Not used if `objects` is a collection. If they are drawn by `Representatives` (see
        `objects`), R is at most the number of training objects.
    objects : "auto", sampler, callable or collection of objects, default="auto"
        The source of the random objects. A sampler is one of `RandomStrings`, `RandomSeries`, `RandomSets`, `Mosaics`,
        `Mixture` and `Representatives`, or an object of your own with a method ``sample(X, n, rng)`` that returns n
        objects. It must not have a length (``__len__``), since then it counts as a collection. A function ``f(X, n,
        rng)`` works, too. `fit` calls the sampler or function repeatedly with n = 256, until there are enough objects.
        If a collection is given, all its objects are used. "auto" takes `RandomStrings`, `RandomSeries` or `RandomSets`
        if the distance works on strings, series or sets, and `Representatives` otherwise.
    gamma : float, "median" or str, default="median"
        Gamma in ``exp(-gamma * d) / sqrt(R)``, the feature of an object at distance d from a random object. "median"
        means 1 / m, and ``"4*median"`` means 4 / m, where m is the median distance between at most 64 random objects
        and at most 256 training objects. If m is 0, it counts as 1.
    random_state : int, numpy Generator or None, default=None
        Seed or generator from which `fit` draws the random objects.
    memory : str, path, joblib.Memory or None, default=None
        Where to cache distance matrices, so that a later fit with another gamma computes no distances. This needs an
        integer `random_state`, so that the same random objects are drawn again. Distances are computed anew if your own
        distance function, or anything that its code uses, has changed.

    Attributes
    ----------
    distance_ : callable
        Copy of `distance` made by `fit`.
    random_objects_ : collection of objects, length R
        The random objects, converted for the distance, for example to a `similia.objects.StringBatch`.
    gamma_ : float
        Gamma as a number.
    seed_ : int
        Seed of the random objects: `random_state` itself if that is an integer.
    sampler_ : sampler or None
        The source of the random objects, with the parameters that `fit` learned, such as an alphabet. None if `objects`
        is a collection.
    representative_indices_ : ndarray of int64, shape (R,)
        Positions of the random objects among the training objects; empty unless `sampler_` is `Representatives`.

    Notes
    -----
    Random object j is the same for every `n_components`: it depends only on j, `seed_` and `sampler_`, and also on the
    training objects if the sampler uses them, as `Representatives` does. So a larger `n_components` only adds random
    objects, and does not change `gamma_`. The features of an object do not depend on the other objects that are
    transformed. They are float32 if the distances are, else float64.

    Standardise the columns before a linear model, as `similia.recipes.d2ke` does. If gamma is far below 1 / m (see
    `gamma`), exp(-gamma d) is approximately linear in d, so the standardised features hardly depend on gamma. If gamma
    is far above 1 / m, only the random objects nearest to an object matter.

    References
    ----------
    Wu, Yen, Xu, Ravikumar & Witbrock, "D2KE: From Distance to Kernel and Embedding", Algorithm 1.

    Examples
    --------
    >>> import similia as sm
    >>> unlike = sm.distances.FromFunction(lambda x, y: float(len(set(x) ^ set(y))))
    >>> d2ke = sm.D2KE(unlike, n_components=64, objects=sm.embeddings.RandomStrings(length=3), random_state=0)
    >>> d2ke.fit_transform(["tree", "trees", "bush", "bushes"]).shape
    (4, 64)
    >>> d2ke.random_objects_[:3]
    ['bru', 'uur', 'btu']
    """

    _by = "distance"

    def __init__(
        self,
        distance: Any,
        n_components: int = 1024,
        objects: Any = "auto",
        gamma: float | str = "median",
        random_state: RandomState = None,
        *,
        memory: Any = None,
    ) -> None:
        self.distance = distance
        self.n_components = n_components
        self.objects = objects
        self.gamma = gamma
        self.random_state = random_state
        self.memory = memory

    @all_at_once
    @from_parts
    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the random objects and compute gamma; `y` is used only to check its length.

        If `X` is a Dask collection, a custom sampler receives it as an object with ``len(X)`` and ``X.take(indices)``.
        """
        check_distance(self.distance)
        factor, unit = gamma_spec(self.gamma)
        R = check_positive_int(self.n_components, "n_components")
        self.distance_ = detached(self.distance)
        cached = self._cached_distances()
        X = read_objects(self, self.distance_, X, reset=True)
        n = at_least_one(X)
        if y is not None and n_objects(y) != n:
            raise ValueError(f"y has {n_objects(y)} labels for {n} objects; give one label per object")
        self.seed_ = _seed(self.random_state)
        self.sampler_ = self._sampler(X)
        self.representative_indices_ = np.zeros(0, dtype=np.int64)
        first = self._draw(X, max(R, GAMMA_COLUMNS) if unit == "median" else R)
        self._keep(first, R, n)
        self.gamma_ = factor
        if unit == "median":
            rows = np.sort(random_stream(self.seed_, 1).permutation(n)[:GAMMA_ROWS])
            some = take(first, np.arange(min(GAMMA_COLUMNS, n_objects(first))))
            with pairs_named(rows, range(n_objects(some)), "X[{}] and random object {}"):
                median = float(np.median(cached(self.distance_, take(X, rows), some)))
            self.gamma_ = factor / median if median > 0 else factor
        return self

    @lazily
    def transform(self, X: Any) -> npt.NDArray[np.floating]:
        """Return the vectors of n objects, shape (n, R), float32 if the distances are, else float64."""
        check_fitted(self)
        D = self.distances(X)
        return exp_features(D if self.memory is None else np.array(D), self.gamma_)  # a cache may map its files

    @all_at_once
    def fit_transform(self, X: Any, y: Any = None) -> npt.NDArray[np.floating]:
        """Fit to objects and embed them; see `fit` and `transform`."""
        if isinstance(self.objects, Representatives) and self.objects.hold_out:
            raise ValueError(
                "Representatives(hold_out=True) takes objects out of training, which a step of a pipeline cannot do; "
                "use similia.recipes.d2ke, or fit, then transform the objects not in representative_indices_"
            )
        return self.fit(X, y).transform(X)

    @lazily
    def distances(self, X: Any, start: int = 0) -> npt.NDArray[np.floating]:
        """Return the distances from n objects to ``random_objects_[start:]``, shape (n, R - start).

        After `extend`, set `start` to the former number of random objects to get the distances to the new ones only.
        """
        check_fitted(self)
        X = read_objects(self, self.distance_, X, reset=False)
        objects, R = self.random_objects_, self._n_features_out
        if check_positive_int(start, "start", minimum=0) > R:
            raise BadParameter("start", f"at most the number of random objects, {R}", str(start))
        if start:
            objects = take(objects, np.arange(min(start, R - 1), R))  # the last one, for the dtype, if start is R
        return self._cached_distances()(self.distance_, X, objects)[:, : R - start]

    def features(self, D: npt.ArrayLike) -> npt.NDArray[np.floating]:
        """Turn distances to the random objects, shape (n, R), into features of the same shape, as `transform` does."""
        check_fitted(self)
        return exp_features(np.array(check_vectors(D, "D", self._n_features_out)), self.gamma_)

    @all_at_once
    def extend(self, n_components: int, X: Any = None) -> Self:
        """Draw more random objects; keep gamma and the random objects drawn before.

        The result is the same as after `fit` with the larger `n_components`.

        Parameters
        ----------
        n_components : int
            New total number of random objects; a number below the current one raises ValueError.
        X : collection of objects, optional
            The training objects, needed only by `Representatives`, by `Mosaics` and by samplers of your own that use
            them.
        """
        check_fitted(self)
        had = self._n_features_out
        if check_positive_int(n_components, "n_components") < had:
            raise ValueError(
                f"n_components={n_components} is below the {had} random objects drawn before, expected the new total"
            )
        if self.sampler_ is None:
            raise ValueError(f"the {had} random objects were given as a collection; there are no more to draw")
        if X is not None:
            X = as_objects(self.distance_, as_parts(X))
        if isinstance(self.sampler_, Representatives):
            if X is None:
                raise ValueError("Representatives are drawn from the training objects; write extend(n_components, X)")
            self._keep(self._draw(X, n_components), n_components, n_objects(X))
        elif n_components > had:
            old = self.random_objects_
            new = draw(self.sampler_, X, had, n_components, self.seed_)
            self._keep(joined([old, *new], self.distance_, old), n_components)
        self.n_components = n_components
        return self

    def set_params(self, **params: Any) -> Self:
        """Set parameters, including nested ones such as ``objects__length``, as in scikit-learn."""
        nested = [key for key in params if key.startswith("objects__")]
        if nested and isinstance(params.get("objects", self.objects), str):
            raise ValueError(
                f'{nested[0]} is a parameter of a sampler, and objects="auto" becomes one only in fit; '
                "give the sampler, such as objects=RandomStrings()"
            )
        super().set_params(**params)
        return self

    def _example(self) -> Any:
        return take(self.random_objects_, [0])

    def _cached_distances(self) -> Any:
        """Return the function `distance_matrix`, or a version cached in `memory` if that is not None."""
        if self.memory is None:
            return distance_matrix
        memory = os.fspath(self.memory) if isinstance(self.memory, os.PathLike) else self.memory
        key = fingerprint(self.distance_, "memory cannot keep these distances: the distance")
        return partial(check_memory(memory).cache(_remembered, ignore=["distance"]), key)

    def _sampler(self, X: Any) -> Any:
        """Return the sampler with parameters learned from `X`, or None if `objects` is a collection."""
        objects = self.objects
        if isinstance(objects, str):
            if objects != "auto":
                raise ValueError(f'objects must be "auto", a sampler or a collection of objects, got {objects!r}')
            objects = _AUTO.get(type(example_of(X)), Representatives)()
        if not is_sampler(objects):
            return None
        return detached(objects.complete(X) if hasattr(objects, "complete") else objects)

    def _draw(self, X: Any, R: int) -> Any:
        """Return R random objects; `Representatives` are at most len(X), and a given collection is returned whole."""
        if self.sampler_ is None:
            return as_objects(self.distance_, self.objects)
        if isinstance(self.sampler_, Representatives):
            return take(X, self._order(n_objects(X))[:R])
        return joined([*draw(self.sampler_, X, 0, R, self.seed_)], self.distance_, example_of(X))

    def _order(self, n: int) -> npt.NDArray[np.int64]:
        """Return a random permutation of n training objects: the order in which they become representatives."""
        return random_stream(self.seed_, 0).permutation(n)

    def _keep(self, objects: Any, R: int, n: int = 0) -> None:
        """Store the first R of `objects`, or all if the user gave them; `n` is the number of training objects."""
        R = at_least_one(objects, "objects") if self.sampler_ is None else min(R, n_objects(objects))
        if isinstance(self.sampler_, Representatives):
            if self.sampler_.hold_out and n == R:
                raise ValueError(
                    f"n_components={R} representatives held out of {n} training objects leave none to train on; "
                    "lower n_components"
                )
            self.representative_indices_ = self._order(n)[:R]
        self.random_objects_ = objects if n_objects(objects) == R else take(objects, np.arange(R))
        self._n_features_out = R


def _remembered(key: str, distance: Any, X: Any, objects: Any) -> npt.NDArray[np.floating]:
    """Return the distance matrix; the cache ignores `distance` and uses `key`, its fingerprint, instead."""
    return distance_matrix(distance, X, objects)


def gamma_spec(gamma: Any) -> tuple[float, str | None]:
    """Return (gamma, None) for a number and (factor, "median") for "median" or "factor*median"; otherwise raise."""
    if not isinstance(gamma, str):
        return check_positive(gamma, "gamma"), None
    found = re.fullmatch(r"\s*(?:([\d.eE+-]+)\s*\*\s*)?median\s*", gamma)
    try:
        return check_positive(float(found[1] or 1), "gamma"), "median"  # type: ignore[index]
    except (TypeError, ValueError):
        expected = 'a positive number, "median" or a multiple such as "4*median"'
        raise ValueError(f"gamma must be {expected}, got {gamma!r}") from None


def _seed(random_state: RandomState) -> int:
    """Return `random_state` if it is an integer >= 0; otherwise draw a seed from the generator it stands for."""
    if isinstance(random_state, Integral) and not isinstance(random_state, bool) and random_state >= 0:
        return int(random_state)
    return int(generator(random_state).integers(2**63))
