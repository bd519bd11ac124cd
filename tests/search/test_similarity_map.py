"""Maps of objects against kernel PCA and classical scaling, their measures, and new objects."""

from __future__ import annotations

import sys

import dask.array
import dask.bag
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.decomposition import PCA, KernelPCA
from sklearn.manifold import trustworthiness

import similia as sm
from similia.search import similarity_map
from similia.search.similarity_map import interpolated, neighbourhoods_kept
from tests.naive import similarities as naive

SPECTRUM = sm.kernels.Spectrum(k=2, normalize=True)
EUCLIDEAN = sm.distances.FromFunction(cdist, pairwise=True)
RNG = np.random.default_rng(0)
WORDS = ["".join(RNG.choice(list("ACGT"), 12 + i % 9)) for i in range(60)]


class Doubled:
    """Stands for UMAP: checks what it is given, and moves each object to twice its start."""

    def __init__(
        self, n_neighbors, precomputed_knn, init, random_state, n_jobs, force_approximation_algorithm, tqdm_kwds
    ):  # fmt: skip
        near, apart = precomputed_knn
        assert near.shape == apart.shape == (len(init), n_neighbors)
        np.testing.assert_array_equal(near[:, 0], np.arange(len(init)))
        assert (np.diff(apart, axis=1) >= 0).all()
        assert isinstance(random_state, int)
        self.bar = tqdm_kwds

    def fit_transform(self, X):
        if not self.bar["disable"]:
            print(self.bar["desc"], file=sys.stderr)
        return 2 * np.asarray(X, dtype=np.float32)


def up_to_signs(found, expected, tolerance=1e-8):
    """Assert that columns are equal or opposite."""
    signs = np.sign((found * expected).sum(axis=0))
    np.testing.assert_allclose(found * signs, expected, atol=tolerance * np.abs(expected).max())


def test_with_all_objects_as_landmarks_it_is_kernel_pca():
    found = sm.SimilarityMap(SPECTRUM).fit(WORDS)
    other = KernelPCA(2, kernel="precomputed")
    up_to_signs(found.embedding_, other.fit_transform(SPECTRUM(WORDS)))
    new = ["ACGTACGTTT", "GGGGGGAAAA"]
    up_to_signs(np.vstack([found.transform(new), found.embedding_]), other.transform(SPECTRUM([*new, *WORDS], WORDS)))


def test_with_all_objects_as_landmarks_it_is_classical_scaling():
    D = sm.distances.Levenshtein()(WORDS)
    expected = KernelPCA(2, kernel="precomputed").fit_transform(-0.5 * D.astype(float) ** 2)  # which centres its matrix
    found = sm.SimilarityMap(sm.distances.Levenshtein()).fit_transform(WORDS)
    up_to_signs(found, expected, tolerance=1e-5)  # the distances are float32


