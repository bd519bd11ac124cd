"""Maximum mean discrepancy: twins, bias and variance by theory, the permutation test, and the distance of graphs."""

import itertools

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer

import similia as sm
from experiments.mmd_variance import mmd2_variance
from naive import graphlets as naive_graphlets
from similia.distances import Levenshtein
from similia.distances import mmd as loops
from similia.distances.mmd import MMD, TwoSampleResult, mmd2, two_sample_test
from similia.embeddings.random_features import OpticalRandomFeatures
from similia.kernels import RBF, Cosine, DistanceRBF, HypersphericalHeat, MeanMap, Product, Spectrum, Sum
from similia.kernels.vectors import Optical
from similia.objects import as_graphs, concatenate
from similia.objects.graphlets import sample_graphlets

SEEDS = st.integers(0, 2**32 - 1)
laws = settings(max_examples=12, deadline=None)
KERNELS = ("gaussian", "optical", "match", "match_iso")
each_kernel = pytest.mark.parametrize("kernel", KERNELS)


def words(n, letters, seed):
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list(letters), 6)) for _ in range(n)]


# ---- the two statistics


@laws
@given(seed=SEEDS, n=st.integers(2, 6), m=st.integers(2, 6), unbiased=st.booleans())
def test_statistics_agree_with_the_twin(seed, n, m, unbiased):
    X, Y = words(n, "ab", seed), words(m, "abc", seed + 1)
    kernel = Spectrum(2)
    expected = naive_graphlets.mmd2(lambda x, y: kernel([x], [y])[0, 0], X, Y, unbiased)
    assert mmd2(X, Y, kernel, unbiased) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    K = kernel(X + Y)
    before = K.copy()
    assert mmd2(K, n, "precomputed", unbiased) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert two_sample_test(K, n, "precomputed", 3, 0).statistic == pytest.approx(
        naive_graphlets.mmd2(lambda x, y: kernel([x], [y])[0, 0], X, Y, True), rel=1e-9, abs=1e-9
    )
    np.testing.assert_array_equal(K, before)


def test_v_statistic_is_a_squared_distance_of_means():
    X, Y = np.random.default_rng(0).standard_normal((2, 30, 4))
    embedding = OpticalRandomFeatures(100, 0).fit(X)
    gap = embedding.transform(X).mean(axis=0) - embedding.transform(Y).mean(axis=0)
    assert mmd2(X, Y, embedding, unbiased=False) == pytest.approx(gap @ gap, rel=1e-9)
    assert mmd2(X, Y, embedding) < mmd2(X, Y, embedding, unbiased=False)
    many = OpticalRandomFeatures(100_000, 0).fit(X)
    assert mmd2(X, Y, many, unbiased=False) == pytest.approx(mmd2(X, Y, Optical(), unbiased=False), rel=0.1)


@pytest.mark.parametrize("kernel", [RBF(), Sum([RBF(), RBF(2.0)]), HypersphericalHeat(0.5), MeanMap(RBF())], ids=repr)
def test_settings_are_decided_by_both_collections(kernel):
    X, Y = np.array([[0.1, 1.0], [10.0, 2.0]]), np.array([[0.5, -1.0], [1.0, 1.0], [3.0, 2.0]])
    if isinstance(kernel, MeanMap):
        X, Y = [X, X[:1]], [Y]
    decided = kernel.decided(concatenate([X, Y]))
    assert mmd2(X, Y, kernel, unbiased=False) == mmd2(X, Y, decided, unbiased=False) >= 0
    assert mmd2(Y, X, kernel, unbiased=False) == pytest.approx(mmd2(X, Y, decided, unbiased=False), rel=1e-12)


