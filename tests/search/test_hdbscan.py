"""HDBSCAN of objects against scikit-learn's on the full matrix of distances; medoids and new objects by definition."""

from __future__ import annotations

import dask.bag
import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn import cluster
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score

import similia as sm
from similia.search import hdbscan

EUCLIDEAN = sm.distances.FromFunction(cdist, pairwise=True)
LEVENSHTEIN = sm.distances.Levenshtein()
RNG = np.random.default_rng(0)


def same_clusters(a, b):
    """Return whether two labellings agree up to the numbers of clusters, with the same noise."""
    return adjusted_rand_score(a, b) == 1 and ((a < 0) == (b < 0)).all()


def blobs(seed, n=60):
    rng = np.random.default_rng(seed)
    centres = 4 * rng.normal(size=(rng.integers(1, 5), 2))
    return centres[rng.integers(len(centres), size=n)] + rng.uniform(0.3, 1.2) * rng.normal(size=(n, 2))


def of_all_pairs(X, **parameters):
    return cluster.HDBSCAN(metric="precomputed", copy=True, **parameters).fit(cdist(X, X))


# ---- clusters
CHOICES = st.builds(
    lambda size, which, more: {"min_cluster_size": size, "cluster_selection_method": which} | more,
    st.integers(2, 9),
    st.sampled_from(["eom", "leaf"]),
    st.sampled_from([{}, {"allow_single_cluster": True}, {"max_cluster_size": 20}]),
)


@given(st.integers(0, 2**32 - 1), CHOICES, st.integers(1, 2))
def test_with_all_pairs_it_is_that_of_scikit_learn(seed, parameters, min_samples):
    """With one or two samples, mutual reachability distances are distances, which differ from each other."""
    X = blobs(seed)
    expected = of_all_pairs(X, min_samples=min_samples, **parameters)
    found = sm.HDBSCAN(EUCLIDEAN, min_samples=min_samples, n_neighbors=59, **parameters).fit(X)
    assert same_clusters(found.labels_, expected.labels_)
    np.testing.assert_allclose(found.probabilities_, expected.probabilities_)


@given(st.integers(0, 2**32 - 1), CHOICES, st.integers(3, 10))
def test_of_equal_reachabilities_that_of_the_nearer_objects_comes_first(seed, parameters, min_samples):
    X = blobs(seed)
    D = cdist(X, X)
    core = np.sort(D, axis=1)[:, min_samples - 1]
    reach = np.maximum(D, np.maximum.outer(core, core)) + 1e-9 * D
    np.fill_diagonal(reach, 0)
    expected = cluster.HDBSCAN(metric="precomputed", copy=True, min_samples=1, **parameters).fit(reach)
    found = sm.HDBSCAN(EUCLIDEAN, min_samples=min_samples, n_neighbors=59, **parameters).fit(X)
    assert same_clusters(found.labels_, expected.labels_)
    np.testing.assert_allclose(found.probabilities_, expected.probabilities_)


@given(st.integers(0, 2**32 - 1), CHOICES, st.integers(1, 10), st.sampled_from([None, 12, 59]))
def test_the_order_of_objects_does_not_matter(seed, parameters, min_samples, n_neighbors):
    """In scikit-learn's HDBSCAN it does, because many mutual reachability distances are equal."""
    X, order = blobs(seed), np.random.default_rng(seed).permutation(60)
    model = sm.HDBSCAN(EUCLIDEAN, min_samples=min_samples, n_neighbors=n_neighbors, **parameters)
    expected, found = model.fit_predict(X), model.fit_predict(X[order])
    assert same_clusters(found, expected[order])


def changed(word, rng):
    letters = [*word]
    letters[rng.integers(len(letters))] = rng.choice([*"ACGT"])
    return "".join(letters)


def text(rng, size=40):
    return "".join(rng.choice([*"ACGT"], size))


def two_groups(kind):
    """Return 15 objects like one, 15 like another, and 4 that are farther from both than these are from each other."""
    rng, times = np.random.default_rng(1), np.linspace(0, 1, 40)
    if kind == "strings":
        root = text(rng)
        near = [changed(changed(start + root[10:], rng), rng) for start in (root[:10], "A" * 10) for _ in range(15)]
        return near + [text(rng) for _ in range(4)]
    if kind == "series":
        near = [np.sin(6 * times) + shift + 0.02 * rng.normal(size=40) for shift in (0, 0.4) for _ in range(15)]
        return near + [4 * rng.normal(size=30 + i) for i in range(4)]
    if kind == "graphs":
        near = [make(20 + i % 3) for make in (nx.path_graph, nx.cycle_graph) for i in range(15)]
        return [*near, nx.complete_graph(4), nx.full_rary_tree(3, 20), nx.barbell_graph(6, 0), nx.star_graph(9)]
    if kind == "sets":
        near = [rng.normal(size=(4 + i % 3, 2)) + at for at in (0, 30) for i in range(15)]
        return near + [np.full((2, 2), at) for at in (100.0, -200.0, 400.0, -900.0)]
    near = [[np.cos(a), np.sin(a), 0.0] for start in (0.0, 0.5) for a in start + np.linspace(0, 0.1, 15)]
    return np.array([*near, [0, 0, 1], [0, 0, -1], [0.1, -0.8, 0.6], [-0.5, -0.6, -0.6]])


