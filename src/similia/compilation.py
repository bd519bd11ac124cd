"""Compile the numba loops of similia ahead of use, by running its estimators on a few small objects of each kind."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import similia as sm
from similia.core.config import track

_N = 24  # objects of each kind


def warmup(kinds: str | Iterable[str] | None = None) -> dict[str, float]:
    """Compile similia's loops with Numba in advance, so that a service answers its first request as fast as later ones.

    Call this once, when you set up a machine or build a container image: compiled loops are cached on disk, and later
    processes load them. The environment variable ``NUMBA_CACHE_DIR`` names the cache folder. By default, the compiled
    loops are in the ``__pycache__`` folders of the package or, if these folders are not writable, in the user's cache
    folder. If all loops are compiled already, a call takes seconds.

    Parameters
    ----------
    kinds : str or iterable of str, optional
        Kinds of objects whose loops are compiled: "strings", "graphs", "series", "sets", "vectors", "codes" (packed
        bits). By default all.

    Returns
    -------
    dict of str to float
        Seconds spent on each kind.

    Examples
    --------
    >>> import similia as sm
    >>> list(sm.warmup(["codes"]))
    ['codes']
    """
    wanted = list(KINDS) if kinds is None else [kinds] if isinstance(kinds, str) else list(kinds)
    unknown = [kind for kind in wanted if kind not in KINDS]
    if unknown:
        raise ValueError(f"unknown kind {unknown[0]!r}, expected one of {', '.join(KINDS)}")
    seconds = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of objects that mean nothing
        for kind in track(wanted, "warmup"):
            start = time.perf_counter()
            KINDS[kind](np.random.default_rng(0))
            seconds[kind] = time.perf_counter() - start
    return seconds


def _similarities(X: Any, kernels: Iterable[Any], distances: Iterable[Any]) -> None:
    """Evaluate kernels and distances within `X`, between a part of `X` and `X`, and on a list of pairs."""
    from similia.objects import take

    few = take(X, np.arange(5))
    for function in [*kernels, *distances]:
        function(X)
        function(few, X)
        if hasattr(function, "paired"):
            function.paired(few, X, [0, 1], [2, 3])
    for kernel in kernels:
        kernel.diag(X)


def _systems(X: Any, kernel: Any, distance: Any) -> None:
    """Fit classifiers and a `SimilaritySearch` to `X`, then predict and search."""
    y, one = np.arange(_N) % 3, sm.objects.take(X, [0])  # one object has loops of its own
    model = sm.recipes.nyshd(kernel, n_landmarks=8, n_bits=256, random_state=0).fit(X, y)
    for objects in (X, one):
        model.predict(objects)
    sm.recipes.d2ke(distance, 8, objects=X, random_state=0).fit(X, y).predict(X)
    sm.KNeighborsClassifier(distance, n_neighbors=3).fit(X, y).predict(X)
    encoder = sm.recipes.nyshd(kernel, n_landmarks=8, n_bits=256, random_state=0)[:-1]
    for rerank in ("kernel", "projected"):
        search = sm.SimilaritySearch(encoder, rerank).fit(X)
        search.kneighbors(one, 3)
        search.kneighbors(X, 3)


def _strings(rng: np.random.Generator) -> None:
    X = ["".join(word) for word in rng.choice(list("ACGT"), (_N, 30))]
    kernels = [
        sm.kernels.Spectrum(k=3), sm.kernels.GappyKmers(k=4, gaps=1), sm.kernels.Mismatch(k=3),
        sm.kernels.WeightedDegree(degree=3), sm.kernels.GappedKmers(4, 3), sm.kernels.GappedKmers(4, 3, "forgotten"),
        sm.kernels.Spectrum(k=(1, 2)), sm.kernels.Words(),
    ]  # fmt: skip
    names = ("Levenshtein", "Hamming", "DamerauLevenshtein", "JaroWinkler")
    compared = [sm.kernels.MinMax(kernels[0]), sm.kernels.Intersection(sm.kernels.Sum(kernels[:2]))]
    _similarities(X, [*kernels, *compared], [getattr(sm.distances, name)() for name in names])
    _systems(X, kernels[1], sm.distances.Levenshtein())
    encoder = sm.recipes.nyshd(kernels[0], n_landmarks=_N, n_bits=64, random_state=0)[:-1]
    search = sm.SimilaritySearch(encoder, sm.distances.Levenshtein()).fit(X)
    search.kneighbors(X[:1], 3)  # one query has a plan
    for kernel in (compared[0], sm.kernels.Spectrum(k=3, normalize=True)):
        index = sm.search.FeatureIndex(kernel).fit(X)
        for queries in (X[:1], X):
            index.kneighbors(queries, 3)
            index.radius_neighbors(queries, 0.5)
    for method in ("exact", "hashes"):
        sm.search.near_duplicates(X, compared[0], 0.5, method=method, random_state=0)
    for method in ("exact", "kmers", "bits"):
        sm.search.knn_graph(X, sm.distances.Levenshtein(), 3, method=method, random_state=0)
    for kernel in (kernels[0], kernels[4], compared[1]):
        sm.KernelFeatures(kernel, 64).fit_transform(X)
    sm.NGramEncoder(256).fit_transform(X)
    sm.MinHash(kernels[0], 64).fit_transform(X)


def _graphs(rng: np.random.Generator) -> None:
    X = []
    for _ in range(_N):
        edges = np.array([(i, rng.integers(i)) for i in range(1, 9)]).T
        X.append(
            {
                "edge_index": edges,
                "n_nodes": 9,
                "node_labels": rng.integers(3, size=9),
                "node_details": rng.integers(2, size=9),
            }
        )
    graphs = sm.objects.as_graphs(X)
    names = ("WeisfeilerLehman", "ShortestPath", "VertexHistogram", "EdgeHistogram", "Propagation", "Graphlet")
    kernels = [getattr(sm.kernels, name)() for name in names]
    _similarities(graphs, kernels, [])
    sm.recipes.nyshd(kernels[0], n_landmarks=8, n_bits=256, random_state=0).fit(graphs, np.arange(_N) % 3)
    sm.GraphHDEncoder(256).fit_transform(graphs)
    for sampling in ("uniform", "random_walk"):
        for features in ("optical", "match", "gaussian", "gaussian_eig"):
            m = None if features == "match" else 16
            sm.GraphletSampling(4, 50, sampling, features, m, random_state=0).fit_transform(graphs)
    _similarities(graphs, [], [sm.distances.MMD(4, 50)])


def _series(rng: np.random.Generator) -> None:
    for n_channels in (1, 2):
        X = [rng.normal(size=(length, n_channels)).cumsum(0) for length in rng.integers(15, 25, _N)]
        names = ("DTW", "ERP", "MSM", "TWE", "LCSS", "ADTW", "SoftDTW")
        distances = [getattr(sm.distances, name)() for name in names]
        _similarities(X, [sm.kernels.GlobalAlignment()], distances)
        _systems(X, sm.kernels.DistanceRBF(distances[0]), distances[0])
        convolutions = sm.RandomConvolutions(84, random_state=0)
        for embedding in (sm.embeddings.Hydra(2, 4, random_state=0), sm.IntervalQuantiles(2), convolutions):
            n_features = embedding.fit_transform(X).shape[1]
            embedding.time_shares(X[:1], np.ones(n_features))
    sm.SequenceEncoder(256).fit_transform(X)
    longer = [rng.normal(size=(64, 1)) for _ in range(64)]  # enough for comparisons that are abandoned
    sm.KNeighborsClassifier(sm.distances.ERP(), n_neighbors=3).fit(longer, np.arange(64) % 3).predict(longer)
    sm.search.find(X[0], np.vstack(X), 2)
    for compare in (sm.distances.DTW(), sm.kernels.GlobalAlignment()):
        sm.explain(compare, X[0], X[1])


def _sets(rng: np.random.Generator) -> None:
    for dtype in (np.float32, np.float64):
        X = [rng.normal(size=(size, 3)).astype(dtype) for size in rng.integers(4, 9, _N)]
        names = ("ModifiedHausdorff", "Hausdorff", "Chamfer", "SlicedWasserstein", "Wasserstein")
        distances = [getattr(sm.distances, name)() for name in names]
        _similarities(X, [sm.kernels.MeanMap(sm.kernels.RBF(1.0))], distances)
        _systems(X, sm.kernels.DistanceRBF(distances[0]), distances[0])
        sm.MeanMapFeatures(16, random_state=0).fit_transform(X)


def _vectors(rng: np.random.Generator) -> None:
    y = np.arange(96) % 3
    for dtype in (np.float32, np.float64):
        X = np.abs(rng.normal(size=(96, 16))).astype(dtype)
        _similarities(
            X,
            [sm.kernels.RBF(1.0), sm.kernels.Optical(), sm.kernels.Cosine(), sm.kernels.HypersphericalHeat(t=0.5)],
            [],
        )
        for structured in (False, True):
            sm.OpticalRandomFeatures(32, random_state=0, structured=structured).fit_transform(X)
        sm.HeatRandomFeatures(32, random_state=0).fit_transform(X)
        sm.HeatSVC().fit(X[:24], y[:24]).predict(X)  # its grid takes a second on all
        for method in ("gaussian", "structured"):
            codes = sm.SignRandomProjection(64, method=method, random_state=0).fit_transform(X)
            sm.HDClassifier(random_state=0).fit(codes, y).predict(codes)
        sm.recipes.pca_itq(8, 0.5, 0.5, random_state=0).fit(X).transform(X)
        for bits, normalize in ((1, True), (2, False), (4, False), (8, False)):
            index = sm.search.VectorIndex(bits, normalize=normalize, random_state=0).fit(X)
            index.kneighbors(X[:2], 3)
        sm.LevelEncoder(256).fit_transform(X)
        sm.FractionalPowerEncoder(256).fit_transform(X)


def _codes(rng: np.random.Generator) -> None:
    codes = rng.integers(256, size=(96, 16), dtype=np.uint8)
    y = np.arange(96) % 3
    classifier = sm.HDClassifier(random_state=0).fit(codes, y)
    classifier.predict(codes)
    sm.HDClassifier(prototype_bits=1, random_state=0).fit(codes, y).predict(codes)
    sm.HDClassifier(random_state=0).partial_fit(codes, y, classes=np.unique(y))
    sm.HDClassifier("ridge").fit(codes, y).predict(codes)
    many = rng.integers(256, size=(2400, 400), dtype=np.uint8)  # enough for ridge by conjugate gradients
    sm.HDClassifier("ridge", alpha=1.0).fit(many, np.arange(2400) % 2)
    for kind in ("exact", "ivf", "multihash"):
        index = sm.HammingIndex(128, kind, random_state=0).fit(codes)
        for queries in (codes[:1], codes[:5]):
            index.kneighbors(queries, 3)
            index.radius_neighbors(queries, 20)
    sm.HammingIndex(128, metric="jaccard").fit(codes).kneighbors(codes[:5], 3)
    sm.codes.hamming_distances(codes, codes)
    sm.codes.inner_products(codes, codes)
    sm.codes.bundle(codes)
    sm.codes.permute(codes)


KINDS: dict[str, Callable[[np.random.Generator], None]] = {
    "strings": _strings, "graphs": _graphs, "series": _series, "sets": _sets, "vectors": _vectors, "codes": _codes,
}  # fmt: skip
