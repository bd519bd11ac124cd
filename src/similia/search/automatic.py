"""How ``SimilaritySearch(encoder="auto")`` finds candidates: by features, bits or vectors, as a sample decides.

In a sample of up to 5000 objects, the true neighbours of 50 of them are compared with the candidates that each way
finds. Among the ways whose recall at `n_candidates` is at most one standard error of the difference below the highest,
the one that needs the fewest operations for all objects is chosen. No clock decides, so the choice is reproducible. One
operation is an entry of an inverted list, eight words of bits, or 100 coordinates of a `VectorIndex`, which take about
the same time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn import config_context
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from similia.codes import ITQ, GeneralizedNystroemPCA, SignRandomProjection
from similia.core.validation import BadParameter, warn_user
from similia.embeddings import D2KE, KernelFeatures, Nystroem
from similia.embeddings.d2ke import Representatives
from similia.kernels import MinMax, Spectrum
from similia.objects import n_objects, take
from similia.objects.sequences import Batch, StringBatch
from similia.pipelines import Pipeline
from similia.search._queries import vectors_index
from similia.search.feature_index import FeatureIndex
from similia.search.hamming_index import HammingIndex
from similia.search.vector_index import VectorIndex
from similia.similarity import Index, Metric

_SAMPLE, _QUERIES, _NEIGHBOURS, _PROBED = 5000, 50, 10, 256
_CURVE = (10, 20, 50, 100, 200, 400)  # numbers of candidates whose recall is measured
_LITTLE = 0.9  # a recall below this gives a warning
_LENGTHS = 3  # lengths of k-mers that are tried
_N_BITS, _COLUMNS = 256, 4096  # of codes, and into which counts of k-mers are folded
_WORDS_OF_AN_OPERATION, _COORDINATES_OF_AN_OPERATION = 8, 100
_N_KMERS = 600  # approximate number of k-mers that distinguishes strings: 5-mers of DNA, 2-mers of proteins


class LowRecall(UserWarning):
    """Too few of the true neighbours are among the candidates of a search."""


def chosen(X: Any, metric: Metric, n_candidates: int) -> tuple[Any, list[dict[str, Any]]]:
    """Return the chosen encoder or index, unfitted, and what was measured; see `SimilaritySearch.trials_`."""
    with config_context(transform_output="default"):
        return _chosen(X, metric, n_candidates)


def _chosen(X: Any, metric: Metric, n_candidates: int) -> tuple[Any, list[dict[str, Any]]]:
    ways = list(_ways(X, metric))
    n, rng = n_objects(X), np.random.default_rng(0)
    if n <= _NEIGHBOURS:
        return ways[0], []
    some = take(X, np.sort(rng.permutation(n)[:_SAMPLE]))
    size = n_objects(some)
    rows = np.sort(rng.permutation(size)[:_QUERIES])
    queries, k = take(some, rows), min(_NEIGHBOURS, size - 1)
    D = metric.decided(some).distances(queries, some).astype(np.float64)
    D[np.arange(len(rows)), rows] = np.inf
    farthest = np.partition(D, k - 1, axis=1)[:, k - 1]
    compared, trials, results = max(k, n_candidates), [], []
    vectors = _vectors(ways[-1], some, queries)
    for way in ways:
        index, queries_of = _index(way, some, queries, *vectors)
        found, operations = _candidates(index, queries_of, rows, min(size, max(*_CURVE, compared) + 1))
        operations *= n / size
        right = np.take_along_axis(D, found, axis=1) <= farthest[:, None]
        for c in _CURVE:
            share = float(np.minimum(right[:, :c].sum(axis=1), k).mean() / k)
            trials.append({"candidates": name_of(way), "n_candidates": c, "recall": share, "operations": operations})
        results.append((np.minimum(right[:, :compared].sum(axis=1), k) / k, operations))
    best = max((shares for shares, _ in results), key=lambda shares: float(shares.mean()))
    good = [i for i, (shares, _) in enumerate(results) if _as_good(best - shares)]
    kept = min(good, key=lambda i: results[i][1])
    _warn_of_low_recall(float(results[kept][0].mean()), compared, trials[kept * len(_CURVE) : (kept + 1) * len(_CURVE)])
    return ways[kept], trials


def _warn_of_low_recall(recall: float, compared: int, curve: list[dict[str, Any]]) -> None:
    """Warn if too few true neighbours are among the candidates; `curve` holds the trials of the way that is kept."""
    if recall >= _LITTLE:
        return
    enough = [one for one in curve if one["n_candidates"] > compared and one["recall"] >= _LITTLE]
    more = (enough or curve[-1:])[0]
    other = f", {more['n_candidates']} find {100 * more['recall']:.0f} %" if more["n_candidates"] > compared else ""
    warn_user(
        f"n_candidates={compared} candidates find {100 * recall:.0f} % of the {_NEIGHBOURS} nearest objects, as "
        f"measured on a sample{other}; raise n_candidates by set_params, which needs no new fit, or compare all "
        "objects with similia.NearestNeighbors",
        LowRecall,
    )


def _as_good(lost: npt.NDArray[np.float64]) -> bool:
    """Return whether the mean loss of recall over the queries is at most its standard error."""
    return float(lost.mean()) <= float(lost.std()) / math.sqrt(len(lost))


def _ways(X: Any, metric: Metric) -> Iterator[Any]:
    """Yield what may find candidates among these objects, unfitted."""
    if metric.is_kernel and all(_has_features(metric.function, part) for part in _probed(X)):
        yield FeatureIndex(metric.function)
    if isinstance(X, StringBatch):
        k = kmer_length(X)
        for length in range(k + 1, k + 1 + _LENGTHS):
            yield FeatureIndex(MinMax(Spectrum(length)))
    bits = bits_for(X, metric)
    yield bits
    yield Pipeline([*_embedding(bits).steps, ("index", VectorIndex(random_state=0))])


def _probed(X: Any) -> Iterator[Any]:
    """Yield the objects whose features are looked at: all vectors, in parts, but only some of other objects."""
    n = n_objects(X)
    if isinstance(X, Batch):  # of substructures, whose numbers are never negative
        yield take(X, np.unique(np.linspace(0, n - 1, _PROBED).astype(np.int64)))
    else:
        yield from (take(X, np.arange(start, min(n, start + _SAMPLE))) for start in range(0, n, _SAMPLE))


def _has_features(kernel: Any, some: Any) -> bool:
    """Return whether a `FeatureIndex` takes the kernel: it has explicit features, none of them negative."""
    try:
        FeatureIndex(kernel).fit(some)
    except (TypeError, ValueError):
        return False
    return True


def bits_for(X: Any, metric: Metric) -> Pipeline:
    """Return an unfitted encoder to bits for these objects and the kernel or distance that compares them.

    For strings: counts of k-mers, PCA, then ITQ; if the counts have too few directions, `Nystroem`, then signs. For
    other objects: `Nystroem` (for a kernel) or `D2KE` with random objects of the data (for a distance), then signs.
    """
    n = n_objects(X)
    signs = SignRandomProjection(_N_BITS, random_state=0)
    if isinstance(X, StringBatch):
        kernel = Spectrum(kmer_length(X), normalize=True)
        sample = min(n, 4 * _N_BITS)
        pca = GeneralizedNystroemPCA(_N_BITS, sample, 1.0, random_state=0)
        counts = KernelFeatures(kernel, _COLUMNS)
        try:
            clone(pca).fit(counts.fit_transform(take(X, np.arange(0, n, max(1, n // (4 * sample))))))
        except BadParameter as error:
            if error.name != "n_components":
                raise
            return Pipeline([("vectors", Nystroem(kernel, min(_N_BITS, n), random_state=0)), ("bits", signs)])
        itq = ITQ(_N_BITS, max_iter=20, random_state=0, max_samples=10_000)
        return Pipeline([("kmers", counts), ("pca", pca), ("itq", itq)])
    first: Any = Nystroem(metric.function, min(_N_BITS, n), random_state=0)
    if not metric.is_kernel:
        first = D2KE(metric.function, min(_N_BITS, n), Representatives(), random_state=0)
    return Pipeline([("vectors", first), ("centre", StandardScaler(with_std=False)), ("bits", signs)])


def kmer_length(strings: Any) -> int:
    """Return the k of the k-mers to count: 5 for up to 4 different letters, down to 2 for 13 or more.

    k is at most a third of the median length, but at least 1. Letters rarer than one in 200 (an N in DNA) are ignored.
    """
    _, counts = np.unique(strings.values, return_counts=True)
    letters = max(2, int(np.count_nonzero(counts >= counts.sum() / 200)))
    k = min(5, max(2, round(math.log(_N_KMERS, letters))))
    return max(1, min(k, int(np.median(np.diff(strings.offsets))) // 3))


def _embedding(way: Pipeline) -> Pipeline:
    """Return the steps of a way that make vectors of objects."""
    return Pipeline([pair for pair in way.steps if pair[0] not in ("centre", "bits", "itq", "index")])


def _vectors(way: Pipeline, X: Any, queries: Any) -> tuple[Any, Any]:
    """Return the vectors of objects and of queries, which all ways but features have in common."""
    embedding = clone(_embedding(way)).fit(X)
    return embedding.transform(X), embedding.transform(queries)


def _index(way: Any, X: Any, queries: Any, V: Any, vectors_of_queries: Any) -> tuple[Any, Any]:
    """Return an index of the objects `X`, whose vectors are `V`, and the queries as the index takes them."""
    if isinstance(way, FeatureIndex):
        return clone(way).fit(X), queries
    if (index := vectors_index(way)) is not None:
        return clone(index).fit(V), vectors_of_queries
    to_bits = clone(Pipeline(way.steps[len(_embedding(way).steps) :])).fit(V)
    codes = to_bits.transform(V)
    return HammingIndex(8 * codes.shape[1]).fit(codes), to_bits.transform(vectors_of_queries)


def _candidates(index: Any, queries: Any, rows: Index, c: int) -> tuple[Index, float]:
    """Return the positions of `c` - 1 candidates of each query, nearest first, and the operations for a query.

    Query i is the object at ``rows[i]``, which is no candidate.
    """
    found = index.kneighbors(queries, c, return_distance=False)
    if isinstance(index, FeatureIndex):
        operations = index.entries(queries)
    elif isinstance(index, VectorIndex):
        operations = len(index) * index.signs_.shape[1] / _COORDINATES_OF_AN_OPERATION
    else:
        operations = len(index) * index.n_bits / 64 / _WORDS_OF_AN_OPERATION
    itself = found == rows[:, None]
    itself[~itself.any(axis=1), -1] = True  # an equal object with a smaller position stands in its place
    return found[~itself].reshape(len(rows), c - 1), float(operations)


def name_of(way: Any) -> str:
    """Return a description of how candidates are found."""
    if isinstance(way, FeatureIndex):
        return f"features of {' '.join(repr(way.kernel).split())}"
    kind = "bits" if vectors_index(way) is None else "vectors"
    steps = [step for _, step in getattr(way, "steps", [("", way)])]  # of a frozen pipeline, too
    return f"{kind}: {' -> '.join(type(step).__name__ for step in steps)}"
