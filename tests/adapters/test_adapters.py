"""Other libraries' kernels and distances as ours: by small fakes of the same form, and by the real ones where there.

The fakes have the signatures of aeon 1.6, tslearn 0.10, POT 0.9 and GraKeL 0.1.
"""

from __future__ import annotations

import sys
from types import ModuleType

import networkx as nx
import numpy as np
import pytest
from scipy.stats import wasserstein_distance
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import similia as sm
from naive import similarities as naive
from similia.adapters import (
    AeonDistance,
    TslearnDistance,
    TslearnKernel,
    from_aeon,
    from_grakel,
    from_pot,
    from_tslearn,
)
from similia.distances import DTW
from similia.learn.kernel_machines import KernelSVC
from similia.learn.neighbors import KNeighborsClassifier
from similia.similarity import self_values

RANDOM = np.random.default_rng(0)
SERIES = [RANDOM.standard_normal((n, 2)) for n in (5, 3, 7, 4, 3)]
SETS = [RANDOM.standard_normal((n, 2)) for n in (4, 1, 3, 6)]


def module(name, monkeypatch, **functions):
    """Put a module into `sys.modules`, and the package it is in."""
    package, _, _ = name.partition(".")
    fake = ModuleType(name)
    for key, function in functions.items():
        function.__module__ = f"{package}.{key}"
        setattr(fake, key, function)
    if package != name:
        monkeypatch.setitem(sys.modules, package, ModuleType(package))
    monkeypatch.setitem(sys.modules, name, fake)
    return fake


def warped(x, y, squared=True):
    """Dynamic time warping of two (length, n_channels) arrays, written out."""
    D = np.full((len(x) + 1, len(y) + 1), np.inf)
    D[0, 0] = 0
    for i, a in enumerate(x):
        for j, b in enumerate(y):
            D[i + 1, j + 1] = ((a - b) ** 2).sum() + min(D[i, j], D[i, j + 1], D[i + 1, j])
    return D[-1, -1]


@pytest.fixture
def aeon(monkeypatch):
    calls = []

    def pairwise_distance(x, y=None, method=None, symmetric=True, n_jobs=1, scale=1.0):
        calls.append((method, n_jobs, y is None))
        if y is not None and len(y) >= 13:
            raise RuntimeError("unlucky")
        y = x if y is None else y
        assert all(a.ndim == 2 and a.flags.c_contiguous for a in [*x, *y])
        values = np.array([[scale * warped(a.T, b.T) for b in y] for a in x])
        return values if method == "dtw" else -values

    def twe_distance(x, y, window=None):
        return warped(x.T, y.T)

    def get_distance_function_names():
        return ["dtw", "minus", "shift_scale", "twe"]

    def dtw_pairwise_distance(x, y=None):
        raise AssertionError("called by its name")

    def shift_scale_invariant_distance(x, y):
        raise AssertionError("called by its name")

    fake = module("aeon.distances", monkeypatch, pairwise_distance=pairwise_distance,
                  get_distance_function_names=get_distance_function_names,
                  shift_scale_invariant_distance=shift_scale_invariant_distance,
                  dtw_pairwise_distance=dtw_pairwise_distance, twe_distance=twe_distance)  # fmt: skip
    fake.calls = calls
    return fake


# ---- aeon


def test_aeon_gets_channels_first_and_gives_the_matrix(aeon):
    distance = from_aeon("dtw")
    expected = [[warped(x, y) for y in SERIES] for x in SERIES]
    np.testing.assert_allclose(distance(SERIES), expected)
    np.testing.assert_allclose(distance(SERIES, SERIES[:2]), np.array(expected)[:, :2])
    np.testing.assert_allclose(distance(np.ones((3, 4))), 0)
    np.testing.assert_allclose(distance(SERIES), DTW(local="sqeuclidean")(SERIES), rtol=1e-12)
    assert aeon.calls[:2] == [("dtw", 1, True), ("dtw", 1, False)]
    sm.checks.check_distance(distance, SERIES)
    assert from_aeon(aeon.dtw_pairwise_distance).distance == "dtw"
    assert from_aeon(aeon.shift_scale_invariant_distance).distance == "shift_scale"


