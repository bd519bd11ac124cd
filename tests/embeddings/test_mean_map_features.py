"""MeanMapFeatures: unbiased, the definition, equal bits, what fit learns, refusals."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline

import similia as sm
from naive import similarities as naive
from similia.embeddings import mean_map
from similia.objects import AttributeScaler, GraphToSets, as_sets

laws = settings(max_examples=20, deadline=None)


def some_sets(seed, sizes, p=2):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(size, p)) for size in sizes]


@pytest.mark.parametrize("orthogonal", [True, False])
@pytest.mark.parametrize(("m", "scales"), [(2, (1.0,)), (6, (1.0,)), (6, (0.25, 1.0, 4.0)), (10, 2.0)])
def test_estimates_are_unbiased(m, scales, orthogonal):
    X = some_sets(0, [3, 1, 4, 0])
    options = {"gamma": 0.4, "scales": scales, "orthogonal": orthogonal}
    drawn = [sm.MeanMapFeatures(m, random_state=i, **options).fit_transform(X) for i in range(400)]
    estimates = np.array([Z @ Z.T for Z in drawn])
    exact = np.mean([[[naive.mean_map(u, v, 0.4 * s) for v in X] for u in X] for s in np.atleast_1d(scales)], axis=0)
    error = estimates.std(axis=0) / np.sqrt(len(drawn))
    assert (np.abs(estimates.mean(axis=0) - exact) <= 4.5 * error + 1e-12).all()
    assert error[0, 1] > 0


@laws
@given(st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any), st.sampled_from(["mean", "sum"]))
def test_is_the_sum_of_the_waves_of_the_points(sizes, reduce):
    X = some_sets(1, sizes, p=3)
    fitted = sm.MeanMapFeatures(32, gamma=0.3, reduce=reduce, random_state=0).fit(X)
    w = fitted.frequencies_ * np.pi / 2
    for x, z in zip(X, fitted.transform(X), strict=True):
        waves = np.hstack([np.cos(x @ w), np.sin(x @ w)]).sum(axis=0) / 4
        np.testing.assert_allclose(z, waves / (max(1, len(x)) if reduce == "mean" else 1), atol=1e-12)


def test_the_variance_is_at_most_one_over_m():
    X = some_sets(2, [1, 1])
    options = {"gamma": 0.4, "orthogonal": False}
    drawn = [sm.MeanMapFeatures(8, random_state=i, **options).fit_transform(X) for i in range(1000)]
    assert np.var([a @ b for a, b in drawn]) < 1 / 8


@pytest.mark.same_bits
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_features_depend_on_the_set_only(dtype, monkeypatch):
    X = [x.astype(dtype) for x in some_sets(3, [600, 1, 0, 0, 300, 5, 257, 2], p=37)]
    fitted = sm.MeanMapFeatures(70, gamma=0.01, random_state=0).fit(X)
    Z = fitted.transform(X)
    assert Z.dtype == dtype
    for i in range(len(X)):
        np.testing.assert_array_equal(fitted.transform(X[i : i + 1])[0], Z[i])
    with sm.config(max_memory=1):
        np.testing.assert_array_equal(fitted.transform(X), Z)
    mixed = [x.astype(np.float64) if i % 2 else x for i, x in enumerate(X)]
    np.testing.assert_array_equal(fitted.transform(mixed), Z)
    np.testing.assert_array_equal(fitted.transform(as_sets(X)[::-1]), Z[::-1])
    monkeypatch.setattr(mean_map, "run_in_ranges", lambda work, n, grain: work(0, n))  # without threads
    np.testing.assert_array_equal(fitted.transform(X), Z)
    assert not Z[2].any()


def test_gamma_is_that_of_the_median_distance():
    X = some_sets(4, [7, 9])
    points = np.concatenate(X)
    distances = np.linalg.norm(points[:, None] - points, axis=-1)[np.triu_indices(16, 1)]
    fitted = sm.MeanMapFeatures(16, random_state=0).fit(X)
    assert fitted.gamma_ == pytest.approx(1 / (2 * np.median(distances) ** 2))
    assert sm.MeanMapFeatures(16, gamma=3.0, random_state=0).fit(X).gamma_ == 3.0


def test_sets_of_one_point():
    points = np.random.default_rng(5).normal(size=(30, 4))
    Z = sm.MeanMapFeatures(4000, gamma=0.2, random_state=0).fit_transform(points[:, None])
    np.testing.assert_allclose(Z @ Z.T, sm.kernels.RBF(0.2)(points), atol=0.08)


def test_a_saved_model_gives_the_same_features(tmp_path):
    X = some_sets(6, [4, 5, 6])
    fitted = sm.MeanMapFeatures(16, random_state=0).fit(X)
    sm.save(fitted, tmp_path / "model.similia")
    np.testing.assert_array_equal(sm.load(tmp_path / "model.similia").transform(X), fitted.transform(X))


def test_refusals():
    X = some_sets(7, [3, 4])
    for parameters, sentence in {
        "n_components": (7, r"n_components must be even \(a cosine and a sine for each frequency\), got 7"),
        "gamma": (-1.0, r'gamma must be a positive number or "median", got -1.0'),
        "reduce": ("max", "reduce must be 'mean' or 'sum', got 'max'"),
        "scales": ((), "scales must be 1 to 512 numbers"),
    }.items():
        with pytest.raises(ValueError, match=sentence[1]):
            sm.MeanMapFeatures(**{parameters: sentence[0]}).fit(X)
    fitted = sm.MeanMapFeatures(8, gamma=1.0, random_state=0).fit(X)
    with pytest.raises(ValueError, match="X holds points of dimension 3, expected 2 as in fit"):
        fitted.transform(some_sets(0, [2], p=3))
    with pytest.raises(ValueError, match=r"X\[1\], point 0 is up to .* quarter turns of a wave from 0, expected less"):
        fitted.transform([X[0], X[1] + 1e13])
    with pytest.raises(ValueError, match="all distances among 4 objects are 0; gamma needs objects that differ"):
        sm.MeanMapFeatures().fit([np.ones((2, 2)), np.ones((2, 2))])


@pytest.mark.parametrize("use", ["auto", "labels", "attributes", "both"])
def test_nothing_can_be_learnt_from_empty_graphs(use):
    with pytest.raises(ValueError, match="X holds graphs with"):
        GraphToSets(1, use=use).fit([nx.Graph(), nx.Graph()])


def test_an_empty_graph_alone_is_embedded_as_in_company():
    """Alone it has no attributes and labels, of which other graphs bring the number."""
    rng = np.random.default_rng(0)
    graphs = [nx.path_graph(n) for n in (3, 4, 5)]
    for graph in graphs:
        nx.set_node_attributes(graph, {v: rng.normal(size=2) for v in graph}, "attributes")
        nx.set_node_attributes(graph, {v: v % 2 for v in graph}, "label")
        nx.set_edge_attributes(graph, {edge: sum(edge) % 2 for edge in graph.edges}, "label")
    for steps in (
        [AttributeScaler(), GraphToSets(1, n_iter=1, use="both", degrees=True)],
        [GraphToSets(0, use="labels")],
        [GraphToSets(1, use="attributes")],
    ):
        model = make_pipeline(*steps, sm.MeanMapFeatures(16, random_state=0)).fit(graphs)
        together = model.transform([*graphs, nx.Graph()])
        np.testing.assert_array_equal(model.transform([nx.Graph()]), together[-1:])
