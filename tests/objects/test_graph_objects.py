"""Graphs: every form gives the same batch, and a batch behaves like a list."""

from __future__ import annotations

import copy
import hashlib
import subprocess
import sys
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from naive import similarities as naive
from samples.graph_forms import DENSE, EDGES, INDEX, OK, SIDES, WEIGHTS, Igraph, pyg, same
from similia.objects import GraphBatch, as_graphs, n_objects, take

LAW = settings(max_examples=50, deadline=None)


def arcs(graph):
    """Arcs of a batch of one graph as {(source, target): weight}."""
    weights = np.ones(len(graph.indices)) if graph.edge_weights is None else graph.edge_weights
    return {(int(u), int(v)): w for (u, v), w in zip(graph.edge_index.T, weights, strict=True)}


@st.composite
def networkx_graphs(draw, weighted=True):
    kind = draw(st.sampled_from([nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]))
    nodes = draw(st.lists(st.one_of(st.integers(-5, 5), st.text(max_size=2)), unique=True, max_size=6))
    graph = kind()
    graph.add_nodes_from(nodes)
    ends = st.sampled_from(nodes) if nodes else st.nothing()
    for u, v in draw(st.lists(st.tuples(ends, ends), max_size=8)) if nodes else []:
        if weighted:
            graph.add_edge(u, v, weight=draw(st.integers(1, 4)) / 2)
        else:
            graph.add_edge(u, v)
    return graph


@LAW
@given(st.lists(networkx_graphs(), min_size=1, max_size=4))
def test_networkx_graphs_keep_their_arcs_and_weights(graphs):
    before = copy.deepcopy(graphs)
    batch = as_graphs(graphs)
    assert len(batch) == n_objects(batch) == len(graphs)
    for one, graph in zip(batch, graphs, strict=True):
        assert one.n_nodes == graph.number_of_nodes()
        assert arcs(one) == pytest.approx(naive.arcs(graph))
    for graph, old in zip(graphs, before, strict=True):
        assert list(graph.edges(data=True)) == list(old.edges(data=True))
        assert list(graph.nodes(data=True)) == list(old.nodes(data=True))


@LAW
@given(st.lists(networkx_graphs(weighted=False), min_size=1, max_size=4))
def test_arcs_are_sorted_unique_and_in_their_graph(graphs):
    batch = as_graphs(graphs)
    source, target = batch.edge_index
    keys = source * max(1, batch.n_nodes) + target
    assert (np.diff(keys) > 0).all()
    assert (batch.graph_of_node[source] == batch.graph_of_node[target]).all()
    assert batch.edge_weights is None
    assert all(getattr(batch, name).dtype == np.int64 for name in ("node_offsets", "indptr", "indices"))
    assert batch.degrees.sum() == len(batch.indices)


@LAW
@given(st.lists(networkx_graphs(), min_size=1, max_size=4), st.data())
def test_indexing_is_list_indexing_and_joining_undoes_it(graphs, data):
    batch = as_graphs(graphs)
    n = len(graphs)
    indices = data.draw(st.lists(st.integers(-n, n - 1), min_size=1, max_size=6))
    assert same(as_graphs([batch[i] for i in indices]), batch.take(indices))
    assert same(batch[indices], take(batch, indices))
    assert same(batch[np.array(indices), ...], batch[indices])
    assert same(as_graphs(list(batch)), batch)
    assert as_graphs(batch) is batch
    assert len(batch[:0]) == 0
    assert same(batch[::-1][::-1], batch)


@LAW
@given(networkx_graphs(), st.randoms())
def test_permuting_the_nodes_permutes_the_arcs(graph, random):
    nodes = list(graph.nodes)
    order = random.sample(nodes, len(nodes))
    permuted = type(graph)()
    permuted.add_nodes_from(order)
    permuted.add_edges_from(graph.edges(data=True))
    moved = {
        (order.index(nodes[u]), order.index(nodes[v])): weight for (u, v), weight in arcs(as_graphs([graph])).items()
    }
    assert arcs(as_graphs([permuted])) == pytest.approx(moved)
    names = {node: f"name {i}" for i, node in enumerate(nodes)}
    assert same(as_graphs([nx.relabel_nodes(graph, names)]), as_graphs([graph]))


