"""Bits to labels; and vectors on a sphere, or any objects under a kernel or distance, to labels."""

from similia._lazy import attach

_NAMES = {
    "HDClassifier": "hd_classifier",
    "KernelSVC": "kernel_svc",
    "KernelRidge": "kernel_regression", "KernelSVR": "kernel_regression",
    "KNeighborsClassifier": "neighbors", "KNeighborsRegressor": "neighbors",
    "VoteClassifier": "vote", "VoteRegressor": "vote",
    "HeatSVC": "heat_svc", "nested_scores": "heat_svc", "precomputed_scores": "heat_svc",
}  # fmt: skip
__all__ = [*_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
