"""Graphlet experiments: exact laws and statistics against plain twins, and each experiment end to end on little."""

import itertools
import math

import numpy as np
import pytest
from sklearn.utils import Bunch

import experiments
import similia as sm
from experiments import _graphlets, graphlet_cost, graphlet_mmd, graphlet_real, graphlet_sbm
from experiments._graphlets import block_model
from experiments.graphlet_mmd import Check, laws, pooled, slope
from experiments.graphlet_sbm import Sweep
from similia.distances.mmd import MMD, mmd2
from similia.embeddings import GraphletSampling
from similia.embeddings import graphlets as graphlet_module
from similia.objects.graphlets import sample_graphlets, unpack_graphlets


@pytest.fixture(scope="module")
def exact():
    return laws()


def _kernel(x, y):
    return math.exp(-np.abs(x.astype(int) - y).sum() / 2)


def test_the_law_counts_every_ordered_choice_of_nodes(exact):
    for graph, law in zip(exact.graphs, (exact.p, exact.q), strict=True):
        edges = set(zip(*graph[0].tolist(), strict=True))
        counts = np.zeros(64)
        for nodes in itertools.permutations(range(16), 4):
            pairs = [(i, j) for j in range(4) for i in range(j)]
            counts[sum(((nodes[i], nodes[j]) in edges) << b for b, (i, j) in enumerate(pairs))] += 1
        np.testing.assert_allclose(law, counts / counts.sum(), atol=1e-15)


def test_the_graphs_are_those_described(exact):
    degrees = [np.bincount(graph[0][0]).tolist() for graph in exact.graphs]
    assert degrees[0] == [4, 3, 3, 4] * 4  # a clique of four, and a link at either end
    assert degrees[1] == [8] * 16


def test_mmd_and_bias_by_their_definition(exact):
    bits = unpack_graphlets(np.arange(64, dtype=np.uint64), 4)
    K = np.array([[_kernel(x, y) for y in bits] for x in bits])
    p, q = exact.p, exact.q
    assert exact.mmd2 == pytest.approx(p @ K @ p + q @ K @ q - 2 * p @ K @ q, rel=1e-12)
    assert exact.bias(5) == pytest.approx((1 - p @ K @ p + 1 - q @ K @ q) / 5, rel=1e-12)


def test_variance_of_a_frequency_by_drawing_many(exact):
    w = np.random.default_rng(0).standard_normal((400_000, 6))
    waves = np.exp(1j * w @ unpack_graphlets(np.arange(64, dtype=np.uint64), 4).T)
    terms = np.abs(waves @ (exact.p - exact.q)) ** 2
    assert terms.mean() == pytest.approx(exact.mmd2, abs=4 * terms.std() / np.sqrt(len(terms)))
    assert terms.var() == pytest.approx(exact.feature_variance(), rel=0.02)


def test_statistics_are_those_of_the_library(exact, monkeypatch):
    found = graphlet_mmd.statistics(exact, 50, 3, seed=7)
    codes = sample_graphlets(exact.graphs, 4, 150, "uniform", seed=7).reshape(2, 3, 50)
    bits = [[unpack_graphlets(run, 4) for run in graph] for graph in codes]

    def kernel(X, Y=None):
        return np.array([[_kernel(x, y) for y in (X if Y is None else Y)] for x in X])

    for statistic, unbiased in (("U", True), ("V", False)):
        expected = [mmd2(x, y, kernel, unbiased=unbiased) - exact.mmd2 for x, y in zip(*bits, strict=True)]
        np.testing.assert_allclose(found[statistic], expected, atol=1e-12)
    single = graphlet_mmd.statistics(exact, 50, 1, seed=7)["V"][0] + exact.mmd2
    distance = MMD(size=4, n_samples=50, sampling="uniform", random_state=7)(exact.graphs)
    assert distance[0, 1] ** 2 == pytest.approx(single, abs=1e-12)


def test_feature_errors_are_those_of_separate_embeddings(exact, monkeypatch):
    monkeypatch.setattr(graphlet_mmd, "FEATURE_RUNS", 2)
    found = graphlet_mmd._by_features(exact, 3, seed=4)["features"]
    w = GraphletSampling(4, features="gaussian_complex", n_components=6, random_state=4).fit(exact.graphs)
    waves = np.exp(1j * unpack_graphlets(np.arange(64, dtype=np.uint64), 4) @ w.map_.frequencies)
    squares = np.abs((exact.p - exact.q) @ waves) ** 2
    np.testing.assert_allclose(found + exact.mmd2, squares.reshape(2, 3).mean(axis=1), atol=1e-6)