@pytest.mark.parametrize(
    ("kind", "similarity"),
    [
        ("strings", LEVENSHTEIN),
        ("strings", sm.kernels.Spectrum(k=3, normalize=True)),
        ("series", sm.distances.DTW()),
        ("series", sm.kernels.GlobalAlignment(normalize=True)),
        ("graphs", sm.kernels.WeisfeilerLehman(n_iter=1, normalize=True)),
        ("sets", sm.distances.ModifiedHausdorff()),
        ("vectors", sm.kernels.Cosine("projection")),
        ("vectors", sm.distances.FromFunction(lambda x, y: float(np.abs(x - y).sum()))),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_two_groups_and_noise_are_found(kind, similarity):
    X = two_groups(kind)
    model = sm.HDBSCAN(similarity, min_cluster_size=6, random_state=0).fit(X)
    assert same_clusters(model.labels_, np.repeat([0, 1, -1], [15, 15, 4]))
    assert model.n_clusters_ == len(model.radii_) == 2
    assert (model.labels_[model.medoid_indices_] == [0, 1]).all()
    assert model.counts_.tolist() == [(model.labels_ == c).sum() for c in (0, 1)]
    assert ((model.probabilities_ > 0) == (model.labels_ >= 0)).all()
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(sm.HDBSCAN(similarity, 6, random_state=0).fit_predict(X), model.labels_)


@pytest.mark.parametrize("min_samples", [3, 6, 9])
@pytest.mark.parametrize(("kind", "distance"), [("strings", LEVENSHTEIN), ("series", sm.distances.DTW())])
def test_clear_groups_are_those_of_scikit_learn(kind, distance, min_samples):
    X = two_groups(kind)
    expected = cluster.HDBSCAN(6, min_samples, metric="precomputed", copy=True).fit(distance(X).astype(float))
    found = sm.HDBSCAN(distance, 6, min_samples, n_neighbors=33).fit(X)
    assert same_clusters(found.labels_, expected.labels_)
    np.testing.assert_allclose(found.probabilities_, expected.probabilities_, rtol=1e-6)


@pytest.mark.parametrize("method", ["exact", "kmers", "bits"])
def test_every_method_of_the_graph_finds_clear_groups(method):
    X = two_groups("strings")
    model = sm.HDBSCAN(LEVENSHTEIN, 6, method=method, random_state=0).fit(X)
    assert same_clusters(model.labels_, np.repeat([0, 1, -1], [15, 15, 4]))


# ---- equal objects
@pytest.mark.parametrize("similarity", [LEVENSHTEIN, sm.kernels.Spectrum(k=2, normalize=True)])
def test_many_equal_objects(similarity):
    words = np.repeat(["ACACACAC", "GGTTGGTT", "CATGATGA"], [30, 6, 12]).tolist()
    model = sm.HDBSCAN(similarity, min_cluster_size=5).fit(words)
    assert same_clusters(model.labels_, np.repeat([0, 1, 2], [30, 6, 12]))
    np.testing.assert_array_equal(model.predict(words), model.labels_)


@pytest.mark.parametrize("similarity", [LEVENSHTEIN, sm.kernels.Spectrum(k=2)])
def test_all_objects_equal(similarity):
    words = ["ACAC"] * 12
    none = sm.HDBSCAN(similarity).fit(words)
    assert (none.labels_ == -1).all()
    assert none.n_clusters_ == len(none.medoids_) == 0
    assert none.predict(["ACAC", "GGG"]).tolist() == [-1, -1]
    one = sm.HDBSCAN(similarity, allow_single_cluster=True).fit(words)
    assert (one.labels_ == 0).all()
    assert one.medoid_indices_.tolist() == [0]
    assert one.predict(["ACAC", "GGG"]).tolist() == [0, -1]


# ---- medoids
def test_the_medoid_has_the_least_sum_of_distances():
    X = blobs(3, 150)
    model = sm.HDBSCAN(EUCLIDEAN, 8).fit(X)
    assert model.n_clusters_ > 1
    for c, medoid in enumerate(model.medoid_indices_):
        members = np.flatnonzero(model.labels_ == c)
        assert medoid == members[cdist(X[members], X[members]).sum(axis=1).argmin()]
    np.testing.assert_array_equal(model.medoids_, X[model.medoid_indices_])


def test_of_equal_sums_the_first_member_is_the_medoid():
    """On a circle of 9 points, all sums are the same, up to rounding."""
    angles = 2 * np.pi * np.arange(9) / 9
    circle = np.c_[np.cos(angles), np.sin(angles)]
    model = sm.HDBSCAN(EUCLIDEAN, 9, 3, allow_single_cluster=True).fit(circle)
    assert model.medoid_indices_.tolist() == [0]


def test_large_clusters_are_compared_with_a_sample(monkeypatch):
    monkeypatch.setattr(hdbscan, "_COMPARED", 20)
    X = RNG.normal(size=(400, 2)) + np.repeat([[0, 0], [30, 0]], 200, axis=0)
    found = sm.HDBSCAN(EUCLIDEAN, 20, random_state=0).fit(X)
    assert found.n_clusters_ == 2
    for c, medoid in enumerate(found.medoid_indices_):
        D = cdist(X[found.labels_ == c], X[found.labels_ == c]).mean(axis=1)
        assert cdist(X[[medoid]], X[found.labels_ == c]).mean() < np.quantile(D, 0.2)
    again = sm.HDBSCAN(EUCLIDEAN, 20, random_state=0)
    with sm.config(max_memory="256KiB"):
        np.testing.assert_array_equal(again.fit(X).medoid_indices_, found.medoid_indices_)


# ---- new objects
def predicted(X, labels, min_samples, new):
    """Return the labels of new vectors by definition."""
    k = max(1, min_samples - 1)
    core = np.sort(cdist(X, X), axis=1)[:, k]  # column 0 is the object itself
    found = []
    for row in cdist(new, X):
        label = labels[row.argmin()]
        inside = label >= 0 and np.sort(row)[k - 1] <= core[labels == label].max()
        found.append(label if inside else -1)
    return found


@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.integers(1, 8))
def test_new_objects_by_definition(seed, min_cluster_size, min_samples):
    X = blobs(seed)
    model = sm.HDBSCAN(EUCLIDEAN, min_cluster_size, min_samples).fit(X)
    new = np.vstack([X[::7], np.random.default_rng(seed).uniform(-9, 9, (60, 2))])
    assert model.predict(new).tolist() == predicted(X, model.labels_, min_samples, new)


@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.integers(1, 8), st.booleans())
def test_training_objects_get_their_labels(seed, min_cluster_size, min_samples, single):
    model = sm.HDBSCAN(EUCLIDEAN, min_cluster_size, min_samples, allow_single_cluster=single)
    X = blobs(seed)
    np.testing.assert_array_equal(model.fit_predict(X), model.predict(X))


