"""How much memory a refusal takes, for the tests of hostile input."""

from __future__ import annotations

import tracemalloc

import pytest


def peak_of(call):
    """Return what a call raised and the bytes that Python and numpy allocated at most."""
    tracemalloc.start()
    try:
        with pytest.raises(ValueError) as caught:
            call()
        return str(caught.value), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
