"""Sampled, enumerated and counted graphlets against exact laws and twins; the graphlet kernel; second moments."""

import ast
import csv
import itertools
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.stats import chisquare
from sklearn.base import clone

import similia as sm
from naive import graphlets as naive_graphlets
from naive import similarities as naive
from samples.graph_forms import DENSE, EDGES, INDEX, Igraph, pyg
from samples.graphs import batch, samples
from similia.kernels.graphs import Graphlet
from similia.objects import _graphlets as loops
from similia.objects import as_graphs
from similia.objects.graphlets import (
    Patterns,
    as_structures,
    canonical_forms,
    count_patterns,
    enumerate_graphlets,
    sample_graphlets,
    second_moments,
    unpack_graphlets,
)

REFERENCE = Path(__file__).parents[1] / "reference"
SEEDS = st.integers(0, 2**32 - 1)
laws = settings(max_examples=20, deadline=None)

LOLLIPOP = nx.lollipop_graph(4, 3)
SCATTERED = nx.disjoint_union_all([nx.cycle_graph(3), nx.path_graph(2), nx.empty_graph(1)])
GRAPHS = {
    "path": nx.path_graph(6),
    "star": nx.star_graph(5),
    "lollipop": LOLLIPOP,
    "small components beside a large one": nx.disjoint_union(nx.path_graph(5), SCATTERED),
    "small components only": SCATTERED,
    "fewer nodes than size": nx.path_graph(3),
    "no edge": nx.empty_graph(5),
    "no node": nx.empty_graph(0),
}


def matrix(graph, at_least=0):
    """Adjacency with isolated nodes added."""
    A = nx.to_numpy_array(graph, dtype=int) if len(graph) else np.zeros((0, 0), dtype=int)
    return np.pad(A, (0, max(0, at_least - len(A))))


def simple(sample):
    """The edges of a sample of `graph_samples`: an arc in either direction, no loops."""
    A = (sample.weights > 0).astype(int)
    return (A | A.T) * (1 - np.eye(len(A), dtype=int))


def table(name):
    return list(csv.DictReader((REFERENCE / name).read_text().splitlines()))


def as_dict(patterns, row=0):
    part = slice(*patterns.offsets[row : row + 2])
    return dict(zip(patterns.codes[part].tolist(), patterns.counts[part].tolist(), strict=True))


def assert_law(codes, law):
    """Chi-square of the codes of one graph against their probabilities, codes that hardly occur put together."""
    found = as_dict(count_patterns(codes[None]))
    assert set(found) <= set(law)
    common = [code for code in law if law[code] * len(codes) >= 10]
    observed = np.array([found.get(code, 0) for code in common] + [0])
    expected = np.array([law[code] * len(codes) for code in common] + [0.0])
    observed[-1], expected[-1] = len(codes) - observed.sum(), len(codes) - expected.sum()
    kept = expected > 5
    assert observed[~kept].sum() < 30
    if kept.sum() > 1:
        assert chisquare(observed[kept], expected[kept] * observed[kept].sum() / expected[kept].sum()).pvalue > 1e-3


# ---- sampling
@pytest.mark.parametrize("flyback", [0, 0.15, 0.9])  # at 0.9 most walks are helped out of what they have seen
@pytest.mark.parametrize("name", GRAPHS)
def test_walks_follow_their_exact_law(name, flyback):
    codes = sample_graphlets([GRAPHS[name]], 4, 100_000, flyback=flyback, seed=3)
    assert_law(codes[0], naive_graphlets.walk_law(matrix(GRAPHS[name], 4), 4, flyback))


def test_walks_that_hardly_leave_the_start_follow_their_law_too():
    """Six nodes of a path with flyback 0.99 would take 10**10 steps without help."""
    codes = sample_graphlets([GRAPHS["path"]], 6, 100_000, flyback=0.99, seed=1)
    assert_law(codes[0], naive_graphlets.walk_law(matrix(GRAPHS["path"]), 6, 0.99))


