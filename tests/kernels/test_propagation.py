"""The propagation kernel against the worked example, a dense twin, and its laws."""

import csv
import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from naive import similarities as naive
from samples.graphs import batch, samples
from similia.kernels import Propagation
from similia.kernels.propagation import (
    bins,
    draw,
    draw_offsets,
    project,
    project_each,
    project_labels,
    propagated,
    root_projections,
)
from similia.objects import GraphBatch, as_graphs

REFERENCE = Path(__file__).parents[1] / "reference"
SEEDS = st.integers(0, 2**32 - 1)
laws = settings(max_examples=25, deadline=None)
KERNELS = [
    Propagation(n_iter=3),
    Propagation(n_iter=3, metric="hellinger", bin_width=0.1),
    Propagation(n_iter=2, use="attributes"),
    Propagation(n_iter=2, use="attributes", metric="l2", bin_width=0.3),
    Propagation(n_iter=2, use="attributes", per_dimension=True, bin_width=4.0),
    Propagation(n_iter=3, use="labels", normalize=True),
]
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: f"{k.use}-{k.metric}-{k.per_dimension}")


def graphs_for(kernel, graphs, **options):
    return batch(graphs, attributes=kernel.use == "attributes", **options)


def worked_example():
    """Path A-B-A; triangle A, A, B; edge A-B with an isolated A (A = 0, B = 1)."""
    path = {"edge_index": np.array([[0, 1, 1, 2], [1, 0, 2, 1]]), "n_nodes": 3, "node_labels": [0, 1, 0]}
    triangle = {
        "edge_index": np.array([[0, 0, 1, 1, 2, 2], [1, 2, 0, 2, 0, 1]]),
        "n_nodes": 3,
        "node_labels": [0, 0, 1],
    }
    pair = {"edge_index": np.array([[0, 1], [1, 0]]), "n_nodes": 3, "node_labels": [0, 1, 0]}
    return as_graphs([path, triangle, pair])


U = np.array([[0.75, -0.5], [-1.25, 0.5], [0.375, 2.0]])
BETA = np.array([[0.0625], [0.03125], [0.15625]])
WIDTH = 0.25


def example_bins():
    graphs = worked_example()
    return bins(propagated(graphs, project_labels(graphs.node_labels, U), 3), BETA, WIDTH)


