r"""K-means of objects in the feature space of a kernel or distance.

K-means finds the centres mu_c that minimise

.. math:: \sum_i \min_c \|\phi(x_i) - \mu_c\|^2,

where phi(x) is the feature vector of an object x (Schölkopf, Smola & Müller, "Nonlinear component analysis as a kernel
eigenvalue problem", Neural Computation 10, 1998, section 5). For a kernel, phi is the Nyström embedding with m
landmarks, so a centre is a vector, and time and memory grow linearly with the number of objects n (Chitta, Jin, Havens
& Jain, "Approximate kernel k-means: solution to large scale kernel clustering", KDD 2011). For a distance d, phi has
the coordinates exp(-gamma d(x, z_j)) / sqrt(m) of `similia.D2KE`, where the z_j are training objects.

Each start chooses centres by greedy k-means++ and improves them by Lloyd's iterations on a sample of at most 20,000
objects (or twice as many as clusters). The start with the least inertia then continues with all objects. Products and
sums have a fixed order, so labels do not depend on blocks, on threads or on the partitions of a Dask collection.

Cost of `fit`: n m kernel values, and 2 n m k operations for each iteration with k centres.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.cluster import kmeans_plusplus
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import Tags

from similia.core.config import one_blas_thread, settings, track
from similia.core.estimators import all_at_once, check_fitted, detached, is_lazy
from similia.core.products import chosen_products, row_product
from similia.core.state import Sizes, array, count, made, objects, state
from similia.core.text import short
from similia.core.validation import (
    BadParameter,
    BadValue,
    RandomState,
    check_positive,
    check_positive_int,
    generator,
    warn_user,
)
from similia.embeddings.d2ke import D2KE, Representatives
from similia.embeddings.nystroem import Nystroem
from similia.objects import concatenate, take
from similia.objects.identical import identical
from similia.objects.sequences import at_least_one
from similia.similarity import ComparesObjects, Distance, check_direction, check_kernel, decided, read_objects
from similia.sources.dask import Distributed, as_partitions, each_block, from_parts, lazily, refuse_lazy

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
_BLOCK = 4096  # objects per block; sums over blocks are added in order
_SAMPLE = 20_000  # maximum number of objects on which starts are compared, or twice that of clusters
_CLOSE = 1e-6  # squared distances below this share of the squared norms are computed from differences
_NUMBERS = range(2, 11)  # tried by n_clusters="stability"
_PAIRS, _SHARE = 10, 0.8  # number of pairs of subsamples, share of the objects in each
_STABLE = 0.8  # mean agreement at which groups of different objects are preferred to groups of copies
_STABILITY_SAMPLE = 2000  # maximum number of objects from which subsamples are drawn, or twice that of clusters


class _Assignment(NamedTuple):
    """Vectors assigned to their nearest centres."""

    labels: npt.NDArray[np.int32]  # (n,)
    sums: Floats  # of the vectors of each cluster, (k, rank)
    counts: Index  # (k,)
    inertia: float  # sum of squared distances to the nearest centres
    nearest: Index  # position of the member nearest to each centre, (k,); of equally near ones, the first
    squares: Floats  # squared distances of these vectors to their centres, (k,)

    def means(self, otherwise: Floats) -> Floats:
        """Return the mean of each cluster; for an empty cluster, its row of `otherwise`."""
        kept = self.counts > 0
        means = otherwise.copy()
        means[kept] = self.sums[kept] / self.counts[kept, None]
        return means


def _squared_distances(F: Floats, centers: Floats) -> Floats:
    """Return the squared distances of vectors to centres, (n, k); each depends only on its two vectors, bit for bit."""
    norms = _squared_norms(F)[:, None] + _squared_norms(centers)
    squares: Floats = norms - 2.0 * row_product(F, centers.T.copy())
    rows, columns = np.nonzero(squares < _CLOSE * norms)  # here the subtraction has lost most digits
    squares[rows, columns] = _squared_norms(F[rows] - centers[columns])
    return squares


def _squared_norms(V: Floats) -> Floats:
    return chosen_products(V, np.arange(len(V))[:, None], V)[:, 0]


def _assign_block(block: Any, start: int, embedding: Any, centers: Floats) -> _Assignment:
    F = np.asarray(block if embedding is None else embedding.transform(block), dtype=np.float64)
    squares = _squared_distances(F, centers)
    found = squares.argmin(axis=1)
    n, k = squares.shape
    members = sp.csc_array((np.ones(n), found, np.arange(n + 1)), shape=(k, n))  # its product adds rows in order
    of_members = np.where(found[:, None] == np.arange(k), squares, np.inf)
    nearest = np.where(np.isfinite(of_members).any(axis=0), of_members.argmin(axis=0), squares.argmin(axis=0))
    return _Assignment(
        found.astype(np.int32), members @ F, np.bincount(found, minlength=k).astype(np.int64),
        float(squares[np.arange(n), found].sum()), nearest.astype(np.int64), of_members[nearest, np.arange(k)],
    )  # fmt: skip


def _assign(F: Any, embedding: Any, centers: Floats) -> _Assignment:
    """Assign vectors to the nearest centres; if `embedding` is given, `F` holds objects, which it embeds first."""
    parts = list(each_block(F, _BLOCK, _assign_block, embedding, centers))
    squares, nearest = (np.array([getattr(part, name) for part in parts]) for name in ("squares", "nearest"))
    block, each = squares.argmin(axis=0), np.arange(len(centers))
    return _Assignment(
        np.concatenate([part.labels for part in parts]), sum(part.sums for part in parts),
        sum(part.counts for part in parts), sum(part.inertia for part in parts),
        nearest[block, each] + _BLOCK * block, squares[block, each],
    )  # fmt: skip


def _lloyd(F: Any, embedding: Any, centers: Floats, max_iter: int, tol: float) -> tuple[Floats, _Assignment, int]:
    """Return (centres, assignment to them, number of iterations); stop once centres move by at most `tol`, squared.

    At least one iteration is made, so the centres are means.
    """
    n_iter = 0
    for _ in track(range(max_iter), "k-means", total=max_iter):
        before, centers, n_iter = centers, _assign(F, embedding, centers).means(centers), n_iter + 1
        if np.square(centers - before).sum() <= tol:
            break
    return centers, _assign(F, embedding, centers), n_iter


def _best_of(
    F: Floats, k: int, n_init: int, max_iter: int, tol: float, rng: np.random.Generator
) -> tuple[Floats, _Assignment]:
    """Return the centres of the start that ends with the least inertia, and the assignment of the vectors to them."""
    found = []
    for _ in range(n_init):
        with one_blas_thread():
            chosen = kmeans_plusplus(F, k, random_state=int(rng.integers(2**31)))[1]
        centers, assigned, _ = _lloyd(F, None, F[chosen], max_iter, tol)
        found.append((centers, assigned))
    return min(found, key=lambda one: one[1].inertia)


def _stability(F: Floats, k: int, max_iter: int, tol: float, rng: np.random.Generator) -> Floats:
    """Return, for each pair of random subsamples, how well their k clusters agree on the objects that they share."""
    n = len(F)
    size, agreement = max(k, round(_SHARE * n)), np.empty(_PAIRS)
    for i in range(_PAIRS):
        clusters = np.full((2, n), -1)  # -1 for objects that are not in the subsample
        for row in clusters:
            rows = np.sort(rng.permutation(n)[:size])
            row[rows] = _best_of(F[rows], k, 3, max_iter, tol, rng)[1].labels
        agreement[i] = adjusted_rand_score(*clusters[:, (clusters >= 0).all(axis=0)])
    return agreement


def _state_fits(state: dict[str, Any], sizes: Sizes) -> bool:
    codes = state["labels_"]
    known = len(codes) > 0 and 0 <= codes.min() <= codes.max() < sizes["k"]
    return bool(known) and state["embedding_"]._n_features_out == sizes["r"] and state["inertia_"] >= 0


@state(
    fits=_state_fits, similarity="kernel", n_clusters=lambda value, sizes: True, embedding_=made("Nystroem", "D2KE"),
    similarity_="kernel",
    cluster_centers_=array("f8", "k", "r"), n_clusters_=count("k", least=1), _n_features_out=count("k"),
    counts_=array("i8", "k"), labels_=array("i4", None), inertia_="number", n_iter_=count(), n_seen_=count(least=1),
    medoids_=objects("k"), medoid_indices_=array("i8", "k"), n_clusters_tried_=array("i8", "t"),
    stability_=array("f8", "t", None),
)  # fmt: skip
class KernelKMeans(ComparesObjects, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    r"""Clusters of strings, graphs, series, sets or vectors: k-means in the feature space of a kernel or distance.

    Parameters
    ----------
    similarity : callable
        A kernel, ``k(X, Y=None) -> (n, m)``, or a distance of `similia.distances`. Any other callable counts as a
        kernel; ``similia.distances.FromFunction(f)`` makes a distance from a function f of two objects.
    n_clusters : int, "stability" or list of int, default=8
        Number of clusters. From a list of numbers, `fit` chooses one that gives stable clusters (see Notes);
        "stability" stands for the numbers from 2 to 10.
    n_landmarks : int, default=300
        Number of landmarks, the training objects with which all objects are compared. They are drawn at random. If
        there are fewer training objects, all of them are landmarks.
    n_init : int, default=10
        Number of times that `fit` starts from different centres. It keeps the result with the least `inertia_`; for
        more than 20,000 objects, it compares the results on a random sample of the objects.
    max_iter : int, default=300
        Maximum number of iterations.
    tol : float, default=1e-4
        As in scikit-learn's KMeans: iterations end when the sum of the squared distances by which the centres move is
        at most `tol` times the mean variance of the features.
    random_state : int, numpy Generator or None, default=None
        Source of randomness for landmarks, starts and subsamples.

    Attributes
    ----------
    labels_ : ndarray of int32, shape (n,)
        Cluster of each training object; after `partial_fit`, of each object of the last batch.
    medoids_ : collection of n_clusters objects
        The member of each cluster nearest to its centre, converted for the similarity, for example to a
        `similia.objects.StringBatch`.
    medoid_indices_ : ndarray of int64, shape (n_clusters,)
        Positions of the medoids in the training objects; after `partial_fit`, in the sequence of all batches.
    cluster_centers_ : ndarray of float64, shape (n_clusters, rank)
        The centres, in the coordinates of `embedding_`.
    counts_ : ndarray of int64, shape (n_clusters,)
        Number of objects in each cluster; after `partial_fit`, the number of objects assigned to the cluster in all
        batches together.
    inertia_ : float
        Sum of the squared distances of the training objects (after `partial_fit`, of the last batch) to their nearest
        centres.
    n_iter_ : int
        Number of iterations over all objects; each call of `partial_fit` adds 1.
    n_clusters_ : int
        Number of clusters.
    n_clusters_tried_ : ndarray of int64, shape (n_tried,)
        The numbers of clusters tried; empty if `n_clusters` is one number.
    stability_ : ndarray of float64, shape (n_tried, 10)
        For each number of clusters tried, the adjusted Rand index of each pair of subsamples (see Notes).
    embedding_ : Nystroem or D2KE
        The fitted embedding, `Nystroem` for a kernel and `D2KE` for a distance.
    similarity_ : callable
        Copy of `similarity` made by `fit`. A setting that depends on data, such as ``gamma="median"``, is replaced by
        the number computed from the training objects.
    n_seen_ : int
        Number of training objects, from all batches.
    n_features_in_ : int
        Number of columns; exists only if the objects are rows of a table.

    Raises
    ------
    ValueError
        In `fit`, if there are fewer objects than clusters; if there are fewer different objects than the smallest
        number of clusters to try; or if `similarity` counts as a kernel, but its values look like distances: 0 between
        equal objects, and above 0 between different objects.

    Warns
    -----
    UserWarning
        If a cluster is empty, because there are fewer different objects than clusters. In `fit` and `transform`, if
        more than half of the objects have similarity 0 to all landmarks, as `Nystroem.transform` does.

    Notes
    -----
    To measure how stable a number of clusters is, `fit` finds this number of clusters in each of two random subsamples.
    Objects with equal vectors count once. A subsample holds 80 % of the different training objects or, if there are
    more than m different objects, 80 % of m of them, drawn at random. Here m is the larger of 2,000 and twice the
    largest number of clusters. The adjusted Rand index compares the clusters of the objects that are in both
    subsamples: 1 means the same clusters, and 0 means no more agreement than by chance. For each number of clusters,
    `fit` averages the index over 10 pairs of subsamples. It chooses the largest number whose mean is within one
    standard error of the best mean. If all means are low, the objects have no clear groups.

    Some numbers of clusters are stable for any objects. One cluster is always stable, so 1 cannot be tried. Numbers
    above two thirds of the size of a subsample are left out: most clusters would hold a single object, and such
    clusters are always nearly stable. There is one exception: if each object has copies, the number of different
    objects is tried, too (if it is among the given numbers). It is chosen only if no other number of clusters has a
    mean index of at least 0.8.

    `similia.explain` shows which parts of an object, such as its words or subgraphs, put it into its cluster.

    If kernel values grow with the size of objects, set ``normalize=True`` in the kernel; otherwise objects are grouped
    by their sizes. `fit` keeps the feature vectors in memory if they fit into half of
    ``similia.config(max_memory=...)``, otherwise it computes them again for each iteration. For a Dask collection, the
    workers keep the vectors.

    References
    ----------
    Arthur & Vassilvitskii, "k-means++: the advantages of careful seeding", SODA 2007. Chitta, Jin, Havens & Jain,
    "Approximate kernel k-means", KDD 2011. Sculley, "Web-scale k-means clustering", WWW 2010 (`partial_fit`). Ben-Hur,
    Elisseeff & Guyon, "A stability based method for discovering structure in clustered data", PSB 2002.

    Examples
    --------
    >>> import similia as sm
    >>> words = ["ACACAC", "CACACA", "ACACA", "GGTTGG", "GGTTG", "GGTT"]
    >>> model = sm.KernelKMeans(sm.kernels.Spectrum(k=2, normalize=True), n_clusters=2, n_landmarks=6, random_state=0)
    >>> first, *_, last = model.fit_predict(words).tolist()
    >>> model.predict(["CACAC", "TTGG"]).tolist() == [first, last]
    True
    >>> sorted(words[i] for i in model.medoid_indices_)
    ['ACACA', 'GGTTGG']
    """

    _by = "similarity"

    def __init__(
        self, similarity: Any, n_clusters: Any = 8, n_landmarks: int = 300, n_init: int = 10, max_iter: int = 300,
        tol: float = 1e-4, random_state: RandomState = None,
    ) -> None:  # fmt: skip
        self.similarity = similarity
        self.n_clusters = n_clusters
        self.n_landmarks = n_landmarks
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @all_at_once
    @from_parts
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find clusters of n objects, in memory or in a Dask collection; `y` is ignored, but must have length n."""
        numbers = self._check_parameters()
        rng = generator(self.random_state)
        X, n = self._embed(X, y, numbers, rng)
        F, embedding = self._vectors(X, n)
        most = max(_SAMPLE, 2 * numbers[-1])
        sample, rows = F, np.sort(rng.permutation(n)[:most])
        if embedding is not None or isinstance(F, Distributed) or n > most:
            sample = take(F, rows)
            sample = sample if embedding is None else embedding.transform(sample)
        sample = np.ascontiguousarray(sample, dtype=np.float64)
        tol = float(self.tol) * float(sample.var(axis=0).mean())
        k = self._choose(numbers, sample, tol, rng)
        start, _ = _best_of(sample, k, self.n_init, self.max_iter, tol, rng)
        centers, found, n_iter = _lloyd(F, embedding, start, self.max_iter, tol)
        self._keep(centers, found, found.counts, n_iter, n)
        self.medoid_indices_, self.medoids_ = found.nearest, take(X, found.nearest)
        return self

    @all_at_once
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add a batch of objects; each centre becomes the mean of all objects assigned to it in any batch.

        The first call is a `fit`, which chooses the landmarks, so its batch should be a random sample of a few thousand
        objects. Old batches count as much as new ones, so centres move less with each batch. The medoid of a cluster
        (the member nearest to its centre) is replaced if it is no longer a member, or if a member in the batch is
        nearer to the new centre.
        """
        numbers = self._check_parameters()
        refuse_lazy(X, "partial_fit takes one batch in memory; fit takes the whole collection")
        if not hasattr(self, "cluster_centers_"):
            return self.fit(X, y)
        X = read_objects(self, self.similarity_, X, reset=False)
        at_least_one(X)
        if len(numbers) == 1 and numbers[0] != self.n_clusters_:
            raise ValueError(
                f"n_clusters={numbers[0]}, but the fitted model has {self.n_clusters_} clusters; fit a new KernelKMeans"
            )
        F = np.asarray(self.embedding_.transform(X), dtype=np.float64)
        batch = _assign(F, None, self.cluster_centers_)
        sums = self.counts_[:, None] * self.cluster_centers_ + batch.sums
        centers = batch._replace(sums=sums, counts=self.counts_ + batch.counts).means(self.cluster_centers_)
        found, medoids = _assign(F, None, centers), self.embedding_.transform(self.medoids_)
        squares, rows = _squared_distances(np.asarray(medoids, dtype=np.float64), centers), np.arange(len(centers))
        nearer = found.squares < np.where(squares.argmin(axis=1) == rows, squares.diagonal(), np.inf)
        start, candidates = self.n_seen_, concatenate([self.medoids_, take(X, found.nearest)])
        self.medoids_ = take(candidates, np.where(nearer, rows + self.n_clusters_, rows))
        self.medoid_indices_ = np.where(nearer, found.nearest + start, self.medoid_indices_)
        self._keep(centers, found, self.counts_ + batch.counts, self.n_iter_ + 1, start + len(F))
        return self

    @lazily
    def transform(self, X: Any) -> Floats:
        """Return the distances of n objects to the centres, measured between feature vectors, shape (n, n_clusters)."""
        return self._distances(X)

    @lazily
    def _distances(self, X: Any) -> Floats:
        """Return what `transform` returns, as an array whatever the output that scikit-learn is set to."""
        check_fitted(self)
        objects = read_objects(self, self.similarity_, X, reset=False)
        F = np.asarray(self.embedding_.transform(objects), dtype=np.float64)
        return np.sqrt(_squared_distances(F, self.cluster_centers_))

    @lazily
    def predict(self, X: Any) -> npt.NDArray[np.int32]:
        """Return the cluster with the nearest centre for each of n objects, shape (n,)."""
        return self._distances(X).argmin(axis=1).astype(np.int32)

    @all_at_once
    def fit_predict(self, X: Any, y: Any = None, **kwargs: Any) -> npt.NDArray[np.int32]:
        """Find clusters of n objects and return the cluster of each, shape (n,)."""
        return self.fit(X, y).labels_

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the sum of the squared distances of n objects to their nearest centres."""
        check_fitted(self)
        nearest = self._distances(X).min(axis=1)
        return -float(np.square(nearest.compute() if is_lazy(nearest) else nearest).sum())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags

    def _check_parameters(self) -> list[int]:
        """Raise if a parameter is wrong; return the numbers of clusters to try."""
        for name in ("n_landmarks", "n_init", "max_iter"):
            check_positive_int(getattr(self, name), name)
        check_positive(self.tol, "tol", zero=True)
        if isinstance(self.n_clusters, str) and self.n_clusters == "stability":
            return [*_NUMBERS]
        if isinstance(self.n_clusters, list | tuple | range | np.ndarray) and len(self.n_clusters) > 0:
            return sorted({check_positive_int(k, "n_clusters", minimum=2) for k in self.n_clusters})
        if isinstance(self.n_clusters, str | list | tuple | range | np.ndarray):
            found = short(self.n_clusters)
            raise BadParameter("n_clusters", 'an integer >= 1, a list of integers >= 2 or "stability"', found)
        return [check_positive_int(self.n_clusters, "n_clusters")]

    def _embed(self, X: Any, y: Any, numbers: list[int], rng: np.random.Generator) -> tuple[Any, int]:
        """Fit `embedding_`; return the objects in the layout of the similarity, and their number."""
        function, seed = self.similarity, int(rng.integers(2**32))
        if not isinstance(function, Distance):
            check_kernel(function, "similarity")
            function = decided(function, X)
        function = detached(function)
        X = read_objects(self, function, X, reset=True)
        n = at_least_one(X)
        least, name = (numbers[0], "") if numbers == [*_NUMBERS] else (numbers[-1], "n_clusters=")
        if n < least:
            raise BadValue(None, f"holds {n} object{'s' * (n > 1)}", f"at least {name}{least}")
        m = min(n, self.n_landmarks)
        if isinstance(function, Distance):
            self.embedding_ = D2KE(function, m, Representatives(), random_state=seed).fit(X, y)
        else:
            check_direction(function, True, X, "similarity")
            self.embedding_ = Nystroem(function, m, random_state=seed).fit(X, y)
        self.similarity_ = function
        return X, n

    def _vectors(self, X: Any, n: int) -> tuple[Any, Any]:
        """Return (vectors, None) or, if the vectors of the objects `X` do not fit into memory, (`X`, `embedding_`)."""
        if isinstance(X, Distributed):
            return as_partitions(self.embedding_.transform(X)).kept(), None
        if 8 * n * self.embedding_._n_features_out > settings().max_memory // 2:
            return X, self.embedding_
        return np.asarray(self.embedding_.transform(X), dtype=np.float64), None

    def _choose(self, numbers: list[int], F: Floats, tol: float, rng: np.random.Generator) -> int:
        """Return the most stable of the given numbers of clusters; store the stability of each."""
        self.n_clusters_tried_, self.stability_ = np.zeros(0, np.int64), np.zeros((0, _PAIRS))
        if len(numbers) == 1:
            return numbers[0]
        same = identical(F)
        F, n_different = F[np.unique(same, return_index=True)[1]], int(same.max()) + 1
        if n_different < numbers[0]:
            found = f"holds only {n_different} object{'s' * (n_different > 1)} that the similarity tells apart"
            raise BadValue(None, found, f"at least {numbers[0]}", "set n_clusters to one number")
        sample = F[np.sort(rng.permutation(n_different)[: max(_STABILITY_SAMPLE, 2 * numbers[-1])])]
        tried = [k for k in numbers if 3 * k <= 2 * round(_SHARE * len(sample))]
        copies = n_different in numbers and np.bincount(same).min() > 1
        if copies:  # then each cluster may hold the copies of one object
            tried.append(n_different)
        tried = tried or [numbers[0]]
        runs = track(tried, "stability", total=len(tried))
        self.stability_ = np.array([_stability(sample, k, self.max_iter, tol, rng) for k in runs])
        self.n_clusters_tried_ = np.array(tried)
        means = self.stability_.mean(axis=1)
        if copies and means[:-1].max(initial=0.0) >= _STABLE:
            means = means[:-1]
        best = int(means.argmax())
        error = self.stability_[best].std(ddof=1) / np.sqrt(_PAIRS)
        return tried[int(np.flatnonzero(means >= means[best] - error)[-1])]

    def _keep(self, centers: Floats, found: _Assignment, counts: Index, n_iter: int, n_seen: int) -> None:
        self.cluster_centers_, self.labels_, self.counts_ = centers, found.labels, counts
        self.inertia_, self.n_iter_, self.n_seen_ = float(found.inertia), n_iter, n_seen
        self.n_clusters_ = self._n_features_out = len(centers)
        empty = int((counts == 0).sum())
        if empty:
            warn_user(
                f"{empty} of {len(centers)} clusters are empty, because too few objects are different; lower n_clusters"
            )
