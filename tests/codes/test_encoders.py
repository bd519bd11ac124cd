"""Strings, graphs and records as hypervectors."""

from __future__ import annotations

import itertools
import subprocess
import sys

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from naive import similarities as naive
from similia import codes, config
from similia.codes.hypervectors import basis, tie_code

laws = settings(max_examples=25, deadline=None)
words = st.lists(st.text("abcé∀", max_size=30), min_size=1, max_size=6)


class Signs(TransformerMixin, BaseEstimator):
    """Two numbers to 512 packed bits: an encoder of numbers, as short as can be."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.packbits(X @ np.random.default_rng(0).normal(size=(2, 512)) >= 0, axis=1)


# ---- strings


@laws
@given(words, st.integers(1, 10), st.sampled_from(["multiply", "add"]), st.sampled_from([64, 200]))
def test_ngrams_are_sums_of_bound_letters(strings, n, binding, n_bits):
    encoder = codes.NGramEncoder(n, n_bits, binding, "counts", random_state=1).fit(strings)
    letters = sorted(set("".join(strings)))
    vector = dict(zip(letters, naive.signs(basis(encoder.seed_, map(ord, letters), n_bits)), strict=True))
    ties = naive.signs(tie_code(encoder.seed_, n_bits))[0]
    sums = np.array([naive.ngram_sums(s, vector, n, binding, ties) for s in strings])
    counts = encoder.transform(strings)
    assert counts.dtype == np.int32
    np.testing.assert_array_equal(counts, sums)
    bits = encoder.set_params(output="bits").transform(strings)
    assert bits.flags.c_contiguous
    np.testing.assert_array_equal(naive.signs(bits), naive.majority(sums, ties))


@pytest.mark.same_bits
@pytest.mark.parametrize("binding", ["multiply", "add"])
@pytest.mark.parametrize("output", ["bits", "counts"])
def test_strings_do_not_depend_on_blocks_or_neighbours(binding, output):
    rng = np.random.default_rng(0)
    strings = ["".join(rng.choice(list("ACGT"), size=m)) for m in [40, 0, 3, 100, 1, 2, 17, 64]]
    encoder = codes.NGramEncoder(4, 256, binding, output, random_state=0).fit(strings)
    whole = encoder.transform(strings)
    with config(max_memory=1000):
        np.testing.assert_array_equal(encoder.transform(strings), whole)
    np.testing.assert_array_equal(encoder.transform(strings[::-1])[::-1], whole)
    np.testing.assert_array_equal(np.concatenate([encoder.transform([s]) for s in strings]), whole)


def test_letters_never_seen_have_the_same_vectors_in_any_process():
    program = (
        "from similia.codes import NGramEncoder;"
        "print(NGramEncoder(2, 64, random_state=5).fit(['abc']).transform(['xyz', 'ж']).tobytes().hex())"
    )
    other = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    here = codes.NGramEncoder(2, 64, random_state=5).fit(["q"]).transform(["xyz", "ж", "a"])[:2]
    assert other.stdout.strip() == here.tobytes().hex()


def test_products_of_distinct_ngrams_are_nearly_orthogonal():
    counts = codes.NGramEncoder(3, 10_000, output="counts", random_state=0).fit_transform(
        ["GATTACA", "GATTTACA", "CCCCC"]
    )
    # common trigrams: GAT ATT TTA TAC ACA; of CCCCC: 3 x CCC, so 9 with itself
    inner = counts.astype(float) @ counts.T / 10_000
    np.testing.assert_allclose(inner, [[5, 5, 0], [5, 6, 0], [0, 0, 9]], atol=0.25)


def test_sums_make_ngrams_that_share_letters_alike():
    strings = ["abc", "abd", "xyz"]
    add = codes.similarity(codes.NGramEncoder(3, binding="add", random_state=0).fit_transform(strings))
    # majority of three with two in common: the same in 3/4 of positions
    np.testing.assert_allclose(add[0], [1, 0.5, 0], atol=0.05)
    multiply = codes.similarity(codes.NGramEncoder(3, random_state=0).fit_transform(strings))
    np.testing.assert_allclose(multiply[0], [1, 0, 0], atol=0.05)


def test_the_empty_string_is_the_tie_vector():
    encoder = codes.NGramEncoder(3, 64, random_state=0).fit(["a"])
    np.testing.assert_array_equal(encoder.transform(["", "abc"])[:1], tie_code(encoder.seed_, 64))
    assert not codes.NGramEncoder(3, 64, output="counts").fit_transform([""]).any()


# ---- graphs


def by_rank(encoder, edges, rank):
    vector = naive.signs(basis(encoder.seed_, range(len(rank)), encoder.n_bits))
    return naive.graphhd_sums(edges, rank, vector, encoder.n_bits)


def test_edges_join_vectors_of_ranks():
    # a star with one long arm: centre 0, then 4 (degree 2); 5 hangs on 4 and gets more than the leaves
    # 1, 2, 3, which are equal and go by number
    graph = nx.Graph([(0, 1), (0, 2), (0, 3), (0, 4), (4, 5)])
    rank = [0, 3, 4, 5, 1, 2]
    encoder = codes.GraphHDEncoder(200, output="counts", random_state=0).fit([graph])
    np.testing.assert_array_equal(encoder.transform([graph])[0], by_rank(encoder, graph.edges, rank))


def ties_by_chance(graph):
    """Whether two nodes have one PageRank, but not for the same reason, so that rounding decides which comes first."""
    colours = dict.fromkeys(graph, 0)  # refined; nodes of one colour have the same sums in each step
    for _ in graph:
        colours = {v: hash((colours[v], tuple(sorted(colours[u] for u in graph[v])))) for v in graph}
    values = nx.pagerank(graph, alpha=0.85, tol=1e-14, max_iter=500)
    order = sorted(graph, key=values.get)
    near = [(u, v) for u, v in itertools.pairwise(order) if values[v] - values[u] < 1e-9]
    return any(colours[u] != colours[v] for u, v in near)


@laws
@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=4), st.sampled_from([64, 200]))
@example([536297270, 1], 64)
def test_graphs_agree_with_pagerank_of_networkx(graph_seeds, n_bits):
    graphs = [nx.gnp_random_graph(1 + seed % 20, 0.3, seed=seed) for seed in graph_seeds]
    graphs = [graph for graph in graphs if not ties_by_chance(graph)]
    assume(graphs)
    encoder = codes.GraphHDEncoder(n_bits, n_iter=200, output="counts", random_state=1).fit(graphs)
    sums = []
    for graph in graphs:
        centrality = nx.pagerank(graph, alpha=0.85, tol=1e-14, max_iter=500)
        order = sorted(graph.nodes, key=lambda v: (-round(centrality[v], 10), v))
        rank = np.argsort(order)
        sums.append(by_rank(encoder, graph.edges, rank))
    np.testing.assert_array_equal(encoder.transform(graphs), sums)
    ties = naive.signs(tie_code(encoder.seed_, n_bits))
    bits = encoder.set_params(output="bits").transform(graphs)
    np.testing.assert_array_equal(naive.signs(bits), naive.majority(np.array(sums), ties))


def untied_graph(seed):
    """A random graph whose PageRanks are all different."""
    for attempt in range(1000):
        graph = nx.gnp_random_graph(9, 0.4, seed=(seed + attempt) % 2**32)
        values = np.sort(list(nx.pagerank(graph, tol=1e-12, max_iter=500).values()))
        if np.diff(values).min() > 1e-6:
            return graph
    raise AssertionError("no graph without ties was drawn")


@laws
@given(st.integers(0, 2**32 - 1), st.permutations(range(9)))
def test_relabelled_graphs_have_one_code(seed, order):
    graph = untied_graph(seed)
    relabelled = nx.Graph()
    relabelled.add_nodes_from(range(9))
    relabelled.add_edges_from((order[u], order[v]) for u, v in graph.edges)
    a, b = codes.GraphHDEncoder(256, random_state=0).fit_transform([graph, relabelled])
    np.testing.assert_array_equal(a, b)


def test_nodes_of_equal_pagerank_rank_by_number():
    # on a cycle all are equal, whatever the order of summation
    cycle = nx.cycle_graph(7)
    encoder = codes.GraphHDEncoder(128, output="counts", random_state=0).fit([cycle])
    np.testing.assert_array_equal(encoder.transform([cycle])[0], by_rank(encoder, cycle.edges, range(7)))


def test_loops_and_directions_are_left_out():
    n = 4
    edge_index = np.array([[0, 2, 1, 1], [1, 1, 3, 1]])  # arcs in one direction, and a loop at 1
    encoder = codes.GraphHDEncoder(128, output="counts", random_state=0).fit([nx.path_graph(2)])
    counts = encoder.transform([(edge_index, n)])[0]
    # each of the 3 edges adds an odd number to each position, the loop would make it even
    assert (counts % 2 == 1).all()
    assert np.abs(counts).max() <= 3


def test_edgeless_graphs_are_the_tie_vector():
    graphs = [nx.empty_graph(3), nx.path_graph(3), nx.empty_graph(1)]
    encoder = codes.GraphHDEncoder(64, random_state=0).fit(graphs)
    encoded = encoder.transform(graphs)
    tie = tie_code(encoder.seed_, 64)[0]
    np.testing.assert_array_equal(encoded[[0, 2]], [tie, tie])
    np.testing.assert_array_equal(encoder.transform(graphs[1:2]), encoded[1:2])


# ---- records

COLUMNS = {
    "text": ["GATTACA", "GATTACA", "CCGCGG", "TTTTTTTT"],
    "graph": [nx.star_graph(5), nx.path_graph(9), nx.star_graph(5), nx.cycle_graph(6)],
    "a": [1.0, 2.0, 0.0, -1.0],
    "b": [0.5, 0.1, 1.0, 2.0],
}


def mixed(output="bits", text="bits"):
    return codes.RecordEncoder(
        [
            ("text", codes.NGramEncoder(3, 512, output=text, random_state=0)),
            ("graph", codes.GraphHDEncoder(512, random_state=0)),
            (["a", "b"], Signs()),
        ],
        output=output,
        random_state=0,
    )


def test_records_are_sums_of_roles_times_parts():
    bundle = mixed("counts").fit(COLUMNS)
    numbers = np.column_stack([COLUMNS["a"], COLUMNS["b"]])
    inputs = [COLUMNS["text"], COLUMNS["graph"], numbers]
    parts = [naive.signs(e.transform(x)) for e, x in zip(bundle.encoders_, inputs, strict=True)]
    sums = sum(role * part for role, part in zip(naive.signs(bundle.roles_), parts, strict=True))
    counts = bundle.transform(COLUMNS)
    assert counts.dtype == np.int32
    np.testing.assert_array_equal(counts, sums)
    bits = bundle.set_params(output="bits").transform(COLUMNS)
    np.testing.assert_array_equal(naive.signs(bits), np.sign(sums))  # three parts: no ties


def test_unquantised_parts_have_the_same_say():
    bundle = mixed("counts", text="counts").fit(COLUMNS)
    sums = bundle.transform(COLUMNS)
    text = bundle.encoders_[0].transform(COLUMNS["text"])
    rest = sums - naive.signs(bundle.roles_[:1]) * text / np.sqrt(np.mean(text**2.0, axis=1, keepdims=True))
    assert set(np.round(np.unique(rest), 9)) <= {-2, 0, 2}  # the graph and the numbers, ±1 each


@pytest.mark.same_bits
@pytest.mark.parametrize("text", ["bits", "counts"])
@pytest.mark.parametrize("output", ["bits", "counts"])
def test_records_do_not_depend_on_their_container_or_blocks(output, text):
    expected = mixed(output, text).fit_transform(COLUMNS)
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)]
    frame = pl.DataFrame([pl.Series(k, v, dtype=pl.Object if k == "graph" else None) for k, v in COLUMNS.items()])
    for records in (pd.DataFrame(COLUMNS), frame, rows):
        np.testing.assert_array_equal(mixed(output, text).fit_transform(records), expected)
    by_position = mixed(output, text)
    places = {name: i for i, name in enumerate(COLUMNS)}
    by_position.encoders = [
        ([places[c] for c in spec] if isinstance(spec, list) else places[spec], encoder)
        for spec, encoder in by_position.encoders
    ]
    tuples = list(zip(*COLUMNS.values(), strict=True))
    np.testing.assert_array_equal(by_position.fit_transform(tuples), expected)
    with config(max_memory=1):
        np.testing.assert_array_equal(by_position.transform(tuples), expected)


def test_a_part_can_be_read_out_of_a_record():
    bundle = mixed().fit(COLUMNS)
    unbound = codes.bind(bundle.transform(COLUMNS), bundle.roles_[:1])
    likeness = codes.similarity(unbound, bundle.encoders_[0].transform(COLUMNS["text"]))
    assert (np.diag(likeness) > 0.35).all()  # one of three parts: cosine 1/2
    assert (likeness[0, 2:] < 0.2).all()


def test_frames_are_made_of_records_alone():
    expected = mixed().fit_transform(COLUMNS)
    with config_context(transform_output="pandas"):
        bundle = mixed()
        for frame in (bundle.fit_transform(COLUMNS), bundle.transform(COLUMNS)):
            assert isinstance(frame, pd.DataFrame)
            np.testing.assert_array_equal(frame, expected)


def test_vectors_of_any_size_have_the_same_say_and_those_with_nan_are_named():
    X = np.random.default_rng(0).normal(size=(9, 8))
    bundle = codes.RecordEncoder([([*range(8)], FunctionTransformer())], "counts", random_state=0)
    expected = bundle.fit_transform([*map(tuple, X)])
    for exponent in (-1000, -600, 600, 1020):
        np.testing.assert_array_equal(bundle.transform([*map(tuple, np.ldexp(X, exponent))]), expected)
    X[5, 3] = np.nan
    with config(max_memory=1), pytest.raises(ValueError, match=r"^X\[5\] gets NaN or infinity from the encoder of"):
        bundle.transform([*map(tuple, X)])


# ---- all encoders


@pytest.mark.parametrize(
    ("encoder", "X"),
    [
        (codes.NGramEncoder(2, 64, random_state=3), COLUMNS["text"]),
        (codes.GraphHDEncoder(64, random_state=3), COLUMNS["graph"]),
        (mixed(), COLUMNS),
    ],
)
def test_scikit_learn_contract(encoder, X):
    before = repr(encoder.get_params())
    first = encoder.fit(X).transform(X)
    np.testing.assert_array_equal(clone(encoder).fit_transform(X), first)
    np.testing.assert_array_equal(encoder.fit(X).transform(X), first)
    assert repr(encoder.get_params()) == before
    assert (clone(encoder).set_params(random_state=4).fit_transform(X) != first).any()


@pytest.mark.parametrize(
    ("encoder", "X", "parameters", "sentence"),
    [
        (codes.NGramEncoder(2, 64), COLUMNS["text"], {"n": 0}, "n must be an integer >= 1, got 0"),
        (codes.NGramEncoder(2, 64), COLUMNS["text"], {"n_bits": 12}, "n_bits must be a multiple of 8"),
        (codes.NGramEncoder(2, 64), COLUMNS["text"], {"output": "bit"}, "output must be 'bits' .* got 'bit'"),
        (codes.NGramEncoder(2, 64), COLUMNS["text"], {"binding": "xor"}, "binding must be .* got 'xor'"),
        (codes.GraphHDEncoder(64), COLUMNS["graph"], {"damping": 3.0}, r"damping must be a number in \[0, 1\)"),
        (mixed(), COLUMNS, {"output": "bit"}, "output must be 'bits' .* got 'bit'"),
    ],
)
def test_parameters_set_after_fit_are_checked(encoder, X, parameters, sentence):
    encoder = clone(encoder).fit(X).set_params(**parameters)
    with pytest.raises(ValueError, match=sentence):
        encoder.transform(X)


one = codes.NGramEncoder(2, 64)


def bundle_of(*encoders, X=COLUMNS, **keywords):
    return codes.RecordEncoder(list(encoders), **keywords).fit(X)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: codes.NGramEncoder(0).fit(["a"]), "n must be an integer >= 1, got 0"),
        (lambda: codes.NGramEncoder(n_bits=12).fit(["a"]), "n_bits must be a multiple of 8"),
        (lambda: codes.NGramEncoder(binding="xor").fit([]), "binding must be 'multiply' or 'add', got 'xor'"),
        (lambda: codes.NGramEncoder(output="bit").fit(["a"]), "output must be 'bits' .* got 'bit'"),
        (lambda: one.fit([]).transform([]), "X is empty: found 0 strings"),
        (lambda: one.fit(["a"]).transform(["a", 3]), r"X\[1\] is int"),
        (lambda: codes.GraphHDEncoder(12).fit([]), "n_bits must be a multiple of 8"),
        (lambda: codes.GraphHDEncoder(damping=1.0).fit([]), r"damping must be a number in \[0, 1\), got 1.0"),
        (lambda: codes.GraphHDEncoder(damping="x").fit([]), r"damping must be a number in \[0, 1\), got 'x'"),
        (lambda: codes.GraphHDEncoder(n_iter=0).fit([]), "n_iter must be an integer >= 1"),
        (lambda: codes.GraphHDEncoder(output=None).fit([]), "output must be 'bits'"),
        (lambda: codes.GraphHDEncoder(8).fit_transform([]), "X is empty: found 0 graphs"),
        (lambda: bundle_of(), r"encoders must be a list of \(columns, encoder\), got \[\]"),
        (lambda: bundle_of(("text", "ngram")), r"encoders\[0\] must be \(columns, transformer\)"),
        (lambda: bundle_of(("txt", one)), r"no column 'txt', expected one of \['text', 'graph', 'a', 'b'\]"),
        (lambda: bundle_of(("txt", one), X=pd.DataFrame(COLUMNS)), "X has no column 'txt', expected one of"),
        (lambda: bundle_of((1, one), X=[("a", "b"), ("c",)]), r"X\[1\] has no entry 1: found \('c',\)"),
        (lambda: bundle_of((0, one), X=[]), "X is empty: found 0 records"),
        (lambda: bundle_of((["text"], one)), r"column 'text' must hold numbers"),
        (lambda: bundle_of((["t"], one), X={"t": np.array(["NaT"], "M8[D]")}), "column 't' holds dates or times"),
        (lambda: bundle_of(("text", one), X="records"), "X must be a table or a list of records, got str"),
        (
            lambda: bundle_of(("t", one), ("u", one), X={"t": ["a"], "u": ["b", "c"]}),
            "column 'u' has 2 entries and column 't' has 1",
        ),
        (
            lambda: bundle_of(("text", one), ("graph", codes.GraphHDEncoder(128))),
            "the encoder of column 'graph' emits 128 positions, expected 64 .* same n_bits",
        ),
        (
            lambda: bundle_of(("text", one), ("a", codes.SignRandomProjection(64))),
            r"the encoder of column 'a' does not take its numbers .* write \(\['a'\], \.\.\.\)",
        ),
        (
            lambda: bundle_of(("text", one), (["a", "b"], StandardScaler())),
            "of column .* emits 2 columns of float64 .* expected 64 .* end the encoder with SignRandomProjection",
        ),
        (
            lambda: bundle_of((["a", "b"], StandardScaler()), ("text", one)),
            "emits 2 columns of float64 .* expected 64 as from that of column 'text'; end the encoder with Sign",
        ),
        (lambda: bundle_of((["a"], StandardScaler())), "emits 1 columns .* multiple of 8; end the encoder with Sign"),
        (lambda: bundle_of(("text", one), output="words"), "output must be 'bits'"),
    ],
)
def test_bad_input_gets_one_sentence(call, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value)
