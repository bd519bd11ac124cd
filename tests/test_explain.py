"""Explanations: parts and residual are the value, names and places are what they say, swapping and renumbering change
nothing else."""

from __future__ import annotations

import itertools
from collections import Counter
from html.parser import HTMLParser

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import similia as sm
from similia import distances, kernels
from similia.explanations import Explanation, explain
from similia.objects import GraphBatch

ALL = 10**9
quick = settings(max_examples=8, deadline=None)
words = st.text("ACGT", max_size=14)


def by_name(explanation: Explanation) -> dict[str, float]:
    """Return the parts as a dict; parts of one name are added."""
    total: Counter = Counter()
    for part in explanation.parts:
        total[part.name] += part.contribution
    return dict(total)


def check_sums(explanation: Explanation, exact: bool = True, rounding: float = 1e-9) -> None:
    """Parts and residual are the value, and so are what is listed, omitted and unexplained."""
    e = explanation
    listed = sum(part.contribution for part in e.parts)
    scale = max(1.0, abs(e.value), *(abs(part.contribution) for part in e.parts))
    assert listed + e.residual == pytest.approx(e.value, abs=1e-9 * scale)
    assert e.omitted + e.unexplained == pytest.approx(e.residual, abs=1e-9 * scale)
    if exact:
        assert abs(e.unexplained) <= rounding * scale


# --- strings ------------------------------------------------------------------------------------

STRING_KERNELS = [
    kernels.Spectrum(k=2),
    kernels.Spectrum(k=3, normalize=True),
    kernels.GappyKmers(k=2, gaps=1),
    kernels.GappyKmers(k=4, gaps=2, merge=False, normalize=True),
    kernels.GappyKmers(k=3, gaps=2, kind="window"),
    kernels.GappyKmers(k=2, gaps=0, kind="window", normalize=True),
    kernels.Mismatch(k=3, mismatches=1),
    kernels.Mismatch(k=2, mismatches=0, alphabet="ACG", normalize=True),
    kernels.WeightedDegree(degree=3),
    kernels.WeightedDegree(degree=2, normalize=True),
    kernels.Sum([kernels.Spectrum(k=1), kernels.WeightedDegree(degree=2)], weights=[0.5, 2]),
    kernels.Normalized(kernels.Sum([kernels.Spectrum(k=2, normalize=True), kernels.GappyKmers(k=2)])),
    kernels.Product([kernels.Spectrum(k=1), kernels.Spectrum(k=2, normalize=True), kernels.Mismatch(k=2)]),
]


@pytest.mark.parametrize("kernel", STRING_KERNELS, ids=repr)
@given(x=words, y=words)
@quick
def test_parts_of_string_kernels(kernel, x, y):
    found = explain(kernel, x, y, top=ALL)
    assert found.value == pytest.approx(kernel([x], [y])[0, 0])
    check_sums(found)
    assert found.shares_x.sum() == pytest.approx(found.value, abs=1e-9)
    assert found.shares_y.sum() == pytest.approx(found.value, abs=1e-9)
    back = explain(kernel, y, x, top=ALL)
    assert by_name(back) == pytest.approx(by_name(found))
    places = {part.name: (part.in_x.tolist(), part.in_y.tolist()) for part in found.parts}
    assert {part.name: (part.in_y.tolist(), part.in_x.tolist()) for part in back.parts} == places


def test_a_string_without_features_is_alike_by_nothing():
    for kernel in STRING_KERNELS:
        found = explain(kernel, "", "ACGT")
        assert found.value == 0
        assert found.parts == []
        assert found.residual == 0


@given(x=words, y=words)
@quick
def test_kmers_are_those_counted_by_hand(x, y):
    def kmers(s):
        return Counter(s[i : i + 2] for i in range(len(s) - 1))

    a, b = kmers(x), kmers(y)
    found = explain(kernels.Spectrum(k=2), x, y, top=ALL)
    assert by_name(found) == {word: a[word] * b[word] for word in a if word in b}
    for part in found.parts:
        for text, places in ((x, part.in_x), (y, part.in_y)):
            starts = [i for i in range(len(text) - 1) if text[i : i + 2] == part.name]
            assert places.tolist() == sorted({i + j for i in starts for j in range(2)})


