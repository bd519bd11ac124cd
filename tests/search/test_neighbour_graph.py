"""Neighbour graphs against brute force, and in the hands of scikit-learn."""

from __future__ import annotations

import warnings
from functools import partial
from itertools import combinations, pairwise
from unittest.mock import patch

import dask
import dask.array
import dask.bag
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein as rapidfuzz
from scipy.sparse.csgraph import connected_components
from sklearn.cluster import DBSCAN, HDBSCAN
from sklearn.metrics import adjusted_rand_score, silhouette_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsTransformer, sort_graph_by_row_values

import similia as sm
from similia.core import config as threads
from similia.search import knn_graph, neighbour_graph
from tests.naive.similarities import nearest_others

LEVENSHTEIN = sm.distances.Levenshtein()
one_way = partial(knn_graph, symmetric=False)


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
        found = arrays(one_way(words, LEVENSHTEIN, k, method="exact"))
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_array_equal(left, right)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text("AB", max_size=4), min_size=3, max_size=12), st.integers(0, 2**32))
def test_few_objects_are_all_found_by_bits(words, seed):
    """Up to 16 objects, every sorted order offers all others."""
    k = len(words) // 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # equal words: nothing to centre
        graph, recall = one_way(words, LEVENSHTEIN, k, method="bits", random_state=seed, return_recall=True)
    assert_equal_graphs(graph, one_way(words, LEVENSHTEIN, k, method="exact"))
    assert recall == 1


def test_what_is_asymmetric_is_evaluated_from_each_object():
    def longer(x, y):
        return float(max(0, len(y) - len(x)))

    def contained(x, y):
        return float(min(len(x), len(y)) - (len(x) < len(y)) / 4)

    def in_features(x, y):
        return np.sqrt(len(x) + len(y) - 2 * contained(x, y))

    words = ["abc", "a", "abcde", "ab", "abcdefg"]
    for similarity, naive in (
        (sm.distances.FromFunction(longer, symmetric=False), longer),
        (sm.pairwise(contained, symmetric=False), in_features),
    ):
        with patch.object(neighbour_graph, "_TILE", 2):
            found = arrays(one_way(words, similarity, 2, method="exact"))
        for left, right in zip(found, nearest_others(naive, words, 2), strict=True):
            np.testing.assert_array_equal(left, right)


def test_kernel_stands_for_the_distance_of_its_features():
    X = np.random.default_rng(0).normal(size=(40, 5))
    expected = nearest_others(lambda x, y: np.sqrt(2 - 2 * np.exp(-0.1 * ((x - y) ** 2).sum())), X, 4)
    for method in ("exact", "bits"):
        distances, neighbours = arrays(one_way(X, sm.kernels.RBF(0.1), 4, method=method, random_state=0))
        np.testing.assert_array_equal(neighbours, expected[1])
        np.testing.assert_allclose(distances, expected[0], atol=1e-7)


def test_series_under_dtw():
    rng = np.random.default_rng(0)
    series = [rng.normal(size=n).cumsum() for n in rng.integers(5, 15, 40)]
    distance = sm.distances.DTW(window=0.2)
    D = distance(series)
    np.fill_diagonal(D, np.inf)
    distances, neighbours = arrays(one_way(series, distance, 5, method="exact"))
    np.testing.assert_array_equal(neighbours, np.argsort(D, axis=1, kind="stable")[:, :5])
    np.testing.assert_array_equal(distances, np.sort(D, axis=1)[:, :5])


def test_bits_find_most_neighbours_and_say_how_many():
    words = mutated_families(3000)
    graph, recall = one_way(words, LEVENSHTEIN, 5, method="bits", random_state=0, return_recall=True)
    true = arrays(one_way(words, LEVENSHTEIN, 5, method="exact"))[0]
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
        graph = one_way(X, sm.kernels.RBF(), 60, method="bits", random_state=0, encoder=encoder)
    neighbours = np.column_stack([np.arange(800), graph.indices.reshape(800, 60)])
    assert neighbours.max() < 800
    assert (np.diff(np.sort(neighbours)) > 0).all()
    np.testing.assert_array_equal(graph.data.reshape(800, 60)[:, :39], 0)


