"""Show models and collections: displays in the style of scikit-learn, and HTML pages (reports, maps, clusters ...)."""

from similia.core import attach

_NAMES = {
    "ApproximationErrorDisplay": "approximation", "SpectrumDisplay": "approximation", "RobustnessDisplay": "bits",
    "RecallDisplay": "bits", "EmbeddingDisplay": "displays", "write_report": "page", "write_map": "map_page",
    "write_clusters": "clusters_page", "write_duplicates": "duplicates_page", "write_search": "search_page",
}  # fmt: skip
__all__ = [*_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
