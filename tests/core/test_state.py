"""The checks of declared state, which a loaded model must pass."""

import numpy as np
import pytest

from similia.core.state import NAMED, array


@pytest.mark.parametrize("most", [None, 1e10, 1e150])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
def test_magnitudes_of_any_dtype_are_checked_without_a_warning(dtype, most):
    check = array("f4 f8 c8", "n", most=most)
    assert check(np.array([1, -2, 0], dtype), {})
    for bad in (np.nan, np.inf, -np.inf):
        assert not check(np.array([1, bad], dtype), {})
    assert not array("f4 f8 c8", "n", most=2.0)(np.array([1, -2], dtype), {})


@pytest.mark.parametrize("name", ["number", "positive"])
def test_numbers_fit_into_float64(name):
    assert NAMED[name](2**70, {})
    assert not NAMED[name](10**400, {})
