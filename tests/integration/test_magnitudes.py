"""Numbers times 2**k: values scale, stay, or a sentence comes. Never NaN, infinity, or 0 where the value is not.

Each case says by what power its values grow with the numbers, and from which k to which it must give them; beyond, it
may refuse. Parameters in the unit of the numbers are scaled with them.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st

import similia as sm
from similia import distances, kernels
from similia.objects import AttributeScaler

rng = np.random.default_rng(0)
SERIES = [rng.normal(size=n) for n in (4, 7, 3, 5)]
PLANE = [rng.normal(size=(n, 2)) for n in (4, 7, 3, 5)]
ALL = (-1000, 1000)
SENTENCE = re.compile("scale|larger|too small|too large|below the smallest|exceeds|expected|finite|positive")


@dataclass(frozen=True)
class Case:
    X: Any
    degree: int
    run: Callable[[Any, float], Any]  # of numbers, and their unit, a power of two
    must: tuple[int, int] = ALL
    dtypes: tuple[Any, ...] = (np.float64, np.float32)


def of_pairs(make, X, degree=1, must=ALL):
    """A kernel or distance, made for a unit: all pairs of X, and pairs with fewer objects."""
    return Case(X, degree, lambda X, unit: make(unit)(X, X[:3]), must)


CASES: dict[str, Case] = {}
for name, X in (("series", SERIES), ("plane", PLANE)):
    CASES |= {
        f"DTW {name}": of_pairs(lambda unit: distances.DTW(), X),
        f"DTW squares {name}": of_pairs(lambda unit: distances.DTW(local="sqeuclidean"), X, 2, (-480, 500)),
        f"DTW root {name}": of_pairs(lambda unit: distances.DTW(local="sqeuclidean", root=True), X),
        f"ERP {name}": of_pairs(lambda unit: distances.ERP(), X),
        f"ERP gap {name}": of_pairs(lambda unit: distances.ERP(gap=0.5 * unit), X),
        f"MSM {name}": of_pairs(lambda unit: distances.MSM(c=unit), X),
        f"TWE {name}": of_pairs(lambda unit: distances.TWE(nu=unit / 8, lmbda=unit), X),
        f"ADTW {name}": of_pairs(lambda unit: distances.ADTW(penalty=min(unit * unit, 2.0**1022)), X, 2, (-480, 500)),
        f"LCSS {name}": of_pairs(lambda unit: distances.LCSS(epsilon=unit), X, 0),
        f"GlobalAlignment {name}": of_pairs(lambda unit: kernels.GlobalAlignment(unit), X, 0),
        f"suggest_bandwidth {name}": Case(X, 1, lambda X, unit: kernels.suggest_bandwidth(X)),
        f"SoftDTW {name}": of_pairs(lambda unit: distances.SoftDTW(gamma=unit * unit), X, 2, (-470, 500)),
    }


SPACE = [rng.normal(size=(n, 9)) for n in (4, 7, 3, 5)]
for name, X in (("plane", PLANE), ("space", SPACE)):
    for ground in ("euclidean", "sqeuclidean", "manhattan"):
        degree, must = (2, (-480, 500)) if ground == "sqeuclidean" else (1, ALL)
        for kind in (distances.ModifiedHausdorff, distances.Chamfer, distances.Hausdorff):
            if ground in kind._grounds:
                CASES[f"{kind.__name__} {ground} {name}"] = of_pairs(
                    lambda unit, k=kind, g=ground: k(g), X, degree, must
                )
    for p in (1, 2):
        CASES[f"SlicedWasserstein {p} {name}"] = of_pairs(lambda unit, p=p: distances.SlicedWasserstein(8, p), X)
        CASES[f"Wasserstein {p} {name}"] = of_pairs(lambda unit, p=p: distances.Wasserstein(p), X)

VECTORS = rng.normal(size=(12, 5))
CASES |= {
    "Optical": of_pairs(lambda unit: kernels.Optical(), VECTORS, 4, (-240, 250)),
    "Optical bias": of_pairs(lambda unit: kernels.Optical(bias=unit), VECTORS, 4, (-240, 250)),
    "Optical scale": of_pairs(lambda unit: kernels.Optical(scale=1 / unit), VECTORS, 0),
    "Optical normalized": of_pairs(lambda unit: kernels.Optical(normalize=True), VECTORS, 0),
    "Optical normalized bias": of_pairs(lambda unit: kernels.Optical(bias=unit, normalize=True), VECTORS, 0),
    "Optical diag": Case(VECTORS, 4, lambda X, unit: kernels.Optical().diag(X), (-240, 250)),
    "Optical features": Case(VECTORS, 2, lambda X, unit: kernels.Optical().features(X, 16).toarray(), (-480, 500)),
    "Optical unit features": Case(
        VECTORS, 0, lambda X, unit: kernels.Optical(normalize=True).features(X, 16).toarray()
    ),
    "Normalized": of_pairs(lambda unit: kernels.Normalized(kernels.Optical()), VECTORS, 0, (-240, 250)),
}


Y = np.arange(12) % 2


def divisors(unit):
    """The units of Hydra's features: sums of values, then numbers of times, of three kernels each."""
    return np.tile(np.repeat([unit, 1], 3), 4)


