# Written by tools/stubs.py from the names in __init__.py.

from similia.sources.text import read_fasta as read_fasta
from similia.sources.text import read_fastq as read_fastq
from similia.sources.tables import read_columns as read_columns
from similia.sources.files import read_ts as read_ts
from similia.sources.files import read_objects as read_objects
from similia.sources.source import Objects as Objects
from similia.sources.source import Reading as Reading
from similia.sources.streams import open_stream as open_stream
from similia.sources.files import open_objects as open_objects
from similia.sources.source import Source as Source
from similia.sources.source import Chunk as Chunk