@given(x=words, y=words)
@quick
def test_gappy_kmers_are_those_counted_by_hand(x, y):
    def halves(s):
        return Counter(s[i] + s[i + 1 + g] for g in range(3) for i in range(len(s) - 1 - g))

    def with_gaps(s):
        return Counter(s[i] + "." * g + s[i + 1 + g] for g in range(3) for i in range(len(s) - 1 - g))

    a, b = halves(x), halves(y)
    found = explain(kernels.GappyKmers(k=2, gaps=2), x, y, top=ALL)
    assert by_name(found) == {f"{w[0]}.{{0,2}}{w[1]}": a[w] * b[w] for w in a if w in b}
    a, b = with_gaps(x), with_gaps(y)
    found = explain(kernels.GappyKmers(k=2, gaps=2, merge=False), x, y, top=ALL)
    assert by_name(found) == {w: a[w] * b[w] for w in a if w in b}


@given(x=words, y=words)
@quick
def test_windows_and_mismatches_are_those_counted_by_hand(x, y):
    def windows(s):
        seen = Counter()
        for i in range(len(s) - 2):
            seen.update({"".join(pair) for pair in itertools.combinations(s[i : i + 3], 2)})
        return seen

    def near(s):
        return Counter(
            word
            for i in range(len(s) - 1)
            for word in map("".join, itertools.product("ACGT", repeat=2))
            if sum(p != q for p, q in zip(word, s[i : i + 2], strict=True)) <= 1
        )

    for kernel, count, suffix in (
        (kernels.GappyKmers(k=2, gaps=1, kind="window"), windows, " within 3"),
        (kernels.Mismatch(k=2, mismatches=1), near, " ±1"),
    ):
        a, b = count(x), count(y)
        found = explain(kernel, x, y, top=ALL)
        assert by_name(found) == {word + suffix: a[word] * b[word] for word in a if word in b}


def test_names_show_where_the_gap_is():
    for kernel, names in (
        (kernels.GappyKmers(k=4, gaps=1), {"AC.?GT", "CG.?TA", "AC.?TA"}),
        (kernels.GappyKmers(k=4, gaps=1, merge=False), {"ACGT", "CGTA", "AC.TA"}),
        (kernels.GappyKmers(k=4, gaps=0), {"ACGT", "CGTA"}),
    ):
        assert set(by_name(explain(kernel, "ACGTA", "ACGTA"))) == names


def test_weighted_degree_is_told_by_runs_of_equal_letters():
    found = explain(kernels.WeightedDegree(degree=2), "ACGTT", "ACCTTG")
    assert by_name(found) == {"AC at 0": 5.0, "TT at 3": 5.0}
    assert found.parts[0].in_x.tolist() == found.parts[0].in_y.tolist() == [0, 1]


def test_a_letter_outside_the_alphabet_shifts_no_place():
    found = explain(kernels.Mismatch(k=2, mismatches=0), "NACNGT", "AC")
    assert [(part.name, part.in_x.tolist()) for part in found.parts] == [("AC", [1, 2])]


# --- graphs -------------------------------------------------------------------------------------


@st.composite
def graphs(draw, directed=False):
    n = draw(st.integers(1, 6))
    pairs = [(u, v) for u in range(n) for v in range(n) if (u != v if directed else u <= v)]
    chosen = draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs)))
    edges = list(itertools.compress(pairs, chosen))
    graph = (nx.DiGraph if directed else nx.Graph)()
    for v in range(n):
        graph.add_node(v, label=draw(st.integers(1, 2)))
    for u, v in edges:
        graph.add_edge(u, v, label=draw(st.integers(1, 2)))
    return graph