def test_slope_by_hand():
    moments = [{"square": 1 / v, "fourth": 3 / v**2, "runs": 800.0} for v in (1, 4, 16)]
    found, error = slope([1, 4, 16], moments)  # normal errors: the variance of log RMSE is 1 / (2 runs)
    assert found == pytest.approx(-0.5)
    assert error == pytest.approx(np.sqrt(1 / 1600 / (2 * np.log(4) ** 2)))


def test_errors_fall_and_bounds_hold(monkeypatch, tmp_path):
    monkeypatch.setattr(
        graphlet_mmd,
        "TASKS",
        (
            Check("features", "m", (16, 256)),
            Check("samples", "s", (64, 1024)),
            Check("bias", "s", (5,)),
            Check("histogram", "eps", (0.4, 0.2)),
        ),
    )
    section = experiments.run("graphlet-mmd", seeds=2)
    features, samples, bias, histogram, slopes = section.tables
    for name, measured, _, _, expected in ((row[0], *map(float, row[1:]), float(row[3])) for row in slopes.rows):
        assert abs(measured - expected) < 0.12, name
    for table in (features, samples):
        assert all(float(row[-1]) > 5 for row in table.rows)  # the bound is loose
        for row in table.rows:
            assert float(row[1]) == pytest.approx(float(row[2]), rel=0.25)
    assert [row[1] for row in bias.rows] == ["V", "U"]
    assert all(abs(float(row[4])) < 4 for row in bias.rows)
    assert float(bias.rows[1][5]) == pytest.approx(1, abs=0.06)
    assert all(row[-1] <= 5 for row in histogram.rows)
    section.write(tmp_path)
    assert "<svg" in (tmp_path / "reproduction" / "graphlet-mmd.svg").read_text()


def test_a_biased_statistic_would_be_seen(monkeypatch):
    real = graphlet_mmd.statistics

    def swapped(*arguments):
        errors = real(*arguments)
        return {"U": errors["V"], "V": errors["U"]}

    monkeypatch.setattr(graphlet_mmd, "statistics", swapped)
    records = graphlet_mmd.measure(Check("bias", "s", (20,)), seeds=1)
    (table,), _ = graphlet_mmd.present(records)
    assert all(abs(float(row[4])) > 10 for row in table.rows)
    assert pooled(records, "bias", "U", 20)["runs"] == graphlet_mmd.BIAS_RUNS


def test_one_part_alone_has_its_table(exact):
    tables, figure = graphlet_mmd.present(graphlet_mmd.measure(Check("histogram", "eps", (0.4,)), seeds=1))
    assert [row[:3] for row in tables[0].rows] == [["match_iso", "0.4", 133], ["match", "0.4", 592]]  # Theorem 4
    assert figure is None


def test_costs_of_all_maps(monkeypatch, tmp_path):
    monkeypatch.setattr(graphlet_cost, "N_GRAPHS", 4)
    monkeypatch.setattr(graphlet_cost, "N_SAMPLES", 30)
    monkeypatch.setattr(graphlet_cost, "N_FEATURES", 20)
    monkeypatch.setattr(graphlet_cost, "NAIVE_GRAPHS", 2)
    axes = [("size", (3, 4), graphlet_cost.TASKS[0].methods), ("features", (10, 20), graphlet_cost.RANDOM_MAPS)]
    monkeypatch.setattr(graphlet_cost, "TASKS", tuple(graphlet_cost.Axis(*axis) for axis in axes))
    section = experiments.run("graphlet-cost", seeds=1)
    assert [len(table.rows) for table in section.tables] == [6, 4]
    assert all(record[part] >= 0 for record in section.records for part in graphlet_cost.PARTS)
    assert all(record["sampling"] > 0 and record["table"] + record["map"] > 0 for record in section.records)
    section.write(tmp_path)
    assert "sample by sample" in (tmp_path / "reproduction" / "graphlet-cost.svg").read_text()