@pytest.mark.parametrize("method", ["kmers", "bits"])
def test_distances_that_are_no_numbers_are_refused(method, monkeypatch):
    monkeypatch.setattr(neighbour_graph, "_compare", lambda *_: lambda rows, _: np.where(rows == 7, np.nan, 1.0))
    with pytest.raises(ValueError, match=r"X\[7\] has fewer than 3 others at a distance that is a finite number"):
        one_way(mutated_families(60), LEVENSHTEIN, 3, method=method, random_state=0)


def test_refinement_is_what_finds_them():
    words = mutated_families(3000)
    with patch.object(neighbour_graph, "_ROUNDS", 0), pytest.warns(UserWarning, match="of the true neighbours"):
        _, recall = one_way(words, LEVENSHTEIN, 5, method="bits", random_state=0, return_recall=True)
    assert recall < 0.9


@pytest.mark.same_bits
@pytest.mark.parametrize("method", ["exact", "kmers", "bits"])
def test_graph_depends_neither_on_threads_nor_on_blocks(method):
    words = mutated_families(500)

    def graph():
        return one_way(words, LEVENSHTEIN, 5, method=method, random_state=3)

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
    graph, recall = one_way(words, LEVENSHTEIN, 5, method="kmers", random_state=0, return_recall=True)
    true = arrays(one_way(words, LEVENSHTEIN, 5, method="exact"))[0]
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
        distances, neighbours = arrays(one_way(words, LEVENSHTEIN, k, method="kmers"))
    assert np.isfinite(distances).all()
    assert (np.diff(np.sort(np.c_[neighbours, np.arange(len(words))], axis=1)) > 0).all()


def test_kmers_of_both_strands():
    words = mutated_families(1500)
    turned = [w if i % 2 else w[::-1].translate(str.maketrans("ACGT", "TGCA")) for i, w in enumerate(words)]
    kernel = sm.kernels.Spectrum(5, reverse_complement=True)
    _, recall = one_way(turned, kernel, 5, method="kmers", random_state=0, return_recall=True)
    assert recall > 0.9


def test_kmers_are_for_strings():
    with pytest.raises(ValueError, match="method must be 'auto', 'exact' or 'bits' for objects that are no strings"):
        one_way(np.eye(5), sm.kernels.Cosine("projection"), 2, method="kmers")


def test_own_encoder():
    words = mutated_families(600)
    encoder = sm.MinHash(sm.kernels.Spectrum(k=4), 256, bits=1, random_state=0)
    _, recall = one_way(words, LEVENSHTEIN, 5, method="bits", encoder=encoder, random_state=0, return_recall=True)
    assert recall > 0.9
    assert not hasattr(encoder, "n_features_in_")


def test_auto_depends_on_the_number_of_objects():
    words = mutated_families(300)
    encoder = sm.MinHash(sm.kernels.Spectrum(k=4), 256, bits=1, random_state=0)
    for name, chosen in [("_by_kmers", {}), ("_by_bits", {"encoder": encoder})]:
        with patch.object(neighbour_graph, "_EXACT", 300), patch.object(neighbour_graph, name) as road:
            one_way(words, LEVENSHTEIN, 5, **chosen)
            assert not road.called
            road.side_effect = InterruptedError
            with pytest.raises(InterruptedError):
                one_way([*words, "A"], LEVENSHTEIN, 5, **chosen)


def test_scikit_learn_takes_the_graph():
    words = [*mutated_families(200, size=50), *["ACGT" * 10] * 3]  # some are equal: zeros are stored
    y = np.repeat(np.arange(5), 50)[: len(words)]
    graph = one_way(words, LEVENSHTEIN, 8)
    assert (graph.data[graph.indptr[-4] :].reshape(3, 8)[:, :2] == 0).all()
    D = LEVENSHTEIN(words).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # an unsorted graph would be sorted with a warning
        assert sort_graph_by_row_values(graph, warn_when_not_sorted=True) is graph
        sparse = KNeighborsClassifier(8, metric="precomputed").fit(graph, y).predict(graph)
        core = DBSCAN(eps=14, min_samples=4, metric="precomputed").fit(graph)
        both = knn_graph(words, LEVENSHTEIN, 60)
        found = HDBSCAN(min_cluster_size=10, min_samples=5, metric="precomputed", copy=True).fit(both)
    assert len(set(found.labels_[:200])) >= 4
    order = np.argsort(D + np.diag(np.full(len(D), np.inf)), axis=1, kind="stable")[:, :8]
    np.testing.assert_array_equal(sparse, [np.bincount(y[row]).argmax() for row in order])
    dense = DBSCAN(eps=14, min_samples=4, metric="precomputed").fit(D)
    np.testing.assert_array_equal(core.core_sample_indices_, dense.core_sample_indices_)


