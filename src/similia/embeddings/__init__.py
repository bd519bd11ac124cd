"""Transformers that embed objects as vectors, by means of a kernel or a distance."""

from similia.core import attach

_NAMES = {
    "Nystroem": "nystroem", "KernelFeatures": "kernel_features", "FeatureWeights": "kernel_features", "landmarks": "",
    "D2KE": "d2ke", "PseudoEuclidean": "pseudo_euclidean",
    "RandomStrings": "d2ke", "RandomSeries": "d2ke", "RandomSets": "d2ke",
    "Representatives": "d2ke", "Mosaics": "d2ke", "Mixture": "d2ke",
    "SeriesVectors": "vectors",
    "Hydra": "hydra", "SparseScaler": "hydra", "IntervalQuantiles": "intervals",
    "GraphletSampling": "graphlets", "OpticalRandomFeatures": "random_features",
    "HeatRandomFeatures": "heat_features", "MeanMapFeatures": "mean_map",
    "RandomConvolutions": "convolutions",
}  # fmt: skip
__all__ = [*_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
