"""Explanations of distances and of kernels made of them: the steps and pairs that add up to the value."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from samples.explain import ALL, by_name, check_sums, quick, words
from similia import distances, kernels
from similia.explanations import explain

# --- distances ----------------------------------------------------------------------------------


@pytest.mark.parametrize("distance", [distances.Levenshtein(), distances.Hamming()], ids=repr)
@given(x=words, y=words)
@quick
def test_edits_are_the_distance(distance, x, y):
    found = explain(distance, x, y, top=ALL)
    assert found.value == distance([x], [y])[0, 0]
    check_sums(found)
    back = explain(distance, y, x, top=ALL)
    assert [(p.contribution, p.in_y.tolist(), p.in_x.tolist()) for p in back.parts] == [
        (p.contribution, p.in_x.tolist(), p.in_y.tolist()) for p in found.parts
    ]
    kept_x = np.setdiff1d(np.arange(len(x)), np.concatenate([[-1], *(p.in_x for p in found.parts)]))
    kept_y = np.setdiff1d(np.arange(len(y)), np.concatenate([[-1], *(p.in_y for p in found.parts)]))
    assert [x[i] for i in kept_x] == [y[j] for j in kept_y]  # what is not edited is the same


numbers = st.integers(-8, 8).map(lambda n: n / 4)
series = st.lists(numbers, min_size=1, max_size=8)
ELASTIC = [
    distances.DTW(),
    distances.DTW(window=1),
    distances.DTW(window=0.3, local="sqeuclidean"),
    distances.DTW(local="sqeuclidean", root=True),
    distances.ERP(),
    distances.ERP(gap=0.5, window=2),
    distances.MSM(),
    distances.MSM(c=0.25, window=1),
    distances.TWE(),
    distances.ADTW(penalty=0.25),
    distances.TWE(nu=0.5, lmbda=0.0, window=0.5),
    distances.LCSS(epsilon=0.3),
    distances.LCSS(epsilon=0.5, window=1),
    distances.LCSS(epsilon=0.3, window=0),
]


@pytest.mark.parametrize("distance", ELASTIC, ids=repr)
@given(x=series, y=series)
@quick
def test_steps_are_the_distance(distance, x, y):
    x, y = np.array(x), np.array(y)
    found = explain(distance, x, y, top=ALL)
    power = 2 if getattr(distance, "root", False) else 1
    assert found.value == pytest.approx(float(distance([x], [y])[0, 0]) ** power)
    check_sums(found)
    back = explain(distance, y, x, top=ALL)
    assert [(p.contribution, p.in_y.tolist(), p.in_x.tolist()) for p in back.parts] == [
        (p.contribution, p.in_x.tolist(), p.in_y.tolist()) for p in found.parts
    ]


@given(x=series, y=series)
@quick
def test_a_warping_path_is_one(x, y):
    found = explain(distances.DTW(), np.array(x), np.array(y), top=ALL)
    links = [(i, j) for i, j, _ in found._x.links]
    assert links[0] == (0, 0)
    assert links[-1] == (len(x) - 1, len(y) - 1)
    assert {(c - a, d - b) for (a, b), (c, d) in itertools.pairwise(links)} <= {(0, 1), (1, 0), (1, 1)}
    for part in found.parts:
        assert part.contribution == abs(x[part.in_x[0]] - y[part.in_y[0]])


def test_channels_of_msm_are_aligned_each_by_itself():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(9, 2)), rng.normal(size=(7, 2))
    found = explain(distances.MSM(), x, y, top=ALL)
    check_sums(found)
    first = explain(distances.MSM(), x[:, :1], y[:, :1], top=ALL)
    only = sum(part.contribution for part in found.parts if part.name.startswith("channel 0: "))
    assert only == pytest.approx(first.value)


def alignments(m, n):
    """Return all paths from (0, 0) to (m - 1, n - 1)."""
    if m == 1 and n == 1:
        return [[(0, 0)]]
    steps = [(m - 1, n - 1), (m - 1, n), (m, n - 1)]
    return [[*path, (m - 1, n - 1)] for a, b in steps if a and b for path in alignments(a, b)]


@given(x=st.lists(numbers, min_size=1, max_size=4), y=st.lists(numbers, min_size=1, max_size=4))
@quick
def test_soft_alignments_are_all_alignments_by_their_weight(x, y):
    gamma = 0.5
    costs = np.subtract.outer(x, y) ** 2
    paths = alignments(len(x), len(y))
    logs = np.array([-sum(costs[cell] for cell in path) / gamma for path in paths])
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    expected = np.zeros_like(costs)
    for weight, path in zip(weights, paths, strict=True):
        for cell in path:
            expected[cell] += weight * costs[cell]
    entropy = -float(np.sum(weights * np.log(np.maximum(weights, 1e-300))))
    found = explain(distances.SoftDTW(gamma=gamma, divergence=False), np.array(x), np.array(y), top=ALL)
    for part in found.parts:
        assert part.contribution == pytest.approx(expected[part.in_x[0], part.in_y[0]])
    assert found.unexplained == pytest.approx(-gamma * entropy, abs=1e-9)


@pytest.mark.parametrize("kernel", [kernels.GlobalAlignment(2.0), kernels.GlobalAlignment(2.0, triangular=4)], ids=repr)
def test_global_alignment_is_explained_up_to_the_entropy_and_the_norms(kernel):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=7), rng.normal(size=6)
    found = explain(kernel, x, y, top=ALL)
    check_sums(found, exact=False)
    assert np.exp(found.value) == pytest.approx(kernel([x], [y])[0, 0])
    alone = explain(kernels.GlobalAlignment(2.0, normalize=False), x[:1], y[:1])  # one alignment: no entropy
    assert alone.unexplained == pytest.approx(0, abs=1e-12)


points = st.lists(st.tuples(numbers, numbers), min_size=0, max_size=6).map(lambda p: np.array(p).reshape(-1, 2))
SETS = [
    distances.ModifiedHausdorff(),
    distances.ModifiedHausdorff("sqeuclidean"),
    distances.Hausdorff("manhattan"),
    distances.Chamfer("manhattan"),
    distances.Chamfer(),
    distances.SlicedWasserstein(n_projections=5),
    distances.SlicedWasserstein(n_projections=5, p=1),
    distances.Wasserstein(),
    distances.Wasserstein(2, "manhattan"),
]


@pytest.mark.parametrize("distance", SETS, ids=repr)
@given(x=points, y=points)
@quick
def test_point_pairs_are_the_distance(distance, x, y):
    found = explain(distance, x, y, top=ALL)
    power = 2 if getattr(distance, "p", 1) == 2 else 1
    assert found.value == pytest.approx(float(distance([x], [y])[0, 0]) ** power)
    check_sums(found)
    back = explain(distance, y, x, top=ALL)
    assert back.value == pytest.approx(found.value)
    assert by_name(found) == pytest.approx(
        {name.translate(str.maketrans("xy", "yx")): v for name, v in by_name(back).items()}
    ) or isinstance(distance, distances.SlicedWasserstein | distances.Wasserstein)  # several plans may be as cheap


@pytest.mark.parametrize("reduce", ["mean", "sum"])
@given(x=points, y=points)
@quick
def test_pairs_of_points_are_the_mean_map(reduce, x, y):
    kernel = kernels.MeanMap(kernels.RBF(0.1), reduce)
    found = explain(kernel, x, y, top=ALL)
    assert found.value == pytest.approx(float(kernel([x], [y])[0, 0]))
    check_sums(found)
    assert len(found.parts) <= len(x) * len(y)
    if len(x) and len(y):
        pair = np.exp(-0.1 * np.sum((x[0] - y[-1]) ** 2)) / (len(x) * len(y) if reduce == "mean" else 1)
        assert by_name(found).get(f"x[0] and y[{len(y) - 1}]", 0.0) == pytest.approx(pair, abs=1e-12)


@pytest.mark.parametrize("kernel", ["match", "match_iso"])
def test_unlike_graphlets_are_the_squared_mmd(kernel):
    distance = distances.MMD(size=4, n_samples=200, kernel=kernel)
    x, y = nx.cycle_graph(12), nx.barbell_graph(5, 2)
    found = explain(distance, x, y, top=ALL)
    assert found.value == pytest.approx(float(distance([x], [y])[0, 0]) ** 2)
    check_sums(found)


def test_substituted_distances_are_explained_by_those():
    x, y = "GATTACA", "GATACC"
    d = distances.Levenshtein()
    found = explain(kernels.DistanceRBF(d, gamma=0.1), x, y, top=ALL)
    assert found.kind == "log similarity"
    assert found.value == pytest.approx(-0.1 * 4)
    check_sums(found)
    check_sums(explain(kernels.NegativeDistance(d, power=1.5), x, y, top=ALL), rounding=1e-6)  # float32
    kernel = kernels.FromDistance(d, objects=["GAT", "ACA", "T"], gamma=0.3)
    found = explain(kernel, x, y, top=ALL)
    assert found.value == pytest.approx(kernel([x], [y])[0, 0])
    assert len(found.parts) == 3
    check_sums(found)


def test_cosine_is_explained_by_columns():
    x, y = np.array([1.0, -2.0, 0.0]), np.array([2.0, 2.0, 1.0])
    found = explain(kernels.Cosine(mapping="projection"), x, y)
    assert by_name(found) == pytest.approx({"column 0": 2 / np.sqrt(45), "column 1": -4 / np.sqrt(45)})


@pytest.mark.parametrize("distance", [distances.DTW(), distances.ERP(), distances.TWE()])
def test_numbers_whose_squares_are_too_large(distance):
    found = explain(distance, [0.0, 0.0], [1e200, 1e200, 1e200])
    assert np.isfinite(found.value)
    assert abs(found.unexplained) <= 1e-12 * found.value


def test_a_square_that_is_too_large_is_one_sentence():
    root = distances.DTW(local="sqeuclidean", root=True)
    for compared in (root, kernels.DistanceRBF(distances.DTW(), gamma=1.0)):
        with pytest.raises(ValueError, match="its square exceeds the largest float64"):
            explain(compared, [0.0, 0.0], [1e200, 1e200])