def test_symmetric_graph_keeps_zeros():
    words = ["a", "a", "ab", "abcd", "xyz"]
    graph = knn_graph(words, LEVENSHTEIN, 1)
    entries = graph.tocoo()
    pairs = dict(zip(zip(entries.row.tolist(), entries.col.tolist(), strict=True), entries.data.tolist(), strict=True))
    one_way = {(0, 1): 0, (1, 0): 0, (2, 0): 1, (3, 2): 2, (4, 0): 3}
    assert pairs == one_way | {(j, i): d for (i, j), d in one_way.items()}
    assert graph.indices[: graph.indptr[1]].tolist() == [1, 2, 4]  # ascending distances


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_neighbors": 3}, "n_neighbors must be below 3, the number of objects, got 3"),
        ({"X": ["a"]}, "X holds 1 object, expected at least two, so that each has a neighbour"),
        ({"n_neighbors": 0}, "n_neighbors must be an integer >= 1, got 0"),
        ({"symmetric": False, "connected": True}, "connected must be False if symmetric=False, got True"),
        ({"method": "fast"}, "method must be 'auto', 'exact', 'kmers' or 'bits', got 'fast'"),
        ({"similarity": rapidfuzz.distance}, "may be a kernel or a distance.*pairwise.* if .*FromFunction.* if"),
        ({"similarity": "cosine"}, "similarity must be a kernel or distance of similia, got 'cosine'"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        knn_graph(**{"X": ["a", "b", "c"], "similarity": LEVENSHTEIN, "n_neighbors": 1, **arguments})


# ---- one component
def clear_families(n_families, size, n_letters=40, rate=0.15, seed=0):
    """Return strings of DNA in families, and the family of each: far apart, and close within."""
    rng = np.random.default_rng(seed)
    letters = np.repeat(rng.integers(4, size=(n_families, n_letters)), size, axis=0)
    letters = np.where(rng.random(letters.shape) < rate, rng.integers(4, size=letters.shape), letters)
    return ["".join(row) for row in np.array(list("ACGT"))[letters]], np.repeat(np.arange(n_families), size)


def test_hdbscan_finds_clear_families_in_a_connected_graph():
    words, y = clear_families(3, 40)
    model = HDBSCAN(min_cluster_size=10, metric="precomputed", copy=True)
    with pytest.raises(ValueError, match="3 connected components"):
        model.fit(knn_graph(words, LEVENSHTEIN, 10))
    graph = knn_graph(words, LEVENSHTEIN, 10, connected=True)
    before = graph.toarray()
    assert adjusted_rand_score(y, model.fit_predict(graph)) == 1
    np.testing.assert_array_equal(graph.toarray(), before)  # copy=True keeps the distances


@pytest.mark.parametrize("similarity", [LEVENSHTEIN, sm.kernels.Spectrum(k=2, normalize=True)])
@pytest.mark.parametrize("sizes", [(30, 30, 5), (30, 6, 30), (12, 12, 12)])
def test_hdbscan_gives_each_of_many_equal_objects_a_label(similarity, sizes):
    words, y = np.repeat(["ACACACAC", "GGTTGGTT", "CATGATGA"], sizes).tolist(), np.repeat(range(3), sizes)
    graph = knn_graph(words, similarity, 4, connected=True)
    assert (graph.data > 0).all()  # a stored 0 makes HDBSCAN read beyond its arrays, so fail before it
    labels = HDBSCAN(min_cluster_size=5, min_samples=4, metric="precomputed", copy=True).fit_predict(graph)
    assert len(labels) == len(words)
    assert adjusted_rand_score(y, labels) == 1
    assert -1 not in labels


def test_hdbscan_takes_copies_of_one_object_in_a_family():
    words, _ = clear_families(3, 40)
    words += [words[0]] * 20
    graph = knn_graph(words, LEVENSHTEIN, 10, connected=True)
    assert (graph.data > 0).all()
    labels = HDBSCAN(min_cluster_size=10, metric="precomputed", copy=True).fit_predict(graph)
    assert len(labels) == len(words)
    assert len(set(labels[[0, *range(120, 140)]])) == 1


@given(st.lists(st.text("AB", max_size=3), min_size=3, max_size=12), st.integers(1, 2))
def test_no_distance_of_a_connected_graph_is_zero(words, k):
    graph = knn_graph(words, LEVENSHTEIN, k, connected=True)
    apart = np.array([[rapidfuzz.distance(x, y) for y in words] for x in words])
    stored = graph.tocoo()
    expected = apart[stored.row, stored.col].astype(float)
    small = 1e-6 * expected[expected > 0].min() if expected.any() else 1e-9
    np.testing.assert_array_equal(stored.data, np.where(expected == 0, small, expected))
    assert all((np.diff(row) >= 0).all() for row in np.split(graph.data, graph.indptr[1:-1]))


def test_the_smallest_distances_are_not_rounded_to_zero():
    numbers = np.array([5e-324, 5e-324, 0.0])
    graph = knn_graph(numbers[:, None], sm.distances.FromFunction(lambda x, y: abs(x[0] - y[0])), 1, connected=True)
    assert (graph.data > 0).all()


@settings(max_examples=80, deadline=None)
@given(st.lists(st.text("AB", max_size=5), min_size=3, max_size=14), st.integers(1, 2))
def test_components_are_joined_as_a_spanning_tree_of_all_pairs_joins_them(words, k):
    graph, joined = knn_graph(words, LEVENSHTEIN, k), knn_graph(words, LEVENSHTEIN, k, connected=True)
    count, component = connected_components(graph, directed=False)
    assert connected_components(joined, directed=False)[0] == 1
    entries = joined.tocoo()
    both = {(i, j): d for i, j, d in zip(entries.row.tolist(), entries.col.tolist(), entries.data, strict=True)}
    known = set(zip(graph.tocoo().row.tolist(), graph.tocoo().col.tolist(), strict=True))
    new = {pair: d for pair, d in both.items() if pair not in known}
    assert len(new) == 2 * (count - 1)
    assert all(d == rapidfuzz.distance(words[i], words[j]) == both[j, i] for (i, j), d in new.items())
    pairs = sorted(
        (rapidfuzz.distance(words[i], words[j]), component[i], component[j])
        for i, j in combinations(range(len(words)), 2)
    )
    label, total = np.arange(count), 0
    for d, a, b in pairs:  # Kruskal's algorithm
        if label[a] != label[b]:
            label[label == label[a]], total = label[b], total + d
    assert sum(new.values()) == 2 * total


def test_joined_components_of_many_objects(monkeypatch):
    words, _ = clear_families(40, 12)
    monkeypatch.setattr(neighbour_graph, "_SAMPLED", 60)  # some objects stand for all
    graph = knn_graph(words, LEVENSHTEIN, 5, connected=True, random_state=0)
    assert connected_components(graph)[0] == 1
    assert graph.nnz == knn_graph(words, LEVENSHTEIN, 5).nnz + 2 * 39
    assert (graph != graph.T).nnz == 0
    monkeypatch.setattr(neighbour_graph, "_SAMPLED", 10)  # more components than can be compared
    for method in ("exact", "kmers"):
        graph = knn_graph(words, LEVENSHTEIN, 5, method=method, connected=True, random_state=0)
        assert connected_components(graph)[0] == 1


def test_an_asymmetric_distance_joins_by_the_smaller_direction():
    def apart(x, y):
        return 0.0 if x[0] == y[0] else 3.0 if x < y else 5.0

    graph = knn_graph(["a1", "a2", "b1", "b2"], sm.distances.FromFunction(apart, symmetric=False), 1, connected=True)
    assert connected_components(graph)[0] == 1
    assert sorted(graph.data) == [3e-6, 3e-6, 3e-6, 3e-6, 3, 3]


# ---- objects of Dask collections
def same_graph(one, other):
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.same_bits
@pytest.mark.parametrize("method", ["exact", "kmers", "bits"])
@pytest.mark.parametrize("similarity", [LEVENSHTEIN, sm.kernels.Spectrum(k=3, normalize=True)])
def test_graph_of_a_dask_bag_is_that_in_memory(method, similarity):
    words, _ = clear_families(15, 20)
    make = partial(knn_graph, similarity=similarity, n_neighbors=5, method=method, random_state=3, return_recall=True)
    graph, recall = make(words, connected=True)
    with patch.object(neighbour_graph, "_TILE", 64):
        for lengths in ([300], [0, 120, 1, 0, 179, 0]):
            limits = np.cumsum([0, *lengths])
            parts = [dask.delayed(words[a:b]) for a, b in pairwise(limits.tolist())]
            found = make(dask.bag.from_delayed(parts), connected=True)
            same_graph(found[0], graph)
            assert found[1] == recall


@pytest.mark.parametrize("method", ["exact", "bits"])
def test_graph_of_a_dask_array_is_that_in_memory(method):
    X = np.random.default_rng(0).normal(size=(200, 5))
    make = partial(knn_graph, similarity=sm.kernels.RBF("median"), n_neighbors=4, method=method, random_state=0)
    same_graph(make(dask.array.from_array(X, chunks=(70, 2))), make(X))


@pytest.mark.parametrize("distance", [sm.distances.DTW(window=0.2), sm.distances.MSM()])
def test_exact_graph_of_series_in_a_dask_bag(distance):
    rng = np.random.default_rng(0)
    series = [rng.normal(size=n).cumsum() for n in rng.integers(5, 15, 300)]
    bag = dask.bag.from_sequence(series, npartitions=3)
    with patch.object(neighbour_graph, "_TILE", 140):
        same_graph(one_way(bag, distance, 5), one_way(series, distance, 5))


def test_an_asymmetric_distance_in_a_dask_bag():
    distance = sm.distances.FromFunction(lambda x, y: float(max(0, len(y) - len(x))), symmetric=False)
    words = ["a" * n for n in np.random.default_rng(0).integers(1, 30, 40)]
    with patch.object(neighbour_graph, "_TILE", 7):
        same_graph(one_way(dask.bag.from_sequence(words, npartitions=4), distance, 5), one_way(words, distance, 5))


def test_own_encoder_of_a_dask_bag():
    words = mutated_families(300)
    encoder = sm.MinHash(sm.kernels.Spectrum(k=4), 256, bits=1, random_state=0)
    make = partial(knn_graph, similarity=LEVENSHTEIN, n_neighbors=5, method="bits", encoder=encoder, random_state=0)
    same_graph(make(dask.bag.from_sequence(words, npartitions=4)), make(words))


def test_errors_name_objects_of_a_dask_bag():
    words = [*["a"] * 25, "b", *["c"] * 14]

    def refused(x, y):
        return float("nan") if "b" in (x, y) and "c" in (x, y) else float(x != y)

    bag = dask.bag.from_sequence(words, npartitions=4)
    encoder = sm.NGramEncoder(1, 64, random_state=0)
    with pytest.raises(ValueError, match=r"nan for X\[(25|2[6-9]|3\d)\] and X\[(25|2[6-9]|3\d)\]"):
        knn_graph(bag, sm.distances.FromFunction(refused), 20, method="bits", encoder=encoder, random_state=0)
    with pytest.raises(TypeError, match=r"X\[7\] is missing"):
        knn_graph(dask.bag.from_sequence([*["a"] * 7, None, "b"], npartitions=3), LEVENSHTEIN, 2)


# ---- in the hands of other libraries
@pytest.mark.ecosystem
def test_umap_takes_the_graph():
    umap = pytest.importorskip("umap", reason="umap-learn takes the graph of neighbours and is not installed")
    words, y = clear_families(3, 40)
    graph = knn_graph(words, LEVENSHTEIN, 15)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # UMAP says that it has no inverse transform, and takes one thread for the seed
        places = umap.UMAP(metric="precomputed", n_neighbors=15, random_state=0).fit_transform(graph)
    assert silhouette_score(places, y) > 0.8


@pytest.mark.ecosystem
def test_scanpy_takes_the_graph():
    scanpy = pytest.importorskip("scanpy", reason="scanpy takes the graph of neighbours and is not installed")
    anndata = pytest.importorskip("anndata", reason="anndata holds the objects of scanpy and is not installed")
    words, y = clear_families(3, 40)
    cells = anndata.AnnData(np.zeros((len(words), 1), np.float32))
    cells.obsm["graph"] = knn_graph(words, LEVENSHTEIN, 17)
    nearest = KNeighborsTransformer(n_neighbors=16, metric="precomputed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its dependencies
        scanpy.pp.neighbors(cells, transformer=nearest, use_rep="graph")  # as in the guide
        scanpy.tl.umap(cells, random_state=0)
    same_graph(cells.obsp["distances"], one_way(words, LEVENSHTEIN, 17))
    assert connected_components(cells.obsp["connectivities"])[0] == 3
    assert silhouette_score(cells.obsm["X_umap"], y) > 0.8