def test_aeon_is_not_let_believe_that_all_lengths_are_equal(aeon):
    def last_word(x, y=None, method=None, n_jobs=1):
        assert y is None or len({a.shape[1] for a in y}) > 1 or len({a.shape[1] for a in x}) == 1
        y = x if y is None else y
        return np.array([[warped(a.T, b.T) for b in y] for a in x])

    aeon.pairwise_distance = last_word
    for Y in (SERIES[:1], [SERIES[1], SERIES[4]], SERIES):
        np.testing.assert_allclose(from_aeon()(SERIES, Y), [[warped(x, y) for y in Y] for x in SERIES])


def test_options_of_aeon_are_parameters(aeon):
    distance = from_aeon("dtw", scale=2.0)
    assert distance.get_params() == {"distance": "dtw", "params": {"scale": 2.0}, "scale": 2.0, "symmetric": True}
    copy = clone(distance).set_params(scale=3.0)
    assert distance.params == {"scale": 2.0}
    np.testing.assert_allclose(copy(SERIES), 1.5 * distance(SERIES))
    y = [0, 1, 0, 1, 1]
    search = GridSearchCV(KNeighborsClassifier(from_aeon("dtw")), {"distance__scale": [1.0, 2.0]}, cv=2)
    assert search.fit(SERIES, y).best_params_ == {"distance__scale": 1.0}
    with sm.config(n_jobs=2):
        distance(SERIES)
    assert aeon.calls[-1][1] == 2
    assert eval(repr(distance)).get_params() == distance.get_params()


def test_blocks_of_rows_make_the_same_matrix(aeon):
    whole = from_aeon("dtw")(SERIES, SERIES)
    before = len(aeon.calls)
    with sm.config(max_memory=1):
        np.testing.assert_array_equal(from_aeon("dtw")(SERIES, SERIES), whole)
    assert len(aeon.calls) - before == len(SERIES)
    from_aeon("shift_scale", scale=0.0)(SERIES)
    assert aeon.calls[-1] == ("shift_scale", 1, False)  # not symmetric: all pairs are asked for


def test_bounded_twe_is_computed_pair_by_pair_and_slopes_are_not_mirrored(aeon):
    expected = [[warped(x, y) for y in SERIES] for x in SERIES]
    np.testing.assert_allclose(from_aeon("twe", window=0.2)(SERIES), expected)
    assert not aeon.calls
    from_aeon("twe", scale=0.0)(SERIES)
    aeon.pairwise_distance = lambda x, y, method, itakura_max_slope, n_jobs: np.tri(len(x), len(y))
    np.testing.assert_array_equal(from_aeon("dtw", itakura_max_slope=0.5)(SERIES), np.tri(len(SERIES)))
    assert aeon.calls == [("twe", 1, True)]


def test_a_function_of_two_series_is_an_aeon_distance(aeon):
    distance = from_aeon(lambda x, y, shift=0.0: abs(x.shape[1] - y.shape[1]) + shift, shift=1.0)
    np.testing.assert_array_equal(distance(SERIES[:2], SERIES[2:]), [[3, 2, 3], [5, 2, 1]])
    assert not aeon.calls


# ---- tslearn


@pytest.fixture
def tslearn(monkeypatch):
    def cdist_dtw(dataset1, dataset2=None, sakoe_chiba_radius=None, n_jobs=None, verbose=0):
        dataset2 = dataset1 if dataset2 is None else dataset2
        return np.sqrt([[warped(x, y) for y in dataset2] for x in dataset1])

    def cdist_gak(dataset1, dataset2=None, sigma=1.0, n_jobs=None, verbose=0):
        dataset2 = dataset1 if dataset2 is None else dataset2
        return np.array([[np.exp(-abs(len(x) - len(y)) / sigma) for y in dataset2] for x in dataset1])

    def unnormalized_gak(s1, s2, sigma=1.0):
        return len(s1) * len(s2) * sigma

    def lcss(s1, s2):
        return 1.0

    def sigma_gak(dataset, n_samples=100):
        return 1.0

    def limited(s1, s2, max_length):
        return min(max_length, abs(len(s1) - len(s2)))

    return module("tslearn.metrics", monkeypatch, cdist_dtw=cdist_dtw, cdist_gak=cdist_gak,
                  unnormalized_gak=unnormalized_gak, sigma_gak=sigma_gak, lcss=lcss, limited=limited)  # fmt: skip