def test_worked_example_nodes():
    b = example_bins()
    with (REFERENCE / "D_propagation_nodes.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == b.size == 27
    for row in rows:
        assert b[3 * int(row["graph"]) + int(row["node"]), int(row["t"])] == int(row["bin"])


def test_worked_example_kernel():
    b = example_bins()
    with (REFERENCE / "D_propagation_kernel.csv").open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        terms = range(int(row["T"]) + 1)
        x, y = (b[3 * int(row[name]) :][:3] for name in "ij")
        shared = sum(naive.sparse_inner_product(x[:, t].tolist(), y[:, t].tolist()) for t in terms)
        assert shared == int(row["K"])


@laws
@given(SEEDS, st.booleans(), st.booleans())
def test_bins_of_labels_equal_the_dense_twin(seed, directed, weighted):
    graphs = [g for g in samples(seed, directed=directed, weighted=weighted) if len(g.labels)]
    rng = np.random.default_rng(seed)
    u, beta = rng.standard_cauchy((4, 7)), rng.random((4, 1))
    for g in graphs:
        one, rows = batch([g], weighted=weighted), g.labels + 3
        P = np.eye(7)[rows]
        twin = naive.propagation_bins(g.weights, P, u, beta, 0.37)
        fast = bins(propagated(one, project_labels(rows, u), 4), beta, 0.37)
        assert [tuple(map(float, column)) for column in zip(*[[b[0] for b in step] for step in twin], strict=True)] == [
            tuple(row) for row in fast
        ]
        twin = naive.propagation_bins(g.weights, P, u, beta, 0.37, root=True)
        fast = bins(root_projections(one, rows, u), beta, 0.37)
        np.testing.assert_array_equal(fast, np.array(twin)[:, :, 0].T)


@laws
@given(SEEDS, st.booleans(), st.booleans())
def test_bins_of_attributes_equal_the_dense_twin(seed, weighted, per_dimension):
    rng = np.random.default_rng(seed)
    u, beta = rng.standard_normal((3, 3)), rng.random((3, 3 if per_dimension else 1))
    for g in samples(seed, weighted=weighted):
        if len(g.labels) == 0:
            continue
        twin = naive.propagation_bins(g.weights, g.attributes, u, beta, 0.41, per_dimension=per_dimension)
        Z = project_each(g.attributes, u) if per_dimension else project(g.attributes, u)
        fast = bins(propagated(batch([g], weighted=weighted), Z, 3), beta, 0.41)
        np.testing.assert_array_equal(fast, np.concatenate(np.array(twin), axis=1))


@each_kernel
@laws
@given(SEEDS)
def test_the_kernel_is_the_histogram_product_of_its_bins(kernel, seed):
    graphs = samples(seed, n=4)
    n_terms = kernel.n_iter + 1
    names = np.arange(3) if kernel.use == "attributes" else np.unique(np.concatenate([g.labels for g in graphs]))
    if len(names) == 0:
        return
    cauchy = kernel.metric not in ("l2", "hellinger")
    width = {True: 1.0 if kernel.use == "attributes" else 0.01}.get(kernel.bin_width == "auto", kernel.bin_width)
    u = draw(np.uint64(0), names.astype(np.int64).view(np.uint64), n_terms, cauchy)
    beta = draw_offsets(np.uint64(0), n_terms, 3 if kernel.per_dimension else 1) * width
    twins = []
    for g in graphs:
        P = g.attributes if kernel.use == "attributes" else (g.labels[:, None] == names).astype(float)
        root = kernel.metric == "hellinger"
        twins.append(naive.propagation_bins(g.weights, P, u, beta, width, root, kernel.per_dimension))
    K = naive.histogram_kernel(twins)
    np.testing.assert_array_equal(clone(kernel).set_params(normalize=False)(graphs_for(kernel, graphs)), K)


@each_kernel
@laws
@given(SEEDS, st.booleans())
def test_relabelling_nodes_changes_nothing(kernel, seed, weighted):
    graphs = samples(seed, n=3, weighted=weighted)
    rng = np.random.default_rng(seed)
    moved = [g.relabelled(rng.permutation(len(g.labels))) for g in graphs]
    fixed = graphs_for(kernel, samples(1), weighted=weighted)
    K = kernel(graphs_for(kernel, graphs, weighted=weighted), fixed)
    np.testing.assert_array_equal(kernel(graphs_for(kernel, moved, weighted=weighted), fixed), K)


@laws
@given(SEEDS, st.booleans())
def test_relabelling_changes_no_bit_before_binning(seed, weighted):
    """Bins hide most of what the order of a sum does; the numbers before them do not."""
    for g in samples(seed, weighted=weighted):
        order = np.random.default_rng(seed).permutation(len(g.labels))
        Z, moved = (
            propagated(batch([h], weighted=weighted), np.repeat(h.attributes, 3, axis=1), 3)
            for h in (g, g.relabelled(order))
        )
        np.testing.assert_array_equal(Z[order], moved)


def test_relabelling_a_star_with_many_leaves_changes_nothing():
    """More than 32 neighbours of unlike values: their sum depends on its order in its last bits."""
    n = 60
    leaves = np.arange(1, n)
    arcs = np.array([np.r_[np.zeros(n - 1, int), leaves], np.r_[leaves, np.zeros(n - 1, int)]])
    order = np.r_[0, np.random.default_rng(0).permutation(leaves)]
    X = np.random.default_rng(1).normal(size=(n, 1)) ** 3
    star = as_graphs([{"edge_index": arcs, "n_nodes": n, "node_attributes": X[o]} for o in (np.arange(n), order)])
    Z = propagated(star, project(star.node_attributes, np.ones((3, 1))), 3)
    assert (Z[0] == Z[n]).all()
    assert np.cumsum(X[leaves])[-1] != np.cumsum(X[order[1:]])[-1]  # else the test shows nothing


@each_kernel
@laws
@given(SEEDS)
def test_positive_semi_definite_and_block_by_block(kernel, seed):
    graphs = graphs_for(kernel, samples(seed, n=8))
    K = kernel(graphs)
    np.testing.assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K)[0] >= -1e-9 * max(1.0, K.max())
    np.testing.assert_array_equal(np.diag(K), kernel.diag(graphs))
    blocks = kernel(graphs[3:7], graphs)
    expected = K[3:7]
    if kernel.normalize:  # an empty graph is alike only to itself, as the same object
        same = kernel(graphs[3:7])
        np.testing.assert_array_equal(same, K[3:7, 3:7])
        empty = np.diff(graphs.node_offsets) == 0
        blocks, expected = blocks[:, ~empty], expected[:, ~empty]
    np.testing.assert_array_equal(blocks, expected)