def marked(*given):
    """Return batches in one form: edge labels must be in all graphs or in none."""
    return [sm.objects.as_graphs([g], edge_label="label" if g.number_of_edges() else None) for g in given]


GRAPH_KERNELS = [
    kernels.VertexHistogram(),
    kernels.EdgeHistogram(edge_labels=False),
    kernels.EdgeHistogram(normalize=True),
    kernels.WeisfeilerLehman(n_iter=2, edge_labels=False),
    kernels.WeisfeilerLehman(n_iter=3, normalize=True),
    kernels.ShortestPath(),
    kernels.ShortestPath(with_labels=False, normalize=True),
    kernels.Graphlet(size=3),
    kernels.Graphlet(size=4, n_samples=20, normalize=True),
    kernels.Propagation(n_iter=2),
    kernels.Propagation(n_iter=1, metric="hellinger", normalize=True),
    kernels.Sum([kernels.WeisfeilerLehman(n_iter=1), kernels.ShortestPath()], weights=[2, 0.5]),
]


@pytest.mark.parametrize("kernel", GRAPH_KERNELS, ids=repr)
@given(x=graphs(), y=graphs())
@quick
def test_parts_of_graph_kernels(kernel, x, y):
    x, y = marked(x, y)
    found = explain(kernel, x, y, top=ALL)
    assert found.value == pytest.approx(kernel(x, y)[0, 0])
    check_sums(found)
    back = explain(kernel, y, x, top=ALL)
    assert by_name(back) == pytest.approx(by_name(found))


@pytest.mark.parametrize("kernel", [k for k in GRAPH_KERNELS if getattr(k, "n_samples", None) is None], ids=repr)
@given(x=graphs(), y=graphs(), data=st.data())
@quick
def test_renumbered_nodes_have_renumbered_places(kernel, x, y, data):
    order = data.draw(st.permutations(range(x.number_of_nodes())))
    moved = nx.relabel_nodes(x, dict(enumerate(order)))
    moved_sorted = nx.Graph()
    moved_sorted.add_nodes_from((v, moved.nodes[v]) for v in sorted(moved))
    moved_sorted.add_edges_from(moved.edges(data=True))
    a, b, c = marked(x, moved_sorted, y)
    before, after = explain(kernel, a, c, top=ALL), explain(kernel, b, c, top=ALL)
    assert sorted(
        (p.name, round(p.contribution, 9), sorted(order[v] for v in p.in_x), p.in_y.tolist()) for p in before.parts
    ) == sorted((p.name, round(p.contribution, 9), p.in_x.tolist(), p.in_y.tolist()) for p in after.parts)
    assert after.shares_x[list(order)] == pytest.approx(before.shares_x)


@given(x=graphs(), y=graphs())
@quick
def test_trees_are_those_refined_by_hand(x, y):
    def trees(graph):
        names = {v: str(data["label"]) for v, data in graph.nodes(data=True)}
        labels, seen = dict(names), Counter(names.values())
        for _ in range(2):
            grown = {}
            for v in graph:
                around = Counter(names[u] for u in graph[v])
                inside = ", ".join(t if n == 1 else f"{t}×{n}" for t, n in sorted(around.items()))
                grown[v] = f"{labels[v]}({inside})" if inside else labels[v]
            names = grown
            seen.update(names.values())
        return seen

    a, b = trees(x), trees(y)
    # A node without neighbours has one name in all rounds; here its rounds are counted together, there apart.
    alone = {name for name in a if "(" not in name}
    found = explain(kernels.WeisfeilerLehman(n_iter=2, edge_labels=False), *marked(x, y), top=ALL)
    expected = {name: a[name] * b[name] for name in a if name in b and name not in alone}
    shown = {name: value for name, value in by_name(found).items() if name not in alone and len(name) <= 72}
    assert shown == {name: value for name, value in expected.items() if len(name) <= 72}