def test_tslearn_gets_time_first_and_gives_the_matrix(tslearn):
    distance = from_tslearn(tslearn.cdist_dtw)
    assert distance.distance == "dtw"
    np.testing.assert_array_equal(TslearnDistance("cdist_dtw")(SERIES), distance(SERIES))
    np.testing.assert_allclose(distance(SERIES), DTW(local="sqeuclidean", root=True)(SERIES), rtol=1e-12)
    np.testing.assert_allclose(distance(SERIES, SERIES[1:2]), distance(SERIES)[:, 1:2])
    np.testing.assert_array_equal(from_tslearn("limited", max_length=2)(SERIES[:2], SERIES[2:3]), [[2], [2]])
    assert from_tslearn("dtw", sakoe_chiba_radius=1).get_params()["sakoe_chiba_radius"] == 1


def test_kernels_of_tslearn_are_kernels(tslearn):
    kernel = from_tslearn("gak", sigma=2.0)
    assert isinstance(kernel, TslearnKernel)
    sm.checks.check_kernel(kernel, SERIES)
    sm.checks.check_kernel(TslearnKernel("cdist_gak"), SERIES)
    np.testing.assert_array_equal(from_tslearn("unnormalized_gak").diag(SERIES), [25, 9, 49, 16, 9])
    np.testing.assert_array_equal(from_tslearn("unnormalized_gak")(SERIES[:1], SERIES[1:3]), [[15, 35]])
    model = KernelSVC(kernel).fit([np.zeros(3), np.zeros(4), np.zeros(9)], [0, 0, 1])
    assert model.predict([np.zeros(10)]) == [1]


@pytest.mark.parametrize("adapter", [from_aeon, from_tslearn])
def test_a_function_that_is_not_symmetric_is_called_for_all_pairs(adapter):
    distance = adapter(lambda x, y: float(max(0, x.size - y.size)), symmetric=False)
    np.testing.assert_array_equal(distance(SERIES), distance(SERIES, SERIES))
    assert (distance(SERIES) != distance(SERIES).T).any()


# ---- POT


@pytest.fixture
def ot(monkeypatch):
    def emd2(a, b, M, processes=1):
        np.testing.assert_allclose([a.sum(), b.sum()], 1)
        return float(a @ M @ b)  # a transport, though not the cheapest

    def sliced_wasserstein_distance(X_s, X_t, a=None, b=None, n_projections=50, p=2, seed=None):
        assert seed is not None
        return np.float64(abs(X_s.mean() - X_t.mean()) * seed)

    def gromov_wasserstein2(C1, C2, p=None, q=None):
        assert (C1 == C1.T).all()
        return abs(C1.mean() - C2.mean())

    def wasserstein_1d(u_values, v_values, u_weights=None):
        return wasserstein_distance(u_values, v_values)

    def emd(a, b, M):
        return M

    def rounded(a, b, M):
        return -1e-16 * M.max()

    def solve_sample(X_a, X_b):
        return type("Result", (), {"value": abs(len(X_a) - len(X_b))})()

    def dist(x1, x2):
        return x1

    return module("ot", monkeypatch, emd2=emd2, sliced_wasserstein_distance=sliced_wasserstein_distance, emd=emd,
                  gromov_wasserstein2=gromov_wasserstein2, wasserstein_1d=wasserstein_1d, solve_sample=solve_sample,
                  dist=dist, rounded=rounded)  # fmt: skip


def mean_distance(x, y):
    return np.mean([[np.linalg.norm(a - b) for b in y] for a in x])


def test_pot_of_sets_by_the_distances_of_their_points(ot):
    expected = np.array([[mean_distance(x, y) for y in SETS] for x in SETS])
    np.testing.assert_allclose(from_pot()(SETS), expected)
    np.testing.assert_allclose(from_pot("emd2", symmetric=False)(SETS, SETS[1:]), expected[:, 1:])
    np.testing.assert_allclose(from_pot("emd2", root=True)(SETS), np.sqrt(expected))
    squares = [[np.mean([[((a - b) ** 2).sum() for b in y] for a in x]) for y in SETS] for x in SETS]
    np.testing.assert_allclose(from_pot(metric="sqeuclidean")(SETS), squares)
    with sm.config(n_jobs=2):
        np.testing.assert_allclose(from_pot(mean_cost)(SETS), expected)


