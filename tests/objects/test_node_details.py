"""Details of nodes: finer labels, which graphs carry beside their labels."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import similia as sm
from similia.kernels import VertexHistogram, WeisfeilerLehman
from similia.objects import GraphBatch, as_graphs

ARCS = [[0, 1, 1, 2], [1, 0, 2, 1]]
PATH = {"edge_index": ARCS, "node_labels": [1, 2, 1], "node_details": [7, 7, 8]}
PLAIN = {"edge_index": ARCS, "node_labels": [1, 2, 1]}


def test_details_stay_with_their_nodes(tmp_path):
    other = {"edge_index": [[0], [1]], "node_labels": [1, 2], "node_details": [9, 10]}
    batch = as_graphs([PATH, other])
    assert batch.node_details.tolist() == [7, 7, 8, 9, 10]
    assert batch[1].node_details.tolist() == [9, 10]
    assert batch.take([1, 0]).node_details.tolist() == [9, 10, 7, 7, 8]
    assert sm.objects.concatenate([batch[1:], batch[:1]]).node_details.tolist() == [9, 10, 7, 7, 8]
    assert pickle.loads(pickle.dumps(batch)).node_details.tolist() == [7, 7, 8, 9, 10]
    assert as_graphs([PATH], node_label=None).node_details is None
    texts = as_graphs([{**PATH, "node_details": ["a", "a", "b"]}]).node_details
    assert texts[0] == texts[1] != texts[2]
    model = sm.Nystroem(WeisfeilerLehman(1), 2, landmarks=[0, 1], random_state=0).fit(batch)
    assert sm.load(sm.save(model, tmp_path / "m.similia")).landmarks_.node_details.tolist() == [7, 7, 8, 9, 10]


def test_weisfeiler_lehman_counts_pairs_of_label_and_detail():
    batch = as_graphs([PATH, {**PATH, "node_details": [7, 8, 8]}])
    # labels 1 1 2: 4 + 1; pairs (1, 7), (2, 7), (1, 8) with themselves 3, with (1, 7), (2, 8), (1, 8) two
    np.testing.assert_array_equal(WeisfeilerLehman(0)(batch), [[8, 7], [7, 8]])
    np.testing.assert_array_equal(WeisfeilerLehman(0, details=False)(batch), VertexHistogram()(batch))
    swapped = {"edge_index": ARCS, "node_labels": [2, 1, 1], "node_details": [7, 7, 8]}  # the order of nodes
    assert WeisfeilerLehman(0)([PATH, swapped])[0, 1] == 8
    assert WeisfeilerLehman(0)([{**PATH, "node_details": [0, 0, 0]}])[0, 0] == 5 + 5  # also of nodes without edges
    dot = {"edge_index": [[], []], "node_labels": [1], "node_details": [0]}
    assert WeisfeilerLehman(3)([dot])[0, 0] == 4 + 1  # a detail is no colour of a later round


def test_batches_without_details_have_the_values_of_before():
    np.testing.assert_array_equal(
        WeisfeilerLehman(2)(as_graphs([PLAIN])), WeisfeilerLehman(2, details=False)(as_graphs([PLAIN]))
    )


WRONG = {
    "length": (
        lambda: GraphBatch.from_arrays([0, 3], ARCS, node_details=[1, 2]),
        "node_details must have one row for each of 3 nodes",
    ),
    "numbers": (
        lambda: GraphBatch.from_arrays([0, 3], ARCS, node_details=[0.5, 1, 2]),
        "node_details must be integers",
    ),
    "one graph": (lambda: as_graphs([PLAIN, PATH]), "graph 0 has no node_details, but graph 1 has"),
    "rows": (lambda: as_graphs([{**PATH, "node_details": [1]}]), "graph 0 has 1 rows of node_details for 3 nodes"),
    "one side": (
        lambda: WeisfeilerLehman()([PATH], [PLAIN]),
        "nodes with details of X with nodes without details of Y",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_details_are_refused(case):
    call, sentence = WRONG[case]
    with pytest.raises(ValueError, match=sentence):
        call()
