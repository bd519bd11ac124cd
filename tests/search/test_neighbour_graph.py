"""Neighbour graphs against brute force, and in the hands of scikit-learn."""

from __future__ import annotations

import warnings
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein as rapidfuzz
from sklearn.cluster import DBSCAN, HDBSCAN
from sklearn.neighbors import KNeighborsClassifier, sort_graph_by_row_values

import similia as sm
from similia.core import threads
from similia.search import knn_graph, neighbour_graph
from tests.naive.similarities import nearest_others

LEVENSHTEIN = sm.distances.Levenshtein()


def mutated_families(n, n_letters=40, size=20, seed=0):
    """Return strings of DNA: families of one ancestor, in each of which a quarter of the letters is drawn anew."""
    rng = np.random.default_rng(seed)
    ancestors = rng.integers(4, size=(-(-n // size), n_letters))
    letters = np.repeat(ancestors, size, axis=0)[:n]
    letters = np.where(rng.random(letters.shape) < 0.25, rng.integers(4, size=letters.shape), letters)
    return ["".join(row) for row in np.array(list("ACGT"))[letters]]


def arrays(graph):
    k = graph.indptr[1]
    assert (graph.indptr == np.arange(0, graph.nnz + 1, k)).all()
    return graph.data.reshape(-1, k), graph.indices.reshape(-1, k)


def assert_equal_graphs(one, other):
    for left, right in zip(arrays(one), arrays(other), strict=True):
        np.testing.assert_array_equal(left, right)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text("AB", max_size=4), min_size=2, max_size=12), st.data())
def test_exact_graph_is_that_of_brute_force(words, data):
    k = data.draw(st.integers(1, len(words) - 1))
    expected = nearest_others(lambda x, y: float(rapidfuzz.distance(x, y)), words, k)
    with patch.object(neighbour_graph, "_TILE", data.draw(st.integers(1, 5))):
        found = arrays(knn_graph(words, LEVENSHTEIN, k, method="exact"))
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_array_equal(left, right)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text("AB", max_size=4), min_size=3, max_size=12), st.integers(0, 2**32))
def test_few_objects_are_all_found_by_bits(words, seed):
    """Up to 16 objects, every sorted order offers all others."""
    k = len(words) // 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # equal words: nothing to centre
        graph, recall = knn_graph(words, LEVENSHTEIN, k, method="bits", random_state=seed, return_recall=True)
    assert_equal_graphs(graph, knn_graph(words, LEVENSHTEIN, k, method="exact"))
    assert recall == 1


def test_asymmetric_distance_is_evaluated_from_each_object():
    def longer(x, y):
        return float(max(0, len(y) - len(x)))

    words = ["abc", "a", "abcde", "ab", "abcdefg"]
    expected = nearest_others(longer, words, 2)
    with patch.object(neighbour_graph, "_TILE", 2):
        found = arrays(knn_graph(words, sm.distances.FromFunction(longer, symmetric=False), 2, method="exact"))
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_array_equal(left, right)


def test_kernel_stands_for_the_distance_of_its_features():
    X = np.random.default_rng(0).normal(size=(40, 5))
    expected = nearest_others(lambda x, y: np.sqrt(2 - 2 * np.exp(-0.1 * ((x - y) ** 2).sum())), X, 4)
    for method in ("exact", "bits"):
        distances, neighbours = arrays(knn_graph(X, sm.kernels.RBF(0.1), 4, method=method, random_state=0))
        np.testing.assert_array_equal(neighbours, expected[1])
        np.testing.assert_allclose(distances, expected[0], atol=1e-7)


def test_series_under_dtw():
    rng = np.random.default_rng(0)
    series = [rng.normal(size=n).cumsum() for n in rng.integers(5, 15, 40)]
    distance = sm.distances.DTW(window=0.2)
    D = distance(series)
    np.fill_diagonal(D, np.inf)
    distances, neighbours = arrays(knn_graph(series, distance, 5, method="exact"))
    np.testing.assert_array_equal(neighbours, np.argsort(D, axis=1, kind="stable")[:, :5])
    np.testing.assert_array_equal(distances, np.sort(D, axis=1)[:, :5])


