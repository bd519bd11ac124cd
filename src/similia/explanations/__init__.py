"""Explain similarities, distances and predictions as sums of named parts, each with its places in the objects."""

from similia.core.lazy import attach

_NAMES = {"explain": "_explain", "Explanation": "_explanation", "Part": "_explanation"}
__all__ = [*_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
