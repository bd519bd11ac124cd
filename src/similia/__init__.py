"""similia: similarity in; vectors, packed bits, classifiers and search indexes out.

The parts, in the direction in which data flow::

    objects -> kernels, distances -> embeddings -> codes -> learn, search
    (what is    (how alike             (objects to   (vectors   (bits to
    compared)    are two)               vectors)      to bits)   labels, neighbours)

``sources`` reads objects that are not in memory, ``scale`` runs these steps on clusters and on data that do not fit
into memory, and ``planning`` estimates the cost. ``recipes`` combines these parts into published systems, ``selection``
chooses a pipeline for your data, ``explanations`` and ``report`` show the result, and ``devices`` writes a model as C
or Verilog. ``adapters`` wraps kernels and distances of other libraries; ``datasets`` loads data.
"""

from similia._version import __version__
from similia.core import attach

_NAMES = {
    # rooms
    "objects": "", "kernels": "", "distances": "", "embeddings": "", "codes": "", "learn": "",
    "search": "", "scale": "", "selection": "", "explanations": "", "report": "", "adapters": "",
    "recipes": "", "datasets": "", "planning": "", "checks": "", "sources": "", "devices": "",
    # the names used most
    "pairwise": "similarity",
    "Nystroem": "embeddings",
    "KernelFeatures": "embeddings", "FeatureWeights": "embeddings",
    "D2KE": "embeddings",
    "PseudoEuclidean": "embeddings",
    "GraphletSampling": "embeddings", "OpticalRandomFeatures": "embeddings", "HeatRandomFeatures": "embeddings",
    "MeanMapFeatures": "embeddings",
    "IntervalQuantiles": "embeddings",
    "RandomConvolutions": "embeddings",
    "SignRandomProjection": "codes",
    "MinHash": "codes",
    "NGramEncoder": "codes",
    "GraphHDEncoder": "codes",
    "LevelEncoder": "codes", "SequenceEncoder": "codes", "FractionalPowerEncoder": "codes",
    "GeneralizedNystroemPCA": "codes", "ITQ": "codes",
    "HDClassifier": "learn", "HeatSVC": "learn",
    "KernelSVC": "learn", "KernelRidge": "learn", "KernelSVR": "learn",
    "KNeighborsClassifier": "learn", "KNeighborsRegressor": "learn", "NearestNeighbors": "learn",
    "GaussianProcessRegressor": "learn", "GaussianProcessClassifier": "learn",
    "OutlierDetector": "learn",
    "VoteClassifier": "learn", "VoteRegressor": "learn",
    "ConformalClassifier": "learn", "ConformalRegressor": "learn",
    "KernelKMeans": "learn",
    "quantise": "devices", "export_c": "devices", "export_verilog": "devices",
    "HammingIndex": "search", "SimilaritySearch": "search", "SimilarityMap": "search", "HDBSCAN": "search",
    "AutoClassifier": "selection", "AutoRegressor": "selection", "explain": "explanations",
    "Pipeline": "pipelines",
    "save": "storage", "load": "storage",
    "config": "core.config", "warmup": "compilation",
}  # fmt: skip
__all__ = ["__version__", *_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