def test_bits_find_most_neighbours_and_say_how_many():
    words = mutated_families(3000)
    graph, recall = knn_graph(words, LEVENSHTEIN, 5, method="bits", random_state=0, return_recall=True)
    true = arrays(knn_graph(words, LEVENSHTEIN, 5, method="exact"))[0]
    distances, neighbours = arrays(graph)
    share = np.mean(distances <= true[:, -1:])
    assert share > 0.97
    assert abs(recall - share) < 0.03  # of 200 objects
    i, j = 17, int(neighbours[17, 2])
    assert distances[i, 2] == rapidfuzz.distance(words[i], words[j])
    assert (distances[:, 1:] >= distances[:, :-1]).all()
    assert (neighbours != np.arange(len(words))[:, None]).all()
    assert (np.diff(np.sort(neighbours, axis=1)) > 0).all()


def test_many_equal_objects_have_as_many_neighbours_as_are_asked_for():
    X = np.repeat(np.random.default_rng(0).normal(size=(20, 8)), 40, axis=0)
    encoder = sm.SignRandomProjection(256, random_state=0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="the graph holds")
        graph = knn_graph(X, sm.kernels.RBF(), 60, method="bits", random_state=0, encoder=encoder)
    neighbours = np.column_stack([np.arange(800), graph.indices.reshape(800, 60)])
    assert neighbours.max() < 800
    assert (np.diff(np.sort(neighbours)) > 0).all()
    np.testing.assert_array_equal(graph.data.reshape(800, 60)[:, :39], 0)


@pytest.mark.parametrize("method", ["kmers", "bits"])
def test_distances_that_are_no_numbers_are_refused(method, monkeypatch):
    monkeypatch.setattr(neighbour_graph, "_compare", lambda *_: lambda rows, _: np.where(rows == 7, np.nan, 1.0))
    with pytest.raises(ValueError, match=r"X\[7\] has fewer than 3 others at a distance that is a finite number"):
        knn_graph(mutated_families(60), LEVENSHTEIN, 3, method=method, random_state=0)


def test_refinement_is_what_finds_them():
    words = mutated_families(3000)
    with patch.object(neighbour_graph, "_ROUNDS", 0), pytest.warns(UserWarning, match="of the true neighbours"):
        _, recall = knn_graph(words, LEVENSHTEIN, 5, method="bits", random_state=0, return_recall=True)
    assert recall < 0.9


@pytest.mark.same_bits
@pytest.mark.parametrize("method", ["exact", "kmers", "bits"])
def test_graph_depends_neither_on_threads_nor_on_blocks(method):
    words = mutated_families(500)

    def graph():
        return knn_graph(words, LEVENSHTEIN, 5, method=method, random_state=3)

    expected = graph()
    with patch.object(threads, "cpu_count", return_value=1), sm.config(max_memory="300KB"):
        assert_equal_graphs(graph(), expected)
    with patch.object(threads, "cpu_count", return_value=5), patch.object(neighbour_graph, "_GRAIN", 7):
        assert_equal_graphs(graph(), expected)


def naive_sharing(words, k, most):
    """Return for each word the positions of those that share a k-mer with it, grouped by how many they share."""
    kmers = [{w[i : i + k] for i in range(len(w) - k + 1)} for w in words]
    shared = [[len(a & b) if i != j else 0 for j, b in enumerate(kmers)] for i, a in enumerate(kmers)]
    return [sorted((c for c in row if c), reverse=True)[:most] for row in shared], shared


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text("AC", min_size=1, max_size=9), min_size=2, max_size=30), st.integers(1, 8))
def test_strings_that_share_most_kmers_are_proposed(words, most):
    kmers = neighbour_graph._rare_kmers(sm.kernels.Spectrum(2).as_objects(words), reverse_complement=False)
    k = next(
        k for k in range(2, 17) if kmers.nnz == sum(len({w[i : i + k] for i in range(len(w) - k + 1)}) for w in words)
    )
    postings = kmers.tocsc()
    n = len(words)
    columns, counts = np.empty((n, most), np.int32), np.zeros(n, np.int64)
    known = np.full((n, 1), n, np.int32)
    neighbour_graph._propose_sharing(
        kmers.indptr, kmers.indices, postings.indptr, postings.indices, 256, known, 0, columns, counts, 0, n
    )
    best, shared = naive_sharing(words, k, most)
    for i in range(n):
        found = columns[i, : counts[i]]
        assert i not in found
        assert len(set(found)) == len(found)
        assert sorted((shared[i][j] for j in found), reverse=True) == best[i]


