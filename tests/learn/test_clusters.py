"""Kernel k-means: beside its definition on the Gram matrix and scikit-learn's k-means; streams, Dask, bad input."""

from __future__ import annotations

import warnings
from itertools import pairwise

import dask.array
import dask.bag
import numpy as np
import pandas
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import linear_kernel

import similia as sm
from similia.core.config import limited_to
from similia.learn import clusters
from similia.learn.clusters import _squared_distances
from tests.naive import kernel_kmeans as naive

SPECTRUM = sm.kernels.Spectrum(k=2, normalize=True)
LETTERS = ["ab", "cd", "ef"]


def strings(n, seed=0):
    """Return strings of three kinds, by their letters, and the kinds."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, 3, n)
    kinds[:3] = range(3)
    return ["".join(rng.choice([*LETTERS[kind], "x"], size=rng.integers(5, 15))) for kind in kinds], kinds


def groups(n=300, seed=0):
    return make_blobs(n, centers=[[0, 0], [8, 0], [0, 8]], random_state=seed)


def same(one, other):
    """Compare two fitted models, bit for bit."""
    for name in ("labels_", "cluster_centers_", "medoid_indices_", "counts_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)
    assert (one.inertia_, one.n_iter_) == (other.inertia_, other.n_iter_)


# ---- the definition
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(6, 30), k=st.integers(1, 4))
def test_a_fit_is_a_fixed_point_of_kernel_k_means(seed, n, k):
    X, _ = strings(n + 3, seed)
    model = sm.KernelKMeans(SPECTRUM, k, tol=0, random_state=seed).fit(X[:n])
    if (model.counts_ == 0).any():
        return  # warned of, and tested below
    K = SPECTRUM(X)
    D = naive.squared_distances(K[:n, :n], K[:n, :n], K.diagonal()[:n], model.labels_, k)
    np.testing.assert_allclose(model.transform(X[:n]) ** 2, D, atol=1e-8)
    np.testing.assert_allclose(D[np.arange(n), model.labels_], D.min(axis=1), atol=1e-8)
    np.testing.assert_array_equal(model.labels_[model.medoid_indices_], np.arange(k))
    least = [D[model.labels_ == c, c].min() for c in range(k)]
    np.testing.assert_allclose(D[model.medoid_indices_, np.arange(k)], least, atol=1e-8)
    assert model.inertia_ == pytest.approx(D.min(axis=1).sum(), abs=1e-7)
    assert model.score(X[:n]) == pytest.approx(-model.inertia_, abs=1e-7)
    np.testing.assert_array_equal(model.predict(X[:n]), model.labels_)
    np.testing.assert_array_equal(model.counts_, np.bincount(model.labels_, minlength=k))
    assert list(model.medoids_) == [X[i] for i in model.medoid_indices_]
    if model.embedding_.rank_ == n:  # every direction of the feature space of the training objects is there
        # New objects have a part outside that space, which no centre sees: squared distances lose the same for all.
        new = naive.squared_distances(K[:n, :n], K[n:, :n], K.diagonal()[n:], model.labels_, k)
        lost = new - model.transform(X[n:]) ** 2
        np.testing.assert_allclose(lost, lost[:, :1].repeat(k, axis=1), atol=1e-7)


@pytest.mark.parametrize("spread", [0.5, 4.0])
def test_scikit_learn_finds_the_same_inertia_of_vectors(spread):
    X, _ = make_blobs(400, centers=4, n_features=5, cluster_std=spread, random_state=1)
    ours = sm.KernelKMeans(linear_kernel, 4, n_init=20, tol=1e-9, random_state=0).fit(X)
    theirs = KMeans(4, n_init=20, tol=1e-9, random_state=0).fit(X)
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-3)
    assert adjusted_rand_score(ours.labels_, theirs.labels_) > 0.98
    np.testing.assert_allclose(np.sort(ours.transform(X), axis=1), np.sort(theirs.transform(X), axis=1), atol=0.05)


@pytest.mark.parametrize(
    ("similarity", "X"),
    [
        (SPECTRUM, strings(60)[0]),
        (sm.distances.JaroWinkler(), strings(60)[0]),
        (sm.distances.FromFunction(lambda x, y: float(len(set(x) ^ set(y)))), strings(60)[0]),
        (sm.pairwise(lambda x, y: len(set(x) & set(y)) / len(set(x) | set(y))), strings(60)[0]),
    ],
)
def test_kernels_and_distances_find_the_kinds(similarity, X):
    model = sm.KernelKMeans(similarity, 3, n_landmarks=40, random_state=0).fit(X)
    assert adjusted_rand_score(strings(60)[1], model.labels_) > 0.9
    assert isinstance(model.embedding_, sm.D2KE if isinstance(similarity, sm.distances.Distance) else sm.Nystroem)


def test_more_starts_never_end_worse():
    X, _ = make_blobs(200, centers=12, n_features=2, random_state=3)
    inertia = [sm.KernelKMeans(linear_kernel, 12, n_init=n, random_state=0).fit(X).inertia_ for n in (1, 4, 16)]
    assert inertia[0] >= inertia[1] >= inertia[2]
    assert inertia[0] > inertia[2]


def test_distances_of_close_vectors_keep_their_digits():
    X = 1e4 + np.random.default_rng(0).normal(size=(40, 3)) * np.array([1e-3, 1e-3, 1.0])
    squares, exact = _squared_distances(X, X[:5]), ((X[:, None] - X[:5]) ** 2).sum(axis=2)
    np.testing.assert_allclose(squares, exact, rtol=1e-9)
    np.testing.assert_array_equal(squares[:5].diagonal(), 0)


# ---- the same for any blocks, threads and partitions
@pytest.mark.parametrize("similarity", [SPECTRUM, sm.distances.Levenshtein()])
def test_dask_memory_and_threads_change_nothing(similarity, monkeypatch):
    monkeypatch.setattr("similia.learn.clusters._BLOCK", 16)
    X, _ = strings(90)
    make = lambda: sm.KernelKMeans(similarity, 4, n_landmarks=20, random_state=7)  # noqa: E731
    model = make().fit(X)
    assert model.medoid_indices_.max() >= 16
    for parts in (1, 4):
        bag = dask.bag.from_sequence(X, npartitions=parts)
        other = make().fit(bag)
        same(model, other)
        np.testing.assert_array_equal(other.predict(bag).compute(), model.labels_)
        assert other.score(bag) == pytest.approx(-model.inertia_, rel=1e-9)
    with sm.config(max_memory=2000):
        same(model, make().fit(X))
    with limited_to(1):
        same(model, make().fit(X))
    np.testing.assert_array_equal(np.concatenate([model.transform([x]) for x in X]), model.transform(X))


def test_dask_array_of_vectors():
    X, _ = groups()
    model = sm.KernelKMeans(linear_kernel, 3, random_state=0)
    same(sm.KernelKMeans(linear_kernel, 3, random_state=0).fit(X), model.fit(dask.array.from_array(X, chunks=(70, 1))))


def test_starts_on_a_sample_go_on_with_all_objects(monkeypatch):
    monkeypatch.setattr("similia.learn.clusters._SAMPLE", 50)
    X, y = groups()
    model = sm.KernelKMeans(linear_kernel, 3, random_state=0).fit(X)
    assert len(model.labels_) == model.counts_.sum() == 300
    assert adjusted_rand_score(y, model.labels_) == 1
    means = [model.embedding_.transform(X[model.labels_ == c]).mean(axis=0) for c in range(3)]
    np.testing.assert_allclose(model.cluster_centers_, means, atol=1e-9)


# ---- streams
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), sizes=st.lists(st.integers(1, 40), min_size=1, max_size=4))
def test_partial_fit_keeps_running_means(seed, sizes):
    X, _ = strings(20 + sum(sizes), seed)
    model = sm.KernelKMeans(SPECTRUM, 3, random_state=0).partial_fit(X[:20])
    same(model, sm.KernelKMeans(SPECTRUM, 3, random_state=0).fit(X[:20]))
    first, stops = (model.cluster_centers_, model.counts_), 20 + np.cumsum([0, *sizes])
    batches = [X[a:b] for a, b in pairwise(stops)]
    for batch in batches:
        before = model.cluster_centers_.copy()
        model.partial_fit(batch)
        assert not np.shares_memory(before, model.cluster_centers_)
    centers, counts = naive.running_means(*first, [model.embedding_.transform(batch) for batch in batches])
    np.testing.assert_allclose(model.cluster_centers_, centers, atol=1e-10)
    np.testing.assert_array_equal(model.counts_, counts)
    assert (model.n_seen_, len(model.labels_)) == (len(X), sizes[-1])
    assert list(model.medoids_) == [X[i] for i in model.medoid_indices_]
    np.testing.assert_array_equal(model.predict(batches[-1]), model.labels_)
    of_medoids, of_batch = model.transform(model.medoids_).diagonal(), model.transform(batches[-1])
    for c in np.unique(model.labels_):
        assert of_medoids[c] <= of_batch[model.labels_ == c, c].min() + 1e-9
        assert model.predict(model.medoids_)[c] == c


def test_an_object_near_every_centre_is_the_medoid_of_its_cluster_only():
    # Members are at distance 1.8 from their centres, in directions of their own; the last object is at distance 1.7.
    X = np.concatenate([2 * np.eye(12), np.zeros((1, 12))])
    X = np.column_stack([X, np.repeat([1.5, -1.5, 0], [6, 6, 1])])
    model = sm.KernelKMeans(linear_kernel, 2, random_state=0).fit(X)
    assert adjusted_rand_score(np.repeat([0, 1], 6), model.labels_[:12]) == 1
    np.testing.assert_array_equal(model.labels_[model.medoid_indices_], [0, 1])
    model.partial_fit(np.concatenate([X[:6], X[-1:]]))
    np.testing.assert_array_equal(model.predict(model.medoids_), [0, 1])


def test_a_stream_finds_groups_and_its_medoids_move():
    X, y = groups(3000)
    model = sm.KernelKMeans(linear_kernel, 3, random_state=0)
    for start in range(0, 3000, 300):
        model.partial_fit(X[start : start + 300])
    assert adjusted_rand_score(y, model.predict(X)) == 1
    assert (model.medoid_indices_ >= 300).any()
    distances = np.linalg.norm(
        X[model.medoid_indices_] - np.array([X[y == c].mean(axis=0) for c in y[model.medoid_indices_]]), axis=1
    )
    assert (distances < 0.5).all()


# ---- the number of clusters
def test_stability_finds_the_number_of_groups():
    X, y = groups()
    model = sm.KernelKMeans(linear_kernel, "stability", random_state=0).fit(X)
    assert model.n_clusters_ == 3
    assert adjusted_rand_score(y, model.labels_) == 1
    np.testing.assert_array_equal(model.n_clusters_tried_, range(2, 11))
    assert model.stability_.shape == (9, 10)
    np.testing.assert_array_equal(model.stability_[1], 1)
    assert (model.stability_[5:] < 1).any(axis=1).all()


def test_a_list_tries_its_numbers_and_a_number_tries_none():
    X, _ = groups()
    model = sm.KernelKMeans(linear_kernel, [7, 3], random_state=0).fit(X)
    np.testing.assert_array_equal(model.n_clusters_tried_, [3, 7])
    assert model.n_clusters_ == 3
    assert sm.KernelKMeans(linear_kernel, 5).fit(X).stability_.shape == (0, 10)


def test_chance_is_not_stable():
    X = np.random.default_rng(0).normal(size=(300, 8))
    model = sm.KernelKMeans(linear_kernel, [4, 8], n_init=1, random_state=0).fit(X)
    assert model.stability_.mean() < 0.6


def test_many_clusters_are_found_in_as_many_objects(monkeypatch):
    monkeypatch.setattr(clusters, "_STABILITY_SAMPLE", 20)
    monkeypatch.setattr(clusters, "_SAMPLE", 20)
    X, _ = groups(60)
    model = sm.KernelKMeans(linear_kernel, [3, 25], n_init=1, random_state=0).fit(X)
    np.testing.assert_array_equal(model.n_clusters_tried_, [3, 25])
    assert sm.KernelKMeans(linear_kernel, 25, n_init=1, random_state=0).fit(X).n_clusters_ == 25


def repeated(families, noise=0.2, copies=10):
    """Return vectors near one centre for each family, `copies` times each, and the family of each."""
    rng = np.random.default_rng(1)
    y = np.repeat(np.arange(len(families)), families)
    X = rng.normal(size=(len(families), 20))[y] + noise * rng.normal(size=(len(y), 20))
    return np.tile(X, (copies, 1)), np.tile(y, copies)


@pytest.mark.parametrize(
    ("families", "expected"), [((1, 1), 2), ((1, 1, 1), 3), ((2, 2), 2), ((3, 3, 3), 3), ((5, 5), 2)]
)
def test_copies_do_not_make_many_clusters_stable(families, expected):
    X, y = repeated(families)
    for model in (sm.KernelKMeans(linear_kernel, "stability", random_state=seed).fit(X) for seed in range(3)):
        assert model.n_clusters_ == expected
        assert adjusted_rand_score(y, model.labels_) == 1
        assert model.n_clusters_tried_.max() == sum(families)  # a cluster for each different object
        np.testing.assert_array_equal(model.stability_[-1], 1)
        assert (model.counts_ > 0).all()


def test_copies_of_strings():
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice([*letters], 30)) for letters in ("AC", "GT", "AG") for _ in range(3)]
    for chosen, expected in ((words, 3), (words[::3], 3), (words[:4:3], 2)):
        model = sm.KernelKMeans(SPECTRUM, "stability", random_state=0).fit(chosen * 20)
        assert model.n_clusters_ == expected
        assert len(set(model.labels_)) == expected


def test_objects_far_from_each_other_with_copies_are_clusters():
    X = np.tile(10 * np.eye(6), (20, 1))
    for seed in range(5):
        assert sm.KernelKMeans(linear_kernel, "stability", random_state=seed).fit(X).n_clusters_ == 6
    some = np.concatenate([X[:6], X[:1]])  # only one object has a copy
    assert sm.KernelKMeans(linear_kernel, "stability", random_state=0).fit(some).n_clusters_tried_.max() < 6


def test_stability_needs_different_objects():
    with pytest.raises(ValueError, match=r"X holds only 1 object that the similarity tells apart, expected"):
        sm.KernelKMeans(SPECTRUM, "stability").fit(["acac"] * 40)
    with pytest.raises(ValueError, match=r"X holds only 2 objects that .* expected at least 3; set n_clusters to one"):
        sm.KernelKMeans(SPECTRUM, [3, 4]).fit(["acac", "gtgt"] * 20)


# ---- input that is unusual or wrong
@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_labels_whatever_the_output_of_scikit_learn(output):
    X, _ = strings(20)
    model = sm.KernelKMeans(SPECTRUM, 2, random_state=0).set_output(transform=output).fit(X)
    assert list(model.transform(X).columns) == ["kernelkmeans0", "kernelkmeans1"]
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model.score(X) == pytest.approx(-model.inertia_)
    with config_context(transform_output=output):
        same(model, sm.KernelKMeans(SPECTRUM, 2, random_state=0).fit(X))


@pytest.mark.filterwarnings("ignore:X has feature names")
def test_medoids_of_frames_and_arrays_are_rows():
    X, _ = groups()
    frame = pandas.DataFrame(X[:150], columns=["a", "b"])
    for first, second in ((frame, X[150:]), (X[:150], frame), (scipy.sparse.csr_array(X[:150]), X[150:])):
        model = sm.KernelKMeans(linear_kernel, 3, random_state=0).partial_fit(first).partial_fit(second)
        assert model.medoids_.shape == (3, 2)


def test_fewer_different_objects_than_clusters():
    X = ["abab", "cdcd"] * 4
    with pytest.warns(
        UserWarning, match=r"1 of 3 clusters are empty, because too few objects are different; lower n_clusters"
    ):
        model = sm.KernelKMeans(SPECTRUM, 3, random_state=0).fit(X)
    assert model.inertia_ == pytest.approx(0, abs=1e-12)
    assert len(set(model.labels_)) == 2


@pytest.mark.parametrize("max_memory", [2**30, 100], ids=["vectors kept", "computed again"])
@pytest.mark.parametrize("n_strangers", [4, 9])
def test_fit_warns_of_objects_that_share_nothing_with_the_landmarks_as_transform_does(n_strangers, max_memory):
    X = ["abab", "abba", "baba", "bbaa"] * 2 + [letter * 4 for letter in "cdefghijk"[:n_strangers]]
    model = sm.KernelKMeans(SPECTRUM, 2, n_landmarks=1, random_state=1)
    with warnings.catch_warnings(record=True) as of_fit, sm.config(max_memory=max_memory):
        warnings.simplefilter("always")
        model.fit(X)
    assert model.embedding_.landmark_indices_[0] < 8  # one of the strings of a and b
    with warnings.catch_warnings(record=True) as of_transform:
        warnings.simplefilter("always")
        model.transform(X)
    assert {str(one.message) for one in of_fit} == {str(one.message) for one in of_transform}
    said = ["9 of 17 objects have similarity 0 to all landmarks"] if n_strangers == 9 else []
    assert [str(one.message).split(" and get")[0] for one in of_transform] == said


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_clusters": 0}, r"n_clusters.* integer >= 1.*0"),
        ({"n_clusters": "many"}, r"n_clusters.*stability.*many"),
        ({"n_clusters": []}, r"n_clusters.*list of integers >= 2"),
        ({"n_clusters": [1, 2]}, r"n_clusters.*>= 2.*1"),
        ({"n_clusters": 7}, r"X holds 6 objects.*at least n_clusters=7"),
        ({"n_clusters": [2, 7]}, r"X holds 6 objects.*at least n_clusters=7"),
        ({"n_landmarks": 0}, r"n_landmarks"),
        ({"n_init": 0}, r"n_init"),
        ({"max_iter": 0}, r"max_iter"),
        ({"tol": -1}, r"tol"),
        ({"similarity": "precomputed"}, r"similarity is 'precomputed', expected a kernel"),
        ({"similarity": sm.kernels.Spectrum}, r"similarity is the class Spectrum.*write Spectrum\(\.\.\.\)"),
        ({"similarity": sm.pairwise(lambda x, y: float(x != y))}, r"similarity must be a kernel.*FromFunction\(f\)"),
    ],
)
def test_bad_parameters_get_one_sentence(parameters, message):
    with pytest.raises((TypeError, ValueError), match=message):
        sm.KernelKMeans(**{"similarity": SPECTRUM, "n_clusters": 2} | parameters).fit(strings(6)[0])


def test_stability_takes_two_objects():
    with pytest.raises(ValueError, match=r"X holds 1 object, expected at least 2$"):
        sm.KernelKMeans(SPECTRUM, "stability").fit(["ab"])
    assert sm.KernelKMeans(SPECTRUM, "stability", random_state=0).fit(["ab", "cd"]).n_clusters_ == 2


def test_partial_fit_says_what_it_cannot_do():
    X, _ = strings(20)
    model = sm.KernelKMeans(SPECTRUM, 2, random_state=0).partial_fit(X)
    with pytest.raises(TypeError, match=r"Dask collection, and partial_fit takes one batch"):
        model.partial_fit(dask.bag.from_sequence(X))
    with pytest.raises(ValueError, match=r"n_clusters=3, but the fitted model has 2 clusters; fit a new"):
        model.set_params(n_clusters=3).partial_fit(X)
    with pytest.raises(ValueError, match=r"X is empty"):
        model.set_params(n_clusters=2).partial_fit([])


@pytest.mark.parametrize("similarity", [SPECTRUM, sm.distances.Levenshtein()])
def test_save_and_load(tmp_path, similarity):
    X, _ = strings(40)
    model = sm.KernelKMeans(similarity, [2, 3], random_state=0).fit(X[:30])
    sm.save(model, tmp_path / "clusters.sim")
    other = sm.load(tmp_path / "clusters.sim")
    np.testing.assert_array_equal(other.transform(X), model.transform(X))
    same(model.partial_fit(X[30:]), other.partial_fit(X[30:]))


@pytest.mark.parametrize("k", [2, 3])
def test_explain_says_why_an_object_is_in_its_cluster(k):
    X, _ = strings(40)
    model = sm.KernelKMeans(SPECTRUM, k, random_state=0).fit(X[:30])
    for x in X[30:35]:
        found = sm.explain(model, x)
        first, second = np.sort(model.transform([x])[0])[:2]
        assert found.value == pytest.approx(second**2 - first**2)
        total = sum(part.contribution for part in found.parts) + found.residual + found.omitted
        assert total == pytest.approx(found.value)
        assert f"for cluster {model.predict([x])[0]} against" in found.title
        assert {part.name for part in found.parts} - {"intercept"} <= {x[i : i + 2] for i in range(len(x))}


def test_one_cluster_has_nothing_to_explain():
    X, _ = strings(10)
    with pytest.raises(ValueError, match="the model has one cluster"):
        sm.explain(sm.KernelKMeans(SPECTRUM, 1).fit(X), X[0])
