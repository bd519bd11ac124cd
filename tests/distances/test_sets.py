"""Distances of point sets against reference values, slow twins, a linear programme and scipy; laws, bits, refusals."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist, directed_hausdorff
from scipy.stats import wasserstein_distance

import similia as sm
from naive import similarities as naive
from similia.checks import check_distance
from similia.distances import Chamfer, Hausdorff, ModifiedHausdorff, SlicedWasserstein, Wasserstein
from similia.distances import sets as module
from similia.objects import SetBatch

REFERENCE = Path(__file__).parents[1] / "reference"
SEEDS = st.integers(0, 2**32 - 1)
laws = settings(max_examples=25, deadline=None)
NEAREST = [cls(ground) for cls in (ModifiedHausdorff, Hausdorff, Chamfer) for ground in cls._grounds]
ALL = [*NEAREST, SlicedWasserstein(7, p=1), SlicedWasserstein(7, p=2, random_state=1)]
each_nearest = pytest.mark.parametrize("distance", NEAREST, ids=str)
each_distance = pytest.mark.parametrize("distance", ALL, ids=str)
TOLERANCE = {np.float32: 1e-5, np.float64: 1e-12}
DIMENSIONS = st.sampled_from([1, 2, 4, 5, 17])


def collection(seed, n, p, dtype=np.float64, smallest=0, largest=9):
    """Sets of few whole coordinates, so that there are equal points and ties, far from the origin or not."""
    rng = np.random.default_rng(seed)
    shift = rng.choice([0, 1000])
    sizes = rng.integers(smallest, largest + 1, n)
    return SetBatch.from_arrays([rng.integers(-3, 4, (size, p)).astype(dtype) + dtype(shift) for size in sizes])


def twin(distance, X, Y):
    name = type(distance).__name__
    return np.array([[naive.set_distance(name, x, y, distance.ground) for y in Y] for x in X])


@pytest.mark.parametrize("cls", [ModifiedHausdorff, Hausdorff, Chamfer])
def test_reference_values(cls):
    with (REFERENCE / "E_mhd.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 21
    for row in rows:
        means = float(row["avg_x_to_y"]), float(row["avg_y_to_x"])
        expected = {
            ModifiedHausdorff: float(row["mhd_max_of_averages"]),
            Hausdorff: float(row["classical_hausdorff"]),
            Chamfer: sum(means),
        }
        x, y = (np.array(json.loads(row[name]), float) for name in "xy")
        np.testing.assert_allclose(cls()([x], [y]), [[expected[cls]]], rtol=1e-14)


@each_nearest
@laws
@given(seed=SEEDS, p=DIMENSIONS, dtype=st.sampled_from([np.float32, np.float64]))
def test_agrees_with_the_twin(distance, seed, p, dtype):
    X, Y = collection(seed, 5, p, dtype), collection(seed + 1, 4, p, dtype, largest=20)
    D = distance(X, Y)
    assert D.dtype == dtype
    assert D.shape == (5, 4)
    np.testing.assert_allclose(D, twin(distance, X, Y), rtol=TOLERANCE[dtype], atol=1e-30)


@pytest.mark.same_bits
@each_distance
@laws
@given(seed=SEEDS, p=DIMENSIONS, dtype=st.sampled_from([np.float32, np.float64]))
def test_laws(distance, seed, p, dtype):
    X = collection(seed, 6, p, dtype)
    D = distance(X)
    assert (D >= 0).all()
    assert (D == D.T).all()
    assert (D.diagonal() == 0).all()
    np.testing.assert_array_equal(distance(X, X), D)
    np.testing.assert_array_equal(distance(X[:2], X), D[:2])
    np.testing.assert_array_equal(distance(X, X[[4, 1]]), D[:, [4, 1]])


@each_distance
@laws
@given(seed=SEEDS, p=DIMENSIONS)
def test_the_order_of_points_means_nothing(distance, seed, p):
    X = collection(seed, 4, p)
    rng = np.random.default_rng(seed)
    shuffled = SetBatch.from_arrays([rng.permutation(x) for x in X])
    np.testing.assert_allclose(distance(shuffled, X), distance(X), rtol=1e-12, atol=1e-12)


@laws
@given(seed=SEEDS)
def test_hausdorff_agrees_with_scipy(seed):
    X = collection(seed, 4, 6, smallest=1)
    expected = [[max(directed_hausdorff(x, y)[0], directed_hausdorff(y, x)[0]) for y in X] for x in X]
    np.testing.assert_allclose(Hausdorff()(X), expected, rtol=1e-12)


@laws
@given(seed=SEEDS, p=st.sampled_from([1, 2]), n_dims=st.sampled_from([1, 3]))
def test_sliced_wasserstein_agrees_with_the_twin_and_scipy(seed, p, n_dims):
    X, Y = collection(seed, 4, n_dims), collection(seed + 1, 3, n_dims)
    distance = SlicedWasserstein(n_projections=5, p=p, random_state=3)
    directions = distance._directions(5, n_dims)
    D = distance(X, Y)
    for i, x in enumerate(X):
        for j, y in enumerate(Y):
            x, y = (points if len(points) else np.zeros((1, n_dims)) for points in (x, y))
            costs = [naive.wasserstein(x @ u, y @ u, p) for u in directions]
            assert D[i, j] == pytest.approx(np.mean(costs) ** (1 / p), rel=1e-9, abs=1e-12)
            if p == 1:
                by_scipy = [wasserstein_distance(x @ u, y @ u) for u in directions]
                assert D[i, j] == pytest.approx(np.mean(by_scipy), rel=1e-9, abs=1e-12)


def test_sliced_wasserstein_in_many_dimensions_is_the_mean_over_the_sphere():
    # One point against another: the mean of (theta . v)^2 over the sphere is |v|^2 / p.
    v = np.array([3.0, 0.0, 4.0])
    D = SlicedWasserstein(n_projections=20_000)([v[None]], [np.zeros((1, 3))])
    assert D[0, 0] == pytest.approx(5 / np.sqrt(3), rel=0.02)


def test_more_projections_keep_the_old_ones():
    few, many = SlicedWasserstein(4), SlicedWasserstein(9)
    assert (few._directions(4, 3) == many._directions(9, 3)[:4]).all()


@pytest.mark.same_bits
@each_distance
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_and_threads_change_nothing(distance, dtype, monkeypatch):
    rng = np.random.default_rng(0)
    X = SetBatch.from_arrays([rng.standard_normal((size, 6)).astype(dtype) for size in rng.integers(0, 40, 70)])
    Y = SetBatch.from_arrays([rng.standard_normal((size, 6)).astype(dtype) for size in rng.integers(1, 15, 50)])
    expected, own = distance(X, Y), distance(X)
    for lanes in (1, 64, 300, 10**6):
        monkeypatch.setattr(module, "_POINTS", lanes)
        monkeypatch.setattr(module, "_WORK_OF_A_THREAD", lanes)
        np.testing.assert_array_equal(distance(X, Y), expected)
        np.testing.assert_array_equal(distance(X), own)
    monkeypatch.setattr("similia.core.config.cpu_count", lambda: 5)
    monkeypatch.setattr("similia.core.config._WORTH_THREADS", 0)
    np.testing.assert_array_equal(distance(X, Y), expected)
    np.testing.assert_array_equal(distance(X), own)
    one_by_one = np.vstack([distance(X[i : i + 1], Y) for i in range(len(X))])
    np.testing.assert_array_equal(one_by_one, expected)


def test_small_sets_beside_a_large_one_take_little_memory():
    resource = pytest.importorskip("resource")
    sets = [np.zeros((1, 1), np.float32)] * 1000 + [np.ones((100_000, 1), np.float32)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert ModifiedHausdorff()(sets)[0, 1000] == 1.0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # in KB; all row minima take 400 MB


@each_distance
@pytest.mark.parametrize("larger", [1.0, 1e17])
def test_sets_of_another_type_or_size_beside_a_set_change_nothing(distance, larger):
    rng = np.random.default_rng(0)
    Y = [rng.standard_normal((size, 9)).astype(np.float32) for size in (3, 8, 1)]
    X = [rng.standard_normal((size, 9)).astype(np.float32) for size in (2, 5, 4)]
    X.insert(1, rng.standard_normal((6, 9)) * larger)
    with np.errstate(over="ignore"):
        alone = np.vstack([distance([x], Y) for x in X])
        np.testing.assert_array_equal(distance(X, Y), alone)
    assert alone.dtype == np.float32
    if hasattr(distance, "paired"):
        np.testing.assert_array_equal(
            distance.paired(X, Y, [0, 1, 3, 3], [1, 2, 0, 2]), alone[[0, 1, 3, 3], [1, 2, 0, 2]]
        )


@each_nearest
@pytest.mark.parametrize("gap", [0.0, 1e-4, 1e-2, 1.0])
def test_close_points_far_from_the_origin_keep_their_digits(distance, gap):
    rng = np.random.default_rng(0)
    points = rng.standard_normal((30, 20)).astype(np.float32) + np.float32(50)
    X = SetBatch.from_arrays([points[:12], points[12:]])
    Y = SetBatch.from_arrays([points[::2] + np.float32(gap), points[1::2]])
    np.testing.assert_allclose(distance(X, Y), twin(distance, X, Y), rtol=1e-5)


@each_distance
def test_an_empty_set_is_the_set_of_the_origin(distance):
    sets = [np.zeros((0, 2)), np.array([[3.0, 4.0], [0.0, 2.0]]), np.zeros((1, 2)), np.zeros((0, 2))]
    D = distance(sets)
    assert (D[0] == D[2]).all()
    assert D[0, 3] == D[0, 0] == 0
    assert D[0, 1] > 0
    assert (distance(SetBatch.from_arrays([sets[0]]), sets) == D[:1]).all()


def test_distance_of_an_empty_set_is_a_mean_norm():
    sets = [np.zeros((0, 2)), np.array([[3.0, 4.0], [0.0, 2.0]])]
    assert ModifiedHausdorff()(sets)[0, 1] == 3.5
    assert Hausdorff()(sets)[0, 1] == 5.0
    assert Chamfer()(sets)[0, 1] == 3.5 + 2.0


@each_distance
@pytest.mark.parametrize("p", [2, 20])
@pytest.mark.parametrize("size", [1e-10, 1e18, 1e30])
def test_scale(distance, p, size):
    rng = np.random.default_rng(0)
    X = SetBatch.from_arrays([rng.standard_normal((3, p)) for _ in range(4)])
    power = 2 if getattr(distance, "ground", "") == "sqeuclidean" else 1
    expected = distance(X) * size**power
    np.testing.assert_allclose(distance(SetBatch(X.values * size, X.offsets)), expected, rtol=1e-12)
    single = SetBatch((X.values * size).astype(np.float32), X.offsets)
    if size**power > 1e38:
        with pytest.raises(ValueError, match="exceeds the largest float32; scale the sets or give them as float64"):
            distance(single)
        return
    np.testing.assert_allclose(distance(single), expected, rtol=1e-5)


@each_distance
def test_the_second_sets_decide_the_type(distance):
    X = collection(0, 3, 2)
    assert distance(X.astype(np.float32), X).dtype == np.float64
    assert distance(X, X.astype(np.float32)).dtype == np.float32


@each_distance
def test_bad_input(distance):
    points = [np.zeros((2, 3)), np.ones((1, 3))]
    with pytest.raises(ValueError, match="X holds points of dimension 3 and Y of dimension 2"):
        distance(points, [np.zeros((2, 2))])
    with pytest.raises(ValueError, match="empty"):
        distance([])
    broken = SetBatch.from_arrays([np.zeros((2, 3)), np.array([[0.0, np.nan, 0.0]])])
    with pytest.raises(ValueError, match=r"X\[1\], point 0, coordinate 1 is nan"):
        distance(broken, points)
    with pytest.raises(ValueError, match=r"Y\[1\], point 0, coordinate 1 is nan"):
        distance(points, broken)


@pytest.mark.parametrize(
    ("distance", "message"),
    [
        (ModifiedHausdorff("cosine"), "ground must be 'euclidean', 'sqeuclidean' or 'manhattan', got 'cosine'"),
        (Hausdorff("sqeuclidean"), "ground must be 'euclidean' or 'manhattan', got 'sqeuclidean'"),
        (SlicedWasserstein(0), "n_projections must be an integer >= 1"),
        (SlicedWasserstein(p=3), "p must be 1 or 2, got 3"),
        (SlicedWasserstein(random_state=None), "random_state must be an integer >= 0, got None"),
    ],
)
def test_bad_parameters(distance, message):
    with pytest.raises(ValueError, match=message):
        distance([np.zeros((2, 3))])


def test_inputs_stay_as_they_are():
    X = collection(0, 5, 6)
    values, offsets = X.values.copy(), X.offsets.copy()
    for distance in ALL:
        distance(X, X[:2])
        distance(X)
    assert (X.values == values).all()
    assert (X.offsets == offsets).all()


@pytest.mark.parametrize("distance", [ModifiedHausdorff(), Chamfer()], ids=str)
def test_no_metric(distance):
    x, y, z = ([[2.0]], [[2.0], [1.0]], [[0.0], [1.0], [0.0]])
    D = distance([x, y, z])
    assert D[0, 2] > D[0, 1] + D[1, 2] + 0.4


def test_sliced_wasserstein_does_not_separate_all_sets():
    distance = SlicedWasserstein(n_projections=1)
    direction = distance._directions(1, 2)[0]
    across = np.array([[-direction[1], direction[0]]])
    assert distance([np.zeros((1, 2))], [across])[0, 0] < 1e-15


def test_real_descriptors_agree_with_the_twin(data_folder):
    data = np.load(data_folder / "sets" / "style_sift.npz")
    ends = np.cumsum(data["lengths"])[:30]
    X = SetBatch(data["values"][: ends[-1]].astype(np.float32), np.concatenate(([0], ends)))
    omega = sm.embeddings.RandomSets().sample(X, 8, np.random.default_rng(0))
    distance = ModifiedHausdorff()
    np.testing.assert_allclose(distance(X, omega), _by_numpy(X, omega), rtol=1e-5)


def _by_numpy(X, Y):
    tables = [[np.linalg.norm(x[:, None].astype(float) - y, axis=2) for y in Y] for x in X]
    return [[max(t.min(0).mean(), t.min(1).mean()) for t in row] for row in tables]


SIZES = st.lists(st.integers(1, 9), min_size=1, max_size=4)


def some_sets(seed, sizes, p=2, whole=False):
    rng = np.random.default_rng(seed)
    draw = (lambda size: rng.integers(-2, 3, size).astype(float)) if whole else (lambda size: rng.normal(size=size))
    return [draw((size, p)) for size in sizes]


@laws
@given(SIZES, SIZES, st.integers(0, 999), st.sampled_from([1, 2]), st.booleans(), st.booleans())
def test_agrees_with_a_linear_programme(sizes, others, seed, p, manhattan, whole):
    X, Y = some_sets(seed, sizes, whole=whole), some_sets(seed + 1, others, whole=whole)
    distance = Wasserstein(p, "manhattan" if manhattan else "euclidean")
    expected = [[naive.transported(x, y, p, "cityblock" if manhattan else "euclidean") for y in Y] for x in X]
    np.testing.assert_allclose(distance(X, Y), expected, rtol=1e-9, atol=1e-7 if p == 2 else 1e-12)


@laws
@given(st.integers(1, 40), st.integers(1, 5), st.integers(0, 999), st.sampled_from([1, 2]))
def test_sets_of_one_size_are_an_assignment(size, n_dims, seed, p):
    x, y = some_sets(seed, [size, size], n_dims)
    costs = cdist(x, y) ** p
    expected = costs[linear_sum_assignment(costs)].mean() ** (1 / p)
    assert Wasserstein(p)([x], [y])[0, 0] == pytest.approx(expected, rel=1e-12)


@laws
@given(st.integers(1, 30), st.integers(1, 30), st.integers(0, 999))
def test_agrees_with_scipy_on_a_line(m, n, seed):
    x, y = some_sets(seed, [m, n], 1)
    assert Wasserstein()([x], [y])[0, 0] == pytest.approx(wasserstein_distance(x[:, 0], y[:, 0]), rel=1e-12)
    assert Wasserstein(2)([x], [y])[0, 0] == pytest.approx(naive.wasserstein(x[:, 0], y[:, 0], 2) ** 0.5, rel=1e-12)


@pytest.mark.ecosystem
def test_agrees_with_pot():
    pytest.importorskip("ot", reason="POT is not installed")
    X = some_sets(0, [3, 7, 12, 30])
    np.testing.assert_allclose(Wasserstein()(X), sm.adapters.from_pot("emd2")(X), rtol=1e-9, atol=1e-12)
    squares = sm.adapters.from_pot("emd2", metric="sqeuclidean", root=True)
    np.testing.assert_allclose(Wasserstein(2)(X), squares(X), rtol=1e-9, atol=1e-7)


@pytest.mark.parametrize("distance", [Wasserstein(), Wasserstein(2), Wasserstein(2, "manhattan")], ids=str)
def test_is_a_metric_of_distributions(distance):
    X = some_sets(1, [1, 2, 3, 5, 6, 0, 4], whole=True)
    check_distance(distance, X)
    D = distance(X)
    assert (D[:, None, :] <= D[:, :, None] + D[None, :, :] + 1e-9).all()
    repeated = [np.repeat(x, 3, axis=0) for x in X]
    np.testing.assert_allclose(distance(X, repeated), D, rtol=1e-12, atol=1e-12)


@laws
@given(st.integers(1, 8), st.integers(1, 8), st.integers(0, 99), st.sampled_from([1, 2]))
def test_a_plan_moves_all_mass_at_the_cost_of_the_distance(m, n, seed, p):
    x, y = some_sets(seed, [m, n])
    plan = Wasserstein(p).plan(x, y)
    assert (plan >= 0).all()
    np.testing.assert_allclose(plan.sum(axis=1), 1 / m)
    np.testing.assert_allclose(plan.sum(axis=0), 1 / n)
    cost = np.sum(plan * cdist(x, y) ** p) ** (1 / p)
    assert cost == pytest.approx(Wasserstein(p)([x], [y])[0, 0], rel=1e-12)


def test_an_empty_set_is_the_origin():
    x = np.array([[3.0, 4.0], [0.0, 1.0]])
    assert Wasserstein()([x], [np.zeros((0, 2))])[0, 0] == 3.0
    assert Wasserstein(2, "manhattan")([x], [np.zeros((0, 2))])[0, 0] == 5.0


@pytest.mark.same_bits
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_distance_depends_on_its_two_sets_only(dtype, monkeypatch):
    X = [x.astype(dtype) for x in some_sets(2, [4, 9, 30, 31, 30, 1], p=3)]
    distance = Wasserstein()
    D = distance(X)
    assert D.dtype == dtype
    np.testing.assert_array_equal(D, D.T)
    rng = np.random.default_rng(0)
    shuffled = [rng.permutation(x) for x in X]
    np.testing.assert_array_equal(distance(shuffled, X), D)
    for i, j in np.ndindex(D.shape):
        assert distance(X[i : i + 1], X[j : j + 1])[0, 0] == D[i, j]
    left, right = rng.integers(6, size=(2, 20))
    np.testing.assert_array_equal(distance.paired(X, X, left, right), D[left, right])
    monkeypatch.setattr(module, "_WORK_OF_PLANS", 1)
    np.testing.assert_array_equal(distance(X), D)
    np.testing.assert_array_equal(distance.paired(X, X, left, right), D[left, right])


def test_many_steps_back():
    """Points whose cheapest columns are full: mass is taken back over chains of all rows."""
    x, y = np.arange(20.0)[:, None], np.arange(1.0, 22.0)[:, None] - 1e-3
    assert Wasserstein()([x], [y])[0, 0] == pytest.approx(wasserstein_distance(x[:, 0], y[:, 0]), rel=1e-12)


def test_refusals():
    X = some_sets(3, [2, 3])
    with pytest.raises(ValueError, match="p must be 1 or 2, got 3"):
        Wasserstein(3)(X)
    with pytest.raises(ValueError, match="ground must be 'euclidean' or 'manhattan', got 'cosine'"):
        Wasserstein(ground="cosine")(X)
    with pytest.raises(ValueError, match="X holds points of dimension 2 and Y of dimension 3, expected one dimension"):
        Wasserstein()(X, some_sets(0, [2], 3))


def test_a_plan_needs_points_on_both_sides():
    empty, points = np.empty((0, 2)), np.ones((2, 2))
    for name, x, y in (("x", empty, points), ("y", points, empty)):
        with pytest.raises(ValueError, match=rf"^{name} is an empty set, expected at least one point"):
            Wasserstein().plan(x, y)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
@pytest.mark.parametrize("p", [1, 2])
def test_a_plan_does_not_depend_on_the_unit_of_length(scale, p):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(4, 2)), rng.normal(size=(3, 2))
    np.testing.assert_array_equal(Wasserstein(p).plan(scale * x, scale * y), Wasserstein(p).plan(x, y))
    np.testing.assert_array_equal(Wasserstein(p).plan([[0.0]], [[0.0], [0.0]]), [[0.5, 0.5]])