# --- a hand-made graph in every form ----------------------------------------------------------


def networkx_form():
    graph = nx.Graph()
    graph.add_nodes_from([2, 0, 1])  # their order counts, not their names
    graph = nx.relabel_nodes(graph, {2: "a", 0: "b", 1: "c"})
    for u, v, weight in EDGES:
        graph.add_edge("abc"[u], "abc"[v], weight=weight)
    return graph


FORMS = {
    "networkx": networkx_form,
    "igraph": lambda: Igraph(3, [(0, 1), (1, 2), (2, 2)], data=[{"weight": w} for *_, w in EDGES]),
    "dense": lambda: DENSE,
    "csr_array": lambda: sparse.csr_array(DENSE),
    "coo_matrix": lambda: sparse.coo_matrix(DENSE),
    "lil_array": lambda: sparse.lil_array(DENSE),
    "tuple": lambda: (INDEX, 3, {"edge_weights": WEIGHTS}),
    "dict": lambda: {"edge_index": INDEX.tolist(), "n_nodes": 3, "edge_weights": WEIGHTS.tolist()},
    "pyg": lambda: pyg(edge_index=INDEX, num_nodes=3, edge_attr=WEIGHTS[:, None]),
    "pyg edge_weight": lambda: pyg(edge_index=INDEX, num_nodes=3, edge_weight=WEIGHTS),
    "batch": lambda: GraphBatch.from_arrays([0, 3], INDEX[:, ::-1], edge_weights=WEIGHTS[::-1]),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_graph(form):
    graph = FORMS[form]()
    batch = as_graphs([graph, graph])
    assert batch.node_offsets.tolist() == [0, 3, 6]
    assert batch.indptr.tolist() == [0, 1, 3, 5, 6, 8, 10]
    assert batch.indices.tolist() == [1, 0, 2, 1, 2, 4, 3, 5, 4, 5]
    assert batch.edge_weights.tolist() == [1.5, 1.5, 2.0, 2.0, 1.0] * 2
    assert as_graphs([graph], edge_weight=None).edge_weights is None


def test_a_matrix_of_numpy_is_an_array():
    same(as_graphs([DENSE.view(np.matrix)]), as_graphs([DENSE]))


def test_matrices_of_ones_have_no_weights_and_zeros_are_no_arcs():
    explicit_zero = sparse.coo_array(([1, 0], ([0, 1], [1, 0])), shape=(2, 2))
    batch = as_graphs([np.array([[0, 1], [1, 0]]), np.array([[True, False], [False, False]]), explicit_zero])
    assert batch.edge_weights is None
    assert batch.edge_index.T.tolist() == [[0, 1], [1, 0], [2, 2], [4, 5]]
    assert as_graphs(np.zeros((4, 2, 2))).degrees.tolist() == [0] * 8  # a stack of matrices


SPARSE = ("coo", "csr", "csc", "bsr", "dok", "lil", "dia")
ROW, COL, ENTRIES = [2, 0, 0, 1, 1, 0], [1, 1, 1, 0, 0, 2], [5, 1, 1, 1, 1, 0]  # unsorted, repeated, an explicit zero


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.int8])
@pytest.mark.parametrize("form", SPARSE)
@pytest.mark.parametrize("kind", [sparse.coo_array, sparse.coo_matrix])
def test_every_sparse_form_sums_repeated_entries(kind, form, dtype):
    matrix = kind((np.array(ENTRIES, dtype), (ROW, COL)), shape=(3, 3)).asformat(form)
    before = matrix.copy()
    batch = as_graphs([matrix])
    assert batch.edge_index.T.tolist() == [[0, 1], [1, 0], [2, 1]]
    assert batch.edge_weights.tolist() == [2.0, 2.0, 5.0]
    assert (matrix != before).nnz == 0