def test_frequent_kmers_are_read_around_the_string_and_known_strings_left_out():
    words = ["AAAA"] * 50
    kmers = neighbour_graph._rare_kmers(sm.kernels.Spectrum(2).as_objects(words), reverse_complement=False)
    postings = kmers.tocsc()
    columns, counts = np.empty((50, 40), np.int32), np.zeros(50, np.int64)
    known = np.full((50, 1), 50, np.int32)
    known[25] = 24
    arrays = (kmers.indptr, kmers.indices, postings.indptr, postings.indices)
    neighbour_graph._propose_sharing(*arrays, 4, known, 0, columns, counts, 0, 50)
    assert set(columns[0, : counts[0]]) == {1, 2, 3}
    assert set(columns[25, : counts[25]]) == {23, 26}
    assert set(columns[49, : counts[49]]) == {46, 47, 48}


def test_kmers_find_most_neighbours():
    words = mutated_families(3000)
    graph, recall = knn_graph(words, LEVENSHTEIN, 5, method="kmers", random_state=0, return_recall=True)
    true = arrays(knn_graph(words, LEVENSHTEIN, 5, method="exact"))[0]
    distances, neighbours = arrays(graph)
    assert np.mean(distances <= true[:, -1:]) > 0.97
    assert recall > 0.97
    i, j = 17, int(neighbours[17, 2])
    assert distances[i, 2] == rapidfuzz.distance(words[i], words[j])
    assert (neighbours != np.arange(len(words))[:, None]).all()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text("AB\u03b1 ", max_size=6), min_size=4, max_size=25), st.integers(1, 3))
def test_every_string_has_neighbours_even_without_kmers(words, k):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a low recall
        distances, neighbours = arrays(knn_graph(words, LEVENSHTEIN, k, method="kmers"))
    assert np.isfinite(distances).all()
    assert (np.diff(np.sort(np.c_[neighbours, np.arange(len(words))], axis=1)) > 0).all()


def test_kmers_of_both_strands():
    words = mutated_families(1500)
    turned = [w if i % 2 else w[::-1].translate(str.maketrans("ACGT", "TGCA")) for i, w in enumerate(words)]
    kernel = sm.kernels.Spectrum(5, reverse_complement=True)
    _, recall = knn_graph(turned, kernel, 5, method="kmers", random_state=0, return_recall=True)
    assert recall > 0.9


def test_kmers_are_for_strings():
    with pytest.raises(ValueError, match="method must be 'auto', 'exact' or 'bits' for objects that are no strings"):
        knn_graph(np.eye(5), sm.kernels.Cosine("projection"), 2, method="kmers")


def test_own_encoder():
    words = mutated_families(600)
    encoder = sm.MinHash(sm.kernels.Spectrum(k=4), 256, bits=1, random_state=0)
    _, recall = knn_graph(words, LEVENSHTEIN, 5, method="bits", encoder=encoder, random_state=0, return_recall=True)
    assert recall > 0.9
    assert not hasattr(encoder, "n_features_in_")


