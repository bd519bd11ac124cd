"""Classifiers and regressors for hypervectors, for vectors on a sphere, and for objects with a kernel or distance."""

from similia.core import attach

_NAMES = {
    "HDClassifier": "hd_classifier",
    "D2KESearch": "d2ke_search",
    "KernelSVC": "kernel_machines", "KernelRidge": "kernel_machines", "KernelSVR": "kernel_machines",
    "KNeighborsClassifier": "neighbors", "KNeighborsRegressor": "neighbors", "NearestNeighbors": "neighbors",
    "GaussianProcessRegressor": "gaussian_process", "GaussianProcessClassifier": "gaussian_process_classifier",
    "OutlierDetector": "outliers",
    "VoteClassifier": "vote", "VoteRegressor": "vote",
    "ConformalClassifier": "conformal", "ConformalRegressor": "conformal",
    "KernelKMeans": "clusters",
    "HeatSVC": "heat_svc", "nested_scores": "kernel_machines", "precomputed_scores": "kernel_machines",
}  # fmt: skip
__all__ = [*_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
