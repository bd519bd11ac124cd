"""Show models and collections: displays in the style of scikit-learn, and reports, maps and clusters as HTML pages."""

from similia.core.lazy import attach

_NAMES = {
    "ApproximationErrorDisplay": "approximation", "SpectrumDisplay": "approximation", "RobustnessDisplay": "bits",
    "RecallDisplay": "bits", "EmbeddingDisplay": "displays", "write_report": "page", "write_map": "map_page",
    "write_clusters": "clusters_page",
}  # fmt: skip
__all__ = [*_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
