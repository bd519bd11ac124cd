"""What tests of explanations share: parts by name, and that they add up."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st

from similia.explanations import Explanation

ALL = 10**9
quick = settings(max_examples=8, deadline=None)
words = st.text("ACGT", max_size=14)


def by_name(explanation: Explanation) -> dict[str, float]:
    """Return the parts as a dict; parts of one name are added."""
    total: Counter = Counter()
    for part in explanation.parts:
        total[part.name] += part.contribution
    return dict(total)


def check_sums(explanation: Explanation, exact: bool = True, rounding: float = 1e-9) -> None:
    """Parts and residual are the value, and so are what is listed, omitted and unexplained."""
    e = explanation
    listed = sum(part.contribution for part in e.parts)
    scale = max(1.0, abs(e.value), *(abs(part.contribution) for part in e.parts))
    assert listed + e.residual == pytest.approx(e.value, abs=1e-9 * scale)
    assert e.omitted + e.unexplained == pytest.approx(e.residual, abs=1e-9 * scale)
    if exact:
        assert abs(e.unexplained) <= rounding * scale
