"""k(x, y), positive semi-definite: kernels on strings and graphs, combinations, and a lift for Python functions."""

from similia._lazy import attach

_NAMES = {
    "Kernel": "base", "FeatureKernel": "base",
    "Spectrum": "strings", "GappyKmers": "strings", "Mismatch": "strings", "WeightedDegree": "strings",
    "Propagation": "propagation", "WeisfeilerLehman": "graphs", "ShortestPath": "graphs",
    "VertexHistogram": "graphs", "EdgeHistogram": "graphs",
    "GlobalAlignment": "series", "suggest_bandwidth": "series",
    "FromDistance": "from_distance", "DistanceRBF": "substitution", "NegativeDistance": "substitution",
    "suggest_gamma": "substitution",
    "Sum": "combine", "Product": "combine", "Normalized": "combine", "pairwise": "combine",
}  # fmt: skip
__all__ = [*_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
