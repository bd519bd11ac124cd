r"""Maps of objects: two coordinates for each object, so that similar objects lie close together.

For a kernel, `Nystroem` turns objects into vectors z, and the map is their first two principal components: kernel PCA
in the space that the landmarks span. Let m be the mean of the vectors, and a_1 and a_2 the eigenvectors of their
covariance matrix for its two largest eigenvalues. Then an object lies at

.. math:: (a_1 \cdot (z - m),\; a_2 \cdot (z - m)).

For a distance, the map is landmark multidimensional scaling: the two coordinates of `PseudoEuclidean` with the largest
positive eigenvalues. The largest entry of each axis is positive, so maps do not flip between runs.

With ``method="neighbours"``, this map is only the start: UMAP moves objects towards their nearest neighbours in the
graph of `knn_graph`, and away from others. A new object lies among its nearest training objects x_j, which have the
distances d_j and the places p_j, at the mean :math:`\sum_j w_j p_j / \sum_j w_j` with :math:`w_j = d_j^{-2}` (Shepard's
interpolation), or at p_j if d_j = 0.

What a map leaves out is measured on a sample of m objects i, with their true distances to all n objects. Let r(i, j)
be the rank of object j among the others by its true distance to i, and U_k(i) the objects that are among the k nearest
to i on the map, but not among the k truly nearest. Then

.. math:: T(k) = 1 - \frac{2}{m k (2n - 3k - 1)} \sum_i \sum_{j \in U_k(i)} (r(i, j) - k)

is the trustworthiness: 1 if all neighbours on the map are true neighbours. Continuity is the same with the roles of map
and true distance exchanged: 1 if all true neighbours are neighbours on the map.

Cost: with s landmarks, s^2 similarities to fit, s for each object, and at most 500 n (100 n from 10,000 objects) for
the two measures. With ``method="neighbours"``, also the cost of `knn_graph`, and n similarities to place a new object.

Papers: those of `SimilarityMap`; McInnes, Healy & Melville, "UMAP", 2018, arXiv:1802.03426; Shepard, "A two-dimensional
interpolation function for irregularly-spaced data", 1968.
"""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn import config_context

from similia.core.config import one_blas_thread, rows_per_block, settings, track
from similia.core.estimators import Transformer, all_at_once, check_fitted
from similia.core.products import row_product
from similia.core.state import Sizes, array, count, made, objects, one_of, optional, reads, state
from similia.core.validation import BadParameter, RandomState, check_positive_int, generator, spawn_seeds
from similia.embeddings.landmarks import with_signs
from similia.embeddings.nystroem import Nystroem
from similia.embeddings.pseudo_euclidean import PseudoEuclidean
from similia.objects import n_objects, take
from similia.objects.sequences import at_least_one
from similia.search.neighbour_graph import knn_graph
from similia.similarity import ComparesObjects, Metric, check_direction, metric_from, read_objects
from similia.sources.dask import Distributed, from_parts, lazily, refuse_lazy

Floats = npt.NDArray[np.float64]
_BLOCK = 10_000  # objects whose vectors are in memory at a time; the axes are fitted to as many
_FEWEST = 4  # objects that UMAP can place
_MEASURED, _MOST_MEASURED = 100, 500  # objects whose neighbourhoods are measured, at least and at most
_PAIRS_MEASURED, _NEAR = 10**6, 10  # distances for it, if this leaves enough objects, and neighbours that count


def _state_fits(state: dict[str, Any], sizes: Sizes) -> bool:
    """Return whether the objects of a saved map are there if its method needs them, and the similarity reads them."""
    if (state["objects_"] is None) != (state["method"] == "landmarks"):
        return False
    return state["objects_"] is None or reads(state["similarity"], state["objects_"])


def _is_measure(value: Any, sizes: Sizes) -> bool:
    """Return whether a value is a number from 0 to 1, or NaN, as of a map of one or two objects."""
    return isinstance(value, Real) and (np.isnan(float(value)) or 0 <= float(value) <= 1)