def mean_cost(a, b, M):
    return M.mean()


@pytest.mark.parametrize("scale", [1.0, 1e9])
def test_costs_of_pot_below_zero_by_rounding_are_zero(ot, scale):
    assert (from_pot("rounded")([scale * x for x in SETS]) == 0).all()


def test_pot_of_histograms_by_a_cost_of_bins(ot):
    H, cost = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 5.0]]), np.abs(np.subtract.outer(range(3), range(3)))
    np.testing.assert_allclose(from_pot(cost=cost)(H, H), [[0.5, 1.5], [1.5, 0.0]])


def test_pot_of_a_cost_that_is_not_symmetric_is_asked_for_all_pairs(ot):
    cost = [[0.0, 1.0], [5.0, 0.0]]  # uphill is dearer than downhill
    np.testing.assert_array_equal(from_pot(cost=cost)([[1.0, 0.0], [0.0, 1.0]]), cost)


def test_pot_functions_of_points_shapes_and_numbers(ot):
    means = np.array([x.mean() for x in SETS])
    gaps = np.abs(np.subtract.outer(means, means))
    np.testing.assert_allclose(from_pot("sliced_wasserstein_distance", seed=3)(SETS), 3 * gaps)
    assert (from_pot("sliced_wasserstein_distance")(SETS) == 0).all()  # seed 0
    shapes = [mean_distance(x, x) for x in SETS]
    np.testing.assert_allclose(from_pot("gromov_wasserstein2")(SETS), np.abs(np.subtract.outer(shapes, shapes)))
    line = [np.array([[0.0], [2.0]]), np.array([[1.0]])]
    np.testing.assert_allclose(from_pot(ot.wasserstein_1d)(line), [[0, 1], [1, 0]])
    np.testing.assert_array_equal(from_pot("solve_sample")(SETS[:1], SETS[1:]), [[3, 1, 2]])


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
def test_a_function_of_points_gets_the_metric(ot, metric):
    def emd2_1d(x_a, x_b, a=None, b=None, metric="sqeuclidean"):
        return (np.abs(np.sort(x_a) - np.sort(x_b)) ** (2 if metric == "sqeuclidean" else 1)).mean()

    emd2_1d.__module__ = "ot.lp"  # and not in ot itself
    line = [np.array([[0.0], [2.0]]), np.array([[5.0], [9.0]])]
    expected = {"euclidean": 6, "sqeuclidean": 37}[metric]  # 0 to 5 and 2 to 9
    assert from_pot(emd2_1d, metric=metric)(line)[0, 1] == expected
    if metric != "euclidean":
        with pytest.raises(ValueError, match="wasserstein_1d has no option metric; drop metric"):
            from_pot("wasserstein_1d", metric=metric)(line)


# ---- GraKeL


class Walks(BaseEstimator):
    """A kernel of the form of GraKeL's: products of the numbers of nodes of each label, and of edges."""

    def __init__(self, weight=1.0, normalize=False):
        self.weight = weight
        self.normalize = normalize

    def set_params(self, **params):
        super().set_params(**params)  # as GraKeL's, it returns None

    def _counts(self, graphs):
        assert not self.normalize
        rows = []
        for neighbours, labels, edges in graphs:
            assert set(neighbours) == set(labels)
            assert {(u, v) for u, ends in neighbours.items() for v in ends} == set(edges)
            values = [np.sum(label) for label in labels.values()]
            rows.append([values.count(0), values.count(1), values.count(2), self.weight * len(edges)])
        return np.array(rows, float)

    def fit(self, graphs):
        self.X_ = self._counts(graphs)
        return self

    def transform(self, graphs):
        self.Y_ = self._counts(graphs)
        return self.Y_ @ self.X_.T

    def fit_transform(self, graphs):
        return self.fit(graphs).X_ @ self.X_.T

    def diagonal(self):
        found = (self.X_**2).sum(axis=1)[:, None]
        return (found, (self.Y_**2).sum(axis=1)) if hasattr(self, "Y_") else found


