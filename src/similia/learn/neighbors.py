r"""Exact k nearest neighbours of objects, with any kernel or distance.

Distances to the n training objects are computed for blocks of objects; each block is one call of the distance, and
fits into ``similia.config(max_memory=...)``. Series have searches of their own (`similia.learn.series_neighbors`).
Under `similia.distances.DTW`, lower bounds rule most out before their distances are computed; under `ERP`, `MSM`, `TWE`
and `ADTW`, most comparisons end early.

For a kernel k, the distance is that of its feature vectors, sqrt(k(x, x) + k(y, y) - 2 k(x, y)).

Cost: m n distances for m objects; less with the distances of series named above. Memory: the training objects and a
block of distances.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin

from similia.core.config import row_blocks, track
from similia.core.estimators import all_at_once, check_fitted, detached
from similia.core.state import Sizes, array, count, labels, objects, optional, reads, state
from similia.core.validation import (
    BadPairValue,
    at_most,
    check_choice,
    check_positive_int,
    check_radius,
    check_vectors,
    is_table,
    part_from,
)
from similia.distances.from_function import FromFunction
from similia.learn.targets import checked_labels, checked_targets
from similia.objects import n_objects, take
from similia.objects.sequences import at_least_one
from similia.objects.tables import holds_numbers, is_frame
from similia.similarity import (
    ComparesObjects,
    Kernel,
    Pairwise,
    check_direction,
    decided,
    diagonal,
    distances_between,
    evaluate,
    read_objects,
    refuse_class,
    spelled_out,
    takes_sparse,
    warn_of_strangers,
)
from similia.sources.dask import ScoresParts, lazily, refuse_lazy

Floats = npt.NDArray[np.floating]
Index = npt.NDArray[np.int64]

_TIE = 1e-12  # shares of votes that differ by less count as equal
_MOST_MINIMA = 8  # up to this many neighbours, one search for the minimum per neighbour is faster than a sort


def _state_fits(state: dict[str, Any], sizes: Sizes) -> bool:
    codes = state.get("_codes", np.zeros(1))
    known = 0 <= codes.min() <= codes.max() < sizes.get("c", 1)
    return bool(known) and reads(state["distance_"], state["objects_"])


@state(
    fits=_state_fits, distance="kernel", distance_="kernel", objects_=objects("n"),
    n_samples_fit_=count("n", least=1), _squared_norms=optional(array("f8", "n")),
)  # fmt: skip
class _KNeighbors(ComparesObjects, BaseEstimator):
    """Base of the searches: stores the training objects and finds the nearest."""

    _by = "distance"

    def __init__(self, distance: Any, n_neighbors: int = 1, weights: str = "uniform") -> None:
        self.distance = distance
        self.n_neighbors = n_neighbors
        self.weights = weights

    def _fit_objects(self, X: Any) -> None:
        """Check the parameters; store the distance, and the training objects in the layout that the distance uses."""
        refuse_lazy(X, "fit keeps all objects in memory; take SimilaritySearch or D2KE")
        given = getattr(self, self._by)
        refuse_class(given, self._by)
        if not callable(given):
            hint = spelled_out(given, "kernels", "distances") or "; see similia.distances and similia.kernels"
            raise TypeError(
                f"{self._by} must be a distance or kernel, called as d(X, Y) -> (n, m), got {given!r}{hint}"
            )
        check_positive_int(self.n_neighbors, "n_neighbors")
        check_choice(getattr(self, "weights", "uniform"), "weights", ("uniform", "distance"))
        distance = detached(decided(given, X))
        objects = self._read(distance, X, reset=True)
        n = at_least_one(objects)
        is_kernel = isinstance(distance, Kernel)
        compare: Any = evaluate if is_kernel else distances_between
        compare(distance, take(objects, [0]))  # raises now if the objects cannot be compared
        check_direction(distance, is_kernel, objects, self._by)
        self.distance_, self.objects_, self.n_samples_fit_ = distance, objects, n
        self._squared_norms = diagonal(distance, objects) if is_kernel else None

    def kneighbors(self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True) -> Any:
        """Return the distances and indices of the nearest training objects, nearest first, both (m, n_neighbors).

        Of equally near training objects, the one with the smaller index comes first.

        Parameters
        ----------
        X : sequence of m objects, optional
            By default the training objects; then no object is its own neighbour.
        n_neighbors : int, optional
            Number of neighbours of each object. By default, the parameter `n_neighbors` of the estimator or, if fewer
            objects can be neighbours, their number.
        return_distance : bool, default=True
            If False, return only the indices.
        """
        check_fitted(self)
        most = self.n_samples_fit_ - (X is None)
        if most == 0:
            raise ValueError("the only training object has no neighbours; give X, or fit to more objects")
        k = check_positive_int(min(self.n_neighbors, most) if n_neighbors is None else n_neighbors, "n_neighbors")
        if k > most:
            raise ValueError(f"n_neighbors={k} is more than the {most} training objects to choose from; lower it")
        objects = self.objects_ if X is None else self._read(self.distance_, X, reset=False)
        at_least_one(objects)
        distances, indices = self._nearest(objects, k, without_self=X is None)
        return (distances, indices) if return_distance else indices

    def _read(self, distance: Any, X: Any, *, reset: bool) -> Any:
        """Return `X` in the layout that the distance uses; raise if `X` is a table with NaN or infinity."""
        objects = read_objects(self, distance, X, reset=reset)
        if not is_table(objects) or (hasattr(objects, "tocsr") and takes_sparse(distance)):
            return objects
        if is_frame(objects) and not holds_numbers(objects):
            return objects
        rows = check_vectors(objects)
        by_row = isinstance(distance, Pairwise) or (isinstance(distance, FromFunction) and not distance.pairwise)
        return objects if by_row and is_frame(objects) else rows

    def _nearest(self, X: Any, k: int, *, without_self: bool) -> tuple[Floats, Index]:
        from similia.learn.series_neighbors import search_for

        search = search_for(self.distance_, X, self.objects_)
        if search is not None:
            return search(self.distance_, X, self.objects_, k, without_self=without_self)
        m = n_objects(X)
        found = []
        alone: list[int] = []
        for rows in track(row_blocks(m, 3 * 8 * self.n_samples_fit_), "neighbours"):
            D = self._distances(X if len(rows) == m else take(X, rows), int(rows[0]), alone)
            if without_self:
                D[np.arange(len(D)), rows] = np.inf
            found.append(_smallest(D, k))
        if not without_self:
            warn_of_strangers(alone, m, "have similarity 0 to all training objects")
        distances, indices = zip(*found, strict=True)
        return np.concatenate(distances), np.concatenate(indices)

    def _distances(self, X: Any, start: int, alone: list[int]) -> Floats:
        """Return the distances of objects, numbered from `start`, to all training objects, as a new array (m, n).

        If a kernel with explicit features is 0 between an object and all training objects, its number is appended to
        `alone`.
        """
        names = "X[{}] and training object {}"
        if self._squared_norms is None:
            return np.array(distances_between(self.distance_, X, self.objects_, start, names))
        with part_from(start):
            K = evaluate(self.distance_, X, self.objects_).astype(np.float64)
            squares = diagonal(self.distance_, X)[:, None] + self._squared_norms - 2 * K
        if hasattr(self.distance_, "features"):
            alone.extend((np.flatnonzero(~K.any(axis=1)) + start).tolist())
        if not np.isfinite(squares).all():
            i, j = np.argwhere(~np.isfinite(squares))[0]
            raise BadPairValue("the kernel of", (int(i) + start, int(j)), " is not a finite number", names)
        return np.sqrt(np.maximum(squares, 0.0))

    def _weights(self, distances: Floats) -> npt.NDArray[np.float64]:
        """Return the weights of neighbours at the given distances; the weights in each row sum to 1."""
        weights = np.ones(distances.shape)
        if self.weights == "distance":
            nearest = distances[:, :1].astype(np.float64)
            # nearest / d, since 1 / d may overflow; if the nearest distance is 0, weights are 1 at 0 and 0 elsewhere
            weights = np.divide(nearest, distances, out=weights, where=distances > 0)
        return weights / weights.sum(axis=1, keepdims=True)


@state(classes_=labels("c"), _codes=array("i8", "n"))
class KNeighborsClassifier(ScoresParts, ClassifierMixin, _KNeighbors):
    r"""Classifier by the k nearest neighbours of strings, graphs, series, sets or vectors, with any distance or kernel.

    Parameters
    ----------
    distance : callable
        ``d(X, Y=None) -> (n, m)``: a distance of `similia.distances` or `similia.adapters`, such as ``FromFunction(f)``
        for a function f(x, y) of two objects, or your own function that returns all distances between two collections.
        A kernel of `similia.kernels`, or `similia.pairwise` of a function, also works; distances are then measured in
        the feature space of the kernel.
    n_neighbors : int, default=1
        Number of neighbours that vote. If there are fewer training objects, `fit` warns, and all of them vote.
    weights : {"uniform", "distance"}, default="uniform"
        Weight of the vote of a neighbour: 1 for "uniform", 1 / distance for "distance". With "distance", if some
        neighbours are at distance 0, only these vote.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Sorted labels.
    objects_ : collection of n objects
        The training objects, converted for the distance, for example to a `similia.objects.StringBatch`.
    distance_ : callable
        Copy of `distance` made by `fit`. A setting that depends on data, such as ``gamma="median"``, is replaced by the
        number computed from the training objects.
    n_samples_fit_ : int
        Number n of training objects.
    n_features_in_ : int
        Number of columns; exists only if the objects are rows of a table.

    Notes
    -----
    If two training objects are equally near, the earlier one counts as nearer. If two classes have equal votes, the
    first one in `classes_` is predicted. Results depend neither on ``similia.config(max_memory=...)`` nor on the number
    of threads.

    With `similia.distances.DTW`, this classifier corresponds to ``KNeighborsTimeSeriesClassifier`` of the libraries
    aeon and tslearn, for series of any lengths and numbers of channels. The distance of aeon is
    ``DTW(local="sqeuclidean")``, a sum of squares. The distance of tslearn is the square root of this sum,
    ``DTW(local="sqeuclidean", root=True)``. For many objects, use `similia.SimilaritySearch` or `similia.D2KE`.

    References
    ----------
    Cover & Hart, "Nearest neighbor pattern classification", IEEE Transactions on Information Theory 13, 1967.

    Examples
    --------
    >>> from similia.distances import Levenshtein
    >>> from similia.learn.neighbors import KNeighborsClassifier
    >>> model = KNeighborsClassifier(Levenshtein()).fit(["kitten", "sunday"], ["cat", "day"])
    >>> model.predict(["mitten", "monday"])
    array(['cat', 'day'], dtype='<U3')
    >>> model.kneighbors(["mitten"], return_distance=False)
    array([[0]])
    """

    @all_at_once
    def fit(self, X: Any, y: Any) -> Self:
        """Store n training objects and their labels."""
        self._fit_objects(X)
        at_most(self.n_neighbors, self.n_samples_fit_, "n_neighbors")
        self.classes_, codes = np.unique(checked_labels(y, self.n_samples_fit_), return_inverse=True)
        self._codes = codes.astype(np.int64)
        return self

    @lazily
    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the fraction of the weighted votes for each class, shape (m, n_classes)."""
        distances, indices = self.kneighbors(X)
        weights, shares = self._weights(distances), np.zeros((len(indices), len(self.classes_)))
        rows = np.arange(len(indices))
        for k in range(indices.shape[1]):
            shares[rows, self._codes[indices[:, k]]] += weights[:, k]
        return shares

    @lazily
    def predict(self, X: Any) -> npt.NDArray:
        """Return the label predicted for each object, shape (m,)."""
        shares = self.predict_proba(X)
        return self.classes_[(shares >= shares.max(axis=1, keepdims=True) - _TIE).argmax(axis=1)]


