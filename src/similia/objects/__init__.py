"""What can be compared: collections of strings, graphs, series and point sets in one memory layout, and readers."""

from similia.core.lazy import attach

_NAMES = {
    "StringBatch": "_strings", "GraphBatch": "_graphs",
    "SeriesBatch": "_vectors", "SetBatch": "_vectors",
    "as_strings": "strings", "as_graphs": "graphs", "as_series": "series", "as_sets": "sets",
    "series_from_long": "series",
    "from_aeon": "containers", "from_sktime": "containers", "from_tslearn": "containers", "from_smiles": "molecules",
    "sample_graphlets": "graphlets", "enumerate_graphlets": "graphlets", "count_patterns": "graphlets",
    "unpack_graphlets": "graphlets", "canonical_forms": "graphlets", "Patterns": "graphlets",
    "CanonicalForms": "graphlets",
    "n_objects": "sequences", "take": "sequences", "concatenate": "sequences",
    "AttributeScaler": "scaling",
    "as_column": "columns", "FromColumn": "columns",
    "read_tudataset": "tudataset",
}  # fmt: skip
__all__ = [*_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