@each_kernel
def test_features_give_the_kernel(kernel):
    graphs = graphs_for(kernel, samples(3, n=8))
    F = kernel.features(graphs, n_features=2**22)
    K = kernel(graphs)
    nonempty = np.diff(graphs.node_offsets) > 0
    np.testing.assert_allclose((F @ F.T).toarray()[nonempty], K[nonempty], rtol=1e-12)


def test_features_in_a_fresh_process():
    """With a label that the first process sees among others and the second alone."""
    code = (
        "import json, numpy as np; from similia.kernels import Propagation;"
        "g = {'edge_index': np.array([[0, 1], [1, 0]]), 'n_nodes': 2, 'node_labels': [7, 9]};"
        "F = Propagation(n_iter=1, random_state=5).features([g]);"
        "print(json.dumps([F.indices.tolist(), F.data.tolist()]))"
    )
    other = json.loads(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)
    arcs = np.array([[0, 1], [1, 0]])
    graphs = [{"edge_index": arcs, "n_nodes": 2, "node_labels": labels} for labels in ([1, 2], [7, 9], [9, 100])]
    F = Propagation(n_iter=1, random_state=5).features(graphs)[[1]]
    assert other == [F.indices.tolist(), F.data.tolist()]


def test_draws_follow_their_laws():
    names = np.arange(20_000, dtype=np.uint64)
    cauchy, normal = (draw(np.uint64(3), names, 2, kind) for kind in (True, False))
    # P(|Cauchy| < 1) = 1/2, P(|Cauchy| < tan(pi/8)) = 1/4; each share has a standard error of 0.0035 at most
    assert abs((np.abs(cauchy) < 1).mean(axis=1) - 0.5).max() < 0.015
    assert abs((np.abs(cauchy) < np.tan(np.pi / 8)).mean(axis=1) - 0.25).max() < 0.015
    assert abs(normal.mean(axis=1)).max() < 0.03
    assert abs(normal.std(axis=1) - 1).max() < 0.03
    assert abs((normal < 1).mean() - 0.8413) < 0.01
    assert abs(np.corrcoef(normal)[0, 1]) < 0.03
    beta = draw_offsets(np.uint64(3), 500, 4)
    assert beta.min() > 0
    assert beta.max() < 1
    assert abs(beta.mean() - 0.5) < 0.03


def test_collision_probability_of_attributes():
    """Share of seeds that put two rows at l1 distance c into one bin, against the closed form (spec D1)."""
    X = np.array([[0.0, 0.0], [0.3, -0.4]])
    graphs = as_graphs([{"edge_index": np.zeros((2, 0), int), "n_nodes": 1, "node_attributes": x[None]} for x in X])
    for metric, c in (("l1", 0.7), ("l2", 0.5)):
        hits = [Propagation(n_iter=0, metric=metric, bin_width=1.0, random_state=s)(graphs)[0, 1] for s in range(2000)]
        r = 1.0 / c
        if metric == "l1":
            p = 2 / np.pi * np.arctan(r) - np.log(1 + r**2) / (np.pi * r)
        else:
            p = math.erf(r / 2**0.5) - 2 / ((2 * np.pi) ** 0.5 * r) * (1 - np.exp(-(r**2) / 2))
        assert abs(np.mean(hits) - p) < 4 * (p * (1 - p) / 2000) ** 0.5