@pytest.mark.parametrize("name", GRAPHS)
def test_uniform_samples_follow_their_law(name):
    codes = sample_graphlets([GRAPHS[name]], 4, 100_000, sampling="uniform", seed=5)
    assert_law(codes[0], naive_graphlets.uniform_law(matrix(GRAPHS[name], 4), 4))


def test_uniform_samples_agree_with_enumeration():
    graph = nx.gnp_random_graph(30, 0.2, seed=1)
    classes = canonical_forms(5).table
    exact = enumerate_graphlets([graph], 5)
    share = np.bincount(classes[exact.codes], exact.counts, 34) / exact.counts.sum()
    drawn = np.bincount(classes[sample_graphlets([graph], 5, 200_000, "uniform")[0]], minlength=34)
    kept = share * 200_000 > 5
    assert (share[~kept] == 0).all()
    assert (drawn[~kept] == 0).all()
    assert chisquare(drawn[kept], share[kept] * 200_000).pvalue > 1e-3


@laws
@given(SEEDS, st.booleans(), st.sampled_from(["uniform", "random_walk"]))
def test_directions_and_loops_do_not_matter(seed, directed, sampling):
    graphs = samples(seed, n=4, directed=directed)
    undirected = [(np.array(np.nonzero(simple(g))), len(g.labels)) for g in graphs]
    np.testing.assert_array_equal(
        sample_graphlets(batch(graphs), 4, 50, sampling), sample_graphlets(undirected, 4, 50, sampling)
    )


@pytest.mark.same_bits
def test_samples_of_a_graph_do_not_depend_on_the_others_nor_on_threads(monkeypatch):
    graphs = [*GRAPHS.values(), nx.gnp_random_graph(70, 0.1, seed=2)] * 2
    codes = sample_graphlets(graphs, 6, 1000, seed=9)
    for i in (0, 4, 8):
        np.testing.assert_array_equal(sample_graphlets([graphs[i]], 6, 1000, seed=9)[0], codes[i])
        np.testing.assert_array_equal(codes[i + 9], codes[i])
    np.testing.assert_array_equal(sample_graphlets(graphs, 6, 100, seed=9), codes[:, :100])
    for n_threads in (1, 5):
        monkeypatch.setattr("similia.core.config.cpu_count", lambda n=n_threads: n)
        np.testing.assert_array_equal(sample_graphlets(graphs, 6, 1000, seed=9), codes)
    assert (sample_graphlets(graphs, 6, 1000, seed=10)[8] == codes[8]).mean() < 0.2


def test_unlike_graphs_get_unlike_nodes():
    """With the same nodes, the codes of a graph and of its complement would be each other's complement."""
    graph = nx.gnp_random_graph(60, 0.5, seed=2)
    one, other = sample_graphlets([graph, nx.complement(graph)], 4, 1000, "uniform")
    assert (one ^ other == 63).mean() < 0.05


@pytest.mark.parametrize("n", [60, 64, 65, 200])
def test_codes_do_not_depend_on_how_edges_are_looked_up(n):
    graph = nx.gnp_random_graph(n, 0.3, seed=n)
    batch = as_graphs([graph])
    indptr, neighbours = loops.simple_adjacency(batch.node_offsets, batch.indptr, batch.indices, batch.node_offsets)
    words, no_words = loops.bit_matrix(n, indptr, neighbours), np.zeros((1, 0), dtype=np.uint64)
    rng = np.random.default_rng(0)
    for _ in range(20):
        nodes = rng.permutation(n)[:11]
        expected = naive_graphlets.graphlet_code(matrix(graph), nodes)
        assert loops._code(nodes, 11, words, indptr, neighbours) == expected
        assert loops._code(nodes, 11, no_words, indptr, neighbours) == expected


