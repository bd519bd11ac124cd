"""The experiment on mean maps: its drawings are the letters, distorted, and it runs end to end on few of them."""

import numpy as np

from experiments import _letters, mean_maps
from similia.objects import as_graphs


def test_undistorted_drawings_are_the_letters():
    rng = np.random.default_rng(0)
    for corners, strokes in _letters.LETTERS.values():
        graph = _letters.drawing(rng, corners, strokes, jitter=0.0, change=0.0, turn=0.0)
        np.testing.assert_allclose(graph["node_attributes"], np.array(corners) - [0.5, 1])
        arcs = {tuple(arc) for arc in graph["edge_index"].T.tolist()}
        assert arcs == {*strokes, *((v, u) for u, v in strokes)}
        assert np.unique(graph["edge_index"]).tolist() == list(range(len(corners)))


def test_distorted_drawings_are_graphs():
    graphs, names = _letters.letters(20)
    batch = as_graphs(graphs)
    assert batch.node_attributes.shape[1] == 2
    assert (names[::20] == sorted(_letters.LETTERS)).all()
    assert len({len(graph["edge_index"][0]) for graph in graphs[:20]}) > 1
    again, _ = _letters.letters(20)
    np.testing.assert_array_equal(again[5]["node_attributes"], graphs[5]["node_attributes"])


def test_the_table_on_few_letters(monkeypatch):
    monkeypatch.setattr(mean_maps, "letters", lambda: _letters.letters(12))
    monkeypatch.setattr(mean_maps, "N_FEATURES", 64)
    task = mean_maps.MapTask("letters", (1.0, 4.0))
    records = mean_maps.measure(task, seeds=1)
    assert [record["method"] for record in records] == [
        "plain mean map",
        "plain, bandwidth tuned",
        "mean or sum, tuned",
    ]
    assert all(record["accuracy"] > 30 > 10 > record["majority"] for record in records)
    (table,), _ = mean_maps.present(records)
    assert table.rows[0][0] == "letters"
    assert len(table.rows[0]) == len(table.columns)