def test_auto_depends_on_the_number_of_objects():
    words = mutated_families(300)
    encoder = sm.MinHash(sm.kernels.Spectrum(k=4), 256, bits=1, random_state=0)
    for name, chosen in [("_by_kmers", {}), ("_by_bits", {"encoder": encoder})]:
        with patch.object(neighbour_graph, "_EXACT", 300), patch.object(neighbour_graph, name) as road:
            knn_graph(words, LEVENSHTEIN, 5, **chosen)
            assert not road.called
            road.side_effect = InterruptedError
            with pytest.raises(InterruptedError):
                knn_graph([*words, "A"], LEVENSHTEIN, 5, **chosen)


def test_scikit_learn_takes_the_graph():
    words = [*mutated_families(200, size=50), *["ACGT" * 10] * 3]  # some are equal: zeros are stored
    y = np.repeat(np.arange(5), 50)[: len(words)]
    graph = knn_graph(words, LEVENSHTEIN, 8)
    assert (graph.data[graph.indptr[-4] :].reshape(3, 8)[:, :2] == 0).all()
    D = LEVENSHTEIN(words).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # an unsorted graph would be sorted with a warning
        assert sort_graph_by_row_values(graph, warn_when_not_sorted=True) is graph
        sparse = KNeighborsClassifier(8, metric="precomputed").fit(graph, y).predict(graph)
        core = DBSCAN(eps=14, min_samples=4, metric="precomputed").fit(graph)
        both = knn_graph(words, LEVENSHTEIN, 60, symmetric=True)
        found = HDBSCAN(min_cluster_size=10, min_samples=5, metric="precomputed", copy=True).fit(both)
    assert len(set(found.labels_[:200])) >= 4
    order = np.argsort(D + np.diag(np.full(len(D), np.inf)), axis=1, kind="stable")[:, :8]
    np.testing.assert_array_equal(sparse, [np.bincount(y[row]).argmax() for row in order])
    dense = DBSCAN(eps=14, min_samples=4, metric="precomputed").fit(D)
    np.testing.assert_array_equal(core.core_sample_indices_, dense.core_sample_indices_)


def test_symmetric_graph_keeps_zeros():
    words = ["a", "a", "ab", "abcd", "xyz"]
    graph = knn_graph(words, LEVENSHTEIN, 1, symmetric=True)
    entries = graph.tocoo()
    pairs = dict(zip(zip(entries.row.tolist(), entries.col.tolist(), strict=True), entries.data.tolist(), strict=True))
    one_way = {(0, 1): 0, (1, 0): 0, (2, 0): 1, (3, 2): 2, (4, 0): 3}
    assert pairs == one_way | {(j, i): d for (i, j), d in one_way.items()}
    assert graph.indices[: graph.indptr[1]].tolist() == [1, 2, 4]  # ascending distances


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_neighbors": 3}, "n_neighbors must be below 3, the number of objects, got 3"),
        ({"n_neighbors": 0}, "n_neighbors must be an integer >= 1, got 0"),
        ({"method": "fast"}, "method must be 'auto', 'exact', 'kmers' or 'bits', got 'fast'"),
        ({"similarity": rapidfuzz.distance}, "which may be a kernel or a distance; if it is a distance, wrap it"),
        ({"similarity": "cosine"}, "similarity must be a kernel or distance of similia, got 'cosine'"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        knn_graph(**{"X": ["a", "b", "c"], "similarity": LEVENSHTEIN, "n_neighbors": 1, **arguments})


def test_hdbscan_takes_a_symmetric_graph_that_is_connected():
    words = ["kitten", "mitten", "bitten", "kitten", "sunday", "monday", "sundae", "sunday"]
    model = HDBSCAN(min_cluster_size=2, metric="precomputed", copy=True)
    apart, joined = (knn_graph(words, sm.distances.Levenshtein(), k, symmetric=True) for k in (2, 4))
    with pytest.raises(ValueError, match="2 connected components"):
        model.fit(apart)
    before = joined.toarray()
    labels = model.fit_predict(joined)
    assert labels.tolist() in ([0] * 4 + [1] * 4, [1] * 4 + [0] * 4)
    np.testing.assert_array_equal(joined.toarray(), before)  # copy=True keeps the distances
