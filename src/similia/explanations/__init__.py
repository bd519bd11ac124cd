"""Why two objects are similar, and what leads to a prediction: sums of named parts with their places."""

from similia.core.lazy import attach

_NAMES = {"explain": "_explain", "Explanation": "_explanation", "Part": "_explanation"}
__all__ = [*_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