def embedded(make, X, degree, must=ALL):
    return Case(X, degree, lambda X, unit: make().fit(X).transform(X), must)


CASES |= {
    "DistanceRBF": of_pairs(
        lambda unit: kernels.DistanceRBF(distances.DTW(), inverse(unit) ** 2), SERIES, 0, (-500, 500)
    ),
    "DistanceRBF suggested": Case(
        SERIES, 0, lambda X, unit: kernels.DistanceRBF(distances.DTW(), suggested(X))(X), (-500, 500)
    ),
    "NegativeDistance": of_pairs(lambda unit: kernels.NegativeDistance(distances.DTW()), SERIES, 2, (-500, 500)),
    "NegativeDistance 1": of_pairs(lambda unit: kernels.NegativeDistance(distances.DTW(), power=1), SERIES, 1),
    "HypersphericalHeat": of_pairs(lambda unit: kernels.HypersphericalHeat(), VECTORS, 0),
    "Cosine": of_pairs(lambda unit: kernels.Cosine(), VECTORS, 0),
    "suggest_contrast": Case(VECTORS, 0, lambda X, unit: kernels.suggest_contrast(X)),
    "Nystroem": embedded(
        lambda: sm.Nystroem(kernels.Optical(normalize=True), n_components=6, random_state=0), VECTORS, 0
    ),
    "PseudoEuclidean": embedded(lambda: sm.PseudoEuclidean(distances.DTW()), SERIES, 1, (-460, 490)),
    "D2KE": embedded(lambda: sm.D2KE(distances.DTW(), n_components=8, random_state=0), SERIES, 0, (-470, 490)),
    "IntervalQuantiles": embedded(sm.IntervalQuantiles, SERIES, 1, (-97, 97)),
    "Hydra": Case(SERIES, 0, lambda X, unit: sm.embeddings.Hydra(4, 3, 0).fit_transform(X) / divisors(unit), (-97, 97)),
    "OpticalRandomFeatures": embedded(lambda: sm.OpticalRandomFeatures(16, random_state=0), VECTORS, 2, (-475, 475)),
    "HeatRandomFeatures": embedded(lambda: sm.HeatRandomFeatures(n_components=16, random_state=0), VECTORS, 0),
    "SignRandomProjection": embedded(lambda: sm.SignRandomProjection(64, random_state=0), VECTORS, 0),
    "LevelEncoder": embedded(lambda: sm.LevelEncoder(64, random_state=0), VECTORS, 0),
    "SequenceEncoder": embedded(lambda: sm.SequenceEncoder(64, random_state=0), PLANE, 0),
    "RandomConvolutions": embedded(lambda: sm.RandomConvolutions(672, "multirocket", random_state=0), SERIES, 0),
    "GeneralizedNystroemPCA": embedded(lambda: sm.GeneralizedNystroemPCA(3, random_state=0), VECTORS, 1, (-990, 490)),
    "ITQ": embedded(lambda: sm.ITQ(8, random_state=0), rng.normal(size=(40, 8)), 0),
    "SignCodes": embedded(lambda: sm.codes.SignCodes(), rng.normal(size=(40, 8)), 0),
    "HDClassifier": Case(
        VECTORS, 0, lambda X, unit: sm.HDClassifier(random_state=0).fit(X, Y).decision_function(X), (-1000, 240)
    ),
    "HDClassifier, ridge": Case(
        VECTORS, 0, lambda X, unit: sm.HDClassifier("ridge", alpha=0.1).fit(X, Y).decision_function(X), (-1000, 240)
    ),
    "AttributeScaler": Case(
        VECTORS,
        0,
        lambda X, unit: AttributeScaler().fit_transform([([[0], [1]], 12, {"node_attributes": X})]).node_attributes,
        (-1000, 1020),
    ),
    "AttributeScaler.scale_": Case(
        VECTORS, 1, lambda X, unit: AttributeScaler().fit([([[0], [1]], 12, {"node_attributes": X})]).scale_
    ),
    "Propagation": Case(
        VECTORS,
        0,
        lambda X, unit: kernels.Propagation(bin_width=unit)(
            [([[0], [1]], 6, {"node_attributes": x}) for x in (X[:6], X[6:])]
        ),
    ),
    "KNeighborsClassifier": Case(
        SERIES, 1, lambda X, unit: sm.KNeighborsClassifier(distances.DTW(), 2).fit(X, [0, 1, 0, 1]).kneighbors(X)[0]
    ),
    "HeatSVC": Case(VECTORS, 0, lambda X, unit: sm.HeatSVC().fit(X, Y).predict(X)),
}