def test_no_iteration_compares_histograms_of_labels():
    graphs = samples(11, n=7)
    expected = naive.histogram_kernel([[g.labels.tolist()] for g in graphs])
    for metric in ("tv", "hellinger"):
        np.testing.assert_array_equal(Propagation(n_iter=0, bin_width=1e-5, metric=metric)(batch(graphs)), expected)


def test_isolated_nodes_keep_their_label():
    dots = as_graphs([{"edge_index": np.zeros((2, 0), int), "n_nodes": 3, "node_labels": [4, 4, 5]}])
    assert Propagation(n_iter=6)(dots).tolist() == [[7 * 5.0]]


def test_weights_without_total_keep_the_label_and_equal_weights_change_nothing():
    arcs = np.array([[0, 1, 1, 2], [1, 0, 2, 1]])
    graph = {"edge_index": arcs, "n_nodes": 3, "node_labels": [1, 2, 3]}
    zero = as_graphs([graph | {"edge_weights": np.zeros(4)}])
    assert Propagation(n_iter=2)(zero).tolist() == [[9.0]]
    for weight in (2.0, 1e308, 1e-310):
        equal = as_graphs([graph | {"edge_weights": np.full(4, weight)}])
        assert Propagation(n_iter=2)(equal, as_graphs([graph])) == Propagation(n_iter=2)([graph])


def test_empty_graphs_and_normalization():
    empty = {"edge_index": np.zeros((2, 0), int), "n_nodes": 0}
    dot = {"edge_index": np.zeros((2, 0), int), "n_nodes": 1, "node_labels": [1]}
    for kernel in (Propagation(), Propagation(metric="hellinger"), Propagation(use="labels")):
        assert kernel([empty, dot]).tolist() == [[0.0, 0.0], [0.0, 5.0]]
        assert clone(kernel).set_params(normalize=True)([empty, dot]).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    for kernel in (Propagation(use="attributes"), Propagation(per_dimension=True)):
        assert kernel([empty]).tolist() == [[0.0]]
        assert kernel.features([empty]).nnz == 0
    for metric in ("tv", "hellinger", "l1", "l2"):  # without nodes, each may be meant
        assert Propagation(metric=metric)([empty]).tolist() == [[0.0]]
    with pytest.raises(ValueError, match="metric='euclidean' is not for"):
        Propagation(metric="euclidean")([empty])


@pytest.mark.parametrize("per_dimension", [False, True])
def test_graphs_without_any_node_but_with_attribute_columns(per_dimension):
    nothing = {"edge_index": np.empty((2, 0), dtype=np.int64), "n_nodes": 0, "node_attributes": np.empty((0, 3))}
    K = Propagation(n_iter=2, use="attributes", per_dimension=per_dimension)(as_graphs([nothing, nothing]))
    np.testing.assert_array_equal(K, np.zeros((2, 2)))


def test_unlabelled_graphs_are_compared_by_degree():
    graphs = samples(5)
    degrees = [replace(g, labels=(g.weights > 0).sum(axis=1)) for g in graphs]
    np.testing.assert_array_equal(Propagation()(batch(graphs, labels=False)), Propagation()(batch(degrees)))


def test_auto_takes_attributes_where_there_are_some():
    graphs = samples(6)
    both = batch(graphs, attributes=True)
    np.testing.assert_array_equal(Propagation()(both), Propagation(use="attributes", metric="l1", bin_width=1.0)(both))
    labels = Propagation(use="labels")(both)
    np.testing.assert_array_equal(labels, Propagation(metric="tv", bin_width=0.01)(batch(graphs)))


