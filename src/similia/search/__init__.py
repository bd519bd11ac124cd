"""Nearest-neighbour search over binary codes and over the objects they encode."""

from similia.core.lazy import attach

_NAMES = {
    "HammingIndex": "hamming_index",
    "SimilaritySearch": "similarity_search",
    "Recall": "recall",
    "knn_graph": "neighbour_graph",
    "exports": "",
}
__all__ = ["HammingIndex", "Recall", "SimilaritySearch", "exports", "knn_graph"]
__getattr__, __dir__ = attach(__name__, _NAMES)