def inverse(unit):
    return 1 / unit if abs(np.log2(unit)) < 510 else 0.0  # 0 is refused


def suggested(X):
    return kernels.suggest_gamma(distances.DTW(), X)


def scaled(X, k):
    return [np.ldexp(x, k) for x in X] if isinstance(X, list) else np.ldexp(X, k)


def cast(X, dtype):
    return [x.astype(dtype) for x in X] if isinstance(X, list) else X.astype(dtype)


def assert_scales(case, k, dtype):
    X = cast(case.X, dtype)
    base = np.asarray(case.run(X, 1.0), np.float64)
    single, share = dtype == np.float32, max(1, abs(case.degree))
    try:
        found = np.asarray(case.run(scaled(X, k), 2.0**k), np.float64)
    except ValueError as error:
        found, said = None, str(error)
    if found is None:
        least, most = case.must
        inside = max(least, -110 // share) <= k <= min(most, 110 // share) if single else least <= k <= most
        assert not inside, f"refused at 2**{k}: {said}"
        assert SENTENCE.search(said), said
        return
    assert np.isfinite(found).all()
    with np.errstate(all="ignore"):
        expected = np.ldexp(base, case.degree * k)
    smallest = max(1e-44 if single else 1e-320, (1e-6 if single else 1e-12) * np.abs(expected).max())
    np.testing.assert_allclose(found, expected, rtol=1e-4 if single else 1e-9, atol=smallest)
    assert not ((found == 0) & (np.abs(base) > 1e-9)).any(), "a value became 0"


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=8, deadline=None)
@given(k=st.integers(-1000, 1000))
@example(k=-1000)
@example(k=-550)
@example(k=-514)
@example(k=-250)
@example(k=250)
@example(k=525)
@example(k=1000)
def test_numbers_of_float64(name, k):
    assert_scales(CASES[name], k, np.float64)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if np.float32 in case.dtypes])
@settings(max_examples=6, deadline=None)
@given(k=st.integers(-110, 110))
@example(k=-110)
@example(k=-77)
@example(k=77)
@example(k=110)
def test_numbers_of_float32(name, k):
    assert_scales(CASES[name], k, np.float32)