def test_sample_by_sample_is_the_mean_of_optical_features():
    codes = np.array([[0, 3, 7, 5], [1, 1, 2, 6]], dtype=np.uint64)
    weights = np.random.default_rng(0).standard_normal((2, 3, 5)).astype(np.float32)
    rows = [np.abs(unpack_graphlets(row, 3) @ (weights[0] + 1j * weights[1])) ** 2 for row in codes]
    expected = np.stack([row.mean(axis=0) for row in rows]) / np.sqrt(5)
    np.testing.assert_allclose(graphlet_cost.sample_by_sample(codes, 3, weights), expected, rtol=1e-5)


def test_waves_in_little_memory_are_the_same(monkeypatch):
    graphs, _ = block_model(7, np.random.default_rng(0))
    for name in ("gaussian", "gaussian_complex"):
        Z = GraphletSampling(7, 300, features=name, n_components=50, random_state=1).fit(graphs)
        whole = Z.transform(graphs)
        codes = sample_graphlets(graphs, 7, 300, seed=Z.seed_)
        calls = []
        real = graphlet_module.rows_per_block
        monkeypatch.setattr(graphlet_module, "rows_per_block", lambda n, real=real, c=calls: c.append(n) or real(n))
        with sm.config(max_memory="200KB"):
            np.testing.assert_array_equal(Z.map_.means(codes), whole)
        assert len(calls) > 1  # was divided
        monkeypatch.undo()


def test_block_model_has_equal_degrees_and_its_communities():
    graphs, y = block_model(200, np.random.default_rng(0))
    inside = []
    for graph, label in zip(graphs, y, strict=True):
        source = np.repeat(np.arange(60), np.diff(graph.indptr))
        inside.append((label, np.mean(source // 10 == graph.indices // 10), len(graph.indices) / 60))
    label, share, degree = np.array(inside).T
    for value, p in ((0, 0.3), (1, 0.45)):
        assert degree[label == value].mean() == pytest.approx(10, abs=0.15)
        assert share[label == value].mean() == pytest.approx(9 * p / 10, abs=0.01)


def test_tuned_machine_tells_apart_what_only_a_gaussian_kernel_can():
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((2, 200, 2))
    y, z = (np.linalg.norm(X, axis=1) > 1.2 for X in (A, B))
    predicted, chosen = _graphlets.tuned_predictions(A, y, B, "rbf")
    assert np.mean(predicted == z) > 0.9
    assert chosen["width"] in _graphlets.WIDTHS
    linear, _ = _graphlets.tuned_predictions(A, y, B)
    assert np.mean(linear == z) < 0.8


def test_block_model_experiment_on_few_graphs(monkeypatch, tmp_path):
    monkeypatch.setattr(graphlet_sbm, "N_GRAPHS", 40)
    monkeypatch.setattr(graphlet_sbm, "N_TRAIN", 30)
    monkeypatch.setattr(graphlet_sbm, "N_SAMPLES", 100)
    monkeypatch.setattr(graphlet_sbm, "N_FEATURES", 30)
    sweeps = (
        Sweep("size", "size", (3, 4), graphlet_sbm.METHODS),
        Sweep("features", "n_components", (10, 20), graphlet_sbm.RANDOM_MAPS),
    )
    monkeypatch.setattr(graphlet_sbm, "TASKS", sweeps)
    section = experiments.run("graphlet-sbm", seeds=1)
    assert len(section.tables) == 4
    assert [row[0] for row in section.tables[0].rows] == list(graphlet_sbm.METHODS)
    assert all(0 <= record["accuracy"] <= 100 and record["seconds"] > 0 for record in section.records)
    section.write(tmp_path)
    assert "<svg" in (tmp_path / "reproduction" / "graphlet-sbm.svg").read_text()


def test_real_experiment_on_made_graphs(monkeypatch):
    graphs, y = block_model(60, np.random.default_rng(1), ratio=2.5)
    monkeypatch.setattr(graphlet_real, "fetch", lambda name: Bunch(data=graphs, target=y))
    for name, value in (("N_SAMPLES", 400), ("N_FEATURES", 50), ("N_FOLDS", 3), ("SIZE", 4)):
        monkeypatch.setattr(graphlet_real, name, value)
    section = experiments.run("graphlet-real", only=["MUTAG"], seeds=1)
    accuracy, seconds = section.tables
    assert [row[:2] for row in accuracy.rows] == [["MUTAG", machine] for machine in graphlet_real.MACHINES]
    assert all(row[-1] == "50.0" and "(" in row[2] for row in accuracy.rows)
    exact = np.mean([r["accuracy"] for r in section.records if r["map"] == "optical, exact"])
    assert exact > 80
    assert len(seconds.rows) == 1