@given(x=graphs(), y=graphs())
@quick
def test_paths_are_those_of_networkx(x, y):
    def paths(graph):
        return Counter(
            f"{graph.nodes[min(u, v)]['label']}"
            and "..".join(sorted(str(graph.nodes[w]["label"]) for w in (u, v))) + f", {d} apart"
            for u, reached in nx.all_pairs_shortest_path_length(graph)
            for v, d in reached.items()
            if d
        )

    def ordered(graph):
        return Counter(
            (graph.nodes[u]["label"], graph.nodes[v]["label"], d)
            for u, reached in nx.all_pairs_shortest_path_length(graph)
            for v, d in reached.items()
            if d
        )

    a, b = ordered(x), ordered(y)
    expected = Counter()
    for (p, q, d), n in a.items():
        expected["..".join(sorted((str(p), str(q)))) + f", {d} apart"] += n * b[p, q, d]
    found = explain(kernels.ShortestPath(), *marked(x, y), top=ALL)
    assert by_name(found) == {name: value for name, value in expected.items() if value}
    assert set(by_name(found)) <= set(paths(x))


@given(x=graphs(directed=True), y=graphs())
@quick
def test_directed_paths_keep_their_direction(x, y):
    found = explain(kernels.ShortestPath(), *marked(x, y), top=ALL)
    check_sums(found)
    one_way = any(not x.has_edge(v, u) for u, v in x.edges)
    assert all(("->" in part.name) == one_way for part in found.parts)


def test_a_path_is_placed_at_both_ends():
    x = nx.DiGraph([(0, 1), (1, 2)])
    nx.set_node_attributes(x, {0: 5, 1: 6, 2: 7}, "label")
    found = explain(kernels.ShortestPath(), x, x)
    assert {p.name: (p.in_x.tolist(), p.in_y.tolist()) for p in found.parts} == {
        "5->6, 1 apart": ([0, 1], [0, 1]),
        "6->7, 1 apart": ([1, 2], [1, 2]),
        "5->7, 2 apart": ([0, 2], [0, 2]),
    }


def test_triangles_are_found_where_they_are():
    x = nx.Graph([(0, 1), (1, 2), (2, 0), (2, 3)])
    found = explain(kernels.Graphlet(size=3), x, nx.complete_graph(3))
    assert [(p.name, p.in_x.tolist(), p.in_y.tolist()) for p in found.parts] == [("triangle", [0, 1, 2], [0, 1, 2])]


def test_labels_have_the_names_that_the_user_or_the_graph_gives_them():
    x = nx.Graph([(0, 1)])
    nx.set_node_attributes(x, {0: "carbon", 1: "oxygen"}, "label")
    found = explain(kernels.WeisfeilerLehman(n_iter=1), x, x)
    assert set(by_name(found)) == {"carbon", "oxygen", "carbon(oxygen)", "oxygen(carbon)"}
    numbered = ([[0, 1], [1, 0]], 2, {"node_labels": [0, 8]})
    found = explain(kernels.EdgeHistogram(), numbered, numbered, label_names={0: "C"})
    assert set(by_name(found)) == {"8-C"}


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
    ) or isinstance(distance, distances.SlicedWasserstein)


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


# --- predictions --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def promoters():
    X, y = sm.datasets.load_promoters(return_X_y=True)
    return list(X), np.asarray(y)