def test_collections_of_two_forms_are_compared_if_the_kernel_can():
    X, Y = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, -2.0], [3.0, 5.0]])
    assert mmd2(X, sp.csr_array(Y), Cosine()) == pytest.approx(mmd2(X, Y, Cosine()), rel=1e-12)
    assert mmd2(["a", "b"], [b"a", b"b"], Sum([Spectrum(1)])) == mmd2(["a", "b"], [b"a", b"b"], Spectrum(1))
    with pytest.raises(ValueError, match="X has 2 features and Y has 1, expected as many in both"):
        mmd2(X, Y[:, :1], RBF())
    with pytest.raises(TypeError, match="some batches hold str"):
        mmd2(["a", "b"], [b"a", b"b"], Sum([Spectrum(1), Undecided()]))


class Undecided(Spectrum):
    """A kernel with a setting that depends on all objects."""

    def decided(self, X):
        return Spectrum(len(X))


@pytest.mark.parametrize("power", [1017, -1060])
def test_statistics_of_very_large_and_very_small_kernels(power):
    K = Spectrum(2)(words(9, "ab", 0) + words(8, "abc", 1))
    assert mmd2(np.ldexp(K, power), 9, "precomputed") == np.ldexp(mmd2(K, 9, "precomputed"), power)
    expected, found = (two_sample_test(np.ldexp(K, k), 9, "precomputed", 99, 0) for k in (0, power))
    assert found.p_value == expected.p_value
    np.testing.assert_array_equal(found.null, np.ldexp(expected.null, power))
    constant = two_sample_test(np.full((40, 40), 1e306), 20, "precomputed", 99, 0)
    assert (constant.statistic, constant.p_value) == (0.0, 1.0)
    with pytest.raises(ValueError, match="discrepancy exceeds the largest float64; scale the kernel"):
        mmd2(np.kron([[1, -1], [-1, 1]], np.full((2, 2), 1.7e308)), 2, "precomputed")


def discrete_case(p_equals_q=False):
    """Kernel of ten points on a line, neither constant nor of equal diagonal, and two laws on them."""
    points = np.linspace(-1, 2, 10)
    K = np.exp(-((points[:, None] - points) ** 2)) * (1 + 0.5 * points[:, None] * points)
    rng = np.random.default_rng(5)
    p, q = rng.dirichlet(np.ones(10)), rng.dirichlet(np.ones(10))
    return K, p, p if p_equals_q else q


def draws(K, p, q, n, m, repeats, unbiased):
    """Statistics of repeated samples, by counts: the sum of k over pairs is a quadratic form of them."""
    rng = np.random.default_rng(n)
    a, b = rng.multinomial(n, p, repeats).astype(float), rng.multinomial(m, q, repeats).astype(float)
    own = [np.einsum("ri,ij,rj->r", c, K, c) for c in (a, b)]
    if unbiased:
        own = [
            (total - c @ K.diagonal()) / (size * (size - 1)) for total, c, size in zip(own, (a, b), (n, m), strict=True)
        ]
    else:
        own = [total / size**2 for total, size in zip(own, (n, m), strict=True)]
    return own[0] + own[1] - 2 * np.einsum("ri,ij,rj->r", a, K, b) / (n * m)


@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize(("n", "m"), [(5, 5), (5, 12), (40, 40)])
def test_bias_and_variance_by_theory(n, m, equal):
    K, p, q = discrete_case(equal)
    true = (p - q) @ K @ (p - q)
    biased, unbiased = (draws(K, p, q, n, m, 40_000, u) for u in (False, True))
    excess = (p @ K.diagonal() - p @ K @ p) / n + (q @ K.diagonal() - q @ K @ q) / m
    assert excess > 8 * biased.std() / 200  # the bias is seen
    assert abs(biased.mean() - true - excess) < 3.5 * biased.std() / 200
    assert abs(unbiased.mean() - true) < 3.5 * unbiased.std() / 200
    assert mmd2_variance(K, p, q, n, m) == pytest.approx(unbiased.var(), rel=0.05)
    # The library's own statistic, on a few of them.
    rng = np.random.default_rng(1)
    i, j = rng.choice(10, n, p=p), rng.choice(10, m, p=q)
    pooled = np.concatenate([i, j])
    gram = K[np.ix_(pooled, pooled)]
    expected = naive_graphlets.mmd2(lambda x, y: K[x, y], i, j, True)
    assert mmd2(gram, n, "precomputed") == pytest.approx(expected, abs=1e-12)


