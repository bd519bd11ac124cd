"""Every public distance against the facts it states, and counterexamples to what it does not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import similia as sm
from similia import distances
from similia.distances import (
    ADTW,
    DTW,
    ERP,
    LCSS,
    MMD,
    MSM,
    TWE,
    Chamfer,
    DamerauLevenshtein,
    Distance,
    Facts,
    FromFunction,
    Hamming,
    Hausdorff,
    JaroWinkler,
    Levenshtein,
    ModifiedHausdorff,
    SlicedWasserstein,
    SoftDTW,
    Wasserstein,
)
from similia.objects import take
from similia.similarity import without_addresses

laws = settings(max_examples=15, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)


def strings(rng, n):
    return ["".join(rng.choice(list("ab"), size)) for size in rng.integers(0, 6, n)]


def series(rng, n):
    return [rng.integers(-1, 2, (size, 2)).astype(float) for size in rng.integers(1, 6, n)]


def point_sets(rng, n):
    return [rng.integers(-1, 2, (size, 2)).astype(float) for size in rng.integers(0, 6, n)]


def graphs(rng, n):
    upper = [np.triu(rng.random((size, size)) < 0.4, 1) for size in rng.integers(1, 8, n)]
    return [(A | A.T).astype(float) for A in upper]  # adjacency matrices


def length_gap(x, y):
    return abs(len(x) - len(y))


PLAIN_SOFT_DTW = SoftDTW(divergence=False)
SIGNED = [PLAIN_SOFT_DTW]  # values below 0, which its documentation says
EXAMPLES = [
    (Levenshtein(), strings),
    (Hamming(), strings),
    (DamerauLevenshtein(), strings),
    (JaroWinkler(), strings),
    (JaroWinkler(prefix_weight=0), strings),
    (FromFunction(length_gap), strings),
    (DTW(), series),
    (DTW(window=1), series),
    (ERP(), series),
    (ERP(gap=0.5, window=2), series),
    (MSM(), series),
    (MSM(c=0.1, window=2), series),
    (TWE(), series),
    (TWE(nu=0.5, lmbda=0.2, window=2), series),
    (LCSS(), series),
    (ADTW(), series),
    (ADTW(penalty=0.0, window=2), series),
    (LCSS(epsilon=0.0), series),
    (SoftDTW(), series),
    (SoftDTW(gamma=0.1), series),
    (PLAIN_SOFT_DTW, series),
    (ModifiedHausdorff(), point_sets),
    (ModifiedHausdorff("sqeuclidean"), point_sets),
    (Hausdorff(), point_sets),
    (Hausdorff("manhattan"), point_sets),
    (Chamfer(), point_sets),
    (Chamfer("manhattan"), point_sets),
    (SlicedWasserstein(), point_sets),
    (SlicedWasserstein(3, p=1), point_sets),
    (Wasserstein(), point_sets),
    (Wasserstein(p=2, ground="manhattan"), point_sets),
    (MMD(size=3, n_samples=20), graphs),
    (MMD(size=4, n_samples=20, kernel="optical"), graphs),
]
# Objects x, y, z with d(x, z) > d(x, y) + d(y, z), or x != y with d(x, y) = 0.
NO_METRIC = {
    JaroWinkler: (JaroWinkler(), ["a", "aa", "ba"]),
    FromFunction: (FromFunction(length_gap), ["a", "b", ""]),
    DTW: (DTW(), [[2.0, 2.0, 2.0], [2.0], [0.0]]),
    ADTW: (ADTW(), [[0.0], [1.0], [2.0]]),
    LCSS: (LCSS(), [[0.0], [0.0, 5.0], [5.0]]),
    SoftDTW: (SoftDTW(gamma=0.01), [[2.0, 2.0, 2.0], [2.0], [0.0]]),
    ModifiedHausdorff: (ModifiedHausdorff(), [[[2.0]], [[2.0], [1.0]], [[0.0], [1.0], [0.0]]]),
    Chamfer: (Chamfer(), [[[2.0]], [[2.0], [1.0]], [[0.0], [1.0], [0.0]]]),
    MMD: (MMD(size=3), [np.zeros((3, 3)), np.zeros((4, 4)), np.zeros((5, 5))]),  # both have empty graphlets only
    SlicedWasserstein: (
        SlicedWasserstein(n_projections=1),
        [np.zeros((1, 2)), np.flip(SlicedWasserstein()._directions(1, 2)) * [[1, -1]], np.ones((1, 2))],
    ),
}


def parametrised(examples):
    return pytest.mark.parametrize(
        ("distance", "draw"), examples, ids=[without_addresses(distance) for distance, _ in examples]
    )


def each_that_promises(fact):
    return parametrised([example for example in EXAMPLES if getattr(example[0].facts, fact)])


each = parametrised(EXAMPLES)


def collection(draw, seed, n=5):
    X = draw(np.random.default_rng(seed), n)
    return [*X, X[0]]  # one object twice


def same(x, y):
    if isinstance(x, str):
        return x == y
    return x.shape == y.shape and bool((x == y).all())


def as_compared(distance, x):
    """One object for all those that are one to a distance, so that only these have distance 0."""
    if isinstance(distance, Hausdorff):  # sets, not lists; an empty set is the set of the origin
        return np.unique(x, axis=0) if len(x) else np.zeros((1, 2))
    if isinstance(distance, Wasserstein):  # distributions: all points repeated are the same
        points, counts = np.unique(x if len(x) else np.zeros((1, 2)), axis=0, return_counts=True)
        return np.repeat(points, counts // np.gcd.reduce(counts), axis=0)
    if isinstance(distance, ERP):  # points equal to the gap cost nothing
        return np.concatenate([[[2.0, 2.0]], x[(x != distance.gap).any(axis=1)]])
    return x


def margin(D):
    return 1e-6 * max(1.0, D.max())


def test_every_distance_is_here():
    assert {type(distance).__name__ for distance, _ in EXAMPLES} == {*distances.facts_table(), "FromFunction"}


@each
def test_facts_are_stated(distance, draw):
    assert isinstance(distance, Distance)
    for facts in (distance.facts, type(distance).facts):
        assert isinstance(facts, Facts)
        assert all(isinstance(getattr(facts, name), bool) for name in ("symmetric", "identity", "metric"))
        assert facts.cost
        assert not facts.metric or (facts.symmetric and facts.identity)


@each
@laws
@given(seed=SEEDS)
def test_values(distance, draw, seed):
    X = collection(draw, seed)
    D = distance(X)
    assert D.dtype in (np.float32, np.float64)
    assert D.shape == (len(X), len(X))
    assert np.isfinite(D).all()
    assert (D >= 0).all() or distance in SIGNED


@each_that_promises("symmetric")
@laws
@given(seed=SEEDS)
def test_symmetry(distance, draw, seed):
    X, Y = collection(draw, seed), collection(draw, seed + 1)
    D = distance(X)
    np.testing.assert_allclose(D, D.T, atol=margin(D))
    np.testing.assert_allclose(distance(X, Y), distance(Y, X).T, atol=margin(D))


@each_that_promises("identity")
@laws
@given(seed=SEEDS)
def test_identity(distance, draw, seed):
    X = collection(draw, seed)
    D, across = distance(X), distance(X, collection(draw, seed))
    assert D.diagonal().max() <= margin(D)
    assert across.diagonal().max() <= margin(D)
    assert D[0, -1] <= margin(D)


@each_that_promises("metric")
@laws
@given(seed=SEEDS)
def test_metric(distance, draw, seed):
    X = [as_compared(distance, x) for x in collection(draw, seed, n=8)]
    D = distance(X).astype(float)
    detour = (D[:, :, None] + D[None, :, :]).min(axis=1)  # by the best third object
    assert (D - detour).max() <= margin(D)
    np.testing.assert_array_equal(margin(D) >= D, [[same(x, y) for y in X] for x in X])


@pytest.mark.same_bits
@each
@laws
@given(seed=SEEDS)
def test_any_part_gives_the_same(distance, draw, seed):
    X = collection(draw, seed)
    D = distance(X)
    for i in range(3):
        np.testing.assert_allclose(distance(take(X, [i]), X), D[[i]], atol=margin(D))
        np.testing.assert_allclose(distance(X, take(X, [4 - i, i])), D[:, [4 - i, i]], atol=margin(D))
    batch = distance.as_objects(X)
    np.testing.assert_array_equal(distance(batch), D)
    np.testing.assert_array_equal(distance(batch[1:3], batch), distance(X[1:3], X))


@parametrised([example for example in EXAMPLES if example[0] not in SIGNED])
def test_laws_of_a_distance(distance, draw):
    sm.checks.check_distance(distance, collection(draw, 0, n=9))


@each
def test_unequal_lengths(distance, draw):
    X = sorted(collection(draw, 0, n=9), key=len)
    assert len(X[0]) < len(X[-1])
    if distance.facts.unequal_length:
        assert np.isfinite(distance(X[:1], X[-1:])).all()
    else:
        with pytest.raises(ValueError, match="length"):
            distance(X[:1], X[-1:])


def test_every_other_distance_has_a_counterexample():
    assert set(NO_METRIC) == {type(distance) for distance, _ in EXAMPLES if not type(distance).facts.metric}


@pytest.mark.parametrize("cls", NO_METRIC, ids=lambda cls: cls.__name__)
def test_counterexamples(cls):
    distance, objects = NO_METRIC[cls]
    D = distance([np.array(x) if isinstance(x, list) else x for x in objects])
    assert D[0, 2] > D[0, 1] + D[1, 2] + 0.1 or D[0, 1] < 1e-12