def linear_models():
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_selection import SelectKBest, chi2
    from sklearn.linear_model import LogisticRegression, RidgeClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, RobustScaler, StandardScaler
    from sklearn.svm import SVC, LinearSVC

    gappy = kernels.GappyKmers(k=4, gaps=1)
    both = kernels.Normalized(
        kernels.Sum([kernels.WeightedDegree(degree=3, normalize=True), gappy], weights=[3.0, 0.1])
    )
    few = 2**10 - 1  # collisions, and halves of different size
    nystroem = sm.Nystroem(both, n_components=30, random_state=0)
    rbf = kernels.DistanceRBF(distances.Levenshtein(), 0.001)
    return [
        make_pipeline(sm.KernelFeatures(gappy, few), LinearSVC()),
        make_pipeline(sm.KernelFeatures(both, few), MaxAbsScaler(), LogisticRegression()),
        make_pipeline(sm.KernelFeatures(gappy, few), Normalizer(), RidgeClassifier()),
        make_pipeline(
            sm.KernelFeatures(gappy, few), SelectKBest(chi2, k=50), StandardScaler(with_mean=False), LinearSVC()
        ),
        make_pipeline(sm.KernelFeatures(gappy, few), TruncatedSVD(10, random_state=0), SVC(kernel="linear")),
        make_pipeline(nystroem, StandardScaler(), LogisticRegression()),
        make_pipeline(nystroem, RobustScaler(), MinMaxScaler(), LinearSVC()),
        make_pipeline(sm.Nystroem(rbf, n_components=20, random_state=0), "passthrough", LinearSVC()),
        make_pipeline(sm.D2KE(distances.Levenshtein(), 16, random_state=0), StandardScaler(), LinearSVC()),
    ]


@pytest.mark.parametrize("which", range(len(linear_models())))
def test_parts_are_the_decision(promoters, which):
    X, y = promoters
    model = linear_models()[which].fit(X, y)
    for x in X[:3] + X[-3:]:
        found = explain(model, x, top=7)
        score = model.decision_function([x])[0]
        assert found.value == pytest.approx(abs(score))
        assert found.title.endswith(f"for {model.predict([x])[0]} against {'+' if score > 0 else '-'}")
        assert len(found.parts) <= 8
        assert abs(found.unexplained) < 1e-5 * max(1, abs(found.value))
        assert sum(p.contribution for p in found.parts) + found.residual == pytest.approx(found.value)


def test_nystroem_weights_pulled_back_are_those_of_the_features(promoters):
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    X, _y = promoters
    X, target = X[:40], np.array([len(x.replace("a", "")) for x in X[:40]], dtype=float)
    kernel = kernels.Spectrum(k=3)
    direct = make_pipeline(sm.KernelFeatures(kernel), Ridge(alpha=10, fit_intercept=False, tol=1e-12)).fit(X, target)
    pulled = make_pipeline(sm.Nystroem(kernel, n_components=40), Ridge(alpha=10, fit_intercept=False)).fit(X, target)
    a, b = (explain(model, X[3], top=ALL) for model in (direct, pulled))
    assert a.kind == b.kind == "prediction"
    assert by_name(a) == pytest.approx(by_name(b), abs=1e-6)  # ridge sees the span of the training objects only


def test_the_best_class_is_explained_against_the_second():
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVC

    rng = np.random.default_rng(0)
    X = ["".join(rng.choice(list("ACGT"), 20, p=p)) for p in np.eye(4) * 0.6 + 0.1 for _ in range(12)]
    y = np.repeat(["a", "c", "g", "t"], 12)
    features = sm.KernelFeatures(kernels.Spectrum(k=1), 2**12)
    model = make_pipeline(features, LogisticRegression()).fit(X, y)
    machine = make_pipeline(features, SVC(kernel="linear", decision_function_shape="ovo")).fit(X, y)
    dual = sm.learn.kernel_svc.KernelSVC(kernels.Spectrum(k=1)).fit(X, y)
    pairs = list(itertools.combinations("acgt", 2))
    for x in X[::5]:
        found = explain(model, x)
        scores = np.sort(model.decision_function([x])[0])
        assert found.value == pytest.approx(scores[-1] - scores[-2])
        check_sums(found)
        assert set(by_name(found)) <= {"A", "C", "G", "T", "intercept"}
        for what in (machine, dual):
            found = explain(what, x)
            check_sums(found)
            winner, other = found.title.split(", for ")[1].split(" against ")
            if what is machine:
                place = pairs.index(tuple(sorted((winner, other))))
                score = machine.decision_function([x])[0][place]
                assert found.value == pytest.approx(score if winner < other else -score)