@pytest.mark.parametrize("similarity", [EUCLIDEAN, sm.kernels.Cosine("projection")], ids=["distance", "kernel"])
def test_few_landmarks_span_flat_data(similarity):
    """Points of a plane in space need three landmarks; on the sphere, three span the plane through its centre."""
    X = RNG.normal(size=(80, 2)) @ RNG.normal(size=(2, 5))
    found = sm.SimilarityMap(similarity, n_landmarks=5, random_state=0).fit(X)
    if similarity is EUCLIDEAN:
        np.testing.assert_allclose(cdist(found.embedding_, found.embedding_), cdist(X, X), atol=1e-9)
    else:
        on_sphere = X / np.linalg.norm(X, axis=1, keepdims=True)
        up_to_signs(found.embedding_, PCA(2).fit_transform(on_sphere))
    assert found.trustworthiness_ > 0.999
    assert found.continuity_ > 0.999
    assert found.explained_.sum() == pytest.approx(1)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_measures_are_those_of_the_definition(data):
    n = data.draw(st.integers(3, 14))
    k = data.draw(st.integers(1, 8))
    coordinate = st.integers(0, 4).map(float)  # few values, so that many distances are equal
    points, others = (np.array(data.draw(st.lists(coordinate, min_size=2 * n, max_size=2 * n))) for _ in range(2))
    points, D = points.reshape(n, 2), cdist(others.reshape(n, 2), others.reshape(n, 2))
    on_map, near = cdist(points, points), min(k, (n - 1) // 2)
    found = neighbourhoods_kept(D, points, k)
    expected = naive.neighbourhoods_kept(D, on_map, near), naive.neighbourhoods_kept(on_map, D, near)
    assert found == pytest.approx(expected)
    assert all(0 <= value <= 1 for value in found)


def test_measures_are_those_of_scikit_learn_without_ties():
    X, points = RNG.normal(size=(90, 6)), RNG.normal(size=(90, 2))
    found = neighbourhoods_kept(cdist(X, X), points, 7)
    assert found[0] == pytest.approx(trustworthiness(X, points, n_neighbors=7))
    assert found[1] == pytest.approx(trustworthiness(points, X, n_neighbors=7))


def test_measures_of_known_maps():
    points = RNG.normal(size=(400, 2))
    assert neighbourhoods_kept(cdist(points, points), points, 10) == (1.0, 1.0)
    mixed = neighbourhoods_kept(cdist(points, points), points[RNG.permutation(400)], 10)
    assert mixed == pytest.approx((0.5, 0.5), abs=0.03)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_one_or_two_objects_have_no_neighbours_to_confuse(n, tmp_path):
    placed = sm.SimilarityMap(SPECTRUM).fit(WORDS[:n])
    assert sm.save(placed, tmp_path / "m.similia")
    for model in (placed, sm.load(tmp_path / "m.similia")):
        measures = [model.trustworthiness_, model.continuity_]
        assert np.isnan(measures).tolist() == [n < 3] * 2
        assert n < 3 or all(0 <= value <= 1 for value in measures)


def test_the_place_of_an_object_depends_on_it_alone():
    for similarity in (SPECTRUM, sm.distances.Levenshtein()):
        found = sm.SimilarityMap(similarity, n_landmarks=20, random_state=0).fit(WORDS)
        np.testing.assert_array_equal(found.transform(WORDS), found.embedding_)
        alone = np.vstack([found.transform([word]) for word in WORDS[:5]])
        np.testing.assert_array_equal(alone, found.embedding_[:5])


@pytest.mark.same_bits
@pytest.mark.parametrize("similarity", [SPECTRUM, sm.distances.Levenshtein()], ids=["kernel", "distance"])
def test_a_map_of_a_dask_bag_is_that_in_memory(similarity, tmp_path):
    found = sm.SimilarityMap(similarity, n_landmarks=20, random_state=0).fit(WORDS)
    for n_parts in (1, 7):
        bag = dask.bag.from_sequence(WORDS, npartitions=n_parts)
        other = sm.SimilarityMap(similarity, n_landmarks=20, random_state=0).fit(bag)
        for name in ("embedding_", "axes_", "centre_", "explained_"):
            np.testing.assert_array_equal(getattr(other, name), getattr(found, name))
        assert (other.trustworthiness_, other.continuity_) == (found.trustworthiness_, found.continuity_)
        np.testing.assert_array_equal(other.transform(bag).compute(), found.embedding_)
    sm.save(other, tmp_path / "map.similia")
    np.testing.assert_array_equal(sm.load(tmp_path / "map.similia").transform(WORDS), found.embedding_)


def test_a_map_of_a_dask_array_is_that_in_memory(monkeypatch):
    X = RNG.normal(size=(90, 4))
    found = sm.SimilarityMap(sm.kernels.RBF(0.1), n_landmarks=20, random_state=0).fit_transform(X)
    lazy = dask.array.from_array(X, chunks=(40, 2))
    other = sm.SimilarityMap(sm.kernels.RBF(0.1), n_landmarks=20, random_state=0)
    np.testing.assert_array_equal(other.fit_transform(lazy), found)
    assert other.n_features_in_ == 4
    monkeypatch.setattr(similarity_map, "_umap", lambda: Doubled)
    with pytest.raises(TypeError, match="method='neighbours' needs its objects in memory"):
        sm.SimilarityMap(sm.kernels.RBF(0.1), "neighbours").fit(lazy)


def test_blocks_change_nothing(monkeypatch):
    whole = sm.SimilarityMap(SPECTRUM, n_landmarks=20, random_state=0).fit(WORDS).transform(WORDS)
    fitted = sm.SimilarityMap(SPECTRUM, n_landmarks=20, random_state=0).fit(WORDS)
    monkeypatch.setattr(similarity_map, "_BLOCK", 7)
    np.testing.assert_array_equal(fitted.transform(WORDS), whole)


def test_objects_on_a_line_and_a_single_object():
    line = sm.SimilarityMap(EUCLIDEAN).fit(np.arange(9.0)[:, None])
    assert (line.embedding_[:, 1] == 0).all()
    np.testing.assert_allclose(np.diff(line.embedding_[:, 0]) ** 2, 1)
    np.testing.assert_array_equal(sm.SimilarityMap(SPECTRUM).fit(["ACGT"]).embedding_, [[0, 0]])


# ---- by neighbours
@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 5).map(float), min_size=1, max_size=8), st.integers(0, 99))
def test_interpolation_is_the_weighted_mean(distances, seed):
    places = np.random.default_rng(seed).normal(size=(len(distances), 2))
    found = interpolated(np.array(distances), places)
    np.testing.assert_allclose(found, naive.place_among(distances, places, len(distances)))


