"""DistanceRBF, NegativeDistance, suggest_gamma: definitions, the repair of indefinite ones by Nystroem, bad input."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

import similia as sm
from similia.distances import Facts, FromFunction, Levenshtein
from similia.distances.mmd import mmd2
from similia.kernels import DistanceRBF, NegativeDistance, Spectrum, suggest_gamma

WORDS = ["tree", "trees", "free", "bush", "bushes", "brush", "tee", "rush", "be", "thrush"]


def crooked(X, Y=None):
    """A symmetric dissimilarity that is far from Euclidean: 0.2 for close points, at least 1 for others."""
    D = cdist(X, X if Y is None else Y)
    return np.where(D == 0, 0.0, np.where(D < 1.5, 0.2, D))


def points(n, p=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p))


# ---- definitions


def test_euclidean_distances_give_the_rbf_kernel_and_centred_inner_products():
    X, Y = points(12), points(7, seed=1)
    np.testing.assert_allclose(DistanceRBF(euclidean_distances, 0.3)(X, Y), rbf_kernel(X, Y, gamma=0.3), rtol=1e-10)
    o = np.array([1.0, -2.0, 0.5])
    np.testing.assert_allclose(NegativeDistance(euclidean_distances, origin=o)(X, Y), (X - o) @ (Y - o).T, atol=1e-12)
    np.testing.assert_allclose(NegativeDistance(euclidean_distances, power=1)(X, Y), -cdist(X, Y), atol=1e-7)


def test_hand_worked():
    D = FromFunction(lambda x, y: abs(len(x) - len(y)))
    np.testing.assert_allclose(DistanceRBF(D, 0.5)(["a", "abc"], [""]), np.exp([[-0.5], [-4.5]]))
    np.testing.assert_array_equal(NegativeDistance(D, power=3)(["a", "abc"], [""]), [[-1.0], [-27.0]])
    # (1 + 27 - 8) / 2 with the origin of length 0 and p = 3
    assert NegativeDistance(D, power=3, origin="")(["a"], ["abc"])[0, 0] == 10.0


class WithFacts:
    """A distance that must not be asked for d(x, x)."""

    facts = Facts(symmetric=True, identity=True, metric=True, unequal_length=True, cost="1")

    def __init__(self):
        self.calls = []

    def __call__(self, X, Y=None):
        self.calls.append((len(X), len(X if Y is None else Y)))
        return np.array([[abs(len(x) - len(y)) for y in (X if Y is None else Y)] for x in X], dtype=np.float32)


@pytest.mark.parametrize("make", [DistanceRBF, NegativeDistance, lambda d: NegativeDistance(d, origin="ab")])
def test_diagonal(make):
    distance = WithFacts()
    kernel = make(distance)
    expected = kernel(WORDS).diagonal()
    distance.calls.clear()
    np.testing.assert_allclose(kernel.diag(WORDS), expected)
    assert all(columns == 1 for _, columns in distance.calls)  # to the origin only
    shifted = make(lambda X, Y=None: 1.0 + WithFacts()(X, Y))  # d(x, x) = 1, nothing known of it
    many = WORDS * 10
    np.testing.assert_allclose(shifted.diag(many), shifted(many).diagonal())


def test_float32_distances_stay_float32():
    for kernel in (DistanceRBF(WithFacts(), np.float64(0.1)), NegativeDistance(WithFacts()),
                   NegativeDistance(WithFacts(), origin="ab")):  # fmt: skip
        assert kernel(WORDS).dtype == kernel(WORDS, WORDS[:3]).dtype == np.float32


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 12), st.integers(0, 2**16), st.floats(0.1, 2.0))
def test_laws(n, seed, power):
    X = points(n, seed=seed)
    order = np.random.default_rng(seed).permutation(n)
    for kernel in (DistanceRBF(crooked, power), NegativeDistance(crooked, power),
                   NegativeDistance(crooked, power, origin=X[0])):  # fmt: skip
        K = kernel(X)
        np.testing.assert_allclose(K, K.T, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(kernel(X[order], X), K[order], rtol=1e-12, atol=1e-12)
    # Powers up to 2 of a Euclidean distance are of negative type: centred, or with an origin, they are PSD.
    J = np.eye(n) - 1 / n
    assert np.linalg.eigvalsh(J @ NegativeDistance(euclidean_distances, power)(X) @ J).min() > -1e-6
    sm.checks.check_kernel(NegativeDistance(cdist_self, power, origin=X[0]), X)
    sm.checks.check_kernel(DistanceRBF(cdist_self, power), X)


def cdist_self(X, Y=None):
    return cdist(X, X if Y is None else Y)


# ---- the eigenvalue policies, through Nystroem with all training objects as landmarks


def repaired(K, policy):
    values, Q = np.linalg.eigh(K)
    values = {"clip": np.maximum(values, 0), "flip": np.abs(values), "shift": values - 1.5 * values.min()}[policy]
    return (Q * values) @ Q.T


KERNELS = {
    "rbf": DistanceRBF(crooked, 0.4),
    "negative": NegativeDistance(crooked),
    "origin": NegativeDistance(crooked, 1.0, origin=np.zeros(3)),
}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("policy", ["clip", "flip", "shift"])
@pytest.mark.filterwarnings("ignore:the kernel is not positive")
def test_features_of_all_training_objects_are_the_repaired_matrix(name, policy):
    X, T, kernel = points(25), points(6, seed=1), KERNELS[name]
    K = kernel(X)
    values, Q = np.linalg.eigh(K)
    assert values[0] < -1e-3 * values[-1]  # indefinite, or the test shows nothing
    nystroem = sm.Nystroem(kernel, n_components=25, spectrum=policy, random_state=0)
    Z = nystroem.fit_transform(X)
    if policy == "shift":  # raises the spectrum of the landmarks, not the kernel values: c^T (K + a I)^-1 c
        H = K - 1.5 * values[0] * np.eye(25)
        np.testing.assert_allclose(Z @ Z.T, K @ np.linalg.inv(H) @ K, atol=1e-9)
    else:
        np.testing.assert_allclose(Z @ Z.T, repaired(K, policy), atol=1e-9)
    # The products of new objects with the training objects: their kernel values in each eigendirection, kept
    # (positive), dropped (clip) or taken with the other sign (flip), as those of the training objects are.
    C, signs = kernel(T, X) @ Q, np.sign(values) if policy == "flip" else values > 0
    if policy != "shift":
        np.testing.assert_allclose(nystroem.transform(T) @ Z.T, (C * signs) @ Q.T, atol=1e-8)
    # A training object met again is treated as in training.
    np.testing.assert_allclose(nystroem.transform(X[:3]), Z[:3], rtol=1e-12, atol=1e-12)


def test_substitution_kernels_learn():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(40, 2)), rng.normal(size=(40, 2)) * 0.3 + 3])
    y = np.repeat([0, 1], 40)
    test = np.concatenate([rng.normal(size=(40, 2)), rng.normal(size=(40, 2)) * 0.3 + 3])
    gamma = suggest_gamma(cdist_self, X)
    for kernel in (DistanceRBF(cdist_self, gamma), NegativeDistance(cdist_self, 1)):
        assert SVC(kernel="precomputed").fit(kernel(X), y).score(kernel(test, X), y) > 0.95
        model = make_pipeline(sm.Nystroem(kernel, "auto", spectrum="flip", random_state=0), LinearSVC())
        assert model.fit(X, y).score(test, y) > 0.95
    search = GridSearchCV(model, {"nystroem__kernel__power": [0.5, 2]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.9


def test_large_distances_to_the_origin_do_not_overflow():
    def far(X, Y=None):
        return np.float32(3e38) * (np.asarray(X)[:, None] != np.asarray(X if Y is None else Y))

    for Y in (None, [1, 2]):
        expected = np.float32([[3e38, 1.5e38], [1.5e38, 3e38]])
        np.testing.assert_array_equal(NegativeDistance(far, power=1, origin=0)([1, 2], Y), expected)


def test_clones_keep_the_origin():
    kernel = clone(NegativeDistance(WithFacts(), origin="ab"))
    assert (kernel.power, kernel.origin) == (2, "ab")


# ---- the median heuristic


def test_median_heuristic_by_hand():
    distance = FromFunction(lambda x, y: abs(x - y))
    assert suggest_gamma(distance, [0.0, 1.0, 5.0]) == pytest.approx(1 / (2 * 4**2))  # distances 1, 4, 5
    assert suggest_gamma(distance, [0.0, 1.0, 5.0], power=1) == pytest.approx(1 / 4)
    repeats = [0.0] * 9 + [3.0]  # 36 pairs at 0, 9 at 3
    assert suggest_gamma(distance, repeats, power=1) == pytest.approx(1 / 3)


@given(st.floats(0.01, 100))
def test_median_heuristic_follows_the_scale(scale):
    X = points(20)
    assert suggest_gamma(cdist_self, scale * X) * scale**2 == pytest.approx(suggest_gamma(cdist_self, X), rel=1e-6)


def test_median_heuristic_draws_n_objects_once():
    X = points(500)
    assert suggest_gamma(cdist_self, X, n=100) == suggest_gamma(cdist_self, X, n=100)
    assert suggest_gamma(cdist_self, X, n=100) == pytest.approx(suggest_gamma(cdist_self, X, n=500), rel=0.2)
    seen = []
    suggest_gamma(lambda A, B=None: seen.append(len(A)) or cdist_self(A, B), X, n=50)
    assert seen == [50]


# ---- bad input


def test_bad_input():
    X = points(4)
    for gamma in (0, -1.0, np.inf, np.nan, "auto", None, True):
        with pytest.raises(ValueError, match="gamma must be a positive number, got"):
            DistanceRBF(cdist_self, gamma)(X)
    with pytest.raises(ValueError, match="power must be a positive number, got 0"):
        NegativeDistance(cdist_self, power=0)(X)
    with pytest.raises(ValueError, match=r"returned nan for X\[0\] and Y\[0\]"):
        DistanceRBF(lambda X, Y=None: np.full((4, 4), np.nan))(X)
    for value, found in ((1e200, "the distance of {} is 1e+200, whose power 2"), (np.nan, "returned nan for {}")):
        far = FromFunction(lambda x, y, value=value: value if {x, y} == {"b", "o"} else 1.0)
        for name, collections in (("X", (["a", "b"],)), ("Y", (["a"], ["a", "b"]))):
            with pytest.raises(ValueError, match=re.escape(found.format(f"{name}[1] and the origin"))):
                NegativeDistance(far, origin="o")(*collections)
    with pytest.raises(ValueError, match="returned shape"):
        NegativeDistance(lambda X, Y=None: np.zeros(3))(X)
    with pytest.raises(ValueError, match="X holds 1 object"):
        suggest_gamma(cdist_self, X[:1])
    with pytest.raises(ValueError, match="all distances among 3 objects are 0"):
        suggest_gamma(cdist_self, np.ones((3, 2)))
    with pytest.raises(ValueError, match="n must be an integer >= 2"):
        suggest_gamma(cdist_self, X, n=1)


@pytest.mark.parametrize(
    "use",
    [
        lambda d: sm.Nystroem(d, 2).fit(WORDS),
        lambda d: sm.recipes.nyshd(d).fit(WORDS, [0, 1] * 5),
        lambda d: sm.kernels.Sum([d])(WORDS),
        lambda d: sm.kernels.Product([d]).diag(WORDS),
        lambda d: sm.kernels.Normalized(d)(WORDS),
        lambda d: sm.kernels.Normalized(d).diag(WORDS),
        lambda d: sm.KernelFeatures(d).fit(WORDS),
        lambda d: mmd2(WORDS, WORDS, d),
    ],
)
def test_a_distance_is_no_kernel(use):
    with pytest.raises(
        TypeError, match=r"Levenshtein\(\) is a distance, expected a kernel; .*DistanceRBF.*recipes.d2ke"
    ):
        use(Levenshtein())
    with pytest.raises(TypeError, match=r"the class Levenshtein, .* write Levenshtein\(...\)"):
        use(Levenshtein)


@pytest.mark.parametrize(
    "use",
    [
        lambda k: DistanceRBF(k)(WORDS),
        lambda k: DistanceRBF(k).diag(WORDS),
        lambda k: NegativeDistance(k)(WORDS, WORDS),
        lambda k: sm.Nystroem(DistanceRBF(k), 2).fit(WORDS),
        lambda k: sm.kernels.FromDistance(k, ["a"])(WORDS),
        lambda k: sm.PseudoEuclidean(k).fit(WORDS),
        lambda k: sm.PseudoEuclidean.transductive(k, WORDS, WORDS),
        lambda k: suggest_gamma(k, WORDS),
        lambda k: sm.D2KE(k).fit(WORDS),
    ],
)
def test_a_kernel_is_no_distance(use):
    for kernel, name in ((Spectrum(2), "Spectrum"), (DistanceRBF(Levenshtein()), "DistanceRBF")):
        with pytest.raises(TypeError, match=rf"{name}\(.*\) is a kernel, .*expected a distance"):
            use(kernel)
    with pytest.raises(TypeError, match=r"the class Spectrum, .* write Spectrum\(...\)"):
        use(Spectrum)


def test_lifted_functions_and_kernels_of_distances_are_taken():
    lifted = FromFunction(lambda x, y: float(abs(len(x) - len(y))))
    own = sm.pairwise(lambda x, y: float(len(x) * len(y)))
    for kernel in (own, DistanceRBF(lifted), sm.kernels.Sum([NegativeDistance(lifted, origin="")])):
        assert sm.kernels.Sum([kernel])(WORDS).shape == (10, 10)
    assert sm.PseudoEuclidean(lifted, 2).fit_transform(WORDS).shape[0] == 10
    unknown = DistanceRBF(FromFunction(lambda x, y: float(abs(len(x) - len(y)) + 1)))
    np.testing.assert_array_equal(unknown.diag(WORDS), np.exp(-1.0))