def test_a_large_graph_needs_no_bit_matrix():
    """Nodes that a walk sees of a long cycle are a path: size - 1 edges and no node with three."""
    cycle = (np.array([np.arange(6000), np.roll(np.arange(6000), -1)]), 6000)
    assert loops.bit_matrix(6000, np.zeros(6001, np.int64), np.zeros(0, np.int32)).shape[1] == 0
    for flyback in (0.15, 0.99):
        bits = unpack_graphlets(sample_graphlets([cycle], 8, 500, flyback=flyback)[0], 8)
        assert set(bits.sum(axis=1)) == {7}


@pytest.mark.parametrize("n", [7, 100])
def test_uniform_nodes_of_a_large_graph_are_those_of_walks_that_start_anew(n):
    """Graphs with a bit matrix and those without are drawn by two loops: the same nodes, so the same codes."""
    batch = as_graphs([nx.gnp_random_graph(n, 0.5, seed=n)])
    indptr, neighbours = loops.simple_adjacency(batch.node_offsets, batch.indptr, batch.indices, batch.node_offsets)
    codes, others = np.zeros((2, 300), np.uint64)
    key, alone = np.uint64(5), np.ones(n, np.int64)
    loops._draw_nodes(100, 300, 6, loops.bit_matrix(n, indptr, neighbours), key, codes)
    starts = np.arange(n, dtype=np.int32)
    loops._walk(100, 300, 6, np.uint64(0), indptr, neighbours, alone, starts, key, others)
    np.testing.assert_array_equal(codes, others)
    assert len(set(codes[100:])) > 20
    empty = (np.zeros((2, 0), np.int64), 6000)
    edge = (np.array([[0], [1]]), 6000)
    assert set(sample_graphlets([empty, edge], 2, 300, "uniform").ravel()) <= {0, 1}


# ---- counting
@laws
@given(SEEDS, st.sampled_from([3, 15, 16, 17, 55]), st.integers(0, 70), st.integers(0, 5))
@example(0, 55, 0, 3)
def test_patterns_equal_unique(seed, n_bits, n_samples, n):
    rng = np.random.default_rng(seed)
    codes = rng.choice(rng.integers(0, 2**n_bits, 20, dtype=np.uint64), (n, n_samples))
    for memory in ("1GiB", "100B"):
        with sm.config(max_memory=memory):
            patterns = count_patterns(codes)
        assert [a.dtype for a in patterns] == [np.uint64, np.int64, np.int64]
        assert patterns.offsets[-1] == len(patterns.codes) == len(patterns.counts)
        for i in range(n):
            distinct, counts = np.unique(codes[i], return_counts=True)
            part = slice(*patterns.offsets[i : i + 2])
            np.testing.assert_array_equal(patterns.codes[part], distinct)
            np.testing.assert_array_equal(patterns.counts[part], counts)


@laws
@given(SEEDS, st.integers(2, 6), st.booleans())
def test_enumeration_equals_all_combinations(seed, size, directed):
    graphs = samples(seed, directed=directed)
    patterns = enumerate_graphlets(batch(graphs), size)
    assert isinstance(patterns, Patterns)
    for i, graph in enumerate(graphs):
        subsets = itertools.combinations(range(len(graph.labels)), size)
        codes = np.array([naive_graphlets.graphlet_code(simple(graph), nodes) for nodes in subsets])
        assert as_dict(patterns, i) == dict(zip(*np.unique(codes, return_counts=True), strict=True))


def test_enumeration_with_more_patterns_than_a_table_starts_with():
    graph = nx.gnp_random_graph(17, 0.5, seed=0)
    subsets = itertools.combinations(range(17), 8)
    codes = [naive_graphlets.graphlet_code(matrix(graph), nodes) for nodes in subsets]
    assert as_dict(enumerate_graphlets([graph], 8)) == dict(zip(*np.unique(codes, return_counts=True), strict=True))


