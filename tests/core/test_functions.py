"""Exponential, logarithm, cosine and sine: accurate, and the same in any place, layout and processor."""

import os
import subprocess
import sys

import numpy as np
import pytest

from similia.core import functions

LONG = np.longdouble
# pi / 2 in two doubles: longdouble has no literal of its own
HALF_PI = LONG(np.pi / 2) + LONG(6.123233995736766e-17)

if np.finfo(LONG).nmant < 60:
    pytest.skip("long double has no more digits than double here", allow_module_level=True)


def ulps(found, exact):
    """Errors in units of the last place of the exact result."""
    return np.abs(found - exact) / np.spacing(np.abs(exact).astype(found.dtype))


@pytest.fixture
def random():
    return np.random.default_rng(0)


def test_exp(random):
    x = np.concatenate(
        [random.uniform(-708, 709, 50_000), random.uniform(-1, 1, 50_000), -(10.0 ** random.uniform(-20, 2, 9999))]
    )
    assert ulps(functions.exp(x), np.exp(x.astype(LONG))).max() < 1
    single = x[np.abs(x) < 80].astype(np.float32)
    assert ulps(functions.exp(single), np.exp(single.astype(LONG))).max() < 0.51
    below = np.array([-745.0, -720.3, -709.0])  # subnormal
    np.testing.assert_allclose(functions.exp(below), np.exp(below.astype(LONG)).astype(float), rtol=0, atol=5e-324)


def test_log(random):
    x = np.concatenate([10.0 ** random.uniform(-320, 308, 50_000), random.uniform(0.5, 2, 50_000)])
    assert ulps(functions.log(x), np.log(x.astype(LONG))).max() < 1


def test_cosine_and_sine(random):
    turns = np.concatenate([random.uniform(-1000, 1000, 50_000), random.uniform(-2, 2, 50_000)])
    cosines, sines = functions.cos_sin_of_quarters(turns)
    whole = np.rint(turns)
    rest = (turns - whole).astype(LONG) * HALF_PI  # at most pi / 4: no zero but at 0
    c, s = np.cos(rest), np.sin(rest)
    quarter = whole.astype(int) % 4
    exact_cosines = np.choose(quarter, [c, -s, -c, s])
    exact_sines = np.choose(quarter, [s, c, -s, -c])
    assert ulps(cosines, exact_cosines).max() < 2
    assert ulps(sines, exact_sines).max() < 2
    angles = random.uniform(-50, 50, 10_000)
    np.testing.assert_allclose(functions.cos(angles), np.cos(angles.astype(LONG)).astype(float), atol=1e-14)


def test_quarter_turns_are_exact():
    cosines, sines = functions.cos_sin_of_quarters(np.array([-1.0, 0, 1, 2, 3, 4, 2.0**52 + 1, 1e300]))
    assert cosines.tolist() == [0, 1, 0, -1, 0, 1, 0, 1]
    assert sines.tolist() == [-1, 0, 1, 0, -1, 0, 1, 0]


def test_ends_of_the_range():
    values = np.array([0.0, -np.inf, np.inf, np.nan, 1000.0, -1000.0])
    np.testing.assert_array_equal(functions.exp(values), [1, 0, np.inf, np.nan, np.inf, 0])
    np.testing.assert_array_equal(
        functions.log(np.array([1.0, 0.0, -1.0, np.inf, np.nan])), [0, -np.inf, np.nan, np.inf, np.nan]
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("function", [functions.exp, functions.log, functions.cos])
def test_a_number_alone_has_the_bits_it_has_in_an_array(function, dtype, random):
    X = random.uniform(0.01, 30, (37, 41)).astype(dtype)
    found = function(X)
    assert found.dtype == dtype
    assert np.array_equal(function(np.asfortranarray(X)), found)
    assert np.array_equal(function(X[::2, ::-3]), found[::2, ::-3])
    assert all(function(X[i : i + 1, j : j + 1])[0, 0] == found[i, j] for i in range(0, 37, 9) for j in range(41))
    place = X.copy()
    assert function(place, out=place) is place
    assert np.array_equal(place, found)
    many = np.tile(X, (80, 2))  # enough for threads
    assert np.array_equal(function(many), np.tile(found, (80, 2)))


def test_a_place_that_is_not_contiguous_is_refused():
    with pytest.raises(ValueError, match="out must be C-contiguous"):
        functions.exp(np.ones((2, 4)), out=np.ones((2, 8))[:, ::2])


_ALL = """
import sys
import numpy as np
from similia.core import functions
x = np.random.default_rng(0).uniform(0.01, 30, 5001)
for found in (functions.exp(-x), functions.log(x), functions.cos(x), *functions.cos_sin_of_quarters(x)):
    sys.stdout.write(found.tobytes().hex())
"""


def _bits(**settings):
    env = os.environ | settings
    return subprocess.run([sys.executable, "-c", _ALL], env=env, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def here():
    return _bits()


@pytest.mark.parametrize("processor", ["generic", pytest.param("nehalem", marks=pytest.mark.long), "haswell"])
def test_other_processors_give_the_same_bits(processor, here, tmp_path):
    there = _bits(NUMBA_CPU_NAME=processor, NUMBA_CPU_FEATURES="", NUMBA_CACHE_DIR=str(tmp_path))
    assert len(here) == 5 * 5001 * 16
    assert there == here