def test_variance_by_enumeration():
    """All samples of two and three from laws on three objects, with their probabilities."""
    K = np.array([[2.0, 0.3, -0.5], [0.3, 1.0, 0.2], [-0.5, 0.2, 1.5]])
    p, q = np.array([0.5, 0.2, 0.3]), np.array([0.1, 0.6, 0.3])
    moments = np.zeros(2)
    for sample in itertools.product(range(3), repeat=5):
        weight = p[list(sample[:2])].prod() * q[list(sample[2:])].prod()
        value = naive_graphlets.mmd2(lambda x, y: K[x, y], sample[:2], sample[2:], True)
        moments += weight * value, weight * value**2
    assert moments[0] == pytest.approx((p - q) @ K @ (p - q), rel=1e-12)
    assert mmd2_variance(K, p, q, 2, 3) == pytest.approx(moments[1] - moments[0] ** 2, rel=1e-12)
    assert mmd2_variance(K + 1000, p, q, 2, 3) == pytest.approx(moments[1] - moments[0] ** 2, rel=1e-9)


# ---- the test


def brute_statistics(K, n):
    """Unbiased MMD^2 of all divisions of the pooled objects into n and the rest."""
    found = []
    for left in itertools.combinations(range(len(K)), n):
        right = [i for i in range(len(K)) if i not in left]
        found.append(naive_graphlets.mmd2(lambda x, y: K[x, y], left, right, True))
    return np.array(found)


def test_null_is_that_of_all_divisions():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((8, 3))
    K = Optical()(Z)
    exact = brute_statistics(K, 3)
    result = two_sample_test(K, 3, "precomputed", n_permutations=5600, random_state=1)
    assert isinstance(result, TwoSampleResult)
    assert result.statistic == pytest.approx(exact[0], rel=1e-9)
    which = np.abs(result.null[:, None] - exact).argmin(axis=1)
    np.testing.assert_allclose(result.null, exact[which], rtol=1e-9, atol=1e-9)
    counts = np.bincount(which, minlength=56)
    assert stats.chisquare(counts).pvalue > 1e-3
    share = np.mean(exact >= exact[0] - 1e-9)
    assert result.p_value == pytest.approx(share, abs=0.03)
    assert result.p_value == (1 + np.sum(result.null >= result.statistic - 1e-9)) / 5601


def test_ties_by_rounding_count_as_ties():
    # Of repeated objects many divisions have the same statistic, the sums of which are rounded differently.
    for seed in range(10):
        rng = np.random.default_rng(seed)
        Z = rng.standard_normal((3, 3))[rng.integers(0, 3, 9)]
        K = Optical(bias=0.7)(Z)
        exact = brute_statistics(K, 4)
        share = np.mean(exact >= exact[0] - 1e-9)
        assert two_sample_test(K, 4, "precomputed", 2000, 0).p_value == pytest.approx(share, abs=0.05)


def test_p_values_are_uniform_under_the_null_and_small_under_the_alternative():
    rng, p_values = np.random.default_rng(0), []
    for _ in range(300):
        Z = rng.standard_normal((20, 2))
        p_values.append(two_sample_test(Z[:8], Z[8:], Optical(bias=1.0), 99, rng).p_value)
    p_values = np.array(p_values)
    assert p_values.min() >= 0.01
    for level in (0.05, 0.2, 0.5):
        assert abs(np.mean(p_values <= level) - level) < 4 * np.sqrt(level * (1 - level) / 300)
    far = two_sample_test(rng.standard_normal((30, 2)), 3 + rng.standard_normal((30, 2)), Optical(bias=1.0), 199, 0)
    assert far.p_value == 1 / 200


