"""What is true of each built-in distance, as one table."""

from __future__ import annotations

import similia.distances
from similia.similarity import Facts

_NO_FACTS = (
    "Distance", "Facts", "FromFunction", "facts_table", "mmd2", "mmd2_variance", "two_sample_test", "TwoSampleResult",
)  # fmt: skip


def facts_table() -> dict[str, Facts]:
    """Return the facts of every built-in distance with its default parameters, by name.

    A parameter can undo a fact (a window breaks the triangle inequality): an object's own ``facts`` count.

    Examples
    --------
    >>> from similia.distances import facts_table
    >>> [name for name, facts in facts_table().items() if facts.metric]
    ['Levenshtein', 'Hamming', 'DamerauLevenshtein', 'ERP', 'MSM', 'TWE', 'Hausdorff']
    >>> facts_table()["DTW"]
    Facts(symmetric=True, identity=True, metric=False, unequal_length=True, cost='m n')
    """
    names = [name for name in similia.distances.__all__ if name not in _NO_FACTS]
    return {name: getattr(similia.distances, name)().facts for name in names}
