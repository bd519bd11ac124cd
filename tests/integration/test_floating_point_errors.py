"""With ``numpy.seterr(all="raise")`` everything gives the same as without: what underflows is meant to."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from test_magnitudes import CASES

import similia as sm
from similia import distances, kernels
from similia.kernels import heat as _heat

rng = np.random.default_rng(1)
STRINGS = ["".join(rng.choice(list("ACGT"), n)) for n in (5, 9, 30, 0, 12, 17)]
GRAPHS = [nx.path_graph(4), nx.cycle_graph(6), nx.star_graph(3), nx.complete_graph(4), nx.empty_graph(2)]
VECTORS = np.abs(rng.normal(size=(24, 8))) * np.exp(rng.uniform(-200, 0, (24, 8)))  # sparse in all but name
FAR = [np.array([0.0, 1.0]), np.array([1e3, 2e3, 1e5]), np.array([-1e6])]  # similarities below the smallest float64
LABELS = np.arange(24) % 2
BY_DISTANCE = [
    distances.Levenshtein(),
    distances.DamerauLevenshtein(),
    distances.Hamming(),
    distances.JaroWinkler(),
]
OF_STRINGS = [
    kernels.Spectrum(k=2, normalize=True),
    kernels.GappyKmers(normalize=True),
    kernels.GappedKmers(normalize=True, center_weight=50),
    kernels.Mismatch(normalize=True, reverse_complement=True),
    kernels.WeightedDegree(normalize=True),
]
OF_GRAPHS = [
    kernels.WeisfeilerLehman(normalize=True),
    kernels.ShortestPath(),
    kernels.EdgeHistogram(),
    kernels.VertexHistogram(),
    kernels.Propagation(),
    kernels.Graphlet(size=3),
]
RUNS = {
    **{f"{kernel}": (lambda k=kernel: k(STRINGS)) for kernel in OF_STRINGS},
    **{f"{kernel}": (lambda k=kernel: k(GRAPHS)) for kernel in OF_GRAPHS},
    **{f"{distance}": (lambda d=distance: d(["ACGT", "GATT", "TTTT"])) for distance in BY_DISTANCE},
    **{
        f"graphlets {name}": lambda name=name: sm.GraphletSampling(
            4, n_samples=60, features=name, n_components=20, random_state=0
        ).fit_transform(GRAPHS[:4])
        for name in ("match_iso", "gaussian", "gaussian_complex", "gaussian_eig", "optical")
    },
    "heat far": lambda: kernels.HypersphericalHeat(t=1e-3)(VECTORS),
    "heat gradient": lambda: kernels.HypersphericalHeat(t=0.01).gradient(VECTORS),
    "heat profile": lambda: kernels.heat_profile(np.linspace(0, 2, 600), n=50, t=1e-3),
    "heat profile of few": lambda: kernels.heat_profile([0.0, 1e-9, 1.0, 2.0], n=300, t=1e-3),
    "cosine": lambda: kernels.Cosine()(VECTORS),
    "contrast": lambda: kernels.suggest_contrast(VECTORS),
    "rbf far": lambda: kernels.DistanceRBF(distances.DTW(), 10.0)(FAR),
    "rbf far single": lambda: kernels.DistanceRBF(distances.DTW(), 10.0)([x.astype(np.float32) for x in FAR]),
    "alignment far": lambda: kernels.GlobalAlignment(0.1)(FAR),
    "alignment": lambda: kernels.GlobalAlignment(0.1).log_values(FAR),
    "from distance": lambda: kernels.FromDistance(distances.DTW(), FAR, gamma=1.0)(FAR),
    "soft": lambda: distances.SoftDTW(gamma=0.01)(FAR),
    "sets": lambda: distances.Hausdorff()([VECTORS[:3], VECTORS[3:5]]),
    "sliced": lambda: distances.SlicedWasserstein(8)([VECTORS[:3], VECTORS[3:5]]),
    "mmd2": lambda: distances.mmd2(FAR, FAR[::-1], kernels.DistanceRBF(distances.DTW(), 10.0), unbiased=False),
    "mmd of graphs": lambda: distances.MMD(4, n_samples=50, bandwidth=0.1, random_state=0)(GRAPHS[:4]),
    "mmd of graphs far": lambda: distances.MMD(4, n_samples=50, bandwidth=0.01, random_state=0)(GRAPHS[:4]),
    "optical": lambda: kernels.Optical(normalize=True)(VECTORS),
    "optical features": lambda: kernels.Optical().features(VECTORS, 64).toarray(),
    "Nystroem": lambda: sm.Nystroem(kernels.HypersphericalHeat(t=0.01), n_components=8, random_state=0).fit_transform(
        VECTORS
    ),
    "Nystroem of distances": lambda: sm.Nystroem(
        kernels.DistanceRBF(distances.DTW(), 10.0), n_components=3, random_state=0
    ).fit_transform(FAR),
    "D2KE": lambda: sm.D2KE(distances.DTW(), n_components=8, gamma=10.0, random_state=0).fit_transform(FAR),
    "PseudoEuclidean": lambda: sm.PseudoEuclidean(distances.DTW()).fit_transform(FAR),
    "HeatRandomFeatures": lambda: sm.HeatRandomFeatures(n_components=16, random_state=0).fit_transform(VECTORS),
    "heat times": lambda: sm.HeatRandomFeatures(n_components=16, t=1e-3, random_state=0).fit_transform(VECTORS),
    "OpticalRandomFeatures": lambda: sm.OpticalRandomFeatures(16, random_state=0).fit_transform(VECTORS),
    "SignRandomProjection": lambda: sm.SignRandomProjection(64, random_state=0).fit_transform(VECTORS),
    "LevelEncoder": lambda: sm.LevelEncoder(64, random_state=0).fit_transform(VECTORS),
    "FractionalPowerEncoder": lambda: sm.FractionalPowerEncoder(64, random_state=0).fit_transform(VECTORS),
    "Hydra": lambda: make_pipeline(sm.embeddings.Hydra(4, 3, 0), sm.embeddings.SparseScaler()).fit_transform(FAR),
    "IntervalQuantiles": lambda: sm.IntervalQuantiles().fit_transform(FAR),
    "SequenceEncoder": lambda: sm.SequenceEncoder(64, random_state=0).fit_transform(FAR),
    "RandomConvolutions": lambda: sm.RandomConvolutions(672, "multirocket", random_state=0).fit_transform(FAR),
    "NGramEncoder": lambda: sm.NGramEncoder(64, random_state=0).fit_transform(STRINGS),
    "GraphHDEncoder": lambda: sm.GraphHDEncoder(64, random_state=0).fit_transform(GRAPHS),
    "GeneralizedNystroemPCA": lambda: sm.GeneralizedNystroemPCA(3, random_state=0).fit_transform(VECTORS),
    "sampling by norm": lambda: sm.GeneralizedNystroemPCA(2, 20, 8, sampling="norm", random_state=0).fit_transform(
        VECTORS
    ),
    "ITQ": lambda: sm.ITQ(8, max_iter=3, random_state=0).fit_transform(VECTORS),
    "HDClassifier": lambda: sm.HDClassifier(random_state=0).fit(VECTORS, LABELS).decision_function(VECTORS),
    "HDClassifier, margin": lambda: (
        sm.HDClassifier("margin", random_state=0).fit(VECTORS, LABELS).predict_proba(VECTORS)
    ),
    "HDClassifier, ridge": lambda: sm.HDClassifier("ridge").fit(VECTORS, LABELS).predict_proba(VECTORS),
    "HeatSVC": lambda: sm.HeatSVC(contrast=7.0).fit(VECTORS, LABELS).decision_function(VECTORS),
    "KernelSVC": lambda: sm.KernelSVC(kernels.HypersphericalHeat(t=0.01)).fit(VECTORS, LABELS).predict(VECTORS),
    "KNeighborsClassifier": lambda: sm.KNeighborsClassifier(distances.DTW(), 1).fit(FAR, [0, 1, 1]).predict(FAR),
    "weighted by distance": lambda: (
        sm.KNeighborsRegressor(distances.DTW(), 2, weights="distance").fit(FAR, [0.0, 1.0, 2.0]).predict(FAR)
    ),
    "search": lambda: (
        sm.SimilaritySearch(
            make_pipeline(sm.LevelEncoder(64, random_state=0)), rerank=kernels.HypersphericalHeat(t=0.01)
        )
        .fit(VECTORS)
        .kneighbors(VECTORS, 2)[0]
    ),
    "explain": lambda: sm.explain(kernels.DistanceRBF(distances.DTW(), 10.0), FAR[0], FAR[1]).value,
}


@pytest.mark.parametrize("name", RUNS)
def test_nothing_is_raised_that_is_not_an_error(name):
    for kept in (_heat.series, _heat.gradient_series, _heat.slope, _heat.table, _heat.gradient_table):
        kept.cache_clear()
    with np.errstate(all="raise"):
        found = RUNS[name]()
    np.testing.assert_array_equal(found, RUNS[name]())


@pytest.mark.parametrize(("n", "t"), [(3, 3.0), (10, 3.0), (2, 1e-4), (300, 1e-3), (300, 1.0), (10_000, 1e-3)])
@pytest.mark.filterwarnings("ignore:t = .* is too")
def test_tables_of_the_heat_kernel(n, t):
    with np.errstate(all="raise"):
        found = [*_heat.table.__wrapped__(n, t), *_heat.gradient_table.__wrapped__(n, t)]
        found += [_heat.slope.__wrapped__(n, t), _heat.series.__wrapped__(n, t).derivative(8)]
    assert all(np.isfinite(values).all() for values in found[:2] + found[4:6] + found[8:])


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("k", [0, -150, 150])
def test_magnitudes(name, k):
    case = CASES[name]
    k = int(np.clip(k, *case.must))
    X = [np.ldexp(x, k) for x in case.X] if isinstance(case.X, list) else np.ldexp(case.X, k)
    with np.errstate(all="raise"):
        found = case.run(X, 2.0**k)
    np.testing.assert_array_equal(found, case.run(X, 2.0**k))