def test_a_machine_on_objects_is_explained_by_features_or_support_vectors(promoters):
    X, y = promoters
    rbf = kernels.DistanceRBF(distances.Levenshtein(), 0.001)
    for kernel, name in ((kernels.Spectrum(k=3, normalize=True), "aaa"), (rbf, "like support")):
        model = sm.learn.kernel_svc.KernelSVC(kernel, C=10.0).fit(X, y)
        found = explain(model, X[0])
        assert found.value == pytest.approx(abs(model.decision_function(X[:1])[0]))
        check_sums(found, rounding=1e-6)
        assert any(name in part.name for part in explain(model, X[0], top=ALL).parts)


def test_bits_are_explained_by_their_best_linear_prediction(promoters):
    X, y = promoters
    model = sm.recipes.nyshd(kernels.GappyKmers(k=4, gaps=1), n_landmarks=60, random_state=0).fit(X, y)
    values, surrogates = [], []
    for x in X[::4]:
        found = explain(model, x, top=5)
        check_sums(found, exact=False)
        assert found.value == pytest.approx(abs(model.decision_function([x])[0]))
        values.append(found.value)
        surrogates.append(found.value - found.unexplained)
    assert np.corrcoef(values, surrogates)[0, 1] > 0.75
    assert np.mean(np.array(surrogates) > 0) > 0.9  # for the predicted class, as the decision
    assert "best linear prediction" in found.note


def test_vectors_are_explained_by_their_difference_from_the_mean():
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3)) + 5
    y = X @ [1.0, 0.0, -2.0]
    model = make_pipeline(StandardScaler(), Ridge(alpha=1e-9)).fit(X, y)
    found = explain(model, X[0])
    parts = by_name(found)
    assert parts.pop("intercept") == pytest.approx(y.mean())
    assert sorted(parts.values()) == pytest.approx(
        sorted([X[0, 0] - X[:, 0].mean(), -2 * (X[0, 2] - X[:, 2].mean()), 0.0]), abs=1e-6
    )
    check_sums(found)
    check_sums(explain(Ridge().fit(X, y), X[0]))


def test_graphs_are_explained_by_trees(data_folder):
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    G, y = sm.objects.read_tudataset(data_folder / "graphs" / "MUTAG.zip")
    kernel = kernels.WeisfeilerLehman(n_iter=2, normalize=True)
    for first in (sm.KernelFeatures(kernel), sm.Nystroem(kernel, n_components=50, random_state=0)):
        model = make_pipeline(first, LinearSVC()).fit(G, y)
        found = explain(model, G[0], label_names=dict(enumerate(["C", "N", "O", "F", "I", "Cl", "Br"])))
        assert found.value == pytest.approx(abs(model.decision_function(G[:1])[0]))
        check_sums(found)
        assert any("C([0]C" in part.name for part in found.parts)
        assert found.shares_x.sum() + by_name(found)["intercept"] == pytest.approx(found.value)


# --- what is shown ------------------------------------------------------------------------------

HOSTILE = ["<script>alert(1)</script>&'\"", "\x1b[31mred\x1b[0m\x00\x07", "\ud800x\udfff", "$\\frac{1}{2}$", "\n\r\t"]


class Tags(HTMLParser):
    """Check that tags are closed in order, and collect them."""

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], set()

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        assert not any(name.startswith("on") for name, _ in attrs)
        if tag != "br":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def check_shown(found: Explanation, draw: bool = True) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    text, html = found.to_text(), found.to_html()
    assert all(c.isprintable() or c == "\n" for c in text)
    tags = Tags()
    tags.feed(html)
    assert tags.open == []
    assert "script" not in tags.seen
    html.encode(), text.encode()
    assert html == found._repr_html_()
    assert "src=" not in html
    assert "http" not in html
    ax = found.plot()
    if draw:
        ax.figure.canvas.draw()
    assert found.plot(ax) is ax
    plt.close("all")
    assert "Explanation" in repr(found)


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_hostile_text_is_escaped(text):
    check_shown(explain(kernels.Spectrum(k=2), text, text))
    check_shown(explain(distances.Levenshtein(), text, "plain"), draw=False)
    graph = nx.Graph([(0, 1)])
    nx.set_node_attributes(graph, {0: text, 1: "b"}, "label")
    check_shown(explain(kernels.WeisfeilerLehman(n_iter=1), graph, graph), draw="$" in text)