def test_triples_equal_reference_values():
    for row in table("F_k3_spectrum.csv"):
        graph = nx.Graph(ast.literal_eval(row["edges"]))
        graph = nx.relabel_nodes(graph, {v: i for i, v in enumerate(sorted(graph))})
        found = np.zeros(4, dtype=int)
        for code, times in as_dict(enumerate_graphlets([graph], 3)).items():
            found[code.bit_count()] += times
        assert found.tolist() == [int(row[f"n_{edges}edge"]) for edges in range(4)]


@pytest.mark.parametrize("row", [row for row in table("F_graphlets.csv") if row["k"] != "2"], ids=lambda row: row["k"])
def test_classes_equal_reference_values(row):
    size = int(row["k"])
    forms = canonical_forms(size)
    assert len(forms.table) == int(row["labelled_2^(k(k-1)/2)"])
    assert len(forms.representatives) == forms.table.max() + 1 == int(row["nonisomorphic"])
    np.testing.assert_array_equal(forms.table[forms.representatives], np.arange(len(forms.representatives)))
    pairs = [(i, j) for j in range(size) for i in range(j)]
    bits = unpack_graphlets(forms.representatives, size)
    graphs = [nx.Graph([pairs[p] for p in np.flatnonzero(row)]) for row in bits]
    connected = sum(len(graph) == size and nx.is_connected(graph) for graph in graphs)
    assert connected == int(row["connected_nonisomorphic"])


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_representatives_are_the_smallest_codes(size):
    assert canonical_forms(size).representatives.tolist() == naive_graphlets.isomorphism_classes(size)


@laws
@given(SEEDS, st.integers(2, 7))
def test_classes_do_not_depend_on_the_order_of_nodes(seed, size):
    rng = np.random.default_rng(seed)
    A = np.triu(rng.random((size, size)) < rng.random(), 1).astype(int)
    A += A.T
    classes = {
        int(canonical_forms(size).table[naive_graphlets.graphlet_code(A, rng.permutation(size))]) for _ in range(20)
    }
    assert len(classes) == 1


