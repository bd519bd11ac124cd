"""What `cpus.py` computes: every public estimator, kernel, distance and function of numbers, and how each is called."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import LinearSVC

import similia as sm
from similia import codes, distances, embeddings, kernels, learn, search
from similia.embeddings import SeriesVectors
from similia.objects import AttributeScaler, FromColumn, GraphToSets, SeriesToSets, as_column
from similia.recipes import FeatureScaler

ROOMS = (
    "",
    "objects",
    "kernels",
    "distances",
    "embeddings",
    "codes",
    "learn",
    "search",
    "scale",
    "selection",
    "recipes",
)
LEFT_OUT = {
    "AutoClassifier": "chooses by the time that candidates take; the candidates are the other cases",
    "AutoRegressor": "as AutoClassifier",
    "Kernel": "base class",
    "FeatureKernel": "base class",
    "Distance": "base class",
    "Morgan": "its counts are integers that RDKit computes",
    "ShardedIndex": "searches its shards as HammingIndex does; tests/test_dask.py compares the two",
}
METHODS = ("transform", "predict", "predict_proba", "decision_function", "p_values", "kneighbors", "search")
CONFORMAL = ("predict", "p_values", "predict_set", "predict_interval")
N_NEIGHBORS = 11


@dataclass(frozen=True)
class Case:
    """A model, the name of the objects it gets, and which of its methods are called.

    `one_machine`: equality is promised for one machine only.
    """

    data: str
    make: Callable[[], Any]
    methods: tuple[str, ...] = METHODS
    one_machine: bool = False
    prepare: Callable[[Any], Any] = field(default=lambda X: X)


def public() -> dict[str, Any]:
    """Return by name every public class with parameters: estimators, kernels, distances, samplers."""
    found = {}
    for room in ROOMS:
        module = importlib.import_module(f"similia.{room}".rstrip("."))
        names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
        for name in names:
            value = getattr(module, name)
            ours = inspect.isclass(value) and value.__module__.startswith("similia.")
            if ours and issubclass(value, BaseEstimator) and value.__name__ not in found:
                found[value.__name__] = value
    return found


def covered(some: dict[str, Case]) -> set[str]:
    """Return the names of the classes that cases compute with: of models, and of the steps of pipelines."""
    models = [case.make() for case in some.values()]
    steps = [step for model in models if isinstance(model, Pipeline) for step in model.named_steps.values()]
    drawn = [part.objects for part in (*models, *steps) if hasattr(part, "objects")]  # random objects of D2KE
    classes = {type(part) for part in (*models, *steps, *drawn)}
    return {found.__name__ for found in classes if found.__module__.startswith("similia.")}


def missing(some: dict[str, Case]) -> list[str]:
    """Return a sentence for each public class that no case covers, and for each reason that excuses nothing."""
    there, names = covered(some), set(public())
    sentences = [
        f"{name} is public and no case computes with it; add one to _cpus_cases.py, or a reason to LEFT_OUT"
        for name in sorted(names - there - set(LEFT_OUT))
    ]
    idle = [name for name in sorted(LEFT_OUT) if name in there or name not in names]
    return sentences + [f"{name} is in LEFT_OUT, but is covered or not public; delete it there" for name in idle]


def cases() -> dict[str, Case]:
    """Return all cases by name."""
    return dict(
        [*_kernels(), *_distances(), *_embeddings(), *_samplers(), *_codes(), *_learners(), *_searches(), *_maps()]
    )


def short(value: Any) -> str:
    return " ".join(repr(value).split())


def _named(data: str, values: list[Any]) -> Iterator[tuple[str, Case]]:
    """Yield a case for each kernel or distance of objects of one kind, named by its parameters."""
    for value in values:
        kind = data.partition(", ")[2]
        yield short(value) + (f", {kind}" if kind else ""), Case(data, lambda value=value: value)


def _kernels() -> Iterator[tuple[str, Case]]:
    k, d = kernels, distances
    spectrum = k.Spectrum(k=4)
    yield from _named(
        "strings",
        [
            spectrum,
            k.GappyKmers(normalize=True),
            k.GappedKmers(6, 4, reverse_complement=True, center_weight=50, normalize=True),
            k.GappedKmers(6, 4, "forgotten"),
            k.Spectrum(k=(1, 3), boundaries="words", normalize=True),
            k.Words(n=(1, 2), min_letters=1),
            k.Mismatch(k=3),
            k.WeightedDegree(normalize=True),
            k.Sum([spectrum, k.Normalized(k.Mismatch(k=3))], weights=[0.1, 0.7]),
            k.Product([k.Normalized(spectrum), k.DistanceRBF(d.Levenshtein(), gamma=0.01)]),
            k.Normalized(spectrum),
            k.Intersection(spectrum, normalize=True),
            k.MinMax(k.Sum([spectrum, k.Normalized(k.Mismatch(k=3))], weights=[0.1, 0.7])),
            k.DistanceRBF(d.JaroWinkler(), gamma=3.0),
            k.NegativeDistance(d.Levenshtein()),
            k.FromDistance(d.Levenshtein(), embeddings.RandomStrings((3, 9), "ACGT"), 0.1, n_components=64),
        ],
    )
    yield from _named(
        "graphs",
        [
            k.WeisfeilerLehman(n_iter=2, normalize=True),
            k.MinMax(k.WeisfeilerLehman(n_iter=2)),
            k.ShortestPath(),
            k.VertexHistogram(),
            k.EdgeHistogram(normalize=True),
            k.Propagation(bin_width=0.3, use="attributes", normalize=True),
            k.Propagation(n_iter=3, use="labels", metric="hellinger"),
            k.Graphlet(size=3),
            k.Graphlet(size=4, n_samples=200, normalize=True),
            k.DistanceRBF(d.MMD(4, 200)),
        ],
    )
    for kind in ("series", "series, float32"):
        yield from _named(kind, [k.GlobalAlignment(2.0), k.DistanceRBF(d.DTW(), gamma=1e-3)])
    for kind in ("sets", "sets, float32", "sets, unit norm"):
        yield from _named(kind, [k.DistanceRBF(d.ModifiedHausdorff(), gamma=0.3), k.MeanMap(k.RBF(0.2))])
    for kind in ("vectors", "vectors, float32", "frequencies"):
        yield from _named(
            kind,
            [
                k.RBF(0.1),
                k.Optical(0.1, normalize=True),
                k.Cosine(),
                k.HypersphericalHeat(2.0),
            ],
        )


def _distances() -> Iterator[tuple[str, Case]]:
    d = distances
    yield from _named("strings", [d.Levenshtein(), d.DamerauLevenshtein(), d.JaroWinkler()])
    yield "FromFunction", Case("strings", lambda: d.FromFunction(_letters_apart, pairwise=True))
    yield "Hamming()", Case("strings", d.Hamming, prepare=lambda X: [x for x in X if len(x) == 60])
    elastic = [
        d.DTW(),
        d.DTW(window=0.3, local="sqeuclidean", root=True),
        d.ERP(),
        d.MSM(),
        d.TWE(),
        d.LCSS(0.5),
        d.ADTW(0.5),
    ]
    for kind in ("series", "series, float32"):
        yield from _named(kind, [*elastic, d.SoftDTW(0.5)])
    for kind in ("sets", "sets, float32", "sets, unit norm"):
        yield from _named(
            kind,
            [
                d.ModifiedHausdorff(),
                d.Hausdorff(),
                d.Chamfer(),
                d.SlicedWasserstein(33),
            ],
        )
        for p in (1, 2):  # of few and small sets: a pair costs the cube of their size
            make, few = partial(d.Wasserstein, p), lambda X: [X[i][:12] for i in range(min(80, len(X)))]
            yield f"Wasserstein({p}), {kind}", Case(kind, make, prepare=few)
    yield from _named("graphs", [d.MMD(4, 200), d.MMD(3, 150, kernel="match")])


def _letters_apart(X: Any, Y: Any) -> np.ndarray:
    """Return the differences of the numbers of letters."""
    return np.abs(np.array([len(x) for x in X])[:, None] - np.array([len(y) for y in Y])[None]).astype(float)


def _embeddings() -> Iterator[tuple[str, Case]]:
    k, d, seed = kernels, distances, {"random_state": 0}
    for data, kernel, how in [
        ("strings", k.GappyKmers(normalize=True), "uniform"),
        ("strings", k.Normalized(k.Spectrum(k=4)), "rpcholesky"),
        ("graphs", k.WeisfeilerLehman(n_iter=2), "leverage"),
        ("series", k.GlobalAlignment(2.0), "uniform"),
        ("series, float32", k.DistanceRBF(d.DTW(), gamma=1e-3), "uniform"),
        ("sets, float32", k.DistanceRBF(d.ModifiedHausdorff(), gamma=0.3), "uniform"),
        ("sets, unit norm", k.DistanceRBF(d.ModifiedHausdorff(), gamma=0.3), "uniform"),
        ("vectors", k.HypersphericalHeat(2.0), "uniform"),
        ("vectors, float32", k.Optical(0.1, normalize=True), "kmeans++"),
    ]:
        m = 301 if data.startswith("vectors") else 201 if data == "strings" else 41
        name = f"Nystroem({type(kernel).__name__}, {how}), {data}"
        make = lambda kernel=kernel, m=m, how=how: _hashed(sm.Nystroem(kernel, m, how, **seed))  # noqa: E731
        yield name, Case(data, make)
    for data, distance in [
        ("strings", d.Levenshtein()),
        ("series", d.DTW()),
        ("series, float32", d.MSM()),
        ("sets", d.Hausdorff()),
        ("sets, float32", d.SlicedWasserstein(33)),
        ("graphs", d.MMD(4, 200)),
    ]:
        objects = embeddings.Representatives() if data == "graphs" else "auto"
        make = lambda distance=distance, objects=objects: _hashed(sm.D2KE(distance, 65, objects, **seed))  # noqa: E731
        yield f"D2KE({type(distance).__name__}), {data}", Case(data, make)
        make = lambda distance=distance: _hashed(sm.PseudoEuclidean(distance, 9, 31, **seed))  # noqa: E731
        yield f"PseudoEuclidean({type(distance).__name__}), {data}", Case(data, make)
    yield "D2KESearch", Case("strings", lambda: sm.recipes.d2ke(d.Levenshtein(), 33, gamma="tune", cv=3, **seed))
    yield "KernelFeatures", Case("strings", lambda: sm.KernelFeatures(k.Mismatch(k=3, normalize=True), 128))
    weighted = lambda: make_pipeline(sm.KernelFeatures(k.Spectrum((1, 3)), 128), sm.FeatureWeights(sublinear=True))  # noqa: E731
    yield "FeatureWeights", Case("strings", weighted)
    for how in ("match", "match_iso", "optical", "gaussian", "gaussian_complex", "gaussian_eig"):
        make = lambda how=how: sm.GraphletSampling(4, 200, features=how, n_components=65, **seed)  # noqa: E731
        yield f"GraphletSampling({how})", Case("graphs", make)
    yield "GraphletSampling, FeatureScaler", Case("graphs", lambda: make_pipeline(_graphlets(), FeatureScaler()))
    for data in ("signed vectors", "signed vectors, float32"):
        for options in ({}, {"structured": True, "bias": 0.5, "quantize": 8}):
            make = lambda options=options: _hashed(sm.OpticalRandomFeatures(129, **options, **seed))  # noqa: E731
            yield f"OpticalRandomFeatures{', structured' if options else ''}, {data}", Case(data, make)
    for data in ("vectors", "vectors, float32", "frequencies"):
        make = lambda: _hashed(sm.HeatRandomFeatures(129, 2.0, **seed))  # noqa: E731
        yield f"HeatRandomFeatures, {data}", Case(data, make)
    for data in ("sets", "sets, float32", "sets, unit norm"):
        yield f"MeanMapFeatures, {data}", Case(data, lambda: _hashed(sm.MeanMapFeatures(130, 0.2, **seed)))
    of_graphs = lambda: make_pipeline(GraphToSets(1, 2, "both"), sm.MeanMapFeatures(130, 0.2, **seed))  # noqa: E731
    yield "GraphToSets, MeanMapFeatures", Case("graphs", of_graphs)
    of_series = lambda: make_pipeline(SeriesToSets(5, time=1.0), sm.MeanMapFeatures(130, 0.2, **seed))  # noqa: E731
    yield "SeriesToSets, MeanMapFeatures", Case("series", of_series)
    yield "AttributeScaler", Case("graphs", lambda: make_pipeline(AttributeScaler(), _scaled_graphs()))
    yield "SeriesVectors", Case("series, one length", SeriesVectors)
    for data in ("series", "series, float32", "series, one length"):
        make = lambda: make_pipeline(embeddings.Hydra(6, 5, **seed), embeddings.SparseScaler())  # noqa: E731
        yield f"Hydra, SparseScaler, {data}", Case(data, make)
        yield f"IntervalQuantiles, {data}", Case(data, lambda: sm.IntervalQuantiles(4, 3))
    for data in ("series", "series, float32"):
        for family in ("minirocket", "multirocket"):
            make = lambda family=family: _hashed(sm.RandomConvolutions(1344, family, **seed))  # noqa: E731
            yield f"RandomConvolutions({family}), {data}", Case(data, make)
    column = lambda: make_pipeline(FromColumn(), sm.KernelFeatures(k.Spectrum(k=2), 64))  # noqa: E731
    yield "FromColumn", Case("strings", column, prepare=as_column)


def _hashed(embedding: Any) -> Pipeline:
    """Return the embedding with bits behind it: vectors and codes are both looked at."""
    return make_pipeline(embedding, sm.SignRandomProjection(520, random_state=0))


def _graphlets() -> Any:
    return sm.GraphletSampling(3, 150, features="match", random_state=0)


def _scaled_graphs() -> Any:
    kernel = kernels.Propagation(n_iter=2, bin_width=0.3, use="attributes")
    return sm.Nystroem(kernel, 21, random_state=0)


def _samplers() -> Iterator[tuple[str, Case]]:
    e = embeddings
    for data, samplers in {
        "strings": [e.RandomStrings(), e.Mosaics(), e.Mixture([e.RandomStrings(), e.Mosaics()])],
        "series": [e.RandomSeries(), e.Mosaics()],
        "series, float32": [e.RandomSeries()],
        "sets": [e.RandomSets()],
        "sets, unit norm": [e.RandomSets()],
    }.items():
        yield from ((f"{short(sampler)}, {data}", Case(data, lambda sampler=sampler: sampler)) for sampler in samplers)


def _codes() -> Iterator[tuple[str, Case]]:
    c, seed = codes, {"random_state": 0}
    for data in ("signed vectors", "signed vectors, float32", "vectors"):
        for how in ("gaussian", "structured", "hadamard"):
            make = lambda how=how: c.SignRandomProjection(1032, how, **seed)  # noqa: E731
            yield f"SignRandomProjection({how}), {data}", Case(data, make)
        yield f"PCA, ITQ, {data}", Case(data, lambda: sm.recipes.pca_itq(16, 0.5, 0.8, **seed))
        pca = lambda: make_pipeline(sm.GeneralizedNystroemPCA(24, 0.4, 0.7, **seed), c.SignCodes())  # noqa: E731
        yield f"PCA, SignCodes, {data}", Case(data, pca)
        for output in ("bits", "floats"):
            make = lambda output=output: c.FractionalPowerEncoder(3.0, 520, output, **seed)  # noqa: E731
            yield f"FractionalPowerEncoder({output}), {data}", Case(data, make)
    for output in ("bits", "counts"):
        more = {"output": output, **seed}
        yield f"NGramEncoder({output})", Case("strings", lambda more=more: c.NGramEncoder(3, 520, **more))
        yield f"GraphHDEncoder({output})", Case("graphs", lambda more=more: c.GraphHDEncoder(520, **more))
        yield f"LevelEncoder({output})", Case("signed vectors", lambda more=more: c.LevelEncoder(33, 520, **more))
        for data in ("series", "series, float32"):
            make = lambda more=more: c.SequenceEncoder(33, 3, 520, **more)  # noqa: E731
            yield f"SequenceEncoder({output}), {data}", Case(data, make)
    counted = kernels.Sum([kernels.Spectrum(k=2), kernels.Spectrum(k=3, normalize=True)])
    for output in ("bits", "onehot"):
        more = {"bits": 2, "output": output, **seed}
        yield f"MinHash({output})", Case("strings", lambda more=more: c.MinHash(counted, 520, **more))
        yield f"MinHash({output}) of vectors", Case("frequencies", lambda more=more: c.MinHash(None, 520, **more))
    yield "LevelEncoder of numbers", Case("numbers", lambda: c.LevelEncoder(33, 520, **seed))
    yield "RecordEncoder", Case("records", _bundle)


def _bundle() -> Any:
    of_strings = codes.NGramEncoder(3, 520, random_state=0)
    return codes.RecordEncoder([(0, of_strings), (1, codes.LevelEncoder(33, 520, random_state=0))], random_state=0)


def _learners() -> Iterator[tuple[str, Case]]:
    k, d, seed = kernels, distances, {"random_state": 0}
    yield "NysHD", Case("strings", lambda: sm.recipes.nyshd(k.GappyKmers(), 101, 1032, **seed))
    graph_kernel = k.WeisfeilerLehman(n_iter=2)
    nyshd = lambda: sm.recipes.nyshd(graph_kernel, 31, 520, init="bundle", **seed)  # noqa: E731
    yield "NysHD, graphs", Case("graphs", nyshd)
    yield "HDClassifier of codes", Case("codes", lambda: sm.HDClassifier(max_iter=5, **seed))
    for update in ("averaged", "margin", "ridge"):
        model = lambda update=update: sm.HDClassifier(update, probability=True, **seed)  # noqa: E731
        yield f"HDClassifier, {update}", Case("codes", model)
    for data in ("signed vectors", "signed vectors, float32"):
        yield f"HDClassifier, {data}", Case(data, lambda: sm.HDClassifier(max_iter=3, **seed))
    for learner in (LinearSVC(random_state=0), LogisticRegression(), Ridge()):
        data, distance = ("series", d.DTW()) if isinstance(learner, Ridge) else ("strings", d.Levenshtein())
        steps = [("d2ke", sm.D2KE(distance, 65, **seed)), ("learner", learner)]
        yield f"D2KE, {type(learner).__name__}", Case(data, lambda steps=steps: sm.Pipeline(steps))
    graphlet_optical = lambda: sm.recipes.graphlet_optical(4, 200, n_components=65, **seed)  # noqa: E731
    yield "GSA-phi", Case("graphs", graphlet_optical)
    heat = lambda: learn.HeatSVC(contrast=2.0, C=10.0)  # noqa: E731
    yield "HeatSVC, vectors", Case("vectors", heat)
    yield "HeatSVC, vectors, float32", Case("vectors, float32", heat)
    for data, kernel in [("strings", k.Spectrum(k=4)), ("graphs", graph_kernel), ("series", k.GlobalAlignment(2.0))]:
        yield f"KernelSVC, {data}", Case(data, lambda kernel=kernel: sm.KernelSVC(k.Normalized(kernel)))
    yield "KernelSVR", Case("series", lambda: sm.KernelSVR(k.GlobalAlignment(2.0)))
    yield "KernelRidge", Case("graphs", lambda: sm.KernelRidge(k.Normalized(graph_kernel)))
    process = lambda: sm.GaussianProcessRegressor(k.Normalized(graph_kernel))  # noqa: E731
    yield "GaussianProcessRegressor", Case("graphs", process)
    process = lambda: sm.GaussianProcessRegressor(k.GlobalAlignment(2.0), n_landmarks=40, **seed)  # noqa: E731
    yield "GaussianProcessRegressor, landmarks", Case("series", process)
    process = lambda: sm.GaussianProcessClassifier(k.Spectrum(k=4, normalize=True), n_landmarks=40, **seed)  # noqa: E731
    yield "GaussianProcessClassifier", Case("strings", process)
    clusters = lambda: sm.KernelKMeans(k.Spectrum(k=4, normalize=True), 4, 40, **seed)  # noqa: E731
    yield "KernelKMeans", Case("strings", clusters)
    yield "KernelKMeans, DTW", Case("series", lambda: sm.KernelKMeans(d.DTW(), 4, 40, **seed))
    for data, metric in [("strings", k.Spectrum(k=4, normalize=True)), ("series", d.DTW()), ("graphs", graph_kernel)]:
        make = lambda metric=metric: sm.HDBSCAN(metric, 3, 2, **seed)  # noqa: E731
        yield f"HDBSCAN({type(metric).__name__}), {data}", Case(data, make)
    for data, metric in [
        ("strings", d.Levenshtein()),
        ("strings", k.Spectrum(k=4)),
        ("series", d.DTW()),
        ("series, float32", d.DTW()),
        ("series, float32", d.ERP()),
        ("sets", d.ModifiedHausdorff()),
        ("sets, unit norm", d.Chamfer()),
        ("vectors", k.HypersphericalHeat(2.0)),
    ]:
        name = f"{type(metric).__name__}, {data}"
        make = lambda metric=metric: sm.KNeighborsClassifier(metric, 5, "distance")  # noqa: E731
        yield f"KNeighborsClassifier of {name}", Case(data, make)
    yield "NearestNeighbors of DTW, series", Case("series", lambda: sm.NearestNeighbors(d.DTW(), 3))
    yield "KNeighborsRegressor of DTW, series", Case("series", lambda: sm.KNeighborsRegressor(d.DTW(), 3))
    new = {"novelty": True}
    yield "OutlierDetector, strings", Case("strings", lambda: sm.OutlierDetector(d.Levenshtein(), **new))
    yield "OutlierDetector, series", Case("series", lambda: sm.OutlierDetector(d.DTW(), **new))
    by_span = lambda: sm.OutlierDetector(graph_kernel, "reconstruction", n_components=31, **new, **seed)  # noqa: E731
    yield "OutlierDetector(reconstruction), graphs", Case("graphs", by_span)
    yield "VoteClassifier", Case("strings", lambda: sm.VoteClassifier([_of_spectra(), sm.KNeighborsClassifier(_PAIRS)]))
    voters = lambda: sm.VoteRegressor([sm.KNeighborsRegressor(d.DTW(), 3), sm.KNeighborsRegressor(d.ERP())])  # noqa: E731
    yield "VoteRegressor", Case("series", voters)
    for score in ("lac", "aps", "margin"):
        sets = lambda score=score: sm.ConformalClassifier(_of_spectra(True), "cross", score, **seed)  # noqa: E731
        yield f"ConformalClassifier, {score}", Case("strings", sets, CONFORMAL)
    of_series = sm.KernelRidge(k.GlobalAlignment(2.0))
    intervals = lambda: sm.ConformalRegressor(of_series, "cross", **seed)  # noqa: E731
    yield "ConformalRegressor", Case("series", intervals, CONFORMAL)


_PAIRS = kernels.GappyKmers(normalize=True)


def _of_spectra(probability: bool = False) -> Any:
    return sm.KernelSVC(kernels.Spectrum(k=4, normalize=True), probability=probability)


def _searches() -> Iterator[tuple[str, Case]]:
    for kind in ("exact", "multihash", "ivf"):
        index = lambda kind=kind: search.HammingIndex(256, kind, random_state=0)  # noqa: E731
        yield f"HammingIndex({kind})", Case("codes", index, one_machine=kind == "ivf")
    for rerank in (None, "projected", "kernel"):
        make = lambda rerank=rerank: sm.SimilaritySearch(_encoder(_PAIRS), rerank, n_candidates=50)  # noqa: E731
        yield f"SimilaritySearch({rerank})", Case("strings", make)
    of_sets = kernels.DistanceRBF(distances.ModifiedHausdorff(), gamma=0.3)
    yield "HammingIndex(jaccard)", Case("codes", lambda: search.HammingIndex(256, metric="jaccard"))
    by_features = lambda: search.FeatureIndex(kernels.MinMax(kernels.Spectrum(3)))  # noqa: E731
    yield "FeatureIndex", Case("strings", by_features)
    make = lambda: sm.SimilaritySearch(by_features(), distances.Levenshtein(), n_candidates=50)  # noqa: E731
    yield "SimilaritySearch of a FeatureIndex", Case("strings", make)
    for bits in (1, 2, 4, 8):
        by_vectors = lambda bits=bits: search.VectorIndex(bits, random_state=0)  # noqa: E731
        yield f"VectorIndex({bits})", Case("vectors", by_vectors)
    make = lambda: sm.SimilaritySearch(_encoder(of_sets), "kernel", n_candidates=50)  # noqa: E731
    yield "SimilaritySearch(kernel) of sets", Case("sets, unit norm", make)


def _maps() -> Iterator[tuple[str, Case]]:
    k, d = kernels, distances
    for data, similarity in (
        ("strings", k.GappyKmers(normalize=True)),
        ("strings", d.Levenshtein()),
        ("graphs", k.WeisfeilerLehman(n_iter=2)),
        ("series, float32", d.MSM()),
    ):
        make = lambda similarity=similarity: sm.SimilarityMap(similarity, n_landmarks=31, random_state=0)  # noqa: E731
        yield f"SimilarityMap({type(similarity).__name__}), {data}", Case(data, make)


def _encoder(kernel: Any) -> Pipeline:
    return _hashed(sm.Nystroem(kernel, 41, random_state=0))
