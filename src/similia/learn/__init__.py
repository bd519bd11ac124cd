"""Bits to labels."""

from similia._lazy import attach

_NAMES = {"HDClassifier": "hd_classifier"}
__all__ = ["HDClassifier"]
__getattr__, __dir__ = attach(__name__, _NAMES)