# ---- second moments
@laws
@given(SEEDS, st.integers(2, 11), st.sampled_from([1, 63, 64, 65, 300]))
def test_second_moments_are_exact(seed, size, n_samples):
    n_bits = size * (size - 1) // 2
    codes = np.random.default_rng(seed).integers(0, 2**n_bits, (3, n_samples), dtype=np.uint64)
    moments = second_moments(codes, size)
    assert moments.shape == (3, n_bits * (n_bits + 1) // 2)
    for row, code in zip(moments, codes, strict=True):
        np.testing.assert_array_equal(row, naive_graphlets.second_moments(unpack_graphlets(code, size)))


# ---- kernel
@laws
@given(SEEDS, st.integers(2, 4), st.booleans())
def test_kernel_counts_classes(seed, size, directed):
    """Graphs of up to four nodes are isomorphic if and only if they have the same degrees."""
    graphs = samples(seed, n=4, directed=directed)
    degrees = [
        [tuple(sorted(simple(g)[np.ix_(s, s)].sum(axis=1))) for s in itertools.combinations(range(len(g.labels)), size)]
        for g in graphs
    ]
    expected = naive.histogram_kernel([[row] for row in degrees])
    kernel = Graphlet(size)
    np.testing.assert_array_equal(kernel(batch(graphs)), expected)
    np.testing.assert_array_equal(kernel.diag(batch(graphs)), np.diag(expected))
    with sm.config(max_memory="100B"):
        np.testing.assert_array_equal(kernel(batch(graphs), batch(graphs[:2])), expected[:, :2])


def test_kernel_of_relabelled_graphs_and_of_those_without_graphlets():
    rng = np.random.default_rng(0)
    graphs = samples(4, n=8)
    turned = [g.relabelled(rng.permutation(len(g.labels))) for g in graphs]
    np.testing.assert_array_equal(Graphlet(5)(batch(graphs)), Graphlet(5)(batch(turned)))
    for n_samples in (None, 10):
        K = Graphlet(4, n_samples, normalize=True)([nx.path_graph(3), nx.path_graph(3), nx.path_graph(5)])
        np.testing.assert_array_equal(K, np.eye(3))


def test_kernel_ids_are_the_same_everywhere():
    """Columns by splitmix64 in Python integers: path of three (code 3), triangle (code 7), size in the high bits."""
    features = Graphlet(3).features([nx.path_graph(3), nx.complete_graph(3)], n_features=2**20)
    columns = [naive.splitmix(code | 3 << 32) % 2**20 for code in (3, 7)]
    assert features.indices.tolist() == columns
    assert Graphlet(3)([nx.path_graph(3)], [nx.path_graph(3)])[0, 0] == 1.0


@pytest.mark.parametrize("sampling", ["uniform", "random_walk"])
def test_sampled_kernel(sampling):
    """Histograms of samples: of the exact shares for uniform ones, of connected graphlets for walks."""
    graphs = [nx.gnp_random_graph(20, p, seed=i) for i, p in enumerate((0.2, 0.3, 0.5))]
    kernel = clone(Graphlet(4, n_samples=20_000, sampling=sampling, normalize=True, seed=1))
    K = kernel(graphs)
    np.testing.assert_array_equal(K, kernel(graphs[:2] + graphs[2:]))
    np.testing.assert_array_equal(K[:1], kernel(graphs[:1], graphs))
    if sampling == "uniform":
        np.testing.assert_allclose(K, Graphlet(4, normalize=True)(graphs), atol=0.01)
    else:
        assert Graphlet(4, n_samples=1000, sampling=sampling).features(graphs, 2**20).nnz <= 3 * 6


# ---- bad input
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"size": 12}, "size=12 needs 66 bits, but codes have 64"),
        ({"size": 1}, "size must be an integer >= 2, got 1"),
        ({"n_samples": 0}, "n_samples must be an integer >= 1, got 0"),
        ({"sampling": "walk"}, "sampling must be 'uniform' or 'random_walk', got 'walk'"),
        ({"small": "drop"}, "small must be 'pad' or 'raise', got 'drop'"),
        ({"flyback": 1.0}, "flyback must be a probability, at least 0 and below 1, got 1.0"),
        ({"flyback": float("nan")}, "flyback must be a probability"),
        ({"seed": 0.5}, "seed must be an integer, got 0.5"),
        ({"small": "raise"}, "graph 1 has 2 nodes, expected at least size=3; small='pad' adds nodes"),
        ({"graphs": []}, "X is empty"),
    ],
)
def test_sampling_refuses(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        sample_graphlets(**({"graphs": [nx.path_graph(3), nx.path_graph(2)], "size": 3, "n_samples": 5} | arguments))


def test_the_rest_refuses():
    with pytest.raises(ValueError, match=r"graph 1 has 3000 nodes, hence 4.5e\+09 subsets of 3"):
        enumerate_graphlets([nx.path_graph(3), (np.zeros((2, 0), int), 3000)], 3)
    with pytest.raises(ValueError, match=r"code 1 is 8, expected below 2\*\*3 for size=3"):
        unpack_graphlets([7, 8], 3)
    with pytest.raises(ValueError, match=r"codes must be a 2-D array of uint64, got shape \(2,\)"):
        count_patterns(np.zeros(2, np.uint64))
    with pytest.raises(ValueError, match="sizes 2 to 7, got size=8"):
        canonical_forms(8)
    with pytest.raises(ValueError, match="n_samples must be an integer >= 1, got -1"):
        Graphlet(n_samples=-1)([nx.path_graph(5)])
    with pytest.raises(ValueError, match=r"draw some of them: sample_graphlets\(graphs, size=3, n_samples=...\)"):
        enumerate_graphlets([nx.empty_graph(3000)], 3)
    with pytest.raises(ValueError, match=r"draw some of them: Graphlet\(size=5, n_samples=...\)"):
        Graphlet(size=5)([nx.empty_graph(300)])


# ---- structure alone
def unruly():
    """Graphs with labels, attributes and weights that fit neither each other nor themselves, and their plain twins."""
    plain = [nx.cycle_graph(6), nx.path_graph(5), nx.star_graph(4), nx.complete_graph(4)]
    some, vectors, heavy = plain[0].copy(), plain[1].copy(), plain[2].copy()
    some.nodes[2]["label"] = "C"
    nx.set_node_attributes(vectors, {i: [1.0] * (1 + i % 2) for i in vectors}, "attributes")
    heavy.edges[0, 1]["weight"], heavy.edges[0, 2]["weight"] = "strong", np.nan
    heavy.edges[0, 1]["label"] = 3
    labelled = plain[3].copy()
    nx.set_node_attributes(labelled, 7, "label")
    return [some, vectors, heavy, labelled], plain


READERS = [
    lambda X: sample_graphlets(X, 4, 50),
    lambda X: enumerate_graphlets(X, 4).counts,
    lambda X: Graphlet(4)(X),
    lambda X: Graphlet(4)(X, X),
    lambda X: Graphlet(4).diag(X),
    lambda X: sm.distances.MMD(4, 50)(X, X),
    lambda X: sm.GraphletSampling(4, 50, n_components=None, random_state=0).fit(X).transform(X),
    lambda X: sm.Nystroem(Graphlet(4, normalize=True), n_components=2, random_state=0).fit(X).transform(X),
]


@pytest.mark.parametrize("read", READERS)
def test_structure_is_read_without_labels_and_weights(read):
    X, plain = unruly()
    np.testing.assert_array_equal(read(X), read(plain))


@pytest.mark.parametrize(
    "graph",
    [
        {"edge_index": INDEX, "node_labels": [1, 2, 3], "edge_weights": [np.nan] * 5},
        {"edge_index": INDEX, "n_nodes": 3, "node_labels": [None, 1], "edge_labels": [1]},
        (INDEX, 3, {"node_attributes": ["a", "b", "c"], "edge_weights": "heavy"}),
        np.where(DENSE > 1.2, np.nan, DENSE),
        csr_array(np.where(DENSE > 1.2, np.nan, DENSE)),
        Igraph(3, [(u, v) for u, v, _ in EDGES], nodes=[{"label": 1}, {}, {}], data=[{"weight": "x"}, {}, {}]),
        pyg(edge_index=INDEX, num_nodes=3, x=[["a"]], edge_attr=[[1.0, 2.0]], edge_weight=[np.inf]),
        as_graphs([(INDEX, 3, {"node_labels": [1, 2, 3]})]),
    ],
    ids=lambda graph: type(graph).__name__,
)
def test_structure_of_every_form_is_read_without_labels_and_weights(graph):
    expected = enumerate_graphlets([(INDEX, 3)] * 2, 2)
    for left, right in zip(enumerate_graphlets([graph, (INDEX, 3)], 2), expected, strict=True):
        np.testing.assert_array_equal(left, right)


def test_batches_pass_with_their_labels():
    X = as_graphs([nx.cycle_graph(4), nx.path_graph(4)])
    assert as_structures(X) is X


def test_long_enumerations_show_progress(capfd, monkeypatch):
    monkeypatch.setattr("similia.objects.graphlets._MOST_SUBSETS", 20)
    X = [nx.cycle_graph(6), nx.path_graph(5), nx.star_graph(4), nx.path_graph(2), nx.complete_graph(6)]
    silent = Graphlet(4)(X)
    assert "graphlets" not in capfd.readouterr().err
    with sm.config(progress=True):
        shown = Graphlet(4)(X)
    assert "graphlets: 2/2" in capfd.readouterr().err  # 15 + 5 subsets, then 5 + 0 + 15
    monkeypatch.undo()
    np.testing.assert_array_equal(silent, shown)
    np.testing.assert_array_equal(silent, Graphlet(4)(X))
