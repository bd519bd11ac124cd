"""d(x, y) >= 0: between strings, series, point sets and graphs, two-sample tests, other libraries' functions."""

from similia.core.lazy import attach

_NAMES = {
    "Distance": "similia.similarity", "Facts": "similia.similarity",
    "Levenshtein": "edit", "Hamming": "edit", "DamerauLevenshtein": "edit", "JaroWinkler": "edit",
    "DTW": "dtw",
    "ERP": "elastic", "MSM": "elastic", "TWE": "elastic", "LCSS": "elastic", "SoftDTW": "elastic",
    "ModifiedHausdorff": "sets", "Hausdorff": "sets", "Chamfer": "sets", "SlicedWasserstein": "sets",
    "MMD": "mmd", "mmd2": "mmd", "mmd2_variance": "mmd", "two_sample_test": "mmd", "TwoSampleResult": "mmd",
    "FromFunction": "from_function", "facts_table": "facts",
}  # fmt: skip
__all__ = [*_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
