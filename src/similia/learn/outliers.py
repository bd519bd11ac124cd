r"""Find objects that resemble no others, in a collection or among new objects; with exact p-values.

The strangeness of an object says how far it is from the training objects. A training object is compared with the other
training objects only.

- ``method="neighbors"``: the distance to the k-th nearest training object.
- ``method="density"``: the local outlier factor, that is, the mean density at the k nearest training objects divided by
  the density at the object. The density at x is 1 / mean of max(d_k(o), d(x, o)) over its k neighbours o, where d_k(o)
  is the distance of o to its own k-th neighbour.
- ``method="reconstruction"``: k(x, x) - \|phi(x)\|^2 with the features phi of `similia.Nystroem`. This is the squared
  distance, in the feature space of the kernel, from the span of s training objects, the landmarks. For landmark i it is
  1 / (H^-1)_ii, the squared distance from the span of the others, where H is the kernel matrix of the landmarks.

The p-value of a new object z is (1 + c) / (m + 1) if c of the m calibration objects are at least as strange as z.

- By neighbours, all training objects calibrate. Their strangeness is computed as if z were a training object too: for
  object i it is max(d_{k-1}(i), min(d_k(i), d(i, z))). Adding z can bring the strangeness of object i below that of z
  only if i is among the k neighbours of z, so one search for these neighbours gives the p-value.
- By reconstruction, the training objects that are not landmarks calibrate.
- By density there are no p-values: a new object changes the densities at its neighbours, so that the strangeness of the
  training objects would have to be computed again for each new object.

Papers: Breunig, Kriegel, Ng & Sander, "LOF: identifying density-based local outliers", SIGMOD 2000; Ramaswamy, Rastogi
& Shim, "Efficient algorithms for mining outliers from large data sets", SIGMOD 2000;
Laxhammar & Falkman, "Sequential conformal anomaly detection in trajectories based on Hausdorff distance", FUSION 2011;
Vovk, Gammerman & Shafer, "Algorithmic learning in a random world", 2005, Proposition 2.3; Hoffmann, "Kernel PCA for
novelty detection", Pattern Recognition 40, 2007.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import OutlierMixin

from similia.core.estimators import all_at_once, check_fitted, offered_if
from similia.core.state import Sizes, array, count, made, one_of, optional, state
from similia.core.validation import BadParameter, BadValue, at_most, check_choice, check_positive_int
from similia.embeddings.nystroem import Nystroem
from similia.learn.neighbors import _KNeighbors
from similia.objects.sequences import at_least_one
from similia.similarity import check_direction, check_kernel, diagonal, evaluate, read_objects
from similia.sources.dask import Distributed, from_parts, lazily, refuse_lazy

Floats = npt.NDArray[np.floating]

_FENCE = 1.5  # contamination="auto" cuts this many interquartile ranges above the third quartile
_LEAST_DISTANCE = 1e-10  # added to mean distances, as in scikit-learn, so that densities are finite
_RELATIVE = 1e-12  # added to the eigenvalues of H, relative to the largest


def _for_new_objects(detector: Any) -> None:
    if not detector.novelty:
        raise AttributeError("novelty=False allows only fit_predict; set novelty=True to judge new objects")


def _for_training_objects(detector: Any) -> None:
    if detector.novelty:
        raise AttributeError("novelty=True does not allow fit_predict; set novelty=False, or call fit and predict")


def _by_neighbors(detector: Any) -> None:
    if getattr(detector, "method_", detector.method) == "reconstruction":
        raise AttributeError("method='reconstruction' has no neighbours; set method='neighbors' or 'density'")


def _with_p_values(detector: Any) -> None:
    _for_new_objects(detector)
    if getattr(detector, "method_", detector.method) == "density":
        raise AttributeError("method='density' has no p-values; set method='neighbors' or 'reconstruction'")


def _state_fits(state: dict[str, Any], sizes: Sizes) -> bool:
    by_span = state["method_"] == "reconstruction"
    least = 0 if by_span else 1
    return by_span == (state["nystroem_"] is not None) and least <= state["n_neighbors_"] < sizes["n"]


@state(
    fits=_state_fits, method_=one_of("neighbors", "density", "reconstruction"), n_neighbors_=count(),
    train_scores_=array("f8", "m"), offset_="number", nystroem_=optional(made("Nystroem")),
    _closer=array("f8", "m"), _calibration=array("f8", None), _density=array("f8", "m"),
)  # fmt: skip
class OutlierDetector(OutlierMixin, _KNeighbors):
    """Outlier detector for strings, graphs, series, sets or vectors, with any kernel or distance.

    Parameters
    ----------
    similarity : kernel or distance
        As for `KNeighborsClassifier`; ``method="reconstruction"`` needs a kernel.
    method : {"neighbors", "density", "reconstruction"}, default="neighbors"
        How to measure the strangeness of an object. "neighbors": by the distance to its `n_neighbors`-th neighbour.
        "density": by the local outlier factor, which compares the density at the object with the density at its
        neighbours; use this method if some groups of objects are denser than others. "reconstruction": by the squared
        distance, in the feature space of a kernel, between the object and the span of some training objects, the
        landmarks.
    n_neighbors : int, default=10
        Number of neighbours for "neighbors" and "density". The number used, `n_neighbors_`, is at most the number of
        training objects minus 1. Choose a number that is larger than any group of similar outliers; otherwise, the
        outliers in such a group are near neighbours of each other, and seem normal.
    n_components : int, default=100
        Number of landmarks for "reconstruction". `fit` draws at most half of the training objects.
    contamination : "auto" or float in (0, 0.5], default="auto"
        Share of the training objects that count as outliers. With "auto", a training object counts as an outlier if its
        strangeness is above Tukey's fence: the third quartile plus 1.5 interquartile ranges of the strangeness of all
        training objects.
    novelty : bool, default=False
        As for `sklearn.neighbors.LocalOutlierFactor`. False: find the outliers among the training objects, with
        `fit_predict`. True: judge new objects, with `predict`, `decision_function`, `score_samples` and (not for
        "density") `p_values`.
    random_state : int, numpy Generator or None, default=None
        Source of randomness with which "reconstruction" draws the landmarks.

    Attributes
    ----------
    train_scores_ : ndarray of float64, shape (n,)
        Score of each training object: the negative of its strangeness (see `method`) among the other training objects.
    offset_ : float
        Objects with a score below this number are outliers. The score of an object is the negative of its strangeness.
    objects_ : collection of objects
        The training objects (for "reconstruction", only the landmarks), converted for the similarity, for example to a
        `similia.objects.StringBatch`.
    distance_ : callable
        Copy of `similarity` made by `fit`. A setting that depends on data, such as ``gamma="median"``, is replaced by
        the number computed from the training objects.
    n_samples_fit_ : int
        Number of `objects_`.
    n_features_in_ : int
        Number of columns; exists only if the objects are rows of a table.
    n_neighbors_ : int
        The number of neighbours used: the smaller of `n_neighbors` and the number of `objects_` minus 1; 0 for
        "reconstruction".
    method_ : str
        The parameter `method` as it was in `fit`.
    nystroem_ : Nystroem or None
        The embedding of "reconstruction"; None for the other methods.

    Raises
    ------
    ValueError
        In `fit`, if there are fewer than two objects, or if a parameter is out of range.

    Notes
    -----
    The p-value p of a new object is (c + 1) / (m + 1), where c of the m training objects are at least as strange as the
    new object. With "neighbors", the strangeness of a training object is computed as if the new object were also a
    training object, and so a possible neighbour. With "reconstruction", m and c count only the training objects that
    are not landmarks.

    Suppose that the training objects and a new object are exchangeable (for example, drawn independently from one
    distribution), and that the similarity is symmetric and not fitted to the data. Then P(p <= a) <= a for each a in
    (0, 1). The probability P covers the random choice of both the training objects and the new object. If the training
    objects are fixed, the probability that p <= a may be larger than a. The p-values of several new objects depend on
    each other.

    Examples
    --------
    >>> import similia as sm
    >>> words = ["kitten", "mitten", "bitten", "sitting", "fitting", "hitting", "xylophone"]
    >>> sm.OutlierDetector(sm.distances.Levenshtein(), n_neighbors=2).fit_predict(words)
    array([ 1,  1,  1,  1,  1,  1, -1])
    >>> detector = sm.OutlierDetector(sm.distances.Levenshtein(), n_neighbors=2, novelty=True).fit(words[:6])
    >>> detector.predict(["litten", "quartz"]), detector.p_values(["litten", "quartz"]).round(3)
    (array([ 1, -1]), array([1.   , 0.143]))
    """

    _by = "similarity"
    nystroem_: Any

    def __init__(
        self,
        similarity: Any,
        method: str = "neighbors",
        *,
        n_neighbors: int = 10,
        n_components: int = 100,
        contamination: str | float = "auto",
        novelty: bool = False,
        random_state: Any = None,
    ) -> None:
        self.similarity = similarity
        self.method = method
        self.n_neighbors = n_neighbors
        self.n_components = n_components
        self.contamination = contamination
        self.novelty = novelty
        self.random_state = random_state

    @all_at_once
    @from_parts
    def fit(self, X: Any, y: Any = None) -> Self:
        """Score n training objects, at least two, and choose `offset_`: objects with a lower score are outliers.

        `y` is ignored. If `method` is "reconstruction", `X` may be a Dask collection: the workers compare objects with
        the landmarks.
        """
        self._check()
        self.method_ = self.method
        strangeness = self._fit_span(X) if self.method == "reconstruction" else self._fit_neighbors(X)
        self.train_scores_ = -strangeness
        if self.contamination == "auto":
            first, third = np.percentile(strangeness, [25, 75])
            self.offset_ = -float(third + _FENCE * (third - first))
        else:
            self.offset_ = float(np.percentile(self.train_scores_, 100 * float(self.contamination)))
        return self

    @offered_if(_for_training_objects)
    @all_at_once
    def fit_predict(self, X: Any, y: Any = None) -> npt.NDArray[np.int64]:
        """Fit to objects and return +1 for each inlier among them and -1 for each outlier, shape (n,)."""
        return _signs(self.fit(X).train_scores_ - self.offset_)

    @offered_if(_for_new_objects)
    @lazily
    def score_samples(self, X: Any) -> Floats:
        """Return a score for each new object, shape (m,): the lower it is, the stranger the object (see `method`)."""
        return -self._strangeness(X)[0]

    @offered_if(_for_new_objects)
    @lazily
    def decision_function(self, X: Any) -> Floats:
        """Return ``score_samples(X) - offset_``, shape (m,): negative for outliers."""
        return -self._strangeness(X)[0] - self.offset_

    @offered_if(_for_new_objects)
    @lazily
    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """Return +1 for each inlier among new objects and -1 for each outlier, shape (m,)."""
        return _signs(-self._strangeness(X)[0] - self.offset_)

    @offered_if(_with_p_values)
    @lazily
    def p_values(self, X: Any) -> Floats:
        """Return the p-values of new objects, in (0, 1], shape (m,): small for outliers.

        A p-value is roughly the share of the training objects that are at least as strange as the new object. If the
        new object comes from the same source as the training objects, then for each number a, the p-value is at most a
        with a probability of at most a. The notes of the class give the formula and the conditions.
        """
        strangeness, distances, indices = self._strangeness(X)
        m = len(self._calibration)
        counts = m - np.searchsorted(np.sort(self._calibration), strangeness)
        if self.nystroem_ is None:
            own = strangeness[:, None]
            falls = (distances < own) & (self._calibration[indices] >= own) & (self._closer[indices] < own)
            counts -= falls.sum(axis=1)
        return (1.0 + counts) / (1.0 + m)

    @offered_if(_by_neighbors)
    def kneighbors(self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True) -> Any:
        """Return the distances and indices of the nearest training objects, nearest first, both (m, n_neighbors).

        `X` holds m objects; by default, it holds the training objects, and no object is then its own neighbour. The
        default of `n_neighbors` is the number used by `fit`, `n_neighbors_`. If `return_distance` is False, only the
        indices are returned. A detector with ``method="reconstruction"`` has no `kneighbors`.
        """
        check_fitted(self)
        return super().kneighbors(X, self.n_neighbors_ if n_neighbors is None else n_neighbors, return_distance)

    def _check(self) -> None:
        check_choice(self.method, "method", ("neighbors", "density", "reconstruction"))
        share = self.contamination
        number = isinstance(share, Real) and not isinstance(share, bool) and 0 < share <= 0.5
        if not number and not (isinstance(share, str) and share == "auto"):
            raise BadParameter("contamination", "'auto' or a number in (0, 0.5]", repr(share))

    def _fit_neighbors(self, X: Any) -> Floats:
        refuse_lazy(
            X, f"method={self.method!r} keeps all objects in memory; set method='reconstruction', or fit to a sample"
        )
        self._fit_objects(X)
        n = _at_least(self.objects_, 2)
        k = self.n_neighbors_ = int(at_most(self.n_neighbors, n - 1, "n_neighbors", "other training objects"))
        distances, indices = self._nearest(self.objects_, k, without_self=True)
        distances = distances.astype(np.float64)
        self._calibration = distances[:, -1]
        self._closer = distances[:, -2] if k > 1 else np.zeros(len(distances))
        self.nystroem_ = None
        self._density: Floats = np.zeros(len(distances))
        if self.method == "neighbors":
            return self._calibration
        self._density = self._density_at(distances, indices)
        return self._density[indices].mean(axis=1) / self._density

    def _fit_span(self, X: Any) -> Floats:
        check_kernel(self.similarity)
        n = _at_least(X, 2)
        s = min(check_positive_int(self.n_components, "n_components"), n // 2)
        self.nystroem_ = Nystroem(self.similarity, s, random_state=self.random_state).fit(X)
        self.distance_, self.objects_, self.n_samples_fit_ = self.nystroem_.kernel_, self.nystroem_.landmarks_, s
        check_direction(self.distance_, True, self.objects_, "similarity")
        self._squared_norms, self.n_neighbors_ = None, 0
        strangeness = self._from_span(read_objects(self, self.distance_, X, reset=True))
        landmarks = self.nystroem_.landmark_indices_
        self._calibration = np.delete(strangeness, landmarks)
        strangeness[landmarks] = _from_span_of_others(evaluate(self.distance_, self.objects_, self.objects_))
        self._closer = self._density = np.zeros(n)
        return strangeness

    def _strangeness(self, X: Any) -> tuple[Floats, Any, Any]:
        """Return the strangeness of new objects, and distances and indices of their neighbours (or None, None)."""
        check_fitted(self, "offset_")
        if self.nystroem_ is not None:
            return self._from_span(read_objects(self, self.distance_, X, reset=False)), None, None
        objects = self._read(self.distance_, X, reset=False)
        distances, indices = self._nearest(objects, self.n_neighbors_, without_self=False)
        distances = distances.astype(np.float64)
        if self.method_ == "density":
            return self._density[indices].mean(axis=1) / self._density_at(distances, indices), distances, indices
        return distances[:, -1], distances, indices

    def _density_at(self, distances: Floats, indices: Any) -> Floats:
        """Return the densities at objects from the distances and indices of their neighbours."""
        reached = np.maximum(distances, self._calibration[indices])
        return 1.0 / (reached.mean(axis=1) + _LEAST_DISTANCE)

    def _from_span(self, objects: Any) -> Floats:
        """Return the squared distances of objects, in the layout of the kernel, from the span of the landmarks."""
        if isinstance(objects, Distributed):
            return np.concatenate([*objects.map(_far_from_span, self)])
        Z = self.nystroem_._embed(objects).astype(np.float64)
        return np.maximum(diagonal(self.distance_, objects) - np.square(Z).sum(axis=1), 0.0)


def _at_least(X: Any, least: int) -> int:
    """Return the number of objects; raise if there are fewer than `least`."""
    n = at_least_one(X)
    if n < least:
        raise BadValue(None, f"holds {n} object (n_samples = {n})", f"at least {least}", "give objects to compare with")
    return n


def _far_from_span(part: Any, start: int, detector: OutlierDetector) -> Floats:
    return detector._from_span(part)


def _signs(decision: Floats) -> npt.NDArray[np.int64]:
    return np.where(decision < 0, -1, 1).astype(np.int64)


def _from_span_of_others(H: npt.NDArray) -> Floats:
    """Return the squared distance of each landmark from the span of the others; `H` is their kernel matrix."""
    values, vectors = np.linalg.eigh(H.astype(np.float64))
    values = np.maximum(values, 0.0)
    small = _RELATIVE * max(float(values.max()), np.finfo(np.float64).tiny)
    inverse = (np.square(vectors) / (values + small)).sum(axis=1)
    return np.maximum(1.0 / inverse - small, 0.0)
