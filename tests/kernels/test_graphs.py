"""Vertex, edge, Weisfeiler-Lehman and shortest-path kernels against slow twins, known facts and laws."""

import json
import os
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import similia as sm
from naive import similarities as naive
from samples.graphs import batch, samples
from similia.kernels import (
    EdgeHistogram,
    Intersection,
    Normalized,
    Product,
    Propagation,
    ShortestPath,
    Sum,
    VertexHistogram,
    WeisfeilerLehman,
)
from similia.kernels.graphs import refined_ids, vertex_ids
from similia.objects import as_graphs, from_smiles

SEEDS = st.integers(0, 2**32 - 1)
laws = settings(max_examples=25, deadline=None)
KERNELS = [
    VertexHistogram(),
    EdgeHistogram(),
    EdgeHistogram(edge_labels=False, normalize=True),
    WeisfeilerLehman(n_iter=3),
    WeisfeilerLehman(n_iter=2, edge_labels=False, normalize=True),
    ShortestPath(),
    ShortestPath(with_labels=False),
]
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=str)
NO_ARCS = np.zeros((2, 0), dtype=np.int64)


def to_networkx(graph):
    return nx.from_numpy_array(graph.weights, create_using=nx.DiGraph)


def edges(graph, edge_labels):
    """Each edge once: a pair of arcs of one label, an arc without its reverse, or a self-loop."""
    found = set()
    for u, v in np.argwhere(graph.weights > 0):
        label = graph.edge_labels[u, v] if edge_labels else 0
        twin = graph.weights[v, u] > 0 and (not edge_labels or graph.edge_labels[v, u] == label)
        found.add((min(u, v), max(u, v), label, 0 if twin else u))
    return [(*sorted((graph.labels[u], graph.labels[v])), label) for u, v, label, _ in found]


def paths(graph, with_labels):
    lengths = nx.all_pairs_shortest_path_length(to_networkx(graph))
    label = graph.labels if with_labels else np.zeros_like(graph.labels)
    return [(label[u], label[v], d) for u, reached in lengths for v, d in reached.items() if u != v]


@laws
@given(SEEDS, st.booleans())
def test_vertices(seed, directed):
    graphs = samples(seed, directed=directed)
    expected = naive.histogram_kernel([[g.labels.tolist()] for g in graphs])
    np.testing.assert_array_equal(VertexHistogram()(batch(graphs)), expected)


@laws
@given(SEEDS, st.booleans(), st.booleans())
def test_edges(seed, directed, edge_labels):
    graphs = samples(seed, directed=directed)
    expected = naive.histogram_kernel([[edges(g, edge_labels)] for g in graphs])
    np.testing.assert_array_equal(EdgeHistogram(edge_labels)(batch(graphs, edge_labels=True)), expected)
    if not edge_labels:
        np.testing.assert_array_equal(EdgeHistogram()(batch(graphs)), expected)


@laws
@given(SEEDS, st.booleans(), st.booleans(), st.integers(0, 4))
def test_refinement_equals_spelled_out_colours(seed, directed, edge_labels, n_iter):
    graphs = samples(seed, directed=directed)
    colours = [naive.weisfeiler_lehman_strings(g.neighbours(edge_labels), g.labels, n_iter) for g in graphs]
    K = WeisfeilerLehman(n_iter, edge_labels=edge_labels)(batch(graphs, edge_labels=True))
    np.testing.assert_array_equal(K, naive.histogram_kernel(colours))


@laws
@given(SEEDS, st.booleans(), st.booleans())
def test_shortest_paths_equal_networkx(seed, directed, with_labels):
    graphs = samples(seed, directed=directed)
    expected = naive.histogram_kernel([[paths(g, with_labels)] for g in graphs])
    np.testing.assert_array_equal(ShortestPath(with_labels)(batch(graphs)), expected)


def test_shortest_paths_of_a_graph_with_many_triples():
    """Labels all unlike: the table of counts and the arrays of ids have to grow."""
    path = nx.path_graph(150)
    nx.set_node_attributes(path, {v: v for v in path}, "label")
    star = nx.star_graph(150)
    # Every ordered pair is its own triple: 150 * 149 of them, each occurring once; a star has 150 leaves.
    assert ShortestPath()([path]).tolist() == [[150 * 149]]
    assert ShortestPath(with_labels=False)([star]).tolist() == [[(2 * 150) ** 2 + (150 * 149) ** 2]]


