"""similia: similarity in; vectors, packed bits and classifiers out.

The house, in the direction data flow::

    objects -> kernels, distances -> embeddings -> codes -> learn
    (what is    (how alike             (objects to   (vectors   (bits to
    compared)    are two)               vectors)      to bits)   labels)

``recipes`` composes the rooms into the published systems; ``datasets`` loads data;
``experiments`` reproduces the published tables.
"""

from similia._lazy import attach
from similia._version import __version__

_NAMES = {
    # rooms
    "objects": "", "kernels": "", "distances": "", "embeddings": "", "codes": "", "learn": "",
    "recipes": "", "datasets": "", "bounds": "", "checks": "", "experiments": "",
    # the names used most
    "pairwise": "kernels",
    "Nystroem": "embeddings",
    "KernelFeatures": "embeddings",
    "D2KE": "embeddings",
    "PseudoEuclidean": "embeddings",
    "GraphletSampling": "embeddings", "OpticalRandomFeatures": "embeddings",
    "SignRandomProjection": "codes",
    "NGramEncoder": "codes",
    "GraphHDEncoder": "codes",
    "LevelEncoder": "codes", "SequenceEncoder": "codes", "FractionalPowerEncoder": "codes",
    "HDClassifier": "learn",
    "save": "persistence", "load": "persistence",
    "config": "_config",
}  # fmt: skip
__all__ = ["__version__", *_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
