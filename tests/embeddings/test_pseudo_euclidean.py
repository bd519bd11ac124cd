"""PseudoEuclidean: the definition, its laws, inductive against transductive, bad input, scikit-learn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

import similia as sm
from naive import similarities as naive
from similia import PseudoEuclidean


def euclidean(X, Y=None):
    return cdist(X, X if Y is None else Y)


def manhattan(X, Y=None):
    """A metric whose squares are not of negative type: eigenvalues of both signs."""
    return cdist(X, X if Y is None else Y, "cityblock")


def points(n, p=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p))


def squared(Z, W, eigenvalues):
    """Signed squared differences of all pairs of rows."""
    return np.square(Z[:, None] - W[None]) @ np.sign(eigenvalues)


# ---- the definition


@pytest.mark.parametrize("k", [2, 5, 20])
def test_training_and_new_objects_are_the_definition(k):
    X, T = points(20), points(5, seed=1)
    embedding = PseudoEuclidean(manhattan, k).fit(X)
    Z, values = naive.pseudo_euclidean(manhattan(X), min(k, embedding.rank_))
    np.testing.assert_allclose(embedding.eigenvalues_, values, rtol=1e-9)
    found = embedding.transform(X)
    np.testing.assert_allclose(np.abs(found), np.abs(Z), atol=1e-8)  # eigenvectors up to their sign,
    assert (found[np.abs(found).argmax(axis=0), np.arange(found.shape[1])] > 0).all()  # which is settled here
    expected = [naive.gower(manhattan(X), row, found, values) for row in manhattan(T, X)]
    np.testing.assert_allclose(embedding.transform(T), expected, atol=1e-8)


def test_hand_worked():
    # The four corners of a star: centre at 1 from three leaves, leaves at 2 from each other. B has the eigenvalues
    # 2, 2 (leaves against each other) and, for the centre against the leaves, -1/4.
    D = np.array([[0, 1, 1, 1], [1, 0, 2, 2], [1, 2, 0, 2], [1, 2, 2, 0.0]])
    embedding = PseudoEuclidean("precomputed", n_components=None).fit(D)
    np.testing.assert_allclose(embedding.eigenvalues_, [2, 2, -0.25])
    assert embedding.signature_ == (2, 1)
    Z = embedding.transform(D)
    np.testing.assert_allclose(np.abs(Z[0]), [0, 0, np.sqrt(3) / 4], atol=1e-12)  # 3/4 of 1/4


# ---- laws


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 15), st.integers(1, 4), st.integers(0, 2**16))
def test_laws(n, p, seed):
    X = points(n, p, seed)
    T = points(4, p, seed + 1)
    flat = PseudoEuclidean(euclidean, None).fit(X)  # Euclidean distances: centred inner products, nothing else
    Z, centred, rank = flat.transform(X), X - X.mean(axis=0), min(n - 1, p)
    assert flat.signature_ == (rank, 0)
    np.testing.assert_allclose(Z @ Z.T, centred @ centred.T, atol=1e-8)
    if rank == p:  # the training points span the space: new points are recovered too
        np.testing.assert_allclose(
            flat.transform(T) @ Z.T, (T - X.mean(axis=0)) @ centred.T, atol=1e-5 * np.square(T).max()
        )
    bent = PseudoEuclidean(manhattan, None)
    Z = bent.fit_transform(X)
    np.testing.assert_allclose(squared(Z, Z, bent.eigenvalues_), manhattan(X) ** 2, atol=1e-7)
    np.testing.assert_array_equal(bent.transform(X), Z)  # a training object met again has its own coordinates
    assert bent.rank_ == sum(bent.signature_) <= n - 1
    assert (np.diff(np.abs(bent.eigenvalues_)) <= 0).all()
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-9)
    doubled = PseudoEuclidean(lambda X, Y=None: 2 * manhattan(X, Y), None).fit_transform(X)
    np.testing.assert_allclose(np.abs(doubled), 2 * np.abs(Z), atol=1e-7)


def test_fewer_components_are_the_first_ones():
    X = points(30)
    many, few = (PseudoEuclidean(manhattan, k).fit(X) for k in (20, 6))
    np.testing.assert_array_equal(few.transform(X), many.transform(X)[:, :6])
    assert few.signature_ == (int((many.eigenvalues_[:6] > 0).sum()), int((many.eigenvalues_[:6] < 0).sum()))
    assert few.signature_[1] > 0


def test_landmarks_alone_make_the_space():
    X = points(200)
    embedding = PseudoEuclidean(euclidean, None, n_landmarks=10, random_state=3)
    Z = embedding.fit_transform(X)
    assert len(embedding.landmarks_) == 10
    np.testing.assert_array_equal(X[embedding.landmark_indices_], embedding.landmarks_)
    np.testing.assert_allclose(cdist(Z, Z), cdist(X, X), atol=1e-8)  # 10 points span 3 dimensions
    np.testing.assert_array_equal(embedding.fit(X).transform(X), Z)
    computed = []
    PseudoEuclidean(lambda A, B=None: computed.append((len(A), B)) or euclidean(A, B), n_landmarks=10).fit(X)
    assert computed == [(10, None)]  # linear in n: nothing else is computed in fit
    other = PseudoEuclidean(euclidean, None, n_landmarks=10, random_state=4).fit(X)
    assert not np.array_equal(other.landmark_indices_, embedding.landmark_indices_)
    assert np.unique(other.landmark_indices_).size == 10


def test_training_objects_are_embedded_from_the_distances_of_fit():
    computed = []
    PseudoEuclidean(lambda A, B=None: computed.append((len(A), B)) or euclidean(A, B)).fit_transform(points(30))
    assert computed == [(30, None)]


@pytest.mark.same_bits
def test_rows_do_not_depend_on_blocks_or_threads():
    X = points(300)
    embedding = PseudoEuclidean(manhattan, 16, n_landmarks=40, random_state=0).fit(X)
    Z = embedding.transform(X)
    with sm.config(max_memory=5000):
        np.testing.assert_array_equal(embedding.transform(X), Z)
    with threadpool_limits(2):
        np.testing.assert_array_equal(clone(embedding).fit(X).transform(X[7:8]), Z[7:8])


def test_float32_distances_give_float32_vectors():
    X = points(40)
    single = PseudoEuclidean(lambda X, Y=None: manhattan(X, Y).astype(np.float32), 8)
    Z = single.fit_transform(X)
    assert Z.dtype == single.transform(X).dtype == np.float32
    np.testing.assert_allclose(np.abs(Z), np.abs(PseudoEuclidean(manhattan, 8).fit_transform(X)), atol=1e-3)
    # A long, thin cloud at whole distances, exact in float32, their squares are not: thin directions would drown.
    thin = np.round(points(40, 2) * [1000, 16])
    expected = PseudoEuclidean(manhattan, 2).fit(thin)
    Z = PseudoEuclidean(lambda X, Y=None: manhattan(X, Y).astype(np.float32), 2).fit_transform(thin)
    np.testing.assert_allclose(Z, expected.transform(thin), rtol=1e-5, atol=1e-5)
    flat = PseudoEuclidean(lambda X, Y=None: euclidean(X, Y).astype(np.float32), None).fit(X)
    assert flat.rank_ < 20  # rounding of the distances is not taken for 39 directions


# ---- precomputed, transductive


def test_precomputed_is_the_same():
    X, T = points(30), points(6, seed=1)
    called = PseudoEuclidean(manhattan, 5, n_landmarks=12, random_state=0).fit(X)
    given_ = PseudoEuclidean("precomputed", 5, n_landmarks=12, random_state=0).fit(manhattan(X))
    np.testing.assert_allclose(given_.transform(manhattan(T, X)), called.transform(T), atol=1e-10)
    columns = manhattan(T, X)[:, given_.landmark_indices_]
    np.testing.assert_allclose(given_.transform(columns), called.transform(T), atol=1e-10)
    np.testing.assert_array_equal(given_.landmarks_, called.landmark_indices_)


def test_precomputed_comes_back_from_a_file(tmp_path):
    embedding = PseudoEuclidean("precomputed", 5, n_landmarks=12, random_state=0).fit(manhattan(points(30)))
    loaded = sm.load(sm.save(embedding, tmp_path / "m.similia"))
    columns = manhattan(points(6, seed=1), points(30))
    np.testing.assert_array_equal(loaded.transform(columns), embedding.transform(columns))


def test_transductive_sees_the_test_objects_and_inductive_does_not():
    X, T = points(20), points(9, seed=1)
    train, test = PseudoEuclidean.transductive(manhattan, X, T, n_components=None)
    together = PseudoEuclidean(manhattan, None)
    expected = together.fit_transform(np.concatenate([X, T]))
    np.testing.assert_allclose(np.abs(np.concatenate([train, test])), np.abs(expected), atol=1e-6)
    exact = squared(train, test, together.eigenvalues_)
    np.testing.assert_allclose(exact, manhattan(X, T) ** 2, atol=1e-6)  # also of test objects, all at once
    inductive = PseudoEuclidean(manhattan, None).fit(X)
    signs = inductive.eigenvalues_
    projected = squared(inductive.transform(X), inductive.transform(T), signs)
    # A projection: each test object loses one number, that of its part outside the space of the training objects.
    lost = manhattan(X, T) ** 2 - projected
    np.testing.assert_allclose(lost, np.broadcast_to(lost[0], lost.shape), atol=1e-6)
    assert np.abs(lost).max() > 0.1


# ---- scikit-learn, files


def test_pipelines_and_cross_validation():
    X = np.concatenate([points(40, 2), 4 + points(40, 2)])
    y = np.repeat([0, 1], 40)
    for distance, data in ((manhattan, X), ("precomputed", manhattan(X))):
        model = make_pipeline(PseudoEuclidean(distance, 4), LinearSVC())
        assert cross_val_score(model, data, y, cv=4).mean() > 0.95
    assert list(PseudoEuclidean(manhattan, 2).fit(X).get_feature_names_out()) == [
        "pseudoeuclidean0",
        "pseudoeuclidean1",
    ]


@pytest.mark.parametrize("n_landmarks", [None, 5])
def test_as_an_embedding(n_landmarks):
    sm.checks.check_embedding(PseudoEuclidean(manhattan, 4, n_landmarks=n_landmarks), points(12))


# ---- bad input


def test_bad_input():
    X, D = points(6), manhattan(points(6))
    crooked = D + np.triu(np.ones((6, 6)))
    negative = D.copy()
    negative[1, 2] = -1
    cases = [
        (lambda: PseudoEuclidean("precomputed").fit(crooked), r"not symmetric: d\(X\[\d\], X\[\d\]\)"),
        (lambda: PseudoEuclidean("precomputed").fit(negative), "holds -1 for objects 1 and 2, expected a finite"),
        (lambda: PseudoEuclidean("precomputed").fit(D * np.nan), "holds nan for objects 0 and 0"),
        (lambda: PseudoEuclidean("precomputed").fit(D[:3]), "needs a square matrix"),
        (lambda: PseudoEuclidean("precomputed").fit(D).transform(D[:, :4]), "D has 4 columns, expected 6"),
        (lambda: PseudoEuclidean(manhattan).fit(np.ones((4, 2))), "all distances among 4 objects are 0"),
        (lambda: PseudoEuclidean(manhattan).fit(X[:1]), "all distances among 1 objects are 0"),
        (lambda: PseudoEuclidean(manhattan).fit([]), "X is empty"),
        (lambda: PseudoEuclidean(manhattan, 0).fit(X), "n_components must be an integer >= 1"),
        (lambda: PseudoEuclidean("euclidean").fit(X), "distance must be a callable"),
        (lambda: PseudoEuclidean(lambda X, Y=None: D[0]).fit(X), "returned shape"),
        (lambda: PseudoEuclidean(lambda X, Y=None: -manhattan(X, Y)).fit(X), "expected a finite number >= 0"),
    ]
    for call, message in cases:
        with pytest.raises(ValueError, match=message):
            call()
    near = sm.distances.FromFunction(lambda x, y: np.nan if abs(x - y) > 9 else abs(x - y))
    with pytest.raises(ValueError, match="returned nan for X") as raised:
        PseudoEuclidean(near, n_landmarks=5, random_state=0).fit(range(50))
    chosen = np.sort(np.random.default_rng(0).choice(50, 5, replace=False))
    i, j = raised.value.index
    assert {i, j} <= set(chosen)
    assert abs(i - j) > 9
    with pytest.raises(TypeError, match=r"distance is the class DTW, .* write DTW\(...\)"):
        PseudoEuclidean(sm.distances.DTW).fit(X)
    with pytest.raises(TypeError, match=r"Optical\(\) is a kernel, .* expected a distance"):
        PseudoEuclidean(sm.kernels.Optical()).fit(X)


def test_a_fitted_embedding_takes_what_it_was_fitted_to_whatever_the_parameter_is_now():
    X = np.random.default_rng(0).normal(size=(12, 2))
    D = cdist(X, X)
    for distance, data, other in (
        (sm.distances.FromFunction(cdist, pairwise=True), X, "precomputed"),
        ("precomputed", D, sm.distances.DTW()),
    ):
        model = PseudoEuclidean(distance, 2).fit(data)
        before = model.transform(data[:3])
        np.testing.assert_array_equal(model.set_params(distance=other).transform(data[:3]), before)
