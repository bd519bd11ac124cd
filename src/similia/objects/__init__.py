"""What can be compared: collections of strings and graphs in one memory layout, and readers."""

from similia._lazy import attach

_NAMES = {
    "StringBatch": "_strings", "GraphBatch": "_graphs",
    "as_strings": "strings", "as_graphs": "graphs",
    "n_objects": "_sequences", "take": "_sequences",
    "AttributeScaler": "scaling",
    "read_tudataset": "tudataset",
    "read_fasta": "readers", "read_fastq": "readers", "read_columns": "readers",
}  # fmt: skip
__all__ = [*_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