def test_equal_objects_are_never_significant():
    result = two_sample_test(np.full((6, 6), 3.7), 3, "precomputed", 50, 0)
    assert result.p_value == 1.0
    assert abs(result.statistic) < 1e-12
    same = two_sample_test(["ab"] * 4, ["ab"] * 3, Spectrum(1), 50, 0)
    assert same.p_value == 1.0


def test_permutations_depend_on_the_seed_alone():
    X, Y = words(9, "ab", 0), words(7, "abc", 1)
    first = two_sample_test(X, Y, Spectrum(2), 600, 3)
    with sm.config(max_memory=1000):
        second = two_sample_test(X, Y, Spectrum(2), 600, 3)
    np.testing.assert_allclose(first.null, second.null, rtol=1e-9, atol=1e-12)
    assert first.p_value == second.p_value
    assert not np.array_equal(first.null, two_sample_test(X, Y, Spectrum(2), 600, 4).null)


def test_of_graphs_with_an_embedding_and_with_a_distance():
    X = [nx.gnp_random_graph(15, 0.3, seed=i) for i in range(20)]
    Y = [nx.random_regular_graph(4, 15, seed=i) for i in range(20)]
    kernel = DistanceRBF(MMD(size=4, n_samples=300))
    assert two_sample_test(X, Y, kernel, 99, 0).p_value == 0.01
    assert two_sample_test(X[:10], X[10:], kernel, 99, 0).p_value > 0.05
    with pytest.raises(NotFittedError):
        two_sample_test(np.eye(3), np.eye(3), OpticalRandomFeatures(5))


def test_statistics_refuse_bad_input():
    X = words(3, "ab", 0)
    for kernel, error, sentence in (
        (Levenshtein(), TypeError, "is a distance, expected a kernel"),
        (Spectrum, TypeError, r"kernel is the class Spectrum, .* write Spectrum\(...\)"),
        (3, TypeError, "kernel is 3, expected a kernel"),
        ("rbf", ValueError, "got 'rbf'"),
        (lambda X, Y=None: np.ones((1, 1)), ValueError, "returned shape"),
    ):
        with pytest.raises(error, match=sentence):
            mmd2(X, X, kernel)
    with pytest.raises(ValueError, match="Y has 1 objects, expected at least 2"):
        mmd2(X, X[:1], Spectrum(1))
    assert np.isfinite(mmd2(X, X[:1], Spectrum(1), unbiased=False))
    with pytest.raises(ValueError, match="X has 0 objects, expected at least 1"):
        mmd2([], X, Spectrum(1), unbiased=False)
    with pytest.raises(ValueError, match=r"square Gram matrix .* got shape \(3, 4\)"):
        mmd2(np.ones((3, 4)), 2, "precomputed")
    with pytest.raises(ValueError, match="Y has 0 objects"):
        mmd2(np.ones((3, 3)), 3, "precomputed")
    with pytest.raises(ValueError, match="not symmetric"):
        mmd2(np.triu(np.ones((4, 4))), 2, "precomputed")
    bad = np.eye(5)
    bad[1, 4] = bad[4, 1] = np.nan
    with pytest.raises(ValueError, match="the kernel is nan for the pooled objects 1 and 4"):
        two_sample_test(bad, 2, "precomputed")
    with pytest.raises(ValueError, match="n_permutations must be an integer >= 1, got 0"):
        two_sample_test(X, X, Spectrum(1), 0)
    with pytest.raises(ValueError, match="p must be probabilities"):
        mmd2_variance(np.eye(2), [0.5, 0.6], [0.5, 0.5], 3)
    with pytest.raises(ValueError, match="expected K of shape"):
        mmd2_variance(np.eye(3), [0.5, 0.5], [0.5, 0.5], 3)
    with pytest.raises(ValueError, match="n must be an integer >= 2"):
        mmd2_variance(np.eye(2), [0.5, 0.5], [0.5, 0.5], 1)


# ---- the distance of graphs


def graphs(n, seed=0, smallest=0, largest=12):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(smallest, largest + 1, n)
    return as_graphs(
        [nx.gnp_random_graph(int(size), rng.choice([0.2, 0.5, 0.9]), seed=int(i)) for i, size in enumerate(sizes)]
    )