def test_objects_in_between_and_far_away_are_noise():
    X = two_groups("strings")
    model = sm.HDBSCAN(LEVENSHTEIN, 6).fit(X)
    half = X[0][:20] + X[15][20:]
    near = changed(X[0], np.random.default_rng(5))
    assert model.predict([half, "ACGT", near]).tolist() == [-1, -1, model.labels_[0]]


def test_labels_of_the_training_objects_are_not_predicted_again(monkeypatch):
    X = two_groups("strings")
    model = sm.HDBSCAN(LEVENSHTEIN, 6).fit(X)
    np.testing.assert_array_equal(model._labels_of(X[::-1]), model.labels_[::-1])
    np.testing.assert_array_equal(model._labels_of(X[:3]), model.labels_[:3])
    monkeypatch.setattr(sm.HDBSCAN, "predict", None)
    np.testing.assert_array_equal(model._labels_of(X), model.labels_)


# ---- files, Dask, settings
def test_save_and_load(tmp_path):
    X = two_groups("series")
    model = sm.HDBSCAN(sm.distances.DTW(), 6).fit(X)
    loaded = sm.load(sm.save(model, tmp_path / "m.similia"))
    new = [x + 0.01 for x in X]
    np.testing.assert_array_equal(loaded.predict(new), model.predict(new))
    np.testing.assert_array_equal(loaded.labels_, model.labels_)
    assert loaded.n_clusters_ == 2
    np.testing.assert_array_equal(loaded.medoids_.values, model.medoids_.values)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("labels_", np.repeat([0, 1, 2], [15, 15, 4])),
        ("labels_", np.repeat([0, 1, -2], [15, 15, 4])),
        ("labels_", np.repeat([0, 1, -1], [15, 15, 3])),
        ("medoid_indices_", np.array([0, 34])),
        ("medoid_indices_", np.array([15, 0])),
        ("radii_", np.ones(1)),
        ("neighbors_", None),
        ("neighbors_", sm.NearestNeighbors(LEVENSHTEIN)),
    ],
)
def test_damaged_files_are_refused(tmp_path, name, value):
    model = sm.HDBSCAN(LEVENSHTEIN, 6).fit(two_groups("strings"))
    setattr(model, name, value)
    with pytest.raises(ValueError, match="HDBSCAN"):
        sm.save(model, tmp_path / "m.similia")


