"""Explanations of string and graph kernels: parts add up to the value, names and places are what they say."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from functools import partial

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import similia as sm
from samples.explain import ALL, by_name, check_sums, quick, words
from similia import distances, kernels, pairwise
from similia.explanations import explain
from similia.similarity import without_addresses

# --- strings ------------------------------------------------------------------------------------

STRING_KERNELS = [
    kernels.Spectrum(k=2),
    kernels.Spectrum(k=3, normalize=True),
    kernels.Spectrum(k=(1, 3), normalize=True),
    kernels.Spectrum(k=(2, 3), reverse_complement=True),
    kernels.Spectrum(k=(1, 3), boundaries="words"),
    kernels.Words(n=(1, 2), min_letters=1),
    kernels.GappyKmers(k=2, gaps=1),
    kernels.GappyKmers(k=4, gaps=2, merge=False, normalize=True),
    kernels.GappedKmers(5, 3, "forgotten"),
    kernels.GappedKmers(2, 2, "forgotten", normalize=True),
    kernels.GappedKmers(4, 2),
    kernels.GappedKmers(4, 3, reverse_complement=True, center_weight=9, half_life=1, normalize=True),
    kernels.Mismatch(k=3, mismatches=1),
    kernels.Mismatch(k=2, mismatches=0, alphabet="ACG", normalize=True),
    kernels.WeightedDegree(degree=3),
    kernels.WeightedDegree(degree=2, normalize=True),
    kernels.Sum([kernels.Spectrum(k=1), kernels.WeightedDegree(degree=2)], weights=[0.5, 2]),
    kernels.Normalized(kernels.Sum([kernels.Spectrum(k=2, normalize=True), kernels.GappyKmers(k=2)])),
    kernels.Intersection(kernels.Spectrum(k=2), normalize=True),
    kernels.MinMax(kernels.WeightedDegree(degree=2)),
    kernels.MinMax(kernels.Sum([kernels.Spectrum(k=1, normalize=True), kernels.Spectrum(k=2)], weights=[0.5, 0])),
    kernels.Sum([kernels.Intersection(kernels.Intersection(kernels.Spectrum(k=1))), kernels.Spectrum(k=2)]),
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
        (kernels.GappedKmers(3, 2, "forgotten"), windows, " within 3"),
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
    kernels.Intersection(kernels.WeisfeilerLehman(n_iter=2)),
    kernels.MinMax(kernels.ShortestPath()),
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


@pytest.mark.parametrize(("unexplained", "row"), [(5e-17, None), (2e-11, "rounding"), (1e-3, "not explained by parts")])
def test_only_what_is_a_number_of_meaning_is_told_to_be_left(unexplained, row):
    found = replace(explain(kernels.Spectrum(k=3), "GATTACA", "ATTACC"), unexplained=unexplained)
    for text in (found.to_text(), found.to_html()):
        assert [name for name in ("rounding", "not explained by parts") if name in text] == ([row] if row else [])


class Scorer:
    def gap(self, x, y):
        return abs(len(x) - len(y))


def local():
    class Local(Scorer):
        def gap(self, x, y):
            return 0.0

    return Local()


class Foreign:
    def __repr__(self):
        return "<package.Foreign object at 0x000001A2B3C4D5E6>"  # as on Windows


def gap(x, y, scale=1.0):
    return scale * abs(len(x) - len(y))


def test_functions_are_shown_by_their_names():
    shown = {
        "FromFunction(function=gap)": distances.FromFunction(gap),
        "FromFunction(function=<lambda>)": distances.FromFunction(lambda x, y: 0.0),
        "FromFunction(function=Scorer.gap)": distances.FromFunction(Scorer().gap),
        "FromFunction(function=functools.partial(gap, scale=2.0))": distances.FromFunction(partial(gap, scale=2.0)),
        "FromFunction(function=len)": distances.FromFunction(len),
        "Pairwise(function=gap, symmetric=False)": pairwise(gap, symmetric=False),
        "DistanceRBF(distance=FromFunction(function=gap))": kernels.DistanceRBF(distances.FromFunction(gap)),
        "[Scorer]": [Scorer()],
        "[Local]": [local()],
        "FromFunction(function=Local.gap)": distances.FromFunction(local().gap),
        "[Foreign]": [Foreign()],
        "[<method-wrapper '__call__' of function object>]": [gap.__call__],
    }
    for text, compared in shown.items():
        assert " ".join(without_addresses(compared).split()) == text
    nested = kernels.FromDistance(distances.FromFunction(gap), ["A", "AGG"], gamma=1.0)
    title = explain(nested, "AC", "ACG").title
    assert "distance=FromFunction(function=gap)" in title
    assert "0x" not in title
    assert "  " not in title
    assert "\n" not in title


def test_words_and_gaps_longer_than_the_string_take_no_memory():
    long = 10**9
    for kernel in (kernels.Spectrum(long), kernels.GappyKmers(long, gaps=1), kernels.Spectrum(k=(long, long + 1))):
        assert explain(kernel, "ACACAC", "ACACA").parts == []
    for kernel in (kernels.GappyKmers(2, gaps=long), kernels.Spectrum(k=(2, long)), kernels.Words((1, long))):
        found = explain(kernel, "ACACAC", "ACACAC")
        assert found.value > 0
        assert found.unexplained == 0


@pytest.mark.parametrize("kernel", [kernels.MeanMap(kernels.RBF()), kernels.Normalized(kernels.MeanMap(kernels.RBF()))])
def test_settings_of_a_kernel_of_sets_are_those_of_x(kernel):
    sets = [[0.0, 0.0], [1.0, 0.0]], [[0.0, 3.0], [5.0, 0.0], [2.0, 2.0]]
    for x, y in (sets, sets[::-1]):
        found = explain(kernel, np.array(x), np.array(y))
        assert sum(part.contribution for part in found.parts) == pytest.approx(found.value, rel=1e-9)
