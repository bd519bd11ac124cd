"""With a fitted model the result of an object has the same bits whatever surrounds it.

Objects alone, in another order, in blocks, with neighbours of another type, in another layout, with one thread and with
several, within little memory: the floats, codes, labels and neighbours are those of the whole collection.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

import similia as sm
from samples.graphs import batch, samples
from similia import distances, kernels
from similia.codes import GeneralizedNystroemPCA
from similia.codes.sign_projection import orthogonal_projection
from similia.core.config import limited_to
from similia.kernels.heat import HypersphericalHeat
from similia.kernels.hypersphere import Cosine
from similia.kernels.vectors import Optical
from similia.objects import take

N = 90


def strings(dtype):
    random = np.random.default_rng(0)
    return ["".join(random.choice(list("ACGT"), size)) for size in random.integers(3, 30, N)]


def series(dtype):
    random = np.random.default_rng(1)
    return [random.normal(size=(size, 2)).astype(dtype) for size in random.integers(4, 20, N)]


def sets(dtype):
    random = np.random.default_rng(2)
    points = [random.normal(size=(size, 9)) for size in random.integers(1, 14, N)]
    return [(x / np.linalg.norm(x, axis=1)[:, None]).astype(dtype) for x in points]  # of norm 1: near each other


def graphs(dtype):
    return batch(samples(3, N, weighted=True), attributes=True, edge_labels=True, weighted=True)


def vectors(dtype):
    random = np.random.default_rng(4)
    return np.abs(random.normal(size=(N, 37))).astype(dtype)


def embedded(kernel):
    return sm.Nystroem(kernel, 40, random_state=0, spectrum="flip")


SERIES = {
    "DTW": distances.DTW(),
    "windowed DTW": distances.DTW(window=0.2),
    "ERP": distances.ERP(),
    "TWE": distances.TWE(),
    "MSM": distances.MSM(),
    "ADTW": distances.ADTW(),
    "soft DTW": distances.SoftDTW(),
}
SETS = {
    "ModifiedHausdorff": distances.ModifiedHausdorff(),
    "Hausdorff, manhattan": distances.Hausdorff("manhattan"),
    "Chamfer, squares": distances.Chamfer("sqeuclidean"),
    "SlicedWasserstein": distances.SlicedWasserstein(20),
    "Wasserstein": distances.Wasserstein(),
}
STRINGS = {"Levenshtein": distances.Levenshtein(), "JaroWinkler": distances.JaroWinkler()}
OF_DISTANCES = {
    name: (make, distance)
    for make, some in ((series, SERIES), (sets, SETS), (strings, STRINGS))
    for name, distance in some.items()
}
RANDOM_SETS = sm.embeddings.RandomSets(radius=1.0, n_dims=9, non_negative=False)
KERNELS = {
    "Spectrum": (strings, kernels.Spectrum(k=2)),
    "WeightedDegree": (strings, kernels.Normalized(kernels.WeightedDegree(degree=3))),
    "GlobalAlignment": (series, kernels.GlobalAlignment()),
    "WeisfeilerLehman": (graphs, kernels.WeisfeilerLehman(n_iter=2)),
    "Propagation": (graphs, kernels.Propagation(n_iter=2, use="attributes", bin_width=0.5)),
    "HypersphericalHeat": (vectors, HypersphericalHeat()),
    "Cosine": (vectors, Cosine()),
    "Optical": (vectors, Optical(normalize=True)),
    "FromDistance": (sets, kernels.FromDistance(distances.ModifiedHausdorff(), RANDOM_SETS, 0.3, 40)),
}
VECTORS = {
    "HeatRandomFeatures": sm.HeatRandomFeatures(300, random_state=0),
    "HeatRandomFeatures, sqrt": sm.HeatRandomFeatures(300, mapping="sqrt", random_state=0),
    "OpticalRandomFeatures": sm.OpticalRandomFeatures(300, random_state=0),
    "OpticalRandomFeatures, structured": sm.OpticalRandomFeatures(300, random_state=0, structured=True),
    "GeneralizedNystroemPCA": GeneralizedNystroemPCA(20, random_state=0),
    "FractionalPowerEncoder": sm.FractionalPowerEncoder(512, output="floats", random_state=0),
    "FractionalPowerEncoder, bits": sm.FractionalPowerEncoder(512, random_state=0),
    "SignRandomProjection": sm.SignRandomProjection(512, random_state=0),
    "SignRandomProjection, structured": sm.SignRandomProjection(512, method="structured", random_state=0),
    "ITQ": make_pipeline(GeneralizedNystroemPCA(16, random_state=0), sm.ITQ(16, random_state=0)),
    "HDClassifier": make_pipeline(sm.SignRandomProjection(512, random_state=0), sm.HDClassifier(random_state=0)),
    "HDClassifier, ridge": make_pipeline(sm.SignRandomProjection(512, random_state=0), sm.HDClassifier("ridge")),
}


def models():
    """Yield name, objects and model; what the model gives is called `transform` or `predict`."""
    for name, (make, distance) in OF_DISTANCES.items():
        yield f"DistanceRBF({name})", make, embedded(kernels.DistanceRBF(distance, 0.05))
        yield f"D2KE({name})", make, sm.D2KE(distance, 48, random_state=0)
        yield f"PseudoEuclidean({name})", make, sm.PseudoEuclidean(distance, 20, n_landmarks=40, random_state=0)
    for name, (make, kernel) in KERNELS.items():
        yield f"Nystroem({name})", make, embedded(kernel)
    for name, model in VECTORS.items():
        yield name, vectors, model
    for features in ("gaussian", "gaussian_eig", "optical"):
        yield f"GraphletSampling({features})", graphs, sm.GraphletSampling(4, 30, "uniform", features, 40, 0)
    yield "Hydra", series, make_pipeline(sm.embeddings.Hydra(6, 5, 0), sm.embeddings.SparseScaler())
    yield "IntervalQuantiles", series, sm.IntervalQuantiles()
    for family in ("minirocket", "multirocket"):
        yield f"RandomConvolutions({family})", series, sm.RandomConvolutions(1344, family, random_state=0)
    yield "KernelSVC", strings, sm.KernelSVC(kernels.Spectrum(k=2))
    yield "HeatSVC", vectors, sm.HeatSVC()


MODELS = {name: (make, model) for name, make, model in models()}
pytestmark = [pytest.mark.same_bits, pytest.mark.filterwarnings("ignore:.* similarity 0 to all landmarks")]


def results_of(model, X):
    return model.transform(X) if hasattr(model, "transform") else model.decision_function(X)


def fitted(name, dtype):
    make, model = MODELS[name]
    X = make(dtype)
    return model.fit(X, np.arange(N) % 2), X


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        (name, dtype)
        for name, (make, _) in MODELS.items()
        for dtype in (np.float32, np.float64)
        if dtype == np.float64 or make not in (strings, graphs)  # which have no type of floats
    ],
)
def test_the_result_of_an_object_does_not_depend_on_what_surrounds_it(name, dtype):
    model, X = fitted(name, dtype)
    expected = results_of(model, X)
    order = np.random.default_rng(0).permutation(N)
    np.testing.assert_array_equal(results_of(model, take(X, order)), expected[order])
    for i in (0, 41, N - 1):
        np.testing.assert_array_equal(results_of(model, take(X, [i])), expected[i : i + 1])
    for rows in (np.arange(3, 20), np.arange(7, N, 13)):
        np.testing.assert_array_equal(results_of(model, take(X, rows)), expected[rows])
    for limit in (1, 2):
        with sm.config(max_memory="4KiB"), limited_to(limit), threadpool_limits(limit):
            np.testing.assert_array_equal(results_of(model, X), expected)


@pytest.mark.parametrize("name", MODELS)
def test_fits_do_not_depend_on_threads_or_memory(name):
    expected = results_of(*fitted(name, np.float64))
    with sm.config(max_memory="1MiB"), limited_to(1), threadpool_limits(1):
        np.testing.assert_array_equal(results_of(*fitted(name, np.float64)), expected)


OF_ARRAYS = [name for name, (make, _) in MODELS.items() if make in (series, sets)]


@pytest.mark.parametrize("name", OF_ARRAYS)
def test_neighbours_of_another_type_change_nothing(name):
    model, X = fitted(name, np.float32)
    expected = results_of(model, X)
    wider = X[3].astype(np.float64) + 1e-12
    mixed = results_of(model, [*X[:10], wider, *X[10:20]])
    np.testing.assert_array_equal(np.delete(mixed, 10, axis=0), expected[:20])
    np.testing.assert_array_equal(results_of(model, [wider]), mixed[10:11])
    assert mixed.dtype == expected.dtype


OF_VECTORS = [name for name, (make, _) in MODELS.items() if make is vectors]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", OF_VECTORS)
def test_the_layout_of_an_array_changes_nothing(name, dtype):
    model, X = fitted(name, dtype)
    expected = results_of(model, X)
    np.testing.assert_array_equal(results_of(model, np.asfortranarray(X)), expected)
    wide = np.zeros((2 * N, 3 * X.shape[1]), dtype)
    wide[::2, ::3] = X
    np.testing.assert_array_equal(results_of(model, wide[::2, ::3]), expected)
    np.testing.assert_array_equal(results_of(model, X[::-1])[::-1], expected)
    read_only = X.copy()
    read_only.flags.writeable = False
    np.testing.assert_array_equal(results_of(model, read_only), expected)


@pytest.mark.parametrize(
    "name", [name for name in OF_VECTORS if name.startswith(("Heat", "Optical", "Nystroem(Hyper"))]
)
def test_sparse_rows_do_not_depend_on_others(name):
    make, model = MODELS[name]
    X = make(np.float64)
    X[X < 1] = 0
    rows = sp.csr_array(X)
    model.fit(rows, np.arange(N) % 2)
    expected = results_of(model, rows)
    for part in ([4], [5, 80], np.arange(9, 70)):
        np.testing.assert_array_equal(results_of(model, rows[part]), expected[part])


@pytest.mark.parametrize("threads", [1, 2])
def test_directions_do_not_depend_on_threads(threads):
    """777 numbers in 64 features: more threads of BLAS gave other last bits."""
    X = np.abs(np.random.default_rng(0).normal(size=(3, 777)))
    expected = sm.HeatRandomFeatures(64, random_state=0).fit(X).directions_
    with threadpool_limits(threads):
        np.testing.assert_array_equal(sm.HeatRandomFeatures(64, random_state=0).fit(X).directions_, expected)
        projection = orthogonal_projection(900, 777, np.random.default_rng(0))
    np.testing.assert_array_equal(projection, orthogonal_projection(900, 777, np.random.default_rng(0)))


@pytest.mark.parametrize("name", OF_DISTANCES)
def test_an_object_is_at_distance_0_from_itself(name):
    make, distance = OF_DISTANCES[name]
    for dtype in (np.float32, np.float64):
        X = make(dtype)
        assert not distance(X).diagonal().any()
        assert not distance(take(X, [5]), X)[0, 5]


@pytest.mark.parametrize("name", OF_DISTANCES)
def test_neighbours_do_not_depend_on_other_queries(name):
    make, distance = OF_DISTANCES[name]
    X = make(np.float32)
    encoder = make_pipeline(sm.D2KE(distance, 64, random_state=0), sm.SignRandomProjection(256, random_state=0))
    for rerank in (distance, "projected"):
        search = sm.SimilaritySearch(encoder, rerank, n_candidates=30).fit(X)
        values, ids = search.kneighbors(X, 5)
        for rows in ([0], np.arange(20, 60)):
            found = search.kneighbors(take(X, rows), 5)
            np.testing.assert_array_equal(found[0], values[rows])
            np.testing.assert_array_equal(found[1], ids[rows])


@pytest.mark.parametrize(
    "name",
    ["Nystroem(HypersphericalHeat)", "HeatRandomFeatures", "GeneralizedNystroemPCA", "ITQ", "SignRandomProjection"],
)
def test_rows_of_single_precision_in_an_array_of_double_keep_their_result(name):
    model, X = fitted(name, np.float32)
    expected = results_of(model, X)
    found = results_of(model, X.astype(np.float64))
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
