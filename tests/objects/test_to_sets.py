"""GraphToSets and SeriesToSets: the definitions, graphs with and without attributes, refusals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import similarities as naive
from samples import graphs as samples
from similia.objects import GraphToSets, SeriesToSets

laws = settings(max_examples=25, deadline=None)


def sorted_rows(array):
    return array[np.lexsort(array.T[::-1])] if array.size else array


@laws
@given(st.integers(0, 999), st.integers(0, 3), st.integers(0, 3), st.booleans())
def test_points_are_the_attributes_along_paths(seed, length, n_iter, directed):
    graphs = samples.samples(seed, 5, directed=directed)
    batch = samples.batch(graphs, attributes=True)
    sets = GraphToSets(length, n_iter, use="attributes").fit_transform(batch)
    assert len(sets) == 5
    for graph, found in zip(graphs, sets, strict=True):
        neighbours = [[u for _, u in near] for near in graph.neighbours(False)]
        values = naive.averaged(neighbours, graph.attributes, n_iter)
        expected = [np.concatenate(values[path]) for path in naive.paths(neighbours, length)]
        assert found.shape == (len(expected), 3 * (n_iter + 1) * (length + 1))
        if expected:
            np.testing.assert_allclose(sorted_rows(found), sorted_rows(np.array(expected)), atol=1e-12)


def path_graph(**side):
    arcs = np.array([[0, 1, 1, 2], [1, 0, 2, 1]])
    return {"edge_index": arcs, "n_nodes": 3, **side}


def test_labels_of_nodes_and_edges_and_weights():
    labels = {"node_labels": [5, 7, 5], "edge_labels": [1, 1, 2, 2], "edge_weights": [0.5, 0.5, 2.0, 2.0]}
    both = path_graph(node_attributes=[[1.0], [2.0], [3.0]], **labels)
    fitted = GraphToSets(1, use="both").fit([both])
    assert fitted.labels_.tolist() == [5, 7]
    assert fitted.edge_labels_.tolist() == [1, 2]
    expected = [[1, 1, 0, 2, 0, 1, 1, 0, 0.5], [2, 0, 1, 1, 1, 0, 1, 0, 0.5]]
    expected += [[2, 0, 1, 3, 1, 0, 0, 1, 2.0], [3, 1, 0, 2, 0, 1, 0, 1, 2.0]]
    np.testing.assert_array_equal(fitted.transform([both])[0], expected)
    plain = GraphToSets(1, use="both", edges=False).fit_transform([both])
    np.testing.assert_array_equal(plain[0], np.array(expected)[:, :6])
    assert GraphToSets().fit_transform([both]).n_dims == 1  # "auto" takes attributes
    only = path_graph(node_labels=[5, 7, 9])
    np.testing.assert_array_equal(
        GraphToSets().fit([path_graph(node_labels=[5, 5, 7])]).transform([only])[0], [[1, 0], [0, 1], [0, 0]]
    )
    unweighted = path_graph(**{**labels, "edge_weights": None}, node_attributes=both["node_attributes"])
    assert fitted.transform([unweighted])[0][:, -1].tolist() == [1, 1, 1, 1]


def test_degrees():
    graph = path_graph(node_attributes=[[0.0], [1.0], [2.0]])
    expected = [[0, 1], [1, np.log2(3)], [2, 1]]
    np.testing.assert_allclose(GraphToSets(degrees=True).fit_transform([graph])[0], expected)
    mean = (1 + np.log2(3)) / 2  # of a node and its neighbours
    averaged = GraphToSets(n_iter=1, degrees=True).fit_transform([graph])[0]
    np.testing.assert_allclose(averaged[:, 2:], [[0.5, mean], [1, mean], [1.5, mean]])


def test_degrees_alone_are_enough():
    bare, labelled = path_graph(), path_graph(node_labels=[7, 8, 7])
    fitted = GraphToSets(n_iter=1, degrees=True).fit([bare])
    mean = (1 + np.log2(3)) / 2
    expected = [[1, mean], [np.log2(3), mean], [1, mean]]
    for graph in (bare, labelled):  # labels that the graphs in fit did not have are not read
        np.testing.assert_allclose(fitted.transform([graph])[0], expected)
    for use in ("labels", "both"):
        with pytest.raises(ValueError, match="X holds graphs without node"):
            GraphToSets(use=use, degrees=True).fit([bare])


def test_graphs_without_paths_become_empty_sets():
    single = {"edge_index": np.zeros((2, 0), int), "n_nodes": 1, "node_attributes": [[4.0]]}
    graphs = [single, path_graph(node_attributes=[[0.0], [1.0], [2.0]])]
    assert GraphToSets(1).fit_transform(graphs).lengths.tolist() == [0, 4]
    assert GraphToSets(0, n_iter=1).fit_transform(graphs)[0].tolist() == [[4.0, 4.0]]
    assert GraphToSets(2).fit_transform(graphs)[1].tolist() == [[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]


@pytest.mark.same_bits
def test_points_depend_on_their_graph_only():
    batch = samples.batch(samples.samples(3, 12), attributes=True)
    fitted = GraphToSets(1, 3, use="both").fit(batch)
    whole = fitted.transform(batch)
    for i in range(len(batch)):
        np.testing.assert_array_equal(fitted.transform(batch[i : i + 1])[0], whole[i])


def test_refusals_of_graphs():
    attributed, bare = path_graph(node_attributes=np.ones((3, 2))), path_graph()
    with pytest.raises(ValueError, match="X holds graphs with neither node labels nor attributes, expected some on"):
        GraphToSets().fit([bare])
    with pytest.raises(ValueError, match="X holds graphs without node attributes, expected some on every node"):
        GraphToSets(use="both").fit([path_graph(node_labels=[1, 2, 3])])
    with pytest.raises(ValueError, match="X holds graphs with neither node labels nor attributes, expected some on"):
        GraphToSets().fit([path_graph(node_attributes=np.ones((3, 0)))])
    with pytest.raises(ValueError, match="X holds graphs without node attributes, expected some on every node"):
        GraphToSets(use="attributes").fit([path_graph(node_attributes=np.ones((3, 0)))])
    with pytest.raises(ValueError, match="graph 1 has no node_attributes, but graph 0 has; give them to all graphs or"):
        GraphToSets().fit([attributed, bare])
    fitted = GraphToSets().fit([attributed])
    with pytest.raises(ValueError, match="X has 1 attribute of each node, expected 2 as in fit"):
        fitted.transform([path_graph(node_attributes=np.ones((3, 1)))])
    with pytest.raises(ValueError, match="X holds graphs without node attributes"):
        fitted.transform([bare])
    with pytest.raises(ValueError, match="use must be 'auto', 'attributes', 'labels' or 'both', got 'all'"):
        GraphToSets(use="all").fit([attributed])
    with pytest.raises(ValueError, match="path_length must be an integer >= 0, got -1"):
        GraphToSets(-1).fit([attributed])
    labelled = GraphToSets(1).fit([path_graph(node_labels=[1, 2, 3], edge_labels=[1, 1, 1, 1])])
    with pytest.raises(ValueError, match="X holds graphs without edge labels, expected labels as in fit"):
        labelled.transform([path_graph(node_labels=[1, 2, 3])])


@laws
@given(
    st.lists(st.integers(3, 9), min_size=1, max_size=4), st.integers(1, 3), st.integers(1, 4), st.sampled_from([0, 2.5])
)
def test_windows(lengths, length, step, time):
    series = [np.random.default_rng(n).normal(size=(n, 2)) for n in lengths]
    sets = SeriesToSets(length, step, time).fit_transform(series)
    for x, found in zip(series, sets, strict=True):
        places = range(0, len(x) - length + 1, step)
        expected = np.array([x[i : i + length].ravel() for i in places])
        if time:
            expected = np.column_stack([expected, [time * i / max(1, len(x) - length) for i in places]])
        np.testing.assert_allclose(found, expected, rtol=1e-15)


def test_refusals_of_series():
    series = [np.arange(5.0), np.arange(9.0)]
    with pytest.raises(ValueError, match=r"X\[0\] has 5 time points, expected at least length=6, that of a window"):
        SeriesToSets(6).fit(series)
    fitted = SeriesToSets(3).fit(series)
    with pytest.raises(ValueError, match="X holds series of 2 channels, expected 1 as in fit"):
        fitted.transform([np.ones((5, 2))])
    with pytest.raises(ValueError, match="length must be an integer >= 1, got 0"):
        SeriesToSets(0).fit(series)