def test_dask():
    X = two_groups("strings")
    model = sm.HDBSCAN(LEVENSHTEIN, 6).fit(X)
    bag = dask.bag.from_sequence([*X, "ACGT"], npartitions=3)
    np.testing.assert_array_equal(model.predict(bag).compute(scheduler="sync"), model.predict([*X, "ACGT"]))
    with pytest.raises(TypeError, match="X is a Dask collection, and fit keeps all objects in memory; fit to a sample"):
        sm.HDBSCAN(LEVENSHTEIN).fit(bag)


@pytest.mark.same_bits
def test_neither_memory_nor_threads_change_the_model():
    X = [text(RNG, 30) for _ in range(40)] + two_groups("strings")
    one = sm.HDBSCAN(LEVENSHTEIN, 4, 2, random_state=0).fit(X)
    with sm.config(max_memory="128KiB", n_jobs=2):
        other = sm.HDBSCAN(LEVENSHTEIN, 4, 2, random_state=0).fit(X)
        np.testing.assert_array_equal(one.predict(X), other.predict(X))
    for name in ("labels_", "probabilities_", "medoid_indices_", "radii_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_progress_is_shown(capsys):
    with sm.config(progress=True):
        sm.HDBSCAN(LEVENSHTEIN, 6).fit(two_groups("strings"))
    said = capsys.readouterr().err
    assert "neighbours" in said
    assert "medoids: 2/2" in said


# ---- what is wrong is said
@pytest.mark.parametrize(
    ("parameters", "n", "sentence"),
    [
        ({}, 1, r"X holds 1 object \(n_samples = 1\), expected at least min_cluster_size=5; give more objects, or set"),
        ({}, 4, r"X holds 4 objects \(n_samples = 4\), expected at least min_cluster_size=5"),
        (
            {"min_cluster_size": 35},
            34,
            "holds 34 objects .* at least min_cluster_size=35; .* set min_cluster_size l",
        ),
        ({"min_samples": 9}, 8, "holds 8 objects .* expected at least min_samples=9; .* or set min_samples lower"),
        ({}, 0, "X is empty"),
        ({"min_cluster_size": 1}, 34, "min_cluster_size must be an integer >= 2, got 1"),
        ({"min_samples": 0}, 34, "min_samples must be an integer >= 1, got 0"),
        (
            {"n_neighbors": 3},
            34,
            "n_neighbors must be at least 4, which is min_samples - 1, got 3; raise it, or ",
        ),
        ({"n_neighbors": 0, "min_samples": 1}, 34, "n_neighbors must be an integer >= 1, got 0"),
        ({"max_cluster_size": 0}, 34, "max_cluster_size must be an integer >= 1, got 0"),
        ({"max_cluster_size": 9, "allow_single_cluster": True}, 34, "max_cluster_size must be None if allow_single_cl"),
        ({"max_cluster_size": 4}, 34, "max_cluster_size must be at least min_cluster_size=5, got 4"),
        ({"cluster_selection_method": "eon"}, 34, "cluster_selection_method must be 'eom' or 'leaf', got 'eon'"),
        ({"allow_single_cluster": "no"}, 34, "allow_single_cluster must be True or False, got 'no'"),
        ({"method": "fast"}, 34, "method must be 'auto', 'exact', 'kmers' or 'bits', got 'fast'"),
        ({"similarity": len}, 34, "similarity is len, which may be a kernel or a distance"),
        ({"similarity": "cosine"}, 34, "similarity must be a kernel or distance of similia, got 'cosine'"),
    ],
)
def test_wrong_arguments(parameters, n, sentence):
    with pytest.raises(ValueError, match=sentence):
        sm.HDBSCAN(**{"similarity": LEVENSHTEIN, **parameters}).fit(two_groups("strings")[:n])


def test_a_graph_larger_than_memory_is_refused():
    sentence = (
        r"the graph of 400 objects and their 399 neighbours takes 7 MiB, and max_memory is 4 MiB; lower n_neighbors"
    )
    X = RNG.normal(size=(400, 2))
    with sm.config(max_memory="4MiB"):
        with pytest.raises(ValueError, match=sentence):
            sm.HDBSCAN(EUCLIDEAN, n_neighbors=399).fit(X)
        sm.HDBSCAN(EUCLIDEAN).fit(X)


def test_more_neighbours_than_objects():
    with pytest.warns(UserWarning, match="n_neighbors=99 is more than the 33 other training objects: all 33 are used"):
        sm.HDBSCAN(LEVENSHTEIN, n_neighbors=99).fit(two_groups("strings"))


def test_unfitted():
    with pytest.raises(NotFittedError):
        sm.HDBSCAN(LEVENSHTEIN).predict(["A"])