def test_seeds():
    graphs = batch(samples(8, n=10), attributes=True)
    one, same, other = (Propagation(random_state=s)(graphs) for s in (1, np.int64(1), 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


@pytest.mark.same_bits
def test_hellinger_blocks_change_nothing(monkeypatch):
    graphs = batch(samples(9, n=12))
    kernel = Propagation(metric="hellinger", bin_width=0.05)
    whole = kernel(graphs)
    monkeypatch.setattr("similia.kernels.propagation._NODES_PER_BLOCK", 7)
    np.testing.assert_array_equal(kernel(graphs), whole)


def test_inputs_are_left_alone():
    graphs = batch(samples(10), attributes=True, weighted=True)
    before = {name: value.copy() for name, value in vars(graphs).items() if value is not None}
    for value in vars(graphs).values():
        if value is not None:
            value.setflags(write=False)
    for kernel in KERNELS:
        clone(kernel).set_params(use="attributes" if kernel.use == "attributes" else "labels")(graphs)
    for name, value in before.items():
        np.testing.assert_array_equal(getattr(graphs, name), value)


def test_huge_values_are_binned_and_overflow_is_refused():
    graph = {"edge_index": np.array([[0, 1], [1, 0]]), "n_nodes": 2, "node_attributes": np.array([[1e60], [-1e60]])}
    assert Propagation(n_iter=1)([graph]).tolist() == [[4.0]]
    graph["node_attributes"] = np.array([[1e308], [-1e308]])
    for per_dimension in (False, True):
        with pytest.raises(ValueError, match="exceed the largest float64"):
            Propagation(n_iter=1, bin_width=1e-9, per_dimension=per_dimension)([graph])


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"n_iter": -1}, "n_iter must be an integer >= 0, got -1"),
        ({"n_iter": 2.0}, "n_iter must be an integer"),
        ({"bin_width": 0}, "bin_width must be a positive number, got 0"),
        ({"bin_width": float("nan")}, "bin_width must be"),
        ({"bin_width": "wide"}, "bin_width must be .* got 'wide'"),
        ({"metric": "euclidean"}, "metric='euclidean' is not for node labels"),
        ({"metric": "l1"}, "use one of 'tv', 'hellinger'"),
        ({"use": "edges"}, "use must be 'auto', 'labels' or 'attributes'"),
        ({"use": "attributes"}, r"these graphs have none; use Propagation\(use='labels'\)"),
        ({"per_dimension": True}, r"compared by labels; use Propagation\(per_dimension=False\)"),
        ({"random_state": None}, "random_state must be an integer >= 0, got None"),
        ({"random_state": -1}, "random_state must be an integer >= 0"),
        ({"random_state": True}, "random_state must be an integer >= 0"),
    ],
)
def test_wrong_parameters_are_refused(parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        Propagation(**parameters)(worked_example())


def test_wrong_graphs_are_named():
    offsets, none = np.array([0, 1, 3]), np.array([], dtype=np.int64)
    bare = GraphBatch(offsets, np.zeros(4, np.int64), none, node_attributes=np.array([[0.0], [1.0], [np.nan]]))
    with pytest.raises(ValueError, match="graph 1, node 1 has attributes that are NaN"):
        Propagation()(bare)
    arcs = np.array([[0, 1], [1, 0]])
    fine = {"edge_index": arcs, "n_nodes": 2, "edge_weights": [1.0, 1.0]}
    with pytest.raises(ValueError, match=r"graph 1, node 1 has an edge of weight -1\.0"):
        Propagation()([fine, fine | {"edge_weights": [1.0, -1.0]}])


def test_unlike_sides_are_refused():
    labelled = batch(samples(1))
    with pytest.raises(ValueError, match="3 node attributes of X with node labels of Y"):
        Propagation()(batch(samples(1), attributes=True), labelled)
    with pytest.raises(ValueError, match="node labels of X with degrees"):
        Propagation()(labelled, batch(samples(1), labels=False))
