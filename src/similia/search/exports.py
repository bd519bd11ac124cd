"""Export codes to pgvector, faiss, usearch, qdrant and LanceDB, and as Parquet to DuckDB and other tools.

Each function produces the input of one tool. `to_lancedb` and `write_parquet` need pyarrow; the other functions need no
further package. A `SimilaritySearch` or `HammingIndex` may be passed in place of its codes, which are exported in the
order of its ids. Every format keeps all bits in order, so Hamming distances are the same everywhere.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from similia.codes.bits import unpack_signs
from similia.core.config import rows_per_block
from similia.core.estimators import check_fitted
from similia.core.validation import as_path, check_codes
from similia.search.feature_index import FeatureIndex
from similia.search.hamming_index import HammingIndex
from similia.search.vector_index import VectorIndex
from similia.storage.disk import replacing

if TYPE_CHECKING:
    from similia.search.similarity_search import SimilaritySearch

Codes: TypeAlias = "npt.NDArray[np.uint8] | HammingIndex | SimilaritySearch | Any"

__all__ = ["to_lancedb", "to_pgvector", "to_qdrant", "to_usearch", "write_faiss", "write_parquet"]


def to_pgvector(codes: Codes) -> Iterator[str]:
    """Convert each code to text for a PostgreSQL column ``bit(n_bits)``, which pgvector (0.7 or later) can search.

    Create the table, copy lines of ``id,text`` into it, and query the nearest codes. The index is optional and makes
    the search approximate::

        CREATE TABLE items (id bigint PRIMARY KEY, code bit(256));
        COPY items (id, code) FROM STDIN WITH (FORMAT csv);
        SELECT id, code <~> B'0101...' AS distance FROM items ORDER BY distance, id LIMIT 10;
        CREATE INDEX ON items USING hnsw (code bit_hamming_ops);

    To use the index, order by ``code <~> B'0101...'`` only.

    Parameters
    ----------
    codes : uint8 array of shape (n, n_bits // 8), HammingIndex or SimilaritySearch

    Yields
    ------
    str
        ``n_bits`` characters 0 and 1, the first bit first.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.search.exports import to_pgvector
    >>> list(to_pgvector(np.array([[5], [255]], dtype=np.uint8)))
    ['00000101', '11111111']
    """
    return _texts(_packed(codes))  # check now, not at the first text


def _packed(codes: Codes) -> npt.NDArray[np.uint8]:
    codes = _index_of(codes)
    return codes.reconstruct() if isinstance(codes, HammingIndex) else check_codes(codes)


def _index_of(codes: Any) -> Any:
    """Return the index inside a search; raise if it holds no codes. Return anything else unchanged."""
    if hasattr(codes, "kneighbors") and not isinstance(codes, HammingIndex):
        check_fitted(codes)
    codes = getattr(codes, "index_", codes)
    if isinstance(codes, FeatureIndex | VectorIndex):
        by = "features" if isinstance(codes, FeatureIndex) else "vectors"
        raise TypeError(f"a search by {by} has no bits to export; fit a SimilaritySearch whose encoder makes bits")
    return codes


def _texts(codes: npt.NDArray[np.uint8]) -> Iterator[str]:
    n_bits = 8 * codes.shape[1]
    step = rows_per_block(3 * n_bits, at_most=2**12)
    for start in range(0, len(codes), step):
        block = np.unpackbits(codes[start : start + step], axis=1)
        text = (block + ord("0")).tobytes().decode("ascii")
        yield from (text[i * n_bits : (i + 1) * n_bits] for i in range(len(block)))


def write_faiss(index: HammingIndex | SimilaritySearch, path: str | os.PathLike[str]) -> Path:
    """Write an index as a file for ``faiss.read_index_binary``: an IndexBinaryIDMap with the ids.

    The IndexBinaryIDMap wraps a faiss structure of the same kind as the index (IndexBinaryFlat for "exact"), rebuilt
    from the codes. It searches by the Hamming distance, even if the index has ``metric="jaccard"``. faiss does not
    define which of several codes at the same distance it returns.

    Parameters
    ----------
    index : HammingIndex or SimilaritySearch
        It must not be empty.
    path : str or path
        The file to write, atomically: after a failure no partial file remains.

    Returns
    -------
    pathlib.Path
        `path`.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from similia.search import HammingIndex
    >>> from similia.search.exports import write_faiss
    >>> index = HammingIndex(n_bits=8).fit(np.array([[1], [2]], dtype=np.uint8), ids=[7, 9])
    >>> write_faiss(index, os.path.join(tempfile.mkdtemp(), "codes.faiss")).name
    'codes.faiss'
    """
    from similia.search._faiss import empty_structure, threads

    file = as_path(path)
    index = _index_of(index)
    if not isinstance(index, HammingIndex):
        raise TypeError(
            f"index is a {type(index).__name__}, expected a HammingIndex or a SimilaritySearch; for codes, give "
            "HammingIndex(n_bits).fit(codes)"
        )
    if len(index) == 0:
        raise ValueError("the index is empty; call fit or add first")
    with threads(1) as faiss:
        inner = faiss.IndexBinaryFlat(int(index.n_bits)) if index.kind == "exact" else empty_structure(index)
        mapped = faiss.IndexBinaryIDMap(inner)
        mapped.add_with_ids(index.reconstruct(), index.ids)
        data = faiss.serialize_index_binary(mapped)
    with replacing(file) as stream:
        stream.write(data)
    return file


def to_usearch(codes: Codes) -> npt.NDArray[np.uint8]:
    """Return codes as usearch expects them: a C-contiguous array, in the bit order of `numpy.packbits`.

    Pack queries in the same order::

        index = usearch.index.Index(ndim=n_bits, metric="hamming", dtype="b1")
        index.add(ids, to_usearch(codes))

    Parameters
    ----------
    codes : uint8 array of shape (n, n_bits // 8), HammingIndex or SimilaritySearch

    Examples
    --------
    >>> import numpy as np
    >>> from similia.search.exports import to_usearch
    >>> to_usearch(np.array([[5]], dtype=np.uint8))
    array([[5]], dtype=uint8)
    """
    return _packed(codes)


def to_qdrant(codes: Codes) -> npt.NDArray[np.float32]:
    """Return codes as float32 vectors for qdrant, shape (n, n_bits): +1 for bit 1, -1 for bit 0.

    With binary quantisation, qdrant keeps one bit per number: 1 if the number is above zero. These bits are the code,
    so rescoring, which uses the floats, changes nothing. The dot product of two vectors is ``n_bits - 2 * distance``::

        client.create_collection(
            "codes",
            vectors_config=VectorParams(size=n_bits, distance=Distance.DOT),
            quantization_config=BinaryQuantization(binary=BinaryQuantizationConfig(always_ram=True)),
        )

    Parameters
    ----------
    codes : uint8 array of shape (n, n_bits // 8), HammingIndex or SimilaritySearch

    Examples
    --------
    >>> import numpy as np
    >>> from similia.search.exports import to_qdrant
    >>> to_qdrant(np.array([[0b11110000]], dtype=np.uint8))
    array([[ 1.,  1.,  1.,  1., -1., -1., -1., -1.]], dtype=float32)
    """
    return unpack_signs(_packed(codes), np.float32)


def to_lancedb(codes: Codes) -> Any:
    """Return ids and codes as a table for LanceDB, which searches lists of bytes by the number of differing bits.

    Create a LanceDB table from the result, and query the nearest codes. LanceDB decides which of several codes at the
    same distance it returns::

        table = lancedb.connect(folder).create_table("codes", to_lancedb(search))
        table.search(query_code, vector_column_name="vector").distance_type("hamming").limit(10).to_arrow()

    Parameters
    ----------
    codes : uint8 array of shape (n, n_bits // 8), HammingIndex or SimilaritySearch

    Returns
    -------
    pyarrow.Table
        Columns ``id`` (int64: the ids of the index or, for an array, row numbers from 0 on) and ``vector`` (a list of
        n_bits // 8 uint8).

    Raises
    ------
    ImportError
        If pyarrow is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.search.exports import to_lancedb
    >>> to_lancedb(np.array([[5, 0], [255, 1]], dtype=np.uint8)).to_pylist()
    [{'id': 0, 'vector': [5, 0]}, {'id': 1, 'vector': [255, 1]}]
    """
    ids, packed = _ids(codes), _packed(codes)
    pa = _arrow("to_lancedb")
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(packed.reshape(-1)), packed.shape[1])
    return pa.table({"id": pa.array(ids), "vector": vectors})


def write_parquet(codes: Codes, path: str | os.PathLike[str]) -> Path:
    """Write ids and codes to a Parquet file, which DuckDB, Spark, polars and other tools can read.

    The column ``code`` holds the bytes of each code. DuckDB counts the bits in which a code and the query differ::

        SELECT id, bit_count(xor(code::BIT, $1::BLOB::BIT)) AS distance
        FROM 'codes.parquet' ORDER BY distance, id LIMIT 10;

    Parameters
    ----------
    codes : uint8 array of shape (n, n_bits // 8), HammingIndex or SimilaritySearch
    path : str or path
        The file to write, atomically: after a failure no partial file remains.

    Returns
    -------
    pathlib.Path
        `path`. The file has the columns ``id`` (int64: the ids of the index or, for an array, row numbers from 0 on)
        and ``code`` (bytes, first bit first).

    Raises
    ------
    ImportError
        If pyarrow is not installed.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from pyarrow import parquet
    >>> from similia.search.exports import write_parquet
    >>> file = write_parquet(np.array([[65], [66]], dtype=np.uint8), os.path.join(tempfile.mkdtemp(), "codes.parquet"))
    >>> parquet.read_table(file)["code"].to_pylist()
    [b'A', b'B']
    """
    file = as_path(path)
    ids, packed = _ids(codes), _packed(codes)
    pa = _arrow("write_parquet")
    from pyarrow import parquet

    code = pa.binary(packed.shape[1])
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("code", code, nullable=False)])
    step = rows_per_block(packed.shape[1] + 16, at_most=2**17)
    with replacing(file) as stream, parquet.ParquetWriter(stream, schema) as writer:
        for start in range(0, len(packed), step):
            block = np.ascontiguousarray(packed[start : start + step])
            bytes_of = pa.Array.from_buffers(code, len(block), [None, pa.py_buffer(block)])
            writer.write_table(pa.table([pa.array(ids[start : start + step]), bytes_of], schema=schema))
    return file


def _ids(codes: Codes) -> npt.NDArray[np.int64]:
    """Return the ids of an index, or the numbers of the rows of an array."""
    codes = _index_of(codes)
    return codes.ids if isinstance(codes, HammingIndex) else np.arange(len(check_codes(codes)), dtype=np.int64)


def _arrow(function: str) -> Any:
    try:
        import pyarrow
    except ImportError:
        raise ImportError(f"{function} needs pyarrow: pip install pyarrow") from None
    return pyarrow