@pytest.mark.parametrize(
    "distance",
    [
        distances.DTW(),
        distances.DTW(local="sqeuclidean", root=True),
        distances.ERP(),
        distances.TWE(),
        distances.LCSS(),
        distances.ModifiedHausdorff(),
        distances.SlicedWasserstein(8),
    ],
    ids=repr,
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_distance_does_not_depend_on_the_magnitude_of_other_objects(distance, dtype):
    low, high = (-900, 900) if dtype == np.float64 else (-70, 70)
    X = cast([*scaled(PLANE, low), *PLANE, *scaled(PLANE, high)], dtype)
    together = distance(X)
    if hasattr(distance, "paired"):
        rows, columns = np.divmod(np.arange(len(X) ** 2), len(X))
        np.testing.assert_array_equal(distance.paired(X, X, rows, columns), together.ravel())
    for i, j in [(0, 1), (1, 5), (5, 6), (2, 9), (6, 10), (9, 10)]:
        assert distance([X[i]], [X[j]])[0, 0] == together[i, j]
        assert distance([X[j]], [X[i]])[0, 0] == together[i, j]


def test_normalized_kernels_at_the_edges_of_float64():
    K = np.array([[2.0, 1.0], [1.0, 2.0]])
    for value in (1e-170, 1e-300, 1e155, 8e307):
        kernel = kernels.Normalized(lambda X, Y=None, value=value: K * value)
        np.testing.assert_allclose(kernel([[0.0], [1.0]]), [[1, 0.5], [0.5, 1]], rtol=1e-15)
    far = np.array([1e-150, 1e150])  # of unlike objects
    wide = kernels.Normalized(lambda X, Y=None: np.outer(far, far))
    np.testing.assert_allclose(wide([[0.0], [1.0]]), np.ones((2, 2)), rtol=1e-15)


def test_codes_of_very_small_vectors_are_those_of_larger_ones():
    X = np.random.default_rng(5).normal(size=(60, 16))
    model = sm.ITQ(16, random_state=0).fit(X)
    expected = sm.ITQ(16, random_state=0).fit(X).transform(X[:7])
    for k in (-1055, -1010, -1000, 990, 1010):
        scaled_model = sm.ITQ(16, random_state=0).fit(np.ldexp(X, k))
        if k > -1020:
            np.testing.assert_array_equal(scaled_model.transform(np.ldexp(X[:7], k)), expected)
        alone = [scaled_model.transform(np.ldexp(x, k)[None])[0] for x in X[:7]]
        np.testing.assert_array_equal(alone, scaled_model.transform(np.ldexp(X, k))[:7])
    np.testing.assert_array_equal(model.transform(X[:7]), expected)


def test_small_hypervectors_among_others():
    X = np.concatenate([VECTORS, np.ldexp(VECTORS, -700)])
    model = sm.HDClassifier(random_state=0).fit(VECTORS, Y)
    np.testing.assert_array_equal(model.predict(X), np.tile(model.predict(VECTORS), 2))
    np.testing.assert_array_equal(model.decision_function(X)[12:], model.decision_function(VECTORS))
    with pytest.raises(ValueError, match=r"X\[12\] is smaller than another hypervector, or than the prototypes, by"):
        sm.HDClassifier(random_state=0).fit(X, np.tile(Y, 2))
    with pytest.raises(ValueError, match=r"X\[0\] is smaller than another"):
        model.partial_fit(np.ldexp(VECTORS, -700), Y)


def test_large_numbers_are_refused_where_they_are_squared():
    X = np.concatenate([VECTORS, VECTORS * 1e160])
    for sampling in ("uniform", "norm"):
        model = sm.GeneralizedNystroemPCA(3, 24, random_state=0, sampling=sampling)
        for form in (X, sp.csr_array(X)) if sampling == "norm" else (X, sp.csr_array(X), [X]):
            with pytest.raises(ValueError, match=r"X\[12\] holds numbers above 1e\+150, whose squares .* scale X down"):
                model.fit(form)


def test_combinations_that_are_too_large_name_their_pair():
    X = VECTORS[:3] * np.array([[1.0], [1.0], [1e60]])
    fine = kernels.Optical(scale=1.0)
    with pytest.raises(ValueError, match=r"the product of the kernels of X\[2\] and Y\[2\] exceeds the largest"):
        kernels.Product([fine, fine])(X)
    with pytest.raises(ValueError, match=r"the sum of the kernels of X\[2\] and Y\[2\] exceeds the largest float64"):
        kernels.Sum([fine, fine], weights=[1.0, 1e100])(X)
    assert kernels.Product([kernels.DistanceRBF(distances.DTW(), 1.0)] * 2)([[0.0], [24.0]])[0, 1] == 0.0


def test_what_is_no_float_names_its_pair():
    squares = distances.DTW(local="sqeuclidean")
    with pytest.raises(ValueError, match=r"of X\[1\] and Y\[0\] is below the smallest float64; scale the series"):
        squares([[0.0], [1e-170]], [[0.0]])
    with pytest.raises(ValueError, match="of pair 1 exceeds the largest float64; scale the series"):
        squares.paired([[0.0], [1e170]], [[0.0]], [0, 1], [0, 0])
    with pytest.raises(ValueError, match="is below the smallest float32; scale the series or give them as float64"):
        squares(np.float32([[1e-30]]), np.float32([[0.0]]))
    with pytest.raises(ValueError, match=r"Y\[1\] holds numbers above 1e\+145 times the root of gamma"):
        distances.SoftDTW()([[0.0]], [[0.0], [1e160]])
    with pytest.raises(ValueError, match=r"X\[0\] holds numbers above 1e\+145 times the bandwidth"):
        kernels.GlobalAlignment(1e-10)([[1e160]])


@pytest.mark.parametrize("power", [1000, 1022, -1000])
def test_levels_of_large_and_small_numbers_can_be_saved(power):
    X = np.array([[1.0, -1.0], [0.2, 1.0], [0.0, 0.5], [-1.0, 0.1]])
    for encoder, data in (
        (sm.LevelEncoder(16, n_bits=64, random_state=0), [X, X * 2.0**power]),
        (sm.SequenceEncoder(16, n_bits=64, random_state=0), [[X[:3], X[2:]], [x * 2.0**power for x in (X[:3], X[2:])]]),
    ):
        expected = encoder.fit(data[0]).transform(data[0])  # a power of two changes no level
        file = io.BytesIO()
        sm.save(encoder.fit(data[1]), file)
        file.seek(0)
        np.testing.assert_array_equal(sm.load(file).transform(data[1]), expected)


@pytest.mark.parametrize("value", [0.1, -0.7e300, 1e-300])
def test_a_constant_attribute_becomes_0_although_its_standard_deviation_is_rounded(value):
    graphs = [([[0], [1]], n, {"node_attributes": np.full((n, 2), [value, 1.0])}) for n in (3, 7)]
    scaler = AttributeScaler().fit(graphs)
    np.testing.assert_array_equal(scaler.transform(graphs).node_attributes, 0)
    np.testing.assert_array_equal(scaler.scale_, 1)
