"""The same arithmetic past one process and past memory: on Dask, and in streams. It schedules; it computes nothing."""

from similia._lazy import attach

_NAMES = {"apply": "_apply", "ShardedIndex": "sharded_index"}
__all__ = [*_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
