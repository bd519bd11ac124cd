"""Collections of strings, graphs, series and point sets in one memory layout, and functions that read them."""

from similia.core import attach

_NAMES = {
    "StringBatch": "sequences", "GraphBatch": "graph_batch", "SeriesBatch": "series", "SetBatch": "vectors",
    "as_strings": "sequences", "as_graphs": "graphs", "as_series": "series", "as_sets": "vectors",
    "series_from_long": "series", "from_aeon": "series", "from_sktime": "series", "from_tslearn": "series",
    "from_smiles": "molecules", "read_tudataset": "graphs",
    "sample_graphlets": "graphlets", "enumerate_graphlets": "graphlets", "count_patterns": "graphlets",
    "unpack_graphlets": "graphlets", "canonical_forms": "graphlets", "Patterns": "graphlets",
    "CanonicalForms": "graphlets",
    "n_objects": "sequences", "take": "sequences", "concatenate": "sequences",
    "GraphToSets": "transformers", "SeriesToSets": "transformers",
    "AttributeScaler": "transformers", "as_column": "transformers", "FromColumn": "transformers",
}  # fmt: skip
__all__ = [*_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
