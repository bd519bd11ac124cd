"""Graphs: what is refused, with one sentence, and what stored graphs must be."""

from __future__ import annotations

import copy
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
from scipy import sparse

import similia as sm
from samples.graph_forms import DENSE, INDEX, OK, SIDES, Igraph, pyg, same
from similia.objects import GraphBatch, as_graphs

# --- what is refused --------------------------------------------------------------------------


def with_node(graph, **data):
    graph = graph.copy()
    graph.add_node("extra", **data)
    return graph


LABELLED = nx.Graph()
LABELLED.add_node(0, label=1, attributes=[1.0, 2.0])
PATH = nx.path_graph(2)
BAD = {
    "one networkx graph": (PATH, TypeError, r"one Graph, .*write \[graph\]"),
    "one igraph graph": (Igraph(1, []), TypeError, r"one Igraph, .*write \[graph\]"),
    "one matrix": (DENSE, TypeError, r"one ndarray, .*write \[graph\]"),
    "one sparse matrix": (sparse.csr_array(DENSE), TypeError, r"write \[graph\]"),
    "one tuple": (OK, TypeError, r"one tuple, .*write \[graph\]"),
    "one dict": ({"edge_index": INDEX}, TypeError, r"write \[graph\]"),
    "one pyg": (pyg(edge_index=INDEX, num_nodes=3), TypeError, r"write \[graph\]"),
    "nothing": (None, TypeError, "is NoneType .*sequence of graphs"),
    "generator": ((g for g in [PATH]), TypeError, "is generator .*sequence of graphs"),
    "empty": ([], ValueError, "found 0 graphs"),
    "empty batch": (as_graphs([PATH])[:0], ValueError, "found 0 graphs"),
    "string in the middle": ([PATH, "x", PATH], TypeError, r"graph 1 is str \('x'\), expected a networkx"),
    "None in the middle": ([PATH, PATH, None], TypeError, r"graph 2 is NoneType"),
    "batch of two": ([PATH, as_graphs([PATH, PATH])], ValueError, "graph 1 is a GraphBatch of 2 graphs"),
    "matrix not square": ([np.ones((2, 3))], ValueError, r"graph 0 is an array of shape \(2, 3\)"),
    "sparse not square": ([PATH, sparse.csr_array((2, 3))], ValueError, r"graph 1 is a sparse .* of shape \(2, 3\)"),
    "complex sparse matrix": ([PATH, sparse.csr_array(1j * DENSE)], ValueError, "graph 1 is a sparse .* of complex128"),
    "matrix with NaN": ([np.array([[0, np.nan], [1, 0]])], ValueError, "graph 0, arc 0 has edge_weights that are NaN"),
    "arc out of range": ([OK, ([[0, 1], [1, 2]], 2)], ValueError, r"graph 1, arc 1 joins nodes \[1, 2\].*2 nodes"),
    "negative node": ([([[0], [-1]], 2)], ValueError, r"graph 0, arc 0 joins nodes \[0, -1\]"),
    "edge_index transposed": ([(np.zeros((5, 2), int), 2)], ValueError, r"graph 0 has edge_index .* shape \(5, 2\)"),
    "edge_index of floats": ([([[0.5], [1]], 2)], ValueError, "graph 0 has edge_index of float64"),
    "n_nodes missing": ([{"edge_index": INDEX}], ValueError, "graph 0 has no n_nodes"),
    "number as labels": ([{"edge_index": INDEX, "node_labels": 5}], ValueError, "graph 0 has node_labels=5, expected"),
    "labels in a column": (
        [(*OK, {"node_labels": np.ones((2, 1), np.uint8)})], ValueError, r"graph 0 has labels of shape \(2, 1\)"
    ),
    "n_nodes negative": ([([[], []], -1)], ValueError, "graph 0 has n_nodes=-1"),
    "n_nodes no integer": ([{"edge_index": INDEX, "n_nodes": 3.5}], ValueError, "graph 0 has n_nodes=3.5"),
    "key misspelt": ([{"edge_index": INDEX, "nodes": 3}], ValueError, "graph 0 is a dict with an unknown key 'nodes'"),
    "key missing": ([{"n_nodes": 3}], ValueError, "graph 0 is a dict with no key 'edge_index'"),
    "too few labels": ([OK, (*OK, {"node_labels": [1]})], ValueError, "graph 1 has 1 rows of node_labels for 2 nodes"),
    "too many rows": ([(*OK, {"node_attributes": np.ones((3, 1))})], ValueError, "graph 0 has 3 rows of node_attr"),
    "too few edge labels": ([([[0, 1], [1, 0]], 2, {"edge_labels": [1]})], ValueError, "1 rows of edge_labels"),
    "NaN attributes": (
        [OK, (*OK, {"node_attributes": [[0.0], [np.nan]]})], ValueError, "graph 1, node 1 has node_attributes that"
    ),
    "infinite weight": ([(*OK, {"edge_weights": [np.inf]})], ValueError, "graph 0, arc 0 has edge_weights that"),
    "NaN label": ([(*OK, {"node_labels": [1.0, np.nan]})], ValueError, "graph 0 has a missing label"),
    "None label": ([(*OK, {"node_labels": ["C", None]})], ValueError, "graph 0 has a missing label"),
    "attributes are texts": ([(*OK, {"node_attributes": ["a", "b"]})], ValueError, "graph 0 has .* not numbers"),
    "label on some nodes": ([PATH, with_node(LABELLED)], ValueError, "graph 1 has no 'label' at node 'extra'"),
    "label in some graphs": ([LABELLED, PATH], ValueError, "graph 1 has no node_labels, but graph 0 has"),
    "label in later graphs": ([PATH, LABELLED], ValueError, "graph 0 has no node_labels, but graph 1 has"),
    "attributes of two lengths": (
        [with_node(LABELLED, label=1, attributes=[1])], ValueError, r"graph 0 has .* shape \(1,\) at node 'extra'"
    ),
    "attributes in some": (
        [(*OK, {"node_attributes": np.ones((2, 2))}), (*OK, {"node_attributes": np.ones((2, 3))})],
        ValueError, r"graph 1 has node attributes of shape \(2, 3\), but graph 0",
    ),
    "weight is a list": (
        [nx.Graph([(0, 1, {"weight": [1, 2]})])], ValueError, r"graph 0 has a weight of shape \(2,\) at edge \(0, 1\)"
    ),
    "weight is a text": ([nx.Graph([(0, 1, {"weight": "heavy"})])], ValueError, "graph 0 has weights .* not numbers"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_sentence(case):
    value, error, sentence = BAD[case]
    with pytest.raises(error, match=sentence) as raised:
        as_graphs(value)
    assert "\n" not in str(raised.value)


FROM_ARRAYS = {
    "offsets begin elsewhere": ({"node_offsets": [1, 2]}, "starts at 0"),
    "offsets decrease": ({"node_offsets": [0, 3, 2]}, "never decreases"),
    "offsets are floats": ({"node_offsets": [0.0, 2.5]}, "integers"),
    "no offsets": ({"node_offsets": []}, "integers"),
    "arc outside": ({"edge_index": [[0, 0], [1, 9]]}, r"arc 1 joins nodes \[0, 9\], but there are 4 nodes"),
    "arc across": ({"edge_index": [[0, 1], [1, 2]]}, "arc 1 joins graph 0 to graph 1"),
    "one row": ({"edge_index": [0, 1, 2]}, r"shape \(2, n_arcs\)"),
    "labels too short": ({"node_labels": [1, 2]}, r"one row for each of 4 nodes, got shape \(2,\)"),
    "labels are texts": ({"node_labels": list("abcd")}, "node_labels must be integers"),
    "labels are floats": ({"edge_labels": [0.5]}, "edge_labels must be integers"),
    "attributes flat": ({"node_attributes": [1, 2, 3, 4]}, r"one row for each of 4 nodes, got shape \(4,\)"),
    "attributes NaN": ({"node_attributes": [[1], [2], [np.nan], [3]]}, r"node_attributes\[2\] holds NaN"),
    "weights too long": ({"edge_weights": [1, 2]}, "one row for each of 1 edges"),
}  # fmt: skip


@pytest.mark.parametrize("case", FROM_ARRAYS)
def test_from_arrays_refuses(case):
    changed, sentence = FROM_ARRAYS[case]
    with pytest.raises(ValueError, match=sentence):
        GraphBatch.from_arrays(**{"node_offsets": [0, 2, 4], "edge_index": [[0], [1]], **changed})


def test_from_arrays_copies_and_is_contiguous():
    given_arrays = {
        "node_offsets": np.array([0, 2]),
        "edge_index": np.asfortranarray([[1, 0], [0, 1]]),
        "node_labels": np.array([5, 6], dtype=np.int32),
        "node_attributes": np.asfortranarray([[1.0, 2.0], [3.0, 4.0]]),
        "edge_labels": np.array([7, 8]),
        "edge_weights": np.array([0.5, 0.25], dtype=np.float32),
    }
    batch = GraphBatch.from_arrays(**given_arrays)
    assert batch.edge_labels.tolist() == [8, 7]
    for name in ("node_offsets", "indptr", "indices", *SIDES):
        value = getattr(batch, name)
        assert value.flags.c_contiguous
        assert value.flags.writeable
        assert not any(np.shares_memory(value, array) for array in given_arrays.values())


def test_a_wrong_index_is_named():
    batch = as_graphs([PATH, PATH])
    with pytest.raises(IndexError, match="index 2 is out of range for a batch of 2"):
        batch[2]
    with pytest.raises(IndexError, match="index -3 is out of range"):
        batch.take([0, -3])
    with pytest.raises(IndexError, match=r"mask .* shape \(2,\), got \(3,\)"):
        batch[np.array([True, False, True])]


def test_as_graphs_imports_no_graph_library():
    code = (
        "import sys; from similia.objects import as_graphs; as_graphs([([[0], [1]], 2)]);"
        "print([m for m in ('networkx', 'igraph', 'torch', 'sklearn', 'numba', 'pandas') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def stored_graphs(**changed):
    """State of two labelled, weighted edges as a file holds it, with some parts exchanged."""
    graphs = GraphBatch.from_arrays(
        [0, 2, 4],
        [[0, 1, 2, 3], [1, 0, 3, 2]],
        node_labels=[6, 7, 6, 6],
        node_attributes=np.eye(4),
        edge_labels=[1, 1, 2, 2],
        edge_weights=[0.5, 0.5, 2.0, 2.0],
    )
    return {**vars(graphs), **changed}


DAMAGED = {
    "offsets decrease": ({"node_offsets": np.array([0, 4, 2, 4])}, "node_offsets .* never decreases"),
    "offsets wrap around": ({"node_offsets": np.array([0, 2**62, -(2**62) - 5, 4])}, "node_offsets .* never decreases"),
    "offsets end early": ({"node_offsets": np.array([0, 2, 3])}, "node_offsets end at 3 .* there are 4 nodes"),
    "indptr beyond": ({"indptr": np.array([0, 1, 2, 3, 900])}, "indptr at 900, but there are 4 nodes and 4 arcs"),
    "indptr from elsewhere": ({"indptr": np.array([-3, 1, 2, 3, 4])}, "indptr .* starts at 0"),
    "arc outside": ({"indices": np.array([1, 0, 3, 10**9])}, r"arc 3 joins nodes \[3, 1000000000\], .* 4 nodes"),
    "arc below": ({"indices": np.array([-1, 0, 3, 2])}, r"arc 0 joins nodes \[0, -1\]"),
    "arc across": ({"indices": np.array([1, 0, 3, 0])}, "arc 3 joins graph 1 to graph 0"),
    "narrow indices": ({"indices": np.array([1, 0, 3, 2], dtype=np.int32)}, "indices must be a 1-D array of int64"),
    "labels too short": ({"node_labels": np.array([6, 7])}, "node_labels must have one row for each of 4 nodes"),
    "edge labels too short": ({"edge_labels": np.array([1])}, "edge_labels must have one row for each of 4 edges"),
    "weights in float32": ({"edge_weights": np.ones(4, np.float32)}, "edge_weights must be a 1-D array of float64"),
    "flat attributes": ({"node_attributes": np.ones(4)}, "node_attributes must be a 2-D array of float64"),
    "no arcs": ({"indices": None}, "indices must be a 1-D array of int64, got NoneType"),
    "more than a batch": ({"take": 1}, r"a stored GraphBatch holds \[.*'take'\], expected"),
}


def test_stored_graphs_come_back():
    graphs = GraphBatch.__new__(GraphBatch)
    graphs.__setstate__(stored_graphs())
    assert same(graphs, copy.deepcopy(graphs))
    assert graphs[1].edge_weights.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_stored_graphs_are_refused(case):
    changed, sentence = DAMAGED[case]
    with pytest.raises(ValueError, match=sentence) as raised:
        GraphBatch.__new__(GraphBatch).__setstate__(stored_graphs(**changed))
    assert "\n" not in str(raised.value)


def test_a_file_with_damaged_graphs_is_refused(tmp_path):
    path = sm.save(GraphBatch(**stored_graphs(indices=np.array([1, 0, 3, 10**9]))), tmp_path / "model")
    with pytest.raises(ValueError, match="arc 3 joins nodes"):
        sm.load(path)


def test_nodes_without_arcs_that_exceed_the_working_memory_are_refused():
    none, one, label = np.zeros((2, 0), int), np.array([[0], [1]]), np.zeros(1200, int)
    with sm.config(max_memory=8000):  # 8 bytes for each node
        assert as_graphs([(none, 1000)]).n_nodes == 1000
        assert as_graphs([(one, 1002)]).n_nodes == 1002
        for graphs, found in (
            ([(none, 1001)], "graph 0 has 1001 nodes and 0 arcs"),
            ([(one, 1003)], "graph 0 has 1003 nodes and 1 arcs"),
            ([(none, 400), (none, 601)], "graph 1 has 601 nodes"),
        ):
            with pytest.raises(ValueError, match=found):
                as_graphs(graphs)
        labelled = {"edge_index": none, "n_nodes": 1200, "node_labels": label}  # labels show that there are so many
        assert as_graphs([labelled, labelled]).n_nodes == 2400
