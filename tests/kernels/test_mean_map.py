"""MeanMap and RBF: the definition, laws, equal bits, scikit-learn and MMD as witnesses, refusals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

import similia as sm
from naive import similarities as naive
from similia.checks import check_kernel
from similia.distances import mmd2
from similia.kernels import RBF, MeanMap, Normalized, Sum, vectors
from similia.objects import as_sets
from similia.sources.dask import as_partitions

laws = settings(max_examples=25, deadline=None)
SIZES = st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any)


def some_sets(seed, sizes, p=2):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(size, p)) for size in sizes]


@laws
@given(SIZES, st.integers(0, 99), st.floats(0.01, 10))
def test_agrees_with_the_twin(sizes, seed, gamma):
    X = some_sets(seed, sizes)
    Y = [*some_sets(seed + 1, [1, 4]), *X[:1]]
    for others in (X, Y):
        expected = [[naive.mean_map(u, v, gamma) for v in others] for u in X]
        found = MeanMap(RBF(gamma))(X, None if others is X else others)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-300)
        pairs = np.outer([len(x) for x in X], [len(y) for y in others])
        np.testing.assert_allclose(MeanMap(RBF(gamma), "sum")(X, others), expected * pairs, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("reduce", ["mean", "sum"])
def test_is_a_kernel(reduce):
    X = some_sets(0, [1, 3, 7, 2, 0, 4])
    check_kernel(MeanMap(RBF(0.5), reduce), X)
    check_kernel(Normalized(MeanMap(RBF(), reduce).decided(X)), X)


def test_takes_any_ground_kernel():
    X = some_sets(1, [2, 5, 3])
    for ground in (rbf_kernel, polynomial_kernel, sm.kernels.Optical()):
        expected = [[ground(u, v).mean() for v in X] for u in X]
        np.testing.assert_allclose(MeanMap(ground)(X), expected, rtol=1e-12)


@pytest.mark.parametrize(
    "ground", [RBF(), RBF("median"), sm.kernels.Cosine(), sm.kernels.HypersphericalHeat()], ids=str
)
def test_empty_sets_have_kernel_0(ground):
    empty, X = some_sets(0, [0]), some_sets(0, [3, 0])
    np.testing.assert_array_equal(MeanMap(ground)(empty, X), [[0, 0]])
    np.testing.assert_array_equal(MeanMap(ground)(empty), [[0]])
    np.testing.assert_array_equal(MeanMap(ground).diag(empty), [0])


def test_two_sample_statistics_are_its_distance():
    U, V = some_sets(2, [40, 30])
    K = MeanMap(RBF(0.7))([U, V + 0.5])
    assert mmd2(U, V + 0.5, RBF(0.7), unbiased=False) == pytest.approx(K[0, 0] + K[1, 1] - 2 * K[0, 1], rel=1e-12)


@pytest.mark.same_bits
def test_a_value_depends_on_its_two_sets_only(monkeypatch):
    X = some_sets(3, [600, 1, 0, 300, 30, 5, 257, 256], p=3)
    kernel = MeanMap(RBF(0.2))
    K = kernel(X)
    for i, j in np.ndindex(K.shape):
        assert kernel(X[i : i + 1], X[j : j + 1])[0, 0] == K[i, j] == K[j, i]
    np.testing.assert_array_equal(kernel.diag(X), K.diagonal())
    with sm.config(max_memory=1):
        np.testing.assert_array_equal(kernel(X), K)
    monkeypatch.setattr(vectors, "_WORK", 2**40)  # in threads
    np.testing.assert_array_equal(kernel(X, X), K)
    order = np.random.default_rng(0).permutation(600)
    np.testing.assert_allclose(kernel([X[0][order]], X)[0], K[0], rtol=1e-12)


def test_the_median_comes_from_the_training_points():
    X, other = some_sets(4, [5, 6, 7]), some_sets(5, [5])
    fitted = sm.KernelSVC(MeanMap(RBF(scale=4.0))).fit(X, [0, 1, 0])
    points = np.concatenate(X)
    distances = np.linalg.norm(points[:, None] - points, axis=-1)[np.triu_indices(len(points), 1)]
    gamma = 4 / (2 * np.median(distances) ** 2)
    ground = fitted.kernel_.ground
    assert ground.gamma * ground.scale == pytest.approx(gamma)
    np.testing.assert_allclose(ground(other[0]), rbf_kernel(other[0], gamma=gamma), rtol=1e-12)
    assert RBF(2.0).decided(points).gamma == 2.0


def test_settings_of_a_dask_collection_are_those_of_its_objects_in_memory():
    bags, arrays = pytest.importorskip("dask.bag"), pytest.importorskip("dask.array")
    points = np.random.default_rng(6).normal(size=(1100, 3))  # more than the median takes
    for n in (100, 1100):
        parts = as_partitions(arrays.from_array(points[:n], chunks=(60, 3)))
        for kernel in (RBF(), Normalized(RBF()), Sum([RBF(), RBF(2.0)])):
            expected = kernel.decided(points[:n])(points[:5])
            np.testing.assert_array_equal(kernel.decided(parts)(points[:5]), expected)
    X = some_sets(7, [3, 0, 500, 2, 700, 1])
    parts = as_partitions(bags.from_sequence(X, npartitions=3).filter(lambda x: len(x) != 2))
    for kernel in (MeanMap(RBF()), MeanMap(sm.kernels.Cosine()), MeanMap(rbf_kernel)):
        expected = kernel.decided(X[:3] + X[4:])(X)
        np.testing.assert_array_equal(kernel.decided(parts)(X), expected)


@laws
@given(st.integers(0, 99), st.integers(1, 6), st.floats(1e-3, 1e3))
def test_rbf_agrees_with_scikit_learn(seed, p, gamma):
    X, Y = (np.random.default_rng(seed + i).normal(size=(n, p)) for i, n in enumerate((7, 4)))
    np.testing.assert_allclose(RBF(gamma)(X, Y), rbf_kernel(X, Y, gamma=gamma), rtol=1e-9, atol=1e-12)
    check_kernel(RBF(gamma), X)


def test_rbf_is_accurate_far_from_the_origin():
    X = np.array([[0.0, 0.5], [1.0, 0.25]])
    np.testing.assert_array_equal(RBF(0.5)(X + 2.0**40), RBF(0.5)(X))
    np.testing.assert_array_equal(RBF(1e-300)(X * 1e200, X * 1e200), np.eye(2))  # squares of distances are infinite
    np.testing.assert_allclose(RBF(1e-310)([[0.0], [1e155]], [[1e155]]), [[np.exp(-1)], [1]], rtol=1e-12)


def test_refusals():
    with pytest.raises(ValueError, match=r"X holds points of dimension 2 and Y of dimension 3, expected one dimension"):
        MeanMap(RBF(1.0))(some_sets(0, [2]), some_sets(0, [2], p=3))
    with pytest.raises(ValueError, match=r"reduce must be 'mean' or 'sum', got 'max'"):
        MeanMap(RBF(1.0), "max")(some_sets(0, [2]))
    with pytest.raises(TypeError, match="is a distance, expected a kernel"):
        MeanMap(sm.distances.Hausdorff())(some_sets(0, [2]))
    with pytest.raises(ValueError, match="gamma must be a positive number, got 0"):
        RBF(0)(np.eye(2))
    for extreme in (1e200, 1e-200):
        with pytest.raises(
            ValueError, match=r"gamma=1e.200 \* scale=1e.200 is out of range for float64; scale the vect"
        ):
            RBF(extreme, extreme)(np.eye(2))
        with pytest.raises(
            ValueError, match=r"^k\(X\[0\], .*(exceeds|below) .* scale the vectors, or use Optical\(normalize=True\)$"
        ):
            sm.kernels.Optical()(extreme * np.eye(2))
    with pytest.raises(ValueError, match="X has 2 features and Y has 3, expected as many in both"):
        RBF(1.0)(np.eye(2), np.eye(3))
    bad = as_sets(some_sets(0, [2, 3]))
    bad.values[3] = np.nan
    with pytest.raises(ValueError, match=r"X\[1\], point 1, coordinate 0 is nan, expected a finite number"):
        MeanMap(RBF()).decided(bad)
    with pytest.raises(ValueError, match=r"X\[1\], point 1, coordinate 0 is nan, expected a finite number"):
        MeanMap(RBF(1.0))(bad)