def test_refinement_cannot_tell_regular_graphs_apart():
    graphs = [nx.cycle_graph(6), nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3)), nx.cycle_graph(5)]
    K = WeisfeilerLehman(n_iter=6, normalize=True)(graphs)
    assert K[0, 1] == 1.0
    assert ShortestPath(normalize=True)(graphs)[0, 1] < 1.0
    K = WeisfeilerLehman(n_iter=2)([nx.star_graph(3), nx.path_graph(4)])
    # Degrees 3 1 1 1 and 1 2 2 1 share three times two leaves; no star leaf has a neighbour like a path's end.
    assert K[0, 1] == 6.0


def test_refinement_ids_equal_hashes_in_python_integers():
    """Path a - b - a with labels 5, -2: colours of two levels, so that ids are the same everywhere and for ever."""
    a, b = naive.splitmix(5), naive.splitmix(2**64 - 2)
    indptr, indices = np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1])
    labels = np.array([5, -2, 5]).view(np.uint64)
    for edge_labels, around in (
        (np.zeros(0, np.int64), lambda colour: naive.splitmix(colour)),
        (np.full(4, -1), lambda colour: naive.combined(colour, 2**64 - 1)),
    ):
        colours = refined_ids(vertex_ids(labels), indptr, indices, edge_labels, 1)
        ends, middle = naive.combined(a, around(b)), naive.combined(b, 2 * around(a) % 2**64)
        assert colours.tolist() == [[a, ends], [b, middle], [a, ends]]


def test_features_in_a_fresh_process():
    code = (
        "import json, numpy as np; from similia.kernels import WeisfeilerLehman;"
        "g = {'edge_index': np.array([[0, 1], [1, 0]]), 'n_nodes': 2, 'node_labels': ['N', 'C']};"
        "print(json.dumps(WeisfeilerLehman(n_iter=1).features([g]).indices.tolist()))"
    )
    other = json.loads(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)
    arcs = np.array([[0, 1], [1, 0]])
    graphs = [{"edge_index": arcs, "n_nodes": 2, "node_labels": labels} for labels in (["O", "C"], ["N", "C"])]
    assert WeisfeilerLehman(n_iter=1).features(graphs)[[1]].indices.tolist() == other


@each_kernel
@laws
@given(SEEDS, st.booleans())
def test_relabelling_nodes_changes_nothing(kernel, seed, directed):
    graphs = samples(seed, directed=directed)
    rng = np.random.default_rng(seed)
    moved = [g.relabelled(rng.permutation(len(g.labels))) for g in graphs]
    fixed = batch(samples(1), edge_labels=True)
    K = kernel(batch(graphs, edge_labels=True), fixed)
    np.testing.assert_array_equal(kernel(batch(moved, edge_labels=True), fixed), K)


@each_kernel
@laws
@given(SEEDS)
def test_positive_semi_definite_and_block_by_block(kernel, seed):
    graphs = batch(samples(seed, n=8), edge_labels=True)
    K = kernel(graphs)
    np.testing.assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K)[0] >= -1e-9 * max(1.0, K.max())
    np.testing.assert_array_equal(np.diag(K), kernel.diag(graphs))
    np.testing.assert_array_equal(kernel(graphs[3:7]), K[3:7, 3:7])
    raw = clone(kernel).set_params(normalize=False)
    np.testing.assert_array_equal(raw(graphs[3:7], graphs), raw(graphs)[3:7])


@each_kernel
def test_features_give_the_kernel(kernel):
    graphs = batch(samples(3, n=8), edge_labels=True)
    F, K = kernel.features(graphs, n_features=2**22), kernel(graphs)
    if kernel.normalize:
        np.fill_diagonal(K, (F**2).sum(axis=1))  # an object without features is alike to itself, 0 as a vector
    np.testing.assert_allclose((F @ F.T).toarray(), K, rtol=1e-12)


@each_kernel
def test_graphs_without_nodes_or_edges(kernel):
    """Empty graph, one node, two nodes without edge: 0 where there is no feature, never NaN."""
    graphs = [(NO_ARCS, 0), (NO_ARCS, 1), (NO_ARCS, 2)]
    K = kernel(graphs)
    levels = getattr(kernel, "n_iter", 0) + 1
    if isinstance(kernel, EdgeHistogram | ShortestPath):
        expected = np.eye(3) if kernel.normalize else np.zeros((3, 3))
    elif kernel.normalize:
        expected = [[1, 0, 0], [0, 1, 1], [0, 1, 1]]
    else:
        expected = levels * np.outer([0, 1, 2], [0, 1, 2])
    np.testing.assert_array_equal(K, expected)
    assert kernel.features(graphs).shape == (3, 2**20)
    assert kernel([(NO_ARCS, 0)]).tolist() == [[1.0 if kernel.normalize else 0.0]]


