"""Run the same computations on Dask clusters, and on streams of objects that do not fit into memory."""

from similia.core import attach

_NAMES = {
    "apply": "similia.sources.dask",
    "ShardedIndex": "sharded_index",
    "encode_stream": "stream",
    "predict_stream": "stream",
    "Progress": "stream",
}
__all__ = [*_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
