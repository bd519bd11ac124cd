"""Kernels k(x, y) of strings, graphs, series, sets and vectors, and from distances; combinations; user functions."""

from similia.core import attach

_NAMES = {
    "Kernel": "similia.similarity", "FeatureKernel": "counts",
    "Spectrum": "strings", "GappyKmers": "strings", "Mismatch": "strings", "WeightedDegree": "strings",
    "GappedKmers": "gapped", "Words": "strings",
    "Propagation": "propagation", "WeisfeilerLehman": "graphs", "ShortestPath": "graphs",
    "VertexHistogram": "graphs", "EdgeHistogram": "graphs", "Graphlet": "graphs",
    "Intersection": "minmax", "MinMax": "minmax", "MeanMap": "vectors", "Morgan": "molecules",
    "RBF": "vectors", "Optical": "vectors", "Cosine": "hypersphere", "to_hypersphere": "hypersphere",
    "HypersphericalHeat": "heat", "heat_profile": "heat", "suggest_contrast": "heat",
    "GlobalAlignment": "series", "suggest_bandwidth": "series",
    "FromDistance": "from_distance", "DistanceRBF": "from_distance", "NegativeDistance": "from_distance",
    "suggest_gamma": "from_distance", "suggest_kernels": "suggest",
    "Sum": "combine", "Product": "combine", "Normalized": "combine", "pairwise": "similia.similarity",
}  # fmt: skip
__all__ = [*_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