@each_kernel
def test_unlabelled_graphs_are_compared_by_degree(kernel):
    graphs = samples(5)
    for graph in graphs:
        graph.labels = (graph.weights > 0).sum(axis=1)
    np.testing.assert_array_equal(kernel(batch(graphs, labels=False)), kernel(batch(graphs)))


@each_kernel
def test_labels_against_degrees_are_refused(kernel):
    labelled, bare = batch(samples(2)), batch(samples(2), labels=False)
    if isinstance(kernel, ShortestPath) and not kernel.with_labels:
        np.testing.assert_array_equal(kernel(labelled, bare), kernel(labelled))
        return
    with pytest.raises(ValueError, match="compare node labels of X with degrees of unlabelled nodes of Y"):
        kernel(labelled, bare)


PATH = {"edge_index": [[0, 1, 1, 2], [1, 0, 2, 1]], "n_nodes": 3}
BONDS = PATH | {"edge_labels": ["a", "a", 0.5, 0.5]}
BY_EDGES = [EdgeHistogram(), WeisfeilerLehman(n_iter=1), WeisfeilerLehman(n_iter=1, normalize=True)]


def compared_in_every_way(kernel):
    """Each way to compare the graphs of X, which have no edge labels, with those of Y, which do."""
    X, Y = [PATH] * 4, [BONDS] * 4
    yield "called", lambda: kernel(X, Y)
    yield "turned", lambda: kernel(Y, X)
    yield "paired", lambda: kernel.paired(X, Y, [0], [0])
    yield "counted", lambda: kernel.paired(X, Y, [0], [0], counts=kernel.counted(Y))
    yield "normalized", lambda: Normalized(kernel)(X, Y)
    yield "sum", lambda: Sum([VertexHistogram(), kernel])(X, Y)
    yield "product", lambda: Product([kernel, kernel])(X, Y)
    yield "explain", lambda: sm.explain(kernel, X[0], Y[0])
    yield "mmd2", lambda: sm.distances.mmd2(X, Y, kernel)
    yield "Nystroem", lambda: sm.Nystroem(kernel, n_components=2, random_state=0).fit(Y).transform(X)
    yield "KernelFeatures", lambda: fitted(sm.KernelFeatures(kernel), Y).transform(X)
    yield "features of a sum", lambda: fitted(sm.KernelFeatures(Sum([VertexHistogram(), kernel])), Y).transform(X)
    yield "neighbours", lambda: sm.KNeighborsClassifier(kernel, 1).fit(Y, [0, 1, 0, 1]).predict(X)
    yield "svc", lambda: sm.KernelSVC(kernel).fit(Y, [0, 1, 0, 1]).predict(X)


def fitted(transformer, X):
    transformer.fit_transform(X)
    return transformer


@pytest.mark.parametrize("kernel", BY_EDGES, ids=str)
@pytest.mark.parametrize("way", [way for way, _ in compared_in_every_way(BY_EDGES[0])])
def test_edge_labels_on_one_side_only_are_refused(way, kernel):
    with pytest.raises(ValueError, match=r"edges with(out)? labels of \w+ with edges with(out)? labels of"):
        dict(compared_in_every_way(kernel))[way]()


def test_edge_labels_that_are_not_read_do_not_matter():
    for kernel in (VertexHistogram(), EdgeHistogram(edge_labels=False), WeisfeilerLehman(n_iter=0), ShortestPath()):
        np.testing.assert_array_equal(kernel([PATH], [BONDS]), kernel([PATH]))
    without = WeisfeilerLehman(n_iter=2, edge_labels=False)
    np.testing.assert_array_equal(without([PATH], [BONDS]), without([PATH]))
    dots = {"edge_index": NO_ARCS, "n_nodes": 3}
    assert WeisfeilerLehman(n_iter=1)([dots], [BONDS]).tolist() == [[0.0]]  # degrees 0 against 1 and 2


