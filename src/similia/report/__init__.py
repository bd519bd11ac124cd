"""Show models: displays in the style of scikit-learn, and a report as one HTML page."""

from similia.core.lazy import attach

_NAMES = {
    "ApproximationErrorDisplay": "approximation", "SpectrumDisplay": "approximation", "RobustnessDisplay": "bits",
    "RecallDisplay": "bits", "EmbeddingDisplay": "displays", "write_report": "page",
}  # fmt: skip
__all__ = [*_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
