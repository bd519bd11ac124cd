"""GSA-phi: means of graphlet maps against sample-by-sample twins, the exact optical kernel, and what users meet."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import RBFSampler
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC

import similia as sm
from naive import graphlets as naive_graphlets
from similia.embeddings import OpticalRandomFeatures
from similia.embeddings.graphlets import FEATURES, GraphletSampling, Quadratic, exact_optical, n_pairs, optical
from similia.objects.graphlets import sample_graphlets

laws = settings(max_examples=20, deadline=None)
M = 37  # not a multiple of a tile


def graphs():
    return [
        nx.gnp_random_graph(15, 0.3, seed=1),
        nx.star_graph(9),
        nx.cycle_graph(12),
        nx.empty_graph(8),
        nx.disjoint_union(nx.path_graph(3), nx.complete_graph(7)),
    ]


def fitted(features="optical", size=5, n_samples=64, n_components=M, **parameters):
    return GraphletSampling(size, n_samples, "random_walk", features, n_components, 0, **parameters).fit(graphs())


def codes_of(model):
    return sample_graphlets(
        graphs(), model.size, model.n_samples, model.sampling, model.flyback, model.small, model.seed_
    )


def random_codes(size, n, s, seed):
    D = size * (size - 1) // 2
    density = np.random.default_rng(seed).random()
    bits = np.random.default_rng(seed).random((n, s, D)) < density
    return (bits * (np.uint64(1) << np.arange(D, dtype=np.uint64))).sum(axis=2).astype(np.uint64)


def twin(model):
    """Return phi of one adjacency matrix, written from the formulas and the drawn numbers."""
    phi = model.map_
    if model.features == "match":
        return lambda A: np.eye(1 << n_pairs(model.size))[
            int("".join(map(str, naive_graphlets.upper_bits(A)[::-1])), 2)
        ]
    if model.features == "gaussian":
        return lambda A: np.sqrt(2 / M) * np.cos(naive_graphlets.upper_bits(A) @ phi.frequencies + phi.phases)
    if model.features == "gaussian_complex":
        waves = lambda A: np.exp(1j * (naive_graphlets.upper_bits(A) @ phi.frequencies)) / np.sqrt(M)  # noqa: E731
        return lambda A: np.concatenate([waves(A).real, waves(A).imag])
    w, b = phi.function.frequencies, phi.function.phases
    return lambda A: np.sqrt(2 / M) * np.cos(np.sort(np.linalg.eigvalsh(A)) @ w + b)


@pytest.mark.parametrize("size", [2, 4, 5])
@pytest.mark.parametrize("features", ["match", "gaussian", "gaussian_complex", "gaussian_eig"])
def test_means_equal_those_sample_by_sample(features, size):
    model = fitted(features, size)
    found = model.transform(graphs())
    found = found.toarray() if issparse(found) else found
    np.testing.assert_allclose(found, naive_graphlets.graphlet_means(codes_of(model), size, twin(model)), atol=2e-6)
    assert found.shape[1] == len(model.get_feature_names_out())


@pytest.mark.parametrize("size", [9, 11])  # codes above 32 bits, patterns without a table
def test_large_graphlets_too(size):
    model = fitted("gaussian_complex", size, n_samples=20)
    found = naive_graphlets.graphlet_means(codes_of(model), size, twin(model))
    np.testing.assert_allclose(model.transform(graphs()), found, atol=2e-6)


def test_classes_are_shares_of_isomorphic_graphlets():
    model = fitted("match_iso", size=4, n_samples=40)
    found = model.transform(graphs())
    assert found.shape == (5, 11)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    for row, codes in zip(found, codes_of(model), strict=True):
        sampled = [nx.from_numpy_array(naive_graphlets.adjacency_of_code(code, 4)) for code in codes]
        kinds = []
        for graph in sampled:
            if not any(nx.is_isomorphic(graph, other) for other in kinds):
                kinds.append(graph)
        counts = [sum(nx.is_isomorphic(graph, kind) for graph in sampled) for kind in kinds]
        assert sorted(counts) == sorted((40 * row[row > 0]).round().astype(int))


@laws
@given(size=st.integers(2, 6), seed=st.integers(0, 2**32 - 1))
def test_optical_features_are_squared_moduli(size, seed):
    rng = np.random.default_rng(seed)
    D = size * (size - 1) // 2
    W = rng.standard_normal((D, 6)) + 1j * rng.standard_normal((D, 6))
    b = rng.standard_normal(6) + 1j * rng.standard_normal(6)
    codes = random_codes(size, 2, 9, seed)
    found = optical(size, W, b).means(codes)
    expected = naive_graphlets.graphlet_means(
        codes, size, lambda A: np.abs(naive_graphlets.upper_bits(A) @ W + b) ** 2 / np.sqrt(6)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@laws
@given(size=st.integers(2, 6), seed=st.integers(0, 2**32 - 1))
def test_exact_map_gives_the_mean_of_the_optical_kernel(size, seed):
    codes = random_codes(size, 2, 5, seed)
    Z = exact_optical(size).means(codes)
    bits = [
        [naive_graphlets.upper_bits(naive_graphlets.adjacency_of_code(code, size)) for code in row] for row in codes
    ]
    expected = [[naive_graphlets.optical_mean_kernel(a, b) for b in bits] for a in bits]
    np.testing.assert_allclose(Z @ Z.T, expected, rtol=1e-12, atol=1e-12)


def test_many_optical_features_approach_the_exact_map():
    exact = fitted(n_components=None).transform(graphs())
    K = exact @ exact.T
    errors = []
    for m in (100, 10_000):
        Z = fitted(n_components=m).transform(graphs()).astype(float)
        errors.append(np.linalg.norm(Z @ Z.T - K) / np.linalg.norm(K))
    assert errors[1] < 0.05
    assert errors[1] < 0.35 * errors[0]


def test_random_features_approach_the_gaussian_kernel():
    model = fitted("gaussian_complex", size=4, n_samples=30, n_components=20_000, bandwidth=1.5)
    Z = model.transform(graphs()).astype(float)
    bits = np.array(
        [[naive_graphlets.upper_bits(naive_graphlets.adjacency_of_code(c, 4)) for c in row] for row in codes_of(model)]
    )
    gaps = ((bits[:, None, :, None] - bits[None, :, None]) ** 2).sum(axis=-1)
    np.testing.assert_allclose(Z @ Z.T, np.exp(-gaps / (2 * 1.5**2)).mean(axis=(2, 3)), atol=0.03)


def test_functions_and_transformers_of_adjacency_bits():
    degrees = fitted(lambda a: a.sum(axis=1, keepdims=True) + np.arange(3))
    np.testing.assert_allclose(
        degrees.transform(graphs()),
        naive_graphlets.graphlet_means(codes_of(degrees), 5, lambda A: A.sum() / 2 + np.arange(3)),
        rtol=1e-6,
    )
    reduced = PCA(2)
    model = fitted(reduced)
    assert not hasattr(reduced, "components_")  # a copy is fitted
    assert model.transform(graphs()).shape == (5, 2)


def test_optical_features_with_scale_and_bias_go_by_moments():
    features = OpticalRandomFeatures(M, random_state=5, scale=1.5, bias=0.7)
    model = fitted(features)
    assert isinstance(model.map_, Quadratic)
    drawn = clone(features).fit(np.zeros((1, 10)))
    expected = naive_graphlets.graphlet_means(
        codes_of(model), 5, lambda A: drawn.transform(naive_graphlets.upper_bits(A)[None] * 1.0)[0]
    )
    np.testing.assert_allclose(model.transform(graphs()), expected, rtol=1e-5, atol=1e-5)


def test_quantised_optical_features_go_pattern_by_pattern():
    model = fitted(OpticalRandomFeatures(M, random_state=5, quantize=8))
    phi = model.map_.function
    expected = naive_graphlets.graphlet_means(
        codes_of(model), 5, lambda A: phi.transform(naive_graphlets.upper_bits(A)[None].astype(np.float32))[0]
    )
    np.testing.assert_allclose(model.transform(graphs()), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.same_bits
@pytest.mark.parametrize("features", FEATURES)
def test_blocks_and_company_change_nothing(features):
    model = fitted(features, size=4)
    whole, alone = model.transform(graphs()), model.transform(graphs()[2:3])
    with sm.config(max_memory=10_000):
        blocks = model.transform(graphs())
    whole, alone, blocks = (v.toarray() if issparse(v) else v for v in (whole, alone, blocks))
    np.testing.assert_allclose(whole, blocks, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(whole[2:3], alone, rtol=1e-6, atol=1e-7)


def test_sparse_histograms_go_into_a_classifier():
    Z = fitted("match", size=4).transform(graphs())
    assert LinearSVC().fit(Z, [0, 1, 0, 1, 1]).predict(Z).shape == (5,)
    assert Z.indices.dtype == Z.indptr.dtype == np.int32


def test_edgeless_graphs_are_the_origin_of_optical_features():
    for n_components in (None, 10):
        assert not fitted(n_components=n_components).transform([nx.empty_graph(3), nx.empty_graph(9)]).any()


def test_seeds():
    Z = [GraphletSampling(4, 50, random_state=seed).fit_transform(graphs()) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(Z[0], Z[1])
    assert np.abs(Z[0] - Z[2]).max() > 0.01


@pytest.mark.parametrize(
    "features", [OpticalRandomFeatures(9, structured=True), OpticalRandomFeatures(9, quantize=8), RBFSampler()]
)
def test_the_seed_decides_for_transformers_too(features):
    Z = [fitted(clone(features)).transform(graphs()) for _ in range(2)]
    np.testing.assert_array_equal(*Z)
    assert features.random_state is None


@pytest.mark.parametrize("features", ["optical", "match", "gaussian"])
def test_another_size_needs_another_fit(features):
    model = fitted(features).set_params(size=6)
    with pytest.raises(ValueError, match="size is 6, but fit sampled graphlets of 5 nodes; fit again"):
        model.transform(graphs())


def test_in_a_grid_search_and_cloned():
    X = [nx.cycle_graph(n) for n in range(10, 22)] + [nx.star_graph(n) for n in range(10, 22)]
    y = [0] * 12 + [1] * 12
    model = sm.recipes.graphlet_optical(size=4, n_samples=50, n_components=20, random_state=0)
    search = GridSearchCV(model, {"graphlets__size": [3, 4], "graphlets__features": ["optical", "match_iso"]}, cv=2)
    assert search.fit(X, y).score(X, y) == 1.0
    assert clone(model).get_params()["graphlets__n_components"] == 20
    assert sm.recipes.graphlet_optical(4, 50, None, "rbf", 0).fit(X, y).score(X, y) == 1.0


@pytest.mark.parametrize(
    "embedding",
    [
        GraphletSampling(4, 200, n_components=None, random_state=0),
        sm.Nystroem(sm.kernels.Graphlet(size=4, normalize=True), n_components=8, random_state=0),
        sm.D2KE(sm.distances.MMD(size=4, n_samples=200), n_components=8, random_state=0),
    ],
    ids=lambda e: type(e).__name__,
)
def test_hypervectors_of_structure(embedding):
    X = [nx.cycle_graph(n) for n in range(10, 20)] + [nx.star_graph(n) for n in range(10, 20)]
    model = make_pipeline(embedding, sm.SignRandomProjection(1024, random_state=0), sm.HDClassifier(random_state=0))
    y = np.repeat(["cycle", "star"], 10)
    assert model.fit(X[::2], y[::2]).score(X[1::2], y[1::2]) == 1.0


@pytest.mark.parametrize("features", [*FEATURES, OpticalRandomFeatures(M, random_state=5, quantize=8)], ids=str)
def test_saved_and_loaded(features, tmp_path):
    model = fitted(features, size=4)
    sm.save(model, tmp_path / "model.similia")
    old, new = model.transform(graphs()), sm.load(tmp_path / "model.similia").transform(graphs())
    np.testing.assert_array_equal(*(v.toarray() if issparse(v) else v for v in (old, new)))


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"size": 1}, "size"),
        ({"size": 12}, "64"),
        ({"n_samples": 0}, "n_samples"),
        ({"sampling": "snowball"}, "sampling"),
        ({"flyback": 1.0}, "flyback"),
        ({"small": "drop"}, "small"),
        ({"features": "cosine"}, "features must be one of 'match'"),
        ({"features": 3}, "features must be a name"),
        ({"features": "match", "size": 8}, "up to 7 nodes"),
        ({"features": "gaussian", "n_components": None}, "n_components=None works only with features=.optical"),
        ({"features": "gaussian", "bandwidth": 0.0}, "bandwidth must be a positive number, got 0.0"),
        ({"features": "optical", "n_components": 0}, "n_components"),
        ({"features": "match", "n_components": 0}, "n_components"),
        ({"bandwidth": -1}, "bandwidth must be a positive number, got -1"),
        ({"features": "match", "bandwidth": "wide"}, "bandwidth must be a positive number, got 'wide'"),
        ({"small": "raise", "size": 11}, "graph 1"),
    ],
)
def test_wrong_parameters_are_refused(parameters, sentence):
    model = GraphletSampling(random_state=0).set_params(**parameters)
    with pytest.raises(ValueError, match=sentence):
        model.fit_transform(graphs())


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (lambda a: a.sum(axis=1), r"shape \(2,\)|shape \(\d+,\)"),
        (lambda a: a.sum(), r"shape \(\) .* for the adjacency bits of 2 patterns, expected numbers of shape"),
        (lambda a: np.full((len(a), 2), "x"), "dtype <U1"),
    ],
)
def test_maps_of_your_own_that_return_something_else(function, sentence):
    with pytest.raises(ValueError, match=sentence):
        GraphletSampling(4, 20, features=function, random_state=0).fit(graphs())


def test_maps_of_your_own_that_return_nan():
    with pytest.raises(ValueError, match="NaN or infinity"):
        fitted(lambda a: np.full((len(a), 2), np.nan)).transform(graphs())


@pytest.mark.parametrize("dtype", [np.float16, np.longdouble, np.int32])
def test_maps_of_your_own_in_other_types(dtype):
    found = fitted(lambda a: a.astype(dtype)).transform(graphs())
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, fitted(lambda a: a).transform(graphs()), rtol=1e-6)


@pytest.mark.parametrize("steps", [(), (StandardScaler(),)], ids=["encoder", "pipeline"])
def test_packed_bits_have_no_mean(steps):
    encoder = make_pipeline(*steps, sm.SignRandomProjection(64)) if steps else sm.SignRandomProjection(64)
    for features in (encoder, clone(encoder).fit(np.eye(10)).transform):
        with pytest.raises(ValueError, match=f"features={type(encoder).__name__} returns packed bits"):
            fitted(features)


def test_numbers_of_one_byte_have_a_mean():
    double = FunctionTransformer(lambda bits: (2 * bits).astype(np.uint8))
    for features in (double, double.transform):
        np.testing.assert_allclose(
            fitted(features).transform(graphs()), 2 * fitted(lambda bits: bits).transform(graphs()), rtol=1e-6
        )


def test_a_class_is_no_map():
    with pytest.raises(TypeError, match=r"features is the class PCA, .* write PCA\(...\)"):
        GraphletSampling(features=PCA).fit(graphs())


def test_objects_that_are_no_graphs():
    with pytest.raises(TypeError, match="graph 1"):
        GraphletSampling().fit([nx.path_graph(3), "CCO"])


def test_a_bad_graph_in_a_later_block_has_its_own_number():
    model = fitted(small="raise").fit([nx.path_graph(6)])
    with sm.config(max_memory=10_000), pytest.raises(ValueError, match="graph 20 has 2 nodes"):
        model.transform([nx.path_graph(6)] * 20 + [nx.path_graph(2)])


# ---- the recipe
@pytest.mark.parametrize("classifier", ["linear", "rbf"])
@pytest.mark.parametrize("features", [*FEATURES, OpticalRandomFeatures(20, random_state=0, quantize=8), lambda a: a])
def test_the_recipe_takes_every_map(features, classifier, tmp_path):
    X = [nx.cycle_graph(n) for n in range(10, 22)] + [nx.star_graph(n) for n in range(10, 22)]
    y = np.repeat(["cycle", "star"], 12)
    model = sm.recipes.graphlet_optical(4, 50, 20, classifier, 0).set_params(graphlets__features=features)
    model.fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) == 1.0
    Z, scaled = model[0].transform(X[::2]), model[:-1].transform(X[::2])
    assert issparse(scaled) == issparse(Z)
    dense, out = (A.toarray() if issparse(A) else A.astype(np.float64) for A in (Z, scaled))
    deviations = dense.std(axis=0)
    varied = deviations > 1e-6
    expected = dense if issparse(Z) else dense - dense.mean(axis=0)
    np.testing.assert_allclose(out[:, varied], expected[:, varied] / deviations[varied], atol=1e-3)
    if not callable(features) and not (issparse(Z) and classifier == "rbf"):  # an SVC keeps sparse support vectors
        assert sm.load(sm.save(model, tmp_path / "m.similia")).predict(X).tolist() == model.predict(X).tolist()
        assert len(model[:-1].get_feature_names_out()) == Z.shape[1]


@pytest.mark.parametrize("classifier", ["linear", "rbf"])
def test_recipes_on_sparse_histograms_are_saved(classifier, tmp_path):
    X = [nx.cycle_graph(n) for n in range(8, 16)] + [nx.star_graph(n) for n in range(8, 16)]
    model = sm.recipes.graphlet_optical(4, 50, classifier=classifier, random_state=0)
    model.set_params(graphlets__features="match").fit(X, [0] * 8 + [1] * 8)
    sm.save(model, tmp_path / "model.similia")
    assert sm.load(tmp_path / "model.similia").predict(X).tolist() == [0] * 8 + [1] * 8