def test_each_kind_is_shown():
    rng = np.random.default_rng(0)
    check_shown(explain(kernels.Spectrum(k=2), b"GATTACA", b"ATTA"))
    check_shown(explain(kernels.Spectrum(k=2), "", "ATTA"))
    check_shown(explain(kernels.Spectrum(k=2), "GATTACA" * 500, "ATTA" * 20))
    check_shown(explain(distances.DTW(), rng.normal(size=20), rng.normal(size=30)))
    check_shown(explain(distances.TWE(), rng.normal(size=(20, 2)), np.zeros((3, 2))))
    check_shown(explain(kernels.GlobalAlignment(), rng.normal(size=9), rng.normal(size=8)))
    check_shown(explain(distances.Chamfer(), rng.normal(size=(5, 2)), rng.normal(size=(4, 2))))
    check_shown(explain(distances.Chamfer(), rng.normal(size=(5, 1)), np.empty((0, 1))))
    check_shown(explain(kernels.Graphlet(size=3), nx.empty_graph(1), nx.cycle_graph(4, nx.DiGraph)))
    check_shown(explain(kernels.ShortestPath(), nx.path_graph(500), nx.star_graph(5)))
    check_shown(explain(kernels.Cosine(), np.array([1.0, 2.0]), np.array([1.0, 1.0])))


def test_the_text_marks_the_letters_of_each_part():
    lines = explain(kernels.Spectrum(k=3), "GATTACA", "ATTACC").to_text().splitlines()
    assert lines[0] == "similarity of x and y by Spectrum(): 3"
    assert lines[-5:-3] == ["x     0  GATTACA", "          11123"]


def test_top_lists_the_largest_parts_and_adds_up_the_others():
    x, y = "GATTACAGATTACA", "GATTGATTCC"
    everything, few = explain(kernels.Spectrum(k=2), x, y, top=ALL), explain(kernels.Spectrum(k=2), x, y, top=2)
    assert [p.name for p in few.parts] == [p.name for p in everything.parts[:2]]
    assert few.residual == few.omitted == sum(p.contribution for p in everything.parts[2:])
    assert few.n_omitted == len(everything.parts) - 2
    assert [p.contribution for p in everything.parts] == sorted(
        [p.contribution for p in everything.parts], reverse=True
    )


# --- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "objects", "said"),
    [
        (kernels.Spectrum(), (nx.path_graph(3), "ACGT"), "x is no object that Spectrum compares"),
        (kernels.Spectrum(), ("ACGT", 3.0), "y is no object that Spectrum compares"),
        (kernels.WeisfeilerLehman(), (nx.path_graph(3), "ACGT"), "y is no object that WeisfeilerLehman compares"),
        (distances.DTW(), ([1.0, 2.0], "ACGT"), "y is no object that DTW compares"),
        (kernels.Spectrum, ("A", "C"), "is the class Spectrum"),
        (kernels.Spectrum(), ("A",), "compares two objects, got one"),
        (kernels.HypersphericalHeat(), (np.ones(3), np.ones(3)), "has no parts to name; what can be explained"),
        (distances.JaroWinkler(), ("A", "C"), "JaroWinkler has no parts to name; what can be explained"),
        (distances.MMD(), (nx.path_graph(9), nx.path_graph(8)), "with kernel='match'"),
        (sm.pairwise(lambda x, y: 1.0), ("A", "C"), "has no parts to name"),
        (sm.KernelFeatures(kernels.Spectrum()), ("A",), "no fitted model that predicts"),
        (kernels.NegativeDistance(distances.Levenshtein(), origin=""), ("A", "C"), "adds three distances"),
    ],
)
def test_what_has_no_parts_is_one_sentence(what, objects, said):
    with pytest.raises((TypeError, ValueError), match=said.replace("(", "\\(")) as error:
        explain(what, *objects)
    assert "\n" not in str(error.value)