@state(
    fits=_state_fits, similarity="comparison", method=one_of("landmarks", "neighbours"), n_neighbors=count(least=1),
    objects_=optional(objects("n")), features_=made("Nystroem", "PseudoEuclidean"),
    axes_=array("f8", "r", 2), centre_=array("f8", 2), embedding_=array("f8", "n", 2), explained_=array("f8", 2),
    trustworthiness_=_is_measure, continuity_=_is_measure, _n_features_out=count(),
)  # fmt: skip
class SimilarityMap(ComparesObjects, Transformer):
    """Place objects on a map with two coordinates, so that similar objects lie close together.

    Parameters
    ----------
    similarity : kernel or distance of similia
        Wrap a function of your own that compares two objects: a distance in `similia.distances.FromFunction`, a
        similarity in `similia.pairwise`.
    method : {"landmarks", "neighbours"}, default="landmarks"
        How objects are placed. "landmarks" compares all objects with only a few of them, the landmarks, so its cost is
        linear in the number of objects. For a kernel, the map is PCA of the vectors of `similia.Nystroem` (approximate
        kernel PCA); for a distance, it is landmark multidimensional scaling. "neighbours" starts from the landmark map
        and refines it with UMAP on the graph of nearest neighbours (`similia.search.knn_graph`); this method needs
        umap-learn (``pip install 'similia[maps]'``).
    n_landmarks : int, default=300
        Number of landmarks: training objects, drawn at random, with which all objects are compared. If there are fewer
        training objects, all of them are landmarks.
    random_state : int, numpy Generator or None, default=None
        Source of randomness of the landmarks, of the objects on which `fit` measures the map, and of UMAP.
    n_neighbors : int, default=15
        Number of neighbours of each object in the graph that UMAP uses, if method is "neighbours".

    Attributes
    ----------
    embedding_ : ndarray of float64, shape (n, 2)
        Coordinates of the training objects.
    trustworthiness_ : float
        Extent to which neighbours on the map are true neighbours: 1 if all of them are, about 0.5 for a random map
        (more if many distances are equal, because equally distant objects are equally good neighbours). It is the mean
        over at most 500 training objects (100 if there are 10,000 or more), each compared with all others.
        The 10 nearest count as neighbours, or fewer if there are fewer than 21 objects. NaN for one or two objects,
        which have no neighbours to confuse.
    continuity_ : float
        Extent to which true neighbours are neighbours on the map: 1 if all of them are, about 0.5 for a random map
        (more if many distances are equal). It is measured on the same objects as `trustworthiness_`, and is NaN where
        that is.
    explained_ : ndarray of float64, shape (2,)
        For a kernel, the share of the variance of the vectors that each axis of the landmark map explains. For a
        distance, each axis belongs to one of the two largest eigenvalues of multidimensional scaling, and its share is
        this eigenvalue divided by the sum of the absolute values of all eigenvalues (``features_.eigenvalues_``).
    features_ : Nystroem or PseudoEuclidean
        Fitted transformer of objects to vectors.
    axes_ : ndarray of float64, shape (n_vector_columns, 2)
        The two directions of the landmark map: an object x lies at ``features_.transform([x]) @ axes_ - centre_``.
    centre_ : ndarray of float64, shape (2,)
        Offset that centres the landmark map; 0 for a distance.
    objects_ : collection of n objects, or None
        The training objects, if method is "neighbours".

    Raises
    ------
    ValueError
        In `fit`, if a parameter is invalid; if `similarity` is a plain function; or if all values of `similarity` among
        the landmarks are 0.
    ImportError
        In `fit`, if method is "neighbours" and umap-learn is not installed.

    Notes
    -----
    `transform` places new objects. With "neighbours", a new object lies at the weighted mean of the places of its
    nearest training objects; the weight of a training object at distance d is 1 / d^2. (If d is 0 for some of them,
    only these count, with equal weights.) The coordinates of a new object are the same, to the last bit, whichever
    other objects are transformed in the same call. On one machine, the same seed gives the same UMAP layout. Within
    ``similia.config(progress=True)``, UMAP shows its own progress bar. A kernel k defines the distance
    ``sqrt(k(x, x) + k(y, y) - 2 k(x, y))``.

    References
    ----------
    Schölkopf, Smola & Müller, "Nonlinear component analysis as a kernel eigenvalue problem", Neural Computation 10,
    1998. de Silva & Tenenbaum, "Sparse multidimensional scaling using landmark points", 2004. Venna & Kaski,
    "Neighborhood preservation in nonlinear projection methods", ICANN 2001.

    Examples
    --------
    >>> import similia as sm
    >>> X, y = sm.datasets.load_promoters(return_X_y=True)
    >>> map = sm.SimilarityMap(sm.kernels.GappyKmers(k=4, gaps=1, normalize=True), random_state=0).fit(X)
    >>> map.embedding_.shape, map.transform(["acgtacgt"]).shape
    ((106, 2), (1, 2))
    >>> 0.5 < map.trustworthiness_ < 1
    True
    """

    _by = "similarity"
    _dtypes = ("float64",)

    def __init__(
        self,
        similarity: Any,
        method: str = "landmarks",
        n_landmarks: int = 300,
        random_state: RandomState = None,
        *,
        n_neighbors: int = 15,
    ) -> None:
        self.similarity = similarity
        self.method = method
        self.n_landmarks = n_landmarks
        self.random_state = random_state
        self.n_neighbors = n_neighbors

    @all_at_once
    @from_parts
    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose landmarks, learn the axes of the map, and place the n objects of `X` on it.

        `y` is ignored, but must have length n if it is given.

        If method is "landmarks", `X` may be a Dask collection: the workers compare objects with the landmarks.
        """
        self._fit(X, y)
        return self

    @all_at_once
    @from_parts
    def fit_transform(self, X: Any, y: Any = None) -> Floats:
        """Fit the map to the n objects of `X` and return their coordinates, shape (n, 2)."""
        self._fit(X, y)
        return self.embedding_.copy()

    @lazily
    def transform(self, X: Any) -> Floats:
        """Return the coordinates of n objects on the map, shape (n, 2)."""
        check_fitted(self)
        X = read_objects(self, self._metric().function, X, reset=False)
        return self._place(X) if self.objects_ is None else self._place_among(X)

    def _fit(self, X: Any, y: Any) -> None:
        metric = metric_from(self.similarity, "similarity")
        if self.method not in ("landmarks", "neighbours"):
            raise BadParameter("method", "'landmarks' or 'neighbours'", repr(self.method))
        umap = _umap() if self.method == "neighbours" else None
        k = check_positive_int(self.n_neighbors, "n_neighbors")
        s = check_positive_int(self.n_landmarks, "n_landmarks")
        if umap is not None:
            refuse_lazy(
                X, "method='neighbours' needs its objects in memory; fit to a sample, or set method='landmarks'"
            )
        X = read_objects(self, self.similarity, X, reset=True)
        n = at_least_one(X)
        check_direction(metric.function, metric.is_kernel, X, "similarity")
        if y is not None and n_objects(y) != n:
            raise ValueError(f"y has {n_objects(y)} labels for {n} objects; give one label per object")
        if umap is not None and n < _FEWEST:
            raise ValueError(f"method='neighbours' needs {_FEWEST} objects, got {n} (n_samples = {n})")
        seeds = spawn_seeds(self.random_state, 5)
        seen = _drawn(n, _BLOCK, seeds[1])
        if metric.is_kernel:
            self.features_ = Nystroem(self.similarity, min(s, n), random_state=seeds[0]).fit(X)
            self._principal_axes(self._vectors(take(X, seen)))
        else:
            self.features_ = PseudoEuclidean(self.similarity, None, min(s, n), random_state=seeds[0]).fit(X)
            self._scaling_axes(self.features_.eigenvalues_)
        metric = self._metric()
        self._n_features_out = 2
        self.embedding_, self.objects_ = self._place(X), None
        if umap is not None:
            graph = knn_graph(X, metric.function, min(k, n - 2), symmetric=False, random_state=seeds[3])
            self.embedding_, self.objects_ = _laid_out(umap, graph, self.embedding_, seeds[4]), X
        rows = _drawn(n, max(_MEASURED, min(_MOST_MEASURED, _PAIRS_MEASURED // n)), seeds[2])
        self.trustworthiness_, self.continuity_ = self._kept_at(rows, metric, X)

    def _kept_at(self, rows: npt.NDArray[np.int64], metric: Metric, X: Any) -> tuple[float, float]:
        norms, total = metric.norms(X), np.zeros(2)
        step = rows_per_block(32 * len(self.embedding_), at_most=len(rows))
        for start in range(0, len(rows), step):
            block = rows[start : start + step]
            D = metric.distances(take(X, block), X, norms).astype(np.float64)
            total += len(block) * np.array(neighbourhoods_kept(D, self.embedding_, _NEAR, block))
        return float(total[0] / len(rows)), float(total[1] / len(rows))

    def _principal_axes(self, vectors: npt.NDArray[np.floating]) -> None:
        Z = vectors.astype(np.float64)
        mean = Z.mean(axis=0)
        Z -= mean
        # A fixed order of sums: BLAS would change the last bits of the axes with the processor.
        covariance = row_product(np.ascontiguousarray(Z.T), Z) / len(Z)
        with one_blas_thread():
            values, Q = np.linalg.eigh((covariance + covariance.T) / 2)
        values, Q = np.maximum(values[::-1], 0.0), Q[:, ::-1]
        self._set_axes(with_signs(Q[:, :2]), values[:2] / (values.sum() or 1.0))
        self.centre_ = row_product(mean[None], self.axes_)[0]

    def _scaling_axes(self, eigenvalues: npt.NDArray[np.floating]) -> None:
        chosen = np.flatnonzero(eigenvalues > 0)[:2]  # the eigenvalues are sorted by size
        axes = np.eye(len(eigenvalues))[:, chosen]
        self._set_axes(axes, eigenvalues[chosen] / np.abs(eigenvalues).sum())
        self.centre_ = np.zeros(2)

    def _set_axes(self, axes: Floats, shares: Floats) -> None:
        """Set `axes_` and `explained_`; objects on a line have no second axis, and their second coordinate is 0."""
        missing = 2 - axes.shape[1]
        self.axes_ = np.ascontiguousarray(np.pad(axes, ((0, 0), (0, missing))))
        self.explained_ = np.pad(shares, (0, missing))

    def _vectors(self, X: Any) -> npt.NDArray[np.floating]:
        """Return the vectors of objects as an array, whatever output scikit-learn is set to."""
        with config_context(transform_output="default"):
            found: npt.NDArray[np.floating] = self.features_.transform(X)
        return found

    def _place(self, X: Any) -> Floats:
        if isinstance(X, Distributed):
            return np.concatenate([*X.map(_placed, self)])
        n = at_least_one(X)
        out = np.empty((n, 2))
        for start in track(range(0, n, _BLOCK), "SimilarityMap", -(-n // _BLOCK)):
            stop = min(n, start + _BLOCK)
            part = X if stop - start == n else take(X, np.arange(start, stop))
            out[start:stop] = row_product(self._vectors(part), self.axes_) - self.centre_
        return out

    def _place_among(self, X: Any) -> Floats:
        """Return the coordinates of objects among their nearest training objects, as the mean with weights 1 / d^2."""
        metric, n = self._metric(), at_least_one(X)
        norms, k = metric.norms(self.objects_), min(self.n_neighbors, len(self.embedding_))
        out, step = np.empty((n, 2)), rows_per_block(32 * len(self.embedding_), at_most=_BLOCK)
        for start in track(range(0, n, step), "SimilarityMap", -(-n // step)):
            rows = np.arange(start, min(n, start + step))
            D = metric.distances(take(X, rows), self.objects_, norms).astype(np.float64)
            for i, row in zip(rows, D, strict=True):
                near = np.flatnonzero(row <= np.partition(row, k - 1)[k - 1])  # whatever order partition leaves
                near = near[np.argsort(row[near], kind="stable")[:k]]
                out[i] = interpolated(row[near], self.embedding_[near])
        return out

    def _metric(self) -> Metric:
        """Return the similarity as it was in `fit`, with the settings that `fit` decided."""
        is_kernel = isinstance(self.features_, Nystroem)
        return Metric(self.features_.kernel_ if is_kernel else self.features_.distance_, is_kernel)

    def _example(self) -> Any:
        return take(self.features_.landmarks_, [0])


def _placed(part: Any, start: int, fitted: SimilarityMap) -> Floats:
    return fitted._place(part)


def interpolated(distances: Floats, places: Floats) -> Floats:
    """Return the mean of `places` (k, 2) with weights 1 / d^2 or, if any are at distance 0, the mean of those."""
    least = distances.min()
    weights = (distances == 0.0) * 1.0 if least == 0.0 else np.square(least / distances)
    place, total = np.zeros(2), 0.0
    for weight, one in zip(weights, places, strict=True):  # in one order on all processors
        place, total = place + weight * one, total + weight
    return place / total


def neighbourhoods_kept(
    distances: npt.NDArray[np.floating], points: Floats, n_neighbors: int, rows: npt.NDArray[np.int64] | None = None
) -> tuple[float, float]:
    """Return the trustworthiness and the continuity of a map, or of the neighbourhoods of the objects `rows` on it.

    `distances` (m, n) are the true ones of these objects to all, and `points` (n, 2) the coordinates on the map. The
    rank of an object is 1 plus the number of objects that are nearer, so equally distant objects share a rank. Without
    ties, the trustworthiness is that of ``sklearn.manifold.trustworthiness``. With two objects or fewer, both values
    are NaN.
    """
    rows = np.arange(len(points)) if rows is None else rows
    gaps = points[rows][:, None, :] - points[None, :, :]
    on_map = np.sqrt(gaps[..., 0] ** 2 + gaps[..., 1] ** 2)
    k = min(n_neighbors, (len(points) - 1) // 2)
    if k < 1:
        return np.nan, np.nan
    return _kept(distances, on_map, rows, k), _kept(on_map, distances, rows, k)


def _kept(
    true: npt.NDArray[np.floating], found: npt.NDArray[np.floating], rows: npt.NDArray[np.int64], k: int
) -> float:
    """Return 1 minus the scaled sum of how far the k nearest by `found` are beyond rank k by `true`."""
    (m, n), excess = true.shape, 0
    for i, own in enumerate(rows):
        others = np.delete(np.arange(n), own)
        near = others[np.argsort(found[i, others], kind="stable")[:k]]
        ranks = 1 + np.searchsorted(np.sort(true[i, others]), true[i, near])
        excess += int(np.maximum(ranks - k, 0).sum())
    return 1.0 - 2.0 * excess / (m * k * (2 * n - 3 * k - 1))


def _umap() -> Any:
    try:
        from umap import UMAP
    except ImportError as error:
        raise ImportError(
            "SimilarityMap(method='neighbours') needs umap-learn; install it with: pip install 'similia[maps]'"
        ) from error
    return UMAP


def _laid_out(umap: Any, graph: Any, start: Floats, seed: int | None) -> Floats:
    """Return the layout of a graph of neighbours by UMAP, shape (n, 2), started from the places `start`."""
    n = len(start)
    near = np.column_stack([np.arange(n), graph.indices.reshape(n, -1)]).astype(
        np.int32
    )  # each object is its own first
    apart = np.column_stack([np.zeros(n), graph.data.reshape(n, -1)]).astype(np.float32)
    seed = int(generator(seed).integers(2**31))
    model = umap(
        n_neighbors=near.shape[1], precomputed_knn=(near, apart), init=start.astype(np.float32), random_state=seed,
        n_jobs=1, force_approximation_algorithm=True,
        tqdm_kwds={"desc": "UMAP", "disable": not settings().progress},
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"precomputed_knn\[2\]")  # `transform` does not use UMAP
        return np.asarray(model.fit_transform(start), dtype=np.float64)


def _drawn(n: int, most: int, seed: int | None) -> npt.NDArray[np.int64]:
    """Return the positions of all `n` objects, or of `most` of them, in ascending order."""
    return np.arange(n) if n <= most else np.sort(generator(seed).choice(n, most, replace=False))
