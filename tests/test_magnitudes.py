"""Numbers times 2**k: values scale, stay, or a sentence comes. Never NaN, infinity, or 0 where the value is not.

Each case says by what power its values grow with the numbers, and from which k to which it must give them; beyond, it
may refuse. Parameters in the unit of the numbers are scaled with them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from similia import distances, kernels

rng = np.random.default_rng(0)
SERIES = [rng.normal(size=n) for n in (4, 7, 3, 5)]
PLANE = [rng.normal(size=(n, 2)) for n in (4, 7, 3, 5)]
ALL = (-1000, 1000)
SENTENCE = re.compile(r"scale|larger|too small|too large|below the smallest|exceeds|expected|finite", re.IGNORECASE)


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
        f"LCSS {name}": of_pairs(lambda unit: distances.LCSS(epsilon=unit), X, 0),
        f"GlobalAlignment {name}": of_pairs(lambda unit: kernels.GlobalAlignment(unit), X, 0),
        f"suggest_bandwidth {name}": Case(X, 1, lambda X, unit: kernels.suggest_bandwidth(X)),
        f"SoftDTW {name}": of_pairs(lambda unit: distances.SoftDTW(gamma=unit * unit), X, 2, (-470, 500)),
    }


VECTORS = rng.normal(size=(12, 5))
CASES |= {
    "Optical": of_pairs(lambda unit: kernels.Optical(), VECTORS, 4, (-240, 250)),
    "Optical bias": of_pairs(lambda unit: kernels.Optical(bias=unit), VECTORS, 4, (-240, 250)),
    "Optical scale": of_pairs(lambda unit: kernels.Optical(scale=1 / unit), VECTORS, 0),
    "Optical normalized": of_pairs(lambda unit: kernels.Optical(normalize=True), VECTORS, 0),
    "Optical normalized bias": of_pairs(lambda unit: kernels.Optical(bias=unit, normalize=True), VECTORS, 0),
    "Optical diag": Case(VECTORS, 4, lambda X, unit: kernels.Optical().diag(X), (-240, 250)),
    "Optical features": Case(VECTORS, 2, lambda X, unit: kernels.Optical().features(X, 16).toarray(), (-500, 500)),
    "Optical unit features": Case(
        VECTORS, 0, lambda X, unit: kernels.Optical(normalize=True).features(X, 16).toarray()
    ),
    "Normalized": of_pairs(lambda unit: kernels.Normalized(kernels.Optical()), VECTORS, 0, (-240, 250)),
}


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
    smallest = 1e-44 if single else 1e-320
    np.testing.assert_allclose(found, expected, rtol=1e-4 if single else 1e-9, atol=smallest)
    assert not ((found == 0) & (np.abs(base) > 1e-9)).any(), "a value became 0"


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=25, deadline=None)
@given(k=st.integers(-1000, 1000))
@example(k=-1000)
@example(k=-550)
@example(k=-250)
@example(k=250)
@example(k=525)
@example(k=1000)
def test_numbers_of_float64(name, k):
    assert_scales(CASES[name], k, np.float64)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if np.float32 in case.dtypes])
@settings(max_examples=15, deadline=None)
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
    ],
    ids=repr,
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_distance_does_not_depend_on_the_magnitude_of_other_objects(distance, dtype):
    low, high = (-900, 900) if dtype == np.float64 else (-70, 70)
    X = cast([*scaled(PLANE, low), *PLANE, *scaled(PLANE, high)], dtype)
    together = distance(X)
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


def test_what_is_no_float_names_its_pair():
    squares = distances.DTW(local="sqeuclidean")
    with pytest.raises(ValueError, match=r"of X\[1\] and Y\[0\] is below the smallest float64; scale the series"):
        squares([[0.0], [1e-170]], [[0.0]])
    with pytest.raises(ValueError, match="of pair 1 exceeds the largest float64; scale the series"):
        squares.paired([[0.0], [1e170]], [[0.0]], [0, 1], [0, 0])
    with pytest.raises(ValueError, match="is below the smallest float32; scale the series or give them as float64"):
        squares(np.float32([[1e-30]]), np.float32([[0.0]]))
    with pytest.raises(ValueError, match=r"Y\[1\] holds numbers of more than 1e\+145 times the root of gamma"):
        distances.SoftDTW()([[0.0]], [[0.0], [1e160]])
    with pytest.raises(ValueError, match=r"X\[0\] holds numbers of more than 1e\+145 times the bandwidth"):
        kernels.GlobalAlignment(1e-10)([[1e160]])
