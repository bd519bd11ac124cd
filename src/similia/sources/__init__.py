"""Read objects that are not in memory: files, tables, arrays, iterators and Dask collections."""

from similia.core import attach

_NAMES = {
    "read_fasta": "text",
    "read_fastq": "text",
    "read_columns": "tables",
    "read_ts": "files",
    "read_objects": "files",
    "Objects": "source",
    "Reading": "source",
    "open_stream": "streams",
    "open_objects": "files",
    "Source": "source",
    "Chunk": "source",
}
__all__ = [*_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
