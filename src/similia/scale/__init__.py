"""The same arithmetic past one process and past memory: on Dask, and in streams. It schedules; it computes nothing."""

from similia.core.lazy import attach

_NAMES = {
    "apply": "similia.sources.dask",
    "ShardedIndex": "sharded_index",
    "encode_stream": "stream",
    "predict_stream": "stream",
}
__all__ = [*_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
