"""Collections laid one after another: any split of a collection, put together again, is the collection."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from similia.objects import GraphBatch, SetBatch, as_series, as_sets, as_strings, concatenate, take

law = settings(max_examples=25, deadline=None)


def collections(seed):
    rng = np.random.default_rng(seed)
    yield as_strings(["".join(rng.choice(list("abé"), rng.integers(0, 5))) for _ in range(6)])
    yield as_strings([bytes(rng.integers(0, 256, rng.integers(0, 5), dtype=np.uint8)) for _ in range(6)])
    yield as_series([rng.standard_normal((rng.integers(1, 5), 2)) for _ in range(6)])
    yield as_sets([rng.standard_normal((rng.integers(0, 5), 3)) for _ in range(6)])
    yield rng.standard_normal((6, 4))
    yield ["a", ("b",), 3, None, [4], {5}]


@law
@given(st.integers(0, 10**6), st.lists(st.integers(0, 6), min_size=2, max_size=2))
def test_parts_make_the_whole(seed, cuts):
    first, last = sorted(cuts)
    for X in collections(seed):
        whole = concatenate(
            [take(X, np.arange(0, first)), take(X, np.arange(first, last)), take(X, np.arange(last, 6))]
        )
        assert type(whole) is type(X)
        for x, y in zip(whole, X, strict=True):
            np.testing.assert_array_equal(x, y)


@law
@given(st.integers(0, 10**6), st.integers(0, 6), st.booleans())
def test_graphs_keep_nodes_arcs_and_labels(seed, cut, labelled):
    rng = np.random.default_rng(seed)
    n_nodes = rng.integers(1, 5, 6)
    offsets = np.concatenate(([0], np.cumsum(n_nodes)))
    ends = [first + rng.integers(0, n, (2, 5)) for first, n in zip(offsets[:-1], n_nodes, strict=True)]
    arcs = np.concatenate(ends, axis=1)
    side = {"node_labels": rng.integers(0, 3, offsets[-1]), "edge_weights": rng.random(30)} if labelled else {}
    X = GraphBatch.from_arrays(offsets, arcs, **side)
    whole = concatenate([X[:cut], X[cut:]])
    for field in fields(X):
        np.testing.assert_array_equal(getattr(whole, field.name), getattr(X, field.name), err_msg=field.name)


def test_ascii_and_other_text_fit_together():
    whole = concatenate([as_strings(["ab"]), as_strings(["é"])])
    assert whole.tolist() == ["ab", "é"]


def test_graphs_without_arcs_need_no_edge_labels_and_weights_are_filled_with_ones():
    arcs = [[0, 1], [1, 0]]
    dots = GraphBatch.from_arrays([0, 2], np.zeros((2, 0), int))
    whole = concatenate([dots, GraphBatch.from_arrays([0, 2], arcs, edge_labels=[7, 7]), dots])
    assert whole.edge_labels.tolist() == [7, 7]
    whole = concatenate(
        [GraphBatch.from_arrays([0, 2], arcs), GraphBatch.from_arrays([0, 2], arcs, edge_weights=[2, 3])]
    )
    assert whole.edge_weights.tolist() == [1, 1, 2, 3]  # as in as_graphs
    with pytest.raises(ValueError, match=r"batches\[1\] has no edge_labels, but batches\[2\] has"):
        concatenate(
            [dots, GraphBatch.from_arrays([0, 2], arcs), GraphBatch.from_arrays([0, 2], arcs, edge_labels=[7, 7])]
        )


def test_what_does_not_fit_together():
    plain = GraphBatch.from_arrays([0, 2], [[0, 1], [1, 0]])
    labelled = GraphBatch.from_arrays([0, 2], [[0, 1], [1, 0]], node_labels=[1, 2])
    with pytest.raises(ValueError, match=r"batches\[.\] has no node_labels, but batches\[.\] has"):
        concatenate([plain, labelled])
    with pytest.raises(ValueError, match="expected at least one"):
        concatenate([])
    with pytest.raises(TypeError, match="some batches hold str and others bytes"):
        concatenate([as_strings(["a"]), as_strings([b"a"])])
    with pytest.raises(ValueError, match="objects of 2 and 3 dimensions"):
        concatenate([SetBatch(np.zeros((1, p)), np.array([0, 1])) for p in (2, 3)])
