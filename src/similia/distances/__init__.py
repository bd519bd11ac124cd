"""Distances d(x, y) >= 0 of strings, series, point sets and graphs; two-sample tests; user functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from similia.core import attach

if TYPE_CHECKING:
    from similia.similarity import Facts

_HOMES = {
    "edit": ("Levenshtein", "Hamming", "DamerauLevenshtein", "JaroWinkler"),
    "elastic": ("DTW", "ERP", "MSM", "TWE", "LCSS", "ADTW", "SoftDTW"),
    "sets": ("ModifiedHausdorff", "Hausdorff", "Chamfer", "SlicedWasserstein", "Wasserstein"),
    "mmd": ("MMD",),
}
_BUILT_IN = {name: home for home, names in _HOMES.items() for name in names}
_NAMES = {
    **_BUILT_IN,
    "Distance": "similia.similarity", "Facts": "similia.similarity", "FromFunction": "from_function",
    "mmd2": "mmd", "two_sample_test": "mmd", "TwoSampleResult": "mmd",
}  # fmt: skip
__all__ = [*_NAMES, "facts_table"]
__getattr__, __dir__ = attach(__name__, dict.fromkeys(__all__, "") | _NAMES)


def facts_table() -> dict[str, Facts]:
    """Return the mathematical properties (`Facts`) of each built-in distance, in a dictionary whose keys are the names.

    These properties hold for default parameters. Other parameters may change them: a window, for example, breaks the
    triangle inequality. For the properties with your parameters, read the attribute ``facts`` of an instance.

    Examples
    --------
    >>> from similia.distances import facts_table
    >>> [name for name, facts in facts_table().items() if facts.metric]
    ['Levenshtein', 'Hamming', 'DamerauLevenshtein', 'ERP', 'MSM', 'TWE', 'Hausdorff', 'Wasserstein']
    >>> facts_table()["DTW"]
    Facts(symmetric=True, identity=True, metric=False, unequal_length=True, cost='m n')
    """
    return {name: __getattr__(name)().facts for name in _BUILT_IN}
