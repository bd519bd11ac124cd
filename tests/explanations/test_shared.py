"""What members of a class share: planted bumps and motifs, against definitions written out by hand."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline

import similia as sm
from naive.series import dtw_path
from similia.explanations import _shared, explain_classes
from similia.explanations._decisions import AgainstRest

MOTIFS = ["GLAKHFEC", "WWPDSTGY", "MMNQRLKE"]
BUMP = 12


def _bumps(moving, lengths=(60,)):
    """Noise; series 1, 3, ... have a bump, nothing else tells them apart. Return series, and starts of bumps."""
    rng, X, starts = np.random.default_rng(1), [], []
    for i in range(40):
        x = 0.05 * rng.normal(size=lengths[i // 2 % len(lengths)])
        start = int(rng.integers(12, 36)) if moving else len(x) // 3
        x[start : start + BUMP] += (i % 2) * 2 * np.sin(np.linspace(0.2, np.pi - 0.2, BUMP))
        X.append(x)
        starts.append(start)
    return X, starts


def _motifs(n=90):
    """Random proteins of 33 letters with the motif of their class, at a random place."""
    rng, X = np.random.default_rng(0), []
    for i in range(n):
        letters, place = "".join(rng.choice(list("ACDEFGHIKLMNPQRSTVWY"), 25)), int(rng.integers(26))
        X.append(letters[:place] + MOTIFS[i % 3] + letters[place:])
    return X


# ---- stretches of time
@pytest.mark.parametrize(
    ("similarity", "moving", "lengths"),
    [
        (sm.distances.DTW(), True, (60,)),
        (sm.distances.DTW(), True, (50, 60, 75)),
        (sm.distances.ERP(), True, (60,)),
        (sm.distances.SoftDTW(gamma=0.1), True, (60,)),
        (sm.kernels.GlobalAlignment(), False, (60,)),
    ],
    ids=["DTW", "lengths", "ERP", "SoftDTW", "GlobalAlignment"],
)
def test_the_only_stretch_that_tells_clusters_apart_is_found(similarity, moving, lengths):
    X, starts = _bumps(moving, lengths)
    model = sm.KernelKMeans(similarity, 2, random_state=0).fit(X)
    assert adjusted_rand_score(np.arange(40) % 2, model.labels_) == 1.0
    cluster = int(model.labels_[1])
    best, *others = explain_classes(model, X)[cluster]
    assert best.example == model.medoid_indices_[cluster]
    bump = {*range(starts[best.example], starts[best.example] + BUMP)}
    assert len(bump & {*best.places}) >= 0.7 * BUMP
    assert len({*best.places} - bump) <= BUMP
    assert best.share == 1.0
    assert best.name.startswith(f"time {best.places[0]}-{best.places[-1]}, values ")
    assert all(part.contribution < best.contribution / 3 for part in others)


def test_the_only_stretch_that_tells_dense_clusters_apart_is_found():
    X, starts = _bumps(True)
    X = [*X, *(3 * np.random.default_rng(2).normal(size=(2, 60)))]
    model = sm.HDBSCAN(sm.distances.DTW(), 5).fit(X)
    assert adjusted_rand_score([*np.arange(40) % 2, -1, -1], model.labels_) > 0.9
    found = explain_classes(model, X)
    assert sorted(found) == [0, 1]
    cluster = int(model.labels_[1])
    best = found[cluster][0]
    assert best.example == model.medoid_indices_[cluster]
    assert len({*range(starts[best.example], starts[best.example] + BUMP)} & {*best.places}) >= 0.7 * BUMP


def test_the_stretches_of_a_classifier_are_at_the_same_share_of_the_length():
    X, _ = _bumps(False, (60, 90))
    model = make_pipeline(sm.embeddings.RandomConvolutions(random_state=0), RidgeClassifier())
    model.fit(X, np.arange(40) % 2)
    best = explain_classes(model, X)[1][0]
    n = len(X[best.example])
    assert {*best.places} & {*range(n // 3, n // 3 + BUMP)}
    decided = model.decision_function(X)
    assert decided[best.example] > 0


def _places(example, x, stretch):
    """Return the points of x from the first to the last that the cheapest path matches with a stretch of an example."""
    matched = [j for i, j in dtw_path(example, x) if i in stretch]
    return range(min(matched), max(matched) + 1)


def _flat(x, places):
    kept = [t for t in range(len(x)) if t not in places]
    return np.array([np.interp(t, kept, x[kept]) for t in range(len(x))])


def test_contributions_are_those_of_the_definition():
    """Cluster by cluster: the mean fall of the margin without what is aligned with a stretch of the medoid."""
    X, _ = _bumps(True)
    X = X[:20]  # ten in a cluster: all are measured
    model = sm.KernelKMeans(sm.distances.DTW(), 2, random_state=0).fit(X)
    for cluster, parts in explain_classes(model, X, top=3).items():
        members = [X[i] for i in np.flatnonzero(model.labels_ == cluster)]
        example = X[model.medoid_indices_[cluster]]

        def margin(x, cluster=cluster):
            distances = model.transform([x])[0] ** 2
            return distances[1 - cluster] - distances[cluster]

        for part in parts:
            places = [_places(example, x, part.places) for x in members]
            falls = [margin(x) - margin(_flat(x, gone)) for x, gone in zip(members, places, strict=True)]
            assert part.contribution == pytest.approx(np.mean(falls), rel=1e-6)
            assert part.share == pytest.approx(np.mean(np.array(falls) > 0))


def test_no_more_predictions_than_promised(monkeypatch):
    X, _ = _bumps(True)
    model = sm.KernelKMeans(sm.distances.DTW(), 2, random_state=0).fit(X)
    rows, predict = [], AgainstRest.predict
    monkeypatch.setattr(AgainstRest, "predict", lambda self, Z: rows.append(len(Z)) or predict(self, Z))
    explain_classes(model, X, top=3)
    assert 0 < sum(rows) <= 2 * 10 * (24 + 3)


def test_channels_and_short_series():
    X = [np.column_stack([x, -x]) for x in _bumps(True)[0]]
    model = sm.KernelKMeans(sm.distances.DTW(), 2, random_state=0).fit(X)
    best = explain_classes(model, X)[int(model.labels_[1])][0]
    assert best.name == f"time {best.places[0]}-{best.places[-1]}"
    few = [np.array(x) for x in ([0.0], [0.1, 0.0], [5.0, 5.1], [5.0])]
    short = sm.KernelKMeans(sm.distances.DTW(), 2, random_state=0).fit(few)
    assert set(explain_classes(short, few)) == {0, 1}


@given(st.integers(1, 30), st.integers(1, 30), st.integers(0, 2**32 - 1))
def test_places_are_those_of_the_cheapest_path_or_of_the_same_share(n, m, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(-9, 10, (n, 1)) * 1.0, rng.integers(-9, 10, (m, 1)) * 1.0  # exact sums, so that ties are ties
    start, stop = sorted(rng.integers(0, n, 2).tolist())
    stretch = np.arange(start, stop + 1)
    found = _shared._aligned(a, b, sm.distances.DTW())(stretch)
    assert found.tolist() == [*_places(a.ravel(), b.ravel(), stretch)]
    share = _shared._aligned(a, b, None)(stretch)
    overlap = [j for j in range(m) if j / m < (stop + 1) / n - 1e-12 and (j + 1) / m > start / n + 1e-12]
    assert share.tolist() == overlap


def test_long_series_are_averaged_before_they_are_aligned():
    a, b = np.zeros((2500, 1)), np.zeros((2100, 1))
    a[600:800, 0] = b[1400:1600, 0] = np.linspace(1, 3, 200)
    found = _shared._aligned(a, b, sm.distances.DTW())(np.arange(610, 790))
    assert abs(found[0] - 1410) <= 5
    assert abs(found[-1] - 1589) <= 5
    means, starts = _shared._averaged(a)
    assert [*means.ravel()] == pytest.approx([a[i:j].mean() for i, j in pairwise(starts.tolist())])


# ---- substrings
@pytest.mark.parametrize("as_bytes", [False, True])
def test_the_motifs_of_clusters_by_an_edit_distance(as_bytes):
    X = [x.encode() for x in _motifs()] if as_bytes else _motifs()
    model = sm.KernelKMeans(sm.distances.Levenshtein(), 3, random_state=0).fit(X)
    assert adjusted_rand_score(np.arange(90) % 3, model.labels_) == 1.0
    found = explain_classes(model, X)
    for c in range(3):
        best, *others = found[int(model.labels_[c])]
        assert (best.name, best.share, best.example, len(best.places)) == (MOTIFS[c], 1.0, None, 0)
        assert all(part.contribution < best.contribution / 3 for part in others)
    assert found == explain_classes(model, X)


def test_strings_of_one_length_keep_it():
    X = ["ACGTACGTAA", "ACGTACGTCC", "ACGTACGTGG", "TTTTTTTTTT", "TTTTTGTTTT", "TTCTTTTTTT"]
    hamming = sm.distances.FromFunction(lambda x, y: float(sum(a != b for a, b in zip(x, y, strict=True))))
    model = sm.KernelKMeans(hamming, 2, random_state=0).fit(X)
    assert explain_classes(model, X)[int(model.labels_[0])][0].name == "ACGTACGT"


def test_any_byte_is_a_letter():
    """Substrings do not depend on which bytes stand for the letters, even if one of these is NUL."""
    rng = np.random.default_rng(0)
    codes = rng.integers(4, size=(20, 12))
    codes[::2, 4:8], codes[1::2, 4:8] = [0, 1, 0, 2], [3, 3, 1, 3]
    found = []
    for first in (0, ord("A")):
        X = [bytes((first + row).tolist()) for row in codes]
        model = sm.KernelSVC(sm.kernels.DistanceRBF(sm.distances.Levenshtein(), 0.1)).fit(X, np.arange(20) % 2)
        shared = explain_classes(model, X)
        found.append([([ord(c) - first for c in part.name], part.contribution) for c in shared for part in shared[c]])
    assert found[0] == found[1] != []


def test_clusters_of_copies_share_a_part_of_their_strings():
    words = ["ACGTACGT", "TTGGCCAA", "GATTACAG"]
    model = sm.HDBSCAN(sm.distances.Levenshtein()).fit(5 * words)
    found = explain_classes(model, 5 * words)
    assert [found[label][0].name in word for label, word in zip(model.labels_[:3], words, strict=True)] == [True] * 3
    assert all(3 <= len(part.name) < 8 for parts in found.values() for part in parts)


@given(st.lists(st.text("ab", max_size=12), min_size=1, max_size=6), st.lists(st.text("ab", max_size=12), max_size=6))
def test_candidates_are_more_frequent_here_than_there(texts, others):
    def more(word):
        there = sum(word in text for text in others) / max(1, len(others))
        return inside(word) / len(texts) - there

    def inside(word):  # a text without itself is nothing to predict
        return sum(word in text != word for text in texts)

    words = {text[a:b] for text in texts for a in range(len(text)) for b in range(a + 3, min(a + 8, len(text)) + 1)}
    words = {word for word in words if inside(word) >= min(2, len(texts)) and more(word) > 0}
    found = _shared._candidates(texts, others)
    assert {*found} <= words
    assert bool(found) == bool(words)
    gains = [more(word) for word in found]
    assert gains == pytest.approx(sorted(gains, reverse=True))
    assert not words or gains[0] == pytest.approx(max(map(more, words)))


def test_places_of_occurrences_that_overlap():
    assert _shared._occurrences("aaaabaaa", "aaa").tolist() == [0, 1, 2, 3, 5, 6, 7]
    assert _shared._occurrences("ab", "aaa").tolist() == []


def test_nearest_neighbours_are_explained_by_training_objects():
    X, y = _motifs(30), np.arange(30) % 3
    for objects in (X, _bumps(True)[0][:30]):
        compared = sm.distances.Levenshtein() if objects is X else sm.distances.DTW()
        model = sm.KNeighborsClassifier(compared, n_neighbors=3).fit(objects, y)
        parts = [part for parts in explain_classes(model, objects).values() for part in parts]
        assert parts
        assert all(": training object " in part.name for part in parts)


# ---- the rest
@given(st.integers(2, 5), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_a_cluster_is_compared_with_all_others(k, rank, seed):
    rng = np.random.default_rng(seed)
    centers, counts, Z = rng.normal(size=(k, rank)), rng.integers(1, 9, k), rng.normal(size=(3, rank))
    c = int(rng.integers(k))
    margins = AgainstRest().fit(centers, counts, c).predict(Z)
    for z, margin in zip(Z, margins, strict=True):
        objects = [centers[other] for other in range(k) if other != c for _ in range(counts[other])]
        mean = sum(float(((z - center) ** 2).sum()) for center in objects) / len(objects)
        assert margin == pytest.approx(mean - float(((z - centers[c]) ** 2).sum()))


def test_the_parts_of_a_cluster_are_its_mean_features_minus_those_of_all_other_objects():
    rng = np.random.default_rng(0)
    X = ["".join(rng.choice(list(letters), 12)) for letters in ("AC", "GT", "AG", "AC", "GT") * 4]
    model = sm.KernelKMeans(sm.kernels.Spectrum(k=1, normalize=True), 3, random_state=0).fit(X)
    features = np.array([[x.count(letter) for letter in "ACGT"] for x in X], dtype=float)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    found = explain_classes(model, X, top=9, n_members=99)
    assert set(found) == {0, 1, 2}
    for cluster, parts in found.items():
        own = model.labels_ == cluster
        weights = 2 * (features[own].mean(axis=0) - features[~own].mean(axis=0))
        expected = dict(zip("ACGT", weights * features[own].mean(axis=0), strict=True))
        assert {part.name for part in parts} == {name for name, value in expected.items() if value > 1e-9}
        for part in parts:
            assert part.contribution == pytest.approx(expected[part.name], rel=1e-5)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csr_matrix])
def test_clusters_by_a_cosine_are_told_apart_by_columns(kind):
    X = np.random.default_rng(0).random((40, 8)) * 0.1
    X[:20, 1] += 1
    X[20:, 6] += 1
    model = sm.KernelKMeans(sm.kernels.Cosine(), 2, random_state=0).fit(kind(X))
    found = explain_classes(model, kind(X), top=1)
    for rows, name in ((slice(20), "column 1"), (slice(20, 40), "column 6")):
        (label,) = set(model.labels_[rows].tolist())
        assert [(part.name, part.share) for part in found[label]] == [(name, 1.0)]


def test_the_motifs_of_dense_clusters_by_an_edit_distance():
    """Four random letters follow each motif; two long strings are noise."""
    rng = np.random.default_rng(0)
    X = [motif + "".join(rng.choice([*"AC"], 4)) for motif in MOTIFS for _ in range(15)] + ["A" * 60, "C" * 70]
    model = sm.HDBSCAN(sm.distances.Levenshtein(), 6).fit(X)
    assert model.labels_.tolist() == [*np.repeat(model.labels_[[0, 15, 30]], 15), -1, -1]
    found = explain_classes(model, X)
    assert sorted(found) == [0, 1, 2]  # noise is in no class
    for c, motif in enumerate(MOTIFS):
        assert found[int(model.labels_[15 * c])][0].name == motif


def test_a_single_cluster_has_no_rest():
    X = _motifs(6)
    model = sm.KernelKMeans(sm.distances.Levenshtein(), 1, random_state=0).fit(X)
    with pytest.raises(ValueError, match="one cluster"):
        explain_classes(model, X)