def twin(distance, X, Y):
    def samples(graph):
        codes = sample_graphlets(
            graph, distance.size, distance.n_samples, distance.sampling, seed=distance.random_state
        )
        return [naive_graphlets.adjacency_of_code(code, distance.size) for code in codes[0]]

    def k(a, b):
        return naive_graphlets.graphlet_kernel(distance.kernel, a, b, distance.bandwidth)

    X, Y = [[samples(B[i : i + 1]) for i in range(len(B))] for B in (X, Y)]
    squares = [[naive_graphlets.mmd2(k, x, y, distance.unbiased) for y in Y] for x in X]
    return np.sqrt(np.maximum(squares, 0))


@each_kernel
@laws
@given(seed=st.integers(0, 1000), size=st.sampled_from([2, 3, 4]), unbiased=st.booleans())
def test_agrees_with_the_twin(kernel, seed, size, unbiased):
    distance = MMD(size, 8, kernel=kernel, bandwidth=0.8, unbiased=unbiased, random_state=seed)
    X, Y = graphs(3, seed), graphs(2, seed + 1)
    np.testing.assert_allclose(distance(X, Y), twin(distance, X, Y), rtol=1e-9, atol=2e-7)


@pytest.mark.parametrize("whole_table", [True, False])
def test_both_ways_to_the_gaussian_kernel(whole_table, monkeypatch):
    monkeypatch.setattr(loops, "_whole_table_pays", lambda *args: whole_table)
    X, Y = graphs(21, 1, 3), graphs(10, 2, 3)
    distance = MMD(5, 40, bandwidth=1.3)
    np.testing.assert_allclose(distance(X[:4], Y[:3]), twin(distance, X[:4], Y[:3]), rtol=1e-9)
    D = distance(X, Y)
    np.testing.assert_allclose(D[:, 3:4], distance(X, Y[3:4]), rtol=1e-9)
    np.testing.assert_allclose(distance(Y, X), D.T, rtol=1e-9)
    joint = distance(as_graphs([*X, *Y]))
    np.testing.assert_allclose(joint[:21, 21:], D, rtol=1e-9)
    check_laws(distance, X)