def test_repeated_entries_of_csr_and_small_integers():
    repeated = sparse.csr_array((np.array([100, 100], np.int8), [1, 1], [0, 2, 2]), shape=(2, 2))
    assert as_graphs([repeated]).edge_weights.tolist() == [200.0]
    assert repeated.nnz == 2
    ones = sparse.coo_array((np.ones(2, bool), ([0, 0], [1, 1])), shape=(2, 2))  # true or true is true
    assert as_graphs([ones]).edge_weights is None
    cancelled = sparse.coo_array(([1.0, -1.0, 1.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    assert as_graphs([cancelled]).edge_index.tolist() == [[1], [0]]


def test_repeated_arcs_first_label_summed_weights():
    graph = ([[0, 0, 1, 0], [1, 1, 0, 1]], 2, {"edge_labels": [7, 8, 9, 6], "edge_weights": [1, 2, 4, 8]})
    batch = as_graphs([graph])
    assert batch.edge_index.tolist() == [[0, 1], [1, 0]]
    assert batch.edge_labels.tolist() == [7, 9]
    assert batch.edge_weights.tolist() == [11.0, 4.0]
    first = GraphBatch.from_arrays([0, 2], graph[0], edge_weights=graph[2]["edge_weights"], repeated="first")
    assert first.edge_weights.tolist() == [1.0, 4.0]
    many = np.random.default_rng(0).integers(5, size=(2, 300))
    first_of = {pair: label for label, pair in reversed(list(enumerate(zip(*many.tolist(), strict=True))))}
    batch = as_graphs([(many, 5, {"edge_labels": np.arange(300)})])
    assert batch.edge_labels.tolist() == [first_of[pair] for pair in sorted(first_of)]
    parallel = nx.MultiGraph([(0, 1), (0, 1)])
    assert as_graphs([parallel]).edge_weights is None
    assert as_graphs([parallel]).indices.tolist() == [1, 0]


def test_an_edge_without_a_weight_among_weighted_ones_weighs_one():
    graph = nx.path_graph(3)
    graph.edges[0, 1]["weight"] = 5
    batch = as_graphs([graph, nx.path_graph(2)])
    assert batch.edge_weights.tolist() == [5, 5, 1, 1, 1, 1]


def test_labels_and_attributes_side_by_side():
    graph = nx.Graph()
    graph.add_node("x", label=3, attributes=[0.5, 1.0])
    graph.add_node("y", label=-1, attributes=(2, 3))
    graph.add_edge("x", "y", label=9, weight=2)
    igraph = Igraph(
        2,
        [(0, 1)],
        nodes=[{"label": 3, "attributes": [0.5, 1.0]}, {"label": -1, "attributes": [2, 3]}],
        data=[{"label": 9, "weight": 2}],
    )
    arrays = {
        "edge_index": [[0, 1], [1, 0]], "node_labels": [3, -1], "node_attributes": [[0.5, 1.0], [2, 3]],
        "edge_labels": [9, 9], "edge_weights": [2, 2],
    }  # fmt: skip
    batch = as_graphs([graph, igraph, arrays, {**arrays, "n_nodes": np.int32(2)}, nx.Graph()])
    assert batch.node_labels.tolist() == [3, -1] * 4
    assert batch.node_attributes.tolist() == [[0.5, 1.0], [2.0, 3.0]] * 4
    assert batch.edge_labels.tolist() == [9] * 8
    assert batch.edge_weights.tolist() == [2.0] * 8
    bare = as_graphs([graph], node_label=None, node_attributes=None, edge_label=None, edge_weight=None)
    assert all(getattr(bare, name) is None for name in SIDES)
    for name, kept in (("node_label", "edge_labels"), ("edge_label", "node_labels")):
        for form in (graph, igraph, arrays, batch[0]):
            assert getattr(as_graphs([form], **{name: None}), kept) is not None
            assert getattr(as_graphs([form], **{name: None}), name + "s") is None


def test_names_of_networkx_attributes_can_be_chosen():
    graph = nx.Graph()
    graph.add_node(0, element="C", charge=0.25)
    graph.add_node(1, element="N", charge=-1)
    graph.add_edge(0, 1, bond=2, length=1.5)
    batch = as_graphs([graph], node_label="element", node_attributes="charge", edge_label="bond", edge_weight="length")
    assert batch.node_attributes.tolist() == [[0.25], [-1.0]]
    assert batch.edge_labels.tolist() == [2, 2]
    assert batch.edge_weights.tolist() == [1.5, 1.5]
    assert len(set(batch.node_labels.tolist())) == 2


def test_pyg_attributes():
    x = [[1.0, 2.0], [3.0, 4.0]]
    one = pyg(edge_index=[[0, 1], [1, 0]], num_nodes=2, x=x, edge_attr=[4, 5])
    assert as_graphs([one]).node_attributes.tolist() == x
    assert as_graphs([one]).edge_labels.tolist() == [4, 5]
    one_hot = pyg(edge_index=[[0, 1], [1, 0]], num_nodes=2, edge_attr=[[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    assert as_graphs([one_hot]).edge_labels.tolist() == [1, 0]
    many = pyg(edge_index=[[0, 1], [1, 0]], num_nodes=2, edge_attr=[[0.5, 1.0], [1.0, 0.0]])
    with pytest.raises(ValueError, match=r"graph 1 has edge_attr of 2 columns.*edge_label=None, edge_weight=None"):
        as_graphs([one_hot, many])
    assert as_graphs([many], edge_label=None, edge_weight=None).edge_weights is None


def test_pyg_data_sets_and_batches_are_collections():
    one = pyg(edge_index=[[0], [1]], num_nodes=2)

    class DataSet:
        edge_index, num_nodes = None, 4  # PyG's data sets pass these through from their joined graph

        def len(self):
            return 3

        __len__ = len

        def get(self, i):
            return one

        def __getitem__(self, i):
            return self.get(i)

    assert len(as_graphs(DataSet())) == 3
    assert len(as_graphs(SimpleNamespace(to_data_list=lambda: [one, one], edge_index=None, num_nodes=4))) == 2


def test_labels_of_any_kind_are_the_same_in_every_process():
    labels = ["C", "Ω", "C", (1, 2), b"C", 2.5, 2**70, np.int8(-3), np.True_, np.str_("C")]
    code = (
        "import numpy as np; from similia.objects.graph_batch import hash_labels;"
        f"print(hash_labels({labels[:7]!r}).tolist())"
    )
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    batch = as_graphs([([[], []], len(labels), {"node_labels": np.array([*labels, None], dtype=object)[:-1]})])
    found = batch.node_labels.tolist()
    assert str(found[:7]) == there.strip()
    assert found[7:9] == [-3, 1]
    assert found[0] == found[2] == found[9]
    assert len(set(found[:7])) == 6
    assert found[0] == int.from_bytes(hashlib.blake2b(b"C", digest_size=8).digest(), "little", signed=True)


@pytest.mark.parametrize("labels", [[1, "C"], (1, 1.5)])
def test_integers_among_labels_of_other_types_stay_integers(labels):
    drawn = nx.Graph()
    drawn.add_nodes_from((i, {"label": label}) for i, label in enumerate(labels))
    none = np.zeros((2, 0), int)
    batch = as_graphs(
        [{"edge_index": none, "node_labels": labels}, (none, len(labels), {"node_labels": labels}), drawn]
    )
    assert batch.node_labels.tolist() == batch[0].node_labels.tolist() * 3
    assert batch.node_labels[0] == 1


def test_shapes_that_are_empty():
    batch = as_graphs(
        [nx.Graph(), nx.empty_graph(2), (np.zeros((2, 0)), 1), np.zeros((0, 0)), sparse.csr_array((3, 3))]
    )
    assert np.diff(batch.node_offsets).tolist() == [0, 2, 1, 0, 3]
    assert len(batch.indices) == 0
    assert batch[0].n_nodes == 0
    assert same(as_graphs([batch[1], batch[0]]), batch[[1, 0]])
    no_rows = ([[], []], 0, {"node_attributes": [], "node_labels": []})
    rows = ([[], []], 1, {"node_attributes": [[1.0, 2.0]], "node_labels": [7]})
    assert as_graphs([no_rows, rows]).node_attributes.tolist() == [[1.0, 2.0]]
    assert as_graphs([no_rows]).node_attributes.shape == (0, 1)


def test_paths_are_read(tmp_path):
    (tmp_path / "T_A.txt").write_text("1,2\n2,1\n")
    (tmp_path / "T_graph_indicator.txt").write_text("1\n1\n")
    assert as_graphs(tmp_path).indices.tolist() == [1, 0]
    assert as_graphs(str(tmp_path)).indices.tolist() == [1, 0]


# --- names ------------------------------------------------------------------------------------


def molecule():
    graph = nx.Graph()
    graph.add_node(0, element="C", charge=0.25)
    graph.add_node(1, element="N", charge=-1)
    graph.add_edge(0, 1, bond=2)
    return graph


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (
            {"node_label": "elements"},
            "node_label='elements': no node of any graph has data of this name; nodes have 'element', 'charge'",
        ),
        ({"node_attributes": "x"}, "node_attributes='x': no node .* 'element', 'charge'"),
        ({"node_label": None, "edge_label": "element"}, "edge_label='element': no edge .* edges have 'bond'"),
        (
            {"node_label": "element", "edge_weight": "w"},
            "edge_weight='w': no edge of any graph has data of this name; edges have 'bond'",
        ),
    ],
)
def test_a_chosen_name_that_is_nowhere_is_refused(names, sentence):
    with pytest.raises(ValueError, match=sentence):
        as_graphs([molecule(), nx.Graph()], **names)


def test_a_chosen_name_needs_data_only_where_there_are_nodes_or_edges():
    assert as_graphs([nx.Graph()], node_label="element", edge_weight="w").n_nodes == 0
    dots = nx.Graph()
    dots.add_node(0, element="C")
    assert as_graphs([dots], node_label="element", edge_weight="w").edge_weights is None
    with pytest.raises(ValueError, match=r"nodes have no names \(only those of networkx and igraph"):
        as_graphs([OK], node_label="element")


def test_unread_data_of_nodes_is_announced_once():
    sentence = (
        r"but no 'label', .* write as_graphs\(X, node_label='element'\) if it is a label, node_attributes=\['element'\]"
    )
    with pytest.warns(UserWarning, match=sentence) as caught:
        assert as_graphs([molecule(), molecule()]).node_labels is None
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match=sentence):
        as_graphs([molecule()], edge_label=None)
    as_graphs([molecule()], node_label=None)  # left out on purpose
    as_graphs([molecule()], node_attributes="charge")
    named = Igraph(1, [], nodes=[{"name": "a"}])
    assert as_graphs([named]).node_labels is None  # igraph's name of a node is no label
    numbered = nx.Graph()
    numbered.add_node(0, attributes=[1.0], charge=2)
    assert as_graphs([numbered]).node_attributes.tolist() == [[1.0]]  # the usual name of numbers is read
    labelled = molecule()
    nx.set_node_attributes(labelled, 1, "label")
    assert as_graphs([labelled]).node_labels.tolist() == [1, 1]


def test_a_text_is_a_path_and_says_so():
    with pytest.raises(FileNotFoundError, match=r"CCO does not exist; .* pass graphs as a list"):
        as_graphs("CCO")


def test_no_names_of_attributes_are_none():
    graph = nx.path_graph(2)
    nx.set_node_attributes(graph, 1.0, "attributes")
    assert as_graphs([graph], node_attributes=[]).node_attributes is None


def test_attributes_under_several_names_stand_side_by_side():
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, {v: {"charge": 0.5 * v, "place": [v, -v], "other": "text"} for v in graph})
    found = as_graphs([graph, nx.Graph()], node_label=None, node_attributes=["place", "charge"])
    np.testing.assert_array_equal(found.node_attributes, [[0, 0, 0], [1, -1, 0.5], [2, -2, 1]])
    alone = as_graphs([graph], node_label=None, node_attributes=("charge",)).node_attributes
    np.testing.assert_array_equal(alone, [[0], [0.5], [1]])
    with pytest.raises(ValueError, match="graph 0 has no 'mass' at any node, expected all of node_attributes"):
        as_graphs([graph, graph], node_attributes=["charge", "mass"])
    del graph.nodes[1]["charge"]
    with pytest.raises(ValueError, match="graph 0 has no 'charge' at node 1, but at other nodes"):
        as_graphs([graph], node_attributes=["place", "charge"])
