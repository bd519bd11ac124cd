r"""HDBSCAN of any objects with a kernel or distance: clusters are regions of high density, other objects are noise.

With m = `min_samples`, the core distance c(x) of an object x is its distance to the (m - 1)-th nearest other object.
The mutual reachability distance of x and y is max(c(x), c(y), d(x, y)). HDBSCAN cuts the minimum spanning tree of these
distances at all heights, and chooses the clusters that persist over the longest range of heights (Campello, Moulavi &
Sander, "Density-based clustering based on hierarchical density estimates", PAKDD 2013).

`HDBSCAN` gives the graph of `similia.search.knn_graph`, which is connected, to HDBSCAN of scikit-learn. The tree then
consists of distances between neighbours, and of the distances that join the components of the graph.

Cost: that of `knn_graph`, at most `_COMPARED` more comparisons for each object, which find the medoids, and n
comparisons for each new object. Memory: the objects, and about 4 k numbers for each object with k neighbours.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn import cluster
from sklearn.base import BaseEstimator, ClusterMixin

from similia.core.config import check_memory, rows_per_block, track
from similia.core.estimators import all_at_once, check_fitted
from similia.core.state import Sizes, array, made, state
from similia.core.validation import (
    BadParameter,
    BadValue,
    at_most,
    check_choice,
    check_positive_int,
    generator,
    spawn_seeds,
)
from similia.embeddings.d2ke import D2KE, Representatives
from similia.embeddings.nystroem import Nystroem
from similia.learn.neighbors import NearestNeighbors
from similia.objects import n_objects, take
from similia.objects.identical import identical
from similia.objects.sequences import Batch, at_least_one, concatenate
from similia.search.neighbour_graph import knn_graph
from similia.similarity import ComparesObjects, Kernel, Metric, check_direction, metric_from, read_objects
from similia.sources.dask import lazily, refuse_lazy

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
_NEIGHBOURS = 15  # least number of neighbours in the graph, if it is not given
_COMPARED = 256  # members of a cluster with which each member is compared to find the medoid
_ENTRY = 24  # bytes for an entry of the graph
_ROUNDING, _TIE = 1e-6, 1e-9  # shares by which radii are widened, and below which sums of distances count as equal
_LANDMARKS = 300  # of the embedding in which clusters have means


class Means(NamedTuple):
    """Clusters in an embedding, with the names that the attributes of `similia.KernelKMeans` have."""

    embedding_: Any
    cluster_centers_: Floats  # mean vector of the members of each cluster
    counts_: Index
    n_clusters_: int


def _state_fits(state: dict[str, Any], sizes: Sizes) -> bool:
    labels, medoids, k = state["labels_"], state["medoid_indices_"], sizes["k"]
    known = len(labels) == getattr(state["neighbors_"], "n_samples_fit_", 0) and -1 <= labels.min() <= labels.max() < k
    within = ((medoids >= 0) & (medoids < len(labels))).all()
    return bool(known and within and (labels[medoids] == np.arange(k)).all())


@state(
    fits=_state_fits, similarity="comparison", labels_=array("i8", "n"), probabilities_=array("f8", "n"),
    medoid_indices_=array("i8", "k"), radii_=array("f8", "k"), neighbors_=made("NearestNeighbors"),
)  # fmt: skip
class HDBSCAN(ComparesObjects, ClusterMixin, BaseEstimator):
    """Clusters of high density among strings, graphs, series, sets or vectors, with any kernel or distance.

    Objects in sparse regions are noise. The number of clusters is not a parameter. `similia.search.knn_graph` finds
    the nearest neighbours of all objects, and `sklearn.cluster.HDBSCAN` clusters the graph of these neighbours.

    Parameters
    ----------
    similarity : kernel or distance of similia
        A kernel k defines the distance ``sqrt(k(x, x) + k(y, y) - 2 k(x, y))``. Wrap a function of your own that
        compares two objects: a distance in `similia.distances.FromFunction`, a similarity in `similia.pairwise`.
    min_cluster_size : int, default=5
        Least number of objects in a cluster, at least 2.
    min_samples : int, optional
        Number m that defines density: the density at an object is high if its (m - 1)-th nearest other object is near.
        (As in scikit-learn, the object itself is the first of the m.) Larger numbers give more noise; 1 and 2 give the
        same clusters. The default is `min_cluster_size`.
    n_neighbors : int, optional
        Number of neighbours of each object in the graph, at least ``min_samples - 1``. With n - 1, the graph holds all
        pairs of n objects, and the clusters are the same as with the full matrix of distances. The default is the
        larger of 15 and ``2 * min_samples``, or n - 1 if that is less.
    max_cluster_size : int, optional
        Largest number of objects in a cluster, at least `min_cluster_size`. Requires ``cluster_selection_method="eom"``
        and ``allow_single_cluster=False``.
    cluster_selection_method : {"eom", "leaf"}, default="eom"
        HDBSCAN first builds a tree, in which large clusters of low density split into smaller clusters of higher
        density. "eom" (excess of mass) chooses the clusters that persist over the widest range of densities; "leaf"
        chooses the leaves of the tree, the smallest clusters.
    allow_single_cluster : bool, default=False
        Whether the result may be a single cluster. If False, all objects are noise if they form only one cluster.
    method : {"auto", "exact", "kmers", "bits"}, default="auto"
        How neighbours are found. "exact" compares all pairs of objects; "kmers" (for strings) and "bits" are faster but
        may miss neighbours; "auto" chooses by the number and kind of objects. See `similia.search.knn_graph`.
    random_state : int, numpy Generator or None, default=None
        Source of randomness of `knn_graph`, and of the sample of members with which the medoid of a large cluster is
        found (see `medoid_indices_`).

    Attributes
    ----------
    labels_ : ndarray of int64, shape (n,)
        Cluster of each training object, -1 for noise.
    probabilities_ : ndarray of float64, shape (n,)
        How firmly each training object belongs to its cluster: 1 for the densest members, 0 for noise.
    n_clusters_ : int
        Number of clusters; noise is not one of them.
    counts_ : ndarray of int64, shape (n_clusters,)
        Number of training objects in each cluster.
    medoid_indices_ : ndarray of int64, shape (n_clusters,)
        Position of the medoid of each cluster in the training objects: the member with the least sum of distances to
        all members or, in a cluster of more than 256 members, to 256 random members.
    medoids_ : collection of n_clusters objects
        The medoids, converted for the similarity, for example to a `similia.objects.StringBatch`.
    radii_ : ndarray of float64, shape (n_clusters,)
        For each cluster, the largest distance from a member to its (m - 1)-th nearest other object, where m is
        `min_samples` (if m is 1, to its nearest other object).
    neighbors_ : NearestNeighbors
        Fitted `similia.learn.NearestNeighbors` with which `predict` searches the training objects.
    similarity_ : callable
        Copy of `similarity` made by `fit`, in which settings that depend on the data, such as ``gamma="median"``, are
        replaced by numbers.
    n_features_in_ : int
        Number of columns; exists only if the objects are rows of a table.

    Raises
    ------
    TypeError
        In `fit`, if the objects are in a Dask collection.
    ValueError
        In `fit`, if there are fewer objects than `min_cluster_size` or `min_samples`; if a parameter is out of range;
        if `similarity` is a plain function; or if the graph with the given `n_neighbors` does not fit into
        ``similia.config(max_memory=...)``.

    Warns
    -----
    UserWarning
        If `n_neighbors` is larger than n - 1; `fit` then uses n - 1.

    Notes
    -----
    `predict` assigns a new object to the cluster of its nearest training object. It returns -1 if this training object
    is noise, or if the new object lies in a region that is sparser than all members of the cluster: its (m - 1)-th
    nearest training object, where m is `min_samples`, is farther than the cluster's entry in `radii_`. For a training
    object, `predict` returns its label in `labels_`, with one exception: if objects at distance 0 from each other have
    different labels, it returns the label of the first for all of them.

    HDBSCAN joins pairs of objects in the order of their mutual reachability distance. This is the largest of three
    numbers: the distance between the two objects, and the distance of each to its (m - 1)-th nearest other object. Many
    of these values are equal, and scikit-learn's labels may then depend on the order of the objects. Here, among pairs
    with equal values, the pairs with the smaller distance between the two objects come first. These distances may be
    equal, too; numbers of edits, for example, often are. The labels may then depend on the order of the objects and on
    the processor.

    The distance between equal objects is replaced by a millionth of the smallest positive distance. A collection in
    which all objects are equal is one cluster if `allow_single_cluster` is set, otherwise noise.

    If kernel values grow with the size of objects, set ``normalize=True`` in the kernel; otherwise objects are grouped
    by their sizes.

    References
    ----------
    Campello, Moulavi & Sander, "Density-based clustering based on hierarchical density estimates", PAKDD 2013.

    Examples
    --------
    >>> import similia as sm
    >>> words = ["kitten", "mitten", "bitten", "sunday", "monday", "sundae", "xylophone"]
    >>> model = sm.HDBSCAN(sm.distances.Levenshtein(), min_cluster_size=3).fit(words)
    >>> model.labels_
    array([ 0,  0,  0,  1,  1,  1, -1])
    >>> [words[i] for i in model.medoid_indices_]
    ['kitten', 'sunday']
    >>> model.predict(["fitten", "holiday", "quartz"])
    array([ 0, -1, -1])
    """

    _by = "similarity"

    def __init__(
        self,
        similarity: Any,
        min_cluster_size: int = 5,
        min_samples: int | None = None,
        *,
        n_neighbors: int | None = None,
        max_cluster_size: int | None = None,
        cluster_selection_method: str = "eom",
        allow_single_cluster: bool = False,
        method: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.similarity = similarity
        self.min_cluster_size = min_cluster_size
        self.min_samples = min_samples
        self.n_neighbors = n_neighbors
        self.max_cluster_size = max_cluster_size
        self.cluster_selection_method = cluster_selection_method
        self.allow_single_cluster = allow_single_cluster
        self.method = method
        self.random_state = random_state

    @property
    def similarity_(self) -> Any:
        return self.neighbors_.distance_

    @property
    def n_clusters_(self) -> int:
        return len(self.medoid_indices_)

    @property
    def counts_(self) -> Index:
        return np.bincount(self.labels_[self.labels_ >= 0], minlength=self.n_clusters_)

    @property
    def medoids_(self) -> Any:
        return take(self.neighbors_.objects_, self.medoid_indices_)

    @all_at_once
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the clusters of n objects; `y` is ignored."""
        metric, m = metric_from(self.similarity, "similarity"), self._check_parameters()
        refuse_lazy(
            X,
            "fit keeps all objects in memory; fit to a sample, or give the graph of similia.search.knn_graph with "
            "connected=True to HDBSCAN of scikit-learn",
        )
        X = read_objects(self, metric.function, X, reset=True)
        n = self._check_number(X, m)
        check_direction(metric.function, metric.is_kernel, X, "similarity")
        self.neighbors_ = NearestNeighbors(metric.function, max(1, m - 1)).fit(X)
        metric, X = self._metric(), self.neighbors_.objects_
        seeds = spawn_seeds(self.random_state, 2)
        graph = knn_graph(
            X, metric.function, self._neighbours_of(n, m), method=self.method, connected=True, random_state=seeds[0]
        )
        core = graph.data[graph.indptr[:-1] + max(0, m - 2)]  # rows are sorted by distance
        found = self._clustered(graph, core)
        self.labels_, self.probabilities_ = found.labels_.astype(np.int64), found.probabilities_.astype(np.float64)
        members = [np.flatnonzero(self.labels_ == c) for c in range(int(self.labels_.max()) + 1)]
        self.radii_ = np.array([core[rows].max() for rows in members])
        rng = generator(seeds[1])
        medoids = [_medoid(metric, X, rows, rng) for rows in track(members, "medoids", len(members))]
        self.medoid_indices_ = np.array(medoids, np.int64)
        return self

    @lazily
    def predict(self, X: Any) -> Index:
        """Return the cluster of each of n objects, -1 for noise, shape (n,)."""
        check_fitted(self)
        X = read_objects(self, self.similarity_, X, reset=False)
        distances, indices = self.neighbors_.kneighbors(X)
        labels = self.labels_[indices[:, 0]]
        member = np.flatnonzero(labels >= 0)
        far = distances[member, -1] > (1 + _ROUNDING) * self.radii_[labels[member]]
        labels[member[far]] = -1
        return labels

    def _labels_of(self, X: Any) -> Index:
        """Return `labels_` if `X` holds the training objects in their order, otherwise ``predict(X)``."""
        X = read_objects(self, self.similarity_, X, reset=False)
        known, n = self.neighbors_.objects_, len(self.labels_)
        if n_objects(X) == n and type(X) is type(known) and isinstance(X, Batch | np.ndarray):
            same = identical(concatenate([known, X]))
            if (same[:n] == same[n:]).all():
                return self.labels_
        return self.predict(X)

    def _to_medoids(self, X: Any, labels: Index) -> Floats:
        """Return the distance of each object to the medoid of its cluster, shape (n,); infinity for noise."""
        X, metric = read_objects(self, self.similarity_, X, reset=False), self._metric()
        found = np.full(len(labels), np.inf)
        for c, medoid in enumerate(self.medoid_indices_):
            rows = np.flatnonzero(labels == c)
            if len(rows):
                found[rows] = metric.distances(take(X, rows), take(self.neighbors_.objects_, [medoid]))[:, 0]
        return found

    def _means(self, random_state: Any) -> Means:
        """Embed the training objects as `similia.KernelKMeans` does, and return the means of the clusters."""
        X, metric, n = self.neighbors_.objects_, self._metric(), len(self.labels_)
        embedding: Any = Nystroem(metric.function, min(n, _LANDMARKS), random_state=random_state)
        if not metric.is_kernel:
            embedding = D2KE(metric.function, min(n, _LANDMARKS), Representatives(), random_state=random_state)
        Z = np.asarray(embedding.fit(X).transform(X), dtype=np.float64)
        clusters = range(self.n_clusters_)
        centers = np.array([Z[self.labels_ == c].mean(axis=0) for c in clusters]).reshape(-1, Z.shape[1])
        return Means(embedding, centers, self.counts_, self.n_clusters_)

    def _metric(self) -> Metric:
        return Metric(self.similarity_, isinstance(self.similarity_, Kernel))

    def _check_parameters(self) -> int:
        """Raise if a parameter is wrong; return `min_samples`."""
        m = check_positive_int(self.min_cluster_size, "min_cluster_size", minimum=2)
        if self.min_samples is not None:
            m = check_positive_int(self.min_samples, "min_samples")
        if self.n_neighbors is not None and check_positive_int(self.n_neighbors, "n_neighbors") < m - 1:
            least = f"at least {m - 1}, which is min_samples - 1"
            raise BadParameter("n_neighbors", least, f"{self.n_neighbors}", "raise it, or set min_samples lower")
        check_choice(self.cluster_selection_method, "cluster_selection_method", ("eom", "leaf"))
        check_choice(self.allow_single_cluster, "allow_single_cluster", (True, False))
        if self.max_cluster_size is not None:
            if check_positive_int(self.max_cluster_size, "max_cluster_size") < self.min_cluster_size:
                least = f"at least min_cluster_size={self.min_cluster_size}"
                raise BadParameter("max_cluster_size", least, f"{self.max_cluster_size}")
            if self.allow_single_cluster:  # HDBSCAN of scikit-learn fails with a KeyError
                raise BadParameter("max_cluster_size", "None if allow_single_cluster=True", f"{self.max_cluster_size}")
        return m

    def _check_number(self, X: Any, m: int) -> int:
        n = at_least_one(X)
        for name, least in (("min_cluster_size", self.min_cluster_size), ("min_samples", m)):
            if n < least:
                found = f"holds {n} object{'s' * (n > 1)} (n_samples = {n})"
                raise BadValue(None, found, f"at least {name}={least}", f"give more objects, or set {name} lower")
        return n

    def _neighbours_of(self, n: int, m: int) -> int:
        if self.n_neighbors is None:
            return min(n - 1, max(_NEIGHBOURS, 2 * m))
        k = int(at_most(self.n_neighbors, n - 1, "n_neighbors", "other training objects"))
        takes = f"the graph of {n} objects and their {k} neighbours takes"
        check_memory(takes, 2 * _ENTRY * n * k, "lower n_neighbors")
        return k

    def _clustered(self, graph: sp.csr_matrix, core: Floats) -> Any:
        """Return HDBSCAN of scikit-learn, fitted to the mutual reachability distances of a connected graph.

        Many of these are equal; a small share of the distance itself decides between them. With ``min_samples=1``,
        scikit-learn takes the values as they are.
        """
        rows = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
        reach = np.maximum(np.maximum(core[rows], core[graph.indices]), graph.data) + _TIE * graph.data
        return cluster.HDBSCAN(
            min_cluster_size=self.min_cluster_size, min_samples=1, metric="precomputed", copy=False,
            max_cluster_size=self.max_cluster_size, cluster_selection_method=self.cluster_selection_method,
            allow_single_cluster=bool(self.allow_single_cluster),
        ).fit(sp.csr_matrix((reach, graph.indices, graph.indptr), shape=graph.shape))  # fmt: skip


def _medoid(metric: Metric, X: Any, members: Index, rng: np.random.Generator) -> int:
    """Return the position of the member with the least sum of distances to all members, or to a sample of them."""
    others = members if len(members) <= _COMPARED else np.sort(rng.choice(members, _COMPARED, replace=False))
    compared, sums = take(X, others), np.empty(len(members))
    step = rows_per_block(32 * len(others), at_most=len(members))
    for start in range(0, len(members), step):
        some = members[start : start + step]
        sums[start : start + step] = metric.distances(take(X, some), compared).astype(np.float64).sum(axis=1)
    return int(members[np.flatnonzero(sums <= (1 + _TIE) * sums.min())[0]])
