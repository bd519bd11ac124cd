# Written by tools/stubs.py from the names in __init__.py.

from similia.sources.dask import apply as apply
from similia.scale.sharded_index import ShardedIndex as ShardedIndex
from similia.scale.stream import encode_stream as encode_stream
from similia.scale.stream import predict_stream as predict_stream
from similia.scale.stream import Progress as Progress