def graphs():
    X = [nx.path_graph(4), nx.cycle_graph(3), nx.empty_graph(0), nx.empty_graph(2), nx.star_graph(3)]
    for graph in X:
        for v in graph:
            graph.nodes[v]["label"] = v % 3
    return X


def test_grakel_gets_all_nodes_and_arcs_and_gives_the_matrix():
    X = graphs()
    counts = np.array([[sum(v % 3 == c for v in g) for c in range(3)] + [2 * g.number_of_edges()] for g in X], float)
    kernel = from_grakel(Walks())
    np.testing.assert_array_equal(kernel(X), counts @ counts.T)
    np.testing.assert_array_equal(kernel(X, X[1:3]), counts @ counts[1:3].T)
    np.testing.assert_array_equal(kernel.diag(X), (counts**2).sum(axis=1))
    sm.checks.check_kernel(kernel, X)


@pytest.mark.parametrize("kernel", [from_grakel(Walks(normalize=True)), from_grakel(Walks(), normalize=True)])
def test_a_graph_without_nodes_is_like_itself_only(kernel):
    X = graphs()
    K = kernel(X)
    np.testing.assert_array_equal(K[2], [0, 0, 1, 0, 0])
    np.testing.assert_array_equal(K.diagonal(), 1)
    np.testing.assert_array_equal(kernel.diag(X), 1)
    np.testing.assert_allclose(kernel(X[:2], X[3:]), K[:2, 3:])
    assert (kernel(X[2:3]) == 1).all()
    assert self_values(kernel, X).tolist() == kernel(X, X).diagonal().tolist() == [1, 1, 0, 1, 1]


def test_attributes_go_to_grakel_if_wanted():
    graph = nx.path_graph(2)
    nx.set_node_attributes(graph, {0: [1.0, 0.0], 1: [0.5, 0.5]}, "attributes")
    assert from_grakel(Walks(), use="attributes")([graph]) == [[4 + 4]]
    assert from_grakel(Walks())([graph]) == [[4 + 4]]  # without labels all are 0


def test_grid_search_reaches_parameters_of_grakel():
    X, y = [nx.path_graph(n) for n in range(2, 10)], np.arange(8) // 4
    pipeline = make_pipeline(sm.Nystroem(from_grakel(Walks()), 3, random_state=0), LinearSVC())
    search = GridSearchCV(pipeline, {"nystroem__kernel__kernel__weight": [0.0, 2.0]}, cv=2).fit(X, y)
    assert search.best_estimator_[0].kernel.kernel.weight in (0.0, 2.0)
    assert clone(from_grakel(Walks(3.0))).kernel.weight == 3.0


# ---- what goes wrong


class Failing(Walks):
    def fit_transform(self, graphs):
        raise KeyError("label 7")


class Undefined(Walks):
    def fit_transform(self, graphs):
        return np.full((len(graphs), len(graphs)), np.nan)