@state(targets_="targets")
class KNeighborsRegressor(MultiOutputMixin, ScoresParts, RegressorMixin, _KNeighbors):
    r"""Regressor that predicts the mean target of the k nearest neighbours, with any distance or kernel.

    Parameters
    ----------
    distance : callable
        As for `KNeighborsClassifier`.
    n_neighbors : int, default=1
        Number of neighbours whose targets are averaged. If there are fewer training objects, `fit` warns, and all
        targets are averaged.
    weights : {"uniform", "distance"}, default="uniform"
        Weight of the target of a neighbour in the mean: 1 for "uniform", 1 / distance for "distance". With "distance",
        if some neighbours are at distance 0, only their targets count.

    Attributes
    ----------
    targets_ : ndarray of float64, shape (n,) or (n, n_outputs)
        The training targets.
    objects_, distance_, n_samples_fit_, n_features_in_ : collection, callable, int, int
        As for `KNeighborsClassifier`.

    Notes
    -----
    If two training objects are equally near, the earlier one counts as nearer.

    Examples
    --------
    >>> from similia.distances import DTW
    >>> from similia.learn.neighbors import KNeighborsRegressor
    >>> model = KNeighborsRegressor(DTW(), n_neighbors=2).fit([[0, 1], [0, 0, 2], [9, 9]], [1.0, 2.0, 9.0])
    >>> model.predict([[0, 1, 2, 2]])
    array([1.5])
    """

    @all_at_once
    def fit(self, X: Any, y: Any) -> Self:
        """Store n training objects and their targets, shape (n,) or (n, n_outputs)."""
        self._fit_objects(X)
        at_most(self.n_neighbors, self.n_samples_fit_, "n_neighbors")
        self.targets_ = checked_targets(y, self.n_samples_fit_, "KNeighborsRegressor")
        return self

    @lazily
    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the target predicted for each object, shape (m,) or (m, n_outputs)."""
        distances, indices = self.kneighbors(X)
        weights, total = self._weights(distances), np.zeros((len(indices), *self.targets_.shape[1:]))
        for k in range(indices.shape[1]):
            total += (weights[:, k] * self.targets_[indices[:, k]].T).T
        return total


class NearestNeighbors(_KNeighbors):
    r"""Exact search for neighbours of strings, graphs, series, sets or vectors, with any distance or kernel.

    Parameters
    ----------
    distance : callable
        As for `KNeighborsClassifier`.
    n_neighbors : int, default=5
        Number of neighbours that `kneighbors` and `kneighbors_graph` return.

    Attributes
    ----------
    objects_, distance_, n_samples_fit_, n_features_in_ : collection, callable, int, int
        As for `KNeighborsClassifier`.

    Notes
    -----
    Each object is compared with all training objects, with two exceptions for series: under `similia.distances.DTW`,
    lower bounds of the distances first rule out most training objects; under `ERP`, `MSM`, `TWE` and `ADTW`, most
    comparisons end early. For many objects, use `similia.SimilaritySearch`, which compares each object with few others.
    For the graph of the neighbours within a large collection, use `similia.search.knn_graph`.

    Examples
    --------
    >>> import similia as sm
    >>> search = sm.NearestNeighbors(sm.distances.DTW(), n_neighbors=2).fit([[0, 1], [0, 0, 2], [9, 9]])
    >>> distances, indices = search.kneighbors([[0, 2, 2]])
    >>> distances, indices
    (array([[0., 2.]]), array([[1, 0]]))
    >>> search.radius_neighbors([[0, 2, 2]], radius=1.0, return_distance=False)[0]
    array([1])
    """

    def __init__(self, distance: Any, n_neighbors: int = 5) -> None:
        self.distance = distance
        self.n_neighbors = n_neighbors

    @all_at_once
    def fit(self, X: Any, y: Any = None) -> Self:
        """Store n training objects; `y` is ignored."""
        self._fit_objects(X)
        return self

    def kneighbors_graph(self, X: Any = None, n_neighbors: int | None = None, mode: str = "connectivity") -> Any:
        """Return the neighbours as a sparse matrix (m, n): entry (i, j) is stored if j is a neighbour of i.

        Parameters
        ----------
        X, n_neighbors
            As in `kneighbors`.
        mode : {"connectivity", "distance"}, default="connectivity"
            Value of the stored entries: 1 ("connectivity"), or the distance ("distance").
        """
        from scipy.sparse import csr_matrix

        check_choice(mode, "mode", ("connectivity", "distance"))
        distances, indices = self.kneighbors(X, n_neighbors)
        values = np.ones(distances.shape) if mode == "connectivity" else distances
        starts = np.arange(0, indices.size + 1, indices.shape[1])
        return csr_matrix((values.ravel(), indices.ravel(), starts), shape=(len(indices), self.n_samples_fit_))

    def radius_neighbors(self, X: Any = None, radius: float = 1.0, return_distance: bool = True) -> Any:
        """Return the training objects at a distance of at most `radius` from each object, nearest first.

        Parameters
        ----------
        X : sequence of m objects, optional
            By default the training objects; then no object is its own neighbour.
        radius : float, default=1.0
            Largest distance, >= 0.
        return_distance : bool, default=True
            If False, return only the indices.

        Returns
        -------
        distances : ndarray of m arrays of float
            Ascending. Only if `return_distance`.
        indices : ndarray of m arrays of int64
            Of equally near training objects, the one with the smaller index comes first.
        """
        check_fitted(self)
        radius = check_radius(radius)
        objects = self.objects_ if X is None else self._read(self.distance_, X, reset=False)
        m = at_least_one(objects)
        distances, indices, alone = np.empty(m, object), np.empty(m, object), list[int]()
        for rows in track(row_blocks(m, 3 * 8 * self.n_samples_fit_), "neighbours"):
            D = self._distances(objects if len(rows) == m else take(objects, rows), int(rows[0]), alone)
            for i, row in zip(rows.tolist(), D, strict=True):
                inside = np.flatnonzero(row <= radius)
                if X is None:
                    inside = inside[inside != i]
                indices[i] = inside[np.argsort(row[inside], kind="stable")]
                distances[i] = row[indices[i]]
        if X is not None:
            warn_of_strangers(alone, m, "have similarity 0 to all training objects")
        return (distances, indices) if return_distance else indices


def _smallest(D: Floats, k: int) -> tuple[Floats, Index]:
    """Return the k smallest entries of each row, ascending, and their columns; equal entries in order of columns."""
    rows = np.arange(len(D))
    if k > _MOST_MINIMA:
        order = np.argsort(D, axis=1, kind="stable")[:, :k].astype(np.int64)
        return np.take_along_axis(D, order, axis=1), order
    values, order = np.empty((len(D), k), D.dtype), np.empty((len(D), k), np.int64)
    for i in range(k):
        order[:, i] = D.argmin(axis=1)
        values[:, i] = D[rows, order[:, i]]
        D[rows, order[:, i]] = np.inf
    return values, order