def check_laws(distance, X):
    D = distance(X)
    n = len(D)
    assert D.dtype == np.float64
    assert (D >= 0).all()
    np.testing.assert_array_equal(D, D.T)
    np.testing.assert_array_equal(D.diagonal(), 0)
    np.testing.assert_array_equal(distance(X, X).diagonal(), 0)
    np.testing.assert_array_equal(distance(X[1:3], X[:4])[[0, 1], [1, 2]], 0)
    if not distance.unbiased:
        assert (D[:, :, None] <= D[:, None] + D[None] + 1e-7).all()
    np.testing.assert_allclose(D[: n // 2, n // 2 :], distance(X[: n // 2], X[n // 2 :]), rtol=1e-8, atol=3e-8)


@each_kernel
@pytest.mark.parametrize("sampling", ["random_walk", "uniform"])
@pytest.mark.parametrize("unbiased", [False, True])
def test_laws(kernel, sampling, unbiased):
    check_laws(MMD(4, 50, sampling, kernel, unbiased=unbiased), graphs(13, 4))
    assert MMD.facts.symmetric
    assert MMD.facts.identity
    assert not MMD.facts.metric


@each_kernel
def test_a_renumbered_graph_is_near_and_unbiased_nearer(kernel):
    graph = nx.gnp_random_graph(30, 0.3, seed=0)
    rng = np.random.default_rng(0)
    copies = [nx.relabel_nodes(graph, dict(enumerate(rng.permutation(30).tolist()))) for _ in range(30)]
    copies = [nx.from_numpy_array(nx.to_numpy_array(copy, nodelist=range(30))) for copy in copies]
    s, pairs = 400, np.triu_indices(30, 1)
    biased = MMD(4, s, "uniform", kernel)(copies)[pairs] ** 2
    own = [naive_graphlets.adjacency_of_code(code, 4) for code in sample_graphlets([graph], 4, 200, "uniform")[0]]
    products = [[naive_graphlets.graphlet_kernel(kernel, a, b, 1.0) for a in own[40:]] for b in own[:40]]
    alone = np.mean([naive_graphlets.graphlet_kernel(kernel, a, a, 1.0) for a in own])
    expected = 2 / s * (alone - np.mean(products))  # the bias, for equal laws
    assert biased.mean() == pytest.approx(expected, rel=0.25)
    unbiased = MMD(4, s, "uniform", kernel, unbiased=True)(copies)[pairs] ** 2
    assert unbiased.mean() < 0.6 * biased.mean()  # negative squares are cut at 0


def test_bandwidth_and_seed():
    X = graphs(6, 0, 6)
    wide, narrow = MMD(4, 100, bandwidth=10.0)(X), MMD(4, 100, bandwidth=0.05)(X)
    assert wide.max() < 0.3
    np.testing.assert_allclose(narrow, MMD(4, 100, kernel="match")(X), rtol=1e-12)
    np.testing.assert_array_equal(MMD(4, 100, bandwidth=1e-170)(X), MMD(4, 100, kernel="match")(X))
    assert not MMD(4, 100, bandwidth=1e160)(X).any()
    assert not np.array_equal(MMD(4, 100)(X), MMD(4, 100, random_state=1)(X))
    with sm.config(max_memory=5000):
        np.testing.assert_allclose(MMD(4, 100)(X), MMD(4, 100)(graphs(6, 0, 6)), rtol=1e-9)
        small = MMD(4, 100)(X)
    np.testing.assert_allclose(MMD(4, 100)(X), small, rtol=1e-9)


def test_large_graphlets():
    X = graphs(4, 3, 11, 20)
    for kernel in ("gaussian", "optical", "match"):
        distance = MMD(11, 12, kernel=kernel, bandwidth=2.0)
        np.testing.assert_allclose(distance(X), twin(distance, X, X), rtol=1e-9, atol=2e-6)


def test_small_and_empty_graphs():
    edgeless, point, none = nx.empty_graph(5), nx.empty_graph(1), nx.empty_graph(0)
    D = MMD(4, 20)([edgeless, point, none, nx.complete_graph(4)])
    np.testing.assert_array_equal(D[:3, :3], 0)
    np.testing.assert_allclose(D[:3, 3], np.sqrt(2 - 2 * np.exp(-6 / 2)), rtol=1e-12)
    with pytest.raises(ValueError, match="graph 1 has 1 nodes"):
        MMD(4, 20, small="raise")([edgeless, point])


def test_distance_refuses_bad_input():
    X = graphs(2, 0, 4)
    for parameters, sentence in (
        ({"kernel": "rbf"}, "kernel must be 'gaussian', 'optical', 'match' or 'match_iso', got 'rbf'"),
        ({"bandwidth": 0}, "bandwidth must be a positive number, got 0"),
        ({"bandwidth": "median"}, "bandwidth must be a positive number"),
        ({"n_samples": 0}, "n_samples must be an integer >= 1"),
        ({"n_samples": 1, "unbiased": True}, "n_samples must be an integer >= 2"),
        ({"size": 12}, "size=12"),
        ({"size": 8, "kernel": "match_iso"}, "sizes 2 to 7"),
        ({"sampling": "all"}, "sampling must be 'uniform' or"),
        ({"flyback": 1.0}, "flyback must be"),
        ({"random_state": None}, "random_state must be an integer >= 0"),
    ):
        with pytest.raises(ValueError, match=sentence):
            MMD(**parameters)(X)
    with pytest.raises((TypeError, ValueError)):
        MMD()(["a string"])
    with pytest.raises(TypeError, match=r"^Y, graph 0 is str"):
        MMD()(X, ["a string"])
    with pytest.raises(ValueError, match=r"^Y is empty"):
        MMD()(X, [])


def test_optical_sums_of_many_samples_do_not_depend_on_the_place():
    distance, rng = MMD(4, kernel="optical"), np.random.default_rng(0)
    A = rng.integers(0, 2**40, (60, len(distance._multiplicities()))).astype(float)
    sums, own_a, own_b = distance._sums(A, None)
    np.testing.assert_array_equal(sums.diagonal(), own_a)
    np.testing.assert_array_equal(own_a, own_b)
    np.testing.assert_array_equal(sums, sums.T)
    sums, own_a, own_b = distance._sums(A[:1], A)
    np.testing.assert_array_equal([sums[0, 0]], own_a)
    np.testing.assert_array_equal(own_b[0], own_a[0])


def test_in_other_rooms():
    X = graphs(30, 0, 8)
    Z = sm.D2KE(MMD(4, 50), n_components=10, random_state=0).fit_transform(X)
    assert Z.shape == (30, 10)
    assert sm.PseudoEuclidean(MMD(4, 50), n_components=3, random_state=0).fit_transform(X).shape == (30, 3)


def test_pooled_objects_and_matrices_name_the_collection():
    X = words(3, "ab", 0)
    with pytest.raises(TypeError, match=r"^Y\[1\] is int"):
        two_sample_test(X, ["a", 3], Spectrum(1))
    with pytest.raises(TypeError, match=r"^Y, graph 1 is str"):
        two_sample_test(graphs(2), [*graphs(1), "a"], sm.GraphletSampling(3, 9, random_state=0).fit(graphs(2)))
    with pytest.raises(TypeError, match=r"^Y must be the number of objects of the first .* got ndarray") as raised:
        two_sample_test(np.eye(300), np.eye(300), "precomputed")
    assert len(str(raised.value)) < 300


def test_a_result_is_shown_in_one_line():
    result = two_sample_test(words(9, "ab", 0), words(9, "cd", 1), Spectrum(1), 1000, 0)
    assert repr(result) == f"TwoSampleResult(statistic={result[0]:.6g}, p_value=0.000999001, null=<1000 statistics>)"
    assert len(result.null) == 1000


def test_codes_of_an_encoder_are_vectors_of_signs():
    X, Y = words(12, "ab", 0), words(9, "abc", 1)
    encoder = sm.recipes.nyshd(Spectrum(k=2), 8, 64, random_state=0)[:-1].fit([*X, *Y])
    bits = np.unpackbits(encoder.transform([*X, *Y]), axis=1).astype(float)
    signs = 2 * bits - 1
    assert mmd2(X, Y, encoder) == pytest.approx(mmd2(signs @ signs.T, 12, "precomputed"))
    assert two_sample_test(X, Y, encoder, random_state=0).statistic == pytest.approx(mmd2(X, Y, encoder))
    letters = CountVectorizer(analyzer="char", dtype=np.uint8).fit([*X, *Y])  # sparse, and no packed bits
    counts = letters.transform([*X, *Y]).toarray().astype(float)
    assert mmd2(X, Y, letters) == pytest.approx(mmd2(counts @ counts.T, 12, "precomputed"))


@pytest.mark.parametrize("call", [mmd2, lambda X, Y, kernel: two_sample_test(X, Y, kernel, 9)])
def test_an_error_names_the_collection_of_its_objects(call):
    X, Y = np.ones((3, 2)), np.ones((4, 2))
    Y[2] = 0
    with pytest.raises(ValueError, match=r"^Y\[2\] is zero"):
        call(X, Y, Cosine())
    with pytest.raises(ValueError, match=r"^X\[2\] is zero"):
        call(Y, X, Cosine())
    Y[2] = 1e45
    squares = Product([Optical(), Optical()])
    with pytest.raises(ValueError, match=r"of Y\[2\] and Y\[2\] exceeds the largest float64"):
        call(X, Y, squares)
    with pytest.raises(ValueError, match=r"of X\[2\] and X\[2\] exceeds the largest float64"):
        call(Y, X, squares)
