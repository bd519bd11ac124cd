"""Neighbour graphs: the k nearest other objects of each object in a collection, as a sparse matrix of distances.

``method="exact"`` compares all pairs, tile by tile; if the distance is symmetric, each pair is compared only once. DTW
has its own search, which skips most pairs by lower bounds. So have ERP, MSM, TWE and ADTW without a window, or with a
wide one; theirs ends most comparisons early.

``method="kmers"``, for strings, compares each string with those that share most of its k-mers, and with its neighbours
in alphabetical order; then step 3 below is done with the similarity itself. k is the least length for which a k-mer of
the collection occurs in few strings. Comparing codes first would take longer than comparing the strings.

``method="bits"``, for any objects, takes four steps:

1. An encoder turns each object into a code of packed bits.
2. The codes are sorted by random choices of their bits. Objects near each other in such an order are compared by the
   number of bits in which their codes differ, and each object keeps a list of the nearest.
3. Neighbours of neighbours are compared too, still by codes, until the lists hardly change (NN-descent).
4. The lists are sorted by the similarity itself, and step 3 is repeated with the similarity. A list that many equal
   codes leave too short first takes the objects beside its own in one of the orders.

Every step changes a list only after all objects have read the lists of the step before, so the graph depends neither on
blocks nor on threads. Cost: n encodings, n log n for the orders, and a few hundred evaluations for each object. Memory:
the objects, their codes, three lists for each, and a block of pairs.

Objects of a Dask collection stay on the workers, which compare them: one task for each two partitions that have pairs
to compare. Codes and lists are in the calling process, and steps 2 and 3 are done there.

With ``connected=True``, distances between the connected components are added: those of a minimum spanning tree of the
components, where the gap between two components is the least distance between an object of one and an object of the
other (of a sample, if there are many). Then no distance is 0, because scikit-learn's HDBSCAN finds a minimum spanning
tree with scipy, for which a stored 0 is no edge: it loses objects or reads beyond its arrays.

Papers: Dong, Moses & Li, "Efficient k-nearest neighbor graph construction for generic similarity measures", WWW 2011
(NN-descent); Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002, Section 3 (sorted orders
of permuted bits).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.base import clone

from similia.codes.bits import as_words
from similia.codes.sign_projection import SignRandomProjection
from similia.core.config import logger_of, rows_per_block, run_in_ranges, track
from similia.core.estimators import computed
from similia.core.hashing import popcount
from similia.core.jit import njit
from similia.core.validation import (
    BadPair,
    BadParameter,
    BadValue,
    check_codes,
    check_encoder,
    check_positive_int,
    generator,
    spawn_seeds,
    warn_user,
)
from similia.embeddings.d2ke import D2KE, Representatives
from similia.embeddings.nystroem import Nystroem
from similia.kernels import Spectrum
from similia.kernels.counts import number_ids
from similia.learn.series_neighbors import insert, search_for
from similia.objects import n_objects, take
from similia.objects.sequences import StringBatch, at_least_one, concatenate
from similia.pipelines import Pipeline
from similia.search.answers import shares_found
from similia.similarity import Floats, Index, Metric, check_direction, feature_distances, metric_from
from similia.sources.dask import Distributed, Lengths, as_parts, whole_part

_EXACT = 10_000  # objects up to which method="auto" compares all pairs
_TILE = 2048  # rows of a tile of distances
N_BITS, _FIT_ON = 256, 10_000  # bits of codes, and objects to which the default encoder is fitted
_ORDERS, _REACH = 12, 8  # sorted orders of the codes, and places on either side that are compared
_SPARE = 20  # least length of a list
_JOINED = 20  # neighbours of an object, in either direction, whose neighbours are compared with it
_PROPOSED = 512  # most objects compared with one object in a round
_ROUNDS = 8  # most rounds of neighbours of neighbours
_SETTLED_CODES, _SETTLED = 0.1, 0.01  # shares of changed entries at which rounds by codes, by the similarity, end
_MEASURED, _POOR = 200, 0.9  # objects on which recall is measured, and recall below which a warning is emitted
_POSTING, _LONGEST_K = 64, 16  # mean number of strings that share a k-mer, at most, and largest k that is tried
_READ = 256  # strings with a k-mer that are counted for one of them, at most
_SHARING = 40  # strings that share most k-mers, compared with each string
_SAMPLED = 2048  # objects compared to join components, at most
_SAME, _ALL_SAME = 1e-6, 1e-9  # distance in place of 0: a share of the smallest positive one, or if there is none
_GRAIN = 256  # minimum number of objects per thread
_LOGGER = logger_of(__name__)
Compare = Callable[[Any, Any], Floats]


def knn_graph(
    X: Any,
    similarity: Any,
    n_neighbors: int = 10,
    *,
    method: str = "auto",
    encoder: Any = None,
    symmetric: bool = True,
    connected: bool = False,
    random_state: Any = None,
    return_recall: bool = False,
) -> Any:
    """Return the graph of nearest neighbours of a collection, as a sparse matrix of distances.

    Parameters
    ----------
    X : collection of n objects
        `X` may also be a Dask bag, a Dask array of vectors, or a column of a Dask data frame. The graph is then the
        same as for objects in memory. The objects stay on the workers and are compared there, but the method "kmers"
        also reads the strings into this process.
    similarity : kernel or distance of similia
        A kernel k defines the distance ``sqrt(k(x, x) + k(y, y) - 2 k(x, y))``. Wrap a function of your own that
        compares two objects: a distance in `similia.distances.FromFunction`, a similarity in `similia.pairwise`.
    n_neighbors : int, default=10
        Number of neighbours of each object, at most n - 1. An object is not its own neighbour.
    method : {"auto", "exact", "kmers", "bits"}, default="auto"
        "exact" compares all pairs, except those that are ruled out by a bound on their distance. The other methods
        compare each object with a few hundred candidates; they may miss neighbours, but their distances are exact.
        "kmers" is for strings: candidates share short substrings. "bits" is for any objects: `encoder` makes a
        code of each object, and candidates have similar codes. "auto" uses "exact" for up to 10,000 objects. For more
        objects, it uses "kmers" if the objects are strings and `encoder` is not given, otherwise "bits".
    encoder : transformer of objects to packed bits, optional
        Makes the codes if the method is "bits"; a clone of it is fitted to `X`. The default is `similia.Nystroem` (for
        a kernel) or `similia.D2KE` with random objects of `X` (for a distance), followed by centring and
        `similia.SignRandomProjection`. The default is fitted to at most 10,000 of the objects.
    symmetric : bool, default=True
        Whether to store each distance in both directions, as umap-learn and HDBSCAN require. Row i then also holds the
        objects that have object i among their nearest neighbours, so it has `n_neighbors` entries or more. If each of
        two objects is a neighbour of the other and the two distances differ, the smaller one is stored for both. With
        False, each row holds exactly the `n_neighbors` nearest objects.
    connected : bool, default=False
        Whether to add distances between the connected components of the graph, so that the graph becomes connected, as
        HDBSCAN requires. If there are c components, c - 1 distances are added, each between the nearest objects of two
        components. If there are more than 2,048 objects, only 2,048 of them, at least one of each component, are
        compared to find these distances. Because HDBSCAN treats a stored 0 as a missing distance, a small positive
        number replaces distances of 0: a millionth of the smallest positive distance in the graph, or 1e-9 if all are
        0. Needs ``symmetric=True``.
    random_state : int, numpy generator or None, default=None
        Source of randomness of the method "bits", of the choice of objects on which recall is measured, and of the
        choice of objects that `connected` compares. An integer makes results the same for any
        ``config(max_memory=...)``, any number of threads and any partitions.
    return_recall : bool, default=False
        Whether to return the measured recall too.

    Returns
    -------
    graph : csr_matrix of float64, shape (n, n)
        Distances. Row i holds the distances from object i to its nearest neighbours (without itself), in ascending
        order of (distance, index). Distances of 0 are stored (unless `connected` replaces them), as scikit-learn
        expects: pass the graph to estimators with ``metric="precomputed"``. With ``symmetric=False``,
        ``graph.indices.reshape(n, n_neighbors)`` and ``graph.data.reshape(n, n_neighbors)`` are the arrays of indices
        and distances that other libraries expect.
    recall : float
        Only with `return_recall`. For "exact", recall is 1.0. For the other methods, it is the mean recall of at most
        200 objects. Each of these objects is compared with all others, which gives r, the true distance to its
        `n_neighbors`-th nearest neighbour. The recall of the object is the share of its neighbours in the graph whose
        distance is at most r, so objects that are exactly as far as the true neighbours count as correct.

    Raises
    ------
    ValueError
        If there are fewer than two objects; if `n_neighbors` is not below n; if `method` is unknown, or is "kmers" but
        the objects are not strings; if `similarity` is a plain function; if `connected` is set without `symmetric`; or
        if an object has fewer than `n_neighbors` other objects at a finite distance.

    Warns
    -----
    UserWarning
        If the recall is below 0.9. All methods except "exact" measure and log the recall in every call.

    Examples
    --------
    >>> import similia as sm
    >>> words = ["kitten", "mitten", "sitting", "sunday", "monday", "kitten"]
    >>> graph = sm.search.knn_graph(words, sm.distances.Levenshtein(), n_neighbors=2)
    >>> graph[[0]].indices, graph[[0]].data
    (array([5, 1, 2, 3], dtype=int32), array([0., 1., 3., 6.]))
    >>> one_way = sm.search.knn_graph(words, sm.distances.Levenshtein(), n_neighbors=2, symmetric=False)
    >>> one_way.indices.reshape(6, 2)[0], one_way.data.reshape(6, 2)[0]
    (array([5, 1], dtype=int32), array([0., 1.]))
    """
    metric = metric_from(similarity, "similarity")
    check_positive_int(n_neighbors, "n_neighbors")
    if method not in ("auto", "exact", "kmers", "bits"):
        raise BadParameter("method", "'auto', 'exact', 'kmers' or 'bits'", repr(method))
    if connected and not symmetric:
        raise BadParameter("connected", "False if symmetric=False", repr(connected), "set symmetric=True")
    X = as_parts(X, anew=True)
    objects = metric.as_objects(X)
    strings = isinstance(objects.first() if isinstance(objects, Distributed) else objects, StringBatch)
    if method == "kmers" and not strings:
        raise BadParameter("method", "'auto', 'exact' or 'bits' for objects that are no strings", repr(method))
    n = at_least_one(objects)
    if n == 1:
        raise BadValue(None, "holds 1 object", "at least two, so that each has a neighbour")
    if n_neighbors >= n:
        raise BadParameter("n_neighbors", f"below {n}, the number of objects", f"{n_neighbors}")
    metric = metric.decided(objects)
    if method == "auto":
        method = "exact" if n <= _EXACT else "kmers" if strings and encoder is None else "bits"
    if isinstance(objects, Distributed):  # converted once, for all tasks
        objects = Distributed(objects.lazy(whole_part), Lengths(objects.lengths)).kept()
    check_direction(metric.function, metric.is_kernel, objects, "similarity")
    seeds = spawn_seeds(random_state, 4)
    distances, neighbours = _nearest(metric, X, objects, n_neighbors, method, encoder, seeds)
    recall = 1.0 if method == "exact" else _recall(metric, objects, neighbours, generator(seeds[2]))
    limits = np.arange(0, n * n_neighbors + 1, n_neighbors)
    graph = sp.csr_matrix((distances.ravel().astype(np.float64), neighbours.ravel(), limits), shape=(n, n))
    if symmetric:
        graph = _in_both_directions(graph)
    if connected:
        graph = _joined(graph, metric, objects, n_neighbors, method, seeds)
        graph.data = _without_zeros(graph.data)
    return (graph, recall) if return_recall else graph


def _nearest(
    metric: Metric, X: Any, objects: Any, k: int, method: str, encoder: Any, seeds: list[Any]
) -> tuple[Floats, npt.NDArray[np.integer]]:
    """Return the distances and positions of (nearly) the `k` nearest other objects of each object, both (n, k)."""
    if method == "exact":
        return _exact_apart(metric, objects, k) if isinstance(objects, Distributed) else _exact(metric, objects, k)
    if method == "kmers":
        distances, neighbours = _by_kmers(metric, objects, k)
    else:
        codes = _codes(X, objects, metric, encoder, seeds[0])
        distances, neighbours = _by_bits(metric, objects, codes, k, generator(seeds[1]))
    if not np.isfinite(distances).all():
        i = int(np.argmin(np.isfinite(distances).all(axis=1)))
        raise BadValue(i, f"has fewer than {k} others at a distance that is a finite number")
    return distances, neighbours


def _in_both_directions(graph: sp.csr_matrix) -> sp.csr_matrix:
    """Return the graph and its transpose in one; a sum or maximum of sparse matrices would drop distances of 0."""
    entries = graph.tocoo()
    rows, columns = np.concatenate([[entries.row, entries.col], [entries.col, entries.row]], axis=1).astype(np.int64)
    values = np.tile(entries.data, 2)
    order = np.lexsort((values, columns, rows))
    rows, columns, values = rows[order], columns[order], values[order]
    first = np.r_[True, (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])]
    rows, columns, values = rows[first], columns[first], values[first]
    order = np.lexsort((columns, values, rows))
    limits = np.searchsorted(rows, np.arange(graph.shape[0] + 1))
    return sp.csr_matrix((values[order], columns[order], limits), shape=graph.shape)


# ---- one component
def _joined(graph: sp.csr_matrix, metric: Metric, X: Any, k: int, method: str, seeds: list[Any]) -> sp.csr_matrix:
    """Return the graph with distances between its connected components, which make it connected.

    If there are too many components to compare, a graph of neighbours of one object of each comes first.
    """
    rng = generator(seeds[3])
    while True:
        n_components, component = connected_components(graph, directed=False)
        if n_components == 1:
            return graph
        order = rng.permutation(len(component))
        one_of_each = order[np.unique(component[order], return_index=True)[1]]
        if n_components > _SAMPLED:
            some = take(X, one_of_each)
            distances, found = _nearest(metric, some, some, k, method, None, seeds)
            left, right, values = np.repeat(one_of_each, k), one_of_each[found].ravel(), distances.ravel()
        else:
            others = order[~np.isin(order, one_of_each)][: _SAMPLED - n_components]
            some = np.sort(np.concatenate([one_of_each, others]))
            some = some[np.argsort(component[some], kind="stable")]
            a, b, values = _tree_of(metric, take(X, some), component[some])
            left, right = some[a], some[b]
        entries = graph.tocoo()
        pairs = [entries.row, left], [entries.col, right]
        both = sp.coo_matrix((np.r_[entries.data, values], tuple(map(np.concatenate, pairs))), shape=graph.shape)
        graph = _in_both_directions(both)


def _tree_of(metric: Metric, X: Any, component: Index) -> tuple[Index, Index, Floats]:
    """Return the pairs of objects, and their distances, that join components as a minimum spanning tree does.

    `component` is the component of each object, in ascending order.
    """
    D = metric.distances(X, X).astype(np.float64)
    D = np.minimum(D, D.T)
    starts = np.flatnonzero(np.diff(component, prepend=-1))
    gaps = np.minimum.reduceat(np.minimum.reduceat(D, starts, axis=0), starts, axis=1)
    c = len(starts)
    parent, least, outside = np.zeros(c, np.int64), gaps[0].copy(), np.arange(c) > 0
    pairs, ends = [], np.r_[starts[1:], len(D)]
    for _ in range(c - 1):  # Prim's algorithm; that of scipy takes gaps of 0 for none
        b = int(np.argmin(np.where(outside, least, np.inf)))
        a, outside[b] = parent[b], False
        block = D[starts[a] : ends[a], starts[b] : ends[b]]
        i, j = np.unravel_index(block.argmin(), block.shape)
        pairs.append((starts[a] + i, starts[b] + j))
        closer = gaps[b] < least
        parent[closer], least[closer] = b, gaps[b][closer]
    left, right = np.array(pairs, np.int64).T
    return left, right, D[left, right]


def _without_zeros(distances: Floats) -> Floats:
    """Return distances in which a small positive number replaces 0; the order of the others stays."""
    positive = distances > 0
    least = _SAME * distances[positive].min() if positive.any() else _ALL_SAME
    return np.where(positive, distances, max(least, np.finfo(np.float64).tiny))


# ---- all pairs
def _exact(metric: Metric, X: Any, k: int) -> tuple[Floats, npt.NDArray[np.integer]]:
    """Return the distances and positions of the `k` nearest other objects of each object, both (n, k)."""
    search = search_for(metric.function, X, X)
    if search is not None:
        return search(metric.function, X, X, k, without_self=True)
    n = n_objects(X)
    best, which = np.full((n, k), np.inf), np.full((n, k), n, np.int32)
    norms = metric.norms(X)
    for rows, columns, D in track(_tiles(metric, X, n, norms), "neighbours"):
        sides = [(D, rows, columns)]
        if columns is not rows and metric.symmetric:
            sides.append((np.ascontiguousarray(D.T), columns, rows))
        for tile, own, others in sides:

            def merge(first: int, last: int, tile: Any = tile, own: Any = own, others: Any = others) -> None:
                _merge_tile(tile, own[0], others[0], best, which, first, last)

            run_in_ranges(merge, len(own), _GRAIN)
    return best, which


def _tiles(metric: Metric, X: Any, n: int, norms: Any) -> Iterator[tuple[Index, Index, Floats]]:
    """Yield rows, columns and distances of tiles; if symmetric, only those on the diagonal and to the right of it.

    A symmetric tile on the diagonal repeats its upper half below: each pair has one value, whatever the tiles.
    """
    symmetric, step = metric.symmetric, min(_TILE, n)
    width = rows_per_block(4 * 8 * step, at_most=4 * _TILE)
    step = min(step, width)
    for start in range(0, n, step):
        rows = np.arange(start, min(n, start + step))
        objects = take(X, rows)
        left = None if norms is None else norms[rows][:, None]

        def between(others: Any, right: Any, objects: Any = objects, left: Any = left) -> Floats:
            values = metric.between(objects, others)
            return values if norms is None else feature_distances(values.astype(np.float64), left, right)

        D = between(objects, None if norms is None else norms[rows])
        if symmetric:
            D = np.triu(D, 1)
            D += D.T
        yield rows, rows, np.ascontiguousarray(D)
        spans = [(start + len(rows), n)] if symmetric else [(0, start), (start + len(rows), n)]
        for low, high in spans:
            for at in range(low, high, width):
                columns = np.arange(at, min(high, at + width))
                right = None if norms is None else norms[columns]
                yield rows, columns, np.ascontiguousarray(between(take(X, columns), right))


def _exact_apart(metric: Metric, X: Distributed, k: int) -> tuple[Floats, npt.NDArray[np.integer]]:
    """Return what `_exact` returns, for objects in partitions: one task for each two blocks of objects."""
    import dask

    blocks = X.blocks(_TILE)
    starts = np.cumsum([0, *blocks.lengths])
    best, which = np.full((len(X), k), np.inf), np.full((len(X), k), len(X), np.int64)
    for i in track(range(len(blocks.lengths)), "neighbours", len(blocks.lengths)):
        columns = range(i, len(blocks.lengths))
        tasks = [blocks.of_two(_nearest_of_two, i, j, starts[j] - starts[i], k, metric) for j in columns]
        for j, sides in zip(columns, dask.compute(*tasks), strict=True):
            for own, other, (distances, positions) in zip((i, j), (j, i), sides, strict=False):
                rows = slice(starts[own], starts[own + 1])
                values, places = np.hstack([best[rows], distances]), np.hstack([which[rows], positions + starts[other]])
                order = np.lexsort((places, values))[:, :k]
                best[rows], which[rows] = (np.take_along_axis(a, order, 1) for a in (values, places))
    return best, which


def _nearest_of_two(A: Any, start: int, B: Any, apart: int, k: int, metric: Metric) -> list[Any]:
    """Return the nearest objects of B for each of A, and of A for each of B; once if B is A, no object its own."""
    n, m = n_objects(A), n_objects(B)
    if apart == 0:
        return [_exact(metric, A, min(k, n - 1))] if n > 1 else []
    function = metric.function
    forth, back = search_for(function, A, B), search_for(function, B, A)
    if forth is not None and back is not None:
        return [forth(function, A, B, min(k, m)), back(function, B, A, min(k, n))]
    D = metric.distances(A, B)
    found = []
    for tile, most in ((D, min(k, m)), (D.T if metric.symmetric else metric.distances(B, A), min(k, n))):
        best, which = np.full((len(tile), most), np.inf), np.zeros((len(tile), most), np.int32)
        _merge_tile(np.ascontiguousarray(tile), 0, len(tile), best, which, 0, len(tile))
        found.append((best, which - len(tile)))
    return found


# ---- by k-mers
def _by_kmers(metric: Metric, X: Any, k: int) -> tuple[Floats, npt.NDArray[np.integer]]:
    """Return the distances and positions of (nearly) the `k` nearest other strings of each string, both (n, k)."""
    n, compare = len(X), _compare(metric, X)
    X = concatenate([*X.map(whole_part)]) if isinstance(X, Distributed) else X
    lists = _Lists(n, min(n - 1, max(_SPARE, 2 * k)))
    strings = X.tolist()
    order = np.array(sorted(range(n), key=strings.__getitem__), np.int64)
    lists.offer(_window(order, lists, k), 2 * k, compare, "alphabetical neighbours")
    kmers = _rare_kmers(X, getattr(metric.function, "reverse_complement", False) is True)
    postings = kmers.tocsc()

    def sharing(*where: Any) -> None:
        _propose_sharing(kmers.indptr, kmers.indices, postings.indptr, postings.indices, _READ, lists.which, *where)

    lists.offer(sharing, _SHARING, compare, "strings with the same k-mers")
    lists.settle(compare, "neighbours of neighbours", _SETTLED, min(k, _JOINED))
    return lists.best[:, :k], lists.which[:, :k]


def _rare_kmers(X: StringBatch, reverse_complement: bool) -> sp.csr_matrix:
    """Return which string has which k-mer, for the least k whose k-mers are shared by `_POSTING` strings on average."""
    n = len(X)
    some = X.take(np.arange(0, n, -(-n // _FIT_ON)))
    for k in range(2, _LONGEST_K + 1):
        kernel = Spectrum(k, reverse_complement=reverse_complement)
        columns = number_ids(kernel.counted(some).ids)[1]
        n_strings = np.bincount(columns)
        others = n_strings @ (n_strings - 1)  # for all k-mers of all strings, how many other strings share them
        if others * n <= _POSTING * len(columns) * len(some):
            break
    counts = kernel.counted(X)
    distinct, columns = number_ids(counts.ids)
    return sp.csr_matrix((np.ones(len(columns), np.int8), columns, counts.offsets), shape=(n, len(distinct)))


# ---- by bits
def _codes(X: Any, objects: Any, metric: Metric, encoder: Any, seed: int | None) -> npt.NDArray[np.uint8]:
    """Return packed bits of the objects, by a clone of `encoder` or the default encoder."""
    if encoder is not None:
        check_encoder(encoder)
        return check_codes(computed(clone(encoder).fit(X).transform(X)), "the encoder's output")
    n = n_objects(objects)
    some = np.sort(generator(seed).choice(n, min(n, _FIT_ON), replace=False))
    steps = default_encoder(metric, take(objects, some), seed)
    return check_codes(computed(steps.transform(objects)), "the encoder's output")


def default_encoder(metric: Metric, some: Any, seed: Any) -> Pipeline:
    """Return an encoder of objects to packed bits by a similarity, fitted to `some` objects in memory."""
    from sklearn.preprocessing import StandardScaler

    seeds, size = spawn_seeds(seed, 2), min(N_BITS, n_objects(some))
    first: Any = Nystroem(metric.function, size, random_state=seeds[0])
    if not metric.is_kernel:
        first = D2KE(metric.function, size, Representatives(), random_state=seeds[0])
    centre, signs = StandardScaler(with_std=False), SignRandomProjection(N_BITS, random_state=seeds[1])
    return Pipeline([("vectors", first), ("centre", centre), ("bits", signs)]).fit(some)


class _Lists:
    """The nearest objects found so far of each of n objects, in ascending order of (distance, position)."""

    def __init__(self, n: int, length: int) -> None:
        self.best = np.full((n, length), np.inf)
        self.which = np.full((n, length), n, np.int32)
        self.new = np.zeros((n, length), np.bool_)

    def offer(self, propose: Callable[..., None], most: int, compare: Compare, what: str) -> None:
        """Compare each object with others and keep the nearest.

        ``propose(start, columns, counts, first, last)`` fills row i of `columns` with ``counts[i]`` others of object
        ``start + i``, at most `most` of them, none of which is in its list.
        """
        n = len(self.best)
        step = rows_per_block(32 * most, at_most=2**14)
        for start in track(range(0, n, step), what, -(-n // step)):
            size = min(step, n - start)
            columns, counts = np.empty((size, most), np.int32), np.zeros(size, np.int64)
            run_in_ranges(lambda a, b: propose(start, columns, counts, a, b), size, _GRAIN)  # noqa: B023
            chosen = columns[np.arange(most) < counts[:, None]]
            offsets = np.concatenate([[0], np.cumsum(counts)])
            values = compare(np.repeat(np.arange(start, start + size), counts), chosen)

            def merge(a: int, b: int) -> None:
                _merge_pairs(start, offsets, chosen, values, self.best, self.which, self.new, a, b)  # noqa: B023

            run_in_ranges(merge, size, _GRAIN)

    def settle(self, compare: Compare, what: str, settled: float, joined: int = _JOINED) -> None:
        """Compare objects with the neighbours of their neighbours, in rounds, until the lists hardly change.

        `joined` is how many neighbours of an object count, in either direction.
        """
        n, length = self.best.shape
        width = min(joined, length)
        for _ in range(_ROUNDS):
            near, new = self.which[:, :width].copy(), self.new[:, :width].copy()
            back, back_new = np.empty((n, joined), np.int32), np.zeros((n, joined), np.bool_)
            _reverse(near, new, back, back_new)
            self.new[:] = False

            def propose(*where: Any) -> None:
                _propose(near, self.which, new, back, back_new, *where)  # noqa: B023

            self.offer(propose, _PROPOSED, compare, what)
            if np.count_nonzero(self.new[:, :width]) <= settled * n * width:
                return


def _window(order: Index, lists: _Lists, reach: int) -> Callable[..., None]:
    """Return what proposes to each object those within `reach` places of it in `order`, except those in its list."""
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return lambda *where: _propose_window(order, place, lists.which, reach, *where)


def _compare(metric: Metric, X: Any) -> Compare:
    """Return a function that computes the distances of the pairs ``X[rows[t]], X[columns[t]]``, `rows` ascending."""
    norms = metric.norms(X)
    pairs = partial(_pairs_apart, metric, X)
    if not isinstance(X, Distributed):
        pairs = partial(metric.pairs, X, kept=metric.kept(X))

    def compare(rows: Index, columns: Index) -> Floats:
        values = pairs(rows, columns)
        return values if norms is None else feature_distances(values, norms[rows], norms[columns])

    return compare


def _pairs_apart(metric: Metric, X: Distributed, rows: Index, columns: Index) -> Floats:
    """Return what `Metric.pairs` returns, for objects in partitions: one task for each two partitions with pairs."""
    import dask

    starts = np.cumsum([0, *X.lengths])
    left, right = (np.searchsorted(starts, which, "right") - 1 for which in (rows, columns))
    order = np.lexsort((right, left))  # stable: rows stay in ascending order
    changed = np.flatnonzero(np.diff(left[order] * len(starts) + right[order], prepend=-1))
    tasks = []
    for part in np.split(order, changed[1:]) if len(order) else []:
        i, j = left[part[0]], right[part[0]]
        places = rows[part] - starts[i], columns[part] - starts[j]
        tasks.append(X.of_two(_pairs_of_two, i, j, starts[j] - starts[i], *places, metric))
    found = np.empty(len(rows))
    found[order] = np.concatenate([[], *dask.compute(*tasks)])
    return found


def _pairs_of_two(A: Any, start: int, B: Any, apart: int, rows: Index, columns: Index, metric: Metric) -> Floats:
    """Return kernel values or distances of the pairs ``A[rows[t]], B[columns[t]]``.

    B begins `apart` objects after A.
    """
    (left, rows), (right, columns) = (np.unique(which, return_inverse=True) for which in (rows, columns))
    X = concatenate([take(A, left), take(B, right)])
    try:
        return metric.pairs(X, rows, columns + len(left), metric.kept(X))
    except BadPair as error:
        numbers = np.r_[left, right + apart]
        i, j = error.index
        raise error.changed(index=(int(numbers[i]), int(numbers[j])), names="X[{}] and X[{}]") from error.__cause__


def _by_bits(
    metric: Metric, X: Any, codes: npt.NDArray[np.uint8], k: int, rng: np.random.Generator
) -> tuple[Floats, npt.NDArray[np.integer]]:
    """Return the distances and positions of (nearly) the `k` nearest other objects of each object, both (n, k)."""
    words, n = as_words(codes), len(codes)

    def bits_apart(rows: Index, columns: Index) -> Floats:
        out = np.empty(len(rows), np.float64)
        run_in_ranges(lambda a, b: _bits_apart(words, rows, columns, out, a, b), len(rows), 2**16)
        return out

    length = min(n - 1, max(_SPARE, 2 * k))
    lists = _Lists(n, length)
    for order in _sorted_orders(codes, rng):
        lists.offer(_window(order, lists, _REACH), 2 * _REACH, bits_apart, "candidates by codes")
    lists.settle(bits_apart, "neighbours by codes", _SETTLED_CODES)
    true, compare = _Lists(n, length), _compare(metric, X)

    def listed(start: int, columns: Index, counts: Index, first: int, last: int) -> None:
        columns[first:last] = lists.which[start + first : start + last]
        counts[first:last] = np.count_nonzero(columns[first:last] < n, axis=1)

    true.offer(listed, length, compare, "neighbours compared")
    if (true.which[:, k - 1] == n).any():  # many equal codes leave lists short
        true.offer(_window(order, true, k), 2 * k, compare, "objects beside them in an order")
    true.settle(compare, "neighbours of neighbours", _SETTLED)
    return true.best[:, :k], true.which[:, :k]


def _sorted_orders(codes: npt.NDArray[np.uint8], rng: np.random.Generator) -> Iterator[Index]:
    """Yield orders of the codes, each sorted by 64 bits chosen at random; equal ones stay in the order of positions."""
    n_bits = 8 * codes.shape[1]
    for _ in range(_ORDERS):
        bits = rng.choice(n_bits, min(64, n_bits), replace=False)
        keys = np.zeros(len(codes), np.uint64)
        for bit in bits:
            keys = (keys << np.uint64(1)) | ((codes[:, bit // 8] >> np.uint8(7 - bit % 8)) & np.uint8(1)).astype(
                np.uint64
            )
        yield np.argsort(keys, kind="stable")


def _recall(metric: Metric, X: Any, neighbours: Any, rng: np.random.Generator) -> float:
    """Return the recall of a sample of objects, log it, and warn if it is low."""
    n = len(neighbours)
    sample, norms = np.sort(rng.choice(n, min(n, _MEASURED), replace=False)), metric.norms(X)
    shares, step = [], rows_per_block(24 * n, at_most=32)
    for start in track(range(0, len(sample), step), "recall", -(-len(sample) // step)):
        rows = sample[start : start + step]
        D = metric.distances(take(X, rows), X, norms).astype(np.float64)
        D[np.arange(len(rows)), rows] = np.inf
        shares.append(shares_found(D, neighbours[rows]))
    recall = float(np.concatenate(shares).mean())
    _LOGGER.info("knn_graph: recall %.3f, measured on %d of %d objects", recall, len(sample), n)
    if recall < _POOR:
        warn_user(
            f"the graph holds {recall:.0%} of the true neighbours (measured on {len(sample)} objects); try "
            "method='bits' with an encoder= that suits the objects, or method='exact'"
        )
    return recall


# ---- loops
# The lists of n objects are `best` (distances) and `which` (positions), both (n, c), each row in ascending order of
# (distance, position). Unused entries hold infinity and n. Each loop but `_reverse` writes for the rows `first` to
# `last` - 1 only, so threads share the rows, and the result does not depend on their number.


@njit()
def _merge_tile(D, row, column, best, which, first, last):  # type: ignore[no-untyped-def]
    """Insert the distances ``D[i, j]`` of the objects ``row + i`` and ``column + j`` into the lists of the former."""
    for i in range(first, last):
        values, positions = best[row + i], which[row + i]
        for j in range(D.shape[1]):
            if D[i, j] <= values[-1] and column + j != row + i:
                insert(values, positions, np.float64(D[i, j]), column + j)


@njit()
def _merge_pairs(start, offsets, columns, distances, best, which, new, first, last):  # type: ignore[no-untyped-def]
    """Insert pairs into the lists; mark the entries that stay in `new`.

    The pairs of object ``start + i`` are the entries ``offsets[i]`` to ``offsets[i + 1]`` of `columns` and `distances`.
    No pair may be in the lists already.
    """
    c = best.shape[1]
    for i in range(first, last):
        values, positions, marks = best[start + i], which[start + i], new[start + i]
        for t in range(offsets[i], offsets[i + 1]):
            if not distances[t] <= values[-1]:
                continue
            at = insert(values, positions, np.float64(distances[t]), columns[t])
            if at >= 0:
                for k in range(c - 1, at, -1):
                    marks[k] = marks[k - 1]
                marks[at] = True


@njit()
def _reverse(which, new, back, back_new):  # type: ignore[no-untyped-def]
    """Fill row j of `back` with objects that have j in their lists, those that rank it highest first; copy the marks.

    Unused entries are n.
    """
    n, width = back.shape
    used = np.zeros(n, np.int64)
    back[:] = n
    for k in range(which.shape[1]):
        for i in range(n):
            j = which[i, k]
            if j < n and used[j] < width:
                back[j, used[j]], back_new[j, used[j]] = i, new[i, k]
                used[j] += 1


@njit()
def _propose(which, known, new, back, back_new, start, columns, counts, first, last):  # type: ignore[no-untyped-def]
    """Fill ``columns[i]`` with neighbours of neighbours of object ``start + i``, and ``counts[i]`` with how many.

    Neighbours are the lists `which` and `back`. A path of two steps counts if one of them is marked `new`. The list
    `back` of the object counts, too. Objects in its list `known` are left out.
    """
    n = len(which)
    seen = np.full(n, -1, np.int64)
    for i in range(first, last):
        own, used = start + i, 0
        seen[own] = own
        for j in known[own]:
            if j < n:
                seen[j] = own
        for step in range(which.shape[1] + back.shape[1]):
            forward = step < which.shape[1]
            j = which[own, step] if forward else back[own, step - which.shape[1]]
            if j == n:
                continue
            fresh = new[own, step] if forward else back_new[own, step - which.shape[1]]
            if not forward and seen[j] != own and used < columns.shape[1]:  # who lists an object may be near to it
                seen[j] = own
                columns[i, used] = j
                used += 1
            for k in range(which.shape[1]):
                if (fresh or new[j, k]) and which[j, k] < n and seen[which[j, k]] != own and used < columns.shape[1]:
                    seen[which[j, k]] = own
                    columns[i, used] = which[j, k]
                    used += 1
            for k in range(back.shape[1]):
                if (fresh or back_new[j, k]) and back[j, k] < n and seen[back[j, k]] != own and used < columns.shape[1]:
                    seen[back[j, k]] = own
                    columns[i, used] = back[j, k]
                    used += 1
        counts[i] = used


@njit()
def _propose_window(order, place, known, reach, start, columns, counts, first, last):  # type: ignore[no-untyped-def]
    """Fill ``columns[i]`` with the objects within `reach` places of the object ``start + i`` in `order`.

    `place` is the inverse of `order`. Objects in the list `known` of the object are left out.
    """
    n = len(order)
    for i in range(first, last):
        own, used = start + i, 0
        for at in range(max(0, place[own] - reach), min(n, place[own] + reach + 1)):
            j = order[at]
            if j == own:
                continue
            fresh = True
            for k in range(known.shape[1]):
                if known[own, k] == j:
                    fresh = False
                    break
            if fresh:
                columns[i, used] = j
                used += 1
        counts[i] = used


@njit()
def _propose_sharing(starts, kmers, limits, strings, most_read, known, start, columns, counts, first, last):  # type: ignore[no-untyped-def]
    """Fill ``columns[i]`` with the strings that share most k-mers with the string ``start + i``.

    String s has the k-mers ``kmers[starts[s]:starts[s + 1]]``, and k-mer f occurs in the strings
    ``strings[limits[f]:limits[f + 1]]``, in ascending order. Of these, the `most_read` around s are counted. Of
    those that share equally many k-mers, the first found are taken. Strings in its list `known` are left out.
    """
    n, most = len(known), columns.shape[1]
    shared, touched = np.zeros(n, np.int32), np.empty(n, np.int32)
    for i in range(first, last):
        own, n_touched, top = start + i, 0, 0
        for t in range(starts[own], starts[own + 1]):
            low, high = limits[kmers[t]], limits[kmers[t] + 1]
            if high - low > most_read:
                middle = low + np.searchsorted(strings[low:high], own)
                low = max(low, min(middle - most_read // 2, high - most_read))
                high = low + most_read
            for at in range(low, high):
                j = strings[at]
                if shared[j] == 0:
                    touched[n_touched] = j
                    n_touched += 1
                shared[j] += 1
        shared[own] = 0
        for j in known[own]:
            if j < n:
                shared[j] = 0
        for at in range(n_touched):
            top = max(top, shared[touched[at]])
        having = np.zeros(top + 1, np.int64)
        for at in range(n_touched):
            having[shared[touched[at]]] += 1
        used, least = 0, top
        while least > 1 and used + having[least] < most:
            used += having[least]
            least -= 1
        used = 0
        for at in range(n_touched):
            if shared[touched[at]] > least and used < most:
                columns[i, used] = touched[at]
                used += 1
        equal = used
        for at in range(n_touched):
            if shared[touched[at]] == least and least > 0 and equal < most:
                columns[i, equal] = touched[at]
                equal += 1
        counts[i] = equal
        for at in range(n_touched):
            shared[touched[at]] = 0


@njit()
def _bits_apart(words, rows, columns, out, first, last):  # type: ignore[no-untyped-def]
    """Fill ``out[t]`` with the number of bits in which the codes ``rows[t]`` and ``columns[t]`` differ."""
    for t in range(first, last):
        total = np.uint64(0)
        for w in range(words.shape[1]):
            total += popcount(words[rows[t], w] ^ words[columns[t], w])
        out[t] = total