def test_models_that_decide_otherwise_are_one_sentence(promoters):
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PowerTransformer
    from sklearn.svm import SVC, LinearSVC

    X, y = promoters
    nystroem = sm.Nystroem(kernels.Spectrum(), n_components=5, random_state=0)
    for learner, said in ((KNeighborsClassifier(), "no coefficients"), (SVC(), "no coefficients")):
        with pytest.raises(TypeError, match=said):
            explain(make_pipeline(nystroem, learner).fit(X, y), X[0])
    with pytest.raises(TypeError, match="PowerTransformer is a step that is not affine"):
        explain(make_pipeline(nystroem, PowerTransformer(), LinearSVC()).fit(X, y), X[0])
    with pytest.raises(TypeError, match="not fitted"):
        explain(make_pipeline(nystroem, LinearSVC()), X[0])


def test_an_alignment_that_does_not_fit_is_refused():
    with sm.config(max_memory=10_000), pytest.raises(ValueError, match="max_memory"):
        explain(distances.DTW(), np.zeros(100), np.zeros(100))


def test_a_batch_of_one_is_an_object_and_of_two_is_not():
    batch = sm.objects.as_strings(["GAT", "ATT"])
    assert explain(kernels.Spectrum(k=2), batch[:1], "GA").value == 1
    with pytest.raises(ValueError, match=r"x is a batch of 2 objects, expected one object; write x\[0\]"):
        explain(kernels.Spectrum(k=2), batch, "GA")


def test_objects_are_not_changed():
    arcs = np.array([[0, 1], [1, 0]])
    graph = GraphBatch.from_arrays([0, 2], arcs, node_labels=[1, 2])
    before = [graph.indices.copy(), graph.node_labels.copy()]
    explain(kernels.WeisfeilerLehman(), graph, graph).to_html()
    assert all(np.array_equal(a, b) for a, b in zip(before, [graph.indices, graph.node_labels], strict=True))


# --- the command --------------------------------------------------------------------------------


def test_the_command_explains_pairs_and_predictions(promoters, tmp_path, capsys):
    import json

    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    from similia.cli.explain import explain_pair, explain_prediction

    X, y = promoters
    model = make_pipeline(sm.KernelFeatures(kernels.Spectrum(k=3)), LinearSVC()).fit(X, y)
    path = sm.save(model, tmp_path / "model.similia")
    data = tmp_path / "data.csv"
    data.write_text("text\n" + "\n".join(X[:4]) + "\n")
    explain_pair(path, str(data), 0, 2, as_json=True)
    shown = json.loads(capsys.readouterr().out)
    assert shown["value"] == explain(kernels.Spectrum(k=3), X[0], X[2]).value
    explain_prediction(path, str(data), 1, top=3)
    assert "decision of KernelFeatures and LinearSVC" in capsys.readouterr().out
    explain_prediction(path, str(data), 1, output=tmp_path / "why.html")
    capsys.readouterr()
    assert (tmp_path / "why.html").read_text().startswith("<!doctype html>")
    encoder = make_pipeline(
        sm.Nystroem(kernels.Spectrum(k=3), 4, random_state=0), sm.SignRandomProjection(64, random_state=0)
    )
    sm.SimilaritySearch(encoder).fit(X[:20]).save(tmp_path / "search")
    explain_pair(tmp_path / "search", str(data), 0, 2, as_json=True)
    assert json.loads(capsys.readouterr().out)["value"] == shown["value"]
    with pytest.raises(ValueError, match="numbered from 0 to 3; there is no number 9"):
        explain_prediction(path, str(data), 9)
    with pytest.raises(ValueError, match="--labels must be like"):
        explain_pair(path, str(data), 0, 1, labels="C")
