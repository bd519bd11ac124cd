"""Objects to vectors, through a kernel or a distance."""

from similia._lazy import attach

_NAMES = {"Nystroem": "nystroem", "KernelFeatures": "kernel_features", "landmarks": ""}
__all__ = [*_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
