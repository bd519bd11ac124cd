"""Bits to labels; and vectors on a sphere to labels."""

from similia._lazy import attach

_NAMES = {
    "HDClassifier": "hd_classifier",
    "HeatSVC": "heat_svc", "nested_scores": "heat_svc", "precomputed_scores": "heat_svc",
}  # fmt: skip
__all__ = [*_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
