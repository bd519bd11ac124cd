"""Nearest-neighbour search over binary codes and over the objects they encode; maps and dense clusters of objects."""

from similia.core import attach

_NAMES = {
    "FeatureIndex": "feature_index",
    "VectorIndex": "vector_index",
    "HammingIndex": "hamming_index",
    "SimilaritySearch": "similarity_search",
    "Recall": "similarity_search",
    "SearchFolder": "on_disk",
    "SimilarityMap": "similarity_map",
    "HDBSCAN": "hdbscan",
    "knn_graph": "neighbour_graph",
    "near_duplicates": "duplicates",
    "Duplicates": "duplicates",
    "find": "subsequences",
    "exports": "",
}
__all__ = [
    "HDBSCAN",
    "Duplicates",
    "FeatureIndex",
    "HammingIndex",
    "Recall",
    "SearchFolder",
    "SimilarityMap",
    "SimilaritySearch",
    "VectorIndex",
    "exports",
    "find",
    "knn_graph",
    "near_duplicates",
]
__getattr__, __dir__ = attach(__name__, _NAMES)