@pytest.mark.parametrize("similarity", [SPECTRUM, sm.distances.Levenshtein()], ids=["kernel", "distance"])
def test_new_objects_lie_among_their_nearest(monkeypatch, tmp_path, similarity):
    monkeypatch.setattr(similarity_map, "_umap", lambda: Doubled)
    found = sm.SimilarityMap(similarity, "neighbours", random_state=0, n_neighbors=5)
    points = found.fit_transform(WORDS)
    start = sm.SimilarityMap(similarity, random_state=0).fit_transform(WORDS)
    np.testing.assert_allclose(points, 2 * start, rtol=1e-6)
    np.testing.assert_allclose(found.transform(WORDS), points, rtol=1e-5, atol=1e-7)
    new = ["ACGTTGCATTAC", "GGGGAC"]
    D = similarity(new, WORDS)
    if similarity is SPECTRUM:
        D = np.sqrt(2 - 2 * D)  # normalised: k(x, x) = 1
    expected = [naive.place_among(row, points, 5) for row in D]
    np.testing.assert_allclose(found.transform(new), expected, rtol=1e-6)  # Levenshtein is float32
    path = sm.save(found, tmp_path / "map.similia")
    np.testing.assert_array_equal(sm.load(path).transform(new), found.transform(new))


def test_umap_shows_its_progress_only_on_request(monkeypatch, capsys):
    monkeypatch.setattr(similarity_map, "_umap", lambda: Doubled)
    found = sm.SimilarityMap(SPECTRUM, "neighbours", random_state=0).fit(WORDS)
    assert capsys.readouterr() == ("", "")
    with sm.config(progress=True):
        found.fit(WORDS)
    assert "UMAP" in capsys.readouterr().err


@pytest.mark.ecosystem
def test_umap_keeps_neighbourhoods_better_than_two_axes(capsys):
    pytest.importorskip("umap", reason="umap-learn lays out the graph of neighbours and is not installed")
    centres = RNG.choice(list("ACGT"), size=(12, 40))
    words = []
    for i in range(240):
        letters = centres[i % 12].copy()
        letters[RNG.choice(40, 6, replace=False)] = RNG.choice(list("ACGT"), 6)
        words.append("".join(letters))
    by = {method: sm.SimilarityMap(SPECTRUM, method, random_state=0) for method in ("landmarks", "neighbours")}
    points = {method: one.fit_transform(words) for method, one in by.items()}
    assert by["neighbours"].trustworthiness_ > by["landmarks"].trustworthiness_ + 0.05
    assert "UMAP" not in capsys.readouterr().err
    with sm.config(progress=True):
        again = sm.SimilarityMap(SPECTRUM, "neighbours", random_state=0).fit_transform(words)
    assert "UMAP: 100%" in capsys.readouterr().err
    np.testing.assert_array_equal(again, points["neighbours"])
    np.testing.assert_allclose(by["neighbours"].transform(words), points["neighbours"], rtol=1e-4, atol=1e-4)


# ---- what is refused
def test_bad_input_is_refused_at_once(monkeypatch):
    with pytest.raises(ValueError, match="method must be 'landmarks' or 'neighbours', got 'umap'"):
        sm.SimilarityMap(SPECTRUM, "umap").fit(WORDS)
    with pytest.raises(ValueError, match="may be a kernel or a distance"):
        sm.SimilarityMap(cdist).fit(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="similarity must be a kernel or distance of similia, got 'DTW'"):
        sm.SimilarityMap("DTW").fit(WORDS)
    with pytest.raises(ValueError, match="n_landmarks"):
        sm.SimilarityMap(SPECTRUM, n_landmarks=0).fit(WORDS)
    with pytest.raises(ValueError, match="all distances among 3 objects are 0"):
        sm.SimilarityMap(sm.distances.Levenshtein()).fit(["A"] * 3)
    with pytest.raises(ValueError, match="y has 2 labels for 60 objects"):
        sm.SimilarityMap(SPECTRUM).fit(WORDS, [0, 1])
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(ImportError, match=r"pip install 'similia\[maps\]'"):
        sm.SimilarityMap(SPECTRUM, "neighbours").fit(WORDS)
    monkeypatch.setattr(similarity_map, "_umap", lambda: Doubled)
    with pytest.raises(ValueError, match="needs 4 objects, got 3"):
        sm.SimilarityMap(SPECTRUM, "neighbours").fit(WORDS[:3])


def test_a_damaged_file_is_refused(tmp_path):
    found = sm.SimilarityMap(SPECTRUM, random_state=0).fit(WORDS)
    found.method = "neighbours"  # without the objects that it needs
    with pytest.raises(ValueError, match="cannot be saved"):
        sm.save(found, tmp_path / "map.similia")


def test_neighbourhoods_of_some_objects_average_to_those_of_all():
    X, points = RNG.normal(size=(90, 4)), RNG.normal(size=(90, 2))
    D = cdist(X, X)
    parts = [np.arange(0, 30), np.arange(30, 60), RNG.permutation(np.arange(60, 90))]
    found = np.mean([neighbourhoods_kept(D[rows], points, 7, rows) for rows in parts], axis=0)
    np.testing.assert_allclose(found, neighbourhoods_kept(D, points, 7))


def test_a_large_map_is_measured_among_all_objects():
    centres = RNG.normal(size=(150, 6))
    X = np.repeat(centres, 20, axis=0) + 0.01 * RNG.normal(size=(3000, 6))
    found = sm.SimilarityMap(sm.kernels.RBF(0.1), random_state=0).fit(X)
    assert found.trustworthiness_ == pytest.approx(trustworthiness(X, found.embedding_, n_neighbors=10), abs=0.02)