WRONG = {
    "aeon: a name": (lambda: from_aeon("dwt")(SERIES), "aeon has no distance 'dwt'; it has dtw, minus"),
    "aeon: an option of a pair": (
        lambda: from_aeon("twe", window=0.2, windw=1)(SERIES), "aeon's twe failed for .*: TypeError: .*windw"
    ),
    "aeon: an option": (lambda: from_aeon("dtw", windw=1)(SERIES), "aeon's dtw failed: TypeError: .*windw"),
    "aeon: fails": (lambda: from_aeon()(SERIES, [np.ones((2, 2))] * 13), "aeon's dtw failed: RuntimeError: unlucky"),
    "aeon: negative": (lambda: from_aeon("minus")(SERIES), r"aeon's minus returned -.* for X\[0\] and Y?X?\[?1?.*>= 0"),
    "aeon: nested": (lambda: from_aeon().set_params(a__b=1), "has no parameter 'a__b'"),
    "tslearn: a name": (lambda: from_tslearn("none")(SERIES), "neither cdist_none nor none"),
    "tslearn: another function": (lambda: from_tslearn("sigma_gak")(SERIES), "sigma_gak is not a function of two"),
    "tslearn: a path": (lambda: from_tslearn("dtw_path")(SERIES), "has no distance 'dtw_path'"),
    "tslearn: a kernel": (lambda: TslearnDistance("gak")(SERIES), "has no distance 'gak'"),
    "tslearn: a distance": (lambda: TslearnKernel("dtw")(SERIES), "has no kernel 'dtw'"),
    "tslearn: a similarity": (lambda: from_tslearn("lcss")(SERIES), "use similia.distances.LCSS"),
    "POT: a name": (lambda: from_pot("emd3")(SETS), "POT has no function 'emd3'"),
    "POT: another function": (lambda: from_pot("dist")(SETS), r"dist\(x1, x2, ...\) is not a function of two sets"),
    "POT: a plan": (lambda: from_pot("emd")(SETS), r"emd returned shape \(4, 4\), expected a number; emd2"),
    "POT: a plan of one entry": (
        lambda: from_pot("emd")(SETS[1:2], SETS[1:2]), r"emd returned shape \(1, 1\), expected a number; emd2"
    ),
    "POT: an empty set": (lambda: from_pot()([SETS[0], np.zeros((0, 2))]), r"X\[1\] is an empty set"),
    "POT: no histogram": (lambda: from_pot(cost=np.eye(2))([[1.0, 1.0], [1.0, -1.0]]), r"X\[1\] is not a histogram"),
    "POT: other bins": (lambda: from_pot(cost=np.eye(2))([[1.0, 1.0, 0.0]]), "X has 3 bins, and cost has 2"),
    "POT: a cost": (lambda: from_pot(cost=np.ones((2, 3)))([[1.0, 1.0]]), "cost must be a square matrix"),
    "POT: a cost of points": (
        lambda: from_pot("solve_sample", cost=np.eye(2))([[1.0, 1.0]]), "cost is for histograms, which solve_sample",
    ),
    "POT: planes": (lambda: from_pot("wasserstein_1d")(SETS), "found points of dimension 2, but this"),
    "GraKeL: use": (lambda: from_grakel(Walks(), use="names")(graphs()), "use must be 'labels' or 'attributes'"),
    "GraKeL: attributes": (lambda: from_grakel(Walks(), use="attributes")(graphs()), "no node attributes"),
    "GraKeL: fails": (lambda: from_grakel(Failing())(graphs()), "GraKeL's Failing failed: KeyError: 'label 7'"),
    "GraKeL: NaN": (lambda: from_grakel(Undefined())(graphs()[2:]), "returned nan for graphs 1 and 1"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_goes_wrong_is_told_in_one_sentence(case, aeon, tslearn, ot):
    call, sentence = WRONG[case]
    with pytest.raises(ValueError, match=sentence):
        call()


def test_a_class_or_anything_else_is_no_kernel_of_grakel():
    with pytest.raises(TypeError, match=r"is the class Walks.*write Walks\(...\)"):
        from_grakel(Walks)(graphs())
    with pytest.raises(TypeError, match="takes a kernel of GraKeL"):
        from_grakel(3)(graphs())


@pytest.mark.parametrize(
    ("package", "call"),
    [
        ("aeon", lambda: from_aeon()(SERIES)),
        ("tslearn", lambda: from_tslearn()(SERIES)),
        ("tslearn", lambda: from_tslearn("gak")(SERIES)),
        ("ot", lambda: from_pot()(SETS)),
    ],
)
def test_a_library_that_is_not_there_is_named(package, call, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModuleNotFoundError, match="is not installed: pip install"):
        call()


SAVED = [
    from_aeon("dtw", scale=2.0), from_tslearn("dtw", sakoe_chiba_radius=2), from_tslearn("gak", sigma=2.0),
    from_pot("sinkhorn2", reg=0.1, metric="cityblock"), KNeighborsClassifier(from_aeon("dtw", scale=2.0)),
]  # fmt: skip


@pytest.mark.parametrize("model", SAVED, ids=lambda model: type(model).__name__)
def test_adapters_that_hold_names_can_be_saved(model, tmp_path):
    loaded = sm.load(sm.save(model, tmp_path / "model.similia"))
    assert type(loaded) is type(model)
    assert repr(loaded) == repr(model)


def test_a_kernel_of_grakel_cannot_be_saved(tmp_path):
    with pytest.raises(ValueError, match="may not contain"):
        sm.save(from_grakel(Walks()), tmp_path / "model.similia")


# ---- the libraries themselves


@pytest.mark.ecosystem
@pytest.mark.filterwarnings("ignore")  # of numba, at aeon's loops
def test_aeon_itself():
    distances = pytest.importorskip("aeon.distances", reason="aeon is not installed")
    np.testing.assert_allclose(from_aeon("dtw")(SERIES), DTW(local="sqeuclidean")(SERIES))
    np.testing.assert_allclose(from_aeon("dtw", window=0.4)(SERIES[:1], SERIES[:1]), [[0]], atol=1e-12)
    ours, x = sm.distances.MSM(c=0.5), [s[:, 0] for s in SERIES]
    np.testing.assert_allclose(from_aeon(distances.msm_distance, c=0.5)(x), ours(x))
    for name in ("twe", "erp", "edr", "shape_dtw", "wdtw", "adtw", "ddtw"):
        sm.checks.check_distance(from_aeon(name), SERIES)
    equal = [s[:3] for s in SERIES]
    sm.checks.check_distance(AeonDistance("euclidean"), equal)
    for options in ({"window": 0.2}, {"itakura_max_slope": 0.5}):
        for name in ("twe", "dtw"):
            distance, one = from_aeon(name, **options), getattr(distances, f"{name}_distance")
            expected = [[one(x.T.copy(), y.T.copy(), **options) for y in SERIES] for x in SERIES]
            np.testing.assert_allclose(distance(SERIES), expected)


@pytest.mark.ecosystem
@pytest.mark.filterwarnings("ignore")
def test_tslearn_itself():
    metrics = pytest.importorskip("tslearn.metrics", reason="tslearn is not installed")
    np.testing.assert_allclose(from_tslearn(metrics.cdist_dtw)(SERIES), DTW(local="sqeuclidean", root=True)(SERIES))
    for name in ("frechet", "ctw", "soft_dtw_normalized"):
        sm.checks.check_distance(from_tslearn(name), SERIES)
    sm.checks.check_kernel(from_tslearn("gak", sigma=3.0), SERIES)
    sm.checks.check_kernel(from_tslearn("unnormalized_gak", sigma=3.0), SERIES)
    with pytest.raises(ValueError, match="soft_dtw returned -"):
        from_tslearn("soft_dtw")(SERIES)


@pytest.mark.ecosystem
@pytest.mark.filterwarnings("ignore")
def test_pot_itself():
    ot = pytest.importorskip("ot", reason="POT is not installed")
    lines = [x[:, :1] for x in SETS]
    expected = [[naive.wasserstein(x[:, 0], y[:, 0], 1) for y in lines] for x in lines]
    np.testing.assert_allclose(from_pot(ot.emd2)(lines), expected, atol=1e-12)
    H, bins = RANDOM.random((4, 5)), np.arange(5.0)
    cost = np.abs(bins[:, None] - bins)
    expected = [[wasserstein_distance(bins, bins, a, b) for b in H] for a in H]
    np.testing.assert_allclose(from_pot(cost=cost)(H), expected, atol=1e-12)
    for name in ("emd2", "sliced_wasserstein_distance", "gromov_wasserstein2"):
        sm.checks.check_distance(from_pot(name), SETS)
    assert from_pot("sinkhorn2", reg=0.5)(SETS).diagonal().max() > 0.1  # no 0 to itself, as documented


@pytest.mark.ecosystem
@pytest.mark.filterwarnings("ignore")
def test_grakel_itself():
    grakel = pytest.importorskip("grakel", reason="GraKeL is not installed")
    X = graphs()
    for ours, theirs in (
        (sm.kernels.VertexHistogram, grakel.VertexHistogram),
        (sm.kernels.WeisfeilerLehman, grakel.WeisfeilerLehman),
        (sm.kernels.ShortestPath, grakel.ShortestPath),
    ):
        for normalize in (False, True):
            kernel = from_grakel(theirs(normalize=normalize))
            np.testing.assert_allclose(kernel(X), ours(normalize=normalize)(X))
            np.testing.assert_allclose(kernel(X, X[:2]), ours(normalize=normalize)(X, X[:2]))
            np.testing.assert_allclose(kernel.diag(X), ours(normalize=normalize).diag(X))
    sm.checks.check_kernel(from_grakel(grakel.PyramidMatch()), X)
