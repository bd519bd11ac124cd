"""Explain similarities, distances and predictions as sums of named parts, and locate the parts in the objects."""

from similia.core import attach

_NAMES = {
    "explain": "_explain", "explain_classes": "_shared", "SharedPart": "_shared", "Explanation": "_explanation",
    "Part": "_explanation",
}  # fmt: skip
__all__ = [*_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
