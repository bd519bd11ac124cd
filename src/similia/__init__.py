"""similia: similarity in; vectors, packed bits, classifiers and search indexes out.

The house, in the direction data flow::

    objects -> kernels, distances -> embeddings -> codes -> learn, search
    (what is    (how alike             (objects to   (vectors   (bits to
    compared)    are two)               vectors)      to bits)   labels, neighbours)

``selection`` chooses among them, ``explanations`` and ``report`` show what came out, ``adapters`` bring in kernels and
distances of other libraries; ``recipes`` composes the rooms into the published systems; ``datasets`` loads data;
``experiments`` reproduces the published tables.
"""

from similia._lazy import attach
from similia._version import __version__

_NAMES = {
    # rooms
    "objects": "", "kernels": "", "distances": "", "embeddings": "", "codes": "", "learn": "",
    "search": "", "scale": "", "selection": "", "explanations": "", "report": "", "adapters": "",
    "recipes": "", "datasets": "", "bounds": "", "checks": "", "experiments": "",
    # the names used most
    "pairwise": "kernels",
    "Nystroem": "embeddings",
    "KernelFeatures": "embeddings",
    "D2KE": "embeddings",
    "PseudoEuclidean": "embeddings",
    "GraphletSampling": "embeddings", "OpticalRandomFeatures": "embeddings", "HeatRandomFeatures": "embeddings",
    "SignRandomProjection": "codes",
    "NGramEncoder": "codes",
    "GraphHDEncoder": "codes",
    "LevelEncoder": "codes", "SequenceEncoder": "codes", "FractionalPowerEncoder": "codes",
    "GeneralizedNystroemPCA": "codes", "ITQ": "codes",
    "HDClassifier": "learn", "HeatSVC": "learn",
    "KernelSVC": "learn", "KernelRidge": "learn", "KernelSVR": "learn",
    "KNeighborsClassifier": "learn", "KNeighborsRegressor": "learn",
    "VoteClassifier": "learn", "VoteRegressor": "learn",
    "HammingIndex": "search", "SimilaritySearch": "search",
    "select": "selection", "Selection": "selection", "explain": "explanations",
    "Pipeline": "pipelines",
    "save": "persistence", "load": "persistence",
    "config": "_config", "warmup": "_warmup",
}  # fmt: skip
__all__ = ["__version__", *_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