def test_features_refuse_graphs_compared_by_other_things_than_those_of_fit(tmp_path):
    features = fitted(sm.KernelFeatures(WeisfeilerLehman(n_iter=1), 64), [BONDS])
    expected = features.transform([BONDS])
    loaded = sm.load(sm.save(features, tmp_path / "features.similia"))
    assert loaded.compared_ == features.compared_ != {}
    with pytest.raises(ValueError, match="edges without labels of X with edges with labels of the training objects"):
        loaded.transform([PATH])
    with pytest.raises(ValueError, match="compare node labels of X with degrees of unlabelled nodes of the train"):
        loaded.transform([BONDS | {"node_labels": [1, 2, 3]}])
    assert (loaded.transform([BONDS]) != expected).nnz == 0
    loaded.fit([PATH]).transform([PATH])  # fit forgets
    for graphs in ([BONDS, BONDS], as_graphs([BONDS])):
        by_fit = sm.KernelFeatures(WeisfeilerLehman(n_iter=1), 64).fit(graphs)
        assert by_fit.compared_ == features.compared_
        with pytest.raises(ValueError, match="edges without labels of X with edges with labels of the training"):
            by_fit.transform([PATH])
    assert not hasattr(by_fit.fit(), "compared_")
    drawn = iter([BONDS])
    assert not hasattr(by_fit.fit(drawn), "compared_")
    assert next(drawn) is BONDS  # an iterator is not read


@pytest.mark.parametrize(
    "kernel", [VertexHistogram(), EdgeHistogram(), ShortestPath(), Normalized(VertexHistogram()), Propagation()]
)
def test_fit_and_transform_refuse_what_fit_transform_refuses(kernel):
    labelled = PATH | {"node_labels": [1, 2, 3]}
    with pytest.raises(ValueError, match=r"degrees of unlabelled nodes of X with node labels of the training"):
        sm.KernelFeatures(kernel, 64).fit([labelled]).transform([PATH])


def test_labels_of_a_wrong_type_or_parameters_out_of_range():
    path = [nx.path_graph(3)]
    for n_iter in (-1, 1.5, True):
        with pytest.raises(ValueError, match="n_iter must be an integer >= 0"):
            WeisfeilerLehman(n_iter=n_iter)(path)
    with pytest.raises(TypeError, match="collection of graphs"):
        WeisfeilerLehman()(path[0])


_GRAKEL = """
import sys, numpy as np, grakel
from grakel.kernels import ShortestPath, VertexHistogram, WeisfeilerLehman, WeisfeilerLehmanOptimalAssignment
z = np.load(sys.argv[1])
def graph(a, b):
    arcs = {v - a: {int(u) - a: 1.0 for u in z["indices"][z["indptr"][v]:z["indptr"][v + 1]]} for v in range(a, b)}
    return grakel.Graph(arcs, node_labels={v - a: int(z["labels"][v]) for v in range(a, b)}, graph_format="all")
def graphs():
    return [graph(int(a), int(b)) for a, b in zip(z["offsets"][:-1], z["offsets"][1:])]
np.savez(sys.argv[2], wl=WeisfeilerLehman(n_iter=3, base_graph_kernel=VertexHistogram).fit_transform(graphs()),
         assignment=WeisfeilerLehmanOptimalAssignment(n_iter=3).fit_transform(graphs()),
         vertices=VertexHistogram().fit_transform(graphs()), paths=ShortestPath().fit_transform(graphs()),
         distances=ShortestPath(with_labels=False).fit_transform(graphs()))
"""


@pytest.mark.ecosystem
def test_grakel_agrees_on_molecules(tmp_path):
    python = os.environ.get("SIMILIA_GRAKEL_PYTHON")
    if not python:
        pytest.skip("SIMILIA_GRAKEL_PYTHON is not set: it names a Python that has grakel, the second witness")
    molecules = sm.datasets.load_molecules(return_X_y=True)[0]
    graphs = from_smiles([smiles for smiles in molecules if sum(map(str.isalpha, smiles)) > 3][:60])
    arrays = {"offsets": graphs.node_offsets, "indptr": graphs.indptr, "indices": graphs.indices}
    np.savez(tmp_path / "in.npz", labels=graphs.node_labels, **arrays)
    subprocess.run([python, "-c", _GRAKEL, str(tmp_path / "in.npz"), str(tmp_path / "out.npz")], check=True)
    other = np.load(tmp_path / "out.npz")
    for name, kernel in (
        ("wl", WeisfeilerLehman(n_iter=3, edge_labels=False, details=False)),
        ("assignment", Intersection(WeisfeilerLehman(n_iter=3, edge_labels=False, details=False))),
        ("vertices", VertexHistogram()),
        ("paths", ShortestPath()),
        ("distances", ShortestPath(with_labels=False)),
    ):
        np.testing.assert_array_equal(kernel(graphs), other[name])
